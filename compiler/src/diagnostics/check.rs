//! Wording of what `check` finds.
//!
//! In: `check::Error`. Out: a [`Diagnostic`].

use super::Diagnostic;
use super::labels::fit;
use super::schedule;
use crate::check::types::Type;
use crate::check::{Error, ErrorKind, NameKind, Placed, SignalMisuse, Where};

/// How many calls of a circle are shown.
const CALLS: usize = 6;

/// An error of `check` in words.
pub fn error(error: &Error) -> Diagnostic {
    let span = error.span;
    let start = |title: String| Diagnostic::error(error.kind.code(), title);
    match &error.kind {
        ErrorKind::UnknownName { .. } => unknown(error),
        ErrorKind::DuplicateName { name, first } => start(format!("`{name}` is declared twice"))
            .label(span, "declared again here")
            .label(*first, "first declared here")
            .help(format!("give one of the two another name than `{name}`")),
        ErrorKind::Shadowed { name, outer } => start(format!("`{name}` already has a meaning here"))
            .label(span, "a second meaning")
            .label(*outer, "the first one")
            .help("names are never shadowed: choose another one"),
        ErrorKind::Reserved { name } => start(format!("`{name}` is a name of the language itself"))
            .label(span, "declared here")
            .help("choose another name"),
        ErrorKind::Arity { name, expected, at_least, found } => {
            let least = if *at_least { "at least " } else { "" };
            let some = count(*expected, "argument");
            start(format!("`{name}` takes {least}{some}, not {found}")).label(span, arguments_given(*found))
        }
        ErrorKind::MissingArgument { of, param, declared } => {
            start(format!("`{of}` needs a value for `{param}`"))
                .label(span, fit(&[format!("no `{param}` is given"), "an argument is missing".into()]))
                .label(*declared, "it has no default")
                .help(format!("write `{}({param} = …)`", last(of)))
        }
        ErrorKind::ArgumentTwice { param, first } => start(format!("`{param}` is given twice"))
            .label(span, "again here")
            .label(*first, "already given here")
            .help("leave one of the two out"),
        ErrorKind::PositionalAfterNamed => start("an argument without a name follows a named one".into())
            .label(span, "which parameter is this?")
            .help("put it before the named arguments, or name it"),
        ErrorKind::Type { expected, found } => wrong_type(error, *expected, *found),
        ErrorKind::NotATable { name, declared } => start(format!("`{name}` is no table"))
            .label(span, "indexed here")
            .label(*declared, "declared here")
            .help(format!("a table is written `let {name} = [0, 3, 1, 2]`")),
        ErrorKind::Recursion { functions, cycle } => recursion(error, *functions, cycle),
        ErrorKind::IndexCount { buffer, blocks, declared, found } => {
            let (has, help) = if *blocks {
                ("blocks of chunks", format!("write `{buffer}[block]` or `{buffer}[block][chunk]`"))
            } else {
                ("one block of chunks", format!("write `{buffer}` or `{buffer}[chunk]`"))
            };
            // So few are too many in a collective only.
            let whole = *found <= 1 + usize::from(*blocks);
            let verb = if *found == 1 { "is" } else { "are" };
            let why = if whole { "; a collective speaks of whole blocks only" } else { "" };
            start(format!("{} {verb} too many for `{buffer}`", count(*found, "index")))
                .label(span, fit(&[format!("`{buffer}` is {has}"), has.to_owned()]))
                .label(*declared, "declared here")
                .help(format!("{help}{why}"))
        }
        ErrorKind::IndexAfterRange { buffer } => start(format!("chunks of a range of blocks of `{buffer}`"))
            .label(span, "these are not one run")
            .help("only the last index may be a range; loop over the blocks"),
        ErrorKind::Coordinates { expected, found, declared } => {
            let help = if *expected == 1 {
                "a rank is one number here: `@ r`".to_owned()
            } else {
                let names: Vec<&str> = ["i", "j", "k", "l"].into_iter().take(*expected).collect();
                format!(
                    "write one coordinate per level, `@ ({})`, or `*` for all of a level",
                    names.join(", ")
                )
            };
            start(format!("a rank has {} here, not {found}", count(*expected, "coordinate")))
                .label(span, count(*found, "coordinate"))
                .label(*declared, count(*expected, "level"))
                .help(help)
        }
        ErrorKind::ManyRanks { destination: true } => {
            start("many ranks are written, but not by a copy".into())
                .label(span, "more than one rank")
                .help("only `x @ * = y @ r` writes many ranks at once; use a loop")
        }
        ErrorKind::ManyRanks { destination: false } => start("a value is read from many ranks".into())
            .label(span, "more than one rank")
            .help("combine them with `reduce x @ *`, or name one rank"),
        ErrorKind::OneRank => start("one rank's value is reduced".into())
            .label(span, "this names one rank only")
            .help("write `reduce x @ *` for all ranks, or copy it without `reduce`"),
        ErrorKind::Misplaced { what, why } => misplaced(error, *what, *why),
        ErrorKind::SelfOutside => start("`self` means nothing here".into())
            .label(span, "no rank is meant")
            .help("`self` is the callee's own rank, in what a `run` binds after `with`"),
        ErrorKind::Signal(misuse) => signal(error, *misuse),
        ErrorKind::CombineReduce => start("`+=` with a reduction on its right side".into())
            .label(span, "two ways to combine at once")
            .help("list the place among the operands: `x @ r = reduce(x @ r, y @ r)`"),
        ErrorKind::Unbound { callee, buffers, declared } => {
            let names: Vec<String> = buffers.iter().map(|name| format!("`{name}`")).collect();
            let all = names.join(" and ");
            let verb = if buffers.len() == 1 { "is" } else { "are" };
            let example: Vec<String> = buffers.iter().map(|name| format!("{name} = …")).collect();
            start(format!("{all} of `{callee}` {verb} not bound"))
                .label(span, fit(&[format!("without {all}"), "a buffer is missing".into()]))
                .label(*declared, "declared here")
                .help(format!("every buffer of the callee is bound: `with {}`", example.join(", ")))
        }
        ErrorKind::BoundTwice { buffer, first } => start(format!("`{buffer}` is bound twice"))
            .label(span, "again here")
            .label(*first, "already bound here")
            .help("leave one of the two out"),
        ErrorKind::InWritten { buffer, declared, bound_to: None } => {
            start(format!("`{buffer}` may only be read"))
                .label(span, "written here")
                .label(*declared, "declared `in`")
                .help("write to `scratch`, or to an `out` buffer")
        }
        ErrorKind::InWritten { buffer, declared, bound_to: Some(callee) } => {
            start(format!("`{buffer}` may only be read, but the callee may write `{callee}`"))
                .label(span, "bound here")
                .label(*declared, "declared `in`")
                .help(format!("bind `{callee}` to scratch or to an `out` buffer"))
        }
        ErrorKind::NothingToCheck { .. } => start("nothing to check".into())
            .label(span, "no algorithm and no collective")
            .help("declare one: `algorithm ring on ranks[n] implements allreduce { … }`"),
        ErrorKind::Levels { name, expected, found, declared, run } => {
            levels(error, name, (*expected, *found), *declared, *run)
        }
        ErrorKind::PromisesNothing { name } => start(format!("`{name}` promises nothing"))
            .label(span, "no `ensures`")
            .help("say what holds at the end: `ensures for r in 0..n: output @ r == input @ r`"),
        ErrorKind::EnsuresSide { buffer, declared, left: true } => {
            start(format!("a promise about `{buffer}`, which does not change"))
                .label(span, "the left side speaks of the end")
                .label(*declared, "declared `in`")
                .help("put an `out` or `inout` buffer on the left side")
        }
        ErrorKind::EnsuresSide { buffer, declared, left: false } => {
            start(format!("`{buffer}` holds nothing at entry"))
                .label(span, "the right side speaks of the start")
                .label(*declared, "declared `out`")
                .help("put an `in` or `inout` buffer on the right side")
        }
        ErrorKind::InplaceModes { buffers: [left, right] } => {
            start(format!("`{left}` and `{right}` are not an `in` and an `out` buffer"))
                .label(span, "these may not be one memory")
                .help("`inplace` joins an `in` with an `out` buffer; an `inout` needs none")
        }
        ErrorKind::ScheduleTwice { .. }
        | ErrorKind::ClauseTwice { .. }
        | ErrorKind::UnknownWord { .. }
        | ErrorKind::ScheduleNumber { .. }
        | ErrorKind::TransportClash { .. }
        | ErrorKind::NoTransport
        | ErrorKind::NestedWhen
        | ErrorKind::NeverMatches { .. }
        | ErrorKind::LabelSaysNothing { .. }
        | ErrorKind::UnknownLabel { .. }
        | ErrorKind::LabelTwice { .. } => schedule::error(error),
        ErrorKind::TooDeep { limit } => start(format!("this nests more than {limit} levels deep"))
            .label(span, "too deep from here on")
            .help("give inner parts a name: with `let`, or as an algorithm that is run"),
    }
}

