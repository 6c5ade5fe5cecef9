//! The syntax tree: what was written, nothing resolved, every node with its span.
//!
//! In: nothing. Out: plain data, built by the grammar (`coll.lalrpop`), read by `print` and by the compiler's
//! `check`. Names are strings here; `check` resolves them. `eq_modulo_spans` compares two trees by what they say.

mod expression;
mod schedule;

pub use expression::{BinaryOp, Expr, ExprKind, UnaryOp};
pub use schedule::{ClauseKind, LabelBlock, Number, Schedule, ScheduleClause, Size, When};

use crate::span::Span;

/// A whole source text.
#[derive(Debug, Clone)]
pub struct File {
    /// Its declarations in the order written; those with a syntax error are left out.
    pub items: Vec<Item>,
    /// All `//` comments that are not `///` documentation, in order of position (for `print`).
    pub comments: Vec<Comment>,
    /// The byte offset of the first byte of each line but the first: where the writer broke lines, so that `print`
    /// can keep blank lines and one-line blocks.
    pub lines: Vec<u32>,
}

/// A `// …` comment.
#[derive(Debug, Clone)]
pub struct Comment {
    /// From the first slash to the end of the line.
    pub span: Span,
    /// The text after `//`, right-trimmed.
    pub text: String,
    /// Nothing but blanks stands before it on its line.
    pub own_line: bool,
}

/// A name as written.
#[derive(Debug, Clone)]
pub struct Ident {
    /// The name.
    pub name: String,
    /// Where.
    pub span: Span,
}

/// `std::allreduce::ring`: one or more names joined by `::`.
#[derive(Debug, Clone)]
pub struct Path {
    /// The names.
    pub segments: Vec<Ident>,
    /// All of it.
    pub span: Span,
}

/// A declaration.
#[derive(Debug, Clone)]
pub enum Item {
    /// `collective NAME(…) on ranks[…] { … }`
    Collective(Collective),
    /// `algorithm NAME(…) on ranks[…] implements … { … }`
    Algorithm(Algorithm),
    /// `fn NAME(a, b) = expression`
    Fn(Fn),
    /// `schedule for NAME { … }`
    Schedule(Schedule),
}

/// `collective NAME(params) on ranks[n] { buffers, inplace forms, ensures }`.
#[derive(Debug, Clone)]
pub struct Collective {
    /// `///` lines before it, without the slashes.
    pub docs: Vec<String>,
    /// Its name.
    pub name: Ident,
    /// Its parameters.
    pub params: Vec<Param>,
    /// `ranks[n]`.
    pub world: World,
    /// `in`, `out` and `inout` declarations, in order.
    pub buffers: Vec<BufferDecl>,
    /// Legal overlaps of send and receive memory.
    pub inplace: Vec<Inplace>,
    /// What holds at the end.
    pub ensures: Vec<Ensures>,
    /// From the keyword to the closing brace.
    pub span: Span,
}

/// A parameter `k: int = 4` or `root: rank`.
#[derive(Debug, Clone)]
pub struct Param {
    /// Its name.
    pub name: Ident,
    /// Its type.
    pub ty: ParamType,
    /// The value it has if none is given.
    pub default: Option<Expr>,
    /// All of it.
    pub span: Span,
}

/// The type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamType {
    /// A 64-bit integer.
    Int,
    /// A rank `0..n`; an algorithm is proved for each unless one is given.
    Rank,
    /// true or false.
    Bool,
}

/// `ranks[m, g]`: the names of the level sizes, outermost first.
#[derive(Debug, Clone)]
pub struct World {
    /// At least one.
    pub levels: Vec<Ident>,
    /// From `ranks` to `]`.
    pub span: Span,
}

/// How a collective uses a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Read only.
    In,
    /// Holds nothing at entry.
    Out,
    /// Both.
    Inout,
}

