//! The chunk graph: every version of every cell, who wrote it, who reads it, what it holds.
//!
//! In: a [`Trace`](crate::trace::Trace) and the alias form. Out: a [`ChunkGraph`], or the faults that make the
//! program meaningless. The one hard idea: versions. A place is written several times; each write makes a version,
//! and every read names the version it sees (inside a `step`: the one before the step). Dependences are then facts
//! about versions, and a symbolic value per version is all the proof needs.

use plan::values::{ValueId, Values};

use crate::trace::MoveId;

/// Index of a [`Version`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionId(pub u32);

/// Which memory is shared between send and receive side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// None.
    Disjoint,
    /// As the collective's `inplace` declares.
    Same,
}

/// All versions of all places.
#[derive(Debug)]
pub struct ChunkGraph {
    /// The alias form it was built for.
    pub form: Form,
    /// What cells hold.
    pub values: Values,
    /// Place indices of (buffer, rank).
    pub places: PlaceTable,
    /// All versions: entry values first, then in the order written.
    pub versions: Vec<Version>,
    /// Of each move: the version of its first cell; its other cells follow.
    pub written: Vec<VersionId>,
    /// Of each move: where its reads start in `reads`.
    pub first_read: Vec<u32>,
    /// For each move, for each of its cells: the versions it reads, in the order folded (combine: the destination's
    /// old version, then the source).
    pub reads: Vec<VersionId>,
    /// The last version of each place.
    pub last: Vec<Option<VersionId>>,
}

/// What a cell holds between two writes.
#[derive(Debug, Clone, Copy)]
pub struct Version {
    /// The cell, an index given by `places`.
    pub place: u32,
    /// What it holds.
    pub value: ValueId,
    /// Who wrote it; none: it is an entry value.
    pub writer: Option<MoveId>,
}

/// Dense numbering of cells: `base(buffer, rank) + cell`. Under [`Form::Same`] overlapping cells share an index.
#[derive(Debug)]
pub struct PlaceTable;
