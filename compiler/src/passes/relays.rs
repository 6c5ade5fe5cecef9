//! A message that is put into memory only to be read from there once is read where it arrives.
//!
//! `tmp @ q = x @ p`, then `y @ q += tmp @ q`: the second node reads the message itself, and `tmp` is never stored. So for
//! scratch that gathers what is then reduced.

use plan::ids::RankId;

use super::copies::copied;
use super::uses;
use crate::flow::{Flow, Kind, NodeId, Operand, Special};
use crate::options::Options;

/// Lets readers of relayed values read the messages.
pub(super) fn run(flow: &mut Flow, options: &Options) {
    let uses = uses(flow);
    for id in 0..flow.nodes.len() {
        let node = flow.nodes[id];
        // Whose maker can store the copy has no need to take the message itself, which would be later.
        if node.gone || node.kind == Kind::Signal || copied(flow, NodeId(id as u32)).is_some() {
            continue;
        }
        // The ranks whose messages it reads: looked at only where it reads a relay, and then few.
        let mut away: Option<Vec<RankId>> = None;
        for at in Flow::range(&node) {
            let operand = flow.operands[at];
            let Some((relay, message)) = relayed(flow, &node, &operand, &uses) else { continue };
            let away = away.get_or_insert_with(|| {
                let ranks = flow.operands(&node).iter().map(|o| o.place.rank);
                ranks.filter(|&rank| rank != node.rank).collect()
            });
            if away.len() + 2 > options.operands as usize {
                break;
            }
            if !away.contains(&message.place.rank) {
                away.push(message.place.rank);
                let from = flow.node(relay).first as usize;
                let special = flow.special(from);
                flow.operands[at] = message;
                flow.set_special(at, Special { by: special.by.or(Some(relay)), ..special });
                flow.nodes[relay.index()].gone = true;
            }
        }
    }
}

/// The node that stores the operand only for this reader, and the message that it stores.
fn relayed(
    flow: &Flow,
    reader: &crate::flow::Node,
    operand: &Operand,
    uses: &[u32],
) -> Option<(NodeId, Operand)> {
    let relay = operand.maker().filter(|_| operand.place.rank == reader.rank)?;
    let node = flow.node(relay);
    let alone = node.copies() && !node.home.stored && uses[relay.index()] == 1 && node.lane == reader.lane;
    let message = flow.operands(node).first()?;
    (alone && message.place.rank != node.rank).then_some((relay, *message))
}
