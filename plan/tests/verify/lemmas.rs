//! Rule V2 against the graph of D spelled out, and the lemmas of plan.md §4 that let one iteration with all messages
//! speak for every call.

use std::ops::Range;

use proptest::prelude::*;
use rcc_plan::ids::{BlockId, ChannelId, StepId};
use rcc_plan::plan::{Block, Channel, Operand, Plan, Step};
use rcc_plan::verify::{Limits, VerifiedPlan, Violation, least_slots, verify, verify_fresh};

use crate::cases;
use crate::events::{ENDLESS, Shape, is_acyclic};
use crate::random;

/// The most slots that can matter: all messages of a channel.
fn most_slots(plan: &Plan) -> usize {
    plan.steps.iter().map(|step| step.width as usize).sum::<usize>().max(1)
}

fn acyclic(plan: &Plan, slots: usize) -> bool {
    is_acyclic(plan, &Shape { slots, ..Shape::default() })
}

/// By the book: the least number of slots without a cycle.
fn least_by_the_book(plan: &Plan) -> Option<usize> {
    (1..=most_slots(plan)).find(|&slots| acyclic(plan, slots))
}

/// A number that says nothing but is always the same for equal input.
fn noise(seed: u64, numbers: &[u64]) -> u64 {
    numbers.iter().fold(seed, |bits, &n| {
        let bits = (bits ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits ^ (bits >> 29)
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(2000),
        max_global_rejects: cases(2000).saturating_mul(20),
        ..ProptestConfig::default()
    })]

    #[test]
    fn least_slots_is_that_of_the_graph(plan in random::plan()) {
        let least = least_by_the_book(&plan);
        match least_slots(&plan, &Limits::default()) {
            Ok(slots) => prop_assert_eq!(Some(slots as usize), least),
            Err(violations) => {
                prop_assert!(violations.iter().all(|v| v.code() == "plan::v2_deadlock"), "{}", violations[0]);
                prop_assert_eq!(least, None);
                prop_assert!(!acyclic(&plan, ENDLESS));
            }
        }
    }

    #[test]
    fn k_min_must_be_the_least(mut plan in random::plan(), stated in 1u32..6) {
        plan.header.k_min = stated;
        let codes: Vec<&str> = match verify(plan.clone(), &Limits::default()) {
            Ok(_) => Vec::new(),
            Err(violations) => violations.iter().map(|v| v.code()).collect(),
        };
        match least_by_the_book(&plan) {
            None => prop_assert_eq!(codes, vec!["plan::v2_deadlock"]),
            Some(least) if least != stated as usize => prop_assert_eq!(codes, vec!["plan::v2_slot_count"]),
            Some(_) => prop_assert!(codes.iter().all(|code| code > &"plan::v3"), "{:?}", codes),
        }
    }

    #[test]
    fn a_fresh_plan_is_given_the_least(mut plan in random::plan(), stated in 1u32..6) {
        plan.header.k_min = stated;
        // Which of several violations is found first depends on the order, and that on the slots.
        let verdict = |plan: Result<VerifiedPlan, Vec<Violation>>| match plan {
            Ok(plan) => Ok(plan.into_plan()),
            Err(violations) => Err(violations[0].code()),
        };
        let fresh = verdict(verify_fresh(plan.clone(), &Limits::default()));
        if let Some(least) = least_by_the_book(&plan)
            && least <= stated as usize
        {
            plan.header.k_min = least as u32;
        }
        prop_assert_eq!(fresh, verdict(verify(plan, &Limits::default())));
    }

    #[test]
    fn l1_one_iteration_speaks_for_all(plan in random::plan(), slots in 1usize..5, iterations in 2usize..5) {
        let once = acyclic(&plan, slots);
        prop_assert_eq!(once, is_acyclic(&plan, &Shape { slots, iterations, ..Shape::default() }));
    }

    #[test]
    fn l2_more_slots_do_no_harm(plan in random::plan()) {
        let slots: Vec<bool> = (1..=most_slots(&plan)).map(|slots| acyclic(&plan, slots)).collect();
        prop_assert!(slots.is_sorted(), "{:?}", slots);
    }

    #[test]
    fn l3_messages_of_length_0_may_be_left_out(plan in random::plan(), more in 0usize..3, seed: u64) {
        let least = least_by_the_book(&plan);
        prop_assume!(least.is_some());
        let slots = least.unwrap_or(1) + more;
        let elided = |channel: ChannelId, number: usize| {
            let is_data = plan.channels[channel.index()].kind == rcc_plan::plan::ChannelKind::Slots;
            is_data && noise(seed, &[u64::from(channel.0), number as u64]) & 1 == 0
        };
        let shape = Shape { slots, elided: &elided, ..Shape::default() };
        prop_assert!(is_acyclic(&plan, &shape));
        let shape = Shape { slots, iterations: 3, elided: &elided, ..Shape::default() };
        prop_assert!(is_acyclic(&plan, &shape));
    }

    #[test]
    fn l4_neighbours_may_travel_as_one(plan in random::plan(), more in 0usize..3, seed: u64) {
        let least = least_by_the_book(&plan);
        prop_assume!(least.is_some());
        let slots = least.unwrap_or(1) + more;
        // Both ends must group alike: steps that exchange messages get one number, from which the groups follow.
        let kin = kin(&plan);
        let group = |step: StepId, micro: u32| {
            let cut = |at: u32| noise(seed, &[u64::from(kin[step.index()]), u64::from(at)]) & 1 == 0;
            (1..=micro).filter(|&at| cut(at)).count() as u32
        };
        let shape = Shape { slots, group: &group, ..Shape::default() };
        prop_assert!(is_acyclic(&plan, &shape));
        let shape = Shape { slots, iterations: 2, group: &group, ..Shape::default() };
        prop_assert!(is_acyclic(&plan, &shape));
    }

    #[test]
    fn l5_calls_follow_one_another(plan in random::plan(), slots in 1usize..5, calls in 2usize..4) {
        let once = acyclic(&plan, slots);
        for blocking in [false, true] {
            let shape = Shape { slots, calls, blocking, iterations: 2, ..Shape::default() };
            prop_assert_eq!(once, is_acyclic(&plan, &shape), "blocking: {}", blocking);
        }
    }

    #[test]
    fn l5_plans_run_side_by_side(one in random::plan(), other in random::plan(), slots in 1usize..5) {
        let both = acyclic(&one, slots) && acyclic(&other, slots);
        let together = side_by_side(&one, &other);
        prop_assert_eq!(both, acyclic(&together, slots));
        prop_assert_eq!(both, is_acyclic(&together, &Shape { slots, calls: 2, ..Shape::default() }));
    }
}

