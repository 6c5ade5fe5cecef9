//! Plans as loops: what is packed is unpacked, and what is regular is small.

mod common;

use common::{mutate, plans, random};
use proptest::prelude::*;
use rcc_plan::builder::{PlanBuilder, get, local, put};
use rcc_plan::file::LoadLimits;
use rcc_plan::plan::{Plan, Role};

/// The plan, written and read; its size as a file.
fn again(plan: &Plan) -> usize {
    let bytes = plan.to_bytes();
    let read = Plan::from_bytes(&bytes, &LoadLimits::default());
    assert!(read.as_ref() == Ok(plan), "{}: {:?}", plan.header.algorithm, read.err());
    bytes.len()
}

#[test]
fn what_is_written_is_read() {
    for (_, plan) in plans::small() {
        again(&plan);
        for (_, mutant) in mutate::mutants(&plan) {
            again(&mutant);
        }
    }
}

#[test]
fn rings_of_any_size_are_small() {
    for n in [2, 3, 4, 5, 6, 7, 8, 9, 16, 100, 257] {
        assert!(again(&plans::ring_allreduce(n)) < 2000, "fused, {n} ranks");
        assert!(again(&plans::ring_plain(n)) < 2000, "plain, {n} ranks");
    }
}
