//! V0: every id, range and number of a plan is within its bounds, so that all later rules may index freely.
//!
//! In: any `Plan` value at all, also one made of random numbers. Out: faults of the first part that has any: header
//! and tables, then text and promise, then blocks and channels, then steps (each part may index what the earlier
//! ones have checked). Sums are taken in 64 bits and compared with the limits before anything is allocated.

mod header;
mod promise;
mod steps;
mod structure;
mod text;

pub use self::text::clean_text;
use super::limits::Limits;
use super::violation::{Report, Site, Violation};
use crate::ids::{BufferId, ChannelId, RankId, StepId};
use crate::plan::Plan;

/// What V0 finds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A number of the header contradicts the others.
    #[error("the header is inconsistent: {what}")]
    Header {
        /// How.
        what: String,
    },
    /// The plan asks for too much.
    #[error("the plan has {found} {what}, more than the limit of {limit}")]
    Limit {
        /// Of what.
        what: &'static str,
        /// How much it asks for (or more).
        found: u64,
        /// How much it may.
        limit: u64,
    },
    /// An id or a range points outside its table.
    #[error("{what} points outside its table: {found} of {len}")]
    Index {
        /// Which id or range.
        what: String,
        /// Its value (of a range: its end).
        found: u64,
        /// The table's length.
        len: u64,
    },
    /// A buffer or an overlap contradicts itself.
    #[error("buffer table: {what}")]
    Buffer {
        /// How.
        what: String,
    },
    /// Blocks, sections and steps do not fit together.
    #[error("block table: {what}")]
    Blocks {
        /// How.
        what: String,
    },
    /// A channel's own entry is wrong, or one of its ends is used by a block that does not hold it.
    #[error("channel {}: {what}", channel.0)]
    Channel {
        /// Which.
        channel: ChannelId,
        /// How.
        what: String,
    },
    /// A step has a shape that no event can have.
    #[error("a step that cannot be: {what}")]
    Step {
        /// Which.
        step: StepId,
        /// How.
        what: String,
    },
    /// A place outside its buffer, at a rank without the buffer, or not to be written.
    #[error("a place that cannot be: {what}: buffer {}, cells {cell} to {last}, at rank {}", buffer.0, rank.0)]
    Place {
        /// The step.
        step: StepId,
        /// The buffer.
        buffer: BufferId,
        /// The rank.
        rank: RankId,
        /// The first cell.
        cell: u64,
        /// The last one.
        last: u64,
        /// How.
        what: String,
    },
    /// A wait that no execution can mean.
    #[error("a wait that cannot be: {what}")]
    Wait {
        /// The waiting step.
        step: StepId,
        /// What it waits for.
        target: StepId,
        /// How.
        what: &'static str,
    },
    /// A witness of no `Peer` access, or out of order.
    #[error("witness {index}: {what}")]
    Witness {
        /// Its index.
        index: usize,
        /// How.
        what: &'static str,
    },
    /// The promise names what the plan does not have.
    #[error("the promise is inconsistent: {what}")]
    Promise {
        /// How.
        what: String,
    },
    /// A text that could deceive or flood a terminal.
    #[error("{what} {why}")]
    Text {
        /// Which.
        what: String,
        /// How.
        why: String,
    },
}

impl Fault {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Fault::Header { .. } => "plan::v0_header",
            Fault::Limit { .. } => "plan::v0_limit",
            Fault::Index { .. } => "plan::v0_index",
            Fault::Buffer { .. } => "plan::v0_buffer",
            Fault::Blocks { .. } => "plan::v0_blocks",
            Fault::Channel { .. } => "plan::v0_channel",
            Fault::Step { .. } => "plan::v0_step",
            Fault::Place { .. } => "plan::v0_place",
            Fault::Wait { .. } => "plan::v0_wait",
            Fault::Witness { .. } => "plan::v0_witness",
            Fault::Promise { .. } => "plan::v0_promise",
            Fault::Text { .. } => "plan::v0_text",
        }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Fault::Header { .. } => "make the header agree with itself, e.g. `ranks` 8 for the shape 2x4",
            Fault::Limit { .. } => "use fewer ranks or coarser chunks, or raise this limit",
            Fault::Index { .. } => "the plan was damaged or made by a faulty tool: compile it again",
            Fault::Buffer { .. } => {
                "give every buffer a size that fits, one scratch, and overlaps `Send` on `Recv`"
            }
            Fault::Blocks { .. } => {
                "sort blocks by rank and position, and let their prologue, body and epilogue tile the steps in order"
            }
            Fault::Channel { .. } => {
                "send only in the channel's writer block and receive only in its reader blocks, each on its own rank"
            }
            Fault::Step { .. } => {
                "a step of data has a source and a destination; tokens stand in steps of their own"
            }
            Fault::Place { .. } => {
                "read and write cells that the buffer has at that rank, and write no `Send` buffer"
            }
            Fault::Wait { .. } => {
                "wait for a step of another block of the same rank, in this section or an earlier one"
            }
            Fault::Witness { .. } => "keep one witness for each (step, rank accessed), sorted",
            Fault::Promise { .. } => {
                "promise `Recv` blocks the plan has, each from a list of distinct `Send` blocks"
            }
            Fault::Text { .. } => "keep names and excerpts short and printable, e.g. with `clean_text`",
        }
    }
}

/// V0.
pub(super) fn check(plan: &Plan, limits: &Limits) -> Result<(), Vec<Violation>> {
    let mut faults = Faults { plan, report: Report::default() };
    header::check(&mut faults, limits);
    let mut faults = faults.next_part()?;
    text::check(&mut faults, limits);
    promise::check(&mut faults, limits);
    let mut faults = faults.next_part()?;
    structure::check(&mut faults);
    let mut faults = faults.next_part()?;
    steps::check(&mut faults, limits);
    faults.report.verdict()
}

/// What V0 says of the header alone.
pub(super) fn check_header(plan: &Plan, limits: &Limits) -> Result<(), Vec<Violation>> {
    let mut faults = Faults { plan, report: Report::default() };
    header::check(&mut faults, limits);
    faults.report.verdict()
}

/// The plan under test and what was found so far.
struct Faults<'a> {
    plan: &'a Plan,
    report: Report,
}

impl<'a> Faults<'a> {
    fn next_part(self) -> Result<Faults<'a>, Vec<Violation>> {
        self.report.verdict()?;
        Ok(Faults { plan: self.plan, report: Report::default() })
    }

    fn add(&mut self, make: impl FnOnce() -> Fault) {
        self.report.add(|| (super::Fault::Ids(make()), Vec::new()));
    }

    /// About a step that exists.
    fn at(&mut self, step: StepId, make: impl FnOnce() -> Fault) {
        self.at_all(&[(step, "")], make);
    }

    /// About steps that exist, each with what it has to do with it.
    fn at_all(&mut self, steps: &[(StepId, &str)], make: impl FnOnce() -> Fault) {
        let plan = self.plan;
        let sites = || steps.iter().map(|&(step, label)| Site::of(plan, step, label)).collect();
        self.report.add(|| (super::Fault::Ids(make()), sites()));
    }

    fn limit(&mut self, what: &'static str, found: u64, limit: u64) {
        if found > limit {
            self.add(|| Fault::Limit { what, found, limit });
        }
    }

    fn index(&mut self, what: impl FnOnce() -> String, found: u64, len: usize) -> bool {
        let len = len as u64;
        if found >= len {
            self.add(|| Fault::Index { what: what(), found, len });
        }
        found < len
    }
}
