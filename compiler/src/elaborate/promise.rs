//! The collective's promise and legal overlaps, for one shape.
//!
//! In: a checked collective with its frame open, the trace's buffers and cells. Out: `Trace::promise`, `clause_spans`
//! and `inplace`. The one hard idea: operand lists are interned, so that an allreduce over n ranks is n clauses and one
//! list; a right side that does not use the binders is evaluated once.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use grammar::span::Span;
use plan::collective::{BlockRef, Clause, Promise};
use plan::ids::{BufferId, RankId};
use plan::plan::Presence;
use rustc_hash::{FxHashMap, FxHasher};

use super::engine::Engine;
use super::error::FaultKind;
use super::halt::{Halt, Res};
use super::loops::{self, Host};
use super::machine::Machine;
use crate::check::checked::{
    Collective, Cut, Ensures, EnsuresKind, Equals, ExprId, Loops, Place, Ranks, Region, Slot, Source,
};
use crate::trace::{Inplace, Trace};

/// Evaluates all `ensures`.
pub(crate) fn promise<'p>(engine: &mut Engine<'p>, collective: &'p Collective, trace: &mut Trace) -> Res<()> {
    let limit = engine.limits.moves;
    let mut promiser = Promiser {
        machine: &mut engine.machine,
        collective,
        limit,
        trace,
        promise: Promise::default(),
        found: Vec::new(),
        operands: Vec::new(),
        ranks: Vec::new(),
        singles: vec![Vec::new(); collective.buffers.len()],
        longer: FxHashMap::default(),
        stored: 0,
    };
    for ensures in &collective.ensures {
        promiser.ensures(ensures).map_err(|halt| halt.within(ensures.span))?;
    }
    let promise = promiser.promise;
    trace.promise = Arc::new(promise);
    Ok(())
}

/// Evaluates all `inplace` for every rank where both sides exist.
pub(crate) fn inplace<'p>(engine: &mut Engine<'p>, collective: &'p Collective, trace: &mut Trace) -> Res<()> {
    let cells = trace.cells;
    let mut declaration = Vec::new();
    for (number, declared) in collective.inplace.iter().enumerate() {
        engine.machine.charge(trace.ranks.into(), 16, declared.span)?;
        for rank in (0..trace.ranks).map(RankId) {
            let exists = |buffer: u32| trace.buffers[buffer as usize].at.holds(rank);
            if !exists(declared.left.buffer) || !exists(declared.right.buffer) {
                continue;
            }
            engine.machine.set(Slot(0), rank.0.into());
            let (left_block, left) = region(&mut engine.machine, collective, trace, &declared.left)?;
            let (right_block, right) = region(&mut engine.machine, collective, trace, &declared.right)?;
            if left != right {
                let (to, from) = (right.into(), left.into());
                let kind = FaultKind::UnequalRuns { to, from, source: declared.left.span, blocks: true };
                return Err(Halt::fault(kind, declared.right.span).within(declared.span));
            }
            if left == 0 {
                continue;
            }
            trace.inplace.push(Inplace {
                rank,
                left: BufferId(declared.left.buffer),
                left_cell: left_block * cells,
                right: BufferId(declared.right.buffer),
                right_cell: right_block * cells,
                cells: left * cells,
            });
            declaration.push(number);
        }
    }
    // One declaration names a cell of each side once for each rank.
    if collective.inplace.len() < 2 {
        return Ok(());
    }
    let Some((one, other, kind)) = clash(trace) else { return Ok(()) };
    let [one, other] = [one, other].map(|at| collective.inplace[declaration[at]].span);
    Err(Halt::fault(kind(other), one))
}

