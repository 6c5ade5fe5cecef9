//! Communicators for programs: typed calls of collectives, whose plans are selected, compiled and opened when they are needed first.
//!
//! In: ranks, as for `runtime::comm`; typed buffers. Out: calls. The one hard idea: what a call needs of a plan is a function of what
//! all ranks say alike (collective, root, size class, size of an element, kind of operator, form, kind of memory); it is looked up under one
//! number, and only where it is not there do ranks stop to agree on it (`open`). Calls of which no buffer has more than 4 KiB go beside
//! plans (`runtime::small`).
//!
//! | file | what |
//! |---|---|
//! | `calls` | the collectives, typed |
//! | `own` | plans from files, programs from source |
//! | `addresses` | calls with buffers by their addresses, as other languages have them |
//! | `selected` | plans of standard calls, to do more with |
//! | `key` | what plans are looked up by |
//! | `open` | from a key to an opened plan, at all ranks alike |

mod addresses;
mod calls;
mod key;
mod open;
mod own;
mod selected;

use plan::ids::BufferId;
use runtime::bootstrap::Settings;
use runtime::comm::{self, Meeting, PlanId};
use runtime::error::{Error, Kind};
use rustc_hash::FxHashMap;

pub use self::addresses::{At, NamedAt, Prepared};
use self::key::{Call, Key};
pub(crate) use self::open::{Made, read};
pub use self::own::{Algorithm, Arguments, Source};
use crate::element::{Element, Registered};
use crate::library::Library;
use crate::settings::Options;

/// One rank among others.
///
/// Every rank makes the same calls in the same order. Calls take `&mut self`, and return when the result is there and nobody touches
/// the buffers any more. The first call of a size class stops to select, compile and open its plan.
pub struct Communicator {
    inner: comm::Communicator,
    // Asked for in every call.
    rank: u32,
    world: u32,
    options: Options,
    /// Where plans come from.
    library: Library,
    /// What calls need, by [`Key`].
    ready: FxHashMap<Key, Ready>,
    /// All plans that are open: several keys may have one.
    opened: Vec<Opened>,
}

/// A plan as calls of a standard collective use it.
#[derive(Debug, Clone, Copy)]
struct Ready {
    plan: PlanId,
    /// The buffers of this rank, where it has them.
    send: Option<BufferId>,
    recv: Option<BufferId>,
}

#[derive(Debug)]
struct Opened {
    made: Made,
    plan: PlanId,
}

impl std::fmt::Debug for Communicator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (rank, world) = (self.rank(), self.world());
        f.debug_struct("Communicator").field("rank", &rank).field("world", &world).finish_non_exhaustive()
    }
}

impl Communicator {
    /// Joins all ranks of a meeting. Every rank gives the same options.
    ///
    /// # Errors
    /// [`Kind::Mismatch`] if options or tuning differ, [`Kind::Invalid`] if the tuning file is no such file, and as
    /// [`runtime::comm::Communicator::join`].
    pub fn join(meeting: Box<dyn Meeting>, options: &Options) -> Result<Communicator, Error> {
        Communicator::over(comm::Communicator::join(meeting, options.ranks.clone())?, options)
    }

    /// Joins the other ranks of a job that a launcher has started (`rcc launch`, torchrun, Open MPI, MPICH, Intel MPI, Slurm), as its
    /// variables say; the rest of [`Options`] as [`Options::from_env`] has it.
    ///
    /// # Errors
    /// As [`Communicator::join`], and [`Kind::Invalid`] if no launcher's variables are set, or not all.
    pub fn from_env() -> Result<Communicator, Error> {
        let options = Options::from_env()?;
        Communicator::over(comm::Communicator::from_env(options.ranks.clone())?, &options)
    }

    /// Joins the other ranks at an address that all know.
    ///
    /// # Errors
    /// As [`Communicator::join`].
    pub fn connect(settings: &Settings, options: &Options) -> Result<Communicator, Error> {
        Communicator::over(comm::Communicator::connect(settings, options.ranks.clone())?, options)
    }

