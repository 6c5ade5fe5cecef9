//! Elaborates one algorithm for one shape, and whatever it runs, each callee once.
//!
//! In: an algorithm, a shape, parameters. Out: its trace. The one hard idea: a callee is elaborated by itself, once
//! per shape and arguments, and its finished trace is then written out wherever a `run` names it. All of them share
//! one machine and so one budget of turns.

use std::sync::Arc;

use grammar::ast::{Mode, ParamType};
use grammar::span::Span;
use plan::ids::{BufferId, RankId};
use plan::plan::Presence;
use rustc_hash::FxHashMap;

use super::body::{Extent, NO_LANE, Walker};
use super::error::{FaultKind, World};
use super::flatten;
use super::halt::{End, Halt, Res};
use super::machine::Machine;
use super::promise;
use crate::check::checked::{AlgorithmId, Collective, ExprId, Param, Program, Slot};
use crate::limits::Limits;
use crate::trace::{Buffer, BufferKind, Trace};

/// What one callee costs at least, in turns: its trace has names, a promise, tables of its own.
const CALLEE_TURNS: u64 = 10_000;

/// What all elaborations of one request share.
pub(crate) struct Engine<'p> {
    pub program: &'p Program,
    pub limits: &'p Limits,
    pub machine: Machine<'p>,
    pub callees: Vec<Known>,
    /// Operands and origins of the moves of all callees: they count towards the limit on moves too.
    pub stored: u64,
    /// Which channels of labels hold: 0 for those outside every `when` of a schedule, 1 for those of the first `when`.
    choice: usize,
    /// How many algorithms are being elaborated, one within the other.
    pub depth: u32,
    index: FxHashMap<Key, u32>,
}

/// An algorithm, its shape, and the values of its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub algorithm: AlgorithmId,
    pub shape: Vec<u32>,
    pub params: Vec<i64>,
}

/// A callee that is elaborated.
pub(crate) struct Known {
    pub key: Key,
    pub trace: Arc<Trace>,
    /// How many step numbers it uses.
    pub steps: u32,
    /// Its `signal` buffer, if it uses one.
    pub signal: Option<BufferId>,
    /// One run that needs it.
    pub run: Span,
}

/// What is looked for when an algorithm is elaborated once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watch {
    /// Nothing: elaborate it all.
    Nothing,
    /// The move with this number among the algorithm's own.
    Move(u32),
    /// The run with this number.
    Run(u32),
    /// Which of the two the move with this number in the finished trace is.
    Place(u32),
}

/// What an elaboration gives.
pub(crate) enum Outcome {
    Trace(Box<Trace>, u32),
    /// Asked with [`Watch::Place`].
    Found(flatten::Found),
}