/// Two overlaps (indices of `Trace::inplace`) that cannot be had at once: both name one cell, or they lay two buffers at
/// two distances from each other.
fn clash(trace: &Trace) -> Option<(usize, usize, impl Fn(Span) -> FaultKind)> {
    let mut order: Vec<usize> = (0..trace.inplace.len()).collect();
    let mut find = |key: &dyn Fn(&Inplace) -> (BufferId, u64), met: &dyn Fn(&Inplace, &Inplace) -> bool| {
        order.sort_by_key(|&at| (trace.inplace[at].rank, key(&trace.inplace[at]), at));
        let clashing = order.windows(2).filter(|pair| {
            let [a, b] = [pair[0], pair[1]].map(|at| &trace.inplace[at]);
            a.rank == b.rank && met(a, b)
        });
        // The clash that is declared first.
        clashing.map(|pair| (pair[0].max(pair[1]), pair[0].min(pair[1]))).min()
    };
    let left = find(&|a| (a.left, a.left_cell.into()), &|a, b| {
        a.left == b.left && b.left_cell < a.left_cell + a.cells
    });
    let right = find(&|a| (a.right, a.right_cell.into()), &|a, b| {
        a.right == b.right && b.right_cell < a.right_cell + a.cells
    });
    let distance = |a: &Inplace| i64::from(a.left_cell) - i64::from(a.right_cell);
    let apart = find(&|a| (a.left, a.right.0.into()), &|a, b| {
        (a.left, a.right) == (b.left, b.right) && distance(a) != distance(b)
    });
    let (shared, (later, earlier)) = match (left, right, apart) {
        (Some(found), ..) => (Some(trace.inplace[found.0].left), found),
        (None, Some(found), _) => (Some(trace.inplace[found.0].right), found),
        (None, None, found) => (None, found?),
    };
    let overlap = trace.inplace[later];
    let name = |buffer: BufferId| trace.buffers[buffer.index()].name.clone();
    let kind = move |other| FaultKind::InplaceClash {
        shared: shared.map(name),
        buffers: [name(overlap.left), name(overlap.right)],
        rank: overlap.rank.0,
        other,
    };
    Some((later, earlier, kind))
}

struct Promiser<'e, 'p> {
    machine: &'e mut Machine<'p>,
    collective: &'p Collective,
    /// On clauses and on stored operands.
    limit: u64,
    trace: &'e mut Trace,
    promise: Promise,
    /// The lists of the value at hand, one per block of the place.
    found: Vec<u32>,
    /// The operands of the value at hand: first block at a rank.
    operands: Vec<(BlockRef, Span)>,
    ranks: Vec<u32>,
    /// By buffer, then by rank and block: the list of that one operand, plus one. Untouched memory is never paged in.
    singles: Vec<Vec<u32>>,
    /// By hash of the content.
    longer: FxHashMap<u64, u32>,
    stored: u64,
}

impl<'p> Host<'p> for Promiser<'_, 'p> {
    #[inline]
    fn machine(&mut self) -> &mut Machine<'p> {
        self.machine
    }
}

