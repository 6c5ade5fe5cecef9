//! Expressions of the syntax tree.
//!
//! In: nothing. Out: plain data, part of [`super`].

use super::{Binder, Ident};
use crate::span::Span;

/// An expression over 64-bit integers and truth values.
#[derive(Debug, Clone)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where.
    pub span: Span,
}

/// The kinds of expression.
#[derive(Debug, Clone)]
pub enum ExprKind {
    /// `42`
    Int(i64),
    /// `true`
    Bool(bool),
    /// `n`
    Var(String),
    /// `self`
    SelfRank,
    /// `-e`, `not e`
    Unary(UnaryOp, Box<Expr>),
    /// `a + b`
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `if c then a else b`
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `min(a, b)`, `partner(r)`
    Call(Ident, Vec<Expr>),
    /// `cable[r]`
    Index(Ident, Box<Expr>),
    /// `sum(x in a..b) e`
    Sum {
        /// What runs.
        binders: Vec<Binder>,
        /// Which are kept.
        filter: Option<Box<Expr>>,
        /// What is summed.
        value: Box<Expr>,
    },
    /// `(e)`: kept so that `print` can give back what was written.
    Paren(Box<Expr>),
}

/// `-` and `not`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnaryOp {
    /// `-`
    Neg,
    /// `not`
    Not,
}

/// Binary operators; precedence in `docs/language.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryOp {
    /// `*`
    Mul,
    /// `/` (Euclidean)
    Div,
    /// `%` (Euclidean: never negative)
    Rem,
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `<<`
    Shl,
    /// `>>`
    Shr,
    /// `&`
    BitAnd,
    /// `^`
    BitXor,
    /// `|`
    BitOr,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `and`
    And,
    /// `or`
    Or,
}
