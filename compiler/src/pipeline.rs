//! Every pass by name, on one screen.
//!
//! In: source texts, a request. Out: a proved trace, a verified plan, or diagnostics. The compiler has no clock: the
//! caller is told at the start of each stage and measures what it likes.

mod by_one;

use std::sync::Arc;

use grammar::span::FileId;
use grammar::{ParseLimits, ast};
use plan::join::join;
use plan::plan::Plan;
use plan::verify::{Target, VerifiedPlan};

pub use self::by_one::{
    CompiledByOne, NotByOne, ProvedByOne, compile_by_one, compile_by_one_for, prove_by_one,
};
use crate::check::checked::Program;
use crate::check::{self, NameKind, Unit};
use crate::choice::{self, Choice};
use crate::chooser::{self, Chosen, Wanted};
use crate::cost::topology::Topology;
use crate::diagnostics::{self, Diagnostic, Label};
use crate::elaborate::{self, Request};
use crate::graph::{self, ChunkGraph, Ends, Form, Proof};
use crate::limits::Limits;
use crate::options::Options;
use crate::resources;
use crate::schedule;
use crate::source::Sources;
use crate::trace::{MoveId, Trace};
use crate::validate;

/// A stage of the pipeline, as `--timings` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Concrete moves.
    Elaborate,
    /// Versions and values, then the promise, for each form. (The promise of a large program is proved beside `Lower`, in its
    /// time.)
    Prove,
    /// Who does what in which order, on which channels.
    Lower,
    /// The steps. Not much of what was needed so far is needed any more, and what comes is large: a moment to give back memory.
    Steps,
    /// V0–V5 and V7.
    Verify,
    /// What nobody said, chosen by the cost model; further layouts are lowered and verified in it.
    Choose,
    /// V6.
    Validate,
}

impl Stage {
    /// All stages in order.
    pub const ALL: [Stage; 7] = [
        Stage::Elaborate,
        Stage::Prove,
        Stage::Lower,
        Stage::Steps,
        Stage::Verify,
        Stage::Choose,
        Stage::Validate,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Elaborate => "elaborate",
            Stage::Prove => "prove",
            Stage::Lower => "lower",
            Stage::Steps => "steps",
            Stage::Verify => "verify",
            Stage::Choose => "choose",
            Stage::Validate => "validate",
        }
    }
}

/// Parsed and checked source texts, the standard library among them.
#[derive(Debug)]
pub struct Loaded {
    /// All texts.
    pub sources: Sources,
    /// The user's files.
    pub files: Vec<FileId>,
    /// The user's trees, in the order of `files`.
    pub trees: Vec<ast::File>,
    /// A text whose schedules replace those beside the algorithms.
    pub schedules: Option<FileId>,
    /// What they declare.
    pub program: Program,
    /// Syntax errors and errors of `check`; if there is one, `program` lacks what it concerns.
    pub diagnostics: Vec<Diagnostic>,
}

/// A trace that keeps its promise in every form it claims.
#[derive(Debug)]
pub struct Proved {
    /// The moves.
    pub trace: Trace,
    /// Versions and values, out of place.
    pub graph: ChunkGraph,
    /// What was found out beside the promise.
    pub proof: Proof,
    /// The forms it was proved in.
    pub forms: Vec<Form>,
    /// Wasted transfers and the like.
    pub warnings: Vec<Diagnostic>,
}

/// What is known of a program that keeps its promise in every form it claims, when its moves are gone: a plan takes their place.
/// ([`traced`] gives them again.)
#[derive(Debug)]
pub struct Kept {
    /// How many moves it has.
    pub moves: usize,
    /// What was found out beside the promise.
    pub proof: Proof,
    /// The forms it was proved in.
    pub forms: Vec<Form>,
    /// Wasted transfers and the like.
    pub warnings: Vec<Diagnostic>,
}

/// A plan that has passed everything.
#[derive(Debug)]
pub struct Compiled {
    /// What it comes from.
    pub proved: Kept,
    /// The plan.
    pub plan: VerifiedPlan,
}

