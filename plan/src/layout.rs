//! Where cells lie once the counts are known: the only place that knows bytes.
//!
//! In: a plan, the elements of a block, the element type, the bytes of a slot. Out: ranges of elements for every
//! cell, copy and slice, the number of slices, offsets within scratch. The one hard idea: a boundary depends on its
//! fraction of the block alone (`cut`), so cutting finer (more cells, more copies) adds boundaries and moves none.
//! Cells therefore differ in length, and nothing may assume that they do not.
//!
//! All arithmetic that a count can overflow is done in 128 bits by [`Layout::new`], which refuses what does not fit
//! an address; what a `Layout` answers afterwards cannot overflow. A `Layout` does not promise aligned addresses.

use std::ops::Range;

use crate::dtype::Dtype;
use crate::ids::{BufferId, RankId};
use crate::plan::{Plan, Role};

/// From this many bytes of a block on, cuts fall on multiples of [`ALIGN_BYTES`].
pub const ALIGNED_FROM: u64 = 64 << 10;
/// The bytes that cuts of large blocks are multiples of (relative to the block's start).
pub const ALIGN_BYTES: u32 = 16;
/// The least number of bytes of a slot.
pub const MIN_SLOT_BYTES: u32 = 16;
/// Scratch cells start at multiples of this many bytes.
pub const SCRATCH_ALIGN: u64 = 64;
/// The most bytes that one buffer, or the scratch of one rank, may have.
pub const MAX_BYTES: u64 = i64::MAX as u64;

/// Where the cells of a plan lie for one count, element type and slot size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    dtype: Dtype,
    elements: u64,
    cells: u32,
    copies: u32,
    align: u32,
    slot_elements: u64,
    slice_elements: u64,
    slices: u64,
    largest_cell: u64,
    buffer_blocks: Vec<u32>,
    scratch_cells: Vec<u32>,
}

/// Why a plan has no layout for these counts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// `header.cells` or `header.copies` is 0 (a verified plan never says so).
    #[error("the plan cuts blocks into no cells, or has no copies")]
    Empty,
    /// A slot must hold 16 bytes.
    #[error("a slot of {slot_bytes} bytes is too small: it must hold at least {MIN_SLOT_BYTES}")]
    SlotTooSmall {
        /// What was asked for.
        slot_bytes: u32,
    },
    /// One block is larger than any address space.
    #[error("a block of {elements} elements has more bytes than can be addressed")]
    BlockTooLarge {
        /// What was asked for.
        elements: u64,
    },
    /// A buffer of the caller is larger than any address space.
    #[error("buffer `{buffer}` would have {bytes} bytes, more than can be addressed")]
    BufferTooLarge {
        /// Its name.
        buffer: String,
        /// The bytes it would have.
        bytes: u128,
    },
    /// The scratch of a rank is larger than any address space.
    #[error("rank {} would need {bytes} bytes of scratch, more than can be addressed", rank.0)]
    ScratchTooLarge {
        /// Whose.
        rank: RankId,
        /// The bytes it would need.
        bytes: u128,
    },
}

/// The element at which the fraction `p/q` of a block of `elements` ends: `align * floor(p * elements / (q * align))`,
/// and `elements` for the whole. Monotone in `p/q`, and a function of the fraction alone.
///
/// `p <= q`, `q > 0` and `align > 0`.
pub fn cut(p: u64, q: u64, elements: u64, align: u32) -> u64 {
    debug_assert!(p <= q && q > 0 && align > 0);
    if p >= q {
        return elements;
    }
    let align = u128::from(align);
    // At most (2^64 - 1)^2 above and 2^64 * 2^32 below: neither overflows; the result is at most `elements`.
    (align * (u128::from(p) * u128::from(elements) / (u128::from(q) * align))) as u64
}

/// What cuts of a block are multiples of: 16 bytes for large blocks, one element for small ones.
pub fn cut_align(elements: u64, dtype: Dtype) -> u32 {
    let bytes = u128::from(elements) * u128::from(dtype.size());
    if bytes >= u128::from(ALIGNED_FROM) { ALIGN_BYTES / dtype.size() } else { 1 }
}

