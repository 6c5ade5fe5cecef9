//! Random right plans: a random sequential program, spread over one or two blocks per rank.
//!
//! Moves are made one after another and followed by hand: every place holds a list of entry blocks. A step waits for
//! every earlier step of another block of its rank that it conflicts with, so the plan does what the program does; its
//! promise is what the output blocks hold in the end.

use std::collections::BTreeMap;

use rcc_plan::builder::{BlockHandle, PlanBuilder, StepHandle, get, local, put};
use rcc_plan::ids::{BufferId, ChannelId};
use rcc_plan::plan::{Operand, Plan, Role};

/// A small generator of numbers.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// A number below `n`.
    pub(crate) fn roll(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

const CELLS: u32 = 2;

/// Who wrote a place last and who has read it since.
#[derive(Default, Clone)]
struct Touched {
    written: Option<(usize, StepHandle)>,
    read: Vec<(usize, StepHandle)>,
}

type Place = (u32, BufferId, u32);

struct Program {
    p: PlanBuilder,
    /// (rank, handle) of each block.
    blocks: Vec<(u32, BlockHandle)>,
    channels: BTreeMap<(usize, usize), ChannelId>,
    /// The entry blocks whose sum each place holds.
    holds: BTreeMap<Place, Vec<(u32, u32)>>,
    touched: BTreeMap<Place, Touched>,
    events: usize,
}

/// A right plan of 2 or 3 ranks with at most 24 events; `k_min` is still to be found.
pub(crate) fn plan(seed: u64) -> Plan {
    let mut dice = Dice(seed);
    let ranks = 2 + dice.roll(2) as u32;
    let mut p = PlanBuilder::new("random", "custom", &[ranks]);
    let input = p.buffer("input", Role::Send, CELLS);
    let output = p.buffer("output", Role::Recv, CELLS);
    let scratch = p.scratch(CELLS);
    let mut blocks = Vec::new();
    for rank in 0..ranks {
        for _ in 0..1 + dice.roll(2) {
            blocks.push((rank, p.block(rank)));
        }
    }
    let mut holds = BTreeMap::new();
    for rank in 0..ranks {
        for block in 0..CELLS {
            holds.insert((rank, input, block), vec![(rank, block)]);
        }
    }
    let mut program =
        Program { p, blocks, channels: BTreeMap::new(), holds, touched: BTreeMap::new(), events: 0 };
    for _ in 0..5 + dice.roll(9) {
        if program.events < 23 {
            program.any_move(&mut dice, [output, scratch]);
        }
    }
    let Program { mut p, holds, .. } = program;
    for (&(rank, buffer, block), leaves) in holds.iter().filter(|((_, buffer, _), _)| *buffer == output) {
        let operands: Vec<_> = leaves.iter().map(|&(rank, block)| (input, rank, block)).collect();
        p.promise((buffer, rank, block), &operands);
    }
    p.finish().unwrap().plan
}

impl Program {
    fn any_move(&mut self, dice: &mut Dice, written: [BufferId; 2]) {
        let from = self.any_place(dice, |_| true);
        let local_move = dice.roll(3) == 0;
        let to_rank = if local_move { from.0 } else { self.blocks[dice.roll(self.blocks.len())].0 };
        let to = (to_rank, written[dice.roll(2)], dice.roll(CELLS as usize) as u32);
        let mut leaves = self.holds[&from].clone();
        // Perhaps added to what some place there holds, if no contribution would be there twice.
        let other = self.any_place(dice, |place| place.0 == to_rank);
        let more = (dice.roll(2) == 0 && self.holds[&other].iter().all(|leaf| !leaves.contains(leaf)))
            .then_some(other);
        if let Some(more) = more {
            leaves.extend(self.holds[&more].clone());
        }
        let writer = self.any_block(dice, from.0);
        let reader = self.any_block(dice, to_rank);
        if writer == reader {
            self.step(writer, &[Some(from), more], None, Some(to), None);
        } else {
            let (a, b) = (self.blocks[writer].1, self.blocks[reader].1);
            let p = &mut self.p;
            let channel = *self.channels.entry((writer, reader)).or_insert_with(|| p.channel(a, &[b]));
            self.step(writer, &[Some(from), None], None, None, Some(channel));
            self.step(reader, &[None, more], Some(channel), Some(to), None);
        }
        leaves.sort_unstable();
        self.holds.insert(to, leaves);
    }

    fn step(
        &mut self,
        block: usize,
        from: &[Option<Place>; 2],
        receive: Option<ChannelId>,
        to: Option<Place>,
        send: Option<ChannelId>,
    ) {
        self.events += 1;
        let place = |&(_, buffer, cell): &Place| local(buffer, cell);
        let mut src: Vec<Operand> = receive.map(get).into_iter().collect();
        src.extend(from.iter().flatten().map(place));
        let dst: Vec<Operand> = to.iter().map(place).chain(send.map(put)).collect();
        let mut waits: Vec<(usize, StepHandle)> = Vec::new();
        for from in from.iter().flatten() {
            waits.extend(self.touched.entry(*from).or_default().written);
        }
        if let Some(to) = to {
            let touched = self.touched.entry(to).or_default();
            waits.extend(touched.written);
            waits.extend(&touched.read);
        }
        let handle = self.p.step(self.blocks[block].1, &src, &dst).handle();
        let mut known = Vec::new();
        for (other, step) in waits {
            if other != block && !known.contains(&step) {
                self.p.wait(handle, step);
                known.push(step);
            }
        }
        for from in from.iter().flatten() {
            self.touched.entry(*from).or_default().read.push((block, handle));
        }
        if let Some(to) = to {
            self.touched.insert(to, Touched { written: Some((block, handle)), read: Vec::new() });
        }
    }

    fn any_place(&self, dice: &mut Dice, fits: impl Fn(&Place) -> bool) -> Place {
        let places: Vec<_> = self.holds.keys().filter(|place| fits(place)).copied().collect();
        places[dice.roll(places.len())]
    }

    fn any_block(&self, dice: &mut Dice, rank: u32) -> usize {
        let of: Vec<_> = (0..self.blocks.len()).filter(|&b| self.blocks[b].0 == rank).collect();
        of[dice.roll(of.len())]
    }
}
