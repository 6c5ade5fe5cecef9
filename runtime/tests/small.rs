//! Small calls without a plan: every result is compared with the definition of its collective, and what is said when ranks disagree,
//! stay away or leave is the same as for calls of plans.

#![allow(clippy::disallowed_methods, reason = "a rank that comes too late")]

extern crate plan as rcc_plan;

mod plans;
mod ranks;
#[path = "small/shared.rs"]
mod shared;

#[path = "small/failures.rs"]
mod failures;
#[path = "small/results.rs"]
mod results;
