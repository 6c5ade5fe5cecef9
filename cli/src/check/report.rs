//! What `rcc check` says: text for people, JSON for programs.
//!
//! In: the files and their tasks. Out: lines on standard output and diagnostics on standard error, or one document. A
//! fault that shows at many shapes is shown once, at the first, and a warning once for its place in the source.

use std::cmp::Reverse;
use std::time::Duration;

use compiler::diagnostics::{Diagnostic, Severity};
use compiler::source::Sources;
use plan::plan::ProofStatus;
use serde::Serialize;

use super::{At, Outcome, Task, Verdict};
use crate::failure::Failure;
use crate::output::{Output, Paint};
use crate::said::{self, Said};
use crate::shape::{self, Shape};
use crate::target::Chosen;

/// More faults than this of one algorithm are counted only.
const SHOWN: usize = 10;

/// See `said_once`.
const PROMISE: &str = "coll::promise";

/// Text; fails if anything is wrong.
pub(super) fn text(files: &[Chosen], tasks: &[Task<'_>], output: &mut Output) -> Result<(), Failure> {
    let mut right = true;
    for file in files {
        for diagnostic in &file.loaded.diagnostics {
            output.diagnostic(diagnostic, &file.loaded.sources);
            right = false;
        }
    }
    let width = |of: fn(&Task<'_>) -> usize| tasks.iter().map(of).max().unwrap_or(0);
    let widths = (width(|task| name(task).len()), width(|task| collective(task).len()));
    for task in tasks {
        right &= line(task, widths, output)?;
    }
    for file in files.iter().filter(|file| file.algorithms.is_empty() && file.loaded.diagnostics.is_empty()) {
        let collectives = file
            .loaded
            .program
            .collectives()
            .filter(|&id| file.loaded.files.contains(&file.loaded.program.collective(id).file));
        for id in collectives {
            let name = &file.loaded.program.collective(id).name;
            output.line(&format!("well formed  {name}, a collective; nothing here implements it"))?;
        }
    }
    if right { Ok(()) } else { Err(Failure::Wrong) }
}

/// The line of one algorithm, and what there is to say about it; whether it is right.
fn line(task: &Task<'_>, widths: (usize, usize), output: &mut Output) -> Result<bool, Failure> {
    let with = |verdict: Verdict| -> Vec<&Outcome> {
        task.shapes.iter().filter(|outcome| outcome.verdict() == verdict).collect()
    };
    let (proved, wrong) = (with(Verdict::Proved), with(Verdict::Wrong));
    let time = show_time(task.shapes.iter().map(|outcome| outcome.time).sum());
    let (verdict, paint) = match (wrong.is_empty(), proved.is_empty()) {
        (false, _) => ("WRONG ", Paint::Red),
        (true, true) => ("NOTHING", Paint::Red),
        (true, false) => ("proved", Paint::Green),
    };
    let shapes = |outcomes: &[&Outcome]| {
        let shapes: Vec<Shape> = outcomes.iter().map(|outcome| outcome.shape.clone()).collect();
        let flat = shapes.iter().all(|shape| shape.len() == 1);
        format!("{}{}", if flat { "n = " } else { "" }, shape::show_all(&shapes))
    };
    let mut said = match (wrong.is_empty(), proved.is_empty()) {
        (false, true) => format!("for {}", shapes(&wrong)),
        (false, false) => format!("for {} (proved for {})", shapes(&wrong), shapes(&proved)),
        (true, true) => "no world shape is left".to_string(),
        (true, false) => format!("for {}", shapes(&proved)),
    };
    if task.every_root && !proved.is_empty() {
        said += ", every root";
    }
    let (by_symmetry, whole): (Vec<&Outcome>, Vec<&Outcome>) =
        proved.iter().partition(|outcome| outcome.by_symmetry > 0);
    said += &match (by_symmetry.is_empty(), whole.is_empty()) {
        (true, _) => String::new(),
        (false, true) => ", by symmetry".to_string(),
        (false, false) => format!(" ({} by symmetry)", shapes(&by_symmetry)),
    };
    if !proved.is_empty() && wrong.is_empty() {
        // Of collectives that promise no two ranks the same there is nothing to say.
        let known: Vec<bool> = proved.iter().filter_map(|outcome| outcome.same_bits).collect();
        said += match (known.is_empty(), known.iter().all(|&same| same)) {
            (true, _) => "",
            (false, true) => "; same bits on all ranks",
            (false, false) => "; bits may differ between ranks",
        };
    }
    output.line(&format!(
        "{}  {:name_width$}  {:collective_width$}  {said}  ({time})",
        output.paint(verdict, paint),
        name(task),
        collective(task),
        name_width = widths.0,
        collective_width = widths.1,
    ))?;
    skipped(task, output)?;

    let faults =
        task.shapes.iter().flat_map(|outcome| outcome.errors.iter().map(move |error| (outcome, error)));
    said_once(faults, &task.loaded.sources, output);
    let warnings = task.shapes.iter().flat_map(|outcome| outcome.warnings.iter().map(move |w| (outcome, w)));
    said_once(warnings, &task.loaded.sources, output);
    if proved.is_empty() && wrong.is_empty() {
        let require = task.shapes.iter().find_map(|outcome| outcome.excluded.as_ref());
        match require {
            Some((_, diagnostic)) => output.diagnostic(diagnostic, &task.loaded.sources),
            None => output.note(&format!("error: {} was not proved for any world shape", name(task))),
        }
    }
    Ok(wrong.is_empty() && !proved.is_empty())
}

/// Shapes left out, by reason.
fn skipped(task: &Task<'_>, output: &mut Output) -> Result<(), Failure> {
    let excluded = task.shapes.iter().filter(|outcome| outcome.verdict() == Verdict::Excluded);
    let excluded =
        excluded.filter_map(|outcome| Some((&outcome.shape, outcome.excluded.as_ref()?.0.as_str())));
    let misfits = task.skipped.iter().map(|skipped| (&skipped.shape, skipped.why.as_str()));
    let mut reasons: Vec<(&str, Vec<Shape>)> = Vec::new();
    for (shape, why) in excluded.chain(misfits) {
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, shapes)) => shapes.push(shape.clone()),
            None => reasons.push((why, vec![shape.clone()])),
        }
    }
    for (why, shapes) in reasons {
        output.line(&format!("        skipped {} ({}): {why}", shapes.len(), shape::show_all(&shapes)))?;
    }
    Ok(())
}

