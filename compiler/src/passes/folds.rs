//! Several `+=` into one place, one after the other, become one step of many operands.
//!
//! `a += x`, then `a += y`, where no one else reads the first sum: `a = a + x + y` in one go, rounded after each operand as
//! the program says (`round_each`). The first operand of the later node must be the sum itself, so the order stays.

use plan::pre::Pre;

use super::uses;
use crate::flow::{Flow, Kind, Node, NodeId, Operand, Special};
use crate::options::Options;

/// Merges chains of combinations.
pub(super) fn run(flow: &mut Flow, options: &Options) {
    let uses = uses(flow);
    for id in 0..flow.nodes.len() {
        let node = flow.nodes[id];
        let Some(earlier) = foldable(flow, &node, &uses, options) else { continue };
        let first = flow.operands.len() as u32;
        let before = flow.nodes[earlier];
        let later = Flow::range(&node).start + 1..Flow::range(&node).end;
        for (at, of_earlier) in Flow::range(&before).map(|at| (at, true)).chain(later.map(|at| (at, false))) {
            let (operand, special) = (flow.operands[at], flow.special(at));
            flow.operands.push(operand);
            // The place itself is as it was until the merged node writes it.
            let own = operand.place.rank == node.rank;
            let by =
                if of_earlier && !own { special.by.or(Some(NodeId(earlier as u32))) } else { special.by };
            if by.is_some() || special.guard.is_some() {
                flow.set_special(flow.operands.len() - 1, Special { by, ..special });
            }
        }
        let merged = &mut flow.nodes[id];
        merged.first = first;
        merged.count = before.count + node.count - 1;
        let of_before = (0..before.count).map(|operand| before.pre.has(operand.into()));
        let of_node = (1..node.count).map(|operand| node.pre.has(operand.into()));
        let pre = Pre::of(of_before.chain(of_node));
        merged.pre = pre.unwrap_or_default();
        merged.round_each = merged.count > 2;
        flow.nodes[earlier].gone = true;
        flow.unmarked |= pre.is_none();
    }
}

/// The node whose sum `node` continues, if the two can be one.
fn foldable(flow: &Flow, node: &Node, uses: &[u32], options: &Options) -> Option<usize> {
    if node.gone || node.kind != Kind::Fold || !rounds_each(node) {
        return None;
    }
    let sum = flow.operands(node)[0];
    let earlier = sum.maker().filter(|_| sum.place.rank == node.rank)?.index();
    let before = &flow.nodes[earlier];
    let alone = before.kind == Kind::Fold && !before.home.stored && !before.post && uses[earlier] == 1;
    let place = |n: &Node| (n.home.buffer, n.home.cell, n.lane);
    if !alone || !rounds_each(before) || place(before) != place(node) {
        return None;
    }
    // Memory is read later than before: only the place itself, and what nobody writes, is sure to be as it was.
    let away = |o: &Operand| o.place.rank != node.rank;
    let own = |o: &Operand| (o.place.buffer, o.place.cell) == (before.home.buffer, before.home.cell);
    let (earlier_operands, later) = (flow.operands(before), &flow.operands(node)[1..]);
    if !earlier_operands.iter().all(|o| away(o) || own(o) || o.stays()) {
        return None;
    }
    // Few enough, first: whether a rank comes twice is then found by looking at pairs.
    let count = u32::from(before.count) + u32::from(node.count) - 1;
    if count > options.operands.min(u32::from(u16::MAX)) {
        return None;
    }
    let all = || earlier_operands.iter().chain(later).filter(|o| away(o));
    let twice = all().enumerate().any(|(i, a)| all().skip(i + 1).any(|b| a.place.rank == b.place.rank));
    (!twice).then_some(earlier)
}

/// Whether it rounds after each operand, or has so few that this is the same.
fn rounds_each(node: &Node) -> bool {
    node.round_each || node.count == 2
}
