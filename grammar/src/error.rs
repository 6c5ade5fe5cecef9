//! Syntax errors as plain data: what is wrong, where, what would be right. Wording lives here because the
//! grammar alone knows what it expected; rendering is the compiler's `diagnostics`.

use crate::span::Span;

/// A syntax error: the first of its item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The stable code, `coll::…`.
    pub code: &'static str,
    /// A lower-case fragment that stands alone.
    pub title: String,
    /// The text at fault.
    pub span: Span,
    /// What is wrong there, in under 50 columns.
    pub label: String,
    /// What to do, with one right example.
    pub help: Option<String>,
    /// A second place that belongs to it (an opening bracket, say).
    pub related: Option<(Span, String)>,
}
