//! The whole pipeline on the standard library: every algorithm is proved, lowered, verified, and its plan computes
//! what the collective defines when the interpreter runs it on real numbers.

use plan::plan::{Operand, Plan, Step};
use plan::verify::verify;
use rcc_compiler::elaborate::{Request, open_ranks};
use rcc_compiler::limits::Limits;
use rcc_compiler::options::Options;
use rcc_compiler::pipeline::{Failure, Stage, compile, load, prove};
use rcc_compiler::trace::Params;

fn shapes(levels: usize) -> Vec<Vec<u32>> {
    match levels {
        1 => (1..=9).map(|n| vec![n]).collect(),
        _ => vec![vec![1, 1], vec![2, 3], vec![3, 2], vec![4, 4]],
    }
}

#[test]
fn the_standard_library_compiles() {
    let limits = Limits::default();
    let loaded = load(&[], &limits);
    assert!(loaded.diagnostics.is_empty(), "{:#?}", loaded.diagnostics);
    let mut failures = Vec::new();
    for algorithm in loaded.program.algorithms() {
        let checked = loaded.program.algorithm(algorithm);
        for shape in shapes(checked.levels) {
            let ranks: u32 = shape.iter().product();
            let mut params = Params::default();
            for (i, open) in open_ranks(&loaded.program, algorithm, &params).into_iter().enumerate() {
                params.insert(open, i64::from((ranks - 1).saturating_sub(i as u32)));
            }
            let request = Request { algorithm, shape: shape.clone(), params };
            match compile(&loaded, &request, &Options::default(), &limits, &mut |_| {}) {
                Ok(_) | Err(Failure::Excluded { .. }) => {}
                Err(Failure::Wrong(diagnostics)) => {
                    failures.push(format!("{} at {shape:?}: {:#?}", checked.name, diagnostics[0]));
                }
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} failures\n{}",
        failures.len(),
        failures[..failures.len().min(5)].join("\n")
    );
}

/// Large enough to be lowered while it is proved: one hop too few; a block overwritten before it is read, in place.
const BROKEN: &str = "
algorithm short on ranks[n] implements allreduce {
    chunks n
    for hop in 1..n-1, c in 0..n { data[c] @ (c + hop + 1) % n += data[c] @ (c + hop) % n }
    for hop in 0..n-1, c in 0..n { data[c] @ (c + hop + 1) % n = data[c] @ (c + hop) % n }
}
algorithm hasty on ranks[n] implements allgather {
    for r in 0..n { output[r] @ r = input @ (r + 1) % n }
    for r in 0..n { output[r] @ r = input @ r }
    for hop in 0..n-1, b in 0..n { output[b] @ (b + hop + 1) % n = output[b] @ (b + hop) % n }
}
";

#[test]
fn what_is_lowered_before_it_is_proved_is_refused_all_the_same() {
    let limits = Limits::default();
    let loaded = load(&[("broken.coll".to_string(), BROKEN.into())], &limits);
    assert!(loaded.diagnostics.is_empty(), "{:#?}", loaded.diagnostics);
    for (name, code) in [("short", "coll::promise"), ("hasty", "coll::promise")] {
        let algorithm = loaded.program.find(name).expect("it is declared");
        let request = Request { algorithm, shape: vec![160], params: Params::default() };
        let Err(Failure::Wrong(proved)) = prove(&loaded, &request, &limits, &mut |_| {}) else {
            panic!("`{name}` is proved");
        };
        let mut stages = Vec::new();
        let compiled = compile(&loaded, &request, &Options::default(), &limits, &mut |s| stages.push(s));
        let Err(Failure::Wrong(compiled)) = compiled else { panic!("`{name}` is compiled") };
        assert_eq!(
            stages,
            [Stage::Elaborate, Stage::Prove, Stage::Lower, Stage::Steps],
            "`{name}` has a plan"
        );
        assert_eq!(proved[0].code, code, "{:#?}", proved[0]);
        assert_eq!(format!("{proved:?}"), format!("{compiled:?}"));
    }
}

#[test]
fn rules_that_run_at_the_same_time_are_told_in_their_order() {
    let limits = Limits::default();
    let loaded = load(&[], &limits);
    let algorithm = loaded.program.find("std::allreduce::ring").expect("it is there");
    // Large enough for threads.
    let request = Request { algorithm, shape: vec![160], params: Params::default() };
    let compiled =
        compile(&loaded, &request, &Options::default(), &limits, &mut |_| {}).expect("it is right");
    let sound = compiled.plan.into_plan();
    let codes = |plan: Plan| -> Vec<&'static str> {
        let found = verify(plan, &limits.of_plan()).expect_err("it is wrong");
        found.iter().map(|violation| violation.code()).collect()
    };
    assert!(verify(sound.clone(), &limits.of_plan()).is_ok());

    // A step of the last block reads its neighbour's piece: a fault of V4 alone.
    let mut astray = sound;
    let reads = |step: &Step| step.sources == 2;
    let at = astray.steps.iter().rposition(reads).expect("there is a sum");
    let first = astray.steps[at].operands as usize;
    let local = |operand: &&mut Operand| matches!(operand, Operand::Local { .. });
    let operand = astray.operands[first..first + 2].iter_mut().find(local).expect("it reads memory");
    let Operand::Local { cell, .. } = operand else { panic!("it does") };
    *cell = (*cell + 1) % 160;
    let told = codes(astray.clone());
    assert!(told.iter().all(|code| code.starts_with("plan::v4_")), "{told:?}");

    // V2 speaks first, and alone.
    astray.header.k_min += 1;
    assert_eq!(codes(astray.clone()), ["plan::v2_slot_count"]);

    // V7 does too.
    let mut small = limits.of_plan();
    small.target.connections_per_rank = 1;
    let found = verify(astray, &small).expect_err("a rank of a ring has two neighbours");
    assert!(found.iter().all(|violation| violation.code() == "plan::v7_target_limit"), "{found:?}");
}
