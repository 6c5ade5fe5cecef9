//! Random right programs made of what an optimiser feeds on: relays through scratch, sums into one place, local copies
//! of what was received, values that many read at many times, swaps, runs of cells from different makers, values that
//! are overwritten after they were sent.
//!
//! In: bytes, one row for each pattern. Out: a trace that promises what its buffers hold in the end. A row that makes
//! no sense where it stands is left out, so rows can be dropped one by one: that is how a failing case shrinks.
//!
//! The one hard idea: the program is followed by hand while it is made. Every cell holds its position in its block and
//! how often each entry block is in it; that is enough to draw moves that are legal and to know what may be promised.

use std::collections::{BTreeMap, BTreeSet};

use plan::collective::{BlockRef, Clause};
use plan::ids::{BufferId, RankId};
use proptest::prelude::{Strategy, any};
use rcc_compiler::trace::{BufferKind, Move, MoveKind, Origin, OriginId, Place};

use crate::laws::Case;
use crate::traces::{Builder, at, block};

/// Programs of up to five ranks and three cells.
pub(crate) fn fed() -> impl Strategy<Value = Case> {
    let rows = proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..14), 0..14);
    (any::<[u8; 4]>(), rows).prop_map(|(shape, rows)| Case(program(shape, &rows)))
}

/// Choices out of a row of bytes; where it ends, the first of everything.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn below(&mut self, n: usize) -> usize {
        usize::from(*self.0.next().unwrap_or(&0)) * n / 256
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        let at = self.below(all.len());
        all.get(at).copied()
    }
}

const X: u32 = 0;
const Y: u32 = 1;
const DATA: u32 = 2;
const KEEP: u32 = 3;
const T: u32 = 4;
const SIGNAL: u32 = 5;
/// Blocks of each buffer.
const BLOCKS: [u32; 6] = [2, 4, 1, 1, 3, 1];

/// Buffer, rank, block.
type Entry = (u32, u32, u32);
/// By buffer, rank and cell.
type Memory = BTreeMap<(u32, u32, u32), Cell>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Cell {
    position: u32,
    /// How often each entry block (buffer, rank, block) is in it.
    leaves: BTreeMap<Entry, u32>,
}

#[derive(Debug, Clone)]
struct Draft {
    kind: MoveKind,
    to: Place,
    sources: Vec<Place>,
    width: u32,
}

struct World {
    b: Builder,
    ranks: u32,
    cells: u32,
    memory: Memory,
    heard: Vec<BTreeSet<u32>>,
}

fn program(shape: [u8; 4], rows: &[Vec<u8>]) -> rcc_compiler::trace::Trace {
    let mut shape = Choices(shape.iter());
    let ranks = 1 + (shape.below(9) as u32).div_ceil(2);
    let cells = [1, 2, 1, 3][shape.below(4)];
    let kinds = [
        ("x", BufferKind::In),
        ("y", BufferKind::Out),
        ("data", BufferKind::Inout),
        ("keep", BufferKind::Out),
        ("t", BufferKind::Scratch),
        ("signal", BufferKind::Signal),
    ];
    let b = kinds
        .iter()
        .zip(BLOCKS)
        .fold(Builder::new(ranks, cells), |b, (&(name, kind), blocks)| b.buffer(name, kind, blocks));
    let overlaps = shape.below(3);
    let b = (0..ranks).fold(b, |b, rank| match overlaps {
        0 => b,
        // At some ranks only, at another place each.
        1 if rank % 2 == 1 => b,
        _ => b.overlap(rank, X, Y, rank % 3 * cells),
    });
    let mut world = World {
        b,
        ranks,
        cells,
        memory: BTreeMap::new(),
        heard: (0..ranks).map(|r| BTreeSet::from([r])).collect(),
    };
    for rank in 0..ranks {
        for (buffer, block) in [(X, 0), (X, 1), (DATA, 0)] {
            for i in 0..cells {
                let leaves = BTreeMap::from([((buffer, rank, block), 1)]);
                world.memory.insert((buffer, rank, block * cells + i), Cell { position: i, leaves });
            }
        }
    }
    for row in rows {
        let mut choices = Choices(row.iter());
        world.pattern(&mut choices);
    }
    world.hand_out();
    world.promise();
    world.b.trace
}

