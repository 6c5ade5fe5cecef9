//! Rounds: what must come before what, place by place.
//!
//! In: the nodes of one group (a move, or a `step`), in the order written. Out: their rounds and hazards, and which of their reads
//! another node of the group cuts short. The round of a node is the length of the longest chain of nodes before it: those
//! that wrote what it reads, that wrote or read what it overwrites. Places that a form lays on each other count as one.
//!
//! Within a group all reads come first, so a node of the group that overwrites what another reads is no reason for
//! a later round: the read is told to be done before that node instead.

use super::{Flow, NodeId};
use crate::graph::PlaceTable;
use crate::trace::Place;

/// What is known of each place.
pub(super) struct Hazards<'a> {
    places: &'a PlaceTable,
    ranks: u32,
    /// One more than the round of the last write; 0: never written.
    written: Vec<u32>,
    /// One more than the last round of a read since.
    read: Vec<u32>,
    /// The node that wrote it first in the last group that wrote it.
    writer: Vec<u32>,
}

impl<'a> Hazards<'a> {
    pub(super) fn new(places: &'a PlaceTable, ranks: u32) -> Hazards<'a> {
        let len = places.len();
        Hazards { places, ranks, written: vec![0; len], read: vec![0; len], writer: vec![u32::MAX; len] }
    }

    /// The index that stands for a place.
    pub(super) fn index(&self, place: Place) -> u32 {
        self.places.index(place)
    }

    /// Gives the nodes from `first` on their rounds: one group.
    pub(super) fn group(&mut self, flow: &mut Flow, first: usize) {
        // 1. What the group finds.
        for id in first..flow.nodes.len() {
            let node = &flow.nodes[id];
            let mut round = 0;
            for operand in flow.operands(node) {
                for i in 0..node.width {
                    round = round.max(self.written[self.places.index(operand.place.plus(i)) as usize]);
                }
            }
            let mut hazard = 0;
            for i in 0..node.width {
                let at = self.places.index(home(flow, id).plus(i)) as usize;
                hazard = hazard.max(self.written[at]).max(self.read[at]);
            }
            let node = &mut flow.nodes[id];
            node.round = round.max(hazard);
            node.hazard = hazard;
        }
        // 2. Its writes, in the order written: a `+=` follows those before it into the same place.
        for id in first..flow.nodes.len() {
            let (to, width) = (home(flow, id), flow.nodes[id].width);
            let mut round = flow.nodes[id].round;
            for i in 0..width {
                let at = self.places.index(to.plus(i)) as usize;
                if self.in_group(at, first) {
                    round = round.max(self.written[at]);
                }
            }
            flow.nodes[id].round = round;
            for i in 0..width {
                let at = self.places.index(to.plus(i)) as usize;
                if !self.in_group(at, first) {
                    self.writer[at] = id as u32;
                }
                self.written[at] = round + 1;
                self.read[at] = 0;
            }
        }
        // 3. Its reads.
        for id in first..flow.nodes.len() {
            let node = flow.nodes[id];
            for at in Flow::range(&node) {
                let place = flow.operands[at].place;
                let own = place == home(flow, id);
                for i in 0..node.width {
                    let index = self.places.index(place.plus(i)) as usize;
                    if !self.in_group(index, first) {
                        self.read[index] = self.read[index].max(node.round + 1);
                    } else if !own && self.writer[index] != id as u32 {
                        self.cut_short(flow, at, NodeId(self.writer[index]));
                    }
                }
            }
        }
    }

    fn in_group(&self, place: usize, first: usize) -> bool {
        self.writer[place] != u32::MAX && self.writer[place] as usize >= first
    }

    fn cut_short(&self, flow: &mut Flow, operand: usize, by: NodeId) {
        let key = |id: NodeId| {
            let node = flow.node(id);
            (node.round, flow.distance(node, self.ranks), id)
        };
        if key(by) < key(flow.operands[operand].before) {
            flow.operands[operand].before = by;
        }
    }
}

fn home(flow: &Flow, id: usize) -> Place {
    let node = &flow.nodes[id];
    Place { buffer: node.home.buffer, rank: node.rank, cell: node.home.cell }
}