/// A distinct diagnostic, where it came first, and at which shapes it came.
struct Distinct<'a> {
    first: &'a At,
    shapes: Vec<Shape>,
}

/// Draws each distinct diagnostic once, and says where it came and for which other shapes.
fn said_once<'a>(found: impl Iterator<Item = (&'a Outcome, &'a At)>, sources: &Sources, output: &mut Output) {
    let mut distinct: Vec<Distinct<'_>> = Vec::new();
    let mut failing: Vec<Shape> = Vec::new();
    for (outcome, at) in found {
        let place = |at: &At| at.diagnostic.labels.first().map(|label| label.span);
        let same = |known: &&mut Distinct<'_>| {
            known.first.diagnostic.code == at.diagnostic.code && place(known.first) == place(at)
        };
        match distinct.iter_mut().find(same) {
            Some(known) if known.shapes.last() != Some(&outcome.shape) => {
                known.shapes.push(outcome.shape.clone());
            }
            Some(_) => {}
            None => distinct.push(Distinct { first: at, shapes: vec![outcome.shape.clone()] }),
        }
        if at.diagnostic.code == PROMISE && !failing.contains(&outcome.shape) {
            failing.push(outcome.shape.clone());
        }
    }
    // Of a broken promise every shape and root tells its first place only, and these differ: it is one fault, told
    // where it is typical (at half of the shapes at least) and where most is known about it.
    let promise = (distinct.iter().enumerate())
        .filter(|(_, known)| known.first.diagnostic.code == PROMISE)
        .max_by_key(|(index, known)| {
            let typical = known.shapes.len() * 2 >= failing.len();
            (typical, known.first.diagnostic.labels.len(), known.shapes.len(), Reverse(*index))
        })
        .map(|(index, _)| index);
    let told = (distinct.iter().enumerate())
        .filter(|(index, known)| known.first.diagnostic.code != PROMISE || promise == Some(*index))
        .map(|(_, known)| known);
    let (shown, rest): (Vec<_>, Vec<_>) = told.enumerate().partition(|(count, _)| *count < SHOWN);
    for (_, Distinct { first, shapes }) in shown {
        output.diagnostic(&first.diagnostic, sources);
        let all = if first.diagnostic.code == PROMISE { &failing } else { shapes };
        let others: Vec<Shape> = all.iter().filter(|shape| **shape != shapes[0]).cloned().collect();
        if first.diagnostic.severity == Severity::Error && (!others.is_empty() || !first.roots.is_empty()) {
            let roots: String =
                first.roots.iter().map(|(name, value)| format!(" --param {name}={value}")).collect();
            let also = match others.is_empty() {
                true => String::new(),
                false => format!("; it fails for {} too", shape::show_all(&others)),
            };
            output.note(&format!("  (shown for --ranks {}{roots}{also})\n", shape::show(&shapes[0])));
        }
    }
    if !rest.is_empty() {
        output.note(&format!("  (and {} more)\n", rest.len()));
    }
}

