//! No plan whatever makes `verify` panic, or accept what cannot run.
//!
//! Two kinds: plans made of nothing but random numbers, which test that V0 looks before it indexes; and right plans
//! with a few numbers changed, most of which get past V0 and test everything behind it.

use proptest::prelude::*;
use rcc_plan::collective::{BlockRef, Clause, Promise};
use rcc_plan::ids::{BlockId, BufferId, ChannelId, RankId, SpanId, StepId};
use rcc_plan::plan::{
    Block, Buffer, Channel, ChannelKind, Forms, Header, Operand, Overlap, Plan, Presence, ProofStatus, Role,
    Section, SourceSpan, SpanTable, Step, Witness,
};
use rcc_plan::pre::Pre;
use rcc_plan::verify::{Limits, VerifiedPlan, least_slots, verify};

use crate::cases;
use crate::common::plans;
use crate::events::{Shape, is_acyclic};
use crate::random::Choices;

/// Small limits: what passes them takes little memory, and much that is random passes them.
fn limits() -> Limits {
    Limits {
        ranks: 1000,
        places: 100_000,
        steps: 10_000,
        micro_steps: 100_000,
        accesses: 100_000,
        waits: 10_000,
        clock_entries: 10_000,
        arrival_words: 10_000,
        promise_visits: 100_000,
        ..Limits::default()
    }
}

/// A number: small as a rule, else at the edge of its range.
fn number(choices: &mut Choices) -> u32 {
    const EDGES: [u32; 6] = [u32::MAX, u32::MAX - 1, 1 << 31, 65_536, 65_535, 1000];
    match choices.below(12) {
        11 => EDGES[choices.below(EDGES.len())],
        small => small as u32 / 2,
    }
}

fn text(choices: &mut Choices) -> String {
    ["", "x", "ring", "\u{1b}[2J", "\u{202e}"][choices.below(5) * choices.below(2)].to_string()
}

fn list<T>(choices: &mut Choices, most: usize, make: impl Fn(&mut Choices) -> T) -> Vec<T> {
    (0..choices.below(most + 1)).map(|_| make(choices)).collect()
}

fn operand(c: &mut Choices) -> Operand {
    match c.below(3) {
        0 => Operand::Channel(ChannelId(number(c))),
        1 => Operand::Local { buffer: BufferId(number(c)), cell: number(c) },
        _ => Operand::Peer { rank: RankId(number(c)), buffer: BufferId(number(c)), cell: number(c) },
    }
}

fn block_ref(c: &mut Choices) -> BlockRef {
    BlockRef { buffer: BufferId(number(c)), rank: RankId(number(c)), block: number(c) }
}

fn random_plan(c: &mut Choices) -> Plan {
    let ranks = number(c);
    Plan {
        header: Header {
            algorithm: text(c),
            collective: text(c),
            params: list(c, 2, |c| (text(c), i64::from(number(c)))),
            shape: if c.one_in(4) { list(c, 3, number) } else { vec![ranks] },
            ranks,
            cells: number(c),
            copies: number(c),
            forms: Forms { disjoint: !c.one_in(3), same: !c.one_in(3) },
            serves_post: c.one_in(2),
            serves_pre: c.one_in(2),
            scratch_cells: if c.one_in(4) {
                list(c, 4, number)
            } else {
                vec![number(c); ranks.min(9) as usize]
            },
            k_min: number(c),
            schedule: rcc_plan::schedule::Schedule::default(),
            proof: ProofStatus::None,
        },
        buffers: list(c, 4, |c| Buffer {
            name: text(c),
            role: [Role::Send, Role::Recv, Role::Scratch][c.below(3)],
            blocks: number(c),
            at: if c.one_in(4) { Presence::One(RankId(number(c))) } else { Presence::All },
        }),
        overlaps: list(c, 3, |c| Overlap {
            rank: RankId(number(c)),
            left: BufferId(number(c)),
            left_cell: number(c),
            right: BufferId(number(c)),
            right_cell: number(c),
            cells: number(c),
        }),
        channels: list(c, 4, |c| Channel {
            writer: BlockId(number(c)),
            readers: number(c)..number(c),
            kind: [ChannelKind::Slots, ChannelKind::Counter][c.below(2)],
        }),
        readers: list(c, 4, |c| BlockId(number(c))),
        blocks: list(c, 4, |c| Block {
            rank: RankId(number(c)),
            position: number(c),
            prologue: number(c)..number(c),
            body: number(c)..number(c),
            epilogue: number(c)..number(c),
        }),
        steps: list(c, 6, |c| Step {
            operands: number(c),
            sources: number(c) as u16,
            destinations: number(c) as u16,
            waits: number(c),
            wait_count: number(c) as u16,
            round_each: c.one_in(4),
            post: c.one_in(4),
            pre: Pre(if c.one_in(4) { number(c) } else { 0 }),
            width: number(c),
            span: SpanId(number(c)),
        }),
        operands: list(c, 12, operand),
        waits: list(c, 4, |c| StepId(number(c))),
        witnesses: list(c, 2, |c| Witness {
            step: StepId(number(c)),
            owner: RankId(number(c)),
            ready: StepId(number(c)),
            done: StepId(number(c)),
        }),
        promise: Promise {
            clauses: list(c, 3, |c| Clause { place: block_ref(c), list: number(c) }),
            lists: list(c, 3, |c| list(c, 3, block_ref)),
            synchronised: c.one_in(4),
        },
        spans: SpanTable {
            files: list(c, 2, text),
            spans: list(c, 3, |c| SourceSpan {
                file: number(c),
                line: number(c),
                column: number(c),
                text: text(c),
                parent: if c.one_in(3) { Some(SpanId(number(c))) } else { None },
            }),
        },
    }
}

