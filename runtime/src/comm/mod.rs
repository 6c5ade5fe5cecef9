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
//! - A rank makes progress while it is inside: whoever waits for one call drives all of them, also those of communicators that were
//!   split off, duplicated or shrunk from this one, or from which this one was, and of all ranks that
//!   [`Communicator::one_thread`] made. Other communicators of a process are not driven. With [`Options::progress`] a thread
//!   drives what nobody else does.
//! - Wakers of handles, and the `Drop` of buffers that were given to a call, run in whichever thread drove the call to its end, when that
//!   thread is inside of no communicator: they may make calls, split, or wait for other handles. If they panic, that is caught and told to
//!   `tracing`; it ends nothing. (Users' operators run inside: they only compute.)
//! - Calls are lent their buffers: until they return ([`Communicator::call`], [`Communicator::group`]), until a scope ends
//!   ([`Communicator::scope`]), or for good until they are given back ([`Communicator::start`]).

mod abort;
mod agree;
mod assembly;
mod drive;
mod engine;
mod flight;
mod gate;
mod group;
mod handle;
mod lane;
mod meeting;
mod news;
mod progress;
mod scope;
mod shrink;
mod split;
mod sync;

use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plan::dtype::Op;
use plan::ids::RankId;
use plan::verify::VerifiedPlan;

pub use self::abort::Aborter;
pub use self::agree::choosing;
use self::assembly::Assembly;
use self::engine::{Family, Inside, Seat};
use self::flight::Ended;
pub use self::group::{Group, group};
pub use self::handle::{Handle, Refused};
use self::lane::{Lane, all_well};
pub use self::meeting::{Meeting, Room};
pub use self::scope::{Pending, Scope};
use self::split::Entered;
use crate::bootstrap::{Bootstrap, Settings};
use crate::cpus;
use crate::error::{Error, Kind};
use crate::exec::buffers::{Buffers, Memory};
use crate::exec::operator::{MOST_NAME, Operator, User};
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
    /// Whether a thread drives calls that are under way while nobody waits: for programs that start calls and then compute. It needs
    /// a CPU to do so. One thread serves all communicators that drive each other.
    pub progress: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            registered: 0,
            in_flight: 2,
            late: Duration::from_secs(600),
            stalled: Duration::from_secs(60),
            warn: Duration::from_secs(30),
            progress: false,
        }
    }
}

/// A plan that a communicator has opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PlanId {
    /// Which communicator's.
    of: Tag,
    index: u32,
    /// The user's operator that its calls combine by; from 1, or 0.
    operator: u32,
}

/// What tells a communicator from all others that this process has, or has had. (An address would come again.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Tag(u64);

