//! An independent meaning of traces: memory cells that hold numbers, a whole snapshot before every step.
//!
//! It shares nothing with the graph but the definition in `docs/language.md`. A number is combined by an [`Algebra`]:
//! sums of random leaves modulo the prime 2^61-1 tell multisets apart (a false match of two has odds of 2^-60), and a
//! commutative, non-associative hash tells orders and roundings apart.

use std::collections::{BTreeMap, BTreeSet};

use plan::collective::BlockRef;
use rcc_compiler::graph::Form;
use rcc_compiler::trace::{BufferKind, MoveKind, Place, Trace};

const PRIME: u64 = (1 << 61) - 1;

/// How two numbers combine; the flag: the result is rounded.
pub(crate) type Algebra = fn(u64, u64, bool) -> u64;

pub(crate) fn sum(a: u64, b: u64, _rounded: bool) -> u64 {
    (a + b) % PRIME
}

pub(crate) fn tree_hash(a: u64, b: u64, rounded: bool) -> u64 {
    mix(mix(a.min(b)).wrapping_add(mix(a.max(b) ^ 0x5bd1_e995)) ^ u64::from(rounded))
}

/// A good 64-bit mixer (splitmix64's finaliser).
pub(crate) fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[derive(Debug, Clone, PartialEq)]
struct Cell {
    number: u64,
    position: u32,
}

/// What a run leaves behind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    /// Value written by each move at each of its cells, in order.
    pub(crate) written: Vec<Vec<u64>>,
    /// What each of these cells held before.
    pub(crate) before: Vec<Vec<Option<u64>>>,
    /// Memory slots of these cells.
    pub(crate) slots: Vec<Vec<usize>>,
    /// What each clause's cells hold at the end, and should hold (sums only).
    pub(crate) held: Vec<Vec<Option<u64>>>,
    pub(crate) due: Vec<Vec<u64>>,
    /// Arrivals that each rank knows of at the end.
    pub(crate) heard: Vec<BTreeSet<u32>>,
}

impl Outcome {
    pub(crate) fn keeps(&self, trace: &Trace) -> bool {
        let values = self
            .held
            .iter()
            .zip(&self.due)
            .all(|(held, due)| held.iter().zip(due).all(|(held, due)| *held == Some(*due)));
        values && (!trace.promise.synchronised || self.heard.iter().all(|h| h.len() == trace.ranks as usize))
    }

    /// Whether ranks that are promised the same hold the same.
    pub(crate) fn same(&self, trace: &Trace) -> bool {
        let mut known = BTreeMap::new();
        let clauses = trace.promise.clauses.iter().zip(&self.held);
        clauses.fold(true, |same, (clause, held)| same & (known.entry(clause.list).or_insert(held) == &held))
    }
}