impl World {
    fn pattern(&mut self, c: &mut Choices) {
        match c.below(12) {
            0 => self.relay(c),
            1 => self.sums(c),
            2 => self.copies(c),
            3 => self.readers(c),
            4 => self.swap(c),
            5 => self.patchwork(c),
            6 => self.overwritten(c),
            7 => self.reduce(c),
            8 => self.multicast(c),
            9 => self.signals(c),
            10 => self.exchange(c),
            _ => self.any_move(c),
        }
    }

    /// From rank to rank through scratch, whole or cell by cell, and on into a user's buffer.
    fn relay(&mut self, c: &mut Choices) {
        let width = self.width(c);
        let Some(mut from) = self.defined(c, width, |_| true) else { return };
        let singly = c.below(3) == 0;
        for hop in 0..1 + c.below(4) {
            let rank = c.below(self.ranks as usize) as u32;
            let last = hop > 0 && c.below(3) == 0;
            let Some(to) = self.fitting(c, rank, from, width, |p| (p.buffer.0 == T) != last) else { return };
            let parts = if singly { width } else { 1 };
            for part in 0..parts {
                self.copy(to.plus(part), from.plus(part), width / parts);
            }
            from = to;
        }
    }

    /// Several `+=` into one place, one after the other or in a step.
    fn sums(&mut self, c: &mut Choices) {
        let width = self.width(c);
        let rank = c.below(self.ranks as usize) as u32;
        let writable = |p: Place| p.buffer.0 != X;
        let Some(into) = self.defined(c, width, |p| p.rank.0 == rank && writable(p)) else { return };
        let in_step = c.below(2) == 1;
        let mut drafts = Vec::new();
        let mut held = self.leaves(into, width);
        for _ in 0..1 + c.below(4) {
            let new = |w: &World, p: Place| w.leaves(p, width).is_disjoint(&held) && w.fits(p, into, width);
            let all: Vec<Place> =
                self.all(width).filter(|&p| self.is_defined(p, width) && new(self, p)).collect();
            let Some(from) = c.of(&all) else { break };
            held.extend(self.leaves(from, width));
            drafts.push(Draft { kind: MoveKind::Combine, to: into, sources: vec![from], width });
        }
        self.perform(&drafts, in_step);
        if c.below(2) == 1 {
            self.send_on(c, into, width);
        }
    }

    /// What was received is copied on within the rank.
    fn copies(&mut self, c: &mut Choices) {
        let width = self.width(c);
        let Some(from) = self.defined(c, width, |_| true) else { return };
        let rank = c.below(self.ranks as usize) as u32;
        let Some(mut here) = self.fitting(c, rank, from, width, |_| true) else { return };
        self.copy(here, from, width);
        for _ in 0..1 + c.below(3) {
            let Some(to) = self.fitting(c, rank, here, width, |_| true) else { return };
            self.copy(to, here, width);
            if c.below(2) == 1 {
                here = to;
            }
        }
    }

    /// Several ranks read one place, at different times.
    fn readers(&mut self, c: &mut Choices) {
        let width = self.width(c);
        let Some(from) = self.defined(c, width, |_| true) else { return };
        for _ in 0..1 + c.below(4) {
            self.send_on(c, from, width);
            if c.below(3) == 0 {
                self.any_move(c);
            }
        }
    }

    /// Two or three places change their values round, in one step.
    fn swap(&mut self, c: &mut Choices) {
        let width = self.width(c);
        let writable = |p: Place| p.buffer.0 == T || p.buffer.0 == DATA || p.buffer.0 == Y;
        let mut places = Vec::new();
        for _ in 0..2 + c.below(2) {
            let Some(place) = self.defined(c, width, writable) else { return };
            if places.iter().all(|&other| !overlap(place, other, width)) {
                places.push(place);
            }
        }
        let next = |i: usize| places[(i + 1) % places.len()];
        let drafts: Vec<Draft> = (0..places.len())
            .map(|i| Draft { kind: MoveKind::Copy, to: places[i], sources: vec![next(i)], width })
            .collect();
        self.perform(&drafts, true);
    }

