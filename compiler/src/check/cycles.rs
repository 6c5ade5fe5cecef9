//! Circles in who calls whom, and an order that puts callees first. Shared by functions and runs.
//!
//! In: edges with the text of each call. Out: strongly connected components (Tarjan's algorithm, without recursion,
//! linear in the edges), as an order and as one shortest circle for each that is one.

use grammar::span::Span;

/// Nodes of a graph in an order in which edges lead backwards, and the circles that forbid one.
pub(crate) struct Order {
    /// All nodes that lie on no circle, targets first.
    pub sorted: Vec<u32>,
    /// For each group of nodes that reach one another: a shortest circle through its first node, each node with
    /// the edge to the next.
    pub circles: Vec<Vec<(u32, Span)>>,
}

/// Orders the nodes `0..edges.len()`.
pub(crate) fn order(edges: &[Vec<(u32, Span)>]) -> Order {
    const NEW: u32 = u32::MAX;
    let count = edges.len();
    let mut result = Order { sorted: Vec::with_capacity(count), circles: Vec::new() };
    // Tarjan: `number` in order of discovery, `low` the least number reachable over at most one edge back.
    let (mut number, mut low) = (vec![NEW; count], vec![0u32; count]);
    let mut component = vec![NEW; count];
    let mut open: Vec<u32> = Vec::new();
    let mut next = 0;
    for start in 0..count as u32 {
        if number[start as usize] != NEW {
            continue;
        }
        let mut path: Vec<(u32, usize)> = vec![(start, 0)];
        while let Some(top) = path.last_mut() {
            let (node, edge) = (top.0 as usize, top.1);
            if edge == 0 && number[node] == NEW {
                (number[node], low[node]) = (next, next);
                next += 1;
                open.push(node as u32);
            }
            if let Some(&(target, _)) = edges[node].get(edge) {
                top.1 += 1;
                let target = target as usize;
                if number[target] == NEW {
                    path.push((target as u32, 0));
                } else if component[target] == NEW {
                    low[node] = low[node].min(number[target]);
                }
                continue;
            }
            path.pop();
            if let Some(&(parent, _)) = path.last() {
                low[parent as usize] = low[parent as usize].min(low[node]);
            }
            if low[node] == number[node] {
                let from = open.iter().rposition(|&n| n == node as u32).unwrap_or(0);
                let members: Vec<u32> = open.drain(from..).collect();
                for &member in &members {
                    component[member as usize] = node as u32;
                }
                let first = members.iter().copied().min().unwrap_or(node as u32);
                match circle(edges, &component, first) {
                    Some(circle) => result.circles.push(circle),
                    None => result.sorted.push(node as u32),
                }
            }
        }
    }
    result
}

/// A shortest circle through `start` within its component (breadth first), if there is one.
fn circle(edges: &[Vec<(u32, Span)>], component: &[u32], start: u32) -> Option<Vec<(u32, Span)>> {
    let own = component[start as usize];
    let mut came: Vec<(u32, Option<(usize, Span)>)> = vec![(start, None)];
    let mut seen = rustc_hash::FxHashSet::default();
    seen.insert(start);
    let mut at = 0;
    while at < came.len() {
        let node = came[at].0;
        for &(target, span) in &edges[node as usize] {
            if target == start {
                let mut circle = vec![(node, span)];
                let mut back = came[at].1;
                while let Some((parent, span)) = back {
                    circle.push((came[parent].0, span));
                    back = came[parent].1;
                }
                circle.reverse();
                return Some(circle);
            }
            if component[target as usize] == own && seen.insert(target) {
                came.push((target, Some((at, span))));
            }
        }
        at += 1;
    }
    None
}
