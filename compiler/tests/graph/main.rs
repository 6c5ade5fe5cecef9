//! The chunk graph, its proof and its warnings against an independent executor, on traces built by hand and at random.

mod executor;
mod faults;
mod history;
mod laws;
mod scale;
mod traces;
mod validate;
