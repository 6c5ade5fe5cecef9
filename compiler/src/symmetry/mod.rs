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
mod cover;
mod env;
mod find;
mod follow;
mod keys;
mod lower;
mod orbits;
mod promise;
mod prove;
mod rank;
mod refusal;
mod search;
mod shift;
mod validate;
mod values;
mod versions;

use std::cmp::Ordering;

use plan::ids::RankId;

use self::action::Within;
pub use self::action::{Action, Turn};
use self::keys::{Keys, Moment};
pub use self::lower::{Lowered, Unfolded, lower};
pub use self::prove::{Proof, prove};
pub use self::rank::{RankCounts, RankMove, count_of_rank, of_rank};
pub use self::refusal::{Refusal, Why};
use self::search::{Setting, Stop, search, world};
pub use self::validate::{Unlike, validate};
use self::versions::{Read, Versions};
use crate::check::checked::Program;
use crate::elaborate::engine::Engine;
use crate::elaborate::{self, Request};
use crate::graph::{Form, arity};
use crate::limits::Limits;
use crate::trace::{Bindings, MoveId, MoveKind, Place, Trace};

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
    let setting = Setting::new(&mut engine, key.clone(), when);
    engine.machine.leave(outer);
    let found = setting.map_err(Stop::Halted).and_then(|setting| search(&setting, limits));
    found.map_err(|stop| match stop {
        Stop::Refused(refusal) => Failure::Refused(refusal),
        Stop::Halted(halt) => Failure::Wrong(halt.world(|| world(algorithm, &key)).error()),
    })
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
        self.keys.bindings(mv.0, 0)
    }

    /// The same of the move, taken round so many times.
    pub(crate) fn bindings_turned(&self, mv: MoveId, times: u32) -> Bindings {
        self.keys.bindings(mv.0, times)
    }

    /// Which of two moves, each taken round so many times, comes first in the program.
    pub(crate) fn order(&self, a: (MoveId, u32), b: (MoveId, u32)) -> Ordering {
        let moment = |(mv, times): (MoveId, u32)| Moment { mv: mv.0, times, writes: true };
        self.keys.compare(moment(a), moment(b)).0
    }

    /// The ranks that stand for all.
    pub fn standing(&self) -> impl Iterator<Item = RankId> + use<> {
        (0..self.action.step).map(RankId)
    }
}