/// `in input[n]`, `out output @ root`, `inout data`.
#[derive(Debug, Clone)]
pub struct BufferDecl {
    /// `in`, `out` or `inout`.
    pub mode: Mode,
    /// Its name.
    pub name: Ident,
    /// The number of blocks; none: one block.
    pub blocks: Option<Expr>,
    /// The one rank that has it; none: all.
    pub at: Option<Expr>,
    /// All of it.
    pub span: Span,
}

/// `inplace input = output[self]`: at every rank, the left place may be the same memory as the right one.
#[derive(Debug, Clone)]
pub struct Inplace {
    /// The smaller (or equal) region.
    pub left: Region,
    /// What it may coincide with.
    pub right: Region,
    /// All of it.
    pub span: Span,
}

/// A promise.
#[derive(Debug, Clone)]
pub struct Ensures {
    /// `for r in 0..n, s in 0..n:` (may be empty).
    pub binders: Vec<Binder>,
    /// The filter after the binders.
    pub filter: Option<Expr>,
    /// What holds.
    pub kind: EnsuresKind,
    /// From the keyword to the end.
    pub span: Span,
}

/// What an `ensures` says.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "nearly every promise is an equality")]
pub enum EnsuresKind {
    /// `place == source`: the right side speaks of the values at entry.
    Equals {
        /// The place at exit.
        place: Place,
        /// Its value.
        value: Source,
    },
    /// No rank leaves before all have entered.
    Synchronised,
}

/// `algorithm NAME(params) on ranks[n] implements COLLECTIVE(args) { … }`.
#[derive(Debug, Clone)]
pub struct Algorithm {
    /// `///` lines before it, without the slashes.
    pub docs: Vec<String>,
    /// Its name.
    pub name: Ident,
    /// Its parameters.
    pub params: Vec<Param>,
    /// `ranks[m, g]`.
    pub world: World,
    /// The collective it implements (a name of this file or of the standard set).
    pub implements: Path,
    /// The collective's arguments.
    pub args: Vec<Arg>,
    /// From `implements` to the last argument.
    pub implements_span: Span,
    /// What it does.
    pub body: Vec<Stmt>,
    /// From the keyword to the closing brace.
    pub span: Span,
}

/// `fn NAME(a, b) = expression`; it sees only its parameters.
#[derive(Debug, Clone)]
pub struct Fn {
    /// `///` lines before it.
    pub docs: Vec<String>,
    /// Its name.
    pub name: Ident,
    /// Its parameters (integers or booleans).
    pub params: Vec<Ident>,
    /// Its value.
    pub body: Expr,
    /// All of it.
    pub span: Span,
}

/// An argument `e` or `k = e`.
#[derive(Debug, Clone)]
pub struct Arg {
    /// The parameter it names.
    pub name: Option<Ident>,
    /// Its value.
    pub value: Expr,
    /// All of it.
    pub span: Span,
}

/// A statement of an algorithm.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "nearly every statement is a move")]
pub enum Stmt {
    /// `chunks k`
    Chunks(Chunks),
    /// `scratch tmp[k]`
    Scratch(Scratch),
    /// `let x = …`
    Let(Let),
    /// `require c, "why"`
    Require(Require),
    /// `inplace none`: the algorithm claims only the out-of-place form of its collective.
    OutOfPlaceOnly(Span),
    /// `for x in a..b { … }`
    For(For),
    /// `if c { … } else { … }`
    If(If),
    /// `step { … }`, `step for … { … }`
    Step(Step),
    /// `a = b`, `a += b`
    Move(Move),
    /// `run NAME on … with …`
    Run(Run),
    /// `'NAME: ` before one of the five above.
    Labelled(Labelled),
}

/// `'gather: for …`: what a schedule can address.
#[derive(Debug, Clone)]
pub struct Labelled {
    /// The label, without its quote; the span has it.
    pub label: Ident,
    /// A `for`, `if`, `step`, move or `run`.
    pub body: Box<Stmt>,
    /// All of it.
    pub span: Span,
}

