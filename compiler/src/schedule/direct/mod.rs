//! Direct access: messages that would only carry a value from one rank's memory to another's are not sent.
//!
//! In: a plan of messages. Out: the same plan in which
//! - a message whose value is an entry value that no one overwrites is **pulled**: its reader reads it where it lies;
//! - a message that is stored at once, where nobody else ever looks, is **pushed**: its sender stores it there;
//! - READY and DONE tokens fence both: a rank says once, at the beginning, that others may reach into its memory, and hears
//!   once from each block that does, at the end, that it will no more.
//!
//! The one hard idea: a message that goes at both ends leaves the others of its channel in their order, so nothing that was
//! free of deadlock gets stuck (it is an elided message, docs/plan.md §4, L3). In place, entry values lie where results will:
//! what may be overwritten then stays a message, or the plan gives up the form ([`Direct::OutOfPlace`]).
//!
//! `find` says which messages go, `write` writes the plan anew without them.

mod find;
mod write;

use plan::plan::Plan;

use crate::options::{Direct, Reach};

/// Lets ranks reach into each other's memory where that saves a message. Where a message could be pulled as well as pushed,
/// `reach` decides.
pub(super) fn run(plan: Plan, direct: Direct, reach: Reach) -> Plan {
    let apart = match direct {
        Direct::Never => return plan,
        Direct::WhereBothFormsAllow => false,
        Direct::OutOfPlace => plan.header.forms.disjoint,
    };
    let found = find::find(&plan, apart, reach);
    if found.is_empty() {
        return plan;
    }
    let Some(mut written) = write::write(&plan, &found) else { return plan };
    if apart {
        written.header.forms.same = false;
        written.overlaps.clear();
    }
    written
}
