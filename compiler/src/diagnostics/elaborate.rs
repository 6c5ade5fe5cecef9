//! Wording of what `elaborate` finds: values out of range, moves that do not fit, limits.
//!
//! In: `elaborate::Error` with the variables as they stood, and the sources (to quote expressions). Out: a
//! [`Diagnostic`]. The cause of a value is shown with it: the loop (or `let`) of each variable in the expression.

use grammar::span::Span;

use super::labels::fit;
use super::{Diagnostic, Label};
use crate::elaborate::{Cut, Error, Fault, FaultKind, Var, VarKind, World};
use crate::source::Sources;

/// How many loops and `let`s are shown as causes.
const CAUSES: usize = 2;

/// An error of `elaborate` in words.
pub fn error(error: &Error, sources: &Sources) -> Diagnostic {
    match error {
        Error::Excluded { why, span, runs, world } => {
            let name = &world.algorithm;
            let mut diagnostic =
                Diagnostic::error(error.code(), format!("`{name}` is not made for {}", shape(world)))
                    .label(*span, "this does not hold")
                    .help(why.clone());
            led_here(&mut diagnostic, runs);
            diagnostic
        }
        Error::Fault(fault) => {
            let mut diagnostic = self::fault(fault, sources);
            led_here(&mut diagnostic, &fault.runs);
            diagnostic
        }
    }
}

