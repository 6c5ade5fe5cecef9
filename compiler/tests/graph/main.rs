//! The chunk graph, its proof and its warnings against an independent executor, on traces built by hand and at random.

extern crate plan as rcc_plan;
extern crate rcc_compiler as compiler;

#[path = "../../../plan/tests/verify/events.rs"]
#[allow(dead_code, reason = "each test binary uses its own part")]
mod events;
mod executor;
#[path = "../../../plan/tests/common/explore.rs"]
#[allow(dead_code, reason = "each test binary uses its own part")]
mod explore;
mod expressions;
mod faults;
mod fed;
mod history;
#[path = "../../../plan/tests/verify/holds.rs"]
#[allow(dead_code, reason = "each test binary uses its own part")]
mod holds;
mod laws;
#[path = "../../../tests/src/layouts.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "a part of another crate's library, of which a part is used here"
)]
mod layouts;
mod lowering;
#[path = "../../../plan/tests/common/mutate.rs"]
#[allow(dead_code, reason = "each test binary uses its own part")]
mod mutate;
#[path = "../../../tests/src/pairs.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "a part of another crate's library, of which a part is used here"
)]
mod pairs;
mod scale;
mod source;
mod traces;
mod validate;
mod wording;

/// How many cases a property is tried on: `usual`, and more or fewer as `PROPTEST_CASES` is more or fewer than 256.
fn cases(usual: u32) -> proptest::prelude::ProptestConfig {
    let given = proptest::prelude::ProptestConfig::default();
    let cases = (u64::from(usual) * u64::from(given.cases) / 256).clamp(1, u64::from(u32::MAX)) as u32;
    let max_global_rejects = cases.saturating_mul(20);
    proptest::prelude::ProptestConfig { cases, max_global_rejects, ..given }
}
