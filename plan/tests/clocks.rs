//! Vector clocks: silent on right plans in both forms, and precise about what a fault breaks.

mod common;

use rcc_plan::ids::{BufferId, RankId, StepId};
use rcc_plan::interpret::clocks::{Finding, findings};
use rcc_plan::plan::{ChannelKind, Operand, Plan};

#[test]
fn right_plans_have_no_findings_in_any_form() {
    for (name, plan) in common::plans::small() {
        for in_place in [false, true] {
            assert_eq!(findings(&plan, in_place), Ok(vec![]), "{name}, in place: {in_place}");
        }
    }
}

fn without_waits(mut plan: Plan) -> Plan {
    plan.steps.iter_mut().for_each(|step| step.wait_count = 0);
    plan
}

#[test]
fn a_dropped_wait_is_a_race_only_where_memory_is_shared() {
    let plan = without_waits(common::plans::exchange(2));
    assert_eq!(findings(&plan, false), Ok(vec![]), "out of place nobody overwrites what is sent");
    let found = findings(&plan, true).unwrap();
    assert_eq!(found.len(), 2);
    for (rank, finding) in found.iter().enumerate() {
        let Finding::Race { rank: r, buffer, cell, first, second } = *finding else { panic!("{finding:?}") };
        let _ = rank;
        assert_eq!((buffer, cell), (BufferId(1), 0));
        let blocks = plan.blocks_of(r);
        let mut steps = [first, second];
        steps.sort();
        assert_eq!(steps, [StepId(blocks[0].body.start), StepId(blocks[1].body.start)]);
    }
}

/// A free slot orders nothing: with one slot this order is forced, with two it is not.
#[test]
fn credit_orders_nothing() {
    use rcc_plan::builder::{PlanBuilder, get, local, put};
    use rcc_plan::plan::Role;
    let mut p = PlanBuilder::new("credit", "custom", &[2]);
    let input = p.buffer("input", Role::Send, 2);
    let output = p.buffer("output", Role::Recv, 1);
    let scratch = p.scratch(1);
    let [send, other, receive] = [0, 0, 1].map(|rank| p.block(rank));
    let (out, pass) = (p.channel(send, &[receive]), p.channel(other, &[receive]));
    // `other` reads scratch and tells rank 1, which only then takes the first message, so that with one slot `send`
    // cannot put its second before that.
    p.step(other, &[local(input, 0)], &[local(scratch, 0)]);
    p.step(other, &[local(scratch, 0)], &[put(pass)]);
    p.step(send, &[local(input, 0)], &[put(out)]);
    p.step(send, &[local(input, 1)], &[put(out), local(scratch, 0)]);
    p.step(receive, &[get(pass)], &[local(output, 0)]);
    p.step(receive, &[get(out)], &[]);
    p.step(receive, &[get(out)], &[]);
    p.promise((output, 1, 0), &[(input, 0, 0)]);
    let plan = p.finish().unwrap().plan;
    let found = findings(&plan, false).unwrap();
    assert!(
        matches!(found[..], [Finding::Race { rank: RankId(0), buffer: BufferId(2), cell: 0, .. }]),
        "{found:?}"
    );
}

/// Takes the operand that is channel `channel` out of every step.
fn without_channel(mut plan: Plan, channel: usize) -> Plan {
    for i in 0..plan.steps.len() {
        let step = plan.steps[i];
        let gone = |o: &Operand| matches!(o, Operand::Channel(c) if c.index() == channel);
        let src: Vec<_> = plan.src(&step).iter().copied().filter(|o| !gone(o)).collect();
        let dst: Vec<_> = plan.dst(&step).iter().copied().filter(|o| !gone(o)).collect();
        plan.steps[i].operands = plan.operands.len() as u32;
        plan.steps[i].sources = src.len() as u16;
        plan.steps[i].destinations = dst.len() as u16;
        plan.operands.extend(src);
        plan.operands.extend(dst);
    }
    plan
}

#[test]
fn without_tokens_a_reach_into_another_rank_is_outside_its_call() {
    let write = |plan: &Plan| {
        let is_peer = |o: &Operand| matches!(o, Operand::Peer { .. });
        let at = plan.steps.iter().position(|s| plan.src(s).iter().chain(plan.dst(s)).any(is_peer));
        StepId(at.unwrap() as u32)
    };
    for plan in [common::plans::peer_put(), common::plans::put_then_data()] {
        let (step, owner) = (write(&plan), RankId(0));
        let counters: Vec<_> =
            (0..plan.channels.len()).filter(|&c| plan.channels[c].kind == ChannelKind::Counter).collect();
        assert_eq!(counters.len(), 2);
        let no_ready = findings(&without_channel(plan.clone(), counters[0]), false).unwrap();
        assert_eq!(no_ready, [Finding::BeforeEntry { step, owner }]);
        let no_done = findings(&without_channel(plan, counters[1]), false).unwrap();
        assert!(no_done.contains(&Finding::AfterExit { step, owner }), "{no_done:?}");
    }
    // Where the owner also touches what was written, the missing token is a race as well.
    let plan = common::plans::put_then_data();
    let found = findings(&without_channel(plan, 1), false).unwrap();
    assert!(found.iter().any(|f| matches!(f, Finding::Race { rank: RankId(0), .. })), "{found:?}");
}

#[test]
fn a_barrier_without_its_second_round_lets_ranks_go_early() {
    let plan = common::plans::barrier(4);
    assert_eq!(findings(&plan, false), Ok(vec![]));
    let mut cut = plan;
    for channel in 4..8 {
        cut = without_channel(cut, channel);
    }
    let found = findings(&cut, false).unwrap();
    // Each rank knows of itself and of the one before it.
    let expected: Vec<_> = (0..4u32)
        .flat_map(|rank| (0..4).map(move |late| (rank, late)))
        .filter(|&(rank, late)| late != rank && late != (rank + 3) % 4)
        .map(|(rank, late)| Finding::LeavesEarly { rank: RankId(rank), late: RankId(late) })
        .collect();
    assert_eq!(found, expected);
}
