//! The plan: per-rank step programs, with the promise they keep. Plain data in flat arrays.
//!
//! In: built by the compiler's lowering, loaded from a file, or written by hand in tests. Out: read by `verify`,
//! `interpret`, `display` and every executor. `docs/plan.md` is its meaning. The one hard idea: no byte offset
//! stands anywhere. A place is (buffer, cells a..b); `layout` turns cells to bytes once the counts are known.
//!
//! Steps, operands and waits lie in flat arrays (a ring over a thousand ranks has millions of them); a `Step`
//! holds ranges of the other two, to be read through `Plan::src`, `Plan::dst` and `Plan::waits`.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::collective::Promise;
use crate::dtype::Op;
use crate::ids::{BlockId, BufferId, ChannelId, RankId, SpanId, StepId};
use crate::pre::Pre;
use crate::schedule::Schedule;

/// A schedule of one collective for one world shape: one program per virtual rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What it is of.
    pub header: Header,
    /// The buffers that places name.
    pub buffers: Vec<Buffer>,
    /// Under the alias form `same`: what lies on what. Empty if `header.forms.same` is false.
    pub overlaps: Vec<Overlap>,
    /// The channels.
    pub channels: Vec<Channel>,
    /// Reader blocks of all channels, addressed by `Channel::readers`.
    pub readers: Vec<BlockId>,
    /// All blocks, sorted by rank, then by position.
    pub blocks: Vec<Block>,
    /// All steps, grouped by block, then by section.
    pub steps: Vec<Step>,
    /// Sources and destinations of all steps.
    pub operands: Vec<Operand>,
    /// Waits of all steps: this step starts only after those steps have finished (same iteration).
    pub waits: Vec<StepId>,
    /// For each step with a `Peer` operand, the tokens that fence it; sorted by step.
    pub witnesses: Vec<Witness>,
    /// What every rank holds at the end.
    pub promise: Promise,
    /// Where each step comes from.
    pub spans: SpanTable,
}

/// What a plan is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The algorithm's name.
    pub algorithm: String,
    /// The collective's name.
    pub collective: String,
    /// Parameters of the algorithm and their values.
    pub params: Vec<(String, i64)>,
    /// Level sizes of the world, outermost first; their product is `ranks`.
    pub shape: Vec<u32>,
    /// The number of virtual ranks.
    pub ranks: u32,
    /// K: into how many cells every block is cut.
    pub cells: u32,
    /// C: how many copies of the program run side by side, each on its part of every cell.
    pub copies: u32,
    /// Under which overlaps of send and receive memory it may be called.
    pub forms: Forms,
    /// Whether operators with an outer part (avg) are served: some step carries `post`, or no reduction of two or
    /// more operands is promised. If false, a call with such an operator is refused.
    pub serves_post: bool,
    /// Whether operators with an inner part (premulsum) are served: every step that combines carries in `pre` which of
    /// its sources are entry values. If false, none carries anything, and a call with such an operator is refused.
    pub serves_pre: bool,
    /// Scratch cells of each rank, `ranks` entries.
    pub scratch_cells: Vec<u32>,
    /// The least number of slots per channel for which the plan is free of deadlock (condition D).
    pub k_min: u32,
    /// How it asks to be run.
    pub schedule: Schedule,
    /// What has been proved of it; never trusted on load (`verify` finds out anew).
    pub proof: ProofStatus,
}

/// The alias forms a plan serves; at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forms {
    /// Send and receive memory are apart.
    pub disjoint: bool,
    /// They overlap as `Plan::overlaps` says.
    pub same: bool,
}

/// How the send and receive memory of a call lie to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Form {
    /// Apart (out of place).
    Disjoint,
    /// As `Plan::overlaps` says (in place).
    Same,
}

impl Form {
    /// Both.
    pub const ALL: [Form; 2] = [Form::Disjoint, Form::Same];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Form::Disjoint => "disjoint",
            Form::Same => "same",
        }
    }
}

impl Header {
    /// Whether calls with an operator are served.
    pub fn serves(&self, op: Op) -> bool {
        (self.serves_post || !op.has_post()) && (self.serves_pre || op.factor().is_none())
    }
}

