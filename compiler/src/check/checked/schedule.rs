//! A checked schedule: how an algorithm is to be run, for each size of a call.
//!
//! In: built by `check::schedules`. Out: read by `choice`. Numbers are within their limits, words are known. What a
//! label says of channels is not here but at the labelled statement, where its variables are (see [`Lane`]).

use std::ops::RangeInclusive;

use grammar::span::{FileId, Span};
use plan::schedule::{Protocol, Transport, Wire};

use super::{ExprId, Stmt};

/// `schedule for NAME { … }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The text it stands in.
    pub file: FileId,
    /// All of it.
    pub span: Span,
    /// What stands outside every `when`.
    pub outside: Clauses,
    /// In the order written; the first that matches wins.
    pub whens: Vec<When>,
}

/// What is said, each at most once; what is not is the compiler's to choose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clauses {
    /// Copies of the program side by side.
    pub channels: Option<u32>,
    /// How messages are encoded.
    pub protocol: Option<Protocol>,
    /// Bytes of a slice.
    pub pipeline: Option<u32>,
    /// Threads of a block.
    pub threads: Option<u32>,
    /// Transports in the order wanted.
    pub prefer: Option<Vec<Transport>>,
    /// Transports not to be used.
    pub avoid: Option<Vec<Transport>>,
    /// Multicast and gather-reduce in the switch.
    pub via_switch: bool,
    /// Elements are narrowed to this type in transit.
    pub wire: Option<Wire>,
    /// Labels whose moves take channels that are chosen for them.
    pub labels: Vec<String>,
}

/// `when size OP SIZE { … }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct When {
    /// `when size < 64 KiB`, in its canonical layout.
    pub text: String,
    /// From `when` to the closing brace.
    pub span: Span,
    /// The sizes that match, in bytes; one or two ranges, or none.
    pub sizes: Vec<RangeInclusive<u64>>,
    /// What is said then; over what stands outside.
    pub clauses: Clauses,
}

/// A labelled statement (or the body of a labelled loop) that a schedule gives channels.
#[derive(Debug, Clone)]
pub(crate) struct Lane {
    /// The label.
    pub label: String,
    /// The labelled statement.
    pub span: Span,
    /// What holds outside every `when` (0) and in the first (1), and so on, in that order; where none of them holds, as
    /// around the statement.
    pub channels: Vec<(usize, ExprId)>,
    pub body: Vec<Stmt>,
}

impl When {
    /// Whether a call of so many bytes is meant.
    pub fn matches(&self, bytes: u64) -> bool {
        self.sizes.iter().any(|sizes| sizes.contains(&bytes))
    }
}

impl Clauses {
    /// What holds where these stand in a `when`, `outside` being what stands outside: clause by clause.
    pub fn over(&self, outside: &Clauses) -> Clauses {
        Clauses {
            channels: self.channels.or(outside.channels),
            protocol: self.protocol.or(outside.protocol),
            pipeline: self.pipeline.or(outside.pipeline),
            threads: self.threads.or(outside.threads),
            prefer: self.prefer.clone().or_else(|| outside.prefer.clone()),
            avoid: self.avoid.clone().or_else(|| outside.avoid.clone()),
            via_switch: self.via_switch || outside.via_switch,
            wire: self.wire.or(outside.wire),
            labels: {
                let more = outside.labels.iter().filter(|label| !self.labels.contains(label));
                self.labels.iter().chain(more).cloned().collect()
            },
        }
    }
}
