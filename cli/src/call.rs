//! What `run` and `bench` share: from targets to plans that can be run, and one measured call.
//!
//! In: targets and the options of a call. Out: verified plans, and for each size and form the runtime's report with the
//! numbers that nccl-tests would give.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::rc::Rc;

use compiler::check::checked::AlgorithmId;
use compiler::choice::Choice;
use compiler::chooser::{self, Chosen, Effort, Fixed};
use compiler::elaborate::Request;
use compiler::pipeline::{Failure as PipelineFailure, Loaded};
use plan::plan::Forms;
use plan::verify::VerifiedPlan;
use rcc::collective::Collective;
use rcc::convention::Convention;
use rcc::make::{Candidate, How, Made, Open};
use rcc::request;
use rcc::select::{Ask, Selection, StandardCall};
use runtime::error::Kind;
use runtime::exec::Shape as CallShape;
use runtime::job::{Inputs, Job, Report};
use runtime::launch::{self, Options, StopSignals};
use serde::Serialize;

use crate::allocator;
use crate::args;
use crate::chosen::Said;
use crate::failure::{Failure, plain};
use crate::job_env;
use crate::machine;
use crate::output::Output;
use crate::shape::{self, Shape};
use crate::target::{self, Chosen as Found, Target};

/// A plan and what its sizes mean.
pub(crate) struct Runnable {
    /// The plan.
    pub(crate) plan: Rc<VerifiedPlan>,
    /// The meaning of sizes.
    pub(crate) convention: Convention,
    /// What its schedule came to; nothing for a plan from a file.
    pub(crate) choice: Choice,
    /// What was chosen.
    pub(crate) chosen: Chosen,
    /// The algorithms that it was taken of, where only a collective was named.
    pub(crate) candidates: Vec<Candidate>,
}

/// One form of one call, measured and checked: a row for programs.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    pub(crate) collective: String,
    pub(crate) algorithm: String,
    pub(crate) ranks: u32,
    pub(crate) bytes: u64,
    pub(crate) count: u64,
    pub(crate) dtype: &'static str,
    pub(crate) op: String,
    /// Which part of the schedule held.
    pub(crate) schedule: Option<String>,
    /// What the compiler chose.
    pub(crate) chosen: Said,
    pub(crate) in_place: bool,
    pub(crate) time_us: f64,
    pub(crate) algbw_gbps: f64,
    pub(crate) busbw_gbps: f64,
    pub(crate) wrong: u64,
}

/// Where plans come from: targets, or the algorithms of a collective.
pub(crate) enum Source {
    /// What was named.
    Named(Vec<Subject>),
    /// What is selected for each size; plans are made as they are needed.
    Selected(Box<Selected>),
}

/// Something that was named: a plan for each size, compiled anew for each since what is chosen may be another.
pub(crate) struct Subject {
    origin: Origin,
    /// The size that the last plan is for.
    bytes: Option<u64>,
    last: Rc<Runnable>,
}

/// Where a subject comes from.
enum Origin {
    /// An algorithm to compile.
    Program { loaded: Rc<Loaded>, request: Request, how: Rc<How> },
    /// A plan from a file.
    Plan { how: Rc<How> },
}

/// A collective for which an algorithm is selected.
pub(crate) struct Selected {
    open: Open,
    how: Rc<How>,
    loaded: Rc<Loaded>,
    /// What was measured counts where nothing is fixed.
    selection: Option<Selection>,
    last: Option<(u64, Rc<Runnable>)>,
}

impl args::Call {
    /// The world shape.
    fn shape(&self) -> Result<Shape, Failure> {
        match (self.number, &self.ranks) {
            (Some(0), _) => Err(Failure::usage("-n 0: a world has at least one rank")),
            (Some(number), _) if number > shape::MOST_RANKS => {
                Err(Failure::usage(format!("-n {number}: a world has at most {} ranks", shape::MOST_RANKS)))
            }
            (Some(number), _) => Ok(vec![number]),
            (None, Some(shape)) => Ok(shape.clone()),
            (None, None) => {
                job_env::refuse(|name| std::env::var_os(name))?;
                Ok(vec![4])
            }
        }
    }

