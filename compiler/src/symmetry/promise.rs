//! The promise to the ranks that stand for all, and the overlaps of send and receive memory there.
//!
//! In: a checked collective with its frame open, and how its variables go round. Out: clauses for standing ranks only,
//! with their whole operand lists; a reduce-scatter over n ranks is n clauses of n operands, of which one is made. As for
//! moves, the first variable that goes round takes only its first values, and what comes out is taken home.

use std::sync::Arc;

use plan::collective::{BlockRef, Clause, Promise};
use plan::ids::{BufferId, RankId};
use rustc_hash::FxHashMap;

use super::action::{Action, Within};
use super::env::Answer;
use super::refusal::{Refusal, Why};
use crate::check::checked::{Collective, Ensures, EnsuresKind, Equals, Loops, Place, Ranks, Slot, Source};
use crate::elaborate::FaultKind;
use crate::elaborate::halt::{Halt, Res};
use crate::elaborate::loops;
use crate::elaborate::machine::Machine;
use crate::elaborate::promise::region;
use crate::trace::{BufferKind, Inplace, Place as CellPlace, Trace};

/// Evaluates all `ensures` for the standing ranks. `turns` says, for each of them, how its variables go round.
pub(super) fn promise<'p>(
    machine: &mut Machine<'p>,
    collective: &'p Collective,
    trace: &mut Trace,
    action: &Action,
    turns: &[Vec<i64>],
    limit: u64,
) -> Res<()> {
    let mut maker = Maker {
        collective,
        trace,
        promise: Promise::default(),
        action,
        limit,
        stored: 0,
        known: FxHashMap::default(),
        lists: Vec::new(),
    };
    for (ensures, turns) in collective.ensures.iter().zip(turns) {
        match &ensures.kind {
            EnsuresKind::Synchronised => maker.promise.synchronised = true,
            EnsuresKind::Equals(equals) => {
                maker.turns(machine, ensures, equals, turns, 0, false).map_err(|h| h.within(ensures.span))?;
            }
        }
    }
    let promise = maker.promise;
    trace.promise = Arc::new(promise);
    Ok(())
}

struct Maker<'e, 'p> {
    collective: &'p Collective,
    trace: &'e mut Trace,
    promise: Promise,
    action: &'e Action,
    limit: u64,
    stored: u64,
    known: FxHashMap<Vec<BlockRef>, u32>,
    /// Operands of each block of the place at hand.
    lists: Vec<Vec<BlockRef>>,
}

