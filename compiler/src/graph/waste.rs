//! Moves that do no good: what they write is never used, or was there already.
//!
//! In: a trace that keeps its promise, and its graph. Out: one warning per line of the source. The one hard idea is
//! to be silent when in doubt. A version is of use if some move reads it, if it is the last one of a promised place,
//! or if its overwriter writes the same again (then that one is told). A move is told only if no cell of it is of
//! use; a multicast only if no copy of it is; moves inside a `run` only if the whole `run` does no good: its callee has
//! been judged alone, and a general one may do more than this caller needs. (There a move is of no use if nothing
//! promised depends on it: what is read only by what is of no use itself counts.) Signals are never told.

use std::ops::Range;

use super::promise::promised;
use super::{ChunkGraph, VersionId, arity};
use crate::trace::{BufferKind, Move, MoveId, MoveKind, Trace};

/// Moves of one line of the source (or one `run`) that do no good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Why.
    pub kind: WarningKind,
    /// One of them, the first.
    pub example: MoveId,
    /// How many there are.
    pub count: u32,
    /// How many moves this line makes in all.
    pub of: u32,
}

/// Why a move does no good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarningKind {
    /// Nobody reads what it writes, and it is not promised.
    NeverRead {
        /// What overwrites it.
        overwritten: Option<MoveId>,
    },
    /// The place held the same value before.
    WastedTransfer {
        /// What had written it there; none: it was there at entry.
        already: Option<MoveId>,
    },
}

impl WarningKind {
    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            WarningKind::NeverRead { .. } => "coll::never_read",
            WarningKind::WastedTransfer { .. } => "coll::wasted_transfer",
        }
    }
}

/// What is known of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Some move reads it, or it is promised.
    Used,
    /// Nobody cares.
    Unused,
    /// It was there already.
    Repeated,
    /// A copy onto itself, which does nothing.
    Idle,
}

/// Stands for no version: options would take twice the memory, and memory is the time here.
const NONE: VersionId = VersionId(u32::MAX);

/// What moves of one origin come to.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    moves: u32,
    unused: u32,
    repeated: u32,
    first_unused: Option<MoveId>,
    first_repeated: Option<MoveId>,
}

/// Finds the moves that do no good.
pub(super) fn waste(trace: &Trace, graph: &ChunkGraph) -> Vec<Warning> {
    // One rank alone transfers nothing, and what is written for many has little to do there.
    if trace.ranks == 1 {
        return Vec::new();
    }
    let (uses, previous) = uses(trace, graph);
    let mut live = None;
    let mut tallies = vec![Tally::default(); trace.origins.len()];
    let mut start = 0;
    while start < trace.moves.len() {
        let end = multicast_end(trace, start);
        let within_run = trace.origins[trace.moves[start].origin.0 as usize].parent.is_some();
        let dead =
            within_run && (start..end).all(|m| !live.get_or_insert_with(|| live_moves(trace, graph))[m]);
        let told = if dead { Some(Use::Unused) } else { of_no_use(trace, graph, &uses, start..end) };
        for m in start..end {
            let tally = &mut tallies[outermost(trace, &trace.moves[m])];
            tally.moves += 1;
            match told {
                Some(Use::Unused) => {
                    tally.unused += 1;
                    tally.first_unused.get_or_insert(MoveId(m as u32));
                }
                Some(Use::Repeated) => {
                    tally.repeated += 1;
                    tally.first_repeated.get_or_insert(MoveId(m as u32));
                }
                _ => {}
            }
        }
        start = end;
    }
    let mut warnings = Vec::new();
    for tally in tallies {
        let of = tally.moves;
        let within_run = |mv: MoveId| trace.origin(mv).parent.is_some();
        let first = tally.first_unused.or(tally.first_repeated);
        if first.is_some_and(within_run) && tally.unused + tally.repeated < of {
            continue;
        }
        if let Some(example) = tally.first_unused {
            let kind =
                WarningKind::NeverRead { overwritten: overwriter(graph, &uses, &previous, trace, example) };
            warnings.push(Warning { kind, example, count: tally.unused, of });
        }
        if let Some(example) = tally.first_repeated {
            let before = previous[graph.written(example, 0).0 as usize];
            let kind = WarningKind::WastedTransfer { already: graph.writer(before) };
            warnings.push(Warning { kind, example, count: tally.repeated, of });
        }
    }
    warnings.sort_by_key(|w| (trace.origin(w.example).span, w.example));
    warnings
}

