//! A plan folded by a rotation of its ranks: the programs of a few ranks, which are those of all.
//!
//! In: made by the compiler, or from a file. Out: judged by `verify::verify_folded`; spelled out for any rank, or all. The
//! one hard idea: σ takes rank r to rank r + `step` (mod n) and, in each buffer of the caller, block b to b + `blocks` and
//! the cell at position p of a block to p + `cells`, both modulo their number; scratch stays as it is. What a folded plan
//! *means* is the plan whose ranks σᵗ(0..step) do what ranks `0..step` do, taken round t times: steps, channels, overlaps
//! and promise. So σ is an automorphism of that plan by construction, and nothing has to be found or compared; what is to
//! be shown is that σ is one of the layout (`step` divides n, turns come back after n / step times, no run of cells is ever cut).
//!
//! A channel of a folded plan stands for an orbit of channels. Of each reader `times` says how often its rank is taken round,
//! seen from the writer: `writer` at rank w and `reader` at rank r with 3 times mean: what w sends, r + 3·step reads.

mod file;
mod unfold;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub use self::file::FOLDED_VERSION;
pub use self::unfold::NotUnfolded;
use crate::collective::BlockRef;
use crate::ids::{BlockId, BufferId, ChannelId, RankId};
use crate::plan::{Operand, Overlap, Plan, Presence, Role};

/// A plan of which only ranks `0..rotation.step` are written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folded {
    /// The header is that of the whole, but for `scratch_cells`, which has `step` entries. Blocks, steps, channels, overlaps
    /// and clauses are those of ranks `0..step`; the operands of their promise lie anywhere. No step has a `Peer` operand.
    pub plan: Plan,
    /// What takes these ranks to all others.
    pub rotation: Rotation,
    /// By entry of `Plan::readers`: how many times the reader's rank is taken round, seen from the writer.
    pub times: Vec<u32>,
}

/// σ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rotation {
    /// How far a rank moves; divides the number of ranks.
    pub step: u32,
    /// By buffer: what happens within it.
    pub buffers: Vec<Turn>,
}

/// What happens within a buffer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// How far a block moves, modulo their number.
    pub blocks: u32,
    /// How far a cell moves within its block, modulo K.
    pub cells: u32,
}

impl Folded {
    /// How many times σ is to be applied until all is where it was.
    pub fn order(&self) -> u32 {
        self.plan.header.ranks.checked_div(self.rotation.step).unwrap_or(0)
    }

    /// The rank that stands for one, and how many times it is taken round.
    pub fn home(&self, rank: RankId) -> (RankId, u32) {
        (RankId(rank.0 % self.rotation.step), rank.0 / self.rotation.step)
    }

    /// How many times undo `times` times.
    pub fn back(&self, times: u32) -> u32 {
        let order = self.order();
        (order - times % order) % order
    }

    /// A rank, taken round.
    pub fn rank(&self, rank: RankId, times: u32) -> RankId {
        RankId(turned(rank.0, self.rotation.step, times, self.plan.header.ranks))
    }

    /// A cell of a buffer, taken round.
    pub fn cell(&self, buffer: BufferId, cell: u32, times: u32) -> u32 {
        let of = &self.plan.buffers[buffer.index()];
        let turn = self.rotation.buffers[buffer.index()];
        if of.role == Role::Scratch || turn == Turn::default() {
            return cell;
        }
        let k = self.plan.header.cells;
        turned(cell / k, turn.blocks, times, of.blocks) * k + turned(cell % k, turn.cells, times, k)
    }

    /// A block, taken round.
    pub fn block(&self, place: BlockRef, times: u32) -> BlockRef {
        let of = &self.plan.buffers[place.buffer.index()];
        let by = self.rotation.buffers[place.buffer.index()].blocks;
        BlockRef {
            buffer: place.buffer,
            rank: self.rank(place.rank, times),
            block: turned(place.block, by, times, of.blocks),
        }
    }

    /// How far the position of a piece in its block moves: the same in all buffers of the caller.
    pub fn position(&self) -> u32 {
        let users = self.plan.buffers.iter().zip(&self.rotation.buffers);
        users
            .filter(|(buffer, _)| buffer.role != Role::Scratch)
            .map(|(_, turn)| turn.cells)
            .next()
            .unwrap_or(0)
    }

    /// The entry of `Plan::readers` by which a block reads a channel.
    pub(crate) fn end(&self, channel: ChannelId, reader: BlockId) -> Option<usize> {
        let range = self.plan.channels.get(channel.index())?.readers.clone();
        range.into_iter().map(|at| at as usize).find(|&at| self.plan.readers.get(at) == Some(&reader))
    }