fn unknown(error: &Error) -> Diagnostic {
    let ErrorKind::UnknownName { kind, name, nearest, is, of } = &error.kind else {
        return Diagnostic::error(error.kind.code(), "");
    };
    let what = noun(*kind);
    let title = match (of, is) {
        (Some(of), _) => format!("`{of}` has no {what} `{name}`"),
        (None, Some(is)) => format!("`{name}` is {}, not {}", with_article(noun(*is)), with_article(what)),
        (None, None) => format!("no {what} is called `{name}`"),
    };
    let diagnostic = Diagnostic::error(error.kind.code(), title).label(error.span, format!("unknown {what}"));
    let meant = nearest.split_last().map(|(last, others)| match others {
        [] => format!("did you mean `{last}`?"),
        _ => {
            let others: Vec<String> = others.iter().map(|one| format!("`{one}`")).collect();
            format!("did you mean {} or `{last}`?", others.join(", "))
        }
    });
    match (meant, kind) {
        (Some(meant), _) => diagnostic.help(meant),
        (None, NameKind::Collective) => {
            diagnostic.help(format!("declare it: `collective {name} on ranks[n] {{ … }}`"))
        }
        (None, NameKind::Buffer) if of.is_none() => {
            diagnostic.help(format!("an algorithm's own buffers are declared first: `scratch {name}`"))
        }
        (None, NameKind::Algorithm) => {
            diagnostic.help("a standard algorithm is named in full: `std::allreduce::ring`")
        }
        (None, NameKind::Variable) if of.is_some() => {
            diagnostic.help("a schedule sees the variables in scope at the label, in the algorithm")
        }
        (None, NameKind::Variable) => diagnostic.help(format!(
            "`let {name} = …` gives a value a name; the variable of a loop is known only inside it"
        )),
        _ => diagnostic,
    }
}

