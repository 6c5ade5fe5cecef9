//! The least that any algorithm could do, from the promise alone; and on a topology, in no less time.
//!
//! In: a plan's promise. Out: blocks that some rank (or some group of ranks) must send and must receive, blocks that must
//! travel in all, and rounds in the one-port model. It holds for the user's own collectives as for the standard ones,
//! since it asks only what is promised to whom. Of the parts of lists that must cross to or from a rank, those that
//! share no block are independent, and each costs a block. In k rounds a rank hears of at most 2^k ranks and is heard
//! of by as many. Where every rank is promised the same reduction over all ranks (AllReduce), a block must be combined
//! along n-1 messages and spread along n-1 more: 2(n-1)/n of a block per rank on average.
//!
//! On a topology the same is asked of the groups of each level: a node is as one rank with the ports of all its
//! ranks. The time is at least what the slowest of these takes ([`Least::bandwidth`]), and at least as many hops as
//! rounds ([`Least::latency`]), one of them on the outermost level that must be crossed and the others as short as any:
//! groups can be gathered inside, so that no more than one outer hop is certain. The number of hops supposes that a
//! rank sends one message at a time: an algorithm that sends to all at once can be below it.

use std::collections::{BTreeMap, BTreeSet};

use plan::collective::{BlockRef, Promise};

use super::topology::{Engine, Topology};
use super::work::PerCore;

/// Lower bounds; blocks may be fractions.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bound {
    /// Blocks that the busiest sender sends.
    pub sent: f64,
    /// The same where one message may reach many.
    pub multicast: f64,
    /// Blocks that the busiest receiver receives.
    pub received: f64,
    /// Blocks that travel in all.
    pub total: f64,
    /// Rounds.
    pub rounds: u32,
}

/// Lower bounds in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Least {
    /// What the bytes take on the port that is the narrowest for what must pass it.
    pub bandwidth: f64,
    /// What the hops take.
    pub latency: f64,
}

/// The bounds for a promise among `ranks` ranks.
pub fn bound(promise: &Promise, ranks: u32) -> Bound {
    groups(promise, ranks, |rank| rank)
}

/// The bounds in time on a machine, for blocks of `block` bytes; `core`: what a byte takes where cores do all the work.
pub(super) fn least(promise: &Promise, ranks: u32, topology: &Topology, block: u64, core: PerCore) -> Least {
    let block = block as f64;
    let mut least = Least::default();
    let rounds = bound(promise, ranks).rounds;
    let shortest = topology.levels.iter().map(|level| level.latency).fold(f64::INFINITY, f64::min);
    let mut members: u64 = 1;
    for (l, level) in topology.levels.iter().enumerate() {
        let groups_here = u64::from(ranks).div_ceil(members);
        if groups_here < 2 {
            break;
        }
        let bound = groups(promise, groups_here as u32, |rank| (u64::from(rank) / members) as u32);
        // What leaves a group may leave it on this level and on all outer ones.
        let outer = &topology.levels[l..];
        let inside = members.min(ranks.into()) as f64;
        let capacity: f64 = outer
            .iter()
            .map(|level| {
                let ports = level.port.map_or(f64::INFINITY, |port| port * inside);
                ports.min(level.uplink.unwrap_or(f64::INFINITY))
            })
            .sum();
        let cheap = outer.iter().any(|level| level.multicast);
        let sent = if cheap { bound.multicast } else { bound.sent };
        least.bandwidth = least.bandwidth.max(sent.max(bound.received) * block / capacity);
        if bound.rounds > 0 {
            least.latency = f64::from(rounds.saturating_sub(1)) * shortest + level.latency;
        }
        if let (0, Engine::Shared { cores, .. }) = (l, &topology.engine) {
            // Some core must read whatever is promised to anyone, and write what is promised. And whatever a rank must receive
            // some core must read and write, but that may be the same reads and writes.
            let read: BTreeSet<BlockRef> = promise.lists.iter().flatten().copied().collect();
            let written: BTreeSet<BlockRef> = promise.clauses.iter().map(|clause| clause.place).collect();
            let ends = read.len() as f64 * core.read + written.len() as f64 * core.write;
            let copied = ends.max(bound.total * core.pass) * block;
            let nodes = u64::from(ranks).div_ceil(topology.group(0)) as f64;
            let cores = f64::from((*cores).min(ranks)) * nodes;
            least.bandwidth = least.bandwidth.max(copied / cores);
        }
        members = topology.group(l);
    }
    least
}

/// The bounds among `groups` groups, each taken as one rank.
fn groups(promise: &Promise, groups: u32, of: impl Fn(u32) -> u32) -> Bound {
    let n = groups as usize;
    // In which groups each list is promised.
    let mut places: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for clause in &promise.clauses {
        places.entry(clause.list).or_default().insert(of(clause.place.rank.0));
    }
    // Of each group: the parts that must reach it and leave it, of whom it hears, and who hears of it; all know themselves.
    let mut into: Vec<BTreeSet<Vec<BlockRef>>> = vec![BTreeSet::new(); n];
    let mut out = into.clone();
    let mut hears: Vec<BTreeSet<u32>> = (0..groups).map(|group| BTreeSet::from([group])).collect();
    let mut heard = hears.clone();
    let mut reductions = 0;
    for (&list, at) in &places {
        let list = &promise.lists[list as usize];
        let mut by_group: BTreeMap<u32, Vec<BlockRef>> = BTreeMap::new();
        for &operand in list {
            by_group.entry(of(operand.rank.0)).or_default().push(operand);
        }
        for (&source, part) in &by_group {
            if at.iter().any(|&group| group != source) {
                out[source as usize].insert(part.clone());
                heard[source as usize].extend(at);
            }
        }
        for &group in at {
            hears[group as usize].extend(by_group.keys());
            let foreign: Vec<BlockRef> =
                list.iter().copied().filter(|operand| of(operand.rank.0) != group).collect();
            if !foreign.is_empty() {
                into[group as usize].insert(foreign);
            }
        }
        reductions += usize::from(at.len() == n && by_group.len() == n && n > 1);
    }

    let sent: Vec<usize> = out.iter().map(independent).collect();
    let received: Vec<usize> = into.iter().map(independent).collect();
    let most = |counts: &[usize]| counts.iter().copied().max().unwrap_or(0) as f64;
    let spread = reductions as f64 * 2.0 * (n as f64 - 1.0);
    let average = spread / n.max(1) as f64;
    let known = hears.iter().chain(&heard).map(BTreeSet::len).max().unwrap_or(1);
    let known = if promise.synchronised { n } else { known };
    Bound {
        sent: most(&sent).max(average),
        multicast: most(&sent),
        received: most(&received).max(average),
        total: (sent.iter().sum::<usize>().max(received.iter().sum()) as f64).max(spread),
        rounds: known.max(1).next_power_of_two().ilog2(),
    }
}

/// How many of the lists share no block with one another, at least: short ones are taken first.
fn independent(lists: &BTreeSet<Vec<BlockRef>>) -> usize {
    let mut by_length: Vec<&Vec<BlockRef>> = lists.iter().collect();
    by_length.sort_by_key(|list| list.len());
    let mut used = BTreeSet::new();
    let mut count = 0;
    for list in by_length {
        if list.iter().all(|block| !used.contains(block)) {
            used.extend(list.iter().copied());
            count += 1;
        }
    }
    count
}
