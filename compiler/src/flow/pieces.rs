//! One move as nodes: its cells, cut where they differ in kind.
//!
//! In: a move. Out: its nodes at the end of the flow. Cells that no one needs, and copies of a cell onto itself, make
//! none. A cut falls where an operand changes from entry value to written value (out of place they lie in two
//! memories), where the outer part of the operator becomes due or ceases to be, where places that a form
//! lays on each other do not follow one another, and where `parts` says so.

use std::ops::Range;

use plan::ids::SpanId;
use plan::pre::Pre;
use rustc_hash::FxHashMap;

use super::live::Live;
use super::originals::Originals;
use super::parts::Parts;
use super::{Flow, Home, Kind, Node, NodeId, Operand};
use crate::graph::{ChunkGraph, PlaceTable, VersionId, adds, arity};
use crate::schedule::memory::Finished;
use crate::trace::{BufferKind, Move, MoveId, MoveKind, Place, Trace};

/// What cutting needs, and remembers.
pub(super) struct Cutter<'a> {
    pub(super) trace: &'a Trace,
    pub(super) graph: &'a ChunkGraph,
    pub(super) places: &'a PlaceTable,
    pub(super) live: &'a Live,
    pub(super) finished: &'a Finished,
    pub(super) originals: &'a Originals<'a>,
    pub(super) parts: &'a Parts,
    /// By version: the node that makes it; [`ENTRY`] if none does.
    pub(super) maker: Vec<u32>,
    /// By first cell: nodes that copy entry values to where they are promised, with their widths.
    pub(super) exits: FxHashMap<Place, (NodeId, u32)>,
    /// The most cells of a node.
    pub(super) widest: u32,
    /// Whether some places are laid on others.
    pub(super) overlaid: bool,
}

/// No node made it.
pub(super) const ENTRY: u32 = u32::MAX;

