//! Writes out: own moves scaled to cells, the moves of callees in place of each `run`.
//!
//! In: [`Walked`], the traces of all callees. Out: the trace's cells, buffers, moves, origins. The one hard idea: every
//! buffer is a line of cells. A callee's line lies on a contiguous part of ours, `f` of our cells to one of its cells, so
//! K (our cells per block) is the least common multiple of our chunks and of what makes every such `f` whole; all
//! else is one multiplication per place.

use grammar::span::Span;
use plan::ids::{BufferId, RankId};
use plan::plan::Presence;
use rustc_hash::FxHashMap;

use super::alias::Tracker;
use super::body::{Bind, NO_LANE, RunRecord, Walked, check_places};
use super::engine::{Engine, Watch};
use super::error::{Cut, FaultKind};
use super::halt::{Halt, Res};
use super::machine::gcd;
use super::run::start;
use super::scratch::scratch_layers;
use crate::check::checked::Algorithm;
use crate::trace::{Buffer, BufferKind, Move, MoveId, MoveKind, Origin, OriginId, Place, Trace};

/// What a move of the finished trace is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// A move of the algorithm itself.
    Own(u32),
    /// A move of a callee.
    Callee { run: u32, callee: u32, mv: MoveId },
    /// There is none.
    Nothing,
}

/// What flattening gives.
pub(crate) enum Flat {
    Done { steps: u32 },
    Found(Found),
}

/// Cells of ours per cell of the callee, for a run.
pub(super) type Factor = u32;

/// Writes the moves of `walked` into `trace`.
pub(crate) fn flatten(
    engine: &Engine<'_>,
    algorithm: &Algorithm,
    walked: Walked,
    trace: &mut Trace,
    watch: Watch,
) -> Res<Flat> {
    let cells = granularity(engine, algorithm, &walked, trace)?;
    let scale = cells / walked.chunks;
    trace.cells = cells;
    trace.buffers.extend(walked.scratch.iter().cloned());
    trace.origins = algorithm.sites.iter().map(|&span| Origin { span, parent: None }).collect();
    let mut steps = walked.steps;
    if walked.runs.is_empty() {
        if let Watch::Place(wanted) = watch {
            let own = (wanted as usize) < walked.moves.len();
            return Ok(Flat::Found(if own { Found::Own(wanted) } else { Found::Nothing }));
        }
        let signal = walked.signal;
        (trace.moves, trace.sources) = (walked.moves, walked.sources);
        rescale(&mut trace.moves, &mut trace.sources, scale, signal);
    } else {
        let layers = scratch_layers(engine, algorithm, &walked, trace)?;
        let found = write(engine, &walked, trace, &layers, watch, &mut steps)?;
        if let Watch::Place(_) = watch {
            return Ok(Flat::Found(found));
        }
    }
    prune(trace);
    Ok(Flat::Done { steps })
}

/// K: the least number of cells per block that cuts at every boundary of ours and of all callees.
fn granularity(engine: &Engine<'_>, algorithm: &Algorithm, walked: &Walked, trace: &Trace) -> Res<u32> {
    let mut cells = u64::from(walked.chunks);
    let chunks_span = walked.chunks_span.unwrap_or(algorithm.name_span);
    let mut cuts = vec![Cut { span: chunks_span, cells }];
    let blocks = trace.buffers.iter().chain(&walked.scratch).map(|b| u64::from(b.blocks)).sum::<u64>();
    let mut last: Option<RunRecord> = None;
    for run in &walked.runs {
        let same = |l: RunRecord| l.callee == run.callee && l.chunks == run.chunks && l.blocks == run.blocks;
        if last.replace(*run).is_some_and(same) {
            continue;
        }
        let callee = &engine.callees[run.callee as usize].trace;
        let own = u128::from(walked.chunks) * u128::from(run.blocks) * u128::from(callee.cells);
        // `chunks * K / own` must be whole.
        let need = own / u128::from(gcd((own % u128::from(run.chunks)) as u64, run.chunks.into()));
        let wider = lcm(cells, need);
        if wider == Some(cells) {
            continue;
        }
        let span = algorithm.sites[run.site as usize];
        cuts.push(Cut { span, cells: u64::try_from(need).unwrap_or(u64::MAX) });
        cells = wider.unwrap_or(u64::MAX);
        let blocks = blocks.max(1);
        check_places(engine.limits.places, trace.ranks, blocks, cells, cuts.clone(), span)?;
    }
    check_places(engine.limits.places, trace.ranks, blocks, cells, cuts, chunks_span)?;
    // Without any buffer nothing limits it.
    Ok(u32::try_from(cells).unwrap_or(u32::MAX))
}

