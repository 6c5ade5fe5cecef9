//! Steps for the standing ranks alone: a folded plan.
//!
//! In: a proved quotient, options. Out: a [`Folded`] plan, or why there is none; nothing is trusted of it. The standing ranks are
//! scheduled in a small world where they meet copies of themselves (`cover`), by the same code as any program; the copies must all
//! have come out alike. Then the first copy's blocks are kept, and each channel says how many turns away its reader is.

use std::collections::BTreeMap;

use plan::fold::{Folded, Rotation, Turn};
use plan::ids::{BlockId, ChannelId, RankId, SpanId, StepId};
use plan::plan::{Block, Channel, ChannelKind, Header, Operand, Plan, Step};
use plan::pre::Pre;

use super::Quotient;
use super::cover::{Cover, NoCover, cover};
use crate::graph::{self, Form};
use crate::limits::Limits;
use crate::options::{Direct, Multicast, Options};
use crate::schedule::{self, memory};
use crate::source::Sources;
use crate::trace::MoveKind;

/// How many copies that were scheduled unlike are looked at.
const MOST: u32 = 8;

/// Why steps of one rank cannot be made alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfolded {
    /// Every rank talks to so many others that their programs come to no less than the whole.
    Everyone,
    /// Runs of cells, or readers of one message, that are others at another rank.
    Parts,
    /// A reduction combines in rank order, which is another one at each rank.
    Order,
    /// Direct access is asked for.
    Direct,
    /// The copies were scheduled in different ways.
    Unlike,
}

/// The standing ranks, scheduled among copies of themselves.
#[derive(Debug)]
pub struct Lowered<'q> {
    quotient: &'q Quotient,
    small: Cover,
    plan: Plan,
    /// By channel: the one of the first copy that it is a copy of.
    like: Vec<u32>,
    alike: bool,
}

/// Schedules the standing ranks.
pub fn lower<'q>(
    quotient: &'q Quotient,
    options: &Options,
    sources: &Sources,
    limits: &Limits,
) -> Result<Lowered<'q>, Unfolded> {
    if options.direct != Direct::Never {
        return Err(Unfolded::Direct);
    }
    if quotient.reorders() {
        return Err(Unfolded::Order);
    }
    let small = cover(quotient, limits.moves).map_err(|why| match why {
        NoCover::Runs => Unfolded::Parts,
        NoCover::Large => Unfolded::Everyone,
    })?;
    // A tree has edges of its own: between copies they name turns only where there is a copy for each turn.
    let spreads = || quotient.trace.moves.iter().any(|mv| mv.kind == MoveKind::Multicast);
    if options.multicast != Multicast::Flat && small.copies != quotient.action.order && spreads() {
        return Err(Unfolded::Unlike);
    }
    let graph = graph::build_within(&small.trace, Form::Disjoint, limits).map_err(|_| Unfolded::Everyone)?;
    let plan = schedule::schedule(&small.trace, &graph, options, sources);
    drop(graph);
    let step = quotient.action.step;
    let like = copies_of_channels(&plan, step, small.copies).ok_or(Unfolded::Unlike)?;
    let alike = (1..small.copies).all(|copy| alike(&plan, step, copy, &like));
    Ok(Lowered { quotient, small, plan, like, alike })
}

/// A channel up to copies: kind, writer (rank, block), and readers (copies on, rank, block).
type Name = (bool, (u32, u32), Vec<(u32, u32, u32)>);

/// Which channels are copies of one: of each, that of the first copy.
fn copies_of_channels(plan: &Plan, step: u32, copies: u32) -> Option<Vec<u32>> {
    let mut names: BTreeMap<Name, Vec<Vec<u32>>> = BTreeMap::new();
    for (c, channel) in plan.channels.iter().enumerate() {
        let writer = &plan.blocks[channel.writer.index()];
        let copy = writer.rank.0 / step;
        let reader = |block: &BlockId| {
            let block = &plan.blocks[block.index()];
            let on = (block.rank.0 / step + copies - copy) % copies;
            (on, block.rank.0 % step, block.position)
        };
        let readers = plan.readers(channel).iter().map(reader).collect();
        let name = (channel.kind == ChannelKind::Counter, (writer.rank.0 % step, writer.position), readers);
        let of_copies = names.entry(name).or_insert_with(|| vec![Vec::new(); copies as usize]);
        of_copies[copy as usize].push(c as u32);
    }
    let mut like = vec![0u32; plan.channels.len()];
    for of_copies in names.values() {
        for of_copy in of_copies {
            if of_copy.len() != of_copies[0].len() {
                return None;
            }
            of_copy.iter().zip(&of_copies[0]).for_each(|(&c, &first)| like[c as usize] = first);
        }
    }
    Some(like)
}

