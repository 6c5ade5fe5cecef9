//! Transfers: which message goes on which channel, and who sends it.
//!
//! In: the flow, keys. Out: [`Transfers`], sorted by channel, within a channel in the order in which its reader takes them.
//! The one hard idea: a value that another rank reads is sent by the step that makes it, if it exists there as exactly the
//! cells that are read, and if the channel's order allows: messages must be sent in the order in which they are
//! taken. Else a step of its own sends it, just before it is taken (or before its place is overwritten); or sooner, if it was there
//! from the beginning and would be in the way of one that is sent along.
//!
//! On a channel with several readers each message is as many transfers, one for each reader, neighbours in the list. The first of them,
//! whose reader comes first in T, stands for the message where it is sent.

use std::collections::VecDeque;

use plan::ids::RankId;

use super::keys::Keys;
use super::multicast::{self, Groups};
use crate::counting::counting_sort;
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

/// When a step of its own sends a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moved {
    pub(super) id: TransferId,
    pub(super) round: u32,
    /// The same as of [`Keys::at`].
    pub(super) when: u32,
}

/// A channel from one rank to another, or to several (multicast).
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    /// Whose it is.
    pub(super) from: RankId,
    /// Its first transfer.
    first: TransferId,
    /// Its messages carry no data.
    pub(super) counter: bool,
    /// How many ranks read it, at least 1.
    pub(super) readers: u32,
    /// The first of its readers' ends.
    pub(super) first_end: u32,
}

/// All of them.
pub(super) struct Transfers {
    pub(super) list: Vec<Transfer>,
    pub(super) links: Vec<Link>,
    /// How many readers' ends all channels have.
    pub(super) ends: u32,
    /// Of each operand of the flow: its transfer, if it comes from another rank.
    pub(super) of_operand: Vec<u32>,
    /// Those that a step of their own sends at another time than when the round begins in which they are taken; in order.
    pub(super) moved: Vec<Moved>,
    /// Some of them are entry values that a node hands on: these alone are made in the round in which they are taken.
    pub(super) hands_on: bool,
    /// Of each node: where those of `fused` that it sends start; one more entry at the end.
    starts: Vec<u32>,
    fused: Vec<TransferId>,
}

/// No transfer.
pub(super) const NONE: u32 = u32::MAX;

/// Transfers in the order of their channels, before it is known who sends them.
pub(super) struct Numbered {
    pub(super) list: Vec<Transfer>,
    pub(super) links: Vec<Link>,
    /// As in [`Transfers`].
    pub(super) of_operand: Vec<u32>,
    wishes: Vec<Wish>,
    /// Some of them are entry values that a node hands on.
    hands_on: bool,
}

impl Numbered {
    /// All transfers; those of one value to several ranks as one message on one channel if `multicast`.
    pub(super) fn new(flow: &Flow, keys: &Keys, multicast: bool) -> Numbered {
        let (wanted, hands_on, groups) = if multicast {
            let (wanted, hands_on) = collect(flow, keys, &keys.order);
            let groups = multicast::find(flow, keys, &wanted);
            (wanted, hands_on, groups)
        } else {
            let (wanted, hands_on) = collect(flow, keys, &keys.by_rank(flow));
            (wanted, hands_on, Groups::default())
        };
        let (list, links, wishes) = number(&wanted, &groups);
        drop(wanted);
        let mut of_operand = vec![NONE; flow.operands.len()];
        for (id, transfer) in (0..).zip(&list) {
            of_operand[transfer.operand as usize] = id;
        }
        Numbered { list, links, of_operand, wishes, hands_on }
    }

    /// Whether more messages are taken from some channel in one round than it has slots.
    pub(super) fn is_crowded(&self, slots: u32) -> bool {
        let (mut count, mut before) = (0, (NONE, 0));
        self.list.iter().zip(&self.wishes).any(|(transfer, wish)| {
            let here = (transfer.channel, wish.due);
            count = if here == before { count + 1 } else { 1 };
            before = here;
            count > slots && !self.links[transfer.channel as usize].counter
        })
    }

    /// By node: how many transfers carry its value.
    pub(super) fn count_by_maker(&self, nodes: usize) -> Vec<u32> {
        let mut count = vec![0; nodes];
        for wish in self.wishes.iter().filter(|wish| wish.maker != NONE) {
            count[wish.maker as usize] += 1;
        }
        count
    }

    /// The same transfers where nodes have been given other rounds.
    #[must_use]
    pub(super) fn in_rounds_of(mut self, flow: &Flow, keys: &Keys) -> Numbered {
        for (transfer, wish) in self.list.iter().zip(&mut self.wishes) {
            wish.due = due(flow, keys, transfer.operand, transfer.reader);
            if self.hands_on && wish.maker != NONE {
                wish.maker = maker(flow, keys, transfer.operand, transfer.reader);
            }
        }
        self
    }

