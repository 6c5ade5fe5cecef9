//! Plans as text: readable, stable, harmless.

mod common;

use rcc_plan::builder::{PlanBuilder, get, local, put};
use rcc_plan::display::show;
use rcc_plan::plan::{Operand, Plan, Role};

#[test]
fn plans_of_every_kind_are_readable() {
    for (name, plan) in [
        ("ring", common::plans::ring_allreduce(3)),
        ("ring_wide", common::plans::ring_wide(2)),
        ("handed_scratch", common::plans::handed_scratch()),
        ("multicast", common::plans::multicast_allgather(4)),
        ("put", common::plans::put_then_data()),
        ("alltoall", common::plans::alltoall(3)),
        ("reduce_scatter", common::plans::scratch_reduce_scatter()),
        ("rounding", common::plans::rounding_reduce()),
        ("barrier", common::plans::barrier(4)),
    ] {
        insta::assert_snapshot!(name, show(&plan).to_string());
    }
}

/// Text of a plan comes from a file that anyone may have written.
#[test]
fn nothing_from_a_plan_can_move_a_cursor() {
    let mut plan = common::plans::ring_allreduce(2);
    let evil = "\u{1b}[2J\r\n\u{202e}x\u{85}\0\u{200b}";
    plan.header.algorithm = evil.to_string();
    plan.header.collective = evil.to_string();
    plan.header.params = vec![(evil.to_string(), 1)];
    plan.buffers.iter_mut().for_each(|b| b.name = evil.to_string());
    plan.spans.files.iter_mut().for_each(|file| *file = evil.to_string());
    plan.spans.spans.iter_mut().for_each(|span| span.text = evil.to_string());
    let text = show(&plan).to_string();
    let bad = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202e}' | '\u{200b}');
    assert_eq!(text.chars().find(|&c| bad(c)), None);
    let mut plain = plan;
    let name = |s: &mut String| *s = "x".to_string();
    name(&mut plain.header.algorithm);
    name(&mut plain.header.collective);
    plain.header.params[0].0 = "x".to_string();
    plain.buffers.iter_mut().for_each(|b| name(&mut b.name));
    plain.spans.files.iter_mut().for_each(name);
    plain.spans.spans.iter_mut().for_each(|span| name(&mut span.text));
    assert_eq!(text.lines().count(), show(&plain).to_string().lines().count(), "no line was added");
    assert!(text.contains("\\u{1b}[2J\\u{d}\\u{a}\\u{202e}x"));
}

/// A plan that `verify` would refuse is shown all the same.
#[test]
fn broken_plans_are_shown() {
    for (_, plan) in common::plans::small() {
        for (_, mut mutant) in common::mutate::mutants(&plan) {
            let before = show(&mutant).to_string();
            assert_eq!(before, show(&mutant).to_string());
            ruin(&mut mutant);
            let _ = show(&mutant).to_string();
        }
    }
}

/// Every number as large as it can be.
fn ruin(plan: &mut Plan) {
    for operand in &mut plan.operands {
        match operand {
            Operand::Channel(c) => c.0 = u32::MAX,
            Operand::Local { buffer, cell } | Operand::Peer { buffer, cell, .. } => {
                buffer.0 ^= 1;
                *cell = u32::MAX;
            }
        }
    }
    for step in &mut plan.steps {
        step.width = u32::MAX;
        step.span.0 = u32::MAX;
        step.waits = u32::MAX;
        step.wait_count = 3;
    }
    plan.steps[0].operands = u32::MAX;
    plan.promise.clauses.iter_mut().for_each(|c| c.list = u32::MAX);
    plan.blocks[0].body.end = u32::MAX;
    plan.header.shape.clear();
}

