//! The checked program: every name resolved to a slot or an index, every type known, still symbolic in n.
//!
//! In: built by `check`. Out: read by `elaborate`, and by whoever lists algorithms and their parameters. The one
//! hard idea: expressions are nodes of one flat arena and variables are slots of a frame, so that evaluating one
//! costs no look-up of a name (a schedule over 1,024 ranks evaluates tens of millions of nodes).
//!
//! A frame: slot 0 is `self`, then the level sizes, then the parameters, then `let`s and loop variables by nesting.
//! The buffers of an algorithm: those of its collective in the order declared, then its scratch, then `signal`.

mod schedule;

use grammar::ast::{BinaryOp, Mode, MoveOp, ParamType};
use grammar::span::{FileId, Span};

pub(crate) use schedule::Lane;
pub use schedule::{Clauses, Schedule, When};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The id as an index of a flat array.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// An algorithm of the program.
    AlgorithmId
);
id!(
    /// A collective of the program.
    CollectiveId
);
id!(
    /// A function of the program.
    FnId
);
id!(
    /// A node of an expression.
    ExprId
);
id!(
    /// A variable of a frame.
    Slot
);
id!(
    /// A table of the program; its elements at hand are those of the last `let` that ran.
    TableId
);

/// Everything that was declared, the user's and the standard library's.
#[derive(Debug, Clone, Default)]
pub struct Program {
    pub(crate) algorithms: Vec<Algorithm>,
    pub(crate) collectives: Vec<Collective>,
    pub(crate) fns: Vec<Function>,
    pub(crate) exprs: Exprs,
    pub(crate) tables: u32,
    /// Some schedule gives moves channels.
    pub(crate) lanes: bool,
}

/// An algorithm.
#[derive(Debug, Clone)]
pub struct Algorithm {
    /// `ring`; `std::allreduce::ring` for one of the standard library.
    pub name: String,
    /// Where its name stands.
    pub name_span: Span,
    /// The text it stands in.
    pub file: FileId,
    /// Its `///` lines.
    pub docs: Vec<String>,
    /// How many levels its world has.
    pub levels: usize,
    /// The names of their sizes, outermost first.
    pub level_names: Vec<String>,
    /// Its parameters, in order.
    pub params: Vec<Param>,
    /// What it implements.
    pub collective: CollectiveId,
    /// The `implements` clause.
    pub implements: Span,
    /// How it is to be run.
    pub schedule: Option<Schedule>,
    /// The collective's arguments, one per parameter; none: the default.
    pub(crate) args: Vec<Option<ExprId>>,
    /// Scratch buffers, in order of declaration.
    pub(crate) scratch: Vec<ScratchDecl>,
    /// The texts of all moves and runs, by `site`.
    pub(crate) sites: Vec<Span>,
    pub(crate) body: Vec<Stmt>,
    pub(crate) frame: u32,
    /// How deep its runs nest.
    pub(crate) depth: u32,
}

/// A collective.
#[derive(Debug, Clone)]
pub struct Collective {
    /// Its name.
    pub name: String,
    /// Where its name stands.
    pub name_span: Span,
    /// The text it stands in.
    pub file: FileId,
    /// Its `///` lines.
    pub docs: Vec<String>,
    /// How many levels its world has; with one, it sees the product of an algorithm's levels.
    pub levels: usize,
    /// Whether it is one of the standard library.
    pub standard: bool,
    /// The names of their sizes.
    pub level_names: Vec<String>,
    /// Its parameters, in order.
    pub params: Vec<Param>,
    /// Its buffers, in order.
    pub buffers: Vec<BufferDecl>,
    pub(crate) inplace: Vec<InplaceDecl>,
    pub(crate) ensures: Vec<Ensures>,
    pub(crate) frame: u32,
}

/// A parameter.
#[derive(Debug, Clone)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Where it is declared.
    pub span: Span,
    /// Its type.
    pub ty: ParamType,
    /// The value it has if none is given; sees the level sizes and the parameters before it.
    pub default: Option<ExprId>,
}

/// A buffer of a collective.
#[derive(Debug, Clone)]
pub struct BufferDecl {
    /// Its name.
    pub name: String,
    /// Where it is declared.
    pub span: Span,
    /// `in`, `out` or `inout`.
    pub mode: Mode,
    /// The number of blocks; none: one, and it is indexed by chunk at once.
    pub blocks: Option<ExprId>,
    /// The one rank that has it; none: all.
    pub at: Option<ExprId>,
}

