//! Which versions matter: those that a promised place holds at the end, and all that they are made of.
//!
//! In: trace and graph (out of place). Out: a set of versions. What is not in it is never made (the program has been
//! warned of).

use crate::graph::{ChunkGraph, VersionId, arity};
use crate::trace::{BufferKind, MoveId, Place, Trace};

/// A set of versions, and places all of whose versions are in it.
pub(crate) struct Live {
    set: Vec<u64>,
    /// Those that promised places hold at the end.
    ends: Vec<u64>,
    overlaid: Vec<bool>,
}

impl Live {
    /// Follows values back from the end.
    pub(crate) fn new(trace: &Trace, graph: &ChunkGraph) -> Live {
        live(trace, graph)
    }

    pub(crate) fn has(&self, version: VersionId) -> bool {
        contains(&self.set, version)
    }

    /// Whether a promised place holds it at the end.
    pub(super) fn ends(&self, version: VersionId) -> bool {
        contains(&self.ends, version)
    }

    /// Whether what is written to a place matters even if no one reads it there.
    pub(super) fn is_overlaid(&self, place: u32) -> bool {
        self.overlaid.get(place as usize).is_some_and(|&overlaid| overlaid)
    }

    fn add(&mut self, version: VersionId) {
        self.set[version.0 as usize / 64] |= 1 << (version.0 % 64);
    }
}

fn contains(set: &[u64], version: VersionId) -> bool {
    set[version.0 as usize / 64] >> (version.0 % 64) & 1 == 1
}

fn live(trace: &Trace, graph: &ChunkGraph) -> Live {
    let set = vec![0; graph.versions.len() / 64 + 1];
    let mut live = Live { set, ends: Vec::new(), overlaid: overlaid(trace, graph) };
    for clause in &trace.promise.clauses {
        for cell in super::exits::block_cells(clause.place, trace) {
            if let Some(last) = graph.last(graph.places.index(cell)) {
                live.add(last);
            }
        }
    }
    live.ends = live.set.clone();
    for (index, mv) in trace.moves.iter().enumerate().rev() {
        let id = MoveId(index as u32);
        // Who synchronises needs every signal; who does not has no signal that matters.
        let signal = trace.buffer(mv.to).kind == BufferKind::Signal && trace.promise.synchronised;
        let arity = arity(trace, mv);
        for i in 0..mv.width {
            let written = graph.written(id, i);
            if signal || live.is_overlaid(graph.version(written).place) {
                live.add(written);
            }
            if live.has(written) {
                for &read in graph.read(id, i, arity) {
                    live.add(read);
                }
            }
        }
    }
    live
}

/// By place, whether it is laid on another one in place. What is written there may then be read under another name, and a copy
/// over it may do nothing: all of it matters. Empty if there are none.
fn overlaid(trace: &Trace, graph: &ChunkGraph) -> Vec<bool> {
    if trace.inplace.is_empty() {
        return Vec::new();
    }
    let mut overlaid = vec![false; graph.places.len()];
    for form in &trace.inplace {
        for (buffer, first) in [(form.left, form.left_cell), (form.right, form.right_cell)] {
            for cell in first..first + form.cells {
                let place = Place { buffer, rank: form.rank, cell };
                overlaid[graph.places.index(place) as usize] = true;
            }
        }
    }
    overlaid
}
