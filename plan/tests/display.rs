//! Plans as text: readable, stable, harmless.

mod common;

use rcc_plan::display::show;
use rcc_plan::plan::{Operand, Plan};

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
