//! T: the order in which every rank does what it does.
//!
//! In: the flow. Out: the place of each node in one order of all nodes, that keeps every dependence. By round first; within a round by
//! distance (to − from) mod n, so that ranks march in rotation and not all upon one; then in the order in which what comes from
//! another rank was made there, so that its makers can send it along; then, where messages are cut in parts, in the order in which others
//! need it; then as written.

use plan::ids::RankId;

use crate::counting::counting_sort;
use crate::flow::{Flow, Node, NodeId};

/// One order of all nodes.
pub(super) struct Keys {
    /// All nodes, merged ones too, in order.
    pub(super) order: Vec<NodeId>,
    /// By node: its place in `order`.
    pub(super) position: Vec<u32>,
    /// By round: the place of its first node.
    rounds: Vec<u32>,
    /// Whether nodes are named rank by rank in this order.
    arranged: bool,
}

impl Keys {
    /// `by_need`: values that came at the same time are made in the order in which other ranks take them.
    pub(super) fn new(flow: &Flow, ranks: u32, by_need: bool) -> Keys {
        // Picked out while nodes are read one after the other: what is looked up out of order is small.
        let came: Vec<Came> = flow.nodes.iter().map(|node| came(flow, node, ranks)).collect();
        let round: Vec<u32> = flow.nodes.iter().map(|node| node.round).collect();
        let by_distance = counting_sort(0..flow.nodes.len() as u32, |id| came[id as usize].distance);
        let mut order = counting_sort(by_distance, |id| round[id as usize]);
        let mut rounds: Vec<u32> = Vec::new();
        for (at, &id) in (0..).zip(&order) {
            rounds.resize(rounds.len().max(round[id as usize] as usize + 1), at);
        }
        let needed = if by_need { needed(flow, &came, &order, &rounds) } else { Vec::new() };
        let mut position = vec![0; order.len()];
        let mut made: Vec<(u32, u32, u32)> = Vec::new();
        let mut start = 0;
        for end in rounds.iter().skip(1).copied().chain([order.len() as u32]) {
            let round = start as usize..end as usize;
            made.clear();
            made.extend(order[round.clone()].iter().map(|&id| {
                let Came { distance, maker } = came[id as usize];
                // One more than its maker's place in T; 0 if it was there from the beginning.
                (distance, if maker == NOBODY { 0 } else { position[maker as usize] + 1 }, id)
            }));
            if by_need {
                made.sort_by_key(|&(distance, at, id)| (distance, at, needed[id as usize]));
            } else if !made.is_sorted_by_key(|&(distance, at, _)| (distance, at)) {
                made.sort_by_key(|&(distance, at, _)| (distance, at));
            }
            for (at, &(.., id)) in (start..).zip(&made) {
                order[at as usize] = id;
                position[id as usize] = at;
            }
            start = end;
        }
        Keys { order: order.into_iter().map(NodeId).collect(), position, rounds, arranged: false }
    }

    /// Renames the nodes of a flow, rank by rank in this order.
    #[must_use]
    pub(super) fn arrange(&mut self, flow: Flow) -> Flow {
        let flow = flow.by_rank(&mut self.order);
        for (at, id) in (0..).zip(&self.order) {
            self.position[id.index()] = at;
        }
        self.arranged = true;
        flow
    }

    /// All nodes rank by rank, those of a rank in order.
    pub(super) fn by_rank(&self, flow: &Flow) -> Vec<NodeId> {
        if self.arranged {
            return (0..flow.nodes.len() as u32).map(NodeId).collect();
        }
        let ranks: Vec<RankId> = flow.nodes.iter().map(|node| node.rank).collect();
        let sorted = counting_sort(self.order.iter().map(|id| id.0), |id| ranks[id as usize].0);
        sorted.into_iter().map(NodeId).collect()
    }

    /// When a round begins: before all its nodes.
    pub(super) fn round_start(&self, round: u32) -> u32 {
        2 * self.rounds[round as usize]
    }

    /// The node in whose round an operand of `reader` must be read from memory: who reads it in the program, or who
    /// overwrites it first.
    pub(super) fn due(&self, flow: &Flow, at: u32, reader: NodeId) -> NodeId {
        let special = flow.special(at as usize);
        let by = special.by.unwrap_or(reader);
        special.guard.filter(|guard| self.at(*guard) < self.at(by)).unwrap_or(by)
    }

    /// When a node acts.
    pub(super) fn at(&self, node: NodeId) -> u32 {
        2 * self.position[node.index()] + 1
    }

    /// Just before.
    pub(super) fn before(&self, node: NodeId) -> u32 {
        2 * self.position[node.index()]
    }
}

/// From how far the first thing comes that a node reads from another rank, and the node that made it.
#[derive(Clone, Copy)]
struct Came {
    distance: u32,
    /// [`NOBODY`] if it was there from the beginning.
    maker: u32,
}

const NOBODY: u32 = u32::MAX;

fn came(flow: &Flow, node: &Node, ranks: u32) -> Came {
    let away = flow.operands(node).iter().find(|operand| operand.place.rank != node.rank);
    Came {
        distance: away.map_or(0, |operand| (node.rank.0 + ranks - operand.place.rank.0) % ranks),
        maker: away.and_then(|operand| operand.maker()).map_or(NOBODY, |NodeId(maker)| maker),
    }
}

/// By node: which of all nodes, in an order of their own, is the first of another rank to take its value; `u32::MAX` if none does. From the last
/// round back: those of a round that are needed first come first, for those who make what they take.
fn needed(flow: &Flow, came: &[Came], order: &[u32], rounds: &[u32]) -> Vec<u32> {
    let mut needed = vec![u32::MAX; flow.nodes.len()];
    let mut round: Vec<u32> = Vec::new();
    let mut end = order.len() as u32;
    for &start in rounds.iter().rev() {
        round.clear();
        round.extend(&order[start as usize..end as usize]);
        round.sort_by_key(|&id| (came[id as usize].distance, needed[id as usize]));
        for (at, &id) in (start..).zip(&round) {
            let node = flow.node(NodeId(id));
            let away =
                flow.operands(node).iter().filter(|operand| operand.place.rank != node.rank && !node.gone);
            for NodeId(maker) in away.filter_map(|operand| operand.maker()) {
                needed[maker as usize] = needed[maker as usize].min(at);
            }
        }
        end = start;
    }
    needed
}
