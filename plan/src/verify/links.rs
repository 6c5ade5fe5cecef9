//! Who sends what to whom, in flat tables.
//!
//! In: a plan that V0 has passed. Out: for each step its block; for each channel the steps that send on it, for each
//! end those that receive, in program order. What a step itself sends and receives is read from its operands.
//!
//! An end is an index into `Plan::readers`: one reader of one channel ([`EndId`]). All tables are ranges of flat
//! arrays; building them is linear in the operands.

use std::ops::Range;

use crate::ids::{BlockId, ChannelId, StepId};
use crate::join::join;
use crate::plan::{Operand, Plan, Step};

/// One reader of one channel: an index into `Plan::readers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EndId(pub(super) u32);

impl EndId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The tables.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// The block of each step.
    pub(super) block_of: Vec<BlockId>,
    /// The channel of each end.
    pub(super) channel_of: Vec<ChannelId>,
    /// Whether every channel has one reader: its end then has its number, and the channel need not be looked up.
    plain: bool,
    known: Ends,
    senders: Table,
    receivers: Table,
}

/// Rows of steps, of different lengths, in one array.
#[derive(Debug, Default)]
struct Table {
    start: Vec<u32>,
    entries: Vec<StepId>,
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
        let plain = (0..).zip(&plan.channels).all(|(c, channel)| channel.readers == (c..c + 1));
        let mut links = Links { block_of, channel_of, plain, known: Ends::new(plan), ..Links::default() };
        let senders = || {
            Table::of(plan, plan.channels.len(), |_, step, add| {
                channels(plan.dst(step)).for_each(|channel| add(channel.index()));
            })
        };
        let receivers = || {
            Table::of(plan, plan.readers.len(), |id, _, add| {
                links.gets(plan, id).for_each(|end| add(end.index()));
            })
        };
        let (senders, receivers) = join(plan.steps.len() > 1 << 14, senders, receivers);
        (links.senders, links.receivers) = (senders, receivers);
        links
    }

    /// The end of a channel at which a step receives, if its block reads the channel (V0 sees to it).
    #[inline]
    pub(super) fn end(&self, plan: &Plan, channel: ChannelId, step: StepId) -> Option<EndId> {
        if self.plain {
            return Some(EndId(channel.0));
        }
        let readers = &plan.channels[channel.index()].readers;
        match readers.end - readers.start {
            1 => Some(EndId(readers.start)),
            _ => self.known.of(plan, channel, self.block_of[step.index()]),
        }
    }

    /// The ends that a step receives from, in the order of its sources.
    #[inline]
    pub(super) fn gets(&self, plan: &Plan, step: StepId) -> impl Iterator<Item = EndId> {
        channels(plan.src(&plan.steps[step.index()])).filter_map(move |channel| self.end(plan, channel, step))
    }

    /// The channels that a step sends on.
    #[inline]
    pub(super) fn puts(&self, plan: &Plan, step: StepId) -> impl Iterator<Item = ChannelId> {
        channels(plan.dst(&plan.steps[step.index()]))
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

impl Table {
    /// The steps of every row, in order; `rows` names those that a step belongs to.
    fn of(plan: &Plan, count: usize, rows: impl Fn(StepId, &Step, &mut dyn FnMut(usize))) -> Table {
        let mut start = vec![0u32; count + 1];
        for (at, step) in plan.steps.iter().enumerate() {
            rows(StepId::new(at), step, &mut |row| start[row + 1] += 1);
        }
        for at in 1..start.len() {
            start[at] += start[at - 1];
        }
        let mut entries = vec![StepId(0); start.last().map_or(0, |&end| end as usize)];
        // Where the next entry of each row belongs.
        let mut next = start.clone();
        for (at, step) in plan.steps.iter().enumerate() {
            let id = StepId::new(at);
            rows(id, step, &mut |row| {
                entries[next[row] as usize] = id;
                next[row] += 1;
            });
        }
        Table { start, entries }
    }

    fn row(&self, at: usize) -> &[StepId] {
        &self.entries[self.start[at] as usize..self.start[at + 1] as usize]
    }
}

/// The channels among operands.
#[inline]
fn channels(operands: &[Operand]) -> impl Iterator<Item = ChannelId> {
    operands.iter().filter_map(|operand| match *operand {
        Operand::Channel(channel) => Some(channel),
        Operand::Local { .. } | Operand::Peer { .. } => None,
    })
}

/// The ends of a channel.
pub(super) fn ends(plan: &Plan, channel: ChannelId) -> impl Iterator<Item = EndId> + use<> {
    let Range { start, end } = plan.channels[channel.index()].readers.clone();
    (start..end).map(EndId)
}

/// Finds the end of a channel that a block reads; quick also for channels of very many readers.
#[derive(Debug, Default)]
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
