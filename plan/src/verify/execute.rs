//! V4, the execution: every step once, with symbols for data, under all alias forms side by side.
//!
//! In: an order of the steps, as it comes; entry values. Out: [`End`]: what memory holds under each form, what was sent, the length
//! class of every micro-step; faults go to the report of their form. A value that a fault has spoilt is poison: it is
//! passed on in silence, so that one fault is reported once.
//!
//! The one hard idea: a step is executed whole, operand by operand, not cell by cell. V3 has shown that its
//! micro-steps do not touch each other's cells, and no message of a step is meant for itself, so the order of reading
//! and writing within it does not matter. And where a step reads the same values under both forms, which is nearly
//! always, it is folded once.

use super::links::{Links, ends};
use super::places::{Memory, Places};
use super::symbolic::Fault;
use super::violation::{Report, Site};
use crate::ids::{ChannelId, RankId, StepId};
use crate::plan::{ChannelKind, Form, Operand, Plan, Role, Step};
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
    pub(super) places: &'a Places,
    /// By place: the entry value.
    pub(super) entry: &'a [u32],
}

/// What an execution leaves.
pub(super) struct End {
    /// How many steps it had to run.
    pub(super) steps: usize,
    /// Of each form that the plan serves, in the order of [`Form::ALL`].
    pub(super) worlds: Vec<World>,
    /// All messages under the first form and under the second, if there are any that differ.
    pub(super) differing: Option<[Vec<u32>; 2]>,
    pub(super) classes: Classes,
}

/// What there is under one alias form.
pub(super) struct World {
    pub(super) form: Form,
    /// What each place holds. While the execution runs: what each memory holds.
    pub(super) held: Vec<u32>,
    pub(super) report: Report,
    memory: Memory,
    /// Of the step at hand: what its sources hold, operand by operand; what its micro-steps leave.
    sources: Vec<u32>,
    results: Vec<u32>,
}

/// The length class of every micro-step.
#[derive(Debug, Default)]
pub(super) struct Classes {
    /// By step: the class of its first micro-step; each further one has the next class.
    first: Vec<u32>,
    /// Steps of which this is not so, sorted, and where in `class` theirs begin.
    odd: Vec<(StepId, u32)>,
    class: Vec<u32>,
}

/// Runs all steps.
pub(super) fn execute(start: &Start, order: impl Iterator<Item = StepId>, values: &mut Values) -> End {
    let &Start { plan, links, places, entry } = start;
    let forms = Form::ALL.into_iter().filter(|&form| plan.header.forms.serves(form));
    let mut run = Run {
        plan,
        links,
        places,
        worlds: forms.map(|form| World::new(plan, places, form, entry)).collect(),
        messages: Messages::new(plan, links),
        classes: Classes { first: vec![UNDEFINED; plan.steps.len()], ..Classes::default() },
        values,
    };
    let mut steps = 0;
    for id in order {
        run.step(id);
        steps += 1;
        if run.worlds.iter().any(|world| world.report.is_full()) {
            break;
        }
    }
    run.classes.odd.sort_unstable();
    for world in &mut run.worlds {
        world.end(plan, places);
    }
    let Messages { value, other, .. } = run.messages;
    End { steps, worlds: run.worlds, differing: other.map(|other| [value, other]), classes: run.classes }
}

/// The micro-steps that send on a channel.
pub(super) fn message_count(plan: &Plan, links: &Links, channel: ChannelId) -> u32 {
    links.senders(channel).iter().map(|step| plan.steps[step.index()].width).sum()
}

/// One execution.
struct Run<'a> {
    plan: &'a Plan,
    links: &'a Links,
    places: &'a Places,
    worlds: Vec<World>,
    messages: Messages,
    classes: Classes,
    values: &'a mut Values,
}

/// All messages of all channels, sent or not yet, in one array: micro-step by micro-step.
struct Messages {
    /// By channel: the place of the next message to be sent.
    next_sent: Vec<u32>,
    /// By end: the place of the next one to be received.
    next_received: Vec<u32>,
    value: Vec<u32>,
    /// Under the second form, if any differs.
    other: Option<Vec<u32>>,
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
        Messages { next_sent, next_received, value: vec![POISONED; next as usize], other: None }
    }
}

impl Classes {
    /// The class of a micro-step that there is; none for tokens.
    pub(super) fn of(&self, step: StepId, micro: u32) -> Option<u32> {
        let first = *self.first.get(step.index()).filter(|&&first| first != UNDEFINED)?;
        match self.odd.binary_search_by_key(&step, |&(step, _)| step) {
            Ok(at) => self.class.get((self.odd[at].1 + micro) as usize).copied(),
            Err(_) => Some(first + micro),
        }
    }

    fn note(&mut self, step: StepId, classes: impl Iterator<Item = u32> + Clone) {
        let Some(first) = classes.clone().next() else { return };
        self.first[step.index()] = first;
        if classes.clone().enumerate().any(|(micro, class)| class != first.wrapping_add(micro as u32)) {
            self.odd.push((step, self.class.len() as u32));
            self.class.extend(classes);
        }
    }
}

