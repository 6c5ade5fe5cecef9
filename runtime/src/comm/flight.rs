//! Calls that are under way.
//!
//! In: lanes, calls in the order in which they were issued. Out: their ends. The one hard idea: whoever waits for one call drives
//! all of them, since a peer may need the others before it can go on with that one (docs/plan.md §6.3); so a call makes progress
//! whenever anyone waits for any.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plan::ids::RankId;

use super::lane::Lane;
use crate::error::Error;
use crate::exec::Patience;
use crate::exec::drive::{Progress, Stop, pause};
use crate::memory::hall::Hall;
use crate::small::{self, Small};
use crate::wait::Waiter;
use crate::watch;

/// From when on, and then after twice as long each time, who waits looks whether others make another call, or none.
pub(super) const SUSPECT: Duration = Duration::from_millis(20);

/// A call that has been issued and not yet been waited for.
#[derive(Debug)]
struct Flight {
    call: u64,
    way: Way,
    /// How it ended, once it has.
    ended: Option<Result<(), Error>>,
}

/// How a call goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By the plan of a lane.
    Lane(usize),
    /// Without a plan.
    Small,
}

/// All of a communicator.
#[derive(Debug)]
pub(super) struct Flights {
    rank: RankId,
    patience: Patience,
    warn: Duration,
    waiter: Waiter,
    /// The number of the last call issued.
    call: u64,
    list: VecDeque<Flight>,
    small: Small,
    /// Some call has failed: this rank stays where it is, for reports.
    failed: bool,
}

impl Flights {
    pub(super) fn new(rank: RankId, ranks: u32, patience: Patience, warn: Duration) -> Flights {
        let waiter = Waiter::new(patience.policy);
        let small = Small::new(rank, ranks, patience.policy);
        Flights { rank, patience, warn, waiter, call: 0, list: VecDeque::new(), small, failed: false }
    }

    /// Goes on as if so many calls had been made.
    pub(super) fn number_from(&mut self, hall: &Hall, call: u64) {
        self.call = call;
        hall.rank(self.rank).entered.store(call, Ordering::Relaxed);
        hall.rank(self.rank).left.store(call, Ordering::Relaxed);
    }

    /// Which rank this is.
    pub(super) fn rank(&self) -> RankId {
        self.rank
    }

    /// How long it waits for others.
    pub(super) fn patience(&self) -> Patience {
        self.patience
    }

    /// The number of the next call.
    pub(super) fn next_call(&self) -> u64 {
        self.call + 1
    }

    /// That call was one without channels, and has ended.
    pub(super) fn passed(&mut self, hall: &Hall, call: u64) {
        self.call = call;
        self.publish(hall);
    }

    /// Whether no call is under way.
    pub(super) fn all_over(&self) -> bool {
        self.list.iter().all(|flight| flight.ended.is_some())
    }

    /// Whether a call on a lane has not ended.
    pub(super) fn busy(&self, lane: usize) -> bool {
        self.list.iter().any(|flight| flight.way == Way::Lane(lane) && flight.ended.is_none())
    }

    /// Issues a call on a lane that is not busy, and says which number it has.
    ///
    /// # Safety
    /// As `Rank::enter`; `Rank::leave` comes when the call has ended.
    pub(super) unsafe fn issue(&mut self, lanes: &mut [Lane], lane: usize) -> Result<u64, Error> {
        let call = self.call + 1;
        // SAFETY: the caller's promise.
        lanes[lane].with_dependent_mut(|_, rank| unsafe { rank.enter(call) })?;
        self.call = call;
        self.list.push_back(Flight { call, way: Way::Lane(lane), ended: None });
        Ok(call)
    }

    /// Issues a small call, and says which number it has.
    ///
    /// # Errors
    /// What is wrong with the arguments, or what ended the communicator.
    ///
    /// # Safety
    /// Until the call has ended the buffers' memory is there, and this call's alone (the input: nobody writes it).
    #[inline]
    pub(super) unsafe fn issue_small(
        &mut self,
        hall: &Hall,
        call: &small::Call,
        buffers: &small::Buffers<'_>,
    ) -> Result<u64, Error> {
        let areas = self.small.check(call, buffers)?;
        if let Some(cause) = hall.board().cause() {
            return Err(watch::seen(hall, self.rank, cause));
        }
        self.call += 1;
        // SAFETY: the caller's promise.
        unsafe { self.small.issue(hall, self.call, areas) };
        self.list.push_back(Flight { call: self.call, way: Way::Small, ended: None });
        Ok(self.call)
    }