fn fault(fault: &Fault, sources: &Sources) -> Diagnostic {
    let span = fault.span;
    let start = |title: String| Diagnostic::error(fault.kind.code(), title);
    match &fault.kind {
        FaultKind::RankOutOfRange { value, ranks, end: true } => {
            let has = up_to("rank", *ranks);
            let title = format!("ranks up to {value} do not exist: this algorithm runs on {has}");
            of_value(start(title), fault, sources, *value)
                .help(format!("a range leaves out its end: `0..{ranks}` are all ranks"))
        }
        FaultKind::RankOutOfRange { value, ranks, end: false } => {
            let title =
                format!("rank {value} does not exist: this algorithm runs on {}", up_to("rank", *ranks));
            of_value(start(title), fault, sources, *value)
                .maybe_help(rank_help(fault, sources, *value, *ranks))
        }
        FaultKind::CoordinateOutOfRange { value, level, size } => {
            let title = format!("there is no {value} on level `{level}`: it has {}", up_to("index", *size));
            of_value(start(title), fault, sources, *value)
                .maybe_help(wrap_help(fault, sources, *value, *size, level))
        }
        FaultKind::RankArgument { param, value, ranks, of } => {
            let title = format!(
                "`{param}` of `{of}` is a rank, and {value} is none: it runs on {}",
                up_to("rank", *ranks)
            );
            of_value(start(title), fault, sources, *value).help(match ranks {
                1 => "rank 0 is the only one".to_owned(),
                _ => format!("give a rank from 0 to {}", ranks.saturating_sub(1)),
            })
        }
        FaultKind::ChunkOutOfRange { value, chunks, buffer, end, declared } => {
            let has = up_to("chunk", *chunks);
            let title = if *end {
                format!("chunks up to {value} do not exist: a block of `{buffer}` has {has}")
            } else {
                format!("chunk {value} does not exist: a block of `{buffer}` has {has}")
            };
            let diagnostic = of_value(start(title), fault, sources, *value);
            match declared {
                Some(cut) => diagnostic.label(
                    *cut,
                    fit(&[format!("{} per block", count((*chunks).into(), "chunk")), String::new()]),
                ),
                None => diagnostic.help("without `chunks` a block is one chunk: say `chunks n` first"),
            }
        }
        FaultKind::BlockOutOfRange { value, blocks, buffer, end, declared } => {
            let has = up_to("block", *blocks);
            let title = if *end {
                format!("blocks up to {value} do not exist: `{buffer}` has {has}")
            } else {
                format!("block {value} does not exist: `{buffer}` has {has}")
            };
            of_value(start(title), fault, sources, *value).label(
                *declared,
                fit(&[
                    format!("`{buffer}` has {}", count((*blocks).into(), "block")),
                    count((*blocks).into(), "block"),
                ]),
            )
        }
        FaultKind::TableIndex { value, len } => {
            let title =
                format!("element {value} does not exist: the table has {}", up_to("element", *len as u32));
            of_value(start(title), fault, sources, *value)
        }
        FaultKind::BackwardRange { from, to } => {
            let title = format!("the range {from}..{to} ends before it starts");
            in_loops(start(title), fault, "this range")
                .help("a range that may be empty starts and ends at one number: `a..max(a, b)`")
        }
        FaultKind::AbsentBuffer { buffer, rank, only, declared } => {
            let title = format!("rank {rank} has no `{buffer}`: only rank {only} has");
            in_loops(start(title), fault, &format!("used at rank {rank}")).label(
                *declared,
                fit(&[format!("`{buffer}` exists at one rank only"), "declared for one rank".into()]),
            )
        }
        FaultKind::UnequalRuns { to, from, source, blocks } => {
            let unit = if *blocks { "block" } else { "chunk" };
            let (to, from) = (count(*to, unit), count(*from, unit));
            let mut diagnostic = in_loops(start(format!("{from} cannot fill {to}")), fault, &to);
            if *source != span {
                diagnostic.labels.insert(1, Label { span: *source, text: from });
            }
            diagnostic.help("both sides of a move are equally long")
        }
        FaultKind::SelfMove { combine, place } => {
            let title = if *combine {
                format!("`{place}` is added to itself")
            } else {
                format!("`{place}` is copied to itself")
            };
            in_loops(start(title), fault, "both sides are one place")
                .help("leave these turns out with a filter: `for … if from != to { … }`")
        }
        FaultKind::Overlap { to, from } => {
            let title = format!("`{to}` overlaps `{from}`, which it is made from");
            in_loops(start(title), fault, "both sides share some chunks")
                .help("go through `scratch`, or move the parts one by one")
        }
        FaultKind::EmptyReduce => in_loops(start("a reduction of nothing".into()), fault, "no operand")
            .help("a reduction needs at least one operand: widen its range, or leave the move out"),
        FaultKind::ManyOperands { count, limit } => {
            let (count, limit) = (thousands((*count).into()), thousands((*limit).into()));
            let title = format!("a reduction of {count} operands: one has at most {limit}");
            in_loops(start(title), fault, "too many operands").help(
                "reduce them in parts: `x = reduce(s in 0..k) …`, `y = reduce(s in k..n) …`, then `x += y`",
            )
        }
        FaultKind::InplaceClash { shared, buffers: [a, b], rank, other } => {
            let title = match shared {
                Some(shared) => format!("two `inplace` name one part of `{shared}` at rank {rank}"),
                None => format!("`{a}` and `{b}` are to lie in two ways to each other at rank {rank}"),
            };
            start(title)
                .label(span, "this one as well".to_owned())
                .label(*other, "this `inplace`".to_owned())
                .help("in place means that all `inplace` hold at once: declare a collective for each")
        }
        FaultKind::BindingsOverlap { buffers: [a, b], other, rank } => {
            let title = format!("`{a}` and `{b}` of one run overlap at rank {rank}, and both may be written");
            in_loops(start(title), fault, &format!("`{a}` here"))
                .label(*other, fit(&[format!("`{b}` here"), "and here".into()]))
                .help("bindings may overlap only where one side is `in`")
        }
        FaultKind::Alias { read, wrote, writer, run, rank } => {
            let title = format!("`{read}` is read after this run has overwritten it through `{wrote}`");
            let mut diagnostic = in_loops(start(title), fault, &format!("reads `{read}` at rank {rank}"));
            if *writer != span {
                diagnostic = diagnostic.label(
                    *writer,
                    fit(&[format!("overwritten here, as `{wrote}`"), "overwritten here".into()]),
                );
            }
            if fault.runs.last() != Some(run) {
                diagnostic = diagnostic.label(*run, "in this run");
            }
            diagnostic.help(format!(
                "bind `{read}` and `{wrote}` to places apart, or copy `{read}` to `scratch` first"
            ))
        }
        FaultKind::UnequalBindings { buffers: [a, b], chunks, blocks, other } => {
            let says = |i: usize, name: &str| {
                let chunks = count(chunks[i], "chunk");
                match blocks[i] {
                    1 => format!("{chunks} for `{name}`"),
                    blocks => format!("{chunks} for {blocks} blocks of `{name}`"),
                }
            };
            let title = format!("a block of `{a}` and a block of `{b}` are not equally long here");
            let label = fit(&[says(0, a), count(chunks[0], "chunk")]);
            let mut diagnostic = in_loops(start(title), fault, &label);
            if *other != span {
                diagnostic = diagnostic.label(*other, fit(&[says(1, b), count(chunks[1], "chunk")]));
            }
            diagnostic.help("all blocks of a callee are one length: bind pieces that are, too")
        }
        FaultKind::RepeatedRank { rank } => {
            in_loops(start(format!("rank {rank} takes part twice in one run")), fault, "names a rank twice")
                .help("each rank plays one part: list every rank once")
        }
        FaultKind::RepeatedOperand { operand } => {
            in_loops(start(format!("`{operand}` is counted twice")), fault, "named more than once")
                .help("the operands of a promised reduction are distinct")
        }
        FaultKind::Overflow { operation } => {
            in_loops(start(format!("`{operation}` does not fit 64 bits")), fault, "this overflows")
                .help("integers are 64 bits wide")
        }
        FaultKind::DivisionByZero { remainder, value } => {
            let title = if *remainder {
                format!("{value} % 0 has no value")
            } else {
                format!("{value} / 0 has no value")
            };
            in_loops(start(title), fault, "division by zero")
                .help("leave these turns out with a filter: `for … if … { … }`")
        }
        FaultKind::ShiftOutOfRange { value } => {
            of_value(start(format!("a shift by {value}")), fault, sources, *value).help("shift by 0 to 63")
        }
        FaultKind::NoLogarithm { value } => {
            of_value(start(format!("{value} has no logarithm")), fault, sources, *value)
                .help("`log2` and `ceil_log2` take numbers from 1 on")
        }
        FaultKind::LoopStep { value } => {
            of_value(start(format!("a loop in steps of {value}")), fault, sources, *value)
                .help("`step` is at least 1; to run backwards, add `rev`")
        }
        FaultKind::Count { blocks: false, value } => {
            of_value(start(format!("blocks cannot be cut into {value} chunks")), fault, sources, *value)
                .help("`chunks` is at least 1: `chunks max(1, …)`")
        }
        FaultKind::Count { blocks: true, value } => {
            of_value(start(format!("a buffer cannot have {value} blocks")), fault, sources, *value)
                .help("a number of blocks is at least 0: `max(0, …)`")
        }
        FaultKind::Channel { value, label, most } => {
            let within = fault.within;
            let mut diagnostic = of_value(
                start(format!("there is no channel {value} for `'{label}`")),
                fault,
                sources,
                *value,
            );
            if let Some(within) = within {
                let text = fit(&[format!("`'{label}` is put on here"), "the label is put on here".into()]);
                diagnostic = diagnostic.label(within, text);
            }
            let help =
                if *value < 0 { "`%` is never negative: `channel (…) % 2`" } else { "`channel (…) % 2`" };
            diagnostic.help(format!("channels are numbered from 0 to {most}; {help}"))
        }
        FaultKind::TooManyMoves { limit, wanted } => in_loops(
            start(format!(
                "{} moves are more than the limit of {}",
                thousands((*wanted).into()),
                thousands((*limit).into())
            )),
            fault,
            "too many moves",
        )
        .help(format!("`--limit moves={wanted}` raises the limit; operands of a reduction count as moves")),
        FaultKind::TooManyTurns { limit, wanted } => in_loops(
            start(format!(
                "{} loop turns are more than the limit of {}",
                thousands((*wanted).into()),
                thousands((*limit).into())
            )),
            fault,
            "too many turns",
        )
        .help(format!("`--limit turns={wanted}` raises the limit")),
        FaultKind::TooManyPlaces { limit, wanted, ranks, blocks, cells, cuts } => {
            too_many_places(fault, (*limit, *wanted), (*ranks, *blocks, *cells), cuts)
        }
        FaultKind::TooManyElements { limit } => {
            let title = format!("more than {} elements are stored", thousands((*limit).into()));
            in_loops(start(title), fault, "too many elements").help("`--limit moves=N` raises this limit too")
        }
        FaultKind::Shape { expected, shape } => {
            let levels = count(*expected as u64, "level");
            let asked = shape.iter().map(u32::to_string).collect::<Vec<_>>().join("x");
            let example = ["4", "2x4", "2x2x4"].get(expected.saturating_sub(1)).copied().unwrap_or("2x2x…");
            start(format!("`{}` runs on {levels} of ranks, not on `{asked}`", fault.world.algorithm))
                .label(span, levels)
                .help(format!("ask for such a world: `--ranks {example}`"))
        }
        FaultKind::UnknownParam { name, nearest } => {
            let diagnostic = start(format!("`{}` has no parameter `{name}`", fault.world.algorithm))
                .label(span, "this algorithm");
            diagnostic.maybe_help(nearest.as_ref().map(|nearest| format!("did you mean `{nearest}`?")))
        }
        FaultKind::MissingParam { name } => {
            start(format!("`{}` needs a value for `{name}`", fault.world.algorithm))
                .label(span, "it has no default")
                .help(format!("give it: `--param {name}=…`"))
        }
        FaultKind::ParamValue { name, value } => start(format!("{value} is no truth value for `{name}`"))
            .label(span, "true or false")
            .help(format!("`--param {name}=true`")),
    }
}

