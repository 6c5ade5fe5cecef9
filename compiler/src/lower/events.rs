//! The walk over the trace: moves to cell moves, cell moves to events.
//!
//! In: trace, graph, memory. Out: all [`Events`], unordered. The order of the walk is a valid execution with one
//! slot per channel: outside `step` blocks that of `rounds`, each send followed at once by its receive; inside, the
//! order that `step_block` finds.

use plan::ids::{RankId, SpanId};
use plan::plan::{ChannelKind, Operand};

use super::buffers::{Finished, Memory, block_cells};
use super::emit::{Access, Events, Source};
use super::rounds::rounds;
use super::spans::Spans;
use super::step_block;
use crate::graph::{ChunkGraph, VersionId, arity};
use crate::trace::{BufferKind, Move, MoveId, MoveKind, Place, Trace};

/// What the walk reads.
pub(super) struct Walk<'a> {
    pub(super) trace: &'a Trace,
    pub(super) graph: &'a ChunkGraph,
    pub(super) memory: &'a Memory,
    pub(super) finished: &'a Finished,
    pub(super) spans: &'a Spans,
}

/// One cell of a move.
#[derive(Debug, Clone, Copy)]
pub(super) struct CellMove {
    pub(super) id: MoveId,
    pub(super) offset: u32,
}

/// All events of a trace.
pub(super) fn collect(
    trace: &Trace,
    graph: &ChunkGraph,
    memory: &Memory,
    finished: &Finished,
    spans: &Spans,
) -> Events {
    let walk = Walk { trace, graph, memory, finished, spans };
    let mut events = Events::new(trace.ranks, graph.places.len(), memory.scratch);
    let mut scratch = step_block::Scratch::new(graph.places.len());
    let mut sources = Vec::new();
    for group in rounds(&walk) {
        let first = MoveId(group.start as u32);
        if group.len() == 1 && !walk.overlaps_itself(walk.mv(first)) {
            for cell in walk.cells(first) {
                walk.whole(cell, &mut events, &mut sources);
            }
        } else {
            step_block::emit(&walk, group, &mut events, &mut scratch);
        }
    }
    walk.untouched_exits(&mut events);
    events
}

