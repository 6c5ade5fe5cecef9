//! Wording of what `graph` finds: faults of moves, broken promises, moves that do no good.
//!
//! In: plain faults, the trace, and a way to find the loop variables of a move (by elaborating again, so it is asked
//! only for the moves shown). Out: diagnostics.

use plan::display::plural;

use super::labels::{also, at_move, fit, runs, with};
use super::places::{piece, place, within, world};
use super::{Diagnostic, Label, promise};
use crate::graph::{Counted, Fault, FaultKind, Warning, WarningKind};
use crate::trace::{Bindings, BufferKind, Move, MoveId, Place, Trace};

pub use super::labels::Ask;

/// A fault in words.
pub fn fault(fault: &Fault, trace: &Trace, bindings: &mut Ask<'_>) -> Diagnostic {
    let others = fault.others;
    match &fault.kind {
        &FaultKind::NothingWritten { mv, place } => nothing_written(trace, mv, place, others, bindings),
        &FaultKind::CombineIntoNothing { mv, place } => {
            combine_into_nothing(trace, mv, place, others, bindings)
        }
        &FaultKind::ConflictingWrites { first, second, place } => {
            conflicting_writes(trace, first, second, place, others, bindings)
        }
        &FaultKind::InWritten { mv, place } => in_written(trace, mv, place, others, bindings),
        &FaultKind::WrongPosition { mv, place, position, .. } => {
            wrong_position(trace, mv, place, position, others, bindings)
        }
        &FaultKind::UnequalPieces { mv, left, left_position, right, right_position } => {
            let pieces = [(left, left_position), (right, right_position)];
            unequal_pieces(trace, mv, pieces, others, bindings)
        }
        FaultKind::Promise(broken) => promise::promise(broken, fault, trace, bindings),
        &FaultKind::FormsDiffer { mv, place, overwritten } => {
            forms_differ(trace, mv, place, overwritten, bindings)
        }
        &FaultKind::Unsynchronised { rank, missing, missing_count, last } => {
            let lacks = (missing, missing_count);
            promise::unsynchronised(trace, rank, lacks, last, others, bindings)
        }
        &FaultKind::TooLarge { count, limit, what } => too_large(trace, count, limit, what),
    }
}

/// Warnings in words.
pub fn warnings(warnings: &[Warning], trace: &Trace, bindings: &mut Ask<'_>) -> Vec<Diagnostic> {
    warnings.iter().map(|warning| one_warning(warning, trace, bindings)).collect()
}

fn nothing_written(
    trace: &Trace,
    mv: MoveId,
    read: Place,
    others: u32,
    bindings: &mut Ask<'_>,
) -> Diagnostic {
    let name = place(trace, read, 1);
    let title = format!(
        "`{name}` is read, but nothing has been written there{}",
        more(others, "move of this line", "moves of this line")
    );
    let mut diagnostic = Diagnostic::error("coll::nothing_written", title);
    diagnostic.labels = at_move(trace, mv, &format!("reads `{name}`"), bindings);
    let this = &trace.moves[mv.0 as usize];
    let writer = trace.moves[mv.0 as usize + 1..].iter().position(|m| covers(m, read));
    let writer = writer.map(|i| MoveId(mv.0 + 1 + i as u32));
    let same_step =
        (0..=mv.0).rev().take_while(|&m| this.step != 0 && trace.moves[m as usize].step == this.step);
    let step_mate = { same_step }.find(|&m| covers(&trace.moves[m as usize], read)).map(MoveId);
    if let Some(mate) = step_mate {
        also(&mut diagnostic, trace, mate, "written in the same step");
        return diagnostic
            .help("all moves of a step read what was there before it: put the read in a later step");
    }
    if let Some(writer) = writer {
        also(&mut diagnostic, trace, writer, &with("written only later", &bindings(writer)));
        return diagnostic.help(format!("write `{name}` before it is read"));
    }
    let buffer = trace.buffer(read);
    let why = match buffer.kind {
        BufferKind::Inout => format!(
            "`{}` holds something at entry only where an `ensures` of {} asks for it",
            within(trace, read, 1),
            trace.collective
        ),
        BufferKind::Out => format!("an `out` buffer holds nothing at entry: write `{name}` first"),
        _ => format!("scratch holds nothing at first: write `{name}` before it is read"),
    };
    diagnostic.help(why)
}