    /// Communicators for `world` ranks that are threads of this process.
    ///
    /// # Errors
    /// As [`Communicator::join`].
    pub fn threads(world: u32, options: &Options) -> Result<Vec<Communicator>, Error> {
        let all = comm::Communicator::threads(world, &options.ranks)?;
        std::thread::scope(|scope| {
            let over = |one| scope.spawn(move || Communicator::over(one, options));
            let threads: Vec<_> = all.into_iter().map(over).collect();
            let lost = |_| Err(Error::new(Kind::Internal, "a rank panicked while it joined"));
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(lost)).collect()
        })
    }

    /// Takes over a communicator of the runtime.
    ///
    /// # Errors
    /// As [`Communicator::join`].
    pub fn over(mut inner: comm::Communicator, options: &Options) -> Result<Communicator, Error> {
        let library = Library::agree(&mut inner, options)?;
        let (rank, world, options) = (inner.rank().0, inner.world(), options.clone());
        Ok(Communicator {
            inner,
            rank,
            world,
            options,
            library,
            ready: FxHashMap::default(),
            opened: Vec::new(),
        })
    }

    /// Which rank this is, from 0.
    #[inline]
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// How many ranks there are.
    #[inline]
    pub fn world(&self) -> u32 {
        self.world
    }

    /// Zeroed memory for `count` elements that peers may reach into, of what [`Options::registered`] gives each rank. Calls with such
    /// memory on both sides, at all ranks, copy less.
    ///
    /// # Errors
    /// [`Kind::Resource`] if there is not so much left.
    pub fn alloc<T: Element>(&self, count: usize) -> Result<Registered<T>, Error> {
        let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
        Ok(Registered::new(self.inner.alloc(bytes)?))
    }

    /// Splits into communicators, one for each colour; all ranks call it. Members are numbered in the order of their keys, those of equal keys
    /// in the order of their ranks here. Without a colour a rank is in none of them.
    ///
    /// # Errors
    /// As for [`runtime::comm::Communicator::split`].
    pub fn split(&mut self, color: Option<u32>, key: i64) -> Result<Option<Communicator>, Error> {
        let part = self.inner.split(color, key)?;
        part.map(|part| Communicator::over(part, &self.options)).transpose()
    }

    /// Another communicator of the same ranks. What ends one does not end the other.
    ///
    /// # Errors
    /// As for [`runtime::comm::Communicator::duplicate`].
    pub fn duplicate(&mut self) -> Result<Communicator, Error> {
        Communicator::over(self.inner.duplicate()?, &self.options)
    }

    /// A communicator of all ranks that are still there, after one has failed; all of them call it.
    ///
    /// # Errors
    /// As for [`runtime::comm::Communicator::shrink`].
    pub fn shrink(&mut self) -> Result<Communicator, Error> {
        Communicator::over(self.inner.shrink()?, &self.options)
    }

    /// The runtime's communicator below: plans opened by hand, several calls at once.
    pub fn runtime(&mut self) -> &mut comm::Communicator {
        &mut self.inner
    }

    /// What a call needs, opened if it is not there yet.
    #[inline]
    fn ready(&mut self, call: &Call) -> Result<Ready, Error> {
        let key = call.key();
        match self.ready.get(&key) {
            Some(&ready) => Ok(ready),
            None => self.prepare(call, key),
        }
    }

    #[cold]
    fn prepare(&mut self, call: &Call, key: Key) -> Result<Ready, Error> {
        let made = open::made(&mut self.inner, &mut self.library, call)?;
        let rank = self.inner.rank();
        let plan = self.open(made)?;
        let of = |role| open::buffer(self.inner.plan(plan), role, rank);
        let ready = Ready { plan, send: of(plan::plan::Role::Send), recv: of(plan::plan::Role::Recv) };
        self.ready.insert(key, ready);
        Ok(ready)
    }

    /// Opens a plan, or finds it opened.
    fn open(&mut self, made: Made) -> Result<PlanId, Error> {
        if let Some(known) = self.opened.iter().find(|known| known.made.same(&made)) {
            return Ok(known.plan);
        }
        let plan = self.inner.open_with(&made.plan, made.geometry)?;
        self.opened.push(Opened { made, plan });
        Ok(plan)
    }
}

/// A rank that is none of the world.
fn no_rank(root: u32, world: u32) -> Error {
    Error::new(Kind::Invalid, format!("root {root} is no rank: they are 0 to {}", world - 1))
}
