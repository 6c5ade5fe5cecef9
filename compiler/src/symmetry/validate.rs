//! V6 of folded plans: the plan computes the program's own expressions, bit for bit.
//!
//! In: a quotient and a verified folded plan that claims to be made of it. Out: nothing, or the first promised place of a
//! standing rank whose value in the plan is combined in another order, or rounded elsewhere, than the program says; also a plan that
//! is folded otherwise, or promises something else. Both sides are rotations of what they are at the standing ranks, by one σ,
//! so that what agrees there agrees everywhere. The plan's values are made again out of the program's (`values`), leaf by leaf.

use plan::collective::{BlockRef, Clause};
use plan::ids::BufferId;
use plan::plan::{Form, Role};
use plan::verify::{TakenNode, VerifiedFolded};
use rustc_hash::FxHashMap;

use super::Quotient;
use super::prove::expressions;
use super::values::{Value, Values};
use crate::limits::Limits;
use crate::trace::{BufferKind, Place};

/// How a folded plan differs from its program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unlike {
    /// World, cells, buffers or rotation.
    Shape,
    /// The promise.
    Promise,
    /// What a place holds at the end.
    Value {
        /// The place.
        place: Place,
        /// The buffer's name.
        buffer: String,
        /// Under which alias form of the plan.
        form: Form,
    },
}

/// Compares every promised place of the standing ranks with the program.
pub fn validate(quotient: &Quotient, plan: &VerifiedFolded, limits: &Limits) -> Result<(), Unlike> {
    let Quotient { trace, action, versions, .. } = quotient;
    let folded = plan.folded();
    let header = &folded.plan.header;
    let known = (trace.ranks, trace.cells, action.step, &trace.shape);
    if (header.ranks, header.cells, folded.rotation.step, &header.shape) != known {
        return Err(Unlike::Shape);
    }
    // By buffer of the trace: the plan's that hold its entry values, and what is written.
    let side = |b: usize, role: Role| {
        let buffer = &trace.buffers[b];
        let at =
            folded.plan.buffers.iter().position(|other| other.role == role && other.name == buffer.name)?;
        let (turn, other) = (action.buffers[b], folded.rotation.buffers[at]);
        let same = folded.plan.buffers[at].blocks == buffer.blocks
            && (other.blocks, other.cells) == (turn.blocks, turn.cells);
        same.then(|| BufferId::new(at))
    };
    let count = trace.buffers.len();
    let send: Vec<Option<BufferId>> = (0..count).map(|b| side(b, Role::Send)).collect();
    let recv: Vec<Option<BufferId>> = (0..count).map(|b| side(b, Role::Recv)).collect();
    for (b, buffer) in trace.buffers.iter().enumerate() {
        let right = match buffer.kind {
            BufferKind::In => send[b].is_some(),
            BufferKind::Out => recv[b].is_some(),
            BufferKind::Inout => send[b].is_some() && recv[b].is_some(),
            BufferKind::Scratch | BufferKind::Signal => true,
        };
        if !right {
            return Err(Unlike::Shape);
        }
    }
    let renamed = |block: BlockRef, side: &[Option<BufferId>]| {
        Some(BlockRef { buffer: side[block.buffer.index()]?, ..block })
    };
    let (wanted, found) = (&trace.promise, &folded.plan.promise);
    let clause = |(a, b): (&Clause, &Clause)| renamed(a.place, &recv) == Some(b.place) && a.list == b.list;
    let list = |(a, b): (&Vec<BlockRef>, &Vec<BlockRef>)| {
        a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| renamed(a, &send) == Some(b))
    };
    let same = wanted.synchronised == found.synchronised
        && wanted.clauses.len() == found.clauses.len()
        && wanted.clauses.iter().zip(&found.clauses).all(clause)
        && wanted.lists.len() == found.lists.len()
        && wanted.lists.iter().zip(&found.lists).all(list);
    if !same {
        return Err(Unlike::Promise);
    }

    let Some(versions) = versions.first() else { return Err(Unlike::Shape) };
    let mut values = Values::new(action.order);
    let held = expressions(quotient, versions, &mut values, limits);
    // By number of a leaf: its value among the program's.
    let mut leaves: FxHashMap<u32, Value> = FxHashMap::default();
    for (b, send) in send.iter().enumerate() {
        let Some(send) = *send else { continue };
        for rank in quotient.standing() {
            for cell in 0..trace.buffers[b].blocks * trace.cells {
                let place = versions.places.index(Place { buffer: BufferId::new(b), rank, cell });
                let entry = versions.entry[place as usize];
                if let (Some(leaf), Some(&Some(value))) =
                    (plan.values().leaf(send, rank, cell), held.get(entry as usize))
                {
                    leaves.insert(leaf, value);
                }
            }
        }
    }
    // By node of the plan: the same expression among the program's.
    let mut same: Vec<Option<Value>> = vec![None; plan.values().len()];
    for node in 0..same.len() as u32 {
        let value = match plan.values().node(node) {
            TakenNode::Leaf(leaf) => leaves.get(&leaf).copied(),
            TakenNode::Post(inner) => same[inner as usize],
            TakenNode::Combined { left, right, rounded } => {
                let pair = same[left as usize].zip(same[right.node as usize]);
                pair.map(|(left, of_right)| {
                    let right = values.taken(of_right, right.times);
                    values.combine(left, right, rounded)
                })
            }
        };
        same[node as usize] = value;
    }
    for form in Form::ALL.into_iter().filter(|&form| header.forms.serves(form)) {
        for clause in &trace.promise.clauses {
            let BlockRef { buffer, rank, block } = clause.place;
            let Some(recv) = recv[buffer.index()] else { return Err(Unlike::Shape) };
            for cell in block * trace.cells..(block + 1) * trace.cells {
                let place = Place { buffer, rank, cell };
                let last = versions.last[versions.places.index(place) as usize];
                let wanted = held.get(last as usize).copied().flatten();
                let found = plan.values().exit(form, recv, rank, cell);
                let found =
                    found.and_then(|found| Some(values.taken(same[found.node as usize]?, found.times)));
                if wanted.is_none() || found != wanted {
                    return Err(Unlike::Value { place, buffer: trace.buffer(place).name.clone(), form });
                }
            }
        }
    }
    Ok(())
}
