//! What other compilers and runtimes of collectives get wrong, by name, tried on optimised plans: deadlocks above some
//! size, signals waited for before they are sent, reductions at another index, `max` run as a sum, tails, many channels
//! in a step. (Wrong programs, which others accept, are `golden/reject/peers`.)

extern crate plan as rcc_plan;

#[path = "../../plan/tests/common/explore.rs"]
#[allow(dead_code, reason = "each test binary uses its own part")]
mod explore;

use compiler::elaborate::Request;
use compiler::limits::Limits;
use compiler::options::Options;
use compiler::pipeline::{Compiled, load};
use explore::{Verdict, explore};
use plan::builder::{PlanBuilder, get, local, put};
use plan::dtype::{Dtype, Op};
use plan::ids::RankId;
use plan::interpret::classes::classes;
use plan::interpret::scheduler::{Random, Stubborn};
use plan::interpret::{Call, interpret};
use plan::plan::{Operand, Plan, Role, Step};
use plan::verify::{Limits as PlanLimits, least_slots, verify};
use rcc_tests::layouts;
use rcc_tests::library;
use rcc_tests::oracle;
use rcc_tests::pace::{Load, Policy, run};
use runtime::exec::Shape;
use runtime::job::Job;
use runtime::job::threads::run_threads;

const RING_TWO_CHUNKS: &str = include_str!("../golden/accept/peers/ring_two_chunks.coll");
const RING_CHUNK_BY_CHUNK: &str = include_str!("../golden/accept/peers/ring_chunk_by_chunk.coll");
const BOTH_SEND_FIRST: &str = include_str!("../golden/accept/peers/both_send_first.coll");
const REMOTE_AND_LOCAL_INDEX: &str = include_str!("../golden/accept/peers/remote_and_local_index.coll");
const OPERATORS_AND_TAILS: &str = include_str!("../golden/accept/peers/operators_and_tails.coll");

/// The one algorithm of a text.
fn compiled(text: &str, ranks: u32, options: &Options) -> Compiled {
    let limits = Limits::default();
    let loaded = load(&[("peer.coll".to_string(), text.as_bytes().to_vec())], &limits);
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    let own = |id: &_| !loaded.program.algorithm(*id).name.starts_with("std::");
    let algorithm = loaded.program.algorithms().find(own).expect("the text has an algorithm");
    let request = Request { algorithm, shape: vec![ranks], params: Default::default() };
    let compiled = library::compiled(&loaded, &request, options, &limits);
    compiled.unwrap_or_else(|what| panic!("{ranks} ranks, {options:?}: {what}")).expect("not excluded")
}

fn standard(name: &str, ranks: u32, options: &Options) -> Compiled {
    let limits = Limits::default();
    let loaded = load(&[], &limits);
    let algorithm = loaded.program.find(name).expect("a standard algorithm");
    let request = library::request(&loaded, algorithm, vec![ranks]);
    library::compiled(&loaded, &request, options, &limits)
        .unwrap_or_else(|what| panic!("{what}"))
        .expect("allowed")
}

/// With the slots it states, at sizes from one element to a thousand slices, messages alone and together.
fn never_hangs(plan: &Plan) {
    let classes = classes(plan).expect("a verified plan");
    let cells = u64::from(plan.header.cells) * u64::from(plan.header.copies);
    let policies = [Policy::Lockstep, Policy::LastMoved, Policy::Downstream, Policy::Random(9)];
    for (turn, elements) in
        [1, cells, 4 * cells, 5 * cells - 1, 64 * cells, 4000 * cells].into_iter().enumerate()
    {
        for (elide, group) in [(false, false), (true, true)] {
            let slots = plan.header.k_min;
            let load = Load { elements, dtype: Dtype::F32, slot_bytes: 16, slots, elide, group };
            let policy = policies[(turn + usize::from(group)) % policies.len()];
            run(plan, &classes, &load, policy).unwrap_or_else(|what| panic!("{load:?}, {policy:?}: {what}"));
        }
    }
}

fn small_runs(plan: &Plan) {
    for (turn, in_place) in oracle::forms(plan).chain(oracle::forms(plan)).enumerate() {
        let group = turn.is_multiple_of(2);
        let call = Call {
            in_place,
            slots: plan.header.k_min,
            slot_bytes: 16,
            elide: group,
            group,
            ..Call::new(u64::from(plan.header.cells) * 7 + 3, Dtype::I32, Op::Sum)
        };
        oracle::run(plan, &call, &mut Random::new(turn as u64)).unwrap_or_else(|what| panic!("{what}"));
        oracle::run(plan, &call, &mut Stubborn::new(group)).unwrap_or_else(|what| panic!("{what}"));
    }
}

