//! The oracle: what a plan means, run over real bytes, all ranks in one thread.
//!
//! In: a plan, what a call gives (counts, element type, operator, slots), the entry values, and a scheduler that
//! decides who acts next. Out: the caller's buffers afterwards, or a [`Fault`]: a deadlock with what every block waits
//! for, a read of what nothing wrote, operands of unequal length. Every executor must agree with it. It is written
//! to be read, not to be fast, and shares no code with `verify`. It takes any plan, also one that `verify` refuses.
//!
//! - `order`: one order of all events of one iteration; [`classes`]: which cell of a block each value
//!   came from; [`clocks`]: a run that speaks for all orders and finds races.
//! - `control`: who can act, and what acting does to channels and waits. `memory`: bytes, and what is defined.
//!
//! The one hard idea: an event is a micro-step (or, with [`Call::group`], several that travel as one message). It
//! happens at once: needs are met, sources are read, the fold is stored and sent, slots are freed.

mod bounds;
pub mod classes;
pub mod clocks;
mod control;
mod memory;
mod order;
pub mod scheduler;

use std::collections::VecDeque;
use std::fmt;

use crate::arith::{self, Rounding};
use crate::dtype::{Dtype, Op};
use crate::ids::{BlockId, BufferId, ChannelId, RankId, StepId};
use crate::interpret::classes::Classes;
use crate::interpret::control::{Control, Event, Wire};
use crate::interpret::memory::{Location, Memory};
use crate::interpret::scheduler::Scheduler;
use crate::layout::{Layout, LayoutError};
use crate::plan::{ChannelKind, Operand, Plan};

/// What a call gives, beside the entry values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Elements of a block.
    pub elements: u64,
    /// Their type.
    pub dtype: Dtype,
    /// The operator.
    pub op: Op,
    /// Send and receive memory overlap as `Plan::overlaps` says.
    pub in_place: bool,
    /// Bytes of a slot.
    pub slot_bytes: u32,
    /// Slots of a channel, at least 1; below `header.k_min` a deadlock is to be expected.
    pub slots: u32,
    /// Both ends skip messages of length 0, except the first of each channel (plan.md §4, L3).
    pub elide: bool,
    /// Neighbouring micro-steps whose bytes fit one slot travel as one message (L4).
    pub group: bool,
}

/// What a run leaves behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    memory: Vec<Vec<Vec<u8>>>,
    /// Messages sent through slots, each counted once however many read it.
    pub messages: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Tokens sent.
    pub tokens: u64,
    /// Events.
    pub events: u64,
}

/// Why a run has no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The plan is no plan: an index or a count is out of bounds, or an operand stands where it has no meaning.
    #[error("{}{what}", at(step))]
    Malformed {
        /// What is wrong, as a sentence about the step or the plan.
        what: &'static str,
        /// The step.
        step: Option<StepId>,
    },
    /// The plan does not serve this way of calling it.
    #[error("the plan does not serve a call {}", if *in_place { "in place" } else { "out of place" })]
    Form {
        /// What was asked for.
        in_place: bool,
    },
    /// The operator has an outer part, which this plan cannot apply.
    #[error("the plan does not serve operator {op}")]
    Operator {
        /// What was asked for.
        op: Op,
    },
    /// A channel needs a slot.
    #[error("a channel needs at least one slot")]
    NoSlots,
    /// The counts do not fit.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// An entry value of the wrong size.
    #[error("buffer {} of rank {} has {expected} bytes, but {given} were given", buffer.0, rank.0)]
    Input {
        /// Which.
        buffer: BufferId,
        /// Where.
        rank: RankId,
        /// What the layout says.
        expected: u64,
        /// What was given.
        given: u64,
    },
    /// No block can act.
    #[error("deadlock: {}", list(.0))]
    Deadlock(Vec<Waiting>),
    /// A step reads what nothing wrote.
    #[error("{}reads cell {cell} of buffer {} at rank {}, which holds nothing", at(&Some(*step)), buffer.0, rank.0)]
    Undefined {
        /// The reader.
        step: StepId,
        /// Whose memory.
        rank: RankId,
        /// Which buffer.
        buffer: BufferId,
        /// Which cell.
        cell: u32,
    },
    /// Sources and destinations of a step differ in length for some counts.
    #[error("{}joins values that came from different cells of their blocks", at(&Some(*step)))]
    Lengths {
        /// The step.
        step: StepId,
        /// Which of its cells.
        micro: u32,
    },
    /// A message is not as long as its reader takes it to be: the plan has a race.
    #[error("{}receives {given} bytes where {expected} are due", at(&Some(*step)))]
    Message {
        /// The reader.
        step: StepId,
        /// What the reader takes.
        expected: u64,
        /// What came.
        given: u64,
    },
    /// Messages are left in a channel when all blocks have ended.
    #[error("channel {} holds messages that nobody receives", channel.0)]
    Unread {
        /// The channel.
        channel: ChannelId,
    },
}