/// A scratch buffer.
#[derive(Debug, Clone)]
pub(crate) struct ScratchDecl {
    pub name: String,
    pub span: Span,
    pub blocks: Option<ExprId>,
}

/// A function; its frame holds its parameters first.
#[derive(Debug, Clone)]
pub(crate) struct Function {
    pub body: ExprId,
    pub frame: u32,
}

/// An overlap of send and receive memory, the `in` side on the left.
#[derive(Debug, Clone)]
pub(crate) struct InplaceDecl {
    pub left: Region,
    pub right: Region,
    pub span: Span,
}

/// A promise.
#[derive(Debug, Clone)]
pub(crate) struct Ensures {
    pub span: Span,
    pub kind: EnsuresKind,
}

/// What an `ensures` says.
#[derive(Debug, Clone)]
pub(crate) enum EnsuresKind {
    Equals(Box<Equals>),
    Synchronised,
}

/// `for …: place == value`.
#[derive(Debug, Clone)]
pub(crate) struct Equals {
    pub loops: Loops,
    pub place: Place,
    pub value: Source,
    /// The value does not depend on the binders: it is the same for every turn.
    pub constant: bool,
}

/// A statement.
#[derive(Debug, Clone)]
pub(crate) enum Stmt {
    Chunks(ExprId),
    /// Index into [`Algorithm::scratch`].
    Scratch(u32),
    Let {
        slot: Slot,
        value: ExprId,
        name: String,
        span: Span,
    },
    Table {
        table: TableId,
        list: List,
    },
    Require {
        condition: ExprId,
        why: String,
        span: Span,
    },
    OutOfPlaceOnly,
    For(Box<For>),
    If {
        condition: ExprId,
        then: Vec<Stmt>,
        otherwise: Vec<Stmt>,
    },
    Step(Vec<Stmt>),
    Move(Box<Move>),
    Run(Box<Run>),
    Lane(Box<Lane>),
}

/// `for` with its body.
#[derive(Debug, Clone)]
pub(crate) struct For {
    pub loops: Loops,
    pub body: Vec<Stmt>,
    /// Expression nodes that one turn of the innermost binder evaluates at most, inner `for`s apart.
    pub cost: u64,
    /// What each turn does for certain, inner loops apart; nothing, if there is a filter.
    pub certain: Certain,
    /// Loops among its statements.
    pub nested: bool,
}

/// Moves that are made for certain, whatever the values: those that are not of a range, which may be empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Certain {
    /// To one rank.
    pub single: u64,
    /// To all ranks but one, or from all.
    pub all: u64,
}

impl Certain {
    /// Both.
    pub(crate) fn plus(self, other: Certain) -> Certain {
        Certain { single: self.single + other.single, all: self.all + other.all }
    }
}

/// Binders and their filter; the first runs slowest.
#[derive(Debug, Clone)]
pub(crate) struct Loops {
    pub binders: Vec<Binder>,
    pub filter: Option<ExprId>,
    /// No bound uses a variable of an earlier binder: the number of turns is a product.
    pub independent: bool,
    /// The level whose size bounds each binder, if one does; for messages.
    pub levels: Vec<Option<String>>,
}

/// `x in a..b step k rev`.
#[derive(Debug, Clone)]
pub(crate) struct Binder {
    pub slot: Slot,
    pub name: String,
    pub from: ExprId,
    pub to: ExprId,
    pub step: Option<ExprId>,
    pub rev: bool,
    pub span: Span,
    /// `a..b` with what follows.
    pub range: Span,
}

/// Elements of a table or of a rank set.
#[derive(Debug, Clone)]
pub(crate) enum List {
    Items(Vec<ExprId>),
    Each(Box<Each>),
}

/// A value per turn.
#[derive(Debug, Clone)]
pub(crate) struct Each {
    pub loops: Loops,
    pub value: ExprId,
}

/// `to = from`, `to += from`.
#[derive(Debug, Clone)]
pub(crate) struct Move {
    pub to: Place,
    pub op: MoveOp,
    pub from: Source,
    pub span: Span,
    /// Its number among the moves and runs of the algorithm.
    pub site: u32,
}

/// The right side of a move or of an `ensures`.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Place(Place),
    Each { loops: Loops, place: Place, span: Span },
    List { places: Vec<Place>, span: Span },
    Gather { place: Place, span: Span },
}

/// `buffer[index]… @ rank`.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub region: Region,
    pub ranks: Ranks,
    pub span: Span,
}

