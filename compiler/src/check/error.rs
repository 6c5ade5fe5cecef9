//! What can be wrong with a program before any number is known, as plain data; `diagnostics::check` has the words.
//!
//! In: found by `check`. Out: read by `diagnostics::check` and by tests.

use grammar::span::{FileId, Span};

use super::types::Type;

/// Something wrong; `span` is the text at fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The text at fault.
    pub span: Span,
    /// What is wrong with it.
    pub kind: ErrorKind,
}

/// What a name can be the name of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// A number or truth value: a level size, a parameter, a `let`, a loop variable.
    Variable,
    /// A table.
    Table,
    /// A buffer.
    Buffer,
    /// A function.
    Function,
    /// A collective.
    Collective,
    /// An algorithm.
    Algorithm,
    /// A parameter of a collective or of an algorithm.
    Parameter,
}

/// A statement that may stand only in some places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placed {
    /// `chunks`
    Chunks,
    /// `scratch`
    Scratch,
    /// `require`
    Require,
    /// `inplace none`
    InplaceNone,
    /// `step`
    Step,
    /// `run`
    Run,
}

/// Why a statement may not stand there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    /// Inside a `for`, `if` or `step` at that place.
    Inside(Span),
    /// After the first move, `run`, `for`, `if` or `step`, which stands there.
    After(Span),
    /// A second time.
    Twice(Span),
}

/// A use of `signal` that has no meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalMisuse {
    /// `+=`
    Combined,
    /// `reduce(…)`
    Reduced,
    /// `signal[…]`
    Indexed,
    /// `signal @ q = data @ p` or the other way round.
    Mixed,
    /// Bound to a callee's buffer.
    Bound,
    /// In a promise.
    Promised,
}

