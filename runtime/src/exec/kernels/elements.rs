//! Elements: how they are loaded, combined and stored, many at a time.
//!
//! In: an element type, an operator and a vector set, as types. Out: [`fold`], inlined into a function for each vector
//! set. A block of `L` elements lives in an array that the compiler keeps in vector registers.

use super::stores;
use super::types::{Accumulator, Element};
use super::vectors::Vectors;
use super::{Fold, Part};

/// An operator, as a type so that it is compiled into the loop.
pub(super) trait Operator {
    /// Whether there may be something to do beside combining.
    const HAS_PARTS: bool = false;
    fn apply<A: Accumulator>(left: A, right: A) -> A;
}

pub(super) struct Sum;
pub(super) struct Prod;
pub(super) struct Min;
pub(super) struct Max;

impl Operator for Sum {
    const HAS_PARTS: bool = true;
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
pub(super) unsafe fn fold<V: Vectors, E: Element, O: Operator, const L: usize>(
    fold: &Fold<'_>,
    part: Option<Part>,
) {
    let Fold { sources, destinations, .. } = *fold;
    // SAFETY: the caller's promise; the arms differ only in what the compiler knows. Division is apart from the rest: of
    // integers there is none in vectors, and a loop that may divide would have none at all.
    unsafe {
        match part.filter(|_| O::HAS_PARTS) {
            Some(Part::Divide(by)) => all::<V, E, O, Divide, L>(sources, destinations, fold, by),
            Some(Part::Multiply(factor)) => {
                all::<V, E, O, Multiply, L>(sources, destinations, fold, E::Acc::of(factor.value()));
            }
            None => match (sources, destinations) {
                (&[a, b], &[to]) if fold.stream.is_none() => {
                    run::<V, E, O, Nothing, L>(&[a, b], &[to], fold, ());
                }
                (&[a, b], &[to, other]) if fold.stream.is_none() => {
                    run::<V, E, O, Nothing, L>(&[a, b], &[to, other], fold, ());
                }
                _ => all::<V, E, O, Nothing, L>(sources, destinations, fold, ()),
            },
        }
    }
}

/// What a step does beside combining, as a type so that it is compiled into the loop, or is not there.
trait Beside<A> {
    /// What it needs to know.
    type By: Copy;
    /// Done to a block of source `k` before it is combined.
    fn before<const L: usize>(block: [A; L], by: Self::By, marked: bool) -> [A; L];
    /// Done to the result.
    fn after<const L: usize>(block: [A; L], by: Self::By) -> [A; L];
}

struct Nothing;
struct Divide;
struct Multiply;

impl<A> Beside<A> for Nothing {
    type By = ();
    #[inline(always)]
    fn before<const L: usize>(block: [A; L], _: (), _: bool) -> [A; L] {
        block
    }
    #[inline(always)]
    fn after<const L: usize>(block: [A; L], _: ()) -> [A; L] {
        block
    }
}

impl<A: Accumulator> Beside<A> for Divide {
    type By = u32;
    #[inline(always)]
    fn before<const L: usize>(block: [A; L], _: u32, _: bool) -> [A; L] {
        block
    }
    #[inline(always)]
    fn after<const L: usize>(mut block: [A; L], by: u32) -> [A; L] {
        for value in &mut block {
            *value = value.div(by);
        }
        block
    }
}

impl<A: Accumulator> Beside<A> for Multiply {
    type By = A;
    #[inline(always)]
    fn before<const L: usize>(mut block: [A; L], by: A, marked: bool) -> [A; L] {
        if marked {
            for value in &mut block {
                *value = value.mul(by);
            }
        }
        block
    }
    #[inline(always)]
    fn after<const L: usize>(block: [A; L], _: A) -> [A; L] {
        block
    }
}

/// Any number of sources and destinations, past the caches or not.
#[inline(always)]
unsafe fn all<V: Vectors, E: Element, O: Operator, B: Beside<E::Acc>, const L: usize>(
    sources: &[*const u8],
    destinations: &[*mut u8],
    fold: &Fold<'_>,
    by: B::By,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if !fold.stream.is_none() {
            stream::<V, E, O, B, L>(sources, destinations, fold, by);
        } else {
            run::<V, E, O, B, L>(sources, destinations, fold, by);
        }
    }
}

