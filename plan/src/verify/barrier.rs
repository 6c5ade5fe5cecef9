//! V4, `synchronised`: no rank leaves before all have entered.
//!
//! In: a plan that V0 to V3 have passed, and an order of its steps. Out: a fault, if some rank may leave too early.
//! Each block knows which ranks have entered: at first its own; then what comes with tokens and waits. Data messages
//! tell nothing, since with no elements to move they are elided. A rank leaves when all of its blocks have ended, so
//! what any of them knows at its end is known. One iteration is enough: later ones only add.
//!
//! Knowledge is a set of ranks, as rows of words in one array; a block that learns something new gets a new row, so
//! a token or a finished step only names the row that was its sender's at the time.

use super::deadlock::Order;
use super::limits::Limits;
use super::links::{Links, ends};
use super::symbolic::Fault;
use super::violation::{Report, Violation};
use crate::ids::{ChannelId, RankId};
use crate::plan::{ChannelKind, Plan};

/// V4 where the promise says `synchronised`.
pub(super) fn check(
    plan: &Plan,
    links: &Links,
    order: &Order,
    limits: &Limits,
) -> Result<(), Vec<Violation>> {
    let mut report = Report::default();
    if plan.promise.synchronised {
        all_ranks(plan, links, order, limits, &mut report);
    }
    report.verdict()
}

fn all_ranks(plan: &Plan, links: &Links, order: &Order, limits: &Limits, report: &mut Report) {
    let mut add = |fault: Fault| report.add(|| (super::Fault::Symbolic(fault), Vec::new()));
    let ranks = plan.header.ranks as usize;
    let words = ranks.div_ceil(64);
    let mut rows = Rows { words, bits: Vec::new(), limit: limits.arrival_words };
    let mut current = Vec::with_capacity(plan.blocks.len());
    for block in &plan.blocks {
        let Some(row) = rows.own(block.rank) else { return add(rows.too_many()) };
        current.push(row);
    }
    // Rows that tokens carry, in the order of sends; and rows at the end of steps.
    let mut next_sent = vec![0; plan.channels.len()];
    let mut next_received = vec![0; plan.readers.len()];
    let mut total = 0;
    for channel in (0..plan.channels.len()).map(ChannelId::new) {
        if plan.channels[channel.index()].kind == ChannelKind::Counter {
            next_sent[channel.index()] = total;
            ends(plan, channel).for_each(|end| next_received[end.index()] = total);
            total += links.senders(channel).len();
        }
    }
    let mut carried = vec![0; total];
    let mut finished = if plan.waits.is_empty() { Vec::new() } else { vec![0; plan.steps.len()] };
    let is_counter = |channel: ChannelId| plan.channels[channel.index()].kind == ChannelKind::Counter;
    for &id in &order.0 {
        let block = links.block_of[id.index()];
        let mut row = current[block.index()];
        for &target in plan.waits(&plan.steps[id.index()]) {
            match rows.union(row, finished[target.index()]) {
                Some(joined) => row = joined,
                None => return add(rows.too_many()),
            }
        }
        for end in links.gets(plan, id) {
            if is_counter(links.channel_of[end.index()]) {
                let next = &mut next_received[end.index()];
                *next += 1;
                match rows.union(row, carried[*next - 1]) {
                    Some(joined) => row = joined,
                    None => return add(rows.too_many()),
                }
            }
        }
        for channel in links.puts(plan, id) {
            if is_counter(channel) {
                let next = &mut next_sent[channel.index()];
                carried[*next] = row;
                *next += 1;
            }
        }
        if let Some(finished) = finished.get_mut(id.index()) {
            *finished = row;
        }
        current[block.index()] = row;
    }

    let mut missing = 0;
    let mut example = None;
    let mut known = vec![0; words];
    for rank in (0..plan.header.ranks).map(RankId) {
        known.fill(0);
        known[rank.index() / 64] |= 1 << (rank.0 % 64);
        let first = plan.blocks.partition_point(|block| block.rank < rank);
        for (block, &row) in plan.blocks[first..].iter().zip(&current[first..]) {
            if block.rank != rank {
                break;
            }
            known.iter_mut().zip(rows.row(row)).for_each(|(known, &word)| *known |= word);
        }
        let count: u32 = known.iter().map(|word| word.count_ones()).sum();
        missing += u64::from(plan.header.ranks - count);
        if example.is_none() && count < plan.header.ranks {
            let unknown = |other: &RankId| known[other.index() / 64] >> (other.0 % 64) & 1 == 0;
            example = (0..plan.header.ranks).map(RankId).find(unknown).map(|other| (rank, other));
        }
    }
    if let Some((leaves, enters)) = example {
        add(Fault::NotSynchronised { leaves, enters, missing });
    }
}

/// Sets of ranks.
struct Rows {
    words: usize,
    bits: Vec<u64>,
    limit: u64,
}

impl Rows {
    fn row(&self, row: usize) -> &[u64] {
        &self.bits[row * self.words..][..self.words]
    }

    /// A new set: one rank.
    fn own(&mut self, rank: RankId) -> Option<usize> {
        let row = self.add()?;
        self.bits[row * self.words + rank.index() / 64] = 1 << (rank.0 % 64);
        Some(row)
    }

    /// The set that holds both; a new one only if neither does.
    fn union(&mut self, left: usize, right: usize) -> Option<usize> {
        let is_subset = |a: usize, b: usize| self.row(a).iter().zip(self.row(b)).all(|(a, b)| a & !b == 0);
        if is_subset(right, left) {
            return Some(left);
        }
        if is_subset(left, right) {
            return Some(right);
        }
        let row = self.add()?;
        for i in 0..self.words {
            self.bits[row * self.words + i] =
                self.bits[left * self.words + i] | self.bits[right * self.words + i];
        }
        Some(row)
    }

    fn add(&mut self) -> Option<usize> {
        let row = self.bits.len() / self.words;
        let len = self.bits.len() + self.words;
        (len as u64 <= self.limit).then(|| {
            self.bits.resize(len, 0);
            row
        })
    }

    fn too_many(&self) -> Fault {
        Fault::Limit { what: "words of arrivals known", limit: self.limit }
    }
}
