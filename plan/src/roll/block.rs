//! The programs of all blocks as loops, in flat arrays.
//!
//! In: a plan. Out: for each block its nodes: steps (named by their first instance in the plan) and loops, each
//! before its body; for steps within loops, the affine form of each of their numbers. A step's numbers are its operands'
//! channels, cells and ranks, in order, then its waits; all else of it is equal in all instances.
//!
//! Loops are found twice: among steps, then among what became of them, so that they nest two deep. The second time
//! the numbers that must follow a rule are the starts of the affine forms; windows, strides and counts must agree.

use std::hash::{Hash, Hasher};
use std::ops::Range;

use rustc_hash::FxHasher;

use super::fit::Fit;
use super::loops::{self, Entries, Piece, Room};
use crate::plan::{Operand, Plan, Role, Section, Step};

/// How deep loops nest.
pub(super) const DEPTH: usize = 2;

/// `start + strides · t`, kept within `0..modulus` if that is not 0; t counts the repeats of the loops around it,
/// outermost first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Term {
    /// Its value in the first repeat of all.
    pub(super) start: i64,
    /// What each loop adds.
    pub(super) strides: [i64; DEPTH],
    /// Where it wraps; 0: nowhere.
    pub(super) modulus: i64,
}

/// A step or a loop of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Step {
        /// Its first instance.
        step: u32,
        /// Within a loop: its first number, in `Blocks::numbers`.
        numbers: u32,
    },
    Loop {
        count: u32,
        /// How many nodes follow that are repeated.
        body: u32,
    },
}

/// All blocks of a plan.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    pub(super) nodes: Vec<Node>,
    /// Affine forms: ranges of `terms`.
    pub(super) numbers: Vec<Range<u32>>,
    pub(super) terms: Vec<Term>,
    /// For each block: where its nodes start, and how many each section has.
    pub(super) starts: Vec<(u32, [u32; 3])>,
}

impl Blocks {
    /// Of the given blocks of a plan whose ranges are in order.
    pub(super) fn new(plan: &Plan, blocks: Range<usize>) -> Blocks {
        let mut all = Blocks::default();
        let mut work = Work::default();
        for block in &plan.blocks[blocks] {
            let start = all.nodes.len() as u32;
            let sections = Section::ALL.map(|section| {
                let before = all.nodes.len();
                roll(&mut all, &mut work, plan, block.section(section));
                (all.nodes.len() - before) as u32
            });
            all.starts.push((start, sections));
        }
        all
    }

    /// The affine forms of a step within a loop.
    pub(super) fn forms(&self, numbers: u32, count: usize) -> &[Range<u32>] {
        &self.numbers[numbers as usize..][..count]
    }

    pub(super) fn terms(&self, form: &Range<u32>) -> &[Term] {
        &self.terms[form.start as usize..form.end as usize]
    }
}

/// How many numbers a step has.
pub(super) fn number_count(plan: &Plan, step: &Step) -> usize {
    let peers = operands(plan, step).iter().filter(|o| matches!(o, Operand::Peer { .. })).count();
    operands(plan, step).len() + peers + usize::from(step.wait_count)
}

/// Sources, then destinations.
pub(super) fn operands<'a>(plan: &'a Plan, step: &Step) -> &'a [Operand] {
    &plan.operands[step.operands as usize..][..usize::from(step.sources) + usize::from(step.destinations)]
}

#[derive(Debug, Default)]
struct Work {
    room: Room,
    signatures: Vec<u64>,
    nodes: Vec<Node>,
    entries: Vec<Range<u32>>,
}

/// Appends the nodes of a section.
fn roll(all: &mut Blocks, work: &mut Work, plan: &Plan, range: Range<u32>) {
    let Work { room, signatures, nodes, entries } = work;
    signatures.clear();
    signatures.extend(plan.steps(&range).map(|(_, step)| signature(plan, step)));
    let first_node = all.nodes.len();
    let list = Steps { plan, first: range.start, signatures };
    let mut pieces = 0;
    let mut looped = false;
    loops::find(&list, room, |piece| {
        pieces += 1;
        match piece {
            Piece::Entry(at) => {
                all.nodes.push(Node::Step { step: range.start + at as u32, numbers: u32::MAX });
            }
            Piece::Loop { first, body, count, fits } => {
                looped = true;
                all.nodes.push(Node::Loop { count: count as u32, body: body as u32 });
                let mut fits = fits.iter();
                for at in first..first + body {
                    let step = range.start + at as u32;
                    let numbers = all.numbers.len() as u32;
                    all.nodes.push(Node::Step { step, numbers });
                    for _ in 0..number_count(plan, &plan.steps[step as usize]) {
                        let Some(fit) = fits.next() else { break };
                        let start = all.terms.len() as u32;
                        let plain = Term { start: fit.first, strides: [0; DEPTH], modulus: 0 };
                        push_terms(&mut all.terms, fit, plain);
                        all.numbers.push(start..all.terms.len() as u32);
                    }
                }
            }
        }
    });
    if looped && pieces >= 3 {
        nodes.clear();
        nodes.extend(all.nodes.drain(first_node..));
        nest(all, room, plan, (nodes, entries, signatures));
    }
}

