//! Typed folds: several sources to several destinations, rounded once.
//!
//! In: addresses, a count, type, operator, and where rounding happens. Out: the bytes that `plan::arith::fold`
//! defines, which is what the tests compare with (NaN payloads apart). The one hard idea: a block of
//! elements is loaded whole before it is stored, so that a destination may be one of the sources (in place) and the
//! compiler may still use vectors; addresses need no alignment. The loops are compiled for each vector set of the
//! machine and chosen once for all calls of a kind ([`Kernel`]).

mod elements;
mod simd;
mod stores;
mod types;
mod vectors;

use plan::dtype::{Dtype, Factor, Op};
use plan::pre::Pre;

pub use self::simd::Set;

/// A fold of `count` elements.
#[derive(Debug, Clone, Copy)]
pub struct Fold<'a> {
    /// Operands, from left to right; at least one.
    pub sources: &'a [*const u8],
    /// Where the result goes; may be empty.
    pub destinations: &'a [*mut u8],
    /// How many elements.
    pub count: usize,
    /// Round after each operand.
    pub round_each: bool,
    /// The outer part of avg: divide by this before the last rounding.
    pub divisor: Option<u32>,
    /// The sources that the operator's inner part acts on: premulsum multiplies them by its factor first.
    pub pre: Pre,
    /// Destinations to store to past the caches, where they allow it (16 bytes must lie at a multiple of 16): for results that are not read
    /// soon, in calls larger than the caches, and for slots and places of peers that another core's cache holds. Such stores are complete (fenced) on return.
    pub stream: Stream,
}

/// A set of destinations, by number; those from the 32nd on are in none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stream(u32);

impl Stream {
    /// No destination.
    pub const NONE: Stream = Stream(0);

    /// Those for which it is so.
    pub fn of(destinations: impl IntoIterator<Item = bool>) -> Stream {
        let numbered = destinations.into_iter().take(32).enumerate();
        Stream(numbered.fold(0, |set, (k, is)| set | u32::from(is) << k))
    }

    /// And destination `k`.
    #[inline]
    #[must_use]
    pub fn and(self, k: usize) -> Stream {
        Stream(self.0 | u32::from(k < 32) << (k & 31))
    }

    /// Whether there is none.
    #[inline]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether destination `k` is one.
    #[inline(always)]
    pub fn has(self, k: usize) -> bool {
        k < 32 && self.0 >> k & 1 == 1
    }
}

/// What an operator does beside combining. None does both.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// Divide the result, before it is rounded.
    Divide(u32),
    /// Multiply the sources marked, before they are combined.
    Multiply(Factor),
}

/// The loops for one type and operator, chosen once: a call costs no look at what the machine has.
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    fold: simd::Loop,
    copy: simd::Loop,
    size: usize,
    has_post: bool,
    factor: Option<Factor>,
}

impl Kernel {
    /// The best that this machine has.
    pub fn new(dtype: Dtype, op: Op) -> Kernel {
        Kernel::of_set(dtype, op, Set::available().next_back().unwrap_or(Set::Baseline))
    }

    /// By a vector set; by the baseline if the machine does not have it.
    pub fn of_set(dtype: Dtype, op: Op, set: Set) -> Kernel {
        let set = Set::available().find(|&has| has == set).unwrap_or(Set::Baseline);
        Kernel {
            fold: simd::select(dtype, op, set),
            copy: simd::select(Dtype::U8, Op::Sum, set),
            size: dtype.size() as usize,
            has_post: op.has_post(),
            factor: op.factor(),
        }
    }

    /// Folds.
    ///
    /// # Safety
    /// Every source is readable and every destination writable for `count` elements, by this thread alone while this
    /// runs. A destination is either exactly one of the sources or destinations, or apart from it.
    #[inline]
    pub unsafe fn run(&self, fold: &Fold<'_>) {
        if fold.count == 0 {
            return;
        }
        let divisor = fold.divisor.filter(|_| self.has_post).map(Part::Divide);
        let factor = self.factor.filter(|_| !fold.pre.is_none()).map(Part::Multiply);
        let part = divisor.or(factor);
        match (fold.sources, part) {
            ([], _) => {}
            // SAFETY: the caller's promise.
            ([only], None) => unsafe { self.copy(*only, fold) },
            // SAFETY: the caller's promise; there are sources.
            _ => unsafe { (self.fold)(fold, part) },
        }
    }

    unsafe fn copy(&self, from: *const u8, fold: &Fold<'_>) {
        let bytes = fold.count * self.size;
        if !fold.stream.is_none() {
            // SAFETY: the caller's promise, in bytes.
            unsafe { (self.copy)(&Fold { count: bytes, round_each: false, ..*fold }, None) };
            return;
        }
        for &to in fold.destinations {
            if !std::ptr::addr_eq(to, from) {
                // SAFETY: the caller's promise; they are not the same, so they are apart.
                unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
            }
        }
    }
}

/// Folds, by the best that this machine has: looks that up, which takes as long as some tens of elements.
///
/// # Safety
/// As [`Kernel::run`].
pub unsafe fn fold(dtype: Dtype, op: Op, fold: &Fold<'_>) {
    // SAFETY: the caller's promise.
    unsafe { Kernel::new(dtype, op).run(fold) }
}
