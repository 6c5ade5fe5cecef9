//! `machine`: measures this machine, and prints it as a topology for `rcc explain --topology FILE.toml`.
//!
//! In: nothing but the machine. Out: TOML (docs/cost.md has the format). Only what the model asks of a machine is measured, with
//! the runtime's own kernels and loop: what a core reads and writes by how much it works on, all cores at once; what
//! messages cost between cores (`lines`); what it costs to go to another rank, and an event (`turns`). No algorithm is
//! run to fit a number. Everything is measured in turn, several times, and the median counts: a virtual machine's cores may
//! lie near each other on the real one at one time and far apart at another.
#![allow(clippy::disallowed_methods, reason = "a benchmark has a clock and reads what the system says of it")]

mod lines;
mod memory;
mod place;
mod rates;
mod turns;

use std::process::ExitCode;

use clap::Parser;

/// Measures this machine and prints it as a topology.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Args {
    /// The name of the topology.
    #[arg(long, default_value = "this machine")]
    name: String,
    /// How often everything is measured; the median counts.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Only what all cores copy together, and the way between two, as JSON.
    #[arg(long)]
    rates: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let json =
        |rates| serde_json::to_string(&rates).map(|line| line + "\n").map_err(|error| error.to_string());
    match if args.rates { rates::measure(args.rounds).and_then(json) } else { run(&args) } {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

/// Seconds (of a byte, where there are many), one of each round.
#[derive(Debug, Default)]
struct Found {
    switch: Vec<f64>,
    event: Vec<f64>,
    latency: Vec<f64>,
    take: Vec<f64>,
    put: Vec<f64>,
    /// By size: copying, and combining.
    memory: [[Vec<f64>; 2]; memory::SIZES.len()],
}

/// The middle one.
fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

fn run(args: &Args) -> Result<String, String> {
    let cpus = place::cpus()?;
    let Some(pair) = cpus.get(..2).map(|pair| [pair[0], pair[1]]) else {
        return Err("ranks that share a machine need two CPUs at least to be told apart from one".to_string());
    };
    let mut found = Found::default();
    for _ in 0..args.rounds {
        // A child is forked while this process has no other thread.
        found.switch.push(turns::switch(pair[0])?);
        found.event.push(turns::event(pair[0])?);
        found.latency.push(lines::latency(pair));
        let [far, near] = [pair, [pair[0], pair[0]]].map(lines::messages);
        // What it costs more than within one core's cache.
        found.take.push((far.read - near.read).max(0.0));
        found.put.push((far.write - near.write).max(0.0));
        for (i, &bytes) in memory::SIZES.iter().enumerate() {
            let took = memory::took(&cpus, bytes);
            for (kernel, took) in found.memory[i].iter_mut().zip(took) {
                kernel.push(took);
            }
        }
    }
    let reaches: Vec<memory::Reach> = memory::SIZES
        .iter()
        .zip(&found.memory)
        .map(|(&bytes, took)| memory::reach(bytes, [median(&took[0]), median(&took[1])]))
        .collect();
    let take = 1.0 / reaches[0].read + median(&found.take);
    let put = 1.0 / reaches[0].write + median(&found.put);
    let [switch, event, latency] = [&found.switch, &found.event, &found.latency].map(|times| median(times));

    let ns = |seconds: f64| format!("\"{:.0}ns\"", seconds * 1e9);
    let rate = |rate: f64| format!("\"{:.1}GB/s\"", rate / 1e9);
    let memory: Vec<String> = reaches
        .iter()
        .map(|reach| {
            format!(
                "    {{ bytes = \"{}KiB\", read = {}, write = {} }},\n",
                reach.bytes >> 10,
                rate(reach.read),
                rate(reach.write)
            )
        })
        .collect();
    Ok(format!(
        "name = \"{}\"\nabout = \"ranks as processes that share {} cores and their memory\"\nslots = 4\n\
         slices = [\"4KiB\", \"16KiB\", \"64KiB\", \"256KiB\"]\ncopies = 1\n\n\
         [[level]]\nname = \"shared memory\"\nlatency = {}\nmulticast = true\n\n\
         [engine]\ncores = {}\nevent = {}\nswitch = {}\nmessage = {}\nsend = {}\nmemory = [\n{}]\n",
        args.name.escape_default(),
        cpus.len(),
        ns(latency),
        cpus.len(),
        ns(event),
        ns(switch),
        rate(1.0 / take),
        rate(1.0 / put),
        memory.concat(),
    ))
}