impl<'p> Promiser<'_, 'p> {
    fn ensures(&mut self, ensures: &'p Ensures) -> Res<()> {
        let EnsuresKind::Equals(equals) = &ensures.kind else {
            self.promise.synchronised = true;
            return Ok(());
        };
        let Equals { loops, place, value, constant } = &**equals;
        if let (Source::Each { loops: inner, .. }, false) = (value, *constant) {
            let turns = loops::certain_product(self.machine, loops, inner);
            self.machine.afford(turns, ensures.span)?;
        }
        let mut known: Option<u32> = None;
        loops::run(self, loops, 32, &mut |this: &mut Self| {
            let (block, blocks) = region(this.machine, this.collective, this.trace, &place.region)?;
            if !*constant || known != Some(blocks) {
                this.value(value, blocks, place)?;
                known = Some(blocks);
            }
            this.ranks(&place.ranks)?;
            for i in 0..this.ranks.len() {
                let rank = this.ranks[i];
                this.present(place, rank)?;
                for offset in 0..blocks {
                    if this.promise.clauses.len() as u64 >= this.limit {
                        return Err(Halt::fault(
                            FaultKind::TooManyElements { limit: this.limit },
                            ensures.span,
                        ));
                    }
                    let buffer = BufferId(place.region.buffer);
                    let place = BlockRef { buffer, rank: RankId(rank), block: block + offset };
                    this.promise.clauses.push(Clause { place, list: this.found[offset as usize] });
                    this.trace.clause_spans.push(ensures.span);
                }
            }
            Ok(())
        })
    }

    /// The operand lists of a value, one per block, into `found`.
    fn value(&mut self, value: &'p Source, blocks: u32, to: &'p Place) -> Res<()> {
        self.operands.clear();
        let span = match value {
            Source::Place(place) => {
                self.operand(place, blocks, to)?;
                place.span
            }
            Source::Each { loops, place, span } => {
                self.each(loops, place, blocks, to)?;
                *span
            }
            Source::List { places, span } => {
                for place in places {
                    self.operand(place, blocks, to)?;
                }
                *span
            }
            Source::Gather { place, span } => {
                self.operand(place, blocks, to)?;
                *span
            }
        };
        if self.operands.is_empty() && blocks > 0 {
            return Err(Halt::fault(FaultKind::EmptyReduce, span));
        }
        self.found.clear();
        for offset in 0..blocks {
            let list = self.intern(offset, span)?;
            self.found.push(list);
        }
        Ok(())
    }

    fn each(&mut self, loops: &'p Loops, place: &'p Place, blocks: u32, to: &'p Place) -> Res<()> {
        loops::run(self, loops, 32, &mut |this: &mut Self| this.operand(place, blocks, to))
    }

    fn operand(&mut self, place: &'p Place, blocks: u32, to: &'p Place) -> Res<()> {
        let (block, len) = region(self.machine, self.collective, self.trace, &place.region)?;
        if len != blocks {
            let kind = FaultKind::UnequalRuns {
                to: blocks.into(),
                from: len.into(),
                source: place.span,
                blocks: true,
            };
            return Err(Halt::fault(kind, to.span));
        }
        self.ranks(&place.ranks)?;
        for i in 0..self.ranks.len() {
            let rank = self.ranks[i];
            self.present(place, rank)?;
            if self.operands.len() as u64 >= self.limit {
                return Err(Halt::fault(FaultKind::TooManyElements { limit: self.limit }, place.span));
            }
            let buffer = BufferId(place.region.buffer);
            self.operands.push((BlockRef { buffer, rank: RankId(rank), block }, place.span));
        }
        Ok(())
    }

    /// The list of the operands at hand, each `offset` blocks on.
    fn intern(&mut self, offset: u32, span: Span) -> Res<u32> {
        let at = |block: BlockRef| BlockRef { block: block.block + offset, ..block };
        if let [(only, _)] = self.operands[..] {
            let only = at(only);
            let next = self.promise.lists.len() as u32;
            let buffer = &self.trace.buffers[only.buffer.index()];
            let singles = &mut self.singles[only.buffer.index()];
            if singles.is_empty() {
                // Within the limit on places, which the trace has passed.
                *singles = vec![0; buffer.blocks as usize * self.trace.ranks as usize];
            }
            let known = &mut singles[only.rank.index() * buffer.blocks as usize + only.block as usize];
            if *known != 0 {
                return Ok(*known - 1);
            }
            *known = next + 1;
            self.store(vec![only], span)?;
            return Ok(next);
        }
        let mut list: Vec<BlockRef> = self.operands.iter().map(|&(block, _)| at(block)).collect();
        if !list.is_sorted() {
            list.sort_unstable();
        }
        if let Some(pair) = list.windows(2).find(|pair| pair[0] == pair[1]) {
            let twice = pair[0];
            let last = self.operands.iter().rev().find(|(block, _)| at(*block) == twice);
            let buffer = &self.trace.buffers[twice.buffer.index()];
            let index = if buffer.blocks == 1 { String::new() } else { format!("[{}]", twice.block) };
            let operand = format!("{}{index} @ {}", buffer.name, twice.rank.0);
            return Err(Halt::fault(
                FaultKind::RepeatedOperand { operand },
                last.map_or(span, |&(_, span)| span),
            ));
        }
        let mut hasher = FxHasher::default();
        for block in &list {
            (block.buffer.0, block.rank.0, block.block).hash(&mut hasher);
        }
        let next = self.promise.lists.len() as u32;
        let known = *self.longer.entry(hasher.finish()).or_insert(next);
        if known != next && self.promise.lists[known as usize] == list {
            return Ok(known);
        }
        self.store(list, span)?;
        Ok(next)
    }

    fn store(&mut self, list: Vec<BlockRef>, span: Span) -> Res<()> {
        // A list costs its header too.
        self.stored += 2 + list.len() as u64;
        if self.stored > self.limit.saturating_mul(3) {
            return Err(Halt::fault(FaultKind::TooManyElements { limit: self.limit }, span));
        }
        self.promise.lists.push(list);
        Ok(())
    }

    /// The ranks of a place, ascending.
    fn ranks(&mut self, ranks: &'p Ranks) -> Res<()> {
        self.ranks.clear();
        let total = self.trace.ranks;
        match ranks {
            Ranks::One(id) => {
                let rank = rank(self.machine, *id, total)?;
                self.ranks.push(rank);
            }
            Ranks::All => {
                self.machine.charge(u64::from(total) / 8, 0, self.collective.name_span)?;
                self.ranks.extend(0..total);
            }
            Ranks::Tuple(coords, span) => {
                self.ranks.push(0);
                for (level, coord) in coords.iter().enumerate() {
                    // A collective of several levels has those of the algorithm (`check`).
                    let size = self.machine.get(Slot(1 + level as u32)) as u32;
                    match coord {
                        Some(id) => {
                            let value = self.machine.eval(*id)?;
                            if !(0..i64::from(size)).contains(&value) {
                                let level = self.collective.level_names[level].clone();
                                let kind = FaultKind::CoordinateOutOfRange { value, level, size };
                                return Err(Halt::fault(kind, self.machine.span(*id)));
                            }
                            for rank in &mut self.ranks {
                                *rank = *rank * size + value as u32;
                            }
                        }
                        None => {
                            self.machine.charge(self.ranks.len() as u64 * u64::from(size) / 8, 0, *span)?;
                            let wider = |&rank: &u32| (0..size).map(move |i| rank * size + i);
                            self.ranks = self.ranks.iter().flat_map(wider).collect();
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn present(&mut self, place: &Place, rank: u32) -> Res<()> {
        let buffer = &self.trace.buffers[place.region.buffer as usize];
        match buffer.at {
            Presence::One(RankId(only)) if only != rank => {
                let (buffer, declared) = (buffer.name.clone(), buffer.span);
                let kind = FaultKind::AbsentBuffer { buffer, rank, only, declared };
                Err(Halt::fault(kind, place.span))
            }
            _ => Ok(()),
        }
    }
}

fn rank(machine: &mut Machine<'_>, id: ExprId, ranks: u32) -> Res<u32> {
    let value = machine.eval(id)?;
    if (0..i64::from(ranks)).contains(&value) {
        return Ok(value as u32);
    }
    Err(Halt::fault(FaultKind::RankOutOfRange { value, ranks, end: false }, machine.span(id)))
}

/// First block and number of blocks of a region of the collective.
pub(crate) fn region(
    machine: &mut Machine<'_>,
    collective: &Collective,
    trace: &Trace,
    region: &Region,
) -> Res<(u32, u32)> {
    let blocks = trace.buffers[region.buffer as usize].blocks;
    let declared = &collective.buffers[region.buffer as usize];
    let out = |machine: &Machine<'_>, value: i64, id: ExprId, end: bool| {
        let (buffer, declared) = (declared.name.clone(), declared.span);
        Halt::fault(FaultKind::BlockOutOfRange { value, blocks, buffer, end, declared }, machine.span(id))
    };
    match region.cut {
        Cut::Block(id) => {
            let value = machine.eval(id)?;
            if (0..i64::from(blocks)).contains(&value) {
                Ok((value as u32, 1))
            } else {
                Err(out(machine, value, id, false))
            }
        }
        Cut::Blocks(from, to) => {
            let (start, end) = (machine.eval(from)?, machine.eval(to)?);
            if end < start {
                let span = machine.span(from).to(machine.span(to));
                Err(Halt::fault(FaultKind::BackwardRange { from: start, to: end }, span))
            } else if start < 0 {
                Err(out(machine, start, from, false))
            } else if end > i64::from(blocks) {
                Err(out(machine, end, to, true))
            } else {
                Ok((start as u32, (end - start) as u32))
            }
        }
        // `check` allows no chunks in a collective.
        _ => Ok((0, blocks)),
    }
}