/// A block that cannot act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Which copy of the program.
    pub copy: u32,
    /// The block.
    pub block: BlockId,
    /// Its rank.
    pub rank: RankId,
    /// Its place among the rank's blocks.
    pub position: u32,
    /// The step that it stands at.
    pub step: StepId,
    /// In which iteration.
    pub iteration: u64,
    /// The file and line that the step comes from.
    pub line: Option<(String, u32)>,
    /// What it waits for; not empty.
    pub needs: Vec<Need>,
}

/// What a block waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// A message (or token).
    Message {
        /// Through this channel.
        channel: ChannelId,
        /// From this rank.
        from: RankId,
    },
    /// A free slot.
    Slot {
        /// Of this channel.
        channel: ChannelId,
        /// That this rank has yet to read.
        reader: RankId,
    },
    /// The end of a step of another block of the rank.
    Step(StepId),
}

impl Call {
    /// Out of place, 64 KiB slots, two of them, every message sent on its own.
    pub fn new(elements: u64, dtype: Dtype, op: Op) -> Call {
        Call {
            elements,
            dtype,
            op,
            in_place: false,
            slot_bytes: 64 << 10,
            slots: 2,
            elide: false,
            group: false,
        }
    }
}

impl Outcome {
    /// The bytes of a buffer at a rank as the caller sees them; empty for scratch and where the buffer does not exist.
    /// In place, the overlapped part of a `Send` buffer is in the `Recv` buffer; what this returns for it is unspecified.
    pub fn buffer(&self, buffer: BufferId, rank: RankId) -> &[u8] {
        &self.memory[rank.index()][buffer.index()]
    }
}

/// Runs `plan`. `input` gives the entry bytes of a `Send` buffer at a rank.
pub fn interpret(
    plan: &Plan,
    call: &Call,
    input: &mut dyn FnMut(BufferId, RankId) -> Vec<u8>,
    scheduler: &mut dyn Scheduler,
) -> Result<Outcome, Fault> {
    bounds::check(plan)?;
    let post = check_call(plan, call)?;
    let layout = Layout::new(plan, call.elements, call.dtype, call.slot_bytes)?;
    let classes = classes::classes(plan)?;
    let memory = Memory::new(plan, &layout, call.in_place, input)?;
    let wire = Wire { layout: &layout, classes: &classes, elide: call.elide, group: call.group };
    let mut control =
        Control::new(plan, plan.header.copies, layout.slices(), u64::from(call.slots), Some(wire));
    let queues = vec![Queue::default(); plan.channels.len() * plan.header.copies as usize];
    let mut run =
        Run { plan, call, post, layout: &layout, classes: &classes, memory, queues, totals: [0; 3] };
    let mut events = 0;
    while !control.ready().is_empty() {
        let ready = control.ready();
        let actor = ready[scheduler.choose(ready) % ready.len()];
        run.act(&control.advance(actor))?;
        events += 1;
    }
    if let Some(waiting) = control.waiting() {
        return Err(Fault::Deadlock(waiting));
    }
    if let Some(channel) = control.unread() {
        return Err(Fault::Unread { channel });
    }
    let [messages, bytes, tokens] = run.totals;
    Ok(Outcome { memory: run.memory.into_buffers(), messages, bytes, tokens, events })
}

