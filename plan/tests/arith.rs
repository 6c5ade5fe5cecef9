//! Element arithmetic against exact rational results rounded by search, and against what plan.md §8 says.

use half::{bf16, f16};
use proptest::prelude::*;
use rcc_plan::arith::{Number, Rounding, fold, number};
use rcc_plan::dtype::{Dtype, Op};
use rcc_plan::pre::Pre;

fn fold_bytes<const N: usize>(dtype: Dtype, op: Op, operands: &[[u8; N]], rounding: Rounding) -> [u8; N] {
    let operands: Vec<&[u8]> = operands.iter().map(|o| o.as_slice()).collect();
    let mut to = [0; N];
    fold(dtype, op, &operands, rounding, &mut to);
    to
}

fn bf(op: Op, operands: &[f32], rounding: Rounding) -> f32 {
    let operands: Vec<_> = operands.iter().map(|&x| bf16::from_f32(x).to_ne_bytes()).collect();
    bf16::from_ne_bytes(fold_bytes(Dtype::Bf16, op, &operands, rounding)).to_f32()
}

fn hf(op: Op, operands: &[f32], rounding: Rounding) -> f32 {
    let operands: Vec<_> = operands.iter().map(|&x| f16::from_f32(x).to_ne_bytes()).collect();
    f16::from_ne_bytes(fold_bytes(Dtype::F16, op, &operands, rounding)).to_f32()
}

fn i32s(op: Op, operands: &[i32], post: Option<u32>) -> i32 {
    let operands: Vec<_> = operands.iter().map(|x| x.to_ne_bytes()).collect();
    i32::from_ne_bytes(fold_bytes(Dtype::I32, op, &operands, Rounding { post, ..ONCE }))
}

fn u8s(op: Op, operands: &[u8], post: Option<u32>) -> u8 {
    let operands: Vec<_> = operands.iter().map(|x| [*x]).collect();
    fold_bytes(Dtype::U8, op, &operands, Rounding { post, ..ONCE })[0]
}

const ONCE: Rounding = Rounding { round_each: false, post: None, pre: Pre::NONE };
const EACH: Rounding = Rounding { round_each: true, ..ONCE };

/// All finite values of a 16-bit type in order, each with whether its mantissa is even.
fn table(value: impl Fn(u16) -> f64) -> Vec<(f64, bool)> {
    let mut all: Vec<_> =
        (0..=u16::MAX).map(|bits| (value(bits), bits & 1 == 0)).filter(|(x, _)| x.is_finite()).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}

