//! Why a plan was selected, in data and in words.
//!
//! In: what was measured or predicted of each algorithm. Out: a [`Verdict`].

use std::fmt;

use compiler::cost::topology::Topology;
use compiler::pipeline::Loaded;

use super::tuning::{Entry, Row, Tuning};
use super::untold;
use crate::collective::Collective;
use crate::convention;
use crate::make::{Excluded, Made};

/// What was taken, and instead of what.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The algorithm: its full name.
    pub algorithm: String,
    /// How it is laid out, where that is not left to the model: a fragment.
    pub layout: Option<String>,
    /// What for.
    pub because: Because,
    /// All others, those that would be taken next first.
    pub others: Vec<Other>,
}

/// What an algorithm was taken for.
#[derive(Debug, Clone, PartialEq)]
pub enum Because {
    /// It was the fastest of those measured.
    Measured {
        /// Where that is written.
        source: String,
        /// For calls of this size.
        bytes: u64,
        /// Microseconds of a call.
        us: f64,
    },
    /// The model predicts it to be the fastest.
    Predicted {
        /// For which machine.
        topology: String,
        /// Microseconds of a call.
        us: f64,
    },
    /// It is the table's, and nothing was asked.
    Table,
}

/// An algorithm that was not taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Other {
    /// Its full name.
    pub algorithm: String,
    /// How it was laid out, where that was not left to the model.
    pub layout: Option<String>,
    /// Microseconds of a call, measured or predicted as for the one taken.
    pub us: Option<f64>,
    /// Why not: a fragment.
    pub why: String,
}

impl Verdict {
    pub(super) fn predicted(made: &Made, topology: &Topology) -> Verdict {
        let header = &made.compiled.plan.header;
        let taken = made.chosen.best.map(|best| best.1 * 1e6);
        let slower = made.candidates.iter().filter(|candidate| candidate.algorithm != header.algorithm);
        let slower = slower.map(|candidate| {
            let us = candidate.seconds.map(|seconds| seconds * 1e6);
            let why = match (us, taken) {
                (Some(us), Some(taken)) => slower_by("predicted", us, taken),
                _ => "the model cannot follow it".to_string(),
            };
            Other { algorithm: candidate.algorithm.clone(), layout: None, us, why }
        });
        let others = slower.chain(made.excluded.iter().cloned().map(Other::from)).collect();
        let topology = topology.name.clone();
        let because = taken.map_or(Because::Table, |us| Because::Predicted { topology, us });
        Verdict { algorithm: header.algorithm.clone(), layout: None, because, others }
    }

    pub(super) fn measured(
        tuning: &Tuning,
        row: &Row,
        taken: usize,
        excluded: Vec<Excluded>,
        loaded: &Loaded,
        collective: Collective,
    ) -> Verdict {
        let Entry { algorithm, us, .. } = &row.candidates[taken];
        let slower = row.candidates.iter().skip(taken + 1).map(|entry| Other {
            algorithm: entry.algorithm.clone(),
            layout: entry.layout(),
            us: Some(entry.us),
            why: slower_by("measured", entry.us, *us),
        });
        let mut others: Vec<Other> = excluded.into_iter().map(Other::from).chain(slower).collect();
        let told: Vec<&str> = row.candidates.iter().map(|entry| entry.algorithm.as_str()).collect();
        let why = format!("not measured in {}", tuning.source);
        others.extend(untold(loaded, collective, &told).into_iter().map(|algorithm| Other {
            algorithm,
            layout: None,
            us: None,
            why: why.clone(),
        }));
        let because = Because::Measured { source: tuning.source.clone(), bytes: row.bytes, us: *us };
        Verdict { algorithm: algorithm.clone(), layout: row.candidates[taken].layout(), because, others }
    }
}

impl From<Excluded> for Other {
    fn from(excluded: Excluded) -> Other {
        Other { algorithm: excluded.algorithm, layout: None, us: None, why: excluded.why }
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Because::Measured { source, bytes, us } => {
                write!(f, "the fastest measured for {}: {us:.2} us ({source})", convention::show(*bytes))
            }
            Because::Predicted { topology, us } => {
                write!(f, "predicted to be the fastest: {us:.2} us on {topology}")
            }
            Because::Table => write!(f, "the table's for this size"),
        }
    }
}

fn slower_by(how: &str, us: f64, taken: f64) -> String {
    let percent = if taken > 0.0 { (us / taken - 1.0) * 100.0 } else { 0.0 };
    match percent {
        percent if percent < 0.05 => format!("{how} {us:.2} us, as long"),
        percent => format!("{how} {us:.2} us, {percent:.1} % longer"),
    }
}
