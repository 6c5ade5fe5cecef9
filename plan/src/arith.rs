//! What the operators do to elements: the definition that every kernel is tested against.
//!
//! In: operands as bytes of one element type. Out: the bytes that a step stores. Plain on purpose: executors have
//! fast kernels of their own. The one hard idea is where rounding happens (plan.md §8). 16- and 8-bit floats are
//! folded in f32 and rounded to their type **once** per step (after each operand if `round_each`); f32 and f64 round at each
//! operation; the outer part of `avg` acts before the last rounding, the factor of `premulsum` before an operand is
//! combined, in the type that the step accumulates in. Nearest, ties to even; subnormals are kept.
//!
//! min and max let a NaN win and put -0 below +0, so that they are associative and commutative to the bit. NaN
//! payloads are unspecified, except that one operand alone is copied bit by bit. Integers wrap; their `avg` divides
//! the wrapped sum and truncates towards zero.

use half::{bf16, f16};

use crate::dtype::{Dtype, Factor, Op};
use crate::float8::{F8E4m3, F8E5m2};
use crate::pre::Pre;

/// How a step treats its operands, beside the operator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rounding {
    /// Round to the element type after each operand, not once at the end.
    pub round_each: bool,
    /// The operator's outer part, if it is due: for `avg`, what to divide by; without effect for the others.
    pub post: Option<u32>,
    /// The operands that the operator's inner part acts on: for `premulsum`, those that are entry values.
    pub pre: Pre,
}

/// Folds `operands` from left to right into `to`, element by element. All have as many bytes as `to`, a whole number
/// of elements; there is at least one.
pub fn fold(dtype: Dtype, op: Op, operands: &[&[u8]], rounding: Rounding, to: &mut [u8]) {
    let Rounding { round_each, post, pre } = rounding;
    let parts = Parts {
        round_each,
        divisor: post.filter(|_| op.has_post()),
        factor: op.factor().filter(|_| !pre.is_none()),
        pre,
    };
    if let ([only], Parts { divisor: None, factor: None, .. }) = (operands, parts) {
        to.copy_from_slice(only);
        return;
    }
    match dtype {
        Dtype::F32 => fold_as::<f32>(op, operands, parts, to),
        Dtype::F64 => fold_as::<f64>(op, operands, parts, to),
        Dtype::F16 => fold_as::<f16>(op, operands, parts, to),
        Dtype::Bf16 => fold_as::<bf16>(op, operands, parts, to),
        Dtype::F8E4m3 => fold_as::<F8E4m3>(op, operands, parts, to),
        Dtype::F8E5m2 => fold_as::<F8E5m2>(op, operands, parts, to),
        Dtype::I8 => fold_as::<i8>(op, operands, parts, to),
        Dtype::I32 => fold_as::<i32>(op, operands, parts, to),
        Dtype::I64 => fold_as::<i64>(op, operands, parts, to),
        Dtype::U8 => fold_as::<u8>(op, operands, parts, to),
        Dtype::U32 => fold_as::<u32>(op, operands, parts, to),
        Dtype::U64 => fold_as::<u64>(op, operands, parts, to),
    }
}

/// An element's value, for comparisons and messages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// Of a floating-point type; exact, since f64 holds them all.
    Float(f64),
    /// Of an integer type.
    Int(i128),
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Number::Float(x) => std::fmt::Debug::fmt(x, f),
            Number::Int(i) => i.fmt(f),
        }
    }
}

/// The value of one element, `dtype.size()` bytes in native order.
pub fn number(dtype: Dtype, bytes: &[u8]) -> Number {
    match dtype {
        Dtype::F32 => Number::Float(f64::from(f32::load(bytes))),
        Dtype::F64 => Number::Float(f64::load(bytes)),
        Dtype::F16 => Number::Float(f64::from(<f16 as Element>::load(bytes))),
        Dtype::Bf16 => Number::Float(f64::from(<bf16 as Element>::load(bytes))),
        Dtype::F8E4m3 => Number::Float(f64::from(<F8E4m3 as Element>::load(bytes))),
        Dtype::F8E5m2 => Number::Float(f64::from(<F8E5m2 as Element>::load(bytes))),
        Dtype::I8 => Number::Int(i128::from(i8::load(bytes))),
        Dtype::I32 => Number::Int(i128::from(i32::load(bytes))),
        Dtype::I64 => Number::Int(i128::from(i64::load(bytes))),
        Dtype::U8 => Number::Int(i128::from(u8::load(bytes))),
        Dtype::U32 => Number::Int(i128::from(u32::load(bytes))),
        Dtype::U64 => Number::Int(i128::from(u64::load(bytes))),
    }
}

