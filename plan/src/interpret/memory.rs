//! The bytes of all ranks, and which of them hold something.
//!
//! In: entry values. Out: slices to read, places to write. In place, a cell of a `Send` buffer that lies on one of a
//! `Recv` buffer is looked up there: one memory. What nothing wrote is not readable, slice by slice, and is filled
//! with a pattern so that an executor's test sees it too.

use crate::ids::{BufferId, RankId};
use crate::interpret::Fault;
use crate::layout::Layout;
use crate::plan::{Overlap, Plan, Role};

/// What memory holds before anything is written.
const PATTERN: u8 = 0xA5;

/// What an operand names in one iteration of one copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Location {
    pub rank: RankId,
    pub buffer: BufferId,
    pub cell: u32,
    pub copy: u32,
    pub iteration: u64,
}

pub(super) struct Memory {
    layout: Layout,
    copies: u64,
    /// Scratch or not, by buffer.
    scratch: Vec<bool>,
    /// By rank and buffer.
    bytes: Vec<Vec<Vec<u8>>>,
    /// By rank and buffer: whether (cell, copy, iteration) holds something.
    defined: Vec<Vec<Vec<bool>>>,
    /// Sorted by rank, left buffer, left cell; empty out of place.
    overlaps: Vec<Overlap>,
}

impl Memory {
    pub(super) fn new(
        plan: &Plan,
        layout: &Layout,
        in_place: bool,
        input: &mut dyn FnMut(BufferId, RankId) -> Vec<u8>,
    ) -> Result<Memory, Fault> {
        let mut overlaps = if in_place { plan.overlaps.clone() } else { Vec::new() };
        overlaps.sort_by_key(|o| (o.rank, o.left, o.left_cell));
        let copies = u64::from(plan.header.copies);
        let slices = copies * layout.slices();
        let mut memory = Memory {
            layout: layout.clone(),
            copies,
            scratch: plan.buffers.iter().map(|b| b.role == Role::Scratch).collect(),
            bytes: Vec::new(),
            defined: Vec::new(),
            overlaps,
        };
        for rank in (0..plan.header.ranks).map(RankId) {
            let mut bytes = Vec::new();
            let mut defined = Vec::new();
            for (i, buffer) in plan.buffers.iter().enumerate() {
                let id = BufferId::new(i);
                let here = buffer.at.holds(rank);
                let (expected, cells) = match buffer.role {
                    _ if !here => (0, 0),
                    Role::Scratch => (layout.scratch_bytes(rank), plan.header.scratch_cells[rank.index()]),
                    Role::Send | Role::Recv => (layout.buffer_bytes(id), buffer.blocks * plan.header.cells),
                };
                if here && buffer.role == Role::Send {
                    let entry = input(id, rank);
                    if entry.len() as u64 != expected {
                        return Err(Fault::Input { buffer: id, rank, expected, given: entry.len() as u64 });
                    }
                    bytes.push(entry);
                } else {
                    bytes.push(vec![PATTERN; expected as usize]);
                }
                defined.push(vec![buffer.role == Role::Send; (u64::from(cells) * slices) as usize]);
            }
            memory.bytes.push(bytes);
            memory.defined.push(defined);
        }
        memory.overlay(plan);
        Ok(memory)
    }

    /// The bytes at a place, if something wrote them; `position` is the length class of what is expected there.
    pub(super) fn read(&self, at: &Location, position: u32) -> Option<&[u8]> {
        let at = self.resolve(at);
        let defined = self.defined[at.rank.index()][at.buffer.index()][self.slice_index(&at)];
        let range = self.range(&at, position);
        defined.then(|| &self.bytes[at.rank.index()][at.buffer.index()][range])
    }

    pub(super) fn write(&mut self, at: &Location, position: u32, value: &[u8]) {
        let at = self.resolve(at);
        let range = self.range(&at, position);
        self.bytes[at.rank.index()][at.buffer.index()][range].copy_from_slice(value);
        let slice = self.slice_index(&at);
        self.defined[at.rank.index()][at.buffer.index()][slice] = true;
    }

    /// All bytes by rank and buffer, scratch emptied.
    pub(super) fn into_buffers(mut self) -> Vec<Vec<Vec<u8>>> {
        for buffers in &mut self.bytes {
            for (bytes, _) in buffers.iter_mut().zip(&self.scratch).filter(|(_, scratch)| **scratch) {
                *bytes = Vec::new();
            }
        }
        self.bytes
    }

    fn range(&self, at: &Location, position: u32) -> std::ops::Range<usize> {
        let range = if self.scratch[at.buffer.index()] {
            self.layout.scratch_slice(at.rank, at.copy, at.cell, position, at.iteration)
        } else {
            let size = u64::from(self.layout.dtype().size());
            let elements = self.layout.place_slice(at.copy, at.cell, at.iteration);
            elements.start * size..elements.end * size
        };
        range.start as usize..range.end as usize
    }

    fn slice_index(&self, at: &Location) -> usize {
        let slices = self.layout.slices();
        ((u64::from(at.cell) * self.copies + u64::from(at.copy)) * slices + at.iteration) as usize
    }

    /// Where a place really lies.
    fn resolve(&self, at: &Location) -> Location {
        let key = (at.rank, at.buffer, at.cell);
        let after = self.overlaps.partition_point(|o| (o.rank, o.left, o.left_cell) <= key);
        let found = self.overlaps[..after]
            .last()
            .filter(|o| (o.rank, o.left) == (at.rank, at.buffer) && at.cell - o.left_cell < o.cells);
        match found {
            Some(o) => Location { buffer: o.right, cell: o.right_cell + (at.cell - o.left_cell), ..*at },
            None => *at,
        }
    }

    /// Puts the entry values of overlapped cells where they really lie.
    fn overlay(&mut self, plan: &Plan) {
        let k = plan.header.cells;
        for o in std::mem::take(&mut self.overlaps) {
            for i in 0..o.cells {
                for copy in 0..plan.header.copies {
                    let at = |cell: u32| {
                        let place = self.layout.place(copy, cell);
                        let size = u64::from(self.layout.dtype().size());
                        (place.start * size) as usize..(place.end * size) as usize
                    };
                    let (from, to) = (at(o.left_cell + i), at(o.right_cell + i));
                    debug_assert_eq!((o.left_cell + i) % k, (o.right_cell + i) % k);
                    let value = self.bytes[o.rank.index()][o.left.index()][from].to_vec();
                    self.bytes[o.rank.index()][o.right.index()][to].copy_from_slice(&value);
                    for iteration in 0..self.layout.slices() {
                        let cell = o.right_cell + i;
                        let (rank, buffer) = (o.rank, o.right);
                        let slice = self.slice_index(&Location { rank, buffer, cell, copy, iteration });
                        self.defined[rank.index()][buffer.index()][slice] = true;
                    }
                }
            }
            self.overlaps.push(o);
        }
    }
}
