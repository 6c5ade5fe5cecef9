//! The folds, compiled for each vector set of x86-64 and chosen by what the machine has.
//!
//! In: type and operator as values. Out: the loop that fits, as a function pointer: chosen once for all calls of a kind.
//! Elsewhere the compiler's baseline is used.

use half::{bf16, f16};
use plan::dtype::{Dtype, Op};
use plan::float8::{F8E4m3, F8E5m2};

use super::elements::{self, Max, Min, Operator, Prod, Sum};
use super::types::Element;
use super::vectors::Baseline;
#[cfg(target_arch = "x86_64")]
use super::vectors::{Avx2, Avx512};
use super::{Fold, Part};

/// A compiled loop, for one or more sources; what there is to do beside combining is said apart.
///
/// # Safety
/// As `super::fold`.
pub(super) type Loop = unsafe fn(&Fold<'_>, Option<Part>);

/// A vector set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// What every machine of its kind has.
    Baseline,
    /// AVX2 and F16C.
    Avx2,
    /// AVX-512 F, BW and VL.
    Avx512,
}

impl Set {
    /// Those that this machine has, the best last.
    pub fn available() -> impl DoubleEndedIterator<Item = Set> {
        let has = |set: &Set| match set {
            Set::Baseline => true,
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c"),
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Set::Avx2 | Set::Avx512 => false,
        };
        [Set::Baseline, Set::Avx2, Set::Avx512].into_iter().filter(has)
    }
}

/// The loop for a type and an operator, by a set that the machine has: 128 bytes at a time (64 of 8-bit floats).
pub(super) fn select(dtype: Dtype, op: Op, set: Set) -> Loop {
    match dtype {
        Dtype::F32 => with_op::<f32, 32>(op, set),
        Dtype::F64 => with_op::<f64, 16>(op, set),
        Dtype::F16 => with_op::<f16, 64>(op, set),
        Dtype::Bf16 => with_op::<bf16, 64>(op, set),
        Dtype::F8E4m3 => with_op::<F8E4m3, 64>(op, set),
        Dtype::F8E5m2 => with_op::<F8E5m2, 64>(op, set),
        Dtype::I8 => with_op::<i8, 128>(op, set),
        Dtype::I32 => with_op::<i32, 32>(op, set),
        Dtype::I64 => with_op::<i64, 16>(op, set),
        Dtype::U8 => with_op::<u8, 128>(op, set),
        Dtype::U32 => with_op::<u32, 32>(op, set),
        Dtype::U64 => with_op::<u64, 16>(op, set),
    }
}

fn with_op<E: Element, const L: usize>(op: Op, set: Set) -> Loop {
    match op {
        Op::Sum | Op::Avg | Op::PremulSum(_) => with_set::<E, Sum, L>(set),
        Op::Prod => with_set::<E, Prod, L>(set),
        Op::Min => with_set::<E, Min, L>(set),
        Op::Max => with_set::<E, Max, L>(set),
    }
}

#[cfg(target_arch = "x86_64")]
fn with_set<E: Element, O: Operator, const L: usize>(set: Set) -> Loop {
    match set {
        Set::Baseline => baseline::<E, O, L>,
        Set::Avx2 => avx2::<E, O, L>,
        Set::Avx512 => avx512::<E, O, L>,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn with_set<E: Element, O: Operator, const L: usize>(_: Set) -> Loop {
    baseline::<E, O, L>
}

unsafe fn baseline<E: Element, O: Operator, const L: usize>(fold: &Fold<'_>, part: Option<Part>) {
    // SAFETY: the caller's promise.
    unsafe { elements::fold::<Baseline, E, O, L>(fold, part) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn avx512<E: Element, O: Operator, const L: usize>(fold: &Fold<'_>, part: Option<Part>) {
    // SAFETY: the caller's promise.
    unsafe { elements::fold::<Avx512, E, O, L>(fold, part) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
unsafe fn avx2<E: Element, O: Operator, const L: usize>(fold: &Fold<'_>, part: Option<Part>) {
    // SAFETY: the caller's promise.
    unsafe { elements::fold::<Avx2, E, O, L>(fold, part) }
}
