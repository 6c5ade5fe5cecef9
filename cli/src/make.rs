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
use plan::dtype::Dtype;
use plan::plan::Forms;

use crate::allocator;
use crate::chosen::Candidate;
use crate::failure::Failure;
use crate::machine;
use crate::output::Output;
use crate::select;
use crate::shape::{self, Shape};
use crate::worlds;

/// In larger worlds the algorithm comes from the table: to compile all of them takes long.
const MOST_RANKS: u32 = 16;

/// How plans are made, sizes aside.
#[derive(Debug, Clone)]
pub(crate) struct How {
    pub(crate) fixed: Fixed,
    pub(crate) dtype: Dtype,
    pub(crate) forms: Forms,
    pub(crate) effort: Effort,
    pub(crate) topology: Topology,
    pub(crate) limits: Limits,
}

/// A plan and where it comes from.
pub(crate) struct Made {
    pub(crate) compiled: Compiled,
    /// What the schedule came to.
    pub(crate) choice: Choice,
    /// What was chosen.
    pub(crate) chosen: Chosen,
    /// The algorithms that it was taken of, where only a collective was named.
    pub(crate) candidates: Vec<Candidate>,
}

/// A collective without an algorithm.
pub(crate) struct Collective {
    /// Its name, without `std::`.
    pub(crate) name: String,
    pub(crate) shape: Shape,
    pub(crate) params: Vec<(String, String)>,
}

impl How {
    /// What a plan is wanted for.
    pub(crate) fn wanted(&self, bytes: Option<u64>) -> Wanted {
        let How { fixed, dtype, forms, effort, .. } = *self;
        Wanted { bytes, dtype, fixed, forms, effort }
    }

    /// Compiles one algorithm for a size.
    pub(crate) fn make(
        &self,
        loaded: &Loaded,
        request: &Request,
        bytes: Option<u64>,
        at_stage: &mut dyn FnMut(Stage),
    ) -> Result<Made, PipelineFailure> {
        let choice = pipeline::choose(loaded, request, bytes);
        let wanted = self.wanted(bytes);
        let mut at_stage = |stage| {
            at_stage(stage);
            if matches!(stage, Stage::Steps | Stage::Verify) {
                allocator::give_back();
            }
        };
        let (compiled, chosen) =
            pipeline::compile_for(loaded, request, &wanted, &self.topology, &self.limits, &mut at_stage)?;
        Ok(Made { compiled, choice, chosen, candidates: Vec::new() })
    }

    /// Compiles the algorithm that is predicted to be the fastest of a collective's.
    pub(crate) fn fastest(
        &self,
        loaded: &Loaded,
        collective: &Collective,
        bytes: Option<u64>,
        at_stage: &mut dyn FnMut(Stage),
        output: &mut Output,
    ) -> Result<(Request, Made), Failure> {
        let Collective { name, shape, params } = collective;
        let ranks = shape::ranks(shape);
        machine::large_enough(&self.topology, ranks)?;
        let usual = select::select(name, ranks, bytes.unwrap_or(ASSUMED_BYTES))?;
        let prefix = format!("std::{name}::");
        let named = |id: AlgorithmId| loaded.program.algorithm(id).name.as_str();
        let all: Vec<AlgorithmId> =
            loaded.program.algorithms().filter(|&id| named(id).starts_with(&prefix)).collect();
        let known: Vec<_> = all.iter().map(|&id| loaded.program.algorithm(id)).collect();
        worlds::known_params(&known, params)?;
        let stage = RefCell::new(at_stage);
        let mut best: Option<(Request, Made)> = None;
        let mut fallback: Option<(Request, Made)> = None;
        let mut candidates = Vec::new();
        for id in all {
            let is_usual = named(id) == usual;
            if ranks > MOST_RANKS && !is_usual {
                continue;
            }
            let request = match self.request(loaded, id, collective) {
                Ok(request) => request,
                Err(failure) if is_usual => return Err(failure),
                Err(_) => continue,
            };
            let made = match self.make(loaded, &request, bytes, &mut |at| stage.borrow_mut()(at)) {
                Ok(made) => made,
                // The table's is there for every world; others may be excluded, or need more than the machine has.
                Err(failure) if is_usual => return Err(crate::compile::explain(failure, loaded, output)),
                Err(_) => continue,
            };
            let seconds = made.chosen.best.map(|best| best.1);
            candidates.push(Candidate {
                algorithm: named(id).to_string(),
                time_us: seconds.map(|seconds| seconds * 1e6),
            });
            let least =
                best.as_ref().and_then(|best| best.1.chosen.best).map_or(f64::INFINITY, |best| best.1);
            if seconds.is_some_and(|seconds| seconds < least) {
                best = Some((request, made));
            } else if is_usual {
                fallback = Some((request, made));
            }
        }
        let found = best.or(fallback);
        let (request, mut made) =
            found.ok_or_else(|| Failure::Machine(format!("{usual} is not in the standard library")))?;
        candidates.sort_by(|a, b| {
            a.time_us.unwrap_or(f64::INFINITY).total_cmp(&b.time_us.unwrap_or(f64::INFINITY))
        });
        made.candidates = candidates;
        Ok((request, made))
    }

    fn request(&self, loaded: &Loaded, id: AlgorithmId, of: &Collective) -> Result<Request, Failure> {
        let algorithm = loaded.program.algorithm(id);
        let shape = worlds::one_shape(algorithm, &of.shape)?;
        worlds::one_root(&loaded.program, id, &shape, &worlds::given(algorithm, &of.params)?)
    }
}

impl Collective {
    /// The collective that a name means, if it means no more than that: `std::allreduce`.
    pub(crate) fn named(target: &str) -> Option<&str> {
        target.strip_prefix("std::").filter(|name| select::COLLECTIVES.contains(name))
    }
}
