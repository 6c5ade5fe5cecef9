//! Mutated plans: whatever `verify` accepts, no order of events breaks.
//!
//! Truth comes from exploring every order (`common/explore.rs`). All single mutations of all small plans are tried, and
//! random pairs of mutations. What verify refuses although no order breaks it is no error (it asks for more than the
//! explorer sees: named witnesses, equal lengths for every count, groups, any number of slots), but it is listed.

mod common;

use std::collections::BTreeMap;

use common::explore::{Setting, Verdict, explore, explore_form, explore_with};
use common::mutate::{Kind, mutants};
use common::random::{self, Dice};
use rcc_plan::display::show;
use rcc_plan::dtype::{Dtype, Factor, Op};
use rcc_plan::interpret::scheduler::Random;
use rcc_plan::interpret::{Call, clocks, interpret};
use rcc_plan::plan::{Plan, Role};
use rcc_plan::reference::{Reference, fill};
use rcc_plan::verify::{Limits, least_slots, verify};

#[derive(Debug, Default)]
struct Row {
    mutants: usize,
    equivalent: usize,
    accepted: usize,
    refused: BTreeMap<&'static str, usize>,
    falsely: BTreeMap<&'static str, usize>,
}

/// Judges one mutant both ways; panics at a false acceptance.
fn judge(name: &str, kind: Kind, mutant: &Plan, row: &mut Row) {
    let truth = explore(mutant);
    assert_ne!(truth, Verdict::TooLarge, "{name}, {kind:?}");
    row.mutants += 1;
    let right = matches!(truth, Verdict::Right(_));
    row.equivalent += usize::from(right);
    match verify(mutant.clone(), &Limits::default()) {
        Ok(_) => {
            assert!(right, "{name}, {kind:?}: accepted, but {truth:?}\n{}", show(mutant));
            row.accepted += 1;
            holds_otherwise(name, kind, mutant);
        }
        Err(violations) => {
            let code = violations[0].code();
            *row.refused.entry(code).or_default() += 1;
            if right {
                *row.falsely.entry(code).or_default() += 1;
            }
        }
    }
}

/// What verify accepts is right also with more slots (L2), more iterations (L1), with empty messages skipped (L3), with
/// micro-steps together (L4), and vector clocks find nothing.
fn holds_otherwise(name: &str, kind: Kind, plan: &Plan) {
    let events: u32 = plan.steps.iter().map(|s| s.width).sum();
    if events <= 20 {
        let k = plan.header.k_min;
        for (slots, iterations) in [(k + 1, 1), (k, 2)] {
            let truth = explore_with(plan, slots, iterations);
            assert!(
                !matches!(truth, Verdict::Wrong(_)),
                "{name}, {kind:?}, {slots} slots, {iterations}: {truth:?}"
            );
        }
    }
    for in_place in [false, true] {
        if !if in_place { plan.header.forms.same } else { plan.header.forms.disjoint } {
            continue;
        }
        assert_eq!(clocks::findings(plan, in_place), Ok(vec![]), "{name}, {kind:?}");
        for (elements, elide, group) in
            [(0, true, true), (1, true, false), (13, true, true), (9, false, false)]
        {
            let op = if plan.header.serves_post { Op::Avg } else { Op::Sum };
            let inner = Op::PremulSum(Factor::new(-3.0));
            let op = if plan.header.serves_pre && elements % 2 == 1 { inner } else { op };
            let call = Call {
                in_place,
                slots: plan.header.k_min,
                elide,
                group,
                ..Call::new(elements, Dtype::I32, op)
            };
            let call = Call { slot_bytes: 16, ..call };
            computes_the_promise(plan, &call)
                .unwrap_or_else(|e| panic!("{name}, {kind:?}, {call:?}: {e}\n{}", show(plan)));
        }
    }
}

fn computes_the_promise(plan: &Plan, call: &Call) -> Result<(), String> {
    let size = call.elements as usize * call.dtype.size() as usize;
    let entry = |buffer: rcc_plan::ids::BufferId, rank| {
        let mut bytes = vec![0; plan.buffers[buffer.index()].blocks as usize * size];
        fill(call.dtype, call.op, 5, rank, buffer, &mut bytes);
        bytes
    };
    let outcome = interpret(plan, call, &mut |b, r| entry(b, r), &mut Random::new(call.elements))
        .map_err(|fault| fault.to_string())?;
    let reference = Reference::new(&plan.promise);
    for clause in &plan.promise.clauses {
        let (buffer, rank) = (clause.place.buffer, clause.place.rank);
        assert_eq!(plan.buffers[buffer.index()].role, Role::Recv);
        let mut of = |b: rcc_plan::collective::BlockRef| {
            entry(b.buffer, b.rank)[b.block as usize * size..][..size].to_vec().into()
        };
        let got = outcome.buffer(buffer, rank);
        let wrong = reference.check((buffer, rank), call.elements, (call.dtype, call.op), &mut of, got);
        if wrong.count > 0 {
            return Err(format!("{wrong:?}"));
        }
    }
    Ok(())
}

fn print(rows: &BTreeMap<String, Row>) {
    println!(
        "{:<20}{:>8}{:>12}{:>10}{:>10}  refused though equivalent",
        "kind", "mutants", "equivalent", "accepted", "refused"
    );
    for (kind, row) in rows {
        let refused: usize = row.refused.values().sum();
        let falsely: Vec<_> = row.falsely.iter().map(|(code, n)| format!("{code} {n}")).collect();
        let falsely = falsely.join(", ");
        println!(
            "{kind:<20}{:>8}{:>12}{:>10}{refused:>10}  {falsely}",
            row.mutants, row.equivalent, row.accepted
        );
    }
}