    /// The cells of a block go different ways and meet again; then they travel as one.
    fn patchwork(&mut self, c: &mut Choices) {
        let width = self.cells;
        let Some(from) = self.defined(c, width, |p| p.cell % self.cells == 0) else { return };
        let home = c.below(self.ranks as usize) as u32;
        let meet = at(T, home, c.below(BLOCKS[T as usize] as usize) as u32 * self.cells);
        for i in 0..width {
            let by = at(T, c.below(self.ranks as usize) as u32, c.below(3) as u32 * self.cells + i);
            self.copy(by, from.plus(i), 1);
            if c.below(3) == 2 {
                let all: Vec<Place> = self.all(1).filter(|&p| self.is_defined(p, 1)).collect();
                let disjoint = |p: &Place| self.leaves(*p, 1).is_disjoint(&self.leaves(by, 1));
                let fresh: Vec<Place> = all.into_iter().filter(disjoint).collect();
                if let Some(more) = c.of(&fresh) {
                    let draft = Draft { kind: MoveKind::Combine, to: by, sources: vec![more], width: 1 };
                    self.perform(&[draft], false);
                }
            }
            self.copy(meet.plus(i), by, 1);
        }
        self.send_on(c, meet, width);
        self.send_on(c, meet, width);
    }

    /// A place is filled, sent, filled anew, sent again.
    fn overwritten(&mut self, c: &mut Choices) {
        let width = self.width(c);
        let rank = c.below(self.ranks as usize) as u32;
        let mut place = None;
        for _ in 0..2 + c.below(2) {
            let Some(from) = self.defined(c, width, |_| true) else { return };
            let to = place.or_else(|| self.fitting(c, rank, from, width, |p| p.buffer.0 == T));
            let Some(to) = to else { return };
            place = Some(to);
            self.copy(to, from, width);
            self.send_on(c, to, width);
        }
    }

    fn reduce(&mut self, c: &mut Choices) {
        let width = self.width(c);
        let Some(first) = self.defined(c, width, |_| true) else { return };
        let (mut sources, mut held) = (vec![first], self.leaves(first, width));
        for _ in 0..1 + c.below(4) {
            let new = |p: Place| self.leaves(p, width).is_disjoint(&held) && self.fits(p, first, width);
            let all: Vec<Place> = self.all(width).filter(|&p| self.is_defined(p, width) && new(p)).collect();
            let Some(from) = c.of(&all) else { break };
            held.extend(self.leaves(from, width));
            sources.push(from);
        }
        let rank = c.below(self.ranks as usize) as u32;
        let Some(to) = self.fitting(c, rank, first, width, |_| true) else { return };
        let kind = if sources.len() > 1 { MoveKind::Reduce } else { MoveKind::Copy };
        self.perform(&[Draft { kind, to, sources, width }], false);
        if c.below(2) == 1 {
            self.send_on(c, to, width);
        }
    }

    fn multicast(&mut self, c: &mut Choices) {
        let width = self.width(c);
        let Some(from) = self.defined(c, width, |_| true) else { return };
        let Some(to) = self.fitting(c, 0, from, width, |_| true) else { return };
        let all = (0..self.ranks).map(|rank| Place { rank: RankId(rank), ..to });
        let draft = |to| Draft { kind: MoveKind::Multicast, to, sources: vec![from], width };
        let drafts: Vec<Draft> = all.map(draft).collect();
        self.perform(&drafts, true);
    }

    fn signals(&mut self, c: &mut Choices) {
        let ranks = self.ranks as usize;
        let far = 1 + c.below(ranks.max(2) - 1);
        let draft = |r: usize| {
            let to = at(SIGNAL, ((r + far) % ranks) as u32, 0);
            Draft { kind: MoveKind::Copy, to, sources: vec![at(SIGNAL, r as u32, 0)], width: 1 }
        };
        let count = if c.below(2) == 0 { ranks } else { 1 + c.below(ranks) };
        let drafts: Vec<Draft> = (0..count).map(draft).collect();
        self.perform(&drafts, c.below(2) == 0);
    }

    /// Two ranks add what they have to what the other has, in one step; as in halving and doubling.
    fn exchange(&mut self, c: &mut Choices) {
        let width = self.width(c);
        let (p, q) = (c.below(self.ranks as usize) as u32, c.below(self.ranks as usize) as u32);
        let Some(place) = self.defined(c, width, |place| place.rank.0 == p && place.buffer.0 != X) else {
            return;
        };
        let other = Place { rank: RankId(q), ..place };
        let kind = if c.below(2) == 0 { MoveKind::Combine } else { MoveKind::Copy };
        let draft = |to, from| Draft { kind, to, sources: vec![from], width };
        if p != q {
            self.perform(&[draft(place, other), draft(other, place)], true);
        }
    }

    fn any_move(&mut self, c: &mut Choices) {
        let width = self.width(c);
        let Some(from) = self.defined(c, width, |_| true) else { return };
        self.send_on(c, from, width);
    }

