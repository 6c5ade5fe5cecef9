//! What drives the calls of a communicator, and of all that belong together.
//!
//! In: lanes and flights, behind a gate. Out: [`Engine`]s, of which those of one [`Family`] drive each other: whoever waits in one lets
//! the calls of all others that nobody drives go on as well, since a peer may need those first. The one hard idea is who may touch
//! the state when ([`Gate`]): the owner whenever it likes, others only while calls are under way and the owner is away.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut, Range};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use plan::ids::RankId;

use super::drive::Wait;
use super::flight::{Ended, Flights};
use super::gate::{Change, Gate, Way};
use super::lane::Lane;
use super::news::News;
use super::progress::Progress;
use crate::error::Error;
use crate::exec::Patience;
use crate::exec::drive::Stop;
use crate::memory::hall::Hall;
use crate::small;
use crate::wait::{Turn, Waiter};

/// How long a visitor sleeps that waits for a call that someone else drives.
const ASIDE: Duration = Duration::from_micros(200);

/// One communicator's.
pub(super) struct Engine {
    pub(super) gate: Gate,
    state: UnsafeCell<State>,
    pub(super) hall: Arc<Hall>,
    pub(super) rank: RankId,
    pub(super) patience: Patience,
    pub(super) warn: Duration,
    pub(super) family: Arc<Family>,
}

// SAFETY: only who is inside the gate touches the state, one at a time; the state itself may move between threads.
unsafe impl Sync for Engine {}
// SAFETY: as above.
unsafe impl Send for Engine {}

/// What is behind the gate.
#[derive(Debug)]
pub(super) struct State {
    pub(super) lanes: Vec<Lane>,
    pub(super) flights: Flights,
    pub(super) waiter: Waiter,
    /// Of those who only look in: what they have found without any progress in between.
    pub(super) looks: Wait,
    /// How many of them had other things to do.
    pub(super) passed: u32,
}

const _: () = {
    const fn may_move<T: Send>() {}
    may_move::<State>();
};

/// Communicators of one process that drive each other.
#[derive(Debug, Default)]
pub(super) struct Family {
    /// How many gates are not private.
    open: AtomicU32,
    members: Mutex<Vec<Weak<Engine>>>,
    pub(super) progress: Progress,
}

/// The owner's key to an engine: there is one.
#[derive(Debug)]
pub(super) struct Seat {
    engine: Arc<Engine>,
}

/// Someone is inside.
pub(super) struct Inside<'e> {
    pub(super) engine: &'e Engine,
    way: Way,
    pub(super) who: Who,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// It may stay as long as it likes.
    Owner,
    /// It waits for a call, and leaves when the owner comes.
    Waiting,
    /// It is here for one turn.
    Passing,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("rank", &self.rank.0).field("gate", &self.gate).finish_non_exhaustive()
    }
}

impl Seat {
    /// A new engine, member of a family.
    pub(super) fn new(
        hall: Arc<Hall>,
        rank: RankId,
        patience: Patience,
        warn: Duration,
        family: &Arc<Family>,
    ) -> Seat {
        let state = State {
            lanes: Vec::new(),
            flights: Flights::new(rank, hall.shape().ranks(), patience.policy),
            waiter: Waiter::new(patience.policy),
            looks: Wait::new(Waiter::new(patience.policy)),
            passed: 0,
        };
        let engine = Engine {
            gate: Gate::new(),
            state: UnsafeCell::new(state),
            hall,
            rank,
            patience,
            warn,
            family: Arc::clone(family),
        };
        let engine = Arc::new(engine);
        let mut members = family.members.lock().unwrap_or_else(PoisonError::into_inner);
        members.retain(|member| member.strong_count() > 0);
        members.push(Arc::downgrade(&engine));
        Seat { engine }
    }

    /// Goes in.
    #[inline]
    pub(super) fn enter(&mut self) -> Inside<'_> {
        // This value is the only one of its engine, and is borrowed until `Inside` is dropped.
        Inside { engine: &self.engine, way: self.engine.gate.enter(), who: Who::Owner }
    }

    /// The engine.
    pub(super) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }
}

