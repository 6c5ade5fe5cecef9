//! What an event needs, and when that is there.
//!
//! In: the state of a simulation, an actor. Out: the time at which it can act and what it will have waited for last;
//! nothing if that is not known yet, because something it needs has not been sent, taken or done so far. Nobody but the
//! actor uses up what it needs, so a time once known stays true.

use std::cmp::Reverse;

use plan::plan::Section;

use super::super::program::{End, NONE};
use super::super::work::Time;
use super::{Actor, Phase, Simulation, Why};

impl Simulation<'_> {
    /// Queues a blocked actor if it is known when it can act.
    pub(super) fn consider(&mut self, index: usize) {
        if self.actors[index].phase != Phase::Blocked {
            return;
        }
        let Some((ready, why, from)) = self.ready(index) else { return };
        let actor = &mut self.actors[index];
        (actor.phase, actor.ready, actor.why, actor.from) = (Phase::Queued, ready, why, from);
        self.heap.push(Reverse((ready, index as u32)));
    }

    fn ready(&self, index: usize) -> Option<(Time, Why, u32)> {
        let Actor { step: id, micro, iteration, free, last, section, .. } = self.actors[index];
        let program = self.program;
        let plan = program.plan();
        let copy = index / self.blocks;
        let step = &plan.steps[id as usize];
        let mut known = (free, Why::Order, last);
        let mut later = |at: Time, why: Why, by: Option<&u32>| {
            // What the step before has let happen is due to that step where both end together.
            if at > known.0 {
                known = (at, why, by.copied().unwrap_or(NONE));
            }
        };
        let (_, bytes) = self.group(copy, id, micro, iteration);
        let (first, middle) = (step.operands as usize, step.operands as usize + usize::from(step.sources));
        for end in &program.operands[first..middle] {
            let End::Take(reader) = *end else { continue };
            let channel = program.reader_channel[reader as usize] as usize;
            let own = copy * self.readers + reader as usize;
            if program.token[channel] {
                let &(at, by) = self.tokens[own].front()?;
                later(at, Why::Message, Some(&by));
                continue;
            }
            let taken = self.taken[own];
            if bytes == 0 && taken > 0 {
                continue;
            }
            if self.sent[copy * self.channels + channel] <= taken {
                return None;
            }
            let slot = self.slot(own, taken);
            later(self.arrival[slot], Why::Message, self.arrival_by.get(slot));
        }
        for end in &program.operands[middle..middle + usize::from(step.destinations)] {
            let End::Put(channel) = *end else { continue };
            if program.token[channel as usize] || self.elided(copy, channel, bytes) {
                continue;
            }
            let sent = self.sent[copy * self.channels + channel as usize];
            if sent < self.credit {
                continue;
            }
            for reader in plan.channels[channel as usize].readers.clone() {
                let own = copy * self.readers + reader as usize;
                if sent - self.taken[own] >= self.credit {
                    return None;
                }
                let slot = self.slot(own, sent);
                later(self.freed[slot], Why::Slot, self.freed_by.get(slot));
            }
        }
        if micro == 0 {
            let base = copy * (program.waiters_of.len() - 1);
            for wait in plan.waits(step) {
                let number = program.waited[wait.index()] as usize;
                let body = program.waited_section[number] == Section::Body;
                let needed = match section {
                    _ if !body => 1,
                    Section::Body => iteration + 1,
                    Section::Prologue | Section::Epilogue => self.lengths.slices - self.skip,
                };
                let done = self.done[base + number];
                if done < needed {
                    return None;
                }
                // If it is done more often, its block has begun something since: the time has passed.
                if done == needed {
                    later(self.done_at[base + number], Why::Wait, self.done_by.get(base + number));
                }
            }
        }
        Some(known)
    }
}
