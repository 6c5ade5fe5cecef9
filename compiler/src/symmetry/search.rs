//! The search for a rotation: what is evaluated once, and what is tried.
//!
//! In: a request. Out: a [`Quotient`], or what stood in the way of the attempt that came furthest. Tried are, in this order: how
//! far ranks move, positions of the caller's buffers, blocks of theirs (of which the promise allows few), and what scratch does.

use super::Quotient;
use super::action::Turn;
use super::env::Env;
use super::find::{Finder, Node, Score};
use super::follow::{Tried, follow};
use super::refusal::{Refusal, Why};
use super::shift::Shift;
use crate::check::checked::{Algorithm, Collective, Program, Slot, Stmt};
use crate::elaborate::World;
use crate::elaborate::body::Walker;
use crate::elaborate::engine::{CollectiveFrame, Engine, Key, Watch, named};
use crate::elaborate::halt::{Halt, Res};
use crate::limits::Limits;
use crate::trace::Buffer;
use plan::plan::Presence;

/// Expression nodes that may be looked at in search of a rotation.
const BUDGET: u64 = 4_000_000;
/// Rotations of buffers that are tried for one rotation of ranks.
const TRIED: usize = 2_000;
/// Rotations that pass on the text, but not on the order of moves, before it is given up.
const FOLLOWED: usize = 8;

/// What is the same for all rotations that are tried.
pub(super) struct Setting<'p> {
    pub(super) program: &'p Program,
    pub(super) algorithm: &'p Algorithm,
    pub(super) collective: &'p Collective,
    pub(super) frame: CollectiveFrame,
    pub(super) key: Key,
    pub(super) ranks: u32,
    /// The collective's buffers, as a trace has them.
    pub(super) buffers: Vec<Buffer>,
    pub(super) chunks: u32,
    /// Blocks of the collective's buffers and of scratch.
    pub(super) blocks: Vec<u32>,
    /// What variables of the body itself hold.
    pub(super) known: Vec<i64>,
    pub(super) in_place: bool,
    /// The `when` whose channels hold.
    pub(super) when: Option<usize>,
}

/// Why the search ended.
pub(super) enum Stop {
    Refused(Refusal),
    Halted(Box<Halt>),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        Stop::Refused(refusal)
    }
}

impl From<Box<Halt>> for Stop {
    fn from(halt: Box<Halt>) -> Stop {
        Stop::Halted(halt)
    }
}

pub(super) fn world(algorithm: &Algorithm, key: &Key) -> World {
    World {
        algorithm: algorithm.name.clone(),
        levels: algorithm.level_names.iter().cloned().zip(key.shape.iter().copied()).collect(),
        params: named(&algorithm.params, &key.params),
    }
}

pub(super) fn search<'p>(setting: &Setting<'p>, limits: &'p Limits) -> Result<Quotient, Stop> {
    let name = setting.algorithm.name_span;
    if setting.ranks < 2 {
        return Err(Refusal { span: name, why: Why::OneRank }.into());
    }
    if let Some(buffer) = setting.buffers.iter().find(|buffer| buffer.at != Presence::All) {
        let why = Why::Absent { buffer: buffer.name.clone() };
        return Err(Refusal { span: setting.algorithm.implements, why }.into());
    }
    let mut search =
        Search { env: Env::new(setting.program, BUDGET), setting, limits, refusal: None, followed: 0 };
    for step in (1..setting.ranks).filter(|step| setting.ranks.is_multiple_of(*step)) {
        if let Some(found) = search.step(step)? {
            return Ok(found);
        }
        if search.env.left() == 0 || search.followed >= FOLLOWED {
            break;
        }
    }
    Err(search.refusal.map_or(Refusal { span: name, why: Why::TooMuch }, |(_, refusal)| refusal).into())
}