fn lcm(a: u64, b: u128) -> Option<u64> {
    let common = gcd(a, (b % u128::from(a)) as u64);
    u64::try_from(u128::from(a / common).checked_mul(b)?).ok()
}

/// Cells of ours per cell of the callee.
pub(super) fn factor(engine: &Engine<'_>, walked: &Walked, run: &RunRecord, cells: u32) -> Factor {
    let callee = &engine.callees[run.callee as usize].trace;
    let ours = u128::from(run.chunks) * u128::from(cells);
    let theirs = u128::from(walked.chunks) * u128::from(run.blocks) * u128::from(callee.cells);
    debug_assert_eq!(ours % theirs, 0, "the granularity makes every factor whole");
    (ours / theirs) as Factor
}

/// Moves in own chunks become moves in cells.
fn rescale(moves: &mut [Move], sources: &mut [Place], scale: u32, signal: u32) {
    if scale == 1 {
        return;
    }
    for mv in moves.iter_mut().filter(|mv| mv.to.buffer.0 != signal) {
        mv.to.cell *= scale;
        mv.width *= scale;
    }
    for source in sources.iter_mut().filter(|source| source.buffer.0 != signal) {
        source.cell *= scale;
    }
}

/// What a buffer of a callee is here.
#[derive(Debug, Clone, Copy)]
enum Target {
    Bound(Bind),
    /// A scratch buffer.
    Whole(u32),
    Signal,
}

/// The output of one run.
struct Inline<'a> {
    walked: &'a Walked,
    ranks: &'a [u32],
    targets: Vec<Target>,
    factor: Factor,
    scale: u32,
    signal: u32,
}

impl Inline<'_> {
    #[inline]
    fn place(&self, place: Place) -> Place {
        let q = place.rank.index();
        let (buffer, cell) = match self.targets[place.buffer.index()] {
            Target::Bound(bind) => {
                (bind.buffer, start(&self.walked.starts, bind, q) * self.scale + place.cell * self.factor)
            }
            Target::Whole(buffer) => (buffer, place.cell * self.factor),
            Target::Signal => (self.signal, 0),
        };
        Place { buffer: BufferId(buffer), rank: RankId(self.ranks[q]), cell }
    }
}

/// Own moves and those of the runs, in order.
fn write(
    engine: &Engine<'_>,
    walked: &Walked,
    trace: &mut Trace,
    layers: &[u32],
    watch: Watch,
    steps: &mut u32,
) -> Res<Found> {
    let wanted = if let Watch::Place(wanted) = watch { Some(wanted) } else { None };
    let scale = trace.cells / walked.chunks;
    let callee = |run: &RunRecord| &engine.callees[run.callee as usize];
    let moves =
        walked.moves.len() + walked.runs.iter().map(|run| callee(run).trace.moves.len()).sum::<usize>();
    let sources =
        walked.sources.len() + walked.runs.iter().map(|run| callee(run).trace.sources.len()).sum::<usize>();
    trace.moves.reserve_exact(moves);
    trace.sources.reserve_exact(sources);
    // Scratch of callees stands where the walk numbered `signal`, so that moves behind.
    let signal = trace.buffers.len() as u32;
    let own_signal = walked.signal;
    let own = |place: Place| {
        if place.buffer.0 == own_signal {
            Place { buffer: BufferId(signal), ..place }
        } else {
            Place { cell: place.cell * scale, ..place }
        }
    };
    let mut origins: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let mut tracker = Tracker::default();
    let mut done = 0usize;
    for (i, run) in walked.runs.iter().map(Some).chain([None]).enumerate() {
        let until = run.map_or(walked.moves.len(), |run| run.at as usize);
        for mv in &walked.moves[done..until] {
            if wanted == Some(trace.moves.len() as u32) {
                return Ok(Found::Own(done as u32));
            }
            done += 1;
            let first_source = trace.sources.len() as u32;
            let sources = &walked.sources[mv.first_source as usize..][..mv.source_count as usize];
            trace.sources.extend(sources.iter().map(|&source| own(source)));
            let width = if mv.to.buffer.0 == own_signal { 1 } else { mv.width * scale };
            trace.moves.push(Move { to: own(mv.to), first_source, width, ..*mv });
        }
        let Some(run) = run else { break };
        let known = callee(run);
        let base = *origins.entry((run.site, run.callee)).or_insert_with(|| {
            let base = trace.origins.len() as u32;
            trace.origins.extend(known.trace.origins.iter().map(|origin| Origin {
                span: origin.span,
                parent: Some(origin.parent.map_or(OriginId(run.site), |parent| OriginId(parent.0 + base))),
            }));
            base
        });
        let inline = Inline {
            walked,
            ranks: &walked.ranks[run.first_rank as usize..][..run.ranks as usize],
            targets: targets(&known.trace, walked, run, layers[i]),
            factor: factor(engine, walked, run, trace.cells),
            scale,
            signal,
        };
        let end = Runner { engine, run, index: i as u32, base, steps: *steps, wanted };
        if let Some(found) = end.write(&inline, trace, &mut tracker)? {
            return Ok(found);
        }
        *steps += known.steps;
    }
    Ok(Found::Nothing)
}