/// Changes one number of a plan.
fn change(plan: &mut Plan, c: &mut Choices) {
    fn any<'a, T>(list: &'a mut [T], c: &mut Choices) -> Option<&'a mut T> {
        let at = c.below(list.len().max(1));
        list.get_mut(at)
    }
    match c.below(14) {
        0 => any(&mut plan.operands, c).into_iter().for_each(|op| *op = operand(c)),
        1 => any(&mut plan.operands, c).into_iter().for_each(|op| match op {
            Operand::Channel(channel) => channel.0 ^= 1 + c.below(3) as u32,
            Operand::Local { cell, .. } | Operand::Peer { cell, .. } => *cell ^= 1 + c.below(2) as u32,
        }),
        2 => any(&mut plan.steps, c).into_iter().for_each(|step| match c.below(9) {
            0 => step.operands ^= 1 + c.below(4) as u32,
            1 => step.sources = number(c) as u16,
            2 => step.destinations = number(c) as u16,
            3 => step.waits = number(c),
            4 => step.wait_count = number(c) as u16,
            5 => step.width = number(c),
            6 => step.post = !step.post,
            7 => step.pre = Pre(number(c)),
            _ => step.round_each = !step.round_each,
        }),
        3 => {
            let (a, b) = (c.below(plan.steps.len()), c.below(plan.steps.len()));
            plan.steps.swap(a, b);
        }
        4 => any(&mut plan.waits, c).into_iter().for_each(|wait| wait.0 ^= 1),
        5 => any(&mut plan.channels, c).into_iter().for_each(|channel| channel.writer = BlockId(number(c))),
        6 => any(&mut plan.readers, c).into_iter().for_each(|reader| *reader = BlockId(number(c))),
        7 => any(&mut plan.channels, c).into_iter().for_each(|channel| {
            channel.kind = match channel.kind {
                ChannelKind::Slots => ChannelKind::Counter,
                ChannelKind::Counter => ChannelKind::Slots,
            };
        }),
        8 => plan.header.k_min = number(c).saturating_add(1),
        9 => any(&mut plan.blocks, c).into_iter().for_each(|block| {
            let range =
                [&mut block.prologue, &mut block.body, &mut block.epilogue].into_iter().nth(c.below(3));
            range.into_iter().for_each(|range| range.end = range.end.wrapping_add(1));
        }),
        10 => any(&mut plan.overlaps, c).into_iter().for_each(|overlap| match c.below(4) {
            0 => overlap.cells = number(c),
            1 => overlap.left_cell = number(c),
            2 => overlap.right_cell = number(c),
            _ => overlap.rank = RankId(number(c)),
        }),
        11 => any(&mut plan.witnesses, c).into_iter().for_each(|witness| match c.below(3) {
            0 => witness.ready = StepId(number(c)),
            1 => witness.done = StepId(number(c)),
            _ => witness.owner = RankId(number(c)),
        }),
        12 => any(&mut plan.promise.clauses, c).into_iter().for_each(|clause| clause.place = block_ref(c)),
        _ => any(&mut plan.buffers, c).into_iter().for_each(|buffer| buffer.blocks = number(c)),
    }
}

/// What can be seen of any verified plan from outside.
fn must_run(verified: &VerifiedPlan) -> Result<(), TestCaseError> {
    let slots = verified.header.k_min as usize;
    let graph = |slots| is_acyclic(verified, &Shape { slots, iterations: 2, ..Shape::default() });
    prop_assert!(graph(slots));
    prop_assert!(slots == 1 || !graph(slots - 1));
    for block in &verified.blocks {
        for section in [Section::Prologue, Section::Epilogue] {
            for (_, step) in verified.steps(&block.section(section)) {
                let tokens = |op: &Operand| matches!(op, Operand::Channel(_));
                prop_assert!(verified.src(step).iter().chain(verified.dst(step)).all(tokens));
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(4000),
        max_shrink_iters: 2000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_numbers_never_panic(bytes in proptest::collection::vec(0u8.., 0..400)) {
        let plan = random_plan(&mut Choices::new(&bytes));
        let _ = least_slots(&plan, &limits());
        match verify(plan, &limits()) {
            Ok(verified) => must_run(&verified)?,
            Err(violations) => {
                prop_assert!(!violations.is_empty());
                violations.iter().for_each(|v| drop(v.to_string()));
            }
        }
    }

    #[test]
    fn changed_plans_never_panic(which in 0usize..16, bytes in proptest::collection::vec(0u8.., 4..40)) {
        let mut plan = plans::small().swap_remove(which).1;
        let mut choices = Choices::new(&bytes);
        for _ in 0..1 + choices.below(3) {
            change(&mut plan, &mut choices);
        }
        match verify(plan, &limits()) {
            Ok(verified) => must_run(&verified)?,
            Err(violations) => violations.iter().for_each(|v| drop(v.to_string())),
        }
    }
}

#[test]
fn changed_plans_get_past_v0() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut deep = std::collections::BTreeMap::new();
    for round in 0..4000 {
        let bytes = proptest::collection::vec(0u8.., 40).new_tree(&mut runner).unwrap().current();
        let mut choices = Choices::new(&bytes);
        let mut plan = plans::small().swap_remove(round % 16).1;
        change(&mut plan, &mut choices);
        let rule = verify(plan, &limits()).err().map_or("right", |violations| &violations[0].code()[6..8]);
        *deep.entry(rule).or_insert(0) += 1;
    }
    for rule in ["right", "v0", "v1", "v2", "v3", "v4", "v5"] {
        assert!(deep.get(rule).is_some_and(|&count| count >= 3), "{deep:?}");
    }
}
