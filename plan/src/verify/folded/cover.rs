//! A small cover of a folded plan: an ordinary plan, which every rule but V4 may look at in its stead.
//!
//! In: a folded plan without misfits. Out: a plan of `copies × step` ranks. Each copy has all programs of the standing ranks. A
//! channel that stays within its copy (no turn) does so here; others go on to another copy: which one does not matter (`folded`),
//! as long as two readers of one channel never meet at one rank. So two copies do, where channels have one reader.

use crate::collective::Promise;
use crate::fold::Folded;
use crate::ids::{BlockId, ChannelId, StepId};
use crate::plan::{Block, Channel, Header, Operand, Overlap, Plan, Step};
use crate::verify::{Limits, Violation, ids};

/// The cover. Its promise is empty: that is not a matter of one step or rank.
pub(super) fn cover(folded: &Folded, limits: &Limits) -> Result<Plan, Vec<Violation>> {
    let plan = &folded.plan;
    let on = onward(folded);
    let copies = on.iter().max().map_or(1, |most| most + 1);
    let of = |count: usize| count as u64 * u64::from(copies);
    // Before memory is taken for it. (V0 looks at the cover: a plan has fewer steps than fit 32 bits.)
    for (what, count) in
        [("steps", plan.steps.len()), ("channel readers", plan.readers.len()), ("blocks", plan.blocks.len())]
    {
        let (found, limit) = (of(count), limits.steps.min(u64::from(u32::MAX) - 1));
        if found > limit {
            return Err(super::violation(ids::Fault::Limit { what, found, limit }));
        }
    }
    for (what, count, limit) in [
        ("operands", plan.operands.len(), limits.accesses),
        ("waits", plan.waits.len(), limits.waits),
        ("overlaps", plan.overlaps.len(), limits.places),
    ] {
        let (found, limit) = (of(count), limit.min(u64::from(u32::MAX) - 1));
        if found > limit {
            return Err(super::violation(ids::Fault::Limit { what, found, limit }));
        }
    }
    let step = folded.rotation.step;
    let ranks = u64::from(step) * u64::from(copies);
    if ranks > limits.ranks.min(u64::from(u32::MAX)) {
        return Err(super::violation(ids::Fault::Limit { what: "ranks", found: ranks, limit: limits.ranks }));
    }
    let (blocks, channels, steps) =
        (plan.blocks.len() as u32, plan.channels.len() as u32, plan.steps.len() as u32);
    let mut cover = Plan {
        header: Header {
            shape: vec![ranks as u32],
            ranks: ranks as u32,
            scratch_cells: plan.header.scratch_cells.repeat(copies as usize),
            ..plan.header.clone()
        },
        buffers: plan.buffers.clone(),
        overlaps: Vec::with_capacity(plan.overlaps.len() * copies as usize),
        channels: Vec::with_capacity(plan.channels.len() * copies as usize),
        readers: Vec::with_capacity(plan.readers.len() * copies as usize),
        blocks: Vec::with_capacity(plan.blocks.len() * copies as usize),
        steps: Vec::with_capacity(plan.steps.len() * copies as usize),
        operands: Vec::with_capacity(plan.operands.len() * copies as usize),
        waits: Vec::with_capacity(plan.waits.len() * copies as usize),
        witnesses: Vec::new(),
        promise: Promise::default(),
        spans: plan.spans.clone(),
    };
    let readers = plan.readers.len() as u32;
    for copy in 0..copies {
        let at = |rank: crate::ids::RankId| crate::ids::RankId(copy * step + rank.0);
        cover.overlaps.extend(plan.overlaps.iter().map(|o| Overlap { rank: at(o.rank), ..*o }));
        cover.channels.extend(plan.channels.iter().map(|channel| Channel {
            writer: BlockId(copy * blocks + channel.writer.0),
            readers: copy * readers + channel.readers.start..copy * readers + channel.readers.end,
            kind: channel.kind,
        }));
        let reader = |(reader, on): (&BlockId, &u32)| BlockId((copy + on) % copies * blocks + reader.0);
        cover.readers.extend(plan.readers.iter().zip(&on).map(reader));
        let (first_operand, first_wait) = (cover.operands.len() as u32, cover.waits.len() as u32);
        cover.operands.extend_from_slice(&plan.operands);
        cover.waits.extend(plan.waits.iter().map(|wait| StepId(copy * steps + wait.0)));
        cover.steps.extend(plan.steps.iter().map(|step| Step {
            operands: first_operand + step.operands,
            waits: first_wait + step.waits,
            ..*step
        }));
        let shift = |range: &std::ops::Range<u32>| range.start + copy * steps..range.end + copy * steps;
        for (b, block) in plan.blocks.iter().enumerate() {
            cover.blocks.push(Block {
                rank: at(block.rank),
                position: block.position,
                prologue: shift(&block.prologue),
                body: shift(&block.body),
                epilogue: shift(&block.epilogue),
            });
            let own = block.prologue.start.min(steps)..block.epilogue.end.min(steps);
            for step in plan.steps.get(own.start as usize..own.end as usize).unwrap_or_default() {
                let operands = step.operands as usize..;
                for (at, operand) in operands.zip(plan.src(step).iter().chain(plan.dst(step))) {
                    let Operand::Channel(channel) = *operand else { continue };
                    let received = at < step.operands as usize + step.sources as usize;
                    let end = folded.end(channel, BlockId::new(b)).filter(|_| received);
                    let from = end.map_or(copy, |end| (copy + copies - on[end]) % copies);
                    cover.operands[first_operand as usize + at] =
                        Operand::Channel(ChannelId(from * channels + channel.0));
                }
            }
        }
    }
    Ok(cover)
}

/// By reader: how many copies further on it reads.
fn onward(folded: &Folded) -> Vec<u32> {
    let mut on = vec![0; folded.times.len()];
    for channel in &folded.plan.channels {
        let ends = channel.readers.start as usize..channel.readers.end as usize;
        let mut turns: Vec<u32> =
            folded.times[ends.clone()].iter().copied().filter(|&times| times > 0).collect();
        turns.sort_unstable();
        turns.dedup();
        for end in ends {
            on[end] = match folded.times[end] {
                0 => 0,
                times => turns.binary_search(&times).map_or(0, |at| at as u32 + 1),
            };
        }
    }
    on
}
