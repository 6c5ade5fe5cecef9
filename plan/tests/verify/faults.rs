//! For every kind of violation, plans that have just this fault; without it they pass.

use rcc_plan::builder::{PlanBuilder, get, local, peer, put};
use rcc_plan::ids::{BlockId, BufferId, ChannelId, RankId, SpanId, StepId};
use rcc_plan::plan::{ChannelKind, Operand, Overlap, Plan, Presence, Role, Section, Witness};
use rcc_plan::verify::{CODES, Limits, Target, Violation, verify};

use crate::common::plans;

/// One fault: the code it must be reported with, a right plan, what is done to it.
struct Case {
    code: &'static str,
    name: &'static str,
    right: Plan,
    break_it: Box<dyn Fn(&mut Plan)>,
}

fn case(code: &'static str, name: &'static str, right: Plan, break_it: impl Fn(&mut Plan) + 'static) -> Case {
    Case { code, name, right, break_it: Box::new(break_it) }
}

#[test]
fn every_fault_is_found_and_named_and_its_absence_passes() {
    let mut failures = Vec::new();
    let cases = cases();
    for Case { code, name, right, break_it } in &cases {
        if let Err(violations) = verify(right.clone(), &Limits::default()) {
            failures.push(format!("{name}: the right plan is refused:\n{}", text(&violations)));
        }
        let mut wrong = right.clone();
        break_it(&mut wrong);
        match verify(wrong, &Limits::default()) {
            Ok(_) => failures.push(format!("{name}: accepted")),
            Err(violations) if violations.iter().any(|v| v.code() != *code) => {
                failures.push(format!("{name}: expected {code}, got\n{}", text(&violations)));
            }
            Err(_) => {}
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    for code in CODES.into_iter().filter(|&code| !ELSEWHERE.contains(&code)) {
        assert!(cases.iter().any(|case| case.code == code), "no plan breaks {code}");
    }
}

/// Codes that need other limits: tested below.
const ELSEWHERE: [&str; 2] = ["plan::v0_limit", "plan::v7_target_limit"];

fn text(violations: &[Violation]) -> String {
    violations.iter().map(|v| format!("{v}\n")).collect()
}

fn ring() -> Plan {
    plans::ring_allreduce(3)
}

/// The first operand of some kind, to be changed.
fn operand(plan: &mut Plan, is: impl Fn(&Operand) -> bool) -> &mut Operand {
    plan.operands.iter_mut().find(|op| is(op)).unwrap()
}

fn is_local(op: &Operand) -> bool {
    matches!(op, Operand::Local { .. })
}

fn cases() -> Vec<Case> {
    let mut cases = header();
    cases.extend(tables());
    cases.extend(steps());
    cases.extend(order());
    cases.extend(memory());
    cases.extend(values());
    cases
}

fn header() -> Vec<Case> {
    let header = "plan::v0_header";
    vec![
        case(header, "shape of another size", ring(), |p| p.header.shape = vec![2, 2]),
        case(header, "no levels", barrier1(), |p| p.header.shape = vec![]),
        case(header, "no cells", ring(), |p| p.header.cells = 0),
        case(header, "no copies", ring(), |p| p.header.copies = 0),
        case(header, "no slots", ring(), |p| p.header.k_min = 0),
        case(header, "no form", ring(), |p| {
            p.header.forms.disjoint = false;
            p.header.forms.same = false;
            p.overlaps.clear();
        }),
        case(header, "overlaps without the form", ring(), |p| p.header.forms.same = false),
        case(header, "scratch of some ranks only", ring(), |p| p.header.scratch_cells.truncate(2)),
    ]
}

/// One rank, which has nothing to do.
fn barrier1() -> Plan {
    let mut p = PlanBuilder::new("alone", "barrier", &[1]);
    p.promise_synchronised();
    p.finish().unwrap().plan
}

fn tables() -> Vec<Case> {
    let (buffer, blocks, channel) = ("plan::v0_buffer", "plan::v0_blocks", "plan::v0_channel");
    let (index, promise, text) = ("plan::v0_index", "plan::v0_promise", "plan::v0_text");
    vec![
        case(buffer, "two scratch buffers", plans::scratch_reduce_scatter(), |p| {
            let scratch = p.buffers.iter().find(|b| b.role == Role::Scratch).cloned();
            p.buffers.extend(scratch);
        }),
        case(buffer, "scratch cells without a buffer", ring(), |p| p.header.scratch_cells[1] = 1),
        case(buffer, "scratch with blocks", plans::scratch_reduce_scatter(), |p| {
            p.buffers.iter_mut().find(|b| b.role == Role::Scratch).unwrap().blocks = 1;
        }),
        case(buffer, "scratch at one rank", plans::scratch_reduce_scatter(), |p| {
            p.buffers.iter_mut().find(|b| b.role == Role::Scratch).unwrap().at = Presence::One(RankId(0));
        }),
        case(buffer, "at no rank", plans::two_block_chain(), |p| {
            p.buffers[0].at = Presence::One(RankId(3));
        }),
        case(buffer, "overlap at no rank", ring(), |p| p.overlaps[0].rank = RankId(3)),
        case(buffer, "overlap of two results", ring(), |p| p.overlaps[0].left = BufferId(1)),
        case(buffer, "overlap of an unknown buffer", ring(), |p| p.overlaps[0].right = BufferId(9)),
        case(buffer, "overlap beyond the end", ring(), |p| p.overlaps[0].cells = 4),
        case(buffer, "overlap at another position", ring(), |p| {
            p.overlaps[0].left_cell = 1;
            p.overlaps[0].cells = 1;
        }),
        case(buffer, "overlap twice", ring(), |p| {
            let Overlap { rank, left, left_cell, right, right_cell, cells } = p.overlaps[0];
            p.overlaps.push(Overlap { rank, left, left_cell, right, right_cell, cells });
        }),
        case(blocks, "blocks in another order", plans::two_block_chain(), |p| p.blocks.swap(1, 2)),
        case(blocks, "a position left out", plans::two_block_chain(), |p| p.blocks[2].position = 2),
        case(blocks, "steps of no block", ring(), |p| p.blocks[2].epilogue.end -= 1),
        case(blocks, "steps of two blocks", ring(), |p| p.blocks[1].body.start -= 1),
        case(blocks, "sections in another order", plans::peer_put(), |p| {
            let block = &mut p.blocks[0];
            std::mem::swap(&mut block.prologue, &mut block.epilogue);
        }),
        case(blocks, "a range that ends before it starts", ring(), |p| {
            (p.blocks[0].body.start, p.blocks[0].body.end) = (p.blocks[0].body.end, p.blocks[0].body.start);
        }),
        case(index, "a block of no rank", ring(), |p| p.blocks[2].rank = RankId(3)),
        case(index, "a writer that does not exist", ring(), |p| p.channels[0].writer = BlockId(9)),
        case(index, "a reader that does not exist", ring(), |p| p.readers[0] = BlockId(9)),
        case(index, "readers of no channel", ring(), |p| p.readers.push(BlockId(0))),
        case(channel, "no reader", ring(), |p| p.channels[2].readers.end -= 1),
        case(channel, "readers shared by two channels", ring(), |p| p.channels[1].readers = 0..1),
        case(channel, "two readers on one rank", plans::multicast_allgather(3), |p| {
            p.readers[1] = p.readers[0];
        }),
        case(channel, "another writer", ring(), |p| p.channels[0].writer = BlockId(1)),
        case(channel, "another reader", ring(), |p| p.readers[0] = BlockId(2)),
        case(promise, "an empty list", ring(), |p| p.promise.lists[0].clear()),
        case(promise, "an operand twice", ring(), |p| p.promise.lists[0][1] = p.promise.lists[0][0]),
        case(promise, "an operand that is a result", ring(), |p| p.promise.lists[0][0].buffer = BufferId(1)),
        case(promise, "a result that is an operand", ring(), |p| {
            p.promise.clauses[0].place.buffer = BufferId(0);
        }),
        case(promise, "a block that does not exist", ring(), |p| p.promise.clauses[0].place.block = 1),
        case(promise, "a buffer that is elsewhere", plans::many_operand_reduce(3), |p| {
            p.promise.clauses[0].place.rank = RankId(1);
        }),
        case(index, "a list that does not exist", ring(), |p| p.promise.clauses[0].list = 1),
        case(text, "a name that colours the terminal", ring(), |p| {
            p.header.algorithm = "\u{1b}[31mring".into();
        }),
        case(text, "a name that turns the writing", ring(), |p| {
            p.header.collective = "all\u{202e}ecuder".into();
        }),
        case(text, "a long name", ring(), |p| p.buffers[0].name = "x".repeat(5000)),
        case(text, "a parameter with a line end", ring(), |p| p.header.params.push(("a\nb".into(), 1))),
        case(text, "a long excerpt", ring(), |p| p.spans.spans[0].text = "x".repeat(121)),
        case(text, "line 0", ring(), |p| p.spans.spans[0].line = 0),
        case(index, "a file that does not exist", ring(), |p| p.spans.spans[0].file = 1),
        case(index, "a span that is its own parent", ring(), |p| p.spans.spans[0].parent = Some(SpanId(0))),
        case(index, "a step from nowhere", ring(), |p| p.steps[0].span = SpanId(99)),
    ]
}

fn steps() -> Vec<Case> {
    let (index, step, place) = ("plan::v0_index", "plan::v0_step", "plan::v0_place");
    let (channel, wait, witness) = ("plan::v0_channel", "plan::v0_wait", "plan::v0_witness");
    vec![
        case(index, "operands beyond the end", ring(), |p| p.steps[0].operands = u32::MAX),
        case(index, "waits beyond the end", ring(), |p| p.steps[0].wait_count = 1),
        case(index, "a buffer that does not exist", ring(), |p| {
            *operand(p, is_local) = local(BufferId(7), 0);
        }),
        case(index, "a channel that does not exist", ring(), |p| {
            *operand(p, |op| !is_local(op)) = put(ChannelId(7));
        }),
        case(index, "a wait for a step that does not exist", plans::two_block_chain(), |p| {
            p.waits[0] = StepId(99);
        }),
        case(index, "a witness that does not exist", plans::peer_put(), |p| p.witnesses[0].done = StepId(99)),
        case(step, "no width", ring(), |p| p.steps[0].width = 0),
        case(step, "data from nowhere", ring(), |p| {
            p.steps[0].operands += 1;
            p.steps[0].sources = 0;
        }),
        case(step, "data for nobody", ring(), |p| p.steps[0].destinations = 0),
        case(step, "a token among data", plans::peer_put(), |p| {
            // The write takes the place of the source of its neighbour.
            let write = p.witnesses[0].step.index();
            let token = p.operands.iter().position(|op| matches!(op, Operand::Channel(_))).unwrap();
            p.operands[p.steps[write].operands as usize] = p.operands[token];
        }),
        case(step, "a wide token", plans::barrier(2), |p| p.steps[0].width = 2),
        case(step, "arithmetic on a token", plans::barrier(2), |p| p.steps[0].post = true),
        case(step, "data in the prologue", ring(), |p| {
            p.blocks[0].prologue.end += 1;
            p.blocks[0].body.start += 1;
        }),
        case(step, "itself as a peer", plans::peer_put(), |p| {
            *operand(p, |op| matches!(op, Operand::Peer { .. })) = peer(1, BufferId(1), 0);
            p.witnesses[0].owner = RankId(1);
        }),
        case(step, "a peer that does not exist", plans::peer_put(), |p| {
            *operand(p, |op| matches!(op, Operand::Peer { .. })) = peer(2, BufferId(1), 0);
            p.witnesses[0].owner = RankId(2);
        }),
        case(place, "cells beyond the end", ring(), |p| {
            *operand(p, is_local) = local(BufferId(0), 3);
        }),
        case(place, "the last cell and one more", ring(), |p| {
            *operand(p, is_local) = local(BufferId(0), u32::MAX);
        }),
        case(place, "a buffer that is elsewhere", plans::two_block_chain(), |p| {
            let pass = p.blocks[2].body.start as usize;
            let at = p.steps[pass].operands as usize;
            p.operands[at] = local(BufferId(0), 0);
        }),
        case(place, "a write to the caller's input", ring(), |p| {
            *operand(p, |op| matches!(*op, Operand::Local { buffer: BufferId(1), .. })) =
                local(BufferId(0), 0);
        }),
        case(place, "a peer's scratch", with_scratch(plans::peer_put()), |p| {
            let scratch = BufferId::new(p.buffers.len() - 1);
            *operand(p, |op| matches!(op, Operand::Peer { .. })) = peer(0, scratch, 0);
        }),
        case(channel, "a channel twice in one step", twice_received(), |p| {
            let first = p.operands.iter().position(|op| !is_local(op)).unwrap();
            let received: Vec<usize> = (0..p.operands.len()).filter(|&i| !is_local(&p.operands[i])).collect();
            assert_eq!(received[0], first);
            p.operands[received[3]] = p.operands[received[2]];
        }),
        case(wait, "a wait for its own block", plans::two_block_chain(), |p| {
            p.waits[1] = StepId(p.blocks[2].body.start);
        }),
        case(wait, "a wait for another rank", plans::two_block_chain(), |p| {
            p.waits[0] = StepId(p.blocks[0].body.start);
        }),
        case(wait, "a wait for a later section", sections(), |p| {
            p.waits[0] = StepId(p.blocks[0].epilogue.start);
        }),
        case(witness, "a witness of nothing", plans::peer_put(), |p| p.witnesses[0].step = StepId(0)),
        case(witness, "a witness of another owner", two_owners(), |p| p.witnesses[0].owner = RankId(1)),
        case(witness, "two witnesses", plans::peer_put(), |p| {
            let witness = p.witnesses[0];
            p.witnesses.push(witness);
        }),
    ]
}

fn with_scratch(mut plan: Plan) -> Plan {
    plan.header.scratch_cells.fill(1);
    let at = Presence::All;
    plan.buffers.push(rcc_plan::plan::Buffer { name: "scratch".into(), role: Role::Scratch, blocks: 0, at });
    plan
}

/// Rank 0 adds what comes on two channels.
fn twice_received() -> Plan {
    plans::many_operand_reduce(3)
}

/// One rank, two blocks that each go through all sections.
fn sections() -> Plan {
    let mut p = PlanBuilder::new("sections", "copy", &[2]);
    let (input, output) = (p.buffer("input", Role::Send, 1), p.buffer("output", Role::Recv, 1));
    let (b0, b1, other) = (p.block(0), p.block(0), p.block(1));
    let token = p.counter(b0, &[other]);
    let copied = p.step(b0, &[local(input, 0)], &[local(output, 0)]).handle();
    p.step_in(Section::Epilogue, b0, &[], &[put(token)]);
    p.step(b1, &[], &[]).wait(copied);
    p.step_in(Section::Epilogue, other, &[get(token)], &[]);
    p.promise((output, 0, 0), &[(input, 0, 0)]);
    p.finish().unwrap().plan
}

/// Rank 2 writes to ranks 0 and 1, one after the other.
fn two_owners() -> Plan {
    let mut p = PlanBuilder::new("put", "custom", &[3]);
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, 1);
    let blocks = [0, 1, 2].map(|rank| p.block(rank));
    for owner in 0..2 {
        let ready = p.counter(blocks[owner], &[blocks[2]]);
        let done = p.counter(blocks[2], &[blocks[owner]]);
        p.step(blocks[owner], &[], &[put(ready)]);
        let got_ready = p.step(blocks[2], &[get(ready)], &[]).handle();
        let write = p.step(blocks[2], &[local(input, 0)], &[peer(owner as u32, output, 0)]).handle();
        let sent_done = p.step(blocks[2], &[], &[put(done)]).handle();
        p.step(blocks[owner], &[get(done)], &[]);
        p.witness(write, owner as u32, got_ready, sent_done);
        p.promise((output, owner as u32, 0), &[(input, 2, 0)]);
    }
    p.finish().unwrap().plan
}

fn order() -> Vec<Case> {
    let (unbalanced, width) = ("plan::v1_unbalanced_channel", "plan::v1_width_mismatch");
    let (deadlock, slots) = ("plan::v2_deadlock", "plan::v2_slot_count");
    vec![
        case(unbalanced, "a receive left out", plans::alltoall(3), |p| {
            // The last step of rank 2 copies within the rank instead.
            let last = p.steps.len() - 1;
            p.operands[p.steps[last].operands as usize] = local(BufferId(0), 0);
        }),
        case(unbalanced, "a send left out", plans::multicast_allgather(3), |p| p.steps[0].destinations = 1),
        case(unbalanced, "a token in another section", sections(), |p| {
            let block = p.blocks.last_mut().unwrap();
            (block.body, block.epilogue) = (block.epilogue.clone(), block.epilogue.end..block.epilogue.end);
        }),
        case(width, "two messages for one of two cells", plans::exchange(1), |p| {
            p.steps[0].width = 1;
            let step = p.steps[0];
            let mut second = step;
            second.operands = p.operands.len() as u32;
            p.operands.extend([local(BufferId(0), 1), put(ChannelId(0))]);
            second.width = 1;
            // Not a third step: the width is what differs first.
            p.steps.insert(1, second);
            for block in &mut p.blocks {
                for range in [&mut block.prologue, &mut block.body, &mut block.epilogue] {
                    range.start += u32::from(range.start > 0);
                    range.end += u32::from(range.end > 0);
                }
            }
        }),
        case(width, "a wide step", plans::exchange(1), |p| p.steps[3].width = 1),
        case(deadlock, "receive before send", swap_plan(), |p| {
            for block in 0..2 {
                let first = p.blocks[block].body.start as usize;
                p.steps.swap(first, first + 1);
            }
        }),
        case(deadlock, "blocks that wait for each other", two_waits(), |p| {
            let (a, b) = (p.blocks[0].body.start, p.blocks[1].body.start);
            p.waits = vec![StepId(b), StepId(a)];
            p.steps[a as usize].waits = 0;
            p.steps[a as usize].wait_count = 1;
            p.steps[b as usize].waits = 1;
            p.steps[b as usize].wait_count = 1;
        }),
        case(deadlock, "a message to itself in one step", plans::peer_get(), |p| {
            // READY comes from the very step that waits for it.
            let ready = ChannelId(0);
            p.channels[ready.index()].writer = BlockId(1);
            let get_ready = p.steps.iter().position(|s| p.src(s) == [get(ready)]).unwrap();
            let put_ready = p.steps.iter().position(|s| p.dst(s) == [put(ready)]).unwrap();
            p.steps[put_ready].destinations = 0;
            p.steps[get_ready].operands = p.operands.len() as u32;
            p.steps[get_ready].destinations = 1;
            p.operands.extend([get(ready), put(ready)]);
        }),
        case(slots, "one slot too few", ring(), |p| p.header.k_min = 1),
        case(slots, "one slot too many", ring(), |p| p.header.k_min = 3),
        case(slots, "far too many slots", plans::ring_plain(3), |p| p.header.k_min = u32::MAX),
    ]
}

/// Two ranks swap; both send first.
fn swap_plan() -> Plan {
    let mut p = PlanBuilder::new("swap", "custom", &[2]);
    let (input, output) = (p.buffer("input", Role::Send, 1), p.buffer("output", Role::Recv, 1));
    let blocks = [p.block(0), p.block(1)];
    let channels = [0, 1].map(|r: usize| p.channel(blocks[r], &[blocks[1 - r]]));
    for r in 0..2 {
        p.step(blocks[r], &[local(input, 0)], &[put(channels[r])]).line(3, "output @ 1 - r = input @ r");
        p.step(blocks[r], &[get(channels[1 - r])], &[local(output, 0)]).line(3, "output @ 1 - r = input @ r");
        p.promise((output, r as u32, 0), &[(input, 1 - r as u32, 0)]);
    }
    p.finish().unwrap().plan
}

/// One rank whose two blocks copy a block each; one waits.
fn two_waits() -> Plan {
    let mut p = PlanBuilder::new("copies", "custom", &[1]);
    let (input, output) = (p.buffer("input", Role::Send, 2), p.buffer("output", Role::Recv, 2));
    let blocks = [p.block(0), p.block(0)];
    let first = p.step(blocks[0], &[local(input, 0)], &[local(output, 0)]).handle();
    p.step(blocks[1], &[local(input, 1)], &[local(output, 1)]).wait(first);
    for block in 0..2 {
        p.promise((output, 0, block), &[(input, 0, block)]);
    }
    p.finish().unwrap().plan
}

fn memory() -> Vec<Case> {
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

fn values() -> Vec<Case> {
    let (undefined, class, promise) = ("plan::v4_undefined", "plan::v4_class", "plan::v4_promise");
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

#[test]
fn limits_are_checked_before_memory_is_taken() {
    let limits = Limits::default();
    let refused = |plan: Plan| {
        let violations = verify(plan, &limits).unwrap_err();
        assert!(violations.iter().all(|v| v.code() == "plan::v0_limit"), "{}", text(&violations));
    };
    let mut plan = ring();
    plan.header.cells = u32::MAX;
    refused(plan);
    let mut plan = plans::exchange(1);
    plan.buffers.iter_mut().for_each(|b| b.blocks = 1 << 30);
    refused(plan);
    let mut plan = ring();
    plan.steps.iter_mut().for_each(|s| s.width = u32::MAX);
    refused(plan);
    let mut plan = with_scratch(ring());
    plan.header.scratch_cells.fill(u32::MAX);
    refused(plan);
    let mut plan = barrier1();
    (plan.header.shape, plan.header.ranks) = (vec![1 << 16, 1 << 15], 1 << 31);
    let violations = verify(plan, &limits).unwrap_err();
    assert!(violations.iter().any(|v| v.code() == "plan::v0_limit"), "{}", text(&violations));
}

#[test]
fn the_cost_of_a_proof_is_limited() {
    let with = |change: fn(&mut Limits)| {
        let mut limits = Limits::default();
        change(&mut limits);
        limits
    };
    for (plan, limits) in [
        (ring(), with(|l| l.promise_visits = 5)),
        (plans::barrier(4), with(|l| l.arrival_words = 7)),
        (plans::two_block_chain(), with(|l| l.clock_entries = 6)),
        (ring(), with(|l| l.steps = 5)),
        (ring(), with(|l| l.micro_steps = 5)),
        (ring(), with(|l| l.accesses = 5)),
        (ring(), with(|l| l.places = 5)),
        (ring(), with(|l| l.ranks = 2)),
        (plans::two_block_chain(), with(|l| l.waits = 1)),
    ] {
        assert!(verify(plan.clone(), &Limits::default()).is_ok());
        let violations = verify(plan, &limits).unwrap_err();
        assert!(violations.iter().all(|v| v.code() == "plan::v0_limit"), "{}", text(&violations));
    }
}

#[test]
fn the_target_limits_blocks_ends_and_connections() {
    let target = |change: fn(&mut Target)| {
        let mut limits = Limits::default();
        change(&mut limits.target);
        limits
    };
    for (plan, fits, breaks) in [
        (plans::two_block_chain(), target(|t| t.blocks_per_rank = 2), target(|t| t.blocks_per_rank = 1)),
        (ring(), target(|t| t.channel_ends_per_rank = 2), target(|t| t.channel_ends_per_rank = 1)),
        (ring(), target(|t| t.connections_per_rank = 2), target(|t| t.connections_per_rank = 1)),
        (plans::peer_put(), target(|t| t.connections_per_rank = 1), target(|t| t.connections_per_rank = 0)),
    ] {
        assert!(verify(plan.clone(), &fits).is_ok());
        let violations = verify(plan, &breaks).unwrap_err();
        assert!(violations.iter().all(|v| v.code() == "plan::v7_target_limit"), "{}", text(&violations));
    }
}

#[test]
fn a_million_faults_are_counted_not_listed() {
    let mut p = PlanBuilder::new("many", "custom", &[1]);
    let (input, output) = (p.buffer("input", Role::Send, 1), p.buffer("output", Role::Recv, 1));
    let block = p.block(0);
    for _ in 0..1000 {
        p.step(block, &[local(input, 0)], &[local(output, 1)]);
    }
    let violations = verify(p.finish().unwrap().plan, &Limits::default()).unwrap_err();
    assert_eq!(violations.len(), 21);
    assert_eq!(
        violations[20].to_string().lines().next(),
        Some("plan::v0_place: 980 more violations of this rule are not shown")
    );
}