/// Appends nodes once more, with loops of them.
fn nest(
    all: &mut Blocks,
    room: &mut Room,
    plan: &Plan,
    (nodes, entries, signatures): (&[Node], &mut Vec<Range<u32>>, &mut Vec<u64>),
) {
    entries.clear();
    let mut at = 0;
    while at < nodes.len() {
        let end = match nodes[at] {
            Node::Step { .. } => at + 1,
            Node::Loop { body, .. } => at + 1 + body as usize,
        };
        entries.push(at as u32..end as u32);
        at = end;
    }
    // What is appended is apart from what is read.
    let old = std::mem::take(all);
    let list_of = Nodes { plan, old: &old, nodes, entries, signatures: &[] };
    signatures.clear();
    signatures.extend((0..entries.len()).map(|entry| list_of.signature(entry)));
    let list = Nodes { signatures, ..list_of };
    let mut made = Blocks::default();
    loops::find(&list, room, |piece| match piece {
        Piece::Entry(at) => made.nodes.extend_from_slice(list.nodes_of(at)),
        Piece::Loop { first, body, count, fits } => {
            let inside = &nodes[entries[first].start as usize..entries[first + body - 1].end as usize];
            made.nodes.push(Node::Loop { count: count as u32, body: inside.len() as u32 });
            let mut fits = fits.iter();
            for &node in inside {
                let Node::Step { step, .. } = node else {
                    made.nodes.push(node);
                    continue;
                };
                let numbers = (old.numbers.len() + made.numbers.len()) as u32;
                made.nodes.push(Node::Step { step, numbers });
                list.each_form(&node, |terms| {
                    let start = (old.terms.len() + made.terms.len()) as u32;
                    for &term in terms {
                        let Some(fit) = fits.next() else { break };
                        push_terms(&mut made.terms, fit, term);
                    }
                    made.numbers.push(start..(old.terms.len() + made.terms.len()) as u32);
                });
            }
        }
    });
    *all = old;
    all.nodes.append(&mut made.nodes);
    all.numbers.append(&mut made.numbers);
    all.terms.append(&mut made.terms);
}

/// The terms that one term becomes in a loop that changes its start by a rule.
fn push_terms(terms: &mut Vec<Term>, fit: &Fit, term: Term) {
    let inner = term.strides[0];
    debug_assert_eq!(term.strides[1], 0);
    if term.modulus > 0 || fit.modulus == 0 {
        terms.push(Term { start: fit.first, strides: [fit.stride(), inner], modulus: term.modulus });
        return;
    }
    // The part that does not wrap is kept if it is 0 too: ranks whose windows start elsewhere have the same form.
    let low = fit.window();
    terms.push(Term { start: low, strides: [0, inner], modulus: 0 });
    terms.push(Term { start: fit.first - low, strides: [fit.stride(), 0], modulus: fit.modulus });
}

/// Steps of a section.
struct Steps<'a> {
    plan: &'a Plan,
    first: u32,
    signatures: &'a [u64],
}

impl Steps<'_> {
    fn step(&self, entry: usize) -> &Step {
        &self.plan.steps[self.first as usize + entry]
    }
}

impl Entries for Steps<'_> {
    fn signatures(&self) -> &[u64] {
        self.signatures
    }

    fn begin(&self, entry: usize, fits: &mut Vec<Fit>) {
        let (plan, step) = (self.plan, self.step(entry));
        for operand in operands(plan, step) {
            match *operand {
                Operand::Channel(channel) => fits.push(Fit::new(channel.0.into(), 0)),
                Operand::Local { buffer, cell } => fits.push(Fit::new(cell.into(), cells(plan, buffer))),
                Operand::Peer { rank, buffer, cell } => {
                    fits.push(Fit::new(rank.0.into(), plan.header.ranks.into()));
                    fits.push(Fit::new(cell.into(), cells(plan, buffer)));
                }
            }
        }
        fits.extend(plan.waits(step).iter().map(|wait| Fit::new(wait.0.into(), 0)));
    }

    #[inline]
    fn numbers(&self, like: usize, entry: usize, numbers: &mut Vec<i64>) -> bool {
        let (plan, like, step) = (self.plan, self.step(like), self.step(entry));
        if !alike(like, step) {
            return false;
        }
        for (a, b) in operands(plan, like).iter().zip(operands(plan, step)) {
            match (*a, *b) {
                (Operand::Channel(_), Operand::Channel(channel)) => numbers.push(channel.0.into()),
                (Operand::Local { buffer: a, .. }, Operand::Local { buffer: b, cell }) if a == b => {
                    numbers.push(cell.into());
                }
                (Operand::Peer { buffer: a, .. }, Operand::Peer { rank, buffer: b, cell }) if a == b => {
                    numbers.extend([i64::from(rank.0), i64::from(cell)]);
                }
                _ => return false,
            }
        }
        numbers.extend(plan.waits(step).iter().map(|wait| i64::from(wait.0)));
        true
    }
}