fn wrong_type(error: &Error, expected: Type, found: Type) -> Diagnostic {
    let (expected, found) = (type_name(expected), type_name(found));
    let diagnostic = Diagnostic::error(error.kind.code(), format!("{expected} is needed, not {found}"))
        .label(error.span, format!("this is {found}"));
    match error.kind {
        ErrorKind::Type { found: Type::Table, .. } => diagnostic.help("take one element: `table[i]`"),
        ErrorKind::Type { found: Type::Buffer, .. } => {
            diagnostic.help("what buffers hold is not known here: programs do not depend on data")
        }
        ErrorKind::Type { expected: Type::Int, found: Type::Bool } => {
            diagnostic.help("turn it into a number with `(if … then 1 else 0)`")
        }
        ErrorKind::Type { expected: Type::Bool, found: Type::Int } => {
            diagnostic.help("compare it: `… == 1`, `… != 0`")
        }
        _ => diagnostic,
    }
}

fn recursion(error: &Error, functions: bool, cycle: &[(String, grammar::span::Span)]) -> Diagnostic {
    let first = cycle.first().map_or("", |(name, _)| name);
    let title = match (functions, cycle.len()) {
        (true, 1) => format!("the function `{first}` calls itself"),
        (true, _) => format!("the function `{first}` calls itself through others"),
        (false, 1) => format!("the algorithm `{first}` runs itself"),
        (false, _) => format!("the algorithm `{first}` runs itself through others"),
    };
    let verb = if functions { "calls" } else { "runs" };
    let mut diagnostic = Diagnostic::error(error.kind.code(), title);
    for (i, (name, call)) in cycle.iter().enumerate().take(CALLS) {
        let next = cycle.get(i + 1).map_or(first, |(next, _)| next);
        let texts = [format!("`{name}` {verb} `{next}` here"), format!("{verb} the next one here")];
        diagnostic = diagnostic.label(*call, fit(&texts));
    }
    diagnostic.help(if functions {
        "there is no recursion: use `sum(x in a..b) …`, or a `let` table"
    } else {
        "there is no recursion: use a loop"
    })
}

