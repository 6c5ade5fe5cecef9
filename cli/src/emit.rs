//! Stages of a compilation as text, for `--emit`, and the moves as a picture, for `--target dot`.
//!
//! In: a stage's data. Out: text that a person can read and a tool can compare: one line per move or version.

use std::fmt::Write;

use compiler::check::checked::AlgorithmId;
use compiler::graph::{ChunkGraph, VersionId};
use compiler::pipeline::Loaded;
use compiler::source::Sources;
use compiler::trace::{BufferKind, Move, MoveId, MoveKind, Place, Trace};
use grammar::ParseLimits;
use grammar::ast::Item;

/// The syntax tree of an algorithm.
pub(crate) fn ast(loaded: &Loaded, id: AlgorithmId) -> String {
    let algorithm = loaded.program.algorithm(id);
    let text = &loaded.sources.file(algorithm.file).text;
    // It was parsed without an error when it was loaded; the standard library's trees are not kept.
    let parsed = grammar::parse(algorithm.file, text, &ParseLimits::default());
    let here = |item: &&Item| matches!(item, Item::Algorithm(tree) if tree.name.span == algorithm.name_span);
    match parsed.file.items.iter().find(here) {
        Some(item) => short_spans(&format!("{item:#?}\n")),
        None => String::new(),
    }
}

/// `Span { file, start, end }` over six lines as `start..end`.
fn short_spans(tree: &str) -> String {
    let lines: Vec<&str> = tree.lines().collect();
    let mut text = String::with_capacity(tree.len() / 2);
    let mut at = 0;
    while at < lines.len() {
        let number =
            |line: &str, field: &str| line.trim().strip_prefix(field)?.strip_suffix(',').map(str::to_string);
        let span = lines[at].strip_suffix("Span {").and_then(|before| {
            let start = number(lines.get(at + 4)?, "start: ")?;
            let end = number(lines.get(at + 5)?, "end: ")?;
            let after = lines.get(at + 6)?.trim().strip_prefix('}')?;
            Some(format!("{before}{start}..{end}{after}"))
        });
        match span {
            Some(span) => {
                let _ = writeln!(text, "{span}");
                at += 7;
            }
            None => {
                let _ = writeln!(text, "{}", lines[at]);
                at += 1;
            }
        }
    }
    text
}

/// The moves, in order, with the line of each.
pub(crate) fn trace(trace: &Trace, sources: &Sources) -> String {
    let mut text = head(trace);
    for (i, mv) in trace.moves.iter().enumerate() {
        let span = trace.origins[mv.origin.0 as usize].span;
        let (line, _) = sources.line_column(span);
        let step = if mv.step == 0 { String::new() } else { format!("  step {}", mv.step) };
        let channel = if mv.lane == 0 { String::new() } else { format!("  channel {}", mv.lane) };
        let name = &sources.file(span.file).name;
        let _ = writeln!(text, "{i:>6}  {}{step}{channel}  // {name}:{line}", show_move(trace, mv));
    }
    text
}

/// The versions: what each place holds when, and which move wrote it.
pub(crate) fn graph(trace: &Trace, graph: &ChunkGraph) -> String {
    let mut text = head(trace);
    let _ = writeln!(
        text,
        "// form: {:?}; {} versions, {} values",
        graph.form,
        graph.versions.len(),
        graph.values.len()
    );
    for (v, version) in graph.versions.iter().enumerate() {
        let writer = graph.writer(VersionId(v as u32));
        let writer = writer.map_or("entry".to_string(), |MoveId(mv)| format!("move {mv}"));
        let _ = writeln!(text, "v{v:<6} place {:<6} value {:<6} {writer}", version.place, version.value.0);
    }
    for (i, mv) in trace.moves.iter().enumerate() {
        let end = graph.first_read.get(i + 1).map_or(graph.reads.len(), |&next| next as usize);
        let reads = &graph.reads[graph.first_read[i] as usize..end];
        let reads: Vec<String> = reads.iter().map(|version| format!("v{}", version.0)).collect();
        let first = graph.written[i].0;
        let last = first + mv.width - 1;
        let writes = if first == last { format!("v{first}") } else { format!("v{first}..v{last}") };
        let _ = writeln!(text, "move {i:<5} {}  {writes} from {}", show_move(trace, mv), reads.join(" "));
    }
    text
}

