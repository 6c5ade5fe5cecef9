//! Channels between two ranks, one each way, that may trade slots.
//!
//! In: a plan that V0 to V2 have passed, and how many slots its channels have. Out: pairs of channels. In such a pair a rank writes its next message into
//! the slot that it has read last from the other: what moves between two caches then goes over and comes back changed, while a slot that
//! always goes the same way has to be taken from its reader's cache first (plan.md §6.5).
//!
//! The one hard idea: that changes who gives credit. The i-th message of a channel may be written once its writer has received the
//! (i-k)-th of the other channel, not once its reader has received the (i-k)-th of this one. So condition D (plan.md §4) is asked anew, with
//! these edges in the place of those: as in V2 by one execution without data, which gets stuck if any does. L1, L2 and L5 hold for these edges
//! as for those, since both channels of a pair have as many messages (data is in the body only); L3 and L4 are not needed for their messages, which are
//! neither elided nor grouped, and so are of steps of one cell; for the others they hold as ever, since each event of a pair is a group of its own.
//!
//! Cost: every step is looked at once in each pass over the blocks; of passes there are as many as messages one way in a row.

use std::collections::BTreeMap;

use super::links::{EndId, Links, ends};
use crate::ids::{BlockId, ChannelId, RankId, StepId};
use crate::plan::{ChannelKind, Operand, Plan};

/// The pairs of channels of a verified plan that trade slots where every channel has so many; all of them, or none where the plan might get
/// stuck.
pub fn trades(plan: &Plan, slots: u32) -> Vec<[ChannelId; 2]> {
    let links = Links::new(plan);
    let pairs = candidates(plan, &links);
    let stuck = !pairs.is_empty() && !ends_with(plan, &links, &pairs, slots);
    if stuck { Vec::new() } else { pairs }
}

/// Channels of one reader whose messages are of one cell, paired with one the other way of as many messages.
fn candidates(plan: &Plan, links: &Links) -> Vec<[ChannelId; 2]> {
    let mut open: BTreeMap<(RankId, RankId), Vec<(ChannelId, usize)>> = BTreeMap::new();
    let mut pairs = Vec::new();
    for (c, channel) in plan.channels.iter().enumerate() {
        let id = ChannelId::new(c);
        let [reader] = plan.readers(channel) else { continue };
        let senders = links.senders(id);
        let narrow = senders.iter().all(|step| plan.steps[step.index()].width == 1);
        if channel.kind != ChannelKind::Slots || !narrow {
            continue;
        }
        let rank_of = |block: BlockId| plan.blocks[block.index()].rank;
        let (from, to, messages) = (rank_of(channel.writer), rank_of(*reader), senders.len());
        let others = open.get_mut(&(to, from)).filter(|_| from != to);
        let other = others.and_then(|others| {
            let at = others.iter().position(|&(_, of_other)| of_other == messages)?;
            Some(others.remove(at).0)
        });
        match other {
            Some(other) => pairs.push([other, id]),
            None => open.entry((from, to)).or_default().push((id, messages)),
        }
    }
    pairs
}

/// Whether an execution with so many slots ends where these pairs trade.
fn ends_with(plan: &Plan, links: &Links, pairs: &[[ChannelId; 2]], slots: u32) -> bool {
    let mut partner = vec![None; plan.channels.len()];
    for &[a, b] in pairs {
        (partner[a.index()], partner[b.index()]) = (Some(b), Some(a));
    }
    let mut sent = vec![0u32; plan.channels.len()];
    let mut received = vec![0u32; plan.readers.len()];
    let first = |channel: ChannelId| EndId(plan.channels[channel.index()].readers.start);
    // The step at which each block is, and how many of its micro-steps have been done.
    let mut at: Vec<(u32, u32)> = plan.blocks.iter().map(|block| (block.prologue.start, 0)).collect();
    let mut moved = true;
    while std::mem::take(&mut moved) {
        for (b, block) in plan.blocks.iter().enumerate() {
            while at[b].0 < block.epilogue.end {
                let id = StepId(at[b].0);
                let step = &plan.steps[id.index()];
                let waits = plan.waits(step).iter();
                let mut waits = waits.map(|wait| at[links.block_of[wait.index()].index()].0 > wait.0);
                let mut gets = links
                    .gets(plan, id)
                    .map(|end| sent[links.channel_of[end.index()].index()] > received[end.index()]);
                let mut puts = plan.dst(step).iter().map(|operand| {
                    let Operand::Channel(c) = *operand else { return true };
                    let room = |end: EndId| sent[c.index()] < received[end.index()].saturating_add(slots);
                    match partner[c.index()] {
                        _ if plan.channels[c.index()].kind == ChannelKind::Counter => true,
                        Some(other) => room(first(other)),
                        None => ends(plan, c).all(room),
                    }
                });
                if !((at[b].1 > 0 || waits.all(|met| met)) && gets.all(|met| met) && puts.all(|met| met)) {
                    break;
                }
                links.gets(plan, id).for_each(|end| received[end.index()] += 1);
                links.puts(plan, id).for_each(|channel| sent[channel.index()] += 1);
                at[b].1 += 1;
                if at[b].1 >= step.width {
                    at[b] = (at[b].0 + 1, 0);
                }
                moved = true;
            }
        }
    }
    plan.blocks.iter().zip(&at).all(|(block, at)| at.0 == block.epilogue.end)
}