/// How each version is used, and the version of the same place before it.
fn uses(trace: &Trace, graph: &ChunkGraph) -> (Vec<Use>, Vec<VersionId>) {
    let mut uses = vec![Use::Unused; graph.versions.len()];
    let mut previous = vec![NONE; graph.versions.len()];
    let mut current: Vec<VersionId> = vec![NONE; graph.places.len()];
    for (v, entry) in graph.versions[..graph.entries as usize].iter().enumerate() {
        current[entry.place as usize] = VersionId(v as u32);
    }
    for (m, mv) in trace.moves.iter().enumerate() {
        let (id, arity) = (MoveId(m as u32), arity(trace, mv));
        for i in 0..mv.width {
            let version = graph.written(id, i);
            if graph.idle(trace, id, i) {
                uses[version.0 as usize] = Use::Idle;
                continue;
            }
            graph.read(id, i, arity).iter().for_each(|read| uses[read.0 as usize] = Use::Used);
            let place = graph.version(version).place;
            previous[version.0 as usize] = std::mem::replace(&mut current[place as usize], version);
        }
    }
    for last in promised(trace, graph) {
        uses[last.0 as usize] = Use::Used;
    }
    for v in (0..graph.versions.len()).rev() {
        let before = previous[v];
        if before != NONE && graph.version(before).value == graph.versions[v].value {
            if uses[v] == Use::Used {
                uses[before.0 as usize] = Use::Used;
            }
            uses[v] = Use::Repeated;
        }
    }
    (uses, previous)
}

/// Of each move: whether anything promised depends on what it writes. (Signals always count.)
fn live_moves(trace: &Trace, graph: &ChunkGraph) -> Vec<bool> {
    let mut live = vec![false; graph.versions.len()];
    for last in promised(trace, graph) {
        live[last.0 as usize] = true;
    }
    let mut moves = vec![false; trace.moves.len()];
    for (m, mv) in trace.moves.iter().enumerate().rev() {
        let (id, arity) = (MoveId(m as u32), arity(trace, mv));
        let signal = trace.buffer(mv.to).kind == BufferKind::Signal;
        for i in 0..mv.width {
            if signal || live[graph.written(id, i).0 as usize] {
                moves[m] = true;
                // What is read was written before, so it has not been looked at yet.
                graph.read(id, i, arity).iter().for_each(|read| live[read.0 as usize] = true);
            }
        }
    }
    moves
}

/// One past the last copy of the multicast that begins at `start`, or past a move that is none.
fn multicast_end(trace: &Trace, start: usize) -> usize {
    let source = |mv: &Move| (mv.kind, mv.origin, trace.sources(mv)[0], mv.width);
    let first = &trace.moves[start];
    if first.kind != MoveKind::Multicast {
        return start + 1;
    }
    start + trace.moves[start..].iter().take_while(|mv| source(mv) == source(first)).count()
}

/// Why none of these moves is of use; none if some cell is, or may be.
fn of_no_use(trace: &Trace, graph: &ChunkGraph, uses: &[Use], moves: Range<usize>) -> Option<Use> {
    let mut told = Use::Repeated;
    for m in moves {
        let (mv, id) = (&trace.moves[m], MoveId(m as u32));
        if trace.buffer(mv.to).kind == BufferKind::Signal {
            return None;
        }
        for i in 0..mv.width {
            match uses[graph.written(id, i).0 as usize] {
                Use::Used | Use::Idle => return None,
                Use::Unused => told = Use::Unused,
                Use::Repeated => {}
            }
        }
    }
    Some(told)
}

/// The origin by which a move is counted: its own, or the outermost `run` that led to it.
fn outermost(trace: &Trace, mv: &Move) -> usize {
    let mut origin = mv.origin;
    while let Some(parent) = trace.origins[origin.0 as usize].parent {
        origin = parent;
    }
    origin.0 as usize
}

/// What overwrites the first unused cell of a move.
fn overwriter(
    graph: &ChunkGraph,
    uses: &[Use],
    previous: &[VersionId],
    trace: &Trace,
    mv: MoveId,
) -> Option<MoveId> {
    let first = graph.written(mv, 0).0;
    let width = trace.moves[mv.0 as usize].width;
    let unused = (first..first + width).find(|&v| uses[v as usize] == Use::Unused)?;
    let next = (unused as usize + 1..previous.len()).find(|&v| previous[v] == VersionId(unused))?;
    graph.writer(VersionId(next as u32))
}