/// Something wrong: the code and the move.
pub(crate) type Wrong = (&'static str, u32);

/// What to add to what one cell of one move writes.
#[derive(Clone, Copy)]
pub(crate) struct Perturb {
    pub(crate) mv: usize,
    pub(crate) cell: usize,
}

pub(crate) fn run(
    trace: &Trace,
    form: Form,
    algebra: Algebra,
    perturb: Option<Perturb>,
) -> Result<Outcome, Wrong> {
    let slots = slots(trace, form);
    let slot = |p: Place, i: u32| slots[&(p.buffer.0, p.rank.0, p.cell + i)];
    let mut memory: Vec<Option<Cell>> = vec![None; slots.len()];
    let mut heard: Vec<BTreeSet<u32>> = (0..trace.ranks).map(|r| BTreeSet::from([r])).collect();
    let mut entry = BTreeMap::new();
    for (&(buffer, rank, cell), &s) in &slots {
        let named = |list: &Vec<BlockRef>| {
            list.iter().any(|b| b.buffer.0 == buffer && b.rank.0 == rank && b.block == cell / trace.cells)
        };
        let has = match trace.buffers[buffer as usize].kind {
            BufferKind::In => true,
            BufferKind::Inout => trace.promise.lists.iter().any(named),
            _ => false,
        };
        if has {
            memory[s] = Some(Cell { number: leaf(s), position: cell % trace.cells });
            entry.insert((buffer, rank, cell), leaf(s));
        }
    }
    let mut outcome = Outcome {
        written: Vec::new(),
        before: Vec::new(),
        slots: Vec::new(),
        held: Vec::new(),
        due: Vec::new(),
        heard: Vec::new(),
    };
    let mut snapshot = (memory.clone(), heard.clone());
    // Who wrote a slot in this step, and whether plainly.
    let mut step_writes: BTreeMap<usize, bool> = BTreeMap::new();
    for (m, mv) in trace.moves.iter().enumerate() {
        let goes_on = mv.step != 0 && m > 0 && trace.moves[m - 1].step == mv.step;
        if !goes_on {
            snapshot = (memory.clone(), heard.clone());
            step_writes.clear();
        }
        let wrong = |code| (code, m as u32);
        let (mut written, mut before, mut touched) = (vec![], vec![], vec![]);
        let to = &trace.buffers[mv.to.buffer.index()];
        if to.kind == BufferKind::Signal {
            let told = snapshot.1[trace.sources(mv)[0].rank.index()].clone();
            heard[mv.to.rank.index()].extend(told);
        } else {
            if to.kind == BufferKind::In {
                return Err(wrong("coll::in_written"));
            }
            for i in 0..mv.width {
                let s = slot(mv.to, i);
                let sources: Vec<usize> = trace.sources(mv).iter().map(|&p| slot(p, i)).collect();
                if matches!(mv.kind, MoveKind::Copy | MoveKind::Multicast) && sources[0] == s {
                    let Some(cell) = &snapshot.0[s] else { return Err(wrong("coll::nothing_written")) };
                    written.push(cell.number);
                    before.push(None);
                    touched.push(usize::MAX);
                    continue;
                }
                let mut operands = Vec::new();
                for &source in &sources {
                    operands.push(snapshot.0[source].clone().ok_or(wrong("coll::nothing_written"))?);
                }
                if mv.kind == MoveKind::Combine {
                    operands.insert(0, memory[s].clone().ok_or(wrong("coll::combine_into_nothing"))?);
                }
                let plain = mv.kind != MoveKind::Combine;
                if mv.step != 0
                    && let Some(other) = step_writes.insert(s, plain)
                    && (plain || other)
                {
                    return Err(wrong("coll::conflicting_writes"));
                }
                if operands.iter().any(|o| o.position != operands[0].position) {
                    return Err(wrong("coll::unequal_pieces"));
                }
                let position = operands[0].position;
                if to.kind != BufferKind::Scratch && position != (mv.to.cell + i) % trace.cells {
                    return Err(wrong("coll::wrong_position"));
                }
                let last = operands.len() - 1;
                let numbers = operands.iter().enumerate();
                let folded = numbers
                    .map(|(k, o)| (k, o.number))
                    .reduce(|(_, a), (k, b)| (k, algebra(a, b, k == last)));
                let mut number = folded.unwrap().1;
                if perturb.as_ref().is_some_and(|p| p.mv == m && p.cell == i as usize) {
                    number = mix(number ^ 0xabcd) % PRIME;
                }
                written.push(number);
                before.push(memory[s].as_ref().map(|c| c.number));
                touched.push(s);
                memory[s] = Some(Cell { number, position });
            }
        }
        outcome.written.push(written);
        outcome.before.push(before);
        outcome.slots.push(touched);
    }
    for clause in &trace.promise.clauses {
        let cells = || (0..trace.cells).map(|i| clause.place.block * trace.cells + i);
        let place = &clause.place;
        let held =
            cells().map(|c| memory[slots[&(place.buffer.0, place.rank.0, c)]].as_ref().map(|c| c.number));
        outcome.held.push(held.collect());
        let due = (0..trace.cells).map(|i| {
            let list = &trace.promise.lists[clause.list as usize];
            list.iter()
                .fold(0, |acc, b| sum(acc, entry[&(b.buffer.0, b.rank.0, b.block * trace.cells + i)], true))
        });
        outcome.due.push(due.collect());
    }
    outcome.heard = heard;
    Ok(outcome)
}

/// The number of each cell of each buffer at entry, out of place, if it has a value then.
pub(crate) fn leaves(trace: &Trace) -> BTreeMap<(u32, u32, u32), u64> {
    slots(trace, Form::Disjoint).into_iter().map(|(cell, slot)| (cell, leaf(slot))).collect()
}

fn leaf(slot: usize) -> u64 {
    mix(slot as u64) % PRIME
}

/// A memory slot for every cell of every buffer; under `Same` overlapping cells have one.
fn slots(trace: &Trace, form: Form) -> BTreeMap<(u32, u32, u32), usize> {
    let mut slots = BTreeMap::new();
    for (b, buffer) in trace.buffers.iter().enumerate() {
        for r in 0..trace.ranks {
            for c in 0..buffer.blocks * trace.cells {
                let next = slots.len();
                slots.insert((b as u32, r, c), next);
            }
        }
    }
    if form == Form::Same {
        for o in &trace.inplace {
            for i in 0..o.cells {
                let left = slots[&(o.left.0, o.rank.0, o.left_cell + i)];
                slots.insert((o.right.0, o.rank.0, o.right_cell + i), left);
            }
        }
    }
    slots
}
