//! Copies within a rank of entry values, and the originals, which readers may read instead.
//!
//! In: trace and graph (out of place), the places under the form with the most overlaps. Out: [`Originals`]. A reader needs no copy as long as
//! the original is there: until the first move that overwrites it, in any form, has read what it reads. A run of copies may be read as a run of originals, whatever
//! moves made it, if these lie side by side. Cost: a look at every move, and at the cells of those that write to buffers with originals, in
//! programs that copy within a rank; nothing in others.

use super::bits::Bits;
use crate::graph::{ChunkGraph, PlaceTable, VersionId, adds};
use crate::trace::{BufferKind, Move, MoveId, Place, Trace};

/// Which versions are copies, made within their rank, of entry values, and until when these are there to be read instead.
pub(super) struct Originals<'a> {
    trace: &'a Trace,
    graph: &'a ChunkGraph,
    places: &'a PlaceTable,
    /// By version: whether it is such a copy.
    copies: Bits,
    /// By move that makes nothing but such copies: where the original of its first cell lies; the others follow. Empty: no move does.
    first: Vec<Option<Place>>,
    /// By place: the move that overwrites it first; [`NEVER`].
    overwritten: Vec<u32>,
}

const NEVER: u32 = u32::MAX;

impl<'a> Originals<'a> {
    /// Finds them, if `wanted`.
    pub(super) fn new(
        trace: &'a Trace,
        graph: &'a ChunkGraph,
        places: &'a PlaceTable,
        wanted: bool,
    ) -> Originals<'a> {
        let mut originals = Originals {
            trace,
            graph,
            places,
            copies: Bits::default(),
            first: Vec::new(),
            overwritten: Vec::new(),
        };
        let candidate = |mv: &Move| {
            let within = mv.source_count == 1 && trace.sources(mv)[0].rank == mv.to.rank;
            within && !adds(trace, mv) && trace.buffer(mv.to).kind != BufferKind::Signal
        };
        if !wanted || !trace.moves.iter().any(candidate) {
            return originals;
        }
        originals.first = vec![None; trace.moves.len()];
        originals.copies = Bits::new(graph.versions.len());
        for (id, mv) in (0..).map(MoveId).zip(&trace.moves).filter(|(_, mv)| candidate(mv)) {
            let reads = (0..mv.width).map(|i| graph.read(id, i, 1)[0]);
            originals.first[id.0 as usize] = originals.side_by_side(reads);
            if originals.first[id.0 as usize].is_some() {
                let first = graph.written(id, 0).0;
                (first..first + mv.width).for_each(|version| originals.copies.add(version));
            }
        }
        // Where these lie, and what may share memory with that.
        let mut buffers = vec![false; trace.buffers.len()];
        originals.first.iter().flatten().for_each(|place| buffers[place.buffer.index()] = true);
        for form in &trace.inplace {
            buffers[form.right.index()] |= buffers[form.left.index()];
        }
        let mut overwritten = vec![NEVER; places.len()];
        for (id, mv) in (0..).zip(&trace.moves).filter(|(_, mv)| buffers[mv.to.buffer.index()]) {
            let own = originals.first[id as usize];
            for i in 0..mv.width {
                let at = &mut overwritten[places.index(mv.to.plus(i)) as usize];
                let itself = own.is_some_and(|first| first == mv.to) || graph.idle(trace, MoveId(id), i);
                if *at == NEVER && !itself {
                    *at = id;
                }
            }
        }
        originals.overwritten = overwritten;
        originals
    }

    /// Whether a version is such a copy.
    pub(super) fn has(&self, version: VersionId) -> bool {
        self.copies.has(version.0)
    }

    /// Where the original of a version lies: itself, if it is an entry value.
    fn of(&self, version: VersionId) -> Option<Place> {
        if version.0 < self.graph.entries {
            return Some(self.graph.places.place(self.graph.version(version).place));
        }
        let writer = Some(version)
            .filter(|&version| self.has(version))
            .and_then(|version| self.graph.writer(version))?;
        Some(self.first[writer.0 as usize]?.plus(version.0 - self.graph.written(writer, 0).0))
    }

    /// The same, if the original is still there when cell `i` of a move reads.
    pub(super) fn still(&self, version: VersionId, reader: MoveId, i: u32) -> Option<Place> {
        let place = self.of(version)?;
        let first = self.overwritten.get(self.places.index(place) as usize).copied().unwrap_or(NEVER);
        let moves = &self.trace.moves;
        let mv = &moves[reader.0 as usize];
        let still = match first {
            NEVER => true,
            // It may be the place that the reader itself writes.
            first if first == reader.0 => place == mv.to.plus(i),
            first => first > reader.0 && (mv.step == 0 || moves[first as usize].step != mv.step),
        };
        still.then_some(place)
    }

    /// Where the originals of a run of versions begin, if a move can read all of them there, side by side: its cells from `start` on.
    pub(super) fn run(
        &self,
        versions: impl Iterator<Item = VersionId>,
        reader: MoveId,
        start: u32,
    ) -> Option<Place> {
        side_by_side(self.places, (start..).zip(versions).map(|(i, version)| self.still(version, reader, i)))
    }

    fn side_by_side(&self, versions: impl Iterator<Item = VersionId>) -> Option<Place> {
        side_by_side(self.places, versions.map(|version| self.of(version)))
    }
}

/// The first of places that follow one another.
fn side_by_side(places: &PlaceTable, mut run: impl Iterator<Item = Option<Place>>) -> Option<Place> {
    let first = run.next()??;
    let mut last = first;
    for next in run {
        let next = next.filter(|&next| follows(places, last, next))?;
        last = next;
    }
    Some(first)
}

/// Whether a place is the next one, also where a form lays them on others.
pub(super) fn follows(places: &PlaceTable, a: Place, b: Place) -> bool {
    a.plus(1) == b && places.index(a).wrapping_add(1) == places.index(b)
}
