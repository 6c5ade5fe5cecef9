//! Wording of promises that are not kept.
//!
//! In: the first place that is wrong. Out: a diagnostic. The one hard idea: say what the user can act on. The line that
//! last wrote a wrong place is shown; where nothing wrote it and some line would have, had its loop made one more turn,
//! that loop is shown.

use plan::collective::BlockRef;
use plan::ids::{BufferId, RankId};

use super::labels::{Ask, at_move, fit};
use super::places::{first_cell, list, operands, place, rank, ranks, within, world};
use super::short::one_turn_short;
use super::{Diagnostic, Label};
use crate::graph::{Broken, Fault, Form, Holds};
use crate::trace::{BufferKind, MoveId, Place, Trace};

/// A place that does not hold what it must.
pub(crate) fn promise(broken: &Broken, fault: &Fault, trace: &Trace, bindings: &mut Ask<'_>) -> Diagnostic {
    if broken.holds == Holds::Nothing && fault.form == Form::Disjoint {
        return never_received(broken, fault, trace, bindings);
    }
    let form = if fault.form == Form::Same { " in place" } else { "" };
    let title = format!(
        "{} does not do what {} promises{form} ({})",
        trace.algorithm,
        trace.collective,
        world(trace)
    );
    let mut diagnostic = Diagnostic::error("coll::promise", title);
    let mut short = String::new();
    match broken.last {
        Some(mv) => diagnostic.labels = at_move(trace, mv, "last written here", bindings),
        // It holds its entry value still: a copy would not make that a reduction.
        None if let Some(found) = one_turn_short(trace, broken.place, true, bindings) => {
            diagnostic.labels.extend(found.labels);
            short = format!("; {}", found.help);
        }
        None => {
            let text = fit(&[
                format!("no move writes `{}`", chunk(trace, broken.place)),
                "no move writes it".into(),
            ]);
            diagnostic.labels.push(Label { span: trace.implements, text });
        }
    }
    ensures(&mut diagnostic, broken, trace);
    let (due, differs) = (due(broken, trace), differs(broken, trace));
    let mut help = format!("{due}; {differs}{}{short}", also_wrong(fault.others));
    if fault.form == Form::Same {
        help += "; `inplace none` would say that it is not to run in place";
    }
    diagnostic.help(help)
}

/// Nothing wrote the place: shows the loop that stops one turn short, or the `implements` clause.
fn never_received(broken: &Broken, fault: &Fault, trace: &Trace, bindings: &mut Ask<'_>) -> Diagnostic {
    let to = broken.place;
    let what = match within(trace, chunk_start(trace, to), part(trace)) {
        name if name == trace.buffer(to).name => format!("the value {} promises it", trace.collective),
        name => format!("the `{name}` that {} promises it", trace.collective),
    };
    let title = format!("rank {} never receives {what}", rank(trace, to.rank));
    let mut diagnostic = Diagnostic::error("coll::promise", title);
    let wrong = also_wrong(fault.others);
    if let Some(short) = one_turn_short(trace, to, false, bindings) {
        diagnostic.labels.extend(short.labels);
        return diagnostic.help(short.help + &wrong);
    }
    let text = fit(&[format!("no move writes `{}`", chunk(trace, to)), "no move writes it".into()]);
    diagnostic.labels.push(Label { span: trace.implements, text });
    ensures(&mut diagnostic, broken, trace);
    diagnostic.help(format!("{}; it holds nothing{wrong}", due(broken, trace)))
}

/// A rank that may leave too early.
pub(crate) fn unsynchronised(
    trace: &Trace,
    who: RankId,
    (missing, missing_count): (RankId, u32),
    last: Option<MoveId>,
    others: u32,
    bindings: &mut Ask<'_>,
) -> Diagnostic {
    let signal = trace.buffers.iter().position(|buffer| buffer.kind == BufferKind::Signal);
    let place = signal.map(|at| Place { buffer: BufferId::new(at), rank: who, cell: 0 });
    let short =
        place.filter(|_| last.is_none()).and_then(|place| one_turn_short(trace, place, false, bindings));
    let (who, missing) = (rank(trace, who), rank(trace, missing));
    let title = format!(
        "rank {who} may leave {} before rank {missing} has entered ({})",
        trace.collective,
        world(trace)
    );
    let mut diagnostic = Diagnostic::error("coll::not_synchronised", title);
    let others = match others {
        0 => String::new(),
        1 => "; 1 more rank may leave too early".to_string(),
        n => format!("; {n} more ranks may leave too early"),
    };
    if let Some(short) = short {
        diagnostic.labels.extend(short.labels);
        return diagnostic.help(short.help + &others);
    }
    match last {
        Some(mv) => {
            diagnostic.labels = at_move(trace, mv, &format!("the last signal to rank {who}"), bindings);
        }
        None => {
            let text = format!("no signal ever reaches rank {who}");
            diagnostic.labels.push(Label { span: trace.implements, text });
        }
    }
    let missing_too =
        if missing_count > 1 { format!(" and {} more", missing_count - 1) } else { String::new() };
    diagnostic.help(format!(
        "`signal @ {who}` must hear of every rank, directly or through others; it lacks rank {missing}{missing_too}{others}"
    ))
}

