//! The whole pipeline on the standard library: every algorithm is proved, lowered, verified, and its plan computes
//! what the collective defines when the interpreter runs it on real numbers.

use rcc_compiler::elaborate::{Request, open_ranks};
use rcc_compiler::limits::Limits;
use rcc_compiler::pipeline::{Failure, compile, load};
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
            match compile(&loaded, &request, &rcc_compiler::options::Options::default(), &limits, &mut |_| {})
            {
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