    /// Waits for the last call, a small one, if that takes no longer than a turn or two of the other ranks; whether it has ended well.
    #[inline]
    pub(super) fn wait_shortly(&mut self, hall: &Hall) -> bool {
        let ended = self.list.len() == 1 && self.small.wait(hall);
        if ended {
            self.list.clear();
            hall.rank(self.rank).left.store(self.call, Ordering::Relaxed);
        }
        ended
    }

    /// Lets every call that has not ended act as far as it can for now; whether any did.
    pub(super) fn turn(&mut self, hall: &Hall, lanes: &mut [Lane]) -> bool {
        let (mut moved, mut ended) = (false, false);
        for at in 0..self.list.len() {
            let flight = &mut self.list[at];
            if flight.ended.is_some() {
                continue;
            }
            let turned = match flight.way {
                Way::Lane(lane) => lanes[lane].with_dependent_mut(|_, rank| match rank.turn() {
                    Ok(Progress { finished: true, .. }) => Err(rank.leave(Ok(()))),
                    Ok(Progress { moved, .. }) => Ok(moved),
                    Err(stop) => Err(rank.leave(Err(stop))),
                }),
                Way::Small if !self.small.is_next(flight.call) => Ok(false),
                Way::Small => match self.small.turn(hall) {
                    Progress { finished: true, .. } => Err(Ok(())),
                    Progress { moved, .. } => Ok(moved),
                },
            };
            match turned {
                Ok(this) => moved |= this,
                Err(end) => {
                    (moved, ended) = (true, true);
                    self.end(lanes, at, end);
                }
            }
        }
        if ended {
            self.publish(hall);
        }
        moved
    }

    /// Whether a call has ended.
    pub(super) fn is_over(&self, call: u64) -> bool {
        self.list.iter().find(|flight| flight.call == call).is_none_or(|flight| flight.ended.is_some())
    }

    /// Drives all calls until one has ended, and says how it did; asked again, it did well.
    pub(super) fn wait(&mut self, hall: &Hall, lanes: &mut [Lane], call: u64) -> Result<(), Error> {
        self.until(hall, lanes, |flights| flights.is_over(call));
        match self.list.iter().position(|flight| flight.call == call) {
            None => Ok(()),
            Some(at) => self.list.remove(at).and_then(|flight| flight.ended).unwrap_or(Ok(())),
        }
    }

    /// Drives all calls until `done`, or until they have failed.
    pub(super) fn until(&mut self, hall: &Hall, lanes: &mut [Lane], done: impl Fn(&Flights) -> bool) {
        let mut waiter = std::mem::replace(&mut self.waiter, Waiter::new(self.patience.policy));
        waiter.reset();
        let deadline = self.patience.stalled.min(self.patience.late);
        let (mut suspect, mut warned) = (SUSPECT, false);
        while !done(self) {
            if self.turn(hall, lanes) {
                waiter.reset();
                (suspect, warned) = (SUSPECT, false);
                if hall.board().aborted() {
                    self.stop(hall, lanes, Stop::Aborted);
                }
                continue;
            }
            let rank = self.rank;
            let mut moved = false;
            let stop = pause(&mut waiter, hall, rank, deadline, || {
                moved = self.turn(hall, lanes);
                moved
            });
            let waited = waiter.waited();
            if moved {
                continue;
            }
            match stop {
                Some(Stop::Deadline { waited }) => {
                    let missing = !watch::absent(hall, self.oldest()).is_empty();
                    let limit = if missing { self.patience.late } else { self.patience.stalled };
                    if waited > limit {
                        self.stop(hall, lanes, Stop::Deadline { waited });
                    }
                }
                Some(stop) => self.stop(hall, lanes, stop),
                None => {}
            }
            if waited > suspect {
                suspect *= 2;
                let oldest = self.oldest();
                let found = || watch::otherwise(hall, rank, oldest);
                let differs = || found().map(|(from, call)| Stop::Differs { from, call });
                let gone = || watch::gone(hall, rank, oldest).map(|from| Stop::Gone { from });
                if let Some(stop) = differs().or_else(gone) {
                    self.stop(hall, lanes, stop);
                }
            }
            if waited > self.warn && !warned {
                warned = true;
                let (call, absent) = (self.oldest(), watch::absent(hall, self.oldest()));
                tracing::warn!(rank = rank.0, call, ?absent, "has waited for {waited:.0?}");
            }
        }
        self.waiter = waiter;
    }

