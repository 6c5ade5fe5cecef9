//! What can go wrong in a run, and what is said about it.
//!
//! In: a kind, a message, and where each rank stood. Out: an error that names the rank at fault, the `.coll` line
//! that it was seen at, the line that every other rank waits at, and what to do. It is plain data, so that it travels
//! from a rank to its launcher.

use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};

/// What kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The caller asked for something that makes no sense.
    Invalid,
    /// It makes sense, but this machine or this version cannot do it.
    Unsupported,
    /// Two ranks make different calls.
    Mismatch,
    /// A rank's process ended.
    PeerDied,
    /// A rank never entered the call.
    Late,
    /// All entered, and nothing moves.
    Stalled,
    /// A connection broke.
    Transport,
    /// Not enough memory, descriptors or processes.
    Resource,
    /// Somebody stopped the run.
    Aborted,
    /// A fault of rcc itself.
    Internal,
}

/// A failed run. It reads like the [`Failure`] in it, which is boxed because an error should cost nothing where there
/// is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Error(Box<Failure>);

/// What is known about a failed run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind.
    pub kind: Kind,
    /// The ranks at fault, if known.
    pub culprits: Vec<u32>,
    /// What happened: a lower-case sentence that stands alone.
    pub message: String,
    /// Who saw it, and where it stood then.
    pub seen: Option<Position>,
    /// Where the other ranks stood, as far as known.
    pub others: Vec<Position>,
    /// What to do, if there is something better than the usual advice for the kind.
    pub help: Option<String>,
}

/// Where a rank stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The rank.
    pub rank: u32,
    /// The number of the call it is in, or was in last; 0 before the first.
    pub call: u64,
    /// What it does there.
    pub state: State,
    /// What else is known about it; may be empty.
    pub note: String,
}

/// What a rank does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is in no call.
    Outside,
    /// All its blocks have finished.
    Finished,
    /// It is at these steps, one for each block that has not finished (at most [`State::SHOWN`]).
    At(Vec<Place>),
}

/// A step that a block stands at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The block's position within its rank.
    pub block: u32,
    /// The step, numbered through the plan.
    pub step: u32,
    /// Which slice of the cells.
    pub iteration: u64,
    /// `file:line`.
    pub line: String,
    /// The text that stands there.
    pub text: String,
    /// What the step waits for, as `for …`; empty if nothing.
    pub waits: String,
}

impl State {
    /// How many blocks of one rank a report shows.
    pub const SHOWN: usize = 8;
}

impl Kind {
    /// The advice that fits every error of a kind.
    fn help(self) -> &'static str {
        match self {
            Kind::Invalid => "correct the call",
            Kind::Unsupported => "choose another algorithm, type, operator or form",
            Kind::Mismatch => "make the same call on every rank: same plan, count, type, operator and form",
            Kind::PeerDied => {
                "look for what ended that rank (its own output, or the kernel's out-of-memory killer)"
            }
            Kind::Late => "look for what keeps that rank from making the call, or allow more time",
            Kind::Stalled => "look for what keeps that rank from running, or allow more time",
            Kind::Transport => "check the connection between these ranks",
            Kind::Resource => "free some, or ask for less",
            Kind::Aborted => "run it again",
            Kind::Internal => "this is a fault of rcc: please report it, with the plan",
        }
    }
}

impl Error {
    /// An error of which no more is known.
    pub fn new(kind: Kind, message: impl Into<String>) -> Error {
        let message = message.into();
        Failure { kind, culprits: Vec::new(), message, seen: None, others: Vec::new(), help: None }.into()
    }

    /// With better advice than the usual one.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Error {
        self.help = Some(help.into());
        self
    }

    /// With a rank at fault.
    #[must_use]
    pub fn culprit(mut self, rank: u32) -> Error {
        self.culprits.push(rank);
        self
    }

    /// With the ranks at fault.
    #[must_use]
    pub fn of(mut self, culprits: Vec<u32>) -> Error {
        self.culprits = culprits;
        self
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        Error(Box::new(failure))
    }
}

impl Deref for Error {
    type Target = Failure;

    fn deref(&self) -> &Failure {
        &self.0
    }
}

impl DerefMut for Error {
    fn deref_mut(&mut self) -> &mut Failure {
        &mut self.0
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        if let Some(seen) = &self.seen {
            write!(f, "\n  seen by {seen}")?;
        }
        for other in &self.others {
            write!(f, "\n  {other}")?;
        }
        write!(f, "\n  help: {}", self.help.as_deref().unwrap_or(self.kind.help()))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { rank, call, state, note } = self;
        match state {
            State::Outside if *call == 0 => write!(f, "rank {rank} has made no call")?,
            State::Outside => write!(f, "rank {rank} is outside of any call; its last was call {call}")?,
            State::Finished => write!(f, "rank {rank} has done its part of call {call}")?,
            State::At(places) => {
                write!(f, "rank {rank} in call {call}")?;
                let separator = if places.len() > 1 { "\n    " } else { " " };
                places.iter().try_for_each(|place| write!(f, "{separator}{place}"))?;
            }
        }
        if note.is_empty() { Ok(()) } else { write!(f, "; {note}") }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { block, step, iteration, line, text, waits } = self;
        write!(f, "at {line} `{text}` (block {block}, step {step}, slice {iteration})")?;
        if !waits.is_empty() {
            write!(f, ", waiting {waits}")?;
        }
        Ok(())
    }
}
