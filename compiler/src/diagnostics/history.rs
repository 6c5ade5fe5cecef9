//! The history of a place as text, and places as users write them on the command line.
//!
//! In: `data[3] @ 1`, then what `graph::history` finds. Out: one line per version: the line of the source that wrote
//! it with its loop variables, and what it is made of.

use std::fmt::Write as _;

use plan::display::plural;
use plan::ids::{BufferId, RankId};

use super::labels::Ask;
use super::places::{list, operands, place, world};
use crate::graph::{self, ChunkGraph, Past, VersionId};
use crate::source::Sources;
use crate::trace::{BufferKind, MoveId, Place, Trace};

/// Reads a place: a buffer, its block and chunk as far as it has several, and a rank (`3` or `(0, 3)`). The place is
/// the first of the cells that it names; with it comes how many there are. The error says what is wrong.
pub fn parse_place(trace: &Trace, text: &str) -> Result<(Place, u32), String> {
    let (left, right) = text.split_once('@').ok_or_else(|| format!("`{text}` has no `@ rank`"))?;
    let rank = parse_rank(trace, right.trim())?;
    let mut parts = left.trim().split('[');
    let name = parts.next().unwrap_or("").trim();
    let mut indices = Vec::new();
    for part in parts {
        let inner = part.trim().strip_suffix(']').ok_or_else(|| format!("`{text}` lacks a `]`"))?;
        let index = inner.trim().parse::<u32>().map_err(|_| format!("`{inner}` is not an index"))?;
        indices.push(index);
    }
    let known = trace.buffers.iter().position(|b| b.name == name);
    let id = known.ok_or_else(|| {
        let names = trace.buffers.iter().map(|b| format!("`{}`", b.name)).collect();
        format!("there is no buffer `{name}`: there are {}", list(names, trace.buffers.len()))
    })?;
    let buffer = &trace.buffers[id];
    if !buffer.at.holds(rank) {
        return Err(format!("`{name}` does not exist at rank {}", rank.0));
    }
    let part = chunk_cells(trace);
    let mut levels = Vec::new();
    if buffer.blocks > 1 {
        levels.push(("block", buffer.blocks, trace.cells));
    }
    if trace.chunks > 1 && buffer.kind != BufferKind::Signal {
        levels.push(("chunk", trace.chunks, part));
    }
    // A buffer of one block may still be declared with one: `input[0]` is then all of it.
    if buffer.blocks == 1 && indices.len() == levels.len() + 1 && indices[0] == 0 {
        indices.remove(0);
    }
    if indices.len() > levels.len() {
        return Err(format!("`{name}` takes at most {} indices here", levels.len()));
    }
    let (mut cell, mut width) = (0, trace.cells * buffer.blocks);
    for (&index, &(what, count, size)) in indices.iter().zip(&levels) {
        if index >= count {
            return Err(format!("{what} {index} of `{name}` does not exist: there are {count}"));
        }
        cell += index * size;
        width = size;
    }
    if buffer.kind == BufferKind::Signal {
        width = 1;
    }
    Ok((Place { buffer: BufferId::new(id), rank, cell }, width))
}

fn chunk_cells(trace: &Trace) -> u32 {
    (trace.cells / trace.chunks.max(1)).max(1)
}

fn parse_rank(trace: &Trace, text: &str) -> Result<RankId, String> {
    let wrong = || format!("`{text}` is not a rank of {}", world(trace));
    let rank = match text.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        None => text.parse::<u32>().map_err(|_| wrong())?,
        Some(inner) => {
            let coordinates: Vec<u32> =
                inner.split(',').map(|c| c.trim().parse().map_err(|_| wrong())).collect::<Result<_, _>>()?;
            if coordinates.len() != trace.shape.len()
                || coordinates.iter().zip(&trace.shape).any(|(c, size)| c >= size)
            {
                return Err(wrong());
            }
            coordinates.iter().zip(&trace.shape).fold(0, |rank, (c, size)| rank * size + c)
        }
    };
    if rank < trace.ranks { Ok(RankId(rank)) } else { Err(wrong()) }
}

