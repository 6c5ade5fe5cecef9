//! A ring over a thousand ranks: two million moves.

use std::time::Instant;

use rcc_compiler::graph::{Form, build, promise};

use crate::traces::ring;

/// The proof of a ring grows with its moves, n²: four times the moves may not take forty times as long.
#[test]
fn the_proof_is_linear_in_moves() {
    let time = |n| {
        let trace = ring(n).trace;
        let start = Instant::now();
        let graph = build(&trace, Form::Disjoint).unwrap();
        assert!(promise(&trace, &graph).unwrap().same_bits == Some(true));
        start.elapsed()
    };
    time(64);
    let (small, large) = (time(96), time(192));
    assert!(large < small * 40, "{small:?} and {large:?}");
}

#[test]
#[ignore = "a measurement, for a release build"]
fn ring_1024() {
    let trace = ring(1024).trace;
    let start = Instant::now();
    let graph = build(&trace, Form::Disjoint).unwrap();
    let built = start.elapsed();
    let proof = promise(&trace, &graph).unwrap();
    println!("{} moves: build {built:?}, promise {:?}", trace.moves.len(), start.elapsed() - built);
    println!("{} values, {} versions, {proof:?}", graph.values.len(), graph.versions.len());
}
