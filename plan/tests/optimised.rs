//! Plans as an optimiser makes them (`common::direct`, `common::blocks`): proved, free of races by an analysis that shares
//! no code with the proof, right in every order where there are few, and right to the bit under random schedules at
//! all sizes where there are many.

mod common;

use common::explore::{Verdict, explore_with};
use common::oracle::{right, run, scheduler};
use proptest::prelude::*;
use rcc_plan::dtype::{Dtype, Op};
use rcc_plan::ids::{BufferId, RankId};
use rcc_plan::interpret::Call;
use rcc_plan::interpret::clocks::findings;
use rcc_plan::interpret::scheduler::RoundRobin;
use rcc_plan::plan::{Operand, Plan, Role};
use rcc_plan::verify::{Limits, least_slots, verify};

/// All, of `n` ranks (or thereabouts), with their least number of slots.
fn plans(n: u32) -> Vec<(String, Plan)> {
    let all = common::direct::all(n).into_iter().chain(common::blocks::all(n));
    all.map(|(name, mut plan)| {
        plan.header.k_min = least_slots(&plan, &Limits::default()).unwrap();
        match verify(plan, &Limits::default()) {
            Ok(verified) => (name, verified.into_plan()),
            Err(violations) => panic!("{name}: {}", violations[0]),
        }
    })
    .collect()
}

#[test]
fn they_are_proved_and_have_no_races() {
    for n in 2..=5 {
        for (name, plan) in plans(n) {
            for in_place in [false, true] {
                if if in_place { plan.header.forms.same } else { plan.header.forms.disjoint } {
                    assert_eq!(findings(&plan, in_place).unwrap(), [], "{name}, in place: {in_place}");
                }
            }
        }
    }
}

#[test]
fn slots_needed_are_those_counted_by_hand() {
    for n in 2..=5 {
        let needed = |plan| least_slots(&plan, &Limits::default()).unwrap();
        assert_eq!(needed(common::blocks::crossed(n, 1)), n);
        assert_eq!(needed(common::blocks::wide_chain(n, 4)), 1, "each end of a wide step takes cell by cell");
        assert_eq!(needed(common::blocks::tree(n, 3, 2)), 1);
    }
}

/// With two iterations, and with a slot more than needed, where there are not too many orders to try.
#[test]
fn they_are_right_in_every_order() {
    let (mut explored, mut too_large) = (0, Vec::new());
    for (name, plan) in plans(2) {
        for (more, iterations) in [(0, 1), (1, 1), (0, 2)] {
            match explore_with(&plan, plan.header.k_min + more, iterations) {
                Verdict::Right(_) => explored += 1,
                Verdict::TooLarge => too_large.push(name.clone()),
                Verdict::Wrong(why) => panic!("{name}: {why}"),
            }
        }
    }
    println!("explored {explored}; too large: {too_large:?}");
    assert!(explored >= 50 && too_large.len() <= 8, "explored {explored}; too large: {too_large:?}");
}

/// Every fence is needed: without its READY, or without its DONE, the proof refuses the plan.
#[test]
fn a_missing_token_is_refused() {
    for (name, plan) in common::direct::all(3) {
        let tokens: Vec<usize> = (0..plan.steps.len()).filter(|&s| is_token_receipt(&plan, s)).collect();
        assert!(!tokens.is_empty(), "{name}");
        for at in tokens {
            let mut broken = plan.clone();
            broken.steps[at].sources = 0;
            assert!(verify(broken, &Limits::default()).is_err(), "{name}: without the tokens of step {at}");
        }
    }
}

fn is_token_receipt(plan: &Plan, step: usize) -> bool {
    let step = &plan.steps[step];
    step.sources > 0 && step.destinations == 0 && matches!(plan.src(step)[0], Operand::Channel(_))
}

/// Without any one of its waits, each plan of many blocks is refused, or has another order to rely on: then the
/// analysis apart from the proof finds no race either.
#[test]
fn a_missing_wait_is_refused_or_was_redundant() {
    let mut refused = 0;
    for (name, plan) in plans(3) {
        for at in 0..plan.steps.len() {
            for wait in 0..plan.steps[at].wait_count {
                let mut broken = plan.clone();
                let waits = broken.steps[at].waits as usize;
                broken.waits.swap(waits + usize::from(wait), waits);
                broken.steps[at].waits += 1;
                broken.steps[at].wait_count -= 1;
                match verify(broken.clone(), &Limits::default()) {
                    Err(_) => refused += 1,
                    Ok(_) => {
                        let form = !broken.header.forms.disjoint;
                        assert_eq!(findings(&broken, form).unwrap(), [], "{name}: wait {wait} of step {at}");
                    }
                }
            }
        }
    }
    assert!(refused >= 20, "{refused}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Order, slots, slices, copies, grouping, elision and form change no bit of the result.
    #[test]
    fn nothing_that_may_vary_changes_a_bit(
        n in 2u32..6, which in 0usize..22, kind in 0usize..Dtype::ALL.len() * Op::ALL.len(),
        elements in prop_oneof![0u64..60, Just(1009u64), Just(4001u64)],
        in_place: bool, copies in 1u32..4, more_slots in 0u32..4, slot_bytes in 16u32..600, elide: bool, group: bool,
        order in 0u32..5, seed: u64,
    ) {
        let mut all = plans(n);
        let at = which % all.len();
        let (_, mut plan) = all.swap_remove(at);
        let (dtype, op) = (Dtype::ALL[kind % Dtype::ALL.len()], Op::ALL[kind / Dtype::ALL.len()]);
        prop_assume!(plan.header.serves(op));
        let apart = plan.header.forms.disjoint;
        let plain = Call { slots: plan.header.k_min, in_place: !apart, ..Call::new(elements, dtype, op) };
        let expected = run(&plan, &plain, &mut RoundRobin::default()).unwrap();
        right(&plan, &plain, &expected);

        plan.header.copies = copies;
        let slots = plan.header.k_min + more_slots;
        let in_place = !apart || in_place && plan.header.forms.same;
        let call = Call { slots, in_place, slot_bytes, elide, group, ..plain };
        let outcome = run(&plan, &call, &mut *scheduler(order, seed)).unwrap();
        for (i, _) in plan.buffers.iter().enumerate().filter(|(_, b)| b.role == Role::Recv) {
            for rank in (0..plan.header.ranks).map(RankId) {
                let [a, b] = [&expected, &outcome].map(|o| o.buffer(BufferId::new(i), rank));
                prop_assert_eq!(a, b);
            }
        }
    }
}