/// `chunks k`.
#[derive(Debug, Clone)]
pub struct Chunks {
    /// Into how many chunks each block is cut.
    pub count: Expr,
    /// All of it.
    pub span: Span,
}

/// `scratch tmp`, `scratch tmp[k]`.
#[derive(Debug, Clone)]
pub struct Scratch {
    /// Its name.
    pub name: Ident,
    /// The number of blocks; none: one block.
    pub blocks: Option<Expr>,
    /// All of it.
    pub span: Span,
}

/// `let x = e`, `let t = [a, b, c]`.
#[derive(Debug, Clone)]
pub struct Let {
    /// Its name.
    pub name: Ident,
    /// Its value.
    pub value: LetValue,
    /// All of it.
    pub span: Span,
}

/// What a `let` binds.
#[derive(Debug, Clone)]
pub enum LetValue {
    /// A number or a truth value.
    Expr(Expr),
    /// A table `[a, b, c]` or `[e for x in a..b]`.
    Table(List),
}

/// `[a, b, c]` or `[e for x in a..b]`.
#[derive(Debug, Clone)]
pub enum List {
    /// The elements.
    Items(Vec<Expr>, Span),
    /// A comprehension.
    Each {
        /// The element.
        value: Box<Expr>,
        /// What runs.
        binders: Vec<Binder>,
        /// Which are kept.
        filter: Option<Box<Expr>>,
        /// All of it.
        span: Span,
    },
}

/// `require c, "why"`.
#[derive(Debug, Clone)]
pub struct Require {
    /// What must hold of the shape and the parameters.
    pub condition: Expr,
    /// Why.
    pub why: String,
    /// All of it.
    pub span: Span,
}

/// `for x in a..b, y in c..d if cond { … }`.
#[derive(Debug, Clone)]
pub struct For {
    /// The first runs slowest; later bounds may use earlier variables.
    pub binders: Vec<Binder>,
    /// Turns for which it is false do nothing.
    pub filter: Option<Expr>,
    /// What is done.
    pub body: Vec<Stmt>,
    /// From the keyword to the closing brace.
    pub span: Span,
}

/// `x in a..b step k rev`.
#[derive(Debug, Clone)]
pub struct Binder {
    /// The loop variable.
    pub name: Ident,
    /// First value.
    pub from: Expr,
    /// One past the last value.
    pub to: Expr,
    /// The distance between values.
    pub step: Option<Expr>,
    /// From the last to the first.
    pub rev: bool,
    /// All of it.
    pub span: Span,
}

/// `if c { … } else { … }`; `else if` is an `else` that holds one `if`.
#[derive(Debug, Clone)]
pub struct If {
    /// What is asked.
    pub condition: Expr,
    /// What is done if so.
    pub then: Vec<Stmt>,
    /// The word `else`, if there is one.
    pub else_span: Option<Span>,
    /// What is done if not.
    pub otherwise: Vec<Stmt>,
    /// All of it.
    pub span: Span,
}

/// A `step`: every move in it reads what the places held before the block.
#[derive(Debug, Clone)]
pub struct Step {
    /// What it holds; `step for … { … }` is a step that holds one `for`.
    pub body: Vec<Stmt>,
    /// All of it.
    pub span: Span,
}

/// `place = source`, `place += source`.
#[derive(Debug, Clone)]
pub struct Move {
    /// Where to.
    pub to: Place,
    /// Whether it combines.
    pub op: MoveOp,
    /// Where from.
    pub from: Source,
    /// All of it.
    pub span: Span,
}

/// `=` or `+=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveOp {
    /// `=`
    Copy,
    /// `+=`
    Combine,
}

