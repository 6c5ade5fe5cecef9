//! The same calls on this machine, to hold the model against.
//!
//! In: a plan and the geometry that the model chose. Out: the time of the fastest call: what the machine can do where nothing
//! else disturbs it, which is what the model speaks of. Inputs are written anew before each call: a reader must not find in
//! its own cache what an application would have changed.

use plan::verify::VerifiedPlan;
use runtime::error::Kind;
use runtime::exec::Shape;
use runtime::job::Job;
use runtime::launch::{self, Options};

use super::report::Report;
use super::subject::Subject;
use crate::args;
use crate::failure::Failure;

/// Calls that are measured.
const CALLS: u32 = 41;

/// Microseconds of a call.
pub(super) fn measure(subject: &Subject, report: &Report, args: &args::Explain) -> Result<f64, Failure> {
    let plan: &VerifiedPlan = &subject.plan;
    let in_place = !plan.header.forms.disjoint;
    let shape = Shape { elements: report.count, dtype: args.dtype, op: plan::dtype::Op::Sum, in_place };
    let job = Job {
        slot_bytes: Some(report.chosen.slice_bytes),
        slots: Some(report.chosen.slots),
        warmup: 5,
        iterations: CALLS,
        refill: true,
        check: false,
        ..Job::new(shape)
    };
    let done = launch::run(plan, &job, &Options::default()).map_err(|error| match error.kind {
        Kind::Invalid => Failure::usage(error.to_string()),
        _ => Failure::Machine(error.to_string()),
    })?;
    let times = done.times.iter().map(|time| time.as_secs_f64() * 1e6);
    Ok(times.reduce(f64::min).unwrap_or(0.0))
}

/// Spearman's coefficient of predicted and measured times: 1 where both put the plans in one order. Ties share their ranks.
pub(super) fn agreement(pairs: &[(f64, f64)]) -> Option<f64> {
    if pairs.len() < 2 {
        return None;
    }
    let ranks = |of: fn(&(f64, f64)) -> f64| -> Vec<f64> {
        let values: Vec<f64> = pairs.iter().map(of).collect();
        let below = |v: f64| values.iter().filter(|&&other| other < v).count() as f64;
        let same = |v: f64| values.iter().filter(|&&other| other == v).count() as f64;
        values.iter().map(|&v| below(v) + (same(v) - 1.0) / 2.0).collect()
    };
    let (a, b) = (ranks(|pair| pair.0), ranks(|pair| pair.1));
    let mean = (pairs.len() as f64 - 1.0) / 2.0;
    let product =
        |x: &[f64], y: &[f64]| -> f64 { x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum() };
    let spread = (product(&a, &a) * product(&b, &b)).sqrt();
    (spread > 0.0).then(|| product(&a, &b) / spread)
}

#[cfg(test)]
mod tests {
    use super::agreement;

    #[test]
    fn orders_agree_or_not() {
        let pairs = |measured: [f64; 4]| -> Vec<(f64, f64)> {
            measured.iter().enumerate().map(|(i, &m)| (i as f64, m)).collect()
        };
        assert_eq!(agreement(&pairs([1.0, 5.0, 6.0, 70.0])), Some(1.0));
        assert_eq!(agreement(&pairs([4.0, 3.0, 2.0, 1.0])), Some(-1.0));
        // Two neighbours changed: 1 - 6 * 2 / (4 * 15).
        assert!((agreement(&pairs([2.0, 1.0, 3.0, 4.0])).unwrap() - 0.8).abs() < 1e-12);
        assert_eq!(agreement(&pairs([1.0; 4])), None);
        assert_eq!(agreement(&[(1.0, 1.0)]), None);
    }
}
