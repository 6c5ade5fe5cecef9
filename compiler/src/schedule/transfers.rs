//! Transfers: which message goes on which channel, and who sends it.
//!
//! In: the flow, keys. Out: [`Transfers`], sorted by channel, within a channel in the order in which its reader takes them.
//! The one hard idea: a value that another rank reads is sent by the step that makes it, if it exists there as exactly the
//! cells that are read, and if the channel's order allows: messages must be sent in the order in which they are
//! taken. Else a step of its own sends it, just before it is taken (or before its place is overwritten).

use plan::ids::RankId;

use super::keys::{Keys, counting_sort};
use crate::flow::{Flow, NodeId};
use crate::options::Options;

/// Index of a [`Transfer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TransferId(pub(super) u32);

impl TransferId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A value that one rank sends and another takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transfer {
    pub(super) from: RankId,
    /// Index into [`Flow::operands`].
    pub(super) operand: u32,
    pub(super) reader: NodeId,
    pub(super) channel: u32,
    /// Its number on the channel.
    pub(super) number: u32,
    pub(super) sent: Sent,
}

/// How it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// By the step that makes it.
    Fused,
    /// By a step of its own, in the round in which it is taken (or in which its place is overwritten).
    Alone,
    /// It is put aside in that round, and sent just before it is taken.
    Aside,
    /// The step that makes it keeps it (aside, if its home is overwritten too early), and it is sent just before it is taken.
    Later {
        /// Whether it is kept aside.
        aside: bool,
    },
}

/// A channel between two ranks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    /// Its messages carry no data.
    pub(super) counter: bool,
}

/// All of them.
pub(super) struct Transfers {
    pub(super) list: Vec<Transfer>,
    pub(super) links: Vec<Link>,
    /// Of each operand of the flow: its transfer, if it comes from another rank.
    pub(super) of_operand: Vec<u32>,
    /// Of each node: where those of `fused` that it sends start; one more entry at the end.
    starts: Vec<u32>,
    fused: Vec<TransferId>,
}

/// No transfer.
pub(super) const NONE: u32 = u32::MAX;

impl Transfers {
    pub(super) fn new(flow: &Flow, keys: &Keys, options: &Options) -> Transfers {
        let (mut list, lanes) = collect(flow, keys);
        let links = number(flow, &mut list, &lanes);
        decide(flow, keys, options, &mut list);
        let mut of_operand = vec![NONE; flow.operands.len()];
        for (id, transfer) in (0..).zip(&list) {
            of_operand[transfer.operand as usize] = id;
        }
        let (starts, fused) = by_maker(flow, &list);
        Transfers { list, links, of_operand, starts, fused }
    }

    /// What a node sends when it acts.
    pub(super) fn fused(&self, node: NodeId) -> &[TransferId] {
        let (start, end) = (self.starts[node.index()], self.starts[node.index() + 1]);
        &self.fused[start as usize..end as usize]
    }
}

/// All transfers in the order of their readers, and the lane of each.
fn collect(flow: &Flow, keys: &Keys) -> (Vec<Transfer>, Vec<u32>) {
    let (mut list, mut lanes) = (Vec::new(), Vec::new());
    for &reader in keys.order.iter().filter(|id| !flow.node(**id).gone) {
        let node = flow.node(reader);
        let operands = Flow::range(node);
        for at in operands.clone() {
            let from = flow.operands[at].place.rank;
            if from == node.rank {
                continue;
            }
            // Several messages of one step from one rank take channels of their own.
            let same = |&at: &usize| flow.operands[at].place.rank == from;
            let lane = (operands.start..at).filter(same).count() as u32;
            let sent = Sent::Fused;
            list.push(Transfer { from, operand: at as u32, reader, channel: 0, number: 0, sent });
            lanes.push((u32::from(node.lane) << 16 | lane.min(0xffff)) << 1 | u32::from(node.is_signal()));
        }
    }
    (list, lanes)
}

/// Sorts transfers by channel, and numbers channels and messages.
fn number(flow: &Flow, list: &mut Vec<Transfer>, lanes: &[u32]) -> Vec<Link> {
    let to = |t: &Transfer| flow.node(t.reader).rank;
    let all = 0..list.len() as u32;
    let sorted = match lanes.iter().any(|&lane| lane != 0) {
        true => {
            let mut sorted: Vec<u32> = all.collect();
            sorted.sort_by_key(|&id| lanes[id as usize]);
            sorted
        }
        false => all.collect(),
    };
    let sorted = counting_sort(sorted, |id| to(&list[id as usize]).0);
    let sorted = counting_sort(sorted, |id| list[id as usize].from.0);
    let mut links: Vec<Link> = Vec::new();
    let mut known = (0, 0, 0);
    let mut numbered = Vec::with_capacity(list.len());
    let mut count = 0;
    for id in sorted {
        let transfer = list[id as usize];
        let (to, lane) = (to(&transfer), lanes[id as usize]);
        let key = (transfer.from.0, to.0, lane);
        if links.is_empty() || key != known {
            links.push(Link { counter: lane & 1 == 1 });
            (known, count) = (key, 0);
        }
        numbered.push(Transfer { channel: links.len() as u32 - 1, number: count, ..transfer });
        count += 1;
    }
    *list = numbered;
    links
}

/// Who sends each: channel by channel, in the order in which messages are taken.
fn decide(flow: &Flow, keys: &Keys, options: &Options, list: &mut [Transfer]) {
    let mut last = 0;
    let mut maker_before = None;
    let mut count = vec![0u32; flow.nodes.len()];
    for transfer in list {
        let operand = &flow.operands[transfer.operand as usize];
        if transfer.number == 0 {
            (last, maker_before) = (0, None);
        }
        let due = keys.round_start(flow.node(keys.due(flow, transfer.operand, transfer.reader)).round);
        let fusing = |maker: &NodeId| {
            let room = count[maker.index()] < options.operands;
            options.fuse && room && maker_before != Some(*maker) && keys.at(*maker) > last
        };
        let fused = operand.maker().filter(fusing);
        if let Some(maker) = fused {
            count[maker.index()] += 1;
        }
        (transfer.sent, last) = match fused {
            Some(maker) => (Sent::Fused, keys.at(maker)),
            None if due >= last => (Sent::Alone, due),
            None => (Sent::Aside, keys.before(transfer.reader)),
        };
        maker_before = fused;
    }
}

fn by_maker(flow: &Flow, list: &[Transfer]) -> (Vec<u32>, Vec<TransferId>) {
    let maker = |t: &Transfer| match t.sent {
        Sent::Fused => flow.operands[t.operand as usize].maker(),
        _ => None,
    };
    let mut starts = vec![0u32; flow.nodes.len() + 1];
    for maker in list.iter().filter_map(maker) {
        starts[maker.index() + 1] += 1;
    }
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    let mut next = starts.clone();
    let mut fused = vec![TransferId(0); starts.last().map_or(0, |&n| n as usize)];
    for (id, maker) in list.iter().enumerate().filter_map(|(id, t)| Some((id, maker(t)?))) {
        let at = &mut next[maker.index()];
        fused[*at as usize] = TransferId(id as u32);
        *at += 1;
    }
    (starts, fused)
}
