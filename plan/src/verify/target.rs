//! V7: what the machine that is to run the plan can hold.
//!
//! In: a plan that V0 has passed, a [`Target`]. Out: the ranks that ask for too much. This rule runs early: it also
//! bounds what the later ones may cost.

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
    // Both ways; one and the same many times.
    let mut pairs: Vec<[RankId; 2]> = Vec::new();
    let mut connect = |one: RankId, other: RankId| {
        if one != other && pairs.last() != Some(&[other, one]) {
            pairs.extend([[one, other], [other, one]]);
        }
    };
    // Every copy has blocks and channels of its own; they connect the same ranks.
    let copies = plan.header.copies;
    let more = |count: &mut u32| *count = count.saturating_add(copies);
    for block in &plan.blocks {
        more(&mut blocks[block.rank.index()]);
    }
    for channel in &plan.channels {
        let writer = plan.blocks[channel.writer.index()].rank;
        more(&mut ends[writer.index()]);
        for reader in plan.readers(channel) {
            let reader = plan.blocks[reader.index()].rank;
            more(&mut ends[reader.index()]);
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
    let connections = distinct(&pairs, ranks);
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

/// To how many different ones each rank is connected.
fn distinct(pairs: &[[RankId; 2]], ranks: usize) -> Vec<u32> {
    // Sorted by the first, by counting: there may be a pair for every two ranks.
    let mut start = vec![0u32; ranks + 1];
    for [one, _] in pairs {
        start[one.index() + 1] += 1;
    }
    for at in 1..start.len() {
        start[at] += start[at - 1];
    }
    let mut next = start.clone();
    let mut others = vec![RankId(0); pairs.len()];
    for [one, other] in pairs {
        others[next[one.index()] as usize] = *other;
        next[one.index()] += 1;
    }
    // By rank: the last one that was found to be connected to it.
    let mut met = vec![u32::MAX; ranks];
    let mut of = |rank: usize| {
        let range = start[rank] as usize..start[rank + 1] as usize;
        let new = |other: &&RankId| std::mem::replace(&mut met[other.index()], rank as u32) != rank as u32;
        others[range].iter().filter(new).count() as u32
    };
    (0..ranks).map(&mut of).collect()
}
