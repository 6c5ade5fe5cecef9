//! The truth about a result, from the promise alone: what a collective is, not how some plan computes it.
//!
//! In: a promise, entry values, the bytes that a run left. Out: which elements are wrong. Integers and min/max are
//! judged to the bit. Sums and products of floats are computed in f64 and judged by a bound that holds for **any**
//! order of combining: each of the m-1 operations rounds once (16- and 8-bit types: twice, in f32 and in their own), so
//! the error is at most `((1+u)^(m-1) - 1)` times the sum of magnitudes (for products: times the product).
//!
//! The one hard idea: such a bound is blind where u is large (with bf16 and 256 operands a lost one could hide in it).
//! Where all operands are multiples of some power of two and the sum of magnitudes fits the mantissa above it, every
//! partial sum of every order is exact, and so must the result be. [`fill`] makes half of all elements of that kind.
//!
//! Random data ([`fill`]) comes from `random`.

use std::borrow::Cow;
use std::ops::Range;

use half::{bf16, f16};

use crate::arith::{Number, number};
use crate::collective::{BlockRef, Promise};
use crate::dtype::{Dtype, Factor, Op};
use crate::float8::{F8E4m3, F8E5m2};
use crate::ids::{BufferId, RankId};
pub use crate::random::{fill, fill_from};

/// A promise, indexed by place.
#[derive(Debug, Clone)]
pub struct Reference<'a> {
    promise: &'a Promise,
    /// Clauses sorted by place.
    order: Vec<u32>,
}

/// What is wrong with a result.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Wrong {
    /// How many elements.
    pub count: u64,
    /// The first of them.
    pub first: Option<First>,
}

/// The first wrong element.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct First {
    /// Which element.
    pub index: u64,
    /// What is there.
    pub got: Number,
    /// What should be.
    pub expected: Number,
    /// How far off it may be.
    pub bound: f64,
}

impl Wrong {
    /// Joins what was found at elements `offset..` of a larger whole.
    pub fn add(&mut self, other: Wrong, offset: u64) {
        self.count += other.count;
        self.first = self.first.or(other.first.map(|f| First { index: f.index + offset, ..f }));
    }
}

impl<'a> Reference<'a> {
    /// Indexes a promise.
    pub fn new(promise: &'a Promise) -> Reference<'a> {
        let mut order: Vec<u32> = (0..promise.clauses.len() as u32).collect();
        order.sort_by_key(|&i| (promise.clauses[i as usize].place, i));
        Reference { promise, order }
    }

    /// What is promised of a buffer at a rank: for each clause the block, and the blocks (at entry) whose reduction
    /// it must hold. Blocks not named may hold anything.
    pub fn clauses(&self, buffer: BufferId, rank: RankId) -> impl Iterator<Item = (u32, &'a [BlockRef])> {
        let promise = self.promise;
        let key = |i: &u32| {
            let place = promise.clauses[*i as usize].place;
            (place.buffer, place.rank)
        };
        let start = self.order.partition_point(|i| key(i) < (buffer, rank));
        let end = self.order.partition_point(|i| key(i) <= (buffer, rank));
        self.order[start..end].iter().map(move |&i| {
            let clause = promise.clauses[i as usize];
            (clause.place.block, promise.lists[clause.list as usize].as_slice())
        })
    }

    /// Checks all that is promised of a buffer at a rank. `entry` gives the entry bytes of a block, `got` is the
    /// whole buffer, `elements` those of a block; indices count through the buffer.
    pub fn check<'e>(
        &self,
        (buffer, rank): (BufferId, RankId),
        elements: u64,
        (dtype, op): (Dtype, Op),
        entry: &mut dyn FnMut(BlockRef) -> Cow<'e, [u8]>,
        got: &[u8],
    ) -> Wrong {
        let mut wrong = Wrong::default();
        for (block, list) in self.clauses(buffer, rank) {
            let operands: Vec<Cow<'e, [u8]>> = list.iter().map(|&place| entry(place)).collect();
            let operands: Vec<&[u8]> = operands.iter().map(|operand| &**operand).collect();
            let bytes = (elements * u64::from(dtype.size())) as usize;
            let start = block as usize * bytes;
            wrong.add(check(dtype, op, &operands, &got[start..start + bytes]), u64::from(block) * elements);
        }
        wrong
    }
}

