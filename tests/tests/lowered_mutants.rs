//! Mutants of plans that the compiler lowered from the standard library: whatever `verify` accepts, no order breaks.
//!
//! Truth is the exhaustive exploration of all orders (at most 4 ranks and 40 events). False acceptances fail the test;
//! what is refused although no order breaks it is counted by rule and printed. `RCC_MUTANTS` sets how many are drawn.
#![allow(clippy::disallowed_methods, reason = "the number of mutants comes from the environment")]

extern crate plan as rcc_plan;

#[path = "../../plan/tests/common/explore.rs"]
#[allow(dead_code, reason = "each test binary uses its own part")]
mod explore;
#[path = "../../plan/tests/common/mutate.rs"]
mod mutate;

use std::collections::BTreeMap;

use compiler::elaborate::{Request, open_ranks};
use compiler::limits::Limits;
use compiler::pipeline::{Failure, compile, load};
use compiler::trace::Params;
use explore::{Verdict, explore};
use plan::plan::Plan;
use plan::verify::verify;
use rcc_tests::naive::number;

const MOST_EVENTS: u32 = 40;

fn lowered() -> Vec<(String, Plan)> {
    let limits = Limits::default();
    let loaded = load(&[], &limits);
    let mut plans = Vec::new();
    for algorithm in loaded.program.algorithms() {
        let checked = loaded.program.algorithm(algorithm);
        let shapes: Vec<Vec<u32>> = match checked.levels {
            1 => vec![vec![2], vec![3], vec![4]],
            _ => vec![vec![2, 1], vec![1, 3], vec![2, 2]],
        };
        for shape in shapes {
            let open = open_ranks(&loaded.program, algorithm, &Params::default());
            let params: Params = open.into_iter().map(|name| (name, 1)).collect();
            let request = Request { algorithm, shape: shape.clone(), params };
            match compile(&loaded, &request, &compiler::options::Options::default(), &limits, &mut |_| {}) {
                Ok(compiled) => {
                    let plan = compiled.plan.into_plan();
                    let events: u32 = plan.steps.iter().map(|step| step.width).sum();
                    if events <= MOST_EVENTS {
                        plans.push((format!("{} at {shape:?}", checked.name), plan));
                    }
                }
                Err(Failure::Excluded { .. }) => {}
                Err(Failure::Wrong(diagnostics)) => panic!("{}: {diagnostics:?}", checked.name),
            }
        }
    }
    plans
}

#[derive(Default)]
struct Row {
    mutants: usize,
    equivalent: usize,
    accepted: usize,
    falsely: BTreeMap<&'static str, usize>,
}

#[test]
fn no_mutant_of_a_lowered_plan_is_accepted_if_some_order_breaks_it() {
    let wanted: usize = std::env::var("RCC_MUTANTS").ok().and_then(|n| n.parse().ok()).unwrap_or(1000);
    let plans = lowered();
    assert!(plans.len() > 30, "only {} plans are small enough", plans.len());
    for (name, plan) in &plans {
        assert!(
            matches!(explore(plan), Verdict::Right(_) | Verdict::TooLarge),
            "{name}: {:?}",
            explore(plan)
        );
    }
    let mut rows: BTreeMap<mutate::Kind, Row> = BTreeMap::new();
    let mut too_large = 0;
    for draw in 0..wanted as u64 {
        let (name, plan) = &plans[number(1, draw) as usize % plans.len()];
        let mutants = mutate::mutants(plan);
        // First the kind, then one of it: rare kinds are drawn as often as common ones.
        let mut kinds: Vec<mutate::Kind> = mutants.iter().map(|(kind, _)| *kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let kind = kinds[number(2, draw) as usize % kinds.len()];
        let of_kind: Vec<&Plan> =
            mutants.iter().filter(|(k, _)| *k == kind).map(|(_, mutant)| mutant).collect();
        let mutant = of_kind[number(3, draw) as usize % of_kind.len()];
        let truth = explore(mutant);
        if truth == Verdict::TooLarge {
            too_large += 1;
            continue;
        }
        let right = matches!(truth, Verdict::Right(_));
        let row = rows.entry(kind).or_default();
        row.mutants += 1;
        row.equivalent += usize::from(right);
        match verify(mutant.clone(), &plan::verify::Limits::default()) {
            Ok(_) => {
                assert!(right, "{name}, {kind:?}: accepted, but {truth:?}\n{}", plan::display::show(mutant));
                row.accepted += 1;
            }
            Err(violations) if right => *row.falsely.entry(violations[0].code()).or_default() += 1,
            Err(_) => {}
        }
    }
    println!("{} plans; {too_large} mutants too large to explore", plans.len());
    for (kind, row) in &rows {
        println!(
            "{:<20} {:>5} mutants {:>5} equivalent {:>5} accepted, refused though equivalent: {:?}",
            format!("{kind:?}"),
            row.mutants,
            row.equivalent,
            row.accepted,
            row.falsely
        );
    }
    assert!(rows.len() >= 10, "too few kinds were drawn");
}
