//! Lowering of random programs, whatever the options: the plan is verified, has the trace's expressions and no race,
//! needs no more slots and blocks than it may, and whatever the order, the slots, the counts and the alias form, the
//! interpreter ends with what was promised. Where a plan is small, every order of its events is tried.

use std::borrow::Cow;

use plan::dtype::{Dtype, Op};
use plan::ids::{BufferId, RankId};
use plan::interpret::scheduler::{Random, RoundRobin, Scheduler, Stubborn};
use plan::interpret::{Call, clocks, interpret};
use plan::plan::{Plan, Role};
use plan::reference::{Reference, fill};
use plan::verify::{Limits, verify_fresh};
use proptest::prelude::*;
use rcc_compiler::graph::{Ends, Form, build, promise};
use rcc_compiler::options::{Multicast, Options};
use rcc_compiler::schedule::schedule;
use rcc_compiler::source::Sources;
use rcc_compiler::trace::{BufferKind, Move, MoveKind, Trace};
use rcc_compiler::validate::validate;

use crate::cases;
use crate::executor::mix;
use crate::explore::{Verdict, explore};
use crate::fed::fed;
use crate::holds;
use crate::laws::{Case, mutated, wild};
use crate::layouts::strategy as options;

/// How many channels, and a seed for who takes which.
pub(crate) type Lanes = Option<(u16, u64)>;

/// What a schedule may say of moves: none of them, or some, take one of a few channels.
pub(crate) fn lanes() -> impl Strategy<Value = Lanes> {
    proptest::option::of((2..4u16, any::<u64>()))
}

/// Gives neighbours one channel mostly, as the moves under a label have.
pub(crate) fn give_lanes(trace: &mut Trace, lanes: Lanes) {
    let Some((count, seed)) = lanes else { return };
    let mut lane = 0;
    for (m, mv) in trace.moves.iter_mut().enumerate() {
        let drawn = mix(seed ^ m as u64);
        if !drawn.is_multiple_of(3) {
            lane = (drawn >> 8) as u16 % count;
        }
        mv.lane = lane;
    }
}

/// The trace's plan, verified; none if the trace is wrong in itself.
pub(crate) fn plan_of(trace: &mut Trace, options: &Options) -> Option<Plan> {
    let right = |trace: &Trace, form| {
        let graph = build(trace, form).ok()?;
        promise(trace, &graph).ok().map(|_| graph)
    };
    let disjoint = right(trace, Form::Disjoint)?;
    let graph = disjoint;
    if right(trace, Form::Same).is_none() {
        trace.inplace.clear();
    }
    let mut sources = Sources::default();
    sources.add("random.coll", "\n".repeat(64));
    let plan = schedule(trace, &graph, options, &sources);
    let text = plan::display::show(&plan).to_string();
    let verified = match verify_fresh(plan, &Limits::default()) {
        Ok(verified) => verified,
        // A value that no one is promised may differ in place; ranks that call in different forms must not meet it.
        Err(violations)
            if !trace.inplace.is_empty()
                && violations.iter().all(|v| v.code() == "plan::v4_forms_differ") =>
        {
            trace.inplace.clear();
            return plan_of(trace, options);
        }
        Err(violations) => panic!("{}: {}\n{text}", violations[0].code(), violations[0]),
    };
    assert_eq!(
        validate(trace, &Ends::new(&graph), &verified).map_err(|faults| format!("{faults:?}")),
        Ok(())
    );
    assert!(verified.header.k_min <= options.slots, "k_min is {}", verified.header.k_min);
    let blocks = (0..trace.ranks).map(|rank| verified.blocks_of(RankId(rank)).len()).max().unwrap_or(0);
    assert!(blocks <= options.blocks as usize, "{blocks} blocks");
    Some(verified.into_plan())
}

fn inputs(plan: &Plan, call: &Call, seed: u64) -> impl Fn(BufferId, RankId) -> Vec<u8> {
    let bytes: Vec<usize> = plan
        .buffers
        .iter()
        .map(|b| b.blocks as usize * call.elements as usize * call.dtype.size() as usize)
        .collect();
    let (dtype, op) = (call.dtype, call.op);
    move |buffer, rank| {
        let mut out = vec![0; bytes[buffer.index()]];
        fill(dtype, op, seed, rank, buffer, &mut out);
        out
    }
}

