//! Ranks as threads: hand-made plans against the definition of their collectives.

mod plans;

use plan::dtype::{Dtype, Op};
use plan::verify::VerifiedPlan;
use rcc_runtime::exec::Shape;
use rcc_runtime::job::threads::run_threads;
use rcc_runtime::job::{Job, Report};

fn run(plan: &VerifiedPlan, job: &Job) -> Report {
    let report = run_threads(plan, job).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(report.wrong, 0, "{:?} of {job:?}", report.first_wrong);
    report
}

#[test]
fn ring_of_two() {
    let shape = Shape { elements: 1009, dtype: Dtype::F32, op: Op::Sum, in_place: false };
    let report = run(&plans::ring(2), &Job::new(shape));
    assert_eq!(report.checked, 2 * 1009);
}