impl Tag {
    /// One that there was not before.
    fn new() -> Tag {
        // Nothing depends on its value: no more is shared by all of the process than that no two are equal.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Tag(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// One rank among others.
pub struct Communicator {
    tag: Tag,
    seat: Seat,
    plans: Vec<Opened>,
    operators: Vec<User>,
    hall: Arc<Hall>,
    meeting: Assembly,
    rank: RankId,
    options: Options,
    patience: Patience,
    /// The new communicators that survivors of this one have agreed on.
    shrunk: u64,
    /// Where the ranks met first: whoever waits there would be told that this rank has left.
    _origin: Option<Box<dyn Meeting>>,
}

/// A plan, its lanes, and which of them the next call takes.
#[derive(Debug)]
struct Opened {
    plan: Arc<VerifiedPlan>,
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
    pub fn join(meeting: Box<dyn Meeting>, options: Options) -> Result<Communicator, Error> {
        Communicator::join_family(meeting, options, &Arc::default())
    }

    fn join_family(
        mut meeting: Box<dyn Meeting>,
        options: Options,
        family: &Arc<Family>,
    ) -> Result<Communicator, Error> {
        let (rank, world) = (RankId(meeting.rank()), meeting.world());
        alike(&mut *meeting, "options", &options.shared())?;
        options.check()?;
        let shape = options.hall(world)?;
        let made = if rank.0 == 0 { Some(Hall::create(shape.clone())) } else { None };
        let wrong = made.as_ref().and_then(|made| made.as_ref().err().cloned());
        all_well(&mut *meeting, "hall made", wrong)?;
        let fd = meeting.hand_out(made.and_then(Result::ok).map(|(_, fd)| fd))?;
        let opened = Hall::open(fd.as_fd(), shape);
        all_well(&mut *meeting, "hall opened", opened.as_ref().err().cloned())?;
        let entered = Entered::new(Arc::new(opened?), rank);
        all_well(&mut *meeting, "joined", None)?;
        entered.stay(options, family, Some(meeting))
    }

    /// One of the ranks of a hall that all of them have mapped and are in.
    fn in_hall(
        hall: Arc<Hall>,
        rank: RankId,
        options: Options,
        family: &Arc<Family>,
        origin: Option<Box<dyn Meeting>>,
    ) -> Communicator {
        let policy = Policy::of(hall.shape().ranks() as usize, cpus::allowed());
        let patience = Patience { policy, stalled: options.stalled, late: options.late };
        let (same, with) = (Arc::clone(&hall), Arc::clone(family));
        Communicator {
            tag: Tag::new(),
            seat: Seat::new(Arc::clone(&hall), rank, patience, options.warn, family),
            plans: Vec::new(),
            operators: Vec::new(),
            meeting: Assembly::new(same, rank, with, patience, options.warn),
            hall,
            rank,
            options,
            patience,
            shrunk: 0,
            _origin: origin,
        }
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
        Communicator::rooms(world, options, |_| Arc::default())
    }

    /// Communicators for `world` ranks that one thread holds: they drive each other. [`group`] starts calls of all of them, as many as
    /// there are. ([`Communicator::start`] for one rank at a time does so up to [`Options::in_flight`] calls of a plan; one more would wait for
    /// ranks whose part has not been started.)
    ///
    /// # Errors
    /// As [`Communicator::join`].
    pub fn one_thread(world: u32, options: &Options) -> Result<Vec<Communicator>, Error> {
        let family = Arc::default();
        Communicator::rooms(world, options, |_| Arc::clone(&family))
    }

    fn rooms(
        world: u32,
        options: &Options,
        family: impl Fn(u32) -> Arc<Family>,
    ) -> Result<Vec<Communicator>, Error> {
        let rooms = Room::for_all(world, options.late);
        std::thread::scope(|scope| {
            let join = |room: Room| {
                let family = family(Meeting::rank(&room));
                scope.spawn(move || Communicator::join_family(Box::new(room), options.clone(), &family))
            };
            let threads: Vec<_> = rooms.into_iter().map(join).collect();
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
        let algorithm = &plan.header.algorithm;
        let Geometry { slots, slot_bytes } = geometry;
        let said = format!(
            "{algorithm} (plan {}) for {} ranks, {slots} slots of {slot_bytes} bytes",
            plan.content_hash(),
            plan.header.ranks
        );
        alike(&mut self.meeting, "plan", &said)?;
        if plan.header.ranks != self.world() {
            let (is, has) = (plan.header.ranks, self.world());
            let message = format!("`{algorithm}` is a plan for {is} ranks, and this communicator has {has}");
            return Err(Error::new(Kind::Invalid, message).help("compile it for the communicator's world"));
        }
        let mut lanes = Vec::new();
        for _ in 0..self.options.in_flight {
            lanes.push(Lane::open(&mut self.meeting, &self.hall, plan, geometry, self.patience)?);
        }
        let mut inside = self.seat.enter();
        let first = inside.lanes.len();
        inside.lanes.extend(lanes);
        drop(inside);
        self.plans.push(Opened { plan: Arc::clone(plan), first, next: 0 });
        Ok(PlanId { of: self.tag, index: self.plans.len() as u32 - 1, operator: 0 })
    }

    /// Whether a plan is one of this communicator.
    ///
    /// # Errors
    /// [`Kind::Invalid`] if another one opened it.
    pub fn has_opened(&self, plan: PlanId) -> Result<(), Error> {
        self.opened(plan).map(|_| ())
    }

    /// What a plan says.
    ///
    /// # Panics
    /// If it is a plan of another communicator.
    pub fn plan(&self, plan: PlanId) -> &Arc<VerifiedPlan> {
        assert_eq!(plan.of, self.tag, "a plan of another communicator");
        &self.plans[plan.index as usize].plan
    }

    /// The same plan, combining by an operator of the user's own: calls of what is returned give [`Op::Sum`](plan::dtype::Op) as their operator, which it takes the
    /// place of. Nothing is opened, and nobody is asked; that all ranks combine by an operator of that name is found out with each call.
    ///
    /// # Errors
    /// [`Kind::Invalid`] if the operator's name is empty or too long, or the plan is not this communicator's.
    pub fn reducing(&mut self, plan: PlanId, operator: Arc<dyn Operator>) -> Result<PlanId, Error> {
        self.opened(plan)?;
        let name: Arc<str> = operator.name().into();
        if name.is_empty() || name.len() > MOST_NAME || name.chars().any(char::is_control) {
            let message = format!("`{}` cannot be the name of an operator", name.escape_debug());
            let help = format!("a name has 1 to {MOST_NAME} bytes, and no control characters");
            return Err(Error::new(Kind::Invalid, message).help(help));
        }
        let number = self.operators.len() as u32 + 1;
        self.operators.push(User { number, name, operator });
        Ok(PlanId { operator: number, ..plan })
    }

    /// One call; returns when the result is there and nobody touches the buffers any more.
    ///
    /// # Errors
    /// What is wrong with the arguments, or what ended the call at all ranks.
    pub fn call(&mut self, plan: PlanId, shape: Shape, buffers: &mut Buffers<'_>) -> Result<(), Error> {
        // SAFETY: the call has ended before this function returns, also when it unwinds; until then it has the buffers to itself.
        let (inside, call) = unsafe { self.issued(plan, shape, buffers, None) }?;
        inside.finish(call)
    }

    /// One call without a plan, of which no buffer has more than [`small::MOST`] bytes; returns when the result is there. It
    /// is the same call as any other: all ranks make it, in the same order as all else.
    ///
    /// # Errors
    /// What is wrong with the arguments, or what ended the call at all ranks.
    #[inline]
    pub fn small(&mut self, call: &small::Call, buffers: &mut small::Buffers<'_>) -> Result<(), Error> {
        let mut inside = self.seat.enter();
        // SAFETY: the call has ended before this function returns, also when it unwinds (a short wait does not); until then it has the
        // buffers to itself.
        let number = unsafe { inside.issue_small(call, buffers) }?;
        if inside.wait_shortly() {
            return Ok(());
        }
        inside.finish(number)
    }

    /// Goes on with its numbers as if so many calls had been made: for tests. All ranks do so, before the first call.
    #[doc(hidden)]
    pub fn number_from(&mut self, calls: u64) {
        let hall = &self.hall;
        self.seat.enter().flights.number_from(hall, calls);
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
        let hall = &self.hall;
        self.seat.enter().barrier(|| hall.board().complete(complete))
    }

    /// What ended the communicator, if something has: every call returns it from now on. What is left is [`Communicator::shrink`].
    pub fn failure(&self) -> Option<Error> {
        self.hall.board().cause()
    }

    /// Something that can end the communicator at all ranks, from any thread, whatever this rank is in.
    pub fn aborter(&self) -> Aborter {
        Aborter::new(Arc::clone(&self.hall), self.rank)
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
        let lanes = self.lanes(plan)?;
        let mut inside = self.seat.enter();
        let lane = inside.any_free(lanes)?;
        inside.lanes[lane].with_dependent_mut(|_, rank| rank.memory(shape))
    }

    /// Whether buffers are what a call of this shape must have.
    fn check(&mut self, plan: PlanId, shape: Shape, buffers: &Buffers<'_>) -> Result<(), Error> {
        let lanes = self.lanes(plan)?;
        let user = user(&self.operators, plan, shape)?;
        let mut inside = self.seat.enter();
        let lane = inside.any_free(lanes)?;
        inside.lanes[lane].with_dependent_mut(|_, rank| rank.check(shape, user, buffers))
    }

    /// Whether the next call of a plan need not wait for another one to end; with `wait`, once that is so.
    fn may_start(&mut self, plan: PlanId, wait: bool) -> Result<bool, Error> {
        let opened = self.opened(plan)?;
        let lane = opened.first + opened.next;
        let mut inside = self.seat.enter();
        if wait {
            inside.free(lane)?;
        }
        Ok(!inside.flights.busy(lane))
    }

    /// The lanes of a plan.
    fn lanes(&self, plan: PlanId) -> Result<Range<usize>, Error> {
        let first = self.opened(plan)?.first;
        Ok(first..first + self.options.in_flight as usize)
    }

    /// Issues a call on the plan's next lane; if that is busy, after its call has ended.
    ///
    /// # Safety
    /// Until the call has ended the buffers' memory is there, and this call's alone (of `Send` buffers: nobody writes it).
    unsafe fn issue(
        &mut self,
        plan: PlanId,
        shape: Shape,
        buffers: &Buffers<'_>,
        whose: Option<Arc<dyn Ended>>,
    ) -> Result<u64, Error> {
        // SAFETY: the caller's promise.
        unsafe { self.issued(plan, shape, buffers, whose) }.map(|(_, call)| call)
    }

    /// The same, and is still inside.
    ///
    /// # Safety
    /// As for [`Communicator::issue`].
    unsafe fn issued(
        &mut self,
        plan: PlanId,
        shape: Shape,
        buffers: &Buffers<'_>,
        whose: Option<Arc<dyn Ended>>,
    ) -> Result<(Inside<'_>, u64), Error> {
        self.opened(plan)?;
        let Communicator { seat, plans, operators, options, .. } = self;
        let opened = &mut plans[plan.index as usize];
        let lane = opened.first + opened.next;
        let user = user(operators, plan, shape)?;
        let mut inside = seat.enter();
        inside.free(lane)?;
        inside.lanes[lane].with_dependent_mut(|_, rank| rank.check(shape, user, buffers))?;
        // SAFETY: checked just now, and the caller's promise.
        let call = unsafe { inside.issue(lane, whose) }?;
        opened.next = (opened.next + 1) % options.in_flight as usize;
        Ok((inside, call))
    }

    fn opened(&self, plan: PlanId) -> Result<&Opened, Error> {
        let none = || Error::new(Kind::Invalid, "the plan was opened by another communicator");
        self.plans.get(plan.index as usize).filter(|_| plan.of == self.tag).ok_or_else(none)
    }
}

impl Options {
    /// What must be the same at all ranks, in words.
    fn shared(&self) -> String {
        format!("{} bytes registered, {} calls in flight", self.registered, self.in_flight)
    }

    /// The hall of so many ranks.
    fn hall(&self, world: u32) -> Result<hall::Shape, Error> {
        Ok(hall::Shape::new(world, |_| self.registered)?.with_boxes())
    }

    fn check(&self) -> Result<(), Error> {
        if self.in_flight == 0 {
            return Err(Error::new(Kind::Invalid, "at least one call must be allowed to be under way"));
        }
        Ok(())
    }
}

impl Drop for Communicator {
    /// Waits for calls that are under way (who panics ends them), and says that this rank makes no more.
    fn drop(&mut self) {
        let mut inside = self.seat.enter();
        if inside.flights.under_way() {
            if std::thread::panicking() {
                self.hall.board().abort(&abort::aborted(self.rank, "it panicked with calls under way"));
            }
            inside.until(|flights| !flights.under_way());
        }
        drop(inside);
        self.hall.rank(self.rank).gone.store(1, Ordering::Release);
        (0..self.world()).for_each(|rank| self.hall.rank(RankId(rank)).ring());
    }
}

/// The operator of a plan's calls, if it is a user's own.
fn user(operators: &[User], plan: PlanId, shape: Shape) -> Result<Option<&User>, Error> {
    let Some(at) = plan.operator.checked_sub(1) else { return Ok(None) };
    if shape.op != Op::Sum {
        let message = format!("{} is asked for where a user's operator is to combine", shape.op);
        return Err(Error::new(Kind::Invalid, message)
            .help("give `sum`, which the user's operator takes the place of"));
    }
    Ok(operators.get(at as usize))
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
