//! Places, ranks and contents in the user's words: `data[3] @ 1`, `ranks 0 to 7`.
//!
//! In: cells of a trace. Out: text. The one hard idea: cells are the compiler's, chunks the user's. A range of cells
//! is shown as the chunk, the run of chunks, the block or the buffer that it is; only where a `run` has cut chunks
//! finer than the algorithm itself does, a part of a chunk is said to be one.

use plan::collective::BlockRef;
use plan::ids::RankId;

use crate::trace::{BufferKind, Place, Trace};

/// A range of cells as the user writes it.
pub(crate) fn place(trace: &Trace, place: Place, width: u32) -> String {
    format!("{} @ {}", within(trace, place, width), rank(trace, place.rank))
}

/// The same without the rank.
pub(crate) fn within(trace: &Trace, place: Place, width: u32) -> String {
    let buffer = trace.buffer(place);
    let cells = trace.cells.max(1);
    let part = (cells / trace.chunks.max(1)).max(1);
    let (first, end) = (place.cell, place.cell + width.max(1));
    let index = |unit: u32, from: u32, to: u32| match ((from / unit), to.div_ceil(unit)) {
        (a, b) if b == a + 1 => format!("[{a}]"),
        (a, b) => format!("[{a}..{b}]"),
    };
    let whole = |unit: u32| first.is_multiple_of(unit) && end.is_multiple_of(unit);
    if buffer.kind == BufferKind::Signal {
        return buffer.name.clone();
    }
    if width >= cells.saturating_mul(buffer.blocks) || cells == 1 && buffer.blocks == 1 {
        return buffer.name.clone();
    }
    let block = if buffer.blocks > 1 { index(cells, first, end) } else { String::new() };
    if whole(cells) {
        return format!("{}{block}", buffer.name);
    }
    let start = first - first % cells;
    let chunk = if trace.chunks > 1 { index(part, first - start, end - start) } else { String::new() };
    if whole(part) {
        return format!("{}{block}{chunk}", buffer.name);
    }
    let (from, to) = (first % part + 1, (end - 1) % part + 1);
    let parts = if from == to { format!("part {from}") } else { format!("parts {from} to {to}") };
    format!("{}{block}{chunk} ({parts} of {part})", buffer.name)
}

/// The chunk that a position within a block lies in, as a noun.
pub(crate) fn position(trace: &Trace, position: u32) -> String {
    let part = (trace.cells / trace.chunks.max(1)).max(1);
    match (trace.chunks > 1, part > 1) {
        (true, false) => format!("chunk {position}"),
        (true, true) => format!("part {} of chunk {}", position % part + 1, position / part),
        (false, _) => format!("part {} of {part}", position + 1),
    }
}

/// What comes from a position within a block: `a piece of chunk 1`, `part 2 of chunk 1`.
pub(crate) fn piece(trace: &Trace, from: u32) -> String {
    let name = position(trace, from);
    if name.starts_with("chunk") { format!("a piece of {name}") } else { name }
}

/// The first cell of a block.
pub(crate) fn first_cell(trace: &Trace, block: BlockRef) -> Place {
    Place { buffer: block.buffer, rank: block.rank, cell: block.block * trace.cells }
}

/// A rank: a number, or its coordinates.
pub(crate) fn rank(trace: &Trace, rank: RankId) -> String {
    if trace.shape.len() < 2 {
        return rank.0.to_string();
    }
    let mut rest = rank.0;
    let mut coordinates: Vec<String> = trace
        .shape
        .iter()
        .rev()
        .map(|&size| {
            let coordinate = rest % size.max(1);
            rest /= size.max(1);
            coordinate.to_string()
        })
        .collect();
    coordinates.reverse();
    format!("({})", coordinates.join(", "))
}

/// `8 ranks`, `2x4 ranks`.
pub(crate) fn world(trace: &Trace) -> String {
    let sizes: Vec<String> = trace.shape.iter().map(u32::to_string).collect();
    let noun = if trace.ranks == 1 { "rank" } else { "ranks" };
    format!("{} {noun}", sizes.join("x"))
}

/// Sorted ranks: `rank 2`, `ranks 0 to 7`, `ranks 1, 3 and 5`, `ranks 0 to 2, 5, 7 and 9 more`.
pub(crate) fn ranks(trace: &Trace, sorted: &[RankId]) -> String {
    let shown = |r: RankId| rank(trace, r);
    let runs: Vec<&[RankId]> = sorted.chunk_by(|a, b| b.0 == a.0 + 1).collect();
    let pieces = runs.iter().flat_map(|run| match run {
        [one] => vec![(1, shown(*one))],
        [a, b] => vec![(1, shown(*a)), (1, shown(*b))],
        [first, .., last] => vec![(run.len(), format!("{} to {}", shown(*first), shown(*last)))],
        [] => vec![],
    });
    let noun = if sorted.len() == 1 { "rank" } else { "ranks" };
    format!("{noun} {}", listed(pieces.collect(), sorted.len()))
}

/// Pieces that stand for so many things each, of `total` things: the first few, and how many more.
fn listed(mut pieces: Vec<(usize, String)>, total: usize) -> String {
    const SHOWN: usize = 5;
    if pieces.len() > SHOWN {
        pieces.truncate(SHOWN - 1);
    }
    let shown: usize = pieces.iter().map(|(things, _)| things).sum();
    let mut texts: Vec<String> = pieces.into_iter().map(|(_, text)| text).collect();
    if shown < total {
        texts.push(format!("{} more", total - shown));
    }
    match texts.split_last() {
        None => "none".to_string(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

/// Texts joined as a list, of `total` in all.
pub(crate) fn list(texts: Vec<String>, total: usize) -> String {
    listed(texts.into_iter().map(|text| (1, text)).collect(), total)
}

/// What a sum of entry values is called: `data[3] of ranks 0 to 7`, or its operands one by one.
pub(crate) fn operands(trace: &Trace, operands: &[Place], width: u32, total: usize) -> String {
    let mut sorted: Vec<RankId> = operands.iter().map(|p| p.rank).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let alike = operands.iter().all(|p| (p.buffer, p.cell) == (operands[0].buffer, operands[0].cell));
    if alike && sorted.len() == operands.len() && total == operands.len() && total > 1 {
        return format!("{} of {}", within(trace, operands[0], width), ranks(trace, &sorted));
    }
    list(operands.iter().map(|&p| place(trace, p, width)).collect(), total)
}