    /// Drives all calls until a barrier that this rank has come to is complete.
    pub(super) fn barrier(
        &mut self,
        hall: &Hall,
        lanes: &mut [Lane],
        complete: impl Fn() -> bool,
    ) -> Result<(), Error> {
        let work = || {
            let of = |rank| hall.rank(RankId(rank)).work.load(Ordering::Relaxed);
            (0..hall.shape().ranks()).map(of).fold(0, u64::wrapping_add)
        };
        let mut waiter = Waiter::new(self.patience.policy);
        let (mut last, mut suspect) = (work(), SUSPECT);
        while !complete() {
            if let Some(cause) = hall.board().cause() {
                self.stop(hall, lanes, Stop::Aborted);
                return Err(cause);
            }
            if self.turn(hall, lanes) {
                waiter.reset();
                continue;
            }
            match pause(&mut waiter, hall, self.rank, self.patience.late, &complete) {
                None => {}
                Some(Stop::Deadline { waited }) => {
                    // A rank that is at work is not lost, however long that takes.
                    let now = work();
                    if std::mem::replace(&mut last, now) == now {
                        hall.board().abort(&watch::late_at_barrier(hall, self.rank, waited));
                    }
                    waiter.reset();
                }
                // What ended it stands on the board.
                Some(_) => continue,
            }
            if waiter.waited() > suspect {
                suspect *= 2;
                // Who has left comes to no barrier, whatever it has entered.
                let gone = watch::gone(hall, self.rank, u64::MAX);
                // It may have left because the barrier was complete meanwhile.
                if let Some(from) = gone.filter(|_| !complete()) {
                    hall.board().abort(&watch::has_gone(hall, from, self.call));
                }
            }
        }
        Ok(())
    }

    /// Ends all calls that have not ended.
    pub(super) fn stop(&mut self, hall: &Hall, lanes: &mut [Lane], why: Stop) {
        for at in 0..self.list.len() {
            let flight = &self.list[at];
            if flight.ended.is_none() {
                let end = match flight.way {
                    Way::Lane(lane) => lanes[lane].with_dependent_mut(|_, rank| rank.leave(Err(why))),
                    Way::Small => Err(self.small.fail(hall, flight.call, why)),
                };
                self.end(lanes, at, end);
            }
        }
        self.publish(hall);
    }

    /// A call has ended. One that failed keeps peers from memory that they might still touch.
    fn end(&mut self, lanes: &[Lane], at: usize, end: Result<(), Error>) {
        let flight = &mut self.list[at];
        if end.is_err() {
            self.failed = true;
            if let Way::Lane(lane) = flight.way {
                lanes[lane].borrow_dependent().settle(flight.call);
            }
        }
        flight.ended = Some(end);
    }

    /// Says on the board through which call this rank has come.
    fn publish(&self, hall: &Hall) {
        let going = self.list.iter().filter(|flight| flight.ended.is_none());
        let through = going.map(|flight| flight.call - 1).min().unwrap_or(self.call);
        if !self.failed {
            hall.rank(self.rank).left.store(through, Ordering::Relaxed);
        }
    }

    /// The first call that has not ended; the last one, if all have.
    fn oldest(&self) -> u64 {
        let going = self.list.iter().filter(|flight| flight.ended.is_none());
        going.map(|flight| flight.call).min().unwrap_or(self.call)
    }
}
