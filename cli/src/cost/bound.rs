//! The least that any algorithm could do, from the promise alone.
//!
//! In: a plan's promise. Out: blocks that some rank must send and must receive, blocks that must travel in all, and
//! rounds in the one-port model. It holds for the user's own collectives as for the standard ones, since it asks only
//! what is promised to whom. Of the parts of lists that must cross to or from a rank, those that share no block are
//! independent, and each costs a block. In k rounds a rank hears of at most 2^k ranks and is heard of by as many.
//! Where every rank is promised the same reduction over all ranks (AllReduce), a block must be combined along n-1
//! messages and spread along n-1 more: 2(n-1)/n of a block per rank on average.

use std::collections::{BTreeMap, BTreeSet};

use plan::collective::{BlockRef, Promise};

/// Lower bounds; blocks may be fractions.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Bound {
    /// Blocks that the busiest sender sends.
    pub(crate) sent: f64,
    /// Blocks that the busiest receiver receives.
    pub(crate) received: f64,
    /// Blocks that travel in all.
    pub(crate) total: f64,
    /// Rounds.
    pub(crate) rounds: u32,
}

/// The bounds for a promise among `ranks` ranks.
pub(crate) fn bound(promise: &Promise, ranks: u32) -> Bound {
    let n = ranks as usize;
    // At which ranks each list is promised.
    let mut places: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for clause in &promise.clauses {
        places.entry(clause.list).or_default().insert(clause.place.rank.0);
    }
    // Of each rank: the parts that must reach it and leave it, of whom it hears, and who hears of it; all know themselves.
    let mut into: Vec<BTreeSet<Vec<BlockRef>>> = vec![BTreeSet::new(); n];
    let mut out = into.clone();
    let mut hears: Vec<BTreeSet<u32>> = (0..ranks).map(|rank| BTreeSet::from([rank])).collect();
    let mut heard = hears.clone();
    let mut reductions = 0;
    for (&list, at) in &places {
        let list = &promise.lists[list as usize];
        let mut by_rank: BTreeMap<u32, Vec<BlockRef>> = BTreeMap::new();
        for &operand in list {
            by_rank.entry(operand.rank.0).or_default().push(operand);
        }
        for (&source, part) in &by_rank {
            if at.iter().any(|&rank| rank != source) {
                out[source as usize].insert(part.clone());
                heard[source as usize].extend(at);
            }
        }
        for &rank in at {
            hears[rank as usize].extend(by_rank.keys());
            let foreign: Vec<BlockRef> =
                list.iter().copied().filter(|operand| operand.rank.0 != rank).collect();
            if !foreign.is_empty() {
                into[rank as usize].insert(foreign);
            }
        }
        reductions += usize::from(at.len() == n && by_rank.len() == n && n > 1);
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