/// JSON; fails if anything is wrong.
pub(super) fn json(files: &[Chosen], tasks: &[Task<'_>], output: &mut Output) -> Result<(), Failure> {
    let mut entries = Vec::new();
    for file in files.iter().filter(|file| !file.loaded.diagnostics.is_empty()) {
        let all = file.loaded.diagnostics.iter();
        entries.push(Entry {
            algorithm: None,
            collective: None,
            shape: None,
            proved: Some(false),
            proof: None,
            diagnostics: all.map(|diagnostic| Said::new(diagnostic, &file.loaded.sources)).collect(),
            ms: 0.0,
        });
    }
    for task in tasks {
        let all = task.shapes.iter().filter(|outcome| outcome.verdict() != Verdict::Excluded);
        let left = all.count();
        for outcome in &task.shapes {
            let excluded = outcome.excluded.iter().map(|(_, diagnostic)| diagnostic);
            let diagnostics = outcome.errors.iter().chain(&outcome.warnings).map(|at| &at.diagnostic);
            let (proved, diagnostics): (_, Vec<&Diagnostic>) = match outcome.verdict() {
                Verdict::Proved => (Some(true), diagnostics.collect()),
                Verdict::Wrong => (Some(false), diagnostics.collect()),
                // Skipped; but if every shape is, that is an error.
                Verdict::Excluded => ((left == 0).then_some(false), excluded.collect()),
            };
            let mut said: Vec<Said> =
                diagnostics.iter().map(|d| Said::new(d, &task.loaded.sources)).collect();
            said.dedup();
            entries.push(Entry {
                algorithm: Some(name(task).to_string()),
                collective: Some(collective(task).to_string()),
                shape: Some(outcome.shape.clone()),
                proved,
                proof: (proved == Some(true)).then(|| status(outcome)),
                diagnostics: said,
                ms: outcome.time.as_secs_f64() * 1e3,
            });
        }
        for skipped in &task.skipped {
            let none_left = left == 0 && task.shapes.is_empty();
            entries.push(Entry {
                algorithm: Some(name(task).to_string()),
                collective: Some(collective(task).to_string()),
                shape: Some(skipped.shape.clone()),
                proved: none_left.then_some(false),
                proof: None,
                diagnostics: Vec::new(),
                ms: 0.0,
            });
        }
    }
    output.json(&entries)?;
    if entries.iter().any(|entry| entry.proved == Some(false)) { Err(Failure::Wrong) } else { Ok(()) }
}

/// One algorithm at one shape.
#[derive(Serialize)]
struct Entry {
    algorithm: Option<String>,
    collective: Option<String>,
    shape: Option<Shape>,
    /// null: skipped.
    proved: Option<bool>,
    /// Which ranks were followed.
    proof: Option<&'static str>,
    diagnostics: Vec<Said>,
    ms: f64,
}

fn status(outcome: &Outcome) -> &'static str {
    said::status(if outcome.by_symmetry > 0 { ProofStatus::BySymmetry } else { ProofStatus::AllRanks })
}

fn name<'a>(task: &'a Task<'_>) -> &'a str {
    &task.loaded.program.algorithm(task.algorithm).name
}

fn collective<'a>(task: &'a Task<'_>) -> &'a str {
    let program = &task.loaded.program;
    &program.collective(program.algorithm(task.algorithm).collective).name
}

fn show_time(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}
