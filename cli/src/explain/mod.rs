//! `rcc explain`: an error code at length, what plans cost, or which of them a call would run.
//!
//! In: a code, or targets, sizes, a topology; or a collective. Out: the code's page, or for each size all plans side by side: what the
//! cost model predicts, what it chose, what the time is spent on, and how far that is from the least possible.
//!
//! - `selected`: which plan a call would run, and why not others.
//! - `subject`: from targets to plans, for each size. `report`: what is told of one plan at one size, as data, which is also
//!   the JSON. `text`: the same for people. `measure`: the same calls on this machine.

mod measure;
mod report;
mod selected;
mod subject;
mod text;

use std::path::Path;

use compiler::diagnostics::explain as pages;

use self::report::Report;
use self::subject::Subjects;
use crate::args;
use crate::failure::Failure;
use crate::machine;
use crate::output::Output;

/// Runs the command.
pub(crate) fn run(args: &args::Explain, output: &mut Output) -> Result<(), Failure> {
    if args.list {
        if args.json {
            return output.json(&pages::codes().collect::<Vec<_>>());
        }
        for code in pages::codes() {
            output.line(code)?;
        }
        return Ok(());
    }
    if let Some(collective) = &args.collective {
        return selected::run(collective, args, output);
    }
    let Some(first) = args.subjects.first() else { return Err(Failure::usage("nothing to explain")) };
    match code(first)? {
        None => costs(args, output),
        Some(_) if args.json => Err(Failure::usage("--json is for costs: the page of a code is text")),
        Some(page) if args.subjects.len() == 1 => output.text(&plain(page)),
        Some(_) => Err(Failure::usage("one code at a time, and no files beside it")),
    }
}

/// The page of a code; none if the argument names something else.
fn code(subject: &Path) -> Result<Option<&'static str>, Failure> {
    let text = subject.to_string_lossy();
    if let Some(page) = pages::explain(&text).or_else(|| pages::explain(&format!("coll::{text}"))) {
        return Ok(Some(page));
    }
    // A code is two words joined by `::`, a bare word that no file is called; everything else is a file.
    let looks_like_code = text.starts_with("coll::") || text.starts_with("plan::");
    let bare = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':') && !subject.exists();
    if looks_like_code || (bare && !(text == "std" || text.starts_with("std::"))) {
        let near = pages::nearest(&text).map(|near| format!("did you mean `{near}`?"));
        let help = near.unwrap_or_else(|| "`rcc explain --list` lists all codes".to_string());
        return Err(Failure::usage_help(format!("there is no error code or file `{text}`"), help));
    }
    Ok(None)
}

/// Every plan at every size.
fn costs(args: &args::Explain, output: &mut Output) -> Result<(), Failure> {
    let named = args.topology.as_deref().map(machine::named).transpose()?;
    if args.measure && named.as_ref().is_none_or(|machine| machine.levels.len() > 1) {
        return Err(Failure::usage_help(
            "--measure compares the model with this machine",
            "name what describes it, as in --topology 2-cores",
        ));
    }
    let machine_for = |ranks: u32| machine::for_ranks(named.as_ref(), ranks);
    let mut subjects = Subjects::load(args, &machine_for, output)?;
    let mut told: Vec<Report> = Vec::new();
    for (i, &bytes) in args.bytes.iter().enumerate() {
        let mut plans = Vec::new();
        for subject in subjects.at(bytes, output)? {
            let busy = output.busy("following the plan");
            let report = report::report(&subject, bytes, args);
            drop(busy);
            plans.push((subject, report?));
        }
        if args.measure {
            let busy = output.busy("measuring");
            let measured = measure::measure(&plans, args);
            drop(busy);
            for ((_, report), measured) in plans.iter_mut().zip(measured?) {
                report.measured = Some(measured);
            }
        }
        let mut reports: Vec<Report> = plans.into_iter().map(|(_, report)| report).collect();
        reports.sort_by(|a, b| a.time_us.total_cmp(&b.time_us));
        if !args.json {
            if i > 0 {
                output.line("")?;
            }
            text::size(&reports, output)?;
            output.flush()?;
        }
        told.append(&mut reports);
    }
    if args.json { output.json(&told) } else { text::legend(&told, output) }
}

/// A page without the fences of its programs, which are indented instead.
fn plain(page: &str) -> String {
    let mut inside = false;
    let mut text = String::with_capacity(page.len());
    for line in page.lines() {
        if line.starts_with("```") {
            inside = !inside;
            continue;
        }
        let indent = if inside && !line.is_empty() { "    " } else { "" };
        text += indent;
        text += line.strip_prefix("# ").unwrap_or(line);
        text.push('\n');
    }
    text
}
