//! What the standing ranks hold at the end, against their promise; which speaks for all ranks.
//!
//! In: the versions of each form. Out: the proof, or the faults. The one hard idea: if every rank's program and promise
//! are one rank's, taken round, a place of rank q keeps its promise exactly if the place at the standing rank does
//! of which it is the rotation. A sum that n places hold, each taken round differently, is compared once: a list that
//! the rotation maps onto itself is the same question from each of them.

use plan::collective::BlockRef;
use plan::ids::RankId;
use plan::values::Mismatch;
use rustc_hash::{FxHashMap, FxHashSet};

use super::Quotient;
use super::promise::taken;
use super::values::{Node, Value, Values};
use super::versions::{NOTHING, Read, Versions};
use crate::graph::{Broken, Counted, Fault, FaultKind, Form, Holds, adds, arity};
use crate::limits::Limits;
use crate::trace::{BufferKind, MoveId, Place};

/// What has been proved of all ranks, in every form claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// The forms.
    pub forms: Vec<Form>,
    /// Whether ranks that are promised the same all end with the same bits; none if no two are promised the same, or if
    /// it was not looked for: that would take too long, or operands come in another order elsewhere.
    pub same_bits: Option<bool>,
}

/// Proves the promise at the standing ranks, and hence everywhere.
pub fn prove(quotient: &Quotient, limits: &Limits) -> Result<Proof, Vec<Fault>> {
    let mut values = Values::new(quotient.action.order);
    let mut held = Vec::new();
    let mut same_bits = None;
    for versions in &quotient.versions {
        let mut prover = Prover::new(quotient, versions, &mut values, limits);
        let faults = prover.evaluate();
        if !faults.is_empty() {
            return Err(faults);
        }
        prover.promise()?;
        if versions.form == Form::Disjoint && !quotient.reorders() {
            same_bits = prover.same_bits();
        }
        held.push(prover.held);
    }
    if let ([disjoint, same], [apart, together]) = (&held[..], &quotient.versions[..]) {
        forms_agree(quotient, (apart, disjoint), (together, same))?;
    }
    Ok(Proof { forms: quotient.versions.iter().map(|versions| versions.form).collect(), same_bits })
}

/// What every version holds, by version; none where it follows from a fault. For comparison with a plan.
pub(super) fn expressions(
    quotient: &Quotient,
    versions: &Versions,
    values: &mut Values,
    limits: &Limits,
) -> Vec<Option<Value>> {
    let mut prover = Prover::new(quotient, versions, values, limits);
    prover.evaluate();
    prover.held
}

struct Prover<'a> {
    quotient: &'a Quotient,
    versions: &'a Versions,
    values: &'a mut Values,
    /// By version; none: it follows from a fault.
    held: Vec<Option<Value>>,
    visits: u64,
    limit: u64,
}

/// A value or an operand, as what it is at entry: the place of a standing rank, and how many times it is taken round.
type Leaf = (u32, u32);

/// What is found in a value.
#[derive(Default)]
struct Contents {
    leaves: Vec<Leaf>,
    /// Parts that come more than once.
    twice: Vec<Value>,
}

