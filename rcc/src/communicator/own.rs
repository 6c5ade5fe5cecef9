//! A user's own algorithms: plans from files, programs from source.
//!
//! In: a plan file, or a text in the language of `.coll`. Out: an [`Algorithm`] that is open at all ranks, and calls of it, with buffers by
//! their names in the program.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use compiler::belongs;
use compiler::chooser::{Effort, Fixed};
use compiler::elaborate::Request;
use compiler::limits::Limits;
use compiler::options::Direct;
use compiler::pipeline::{self, Loaded};
use plan::dtype::{Dtype, Op};
use plan::ids::BufferId;
use plan::plan::{Forms, Plan, Role};
use plan::verify::VerifiedPlan;
use runtime::comm::{PlanId, choosing};
use runtime::error::{Error, Kind};
use runtime::exec::Shape;
use runtime::exec::buffers::Buffers;
use runtime::job::{Geometry, Job};
use runtime::memory::registered::Registered;
use sha2::{Digest, Sha256};

use super::open::{handed_out, read, well};
use super::{Communicator, Made};
use crate::cache::CacheKey;
use crate::element::{Element, Memory, MemoryMut, bytes, bytes_mut};
use crate::library::{misuse, not_made, told};
use crate::make::{How, NotMade};
use crate::request::{self, Misuse};
use crate::select::tuning;

/// A program to be compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// What messages call the text: a file's name.
    pub name: String,
    /// The text.
    pub text: String,
    /// Which of its algorithms; none: its only one.
    pub algorithm: Option<String>,
    /// Level sizes of the world, for algorithms of several levels; empty: all ranks in one.
    pub shape: Vec<u32>,
    /// Parameters of the algorithm, by name.
    pub params: Vec<(String, String)>,
    /// The size of the calls it is for, by which its schedule and the compiler choose; none: large ones.
    pub bytes: Option<u64>,
    /// Ranks may reach into each other's buffers, which are then all from [`Communicator::alloc`].
    pub registered: bool,
}

/// A plan that is open at all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Algorithm(pub(super) PlanId);

/// What an algorithm is called with.
#[derive(Debug)]
pub struct Arguments<'a> {
    dtype: Option<Dtype>,
    /// Two buffers were of different types.
    mixed: bool,
    lent: Vec<Lent<'a>>,
}

