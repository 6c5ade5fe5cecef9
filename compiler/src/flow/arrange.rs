//! Nodes rank by rank, as they act.
//!
//! In: a flow as the passes leave it, and an order of its nodes. Out: the same flow with its nodes, and their operands, one rank
//! after the other, those of a rank in that order. The one hard idea: most of what comes after the passes goes through what one
//! rank does. In the order of a program (a step of all ranks, then the next) each node is a cache miss; here all that a rank
//! does fits a cache, and its neighbour was just read.

use super::{Flow, NodeId, SEVERAL, SPECIAL};
use crate::counting::counting_sort;

impl Flow {
    /// The same flow rank by rank; `order` comes to hold the new names of its nodes. (What only passes ask for is left out.)
    #[must_use]
    pub(crate) fn by_rank(mut self, order: &mut [NodeId]) -> Flow {
        let sorted = counting_sort(order.iter().map(|id| id.0), |id| self.nodes[id as usize].rank.0);
        let mut name = vec![NodeId(0); sorted.len()];
        for (new, &old) in (0..).zip(&sorted) {
            name[old as usize] = NodeId(new);
        }
        order.iter_mut().for_each(|id| *id = name[id.index()]);

        // One thing at a time: fetches that wait for nothing else go side by side.
        let mut flow = Flow { widest: self.widest, guarded: self.guarded, ..Flow::default() };
        flow.nodes = sorted.iter().map(|&old| self.nodes[old as usize]).collect();
        // A table is as large as half of all that is there: each old one goes before the next new one comes.
        drop((sorted, std::mem::take(&mut self.nodes)));
        flow.operands.reserve_exact(flow.nodes.iter().map(|node| node.count as usize).sum());
        for node in &mut flow.nodes {
            let first = flow.operands.len();
            flow.operands.extend_from_slice(&self.operands[Flow::range(node)]);
            if !self.special.is_empty() {
                for at in Flow::range(node).filter(|&at| self.operands[at].maker & SPECIAL != 0) {
                    flow.special.resize(first + (at - node.first as usize), (0, 0));
                    flow.special.push(self.special.get(at).copied().unwrap_or_default());
                }
            }
            node.first = first as u32;
        }
        for operand in &mut flow.operands {
            operand.set_maker(operand.maker().map(|maker| name[maker.index()]));
        }
        let rename = |node: u32| node.checked_sub(1).map_or(0, |old| name[old as usize].0 + 1);
        for (by, guard) in &mut flow.special {
            *by = rename(*by);
            if *guard & SEVERAL == 0 {
                *guard = rename(*guard);
            }
        }
        self.other_guards.iter_mut().for_each(|(node, _)| *node = name[node.index()]);
        flow.other_guards = self.other_guards;
        self.extra.iter_mut().for_each(|(node, _)| *node = name[node.index()]);
        self.extra.sort_by_key(|&(node, _)| node);
        flow.extra = self.extra;
        flow
    }
}