/// Why there is no proof or no plan.
#[derive(Debug)]
pub enum Failure {
    /// A `require` excludes this shape.
    Excluded {
        /// The `require`'s text.
        why: String,
        /// The same as a diagnostic, for when no shape is left.
        diagnostic: Box<Diagnostic>,
    },
    /// The program is wrong.
    Wrong(Vec<Diagnostic>),
}

/// Parses and checks the user's texts (names and bytes) beside the standard library.
pub fn load(files: &[(String, Vec<u8>)], limits: &Limits) -> Loaded {
    load_scheduled(files, None, limits)
}

/// The same with a text of schedules, which replace those beside the algorithms. It is none of the `files` loaded.
pub fn load_scheduled(
    files: &[(String, Vec<u8>)],
    schedules: Option<&(String, Vec<u8>)>,
    limits: &Limits,
) -> Loaded {
    let mut sources = Sources::default();
    let mut found = Vec::new();
    let parse_limits =
        ParseLimits { nesting: limits.nesting, bytes: limits.source_bytes, ..ParseLimits::default() };

    let mut library = Vec::new();
    for (name, text) in stdlib::FILES {
        let file = sources.add(*name, *text);
        // Limits are for the user's texts.
        let parsed = grammar::parse(file, text, &ParseLimits::default());
        found.extend(parsed.errors.iter().map(diagnostics::syntax::syntax));
        library.push((file, module_of(name), parsed.file));
    }
    let mut user = Vec::new();
    let mut trees = Vec::new();
    let mut spoilt = Vec::new();
    for (name, bytes) in files.iter().chain(schedules) {
        let file = sources.add(name, String::from_utf8_lossy(bytes));
        let parsed = grammar::parse_bytes(file, bytes, &parse_limits);
        found.extend(parsed.errors.iter().map(diagnostics::syntax::syntax));
        if !parsed.errors.is_empty() {
            spoilt.push(file);
        }
        user.push(file);
        trees.push(parsed.file);
    }

    let std_units =
        library.iter().map(|(file, module, ast)| Unit { file: *file, module: Some(*module), ast });
    let user_units = user.iter().zip(&trees).map(|(&file, ast)| Unit { file, module: None, ast });
    let units: Vec<Unit<'_>> = std_units.chain(user_units).collect();
    let replacing = schedules.map(|_| units.len() - 1);
    let (program, errors) = check::check_replacing(&units, replacing);
    // What has a syntax error is left out of the tree; that it is not found there is no fault of its own.
    let declared = [NameKind::Collective, NameKind::Algorithm, NameKind::Function];
    let told = |e: &&check::Error| match e.kind {
        check::ErrorKind::NothingToCheck { file } => !spoilt.contains(&file),
        check::ErrorKind::UnknownName { kind, .. } => {
            !declared.contains(&kind) || !spoilt.contains(&e.span.file)
        }
        _ => true,
    };
    found.extend(errors.iter().filter(told).map(diagnostics::check::error));
    let schedules = schedules.and_then(|_| {
        trees.pop();
        user.pop()
    });
    Loaded { sources, files: user, trees, schedules, program, diagnostics: found }
}

/// Which part of its schedule holds for an algorithm in a call of `bytes`.
pub fn choose(loaded: &Loaded, request: &Request, bytes: Option<u64>) -> Choice {
    choice::choose(loaded.program.algorithm(request.algorithm).schedule.as_ref(), bytes)
}

/// Elaborates for one shape and proves: every callee alone, then the whole, in every form claimed.
pub fn prove(
    loaded: &Loaded,
    request: &Request,
    limits: &Limits,
    at_stage: &mut dyn FnMut(Stage),
) -> Result<Proved, Failure> {
    let (trace, graph) = follow(loaded, request, None, limits, at_stage)?;
    let Kept { proof, forms, warnings, .. } = keeps_promise(&trace, &graph, loaded, request, limits)?;
    Ok(Proved { trace, graph, proof, forms, warnings })
}

/// The moves that a plan for calls of `bytes` is made from, and what they make of every cell, out of place.
pub fn traced(
    loaded: &Loaded,
    request: &Request,
    bytes: Option<u64>,
    limits: &Limits,
) -> Result<(Trace, ChunkGraph), Failure> {
    follow(loaded, request, choose(loaded, request, bytes).when, limits, &mut |_| {})
}

