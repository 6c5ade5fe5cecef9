//! Leaving out what repeats.
//!
//! In: the state of a simulation each time one certain actor begins an iteration. Out: how many iterations can be left
//! out, and what time that takes. The state is everything that decides the future, with times relative to now and iterations
//! relative to that actor's. If it is the same at two beginnings, p iterations and d picoseconds apart, then every
//! further p iterations take d, as long as all cells have full slices: so N periods are left out by shortening the
//! call, and the end (with its shorter slices) is followed as it is. States are compared by a hash of 128 bits.
//!
//! Where no state comes back within a budget of events, the mean of the second half of what was followed is taken
//! for the rest, and the result is marked as not exact.

use std::collections::BTreeMap;

use plan::plan::Section;

use super::super::work::Time;
use super::{Phase, Simulation, Skipped};

/// Events that are followed before the mean is taken; more if an iteration has many.
const BUDGET: u64 = 2_000_000;
/// So many iterations are followed at least before that.
const LEAST: u64 = 8;

/// The states seen so far.
#[derive(Debug)]
pub(super) struct Periods {
    seen: BTreeMap<(u64, u64), (u64, Time)>,
    /// When each iteration began.
    began: Vec<Time>,
    budget: u64,
    /// Whose beginnings count.
    reference: Option<usize>,
    skipped: Option<Skipped>,
}

impl Periods {
    /// For iterations of so many micro-steps.
    pub(super) fn new(micro_steps: u64) -> Periods {
        Periods {
            seen: BTreeMap::new(),
            began: Vec::new(),
            budget: BUDGET.max(micro_steps.saturating_mul(LEAST)),
            reference: None,
            skipped: None,
        }
    }

    /// What was left out.
    pub(super) fn skipped(&self) -> Option<Skipped> {
        self.skipped
    }
}

impl Simulation<'_> {
    /// Called before every event.
    #[inline]
    pub(super) fn look_for_period(&mut self, index: usize, now: Time) {
        let Some(periods) = &self.periods else { return };
        if periods.skipped.is_some() || self.lengths.full < 4 || periods.reference.is_some_and(|r| r != index)
        {
            return;
        }
        let actor = &self.actors[index];
        let body = &self.program.plan().blocks[index % self.blocks].body;
        if actor.section == Section::Body && actor.micro == 0 && actor.step == body.start {
            self.iteration_begins(index, now);
        }
    }

    fn iteration_begins(&mut self, index: usize, now: Time) {
        let iteration = self.actors[index].iteration;
        let state = self.state(iteration, now);
        let running = self.actors.iter().filter(|actor| actor.phase != Phase::Ended);
        let furthest = running.map(|actor| actor.iteration).max().unwrap_or(0);
        let Some(periods) = &mut self.periods else { return };
        periods.reference = Some(index);
        periods.began.push(now);
        let before = match periods.seen.insert(state, (iteration, now)) {
            Some((then, at)) => Some((then, at, true)),
            None if self.events > periods.budget && iteration >= LEAST => {
                let half = iteration / 2;
                Some((half, periods.began[half as usize], false))
            }
            None => None,
        };
        let Some((then, from, exact)) = before else { return };
        // Everyone must still be among full slices when the periods are gone.
        let times = self.lengths.full.saturating_sub(1).saturating_sub(furthest) / (iteration - then);
        if times == 0 {
            return;
        }
        periods.skipped = Some(Skipped { from, to: now, times, exact });
        self.skip = times * (iteration - then);
    }

    /// A hash of all that decides the future.
    fn state(&self, iteration: u64, now: Time) -> (u64, u64) {
        let mut hash = (0x9e37_79b9_7f4a_7c15_u64, 0xc2b2_ae3d_27d4_eb4f_u64);
        let mut see = |value: u64| {
            hash.0 = (hash.0.rotate_left(5) ^ value).wrapping_mul(0x5851_f42d_4c95_7f2d);
            hash.1 = (hash.1.rotate_left(23) ^ value).wrapping_mul(0xd6e8_feb8_6659_fd93);
        };
        let until = |time: Time| time.saturating_sub(now);
        for actor in &self.actors {
            see(actor.section as u64 + ((actor.phase as u64) << 8) + (u64::from(actor.micro) << 16));
            see(actor.step.into());
            // An actor that has ended stays so, whatever the iteration.
            see(if actor.phase == Phase::Ended { 0 } else { actor.iteration.wrapping_sub(iteration) });
            see(until(actor.free));
            see(until(actor.ready));
        }
        let k = self.credit;
        for (own, &taken) in self.taken.iter().enumerate() {
            let (copy, reader) = (own / self.readers, own % self.readers);
            let channel = self.program.reader_channel[reader] as usize;
            let sent = self.sent[copy * self.channels + channel];
            see(sent - taken);
            see(u64::from(sent > 0) + 2 * u64::from(taken > 0) + 4 * u64::from(sent >= k));
            if self.program.token[channel] {
                self.tokens[own].iter().for_each(|&(at, _)| see(until(at)));
                continue;
            }
            for message in taken..taken + k {
                let slot = self.slot(own, message);
                see(until(self.arrival[slot]));
                see(until(self.freed[slot]));
            }
        }
        for (number, &done) in self.done.iter().enumerate() {
            let body =
                self.program.waited_section[number % self.program.waited_section.len()] == Section::Body;
            see(if body { done.wrapping_sub(iteration) } else { done });
            see(until(self.done_at[number]));
        }
        for &free in &self.ports.free {
            see(until(free));
        }
        if let Some(cores) = &self.cores {
            cores.state(now, &mut see);
        }
        hash
    }
}
