//! V4, the promise: each promised cell holds exactly what it should.
//!
//! In: what all places hold at the end, under one form. Out: faults, each with the last step that wrote the cell. A
//! value that many ranks hold is compared once.

use super::execute::UNDEFINED;
use super::limits::Limits;
use super::places::Places;
use super::symbolic::Fault;
use super::violation::{Report, Site};
use crate::collective::{BlockRef, Clause};
use crate::ids::StepId;
use crate::plan::{Form, Operand, Plan};
use crate::values::{Mismatch, ValueId, Values, Walk};

/// Which values have been found to be what is promised; for all forms.
pub(super) struct Met {
    /// By value: the last list that it was found to meet. (The cell is that of its class: V4 has let no other value in.)
    list: Vec<u32>,
    walk: Walk,
}

impl Met {
    pub(super) fn new(values: &Values) -> Met {
        Met { list: vec![u32::MAX; values.len()], walk: Walk::default() }
    }
}

/// Checks all clauses.
#[expect(clippy::too_many_arguments, reason = "the state of one execution, read here and nowhere else")]
pub(super) fn check(
    plan: &Plan,
    places: &Places,
    form: Form,
    values: &Values,
    entry: &[u32],
    held: &[u32],
    limits: &Limits,
    met: &mut Met,
    report: &mut Report,
) {
    let cells = plan.header.cells;
    let Met { list: met, walk } = met;
    let mut visits = 0;
    let mut leaves = Vec::new();
    for clause in &plan.promise.clauses {
        let list = &plan.promise.lists[clause.list as usize];
        let post = plan.header.serves_post && list.len() > 1;
        for cell in 0..cells {
            let place = place(places, clause.place, cells, cell);
            let raw = held[place];
            if raw == UNDEFINED {
                report.add(|| {
                    let cell = places.cell(plan, place);
                    let fault = Fault::Unwritten { cell, promised: promised(plan, clause), form };
                    (super::Fault::Symbolic(fault), Vec::new())
                });
                continue;
            }
            match met.get(raw as usize) {
                Some(&known) if known != clause.list => {}
                _ => continue,
            }
            visits += 2 * list.len() as u64;
            if visits > limits.promise_visits {
                let (what, limit) = ("visits of values", limits.promise_visits);
                report.add(|| (super::Fault::Symbolic(Fault::Limit { what, limit }), Vec::new()));
                return;
            }
            leaves.clear();
            leaves.extend(list.iter().map(|&block| ValueId(entry[self::place(places, block, cells, cell)])));
            match values.compare(ValueId(raw), &leaves, post, walk) {
                Ok(()) => met[raw as usize] = clause.list,
                Err(mismatch) => {
                    report.add(|| {
                        let fault = fault(plan, places, clause, place, &mismatch, form);
                        (
                            super::Fault::Symbolic(fault),
                            last_writer(plan, places, place).into_iter().collect(),
                        )
                    });
                    if report.is_full() {
                        return;
                    }
                }
            }
        }
    }
}

/// The place of a cell of a promised block.
pub(super) fn place(places: &Places, block: BlockRef, cells: u32, cell: u32) -> usize {
    places.of(block.rank, block.buffer, block.block * cells + cell)
}

fn fault(
    plan: &Plan,
    places: &Places,
    clause: &Clause,
    place: usize,
    mismatch: &Mismatch,
    form: Form,
) -> Fault {
    let Mismatch { missing, missing_count, twice, foreign, post } = mismatch;
    let cell = places.cell(plan, place);
    if *post && missing.is_empty() && twice.is_empty() && foreign.is_empty() {
        let due = plan.header.serves_post && plan.promise.lists[clause.list as usize].len() > 1;
        let why = if due { "missing, or applied to a part" } else { "applied where none is due" };
        return Fault::Post { cell, why, form };
    }
    let names = |keys: &[u32]| -> String {
        let names: Vec<String> =
            keys.iter().take(3).map(|&key| places.cell(plan, key as usize).to_string()).collect();
        let more = if keys.len() > 3 { ", …" } else { "" };
        format!("{}{more}", names.join(", "))
    };
    let mut differs = Vec::new();
    if !missing.is_empty() {
        differs.push(format!("lacks {missing_count} of them ({})", names(missing)));
    }
    if !twice.is_empty() {
        differs.push(format!("has some twice ({})", names(twice)));
    }
    if !foreign.is_empty() {
        differs.push(format!("has others ({})", names(foreign)));
    }
    Fault::Promise { cell, promised: promised(plan, clause), differs: differs.join(" and "), form }
}

/// What a clause promises, in words.
pub(super) fn promised(plan: &Plan, clause: &Clause) -> String {
    let list = &plan.promise.lists[clause.list as usize];
    let name = |block: &BlockRef| {
        format!("{}[{}] @ {}", plan.buffers[block.buffer.index()].name, block.block, block.rank.0)
    };
    match list.as_slice() {
        [one] => name(one),
        [first, .., last] => {
            format!("the reduction of {} values ({} … {})", list.len(), name(first), name(last))
        }
        [] => "nothing".to_string(),
    }
}

/// The last step, by number, that writes a `Recv` place. Looks through the whole plan: called for the few faults shown.
pub(super) fn last_writer(plan: &Plan, places: &Places, place: usize) -> Option<Site> {
    let mut last = None;
    for block in &plan.blocks {
        for (id, step) in plan.steps(&block.body) {
            for operand in plan.dst(step) {
                let first = match *operand {
                    Operand::Channel(_) => continue,
                    Operand::Local { buffer, cell } => places.of(block.rank, buffer, cell),
                    Operand::Peer { rank, buffer, cell } => places.of(rank, buffer, cell),
                };
                if (first..first + step.width as usize).contains(&place) {
                    last = Some(id);
                }
            }
        }
    }
    last.map(|id: StepId| Site::of(plan, id, "last written by"))
}
