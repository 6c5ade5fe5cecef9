//! The layout against what plan.md §2 says of it: cuts are functions of the fraction alone, cover, and never move.

mod common;

use std::ops::Range;

use proptest::prelude::*;
use rcc_plan::dtype::Dtype;
use rcc_plan::ids::{BufferId, RankId};
use rcc_plan::layout::{Layout, LayoutError, MAX_BYTES, cut, cut_align};
use rcc_plan::plan::{Plan, Role};

fn plan(cells: u32, copies: u32, blocks: u32, scratch: Vec<u32>) -> Plan {
    let mut plan = common::empty(scratch.len() as u32);
    plan.header.cells = cells;
    plan.header.copies = copies;
    plan.header.scratch_cells = scratch;
    plan.buffers =
        vec![common::buffer("data", Role::Send, blocks), common::buffer("scratch", Role::Scratch, 0)];
    plan
}

/// Exact rationals by repeated subtraction would be slow: `p/q * n` by schoolbook 192-bit arithmetic instead, so that
/// the reference shares no expression with the code.
fn floor_mul_div(p: u64, n: u64, d: u128) -> u128 {
    let product = u128::from(p) * u128::from(n);
    let (mut quotient, mut rest) = (0u128, 0u128);
    for bit in (0..128).rev() {
        rest = (rest << 1) | ((product >> bit) & 1);
        if rest >= d {
            rest -= d;
            quotient |= 1 << bit;
        }
    }
    quotient
}

fn counts() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..50,
        Just(1009),
        Just(65_537),
        1_000u64..200_000,
        (1u64 << 40) - 3..(1 << 40) + 3,
        Just((1 << 56) - 1),
    ]
}

