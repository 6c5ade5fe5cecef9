//! Executes plans: one thread per rank drives all blocks of that rank.
//!
//! In: a verified plan, the shared segment, a rank; then calls. Out: results in the caller's buffers, or an error.
//! [`Rank::call`] is the loop: every block in turn acts while it can; when none can, the rank waits ([`crate::wait`])
//! and looks at the abort word and the deadline. Blocks are state machines ([`block`]), places and lengths come from
//! [`places`], arithmetic from [`kernels`].

pub mod block;
pub mod buffers;
pub mod kernels;
pub mod places;
pub mod program;

use std::sync::atomic::Ordering;
use std::time::Duration;

use plan::dtype::{Dtype, Op};
use plan::file::ContentHash;
use plan::ids::RankId;
use plan::layout::Layout;
use plan::plan::{Form, Operand, Plan};
use plan::signature::{self, Signature};
use plan::verify::VerifiedPlan;

use self::block::{Act, Advance, Machine};
use self::buffers::Buffers;
use self::places::{Area, Cells, Setting};
use self::program::Program;
use crate::call::Record;
use crate::channel::{Incoming, Outgoing};
use crate::error::{Error, Kind};
use crate::memory::memfd::Mapping;
use crate::memory::segment::Segment;
use crate::wait::{Policy, Turn, Waiter};
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
        let words = segment.blocks(rank).iter().collect();
        let machine = Machine::new(program, words, outgoing, incoming, copies, u64::from(slot_bytes));
        let plan_hash = plan.content_hash();
        let waiter = Waiter::new(patience.policy);
        Ok(Rank {
            plan,
            segment,
            rank,
            machine,
            patience,
            waiter,
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
            prepared.checked = Some(buffers.areas().to_vec());
        }

        // ENTRY: from here on peers may rely on this rank.
        self.call += 1;
        let own = self.segment.rank(self.rank);
        own.entered.store(self.call, Ordering::Relaxed);
        let act = Act {
            setting: &prepared.setting,
            areas: buffers.areas(),
            scratch: prepared.scratch.start(),
            call: self.call,
            signature: prepared.signature.of_call(self.call),
        };
        self.machine.begin();
        // SAFETY: `Buffers` borrows the caller's memory exclusively (for `Send` buffers: shared) and `check` has
        // compared sizes and overlaps with what layout and plan ask for; scratch was sized by `work_out`.
        let outcome = unsafe {
            drive(&mut self.machine, &mut self.waiter, &act, self.segment, self.rank, self.patience)
        };
        // EXIT: with slots alone no peer ever touches this rank's buffers, so its own last step is the end.
        match outcome {
            Ok(()) => {
                own.left.store(self.call, Ordering::Relaxed);
                Ok(())
            }
            Err(stop) => Err(self.fail(stop)),
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
        let form = plan.operands.iter().any(|o| matches!(o, Operand::Peer { .. }));
        let form = form.then_some(if in_place { Form::Same } else { Form::Disjoint });
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

/// Why a rank stops waiting.
#[derive(Debug, Clone, Copy)]
enum Stop {
    /// The board says so.
    Aborted,
    /// Nothing has moved for too long.
    Deadline {
        /// For how long.
        waited: Duration,
    },
    /// A message of a different call.
    Mismatch {
        /// An index into `Machine::incoming`.
        end: usize,
    },
}

/// Drives all blocks to their ends.
///
/// # Safety
/// As for `Machine::advance`.
unsafe fn drive(
    machine: &mut Machine<'_>,
    waiter: &mut Waiter,
    act: &Act<'_>,
    segment: &Segment,
    rank: RankId,
    patience: Patience,
) -> Result<(), Stop> {
    waiter.reset();
    let deadline = patience.stalled.min(patience.late);
    let blocks = machine.states.len();
    // One look at every block: whether any moved, and whether all have finished.
    let sweep = |machine: &mut Machine<'_>| {
        let (mut moved, mut finished) = (false, 0);
        for index in 0..blocks {
            // SAFETY: the caller's promise.
            match unsafe { machine.advance(index, act) } {
                Advance::Moved => moved = true,
                Advance::Finished => finished += 1,
                Advance::Blocked => {}
                Advance::Mismatch { end } => return Err(Stop::Mismatch { end }),
            }
        }
        Ok((moved, finished == blocks))
    };
    loop {
        let (mut moved, mut finished) = sweep(machine)?;
        if !moved && !finished {
            let mut woken = Ok((false, false));
            let stop = pause(waiter, segment, rank, deadline, || {
                woken = sweep(machine);
                !matches!(woken, Ok((false, false)))
            });
            (moved, finished) = woken?;
            match stop {
                Some(Stop::Deadline { waited }) if !moved && !finished => {
                    // Which deadline counts depends on whether somebody is missing.
                    let missing = !watch::absent(segment, act.call).is_empty();
                    if waited > if missing { patience.late } else { patience.stalled } {
                        return Err(Stop::Deadline { waited });
                    }
                }
                None | Some(Stop::Deadline { .. }) => {}
                Some(stop) => return Err(stop),
            }
        }
        if finished {
            return Ok(());
        }
        if moved {
            // A rank that always can act must still see that the run has ended.
            if segment.board().aborted() {
                return Err(Stop::Aborted);
            }
            waiter.reset();
        }
    }
}

/// One round of a wait; `ready` is a last look before sleeping.
#[inline]
fn pause(
    waiter: &mut Waiter,
    segment: &Segment,
    rank: RankId,
    deadline: Duration,
    ready: impl FnOnce() -> bool,
) -> Option<Stop> {
    if segment.board().aborted() {
        return Some(Stop::Aborted);
    }
    if waiter.round() == Turn::Sleep {
        segment.rank(rank).sleep(ready);
    }
    let waited = waiter.waited();
    (waited > deadline).then_some(Stop::Deadline { waited })
}
