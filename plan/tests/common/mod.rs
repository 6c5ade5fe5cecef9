//! Plans written by hand, for tests.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod blocks;
pub(crate) mod direct;
pub(crate) mod explore;
pub(crate) mod mutate;
pub(crate) mod oracle;
pub(crate) mod plans;
pub(crate) mod random;

use rcc_plan::plan::{Buffer, Plan, Presence, Role};

/// A plan without steps.
pub(crate) fn empty(ranks: u32) -> Plan {
    rcc_plan::builder::PlanBuilder::new("test", "test", &[ranks]).finish().unwrap().plan
}

/// A buffer at all ranks.
pub(crate) fn buffer(name: &str, role: Role, blocks: u32) -> Buffer {
    Buffer { name: name.to_string(), role, blocks, at: Presence::All }
}