/// Checks `got` against the reduction of `operands`, element by element. All have equally many bytes, a whole number
/// of elements, at any address; without operands nothing is promised, and nothing wrong.
pub fn check(dtype: Dtype, op: Op, operands: &[&[u8]], got: &[u8]) -> Wrong {
    let size = dtype.size() as usize;
    let judge: &dyn Fn(usize, usize, &mut Wrong) = match (operands, dtype) {
        ([], _) => return Wrong::default(),
        // Most copies are right, and equal bytes are quick to find.
        ([only], _) if *only == got => return Wrong::default(),
        ([_], _) => &|from, to, wrong| copies(dtype, operands[0], got, from..to, wrong),
        (_, Dtype::F32) => &|from, to, wrong| floats::<f32>(op, operands, got, from..to, wrong),
        (_, Dtype::F64) => &|from, to, wrong| floats::<f64>(op, operands, got, from..to, wrong),
        (_, Dtype::F16) => &|from, to, wrong| floats::<f16>(op, operands, got, from..to, wrong),
        (_, Dtype::Bf16) => &|from, to, wrong| floats::<bf16>(op, operands, got, from..to, wrong),
        (_, Dtype::F8E4m3) => &|from, to, wrong| floats::<F8E4m3>(op, operands, got, from..to, wrong),
        (_, Dtype::F8E5m2) => &|from, to, wrong| floats::<F8E5m2>(op, operands, got, from..to, wrong),
        (_, Dtype::I8) => &|from, to, wrong| integers::<i8>(op, operands, got, from..to, wrong),
        (_, Dtype::I32) => &|from, to, wrong| integers::<i32>(op, operands, got, from..to, wrong),
        (_, Dtype::I64) => &|from, to, wrong| integers::<i64>(op, operands, got, from..to, wrong),
        (_, Dtype::U8) => &|from, to, wrong| integers::<u8>(op, operands, got, from..to, wrong),
        (_, Dtype::U32) => &|from, to, wrong| integers::<u32>(op, operands, got, from..to, wrong),
        (_, Dtype::U64) => &|from, to, wrong| integers::<u64>(op, operands, got, from..to, wrong),
    };
    let mut wrong = Wrong::default();
    let elements = got.len() / size;
    for from in (0..elements).step_by(TILE) {
        judge(from, (from + TILE).min(elements), &mut wrong);
    }
    wrong
}

/// Elements handled at once: their intermediate sums stay in the first cache.
const TILE: usize = 512;

impl Wrong {
    fn note(&mut self, index: usize, got: Number, expected: Number, bound: f64) {
        self.count += 1;
        self.first.get_or_insert(First { index: index as u64, got, expected, bound });
    }
}

fn copies(dtype: Dtype, entry: &[u8], got: &[u8], elements: Range<usize>, wrong: &mut Wrong) {
    let size = dtype.size() as usize;
    for i in elements {
        let [expected, got] = [entry, got].map(|bytes| &bytes[i * size..][..size]);
        let (e, g) = (number(dtype, expected), number(dtype, got));
        if expected != got && !both_nan(e, g) {
            wrong.note(i, g, e, 0.0);
        }
    }
}

fn both_nan(a: Number, b: Number) -> bool {
    matches!((a, b), (Number::Float(a), Number::Float(b)) if a.is_nan() && b.is_nan())
}

/// An element type that f64 holds exactly.
trait Float {
    const SIZE: usize;
    /// Bits of the mantissa, the leading one included.
    const MANTISSA: i32;
    /// The largest relative error of one operation of a step, stored in the type.
    const ERROR: f64;
    const LARGEST: f64;
    const SMALLEST_NORMAL: f64;
    const SMALLEST: f64;
    fn load(bytes: &[u8]) -> f64;
    fn nearest(exact: f64) -> f64;
}

