//! Proofs by symmetry, against the whole trace followed move by move, which shares nothing with them but elaboration.

mod chosen;
mod folded;
mod library;
mod mutants;
mod random;
mod scale;
mod support;