/// The transfers between ranks as a graph for Graphviz: an edge per pair of ranks, with the number of moves.
pub(crate) fn dot(trace: &Trace) -> String {
    let mut edges = std::collections::BTreeMap::<(u32, u32), (u64, u64)>::new();
    for mv in &trace.moves {
        for source in trace.sources(mv).iter().filter(|source| source.rank != mv.to.rank) {
            let edge = edges.entry((source.rank.0, mv.to.rank.0)).or_default();
            edge.0 += 1;
            edge.1 += u64::from(mv.width);
        }
    }
    let name = trace.algorithm.replace('"', "");
    let mut text = format!("digraph \"{name}\" {{\n    layout=circo;\n    node [shape=circle];\n");
    for rank in 0..trace.ranks {
        let _ = writeln!(text, "    {rank};");
    }
    for ((from, to), (moves, cells)) in edges {
        let _ = writeln!(text, "    {from} -> {to} [label=\"{moves} ({cells}/{})\"];", trace.cells);
    }
    text + "}\n"
}

fn head(trace: &Trace) -> String {
    let shape = crate::shape::show(&trace.shape);
    let mut text = format!(
        "// {} implements {} on {shape} ranks; {} cells per block, {} moves\n",
        trace.algorithm,
        trace.collective,
        trace.cells,
        trace.moves.len()
    );
    for (name, value) in &trace.params {
        let _ = writeln!(text, "// {name} = {value}");
    }
    for buffer in &trace.buffers {
        let kind = match buffer.kind {
            BufferKind::In => "in",
            BufferKind::Out => "out",
            BufferKind::Inout => "inout",
            BufferKind::Scratch => "scratch",
            BufferKind::Signal => "signal",
        };
        let _ = writeln!(text, "// {kind} {}[{}]", buffer.name, buffer.blocks);
    }
    text
}

/// A move in the words of the language: blocks and cells in place of chunks.
fn show_move(trace: &Trace, mv: &Move) -> String {
    let place = |place: Place| show_place(trace, place, mv.width);
    let sources: Vec<String> = trace.sources(mv).iter().map(|&source| place(source)).collect();
    match mv.kind {
        MoveKind::Copy | MoveKind::Multicast => format!("{} = {}", place(mv.to), sources.join(", ")),
        MoveKind::Combine => format!("{} += {}", place(mv.to), sources.join(", ")),
        MoveKind::Reduce | MoveKind::GatherReduce => {
            format!("{} = reduce({})", place(mv.to), sources.join(", "))
        }
    }
}

/// `data[3] @ 1`; of several blocks `input[2][0..4] @ 1`: block, then cells.
fn show_place(trace: &Trace, place: Place, width: u32) -> String {
    let buffer = trace.buffer(place);
    let (name, rank) = (&buffer.name, place.rank.0);
    if buffer.kind == BufferKind::Signal {
        return format!("{name} @ {rank}");
    }
    let (block, cell) = (place.cell / trace.cells, place.cell % trace.cells);
    let range = |first: u32, count: u32| {
        if count == 1 { format!("[{first}]") } else { format!("[{first}..{}]", first + count) }
    };
    let index = match (buffer.blocks == 1, cell == 0 && width.is_multiple_of(trace.cells)) {
        (true, true) => String::new(),
        (true, false) => range(cell, width),
        (false, true) => range(block, width / trace.cells),
        (false, false) => format!("[{block}]{}", range(cell, width)),
    };
    format!("{name}{index} @ {rank}")
}
