//! The chunk graph: every version of every cell, who wrote it, who reads it, what it holds.
//!
//! In: a [`Trace`] and the alias form. Out: a [`ChunkGraph`], or the faults that make the
//! program meaningless. The one hard idea: versions. A place is written several times; each write makes a version,
//! and every read names the version it sees (inside a `step`: the one before the step). Dependences are then facts
//! about versions, and a symbolic value per version is all the proof needs.

mod build;
mod ends;
mod fault;
mod forms;
mod history;
mod places;
mod promise;
mod waste;

use std::sync::Arc;

use plan::values::{ValueId, Values};

pub use self::build::{adds, arity, build, build_within};
pub use self::ends::Ends;
pub use self::fault::{Broken, Counted, Fault, FaultKind, Holds};
pub(crate) use self::forms::ends_agree;
pub use self::forms::forms_agree;
pub use self::history::{Past, contents, histories, history, versions};
pub use self::places::PlaceTable;
pub(crate) use self::places::shared;
pub use self::promise::{Proof, promise, promise_within};
pub use self::waste::{Warning, WarningKind};
use crate::trace::{MoveId, MoveKind, Trace};

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
    /// What cells hold. (Asked for when all else is gone: [`Ends`].)
    pub values: Arc<Values>,
    /// Place indices of (buffer, rank).
    pub places: PlaceTable,
    /// All versions: entry values first, then in the order written.
    pub versions: Vec<Version>,
    /// How many of `versions` are entry values. They are sorted by place; the value of entry version i is ValueId(i).
    pub entries: u32,
    /// Of each move: the version of its first cell; its other cells follow. A cell copied onto itself (through a
    /// binding or the overlap of a form) makes a version that never becomes the last one of its place.
    pub written: Vec<VersionId>,
    /// Of each move: where its reads start in `reads`.
    pub first_read: Vec<u32>,
    /// For each move, for each of its cells: the versions it reads, in the order folded (combine and signal: the
    /// destination's old version, then the source). [`arity`] says how many for each cell.
    pub reads: Vec<VersionId>,
    /// The last version of each place; [`NOTHING`] if it has none.
    last: Vec<VersionId>,
}

/// What a cell holds between two writes. (There are millions: who wrote it is found by [`ChunkGraph::writer`].)
#[derive(Debug, Clone, Copy)]
pub struct Version {
    /// The cell, an index given by `places`.
    pub place: u32,
    /// What it holds.
    pub value: ValueId,
}

/// Stands for "nothing was written there".
const NOTHING: VersionId = VersionId(u32::MAX);

impl ChunkGraph {
    /// The version that cell `i` of a move writes.
    pub fn written(&self, mv: MoveId, i: u32) -> VersionId {
        VersionId(self.written[mv.0 as usize].0 + i)
    }

    /// The versions that cell `i` of a move reads, in the order folded; `arity` is the move's [`arity`].
    pub fn read(&self, mv: MoveId, i: u32, arity: u32) -> &[VersionId] {
        &self.reads[(self.first_read[mv.0 as usize] + i * arity) as usize..][..arity as usize]
    }

    /// A version.
    pub fn version(&self, version: VersionId) -> &Version {
        &self.versions[version.0 as usize]
    }

    /// Who wrote a version; none: it is an entry value. Costs a search.
    pub fn writer(&self, version: VersionId) -> Option<MoveId> {
        // Moves write in order.
        let after = self.written.partition_point(|&first| first <= version);
        after.checked_sub(1).map(|mv| MoveId(mv as u32))
    }

    /// The last version of a place, an index given by `places`.
    #[inline]
    pub fn last(&self, place: u32) -> Option<VersionId> {
        Some(self.last[place as usize]).filter(|&last| last != NOTHING)
    }

    /// The entry version of a place, if it has one.
    pub fn entry(&self, place: u32) -> Option<VersionId> {
        let entries = &self.versions[..self.entries as usize];
        // Where all places before it have one too, as those of an input that is declared first, its number is known.
        if entries.get(place as usize).is_some_and(|version| version.place == place) {
            return Some(VersionId(place));
        }
        entries.binary_search_by_key(&place, |v| v.place).ok().map(|i| VersionId(i as u32))
    }

    /// Whether looking at all of it takes so long that a second thread is worth it.
    pub(crate) fn is_large(&self) -> bool {
        self.reads.len() > 1 << 14
    }

    /// Whether cell `i` of a move is copied onto itself, which does nothing.
    pub fn idle(&self, trace: &Trace, mv: MoveId, i: u32) -> bool {
        let m = &trace.moves[mv.0 as usize];
        let source = trace.sources[m.first_source as usize];
        source.rank == m.to.rank
            && matches!(m.kind, MoveKind::Copy | MoveKind::Multicast)
            && !adds(trace, m)
            && self.places.index(source.plus(i)) == self.places.index(m.to.plus(i))
    }
}
