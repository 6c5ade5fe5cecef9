//! The reference against rational arithmetic and against errors put in on purpose: nothing right is refused, whatever
//! the order of combining; what is wrong is found.

use proptest::prelude::*;
use rcc_plan::arith::{Number, Rounding, fold, number};
use rcc_plan::dtype::{Dtype, Op};
use rcc_plan::ids::{BufferId, RankId};
use rcc_plan::pre::Pre;
use rcc_plan::reference::{check, fill, fill_from};

const N: usize = 700;

fn random(dtype: Dtype, op: Op, m: usize, seed: u64) -> Vec<Vec<u8>> {
    (0..m as u32)
        .map(|rank| {
            let mut bytes = vec![0; N * dtype.size() as usize];
            fill(dtype, op, seed, RankId(rank), BufferId(0), &mut bytes);
            bytes
        })
        .collect()
}

fn check_all(dtype: Dtype, op: Op, operands: &[Vec<u8>], got: &[u8]) -> rcc_plan::reference::Wrong {
    let operands: Vec<&[u8]> = operands.iter().map(Vec::as_slice).collect();
    check(dtype, op, &operands, got)
}

/// Combines two random values of a pool until one is left: some tree over the operands, rounding at every node.
fn some_tree(dtype: Dtype, op: Op, operands: &[Vec<u8>], mut seed: u64) -> Vec<u8> {
    // With whether it is an entry value.
    let mut pool: Vec<_> = operands.iter().map(|operand| (operand.clone(), true)).collect();
    let m = pool.len() as u32;
    let mut draw = |n: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize % n
    };
    if m == 1 {
        return pool.remove(0).0;
    }
    while pool.len() > 1 {
        let (a, of_a) = pool.swap_remove(draw(pool.len()));
        let (b, of_b) = pool.swap_remove(draw(pool.len()));
        let mut to = vec![0; a.len()];
        let post = pool.is_empty().then_some(m);
        let pre = Pre::of([of_a, of_b]).unwrap();
        fold(dtype, op, &[&a, &b], Rounding { round_each: false, post, pre }, &mut to);
        pool.push((to, false));
    }
    pool.remove(0).0
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_order_a_right_result_is_accepted(kind in 0usize..Dtype::ALL.len() * Op::ALL.len(), m in 1usize..40, seed: u64) {
        let (dtype, op) = (Dtype::ALL[kind % Dtype::ALL.len()], Op::ALL[kind / Dtype::ALL.len()]);
        let operands = random(dtype, op, m, seed);
        let got = some_tree(dtype, op, &operands, seed);
        let wrong = check_all(dtype, op, &operands, &got);
        prop_assert_eq!(wrong.count, 0, "{} {} {:?}", dtype, op, wrong.first);
    }

    /// A lost operand, one taken twice, one of another rank: in some element it shows.
    #[test]
    fn a_wrong_multiset_is_found(kind in 0usize..Dtype::ALL.len() * Op::ALL.len(), m in 2usize..40, fault in 0u32..3, seed: u64) {
        let (dtype, op) = (Dtype::ALL[kind % Dtype::ALL.len()], Op::ALL[kind / Dtype::ALL.len()]);
        // Twice the same is no fault to min and max.
        prop_assume!(fault != 1 || !matches!(op, Op::Min | Op::Max));
        let operands = random(dtype, op, m, seed);
        let mut used = operands.clone();
        match fault {
            0 => drop(used.swap_remove((seed % m as u64) as usize)),
            1 => used.push(operands[(seed % m as u64) as usize].clone()),
            _ => used[0] = random(dtype, op, m + 1, seed).swap_remove(m),
        }
        let got = some_tree(dtype, op, &used, seed);
        prop_assert!(check_all(dtype, op, &operands, &got).count > 0, "{} {}", dtype, op);
    }

    /// Sums of a few f32 lie within 2^-24 per operation of the exact sum, computed here in integers.
    #[test]
    fn the_bound_is_neither_too_tight_nor_too_loose(xs in prop::collection::vec(-1000i64..1000, 2..20)) {
        // Multiples of 2^-30: their sum needs more bits than f32 has.
        let scale = 2f64.powi(-30);
        let values: Vec<f32> = xs.iter().enumerate().map(|(i, &x)| ((x << (i % 20)) as f64 * scale) as f32).collect();
        let exact: i64 = xs.iter().enumerate().map(|(i, &x)| x << (i % 20)).sum();
        let magnitude: i64 = xs.iter().enumerate().map(|(i, &x)| (x << (i % 20)).abs()).sum();
        let operands: Vec<Vec<u8>> = values.iter().map(|x| x.to_ne_bytes().to_vec()).collect();
        let allowed = (xs.len() - 1) as f64 * 2f64.powi(-24) * magnitude as f64 * scale;
        let at = |error: f64| {
            let got = exact as f64 * scale + error;
            // In f32, so that the deviation is what is really stored.
            let got32 = got as f32;
            let off = (f64::from(got32) - exact as f64 * scale).abs();
            (off, check_all(Dtype::F32, Op::Sum, &operands, &got32.to_ne_bytes()).count)
        };
        for factor in [1.2, -1.2, 3.0, -7.0] {
            let (off, count) = at(allowed * factor);
            prop_assert!(off <= allowed * 1.01 || count == 1, "off by {} of {}", off, allowed);
        }
        prop_assert_eq!(at(0.0).1, 0, "the nearest is right");
    }

    #[test]
    fn any_part_of_random_data_can_be_made_alone(kind in 0usize..Dtype::ALL.len() * Op::ALL.len(), first in 0usize..N, len in 0usize..50, seed: u64) {
        let (dtype, op) = (Dtype::ALL[kind % Dtype::ALL.len()], Op::ALL[kind / Dtype::ALL.len()]);
        let size = dtype.size() as usize;
        let mut whole = vec![0; N * size];
        fill(dtype, op, seed, RankId(3), BufferId(1), &mut whole);
        let end = (first + len).min(N);
        let mut part = vec![0; (end - first) * size];
        fill_from(dtype, op, seed, RankId(3), BufferId(1), first as u64, &mut part);
        prop_assert_eq!(&whole[first * size..end * size], &part[..]);
    }
}