/// `buffer[index]…`.
#[derive(Debug, Clone)]
pub(crate) struct Region {
    /// Index among the buffers in scope; see the module.
    pub buffer: u32,
    pub cut: Cut,
    pub span: Span,
}

/// Which part of a buffer.
#[derive(Debug, Clone)]
pub(crate) enum Cut {
    /// All of it.
    All,
    /// A chunk of a one-block buffer.
    Chunk(ExprId),
    /// Chunks `a..b` of a one-block buffer.
    Chunks(ExprId, ExprId),
    /// A block.
    Block(ExprId),
    /// Blocks `a..b`.
    Blocks(ExprId, ExprId),
    /// A chunk of a block.
    BlockChunk(ExprId, ExprId),
    /// Chunks `a..b` of a block.
    BlockChunks(ExprId, ExprId, ExprId),
}

/// Which rank or ranks.
#[derive(Debug, Clone)]
pub(crate) enum Ranks {
    One(ExprId),
    All,
    /// One coordinate per level; none: all of that level.
    Tuple(Vec<Option<ExprId>>, Span),
}

/// `run CALLEE(args) on RANKS with …`.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub callee: AlgorithmId,
    /// One per parameter of the callee; none: the default.
    pub args: Vec<Option<ExprId>>,
    pub on: RankSet,
    pub on_span: Span,
    /// One per buffer of the callee's collective.
    pub bindings: Vec<Binding>,
    pub span: Span,
    /// Its number among the moves and runs of the algorithm.
    pub site: u32,
}

/// A set of ranks in order.
#[derive(Debug, Clone)]
pub(crate) enum RankSet {
    Ranks(Ranks),
    Range(ExprId, ExprId),
    List(List),
}

/// What a buffer of the callee is here.
#[derive(Debug, Clone)]
pub(crate) struct Binding {
    pub region: Region,
    /// It uses `self`: one region per rank of the callee.
    pub by_rank: bool,
    pub span: Span,
}

/// The nodes of all expressions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exprs {
    pub nodes: Vec<Node>,
    pub spans: Vec<Span>,
    /// Nodes below and including each, functions counted by their call only.
    pub cost: Vec<u32>,
    /// How deep evaluation nests, functions included.
    pub depth: Vec<u32>,
    /// Arguments of calls.
    pub args: Vec<ExprId>,
    pub sums: Vec<Each>,
}

/// A node; truth values are 0 and 1.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Node {
    Int(i64),
    Slot(Slot),
    Neg(ExprId),
    Not(ExprId),
    /// Arithmetic and comparisons; `and` and `or` evaluate their right side only if needed.
    Binary(BinaryOp, ExprId, ExprId),
    If(ExprId, ExprId, ExprId),
    /// A built-in function and its arguments: first index and count.
    Builtin(Builtin, u32, u32),
    Call(FnId, u32, u32),
    Element(TableId, ExprId),
    /// Index into [`Exprs::sums`].
    Sum(u32),
}

/// The built-in functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Builtin {
    Min,
    Max,
    Abs,
    Log2,
    CeilLog2,
    IsPowerOfTwo,
    Gcd,
    Popcount,
    Lowbit,
}

impl Builtin {
    /// All of them with their names.
    pub(crate) const ALL: [(&'static str, Builtin); 9] = [
        ("min", Builtin::Min),
        ("max", Builtin::Max),
        ("abs", Builtin::Abs),
        ("log2", Builtin::Log2),
        ("ceil_log2", Builtin::CeilLog2),
        ("is_power_of_two", Builtin::IsPowerOfTwo),
        ("gcd", Builtin::Gcd),
        ("popcount", Builtin::Popcount),
        ("lowbit", Builtin::Lowbit),
    ];
}

impl Program {
    /// All algorithms, in the order of the units and their items.
    pub fn algorithms(&self) -> impl Iterator<Item = AlgorithmId> + use<> {
        (0..self.algorithms.len() as u32).map(AlgorithmId)
    }

    /// An algorithm.
    pub fn algorithm(&self, id: AlgorithmId) -> &Algorithm {
        &self.algorithms[id.index()]
    }

    /// All collectives.
    pub fn collectives(&self) -> impl Iterator<Item = CollectiveId> + use<> {
        (0..self.collectives.len() as u32).map(CollectiveId)
    }

    /// A collective.
    pub fn collective(&self, id: CollectiveId) -> &Collective {
        &self.collectives[id.index()]
    }