#[derive(Debug)]
enum Lent<'a> {
    Send(String, &'a [u8]),
    SendRegistered(String, &'a Registered),
    Recv(String, &'a mut [u8]),
    RecvRegistered(String, &'a mut Registered),
    /// Parts in bytes.
    Same(&'a mut [u8], Vec<(String, Range<usize>)>),
    SameRegistered(&'a mut Registered, Vec<(String, Range<usize>)>),
}

impl Source {
    /// A text with one algorithm.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        Source {
            name: name.into(),
            text: text.into(),
            algorithm: None,
            shape: Vec::new(),
            params: Vec::new(),
            bytes: None,
            registered: false,
        }
    }

    /// A standard algorithm, such as `std::allreduce::ring`.
    pub fn standard(algorithm: impl Into<String>) -> Source {
        Source { algorithm: Some(algorithm.into()), ..Source::new("", "") }
    }

    /// A parameter of the algorithm.
    #[must_use]
    pub fn param(mut self, name: impl Into<String>, value: impl Into<String>) -> Source {
        self.params.push((name.into(), value.into()));
        self
    }

    /// What tells two of them apart.
    fn digest(&self) -> Vec<u8> {
        let parts =
            (&self.name, &self.text, &self.algorithm, &self.shape, &self.params, self.bytes, self.registered);
        let text = postcard::to_stdvec(&parts).unwrap_or_default();
        Sha256::digest(text).to_vec()
    }
}

impl Communicator {
    /// Reads a plan that `rcc compile` wrote, verifies it, and opens it. All ranks do, each from a file of its own or one of all.
    ///
    /// # Errors
    /// [`Kind::Invalid`] if the file is no plan, or breaks its promise; [`Kind::Mismatch`] if ranks have different plans.
    pub fn load(&mut self, path: impl AsRef<Path>) -> Result<Algorithm, Error> {
        let path = path.as_ref();
        self.inner.agree(&choosing("a plan from a file", 0, (Dtype::U8, Op::Sum)))?;
        let about = |error: String| Error::new(Kind::Invalid, format!("{}: {error}", path.display()));
        let made = std::fs::read(path)
            .map_err(|error| about(error.to_string()))
            .and_then(|bytes| read(&bytes).map_err(|error| about(error.message.clone())))
            .and_then(|plan| {
                let geometry = Geometry::of_any_call(&plan)?;
                Ok(Made { plan: Arc::new(plan), geometry })
            });
        let made = well(&mut self.inner, made)?;
        Ok(Algorithm(self.open(made)?))
    }

    /// Compiles a program, and opens its plan. All ranks give the same text.
    ///
    /// # Errors
    /// [`Kind::Invalid`] with what the compiler says of the program; [`Kind::Mismatch`] if ranks give different ones.
    pub fn compile(&mut self, source: &Source) -> Result<Algorithm, Error> {
        let digest: String = source.digest().iter().map(|byte| format!("{byte:02x}")).take(16).collect();
        let what = source.algorithm.as_deref().unwrap_or(&source.name);
        let what = format!("the program {} ({digest})", what.chars().take(40).collect::<String>());
        self.inner.agree(&choosing(&what, 0, (Dtype::U8, Op::Sum)))?;
        let (world, topology) = (self.world(), self.library.topology().clone());
        let library = &self.library;
        let key =
            CacheKey::of(&[b"program", &source.digest(), format!("{world} on {topology:?}").as_bytes()]);
        let of_world = |plan: &Plan| plan.header.ranks == world;
        let made = handed_out(&mut self.inner, &of_world, &mut || {
            let limits = Limits::default();
            let (loaded, request) = found(source, world, &limits)?;
            // A verified plan keeps the promise that it carries; that it is the program's is for the program to say.
            let of_program = |plan: &Plan| belongs::is_of(plan, &loaded.program, &request, &limits);
            if let Some(made) = library.cached(&key, &of_program) {
                return Ok(made);
            }
            let how = How {
                fixed: Fixed { direct: (!source.registered).then_some(Direct::Never), ..Fixed::default() },
                dtype: Dtype::F32,
                forms: Forms { disjoint: true, same: true },
                effort: Effort::Quick,
                topology: topology.clone(),
                limits,
            };
            let made = compiled(&loaded, &request, source.bytes, &how)?;
            library.keep(&key, &made);
            Ok(made)
        })?;
        Ok(Algorithm(self.open(made)?))
    }

    /// What the plan of an algorithm says: its buffers, its promise.
    ///
    /// # Panics
    /// If it is an algorithm of another communicator.
    pub fn plan(&self, algorithm: Algorithm) -> &Arc<VerifiedPlan> {
        self.inner.plan(algorithm.0)
    }

    /// Calls an algorithm.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for an algorithm of another communicator, for buffers that it does not have or that are not as long as each other asks for;
    /// and what ended the call at all ranks.
    pub fn call(&mut self, algorithm: Algorithm, op: Op, arguments: Arguments<'_>) -> Result<(), Error> {
        self.inner.has_opened(algorithm.0)?;
        let plan: &Plan = self.inner.plan(algorithm.0);
        let (shape, mut buffers) = arguments.laid_out(plan, self.inner.rank(), op)?;
        self.inner.call(algorithm.0, shape, &mut buffers)
    }
}

/// A program that is right, and what is asked of it.
fn found(source: &Source, world: u32, limits: &Limits) -> Result<(Loaded, Request), Error> {
    let files: Vec<_> = match source.text.is_empty() {
        true => Vec::new(),
        false => vec![(source.name.clone(), source.text.clone().into_bytes())],
    };
    let loaded = pipeline::load(&files, limits);
    if !loaded.diagnostics.is_empty() {
        return Err(told(&loaded.diagnostics, &loaded));
    }
    let program = &loaded.program;
    let here =
        |id: &compiler::check::checked::AlgorithmId| loaded.files.contains(&program.algorithm(*id).file);
    let called = |id: &compiler::check::checked::AlgorithmId, name: &str| {
        let full = &program.algorithm(*id).name;
        full == name || full.rsplit("::").next() == Some(name)
    };
    let all: Vec<_> = match (&source.algorithm, files.is_empty()) {
        (Some(name), true) => program.find(name).into_iter().collect(),
        (Some(name), false) => program.algorithms().filter(here).filter(|id| called(id, name)).collect(),
        (None, _) => program.algorithms().filter(here).collect(),
    };
    let [id] = all[..] else {
        let names: Vec<&str> =
            program.algorithms().filter(here).map(|id| &*program.algorithm(id).name).collect();
        let message = match &source.algorithm {
            Some(name) => format!("there is no algorithm `{name}`"),
            None => format!("{} has {} algorithms, and none is named", source.name, all.len()),
        };
        let error = Error::new(Kind::Invalid, message);
        return Err(if names.is_empty() {
            error
        } else {
            error.help(format!("it has {}", names.join(", ")))
        });
    };
    let algorithm = program.algorithm(id);
    let asked = if source.shape.is_empty() { vec![world] } else { source.shape.clone() };
    if crate::world::counted(&asked) != Some(world) {
        let message = format!("{} has not {world} ranks", crate::world::show(&asked));
        return Err(misuse(Misuse::new(message)));
    }
    let request = request::known_params(&[algorithm], &source.params)
        .and_then(|()| request::one_shape(algorithm, &asked))
        .and_then(|shape| Ok((shape, request::given(algorithm, &source.params)?)))
        .and_then(|(shape, given)| request::one_root(program, id, &shape, &given))
        .map_err(misuse)?;
    Ok((loaded, request))
}

/// Its plan.
fn compiled(loaded: &Loaded, request: &Request, bytes: Option<u64>, how: &How) -> Result<Made, Error> {
    let made = how.make(loaded, request, bytes, &mut |_| {});
    let made = made.map_err(|failure| not_made(NotMade::Failed(failure), loaded))?;
    let plan = made.compiled.plan;
    let slots = made.chosen.best.map(|best| best.0.slots);
    let geometry = Geometry::of_any_call(&plan)?;
    let shape = Shape { elements: 1, dtype: Dtype::F32, op: Op::Sum, in_place: !plan.header.forms.disjoint };
    let job = Job { slots, slot_bytes: Some(geometry.slot_bytes), ..Job::new(shape) };
    let cores = tuning::cores(&how.topology).unwrap_or(u32::MAX);
    let geometry = Geometry::of(&plan, &job)?.roomy(&plan, cores);
    Ok(Made { plan: Arc::new(plan), geometry })
}

impl Default for Arguments<'_> {
    fn default() -> Self {
        Arguments::new()
    }
}

impl<'a> Arguments<'a> {
    /// None yet.
    pub fn new() -> Arguments<'a> {
        Arguments { dtype: None, mixed: false, lent: Vec::new() }
    }

    /// What the algorithm reads as `name`.
    #[must_use]
    pub fn send<T: Element>(mut self, name: &str, memory: &'a (impl Memory<T> + ?Sized)) -> Arguments<'a> {
        self.of::<T>();
        self.lent.push(match memory.registered() {
            Some(piece) => Lent::SendRegistered(name.to_string(), piece.memory()),
            None => Lent::Send(name.to_string(), bytes(memory.elements())),
        });
        self
    }

    /// What it writes as `name`.
    #[must_use]
    pub fn recv<T: Element>(
        mut self,
        name: &str,
        memory: &'a mut (impl MemoryMut<T> + ?Sized),
    ) -> Arguments<'a> {
        self.of::<T>();
        let name = name.to_string();
        self.lent.push(match memory.registered().is_some() {
            true => match memory.registered_mut() {
                Some(piece) => Lent::RecvRegistered(name, piece.memory_mut()),
                None => return self,
            },
            false => Lent::Recv(name, bytes_mut(memory.elements_mut())),
        });
        self
    }

    /// What it reads and writes as `name`: an `inout` of the collective, in place.
    #[must_use]
    pub fn both<T: Element>(self, name: &str, memory: &'a mut (impl MemoryMut<T> + ?Sized)) -> Arguments<'a> {
        let all = 0..memory.elements().len();
        self.overlapping(memory, &[(name, all)])
    }

    /// Several buffers in one memory, each with the elements that are its own, as the collective's `inplace` says.
    #[must_use]
    pub fn overlapping<T: Element>(
        mut self,
        memory: &'a mut (impl MemoryMut<T> + ?Sized),
        parts: &[(&str, Range<usize>)],
    ) -> Arguments<'a> {
        self.of::<T>();
        let size = size_of::<T>();
        let part = |(name, range): &(&str, Range<usize>)| {
            (name.to_string(), range.start.saturating_mul(size)..range.end.saturating_mul(size))
        };
        let parts = parts.iter().map(part).collect();
        self.lent.push(match memory.registered().is_some() {
            true => match memory.registered_mut() {
                Some(piece) => Lent::SameRegistered(piece.memory_mut(), parts),
                None => return self,
            },
            false => Lent::Same(bytes_mut(memory.elements_mut()), parts),
        });
        self
    }

    fn of<T: Element>(&mut self) {
        self.mixed |= self.dtype.is_some_and(|dtype| dtype != T::DTYPE);
        self.dtype = Some(T::DTYPE);
    }

    /// As a plan asks for them.
    fn laid_out(self, plan: &Plan, rank: plan::ids::RankId, op: Op) -> Result<(Shape, Buffers<'a>), Error> {
        let invalid = |message: String| Error::new(Kind::Invalid, message);
        let dtype =
            self.dtype.ok_or_else(|| invalid("an algorithm is called with at least one buffer".into()))?;
        if self.mixed {
            return Err(invalid("the buffers of a call have elements of one type".into()));
        }
        let find = |name: &str, wanted: &dyn Fn(Role) -> bool| -> Result<Vec<BufferId>, Error> {
            let all = plan.buffers.iter().enumerate();
            let named = all.filter(|(_, b)| b.name == name && wanted(b.role) && b.at.holds(rank));
            let found: Vec<BufferId> = named.map(|(at, _)| BufferId::new(at)).collect();
            if found.is_empty() {
                let known = plan.buffers.iter().filter(|b| b.role != Role::Scratch && b.at.holds(rank));
                let mut known: Vec<&str> = known.map(|b| b.name.as_str()).collect();
                known.dedup();
                let message =
                    format!("`{}` has no such buffer `{name}` at rank {}", plan.header.algorithm, rank.0);
                return Err(invalid(message).help(format!("there are {}", known.join(", "))));
            }
            Ok(found)
        };
        let mut elements = None;
        let mut counted = |buffer: BufferId, bytes: usize| {
            let side = u64::from(plan.buffers[buffer.index()].blocks) * u64::from(dtype.size());
            elements = elements.or((bytes as u64).checked_div(side));
        };
        let (send, recv) = (|role| role == Role::Send, |role| role == Role::Recv);
        let caller = |role| role != Role::Scratch;
        let parts_of = |parts: Vec<(String, Range<usize>)>| -> Result<Vec<(BufferId, Range<usize>)>, Error> {
            let mut all = Vec::new();
            for (name, range) in parts {
                for buffer in find(&name, &caller)? {
                    all.push((buffer, range.clone()));
                }
            }
            Ok(all)
        };
        let (mut buffers, mut in_place) = (Buffers::new(plan), false);
        for lent in self.lent {
            buffers = match lent {
                Lent::Send(name, memory) => {
                    let buffer = find(&name, &send)?[0];
                    counted(buffer, memory.len());
                    buffers.send(buffer, memory)
                }
                Lent::SendRegistered(name, memory) => {
                    let buffer = find(&name, &send)?[0];
                    counted(buffer, memory.len());
                    buffers.send_registered(buffer, memory)
                }
                Lent::Recv(name, memory) => {
                    let buffer = find(&name, &recv)?[0];
                    counted(buffer, memory.len());
                    buffers.recv(buffer, memory)
                }
                Lent::RecvRegistered(name, memory) => {
                    let buffer = find(&name, &recv)?[0];
                    let all = 0..memory.len();
                    counted(buffer, all.end);
                    buffers.registered(memory, &[(buffer, all)])?
                }
                Lent::Same(memory, parts) => {
                    in_place = true;
                    let parts = parts_of(parts)?;
                    parts.iter().for_each(|(buffer, range)| counted(*buffer, range.len()));
                    buffers.same(memory, &parts)?
                }
                Lent::SameRegistered(memory, parts) => {
                    in_place = true;
                    let parts = parts_of(parts)?;
                    parts.iter().for_each(|(buffer, range)| counted(*buffer, range.len()));
                    buffers.registered(memory, &parts)?
                }
            };
        }
        Ok((Shape { elements: elements.unwrap_or(0), dtype, op, in_place }, buffers))
    }
}