/// The moves, with the channels that `when` number `when` of the algorithm's schedule gives to labels, and what they make of
/// every cell, out of place. Callees are proved alone.
fn follow(
    loaded: &Loaded,
    request: &Request,
    when: Option<usize>,
    limits: &Limits,
    at_stage: &mut dyn FnMut(Stage),
) -> Result<(Trace, ChunkGraph), Failure> {
    at_stage(Stage::Elaborate);
    let elaborated = elaborate::elaborate_scheduled(&loaded.program, request, when, limits)
        .map_err(|error| elaboration_failure(&error, loaded))?;

    at_stage(Stage::Prove);
    for callee in &elaborated.callees {
        prove_form(&callee.trace, Form::Disjoint, limits).map_err(|faults| {
            let mut told = graph_diagnostics(&faults, &callee.trace, loaded, &callee.request, limits);
            for diagnostic in &mut told {
                diagnostic.labels.push(Label { span: callee.run, text: "needed by this run".to_string() });
            }
            Failure::Wrong(told)
        })?;
    }
    let trace = elaborated.trace;
    let graph = graph::build_within(&trace, Form::Disjoint, limits)
        .map_err(|faults| Failure::Wrong(graph_diagnostics(&faults, &trace, loaded, request, limits)))?;
    Ok((trace, graph))
}

/// The verdict, in words.
fn keeps_promise(
    trace: &Trace,
    graph: &ChunkGraph,
    loaded: &Loaded,
    request: &Request,
    limits: &Limits,
) -> Result<Kept, Failure> {
    let (proof, forms, warnings) = promised(trace, graph, limits)
        .map_err(|faults| Failure::Wrong(graph_diagnostics(&faults, trace, loaded, request, limits)))?;
    let warnings = diagnostics::graph::warnings(&warnings, trace, &mut |mv| {
        elaborate::bindings(&loaded.program, request, limits, mv)
    });
    Ok(Kept { moves: trace.moves.len(), proof, forms, warnings })
}

/// What there is to know of a trace that keeps its promise in every form it claims.
type Promised = (Proof, Vec<Form>, Vec<graph::Warning>);

/// The promise, out of place and, beside that, in place.
fn promised(trace: &Trace, graph: &ChunkGraph, limits: &Limits) -> Result<Promised, Vec<graph::Fault>> {
    let in_place = || (!trace.inplace.is_empty()).then(|| prove_form(trace, Form::Same, limits)).transpose();
    let worth_it = !trace.inplace.is_empty() && graph.is_large();
    let (apart, same) = join(worth_it, || graph::promise_within(trace, graph, limits), in_place);
    let mut proof = apart?;
    let mut forms = vec![Form::Disjoint];
    // They speak of the program, not of a form: those of the first.
    let warnings = std::mem::take(&mut proof.warnings);
    if let Some((same, same_proof)) = same? {
        graph::forms_agree(trace, graph, &same)?;
        forms.push(Form::Same);
        proof = same_proof;
    }
    Ok((proof, forms, warnings))
}

/// What is compiled, for which target.
struct Task<'a> {
    loaded: &'a Loaded,
    request: &'a Request,
    /// What the schedule comes to.
    choice: &'a Choice,
    limits: &'a Limits,
    target: &'a Target,
}

impl Task<'_> {
    /// The program once more, to be laid out otherwise or to be asked for what a fault has to do with.
    fn again(&self) -> Result<(Trace, ChunkGraph), Failure> {
        follow(self.loaded, self.request, self.choice.when, self.limits, &mut |_| {})
    }
}

/// The whole pipeline for one shape, laid out as `options` say, for ranks on CPUs.
pub fn compile(
    loaded: &Loaded,
    request: &Request,
    options: &Options,
    limits: &Limits,
    at_stage: &mut dyn FnMut(Stage),
) -> Result<Compiled, Failure> {
    let choice = choose(loaded, request, options.bytes);
    let target = &limits.of_plan().target;
    let task = Task { loaded, request, choice: &choice, limits, target };
    let (made, plan) = prove_and_lower(&task, options, at_stage)?;
    at_stage(Stage::Validate);
    validated(made, plan, &task)
}

