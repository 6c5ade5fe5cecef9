//! What can be wrong with a program for one shape, as plain data; `diagnostics::elaborate` has the words.
//!
//! In: found by `elaborate`. Out: read by `diagnostics::elaborate` and by whoever skips excluded shapes. Loop
//! variables are collected while the error leaves the loops, so a move that is right pays nothing for them.

use grammar::span::Span;

/// Why there is no trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// A `require` is false: the algorithm (or one that it runs) is not made for this shape and these parameters.
    Excluded {
        /// What the `require` says.
        why: String,
        /// The `require`.
        span: Span,
        /// The runs that led there, outermost first.
        runs: Vec<Span>,
        /// Which algorithm, for which shape.
        world: Box<World>,
    },
    /// Something wrong.
    Fault(Box<Fault>),
}

/// Something wrong, and the values that made it so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// The text at fault.
    pub span: Span,
    /// The move, promise or run that it lies in.
    pub within: Option<Span>,
    /// Variables of the algorithm at fault as they stood, innermost last.
    pub vars: Vec<Var>,
    /// The algorithm at fault and its shape.
    pub world: World,
    /// The runs that led there, outermost first.
    pub runs: Vec<Span>,
}

/// An algorithm (or collective) and the shape it stood in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct World {
    /// Its name.
    pub algorithm: String,
    /// Names and sizes of its levels.
    pub levels: Vec<(String, u32)>,
    /// Its parameters.
    pub params: Vec<(String, i64)>,
}

/// A variable as it stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Var {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: i64,
    /// Its binder or `let`.
    pub span: Span,
    /// What bound it.
    pub kind: VarKind,
}

/// What bound a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VarKind {
    /// A binder of a `for` (or of a sum, a reduction, a list).
    Loop {
        /// Its least value.
        least: i64,
        /// Its greatest value.
        greatest: i64,
        /// The value of its last turn: the least, if it runs backwards.
        last: i64,
        /// Its range as written.
        range: Span,
        /// The level whose size bounds it, if one does.
        level: Option<String>,
    },
    /// A `let`.
    Let,
}