/// A word that a schedule chooses from a few.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleWord {
    /// `protocol …`
    Protocol,
    /// `transport prefer …`
    Transport,
    /// `wire …`
    Wire,
    /// `64 …`
    Unit,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorKind {
    /// Nothing of that name is known here.
    UnknownName {
        /// What was looked for.
        kind: NameKind,
        /// The name.
        name: String,
        /// The known name most like it; several, if they are so alike.
        nearest: Vec<String>,
        /// What the name does stand for, if it is known as something else.
        is: Option<NameKind>,
        /// Whose parameter or buffer it should be, if it is one.
        of: Option<String>,
    },
    /// Two declarations of one name.
    DuplicateName {
        /// The name.
        name: String,
        /// The first one.
        first: Span,
    },
    /// A name that is already in scope.
    Shadowed {
        /// The name.
        name: String,
        /// The one in scope.
        outer: Span,
    },
    /// A name that the language uses itself.
    Reserved {
        /// The name.
        name: String,
    },
    /// A wrong number of arguments.
    Arity {
        /// What is called.
        name: String,
        /// How many it takes.
        expected: usize,
        /// `expected` is the least number, more are fine.
        at_least: bool,
        /// How many there are.
        found: usize,
    },
    /// An argument that is missing.
    MissingArgument {
        /// Of which algorithm or collective.
        of: String,
        /// The parameter.
        param: String,
        /// Where it is declared.
        declared: Span,
    },
    /// An argument given twice.
    ArgumentTwice {
        /// The parameter.
        param: String,
        /// The first one.
        first: Span,
    },
    /// A positional argument after a named one.
    PositionalAfterNamed,
    /// A value of another type.
    Type {
        /// What is needed.
        expected: Type,
        /// What is there.
        found: Type,
    },
    /// `name[…]` where `name` is no table.
    NotATable {
        /// The name.
        name: String,
        /// Where it is declared.
        declared: Span,
    },
    /// Functions that call one another in a circle, or algorithms that run one another.
    Recursion {
        /// Functions, not algorithms.
        functions: bool,
        /// Each one's name and the call that leads to the next; the last leads back to the first.
        cycle: Vec<(String, Span)>,
    },
    /// Too many brackets where a buffer has blocks and chunks, or chunks only.
    IndexCount {
        /// The buffer.
        buffer: String,
        /// It is declared with a number of blocks.
        blocks: bool,
        /// Where.
        declared: Span,
        /// How many brackets there are.
        found: usize,
    },
    /// A bracket after a range: `input[a..b][c]` is not one run.
    IndexAfterRange {
        /// The buffer.
        buffer: String,
    },
    /// `@ (i, j)` in a world of another number of levels.
    Coordinates {
        /// The number of levels.
        expected: usize,
        /// The number of coordinates.
        found: usize,
        /// Where the levels stand.
        declared: Span,
    },
    /// Several ranks where one is needed.
    ManyRanks {
        /// On the left side of a `+=` or of a reduction.
        destination: bool,
    },
    /// `reduce x @ r` of one rank only.
    OneRank,
    /// A statement where it may not stand.
    Misplaced {
        /// Which.
        what: Placed,
        /// Why not here.
        why: Where,
    },
    /// `self` where no rank is meant.
    SelfOutside,
    /// A use of `signal` that has no meaning.
    Signal(SignalMisuse),
    /// `to += reduce(…)`.
    CombineReduce,
    /// A buffer of the callee that nothing is bound to.
    Unbound {
        /// The callee.
        callee: String,
        /// Its unbound buffers.
        buffers: Vec<String>,
        /// Where the first is declared.
        declared: Span,
    },
    /// A buffer of the callee that is bound twice.
    BoundTwice {
        /// The buffer.
        buffer: String,
        /// The first binding.
        first: Span,
    },
    /// A write to an `in` buffer, or a binding that would let a callee write it.
    InWritten {
        /// The buffer.
        buffer: String,
        /// Where it is declared.
        declared: Span,
        /// The callee's buffer, if it is bound to one.
        bound_to: Option<String>,
    },
    /// A file without an algorithm or a collective.
    NothingToCheck {
        /// The file.
        file: FileId,
    },
    /// An algorithm whose levels do not fit those of its collective, or the ranks it is run on.
    Levels {
        /// The collective, or the algorithm that is run.
        name: String,
        /// How many levels that has.
        expected: usize,
        /// How many there are here.
        found: usize,
        /// Where its levels stand.
        declared: Span,
        /// It is a `run`.
        run: bool,
    },
    /// A collective without `ensures`.
    PromisesNothing {
        /// The collective.
        name: String,
    },
    /// The left side of an `ensures` is an `in` buffer, or the right side an `out` buffer.
    EnsuresSide {
        /// The buffer.
        buffer: String,
        /// Where it is declared.
        declared: Span,
        /// It stands on the left side.
        left: bool,
    },
    /// `inplace` that does not join an `in` with an `out` buffer.
    InplaceModes {
        /// The two buffers.
        buffers: [String; 2],
    },
    /// A second schedule for one algorithm.
    ScheduleTwice {
        /// The algorithm.
        name: String,
        /// The first one.
        first: Span,
    },
    /// A clause that stands twice at one level of a schedule, or a name twice in its list.
    ClauseTwice {
        /// Which.
        clause: String,
        /// The first one.
        first: Span,
    },
    /// A word that is none of those that may stand there.
    UnknownWord {
        /// Which kind.
        what: ScheduleWord,
        /// The word.
        word: String,
        /// The known one most like it.
        nearest: Option<String>,
        /// All that there are.
        known: Vec<String>,
    },
    /// A number of a schedule that is not within its limits.
    ScheduleNumber {
        /// Of which clause.
        clause: &'static str,
        /// The number.
        value: String,
        /// The least or the largest one that may stand there.
        limit: String,
        /// It is too small.
        small: bool,
    },
    /// A transport that is both preferred and avoided.
    TransportClash {
        /// Which.
        transport: String,
        /// The other clause.
        other: Span,
    },
    /// All transports are avoided.
    NoTransport,
    /// `when` within `when`.
    NestedWhen,
    /// A `when` that no size of a call can reach.
    NeverMatches {
        /// An earlier one that takes all its sizes, if one does alone.
        earlier: Option<Span>,
        /// There are such sizes, but earlier ones take them.
        sizes: bool,
    },
    /// A label of a schedule that says nothing of it.
    LabelSaysNothing {
        /// The label.
        name: String,
    },
    /// A label of a schedule that the algorithm does not have.
    UnknownLabel {
        /// The label.
        name: String,
        /// The algorithm's label most like it.
        nearest: Option<String>,
        /// The algorithm.
        of: String,
        /// Where it is declared.
        declared: Span,
        /// It has no labels at all.
        none: bool,
    },
    /// A label that two statements of an algorithm have.
    LabelTwice {
        /// The label.
        name: String,
        /// The first one.
        first: Span,
    },
    /// Expressions, functions, statements or runs nest too deeply.
    TooDeep {
        /// How deep they may.
        limit: u32,
    },
}