/// What a broken place must hold.
fn due(broken: &Broken, trace: &Trace) -> String {
    let list = &trace.promise.lists[trace.promise.clauses[broken.clause as usize].list as usize];
    let name = chunk(trace, broken.place);
    match &list[..] {
        [one] => format!("{name} must hold what {} held at entry", operand(broken, trace, *one)),
        many => {
            let all: Vec<Place> = many.iter().map(|&b| same_chunk(broken, trace, b)).collect();
            let own = within(trace, broken.place, part(trace));
            let text = operands(trace, &all, part(trace), all.len());
            // `data[3] of ranks 0 to 7`: for the place's own name, the ranks are enough.
            match text.strip_prefix(&format!("{own} of ")) {
                Some(ranks) => format!("{name} must hold the reduction over {ranks}"),
                None => format!("{name} must hold the reduction of {text}"),
            }
        }
    }
}

/// How what it holds differs.
fn differs(broken: &Broken, trace: &Trace) -> String {
    if broken.holds == Holds::Nothing {
        return "it holds nothing".to_string();
    }
    let lacks = |blocks: &[BlockRef], total: usize| named(broken, trace, blocks, total);
    let mut parts = Vec::new();
    if let Holds::One(held) = broken.holds
        && broken.missing_count as usize + broken.foreign.len() > 0
        && !broken.foreign.is_empty()
    {
        parts.push(format!("it holds what {} held at entry", place(trace, held, part(trace))));
    } else {
        if broken.missing_count > 0 {
            parts.push(format!("it lacks {}", lacks(&broken.missing, broken.missing_count as usize)));
        }
        if !broken.foreign.is_empty() {
            let names = broken.foreign.iter().map(|&p| place(trace, p, part(trace))).collect();
            let verb = if broken.foreign.len() == 1 { "is" } else { "are" };
            parts.push(format!("it has {}, which {verb} not asked for", list(names, broken.foreign.len())));
        }
    }
    if !broken.twice.is_empty() {
        parts.push(format!("it has {} more than once", lacks(&broken.twice, broken.twice_count as usize)));
    }
    parts.join("; ")
}

/// Operands of the list at hand: `rank 2's`, `those of ranks 1 and 2`, or their places.
fn named(broken: &Broken, trace: &Trace, blocks: &[BlockRef], total: usize) -> String {
    let promised = &trace.promise.lists[trace.promise.clauses[broken.clause as usize].list as usize];
    let alike = promised.len() > 1
        && promised.iter().all(|b| (b.buffer, b.block) == (promised[0].buffer, promised[0].block));
    let mut sorted: Vec<RankId> = blocks.iter().map(|b| b.rank).collect();
    sorted.sort_unstable();
    match &sorted[..] {
        [one] if alike && total == 1 => format!("rank {}'s", rank(trace, *one)),
        all if alike && total == all.len() => format!("those of {}", ranks(trace, all)),
        all if alike => {
            let names = all.iter().map(|&r| rank(trace, r)).collect();
            format!("those of ranks {}", list(names, total))
        }
        _ => list(blocks.iter().map(|&b| operand(broken, trace, b)).collect(), total),
    }
}

/// The cells of an operand that belong to the broken place.
fn same_chunk(broken: &Broken, trace: &Trace, operand: BlockRef) -> Place {
    let offset = broken.place.cell % trace.cells;
    chunk_start(trace, first_cell(trace, operand).plus(offset))
}

fn operand(broken: &Broken, trace: &Trace, block: BlockRef) -> String {
    place(trace, same_chunk(broken, trace, block), part(trace))
}

/// A place shown as the chunk it lies in.
fn chunk(trace: &Trace, cell: Place) -> String {
    place(trace, chunk_start(trace, cell), part(trace))
}

fn chunk_start(trace: &Trace, cell: Place) -> Place {
    Place { cell: cell.cell - cell.cell % part(trace), ..cell }
}

/// Cells per chunk.
fn part(trace: &Trace) -> u32 {
    (trace.cells / trace.chunks.max(1)).max(1)
}

/// Where the clause stands, if that is in the user's own file.
fn ensures(diagnostic: &mut Diagnostic, broken: &Broken, trace: &Trace) {
    if let Some(&span) = trace.clause_spans.get(broken.clause as usize)
        && span.file == trace.name_span.file
    {
        diagnostic.labels.push(Label { span, text: "promised here".to_string() });
    }
}

fn also_wrong(others: u32) -> String {
    match others {
        0 => String::new(),
        1 => "; 1 more place is wrong".to_string(),
        n => format!("; {n} more places are wrong"),
    }
}
