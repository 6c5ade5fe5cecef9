//! V4: the plan, executed with symbols for data, does what its collective promises.
//!
//! In: a plan that V0 to V3 and V5 have passed, and an order of its steps. Out: [`Symbolic`]: what every `Recv` cell
//! holds at the end, as an expression in the entry values; or faults: a cell read before anything wrote it; a value
//! at a place of another length class; a promise not met; the operator's outer part applied where it is not due, or
//! missing where it is. Done once for each alias form that the plan serves; values are shared between the two. A
//! plan that serves both must send and promise the very same values in both: then results have the same bits, and
//! each rank may choose its form alone (where there is `Peer` access the ranks must agree on it).
//!
//! The one hard idea: without races and deadlocks all executions give the same values (plan.md §4), so one
//! speaks for all. Steps are executed whole, one after another: the pairs of V1 make messages flow from step to
//! step, and in the order of V2 every step comes after all that it reads.
//!
//! That `Send` cells are unchanged needs no check here: V0 lets nothing write them. Under `same`, those that overlap
//! a `Recv` cell change with it, as the caller has asked.

use super::execute::{Classes, End, Start, UNDEFINED, World, execute, message_count, value};
use super::limits::Limits;
use super::links::Links;
use super::places::{Cell, Places};
use super::promised::{self, Met};
use super::violation::{Report, Site, Violation};
use crate::ids::{BufferId, ChannelId, RankId, StepId};
use crate::plan::{Form, Plan, Role};
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
    /// Some step says which of its sources are entry values, but the header says that none does.
    #[error(
        "the step says which of its sources are entry values, but the header says that operators with an inner part \
         are not served"
    )]
    PreUnserved,
    /// The inner part of the operator would act on what is combined already, or not on an entry value.
    #[error("source {} is {}", number + 1, if *entry { "an entry value, and is not marked as one" } else { "marked as an entry value, and is none" })]
    Pre {
        /// Which source, from 0.
        number: usize,
        /// Whether it is an entry value.
        entry: bool,
    },
    /// A message carries one value out of place and another in place, so that ranks of different forms cannot meet.
    #[error("message {number} on channel {} is not the same value in place as out of place", channel.0)]
    MessageDiffers {
        /// The channel.
        channel: ChannelId,
        /// The number of the micro-step among the channel's, from 0.
        number: u32,
    },
    /// A result is combined in another order in place than out of place.
    #[error("{cell} is combined in another order in place than out of place, so its bits may differ")]
    ResultDiffers {
        /// The cell.
        cell: Cell,
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
            Fault::PreUnserved | Fault::Pre { .. } => "plan::v4_pre",
            Fault::MessageDiffers { .. } | Fault::ResultDiffers { .. } => "plan::v4_forms_differ",
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
            Fault::PreUnserved | Fault::Pre { .. } => {
                "mark in `pre` the sources that are entry values, of all steps with two sources or more, or of none"
            }
            Fault::MessageDiffers { .. } | Fault::ResultDiffers { .. } => {
                "read entry values from the `Send` buffer before the `Recv` cells over it are written, or serve one \
                 form only"
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

    /// The length class of a micro-step that the step has: the position in its block of the cells that it moves. None
    /// for tokens.
    pub fn class(&self, step: StepId, micro: u32) -> Option<u32> {
        self.classes.of(step, micro)
    }

    fn place(&self, buffer: BufferId, rank: RankId, cell: u32) -> Option<usize> {
        self.places.find(rank, buffer, cell)
    }
}

/// V4 but for `synchronised`, while the order of the steps still comes. If it ends early there is nothing to say: V2 does. What
/// the rules say that run at the same time or later (V2, V5, V3) comes first; until they have ended the plan may break them, so that
/// nothing here may rely on them for more than for the truth of its own verdict.
pub(super) fn check(
    plan: &Plan,
    links: &Links,
    order: impl Iterator<Item = StepId>,
    limits: &Limits,
) -> Result<Symbolic, Vec<Violation>> {
    let places = Places::new(plan);
    let mut report = Report::default();
    if !plan.header.serves_post {
        for (at, _) in plan.steps.iter().enumerate().filter(|(_, step)| step.post) {
            let site = || vec![Site::of(plan, StepId::new(at), "")];
            report.add(|| (super::Fault::Symbolic(Fault::PostUnserved), site()));
        }
    }
    if !plan.header.serves_pre {
        for (at, _) in plan.steps.iter().enumerate().filter(|(_, step)| !step.pre.is_none()) {
            let site = || vec![Site::of(plan, StepId::new(at), "")];
            report.add(|| (super::Fault::Symbolic(Fault::PreUnserved), site()));
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
    let start = Start { plan, links, places: &places, entry: &entry };
    let End { steps, worlds, differing, classes } = execute(&start, order, &mut values);
    if steps < plan.steps.len() && worlds.iter().all(|world| world.report.is_empty()) {
        return Err(Vec::new());
    }
    let mut met = Met::new(&values);
    let mut exit: [Option<Vec<u32>>; 2] = [None, None];
    for World { form, held, report: found, .. } in worlds {
        report.append(found);
        if report.is_empty() {
            promised::check(plan, &places, form, &values, &entry, &held, limits, &mut met, &mut report);
        }
        exit[form as usize] = Some(held);
    }
    if report.is_empty()
        && let [Some(apart), Some(together)] = &exit
    {
        if let Some([apart, together]) = &differing {
            messages_agree(plan, links, apart, together, &mut report);
        }
        results_agree(plan, &places, apart, together, &mut report);
    }
    drop(differing);
    report.verdict()?;
    Ok(Symbolic { values, places, entry, exit, classes })
}

/// Compares all messages of two forms.
fn messages_agree(plan: &Plan, links: &Links, apart: &[u32], together: &[u32], report: &mut Report) {
    let mut first = 0;
    for channel in (0..plan.channels.len()).map(ChannelId::new) {
        let len = message_count(plan, links, channel) as usize;
        let differs = |&number: &usize| apart[first + number] != together[first + number];
        if let Some(number) = (0..len).find(differs) {
            let fault = Fault::MessageDiffers { channel, number: number as u32 };
            // Messages are numbered by micro-steps.
            let mut before = 0;
            let sender = links.senders(channel).iter().find(|step| {
                before += plan.steps[step.index()].width as usize;
                before > number
            });
            let sites = || sender.map(|&step| Site::of(plan, step, "sent by")).into_iter().collect();
            report.add(|| (super::Fault::Symbolic(fault), sites()));
        }
        first += len;
    }
}

/// Compares all promised cells of two forms.
fn results_agree(plan: &Plan, places: &Places, apart: &[u32], together: &[u32], report: &mut Report) {
    for clause in &plan.promise.clauses {
        for cell in 0..plan.header.cells {
            let place = promised::place(places, clause.place, plan.header.cells, cell);
            if apart[place] != together[place] {
                let fault = || Fault::ResultDiffers { cell: places.cell(plan, place) };
                let sites = || promised::last_writer(plan, places, place).into_iter().collect();
                report.add(|| (super::Fault::Symbolic(fault()), sites()));
            }
        }
    }
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
