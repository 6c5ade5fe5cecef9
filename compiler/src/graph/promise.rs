//! Does the program do what its collective promises?
//!
//! In: a trace and its graph. Out: the proof, or where the promise is broken first. The one hard idea: clauses are
//! taken list by list, so that one mark per value remembers whether it is what the list says; a sum that a thousand
//! ranks hold is walked once. Values in a user buffer have the position of their cell, hence the leaves they must
//! hold follow from the list and any one of their places.

use plan::collective::BlockRef;
use plan::ids::{BufferId, RankId};
use plan::join::join;
use plan::values::{Mismatch, Node, ValueId, Walk};

use super::fault::{Broken, Counted, Fault, FaultKind, Holds};
use super::history::contents;
use super::waste::{Warning, waste};
use super::{ChunkGraph, Form, VersionId};
use crate::limits::Limits;
use crate::trace::{BufferKind, Place, Trace};

/// What has been proved of a trace under one alias form, beyond that it keeps its promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// Whether ranks that are promised the same list all end with the same bits (the same operands, combined in the
    /// same order with the same roundings); none if no two ranks are promised the same.
    pub same_bits: Option<bool>,
    /// Moves that do no good. Only under [`Form::Disjoint`]: what overlap makes idle is not the program's fault.
    pub warnings: Vec<Warning>,
}

/// Compares what every place holds at the end with the promise, within the default limits.
pub fn promise(trace: &Trace, graph: &ChunkGraph) -> Result<Proof, Vec<Fault>> {
    promise_within(trace, graph, &Limits::default())
}

/// Compares what every place holds at the end with the promise.
pub fn promise_within(trace: &Trace, graph: &ChunkGraph, limits: &Limits) -> Result<Proof, Vec<Fault>> {
    let mut visits = Visits { count: 0, limit: limits.visits() };
    let given_up = |TooMany { count, limit }| {
        let kind = FaultKind::TooLarge { count, limit, what: Counted::Visits };
        vec![Fault { form: graph.form, kind, others: 0 }]
    };
    let mut keeps = || {
        let (broken, same_bits) = clauses(trace, graph, &mut visits).map_err(given_up)?;
        let unsynchronised = unsynchronised(trace, graph, &mut visits).map_err(given_up)?;
        let faults: Vec<Fault> = broken.into_iter().chain(unsynchronised).collect();
        if faults.is_empty() { Ok(same_bits) } else { Err(faults) }
    };
    if graph.form == Form::Same {
        return keeps().map(|same_bits| Proof { same_bits, warnings: Vec::new() });
    }
    // What is wasted does not depend on whether the promise is kept, but only then it is of interest.
    let (same_bits, warnings) = match graph.is_large() {
        true => join(true, keeps, || waste(trace, graph)),
        false => (Ok(keeps()?), waste(trace, graph)),
    };
    Ok(Proof { same_bits: same_bits?, warnings })
}

/// The values looked at so far.
struct Visits {
    count: u64,
    limit: u64,
}

/// More values are to be looked at than the limit.
struct TooMany {
    count: u64,
    limit: u64,
}

impl Visits {
    fn add(&mut self, more: usize) -> Result<(), TooMany> {
        self.count += more as u64;
        let Visits { count, limit } = *self;
        if count > limit { Err(TooMany { count, limit }) } else { Ok(()) }
    }
}

/// The last versions of promised places.
pub(super) fn promised(trace: &Trace, graph: &ChunkGraph) -> impl Iterator<Item = VersionId> {
    let cells = move |clause: u32| (0..trace.cells).map(move |i| place(trace, clause, i));
    let places = (0..trace.promise.clauses.len() as u32).flat_map(cells);
    places.filter_map(|place| graph.last(graph.places.index(place)))
}