impl Walk<'_> {
    /// Whether some cell is read that an earlier cell of the same move writes. The language forbids it; a trace made by
    /// hand may do it, and means that all is read first.
    fn overlaps_itself(&self, mv: &Move) -> bool {
        self.trace.sources(mv).iter().any(|source| {
            let apart = source.cell.abs_diff(mv.to.cell);
            source.buffer == mv.to.buffer && source.rank == mv.to.rank && apart > 0 && apart < mv.width
        })
    }

    /// The cell moves of a move; a copy of a place to itself does nothing.
    pub(super) fn cells(&self, id: MoveId) -> impl Iterator<Item = CellMove> + use<> {
        let mv = self.mv(id);
        let copies = matches!(mv.kind, MoveKind::Copy | MoveKind::Multicast);
        let idle = copies && self.trace.sources(mv) == [mv.to];
        let width = if idle { 0 } else { mv.width };
        (0..width).map(move |offset| CellMove { id, offset })
    }

    /// A cell move from its first send to its write.
    pub(super) fn whole(&self, cell: CellMove, events: &mut Events, sources: &mut Vec<Source>) {
        sources.clear();
        self.read_destination(cell, events, sources);
        for operand in 0..self.mv(cell.id).source_count {
            let access = self.source(cell, operand, events);
            let source = self.fetch(cell, access, sources, events);
            sources.push(source);
        }
        self.write(cell, sources, events);
    }

    /// Brings a source to where the cell is written: itself if it lies there, else a message.
    pub(super) fn fetch(
        &self,
        cell: CellMove,
        from: Access,
        so_far: &[Source],
        events: &mut Events,
    ) -> Source {
        let to = self.mv(cell.id).to;
        let signal = self.is_signal(to);
        if from.rank == to.rank {
            return Source::Local(from);
        }
        let kind = if signal { ChannelKind::Counter } else { ChannelKind::Slots };
        let same_pair = |source: &&Source| match source {
            Source::Message { link, .. } => events.links[link.index()].from == from.rank,
            Source::Local(_) => false,
        };
        let lane = so_far.iter().filter(same_pair).count() as u32;
        let link = events.link(from.rank, to.rank, lane, kind);
        let send = events.send(from, link, self.span(cell.id));
        Source::Message { link, send }
    }

    /// The old value of the destination, where the move combines with it.
    pub(super) fn read_destination(&self, cell: CellMove, events: &mut Events, sources: &mut Vec<Source>) {
        let mv = self.mv(cell.id);
        if mv.kind == MoveKind::Combine {
            let version = self.reads(cell)[0];
            let access = self.read_access(shift(mv.to, cell.offset), version, events);
            sources.push(Source::Local(access));
        }
    }

    /// A source of a cell move as it is read.
    pub(super) fn source(&self, cell: CellMove, operand: u32, events: &mut Events) -> Access {
        let mv = self.mv(cell.id);
        let place = shift(self.trace.sources(mv)[operand as usize], cell.offset);
        // Combines and signals read their destination first.
        let reads = self.reads(cell);
        let version = reads[reads.len() - mv.source_count as usize + operand as usize];
        self.read_access(place, version, events)
    }

    /// The event that writes a cell.
    pub(super) fn write(&self, cell: CellMove, sources: &[Source], events: &mut Events) {
        let mv = self.mv(cell.id);
        let place = shift(mv.to, cell.offset);
        let operand = match self.memory.exit[place.buffer.index()] {
            Some(buffer) => Operand::Local { buffer, cell: place.cell },
            None => self.working_space(place, events),
        };
        let to = Access { place: self.graph.places.index(place), rank: place.rank, operand };
        let value = self.graph.version(self.graph.written(cell.id, cell.offset)).value;
        let post = sources.len() > 1 && self.finished.needs_post(value);
        // A signal that a rank sends to itself tells it nothing new, and has no form as a step.
        if !(self.is_signal(place) && matches!(sources, [Source::Local(_)])) {
            events.fold(sources, to, post, self.span(cell.id));
        }
    }

    /// Where a cell belongs to the caller at exit and was never written, the entry value is its last version: out
    /// of place it has to be copied once; in place this is nothing to do.
    fn untouched_exits(&self, events: &mut Events) {
        for clause in &self.trace.promise.clauses {
            let block = clause.place;
            let buffer = block.buffer.index();
            let (BufferKind::Inout, Some(from), Some(to)) =
                (self.trace.buffers[buffer].kind, self.memory.entry[buffer], self.memory.exit[buffer])
            else {
                continue;
            };
            for cell in block_cells(block, self.trace) {
                let place = self.graph.places.index(cell);
                let Some(last) = self.graph.last[place as usize] else { continue };
                if self.graph.version(last).writer.is_some() || events.is_written(place) {
                    continue;
                }
                let access = |buffer| Access {
                    place,
                    rank: block.rank,
                    operand: Operand::Local { buffer, cell: cell.cell },
                };
                events.fold(&[Source::Local(access(from))], access(to), false, self.spans.implements);
            }
        }
    }

    fn read_access(&self, place: Place, version: VersionId, events: &mut Events) -> Access {
        let buffer = place.buffer.index();
        let untouched = self.graph.version(version).writer.is_none();
        let operand = match (self.memory.entry[buffer], self.memory.exit[buffer]) {
            (Some(entry), None) => Operand::Local { buffer: entry, cell: place.cell },
            (Some(entry), Some(_)) if untouched => Operand::Local { buffer: entry, cell: place.cell },
            (_, Some(exit)) => Operand::Local { buffer: exit, cell: place.cell },
            (None, None) => self.working_space(place, events),
        };
        Access { place: self.graph.places.index(place), rank: place.rank, operand }
    }

    fn working_space(&self, place: Place, events: &mut Events) -> Operand {
        if self.is_signal(place) {
            // Never part of a step: signals have no data.
            return Operand::Local { buffer: self.memory.scratch, cell: 0 };
        }
        events.scratch(self.graph.places.index(place), place.rank)
    }

    /// The places that a cell move writes and reads, for the conflicts of a `step`.
    pub(super) fn written_place(&self, cell: CellMove) -> u32 {
        self.graph.places.index(shift(self.mv(cell.id).to, cell.offset))
    }

    pub(super) fn source_places(&self, cell: CellMove) -> impl Iterator<Item = (u32, RankId)> {
        let sources = self.trace.sources(self.mv(cell.id));
        sources.iter().map(move |&place| (self.graph.places.index(shift(place, cell.offset)), place.rank))
    }

    pub(super) fn mv(&self, id: MoveId) -> &Move {
        &self.trace.moves[id.0 as usize]
    }

    pub(super) fn span(&self, id: MoveId) -> SpanId {
        self.spans.of_origin[self.mv(id).origin.0 as usize]
    }

    fn reads(&self, cell: CellMove) -> &[VersionId] {
        self.graph.read(cell.id, cell.offset, arity(self.trace, self.mv(cell.id)))
    }

    pub(super) fn is_signal(&self, place: Place) -> bool {
        self.trace.buffer(place).kind == BufferKind::Signal
    }
}

fn shift(place: Place, offset: u32) -> Place {
    Place { cell: place.cell + offset, ..place }
}