fn too_many_places(
    fault: &Fault,
    (limit, wanted): (u64, u128),
    (ranks, blocks, cells): (u32, u64, u64),
    cuts: &[Cut],
) -> Diagnostic {
    let title =
        format!("{} places are more than the limit of {}", thousands(wanted), thousands(limit.into()));
    let (ranks, blocks, cells) = (count(ranks.into(), "rank"), count(blocks, "block"), count(cells, "cell"));
    let product = format!("{ranks} × {blocks} × {cells}");
    let mut diagnostic = Diagnostic::error(fault.kind.code(), title);
    // The first cut is the algorithm's own; the last ones drove the number up.
    let shown = cuts.iter().take(1).chain(cuts.iter().skip(1).rev().take(2));
    diagnostic = diagnostic.label(fault.span, fit(&[product, "too many places".into()]));
    for cut in shown.filter(|cut| cut.span != fault.span) {
        diagnostic =
            diagnostic.label(cut.span, format!("cuts every block into {}", thousands(cut.cells.into())));
    }
    let help = match u64::try_from(wanted) {
        Ok(wanted) => format!("`--limit places={wanted}` raises the limit; fewer chunks need fewer places"),
        Err(_) => "cut blocks into fewer chunks".to_owned(),
    };
    diagnostic.help(help)
}