fn combine_into_nothing(
    trace: &Trace,
    mv: MoveId,
    to: Place,
    others: u32,
    bindings: &mut Ask<'_>,
) -> Diagnostic {
    let name = place(trace, to, 1);
    let title = format!(
        "`{name}` holds nothing that `+=` could add to{}",
        more(others, "move of this line", "moves of this line")
    );
    let mut diagnostic = Diagnostic::error("coll::combine_into_nothing", title);
    diagnostic.labels = at_move(trace, mv, &format!("adds to `{name}`"), bindings);
    diagnostic.help("write the first value with `=`, and add to it from then on")
}

fn conflicting_writes(
    trace: &Trace,
    first: MoveId,
    second: MoveId,
    to: Place,
    others: u32,
    bindings: &mut Ask<'_>,
) -> Diagnostic {
    let name = place(trace, to, 1);
    let title = format!("two moves of one step write `{name}`{}", more(others, "time", "times"));
    let mut diagnostic = Diagnostic::error("coll::conflicting_writes", title);
    let (one, other) = (bindings(first), bindings(second));
    if trace.origin(first).span == trace.origin(second).span {
        let (a, b) = differing(&one, &other);
        let text = fit(&[format!("with {a} and with {b}"), "written twice".to_string()]);
        diagnostic.labels.push(Label { span: trace.origin(second).span, text });
        runs(&mut diagnostic, trace, second);
    } else {
        diagnostic.labels = at_move(trace, second, "and here", bindings);
        let text = with("written here", &one);
        diagnostic.labels.push(Label { span: trace.origin(first).span, text });
    }
    diagnostic.help(
        "the moves of a step act at once: only several `+=` may meet in one place; use `+=` or two steps",
    )
}

fn in_written(trace: &Trace, mv: MoveId, to: Place, others: u32, bindings: &mut Ask<'_>) -> Diagnostic {
    let buffer = trace.buffer(to);
    let title = format!(
        "`{}` is an `in` buffer, which is never written{}",
        buffer.name,
        more(others, "move of this line", "moves of this line")
    );
    let mut diagnostic = Diagnostic::error("coll::in_written", title);
    let width = trace.moves[mv.0 as usize].width;
    diagnostic.labels = at_move(trace, mv, &format!("writes `{}`", place(trace, to, width)), bindings);
    if buffer.span.file == trace.origin(mv).span.file {
        diagnostic.labels.push(Label { span: buffer.span, text: "declared `in` here".to_string() });
    }
    diagnostic.help("write to an `out` or `inout` buffer, or to `scratch`")
}

fn wrong_position(
    trace: &Trace,
    mv: MoveId,
    to: Place,
    from: u32,
    others: u32,
    bindings: &mut Ask<'_>,
) -> Diagnostic {
    let (brought, name) = (piece(trace, from), place(trace, to, 1));
    let title =
        format!("{brought} cannot go to `{name}`{}", more(others, "move of this line", "moves of this line"));
    let mut diagnostic = Diagnostic::error("coll::wrong_position", title);
    diagnostic.labels = at_move(trace, mv, &format!("brings {brought}"), bindings);
    diagnostic.help(format!(
        "`{}` takes only {}, so that lengths agree for any element count; `scratch` takes any",
        within(trace, to, 1),
        piece(trace, to.cell % trace.cells)
    ))
}

fn unequal_pieces(
    trace: &Trace,
    mv: MoveId,
    pieces: [(Place, u32); 2],
    others: u32,
    bindings: &mut Ask<'_>,
) -> Diagnostic {
    let [(left, a), (right, b)] = pieces.map(|(at, from)| (place(trace, at, 1), piece(trace, from)));
    let others = more(others, "move of this line", "moves of this line");
    let title = format!("{a} and {b} cannot be combined{others}");
    let mut diagnostic = Diagnostic::error("coll::unequal_pieces", title);
    diagnostic.labels = at_move(trace, mv, "their lengths may differ", bindings);
    diagnostic.help(format!("combine pieces of one position: `{left}` holds {a}, `{right}` holds {b}"))
}

fn forms_differ(
    trace: &Trace,
    mv: MoveId,
    read: Place,
    overwritten: Option<MoveId>,
    bindings: &mut Ask<'_>,
) -> Diagnostic {
    let name = place(trace, read, 1);
    let title = format!("in place, `{name}` is no longer there when it is read");
    let mut diagnostic = Diagnostic::error("coll::forms_differ", title);
    diagnostic.labels = at_move(trace, mv, &format!("reads `{name}`"), bindings);
    if let Some(by) = overwritten {
        let text = with("overwritten here if in place", &bindings(by));
        also(&mut diagnostic, trace, by, &text);
    }
    diagnostic
        .help("read it before it is overwritten, or say `inplace none`: ranks choose their form one by one")
}

