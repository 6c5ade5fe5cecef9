//! An entry value that is copied into scratch only to be read from there is read where it was.
//!
//! `tmp @ r = input @ r`, then `x @ q = tmp @ r`: the second reads `input` itself, if nothing ever overwrites it, and `tmp` is never
//! stored. Who reads a part of such a copy, or parts of several, does so from the beginning (`flow::pieces`); what no one reads any more is
//! not made.

use super::uses;
use crate::flow::{Flow, Kind, Special};

/// Lets readers of copies read the originals.
pub(super) fn run(flow: &mut Flow) {
    let mut left = uses(flow);
    for id in 0..flow.nodes.len() {
        let node = flow.nodes[id];
        if node.gone || node.kind == Kind::Signal {
            continue;
        }
        for at in Flow::range(&node) {
            let operand = flow.operands[at];
            let Some(copy) = operand.maker().filter(|_| !operand.entry()) else { continue };
            let of_copy = flow.nodes[copy.index()];
            let original = flow.operands[of_copy.first as usize];
            let within = original.place.rank == of_copy.rank && original.entry() && original.stays();
            if of_copy.copies() && !of_copy.home.stored && within {
                flow.operands[at].move_to_entry(original.place);
                flow.set_maker(at, original.maker());
                let special = flow.special(at);
                flow.set_special(at, Special { guard: None, ..special });
                left[copy.index()] -= 1;
                flow.nodes[copy.index()].gone = left[copy.index()] == 0;
            }
        }
    }
    for (node, left) in flow.nodes.iter_mut().zip(left) {
        node.gone |= left == 0 && node.copies() && !node.home.stored;
    }
}