/// Labels at the runs that led to a fault, innermost first.
fn led_here(diagnostic: &mut Diagnostic, runs: &[Span]) {
    for run in runs.iter().rev().take(3) {
        diagnostic.labels.push(Label { span: *run, text: "in this run".to_owned() });
    }
}

/// The primary label for a value that an expression has, and the causes of it.
fn of_value(diagnostic: Diagnostic, fault: &Fault, sources: &Sources, value: i64) -> Diagnostic {
    let text = sources.snippet(fault.span);
    let used = used(fault, text);
    let when: Vec<String> = used
        .iter()
        .filter(|var| var.name != text)
        .map(|var| format!("{} = {}", var.name, var.value))
        .collect();
    let level = fault.world.levels.iter().chain([]).find(|(name, _)| names(text, name));
    let when = match (when.is_empty(), level) {
        (false, _) => format!(" when {}", when.join(", ")),
        (true, Some((name, size))) if name != text => format!(" when {name} = {size}"),
        (true, _) => String::new(),
    };
    let plain = text.parse::<i64>().is_ok();
    // Of a parameter the whole declaration is shown.
    let name = text.split_once(": ").map_or(text, |(name, _)| name);
    let quoted = if text.contains('\n') || text.is_empty() { "this".to_owned() } else { format!("`{name}`") };
    let label = if plain {
        "this one".to_owned()
    } else {
        fit(&[
            format!("{quoted} is {value}{when}"),
            format!("this is {value}{when}"),
            format!("this is {value}"),
        ])
    };
    causes(diagnostic.label(fault.span, label), fault, &used)
}

/// The primary label for what is wrong with a move, with the variables around it.
fn in_loops(diagnostic: Diagnostic, fault: &Fault, text: &str) -> Diagnostic {
    let loops: Vec<String> = fault
        .vars
        .iter()
        .filter(|var| matches!(var.kind, VarKind::Loop { .. }))
        .map(|var| format!("{} = {}", var.name, var.value))
        .collect();
    let mut texts: Vec<String> =
        (0..loops.len()).map(|skip| format!("{text}, with {}", loops[skip..].join(", "))).collect();
    texts.push(text.to_owned());
    diagnostic.label(fault.span, fit(&texts))
}

