//! The folds, compiled for each vector set of x86-64 and chosen by what the machine has.
//!
//! In: type and operator as values. Out: one call of the loop that fits. Elsewhere the compiler's baseline is used.
//! No vector set here contracts a multiplication and an addition: results are the same on all.

use half::{bf16, f16};
use plan::dtype::{Dtype, Op};

use super::Fold;
use super::elements::{self, Element, Max, Min, Operator, Prod, Sum};

/// Folds; the operator's outer part is in `fold.divisor` alone.
///
/// # Safety
/// As `super::fold`.
pub(super) unsafe fn fold(dtype: Dtype, op: Op, fold: &Fold<'_>) {
    // SAFETY: the caller's promise.
    unsafe {
        match dtype {
            Dtype::F32 => with_op::<f32>(op, fold),
            Dtype::F64 => with_op::<f64>(op, fold),
            Dtype::F16 => with_op::<f16>(op, fold),
            Dtype::Bf16 => with_op::<bf16>(op, fold),
            Dtype::I32 => with_op::<i32>(op, fold),
            Dtype::I64 => with_op::<i64>(op, fold),
            Dtype::U8 => with_op::<u8>(op, fold),
        }
    }
}

unsafe fn with_op<E: Element>(op: Op, fold: &Fold<'_>) {
    // SAFETY: the caller's promise.
    unsafe {
        match op {
            Op::Sum | Op::Avg => dispatch::<E, Sum>(fold),
            Op::Prod => dispatch::<E, Prod>(fold),
            Op::Min => dispatch::<E, Min>(fold),
            Op::Max => dispatch::<E, Max>(fold),
        }
    }
}

#[cfg(target_arch = "x86_64")]
unsafe fn dispatch<E: Element, O: Operator>(fold: &Fold<'_>) {
    // SAFETY: the caller's promise, and the machine has what each arm is compiled for.
    unsafe {
        if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl") {
            avx512::<E, O>(fold);
        } else if is_x86_feature_detected!("avx2") {
            avx2::<E, O>(fold);
        } else {
            elements::fold::<E, O>(fold);
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn dispatch<E: Element, O: Operator>(fold: &Fold<'_>) {
    // SAFETY: the caller's promise.
    unsafe { elements::fold::<E, O>(fold) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn avx512<E: Element, O: Operator>(fold: &Fold<'_>) {
    // SAFETY: the caller's promise.
    unsafe { elements::fold::<E, O>(fold) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn avx2<E: Element, O: Operator>(fold: &Fold<'_>) {
    // SAFETY: the caller's promise.
    unsafe { elements::fold::<E, O>(fold) }
}
