//! V4 of a folded plan, `synchronised`: no rank leaves before all have entered.
//!
//! In: a folded plan that V0 to V3 have passed, and an order of its steps. Out: a fault, if some rank may leave too early. As
//! `barrier` does it: each block knows which ranks have entered, at first its own, then what comes with tokens and waits. What a
//! standing rank is told by one that is t turns behind is what the standing one of its orbit knows, taken back t turns.

use super::super::links::Links;
use super::super::violation::Report;
use super::symbolic::Fault;
use crate::fold::Folded;
use crate::ids::{ChannelId, RankId, StepId};
use crate::plan::{ChannelKind, Plan};
use crate::verify::Limits;

/// Checks every standing rank. `plan` is the folded plan's, with the standing ranks for a world.
pub(super) fn check(
    folded: &Folded,
    plan: &Plan,
    links: &Links,
    order: &[StepId],
    limits: &Limits,
    report: &mut Report,
) {
    let mut add = |fault: Fault| report.add(|| (super::super::Fault::Symbolic(fault), Vec::new()));
    let ranks = folded.plan.header.ranks as usize;
    let words = ranks.div_ceil(64);
    let tokens = plan.steps.iter().map(|step| u64::from(step.destinations)).sum::<u64>();
    let most = (tokens + plan.blocks.len() as u64 + plan.waits.len() as u64).saturating_mul(words as u64);
    if most > limits.arrival_words {
        return add(Fault::Limit { what: "words of arrivals known", limit: limits.arrival_words });
    }
    let own = |rank: RankId| {
        let mut set = vec![0u64; words];
        set[rank.index() / 64] |= 1 << (rank.0 % 64);
        set
    };
    let mut known: Vec<Vec<u64>> = plan.blocks.iter().map(|block| own(block.rank)).collect();
    let mut carried: Vec<Vec<Vec<u64>>> = vec![Vec::new(); plan.channels.len()];
    let mut taken = vec![0usize; plan.readers.len()];
    let mut finished: rustc_hash::FxHashMap<StepId, Vec<u64>> =
        plan.waits.iter().map(|&wait| (wait, Vec::new())).collect();
    let is_counter = |channel: ChannelId| plan.channels[channel.index()].kind == ChannelKind::Counter;
    for &id in order {
        let block = links.block_of[id.index()].index();
        let mut set = std::mem::take(&mut known[block]);
        for wait in plan.waits(&plan.steps[id.index()]) {
            if let Some(theirs) = finished.get(wait) {
                set.iter_mut().zip(theirs).for_each(|(set, word)| *set |= word);
            }
        }
        for end in links.gets(plan, id) {
            let channel = links.channel_of[end.index()];
            if is_counter(channel) {
                if let Some(theirs) = carried[channel.index()].get(taken[end.index()]) {
                    let by = folded.back(folded.times[end.index()]);
                    join_taken(&mut set, theirs, folded, by);
                }
                taken[end.index()] += 1;
            }
        }
        for channel in links.puts(plan, id).filter(|&channel| is_counter(channel)) {
            carried[channel.index()].push(set.clone());
        }
        if let Some(finished) = finished.get_mut(&id) {
            finished.clone_from(&set);
        }
        known[block] = set;
    }
    for rank in (0..folded.rotation.step).map(RankId) {
        let mut all = own(rank);
        for (block, set) in plan.blocks.iter().zip(&known) {
            if block.rank == rank {
                all.iter_mut().zip(set).for_each(|(all, word)| *all |= word);
            }
        }
        let count: u64 = all.iter().map(|word| u64::from(word.count_ones())).sum();
        if count < ranks as u64 {
            let unknown = |other: &RankId| all[other.index() / 64] >> (other.0 % 64) & 1 == 0;
            let enters = (0..ranks as u32).map(RankId).find(unknown).unwrap_or(rank);
            let missing = (ranks as u64 - count) * u64::from(folded.order());
            add(Fault::NotSynchronised { leaves: rank, enters, missing });
        }
    }
}

/// Adds ranks, taken round.
fn join_taken(set: &mut [u64], theirs: &[u64], folded: &Folded, times: u32) {
    for (at, &word) in theirs.iter().enumerate() {
        let mut left = word;
        while left != 0 {
            let rank = RankId(at as u32 * 64 + left.trailing_zeros());
            left &= left - 1;
            let to = folded.rank(rank, times);
            set[to.index() / 64] |= 1 << (to.0 % 64);
        }
    }
}
