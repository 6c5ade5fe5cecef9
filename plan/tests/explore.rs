//! The explorer itself: right plans are right in every order, and each fault it knows is seen.

mod common;

use common::explore::{Verdict, explore, explore_with};
use rcc_plan::builder::{PlanBuilder, get, local, put};
use rcc_plan::plan::{Plan, Role};

#[test]
fn right_plans_are_right_in_every_order() {
    for (name, plan) in common::plans::small() {
        let verdict = explore(&plan);
        println!("{name}: {verdict:?}");
        assert!(matches!(verdict, Verdict::Right(_)), "{name}: {verdict:?}");
    }
}

/// More slots and more iterations (L1, L2) change nothing.
#[test]
fn right_plans_stay_right_with_more_slots_and_iterations() {
    for (name, plan) in common::plans::small() {
        let events: u32 = plan.steps.iter().map(|s| s.width).sum();
        for (slots, iterations) in [(1, 1), (0, 2), (1, 2), (3, 1)] {
            if events * iterations <= 24 || iterations == 1 && plan.header.ranks < 4 {
                let verdict = explore_with(&plan, plan.header.k_min + slots, iterations);
                assert!(matches!(verdict, Verdict::Right(_)), "{name}: {verdict:?}");
            }
        }
    }
}

/// Counted by hand: two ranks, each sends one message and then receives one.
#[test]
fn states_are_counted_exactly() {
    // Each rank's position is 0, 1 or 2; position 2 needs the other's send: 9 - 2 (one has received what the other
    // has not sent) states.
    let mut plan = common::plans::exchange(2);
    let single = swap_in_one_block();
    plan.header.forms.same = false;
    assert_eq!(explore(&single), Verdict::Right(7));
    // With two blocks per rank that wait, the positions are the same.
    assert_eq!(explore(&plan), Verdict::Right(7));
}

fn swap_in_one_block() -> Plan {
    let mut p = PlanBuilder::new("swap", "custom", &[2]);
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, 1);
    let blocks = [0, 1].map(|rank| p.block(rank));
    let channels = [p.channel(blocks[0], &[blocks[1]]), p.channel(blocks[1], &[blocks[0]])];
    for r in 0..2 {
        p.step(blocks[r], &[local(input, 0)], &[put(channels[r])]);
        p.step(blocks[r], &[get(channels[1 - r])], &[local(output, 0)]);
        p.promise((output, r as u32, 0), &[(input, 1 - r as u32, 0)]);
    }
    p.finish().unwrap().plan
}

#[test]
fn every_kind_of_fault_is_seen() {
    let check =
        |plan: &Plan, fault| assert_eq!(explore(plan), Verdict::Wrong(fault), "{}", plan.header.algorithm);

    let mut plan = common::plans::ring_allreduce(3);
    plan.header.k_min = 1;
    check(&plan, "deadlock");

    let mut plan = common::plans::exchange(2);
    plan.steps.iter_mut().for_each(|s| s.wait_count = 0);
    check(&plan, "promise");
    plan.header.forms.same = false;
    assert!(matches!(explore(&plan), Verdict::Right(_)), "out of place the wait is not needed");

    let mut plan = common::plans::two_block_chain();
    plan.steps.iter_mut().for_each(|s| s.wait_count = 0);
    check(&plan, "undefined");

    let mut plan = common::plans::many_operand_reduce(3);
    plan.steps.iter_mut().for_each(|s| s.post = false);
    check(&plan, "promise");

    let mut plan = common::plans::barrier(4);
    for block in &mut plan.blocks {
        block.body.end -= 2;
    }
    check(&plan, "leaves early");

    // The token that says DONE is neither sent nor received: rank 0 may leave too early.
    let mut plan = common::plans::peer_put();
    plan.blocks[0].epilogue = 0..0;
    plan.blocks[1].epilogue = 0..0;
    check(&plan, "reaches outside a call");
    // Nor READY: rank 0 may not have entered.
    let mut plan = common::plans::peer_put();
    plan.blocks[0].prologue = 0..0;
    plan.blocks[1].prologue = 0..0;
    check(&plan, "reaches outside a call");

    // Nobody takes the token.
    let mut plan = common::plans::peer_put();
    plan.blocks[0].epilogue = 0..0;
    check(&plan, "reaches outside a call");

    let mut plan = swap_in_one_block();
    plan.steps[1].operands += 1;
    plan.steps[1].sources = 0;
    check(&plan, "nothing to store");
    let mut plan = swap_in_one_block();
    plan.steps[0].width = 2;
    check(&plan, "bounds");
    // A message more than is received: seen at the end.
    let mut plan = swap_in_one_block();
    plan.blocks[1].body.end -= 1;
    plan.promise.clauses.pop();
    check(&plan, "messages left over");
}