/// The whole pipeline for one shape and one machine: what neither the schedule nor the user says, the cost model chooses. A
/// plan that asks more of a rank than the machine has is refused.
pub fn compile_for(
    loaded: &Loaded,
    request: &Request,
    wanted: &Wanted,
    topology: &Topology,
    limits: &Limits,
    at_stage: &mut dyn FnMut(Stage),
) -> Result<(Compiled, Chosen), Failure> {
    let choice = choose(loaded, request, wanted.bytes);
    let topology = &limited(topology, limits);
    let target = &topology.target();
    let options = usual(wanted, &choice, target);
    let task = Task { loaded, request, choice: &choice, limits, target };
    let (made, plan) = prove_and_lower(&task, &options, at_stage)?;

    at_stage(Stage::Choose);
    let mut again = None;
    let mut otherwise = |options: &Options| {
        // Only of small programs several layouts are made: their moves come at once.
        let (trace, graph) = match &mut again {
            Some(program) => program,
            none => none.insert(task.again()?),
        };
        let plan = schedule::schedule(trace, graph, options, &loaded.sources);
        let plan = headed(plan, &choice);
        match resources::over(&plan, target) {
            Some(_) => Ok(None),
            None => verified(plan, &task).map(Some),
        }
    };
    let (plan, chosen) = chooser::choose(plan, &options, wanted, &choice, topology, &mut otherwise)?;
    let (copies, schedule) = chooser::asking(&plan, &chosen, topology, &wanted.fixed);
    let plan = plan.asked(copies, schedule, &of_plan(&task)).map_err(|all| violations(&all, task.loaded))?;

    at_stage(Stage::Validate);
    drop(again);
    Ok((validated(made, plan, &task)?, chosen))
}

/// What is left of a program that keeps its promise, when it has become a plan.
struct Made {
    kept: Kept,
    /// The trace but for its moves, and what it leaves behind.
    head: Trace,
    ends: Ends,
}

/// A machine, with what `--limit` says of its ranks in place of what it says itself.
fn limited(topology: &Topology, limits: &Limits) -> Topology {
    Topology { resources: topology.resources.over(limits.resources), ..topology.clone() }
}

/// The usual layout, but for what is fixed; and no more blocks than there are for each copy.
fn usual(wanted: &Wanted, choice: &Choice, target: &Target) -> Options {
    let mut options = wanted.fixed.options(wanted.bytes);
    if wanted.fixed.blocks.is_none() {
        options.blocks =
            options.blocks.min(target.blocks_per_rank / choice.copies.unwrap_or(1).max(1)).max(1);
    }
    options
}

/// A proof, and verified steps. The promise of a large program is proved while it is lowered (all that lowering relies on
/// is that the graph could be built); there is no plan without it. Whoever of the two is the last to need the moves lets go of
/// them: a plan is as large as they are.
fn prove_and_lower(
    task: &Task<'_>,
    options: &Options,
    at_stage: &mut dyn FnMut(Stage),
) -> Result<(Made, VerifiedPlan), Failure> {
    let Task { loaded, request, choice, limits, target } = *task;
    let (trace, graph) = follow(loaded, request, choice.when, limits, at_stage)?;
    // Lowering takes some hundred bytes for each cell that a move brings, whether or not neighbours are one step again:
    // no more of them than there may be moves.
    let count: u64 = trace.moves.iter().map(|mv| u64::from(mv.width) * u64::from(mv.source_count)).sum();
    if count > limits.moves {
        keeps_promise(&trace, &graph, loaded, request, limits)?;
        let kind = graph::FaultKind::TooLarge { count, limit: limits.moves, what: graph::Counted::Lowered };
        let fault = graph::Fault { form: Form::Disjoint, kind, others: 0 };
        return Err(Failure::Wrong(graph_diagnostics(&[fault], &trace, loaded, request, limits)));
    }
    let is_large = graph.is_large();
    let program = Arc::new((trace, graph));
    let shared = Arc::clone(&program);
    let prove = move || {
        let (trace, graph) = &*shared;
        let kept = keeps_promise(trace, graph, loaded, request, limits)?;
        Ok(Made { kept, head: trace.without_moves(), ends: Ends::new(graph) })
    };
    let lower = |at_stage: &mut dyn FnMut(Stage)| {
        schedule::schedule_shared(program, options, &loaded.sources, &mut || at_stage(Stage::Steps))
    };
    let (plan, made) = if is_large {
        at_stage(Stage::Lower);
        let (plan, made) = join(true, || lower(at_stage), prove);
        (plan, made?)
    } else {
        let made = prove()?;
        at_stage(Stage::Lower);
        (lower(at_stage), made)
    };
    let plan = headed(plan, choice);
    if let Some(over) = resources::over(&plan, target) {
        let (trace, _) = task.again()?;
        let fault = over.blamed(&plan, &trace, &loaded.sources, target);
        let mut bindings = |mv: MoveId| elaborate::bindings(&loaded.program, request, limits, mv);
        let told = diagnostics::resources::fault(&fault, &trace, &mut bindings);
        return Err(Failure::Wrong(vec![told]));
    }
    at_stage(Stage::Verify);
    let plan = verified(plan, task)?;
    Ok((made, plan))
}

