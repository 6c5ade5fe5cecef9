//! Where moves are cut so that nothing has to be stored that only passes through.
//!
//! In: trace and graph (out of place), live versions, originals. Out: [`Parts`], the cells of moves at which a new node begins.
//!
//! The one hard idea: between two neighbouring cells of a move there is a joint. Where a value goes through (it arrives or is made, and is only
//! sent, copied or folded once after), the joint of the reader and the joint of who made it must be cut both or neither: then the reader's node takes
//! exactly what one node made. So such joints are one class (union and find); where a reader's cells were not made side by side, or begin or end
//! in the midst of what was made, the class is cut. What has to be stored anyhow (it is promised, or kept for a later sum) can be read
//! from memory in any company, and joins nothing. One pass over all reads, whatever the depth of the program.

use super::bits::Bits;
use super::live::Live;
use super::originals::{Originals, follows};
use crate::graph::{ChunkGraph, PlaceTable, VersionId, adds, arity};
use crate::schedule::memory::Finished;
use crate::trace::{BufferKind, Move, MoveId, Place, Trace};

/// By version: whether its cell belongs to another node than the one before it in its move.
#[derive(Default)]
pub(super) struct Parts {
    cut: Bits,
}

impl Parts {
    pub(super) fn new(
        trace: &Trace,
        graph: &ChunkGraph,
        finished: &Finished,
        live: &Live,
        originals: &Originals<'_>,
        places: &PlaceTable,
    ) -> Parts {
        let kept = kept(trace, graph, live);
        let mut joints = Joints::new(graph.versions.len());
        let mut begin = Bits::new(graph.versions.len());
        graph.written.iter().for_each(|first| begin.add(first.0));
        let look = Look { trace, graph, live, finished, originals, places, kept, begin };
        for (id, mv) in (0..).map(MoveId).zip(&trace.moves) {
            if trace.buffer(mv.to).kind != BufferKind::Signal {
                look.at(id, mv, &mut joints);
            }
        }
        Parts { cut: joints.cut() }
    }

    /// Whether a new node begins with the cell that makes this version.
    pub(super) fn is_cut(&self, version: VersionId) -> bool {
        self.cut.has(version.0)
    }
}

/// What every move is looked at with.
struct Look<'a> {
    trace: &'a Trace,
    graph: &'a ChunkGraph,
    finished: &'a Finished,
    live: &'a Live,
    originals: &'a Originals<'a>,
    places: &'a PlaceTable,
    /// Versions that are stored anyhow.
    kept: Bits,
    /// Versions of the first cells of moves.
    begin: Bits,
}

/// How a value comes to its reader.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// It is an entry value that lies here.
    Entry(Place),
    /// It goes through.
    Through,
    /// It lies in memory.
    Kept,
}