fn run(plan: &Plan, call: &Call, scheduler: &mut dyn Scheduler) {
    let input = inputs(plan, call, 11);
    let outcome = interpret(plan, call, &mut |b, r| input(b, r), scheduler)
        .unwrap_or_else(|fault| panic!("{call:?}: {fault}"));
    let reference = Reference::new(&plan.promise);
    let block_bytes = call.elements as usize * call.dtype.size() as usize;
    for (index, buffer) in plan.buffers.iter().enumerate().filter(|(_, b)| b.role == Role::Recv) {
        let id = BufferId::new(index);
        for rank in (0..plan.header.ranks).map(RankId).filter(|&r| buffer.at.holds(r)) {
            let mut entry = |place: plan::collective::BlockRef| {
                let all = input(place.buffer, place.rank);
                Cow::Owned(all[place.block as usize * block_bytes..][..block_bytes].to_vec())
            };
            let what = (call.dtype, call.op);
            let wrong =
                reference.check((id, rank), call.elements, what, &mut entry, outcome.buffer(id, rank));
            assert_eq!(wrong.count, 0, "{call:?}: buffer {index} at rank {}: {:?}", rank.0, wrong.first);
        }
    }
}

/// How a program is called.
#[derive(Debug, Clone, Copy)]
struct Calls {
    seed: u64,
    elements: u64,
    slots: u32,
    small: bool,
    types: (usize, usize),
}

fn calls() -> impl Strategy<Value = Calls> {
    let types = (0..Dtype::ALL.len(), 0..Op::ALL.len());
    (any::<u64>(), 0u64..40, 0u32..4, any::<bool>(), types)
        .prop_map(|(seed, elements, slots, small, types)| Calls { seed, elements, slots, small, types })
}

fn means_what_its_trace_means(mut trace: Trace, options: &Options, lanes: Lanes, calls: Calls) {
    give_lanes(&mut trace, lanes);
    let Some(plan) = plan_of(&mut trace, options) else { return };
    let Calls { seed, elements, slots, small, types: (dtype, op) } = calls;
    for in_place in [false, true] {
        let serves = if in_place { plan.header.forms.same } else { plan.header.forms.disjoint };
        if !serves {
            continue;
        }
        assert_eq!(clocks::findings(&plan, in_place), Ok(vec![]));
        let op = Op::ALL[op];
        if !plan.header.serves(op) {
            continue;
        }
        let call = Call {
            in_place,
            slots: plan.header.k_min + slots,
            slot_bytes: if small { 16 } else { 4096 },
            elide: seed & 1 == 1,
            group: seed & 2 == 2,
            ..Call::new(elements, Dtype::ALL[dtype], op)
        };
        run(&plan, &call, &mut Random::new(seed));
        run(&plan, &call, &mut RoundRobin::default());
        run(&plan, &call, &mut Stubborn::new(seed & 4 == 4));
    }
}

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn random_programs_mean_what_their_traces_mean(case in wild(), options in options(), lanes in lanes(), calls in calls()) {
        means_what_its_trace_means(case.0, &options, lanes, calls);
    }

    #[test]
    fn mutated_algorithms_mean_what_their_traces_mean(
        case in mutated(),
        options in options(),
        lanes in lanes(),
        calls in calls(),
    ) {
        means_what_its_trace_means(case.0, &options, lanes, calls);
    }
}

proptest! {
    #![proptest_config(cases(6000))]

    #[test]
    fn programs_that_feed_fusion_mean_what_their_traces_mean(
        case in fed(),
        options in options(),
        lanes in lanes(),
        calls in calls(),
    ) {
        means_what_its_trace_means(case.0, &options, lanes, calls);
    }

    /// D by the book, and what follows from it, for what the compiler makes.
    #[test]
    fn the_lemmas_hold_for_lowered_programs(
        case in fed(),
        options in options(),
        lanes in lanes(),
        more in 0usize..3,
        iterations in 2usize..4,
        seed: u64,
    ) {
        let mut trace = case.0;
        give_lanes(&mut trace, lanes);
        let Some(plan) = plan_of(&mut trace, &options) else { return Ok(()) };
        let events: u32 = plan.steps.iter().map(|step| step.width).sum();
        prop_assume!(events < 200);
        prop_assert_eq!(holds::least_by_the_book(&plan), Some(plan.header.k_min as usize));
        holds::lemmas(&plan, plan.header.k_min as usize + more, iterations, seed)?;
    }
}

