//! The run that proves the order: every rank does its events in order of T, with so many slots per channel.
//!
//! In: flow, keys, transfers. Out: what each rank does, in order; transfers that could not be fused are changed. The
//! one hard idea: when nothing can act, the event with the least T is a step that lacks a free slot for something it sends along.
//! (What it takes has been sent: senders come earlier in T. What a send step of its own lacks a slot for is taken
//! earlier in T than it acts, unless it acts early.) That transfer is split off: kept by the step, sent just before it
//! is taken; then it is always free to go. So the run ends, with any number of slots; and since an execution exists, the graph of D
//! (docs/plan.md §4) is acyclic for it, whatever blocks the events are then given to: their order within a rank only gets looser.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plan::ids::RankId;

use super::keys::Keys;
use super::transfers::{NONE, Sent, TransferId, Transfers};
use crate::flow::{Flow, NodeId};
use crate::options::Options;

/// What a rank does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// Takes, folds, stores and sends along.
    Make(NodeId),
    /// Sends from memory.
    Send(TransferId),
    /// Copies what is to be sent into scratch.
    Aside(TransferId),
    /// Copies an operand of its own (the number among the reader's) into scratch, since its place is overwritten before
    /// it is read.
    Save(NodeId, u16),
}

/// What all ranks do: those of rank r are `events[starts[r]..starts[r + 1]]`.
pub(super) struct Run {
    pub(super) events: Vec<Event>,
    pub(super) starts: Vec<u32>,
}

/// Runs all ranks.
pub(super) fn simulate(
    flow: &Flow,
    keys: &Keys,
    transfers: &mut Transfers,
    options: &Options,
    ranks: u32,
) -> Run {
    let (planned, starts) = plan(flow, keys, transfers, ranks);
    let mut simulation = Simulation {
        flow,
        keys,
        slots: options.slots.max(1),
        ranks: starts.windows(2).map(|pair| Progress::new(pair[0], pair[1])).collect(),
        sent: vec![0; transfers.links.len()],
        taken: vec![0; transfers.links.len()],
        transfers,
        planned,
        ready: (0..ranks).rev().collect(),
    };
    loop {
        while let Some(rank) = simulation.ready.pop() {
            simulation.advance(rank as usize);
        }
        if !simulation.unblock() {
            break;
        }
    }
    let mut events = Vec::with_capacity(simulation.planned.len());
    let mut starts = vec![0];
    for rank in simulation.ranks {
        events.extend(rank.done);
        starts.push(events.len() as u32);
    }
    Run { events, starts }
}

/// The events of each rank in order, with their times.
fn plan(flow: &Flow, keys: &Keys, transfers: &Transfers, ranks: u32) -> (Vec<(u32, Event)>, Vec<u32>) {
    // What acts before its reader's time comes in between.
    let mut early: Vec<(u32, RankId, Event)> = Vec::new();
    let mut all: Vec<(u32, RankId, Event)> = Vec::with_capacity(keys.order.len());
    for (id, transfer) in (0..).map(TransferId).zip(&transfers.list) {
        match transfer.sent {
            Sent::Alone(at) if at != keys.before(transfer.reader) => {
                early.push((at, transfer.from, Event::Send(id)));
            }
            Sent::Aside(at) => early.push((at, transfer.from, Event::Aside(id))),
            _ => {}
        }
    }
    for id in flow.alive() {
        let node = flow.node(id);
        for at in Flow::range(node) {
            let operand = &flow.operands[at];
            let local = operand.place.rank == node.rank && !node.is_signal();
            if local && keys.before(operand.before) < keys.before(id) {
                let save = Event::Save(id, (at - node.first as usize) as u16);
                early.push((keys.before(operand.before), node.rank, save));
            }
        }
    }
    early.sort_by_key(|&(at, ..)| at);
    let mut early = early.into_iter().peekable();
    for &id in &keys.order {
        while let Some(event) = early.next_if(|&(at, ..)| at <= keys.before(id)) {
            all.push(event);
        }
        let node = flow.node(id);
        if node.gone {
            continue;
        }
        for at in Flow::range(node) {
            let transfer = transfers.of_operand[at];
            if transfer != NONE && transfers.list[transfer as usize].sent == Sent::Alone(keys.before(id)) {
                let from = transfers.list[transfer as usize].from;
                all.push((keys.before(id), from, Event::Send(TransferId(transfer))));
            }
        }
        all.push((keys.at(id), node.rank, Event::Make(id)));
    }
    // By rank, in the same order.
    let mut starts = vec![0u32; ranks as usize + 1];
    for (_, rank, _) in &all {
        starts[rank.index() + 1] += 1;
    }
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    let mut next = starts.clone();
    let mut planned = vec![(0, Event::Make(NodeId(0))); all.len()];
    for (at, rank, event) in all {
        let slot = &mut next[rank.index()];
        planned[*slot as usize] = (at, event);
        *slot += 1;
    }
    (planned, starts)
}