/// With what the schedule asks for.
fn headed(mut plan: Plan, choice: &Choice) -> Plan {
    plan.header.copies = choice.copies.unwrap_or(plan.header.copies);
    if choice.scheduled {
        plan.header.schedule = choice.plan.clone();
    }
    plan
}

fn verified(plan: Plan, task: &Task<'_>) -> Result<VerifiedPlan, Failure> {
    plan::verify::verify_fresh(plan, &of_plan(task)).map_err(|all| violations(&all, task.loaded))
}

fn of_plan(task: &Task<'_>) -> plan::verify::Limits {
    plan::verify::Limits { target: task.target.clone(), ..task.limits.of_plan() }
}

fn validated(made: Made, plan: VerifiedPlan, task: &Task<'_>) -> Result<Compiled, Failure> {
    let Made { kept, head, ends } = made;
    match validate::validate(&head, &ends, &plan) {
        Ok(()) => Ok(Compiled { proved: kept, plan }),
        Err(faults) => {
            let (trace, graph) = task.again()?;
            let differs = |fault| diagnostics::validate::differs(fault, fault.span(&trace, &graph));
            Err(Failure::Wrong(faults.iter().map(differs).collect()))
        }
    }
}

fn violations(all: &[plan::verify::Violation], loaded: &Loaded) -> Failure {
    Failure::Wrong(all.iter().map(|one| diagnostics::violation::violation(one, &loaded.sources)).collect())
}

fn prove_form(trace: &Trace, form: Form, limits: &Limits) -> Result<(ChunkGraph, Proof), Vec<graph::Fault>> {
    let graph = graph::build_within(trace, form, limits)?;
    let proof = graph::promise_within(trace, &graph, limits)?;
    Ok((graph, proof))
}

fn elaboration_failure(error: &elaborate::Error, loaded: &Loaded) -> Failure {
    let diagnostic = diagnostics::elaborate::error(error, &loaded.sources);
    match error {
        elaborate::Error::Excluded { why, .. } => {
            Failure::Excluded { why: why.clone(), diagnostic: Box::new(diagnostic) }
        }
        elaborate::Error::Fault(_) => Failure::Wrong(vec![diagnostic]),
    }
}

fn graph_diagnostics(
    faults: &[graph::Fault],
    trace: &Trace,
    loaded: &Loaded,
    request: &Request,
    limits: &Limits,
) -> Vec<Diagnostic> {
    let mut bindings = |mv: MoveId| elaborate::bindings(&loaded.program, request, limits, mv);
    faults.iter().map(|fault| diagnostics::graph::fault(fault, trace, &mut bindings)).collect()
}

/// `std/allreduce/ring.coll` is of module `allreduce`; `std/collectives.coll` of the empty one.
fn module_of(name: &str) -> &str {
    let inner = name.strip_prefix("std/").unwrap_or(name);
    inner.rsplit_once('/').map_or("", |(module, _)| module)
}
