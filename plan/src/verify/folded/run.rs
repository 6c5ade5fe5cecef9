//! V4 of a folded plan: its steps once, with symbols for data, all ranks of an orbit in lockstep.
//!
//! In: a folded plan that V0 to V3 and V5 have passed on a cover. Out: what the cells of standing ranks hold at the end, under each
//! form; or faults. In the plan of all ranks, σᵗ of a step does what the step does, to values taken round t times: by induction along
//! the order in which steps are done here, since what a step reads was made by steps done before it, and σ takes messages to messages
//! and cells to cells. What a standing rank receives over a channel whose reader is t times further on was sent by the standing
//! writer, taken back t times.
//!
//! A step is done when its block has come to it, every message that it takes has been sent and every wait is met. Condition D has been
//! shown, so all get done, and order does not matter.

use super::super::links::ends;
use super::super::places::Memory;
use super::super::violation::Site;
use super::promised;
use super::values::{FoldedValues, Taken};
use super::{Links, Places, Report, Violation, arrivals, symbolic};
use crate::fold::Folded;
use crate::ids::{BlockId, BufferId, ChannelId, RankId, StepId};
use crate::plan::{ChannelKind, Form, Header, Operand, Plan, Role, Step};
use crate::verify::Limits;

/// V4.
pub(super) fn check(folded: &Folded, limits: &Limits) -> Result<FoldedValues, Vec<Violation>> {
    // The standing ranks as a world of their own: places of a folded plan are theirs.
    let step = folded.rotation.step;
    let header = &folded.plan.header;
    let plan =
        &Plan { header: Header { ranks: step, shape: vec![step], ..header.clone() }, ..folded.plan.clone() };
    let mut report = Report::default();
    let add = |report: &mut Report, fault| report.add(|| (super::super::Fault::Symbolic(fault), Vec::new()));
    if !header.serves_post && plan.steps.iter().any(|step| step.post) {
        add(&mut report, symbolic::Fault::PostUnserved);
    }
    if !header.serves_pre && plan.steps.iter().any(|step| !step.pre.is_none()) {
        add(&mut report, symbolic::Fault::PreUnserved);
    }
    if header.serves_post {
        let lists = plan.promise.clauses.iter().map(|clause| plan.promise.lists[clause.list as usize].len());
        let mut sizes = lists.filter(|&len| len > 1);
        if let Some(first) = sizes.next()
            && let Some(other) = sizes.find(|&size| size != first)
        {
            add(&mut report, symbolic::Fault::PostSizes(first, other));
        }
    }
    let links = Links::new(plan);
    let order = in_lockstep(plan, &links);
    let places = Places::new(plan);
    let mut values = FoldedValues::new(folded.order(), header.cells, folded.position(), places);
    let mut entry = vec![None; values.places.total()];
    for rank in (0..step).map(RankId) {
        for b in (0..plan.buffers.len()).filter(|&b| plan.buffers[b].role == Role::Send) {
            for cell in 0..values.places.cells(rank, BufferId::new(b)) {
                let place = values.places.of(rank, BufferId::new(b), cell);
                entry[place] = Some(values.entry(place as u32, cell % header.cells));
            }
        }
    }
    let mut sent: Vec<Vec<Vec<Option<Taken>>>> = Vec::new();
    for form in Form::ALL.into_iter().filter(|&form| header.forms.serves(form)) {
        let mut run = Run::new(folded, plan, &links, form, &entry, &values.places);
        for &id in &order {
            run.step(id, &mut values, &mut report);
            if report.is_full() {
                break;
            }
        }
        let Run { mut held, messages, .. } = run;
        if form == Form::Same {
            for overlap in &plan.overlaps {
                let (left, right) = values.places.sides(overlap);
                held.copy_within(right, left.start);
            }
        }
        if report.is_empty() {
            promised::check(folded, plan, form, &values, &entry, &held, limits, &mut report);
        }
        values.exit[form as usize] = Some(held);
        sent.push(messages);
    }
    if report.is_empty()
        && let [apart, together] = &sent[..]
    {
        agree(plan, &values, apart, together, &mut report);
    }
    if plan.promise.synchronised && report.is_empty() {
        arrivals::check(folded, plan, &links, &order, limits, &mut report);
    }
    report.verdict()?;
    Ok(values)
}

