//! What each rank is to do, before anyone has tried.
//!
//! In: flow, keys, transfers. Out: the [`Agenda`]: every rank's events in order of T. Send steps come at the start of the
//! round in which their message is taken, before what is made in that round: so all ranks send before they wait, as in an
//! exchange, and no rank's send waits for what it receives in the same round. (Some go at another time: `Transfers::moved`.)

use plan::ids::RankId;

use super::keys::Keys;
use super::transfers::{NONE, Sent, TransferId, Transfers};
use crate::flow::{Flow, NodeId};

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

/// Events of all ranks: those of rank r are `events[starts[r]..starts[r + 1]]`.
pub(super) struct Agenda {
    pub(super) events: Vec<Event>,
    /// The round of each.
    pub(super) rounds: Vec<u32>,
    pub(super) starts: Vec<u32>,
}

impl Agenda {
    /// Sorts the events of each rank.
    pub(super) fn new(flow: &Flow, keys: &Keys, transfers: &Transfers, ranks: u32) -> Agenda {
        let mut made = keys.by_rank(flow);
        made.retain(|id| !flow.node(*id).gone);
        let reads = reads(flow, keys, transfers);
        let count = made.len() + reads.len();
        let mut agenda =
            Agenda { events: Vec::with_capacity(count), rounds: Vec::with_capacity(count), starts: vec![0] };
        let mut reads = reads.chunk_by(|a, b| a.rank == b.rank).peekable();
        let mut made = made.chunk_by(|a, b| flow.node(*a).rank == flow.node(*b).rank).peekable();
        let mut sorted: Vec<Read> = Vec::new();
        for rank in (0..ranks).map(RankId) {
            // Those of one round in the order of their readers.
            sorted.clear();
            let of_rank = reads.next_if(|of_rank| of_rank[0].rank == rank).unwrap_or_default();
            sorted.extend(of_rank);
            sorted.sort_unstable_by_key(|read| (read.when, read.reader, read.operand));
            let mut sorted = sorted.iter().peekable();
            for &id in made.next_if(|of_rank| flow.node(of_rank[0]).rank == rank).unwrap_or_default() {
                while let Some(read) = sorted.next_if(|read| read.when <= keys.before(id)) {
                    agenda.put(read.event, read.round);
                }
                agenda.put(Event::Make(id), flow.node(id).round);
            }
            sorted.for_each(|read| agenda.put(read.event, read.round));
            agenda.starts.push(agenda.events.len() as u32);
        }
        agenda
    }

    fn put(&mut self, event: Event, round: u32) {
        self.events.push(event);
        self.rounds.push(round);
    }
}

/// Something that a rank reads from memory for a step to come.
#[derive(Clone, Copy)]
struct Read {
    rank: RankId,
    /// In which it is read, and when.
    round: u32,
    when: u32,
    /// Who reads it: the place in T, and which of its operands it is.
    reader: u32,
    operand: u32,
    event: Event,
}

/// Sends and saves, rank by rank.
fn reads(flow: &Flow, keys: &Keys, transfers: &Transfers) -> Vec<Read> {
    let read = |rank, operand: u32, reader, due: NodeId, event| Read {
        rank,
        round: flow.node(due).round,
        when: keys.round_start(flow.node(due).round),
        reader: keys.at(reader),
        operand,
        event,
    };
    let mut reads = Vec::new();
    let mut moved = transfers.moved.iter().peekable();
    for (id, transfer) in (0..).map(TransferId).zip(&transfers.list) {
        let event = match transfer.sent {
            _ if !transfers.leads(id) => continue,
            Sent::Alone => Event::Send(id),
            Sent::Aside => Event::Aside(id),
            Sent::Fused | Sent::Later { .. } => continue,
        };
        let due = keys.due(flow, transfer.operand, transfer.reader);
        let mut read = read(transfers.from(id), transfer.operand, transfer.reader, due, event);
        if let Some(moved) = moved.next_if(|moved| moved.id == id) {
            (read.round, read.when) = (moved.round, moved.when);
        }
        reads.push(read);
    }
    let saved = (0..flow.nodes.len() as u32).map(NodeId).filter(|id| flow.guarded && !flow.node(*id).gone);
    for id in saved {
        let node = flow.node(id);
        for at in Flow::range(node).filter(|&at| transfers.of_operand[at] == NONE) {
            let due = keys.due(flow, at as u32, id);
            if flow.special(at).guard == Some(due) {
                // The place is overwritten in the same `step`, by a node that comes first.
                let event = Event::Save(id, (at - node.first as usize) as u16);
                reads.push(read(node.rank, at as u32, id, due, event));
            }
        }
    }
    if !reads.is_sorted_by_key(|read| read.rank) {
        reads.sort_by_key(|read| read.rank);
    }
    reads
}
