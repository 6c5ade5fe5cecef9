//! Proofs by symmetry, against the whole trace followed move by move, which shares nothing with them but elaboration.

extern crate rcc_compiler as compiler;

mod chosen;
mod exchanges;
mod folded;
#[path = "../../../tests/src/layouts.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "a part of another crate's library, of which a part is used here"
)]
mod layouts;
mod library;
mod mutants;
#[path = "../../../tests/src/pairs.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "a part of another crate's library, of which a part is used here"
)]
mod pairs;
mod random;
mod scale;
mod support;