impl Lowered<'_> {
    /// Folded plans, to be judged by `verify_folded`: one, if all copies were scheduled alike (which holds if no rank had to
    /// give way to another); else what each of them does, as if all did so, of which some may get stuck.
    pub fn candidates(&self) -> impl Iterator<Item = Folded> + '_ {
        let copies = if self.alike { 1 } else { self.small.copies.min(MOST) };
        (0..copies).filter_map(|copy| self.folded(copy))
    }

    /// Whether there is one, which must be right.
    pub fn is_alike(&self) -> bool {
        self.alike
    }

    /// Keeps one copy. Its channels are those of the first.
    fn folded(&self, copy: u32) -> Option<Folded> {
        let Lowered { quotient, small, plan, like, .. } = self;
        let Quotient { trace, action, .. } = quotient;
        let step = action.step;
        let own = own_blocks(plan, step, copy);
        let of_first = own_blocks(plan, step, 0);
        if own.len() != of_first.len() {
            return None;
        }
        let (mut channels, mut readers, mut times) = (Vec::new(), Vec::new(), Vec::new());
        let mut number = vec![0u32; plan.channels.len()];
        for (c, channel) in plan.channels.iter().enumerate() {
            if plan.blocks[channel.writer.index()].rank.0 >= step {
                continue;
            }
            number[c] = channels.len() as u32;
            let first = readers.len() as u32;
            for reader in plan.readers(channel) {
                let block = &plan.blocks[reader.index()];
                times.push(*small.turns.get((block.rank.0 / step) as usize)?);
                let home = (RankId(block.rank.0 % step), block.position);
                let at = plan.blocks[of_first.clone()].iter().position(|b| (b.rank, b.position) == home)?;
                readers.push(BlockId::new(at));
            }
            channels.push(Channel {
                writer: channel.writer,
                readers: first..readers.len() as u32,
                kind: channel.kind,
            });
        }
        let blocks = &plan.blocks[own];
        let start = blocks.first().map_or(0, |block| block.prologue.start);
        let end = blocks.last().map_or(0, |block| block.epilogue.end);
        let shift = |range: &std::ops::Range<u32>| range.start - start..range.end - start;
        let memory = memory::assign(trace);
        let cells = &plan.header.scratch_cells[(copy * step) as usize..][..step as usize];
        let mut standing = Plan {
            header: Header {
                shape: trace.shape.clone(),
                ranks: trace.ranks,
                cells: trace.cells,
                scratch_cells: cells.to_vec(),
                ..plan.header.clone()
            },
            overlaps: plan.overlaps.iter().filter(|overlap| overlap.rank.0 < step).copied().collect(),
            channels,
            readers,
            blocks: (blocks.iter())
                .map(|block| Block {
                    rank: RankId(block.rank.0 - copy * step),
                    position: block.position,
                    prologue: shift(&block.prologue),
                    body: shift(&block.body),
                    epilogue: shift(&block.epilogue),
                })
                .collect(),
            steps: Vec::with_capacity((end - start) as usize),
            operands: Vec::new(),
            waits: Vec::new(),
            witnesses: Vec::new(),
            promise: memory.promise,
            buffers: memory.buffers,
            spans: plan.spans.clone(),
        };
        for (_, step) in plan.steps(&(start..end)) {
            let (operands, waits) = (standing.operands.len() as u32, standing.waits.len() as u32);
            standing.operands.extend(plan.src(step).iter().chain(plan.dst(step)).map(
                |operand| match *operand {
                    Operand::Channel(c) => Operand::Channel(ChannelId(number[like[c.index()] as usize])),
                    other => other,
                },
            ));
            standing.waits.extend(plan.waits(step).iter().map(|wait| StepId(wait.0 - start)));
            standing.steps.push(Step { operands, waits, ..*step });
        }
        let mut turns = vec![Turn::default(); standing.buffers.len()];
        for (b, turn) in action.buffers.iter().enumerate() {
            for side in [memory.entry[b], memory.exit[b]].into_iter().flatten() {
                turns[side.index()] = Turn { blocks: turn.blocks, cells: turn.cells };
            }
        }
        Some(Folded { plan: standing, rotation: Rotation { step, buffers: turns }, times })
    }
}

/// The blocks of a copy.
fn own_blocks(plan: &Plan, step: u32, copy: u32) -> std::ops::Range<usize> {
    let first = |copy: u32| plan.blocks.partition_point(|block| block.rank.0 < copy * step);
    first(copy)..first(copy + 1)
}

/// Whether a copy does what the first does.
fn alike(plan: &Plan, step: u32, copy: u32, like: &[u32]) -> bool {
    type Told = (u16, u16, u16, bool, bool, Pre, u32, SpanId);
    let told = |s: &Step| -> Told {
        (s.sources, s.destinations, s.wait_count, s.round_each, s.post, s.pre, s.width, s.span)
    };
    let same = |a: &Operand, b: &Operand| match (a, b) {
        (Operand::Channel(a), Operand::Channel(b)) => like[a.index()] == like[b.index()],
        _ => a == b,
    };
    let len = |block: &Block| [block.prologue.len(), block.body.len(), block.epilogue.len()];
    let (own, first) = (own_blocks(plan, step, copy), own_blocks(plan, step, 0));
    let pairs = || plan.blocks[own.clone()].iter().zip(&plan.blocks[first.clone()]);
    let cells = |copy: u32| &plan.header.scratch_cells[(copy * step) as usize..][..step as usize];
    own.len() == first.len()
        && cells(copy) == cells(0)
        && pairs().all(|(block, first)| {
            let steps = |block: &Block| block.prologue.start..block.epilogue.end;
            let shift = block.prologue.start - first.prologue.start;
            block.rank.0 - copy * step == first.rank.0
                && block.position == first.position
                && len(block) == len(first)
                && plan.steps(&steps(block)).zip(plan.steps(&steps(first))).all(|((_, a), (_, b))| {
                    let operands = |s| plan.src(s).iter().chain(plan.dst(s));
                    told(a) == told(b)
                        && operands(a).zip(operands(b)).all(|(a, b)| same(a, b))
                        && plan.waits(a).iter().zip(plan.waits(b)).all(|(a, b)| a.0 == b.0 + shift)
                })
        })
}
