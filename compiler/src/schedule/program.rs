//! Events in their blocks, and then as steps of the plan's flat arrays.
//!
//! In: what each rank does, blocks, waits, joins. Out: the arrays. Blocks are sorted by rank; a joined run of events is one step.

use plan::ids::{RankId, StepId};
use plan::plan::{Block, Operand, Step};

use super::blocks::Blocks;
use super::resolve::Resolver;
use super::simulate::Run;
use super::waits::Waits;

/// Events block by block.
pub(super) struct Order {
    events: Vec<u32>,
    /// By block, where it starts; one more entry at the end.
    starts: Vec<u32>,
    /// By event: its place in `events`.
    at: Vec<u32>,
}

impl Order {
    pub(super) fn new(run: &Run, blocks: &Blocks) -> Order {
        let count = blocks.starts.last().map_or(0, |&count| count as usize);
        let mut starts = vec![0u32; count + 1];
        for &block in &run.blocks {
            starts[block as usize + 1] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        let mut events = vec![0; run.blocks.len()];
        let mut at = vec![0; run.blocks.len()];
        for (event, &block) in (0..).zip(&run.blocks) {
            let slot = &mut next[block as usize];
            (events[*slot as usize], at[event as usize]) = (event, *slot);
            *slot += 1;
        }
        Order { events, starts, at }
    }

    /// The events of each block.
    pub(super) fn blocks(&self) -> impl Iterator<Item = &[u32]> {
        self.starts.windows(2).map(|pair| &self.events[pair[0] as usize..pair[1] as usize])
    }

    /// The event after an event, if there is one in its block.
    pub(super) fn next(&self, event: u32) -> Option<u32> {
        let at = self.at[event as usize] + 1;
        let ends = self.starts.binary_search(&at).is_ok();
        (!ends).then(|| self.events.get(at as usize).copied()).flatten()
    }
}

/// Blocks, steps, operands and waits of a plan.
#[derive(Default)]
pub(super) struct Program {
    pub(super) blocks: Vec<Block>,
    pub(super) steps: Vec<Step>,
    pub(super) operands: Vec<Operand>,
    pub(super) waits: Vec<StepId>,
}

/// Writes the steps down.
pub(super) fn write(
    resolver: &Resolver<'_>,
    run: &Run,
    blocks: &Blocks,
    order: &Order,
    waits: &Waits,
    joined: &[bool],
) -> Program {
    let mut program = Program::default();
    let joins = joined.iter().filter(|&&joined| joined).count();
    program.steps.reserve_exact(run.events.len() - joins);
    // Enough for all: untouched memory costs nothing.
    program
        .operands
        .reserve(resolver.flow.operands.len() + 2 * run.events.len() + resolver.transfers.list.len());
    let mut step_of = vec![0u32; run.events.len()];
    let mut rank = 0;
    for (number, events) in order.blocks().enumerate() {
        while blocks.starts[rank + 1] as usize <= number {
            rank += 1;
        }
        let first = program.steps.len() as u32;
        let mut continued = false;
        for &event in events {
            step_of[event as usize] = program.steps.len() as u32 - u32::from(continued);
            if continued {
                let width = resolver.width(run.events[event as usize]);
                if let Some(step) = program.steps.last_mut() {
                    step.width += width;
                }
            } else {
                let operands = program.operands.len() as u32;
                let shape = resolver.operands(run.events[event as usize], &mut program.operands);
                let targets = waits.of(event);
                program.steps.push(Step {
                    operands,
                    sources: shape.sources,
                    destinations: shape.destinations,
                    waits: program.waits.len() as u32,
                    wait_count: targets.len() as u16,
                    round_each: shape.round_each,
                    post: shape.post,
                    width: shape.width,
                    span: shape.span,
                });
                program.waits.extend(targets.iter().map(|&event| StepId(event)));
            }
            continued = joined[event as usize];
        }
        let body = first..program.steps.len() as u32;
        program.blocks.push(Block {
            rank: RankId::new(rank),
            position: number as u32 - blocks.starts[rank],
            prologue: body.start..body.start,
            epilogue: body.end..body.end,
            body,
        });
    }
    for wait in &mut program.waits {
        *wait = StepId(step_of[wait.index()]);
    }
    program
}