impl Engine {
    /// A visitor goes in, if calls are under way and nobody is inside.
    fn visit(&self, who: Who) -> Option<Inside<'_>> {
        self.gate.visit().then(|| Inside { engine: self, way: Way::Held, who })
    }

    /// A visitor gives one turn to the calls of this communicator and of all others that nobody drives.
    pub(super) fn visit_once(&self) {
        if let Some(mut inside) = self.visit(Who::Waiting) {
            inside.look();
        }
        self.family.others(Some(self));
    }

    /// A visitor waits for `done`, which is so at the latest when all calls have ended.
    pub(super) fn visit_until(&self, done: impl Fn() -> bool) {
        let mut aside = Waiter::new(self.patience.policy);
        while !done() {
            match self.visit(Who::Waiting) {
                Some(mut inside) => {
                    inside.until(|_| done());
                    aside.reset();
                }
                // Who is inside drives that call as well.
                None => {
                    if aside.round() == Turn::Sleep {
                        std::thread::sleep(ASIDE);
                    }
                }
            }
        }
    }
}

impl Family {
    /// Lets the calls of all members but one go on, where nobody drives them; whether any did. For who is inside of none.
    #[inline]
    pub(super) fn others(&self, but: Option<&Engine>) -> bool {
        self.open.load(Ordering::Relaxed) > 0 && self.visit(but).moved
    }

    /// One turn at every member that nobody drives.
    #[cold]
    pub(super) fn visit(&self, but: Option<&Engine>) -> Visit {
        let mut visit = Visit::default();
        let members = match but {
            None => self.members.lock().unwrap_or_else(PoisonError::into_inner),
            // Who waits in one of them does not wait for who is at it already.
            Some(_) => match self.members.try_lock() {
                Ok(members) => members,
                Err(_) => return visit,
            },
        };
        for member in members.iter().filter_map(Weak::upgrade) {
            if but.is_some_and(|but| std::ptr::eq(but, &raw const *member)) {
                continue;
            }
            let Some(mut inside) = member.visit(Who::Passing) else { continue };
            visit.moved |= inside.look();
            let under_way = inside.flights.under_way();
            visit.news.take_over(inside.leave());
            if under_way {
                visit.left = Some(member);
            }
        }
        visit
    }
}

/// What came of a visit to all.
#[derive(Debug, Default)]
pub(super) struct Visit {
    /// Some call went on.
    pub(super) moved: bool,
    /// A member whose calls are still under way, and that nobody else drove.
    pub(super) left: Option<Arc<Engine>>,
    /// Of calls that ended.
    pub(super) news: News,
}

impl Deref for Inside<'_> {
    type Target = State;

    #[inline]
    fn deref(&self) -> &State {
        // SAFETY: who is inside is alone.
        unsafe { &*self.engine.state.get() }
    }
}

impl DerefMut for Inside<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut State {
        // SAFETY: who is inside is alone.
        unsafe { &mut *self.engine.state.get() }
    }
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        drop(self.go());
    }
}

