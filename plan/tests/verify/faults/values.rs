//! Plans that compute something else than they promise.

use rcc_plan::builder::{PlanBuilder, get, local, put};
use rcc_plan::ids::{BufferId, RankId, StepId};
use rcc_plan::plan::{Operand, Plan, Role};

use super::{Case, case, operand, sections};
use crate::common::plans;

pub(super) fn values() -> Vec<Case> {
    let (undefined, class, promise) = ("plan::v4_undefined", "plan::v4_class", "plan::v4_promise");
    let pre = "plan::v4_pre";
    let (post, forms, synchronised) = ("plan::v4_post", "plan::v4_forms_differ", "plan::v4_not_synchronised");
    vec![
        case(undefined, "a result read before it is there", plans::ring_plain(3), |p| {
            *operand(p, |op| matches!(op, Operand::Local { buffer: BufferId(0), .. })) =
                local(BufferId(1), 0);
            p.header.forms.same = false;
            p.overlaps.clear();
        }),
        case(class, "a cell to another position", plans::two_block_chain(), |p| {
            let first = p.steps[p.blocks[3].body.start as usize].operands as usize;
            let second = p.steps[p.blocks[3].body.start as usize + 1].operands as usize;
            p.operands.swap(first + 1, second + 1);
        }),
        case(class, "cells of two positions combined", plans::exchange(1), |p| {
            // One cell of each rank only, and not the same.
            *p = unequal();
        }),
        case(promise, "a cell never written", plans::alltoall(2), |p| {
            p.operands[p.steps[0].operands as usize + 1] = local(BufferId(1), 1);
        }),
        case(promise, "another value", plans::alltoall(3), |p| {
            let at = p.steps[0].operands as usize;
            p.operands[at] = local(BufferId(0), 1);
        }),
        case(promise, "an operand twice", plans::many_operand_reduce(3), |p| {
            let fold = p.steps[0];
            p.operands.extend_from_within(fold.operands as usize..fold.operands as usize + 3);
            p.operands.extend([local(BufferId(0), 0), local(BufferId(1), 0)]);
            p.steps[0].operands = p.operands.len() as u32 - 5;
            p.steps[0].sources += 1;
            p.steps[0].pre.0 = 15;
        }),
        case(promise, "an operand missing", plans::many_operand_reduce(3), |p| {
            p.promise.lists[0].pop();
            let input = p.promise.lists[0][0].buffer;
            p.buffers[input.index()].blocks = 2;
            p.promise.lists[0].push(rcc_plan::collective::BlockRef {
                buffer: input,
                rank: RankId(2),
                block: 1,
            });
        }),
        case(post, "post not served", plans::many_operand_reduce(3), |p| p.header.serves_post = false),
        case(post, "post left out", plans::many_operand_reduce(3), |p| p.steps[0].post = false),
        case(post, "post on a single value", plans::alltoall(2), |p| p.steps[0].post = true),
        case(post, "post on a part", plans::ring_plain(3), |p| {
            let is_reduce = |s: &rcc_plan::plan::Step| s.sources == 2 && !s.post;
            p.steps.iter_mut().find(|s| is_reduce(s)).unwrap().post = true;
        }),
        case(pre, "marks that are not served", plans::many_operand_reduce(3), |p| {
            p.header.serves_pre = false;
        }),
        case(pre, "a mark left out", plans::many_operand_reduce(3), |p| p.steps[0].pre.0 &= !2),
        case(pre, "a mark on a partial sum", plans::ring_plain(3), |p| {
            let is_later = |s: &rcc_plan::plan::Step| s.pre.0 == 2;
            p.steps.iter_mut().find(|s| is_later(s)).unwrap().pre.0 = 3;
        }),
        case(post, "reductions of two sizes", two_sizes(false), |p| *p = two_sizes(true)),
        case(forms, "another order in place", order_of_forms(false), |p| *p = order_of_forms(true)),
        case(synchronised, "a token left out", plans::barrier(4), |p| {
            // The second round goes as far as the first.
            *p = short_barrier();
        }),
        case(synchronised, "word that a block does not wait for", relayed_barrier(), |p| {
            p.steps.iter_mut().for_each(|step| step.wait_count = 0);
        }),
        case(synchronised, "a wait for a step before the word came", relayed_barrier(), |p| {
            p.waits[0] = StepId(p.waits[0].0 - 1);
        }),
        case(synchronised, "word by data only", sections(), |p| p.promise.synchronised = true),
    ]
}

