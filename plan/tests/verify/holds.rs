//! The lemmas of plan.md §4 as checks of any plan that passes V0 and V1, on the graph of D spelled out.
//!
//! In: a plan, slots, iterations, a seed for what is elided and grouped. Out: which lemma fails, in words. Used for
//! random plans and for those that the compiler makes.

use std::ops::Range;

use proptest::test_runner::TestCaseError;
use rcc_plan::ids::{BlockId, ChannelId, StepId};
use rcc_plan::plan::{Block, Channel, ChannelKind, Operand, Plan, Step};

use crate::events::{Shape, is_acyclic};

/// The most slots that can matter: all messages of a channel.
pub(crate) fn most_slots(plan: &Plan) -> usize {
    plan.steps.iter().map(|step| step.width as usize).sum::<usize>().max(1)
}

pub(crate) fn acyclic(plan: &Plan, slots: usize) -> bool {
    is_acyclic(plan, &Shape { slots, ..Shape::default() })
}

/// By the book: the least number of slots without a cycle.
pub(crate) fn least_by_the_book(plan: &Plan) -> Option<usize> {
    (1..=most_slots(plan)).find(|&slots| acyclic(plan, slots))
}

/// All lemmas, as far as `slots` let the plan live: L3 and L4 say nothing of a plan that is dead without them.
pub(crate) fn lemmas(plan: &Plan, slots: usize, iterations: usize, seed: u64) -> Result<(), TestCaseError> {
    let once = acyclic(plan, slots);
    let must = |holds: bool, lemma: &str| {
        let what = || format!("{lemma}, {slots} slots, {iterations} iterations, seed {seed}");
        if holds { Ok(()) } else { Err(TestCaseError::fail(what())) }
    };
    must(once == is_acyclic(plan, &Shape { slots, iterations, ..Shape::default() }), "L1: any T")?;
    must(!once || acyclic(plan, slots + 1), "L2: more slots")?;
    must(!once || acyclic(plan, slots * 2 + 3), "L2: many more slots")?;
    for (calls, blocking) in [(2, false), (3, false), (2, true)] {
        let shape = Shape { slots, calls, blocking, iterations: 2, ..Shape::default() };
        must(once == is_acyclic(plan, &shape), "L5: calls in sequence")?;
    }
    if !once {
        return Ok(());
    }
    let elided = |channel: ChannelId, number: usize| {
        let is_data = plan.channels[channel.index()].kind == ChannelKind::Slots;
        is_data && noise(seed, &[u64::from(channel.0), number as u64]) & 1 == 0
    };
    // Both ends must group alike: steps that exchange messages get one number, from which the groups follow.
    let kin = kin(plan);
    let group = |step: StepId, micro: u32| {
        let cut = |at: u32| noise(seed, &[u64::from(kin[step.index()]), u64::from(at)]) & 1 == 0;
        (1..=micro).filter(|&at| cut(at)).count() as u32
    };
    for iterations in [1, iterations] {
        let shape = Shape { slots, iterations, elided: &elided, ..Shape::default() };
        must(is_acyclic(plan, &shape), "L3: messages left out")?;
        let shape = Shape { slots, iterations, group: &group, ..Shape::default() };
        must(is_acyclic(plan, &shape), "L4: neighbours as one")?;
        let shape = Shape { slots, iterations, group: &group, elided: &elided, ..Shape::default() };
        must(is_acyclic(plan, &shape), "L3 and L4 at once")?;
    }
    Ok(())
}

/// A number that says nothing but is always the same for equal input.
fn noise(seed: u64, numbers: &[u64]) -> u64 {
    numbers.iter().fold(seed, |bits, &n| {
        let bits = (bits ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits ^ (bits >> 29)
    })
}

/// The blocks of both plans on the same ranks, on channels of their own.
pub(crate) fn side_by_side(one: &Plan, other: &Plan) -> Plan {
    let mut both = one.clone();
    let (blocks, channels, readers) = (one.blocks.len(), one.channels.len(), one.readers.len());
    let (steps, operands, waits) = (one.steps.len(), one.operands.len(), one.waits.len());
    let by = |range: &Range<u32>, by: usize| range.start + by as u32..range.end + by as u32;
    both.header.ranks = one.header.ranks.max(other.header.ranks);
    both.blocks.extend(other.blocks.iter().map(|block| Block {
        prologue: by(&block.prologue, steps),
        body: by(&block.body, steps),
        epilogue: by(&block.epilogue, steps),
        ..block.clone()
    }));
    both.channels.extend(other.channels.iter().map(|channel| Channel {
        writer: BlockId(channel.writer.0 + blocks as u32),
        readers: by(&channel.readers, readers),
        kind: channel.kind,
    }));
    both.readers.extend(other.readers.iter().map(|block| BlockId(block.0 + blocks as u32)));
    both.steps.extend(other.steps.iter().map(|step| Step {
        operands: step.operands + operands as u32,
        waits: step.waits + waits as u32,
        ..*step
    }));
    both.operands.extend(other.operands.iter().map(|operand| match *operand {
        Operand::Channel(channel) => Operand::Channel(ChannelId(channel.0 + channels as u32)),
        place => place,
    }));
    both.waits.extend(other.waits.iter().map(|step| StepId(step.0 + steps as u32)));
    both
}

/// For each step the least step that it is joined to by messages, directly or not.
fn kin(plan: &Plan) -> Vec<u32> {
    let mut kin: Vec<u32> = (0..plan.steps.len() as u32).collect();
    for (c, channel) in plan.channels.iter().enumerate() {
        let uses = |operands: &[Operand]| operands.contains(&Operand::Channel(ChannelId(c as u32)));
        let of_block = |block: usize, is_send: bool| -> Vec<usize> {
            let block = &plan.blocks[block];
            let steps = block.prologue.start..block.epilogue.end;
            let uses =
                |&s: &usize| uses(if is_send { plan.dst(&plan.steps[s]) } else { plan.src(&plan.steps[s]) });
            (steps.start as usize..steps.end as usize).filter(uses).collect()
        };
        let sends = of_block(channel.writer.index(), true);
        for reader in plan.readers(channel) {
            for (&send, receive) in sends.iter().zip(of_block(reader.index(), false)) {
                let (one, other) = (kin[send], kin[receive]);
                kin.iter_mut().filter(|k| **k == one || **k == other).for_each(|k| *k = one.min(other));
            }
        }
    }
    kin
}
