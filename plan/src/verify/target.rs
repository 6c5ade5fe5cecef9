//! V7: what the machine that is to run the plan can hold.
//!
//! In: a plan that V0 has passed, a [`Target`]. Out: the ranks that ask for too much. This rule runs early: it also
//! bounds what the later ones may cost.

use rustc_hash::FxHashSet;

use super::limits::Target;
use super::violation::{Report, Violation};
use crate::ids::RankId;
use crate::plan::{Operand, Plan};

/// What V7 finds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rank {} needs {needs} {what}; the target `{target}` has {has}", rank.0)]
pub struct Fault {
    /// Which rank.
    pub rank: RankId,
    /// Of what.
    pub what: &'static str,
    /// How many it needs.
    pub needs: u32,
    /// How many there are.
    pub has: u32,
    /// The target.
    pub target: String,
}

impl Fault {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        "plan::v7_target_limit"
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        "use fewer channels or blocks for each rank, e.g. a ring in place of all-to-all, or another target"
    }
}

/// V7.
pub(super) fn check(plan: &Plan, target: &Target) -> Result<(), Vec<Violation>> {
    let ranks = plan.header.ranks as usize;
    let mut blocks = vec![0u32; ranks];
    let mut ends = vec![0u32; ranks];
    let mut connections = vec![0u32; ranks];
    let mut known = FxHashSet::default();
    let mut connect = |one: RankId, other: RankId| {
        if one != other && known.insert((one.min(other), one.max(other))) {
            connections[one.index()] += 1;
            connections[other.index()] += 1;
        }
    };
    for block in &plan.blocks {
        blocks[block.rank.index()] += 1;
    }
    for channel in &plan.channels {
        let writer = plan.blocks[channel.writer.index()].rank;
        ends[writer.index()] += 1;
        for reader in plan.readers(channel) {
            let reader = plan.blocks[reader.index()].rank;
            ends[reader.index()] += 1;
            connect(writer, reader);
        }
    }
    for block in &plan.blocks {
        for (_, step) in plan.steps(&block.body) {
            for operand in plan.src(step).iter().chain(plan.dst(step)) {
                if let Operand::Peer { rank, .. } = *operand {
                    connect(block.rank, rank);
                }
            }
        }
    }
    let mut report = Report::default();
    for (what, needs, has) in [
        ("blocks", &blocks, target.blocks_per_rank),
        ("channel ends", &ends, target.channel_ends_per_rank),
        ("connections", &connections, target.connections_per_rank),
    ] {
        for (rank, &needs) in needs.iter().enumerate().filter(|&(_, &needs)| needs > has) {
            let fault = || Fault { rank: RankId::new(rank), what, needs, has, target: target.name.clone() };
            report.add(|| (super::Fault::Target(fault()), Vec::new()));
        }
    }
    report.verdict()
}
