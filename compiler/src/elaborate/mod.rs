//! From a checked program, a world shape and parameters to the concrete moves of one algorithm: a `Trace`.
//!
//! In: [`Program`], [`Request`], [`Limits`]. Out: the [`Trace`] with every `run` written out in place, and each callee's
//! own trace, to be proved alone; or one [`Error`] with the values that made it fail. The one hard idea: counted in
//! cells, everything nests by multiplication (see `flatten`), so an algorithm is walked once for itself and once
//! for each distinct callee, never once per `run`.
//!
//! Limits are checked before memory is taken. Loop values of a move are not stored: [`bindings`] elaborates again up
//! to it.

mod alias;
pub(crate) mod body;
mod columns;
pub(crate) mod engine;
mod error;
pub(crate) mod flatten;
pub(crate) mod halt;
pub(crate) mod loops;
pub(crate) mod machine;
mod moves;
pub(crate) mod promise;
mod run;
mod scratch;

use std::sync::Arc;

use grammar::ast::ParamType;
use grammar::span::Span;

use crate::check::checked::{AlgorithmId, Program};
use crate::limits::Limits;
use crate::trace::{Bindings, Looped, MoveId, Params, Trace};
use engine::{Engine, Key, Outcome, Watch};
pub use error::{Cut, Error, Fault, FaultKind, Var, VarKind, World};
use flatten::Found;
use halt::{End, Halt, Res};

/// What to elaborate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The algorithm.
    pub algorithm: AlgorithmId,
    /// Level sizes, outermost first.
    pub shape: Vec<u32>,
    /// Values of parameters (truth values as 0 and 1). Those with a default may be left out; see [`open_ranks`] for
    /// ranks.
    pub params: Params,
}

/// What elaboration gives.
#[derive(Debug, Clone)]
pub struct Elaborated {
    /// The moves.
    pub trace: Trace,
    /// Each distinct (algorithm, shape, parameters) that runs anywhere below, once, innermost first.
    pub callees: Vec<Callee>,
}

/// Something that a `run` needs: to be proved alone.
#[derive(Debug, Clone)]
pub struct Callee {
    /// Its own trace.
    pub trace: Arc<Trace>,
    /// One run that needs it.
    pub run: Span,
    /// What to elaborate to get it alone, for [`bindings`].
    pub request: Request,
}

/// Elaborates one algorithm for one shape; of its schedule, what stands outside every `when` holds.
pub fn elaborate(program: &Program, request: &Request, limits: &Limits) -> Result<Elaborated, Error> {
    elaborate_scheduled(program, request, None, limits)
}

/// The same with the channels that `when` number `when` of the algorithm's schedule gives to labels. Nothing else of the
/// trace depends on it.
pub fn elaborate_scheduled(
    program: &Program,
    request: &Request,
    when: Option<usize>,
    limits: &Limits,
) -> Result<Elaborated, Error> {
    let mut engine = Engine::scheduled(program, limits, when.map_or(0, |when| when + 1));
    let key = key(&mut engine, request).map_err(|halt| halt.error())?;
    let outcome = engine.elaborate(&key, Watch::Nothing).map_err(|halt| halt.error())?;
    let Outcome::Trace(trace, _) = outcome else { unreachable!("nothing was watched") };
    let callees = engine.callees.into_iter().map(|known| {
        let params = program.algorithm(known.key.algorithm).params.iter();
        let params = params.map(|param| param.name.clone()).zip(known.key.params).collect();
        let request = Request { algorithm: known.key.algorithm, shape: known.key.shape, params };
        let mut trace = known.trace;
        if program.lanes {
            end_lanes(Arc::make_mut(&mut trace));
        }
        Callee { trace, run: known.run, request }
    });
    let callees = callees.collect();
    let mut trace = *trace;
    if program.lanes {
        end_lanes(&mut trace);
    }
    Ok(Elaborated { trace, callees })
}

/// Moves that no label gives a channel take the first.
pub(crate) fn end_lanes(trace: &mut Trace) {
    for mv in trace.moves.iter_mut().filter(|mv| mv.lane == body::NO_LANE) {
        mv.lane = 0;
    }
}