impl ErrorKind {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            ErrorKind::UnknownName { .. } => "coll::unknown_name",
            ErrorKind::DuplicateName { .. } => "coll::duplicate_name",
            ErrorKind::Shadowed { .. } => "coll::shadowed_name",
            ErrorKind::Reserved { .. } => "coll::reserved_name",
            ErrorKind::Arity { .. } => "coll::argument_count",
            ErrorKind::MissingArgument { .. } => "coll::missing_argument",
            ErrorKind::ArgumentTwice { .. } => "coll::argument_twice",
            ErrorKind::PositionalAfterNamed => "coll::positional_after_named",
            ErrorKind::Type { .. } => "coll::wrong_type",
            ErrorKind::NotATable { .. } => "coll::not_a_table",
            ErrorKind::Recursion { .. } => "coll::recursion",
            ErrorKind::IndexCount { .. } => "coll::index_count",
            ErrorKind::IndexAfterRange { .. } => "coll::index_after_range",
            ErrorKind::Coordinates { .. } => "coll::coordinate_count",
            ErrorKind::ManyRanks { .. } => "coll::many_ranks",
            ErrorKind::OneRank => "coll::one_rank",
            ErrorKind::Misplaced { .. } => "coll::misplaced_statement",
            ErrorKind::SelfOutside => "coll::self_outside",
            ErrorKind::Signal(_) => "coll::signal_use",
            ErrorKind::CombineReduce => "coll::combine_reduce",
            ErrorKind::Unbound { .. } => "coll::unbound_buffer",
            ErrorKind::BoundTwice { .. } => "coll::bound_twice",
            ErrorKind::InWritten { .. } => "coll::in_written",
            ErrorKind::NothingToCheck { .. } => "coll::nothing_to_check",
            ErrorKind::Levels { .. } => "coll::level_count",
            ErrorKind::PromisesNothing { .. } => "coll::promises_nothing",
            ErrorKind::EnsuresSide { .. } => "coll::ensures_side",
            ErrorKind::InplaceModes { .. } => "coll::inplace_modes",
            ErrorKind::ScheduleTwice { .. } => "coll::schedule_twice",
            ErrorKind::ClauseTwice { .. } => "coll::clause_twice",
            ErrorKind::UnknownWord { what: ScheduleWord::Protocol, .. } => "coll::unknown_protocol",
            ErrorKind::UnknownWord { what: ScheduleWord::Transport, .. } => "coll::unknown_transport",
            ErrorKind::UnknownWord { what: ScheduleWord::Wire, .. } => "coll::unknown_wire",
            ErrorKind::UnknownWord { what: ScheduleWord::Unit, .. } => "coll::unknown_unit",
            ErrorKind::ScheduleNumber { .. } => "coll::schedule_number",
            ErrorKind::TransportClash { .. } => "coll::transport_clash",
            ErrorKind::NoTransport => "coll::no_transport",
            ErrorKind::NestedWhen => "coll::nested_when",
            ErrorKind::NeverMatches { .. } => "coll::never_matches",
            ErrorKind::LabelSaysNothing { .. } => "coll::empty_label",
            ErrorKind::UnknownLabel { .. } => "coll::unknown_label",
            ErrorKind::LabelTwice { .. } => "coll::label_twice",
            ErrorKind::TooDeep { .. } => "coll::too_deep",
        }
    }
}
