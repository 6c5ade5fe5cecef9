//! `rcc check`: prove every algorithm for every shape, and say what was proved.
//!
//! In: targets, shapes, parameters. Out: a line per algorithm on standard output, diagnostics on standard error, or one
//! JSON document. The one hard idea: the compiler is pure, so every (algorithm, shape, parameters) is a job of its own;
//! threads take jobs from one list, largest worlds first, and results are put back in the order of the jobs, so that
//! what is printed does not depend on the threads.

mod report;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use compiler::check::checked::AlgorithmId;
use compiler::diagnostics::Diagnostic;
use compiler::elaborate::Request;
use compiler::limits::Limits;
use compiler::pipeline::{self, Loaded, NotByOne};
use rcc::request;

use crate::args;
use crate::failure::Failure;
use crate::output::{Output, Progress};
use crate::shape::{self, Shape};
use crate::target::{Chosen, Target};
use crate::worlds::{self, Skipped};

/// Stages recurse over trees as deep as `--limit nesting` allows.
const STACK: usize = 16 << 20;

/// What a world that is too large to be followed as a whole is refused with.
const TOO_MUCH: [&str; 5] = [
    "coll::too_many_moves",
    "coll::too_many_turns",
    "coll::too_many_places",
    "coll::too_many_elements",
    "coll::too_large",
];

/// An algorithm and what became of it.
struct Task<'a> {
    loaded: &'a Loaded,
    algorithm: AlgorithmId,
    /// Whether a rank parameter was left open, so that every rank was tried.
    every_root: bool,
    shapes: Vec<Outcome>,
    skipped: Vec<Skipped>,
}

/// What was found for one shape, all roots together.
#[derive(Default)]
struct Outcome {
    shape: Shape,
    /// How many jobs (roots) were proved.
    proved: usize,
    /// How many of them by following one rank for all.
    by_symmetry: usize,
    /// The `require` that excludes a job.
    excluded: Option<(String, Diagnostic)>,
    errors: Vec<At>,
    warnings: Vec<At>,
    /// Whether ranks that are promised the same end with the same bits; none: no two are.
    same_bits: Option<bool>,
    time: Duration,
}

/// A diagnostic, and the open rank parameters for which it came.
struct At {
    roots: Vec<(String, i64)>,
    diagnostic: Diagnostic,
}

/// What one job found.
enum Found {
    Proved { by_symmetry: bool, same_bits: Option<bool>, warnings: Vec<Diagnostic> },
    Excluded(String, Box<Diagnostic>),
    Wrong(Vec<Diagnostic>),
}

/// What is said of a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Proved,
    /// Every root is excluded by a `require`.
    Excluded,
    Wrong,
}

struct Job {
    task: usize,
    outcome: usize,
    request: Request,
    /// The rank parameters that were left open, and what they are here.
    roots: Vec<(String, i64)>,
}

/// Runs the command.
pub(crate) fn run(args: &args::Check, output: &mut Output) -> Result<(), Failure> {
    let limits = args.choice.within.limits()?;
    let asked: Vec<Shape> = args.ranks.iter().flat_map(|shapes| shapes.0.iter().cloned()).collect();
    let mut files: Vec<Chosen> = Vec::new();
    for target in &args.targets {
        files.push(Target::new(target).load(&args.choice, &limits)?);
    }
    let sound = |file: &&Chosen| file.loaded.diagnostics.is_empty();
    let of = |file: &Chosen, id: AlgorithmId| file.loaded.program.algorithm(id).clone();
    let all: Vec<_> =
        files.iter().flat_map(|file| file.algorithms.iter().map(move |&id| of(file, id))).collect();
    if files.iter().all(|file| sound(&file)) {
        request::known_params(&all.iter().collect::<Vec<_>>(), &args.choice.params)?;
    }

    let mut tasks = Vec::new();
    let mut jobs = Vec::new();
    for file in files.iter().filter(sound) {
        for &algorithm in &file.algorithms {
            add_task(&file.loaded, algorithm, &asked, &args.choice.params, &mut tasks, &mut jobs)?;
        }
    }
    if let Some(place) = &args.trace {
        let [job] = &jobs[..] else { return Err(one_job(&tasks, &jobs)) };
        return crate::history::run(place, tasks[job.task].loaded, &job.request, &limits, output);
    }
    let progress = output.progress(jobs.len() as u64, "proving");
    let found = prove_all(&tasks, &jobs, &limits, &progress);
    drop(progress);
    for (job, (found, time)) in jobs.iter().zip(found) {
        tasks[job.task].shapes[job.outcome].add(found, time, &job.roots);
    }
    if args.json { report::json(&files, &tasks, output) } else { report::text(&files, &tasks, output) }
}

