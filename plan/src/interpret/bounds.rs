//! Whether a plan can be followed at all: every index in bounds, every operand where it has a meaning.
//!
//! In: any plan. Out: nothing, or the first fault. This keeps the interpreter from panicking on plans that `verify`
//! has not seen; it is written apart from it, and says nothing about whether the plan is right.

use std::ops::Range;

use crate::ids::{BlockId, BufferId, RankId, StepId};
use crate::interpret::Fault;
use crate::plan::{Block, ChannelKind, Operand, Plan, Role, Section, Step};

/// The most micro-steps of one iteration that a plan may have to be interpreted.
pub(super) const MOST_EVENTS: u64 = 1 << 24;

/// Where each step stands: its block, section, and place within the section.
pub(super) fn positions(plan: &Plan) -> Vec<Option<(BlockId, Section, u32)>> {
    let mut positions = vec![None; plan.steps.len()];
    for (b, block) in plan.blocks.iter().enumerate() {
        for section in Section::ALL {
            for (i, step) in block.section(section).enumerate() {
                positions[step as usize] = Some((BlockId::new(b), section, i as u32));
            }
        }
    }
    positions
}

pub(super) fn check(plan: &Plan) -> Result<(), Fault> {
    let fault = |what| Err(Fault::Malformed { what, step: None });
    let header = &plan.header;
    if header.cells == 0 || header.copies == 0 {
        return fault("the plan cuts blocks into no cells, or has no copies");
    }
    if header.scratch_cells.len() != header.ranks as usize {
        return fault("the plan does not say how much scratch each rank has");
    }
    if plan.blocks.len() as u64 * u64::from(header.copies) > MOST_EVENTS {
        return fault("the plan has too many blocks to be interpreted");
    }
    let steps = plan.steps.len();
    for block in &plan.blocks {
        if block.rank.0 >= header.ranks {
            return fault("a block is of no rank");
        }
        for section in Section::ALL {
            if !within(&block.section(section), steps) {
                return fault("a block's steps are out of bounds");
            }
        }
    }
    if !plan.blocks.is_sorted_by_key(|b| b.rank) {
        return fault("the blocks are not sorted by rank");
    }
    for channel in &plan.channels {
        if channel.writer.index() >= plan.blocks.len() || !within(&channel.readers, plan.readers.len()) {
            return fault("a channel's ends are out of bounds");
        }
    }
    if plan.readers.iter().any(|reader| reader.index() >= plan.blocks.len()) {
        return fault("a channel's reader is no block");
    }
    for buffer in &plan.buffers {
        if u64::from(buffer.blocks) * u64::from(header.cells) > u64::from(u32::MAX) {
            return fault("a buffer has too many cells");
        }
    }
    for overlap in &plan.overlaps {
        let left = (overlap.left, overlap.left_cell, Role::Send);
        let right = (overlap.right, overlap.right_cell, Role::Recv);
        for (buffer, cell, role) in [left, right] {
            let here =
                overlap.rank.0 < header.ranks && holds(plan, overlap.rank, buffer, cell, overlap.cells);
            if !here || plan.buffers[buffer.index()].role != role {
                return fault("an overlap is out of bounds");
            }
        }
        if overlap.left_cell % header.cells != overlap.right_cell % header.cells {
            return fault("an overlap joins cells of different positions");
        }
    }
    let in_blocks: u64 = plan.blocks.iter().map(length).sum();
    let positions = positions(plan);
    if in_blocks != positions.iter().flatten().count() as u64 {
        return fault("a step is in two blocks");
    }
    let mut events = 0u64;
    for (i, step) in plan.steps.iter().enumerate() {
        let id = StepId::new(i);
        let Some((block, section, _)) = positions[i] else { continue };
        events += u64::from(step.width);
        if events > MOST_EVENTS {
            return fault("the plan has too many micro-steps to be interpreted");
        }
        check_step(plan, step, block, section).map_err(|what| Fault::Malformed { what, step: Some(id) })?;
        for &wait in plan.waits(step) {
            let target = positions.get(wait.index()).copied().flatten();
            let rank = plan.blocks[block.index()].rank;
            let sound = target.is_some_and(|(b, s, _)| plan.blocks[b.index()].rank == rank && s <= section);
            if !sound {
                let what = "waits for a step of another rank or a later section";
                return Err(Fault::Malformed { what, step: Some(id) });
            }
        }
    }
    Ok(())
}

/// Steps of all sections.
fn length(block: &Block) -> u64 {
    Section::ALL.iter().map(|&section| block.section(section).len() as u64).sum()
}

fn check_step(plan: &Plan, step: &Step, block: BlockId, section: Section) -> Result<(), &'static str> {
    let operands = u64::from(step.operands) + u64::from(step.sources) + u64::from(step.destinations);
    if operands > plan.operands.len() as u64 {
        return Err("has operands out of bounds");
    }
    if u64::from(step.waits) + u64::from(step.wait_count) > plan.waits.len() as u64 {
        return Err("has waits out of bounds");
    }
    if step.width == 0 {
        return Err("acts on no cell");
    }
    let sources = check_side(plan, plan.src(step), step.width, block, false)?;
    let destinations = check_side(plan, plan.dst(step), step.width, block, true)?;
    if destinations && !sources {
        return Err("stores or sends without a source");
    }
    if section != Section::Body && (sources || destinations) {
        return Err("moves data outside the body");
    }
    Ok(())
}

/// Checks the operands of one side, and says whether there is any that carries data.
fn check_side(
    plan: &Plan,
    operands: &[Operand],
    width: u32,
    block: BlockId,
    written: bool,
) -> Result<bool, &'static str> {
    let own = plan.blocks[block.index()].rank;
    let mut data = false;
    for (i, &operand) in operands.iter().enumerate() {
        let (rank, buffer, cell) = match operand {
            Operand::Channel(id) => {
                let channel = plan.channels.get(id.index()).ok_or("names no channel")?;
                let at_end =
                    if written { channel.writer == block } else { plan.readers(channel).contains(&block) };
                if !at_end {
                    return Err("names a channel that its block is not an end of");
                }
                if operands[..i].contains(&operand) {
                    return Err("names a channel twice");
                }
                data |= channel.kind == ChannelKind::Slots;
                continue;
            }
            Operand::Local { buffer, cell } => (own, buffer, cell),
            Operand::Peer { rank, buffer, cell } => (rank, buffer, cell),
        };
        if rank.0 >= plan.header.ranks || !holds(plan, rank, buffer, cell, width) {
            return Err("names cells out of bounds");
        }
        if written && plan.buffers[buffer.index()].role == Role::Send {
            return Err("writes to a buffer that is only read");
        }
        data = true;
    }
    Ok(data)
}

fn holds(plan: &Plan, rank: RankId, buffer: BufferId, cell: u32, width: u32) -> bool {
    let Some(found) = plan.buffers.get(buffer.index()) else { return false };
    let cells = match found.role {
        Role::Scratch => u64::from(plan.header.scratch_cells[rank.index()]),
        Role::Send | Role::Recv => u64::from(found.blocks) * u64::from(plan.header.cells),
    };
    found.at.holds(rank) && u64::from(cell) + u64::from(width) <= cells
}

fn within(range: &Range<u32>, len: usize) -> bool {
    range.start <= range.end && range.end as usize <= len
}