/// The nearest of the table, ties to the even mantissa, found by search.
fn nearest(table: &[(f64, bool)], exact: f64) -> f64 {
    let above = table.partition_point(|(x, _)| *x < exact);
    let candidates = &table[above.saturating_sub(2)..(above + 2).min(table.len())];
    let distance = |x: f64| (x - exact).abs();
    let best = candidates.iter().map(|(x, _)| distance(*x)).fold(f64::INFINITY, f64::min);
    let mut close: Vec<_> = candidates.iter().filter(|(x, _)| distance(*x) == best).collect();
    close.sort_by_key(|(_, even)| !even);
    close[0].0
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Sums and products of two 16-bit floats are exact in f64, so that the right result is known: subnormals and
    /// ties included.
    #[test]
    fn two_operands_are_rounded_to_nearest_even(a: u16, b: u16, close: bool, half_type: bool, product: bool) {
        thread_local! {
            static TABLES: [Vec<(f64, bool)>; 2] =
                [table(|b| bf16::from_bits(b).to_f64()), table(|b| f16::from_bits(b).to_f64())];
        }
        // Operands of like size, so that the sum rounds.
        let b = if close { (a & 0xFC00) ^ (b & 0x87FF) } else { b };
        let (x, y, got) = if half_type {
            let (x, y) = (f16::from_bits(a), f16::from_bits(b));
            let op = if product { Op::Prod } else { Op::Sum };
            (x.to_f64(), y.to_f64(), f64::from(hf(op, &[x.to_f32(), y.to_f32()], ONCE)))
        } else {
            let (x, y) = (bf16::from_bits(a), bf16::from_bits(b));
            let op = if product { Op::Prod } else { Op::Sum };
            (x.to_f64(), y.to_f64(), f64::from(bf(op, &[x.to_f32(), y.to_f32()], ONCE)))
        };
        prop_assume!(x.is_finite() && y.is_finite());
        let exact = if product { x * y } else { x + y };
        TABLES.with(|tables| {
            let table = &tables[usize::from(half_type)];
            let most = table[table.len() - 1].0;
            // Products of bf16 can be subnormal in f32, where a second rounding happens before the last one.
            if exact.abs() > most || (!half_type && exact != 0.0 && exact.abs() < f64::from(f32::MIN_POSITIVE)) {
                return Ok(());
            }
            prop_assert_eq!(got, nearest(table, exact), "{} and {}", x, y);
            Ok(())
        })?;
    }

    #[test]
    fn integers_wrap_and_averages_truncate(xs in prop::collection::vec(any::<i32>(), 1..9), m in 1u32..1000) {
        let sum: i128 = xs.iter().map(|&x| i128::from(x)).sum();
        prop_assert_eq!(i32s(Op::Sum, &xs, None), sum as i32);
        prop_assert_eq!(i32s(Op::Avg, &xs, Some(m)), (i128::from(sum as i32) / i128::from(m)) as i32);
        prop_assert_eq!(i32s(Op::Avg, &xs, None), sum as i32, "no division without `post`");
        prop_assert_eq!(i32s(Op::Sum, &xs, Some(m)), sum as i32, "`post` is nothing to a sum");
        prop_assert_eq!(i32s(Op::Min, &xs, None), *xs.iter().min().unwrap());
        prop_assert_eq!(i32s(Op::Max, &xs, None), *xs.iter().max().unwrap());
        let product = xs.iter().fold(1i128, |p, &x| (p * i128::from(x)) as i32 as i128);
        prop_assert_eq!(i128::from(i32s(Op::Prod, &xs, None)), product);
    }
}

#[test]
fn a_step_rounds_once_or_after_each_operand() {
    let ulp = 2f32.powi(-7);
    // Half a unit is lost when it comes alone (ties to even), two halves make one.
    assert_eq!(bf(Op::Sum, &[1.0, ulp / 2.0, ulp / 2.0], ONCE), 1.0 + ulp);
    assert_eq!(bf(Op::Sum, &[1.0, ulp / 2.0, ulp / 2.0], EACH), 1.0);
    let ulp = 2f32.powi(-10);
    assert_eq!(hf(Op::Sum, &[1.0, ulp / 2.0, ulp / 2.0], ONCE), 1.0 + ulp);
    assert_eq!(hf(Op::Sum, &[1.0, ulp / 2.0, ulp / 2.0], EACH), 1.0);
    // From left to right: the other way round both halves are there before the one.
    assert_eq!(hf(Op::Sum, &[ulp / 2.0, ulp / 2.0, 1.0], EACH), 1.0 + ulp);
    // The sum overflows to infinity only when it is stored.
    assert_eq!(hf(Op::Sum, &[65504.0, 65504.0, -65504.0], ONCE), 65504.0);
    assert_eq!(hf(Op::Sum, &[65504.0, 65504.0, -65504.0], EACH), f32::INFINITY);
}

