//! From an algorithm, or from no more than a collective, to the plan for a size.
//!
//! In: how plans are to be made, a request or a collective, a size. Out: a proved plan, with what its schedule came to and what
//! the compiler chose. Where only a collective is named, all its standard algorithms are compiled, and the one is taken that
//! the cost model predicts to be the fastest; in large worlds, and where the model cannot tell, the one of `select`'s table.

use std::cell::RefCell;

use compiler::check::checked::AlgorithmId;
use compiler::choice::Choice;
use compiler::chooser::{ASSUMED_BYTES, Chosen, Effort, Fixed, Wanted};
use compiler::cost::topology::Topology;
use compiler::elaborate::Request;
use compiler::limits::Limits;
use compiler::pipeline::{self, Compiled, Failure as PipelineFailure, Loaded, Stage};
use plan::dtype::{Dtype, Op};
use plan::plan::{Forms, Header};

use crate::collective::Collective;
use crate::request::{self, Misuse};
use crate::select::table;
use crate::world::{self, Shape};

/// In larger worlds the algorithm comes from the table: to compile all of them takes long.
pub const MOST_RANKS: u32 = 16;

/// How plans are made, sizes aside.
#[derive(Debug, Clone)]
pub struct How {
    /// What is not free.
    pub fixed: Fixed,
    /// What calls are of.
    pub dtype: Dtype,
    /// Which forms calls have.
    pub forms: Forms,
    /// How much may be tried.
    pub effort: Effort,
    /// The machine.
    pub topology: Topology,
    /// Within which limits.
    pub limits: Limits,
}

/// A plan and where it comes from.
#[derive(Debug)]
pub struct Made {
    /// The plan.
    pub compiled: Compiled,
    /// What the schedule came to.
    pub choice: Choice,
    /// What was chosen.
    pub chosen: Chosen,
    /// The algorithms that it was taken of, where only a collective was named: the fastest first.
    pub candidates: Vec<Candidate>,
    /// Those that could not be, and why.
    pub excluded: Vec<Excluded>,
}

/// An algorithm that was considered, where only a collective was named.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Its full name.
    pub algorithm: String,
    /// What the model predicts; none, where it was not asked.
    pub seconds: Option<f64>,
}

/// An algorithm that does not serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excluded {
    /// Its full name.
    pub algorithm: String,
    /// Why not: a fragment.
    pub why: String,
}

/// What a plan is to be made for, where no algorithm is named.
#[derive(Debug, Clone)]
pub struct Open {
    /// Of what.
    pub collective: Collective,
    /// For which world.
    pub shape: Shape,
    /// Parameters of the algorithms that have them.
    pub params: Vec<(String, String)>,
    /// What calls combine with.
    pub op: Op,
    /// Every form of those wanted must be served, not only one of them.
    pub every_form: bool,
}

/// Why there is no plan.
#[derive(Debug)]
pub enum NotMade {
    /// What was asked makes no sense.
    Misuse(Misuse),
    /// The program is wrong, or not for this world.
    Failed(PipelineFailure),
}

impl NotMade {
    /// In a fragment.
    pub fn brief(&self) -> String {
        match self {
            NotMade::Misuse(misuse) => misuse.message.clone(),
            NotMade::Failed(PipelineFailure::Excluded { why, .. }) => format!("it requires {why}"),
            NotMade::Failed(PipelineFailure::Wrong(found)) => {
                found.first().map_or("it is wrong".to_string(), |diagnostic| diagnostic.title.clone())
            }
        }
    }
}

impl From<Misuse> for NotMade {
    fn from(misuse: Misuse) -> NotMade {
        NotMade::Misuse(misuse)
    }
}

impl How {
    /// What a plan is wanted for.
    pub fn wanted(&self, bytes: Option<u64>) -> Wanted {
        let How { fixed, dtype, forms, effort, .. } = *self;
        Wanted { bytes, dtype, fixed, forms, effort }
    }

    /// Compiles one algorithm for a size.
    ///
    /// # Errors
    /// Why there is no plan, as data for `compiler::diagnostics`.
    pub fn make(
        &self,
        loaded: &Loaded,
        request: &Request,
        bytes: Option<u64>,
        at_stage: &mut dyn FnMut(Stage),
    ) -> Result<Made, PipelineFailure> {
        let choice = pipeline::choose(loaded, request, bytes);
        let wanted = self.wanted(bytes);
        let (compiled, chosen) =
            pipeline::compile_for(loaded, request, &wanted, &self.topology, &self.limits, at_stage)?;
        Ok(Made { compiled, choice, chosen, candidates: Vec::new(), excluded: Vec::new() })
    }

