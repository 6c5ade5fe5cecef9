//! Rounds in which more messages go from one rank to another than their channel has slots are spread.
//!
//! In: a flow, its order T, transfers in the order of their channels. Out: other rounds for its nodes, in which every channel
//! carries at most one message, and in the same order. The one hard idea: a step can send along what it makes only if the reader takes it before the
//! slots are full. Where a hundred values are made for one reader in one round and taken in the next, two can be, and all others
//! wait in memory for steps of their own. One after another they make a pipeline instead: k messages in each of d rounds take about k + d.
//!
//! First everything comes as early as it can: what is summed up then goes on at once. Then what is sent on to others moves
//! back to just before they take it: so what is handed out need not wait either. All that rounds promise is kept: who reads what
//! another wrote, or overwrites what another read or wrote, comes in a later round.

use super::keys::Keys;
use super::transfers::{NONE, Numbered};
use crate::flow::{Flow, Home, Node, NodeId};
use crate::graph::PlaceTable;
use crate::trace::Place;

/// Gives the nodes new rounds; whether it did: not where moves of one `step` overwrite what others of it read.
pub(super) fn run(flow: &mut Flow, keys: &Keys, numbered: &Numbered, places: &PlaceTable) -> bool {
    if flow.guarded {
        return false;
    }
    let mut channel = vec![NONE; flow.operands.len()];
    numbered.list.iter().for_each(|transfer| channel[transfer.operand as usize] = transfer.channel);
    let mut spread = Spread { flow, keys, numbered, channel, places, rounds: vec![0; flow.nodes.len()] };
    spread.forward();
    spread.back();
    let rounds = spread.rounds;
    for (node, round) in flow.nodes.iter_mut().zip(rounds) {
        node.round = round;
    }
    true
}

/// Rounds of a place.
#[derive(Clone, Copy)]
struct Touched {
    written: u32,
    read: u32,
}

struct Spread<'a> {
    flow: &'a Flow,
    keys: &'a Keys,
    numbered: &'a Numbered,
    /// By operand: of the message that it is; [`NONE`] if it is none.
    channel: Vec<u32>,
    places: &'a PlaceTable,
    /// By node.
    rounds: Vec<u32>,
}

impl Spread<'_> {
    /// Each as early as all before it allow.
    fn forward(&mut self) {
        // One more than the last round in which a place was written, and read since; 0: never.
        let mut touched = vec![Touched { written: 0, read: 0 }; self.places.len()];
        let mut taken = vec![0u32; self.numbered.links.len()];
        for &id in &self.keys.order {
            let node = self.flow.node(id);
            let mut round = 0;
            for at in Flow::range(node) {
                match self.flow.special(at).by {
                    Some(by) => round = round.max(self.rounds[by.index()]),
                    None => {
                        self.of_operand(node, at).for_each(|place| round = round.max(touched[place].written));
                    }
                }
            }
            // What was merged into others stands for what these read in its place; it writes nothing.
            if !node.gone {
                for home in self.homes(id) {
                    for place in self.cells(node, &home) {
                        round = round.max(touched[place].written).max(touched[place].read);
                    }
                }
                for channel in self.channels(node) {
                    round = round.max(taken[channel]);
                }
                self.channels(node).for_each(|channel| taken[channel] = round + 1);
            }
            self.rounds[id.index()] = round;
            for at in Flow::range(node).filter(|&at| self.flow.special(at).by.is_none()) {
                self.of_operand(node, at)
                    .for_each(|place| touched[place].read = touched[place].read.max(round + 1));
            }
            for home in self.homes(id).filter(|_| !node.gone) {
                let now = Touched { written: round + 1, read: 0 };
                self.cells(node, &home).for_each(|place| touched[place] = now);
            }
        }
    }

    /// What makes at least as many messages as it takes moves to just before the first that comes after it. (To move would else only
    /// make more messages wait. Entry values may wait as long as they like.)
    fn back(&mut self) {
        // The round in which a place is written next, and read before that.
        let mut touched = vec![Touched { written: u32::MAX, read: u32::MAX }; self.places.len()];
        let mut taken = vec![u32::MAX; self.numbered.links.len()];
        // Of nodes that were merged into others: when these act.
        let mut merged = vec![u32::MAX; self.flow.nodes.len()];
        let sends = self.numbered.count_by_maker(self.flow.nodes.len());
        for &id in self.keys.order.iter().rev() {
            let node = self.flow.node(id);
            let mut limit = u32::MAX;
            for home in self.homes(id).filter(|_| !node.gone) {
                for place in self.cells(node, &home) {
                    limit = limit.min(touched[place].written).min(touched[place].read);
                }
            }
            for at in Flow::range(node).filter(|&at| self.flow.special(at).by.is_none()) {
                self.of_operand(node, at).for_each(|place| limit = limit.min(touched[place].written));
            }
            if !node.gone {
                self.channels(node).for_each(|channel| limit = limit.min(taken[channel]));
            }
            let takes = self.channels(node).count() as u32;
            let latest = match node.gone {
                true if merged[id.index()] != u32::MAX => merged[id.index()].min(limit.saturating_sub(1)),
                false if limit != u32::MAX && sends[id.index()] >= takes.max(1) => limit.saturating_sub(1),
                _ => 0,
            };
            let round = self.rounds[id.index()].max(latest);
            self.rounds[id.index()] = round;
            for by in Flow::range(node).filter_map(|at| self.flow.special(at).by) {
                merged[by.index()] = merged[by.index()].min(round);
            }
            for home in self.homes(id).filter(|_| !node.gone) {
                let now = Touched { written: round, read: u32::MAX };
                self.cells(node, &home).for_each(|place| touched[place] = now);
            }
            for at in Flow::range(node).filter(|&at| self.flow.special(at).by.is_none()) {
                self.of_operand(node, at)
                    .for_each(|place| touched[place].read = touched[place].read.min(round));
            }
            if !node.gone {
                self.channels(node).for_each(|channel| taken[channel] = round);
            }
        }
    }

    fn of_operand(&self, node: &Node, at: usize) -> impl Iterator<Item = usize> + use<'_> {
        let place = self.flow.operands[at].place;
        (0..node.width).map(move |i| self.places.index(place.plus(i)) as usize)
    }

    fn cells(&self, node: &Node, home: &Home) -> impl Iterator<Item = usize> + use<'_> {
        let place = Place { buffer: home.buffer, rank: node.rank, cell: home.cell };
        (0..node.width).map(move |i| self.places.index(place.plus(i)) as usize)
    }

    fn homes(&self, id: NodeId) -> impl Iterator<Item = Home> + use<'_> {
        let node = self.flow.node(id);
        [node.home].into_iter().chain(self.flow.extra_of(id))
    }

    /// The channels of the messages that a node takes.
    fn channels(&self, node: &Node) -> impl Iterator<Item = usize> + use<'_> {
        self.channel[Flow::range(node)]
            .iter()
            .filter(|&&channel| channel != NONE)
            .map(|&channel| channel as usize)
    }
}
