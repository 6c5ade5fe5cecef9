//! Limits on what a program may ask of the stages after elaboration.

use rcc_compiler::elaborate::Request;
use rcc_compiler::limits::Limits;
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
    assert!(
        compile(&loaded, &request, &rcc_compiler::options::Options::default(), &within(100), &mut |_| {})
            .is_ok()
    );
    assert!(prove(&loaded, &request, &within(99), &mut |_| {}).is_ok());
    let Err(Failure::Wrong(told)) =
        compile(&loaded, &request, &rcc_compiler::options::Options::default(), &within(99), &mut |_| {})
    else {
        panic!("a hundred cells are more than 99")
    };
    assert_eq!(told.iter().map(|d| d.code).collect::<Vec<_>>(), ["coll::too_large"]);
}
