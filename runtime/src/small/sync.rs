//! The atomics that the protocol of small calls is written with, and what each of them orders. The loom tests put others in their place:
//! loom's, fewer boxes, and one of the orderings too weak.

use core::sync::atomic::Ordering;

pub(crate) use core::sync::atomic::AtomicU64;

/// Boxes of a rank for calls with a root.
pub(crate) const ROOTED: usize = 6;

/// Storing a tag: after the part.
#[inline(always)]
pub(crate) const fn put() -> Ordering {
    Ordering::Release
}

/// Looking at a tag: before the part.
#[inline(always)]
pub(crate) const fn seen() -> Ordering {
    Ordering::Acquire
}

/// Storing progress: after all parts of the call have been read.
#[inline(always)]
pub(crate) const fn told() -> Ordering {
    Ordering::Release
}

/// Looking at progress: before the box is written again.
#[inline(always)]
pub(crate) const fn heard() -> Ordering {
    Ordering::Acquire
}
