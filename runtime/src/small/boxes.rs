//! Where boxes lie in the hall.
//!
//! In: a rank, a box. Out: its tag and its bytes. A box is one cache line with the tag, in which also lies a part of at most
//! [`BESIDE`] bytes, and then [`MOST`] bytes for larger ones, at the beginning of a line. Two lines are fetched together: no pair
//! belongs to two boxes.
//!
//! A rank takes 33 KiB, however many ranks there are.

use super::call::MOST;
use super::protocol::{BOXES, Progress, Tag};

const LINE: usize = 64;

/// The bytes that fit beside a tag.
pub const BESIDE: usize = LINE - size_of::<Tag>();

/// From one box to the next.
const STRIDE: usize = (LINE + MOST).next_multiple_of(2 * LINE);

/// What the boxes of a rank take, with the word that says how far it is.
pub(crate) const BYTES: usize = size_of::<Progress>() + BOXES * STRIDE;

/// One box.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mailbox<'a> {
    /// Which call's part it holds.
    pub(crate) tag: &'a Tag,
    start: *mut u8,
}

impl<'a> Mailbox<'a> {
    /// Box `index` among those of a rank, which begin at `start`.
    ///
    /// # Safety
    /// [`BYTES`] zeroed bytes lie there for `'a`, at a multiple of 128, that nobody touches but as boxes.
    #[inline]
    pub(crate) unsafe fn of(start: *mut u8, index: usize) -> Mailbox<'a> {
        debug_assert!(index < BOXES);
        // SAFETY: within those bytes; a tag is an atomic word.
        unsafe {
            let start = start.add(size_of::<Progress>() + index * STRIDE);
            Mailbox { tag: &*start.cast::<Tag>(), start }
        }
    }

    /// Where a part of so many bytes lies.
    #[inline]
    pub(crate) fn part(&self, bytes: usize) -> *mut u8 {
        debug_assert!(bytes <= MOST);
        self.start.wrapping_add(if bytes <= BESIDE { size_of::<Tag>() } else { LINE })
    }

    /// Says that this rank waits for a part of so many bytes. A hint: it may be there already, and then comes while the tag does.
    #[inline]
    pub(crate) fn will_be_read(&self, bytes: usize) {
        self.lines(bytes).for_each(shared);
    }

    /// Says that this rank has read a part of so many bytes here and is about to write one. A hint: the lines are on their way while it
    /// still works on what it has read.
    #[inline]
    pub(crate) fn will_be_written(&self, bytes: usize) {
        own(self.start);
        self.lines(bytes).for_each(own);
    }

    /// The lines of a part apart from the tag's; none of large parts, for which such hints are no gain.
    #[inline]
    fn lines(&self, bytes: usize) -> impl Iterator<Item = *const u8> {
        let start = self.start.cast_const();
        let bytes = if (BESIDE + 1..=HINTED).contains(&bytes) { bytes } else { 0 };
        (0..bytes).step_by(LINE).map(move |at| start.wrapping_add(LINE + at))
    }
}

/// The largest part that is hinted at.
const HINTED: usize = 512;

/// Asks for a line as for reading.
#[inline(always)]
fn shared(line: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which does nothing where there is no memory.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(line.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

/// Asks for a line as for writing.
#[inline(always)]
fn own(line: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which does nothing on processors that do not have it, nor where there is no memory.
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}
