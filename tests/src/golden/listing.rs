//! Traces, chunk graphs and syntax trees as text, for snapshots.
//!
//! In: stages of the compiler. Out: lines. Cells are shown as the compiler counts them, through all blocks of a buffer.

use std::fmt::Write as _;

use compiler::graph::{ChunkGraph, arity};
use compiler::source::Sources;
use compiler::trace::{BufferKind, Move, MoveId, MoveKind, Place, Trace};
use grammar::ast::File;

/// The moves, one a line, with the lines they come from.
pub(super) fn trace(trace: &Trace, sources: &Sources) -> String {
    let mut text = format!("{} of {}, {} cells per block\n", trace.algorithm, trace.collective, trace.cells);
    for (i, mv) in trace.moves.iter().enumerate() {
        let origin = trace.origin(MoveId(i as u32));
        let (line, _) = sources.line_column(origin.span);
        let step = if mv.step == 0 { String::new() } else { format!("step {}: ", mv.step) };
        let _ = write!(text, "{i:>3}  {step}{}", shown_move(trace, mv));
        if mv.lane > 0 {
            let _ = write!(text, "  channel {}", mv.lane);
        }
        let _ = writeln!(text, "  // {}:{line}", sources.file(origin.span.file).name);
    }
    text
}

/// The versions that every move reads and writes, cell by cell.
pub(super) fn graph(trace: &Trace, graph: &ChunkGraph) -> String {
    let mut text = format!("{:?}, {} entry values\n", graph.form, graph.entries);
    for (i, mv) in trace.moves.iter().enumerate() {
        let id = MoveId(i as u32);
        let _ = writeln!(text, "{i:>3}  {}", shown_move(trace, mv));
        for cell in 0..mv.width {
            let written = graph.written(id, cell);
            let read = graph.read(id, cell, arity(trace, mv));
            let read: Vec<String> = read.iter().map(|version| format!("v{}", version.0)).collect();
            let value = graph.version(written).value;
            let _ = writeln!(text, "       v{} = {}  (value {})", written.0, read.join(" + "), value.0);
        }
    }
    text
}

/// The tree without spans.
pub(super) fn ast(file: &File) -> String {
    let mut text = String::new();
    let mut skipping = None;
    for line in format!("{:#?}", file.items).lines() {
        let indent = line.len() - line.trim_start().len();
        if skipping.is_none() && line.ends_with("Span {") {
            skipping = Some(indent);
        }
        match skipping {
            None => text += &format!("{}\n", &line.replace("    ", "  ")),
            Some(at) if at == indent && !line.ends_with('{') => skipping = None,
            Some(_) => {}
        }
    }
    text
}

fn shown_move(trace: &Trace, mv: &Move) -> String {
    let sources: Vec<String> = trace.sources(mv).iter().map(|&p| place(trace, p, mv.width)).collect();
    let to = place(trace, mv.to, mv.width);
    match mv.kind {
        MoveKind::Copy => format!("{to} = {}", sources.concat()),
        MoveKind::Multicast => format!("{to} = {} (multicast)", sources.concat()),
        MoveKind::Combine => format!("{to} += {}", sources.concat()),
        MoveKind::Reduce => format!("{to} = reduce({})", sources.join(", ")),
        MoveKind::GatherReduce => format!("{to} = gather-reduce({})", sources.join(", ")),
    }
}

fn place(trace: &Trace, place: Place, width: u32) -> String {
    let buffer = trace.buffer(place);
    let rank = place.rank.0;
    match (buffer.kind, width) {
        (BufferKind::Signal, _) => format!("signal @ {rank}"),
        (_, 1) => format!("{}[{}] @ {rank}", buffer.name, place.cell),
        _ => format!("{}[{}..{}] @ {rank}", buffer.name, place.cell, place.cell + width),
    }
}
