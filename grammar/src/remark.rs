//! Comments and documentation: which of the `//` and `///` lines is which.
//!
//! In: remarks as the lexer found them. Out: `ast::Comment`s, and the docs of each item. A run of `///` lines right
//! before a declaration documents it; any other `///` line is a comment.

use std::ops::Range;

use crate::ast;
use crate::span::{FileId, Span};
use crate::token::Remark;

/// Which remarks, none before `from`, document the item whose first token is `token`.
pub(crate) fn docs_before(remarks: &[Remark], from: usize, token: usize) -> Range<usize> {
    let end = remarks.partition_point(|remark| remark.before as usize <= token).max(from);
    let mut start = end;
    while start > from && remarks[start - 1].doc && remarks[start - 1].before as usize == token {
        start -= 1;
    }
    start..end
}

/// Where an item keeps its docs.
pub(crate) fn docs_of(item: &mut ast::Item) -> &mut Vec<String> {
    match item {
        ast::Item::Collective(collective) => &mut collective.docs,
        ast::Item::Algorithm(algorithm) => &mut algorithm.docs,
        ast::Item::Fn(function) => &mut function.docs,
        ast::Item::Schedule(schedule) => &mut schedule.docs,
    }
}

/// A remark as a comment.
pub(crate) fn comment(file: FileId, text: &str, remark: &Remark) -> ast::Comment {
    let span = Span { file, start: remark.start, end: remark.end };
    ast::Comment { span, text: text[span.range()][2..].to_owned(), own_line: remark.own_line }
}

/// A remark as a line of documentation: without the slashes and one blank.
pub(crate) fn doc(text: &str, remark: &Remark) -> String {
    let line = &text[remark.start as usize + 3..remark.end as usize];
    line.strip_prefix(' ').unwrap_or(line).to_owned()
}
