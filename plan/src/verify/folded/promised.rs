//! V4 of a folded plan, the promise: each promised cell of a standing rank holds exactly what it should.
//!
//! In: what places of standing ranks hold at the end. Out: faults. The promise to σᵗ of a place is the place's own, taken round;
//! so what holds at standing ranks holds everywhere. A value that many places hold, each taken round differently, is compared
//! once where its list is the same from all of them.

use rustc_hash::FxHashMap;

use super::super::places::Places;
use super::super::violation::Report;
use super::symbolic::Fault;
use super::values::{FoldedValues, Taken, TakenNode};
use crate::collective::BlockRef;
use crate::fold::{Folded, turned};
use crate::plan::{Form, Plan};
use crate::verify::Limits;
use crate::verify::places::Cell;

/// An entry value: the number of a place of a standing rank, and how many times it is taken round.
type Leaf = (u32, u32);

/// Checks all clauses. `plan` is the folded plan's, with the standing ranks for a world.
#[expect(clippy::too_many_arguments, reason = "the state of one execution, read here and nowhere else")]
pub(super) fn check(
    folded: &Folded,
    plan: &Plan,
    form: Form,
    values: &FoldedValues,
    entry: &[Option<Taken>],
    held: &[Option<Taken>],
    limits: &Limits,
    report: &mut Report,
) {
    let (cells, by) = (plan.header.cells, folded.position());
    let closed: Vec<bool> = plan.promise.lists.iter().map(|list| is_closed(folded, list)).collect();
    // (stored value, list, position, times where the list is another elsewhere)
    let mut met: FxHashMap<(u32, u32, u32, u32), bool> = FxHashMap::default();
    let mut visits = 0;
    for clause in &plan.promise.clauses {
        let list = &plan.promise.lists[clause.list as usize];
        let post = plan.header.serves_post && list.len() > 1;
        for cell in 0..cells {
            let place = place(&values.places, clause.place, cells, cell);
            let name = || values.places.cell(plan, place);
            let promised = || super::super::promised::promised(plan, clause);
            let mut add = |fault: Fault| report.add(|| (super::super::Fault::Symbolic(fault), Vec::new()));
            let Some(value) = held[place] else {
                add(Fault::Unwritten { cell: name(), promised: promised(), form });
                continue;
            };
            let key = match closed[clause.list as usize] {
                true => (value.node, clause.list, turned(cell, by, folded.back(value.times), cells), 0),
                false => (value.node, clause.list, cell, value.times + 1),
            };
            if met.contains_key(&key) {
                // Seen to be right, or reported.
                continue;
            }
            visits += 2 * list.len() as u64;
            if visits > limits.promise_visits {
                add(Fault::Limit { what: "visits of values", limit: limits.promise_visits });
                return;
            }
            let expected = list.iter().map(|&block| leaf(folded, values, entry, block, cell));
            let fault = match compare(values, value, expected.collect(), post) {
                Ok(()) => None,
                Err(Differs::Post) => {
                    let why =
                        if post { "missing, or applied to a part" } else { "applied where none is due" };
                    Some(Fault::Post { cell: name(), why, form })
                }
                Err(Differs::Leaves { lacks, extra }) => {
                    let names = |leaves: &[Leaf]| {
                        let shown =
                            leaves.iter().take(3).map(|&leaf| named(folded, plan, values, leaf).to_string());
                        let more = if leaves.len() > 3 { ", …" } else { "" };
                        format!("{}{more}", shown.collect::<Vec<_>>().join(", "))
                    };
                    let mut differs = Vec::new();
                    if !lacks.is_empty() {
                        differs.push(format!("lacks {} of them ({})", lacks.len(), names(&lacks)));
                    }
                    if !extra.is_empty() {
                        differs.push(format!("has some twice, or others ({})", names(&extra)));
                    }
                    if differs.is_empty() {
                        differs.push("is made of many more".to_string());
                    }
                    Some(Fault::Promise {
                        cell: name(),
                        promised: promised(),
                        differs: differs.join(" and "),
                        form,
                    })
                }
            };
            met.insert(key, fault.is_none());
            if let Some(fault) = fault {
                add(fault);
            }
        }
    }
}

