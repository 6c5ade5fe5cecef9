//! T: the order in which every rank does what it does.
//!
//! In: the flow. Out: the place of each node in one order of all nodes, that keeps every dependence. By round first; within a round by
//! distance (to − from) mod n, so that ranks march in rotation and not all upon one; then in the order in which what comes from
//! another rank was made there, so that its makers can send it along; then, where messages are cut in parts, in the order in which others
//! need it; then as written.

use crate::counting::counting_sort;
use crate::flow::{Flow, NodeId};

/// One order of all nodes.
pub(super) struct Keys {
    /// All nodes, merged ones too, in order.
    pub(super) order: Vec<NodeId>,
    /// By node: its place in `order`.
    pub(super) position: Vec<u32>,
    /// By round: the place of its first node.
    rounds: Vec<u32>,
}

impl Keys {
    /// `by_need`: values that came at the same time are made in the order in which other ranks take them.
    pub(super) fn new(flow: &Flow, ranks: u32, by_need: bool) -> Keys {
        let nodes = || 0..flow.nodes.len() as u32;
        let by_distance = counting_sort(nodes(), |id| {
            let node = flow.node(NodeId(id));
            flow.distance(node, ranks)
        });
        let mut order = counting_sort(by_distance, |id| flow.nodes[id as usize].round);
        let mut rounds: Vec<u32> = Vec::new();
        for (at, &id) in (0..).zip(&order) {
            rounds.resize(rounds.len().max(flow.nodes[id as usize].round as usize + 1), at);
        }
        let needed = if by_need { needed(flow, ranks, &order, &rounds) } else { Vec::new() };
        let mut position = vec![0; order.len()];
        let mut made: Vec<(u32, u32, u32)> = Vec::new();
        let mut start = 0;
        for end in rounds.iter().skip(1).copied().chain([order.len() as u32]) {
            let round = start as usize..end as usize;
            made.clear();
            made.extend(order[round.clone()].iter().map(|&id| {
                let (distance, at) = came(flow, NodeId(id), ranks, &position);
                (distance, at, id)
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
        Keys { order: order.into_iter().map(NodeId).collect(), position, rounds }
    }

    /// Renames the nodes of a flow, rank by rank in this order.
    #[must_use]
    pub(super) fn arrange(&mut self, flow: Flow) -> Flow {
        let flow = flow.by_rank(&mut self.order);
        for (at, id) in (0..).zip(&self.order) {
            self.position[id.index()] = at;
        }
        flow
    }

    /// All nodes rank by rank, those of a rank in order.
    pub(super) fn by_rank(&self, flow: &Flow) -> Vec<NodeId> {
        let sorted = counting_sort(self.order.iter().map(|id| id.0), |id| flow.nodes[id as usize].rank.0);
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

/// From how far the first thing comes that a node reads from another rank, and one more than the place in T of the node that made it;
/// 0 if it was there from the beginning.
fn came(flow: &Flow, id: NodeId, ranks: u32, position: &[u32]) -> (u32, u32) {
    let node = flow.node(id);
    let away = flow.operands(node).iter().find(|operand| operand.place.rank != node.rank);
    let at = away.and_then(|operand| operand.maker()).map_or(0, |maker| position[maker.index()] + 1);
    (flow.distance(node, ranks), at)
}

/// By node: which of all nodes, in an order of their own, is the first of another rank to take its value; `u32::MAX` if none does. From the last
/// round back: those of a round that are needed first come first, for those who make what they take.
fn needed(flow: &Flow, ranks: u32, order: &[u32], rounds: &[u32]) -> Vec<u32> {
    let mut needed = vec![u32::MAX; flow.nodes.len()];
    let mut round: Vec<u32> = Vec::new();
    let mut end = order.len() as u32;
    for &start in rounds.iter().rev() {
        round.clear();
        round.extend(&order[start as usize..end as usize]);
        round.sort_by_key(|&id| (flow.distance(flow.node(NodeId(id)), ranks), needed[id as usize]));
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
