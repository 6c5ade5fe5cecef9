//! The chunk graph, its proof and its warnings against an independent executor, on traces built by hand and at random.

extern crate plan as rcc_plan;

#[path = "../../../plan/tests/verify/events.rs"]
mod events;
mod executor;
#[path = "../../../plan/tests/common/explore.rs"]
#[allow(dead_code, reason = "each test binary uses its own part")]
mod explore;
mod faults;
mod fed;
mod history;
#[path = "../../../plan/tests/verify/holds.rs"]
#[allow(dead_code, reason = "each test binary uses its own part")]
mod holds;
mod laws;
mod lowering;
mod scale;
mod source;
mod traces;
mod validate;
mod wording;
