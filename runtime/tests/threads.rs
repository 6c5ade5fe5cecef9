//! Ranks as threads: hand-made plans against the definition of their collectives.
//!
//! Also the test to run under a race detector: see `job::threads`.

extern crate plan as rcc_plan;

mod plans;

use plan::dtype::{Dtype, Op};
use plan::schedule::Schedule;
use plan::verify::{Limits, VerifiedPlan};
use rcc_runtime::exec::Shape;
use rcc_runtime::job::threads::{run_threads, run_threads_from};
use rcc_runtime::job::{Inputs, Job, Report};

/// Runs a job that must be right.
fn run(plan: &VerifiedPlan, job: &Job) -> Report {
    let report = run_threads(plan, job).unwrap_or_else(|e| panic!("{} {job:?}: {e}", plan.header.algorithm));
    assert_eq!(report.wrong, 0, "{} {job:?}: {:?}", plan.header.algorithm, report.first_wrong);
    report
}

fn job(elements: u64, dtype: Dtype, op: Op, in_place: bool) -> Job {
    Job::new(Shape { elements, dtype, op, in_place })
}

/// Every plan, over counts, slot sizes and slot counts; types, operators and forms take turns.
fn all_counts(plan: &VerifiedPlan) {
    let k = plan.header.k_min.max(1);
    let mut turn = 0;
    for elements in [0, 1, 2, 7, 1009, 20_000] {
        for slot_bytes in [Some(16), Some(100), Some(4096), None] {
            for slots in [Some(k), Some(k + 1), None] {
                if elements > 2000 && slot_bytes == Some(16) && slots.is_none() {
                    continue;
                }
                turn += 1;
                let dtype = Dtype::ALL[turn % Dtype::ALL.len()];
                let op = Op::ALL[turn % Op::ALL.len()];
                if !plan.header.serves(op) {
                    continue;
                }
                let forms = plan.header.forms;
                let in_place = !forms.disjoint || forms.same && turn % 2 == 0;
                run(plan, &Job { slot_bytes, slots, ..job(elements, dtype, op, in_place) });
            }
        }
    }
}

#[test]
fn ring() {
    for n in [1, 2, 3, 4] {
        let report = run(&plans::ring(n), &job(1009, Dtype::F32, Op::Sum, false));
        assert_eq!(report.checked, u64::from(n) * 1009);
        all_counts(&plans::ring(n));
    }
}

#[test]
fn exchange() {
    all_counts(&plans::exchange());
}

#[test]
fn blocks_that_must_take_turns() {
    all_counts(&plans::interleaved());
}

#[test]
fn many_readers_and_copies() {
    for (n, copies) in [(2, 1), (3, 2), (4, 3)] {
        all_counts(&plans::multicast(n, copies));
    }
}

#[test]
fn wide_steps() {
    all_counts(&plans::alltoall(3));
}

#[test]
fn many_operands() {
    for each in [false, true] {
        all_counts(&plans::fold_at_root(5, each));
    }
}

#[test]
fn scratch_and_waits() {
    all_counts(&plans::scratch_and_waits());
}

#[test]
fn tokens() {
    for n in [2, 3, 5, 8] {
        all_counts(&plans::barrier(n));
    }
}

#[test]
fn direct_access() {
    for n in [2, 3] {
        plans::all_direct(n).iter().for_each(all_counts);
    }
    for plan in plans::all_direct(5) {
        let in_place = plan.header.forms.same;
        for inputs in [Inputs::Anew, Inputs::InARow { rewritten: false }, Inputs::InARow { rewritten: true }]
        {
            let report =
                run(&plan, &Job { iterations: 3, inputs, ..job(5003, Dtype::F32, Op::Sum, in_place) });
            let (times, spans) = if inputs == Inputs::Anew { (3, 3) } else { (1, 0) };
            assert_eq!((report.times.len(), report.spans.len()), (times, spans), "{inputs:?}");
        }
    }
}

#[test]
fn many_blocks() {
    for n in [2, 3] {
        plans::all_blocks(n).iter().for_each(all_counts);
    }
    for plan in plans::all_blocks(6) {
        let in_place = plan.header.forms.same;
        run(&plan, &Job { iterations: 3, inputs: Inputs::Anew, ..job(5003, Dtype::F32, Op::Sum, in_place) });
    }
}

/// Far more blocks than a rank can look at in one breath, and copies of them with less than one element each.
#[test]
fn hundreds_of_blocks() {
    let plan = plans::proved(plans::blocks::alltoall_blocks(12, 16));
    for elements in [0, 1, 47, 48, 5000] {
        run(&plan, &Job { iterations: 2, ..job(elements, Dtype::U8, Op::Sum, false) });
    }
}

/// Every type with every operator, in both forms.
#[test]
fn every_type_and_operator() {
    for plan in [plans::ring(3), plans::fold_at_root(4, false)] {
        for dtype in Dtype::ALL {
            for op in Op::ALL {
                for in_place in [false, true] {
                    run(&plan, &job(1009, dtype, op, in_place));
                }
            }
        }
    }
}

#[test]
fn large_counts_in_many_slices() {
    let job =
        Job { warmup: 1, iterations: 3, inputs: Inputs::Anew, ..job(1 << 20, Dtype::F32, Op::Sum, true) };
    let report = run(&plans::ring(2), &job);
    assert_eq!(report.times.len(), 3);
    assert_eq!(report.checked, 2 * 2 * (1 << 20));
}

/// Two ranks trade their slots, also each of several copies.
#[test]
fn exchanges_of_several_copies() {
    for copies in 1..4 {
        for plan in [plans::ring(2), plans::exchange(), plans::exchange_in_blocks()] {
            let plan = plan.asked(copies, Schedule::default(), &Limits::default()).unwrap();
            all_counts(&plan);
        }
    }
}

/// Message numbers have 64 bits: nothing happens where they pass 32.
#[test]
fn numbers_pass_32_bits() {
    // Two ranks trade their slots.
    let plans =
        [plans::ring(2), plans::exchange(), plans::ring(3), plans::barrier(4), plans::multicast(3, 2)];
    for plan in plans {
        for back in [0, 1, 2, 5, 9] {
            let job = Job { iterations: 20, ..job(500, Dtype::I32, Op::Sum, false) };
            let report = run_threads_from(&plan, &job, (1 << 32) - back).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(report.wrong, 0, "{:?}", report.first_wrong);
        }
    }
}

/// More threads than CPUs, each of which has little to do.
#[test]
fn many_more_ranks_than_cpus() {
    run(&plans::ring(16), &Job { iterations: 5, ..job(1600, Dtype::F64, Op::Sum, false) });
}
