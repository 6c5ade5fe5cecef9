//! Memory of the plan: which plan buffer stands for which trace buffer, what overlaps, what is promised.
//!
//! In: the trace. Out: [`Memory`]. The one hard idea: an `inout` buffer is two buffers of the plan, its entry side
//! (`Send`: version 0, for all readers, for ever) and its exit side (`Recv`: every later version). Out of place they
//! are two memories, in place one; the same steps serve both. All scratch becomes one buffer, numbered by use.

use std::collections::BTreeSet;

use plan::collective::{BlockRef, Promise};
use plan::ids::{BufferId, RankId};
use plan::plan::{Buffer, Forms, Overlap, Presence, Role};
use plan::values::{Node, ValueId};

use crate::flow::block_cells;
use crate::graph::ChunkGraph;
use crate::trace::{BufferKind, Trace};

/// The memory of a plan.
pub(crate) struct Memory {
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) overlaps: Vec<Overlap>,
    pub(crate) forms: Forms,
    pub(crate) promise: Promise,
    /// By trace buffer: the plan buffer that holds entry values.
    pub(crate) entry: Vec<Option<BufferId>>,
    /// By trace buffer: the plan buffer that is written.
    pub(crate) exit: Vec<Option<BufferId>>,
    /// The one scratch buffer.
    pub(crate) scratch: BufferId,
}

/// Values at which a promised reduction is complete.
pub(crate) struct Finished {
    /// By value, a bit.
    complete: Vec<u64>,
    pub(crate) serves_post: bool,
}

impl Finished {
    /// Whether the step that makes this value applies the operator's outer part.
    pub(crate) fn needs_post(&self, value: ValueId) -> bool {
        self.serves_post && is_in(&self.complete, value)
    }
}

fn is_in(set: &[u64], value: ValueId) -> bool {
    set[value.0 as usize / 64] >> (value.0 % 64) & 1 == 1
}

/// Gives each trace buffer its place in the plan.
pub(crate) fn assign(trace: &Trace) -> Memory {
    let mut buffers = Vec::new();
    let mut entry = Vec::new();
    let mut exit = Vec::new();
    for (index, buffer) in trace.buffers.iter().enumerate() {
        let mut add = |role, at| {
            buffers.push(Buffer { name: buffer.name.clone(), role, blocks: buffer.blocks, at });
            Some(BufferId::new(buffers.len() - 1))
        };
        let (send, recv) = match buffer.kind {
            BufferKind::In => (add(Role::Send, buffer.at), None),
            BufferKind::Out => (None, add(Role::Recv, buffer.at)),
            BufferKind::Inout => {
                let read = entry_presence(trace, BufferId::new(index), buffer.at);
                (add(Role::Send, read), add(Role::Recv, buffer.at))
            }
            BufferKind::Scratch | BufferKind::Signal => (None, None),
        };
        entry.push(send);
        exit.push(recv);
    }
    let scratch = BufferId::new(buffers.len());
    buffers.push(Buffer { name: "scratch".to_string(), role: Role::Scratch, blocks: 0, at: Presence::All });

    let overlaps = overlaps(trace, &buffers, &entry, &exit);
    let forms = Forms { disjoint: true, same: !overlaps.is_empty() };
    let promise = promise(trace, &entry, &exit);
    Memory { buffers, overlaps, forms, promise, entry, exit, scratch }
}

/// Where the entry side of an `inout` buffer exists: the ranks that some right-hand side names.
fn entry_presence(trace: &Trace, buffer: BufferId, at: Presence) -> Presence {
    let operands = trace.promise.lists.iter().flatten().filter(|operand| operand.buffer == buffer);
    let ranks: BTreeSet<RankId> = operands.map(|operand| operand.rank).collect();
    match (ranks.len(), ranks.first()) {
        (1, Some(&only)) if trace.ranks > 1 => Presence::One(only),
        _ => at,
    }
}

fn overlaps(
    trace: &Trace,
    buffers: &[Buffer],
    entry: &[Option<BufferId>],
    exit: &[Option<BufferId>],
) -> Vec<Overlap> {
    let mut overlaps = Vec::new();
    for (buffer, (send, recv)) in trace.buffers.iter().zip(entry.iter().zip(exit)) {
        let (&Some(left), &Some(right)) = (send, recv) else { continue };
        for rank in (0..trace.ranks).map(RankId) {
            if buffers[left.index()].at.holds(rank) && buffers[right.index()].at.holds(rank) {
                let cells = buffer.blocks * trace.cells;
                overlaps.push(Overlap { rank, left, left_cell: 0, right, right_cell: 0, cells });
            }
        }
    }
    for form in &trace.inplace {
        if let (Some(left), Some(right)) = (entry[form.left.index()], exit[form.right.index()]) {
            let (left_cell, right_cell, cells) = (form.left_cell, form.right_cell, form.cells);
            overlaps.push(Overlap { rank: form.rank, left, left_cell, right, right_cell, cells });
        }
    }
    overlaps
}

fn promise(trace: &Trace, entry: &[Option<BufferId>], exit: &[Option<BufferId>]) -> Promise {
    let rename = |block: &BlockRef, side: &[Option<BufferId>]| BlockRef {
        buffer: side[block.buffer.index()].unwrap_or(block.buffer),
        ..*block
    };
    let mut promise = Promise::clone(&trace.promise);
    for clause in &mut promise.clauses {
        clause.place = rename(&clause.place, exit);
    }
    for operand in promise.lists.iter_mut().flatten() {
        *operand = rename(operand, entry);
    }
    promise
}

/// Finds the values that complete a promised reduction of two or more operands. If one of them is also combined
/// further (a prefix sum, say), no step could carry the outer part for one use and not for the other, and operators
/// with an outer part are not served; nor are they where reductions of different sizes are promised.
pub(crate) fn finished_values(trace: &Trace, graph: &ChunkGraph) -> Finished {
    let mut complete = vec![0u64; graph.values.len() / 64 + 1];
    let mut any = false;
    for clause in &trace.promise.clauses {
        if trace.promise.lists[clause.list as usize].len() > 1 {
            for place in block_cells(clause.place, trace) {
                if let Some(version) = graph.last(graph.places.index(place)) {
                    let value = graph.version(version).value.0;
                    complete[value as usize / 64] |= 1 << (value % 64);
                    any = true;
                }
            }
        }
    }
    // Every fold has left a value that names what it combined. (What lives only within a fold is complete for no one.)
    let combined_again = || {
        let names = |value: u32| match graph.values.node(ValueId(value)) {
            Node::Combined { left, right, .. } => is_in(&complete, left) || is_in(&complete, right),
            Node::Leaf(_) | Node::Post(_) => false,
        };
        (0..graph.values.len() as u32).any(names)
    };
    let serves_post = !any || (trace.promise.reduced_operands().is_some() && !combined_again());
    Finished { complete, serves_post }
}