#[inline(always)]
unsafe fn run<V: Vectors, E: Element, O: Operator, B: Beside<E::Acc>, const L: usize>(
    sources: &[*const u8],
    destinations: &[*mut u8],
    fold: &Fold<'_>,
    by: B::By,
) {
    let mut at = 0;
    while fold.count - at >= L {
        // SAFETY: the elements `at..at + L` are within the count.
        unsafe { block::<V, E, O, B, L>(sources, destinations, at, fold, by) };
        at = opaque(at + L);
    }
    while at < fold.count {
        // SAFETY: element `at` is within the count.
        unsafe { block::<V, E, O, B, 1>(sources, destinations, at, fold, by) };
        at = opaque(at + 1);
    }
}

/// As [`run`], but past the caches to some destinations, where they allow it: one by one until the first of them is at the
/// start of a line, if it can be; then in blocks, each of whole lines there.
#[inline(always)]
unsafe fn stream<V: Vectors, E: Element, O: Operator, B: Beside<E::Acc>, const L: usize>(
    sources: &[*const u8],
    destinations: &[*mut u8],
    fold: &Fold<'_>,
    by: B::By,
) {
    let first = destinations.iter().enumerate().find(|(k, _)| fold.stream.has(*k));
    let before_line = first.map_or(0, |(_, &to)| (to as usize).wrapping_neg() % LINE);
    let head = (before_line / size_of::<E>()).min(fold.count);
    let mut at = 0;
    while at < head {
        // SAFETY: element `at` is within the count.
        unsafe { block::<V, E, O, B, 1>(sources, destinations, at, fold, by) };
        at = opaque(at + 1);
    }
    while fold.count - at >= L {
        // SAFETY: the elements `at..at + L` are within the count; the result is stored to all destinations.
        unsafe {
            let result = result::<V, E, O, B, L>(sources, at, fold, by);
            for (k, &to) in destinations.iter().enumerate() {
                let to = to.cast::<E>().add(at).cast::<[E; L]>();
                if fold.stream.has(k) {
                    stores::past_caches(&result, to);
                } else {
                    to.write_unaligned(result);
                }
            }
        }
        at = opaque(at + L);
    }
    while at < fold.count {
        // SAFETY: element `at` is within the count.
        unsafe { block::<V, E, O, B, 1>(sources, destinations, at, fold, by) };
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
unsafe fn block<V: Vectors, E: Element, O: Operator, B: Beside<E::Acc>, const L: usize>(
    sources: &[*const u8],
    destinations: &[*mut u8],
    at: usize,
    fold: &Fold<'_>,
    by: B::By,
) {
    // SAFETY: the caller's promise.
    let result = unsafe { result::<V, E, O, B, L>(sources, at, fold, by) };
    for &to in destinations {
        // SAFETY: the caller's promise: the destination is writable there.
        unsafe { to.cast::<E>().add(at).cast::<[E; L]>().write_unaligned(result) };
    }
}

/// What the elements `at..at + L` become.
#[inline(always)]
unsafe fn result<V: Vectors, E: Element, O: Operator, B: Beside<E::Acc>, const L: usize>(
    sources: &[*const u8],
    at: usize,
    fold: &Fold<'_>,
    by: B::By,
) -> [E; L] {
    // SAFETY: the caller's promise: the source is readable there.
    let read = |from: *const u8| unsafe { from.cast::<E>().add(at).cast::<[E; L]>().read_unaligned() };
    let (first, rest) = (sources[0], &sources[1..]);
    let mut acc = B::before(E::widen::<V, L>(read(first)), by, fold.pre.has(0));
    for (k, &source) in rest.iter().enumerate() {
        if E::ROUNDS && fold.round_each && k > 0 {
            acc = E::widen::<V, L>(E::narrow::<V, L>(acc));
        }
        let operand = B::before(E::widen::<V, L>(read(source)), by, fold.pre.has(k + 1));
        for i in 0..L {
            acc[i] = O::apply(acc[i], operand[i]);
        }
    }
    E::narrow::<V, L>(B::after(acc, by))
}