/// An element type: how it is stored, and how it is combined in the type that a step accumulates in.
trait Element: Copy {
    /// The type that a step accumulates in.
    type Acc: Accumulator;
    const SIZE: usize;
    fn load(bytes: &[u8]) -> Self::Acc;
    fn store(acc: Self::Acc, bytes: &mut [u8]);
    /// To the element type and back.
    fn round(acc: Self::Acc) -> Self::Acc;
}

trait Accumulator: Copy {
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn min(self, other: Self) -> Self;
    fn max(self, other: Self) -> Self;
    fn div(self, by: u32) -> Self;
    /// A factor: the nearest.
    fn of(factor: f64) -> Self;
}

/// What a step does beside combining.
#[derive(Clone, Copy)]
struct Parts {
    round_each: bool,
    divisor: Option<u32>,
    factor: Option<Factor>,
    pre: Pre,
}

fn fold_as<E: Element>(op: Op, operands: &[&[u8]], parts: Parts, to: &mut [u8]) {
    for (i, to) in to.chunks_exact_mut(E::SIZE).enumerate() {
        let load = |k: usize| {
            let value = E::load(&operands[k][i * E::SIZE..][..E::SIZE]);
            match parts.factor.filter(|_| parts.pre.has(k)) {
                Some(factor) => value.mul(E::Acc::of(factor.value())),
                None => value,
            }
        };
        let mut acc = load(0);
        for k in 1..operands.len() {
            if parts.round_each && k > 1 {
                acc = E::round(acc);
            }
            acc = combine(op, acc, load(k));
        }
        if let Some(divisor) = parts.divisor {
            acc = acc.div(divisor);
        }
        E::store(acc, to);
    }
}

fn combine<A: Accumulator>(op: Op, left: A, right: A) -> A {
    match op {
        Op::Sum | Op::Avg | Op::PremulSum(_) => left.add(right),
        Op::Prod => left.mul(right),
        Op::Min => left.min(right),
        Op::Max => left.max(right),
    }
}

macro_rules! float {
    ($t:ident) => {
        impl Accumulator for $t {
            fn add(self, other: $t) -> $t {
                self + other
            }
            fn mul(self, other: $t) -> $t {
                self * other
            }
            fn min(self, other: $t) -> $t {
                if self.is_nan() || (!other.is_nan() && self.total_cmp(&other).is_lt()) {
                    self
                } else {
                    other
                }
            }
            fn max(self, other: $t) -> $t {
                if self.is_nan() || (!other.is_nan() && self.total_cmp(&other).is_gt()) {
                    self
                } else {
                    other
                }
            }
            fn div(self, by: u32) -> $t {
                self / by as $t
            }
            fn of(factor: f64) -> $t {
                factor as $t
            }
        }
    };
}

macro_rules! integer {
    ($t:ident) => {
        impl Accumulator for $t {
            fn add(self, other: $t) -> $t {
                self.wrapping_add(other)
            }
            fn mul(self, other: $t) -> $t {
                self.wrapping_mul(other)
            }
            fn min(self, other: $t) -> $t {
                Ord::min(self, other)
            }
            fn max(self, other: $t) -> $t {
                Ord::max(self, other)
            }
            fn div(self, by: u32) -> $t {
                // In 128 bits, since the number of operands may not fit the type.
                (i128::from(self) / i128::from(Ord::max(by, 1))) as $t
            }
            fn of(factor: f64) -> $t {
                factor as $t
            }
        }
    };
}

macro_rules! element {
    ($t:ident, $acc:ident, $widen:expr, $narrow:expr) => {
        impl Element for $t {
            type Acc = $acc;
            const SIZE: usize = size_of::<$t>();
            fn load(bytes: &[u8]) -> $acc {
                let mut raw = [0; size_of::<$t>()];
                raw.copy_from_slice(bytes);
                $widen($t::from_ne_bytes(raw))
            }
            fn store(acc: $acc, bytes: &mut [u8]) {
                bytes.copy_from_slice(&$t::to_ne_bytes($narrow(acc)));
            }
            fn round(acc: $acc) -> $acc {
                $widen($narrow(acc))
            }
        }
    };
}

float!(f32);
float!(f64);
integer!(i8);
integer!(i32);
integer!(i64);
integer!(u8);
integer!(u32);
integer!(u64);
element!(f32, f32, |x| x, |x| x);
element!(f64, f64, |x| x, |x| x);
element!(f16, f32, f16::to_f32, f16::from_f32);
element!(bf16, f32, bf16::to_f32, bf16::from_f32);
element!(F8E4m3, f32, F8E4m3::to_f32, F8E4m3::from_f32);
element!(F8E5m2, f32, F8E5m2::to_f32, F8E5m2::from_f32);
element!(i8, i8, |x| x, |x| x);
element!(i32, i32, |x| x, |x| x);
element!(i64, i64, |x| x, |x| x);
element!(u8, u8, |x| x, |x| x);
element!(u32, u32, |x| x, |x| x);
element!(u64, u64, |x| x, |x| x);