impl World {
    fn new(plan: &Plan, places: &Places, form: Form, entry: &[u32]) -> World {
        let mut held = entry.to_vec();
        if form == Form::Same {
            for overlap in &plan.overlaps {
                let (left, right) = places.sides(overlap);
                held[right].copy_from_slice(&entry[left]);
            }
        }
        let memory = Memory::new(plan, places, form);
        World { form, held, report: Report::default(), memory, sources: Vec::new(), results: Vec::new() }
    }

    /// From what memory holds to what places hold.
    fn end(&mut self, plan: &Plan, places: &Places) {
        if self.form == Form::Same {
            for overlap in &plan.overlaps {
                let (left, right) = places.sides(overlap);
                self.held.copy_within(right, left.start);
            }
        }
    }

    /// Appends what `width` places hold to `sources`.
    #[inline]
    fn load(&mut self, run: &At, rank: RankId, operand: (usize, Operand)) {
        let (place, Operand::Local { buffer, .. } | Operand::Peer { buffer, .. }) = operand else { return };
        let first = self.sources.len();
        if run.step.width == 1 {
            // Copying ranges of one costs more than all the rest.
            let raw = self.held[self.memory.of(rank, buffer, place).0];
            self.sources.push(raw);
            if raw == UNDEFINED {
                self.undefined(run, place, first);
            }
            return;
        }
        for range in self.memory.ranges(rank, buffer, place, run.step.width as usize) {
            self.sources.extend_from_slice(&self.held[range]);
        }
        if self.sources[first..].contains(&UNDEFINED) {
            self.undefined(run, place, first);
        }
    }

    #[cold]
    fn undefined(&mut self, run: &At, place: usize, first: usize) {
        let (plan, places, form) = (run.plan, run.places, self.form);
        for (micro, raw) in self.sources[first..].iter_mut().enumerate().filter(|(_, raw)| **raw == UNDEFINED)
        {
            *raw = POISONED;
            self.report.add(|| {
                let fault = Fault::Undefined { cell: places.cell(plan, place + micro), form };
                (super::Fault::Symbolic(fault), vec![Site::of(plan, run.id, "")])
            });
        }
    }
}

/// The step at hand.
struct At<'a> {
    plan: &'a Plan,
    places: &'a Places,
    id: StepId,
    step: &'a Step,
    rank: RankId,
}

impl At<'_> {
    /// Where the cells of an operand in memory begin, and whose they are.
    #[inline]
    fn place(&self, operand: Operand) -> Option<(usize, RankId)> {
        match operand {
            Operand::Channel(_) => None,
            Operand::Local { buffer, cell } => Some((self.places.of(self.rank, buffer, cell), self.rank)),
            Operand::Peer { rank, buffer, cell } => Some((self.places.of(rank, buffer, cell), rank)),
        }
    }

    /// The inner part of an operator acts on entry values, and on nothing else: a source as it goes into a sum. Marks are
    /// those of the form out of place. In place a step whose result is not promised may read something else; what is then
    /// marked wrongly is a value that no promise takes, as if an outer part had been applied to a part.
    #[inline]
    fn marked(
        &self,
        form: Form,
        report: &mut Report,
        source: usize,
        value: ValueId,
        values: &mut Values,
    ) -> ValueId {
        let entry = values.is_leaf(value);
        if self.step.pre.has(source) == entry {
            return value;
        }
        if form == Form::Disjoint {
            report.add(|| {
                let fault = Fault::Pre { number: source, entry };
                (super::Fault::Symbolic(fault), vec![Site::of(self.plan, self.id, "")])
            });
        }
        values.post(value)
    }

    #[cold]
    fn class_fault(&self, report: &mut Report, what: impl FnOnce() -> String, found: u32, due: u32) {
        report.add(|| {
            let fault = Fault::Class { what: what(), found, due };
            (super::Fault::Symbolic(fault), vec![Site::of(self.plan, self.id, "")])
        });
    }
}

