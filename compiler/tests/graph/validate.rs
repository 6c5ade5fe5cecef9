//! V6: lowered plans pass, whatever the layout; plans that keep the promise by other expressions do not. Which they are
//! is told by hashes that an independent executor of plans (`expressions`) and one of traces (`executor`) leave.

use std::fmt::Write as _;

use plan::plan::{Plan, Step};
use plan::verify::{Limits, VerifiedPlan, verify, verify_fresh};
use proptest::prelude::{TestCaseError, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use rcc_compiler::diagnostics::validate::differs;
use rcc_compiler::graph::{ChunkGraph, Ends, Form, build, forms_agree, promise};
use rcc_compiler::options::Options;
use rcc_compiler::schedule::schedule;
use rcc_compiler::source::Sources;
use rcc_compiler::trace::{MoveId, Trace};
use rcc_compiler::validate::{FaultKind, validate};

use crate::executor::{self, mix, tree_hash};
use crate::expressions;
use crate::fed::fed;
use crate::laws::{mutated, wild};
use crate::layouts;
use crate::lowering::{give_lanes, lanes, plan_of};
use crate::mutate;
use crate::traces::{
    allreduce, at, direct_alltoall, dissemination, one_shot, recursive_doubling, ring, ring_allgather,
};

fn lowered(trace: &Trace, options: &Options) -> (ChunkGraph, Plan) {
    let mut sources = Sources::default();
    let mut text = String::new();
    for line in 0..10_000 {
        writeln!(text, "move {line:4}").unwrap();
    }
    sources.add("hand.coll", text);
    let graph = build(trace, Form::Disjoint).unwrap();
    promise(trace, &graph).unwrap();
    let plan = schedule(trace, &graph, options, &sources);
    (graph, plan)
}

fn verified(plan: Plan) -> VerifiedPlan {
    match verify_fresh(plan, &Limits::default()) {
        Ok(plan) => plan,
        Err(violations) => panic!("{violations:?}"),
    }
}

fn verdict(trace: &Trace, change: impl FnOnce(&mut Plan)) -> Vec<FaultKind> {
    verdict_laid_out(trace, &Options::default(), change)
}

fn verdict_laid_out(trace: &Trace, options: &Options, change: impl FnOnce(&mut Plan)) -> Vec<FaultKind> {
    let (graph, mut plan) = lowered(trace, options);
    change(&mut plan);
    match validate(trace, &Ends::new(&graph), &verified(plan)) {
        Ok(()) => vec![],
        Err(faults) => faults.into_iter().map(|f| f.kind).collect(),
    }
}

#[test]
fn lowered_plans_have_the_expressions_of_their_traces() {
    for options in layouts::every_pair() {
        for n in 1..6 {
            for builder in [ring(n), one_shot(n), ring_allgather(n), direct_alltoall(n), dissemination(n)] {
                assert_eq!(verdict_laid_out(&builder.trace, &options, |_| {}), vec![], "{options:?}");
            }
        }
        assert_eq!(verdict_laid_out(&recursive_doubling(3).trace, &options, |_| {}), vec![], "{options:?}");
    }
}

/// The first step that reduces `sources` operands.
fn reducing(plan: &Plan, sources: u16) -> Step {
    *plan.steps.iter().find(|step| step.sources == sources).expect("the program has such a step")
}

fn swap(plan: &mut Plan, step: Step, i: u32, j: u32) {
    plan.operands.swap((step.operands + i) as usize, (step.operands + j) as usize);
}

#[test]
fn another_order_is_refused_but_addition_commutes() {
    let trace = one_shot(4).trace;
    let step = |plan: &Plan| reducing(plan, 4);
    let found = verdict(&trace, |plan| swap(plan, step(plan), 1, 2));
    let [FaultKind::Value { place, wanted, found: Some(found), .. }, ..] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(place.rank.0, 0);
    assert_ne!(wanted, found);
    assert_eq!(verdict(&trace, |plan| swap(plan, step(plan), 0, 1)), vec![]);
}

#[test]
fn other_roundings_are_refused() {
    let trace = one_shot(4).trace;
    let round_each = |plan: &mut Plan| plan.steps.iter_mut().for_each(|step| step.round_each = true);
    let found = verdict(&trace, round_each);
    assert!(matches!(found[..], [FaultKind::Value { .. }, ..]), "{found:?}");
    // With two operands there is only one rounding.
    assert_eq!(verdict(&one_shot(2).trace, round_each), vec![]);
}

#[test]
fn a_plan_of_another_program_is_refused() {
    // Both are right allreduces of one chunk, but one adds 0 + 1 first, the other 1 + 2.
    let chain = |first: [u32; 3]| {
        let mut b = allreduce(3, 1);
        let [a, m, z] = first;
        b.add(at(0, m, 0), at(0, a, 0));
        b.add(at(0, z, 0), at(0, m, 0));
        b.copy(at(0, m, 0), at(0, z, 0));
        b.copy(at(0, a, 0), at(0, m, 0));
        b.trace
    };
    let (one, other) = (chain([0, 1, 2]), chain([2, 1, 0]));
    let ((graph, _), (_, plan)) = (lowered(&one, &Options::default()), lowered(&other, &Options::default()));
    let faults = validate(&one, &Ends::new(&graph), &verified(plan)).unwrap_err();
    assert!(
        matches!(faults[..], [ref f] if matches!(f.kind, FaultKind::Value { others: 2, .. })),
        "{faults:?}"
    );
    let text = differs(&faults[0], faults[0].span(&one, &graph));
    // Of the place that differs first, the move that writes it last.
    assert_eq!(text.labels[0].span, one.origin(MoveId(3)).span);
    assert_eq!(
        text.title,
        "the plan combines cell 0 of `data` at rank 0 in another order than the program (disjoint), and 2 more"
    );
    assert_eq!(
        text.help.unwrap(),
        "the program says (data[0] @ 2 + (data[0] @ 0 + data[0] @ 1)), the plan (data[0] @ 0 + (data[0] @ 1 + \
         data[0] @ 2)); this is a fault of rcc"
    );
    // Nor may it be of another world, or promise less.
    let (graph, _) = lowered(&ring(3).trace, &Options::default());
    let (_, plan) = lowered(&ring(4).trace, &Options::default());
    let faults = validate(&ring(3).trace, &Ends::new(&graph), &verified(plan)).unwrap_err();
    assert_eq!(faults[0].kind, FaultKind::Shape);
    let less = verdict(&one, |plan| {
        plan.promise.clauses.pop();
    });
    assert_eq!(less, vec![FaultKind::Promise]);
    let renamed = verdict(&one, |plan| plan.buffers[0].name = "other".to_string());
    assert_eq!(renamed, vec![FaultKind::Buffer { name: "data".to_string() }]);
}

/// Every step whose operands can be swapped without breaking a rule before V6: refused if and only if the two
/// are not the first two operands.
#[test]
fn all_swaps_of_all_steps() {
    let trace = one_shot(5).trace;
    let (graph, plan) = lowered(&trace, &Options::default());
    let steps: Vec<Step> = plan.steps.iter().filter(|s| s.sources > 2).copied().collect();
    // Each rank reduces its two cells, in one step or one after the other.
    assert_eq!(steps.iter().map(|step| step.width).sum::<u32>(), 10);
    for step in steps {
        for i in 0..5u32 {
            for j in i + 1..5 {
                let mut plan = plan.clone();
                swap(&mut plan, step, i, j);
                let kept = validate(&trace, &Ends::new(&graph), &verified(plan)).is_ok();
                assert_eq!(kept, (i, j) == (0, 1), "operands {i} and {j}");
            }
        }
    }
}

proptest! {
    #![proptest_config(crate::cases(400))]

    /// Whatever keeps its promise, and sends the same in place, is lowered to a plan with the same expressions; a
    /// program that does not send the same in place makes a plan that V4 refuses for that, unless what is sent in vain
    /// and so not sent at all was the only difference.
    #[test]
    fn random_programs(
        case in prop_oneof![mutated(), wild()],
        options in layouts::strategy(),
        lanes in lanes(),
    ) {
        let mut trace = case.0;
        give_lanes(&mut trace, lanes);
        let trace = &trace;
        let kept = |form: Form| {
            let graph = build(trace, form).ok()?;
            promise(trace, &graph).ok().map(|_| graph)
        };
        let (Some(apart), Some(together)) = (kept(Form::Disjoint), kept(Form::Same)) else {
            return Err(TestCaseError::reject("it does not keep its promise"));
        };
        match forms_agree(trace, &apart, &together) {
            Ok(()) => prop_assert_eq!(verdict_laid_out(trace, &options, |_| {}), vec![]),
            Err(faults) => {
                prop_assert_eq!(faults.len(), 1);
                let (_, plan) = lowered(trace, &options);
                let found = verify_fresh(plan, &Limits::default()).err().unwrap_or_default();
                let codes: Vec<_> = found.iter().map(|violation| violation.code()).collect();
                let differ = codes.contains(&"plan::v4_forms_differ");
                prop_assert!(differ || codes.is_empty(), "{:?} but {:?}", faults, codes);
            }
        }
    }

    /// Whatever mutant of a lowered plan keeps the promise: V6 accepts it if and only if it combines and rounds as the program.
    #[test]
    fn mutants_pass_exactly_if_they_have_the_same_expressions(
        case in prop_oneof![fed(), mutated(), wild()],
        options in layouts::strategy(),
        lanes in lanes(),
        seed in any::<u64>(),
    ) {
        let mut trace = case.0;
        give_lanes(&mut trace, lanes);
        let mut tally = [0; 3];
        mutants_are_judged(trace, &options, seed, 12, &mut tally);
    }
}

/// Some mutants of its plan. Counts those that verification refuses, those that V6 refuses, those that are accepted.
fn mutants_are_judged(mut trace: Trace, options: &Options, seed: u64, most: usize, tally: &mut [usize; 3]) {
    let Some(plan) = plan_of(&mut trace, options) else { return };
    let graph = build(&trace, Form::Disjoint).unwrap();
    let wanted = executor::run(&trace, Form::Disjoint, tree_hash, None).unwrap().held;
    let mut mutants: Vec<Plan> = mutate::mutants(&plan).into_iter().map(|(_, mutant)| mutant).collect();
    // Those that V6 is for are drawn as often as all others.
    let (count, reordered) = (mutants.len(), reordered(&plan));
    mutants.extend(reordered);
    let own = mutants.len() - count;
    for turn in 0..most as u64 {
        let drawn = mix(seed ^ turn) as usize;
        let mutant = match (turn % 2 == 0 && own > 0, count) {
            (true, _) => &mutants[count + drawn % own],
            (false, 0) => return,
            (false, _) => &mutants[drawn % count],
        };
        let Ok(verified) = verify(mutant.clone(), &Limits::default()) else {
            tally[0] += 1;
            continue;
        };
        let served = [(false, mutant.header.forms.disjoint), (true, mutant.header.forms.same)];
        let same = served
            .iter()
            .all(|&(in_place, served)| !served || expressions::held(mutant, &trace, in_place) == wanted);
        let verdict = validate(&trace, &Ends::new(&graph), &verified);
        assert_eq!(verdict.is_ok(), same, "{verdict:?}\n{}", plan::display::show(mutant));
        tally[1 + usize::from(same)] += 1;
    }
}

/// The plan with two sources of a step exchanged, or with a step's roundings elsewhere.
fn reordered(plan: &Plan) -> Vec<Plan> {
    let mut all = Vec::new();
    for (i, step) in plan.steps.iter().enumerate().filter(|(_, step)| step.sources > 2) {
        for (a, b) in (0..u32::from(step.sources)).flat_map(|b| (0..b).map(move |a| (a, b))) {
            let mut mutant = plan.clone();
            swap(&mut mutant, *step, a, b);
            all.push(mutant);
        }
        let mut mutant = plan.clone();
        mutant.steps[i].round_each = !step.round_each;
        all.push(mutant);
    }
    all
}

/// If few mutants kept the promise, the law above would say little.
#[test]
fn mutants_reach_v6() {
    let mut runner = TestRunner::deterministic();
    let mut tally = [0; 3];
    for seed in 0..300 {
        let case = fed().new_tree(&mut runner).unwrap().current();
        let options = layouts::strategy().new_tree(&mut runner).unwrap().current();
        mutants_are_judged(case.0, &options, seed, 12, &mut tally);
    }
    let [refused, other, same] = tally;
    println!("{refused} mutants are refused by an earlier rule, {other} by V6, {same} are accepted");
    assert!(other > 100 && same > 100, "{other} {same}");
}

/// The hashes tell what V6 is for: of one's own plan they are those of the trace.
#[test]
fn hashes_of_lowered_plans_are_those_of_their_traces() {
    for options in layouts::every_pair() {
        for builder in [ring(3), one_shot(4), ring_allgather(3), direct_alltoall(3), recursive_doubling(2)] {
            let mut trace = builder.trace;
            let plan = plan_of(&mut trace, &options).expect("right");
            let wanted = executor::run(&trace, Form::Disjoint, tree_hash, None).unwrap().held;
            assert_eq!(expressions::held(&plan, &trace, false), wanted, "{options:?}");
        }
    }
}
