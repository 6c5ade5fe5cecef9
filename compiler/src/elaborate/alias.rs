//! Finds a run that reads through an `in` name what it has already overwritten through another name.
//!
//! In: a callee's moves and where its buffers lie. Out: the first such read, if there is one. The callee was proved
//! with its buffers apart, so a read of an `in` buffer means the entry value; written out in place it would see the
//! later one. Only cells where an `in` and another buffer of the callee overlap are followed.

use rustc_hash::FxHashMap;

use crate::trace::{BufferKind, Move, MoveKind, Place, Trace};

/// A read of something that was overwritten; numbers of moves and of a source of the callee.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadAfterWrite {
    pub reader: u32,
    pub source: u32,
    pub writer: u32,
}

/// Keeps its memory between runs.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    /// By (buffer, rank, cell) of the caller: the last move of this run that wrote it through a name that is not `in`.
    written: FxHashMap<(u32, u32, u32), u32>,
    /// By callee buffer and rank: it overlaps another one that matters.
    overlaps: Vec<bool>,
}

impl Tracker {
    /// Looks through one run. `region` gives buffer, first cell and length of what a buffer of the callee is at a rank
    /// of it; `place` maps places; a cell of the callee is `factor` of the caller's.
    pub(crate) fn run(
        &mut self,
        callee: &Trace,
        ranks: usize,
        region: impl Fn(usize, usize) -> Option<(u32, u32, u32)>,
        place: impl Fn(Place) -> Place,
        factor: u32,
    ) -> Option<ReadAfterWrite> {
        self.written.clear();
        self.find_overlaps(callee, ranks, region);
        let matters = |p: Place| self.overlaps.get(p.buffer.index() * ranks + p.rank.index()) == Some(&true);
        let is_in = |p: Place| callee.buffer(p).kind == BufferKind::In;
        let mut first = 0;
        while first < callee.moves.len() {
            // Moves of one step read before any of them writes.
            let step = callee.moves[first].step;
            let same = callee.moves[first..].iter().take_while(|mv| step != 0 && mv.step == step).count();
            let end = first + same.max(1);
            if !self.written.is_empty() {
                for (i, mv) in callee.moves[first..end].iter().enumerate() {
                    for s in mv.first_source..mv.first_source + mv.source_count {
                        let source = callee.sources[s as usize];
                        if !is_in(source) || !matters(source) {
                            continue;
                        }
                        if let Some(writer) = self.overwritten(place(source), mv.width * factor) {
                            return Some(ReadAfterWrite { reader: (first + i) as u32, source: s, writer });
                        }
                    }
                }
            }
            for (i, mv) in callee.moves[first..end].iter().enumerate() {
                if !is_in(mv.to) && matters(mv.to) && !vanishes(callee, mv, &place) {
                    let to = place(mv.to);
                    for cell in to.cell..to.cell + mv.width * factor {
                        self.written.insert((to.buffer.0, to.rank.0, cell), (first + i) as u32);
                    }
                }
            }
            first = end;
        }
        None
    }

    fn overwritten(&self, place: Place, width: u32) -> Option<u32> {
        let cells = place.cell..place.cell + width;
        cells.filter_map(|cell| self.written.get(&(place.buffer.0, place.rank.0, cell)).copied()).next()
    }

    fn find_overlaps(
        &mut self,
        callee: &Trace,
        ranks: usize,
        region: impl Fn(usize, usize) -> Option<(u32, u32, u32)>,
    ) {
        // Those of the collective stand first; scratch is the callee's own.
        let buffers = callee.buffers.iter().take_while(|b| b.kind != BufferKind::Scratch).count();
        self.overlaps.clear();
        self.overlaps.resize(buffers * ranks, false);
        let is_in = |buffer: usize| callee.buffers[buffer].kind == BufferKind::In;
        let holds = |buffer: usize, q: usize| callee.buffers[buffer].at.holds(plan::ids::RankId(q as u32));
        for q in 0..ranks {
            for i in 1..buffers {
                for j in 0..i {
                    if is_in(i) == is_in(j) || !holds(i, q) || !holds(j, q) {
                        continue;
                    }
                    let (Some(a), Some(b)) = (region(i, q), region(j, q)) else { continue };
                    if a.0 == b.0 && a.1 < b.1 + b.2 && b.1 < a.1 + a.2 {
                        self.overlaps[i * ranks + q] = true;
                        self.overlaps[j * ranks + q] = true;
                    }
                }
            }
        }
    }
}

/// Whether a move is a copy of a place onto itself here: it overwrites nothing.
fn vanishes(callee: &Trace, mv: &Move, place: &impl Fn(Place) -> Place) -> bool {
    mv.kind != MoveKind::Combine && mv.source_count == 1 && place(callee.sources(mv)[0]) == place(mv.to)
}
