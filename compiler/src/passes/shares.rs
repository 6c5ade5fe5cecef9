//! An entry value that its rank copies and others take is sent by the step that copies it.
//!
//! `y @ p = x @ p` and `z @ q = x @ p`, and nothing ever overwrites `x`: one step reads `x`, stores `y` and sends to q. So for `y @ * = x @ p`. It remains
//! an entry value: where the copy comes too late, or the channel's order forbids, it is sent from where it lies.

use plan::ids::{BufferId, RankId};

use crate::flow::{Flow, NodeId};

/// A copy within a rank of an entry value: what is copied, and in which round.
struct Copy {
    from: (RankId, BufferId, u32),
    width: u32,
    round: u32,
    node: NodeId,
}

/// Lets own copies send along what they copy.
pub(super) fn run(flow: &mut Flow) {
    let copies = copies(flow);
    let Some(last) = copies.last() else { return };
    // Where those of each rank begin.
    let ranks = 0..=last.from.0.0 + 1;
    let starts: Vec<usize> = ranks.map(|rank| copies.partition_point(|copy| copy.from.0.0 < rank)).collect();
    for id in 0..flow.nodes.len() {
        let node = flow.nodes[id];
        if node.gone || node.is_signal() {
            continue;
        }
        for at in Flow::range(&node) {
            let operand = flow.operands[at];
            let place = operand.place;
            if place.rank == node.rank || !operand.stays() || operand.maker().is_some() {
                continue;
            }
            let Some(&[start, end]) = starts.get(place.rank.index()..).and_then(|s| s.first_chunk()) else {
                continue;
            };
            let from = (place.rank, place.buffer, place.cell);
            let of_rank = &copies[start..end];
            let first = of_rank.partition_point(|copy| copy.from < from);
            let mut same = of_rank[first..].iter().take_while(|copy| copy.from == from);
            // One that comes no later: within a round what a rank does alone comes first.
            let copy = same.find(|copy| copy.width == node.width && copy.round <= node.round);
            if let Some(copy) = copy {
                flow.set_maker(at, Some(copy.node));
            }
        }
    }
}

/// All of them that store anything, by what they copy.
fn copies(flow: &Flow) -> Vec<Copy> {
    let mut copies = Vec::new();
    for id in flow.alive() {
        let node = flow.node(id);
        let Some(operand) = flow.operands(node).first().filter(|_| node.copies() && node.home.stored) else {
            continue;
        };
        let place = operand.place;
        if place.rank == node.rank && operand.stays() && operand.maker().is_none() {
            let from = (place.rank, place.buffer, place.cell);
            copies.push(Copy { from, width: node.width, round: node.round, node: id });
        }
    }
    copies.sort_by_key(|copy| (copy.from, copy.round, copy.node));
    copies
}
