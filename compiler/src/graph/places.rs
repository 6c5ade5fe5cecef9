//! Cells as indices of flat arrays.
//!
//! In: the buffers of a trace, the cells its moves touch, the alias form. Out: a dense numbering in both directions.
//! The one hard idea: every (buffer, rank) has a base, so that an index is one addition; scratch gets indices only
//! for the stretch of cells that some move touches (a program of many `run`s has much scratch, each of it on a few
//! ranks); under [`Form::Same`] a second table sends overlapping cells to one index, that of the `in` cell.

use plan::ids::{BufferId, RankId};

use super::Form;
use crate::trace::{BufferKind, Place, Trace};

/// Dense numbering of cells: `base(buffer, rank) + cell`. Under [`Form::Same`] overlapping cells share an index.
#[derive(Debug, Clone)]
pub struct PlaceTable {
    ranks: u32,
    /// Of (buffer, rank): the index of its cell 0, modulo 2^32 (scratch may have no cell 0).
    base: Vec<u32>,
    /// All stretches in the order of their indices.
    stretches: Vec<Stretch>,
    /// Under `Form::Same`, if anything overlaps: the index that stands for each index.
    shared: Vec<u32>,
    len: u32,
}

/// Cells of one buffer at one rank that have indices.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    start: u32,
    first: Place,
}

impl PlaceTable {
    /// Numbers the cells of a trace; the number of cells if they are too many to be numbered.
    pub fn new(trace: &Trace, form: Form) -> Result<PlaceTable, u64> {
        let ranks = trace.ranks as usize;
        let touched = touched_scratch(trace);
        let mut table = PlaceTable {
            ranks: trace.ranks,
            base: vec![0; trace.buffers.len() * ranks],
            stretches: Vec::new(),
            shared: Vec::new(),
            len: 0,
        };
        let mut len = 0u64;
        for (b, buffer) in trace.buffers.iter().enumerate() {
            for r in 0..ranks {
                let rank = RankId::new(r);
                let (first, end) = match buffer.kind {
                    BufferKind::Scratch => touched[b * ranks + r],
                    BufferKind::Signal => (0, 1),
                    _ if buffer.at.holds(rank) => (0, buffer.blocks.saturating_mul(trace.cells)),
                    _ => (0, 0),
                };
                table.base[b * ranks + r] = (len as u32).wrapping_sub(first);
                if first < end {
                    let first_place = Place { buffer: BufferId::new(b), rank, cell: first };
                    table.stretches.push(Stretch { start: len as u32, first: first_place });
                    len += u64::from(end - first);
                }
            }
        }
        if len >= u64::from(u32::MAX) {
            return Err(len);
        }
        table.len = len as u32;
        if form == Form::Same && !trace.inplace.is_empty() {
            table.shared = shared(trace, table.len, |place| table.index(place));
        }
        Ok(table)
    }

    /// The index of a cell.
    #[inline]
    pub fn index(&self, place: Place) -> u32 {
        let slot = place.buffer.index() * self.ranks as usize + place.rank.index();
        let own = self.base[slot].wrapping_add(place.cell);
        if self.shared.is_empty() { own } else { self.shared[own as usize] }
    }

    /// The cell of an index; of cells that share it, the `in` cell.
    pub fn place(&self, index: u32) -> Place {
        let stretch = &self.stretches[self.stretches.partition_point(|s| s.start <= index) - 1];
        Place { cell: stretch.first.cell + (index - stretch.start), ..stretch.first }
    }

    /// The cell of an index, and how many indices from there on are of cells that follow it.
    pub fn stretch(&self, index: u32) -> (Place, u32) {
        let next = self.stretches.partition_point(|s| s.start <= index);
        let end = self.stretches.get(next).map_or(self.len, |stretch| stretch.start);
        (self.place(index), end - index)
    }

    /// How many indices there are (some unused under [`Form::Same`]).
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Of each (buffer, rank): the stretch of cells that moves touch, if it is scratch.
fn touched_scratch(trace: &Trace) -> Vec<(u32, u32)> {
    let ranks = trace.ranks as usize;
    let mut touched = vec![(0, 0); trace.buffers.len() * ranks];
    if !trace.buffers.iter().any(|b| b.kind == BufferKind::Scratch) {
        return touched;
    }
    let mut touch = |place: Place, width: u32| {
        let stretch = &mut touched[place.buffer.index() * ranks + place.rank.index()];
        let end = place.cell + width;
        *stretch = match *stretch {
            (0, 0) => (place.cell, end),
            (first, last) => (first.min(place.cell), last.max(end)),
        };
    };
    for mv in &trace.moves {
        touch(mv.to, mv.width);
        for &source in trace.sources(mv) {
            touch(source, mv.width);
        }
    }
    touched
}

/// In place: by cell the number that stands for it, of `len` cells that `index` numbers. Of two that lie on each other, whichever
/// way round that was declared, the `in` cell stands for both.
pub(crate) fn shared(trace: &Trace, len: u32, index: impl Fn(Place) -> u32) -> Vec<u32> {
    let mut shared: Vec<u32> = (0..len).collect();
    for overlap in &trace.inplace {
        let left_is_in = trace.buffers[overlap.left.index()].kind == BufferKind::In;
        for i in 0..overlap.cells {
            let at = |buffer, cell| index(Place { buffer, rank: overlap.rank, cell });
            let left = at(overlap.left, overlap.left_cell + i);
            let right = at(overlap.right, overlap.right_cell + i);
            let (kept, other) = if left_is_in { (left, right) } else { (right, left) };
            shared[other as usize] = shared[kept as usize];
        }
    }
    shared
}