/// The ring as a peer runs it: every rank sends its two chunks, then takes the two of the rank before, and so on.
fn ring_as_written(n: u32) -> Plan {
    let mut p = PlanBuilder::new("ring", "allgather", &[n]);
    p.header().cells = 2;
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, n);
    let blocks: Vec<_> = (0..n).map(|rank| p.block(rank)).collect();
    let channels: Vec<_> =
        (0..n).map(|r| p.channel(blocks[r as usize], &[blocks[((r + 1) % n) as usize]])).collect();
    for r in 0..n {
        let (block, to, from) =
            (blocks[r as usize], channels[r as usize], channels[((r + n - 1) % n) as usize]);
        for hop in 0..n - 1 {
            let (mine, theirs) = ((r + n - hop) % n, (r + 2 * n - hop - 1) % n);
            let held = if hop == 0 { local(input, 0) } else { local(output, 2 * mine) };
            p.step(block, &[held], &[put(to)]).width(2);
            p.step(block, &[get(from)], &[local(output, 2 * theirs)]).width(2);
        }
        p.step(block, &[local(input, 0)], &[local(output, 2 * r)]).width(2);
        for from in 0..n {
            p.promise((output, r, from), &[(input, from, 0)]);
        }
    }
    p.finish().expect("small").plan
}

/// With one slot it runs as long as both chunks fit a slot together, and hangs above that size. That it needs two is
/// told by the plan alone, without a size; a plan that states fewer is refused.
#[test]
fn whether_a_ring_hangs_is_told_by_the_plan_and_not_by_the_size() {
    let mut plan = ring_as_written(4);
    assert_eq!(least_slots(&plan, &PlanLimits::default()), Ok(2));
    let classes = classes(&plan).unwrap();
    let at = |elements, slots| {
        let load = Load { elements, dtype: Dtype::F32, slot_bytes: 16, slots, elide: true, group: true };
        run(&plan, &classes, &load, Policy::Lockstep)
    };
    assert!(at(1, 1).is_ok() && at(4, 1).is_ok(), "two chunks of 8 bytes are one message");
    assert!(at(5, 1).is_err() && at(8000, 1).is_err(), "two messages need two slots");
    assert!(at(1, 2).is_ok() && at(5, 2).is_ok() && at(8000, 2).is_ok());
    plan.header.k_min = 1;
    let refused = verify(plan.clone(), &PlanLimits::default()).expect_err("it needs two");
    assert_eq!(refused[0].code(), "plan::v2_slot_count");
    plan.header.k_min = 2;
    assert!(verify(plan, &PlanLimits::default()).is_ok());
}

#[test]
fn a_ring_with_two_chunks_per_rank_never_hangs() {
    let mut seen: Vec<Plan> = Vec::new();
    for text in [RING_TWO_CHUNKS, RING_CHUNK_BY_CHUNK] {
        for options in layouts::every_pair() {
            for ranks in [2, 4, 8] {
                let compiled = compiled(text, ranks, &options);
                let plan = compiled.plan.plan();
                assert!(plan.header.k_min <= options.slots, "{options:?}: k_min is {}", plan.header.k_min);
                if ranks == 4 && !seen.contains(plan) {
                    never_hangs(plan);
                    small_runs(plan);
                    seen.push(plan.clone());
                }
            }
        }
    }
}

#[test]
fn halving_and_doubling_over_32_ranks_never_hangs() {
    for slots in [1, 2, 8] {
        let options = Options { slots, ..Options::default() };
        let compiled = standard("std::allreduce::halving_doubling", 32, &options);
        assert!(compiled.plan.header.k_min <= slots);
        never_hangs(compiled.plan.plan());
    }
}

#[test]
fn two_ranks_that_both_send_first_never_hang() {
    let mut seen: Vec<Plan> = Vec::new();
    for options in layouts::every_pair() {
        let compiled = compiled(BOTH_SEND_FIRST, 2, &options);
        let plan = compiled.plan.plan();
        assert!(plan.header.k_min <= options.slots);
        if !seen.contains(plan) {
            never_hangs(plan);
            small_runs(plan);
            seen.push(plan.clone());
        }
    }
}

#[test]
fn a_signal_waited_for_before_it_is_sent_is_refused() {
    let pair = |wait_first: bool| {
        let mut p = PlanBuilder::new("pair", "barrier", &[2]);
        let blocks = [p.block(0), p.block(1)];
        let tokens = [p.counter(blocks[0], &[blocks[1]]), p.counter(blocks[1], &[blocks[0]])];
        for r in 0..2 {
            for part in 0..2 {
                match (part == 0) == wait_first {
                    true => p.step(blocks[r], &[get(tokens[1 - r])], &[]),
                    false => p.step(blocks[r], &[], &[put(tokens[r])]),
                };
            }
        }
        p.promise_synchronised();
        p.finish().expect("small").plan
    };
    let refused = verify(pair(true), &PlanLimits::default()).expect_err("both wait for ever");
    assert_eq!(refused[0].code(), "plan::v2_deadlock");
    assert_eq!(explore(&pair(true)), Verdict::Wrong("deadlock"));
    assert!(verify(pair(false), &PlanLimits::default()).is_ok());
    assert!(matches!(explore(&pair(false)), Verdict::Right(_)));
}

