//! `verify`: from a plan that anyone may have made to one that can be run.
//!
//! In: any [`Plan`], from the compiler, a file, an import, a fuzzer. Out: a [`VerifiedPlan`], or every violation of
//! the first rule that it breaks. Nothing here knows how plans are made: rules are checked from the plan alone.
//!
//! | rule | file | what holds afterwards |
//! |---|---|---|
//! | V0 | `ids/` | ids, ranges, sizes, texts within bounds and limits; blocks tile the steps; ends belong to blocks |
//! | V7 | `target.rs` | blocks, channel ends and connections of each rank fit the target |
//! | V1 | `channels.rs` | the i-th send meets the i-th receive, of equal width, in each section |
//! | V2 | `deadlock.rs` | no execution gets stuck with `k_min` slots per channel, and fewer do not do |
//! | V5 | `lifetime.rs` | access to another rank's memory lies between tokens of that rank |
//! | V3 | `races.rs` | conflicting accesses to a cell are ordered |
//! | V4 | `symbolic.rs`, `execute.rs`, `promised.rs`, `barrier.rs` | nothing undefined is read, lengths agree, the promise is met |
//!
//! In this order, each relying on those before. Where that is for the truth of its verdict only, not to index safely, they may
//! run at the same time (V7 beside V1; V4, V5, V3 beside V2): what the earliest rule finds is told, the rest forgotten.
//! `places.rs`, `links.rs`, `clocks.rs` are tables they share.
//!
//! Beside them, asked by executors: which channels may trade slots (`trade.rs`).
//!
//! Not checked: the trace's expressions (V6, in the compiler; [`Symbolic`] is what it needs); whether memory that is
//! written by peers is registered (a call's matter); co-residency on a GPU; whether `collective`, `params` and
//! spans tell the truth about where the plan comes from; the executors.
//!
//! Cost: linear in steps, operands and micro-steps, but for the clocks (waits × blocks of a rank) and the sets that
//! the promise names. Memory: see [`Limits`].

mod barrier;
mod channels;
mod clocks;
mod deadlock;
mod execute;
mod folded;
mod ids;
mod lifetime;
mod limits;
mod links;
mod places;
mod promised;
mod races;
mod symbolic;
mod target;
mod trade;
mod violation;

pub use channels::Fault as ChannelFault;
pub use deadlock::{Fault as DeadlockFault, Lack};
pub use folded::{FoldedValues, Taken, TakenNode, VerifiedFolded, verify_folded, verify_fresh_folded};
pub use ids::{Fault as IdFault, clean_text};
pub use lifetime::Fault as LifetimeFault;
pub use limits::{Limits, Target};
pub use places::Cell;
pub use races::{Access, Fault as RaceFault};
pub use symbolic::{Fault as SymbolicFault, Symbolic};
pub use target::{Fault as TargetFault, Resource};
pub use trade::trades;
pub use violation::{ChannelName, Fault, Line, Site, Violation};

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{OnceLock, mpsc};

use self::clocks::Clocks;
use self::deadlock::Order;
use self::links::Links;
use self::places::Places;
use crate::file::ContentHash;
use crate::ids::StepId;
use crate::join::join;
use crate::plan::{Plan, ProofStatus};
use crate::schedule::Schedule;

/// The codes of all violations, sorted.
pub const CODES: [&str; 28] = [
    "plan::v0_blocks",
    "plan::v0_buffer",
    "plan::v0_channel",
    "plan::v0_header",
    "plan::v0_index",
    "plan::v0_limit",
    "plan::v0_place",
    "plan::v0_promise",
    "plan::v0_step",
    "plan::v0_text",
    "plan::v0_wait",
    "plan::v0_witness",
    "plan::v1_unbalanced_channel",
    "plan::v1_width_mismatch",
    "plan::v2_deadlock",
    "plan::v2_slot_count",
    "plan::v3_race",
    "plan::v3_race_within_step",
    "plan::v4_class",
    "plan::v4_forms_differ",
    "plan::v4_not_synchronised",
    "plan::v4_post",
    "plan::v4_pre",
    "plan::v4_promise",
    "plan::v4_undefined",
    "plan::v5_no_witness",
    "plan::v5_unfenced",
    "plan::v7_target_limit",
];

/// A plan that has passed V0 to V5 and V7, here, in this process.
#[derive(Debug)]
pub struct VerifiedPlan {
    plan: Plan,
    symbolic: Symbolic,
    hash: OnceLock<ContentHash>,
}

impl VerifiedPlan {
    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What its cells hold, as expressions in the entry values.
    pub fn symbolic(&self) -> &Symbolic {
        &self.symbolic
    }

    /// The plan's hash: worked out once, when first asked for, since every rank asks.
    pub fn content_hash(&self) -> ContentHash {
        *self.hash.get_or_init(|| self.plan.content_hash())
    }