/// The first place that breaks the promise, by rank, then buffer, then cell; and `Proof::same_bits`.
fn clauses(
    trace: &Trace,
    graph: &ChunkGraph,
    visits: &mut Visits,
) -> Result<(Option<Fault>, Option<bool>), TooMany> {
    let mut walk = Walk::default();
    // Of each value: the list that it was last compared with (plus 1, twice), plus 1 if it was right.
    let mut judged = vec![0u32; graph.values.len()];
    let mut operands = Operands::default();
    let mut same_bits = None;
    let mut first: Option<(Place, u32)> = None;
    let mut broken = 0u32;
    let order = by_list(trace);
    'all: for clauses in order.chunk_by(|&a, &b| list_of(trace, a) == list_of(trace, b)) {
        let list = list_of(trace, clauses[0]);
        operands.take(trace, graph, list);
        let shared = clauses.iter().any(|&c| place(trace, c, 0).rank != place(trace, clauses[0], 0).rank);
        for i in 0..trace.cells {
            let mut bits = None;
            for &c in clauses {
                let place = place(trace, c, i);
                let value = held(graph, place);
                let mut right = false;
                if let Some(value) = value {
                    let judgement = &mut judged[value.0 as usize];
                    if *judgement / 2 != list + 1 {
                        match visits.add(operands.cost(graph, value)) {
                            Ok(()) => {}
                            // Some place is wrong: that is worth more than that there is too much to look at.
                            Err(_) if first.is_some() => break 'all,
                            Err(too_many) => return Err(too_many),
                        }
                        let right = operands.agree(graph, i, value, &mut walk);
                        *judgement = (list + 1) * 2 + u32::from(right);
                    }
                    right = *judgement % 2 == 1;
                }
                if !right {
                    broken += 1;
                    let key = |(p, c): (Place, u32)| (p.rank, p.buffer, p.cell, c);
                    first = first.filter(|&f| key(f) < key((place, c))).or(Some((place, c)));
                }
                if shared {
                    let same = *bits.get_or_insert(value) == value;
                    same_bits = Some(same_bits.unwrap_or(true) && same);
                }
            }
        }
    }
    let fault = first.map(|(place, clause)| {
        operands.take(trace, graph, trace.promise.clauses[clause as usize].list);
        let broken_place = Box::new(describe(trace, graph, place, clause, &operands, &mut walk));
        Fault { form: graph.form, kind: FaultKind::Promise(broken_place), others: broken - 1 }
    });
    Ok((fault, same_bits))
}

/// The clauses, those of one list after those of the one before.
fn by_list(trace: &Trace) -> Vec<u32> {
    let mut order: Vec<u32> = (0..trace.promise.clauses.len() as u32).collect();
    order.sort_by_key(|&c| list_of(trace, c));
    order
}

fn list_of(trace: &Trace, clause: u32) -> u32 {
    trace.promise.clauses[clause as usize].list
}

/// Cell `i` of the block that a clause speaks of.
fn place(trace: &Trace, clause: u32, i: u32) -> Place {
    first_cell(trace, trace.promise.clauses[clause as usize].place).plus(i)
}

fn first_cell(trace: &Trace, block: BlockRef) -> Place {
    Place { buffer: block.buffer, rank: block.rank, cell: block.block * trace.cells }
}

/// What a place holds at the end.
fn held(graph: &ChunkGraph, place: Place) -> Option<ValueId> {
    graph.last(graph.places.index(place)).map(|v| graph.version(v).value)
}

/// The operands of one list.
#[derive(Default)]
struct Operands {
    /// The entry versions of their first cells; none: it has no entry value (so the promise cannot be kept).
    starts: Vec<Option<VersionId>>,
}

impl Operands {
    fn take(&mut self, trace: &Trace, graph: &ChunkGraph, list: u32) {
        let blocks = &trace.promise.lists[list as usize];
        let entry = |&block| graph.entry(graph.places.index(first_cell(trace, block)));
        self.starts.clear();
        self.starts.extend(blocks.iter().map(entry));
    }

    /// The entry values of cell `i` of all operands that have one.
    fn leaves(&self, i: u32) -> Vec<ValueId> {
        // Entry version i holds value i, and the cells of a block follow each other.
        self.starts.iter().flatten().map(|v| ValueId(v.0 + i)).collect()
    }

    /// Values that [`Operands::agree`] may look at.
    fn cost(&self, graph: &ChunkGraph, value: ValueId) -> usize {
        match (self.starts.len(), graph.values.node(value)) {
            (1, _) | (_, Node::Leaf(_)) => 1,
            (operands, _) => 2 * operands,
        }
    }

    /// Whether a value is the sum of cell `i` of all operands.
    fn agree(&self, graph: &ChunkGraph, i: u32, value: ValueId, walk: &mut Walk) -> bool {
        if let [start] = self.starts[..] {
            return start.is_some_and(|start| ValueId(start.0 + i) == value);
        }
        if let Node::Leaf(_) = graph.values.node(value) {
            return false;
        }
        let leaves = self.leaves(i);
        leaves.len() == self.starts.len() && graph.values.agrees(value, &leaves, false, walk)
    }

    /// Compares a value with the sum of cell `i` of all operands.
    fn compare(&self, graph: &ChunkGraph, i: u32, value: ValueId, walk: &mut Walk) -> Result<(), Mismatch> {
        let leaves = self.leaves(i);
        let absent = self.starts.len() - leaves.len();
        match graph.values.compare(value, &leaves, false, walk) {
            Ok(()) if absent == 0 => Ok(()),
            Ok(()) => Err(Mismatch { missing_count: absent, ..Mismatch::default() }),
            Err(mismatch) => Err(Mismatch { missing_count: mismatch.missing_count + absent, ..mismatch }),
        }
    }
}

