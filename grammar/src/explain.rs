//! Why a token does not fit: wording by context.

use crate::error::{SyntaxError, code};
use crate::parse::Input;
use crate::span::Span;

/// The error at token `at` of an item.
pub(crate) fn unexpected(input: Input<'_>, at: usize, expected: &[String]) -> SyntaxError {
    let token = input.tokens.get(at).or(input.tokens.last());
    let span = token.map_or(Span { file: input.file, start: 0, end: 0 }, |token| token.span(input.file));
    SyntaxError {
        code: code::SYNTAX,
        title: format!("unexpected `{}`", &input.text[span.range()]),
        span,
        label: "does not fit here".to_owned(),
        help: Some(format!("{expected:?}")),
        related: None,
    }
}

/// The error for what stands between two declarations.
pub(crate) fn between(input: Input<'_>) -> SyntaxError {
    unexpected(input, 0, &[])
}
