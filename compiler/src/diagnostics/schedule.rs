//! Wording of what `check` finds in schedules and labels.
//!
//! In: `check::Error`. Out: a [`Diagnostic`].

use super::Diagnostic;
use super::labels::fit;
use crate::check::{Error, ErrorKind, ScheduleWord};

/// An error of a schedule in words.
pub(super) fn error(error: &Error) -> Diagnostic {
    let span = error.span;
    let start = |title: String| Diagnostic::error(error.kind.code(), title);
    match &error.kind {
        ErrorKind::ScheduleTwice { name, first } => start(format!("`{name}` has two schedules"))
            .label(span, "the second one")
            .label(*first, "the first one")
            .help("join them: sizes are told apart with `when size < 64 KiB { … }`"),
        ErrorKind::ClauseTwice { clause, first } => start(format!("`{clause}` is said twice"))
            .label(span, "again here")
            .label(*first, "said here already")
            .help("leave one out; what holds for some sizes stands in `when size < 64 KiB { … }`"),
        ErrorKind::UnknownWord { what, word, nearest, known } => {
            let noun = noun(*what);
            let help = match nearest {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => format!("there are {}", list(known)),
            };
            start(format!("no {noun} is called `{word}`")).label(span, format!("unknown {noun}")).help(help)
        }
        ErrorKind::ScheduleNumber { clause, value, limit, small } => {
            let label = if *small { "too small" } else { "too large" };
            let title = match (*clause, *small) {
                ("size", _) => format!("no call has a size of {value}"),
                (clause, true) => format!("`{clause}` is at least {limit}, not {value}"),
                (clause, false) => format!("`{clause}` is at most {limit}, not {value}"),
            };
            let help = match *clause {
                "size" => "sizes are from 0 to 16 EiB: `when size < 64 KiB { … }`".to_owned(),
                clause => format!("leave `{clause}` out to let rcc choose"),
            };
            start(title).label(span, label).help(help)
        }
        ErrorKind::TransportClash { transport, other } => {
            start(format!("`{transport}` is both preferred and avoided"))
                .label(span, "here it is one")
                .label(*other, "and here the other")
                .help("leave it out of one of the two")
        }
        ErrorKind::NoTransport => start("every transport is avoided".into())
            .label(span, "leaves nothing to send with")
            .help("leave at least one, or say what is wanted: `transport prefer shared`"),
        ErrorKind::NestedWhen => start("a `when` within a `when`".into())
            .label(span, "not here")
            .help("put one after the other: the first that matches wins"),
        ErrorKind::NeverMatches { earlier, sizes } => never(error, *earlier, *sizes),
        ErrorKind::LabelSaysNothing { name } => start(format!("nothing is said of `'{name}`"))
            .label(span, "no `channel` in its braces")
            .help(format!("write `'{name} {{ channel c % 2 }}`, or leave it out")),
        ErrorKind::UnknownLabel { name, nearest, of, declared, none } => {
            let help = match nearest {
                Some(nearest) => format!("did you mean `'{nearest}`?"),
                None => format!("put it on in the algorithm: `'{name}: for c in 0..n {{ … }}`"),
            };
            let has = if *none { "it has no labels" } else { "not one of its labels" };
            start(format!("`{of}` has no label `'{name}`"))
                .label(span, "unknown label")
                .label(*declared, has)
                .help(help)
        }
        ErrorKind::LabelTwice { name, first } => start(format!("two statements have the label `'{name}`"))
            .label(span, "again here")
            .label(*first, fit(&[format!("`'{name}` is put on here"), "put on here".into()]))
            .help("give each its own; a label on a loop or an `if` covers all that it holds"),
        _ => start(String::new()),
    }
}

fn never(error: &Error, earlier: Option<grammar::span::Span>, sizes: bool) -> Diagnostic {
    let diagnostic = Diagnostic::error(error.kind.code(), "this `when` can never match");
    match (sizes, earlier) {
        (false, _) => diagnostic.label(error.span, "there is no such size").help("leave it out"),
        (true, Some(earlier)) => diagnostic
            .label(error.span, "these sizes are taken")
            .label(earlier, "by this one, which comes first")
            .help("the first `when` that matches wins: put the narrower one first"),
        (true, None) => diagnostic
            .label(error.span, "the ones before it take all these sizes")
            .help("the first `when` that matches wins: put the narrower ones first"),
    }
}

fn noun(what: ScheduleWord) -> &'static str {
    match what {
        ScheduleWord::Protocol => "protocol",
        ScheduleWord::Transport => "transport",
        ScheduleWord::Wire => "wire type",
        ScheduleWord::Unit => "unit of size",
    }
}

fn list(words: &[String]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}
