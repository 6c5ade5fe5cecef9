//! What `run` and `bench` share: from targets to plans that can be run, and one measured call.
//!
//! In: targets and the options of a call. Out: verified plans, and for each size and form the runtime's report with the
//! numbers that nccl-tests would give.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::rc::Rc;

use compiler::check::checked::AlgorithmId;
use compiler::choice::Choice;
use compiler::elaborate::Request;
use compiler::limits::Limits;
use compiler::options::Options as Compilation;
use compiler::pipeline::{self, Failure as PipelineFailure, Loaded};
use plan::verify::VerifiedPlan;
use runtime::error::Kind;
use runtime::exec::Shape as CallShape;
use runtime::job::{Job, Report};
use runtime::launch::{self, Options, StopSignals};
use serde::Serialize;

use crate::args;
use crate::convention::Convention;
use crate::failure::{Failure, plain};
use crate::job_env;
use crate::output::Output;
use crate::select;
use crate::shape::{self, Shape};
use crate::target::{self, Chosen, Target};
use crate::worlds;

/// A plan and what its sizes mean.
pub(crate) struct Runnable {
    /// The plan.
    pub(crate) plan: VerifiedPlan,
    /// The meaning of sizes.
    pub(crate) convention: Convention,
    /// What its schedule came to; nothing for a plan from a file.
    pub(crate) choice: Choice,
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
    pub(crate) op: &'static str,
    /// Which part of the schedule held.
    pub(crate) schedule: Option<String>,
    pub(crate) in_place: bool,
    pub(crate) time_us: f64,
    pub(crate) algbw_gbps: f64,
    pub(crate) busbw_gbps: f64,
    pub(crate) wrong: u64,
}

/// Where plans come from: targets, or the table of `select` for a collective.
pub(crate) enum Source {
    /// What was named.
    Named(Vec<Subject>),
    /// What is selected for each size; plans are made as they are needed.
    Selected(Box<Selected>),
}

/// Something that was named: a plan for each size, compiled anew where its schedule says something else.
pub(crate) struct Subject {
    /// Where it comes from; none: a file, for all sizes.
    program: Option<Program>,
    last: Rc<Runnable>,
}

/// An algorithm to compile.
struct Program {
    loaded: Rc<Loaded>,
    request: Request,
    how: How,
}

/// How it is compiled: the sizes aside, the same for all.
#[derive(Debug, Clone, Copy)]
struct How {
    options: Compilation,
    limits: Limits,
}

