//! V7: what the machine that is to run the plan can hold.
//!
//! In: a plan that V0 has passed, a [`Target`]. Out: the ranks that ask for too much, each with the first step that
//! does. This rule runs early: it also bounds what the later ones may cost.

use std::fmt;

use rustc_hash::FxHashSet;

use super::limits::Target;
use super::violation::{Report, Site, Violation};
use crate::ids::RankId;
use crate::plan::{Operand, Plan, Section};

/// What V7 finds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rank {} needs {}; the target `{target}` has {has}", rank.0, what.count(*needs))]
pub struct Fault {
    /// Which rank.
    pub rank: RankId,
    /// Of what.
    pub what: Resource,
    /// How many it needs.
    pub needs: u32,
    /// How many there are.
    pub has: u32,
    /// The target.
    pub target: String,
}

/// What there is a limited number of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Blocks of one rank.
    Blocks,
    /// Channel ends of one rank.
    ChannelEnds,
    /// Other ranks that one rank reaches.
    Connections,
}

impl Resource {
    fn count(self, count: u32) -> String {
        format!("{count} {self}{}", if count == 1 { "" } else { "s" })
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Resource::Blocks => "block",
            Resource::ChannelEnds => "channel end",
            Resource::Connections => "connection",
        })
    }
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
            more(&mut ends[plan.blocks[reader.index()].rank.index()]);
        }
    }
    // No rank meets more others than there are: who could not be too many is not counted.
    let connections =
        if ranks > target.connections_per_rank as usize { connections(plan, ranks) } else { Vec::new() };
    let mut report = Report::default();
    for (what, needs, has) in [
        (Resource::Blocks, &blocks, target.blocks_per_rank),
        (Resource::ChannelEnds, &ends, target.channel_ends_per_rank),
        (Resource::Connections, &connections, target.connections_per_rank),
    ] {
        for (rank, &needs) in needs.iter().enumerate().filter(|&(_, &needs)| needs > has) {
            let rank = RankId::new(rank);
            let fault = || Fault { rank, what, needs, has, target: target.name.clone() };
            report.add(|| (super::Fault::Target(fault()), first_beyond(plan, rank, what, has)));
        }
    }
    report.verdict()
}

/// To how many other ranks each is connected.
fn connections(plan: &Plan, ranks: usize) -> Vec<u32> {
    // Both ways; one and the same many times.
    let mut pairs: Vec<[RankId; 2]> = Vec::new();
    let mut connect = |one: RankId, other: RankId| {
        if one != other && pairs.last() != Some(&[other, one]) {
            pairs.extend([[one, other], [other, one]]);
        }
    };
    for channel in &plan.channels {
        let writer = plan.blocks[channel.writer.index()].rank;
        plan.readers(channel).iter().for_each(|reader| connect(writer, plan.blocks[reader.index()].rank));
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
    distinct(&pairs, ranks)
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

/// The first step of a rank that needs one more than the target has; none if no step uses it.
fn first_beyond(plan: &Plan, rank: RankId, what: Resource, has: u32) -> Vec<Site> {
    // What is counted per copy is used up by as many copies at once.
    let each = (has / plan.header.copies.max(1)) as usize;
    let mut ends = FxHashSet::default();
    let mut peers = FxHashSet::default();
    for (number, block) in plan.blocks_of(rank).iter().enumerate() {
        for (id, step) in Section::ALL.map(|s| block.section(s)).iter().flat_map(|range| plan.steps(range)) {
            for (at, operand) in plan.src(step).iter().chain(plan.dst(step)).enumerate() {
                match *operand {
                    Operand::Channel(channel) => {
                        ends.insert((channel, at < usize::from(step.sources)));
                        let ends = &plan.channels[channel.index()];
                        let others = plan.readers(ends).iter().chain([&ends.writer]);
                        let others = others.map(|block| plan.blocks[block.index()].rank);
                        // Of several readers each meets the writer alone.
                        let writes = plan.blocks[ends.writer.index()].rank == rank;
                        let writer = plan.blocks[ends.writer.index()].rank;
                        peers.extend(others.filter(|&other| other != rank && (writes || other == writer)));
                    }
                    Operand::Peer { rank: owner, .. } if owner != rank => {
                        peers.insert(owner);
                    }
                    Operand::Peer { .. } | Operand::Local { .. } => {}
                }
            }
            let beyond = match what {
                Resource::Blocks => number >= each,
                Resource::ChannelEnds => ends.len() > each,
                Resource::Connections => peers.len() > has as usize,
            };
            if beyond {
                return vec![Site::of(plan, id, format!("the first {what} too many"))];
            }
        }
    }
    Vec::new()
}
