//! Jobs: one collective, called some number of times by all ranks, timed and checked.
//!
//! In: a verified plan and a [`Job`]. Out: a [`Report`] (times, elements that are wrong), or the error that ended it.
//! [`threads`] runs every rank as a thread of this process; `launch` runs each as a process. Both run the same code
//! for a rank ([`rank`]) on the same shared segment.

pub mod geometry;
pub mod rank;
pub mod threads;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::geometry::Geometry;
use crate::exec::Shape;
use crate::memory::budget::Needs;

/// What to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Counts, type, operator, form.
    pub shape: Shape,
    /// S: the bytes of a slot; chosen if not given.
    pub slot_bytes: Option<u32>,
    /// k: the slots of a channel; chosen if not given.
    pub slots: Option<u32>,
    /// Calls that are made before time is taken.
    pub warmup: u32,
    /// Calls that are timed.
    pub iterations: u32,
    /// How they follow each other.
    pub inputs: Inputs,
    /// Makes a further call before and after these, and compares every element that it promises with the definition
    /// of the collective.
    pub check: bool,
    /// Which random inputs.
    pub seed: u64,
    /// For how long nothing may move in a call before the run is given up.
    pub deadline: Duration,
    /// Keeps each rank on one CPU where there are more ranks than CPUs; neighbours in rank share one. Which ranks share a
    /// CPU decides what a call takes, and what the system makes of ranks that wait for each other changes from run to run.
    pub pin: bool,
    /// For how long the others wait for a rank that has not entered a call; as long as `deadline` if not given.
    pub late: Option<Duration>,
}

/// How calls that are timed follow each other, and what becomes of the inputs between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Inputs {
    /// Each call after a barrier; inputs stay. A reader may then find in its own cache what its peer has not changed, and the time is too good.
    Kept,
    /// Each call after a barrier; inputs are written anew before that, outside of the time taken.
    Anew,
    /// Calls follow each other at once, and are timed together: there is one time of a rank, that of a call. If rewritten, what the inputs hold is
    /// stored again before each, and what that takes alone is taken off: so what a call costs whoever writes next (lines that another
    /// core has read) is in its time.
    InARow {
        /// Whether they are.
        rewritten: bool,
    },
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The slots that were used.
    pub geometry: Geometry,
    /// The memory that was used.
    pub needs: Needs,
    /// For each timed call (one of all, of calls in a row), the time that the slowest rank took.
    pub times: Vec<Duration>,
    /// For each timed call, the time from the beginning of the first rank to the end of the last; none of calls in a row.
    pub spans: Vec<Duration>,
    /// How many elements were compared.
    pub checked: u64,
    /// How many of them were wrong.
    pub wrong: u64,
    /// The first wrong one of the lowest rank that has any.
    pub first_wrong: Option<Wrong>,
}

/// An element that is not what it must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wrong {
    /// Where.
    pub rank: u32,
    /// In which buffer.
    pub buffer: String,
    /// In which of its blocks.
    pub block: u32,
    /// The element of the block.
    pub index: u64,
    /// What it is.
    pub got: String,
    /// What it must be.
    pub expected: String,
}

/// What one rank found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RankReport {
    /// For each timed call (one of all, of calls in a row), nanoseconds.
    pub times: Vec<u64>,
    /// For each timed call (but not of calls in a row), when it began, in nanoseconds of the clock that all processes of the machine share.
    pub began: Vec<u64>,
    /// How many elements were compared.
    pub checked: u64,
    /// How many of them were wrong.
    pub wrong: u64,
    /// The first.
    pub first_wrong: Option<Wrong>,
}

impl Job {
    /// One checked call out of place, with the usual deadline of 30 seconds.
    pub fn new(shape: Shape) -> Job {
        Job {
            shape,
            slot_bytes: None,
            slots: None,
            warmup: 0,
            iterations: 0,
            inputs: Inputs::Kept,
            check: true,
            seed: 1,
            pin: true,
            deadline: Duration::from_secs(30),
            late: None,
        }
    }
}

impl Report {
    /// Of all ranks, in order of rank.
    pub(crate) fn of(geometry: Geometry, needs: Needs, ranks: Vec<RankReport>) -> Report {
        let calls = ranks.iter().map(|r| r.times.len()).max().unwrap_or(0);
        let begun = ranks.iter().map(|r| r.began.len()).max().unwrap_or(0);
        let slowest =
            |call: usize| ranks.iter().filter_map(|r| r.times.get(call)).copied().max().unwrap_or(0);
        let span = |call: usize| {
            let of = |r: &RankReport| Some((*r.began.get(call)?, *r.times.get(call)?));
            let first = ranks.iter().filter_map(of).map(|(began, _)| began).min().unwrap_or(0);
            let ends = ranks.iter().filter_map(of).map(|(began, took)| began.saturating_add(took));
            ends.max().unwrap_or(0).saturating_sub(first)
        };
        Report {
            geometry,
            needs,
            times: (0..calls).map(|call| Duration::from_nanos(slowest(call))).collect(),
            spans: (0..begun).map(|call| Duration::from_nanos(span(call))).collect(),
            checked: ranks.iter().map(|r| r.checked).sum(),
            wrong: ranks.iter().map(|r| r.wrong).sum(),
            first_wrong: ranks.into_iter().find_map(|r| r.first_wrong),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_lasts_from_the_first_beginning_to_the_last_end() {
        let rank = |began: [u64; 2], times: [u64; 2]| RankReport {
            began: began.to_vec(),
            times: times.to_vec(),
            ..RankReport::default()
        };
        let needs = Needs { shared: 0, buffers: 0, scratch: 0 };
        let geometry = Geometry { slots: 1, slot_bytes: 64 };
        // The rank that begins first ends first; the slowest is neither.
        let ranks = vec![rank([100, 900], [30, 10]), rank([110, 905], [50, 40]), rank([140, 900], [25, 50])];
        let report = Report::of(geometry, needs, ranks);
        assert_eq!(report.times, [50, 50].map(Duration::from_nanos));
        assert_eq!(report.spans, [65, 50].map(Duration::from_nanos));
    }
}