impl Layout {
    /// The layout of `plan` for blocks of `elements` and slots of `slot_bytes`.
    pub fn new(plan: &Plan, elements: u64, dtype: Dtype, slot_bytes: u32) -> Result<Layout, LayoutError> {
        let header = &plan.header;
        if header.cells == 0 || header.copies == 0 {
            return Err(LayoutError::Empty);
        }
        if slot_bytes < MIN_SLOT_BYTES {
            return Err(LayoutError::SlotTooSmall { slot_bytes });
        }
        if u128::from(elements) * u128::from(dtype.size()) > u128::from(MAX_BYTES) {
            return Err(LayoutError::BlockTooLarge { elements });
        }
        let align = cut_align(elements, dtype);
        let slot_elements = u64::from(slot_bytes / dtype.size());
        let slice_elements = slot_elements - slot_elements % u64::from(align);
        let parts = u64::from(header.cells) * u64::from(header.copies);
        let largest_cell = largest_part(parts, elements, align);
        let layout = Layout {
            dtype,
            elements,
            cells: header.cells,
            copies: header.copies,
            align,
            slot_elements,
            slice_elements,
            slices: largest_cell.div_ceil(slice_elements).max(1),
            largest_cell,
            buffer_blocks: plan.buffers.iter().map(|b| b.blocks).collect(),
            scratch_cells: header.scratch_cells.clone(),
        };
        layout.check_sizes(plan)?;
        Ok(layout)
    }

    /// The element type.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// N: the elements of a block.
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// A: what cuts are multiples of, in elements.
    pub fn align(&self) -> u32 {
        self.align
    }

    /// T: how often a body runs; enough for every cell of every copy, at least 1.
    pub fn slices(&self) -> u64 {
        self.slices
    }

    /// L: the elements of a slice, except the last of a cell.
    pub fn slice_elements(&self) -> u64 {
        self.slice_elements
    }

    /// The elements of the largest cell of any copy.
    pub fn largest_cell(&self) -> u64 {
        self.largest_cell
    }

    /// The part of the cell at `position` that copy `copy` works on, in elements within its block.
    pub fn cell(&self, copy: u32, position: u32) -> Range<u64> {
        debug_assert!(copy < self.copies && position < self.cells);
        let parts = u64::from(self.cells) * u64::from(self.copies);
        let part = u64::from(position) * u64::from(self.copies) + u64::from(copy);
        let at = |p| cut(p, parts, self.elements, self.align);
        at(part)..at(part + 1)
    }

    /// The same for a cell counted through all blocks of a buffer, in elements within the buffer.
    pub fn place(&self, copy: u32, cell: u32) -> Range<u64> {
        shift(self.cell(copy, cell % self.cells), self.block_start(cell))
    }

    /// What iteration `t` handles of the cell at `position`, in elements within its block; may be empty.
    pub fn slice(&self, copy: u32, position: u32, t: u64) -> Range<u64> {
        let cell = self.cell(copy, position);
        let at = |t: u64| {
            (cell.start + t.saturating_mul(self.slice_elements).min(cell.end - cell.start)).min(cell.end)
        };
        at(t)..at(t.saturating_add(1))
    }

    /// The same for a cell counted through all blocks of a buffer, in elements within the buffer.
    pub fn place_slice(&self, copy: u32, cell: u32, t: u64) -> Range<u64> {
        shift(self.slice(copy, cell % self.cells, t), self.block_start(cell))
    }

    /// How many elements iteration `t` handles of the cell at `position`: the length of a message of that class.
    pub fn length(&self, copy: u32, position: u32, t: u64) -> u64 {
        let slice = self.slice(copy, position, t);
        slice.end - slice.start
    }

    /// How many of the next micro-steps of a step travel as one message in iteration `t`: as many as fit one slot
    /// together, at least 1. `positions` are the length classes of the micro-steps still to come, at least one; both
    /// ends of a channel agree in them, and so in the answer.
    pub fn group(&self, copy: u32, t: u64, positions: impl IntoIterator<Item = u32>) -> u32 {
        let mut room = self.slot_elements;
        let mut fitting = 0;
        for position in positions {
            let Some(rest) = room.checked_sub(self.length(copy, position, t)) else { break };
            room = rest;
            fitting += 1;
        }
        fitting.max(1)
    }

