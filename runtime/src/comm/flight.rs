//! Calls that are under way.
//!
//! In: lanes, calls in the order in which they were issued. Out: their ends. The one hard idea: a turn never waits, and is given to all,
//! since a peer may need the others before it can go on with one (docs/plan.md §6.3); so a call makes progress whenever anyone
//! waits for any.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use plan::ids::RankId;

use super::lane::Lane;
use super::news::News;
use crate::error::Error;
use crate::exec::drive::{Progress, Stop};
use crate::memory::hall::Hall;
use crate::small::{self, Small};
use crate::wait::Policy;
use crate::watch;

/// Who is told how a call ended.
pub(super) trait Ended: Send + Sync + std::fmt::Debug {
    /// It has; nobody touches its buffers any more. This is called behind the gate, so nothing of the user's runs here: who waits for it is
    /// woken later ([`News`]).
    fn end(&self, how: Result<(), Error>) -> Option<Waker>;
}

/// A call that has been issued.
#[derive(Debug)]
struct Flight {
    call: u64,
    way: Way,
    /// How it ended, once it has.
    ended: Option<Result<(), Error>>,
    /// Who is told; without, the end is kept here until it is asked for.
    whose: Option<Arc<dyn Ended>>,
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
    /// The number of the last call issued.
    call: u64,
    list: VecDeque<Flight>,
    small: Small,
    /// How many have not ended.
    going: usize,
    /// Some call has failed: this rank stays where it is, for reports.
    failed: bool,
    /// What is to be told once nobody is inside.
    pub(super) news: News,
}

impl Flights {
    pub(super) fn new(rank: RankId, ranks: u32, policy: Policy) -> Flights {
        let small = Small::new(rank, ranks, policy);
        let (list, news) = (VecDeque::with_capacity(4), News::default());
        Flights { rank, call: 0, list, small, going: 0, failed: false, news }
    }

    /// Goes on as if so many calls had been made.
    pub(super) fn number_from(&mut self, hall: &Hall, call: u64) {
        self.call = call;
        hall.rank(self.rank).entered.store(call, Ordering::Relaxed);
        hall.rank(self.rank).left.store(call, Ordering::Relaxed);
    }

    /// Whether some call has not ended.
    #[inline]
    pub(super) fn under_way(&self) -> bool {
        self.going > 0
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

    /// Whether a call on a lane has not ended.
    pub(super) fn busy(&self, lane: usize) -> bool {
        self.list.iter().any(|flight| flight.way == Way::Lane(lane) && flight.ended.is_none())
    }

    /// Issues a call on a lane that is not busy, and says which number it has.
    ///
    /// # Safety
    /// As `Rank::enter`; `Rank::leave` comes when the call has ended.
    pub(super) unsafe fn issue(
        &mut self,
        lanes: &mut [Lane],
        lane: usize,
        whose: Option<Arc<dyn Ended>>,
    ) -> Result<u64, Error> {
        let call = self.call + 1;
        // SAFETY: the caller's promise.
        lanes[lane].with_dependent_mut(|_, rank| unsafe { rank.enter(call) })?;
        self.call = call;
        self.list.push_back(Flight { call, way: Way::Lane(lane), ended: None, whose });
        self.going += 1;
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
        self.list.push_back(Flight { call: self.call, way: Way::Small, ended: None, whose: None });
        self.going += 1;
        Ok(self.call)
    }

    /// Waits for the last call, a small one, if that takes no longer than a turn or two of the other ranks; whether it has ended well.
    #[inline]
    pub(super) fn wait_shortly(&mut self, hall: &Hall) -> bool {
        let ended = self.list.len() == 1 && self.small.wait(hall);
        if ended {
            self.list.clear();
            self.going = 0;
            hall.rank(self.rank).left.store(self.call, Ordering::Relaxed);
        }
        ended
    }

    /// Lets every call that has not ended act as far as it can for now; whether any did.
    #[inline]
    pub(super) fn turn(&mut self, hall: &Hall, lanes: &mut [Lane]) -> bool {
        let (mut moved, mut ended) = (false, false);
        let mut at = 0;
        while at < self.list.len() {
            let flight = &mut self.list[at];
            if flight.ended.is_some() {
                at += 1;
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
                Ok(this) => {
                    moved |= this;
                    at += 1;
                }
                Err(end) => {
                    (moved, ended) = (true, true);
                    at += usize::from(self.end(lanes, at, end));
                }
            }
        }
        if ended {
            self.publish(hall);
        }
        moved
    }

    /// Whether a call has ended.
    #[inline]
    pub(super) fn is_over(&self, call: u64) -> bool {
        self.list.iter().find(|flight| flight.call == call).is_none_or(|flight| flight.ended.is_some())
    }

    /// How a call that is over ended; asked again, it did well.
    pub(super) fn take(&mut self, call: u64) -> Result<(), Error> {
        match self.list.iter().position(|flight| flight.call == call) {
            None => Ok(()),
            Some(at) => self.list.remove(at).and_then(|flight| flight.ended).unwrap_or(Ok(())),
        }
    }

    /// Ends all calls that have not ended.
    pub(super) fn stop(&mut self, hall: &Hall, lanes: &mut [Lane], why: Stop) {
        let mut at = 0;
        while at < self.list.len() {
            let flight = &self.list[at];
            if flight.ended.is_none() {
                let end = match flight.way {
                    Way::Lane(lane) => lanes[lane].with_dependent_mut(|_, rank| rank.leave(Err(why))),
                    Way::Small => Err(self.small.fail(hall, flight.call, why)),
                };
                at += usize::from(self.end(lanes, at, end));
            } else {
                at += 1;
            }
        }
        self.publish(hall);
    }

    /// The first call that has not ended; the last one, if all have.
    pub(super) fn oldest(&self) -> u64 {
        let going = self.list.iter().filter(|flight| flight.ended.is_none());
        going.map(|flight| flight.call).min().unwrap_or(self.call)
    }

    /// A call has ended; whether it still is in the list. One that failed keeps peers from memory that they might still touch.
    fn end(&mut self, lanes: &[Lane], at: usize, end: Result<(), Error>) -> bool {
        let flight = &mut self.list[at];
        if end.is_err() {
            self.failed = true;
            if let Way::Lane(lane) = flight.way {
                lanes[lane].borrow_dependent().settle(flight.call);
            }
        }
        self.going -= 1;
        match flight.whose.take() {
            None => flight.ended = Some(end),
            Some(whose) => {
                self.list.remove(at);
                let waker = whose.end(end);
                self.news.add(waker, whose);
                return false;
            }
        }
        true
    }

    /// Says on the board through which call this rank has come.
    fn publish(&self, hall: &Hall) {
        let going = self.list.iter().filter(|flight| flight.ended.is_none());
        let through = going.map(|flight| flight.call - 1).min().unwrap_or(self.call);
        if !self.failed {
            hall.rank(self.rank).left.store(through, Ordering::Relaxed);
        }
    }
}
