//! The versions of every place at the ranks that stand for all, and which of them each move reads.
//!
//! In: one move of each orbit, with its key. Out: for every operand the version it sees, as a version at a rank that
//! stands for others and how many times that is taken round; or moves whose order does not last. The one hard idea: who
//! touches a place of a standing rank? Its own moves, and every other rank's moves that read from it; and the latter are
//! the moves at hand, taken back until the rank they read from is the standing one. Sorted by key they are that place's
//! history. Two accesses of which one writes must keep their order wherever they are taken.

use plan::collective::BlockRef;
use plan::ids::{BufferId, RankId};
use rustc_hash::FxHashSet;

use super::Seen;
use super::action::Action;
use super::keys::{Keys, Moment};
use super::refusal::{Refusal, Why};
use crate::graph::{self, Fault, FaultKind, Form, adds, arity};
use crate::trace::{BufferKind, MoveId, MoveKind, Place, Trace};

/// No version.
pub(super) const NOTHING: u32 = u32::MAX;

/// How many faults are kept.
const FAULTS: usize = 20;

/// A version and how many times it is taken round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Read {
    pub(super) version: u32,
    pub(super) times: u32,
}

/// All versions at the ranks that stand for all.
#[derive(Debug)]
pub(super) struct Versions {
    pub(super) form: Form,
    pub(super) places: Places,
    /// Places of the entry versions, which are the first ones.
    pub(super) entries: Vec<u32>,
    /// By place: its entry version.
    pub(super) entry: Vec<u32>,
    /// By place: its last version.
    pub(super) last: Vec<u32>,
    /// By move: the version of its first cell.
    pub(super) written: Vec<u32>,
    /// By version behind the entries: its move, and its place.
    pub(super) writer: Vec<u32>,
    place: Vec<u32>,
    /// By move: where its reads start. For each cell, in the order folded.
    pub(super) first_read: Vec<u32>,
    pub(super) reads: Vec<Read>,
    pub(super) faults: Vec<Fault>,
}

/// Numbers the cells of the standing ranks.
#[derive(Debug)]
pub(super) struct Places {
    per_rank: u32,
    base: Vec<u32>,
    /// In place: the number that stands for each.
    shared: Vec<u32>,
}

impl Places {
    /// The cells of ranks `0..action.step`; `form` says whether overlapping ones share a number.
    pub(super) fn new(trace: &Trace, action: &Action, form: Form) -> Places {
        let mut base = Vec::with_capacity(trace.buffers.len());
        let mut per_rank = 0;
        for (buffer, turn) in trace.buffers.iter().zip(&action.buffers) {
            base.push(per_rank);
            per_rank += if buffer.kind == BufferKind::Signal { 1 } else { turn.count * turn.width };
        }
        let mut places = Places { per_rank, base, shared: Vec::new() };
        if form == Form::Same && !trace.inplace.is_empty() {
            places.shared = graph::shared(trace, per_rank * action.step, |place| places.own(place));
        }
        places
    }

    /// The number of a cell of a standing rank, overlaps apart.
    pub(super) fn own(&self, place: Place) -> u32 {
        place.rank.0 * self.per_rank + self.base[place.buffer.index()] + place.cell
    }

    /// The number of a cell of a standing rank.
    pub(super) fn index(&self, place: Place) -> u32 {
        let own = self.own(place);
        if self.shared.is_empty() { own } else { self.shared[own as usize] }
    }

    /// The cell of a number.
    pub(super) fn place(&self, index: u32) -> Place {
        let (rank, within) = (index / self.per_rank, index % self.per_rank);
        let buffer = self.base.partition_point(|&base| base <= within) - 1;
        // Buffers without cells share their base with the next one, which is the last that does not lie behind.
        Place { buffer: BufferId::new(buffer), rank: RankId(rank), cell: within - self.base[buffer] }
    }
}

/// One access to a place.
#[derive(Debug, Clone, Copy)]
struct Access {
    moment: Moment,
    /// A read: its number. A write: the version.
    what: u32,
}

