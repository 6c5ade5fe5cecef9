//! Condition D and the lemmas of plan.md §4 on the plans of the standard algorithms, as the compiler makes them: spelled
//! out micro-step by micro-step, edge by edge, and held against what the plan says of itself.

extern crate plan as rcc_plan;

#[path = "../../plan/tests/verify/events.rs"]
#[allow(dead_code, reason = "each test binary uses its own part")]
mod events;
#[path = "../../plan/tests/verify/holds.rs"]
#[allow(dead_code, reason = "each test binary uses its own part")]
mod holds;

use compiler::elaborate::Request;
use compiler::limits::Limits;
use compiler::options::Options;
use compiler::pipeline::{Loaded, load};
use events::{Shape, is_acyclic};
use plan::plan::{Operand, Plan};
use rcc_tests::draw::{self, Draw};
use rcc_tests::mutate::Dice;
use rcc_tests::naive::number;
use rcc_tests::schedules::Asked;
use rcc_tests::{layouts, library};

const MOST_EVENTS: u32 = 400;

/// Every algorithm at some small shapes, each time with other layouts of the list of all pairs, and with a schedule and any
/// layout; no plan twice.
fn plans(seed: u64) -> Vec<(String, Plan)> {
    let limits = Limits::default();
    let list = layouts::every_pair();
    let mut draw = Draw::new(seed, 1);
    let mut plans: Vec<(String, Plan)> = Vec::new();
    let mut add = |loaded: &Loaded, request: &Request, options: &Options| {
        let named = format!("RCC_TEST_SEED={seed}, {}, {options:?}", library::named(loaded, request));
        let compiled = library::compiled(loaded, request, options, &limits);
        let Some(compiled) = compiled.unwrap_or_else(|what| panic!("{named}: {what}")) else { return };
        let plan = compiled.plan.into_plan();
        let events: u32 = plan.steps.iter().map(|step| step.width).sum();
        if events <= MOST_EVENTS && plans.iter().all(|(_, other)| *other != plan) {
            plans.push((named, plan));
        }
    };
    let few = [2, 3, 4, 5, 6, 8];
    let plain = load(&[], &limits);
    // Rows follow each other from shape to shape and from algorithm to algorithm: each comes by several times.
    let mut next = draw.below(list.len());
    for algorithm in library::algorithms(&plain) {
        for request in few.into_iter().flat_map(|ranks| library::requests(&plain, algorithm, ranks)) {
            let several = if draw::full() { list.len() } else { 8 };
            for _ in 0..several {
                next = (next + 1) % list.len();
                add(&plain, &request, &list[next]);
            }
        }
    }
    for (_, file) in library::trees() {
        let (loaded, _) = library::scheduled(&file, Asked::Anything, &mut draw);
        for algorithm in library::own(&loaded) {
            for request in few.into_iter().flat_map(|ranks| library::requests(&loaded, algorithm, ranks)) {
                add(&loaded, &request, &layouts::any(&mut |bound| draw.below(bound)));
            }
        }
    }
    plans
}

#[test]
fn the_lemmas_hold_for_standard_algorithms() {
    let plans = plans(draw::seed());
    let mut by_need = [0; 4];
    let (mut reaching, mut shared) = (0, 0);
    for (i, (named, plan)) in plans.iter().enumerate() {
        let k_min = plan.header.k_min as usize;
        by_need[k_min.min(3)] += 1;
        reaching += usize::from(plan.operands.iter().any(|o| matches!(o, Operand::Peer { .. })));
        shared += usize::from(plan.channels.iter().any(|channel| channel.readers.len() > 1));
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
        "{} plans; need 1 slot: {}, 2: {}, 3 or more: {}; {reaching} with direct access, {shared} with messages that several read",
        plans.len(),
        by_need[1],
        by_need[2],
        by_need[3]
    );
    assert!(plans.len() > 200 && by_need[2] > 20, "{} plans, {by_need:?}", plans.len());
    assert!(reaching > 50 && shared > 20, "{reaching} {shared}");
}

/// L5: two collectives at once on the same ranks.
#[test]
fn standard_algorithms_run_side_by_side() {
    let seed = draw::seed();
    let mut plans = plans(seed);
    plans.retain(|(_, plan)| plan.steps.len() < 100);
    for draw in 0..60 {
        let pick = |salt| &plans[number(seed ^ salt, draw) as usize % plans.len()];
        let ((one_name, one), (other_name, other)) = (pick(1), pick(2));
        let slots = one.header.k_min.max(other.header.k_min) as usize;
        let together = holds::side_by_side(one, other);
        for calls in [1, 2] {
            let shape = Shape { slots, calls, ..Shape::default() };
            assert!(is_acyclic(&together, &shape), "{one_name} beside {other_name}, {calls} calls");
        }
    }
}
