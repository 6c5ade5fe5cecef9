//! Executes plans: one thread per rank drives all blocks of that rank.
//!
//! In: a verified plan, the shared segment, a rank; then calls. Out: results in the caller's buffers, or an error.
//! [`Rank::call`] enters, drives all blocks to their ends (`drive`) and leaves (`leave`); a communicator does the same with the
//! parts of it (`call`), for several calls at once. Blocks are state machines
//! ([`block`]), places and lengths come from [`places`], those of peers from [`windows`], arithmetic from [`kernels`].

pub mod block;
pub mod buffers;
mod call;
pub(crate) mod drive;
pub mod exposed;
pub mod kernels;
mod leave;
pub mod operator;
pub mod places;
mod prepare;
pub mod program;
pub mod windows;

use std::sync::atomic::Ordering;
use std::time::Duration;

use plan::dtype::{Dtype, Op};
use plan::file::ContentHash;
use plan::ids::RankId;
use plan::layout::Layout;
use plan::plan::Plan;
use plan::verify::VerifiedPlan;

use self::block::Machine;
use self::buffers::{Buffers, Memory};
use self::call::Current;
use self::drive::{Stop, drive, pause};
use self::exposed::{Exposed, accessors};
use self::operator::User;
use self::prepare::{Given, Prepared};
use self::program::Program;
use self::windows::Window;
use crate::channel::writing::Writing;
use crate::channel::{Incoming, Outgoing};
use crate::error::{Error, Kind};
use crate::memory::caches;
use crate::memory::memfd::Mapping;
use crate::memory::registered::Registered;
use crate::memory::segment::Segment;
use crate::wait::{Policy, Waiter};
use crate::watch;

/// What a call is about, the same on all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Shape {
    /// Elements of a block.
    pub elements: u64,
    /// Their type.
    pub dtype: Dtype,
    /// The operator.
    pub op: Op,
    /// Send and receive memory overlap as the plan says.
    pub in_place: bool,
}

/// How a rank waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Spin, yield, sleep.
    pub policy: Policy,
    /// For how long nothing may move once all ranks have entered the call.
    pub stalled: Duration,
    /// For how long a rank may not have entered it.
    pub late: Duration,
}

/// One rank of a job, connected to the others.
#[derive(Debug)]
pub struct Rank<'s> {
    plan: &'s VerifiedPlan,
    segment: &'s Segment,
    rank: RankId,
    machine: Machine<'s>,
    patience: Patience,
    waiter: Waiter,
    exposed: Exposed,
    /// The ranks that reach into memory of this one.
    accessors: Vec<RankId>,
    call: u64,
    /// The shapes called last, and which of them is at hand.
    prepared: Vec<Prepared>,
    at: usize,
    scratch: Mapping,
    /// The call that is under way.
    current: Option<Current<'s>>,
    plan_hash: ContentHash,
    /// Bytes of the last cache.
    cache: u64,
}

