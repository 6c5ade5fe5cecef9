//! When nothing can be done in the order planned: what of the same round can be done first.
//!
//! In: a simulation at rest. Out: blocks whose next event is stuck do a later one of the round they are in. Rounds keep what
//! conflicts in memory apart, so within one only channels have an order: an event overtakes none that uses an end of a
//! channel that it uses. So a rank that must pass on what comes from one neighbour, and has no room to, first takes what
//! comes from another one, that waits for the same.

use super::{Lack, Simulation};
use crate::flow::Flow;
use crate::schedule::agenda::Event;
use crate::schedule::transfers::{NONE, Sent, TransferId};

/// How many events are looked at; more would only cost time.
const AHEAD: usize = 64;

impl Simulation<'_> {
    /// Lets each block that is stuck do one event out of order; whether any could.
    pub(super) fn overtake(&mut self) -> bool {
        // All blocks at once: ranks that do the same then also change the same.
        let blocks = 0..self.blocks.len() as u32;
        let found: Vec<(u32, usize)> = blocks.filter_map(|block| Some((block, self.free(block)?))).collect();
        for &(block, at) in &found {
            let next = self.blocks[block as usize].next as usize;
            self.planned[next..=at].rotate_right(1);
            self.planned_rounds[next..=at].rotate_right(1);
            self.finish(block, self.planned[next], false);
            self.ready.push(block);
        }
        !found.is_empty()
    }

    /// The first planned event of a block after its next one that can be done now.
    fn free(&self, block: u32) -> Option<usize> {
        let state = &self.blocks[block as usize];
        if !matches!(state.lack, Some(Lack::Message(_) | Lack::Slot(_))) {
            return None;
        }
        let round = self.ranks[state.rank as usize].round;
        let mut used: Vec<u32> = Vec::new();
        let first = state.next as usize;
        let planned = first..state.end as usize;
        for at in planned.take(AHEAD).take_while(|&at| self.planned_rounds[at] <= round) {
            let event = self.planned[at];
            let before = used.len();
            self.ends(event, &mut used);
            let (earlier, own) = used.split_at(before);
            if at > first && !own.iter().any(|end| earlier.contains(end)) && self.can(block, event) {
                return Some(at);
            }
        }
        None
    }

    /// Whether an event can be done as planned, when none before it on its channels is open in the plan.
    fn can(&self, block: u32, event: Event) -> bool {
        let sends = |id: TransferId| {
            let transfer = &self.transfers.list[id.index()];
            self.channels[transfer.channel as usize].sent == transfer.number && self.has_room(id)
        };
        let goes = match event {
            Event::Send(id) => sends(id),
            Event::Aside(_) | Event::Save(..) => true,
            Event::Make(node) => {
                let came = |id: u32| {
                    let transfer = &self.transfers.list[id as usize];
                    self.channels[transfer.channel as usize].sent > transfer.number
                };
                let mut taken = Flow::range(self.flow.node(node)).map(|at| self.transfers.of_operand[at]);
                let mut along = self.transfers.fused(node).iter();
                taken.all(|id| id == NONE || came(id))
                    && along.all(|id| self.transfers.list[id.index()].sent != Sent::Fused || sends(*id))
            }
        };
        goes && self.is_due(block, event, false)
    }

    /// The ends of channels that an event uses: 2c is the sending one of channel c.
    fn ends(&self, event: Event, ends: &mut Vec<u32>) {
        let channel = |id: TransferId| self.transfers.list[id.index()].channel;
        match event {
            Event::Send(id) | Event::Aside(id) => ends.push(2 * channel(id)),
            Event::Save(..) => {}
            Event::Make(node) => {
                ends.extend(self.transfers.fused(node).iter().map(|&id| 2 * channel(id)));
                let taken = Flow::range(self.flow.node(node)).map(|at| self.transfers.of_operand[at]);
                ends.extend(taken.filter(|&id| id != NONE).map(|id| 2 * channel(TransferId(id)) + 1));
            }
        }
    }
}