/// Plans the jobs of one algorithm.
fn add_task<'a>(
    loaded: &'a Loaded,
    id: AlgorithmId,
    asked: &[Shape],
    params: &[(String, String)],
    tasks: &mut Vec<Task<'a>>,
    jobs: &mut Vec<Job>,
) -> Result<(), Failure> {
    let algorithm = loaded.program.algorithm(id);
    let given = request::given(algorithm, params)?;
    let (shapes, mut skipped) = worlds::shapes(algorithm.levels, asked);
    let mut outcomes = Vec::new();
    for shape in shapes {
        let requests = match request::every_root(&loaded.program, id, &shape, &given)? {
            Ok(requests) => requests,
            Err(why) => {
                skipped.push(Skipped { shape, why });
                continue;
            }
        };
        let outcome = outcomes.len();
        outcomes.push(Outcome { shape, ..Outcome::default() });
        jobs.extend(requests.into_iter().map(|request| {
            let open = request.params.iter().filter(|(name, _)| !given.contains_key(*name));
            let roots = open.map(|(name, value)| (name.clone(), *value)).collect();
            Job { task: tasks.len(), outcome, request, roots }
        }));
    }
    let every_root = request::is_open(algorithm, &given);
    tasks.push(Task { loaded, algorithm: id, every_root, shapes: outcomes, skipped });
    Ok(())
}

/// Does all jobs on all cores; what was found and how long it took, in the order of the jobs.
fn prove_all(
    tasks: &[Task<'_>],
    jobs: &[Job],
    limits: &Limits,
    progress: &Progress,
) -> Vec<(Found, Duration)> {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|&job| std::cmp::Reverse(shape::ranks(&jobs[job].request.shape)));
    let next = AtomicUsize::new(0);
    let found: Vec<Mutex<Option<(Found, Duration)>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while let Some(&job) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let start = Instant::now();
            let result = prove(tasks[jobs[job].task].loaded, &jobs[job].request, limits);
            *found[job].lock().unwrap_or_else(PoisonError::into_inner) = Some((result, start.elapsed()));
            progress.advance();
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(jobs.len()).max(1);
    thread::scope(|scope| {
        for _ in 0..threads {
            let started = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
            if started.is_err() {
                break;
            }
        }
    });
    // No thread could be started: the machine is full, but the work can still be done.
    work();
    let taken = found.into_iter().map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner));
    taken.flatten().collect()
}

fn prove(loaded: &Loaded, request: &Request, limits: &Limits) -> Found {
    match pipeline::prove(loaded, request, limits, &mut |_| {}) {
        Ok(proved) => {
            Found::Proved { by_symmetry: false, same_bits: proved.proof.same_bits, warnings: proved.warnings }
        }
        Err(pipeline::Failure::Excluded { why, diagnostic }) => Found::Excluded(why, diagnostic),
        Err(pipeline::Failure::Wrong(errors))
            if errors.iter().all(|error| TOO_MUCH.contains(&error.code)) =>
        {
            // Too much to follow as a whole: perhaps one rank speaks for all.
            match pipeline::prove_by_one(loaded, request, None, limits, &mut |_| {}) {
                Ok(proved) => Found::Proved {
                    by_symmetry: true,
                    same_bits: proved.proof.same_bits,
                    warnings: Vec::new(),
                },
                Err(NotByOne::Failed(pipeline::Failure::Wrong(found)))
                    if !found.iter().all(|error| TOO_MUCH.contains(&error.code)) =>
                {
                    Found::Wrong(found)
                }
                Err(_) => Found::Wrong(errors),
            }
        }
        Err(pipeline::Failure::Wrong(errors)) => Found::Wrong(errors),
    }
}

impl Outcome {
    fn add(&mut self, found: Found, time: Duration, roots: &[(String, i64)]) {
        let at = |diagnostic| At { roots: roots.to_vec(), diagnostic };
        self.time += time;
        match found {
            Found::Proved { by_symmetry, same_bits, warnings } => {
                self.proved += 1;
                self.by_symmetry += usize::from(by_symmetry);
                self.same_bits = match (self.same_bits, same_bits) {
                    (Some(known), Some(here)) => Some(known && here),
                    (known, here) => known.or(here),
                };
                self.warnings.extend(warnings.into_iter().map(at));
            }
            Found::Excluded(why, diagnostic) => self.excluded = Some((why, *diagnostic)),
            Found::Wrong(errors) => self.errors.extend(errors.into_iter().map(at)),
        }
    }

    fn verdict(&self) -> Verdict {
        match (self.errors.is_empty(), self.proved) {
            (false, _) => Verdict::Wrong,
            (true, 0) => Verdict::Excluded,
            (true, _) => Verdict::Proved,
        }
    }
}

/// `--trace` follows one value of one program.
fn one_job(tasks: &[Task<'_>], jobs: &[Job]) -> Failure {
    let (algorithms, shapes) = (tasks.len(), tasks.iter().map(|task| task.shapes.len()).sum::<usize>());
    Failure::usage_help(
        format!("--trace follows one value of one program, and this is {} of them", jobs.len()),
        match (algorithms, shapes) {
            (2.., _) => "choose an algorithm with --algorithm",
            (_, 2..) => "choose a world shape, as in --ranks 4",
            _ => "choose a root, as in --param root=0",
        },
    )
}
