//! Proofs by symmetry: one rank is followed instead of all, where all do the same.
//!
//! In: a checked program and a request. Out: a [`Quotient`] (one move of each orbit of a rotation of the ranks, and the
//! versions at the ranks that stand for all), the [`Proof`] made of it, and any one rank's moves; or the [`Refusal`] that
//! says what is not alike at all ranks, so that the whole has to be followed. A ring of 16,384 ranks makes 537 million
//! moves and has 32 thousand orbits.
//!
//! Why it is right, in four steps (docs/decisions/0014 has them at length):
//! 1. `find` decides on the program's text that σ, a rotation of ranks, blocks and cells, maps the moves onto themselves.
//! 2. `versions` decides that σ keeps the order of any two moves that touch one place, unless both only read. So σ maps
//!    versions to versions, and what a move reads to what the rotated move reads.
//! 3. `find` decides that σ maps the promise onto itself, and what there is at entry, and the overlaps of memory.
//! 4. Hence what a place of any rank holds is what a standing rank's place holds, rotated; `prove` looks at these.
//!
//! Nothing is sampled, and nothing is taken for equal that was not compared.

mod action;
mod env;
mod find;
mod keys;
mod orbits;
mod promise;
mod prove;
mod rank;
mod refusal;
mod shift;
mod values;
mod versions;

use plan::ids::RankId;
use plan::plan::Presence;

use self::action::Within;
pub use self::action::{Action, Turn};
use self::env::Env;
use self::find::{Finder, Node, Score};
use self::keys::Keys;
use self::orbits::Orbits;
pub use self::prove::{Proof, prove};
pub use self::rank::{RankMove, of_rank};
pub use self::refusal::{Refusal, Why};
use self::shift::Shift;
use self::versions::{Read, Versions};
use crate::check::checked::{Algorithm, Collective, Program, Slot, Stmt};
use crate::elaborate::body::Walker;
use crate::elaborate::engine::{CollectiveFrame, Engine, Key, Watch, named};
use crate::elaborate::halt::{Halt, Res};
use crate::elaborate::{self, Request, World, flatten};
use crate::graph::{Form, arity};
use crate::limits::Limits;
use crate::trace::{Bindings, BufferKind, MoveId, MoveKind, Origin, Place, Trace};

/// Expression nodes that may be looked at in search of a rotation.
const BUDGET: u64 = 4_000_000;
/// Rotations of buffers that are tried for one rotation of ranks.
const TRIED: usize = 2_000;
/// Rotations that pass on the text, but not on the order of moves, before it is given up.
const FOLLOWED: usize = 8;

/// A program up to its symmetry.
#[derive(Debug)]
pub struct Quotient {
    /// One move of each orbit: the one into a rank that stands for others (`0..action.step`), with its sources where they
    /// are. In the order of the program. The promise is that to the standing ranks, with whole operand lists; overlaps are
    /// those at the standing ranks. All else is as the whole trace has it, but for the numbers of steps.
    pub trace: Trace,
    /// The rotation.
    pub action: Action,
    /// The algorithm's own moves in the whole world: one for each of the orbits, at `action.order` ranks.
    pub moves: u64,
    keys: Keys,
    /// By site.
    within: Vec<Within>,
    /// For each form claimed.
    versions: Vec<Versions>,
}

/// Why there is no quotient.
#[derive(Debug)]
pub enum Failure {
    /// Not the same at all ranks, or not seen to be: to be followed as a whole.
    Refused(Refusal),
    /// The program is wrong (or excluded), whatever its symmetry.
    Wrong(elaborate::Error),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::Refused(refusal)
    }
}

/// What is the same for all rotations that are tried.
struct Setting<'p> {
    program: &'p Program,
    algorithm: &'p Algorithm,
    collective: &'p Collective,
    frame: CollectiveFrame,
    key: Key,
    ranks: u32,
    /// The collective's buffers, as a trace has them.
    buffers: Vec<crate::trace::Buffer>,
    chunks: u32,
    /// Blocks of the collective's buffers and of scratch.
    blocks: Vec<u32>,
    /// What variables of the body itself hold.
    known: Vec<i64>,
    in_place: bool,
    /// The `when` whose channels hold.
    limits: Limits,
}

