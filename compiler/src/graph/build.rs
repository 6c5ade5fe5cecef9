//! From moves to versions, with what each version holds.
//!
//! In: a trace whose places exist. Out: the graph, or every fault that makes the program meaningless. The one hard
//! idea: a move alone and the moves of a `step` are the same thing, a group. All sources of a group are read first,
//! then its moves write in order; a `+=` finds its destination as the group has left it so far. After a fault the
//! walk goes on with a poison value, which makes no further fault.

use std::ops::Range;
use std::sync::Arc;

use grammar::span::Span;
use plan::collective::BlockRef;
use plan::ids::{BufferId, RankId};
use plan::values::{ValueId, Values};
use rustc_hash::{FxHashMap, FxHashSet};

use super::fault::{Counted, Fault, FaultKind};
use super::places::PlaceTable;
use super::{ChunkGraph, Form, NOTHING, Version, VersionId};
use crate::limits::Limits;
use crate::trace::{BufferKind, Move, MoveId, MoveKind, Place, Trace};

/// How many faults are reported at most.
const FAULTS: usize = 20;

/// Follows the moves of a trace, within the default limits.
pub fn build(trace: &Trace, form: Form) -> Result<ChunkGraph, Vec<Fault>> {
    build_within(trace, form, &Limits::default())
}

/// Follows the moves of a trace. The cells that moves read and write are counted before memory is taken: about ten
/// bytes for each of them.
pub fn build_within(trace: &Trace, form: Form, limits: &Limits) -> Result<ChunkGraph, Vec<Fault>> {
    let too_large = |count, limit, what| {
        let kind = FaultKind::TooLarge { count, limit, what };
        vec![Fault { form, kind, others: 0 }]
    };
    let (writes, reads) = trace.moves.iter().fold((0u64, 0u64), |(writes, reads), mv| {
        (writes + u64::from(mv.width), reads + u64::from(mv.width) * u64::from(arity(trace, mv)))
    });
    let limit = limits.cell_moves().min(u64::from(NOTHING.0) - 1);
    if writes + reads > limit {
        return Err(too_large(writes + reads, limit, Counted::CellMoves));
    }
    let limit = u64::from(NOTHING.0) - 1 - writes;
    let places = match PlaceTable::new(trace, form) {
        Ok(places) if places.len() as u64 <= limit => places,
        Ok(places) => return Err(too_large(places.len() as u64, limit, Counted::Places)),
        Err(count) => return Err(too_large(count, limit, Counted::Places)),
    };
    let mut builder = Builder {
        trace,
        faults: Faults::new(form),
        graph: ChunkGraph {
            form,
            values: Arc::default(),
            last: vec![NOTHING; places.len()],
            // Room is no memory until it is written to; there are at most as many entry values as places.
            versions: Vec::with_capacity(places.len() + writes as usize),
            places,
            entries: 0,
            written: Vec::with_capacity(trace.moves.len()),
            first_read: Vec::with_capacity(trace.moves.len()),
            reads: Vec::with_capacity(reads as usize),
        },
        values: Values::default(),
        poison: None,
        operands: Vec::new(),
    };
    builder.entry_values();
    let mut start = 0;
    while start < trace.moves.len() {
        let end = group_end(&trace.moves, start);
        builder.group(start..end);
        start = end;
    }
    match builder.faults.list {
        faults if faults.is_empty() => Ok(ChunkGraph { values: Arc::new(builder.values), ..builder.graph }),
        faults => Err(faults),
    }
}

/// How many versions each cell of a move reads: the destination counts if it is the left operand.
pub fn arity(trace: &Trace, mv: &Move) -> u32 {
    mv.source_count + u32::from(adds(trace, mv))
}

/// Whether the destination's old version is an operand: `+=`, and every signal (it is a union).
pub fn adds(trace: &Trace, mv: &Move) -> bool {
    mv.kind == MoveKind::Combine || trace.buffer(mv.to).kind == BufferKind::Signal
}

/// One past the last move that reads and writes together with move `start`.
fn group_end(moves: &[Move], start: usize) -> usize {
    match moves[start].step {
        0 => start + 1,
        step => start + moves[start..].iter().take_while(|mv| mv.step == step).count(),
    }
}

struct Builder<'a> {
    trace: &'a Trace,
    /// All but its values.
    graph: ChunkGraph,
    values: Values,
    faults: Faults,
    /// Made when first needed.
    poison: Option<ValueId>,
    /// Values of the cell at hand, kept to save allocations.
    operands: Vec<ValueId>,
}