    /// Says who sends each. With `room`, what is sent along never needs more slots than so many, were in each
    /// round all messages to be taken before any is sent.
    pub(super) fn decide(self, flow: &Flow, keys: &Keys, options: &Options, room: Option<u32>) -> Transfers {
        let Numbered { mut list, links, of_operand, wishes, hands_on } = self;
        let ends = links.last().map_or(0, |link: &Link| link.first_end + link.readers);
        let moved = decide(flow, keys, options, room, &mut list, &wishes);
        let (starts, fused) = by_maker(&list, &wishes, flow.nodes.len());
        Transfers { list, links, ends, of_operand, moved, hands_on, starts, fused }
    }
}

impl Transfers {
    /// What a node sends when it acts.
    pub(super) fn fused(&self, node: NodeId) -> &[TransferId] {
        let (start, end) = (self.starts[node.index()], self.starts[node.index() + 1]);
        &self.fused[start as usize..end as usize]
    }

    /// The rank that sends it.
    pub(super) fn from(&self, id: TransferId) -> RankId {
        self.link(id).from
    }

    /// Whether every channel has one reader: its end then has its number, and the channel need not be looked up.
    pub(super) fn plain(&self) -> bool {
        self.ends as usize == self.links.len()
    }

    fn link(&self, id: TransferId) -> &Link {
        &self.links[self.list[id.index()].channel as usize]
    }

    /// How many ranks take its message.
    pub(super) fn readers(&self, id: TransferId) -> u32 {
        if self.plain() { 1 } else { self.link(id).readers }
    }

    /// Which of them does.
    fn reader(&self, id: TransferId) -> u32 {
        if self.plain() { 0 } else { self.link(id).reader(id) }
    }

    /// The reader's end of its channel.
    pub(super) fn end(&self, id: TransferId) -> u32 {
        match self.plain() {
            true => self.list[id.index()].channel,
            false => self.link(id).first_end + self.reader(id),
        }
    }

    /// All transfers of the message that one of them is of: the first stands for it where it is sent.
    pub(super) fn message(&self, id: TransferId) -> impl Iterator<Item = TransferId> + use<> {
        let first = id.0 - self.reader(id);
        (first..first + self.readers(id)).map(TransferId)
    }

    /// The one that stands for a message.
    pub(super) fn sender(&self, id: TransferId) -> TransferId {
        TransferId(id.0 - self.reader(id))
    }

    /// Whether a transfer stands for its message.
    pub(super) fn leads(&self, id: TransferId) -> bool {
        self.sender(id) == id
    }
}

impl Link {
    /// Which of its readers takes a transfer.
    fn reader(&self, id: TransferId) -> u32 {
        if self.readers == 1 { 0 } else { (id.0 - self.first.0) % self.readers }
    }
}

/// What is known of a transfer before it has a channel: looked up while its operand is at hand, not later out of order.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) from: RankId,
    pub(super) to: RankId,
    pub(super) operand: u32,
    pub(super) reader: NodeId,
    /// From labels, and which of several that one step takes from one rank; the lowest bit: it carries no data.
    pub(super) lane: u32,
    pub(super) wish: Wish,
}

/// How it would best be sent.
#[derive(Clone, Copy)]
pub(super) struct Wish {
    /// Who could send it along; [`NONE`]: no one.
    pub(super) maker: u32,
    /// When a step of its own would send it.
    pub(super) due: u32,
}

/// All transfers in the order of their readers, and whether some are entry values that a node hands on.
fn collect(flow: &Flow, keys: &Keys, readers: &[NodeId]) -> (Vec<Wanted>, bool) {
    let mut hands_on = false;
    let (mut count, mut ranks) = (0, 0);
    for node in flow.nodes.iter().filter(|node| !node.gone) {
        for operand in flow.operands(node) {
            count += usize::from(operand.place.rank != node.rank);
            ranks = ranks.max(operand.place.rank.index() + 1);
        }
    }
    let mut list = Vec::with_capacity(count);
    // By rank: how many messages the step at hand takes from it.
    let mut taken = vec![0u32; ranks];
    for &reader in readers.iter().filter(|id| !flow.node(**id).gone) {
        let node = flow.node(reader);
        flow.operands(node).iter().for_each(|operand| taken[operand.place.rank.index()] = 0);
        for at in Flow::range(node) {
            let operand = &flow.operands[at];
            let from = operand.place.rank;
            if from == node.rank {
                continue;
            }
            // Several messages of one step from one rank take channels of their own.
            let lane = taken[from.index()];
            taken[from.index()] += 1;
            hands_on |= operand.entry() && operand.maker().is_some();
            list.push(Wanted {
                from,
                to: node.rank,
                operand: at as u32,
                reader,
                lane: (u32::from(node.lane) << 16 | lane.min(0xffff)) << 1 | u32::from(node.is_signal()),
                wish: Wish {
                    maker: maker(flow, keys, at as u32, reader),
                    due: due(flow, keys, at as u32, reader),
                },
            });
        }
    }
    (list, hands_on)
}