    /// The elements of a buffer of the caller; 0 for scratch.
    pub fn buffer_elements(&self, buffer: BufferId) -> u64 {
        u64::from(self.buffer_blocks[buffer.index()]) * self.elements
    }

    /// The bytes of a buffer of the caller; 0 for scratch.
    pub fn buffer_bytes(&self, buffer: BufferId) -> u64 {
        self.buffer_elements(buffer) * u64::from(self.dtype.size())
    }

    /// The bytes from one scratch cell to the next: the largest cell, padded.
    pub fn scratch_stride(&self) -> u64 {
        (self.largest_cell * u64::from(self.dtype.size())).next_multiple_of(SCRATCH_ALIGN)
    }

    /// The first byte of a scratch cell, within the scratch of `rank`. Copies have scratch cells of their own.
    pub fn scratch_offset(&self, rank: RankId, copy: u32, cell: u32) -> u64 {
        debug_assert!(copy < self.copies && cell < self.scratch_cells[rank.index()]);
        let row = u64::from(self.scratch_cells[rank.index()]);
        (u64::from(copy) * row + u64::from(cell)) * self.scratch_stride()
    }

    /// Where a scratch cell keeps what iteration `t` handles of a value that came from the cell at `position`, in
    /// bytes within the scratch of `rank`.
    pub fn scratch_slice(&self, rank: RankId, copy: u32, cell: u32, position: u32, t: u64) -> Range<u64> {
        let size = u64::from(self.dtype.size());
        let slice = self.slice(copy, position, t);
        let within = slice.start - self.cell(copy, position).start;
        let start = self.scratch_offset(rank, copy, cell) + within * size;
        start..start + (slice.end - slice.start) * size
    }

    /// The bytes of scratch that a call needs at `rank`.
    pub fn scratch_bytes(&self, rank: RankId) -> u64 {
        u64::from(self.copies) * u64::from(self.scratch_cells[rank.index()]) * self.scratch_stride()
    }

    fn block_start(&self, cell: u32) -> u64 {
        u64::from(cell / self.cells) * self.elements
    }

    fn check_sizes(&self, plan: &Plan) -> Result<(), LayoutError> {
        let size = u128::from(self.dtype.size());
        let block = u128::from(self.elements) * size;
        let callers = plan.buffers.iter().filter(|b| b.role != Role::Scratch);
        for buffer in callers {
            let bytes = u128::from(buffer.blocks) * block;
            if bytes > u128::from(MAX_BYTES) {
                return Err(LayoutError::BufferTooLarge { buffer: buffer.name.clone(), bytes });
            }
        }
        let stride = u128::from(self.scratch_stride());
        for (rank, &cells) in self.scratch_cells.iter().enumerate() {
            // Below 2^32 * 2^32 * 2^64.
            let bytes = u128::from(self.copies) * u128::from(cells) * stride;
            if bytes > u128::from(MAX_BYTES) {
                return Err(LayoutError::ScratchTooLarge { rank: RankId::new(rank), bytes });
            }
        }
        Ok(())
    }
}

fn shift(range: Range<u64>, by: u64) -> Range<u64> {
    range.start + by..range.end + by
}

/// The largest of the `parts` equal fractions of a block, without a look at each: with `units = floor(N / A)` whole
/// units, a fraction holds `floor(x)` or `floor(x) + 1` of them for `x = N / (parts * A)`, some holds the larger
/// number exactly if the units do not divide evenly, and the last one also takes the rest of N.
fn largest_part(parts: u64, elements: u64, align: u32) -> u64 {
    let whole = u64::from(align) * (elements / u64::from(align));
    let units = whole / u64::from(align);
    let even = units / parts + u64::from(!units.is_multiple_of(parts));
    let last = elements - cut(parts - 1, parts, elements, align);
    (even * u64::from(align)).max(last)
}
