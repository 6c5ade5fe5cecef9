//! V6: lowered plans pass; plans that keep the promise by other expressions do not.

use std::fmt::Write as _;

use plan::plan::{Plan, Step};
use plan::verify::{Limits, VerifiedPlan, verify_fresh};
use proptest::prelude::{TestCaseError, prop_assert, prop_assert_eq, prop_oneof, proptest};
use rcc_compiler::diagnostics::validate::differs;
use rcc_compiler::graph::{ChunkGraph, Form, build, forms_agree, promise};
use rcc_compiler::schedule::schedule;
use rcc_compiler::source::Sources;
use rcc_compiler::trace::Trace;
use rcc_compiler::validate::{FaultKind, validate};

use crate::laws::{mutated, wild};
use crate::traces::{
    allreduce, at, direct_alltoall, dissemination, one_shot, recursive_doubling, ring, ring_allgather,
};

fn lowered(trace: &Trace) -> (ChunkGraph, Plan) {
    let mut sources = Sources::default();
    let mut text = String::new();
    for line in 0..10_000 {
        writeln!(text, "move {line:4}").unwrap();
    }
    sources.add("hand.coll", text);
    let graph = build(trace, Form::Disjoint).unwrap();
    promise(trace, &graph).unwrap();
    let plan = schedule(trace, &graph, &rcc_compiler::options::Options::default(), &sources);
    (graph, plan)
}

fn verified(plan: Plan) -> VerifiedPlan {
    match verify_fresh(plan, &Limits::default()) {
        Ok(plan) => plan,
        Err(violations) => panic!("{violations:?}"),
    }
}

fn verdict(trace: &Trace, change: impl FnOnce(&mut Plan)) -> Vec<FaultKind> {
    let (graph, mut plan) = lowered(trace);
    change(&mut plan);
    match validate(trace, &graph, &verified(plan)) {
        Ok(()) => vec![],
        Err(faults) => faults.into_iter().map(|f| f.kind).collect(),
    }
}

#[test]
fn lowered_plans_have_the_expressions_of_their_traces() {
    for n in 1..6 {
        for builder in [ring(n), one_shot(n), ring_allgather(n), direct_alltoall(n), dissemination(n)] {
            assert_eq!(verdict(&builder.trace, |_| {}), vec![]);
        }
    }
    assert_eq!(verdict(&recursive_doubling(3).trace, |_| {}), vec![]);
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
    let ((graph, _), (_, plan)) = (lowered(&one), lowered(&other));
    let faults = validate(&one, &graph, &verified(plan)).unwrap_err();
    assert!(
        matches!(faults[..], [ref f] if matches!(f.kind, FaultKind::Value { others: 2, .. })),
        "{faults:?}"
    );
    let text = differs(&faults[0]);
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
    let (graph, _) = lowered(&ring(3).trace);
    let (_, plan) = lowered(&ring(4).trace);
    let faults = validate(&ring(3).trace, &graph, &verified(plan)).unwrap_err();
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
    let (graph, plan) = lowered(&trace);
    let steps: Vec<Step> = plan.steps.iter().filter(|s| s.sources > 2).copied().collect();
    // Each rank reduces its two cells, in one step or one after the other.
    assert_eq!(steps.iter().map(|step| step.width).sum::<u32>(), 10);
    for step in steps {
        for i in 0..5u32 {
            for j in i + 1..5 {
                let mut plan = plan.clone();
                swap(&mut plan, step, i, j);
                let kept = validate(&trace, &graph, &verified(plan)).is_ok();
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
    fn random_programs(case in prop_oneof![mutated(), wild()]) {
        let trace = &case.0;
        let kept = |form: Form| {
            let graph = build(trace, form).ok()?;
            promise(trace, &graph).ok().map(|_| graph)
        };
        let (Some(apart), Some(together)) = (kept(Form::Disjoint), kept(Form::Same)) else {
            return Err(TestCaseError::reject("it does not keep its promise"));
        };
        match forms_agree(trace, &apart, &together) {
            Ok(()) => prop_assert_eq!(verdict(trace, |_| {}), vec![]),
            Err(faults) => {
                prop_assert_eq!(faults.len(), 1);
                let (_, plan) = lowered(trace);
                let found = verify_fresh(plan, &Limits::default()).err().unwrap_or_default();
                let codes: Vec<_> = found.iter().map(|violation| violation.code()).collect();
                let differ = codes.contains(&"plan::v4_forms_differ");
                prop_assert!(differ || codes.is_empty(), "{:?} but {:?}", faults, codes);
            }
        }
    }
}
