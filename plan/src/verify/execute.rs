//! V4, the execution: every step once, with symbols for data.
//!
//! In: an order of the steps, entry values, one alias form. Out: [`End`]: what memory holds, what was sent, the
//! length class of every micro-step; faults go to the report. A value that a fault has spoilt is poison: it is
//! passed on in silence, so that one fault is reported once.

use super::deadlock::Order;
use super::links::{Links, ends};
use super::places::Places;
use super::symbolic::Fault;
use super::violation::{Report, Site};
use crate::ids::{ChannelId, RankId, StepId};
use crate::plan::{Form, Operand, Plan, Role};
use crate::values::{ValueId, Values};

/// No value: nothing has written the cell.
pub(super) const UNDEFINED: u32 = u32::MAX;
/// No value either, but the fault behind it is reported already.
const POISONED: u32 = u32::MAX - 1;

/// What a cell or message holds, if anything.
pub(super) fn value(raw: u32) -> Option<ValueId> {
    (raw < POISONED).then_some(ValueId(raw))
}

/// What an execution starts from.
pub(super) struct Start<'a> {
    pub(super) plan: &'a Plan,
    pub(super) links: &'a Links,
    pub(super) order: &'a Order,
    pub(super) places: &'a Places,
    pub(super) form: Form,
    /// By place: the entry value.
    pub(super) entry: &'a [u32],
}

/// What an execution leaves.
pub(super) struct End {
    /// By place.
    pub(super) held: Vec<u32>,
    /// All messages.
    pub(super) sent: Vec<u32>,
    pub(super) classes: Classes,
}

/// The length class of every micro-step.
#[derive(Debug, Default)]
pub(super) struct Classes {
    /// By step: where its micro-steps start in `class`.
    start: Vec<u32>,
    class: Vec<u32>,
}

/// Runs all steps.
pub(super) fn execute(start: &Start, values: &mut Values, report: &mut Report) -> End {
    let &Start { plan, links, order, places, form, entry } = start;
    let memory = if form == Form::Same { places.same(plan) } else { Vec::new() };
    let mut run = Run {
        plan,
        links,
        places,
        form,
        held: hold_entry(entry, &memory),
        memory,
        messages: Messages::new(plan, links),
        classes: Classes::new(plan),
        values,
        fold: Vec::new(),
        report,
    };
    for &id in &order.0 {
        run.step(id);
        if run.report.is_full() {
            break;
        }
    }
    run.end()
}

/// The micro-steps that send on a channel.
pub(super) fn message_count(plan: &Plan, links: &Links, channel: ChannelId) -> u32 {
    links.senders(channel).iter().map(|step| plan.steps[step.index()].width).sum()
}

/// What memory holds at entry. Under `same` a `Send` cell that overlaps lies in a `Recv` cell's memory.
fn hold_entry(entry: &[u32], memory: &[u32]) -> Vec<u32> {
    let mut held = entry.to_vec();
    for (place, &at) in memory.iter().enumerate() {
        if at as usize != place {
            held[at as usize] = entry[place];
        }
    }
    held
}

/// One execution.
struct Run<'a> {
    plan: &'a Plan,
    links: &'a Links,
    places: &'a Places,
    form: Form,
    /// Under `same`: the memory of each place. Empty: each its own.
    memory: Vec<u32>,
    /// What each memory holds.
    held: Vec<u32>,
    messages: Messages,
    classes: Classes,
    values: &'a mut Values,
    fold: Vec<ValueId>,
    report: &'a mut Report,
}

/// All messages of all channels, sent or not yet, in one array: micro-step by micro-step.
struct Messages {
    /// By channel: the place of the next message to be sent.
    next_sent: Vec<u32>,
    /// By end: the place of the next one to be received.
    next_received: Vec<u32>,
    value: Vec<u32>,
}

impl Messages {
    fn new(plan: &Plan, links: &Links) -> Messages {
        let mut next_sent = Vec::with_capacity(plan.channels.len());
        let mut next_received = vec![0; plan.readers.len()];
        let mut next = 0u32;
        for channel in (0..plan.channels.len()).map(ChannelId::new) {
            next_sent.push(next);
            for end in ends(plan, channel) {
                next_received[end.index()] = next;
            }
            next += message_count(plan, links, channel);
        }
        Messages { next_sent, next_received, value: vec![POISONED; next as usize] }
    }
}

impl Classes {
    /// The class of a micro-step; none for tokens.
    pub(super) fn of(&self, step: StepId, micro: u32) -> Option<u32> {
        let start = *self.start.get(step.index())? as usize;
        let end = *self.start.get(step.index() + 1)? as usize;
        let class = *self.class[start..end].get(micro as usize)?;
        (class != UNDEFINED).then_some(class)
    }