#[test]
fn each_wrong_element_is_counted_and_the_first_shown() {
    let operands = random(Dtype::I64, Op::Sum, 5, 1);
    let mut got = some_tree(Dtype::I64, Op::Sum, &operands, 1);
    let Number::Int(right) = number(Dtype::I64, &got[600 * 8..601 * 8]) else { panic!("an integer") };
    for i in [600, 601, 699] {
        got[i * 8] ^= 1;
    }
    let wrong = check_all(Dtype::I64, Op::Sum, &operands, &got);
    let first = wrong.first.unwrap();
    assert_eq!((wrong.count, first.index, first.expected, first.bound), (3, 600, Number::Int(right), 0.0));
    assert_eq!(first.got, Number::Int(right ^ 1));
}

/// A change of the last bit is a fault for integers, copies, min and max, and where sums are exact.
#[test]
fn the_last_bit_counts_where_nothing_rounds() {
    for dtype in Dtype::ALL {
        for (op, m) in [(Op::Min, 5), (Op::Max, 5), (Op::Sum, 1), (Op::Avg, 1), (Op::Prod, 1)] {
            let operands = random(dtype, op, m, 9);
            let mut got = some_tree(dtype, op, &operands, 9);
            let size = dtype.size() as usize;
            let low = if cfg!(target_endian = "little") { 0 } else { size - 1 };
            got.chunks_exact_mut(size).for_each(|e| e[low] ^= 1);
            assert_eq!(check_all(dtype, op, &operands, &got).count, N as u64, "{dtype} {op}");
        }
    }
    // About half of the elements of a sum are exact, with as many operands as the documentation says and more.
    let some = [(Dtype::F32, 1000), (Dtype::F64, 1000), (Dtype::F16, 500), (Dtype::Bf16, 64)];
    for (dtype, m) in some.into_iter().chain([(Dtype::F8E4m3, 64), (Dtype::F8E5m2, 32)]) {
        for op in [Op::Sum, Op::Prod] {
            let operands = random(dtype, op, m, 9);
            let mut got = some_tree(dtype, op, &operands, 9);
            let size = dtype.size() as usize;
            let low = if cfg!(target_endian = "little") { 0 } else { size - 1 };
            got.chunks_exact_mut(size).for_each(|e| e[low] ^= 1);
            let found = check_all(dtype, op, &operands, &got).count as usize;
            assert!(found * 5 > N * 2, "{dtype} {op}: {found} of {N}");
        }
    }
}

