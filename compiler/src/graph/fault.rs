//! What can be wrong with a trace, and what is merely odd, as plain data; `diagnostics::graph` has the words.
//!
//! In: found by `build`, `promise` and `waste`. Out: read by `diagnostics::graph` and by tests. Faults of one kind
//! from one line of the source are one fault with a count: a loop over a thousand ranks fails once, not a
//! thousand times.

use plan::collective::BlockRef;
use plan::ids::RankId;

use super::Form;
use crate::trace::{MoveId, Place};

/// Something wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Under which alias form.
    pub form: Form,
    /// What.
    pub kind: FaultKind,
    /// How many more there are of this kind: moves from the same line of the source or, for a promise, places.
    pub others: u32,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// `mv` reads `place`, which holds nothing.
    NothingWritten {
        /// The move that reads.
        mv: MoveId,
        /// What it reads.
        place: Place,
    },
    /// `mv` adds to `place`, which holds nothing.
    CombineIntoNothing {
        /// The move.
        mv: MoveId,
        /// Its destination.
        place: Place,
    },
    /// Two moves of one step write `place`, at least one of them plainly.
    ConflictingWrites {
        /// The earlier one.
        first: MoveId,
        /// The later one.
        second: MoveId,
        /// What both write.
        place: Place,
    },
    /// `mv` writes `place`, which is an `in` buffer's.
    InWritten {
        /// The move.
        mv: MoveId,
        /// Its destination.
        place: Place,
    },
    /// `mv` puts a value that came from position `position` of a block into `place`, a place of a user buffer at
    /// another position.
    WrongPosition {
        /// The move.
        mv: MoveId,
        /// Its destination.
        place: Place,
        /// Where it reads the value.
        source: Place,
        /// The position of the cell that the value came from, within its block.
        position: u32,
    },
    /// `mv` combines values that came from different positions of a block.
    UnequalPieces {
        /// The move.
        mv: MoveId,
        /// One operand.
        left: Place,
        /// The position that its value came from.
        left_position: u32,
        /// Another.
        right: Place,
        /// The position that its value came from.
        right_position: u32,
    },
    /// The promise is not kept.
    Promise(Box<Broken>),
    /// `mv` reads another value from `place` in place than out of place, and that is sent or promised.
    FormsDiffer {
        /// The move.
        mv: MoveId,
        /// What it reads.
        place: Place,
        /// The move that, in place, has written there.
        overwritten: Option<MoveId>,
    },
    /// At the end `rank` has not heard of `missing`'s arrival.
    Unsynchronised {
        /// Who may leave too early.
        rank: RankId,
        /// Of whom it does not know.
        missing: RankId,
        /// Of how many it does not know.
        missing_count: u32,
        /// The last move that told it anything.
        last: Option<MoveId>,
    },
    /// There are more cells, more cells are moved or more values are to be looked at than the limits allow or 32 bits
    /// can number.
    TooLarge {
        /// How many (of visits: as many as were counted before the proof was given up).
        count: u64,
        /// How many there may be.
        limit: u64,
        /// Of what.
        what: Counted,
    },
}

/// What there is too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Places.
    Places,
    /// Cells that moves read or write.
    CellMoves,
    /// Values that the proof looks at.
    Visits,
    /// Cells that become steps.
    Lowered,
}

/// A place that does not hold what it must.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The clause of the promise, an index of `Promise::clauses`.
    pub clause: u32,
    /// The place.
    pub place: Place,
    /// The move that last wrote it.
    pub last: Option<MoveId>,
    /// What it holds.
    pub holds: Holds,
    /// Promised operands that it lacks; at most [`plan::values::Mismatch::SHOWN`].
    pub missing: Vec<BlockRef>,
    /// How many it lacks in all.
    pub missing_count: u32,
    /// Operands that it has more than once; at most [`plan::values::Mismatch::SHOWN`].
    pub twice: Vec<BlockRef>,
    /// How many it has more than once in all.
    pub twice_count: u32,
    /// Entry values in it that were not promised.
    pub foreign: Vec<Place>,
}

/// What a place holds, as far as it can be told in a few words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holds {
    /// Nothing: no move wrote it.
    Nothing,
    /// One entry value.
    One(Place),
    /// A combination.
    Many,
}

impl FaultKind {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            FaultKind::NothingWritten { .. } => "coll::nothing_written",
            FaultKind::CombineIntoNothing { .. } => "coll::combine_into_nothing",
            FaultKind::ConflictingWrites { .. } => "coll::conflicting_writes",
            FaultKind::InWritten { .. } => "coll::in_written",
            FaultKind::WrongPosition { .. } => "coll::wrong_position",
            FaultKind::UnequalPieces { .. } => "coll::unequal_pieces",
            FaultKind::Promise(_) => "coll::promise",
            FaultKind::FormsDiffer { .. } => "coll::forms_differ",
            FaultKind::Unsynchronised { .. } => "coll::not_synchronised",
            FaultKind::TooLarge { .. } => "coll::too_large",
        }
    }

    /// The move at fault, if one is.
    pub fn blamed(&self) -> Option<MoveId> {
        match self {
            FaultKind::NothingWritten { mv, .. }
            | FaultKind::CombineIntoNothing { mv, .. }
            | FaultKind::ConflictingWrites { second: mv, .. }
            | FaultKind::InWritten { mv, .. }
            | FaultKind::WrongPosition { mv, .. }
            | FaultKind::UnequalPieces { mv, .. }
            | FaultKind::FormsDiffer { mv, .. } => Some(*mv),
            FaultKind::Promise(broken) => broken.last,
            FaultKind::Unsynchronised { last, .. } => *last,
            FaultKind::TooLarge { .. } => None,
        }
    }
}