fn misplaced(error: &Error, what: Placed, why: Where) -> Diagnostic {
    let name = match what {
        Placed::Chunks => "chunks",
        Placed::Scratch => "scratch",
        Placed::Require => "require",
        Placed::InplaceNone => "inplace none",
        Placed::Step => "step",
        Placed::Run => "run",
    };
    let code = error.kind.code();
    match why {
        Where::Twice(first) => Diagnostic::error(code, format!("`{name}` stands twice"))
            .label(error.span, "again here")
            .label(first, "first here")
            .help("it speaks of the whole algorithm: leave one out"),
        Where::After(first) => Diagnostic::error(code, format!("`{name}` stands after the first move"))
            .label(error.span, "too late here")
            .label(first, "this already speaks of chunks")
            .help(format!("put `{name}` first")),
        Where::Inside(around) => {
            let (title, help) = match what {
                Placed::Step => (
                    "a `step` within a `step`",
                    "its moves read what was there before the outer step: take the inner `step` away, or put one after the other",
                ),
                Placed::Run => (
                    "a `run` within a `step`",
                    "a callee has steps of its own: put the `run` before or after",
                ),
                _ => ("", "it speaks of the whole algorithm: put it at the top of the body"),
            };
            let title =
                if title.is_empty() { format!("`{name}` within another statement") } else { title.into() };
            Diagnostic::error(code, title)
                .label(error.span, "not here")
                .label(around, "inside this")
                .help(help)
        }
    }
}

fn signal(error: &Error, misuse: SignalMisuse) -> Diagnostic {
    let example = "`signal @ q = signal @ p` tells q all arrivals that p knows of";
    let (title, label, help) = match misuse {
        SignalMisuse::Combined => {
            ("`signal` is not combined with `+=`", "arrivals are united, not summed", example)
        }
        SignalMisuse::Reduced => ("`signal` is not reduced", "arrivals are united, not summed", example),
        SignalMisuse::Indexed => ("`signal` has no chunks", "an index here", example),
        SignalMisuse::Mixed => (
            "data and `signal` do not mix",
            "this is data",
            "`signal` carries no data: both sides are `signal`, or neither",
        ),
        SignalMisuse::Bound => (
            "`signal` is bound to a buffer",
            "`signal` holds no data",
            "a callee's `signal` is this algorithm's: nothing needs to be bound",
        ),
        SignalMisuse::Promised => {
            ("a promise about `signal`", "`signal` holds no data", "write `ensures synchronised`")
        }
    };
    Diagnostic::error(error.kind.code(), title).label(error.span, label).help(help)
}

fn levels(
    error: &Error,
    name: &str,
    (expected, found): (usize, usize),
    declared: grammar::span::Span,
    run: bool,
) -> Diagnostic {
    let code = error.kind.code();
    let needs = count(expected, "level");
    if run {
        return Diagnostic::error(code, format!("`{name}` runs on {needs}, not on {found}"))
            .label(error.span, fit(&[format!("{} of ranks", count(found, "level")), String::new()]))
            .label(declared, format!("made for {needs}"))
            .help(format!("run it on a set with {expected} `*`, so that it has {needs}"));
    }
    Diagnostic::error(code, format!("`{name}` speaks of {needs} of ranks, the algorithm of {found}"))
        .label(error.span, count(found, "level"))
        .label(declared, format!("made for {needs}"))
        .help("give both the same number of levels; a collective of one level serves any")
}

fn noun(kind: NameKind) -> &'static str {
    match kind {
        NameKind::Variable => "variable",
        NameKind::Table => "table",
        NameKind::Buffer => "buffer",
        NameKind::Function => "function",
        NameKind::Collective => "collective",
        NameKind::Algorithm => "algorithm",
        NameKind::Parameter => "parameter",
    }
}

fn with_article(noun: &str) -> String {
    if noun.starts_with('a') { format!("an {noun}") } else { format!("a {noun}") }
}

fn type_name(ty: Type) -> &'static str {
    match ty {
        Type::Int => "a number",
        Type::Bool => "a truth value",
        Type::Table => "a table",
        Type::Buffer => "a buffer",
        Type::Unknown(_) | Type::Wrong => "a value",
    }
}

fn count(count: usize, noun: &str) -> String {
    match (count, noun) {
        (1, _) => format!("one {noun}"),
        (0, "index") => "no indices".to_owned(),
        (_, "index") => format!("{count} indices"),
        (0, _) => format!("no {noun}s"),
        _ => format!("{count} {noun}s"),
    }
}

fn arguments_given(found: usize) -> String {
    if found == 1 { "one is given".to_owned() } else { format!("{found} are given") }
}

/// `ring` of `std::allreduce::ring`.
fn last(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}