    /// Refuses devices that are not there.
    fn device(&self) -> Result<(), Failure> {
        match self.device.split(':').next() {
            Some("cpu") if self.device == "cpu" => Ok(()),
            Some("cuda") => {
                Err(Failure::Machine(format!("no device {}: this version runs on CPUs only", self.device)))
            }
            _ => Err(Failure::usage_help(
                format!("`{}` is not a device", self.device),
                "devices are cpu and cuda:0",
            )),
        }
    }

    /// What was named, with plans for a first size; algorithms that cannot run on this shape are left out if `several`
    /// may be meant.
    pub(crate) fn source(
        &self,
        targets: &[PathBuf],
        several: bool,
        bytes: Option<u64>,
        output: &mut Output,
    ) -> Result<Source, Failure> {
        self.device()?;
        let how = Rc::new(self.how()?);
        let limits = how.limits;
        let shape = self.shape()?;
        machine::large_enough(&how.topology, shape::ranks(&shape))?;
        // A target that names no more than a collective, where one algorithm is meant.
        let alone = match targets {
            [one] if !several && self.choice.algorithm.is_none() => Target::new(one).collective(),
            _ => None,
        };
        let named = self.collective.as_deref().map(Collective::named).transpose()?;
        if let Some(collective) = named.or(alone) {
            let standard = Target::standard(collective);
            let Found { loaded, .. } = standard.load(&self.choice, &limits)?;
            target::report(&loaded, output)?;
            let open = Open {
                collective,
                shape,
                params: self.choice.params.clone(),
                op: self.op,
                every_form: false,
            };
            let free = self.scheduling.given().is_none() && self.slots.is_none() && self.slot_bytes.is_none();
            let selection = machine::selection(self.topology.as_deref(), self.tuning.as_deref())?;
            let selection = Some(selection).filter(|_| free && self.choice.schedule.is_none());
            selection.iter().for_each(|selection| machine::tell_remark(selection, output));
            let selected = Selected { open, how, loaded: Rc::new(loaded), selection, last: None };
            return Ok(Source::Selected(Box::new(selected)));
        }
        let mut subjects = Vec::new();
        for argument in targets {
            let target = Target::new(argument);
            if let Target::Plan(path) = &target {
                self.choice.refuse_for_plan()?;
                self.scheduling.refuse_for_plan()?;
                let plan = target::read_plan(path, &limits, output)?;
                self.fits(&plan, &shape)?;
                subjects.push(Subject::of_plan(plan, bytes, &how));
            } else if several {
                let Found { loaded, algorithms } = target.load(&self.choice, &limits)?;
                target::report(&loaded, output)?;
                let chosen: Vec<_> = algorithms.iter().map(|&id| loaded.program.algorithm(id)).collect();
                request::known_params(&chosen, &self.choice.params)?;
                let loaded = Rc::new(loaded);
                subjects.extend(all(&loaded, &algorithms, &shape, &self.choice.params, bytes, &how, output)?);
            } else {
                let (loaded, id) = target.load_one(&self.choice, &limits, output)?;
                request::known_params(&[loaded.program.algorithm(id)], &self.choice.params)?;
                let loaded = Rc::new(loaded);
                subjects.push(one(&loaded, id, &shape, &self.choice.params, bytes, &how, output)?);
            }
        }
        Ok(Source::Named(subjects))
    }

    /// How plans are made for these calls.
    fn how(&self) -> Result<How, Failure> {
        let topology = match &self.topology {
            Some(named) => machine::named(named)?,
            None => machine::here(),
        };
        let slice_bytes = self.slot_bytes.map(u32::try_from).transpose();
        let slice_bytes =
            slice_bytes.map_err(|_| Failure::usage("--slot-bytes: a slot has less than 4 GiB"))?;
        // A call with fewer slots than usual needs a plan that does with them.
        let counted_slots = self.slots.filter(|&slots| slots < compiler::options::Options::default().slots);
        let fixed = Fixed { counted_slots, slots: self.slots, slice_bytes, ..self.scheduling.fixed() };
        Ok(How {
            fixed,
            dtype: self.dtype,
            forms: Forms { disjoint: !self.in_place, same: !self.out_of_place },
            effort: if self.topology.is_some() { Effort::Thorough } else { Effort::Quick },
            topology,
            limits: self.choice.within.limits()?,
        })
    }

