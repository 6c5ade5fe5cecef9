//! Communicators: ranks that call collectives together, as a library.
//!
//! In: a [`Meeting`] of the ranks ([`Bootstrap`]: processes of any launcher; [`Room`]: threads of one process), then plans. Out: calls: one that returns when its result is
//! there ([`Communicator::call`]), or several under way at once ([`Communicator::scope`]). What ranks share whatever they call lies
//! in one hall; every plan has channels of its own, opened by all ranks together.
//!
//! - A communicator is a value of one rank, and may move between threads; its calls take `&mut self`. Nothing is process-wide: a
//!   process may hold several ranks, and a rank several communicators. No signal handler is installed, no subscriber of `tracing`.
//! - Every rank makes the same calls, and opens the same plans, in the same order. Where it does not, all ranks get an error of kind
//!   `Mismatch` that shows both sides.
//! - The first error that ends a call ends the communicator, at all ranks: every later call returns it. What is found wrong with
//!   the arguments of one rank (kinds `Invalid`, `Unsupported`) before it has entered a call ends nothing.
//! - A rank makes progress while it is inside: whoever waits for one call drives all of them.

mod agree;
mod flight;
mod lane;
mod meeting;
mod scope;

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plan::ids::RankId;
use plan::verify::VerifiedPlan;

pub use self::agree::choosing;
use self::flight::Flights;
use self::lane::{Lane, all_well};
pub use self::meeting::{Meeting, Room};
pub use self::scope::{Pending, Scope};
use crate::bootstrap::{Bootstrap, Settings};
use crate::cpus;
use crate::error::{Error, Kind};
use crate::exec::buffers::{Buffers, Memory};
use crate::exec::{Patience, Shape};
use crate::job::Geometry;
use crate::memory::hall::{self, Hall};
use crate::memory::registered::Registered;
use crate::small;
use crate::wait::Policy;

/// What a communicator may be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How many bytes of registered memory each rank gets; the same at all ranks.
    pub registered: u64,
    /// How many calls of one plan may be under way at once; the same at all ranks. Each takes channels of its own.
    pub in_flight: u32,
    /// For how long others wait for a rank that has not entered a call.
    pub late: Duration,
    /// For how long nothing may move in a call that all have entered.
    pub stalled: Duration,
    /// After how long a wait is told to `tracing`, with the ranks that are missing.
    pub warn: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            registered: 0,
            in_flight: 2,
            late: Duration::from_secs(600),
            stalled: Duration::from_secs(60),
            warn: Duration::from_secs(30),
        }
    }
}

/// A plan that a communicator has opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PlanId(u32);

/// One rank among others.
pub struct Communicator {
    // Lanes refer to nothing here, but what they write for peers must end before the meeting does.
    lanes: Vec<Lane>,
    plans: Vec<Opened>,
    flights: Flights,
    hall: Arc<Hall>,
    meeting: Box<dyn Meeting>,
    rank: RankId,
    options: Options,
    patience: Patience,
}

/// A plan, its lanes, and which of them the next call takes.
#[derive(Debug)]
struct Opened {
    first: usize,
    next: usize,
}

impl std::fmt::Debug for Communicator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let world = self.meeting.world();
        f.debug_struct("Communicator")
            .field("rank", &self.rank.0)
            .field("world", &world)
            .finish_non_exhaustive()
    }
}

impl Communicator {
    /// Joins all ranks of a meeting. Every rank gives the same options.
    ///
    /// # Errors
    /// [`Kind::Mismatch`] if options differ, [`Kind::Resource`] if the machine does not give the memory, and what the meeting
    /// finds.
    pub fn join(mut meeting: Box<dyn Meeting>, options: Options) -> Result<Communicator, Error> {
        let (rank, world) = (RankId(meeting.rank()), meeting.world());
        let said = format!("{} bytes registered, {} calls in flight", options.registered, options.in_flight);
        alike(&mut *meeting, "options", &said)?;
        if options.in_flight == 0 {
            return Err(Error::new(Kind::Invalid, "at least one call must be allowed to be under way"));
        }
        let shape = hall::Shape::new(world, |_| options.registered)?.with_boxes();
        let made = if rank.0 == 0 { Some(Hall::create(shape.clone())) } else { None };
        let wrong = made.as_ref().and_then(|made| made.as_ref().err().cloned());
        all_well(&mut *meeting, "hall made", wrong)?;
        let fd = meeting.hand_out(made.and_then(Result::ok).map(|(_, fd)| fd))?;
        let opened = Hall::open(fd.as_fd(), shape);
        all_well(&mut *meeting, "hall opened", opened.as_ref().err().cloned())?;
        let hall = Arc::new(opened?);
        hall.rank(rank).pid.store(std::process::id(), Ordering::Relaxed);
        all_well(&mut *meeting, "joined", None)?;
        let policy = Policy::of(world as usize, cpus::allowed());
        let patience = Patience { policy, stalled: options.stalled, late: options.late };
        Ok(Communicator {
            lanes: Vec::new(),
            plans: Vec::new(),
            flights: Flights::new(rank, world, patience, options.warn),
            hall,
            meeting,
            rank,
            options,
            patience,
        })
    }

