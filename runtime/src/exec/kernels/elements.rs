//! Elements: how they are loaded, combined and stored, many at a time.
//!
//! In: an element type and an operator, as types. Out: [`fold`], inlined into a function for each vector set. A block
//! of `L` elements lives in an array that the compiler keeps in vector registers.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::Fold;

/// An element type and the type that a step accumulates in.
pub(super) trait Element: Copy {
    type Acc: Accumulator;
    /// Whether a sum in `Acc` differs from one in the element type.
    const ROUNDS: bool;
    fn widen<const L: usize>(from: [Self; L]) -> [Self::Acc; L];
    fn narrow<const L: usize>(from: [Self::Acc; L]) -> [Self; L];
}

pub(super) trait Accumulator: Copy {
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn min(self, other: Self) -> Self;
    fn max(self, other: Self) -> Self;
    fn div(self, by: u32) -> Self;
}

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
/// As `super::fold`.
#[inline(always)]
pub(super) unsafe fn fold<E: Element, O: Operator, const L: usize>(fold: &Fold<'_>) {
    // SAFETY: the caller's promise; the arms differ only in what the compiler knows.
    unsafe {
        match (fold.sources, fold.destinations) {
            (&[a, b], &[to]) => run::<E, O, L>(&[a, b], &[to], fold),
            (&[a, b], &[to, other]) => run::<E, O, L>(&[a, b], &[to, other], fold),
            (sources, destinations) => run::<E, O, L>(sources, destinations, fold),
        }
    }
}

#[inline(always)]
unsafe fn run<E: Element, O: Operator, const L: usize>(
    sources: &[*const u8],
    destinations: &[*mut u8],
    fold: &Fold<'_>,
) {
    let mut at = 0;
    while fold.count - at >= L {
        // SAFETY: the elements `at..at + L` are within the count.
        unsafe { block::<E, O, L>(sources, destinations, at, fold) };
        at = opaque(at + L);
    }
    while at < fold.count {
        // SAFETY: element `at` is within the count.
        unsafe { block::<E, O, 1>(sources, destinations, at, fold) };
        at = opaque(at + 1);
    }
}

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
unsafe fn block<E: Element, O: Operator, const L: usize>(
    sources: &[*const u8],
    destinations: &[*mut u8],
    at: usize,
    fold: &Fold<'_>,
) {
    let Some((&first, rest)) = sources.split_first() else { return };
    // SAFETY: the caller's promise: the source is readable there.
    let load =
        |from: *const u8| E::widen(unsafe { from.cast::<E>().add(at).cast::<[E; L]>().read_unaligned() });
    let mut acc: [E::Acc; L] = load(first);
    for (k, &source) in rest.iter().enumerate() {
        if E::ROUNDS && fold.round_each && k > 0 {
            acc = E::widen(E::narrow(acc));
        }
        let operand = load(source);
        for i in 0..L {
            acc[i] = O::apply(acc[i], operand[i]);
        }
    }
    if let Some(by) = fold.divisor {
        for value in &mut acc {
            *value = value.div(by);
        }
    }
    let result = E::narrow(acc);
    for &to in destinations {
        // SAFETY: the caller's promise: the destination is writable there.
        unsafe { to.cast::<E>().add(at).cast::<[E; L]>().write_unaligned(result) };
    }
}

macro_rules! float {
    ($t:ident) => {
        impl Accumulator for $t {
            #[inline(always)]
            fn add(self, other: $t) -> $t {
                self + other
            }
            #[inline(always)]
            fn mul(self, other: $t) -> $t {
                self * other
            }
            // A NaN wins; -0 is below +0.
            #[inline(always)]
            fn min(self, other: $t) -> $t {
                let less = self.total_cmp(&other).is_lt();
                if self.is_nan() | (!other.is_nan() & less) { self } else { other }
            }
            #[inline(always)]
            fn max(self, other: $t) -> $t {
                let greater = self.total_cmp(&other).is_gt();
                if self.is_nan() | (!other.is_nan() & greater) { self } else { other }
            }
            #[inline(always)]
            fn div(self, by: u32) -> $t {
                self / by as $t
            }
        }
    };
}

macro_rules! integer {
    ($t:ident, $wide:ident) => {
        impl Accumulator for $t {
            #[inline(always)]
            fn add(self, other: $t) -> $t {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn mul(self, other: $t) -> $t {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn min(self, other: $t) -> $t {
                if self < other { self } else { other }
            }
            #[inline(always)]
            fn max(self, other: $t) -> $t {
                if self > other { self } else { other }
            }
            // In a type that also holds every divisor; a quotient is no larger than what is divided.
            #[inline(always)]
            fn div(self, by: u32) -> $t {
                ($wide::from(self) / $wide::from(by.max(1))) as $t
            }
        }
    };
}

macro_rules! own_accumulator {
    ($t:ident) => {
        impl Element for $t {
            type Acc = $t;
            const ROUNDS: bool = false;
            #[inline(always)]
            fn widen<const L: usize>(from: [$t; L]) -> [$t; L] {
                from
            }
            #[inline(always)]
            fn narrow<const L: usize>(from: [$t; L]) -> [$t; L] {
                from
            }
        }
    };
}

float!(f32);
float!(f64);
integer!(i32, i64);
integer!(i64, i64);
integer!(u8, u32);
own_accumulator!(f32);
own_accumulator!(f64);
own_accumulator!(i32);
own_accumulator!(i64);
own_accumulator!(u8);

impl Element for f16 {
    type Acc = f32;
    const ROUNDS: bool = true;

    #[inline(always)]
    fn widen<const L: usize>(from: [f16; L]) -> [f32; L] {
        let mut to = [0.0; L];
        from.convert_to_f32_slice(&mut to);
        to
    }

    #[inline(always)]
    fn narrow<const L: usize>(from: [f32; L]) -> [f16; L] {
        let mut to = [f16::ZERO; L];
        to.convert_from_f32_slice(&from);
        to
    }
}

impl Element for bf16 {
    type Acc = f32;
    const ROUNDS: bool = true;

    #[inline(always)]
    fn widen<const L: usize>(from: [bf16; L]) -> [f32; L] {
        from.map(|x| f32::from_bits(u32::from(x.to_bits()) << 16))
    }

    /// To nearest, ties to even; a NaN stays one. Without a branch, so that it becomes vectors.
    #[inline(always)]
    fn narrow<const L: usize>(from: [f32; L]) -> [bf16; L] {
        from.map(|x| {
            let bits = x.to_bits();
            let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
            let quiet = bits >> 16 | 0x40;
            bf16::from_bits(if x.is_nan() { quiet } else { rounded } as u16)
        })
    }
}