impl<'a> Prover<'a> {
    fn new(
        quotient: &'a Quotient,
        versions: &'a Versions,
        values: &'a mut Values,
        limits: &Limits,
    ) -> Prover<'a> {
        let count = versions.entries.len() + versions.writer.len();
        Prover { quotient, versions, values, held: vec![None; count], visits: 0, limit: limits.visits() }
    }

    fn fault(&self, kind: FaultKind) -> Vec<Fault> {
        vec![Fault { form: self.versions.form, kind, others: 0 }]
    }

    /// Finds what every version holds: those first that others are made of.
    fn evaluate(&mut self) -> Vec<Fault> {
        let versions = self.versions;
        let mut faults = Faults { form: versions.form, list: versions.faults.clone() };
        for (version, &place) in versions.entries.iter().enumerate() {
            let class = versions.places.place(place).cell % self.quotient.trace.cells;
            self.held[version] = Some(self.values.leaf(place, class));
        }
        let first = versions.entries.len() as u32;
        let mut state = vec![0u8; self.held.len()];
        state[..first as usize].fill(2);
        let mut stack: Vec<(u32, u32)> = Vec::new();
        for top in first..self.held.len() as u32 {
            if state[top as usize] == 0 {
                state[top as usize] = 1;
                stack.push((top, 0));
            }
            while let Some((version, next)) = stack.last_mut() {
                let reads = reads(self.quotient, versions, *version);
                let Some(read) = reads.get(*next as usize) else {
                    let version = *version;
                    self.held[version as usize] = self.made(version, reads, &mut faults);
                    state[version as usize] = 2;
                    stack.pop();
                    continue;
                };
                *next += 1;
                // What is being made already cannot be an operand of itself: the moves have an order.
                if read.version != NOTHING && state[read.version as usize] == 0 {
                    state[read.version as usize] = 1;
                    stack.push((read.version, 0));
                }
            }
        }
        faults.list
    }

    /// What a version holds, given its operands.
    fn made(&mut self, version: u32, reads: &[Read], faults: &mut Faults) -> Option<Value> {
        let (trace, action) = (&self.quotient.trace, &self.quotient.action);
        let (id, cell) = self.versions.made(version);
        let mv = &trace.moves[id.0 as usize];
        let place = |operand: usize| match (adds(trace, mv), operand) {
            (true, 0) => mv.to.plus(cell),
            (adds, _) => trace.sources(mv)[operand - usize::from(adds)].plus(cell),
        };
        let mut sum: Option<(Value, u32)> = None;
        for (i, read) in reads.iter().enumerate() {
            let value = self.held.get(read.version as usize).copied().flatten()?;
            let value = self.values.taken(value, read.times);
            // A token has no length.
            let signal = trace.buffer(mv.to).kind == BufferKind::Signal;
            let class = if signal { 0 } else { self.position(value) };
            let Some((so_far, first)) = sum else {
                sum = Some((value, class));
                continue;
            };
            if class != first {
                faults.note(FaultKind::UnequalPieces {
                    mv: id,
                    left: place(0),
                    left_position: first,
                    right: place(i),
                    right_position: class,
                });
                return None;
            }
            sum = Some((self.values.combine(so_far, value, i + 1 == reads.len()), first));
        }
        let (value, class) = sum?;
        let user = !matches!(trace.buffer(mv.to).kind, BufferKind::Scratch | BufferKind::Signal);
        let to = mv.to.plus(cell);
        if user && class != to.cell % action.cells {
            faults.note(FaultKind::WrongPosition { mv: id, place: to, source: place(0), position: class });
        }
        Some(value)
    }

    /// The position in a block that a value came from.
    fn position(&self, value: Value) -> u32 {
        self.quotient.action.position(self.values.class(value), value.times)
    }

    /// Compares every promised place with its list.
    fn promise(&mut self) -> Result<(), Vec<Fault>> {
        let (trace, action) = (&self.quotient.trace, &self.quotient.action);
        // By list: whether the rotation maps it onto itself.
        let closed: Vec<bool> = trace
            .promise
            .lists
            .iter()
            .map(|list| {
                let mut next: Vec<BlockRef> = list.iter().map(|&block| taken(action, block, 1)).collect();
                next.sort_unstable();
                next == *list
            })
            .collect();
        let mut judged: FxHashMap<(u32, u32, u32, u32), bool> = FxHashMap::default();
        let mut first: Option<(Place, u32)> = None;
        let mut broken = 0u32;
        for (c, clause) in trace.promise.clauses.iter().enumerate() {
            let list = &trace.promise.lists[clause.list as usize];
            for i in 0..trace.cells {
                let place = self.cell(clause.place, i);
                let value = self.last(place);
                let right = match value {
                    None => false,
                    Some(value) if list.len() == 1 => {
                        self.leaf(value).is_some_and(|leaf| Some(leaf) == self.operand(list[0], i))
                    }
                    Some(value) => {
                        let key = match closed[clause.list as usize] {
                            true => {
                                (value.node, clause.list, action.position(i, action.back(value.times)), 0)
                            }
                            false => (value.node, clause.list, i, value.times + 1),
                        };
                        match judged.get(&key) {
                            Some(&right) => right,
                            None => {
                                let right = self.agrees(value, list, i)?;
                                judged.insert(key, right);
                                right
                            }
                        }
                    }
                };
                if !right {
                    broken += 1;
                    let key = |(p, c): (Place, u32)| (p.rank, p.buffer, p.cell, c);
                    first = first.filter(|&f| key(f) < key((place, c as u32))).or(Some((place, c as u32)));
                }
            }
        }
        if let Some((place, clause)) = first {
            let broken_place = Box::new(self.describe(place, clause));
            return Err(vec![Fault {
                form: self.versions.form,
                kind: FaultKind::Promise(broken_place),
                others: broken - 1,
            }]);
        }
        if trace.promise.synchronised { self.synchronised() } else { Ok(()) }
    }

    fn cell(&self, block: BlockRef, i: u32) -> Place {
        Place { buffer: block.buffer, rank: block.rank, cell: block.block * self.quotient.trace.cells + i }
    }

    /// What a place of a standing rank holds at the end.
    fn last(&self, place: Place) -> Option<Value> {
        let version = self.versions.last[self.versions.places.index(place) as usize];
        self.held.get(version as usize).copied().flatten()
    }

    fn leaf(&self, value: Value) -> Option<Leaf> {
        match self.values.node(value) {
            Node::Leaf(place) => Some((place, value.times)),
            Node::Combined(..) => None,
        }
    }

    /// The entry value of cell `i` of an operand, if it has one.
    fn operand(&self, block: BlockRef, i: u32) -> Option<Leaf> {
        let (home, times) = self.quotient.action.home_of(self.cell(block, i));
        let place = self.versions.places.index(home);
        (self.versions.entry[place as usize] != NOTHING).then_some((place, times))
    }

    /// Whether a value is the sum of cell `i` of all operands, each once.
    fn agrees(&mut self, value: Value, list: &[BlockRef], i: u32) -> Result<bool, Vec<Fault>> {
        if self.leaf(value).is_some() {
            return Ok(false);
        }
        let expected: Option<Vec<Leaf>> = list.iter().map(|&block| self.operand(block, i)).collect();
        let Some(mut expected) = expected else { return Ok(false) };
        let mut contents = self.contents(value, expected.len())?;
        contents.leaves.sort_unstable();
        expected.sort_unstable();
        Ok(contents.twice.is_empty() && contents.leaves == expected)
    }

    /// The leaves of a value, each once; ends early with more than `enough` of them, or where a part comes twice.
    fn contents(&mut self, value: Value, enough: usize) -> Result<Contents, Vec<Fault>> {
        let mut contents = Contents::default();
        let mut seen: FxHashSet<Value> = FxHashSet::default();
        let mut stack = vec![value];
        let brief = enough != usize::MAX;
        while let Some(value) = stack.pop() {
            if brief && (contents.leaves.len() > enough || !contents.twice.is_empty()) {
                break;
            }
            if !seen.insert(value) {
                contents.twice.push(value);
                continue;
            }
            self.visits += 1;
            if self.visits > self.limit {
                let (count, limit) = (self.visits, self.limit);
                return Err(self.fault(FaultKind::TooLarge { count, limit, what: Counted::Visits }));
            }
            match self.values.node(value) {
                Node::Leaf(place) => contents.leaves.push((place, value.times)),
                Node::Combined(left, right) => {
                    stack.push(self.values.taken(left, value.times));
                    stack.push(self.values.taken(right, value.times));
                }
            }
        }
        Ok(contents)
    }

    /// The place of a leaf in the whole world.
    fn place(&self, (place, times): Leaf) -> Place {
        self.quotient.action.place(self.versions.places.place(place), times)
    }

    /// What is wrong with a place that is known to be wrong.
    fn describe(&mut self, place: Place, clause: u32) -> Broken {
        let trace = &self.quotient.trace;
        let list = &trace.promise.lists[trace.promise.clauses[clause as usize].list as usize];
        let i = place.cell % trace.cells;
        let block =
            |Place { buffer, rank, cell }: Place| BlockRef { buffer, rank, block: cell / trace.cells };
        let version = self.versions.last[self.versions.places.index(place) as usize];
        let last = (version as usize >= self.versions.entries.len() && version != NOTHING)
            .then(|| self.versions.made(version).0);
        let Some(value) = self.last(place) else {
            return Broken {
                clause,
                place,
                last,
                holds: Holds::Nothing,
                missing: list.iter().take(Mismatch::SHOWN).copied().collect(),
                missing_count: list.len() as u32,
                twice: Vec::new(),
                twice_count: 0,
                foreign: Vec::new(),
            };
        };
        let contents = self.contents(value, usize::MAX).unwrap_or_default();
        let held: FxHashSet<Leaf> = contents.leaves.iter().copied().collect();
        let expected: Vec<Option<Leaf>> = list.iter().map(|&block| self.operand(block, i)).collect();
        let wanted: FxHashSet<Leaf> = expected.iter().flatten().copied().collect();
        let lacks = |leaf: &Option<Leaf>| leaf.is_none_or(|leaf| !held.contains(&leaf));
        let missing: Vec<BlockRef> =
            list.iter().zip(&expected).filter(|(_, leaf)| lacks(leaf)).map(|(&block, _)| block).collect();
        let mut twice: Vec<BlockRef> = Vec::new();
        for &part in contents.twice.iter().take(4 * Mismatch::SHOWN) {
            let mut at = part;
            while let Node::Combined(left, _) = self.values.node(at) {
                at = self.values.taken(left, at.times);
            }
            if let Some(leaf) = self.leaf(at) {
                let found = block(self.place(leaf));
                if !twice.contains(&found) {
                    twice.push(found);
                }
            }
        }
        let foreign = contents.leaves.iter().filter(|leaf| !wanted.contains(leaf));
        Broken {
            clause,
            place,
            last,
            holds: match self.leaf(value) {
                Some(leaf) => Holds::One(self.place(leaf)),
                None => Holds::Many,
            },
            missing_count: missing.len() as u32,
            missing: missing.into_iter().take(Mismatch::SHOWN).collect(),
            twice_count: twice.len() as u32,
            twice: twice.into_iter().take(Mismatch::SHOWN).collect(),
            foreign: foreign.take(Mismatch::SHOWN).map(|&leaf| self.place(leaf)).collect(),
        }
    }

    /// Every standing rank must have heard of all ranks.
    fn synchronised(&mut self) -> Result<(), Vec<Fault>> {
        let trace = &self.quotient.trace;
        let signal = trace.buffers.iter().position(|b| b.kind == BufferKind::Signal);
        for rank in (0..self.quotient.action.step).map(RankId) {
            let place = signal.map(|b| Place { buffer: plan::ids::BufferId::new(b), rank, cell: 0 });
            let heard = match place.and_then(|place| self.last(place)) {
                None => vec![rank],
                Some(value) => {
                    let leaves = self.contents(value, usize::MAX)?.leaves;
                    let mut heard: Vec<RankId> =
                        leaves.into_iter().map(|leaf| self.place(leaf).rank).collect();
                    heard.sort_unstable();
                    heard
                }
            };
            if heard.len() != trace.ranks as usize {
                let missing = (0..trace.ranks).map(RankId).find(|r| heard.binary_search(r).is_err());
                let version =
                    place.map(|place| self.versions.last[self.versions.places.index(place) as usize]);
                let written = |v: &u32| *v != NOTHING && *v as usize >= self.versions.entries.len();
                return Err(self.fault(FaultKind::Unsynchronised {
                    rank,
                    missing: missing.unwrap_or(rank),
                    missing_count: trace.ranks - heard.len() as u32,
                    last: version.filter(written).map(|v| self.versions.made(v).0),
                }));
            }
        }
        Ok(())
    }

    /// Whether all that are promised the same hold the same expression.
    fn same_bits(&self) -> Option<bool> {
        let (trace, action) = (&self.quotient.trace, &self.quotient.action);
        let lists = &trace.promise.lists;
        // Finding lists that are rotations of each other takes so many steps.
        let cost: u64 = lists.iter().filter(|list| list.len() > 1).map(|list| list.len() as u64).sum();
        let closed = |list: &[BlockRef], times: u32| {
            let mut next: Vec<BlockRef> = list.iter().map(|&block| taken(action, block, times)).collect();
            next.sort_unstable();
            next
        };
        let all_closed = lists.iter().all(|list| list.len() == 1 || closed(list, 1) == *list);
        if !all_closed && cost.saturating_mul(action.order.into()) > 4_000_000 {
            return None;
        }
        // Of each list: the first of those that are its rotations, and how many times that one is taken round; and its
        // period.
        let mut known: FxHashMap<Vec<BlockRef>, (u32, u32)> = FxHashMap::default();
        let mut class = Vec::with_capacity(lists.len());
        let mut period = Vec::with_capacity(lists.len());
        for (l, list) in lists.iter().enumerate() {
            if list.len() == 1 {
                let (_, times) = action.home(list[0].rank);
                let home = taken(action, list[0], action.back(times));
                let (first, at) = *known.entry(vec![home]).or_insert((l as u32, times));
                class.push((first, action.sum(times, action.back(at))));
                period.push(action.order);
                continue;
            }
            let mut own = action.order;
            if let Some(&found) = known.get(list) {
                class.push(found);
                period.push(period[found.0 as usize]);
                continue;
            }
            for times in 0..action.order {
                let turned = closed(list, times);
                if times > 0 && turned == *list {
                    own = times;
                    break;
                }
                known.entry(turned).or_insert((l as u32, times));
            }
            class.push((l as u32, 0));
            period.push(own);
        }
        let mut same: Option<bool> = None;
        let mut judge = |here: Option<Value>, there: Option<Value>| {
            same = Some(same.unwrap_or(true) && here == there);
        };
        let turned = |place: BlockRef, i: u32, times: u32| {
            let from = self.cell(place, action.position(i, action.back(times)));
            self.last(from).map(|value| self.values.taken(value, times))
        };
        // By list that stands for its rotations: the clause that was met first.
        let mut met: FxHashMap<u32, (BlockRef, u32)> = FxHashMap::default();
        for clause in &trace.promise.clauses {
            let (first, times) = class[clause.list as usize];
            let own = period[first as usize];
            let back = action.back(times);
            let (place, at) = *met.entry(first).or_insert((clause.place, back));
            let again = (place, at) != (clause.place, back);
            for i in 0..trace.cells {
                // The same list at another rank: this one's own rotation, or that of a clause met before.
                if own < action.order {
                    let next = action.sum(back, own);
                    judge(turned(clause.place, i, back), turned(clause.place, i, next));
                }
                let elsewhere = action.rank(place.rank, at) != action.rank(clause.place.rank, back);
                if again && (elsewhere || own < action.order) {
                    judge(turned(place, i, at), turned(clause.place, i, back));
                }
            }
        }
        same
    }
}

