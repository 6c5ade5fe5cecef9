//! `plan::verify`, rule by rule, against hand-made plans, brute force and garbage.
#[path = "../common/mod.rs"]
mod common;

use proptest::prelude::ProptestConfig;

mod accepted;
mod events;
mod faults;
mod garbage;
mod holds;
mod lemmas;
mod races;
mod random;
mod symbolic;
mod wide;

/// How many cases a property is tried on: `usual`, and more or fewer as `PROPTEST_CASES` is more or fewer than 256.
fn cases(usual: u32) -> u32 {
    let given = ProptestConfig::default().cases;
    (u64::from(usual) * u64::from(given) / 256).clamp(1, u64::from(u32::MAX)) as u32
}
