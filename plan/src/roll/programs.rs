//! All blocks' programs as bytes: forms once each, numbers as columns through the blocks of a form.
//!
//! In: a plan whose tables are in order, or bytes. Out: bytes, or blocks, steps, operands and waits. The one hard idea:
//! ranks whose programs differ by an affine rule of the rank (a ring's, turned by one) have one form, and each of
//! their numbers is a column over the ranks, which `series` writes in a few bytes.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::block::{Blocks, Node, operands};
use super::form::{Form, FormNode, Layout, Part, Shape, Slot};
use super::series;
use super::tables::Budget;
use super::wire::{Fault, Read, Reader, Writer, narrow};
use crate::ids::{RankId, SpanId, StepId};
use crate::plan::{Block, Operand, Plan, Step};

/// Appends the blocks of a plan and all that they hold.
pub(super) fn write(out: &mut Writer, plan: &Plan, periods: &[usize]) {
    let blocks = Blocks::new(plan, 0..plan.blocks.len());
    let mut shapes: FxHashMap<Shape, u32> = FxHashMap::default();
    let mut shape_list = Vec::new();
    let mut of_form: FxHashMap<Box<[u32]>, usize> = FxHashMap::default();
    // Each form, and its blocks.
    let mut forms: Vec<(Form, Vec<u32>)> = Vec::new();
    let mut shape = Shape::default();
    let mut key = Vec::new();
    let mut form_of_block = Vec::with_capacity(plan.blocks.len());
    for block in 0..plan.blocks.len() {
        let form = Form::new(plan, &blocks, block, |step| {
            shape.set(plan, step);
            if let Some(&known) = shapes.get(&shape) {
                return known;
            }
            let id = shapes.len() as u32;
            shapes.insert(shape.clone(), id);
            shape_list.push(shape.clone());
            id
        });
        form.key(&mut key);
        let id = match of_form.get(key.as_slice()) {
            Some(&known) => known,
            None => {
                of_form.insert(key.as_slice().into(), forms.len());
                forms.push((form, Vec::new()));
                forms.len() - 1
            }
        };
        forms[id].1.push(block as u32);
        form_of_block.push(id as i64);
    }
    out.len(plan.blocks.len());
    let column = |number: fn(&Block) -> i64| plan.blocks.iter().map(number).collect::<Vec<_>>();
    series::write(out, &column(|block| block.rank.0.into()), periods);
    series::write(out, &column(|block| block.position.into()), periods);
    series::write(out, &form_of_block, periods);
    out.len(shape_list.len());
    shape_list.iter().for_each(|shape| shape.write(out));
    out.len(forms.len());
    for (form, members) in &forms {
        form.write(out);
        write_numbers(out, plan, &blocks, (form, members), &shape_list, periods);
    }
}

fn write_numbers(
    out: &mut Writer,
    plan: &Plan,
    blocks: &Blocks,
    (form, members): (&Form, &[u32]),
    shapes: &[Shape],
    periods: &[usize],
) {
    let layout = Layout::new(form, shapes);
    let mut column = Vec::new();
    if let [only] = *members {
        let mut first = 0;
        for &end in &layout.streams {
            column.clear();
            column.extend(layout.slots[first..end].iter().map(|&slot| number(plan, blocks, only, slot)));
            series::write(out, &column, &[]);
            first = end;
        }
        return;
    }
    for &slot in &layout.slots {
        column.clear();
        column.extend(members.iter().map(|&member| number(plan, blocks, member, slot)));
        series::write(out, &column, periods);
    }
}

/// A number of a block's program.
fn number(plan: &Plan, blocks: &Blocks, block: u32, slot: Slot) -> i64 {
    let (start, _) = blocks.starts[block as usize];
    let (id, numbers) = match blocks.nodes[(start + slot.node) as usize] {
        Node::Loop { count, .. } => return count.into(),
        Node::Step { step, numbers } => (step, numbers),
    };
    let step = &plan.steps[id as usize];
    let term = |number: u32, term: u8| {
        let form = &blocks.numbers[(numbers + number) as usize];
        blocks.terms[form.start as usize + usize::from(term)]
    };
    match slot.part {
        Part::Count => 0,
        Part::Width => step.width.into(),
        Part::Span => step.span.0.into(),
        Part::Operand(at) => match operands(plan, step)[at as usize] {
            Operand::Channel(channel) => channel.0.into(),
            Operand::Local { cell, .. } => cell.into(),
            Operand::Peer { rank, .. } => rank.0.into(),
        },
        Part::PeerCell(at) => match operands(plan, step)[at as usize] {
            Operand::Channel(_) => 0,
            Operand::Local { cell, .. } | Operand::Peer { cell, .. } => cell.into(),
        },
        Part::Wait(at) => plan.waits(step)[at as usize].0.into(),
        Part::Start(at, t) => term(at, t).start,
        Part::Stride(at, t, level) => term(at, t).strides[usize::from(level)],
        Part::Modulus(at, t) => term(at, t).modulus,
    }
}