/// Follows the moves, one of each orbit, in the order of their keys.
pub(super) fn follow(trace: &Trace, action: &Action, keys: &Keys, form: Form) -> Result<Versions, Refusal> {
    let places = Places::new(trace, action, form);
    let count = (places.per_rank * action.step) as usize;
    let mut versions = Versions {
        form,
        places,
        entries: Vec::new(),
        entry: vec![NOTHING; count],
        last: vec![NOTHING; count],
        written: Vec::with_capacity(trace.moves.len()),
        writer: Vec::new(),
        place: Vec::new(),
        first_read: Vec::with_capacity(trace.moves.len()),
        reads: Vec::new(),
        faults: Vec::new(),
    };
    versions.entry_values(trace, action);
    let accesses = versions.accesses(trace, action);
    let mut start = vec![0u32; count + 1];
    for (place, _) in &accesses {
        start[*place as usize + 1] += 1;
    }
    for i in 0..count {
        start[i + 1] += start[i];
    }
    let mut next = start.clone();
    let nobody = Moment { mv: 0, times: 0, writes: false };
    let mut sorted = vec![Access { moment: nobody, what: 0 }; accesses.len()];
    for (place, access) in accesses {
        let at = &mut next[place as usize];
        sorted[*at as usize] = access;
        *at += 1;
    }
    for place in 0..count {
        let history = &mut sorted[start[place] as usize..start[place + 1] as usize];
        history.sort_by(|a, b| keys.compare(a.moment, b.moment).0);
        versions.history(trace, keys, place, history)?;
    }
    Ok(versions)
}

impl Versions {
    fn entry_values(&mut self, trace: &Trace, action: &Action) {
        let is_inout = |b: &&BlockRef| trace.buffers[b.buffer.index()].kind == BufferKind::Inout;
        let home = |block: &BlockRef| {
            let cell = block.block * trace.cells;
            let (home, _) = action.home_of(Place { buffer: block.buffer, rank: block.rank, cell });
            BlockRef { buffer: home.buffer, rank: home.rank, block: home.cell / trace.cells }
        };
        let named: FxHashSet<BlockRef> =
            trace.promise.lists.iter().flatten().filter(is_inout).map(home).collect();
        for rank in (0..action.step).map(RankId) {
            for (b, buffer) in trace.buffers.iter().enumerate() {
                let id = BufferId::new(b);
                let blocks = if buffer.kind == BufferKind::Signal { 1 } else { buffer.blocks };
                for block in 0..blocks {
                    let has = match buffer.kind {
                        BufferKind::In | BufferKind::Signal => true,
                        BufferKind::Inout => named.contains(&BlockRef { buffer: id, rank, block }),
                        BufferKind::Out | BufferKind::Scratch => false,
                    };
                    let cells = if buffer.kind == BufferKind::Signal { 1 } else { trace.cells };
                    for i in 0..if has { cells } else { 0 } {
                        let place = Place { buffer: id, rank, cell: block * trace.cells + i };
                        let index = self.places.index(place) as usize;
                        if self.entry[index] == NOTHING {
                            self.entry[index] = self.entries.len() as u32;
                            self.entries.push(index as u32);
                        }
                    }
                }
            }
        }
    }

    /// All accesses to places of standing ranks, with their places; numbers reads and versions.
    fn accesses(&mut self, trace: &Trace, action: &Action) -> Vec<(u32, Access)> {
        let mut accesses = Vec::with_capacity(trace.sources.len() + trace.moves.len());
        for (m, mv) in trace.moves.iter().enumerate() {
            self.first_read.push(self.reads.len() as u32);
            self.written.push((self.entries.len() + self.writer.len()) as u32);
            let m = m as u32;
            for i in 0..mv.width {
                let to = self.places.index(mv.to.plus(i));
                if adds(trace, mv) {
                    self.reads.push(Read { version: NOTHING, times: 0 });
                }
                let mut itself = false;
                for &source in trace.sources(mv) {
                    let (home, times) = action.home_of(source.plus(i));
                    let place = self.places.index(home);
                    itself |= times == 0 && place == to;
                    let moment = Moment { mv: m, times: action.back(times), writes: false };
                    accesses.push((place, Access { moment, what: self.reads.len() as u32 }));
                    self.reads.push(Read { version: NOTHING, times });
                }
                let version = (self.entries.len() + self.writer.len()) as u32;
                self.writer.push(m);
                self.place.push(to);
                let copy = matches!(mv.kind, MoveKind::Copy | MoveKind::Multicast) && !adds(trace, mv);
                if !(itself && copy) {
                    let moment = Moment { mv: m, times: 0, writes: true };
                    accesses.push((to, Access { moment, what: version }));
                }
            }
        }
        accesses
    }

