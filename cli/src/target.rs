//! What a command works on: a source file, a plan, or standard algorithms by name.
//!
//! In: an argument. Out: parsed and checked sources with the algorithms that were meant, or a verified plan. A
//! name that begins with `std` is one of the standard library (`./std` is a file of that name); a file that ends in `.plan` is a plan.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use compiler::check::checked::AlgorithmId;
use compiler::limits::Limits;
use compiler::pipeline::{self, Loaded};
use plan::file::{LoadError, LoadLimits};
use plan::fold::Folded;
use plan::plan::Plan;
use plan::verify::{VerifiedFolded, VerifiedPlan, Violation};
use rcc::collective::Collective;

use crate::args::Choice;
use crate::failure::Failure;
use crate::output::Output;

/// More than this is not read at all, whatever `--limit` says.
const MOST_BYTES: u64 = 256 << 20;

/// What standard input is called in messages.
pub(crate) const STDIN: &str = "standard input";

/// What an argument names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// Standard algorithms: `std`, `std::allreduce`, `std::allreduce::ring`.
    Standard(String),
    /// A plan.
    Plan(PathBuf),
    /// A source file.
    Source(PathBuf),
}

/// Sources and the algorithms in them that were meant, in the order of the program.
pub(crate) struct Chosen {
    /// Everything.
    pub(crate) loaded: Loaded,
    /// What was meant.
    pub(crate) algorithms: Vec<AlgorithmId>,
}

impl Target {
    /// Tells what an argument names.
    pub(crate) fn new(argument: &Path) -> Target {
        let text = argument.to_string_lossy();
        if text == "std" || text.starts_with("std::") {
            Target::Standard(text.into_owned())
        } else if argument.extension().is_some_and(|ending| ending == "plan") {
            Target::Plan(argument.to_path_buf())
        } else {
            Target::Source(argument.to_path_buf())
        }
    }

    /// The standard algorithms of a collective.
    pub(crate) fn standard(collective: Collective) -> Target {
        Target::Standard(format!("std::{collective}"))
    }

    /// The collective, if it names no more than that: `std::allreduce`.
    pub(crate) fn collective(&self) -> Option<Collective> {
        match self {
            Target::Standard(name) => Collective::exactly(name),
            Target::Plan(_) | Target::Source(_) => None,
        }
    }

    /// The target as the user named it.
    pub(crate) fn name(&self) -> String {
        match self {
            Target::Standard(name) => name.clone(),
            Target::Plan(path) | Target::Source(path) => path.display().to_string(),
        }
    }

    /// Reads, parses and checks; diagnostics are left in [`Chosen::loaded`]. The algorithms are all of the file (of one
    /// with schedules only, those that they are for), or those that the name and `--algorithm` leave. Schedules that
    /// `--schedule` names must be for one of them.
    pub(crate) fn load(&self, asked: &Choice, limits: &Limits) -> Result<Chosen, Failure> {
        let schedules = match &asked.schedule {
            None => None,
            Some(path) if path.as_os_str() == "-" && *self == Target::Source("-".into()) => {
                return Err(Failure::usage("standard input cannot be both the program and its schedule"));
            }
            Some(path) => Some((name_of(path), read(path)?)),
        };
        let chosen = self.choose(asked.algorithm.as_deref(), schedules.as_ref(), limits)?;
        if let (Some(path), true) = (&asked.schedule, chosen.loaded.diagnostics.is_empty()) {
            scheduled(&chosen, path)?;
        }
        Ok(chosen)
    }

    fn choose(
        &self,
        algorithm: Option<&str>,
        schedules: Option<&(String, Vec<u8>)>,
        limits: &Limits,
    ) -> Result<Chosen, Failure> {
        match self {
            Target::Plan(path) => Err(Failure::usage_help(
                format!("{} is a plan, not a source file", path.display()),
                "`rcc show`, `rcc run`, `rcc bench` and `rcc explain` take plans",
            )),
            Target::Standard(name) => {
                let loaded = pipeline::load_scheduled(&[], schedules, limits);
                let algorithms = standard(&loaded, name)?;
                choose(loaded, algorithms, algorithm, name)
            }
            Target::Source(path) => {
                let bytes = read(path)?;
                let name = name_of(path);
                let loaded = pipeline::load_scheduled(&[(name.clone(), bytes)], schedules, limits);
                let here = |id: &AlgorithmId| loaded.files.contains(&loaded.program.algorithm(*id).file);
                let mut algorithms: Vec<AlgorithmId> = loaded.program.algorithms().filter(here).collect();
                let wanted = |id: &AlgorithmId| algorithm.is_none_or(|name| is_called(&loaded, *id, name));
                if !algorithms.iter().any(wanted) {
                    let spoken_of = |id: &AlgorithmId| {
                        let schedule = loaded.program.algorithm(*id).schedule.as_ref();
                        !here(id) && schedule.is_some_and(|schedule| loaded.files.contains(&schedule.file))
                    };
                    algorithms.extend(loaded.program.algorithms().filter(spoken_of));
                }
                if !loaded.diagnostics.is_empty() {
                    // What is missing may be missing because of an error.
                    return Ok(Chosen { loaded, algorithms });
                }
                choose(loaded, algorithms, algorithm, &name)
            }
        }
    }