    /// To some place of some rank.
    fn send_on(&mut self, c: &mut Choices, from: Place, width: u32) {
        let rank = c.below(self.ranks as usize) as u32;
        if let Some(to) = self.fitting(c, rank, from, width, |_| true) {
            self.copy(to, from, width);
        }
    }

    /// What lies in scratch in the end is copied to where it can be promised, as far as there is room.
    fn hand_out(&mut self) {
        for rank in 0..self.ranks {
            for b in 0..BLOCKS[T as usize] {
                let from = at(T, rank, b * self.cells);
                let once =
                    |i| self.cell(from.plus(i)).is_some_and(|cell| cell.leaves.values().all(|&n| n == 1));
                if (0..self.cells).all(once) {
                    let free = |p: &Place| self.cell(*p).is_none();
                    let mut to = (0..BLOCKS[Y as usize]).map(|b| at(Y, rank, b * self.cells)).filter(free);
                    if let Some(to) = to.next() {
                        self.copy(to, from, self.cells);
                    }
                }
            }
        }
    }

    /// Promises what the buffers hold. Entry values of `data` must be named by some list: those that are not are kept by
    /// a copy at the very beginning.
    fn promise(&mut self) {
        for rank in 0..self.ranks {
            for (buffer, b) in [(Y, 0), (Y, 1), (Y, 2), (Y, 3), (DATA, 0)] {
                let cell = |i| self.cell(at(buffer, rank, b * self.cells + i)).map(|cell| &cell.leaves);
                let Some(leaves) = cell(0) else { continue };
                if leaves.values().any(|&n| n > 1) || (1..self.cells).any(|i| cell(i) != Some(leaves)) {
                    continue;
                }
                let list: Vec<BlockRef> =
                    leaves.keys().map(|&(buffer, rank, b)| block(buffer, rank, b)).collect();
                self.ensure(block(buffer, rank, b), list);
            }
        }
        for rank in 0..self.ranks {
            let entry = block(DATA, rank, 0);
            if self.b.trace.promise.lists.iter().any(|list| list.contains(&entry)) {
                continue;
            }
            self.ensure(block(KEEP, rank, 0), vec![entry]);
            let (to, width) = (at(KEEP, rank, 0), self.cells);
            self.b.mv(MoveKind::Copy, to, &[at(DATA, rank, 0)], width);
            let first = self.b.trace.moves.pop().expect("just made");
            self.b.trace.moves.insert(0, first);
        }
        self.b.trace.promise_mut().synchronised =
            self.heard.iter().all(|heard| heard.len() == self.ranks as usize);
        // Every origin stands where its move stands, so that faults come in the order of moves.
        let span = self.b.trace.name_span;
        for (m, mv) in self.b.trace.moves.iter_mut().enumerate() {
            let start = m as u32 * 10;
            let origin = Origin { span: grammar::span::Span { start, end: start + 8, ..span }, parent: None };
            self.b.trace.origins[m] = origin;
            *mv = Move { origin: OriginId(m as u32), ..*mv };
        }
    }

    fn ensure(&mut self, place: BlockRef, list: Vec<BlockRef>) {
        let trace = &mut self.b.trace;
        let known = trace.promise.lists.iter().position(|l| *l == list);
        let list = known.unwrap_or_else(|| {
            trace.promise_mut().lists.push(list);
            trace.promise.lists.len() - 1
        });
        trace.promise_mut().clauses.push(Clause { place, list: list as u32 });
        trace.clause_spans.push(trace.name_span);
    }

    fn width(&self, c: &mut Choices) -> u32 {
        [self.cells, 1, self.cells, 2 * self.cells][c.below(4)]
    }

    /// All runs of `width` cells of data.
    fn all(&self, width: u32) -> impl Iterator<Item = Place> + use<> {
        let (ranks, cells) = (self.ranks, self.cells);
        [X, Y, DATA, T].into_iter().flat_map(move |buffer| {
            let starts = (BLOCKS[buffer as usize] * cells + 1).saturating_sub(width);
            (0..ranks).flat_map(move |rank| (0..starts).map(move |cell| at(buffer, rank, cell)))
        })
    }

    fn defined(&self, c: &mut Choices, width: u32, like: impl Fn(Place) -> bool) -> Option<Place> {
        let all: Vec<Place> = self.all(width).filter(|&p| self.is_defined(p, width) && like(p)).collect();
        c.of(&all)
    }

