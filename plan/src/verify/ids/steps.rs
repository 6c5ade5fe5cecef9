//! V0, steps: operands, places, waits, witnesses.
//!
//! In: a plan whose buffers, blocks and channels are checked. Out: steps of which every operand exists and may be
//! used as it is. Decided here: tokens stand in steps of their own (all operands `Counter` channels, width 1, no
//! arithmetic); such a step may also have no operand on one side, or on both (a place to wait).

use std::ops::Range;

use super::{Fault, Faults};
use crate::display::plural;
use crate::ids::{BlockId, BufferId, ChannelId, RankId, StepId};
use crate::join::join;
use crate::plan::{Block, ChannelKind, Operand, Plan, Role, Section, Step};
use crate::verify::limits::Limits;
use crate::verify::links::Ends;
use crate::verify::places::Places;
use crate::verify::violation::Report;

pub(super) fn check(faults: &mut Faults, limits: &Limits) {
    if !ranges(faults, limits) {
        return;
    }
    let plan = faults.plan;
    let (places, ends) = (Places::new(plan), Ends::new(plan));
    let of = |blocks: Range<usize>| {
        let mut faults = Faults { plan, report: Report::default() };
        of_blocks(&mut faults, &places, &ends, blocks);
        faults.report
    };
    let (all, middle) = (plan.blocks.len(), plan.blocks.len() / 2);
    let (first, second) = join(plan.steps.len() > 1 << 14, || of(0..middle), || of(middle..all));
    faults.report.append(first);
    faults.report.append(second);
    witnesses(faults);
}

fn of_blocks(faults: &mut Faults, places: &Places, ends: &Ends, blocks: Range<usize>) {
    let plan = faults.plan;
    let mut state = State {
        places,
        ends,
        got: vec![u32::MAX; plan.channels.len()],
        put: vec![u32::MAX; plan.channels.len()],
    };
    for (b, block) in blocks.clone().zip(&plan.blocks[blocks]) {
        for section in Section::ALL {
            for (id, step) in plan.steps(&block.section(section)) {
                let at = At { id, step, block, block_id: BlockId::new(b), section };
                shape(faults, &at);
                operands(faults, &mut state, &at);
                waits(faults, &at);
            }
        }
    }
}

/// A step and where it stands.
struct At<'a> {
    id: StepId,
    step: &'a Step,
    block: &'a Block,
    block_id: BlockId,
    section: Section,
}

struct State<'a> {
    places: &'a Places,
    ends: &'a Ends,
    /// The last step that received from, sent on a channel.
    got: Vec<u32>,
    put: Vec<u32>,
}

/// Ranges and totals; false if the steps cannot be looked at.
fn ranges(faults: &mut Faults, limits: &Limits) -> bool {
    let plan = faults.plan;
    let (mut operands, mut waits, mut micro, mut accesses) = (0u64, 0u64, 0u64, 0u64);
    for (at, step) in plan.steps.iter().enumerate() {
        let id = StepId(at as u32);
        let count = u64::from(step.sources) + u64::from(step.destinations);
        operands += count;
        waits += u64::from(step.wait_count);
        micro += u64::from(step.width);
        accesses = accesses.saturating_add(u64::from(step.width) * count);
        let mut within = |what: &'static str, start: u32, count: u64, len: usize| {
            let end = u64::from(start) + count;
            if end > len as u64 {
                faults.at(id, || Fault::Index { what: what.to_string(), found: end, len: len as u64 });
            }
        };
        within("the range of its operands", step.operands, count, plan.operands.len());
        within("the range of its waits", step.waits, u64::from(step.wait_count), plan.waits.len());
        faults.index(|| format!("the span of step {at}"), u64::from(step.span.0), plan.spans.spans.len());
    }
    let clocks = clock_entries(plan);
    faults.limit("operands", operands, limits.accesses);
    faults.limit("waits", waits, limits.waits);
    faults.limit("micro-steps", micro, limits.micro_steps.min(u64::from(u32::MAX) - 1));
    faults.limit("accesses", accesses, limits.accesses);
    faults.limit("waits × blocks of a rank", clocks, limits.clock_entries.min(u64::from(u32::MAX) - 1));
    faults.report.is_empty()
}

