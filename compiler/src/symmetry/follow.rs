//! One rotation that passes on the text: one move of each orbit is made, and followed.
//!
//! In: what goes round, and how. Out: the [`Quotient`], or what the numbers show and the text did not: a run cut by the edge of a
//! part, overlaps that differ, an order that does not last.

use super::Quotient;
use super::action::{Action, Turn, Within};
use super::find::Node;
use super::keys::Keys;
use super::orbits::Orbits;
use super::refusal::{Refusal, Why};
use super::search::{Setting, Stop};
use super::{in_rank_order, promise, versions};
use crate::check::checked::Algorithm;
use crate::elaborate::body::Walker;
use crate::elaborate::engine::{Watch, named};
use crate::elaborate::{self, flatten};
use crate::graph::Form;
use crate::limits::Limits;
use crate::trace::{Buffer, BufferKind, Origin, Place, Trace};

/// A rotation that passes on the text.
pub(super) struct Tried<'t> {
    pub(super) step: u32,
    pub(super) order: u32,
    pub(super) position: u32,
    pub(super) buffers: &'t [Turn],
    pub(super) nodes: &'t [Node],
    pub(super) promise: &'t [Vec<i64>],
}

/// Makes one move of each orbit, and follows them.
pub(super) fn follow<'p>(
    setting: &Setting<'p>,
    tried: &Tried<'_>,
    limits: &'p Limits,
) -> Result<Result<Quotient, Refusal>, Stop> {
    let algorithm = setting.algorithm;
    // An engine of its own: what earlier attempts have spent is not this one's fault.
    let engine = &mut setting.engine(limits);
    let too_much = Refusal { span: algorithm.name_span, why: Why::TooMuch };
    let mut walker =
        Walker::new(engine, algorithm, &setting.key.shape, setting.ranks, &setting.buffers, Watch::Nothing);
    walker.held = tried.step;
    let mut orbits = Orbits::new(&mut walker, tried.step, tried.order);
    orbits.statements(&algorithm.body, tried.nodes)?;
    let Orbits { mut keys, within, lost, .. } = orbits;
    if let Some(span) = lost {
        return Ok(Err(Refusal { span, ..too_much }));
    }
    let walked = walker.finish();
    let mut trace = Trace {
        algorithm: algorithm.name.clone(),
        collective: setting.collective.name.clone(),
        params: named(&algorithm.params, &setting.key.params),
        shape: setting.key.shape.clone(),
        ranks: setting.ranks,
        cells: walked.chunks,
        chunks: walked.chunks,
        buffers: setting.buffers.iter().chain(&walked.scratch).cloned().collect(),
        inplace: Vec::new(),
        moves: walked.moves,
        sources: walked.sources,
        origins: algorithm.sites.iter().map(|&span| Origin { span, parent: None }).collect(),
        promise: Default::default(),
        clause_spans: Vec::new(),
        implements: algorithm.implements,
        name_span: algorithm.name_span,
    };
    flatten::prune(&mut trace);
    if setting.program.lanes {
        elaborate::end_lanes(&mut trace);
    }
    let action = Action {
        ranks: setting.ranks,
        step: tried.step,
        order: tried.order,
        cells: trace.cells,
        buffers: kept_turns(&trace, setting, tried, algorithm),
        position: tried.position,
    };
    if !whole(&trace, &action, &within) {
        return Ok(Err(too_much));
    }
    let cells: u64 = trace.buffers.iter().map(|b| u64::from(b.blocks) * u64::from(trace.cells)).sum();
    let count: u64 =
        (trace.moves.iter()).map(|mv| u64::from(mv.width) * u64::from(mv.source_count + 2)).sum();
    let places = (cells + 1).saturating_mul(tried.step.into());
    if places.saturating_add(count) > u64::from(u32::MAX) / 2 || count > limits.cell_moves() {
        return Ok(Err(too_much));
    }
    let moves = trace.moves.len() as u64 * u64::from(tried.order);
    take_home(&mut trace, &action, &mut keys, &within);
    let claims = engine.in_collective(setting.collective, &setting.frame, |engine| {
        let limit = limits.moves;
        promise::promise(&mut engine.machine, setting.collective, &mut trace, &action, tried.promise, limit)?;
        if setting.in_place {
            elaborate::promise::inplace(engine, setting.collective, &mut trace)?;
        }
        Ok(())
    });
    claims?;
    if let Err(refusal) = promise::inplace(setting.collective, &mut trace, &action) {
        return Ok(Err(refusal));
    }
    let mut versions = Vec::new();
    for form in [Form::Disjoint, Form::Same] {
        if form == Form::Same && trace.inplace.is_empty() {
            continue;
        }
        match versions::follow(&trace, &action, &keys, form) {
            Ok(found) => versions.push(found),
            Err(refusal) => return Ok(Err(refusal)),
        }
    }
    Ok(Ok(Quotient { trace, action, moves, keys, within, versions }))
}

