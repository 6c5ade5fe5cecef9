//! A value that is copied within its rank is put at both places when it is made.
//!
//! `x @ q = …`, then `y @ q = x @ q`: the first node stores to `y` as well (and not to `x`, if no one reads it there). That writes
//! `y` earlier than the program does, so nothing may have touched `y` since the value was made.

use rustc_hash::FxHashMap;

use crate::flow::{Flow, Kind, NEVER, NodeId};
use crate::options::Options;

/// Lets makers store the copies of their values.
pub(super) fn run(flow: &mut Flow, options: &Options) {
    // Which node each node's value is made by now.
    let mut made_by: Vec<NodeId> = (0..flow.nodes.len() as u32).map(NodeId).collect();
    let mut homes: FxHashMap<NodeId, u32> = FxHashMap::default();
    for id in 0..flow.nodes.len() {
        let node = flow.nodes[id];
        if node.gone {
            continue;
        }
        for at in Flow::range(&node) {
            let maker = flow.operands[at].maker();
            flow.set_maker(at, maker.map(|maker| made_by[maker.index()]));
        }
        let Some(maker) = copied(flow, NodeId(id as u32)) else { continue };
        let count = homes.entry(maker).or_insert(1);
        if *count < options.operands {
            *count += 1;
            made_by[id] = maker;
            flow.extra.push((maker, node.home));
            flow.nodes[id].gone = true;
        }
    }
    flow.extra.sort_by_key(|&(node, _)| node);
}

/// The maker that can store the copy.
pub(super) fn copied(flow: &Flow, id: NodeId) -> Option<NodeId> {
    let node = flow.node(id);
    let operand = flow.operands(node).first().filter(|_| node.kind == Kind::Copy)?;
    let maker = operand.maker().filter(|_| operand.place.rank == node.rank && !operand.entry())?;
    let before = flow.node(maker);
    // In a `step` another move may read the old value of the place, of which `hazard` knows nothing.
    // The maker itself may read the very cells: it does so before it writes.
    let own = flow.hazards.get(id.index()).copied().filter(|&hazard| hazard != NEVER)?;
    let hazard = match flow.hazard_but_for.get(&id) {
        Some(&(reader, hazard)) if reader == maker => hazard,
        _ => own,
    };
    (hazard <= before.round).then_some(maker)
}