/// The whole answer to `--trace TEXT`: the history of each chunk that the place consists of, the first few at least.
pub fn answer(
    text: &str,
    trace: &Trace,
    graph: &ChunkGraph,
    sources: &Sources,
    bindings: &mut Ask<'_>,
) -> Result<String, String> {
    const SHOWN: u32 = 8;
    let (first, width) = parse_place(trace, text)?;
    let part = chunk_cells(trace).min(width);
    let starts: Vec<u32> = (0..width).step_by(part as usize).take(SHOWN as usize).collect();
    let cells: Vec<Place> =
        starts.iter().flat_map(|&start| (start..start + part).map(|i| first.plus(i))).collect();
    let versions = graph::versions(graph, &cells);
    let writers = |cell: &Vec<VersionId>| -> Vec<Option<MoveId>> {
        cell.iter().map(|&version| graph.writer(version)).collect()
    };
    // Which cells to tell of, each for how many.
    let mut shown = Vec::new();
    for (&start, of_chunk) in starts.iter().zip(versions.chunks(part as usize)) {
        // A `run` may treat the cells of a chunk differently.
        let one = writers(&of_chunk[0]);
        let alike = of_chunk.iter().all(|cell| writers(cell) == one);
        let (count, width) = if alike { (1, part) } else { (part.min(SHOWN), 1) };
        shown.extend((0..count).map(|i| (first.plus(start + i), width)));
    }
    let places: Vec<Place> = shown.iter().map(|&(place, _)| place).collect();
    let pasts = graph::histories(trace, graph, &places);
    let mut parts: Vec<String> =
        pasts.iter().zip(shown).map(|(past, of)| history(past, trace, of, sources, bindings)).collect();
    if width > part * SHOWN {
        let more = plural((width / part - SHOWN).into(), "more chunk", "more chunks");
        parts.push(format!("{more}: name one, such as {}\n", place(trace, first, part)));
    }
    Ok(parts.join("\n"))
}

/// The versions of the first cell of a place, one line each.
pub fn history(
    past: &[Past],
    trace: &Trace,
    (of, width): (Place, u32),
    sources: &Sources,
    bindings: &mut Ask<'_>,
) -> String {
    let mut lines = Vec::new();
    for version in past {
        let at = match version.writer {
            None => "at entry".to_string(),
            Some(mv) => {
                let span = trace.origin(mv).span;
                let (line, column) = sources.line_column(span);
                let values: Vec<String> =
                    bindings(mv).0.iter().map(|(name, value)| format!("{name} = {value}")).collect();
                let values =
                    if values.is_empty() { String::new() } else { format!("  {}", values.join(", ")) };
                format!("{}:{line}:{column}{values}", sources.file(span.file).name)
            }
        };
        let readers = match version.readers.len() {
            0 => "never read".to_string(),
            1 => "read once".to_string(),
            n => format!("read {n} times"),
        };
        lines.push((at, format!("{} ({readers})", holds(trace, version, width))));
    }
    let mut text = format!("{} on {}\n", place(trace, of, width), world(trace));
    if lines.is_empty() {
        text += "  nothing is ever there\n";
    }
    let columns = lines.iter().map(|(at, _)| at.chars().count()).max().unwrap_or(0);
    for (at, holds) in lines {
        let pad = columns - at.chars().count();
        let _ = writeln!(text, "  {at}{}  {holds}", " ".repeat(pad));
    }
    text
}

/// What a version is made of.
fn holds(trace: &Trace, version: &Past, width: u32) -> String {
    let places: Vec<Place> = version.contents.iter().map(|&(place, _)| place).collect();
    let mut text = operands(trace, &places, width, places.len());
    let signal = trace.buffer(version.contents[0].0).kind == BufferKind::Signal;
    let twice: Vec<&(Place, u64)> =
        version.contents.iter().filter(|&&(_, count)| count > 1 && !signal).collect();
    if let Some(&&(_, first)) = twice.first() {
        if twice.len() == places.len() && twice.iter().all(|&&(_, count)| count == first) {
            let each = if places.len() > 1 { "each " } else { "" };
            text += &format!(", {each}{first} times");
        } else {
            let names =
                twice.iter().map(|&&(at, count)| format!("{} {count} times", place(trace, at, width)));
            text += &format!("; {}", list(names.collect(), twice.len()));
        }
    }
    text
}
