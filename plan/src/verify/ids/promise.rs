//! V0, the promise: every place it names exists, on the right side, and no list is empty or names an operand twice.
//!
//! In: a plan whose buffers are checked. Out: faults.

use super::{Fault, Faults};
use crate::collective::BlockRef;
use crate::plan::Role;
use crate::verify::limits::Limits;

pub(super) fn check(faults: &mut Faults, limits: &Limits) {
    let plan = faults.plan;
    let promise = &plan.promise;
    let operands: u64 = promise.lists.iter().map(|list| list.len() as u64).sum();
    let cells = u64::from(plan.header.cells);
    faults.limit("clauses × cells of the promise", promise.clauses.len() as u64 * cells, limits.places);
    faults.limit("operands of the promise", operands, limits.places);
    for (at, clause) in promise.clauses.iter().enumerate() {
        faults.index(|| format!("the list of clause {at}"), u64::from(clause.list), promise.lists.len());
        block(faults, || format!("clause {at}"), clause.place, Role::Recv);
    }
    let mut sorted = Vec::new();
    for (at, list) in promise.lists.iter().enumerate() {
        if list.is_empty() {
            faults.add(|| Fault::Promise { what: format!("list {at} is empty") });
        }
        for &operand in list {
            block(faults, || format!("list {at}"), operand, Role::Send);
        }
        sorted.clear();
        sorted.extend_from_slice(list);
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            let BlockRef { buffer, rank, block } = pair[0];
            faults.add(|| Fault::Promise {
                what: format!(
                    "list {at} names block {block} of buffer {} at rank {} twice",
                    buffer.0, rank.0
                ),
            });
        }
    }
}

fn block(faults: &mut Faults, what: impl Fn() -> String, at: BlockRef, role: Role) {
    let plan = faults.plan;
    let exists = plan.buffers.get(at.buffer.index()).is_some_and(|buffer| {
        let there = at.rank.0 < plan.header.ranks && buffer.at.holds(at.rank);
        there && buffer.role == role && at.block < buffer.blocks
    });
    if !exists {
        let BlockRef { buffer, rank, block } = at;
        faults.add(|| Fault::Promise {
            what: format!(
                "{} names block {block} of buffer {} at rank {}, which is no `{role:?}` block",
                what(),
                buffer.0,
                rank.0
            ),
        });
    }
}
