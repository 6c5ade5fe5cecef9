//! Gangs: events that can only be done side by side.
//!
//! In: a block whose next event sends more cells than its channel has room for. Out: all events that must go with it, done, if
//! each is the next of its block; else nothing. A reader must be about to take what there is no room for, and a sender about to send what a reader
//! lacks. Cell by cell they then go through, so that a message of any width needs one slot.

use super::{Lack, Simulation};
use crate::flow::Flow;
use crate::schedule::agenda::Event;
use crate::schedule::transfers::{NONE, Sent, TransferId};

impl Simulation<'_> {
    /// Looks for gangs among all blocks that lack slots; whether there was one.
    pub(super) fn gangs(&mut self) -> bool {
        let mut short = std::mem::take(&mut self.short);
        short.sort_unstable();
        short.dedup();
        let mut any = false;
        short.retain(|&block| {
            let lacks = |of: &Self| matches!(of.blocks[block as usize].lack, Some(Lack::Slot(_)));
            any |= lacks(self) && self.try_gang(block);
            lacks(self)
        });
        self.short = short;
        any
    }

    /// Does the next event of a block with all others that must go side by side with it; whether that can be.
    pub(super) fn try_gang(&mut self, block: u32) -> bool {
        let mut gang = std::mem::take(&mut self.gang);
        gang.clear();
        gang.push(block);
        let mut next = 0;
        let mut good = true;
        while good && next < gang.len() {
            good = self.enlist(gang[next], &mut gang);
            next += 1;
        }
        if good {
            // Senders before readers, that is, in the order of T.
            let mut heads: Vec<(u32, u32)> = gang
                .iter()
                .filter_map(|&block| {
                    self.head(block)
                        .map(|(event, later, at)| (if later { at } else { self.at(event) }, block))
                })
                .collect();
            heads.sort_unstable();
            for (_, block) in heads {
                if let Some((event, later, _)) = self.head(block) {
                    self.finish(block, event, later);
                }
            }
            self.ready.extend(&gang);
        }
        self.gang = gang;
        good
    }

    /// Adds the blocks whose next events must go with that of `block`; false if some are not ready to.
    pub(super) fn enlist(&self, block: u32, gang: &mut Vec<u32>) -> bool {
        let Some((event, later, _)) = self.head(block) else { return false };
        if !self.is_due(block, event, later) {
            return false;
        }
        let mut add = |block: u32| {
            if !gang.contains(&block) {
                gang.push(block);
            }
        };
        let sends = |block: u32, id: TransferId| match self.head(block) {
            Some((Event::Send(other), ..)) => other == id,
            Some((Event::Make(node), ..)) => {
                self.transfers.fused(node).contains(&id)
                    && self.transfers.list[id.index()].sent == Sent::Fused
            }
            _ => false,
        };
        let reader = |id: TransferId| self.transfers.list[id.index()].reader;
        let mut room = |id: TransferId| {
            let transfer = &self.transfers.list[id.index()];
            if self.channels[transfer.channel as usize].sent != transfer.number {
                return false;
            }
            if self.has_room(id) {
                return true;
            }
            // All its readers must.
            self.transfers.message(id).all(|id| {
                let theirs = self.reader_of[self.transfers.end(id) as usize];
                let about = matches!(self.head(theirs), Some((Event::Make(node), ..)) if node == reader(id));
                if about {
                    add(theirs);
                }
                about
            })
        };
        match event {
            Event::Send(id) => return room(id),
            Event::Aside(_) | Event::Save(..) => return true,
            Event::Make(node) => {
                let along = self.transfers.fused(node).iter();
                let mut along = along.filter(|id| self.transfers.list[id.index()].sent == Sent::Fused);
                if !along.all(|&id| room(id)) {
                    return false;
                }
            }
        }
        let Event::Make(node) = event else { return true };
        for at in Flow::range(self.flow.node(node)) {
            let transfer = self.transfers.of_operand[at];
            if transfer == NONE {
                continue;
            }
            let (id, transfer) = (TransferId(transfer), &self.transfers.list[transfer as usize]);
            if self.channels[transfer.channel as usize].sent > transfer.number {
                continue;
            }
            let theirs = self.channels[transfer.channel as usize].writer;
            if self.channels[transfer.channel as usize].sent != transfer.number
                || !sends(theirs, self.transfers.sender(id))
            {
                return false;
            }
            add(theirs);
        }
        true
    }
}