/// What `avg` divides by, if the operator has an outer part.
fn check_call(plan: &Plan, call: &Call) -> Result<Option<u32>, Fault> {
    let served = if call.in_place { plan.header.forms.same } else { plan.header.forms.disjoint };
    if !served {
        return Err(Fault::Form { in_place: call.in_place });
    }
    if call.slots == 0 {
        return Err(Fault::NoSlots);
    }
    if !plan.header.serves(call.op) || call.op.factor().is_some_and(|factor| !factor.fits(call.dtype)) {
        return Err(Fault::Operator { op: call.op });
    }
    if !call.op.has_post() {
        return Ok(None);
    }
    // One number for all promised reductions. If none is promised, the outer part is that of one operand: nothing.
    let divisor = plan.promise.reduced_operands();
    if plan.promise.reduces() && divisor.is_none() {
        return Err(Fault::Operator { op: call.op });
    }
    Ok(divisor)
}

/// The messages in a channel; the front one is the next that some reader has yet to take.
#[derive(Debug, Clone, Default)]
struct Queue {
    first: u64,
    messages: VecDeque<Vec<u8>>,
}

struct Run<'a> {
    plan: &'a Plan,
    call: &'a Call,
    post: Option<u32>,
    layout: &'a Layout,
    classes: &'a Classes,
    memory: Memory,
    queues: Vec<Queue>,
    totals: [u64; 3],
}

