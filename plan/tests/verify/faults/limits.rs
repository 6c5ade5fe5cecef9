//! Plans that ask for too much.

use rcc_plan::builder::{PlanBuilder, local};
use rcc_plan::plan::{Plan, Role};
use rcc_plan::verify::{Limits, Target, verify};

use super::{barrier1, ring, text, with_scratch};
use crate::common::plans;

#[test]
fn limits_are_checked_before_memory_is_taken() {
    let limits = Limits::default();
    let refused = |plan: Plan| {
        let violations = verify(plan, &limits).unwrap_err();
        assert!(violations.iter().all(|v| v.code() == "plan::v0_limit"), "{}", text(&violations));
    };
    let mut plan = ring();
    plan.header.cells = u32::MAX;
    refused(plan);
    let mut plan = plans::exchange(1);
    plan.buffers.iter_mut().for_each(|b| b.blocks = 1 << 30);
    refused(plan);
    let mut plan = ring();
    plan.steps.iter_mut().for_each(|s| s.width = u32::MAX);
    refused(plan);
    let mut plan = with_scratch(ring());
    plan.header.scratch_cells.fill(u32::MAX);
    refused(plan);
    let mut plan = barrier1();
    (plan.header.shape, plan.header.ranks) = (vec![1 << 16, 1 << 15], 1 << 31);
    let violations = verify(plan, &limits).unwrap_err();
    assert!(violations.iter().any(|v| v.code() == "plan::v0_limit"), "{}", text(&violations));
}

#[test]
fn the_cost_of_a_proof_is_limited() {
    let with = |change: fn(&mut Limits)| {
        let mut limits = Limits::default();
        change(&mut limits);
        limits
    };
    for (plan, limits) in [
        (ring(), with(|l| l.promise_visits = 5)),
        (plans::barrier(4), with(|l| l.arrival_words = 7)),
        (plans::two_block_chain(), with(|l| l.clock_entries = 6)),
        (ring(), with(|l| l.steps = 5)),
        (ring(), with(|l| l.micro_steps = 5)),
        (ring(), with(|l| l.accesses = 5)),
        (ring(), with(|l| l.places = 5)),
        (ring(), with(|l| l.ranks = 2)),
        (plans::two_block_chain(), with(|l| l.waits = 1)),
    ] {
        assert!(verify(plan.clone(), &Limits::default()).is_ok());
        let violations = verify(plan, &limits).unwrap_err();
        assert!(violations.iter().all(|v| v.code() == "plan::v0_limit"), "{}", text(&violations));
    }
}

#[test]
fn the_target_limits_blocks_ends_and_connections() {
    let target = |change: fn(&mut Target)| {
        let mut limits = Limits::default();
        change(&mut limits.target);
        limits
    };
    for (plan, fits, breaks) in [
        (plans::two_block_chain(), target(|t| t.blocks_per_rank = 2), target(|t| t.blocks_per_rank = 1)),
        (ring(), target(|t| t.channel_ends_per_rank = 2), target(|t| t.channel_ends_per_rank = 1)),
        (ring(), target(|t| t.connections_per_rank = 2), target(|t| t.connections_per_rank = 1)),
        (plans::peer_put(), target(|t| t.connections_per_rank = 1), target(|t| t.connections_per_rank = 0)),
    ] {
        assert!(verify(plan.clone(), &fits).is_ok());
        let violations = verify(plan, &breaks).unwrap_err();
        assert!(violations.iter().all(|v| v.code() == "plan::v7_target_limit"), "{}", text(&violations));
    }
}

#[test]
fn a_million_faults_are_counted_not_listed() {
    let mut p = PlanBuilder::new("many", "custom", &[1]);
    let (input, output) = (p.buffer("input", Role::Send, 1), p.buffer("output", Role::Recv, 1));
    let block = p.block(0);
    for _ in 0..1000 {
        p.step(block, &[local(input, 0)], &[local(output, 1)]);
    }
    let violations = verify(p.finish().unwrap().plan, &Limits::default()).unwrap_err();
    assert_eq!(violations.len(), 21);
    assert_eq!(
        violations[20].to_string().lines().next(),
        Some("plan::v0_place: 980 more violations of this rule are not shown")
    );
}