fn targets(callee: &Trace, walked: &Walked, run: &RunRecord, first_scratch: u32) -> Vec<Target> {
    let mut scratch = first_scratch;
    let mut bind = run.first_bind as usize;
    let each = |buffer: &Buffer| match buffer.kind {
        BufferKind::In | BufferKind::Out | BufferKind::Inout => {
            bind += 1;
            Target::Bound(walked.binds[bind - 1])
        }
        BufferKind::Scratch => {
            scratch += 1;
            Target::Whole(scratch - 1)
        }
        BufferKind::Signal => Target::Signal,
    };
    callee.buffers.iter().map(each).collect()
}

/// Writes out one run.
struct Runner<'a, 'p> {
    engine: &'a Engine<'p>,
    run: &'a RunRecord,
    index: u32,
    /// Of the callee's origins.
    base: u32,
    /// Step numbers used so far.
    steps: u32,
    wanted: Option<u32>,
}

impl Runner<'_, '_> {
    fn write(&self, inline: &Inline<'_>, trace: &mut Trace, tracker: &mut Tracker) -> Res<Option<Found>> {
        let known = &self.engine.callees[self.run.callee as usize];
        let callee = &*known.trace;
        if self.run.alias {
            let region = |buffer: usize, q: usize| match inline.targets[buffer] {
                Target::Bound(bind) => {
                    let first = start(&inline.walked.starts, bind, q) * inline.scale;
                    Some((bind.buffer, first, bind.len * inline.scale))
                }
                _ => None,
            };
            let read_after_write =
                tracker.run(callee, inline.ranks.len(), region, |p| inline.place(p), inline.factor);
            if let Some(found) = read_after_write {
                let rank = inline.ranks[callee.sources[found.source as usize].rank.index()];
                let kind = FaultKind::Alias {
                    read: callee.buffer(callee.sources[found.source as usize]).name.clone(),
                    wrote: callee.buffer(callee.moves[found.writer as usize].to).name.clone(),
                    writer: callee.origins[callee.moves[found.writer as usize].origin.0 as usize].span,
                    run: trace.origins[self.run.site as usize].span,
                    rank,
                };
                return Err(self.blame(trace, found.reader, kind));
            }
        }
        for (i, mv) in callee.moves.iter().enumerate() {
            let to = inline.place(mv.to);
            let first_source = trace.sources.len() as u32;
            let mut itself = false;
            let width = if Some(mv.to.buffer) == known.signal { 1 } else { mv.width * inline.factor };
            for &source in callee.sources(mv) {
                let source = inline.place(source);
                if source.rank == to.rank && source.buffer == to.buffer {
                    if source.cell == to.cell {
                        itself = true;
                    } else if source.cell < to.cell + width && to.cell < source.cell + width {
                        let kind = FaultKind::Overlap {
                            to: describe(trace, to, width),
                            from: describe(trace, source, width),
                        };
                        return Err(self.blame(trace, i as u32, kind));
                    }
                }
                trace.sources.push(source);
            }
            if itself && mv.source_count == 1 {
                if mv.kind == MoveKind::Combine {
                    let kind = FaultKind::SelfMove { combine: true, place: describe(trace, to, width) };
                    return Err(self.blame(trace, i as u32, kind));
                }
                // A copy onto itself that arises only through bindings does nothing.
                trace.sources.truncate(first_source as usize);
                continue;
            }
            if self.wanted == Some(trace.moves.len() as u32) {
                let mv = MoveId(i as u32);
                return Ok(Some(Found::Callee { run: self.index, callee: self.run.callee, mv }));
            }
            let step = if mv.step == 0 { 0 } else { mv.step + self.steps };
            let origin = OriginId(mv.origin.0 + self.base);
            let lane = if mv.lane == NO_LANE { self.run.lane } else { mv.lane };
            trace.moves.push(Move { to, first_source, width, lane, step, origin, ..*mv });
        }
        Ok(None)
    }