impl Float for f32 {
    const SIZE: usize = 4;
    const MANTISSA: i32 = 24;
    const ERROR: f64 = power(-24);
    const LARGEST: f64 = f32::MAX as f64;
    const SMALLEST_NORMAL: f64 = power(-126);
    const SMALLEST: f64 = power(-149);
    #[inline(always)]
    fn load(bytes: &[u8]) -> f64 {
        f64::from(f32::from_ne_bytes(raw(bytes)))
    }
    #[inline(always)]
    fn nearest(exact: f64) -> f64 {
        f64::from(exact as f32)
    }
}

impl Float for f64 {
    const SIZE: usize = 8;
    const MANTISSA: i32 = 53;
    const ERROR: f64 = power(-53);
    const LARGEST: f64 = f64::MAX;
    const SMALLEST_NORMAL: f64 = power(-1022);
    const SMALLEST: f64 = f64::from_bits(1);
    #[inline(always)]
    fn load(bytes: &[u8]) -> f64 {
        f64::from_ne_bytes(raw(bytes))
    }
    #[inline(always)]
    fn nearest(exact: f64) -> f64 {
        exact
    }
}

impl Float for f16 {
    const SIZE: usize = 2;
    const MANTISSA: i32 = 11;
    const ERROR: f64 = (1.0 + power(-11)) * (1.0 + power(-24)) - 1.0;
    const LARGEST: f64 = 65504.0;
    const SMALLEST_NORMAL: f64 = power(-14);
    const SMALLEST: f64 = power(-24);
    #[inline(always)]
    fn load(bytes: &[u8]) -> f64 {
        f64::from(widen_f16(u16::from_ne_bytes(raw(bytes))))
    }
    #[inline(always)]
    fn nearest(exact: f64) -> f64 {
        f16::from_f64(exact).to_f64()
    }
}

impl Float for bf16 {
    const SIZE: usize = 2;
    const MANTISSA: i32 = 8;
    const ERROR: f64 = (1.0 + power(-8)) * (1.0 + power(-24)) - 1.0;
    const LARGEST: f64 = power(127) * (2.0 - power(-7));
    const SMALLEST_NORMAL: f64 = power(-126);
    const SMALLEST: f64 = power(-133);
    #[inline(always)]
    fn load(bytes: &[u8]) -> f64 {
        f64::from(bf16::from_ne_bytes(raw(bytes)).to_f32())
    }
    #[inline(always)]
    fn nearest(exact: f64) -> f64 {
        bf16::from_f64(exact).to_f64()
    }
}

impl Float for F8E4m3 {
    const SIZE: usize = 1;
    const MANTISSA: i32 = 4;
    const ERROR: f64 = (1.0 + power(-4)) * (1.0 + power(-24)) - 1.0;
    const LARGEST: f64 = 448.0;
    const SMALLEST_NORMAL: f64 = power(-6);
    const SMALLEST: f64 = power(-9);
    #[inline(always)]
    fn load(bytes: &[u8]) -> f64 {
        f64::from(F8E4m3::from_ne_bytes(raw(bytes)).to_f32())
    }
    #[inline(always)]
    fn nearest(exact: f64) -> f64 {
        // Twice rounded, which differs from once only where it does in a step too.
        f64::from(F8E4m3::from_f32(exact as f32).to_f32())
    }
}

impl Float for F8E5m2 {
    const SIZE: usize = 1;
    const MANTISSA: i32 = 3;
    const ERROR: f64 = (1.0 + power(-3)) * (1.0 + power(-24)) - 1.0;
    const LARGEST: f64 = 57344.0;
    const SMALLEST_NORMAL: f64 = power(-14);
    const SMALLEST: f64 = power(-16);
    #[inline(always)]
    fn load(bytes: &[u8]) -> f64 {
        f64::from(F8E5m2::from_ne_bytes(raw(bytes)).to_f32())
    }
    #[inline(always)]
    fn nearest(exact: f64) -> f64 {
        f64::from(F8E5m2::from_f32(exact as f32).to_f32())
    }
}