/// Who could send along what is taken. Who only hands on an entry value may come too late for that.
fn maker(flow: &Flow, keys: &Keys, operand: u32, reader: NodeId) -> u32 {
    let operand = &flow.operands[operand as usize];
    let in_time = |maker: &NodeId| !operand.entry() || keys.at(*maker) < keys.at(reader);
    operand.maker().filter(in_time).map_or(NONE, |NodeId(maker)| maker)
}

/// When a step of its own would send what is taken.
fn due(flow: &Flow, keys: &Keys, operand: u32, reader: NodeId) -> u32 {
    keys.round_start(flow.node(keys.due(flow, operand, reader)).round)
}

/// Sorts transfers by channel, and numbers channels and messages. Those of a rank go round from itself, so that ranks that do the same
/// have them in the same order; channels with several readers come last.
fn number(wanted: &[Wanted], groups: &Groups) -> (Vec<Transfer>, Vec<Link>, Vec<Wish>) {
    let mut sorted: Vec<u32> = (0..wanted.len() as u32).filter(|&id| !groups.has(id)).collect();
    let (to, lane) = (|id: &u32| wanted[*id as usize].to, |id: &u32| wanted[*id as usize].lane);
    if !sorted.is_sorted_by_key(to) {
        sorted = counting_sort(sorted, |id| to(&id).0);
    }
    for of_reader in sorted.chunk_by_mut(|a, b| to(a) == to(b)) {
        if !of_reader.is_sorted_by_key(lane) {
            of_reader.sort_by_key(lane);
        }
    }
    let mut sorted = counting_sort(sorted, |id| wanted[id as usize].from.0);
    let from = |id: &u32| wanted[*id as usize].from;
    for of_writer in sorted.chunk_by_mut(|a, b| from(a) == from(b)) {
        let before = of_writer.partition_point(|id| to(id) < from(id));
        of_writer.rotate_left(before);
    }
    let (mut list, mut links) = (Vec::with_capacity(wanted.len()), Vec::<Link>::new());
    let mut wishes = Vec::with_capacity(wanted.len());
    let mut put = |id: u32, channel: u32, number: u32| {
        let Wanted { operand, reader, wish, .. } = wanted[id as usize];
        list.push(Transfer { operand, reader, channel, number, sent: Sent::Fused });
        wishes.push(wish);
    };
    let mut known = None;
    let mut first = 0;
    for (at, &id) in (0..).zip(&sorted) {
        let Wanted { from, to, lane, .. } = wanted[id as usize];
        if known != Some((from, to, lane)) {
            let first_end = links.len() as u32;
            links.push(Link { from, first: TransferId(at), counter: lane & 1 == 1, readers: 1, first_end });
            (known, first) = (Some((from, to, lane)), at);
        }
        put(id, links.len() as u32 - 1, at - first);
    }
    let (mut end, mut first) = (links.len() as u32, sorted.len() as u32);
    for (readers, transfers) in groups.channels() {
        let channel = links.len() as u32;
        let Some(&leader) = transfers.first() else { continue };
        links.push(Link {
            from: wanted[leader as usize].from,
            first: TransferId(first),
            counter: false,
            readers: readers as u32,
            first_end: end,
        });
        for (number, members) in (0..).zip(transfers.chunks(readers)) {
            members.iter().for_each(|&id| put(id, channel, number));
        }
        end += readers as u32;
        first += transfers.len() as u32;
    }
    (list, links, wishes)
}

