//! Which versions matter: those that a promised place holds at the end, and all that they are made of.
//!
//! In: trace and graph. Out: a set of versions. What is not in it is never made (the program has been warned of).

use crate::graph::{ChunkGraph, VersionId, arity};
use crate::trace::{BufferKind, MoveId, Trace};

/// A set of versions.
pub(super) struct Live(Vec<u64>);

impl Live {
    pub(super) fn has(&self, version: VersionId) -> bool {
        self.0[version.0 as usize / 64] >> (version.0 % 64) & 1 == 1
    }

    fn add(&mut self, version: VersionId) {
        self.0[version.0 as usize / 64] |= 1 << (version.0 % 64);
    }
}

/// Follows values back from the end.
pub(super) fn live(trace: &Trace, graph: &ChunkGraph) -> Live {
    let mut live = Live(vec![0; graph.versions.len() / 64 + 1]);
    for clause in &trace.promise.clauses {
        for cell in super::exits::block_cells(clause.place, trace) {
            if let Some(last) = graph.last[graph.places.index(cell) as usize] {
                live.add(last);
            }
        }
    }
    for (index, mv) in trace.moves.iter().enumerate().rev() {
        let id = MoveId(index as u32);
        // Who synchronises needs every signal; who does not has no signal that matters.
        let signal = trace.buffer(mv.to).kind == BufferKind::Signal && trace.promise.synchronised;
        let arity = arity(trace, mv);
        for i in 0..mv.width {
            let written = graph.written(id, i);
            if signal {
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
