//! What a program leaves behind: all that a plan is compared with.
//!
//! In: a graph. Out: [`Ends`]. The one hard idea: of millions of moves and versions only what the places hold in the end matters to
//! who judges a plan. So the moves need not be there any more when a plan is judged, which takes memory itself.

use std::sync::Arc;

use plan::values::{Node, ValueId, Values};

use super::{ChunkGraph, NOTHING, PlaceTable};

/// The entry values of all places, and what they hold in the end.
#[derive(Debug)]
pub struct Ends {
    /// What cells hold.
    pub values: Arc<Values>,
    /// Place indices of (buffer, rank).
    pub places: PlaceTable,
    /// The first so many values are entry values, in the order of their places.
    entries: u32,
    /// By place: its last value; [`NOTHING`] if it has none.
    last: Vec<u32>,
}

impl Ends {
    /// Those of a graph.
    pub fn new(graph: &ChunkGraph) -> Ends {
        let last = graph.last.iter().map(|&last| match last {
            NOTHING => NOTHING.0,
            last => graph.version(last).value.0,
        });
        Ends {
            values: Arc::clone(&graph.values),
            places: graph.places.clone(),
            entries: graph.entries,
            last: last.collect(),
        }
    }

    /// The places that hold something at entry, in order; value i is that of the i-th.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = u32> {
        (0..self.entries).map(|value| match self.values.node(ValueId(value)) {
            Node::Leaf(place) => place,
            Node::Combined { .. } | Node::Post(_) => NOTHING.0,
        })
    }

    /// What a place, an index given by `places`, holds in the end.
    pub fn last(&self, place: u32) -> Option<ValueId> {
        Some(self.last[place as usize]).filter(|&last| last != NOTHING.0).map(ValueId)
    }
}