impl Forms {
    /// Whether `form` is among them.
    pub fn serves(self, form: Form) -> bool {
        match form {
            Form::Disjoint => self.disjoint,
            Form::Same => self.same,
        }
    }
}

/// What has been proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProofStatus {
    /// Every rank was followed.
    AllRanks,
    /// One rank of each orbit of a checked automorphism was followed.
    BySymmetry,
    /// Nothing.
    None,
}

/// A buffer of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// The name in the source.
    pub name: String,
    /// Whose memory it is.
    pub role: Role,
    /// How many blocks it has; each is `header.cells` cells. For scratch: 0 (see `header.scratch_cells`).
    pub blocks: u32,
    /// Where it exists.
    pub at: Presence,
}

/// Whose memory a buffer is, and what may be done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// The caller's, read only (`in`, or the entry side of an `inout`).
    Send,
    /// The caller's, holds nothing at entry (`out`, or the exit side of an `inout`).
    Recv,
    /// Working space of the call; every cell is as large as the largest.
    Scratch,
}

/// At which ranks a buffer exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Presence {
    /// At all.
    All,
    /// At one.
    One(RankId),
}

impl Presence {
    /// Whether the buffer exists at `rank`.
    pub fn holds(self, rank: RankId) -> bool {
        match self {
            Presence::All => true,
            Presence::One(at) => at == rank,
        }
    }
}

/// Under `same`, at `rank`: cells `left_cell..left_cell + cells` of `left` (a `Send` buffer) are the same memory
/// as cells `right_cell..` of `right` (a `Recv` buffer). Both starts lie at the same position in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overlap {
    /// Where.
    pub rank: RankId,
    /// A `Send` buffer.
    pub left: BufferId,
    /// Its first cell.
    pub left_cell: u32,
    /// A `Recv` buffer.
    pub right: BufferId,
    /// Its first cell.
    pub right_cell: u32,
    /// How many.
    pub cells: u32,
}

/// A FIFO from one block to one block on each of one or more ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    /// The one writer.
    pub writer: BlockId,
    /// Its readers: a range of `Plan::readers`, at least one, each on a rank of its own.
    pub readers: Range<u32>,
    /// What a message is.
    pub kind: ChannelKind,
}

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChannelKind {
    /// k slots of S bytes.
    Slots,
    /// A count without payload or credit: tokens (READY, DONE, signals). Never elided.
    Counter,
}

/// A sequential thread of control.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Whose.
    pub rank: RankId,
    /// Its place among the rank's blocks, from 0.
    pub position: u32,
    /// Run once, first. Holds only tokens (`Counter` operands).
    pub prologue: Range<u32>,
    /// Run for each slice.
    pub body: Range<u32>,
    /// Run once, last. Holds only tokens.
    pub epilogue: Range<u32>,
}

/// A step: fold the sources from left to right, round once, store to every destination. `w` times, one cell after
/// the other; each time is one event (plan.md §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// First operand: the sources, then the destinations.
    pub operands: u32,
    /// How many sources.
    pub sources: u16,
    /// How many destinations.
    pub destinations: u16,
    /// First wait.
    pub waits: u32,
    /// How many waits.
    pub wait_count: u16,
    /// Round after each operand (several `+=` fused), not once at the end.
    pub round_each: bool,
    /// Apply the operator's outer part (avg: divide by the number of operands promised) before the last rounding.
    pub post: bool,
    /// The sources that are entry values, if there are several sources: the operator's inner part (premulsum: multiply by
    /// the factor) acts on them before they are combined.
    pub pre: Pre,
    /// How many cells, at least 1. Tokens: 1.
    pub width: u32,
    /// Where it comes from.
    pub span: SpanId,
}

/// A source or a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Operand {
    /// A message: received if a source, sent if a destination.
    Channel(ChannelId),
    /// Cells of this rank, from `cell` on.
    Local {
        /// The buffer.
        buffer: BufferId,
        /// First cell, counted through all blocks of the buffer.
        cell: u32,
    },
    /// Cells of another rank's registered memory, from `cell` on.
    Peer {
        /// Whose.
        rank: RankId,
        /// The buffer.
        buffer: BufferId,
        /// First cell.
        cell: u32,
    },
}