/// What is wrong with a place that is known to be wrong.
fn describe(
    trace: &Trace,
    graph: &ChunkGraph,
    place: Place,
    clause: u32,
    operands: &Operands,
    walk: &mut Walk,
) -> Broken {
    let leaf_place = |key: u32| graph.places.place(key);
    let block = |Place { buffer, rank, cell }: Place| BlockRef { buffer, rank, block: cell / trace.cells };
    let Some(version) = graph.last(graph.places.index(place)) else {
        let list = &trace.promise.lists[trace.promise.clauses[clause as usize].list as usize];
        return Broken {
            clause,
            place,
            last: None,
            holds: Holds::Nothing,
            missing: list.iter().take(Mismatch::SHOWN).copied().collect(),
            missing_count: list.len() as u32,
            twice: Vec::new(),
            twice_count: 0,
            foreign: Vec::new(),
        };
    };
    let value = graph.version(version).value;
    let mismatch = match operands.compare(graph, place.cell % trace.cells, value, walk) {
        Ok(()) => Mismatch::default(),
        Err(mismatch) => mismatch,
    };
    // The comparison names only one of the operands that a doubled part has.
    let twice: Vec<(Place, u64)> =
        contents(graph, value).into_iter().filter(|&(_, count)| count > 1).collect();
    Broken {
        clause,
        place,
        last: graph.writer(version),
        holds: match graph.values.node(value) {
            Node::Leaf(key) => Holds::One(leaf_place(key)),
            Node::Combined { .. } | Node::Post(_) => Holds::Many,
        },
        missing: mismatch.missing.iter().map(|&key| block(leaf_place(key))).collect(),
        missing_count: mismatch.missing_count as u32,
        twice: twice.iter().take(Mismatch::SHOWN).map(|&(place, _)| block(place)).collect(),
        twice_count: twice.len() as u32,
        foreign: mismatch.foreign.iter().map(|&key| leaf_place(key)).collect(),
    }
}

/// The first rank that may leave before some other has entered.
fn unsynchronised(trace: &Trace, graph: &ChunkGraph, visits: &mut Visits) -> Result<Option<Fault>, TooMany> {
    if !trace.promise.synchronised || trace.ranks < 2 {
        return Ok(None);
    }
    let signal = trace.buffers.iter().position(|b| b.kind == BufferKind::Signal).map(BufferId::new);
    let values = graph.values.len();
    let mut heard =
        Heard { stamp: vec![0; values], of_all: vec![false; values], round: 0, stack: Vec::new() };
    let mut first = None;
    let mut others = 0;
    for rank in (0..trace.ranks).map(RankId) {
        let version =
            signal.and_then(|buffer| graph.last(graph.places.index(Place { buffer, rank, cell: 0 })));
        let known = match version {
            None => vec![rank],
            Some(version) => {
                let known = heard.ranks(graph, trace.ranks, graph.version(version).value, visits)?;
                let Some(known) = known else { continue };
                known
            }
        };
        if first.is_some() {
            others += 1;
            continue;
        }
        let missing = (0..trace.ranks).map(RankId).find(|r| known.binary_search(r).is_err()).unwrap_or(rank);
        first = Some(FaultKind::Unsynchronised {
            rank,
            missing,
            missing_count: trace.ranks - known.len() as u32,
            last: version.and_then(|v| graph.writer(v)),
        });
    }
    Ok(first.map(|kind| Fault { form: graph.form, kind, others }))
}

/// Walks the arrivals that a signal tells of.
struct Heard {
    stamp: Vec<u32>,
    /// By value: it is known to tell of all ranks, hence whatever hears it.
    of_all: Vec<bool>,
    round: u32,
    stack: Vec<ValueId>,
}

impl Heard {
    /// The ranks, sorted; none if they are all.
    fn ranks(
        &mut self,
        graph: &ChunkGraph,
        all: u32,
        top: ValueId,
        visits: &mut Visits,
    ) -> Result<Option<Vec<RankId>>, TooMany> {
        self.round += 1;
        self.stack.clear();
        self.stack.push(top);
        let mut ranks = Vec::new();
        let mut complete = false;
        while let Some(value) = self.stack.pop() {
            if self.of_all[value.0 as usize] {
                complete = true;
                break;
            }
            if std::mem::replace(&mut self.stamp[value.0 as usize], self.round) == self.round {
                continue;
            }
            visits.add(1)?;
            match graph.values.node(value) {
                Node::Leaf(key) => ranks.push(graph.places.place(key).rank),
                Node::Combined { left, right, .. } => self.stack.extend([left, right]),
                Node::Post(inner) => self.stack.push(inner),
            }
        }
        self.of_all[top.0 as usize] = complete || ranks.len() == all as usize;
        if self.of_all[top.0 as usize] {
            return Ok(None);
        }
        ranks.sort_unstable();
        Ok(Some(ranks))
    }
}