/// What the clocks of V3 will cost: waits × blocks of their rank.
fn clock_entries(plan: &Plan) -> u64 {
    let of_rank = |blocks: &[Block]| {
        let steps =
            blocks.iter().flat_map(|b| &plan.steps[b.prologue.start as usize..b.epilogue.end as usize]);
        let waits: u64 = steps.map(|step| u64::from(step.wait_count)).sum();
        (waits + 1).saturating_mul(blocks.len() as u64)
    };
    plan.blocks.chunk_by(|a, b| a.rank == b.rank).map(of_rank).fold(0, u64::saturating_add)
}

fn shape(faults: &mut Faults, at: &At) {
    let plan = faults.plan;
    let step = at.step;
    let mut wrong = |what: &str| {
        faults.at(at.id, || Fault::Step { step: at.id, what: what.to_string() });
    };
    if step.width == 0 {
        wrong("it is 0 cells wide");
    }
    if !step.pre.is_none() && (step.sources < 2 || !step.pre.is_within(step.sources.into())) {
        wrong("it marks entry values among sources that it does not combine");
    }
    let (mut tokens, mut data) = (0, 0);
    for operand in plan.src(step).iter().chain(plan.dst(step)) {
        match *operand {
            Operand::Channel(channel) => match plan.channels.get(channel.index()).map(|channel| channel.kind)
            {
                Some(ChannelKind::Counter) => tokens += 1,
                Some(ChannelKind::Slots) => data += 1,
                None => {}
            },
            Operand::Local { .. } | Operand::Peer { .. } => data += 1,
        }
    }
    if data > 0 {
        if tokens > 0 {
            wrong("it mixes tokens with data");
        }
        if step.sources == 0 {
            wrong("it stores data from nowhere");
        }
        if step.destinations == 0 {
            wrong("it reads data for nobody");
        }
        if at.section != Section::Body {
            wrong("it moves data outside the body");
        }
    } else {
        if step.width > 1 {
            wrong("it is a token step wider than 1");
        }
        if step.post || step.round_each || !step.pre.is_none() {
            wrong("it is a token step with arithmetic");
        }
    }
}

fn operands(faults: &mut Faults, state: &mut State, at: &At) {
    let plan = faults.plan;
    for (is_source, operands) in [(true, plan.src(at.step)), (false, plan.dst(at.step))] {
        for operand in operands {
            match *operand {
                Operand::Channel(channel) => end(faults, state, at, channel, is_source),
                Operand::Local { buffer, cell } => {
                    place(faults, state, at, (at.block.rank, buffer, cell), is_source, false);
                }
                Operand::Peer { rank, buffer, cell } => {
                    if rank.0 >= plan.header.ranks || rank == at.block.rank {
                        let what = format!("it names rank {} as a peer of rank {}", rank.0, at.block.rank.0);
                        faults.at(at.id, || Fault::Step { step: at.id, what });
                    } else {
                        place(faults, state, at, (rank, buffer, cell), is_source, true);
                    }
                }
            }
        }
    }
}

fn end(faults: &mut Faults, state: &mut State, at: &At, channel: ChannelId, is_source: bool) {
    let plan = faults.plan;
    let what = || format!("a channel of step {}", at.id.0);
    if !faults.index(what, u64::from(channel.0), plan.channels.len()) {
        return;
    }
    let mut wrong = |what: String| faults.at(at.id, || Fault::Channel { channel, what });
    let (rank, position) = (at.block.rank.0, at.block.position);
    if is_source {
        if state.ends.of(plan, channel, at.block_id).is_none() {
            wrong(format!("rank {rank} block {position} receives from it but is not one of its readers"));
        }
    } else if plan.channels[channel.index()].writer != at.block_id {
        wrong(format!("rank {rank} block {position} sends on it but is not its writer"));
    }
    let last = if is_source { &mut state.got } else { &mut state.put };
    if std::mem::replace(&mut last[channel.index()], at.id.0) == at.id.0 {
        wrong("one step uses it twice".to_string());
    }
}