impl Cutter<'_> {
    /// Adds the nodes of a move; whether each of them may be looked at by itself (if the move is).
    pub(super) fn cut(&mut self, id: MoveId, span: SpanId, flow: &mut Flow) -> bool {
        let mv = &self.trace.moves[id.0 as usize];
        let arity = arity(self.trace, mv);
        if self.trace.buffer(mv.to).kind == BufferKind::Signal && self.trace.sources(mv)[0].rank == mv.to.rank
        {
            // A signal that a rank sends to itself tells it nothing new.
            let before = self.graph.read(id, 0, arity)[0];
            self.maker[self.graph.written(id, 0).0 as usize] = self.maker[before.0 as usize];
            return true;
        }
        let single = self.reads_itself(mv);
        let mut start = 0;
        for i in 0..mv.width {
            if !self.makes(id, i) {
                if start < i {
                    self.piece(id, start..i, span, flow);
                }
                start = i + 1;
            } else if start < i && (single || self.differs(id, i, arity)) {
                self.piece(id, start..i, span, flow);
                start = i;
            }
        }
        if start < mv.width {
            self.piece(id, start..mv.width, span, flow);
        }
        !single
    }

    /// Whether cell `i` does something that matters.
    fn makes(&self, id: MoveId, i: u32) -> bool {
        self.live.has(self.graph.written(id, i)) && !self.graph.idle(self.trace, id, i)
    }

    /// Whether cell `i` is of another kind than the one before.
    fn differs(&self, id: MoveId, i: u32, arity: u32) -> bool {
        let (before, here) = (self.graph.read(id, i - 1, arity), self.graph.read(id, i, arity));
        let changes = |(a, b): (&VersionId, &VersionId)| {
            self.is_entry(*a) != self.is_entry(*b) || (arity > 1 && self.is_leaf(*a) != self.is_leaf(*b))
        };
        before.iter().zip(here).any(changes)
            || self.post(id, i - 1) != self.post(id, i)
            || (self.trace.moves[id.0 as usize].to.cell + i).is_multiple_of(self.widest)
            || self.parts.is_cut(self.graph.written(id, i))
            || (self.overlaid && self.jumps(id, i))
    }

    fn is_entry(&self, version: VersionId) -> bool {
        self.maker[version.0 as usize] == ENTRY
    }

    /// Whether it holds an entry value, wherever that has been.
    fn is_leaf(&self, version: VersionId) -> bool {
        self.graph.values.is_leaf(self.graph.version(version).value)
    }

    fn post(&self, id: MoveId, i: u32) -> bool {
        self.finished.needs_post(self.graph.version(self.graph.written(id, i)).value)
    }

    fn jumps(&self, id: MoveId, i: u32) -> bool {
        let mv = &self.trace.moves[id.0 as usize];
        let mut places = self.trace.sources(mv).iter().chain([&mv.to]);
        places.any(|p| self.places.index(p.plus(i)) != self.places.index(p.plus(i - 1)).wrapping_add(1))
    }

    /// Whether some cell is read that another cell of the move writes. The language forbids it; a trace made by hand may do
    /// it, and means that all is read first.
    fn reads_itself(&self, mv: &Move) -> bool {
        self.trace.sources(mv).iter().any(|source| {
            let apart = self.places.index(*source).abs_diff(self.places.index(mv.to));
            source.rank == mv.to.rank && apart > 0 && apart < mv.width
        })
    }

    fn piece(&mut self, id: MoveId, cells: Range<u32>, span: SpanId, flow: &mut Flow) {
        let trace = self.trace;
        let mv = &trace.moves[id.0 as usize];
        let arity = arity(trace, mv);
        let (node, start, width) = (NodeId(flow.nodes.len() as u32), cells.start, cells.end - cells.start);
        let first = flow.operands.len() as u32;
        for operand in 0..arity {
            let source = match (adds(trace, mv), operand) {
                (true, 0) => mv.to,
                (adds, _) => trace.sources(mv)[operand as usize - usize::from(adds)],
            };
            let versions = cells.clone().map(|i| self.graph.read(id, i, arity)[operand as usize].0);
            let made = self.operand((id, start), versions, source.plus(start), flow);
            flow.operands.push(made);
        }
        let written = self.graph.written(id, start).0 as usize;
        self.maker[written..written + width as usize].fill(node.0);
        let to = mv.to.plus(start);
        let kind = match mv.kind {
            _ if trace.buffer(to).kind == BufferKind::Signal => Kind::Signal,
            MoveKind::Multicast => Kind::Multicast,
            _ if arity == 1 => Kind::Copy,
            _ => Kind::Fold,
        };
        let promised = (0..width).any(|i| {
            self.live.ends(VersionId(written as u32 + i))
                || self.live.is_overlaid(self.graph.places.index(to.plus(i)))
        });
        let pre = match kind {
            Kind::Fold => Pre::of(self.graph.read(id, start, arity).iter().map(|&read| self.is_leaf(read))),
            Kind::Copy | Kind::Multicast | Kind::Signal => Some(Pre::NONE),
        };
        flow.unmarked |= pre.is_none();
        flow.widest = flow.widest.max(width);
        flow.nodes.push(Node {
            rank: to.rank,
            width,
            first,
            count: arity as u16,
            kind,
            round_each: false,
            post: arity > 1 && kind == Kind::Fold && self.post(id, start),
            pre: pre.unwrap_or_default(),
            gone: false,
            lane: mv.lane,
            home: Home { buffer: to.buffer, cell: to.cell, stored: promised },
            round: 0,
            span,
        });
    }

    /// An operand that lies at `place`, of the versions given.
    fn operand(
        &self,
        (reader, start): (MoveId, u32),
        versions: impl ExactSizeIterator<Item = u32> + Clone,
        place: Place,
        flow: &mut Flow,
    ) -> Operand {
        let width = versions.len() as u32;
        let first = versions.clone().next().unwrap_or(0);
        let maker = self.maker[first as usize];
        if maker == ENTRY {
            return self.entry(place, width);
        }
        let exact = self.is_exact(maker, first, width, flow)
            && versions.clone().zip(first..).all(|(version, due)| version == due);
        // Copies of entry values are read where these are, as long as they are; but what is kept anyhow goes as it is stored.
        if self.originals.has(VersionId(first))
            && !(exact && flow.nodes[maker as usize].home.stored)
            && let Some(original) = self.originals.run(versions.clone().map(VersionId), reader, start)
        {
            return self.entry(original, width);
        }
        if exact {
            return Operand::new(place, false, Some(NodeId(maker)));
        }
        // What several nodes made, or a part of what one made, is read from memory.
        for version in versions {
            flow.nodes[self.maker[version as usize] as usize].home.stored = true;
        }
        Operand::new(place, false, None)
    }

    /// An entry value that lies at `place`.
    fn entry(&self, place: Place, width: u32) -> Operand {
        let copied = self.exits.get(&place).filter(|&&(_, len)| len == width);
        Operand::new(place, true, copied.map(|&(node, _)| node))
    }

    /// Whether `maker` made `width` versions from `first` on, and no others.
    fn is_exact(&self, maker: u32, first: u32, width: u32, flow: &Flow) -> bool {
        let made = |version: u32| self.maker.get(version as usize) == Some(&maker);
        let begins = first.checked_sub(1).is_none_or(|before| !made(before));
        // Versions are close by, nodes are not. (A signal sent to itself has a version more of what its node made.)
        begins
            && made(first + width - 1)
            && (!made(first + width) || flow.nodes[maker as usize].width == width)
    }
}