    /// Why σ does not fit the plan, if it does not: all that `verify` has no rule for where nothing is folded. Total on any
    /// data; what it passes may be indexed freely as far as folding goes.
    pub fn misfit(&self) -> Option<String> {
        let (plan, rotation) = (&self.plan, &self.rotation);
        let (ranks, step, k) = (plan.header.ranks, rotation.step, plan.header.cells);
        if step == 0 || ranks == 0 || k == 0 || !ranks.is_multiple_of(step) {
            return Some(format!("a rotation by {step} ranks does not divide {ranks} ranks"));
        }
        if rotation.buffers.len() != plan.buffers.len() {
            return Some(format!("{} turns for {} buffers", rotation.buffers.len(), plan.buffers.len()));
        }
        if self.times.len() != plan.readers.len() {
            return Some(format!("{} turns for {} readers", self.times.len(), plan.readers.len()));
        }
        if plan.header.scratch_cells.len() != step as usize {
            return Some(format!(
                "`scratch_cells` has {} entries for {step} ranks",
                plan.header.scratch_cells.len()
            ));
        }
        let order = u64::from(self.order());
        let position = self.position();
        for (at, (buffer, turn)) in plan.buffers.iter().zip(&rotation.buffers).enumerate() {
            let back = |by: u32, count: u32| {
                (by == 0 || by < count) && (u64::from(by) * order).is_multiple_of(u64::from(count.max(1)))
            };
            if u64::from(buffer.blocks) * u64::from(k) > u64::from(u32::MAX) {
                return Some(format!("the cells of buffer {at} cannot be counted in 32 bits"));
            }
            if buffer.at != Presence::All {
                return Some(format!("buffer {at} is not at all ranks"));
            }
            let scratch = buffer.role == Role::Scratch;
            let right = match scratch {
                true => *turn == Turn::default(),
                false => turn.cells == position && back(turn.cells, k) && back(turn.blocks, buffer.blocks),
            };
            if !right {
                return Some(format!("the turn of buffer {at} does not come back to where it was"));
            }
        }
        if !crate::roll::in_order(plan) {
            return Some("its tables are not in order".to_string());
        }
        self.stray_index().or_else(|| self.stray_reader()).or_else(|| self.cut_run())
    }

    /// Something that lies outside the standing ranks, or outside its table.
    fn stray_index(&self) -> Option<String> {
        let plan = &self.plan;
        let step = self.rotation.step;
        let (steps, blocks) = (plan.steps.len() as u64, plan.blocks.len());
        let within = |start: u32, count: u64, len: usize| u64::from(start) + count <= len as u64;
        if let Some(block) = plan.blocks.iter().find(|block| block.rank.0 >= step) {
            return Some(format!("there is a block of rank {}", block.rank.0));
        }
        if plan.overlaps.iter().any(|overlap| overlap.rank.0 >= step) {
            return Some("an overlap lies at a rank that does not stand for others".to_string());
        }
        if plan.promise.clauses.iter().any(|clause| clause.place.rank.0 >= step) {
            return Some("a clause speaks of a rank that does not stand for others".to_string());
        }
        let stray = |block: &BlockRef| {
            block.buffer.index() >= plan.buffers.len() || block.rank.0 >= plan.header.ranks
        };
        if plan
            .promise
            .clauses
            .iter()
            .map(|clause| &clause.place)
            .chain(plan.promise.lists.iter().flatten())
            .any(stray)
        {
            return Some("the promise names a buffer or a rank that is not there".to_string());
        }
        if plan.blocks.iter().any(|b| u64::from(b.prologue.end.max(b.body.end).max(b.epilogue.end)) > steps) {
            return Some("a block ends behind the last step".to_string());
        }
        if plan.blocks.iter().any(|block| block.prologue.start > block.epilogue.end) {
            return Some("a block ends before it begins".to_string());
        }
        let channel = |channel: &crate::plan::Channel| {
            channel.writer.index() < blocks
                && channel.readers.start < channel.readers.end
                && channel.readers.end as usize <= plan.readers.len()
        };
        if !plan.channels.iter().all(channel) || plan.readers.iter().any(|reader| reader.index() >= blocks) {
            return Some("a channel has an end at no block".to_string());
        }
        let order = self.order();
        if self.times.iter().any(|&times| times >= order) {
            return Some("a reader is taken round more often than there are turns".to_string());
        }
        for step in &plan.steps {
            let count = u64::from(step.sources) + u64::from(step.destinations);
            if !within(step.operands, count, plan.operands.len())
                || !within(step.waits, step.wait_count.into(), plan.waits.len())
            {
                return Some("a step has operands or waits outside their tables".to_string());
            }
        }
        if plan.waits.iter().any(|wait| u64::from(wait.0) >= steps) {
            return Some("a wait names no step".to_string());
        }
        let stray = plan.operands.iter().find_map(|operand| match *operand {
            Operand::Channel(channel) if channel.index() >= plan.channels.len() => Some("names no channel"),
            Operand::Local { buffer, .. } if buffer.index() >= plan.buffers.len() => Some("names no buffer"),
            Operand::Peer { .. } => Some("reaches into another rank's memory, which a folded plan does not"),
            _ => None,
        });
        stray
            .or((!plan.witnesses.is_empty()).then_some("has a witness"))
            .map(|what| format!("an operand {what}"))
    }