/// What happens in the buffers that are left: those of the collective, scratch that is used, `signal`.
fn kept_turns(trace: &Trace, setting: &Setting<'_>, tried: &Tried<'_>, algorithm: &Algorithm) -> Vec<Turn> {
    let still = Turn { count: 1, width: 1, blocks: 0, cells: 0 };
    let mut scratch = 0;
    let users = setting.buffers.len();
    let turn = |(i, buffer): (usize, &Buffer)| match buffer.kind {
        BufferKind::Signal => still,
        BufferKind::Scratch => {
            while algorithm.scratch[scratch].span != buffer.span {
                scratch += 1;
            }
            scratch += 1;
            tried.buffers[users + scratch - 1]
        }
        _ => tried.buffers[i],
    };
    trace.buffers.iter().enumerate().map(turn).collect()
}

/// Whether every run of chunks or blocks lies within one part of those that go round, so that none is ever cut.
fn whole(trace: &Trace, action: &Action, within: &[Within]) -> bool {
    trace.moves.iter().all(|mv| {
        let within = within[mv.origin.0 as usize];
        let fits = |place: &Place| {
            let turn = action.buffers[place.buffer.index()];
            let inside = |first: u32, len: u32, by: u32, count: u32| {
                // `by` is a unit of the circle, forwards or backwards.
                let part = by.min(count - by);
                by == 0 || first % part + len <= part
            };
            match within {
                Within::Nothing if mv.width == 1 => true,
                Within::Nothing => {
                    let position = place.cell % turn.width;
                    // Over several blocks no position may move, and blocks only as a whole.
                    let positions = turn.cells == 0 || inside(position, mv.width, turn.cells, turn.width);
                    let blocks = (position + mv.width).div_ceil(turn.width);
                    positions
                        && (blocks == 1 || inside(place.cell / turn.width, blocks, turn.blocks, turn.count))
                }
                Within::Positions => {
                    inside(place.cell / turn.width, mv.width / turn.width, turn.blocks, turn.count)
                }
                Within::Blocks => true,
            }
        };
        fits(&mv.to) && trace.sources(mv).iter().all(fits)
    })
}

/// Takes every move to where it writes at a standing rank, and puts all in the order of the program.
fn take_home(trace: &mut Trace, action: &Action, keys: &mut Keys, within: &[Within]) {
    for (m, mv) in trace.moves.iter_mut().enumerate() {
        let (_, times) = action.home(mv.to.rank);
        if times == 0 {
            continue;
        }
        let (back, within) = (action.back(times), within[mv.origin.0 as usize]);
        mv.to = action.start(mv.to, back, within);
        for source in &mut trace.sources[mv.first_source as usize..][..mv.source_count as usize] {
            *source = action.start(*source, back, within);
        }
        in_rank_order(mv.kind, &mut trace.sources[mv.first_source as usize..][..mv.source_count as usize]);
        keys.take(m as u32, back);
    }
    let order = keys.sorted();
    if !order.is_sorted() {
        trace.moves = order.iter().map(|&mv| trace.moves[mv as usize]).collect();
        keys.arrange(&order);
    }
}