    /// The algorithm of that name; of two with one name (in two files) the first.
    pub fn find(&self, name: &str) -> Option<AlgorithmId> {
        self.algorithms().find(|&id| self.algorithm(id).name == name)
    }

    /// The collective of that name; one that a user declared goes before a standard one.
    pub fn find_collective(&self, name: &str) -> Option<CollectiveId> {
        let named = || self.collectives().filter(|&id| self.collective(id).name == name);
        named().find(|&id| !self.collective(id).standard).or_else(|| named().next())
    }

    /// The value of a parameter's default if it is a plain number or truth value (0 or 1).
    pub fn plain_default(&self, param: &Param) -> Option<i64> {
        match self.exprs.nodes[param.default?.index()] {
            Node::Int(value) => Some(value),
            _ => None,
        }
    }
}

impl Exprs {
    pub(crate) fn node(&self, id: ExprId) -> Node {
        self.nodes[id.index()]
    }

    pub(crate) fn span(&self, id: ExprId) -> Span {
        self.spans[id.index()]
    }

    /// Whether any slot that `id` reads satisfies `test`. Costs O(nodes).
    pub(crate) fn reads(&self, id: ExprId, test: &impl Fn(Slot) -> bool) -> bool {
        let any = |first: u32, count: u32| {
            self.args[first as usize..][..count as usize].iter().any(|&arg| self.reads(arg, test))
        };
        match self.node(id) {
            Node::Int(_) => false,
            Node::Slot(slot) => test(slot),
            Node::Neg(a) | Node::Not(a) | Node::Element(_, a) => self.reads(a, test),
            Node::Binary(_, a, b) => self.reads(a, test) || self.reads(b, test),
            Node::If(a, b, c) => self.reads(a, test) || self.reads(b, test) || self.reads(c, test),
            Node::Builtin(_, first, count) | Node::Call(_, first, count) => any(first, count),
            Node::Sum(sum) => {
                let each = &self.sums[sum as usize];
                self.loops_read(&each.loops, test) || self.reads(each.value, test)
            }
        }
    }

    /// Whether `id` has neither tables nor calls nor sums in it.
    pub(crate) fn is_plain(&self, id: ExprId) -> bool {
        match self.node(id) {
            Node::Int(_) | Node::Slot(_) => true,
            Node::Neg(a) | Node::Not(a) => self.is_plain(a),
            Node::Binary(_, a, b) => self.is_plain(a) && self.is_plain(b),
            Node::If(a, b, c) => self.is_plain(a) && self.is_plain(b) && self.is_plain(c),
            Node::Builtin(_, first, count) => {
                self.args[first as usize..][..count as usize].iter().all(|&arg| self.is_plain(arg))
            }
            Node::Call(..) | Node::Element(..) | Node::Sum(_) => false,
        }
    }

    /// Whether a bound or the filter of `loops` reads a slot that satisfies `test`.
    pub(crate) fn loops_read(&self, loops: &Loops, test: &impl Fn(Slot) -> bool) -> bool {
        loops.filter.is_some_and(|f| self.reads(f, test))
            || loops.binders.iter().any(|b| {
                self.reads(b.from, test)
                    || self.reads(b.to, test)
                    || b.step.is_some_and(|s| self.reads(s, test))
            })
    }
}

impl Region {
    /// The expressions in its brackets.
    pub(crate) fn exprs(&self) -> impl Iterator<Item = ExprId> + use<> {
        let list = match self.cut {
            Cut::All => [None; 3],
            Cut::Chunk(a) | Cut::Block(a) => [Some(a), None, None],
            Cut::Chunks(a, b) | Cut::Blocks(a, b) | Cut::BlockChunk(a, b) => [Some(a), Some(b), None],
            Cut::BlockChunks(a, b, c) => [Some(a), Some(b), Some(c)],
        };
        list.into_iter().flatten()
    }
}

impl Ranks {
    /// The expressions in it.
    pub(crate) fn exprs(&self) -> Vec<ExprId> {
        match self {
            Ranks::One(e) => vec![*e],
            Ranks::All => Vec::new(),
            Ranks::Tuple(coords, _) => coords.iter().flatten().copied().collect(),
        }
    }

    /// Whether it can name more than one rank.
    pub(crate) fn many(&self) -> bool {
        match self {
            Ranks::One(_) => false,
            Ranks::All => true,
            Ranks::Tuple(coords, _) => coords.iter().any(Option::is_none),
        }
    }
}