/// The place of a cell of a promised block of a standing rank.
pub(super) fn place(places: &Places, block: BlockRef, cells: u32, cell: u32) -> usize {
    places.of(block.rank, block.buffer, block.block * cells + cell)
}

/// Whether σ maps a list onto itself. Where it is one operand, it does not (and to compare it costs nothing).
fn is_closed(folded: &Folded, list: &[BlockRef]) -> bool {
    list.len() > 1 && folded.list(list, 1) == folded.list(list, 0)
}

/// The entry value of a cell of a block, wherever it is.
fn leaf(
    folded: &Folded,
    values: &FoldedValues,
    entry: &[Option<Taken>],
    block: BlockRef,
    cell: u32,
) -> Option<Leaf> {
    let (_, times) = folded.home(block.rank);
    let back = folded.back(times);
    let home = folded.block(block, back);
    let cells = folded.plan.header.cells;
    let cell = turned(cell, folded.position(), back, cells);
    let place = place(&values.places, home, cells, cell);
    entry[place].map(|_| (place as u32, times))
}

/// How a value differs.
enum Differs {
    Post,
    Leaves { lacks: Vec<Leaf>, extra: Vec<Leaf> },
}

/// Compares a value with the entry values that it should be made of, each once.
fn compare(
    values: &FoldedValues,
    value: Taken,
    expected: Vec<Option<Leaf>>,
    post: bool,
) -> Result<(), Differs> {
    let top = match (values.node(value.node), post) {
        (TakenNode::Post(inner), true) => Taken { node: inner, ..value },
        (_, true) => return Err(Differs::Post),
        _ => value,
    };
    let mut expected: Vec<Leaf> = expected.into_iter().flatten().collect();
    expected.sort_unstable();
    // A value of more leaves is wrong, and not walked through: it may be made of very many.
    let enough = 2 * expected.len() + 64;
    let mut found: Vec<Leaf> = Vec::new();
    let mut stack = vec![top];
    let whole = values.size(top) as usize <= enough;
    while let Some(value) = stack.pop() {
        if found.len() >= enough || stack.len() >= enough {
            break;
        }
        match values.node(value.node) {
            TakenNode::Leaf(place) => found.push((place, value.times)),
            TakenNode::Combined { left, right, .. } => {
                stack.push(values.taken(right, value.times));
                stack.push(Taken { node: left, ..value });
            }
            TakenNode::Post(_) => return Err(Differs::Post),
        }
    }
    found.sort_unstable();
    if whole && found == expected {
        return Ok(());
    }
    let count =
        |list: &[Leaf], leaf: &Leaf| list.partition_point(|l| l <= leaf) - list.partition_point(|l| l < leaf);
    let mut lacks: Vec<Leaf> = Vec::new();
    if whole {
        lacks.extend(expected.iter().filter(|leaf| count(&found, leaf) == 0));
    }
    let mut extra = found.clone();
    extra.dedup();
    extra.retain(|leaf| count(&found, leaf) > count(&expected, leaf));
    Err(Differs::Leaves { lacks, extra })
}

/// An entry value of the world, as people find it.
fn named(folded: &Folded, plan: &Plan, values: &FoldedValues, (place, times): Leaf) -> Cell {
    let mut cell = values.places.cell(plan, place as usize);
    let buffer = plan.buffers.iter().position(|buffer| buffer.name == cell.buffer).unwrap_or(0);
    let cells = plan.header.cells;
    let flat =
        folded.cell(crate::ids::BufferId::new(buffer), cell.block.unwrap_or(0) * cells + cell.cell, times);
    cell.rank = folded.rank(cell.rank, times);
    cell.block = cell.block.map(|_| flat / cells);
    cell.cell = flat % cells;
    cell
}