    /// A place at `rank` where what is in `from` may be put.
    fn fitting(
        &self,
        c: &mut Choices,
        rank: u32,
        from: Place,
        width: u32,
        like: impl Fn(Place) -> bool,
    ) -> Option<Place> {
        let may = |p: Place| p.rank.0 == rank && p.buffer.0 != X && like(p) && !overlap(p, from, width);
        let fits = |p: Place| p.buffer.0 == T || self.fits(from, p, width);
        let all: Vec<Place> = self.all(width).filter(|&p| may(p) && fits(p)).collect();
        c.of(&all)
    }

    /// Whether the values in `from` are of the positions that `to` has (or, if `to` is scratch, holds).
    fn fits(&self, from: Place, to: Place, width: u32) -> bool {
        (0..width).all(|i| {
            let held = self.cell(to.plus(i)).filter(|_| to.buffer.0 == T).map(|cell| cell.position);
            let wanted = held.unwrap_or((to.cell + i) % self.cells);
            self.cell(from.plus(i)).is_some_and(|cell| cell.position == wanted)
        })
    }

    fn cell(&self, p: Place) -> Option<&Cell> {
        self.memory.get(&(p.buffer.0, p.rank.0, p.cell))
    }

    fn is_defined(&self, p: Place, width: u32) -> bool {
        (0..width).all(|i| self.cell(p.plus(i)).is_some())
    }

    fn leaves(&self, p: Place, width: u32) -> BTreeSet<Entry> {
        (0..width).filter_map(|i| self.cell(p.plus(i))).flat_map(|cell| cell.leaves.keys().copied()).collect()
    }

    fn copy(&mut self, to: Place, from: Place, width: u32) {
        self.perform(&[Draft { kind: MoveKind::Copy, to, sources: vec![from], width }], false);
    }

    /// Makes the moves, if all of them are legal.
    fn perform(&mut self, drafts: &[Draft], in_step: bool) {
        let (memory, heard) = (self.memory.clone(), self.heard.clone());
        let mut wrote: BTreeMap<(u32, u32, u32), bool> = BTreeMap::new();
        for draft in drafts {
            let before = if in_step {
                (memory.clone(), heard.clone())
            } else {
                (self.memory.clone(), self.heard.clone())
            };
            if !self.follow(draft, &before, in_step.then_some(&mut wrote)) {
                (self.memory, self.heard) = (memory, heard);
                return;
            }
        }
        let make = |b: &mut Builder| {
            for draft in drafts {
                b.mv(draft.kind, draft.to, &draft.sources, draft.width);
            }
        };
        if in_step { self.b.step(make) } else { make(&mut self.b) }
    }

    fn follow(
        &mut self,
        draft: &Draft,
        (memory, heard): &(Memory, Vec<BTreeSet<u32>>),
        mut wrote: Option<&mut BTreeMap<(u32, u32, u32), bool>>,
    ) -> bool {
        if draft.to.buffer == BufferId(SIGNAL) {
            let told = heard[draft.sources[0].rank.index()].clone();
            self.heard[draft.to.rank.index()].extend(told);
            return true;
        }
        let key = |p: Place, i: u32| (p.buffer.0, p.rank.0, p.cell + i);
        for i in 0..draft.width {
            let to = key(draft.to, i);
            let plain = draft.kind != MoveKind::Combine;
            if plain && draft.sources.len() == 1 && key(draft.sources[0], i) == to {
                continue;
            }
            let mut operands: Vec<Cell> = Vec::new();
            if !plain {
                let Some(held) = self.memory.get(&to) else { return false };
                operands.push(held.clone());
            }
            for &source in &draft.sources {
                let Some(cell) = memory.get(&key(source, i)) else { return false };
                operands.push(cell.clone());
            }
            if let Some(wrote) = &mut wrote
                && let Some(other) = wrote.insert(to, plain)
                && (plain || other)
            {
                return false;
            }
            let position = operands[0].position;
            let wrong = draft.to.buffer.0 != T && to.2 % self.cells != position;
            if wrong || operands.iter().any(|operand| operand.position != position) {
                return false;
            }
            let mut leaves = BTreeMap::new();
            for (leaf, n) in operands.into_iter().flat_map(|operand| operand.leaves) {
                *leaves.entry(leaf).or_insert(0) += n;
            }
            self.memory.insert(to, Cell { position, leaves });
        }
        true
    }
}

fn overlap(a: Place, b: Place, width: u32) -> bool {
    (a.buffer, a.rank) == (b.buffer, b.rank) && a.cell.abs_diff(b.cell) < width
}