    /// Refuses a plan for another world than was asked for; if none was, any will do.
    fn fits(&self, plan: &VerifiedPlan, asked: &[u32]) -> Result<(), Failure> {
        let header = &plan.plan().header;
        let open = self.number.is_none() && self.ranks.is_none();
        if open || shape::ranks(asked) == header.ranks {
            return Ok(());
        }
        let (has, wants) = (shape::show_ranks(&header.shape), shape::show(asked));
        Err(Failure::usage(format!(
            "the plan is for {has}, not for {wants}; compile it anew with --ranks {wants}"
        )))
    }

    /// The forms to measure, out of place first.
    pub(crate) fn forms(&self, plan: &VerifiedPlan) -> Result<Vec<bool>, Failure> {
        let forms = plan.plan().header.forms;
        let name = &plan.plan().header.algorithm;
        match (self.out_of_place, self.in_place) {
            (true, _) if !forms.disjoint => Err(Failure::usage(format!("{name} runs in place only"))),
            (_, true) if !forms.same => Err(Failure::usage(format!("{name} does not run in place"))),
            (true, _) => Ok(vec![false]),
            (_, true) => Ok(vec![true]),
            _ => Ok([(forms.disjoint, false), (forms.same, true)]
                .iter()
                .filter(|f| f.0)
                .map(|f| f.1)
                .collect()),
        }
    }

    /// Runs, measures and checks one form of one call.
    pub(crate) fn measure(
        &self,
        runnable: &Runnable,
        count: u64,
        in_place: bool,
        stop: &StopSignals,
    ) -> Result<(Row, Report), Failure> {
        let header = &runnable.plan.plan().header;
        if !header.serves(self.op) {
            let why = if self.op.has_post() {
                "it goes on combining what is already complete"
            } else {
                "its steps do not say which of their operands are entry values"
            };
            return Err(Failure::usage(format!("{} cannot serve --op {}: {why}", header.algorithm, self.op)));
        }
        if self.op.factor().is_some_and(|factor| !factor.fits(self.dtype)) {
            return Err(Failure::usage_help(
                format!("elements of {} cannot be multiplied by the factor of --op {}", self.dtype, self.op),
                "use a whole number that the type holds",
            ));
        }
        if let Some(wire) = header.schedule.wire.filter(|_| !self.allow_wire) {
            return Err(Failure::usage_help(
                format!(
                    "the schedule of {} narrows elements to {} in transit",
                    header.algorithm,
                    wire.name()
                ),
                "results are no longer those of the type: allow it with --allow-wire",
            ));
        }
        let too_large =
            || Failure::usage(format!("{count} elements per block are more than can be addressed"));
        let bytes = runnable.convention.bytes(count, self.dtype).ok_or_else(too_large)?;
        let slot_bytes = self.slot_bytes.map(u32::try_from).transpose();
        let slot_bytes =
            slot_bytes.map_err(|_| Failure::usage("--slot-bytes: a slot has less than 4 GiB"))?;
        // What was chosen, unless it is said; what a schedule says of slots, the runtime reads itself.
        let chosen = runnable.chosen.best.map(|best| best.0);
        let sliced = header.schedule.slice_bytes.is_some();
        let job = Job {
            slot_bytes: slot_bytes.or(chosen.map(|call| call.slice_bytes).filter(|_| !sliced)),
            slots: self.slots.or(chosen.map(|call| call.slots)),
            warmup: self.warmup,
            iterations: self.iterations,
            inputs: if self.refill { Inputs::Anew } else { Inputs::Kept },
            pin: !self.no_pin,
            check: true,
            seed: self.seed,
            deadline: self.timeout,
            ..Job::new(CallShape { elements: count, dtype: self.dtype, op: self.op, in_place })
        };
        let report =
            launch::run(&runnable.plan, &job, &Options { stop: Some(stop.as_fd()), ..Options::default() })
                .map_err(|error| machine(&error))?;
        let seconds =
            report.times.iter().sum::<std::time::Duration>().as_secs_f64() / report.times.len().max(1) as f64;
        let (algbw_gbps, busbw_gbps) = runnable.convention.bandwidths(bytes, seconds);
        let row = Row {
            collective: header.collective.clone(),
            algorithm: header.algorithm.clone(),
            ranks: header.ranks,
            bytes,
            count,
            dtype: self.dtype.name(),
            op: self.op.to_string(),
            schedule: runnable.choice.said().map(str::to_string),
            chosen: Said::brief(&runnable.chosen, &runnable.candidates),
            in_place,
            time_us: seconds * 1e6,
            algbw_gbps,
            busbw_gbps,
            wrong: report.wrong,
        };
        Ok((row, report))
    }
}

