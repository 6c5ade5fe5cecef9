//! Why no rotation was found, as plain data; `diagnostics::symmetry` has the words.
//!
//! In: found by `find` and `order`. Out: told where the whole program has to be followed instead. It is no fault: most
//! of what is refused is right, and merely not alike at all ranks, or not seen to be.

use grammar::span::Span;

/// Why a program was not seen to be the same at all ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The text that stands in the way.
    pub span: Span,
    /// What is wrong with it.
    pub why: Why,
}

/// What stands in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// There is one rank only.
    OneRank,
    /// A buffer exists at one rank only.
    Absent {
        /// Its name.
        buffer: String,
    },
    /// A value that is not seen to go round with the ranks, nor to stand still.
    Value,
    /// A rank that does not go round.
    Rank,
    /// An index that does not go round as its buffer does elsewhere.
    Index,
    /// The two sides of a move go round in different ways.
    Sides,
    /// The bounds of a loop are not the same at all ranks.
    Bounds,
    /// The filter of a loop is not the same at all ranks.
    Filter,
    /// A condition is not the same at all ranks.
    Condition,
    /// A `run`: only moves of the algorithm itself are looked at.
    Run,
    /// Moves that concern one place come in the order of a variable that goes round.
    Order {
        /// The other move.
        other: Span,
    },
    /// The promise is not the same at all ranks.
    Promise,
    /// Overlaps of send and receive memory are not the same at all ranks.
    Inplace,
    /// Looking for it was given up.
    TooMuch,
}
