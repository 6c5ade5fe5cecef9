//! What programs of several blocks have in common: their form, apart from all numbers.
//!
//! In: the nodes of a block, or bytes. Out: a form; which numbers a program of that form is made of, in which order
//! (`Layout`). The one hard idea is that order: numbers of one kind follow each other, so that also the numbers of a
//! single program make columns worth to be looked at for rules.

use super::block::{Blocks, DEPTH, Node, number_count, operands};
use super::series;
use super::wire::{Fault, Read, Reader, Writer};
use crate::ids::{BufferId, ChannelId, RankId};
use crate::plan::{Operand, Plan, Step};
use crate::pre::Pre;

/// Terms of an affine form, at most.
const MOST_TERMS: u32 = DEPTH as u32 + 1;

/// A step apart from its numbers, width and source position.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    pub(super) round_each: bool,
    pub(super) post: bool,
    pub(super) pre: Pre,
    pub(super) sources: u16,
    pub(super) destinations: u16,
    pub(super) waits: u16,
    /// What each operand is: 0 a channel, else buffer · 2 + 1 a local place, + 2 one at a peer.
    pub(super) operands: Vec<i64>,
}

/// What a number of a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Channel,
    Cell,
    Rank,
    Wait,
}

impl Kind {
    pub(super) const ALL: [Kind; 4] = [Kind::Channel, Kind::Cell, Kind::Rank, Kind::Wait];
}

impl Shape {
    /// Sets `self` to the shape of a step.
    pub(super) fn set(&mut self, plan: &Plan, step: &Step) {
        let Step { round_each, post, pre, sources, destinations, wait_count, .. } = *step;
        (self.round_each, self.post, self.pre) = (round_each, post, pre);
        (self.sources, self.destinations, self.waits) = (sources, destinations, wait_count);
        self.operands.clear();
        self.operands.extend(operands(plan, step).iter().map(|operand| match *operand {
            Operand::Channel(_) => 0,
            Operand::Local { buffer, .. } => i64::from(buffer.0) * 2 + 1,
            Operand::Peer { buffer, .. } => i64::from(buffer.0) * 2 + 2,
        }));
    }

    /// Its numbers in order: their kinds, and where each stands in a step.
    fn numbers(&self) -> impl Iterator<Item = (Kind, Part)> {
        let of_operand = |(at, &code): (u32, &i64)| match code {
            0 => [None, Some((Kind::Channel, Part::Operand(at)))],
            local if local % 2 == 1 => [None, Some((Kind::Cell, Part::Operand(at)))],
            _ => [Some((Kind::Rank, Part::Operand(at))), Some((Kind::Cell, Part::PeerCell(at)))],
        };
        let waits = (0..self.waits.into()).map(|at| (Kind::Wait, Part::Wait(at)));
        (0u32..).zip(&self.operands).flat_map(of_operand).flatten().chain(waits)
    }

    pub(super) fn number_count(&self) -> usize {
        let peers = self.operands.iter().filter(|&&code| code > 0 && code % 2 == 0).count();
        self.operands.len() + peers + usize::from(self.waits)
    }

    /// Operand `code` with its numbers from `next`.
    #[inline]
    pub(super) fn operand(code: i64, mut next: impl FnMut() -> Read<u32>) -> Read<Operand> {
        let buffer = |code: i64| BufferId((code / 2) as u32);
        Ok(match code {
            0 => Operand::Channel(ChannelId(next()?)),
            local if local % 2 == 1 => Operand::Local { buffer: buffer(local), cell: next()? },
            peer => Operand::Peer { rank: RankId(next()?), buffer: buffer(peer - 2), cell: next()? },
        })
    }

    pub(super) fn write(&self, out: &mut Writer) {
        out.unsigned(u64::from(self.pre.0) << 2 | u64::from(self.round_each) << 1 | u64::from(self.post));
        [self.sources, self.destinations, self.waits].iter().for_each(|&count| out.unsigned(count.into()));
        series::write(out, &self.operands, &[]);
    }

    pub(super) fn read(
        input: &mut Reader<'_>,
        mut charge: impl FnMut(usize, usize) -> Read<()>,
    ) -> Read<Shape> {
        let flags = input.unsigned()?;
        let pre = u32::try_from(flags >> 2).map_err(|_| Fault::Malformed("a step has unknown flags"))?;
        let mut count = || {
            u16::try_from(input.unsigned()?)
                .map_err(|_| Fault::Malformed("a step has more than 65,535 operands"))
        };
        let (sources, destinations, waits) = (count()?, count()?, count()?);
        let len = usize::from(sources) + usize::from(destinations);
        charge(len, size_of::<i64>())?;
        let operands = series::read(input, len)?;
        if operands.iter().any(|&code| !(0..=2 * i64::from(u32::MAX) + 2).contains(&code)) {
            return Err(Fault::Malformed("a buffer's number does not fit 32 bits"));
        }
        let (round_each, post) = (flags & 2 != 0, flags & 1 != 0);
        Ok(Shape { round_each, post, pre: Pre(pre), sources, destinations, waits, operands })
    }
}

