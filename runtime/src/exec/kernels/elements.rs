//! Elements: how they are loaded, combined and stored, many at a time.
//!
//! In: an element type, an operator and a vector set, as types. Out: [`fold`], inlined into a function for each vector
//! set. A block of `L` elements lives in an array that the compiler keeps in vector registers.

use super::Fold;
use super::stores;
use super::types::{Accumulator, Element};
use super::vectors::Vectors;

/// An operator, as a type so that it is compiled into the loop.
pub(super) trait Operator {
    fn apply<A: Accumulator>(left: A, right: A) -> A;
}

pub(super) struct Sum;
pub(super) struct Prod;
pub(super) struct Min;
pub(super) struct Max;

impl Operator for Sum {
    #[inline(always)]
    fn apply<A: Accumulator>(left: A, right: A) -> A {
        left.add(right)
    }
}

impl Operator for Prod {
    #[inline(always)]
    fn apply<A: Accumulator>(left: A, right: A) -> A {
        left.mul(right)
    }
}

impl Operator for Min {
    #[inline(always)]
    fn apply<A: Accumulator>(left: A, right: A) -> A {
        left.min(right)
    }
}

impl Operator for Max {
    #[inline(always)]
    fn apply<A: Accumulator>(left: A, right: A) -> A {
        left.max(right)
    }
}

/// The fold, in blocks of `L` elements and then one by one.
///
/// # Safety
/// As `super::fold`; the machine has what `V` needs.
#[inline(always)]
pub(super) unsafe fn fold<V: Vectors, E: Element, O: Operator, const L: usize>(fold: &Fold<'_>) {
    // SAFETY: the caller's promise; the arms differ only in what the compiler knows. Division is apart from the rest: of
    // integers there is none in vectors, and a loop that may divide would have none at all.
    unsafe {
        match (fold.sources, fold.destinations) {
            (sources, destinations) if fold.divisor.is_some() => {
                if fold.stream {
                    stream::<V, E, O, L, true>(sources, destinations, fold);
                } else {
                    run::<V, E, O, L, true>(sources, destinations, fold);
                }
            }
            (sources, destinations) if fold.stream => {
                stream::<V, E, O, L, false>(sources, destinations, fold);
            }
            (&[a, b], &[to]) => run::<V, E, O, L, false>(&[a, b], &[to], fold),
            (&[a, b], &[to, other]) => run::<V, E, O, L, false>(&[a, b], &[to, other], fold),
            (sources, destinations) => run::<V, E, O, L, false>(sources, destinations, fold),
        }
    }
}

#[inline(always)]
unsafe fn run<V: Vectors, E: Element, O: Operator, const L: usize, const DIVIDE: bool>(
    sources: &[*const u8],
    destinations: &[*mut u8],
    fold: &Fold<'_>,
) {
    let mut at = 0;
    while fold.count - at >= L {
        // SAFETY: the elements `at..at + L` are within the count.
        unsafe { block::<V, E, O, L, DIVIDE>(sources, destinations, at, fold) };
        at = opaque(at + L);
    }
    while at < fold.count {
        // SAFETY: element `at` is within the count.
        unsafe { block::<V, E, O, 1, DIVIDE>(sources, destinations, at, fold) };
        at = opaque(at + 1);
    }
}

/// As [`run`], but past the caches where a destination allows it: one by one until the first destination is at the
/// start of a line, if it can be; then in blocks, each of whole lines there.
#[inline(always)]
unsafe fn stream<V: Vectors, E: Element, O: Operator, const L: usize, const DIVIDE: bool>(
    sources: &[*const u8],
    destinations: &[*mut u8],
    fold: &Fold<'_>,
) {
    let before_line = destinations.first().map_or(0, |&to| (to as usize).wrapping_neg() % LINE);
    let head = (before_line / size_of::<E>()).min(fold.count);
    let mut at = 0;
    while at < head {
        // SAFETY: element `at` is within the count.
        unsafe { block::<V, E, O, 1, DIVIDE>(sources, destinations, at, fold) };
        at = opaque(at + 1);
    }
    while fold.count - at >= L {
        // SAFETY: the elements `at..at + L` are within the count; the result is stored to all destinations.
        unsafe {
            let result = result::<V, E, O, L, DIVIDE>(sources, at, fold);
            for &to in destinations {
                stores::past_caches(&result, to.cast::<E>().add(at).cast());
            }
        }
        at = opaque(at + L);
    }
    while at < fold.count {
        // SAFETY: element `at` is within the count.
        unsafe { block::<V, E, O, 1, DIVIDE>(sources, destinations, at, fold) };
        at = opaque(at + 1);
    }
    stores::order();
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// The same number, of which the compiler knows nothing. Otherwise it makes vectors across blocks instead of within
/// them, which takes gathers and scatters and is eight times as slow.
#[inline(always)]
fn opaque(at: usize) -> usize {
    let mut at = at;
    // SAFETY: no instruction at all; a comment on every machine that Rust has inline assembly for.
    unsafe { std::arch::asm!("/* {0} */", inout(reg) at, options(nomem, nostack, preserves_flags)) };
    at
}

/// Folds the elements `at..at + L`.
#[inline(always)]
unsafe fn block<V: Vectors, E: Element, O: Operator, const L: usize, const DIVIDE: bool>(
    sources: &[*const u8],
    destinations: &[*mut u8],
    at: usize,
    fold: &Fold<'_>,
) {
    // SAFETY: the caller's promise.
    let result = unsafe { result::<V, E, O, L, DIVIDE>(sources, at, fold) };
    for &to in destinations {
        // SAFETY: the caller's promise: the destination is writable there.
        unsafe { to.cast::<E>().add(at).cast::<[E; L]>().write_unaligned(result) };
    }
}

/// What the elements `at..at + L` become.
#[inline(always)]
unsafe fn result<V: Vectors, E: Element, O: Operator, const L: usize, const DIVIDE: bool>(
    sources: &[*const u8],
    at: usize,
    fold: &Fold<'_>,
) -> [E; L] {
    // SAFETY: the caller's promise: the source is readable there.
    let read = |from: *const u8| unsafe { from.cast::<E>().add(at).cast::<[E; L]>().read_unaligned() };
    let (first, rest) = (sources[0], &sources[1..]);
    let mut acc: [E::Acc; L] = E::widen::<V, L>(read(first));
    for (k, &source) in rest.iter().enumerate() {
        if E::ROUNDS && fold.round_each && k > 0 {
            acc = E::widen::<V, L>(E::narrow::<V, L>(acc));
        }
        let operand = E::widen::<V, L>(read(source));
        for i in 0..L {
            acc[i] = O::apply(acc[i], operand[i]);
        }
    }
    if DIVIDE && let Some(by) = fold.divisor {
        for value in &mut acc {
            *value = value.div(by);
        }
    }
    E::narrow::<V, L>(acc)
}
