//! Typed folds: several sources to several destinations, rounded once.
//!
//! In: addresses, a count, type, operator, and where rounding happens. Out: the bytes that `plan::arith::fold`
//! defines, which is what the tests compare with (NaN payloads apart). The one hard idea: a block of
//! elements is loaded whole before it is stored, so that a destination may be one of the sources (in place) and the
//! compiler may still use vectors; addresses need no alignment. The loops are compiled for each vector set of the
//! machine and chosen once (`simd`).

mod elements;
mod simd;

use plan::dtype::{Dtype, Op};

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
}

/// Folds.
///
/// # Safety
/// Every source is readable and every destination writable for `count` elements, by this thread alone while this
/// runs. A destination is either exactly one of the sources or destinations, or apart from it.
pub unsafe fn fold(dtype: Dtype, op: Op, fold: &Fold<'_>) {
    if fold.count == 0 {
        return;
    }
    let divisor = fold.divisor.filter(|_| op.has_post());
    if let ([only], None) = (fold.sources, divisor) {
        let bytes = fold.count * dtype.size() as usize;
        for &to in fold.destinations {
            if !std::ptr::addr_eq(to, *only) {
                // SAFETY: the caller's promise; they are not the same, so they are apart.
                unsafe { std::ptr::copy_nonoverlapping(*only, to, bytes) };
            }
        }
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { simd::fold(dtype, op, &Fold { divisor, ..*fold }) };
}