    /// The same plan, asked to be run otherwise: so many copies, and what its schedule says. Of all rules only V0's and V7's
    /// look at these, and are applied anew.
    pub fn asked(
        self,
        copies: u32,
        schedule: Schedule,
        limits: &Limits,
    ) -> Result<VerifiedPlan, Vec<Violation>> {
        let VerifiedPlan { mut plan, symbolic, .. } = self;
        plan.header.copies = copies;
        plan.header.schedule = schedule;
        ids::check_header(&plan, limits)?;
        target::check(&plan, &limits.target)?;
        Ok(VerifiedPlan { plan, symbolic, hash: OnceLock::new() })
    }

    /// The plan alone, no longer known to be right.
    pub fn into_plan(self) -> Plan {
        self.plan
    }
}

impl std::ops::Deref for VerifiedPlan {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        &self.plan
    }
}

/// Checks every rule. On success `header.proof` says `AllRanks`, whatever it said before.
pub fn verify(plan: Plan, limits: &Limits) -> Result<VerifiedPlan, Vec<Violation>> {
    rules(plan, limits, deadlock::check)
}

/// As [`verify`], for a plan just made, whose `header.k_min` only says that so many slots are enough: it is set to
/// how many are needed.
pub fn verify_fresh(plan: Plan, limits: &Limits) -> Result<VerifiedPlan, Vec<Violation>> {
    rules(plan, limits, deadlock::check_enough)
}

/// Every rule; `slots` is the half of V2 that finds `k_min`. The other half finds an order of the steps. V4 follows it while it
/// still grows, beside the search for `k_min`; whichever ends first goes on with V5 and V3. What an earlier rule says comes first
/// all the same.
fn rules(
    mut plan: Plan,
    limits: &Limits,
    slots: impl FnOnce(&Plan, &Links) -> Result<u32, Vec<Violation>>,
) -> Result<VerifiedPlan, Vec<Violation>> {
    let links = sound(&plan, limits)?;
    let order = OnceLock::new();
    let begun = AtomicBool::new(false);
    let accesses = || {
        let order = order.get().filter(|_| !begun.swap(true, Ordering::Relaxed))?;
        Some(of_accesses(&plan, &links, order))
    };
    let (stretches, coming) = mpsc::channel::<Vec<StepId>>();
    let free_of_deadlock = || {
        let mut steps = Vec::with_capacity(plan.steps.len());
        deadlock::order(&plan, &links, &mut |stretch| {
            steps.extend_from_slice(stretch);
            // V4 may have given up; that is told later.
            let _ = stretches.send(stretch.to_vec());
        })?;
        let order = order.get_or_init(|| Order(steps));
        // Nothing more will come.
        drop(stretches);
        let k_min = slots(&plan, &links)?;
        Ok::<_, Vec<Violation>>((order, k_min, accesses()))
    };
    let in_order = || {
        let mut coming = coming.into_iter();
        let steps = coming.by_ref().flatten().take(plan.steps.len());
        let symbolic = symbolic::check(&plan, &links, steps, limits);
        // Until there is all of it, or none.
        coming.for_each(drop);
        (symbolic, accesses())
    };
    let (found, (symbolic, beside)) = join(is_large(&plan), free_of_deadlock, in_order);
    let (order, k_min, here) = found?;
    here.or(beside).unwrap_or_else(|| of_accesses(&plan, &links, order))?;
    let symbolic = symbolic?;
    barrier::check(&plan, &links, order, limits)?;
    plan.header.k_min = k_min;
    plan.header.proof = ProofStatus::AllRanks;
    Ok(VerifiedPlan { plan, symbolic, hash: OnceLock::new() })
}

/// Whether a rule takes long enough for a thread of its own.
fn is_large(plan: &Plan) -> bool {
    plan.operands.len() > 1 << 13
}

/// V0, V7, V1.
fn sound(plan: &Plan, limits: &Limits) -> Result<Links, Vec<Violation>> {
    ids::check(plan, limits)?;
    let (links, target) = join(is_large(plan), || linked(plan), || target::check(plan, &limits.target));
    target?;
    links
}

/// V1, and the tables.
fn linked(plan: &Plan) -> Result<Links, Vec<Violation>> {
    let links = Links::new(plan);
    channels::check(plan, &links)?;
    Ok(links)
}

/// V5, V3.
fn of_accesses(plan: &Plan, links: &Links, order: &Order) -> Result<(), Vec<Violation>> {
    let clocks = Clocks::new(plan, links, order);
    let fences = lifetime::check(plan, links, &clocks)?;
    races::check(plan, order, &clocks, &fences, &Places::new(plan))
}

/// The least number of slots per channel with which a plan cannot get stuck: what `header.k_min` must say. Checks
/// V0 and V1 first, whatever the header says now (as long as it is not 0).
pub fn least_slots(plan: &Plan, limits: &Limits) -> Result<u32, Vec<Violation>> {
    ids::check(plan, limits)?;
    deadlock::least_slots(plan, &linked(plan)?)
}
