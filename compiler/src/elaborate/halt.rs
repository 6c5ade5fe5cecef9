//! How elaboration stops early: an error, an excluded shape, or the move that was looked for.
//!
//! In: raised anywhere below. Out: turned into `Error` (or bindings) at the top. It is boxed, so that a `Result` of
//! the hot path is two registers; loops add their variables while it passes through them.

use grammar::span::Span;

use super::error::{Error, Fault, FaultKind, Var, World};

/// The result of everything that can stop.
pub(crate) type Res<T> = Result<T, Box<Halt>>;

/// Why elaboration stopped, and what was gathered on the way out.
#[derive(Debug)]
pub(crate) struct Halt {
    pub end: End,
    pub span: Span,
    pub within: Option<Span>,
    /// Innermost first.
    pub vars: Vec<Var>,
    /// Set when the algorithm (or collective) at fault is left: from then on no variable is added.
    pub world: Option<World>,
    /// Innermost first.
    pub runs: Vec<Span>,
}

/// Why.
#[derive(Debug)]
pub(crate) enum End {
    Fault(FaultKind),
    Excluded(String),
    /// The move or run that was looked for is next.
    Watched,
}

impl Halt {
    /// A fault at `span`.
    #[cold]
    pub(crate) fn fault(kind: FaultKind, span: Span) -> Box<Halt> {
        Halt::new(End::Fault(kind), span)
    }

    #[cold]
    pub(crate) fn new(end: End, span: Span) -> Box<Halt> {
        Box::new(Halt { end, span, within: None, vars: Vec::new(), world: None, runs: Vec::new() })
    }

    /// With a variable of the scope that it leaves.
    #[cold]
    pub(crate) fn var(mut self: Box<Halt>, var: impl FnOnce() -> Var) -> Box<Halt> {
        if self.world.is_none() {
            self.vars.push(var());
        }
        self
    }

    /// With the move or promise that it leaves.
    #[cold]
    pub(crate) fn within(mut self: Box<Halt>, span: Span) -> Box<Halt> {
        if self.world.is_none() {
            self.within.get_or_insert(span);
        }
        self
    }

    /// With the algorithm or collective that it leaves.
    #[cold]
    pub(crate) fn world(mut self: Box<Halt>, world: impl FnOnce() -> World) -> Box<Halt> {
        if self.world.is_none() {
            self.world = Some(world());
        }
        self
    }

    /// As an error.
    pub(crate) fn error(self) -> Error {
        let Halt { end, span, within, mut vars, world, mut runs } = self;
        vars.reverse();
        runs.reverse();
        let world = world.unwrap_or_default();
        match end {
            End::Fault(kind) => Error::Fault(Box::new(Fault { kind, span, within, vars, world, runs })),
            End::Excluded(why) => Error::Excluded { why, span, runs, world: Box::new(world) },
            End::Watched => unreachable!("only `replay` watches, and it takes the halt apart itself"),
        }
    }
}
