//! What a rule reports: plain data, with a text that stands alone.
//!
//! In: a rule's fault and the steps it is about. Out: [`Violation`]. The plan is consumed by a failed `verify`, so a
//! violation carries all that its text needs: rank, block, step, what it does, `.coll` line. A rule may find a million faults;
//! [`Report`] keeps the first [`Report::SHOWN`] and counts the rest, and builds nothing for those.

use std::fmt;

use super::{channels, deadlock, ids, lifetime, races, symbolic, target};
use crate::display::step_alone;
use crate::ids::{BlockId, ChannelId, RankId, StepId};
use crate::plan::{ChannelKind, Plan, Section};

/// One way in which a plan is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What is wrong.
    pub fault: Fault,
    /// Where: the step at fault first.
    pub sites: Vec<Site>,
}

/// What is wrong, by rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// V0: ids, ranges, limits.
    Ids(ids::Fault),
    /// V1: channels.
    Channels(channels::Fault),
    /// V2: deadlock.
    Deadlock(deadlock::Fault),
    /// V3: races.
    Races(races::Fault),
    /// V4: values.
    Symbolic(symbolic::Fault),
    /// V5: user memory.
    Lifetime(lifetime::Fault),
    /// V7: the target's limits.
    Target(target::Fault),
    /// How many more violations of this rule there are.
    More {
        /// The code of the last one shown.
        code: &'static str,
        /// How many are not shown.
        count: usize,
    },
}

/// A step, as people find it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// What this step has to do with it.
    pub label: String,
    /// Its rank.
    pub rank: RankId,
    /// Its block's position among the rank's blocks.
    pub block: u32,
    /// The section it is in.
    pub section: Section,
    /// Its number within the section, from 0.
    pub index: u32,
    /// The step.
    pub step: StepId,
    /// What it does, as `display` shows it.
    pub does: String,
    /// Where it comes from.
    pub line: Option<Line>,
}

/// A line of a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The file's name.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// The first line of the move.
    pub text: String,
}

impl Fault {
    /// The stable code that `rcc explain` knows.
    pub fn code(&self) -> &'static str {
        match self {
            Fault::Ids(fault) => fault.code(),
            Fault::Channels(fault) => fault.code(),
            Fault::Deadlock(fault) => fault.code(),
            Fault::Races(fault) => fault.code(),
            Fault::Symbolic(fault) => fault.code(),
            Fault::Lifetime(fault) => fault.code(),
            Fault::Target(fault) => fault.code(),
            Fault::More { code, .. } => code,
        }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Fault::Ids(fault) => fault.help(),
            Fault::Channels(fault) => fault.help(),
            Fault::Deadlock(fault) => fault.help(),
            Fault::Races(fault) => fault.help(),
            Fault::Symbolic(fault) => fault.help(),
            Fault::Lifetime(fault) => fault.help(),
            Fault::Target(fault) => fault.help(),
            Fault::More { .. } => "mend the ones shown first: the others often follow from them",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Ids(fault) => fault.fmt(f),
            Fault::Channels(fault) => fault.fmt(f),
            Fault::Deadlock(fault) => fault.fmt(f),
            Fault::Races(fault) => fault.fmt(f),
            Fault::Symbolic(fault) => fault.fmt(f),
            Fault::Lifetime(fault) => fault.fmt(f),
            Fault::Target(fault) => fault.fmt(f),
            Fault::More { count: 1, .. } => f.write_str("one more violation of this rule is not shown"),
            Fault::More { count, .. } => write!(f, "{count} more violations of this rule are not shown"),
        }
    }
}

impl Violation {
    /// The stable code that `rcc explain` knows.
    pub fn code(&self) -> &'static str {
        self.fault.code()
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        self.fault.help()
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code(), self.fault)?;
        for site in &self.sites {
            write!(f, "\n  {site}")?;
        }
        write!(f, "\n  help: {}", self.help())
    }
}