impl Source {
    /// The plans for a call of `bytes`.
    pub(crate) fn plans(&mut self, bytes: u64, output: &mut Output) -> Result<Vec<Rc<Runnable>>, Failure> {
        match self {
            Source::Named(subjects) => subjects.iter_mut().map(|subject| subject.at(bytes, output)).collect(),
            Source::Selected(selected) => Ok(vec![selected.plan(bytes, output)?]),
        }
    }
}

impl Selected {
    fn plan(&mut self, bytes: u64, output: &mut Output) -> Result<Rc<Runnable>, Failure> {
        if let Some((_, known)) = self.last.as_ref().filter(|(known, _)| *known == bytes) {
            return Ok(Rc::clone(known));
        }
        let busy = output.busy("compiling");
        let ask = self.ask(bytes);
        let measured = self.selection.as_ref().and_then(|known| known.by_measure(&self.loaded, &ask));
        let made = match measured {
            Some(measured) => Ok(measured.made),
            None => {
                let made = self.how.fastest(&self.loaded, &self.open, Some(bytes), &mut allocator::at);
                made.map(|(_, made)| made)
            }
        };
        drop(busy);
        let made = made.map_err(|why| crate::compile::not_made(why, &self.loaded, output))?;
        let made = Rc::new(Runnable::of(made));
        self.last = Some((bytes, Rc::clone(&made)));
        Ok(made)
    }
}

impl Selected {
    /// The call, as selection is asked for it. Buffers are such that ranks may reach into them.
    fn ask(&self, bytes: u64) -> Ask {
        let Open { collective, shape, params, op, .. } = &self.open;
        let (ranks, How { dtype, forms: Forms { disjoint, same }, .. }) = (shape::ranks(shape), &*self.how);
        let root = params.iter().find(|(name, _)| name == "root").and_then(|(_, root)| root.parse().ok());
        let call = StandardCall::of_bytes(*collective, ranks, bytes, *dtype);
        let forms = Forms { disjoint: *disjoint, same: *same && (collective.runs_in_place() || !*disjoint) };
        Ask::exactly(&StandardCall { root, op: *op, registered: true, ..call }, ranks, bytes, forms)
    }
}

impl Runnable {
    fn of(made: Made) -> Runnable {
        let Made { compiled, choice, chosen, candidates, .. } = made;
        let convention = Convention::of(compiled.plan.plan());
        Runnable { plan: Rc::new(compiled.plan), convention, choice, chosen, candidates }
    }
}

impl Subject {
    fn of_plan(plan: VerifiedPlan, bytes: Option<u64>, how: &Rc<How>) -> Subject {
        let last = Rc::new(geometry(Rc::new(plan), bytes, how));
        Subject { origin: Origin::Plan { how: Rc::clone(how) }, bytes, last }
    }

    /// The plan that was needed last.
    pub(crate) fn last(&self) -> &Runnable {
        &self.last
    }

    /// The plan for a call of at most `bytes`. What counts is what it really moves: whole elements of every block.
    pub(crate) fn at(&mut self, bytes: u64, output: &mut Output) -> Result<Rc<Runnable>, Failure> {
        if self.bytes != Some(bytes) {
            self.last = match &self.origin {
                Origin::Plan { how } => Rc::new(geometry(Rc::clone(&self.last.plan), Some(bytes), how)),
                Origin::Program { loaded, request, how } => {
                    let made = compile(loaded, request, how, Some(bytes), output);
                    let explained = |failure| crate::compile::explain(failure, loaded, output);
                    Rc::new(made.map_err(explained)?)
                }
            };
            self.bytes = Some(bytes);
        }
        Ok(Rc::clone(&self.last))
    }
}

