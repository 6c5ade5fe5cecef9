//! Which part of a schedule holds for a call, by its size.
//!
//! In: a checked schedule (or none), the bytes of the call if they are known. Out: a [`Choice`]: what the plan's header
//! says, the number of copies, the `when` whose channels labels take, and why the others do not hold (for reports).
//! Without bytes no `when` matches: what stands outside holds.

use grammar::span::Span;
use plan::schedule::{Protocol, Schedule};

use crate::check::checked::{self, Clauses};

/// What a schedule comes to for one call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// Copies of the program side by side; none: it is not said.
    pub copies: Option<u32>,
    /// What the plan asks of its executor.
    pub plan: Schedule,
    /// Labels whose moves take channels that are chosen for them.
    pub labels: Vec<String>,
    /// The number of the `when` that matched; none: what stands outside.
    pub when: Option<usize>,
    /// All `when`s in order, each with what became of it.
    pub tried: Vec<Tried>,
    /// There is a schedule.
    pub scheduled: bool,
}

/// A `when` and whether it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// `when size < 64 KiB`.
    pub text: String,
    /// Where it stands.
    pub span: Span,
    /// Whether it holds, or why not.
    pub verdict: Verdict,
}

/// Whether a `when` holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Holds,
    /// The size is another one.
    OtherSize,
    /// It matches, but an earlier one does too.
    Later,
    /// No size is given.
    NoSize,
}

/// What holds for a call of `bytes` (one block times its number of blocks, of the larger of send and receive memory).
pub fn choose(schedule: Option<&checked::Schedule>, bytes: Option<u64>) -> Choice {
    let Some(schedule) = schedule else { return Choice::default() };
    let when = bytes.and_then(|bytes| schedule.whens.iter().position(|when| when.matches(bytes)));
    let tried = schedule.whens.iter().enumerate().map(|(i, one)| {
        let verdict = match bytes {
            None => Verdict::NoSize,
            Some(_) if when == Some(i) => Verdict::Holds,
            Some(bytes) if one.matches(bytes) => Verdict::Later,
            Some(_) => Verdict::OtherSize,
        };
        Tried { text: one.text.clone(), span: one.span, verdict }
    });
    let tried = tried.collect();
    let said = match when {
        Some(when) => schedule.whens[when].clauses.over(&schedule.outside),
        None => schedule.outside.clone(),
    };
    let labels = said.labels.clone();
    Choice { copies: said.channels, plan: of_plan(said), labels, when, tried, scheduled: true }
}

impl Choice {
    /// Which part holds, in a few words; none without a schedule.
    pub fn said(&self) -> Option<&str> {
        match self.when {
            Some(when) => self.tried.get(when).map(|tried| tried.text.as_str()),
            None if !self.scheduled => None,
            None if self.tried.is_empty() => Some("for all sizes"),
            None => Some("outside every `when`"),
        }
    }
}

fn of_plan(said: Clauses) -> Schedule {
    Schedule {
        protocol: said.protocol.unwrap_or(Protocol::Auto),
        slice_bytes: said.pipeline,
        threads: said.threads,
        prefer: said.prefer.unwrap_or_default(),
        avoid: said.avoid.unwrap_or_default(),
        via_switch: said.via_switch,
        wire: said.wire,
    }
}
