//! Plans that ask for too much.

use rcc_plan::builder::{PlanBuilder, local};
use rcc_plan::plan::{Operand, Plan, Role, Step};
use rcc_plan::schedule::Schedule;
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

/// What is beyond a limit is said to be the step at which a count by hand first goes over it.
#[test]
fn the_target_rule_names_the_step_that_needs_one_too_many() {
    let site = |plan: Plan, change: fn(&mut Target)| {
        let mut limits = Limits::default();
        change(&mut limits.target);
        let violations = verify(plan, &limits).unwrap_err();
        (violations[0].sites[0].clone(), violations[0].to_string())
    };
    // The chain's rank with two blocks: the first step of the second.
    let chain = plans::two_block_chain();
    let second = chain.blocks.iter().position(|block| block.position == 1).unwrap();
    let (found, text) = site(chain.clone(), |t| t.blocks_per_rank = 1);
    assert_eq!((found.rank, found.block, found.index), (chain.blocks[second].rank, 1, 0));
    assert!(text.contains("needs 2 blocks; the target `cpu` has 1"), "{text}");

    // Each rank of the ring first sends, then receives: that is its second end, and its second neighbour.
    let plan = ring();
    let receives = |step: &Step| plan.src(step).iter().any(|operand| matches!(operand, Operand::Channel(_)));
    let first = plan.steps(&plan.blocks[0].body).position(|(_, step)| receives(step)).unwrap();
    for (found, text) in [
        site(plan.clone(), |t| t.channel_ends_per_rank = 1),
        site(plan.clone(), |t| t.connections_per_rank = 1),
    ] {
        assert_eq!((found.rank.0, found.index as usize), (0, first), "{text}");
        assert!(found.does.starts_with("recv ch"), "{text}");
        assert!(text.contains(&format!("rank 0, block 0, step {first}: {}", found.does)), "{text}");
        assert!(text.contains("too many: "), "{text}");
    }
    // A rank that may have none: its first step already is too much.
    let (found, text) = site(plans::peer_put(), |t| t.connections_per_rank = 0);
    assert!(text.contains("needs 1 connection; the target `cpu` has 0"), "{text}");
    assert!(!found.does.is_empty(), "{text}");
}

/// However many operands a step has: a fault about it stays readable.
#[test]
fn the_text_of_a_step_is_bounded() {
    let mut p = PlanBuilder::new("wide", "custom", &[1]);
    let s = p.buffer("s", Role::Send, 2000);
    let r = p.buffer("r", Role::Recv, 1);
    let b = p.block(0);
    let sources: Vec<_> = (0..2000).map(|cell| local(s, cell)).collect();
    p.step(b, &sources, &[local(r, 7)]);
    let violations = verify(p.finish().unwrap().plan, &Limits::default()).unwrap_err();
    let site = &violations[0].sites[0];
    assert!(site.does.starts_with("s[0] + s[1] + ") && site.does.ends_with('…'), "{}", site.does);
    assert!(site.does.chars().count() < 200, "{}", site.does);
}

#[test]
fn every_copy_has_blocks_and_channels_of_its_own() {
    let within = |blocks, ends, connections| {
        let mut limits = Limits::default();
        limits.target.blocks_per_rank = blocks;
        limits.target.channel_ends_per_rank = ends;
        limits.target.connections_per_rank = connections;
        limits
    };
    let asked = |limits: &Limits| {
        let plan = verify(ring(), &Limits::default()).expect("right");
        plan.asked(3, Schedule { slice_bytes: Some(4096), ..Schedule::default() }, limits)
    };
    // A rank of the ring has a block, two ends, two neighbours.
    let fits = asked(&within(3, 6, 2)).expect("just enough");
    assert_eq!((fits.header.copies, fits.header.schedule.slice_bytes), (3, Some(4096)));
    assert!(verify(fits.into_plan(), &within(3, 6, 2)).is_ok());
    for breaks in [within(2, 6, 2), within(3, 5, 2), within(3, 6, 1)] {
        let violations = asked(&breaks).unwrap_err();
        assert!(violations.iter().all(|v| v.code() == "plan::v7_target_limit"), "{}", text(&violations));
    }
    let nothing = verify(ring(), &Limits::default()).expect("right");
    assert!(nothing.asked(0, Schedule::default(), &Limits::default()).is_err(), "no copies");
}

#[test]
fn the_hash_is_of_what_is_asked() {
    let plan = || verify(ring(), &Limits::default()).expect("right");
    let first = plan();
    let before = first.content_hash();
    let after = first.asked(2, Schedule::default(), &Limits::default()).expect("right");
    assert!(before != after.content_hash());
    assert!(after.content_hash() == after.plan().content_hash());
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