impl<'p> Engine<'p> {
    pub(crate) fn new(program: &'p Program, limits: &'p Limits) -> Engine<'p> {
        Engine::scheduled(program, limits, 0)
    }

    /// With the channels of one `when`.
    pub(crate) fn scheduled(program: &'p Program, limits: &'p Limits, choice: usize) -> Engine<'p> {
        let machine = Machine::new(program, limits);
        let (callees, index) = (Vec::new(), FxHashMap::default());
        Engine { program, limits, machine, callees, stored: 0, choice, depth: 0, index }
    }

    /// Which channels of labels hold for the algorithm being elaborated: for one that is run by another, those outside
    /// every `when`, as the size of the call is not its own.
    pub(crate) fn choice_here(&self) -> usize {
        if self.depth == 1 { self.choice } else { 0 }
    }

    /// The channel of a move without a label. Where no schedule gives any, 0 at once: then nothing is to be done at the
    /// end.
    pub(crate) fn no_lane(&self) -> u16 {
        if self.program.lanes { NO_LANE } else { 0 }
    }

    /// The callee of that key, elaborated now if it is not known yet.
    pub(crate) fn callee(&mut self, key: Key, run: Span) -> Res<u32> {
        if let Some(&known) = self.index.get(&key) {
            return Ok(known);
        }
        self.machine.charge(CALLEE_TURNS, 0, run)?;
        let (trace, steps) = match self.elaborate(&key, Watch::Nothing) {
            Ok(Outcome::Trace(trace, steps)) => (trace, steps),
            Ok(Outcome::Found(_)) => unreachable!("nothing was watched"),
            Err(mut halt) => {
                halt.runs.push(run);
                return Err(halt);
            }
        };
        let signal = trace.buffers.iter().position(|b| b.kind == BufferKind::Signal).map(BufferId::new);
        let id = self.callees.len() as u32;
        self.stored += (trace.sources.len() + trace.origins.len()) as u64;
        self.callees.push(Known { key: key.clone(), trace: Arc::new(*trace), steps, signal, run });
        self.index.insert(key, id);
        Ok(id)
    }

    /// Elaborates one algorithm.
    pub(crate) fn elaborate(&mut self, key: &Key, watch: Watch) -> Res<Outcome> {
        let program = self.program;
        let algorithm = program.algorithm(key.algorithm);
        let outer = self.machine.enter(algorithm.frame.max(1));
        self.depth += 1;
        let result = self.elaborate_within(key, watch);
        self.depth -= 1;
        self.machine.leave(outer);
        result.map_err(|halt| {
            halt.world(|| World {
                algorithm: algorithm.name.clone(),
                levels: algorithm.level_names.iter().cloned().zip(key.shape.iter().copied()).collect(),
                params: named(&algorithm.params, &key.params),
            })
        })
    }

    fn elaborate_within(&mut self, key: &Key, watch: Watch) -> Res<Outcome> {
        let program = self.program;
        let algorithm = program.algorithm(key.algorithm);
        let collective = program.collective(algorithm.collective);
        let ranks = self.world(&key.shape, algorithm.levels, algorithm.name_span)?;
        for (i, &size) in key.shape.iter().enumerate() {
            self.machine.set(Slot(1 + i as u32), size.into());
        }
        for (i, &value) in key.params.iter().enumerate() {
            self.machine.set(Slot((1 + algorithm.levels + i) as u32), value);
        }
        let args = self.collective_frame(collective, &algorithm.args, &key.shape, ranks)?;
        let buffers = self.in_collective(collective, &args, |engine| engine.buffers(collective, ranks))?;
        let mut walker = Walker::new(self, algorithm, &key.shape, ranks, &buffers, watch);
        walker.body()?;
        let walked = walker.finish();
        let mut trace = Trace {
            algorithm: algorithm.name.clone(),
            collective: collective.name.clone(),
            params: named(&algorithm.params, &key.params),
            shape: key.shape.clone(),
            ranks,
            cells: walked.chunks,
            chunks: walked.chunks,
            buffers,
            inplace: Vec::new(),
            moves: Vec::new(),
            sources: Vec::new(),
            origins: Vec::new(),
            promise: Default::default(),
            clause_spans: Vec::new(),
            implements: algorithm.implements,
            name_span: algorithm.name_span,
        };
        let in_place = walked.in_place;
        let steps = match flatten::flatten(self, algorithm, walked, &mut trace, watch)? {
            flatten::Flat::Done { steps } => steps,
            flatten::Flat::Found(found) => return Ok(Outcome::Found(found)),
        };
        self.in_collective(collective, &args, |engine| {
            promise::promise(engine, collective, &mut trace)?;
            if in_place { promise::inplace(engine, collective, &mut trace) } else { Ok(()) }
        })?;
        Ok(Outcome::Trace(Box::new(trace), steps))
    }

    /// The number of ranks of a shape.
    pub(crate) fn world(&self, shape: &[u32], levels: usize, span: Span) -> Res<u32> {
        let ranks = shape.iter().try_fold(1u32, |ranks, &size| ranks.checked_mul(size));
        let right = shape.len() == levels && !shape.contains(&0);
        match ranks {
            Some(ranks) if right && u64::from(ranks) <= self.limits.places.max(1) => Ok(ranks),
            Some(_) if right => {
                let wanted = shape.iter().map(|&size| u128::from(size)).product();
                let (limit, cuts) = (self.limits.places, Vec::new());
                let ranks = ranks.unwrap_or(u32::MAX);
                let kind = FaultKind::TooManyPlaces { limit, wanted, ranks, blocks: 1, cells: 1, cuts };
                Err(Halt::fault(kind, span))
            }
            _ => Err(Halt::fault(FaultKind::Shape { expected: levels, shape: shape.to_vec() }, span)),
        }
    }

    /// Completes parameters: those that are not given get their default. Checks that ranks are ranks.
    /// A frame must be open; the parameters stand after `levels` level sizes.
    pub(crate) fn params(
        &mut self,
        params: &'p [Param],
        given: impl Fn(usize) -> Option<(i64, Span)>,
        levels: usize,
        ranks: u32,
        of: &str,
    ) -> Res<Vec<i64>> {
        let mut values = Vec::with_capacity(params.len());
        for (i, param) in params.iter().enumerate() {
            let value = match (given(i), param.default) {
                (Some((value, _)), _) => value,
                (None, Some(default)) => self.machine.eval(default)?,
                (None, None) => {
                    return Err(Halt::fault(
                        FaultKind::MissingParam { name: param.name.clone() },
                        param.span,
                    ));
                }
            };
            let span = given(i).map(|(_, span)| span).or(param.default.map(|id| self.machine.span(id)));
            let span = span.unwrap_or(param.span);
            if param.ty == ParamType::Rank && !(0..i64::from(ranks)).contains(&value) {
                let kind =
                    FaultKind::RankArgument { param: param.name.clone(), value, ranks, of: of.to_owned() };
                return Err(Halt::fault(kind, span));
            }
            if param.ty == ParamType::Bool && !(0..2).contains(&value) {
                return Err(Halt::fault(FaultKind::ParamValue { name: param.name.clone(), value }, span));
            }
            self.machine.set(Slot((1 + levels + i) as u32), value);
            values.push(value);
        }
        Ok(values)
    }

    /// Evaluates the collective's arguments here, and what it lacks by its own defaults.
    pub(crate) fn collective_frame(
        &mut self,
        collective: &'p Collective,
        args: &[Option<ExprId>],
        shape: &[u32],
        ranks: u32,
    ) -> Res<CollectiveFrame> {
        let mut given = Vec::with_capacity(args.len());
        for &arg in args {
            let value = arg.map(|arg| self.machine.eval(arg)).transpose()?;
            given.push(value.zip(arg.map(|arg| self.machine.span(arg))));
        }
        let shape = if collective.levels == 1 { vec![ranks] } else { shape.to_vec() };
        let outer = self.machine.enter(collective.frame);
        for (i, &size) in shape.iter().enumerate() {
            self.machine.set(Slot(1 + i as u32), size.into());
        }
        let of = &collective.name;
        let values = self.params(&collective.params, |i| given[i], collective.levels, ranks, of);
        self.machine.leave(outer);
        Ok(CollectiveFrame { shape, params: values? })
    }

    /// Runs `inside` with the collective's own frame.
    pub(crate) fn in_collective<T>(
        &mut self,
        collective: &'p Collective,
        frame: &CollectiveFrame,
        inside: impl FnOnce(&mut Self) -> Res<T>,
    ) -> Res<T> {
        let outer = self.machine.enter(collective.frame);
        for (i, &size) in frame.shape.iter().enumerate() {
            self.machine.set(Slot(1 + i as u32), size.into());
        }
        for (i, &value) in frame.params.iter().enumerate() {
            self.machine.set(Slot((1 + collective.levels + i) as u32), value);
        }
        let result = inside(self);
        self.machine.leave(outer);
        result.map_err(|halt| {
            halt.world(|| World {
                algorithm: collective.name.clone(),
                levels: collective.level_names.iter().cloned().zip(frame.shape.iter().copied()).collect(),
                params: named(&collective.params, &frame.params),
            })
        })
    }

    /// The collective's buffers; its frame is open.
    pub(crate) fn buffers(&mut self, collective: &'p Collective, ranks: u32) -> Res<Vec<Buffer>> {
        let mut buffers = Vec::with_capacity(collective.buffers.len());
        for buffer in &collective.buffers {
            let blocks = match buffer.blocks {
                Some(blocks) => self.count(blocks, 0, true)?,
                None => 1,
            };
            let at = match buffer.at {
                None => Presence::All,
                Some(at) => {
                    let value = self.machine.eval(at)?;
                    let rank = u32::try_from(value).ok().filter(|&rank| rank < ranks);
                    let kind = FaultKind::RankOutOfRange { value, ranks, end: false };
                    Presence::One(RankId(rank.ok_or_else(|| Halt::fault(kind, self.machine.span(at)))?))
                }
            };
            let kind = match buffer.mode {
                Mode::In => BufferKind::In,
                Mode::Out => BufferKind::Out,
                Mode::Inout => BufferKind::Inout,
            };
            buffers.push(Buffer { name: buffer.name.clone(), kind, blocks, at, span: buffer.span });
        }
        Ok(buffers)
    }

    /// A number of chunks or blocks.
    pub(crate) fn count(&mut self, id: ExprId, least: i64, blocks: bool) -> Res<u32> {
        let value = self.machine.eval(id)?;
        let span = self.machine.span(id);
        if value < least {
            return Err(Halt::fault(FaultKind::Count { blocks, value }, span));
        }
        u32::try_from(value).ok().filter(|&count| u64::from(count) <= self.limits.places).ok_or_else(|| {
            let value = value.unsigned_abs();
            let (blocks, cells) = if blocks { (value, 1) } else { (1, value) };
            let (limit, wanted, cuts) = (self.limits.places, u128::from(value), Vec::new());
            Halt::fault(FaultKind::TooManyPlaces { limit, wanted, ranks: 1, blocks, cells, cuts }, span)
        })
    }
}

/// The values that a collective's frame starts with.
pub(crate) struct CollectiveFrame {
    pub shape: Vec<u32>,
    pub params: Vec<i64>,
}

/// The extents of a trace's buffers, cut into `chunks` chunks per block.
pub(crate) fn extents(buffers: &[Buffer], chunks: u32) -> Vec<Extent> {
    buffers
        .iter()
        .map(|b| Extent { blocks: b.blocks, cells: b.blocks.saturating_mul(chunks), at: b.at })
        .collect()
}

pub(crate) fn named(params: &[Param], values: &[i64]) -> Vec<(String, i64)> {
    params.iter().map(|param| param.name.clone()).zip(values.iter().copied()).collect()
}

/// An excluded shape.
#[cold]
pub(crate) fn excluded(why: &str, span: Span) -> Box<Halt> {
    Halt::new(End::Excluded(why.to_owned()), span)
}