/// The algorithms selected so far.
pub(crate) struct Selected {
    collective: String,
    shape: Shape,
    params: Vec<(String, String)>,
    how: How,
    loaded: Rc<Loaded>,
    subjects: BTreeMap<String, Subject>,
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
                job_env::refuse(|name| std::env::var(name).ok())?;
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
        let limits = self.choice.within.limits()?;
        // A call with fewer slots than usual needs a plan that does with them.
        let how =
            How { options: self.scheduling.options(self.slots.filter(|&slots| slots < 2), None), limits };
        let shape = self.shape()?;
        if let Some(collective) = &self.collective {
            select::select(collective, shape::ranks(&shape), 0)?;
            let standard = Target::standard(collective);
            let Chosen { loaded, .. } = standard.load(&self.choice, &limits)?;
            target::report(&loaded, output)?;
            let selected = Selected {
                collective: collective.clone(),
                shape,
                params: self.choice.params.clone(),
                how,
                loaded: Rc::new(loaded),
                subjects: BTreeMap::new(),
            };
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
                subjects.push(Subject::of_plan(plan));
            } else if several {
                let Chosen { loaded, algorithms } = target.load(&self.choice, &limits)?;
                target::report(&loaded, output)?;
                let chosen: Vec<_> = algorithms.iter().map(|&id| loaded.program.algorithm(id)).collect();
                worlds::known_params(&chosen, &self.choice.params)?;
                let loaded = Rc::new(loaded);
                subjects.extend(all(&loaded, &algorithms, &shape, &self.choice.params, bytes, &how, output)?);
            } else {
                let (loaded, id) = target.load_one(&self.choice, &limits, output)?;
                worlds::known_params(&[loaded.program.algorithm(id)], &self.choice.params)?;
                let loaded = Rc::new(loaded);
                subjects.push(one(&loaded, id, &shape, &self.choice.params, bytes, &how, output)?);
            }
        }
        Ok(Source::Named(subjects))
    }

    /// Refuses a plan for another world than was asked for; if none was, any will do.
    fn fits(&self, plan: &VerifiedPlan, asked: &[u32]) -> Result<(), Failure> {
        let header = &plan.plan().header;
        let open = self.number.is_none() && self.ranks.is_none();
        if open || shape::ranks(asked) == header.ranks {
            return Ok(());
        }
        let (has, wants) = (shape::show(&header.shape), shape::show(asked));
        Err(Failure::usage(format!(
            "the plan is for {has} ranks, not for {wants}; compile it anew with --ranks {wants}"
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
        if self.op.has_post() && !header.serves_post {
            return Err(Failure::usage(format!(
                "{} cannot serve --op {}: it goes on combining what is already complete",
                header.algorithm, self.op
            )));
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
        let job = Job {
            slot_bytes,
            slots: self.slots,
            warmup: self.warmup,
            iterations: self.iterations,
            refill: self.refill,
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
            op: self.op.name(),
            schedule: runnable.choice.said().map(str::to_string),
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
        let name = select::select(&self.collective, shape::ranks(&self.shape), bytes)?;
        if !self.subjects.contains_key(&name) {
            let id = self.loaded.program.find(&name);
            let id = id.ok_or_else(|| Failure::Machine(format!("{name} is not in the standard library")))?;
            worlds::known_params(&[self.loaded.program.algorithm(id)], &self.params)?;
            let made = one(&self.loaded, id, &self.shape, &self.params, Some(bytes), &self.how, output)?;
            self.subjects.insert(name.clone(), made);
        }
        let subject = self.subjects.get_mut(&name);
        subject.ok_or_else(|| Failure::Machine(format!("{name} is not there")))?.at(bytes, output)
    }
}

impl Subject {
    fn of_plan(plan: VerifiedPlan) -> Subject {
        let convention = Convention::of(plan.plan());
        Subject { program: None, last: Rc::new(Runnable { plan, convention, choice: Choice::default() }) }
    }

    /// The plan that was needed last.
    pub(crate) fn last(&self) -> &Runnable {
        &self.last
    }

    /// The plan for a call of at most `bytes`. What counts is what it really moves: whole elements of every block.
    pub(crate) fn at(&mut self, bytes: u64, output: &mut Output) -> Result<Rc<Runnable>, Failure> {
        if let Some(program) = &self.program {
            let choice = pipeline::choose(&program.loaded, &program.request, Some(bytes));
            if choice.when != self.last.choice.when {
                let made = program.compile(Some(bytes), output);
                let explained = |failure| crate::compile::explain(failure, &program.loaded, output);
                self.last = Rc::new(made.map_err(explained)?);
            }
        }
        Ok(Rc::clone(&self.last))
    }
}

impl Program {
    fn compile(&self, bytes: Option<u64>, output: &mut Output) -> Result<Runnable, PipelineFailure> {
        let choice = pipeline::choose(&self.loaded, &self.request, bytes);
        let options = Compilation { bytes, ..self.how.options };
        let busy = output.busy("compiling");
        let compiled =
            pipeline::compile(&self.loaded, &self.request, &options, &self.how.limits, &mut |_| {});
        drop(busy);
        let plan = compiled?.plan;
        let convention = Convention::of(plan.plan());
        Ok(Runnable { plan, convention, choice })
    }

    fn subject(self, bytes: Option<u64>, output: &mut Output) -> Result<Subject, PipelineFailure> {
        let last = Rc::new(self.compile(bytes, output)?);
        Ok(Subject { program: Some(self), last })
    }
}

/// Compiles one algorithm, or fails.
fn one(
    loaded: &Rc<Loaded>,
    id: AlgorithmId,
    asked: &[u32],
    params: &[(String, String)],
    bytes: Option<u64>,
    how: &How,
    output: &mut Output,
) -> Result<Subject, Failure> {
    let algorithm = loaded.program.algorithm(id);
    let shape = worlds::one_shape(algorithm, asked)?;
    let request = worlds::one_root(&loaded.program, id, &shape, &worlds::given(algorithm, params)?)?;
    let program = Program { loaded: Rc::clone(loaded), request, how: *how };
    program.subject(bytes, output).map_err(|failure| crate::compile::explain(failure, loaded, output))
}

/// Compiles several; those that do not run on this shape are left out, and said to be.
fn all(
    loaded: &Rc<Loaded>,
    ids: &[AlgorithmId],
    asked: &[u32],
    params: &[(String, String)],
    bytes: Option<u64>,
    how: &How,
    output: &mut Output,
) -> Result<Vec<Subject>, Failure> {
    if let [id] = ids {
        return Ok(vec![one(loaded, *id, asked, params, bytes, how, output)?]);
    }
    let mut subjects = Vec::new();
    for &id in ids {
        let algorithm = loaded.program.algorithm(id);
        let shape = match worlds::one_shape(algorithm, asked) {
            Ok(shape) => shape,
            Err(failure) => {
                output.note(&format!("skipped: {}", failure.to_string().trim_start_matches("error: ")));
                continue;
            }
        };
        let request = worlds::one_root(&loaded.program, id, &shape, &worlds::given(algorithm, params)?)?;
        let program = Program { loaded: Rc::clone(loaded), request, how: *how };
        match program.subject(bytes, output) {
            Ok(subject) => subjects.push(subject),
            Err(PipelineFailure::Excluded { why, .. }) => {
                output.note(&format!("skipped: {}: {why}", algorithm.name));
            }
            Err(failure) => return Err(crate::compile::explain(failure, loaded, output)),
        }
    }
    if subjects.is_empty() {
        return Err(Failure::usage(format!("none of the algorithms runs on {} ranks", shape::show(asked))));
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
