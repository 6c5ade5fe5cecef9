//! Promised places that no move writes: out of place the entry value has to be copied once.
//!
//! In: trace and graph, of an `inout` buffer. Out: runs of cells, cut where other ranks read them, so that the step that
//! copies a run is also the one that sends it. In place such a step copies a cell onto itself.

use plan::collective::BlockRef;

use crate::graph::{ChunkGraph, VersionId};
use crate::trace::{BufferKind, MoveKind, Place, Trace};

/// A run of such cells.
pub(super) struct Exit {
    pub(super) place: Place,
    pub(super) width: u32,
}

/// The cells of one block.
pub(crate) fn block_cells(block: BlockRef, trace: &Trace) -> impl Iterator<Item = Place> {
    let first = block.block * trace.cells;
    (first..first + trace.cells).map(move |cell| Place { buffer: block.buffer, rank: block.rank, cell })
}

/// All such runs.
pub(super) fn exits(trace: &Trace, graph: &ChunkGraph, widest: u32) -> Vec<Exit> {
    let mut untouched: Vec<Place> = Vec::new();
    for clause in &trace.promise.clauses {
        if trace.buffers[clause.place.buffer.index()].kind == BufferKind::Inout {
            let entry = |place: &Place| {
                let last = graph.last(graph.places.index(*place));
                last.is_some_and(|VersionId(version)| version < graph.entries)
            };
            untouched.extend(block_cells(clause.place, trace).filter(entry));
        }
    }
    untouched.sort_unstable_by_key(|place| (place.buffer, place.rank, place.cell));
    untouched.dedup();
    if untouched.is_empty() {
        return Vec::new();
    }
    // Where something that is read begins or has ended.
    let mut cut = vec![false; graph.places.len() + 1];
    for mv in &trace.moves {
        for &source in trace.sources(mv) {
            if trace.buffer(source).kind == BufferKind::Inout && mv.kind != MoveKind::Combine {
                let first = graph.places.index(source) as usize;
                cut[first] = true;
                cut[first + mv.width as usize] = true;
            }
        }
    }
    let joined = |a: &Place, b: &Place| {
        (a.buffer, a.rank, a.cell + 1) == (b.buffer, b.rank, b.cell)
            && !b.cell.is_multiple_of(trace.cells)
            && !b.cell.is_multiple_of(widest)
            && !cut[graph.places.index(*b) as usize]
    };
    let runs = untouched.chunk_by(joined);
    runs.map(|run| Exit { place: run[0], width: run.len() as u32 }).collect()
}
