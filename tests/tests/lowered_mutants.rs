//! Mutants of plans that the compiler made of the standard library, with options of all kinds: whatever `verify`
//! accepts, no order breaks.
//!
//! Truth is the exhaustive exploration of all orders (at most 4 ranks and 26 events). False acceptances fail the test;
//! what is refused although no order breaks it is counted by rule and printed. Three times `RCC_MUTANTS` are drawn, by `RCC_TEST_SEED`.

extern crate plan as rcc_plan;

#[path = "../../plan/tests/common/explore.rs"]
#[allow(dead_code, reason = "each test binary uses its own part")]
mod explore;
#[path = "../../plan/tests/common/mutate.rs"]
mod mutate;

use std::collections::{BTreeMap, BTreeSet};

use compiler::elaborate::Request;
use compiler::limits::Limits;
use compiler::options::Options;
use compiler::pipeline::{Loaded, load};
use explore::{Verdict, explore, explore_with};
use mutate::Kind;
use plan::plan::{ChannelKind, Operand, Plan};
use plan::verify::verify;
use rcc_tests::draw::{self, Draw};
use rcc_tests::mutate::Dice;
use rcc_tests::naive::number;
use rcc_tests::schedules::Asked;
use rcc_tests::{layouts, library};

const MOST_EVENTS: u32 = 26;
/// Of the plan itself; many mutants have more.
const MOST_STATES: usize = 3_000;

/// Every standard algorithm at small shapes, in the layouts of the list of all pairs (each third, by default, another third for
/// each shape), and with a schedule and any layout; of each the plans that differ.
fn lowered(seed: u64) -> Vec<(String, Plan)> {
    let limits = Limits::default();
    let list = layouts::every_pair();
    let mut draw = Draw::new(seed, 1);
    let mut plans: Vec<(String, Plan)> = Vec::new();
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut add = |loaded: &Loaded, request: &Request, options: &Options| {
        let named = format!("RCC_TEST_SEED={seed}, {}, {options:?}", library::named(loaded, request));
        let compiled = library::compiled(loaded, request, options, &limits);
        let Some(compiled) = compiled.unwrap_or_else(|what| panic!("{named}: {what}")) else { return };
        let plan = compiled.plan.into_plan();
        let events: u32 = plan.steps.iter().map(|step| step.width).sum();
        if events > MOST_EVENTS || !known.insert(format!("{plan:?}")) {
            return;
        }
        match explore(&plan) {
            Verdict::Right(states) if states <= MOST_STATES => plans.push((named, plan)),
            Verdict::Right(_) | Verdict::TooLarge => {}
            wrong => panic!("{named}: {wrong:?}\n{}", plan::display::show(&plan)),
        }
    };
    let plain = load(&[], &limits);
    let mut next = draw.below(list.len());
    for algorithm in library::algorithms(&plain) {
        for request in (2..=4).flat_map(|ranks| library::requests(&plain, algorithm, ranks)) {
            for _ in 0..if draw::full() { list.len() } else { list.len() / 3 } {
                next = (next + 1) % list.len();
                add(&plain, &request, &list[next]);
            }
        }
    }
    for (_, file) in library::trees() {
        let (loaded, _) = library::scheduled(&file, Asked::Anything, &mut draw);
        for algorithm in library::own(&loaded) {
            for request in (2..=4).flat_map(|ranks| library::requests(&loaded, algorithm, ranks)) {
                for _ in 0..3 {
                    add(&loaded, &request, &layouts::any(&mut |bound| draw.below(bound)));
                }
            }
        }
    }
    plans
}