fn too_large(trace: &Trace, count: u64, limit: u64, what: Counted) -> Diagnostic {
    let (what, help) = match what {
        Counted::Places => ("places (ranks × blocks × cells)", "use fewer ranks or fewer chunks"),
        Counted::CellMoves => (
            "cells to read and write",
            "cut blocks into fewer chunks, or raise the limit, which is 5 for each move: `--limit moves=N`",
        ),
        Counted::Lowered => {
            ("cells to move by steps", "cut blocks into fewer chunks, or raise the limit: `--limit moves=N`")
        }
        Counted::Visits => (
            "values and more to compare with the promise",
            "use fewer ranks, or raise the limit, which is 10 for each move: `--limit moves=N`",
        ),
    };
    Diagnostic::error("coll::too_large", format!("there are {count} {what}, more than {limit}"))
        .label(
            trace.name_span,
            format!("with {}, {} in each block", world(trace), plural(trace.cells.into(), "cell", "cells")),
        )
        .help(help)
}

fn one_warning(warning: &Warning, trace: &Trace, bindings: &mut Ask<'_>) -> Diagnostic {
    let mv = &trace.moves[warning.example.0 as usize];
    let name = place(trace, mv.to, mv.width);
    let within_run = trace.origin(warning.example).parent.is_some();
    let line = if within_run { "this run" } else { "this line" };
    let of = match (warning.count, warning.of) {
        (1, 1) => None,
        (count, of) if count == of => Some(format!("all {of} moves of {line}")),
        (count, of) => Some(format!("{count} of the {of} moves of {line}")),
    };
    match warning.kind {
        WarningKind::NeverRead { overwritten } => {
            let title = match of {
                None => "what this move writes is never used".to_string(),
                Some(of) => {
                    format!("what {of} write{} is never used", if warning.count == 1 { "s" } else { "" })
                }
            };
            let mut diagnostic = Diagnostic::warning("coll::never_read", title);
            let text = match overwritten {
                Some(_) => format!("nobody reads `{name}`"),
                None => format!("nobody reads `{name}`, nor is it promised"),
            };
            diagnostic.labels = at_move(trace, warning.example, &text, bindings);
            if let Some(by) = overwritten {
                let text = with("overwritten here", &bindings(by));
                also(&mut diagnostic, trace, by, &text);
            }
            diagnostic.help("leave these moves out, or use what they bring")
        }
        WarningKind::WastedTransfer { already } => {
            let title = match of {
                None => "this transfer is wasted: the value is there already".to_string(),
                Some(of) => format!(
                    "{of} {} wasted: the value is there already",
                    if warning.count == 1 { "is" } else { "are" }
                ),
            };
            let mut diagnostic = Diagnostic::warning("coll::wasted_transfer", title);
            diagnostic.labels = at_move(trace, warning.example, &format!("already in `{name}`"), bindings);
            if let Some(before) = already {
                let text = with("written here before", &bindings(before));
                also(&mut diagnostic, trace, before, &text);
            }
            diagnostic.help("leave these moves out")
        }
    }
}

/// The variables in which two turns of one line differ (all, if it is none).
fn differing(one: &Bindings, other: &Bindings) -> (String, String) {
    let text = |bindings: &Bindings, against: &Bindings| {
        let differ = bindings.0.iter().filter(|binding| !against.0.contains(binding));
        let texts: Vec<String> = differ.map(|(name, value)| format!("{name} = {value}")).collect();
        if texts.is_empty() { "the same values".to_string() } else { texts.join(", ") }
    };
    (text(one, other), text(other, one))
}

/// Whether a move writes a cell.
fn covers(mv: &Move, cell: Place) -> bool {
    (mv.to.buffer, mv.to.rank) == (cell.buffer, cell.rank)
        && (mv.to.cell..mv.to.cell + mv.width).contains(&cell.cell)
}

fn more(others: u32, one: &str, many: &str) -> String {
    match others {
        0 => String::new(),
        1 => format!(" (and 1 more {one})"),
        n => format!(" (and {n} more {many})"),
    }
}
