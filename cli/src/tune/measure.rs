//! Candidates of one call, measured in turn.
//!
//! In: a cell, its candidates. Out: a row of a tuning file, fastest first. In each round every candidate is launched twice: for calls in a row whose
//! inputs stay, and for some whose inputs are stored again before each, where what a plan costs the caller's next writing counts (much, where
//! peers have read his memory). Both count alike: the round's figure is their geometric mean, of what a call takes the slowest rank. (Calls
//! from a root would run into each other: there it is the median of calls after a barrier, with new inputs.) The candidate's figure is the median of
//! its rounds.

use std::os::fd::AsFd;

use rcc::collective::Collective;
use rcc::select::Selected;
use rcc::select::tuning::{Entry, Row};
use runtime::error::Kind;
use runtime::exec::Shape;
use runtime::job::{Inputs, Job};
use runtime::launch::{self, Options, StopSignals};

use super::cells::Cell;
use crate::failure::Failure;

/// Calls of a launch: enough to move so many bytes, within these bounds.
const BYTES: u64 = 32 << 20;
const CALLS: [u64; 2] = [5, 1001];

/// Measures a cell.
pub(super) fn measure(
    cell: &Cell,
    candidates: Vec<(Entry, Selected)>,
    rounds: u32,
    stop: &StopSignals,
) -> Result<Row, Failure> {
    let mut times: Vec<Vec<f64>> = vec![Vec::with_capacity(rounds as usize); candidates.len()];
    for turn in 0..rounds as usize {
        // Not always the same one after the same other.
        for at in 0..candidates.len() {
            let at = (at + turn) % candidates.len();
            times[at].push(round(cell, &candidates[at].1, turn as u64, stop)?);
        }
    }
    let mut entries: Vec<Entry> = candidates.into_iter().map(|(entry, _)| entry).collect();
    for (entry, mut times) in entries.iter_mut().zip(times) {
        times.sort_by(f64::total_cmp);
        entry.us = quantile(&times, 0.5);
        entry.spread = quantile(&times, 0.75) - quantile(&times, 0.25);
    }
    entries.sort_by(|a, b| a.us.total_cmp(&b.us));
    let ask = &cell.ask;
    Ok(Row {
        collective: ask.collective,
        ranks: ask.ranks,
        bytes: ask.bytes,
        element: ask.dtype.size(),
        registered: ask.registered,
        candidates: entries,
    })
}

/// One round of a candidate: microseconds of a call.
fn round(cell: &Cell, selected: &Selected, seed: u64, stop: &StopSignals) -> Result<f64, Failure> {
    let took = |inputs| launch(cell, selected, inputs, seed, stop);
    if cell.ask.root.is_some() {
        return took(Inputs::Anew);
    }
    let kept = took(Inputs::InARow { rewritten: false })?;
    let rewritten = took(Inputs::InARow { rewritten: true })?;
    Ok((kept * rewritten).sqrt())
}

/// One launch: microseconds of a call.
fn launch(
    cell: &Cell,
    selected: &Selected,
    inputs: Inputs,
    seed: u64,
    stop: &StopSignals,
) -> Result<f64, Failure> {
    let ask = &cell.ask;
    let in_place = ask.collective == Collective::Broadcast;
    let shape = Shape { elements: ask.elements, dtype: cell.dtype, op: ask.op, in_place };
    let calls = (BYTES / ask.bytes.max(1)).clamp(CALLS[0], CALLS[1]);
    let job = Job {
        slots: Some(selected.geometry.slots),
        slot_bytes: Some(selected.geometry.slot_bytes),
        warmup: 2,
        iterations: calls as u32,
        inputs,
        check: true,
        seed,
        ..Job::new(shape)
    };
    let options = Options { stop: Some(stop.as_fd()), ..Options::default() };
    let report = launch::run(selected.plan(), &job, &options).map_err(|error| match error.kind {
        Kind::Invalid => Failure::usage(error.to_string()),
        _ => Failure::Machine(error.to_string()),
    })?;
    if report.wrong > 0 {
        let name = &selected.plan().header.algorithm;
        return Err(Failure::Machine(format!("{name} gave {} wrong elements: not tuned", report.wrong)));
    }
    let mut times: Vec<f64> = report.times.iter().map(|time| time.as_secs_f64() * 1e6).collect();
    times.sort_by(f64::total_cmp);
    Ok(quantile(&times, 0.5))
}

/// The value below which a part of all lies, between two where it falls between; 0 of none.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let at = part * sorted.len().saturating_sub(1) as f64;
    let near = |at: f64| sorted.get(at as usize).copied().unwrap_or(0.0);
    near(at.floor()) + (near(at.ceil()) - near(at.floor())) * at.fract()
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn medians_lie_between_two() {
        assert_eq!(quantile(&[1.0, 2.0, 10.0], 0.5), 2.0);
        assert_eq!(quantile(&[1.0, 2.0], 0.5), 1.5);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }
}
