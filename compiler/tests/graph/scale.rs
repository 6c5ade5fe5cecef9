//! A ring over a thousand ranks: two million moves.

#![expect(clippy::disallowed_methods, reason = "a measurement needs a clock")]

use std::time::Instant;

use rcc_compiler::graph::{Form, build, promise};

use crate::traces::ring;

/// A sum that n ranks hold is stored once: there are no more values than entry values and additions.
#[test]
fn copies_make_no_values() {
    for n in [2u32, 7, 64] {
        let trace = ring(n).trace;
        let graph = build(&trace, Form::Disjoint).unwrap();
        assert_eq!(graph.values.len() as u32, n * n + n * (n - 1));
        assert_eq!(graph.versions.len() as u32, n * n + 2 * n * (n - 1));
        assert_eq!(promise(&trace, &graph).unwrap().same_bits, Some(true));
    }
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
