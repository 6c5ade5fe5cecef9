//! When nothing can be done: what is changed so that something can.
//!
//! In: a simulation at rest. Out: the event that comes first in T has its way cleared: sends that were planned early are put off,
//! and what a step would send along is split off it. Each does so once, so this ends.

use std::cmp::Reverse;

use super::{Next, Simulation};
use crate::flow::{Flow, NodeId};
use crate::schedule::agenda::Event;
use crate::schedule::transfers::{NONE, Sent, TransferId};

impl Simulation<'_> {
    /// Lets the event that comes first in T go.
    pub(super) fn unblock(&mut self) -> Next {
        // All ranks at once: those that do the same then also change the same.
        let mut first: Vec<(u32, u32)> = Vec::new();
        for rank in 0..self.ranks.len() {
            let blocks = self.first_block[rank]..self.first_block[rank + 1];
            let heads = blocks.filter_map(|block| {
                let (event, later, at) = self.head(block)?;
                Some((if later { at } else { self.at(event) }, block))
            });
            first.extend(heads.min());
        }
        if first.is_empty() {
            return Next::End;
        }
        first.sort_unstable();
        let mut any = false;
        for (_, block) in first {
            any |= self.clear_the_way(block);
        }
        if !any {
            // What stands in the way is not plain to see: everything planned early is put off.
            for block in 0..self.blocks.len() as u32 {
                any |= self.put_off_head(block);
            }
        }
        // Messages that fit their channels always go in the end, see above.
        if any { Next::More } else { Next::TooWide }
    }

    /// Puts off, or splits off, what keeps the next event of a block from being done; whether there is such a thing.
    pub(super) fn clear_the_way(&mut self, block: u32) -> bool {
        let Some((event, later, _)) = self.head(block) else { return false };
        let mut changed = false;
        let rank = self.blocks[block as usize].rank as usize;
        if !self.is_due(block, event, later) {
            for block in self.first_block[rank]..self.first_block[rank + 1] {
                changed |= self.put_off_head(block);
            }
            return changed;
        }
        match event {
            Event::Send(id) => {
                for id in self.transfers.message(id) {
                    let reader = self.transfers.list[id.index()].reader;
                    let theirs = self.reader_of[self.transfers.end(id) as usize];
                    let off = self.put_off_head(theirs);
                    changed |= off;
                    if !off && matches!(self.head(theirs), Some((Event::Make(node), ..)) if node == reader) {
                        changed |= self.split_what_lacks_room(reader);
                    }
                }
            }
            Event::Make(node) => {
                for at in Flow::range(self.flow.node(node)) {
                    let transfer = self.transfers.of_operand[at];
                    if transfer != NONE {
                        let theirs = self.transfers.list[transfer as usize].channel;
                        let theirs = self.channels[theirs as usize].writer;
                        let sender = self.transfers.sender(TransferId(transfer));
                        let sends = matches!(self.head(theirs), Some((Event::Send(id), ..)) if id == sender);
                        changed |= !sends && self.put_off_head(theirs);
                    }
                }
                changed = changed || self.split_what_lacks_room(node);
            }
            Event::Aside(_) | Event::Save(..) => {}
        }
        changed
    }

    /// Puts off the next event of a block's plan, if it is a send whose time has come; whether it was.
    pub(super) fn put_off_head(&mut self, block: u32) -> bool {
        let state = &self.blocks[block as usize];
        let planned = (state.next < state.end).then(|| self.planned[state.next as usize]);
        let Some(event @ Event::Send(id)) = planned else { return false };
        let due = self.is_due(block, event, false);
        if due {
            self.put_off(block, id);
        }
        due
    }

    /// A planned send is done just before it is taken, from where it lies or from a copy made now.
    pub(super) fn put_off(&mut self, block: u32, id: TransferId) {
        let reader = self.transfers.list[id.index()].reader;
        let moved = self.due(id) != reader;
        self.ready.push(block);
        let state = &mut self.blocks[block as usize];
        if moved {
            let next = state.next as usize;
            self.planned[next] = Event::Aside(id);
            self.transfers.list[id.index()].sent = Sent::Aside;
            return;
        }
        state.next += 1;
        let rank = state.rank as usize;
        // It was counted in the round it was planned for, and is again.
        self.later(block, id);
        self.close(rank, self.guard(Event::Send(id)));
    }

    pub(super) fn later(&mut self, block: u32, id: TransferId) {
        let reader = self.transfers.list[id.index()].reader;
        let (due, round) = (self.keys.before(reader), self.flow.node(reader).round);
        let state = &mut self.blocks[block as usize];
        state.later.push(Reverse((due, id)));
        let rank = state.rank as usize;
        match round <= self.ranks[rank].round {
            true => self.open(rank, Event::Send(id)),
            false => self.ranks[rank].later.push(Reverse((round, id))),
        }
    }

    pub(super) fn split_what_lacks_room(&mut self, node: NodeId) -> bool {
        let mut changed = false;
        for at in 0..self.transfers.fused(node).len() {
            let id = self.transfers.fused(node)[at];
            if self.transfers.list[id.index()].sent == Sent::Fused && !self.has_room(id) {
                self.split(id);
                changed = true;
            }
        }
        changed
    }

    /// The maker keeps what it would have sent along; it goes just before it is taken.
    pub(super) fn split(&mut self, id: TransferId) {
        let transfer = self.transfers.list[id.index()];
        let aside = self.due(id) != transfer.reader;
        self.transfers.list[id.index()].sent = Sent::Later { aside };
        self.ready.push(self.channels[transfer.channel as usize].writer);
        self.later(self.channels[transfer.channel as usize].writer, id);
    }
}
