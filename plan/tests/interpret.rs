//! The interpreter against the promise: whatever the order, the slots, the slices, the copies, the result is what the
//! collective says, and the same to the bit.

mod common;

use proptest::prelude::*;

use common::oracle::{entry, right, run, scheduler};
use rcc_plan::dtype::{Dtype, Op};
use rcc_plan::ids::{BlockId, BufferId, ChannelId, RankId, StepId};
use rcc_plan::interpret::scheduler::{Random, RoundRobin, Stubborn};
use rcc_plan::interpret::{Call, Fault, Need, interpret};
use rcc_plan::layout::Layout;
use rcc_plan::plan::{Operand, Plan, Role};

fn plans() -> Vec<(&'static str, Plan)> {
    let mut plans = common::plans::small();
    plans.push(("ring of 5", common::plans::ring_allreduce(5)));
    plans.push(("ring of 7, plain", common::plans::ring_plain(7)));
    plans.push(("fold of 9", common::plans::many_operand_reduce(9)));
    plans
}

fn calls(plan: &Plan) -> Vec<Call> {
    let mut calls = Vec::new();
    for op in Op::ALL.into_iter().filter(|op| plan.header.serves(*op)) {
        for dtype in Dtype::ALL {
            for in_place in [false, true] {
                if if in_place { plan.header.forms.same } else { plan.header.forms.disjoint } {
                    calls.push(Call { in_place, slots: plan.header.k_min, ..Call::new(0, dtype, op) });
                }
            }
        }
    }
    calls
}

