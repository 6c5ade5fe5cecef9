//! Plans whose memory accesses are not ordered, or reach outside of a call.

use rcc_plan::builder::{PlanBuilder, get, local, peer, put};
use rcc_plan::ids::{BufferId, ChannelId, StepId};
use rcc_plan::plan::{ChannelKind, Plan, Role, Witness};

use super::{Case, case, two_owners};
use crate::common::plans;

pub(super) fn memory() -> Vec<Case> {
    let (race, within) = ("plan::v3_race", "plan::v3_race_within_step");
    let (no_witness, unfenced) = ("plan::v5_no_witness", "plan::v5_unfenced");
    vec![
        case(race, "a wait left out", plans::two_block_chain(), |p| {
            p.steps[p.blocks[2].body.start as usize].wait_count = 0;
        }),
        case(race, "a wait for an earlier step", plans::two_block_chain(), |p| {
            let second = p.steps[p.blocks[2].body.start as usize + 1].waits as usize;
            p.waits[second] = p.waits[0];
        }),
        case(race, "in place only: overwritten while it is sent", plans::exchange(2), |p| {
            p.steps.iter_mut().for_each(|step| step.wait_count = 0);
        }),
        case(race, "READY too early", two_puts(), |p| {
            // Rank 0 reads what rank 1 may be overwriting: it says READY for the second write before it has read.
            let body = p.blocks[0].body.clone();
            let ready = (body.start..body.end).rfind(|&s| p.src(&p.steps[s as usize]).is_empty()).unwrap();
            p.steps.swap(ready as usize, ready as usize - 1);
        }),
        case(race, "read before DONE", plans::put_then_data(), |p| {
            let body = p.blocks[0].body.start as usize;
            p.steps.swap(body, body + 1);
        }),
        case(within, "a step that reads what it has written", shifted(), |p| {
            let step = p.steps[1];
            p.operands[step.operands as usize + 1] = local(BufferId(2), 1);
        }),
        case(within, "two destinations that overlap", plans::multicast_allgather(3), |p| {
            let step = p.steps[0];
            p.operands[step.operands as usize + 1] = local(BufferId(1), 0);
            p.steps[0].destinations += 1;
            let at = p.operands.len() as u32;
            p.operands.extend([
                local(BufferId(0), 0),
                local(BufferId(1), 0),
                local(BufferId(1), 0),
                put(ChannelId(0)),
            ]);
            p.steps[0].operands = at;
            p.steps[0].destinations = 3;
        }),
        case(no_witness, "no witness", plans::peer_put(), |p| p.witnesses.clear()),
        case(unfenced, "READY after the access", plans::peer_get(), |p| {
            let Witness { step, ready, .. } = p.witnesses[0];
            p.steps.swap(step.index(), ready.index());
            p.witnesses[0].step = ready;
            p.witnesses[0].ready = step;
        }),
        case(unfenced, "DONE before the access", plans::peer_get(), |p| {
            let Witness { step, done, .. } = p.witnesses[0];
            p.steps.swap(step.index(), done.index());
            p.witnesses[0].step = done;
            p.witnesses[0].done = step;
        }),
        case(unfenced, "a READY that is none", plans::peer_put(), |p| {
            p.witnesses[0].ready = StepId(p.blocks[1].epilogue.start);
        }),
        case(unfenced, "a DONE that is none", plans::peer_put(), |p| {
            p.witnesses[0].done = StepId(p.blocks[1].prologue.start);
        }),
        case(unfenced, "a READY from someone else", two_owners(), |p| {
            p.witnesses[1].ready = p.witnesses[0].ready;
        }),
        case(unfenced, "a DONE of another rank", plans::peer_put(), |p| {
            p.witnesses[0].done = StepId(p.blocks[0].epilogue.start);
        }),
        case(unfenced, "data in place of DONE", done_by_data(ChannelKind::Counter), |p| {
            *p = done_by_data(ChannelKind::Slots);
        }),
    ]
}

/// Rank 1 writes to rank 0 twice; rank 0 copies the first value away in between.
fn two_puts() -> Plan {
    let mut p = PlanBuilder::new("puts", "custom", &[2]);
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, 2);
    let (b0, b1) = (p.block(0), p.block(1));
    let (ready, done) = (p.counter(b0, &[b1]), p.counter(b1, &[b0]));
    for round in 0..2 {
        p.step(b0, &[], &[put(ready)]);
        let got_ready = p.step(b1, &[get(ready)], &[]).handle();
        let write = p.step(b1, &[local(input, 0)], &[peer(0, output, 0)]).handle();
        let sent_done = p.step(b1, &[], &[put(done)]).handle();
        p.step(b0, &[get(done)], &[]);
        p.witness(write, 0, got_ready, sent_done);
        if round == 0 {
            p.step(b0, &[local(output, 0)], &[local(output, 1)]);
        }
    }
    p.promise((output, 0, 0), &[(input, 1, 0)]);
    p.promise((output, 0, 1), &[(input, 1, 0)]);
    p.finish().unwrap().plan
}

/// Rank 1 writes to rank 0, then tells it so by a token, or by data.
fn done_by_data(kind: ChannelKind) -> Plan {
    let mut p = PlanBuilder::new("put", "custom", &[2]);
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, 2);
    let (b0, b1) = (p.block(0), p.block(1));
    let ready = p.counter(b0, &[b1]);
    p.step(b0, &[], &[put(ready)]);
    let got_ready = p.step(b1, &[get(ready)], &[]).handle();
    let write = p.step(b1, &[local(input, 0)], &[peer(0, output, 0)]).handle();
    let sent = if kind == ChannelKind::Slots {
        let done = p.channel(b1, &[b0]);
        p.step(b0, &[get(done)], &[local(output, 1)]);
        p.step(b1, &[local(input, 0)], &[put(done)]).handle()
    } else {
        let done = p.counter(b1, &[b0]);
        p.step(b0, &[get(done)], &[]);
        p.step(b1, &[], &[put(done)]).handle()
    };
    p.witness(write, 0, got_ready, sent);
    p.promise((output, 0, 0), &[(input, 1, 0)]);
    p.finish().unwrap().plan
}

/// A step of two cells through scratch.
fn shifted() -> Plan {
    let mut p = PlanBuilder::new("shift", "custom", &[1]);
    p.header().cells = 2;
    let (input, output) = (p.buffer("input", Role::Send, 1), p.buffer("output", Role::Recv, 1));
    let scratch = p.scratch(3);
    let block = p.block(0);
    p.step(block, &[local(input, 0)], &[local(scratch, 0)]).width(2);
    p.step(block, &[local(scratch, 0)], &[local(scratch, 0), local(output, 0)]).width(2);
    p.promise((output, 0, 0), &[(input, 0, 0)]);
    p.finish().unwrap().plan
}