/// What has been read of a form and the programs that have it.
struct Programs {
    form: Form,
    layout: Layout,
    /// How many there are.
    members: usize,
    /// Numbers by slot, then by member.
    numbers: Vec<i64>,
}

/// Reads blocks, steps, operands and waits into a plan that has none.
pub(super) fn read(input: &mut Reader<'_>, plan: &mut Plan, budget: &mut Budget) -> Read<()> {
    let len = budget.table(input, size_of::<Block>() + 3 * size_of::<u32>())?;
    let ranks = series::read_small(input, len)?;
    let positions = series::read_small(input, len)?;
    let form_of_block = series::read_small(input, len)?;
    let shape_count = budget.table(input, size_of::<Shape>())?;
    let mut shapes = Vec::new();
    for _ in 0..shape_count {
        shapes.push(Shape::read(input, |rows, size| budget.charge(rows as u64, size))?);
    }
    let form_count = budget.table(input, size_of::<Programs>())?;
    let mut members = vec![0usize; form_count];
    for &form in &form_of_block {
        *members.get_mut(form as usize).ok_or(Fault::Malformed("a block has no program"))? += 1;
    }
    let mut programs = Vec::new();
    for members in members {
        programs.push(read_programs(input, &shapes, members, budget)?);
    }
    // How much there is of all, before memory is taken for it.
    let mut total = Sizes::default();
    let mut seen = vec![0usize; programs.len()];
    for &form in &form_of_block {
        let program = &programs[form as usize];
        total.add(program.sizes(&shapes, seen[form as usize])?);
        seen[form as usize] += 1;
    }
    budget.charge(total.steps, size_of::<Step>())?;
    budget.charge(total.operands, size_of::<Operand>())?;
    budget.charge(total.waits, size_of::<StepId>())?;
    let most = u64::from(u32::MAX);
    if total.steps > most || total.operands > most || total.waits > most {
        return Err(Fault::Malformed("there are more steps than 32 bits can count"));
    }
    plan.blocks.reserve_exact(len);
    plan.steps.reserve_exact(total.steps as usize);
    plan.operands.reserve_exact(total.operands as usize);
    plan.waits.reserve_exact(total.waits as usize);
    seen.fill(0);
    for ((&form, rank), position) in form_of_block.iter().zip(ranks).zip(positions) {
        let program = &programs[form as usize];
        let mut emit = Emit { program, shapes: &shapes, member: seen[form as usize], plan: &mut *plan };
        let mut node = 0;
        let [prologue, body, epilogue] = program.form.sections.map(|count| {
            let range = node..node + count as usize;
            node = range.end;
            let start = emit.plan.steps.len() as u32;
            emit.nodes(range, [0; 2], [0; 2]).map(|()| start..emit.plan.steps.len() as u32)
        });
        let (prologue, body, epilogue) = (prologue?, body?, epilogue?);
        plan.blocks.push(Block { rank: RankId(rank), position, prologue, body, epilogue });
        seen[form as usize] += 1;
    }
    Ok(())
}

fn read_programs(
    input: &mut Reader<'_>,
    shapes: &[Shape],
    members: usize,
    budget: &mut Budget,
) -> Read<Programs> {
    let form = Form::read(input, shapes, |rows, size| budget.charge(rows as u64, size))?;
    let slots = Layout::len(&form, shapes);
    budget.charge(slots, size_of::<Slot>() + size_of::<(u32, u8)>())?;
    budget.charge(slots.saturating_mul(members as u64), size_of::<i64>())?;
    let layout = Layout::new(&form, shapes);
    let mut numbers = Vec::with_capacity(layout.slots.len() * members);
    if members == 1 {
        let mut first = 0;
        for &end in &layout.streams {
            numbers.append(&mut series::read(input, end - first)?);
            first = end;
        }
    } else if members > 1 {
        for _ in &layout.slots {
            numbers.append(&mut series::read(input, members)?);
        }
    }
    Ok(Programs { form, layout, members, numbers })
}

impl Programs {
    fn number(&self, slot: u32, member: usize) -> i64 {
        self.numbers[slot as usize * self.members + member]
    }

    /// How often a loop repeats: at least once, so that repeats never outnumber steps.
    fn count(&self, node: usize, member: usize) -> Read<u32> {
        match narrow(self.number(self.layout.of_node[node][0], member))? {
            0 => Err(Fault::Malformed("a loop does not repeat")),
            count => Ok(count),
        }
    }

