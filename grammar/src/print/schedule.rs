//! The clauses of schedules as `Doc`s.
//!
//! In: nodes of the tree. Out: [`Doc`]s; what stands in braces is left to the caller.

use super::comments::Comments;
use super::doc::Doc;
use super::expression::{Level, expr, list, names, sign};
use crate::ast::{ClauseKind, Expr, Ident, ScheduleClause, Size, When};

/// A clause without braces, or what stands before them.
pub(super) fn clause(comments: &mut Comments<'_>, clause: &ScheduleClause) -> Doc {
    let text = match &clause.kind {
        ClauseKind::Channels(count) => format!("channels {}", count.value),
        ClauseKind::Protocol(name) => format!("protocol {}", name.name),
        ClauseKind::Pipeline(size) => format!("pipeline {}", size_text(size)),
        ClauseKind::Threads(count) => format!("threads {}", count.value),
        ClauseKind::Prefer(names) => return transports(comments, "transport prefer ", names),
        ClauseKind::Avoid(names) => return transports(comments, "transport avoid ", names),
        ClauseKind::ViaSwitch => "via switch".to_owned(),
        ClauseKind::Wire(name) => format!("wire {}", name.name),
        ClauseKind::When(when) => when_header(when),
        ClauseKind::Label(block) => format!("'{}", block.label.name),
    };
    Doc::Text(text)
}

/// `channel c % 2`
pub(super) fn channel(comments: &mut Comments<'_>, value: &Expr) -> Doc {
    Doc::group(vec![Doc::Word("channel "), expr(comments, value, Level::Any)])
}

/// Where what stands before the braces of a clause ends.
pub(super) fn header_end(clause: &ScheduleClause) -> u32 {
    match &clause.kind {
        ClauseKind::When(when) => when.size.span.end,
        ClauseKind::Label(block) => block.label.span.end,
        _ => clause.span.end,
    }
}

fn when_header(when: &When) -> String {
    format!("when size {}{}", sign(when.op), size_text(&when.size))
}

fn size_text(size: &Size) -> String {
    match &size.unit {
        Some(unit) => format!("{} {}", size.number.value, unit.name),
        None => size.number.value.to_string(),
    }
}

fn transports(comments: &mut Comments<'_>, before: &'static str, of: &[Ident]) -> Doc {
    let Some(first) = of.first() else { return Doc::Word(before) };
    let span = |name: &Ident| (name.span.start, name.span.end);
    let items = list(comments, of, first.span.start, None, span, &mut |_, name: &Ident| {
        Doc::Text(names(std::slice::from_ref(name), ""))
    });
    Doc::group(vec![Doc::Word(before), Doc::nest(items)])
}