impl<'p> Setting<'p> {
    /// Evaluates what speaks of the whole algorithm. Its frame is open.
    pub(super) fn new(engine: &mut Engine<'p>, key: Key, when: Option<usize>) -> Res<Setting<'p>> {
        let program = engine.program;
        let algorithm = program.algorithm(key.algorithm);
        let collective = program.collective(algorithm.collective);
        let ranks = engine.world(&key.shape, algorithm.levels, algorithm.name_span)?;
        set_frame(engine, algorithm, &key);
        let frame = engine.collective_frame(collective, &algorithm.args, &key.shape, ranks)?;
        let buffers = engine.in_collective(collective, &frame, |engine| engine.buffers(collective, ranks))?;
        let mut walker = Walker::new(engine, algorithm, &key.shape, ranks, &buffers, Watch::Nothing);
        walker.held = 1;
        for statement in &algorithm.body {
            // All else makes moves.
            if let Stmt::Chunks(_)
            | Stmt::Scratch(_)
            | Stmt::Let { .. }
            | Stmt::Table { .. }
            | Stmt::Require { .. }
            | Stmt::OutOfPlaceOnly = statement
            {
                walker.statement(statement)?;
            }
        }
        let signal = walker.extents.len() - 1;
        let blocks = walker.extents[..signal].iter().map(|extent| extent.blocks).collect();
        let (chunks, in_place) = (walker.out.chunks, walker.out.in_place);
        let known = (0..algorithm.frame).map(|slot| engine.machine.get(Slot(slot))).collect();
        Ok(Setting {
            program,
            algorithm,
            collective,
            frame,
            key,
            ranks,
            buffers,
            chunks,
            blocks,
            known,
            in_place,
            when,
        })
    }

    /// An engine with the algorithm's frame open.
    pub(super) fn engine(&self, limits: &'p Limits) -> Engine<'p> {
        let mut engine = Engine::scheduled(self.program, limits, self.when.map_or(0, |when| when + 1));
        engine.depth = 1;
        engine.machine.enter(self.algorithm.frame.max(1));
        set_frame(&mut engine, self.algorithm, &self.key);
        engine
    }
}

/// Sets what the algorithm's open frame starts with.
fn set_frame(engine: &mut Engine<'_>, algorithm: &Algorithm, key: &Key) {
    for (i, &size) in key.shape.iter().enumerate() {
        engine.machine.set(Slot(1 + i as u32), size.into());
    }
    for (i, &value) in key.params.iter().enumerate() {
        engine.machine.set(Slot((1 + algorithm.levels + i) as u32), value);
    }
}

/// The search for a rotation.
struct Search<'s, 'p> {
    env: Env<'p>,
    setting: &'s Setting<'p>,
    limits: &'p Limits,
    /// What stood in the way of the attempt that came furthest.
    refusal: Option<(Score, Refusal)>,
    followed: usize,
}

impl<'p> Search<'_, 'p> {
    /// Tries rotations that take a rank `step` ranks on.
    fn step(&mut self, step: u32) -> Result<Option<Quotient>, Stop> {
        let setting = self.setting;
        let order = setting.ranks / step;
        let mut tried = 0;
        for position in ways(setting.chunks, order) {
            let users: Vec<Vec<Turn>> = setting.blocks[..setting.buffers.len()]
                .iter()
                .map(|&count| turns(setting, count, &[position], order))
                .collect();
            for user in products(&users) {
                tried += 1;
                if tried > TRIED || self.env.left() == 0 {
                    return Ok(None);
                }
                let Some(promise) = self.promise(&user, step)? else { continue };
                let positions = ways(setting.chunks, order);
                let scratch: Vec<Vec<Turn>> = setting.blocks[setting.buffers.len()..]
                    .iter()
                    .map(|&count| turns(setting, count, &positions, order))
                    .collect();
                for scratch in products(&scratch) {
                    tried += 1;
                    if tried > TRIED || self.env.left() == 0 || self.followed >= FOLLOWED {
                        return Ok(None);
                    }
                    let buffers: Vec<Turn> = user.iter().chain(&scratch).copied().collect();
                    let Some(nodes) = self.body(&buffers, step) else { continue };
                    let tried =
                        Tried { step, order, position, buffers: &buffers, nodes: &nodes, promise: &promise };
                    match follow(setting, &tried, self.limits)? {
                        Ok(quotient) => return Ok(Some(quotient)),
                        Err(refusal) => {
                            self.followed += 1;
                            self.note((u32::MAX, 0), refusal);
                        }
                    }
                }
            }
        }
        Ok(None)
    }

    fn note(&mut self, score: Score, refusal: Refusal) {
        if self.refusal.as_ref().is_none_or(|(known, _)| *known < score) {
            self.refusal = Some((score, refusal));
        }
    }

    fn promise(&mut self, buffers: &[Turn], step: u32) -> Result<Option<Vec<Vec<i64>>>, Stop> {
        let setting = self.setting;
        let collective = setting.collective;
        self.env.open(collective.frame);
        for (i, &size) in setting.frame.shape.iter().enumerate() {
            self.env.set(Slot(1 + i as u32), Shift::constant(size.into()));
        }
        for (i, &value) in setting.frame.params.iter().enumerate() {
            self.env.set(Slot((1 + collective.levels + i) as u32), Shift::constant(value));
        }
        let mut finder = Finder {
            env: &mut self.env,
            shape: &setting.frame.shape,
            ranks: setting.ranks,
            step,
            order: setting.ranks / step,
            buffers,
            known: &|_| 0,
            accepted: 0,
            turning: 0,
            furthest: None,
        };
        match finder.promise(&collective.ensures) {
            Ok(found) => Ok(Some(found)),
            Err(refusal) => {
                self.note((0, 0), refusal);
                Ok(None)
            }
        }
    }

    fn body(&mut self, buffers: &[Turn], step: u32) -> Option<Vec<Node>> {
        let setting = self.setting;
        let algorithm = setting.algorithm;
        self.env.open(algorithm.frame.max(1));
        for slot in 1..(1 + algorithm.levels + algorithm.params.len()) as u32 {
            self.env.set(Slot(slot), Shift::constant(setting.known[slot as usize]));
        }
        let known = |slot: Slot| setting.known[slot.index()];
        let mut finder = Finder {
            env: &mut self.env,
            shape: &setting.key.shape,
            ranks: setting.ranks,
            step,
            order: setting.ranks / step,
            buffers,
            known: &known,
            accepted: 0,
            turning: 0,
            furthest: None,
        };
        match finder.body(&algorithm.body) {
            Ok(nodes) => Some(nodes),
            Err(refusal) => {
                let (accepted, refusal) = finder.furthest.take().unwrap_or(((0, 0), refusal));
                self.note((accepted.0.saturating_add(1), accepted.1), refusal);
                None
            }
        }
    }
}

/// How far something of which there are `count` may go round: not at all, forwards, backwards.
fn ways(count: u32, order: u32) -> Vec<u32> {
    match count {
        0 => vec![0],
        _ if !count.is_multiple_of(order) => vec![0],
        _ if order == 2 => vec![0, count / order],
        _ => vec![0, count / order, count - count / order],
    }
}

/// What may happen inside a buffer of `count` blocks.
fn turns(setting: &Setting<'_>, count: u32, positions: &[u32], order: u32) -> Vec<Turn> {
    // The position first: what is cut into as many chunks as there are ranks mostly goes round.
    let all = ways(count, order).into_iter();
    let turn = |blocks: u32, &cells: &u32| Turn { count, width: setting.chunks, blocks, cells };
    all.flat_map(|blocks| positions.iter().map(move |cells| turn(blocks, cells))).collect()
}

/// All ways to take one of each.
fn products(choices: &[Vec<Turn>]) -> impl Iterator<Item = Vec<Turn>> + '_ {
    let total = choices.iter().map(Vec::len).try_fold(1usize, usize::checked_mul).unwrap_or(usize::MAX);
    (0..total).map(move |mut number| {
        let pick = |choice: &Vec<Turn>| {
            let at = number % choice.len();
            number /= choice.len();
            choice[at]
        };
        choices.iter().map(pick).collect()
    })
}
