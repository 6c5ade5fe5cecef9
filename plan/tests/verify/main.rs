//! `plan::verify`, rule by rule, against hand-made plans, brute force and garbage.
#[path = "../common/mod.rs"]
mod common;

mod accepted;
mod events;
mod faults;
mod garbage;
mod lemmas;
mod races;
mod random;
mod symbolic;

/// How many cases a property is tried on: `PROPTEST_CASES`, or `usual`.
fn cases(usual: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|given| given.parse().ok()).unwrap_or(usual)
}