#[test]
fn no_single_mutation_that_breaks_a_plan_is_accepted() {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    for (name, plan) in common::plans::small() {
        for (kind, mutant) in mutants(&plan) {
            judge(name, kind, &mutant, rows.entry(format!("{kind:?}")).or_default());
        }
    }
    print(&rows);
    assert_eq!(rows.len(), 21, "every kind of mutation has mutants");
    assert!(rows.values().map(|row| row.mutants).sum::<usize>() >= 1000);
    for (kind, row) in &rows {
        // Two kinds change nothing that the promise is about: where to round (V6 compares that with the trace), and
        // how much scratch or which witness is named (V0, V5).
        let harmless = ["FlippedRoundEach", "OtherWitness"].contains(&kind.as_str());
        assert!(
            harmless || row.equivalent < row.mutants,
            "{kind}: all mutants are equivalent, so nothing is tested"
        );
    }
}

#[test]
fn no_pair_of_mutations_that_breaks_a_plan_is_accepted() {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let plans = common::plans::small();
    let singles: Vec<_> = plans.iter().map(|(name, plan)| (*name, mutants(plan))).collect();
    let mut dice = Dice(1);
    let mut draw = |n: usize| dice.roll(n);
    for _ in 0..4000 {
        let (name, first) = &singles[draw(singles.len())];
        let (kind, once) = &first[draw(first.len())];
        // What the first one puts out of bounds cannot be changed further.
        if matches!(explore(once), Verdict::Wrong("bounds")) {
            continue;
        }
        let second = mutants(once);
        let (_, twice) = &second[draw(second.len())];
        judge(name, *kind, twice, rows.entry(format!("{kind:?}, more")).or_default());
    }
    print(&rows);
}

/// Random programs spread over blocks: right in every order, accepted, and so for their mutants.
#[test]
fn random_plans_are_accepted_and_their_broken_mutants_are_not() {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let mut dice = Dice(11);
    let mut tried = 0;
    for seed in 0..400 {
        let mut plan = random::plan(seed);
        plan.header.k_min = least_slots(&plan, &Limits::default()).unwrap();
        let row = rows.entry("(none)".to_string()).or_default();
        row.mutants += 1;
        match explore(&plan) {
            Verdict::TooLarge => continue,
            truth => assert!(matches!(truth, Verdict::Right(_)), "{seed}: {truth:?}\n{}", show(&plan)),
        }
        row.equivalent += 1;
        let refused = verify(plan.clone(), &Limits::default()).err();
        assert!(refused.is_none(), "{seed}: {refused:?}\n{}", show(&plan));
        row.accepted += 1;
        holds_otherwise("random", Kind::OtherForm, &plan);
        // The same number of each kind, so that the few waits weigh as much as the many cells.
        let mut by_kind: BTreeMap<Kind, Vec<Plan>> = BTreeMap::new();
        for (kind, mutant) in mutants(&plan) {
            by_kind.entry(kind).or_default().push(mutant);
        }
        for (kind, mutants) in by_kind {
            let mutant = &mutants[dice.roll(mutants.len())];
            if explore(mutant) != Verdict::TooLarge {
                judge("random", kind, mutant, rows.entry(format!("{kind:?}")).or_default());
                tried += 1;
            }
        }
    }
    print(&rows);
    assert!(tried > 2000, "{tried}");
}

/// One run with vector clocks speaks for all orders: where it finds nothing and a run with `k_min` slots gives what is
/// promised, every order does.
#[test]
fn clocks_speak_for_all_orders() {
    let (mut silent, mut benign, mut caught) = (0, 0, 0);
    for (name, plan) in common::plans::small() {
        for (kind, mutant) in mutants(&plan) {
            for in_place in [false, true] {
                if !if in_place { mutant.header.forms.same } else { mutant.header.forms.disjoint } {
                    continue;
                }
                let slots = mutant.header.k_min;
                let truth = explore_form(&mutant, Setting { in_place, slots, iterations: 1, seed: 2 });
                let found = clocks::findings(&mutant, in_place);
                let outer = if mutant.header.serves_post { Op::Avg } else { Op::Sum };
                let inner = if mutant.header.serves_pre { Op::PremulSum(Factor::new(7.0)) } else { outer };
                let right = [outer, inner].into_iter().all(|op| {
                    let call = Call { in_place, slots, ..Call::new(13, Dtype::I64, op) };
                    computes_the_promise(&mutant, &call).is_ok()
                });
                let run = found == Ok(vec![]) && right;
                match (run, truth) {
                    (true, truth) => {
                        assert!(
                            matches!(truth, Verdict::Right(_)),
                            "{name}, {kind:?}, {in_place}: {truth:?}\n{}",
                            show(&mutant)
                        );
                        silent += 1;
                    }
                    (false, Verdict::Right(_)) => benign += 1,
                    (false, _) => caught += 1,
                }
            }
        }
    }
    println!(
        "right in every order: {silent}; wrong: {caught}; found fault with, but harmless here: {benign}"
    );
    assert!(silent > 500 && caught > 3000 && benign < silent / 2);
}
