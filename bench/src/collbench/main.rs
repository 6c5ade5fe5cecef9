//! `collbench`: what one cell of the comparison with MPI libraries takes with rcc.
//!
//! In: COLLECTIVE BYTES BATCH_SECONDS BATCHES MOST_SECONDS, ranks. Out: a line `library,…`; for plain and for registered
//! buffers a line `plan,…` that says what was taken, and two lines
//!
//! ```text
//! cell,COLLECTIVE,RANKS,BYTES,plain|registered,reused|rewritten,CALLS,MEDIAN_US,LEAST_US,WRONG
//! ```
//!
//! `bench/peers/collbench.c` does the same with an MPI library, by the same rules (docs/benchmarks.md), and `cargo xtask
//! bench peers` runs both. Ranks are processes, forked when plans and shared memory are there.
#![allow(clippy::disallowed_methods, reason = "a benchmark has a clock and reads what the system says of it")]

mod caller;
mod cell;
mod choice;
mod ledger;
mod measure;
mod processes;
mod small;
mod space;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use runtime::bootstrap::reserve::Reserved;
use runtime::bootstrap::{Secret, Settings};
use runtime::cpus;
use runtime::error::Error;

use crate::caller::{Caller, Shared};
use crate::cell::{Cell, Collective};
use crate::choice::Planned;
use crate::ledger::Ledger;
use crate::measure::{Calls, Effort, Found, Meter};
use crate::small::Small;

/// Measures one cell of the comparison with MPI libraries.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Args {
    /// allreduce, allgather, reducescatter, alltoall or broadcast.
    collective: Collective,
    /// Bytes of the larger buffer.
    #[arg(value_parser = clap::value_parser!(u64).range(1..=4 << 30))]
    bytes: u64,
    /// Seconds of a batch of calls.
    #[arg(default_value_t = 0.02)]
    batch: f64,
    /// Batches, of which the median counts.
    #[arg(default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=64))]
    batches: u32,
    /// After so many seconds and three batches there are no more.
    #[arg(default_value_t = 1.0)]
    most: f64,
    /// Ranks, each a process.
    #[arg(short = 'n', long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    ranks: u32,
    /// Only buffers of this kind.
    #[arg(long)]
    memory: Option<Memory>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Memory {
    /// As malloc gives them.
    Plain,
    /// Where other ranks may reach into them.
    Registered,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), String> {
    let cell = Cell::new(args.collective, args.ranks, args.bytes);
    let effort = Effort { batch: args.batch, batches: args.batches as usize, most: args.most };
    println!("library,rcc {}", env!("CARGO_PKG_VERSION"));
    for memory in [Memory::Plain, Memory::Registered] {
        if args.memory.is_some_and(|only| only != memory) {
            continue;
        }
        if small::call(&cell, 0).is_some() {
            without_plan(&cell, memory, effort)?;
            continue;
        }
        let plans = choice::plans(&cell, memory == Memory::Registered)?;
        let shared = Shared::new(&cell, &plans, memory == Memory::Registered)?;
        let ledger = Ledger::new(cell.ranks)?;
        println!("plan,{},{}", name(memory), plans.first().map(choice::said).unwrap_or_default());
        std::io::stdout().flush().map_err(|error| error.to_string())?;
        processes::run(cell.ranks, |rank| {
            cpus::pin(rank, cell.ranks);
            let outcome = one(&cell, memory, effort, &plans, &shared, &ledger, rank);
            outcome.map_err(|error| {
                shared.abort(&error);
                error.to_string()
            })
        })?;
    }
    Ok(())
}

/// A cell of calls that need none.
fn without_plan(cell: &Cell, memory: Memory, effort: Effort) -> Result<(), String> {
    let text = |error: Error| error.to_string();
    let ledger = Ledger::new(cell.ranks)?;
    let place = Reserved::new().map_err(|error| error.to_string())?;
    let secret = Secret::random().map_err(text)?;
    println!("plan,{},{}", name(memory), small::SAID);
    std::io::stdout().flush().map_err(|error| error.to_string())?;
    processes::run(cell.ranks, |rank| {
        cpus::pin(rank, cell.ranks);
        let settings = Settings::new(rank, cell.ranks, place.address(), secret.clone()).map_err(text)?;
        let mut caller = Small::new(cell, memory == Memory::Registered, &settings).map_err(text)?;
        measured(cell, memory, effort, &mut caller, &ledger, rank).map_err(text)
    })
}

/// What a rank does; the first one says what came of it.
fn one(
    cell: &Cell,
    memory: Memory,
    effort: Effort,
    plans: &[Planned],
    shared: &Shared,
    ledger: &Ledger,
    rank: u32,
) -> Result<(), Error> {
    let mut caller = Caller::new(cell, plans, shared, rank)?;
    measured(cell, memory, effort, &mut caller, ledger, rank)
}

fn measured(
    cell: &Cell,
    memory: Memory,
    effort: Effort,
    caller: &mut impl Calls,
    ledger: &Ledger,
    rank: u32,
) -> Result<(), Error> {
    let mut meter = Meter::new(cell, rank, caller, ledger);
    let mut wrong = meter.wrong()?;
    let mut found = [Found::default(); 2];
    for rewritten in [false, true] {
        found[usize::from(rewritten)] = meter.measure(rewritten, effort)?;
    }
    wrong += meter.wrong()?;
    if rank == 0 {
        for (buffers, Found { calls, median, least }) in ["reused", "rewritten"].into_iter().zip(found) {
            let Cell { collective, ranks, bytes, .. } = cell;
            let (collective, memory) = (collective.name(), name(memory));
            let (median, least) = (median * 1e6, least * 1e6);
            println!(
                "cell,{collective},{ranks},{bytes},{memory},{buffers},{calls},{median:.4},{least:.4},{wrong}"
            );
        }
    }
    Ok(())
}

fn name(memory: Memory) -> &'static str {
    match memory {
        Memory::Plain => "plain",
        Memory::Registered => "registered",
    }
}