/// The reads of a version, in the order folded.
fn reads<'v>(quotient: &Quotient, versions: &'v Versions, version: u32) -> &'v [Read] {
    let (id, cell) = versions.made(version);
    let arity = arity(&quotient.trace, &quotient.trace.moves[id.0 as usize]);
    let first = versions.first_read[id.0 as usize] + cell * arity;
    &versions.reads[first as usize..][..arity as usize]
}

/// Every value that crosses ranks, and every promised one, must be the same in both forms.
fn forms_agree(
    quotient: &Quotient,
    (apart, disjoint): (&Versions, &[Option<Value>]),
    (together, same): (&Versions, &[Option<Value>]),
) -> Result<(), Vec<Fault>> {
    let trace = &quotient.trace;
    let held =
        |held: &[Option<Value>], read: Read| (held.get(read.version as usize).copied().flatten(), read.times);
    let differ = |slot: usize| held(disjoint, apart.reads[slot]) != held(same, together.reads[slot]);
    let mut sent = false;
    let mut first = None;
    for (m, mv) in trace.moves.iter().enumerate() {
        let arity = arity(trace, mv) as usize;
        let own = arity - mv.source_count as usize;
        for i in 0..mv.width as usize {
            for k in 0..arity {
                let slot = apart.first_read[m] as usize + i * arity + k;
                if !differ(slot) {
                    continue;
                }
                let crosses = k >= own && trace.sources(mv)[k - own].rank != mv.to.rank;
                sent |= crosses;
                first.get_or_insert((m, i as u32, slot));
            }
        }
    }
    let promised = |versions: &Versions, held: &[Option<Value>], block: BlockRef, i: u32| {
        let place = Place { buffer: block.buffer, rank: block.rank, cell: block.block * trace.cells + i };
        let version = versions.last[versions.places.index(place) as usize];
        held.get(version as usize).copied().flatten()
    };
    let kept = || {
        let clauses = trace.promise.clauses.iter();
        clauses
            .flat_map(|clause| (0..trace.cells).map(move |i| (clause.place, i)))
            .all(|(block, i)| promised(apart, disjoint, block, i) == promised(together, same, block, i))
    };
    if !sent && kept() {
        return Ok(());
    }
    let Some((m, _, slot)) = first else { return Ok(()) };
    let read = together.reads[slot];
    let written = read.version != NOTHING && read.version as usize >= together.entries.len();
    let (place, overwritten) = if written {
        let (id, cell) = together.made(read.version);
        (trace.moves[id.0 as usize].to.plus(cell), Some(id))
    } else {
        let place = together.entries.get(read.version as usize);
        (place.map_or(trace.moves[m].to, |&place| together.places.place(place)), None)
    };
    let place = quotient.action.place(place, read.times);
    let kind = FaultKind::FormsDiffer { mv: MoveId(m as u32), place, overwritten };
    Err(vec![Fault { form: Form::Same, kind, others: 0 }])
}

/// Faults of one kind are one.
struct Faults {
    form: Form,
    list: Vec<Fault>,
}

impl Faults {
    fn note(&mut self, kind: FaultKind) {
        match self.list.iter_mut().find(|known| known.kind.code() == kind.code()) {
            Some(known) => known.others += u32::from(known.kind.blamed() != kind.blamed()),
            None => self.list.push(Fault { form: self.form, kind, others: 0 }),
        }
    }
}
