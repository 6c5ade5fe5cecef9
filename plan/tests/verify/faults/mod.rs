//! For every kind of violation, plans that have just this fault; without it they pass.

mod limits;
mod memory;
mod values;

use rcc_plan::builder::{PlanBuilder, get, local, peer, put};
use rcc_plan::ids::{BlockId, BufferId, ChannelId, RankId, SpanId, StepId};
use rcc_plan::plan::{Operand, Overlap, Plan, Presence, Role, Section};
use rcc_plan::pre::Pre;
use rcc_plan::verify::{CODES, Fault, Limits, Site, Violation, verify};

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
            Err(violations) => {
                failures.extend(unplaced(&violations).map(|v| format!("{name}: {v} (where?)")));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    for code in CODES.into_iter().filter(|&code| !ELSEWHERE.contains(&code)) {
        assert!(cases.iter().any(|case| case.code == code), "no plan breaks {code}");
    }
}

/// Those that are about steps and do not say what these do.
fn unplaced(violations: &[Violation]) -> impl Iterator<Item = &Violation> {
    // Of the plan as a whole; a promise may be broken where nobody writes.
    const WHOLE: [&str; 9] = [
        "plan::v0_header",
        "plan::v0_limit",
        "plan::v0_index",
        "plan::v0_buffer",
        "plan::v0_blocks",
        "plan::v0_channel",
        "plan::v0_promise",
        "plan::v0_text",
        "plan::v2_slot_count",
    ];
    const NOBODY: [&str; 3] = ["plan::v4_promise", "plan::v4_not_synchronised", "plan::v4_post"];
    violations.iter().filter(|violation| {
        let may_be_bare = WHOLE.contains(&violation.code())
            || NOBODY.contains(&violation.code())
            || matches!(violation.fault, Fault::More { .. });
        let told = |site: &Site| !site.does.is_empty() && site.does != "?";
        (!may_be_bare && violation.sites.is_empty()) || !violation.sites.iter().all(told)
    })
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
    cases.extend(memory::memory());
    cases.extend(values::values());
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
        case(step, "a mark on a token", plans::barrier(2), |p| p.steps[0].pre = Pre(1)),
        case(step, "a mark on what is only copied", plans::alltoall(2), |p| p.steps[0].pre = Pre(1)),
        case(step, "a mark on no source", plans::many_operand_reduce(3), |p| p.steps[0].pre.0 |= 8),
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
