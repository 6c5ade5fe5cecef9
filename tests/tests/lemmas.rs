//! Condition D and the lemmas of plan.md §4 on the plans of the standard algorithms, as the compiler makes them: spelled
//! out micro-step by micro-step, edge by edge, and held against what the plan says of itself.

extern crate plan as rcc_plan;

#[path = "../../plan/tests/verify/events.rs"]
#[allow(dead_code, reason = "each test binary uses its own part")]
mod events;
#[path = "../../plan/tests/verify/holds.rs"]
#[allow(dead_code, reason = "each test binary uses its own part")]
mod holds;

use compiler::limits::Limits;
use compiler::options::{Cut, Multicast, Options, Tree};
use compiler::pipeline::load;
use events::{Shape, is_acyclic};
use plan::plan::Plan;
use rcc_tests::library;
use rcc_tests::naive::number;

const MOST_EVENTS: u32 = 400;
const MULTICASTS: [Multicast; 4] =
    [Multicast::Flat, Multicast::Channel, Multicast::Tree(Tree::Binomial), Multicast::Tree(Tree::Wide(2))];

/// Every algorithm at some small shapes, each time with other options; none twice.
fn plans() -> Vec<(String, Plan)> {
    let limits = Limits::default();
    let loaded = load(&[], &limits);
    let mut plans: Vec<(String, Plan)> = Vec::new();
    for (a, algorithm) in library::algorithms(&loaded).into_iter().enumerate() {
        for ranks in [2, 3, 4, 5, 6, 8] {
            for request in library::requests(&loaded, algorithm, ranks) {
                for turn in 0..3 {
                    let seed =
                        number(a as u64 * 31 + turn, u64::from(ranks) + 100 * u64::from(request.shape[0]));
                    let options = Options {
                        slots: 1 + seed as u32 % 4,
                        blocks: [8, 1, 2, 8][seed as usize / 4 % 4],
                        operands: [64, 64, 3][seed as usize / 16 % 3],
                        fuse: !(seed / 48).is_multiple_of(5),
                        multicast: MULTICASTS[seed as usize / 240 % 4],
                        cut: [Cut::Whole, Cut::Parts][seed as usize / 960 % 2],
                        ..Options::default()
                    };
                    let named = format!("{}, {options:?}", library::named(&loaded, &request));
                    let compiled = library::compiled(&loaded, &request, &options, &limits);
                    let Some(compiled) = compiled.unwrap_or_else(|what| panic!("{named}: {what}")) else {
                        continue;
                    };
                    let plan = compiled.plan.into_plan();
                    let events: u32 = plan.steps.iter().map(|step| step.width).sum();
                    if events <= MOST_EVENTS && plans.iter().all(|(_, other)| *other != plan) {
                        plans.push((named, plan));
                    }
                }
            }
        }
    }
    plans
}

#[test]
fn the_lemmas_hold_for_standard_algorithms() {
    let plans = plans();
    let mut by_need = [0; 4];
    for (i, (named, plan)) in plans.iter().enumerate() {
        let k_min = plan.header.k_min as usize;
        by_need[k_min.min(3)] += 1;
        assert!(holds::acyclic(plan, k_min), "{named}: {k_min} slots are not enough");
        assert!(
            k_min == 1 || !holds::acyclic(plan, k_min - 1),
            "{named}: fewer than {k_min} slots are enough"
        );
        let seed = number(5, i as u64);
        let (more, iterations) = (seed as usize % 3, 2 + seed as usize / 3 % 2);
        holds::lemmas(plan, k_min + more, iterations, seed).unwrap_or_else(|what| panic!("{named}: {what}"));
        if k_min > 1 {
            holds::lemmas(plan, k_min - 1, 2, seed).unwrap_or_else(|what| panic!("{named}: {what}"));
        }
    }
    println!(
        "{} plans; need 1 slot: {}, 2: {}, 3 or more: {}",
        plans.len(),
        by_need[1],
        by_need[2],
        by_need[3]
    );
    assert!(plans.len() > 200 && by_need[2] > 20, "{} plans, {by_need:?}", plans.len());
}

/// L5: two collectives at once on the same ranks.
#[test]
fn standard_algorithms_run_side_by_side() {
    let mut plans = plans();
    plans.retain(|(_, plan)| plan.steps.len() < 100);
    for draw in 0..60 {
        let pick = |salt| &plans[number(salt, draw) as usize % plans.len()];
        let ((one_name, one), (other_name, other)) = (pick(1), pick(2));
        let slots = one.header.k_min.max(other.header.k_min) as usize;
        let together = holds::side_by_side(one, other);
        for calls in [1, 2] {
            let shape = Shape { slots, calls, ..Shape::default() };
            assert!(is_acyclic(&together, &shape), "{one_name} beside {other_name}, {calls} calls");
        }
    }
}
