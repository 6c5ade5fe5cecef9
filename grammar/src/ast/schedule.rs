//! Schedules as written: how fast, never where to.
//!
//! In: nothing. Out: plain data. Words that only a schedule knows (`ll128`, `nvlink`, `KiB`) are names here; `check`
//! knows which there are.

use super::{BinaryOp, Expr, Ident, Path};
use crate::span::Span;

/// `schedule for NAME { clauses }`.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// `///` lines before it, without the slashes.
    pub docs: Vec<String>,
    /// The algorithm it is for.
    pub algorithm: Path,
    /// What it says, in order.
    pub clauses: Vec<ScheduleClause>,
    /// From the keyword to the closing brace.
    pub span: Span,
}

/// A clause of a schedule, or of one of its `when`s.
#[derive(Debug, Clone)]
pub struct ScheduleClause {
    /// What it says.
    pub kind: ClauseKind,
    /// All of it.
    pub span: Span,
}

/// What a clause says.
#[derive(Debug, Clone)]
pub enum ClauseKind {
    /// `channels 4`
    Channels(Number),
    /// `protocol ll128`
    Protocol(Ident),
    /// `pipeline 512 KiB`
    Pipeline(Size),
    /// `threads 512`
    Threads(Number),
    /// `transport prefer nvlink, shared`
    Prefer(Vec<Ident>),
    /// `transport avoid tcp`
    Avoid(Vec<Ident>),
    /// `via switch`
    ViaSwitch,
    /// `wire bf16`
    Wire(Ident),
    /// `when size < 64 KiB { … }`
    When(When),
    /// `'gather { channel c % 2 }`
    Label(LabelBlock),
}

/// `when size OP SIZE { clauses }`.
#[derive(Debug, Clone)]
pub struct When {
    /// A comparison.
    pub op: BinaryOp,
    /// What the size of a call is compared with.
    pub size: Size,
    /// What holds then.
    pub clauses: Vec<ScheduleClause>,
}

/// `'NAME { channel EXPR }`.
#[derive(Debug, Clone)]
pub struct LabelBlock {
    /// The label, without its quote; the span has it.
    pub label: Ident,
    /// `channel EXPR`, each with its span.
    pub channels: Vec<(Expr, Span)>,
}

/// A whole number as written.
#[derive(Debug, Clone)]
pub struct Number {
    /// Its value.
    pub value: i64,
    /// All of it.
    pub span: Span,
}

/// `64 KiB`.
#[derive(Debug, Clone)]
pub struct Size {
    /// How many.
    pub number: Number,
    /// Of what; none: bytes.
    pub unit: Option<Ident>,
    /// All of it.
    pub span: Span,
}
