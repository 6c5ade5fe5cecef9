//! Who sends what to whom, in flat tables.
//!
//! In: a plan that V0 has passed. Out: for each step its block, the channels it sends on and the channel ends it
//! receives from; for each channel the steps that send on it, for each end those that receive, in program order.
//!
//! An end is an index into `Plan::readers`: one reader of one channel ([`EndId`]). All tables are ranges of flat
//! arrays; building them is linear in the operands.

use std::ops::Range;

use crate::ids::{BlockId, ChannelId, StepId};
use crate::plan::{Operand, Plan};

/// One reader of one channel: an index into `Plan::readers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EndId(pub(super) u32);

impl EndId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The tables.
#[derive(Debug)]
pub(super) struct Links {
    /// The block of each step.
    pub(super) block_of: Vec<BlockId>,
    /// The channel of each end.
    pub(super) channel_of: Vec<ChannelId>,
    gets: Table<EndId>,
    puts: Table<ChannelId>,
    senders: Table<StepId>,
    receivers: Table<StepId>,
}

/// Rows of different lengths in one array.
#[derive(Debug)]
struct Table<T> {
    start: Vec<u32>,
    entries: Vec<T>,
}

impl<T> Table<T> {
    fn row(&self, at: usize) -> &[T] {
        &self.entries[self.start[at] as usize..self.start[at + 1] as usize]
    }
}

impl Links {
    pub(super) fn new(plan: &Plan) -> Links {
        let mut block_of = vec![BlockId(0); plan.steps.len()];
        let mut channel_of = vec![ChannelId(0); plan.readers.len()];
        for (b, block) in plan.blocks.iter().enumerate() {
            block_of[block.prologue.start as usize..block.epilogue.end as usize].fill(BlockId::new(b));
        }
        for (c, channel) in plan.channels.iter().enumerate() {
            channel_of[channel.readers.start as usize..channel.readers.end as usize].fill(ChannelId::new(c));
        }
        let ends = Ends::new(plan);
        let mut gets = Table { start: vec![0], entries: Vec::new() };
        let mut puts = Table { start: vec![0], entries: Vec::new() };
        for (step, &block) in plan.steps.iter().zip(&block_of) {
            for operand in plan.src(step) {
                if let Operand::Channel(channel) = *operand {
                    // V0 has seen to it that the block is a reader.
                    gets.entries.extend(ends.of(plan, channel, block));
                }
            }
            puts.entries.extend(plan.dst(step).iter().filter_map(|operand| match *operand {
                Operand::Channel(channel) => Some(channel),
                _ => None,
            }));
            gets.start.push(gets.entries.len() as u32);
            puts.start.push(puts.entries.len() as u32);
        }
        let senders = invert(&puts, plan.channels.len(), ChannelId::index);
        let receivers = invert(&gets, plan.readers.len(), EndId::index);
        Links { block_of, channel_of, gets, puts, senders, receivers }
    }

    /// The ends that a step receives from, in the order of its sources.
    #[inline]
    pub(super) fn gets(&self, step: StepId) -> &[EndId] {
        self.gets.row(step.index())
    }

    /// The channels that a step sends on.
    #[inline]
    pub(super) fn puts(&self, step: StepId) -> &[ChannelId] {
        self.puts.row(step.index())
    }

    /// The steps that send on a channel, in program order.
    pub(super) fn senders(&self, channel: ChannelId) -> &[StepId] {
        self.senders.row(channel.index())
    }

    /// The steps that receive at an end, in program order.
    pub(super) fn receivers(&self, end: EndId) -> &[StepId] {
        self.receivers.row(end.index())
    }
}

/// The ends of a channel.
pub(super) fn ends(plan: &Plan, channel: ChannelId) -> impl Iterator<Item = EndId> + use<> {
    let Range { start, end } = plan.channels[channel.index()].readers.clone();
    (start..end).map(EndId)
}

/// Finds the end of a channel that a block reads; quick also for channels of very many readers.
pub(super) struct Ends {
    /// The indices of `Plan::readers`, those of each channel sorted by reader. Empty: no channel has many.
    sorted: Vec<u32>,
}

impl Ends {
    const MANY: usize = 8;

    pub(super) fn new(plan: &Plan) -> Ends {
        let mut sorted = Vec::new();
        if plan.channels.iter().any(|channel| channel.readers.len() > Ends::MANY) {
            sorted = (0..plan.readers.len() as u32).collect();
            for channel in &plan.channels {
                let range = channel.readers.start as usize..channel.readers.end as usize;
                sorted[range].sort_unstable_by_key(|&end| plan.readers[end as usize]);
            }
        }
        Ends { sorted }
    }

    /// The end of `channel` that `block` reads, if it does.
    pub(super) fn of(&self, plan: &Plan, channel: ChannelId, block: BlockId) -> Option<EndId> {
        let range = plan.channels[channel.index()].readers.clone();
        if range.len() <= Ends::MANY {
            return range.into_iter().find(|&end| plan.readers[end as usize] == block).map(EndId);
        }
        let sorted = &self.sorted[range.start as usize..range.end as usize];
        let at = sorted.binary_search_by_key(&block, |&end| plan.readers[end as usize]).ok()?;
        Some(EndId(sorted[at]))
    }
}

/// For each key the steps whose rows name it, in order of the steps.
fn invert<T: Copy>(table: &Table<T>, keys: usize, key: impl Fn(T) -> usize) -> Table<StepId> {
    let mut start = vec![0u32; keys + 1];
    for &entry in &table.entries {
        start[key(entry) + 1] += 1;
    }
    for at in 0..keys {
        start[at + 1] += start[at];
    }
    let mut next = start.clone();
    let mut entries = vec![StepId(0); table.entries.len()];
    for step in 0..table.start.len() - 1 {
        for &entry in table.row(step) {
            let at = &mut next[key(entry)];
            entries[*at as usize] = StepId::new(step);
            *at += 1;
        }
    }
    Table { start, entries }
}