    /// The one algorithm that was meant.
    pub(crate) fn load_one(
        &self,
        asked: &Choice,
        limits: &Limits,
        output: &mut Output,
    ) -> Result<(Loaded, AlgorithmId), Failure> {
        let Chosen { loaded, algorithms } = self.load(asked, limits)?;
        report(&loaded, output)?;
        match algorithms[..] {
            [one] => Ok((loaded, one)),
            [] => Err(Failure::usage(format!("{} has no algorithm", self.name()))),
            _ => {
                let names = names(&loaded, &algorithms);
                let help = match self {
                    Target::Standard(_) => format!("name one of them: {names}"),
                    _ => format!("choose one with --algorithm: {names}"),
                };
                Err(Failure::usage_help(format!("{} has {} algorithms", self.name(), algorithms.len()), help))
            }
        }
    }
}

/// What a file is called in messages.
fn name_of(path: &Path) -> String {
    if path.as_os_str() == "-" { STDIN.to_string() } else { path.display().to_string() }
}

/// Refuses a file of schedules that has none for what is at hand.
fn scheduled(chosen: &Chosen, path: &Path) -> Result<(), Failure> {
    let program = &chosen.loaded.program;
    let from_it = |id: AlgorithmId| {
        let schedule = program.algorithm(id).schedule.as_ref();
        schedule.is_some_and(|schedule| Some(schedule.file) == chosen.loaded.schedules)
    };
    if chosen.algorithms.iter().any(|&id| from_it(id)) {
        return Ok(());
    }
    let others: Vec<&str> = program
        .algorithms()
        .filter(|&id| from_it(id))
        .map(|id| program.algorithm(id).name.as_str())
        .collect();
    let wanted = chosen.algorithms.first().map_or("NAME", |&id| program.algorithm(id).name.as_str());
    let what = match chosen.algorithms.len() {
        1 => format!("for `{wanted}`"),
        _ => "for any of these algorithms".to_string(),
    };
    let help = match others.is_empty() {
        true => format!("write `schedule for {wanted} {{ channels 4 }}`"),
        false => format!("it has one for {}", others.join(", ")),
    };
    Err(Failure::usage_help(format!("{} has no schedule {what}", name_of(path)), help))
}

/// Prints what `load` found wrong, and fails if that is anything.
pub(crate) fn report(loaded: &Loaded, output: &mut Output) -> Result<(), Failure> {
    for diagnostic in &loaded.diagnostics {
        output.diagnostic(diagnostic, &loaded.sources);
    }
    if loaded.diagnostics.is_empty() { Ok(()) } else { Err(Failure::Wrong) }
}

/// Reads a file, however it may be spoilt; `-` is standard input.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let failure = |error: std::io::Error| Failure::file("read", path, &error);
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().lock().take(MOST_BYTES + 1).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes))
    };
    read.map_err(failure)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(Failure::usage(format!(
            "{} is larger than {}",
            path.display(),
            crate::size::show(MOST_BYTES)
        )));
    }
    Ok(bytes)
}

/// A plan that was proved here.
pub(crate) enum Judged {
    /// Of all ranks.
    Whole(VerifiedPlan),
    /// Of the ranks that stand for all.
    Folded(VerifiedFolded),
}