    /// Joins the other ranks of a job that a launcher has started (torchrun, Open MPI, MPICH, Intel MPI, Slurm, or `RCC_RANK` and its
    /// likes), as its variables say.
    ///
    /// # Errors
    /// [`Kind::Invalid`] if no launcher's variables are set, or not all; [`Kind::Late`] if some rank does not come; and as
    /// [`Communicator::join`].
    pub fn from_env(options: Options) -> Result<Communicator, Error> {
        let settings = Settings::from_env()?;
        Communicator::connect(&Settings { late: options.late, warn_after: options.warn, ..settings }, options)
    }

    /// Joins the other ranks at an address that all know.
    ///
    /// # Errors
    /// As [`Communicator::from_env`].
    pub fn connect(settings: &Settings, options: Options) -> Result<Communicator, Error> {
        Communicator::join(Box::new(Bootstrap::connect(settings)?), options)
    }

    /// Communicators for `world` ranks that are threads of this process.
    ///
    /// # Errors
    /// As [`Communicator::join`].
    pub fn threads(world: u32, options: &Options) -> Result<Vec<Communicator>, Error> {
        let rooms = Room::for_all(world, options.late);
        let join = |room| Communicator::join(Box::new(room), options.clone());
        std::thread::scope(|scope| {
            let threads: Vec<_> = rooms.into_iter().map(|room| scope.spawn(move || join(room))).collect();
            let lost = |_| Err(Error::new(Kind::Internal, "a rank panicked while it joined"));
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(lost)).collect()
        })
    }

    /// Which rank this is.
    pub fn rank(&self) -> RankId {
        self.rank
    }

    /// How many ranks there are.
    pub fn world(&self) -> u32 {
        self.meeting.world()
    }

    /// Opens a plan; all ranks do, in the same order as all else.
    ///
    /// # Errors
    /// [`Kind::Mismatch`] if ranks open different plans, [`Kind::Invalid`] if it is for another number of ranks,
    /// [`Kind::Unsupported`] if it asks for what CPUs do not have.
    pub fn open(&mut self, plan: &Arc<VerifiedPlan>) -> Result<PlanId, Error> {
        self.open_with(plan, Geometry::of_any_call(plan)?)
    }

    /// The same with so many slots of so many bytes in each channel.
    ///
    /// # Errors
    /// As for [`Communicator::open`]; [`Kind::Invalid`] if these are fewer slots than the plan needs.
    pub fn open_with(&mut self, plan: &Arc<VerifiedPlan>, geometry: Geometry) -> Result<PlanId, Error> {
        self.settled()?;
        let algorithm = &plan.header.algorithm;
        let Geometry { slots, slot_bytes } = geometry;
        let said = format!(
            "{algorithm} (plan {}) for {} ranks, {slots} slots of {slot_bytes} bytes",
            plan.content_hash(),
            plan.header.ranks
        );
        alike(&mut *self.meeting, "plan", &said)?;
        if plan.header.ranks != self.world() {
            let (is, has) = (plan.header.ranks, self.world());
            let message = format!("`{algorithm}` is a plan for {is} ranks, and this communicator has {has}");
            return Err(Error::new(Kind::Invalid, message).help("compile it for the communicator's world"));
        }
        let first = self.lanes.len();
        for _ in 0..self.options.in_flight {
            let lane = Lane::open(&mut *self.meeting, &self.hall, plan, geometry, self.patience)?;
            self.lanes.push(lane);
        }
        self.plans.push(Opened { first, next: 0 });
        Ok(PlanId(self.plans.len() as u32 - 1))
    }

    /// What a plan says.
    ///
    /// # Panics
    /// If it is a plan of another communicator.
    pub fn plan(&self, plan: PlanId) -> &Arc<VerifiedPlan> {
        self.lanes[self.plans[plan.0 as usize].first].plan()
    }

    /// One call; returns when the result is there and nobody touches the buffers any more.
    ///
    /// # Errors
    /// What is wrong with the arguments, or what ended the call at all ranks.
    pub fn call(&mut self, plan: PlanId, shape: Shape, buffers: &mut Buffers<'_>) -> Result<(), Error> {
        let mut scope = Scope::new(self);
        // SAFETY: the scope waits for the call before this function returns, also when it unwinds; until then the call has the
        // buffers to itself.
        let pending = unsafe { scope.start_lent(plan, shape, buffers) }?;
        scope.wait(pending)
    }

    /// One call without a plan, of which no buffer has more than [`small::MOST`] bytes; returns when the result is there. It
    /// is the same call as any other: all ranks make it, in the same order as all else.
    ///
    /// # Errors
    /// What is wrong with the arguments, or what ended the call at all ranks.
    #[inline]
    pub fn small(&mut self, call: &small::Call, buffers: &mut small::Buffers<'_>) -> Result<(), Error> {
        // SAFETY: the call has ended when this function returns (nothing unwinds in a short wait, and a scope waits also then); until
        // then it has the buffers to itself.
        let number = unsafe { self.flights.issue_small(&self.hall, call, buffers) }?;
        if self.flights.wait_shortly(&self.hall) {
            return Ok(());
        }
        Scope::new(self).wait_for(number)
    }

    /// Goes on with its numbers as if so many calls had been made: for tests. All ranks do so, before the first call.
    #[doc(hidden)]
    pub fn number_from(&mut self, calls: u64) {
        self.flights.number_from(&self.hall, calls);
    }

    /// Several calls at once: what is started within has ended when this returns. It also returns the error of the first call
    /// that was not waited for and failed.
    ///
    /// # Errors
    /// As for [`Communicator::call`].
    pub fn scope<'env, T>(
        &mut self,
        work: impl FnOnce(&mut Scope<'_, 'env>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut scope = Scope::new(self);
        let outcome = work(&mut scope);
        let ended = scope.end();
        let value = outcome?;
        ended.map(|()| value)
    }

    /// Waits until all ranks have come here as often as this one; calls that are under way go on.
    ///
    /// # Errors
    /// [`Kind::Late`] if some rank does not come, or what ended the communicator.
    pub fn barrier(&mut self) -> Result<(), Error> {
        if let Some(cause) = self.hall.board().cause() {
            return Err(cause);
        }
        let own = self.hall.rank(self.rank);
        let ranks = u64::from(self.world());
        let complete = self.hall.board().arrive(own, ranks);
        if self.hall.board().complete(complete) {
            (0..ranks as u32).for_each(|rank| self.hall.rank(RankId(rank)).ring());
        }
        let hall = Arc::clone(&self.hall);
        self.flights.barrier(&self.hall, &mut self.lanes, || hall.board().complete(complete))
    }

    /// Zeroed memory that peers may reach into, from what this rank has of it.
    ///
    /// # Errors
    /// [`Kind::Resource`] if there is not so much left.
    pub fn alloc(&self, bytes: u64) -> Result<Registered, Error> {
        Registered::new(&self.hall, self.rank, bytes)
    }

    /// Memory for all buffers of calls of one shape: registered where peers reach into it.
    ///
    /// # Errors
    /// What is wrong with the shape, or [`Kind::Resource`].
    pub fn memory(&mut self, plan: PlanId, shape: Shape) -> Result<Memory, Error> {
        let lane = self.opened(plan)?.first;
        self.free(lane)?;
        self.lanes[lane].with_dependent_mut(|_, rank| rank.memory(shape))
    }

    /// Starts a call on the plan's next lane; if that is busy, after its call has ended.
    ///
    /// # Safety
    /// Until the call has ended the buffers' memory is there, and this call's alone (of `Send` buffers: nobody writes it).
    unsafe fn start(&mut self, plan: PlanId, shape: Shape, buffers: &Buffers<'_>) -> Result<u64, Error> {
        let lanes = self.options.in_flight as usize;
        let opened = self.opened(plan)?;
        let (lane, next) = (opened.first + opened.next, (opened.next + 1) % lanes);
        self.free(lane)?;
        self.lanes[lane].with_dependent_mut(|_, rank| rank.check(shape, buffers))?;
        // SAFETY: checked just now, and the caller's promise.
        let call = unsafe { self.flights.issue(&mut self.lanes, lane) }?;
        self.plans[plan.0 as usize].next = next;
        Ok(call)
    }

    fn opened(&self, plan: PlanId) -> Result<&Opened, Error> {
        let none = || Error::new(Kind::Invalid, "the plan was opened by another communicator");
        self.plans.get(plan.0 as usize).ok_or_else(none)
    }

    fn free(&mut self, lane: usize) -> Result<(), Error> {
        self.flights.until(&self.hall, &mut self.lanes, |flights| !flights.busy(lane));
        match self.hall.board().cause() {
            None => Ok(()),
            Some(cause) => Err(cause),
        }
    }
}

impl Drop for Communicator {
    /// Others that wait for this rank need not wait longer.
    fn drop(&mut self) {
        self.hall.rank(self.rank).gone.store(1, Ordering::Release);
        (0..self.world()).for_each(|rank| self.hall.rank(RankId(rank)).ring());
    }
}

/// That all ranks say the same.
fn alike(meeting: &mut dyn Meeting, what: &str, own: &str) -> Result<(), Error> {
    let all = meeting.gather(what, own.as_bytes())?;
    let text = |rank: usize| String::from_utf8_lossy(&all[rank]).into_owned();
    match all.iter().position(|said| *said != all[0]) {
        None => Ok(()),
        Some(other) => {
            let (first, second) = (text(0), text(other));
            let message =
                format!("ranks 0 and {other} differ in {what}\n  rank 0: {first}\n  rank {other}: {second}");
            Err(Error::new(Kind::Mismatch, message).of(vec![0, other as u32]))
        }
    }
}