/// An f16 as f32, without a branch: eight at once where the machine can. Its exponent is put where that of an f32
/// is, 112 too small; what is subnormal then becomes normal by the same multiplication.
#[inline(always)]
fn widen_f16(bits: u16) -> f32 {
    let magnitude = f32::from_bits(u32::from(bits & 0x7FFF) << 13) * (power(112) as f32);
    let special = if bits & 0x7C00 == 0x7C00 { 0x7F80_0000 } else { 0 };
    f32::from_bits(magnitude.to_bits() | special | u32::from(bits & 0x8000) << 16)
}

/// 2 to the power of `e`, a normal number.
pub(crate) const fn power(e: i32) -> f64 {
    f64::from_bits(((1023 + e) as u64) << 52)
}

#[inline(always)]
fn raw<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut raw = [0; N];
    raw.copy_from_slice(bytes);
    raw
}

/// What is kept of the operands of each element of a tile.
struct Tile {
    /// The reduction in f64.
    exact: [f64; TILE],
    /// Sums: the sum of magnitudes. Products: the largest magnitude that any partial product can have.
    large: [f64; TILE],
    /// Products: the smallest magnitude that any partial product can have.
    small: [f64; TILE],
}

fn floats<T: Float>(
    op: Op,
    operands: &[&[u8]],
    got: &[u8],
    Range { start: from, end: to }: Range<usize>,
    wrong: &mut Wrong,
) {
    let factor = factor::<T>(op);
    let unit = if op == Op::Prod { 1.0 } else { 0.0 };
    let mut tile = Tile { exact: [unit; TILE], large: [unit; TILE], small: [1.0; TILE] };
    for (k, operand) in operands.iter().enumerate() {
        let elements =
            operand[from * T::SIZE..to * T::SIZE].chunks_exact(T::SIZE).map(|x| factor * T::load(x));
        match op {
            Op::Sum | Op::Avg | Op::PremulSum(_) => {
                for ((exact, large), x) in tile.exact.iter_mut().zip(&mut tile.large).zip(elements) {
                    *exact += x;
                    *large += x.abs();
                }
            }
            Op::Prod => {
                let bounds = tile.large.iter_mut().zip(&mut tile.small);
                for ((exact, (large, small)), x) in tile.exact.iter_mut().zip(bounds).zip(elements) {
                    *exact *= x;
                    *large *= x.abs().max(1.0);
                    *small *= x.abs().min(1.0);
                }
            }
            Op::Min | Op::Max => {
                for (best, x) in tile.exact.iter_mut().zip(elements) {
                    let wins =
                        if op == Op::Min { x.total_cmp(best).is_lt() } else { x.total_cmp(best).is_gt() };
                    if k == 0 || x.is_nan() || (!best.is_nan() && wins) {
                        *best = x;
                    }
                }
            }
        }
    }
    let got = got[from * T::SIZE..to * T::SIZE].chunks_exact(T::SIZE).map(T::load);
    for (i, got) in got.enumerate() {
        let expected = if op == Op::Avg { tile.exact[i] / operands.len() as f64 } else { tile.exact[i] };
        let bound = if expected.to_bits() == got.to_bits() || (expected.is_nan() && got.is_nan()) {
            continue;
        } else if matches!(op, Op::Min | Op::Max) {
            0.0
        } else if got == T::nearest(expected) && got.is_finite() {
            continue;
        } else {
            let element = |operand: &&[u8]| factor * T::load(&operand[(from + i) * T::SIZE..][..T::SIZE]);
            let values = operands.iter().map(element);
            let bound = if op == Op::Prod {
                product_bound::<T>(&values, expected, tile.large[i], tile.small[i])
            } else {
                sum_bound::<T>(op, &values, expected, tile.large[i])
            };
            // Not the other way round: a difference that is no number is beyond every bound.
            if (got - expected).abs() <= bound || bound == f64::INFINITY {
                continue;
            }
            bound
        };
        wrong.note(from + i, Number::Float(got), Number::Float(expected), bound);
    }
}

