//! Events in their blocks, and then as steps of the plan's flat arrays.
//!
//! In: what each rank does, blocks, waits. Out: the arrays. Blocks are sorted by rank; an event is a step.

use plan::ids::{RankId, StepId};
use plan::plan::{Block, Operand, Step};

use super::blocks::Blocks;
use super::resolve::Resolver;
use super::simulate::Run;
use super::waits::Waits;

/// Blocks, steps, operands and waits of a plan.
#[derive(Default)]
pub(super) struct Program {
    pub(super) blocks: Vec<Block>,
    pub(super) steps: Vec<Step>,
    pub(super) operands: Vec<Operand>,
    pub(super) waits: Vec<StepId>,
}

/// Writes the steps down. They have `operands` operands, at most.
pub(super) fn write(
    resolver: &Resolver<'_>,
    run: &Run,
    blocks: &Blocks,
    waits: &Waits,
    operands: usize,
) -> Program {
    let mut program = Program::default();
    let count = run.ranks.iter().map(Vec::len).sum();
    program.steps.reserve_exact(count);
    program.operands.reserve_exact(operands);
    // Events of one rank, block by block.
    let mut order: Vec<u32> = Vec::new();
    let mut step_of = vec![0; if waits.is_empty() { 0 } else { count }];
    let mut before = 0;
    for (rank, events) in run.ranks.iter().enumerate() {
        order.clear();
        order.extend(0..events.len() as u32);
        let numbers = blocks.starts[rank]..blocks.starts[rank + 1];
        if numbers.len() > 1 {
            order.sort_by_key(|&at| events[at as usize].1);
        }
        let mut order = order.iter().peekable();
        for (position, number) in (0..).zip(numbers) {
            let first = program.steps.len() as u32;
            while let Some(&at) = order.next_if(|&&at| events[at as usize].1 == number) {
                if let Some(step) = step_of.get_mut((before + at) as usize) {
                    *step = program.steps.len() as u32;
                }
                let operands = program.operands.len() as u32;
                let shape = resolver.operands(events[at as usize].0, &mut program.operands);
                let targets = waits.of(before + at);
                program.steps.push(Step {
                    operands,
                    sources: shape.sources,
                    destinations: shape.destinations,
                    waits: program.waits.len() as u32,
                    wait_count: targets.len() as u16,
                    round_each: shape.round_each,
                    post: shape.post,
                    pre: shape.pre,
                    width: shape.width,
                    span: shape.span,
                });
                program.waits.extend(targets.iter().map(|&event| StepId(event)));
            }
            let body = first..program.steps.len() as u32;
            program.blocks.push(Block {
                rank: RankId::new(rank),
                position,
                prologue: body.start..body.start,
                epilogue: body.end..body.end,
                body,
            });
        }
        before += events.len() as u32;
    }
    for wait in &mut program.waits {
        *wait = StepId(step_of[wait.index()]);
    }
    program
}
