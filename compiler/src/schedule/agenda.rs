//! What each rank is to do, before anyone has tried.
//!
//! In: flow, keys, transfers. Out: the [`Agenda`]: every rank's events in order of T. Send steps come at the start of the
//! round in which their message is taken, before what is made in that round: so all ranks send before they wait, as in an
//! exchange, and no rank's send waits for what it receives in the same round.

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
    pub(super) starts: Vec<u32>,
}

impl Agenda {
    /// Sorts the events of each rank.
    pub(super) fn new(flow: &Flow, keys: &Keys, transfers: &Transfers, ranks: u32) -> Agenda {
        // Sends and saves, by the round they belong to; those of one round in the order of their readers.
        let mut reads: Vec<(u32, RankId, Event)> = Vec::new();
        for &id in keys.order.iter().filter(|id| !flow.node(**id).gone) {
            let node = flow.node(id);
            for at in Flow::range(node) {
                let due = keys.due(flow, at as u32, id);
                let round = flow.node(due).round;
                let transfer = transfers.of_operand[at];
                if transfer != NONE {
                    let id = TransferId(transfer);
                    if !transfers.leads(id) {
                        continue;
                    }
                    let transfer = &transfers.list[id.index()];
                    match transfer.sent {
                        Sent::Alone => reads.push((round, transfer.from, Event::Send(id))),
                        Sent::Aside => reads.push((round, transfer.from, Event::Aside(id))),
                        Sent::Fused | Sent::Later { .. } => {}
                    }
                } else if flow.special(at).guard == Some(due) {
                    // The place is overwritten in the same `step`, by a node that comes first.
                    let save = Event::Save(id, (at - node.first as usize) as u16);
                    reads.push((round, node.rank, save));
                }
            }
        }
        reads.sort_by_key(|&(round, ..)| round);
        let mut starts = vec![0u32; ranks as usize + 1];
        let made = || keys.order.iter().filter(|id| !flow.node(**id).gone);
        for rank in reads.iter().map(|&(_, rank, _)| rank).chain(made().map(|id| flow.node(*id).rank)) {
            starts[rank.index() + 1] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        let mut events = vec![Event::Make(NodeId(0)); starts.last().map_or(0, |&n| n as usize)];
        let mut put = |rank: RankId, event| {
            let slot = &mut next[rank.index()];
            events[*slot as usize] = event;
            *slot += 1;
        };
        let mut reads = reads.into_iter().peekable();
        for &id in made() {
            let node = flow.node(id);
            while let Some((_, rank, event)) = reads.next_if(|&(round, ..)| round <= node.round) {
                put(rank, event);
            }
            put(node.rank, Event::Make(id));
        }
        Agenda { events, starts }
    }
}