/// Combines cells of two positions.
fn unequal() -> Plan {
    let mut p = PlanBuilder::new("unequal", "custom", &[1]);
    p.header().cells = 2;
    let (input, scratch) = (p.buffer("input", Role::Send, 1), p.scratch(1));
    let block = p.block(0);
    p.step(block, &[local(input, 0), local(input, 1)], &[local(scratch, 0)]);
    p.finish().unwrap().plan
}

/// Reductions of three values, or of two and of three; or no operator with an outer part.
fn two_sizes(serves: bool) -> Plan {
    let mut p = PlanBuilder::new("sizes", "custom", &[1]);
    let (input, output) = (p.buffer("input", Role::Send, 3), p.buffer("output", Role::Recv, 2));
    let block = p.block(0);
    for count in 2..4 {
        let operands: Vec<_> = (0..count).map(|i| local(input, i)).collect();
        let step = p.step(block, &operands, &[local(output, count - 2)]);
        if serves {
            step.post();
        }
        let operands: Vec<_> = (0..count).map(|i| (input, 0, i)).collect();
        p.promise((output, 0, count - 2), &operands);
    }
    p.finish().unwrap().plan
}

/// Adds three values: `(a + b) + c` out of place; in place, if told so, `(a + c) + b`.
fn order_of_forms(differ: bool) -> Plan {
    let mut p = PlanBuilder::new("forms", "custom", &[1]);
    let (input, output) = (p.buffer("input", Role::Send, 3), p.buffer("output", Role::Recv, 3));
    p.overlap(0, (input, 0), (output, 0), 3);
    let block = p.block(0);
    if differ {
        // In place cells 1 and 2 are swapped before they are read.
        let scratch = p.scratch(1);
        p.step(block, &[local(input, 1)], &[local(scratch, 0)]);
        p.step(block, &[local(input, 2)], &[local(output, 1)]);
        p.step(block, &[local(scratch, 0)], &[local(output, 2)]);
    }
    p.step(block, &[local(input, 0), local(input, 1)], &[local(output, 0)]);
    p.step(block, &[local(output, 0), local(input, 2)], &[local(output, 0)]).post();
    p.promise((output, 0, 0), &[(input, 0, 0), (input, 0, 1), (input, 0, 2)]);
    p.finish().unwrap().plan
}

/// Rank 2 hears of rank 0 only from the second block of rank 1, which hears of it only by waiting for the first.
fn relayed_barrier() -> Plan {
    let mut p = PlanBuilder::new("relayed", "barrier", &[3]);
    let [b0, hears, tells, b2] = [0, 1, 1, 2].map(|rank| p.block(rank));
    let back = p.counter(b2, &[b0, hears]);
    let (first, second) = (p.counter(b0, &[hears]), p.counter(tells, &[b2]));
    let third = p.counter(tells, &[b0]);
    p.step(b2, &[], &[put(back)]);
    p.step(b0, &[], &[put(first)]);
    p.step(b0, &[get(back), get(third)], &[]);
    p.step(hears, &[get(back)], &[]);
    let heard = p.step(hears, &[get(first)], &[]).handle();
    p.step(tells, &[], &[put(second), put(third)]).wait(heard);
    p.step(b2, &[get(second)], &[]);
    p.promise_synchronised();
    p.finish().unwrap().plan
}

/// Two rounds of tokens, both to the next rank, among four.
fn short_barrier() -> Plan {
    let mut p = PlanBuilder::new("short", "barrier", &[4]);
    let blocks = [0, 1, 2, 3].map(|rank| p.block(rank));
    for _ in 0..2 {
        let channels = [0, 1, 2, 3].map(|r: usize| p.counter(blocks[r], &[blocks[(r + 1) % 4]]));
        for r in 0..4 {
            p.step(blocks[r], &[], &[put(channels[r])]);
            p.step(blocks[r], &[get(channels[(r + 3) % 4])], &[]);
        }
    }
    p.promise_synchronised();
    p.finish().unwrap().plan
}
