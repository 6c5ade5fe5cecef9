//! `small`: what calls of at most 4 KiB take.
//!
//! In: collectives, bytes, numbers of ranks. Out: nanoseconds from one core to another; for each cell the median and the least
//! microseconds of a call over all rounds, of the slowest rank. With `--soak N`, N calls in a row instead, and whether time or memory grows.
//! Ranks are processes (`--threads`: threads) that meet over a socket, as ranks of a launcher do.
#![allow(clippy::disallowed_methods, reason = "a benchmark has a clock and reads what the system says of it")]

mod cores;
#[path = "../collbench/processes.rs"]
mod processes;
mod timing;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use plan::dtype::{Dtype, Op};
use plan::ids::RankId;
use runtime::bootstrap::reserve::Reserved;
use runtime::bootstrap::{Secret, Settings};
use runtime::comm::{Communicator, Options};
use runtime::error::Error;
use runtime::small::{Call, Collective};

use crate::timing::Cell;

/// Measures small calls.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Args {
    /// Numbers of ranks.
    #[arg(short = 'n', long, value_delimiter = ',', default_value = "2,4,8")]
    ranks: Vec<u32>,
    /// Bytes of the larger buffer.
    #[arg(short, long, value_delimiter = ',', default_value = "8,64,512,4096")]
    bytes: Vec<u64>,
    /// allreduce, allgather, reducescatter, alltoall, broadcast, reduce, gather, scatter, barrier.
    #[arg(
        short,
        long,
        value_delimiter = ',',
        default_value = "allreduce,allgather,reducescatter,alltoall,broadcast"
    )]
    collectives: Vec<String>,
    /// Rounds, of which each measures every cell.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=64))]
    rounds: u32,
    /// Milliseconds of a cell in a round.
    #[arg(long, default_value_t = 10)]
    milliseconds: u64,
    /// Ranks are threads.
    #[arg(long)]
    threads: bool,
    /// Each batch begins with all ranks on one CPU, as the system may put them.
    #[arg(long)]
    crowd: bool,
    /// So many calls in a row of each cell.
    #[arg(long)]
    soak: Option<u64>,
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
    let one_way = || match cores::one_way() {
        Some(nanoseconds) => println!("one way between cores: {nanoseconds:.0} ns"),
        None => println!("there is one CPU"),
    };
    cores::print_switch()?;
    one_way();
    for &ranks in &args.ranks {
        let cells = cells(args, ranks)?;
        if args.threads {
            let all = Communicator::threads(ranks, &Options::default()).map_err(|error| error.to_string())?;
            std::thread::scope(|scope| {
                let threads = all.into_iter().map(|comm| scope.spawn(|| rank(args, &cells, comm)));
                let threads: Vec<_> = threads.collect();
                let join = |thread: std::thread::ScopedJoinHandle<'_, Result<(), Error>>| match thread.join()
                {
                    Ok(ended) => ended.map_err(|error| error.to_string()),
                    Err(_) => Err("a rank panicked".to_string()),
                };
                threads.into_iter().try_for_each(join)
            })?;
            continue;
        }
        let place = Reserved::new().map_err(|error| error.to_string())?;
        let secret = Secret::random().map_err(|error| error.to_string())?;
        processes::run(ranks, |number| {
            let text = |error: Error| error.to_string();
            let settings = Settings::new(number, ranks, place.address(), secret.clone()).map_err(text)?;
            let comm = Communicator::connect(&settings, Options::default()).map_err(text)?;
            rank(args, &cells, comm).map_err(text)
        })?;
    }
    one_way();
    Ok(())
}

/// What one rank does; the first one says what came of it.
fn rank(args: &Args, cells: &[Cell], mut comm: Communicator) -> Result<(), Error> {
    if let Some(calls) = args.soak {
        return cells.iter().try_for_each(|cell| timing::soak(&mut comm, cell, calls));
    }
    let batch = Duration::from_millis(args.milliseconds);
    let calls: Vec<u64> =
        cells.iter().map(|cell| timing::calls(&mut comm, cell, batch)).collect::<Result<_, _>>()?;
    let mut times = vec![Vec::new(); cells.len()];
    for _ in 0..args.rounds {
        for ((cell, &calls), times) in cells.iter().zip(&calls).zip(&mut times) {
            if args.crowd {
                cores::gather();
            }
            times.push(timing::batch(&mut comm, cell, calls)?);
        }
    }
    if comm.rank().0 == 0 {
        for (cell, times) in cells.iter().zip(&mut times) {
            times.sort_by(f64::total_cmp);
            let (least, middle, most) = (times[0], times[times.len() / 2], times[times.len() - 1]);
            let [least, middle, most] = [least, middle, most].map(|seconds| seconds * 1e6);
            let (name, bytes, ranks) = (cell.call.collective.name(), cell.bytes, comm.world());
            println!("{name:>13} {ranks:>3} ranks {bytes:>5} B: {middle:8.3} us ({least:.3} to {most:.3})");
        }
    }
    Ok(())
}

fn cells(args: &Args, ranks: u32) -> Result<Vec<Cell>, String> {
    let mut cells = Vec::new();
    for name in &args.collectives {
        let root = RankId(0);
        let all = [
            Collective::Allreduce,
            Collective::Allgather,
            Collective::Reducescatter,
            Collective::Alltoall,
            Collective::Broadcast { root },
            Collective::Reduce { root },
            Collective::Gather { root },
            Collective::Scatter { root },
            Collective::Barrier,
        ];
        let found = all.into_iter().find(|collective| collective.name() == name);
        let collective = found.ok_or_else(|| format!("there is no `{name}`"))?;
        for &bytes in &args.bytes {
            let fits = |elements| {
                let call = Call { collective, elements, dtype: Dtype::F32, op: Op::Sum };
                call.fits(ranks) && call.largest(ranks) <= bytes
            };
            let elements = (1..=bytes / 4).rev().find(|&elements| fits(elements)).unwrap_or(1);
            cells.push(Cell::new(Call { collective, elements, dtype: Dtype::F32, op: Op::Sum }, bytes));
        }
    }
    Ok(cells)
}
