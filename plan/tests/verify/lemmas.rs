//! Rule V2 against the graph of D spelled out, and the lemmas of plan.md §4 that let one iteration with all messages
//! speak for every call.

use proptest::prelude::*;
use rcc_plan::verify::{Limits, VerifiedPlan, Violation, least_slots, trades, verify, verify_fresh};

use crate::cases;
use crate::events::{ENDLESS, Shape, is_acyclic};
use crate::holds::{acyclic, least_by_the_book, lemmas, side_by_side};
use crate::random;

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
    fn least_slots_of_wide_steps_is_that_of_the_graph(plan in random::wide_plan()) {
        let least = least_slots(&plan, &Limits::default()).ok().map(|slots| slots as usize);
        prop_assert_eq!(least, least_by_the_book(&plan));
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
    fn lemmas_of_one_plan(plan in random::plan(), slots in 1usize..5, iterations in 2usize..5, seed: u64) {
        lemmas(&plan, slots, iterations, seed)?;
    }

    /// Where it lives, with as few slots as it can: rare among the cases of the test above.
    #[test]
    fn lemmas_at_the_least_number_of_slots(plan in random::plan(), more in 0usize..3, seed: u64) {
        let least = least_by_the_book(&plan);
        prop_assume!(least.is_some());
        lemmas(&plan, least.unwrap_or(1) + more, 3, seed)?;
    }

    /// What trades slots never gets stuck: any number of iterations and calls, and of slots from there on. And what could trade, does.
    #[test]
    fn traded_slots_are_safe(
        plan in prop_oneof![random::exchange(), random::plan()],
        slots in 1u32..5,
        iterations in 1usize..4,
    ) {
        let all = trades(&plan, u32::MAX);
        if all.is_empty() {
            return Ok(());
        }
        let holds = |slots: usize, calls, blocking| {
            is_acyclic(&plan, &Shape { slots, pairs: &all, iterations, calls, blocking, ..Shape::default() })
        };
        let found = trades(&plan, slots);
        prop_assert!(found.is_empty() || found == all);
        for (calls, blocking) in [(1, false), (3, false), (2, true)] {
            prop_assert_eq!(!found.is_empty(), holds(slots as usize, calls, blocking), "{} calls", calls);
        }
        prop_assert!(found.is_empty() || holds(slots as usize + 2, 2, false));
    }

    #[test]
    fn l5_plans_run_side_by_side(one in random::plan(), other in random::plan(), slots in 1usize..5) {
        let both = acyclic(&one, slots) && acyclic(&other, slots);
        let together = side_by_side(&one, &other);
        prop_assert_eq!(both, acyclic(&together, slots));
        prop_assert_eq!(both, is_acyclic(&together, &Shape { slots, calls: 2, ..Shape::default() }));
    }
}

#[test]
fn random_plans_are_alive_and_dead_and_need_slots() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut counts = [0; 4];
    let mut trading = [0; 3];
    for _ in 0..400 {
        let plan = random::plan().new_tree(&mut runner).unwrap().current();
        let least = least_by_the_book(&plan).unwrap_or(0);
        counts[least.min(3)] += 1;
        let plan = random::exchange().new_tree(&mut runner).unwrap().current();
        let trades_with = |&slots: &u32| !trades(&plan, slots).is_empty();
        trading[[1, u32::MAX].iter().position(trades_with).unwrap_or(2)] += 1;
    }
    // With one slot; with more; never.
    assert!(trading.iter().all(|&count| count >= 10), "{trading:?}");
    // Dead; alive with 1, 2, 3 or more slots: if one of them is rare, the tests above test little.
    assert!(counts.iter().all(|&count| count >= 10), "{counts:?}");
}