/// Of what the plans are made: receive and send in one step, many operands, waits, many blocks, wide steps, messages that several
/// read, more than one slot needed, places of other ranks, tokens. Mutants of these are what the test is about.
fn kinds_of_plans(plans: &[(String, Plan)]) -> [(&'static str, usize); 9] {
    let with = |is: &dyn Fn(&Plan) -> bool| plans.iter().filter(|(_, plan)| is(plan)).count();
    let channel = |operands: &[Operand]| operands.iter().any(|o| matches!(o, Operand::Channel(_)));
    let fused = |plan: &Plan| plan.steps.iter().any(|s| channel(plan.src(s)) && channel(plan.dst(s)));
    let ranks = |plan: &Plan| plan.header.ranks as usize;
    [
        ("fused", with(&fused)),
        ("many operands", with(&|plan| plan.steps.iter().any(|step| step.sources > 2))),
        ("waits", with(&|plan| !plan.waits.is_empty())),
        ("many blocks", with(&|plan| plan.blocks.len() > ranks(plan))),
        ("wide", with(&|plan| plan.steps.iter().any(|step| step.width > 1))),
        ("several readers", with(&|plan| plan.channels.iter().any(|channel| channel.readers.len() > 1))),
        ("two slots", with(&|plan| plan.header.k_min > 1)),
        ("reaching", with(&|plan| plan.operands.iter().any(|o| matches!(o, Operand::Peer { .. })))),
        ("tokens", with(&|plan| plan.channels.iter().any(|channel| channel.kind == ChannelKind::Counter))),
    ]
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
    let (wanted, seed) = (3 * draw::mutants(), draw::seed());
    let plans = lowered(seed);
    assert!(plans.len() > 100, "only {} plans are small enough", plans.len());
    let made_of = kinds_of_plans(&plans);
    assert!(made_of.iter().all(|(_, count)| *count >= 5), "{made_of:?}");
    let mut rows: BTreeMap<Kind, Row> = BTreeMap::new();
    let mut too_large = 0;
    for draw in 0..wanted as u64 {
        let (name, plan) = &plans[number(seed ^ 1, draw) as usize % plans.len()];
        let mutants = mutate::mutants(plan);
        // First the kind, then one of it: rare kinds are drawn as often as common ones.
        let mut kinds: Vec<Kind> = mutants.iter().map(|(kind, _)| *kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let kind = kinds[number(seed ^ 2, draw) as usize % kinds.len()];
        let of_kind: Vec<&Plan> =
            mutants.iter().filter(|(k, _)| *k == kind).map(|(_, mutant)| mutant).collect();
        let mutant = of_kind[number(seed ^ 3, draw) as usize % of_kind.len()];
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
    println!("{} plans, {made_of:?}; {too_large} mutants too large to explore", plans.len());
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
    // All kinds that some order can show: not roundings, nor what a plan says for its proof (witnesses).
    let expected = [
        Kind::DroppedWait,
        Kind::OtherWait,
        Kind::SwappedSends,
        Kind::SwappedSteps,
        Kind::CreditOffByOne,
        Kind::WrongCell,
        Kind::WrongRank,
        Kind::TokenRemoved,
        Kind::UnbalancedChannel,
        Kind::WrongChannel,
        Kind::OtherKindOfChannel,
        Kind::OtherReader,
        Kind::DroppedOperand,
        Kind::DoubledOperand,
        Kind::ChangedWidth,
        Kind::FlippedPost,
        Kind::FlippedPre,
        Kind::OtherForm,
        Kind::OtherScratch,
    ];
    for kind in expected.into_iter().filter(|_| wanted >= 3000) {
        let row = rows.get(&kind).unwrap_or_else(|| panic!("{kind:?} was never drawn"));
        assert!(row.equivalent < row.mutants, "{kind:?}: all are equivalent, so nothing is tested");
    }
}

/// Every order of two slices one after the other, and of more slots than are needed.
#[test]
fn no_order_breaks_two_slices_or_more_slots() {
    let (mut plans, mut large) = (0, 0);
    for (name, plan) in lowered(draw::seed()) {
        let events: u32 = plan.steps.iter().map(|step| step.width).sum();
        if events > 10 {
            continue;
        }
        plans += 1;
        for (slots, slices) in
            [(plan.header.k_min, 2), (plan.header.k_min + 1, 1), (plan.header.k_min + 1, 2)]
        {
            match explore_with(&plan, slots, slices) {
                Verdict::Right(_) => {}
                Verdict::TooLarge => large += 1,
                wrong => {
                    panic!(
                        "{name}, {slots} slots, {slices} slices: {wrong:?}\n{}",
                        plan::display::show(&plan)
                    )
                }
            }
        }
    }
    println!("{plans} plans, {large} times too many orders");
    assert!(plans > 100 && large * 10 < plans, "{plans} {large}");
}
