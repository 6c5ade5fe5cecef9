//! Random elements to call with.
//!
//! In: type, operator, seed, rank, buffer, element. Out: a number, a function of these alone: any rank can make any other
//! rank's. The hard idea is in `reference`: half of all elements are such that every order of combining is exact.

use half::{bf16, f16};

use crate::dtype::{Dtype, Op};
use crate::float8::{F8E4m3, F8E5m2};
use crate::ids::{BufferId, RankId};
use crate::reference::power;

/// Random elements for `buffer` at `rank`, suited to the operator: sums and products neither overflow nor vanish
/// (products of integers are of odd numbers), both signs occur, and about half of all elements are such that a right
/// result is exact (see above).
pub fn fill(dtype: Dtype, op: Op, seed: u64, rank: RankId, buffer: BufferId, out: &mut [u8]) {
    fill_from(dtype, op, seed, rank, buffer, 0, out);
}

/// The same from element `first` of the buffer on.
pub fn fill_from(
    dtype: Dtype,
    op: Op,
    seed: u64,
    rank: RankId,
    buffer: BufferId,
    first: u64,
    out: &mut [u8],
) {
    let key = mix(mix(seed) ^ (u64::from(rank.0) << 32 | u64::from(buffer.0)));
    let bits = |i: usize| {
        let element = first.wrapping_add(i as u64);
        (element, mix(key.wrapping_add(element.wrapping_mul(0x9E37_79B9_7F4A_7C15))))
    };
    let odd = u64::from(op == Op::Prod);
    let real = |i| real(op, bits(i));
    let small = |i| small(dtype, op, bits(i)) as f32;
    let integer = |i| bits(i).1 | odd;
    match dtype {
        Dtype::F32 => each(out, |i| (real(i) as f32).to_ne_bytes()),
        Dtype::F64 => each(out, |i| real(i).to_ne_bytes()),
        Dtype::F16 => each(out, |i| f16::from_f32(real(i) as f32).to_ne_bytes()),
        Dtype::Bf16 => each(out, |i| bf16::from_f32(real(i) as f32).to_ne_bytes()),
        Dtype::F8E4m3 => each(out, |i| F8E4m3::from_f32(small(i)).to_ne_bytes()),
        Dtype::F8E5m2 => each(out, |i| F8E5m2::from_f32(small(i)).to_ne_bytes()),
        Dtype::I32 | Dtype::U32 => each(out, |i| (integer(i) as u32).to_ne_bytes()),
        Dtype::I64 | Dtype::U64 => each(out, |i| integer(i).to_ne_bytes()),
        Dtype::I8 | Dtype::U8 => each(out, |i| [integer(i) as u8]),
    }
}

fn each<const N: usize>(out: &mut [u8], element: impl Fn(usize) -> [u8; N]) {
    for (i, to) in out.as_chunks_mut().0.iter_mut().enumerate() {
        *to = element(i);
    }
}

/// A number for one element. Which kind it is depends on the element alone, so that all ranks agree in it.
fn real(op: Op, (element, bits): (u64, u64)) -> f64 {
    // Uniform in 0..1, of the bits that neither the sign nor the small integer uses.
    let unit = (bits >> 12 & ((1 << 50) - 1)) as f64 * power(-50);
    let integer = (bits >> 62) as f64;
    let exact = is_exact(element);
    let magnitude = match op {
        Op::Prod => 1.0 + (unit - 0.5) / if exact { f64::INFINITY } else { 8.0 },
        Op::Sum | Op::Avg | Op::PremulSum(_) => {
            let any = unit * 2.0;
            if exact { integer } else { any }
        }
        Op::Min | Op::Max => unit * 1000.0,
    };
    f64::from_bits(magnitude.to_bits() | bits << 63)
}

/// A number for one element of an 8-bit float. These count exactly to 8 or 16 only, so nearly all exact elements are
/// zeros; and the largest number is small in one of them.
fn small(dtype: Dtype, op: Op, (element, bits): (u64, u64)) -> f64 {
    let x = real(op, (element, bits));
    match op {
        // One in eight is 1 or -1. (The bits asked are not those of the sign.)
        Op::Sum | Op::Avg | Op::PremulSum(_) if is_exact(element) => {
            f64::from(u8::from(bits >> 20 & 7 == 0)).copysign(x)
        }
        Op::Min | Op::Max if dtype == Dtype::F8E4m3 => x * 0.25,
        _ => x,
    }
}

/// Whether sums and products of these elements are exact.
fn is_exact(element: u64) -> bool {
    element.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 63 == 0
}

/// The finaliser of splitmix64: a bijection that looks random.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}