/// What operands are multiplied by before anything else, as a step does it.
fn factor<T: Float>(op: Op) -> f64 {
    match op.factor().map(Factor::value) {
        None => 1.0,
        Some(factor) if T::MANTISSA > 24 => factor,
        Some(factor) => f64::from(factor as f32),
    }
}

/// How far a sum (or mean) of `values` may be from `expected`, in whatever order it is formed; infinite if nothing can
/// be said. `magnitude` is the sum of magnitudes.
fn sum_bound<T: Float>(
    op: Op,
    values: &(impl ExactSizeIterator<Item = f64> + Clone),
    expected: f64,
    magnitude: f64,
) -> f64 {
    let m = values.len() as f64;
    let mean = op == Op::Avg;
    let divisor = if mean { m } else { 1.0 };
    let finite: f64 = values.clone().filter(|x| x.is_finite()).map(f64::abs).sum();
    let multiplied = op.factor().is_some();
    let operations = m - 1.0 + f64::from(u8::from(mean)) + f64::from(u8::from(multiplied));
    let relative = (operations * T::ERROR.ln_1p()).exp_m1();
    // Of a mean, the division still rounds: in the type that the step accumulates in, then in the element type.
    let division = if mean { 2.0 * T::ERROR * expected.abs() + T::SMALLEST } else { 0.0 };
    let grid = values.clone().filter(|&x| x != 0.0).map(lowest_bit).fold(f64::INFINITY, f64::min);
    if magnitude <= T::LARGEST.min(grid * power(T::MANTISSA)) {
        return division;
    }
    if finite * (1.0 + relative) > T::LARGEST {
        return f64::INFINITY;
    }
    if !expected.is_finite() {
        return 0.0;
    }
    let own_error = m * power(-53) * 2.0;
    // Products that are subnormal in the type that the step accumulates in.
    let smallest = if T::MANTISSA > 24 { T::SMALLEST } else { power(-149) };
    let lost = if multiplied { m * smallest } else { 0.0 };
    (relative + own_error) * magnitude / divisor + division + lost
}

/// The same for a product; `large` and `small` bound the magnitudes of partial products.
fn product_bound<T: Float>(
    values: &(impl ExactSizeIterator<Item = f64> + Clone),
    expected: f64,
    large: f64,
    small: f64,
) -> f64 {
    let m = values.len() as f64;
    let relative = ((m - 1.0) * T::ERROR.ln_1p()).exp_m1();
    let finite = values.clone().filter(|x| x.is_finite());
    let (largest, smallest) =
        finite.fold((1.0f64, 1.0f64), |(l, s), x| (l * x.abs().max(1.0), s * x.abs().min(1.0)));
    if largest * (1.0 + relative) > T::LARGEST {
        return f64::INFINITY;
    }
    let underflows = smallest < T::SMALLEST_NORMAL;
    if !expected.is_finite() {
        return if underflows { f64::INFINITY } else { 0.0 };
    }
    let power_of_two = |x: f64| x.is_finite() && x != 0.0 && lowest_bit(x) == x.abs();
    if !underflows && values.clone().all(power_of_two) {
        return 0.0;
    }
    let own_error = m * power(-53) * 2.0;
    // Each rounding to a subnormal is off by at most half the smallest one, and later factors scale that.
    let lost = if underflows || small < T::SMALLEST_NORMAL { m * T::SMALLEST * large } else { 0.0 };
    (relative + own_error) * expected.abs() + lost
}

/// The largest power of two that a finite number other than 0 is a multiple of.
fn lowest_bit(x: f64) -> f64 {
    let bits = x.to_bits() & !(1 << 63);
    let (exponent, mantissa) = (bits >> 52, bits & ((1 << 52) - 1));
    if exponent == 0 {
        return f64::from_bits(1 << mantissa.trailing_zeros());
    }
    let below = if mantissa == 0 { 52 } else { mantissa.trailing_zeros() };
    // The value of that bit: 2^(exponent - 1023 - 52 + below), perhaps subnormal.
    let e = exponent as i32 - 1023 - 52 + below as i32;
    if e >= -1022 { power(e) } else { f64::from_bits(1 << (e + 1074)) }
}