impl<'e> Inside<'e> {
    /// Where this is.
    pub(super) fn engine(&self) -> &'e Engine {
        self.engine
    }

    /// Leaves. What is to be told is told by the caller, when it is inside of nothing else.
    fn leave(self) -> News {
        std::mem::ManuallyDrop::new(self).go()
    }

    /// Opens the gate for others; nothing of the state is touched after that.
    #[inline]
    fn go(&mut self) -> News {
        let news = match self.flights.news.is_empty() {
            true => News::default(),
            false => std::mem::take(&mut self.flights.news),
        };
        let under_way = self.flights.under_way();
        let family = &self.engine.family;
        // Counted before anyone can close it again.
        if self.way == Way::Private && under_way {
            family.open.fetch_add(1, Ordering::Relaxed);
        }
        if self.engine.gate.leave(self.way, under_way) == Change::Closed {
            family.open.fetch_sub(1, Ordering::Relaxed);
        }
        // Whoever drove others as well does so no more.
        if self.who != Who::Passing && family.open.load(Ordering::Relaxed) > 0 {
            family.progress.wake();
        }
        news
    }

    /// The owner tells what is to be told: it goes out for that, and comes back.
    #[inline]
    pub(super) fn tell(&mut self) {
        if self.who == Who::Owner && !self.flights.news.is_empty() {
            self.tell_outside();
        }
    }

    #[cold]
    fn tell_outside(&mut self) {
        // Also if what is told unwinds (which it does not) this is inside again when it is dropped.
        struct Back<'i, 'e>(&'i mut Inside<'e>);
        impl Drop for Back<'_, '_> {
            fn drop(&mut self) {
                self.0.way = self.0.engine.gate.enter();
            }
        }
        let news = self.go();
        let _back = Back(self);
        drop(news);
    }

    /// Lets calls of the rest of the family go on, where nobody drives them; whether any did.
    #[inline]
    pub(super) fn others(&mut self) -> bool {
        let engine = self.engine;
        let counted = u32::from(self.way == Way::Held);
        engine.family.open.load(Ordering::Relaxed) > counted && {
            let Visit { moved, news, .. } = engine.family.visit(Some(engine));
            self.flights.news.take_over(news);
            moved
        }
    }

    /// Lets every call that has not ended act as far as it can for now; whether any did.
    #[inline]
    pub(super) fn turn(&mut self) -> bool {
        let hall = &self.engine.hall;
        let State { lanes, flights, .. } = &mut **self;
        flights.turn(hall, lanes)
    }

    /// Drives all calls until one has ended, and says how it did; asked again, it did well.
    pub(super) fn wait(&mut self, call: u64) -> Result<(), Error> {
        self.until(|flights| flights.is_over(call));
        self.flights.take(call)
    }

    /// The same for a call whose buffers are lent until this returns, or unwinds.
    #[inline]
    pub(super) fn finish(mut self, call: u64) -> Result<(), Error> {
        struct Lent<'i, 'e>(&'i mut Inside<'e>, u64);
        impl Drop for Lent<'_, '_> {
            fn drop(&mut self) {
                let call = self.1;
                // Only where it unwinds there is something left to wait for.
                self.0.until(|flights| flights.is_over(call));
            }
        }
        Lent(&mut self, call).0.wait(call)
    }

    /// Drives all calls until a lane is free.
    pub(super) fn free(&mut self, lane: usize) -> Result<(), Error> {
        self.until(|flights| !flights.busy(lane));
        match self.engine.hall.board().cause() {
            None => Ok(()),
            Some(cause) => Err(cause),
        }
    }

    /// The same of several: the first that is free, else the first one once it is.
    pub(super) fn any_free(&mut self, mut lanes: Range<usize>) -> Result<usize, Error> {
        let first = lanes.start;
        let lane = lanes.find(|&lane| !self.flights.busy(lane)).unwrap_or(first);
        self.free(lane).map(|()| lane)
    }

    /// Issues a call on a lane that is not busy.
    ///
    /// # Safety
    /// As [`Flights::issue`].
    pub(super) unsafe fn issue(&mut self, lane: usize, whose: Option<Arc<dyn Ended>>) -> Result<u64, Error> {
        self.begin();
        let State { lanes, flights, .. } = &mut **self;
        // SAFETY: the caller's promise.
        unsafe { flights.issue(lanes, lane, whose) }
    }

    /// Issues a small call.
    ///
    /// # Safety
    /// As [`Flights::issue_small`].
    #[inline]
    pub(super) unsafe fn issue_small(
        &mut self,
        call: &small::Call,
        buffers: &small::Buffers<'_>,
    ) -> Result<u64, Error> {
        self.begin();
        let hall = &self.engine.hall;
        // SAFETY: the caller's promise.
        unsafe { self.flights.issue_small(hall, call, buffers) }
    }

    /// A call begins: if no other is under way, nothing has been waited for yet.
    #[inline]
    fn begin(&mut self) {
        if !self.flights.under_way() {
            self.looks.reset();
        }
    }

    /// Waits for the last call, a small one, if that takes not long; whether it has ended well.
    #[inline]
    pub(super) fn wait_shortly(&mut self) -> bool {
        let hall = &self.engine.hall;
        self.flights.wait_shortly(hall)
    }

    pub(super) fn stop(&mut self, why: Stop) {
        let hall = &self.engine.hall;
        let State { lanes, flights, .. } = &mut **self;
        flights.stop(hall, lanes, why);
    }
}
