//! The folds, compiled for each vector set of x86-64 and chosen by what the machine has.
//!
//! In: type and operator as values. Out: one call of the loop that fits. Elsewhere the compiler's baseline is used.
//! No vector set here contracts a multiplication and an addition: results are the same on all.

use half::{bf16, f16};
use plan::dtype::{Dtype, Op};

use super::Fold;
use super::elements::{self, Element, Max, Min, Operator, Prod, Sum};

/// Folds, 128 bytes at a time; the operator's outer part is in `fold.divisor` alone.
///
/// # Safety
/// As `super::fold`.
pub(super) unsafe fn fold(dtype: Dtype, op: Op, fold: &Fold<'_>) {
    // SAFETY: the caller's promise.
    unsafe {
        match dtype {
            Dtype::F32 => with_op::<f32, 32>(op, fold),
            Dtype::F64 => with_op::<f64, 16>(op, fold),
            Dtype::F16 => with_op::<f16, 64>(op, fold),
            Dtype::Bf16 => with_op::<bf16, 64>(op, fold),
            Dtype::I32 => with_op::<i32, 32>(op, fold),
            Dtype::I64 => with_op::<i64, 16>(op, fold),
            Dtype::U8 => with_op::<u8, 128>(op, fold),
        }
    }
}

unsafe fn with_op<E: Element, const L: usize>(op: Op, fold: &Fold<'_>) {
    // SAFETY: the caller's promise.
    unsafe {
        match op {
            Op::Sum | Op::Avg => dispatch::<E, Sum, L>(fold),
            Op::Prod => dispatch::<E, Prod, L>(fold),
            Op::Min => dispatch::<E, Min, L>(fold),
            Op::Max => dispatch::<E, Max, L>(fold),
        }
    }
}

#[cfg(target_arch = "x86_64")]
unsafe fn dispatch<E: Element, O: Operator, const L: usize>(fold: &Fold<'_>) {
    // SAFETY: the caller's promise, and the machine has what each arm is compiled for.
    unsafe {
        if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl") {
            avx512::<E, O, L>(fold);
        } else if is_x86_feature_detected!("avx2") {
            avx2::<E, O, L>(fold);
        } else {
            elements::fold::<E, O, L>(fold);
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn dispatch<E: Element, O: Operator, const L: usize>(fold: &Fold<'_>) {
    // SAFETY: the caller's promise.
    unsafe { elements::fold::<E, O, L>(fold) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn avx512<E: Element, O: Operator, const L: usize>(fold: &Fold<'_>) {
    // SAFETY: the caller's promise.
    unsafe { elements::fold::<E, O, L>(fold) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn avx2<E: Element, O: Operator, const L: usize>(fold: &Fold<'_>) {
    // SAFETY: the caller's promise.
    unsafe { elements::fold::<E, O, L>(fold) }
}
