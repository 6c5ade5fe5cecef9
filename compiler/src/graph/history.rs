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

/// All versions of a cell, the oldest first. Costs a walk of all versions and reads.
pub fn history(trace: &Trace, graph: &ChunkGraph, place: Place) -> Vec<Past> {
    let index = graph.places.index(place);
    let own = |&v: &usize| graph.versions[v].place == index;
    let mut past: BTreeMap<VersionId, Past> = (0..graph.versions.len())
        .filter(own)
        .map(|v| {
            let (version, known) = (VersionId(v as u32), &graph.versions[v]);
            let contents = contents(graph, known.value);
            (version, Past { version, writer: known.writer, contents, readers: Vec::new() })
        })
        .collect();
    for (m, mv) in trace.moves.iter().enumerate() {
        let (id, arity) = (MoveId(m as u32), arity(trace, mv));
        for read in (0..mv.width).flat_map(|i| graph.read(id, i, arity)) {
            if let Some(past) = past.get_mut(read)
                && past.readers.last() != Some(&id)
            {
                past.readers.push(id);
            }
        }
    }
    past.into_values().collect()
}

/// The entry values in a value, with how often each is in it.
pub fn contents(graph: &ChunkGraph, value: ValueId) -> Vec<(Place, u64)> {
    let values = &graph.values;
    // Operands have smaller ids, so counts may be handed down from the largest id on.
    let mut counts = BTreeMap::from([(value, 1u64)]);
    let mut leaves = Vec::new();
    while let Some((value, count)) = counts.pop_last() {
        match values.node(value) {
            Node::Leaf(key) => leaves.push((graph.places.place(key), count)),
            Node::Post(inner) => add(&mut counts, inner, count),
            Node::Combined { left, right, .. } => {
                add(&mut counts, left, count);
                add(&mut counts, right, count);
            }
        }
    }
    leaves.sort_by_key(|&(place, _)| (place.buffer, place.cell, place.rank));
    leaves
}

fn add(counts: &mut BTreeMap<ValueId, u64>, value: ValueId, count: u64) {
    let known = counts.entry(value).or_default();
    *known = known.saturating_add(count);
}