/// An order in which all steps can be done: each after the steps that send what it takes, and those that it waits for.
fn in_lockstep(plan: &Plan, links: &Links) -> Vec<StepId> {
    let mut order = Vec::with_capacity(plan.steps.len());
    let mut next: Vec<u32> = plan.blocks.iter().map(|block| block.prologue.start).collect();
    let mut sent = vec![0u32; plan.channels.len()];
    let mut got = vec![0u32; plan.readers.len()];
    let mut done = vec![false; plan.steps.len()];
    // Blocks whose next step waits for the channel, or for the step.
    let mut for_message: Vec<Vec<BlockId>> = vec![Vec::new(); plan.channels.len()];
    let mut for_step: rustc_hash::FxHashMap<StepId, Vec<BlockId>> = rustc_hash::FxHashMap::default();
    let mut ready: Vec<BlockId> = (0..plan.blocks.len()).rev().map(BlockId::new).collect();
    while let Some(block) = ready.pop() {
        while next[block.index()] < plan.blocks[block.index()].epilogue.end {
            let id = StepId(next[block.index()]);
            let step = &plan.steps[id.index()];
            if let Some(&wait) = plan.waits(step).iter().find(|wait| !done[wait.index()]) {
                for_step.entry(wait).or_default().push(block);
                break;
            }
            let lacks = |end: &super::super::links::EndId| {
                got[end.index()] >= sent[links.channel_of[end.index()].index()]
            };
            if let Some(end) = links.gets(plan, id).find(lacks) {
                for_message[links.channel_of[end.index()].index()].push(block);
                break;
            }
            links.gets(plan, id).for_each(|end| got[end.index()] += 1);
            for channel in links.puts(plan, id) {
                sent[channel.index()] += 1;
                ready.append(&mut for_message[channel.index()]);
            }
            done[id.index()] = true;
            ready.extend(for_step.remove(&id).into_iter().flatten());
            order.push(id);
            next[block.index()] += 1;
        }
    }
    order
}

/// One execution, under one form.
struct Run<'a> {
    folded: &'a Folded,
    plan: &'a Plan,
    links: &'a Links,
    form: Form,
    memory: Memory,
    held: Vec<Option<Taken>>,
    /// By channel: all messages, micro-step by micro-step, as the writer sends them.
    messages: Vec<Vec<Option<Taken>>>,
    /// By end: how many of them are taken.
    taken: Vec<usize>,
    /// Values that a fault has spoilt are none, and reported once.
    results: Vec<Option<Taken>>,
}