#[test]
fn a_reduction_whose_remote_and_local_index_differ() {
    for options in layouts::every_pair() {
        for ranks in 2..=5 {
            let compiled = compiled(REMOTE_AND_LOCAL_INDEX, ranks, &options);
            small_runs(compiled.plan.plan());
        }
    }
}

/// Channels that a step names.
fn channels(plan: &Plan, step: &Step) -> usize {
    let operands = plan.src(step).iter().chain(plan.dst(step));
    operands.filter(|operand| matches!(operand, Operand::Channel(_))).count()
}

#[test]
fn more_than_eight_channels_in_a_step() {
    for (name, least) in
        [("std::allreduce::one_shot", 12), ("std::scatter::direct", 0), ("std::alltoall::direct", 0)]
    {
        let compiled = standard(name, 13, &Options::default());
        let plan = compiled.plan.plan();
        let most = plan.steps.iter().map(|step| channels(plan, step)).max().unwrap_or(0);
        assert!(most >= least, "{name}: a step names {most} channels at most");
        small_runs(plan);
        never_hangs(plan);
        let job = Job::new(Shape { elements: 1009, dtype: Dtype::F32, op: Op::Sum, in_place: false });
        let report = run_threads(&compiled.plan, &job).expect("13 threads");
        assert_eq!((report.wrong, report.checked > 0), (0, true), "{name}");
    }
}

/// Steps of a block beyond what an interpreter with a table of 64 takes.
#[test]
fn more_than_64_steps_in_a_block() {
    let compiled = standard("std::allreduce::ring", 40, &Options::default());
    let plan = compiled.plan.plan();
    assert!(plan.blocks.iter().any(|block| block.body.len() > 64));
    small_runs(plan);
    never_hangs(plan);
}

/// Every type and operator, at counts of which no cell is a multiple of 16 bytes, under the oracle and by threads.
#[test]
fn tails_that_are_no_multiple_of_16_bytes() {
    for fuse in [true, false] {
        let options = Options { fuse, ..Options::default() };
        let ranks = if fuse { 4 } else { 3 };
        let compiled = compiled(OPERATORS_AND_TAILS, ranks, &options);
        let plan = compiled.plan.plan();
        for (d, &dtype) in Dtype::ALL.iter().enumerate() {
            for (o, &op) in Op::ALL.iter().enumerate() {
                if !plan.header.serves(op) {
                    continue;
                }
                let elements = 5 + (7 * d + 11 * o) as u64 % 61;
                let call = Call {
                    slots: plan.header.k_min,
                    slot_bytes: 24,
                    group: o.is_multiple_of(2),
                    ..Call::new(elements, dtype, op)
                };
                oracle::run(plan, &call, &mut Random::new(o as u64))
                    .unwrap_or_else(|e| panic!("{call:?}: {e}"));
                if (d + o + usize::from(fuse)).is_multiple_of(2) {
                    continue;
                }
                let job = Job::new(Shape { elements, dtype, op, in_place: false });
                let report = run_threads(&compiled.plan, &job).expect("few threads");
                assert_eq!(
                    (report.wrong, report.checked > 0),
                    (0, true),
                    "{call:?}: {:?}",
                    report.first_wrong
                );
            }
        }
    }
}

/// By hand, without the reference: rank r holds r + 1 everywhere.
#[test]
fn max_is_not_run_as_a_sum() {
    for name in ["std::allreduce::ring", "std::allreduce::one_shot", "std::allreduce::double_tree"] {
        let compiled = standard(name, 5, &Options::default());
        let plan = compiled.plan.plan();
        for (op, expected) in [(Op::Max, 5), (Op::Min, 1), (Op::Sum, 15), (Op::Prod, 120)] {
            let call = Call { slots: plan.header.k_min, ..Call::new(11, Dtype::I32, op) };
            let mut input = |_, rank: RankId| (rank.0 as i32 + 1).to_le_bytes().repeat(11);
            let outcome = interpret(plan, &call, &mut input, &mut Random::new(1)).expect("a right plan");
            for rank in (0..5).map(RankId) {
                let held = outcome.buffer(oracle::received(plan).next().expect("data"), rank);
                assert_eq!(held, i32::to_le_bytes(expected).repeat(11), "{name}, {op:?}");
            }
        }
    }
}
