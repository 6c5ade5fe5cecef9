//! Limits on what a program may ask of the stages after elaboration.

use plan::plan::Operand;
use rcc_compiler::elaborate::Request;
use rcc_compiler::limits::Limits;
use rcc_compiler::options::{Direct, Options};
use rcc_compiler::pipeline::{Failure, compile, load, prove};
use rcc_compiler::trace::Params;

/// Two moves of fifty cells: they are proved, but a hundred cells need as many moves to be allowed.
#[test]
fn cells_to_lower() {
    let text = "algorithm star on ranks[n] implements allreduce {
        chunks 50
        data @ 0 += data @ 1
        data @ 1 = data @ 0
    }";
    let loaded = load(&[("star.coll".to_string(), text.as_bytes().to_vec())], &Limits::default());
    let algorithm = loaded.program.find("star").expect("it is declared");
    let request = Request { algorithm, shape: vec![2], params: Params::new() };
    let within = |moves| Limits { moves, ..Limits::default() };
    assert!(compile(&loaded, &request, &Options::default(), &within(100), &mut |_| {}).is_ok());
    assert!(prove(&loaded, &request, &within(99), &mut |_| {}).is_ok());
    let Err(Failure::Wrong(told)) = compile(&loaded, &request, &Options::default(), &within(99), &mut |_| {})
    else {
        panic!("a hundred cells are more than 99")
    };
    assert_eq!(told.iter().map(|d| d.code).collect::<Vec<_>>(), ["coll::too_large"]);
}

/// A step counts its operands in 16 bits: as many as that are one step, one more are refused.
#[test]
fn operands_of_one_step() {
    let text = "algorithm star on ranks[n] implements reduce(0) { output @ 0 = reduce(s in 0..n) input @ s }";
    let loaded = load(&[("star.coll".to_string(), text.as_bytes().to_vec())], &Limits::default());
    let algorithm = loaded.program.find("star").expect("it is declared");
    let of = |n: u32| {
        let request = Request { algorithm, shape: vec![n], params: Params::new() };
        let options = Options { operands: u32::MAX, blocks: u32::MAX, ..Options::default() };
        compile(&loaded, &request, &options, &Limits::default(), &mut |_| {})
    };
    let plan = of(65_535).expect("one operand of each rank").plan;
    assert_eq!(plan.steps.iter().map(|step| step.sources).max(), Some(65_535));
    let Err(Failure::Wrong(told)) = of(65_536) else { panic!("one operand too many") };
    assert_eq!(told.iter().map(|d| d.code).collect::<Vec<_>>(), ["coll::many_operands"]);
}

/// However many places a value goes to: no step counts more than it can.
#[test]
fn destinations_of_one_step() {
    let text = "algorithm star on ranks[n] implements broadcast(0) { data @ * = data @ 0 }";
    let loaded = load(&[("star.coll".to_string(), text.as_bytes().to_vec())], &Limits::default());
    let algorithm = loaded.program.find("star").expect("it is declared");
    let request = Request { algorithm, shape: vec![65_530], params: Params::new() };
    let options = Options { operands: u32::MAX, ..Options::default() };
    let compiled = compile(&loaded, &request, &options, &Limits::default(), &mut |_| {});
    // That each rank has the data was proved of the plan, by its counts.
    assert!(compiled.is_ok(), "{:?}", compiled.err());
}

/// Where more ranks reach into the memory of one than a step has operands, they send messages instead: what is refused
/// then is that a rank has more partners than the machine allows.
#[test]
fn tokens_of_one_step() {
    let text = "algorithm star on ranks[n] implements reduce(0) {
        output @ 0 = input @ 0
        for s in 1..n { output @ 0 += input @ s }
    }";
    let loaded = load(&[("star.coll".to_string(), text.as_bytes().to_vec())], &Limits::default());
    let algorithm = loaded.program.find("star").expect("it is declared");
    let of = |n: u32| {
        let request = Request { algorithm, shape: vec![n], params: Params::new() };
        let options = Options { direct: Direct::OutOfPlace, ..Options::default() };
        compile(&loaded, &request, &options, &Limits::default(), &mut |_| {})
    };
    let reaches = |operand: &Operand| matches!(operand, Operand::Peer { .. });
    assert!(of(5).expect("few enough").plan.operands.iter().any(reaches));
    let Err(Failure::Wrong(told)) = of(65_538) else { panic!("65,537 partners are too many") };
    assert!(told.iter().all(|d| d.code.ends_with("target_limit")), "{told:?}");
}
