//! Types, operators and collectives by their numbers.
//!
//! In: numbers of C. Out: values. A parameter of a C enumeration may hold any number; so none becomes a value of a Rust enumeration
//! before it has been looked at: parameters are `MaybeUninit` of the enumeration, which any number is (cbindgen writes the
//! enumeration).

use std::mem::MaybeUninit;

use rcc::collective::Collective;
use rcc::{Dtype, Error, Factor, Op};

use crate::operator;
use crate::status::invalid;

/// The type of the elements.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum rcc_dtype_t {
    /// float.
    RCC_F32 = 0,
    /// double.
    RCC_F64 = 1,
    /// IEEE binary16.
    RCC_F16 = 2,
    /// bfloat16.
    RCC_BF16 = 3,
    /// 8-bit float of OCP: 4 bits of exponent, 3 of mantissa; no infinities.
    RCC_F8E4M3 = 4,
    /// 8-bit float of OCP: 5 bits of exponent, 2 of mantissa.
    RCC_F8E5M2 = 5,
    /// int8_t. Sums and products of integers wrap.
    RCC_I8 = 6,
    /// int32_t.
    RCC_I32 = 7,
    /// int64_t.
    RCC_I64 = 8,
    /// uint8_t.
    RCC_U8 = 9,
    /// uint32_t.
    RCC_U32 = 10,
    /// uint64_t.
    RCC_U64 = 11,
}

/// What a call does.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum rcc_collective_t {
    /// rcc_all_reduce.
    RCC_ALL_REDUCE = 0,
    /// rcc_all_gather.
    RCC_ALL_GATHER = 1,
    /// rcc_reduce_scatter.
    RCC_REDUCE_SCATTER = 2,
    /// rcc_all_to_all.
    RCC_ALL_TO_ALL = 3,
    /// rcc_broadcast.
    RCC_BROADCAST = 4,
    /// rcc_reduce.
    RCC_REDUCE = 5,
    /// rcc_gather.
    RCC_GATHER = 6,
    /// rcc_scatter.
    RCC_SCATTER = 7,
}

/// What combines elements: one of the constants below, or made by rcc_op_premul_sum or rcc_op_create.
pub type rcc_op_t = u64;

/// a + b.
pub const RCC_SUM: rcc_op_t = 0;
/// a * b.
pub const RCC_PROD: rcc_op_t = 1;
/// The smaller one; a NaN wins.
pub const RCC_MIN: rcc_op_t = 2;
/// The larger one; a NaN wins.
pub const RCC_MAX: rcc_op_t = 3;
/// The sum, divided by the number of ranks; integers are cut off.
pub const RCC_AVG: rcc_op_t = 4;

/// An operator, as calls take it.
#[derive(Clone)]
pub(crate) enum Combine {
    Op(Op),
    /// By its handle.
    Own(rcc_op_t, operator::Own),
}

/// A number that was handed in for an enumeration.
pub(crate) fn number<E: Copy>(given: MaybeUninit<E>) -> i32 {
    const { assert!(size_of::<E>() == size_of::<i32>()) };
    // SAFETY: four bytes, which the C caller has set: its types are those of the header.
    unsafe { std::mem::transmute_copy(&given) }
}

pub(crate) fn dtype(given: MaybeUninit<rcc_dtype_t>) -> Result<Dtype, Error> {
    let number = number(given);
    let known = Dtype::ALL.into_iter().find(|&dtype| dtype_number(dtype) as i32 == number);
    known.ok_or_else(|| invalid(format!("{number} is no rcc_dtype_t")))
}

/// The number of a type.
pub(crate) fn dtype_number(dtype: Dtype) -> rcc_dtype_t {
    match dtype {
        Dtype::F32 => rcc_dtype_t::RCC_F32,
        Dtype::F64 => rcc_dtype_t::RCC_F64,
        Dtype::F16 => rcc_dtype_t::RCC_F16,
        Dtype::Bf16 => rcc_dtype_t::RCC_BF16,
        Dtype::F8E4m3 => rcc_dtype_t::RCC_F8E4M3,
        Dtype::F8E5m2 => rcc_dtype_t::RCC_F8E5M2,
        Dtype::I8 => rcc_dtype_t::RCC_I8,
        Dtype::I32 => rcc_dtype_t::RCC_I32,
        Dtype::I64 => rcc_dtype_t::RCC_I64,
        Dtype::U8 => rcc_dtype_t::RCC_U8,
        Dtype::U32 => rcc_dtype_t::RCC_U32,
        Dtype::U64 => rcc_dtype_t::RCC_U64,
    }
}

pub(crate) fn collective(given: MaybeUninit<rcc_collective_t>) -> Result<Collective, Error> {
    let number = number(given);
    Ok(match number {
        0 => Collective::Allreduce,
        1 => Collective::Allgather,
        2 => Collective::Reducescatter,
        3 => Collective::Alltoall,
        4 => Collective::Broadcast,
        5 => Collective::Reduce,
        6 => Collective::Gather,
        7 => Collective::Scatter,
        _ => return Err(invalid(format!("{number} is no rcc_collective_t"))),
    })
}

#[inline]
pub(crate) fn combine(given: rcc_op_t) -> Result<Combine, Error> {
    Ok(Combine::Op(match given {
        RCC_SUM => Op::Sum,
        RCC_PROD => Op::Prod,
        RCC_MIN => Op::Min,
        RCC_MAX => Op::Max,
        RCC_AVG => Op::Avg,
        _ => return operator::made(given),
    }))
}

impl Combine {
    /// A sum with a factor.
    pub(crate) fn scaled(factor: f64) -> Combine {
        Combine::Op(Op::PremulSum(Factor::new(factor)))
    }

    /// What the call says: a user's operator takes the place of the sum.
    #[inline]
    pub(crate) fn op(&self) -> Op {
        match self {
            Combine::Op(op) => *op,
            Combine::Own(..) => Op::Sum,
        }
    }
}

/// The bytes of an element of a type; 0 for a number that is no type.
#[unsafe(no_mangle)]
pub extern "C" fn rcc_dtype_size(dtype: MaybeUninit<rcc_dtype_t>) -> usize {
    self::dtype(dtype).map_or(0, |dtype| dtype.size() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_their_numbers() {
        for dtype in Dtype::ALL {
            let number = dtype_number(dtype);
            assert_eq!(self::dtype(MaybeUninit::new(number)).unwrap(), dtype);
            assert_eq!(rcc_dtype_size(MaybeUninit::new(number)), dtype.size() as usize);
            let name = format!("RCC_{}", dtype.name().to_uppercase());
            assert_eq!(format!("{number:?}"), name);
        }
    }
}