impl Builder<'_> {
    /// Entry versions, in the order of place indices; value i is version i's.
    fn entry_values(&mut self) {
        let trace = self.trace;
        let named = named_blocks(trace);
        for (b, buffer) in trace.buffers.iter().enumerate() {
            for r in 0..trace.ranks {
                let (buffer_id, rank) = (BufferId::new(b), RankId(r));
                if buffer.kind == BufferKind::Signal {
                    self.entry(Place { buffer: buffer_id, rank, cell: 0 });
                    continue;
                }
                for block in 0..if buffer.at.holds(rank) { buffer.blocks } else { 0 } {
                    let has = match buffer.kind {
                        BufferKind::In => true,
                        BufferKind::Inout => named.contains(&BlockRef { buffer: buffer_id, rank, block }),
                        _ => false,
                    };
                    for i in 0..if has { trace.cells } else { 0 } {
                        self.entry(Place { buffer: buffer_id, rank, cell: block * trace.cells + i });
                    }
                }
            }
        }
        self.graph.entries = self.graph.versions.len() as u32;
    }

    fn entry(&mut self, place: Place) {
        let index = self.graph.places.index(place);
        if self.graph.last[index as usize] == NOTHING {
            let value = self.values.leaf(index, place.cell % self.trace.cells);
            self.write(index, value);
        }
    }

    fn group(&mut self, moves: Range<usize>) {
        for m in moves.clone() {
            self.read_sources(m);
        }
        for m in moves.clone() {
            self.write_cells(m, moves.start);
        }
    }

    fn read_sources(&mut self, m: usize) {
        let (trace, graph) = (self.trace, &mut self.graph);
        let mv = &trace.moves[m];
        let first = graph.reads.len();
        graph.first_read.push(first as u32);
        let own = usize::from(adds(trace, mv));
        let sources = trace.sources(mv);
        let arity = own + sources.len();
        graph.reads.resize(first + mv.width as usize * arity, NOTHING);
        for (k, &source) in sources.iter().enumerate() {
            for i in 0..mv.width {
                let version = graph.last[graph.places.index(source.plus(i)) as usize];
                if version == NOTHING {
                    let kind = FaultKind::NothingWritten { mv: MoveId(m as u32), place: source.plus(i) };
                    self.faults.note(trace, kind);
                }
                graph.reads[first + i as usize * arity + own + k] = version;
            }
        }
    }

    fn write_cells(&mut self, m: usize, group: usize) {
        let trace = self.trace;
        let (mv, id) = (&trace.moves[m], MoveId(m as u32));
        let kind = trace.buffer(mv.to).kind;
        let arity = arity(trace, mv) as usize;
        let adds = adds(trace, mv);
        let in_step = trace.moves[group].step != 0;
        let of_user = is_of_user(kind);
        self.graph.written.push(VersionId(self.graph.versions.len() as u32));
        let aligned = of_user && self.is_aligned(mv);
        if kind == BufferKind::In {
            self.faults.note(trace, FaultKind::InWritten { mv: id, place: mv.to });
        }
        for i in 0..mv.width {
            let index = self.graph.places.index(mv.to.plus(i));
            let first = self.graph.first_read[m] as usize + i as usize * arity;
            let before = self.graph.last[index as usize];
            if adds {
                self.graph.reads[first] = before;
                if before == NOTHING {
                    self.faults.note(trace, FaultKind::CombineIntoNothing { mv: id, place: mv.to.plus(i) });
                }
            } else if self.copies_itself(mv, i, index) {
                let value = self.value(self.graph.reads[first]);
                self.graph.versions.push(Version { place: index, value });
                continue;
            }
            if in_step {
                self.check_conflict(id, mv.to.plus(i), before, group);
            }
            let aligned = aligned && self.faults.list.is_empty();
            let value = self.combined(id, i, first..first + arity, aligned);
            if of_user && !aligned {
                self.check_position(id, i, value);
            }
            self.write(index, value);
        }
    }

    /// A copy to itself, through a binding or a form's overlap: it does nothing.
    fn copies_itself(&self, mv: &Move, i: u32, index: u32) -> bool {
        matches!(mv.kind, MoveKind::Copy | MoveKind::Multicast)
            && self.graph.places.index(self.trace.sources(mv)[0].plus(i)) == index
    }

    /// Whether all cells of a move into a user buffer come from the same position of user buffers. Without a fault so far
    /// these hold only pieces of their own position: nothing needs be looked up.
    fn is_aligned(&self, mv: &Move) -> bool {
        let trace = self.trace;
        let position = mv.to.cell % trace.cells;
        let same =
            |source: &Place| is_of_user(trace.buffer(*source).kind) && source.cell % trace.cells == position;
        trace.sources(mv).iter().all(same)
    }

    /// What cell `i` of a move leaves behind. `aligned`: all operands are known to be pieces of one position.
    #[inline]
    fn combined(&mut self, id: MoveId, i: u32, reads: Range<usize>, aligned: bool) -> ValueId {
        // Nearly all: a copy, or a sum of two of the same position.
        match self.graph.reads[reads.clone()] {
            [one] if one != NOTHING => return self.graph.version(one).value,
            [left, right] if left != NOTHING && right != NOTHING => {
                let [left, right] = [left, right].map(|version| self.graph.version(version).value);
                let poisoned = self.poison.is_some_and(|poison| left == poison || right == poison);
                let values = &mut self.values;
                if !poisoned && (aligned || values.class(left) == values.class(right)) {
                    return values.combine(left, right, true);
                }
            }
            _ => {}
        }
        self.combined_of_many(id, i, reads)
    }

    fn combined_of_many(&mut self, id: MoveId, i: u32, reads: Range<usize>) -> ValueId {
        let mut operands = std::mem::take(&mut self.operands);
        operands.clear();
        for r in reads {
            operands.push(self.value(self.graph.reads[r]));
        }
        let poisoned = operands.iter().copied().find(|&v| Some(v) == self.poison);
        let value = if let Some(poison) = poisoned {
            poison
        } else if let Some(odd) = self.odd_class(&operands) {
            self.unequal(id, i, odd, &operands);
            self.poison()
        } else {
            match self.values.fold(&operands, false) {
                Some(value) => value,
                None => self.poison(),
            }
        };
        self.operands = operands;
        value
    }

    /// The first operand of another class than the first.
    fn odd_class(&self, operands: &[ValueId]) -> Option<usize> {
        let values = &self.values;
        let first = values.class(*operands.first()?);
        operands.iter().position(|&v| values.class(v) != first)
    }
}