/// A plan whose steps are what they are, for a size.
fn geometry(plan: Rc<VerifiedPlan>, bytes: Option<u64>, how: &How) -> Runnable {
    let copies = Some(plan.header.copies);
    let chosen = chooser::geometry(&plan, &how.wanted(bytes), copies, &how.topology);
    let convention = Convention::of(plan.plan());
    Runnable { plan, convention, choice: Choice::default(), chosen, candidates: Vec::new() }
}

fn compile(
    loaded: &Loaded,
    request: &Request,
    how: &How,
    bytes: Option<u64>,
    output: &mut Output,
) -> Result<Runnable, PipelineFailure> {
    let busy = output.busy("compiling");
    let made = how.make(loaded, request, bytes, &mut allocator::at);
    drop(busy);
    made.map(Runnable::of)
}

fn subject(
    loaded: &Rc<Loaded>,
    request: Request,
    how: &Rc<How>,
    bytes: Option<u64>,
    output: &mut Output,
) -> Result<Subject, PipelineFailure> {
    let last = Rc::new(compile(loaded, &request, how, bytes, output)?);
    let origin = Origin::Program { loaded: Rc::clone(loaded), request, how: Rc::clone(how) };
    Ok(Subject { origin, bytes, last })
}

/// Compiles one algorithm, or fails.
fn one(
    loaded: &Rc<Loaded>,
    id: AlgorithmId,
    asked: &[u32],
    params: &[(String, String)],
    bytes: Option<u64>,
    how: &Rc<How>,
    output: &mut Output,
) -> Result<Subject, Failure> {
    let algorithm = loaded.program.algorithm(id);
    let shape = request::one_shape(algorithm, asked)?;
    let request = request::one_root(&loaded.program, id, &shape, &request::given(algorithm, params)?)?;
    subject(loaded, request, how, bytes, output)
        .map_err(|failure| crate::compile::explain(failure, loaded, output))
}

/// Compiles several; those that do not run on this shape are left out, and said to be.
fn all(
    loaded: &Rc<Loaded>,
    ids: &[AlgorithmId],
    asked: &[u32],
    params: &[(String, String)],
    bytes: Option<u64>,
    how: &Rc<How>,
    output: &mut Output,
) -> Result<Vec<Subject>, Failure> {
    if let [id] = ids {
        return Ok(vec![one(loaded, *id, asked, params, bytes, how, output)?]);
    }
    let mut subjects = Vec::new();
    for &id in ids {
        let algorithm = loaded.program.algorithm(id);
        let shape = match request::one_shape(algorithm, asked) {
            Ok(shape) => shape,
            Err(failure) => {
                output.note(&format!("skipped: {}", failure.to_string().trim_start_matches("error: ")));
                continue;
            }
        };
        let request = request::one_root(&loaded.program, id, &shape, &request::given(algorithm, params)?)?;
        match subject(loaded, request, how, bytes, output) {
            Ok(subject) => subjects.push(subject),
            Err(PipelineFailure::Excluded { why, .. }) => {
                output.note(&format!("skipped: {}: {why}", algorithm.name));
            }
            Err(failure) => return Err(crate::compile::explain(failure, loaded, output)),
        }
    }
    if subjects.is_empty() {
        return Err(Failure::usage(format!("none of the algorithms runs on {}", shape::show_ranks(asked))));
    }
    Ok(subjects)
}

/// From now on, a signal that asks this process to end stops the run at hand.
pub(crate) fn stop_signals() -> Result<StopSignals, Failure> {
    StopSignals::new().map_err(|error| Failure::Machine(format!("cannot handle signals: {}", plain(&error))))
}

/// An error of the runtime: what was asked makes no sense, or the machine could not do it.
fn machine(error: &runtime::error::Error) -> Failure {
    match error.kind {
        Kind::Invalid => Failure::usage(error.to_string()),
        _ => Failure::Machine(error.to_string()),
    }
}
