//! The same calls on this machine, to hold the model against.
//!
//! In: plans and the geometry that the model chose. Out: for each what a call takes, from the beginning of the first rank to the
//! end of the last, and how far that is to be trusted. The one hard idea: what differs from launch to launch (where in
//! physical memory buffers lie, what the machine does beside) is larger than what differs from call to call, so each plan is
//! launched several times, in turn with the others. Of a launch the lower quartile of its calls counts, of the launches the
//! fastest, what the machine does where nothing disturbs it, which is what the model speaks of; how much longer the second
//! fastest took says how far that is to be trusted. Inputs are written anew before each call: a reader must not find in its own cache what an application would
//! have changed.

use plan::verify::VerifiedPlan;
use runtime::error::Kind;
use runtime::exec::Shape;
use runtime::job::{Inputs, Job};
use runtime::launch::{self, Options};
use serde::Serialize;

use super::report::Report;
use super::subject::Subject;
use crate::args;
use crate::failure::Failure;

/// Launches of each plan.
const LAUNCHES: usize = 7;
/// Calls of a launch: enough to move so many bytes, within these bounds.
const BYTES: u64 = 64 << 20;
const CALLS: [u64; 2] = [7, 201];

/// What calls take.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Measured {
    /// Microseconds: the fastest launch's.
    #[serde(rename = "measured_us")]
    pub(super) us: f64,
    /// How much longer the second fastest took.
    #[serde(rename = "measured_spread_us")]
    pub(super) spread: f64,
}

/// Measures plans in turn.
pub(super) fn measure(plans: &[(Subject, Report)], args: &args::Explain) -> Result<Vec<Measured>, Failure> {
    let mut launches: Vec<Vec<f64>> = vec![Vec::with_capacity(LAUNCHES); plans.len()];
    for _ in 0..LAUNCHES {
        for ((subject, report), times) in plans.iter().zip(&mut launches) {
            times.push(launch(subject, report, args)?);
        }
    }
    Ok(launches.iter().map(|times| Measured::of(times)).collect())
}

/// One launch of a plan: microseconds of a call.
fn launch(subject: &Subject, report: &Report, args: &args::Explain) -> Result<f64, Failure> {
    let plan: &VerifiedPlan = &subject.plan;
    let in_place = !plan.header.forms.disjoint;
    let shape = Shape { elements: report.count, dtype: args.dtype, op: plan::dtype::Op::Sum, in_place };
    let calls = (BYTES / report.bytes.max(1)).clamp(CALLS[0], CALLS[1]);
    let job = Job {
        slot_bytes: Some(report.chosen.slice_bytes),
        slots: Some(report.chosen.slots),
        warmup: 3,
        iterations: calls as u32,
        inputs: Inputs::Anew,
        check: false,
        ..Job::new(shape)
    };
    let done = launch::run(plan, &job, &Options::default()).map_err(|error| match error.kind {
        Kind::Invalid => Failure::usage(error.to_string()),
        _ => Failure::Machine(error.to_string()),
    })?;
    Ok(quantile(done.spans.iter().map(|span| span.as_secs_f64() * 1e6).collect(), 0.25))
}

impl Measured {
    /// Of the times of launches.
    fn of(launches: &[f64]) -> Measured {
        let mut times = launches.to_vec();
        times.sort_by(f64::total_cmp);
        let us = times.first().copied().unwrap_or(0.0);
        Measured { us, spread: times.get(1).map_or(0.0, |second| second - us) }
    }
}

/// The value below which a part of all lies, between two where it falls between; 0 of none.
fn quantile(mut values: Vec<f64>, part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = part * values.len().saturating_sub(1) as f64;
    let near = |at: f64| values.get(at as usize).copied().unwrap_or(0.0);
    near(at.floor()) + (near(at.ceil()) - near(at.floor())) * at.fract()
}

/// The same times, where what cannot be told apart has one value: from the fastest on, each group is all that lie within
/// the uncertainty of the first of it and their own.
pub(super) fn tied(measured: &[Measured]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..measured.len()).collect();
    order.sort_by(|&a, &b| measured[a].us.total_cmp(&measured[b].us));
    let mut values = vec![0.0; measured.len()];
    let mut first: Option<Measured> = None;
    for at in order {
        let one = measured[at];
        let of = *first.get_or_insert(one);
        let of = if one.us - of.us > one.spread + of.spread { one } else { of };
        (first, values[at]) = (Some(of), of.us);
    }
    values
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
    use super::{Measured, agreement, quantile, tied};

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

    #[test]
    fn quantiles_lie_between_values() {
        assert_eq!(quantile(vec![4.0, 1.0, 3.0, 2.0, 5.0], 0.25), 2.0);
        assert_eq!(quantile(vec![1.0, 2.0], 0.25), 1.25);
        assert_eq!(quantile(vec![3.0], 0.75), 3.0);
        assert_eq!(quantile(Vec::new(), 0.5), 0.0);
        let measured = Measured::of(&[9.0, 1.0, 2.0, 3.0, 100.0]);
        assert_eq!((measured.us, measured.spread), (1.0, 1.0));
    }

    #[test]
    fn what_cannot_be_told_apart_is_a_tie_with_the_first_of_its_group_alone() {
        let of = |values: &[(f64, f64)]| {
            let measured: Vec<Measured> =
                values.iter().map(|&(us, spread)| Measured { us, spread }).collect();
            tied(&measured)
        };
        // 12 is within 2 of 10, 13.5 is not, though it is of 12.
        assert_eq!(of(&[(13.5, 1.0), (10.0, 1.0), (12.0, 1.0)]), [13.5, 10.0, 10.0]);
        assert_eq!(of(&[(1.0, 0.0), (2.0, 0.0)]), [1.0, 2.0]);
        assert_eq!(of(&[]), [0.0; 0]);
    }
}