impl<'p> Maker<'_, 'p> {
    fn turns(
        &mut self,
        machine: &mut Machine<'p>,
        ensures: &'p Ensures,
        equals: &'p Equals,
        turns: &[i64],
        index: usize,
        pivoted: bool,
    ) -> Res<()> {
        let Some(binder) = equals.loops.binders.get(index) else {
            let wanted = match equals.loops.filter {
                Some(filter) => machine.test(filter)?,
                None => true,
            };
            return if wanted { self.clause(machine, ensures, equals, pivoted) } else { Ok(()) };
        };
        // An `ensures` whose loops have no turn.
        let Some(&by) = turns.get(index) else { return Ok(()) };
        let (first, to) = (machine.eval(binder.from)?, machine.eval(binder.to)?);
        let step = match binder.step {
            Some(step) => machine.eval(step)?,
            None => 1,
        };
        if step < 1 {
            return Err(Halt::fault(FaultKind::LoopStep { value: step }, binder.span));
        }
        let length = if to > first { to.wrapping_sub(first) as u64 } else { 0 };
        let mut count = length.div_ceil(step as u64);
        if by != 0 && !pivoted {
            count /= u64::from(self.action.order);
        }
        machine.charge(count, 32, binder.span)?;
        for turn in 0..count {
            machine.set(binder.slot, first.wrapping_add(step.wrapping_mul(turn as i64)));
            self.turns(machine, ensures, equals, turns, index + 1, pivoted || by != 0)?;
        }
        Ok(())
    }

    fn clause(
        &mut self,
        machine: &mut Machine<'p>,
        ensures: &'p Ensures,
        equals: &'p Equals,
        pivoted: bool,
    ) -> Res<()> {
        let (block, blocks) = region(machine, self.collective, self.trace, &equals.place.region)?;
        self.value(machine, &equals.value, blocks, &equals.place)?;
        let buffer = BufferId(equals.place.region.buffer);
        for rank in ranks(machine, &equals.place.ranks, self.action.ranks)? {
            let (_, times) = self.action.home(rank);
            // What nothing takes round speaks of all ranks: of those, only the standing ones are wanted.
            if !pivoted && times != 0 {
                continue;
            }
            let back = self.action.back(times);
            for offset in 0..blocks {
                self.stored += 3 + self.lists[offset as usize].len() as u64;
                if self.stored > self.limit.saturating_mul(3) {
                    return Err(Halt::fault(FaultKind::TooManyElements { limit: self.limit }, ensures.span));
                }
                let place = self.taken(BlockRef { buffer, rank, block: block + offset }, back);
                let mut list: Vec<BlockRef> =
                    self.lists[offset as usize].iter().map(|&operand| self.taken(operand, back)).collect();
                list.sort_unstable();
                let next = self.promise.lists.len() as u32;
                let lists = &mut self.promise.lists;
                let list = *self.known.entry(list).or_insert_with_key(|list| {
                    lists.push(list.clone());
                    next
                });
                self.promise.clauses.push(Clause { place, list });
                self.trace.clause_spans.push(ensures.span);
            }
        }
        Ok(())
    }

    fn taken(&self, block: BlockRef, times: u32) -> BlockRef {
        taken(self.action, block, times)
    }

    /// The operands of a value, for each block of the place, into `lists`.
    fn value(&mut self, machine: &mut Machine<'p>, value: &'p Source, blocks: u32, to: &'p Place) -> Res<()> {
        self.lists.clear();
        self.lists.resize(blocks as usize, Vec::new());
        let span = match value {
            Source::Place(place) | Source::Gather { place, .. } => {
                self.operand(machine, place, blocks, to)?;
                place.span
            }
            Source::List { places, span } => {
                places.iter().try_for_each(|place| self.operand(machine, place, blocks, to))?;
                *span
            }
            Source::Each { loops, place, span } => {
                self.each(machine, loops, place, blocks, to)?;
                *span
            }
        };
        for list in &mut self.lists {
            list.sort_unstable();
            if list.is_empty() {
                return Err(Halt::fault(FaultKind::EmptyReduce, span));
            }
            if let Some(pair) = list.windows(2).find(|pair| pair[0] == pair[1]) {
                let name = &self.trace.buffers[pair[0].buffer.index()].name;
                let operand = format!("{name} @ {}", pair[0].rank.0);
                return Err(Halt::fault(FaultKind::RepeatedOperand { operand }, span));
            }
        }
        Ok(())
    }

    fn each(
        &mut self,
        machine: &mut Machine<'p>,
        loops: &'p Loops,
        place: &'p Place,
        blocks: u32,
        to: &'p Place,
    ) -> Res<()> {
        loops::run(machine, loops, 32, &mut |machine: &mut Machine<'p>| {
            self.operand(machine, place, blocks, to)
        })
    }

    fn operand(
        &mut self,
        machine: &mut Machine<'p>,
        place: &'p Place,
        blocks: u32,
        to: &'p Place,
    ) -> Res<()> {
        let (block, len) = region(machine, self.collective, self.trace, &place.region)?;
        if len != blocks {
            let (to_blocks, from) = (blocks.into(), len.into());
            let kind = FaultKind::UnequalRuns { to: to_blocks, from, source: place.span, blocks: true };
            return Err(Halt::fault(kind, to.span));
        }
        let buffer = BufferId(place.region.buffer);
        for rank in ranks(machine, &place.ranks, self.action.ranks)? {
            for (offset, list) in self.lists.iter_mut().enumerate() {
                if list.len() as u64 >= self.limit {
                    return Err(Halt::fault(FaultKind::TooManyElements { limit: self.limit }, place.span));
                }
                list.push(BlockRef { buffer, rank, block: block + offset as u32 });
            }
        }
        Ok(())
    }
}

