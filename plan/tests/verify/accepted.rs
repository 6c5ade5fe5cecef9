//! Right plans pass.

use rcc_plan::verify::{Limits, verify, verify_fresh};

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

#[test]
fn of_slots_that_are_enough_as_many_as_needed_are_kept() {
    for (name, mut plan) in plans::small() {
        let needed = plan.header.k_min;
        for spare in [0, 1, 2, 5, 100] {
            plan.header.k_min = needed + spare;
            let fresh = verify_fresh(plan.clone(), &Limits::default()).unwrap();
            assert_eq!(fresh.header.k_min, needed, "{name}, {spare} to spare");
        }
        if needed > 1 {
            plan.header.k_min = needed - 1;
            let violations = verify_fresh(plan, &Limits::default()).unwrap_err();
            assert_eq!(violations[0].code(), "plan::v2_slot_count", "{name}");
        }
    }
}