    fn new(plan: &Plan) -> Classes {
        let mut start = vec![0];
        let mut next = 0;
        for step in &plan.steps {
            next += step.width;
            start.push(next);
        }
        Classes { start, class: vec![UNDEFINED; next as usize] }
    }
}

impl Run<'_> {
    fn end(self) -> End {
        let held = match self.memory.as_slice() {
            [] => self.held,
            memory => memory.iter().map(|&at| self.held[at as usize]).collect(),
        };
        End { held, sent: self.messages.value, classes: self.classes }
    }

    fn step(&mut self, id: StepId) {
        let plan = self.plan;
        let step = &plan.steps[id.index()];
        let rank = plan.blocks[self.links.block_of[id.index()].index()].rank;
        let (src, dst) = (plan.src(step), plan.dst(step));
        for micro in 0..step.width {
            self.fold.clear();
            let mut sound = true;
            let mut gets = self.links.gets(id).iter();
            for operand in src {
                let raw = match self.place(rank, *operand, micro) {
                    Some(place) => self.load(id, place),
                    None => gets.next().map_or(POISONED, |end| {
                        let next = &mut self.messages.next_received[end.index()];
                        *next += 1;
                        self.messages.value[*next as usize - 1]
                    }),
                };
                match value(raw) {
                    Some(value) => self.fold.push(value),
                    None => sound = false,
                }
            }
            // Tokens have no value; a step with none to fold has nothing to say.
            let result = if sound { self.combine(id, micro, step.round_each, step.post) } else { POISONED };
            for operand in dst {
                match (*operand, self.place(rank, *operand, micro)) {
                    (_, Some(place)) => self.store(id, *operand, place, micro, result),
                    (Operand::Channel(channel), None) => {
                        let next = &mut self.messages.next_sent[channel.index()];
                        self.messages.value[*next as usize] = result;
                        *next += 1;
                    }
                    _ => {}
                }
            }
        }
    }

    fn place(&self, own: RankId, operand: Operand, micro: u32) -> Option<usize> {
        match operand {
            Operand::Channel(_) => None,
            Operand::Local { buffer, cell } => Some(self.places.of(own, buffer, cell + micro)),
            Operand::Peer { rank, buffer, cell } => Some(self.places.of(rank, buffer, cell + micro)),
        }
    }

    fn load(&mut self, id: StepId, place: usize) -> u32 {
        let memory = self.memory.get(place).map_or(place, |&memory| memory as usize);
        let raw = self.held[memory];
        if raw == UNDEFINED {
            let (plan, places, form) = (self.plan, self.places, self.form);
            self.report.add(|| {
                let fault = Fault::Undefined { cell: places.cell(plan, place), form };
                (super::Fault::Symbolic(fault), vec![Site::of(plan, id, "")])
            });
            return POISONED;
        }
        raw
    }

    /// The sources folded; notes the class of the micro-step.
    fn combine(&mut self, id: StepId, micro: u32, round_each: bool, post: bool) -> u32 {
        let Some(&first) = self.fold.first() else { return POISONED };
        let due = self.values.class(first);
        let at = self.classes.start[id.index()] + micro;
        self.classes.class[at as usize] = due;
        if let Some(found) = self.fold.iter().map(|&v| self.values.class(v)).find(|&class| class != due) {
            let what = || format!("micro-step {micro} combines pieces");
            self.class_fault(id, what, found, due);
            return POISONED;
        }
        let Some(sum) = self.values.fold(&self.fold, round_each) else { return POISONED };
        if post { self.values.post(sum).0 } else { sum.0 }
    }

    fn store(&mut self, id: StepId, operand: Operand, place: usize, micro: u32, raw: u32) {
        if let (Some(value), Operand::Local { buffer, cell } | Operand::Peer { buffer, cell, .. }) =
            (value(raw), operand)
        {
            let due = (cell + micro) % self.plan.header.cells;
            let found = self.values.class(value);
            if self.plan.buffers[buffer.index()].role != Role::Scratch && found != due {
                let (plan, places) = (self.plan, self.places);
                self.class_fault(id, || format!("{} is given a piece", places.cell(plan, place)), found, due);
            }
        }
        let memory = self.memory.get(place).map_or(place, |&memory| memory as usize);
        self.held[memory] = raw;
    }

    fn class_fault(&mut self, id: StepId, what: impl FnOnce() -> String, found: u32, due: u32) {
        let plan = self.plan;
        self.report.add(|| {
            let fault = Fault::Class { what: what(), found, due };
            (super::Fault::Symbolic(fault), vec![Site::of(plan, id, "")])
        });
    }
}