/// What takes part in a count of places that is too large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// `chunks`, or the `run` whose callee needs it.
    pub span: Span,
    /// Into how many cells it cuts a block.
    pub cells: u64,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// A rank that does not exist.
    RankOutOfRange {
        /// The rank (or, of a range, the end).
        value: i64,
        /// How many there are.
        ranks: u32,
        /// It is the end of a range, which may be one past the last.
        end: bool,
    },
    /// A coordinate that its level does not have.
    CoordinateOutOfRange {
        /// The coordinate.
        value: i64,
        /// The level.
        level: String,
        /// Its size.
        size: u32,
    },
    /// A rank parameter of a callee or collective that is no rank of it.
    RankArgument {
        /// The parameter.
        param: String,
        /// Its value.
        value: i64,
        /// How many ranks there are.
        ranks: u32,
        /// Whose parameter.
        of: String,
    },
    /// A chunk that does not exist.
    ChunkOutOfRange {
        /// The chunk (or, of a range, the end).
        value: i64,
        /// How many there are.
        chunks: u32,
        /// The buffer.
        buffer: String,
        /// It is the end of a range, which may be one past the last.
        end: bool,
        /// Where `chunks` stands, if it does.
        declared: Option<Span>,
    },
    /// A block that does not exist.
    BlockOutOfRange {
        /// The block (or, of a range, the end).
        value: i64,
        /// How many there are.
        blocks: u32,
        /// The buffer.
        buffer: String,
        /// It is the end of a range.
        end: bool,
        /// Where the buffer is declared.
        declared: Span,
    },
    /// An element that a table does not have.
    TableIndex {
        /// The index.
        value: i64,
        /// How many elements there are.
        len: usize,
    },
    /// A range of chunks, blocks or ranks whose end lies before its start.
    BackwardRange {
        /// Start.
        from: i64,
        /// End.
        to: i64,
    },
    /// A buffer that does not exist at that rank.
    AbsentBuffer {
        /// The buffer.
        buffer: String,
        /// The rank.
        rank: u32,
        /// Where it does exist.
        only: u32,
        /// Where it is declared.
        declared: Span,
    },
    /// Sides of different lengths, in chunks.
    UnequalRuns {
        /// Of the destination.
        to: u64,
        /// Of the source.
        from: u64,
        /// The source.
        source: Span,
        /// The lengths count blocks, not chunks.
        blocks: bool,
    },
    /// A copy or `+=` of a place to itself.
    SelfMove {
        /// It is a `+=`.
        combine: bool,
        /// The place: buffer and first chunk or cell.
        place: String,
    },
    /// A move whose destination overlaps its source without being the same.
    Overlap {
        /// The destination.
        to: String,
        /// The source.
        from: String,
    },
    /// A reduction without operands.
    EmptyReduce,
    /// A reduction of more operands than one step can name.
    ManyOperands {
        /// How many.
        count: u64,
        /// How many there may be.
        limit: u64,
    },
    /// Two `inplace` that no memory can follow at once.
    InplaceClash {
        /// The buffer of which both name a part; none: they lay two buffers at two distances from each other.
        shared: Option<String>,
        /// The buffers of the later one.
        buffers: [String; 2],
        /// The rank where they do.
        rank: u32,
        /// The earlier one.
        other: Span,
    },
    /// Two bindings of one run overlap, and both may be written.
    BindingsOverlap {
        /// The callee's buffers.
        buffers: [String; 2],
        /// The other binding.
        other: Span,
        /// The rank of this algorithm where they do.
        rank: u32,
    },
    /// A run reads through an `in` name what it has already overwritten through another.
    Alias {
        /// The callee's buffer it reads.
        read: String,
        /// The callee's buffer it wrote.
        wrote: String,
        /// The move that wrote.
        writer: Span,
        /// The run.
        run: Span,
        /// The rank of this algorithm.
        rank: u32,
    },
    /// Bindings of one run that give the callee blocks of different lengths, in chunks of this algorithm.
    UnequalBindings {
        /// The callee's buffers.
        buffers: [String; 2],
        /// Chunks bound to each.
        chunks: [u64; 2],
        /// Blocks that each has.
        blocks: [u32; 2],
        /// The other binding.
        other: Span,
    },
    /// A rank that a rank set names twice.
    RepeatedRank {
        /// The rank.
        rank: u32,
    },
    /// An operand that a promised reduction names twice.
    RepeatedOperand {
        /// The operand.
        operand: String,
    },
    /// A result that does not fit 64 bits.
    Overflow {
        /// The operation with its operands.
        operation: String,
    },
    /// Division by zero.
    DivisionByZero {
        /// `/` or `%`.
        remainder: bool,
        /// What was to be divided.
        value: i64,
    },
    /// A shift by less than 0 or more than 63.
    ShiftOutOfRange {
        /// By how much.
        value: i64,
    },
    /// A logarithm of a number below 1.
    NoLogarithm {
        /// The number.
        value: i64,
    },
    /// A `step` of a loop below 1.
    LoopStep {
        /// The step.
        value: i64,
    },
    /// A number of chunks below 1, or of blocks below 0.
    Count {
        /// `chunks` or `blocks`.
        blocks: bool,
        /// The number.
        value: i64,
    },
    /// A channel that a schedule gives to a label, and that there cannot be.
    Channel {
        /// Its number.
        value: i64,
        /// The label.
        label: String,
        /// The greatest there can be.
        most: u16,
    },
    /// More moves than the limit allows.
    TooManyMoves {
        /// The limit.
        limit: u64,
        /// How many there are at least.
        wanted: u64,
    },
    /// More loop turns than the limit allows.
    TooManyTurns {
        /// The limit.
        limit: u64,
        /// How many there are at least.
        wanted: u64,
    },
    /// More places than the limit allows.
    TooManyPlaces {
        /// The limit.
        limit: u64,
        /// How many there are.
        wanted: u128,
        /// Ranks.
        ranks: u32,
        /// Blocks, over all buffers of a rank.
        blocks: u64,
        /// Cells per block.
        cells: u64,
        /// What cuts blocks into so many cells.
        cuts: Vec<Cut>,
    },
    /// A table or a rank set with more elements than the limit on moves.
    TooManyElements {
        /// The limit.
        limit: u64,
    },
    /// A world that is not one: no level or no rank, or another number of levels than the algorithm has.
    Shape {
        /// Levels of the algorithm.
        expected: usize,
        /// The shape asked for.
        shape: Vec<u32>,
    },
    /// A parameter that the algorithm does not have.
    UnknownParam {
        /// Its name.
        name: String,
        /// The known one most like it.
        nearest: Option<String>,
    },
    /// A parameter that is not given and has no default.
    MissingParam {
        /// Its name.
        name: String,
    },
    /// A value that is not of the parameter's type.
    ParamValue {
        /// Its name.
        name: String,
        /// The value.
        value: i64,
    },
}