impl<'s> Rank<'s> {
    /// Connects `rank` of `plan` to its channels in `segment`, whose slots have `slot_bytes` each.
    pub fn connect(
        plan: &'s VerifiedPlan,
        segment: &'s Segment,
        slot_bytes: u32,
        rank: RankId,
        patience: Patience,
    ) -> Result<Rank<'s>, Error> {
        let program = Program::new(plan, rank)?;
        let copies = plan.header.copies;
        let shape = segment.shape();
        let rank_of = |block: plan::ids::BlockId| plan.blocks[block.index()].rank;
        let outgoing = program.outgoing.iter().flat_map(|&channel| {
            let traded = shape.traded(channel);
            // Whoever writes one of two that trade reads the other.
            let number = program.incoming.iter().position(|&(read, _)| Some(read) == traded).unwrap_or(0);
            (0..copies).map(move |copy| {
                let readers = plan.readers(&plan.channels[channel.index()]).iter().map(|&b| rank_of(b));
                let end = Outgoing::new(segment, shape.instance(channel, copy), readers);
                match traded {
                    None => end,
                    Some(other) => {
                        let number = number * copies as usize + copy as usize;
                        end.trading(segment, shape.instance(other, copy), number)
                    }
                }
            })
        });
        let outgoing = outgoing.collect();
        let incoming = program.incoming.iter().flat_map(|&(channel, reader)| {
            (0..copies).map(move |copy| {
                let writer = rank_of(plan.channels[channel.index()].writer);
                let end = Incoming::new(segment, shape.instance(channel, copy), reader as usize, writer);
                match shape.traded(channel) {
                    None => end,
                    Some(other) => end.trading(segment, shape.instance(other, copy)),
                }
            })
        });
        let incoming = incoming.collect();
        let windows =
            program.windows.iter().map(|&(owner, buffer)| Window::new(segment, owner, buffer)).collect();
        let words = segment.blocks(rank).iter().collect();
        let ends = (outgoing, incoming);
        let machine = Machine::new(program, words, ends, windows, copies, u64::from(slot_bytes));
        let plan_hash = plan.content_hash();
        let waiter = Waiter::new(patience.policy);
        Ok(Rank {
            plan,
            segment,
            rank,
            machine,
            patience,
            waiter,
            exposed: Exposed::of(plan),
            accessors: accessors(plan, rank),
            call: 0,
            prepared: Vec::new(),
            at: 0,
            scratch: Mapping::private(0)?,
            current: None,
            plan_hash,
            cache: caches::last(),
        })
    }

    /// The same on a machine whose last cache has so many bytes: what is much larger is stored past it.
    #[must_use]
    pub fn with_cache(self, bytes: u64) -> Rank<'s> {
        Rank { cache: bytes, ..self }
    }

    /// The same on a machine where slots and places of peers are always written past the caches.
    #[must_use]
    pub fn with_stores_past_caches(mut self) -> Rank<'s> {
        self.machine.outgoing.iter_mut().for_each(|end| end.writing = Writing::past());
        self.machine.reaching.fill(Writing::past());
        self
    }

    /// Works out all that does not change between calls of one shape; `call` does it if this was not called before.
    pub fn prepare(&mut self, shape: Shape) -> Result<&Layout, Error> {
        self.prepare_by(shape, None)
    }

    /// The same for calls with a user's operator.
    fn prepare_by(&mut self, shape: Shape, user: Option<&User>) -> Result<&Layout, Error> {
        if self.prepared.get(self.at).is_none_or(|prepared| !prepared.is(shape, user)) {
            self.turn_to(shape, user)?;
        }
        Ok(&self.prepared[self.at].layout)
    }

    /// Zeroed memory that this rank's peers may reach into, from what the segment has of it for this rank.
    pub fn alloc(&self, bytes: u64) -> Result<Registered, Error> {
        Registered::new(self.segment.hall(), self.rank, bytes)
    }

    /// Memory for all buffers of calls of one shape: registered where peers reach into it.
    pub fn memory(&mut self, shape: Shape) -> Result<Memory, Error> {
        let (plan, segment, rank): (&Plan, _, _) = (self.plan, self.segment, self.rank);
        self.prepare(shape)?;
        let prepared = &self.prepared[self.at];
        Memory::new(plan, &prepared.layout, &self.exposed, segment, rank, shape.in_place)
    }

    /// One call of the plan, with this rank's buffers; returns when the result is there and nobody touches the
    /// buffers any more.
    ///
    /// # Errors
    /// Whatever ended the call also stands on the board and ends it for all ranks; no further call is possible then.
    pub fn call(&mut self, shape: Shape, buffers: &mut Buffers<'_>) -> Result<(), Error> {
        let call = self.call + 1;
        self.check(shape, None, buffers)?;
        // SAFETY: `Buffers` borrows the caller's memory exclusively (for `Send` buffers: shared) for as long as this function runs,
        // and was checked just now.
        unsafe { self.enter(call) }?;
        let mut waiter = std::mem::replace(&mut self.waiter, Waiter::new(self.patience.policy));
        let (segment, rank, patience) = (self.segment, self.rank, self.patience);
        let ended = drive(|| self.turn(), &mut waiter, segment, rank, call, patience);
        self.waiter = waiter;
        let ended = self.leave(ended);
        match ended {
            Ok(()) => self.segment.rank(self.rank).left.store(call, Ordering::Relaxed),
            Err(_) => self.settle(call),
        }
        ended
    }

    /// Waits until every rank of the job has come here as often as this one.
    pub fn barrier(&mut self) -> Result<(), Error> {
        let board = self.segment.board();
        let own = self.segment.rank(self.rank);
        let ranks = u64::from(self.segment.shape().ranks());
        let complete = board.arrive(own, ranks);
        if board.complete(complete) {
            (0..ranks as u32).for_each(|rank| self.segment.rank(RankId(rank)).ring());
        }
        let work = || (0..ranks as u32).map(|r| self.segment.rank(RankId(r)).work.load(Ordering::Relaxed));
        self.waiter.reset();
        let mut last = work().fold(0, u64::wrapping_add);
        while !board.complete(complete) {
            let ready = || board.complete(complete);
            match pause(&mut self.waiter, self.segment.hall(), self.rank, self.patience.late, ready) {
                None => {}
                Some(Stop::Deadline { waited }) => {
                    // A rank that prepares or compares data is not lost, however long it takes.
                    let now = work().fold(0, u64::wrapping_add);
                    if std::mem::replace(&mut last, now) == now {
                        return Err(self.give_up(watch::late_at_barrier(
                            self.segment.hall(),
                            self.rank,
                            waited,
                        )));
                    }
                    self.waiter.reset();
                }
                Some(stop) => return Err(self.fail(stop)),
            }
        }
        Ok(())
    }

    /// The calls made so far.
    pub fn calls(&self) -> u64 {
        self.call
    }

    /// Has a shape at hand: one of those called last, or a new one in the place of the one that was called longest ago.
    fn turn_to(&mut self, shape: Shape, user: Option<&User>) -> Result<(), Error> {
        self.idle()?;
        match self.prepared.iter().position(|prepared| prepared.is(shape, user)) {
            Some(at) => {
                let prepared = self.prepared.remove(at);
                self.prepared.push(prepared);
            }
            None => {
                let slot_bytes = self.machine.slot_bytes as u32;
                let given = Given { slot_bytes, exposed: self.exposed.any(), cache: self.cache };
                let new = Prepared::new(self.plan, self.plan_hash, self.rank, given, shape, user)?;
                if new.scratch_bytes > self.scratch.bytes() as u64 {
                    self.scratch = Mapping::private(new.scratch_bytes)?;
                }
                if self.prepared.len() == prepare::SHAPES {
                    self.prepared.remove(0);
                }
                self.prepared.push(new);
            }
        }
        self.at = self.prepared.len() - 1;
        let layout = &self.prepared[self.at].layout;
        self.machine.windows.iter_mut().for_each(|window| window.prepare(layout));
        Ok(())
    }

    pub(crate) fn fail(&self, stop: Stop) -> Error {
        match stop {
            Stop::Aborted => {
                let unknown = || Error::new(Kind::Aborted, "the run was stopped");
                self.seen(self.segment.board().cause().unwrap_or_else(unknown))
            }
            Stop::Deadline { waited } => {
                self.give_up(watch::nothing_moves(self.plan, self.segment, self.rank, self.call, waited))
            }
            Stop::Mismatch { end } => {
                let from = self.machine.incoming[end].from;
                self.give_up(watch::mismatch(self.segment.hall(), self.rank, from, self.call))
            }
            Stop::Differs { from, call } => {
                self.give_up(watch::mismatch(self.segment.hall(), self.rank, from, call))
            }
            Stop::Gone { from } => {
                let others = format!("others are in call {}", self.call);
                self.give_up(watch::has_gone(self.segment.hall(), from, &others))
            }
            Stop::Elsewhere => {
                let error = watch::elsewhere(self.segment.hall(), self.rank);
                self.give_up(error.unwrap_or_else(|| Error::new(Kind::Mismatch, "ranks do different things")))
            }
            Stop::Panicked => {
                let user = self.prepared[self.at].setting.user.as_ref();
                let name = user.map_or("", |user| &*user.name);
                let message = format!("the operator `{name}` panicked at rank {}", self.rank.0);
                let error = Error::new(Kind::Aborted, message).culprit(self.rank.0);
                self.give_up(error.help("correct the operator"))
            }
            Stop::Astray { window } => {
                let window = &self.machine.windows[window];
                let name = &self.plan.buffers[window.buffer.index()].name;
                let message = format!(
                    "rank {} says that its buffer `{name}` lies outside of its registered memory",
                    window.owner.0
                );
                self.give_up(Error::new(Kind::Internal, message).culprit(window.owner.0))
            }
        }
    }

    /// Ends the run for all ranks; the first error wins, also over this one.
    fn give_up(&self, error: Error) -> Error {
        let error = self.seen(error);
        if self.segment.board().abort(&error) {
            return error;
        }
        self.seen(self.segment.board().cause().unwrap_or(error))
    }

    /// The error, as this rank sees it: where it stands itself, and where the others stand.
    fn seen(&self, mut error: Error) -> Error {
        let positions = watch::positions(self.plan, self.segment);
        let (own, others) = positions.into_iter().partition(|p| p.rank == self.rank.0);
        let own: Vec<crate::error::Position> = own;
        error.seen = own.into_iter().next();
        error.others = others;
        error
    }
}
