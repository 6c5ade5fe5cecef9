//! Blocks amid wide steps, which rule V2 lets race ahead of each other, against turns taken one micro-step at a time.
//!
//! In: plans of a few blocks whose steps are of one width nearly all, and exchange with several others at once: that is
//! where two of them may race, and where they must not. Out: the least number of slots found by trying one number after
//! the other, each by playing the plan as slowly as it can be played.

use proptest::prelude::*;
use rcc_plan::builder::{PlanBuilder, get, local, put};
use rcc_plan::ids::{ChannelId, StepId};
use rcc_plan::plan::{Operand, Plan, Role};
use rcc_plan::verify::{Limits, least_slots};

use crate::cases;
use crate::random::Choices;

/// A step in the making: from which channels, to which channels, how wide.
#[derive(Clone)]
struct Act {
    gets: Vec<ChannelId>,
    puts: Vec<ChannelId>,
    width: u32,
}

fn from_choices(choices: &mut Choices) -> Plan {
    let count = 2 + choices.below(3);
    let usual = 2 + choices.below(7) as u32;
    // Two blocks of a rank may wait for each other's steps.
    let ranks = count as u32 - u32::from(choices.one_in(2));
    let mut p = PlanBuilder::new("wide", "custom", &[ranks]);
    p.header().cells = 9;
    let (input, scratch) = (p.buffer("input", Role::Send, 1), p.scratch(9));
    let blocks: Vec<_> = (0..count as u32).map(|b| p.block(b % ranks)).collect();
    let mut channels = Vec::new();
    for _ in 0..2 + choices.below(4) {
        let (writer, reader) = (choices.below(count), choices.below(count - 1));
        let reader = if reader >= writer { reader + 1 } else { reader };
        channels.push((p.channel(blocks[writer], &[blocks[reader]]), writer, reader));
    }
    let mut acts: Vec<Vec<Act>> = vec![Vec::new(); count];
    for _ in 0..2 + choices.below(9) {
        let (channel, writer, reader) = channels[choices.below(channels.len())];
        let width = if choices.one_in(5) { 1 + choices.below(9) as u32 } else { usual };
        for (block, side) in [(writer, true), (reader, false)] {
            let act = match side {
                true => Act { gets: vec![], puts: vec![channel], width },
                false => Act { gets: vec![channel], puts: vec![], width },
            };
            let uses = |other: &Act| if side { &other.puts } else { &other.gets }.contains(&channel);
            let acts = &mut acts[block];
            // Behind the last message of its channel; with a step of its width if one is there.
            let first = acts.iter().rposition(uses).map_or(0, |at| at + 1);
            let fits = (first..acts.len()).find(|&at| acts[at].width == width);
            match fits.filter(|_| !choices.one_in(3)) {
                Some(at) => {
                    acts[at].gets.extend(act.gets);
                    acts[at].puts.extend(act.puts);
                }
                None if choices.one_in(3) => acts.insert(first + choices.below(acts.len() - first + 1), act),
                None => acts.push(act),
            }
        }
    }
    let mut steps = vec![Vec::new(); count];
    for (b, (acts, &block)) in acts.iter().zip(&blocks).enumerate() {
        for act in acts {
            let mut src: Vec<Operand> = act.gets.iter().map(|&channel| get(channel)).collect();
            let mut dst: Vec<Operand> = act.puts.iter().map(|&channel| put(channel)).collect();
            if src.is_empty() {
                src.push(local(input, 0));
            }
            if dst.is_empty() {
                dst.push(local(scratch, 0));
            }
            let step = p.step(block, &src, &dst).width(act.width).handle();
            steps[b].push(step);
        }
    }
    if ranks < count as u32 {
        // The first block and the last one.
        let ends = [0, count - 1];
        for _ in 0..choices.below(3) {
            let side = choices.below(2);
            let (waiting, target) = (&steps[ends[side]], &steps[ends[1 - side]]);
            if !waiting.is_empty() && !target.is_empty() {
                p.wait(waiting[choices.below(waiting.len())], target[choices.below(target.len())]);
            }
        }
    }
    p.finish().expect("small").plan
}

/// Whether all blocks come to their ends with so many slots, each making one micro-step at a time.
fn ends_with(plan: &Plan, slots: u32) -> bool {
    let mut sent = vec![0u32; plan.channels.len()];
    let mut taken = sent.clone();
    let mut at: Vec<(u32, u32)> = plan.blocks.iter().map(|block| (block.body.start, 0)).collect();
    loop {
        let mut moved = false;
        let at_before = at.clone();
        for (block, (step, micro)) in plan.blocks.iter().zip(&mut at) {
            if *step == block.body.end {
                continue;
            }
            let found = &plan.steps[*step as usize];
            let of = |operand: &Operand| match *operand {
                Operand::Channel(channel) => Some(channel.index()),
                _ => None,
            };
            let gets: Vec<usize> = plan.src(found).iter().filter_map(of).collect();
            let puts: Vec<usize> = plan.dst(found).iter().filter_map(of).collect();
            let waits = |target: &StepId| {
                let owner = plan.blocks.iter().position(|other| other.body.contains(&target.0));
                owner.is_some_and(|owner| at_before[owner].0 <= target.0)
            };
            if *micro == 0 && plan.waits(found).iter().any(waits) {
                continue;
            }
            if gets.iter().any(|&c| sent[c] == taken[c]) || puts.iter().any(|&c| sent[c] - taken[c] == slots)
            {
                continue;
            }
            gets.iter().for_each(|&c| taken[c] += 1);
            puts.iter().for_each(|&c| sent[c] += 1);
            moved = true;
            *micro += 1;
            if *micro == found.width {
                (*step, *micro) = (*step + 1, 0);
            }
        }
        if !moved {
            return plan.blocks.iter().zip(&at).all(|(block, &(step, _))| step == block.body.end);
        }
    }
}

fn least_by_turns(plan: &Plan) -> Option<u32> {
    let most: u32 = plan.steps.iter().map(|step| step.width).sum();
    (1..=most.max(1)).find(|&slots| ends_with(plan, slots))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(30_000), ..ProptestConfig::default() })]

    #[test]
    fn least_slots_is_that_of_turns(bytes in proptest::collection::vec(0u8.., 0..64)) {
        let plan = from_choices(&mut Choices::new(&bytes));
        prop_assert_eq!(least_slots(&plan, &Limits::default()).ok(), least_by_turns(&plan));
    }
}
