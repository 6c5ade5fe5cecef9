//! Executes plans: one thread per rank drives all blocks of that rank.
//!
//! In: a verified plan, the shared segment, a rank; then calls. Out: results in the caller's buffers, or an error.
//! [`Rank::call`] enters, drives all blocks to their ends (`drive`) and leaves (`leave`). Blocks are state machines
//! ([`block`]), places and lengths come from [`places`], those of peers from [`windows`], arithmetic from [`kernels`].

pub mod block;
pub mod buffers;
mod drive;
pub mod exposed;
pub mod kernels;
mod leave;
pub mod places;
pub mod program;
pub mod windows;

use std::sync::atomic::Ordering;
use std::time::Duration;

use plan::dtype::{Dtype, Op};
use plan::file::ContentHash;
use plan::ids::{BufferId, RankId};
use plan::layout::Layout;
use plan::plan::{Form, Plan};
use plan::signature::{self, Signature};
use plan::verify::VerifiedPlan;

use self::block::{Act, Machine};
use self::buffers::{Buffers, Memory};
use self::drive::{Stop, drive, pause};
use self::exposed::{Exposed, accessors};
use self::leave::Access;
use self::places::{Area, Cells, Setting};
use self::program::Program;
use self::windows::Window;
use crate::call::Record;
use crate::channel::{Incoming, Outgoing};
use crate::error::{Error, Kind};
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
    prepared: Option<Prepared>,
    records: u64,
    /// The call that the last of them begins with.
    recorded: u64,
    plan_hash: ContentHash,
}