impl FaultKind {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            FaultKind::RankOutOfRange { .. }
            | FaultKind::CoordinateOutOfRange { .. }
            | FaultKind::RankArgument { .. } => "coll::rank_out_of_range",
            FaultKind::ChunkOutOfRange { .. } => "coll::chunk_out_of_range",
            FaultKind::BlockOutOfRange { .. } => "coll::block_out_of_range",
            FaultKind::TableIndex { .. } => "coll::index_out_of_range",
            FaultKind::BackwardRange { .. } => "coll::backward_range",
            FaultKind::AbsentBuffer { .. } => "coll::absent_buffer",
            FaultKind::UnequalRuns { .. } => "coll::unequal_runs",
            FaultKind::SelfMove { .. } => "coll::self_move",
            FaultKind::Overlap { .. } => "coll::overlap",
            FaultKind::EmptyReduce => "coll::empty_reduce",
            FaultKind::ManyOperands { .. } => "coll::many_operands",
            FaultKind::InplaceClash { .. } => "coll::inplace_clash",
            FaultKind::BindingsOverlap { .. } | FaultKind::Alias { .. } => "coll::alias",
            FaultKind::UnequalBindings { .. } => "coll::unequal_bindings",
            FaultKind::RepeatedRank { .. } => "coll::repeated_rank",
            FaultKind::RepeatedOperand { .. } => "coll::repeated_operand",
            FaultKind::Overflow { .. } => "coll::overflow",
            FaultKind::DivisionByZero { .. } => "coll::division_by_zero",
            FaultKind::ShiftOutOfRange { .. } => "coll::shift_out_of_range",
            FaultKind::NoLogarithm { .. } => "coll::no_logarithm",
            FaultKind::LoopStep { .. } => "coll::loop_step",
            FaultKind::Count { .. } => "coll::bad_count",
            FaultKind::Channel { .. } => "coll::bad_channel",
            FaultKind::TooManyMoves { .. } => "coll::too_many_moves",
            FaultKind::TooManyTurns { .. } => "coll::too_many_turns",
            FaultKind::TooManyPlaces { .. } => "coll::too_many_places",
            FaultKind::TooManyElements { .. } => "coll::too_many_elements",
            FaultKind::Shape { .. } => "coll::bad_shape",
            FaultKind::UnknownParam { .. }
            | FaultKind::MissingParam { .. }
            | FaultKind::ParamValue { .. } => "coll::bad_parameter",
        }
    }
}

impl Error {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Excluded { .. } => "coll::excluded",
            Error::Fault(fault) => fault.kind.code(),
        }
    }

    /// The text at fault.
    pub fn span(&self) -> Span {
        match self {
            Error::Excluded { span, .. } => *span,
            Error::Fault(fault) => fault.span,
        }
    }
}