/// A node of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FormNode {
    Step { shape: u32, depth: u8 },
    Loop { body: u32, depth: u8 },
}

/// A program apart from its numbers.
#[derive(Debug, Default)]
pub(super) struct Form {
    /// How many nodes each section has.
    pub(super) sections: [u32; 3],
    pub(super) nodes: Vec<FormNode>,
    /// How many terms each number of each step within a loop has.
    pub(super) terms: Vec<i64>,
}

impl Form {
    /// Of a block's nodes, of which `shape` gives the shapes.
    pub(super) fn new(
        plan: &Plan,
        blocks: &Blocks,
        block: usize,
        mut shape: impl FnMut(&Step) -> u32,
    ) -> Form {
        let (start, sections) = blocks.starts[block];
        let nodes = &blocks.nodes[start as usize..][..sections.iter().sum::<u32>() as usize];
        let mut form = Form { sections, ..Form::default() };
        let codes = nodes.iter().map(|node| match *node {
            Node::Loop { body, .. } => Code::Loop { body },
            Node::Step { step, .. } => Code::Step { shape: shape(&plan.steps[step as usize]) },
        });
        let codes: Vec<Code> = codes.collect();
        form.nodes = nest(&codes, &sections).expect("loops that were found lie within each other");
        for node in nodes {
            if let Node::Step { step, numbers } = *node
                && numbers != u32::MAX
            {
                let count = number_count(plan, &plan.steps[step as usize]);
                form.terms.extend(blocks.forms(numbers, count).iter().map(|form| form.len() as i64));
            }
        }
        form
    }

    /// Forms with equal keys are equal.
    pub(super) fn key(&self, key: &mut Vec<u32>) {
        key.clear();
        key.extend(self.sections);
        key.extend(self.nodes.iter().map(|node| match *node {
            FormNode::Step { shape, .. } => shape * 2,
            FormNode::Loop { body, .. } => body * 2 + 1,
        }));
        key.extend(self.terms.iter().map(|&terms| terms as u32));
    }

    pub(super) fn write(&self, out: &mut Writer) {
        self.sections.iter().for_each(|&count| out.unsigned(count.into()));
        let code = |node: &FormNode| match *node {
            FormNode::Step { shape, .. } => i64::from(shape) + 1,
            FormNode::Loop { .. } => 0,
        };
        series::write(out, &self.nodes.iter().map(code).collect::<Vec<_>>(), &[]);
        for node in &self.nodes {
            if let FormNode::Loop { body, .. } = *node {
                out.unsigned(body.into());
            }
        }
        series::write(out, &self.terms, &[]);
    }

    pub(super) fn read(
        input: &mut Reader<'_>,
        shapes: &[Shape],
        mut charge: impl FnMut(usize, usize) -> Read<()>,
    ) -> Read<Form> {
        let sections = [input.small()?, input.small()?, input.small()?];
        let len: u64 = sections.iter().map(|&count| u64::from(count)).sum();
        let len = len as usize;
        charge(len, size_of::<i64>() + size_of::<Code>() + size_of::<FormNode>())?;
        let mut codes = Vec::with_capacity(len);
        for code in series::read_small(input, len)? {
            codes.push(match code.checked_sub(1) {
                None => Code::Loop { body: 0 },
                Some(shape) if (shape as usize) < shapes.len() => Code::Step { shape },
                Some(_) => return Err(Fault::Malformed("a step has no shape")),
            });
        }
        for code in &mut codes {
            if let Code::Loop { body } = code {
                *body = input.small()?;
            }
        }
        let nodes = nest(&codes, &sections).ok_or(Fault::Malformed("loops do not lie within each other"))?;
        let numbers = nodes.iter().map(|node| match *node {
            FormNode::Step { shape, depth: 1.. } => shapes[shape as usize].number_count(),
            _ => 0,
        });
        let numbers = numbers.fold(0usize, usize::saturating_add);
        charge(numbers, size_of::<i64>())?;
        let terms = series::read(input, numbers)?;
        if terms.iter().any(|&terms| !(1..=i64::from(MOST_TERMS)).contains(&terms)) {
            return Err(Fault::Malformed("a number has no terms, or too many"));
        }
        Ok(Form { sections, nodes, terms })
    }
}

#[derive(Debug, Clone, Copy)]
enum Code {
    Step { shape: u32 },
    Loop { body: u32 },
}

