//! One move: its places evaluated, checked, and appended.
//!
//! In: `checked::Move`. Out: `trace::Move`s in own chunks. Every number that names a rank, a chunk or a block is
//! checked here, where the values of the loop variables are at hand.

use grammar::ast::MoveOp;
use grammar::span::Span;

use super::body::{Walker, place};
use super::error::FaultKind;
use super::halt::{Halt, Res};
use super::loops::{self, Host};
use crate::check::SIGNAL;
use crate::check::checked::{self, Cut, ExprId, Ranks, Region, Source};
use crate::trace::{self, MoveKind, OriginId};
use plan::ids::RankId;
use plan::plan::Presence;

/// Operands of one reduction: a step of the plan counts them in 16 bits. They cannot be spread over several steps,
/// since a reduction rounds once.
const MOST_OPERANDS: usize = u16::MAX as usize;

/// A range of own chunks of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub buffer: u32,
    pub cell: u32,
    pub len: u32,
}

impl<'p> Walker<'_, 'p> {
    /// A move.
    pub(crate) fn move_(&mut self, mv: &'p checked::Move) -> Res<()> {
        self.move_within(mv).map_err(|halt| halt.within(mv.span))
    }

    #[inline]
    fn move_within(&mut self, mv: &'p checked::Move) -> Res<()> {
        match &mv.from {
            Source::Place(from) if mv.to.ranks.many() => self.multicast(mv, from),
            Source::Place(from) => self.copy(mv, from),
            Source::Each { loops, place, .. } => {
                let (to, rank) = self.spot(&mv.to)?;
                let first = self.out.sources.len() as u32;
                let cost = self.place_cost(place);
                loops::run(self, loops, cost, &mut |walker: &mut Self| walker.operand(mv, to, place))?;
                self.reduce(mv, MoveKind::Reduce, to, rank, first)
            }
            Source::List { places, .. } => {
                let (to, rank) = self.spot(&mv.to)?;
                let first = self.out.sources.len() as u32;
                for place in places {
                    self.operand(mv, to, place)?;
                }
                self.reduce(mv, MoveKind::Reduce, to, rank, first)
            }
            Source::Gather { place: from, .. } => {
                let (to, rank) = self.spot(&mv.to)?;
                let first = self.out.sources.len() as u32;
                let run = self.region(&from.region)?;
                self.equal(mv, to, run, from.span)?;
                self.list_ranks(&from.ranks)?;
                self.room(self.rank_list.len() as u64, mv.span)?;
                for i in 0..self.rank_list.len() {
                    let rank = self.rank_list[i];
                    self.present(run.buffer, rank, &from.region)?;
                    self.out.sources.push(place(run.buffer, rank, run.cell));
                }
                self.reduce(mv, MoveKind::GatherReduce, to, rank, first)
            }
        }
    }

    #[inline]
    fn copy(&mut self, mv: &'p checked::Move, from: &'p checked::Place) -> Res<()> {
        let (to, to_rank) = self.spot(&mv.to)?;
        let (source, rank) = self.spot(from)?;
        self.equal(mv, to, source, from.span)?;
        if to.len == 0 {
            return Ok(());
        }
        let combine = mv.op == MoveOp::Combine;
        if to_rank == rank && to.buffer == source.buffer {
            self.apart(mv, to, source, rank, combine)?;
        }
        self.room(1, mv.span)?;
        let kind = if combine { MoveKind::Combine } else { MoveKind::Copy };
        let first = self.out.sources.len() as u32;
        self.out.sources.push(place(source.buffer, rank, source.cell));
        self.append(mv, kind, to, to_rank, first, 0)
    }

    fn multicast(&mut self, mv: &'p checked::Move, from: &'p checked::Place) -> Res<()> {
        let to = self.region(&mv.to.region)?;
        let (source, rank) = self.spot(from)?;
        self.equal(mv, to, source, from.span)?;
        self.list_ranks(&mv.to.ranks)?;
        if to.len == 0 {
            return Ok(());
        }
        self.room(self.rank_list.len() as u64, mv.span)?;
        // All copies are one transfer: they read before any of them writes.
        let mut step = self.step;
        if step == 0 {
            self.out.steps += 1;
            step = self.out.steps;
        }
        for i in 0..self.rank_list.len() {
            let to_rank = self.rank_list[i];
            self.present(to.buffer, to_rank, &mv.to.region)?;
            if to_rank == rank && to.buffer == source.buffer {
                if to == source {
                    continue;
                }
                self.apart(mv, to, source, rank, false)?;
            }
            let first = self.out.sources.len() as u32;
            self.out.sources.push(place(source.buffer, rank, source.cell));
            self.append(mv, MoveKind::Multicast, to, to_rank, first, step)?;
        }
        Ok(())
    }

    fn operand(&mut self, mv: &'p checked::Move, to: Run, from: &'p checked::Place) -> Res<()> {
        let (source, rank) = self.spot(from)?;
        self.equal(mv, to, source, from.span)?;
        self.room(1, mv.span)?;
        self.out.sources.push(place(source.buffer, rank, source.cell));
        Ok(())
    }

    /// Ends a reduction whose operands are appended.
    fn reduce(&mut self, mv: &'p checked::Move, kind: MoveKind, to: Run, rank: u32, first: u32) -> Res<()> {
        let count = self.out.sources.len() - first as usize;
        if to.len == 0 {
            self.out.sources.truncate(first as usize);
            return Ok(());
        }
        if count == 0 {
            return Err(Halt::fault(FaultKind::EmptyReduce, mv.span));
        }
        if count > MOST_OPERANDS {
            let (count, limit) = (count as u64, MOST_OPERANDS as u64);
            return Err(Halt::fault(FaultKind::ManyOperands { count, limit }, mv.span));
        }
        for i in first as usize..self.out.sources.len() {
            let source = self.out.sources[i];
            if source.rank.0 == rank && source.buffer.0 == to.buffer {
                let run = Run { buffer: to.buffer, cell: source.cell, len: to.len };
                // A place may take part in its own reduction; alone (a world of one rank), it is what it was.
                if run != to {
                    self.apart(mv, to, run, rank, false)?;
                } else if count == 1 {
                    self.out.sources.truncate(first as usize);
                    return Ok(());
                }
            }
        }
        self.append(mv, kind, to, rank, first, 0)
    }

    #[inline]
    fn append(
        &mut self,
        mv: &checked::Move,
        kind: MoveKind,
        to: Run,
        rank: u32,
        first_source: u32,
        step: u32,
    ) -> Res<()> {
        let to_place = place(to.buffer, rank, to.cell);
        let origin = OriginId(mv.site);
        let new = trace::Move {
            kind,
            to: to_place,
            first_source,
            source_count: 1,
            width: to.len,
            lane: self.lane,
            step,
            origin,
        };
        self.push(new, mv.span)
    }

    /// Refuses sides of different lengths.
    #[inline]
    fn equal(&mut self, mv: &checked::Move, to: Run, source: Run, span: Span) -> Res<()> {
        if to.len == source.len {
            return Ok(());
        }
        let chunks = self.out.chunks;
        let blocks = to.len.is_multiple_of(chunks) && source.len.is_multiple_of(chunks);
        let unit = u64::from(if blocks { chunks } else { 1 });
        let (to, from) = (u64::from(to.len) / unit, u64::from(source.len) / unit);
        Err(Halt::fault(FaultKind::UnequalRuns { to, from, source: span, blocks }, mv.to.span))
    }

    /// Refuses a source and a destination of one buffer at one rank that are the same or overlap.
    fn apart(&mut self, mv: &checked::Move, to: Run, source: Run, rank: u32, combine: bool) -> Res<()> {
        if to == source {
            let place = self.describe(to, rank);
            return Err(Halt::fault(FaultKind::SelfMove { combine, place }, mv.span));
        }
        if to.cell < source.cell + source.len && source.cell < to.cell + to.len {
            let (to, from) = (self.describe(to, rank), self.describe(source, rank));
            return Err(Halt::fault(FaultKind::Overlap { to, from }, mv.span));
        }
        Ok(())
    }

    /// A range as a user would write it.
    #[cold]
    pub(crate) fn describe(&self, run: Run, rank: u32) -> String {
        let chunks = self.out.chunks;
        let many = self.extents[run.buffer as usize].blocks != 1;
        let name = self.buffer_name(run.buffer);
        let range = |from: u32, len: u32| {
            if len == 1 { format!("[{from}]") } else { format!("[{from}..{}]", from + len) }
        };
        let inside = run.cell % chunks;
        let index = if run.len == self.extents[run.buffer as usize].cells {
            String::new()
        } else if !many {
            range(run.cell, run.len)
        } else if inside == 0 && run.len.is_multiple_of(chunks) {
            range(run.cell / chunks, run.len / chunks)
        } else {
            format!("[{}]{}", run.cell / chunks, range(inside, run.len))
        };
        format!("{name}{index} @ {rank}")
    }

    /// A buffer's name.
    pub(crate) fn buffer_name(&self, buffer: u32) -> String {
        let collective = self.engine.program.collective(self.algorithm.collective);
        let index = buffer as usize;
        let scratch = index.checked_sub(collective.buffers.len()).and_then(|i| self.algorithm.scratch.get(i));
        match (collective.buffers.get(index), scratch) {
            (Some(buffer), _) => buffer.name.clone(),
            (None, Some(scratch)) => scratch.name.clone(),
            (None, None) => "signal".to_owned(),
        }
    }

    /// Where a buffer is declared.
    pub(crate) fn buffer_span(&self, buffer: u32) -> Span {
        let collective = self.engine.program.collective(self.algorithm.collective);
        let index = buffer as usize;
        let scratch = index.checked_sub(collective.buffers.len()).and_then(|i| self.algorithm.scratch.get(i));
        match (collective.buffers.get(index), scratch) {
            (Some(buffer), _) => buffer.span,
            (None, Some(scratch)) => scratch.span,
            (None, None) => self.algorithm.name_span,
        }
    }

    /// A place at one rank.
    #[inline]
    fn spot(&mut self, place: &'p checked::Place) -> Res<(Run, u32)> {
        let run = self.region(&place.region)?;
        let rank = self.rank(&place.ranks)?;
        self.present(run.buffer, rank, &place.region)?;
        Ok((run, rank))
    }

    #[inline]
    pub(crate) fn present(&mut self, buffer: u32, rank: u32, region: &Region) -> Res<()> {
        match self.extents[buffer as usize].at {
            Presence::One(RankId(only)) if only != rank => {
                let (name, declared) = (self.buffer_name(buffer), self.buffer_span(buffer));
                let kind = FaultKind::AbsentBuffer { buffer: name, rank, only, declared };
                Err(Halt::fault(kind, region.span))
            }
            _ => Ok(()),
        }
    }

    /// A part of a buffer, in own chunks.
    #[inline]
    pub(crate) fn region(&mut self, region: &'p Region) -> Res<Run> {
        let buffer = if region.buffer == SIGNAL { self.out.signal } else { region.buffer };
        let chunks = self.out.chunks;
        let (cell, len) = match region.cut {
            Cut::All => (0, self.extents[buffer as usize].cells),
            Cut::Chunk(chunk) => (self.chunk(buffer, chunk)?, 1),
            Cut::Chunks(from, to) => self.range(buffer, from, to, false)?,
            Cut::Block(block) => (self.block(buffer, block)? * chunks, chunks),
            Cut::Blocks(from, to) => {
                let (first, len) = self.range(buffer, from, to, true)?;
                (first * chunks, len * chunks)
            }
            Cut::BlockChunk(block, chunk) => {
                let block = self.block(buffer, block)?;
                (block * chunks + self.chunk(buffer, chunk)?, 1)
            }
            Cut::BlockChunks(block, from, to) => {
                let block = self.block(buffer, block)?;
                let (first, len) = self.range(buffer, from, to, false)?;
                (block * chunks + first, len)
            }
        };
        Ok(Run { buffer, cell, len })
    }

    #[inline]
    fn chunk(&mut self, buffer: u32, id: ExprId) -> Res<u32> {
        let value = self.machine().value(id)?;
        if (0..i64::from(self.out.chunks)).contains(&value) {
            return Ok(value as u32);
        }
        Err(self.out_of_range(buffer, value, id, false, false))
    }

    #[inline]
    fn block(&mut self, buffer: u32, id: ExprId) -> Res<u32> {
        let value = self.machine().value(id)?;
        if (0..i64::from(self.extents[buffer as usize].blocks)).contains(&value) {
            return Ok(value as u32);
        }
        Err(self.out_of_range(buffer, value, id, true, false))
    }

    /// First and length of `from..to`, in chunks of a block or in blocks.
    fn range(&mut self, buffer: u32, from: ExprId, to: ExprId, blocks: bool) -> Res<(u32, u32)> {
        let (start, end) = (self.machine().value(from)?, self.machine().value(to)?);
        let most = if blocks { self.extents[buffer as usize].blocks } else { self.out.chunks };
        if end < start {
            let span = self.machine().span(from).to(self.machine().span(to));
            return Err(Halt::fault(FaultKind::BackwardRange { from: start, to: end }, span));
        }
        if start < 0 {
            return Err(self.out_of_range(buffer, start, from, blocks, false));
        }
        if end > i64::from(most) {
            return Err(self.out_of_range(buffer, end, to, blocks, true));
        }
        Ok((start as u32, (end - start) as u32))
    }

    #[cold]
    fn out_of_range(&mut self, buffer: u32, value: i64, id: ExprId, block: bool, end: bool) -> Box<Halt> {
        let name = self.buffer_name(buffer);
        let kind = if block {
            let (blocks, declared) = (self.extents[buffer as usize].blocks, self.buffer_span(buffer));
            FaultKind::BlockOutOfRange { value, blocks, buffer: name, end, declared }
        } else {
            let (chunks, declared) = (self.out.chunks, self.out.chunks_span);
            FaultKind::ChunkOutOfRange { value, chunks, buffer: name, end, declared }
        };
        Halt::fault(kind, self.machine().span(id))
    }

    /// The one rank of a place.
    #[inline]
    pub(crate) fn rank(&mut self, ranks: &'p Ranks) -> Res<u32> {
        if let Ranks::One(id) = ranks {
            let value = self.machine().value(*id)?;
            return self.rank_of(value, *id);
        }
        self.list_ranks(ranks)?;
        // `check` made sure that it names one.
        Ok(self.rank_list.first().copied().unwrap_or(0))
    }

    #[inline]
    pub(crate) fn rank_of(&mut self, value: i64, id: ExprId) -> Res<u32> {
        if (0..i64::from(self.ranks)).contains(&value) {
            return Ok(value as u32);
        }
        let kind = FaultKind::RankOutOfRange { value, ranks: self.ranks, end: false };
        Err(Halt::fault(kind, self.machine().span(id)))
    }

    /// The ranks of a place, ascending, into `rank_list`.
    pub(crate) fn list_ranks(&mut self, ranks: &'p Ranks) -> Res<()> {
        self.rank_list.clear();
        match ranks {
            Ranks::One(id) => {
                let value = self.machine().value(*id)?;
                let rank = self.rank_of(value, *id)?;
                self.rank_list.push(rank);
            }
            Ranks::All => {
                let span = self.algorithm.name_span;
                self.engine.machine.charge(u64::from(self.ranks) / 8, 0, span)?;
                self.rank_list.extend(0..self.ranks);
            }
            Ranks::Tuple(coords, span) => {
                self.rank_list.push(0);
                for (level, coord) in coords.iter().enumerate() {
                    let size = self.shape[level];
                    match coord {
                        Some(id) => {
                            let value = self.machine().value(*id)?;
                            if !(0..i64::from(size)).contains(&value) {
                                let level = self.algorithm.level_names[level].clone();
                                let kind = FaultKind::CoordinateOutOfRange { value, level, size };
                                return Err(Halt::fault(kind, self.machine().span(*id)));
                            }
                            for rank in &mut self.rank_list {
                                *rank = *rank * size + value as u32;
                            }
                        }
                        None => {
                            let count = self.rank_list.len() as u64 * u64::from(size);
                            self.machine().charge(count / 8, 0, *span)?;
                            let wider = |&rank: &u32| (0..size).map(move |i| rank * size + i);
                            self.rank_list = self.rank_list.iter().flat_map(wider).collect();
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn place_cost(&mut self, place: &checked::Place) -> u64 {
        let exprs = place.region.exprs().chain(place.ranks.exprs());
        exprs.map(|id| self.engine.machine.cost(id)).sum()
    }
}