#[test]
fn values_that_are_no_numbers_are_judged() {
    let f = |xs: &[f32], op, got: f32| {
        let operands: Vec<Vec<u8>> = xs.iter().map(|x| x.to_ne_bytes().to_vec()).collect();
        check_all(Dtype::F32, op, &operands, &got.to_ne_bytes()).count
    };
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    assert_eq!(f(&[1.0, nan], Op::Sum, nan), 0);
    assert_eq!(f(&[1.0, nan], Op::Sum, 1.0), 1);
    assert_eq!(f(&[1.0, 2.0], Op::Sum, nan), 1);
    assert_eq!(f(&[1.0, 2.0], Op::Sum, inf), 1);
    assert_eq!(f(&[inf, 2.0], Op::Sum, inf), 0);
    assert_eq!(f(&[inf, 2.0], Op::Sum, -inf), 1);
    assert_eq!(f(&[inf, 2.0], Op::Sum, 3.0), 1);
    assert_eq!(f(&[inf, -inf], Op::Sum, nan), 0);
    assert_eq!(f(&[inf, -inf], Op::Sum, 0.0), 1);
    assert_eq!(f(&[nan, 1.0], Op::Max, nan), 0);
    assert_eq!(f(&[nan, 1.0], Op::Max, 1.0), 1);
    assert_eq!(f(&[0.0, -0.0], Op::Min, -0.0), 0);
    assert_eq!(f(&[0.0, -0.0], Op::Min, 0.0), 1);
    assert_eq!(f(&[-nan], Op::Sum, nan), 0, "NaN payloads are unspecified");
    // An overflow in some orders, in others none: both are right.
    assert_eq!(f(&[f32::MAX, f32::MAX, -f32::MAX], Op::Sum, inf), 0);
    assert_eq!(f(&[f32::MAX, f32::MAX, -f32::MAX], Op::Sum, f32::MAX), 0);
    // Products that may vanish on the way.
    assert_eq!(f(&[1e-30, 1e-30, 1e30], Op::Prod, 0.0), 0);
    assert_eq!(f(&[1e-30, 1e-30, 1e30], Op::Prod, 1e-30), 0);
    assert_eq!(f(&[1e-30, 1e-30, 1e30], Op::Prod, 1e-10), 1);
    assert_eq!(f(&[0.0, 5.0, 7.0], Op::Prod, 1e-3), 1);
    assert_eq!(f(&[0.0, 5.0, 7.0], Op::Prod, 0.0), 0);
}

/// Sums neither overflow nor vanish, both signs occur, and ranks, buffers and seeds differ.
#[test]
fn random_data_suits_the_operator() {
    for dtype in Dtype::ALL {
        for op in Op::ALL {
            let operands = random(dtype, op, 64, 3);
            let got = some_tree(dtype, op, &operands, 3);
            let size = dtype.size() as usize;
            let values: Vec<Number> = got.chunks_exact(size).map(|e| number(dtype, e)).collect();
            let first: Vec<Number> = operands[0].chunks_exact(size).map(|e| number(dtype, e)).collect();
            let negative = |n: &Number| {
                matches!(n, Number::Float(x) if *x < 0.0) || matches!(n, Number::Int(i) if *i < 0)
            };
            let zero = |n: &Number| matches!(n, Number::Float(x) if *x == 0.0) || *n == Number::Int(0);
            let finite = |n: &Number| !matches!(n, Number::Float(x) if !x.is_finite());
            assert!(values.iter().all(finite), "{dtype} {op}");
            if !matches!(dtype, Dtype::U8 | Dtype::U32 | Dtype::U64) {
                let count = first.iter().filter(|n| negative(n)).count();
                assert!(count > N / 4 && count < N * 3 / 4, "{dtype} {op}: {count} negative");
            }
            if op == Op::Prod {
                assert!(!values.iter().any(zero), "{dtype}: a product vanished");
            }
            assert_ne!(operands[0], operands[1]);
            let mut other = vec![0; got.len()];
            fill(dtype, op, 3, RankId(0), BufferId(1), &mut other);
            assert_ne!(other, operands[0]);
            fill(dtype, op, 4, RankId(0), BufferId(0), &mut other);
            assert_ne!(other, operands[0]);
        }
    }
}

#[test]
fn without_operands_nothing_is_promised() {
    assert_eq!(check(Dtype::F32, Op::Sum, &[], &[1; 8]).count, 0);
    assert_eq!(check(Dtype::F32, Op::Sum, &[&[], &[]], &[]).count, 0);
}