/// How many cells a buffer has.
fn cells(plan: &Plan, buffer: crate::ids::BufferId) -> i64 {
    let Some(buffer) = plan.buffers.get(buffer.index()) else { return 0 };
    match buffer.role {
        Role::Scratch => 0,
        Role::Send | Role::Recv => i64::from(buffer.blocks) * i64::from(plan.header.cells),
    }
}

/// Whether two steps agree in all but their numbers and what their operands are.
fn alike(a: &Step, b: &Step) -> bool {
    let form =
        |s: &Step| (s.sources, s.destinations, s.wait_count, s.round_each, s.post, s.pre, s.width, s.span);
    form(a) == form(b)
}

fn signature(plan: &Plan, step: &Step) -> u64 {
    let mut mixed = u64::from(step.span.0) << 32 | u64::from(step.width);
    let mut mix = |word: u64| mixed = (mixed.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mix(u64::from(step.sources) << 32 | u64::from(step.destinations) << 16 | u64::from(step.wait_count));
    mix(u64::from(step.pre.0) << 2 | u64::from(step.round_each) << 1 | u64::from(step.post));
    for operand in operands(plan, step) {
        mix(match *operand {
            Operand::Channel(_) => 0,
            Operand::Local { buffer, .. } => u64::from(buffer.0) << 2 | 1,
            Operand::Peer { buffer, .. } => u64::from(buffer.0) << 2 | 2,
        });
    }
    mixed
}

/// Steps and loops of a section.
struct Nodes<'a> {
    plan: &'a Plan,
    old: &'a Blocks,
    nodes: &'a [Node],
    entries: &'a [Range<u32>],
    signatures: &'a [u64],
}

impl Nodes<'_> {
    fn nodes_of(&self, entry: usize) -> &[Node] {
        &self.nodes[self.entries[entry].start as usize..self.entries[entry].end as usize]
    }

    /// The terms of each number of a step.
    fn each_form(&self, node: &Node, mut form: impl FnMut(&[Term])) {
        let Node::Step { step, numbers } = *node else { return };
        let step = &self.plan.steps[step as usize];
        if numbers != u32::MAX {
            let count = number_count(self.plan, step);
            self.old.forms(numbers, count).iter().for_each(|range| form(self.old.terms(range)));
            return;
        }
        let mut plain = |start: u32| {
            form(&[Term { start: start.into(), strides: [0; DEPTH], modulus: 0 }]);
        };
        for operand in operands(self.plan, step) {
            match *operand {
                Operand::Channel(channel) => plain(channel.0),
                Operand::Local { cell, .. } => plain(cell),
                Operand::Peer { rank, cell, .. } => {
                    plain(rank.0);
                    plain(cell);
                }
            }
        }
        self.plan.waits(step).iter().for_each(|wait| plain(wait.0));
    }

    fn signature(&self, entry: usize) -> u64 {
        let mut hasher = FxHasher::default();
        for node in self.nodes_of(entry) {
            match *node {
                Node::Loop { count, body } => (count, body).hash(&mut hasher),
                Node::Step { step, .. } => {
                    signature(self.plan, &self.plan.steps[step as usize]).hash(&mut hasher);
                }
            }
            self.each_form(node, |terms| {
                terms.iter().for_each(|term| (term.strides, term.modulus).hash(&mut hasher));
            });
        }
        hasher.finish()
    }
}

impl Entries for Nodes<'_> {
    fn signatures(&self) -> &[u64] {
        self.signatures
    }

    fn begin(&self, entry: usize, fits: &mut Vec<Fit>) {
        for node in self.nodes_of(entry) {
            self.each_form(node, |terms| {
                fits.extend(terms.iter().map(|term| match term.modulus {
                    0 => Fit::new(term.start, 0),
                    modulus => Fit::within(term.start, modulus),
                }));
            });
        }
    }

    fn numbers(&self, like: usize, entry: usize, numbers: &mut Vec<i64>) -> bool {
        let (a, b) = (self.nodes_of(like), self.nodes_of(entry));
        let steps = Steps { plan: self.plan, first: 0, signatures: &[] };
        let mut same = a.len() == b.len();
        // All but the starts: steps' forms, and loops' rules as one list.
        let mut rules = Vec::new();
        for (a, b) in a.iter().zip(b) {
            same &= match (*a, *b) {
                (Node::Step { step: a, .. }, Node::Step { step: b, .. }) => {
                    let before = numbers.len();
                    let same = steps.numbers(a as usize, b as usize, numbers);
                    numbers.truncate(before);
                    same
                }
                (a, b) => a == b,
            };
            rules.clear();
            self.each_form(a, |terms| {
                rules.extend(terms.iter().map(|t| (terms.len(), t.strides, t.modulus)));
            });
            let mut expected = rules.iter();
            self.each_form(b, |terms| {
                same &= terms.iter().all(|t| expected.next() == Some(&(terms.len(), t.strides, t.modulus)));
                numbers.extend(terms.iter().map(|t| t.start));
            });
            same &= expected.next().is_none();
        }
        same
    }
}