    /// Follows one place.
    fn history(
        &mut self,
        trace: &Trace,
        keys: &Keys,
        place: usize,
        history: &[Access],
    ) -> Result<(), Refusal> {
        let mut version = self.entry[place];
        let mut last: Option<Moment> = None;
        // Reads since the last write.
        let mut since = 0;
        for (at, access) in history.iter().enumerate() {
            let mv = &trace.moves[access.moment.mv as usize];
            if !access.moment.writes {
                lasting(trace, keys, last, access.moment)?;
                self.reads[access.what as usize].version = version;
                if version == NOTHING {
                    let (place, mv) = self.source(trace, access);
                    self.note(FaultKind::NothingWritten { mv, place });
                }
                continue;
            }
            let id = MoveId(access.moment.mv);
            let cell = access.what - self.written[access.moment.mv as usize];
            if trace.buffer(mv.to).kind == BufferKind::In {
                self.note(FaultKind::InWritten { mv: id, place: mv.to });
            }
            if adds(trace, mv) {
                let own = self.first_read[access.moment.mv as usize] + cell * arity(trace, mv);
                self.reads[own as usize].version = version;
                if version == NOTHING {
                    self.note(FaultKind::CombineIntoNothing { mv: id, place: mv.to.plus(cell) });
                }
            }
            if let Some(first) = last.filter(|&first| mv.step != 0 && keys.together(first, access.moment)) {
                let before = &trace.moves[first.mv as usize];
                if !(adds(trace, before) && adds(trace, mv)) && first.mv != access.moment.mv {
                    let first = MoveId(first.mv);
                    self.note(FaultKind::ConflictingWrites { first, second: id, place: mv.to.plus(cell) });
                }
            }
            lasting(trace, keys, last, access.moment)?;
            for read in &history[since..at] {
                lasting(trace, keys, Some(read.moment), access.moment)?;
            }
            (last, version, since) = (Some(access.moment), access.what, at + 1);
        }
        self.last[place] = version;
        Ok(())
    }

    /// What a read reads, where its move stands in the trace.
    fn source(&self, trace: &Trace, access: &Access) -> (Place, MoveId) {
        let mv = &trace.moves[access.moment.mv as usize];
        let arity = arity(trace, mv);
        let at = access.what - self.first_read[access.moment.mv as usize];
        let operand = at % arity - u32::from(adds(trace, mv));
        (trace.sources(mv)[operand as usize].plus(at / arity), MoveId(access.moment.mv))
    }

    /// Remembers a fault; those of one kind by one move are one.
    pub(super) fn note(&mut self, kind: FaultKind) {
        let same = |known: &Fault| known.kind.code() == kind.code();
        if let Some(known) = self.faults.iter_mut().find(|known| same(known)) {
            known.others += u32::from(known.kind.blamed() != kind.blamed());
        } else if self.faults.len() < FAULTS {
            self.faults.push(Fault { form: self.form, kind, others: 0 });
        }
    }

    /// A read in terms of places and moves.
    pub(super) fn seen(&self, read: Read) -> Option<Seen> {
        let Read { version, times } = read;
        if version == NOTHING {
            return None;
        }
        if let Some(&place) = self.entries.get(version as usize) {
            return Some(Seen { place: self.places.place(place), made: None, times });
        }
        let (mv, cell) = self.made(version);
        Some(Seen {
            place: self.places.place(self.place[version as usize - self.entries.len()]),
            made: Some((mv, cell)),
            times,
        })
    }

    /// Where a version stands: its move and which of its cells.
    pub(super) fn made(&self, version: u32) -> (MoveId, u32) {
        let mv = self.writer[version as usize - self.entries.len()];
        (MoveId(mv), version - self.written[mv as usize])
    }
}

/// Two accesses, one of which writes, must come in this order wherever they are taken.
fn lasting(trace: &Trace, keys: &Keys, first: Option<Moment>, second: Moment) -> Result<(), Refusal> {
    let Some(first) = first else { return Ok(()) };
    let (order, lasting) = keys.compare(first, second);
    debug_assert!(order.is_le(), "they are sorted");
    if lasting {
        return Ok(());
    }
    let span = |mv: u32| trace.origin(MoveId(mv)).span;
    Err(Refusal { span: span(second.mv), why: Why::Order { other: span(first.mv) } })
}