impl Look<'_> {
    /// Joins the joints of a move with those of who made what it reads, or cuts them.
    fn at(&self, id: MoveId, mv: &Move, joints: &mut Joints) {
        let arity = arity(self.trace, mv);
        for i in (0..mv.width).filter(|&i| self.makes(id, i)) {
            let written = self.graph.written(id, i);
            let begins = i == 0 || !self.makes(id, i - 1);
            if begins && i > 0 {
                joints.cut_at(written);
            }
            for (operand, &read) in (0..).zip(self.graph.read(id, i, arity)) {
                let source = self.source(id, i, read);
                if begins {
                    self.begins(source, read, joints);
                } else {
                    let before = self.graph.read(id, i - 1, arity)[operand as usize];
                    self.joint(written, (self.source(id, i - 1, before), before), (source, read), joints);
                }
                if i + 1 == mv.width || !self.makes(id, i + 1) {
                    self.ends(source, read, joints);
                }
            }
            let post = |version: VersionId| self.finished.needs_post(self.graph.version(version).value);
            if !begins && post(written) != post(VersionId(written.0 - 1)) {
                joints.cut_at(written);
            }
        }
    }

    /// The joint before the cell that writes `written`, between what is read there and just before.
    fn joint(
        &self,
        written: VersionId,
        (before, u): (Source, VersionId),
        (source, v): (Source, VersionId),
        joints: &mut Joints,
    ) {
        match (before, source) {
            (Source::Entry(a), Source::Entry(b)) if follows(self.places, a, b) => {}
            (Source::Kept, Source::Kept) => {}
            (Source::Through, _) | (_, Source::Through) if self.neighbours(u, v) => joints.unite(written, v),
            _ => {
                joints.cut_at(written);
                self.ends(before, u, joints);
                self.begins(source, v, joints);
            }
        }
    }

    /// A reader's run begins with this version.
    fn begins(&self, source: Source, version: VersionId, joints: &mut Joints) {
        if source == Source::Through && self.neighbours(VersionId(version.0.wrapping_sub(1)), version) {
            joints.cut_at(version);
        }
    }

    /// A reader's run ends with this version.
    fn ends(&self, source: Source, version: VersionId, joints: &mut Joints) {
        let next = VersionId(version.0 + 1);
        if source == Source::Through && self.neighbours(version, next) {
            joints.cut_at(next);
        }
    }

    /// Whether a move makes the two in neighbouring cells.
    fn neighbours(&self, a: VersionId, b: VersionId) -> bool {
        let inner = a.0 >= self.graph.entries && (b.0 as usize) < self.graph.versions.len();
        inner && a.0.wrapping_add(1) == b.0 && !self.begin.has(b.0)
    }

    fn makes(&self, id: MoveId, i: u32) -> bool {
        self.live.has(self.graph.written(id, i)) && !self.graph.idle(self.trace, id, i)
    }

    fn source(&self, id: MoveId, i: u32, version: VersionId) -> Source {
        let mv = &self.trace.moves[id.0 as usize];
        if version.0 < self.graph.entries {
            return Source::Entry(self.graph.places.place(self.graph.version(version).place));
        }
        if let Some(original) = self.originals.still(version, id, i) {
            return Source::Entry(original);
        }
        // A copy within the rank is best made by who makes the value, even if that is kept.
        let copied =
            !adds(self.trace, mv) && mv.source_count == 1 && self.trace.sources(mv)[0].rank == mv.to.rank;
        match self.kept.has(version.0) && !copied {
            true => Source::Kept,
            false => Source::Through,
        }
    }
}

/// Versions that are stored whatever happens to them: what is promised, what an overlap makes visible elsewhere, and what one fold makes
/// and another one of the rank takes.
fn kept(trace: &Trace, graph: &ChunkGraph, live: &Live) -> Bits {
    let mut kept = Bits::new(graph.versions.len());
    for (version, at) in (0..).zip(&graph.versions).skip(graph.entries as usize) {
        if live.ends(VersionId(version)) || live.is_overlaid(at.place) {
            kept.add(version);
        }
    }
    let mut folded = Bits::new(graph.versions.len());
    let folds = |mv: &Move| adds(trace, mv) || mv.source_count > 1;
    for (id, mv) in (0..).map(MoveId).zip(&trace.moves).filter(|(_, mv)| folds(mv)) {
        let arity = arity(trace, mv);
        for i in (0..mv.width).filter(|&i| live.has(graph.written(id, i))) {
            for (operand, read) in graph.read(id, i, arity).iter().enumerate() {
                let rank = match (adds(trace, mv), operand) {
                    (true, 0) => mv.to.rank,
                    (adds, _) => trace.sources(mv)[operand - usize::from(adds)].rank,
                };
                if rank == mv.to.rank && folded.has(read.0) {
                    kept.add(read.0);
                }
            }
        }
        let written = graph.written(id, 0).0;
        (written..written + mv.width).for_each(|version| folded.add(version));
    }
    kept
}

/// Classes of joints; a joint is named by the version after it.
struct Joints {
    root: Vec<u32>,
    cut: Bits,
}

impl Joints {
    fn new(versions: usize) -> Joints {
        Joints { root: (0..versions as u32).collect(), cut: Bits::new(versions) }
    }

    fn find(&mut self, VersionId(mut at): VersionId) -> u32 {
        while self.root[at as usize] != at {
            // Halves the way for those who come after.
            let above = self.root[self.root[at as usize] as usize];
            self.root[at as usize] = above;
            at = above;
        }
        at
    }

    fn unite(&mut self, a: VersionId, b: VersionId) {
        let (a, b) = (self.find(a), self.find(b));
        let (low, high) = (a.min(b), a.max(b));
        self.root[high as usize] = low;
        if self.cut.has(high) {
            self.cut.add(low);
        }
    }

    fn cut_at(&mut self, joint: VersionId) {
        let root = self.find(joint);
        self.cut.add(root);
    }

    /// All joints that are cut.
    fn cut(mut self) -> Bits {
        let mut all = Bits::new(self.root.len());
        for joint in 0..self.root.len() as u32 {
            let root = self.find(VersionId(joint));
            if self.cut.has(root) {
                all.add(joint);
            }
        }
        all
    }
}