proptest! {
    #![proptest_config(cases(300))]

    /// A second verdict, from all orders of events on random numbers.
    #[test]
    fn no_order_breaks_a_lowered_program(case in fed(), options in options(), lanes in lanes()) {
        let mut trace = case.0;
        give_lanes(&mut trace, lanes);
        let Some(plan) = plan_of(&mut trace, &options) else { return Ok(()) };
        let events: u32 = plan.steps.iter().map(|step| step.width).sum();
        prop_assume!(events <= 22);
        let truth = explore(&plan);
        prop_assert!(matches!(truth, Verdict::Right(_) | Verdict::TooLarge), "{:?}", truth);
    }
}

/// What the random programs are made of: if one of these were rare, the tests above would test little.
#[test]
fn random_programs_feed_fusion() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut counts = [0; 9];
    for _ in 0..400 {
        let Case(mut trace) = fed().new_tree(&mut runner).unwrap().current();
        let right = plan_of(&mut trace, &Options::default());
        let several = Options { multicast: Multicast::Channel, ..Options::default() };
        let several = plan_of(&mut trace, &several);
        let shared = |plan: Plan| plan.channels.iter().any(|channel| channel.readers.len() > 1);
        let has = |is: &dyn Fn(&Move) -> bool| usize::from(trace.moves.iter().any(is));
        let remote = |mv: &Move| trace.sources(mv).iter().any(|source| source.rank != mv.to.rank);
        let scratch = |mv: &Move| trace.buffer(mv.to).kind == BufferKind::Scratch;
        let reads_scratch = |mv: &Move| {
            trace.sources(mv).iter().any(|&source| trace.buffer(source).kind == BufferKind::Scratch)
        };
        counts[0] += usize::from(right.is_some());
        counts[1] += usize::from(!trace.inplace.is_empty());
        counts[2] += has(&|mv| remote(mv) && scratch(mv) && reads_scratch(mv));
        counts[3] += has(&|mv| mv.kind == MoveKind::Combine && remote(mv));
        counts[4] += has(&|mv| mv.step != 0 && remote(mv));
        counts[5] += has(&|mv| mv.width > 1 && remote(mv));
        counts[6] += has(&|mv| mv.kind == MoveKind::Reduce && mv.source_count > 2);
        counts[7] += has(&|mv| trace.buffer(mv.to).kind == BufferKind::Signal);
        counts[8] += usize::from(several.is_some_and(shared));
    }
    let names =
        ["right", "in place", "relays", "sums", "steps", "wide", "many operands", "signals", "multicasts"];
    let told: Vec<String> = names.iter().zip(counts).map(|(name, count)| format!("{name} {count}")).collect();
    println!("of 400: {}", told.join(", "));
    assert_eq!(counts[0], 400, "every one of them is right");
    assert!(counts.iter().all(|&count| count >= 40), "{told:?}");
}

/// Swaps that chase each other through one rank need temporaries, and one slot must still do.
#[test]
fn tangled_steps_need_only_one_slot() {
    use crate::traces::{Builder, at, block};

    // Both ranks rotate all their cells through the other in one step: messages would have to wait for each other.
    let cells = 5;
    let mut b =
        Builder::new(2, cells).buffer("data", BufferKind::Inout, 1).buffer("t", BufferKind::Scratch, 1);
    b = b.ensures(block(0, 0, 0), vec![block(0, 0, 0), block(0, 1, 0)]);
    b = b.ensures(block(0, 1, 0), vec![block(0, 0, 0), block(0, 1, 0)]);
    for rank in 0..2 {
        for cell in 0..cells {
            b.copy(at(1, rank, cell), at(0, rank, cell));
        }
    }
    b.step(|b| {
        for cell in 0..cells {
            // t[c] moves on by one cell at each crossing, round and round between the ranks.
            b.copy(at(1, 1, cell), at(1, 0, cell));
            b.copy(at(1, 0, (cell + 1) % cells), at(1, 1, cell));
        }
    });
    b.step(|b| {
        for cell in 0..cells {
            b.add(at(0, 1, cell), at(1, 1, cell));
            b.add(at(0, 0, cell), at(1, 0, (cell + 1) % cells));
        }
    });
    let mut trace = b.trace;
    let plan = plan_of(&mut trace, &Options { slots: 1, ..Options::default() }).expect("a right program");
    assert_eq!(plan.header.k_min, 1);
    let call = Call { slots: 1, ..Call::new(7, Dtype::I64, Op::Sum) };
    run(&plan, &call, &mut Random::new(3));
}