impl<'a> Run<'a> {
    fn new(
        folded: &'a Folded,
        plan: &'a Plan,
        links: &'a Links,
        form: Form,
        entry: &[Option<Taken>],
        places: &Places,
    ) -> Run<'a> {
        let mut held = entry.to_vec();
        if form == Form::Same {
            for overlap in &plan.overlaps {
                let (left, right) = places.sides(overlap);
                held[right].copy_from_slice(&entry[left]);
            }
        }
        Run {
            folded,
            plan,
            links,
            form,
            memory: Memory::new(plan, places, form),
            held,
            messages: vec![Vec::new(); plan.channels.len()],
            taken: vec![0; plan.readers.len()],
            results: Vec::new(),
        }
    }

    fn step(&mut self, id: StepId, values: &mut FoldedValues, report: &mut Report) {
        let plan = self.plan;
        let step = &plan.steps[id.index()];
        let token = |operand: &Operand| matches!(*operand, Operand::Channel(c) if plan.channels[c.index()].kind == ChannelKind::Counter);
        let mut operands = plan.src(step).iter().chain(plan.dst(step));
        // Tokens have no value.
        if operands.next().is_none_or(token) {
            return;
        }
        let rank = plan.blocks[self.links.block_of[id.index()].index()].rank;
        let mut results = std::mem::take(&mut self.results);
        results.clear();
        for micro in 0..step.width {
            results.push(self.fold(id, step, rank, micro, values, report));
        }
        for &operand in plan.src(step) {
            if let Operand::Channel(channel) = operand
                && let Some(end) = self.links.end(plan, channel, id)
            {
                self.taken[end.index()] += step.width as usize;
            }
        }
        for &operand in plan.dst(step) {
            match operand {
                Operand::Channel(channel) => self.messages[channel.index()].extend_from_slice(&results),
                Operand::Local { buffer, cell } => {
                    if plan.buffers[buffer.index()].role != Role::Scratch {
                        self.positions(id, (rank, buffer, cell), &results, values, report);
                    }
                    let place = values.places.of(rank, buffer, cell);
                    self.held[place..place + results.len()].copy_from_slice(&results);
                }
                // `misfit` has let none in.
                Operand::Peer { .. } => {}
            }
        }
        self.results = results;
    }

    /// What one micro-step makes.
    fn fold(
        &self,
        id: StepId,
        step: &Step,
        rank: RankId,
        micro: u32,
        values: &mut FoldedValues,
        report: &mut Report,
    ) -> Option<Taken> {
        let plan = self.plan;
        let mut sum: Option<Taken> = None;
        for (left, &operand) in (0..step.sources).rev().zip(plan.src(step)) {
            let next = self.source(id, rank, operand, micro, values, report)?;
            let (source, entry) = (usize::from(step.sources - 1 - left), values.is_leaf(next));
            let mut next = next;
            if plan.header.serves_pre && step.sources > 1 && step.pre.has(source) != entry {
                // As where all ranks are followed: a promise takes no such value; in place it may be that none has to.
                if self.form == Form::Disjoint {
                    report.add(|| {
                        let fault = symbolic::Fault::Pre { number: source, entry };
                        (super::super::Fault::Symbolic(fault), vec![Site::of(plan, id, "")])
                    });
                }
                next = values.post(next);
            }
            let Some(so_far) = sum else {
                sum = Some(next);
                continue;
            };
            let (due, found) = (values.class(so_far), values.class(next));
            if due != found {
                report.add(|| {
                    let what = format!("micro-step {micro} combines pieces");
                    let fault = symbolic::Fault::Class { what, found, due };
                    (super::super::Fault::Symbolic(fault), vec![Site::of(plan, id, "")])
                });
                return None;
            }
            sum = Some(values.combine(so_far, next, step.round_each || left == 0));
        }
        sum.map(|sum| if step.post { values.post(sum) } else { sum })
    }

    fn source(
        &self,
        id: StepId,
        rank: RankId,
        operand: Operand,
        micro: u32,
        values: &FoldedValues,
        report: &mut Report,
    ) -> Option<Taken> {
        match operand {
            Operand::Channel(channel) => {
                let end = self.links.end(self.plan, channel, id)?;
                let number = self.taken[end.index()] + micro as usize;
                let message = self.messages[channel.index()].get(number).copied().flatten()?;
                Some(values.taken(message, self.folded.back(self.folded.times[end.index()])))
            }
            Operand::Local { buffer, cell } => {
                let place = values.places.of(rank, buffer, cell + micro);
                let found = self.held[self.memory.of(rank, buffer, place).0];
                if found.is_none() {
                    report.add(|| {
                        let cell = values.places.cell(self.plan, place);
                        let fault = symbolic::Fault::Undefined { cell, form: self.form };
                        (super::super::Fault::Symbolic(fault), vec![Site::of(self.plan, id, "")])
                    });
                }
                found
            }
            Operand::Peer { .. } => None,
        }
    }

    /// User memory takes only pieces of the position of its cell.
    fn positions(
        &self,
        id: StepId,
        (rank, buffer, cell): (RankId, BufferId, u32),
        results: &[Option<Taken>],
        values: &FoldedValues,
        report: &mut Report,
    ) {
        for (cell, result) in (cell..).zip(results) {
            let due = cell % self.plan.header.cells;
            if let Some(found) = result.map(|value| values.class(value)).filter(|&found| found != due) {
                report.add(|| {
                    let place = values.places.of(rank, buffer, cell);
                    let what = format!("{} is given a piece", values.places.cell(self.plan, place));
                    let fault = symbolic::Fault::Class { what, found, due };
                    (super::super::Fault::Symbolic(fault), vec![Site::of(self.plan, id, "")])
                });
            }
        }
    }
}

/// Messages, and what is promised, must be the same in both forms.
fn agree(
    plan: &Plan,
    values: &FoldedValues,
    apart: &[Vec<Option<Taken>>],
    together: &[Vec<Option<Taken>>],
    report: &mut Report,
) {
    let mut add = |fault| report.add(|| (super::super::Fault::Symbolic(fault), Vec::new()));
    for (c, (apart, together)) in apart.iter().zip(together).enumerate() {
        if let Some(number) = apart.iter().zip(together).position(|(a, b)| a != b) {
            let channel = ChannelId::new(c);
            debug_assert!(ends(plan, channel).next().is_some());
            add(symbolic::Fault::MessageDiffers { channel, number: number as u32 });
        }
    }
    let [Some(apart), Some(together)] = &values.exit else { return };
    for clause in &plan.promise.clauses {
        for cell in 0..plan.header.cells {
            let place = promised::place(&values.places, clause.place, plan.header.cells, cell);
            if apart[place] != together[place] {
                add(symbolic::Fault::ResultDiffers { cell: values.places.cell(plan, place) });
            }
        }
    }
}
