//! From targets to plans, for each size: a schedule's `when` may choose another plan for another size.
//!
//! In: the targets of the command. Out: for a size, the plans of all algorithms that run on the world shape. Sources are
//! read and checked once; a plan is compiled for each size, as `run` would.

use std::rc::Rc;

use compiler::check::checked::AlgorithmId;
use compiler::choice::Choice;
use compiler::chooser::{self, Chosen, Effort, Fixed};
use compiler::cost::topology::Topology;
use compiler::elaborate::Request;
use compiler::pipeline::{Failure as PipelineFailure, Loaded};
use plan::plan::Forms;
use plan::verify::VerifiedPlan;
use rcc::convention::Convention;
use rcc::make::{How, Made};
use rcc::request;

use crate::allocator;
use crate::args;
use crate::failure::Failure;
use crate::output::Output;
use crate::shape;
use crate::target::{self, Chosen as Found, Target};

/// A plan to be explained.
#[derive(Clone)]
pub(super) struct Subject {
    pub(super) plan: Rc<VerifiedPlan>,
    /// What the schedule came to; none for a plan from a file.
    pub(super) choice: Option<Choice>,
    /// What was chosen, and on which machine.
    pub(super) chosen: Chosen,
    pub(super) machine: Rc<Topology>,
}

/// Everything that was named.
pub(super) struct Subjects {
    entries: Vec<Entry>,
}

enum Entry {
    Plan { plan: Rc<VerifiedPlan>, how: How },
    Source { loaded: Rc<Loaded>, request: Request, how: How, several: bool },
}

impl Subjects {
    /// Reads and checks all targets. `machine_for` refuses what is too large before it is compiled.
    pub(super) fn load(
        args: &args::Explain,
        machine_for: &dyn Fn(u32) -> Result<Topology, Failure>,
        output: &mut Output,
    ) -> Result<Subjects, Failure> {
        let limits = args.choice.within.limits()?;
        let how = |ranks: u32| -> Result<How, Failure> {
            let slice_bytes = args.slot_bytes.map(u32::try_from).transpose();
            let slice_bytes =
                slice_bytes.map_err(|_| Failure::usage("--slot-bytes: a slot has less than 4 GiB"))?;
            // As for `run`: a call with fewer slots than usual needs a plan that does with them.
            let counted_slots =
                args.slots.filter(|&slots| slots < compiler::options::Options::default().slots);
            Ok(How {
                fixed: Fixed { counted_slots, slots: args.slots, slice_bytes, ..args.scheduling.fixed() },
                dtype: args.dtype,
                forms: Forms { disjoint: true, same: !args.out_of_place },
                effort: Effort::Thorough,
                topology: machine_for(ranks)?,
                limits,
            })
        };
        let mut entries = Vec::new();
        for argument in &args.subjects {
            let target = Target::new(argument);
            if let Target::Plan(path) = &target {
                if args.ranks.is_some() {
                    return Err(Failure::usage("a plan is for one world shape; --ranks is for source files"));
                }
                args.choice.refuse_for_plan()?;
                args.scheduling.refuse_for_plan()?;
                let plan = Rc::new(target::read_plan(path, &limits, output)?);
                let how = how(plan.header.ranks)?;
                entries.push(Entry::Plan { plan, how });
                continue;
            }
            let Found { loaded, algorithms } = target.load(&args.choice, &limits)?;
            target::report(&loaded, output)?;
            if algorithms.is_empty() {
                return Err(Failure::usage(format!("{} has no algorithm", target.name())));
            }
            let known: Vec<_> = algorithms.iter().map(|&id| loaded.program.algorithm(id)).collect();
            request::known_params(&known, &args.choice.params)?;
            let several = algorithms.len() > 1 || args.subjects.len() > 1;
            let loaded = Rc::new(loaded);
            for id in algorithms {
                match request(&loaded, id, args) {
                    Ok(request) => {
                        let how = how(shape::ranks(&request.shape))?;
                        entries.push(Entry::Source { loaded: Rc::clone(&loaded), request, how, several });
                    }
                    Err(failure) if several => skipped(&failure.to_string(), output),
                    Err(failure) => return Err(failure),
                }
            }
        }
        Ok(Subjects { entries })
    }