impl Run<'_> {
    fn step(&mut self, id: StepId) {
        let plan = self.plan;
        let step = &plan.steps[id.index()];
        let rank = plan.blocks[self.links.block_of[id.index()].index()].rank;
        let at = At { plan, places: self.places, id, step, rank };
        let (src, dst) = (plan.src(step), plan.dst(step));
        // Tokens have no value.
        match src.iter().chain(dst).next() {
            None => return,
            Some(&Operand::Channel(c)) if plan.channels[c.index()].kind == ChannelKind::Counter => return,
            Some(_) => {}
        }
        self.load(&at, src);
        let (first, second) = self.worlds.split_at_mut(1);
        let Some(first) = first.first_mut() else { return };
        fold(&at, first, self.values);
        check_stores(&at, first, self.values, dst);
        let results = first.results.iter();
        self.classes
            .note(id, results.map(|&raw| value(raw).map_or(UNDEFINED, |value| self.values.class(value))));
        let mut alike = true;
        if let Some(second) = second.first_mut() {
            alike = match step.width {
                1 => first.sources.iter().eq(&second.sources),
                _ => first.sources == second.sources,
            };
            if !alike {
                fold(&at, second, self.values);
                check_stores(&at, second, self.values, dst);
                alike = first.results == second.results;
            }
        }
        self.store(&at, dst, alike);
    }

    /// What the sources hold, in each world.
    #[inline]
    fn load(&mut self, at: &At, src: &[Operand]) {
        let width = at.step.width;
        for world in &mut self.worlds {
            world.sources.clear();
        }
        for &operand in src {
            if let Some((place, rank)) = at.place(operand) {
                for world in &mut self.worlds {
                    world.load(at, rank, (place, operand));
                }
            } else if let Operand::Channel(channel) = operand
                && let Some(end) = self.links.end(at.plan, channel, at.id)
            {
                let Messages { next_received, value, other, .. } = &mut self.messages;
                let next = &mut next_received[end.index()];
                let range = *next as usize..(*next + width) as usize;
                *next += width;
                if width == 1 {
                    for (world, messages) in
                        self.worlds.iter_mut().zip([&*value, other.as_ref().unwrap_or(value)])
                    {
                        world.sources.push(messages[range.start]);
                    }
                    continue;
                }
                for (world, messages) in
                    self.worlds.iter_mut().zip([&*value, other.as_ref().unwrap_or(value)])
                {
                    world.sources.extend_from_slice(&messages[range.clone()]);
                }
            }
        }
    }

    /// Hands the results to all destinations; `alike`: the second world's are the first one's.
    #[inline]
    fn store(&mut self, at: &At, dst: &[Operand], alike: bool) {
        let width = at.step.width as usize;
        for &operand in dst {
            if let Some((place, _)) = at.place(operand) {
                let results = |of: usize| if alike { 0 } else { of };
                for w in 0..self.worlds.len() {
                    let from = results(w);
                    // One may be the source of the other.
                    if width == 1 {
                        self.worlds[w].held[place] = self.worlds[from].results[0];
                        continue;
                    }
                    let taken = std::mem::take(&mut self.worlds[from].results);
                    self.worlds[w].held[place..place + width].copy_from_slice(&taken);
                    self.worlds[from].results = taken;
                }
            } else if let Operand::Channel(channel) = operand {
                let Messages { next_sent, value, other, .. } = &mut self.messages;
                let next = &mut next_sent[channel.index()];
                let range = *next as usize..*next as usize + width;
                *next += width as u32;
                if width == 1 {
                    value[range.start] = self.worlds[0].results[0];
                } else {
                    value[range.clone()].copy_from_slice(&self.worlds[0].results);
                }
                if !alike && other.is_none() {
                    *other = Some(value.clone());
                }
                if let Some(other) = other {
                    other[range].copy_from_slice(&self.worlds[usize::from(!alike)].results);
                }
            }
        }
    }
}

/// The sources of each micro-step folded.
#[inline]
fn fold(at: &At, world: &mut World, values: &mut Values) {
    let (width, step) = (at.step.width as usize, at.step);
    let World { form, sources, results, report, .. } = world;
    results.clear();
    for micro in 0..width {
        let mut operands = sources[micro..].iter().step_by(width);
        let Some(mut sum) = operands.next().and_then(|&raw| value(raw)) else {
            results.push(POISONED);
            continue;
        };
        let due = values.class(sum);
        let marked = at.plan.header.serves_pre && step.sources > 1;
        if marked {
            sum = at.marked(*form, report, 0, sum, values);
        }
        let mut left = step.sources;
        let mut sound = true;
        for &raw in operands {
            let Some(next) = value(raw) else {
                sound = false;
                break;
            };
            let found = values.class(next);
            if found != due {
                at.class_fault(report, || format!("micro-step {micro} combines pieces"), found, due);
                sound = false;
                break;
            }
            left -= 1;
            let source = usize::from(step.sources - left);
            let next = if marked { at.marked(*form, report, source, next, values) } else { next };
            sum = values.combine(sum, next, step.round_each || left == 1);
        }
        if sound && step.post {
            sum = values.post(sum);
        }
        results.push(if sound { sum.0 } else { POISONED });
    }
}

/// User memory takes only pieces of the position of its cell.
#[inline]
fn check_stores(at: &At, world: &mut World, values: &Values, dst: &[Operand]) {
    let cells = at.plan.header.cells;
    let World { results, report, .. } = world;
    for &operand in dst {
        let (Operand::Local { buffer, cell } | Operand::Peer { buffer, cell, .. }) = operand else {
            continue;
        };
        if at.plan.buffers[buffer.index()].role == Role::Scratch {
            continue;
        }
        let mut due = cell % cells;
        for (micro, &raw) in results.iter().enumerate() {
            if let Some(value) = value(raw)
                && values.class(value) != due
                && let Some((place, _)) = at.place(operand)
            {
                let what = || format!("{} is given a piece", at.places.cell(at.plan, place + micro));
                at.class_fault(report, what, values.class(value), due);
            }
            due = if due + 1 == cells { 0 } else { due + 1 };
        }
    }
}