/// The tokens that fence a `Peer` access: `ready` (a step of the accessing rank that receives the owner's READY,
/// ordered before it) and `done` (one that sends DONE to the owner, ordered after it).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    /// The step with the `Peer` operand.
    pub step: StepId,
    /// The rank accessed.
    pub owner: RankId,
    /// Receives READY.
    pub ready: StepId,
    /// Sends DONE.
    pub done: StepId,
}

/// Source positions, interned.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpanTable {
    /// Names of the source files.
    pub files: Vec<String>,
    /// The positions.
    pub spans: Vec<SourceSpan>,
}

/// A position in a source file and the text that stands there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SourceSpan {
    /// Index into `SpanTable::files`.
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// The first line of the move, trimmed and at most 120 characters.
    pub text: String,
    /// The `run` that led here.
    pub parent: Option<SpanId>,
}

/// The three parts of a block's program. Messages and waits never cross from one to an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// Run once, first.
    Prologue,
    /// Run for each slice.
    Body,
    /// Run once, last.
    Epilogue,
}

impl Section {
    /// All of them, in the order they run.
    pub const ALL: [Section; 3] = [Section::Prologue, Section::Body, Section::Epilogue];
}

impl Block {
    /// The steps of a section.
    pub fn section(&self, section: Section) -> Range<u32> {
        match section {
            Section::Prologue => self.prologue.clone(),
            Section::Body => self.body.clone(),
            Section::Epilogue => self.epilogue.clone(),
        }
    }
}

impl Plan {
    /// A plan in which nobody does anything yet, and nothing is promised.
    pub fn empty(header: Header, buffers: Vec<Buffer>, spans: SpanTable) -> Plan {
        Plan {
            header,
            buffers,
            overlaps: Vec::new(),
            channels: Vec::new(),
            readers: Vec::new(),
            blocks: Vec::new(),
            steps: Vec::new(),
            operands: Vec::new(),
            waits: Vec::new(),
            witnesses: Vec::new(),
            promise: Promise::default(),
            spans,
        }
    }

    /// Blocks of the larger of send and receive memory, at the rank where that is largest: the size of a call is so many times
    /// the bytes of a block.
    pub fn call_blocks(&self) -> u64 {
        let side = |rank: RankId, role: Role| -> u64 {
            let here = self.buffers.iter().filter(|buffer| buffer.role == role && buffer.at.holds(rank));
            here.map(|buffer| u64::from(buffer.blocks)).sum()
        };
        let ranks = (0..self.header.ranks).map(RankId);
        ranks.map(|rank| side(rank, Role::Send).max(side(rank, Role::Recv))).max().unwrap_or(0)
    }

    /// The sources of a step, in the order they are folded.
    pub fn src(&self, step: &Step) -> &[Operand] {
        &self.operands[step.operands as usize..][..step.sources as usize]
    }

    /// The destinations of a step.
    pub fn dst(&self, step: &Step) -> &[Operand] {
        &self.operands[step.operands as usize + step.sources as usize..][..step.destinations as usize]
    }

    /// The steps that a step waits for.
    pub fn waits(&self, step: &Step) -> &[StepId] {
        &self.waits[step.waits as usize..][..step.wait_count as usize]
    }

    /// The steps of a range, with their ids.
    pub fn steps(&self, range: &Range<u32>) -> impl Iterator<Item = (StepId, &Step)> {
        (range.start..range.end).map(|i| (StepId(i), &self.steps[i as usize]))
    }

    /// The reader blocks of a channel.
    pub fn readers(&self, channel: &Channel) -> &[BlockId] {
        &self.readers[channel.readers.start as usize..channel.readers.end as usize]
    }

    /// The blocks of a rank.
    pub fn blocks_of(&self, rank: RankId) -> &[Block] {
        let start = self.blocks.partition_point(|b| b.rank < rank);
        let end = self.blocks.partition_point(|b| b.rank <= rank);
        &self.blocks[start..end]
    }
}
