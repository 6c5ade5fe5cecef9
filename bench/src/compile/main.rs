//! `compile`: how long the compiler takes, and how much memory, from text to verified plan.
//!
//! In: the list of programs in `programs`. Out: a table (or JSON): per program its stages, total, peak memory, the target
//! that we have set ourselves, and what MSCCLang takes; then how time grows with the number of moves. Each program is
//! compiled in a process of its own, so that its peak is its own, several times; the fastest run counts, since a busy
//! machine only ever adds. Before each, memory is touched (`pages`). CPU time is told beside wall time: where the two differ, the machine was busy.
#![allow(clippy::disallowed_methods, reason = "a benchmark has a clock and reads what the system says of it")]

#[path = "../../../cli/src/allocator.rs"]
mod allocator;
mod measure;
mod pages;
mod programs;
mod slope;
mod table;

use std::process::{Command, ExitCode};

use clap::Parser;

use crate::measure::Measured;
use crate::programs::{FAMILIES, Family, PROGRAMS, Program};

/// Measures how long compilations take.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Args {
    /// Prints JSON.
    #[arg(long)]
    json: bool,
    /// How often each program is compiled.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Only programs whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// Leaves out the growth of time with the number of moves.
    #[arg(long)]
    no_slope: bool,
    /// Exits with status 1 if a target is missed.
    #[arg(long)]
    check: bool,
    /// Compiles `ALGORITHM SHAPE` in this process and prints what it took; what the others call.
    #[arg(long, num_args = 2, hide = true)]
    one: Option<Vec<String>>,
    /// Touches memory and prints how fast; what the others call.
    #[arg(long, hide = true)]
    touch: bool,
}

fn main() -> ExitCode {
    allocator::keep_pages();
    let args = Args::parse();
    match run(&args) {
        Ok(met) if met || !args.check => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

/// Whether all targets are met.
fn run(args: &Args) -> Result<bool, String> {
    if let Some(one) = &args.one {
        let [algorithm, shape] = &one[..] else { return Err("--one takes two values".to_string()) };
        let measured = measure::compile(algorithm, &programs::shape(shape)?)?;
        println!("{}", serde_json::to_string(&measured).map_err(|error| error.to_string())?);
        return Ok(true);
    }
    if args.touch {
        println!("{}", pages::touch());
        return Ok(true);
    }
    // The slower, the longer the machine has been at rest.
    let first_touch = pages::fetch()?;
    let wanted = |program: &&Program| args.only.as_ref().is_none_or(|only| program.name().contains(only));
    let measure = |program: &'static Program| (program, best(program.algorithm, program.shape, args.runs));
    let rows: Vec<(&Program, Result<Measured, String>)> =
        PROGRAMS.iter().filter(wanted).map(measure).collect();
    let mut slopes = Vec::new();
    for family in FAMILIES.iter().filter(|_| !args.no_slope && args.only.is_none()) {
        slopes.push((family, points(family, args.runs)?));
    }
    pages::fetch()?;
    let pages = table::Pages { first_touch, touched_before: pages::fetch()? };
    let report = table::Report::new(&rows, &slopes, pages);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?);
    } else {
        print!("{}", report.text());
    }
    Ok(report.met)
}

fn points(family: &Family, runs: u32) -> Result<Vec<Measured>, String> {
    let point = |&n: &u32| best(family.algorithm, &n.to_string(), runs);
    family.ranks.iter().map(point).collect()
}

/// The fastest of several runs, each in its own process.
fn best(algorithm: &str, shape: &str, runs: u32) -> Result<Measured, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut best: Option<Measured> = None;
    for _ in 0..runs {
        pages::fetch()?;
        let output = Command::new(&program)
            .args(["--one", algorithm, shape])
            .output()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{algorithm} on {shape}: {}\n{said}", output.status));
        }
        let measured: Measured = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
        if best.as_ref().is_none_or(|best| measured.total_ms < best.total_ms) {
            best = Some(measured);
        }
    }
    best.ok_or_else(|| "no runs".to_string())
}