/// Looks for a rotation and follows one move of each orbit.
pub fn quotient(program: &Program, request: &Request, limits: &Limits) -> Result<Quotient, Failure> {
    quotient_scheduled(program, request, None, limits)
}

/// The same with the channels that one `when` of the schedule gives to labels; see `elaborate::elaborate_scheduled`.
pub fn quotient_scheduled(
    program: &Program,
    request: &Request,
    when: Option<usize>,
    limits: &Limits,
) -> Result<Quotient, Failure> {
    let mut engine = Engine::scheduled(program, limits, when.map_or(0, |when| when + 1));
    engine.depth = 1;
    let key = elaborate::key(&mut engine, request).map_err(|halt| Failure::Wrong(halt.error()))?;
    let algorithm = program.algorithm(key.algorithm);
    let outer = engine.machine.enter(algorithm.frame.max(1));
    let found = within_frame(&mut engine, key.clone(), limits);
    engine.machine.leave(outer);
    found.map_err(|stop| match stop {
        Stop::Refused(refusal) => Failure::Refused(refusal),
        Stop::Halted(halt) => Failure::Wrong(halt.world(|| world(algorithm, &key)).error()),
    })
}

/// Why the search ended.
enum Stop {
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

fn world(algorithm: &Algorithm, key: &Key) -> World {
    World {
        algorithm: algorithm.name.clone(),
        levels: algorithm.level_names.iter().cloned().zip(key.shape.iter().copied()).collect(),
        params: named(&algorithm.params, &key.params),
    }
}

fn within_frame(engine: &mut Engine<'_>, key: Key, limits: &Limits) -> Result<Quotient, Stop> {
    let setting = Setting::new(engine, key, limits)?;
    let name = setting.algorithm.name_span;
    if setting.ranks < 2 {
        return Err(Refusal { span: name, why: Why::OneRank }.into());
    }
    if let Some(buffer) = setting.buffers.iter().find(|buffer| buffer.at != Presence::All) {
        let why = Why::Absent { buffer: buffer.name.clone() };
        return Err(Refusal { span: setting.algorithm.implements, why }.into());
    }
    let mut search =
        Search { env: Env::new(setting.program, BUDGET), setting: &setting, refusal: None, followed: 0 };
    for step in (1..setting.ranks).filter(|step| setting.ranks.is_multiple_of(*step)) {
        if let Some(found) = search.step(engine, step)? {
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
    fn new(engine: &mut Engine<'p>, key: Key, limits: &Limits) -> Res<Setting<'p>> {
        let program = engine.program;
        let algorithm = program.algorithm(key.algorithm);
        let collective = program.collective(algorithm.collective);
        let ranks = engine.world(&key.shape, algorithm.levels, algorithm.name_span)?;
        for (i, &size) in key.shape.iter().enumerate() {
            engine.machine.set(Slot(1 + i as u32), size.into());
        }
        for (i, &value) in key.params.iter().enumerate() {
            engine.machine.set(Slot((1 + algorithm.levels + i) as u32), value);
        }
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
        let limits = *limits;
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
            limits,
        })
    }
}

/// The search for a rotation.
struct Search<'s, 'p> {
    env: Env<'p>,
    setting: &'s Setting<'p>,
    /// What stood in the way of the attempt that came furthest.
    refusal: Option<(Score, Refusal)>,
    followed: usize,
}

impl<'p> Search<'_, 'p> {
    /// Tries rotations that take a rank `step` ranks on.
    fn step(&mut self, engine: &mut Engine<'p>, step: u32) -> Result<Option<Quotient>, Stop> {
        let setting = self.setting;
        let order = setting.ranks / step;
        let mut tried = 0;
        for position in ways(setting.chunks, order) {
            let users: Vec<Vec<Turn>> = setting.blocks[..setting.buffers.len()]
                .iter()
                .map(|&count| turns(setting, count, &[position], order))
                .collect();
            for user in products(&users) {
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
                    match follow(engine, setting, &tried)? {
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

/// A rotation that passes on the text.
struct Tried<'t> {
    step: u32,
    order: u32,
    position: u32,
    buffers: &'t [Turn],
    nodes: &'t [Node],
    promise: &'t [Vec<i64>],
}

/// Makes one move of each orbit, and follows them.
fn follow<'p>(
    engine: &mut Engine<'p>,
    setting: &Setting<'p>,
    tried: &Tried<'_>,
) -> Result<Result<Quotient, Refusal>, Stop> {
    let algorithm = setting.algorithm;
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
    if places.saturating_add(count) > u64::from(u32::MAX) / 2 || count > setting.limits.cell_moves() {
        return Ok(Err(too_much));
    }
    let moves = trace.moves.len() as u64 * u64::from(tried.order);
    take_home(&mut trace, &action, &mut keys, &within);
    let claims = engine.in_collective(setting.collective, &setting.frame, |engine| {
        let limit = setting.limits.moves;
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
    let turn = |(i, buffer): (usize, &crate::trace::Buffer)| match buffer.kind {
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

/// What an operand sees: a version of a place of a standing rank, taken round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The place; the operand lies at its rotation.
    pub place: Place,
    /// The move of the quotient that made it, and which of its cells; none: it is the entry value.
    pub made: Option<(MoveId, u32)>,
    /// How many times it is taken round.
    pub times: u32,
}

/// A gather-reduce combines in rank order at every rank.
fn in_rank_order(kind: MoveKind, sources: &mut [Place]) {
    if kind == MoveKind::GatherReduce {
        sources.sort_by_key(|source| source.rank);
    }
}

impl Quotient {
    /// Whether some gather-reduce combines its operands in another order at another rank: what is held there is then a
    /// sum of the rotated operands, but not in the rotated order.
    pub fn reorders(&self) -> bool {
        let of = |place: &Place| self.action.home(place.rank).1;
        self.trace.moves.iter().filter(|mv| mv.kind == MoveKind::GatherReduce).any(|mv| {
            let sources = self.trace.sources(mv);
            sources.iter().any(|source| of(source) != of(&sources[0]))
        })
    }

    /// The forms that were followed.
    pub fn forms(&self) -> impl Iterator<Item = Form> + '_ {
        self.versions.iter().map(|versions| versions.form)
    }

    /// What cell `cell` of a move reads in one of the forms, in the order folded (see [`crate::graph::arity`]); none where
    /// nothing was written.
    pub fn reads(&self, form: Form, mv: MoveId, cell: u32) -> impl Iterator<Item = Option<Seen>> + '_ {
        let versions = self.versions.iter().find(move |versions| versions.form == form);
        let arity = arity(&self.trace, &self.trace.moves[mv.0 as usize]);
        versions.into_iter().flat_map(move |versions| {
            let first = versions.first_read[mv.0 as usize] + cell * arity;
            versions.reads[first as usize..][..arity as usize].iter().map(|read| versions.seen(*read))
        })
    }

    /// What a place of a standing rank holds at the end.
    pub fn last(&self, form: Form, place: Place) -> Option<Seen> {
        let versions = self.versions.iter().find(|versions| versions.form == form)?;
        let version = versions.last[versions.places.index(place) as usize];
        versions.seen(Read { version, times: 0 })
    }

    /// The loop variables of a move as they stood, for messages.
    pub fn bindings(&self, mv: MoveId) -> Bindings {
        self.keys.bindings(mv.0)
    }

    /// The ranks that stand for all.
    pub fn standing(&self) -> impl Iterator<Item = RankId> + use<> {
        (0..self.action.step).map(RankId)
    }
}
