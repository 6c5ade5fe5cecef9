//! Which cell of a block each value came from, and so how long it is.
//!
//! In: a plan. Out: for each micro-step, the position within a block of the cells it moves. A place of the caller
//! has its own position; a message or a scratch cell has that of the value in it, which only following the values
//! tells. Executors need it to know the length of what they receive into scratch before it has come.

use std::collections::VecDeque;

use crate::ids::StepId;
use crate::interpret::{Fault, bounds, order};
use crate::plan::{ChannelKind, Operand, Plan, Role};

/// The length class of every micro-step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classes {
    /// Where the micro-steps of each step start in `class`.
    first: Vec<u32>,
    class: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Classes {
    /// The position within a block of the cell that a micro-step moves; none if it moves no data.
    pub fn of(&self, step: StepId, micro: u32) -> Option<u32> {
        let at = self.first.get(step.index())?.checked_add(micro)?;
        self.class.get(at as usize).copied().filter(|&class| class != NONE)
    }
}

/// The length class of every micro-step of `plan`; a fault if one joins two, or if some value is never there.
pub fn classes(plan: &Plan) -> Result<Classes, Fault> {
    bounds::check(plan)?;
    let mut first = Vec::with_capacity(plan.steps.len());
    let mut total = 0u32;
    for (step, position) in plan.steps.iter().zip(bounds::positions(plan)) {
        first.push(total);
        // `bounds` has limited the sum over steps of blocks; others never act.
        total += position.map_or(0, |_| step.width);
    }
    let mut classes = Classes { first, class: vec![NONE; total as usize] };
    let mut scratch: Vec<Vec<u32>> =
        plan.header.scratch_cells.iter().map(|&n| vec![NONE; n as usize]).collect();
    let mut queues: Vec<(u64, VecDeque<u32>)> = vec![(0, VecDeque::new()); plan.channels.len()];
    order::walk(plan, &mut |event| {
        let step = &plan.steps[event.step.index()];
        let micro = event.micros.start;
        let own = plan.blocks[event.block.index()].rank;
        let place = |operand: Operand| match operand {
            Operand::Channel(_) => None,
            Operand::Local { buffer, cell } => Some((own, buffer, cell + micro)),
            Operand::Peer { rank, buffer, cell } => Some((rank, buffer, cell + micro)),
        };
        let is_scratch = |buffer: crate::ids::BufferId| plan.buffers[buffer.index()].role == Role::Scratch;
        let mut found = NONE;
        let mut join = |class: u32| {
            let fits = found == NONE || found == class;
            found = class;
            if fits { Ok(()) } else { Err(Fault::Lengths { step: event.step, micro }) }
        };
        for (&operand, received) in plan.src(step).iter().zip(&event.received) {
            match (place(operand), operand, received) {
                (Some((rank, buffer, cell)), ..) if is_scratch(buffer) => {
                    match scratch[rank.index()][cell as usize] {
                        NONE => return Err(Fault::Undefined { step: event.step, rank, buffer, cell }),
                        class => join(class)?,
                    }
                }
                (Some((_, _, cell)), ..) => join(cell % plan.header.cells)?,
                (None, Operand::Channel(channel), &Some((number, retired)))
                    if plan.channels[channel.index()].kind == ChannelKind::Slots =>
                {
                    let (first, queue) = &mut queues[channel.index()];
                    join(queue[(number - *first) as usize])?;
                    queue.drain(..(retired - *first) as usize);
                    *first = retired;
                }
                _ => {}
            }
        }
        for &operand in plan.dst(step) {
            match place(operand) {
                Some((rank, buffer, cell)) if is_scratch(buffer) => {
                    scratch[rank.index()][cell as usize] = found;
                }
                Some((_, _, cell)) if cell % plan.header.cells != found => {
                    return Err(Fault::Lengths { step: event.step, micro });
                }
                _ => {}
            }
            if let Operand::Channel(channel) = operand {
                queues[channel.index()].1.push_back(found);
            }
        }
        let at = classes.first[event.step.index()] + micro;
        classes.class[at as usize] = found;
        Ok(())
    })?;
    Ok(classes)
}
