//! `step` blocks: every move reads what the places held before the block.
//!
//! In: the moves of one block. Out: their events, in an order that keeps that meaning with one slot per channel.
//!
//! A cell move disturbs another if it writes a place that the other reads or writes. Cell moves that disturb each
//! other, however far along, form a cluster; clusters do not touch each other and go one after the other. Within a
//! cluster every disturbed source is read before anything is written: by sending it (the message waits in its
//! channel slot, no memory is needed), or, if it lies where it is used, by copying it aside. If one channel had to
//! hold two such messages at once, the cluster's messages are received into temporaries first.

use std::ops::Range;

use super::emit::{Access, Events, Source};
use super::events::{CellMove, Walk};
use crate::trace::{MoveId, MoveKind};

/// What `emit` keeps between blocks, so that a block costs only what it touches.
pub(super) struct Scratch {
    /// By place: the last cell move that writes it in the block at hand, and that block.
    writer: Vec<(u32, u32)>,
    block: u32,
}

impl Scratch {
    pub(super) fn new(places: usize) -> Scratch {
        Scratch { writer: vec![(0, 0); places], block: 0 }
    }

    fn writer_of(&self, place: u32) -> Option<u32> {
        let (block, writer) = self.writer[place as usize];
        (block == self.block).then_some(writer)
    }
}

/// Emits the events of one block.
pub(super) fn emit(walk: &Walk<'_>, moves: Range<usize>, events: &mut Events, scratch: &mut Scratch) {
    let cells: Vec<CellMove> = moves.flat_map(|index| walk.cells(MoveId(index as u32))).collect();
    let leader = leaders(walk, &cells, scratch);
    let mut members: Vec<u32> = (0..cells.len() as u32).collect();
    members.sort_by_key(|&index| leader[index as usize]);
    let mut sources = Vec::new();
    for cluster in members.chunk_by(|&a, &b| leader[a as usize] == leader[b as usize]) {
        match cluster {
            &[alone] => walk.whole(cells[alone as usize], events, &mut sources),
            _ => emit_cluster(walk, &cells, cluster, events, scratch),
        }
    }
}

/// For each cell move, the first member of its cluster.
fn leaders(walk: &Walk<'_>, cells: &[CellMove], scratch: &mut Scratch) -> Vec<u32> {
    scratch.block += 1;
    let mut parent: Vec<u32> = (0..cells.len() as u32).collect();
    for (index, &cell) in (0..).zip(cells) {
        let place = walk.written_place(cell);
        if let Some(other) = scratch.writer_of(place) {
            join(&mut parent, other, index);
        }
        scratch.writer[place as usize] = (scratch.block, index);
    }
    for (index, &cell) in (0..).zip(cells) {
        for (place, _) in walk.source_places(cell) {
            if let Some(writer) = scratch.writer_of(place) {
                join(&mut parent, writer, index);
            }
        }
    }
    (0..cells.len() as u32).map(|index| find(&mut parent, index)).collect()
}

fn emit_cluster(
    walk: &Walk<'_>,
    cells: &[CellMove],
    cluster: &[u32],
    events: &mut Events,
    scratch: &Scratch,
) {
    // 1. Read every source that another member writes, before anything is written.
    let buffered = holds_two_messages(walk, cells, cluster);
    let mut read: Vec<Source> = Vec::with_capacity(cluster.len());
    let mut ends: Vec<usize> = Vec::with_capacity(cluster.len());
    let mut temporaries: Vec<Access> = Vec::new();
    for &index in cluster {
        let cell = cells[index as usize];
        let start = read.len();
        for operand in 0..walk.mv(cell.id).source_count {
            let from = walk.source(cell, operand, events);
            let source = walk.fetch(cell, from, &read[start..], events);
            let aside = match source {
                Source::Message { .. } => buffered,
                // A reduction that lists its own destination reads it in the event that writes it.
                Source::Local(_) => scratch
                    .writer_of(from.place)
                    .is_some_and(|writer| writer != index || walk.mv(cell.id).kind == MoveKind::Combine),
            };
            read.push(if aside { put_aside(walk, cell, source, events, &mut temporaries) } else { source });
        }
        ends.push(read.len());
    }
    // 2. Write, in the order written.
    let mut sources = Vec::new();
    let mut start = 0;
    for (&index, end) in cluster.iter().zip(ends) {
        let cell = cells[index as usize];
        sources.clear();
        walk.read_destination(cell, events, &mut sources);
        sources.extend_from_slice(&read[start..end]);
        walk.write(cell, &sources, events);
        start = end;
    }
    for temporary in temporaries {
        events.release(temporary);
    }
}

/// Copies (or receives) a source into a temporary of the rank that uses it.
fn put_aside(
    walk: &Walk<'_>,
    cell: CellMove,
    source: Source,
    events: &mut Events,
    temporaries: &mut Vec<Access>,
) -> Source {
    if walk.is_signal(walk.mv(cell.id).to) {
        return source;
    }
    let temporary = events.temporary(walk.mv(cell.id).to.rank);
    temporaries.push(temporary);
    events.fold(&[source], temporary, false, walk.span(cell.id));
    Source::Local(temporary)
}

/// Whether some channel would have to hold two messages of the cluster at once.
fn holds_two_messages(walk: &Walk<'_>, cells: &[CellMove], cluster: &[u32]) -> bool {
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    for &index in cluster {
        let cell = cells[index as usize];
        let to = walk.mv(cell.id).to.rank.0;
        let start = pairs.len();
        pairs.extend(walk.source_places(cell).map(|(_, from)| (from.0, to)).filter(|&(from, to)| from != to));
        // Several messages of one move from one rank have channels of their own.
        pairs[start..].sort_unstable();
        let mut kept = start;
        for next in start..pairs.len() {
            if kept == start || pairs[next] != pairs[kept - 1] {
                pairs[kept] = pairs[next];
                kept += 1;
            }
        }
        pairs.truncate(kept);
    }
    pairs.sort_unstable();
    pairs.windows(2).any(|pair| pair[0] == pair[1])
}

fn find(parent: &mut [u32], mut index: u32) -> u32 {
    while parent[index as usize] != index {
        let up = parent[parent[index as usize] as usize];
        parent[index as usize] = up;
        index = up;
    }
    index
}

/// The smaller index leads, so that clusters keep the order of their first members.
fn join(parent: &mut [u32], a: u32, b: u32) {
    let (a, b) = (find(parent, a), find(parent, b));
    parent[a.max(b) as usize] = a.min(b);
}