fn place(
    faults: &mut Faults,
    state: &State,
    at: &At,
    (rank, buffer, cell): (RankId, BufferId, u32),
    is_source: bool,
    is_peer: bool,
) {
    let plan = faults.plan;
    let what = || format!("a buffer of step {}", at.id.0);
    if !faults.index(what, u64::from(buffer.0), plan.buffers.len()) {
        return;
    }
    let width = at.step.width;
    let mut wrong = |what: &str| {
        let last = u64::from(cell) + u64::from(width.max(1)) - 1;
        faults.at(at.id, || Fault::Place {
            step: at.id,
            buffer,
            rank,
            cell: u64::from(cell),
            last,
            what: what.to_string(),
        });
    };
    if state.places.range(rank, buffer, cell, width).is_none() {
        let cells = state.places.cells(rank, buffer);
        match cells {
            0 => wrong("the buffer has no cells there"),
            _ => wrong(&format!("the buffer has {}", plural(cells.into(), "cell", "cells"))),
        }
    }
    let role = plan.buffers[buffer.index()].role;
    if !is_source && role == Role::Send {
        wrong("it writes a `Send` buffer, which the caller may go on reading");
    }
    if is_peer && role == Role::Scratch {
        wrong("it reaches into another rank's scratch, which no peer can map");
    }
}

fn waits(faults: &mut Faults, at: &At) {
    let plan = faults.plan;
    for &target in plan.waits(at.step) {
        if !faults.index(|| format!("a wait of step {}", at.id.0), u64::from(target.0), plan.steps.len()) {
            continue;
        }
        let what = match locate(plan, target) {
            Some((block, _)) if block == at.block_id => "for a step of the same block",
            Some((block, _)) if plan.blocks[block.index()].rank != at.block.rank => {
                "for a step of another rank"
            }
            Some((_, section)) if section > at.section => "for a step of a later section",
            Some(_) => continue,
            None => "for a step in no block",
        };
        let steps = [(at.id, "it waits"), (target, "for this")];
        faults.at_all(&steps, || Fault::Wait { step: at.id, target, what });
    }
}

/// The block and section that a step is in. Sections tile the steps: the first block that ends after it has it.
fn locate(plan: &Plan, step: StepId) -> Option<(BlockId, Section)> {
    let at = plan.blocks.partition_point(|block| block.epilogue.end <= step.0);
    let block = plan.blocks.get(at)?;
    let section = Section::ALL.into_iter().find(|&section| block.section(section).contains(&step.0))?;
    Some((BlockId::new(at), section))
}

fn witnesses(faults: &mut Faults) {
    let plan = faults.plan;
    let steps = plan.steps.len();
    let mut last = None;
    let mut owners = Vec::new();
    for (index, witness) in plan.witnesses.iter().enumerate() {
        let ids = [witness.step, witness.ready, witness.done].map(|step| u64::from(step.0));
        if ids.into_iter().any(|id| !faults.index(|| format!("a step of witness {index}"), id, steps)) {
            return;
        }
        let key = (witness.step, witness.owner);
        if last >= Some(key) {
            faults.at(witness.step, || Fault::Witness { index, what: "out of order, or a second one" });
            return;
        }
        if last.is_none_or(|(step, _)| step != witness.step) {
            // The owners that the step accesses, sorted: a step may have very many, and a witness for each.
            let step = &plan.steps[witness.step.index()];
            owners.clear();
            owners.extend(plan.src(step).iter().chain(plan.dst(step)).filter_map(|operand| match *operand {
                Operand::Peer { rank, .. } => Some(rank),
                _ => None,
            }));
            owners.sort_unstable();
        }
        if owners.binary_search(&witness.owner).is_err() {
            let what = "its step does not access the memory of its owner";
            faults.at(witness.step, || Fault::Witness { index, what });
        }
        last = Some(key);
    }
}
