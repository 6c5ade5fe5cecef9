//! The trace: the concrete moves of one algorithm for one world shape, in the order of the program.
//!
//! In: built by `elaborate`, every `run` already written out in place. Out: read by `graph` (proof), `lower` (steps)
//! and `validate`. The one hard idea: everything is counted in cells. `cells` (K) is the finest granularity that
//! the whole program needs; a place is (buffer, rank, first cell), cells numbered through all blocks of the buffer,
//! so that a run of chunks, of blocks, or a callee's whole buffer are all one contiguous range.
//!
//! Sequential meaning: moves happen one after another, except that moves of one `step` (same non-zero `step`
//! number, always neighbours) read what the places held before the step; several combines into one place apply in
//! order.

use std::collections::BTreeMap;
use std::sync::Arc;

use grammar::span::Span;
use plan::collective::Promise;
use plan::ids::{BufferId, RankId};
use plan::plan::Presence;

/// Index of an [`Origin`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OriginId(pub u32);

/// Index of a move in [`Trace::moves`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MoveId(pub u32);

/// The moves of an algorithm for one shape, and what they are to achieve.
#[derive(Debug, Clone)]
pub struct Trace {
    /// The algorithm's name.
    pub algorithm: String,
    /// The collective's name.
    pub collective: String,
    /// Parameters of the algorithm and their values (booleans as 0 and 1).
    pub params: Vec<(String, i64)>,
    /// Level sizes, outermost first.
    pub shape: Vec<u32>,
    /// Their product.
    pub ranks: u32,
    /// K: into how many cells every block is cut.
    pub cells: u32,
    /// Into how many chunks the algorithm itself cuts every block (its `chunks`, 1 without); divides `cells`, which
    /// callees may refine. Only for showing places as the user writes them.
    pub chunks: u32,
    /// The collective's buffers first, in the order declared, then scratch, then at most one `Signal`.
    pub buffers: Vec<Buffer>,
    /// Legal overlaps of send and receive memory, from the collective's `inplace`; empty if it declares none or
    /// the algorithm says `inplace none`. (The overlap of an `inout` with itself is not listed.)
    pub inplace: Vec<Inplace>,
    /// The moves.
    pub moves: Vec<Move>,
    /// Sources of all moves.
    pub sources: Vec<Place>,
    /// Where moves come from, interned.
    pub origins: Vec<Origin>,
    /// What every rank must hold at the end. Its buffer ids are those of `buffers` here: an `inout` buffer is
    /// named on both sides. (It outlives the moves, and may be as large.)
    pub promise: Arc<Promise>,
    /// Where the `ensures` of each clause of the promise stands.
    pub clause_spans: Vec<Span>,
    /// The `implements` clause.
    pub implements: Span,
    /// The whole algorithm's name, for errors that no move is to blame for.
    pub name_span: Span,
}

/// A buffer of the trace.
#[derive(Debug, Clone)]
pub struct Buffer {
    /// Its name; scratch of a callee is named `run.NAME`.
    pub name: String,
    /// What it is.
    pub kind: BufferKind,
    /// How many blocks, each of `Trace::cells` cells. A `Signal` has one block and uses only its first cell.
    pub blocks: u32,
    /// Where it exists.
    pub at: Presence,
    /// Where it is declared.
    pub span: Span,
}

/// What a buffer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferKind {
    /// Read only.
    In,
    /// Holds nothing at entry.
    Out,
    /// Has an entry value where some operand list of the promise names it.
    Inout,
    /// Holds nothing at entry; takes a piece of any position.
    Scratch,
    /// No data: `signal @ q = signal @ p` tells q all arrivals that p knows of. Written by union.
    Signal,
}

