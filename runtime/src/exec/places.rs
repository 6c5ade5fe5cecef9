//! Where every place of a rank lies, for one count and one set of buffers.
//!
//! In: a layout and the addresses of the caller's buffers. Out: the address and length of any cell in any iteration,
//! without a division. Lengths depend on the class of a value alone, addresses on the place.

use plan::dtype::Dtype;
use plan::ids::RankId;
use plan::layout::Layout;

use super::kernels::{Fold, Kernel};
use super::operator::{self, User};

/// The cells of a block, for every copy.
#[derive(Debug)]
pub struct Cells {
    /// Elements, cell by cell, copy by copy: `start..end` within the block.
    cells: Vec<(u64, u64)>,
    per_copy: u32,
    slice: u64,
    size: u64,
    block_bytes: u64,
    scratch_stride: u64,
    scratch_cells: u32,
}

impl Cells {
    /// All cells that `rank` may meet.
    pub fn new(layout: &Layout, cells: u32, copies: u32, rank: RankId, scratch_cells: &[u32]) -> Cells {
        let all = (0..copies).flat_map(|copy| (0..cells).map(move |position| (copy, position)));
        Cells {
            cells: all
                .map(|(copy, position)| layout.cell(copy, position))
                .map(|cell| (cell.start, cell.end))
                .collect(),
            per_copy: cells,
            slice: layout.slice_elements(),
            size: u64::from(layout.dtype().size()),
            block_bytes: layout.elements() * u64::from(layout.dtype().size()),
            scratch_stride: layout.scratch_stride(),
            scratch_cells: scratch_cells[rank.index()],
        }
    }

    /// How many elements of a value of class `class` iteration `t` handles.
    #[inline]
    pub fn length(&self, copy: u32, class: u32, t: u64) -> u64 {
        let (start, end) = self.cell(copy, class);
        (end - start).saturating_sub(t.saturating_mul(self.slice)).min(self.slice)
    }

    /// The byte at which iteration `t` begins in cell `position` of block `block`, within the buffer. Only for
    /// iterations in which the cell has a length.
    #[inline]
    pub fn user(&self, copy: u32, block: u32, position: u32, t: u64) -> u64 {
        let (start, _) = self.cell(copy, position);
        u64::from(block) * self.block_bytes + (start + t * self.slice) * self.size
    }

    /// The byte at which iteration `t` begins in a scratch cell, within the scratch of the rank.
    #[inline]
    pub fn scratch(&self, copy: u32, cell: u32, t: u64) -> u64 {
        let row = u64::from(copy) * u64::from(self.scratch_cells) + u64::from(cell);
        row * self.scratch_stride + t * self.slice * self.size
    }

    /// K.
    #[inline]
    pub fn per_block(&self) -> u32 {
        self.per_copy
    }

    #[inline]
    fn cell(&self, copy: u32, position: u32) -> (u64, u64) {
        self.cells[copy as usize * self.per_copy as usize + position as usize]
    }
}

/// What a rank calls with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    /// The first byte.
    pub start: *mut u8,
    /// How many.
    pub bytes: u64,
    /// Whether it was lent as registered memory.
    pub registered: bool,
}

// SAFETY: an address alone; what may be done with it is said where it is given to a call.
unsafe impl Send for Area {}

impl Area {
    /// No memory.
    pub const NONE: Area = Area { start: std::ptr::null_mut(), bytes: 0, registered: false };
}

/// What a step needs to know of a call.
#[derive(Debug)]
pub struct Setting {
    /// Elements' type.
    pub dtype: Dtype,
    /// How elements are combined.
    pub kernel: Kernel,
    /// The user's operator, in the place of the kernel's.
    pub(super) user: Option<User>,
    /// Whether what no one reads again is stored past the caches.
    pub stream: bool,
    /// What avg divides by.
    pub divisor: Option<u32>,
    /// How often bodies run.
    pub slices: u64,
    /// Where cells lie.
    pub cells: Cells,
}

impl Setting {
    /// Folds; false if the user's operator panicked.
    ///
    /// # Safety
    /// As [`Kernel::run`].
    #[inline]
    pub(super) unsafe fn run(&self, fold: &Fold<'_>) -> bool {
        if let Some(User { operator, .. }) = self.user.as_ref().filter(|_| fold.sources.len() > 1) {
            // SAFETY: the caller's promise.
            return unsafe { operator::fold(&**operator, fold, self.dtype.size() as usize) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.kernel.run(fold) };
        true
    }
}
