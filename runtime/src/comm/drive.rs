//! How calls under way come to their ends, or are ended.
//!
//! In: who is inside of an engine, and what it waits for. Out: all calls go on meanwhile; they end with an error where they never would by
//! themselves. The one hard idea: nobody need wait for that. Whoever only looks in from time to time finds what a wait finds: that the
//! communicator has ended, that a rank has left or makes another call, that nothing has moved for too long in all looks together.

use std::sync::atomic::Ordering;
use std::time::Duration;

use plan::ids::RankId;

use super::engine::{Engine, Inside, Who};
use super::flight::Flights;
use crate::error::Error;
use crate::exec::drive::{Stop, pause};
use crate::wait::Waiter;
use crate::watch;

/// From when on, and then after twice as long each time, who waits looks whether others make another call, or none.
pub(super) const SUSPECT: Duration = Duration::from_millis(20);

/// Who passes by in a loop of its own asks each so many times how long nothing has moved: the clock costs more than a look.
const PASSES: u32 = 64;

/// What a wait remembers from look to look.
#[derive(Debug)]
pub(super) struct Wait {
    waiter: Waiter,
    suspect: Duration,
    warned: bool,
}

impl Inside<'_> {
    /// One turn of all calls, for who does not wait here: also ends them if the communicator has ended, or if nothing has moved for so long,
    /// in looks like this, that it must; whether anything went on.
    pub(super) fn look(&mut self) -> bool {
        let moved = self.turn();
        if moved {
            self.looks.reset();
        }
        if self.engine.hall.board().aborted() {
            self.stop(Stop::Aborted);
        } else if !moved && self.flights.under_way() {
            self.passed = self.passed.wrapping_add(1);
            if self.who != Who::Passing || self.passed.is_multiple_of(PASSES) {
                let fresh = Wait::new(Waiter::new(self.engine.patience.policy));
                let mut wait = std::mem::replace(&mut self.looks, fresh);
                wait.waiter.look();
                self.judge(&mut wait);
                self.looks = wait;
            }
        }
        moved
    }

    /// Drives all calls until `done`, or until they have failed.
    pub(super) fn until(&mut self, done: impl Fn(&Flights) -> bool) {
        if done(&self.flights) {
            return;
        }
        let policy = self.engine.patience.policy;
        let mut wait = Wait::new(std::mem::replace(&mut self.waiter, Waiter::new(policy)));
        self.drive(&mut wait, done);
        self.waiter = wait.waiter;
        self.looks.reset();
    }

    /// Drives all calls until `done`; a visitor also leaves when the owner comes, or when there is something to tell.
    fn drive(&mut self, wait: &mut Wait, done: impl Fn(&Flights) -> bool) {
        let engine = self.engine;
        let Engine { hall, rank, patience, .. } = engine;
        let deadline = patience.stalled.min(patience.late);
        while !done(&self.flights) {
            self.tell();
            if self.who != Who::Owner && (engine.gate.wanted() || !self.flights.news.is_empty()) {
                return;
            }
            if self.turn() {
                wait.reset();
                if hall.board().aborted() {
                    self.stop(Stop::Aborted);
                }
                continue;
            }
            let elsewhere = self.others();
            let mut moved = false;
            let stop = pause(&mut wait.waiter, hall, *rank, deadline, || {
                moved = self.turn();
                moved || elsewhere
            });
            if moved {
                continue;
            }
            match stop {
                Some(Stop::Deadline { .. }) | None => self.judge(wait),
                Some(stop) => self.stop(stop),
            }
        }
    }

    /// After a look at which nothing went on: ends the calls if that has been so for too long, or if it will be so for ever; warns once.
    #[inline]
    fn judge(&mut self, wait: &mut Wait) {
        let Engine { patience, warn, .. } = self.engine;
        let first = patience.stalled.min(patience.late).min(*warn).min(wait.suspect);
        if wait.waiter.waited() > first {
            self.sentence(wait);
        }
    }

    #[cold]
    fn sentence(&mut self, wait: &mut Wait) {
        let engine = self.engine;
        let Engine { hall, rank, patience, .. } = engine;
        let waited = wait.waiter.waited();
        if waited > patience.stalled.min(patience.late) {
            let missing = !watch::absent(hall, self.flights.oldest()).is_empty();
            if waited > if missing { patience.late } else { patience.stalled } {
                self.stop(Stop::Deadline { waited });
            }
        }
        if waited > wait.suspect {
            wait.suspect *= 2;
            let oldest = self.flights.oldest();
            let found = || watch::otherwise(hall, *rank, oldest);
            let differs = || found().map(|(from, call)| Stop::Differs { from, call });
            let gone = || watch::gone(hall, *rank, oldest).map(|from| Stop::Gone { from });
            let elsewhere = || watch::elsewhere(hall, *rank).map(|_| Stop::Elsewhere);
            if let Some(stop) = differs().or_else(gone).or_else(elsewhere) {
                self.stop(stop);
            }
        }
        if waited > engine.warn && !wait.warned {
            wait.warned = true;
            let call = self.flights.oldest();
            let absent = watch::absent(hall, call);
            tracing::warn!(rank = rank.0, call, ?absent, "has waited for {waited:.0?}");
        }
    }

    /// Drives all calls until a barrier that this rank has come to is complete.
    pub(super) fn barrier(&mut self, complete: impl Fn() -> bool) -> Result<(), Error> {
        let engine = self.engine;
        let Engine { hall, rank, patience, .. } = engine;
        let work = || {
            let of = |rank| hall.rank(RankId(rank)).work.load(Ordering::Relaxed);
            (0..hall.shape().ranks()).map(of).fold(0, u64::wrapping_add)
        };
        let mut wait = Wait::new(Waiter::new(patience.policy));
        let mut last = work();
        while !complete() {
            self.tell();
            if let Some(cause) = hall.board().cause() {
                self.stop(Stop::Aborted);
                // It may have been complete before.
                return if complete() { Ok(()) } else { Err(cause) };
            }
            if self.turn() {
                wait.reset();
                continue;
            }
            let elsewhere = self.others();
            match pause(&mut wait.waiter, hall, *rank, patience.late, || elsewhere || complete()) {
                None => {}
                Some(Stop::Deadline { waited }) => {
                    // A rank that is at work is not lost, however long that takes.
                    let now = work();
                    if std::mem::replace(&mut last, now) == now {
                        hall.board().abort(&watch::late_at_barrier(hall, *rank, waited));
                    }
                    wait.reset();
                }
                // What ended it stands on the board.
                Some(_) => continue,
            }
            if wait.waiter.waited() > wait.suspect {
                wait.suspect *= 2;
                // Who has left comes to no barrier, whatever it has entered.
                let gone = watch::gone(hall, *rank, u64::MAX);
                // It may have left because the barrier was complete meanwhile.
                if let Some(from) = gone.filter(|_| !complete()) {
                    hall.board().abort(&watch::has_gone(hall, from, "others are at a barrier"));
                } else if let Some(error) = watch::elsewhere(hall, *rank).filter(|_| !complete()) {
                    hall.board().abort(&error);
                }
            }
        }
        Ok(())
    }
}

impl Wait {
    pub(super) fn new(mut waiter: Waiter) -> Wait {
        waiter.reset();
        Wait { waiter, suspect: SUSPECT, warned: false }
    }

    /// Something went on.
    #[inline]
    pub(super) fn reset(&mut self) {
        self.waiter.reset();
        (self.suspect, self.warned) = (SUSPECT, false);
    }
}
