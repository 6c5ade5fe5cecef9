//! Names, types and arity: from syntax trees to a checked program, still symbolic in n.
//!
//! In: the user's files and those of the standard library. Out: a [`checked::Program`] and **all** errors; with
//! errors the program must not be elaborated. The one hard idea: nothing is looked up by name afterwards. Variables
//! become slots of a frame, buffers and callees become indices, and expressions nodes of one flat arena.
//!
//! Order: declare all names of all files; collectives (algorithms need their buffers); functions, callee first; the
//! heads of all algorithms (a `run` may name a later one); schedules (bodies hold the expressions of their labels);
//! bodies; circles of runs.

mod algorithm;
pub mod checked;
mod collective;
mod cycles;
mod error;
mod exprs;
mod functions;
mod head;
mod labels;
mod names;
mod places;
mod run;
mod schedules;
mod scope;
mod statements;
pub mod types;

use grammar::ast;
use grammar::span::{FileId, Span};

use checked::Program;
pub use error::{Error, ErrorKind, NameKind, Placed, ScheduleWord, SignalMisuse, Where};
use names::{FileNames, Standard};
pub(crate) use places::SIGNAL;
pub use schedules::{LEAST_PIPELINE, MOST_CHANNELS, MOST_PIPELINE, MOST_THREADS};
use scope::{Entity, Scope};
use types::Signature;

/// A source text to check.
#[derive(Debug, Clone, Copy)]
pub struct Unit<'a> {
    /// Its id.
    pub file: FileId,
    /// The directory of a standard text: `Some("allreduce")` for `stdlib/allreduce/…`, anything for
    /// `stdlib/collectives.coll`; none: the user's.
    pub module: Option<&'a str>,
    /// Its tree.
    pub ast: &'a ast::File,
}

/// Checks all units together.
pub fn check(units: &[Unit<'_>]) -> (Program, Vec<Error>) {
    check_replacing(units, None)
}

/// Checks all units together. The schedules of unit `replacing` go before those beside the algorithms, and plain names
/// in them are those of the user's other units.
pub fn check_replacing(units: &[Unit<'_>], replacing: Option<usize>) -> (Program, Vec<Error>) {
    let mut checker = Checker {
        units,
        program: Program::default(),
        errors: Vec::new(),
        files: Vec::new(),
        standard: Standard::default(),
        signatures: Vec::new(),
        suggestions: names::SUGGESTIONS,
        runs: Vec::new(),
        schedules: Vec::new(),
    };
    checker.declare_all();
    checker.functions();
    checker.collectives();
    let heads = checker.heads();
    checker.schedules(replacing);
    checker.bodies(heads);
    checker.run_circles();
    let Checker { program, mut errors, .. } = checker;
    // A text of schedules may be empty; whoever asked for it knows what must be in it.
    let schedules = replacing.map(|unit| units[unit].file);
    errors
        .retain(|error| !matches!(error.kind, ErrorKind::NothingToCheck { file } if Some(file) == schedules));
    errors.sort_by_key(|error| error.span);
    (program, errors)
}

/// What the parts of `check` share.
pub(crate) struct Checker<'a> {
    units: &'a [Unit<'a>],
    program: Program,
    errors: Vec<Error>,
    /// The names of each unit.
    files: Vec<FileNames>,
    standard: Standard,
    /// Of each function; none: it is part of a circle.
    signatures: Vec<Option<Signature>>,
    /// Who runs whom, by algorithm.
    runs: Vec<Vec<statements::RunSite>>,
    /// Of each algorithm.
    schedules: Vec<Option<schedules::Found<'a>>>,
    /// How many more names may be suggested: each costs a walk over all known ones.
    suggestions: u32,
}

impl Checker<'_> {
    fn error(&mut self, span: Span, kind: ErrorKind) {
        self.errors.push(Error { span, kind });
    }

    /// Puts a name in scope, or reports why it may not be.
    fn declare(&mut self, scope: &mut Scope, name: &ast::Ident, entity: Entity) {
        if name.name == "signal" {
            self.error(name.span, ErrorKind::Reserved { name: name.name.clone() });
        } else if let Err(outer) = scope.declare(&name.name, name.span, entity) {
            self.error(name.span, ErrorKind::Shadowed { name: name.name.clone(), outer });
        }
    }
}
