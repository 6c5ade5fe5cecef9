//! Errors that need no grammar: limits, encoding, brackets.
//!
//! In: what was found. Out: `SyntaxError`s.

use std::str::Utf8Error;

use crate::error::{SyntaxError, code};
use crate::items::Fault;
use crate::parse::Input;
use crate::span::{FileId, Span};
use crate::token::Kind;

/// The text is longer than the limit.
pub(crate) fn too_large(file: FileId, bytes: usize, limit: u64) -> SyntaxError {
    SyntaxError {
        code: code::SOURCE_TOO_LARGE,
        title: format!("the text has {bytes} bytes, more than the limit of {limit}"),
        span: Span { file, start: 0, end: 0 },
        label: "this file".to_owned(),
        help: Some(
            "use loops in place of written-out moves, or raise the limit: `--limit source-bytes=N`"
                .to_owned(),
        ),
        related: None,
    }
}

/// The bytes are no text.
pub(crate) fn not_utf8(file: FileId, bytes: &[u8], error: Utf8Error) -> SyntaxError {
    let at = error.valid_up_to();
    // As the text is shown: with a replacement character in this place.
    let len = char::REPLACEMENT_CHARACTER.len_utf8();
    SyntaxError {
        code: code::NOT_UTF8,
        title: format!("byte 0x{:02x} at offset {at} is not UTF-8", bytes[at]),
        span: Span::new(file, at, at + len),
        label: "not text".to_owned(),
        help: Some("save the file as UTF-8; a program itself is plain ASCII".to_owned()),
        related: None,
    }
}

/// More errors than are shown.
pub(crate) fn too_many(at: Span, limit: u32) -> SyntaxError {
    SyntaxError {
        code: code::TOO_MANY_ERRORS,
        title: format!("more than {limit} syntax errors"),
        span: at,
        label: "nothing from here on was read".to_owned(),
        help: Some("mend the first errors and check again".to_owned()),
        related: None,
    }
}

/// The tree would be deeper than the limit.
pub(crate) fn too_deep(at: Span, limit: u32) -> SyntaxError {
    SyntaxError {
        code: code::NESTING_TOO_DEEP,
        title: format!("nested more than {limit} levels deep"),
        span: at,
        label: "one level too many".to_owned(),
        help: Some(
            "each bracket, block and operator of an expression is a level: name parts of it with `let`, or raise the limit: `--limit nesting=N`"
                .to_owned(),
        ),
        related: None,
    }
}

/// A bracket without its partner.
pub(crate) fn bracket(input: Input<'_>, fault: Fault) -> SyntaxError {
    let show = |at: usize| {
        let span = input.tokens[at].span(input.file);
        (span, &input.text[span.range()])
    };
    let (span, sign) = show(fault.token());
    let (instead, partner) = match fault {
        Fault::Unopened(_) => {
            return SyntaxError {
                code: code::UNOPENED_DELIMITER,
                title: format!("`{sign}` closes nothing"),
                span,
                label: "no bracket is open here".to_owned(),
                help: Some(format!("take it out, or open it: `{}`", example(sign))),
                related: None,
            };
        }
        Fault::Unclosed(at, instead) => {
            let partner = match input.tokens[at].kind {
                Kind::OpenParen => ")",
                Kind::OpenBracket => "]",
                _ => "}",
            };
            (instead, partner)
        }
    };
    let related = instead.map(|at| {
        let (span, other) = show(at);
        (span, format!("`{other}` stands before its `{partner}`"))
    });
    SyntaxError {
        code: code::UNCLOSED_DELIMITER,
        title: format!("`{sign}` is never closed"),
        span,
        label: format!("has no `{partner}`"),
        help: Some(format!("close it: `{}`", example(partner))),
        related,
    }
}

fn example(bracket: &str) -> &'static str {
    match bracket {
        "(" | ")" => "data @ (r + 1) % n",
        "[" | "]" => "data[c] @ r",
        _ => "for r in 0..n { … }",
    }
}
