//! Element types: how they are loaded into the type that a step accumulates in, combined there, and stored.
//!
//! In: arrays of elements. Out: arrays of accumulators, and back. Without a branch on an element, so that the compiler
//! makes vectors of it; where a machine has instructions of its own for a conversion, the vector set knows
//! ([`Vectors`]). What they compute is defined in `plan::arith` and `plan::float8`.

use half::{bf16, f16};
use plan::float8::{F8E4m3, F8E5m2};

use super::vectors::{Vectors, each, narrow_bits};

/// An element type and the type that a step accumulates in.
pub(super) trait Element: Copy {
    type Acc: Accumulator;
    /// Whether a sum in `Acc` differs from one in the element type.
    const ROUNDS: bool;
    fn widen<V: Vectors, const L: usize>(from: [Self; L]) -> [Self::Acc; L];
    fn narrow<V: Vectors, const L: usize>(from: [Self::Acc; L]) -> [Self; L];
}

pub(super) trait Accumulator: Copy {
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn min(self, other: Self) -> Self;
    fn max(self, other: Self) -> Self;
    fn div(self, by: u32) -> Self;
    /// A factor: the nearest.
    fn of(factor: f64) -> Self;
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
            #[inline(always)]
            fn of(factor: f64) -> $t {
                factor as $t
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
                ($wide::from(self) / $wide::from(Ord::max(by, 1))) as $t
            }
            #[inline(always)]
            fn of(factor: f64) -> $t {
                factor as $t
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
            fn widen<V: Vectors, const L: usize>(from: [$t; L]) -> [$t; L] {
                from
            }
            #[inline(always)]
            fn narrow<V: Vectors, const L: usize>(from: [$t; L]) -> [$t; L] {
                from
            }
        }
    };
}

float!(f32);
float!(f64);
integer!(i8, i64);
integer!(i32, i64);
integer!(i64, i64);
integer!(u8, u32);
integer!(u32, u32);
integer!(u64, u64);
own_accumulator!(f32);
own_accumulator!(f64);
own_accumulator!(i8);
own_accumulator!(i32);
own_accumulator!(i64);
own_accumulator!(u8);
own_accumulator!(u32);
own_accumulator!(u64);

impl Element for f16 {
    type Acc = f32;
    const ROUNDS: bool = true;

    #[inline(always)]
    fn widen<V: Vectors, const L: usize>(from: [f16; L]) -> [f32; L] {
        V::widen_f16(each(from, f16::to_bits))
    }

    #[inline(always)]
    fn narrow<V: Vectors, const L: usize>(from: [f32; L]) -> [f16; L] {
        each(V::narrow_f16(from), f16::from_bits)
    }
}

impl Element for bf16 {
    type Acc = f32;
    const ROUNDS: bool = true;

    #[inline(always)]
    fn widen<V: Vectors, const L: usize>(from: [bf16; L]) -> [f32; L] {
        each(from, |x| f32::from_bits(u32::from(x.to_bits()) << 16))
    }

    /// To nearest, ties to even; a NaN stays one. Without a branch, so that it becomes vectors.
    #[inline(always)]
    fn narrow<V: Vectors, const L: usize>(from: [f32; L]) -> [bf16; L] {
        each(from, |x| {
            let bits = x.to_bits();
            let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
            let quiet = bits >> 16 | 0x40;
            bf16::from_bits(if x.is_nan() { quiet } else { rounded } as u16)
        })
    }
}

impl Element for F8E4m3 {
    type Acc = f32;
    const ROUNDS: bool = true;

    /// As an f16 of which the exponent is 8 too small; only the NaN is none there.
    #[inline(always)]
    fn widen<V: Vectors, const L: usize>(from: [F8E4m3; L]) -> [f32; L] {
        let halves = each(from, |x| {
            let bits = u16::from(x.0);
            let nan = if bits & 0x7f == 0x7f { 0x7c00 } else { 0 };
            (bits & 0x80) << 8 | (bits & 0x7f) << 7 | nan
        });
        each(V::widen_f16(halves), |x| x * 256.0)
    }

    #[inline(always)]
    fn narrow<V: Vectors, const L: usize>(from: [f32; L]) -> [F8E4m3; L] {
        each(from, |x| F8E4m3(narrow_bits::<3, -6, 0x7f, 0x7f>(x) as u8))
    }
}

impl Element for F8E5m2 {
    type Acc = f32;
    const ROUNDS: bool = true;

    /// The upper half of an f16.
    #[inline(always)]
    fn widen<V: Vectors, const L: usize>(from: [F8E5m2; L]) -> [f32; L] {
        V::widen_f16(each(from, |x| u16::from(x.0) << 8))
    }

    #[inline(always)]
    fn narrow<V: Vectors, const L: usize>(from: [f32; L]) -> [F8E5m2; L] {
        each(from, |x| F8E5m2(narrow_bits::<2, -14, 0x7c, 0x7f>(x) as u8))
    }
}
