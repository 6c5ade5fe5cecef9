//! V4: the plan, executed with symbols for data, does what its collective promises.
//!
//! In: a plan that V0 to V3 and V5 have passed, and an order of its steps. Out: [`Symbolic`]: what every `Recv` cell
//! holds at the end, as an expression in the entry values; or faults: a cell read before anything wrote it; a value
//! at a place of another length class; a promise not met; the operator's outer part applied where it is not due, or
//! missing where it is. Done once for each alias form that the plan serves; values are shared between the two.
//!
//! The one hard idea: without races and deadlocks all executions give the same values (plan.md §4), so one
//! speaks for all. Steps are executed whole, one after another: the pairs of V1 make messages flow from step to
//! step, and in the order of V2 every step comes after all that it reads.
//!
//! That `Send` cells are unchanged needs no check here: V0 lets nothing write them. Under `same`, those that overlap
//! a `Recv` cell change with it, as the caller has asked.

use super::deadlock::Order;
use super::links::{Links, ends};
use super::places::{Cell, Places};
use super::violation::{Report, Site, Violation};
use super::{barrier, limits::Limits, promised};
use crate::ids::{BufferId, RankId, StepId};
use crate::plan::{Form, Operand, Plan, Role};
use crate::values::{ValueId, Values};

/// What V4 finds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A cell is read that nothing has written.
    #[error("{cell} is read, but nothing has written it yet ({})", of(*.form))]
    Undefined {
        /// The cell.
        cell: Cell,
        /// The alias form.
        form: Form,
    },
    /// A value is stored where values have another length, or two of different lengths are combined.
    #[error("{what} of position {found} where position {due} is due: their lengths may differ")]
    Class {
        /// Where.
        what: String,
        /// The class found.
        found: u32,
        /// The class due.
        due: u32,
    },
    /// A promised cell was never written.
    #[error("{cell} is promised {promised}, but nothing writes it ({})", of(*.form))]
    Unwritten {
        /// The cell.
        cell: Cell,
        /// What it should hold.
        promised: String,
        /// The alias form.
        form: Form,
    },
    /// A promised cell holds something else.
    #[error("{cell} is promised {promised}, but {differs} ({})", of(*.form))]
    Promise {
        /// The cell.
        cell: Cell,
        /// What it should hold.
        promised: String,
        /// What it lacks, has twice, has too much.
        differs: String,
        /// The alias form.
        form: Form,
    },
    /// Some step applies the outer part of an operator, but the header says that none does.
    #[error(
        "the step applies the operator's outer part, but the header says that such operators are not served"
    )]
    PostUnserved,
    /// The outer part divides by one number, but reductions of several sizes are promised.
    #[error(
        "the header says that operators with an outer part are served, but reductions of {0} and of {1} values are promised"
    )]
    PostSizes(usize, usize),
    /// A promised reduction lacks the operator's outer part, or has it on a part.
    #[error("{cell}: the operator's outer part is {why} ({})", of(*.form))]
    Post {
        /// The cell.
        cell: Cell,
        /// Missing, or applied where it is not due.
        why: &'static str,
        /// The alias form.
        form: Form,
    },
    /// A rank may leave before another has entered.
    #[error("rank {} may leave before rank {} has entered ({missing} such pairs)", leaves.0, enters.0)]
    NotSynchronised {
        /// The rank that leaves.
        leaves: RankId,
        /// One that it knows nothing of.
        enters: RankId,
        /// How many pairs there are.
        missing: u64,
    },
    /// The proof would cost too much.
    #[error("the proof of the promise needs {what}, more than the limit of {limit}")]
    Limit {
        /// Of what.
        what: &'static str,
        /// How much it may need.
        limit: u64,
    },
}

fn of(form: Form) -> &'static str {
    match form {
        Form::Disjoint => "out of place",
        Form::Same => "in place",
    }
}

impl Fault {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Fault::Undefined { .. } => "plan::v4_undefined",
            Fault::Class { .. } => "plan::v4_class",
            Fault::Unwritten { .. } | Fault::Promise { .. } => "plan::v4_promise",
            Fault::PostUnserved | Fault::PostSizes(..) | Fault::Post { .. } => "plan::v4_post",
            Fault::NotSynchronised { .. } => "plan::v4_not_synchronised",
            Fault::Limit { .. } => "plan::v0_limit",
        }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Fault::Undefined { .. } => "write the cell before it is read, or read another one",
            Fault::Class { .. } => {
                "keep pieces at their position: cell 2 of a block goes to cell 2 of a block (scratch takes any)"
            }
            Fault::Unwritten { .. } | Fault::Promise { .. } => {
                "add what is missing, and take out what comes twice or from elsewhere"
            }
            Fault::PostUnserved | Fault::PostSizes(..) | Fault::Post { .. } => {
                "set `post` on the very step that completes a promised reduction, and on no other"
            }
            Fault::NotSynchronised { .. } => "let word of every rank's entry reach every rank by tokens",
            Fault::Limit { .. } => "use fewer ranks or coarser chunks, or raise this limit",
        }
    }
}

/// What all cells hold, as expressions in the entry values.
#[derive(Debug)]
pub struct Symbolic {
    /// The values.
    pub values: Values,
    places: Places,
    /// By place: the entry value of a `Send` cell.
    entry: Vec<u32>,
    /// By form, by place: what it holds at the end.
    exit: [Option<Vec<u32>>; 2],
    classes: Classes,
}