/// A block, taken round.
pub(super) fn taken(action: &Action, block: BlockRef, times: u32) -> BlockRef {
    let width = action.buffers[block.buffer.index()].width;
    let first = CellPlace { buffer: block.buffer, rank: block.rank, cell: block.block * width };
    let place = action.start(first, times, Within::Positions);
    BlockRef { buffer: block.buffer, rank: place.rank, block: place.cell / width }
}

/// The ranks of a place of a collective.
fn ranks(machine: &mut Machine<'_>, ranks: &Ranks, total: u32) -> Res<Vec<RankId>> {
    match ranks {
        Ranks::One(id) => {
            let value = machine.eval(*id)?;
            match u32::try_from(value) {
                Ok(rank) if rank < total => Ok(vec![RankId(rank)]),
                _ => {
                    let kind = FaultKind::RankOutOfRange { value, ranks: total, end: false };
                    Err(Halt::fault(kind, machine.span(*id)))
                }
            }
        }
        Ranks::All => Ok((0..total).map(RankId).collect()),
        Ranks::Tuple(coordinates, span) => {
            let mut all = vec![0u32];
            for (level, coordinate) in coordinates.iter().enumerate() {
                let size = machine.get(Slot(1 + level as u32)) as u32;
                let values = match coordinate {
                    Some(id) => {
                        let value = machine.eval(*id)?;
                        let known = u32::try_from(value).ok().filter(|&value| value < size);
                        let kind = FaultKind::CoordinateOutOfRange { value, level: level.to_string(), size };
                        let known = known.ok_or_else(|| Halt::fault(kind, *span))?;
                        known..known + 1
                    }
                    None => 0..size,
                };
                all = all.iter().flat_map(|&rank| values.clone().map(move |i| rank * size + i)).collect();
            }
            Ok(all.into_iter().map(RankId).collect())
        }
    }
}

/// Checks that overlaps are the same at all ranks, and keeps those of the standing ones.
pub(super) fn inplace(collective: &Collective, trace: &mut Trace, action: &Action) -> Answer<()> {
    let Some(first) = collective.inplace.first() else { return Ok(()) };
    let span = first.span;
    let mut standing: Vec<Vec<Inplace>> = vec![Vec::new(); action.step as usize];
    for overlap in trace.inplace.iter().filter(|overlap| overlap.rank.0 < action.step) {
        standing[overlap.rank.index()].push(*overlap);
    }
    let mut next = vec![0usize; action.ranks as usize];
    let alike = trace.inplace.iter().all(|overlap| {
        let (home, times) = action.home(overlap.rank);
        let at = &mut next[overlap.rank.index()];
        *at += 1;
        standing[home.index()].get(*at - 1).is_some_and(|first| same(trace, action, first, overlap, times))
    });
    let complete = (0..action.ranks).all(|rank| {
        let (home, _) = action.home(RankId(rank));
        next[rank as usize] == standing[home.index()].len()
    });
    if !alike || !complete {
        return Err(Refusal { span, why: Why::Inplace });
    }
    trace.inplace = standing.into_iter().flatten().collect();
    Ok(())
}

/// Whether an overlap is one of a standing rank, taken round.
fn same(trace: &Trace, action: &Action, home: &Inplace, overlap: &Inplace, times: u32) -> bool {
    if (home.left, home.right, home.cells) != (overlap.left, overlap.right, overlap.cells) {
        return false;
    }
    let turn = |buffer: BufferId| action.buffers[buffer.index()];
    let (left, right) = (turn(home.left), turn(home.right));
    // Positions of all the caller's buffers go round alike; so must, in a run of blocks, the blocks.
    if home.cells != trace.cells {
        let whole = (left.count * left.width, right.count * right.width) == (home.cells, home.cells);
        let still = (left.blocks, right.blocks) == (0, 0);
        if !(still || whole && left.blocks == right.blocks) {
            return false;
        }
        return (home.left_cell, home.right_cell) == (overlap.left_cell, overlap.right_cell);
    }
    let taken = |buffer, cell| {
        action.start(CellPlace { buffer, rank: home.rank, cell }, times, Within::Positions).cell
    };
    debug_assert!(trace.buffers[home.left.index()].kind != BufferKind::Scratch);
    (taken(home.left, home.left_cell), taken(home.right, home.right_cell))
        == (overlap.left_cell, overlap.right_cell)
}