    /// What one program expands to.
    fn sizes(&self, shapes: &[Shape], member: usize) -> Read<Sizes> {
        let mut sizes = Sizes::default();
        // How often the nodes up to each end are repeated.
        let mut around: Vec<(usize, u64)> = vec![(usize::MAX, 1)];
        for (at, node) in self.form.nodes.iter().enumerate() {
            while around.last().is_some_and(|&(end, _)| end == at) {
                around.pop();
            }
            let times = around.last().map_or(1, |&(_, times)| times);
            match *node {
                FormNode::Loop { body, .. } => {
                    // Two 32-bit numbers at most: loops are no deeper.
                    let times = times.saturating_mul(self.count(at, member)?.into());
                    around.push((at + 1 + body as usize, times));
                }
                FormNode::Step { shape, .. } => {
                    let shape = &shapes[shape as usize];
                    sizes.add(Sizes {
                        steps: times,
                        operands: times.saturating_mul(shape.operands.len() as u64),
                        waits: times.saturating_mul(shape.waits.into()),
                    });
                }
            }
        }
        Ok(sizes)
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct Sizes {
    steps: u64,
    operands: u64,
    waits: u64,
}

impl Sizes {
    fn add(&mut self, other: Sizes) {
        self.steps = self.steps.saturating_add(other.steps);
        self.operands = self.operands.saturating_add(other.operands);
        self.waits = self.waits.saturating_add(other.waits);
    }
}

/// Appends the steps of a program to a plan.
struct Emit<'a> {
    program: &'a Programs,
    shapes: &'a [Shape],
    member: usize,
    plan: &'a mut Plan,
}

impl Emit<'_> {
    /// `at`: which repeat this is of each loop around; `counts`: of how many.
    fn nodes(&mut self, range: Range<usize>, at: [i64; 2], counts: [u32; 2]) -> Read<()> {
        let mut node = range.start;
        while node < range.end {
            match self.program.form.nodes[node] {
                FormNode::Step { shape, depth } => {
                    if depth > 0 && at == [0; 2] {
                        self.bounded(node, shape, counts)?;
                    }
                    self.step(node, shape, at)?;
                    node += 1;
                }
                FormNode::Loop { body, depth } => {
                    let inside = node + 1..node + 1 + body as usize;
                    let count = self.program.count(node, self.member)?;
                    let (mut at, mut counts) = (at, counts);
                    counts[usize::from(depth)] = count;
                    for repeat in 0..count {
                        at[usize::from(depth)] = repeat.into();
                        self.nodes(inside.clone(), at, counts)?;
                    }
                    node = inside.end;
                }
            }
        }
        Ok(())
    }

    fn number(&self, slot: u32) -> i64 {
        self.program.number(slot, self.member)
    }

    /// That sums of a step's terms fit 64 bits, in all repeats.
    fn bounded(&self, node: usize, shape: u32, counts: [u32; 2]) -> Read<()> {
        let depth = match self.program.form.nodes[node] {
            FormNode::Step { depth, .. } | FormNode::Loop { depth, .. } => usize::from(depth),
        };
        let first = self.program.layout.of_node[node][2] as usize;
        let numbers = self.shapes[shape as usize].number_count();
        for &(slot, terms) in &self.program.layout.refs[first..first + numbers] {
            for term in 0..u32::from(terms) {
                let slot = slot + term * (depth as u32 + 2);
                let mut reach = i128::from(self.number(slot)).abs();
                for (level, &count) in counts[..depth].iter().enumerate() {
                    reach += (i128::from(self.number(slot + 1 + level as u32)) * i128::from(count)).abs();
                }
                let modulus = self.number(slot + 1 + depth as u32);
                if reach >= 1 << 60 || !(0..1 << 60).contains(&modulus) {
                    return Err(Fault::Malformed("a number in a loop has more than 60 bits"));
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn step(&mut self, node: usize, shape: u32, at: [i64; 2]) -> Read<()> {
        let program = self.program;
        let [width, span, first] = program.layout.of_node[node];
        let shape = &self.shapes[shape as usize];
        let depth = match program.form.nodes[node] {
            FormNode::Step { depth, .. } | FormNode::Loop { depth, .. } => u32::from(depth),
        };
        let mut refs = program.layout.refs[first as usize..].iter();
        let mut next = || {
            let &(slot, terms) = refs.next().ok_or(Fault::Malformed("a step lacks a number"))?;
            if terms == 0 {
                return narrow(self.program.number(slot, self.member));
            }
            let mut sum = 0;
            for term in 0..u32::from(terms) {
                let slot = slot + term * (depth + 2);
                let number = |part: u32| self.program.number(slot + part, self.member);
                let mut value = number(0) + number(1) * at[0];
                if depth == 2 {
                    value += number(2) * at[1];
                }
                let modulus = number(1 + depth);
                sum += if modulus == 0 { value } else { value.rem_euclid(modulus) };
            }
            narrow(sum)
        };
        let step = Step {
            operands: self.plan.operands.len() as u32,
            sources: shape.sources,
            destinations: shape.destinations,
            waits: self.plan.waits.len() as u32,
            wait_count: shape.waits,
            round_each: shape.round_each,
            post: shape.post,
            pre: shape.pre,
            width: narrow(program.number(width, self.member))?,
            span: SpanId(narrow(program.number(span, self.member))?),
        };
        for &code in &shape.operands {
            self.plan.operands.push(Shape::operand(code, &mut next)?);
        }
        for _ in 0..shape.waits {
            self.plan.waits.push(StepId(next()?));
        }
        self.plan.steps.push(step);
        Ok(())
    }
}
