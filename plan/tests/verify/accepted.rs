//! Right plans pass.

use rcc_plan::verify::{Limits, verify};

use crate::common::plans;

#[test]
fn right_plans_of_every_kind_pass() {
    let mut failures = Vec::new();
    for (name, plan) in plans::small() {
        if let Err(violations) = verify(plan, &Limits::default()) {
            let text: Vec<String> = violations.iter().map(|v| v.to_string()).collect();
            failures.push(format!("{name}:\n{}", text.join("\n")));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