/// How deep each node lies; none if bodies leave what they lie in, are empty, or lie too deep.
fn nest(codes: &[Code], sections: &[u32; 3]) -> Option<Vec<FormNode>> {
    let mut nodes = Vec::with_capacity(codes.len());
    let mut end = 0;
    for &section in sections {
        end += section as usize;
        let mut ends = vec![end];
        while nodes.len() < end {
            let at = nodes.len();
            while *ends.last()? == at {
                ends.pop();
            }
            let depth = ends.len() as u8 - 1;
            nodes.push(match codes[at] {
                Code::Step { shape } => FormNode::Step { shape, depth },
                Code::Loop { body } => {
                    let last = at + 1 + body as usize;
                    if body == 0 || last > *ends.last()? || usize::from(depth) == DEPTH {
                        return None;
                    }
                    ends.push(last);
                    FormNode::Loop { body, depth }
                }
            });
        }
        // A body that ends with its section is closed by it.
        if ends.iter().any(|&open| open != end) {
            return None;
        }
    }
    Some(nodes)
}

/// A number that a program is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) node: u32,
    pub(super) part: Part,
}

/// Which number of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// How often a loop repeats.
    Count,
    /// The width of a step.
    Width,
    /// Its source position.
    Span,
    /// Outside loops: the number of an operand (at a peer: its rank), the cell of one at a peer, a wait.
    Operand(u32),
    PeerCell(u32),
    Wait(u32),
    /// Within loops: a term's start, a stride of it, its modulus.
    Start(u32, u8),
    Stride(u32, u8, u8),
    Modulus(u32, u8),
}

/// The numbers of programs of one form, in order.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) slots: Vec<Slot>,
    /// Where numbers of the next kind start.
    pub(super) streams: Vec<usize>,
    /// For each node: the slot of its count or width, of its span, and its first entry in `refs`.
    pub(super) of_node: Vec<[u32; 3]>,
    /// For each number of each step: its slot, or the first one of its terms; and how many terms (0: outside loops).
    pub(super) refs: Vec<(u32, u8)>,
}

impl Layout {
    /// How many slots a form needs, without making them.
    pub(super) fn len(form: &Form, shapes: &[Shape]) -> u64 {
        let mut len = 0u64;
        let mut terms = form.terms.iter();
        for node in &form.nodes {
            len += match *node {
                FormNode::Loop { .. } => 1,
                FormNode::Step { shape, depth } => {
                    let numbers = shapes[shape as usize].number_count();
                    let per_term = 2 + u64::from(depth);
                    2 + match depth {
                        0 => numbers as u64,
                        _ => terms.by_ref().take(numbers).map(|&terms| terms as u64 * per_term).sum(),
                    }
                }
            };
        }
        len
    }

    pub(super) fn new(form: &Form, shapes: &[Shape]) -> Layout {
        let mut layout = Layout::default();
        let nodes = || form.nodes.iter().enumerate().map(|(at, node)| (at as u32, *node));
        for (_, node) in nodes() {
            layout.of_node.push([0, 0, layout.refs.len() as u32]);
            if let FormNode::Step { shape, .. } = node {
                let numbers = shapes[shape as usize].number_count();
                layout.refs.resize(layout.refs.len() + numbers, (0, 0));
            }
        }
        for part in [Part::Count, Part::Width, Part::Span] {
            for (at, node) in nodes() {
                if matches!(node, FormNode::Loop { .. }) == (part == Part::Count) {
                    layout.of_node[at as usize][usize::from(part == Part::Span)] = layout.slots.len() as u32;
                    layout.slots.push(Slot { node: at, part });
                }
            }
            layout.streams.push(layout.slots.len());
        }
        for kind in Kind::ALL {
            for (at, node) in nodes() {
                let FormNode::Step { shape, depth: 0 } = node else { continue };
                let first = layout.of_node[at as usize][2];
                for (number, (_, part)) in
                    (0u32..).zip(shapes[shape as usize].numbers()).filter(|(_, (other, _))| *other == kind)
                {
                    layout.refs[(first + number) as usize] = (layout.slots.len() as u32, 0);
                    layout.slots.push(Slot { node: at, part });
                }
            }
            layout.streams.push(layout.slots.len());
        }
        let mut terms = form.terms.iter().map(|&terms| terms as u8);
        for (at, node) in nodes() {
            let FormNode::Step { shape, depth: depth @ 1.. } = node else { continue };
            let first = layout.of_node[at as usize][2];
            for number in 0..shapes[shape as usize].number_count() as u32 {
                let terms = terms.next().unwrap_or(0);
                layout.refs[(first + number) as usize] = (layout.slots.len() as u32, terms);
                for term in 0..terms {
                    let strides = (0..depth).map(|level| Part::Stride(number, term, level));
                    let parts = [Part::Start(number, term)].into_iter().chain(strides);
                    let parts = parts.chain([Part::Modulus(number, term)]);
                    layout.slots.extend(parts.map(|part| Slot { node: at, part }));
                }
            }
        }
        layout.streams.push(layout.slots.len());
        layout
    }
}