/// Loops, places that move, ranks that do as others do.
#[test]
fn programs_that_follow_rules_are_loops() {
    for (name, plan) in [
        ("ring_loops", common::plans::ring_allreduce(8)),
        ("ring_plain_loops", common::plans::ring_plain(8)),
        ("alltoall_loops", common::plans::alltoall(8)),
        ("barrier_loops", common::plans::barrier(8)),
    ] {
        insta::assert_snapshot!(name, show(&plan).to_string());
    }
}

/// Places of buffers with several blocks, in loops: by block, by cell, by both, round a window, and by neither.
#[test]
fn places_in_loops_read_as_in_the_language() {
    let line = |cells: &[u32], width: u32| {
        let mut p = PlanBuilder::new("places", "custom", &[1]);
        p.header().cells = 4;
        let (input, output) = (p.buffer("input", Role::Send, 16), p.buffer("output", Role::Recv, 16));
        let block = p.block(0);
        for &cell in cells {
            p.step(block, &[local(input, cell)], &[local(output, 5)]).width(width);
        }
        let text = show(&p.finish().unwrap().plan).to_string();
        let line =
            text.lines().find(|line| line.contains(" → output[1]")).unwrap_or_else(|| panic!("{text}"));
        line.split(" → ").next().unwrap().split("  ").last().unwrap().trim().to_string()
    };
    let times = |n: u32, cell: fn(u32) -> u32| (0..n).map(cell).collect::<Vec<_>>();
    assert_eq!(line(&times(9, |t| 4 * t + 1), 1), "input[t][1]");
    assert_eq!(line(&times(9, |t| 4 * t), 4), "input[t]");
    assert_eq!(line(&times(4, |t| 8 + 8 * t), 8), "input[2 + 2t..4 + 2t]");
    assert_eq!(line(&times(9, |t| 4 * t + 1), 2), "input[t][1..3]");
    assert_eq!(line(&times(4, |t| 8 + t), 1), "input[2][t]");
    assert_eq!(line(&times(3, |t| 8 + t), 2), "input[2][t..2 + t]");
    assert_eq!(line(&times(20, |t| (t / 4) * 12 + 3 - t % 4), 1), "input[3t][3 - u]");
    assert_eq!(line(&times(9, |t| (16 + 5 - t) % 8 * 4 + 2), 1), "input[(5 - t) % 8][2]");
    assert_eq!(line(&times(9, |t| 8 + (3 + t) % 4), 1), "input[2][(3 + t) % 4]");
    assert_eq!(line(&times(9, |t| 3 + 5 * t), 1), "input from cell 3 + 5t, 1 long");
}

/// Worlds of several levels are turned on each.
#[test]
fn ranks_are_turned_level_by_level() {
    let mut p = PlanBuilder::new("levels", "custom", &[2, 4]);
    let (input, output) = (p.buffer("input", Role::Send, 1), p.buffer("output", Role::Recv, 8));
    let blocks: Vec<_> = (0..8).map(|rank| p.block(rank)).collect();
    let next = |r: usize| r / 4 * 4 + (r + 1) % 4;
    let inner: Vec<_> = (0..8).map(|r| p.channel(blocks[r], &[blocks[next(r)]])).collect();
    let outer: Vec<_> = (0..8).map(|r| p.channel(blocks[r], &[blocks[(r + 4) % 8]])).collect();
    for r in 0..8 {
        let (before, other) = (r / 4 * 4 + (r + 3) % 4, (r + 4) % 8);
        p.step(blocks[r], &[local(input, 0)], &[put(inner[r]), put(outer[r])]);
        p.step(blocks[r], &[get(inner[before])], &[local(output, before as u32)]);
        p.step(blocks[r], &[get(outer[other])], &[local(output, other as u32)]);
    }
    let text = show(&p.finish().unwrap().plan).to_string();
    let line = "ranks 1..8, each r: as rank 0 with rank p + r, level by level of 2x4, for rank p, \
                and likewise for the 8 parts of output";
    // Within the first node a turn of the whole world will not do either: rank 3 sends to rank 0.
    assert!(text.ends_with(&format!("\n{line}\n")), "{text}");
}
