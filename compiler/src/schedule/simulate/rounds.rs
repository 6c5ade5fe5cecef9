//! The rounds of a rank: what of one is still open, and when the next begins.
//!
//! In: events that are done, put off, split off. Out: which round each rank is in, and which places events of it have yet to
//! read before others of the same round overwrite them (guards).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

use super::{Lack, Rank, Simulation};
use crate::flow::Flow;
use crate::schedule::agenda::{Agenda, Event};
use crate::schedule::transfers::Sent;

impl Rank {
    /// Before its first round.
    pub(super) fn new(planned: Range<u32>) -> Rank {
        let done = Vec::with_capacity(planned.len());
        Rank { round: 0, open: 0, guards: BTreeMap::new(), planned, later: BinaryHeap::new(), done }
    }
}

impl Simulation<'_> {
    /// The round in which an event of the agenda is done.
    pub(super) fn round(&self, event: Event) -> u32 {
        match event {
            Event::Make(node) => self.flow.node(node).round,
            Event::Send(id) | Event::Aside(id) => self.flow.node(self.due(id)).round,
            Event::Save(node, number) => {
                self.flow.node(self.keys.due(self.flow, self.saved(node, number), node)).round
            }
        }
    }

    /// When in T the place that it reads is overwritten by something of the same `step`.
    pub(super) fn guard(&self, event: Event) -> Option<u32> {
        if !self.flow.guarded {
            return None;
        }
        let operand = match event {
            Event::Make(id) => {
                let node = self.flow.node(id);
                // What is overwritten before the node acts was saved.
                let local = Flow::range(node).filter(|&at| self.flow.operands[at].place.rank == node.rank);
                let guards = local.filter_map(|at| self.flow.special(at).guard);
                let guards = guards.map(|guard| self.keys.at(guard));
                return guards.filter(|&guard| guard > self.keys.at(id)).min();
            }
            Event::Send(id) | Event::Aside(id) => self.transfers.list[id.index()].operand,
            Event::Save(node, number) => self.saved(node, number),
        };
        let aside = match event {
            Event::Send(id) => {
                matches!(self.transfers.list[id.index()].sent, Sent::Aside | Sent::Later { aside: true })
            }
            _ => false,
        };
        self.flow.special(operand as usize).guard.filter(|_| !aside).map(|guard| self.keys.at(guard))
    }

    /// One event less is open in the round of a rank.
    pub(super) fn close(&mut self, rank: usize, guard: Option<u32>) {
        let state = &mut self.ranks[rank];
        state.open -= 1;
        let mut free = false;
        if let Some(guard) = guard
            && let Some(count) = state.guards.get_mut(&guard)
        {
            *count -= 1;
            if *count == 0 {
                state.guards.remove(&guard);
                free = true;
            }
        }
        if state.open == 0 {
            self.next_round(rank);
        } else if free {
            self.wake_rank(rank);
        }
    }

    /// One event more.
    pub(super) fn open(&mut self, rank: usize, event: Event) {
        let guard = self.guard(event);
        let state = &mut self.ranks[rank];
        state.open += 1;
        if let Some(guard) = guard {
            *state.guards.entry(guard).or_insert(0) += 1;
        }
    }

    pub(super) fn next_round(&mut self, rank: usize) {
        let state = &self.ranks[rank];
        let Agenda { events, rounds, .. } = self.agenda;
        let planned = state.planned.clone().next().map(|at| rounds[at as usize]);
        let later = state.later.peek().map(|&Reverse((round, _))| round);
        let Some(round) = planned.into_iter().chain(later).min() else { return };
        self.ranks[rank].round = round;
        while let Some(at) = self.ranks[rank].planned.clone().next()
            && rounds[at as usize] == round
        {
            self.ranks[rank].planned.start = at + 1;
            self.open(rank, events[at as usize]);
        }
        while let Some(&Reverse((later, id))) = self.ranks[rank].later.peek()
            && later == round
        {
            self.ranks[rank].later.pop();
            self.open(rank, Event::Send(id));
        }
        self.wake_rank(rank);
    }

    pub(super) fn wake_rank(&mut self, rank: usize) {
        for block in self.first_block[rank]..self.first_block[rank + 1] {
            self.wake(block, Lack::Round);
        }
    }
}