fn dtypes() -> impl Strategy<Value = Dtype> {
    prop::sample::select(Dtype::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_cut_is_its_definition(q in 1u64..1 << 40, p in 0.0..=1.0f64, n: u64, dtype in dtypes()) {
        let (p, align) = ((q as f64 * p) as u64, cut_align(n, dtype));
        let got = cut(p, q, n, align);
        let expected = if p == q { u128::from(n) }
            else { u128::from(align) * floor_mul_div(p, n, u128::from(q) * u128::from(align)) };
        prop_assert_eq!(u128::from(got), expected);
    }

    #[test]
    fn refining_moves_no_boundary(q in 1u64..1 << 30, p in 0.0..=1.0f64, c in 1u64..1 << 30, n: u64, dtype in dtypes()) {
        let (p, align) = ((q as f64 * p) as u64, cut_align(n, dtype));
        prop_assert_eq!(cut(p, q, n, align), cut(c * p, c * q, n, align));
    }

    #[test]
    fn cells_of_all_copies_cover_each_block_in_order(
        k in 1u32..40, c in 1u32..6, n in counts(), blocks in 1u32..3, dtype in dtypes(), slot in 16u32..9000,
    ) {
        let layout = Layout::new(&plan(k, c, blocks, vec![3]), n, dtype, slot).unwrap();
        let (mut at, mut largest) = (0, 0);
        for cell in 0..k * blocks {
            for copy in 0..c {
                let range = layout.place(copy, cell);
                prop_assert_eq!(range.start, at);
                prop_assert!(range.end >= range.start);
                let block = u64::from(cell / k) * n;
                let within = layout.cell(copy, cell % k);
                prop_assert_eq!(within.start + block..within.end + block, range.clone());
                if n * u64::from(dtype.size()) >= 65536 && within.end != n {
                    prop_assert_eq!(within.end * u64::from(dtype.size()) % 16, 0);
                }
                largest = largest.max(range.end - range.start);
                at = range.end;
            }
        }
        prop_assert_eq!(at, n * u64::from(blocks));
        prop_assert_eq!(layout.largest_cell(), largest);
        // Small blocks are cut as evenly as can be.
        if layout.align() == 1 {
            prop_assert_eq!(largest, n.div_ceil(u64::from(k * c)));
        }
    }

    #[test]
    fn slices_cover_each_cell_and_fit_a_slot(
        k in 1u32..9, c in 1u32..4, n in prop_oneof![0u64..50, 1_000u64..200_000], dtype in dtypes(), slot in 16u32..9000,
    ) {
        let layout = Layout::new(&plan(k, c, 1, vec![3]), n, dtype, slot).unwrap();
        let size = u64::from(dtype.size());
        prop_assert!(layout.slices() >= 1);
        let mut most = 1;
        for position in 0..k {
            for copy in 0..c {
                let cell = layout.cell(copy, position);
                let mut at = cell.start;
                for t in 0..layout.slices() {
                    let Range { start, end } = layout.slice(copy, position, t);
                    prop_assert_eq!(start, at);
                    prop_assert!(end <= cell.end && (end - start) * size <= u64::from(slot));
                    prop_assert_eq!(layout.length(copy, position, t), end - start);
                    // Only the last slice of a cell is short, and large cells are sliced at aligned places.
                    prop_assert!(end - start == layout.slice_elements() || end == cell.end);
                    prop_assert_eq!(layout.slice_elements() % u64::from(layout.align()), 0);
                    if start < end {
                        most = most.max(t + 1);
                    }
                    at = end;
                }
                prop_assert_eq!(at, cell.end);
                prop_assert!(layout.slice(copy, position, layout.slices()).is_empty());
                prop_assert!(layout.slice(copy, position, u64::MAX).is_empty());
            }
        }
        prop_assert_eq!(layout.slices(), most, "no more slices than the largest cell needs");
    }

    #[test]
    fn scratch_cells_are_apart_and_hold_any_cell(
        k in 1u32..7, c in 1u32..4, n in 0u64..3000, cells in prop::collection::vec(0u32..5, 1..4), dtype in dtypes(),
    ) {
        let layout = Layout::new(&plan(k, c, 1, cells.clone()), n, dtype, 64).unwrap();
        for (rank, &count) in cells.iter().enumerate() {
            let rank = RankId::new(rank);
            let mut end = 0;
            for copy in 0..c {
                for cell in 0..count {
                    let start = layout.scratch_offset(rank, copy, cell);
                    prop_assert_eq!(start % 64, 0);
                    prop_assert_eq!(start, end);
                    end = start + layout.scratch_stride();
                    for position in 0..k {
                        let whole = layout.cell(copy, position);
                        let mut at = start;
                        for t in 0..layout.slices() {
                            let slice = layout.scratch_slice(rank, copy, cell, position, t);
                            prop_assert_eq!(slice.start, at);
                            at = slice.end;
                        }
                        prop_assert_eq!(at - start, (whole.end - whole.start) * u64::from(dtype.size()));
                        prop_assert!(at <= end);
                    }
                }
            }
            prop_assert_eq!(layout.scratch_bytes(rank), end);
        }
    }
}

#[test]
fn cells_at_the_counts_that_break_naive_code() {
    for n in [0, 1, 6, 7, 8, 1009, 1 << 40, (1 << 40) + 1] {
        let layout = Layout::new(&plan(7, 1, 2, vec![0]), n, Dtype::F32, 1 << 20).unwrap();
        let cells: Vec<_> = (0..7).map(|i| layout.cell(0, i)).collect();
        if n < 1 << 14 {
            let expected: Vec<_> = (0..7).map(|i| i * n / 7..(i + 1) * n / 7).collect();
            assert_eq!(cells, expected, "n = {n}");
        } else {
            let expected: Vec<_> =
                (0..7).map(|i| i * n / 28 * 4..if i == 6 { n } else { (i + 1) * n / 28 * 4 }).collect();
            assert_eq!(cells, expected, "n = {n}");
        }
    }
}

#[test]
fn what_cannot_be_addressed_is_refused() {
    let two = plan(3, 2, 2, vec![5, 0]);
    let new = |plan: &Plan, n, dtype, slot| Layout::new(plan, n, dtype, slot);
    assert_eq!(new(&two, 1, Dtype::U8, 15), Err(LayoutError::SlotTooSmall { slot_bytes: 15 }));
    assert_eq!(new(&plan(0, 1, 1, vec![0]), 1, Dtype::U8, 16), Err(LayoutError::Empty));
    assert_eq!(new(&plan(1, 0, 1, vec![0]), 1, Dtype::U8, 16), Err(LayoutError::Empty));
    for n in [u64::MAX, u64::MAX / 2, (1 << 60) + (1 << 59)] {
        assert_eq!(new(&two, n, Dtype::F64, 16), Err(LayoutError::BlockTooLarge { elements: n }));
    }
    let half = MAX_BYTES / 2 + 1;
    let bytes = u128::from(half) * 2;
    assert_eq!(
        new(&two, half, Dtype::U8, 16),
        Err(LayoutError::BufferTooLarge { buffer: "data".to_string(), bytes })
    );
    let layout = new(&plan(1, 1, 1, vec![1]), MAX_BYTES - 63, Dtype::U8, u32::MAX).unwrap();
    assert_eq!(layout.buffer_bytes(BufferId(0)), MAX_BYTES - 63);
    assert_eq!(layout.scratch_bytes(RankId(0)), MAX_BYTES - 63);
    let two_scratch = new(&plan(1, 1, 1, vec![0, 2]), MAX_BYTES - 63, Dtype::U8, 64);
    let bytes = 2 * u128::from(MAX_BYTES - 63);
    assert_eq!(two_scratch, Err(LayoutError::ScratchTooLarge { rank: RankId(1), bytes }));
    let vast = new(&plan(u32::MAX, u32::MAX, 0, vec![u32::MAX]), MAX_BYTES, Dtype::U8, 64);
    assert!(matches!(vast, Err(LayoutError::ScratchTooLarge { .. })));
}
