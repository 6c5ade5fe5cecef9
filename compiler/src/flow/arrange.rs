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
    pub(crate) fn by_rank(self, order: &mut [NodeId]) -> Flow {
        let Flow { mut nodes, operands, mut extra, special, mut other_guards, .. } = self;
        let ranks: Vec<u32> = nodes.iter().map(|node| node.rank.0).collect();
        let sorted = counting_sort(order.iter().map(|id| id.0), |id| ranks[id as usize]);
        drop(ranks);
        let mut name = vec![0; sorted.len()];
        for (new, &old) in (0..).zip(&sorted) {
            name[old as usize] = new;
        }
        order.iter_mut().for_each(|id| id.0 = name[id.index()]);
        in_order(&mut nodes, &sorted, &name);
        drop(sorted);

        // One thing at a time: fetches that wait for nothing else go side by side.
        let Flow { widest, guarded, unmarked, .. } = self;
        let mut flow = Flow { widest, guarded, unmarked, nodes, ..Flow::default() };
        flow.operands.reserve_exact(flow.nodes.iter().map(|node| node.count as usize).sum());
        for node in &mut flow.nodes {
            let first = flow.operands.len();
            flow.operands.extend_from_slice(&operands[Flow::range(node)]);
            if !special.is_empty() {
                for at in Flow::range(node).filter(|&at| operands[at].maker & SPECIAL != 0) {
                    flow.special.resize(first + (at - node.first as usize), (0, 0));
                    flow.special.push(special.get(at).copied().unwrap_or_default());
                }
            }
            node.first = first as u32;
        }
        drop((operands, special));
        let new = |NodeId(node): NodeId| NodeId(name[node as usize]);
        for operand in &mut flow.operands {
            operand.set_maker(operand.maker().map(new));
        }
        let rename = |node: u32| node.checked_sub(1).map_or(0, |old| name[old as usize] + 1);
        for (by, guard) in &mut flow.special {
            *by = rename(*by);
            if *guard & SEVERAL == 0 {
                *guard = rename(*guard);
            }
        }
        other_guards.iter_mut().for_each(|(node, _)| *node = new(*node));
        flow.other_guards = other_guards;
        extra.iter_mut().for_each(|(node, _)| *node = new(*node));
        extra.sort_by_key(|&(node, _)| node);
        flow.extra = extra;
        flow
    }
}

/// Puts items in order where they lie; `order` is what comes first, second, and so on, `name` the other way round. A second
/// array of the largest that there is would be pages touched for the first time, which cost more than all the moves.
///
/// So many at once are taken out; what lies where they belong goes to where they have been.
fn in_order<T: Copy>(items: &mut [T], order: &[u32], name: &[u32]) {
    const TOGETHER: usize = 1 << 14;
    // Where each is by now, and what lies there.
    let mut place: Vec<u32> = (0..items.len() as u32).collect();
    let mut lies = place.clone();
    let (mut taken, mut left) = (Vec::with_capacity(TOGETHER), Vec::with_capacity(TOGETHER));
    for (start, next) in (0..).step_by(TOGETHER).zip(order.chunks(TOGETHER)) {
        let end = start + next.len();
        left.clear();
        left.extend(next.iter().map(|&item| place[item as usize]));
        taken.clear();
        taken.extend(left.iter().map(|&at| items[at as usize]));
        let mut holes = left.iter().filter(|&&at| at as usize >= end);
        for at in start..end {
            let item = lies[at] as usize;
            if name[item] as usize >= end
                && let Some(&hole) = holes.next()
            {
                items[hole as usize] = items[at];
                (place[item], lies[hole as usize]) = (hole, item as u32);
            }
        }
        items[start..end].copy_from_slice(&taken);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::in_order;

    proptest! {
        /// Longer than what is taken out at once.
        #[test]
        fn items_are_put_in_order(order in (0..100_000u32).prop_flat_map(|n| Just((0..n).collect::<Vec<_>>()).prop_shuffle())) {
            let mut name = vec![0; order.len()];
            for (new, &old) in (0..).zip(&order) {
                name[old as usize] = new;
            }
            let mut items: Vec<u32> = (0..order.len() as u32).collect();
            in_order(&mut items, &order, &name);
            prop_assert_eq!(items, order);
        }
    }
}
