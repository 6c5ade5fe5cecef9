//! What one cell held, from entry to exit: for `rcc check --trace 'data[3] @ 1'`.
//!
//! In: a graph (also one whose promise is broken: that is when one asks). Out: plain data, one entry per version;
//! `diagnostics::history` has the words.

use std::collections::BTreeMap;

use plan::values::{Node, ValueId};

use super::{ChunkGraph, VersionId, arity};
use crate::trace::{MoveId, Place, Trace};

/// One version of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Past {
    /// The version.
    pub version: VersionId,
    /// What wrote it; none: it was there at entry.
    pub writer: Option<MoveId>,
    /// The entry values that it is made of, sorted, each with how often it is in it.
    pub contents: Vec<(Place, u64)>,
    /// The moves that read it, in order.
    pub readers: Vec<MoveId>,
}

/// All versions of a cell, the oldest first.
pub fn history(trace: &Trace, graph: &ChunkGraph, place: Place) -> Vec<Past> {
    histories(trace, graph, &[place]).pop().unwrap_or_default()
}

/// The same for several cells. Costs one walk of all versions and reads, however many cells there are, and for each cell
/// its values and what it is told to be made of.
pub fn histories(trace: &Trace, graph: &ChunkGraph, places: &[Place]) -> Vec<Vec<Past>> {
    let mut all: Vec<Vec<Past>> = versions(graph, places)
        .into_iter()
        .map(|versions| {
            let mut known = Known::default();
            let past = versions.into_iter().map(|version| {
                let contents = known.contents(graph, graph.version(version).value);
                Past { version, writer: graph.writer(version), contents, readers: Vec::new() }
            });
            past.collect()
        })
        .collect();
    // Of each version, the entries of `all` that are of it: cells that lie on each other share theirs.
    let mut slots: Vec<(VersionId, usize, usize)> = Vec::new();
    for (at, past) in all.iter().enumerate() {
        slots.extend(past.iter().enumerate().map(|(i, past)| (past.version, at, i)));
    }
    slots.sort_unstable();
    for (m, mv) in trace.moves.iter().enumerate() {
        let (id, arity) = (MoveId(m as u32), arity(trace, mv));
        for &read in (0..mv.width).flat_map(|i| graph.read(id, i, arity)) {
            let first = slots.partition_point(|&(version, ..)| version < read);
            for &(_, at, i) in slots[first..].iter().take_while(|&&(version, ..)| version == read) {
                let readers = &mut all[at][i].readers;
                if readers.last() != Some(&id) {
                    readers.push(id);
                }
            }
        }
    }
    all
}

/// The versions of each of several cells, the oldest first. Costs one walk of all versions.
pub fn versions(graph: &ChunkGraph, places: &[Place]) -> Vec<Vec<VersionId>> {
    let mut wanted: Vec<(u32, usize)> =
        places.iter().enumerate().map(|(at, &place)| (graph.places.index(place), at)).collect();
    wanted.sort_unstable();
    let mut found = vec![Vec::new(); places.len()];
    for (v, version) in graph.versions.iter().enumerate() {
        let first = wanted.partition_point(|&(place, _)| place < version.place);
        for &(_, at) in wanted[first..].iter().take_while(|&&(place, _)| place == version.place) {
            found[at].push(VersionId(v as u32));
        }
    }
    found
}

/// What the values of one cell are made of, oldest first: a value that contains an earlier one is that one and what was added.
#[derive(Default)]
struct Known {
    contents: BTreeMap<ValueId, Vec<(u32, u64)>>,
}

impl Known {
    fn contents(&mut self, graph: &ChunkGraph, value: ValueId) -> Vec<(Place, u64)> {
        let mut leaves: BTreeMap<u32, u64> = BTreeMap::new();
        walk(graph, value, |value, count| match self.contents.get(&value) {
            None => false,
            Some(known) => {
                for &(key, times) in known {
                    let sum = leaves.entry(key).or_default();
                    *sum = sum.saturating_add(times.saturating_mul(count));
                }
                true
            }
        })
        .into_iter()
        .for_each(|(key, count)| {
            let sum = leaves.entry(key).or_default();
            *sum = sum.saturating_add(count);
        });
        let leaves: Vec<(u32, u64)> = leaves.into_iter().collect();
        let contents = sorted(leaves.iter().map(|&(key, count)| (graph.places.place(key), count)).collect());
        self.contents.insert(value, leaves);
        contents
    }
}

/// The leaves below a value, with how often each is in it; `stop` may take a value as a whole.
fn walk(graph: &ChunkGraph, value: ValueId, mut stop: impl FnMut(ValueId, u64) -> bool) -> Vec<(u32, u64)> {
    let values = &graph.values;
    // Operands have smaller ids, so counts may be handed down from the largest id on.
    let mut counts = BTreeMap::from([(value, 1u64)]);
    let mut leaves = Vec::new();
    while let Some((value, count)) = counts.pop_last() {
        if stop(value, count) {
            continue;
        }
        match values.node(value) {
            Node::Leaf(key) => leaves.push((key, count)),
            Node::Post(inner) => add(&mut counts, inner, count),
            Node::Combined { left, right, .. } => {
                add(&mut counts, left, count);
                add(&mut counts, right, count);
            }
        }
    }
    leaves
}

fn sorted(mut leaves: Vec<(Place, u64)>) -> Vec<(Place, u64)> {
    leaves.sort_by_key(|&(place, _)| (place.buffer, place.cell, place.rank));
    leaves
}

/// The entry values in a value, with how often each is in it.
pub fn contents(graph: &ChunkGraph, value: ValueId) -> Vec<(Place, u64)> {
    let leaves = walk(graph, value, |_, _| false);
    sorted(leaves.into_iter().map(|(key, count)| (graph.places.place(key), count)).collect())
}

fn add(counts: &mut BTreeMap<ValueId, u64>, value: ValueId, count: u64) {
    let known = counts.entry(value).or_default();
    *known = known.saturating_add(count);
}