    /// A channel of which one block reads two of an orbit, or which has two readers at one rank.
    fn stray_reader(&self) -> Option<String> {
        let plan = &self.plan;
        plan.channels.iter().enumerate().find_map(|(at, channel)| {
            let readers = plan.readers(channel);
            let blocks: BTreeSet<BlockId> = readers.iter().copied().collect();
            let times = &self.times[channel.readers.start as usize..channel.readers.end as usize];
            let ranks: BTreeSet<(RankId, u32)> = readers
                .iter()
                .zip(times)
                .map(|(reader, &times)| (plan.blocks[reader.index()].rank, times))
                .collect();
            (blocks.len() < readers.len() || ranks.len() < readers.len())
                .then(|| format!("channel {at} has two readers that are one, taken round"))
        })
    }

    /// A run of cells that is no run once it is taken round.
    fn cut_run(&self) -> Option<String> {
        let plan = &self.plan;
        let k = plan.header.cells;
        for step in plan.steps.iter().filter(|step| step.width > 1) {
            for operand in plan.src(step).iter().chain(plan.dst(step)) {
                let Operand::Local { buffer, cell } = *operand else { continue };
                let (of, turn) = (&plan.buffers[buffer.index()], self.rotation.buffers[buffer.index()]);
                if of.role == Role::Scratch {
                    continue;
                }
                if !stays_whole(cell, step.width, k, of.blocks, turn) {
                    return Some(format!(
                        "cells {cell}..{} of buffer {} are cut",
                        u64::from(cell) + u64::from(step.width),
                        buffer.0
                    ));
                }
            }
        }
        let stray = |overlap: &Overlap| {
            [overlap.left, overlap.right].iter().any(|buffer| buffer.index() >= plan.buffers.len())
                || self.overlap(*overlap, 0).is_none()
        };
        let found = plan.overlaps.iter().position(stray);
        found.map(|at| format!("overlap {at} is cut"))
    }

    /// An overlap, taken round: whole blocks, of which positions go round within each; or a run that is one everywhere.
    pub(crate) fn overlap(&self, overlap: Overlap, times: u32) -> Option<Overlap> {
        let k = self.plan.header.cells;
        let Overlap { left, left_cell, right, right_cell, cells, .. } = overlap;
        let of = |buffer: BufferId| {
            (self.plan.buffers[buffer.index()].blocks, self.rotation.buffers[buffer.index()])
        };
        let whole = |cell: u32| cell.is_multiple_of(k) && cells.is_multiple_of(k);
        let side = |buffer: BufferId, cell: u32| {
            let (blocks, turn) = of(buffer);
            match whole(cell) {
                true => {
                    let still = Turn { cells: 0, ..turn };
                    let stays = stays_whole(cell, cells, k, blocks, still);
                    stays.then(|| turned(cell / k, turn.blocks, times, blocks) * k)
                }
                false => stays_whole(cell, cells, k, blocks, turn).then(|| self.cell(buffer, cell, times)),
            }
        };
        let all = |(blocks, _): (u32, Turn)| u64::from(cells) == u64::from(blocks) * u64::from(k);
        let both =
            (left_cell, right_cell) == (0, 0) && all(of(left)) && all(of(right)) && of(left) == of(right);
        let (left_cell, right_cell) = match both {
            true => (0, 0),
            false => (side(left, left_cell)?, side(right, right_cell)?),
        };
        Some(Overlap { rank: self.rank(overlap.rank, times), left_cell, right_cell, ..overlap })
    }
}

/// Whether a run of cells is one run wherever it is taken: whole parts of the circle that goes round, or within one of them.
pub(crate) fn stays_whole(cell: u32, width: u32, k: u32, blocks: u32, turn: Turn) -> bool {
    let inside = |first: u32, len: u64, by: u32, count: u32| {
        let part = gcd(by, count);
        by == 0 || u64::from(first % part) + len <= u64::from(part)
    };
    let position = cell % k;
    let end = u64::from(position) + u64::from(width);
    let over = end.div_ceil(u64::from(k));
    // Over several blocks no position may move.
    (if over == 1 { inside(position, width.into(), turn.cells, k) } else { turn.cells == 0 })
        && (over == 1 || inside(cell / k, over, turn.blocks, blocks))
}

/// `value`, moved `times` times by `by` in the circle of `size`.
pub(crate) fn turned(value: u32, by: u32, times: u32, size: u32) -> u32 {
    if by == 0 || size == 0 {
        return value;
    }
    ((u64::from(value) + u64::from(by) * u64::from(times)) % u64::from(size)) as u32
}

fn gcd(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