#[test]
fn the_outer_part_acts_before_the_last_rounding() {
    let avg = |post| Rounding { post: Some(post), ..ONCE };
    // 1 + (1 + ulp) = 2 + ulp is a tie in bf16 and would round to 2; halved first it is 1 + ulp/2, a tie to 1 …
    let ulp = 2f32.powi(-7);
    // … so take three: 3 + 2·ulp rounds to 3 + 2·ulp; a third of it is rounded once.
    let thirds = bf(Op::Avg, &[1.0, 1.0 + ulp, 1.0 + ulp], avg(3));
    assert_eq!(thirds, bf16::from_f32((3.0 + 2.0 * ulp) / 3.0).to_f32());
    // 65504 three times overflows f16, its mean does not.
    assert_eq!(hf(Op::Avg, &[65504.0; 3], avg(3)), 65504.0);
    assert_eq!(hf(Op::Avg, &[7.0], avg(2)), 3.5, "also of one operand");
    assert_eq!(hf(Op::Sum, &[7.0], avg(2)), 7.0);
}

#[test]
fn averages_of_bytes_divide_the_wrapped_sum_by_any_number() {
    assert_eq!(u8s(Op::Avg, &[200, 100], Some(2)), 22, "300 wraps to 44");
    assert_eq!(u8s(Op::Avg, &[200], Some(256)), 0, "256 does not fit a byte");
    assert_eq!(i32s(Op::Avg, &[-3, -4], Some(2)), -3, "towards zero");
}

#[test]
fn not_a_number_wins_and_minus_zero_is_less() {
    let f32s = |op, a: f32, b: f32| {
        f32::from_ne_bytes(fold_bytes(Dtype::F32, op, &[a.to_ne_bytes(), b.to_ne_bytes()], ONCE))
    };
    for op in [Op::Min, Op::Max] {
        assert!(f32s(op, f32::NAN, 1.0).is_nan() && f32s(op, 1.0, f32::NAN).is_nan());
        assert!(f32s(op, -f32::NAN, 1.0).is_nan() && f32s(op, 1.0, -f32::NAN).is_nan());
        assert!(hf(op, &[1.0, f32::NAN], ONCE).is_nan() && bf(op, &[f32::NAN, f32::INFINITY], ONCE).is_nan());
    }
    for (a, b) in [(0.0, -0.0), (-0.0, 0.0)] {
        assert!(f32s(Op::Min, a, b).is_sign_negative());
        assert!(f32s(Op::Max, a, b).is_sign_positive());
    }
    assert_eq!(f32s(Op::Min, f32::NEG_INFINITY, f32::MIN), f32::NEG_INFINITY);
}

#[test]
fn one_operand_is_copied_bit_by_bit_and_subnormals_are_kept() {
    for bits in [0x7F80_0001u32, 0xFFC0_1234, 0x8000_0000, 1] {
        let copy = fold_bytes(Dtype::F32, Op::Sum, &[bits.to_ne_bytes()], EACH);
        assert_eq!(u32::from_ne_bytes(copy), bits);
    }
    for bits in [0x7C01u16, 0xFE12, 0x8000, 1] {
        let copy = fold_bytes(Dtype::F16, Op::Max, &[bits.to_ne_bytes()], ONCE);
        assert_eq!(u16::from_ne_bytes(copy), bits);
    }
    let tiny = f32::from_bits(1);
    assert_eq!(
        bf(Op::Sum, &[bf16::from_bits(1).to_f32(), bf16::from_bits(2).to_f32()], ONCE),
        bf16::from_bits(3).to_f32()
    );
    let sum = fold_bytes(Dtype::F32, Op::Sum, &[tiny.to_ne_bytes(), tiny.to_ne_bytes()], ONCE);
    assert_eq!(f32::from_ne_bytes(sum).to_bits(), 2);
}

#[test]
fn all_elements_are_handled_at_any_address() {
    let bytes: Vec<u8> = (0..=255).collect();
    let (a, b) = (&bytes[1..1 + 56], &bytes[3..3 + 56]);
    let mut to = [0; 56];
    fold(Dtype::I64, Op::Max, &[a, b], ONCE, &mut to);
    for i in 0..7 {
        let of = |x: &[u8]| number(Dtype::I64, &x[i * 8..][..8]);
        let (Number::Int(x), Number::Int(y)) = (of(a), of(b)) else { panic!("an integer") };
        assert_eq!(of(&to), Number::Int(x.max(y)));
    }
}
