//! One order of all events of one iteration of one copy, with room in every channel.
//!
//! In: a plan. Out: its events, each after all that it depends on, given to a visitor. If D holds, what is found out
//! along one such order holds for all.

use crate::interpret::control::{Control, Event};
use crate::interpret::{Fault, bounds};
use crate::plan::Plan;

/// Visits every event of one iteration, prologue and epilogue included; a deadlock for want of messages or ended
/// steps is a fault, as it is for every number of slots.
pub(super) fn walk(plan: &Plan, visit: &mut dyn FnMut(&Event) -> Result<(), Fault>) -> Result<(), Fault> {
    bounds::check(plan)?;
    let mut control = Control::new(plan, 1, 1, u64::MAX, None);
    while let Some(&actor) = control.ready().last() {
        visit(&control.advance(actor))?;
    }
    match control.waiting() {
        Some(waiting) => Err(Fault::Deadlock(waiting)),
        None => control.unread().map_or(Ok(()), |channel| Err(Fault::Unread { channel })),
    }
}