/// The length class of every micro-step.
#[derive(Debug, Default)]
struct Classes {
    /// By step: where its micro-steps start in `class`.
    start: Vec<u32>,
    class: Vec<u32>,
}

/// No value: nothing has written the cell.
pub(super) const UNDEFINED: u32 = u32::MAX;
/// No value either, but the fault behind it is reported already.
const POISONED: u32 = u32::MAX - 1;

impl Symbolic {
    /// The entry value of a cell of a `Send` buffer; none if there is no such cell.
    pub fn entry(&self, buffer: BufferId, rank: RankId, cell: u32) -> Option<ValueId> {
        let place = self.place(buffer, rank, cell)?;
        value(self.entry[place])
    }

    /// What a cell of a `Recv` buffer holds at the end, under a form that the plan serves; none if nothing ever
    /// writes it, or there is no such cell. (Under `same`, a `Recv` cell that lies on a `Send` cell starts with that
    /// one's entry value.)
    pub fn exit(&self, form: Form, buffer: BufferId, rank: RankId, cell: u32) -> Option<ValueId> {
        let place = self.place(buffer, rank, cell)?;
        value(self.exit[form as usize].as_ref()?[place])
    }

    /// The length class of a micro-step: the position in its block of the cells that it moves. None for tokens.
    pub fn class(&self, step: StepId, micro: u32) -> Option<u32> {
        let start = *self.classes.start.get(step.index())? as usize;
        let end = *self.classes.start.get(step.index() + 1)? as usize;
        let class = *self.classes.class[start..end].get(micro as usize)?;
        (class != UNDEFINED).then_some(class)
    }

    fn place(&self, buffer: BufferId, rank: RankId, cell: u32) -> Option<usize> {
        self.places.find(rank, buffer, cell)
    }
}

fn value(raw: u32) -> Option<ValueId> {
    (raw < POISONED).then_some(ValueId(raw))
}

/// V4.
pub(super) fn check(
    plan: &Plan,
    links: &Links,
    order: &Order,
    places: Places,
    limits: &Limits,
) -> Result<Symbolic, Vec<Violation>> {
    let mut report = Report::default();
    if !plan.header.serves_post {
        for (at, _) in plan.steps.iter().enumerate().filter(|(_, step)| step.post) {
            let site = || vec![Site::of(plan, StepId::new(at), "")];
            report.add(|| (super::Fault::Symbolic(Fault::PostUnserved), site()));
        }
    }
    if plan.header.serves_post {
        let lists = plan.promise.clauses.iter().map(|clause| plan.promise.lists[clause.list as usize].len());
        let mut sizes = lists.filter(|&len| len > 1);
        if let Some(first) = sizes.next()
            && let Some(other) = sizes.find(|&size| size != first)
        {
            report.add(|| (super::Fault::Symbolic(Fault::PostSizes(first, other)), Vec::new()));
        }
    }
    let mut values = Values::default();
    let entry = entry_values(plan, &places, &mut values);
    let mut exit = [None, None];
    let mut classes = Classes::default();
    for form in Form::ALL.into_iter().filter(|&form| plan.header.forms.serves(form)) {
        let memory = if form == Form::Same { places.same(plan) } else { Vec::new() };
        let mut run = Run {
            plan,
            links,
            places: &places,
            form,
            held: hold_entry(&entry, &memory),
            memory,
            messages: Messages::new(plan, links),
            classes: Classes::new(plan),
            values: &mut values,
            fold: Vec::new(),
            report: &mut report,
        };
        for &id in &order.0 {
            run.step(id);
            if run.report.is_full() {
                break;
            }
        }
        let (held, memory) = (run.held, run.memory);
        classes = run.classes;
        let held = if memory.is_empty() { held } else { memory.iter().map(|&m| held[m as usize]).collect() };
        if report.is_empty() {
            promised::check(plan, &places, form, &values, &entry, &held, limits, &mut report);
        }
        exit[form as usize] = Some(held);
    }
    if plan.promise.synchronised && report.is_empty() {
        barrier::check(plan, links, order, limits, &mut report);
    }
    report.verdict()?;
    Ok(Symbolic { values, places, entry, exit, classes })
}

/// A leaf for every `Send` cell; its key is its place.
fn entry_values(plan: &Plan, places: &Places, values: &mut Values) -> Vec<u32> {
    let mut entry = vec![UNDEFINED; places.total()];
    for rank in (0..plan.header.ranks).map(RankId) {
        for (b, _) in plan.buffers.iter().enumerate().filter(|(_, buffer)| buffer.role == Role::Send) {
            let buffer = BufferId::new(b);
            for cell in 0..places.cells(rank, buffer) {
                let place = places.of(rank, buffer, cell);
                entry[place] = values.leaf(place as u32, cell % plan.header.cells).0;
            }
        }
    }
    entry
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
        for channel in (0..plan.channels.len()).map(crate::ids::ChannelId::new) {
            next_sent.push(next);
            for end in ends(plan, channel) {
                next_received[end.index()] = next;
            }
            next += links.senders(channel).iter().map(|step| plan.steps[step.index()].width).sum::<u32>();
        }
        Messages { next_sent, next_received, value: vec![POISONED; next as usize] }
    }
}

impl Classes {
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
