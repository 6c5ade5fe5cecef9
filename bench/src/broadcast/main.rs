//! `broadcast`: a pipelined chain against what this machine can copy.
//!
//! In: ranks, bytes. Out: a table (or JSON): how fast this machine copies, on as many cores as it has for the ranks at
//! once; for `std::broadcast::chain` through slots and with ranks that reach into each other's memory, the bytes that
//! its plan copies, the time that it takes in slices and in one slice, and the ratios. Copies and calls take turns within
//! one run, so that a machine that slows down slows down both; medians of all turns count.
//!
//! Two limits are told apart. Every byte that a step stores is a copy, those into slots too; but slots stay in the
//! caches, so the harder limit counts only what ends in users' memory.
#![allow(clippy::disallowed_methods, reason = "a benchmark has a clock and reads what the system says of it")]

mod call;
mod copies;
mod rate;
mod table;

use std::process::ExitCode;

use clap::Parser;

use crate::call::Variant;
use crate::table::Report;

/// Compares a pipelined broadcast with the rate at which this machine copies.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Args {
    /// Ranks of the chain, each a process.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=64))]
    ranks: u32,
    /// MiB that are broadcast.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    mib: u32,
    /// How often copies and all variants are measured in turn.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Measured calls of a variant in a round.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    iterations: u32,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
    /// Exits with status 1 if a target is missed.
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    // A rank of one of the calls below.
    if let Some(status) = runtime::launch::child_entry() {
        return u8::try_from(status).map_or(ExitCode::FAILURE, ExitCode::from);
    }
    let args = Args::parse();
    match run(&args) {
        Ok(report) if report.met || !args.check => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> Result<Report, String> {
    let bytes = u64::from(args.mib) << 20;
    let cores = runtime::cpus::allowed().min(args.ranks as usize);
    let variants: Vec<Variant> =
        call::PATHS.iter().map(|path| Variant::new(path, args.ranks, bytes)).collect::<Result<_, _>>()?;
    let mut rates = rate::Rates::default();
    let mut times = vec![call::Times::default(); variants.len()];
    for round in 0..args.rounds {
        rates.measure(cores, bytes as usize, variants[0].slice_bytes as usize);
        for (variant, times) in variants.iter().zip(&mut times) {
            // Whether results are right is looked at once: it takes longer than the calls.
            variant.measure(args.iterations, round == 0, times)?;
        }
    }
    let report = Report::new(args.ranks, bytes, cores, &rates, &variants, &times);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?);
    } else {
        print!("{}", report.text());
    }
    Ok(report)
}