impl Run<'_> {
    /// Moves the data of one event.
    fn act(&mut self, event: &Event) -> Result<(), Fault> {
        let plan = self.plan;
        let step = &plan.steps[event.step.index()];
        let received = self.receive(event);
        let mut sent: Vec<u8> = Vec::new();
        let mut at = 0;
        for micro in event.micros.clone() {
            let Some(position) = self.classes.of(event.step, micro) else { continue };
            let length = self.layout.length(event.copy, position, event.iteration) as usize;
            let length = length * self.call.dtype.size() as usize;
            let value = self.fold(event, micro, position, &received, at..at + length)?;
            let Some(value) = value else { continue };
            for &operand in plan.dst(step) {
                if let Some(location) = self.location(event, operand, micro) {
                    self.memory.write(&location, position, &value);
                }
            }
            sent.extend_from_slice(&value);
            at += length;
        }
        for message in received.iter().flatten() {
            if message.len() != at {
                let (expected, given) = (at as u64, message.len() as u64);
                return Err(Fault::Message { step: event.step, expected, given });
            }
        }
        self.send(event, &sent);
        Ok(())
    }

    /// The messages that the event consumes, by source; none where the source is no slot or the message is elided.
    fn receive(&mut self, event: &Event) -> Vec<Option<Vec<u8>>> {
        let step = &self.plan.steps[event.step.index()];
        let sources = self.plan.src(step).iter().enumerate();
        sources
            .map(|(i, &operand)| {
                let channel = slots(self.plan, operand)?;
                let (number, retired) = event.received[i]?;
                let queue =
                    &mut self.queues[event.copy as usize * self.plan.channels.len() + channel.index()];
                let message = queue.messages[(number - queue.first) as usize].clone();
                while queue.first < retired {
                    queue.messages.pop_front();
                    queue.first += 1;
                }
                Some(message)
            })
            .collect()
    }

    /// The fold of a micro-step's sources; none if it moves no data.
    fn fold(
        &self,
        event: &Event,
        micro: u32,
        position: u32,
        received: &[Option<Vec<u8>>],
        part: std::ops::Range<usize>,
    ) -> Result<Option<Vec<u8>>, Fault> {
        let step = &self.plan.steps[event.step.index()];
        let mut operands: Vec<&[u8]> = Vec::new();
        for (&operand, message) in self.plan.src(step).iter().zip(received) {
            if let Some(location) = self.location(event, operand, micro) {
                operands.push(self.memory.read(&location, position).ok_or(Fault::Undefined {
                    step: event.step,
                    rank: location.rank,
                    buffer: location.buffer,
                    cell: location.cell,
                })?);
            } else if slots(self.plan, operand).is_some() {
                let message = message.as_deref().unwrap_or(&[]);
                let (expected, given) = (part.end as u64, message.len() as u64);
                let part = message.get(part.clone());
                operands.push(part.ok_or(Fault::Message { step: event.step, expected, given })?);
            }
        }
        if operands.is_empty() {
            return Ok(None);
        }
        let mut value = vec![0; part.len()];
        let post = self.post.filter(|_| step.post);
        let rounding = Rounding { round_each: step.round_each, post, pre: step.pre };
        arith::fold(self.call.dtype, self.call.op, &operands, rounding, &mut value);
        Ok(Some(value))
    }

    fn send(&mut self, event: &Event, payload: &[u8]) {
        let step = &self.plan.steps[event.step.index()];
        for (&operand, &sent) in self.plan.dst(step).iter().zip(&event.sent) {
            let Operand::Channel(channel) = operand else { continue };
            if !sent {
                continue;
            }
            match self.plan.channels[channel.index()].kind {
                ChannelKind::Counter => self.totals[2] += 1,
                ChannelKind::Slots => {
                    self.totals[0] += 1;
                    self.totals[1] += payload.len() as u64;
                    let queue = event.copy as usize * self.plan.channels.len() + channel.index();
                    self.queues[queue].messages.push_back(payload.to_vec());
                }
            }
        }
    }

    fn location(&self, event: &Event, operand: Operand, micro: u32) -> Option<Location> {
        let (rank, buffer, cell) = match operand {
            Operand::Channel(_) => return None,
            Operand::Local { buffer, cell } => (self.plan.blocks[event.block.index()].rank, buffer, cell),
            Operand::Peer { rank, buffer, cell } => (rank, buffer, cell),
        };
        Some(Location { rank, buffer, cell: cell + micro, copy: event.copy, iteration: event.iteration })
    }
}

fn slots(plan: &Plan, operand: Operand) -> Option<ChannelId> {
    match operand {
        Operand::Channel(channel) if plan.channels[channel.index()].kind == ChannelKind::Slots => {
            Some(channel)
        }
        _ => None,
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} block {} step {}", self.rank.0, self.position, self.step.0)?;
        if self.iteration > 0 {
            write!(f, " of iteration {}", self.iteration)?;
        }
        if self.copy > 0 {
            write!(f, " of copy {}", self.copy)?;
        }
        if let Some((file, line)) = &self.line {
            write!(f, " ({}:{line})", file.escape_debug())?;
        }
        f.write_str(" waits for ")?;
        for (i, need) in self.needs.iter().enumerate() {
            f.write_str(if i > 0 { " and " } else { "" })?;
            need.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Need::Message { channel, from } => write!(f, "channel {} from rank {}", channel.0, from.0),
            Need::Slot { channel, reader } => {
                write!(f, "a slot of channel {} at rank {}", channel.0, reader.0)
            }
            Need::Step(step) => write!(f, "step {}", step.0),
        }
    }
}

fn at(step: &Option<StepId>) -> String {
    step.map(|s| format!("step {} ", s.0)).unwrap_or_default()
}

fn list(waiting: &[Waiting]) -> String {
    let shown: Vec<_> = waiting.iter().map(Waiting::to_string).collect();
    shown.join("; ")
}