/// Labels at the loops and `let`s of the variables that an expression uses.
fn causes(mut diagnostic: Diagnostic, fault: &Fault, used: &[&Var]) -> Diagnostic {
    for var in used.iter().take(CAUSES) {
        let name = &var.name;
        let text = match &var.kind {
            VarKind::Let => format!("{name} is {} here", var.value),
            VarKind::Loop { least, greatest, level, .. } => {
                let takes = if least == greatest {
                    format!("{name} takes only the value {least}")
                } else {
                    format!("{name} takes the values {least} to {greatest}")
                };
                let from = level.as_ref().map(|level| origin(fault, level)).unwrap_or_default();
                fit(&[format!("{takes}{from}"), takes])
            }
        };
        diagnostic = diagnostic.label(var.span, text);
    }
    diagnostic
}

/// Where a level's size comes from: the command line, or (in a callee) the run.
fn origin(fault: &Fault, level: &str) -> String {
    if fault.runs.is_empty() {
        return format!(", from `--ranks {}`", joined(&fault.world));
    }
    let size = fault.world.levels.iter().find(|(name, _)| name == level).map_or(0, |(_, size)| *size);
    format!(", from {level} = {size}")
}

/// The variables that occur in an expression, innermost first.
fn used<'f>(fault: &'f Fault, text: &str) -> Vec<&'f Var> {
    fault.vars.iter().rev().filter(|var| names(text, &var.name)).collect()
}

/// Whether a name occurs in a text as a word.
fn names(text: &str, name: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back().is_some_and(word);
        let after = text[at + name.len()..].chars().next().is_some_and(word);
        !before && !after
    })
}

fn rank_help(fault: &Fault, sources: &Sources, value: i64, ranks: u32) -> Option<String> {
    match &fault.world.levels[..] {
        [(level, _)] => wrap_help(fault, sources, value, ranks, level),
        _ => None,
    }
}

/// What to do about an index that runs past an end: go round, or leave the turn out.
fn wrap_help(fault: &Fault, sources: &Sources, value: i64, size: u32, level: &str) -> Option<String> {
    let text = sources.snippet(fault.span);
    let size = i64::from(size);
    let sum = (text.contains(" + ") || text.contains(" - "))
        && !text.contains(['%', '^', '<', '>', '&', '|', '*', '/', '\n']);
    let near = (size..2 * size).contains(&value) || (-size..0).contains(&value);
    if sum && near && text.len() <= 40 {
        let inner =
            if text.starts_with('(') && text.ends_with(')') { text.to_owned() } else { format!("({text})") };
        return Some(format!("wrap around the ring with `{inner} % {level}`"));
    }
    if used(fault, text).is_empty() || text.len() > 40 || text.contains('\n') {
        return None;
    }
    let test = if value < 0 { format!("{text} >= 0") } else { format!("{text} < {level}") };
    Some(format!("leave these turns out with a filter: `for … if {test} {{ … }}`"))
}

/// `ranks 0 to 7`; `rank 0 only`; `no blocks`.
fn up_to(noun: &str, size: u32) -> String {
    let plural = if noun == "index" { "indices".to_owned() } else { format!("{noun}s") };
    match size {
        0 => format!("no {plural}"),
        1 => format!("{noun} 0 only"),
        _ => format!("{plural} 0 to {}", size - 1),
    }
}

fn count(count: u64, noun: &str) -> String {
    match count {
        0 => format!("no {noun}s"),
        1 => format!("one {noun}"),
        _ => format!("{} {noun}s", thousands(count.into())),
    }
}

/// `8 ranks`, `2x4 ranks`.
fn shape(world: &World) -> String {
    let sizes = joined(world);
    let params: Vec<String> = world.params.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let with = if params.is_empty() { String::new() } else { format!(" with {}", params.join(", ")) };
    if sizes == "1" { format!("one rank{with}") } else { format!("{sizes} ranks{with}") }
}

fn joined(world: &World) -> String {
    world.levels.iter().map(|(_, size)| size.to_string()).collect::<Vec<_>>().join("x")
}

/// `20,000,000`.
fn thousands(number: u128) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl Diagnostic {
    fn maybe_help(self, help: Option<String>) -> Diagnostic {
        match help {
            Some(help) => self.help(help),
            None => self,
        }
    }
}