    /// A fault of a move of the callee, with the callee's loop variables.
    #[cold]
    fn blame(&self, trace: &Trace, mv: u32, kind: FaultKind) -> Box<Halt> {
        let known = &self.engine.callees[self.run.callee as usize];
        let span = known.trace.origins[known.trace.moves[mv as usize].origin.0 as usize].span;
        let mut halt = Halt::fault(kind, span);
        let run: Span = trace.origins[self.run.site as usize].span;
        let frames = super::replay(self.engine.program, &known.key, self.engine.limits, MoveId(mv));
        let mut frames = frames.into_iter().rev();
        if let Some(frame) = frames.next() {
            halt.vars = frame.vars;
            halt.vars.reverse();
            halt.world = Some(frame.world);
            halt.runs.extend(frame.run);
        }
        halt.runs.extend(frames.filter_map(|frame| frame.run));
        halt.runs.push(run);
        halt
    }
}

/// A range of cells as a user might write it, blocks and cells.
#[cold]
fn describe(trace: &Trace, place: Place, width: u32) -> String {
    let buffer = trace.buffers.get(place.buffer.index());
    let (name, blocks) = buffer.map_or(("signal", 1), |b| (b.name.as_str(), b.blocks));
    let cells = trace.cells;
    let range = |from: u32, len: u32| {
        if len == 1 { format!("[{from}]") } else { format!("[{from}..{}]", from + len) }
    };
    let inside = place.cell % cells;
    let index = if u64::from(width) == u64::from(blocks) * u64::from(cells) {
        String::new()
    } else if blocks == 1 {
        range(place.cell, width)
    } else if inside == 0 && width.is_multiple_of(cells) {
        range(place.cell / cells, width / cells)
    } else {
        format!("[{}]{}", place.cell / cells, range(inside, width))
    };
    format!("{name}{index} @ {}", place.rank.0)
}

/// Removes scratch that no move touches, and adds `signal` if any does.
pub(crate) fn prune(trace: &mut Trace) {
    let mut used: Vec<bool> = trace.buffers.iter().map(|b| b.kind != BufferKind::Scratch).collect();
    used.push(false);
    for mv in &trace.moves {
        used[mv.to.buffer.index()] = true;
    }
    for source in &trace.sources {
        used[source.buffer.index()] = true;
    }
    if used.pop() == Some(true) {
        used.push(true);
        trace.buffers.push(Buffer {
            name: "signal".to_owned(),
            kind: BufferKind::Signal,
            blocks: 1,
            at: Presence::All,
            span: trace.name_span,
        });
    }
    if used.iter().all(|&used| used) {
        return;
    }
    let mut next = 0;
    let renumbered: Vec<BufferId> = used
        .iter()
        .map(|&used| {
            let id = BufferId(next);
            next += u32::from(used);
            id
        })
        .collect();
    let mut keep = used.iter();
    trace.buffers.retain(|_| keep.next().copied().unwrap_or(true));
    for mv in &mut trace.moves {
        mv.to.buffer = renumbered[mv.to.buffer.index()];
    }
    for source in &mut trace.sources {
        source.buffer = renumbered[source.buffer.index()];
    }
}
