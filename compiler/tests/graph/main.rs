//! The chunk graph, its proof and its warnings against an independent executor, on traces built by hand and at random.

mod executor;
mod faults;
mod history;
mod laws;
mod lowering;
mod scale;
mod source;
mod traces;
mod validate;
mod wording;