/// How far a rank has come.
struct Progress {
    next: u32,
    end: u32,
    /// What was split off, and when it is due.
    later: BinaryHeap<Reverse<(u32, TransferId)>>,
    lack: Option<Lack>,
    done: Vec<Event>,
}

impl Progress {
    fn new(next: u32, end: u32) -> Progress {
        let done = Vec::with_capacity((end - next) as usize);
        Progress { next, end, later: BinaryHeap::new(), lack: None, done }
    }
}

/// What a rank waits for, on which channel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lack {
    Message(u32),
    Slot(u32),
}

struct Simulation<'a> {
    flow: &'a Flow,
    keys: &'a Keys,
    transfers: &'a mut Transfers,
    planned: Vec<(u32, Event)>,
    slots: u32,
    ranks: Vec<Progress>,
    /// By channel.
    sent: Vec<u32>,
    taken: Vec<u32>,
    ready: Vec<u32>,
}

impl Simulation<'_> {
    fn advance(&mut self, rank: usize) {
        self.ranks[rank].lack = None;
        while let Some((_, event)) = self.head(rank) {
            let lack = match event {
                Event::Make(node) => self.make(node),
                Event::Send(transfer) if !self.is_next(transfer) && self.make_aside(rank, transfer) => {
                    continue;
                }
                Event::Send(transfer) => self.send(transfer),
                Event::Aside(transfer) => {
                    self.put_off(transfer);
                    None
                }
                Event::Save(..) => None,
            };
            if lack.is_some() {
                self.ranks[rank].lack = lack;
                return;
            }
            let progress = &mut self.ranks[rank];
            let split = progress.later.peek().is_some_and(|Reverse((_, id))| event == Event::Send(*id));
            match split {
                true => drop(progress.later.pop()),
                false => progress.next += 1,
            }
            progress.done.push(event);
        }
    }

    /// What comes next, and when it is due.
    fn head(&self, rank: usize) -> Option<(u32, Event)> {
        let progress = &self.ranks[rank];
        let planned = (progress.next < progress.end).then(|| self.planned[progress.next as usize]);
        let later = progress.later.peek().map(|&Reverse((at, id))| (at, Event::Send(id)));
        match (planned, later) {
            (Some(planned), Some(later)) if later.0 < planned.0 => Some(later),
            (Some(planned), _) => Some(planned),
            (None, later) => later,
        }
    }

    fn make(&mut self, id: NodeId) -> Option<Lack> {
        let range = Flow::range(self.flow.node(id));
        for at in range.clone() {
            let transfer = self.transfers.of_operand[at];
            if transfer != NONE {
                let transfer = &self.transfers.list[transfer as usize];
                if self.sent[transfer.channel as usize] <= transfer.number {
                    return Some(Lack::Message(transfer.channel));
                }
            }
        }
        for at in 0..self.transfers.fused(id).len() {
            let fused = self.transfers.fused(id)[at];
            let transfer = self.transfers.list[fused.index()];
            if transfer.sent != Sent::Fused {
                continue;
            }
            let sent = self.sent[transfer.channel as usize];
            if sent != transfer.number {
                // One before it was split off, and has to go first.
                self.split(fused);
            } else if self.is_full(transfer.channel) {
                return Some(Lack::Slot(transfer.channel));
            }
        }
        for at in range {
            let transfer = self.transfers.of_operand[at];
            if transfer != NONE {
                let Sending { channel, from } = self.sending(TransferId(transfer));
                self.taken[channel as usize] += 1;
                self.wake(from, Lack::Slot(channel));
            }
        }
        for at in 0..self.transfers.fused(id).len() {
            let fused = self.transfers.fused(id)[at];
            if self.transfers.list[fused.index()].sent == Sent::Fused {
                self.put(fused);
            }
        }
        None
    }

    /// Whether all messages before this one have been sent. If not, one was split off: what would go early has to wait.
    fn is_next(&self, id: TransferId) -> bool {
        let transfer = &self.transfers.list[id.index()];
        self.sent[transfer.channel as usize] == transfer.number
    }

    fn send(&mut self, id: TransferId) -> Option<Lack> {
        let transfer = self.transfers.list[id.index()];
        if self.is_full(transfer.channel) {
            return Some(Lack::Slot(transfer.channel));
        }
        self.put(id);
        None
    }

    /// Sends a message.
    fn put(&mut self, id: TransferId) {
        let transfer = self.transfers.list[id.index()];
        self.sent[transfer.channel as usize] += 1;
        let to = self.transfers.links[transfer.channel as usize].to;
        self.wake(to.0, Lack::Message(transfer.channel));
    }

    fn is_full(&self, channel: u32) -> bool {
        let link = self.transfers.links[channel as usize];
        !link.counter && self.sent[channel as usize] - self.taken[channel as usize] >= self.slots
    }

    fn sending(&self, id: TransferId) -> Sending {
        let transfer = &self.transfers.list[id.index()];
        Sending { channel: transfer.channel, from: transfer.from.0 }
    }

    fn wake(&mut self, rank: u32, lack: Lack) {
        let progress = &mut self.ranks[rank as usize];
        if progress.lack == Some(lack) {
            progress.lack = None;
            self.ready.push(rank);
        }
    }

    /// Lets the least event that lacks a slot go without what it cannot send; whether there was one.
    fn unblock(&mut self) -> bool {
        let heads = (0..self.ranks.len()).filter_map(|rank| Some((self.head(rank)?, rank)));
        let Some(((_, event), rank)) = heads.min_by_key(|&((at, _), _)| at) else { return false };
        let mut changed = false;
        match event {
            Event::Make(node) => {
                for at in 0..self.transfers.fused(node).len() {
                    let fused = self.transfers.fused(node)[at];
                    let transfer = self.transfers.list[fused.index()];
                    if transfer.sent == Sent::Fused && self.is_full(transfer.channel) {
                        self.split(fused);
                        changed = true;
                    }
                }
            }
            Event::Send(id) => changed = self.make_aside(rank, id),
            Event::Aside(_) | Event::Save(..) => {}
        }
        if !changed {
            // Cannot be, see above; were it so, more slots would end it.
            debug_assert!(changed, "nothing can act, and no slot is lacking");
            self.slots += 1;
        }
        self.ready.push(rank as u32);
        true
    }

    /// The maker keeps what it would have sent; it goes just before it is taken.
    fn split(&mut self, id: TransferId) {
        let transfer = self.transfers.list[id.index()];
        let operand = &self.flow.operands[transfer.operand as usize];
        let aside = self.keys.before(operand.before) < self.keys.before(transfer.reader);
        self.transfers.list[id.index()].sent = Sent::Later { aside };
        self.put_off(id);
    }

    fn put_off(&mut self, id: TransferId) {
        let transfer = self.transfers.list[id.index()];
        let due = self.keys.before(transfer.reader);
        self.ranks[transfer.from.index()].later.push(Reverse((due, id)));
    }

    /// An early send that is next becomes a copy aside; whether it was one.
    fn make_aside(&mut self, rank: usize, id: TransferId) -> bool {
        let transfer = &mut self.transfers.list[id.index()];
        let Sent::Alone(at) = transfer.sent else { return false };
        transfer.sent = Sent::Aside(at);
        let next = self.ranks[rank].next as usize;
        self.planned[next].1 = Event::Aside(id);
        true
    }
}

/// Where a message goes, and whose it is.
struct Sending {
    channel: u32,
    from: u32,
}