/// The right side of a move or of an `ensures`.
#[derive(Debug, Clone)]
pub enum Source {
    /// `data[c] @ p`
    Place(Place),
    /// `reduce(s in 0..n) tmp[s] @ r`
    Each {
        /// What runs.
        binders: Vec<Binder>,
        /// Which are kept.
        filter: Option<Expr>,
        /// The operand.
        place: Place,
        /// All of it.
        span: Span,
    },
    /// `reduce(data @ r, tmp @ r)`
    List {
        /// The operands in order.
        places: Vec<Place>,
        /// All of it.
        span: Span,
    },
    /// `reduce data[c] @ *`
    Gather {
        /// The operands, in rank order.
        place: Place,
        /// All of it.
        span: Span,
    },
}

/// `buffer[index]… @ rank`.
#[derive(Debug, Clone)]
pub struct Place {
    /// Buffer and indices.
    pub region: Region,
    /// Which rank or ranks.
    pub rank: Ranks,
    /// All of it.
    pub span: Span,
}

/// `buffer[index]…`, without a rank.
#[derive(Debug, Clone)]
pub struct Region {
    /// The buffer.
    pub buffer: Ident,
    /// Block and chunk, as many as were written.
    pub indices: Vec<Index>,
    /// All of it.
    pub span: Span,
}

/// One pair of brackets.
#[derive(Debug, Clone)]
pub enum Index {
    /// `[c]`
    One(Expr),
    /// `[a..b]`
    Range {
        /// First.
        from: Expr,
        /// One past the last.
        to: Expr,
        /// Without the brackets.
        span: Span,
    },
}

/// What stands after `@`.
#[derive(Debug, Clone)]
pub enum Ranks {
    /// `r`
    One(Expr),
    /// `*`
    All(Span),
    /// `(i, j)`, `(i, *)`: one coordinate per level.
    Tuple(Vec<Coord>, Span),
}

/// A coordinate of a rank tuple.
#[derive(Debug, Clone)]
pub enum Coord {
    /// One index of this level.
    At(Expr),
    /// All of this level.
    All(Span),
}

/// `run NAME(args) on RANKS with a = b, c = d`.
#[derive(Debug, Clone)]
pub struct Run {
    /// The algorithm.
    pub callee: Path,
    /// Its arguments.
    pub args: Vec<Arg>,
    /// The part of the world it runs on.
    pub on: RankSet,
    /// Its buffers.
    pub bindings: Vec<Binding>,
    /// All of it.
    pub span: Span,
}

/// A set of ranks in order.
#[derive(Debug, Clone)]
pub enum RankSet {
    /// `*`, `(i, *)` (or `(i, j)`: one rank).
    Ranks(Ranks),
    /// `a..b`
    Range {
        /// First.
        from: Expr,
        /// One past the last.
        to: Expr,
        /// All of it.
        span: Span,
    },
    /// `[order(x) for x in 0..k]`
    List(List),
}

/// `input = data[self]`.
#[derive(Debug, Clone)]
pub struct Binding {
    /// The callee's buffer.
    pub buffer: Ident,
    /// What it is here; may use `self`, the callee's own rank index.
    pub region: Region,
    /// All of it.
    pub span: Span,
}

impl Item {
    /// Where it stands, its docs left out.
    pub fn span(&self) -> Span {
        match self {
            Item::Collective(collective) => collective.span,
            Item::Algorithm(algorithm) => algorithm.span,
            Item::Fn(function) => function.span,
            Item::Schedule(schedule) => schedule.span,
        }
    }
}

impl Stmt {
    /// Where it stands.
    pub fn span(&self) -> Span {
        match self {
            Stmt::Chunks(chunks) => chunks.span,
            Stmt::Scratch(scratch) => scratch.span,
            Stmt::Let(binding) => binding.span,
            Stmt::Require(require) => require.span,
            Stmt::OutOfPlaceOnly(span) => *span,
            Stmt::For(each) => each.span,
            Stmt::If(choice) => choice.span,
            Stmt::Step(step) => step.span,
            Stmt::Move(movement) => movement.span,
            Stmt::Run(run) => run.span,
            Stmt::Labelled(labelled) => labelled.span,
        }
    }
}