/// Every element type with every operator, in and out of place, at counts around the number of cells.
#[test]
fn the_promise_is_kept_for_every_type_operator_and_count() {
    for (_, plan) in plans() {
        let k = u64::from(plan.header.cells);
        for call in calls(&plan) {
            for elements in [0, 1, k - 1, k, k + 1, 31] {
                let call = Call { elements, slot_bytes: 16, ..call };
                right(&plan, &call, &run(&plan, &call, &mut Random::new(elements)).unwrap());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// What is free to vary changes no bit: order, slots, slot size, copies, grouping, elision, in or out of place.
    #[test]
    fn nothing_that_may_vary_changes_a_bit(
        which in 0usize..24, kind in 0usize..Dtype::ALL.len() * Op::ALL.len(), elements in prop_oneof![0u64..80, Just(1009)], in_place: bool,
        copies in 1u32..4, more_slots in 0u32..4, slot_bytes in 16u32..600, elide: bool, group: bool,
        order in 0u32..5, seed: u64,
    ) {
        let (_, mut plan) = plans().swap_remove(which);
        let (dtype, op) = (Dtype::ALL[kind % Dtype::ALL.len()], Op::ALL[kind / Dtype::ALL.len()]);
        prop_assume!(plan.header.serves(op));
        let plain = Call { slots: plan.header.k_min, ..Call::new(elements, dtype, op) };
        let expected = run(&plan, &plain, &mut RoundRobin::default()).unwrap();
        right(&plan, &plain, &expected);

        plan.header.copies = copies;
        let slots = plan.header.k_min + more_slots;
        let in_place = in_place && plan.header.forms.same;
        let call = Call { slots, in_place, slot_bytes, elide, group, ..plain };
        let outcome = run(&plan, &call, &mut *scheduler(order, seed)).unwrap();
        for (i, buffer) in plan.buffers.iter().enumerate() {
            for rank in (0..plan.header.ranks).map(RankId) {
                let [a, b] = [&expected, &outcome].map(|o| o.buffer(BufferId::new(i), rank));
                let here = buffer.at.holds(rank);
                match buffer.role {
                    Role::Recv => prop_assert_eq!(a, b),
                    Role::Send if here && !in_place => {
                        prop_assert_eq!(b, entry(&plan, &call, BufferId::new(i), rank), "`in` is unchanged");
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Counts from the definition of a ring: 2(n-1) sends per rank, each of one cell.
#[test]
fn messages_and_bytes_of_a_ring_are_those_of_the_formula() {
    let plan = common::plans::ring_allreduce(4);
    let call = Call { slots: 2, ..Call::new(1000, Dtype::F32, Op::Sum) };
    let outcome = run(&plan, &call, &mut RoundRobin::default()).unwrap();
    assert_eq!((outcome.messages, outcome.bytes, outcome.tokens), (4 * 2 * 3, 2 * 3 * 4000, 0));
    // In slices of 64 elements a cell of 250 takes four.
    let call = Call { slot_bytes: 256, ..call };
    let outcome = run(&plan, &call, &mut RoundRobin::default()).unwrap();
    assert_eq!((outcome.messages, outcome.bytes), (4 * 2 * 3 * 4, 2 * 3 * 4000));
    // Without elements nothing but the first message of each channel is sent if empty ones are skipped.
    let call = Call { elements: 0, elide: true, ..call };
    assert_eq!(run(&plan, &call, &mut RoundRobin::default()).unwrap().messages, 4);
}

#[test]
fn cells_that_fit_one_slot_travel_together() {
    let plan = common::plans::exchange(1);
    let call = Call { slots: 2, slot_bytes: 64, ..Call::new(16, Dtype::F32, Op::Sum) };
    let alone = run(&plan, &call, &mut RoundRobin::default()).unwrap();
    let together = run(&plan, &Call { group: true, slots: 1, ..call }, &mut RoundRobin::default()).unwrap();
    assert_eq!((alone.messages, together.messages, together.events), (4, 2, 4));
    assert_eq!(alone.bytes, together.bytes);
    // Three quarters of a slot each: they do not.
    let call = Call { slot_bytes: 40, group: true, ..call };
    assert_eq!(run(&plan, &call, &mut RoundRobin::default()).unwrap().messages, 4);
}

/// What executors take to be equal at both ends is: a group never splits what fits, nor joins what does not.
#[test]
fn groups_fill_slots_greedily() {
    let mut plan = common::empty(1);
    plan.header.cells = 5;
    let layout = Layout::new(&plan, 17, Dtype::I32, 28).unwrap();
    let lengths: Vec<_> = (0..5).map(|p| layout.length(0, p, 0)).collect();
    assert_eq!(lengths, [3, 3, 4, 3, 4], "17 elements in 5 cells");
    assert_eq!(layout.group(0, 0, 0..5), 2, "3 + 3 of 7, 4 more is too much");
    assert_eq!(layout.group(0, 0, 2..5), 2, "4 + 3 of 7");
    assert_eq!(layout.group(0, 0, [4]), 1);
}

/// A ring whose ranks all send before they receive is stuck with one slot; the report says who waits for whom.
#[test]
fn a_deadlock_is_reported_with_what_each_block_waits_for() {
    let plan = common::plans::ring_allreduce(3);
    let call = Call { slots: 1, ..Call::new(30, Dtype::F32, Op::Sum) };
    let fault = run(&plan, &call, &mut RoundRobin::default()).unwrap_err();
    let Fault::Deadlock(waiting) = &fault else { panic!("{fault}") };
    assert_eq!(waiting.len(), 3);
    for (rank, w) in waiting.iter().enumerate() {
        assert_eq!(
            (w.rank, w.block, w.position, w.iteration),
            (RankId(rank as u32), BlockId(rank as u32), 0, 0)
        );
        assert_eq!(w.line, Some(("ring.coll".to_string(), 4)));
        let next = RankId((rank as u32 + 1) % 3);
        assert_eq!(w.needs, [Need::Slot { channel: ChannelId(rank as u32), reader: next }]);
    }
    let text = fault.to_string();
    assert!(
        text.contains("rank 2 block 0 step 11 (ring.coll:4) waits for a slot of channel 2 at rank 0"),
        "{text}"
    );
}

#[test]
fn a_lost_message_and_a_lost_step_are_deadlocks() {
    let mut plan = common::plans::many_operand_reduce(3);
    // Rank 2 no longer sends.
    let block = plan.blocks[2].clone();
    plan.steps[block.body.start as usize].destinations = 0;
    let fault = run(&plan, &Call::new(4, Dtype::I32, Op::Sum), &mut RoundRobin::default()).unwrap_err();
    let Fault::Deadlock(waiting) = fault else { panic!("{fault}") };
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0].needs, [Need::Message { channel: ChannelId(1), from: RankId(2) }]);

    // A block that waits for itself.
    let mut plan = common::plans::exchange(2);
    let waiter = (0..plan.steps.len()).find(|&s| plan.steps[s].wait_count > 0).unwrap();
    plan.waits[plan.steps[waiter].waits as usize] = StepId::new(waiter);
    let fault = run(&plan, &Call::new(4, Dtype::I32, Op::Sum), &mut RoundRobin::default()).unwrap_err();
    let Fault::Deadlock(waiting) = fault else { panic!("{fault}") };
    assert!(waiting.iter().any(|w| w.needs == [Need::Step(StepId::new(waiter))]), "{waiting:?}");
}

#[test]
fn messages_that_nobody_receives_are_a_fault() {
    let mut plan = common::plans::many_operand_reduce(3);
    let reader = plan.blocks[0].body.start as usize;
    plan.steps[reader].sources -= 1;
    plan.operands.swap(plan.steps[reader].operands as usize + 2, plan.steps[reader].operands as usize + 3);
    let fault = run(&plan, &Call::new(4, Dtype::I32, Op::Sum), &mut RoundRobin::default()).unwrap_err();
    assert_eq!(fault, Fault::Unread { channel: ChannelId(1) });

    // One of two readers takes no message.
    let mut plan = common::plans::multicast_allgather(3);
    plan.blocks[2].body.end -= 1;
    let fault = run(&plan, &Call::new(4, Dtype::I32, Op::Sum), &mut RoundRobin::default()).unwrap_err();
    assert_eq!(fault, Fault::Unread { channel: ChannelId(1) });
}

#[test]
fn what_nothing_wrote_cannot_be_read() {
    let mut plan = common::plans::two_block_chain();
    // Without the wait, the block that passes on may come first.
    for step in &mut plan.steps {
        step.wait_count = 0;
    }
    let call = Call::new(4, Dtype::I32, Op::Sum);
    let pass = plan.blocks[2].body.start;
    let fault = run(&plan, &call, &mut Stubborn::new(false)).unwrap_err();
    let expected = Fault::Undefined { step: StepId(pass), rank: RankId(1), buffer: BufferId(1), cell: 0 };
    assert_eq!(fault, expected);
}

#[test]
fn cells_of_different_positions_are_never_joined() {
    let mut plan = common::plans::two_block_chain();
    // Rank 0 sends its second cell first, so the first place would get a value of the second's length.
    let start = plan.blocks[0].body.start as usize;
    let (a, b) = (plan.steps[start].operands as usize, plan.steps[start + 1].operands as usize);
    plan.operands.swap(a, b);
    plan.operands.swap(a + 1, b + 1);
    let fault = run(&plan, &Call::new(5, Dtype::I32, Op::Sum), &mut RoundRobin::default()).unwrap_err();
    assert!(matches!(fault, Fault::Lengths { micro: 0, .. }), "{fault}");
}

#[test]
fn calls_that_a_plan_does_not_serve_are_refused() {
    let plan = common::plans::alltoall(3);
    let call = Call::new(4, Dtype::I32, Op::Sum);
    let refused = |plan: &Plan, call: Call| run(plan, &call, &mut RoundRobin::default()).unwrap_err();
    assert_eq!(refused(&plan, Call { in_place: true, ..call }), Fault::Form { in_place: true });
    assert_eq!(refused(&plan, Call { slots: 0, ..call }), Fault::NoSlots);
    assert!(matches!(refused(&plan, Call { slot_bytes: 8, ..call }), Fault::Layout(_)));
    let mut no_post = common::plans::many_operand_reduce(3);
    no_post.header.serves_post = false;
    assert_eq!(refused(&no_post, Call { op: Op::Avg, ..call }), Fault::Operator { op: Op::Avg });
    let short = interpret(&plan, &call, &mut |_, _| vec![0; 47], &mut RoundRobin::default()).unwrap_err();
    assert_eq!(short, Fault::Input { buffer: BufferId(0), rank: RankId(0), expected: 48, given: 47 });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is broken in a plan, the interpreter answers.
    #[test]
    fn broken_plans_are_faults_not_panics(which in 0usize..21, changes in prop::collection::vec((0u32..14, any::<u32>(), any::<u32>()), 1..4)) {
        let (_, mut plan) = common::plans::small().swap_remove(which);
        for (kind, at, to) in changes {
            break_plan(&mut plan, kind, at as usize, to);
        }
        for in_place in [false, true] {
            let call = Call { in_place, slot_bytes: 16, ..Call::new(9, Dtype::I32, Op::Sum) };
            let _ = run(&plan, &call, &mut Random::new(1));
            let _ = rcc_plan::interpret::clocks::findings(&plan, in_place);
        }
    }
}

fn break_plan(plan: &mut Plan, kind: u32, at: usize, to: u32) {
    let step = at % plan.steps.len();
    // Small numbers hit what exists, large ones what does not.
    let number = if to.is_multiple_of(3) { to | 1 << 28 } else { to % 8 };
    match kind {
        0 => plan.steps[step].operands = number,
        1 => plan.steps[step].sources = number as u16,
        2 => plan.steps[step].destinations = number as u16,
        3 => plan.steps[step].width = number,
        4 => plan.steps[step].wait_count = number as u16,
        5 => plan.steps[step].waits = number,
        6 => {
            let at = at % plan.operands.len();
            plan.operands[at] = match to % 3 {
                0 => Operand::Channel(ChannelId(number)),
                1 => Operand::Local { buffer: BufferId(number), cell: to % 3 },
                _ => Operand::Peer { rank: RankId(number), buffer: BufferId(to % 2), cell: number },
            };
        }
        7 => {
            let at = at % plan.blocks.len();
            plan.blocks[at].body.end = number;
        }
        8 => {
            let at = at % plan.blocks.len();
            plan.blocks[at].rank = RankId(number);
        }
        9 => {
            let at = at % plan.channels.len();
            plan.channels[at].writer = BlockId(number);
        }
        10 => {
            let at = at % plan.readers.len();
            plan.readers[at] = BlockId(number);
        }
        11 => plan.header.cells = to % 4,
        12 => {
            let at = at % plan.buffers.len().max(1);
            if let Some(buffer) = plan.buffers.get_mut(at) {
                buffer.blocks = to % 3;
            }
        }
        _ => {
            if let Some(overlap) = plan.overlaps.first_mut() {
                overlap.right_cell = number;
                overlap.cells = to % 5;
            }
        }
    }
}