impl std::error::Error for Violation {}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.label.is_empty() {
            write!(f, "{}: ", self.label)?;
        }
        let section = match self.section {
            Section::Prologue => "prologue step",
            Section::Body => "step",
            Section::Epilogue => "epilogue step",
        };
        write!(f, "rank {}, block {}, {section} {}: {}", self.rank.0, self.block, self.index, self.does)?;
        match &self.line {
            Some(line) => write!(f, " ({}:{}: `{}`)", line.file, line.line, line.text),
            None => Ok(()),
        }
    }
}

impl Site {
    /// The site of a step. Total: also for plans that V0 has not passed, as long as the step exists.
    pub(super) fn of(plan: &Plan, step: StepId, label: impl Into<String>) -> Site {
        let at = plan.blocks.partition_point(|block| block.epilogue.end <= step.0);
        let (mut rank, mut position, mut section, mut index) = (RankId(0), 0, Section::Body, step.0);
        let mut does = "?".to_string();
        if let Some(block) = plan.blocks.get(at) {
            (rank, position) = (block.rank, block.position);
            if step.index() < plan.steps.len() {
                does = step_alone(plan, BlockId::new(at), step);
            }
            for candidate in Section::ALL {
                let range = block.section(candidate);
                if range.contains(&step.0) {
                    (section, index) = (candidate, step.0 - range.start);
                }
            }
        }
        let line = plan.steps.get(step.index()).and_then(|step| {
            let span = plan.spans.spans.get(step.span.index())?;
            let file = plan.spans.files.get(span.file as usize)?.clone();
            Some(Line { file, line: span.line, column: span.column, text: span.text.clone() })
        });
        Site { label: label.into(), rank, block: position, section, index, step, does, line }
    }
}

/// A channel and its ends, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelName {
    /// The channel.
    pub channel: ChannelId,
    /// Slots or counter.
    pub kind: ChannelKind,
    /// (rank, block) of the writer.
    pub writer: (RankId, u32),
    /// (rank, block) of the reader in question.
    pub reader: (RankId, u32),
}

impl ChannelName {
    pub(super) fn of(plan: &Plan, channel: ChannelId, reader: BlockId) -> ChannelName {
        let ends = &plan.channels[channel.index()];
        let end = |block: BlockId| {
            let block = &plan.blocks[block.index()];
            (block.rank, block.position)
        };
        ChannelName { channel, kind: ends.kind, writer: end(ends.writer), reader: end(reader) }
    }
}

impl fmt::Display for ChannelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ChannelKind::Slots => "channel",
            ChannelKind::Counter => "token channel",
        };
        let ((from, from_block), (to, to_block)) = (self.writer, self.reader);
        write!(
            f,
            "{kind} {} (rank {} block {from_block} → rank {} block {to_block})",
            self.channel.0, from.0, to.0
        )
    }
}

/// The violations of one rule.
#[derive(Debug, Default)]
pub(super) struct Report {
    shown: Vec<Violation>,
    count: usize,
}

impl Report {
    /// How many violations are shown.
    pub(super) const SHOWN: usize = 20;

    /// One more; `make` is called only if it will be shown.
    pub(super) fn add(&mut self, make: impl FnOnce() -> (Fault, Vec<Site>)) {
        self.count += 1;
        if self.count <= Report::SHOWN {
            let (fault, sites) = make();
            self.shown.push(Violation { fault, sites });
        }
    }

    /// What another one has found, after what this one has.
    pub(super) fn append(&mut self, other: Report) {
        self.count += other.count;
        let room = Report::SHOWN.saturating_sub(self.shown.len());
        self.shown.extend(other.shown.into_iter().take(room));
    }

    /// Whether nothing was found.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether enough are known for the rule to give up.
    pub(super) fn is_full(&self) -> bool {
        self.count >= Report::SHOWN
    }

    /// The verdict of the rule.
    pub(super) fn verdict(mut self) -> Result<(), Vec<Violation>> {
        let Some(last) = self.shown.last() else { return Ok(()) };
        if self.count > Report::SHOWN {
            let code = last.code();
            let fault = Fault::More { code, count: self.count - Report::SHOWN };
            self.shown.push(Violation { fault, sites: Vec::new() });
        }
        Err(self.shown)
    }
}