    /// The plans for a call of `bytes`; at least one.
    pub(super) fn at(&mut self, bytes: u64, output: &mut Output) -> Result<Vec<Subject>, Failure> {
        let mut found = Vec::new();
        let mut excluded = Vec::new();
        for (i, entry) in self.entries.iter_mut().enumerate() {
            match entry {
                Entry::Plan { plan, how } => {
                    let chosen = chooser::geometry(plan, &how.wanted(Some(bytes)), None, &how.topology);
                    let (plan, machine) = (Rc::clone(plan), Rc::new(how.topology.clone()));
                    found.push(Subject { plan, choice: None, chosen, machine });
                }
                Entry::Source { loaded, request, how, several } => {
                    let name = loaded.program.algorithm(request.algorithm).name.clone();
                    match compiled(loaded, request, how, (bytes, *several), output)? {
                        Ok(subject) => found.push(subject),
                        Err(why) => {
                            skipped(&format!("{name}: {why}"), output);
                            excluded.push(i);
                        }
                    }
                }
            }
        }
        // What this shape excludes is said once.
        let mut at = 0;
        self.entries.retain(|_| {
            at += 1;
            !excluded.contains(&(at - 1))
        });
        if found.is_empty() {
            return Err(Failure::usage("none of the algorithms runs on this world shape"));
        }
        Ok(found)
    }
}

/// What an algorithm is asked for.
fn request(loaded: &Loaded, id: AlgorithmId, args: &args::Explain) -> Result<Request, Failure> {
    let algorithm = loaded.program.algorithm(id);
    let default = match algorithm.levels {
        1 => vec![8],
        2 => vec![2, 4],
        levels => vec![2; levels],
    };
    let asked = args.ranks.as_deref().unwrap_or(&default);
    let shape = request::one_shape(algorithm, asked)?;
    let given = request::given(algorithm, &args.choice.params)?;
    Ok(request::one_root(&loaded.program, id, &shape, &given)?)
}

/// The plan for a size, or why the shape is excluded, where that is no error since there are several algorithms.
fn compiled(
    loaded: &Loaded,
    request: &Request,
    how: &How,
    (bytes, several): (u64, bool),
    output: &mut Output,
) -> Result<Result<Subject, String>, Failure> {
    let busy = output.busy("compiling");
    let made = how.make(loaded, request, Some(bytes), &mut allocator::at);
    drop(busy);
    match made {
        Ok(Made { compiled, choice, chosen, .. }) => {
            let machine = Rc::new(how.topology.clone());
            Ok(Ok(Subject { plan: Rc::new(compiled.plan), choice: Some(choice), chosen, machine }))
        }
        Err(PipelineFailure::Excluded { why, .. }) if several => Ok(Err(why)),
        Err(failure) => Err(crate::compile::explain(failure, loaded, output)),
    }
}

impl Subject {
    /// What sizes mean.
    pub(super) fn convention(&self) -> Convention {
        Convention::of(self.plan.plan())
    }

    /// The algorithm, its parameters if it has any, and the shape.
    pub(super) fn name(&self) -> String {
        let header = &self.plan.plan().header;
        let params: Vec<_> = header.params.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        match params.is_empty() {
            true => header.algorithm.clone(),
            false => format!("{} ({})", header.algorithm, params.join(", ")),
        }
    }

    /// The world.
    pub(super) fn shape(&self) -> String {
        shape::show(&self.plan.plan().header.shape)
    }
}

fn skipped(why: &str, output: &mut Output) {
    output.note(&format!("skipped: {}", why.trim_start_matches("error: ")));
}