/// At `rank`, cells `left_cell..left_cell + cells` of `left` may be the same memory as `right_cell..` of `right`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inplace {
    /// Where.
    pub rank: RankId,
    /// An `in` buffer.
    pub left: BufferId,
    /// Its first cell.
    pub left_cell: u32,
    /// An `out` buffer.
    pub right: BufferId,
    /// Its first cell.
    pub right_cell: u32,
    /// How many cells.
    pub cells: u32,
}

/// `width` cells from `sources` to `to`.
#[derive(Debug, Clone, Copy)]
pub struct Move {
    /// Copy, combine or reduce.
    pub kind: MoveKind,
    /// First destination cell.
    pub to: Place,
    /// First of its sources in `Trace::sources`.
    pub first_source: u32,
    /// How many: 1 for copy and combine.
    pub source_count: u32,
    /// How many cells, at least 1.
    pub width: u32,
    /// Which of several channels between the same two ranks it takes, where a schedule says so.
    pub lane: u16,
    /// 0, or the number of the `step` block it belongs to.
    pub step: u32,
    /// Where it comes from.
    pub origin: OriginId,
}

/// What a move does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveKind {
    /// `to = source`.
    Copy,
    /// One copy of a multicast `x @ * = x @ p`; neighbours of the same origin belong together.
    Multicast,
    /// `to += source`: the place is the left operand; rounds once.
    Combine,
    /// `to = fold(sources)` from left to right, rounds once at the end.
    Reduce,
    /// The same, written `reduce x @ *`: in rank order, may be done in a switch.
    GatherReduce,
}

/// First cell of a range at a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// The buffer.
    pub buffer: BufferId,
    /// The rank, of the whole world.
    pub rank: RankId,
    /// The cell, counted through all blocks.
    pub cell: u32,
}

/// Where a move comes from: its text, and the `run` that led there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The move (or the `run`).
    pub span: Span,
    /// The `run` around it.
    pub parent: Option<OriginId>,
}

/// The loop variables of a move as they stood, innermost scope last; found by elaborating again. With them the
/// loops themselves, in the same order, as far as errors may want to point at one.
#[derive(Debug, Clone, Default)]
pub struct Bindings(pub Vec<(String, i64)>, pub Vec<Looped>);

/// A loop around a move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looped {
    /// Its variable.
    pub variable: String,
    /// The range as written: `0..n-2`, with `step` and `rev` if they are there.
    pub range: Span,
    /// The last value that the variable takes in this round of the loops further out.
    pub last: i64,
}

/// Chosen values of an algorithm's parameters.
pub type Params = BTreeMap<String, i64>;

impl Place {
    /// The cell `i` further on.
    #[must_use]
    pub fn plus(self, i: u32) -> Place {
        Place { cell: self.cell + i, ..self }
    }
}

impl Trace {
    /// The same without its moves, their sources and what is only there to tell where they come from.
    #[must_use]
    pub fn without_moves(&self) -> Trace {
        Trace {
            algorithm: self.algorithm.clone(),
            collective: self.collective.clone(),
            params: self.params.clone(),
            shape: self.shape.clone(),
            buffers: self.buffers.clone(),
            inplace: self.inplace.clone(),
            moves: Vec::new(),
            sources: Vec::new(),
            origins: Vec::new(),
            promise: Arc::clone(&self.promise),
            clause_spans: Vec::new(),
            ..*self
        }
    }

    /// The promise, to be changed by who makes traces.
    pub fn promise_mut(&mut self) -> &mut Promise {
        Arc::make_mut(&mut self.promise)
    }

    /// The sources of a move.
    pub fn sources(&self, mv: &Move) -> &[Place] {
        &self.sources[mv.first_source as usize..][..mv.source_count as usize]
    }

    /// Where a move comes from.
    pub fn origin(&self, mv: MoveId) -> &Origin {
        &self.origins[self.moves[mv.0 as usize].origin.0 as usize]
    }

    /// The buffer that a place names.
    pub fn buffer(&self, place: Place) -> &Buffer {
        &self.buffers[place.buffer.index()]
    }
}