/// Reads a plan and proves it anew; what a plan says of itself is not believed.
pub(crate) fn judge_plan(path: &Path, limits: &Limits, output: &mut Output) -> Result<Judged, Failure> {
    let bytes = read(path)?;
    let allowed = LoadLimits { bytes: MOST_BYTES, ..LoadLimits::of(&limits.of_plan()) };
    let mut unread = |error| {
        output.note(&format!("error: cannot read the plan {}: {error}", path.display()));
        if error == LoadError::NotAPlan {
            output.note("\n  help: a plan is made of a program: rcc compile FILE --ranks 8 -o FILE.plan");
        }
        Failure::Wrong
    };
    if Folded::begins(&bytes) {
        let folded = Folded::from_bytes(&bytes, &allowed).map_err(&mut unread)?;
        let judged = plan::verify::verify_folded(folded, &limits.of_plan());
        return judged.map(Judged::Folded).map_err(|violations| refused(path, &violations, output));
    }
    let plan = Plan::from_bytes(&bytes, &allowed).map_err(&mut unread)?;
    let judged = plan::verify::verify(plan, &limits.of_plan());
    judged.map(Judged::Whole).map_err(|violations| refused(path, &violations, output))
}

/// The same, of all ranks: a folded plan is spelled out, and proved once more as a whole.
pub(crate) fn read_plan(path: &Path, limits: &Limits, output: &mut Output) -> Result<VerifiedPlan, Failure> {
    match judge_plan(path, limits, output)? {
        Judged::Whole(plan) => Ok(plan),
        Judged::Folded(folded) => {
            folded.unfold(&limits.of_plan()).map_err(|violations| refused(path, &violations, output))
        }
    }
}

fn refused(path: &Path, violations: &[Violation], output: &mut Output) -> Failure {
    output.note(&format!("error: the plan {} is refused", path.display()));
    for violation in violations {
        output.note(&format!("\n{violation}"));
    }
    Failure::Wrong
}

/// The standard algorithms that a name covers.
fn standard(loaded: &Loaded, name: &str) -> Result<Vec<AlgorithmId>, Failure> {
    let of = |id: AlgorithmId| loaded.program.algorithm(id).name.as_str();
    let covered = |id: &AlgorithmId| {
        let rest = of(*id).strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let found: Vec<AlgorithmId> = loaded.program.algorithms().filter(covered).collect();
    if found.is_empty() {
        let all: Vec<&str> =
            loaded.program.algorithms().map(of).filter(|name| name.starts_with("std::")).collect();
        let help = nearest(name, &all).map(|near| format!("did you mean `{near}`?"));
        let help = help.unwrap_or_else(|| format!("there are {}", all.join(", ")));
        return Err(Failure::usage_help(format!("there is no standard algorithm `{name}`"), help));
    }
    Ok(found)
}

/// Leaves the algorithm that `--algorithm` names.
fn choose(
    loaded: Loaded,
    algorithms: Vec<AlgorithmId>,
    wanted: Option<&str>,
    target: &str,
) -> Result<Chosen, Failure> {
    let Some(wanted) = wanted else { return Ok(Chosen { loaded, algorithms }) };
    let named = |id: &AlgorithmId| is_called(&loaded, *id, wanted);
    let found: Vec<AlgorithmId> = algorithms.iter().copied().filter(named).collect();
    if found.is_empty() {
        let help = match algorithms.len() {
            0 => "it has none".to_string(),
            _ => format!("it has {}", names(&loaded, &algorithms)),
        };
        return Err(Failure::usage_help(format!("{target} has no algorithm `{wanted}`"), help));
    }
    Ok(Chosen { loaded, algorithms: found })
}

/// Whether that is an algorithm's name, or the last part of it.
fn is_called(loaded: &Loaded, id: AlgorithmId, name: &str) -> bool {
    let full = &loaded.program.algorithm(id).name;
    full == name || full.rsplit("::").next() == Some(name)
}

fn names(loaded: &Loaded, algorithms: &[AlgorithmId]) -> String {
    let names = algorithms.iter().map(|&id| loaded.program.algorithm(id).name.as_str());
    names.collect::<Vec<_>>().join(", ")
}

/// The known name most like a given one, if one is like it.
pub(crate) fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    let tail = |name: &'a str| name.rsplit("::").next().unwrap_or(name);
    let given_tail = given.rsplit("::").next().unwrap_or(given);
    let distance = |name: &'a str| {
        let whole = strsim::osa_distance(name, given);
        whole.min(strsim::osa_distance(tail(name), given_tail) + 1)
    };
    // Many have the same last name: of those, the one that is nearest as a whole.
    let near =
        known.iter().copied().min_by_key(|name| (distance(name), strsim::osa_distance(name, given)))?;
    (distance(near) * 3 <= given.len().max(3)).then_some(near)
}