    /// Compiles the algorithm that is predicted to be the fastest of a collective's, of those that serve the operator, and the
    /// form if only one is wanted.
    ///
    /// # Errors
    /// Why the table's algorithm has no plan, if no other has one.
    pub fn fastest(
        &self,
        loaded: &Loaded,
        open: &Open,
        bytes: Option<u64>,
        at_stage: &mut dyn FnMut(Stage),
    ) -> Result<(Request, Made), NotMade> {
        let ranks = world::ranks(&open.shape);
        let usual = table::usual(open.collective, ranks, bytes.unwrap_or(ASSUMED_BYTES));
        let named = |id: AlgorithmId| loaded.program.algorithm(id).name.as_str();
        let all = algorithms(loaded, open.collective);
        let known: Vec<_> = all.iter().map(|&id| loaded.program.algorithm(id)).collect();
        request::known_params(&known, &open.params)?;
        let stage = RefCell::new(at_stage);
        let mut best: Option<(Request, Made)> = None;
        let mut fallback: Option<(Request, Made)> = None;
        let mut failure: Option<NotMade> = None;
        let (mut candidates, mut excluded) = (Vec::new(), Vec::new());
        for id in all {
            let is_usual = named(id) == usual;
            let mut exclude = |why: String| excluded.push(Excluded { algorithm: named(id).to_string(), why });
            if ranks > MOST_RANKS && !is_usual {
                exclude(format!("in worlds of more than {MOST_RANKS} ranks only the table's is compiled"));
                continue;
            }
            let made = self.request(loaded, id, open).map_err(NotMade::Misuse).and_then(|request| {
                let made = self.make(loaded, &request, bytes, &mut |at| stage.borrow_mut()(at));
                made.map(|made| (request, made)).map_err(NotMade::Failed)
            });
            let (request, made) = match made {
                Ok(made) => made,
                // The table's is there for every world; others may be excluded, or need more than the machine has.
                Err(why) => {
                    exclude(why.brief());
                    failure = if is_usual { Some(why) } else { failure };
                    continue;
                }
            };
            // What cannot serve the call is taken only where nothing can, and the call then says why not.
            let refusal = self.refusal(&made.compiled.plan.header, open);
            let serves = refusal.is_none();
            if let Some(why) = refusal {
                exclude(why);
            }
            let seconds = made.chosen.best.map(|best| best.1).filter(|_| serves);
            if serves {
                candidates.push(Candidate { algorithm: named(id).to_string(), seconds });
            }
            let least =
                best.as_ref().and_then(|best| best.1.chosen.best).map_or(f64::INFINITY, |best| best.1);
            if seconds.is_some_and(|seconds| seconds < least) {
                best = Some((request, made));
            } else if is_usual {
                fallback = Some((request, made));
            }
        }
        let missing = || NotMade::Misuse(Misuse::new(format!("{usual} is not in the standard library")));
        let (request, mut made) = match (failure, best.or(fallback)) {
            (_, Some(found)) => found,
            (Some(why), None) => return Err(why),
            (None, None) => return Err(missing()),
        };
        candidates.sort_by(|a, b| {
            a.seconds.unwrap_or(f64::INFINITY).total_cmp(&b.seconds.unwrap_or(f64::INFINITY))
        });
        (made.candidates, made.excluded) = (candidates, excluded);
        Ok((request, made))
    }

    /// What an algorithm is asked for.
    ///
    /// # Errors
    /// Why it is not for that world, or those parameters.
    pub fn request(&self, loaded: &Loaded, id: AlgorithmId, of: &Open) -> Result<Request, Misuse> {
        let algorithm = loaded.program.algorithm(id);
        let shape = request::one_shape(algorithm, &of.shape)?;
        request::one_root(&loaded.program, id, &shape, &request::given(algorithm, &of.params)?)
    }

    /// Why a plan does not serve such calls; none, if it does.
    pub fn refusal(&self, header: &Header, open: &Open) -> Option<String> {
        let (wanted, has) = (self.forms, header.forms);
        let lacks =
            [(wanted.disjoint && !has.disjoint, "out of place"), (wanted.same && !has.same, "in place")];
        let lacks = lacks.iter().filter(|lack| lack.0).map(|lack| lack.1);
        let all = [wanted.disjoint, wanted.same].iter().filter(|&&wanted| wanted).count();
        match lacks.clone().next() {
            Some(form) if open.every_form || lacks.count() == all => Some(format!("it does not run {form}")),
            _ if !header.serves(open.op) => Some(format!("it does not serve {}", open.op)),
            _ => None,
        }
    }
}

/// The standard algorithms of a collective, in the order of the program.
pub fn algorithms(loaded: &Loaded, collective: Collective) -> Vec<AlgorithmId> {
    let prefix = format!("std::{collective}::");
    let program = &loaded.program;
    program.algorithms().filter(|&id| program.algorithm(id).name.starts_with(&prefix)).collect()
}