/// Who sends each: channel by channel, in the order in which messages are taken. With `room`, what is sent along has room
/// in so many slots. Out: as [`Transfers::moved`].
fn decide(
    flow: &Flow,
    keys: &Keys,
    options: &Options,
    room: Option<u32>,
    list: &mut [Transfer],
    wishes: &[Wish],
) -> Vec<Moved> {
    let mut moved = Vec::new();
    let mut next = NextMade { at: 0, node: None };
    // When the message before is sent, and in which round, if not as it begins.
    let (mut last, mut within) = (0, NONE);
    let mut maker_before = NONE;
    let mut count = vec![0u32; flow.nodes.len()];
    let mut before = (NONE, NONE, Sent::Fused);
    let mut slots = room.map(Slots::new);
    for (at, wish) in wishes.iter().enumerate() {
        let transfer = list[at];
        if (transfer.channel, transfer.number) == (before.0, before.1) {
            // Another reader of the same message.
            list[at].sent = before.2;
            continue;
        }
        if transfer.number == 0 {
            (last, within, maker_before) = (0, NONE, NONE);
            slots.iter_mut().for_each(Slots::clear);
        }
        let cells = if slots.is_some() { flow.node(transfer.reader).width } else { 0 };
        let fused = options.fuse
            && wish.maker != NONE
            && wish.maker != maker_before
            && keys.at(NodeId(wish.maker)) > last
            && count[wish.maker as usize] < options.operands
            && slots.as_mut().is_none_or(|slots| slots.have_room(keys.at(NodeId(wish.maker)), cells));
        if let Some(slots) = &mut slots {
            slots.put(keys.round_start(flow.node(transfer.reader).round), cells);
        }
        maker_before = if fused { wish.maker } else { NONE };
        let id = TransferId(at as u32);
        let node_round = |node: NodeId| flow.node(node).round;
        let (sent, when, round) = if fused {
            count[wish.maker as usize] += 1;
            let maker = NodeId(wish.maker);
            (Sent::Fused, keys.at(maker), node_round(maker))
        } else if wish.due >= last {
            let operand = &flow.operands[transfer.operand as usize];
            let sooner = options.fuse && wish.maker == NONE && operand.may_be_sooner();
            let made = if sooner { next.after(at, list, wishes) } else { None };
            match made.filter(|&made| last < keys.at(made) && keys.at(made) < wish.due) {
                Some(made) => {
                    let (when, round) = (keys.before(made), node_round(made));
                    moved.push(Moved { id, round, when });
                    (Sent::Alone, when, round)
                }
                None => (Sent::Alone, wish.due, NONE),
            }
        } else if within == node_round(transfer.reader) && flow.special(transfer.operand as usize).is_none() {
            // Its place is as it was until the round is over.
            moved.push(Moved { id, round: within, when: last });
            (Sent::Alone, last, within)
        } else {
            (Sent::Aside, keys.before(transfer.reader), NONE)
        };
        list[at].sent = sent;
        (last, within) = (when, round);
        before = (transfer.channel, transfer.number, sent);
    }
    moved
}

/// Which node makes the next value of a channel that is made at all, found once for all messages before it.
struct NextMade {
    /// The message that carries it, or the first of another channel.
    at: usize,
    node: Option<NodeId>,
}

impl NextMade {
    fn after(&mut self, at: usize, list: &[Transfer], wishes: &[Wish]) -> Option<NodeId> {
        if self.at <= at {
            let more = list[at + 1..].iter().take_while(|next| next.channel == list[at].channel).count();
            let mut following = wishes[at + 1..][..more].iter();
            let made = following.position(|wish| wish.maker != NONE);
            self.at = at + 1 + made.unwrap_or(more);
            self.node = made.map(|_| NodeId(wishes[self.at].maker));
        }
        self.node
    }
}

/// What the slots of one channel hold, if in every round messages are first taken, then sent.
struct Slots {
    count: u32,
    held: u32,
    /// When the round begins in which each message in them is taken, and its cells; in order.
    messages: VecDeque<(u32, u32)>,
}

impl Slots {
    fn new(count: u32) -> Slots {
        Slots { count, held: 0, messages: VecDeque::new() }
    }

    fn clear(&mut self) {
        self.held = 0;
        self.messages.clear();
    }

    /// Whether so many cells have room at some time. (Those that never have go side by side with their reader.)
    fn have_room(&mut self, when: u32, cells: u32) -> bool {
        while let Some((_, cells)) = self.messages.pop_front_if(|&mut (taken, _)| taken < when) {
            self.held -= cells;
        }
        self.held == 0 || self.held + cells <= self.count
    }

    fn put(&mut self, taken: u32, cells: u32) {
        self.messages.push_back((taken, cells));
        self.held += cells;
    }
}

/// What each node sends along.
fn by_maker(list: &[Transfer], wishes: &[Wish], nodes: usize) -> (Vec<u32>, Vec<TransferId>) {
    // Of each message the transfer that stands for it.
    let leads = |at: usize| {
        let message = |transfer: &Transfer| (transfer.channel, transfer.number);
        at == 0 || message(&list[at - 1]) != message(&list[at])
    };
    let fused = || {
        let all = list.iter().zip(wishes).enumerate();
        all.filter(|(at, (transfer, _))| transfer.sent == Sent::Fused && leads(*at))
    };
    let mut starts = vec![0u32; nodes + 1];
    for (_, (_, wish)) in fused() {
        starts[wish.maker as usize + 1] += 1;
    }
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    let mut next = starts.clone();
    let mut ids = vec![TransferId(0); starts.last().map_or(0, |&n| n as usize)];
    for (id, (_, wish)) in fused() {
        let at = &mut next[wish.maker as usize];
        ids[*at as usize] = TransferId(id as u32);
        *at += 1;
    }
    (starts, ids)
}