impl Builder<'_> {
    fn check_conflict(&mut self, id: MoveId, to: Place, before: VersionId, group: usize) {
        let trace = self.trace;
        let of_others = self.graph.written[group]..self.graph.written[id.0 as usize];
        if !of_others.contains(&before) {
            return;
        }
        let Some(first) = self.graph.writer(before) else { return };
        if !(adds(trace, &trace.moves[first.0 as usize]) && adds(trace, &trace.moves[id.0 as usize])) {
            self.faults.note(trace, FaultKind::ConflictingWrites { first, second: id, place: to });
        }
    }

    /// The caller's buffers take only pieces of their own position in a block.
    #[inline]
    fn check_position(&mut self, id: MoveId, i: u32, value: ValueId) {
        let trace = self.trace;
        let mv = &trace.moves[id.0 as usize];
        let place = mv.to.plus(i);
        let position = self.values.class(value);
        if Some(value) != self.poison && position != place.cell % trace.cells {
            let source = trace.sources(mv)[0].plus(i);
            self.faults.note(trace, FaultKind::WrongPosition { mv: id, place, source, position });
        }
    }

    fn unequal(&mut self, id: MoveId, i: u32, odd: usize, operands: &[ValueId]) {
        let trace = self.trace;
        let mv = &trace.moves[id.0 as usize];
        let place = |operand: usize| match (adds(trace, mv), operand) {
            (true, 0) => mv.to.plus(i),
            (adds, _) => trace.sources(mv)[operand - usize::from(adds)].plus(i),
        };
        let class = |operand: usize| self.values.class(operands[operand]);
        let kind = FaultKind::UnequalPieces {
            mv: id,
            left: place(0),
            left_position: class(0),
            right: place(odd),
            right_position: class(odd),
        };
        self.faults.note(trace, kind);
    }

    fn value(&mut self, version: VersionId) -> ValueId {
        match version {
            NOTHING => self.poison(),
            VersionId(v) => self.graph.versions[v as usize].value,
        }
    }

    fn poison(&mut self) -> ValueId {
        let values = &mut self.values;
        *self.poison.get_or_insert_with(|| values.leaf(u32::MAX, u32::MAX))
    }

    fn write(&mut self, place: u32, value: ValueId) {
        self.graph.last[place as usize] = VersionId(self.graph.versions.len() as u32);
        self.graph.versions.push(Version { place, value });
    }
}

/// Whether it is the caller's.
fn is_of_user(kind: BufferKind) -> bool {
    matches!(kind, BufferKind::Out | BufferKind::Inout | BufferKind::In)
}

/// Blocks of `inout` buffers that some right-hand side of the promise names.
fn named_blocks(trace: &Trace) -> FxHashSet<BlockRef> {
    let is_inout = |b: &&BlockRef| trace.buffers[b.buffer.index()].kind == BufferKind::Inout;
    trace.promise.lists.iter().flatten().filter(is_inout).copied().collect()
}

/// The faults so far; those of one kind from one line are one fault.
struct Faults {
    form: Form,
    list: Vec<Fault>,
    /// Where a fault of this kind from this text stands in `list`, and the move noted last.
    known: FxHashMap<(Span, &'static str), (usize, MoveId)>,
}

impl Faults {
    fn new(form: Form) -> Faults {
        Faults { form, list: Vec::new(), known: FxHashMap::default() }
    }

    fn note(&mut self, trace: &Trace, kind: FaultKind) {
        let Some(mv) = kind.blamed() else { return };
        let key = (trace.origin(mv).span, kind.code());
        match self.known.get_mut(&key) {
            Some((_, last)) if *last == mv => {}
            Some((at, last)) => {
                *last = mv;
                self.list[*at].others += 1;
            }
            None if self.list.len() < FAULTS => {
                self.known.insert(key, (self.list.len(), mv));
                self.list.push(Fault { form: self.form, kind, others: 0 });
            }
            None => {}
        }
    }
}