/// The rank parameters that are neither given nor have a default: the algorithm is to be proved for each rank.
pub fn open_ranks(program: &Program, algorithm: AlgorithmId, given: &Params) -> Vec<String> {
    let params = program.algorithm(algorithm).params.iter();
    let open =
        params.filter(|p| p.ty == ParamType::Rank && p.default.is_none() && !given.contains_key(&p.name));
    open.map(|param| param.name.clone()).collect()
}

/// The loop variables of a move of the trace that `request` gives, innermost scope last: first those of the algorithm,
/// then those of the callee that the move belongs to. Costs as much as elaborating.
pub fn bindings(program: &Program, request: &Request, limits: &Limits, mv: MoveId) -> Bindings {
    let mut engine = Engine::new(program, limits);
    let Ok(key) = key(&mut engine, request) else { return Bindings::default() };
    let frames = replay(program, &key, limits, mv);
    let mut bindings = Bindings::default();
    for var in frames.into_iter().flat_map(|frame| frame.vars) {
        if let VarKind::Loop { last, range, .. } = var.kind {
            bindings.1.push(Looped { variable: var.name.clone(), range, last });
            bindings.0.push((var.name, var.value));
        }
    }
    bindings
}

/// The variables of one algorithm as they stood.
pub(crate) struct Frame {
    pub vars: Vec<Var>,
    pub world: World,
    /// The run that leads into the next frame, or to the move itself none.
    pub run: Option<Span>,
}

/// The variables of a move, from the algorithm itself down to the callee that the move belongs to.
pub(crate) fn replay(program: &Program, key: &Key, limits: &Limits, mv: MoveId) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    let mut at = (key.clone(), mv);
    loop {
        let (key, MoveId(wanted)) = at;
        let mut engine = Engine::new(program, limits);
        let Ok(Outcome::Found(found)) = engine.elaborate(&key, Watch::Place(wanted)) else { return frames };
        let (watch, next) = match found {
            Found::Own(own) => (Watch::Move(own), None),
            Found::Callee { run, callee, mv } => {
                (Watch::Run(run), Some((engine.callees[callee as usize].key.clone(), mv)))
            }
            Found::Nothing => return frames,
        };
        let Err(halt) = Engine::new(program, limits).elaborate(&key, watch) else { return frames };
        let Halt { end: End::Watched, span, mut vars, world, .. } = *halt else { return frames };
        vars.reverse();
        let run = next.is_some().then_some(span);
        frames.push(Frame { vars, world: world.unwrap_or_default(), run });
        match next {
            Some(next) => at = next,
            None => return frames,
        }
    }
}

/// Checks a request's parameters and completes them.
pub(crate) fn key<'p>(engine: &mut Engine<'p>, request: &Request) -> Res<Key> {
    let program: &'p Program = engine.program;
    let algorithm = program.algorithm(request.algorithm);
    let span = algorithm.name_span;
    let world = || World {
        algorithm: algorithm.name.clone(),
        levels: algorithm.level_names.iter().cloned().zip(request.shape.iter().copied()).collect(),
        params: request.params.iter().map(|(name, &value)| (name.clone(), value)).collect(),
    };
    let known = |name: &str| algorithm.params.iter().any(|param| param.name == name);
    if let Some(name) = request.params.keys().find(|name| !known(name)) {
        let names = algorithm.params.iter().map(|param| param.name.as_str());
        let nearest = names.min_by_key(|known| strsim::osa_distance(known, name)).map(str::to_owned);
        let kind = FaultKind::UnknownParam { name: name.clone(), nearest };
        return Err(Halt::fault(kind, span).world(world));
    }
    let ranks = engine.world(&request.shape, algorithm.levels, span).map_err(|halt| halt.world(world))?;
    let outer =
        engine.machine.enter(algorithm.frame.max(1 + (algorithm.levels + algorithm.params.len()) as u32));
    for (i, &size) in request.shape.iter().enumerate() {
        engine.machine.set(crate::check::checked::Slot(1 + i as u32), size.into());
    }
    let given = |i: usize| {
        let param = &algorithm.params[i];
        request.params.get(&param.name).map(|&value| (value, param.span))
    };
    let params = engine.params(&algorithm.params, given, algorithm.levels, ranks, &algorithm.name);
    engine.machine.leave(outer);
    let params = params.map_err(|halt| halt.world(world))?;
    Ok(Key { algorithm: request.algorithm, shape: request.shape.clone(), params })
}
