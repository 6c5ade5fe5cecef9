//! Lowering of random programs: the plan is verified, has the trace's expressions and no race, and whatever the
//! order, the slots, the counts and the alias form, the interpreter ends with what was promised.

use std::borrow::Cow;

use plan::dtype::{Dtype, Op};
use plan::ids::{BufferId, RankId};
use plan::interpret::scheduler::{Random, RoundRobin, Scheduler, Stubborn};
use plan::interpret::{Call, clocks, interpret};
use plan::plan::{Plan, Role};
use plan::reference::{Reference, fill};
use plan::verify::{Limits, verify};
use proptest::prelude::*;
use rcc_compiler::graph::{Form, build, promise};
use rcc_compiler::lower::lower;
use rcc_compiler::source::Sources;
use rcc_compiler::trace::Trace;
use rcc_compiler::validate::validate;

use crate::laws::wild;

/// The trace's plan, verified; none if the trace is wrong in itself.
fn plan_of(trace: &mut Trace) -> Option<Plan> {
    let right = |trace: &Trace, form| {
        let graph = build(trace, form).ok()?;
        promise(trace, &graph).ok().map(|_| graph)
    };
    let disjoint = right(trace, Form::Disjoint)?;
    let graph = match right(trace, Form::Same) {
        Some(same) if !trace.inplace.is_empty() => same,
        _ => {
            trace.inplace.clear();
            disjoint
        }
    };
    let mut sources = Sources::default();
    sources.add("random.coll", "\n".repeat(64));
    let plan = lower(trace, &graph, &rcc_compiler::options::Options::default(), &sources);
    let verified = match verify(plan, &Limits::default()) {
        Ok(verified) => verified,
        // A value that no one is promised may differ in place; ranks that call in different forms must not meet it.
        Err(violations)
            if !trace.inplace.is_empty()
                && violations.iter().all(|v| v.code() == "plan::v4_forms_differ") =>
        {
            trace.inplace.clear();
            return plan_of(trace);
        }
        Err(violations) => panic!("{violations:?}"),
    };
    assert_eq!(validate(trace, &graph, &verified).map_err(|faults| format!("{faults:?}")), Ok(()));
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn random_programs_mean_what_their_traces_mean(
        case in wild(),
        seed in any::<u64>(),
        elements in 0u64..40,
        slots in 0u32..4,
        small in any::<bool>(),
        (dtype, op) in (0..Dtype::ALL.len(), 0..Op::ALL.len()),
    ) {
        let mut trace = case.0;
        let Some(plan) = plan_of(&mut trace) else { return Ok(()) };
        for in_place in [false, true] {
            let serves = if in_place { plan.header.forms.same } else { plan.header.forms.disjoint };
            if !serves {
                continue;
            }
            assert_eq!(clocks::findings(&plan, in_place), Ok(vec![]));
            let op = Op::ALL[op];
            if op.has_post() && !plan.header.serves_post {
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
}

/// Swaps that chase each other through one rank need temporaries, and one slot must still do.
#[test]
fn tangled_steps_need_only_one_slot() {
    use crate::traces::{Builder, at, block};
    use rcc_compiler::trace::BufferKind;

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
    let plan = plan_of(&mut trace).expect("a right program");
    assert_eq!(plan.header.k_min, 1);
    assert!(plan.header.scratch_cells.iter().any(|&count| count > cells), "temporaries are in use");
    let call = Call { slots: 1, ..Call::new(7, Dtype::I64, Op::Sum) };
    run(&plan, &call, &mut Random::new(3));
}
