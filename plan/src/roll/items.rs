//! One block's program as loops: what text and kernels are written from.
//!
//! In: a plan whose ranges are in order (V0 sees to that), a block. Out: its sections as trees of steps and loops, in which
//! places, peers, channels and waits are affine in how often each loop around them has repeated. Spelled out, that is
//! the block's steps, one by one.

use super::block::{Blocks, DEPTH, Node, Term as FlatTerm, operands};
use super::fit::Fit;
use crate::ids::{BlockId, BufferId, StepId};
use crate::plan::{Operand as PlanOperand, Plan};

/// A block's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Prologue, body and epilogue.
    pub sections: [Vec<Item>; 3],
}

/// A step, or a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A step, with all that changes from repeat to repeat.
    Step(Step),
    /// Items repeated.
    Loop {
        /// How often, at least three times.
        count: u32,
        /// What.
        body: Vec<Item>,
    },
}

/// A step of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its first instance in the plan. Width, flags and source position are the same in all.
    pub first: StepId,
    /// What is folded.
    pub sources: Vec<Operand>,
    /// Where the result goes.
    pub destinations: Vec<Operand>,
    /// The steps that it waits for.
    pub waits: Vec<Affine>,
}

/// A source or a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operand {
    /// A message.
    Channel(Affine),
    /// Cells of this rank.
    Local {
        /// The buffer.
        buffer: BufferId,
        /// First cell.
        cell: Affine,
    },
    /// Cells of another rank.
    Peer {
        /// Whose.
        rank: Affine,
        /// The buffer.
        buffer: BufferId,
        /// First cell.
        cell: Affine,
    },
}

/// A number that follows a rule: the sum of its terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Affine {
    /// The terms, at least one.
    pub terms: Vec<Term>,
}

/// `start + strides · t`, reduced to `0..modulus` if that is not 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// In the first repeat of all loops.
    pub start: i64,
    /// What each repeat of each loop around it adds, outermost first; trailing zeros are left out.
    pub strides: Vec<i64>,
    /// Where it wraps; 0: nowhere.
    pub modulus: i64,
}

impl Affine {
    /// Always `number`.
    pub fn constant(number: u32) -> Affine {
        Affine { terms: vec![Term { start: number.into(), strides: Vec::new(), modulus: 0 }] }
    }

    /// The number, if it is always the same.
    pub fn fixed(&self) -> Option<i64> {
        let fixed = self.terms.iter().all(|term| term.strides.is_empty());
        fixed.then(|| self.at(&[]))
    }

    /// The number when the loops around it have repeated `t` times, outermost first.
    pub fn at(&self, t: &[u32]) -> i64 {
        self.terms.iter().map(|term| term.at(t)).sum()
    }
}

impl Term {
    /// Its value when the loops around it have repeated `t` times.
    pub fn at(&self, t: &[u32]) -> i64 {
        let moved: i64 = self.strides.iter().zip(t).map(|(stride, &t)| stride * i64::from(t)).sum();
        let value = self.start + moved;
        if self.modulus == 0 { value } else { value.rem_euclid(self.modulus) }
    }
}

/// The program of a block. The plan's ranges must be in order, as V0 finds them to be.
pub fn program(plan: &Plan, block: BlockId) -> Program {
    let blocks = Blocks::new(plan, block.index()..block.index() + 1);
    let (_, sections) = blocks.starts[0];
    let mut nodes = blocks.nodes.as_slice();
    let sections = sections.map(|count| {
        let (section, rest) = nodes.split_at(count as usize);
        nodes = rest;
        items(plan, &blocks, section)
    });
    Program { sections }
}

fn items(plan: &Plan, blocks: &Blocks, mut nodes: &[Node]) -> Vec<Item> {
    let mut list = Vec::new();
    while let Some((&node, rest)) = nodes.split_first() {
        nodes = rest;
        list.push(match node {
            Node::Step { step, numbers } => Item::Step(step_of(plan, blocks, step, numbers)),
            Node::Loop { count, body } => {
                let (inside, after) = rest.split_at(body as usize);
                nodes = after;
                Item::Loop { count, body: items(plan, blocks, inside) }
            }
        });
    }
    list
}

fn step_of(plan: &Plan, blocks: &Blocks, step: u32, numbers: u32) -> Step {
    let flat = &plan.steps[step as usize];
    let mut next = numbers as usize;
    let mut affine = |plain: u32| {
        if numbers == u32::MAX {
            return Affine::constant(plain);
        }
        let terms = blocks.terms(&blocks.numbers[next]);
        next += 1;
        // A part that is 0 says nothing, unless it is all there is.
        let nothing = |t: &&FlatTerm| t.start == 0 && t.strides == [0; DEPTH] && terms.len() > 1;
        Affine { terms: terms.iter().filter(|t| !nothing(t)).map(term).collect() }
    };
    let mut all: Vec<Operand> = operands(plan, flat)
        .iter()
        .map(|operand| match *operand {
            PlanOperand::Channel(channel) => Operand::Channel(affine(channel.0)),
            PlanOperand::Local { buffer, cell } => Operand::Local { buffer, cell: affine(cell) },
            PlanOperand::Peer { rank, buffer, cell } => {
                let rank = affine(rank.0);
                Operand::Peer { rank, buffer, cell: affine(cell) }
            }
        })
        .collect();
    let destinations = all.split_off(flat.sources.into());
    let waits = plan.waits(flat).iter().map(|wait| affine(wait.0)).collect();
    Step { first: StepId(step), sources: all, destinations, waits }
}

fn term(term: &FlatTerm) -> Term {
    let used = (0..DEPTH).rev().find(|&level| term.strides[level] != 0).map_or(0, |last| last + 1);
    Term { start: term.start, strides: term.strides[..used].to_vec(), modulus: term.modulus }
}

/// The rule that numbers follow one after the other, if they do; `natural` is a width of windows that is no surprise.
pub(crate) fn rule(numbers: &[u32], natural: u32) -> Option<Affine> {
    let (&first, rest) = numbers.split_first()?;
    let mut fit = Fit::new(first.into(), natural.into());
    if !rest.iter().all(|&number| fit.push(number.into())) || fit.doubt().is_some() {
        return None;
    }
    let (low, strides) = (fit.window(), vec![fit.stride()]);
    let mut terms = vec![Term { start: fit.first - low, strides, modulus: fit.modulus }];
    if low != 0 {
        terms.insert(0, Term { start: low, strides: Vec::new(), modulus: 0 });
    }
    Some(Affine { terms })
}