trait Integer {
    const SIZE: usize;
    /// An integer of 64 bits with the same sign: sums and products there agree with those of the type in its low bits.
    type Wide: Copy + Into<i128> + PartialEq;
    fn load(bytes: &[u8]) -> Self::Wide;
    /// What combining starts from.
    fn unit(op: Op) -> Self::Wide;
    fn combine(op: Op, a: Self::Wide, b: Self::Wide) -> Self::Wide;
    fn wrap(wide: Self::Wide) -> Self::Wide;
    /// The quotient, cut towards zero.
    fn mean(sum: Self::Wide, of: usize) -> Self::Wide;
}

macro_rules! integer {
    ($wide:ident: $($t:ident),*) => {$(
        impl Integer for $t {
            const SIZE: usize = size_of::<$t>();
            type Wide = $wide;
            #[inline(always)]
            fn load(bytes: &[u8]) -> $wide {
                $wide::from($t::from_ne_bytes(raw(bytes)))
            }
            #[inline(always)]
            fn unit(op: Op) -> $wide {
                match op {
                    Op::Sum | Op::Avg | Op::PremulSum(_) => 0,
                    Op::Prod => 1,
                    Op::Min => $wide::MAX,
                    Op::Max => $wide::MIN,
                }
            }
            #[inline(always)]
            fn combine(op: Op, a: $wide, b: $wide) -> $wide {
                match op {
                    Op::Sum | Op::Avg => a.wrapping_add(b),
                    Op::PremulSum(factor) => a.wrapping_add(b.wrapping_mul(factor.value() as $wide)),
                    Op::Prod => a.wrapping_mul(b),
                    Op::Min => a.min(b),
                    Op::Max => a.max(b),
                }
            }
            #[inline(always)]
            fn wrap(wide: $wide) -> $wide {
                $wide::from(wide as $t)
            }
            #[inline(always)]
            fn mean(sum: $wide, of: usize) -> $wide {
                sum / of as $wide
            }
        }
    )*};
}

integer!(i64: i8, i32, i64);
integer!(u64: u8, u32, u64);

fn integers<T: Integer>(
    op: Op,
    operands: &[&[u8]],
    got: &[u8],
    Range { start: from, end: to }: Range<usize>,
    wrong: &mut Wrong,
) {
    let mut exact = [T::unit(op); TILE];
    for operand in operands {
        let elements = operand[from * T::SIZE..to * T::SIZE].chunks_exact(T::SIZE).map(T::load);
        for (exact, x) in exact.iter_mut().zip(elements) {
            *exact = T::combine(op, *exact, x);
        }
    }
    let got = got[from * T::SIZE..to * T::SIZE].chunks_exact(T::SIZE).map(T::load);
    for (i, (got, exact)) in got.zip(exact).enumerate() {
        let wrapped = T::wrap(exact);
        let expected = if op == Op::Avg { T::mean(wrapped, operands.len()) } else { wrapped };
        if got != expected {
            wrong.note(from + i, Number::Int(got.into()), Number::Int(expected.into()), 0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_f16_is_widened_exactly() {
        for bits in 0..=u16::MAX {
            let (got, expected) = (widen_f16(bits), f16::from_bits(bits).to_f32());
            assert!(got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan(), "{bits:#x}");
        }
    }

    #[test]
    fn the_lowest_bit_divides_and_is_the_largest_that_does() {
        let odd = [1.0, 3.0, 5.0, 1023.0, (1u64 << 53) as f64 - 1.0];
        for e in -1074..900 {
            let scale = if e < -1022 { f64::from_bits(1 << (e + 1074)) } else { power(e) };
            for x in odd {
                // Where the product is exact its lowest bit is the scale.
                if x * scale / scale == x {
                    assert_eq!(lowest_bit(x * scale), scale, "{x} * 2^{e}");
                    assert_eq!(lowest_bit(-x * scale), scale);
                }
            }
        }
    }
}