/// The blocks of both plans on the same ranks, on channels of their own.
fn side_by_side(one: &Plan, other: &Plan) -> Plan {
    let mut both = one.clone();
    let (blocks, channels, readers) = (one.blocks.len(), one.channels.len(), one.readers.len());
    let (steps, operands, waits) = (one.steps.len(), one.operands.len(), one.waits.len());
    let by = |range: &Range<u32>, by: usize| range.start + by as u32..range.end + by as u32;
    both.header.ranks = one.header.ranks.max(other.header.ranks);
    both.blocks.extend(other.blocks.iter().map(|block| Block {
        prologue: by(&block.prologue, steps),
        body: by(&block.body, steps),
        epilogue: by(&block.epilogue, steps),
        ..block.clone()
    }));
    both.channels.extend(other.channels.iter().map(|channel| Channel {
        writer: BlockId(channel.writer.0 + blocks as u32),
        readers: by(&channel.readers, readers),
        kind: channel.kind,
    }));
    both.readers.extend(other.readers.iter().map(|block| BlockId(block.0 + blocks as u32)));
    both.steps.extend(other.steps.iter().map(|step| Step {
        operands: step.operands + operands as u32,
        waits: step.waits + waits as u32,
        ..*step
    }));
    both.operands.extend(other.operands.iter().map(|operand| match *operand {
        Operand::Channel(channel) => Operand::Channel(ChannelId(channel.0 + channels as u32)),
        place => place,
    }));
    both.waits.extend(other.waits.iter().map(|step| StepId(step.0 + steps as u32)));
    both
}

/// For each step the least step that it is joined to by messages, directly or not.
fn kin(plan: &Plan) -> Vec<u32> {
    let mut kin: Vec<u32> = (0..plan.steps.len() as u32).collect();
    for (c, channel) in plan.channels.iter().enumerate() {
        let uses = |operands: &[Operand]| operands.contains(&Operand::Channel(ChannelId(c as u32)));
        let of_block = |block: usize, is_send: bool| -> Vec<usize> {
            let block = &plan.blocks[block];
            let steps = block.prologue.start..block.epilogue.end;
            let uses =
                |&s: &usize| uses(if is_send { plan.dst(&plan.steps[s]) } else { plan.src(&plan.steps[s]) });
            (steps.start as usize..steps.end as usize).filter(uses).collect()
        };
        let sends = of_block(channel.writer.index(), true);
        for reader in plan.readers(channel) {
            for (&send, receive) in sends.iter().zip(of_block(reader.index(), false)) {
                let (one, other) = (kin[send], kin[receive]);
                kin.iter_mut().filter(|k| **k == one || **k == other).for_each(|k| *k = one.min(other));
            }
        }
    }
    kin
}

#[test]
fn random_plans_are_alive_and_dead_and_need_slots() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut counts = [0; 4];
    for _ in 0..400 {
        let plan = random::plan().new_tree(&mut runner).unwrap().current();
        let least = least_by_the_book(&plan).unwrap_or(0);
        counts[least.min(3)] += 1;
    }
    // Dead; alive with 1, 2, 3 or more slots: if one of them is rare, the tests above test little.
    assert!(counts.iter().all(|&count| count >= 10), "{counts:?}");
}
