//! The critical path: what the time of a call was spent on, in lines of the source.
//!
//! In: the records of a simulation, each with what it had waited for last. Out: [`Path`]: from the event that ended last
//! back to the start, every picosecond given to the line of one event. Iterations that were left out count as often as they
//! were, by what the path does in the period that stands for them; so the parts add up to the whole.

use plan::plan::Plan;

use super::simulate::{Record, Run, Why};
use super::work::{Time, seconds};

/// Where the time goes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Path {
    /// By line, in the order in which the path first comes to it.
    pub legs: Vec<Leg>,
    /// Seconds in which data moved.
    pub moving: f64,
    /// Seconds in which messages were through and not yet there, or the news of a free slot was.
    pub latency: f64,
    /// Seconds in which a message queued at a port behind another.
    pub queueing: f64,
    /// Seconds in which a core was not there yet.
    pub cores: f64,
    /// Messages that followed one from another.
    pub hops: u64,
}

/// What one line has of the path.
#[derive(Debug, Clone, PartialEq)]
pub struct Leg {
    /// The file, as the plan names it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// What stands there.
    pub text: String,
    /// Events of it on the path.
    pub events: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Seconds.
    pub seconds: f64,
}

/// Follows a run back from its end.
pub(super) fn path(plan: &Plan, run: &Run) -> Path {
    let mut path = Path::default();
    let mut legs: Vec<((u32, u32), Time, Leg)> = Vec::new();
    let mut at = run.last;
    let mut until = Time::MAX;
    while let Some(record) = run.records.get(at as usize) {
        let before = run.records.get(record.from as usize);
        let end = record.end.min(until);
        let from = before.map_or(0, |before| before.end).min(end);
        let moves = record.start.clamp(from, end);
        let weigh = |from: Time, to: Time| seconds(weighed(run, from, to));
        let waiting = weigh(from, moves);
        match record.why {
            Why::Message | Why::Slot => path.latency += waiting,
            Why::Core => path.cores += waiting,
            Why::Order | Why::Wait | Why::Port => path.queueing += waiting,
        }
        path.moving += weigh(moves, end);
        let times = times(run, record);
        if record.why == Why::Message {
            path.hops = path.hops.saturating_add(times);
        }
        let span = plan.spans.spans.get(plan.steps[record.step as usize].span.index());
        let key = span.map_or((u32::MAX, 0), |span| (span.file, span.line));
        let leg = match legs.iter().position(|leg| leg.0 == key) {
            Some(known) => &mut legs[known],
            None => {
                let file = plan.spans.files.get(key.0 as usize).cloned().unwrap_or_default();
                let text = span.map(|span| span.text.clone()).unwrap_or_default();
                let leg = Leg { file, line: key.1, text, events: 0, bytes: 0, seconds: 0.0 };
                legs.push((key, 0, leg));
                let last = legs.len() - 1;
                &mut legs[last]
            }
        };
        leg.1 = from;
        leg.2.events = leg.2.events.saturating_add(times);
        leg.2.bytes = leg.2.bytes.saturating_add(times.saturating_mul(record.bytes.into()));
        leg.2.seconds += weigh(from, end);
        until = from;
        // Records stand in the order of their starts, and what is waited for started before.
        if record.from >= at {
            break;
        }
        at = record.from;
    }
    legs.sort_by_key(|leg| leg.1);
    path.legs = legs.into_iter().map(|leg| leg.2).collect();
    path
}

/// A stretch of time, the part within the period left out counted as often as that was.
fn weighed(run: &Run, from: Time, to: Time) -> Time {
    let Some(skipped) = run.skipped else { return to - from };
    let within = to.min(skipped.to).saturating_sub(from.max(skipped.from));
    (to - from).saturating_add(within.saturating_mul(skipped.times))
}

/// How many events a record stands for.
fn times(run: &Run, record: &Record) -> u64 {
    match run.skipped {
        Some(skipped) if record.end > skipped.from && record.end <= skipped.to => {
            skipped.times.saturating_add(1)
        }
        _ => 1,
    }
}