/// What is worked out once for all calls of one shape.
#[derive(Debug)]
struct Prepared {
    shape: Shape,
    layout: Layout,
    setting: Setting,
    scratch: Mapping,
    signature: Signature,
    /// The buffers found to be as they must; mostly those of the next call.
    checked: Option<Vec<Area>>,
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
            (0..copies).map(move |copy| {
                let readers = plan.readers(&plan.channels[channel.index()]).iter().map(|&b| rank_of(b));
                Outgoing::new(segment, shape.instance(channel, copy), readers)
            })
        });
        let outgoing = outgoing.collect();
        let incoming = program.incoming.iter().flat_map(|&(channel, reader)| {
            (0..copies).map(move |copy| {
                let writer = rank_of(plan.channels[channel.index()].writer);
                Incoming::new(segment, shape.instance(channel, copy), reader as usize, writer)
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
            prepared: None,
            records: 0,
            recorded: 0,
            plan_hash,
        })
    }

    /// Works out all that does not change between calls of one shape; `call` does it if this was not called before.
    pub fn prepare(&mut self, shape: Shape) -> Result<&Layout, Error> {
        if self.prepared.as_ref().is_none_or(|p| p.shape != shape) {
            self.prepared = Some(self.work_out(shape)?);
        }
        match &self.prepared {
            Some(prepared) => Ok(&prepared.layout),
            None => Err(Error::new(Kind::Internal, "a call was not prepared")),
        }
    }

    /// Zeroed memory that this rank's peers may reach into, from what the segment has of it for this rank.
    pub fn alloc(&self, bytes: u64) -> Result<Registered<'s>, Error> {
        Registered::new(self.segment, self.rank, bytes)
    }

    /// Memory for all buffers of calls of one shape: registered where peers reach into it.
    pub fn memory(&mut self, shape: Shape) -> Result<Memory<'s>, Error> {
        let (plan, segment, rank): (&Plan, _, _) = (self.plan, self.segment, self.rank);
        self.prepare(shape)?;
        let Some(prepared) = &self.prepared else {
            return Err(Error::new(Kind::Internal, "a call was not prepared"));
        };
        Memory::new(plan, &prepared.layout, &self.exposed, segment, rank, shape.in_place)
    }

    /// One call of the plan, with this rank's buffers; returns when the result is there and nobody touches the
    /// buffers any more.
    ///
    /// # Errors
    /// Whatever ended the call also stands on the board and ends it for all ranks; no further call is possible then.
    pub fn call(&mut self, shape: Shape, buffers: &mut Buffers<'_>) -> Result<(), Error> {
        if let Some(cause) = self.segment.board().cause() {
            return Err(self.seen(cause));
        }
        self.prepare(shape)?;
        let Some(prepared) = &mut self.prepared else {
            return Err(Error::new(Kind::Internal, "a call was not prepared"));
        };
        if prepared.checked.as_deref() != Some(buffers.areas()) {
            buffers.check(self.plan, &prepared.layout, self.rank, shape.in_place)?;
            buffers.check_registered(self.plan, &self.exposed, self.segment, self.rank)?;
            prepared.checked = Some(buffers.areas().to_vec());
        }

        // ENTRY: from here on peers may rely on this rank. Where its buffers lie is written down before any READY.
        self.call += 1;
        let act = Act {
            setting: &prepared.setting,
            areas: buffers.areas(),
            scratch: prepared.scratch.start(),
            call: self.call,
            signature: prepared.signature.of_call(self.call),
            board: self.segment.board(),
        };
        let direct = self.exposed.any();
        let (access, mut aborted) = Access::enter(self.segment, self.rank, self.call, direct);
        let mut outcome = Err(Stop::Aborted);
        if !aborted {
            publish(self.segment, self.rank, &self.exposed, act.areas);
            self.machine.begin(prepared.setting.slices);
            // SAFETY: `Buffers` borrows the caller's memory exclusively (for `Send` buffers: shared) and the checks
            // have compared sizes, overlaps and registration with what layout and plan ask for; scratch was sized and
            // windows were prepared by `work_out`. Peers run the same verified plan.
            outcome = unsafe {
                drive(&mut self.machine, &mut self.waiter, &act, self.segment, self.rank, self.patience)
            };
            aborted = self.machine.program.reads_peers && !leave::good(self.segment);
        }
        drop(access);
        if outcome.is_ok() && aborted {
            outcome = Err(Stop::Aborted);
        }
        match outcome {
            // EXIT: every access of a peer has ended before a DONE that this rank has received (V5).
            Ok(()) => {
                self.segment.rank(self.rank).left.store(self.call, Ordering::Relaxed);
                Ok(())
            }
            Err(stop) => {
                let error = self.fail(stop);
                leave::settle(self.segment, self.rank, &self.accessors, self.call);
                Err(error)
            }
        }
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
            match pause(&mut self.waiter, self.segment, self.rank, self.patience.late, ready) {
                None => {}
                Some(Stop::Deadline { waited }) => {
                    // A rank that prepares or compares data is not lost, however long it takes.
                    let now = work().fold(0, u64::wrapping_add);
                    if std::mem::replace(&mut last, now) == now {
                        return Err(self.give_up(watch::late_at_barrier(self.segment, self.rank, waited)));
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

    fn work_out(&mut self, shape: Shape) -> Result<Prepared, Error> {
        let plan: &Plan = self.plan;
        let Shape { elements, dtype, op, in_place } = shape;
        let header = &plan.header;
        let served = if in_place { header.forms.same } else { header.forms.disjoint };
        if !served {
            let form = if in_place { "in place" } else { "out of place" };
            let message = format!("`{}` does not serve calls {form}", header.algorithm);
            return Err(Error::new(Kind::Unsupported, message));
        }
        let divisor = if op.has_post() { plan.promise.reduced_operands() } else { None };
        let reduces = plan.promise.reduces();
        if op.has_post() && (!header.serves_post || (reduces && divisor.is_none())) {
            let message = format!("`{}` does not serve operator {op}", header.algorithm);
            return Err(Error::new(Kind::Unsupported, message).help("use `sum` and divide afterwards"));
        }
        let layout = Layout::new(plan, elements, dtype, self.machine.slot_bytes as u32)
            .map_err(|e| Error::new(Kind::Invalid, e.to_string()))?;
        let cells = Cells::new(&layout, header.cells, header.copies, self.rank, &header.scratch_cells);
        let record = Record {
            call: self.call + 1,
            algorithm: header.algorithm.chars().take(80).collect(),
            plan: self.plan_hash.to_string().chars().take(16).collect(),
            elements,
            dtype,
            op,
            in_place,
        };
        // A plan that only exchanges messages sends the same in both forms, and each rank may have its own.
        let form = self.exposed.any().then_some(if in_place { Form::Same } else { Form::Disjoint });
        let signature = Signature::new(&signature::Call {
            plan: self.plan_hash,
            collective: &header.collective,
            params: &header.params,
            counts: &[elements],
            dtype,
            op,
            form,
        });
        // What was prepared for this very call before was not called, and leaves no record.
        if record.call > self.recorded {
            self.recorded = record.call;
            self.records += 1;
        }
        self.segment.rank(self.rank).record(&record, self.records);
        let setting = Setting { dtype, op, divisor, slices: layout.slices(), cells };
        let scratch = Mapping::private(layout.scratch_bytes(self.rank))?;
        self.machine.windows.iter_mut().for_each(|window| window.prepare(&layout));
        Ok(Prepared { shape, layout, setting, scratch, signature, checked: None })
    }

    fn fail(&self, stop: Stop) -> Error {
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
                self.give_up(watch::mismatch(self.segment, self.rank, from, self.call))
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

/// Writes down where the buffers lie that peers reach into.
fn publish(segment: &Segment, rank: RankId, exposed: &Exposed, areas: &[Area]) {
    if !exposed.any() {
        return;
    }
    let (region, _) = segment.region(rank);
    for (b, area) in areas.iter().enumerate() {
        let buffer = BufferId::new(b);
        if exposed.is(rank, buffer) {
            // An empty buffer may lie anywhere; nobody asks.
            let offset = if area.bytes > 0 { (area.start as u64).wrapping_sub(region as u64) } else { 0 };
            segment.area(rank, buffer).publish(offset, area.bytes);
        }
    }
}
