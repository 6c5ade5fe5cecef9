//! From a syntax tree to a proved plan. Pure: no IO, no clock, no environment.
//!
//! In: `grammar::ast::File`s (the user's and the standard library's) and a world shape. Out: a
//! `plan::VerifiedPlan`, or diagnostics. `pipeline` names every pass on one screen.

pub mod belongs;
pub mod check;
pub mod choice;
pub mod chooser;
pub mod cost;
mod counting;
pub mod diagnostics;
pub mod elaborate;
mod flow;
pub mod graph;
pub mod limits;
pub mod options;
mod passes;
pub mod pipeline;
pub mod resources;
pub mod schedule;
pub mod source;
pub mod symmetry;
pub mod trace;
pub mod validate;
