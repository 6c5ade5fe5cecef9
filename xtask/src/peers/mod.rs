//! `cargo xtask bench peers`: rcc against MPI libraries, cell by cell.
//!
//! In: which cells, which peers, how many rounds. Out: a table of ratios, and the same as data; both are kept in
//! `bench/results` (docs/benchmarks.md). Peers are fetched and built here, once. In each round of a cell every program runs once,
//! the first one another in each round, so that a machine that slows down slows down all. Each run is kept as it ends: what
//! was stopped goes on with `--resume`.

mod cell;
mod estimate;
mod library;
mod load;
mod program;
mod report;
mod sitting;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args as ClapArgs;
use xshell::{Shell, cmd};

use self::cell::{BYTES, COLLECTIVES, Cell, Inputs, Memory, RANKS};
use self::estimate::Effort;
use self::library::{Peer, Ready, Started};
use self::report::{Report, show_cell};
use self::sitting::{Head, Machine, Rates, Run, Sitting};
use self::table::OURS;

/// A run that takes longer than this, and than ten times what it was expected to, is given up.
const LONGEST: Duration = Duration::from_secs(60);

/// `cargo xtask bench peers`
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Args {
    /// Only these collectives: allreduce, allgather, reducescatter, alltoall, broadcast.
    #[arg(long, value_name = "COLLECTIVE", value_delimiter = ',', value_parser = COLLECTIVES)]
    only: Vec<String>,
    /// Numbers of ranks [default: 2,4,8; quick: 2,4].
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(2..=64))]
    ranks: Vec<u32>,
    /// Bytes of the larger buffer, such as 8,4K,2M [default: 8,512,4K,32K,256K,2M,16M,64M; quick: 8,32K,2M].
    #[arg(long, value_delimiter = ',', value_parser = cell::parse_bytes)]
    bytes: Vec<u64>,
    /// How often every program runs in each cell [default: 5; quick: 1].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// intel, openmpi, mpich, or none.
    #[arg(long, value_delimiter = ',', value_parser = ["intel", "openmpi", "mpich", "none"], default_values = ["intel", "openmpi", "mpich"])]
    peers: Vec<String>,
    /// Few cells, one round, short measurements: to see that it works.
    #[arg(long)]
    quick: bool,
    /// Prints data instead of a table.
    #[arg(long)]
    json: bool,
    /// Says how long it would take, and does nothing.
    #[arg(long)]
    estimate: bool,
    /// Goes on with the sitting that was stopped.
    #[arg(long)]
    resume: bool,
    /// Stops before a run that would end later than so many seconds from now; --resume goes on.
    #[arg(long, value_name = "SECONDS")]
    stop_after: Option<u64>,
    /// Where to keep the result [default: bench/results; quick: the build folder].
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Compares sittings that were kept, and measures nothing: cells that are lost in all of them.
    #[arg(long, value_name = "FILE.json", num_args = 1.., conflicts_with_all = ["resume", "estimate", "quick"])]
    sittings: Vec<PathBuf>,
}

/// A program, and how it is started.
enum Program {
    Ours(PathBuf),
    Peer(Ready),
}

/// All that is to be done.
struct Work {
    cells: Vec<Cell>,
    rounds: u32,
    programs: Vec<Program>,
    effort: Effort,
    cpus: usize,
}

impl Program {
    fn name(&self) -> &'static str {
        match self {
            Program::Ours(_) => OURS,
            Program::Peer(ready) => ready.peer.name(),
        }
    }

    fn start(&self, cell: &Cell, effort: &Effort, cpus: usize) -> Started {
        let mut arguments = vec![cell.collective.clone(), cell.bytes.to_string()];
        arguments.extend(effort.arguments());
        match self {
            Program::Ours(path) => {
                let mut words = vec![path.display().to_string()];
                words.extend(arguments);
                words.extend(["-n".to_string(), cell.ranks.to_string()]);
                Started { words, environment: Vec::new() }
            }
            Program::Peer(ready) => ready.start(cell.ranks, cpus, &arguments),
        }
    }

    fn seconds(&self, cell: &Cell, effort: &Effort, cpus: usize) -> f64 {
        match self {
            // Plain and registered.
            Program::Ours(_) => effort.seconds(cell, 4, cpus, false),
            Program::Peer(ready) => effort.seconds(cell, 2, cpus, ready.peer == Peer::Mpich),
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> ExitCode {
    let outcome = if args.sittings.is_empty() { bench(args) } else { compare(&args.sittings) };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Says with a few short runs that all of it works: rcc alone, or with every peer that can be had here.
pub(crate) fn smoke(peers: bool) -> Result<(), Box<dyn std::error::Error>> {
    let mut args = Args {
        only: vec!["broadcast".to_string()],
        ranks: vec![2],
        bytes: vec![4 << 10],
        rounds: None,
        peers: vec!["none".to_string()],
        quick: true,
        json: false,
        estimate: false,
        resume: false,
        stop_after: None,
        out: None,
        sittings: Vec::new(),
    };
    if peers {
        args.peers = library::ALL.iter().map(|peer| peer.name().to_string()).collect();
        args.only.clear();
        args.ranks = vec![2, 3];
    }
    if bench(&args)? { Ok(()) } else { Err("results are wrong, or could not be had".into()) }
}

fn compare(files: &[PathBuf]) -> Result<bool, String> {
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    };
    let reports: Vec<Report> = files.iter().map(read).collect::<Result<_, String>>()?;
    let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    print!("{}", report::compare(&names, &reports));
    Ok(true)
}

/// Whether all was right.
fn bench(args: &Args) -> Result<bool, String> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let sh = Shell::new().map_err(|error| error.to_string())?;
    sh.change_dir(root);
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let folder = target.join("peers");
    let mut work = work(args, cpus);
    if args.estimate {
        println!("{}", work.expectation(&named(args).map(|peer| peer == Peer::Mpich).collect::<Vec<_>>()));
        return Ok(true);
    }
    work.programs = programs(args, &sh, &target, &folder)?;
    let spins = work.programs.iter().filter_map(|program| match program {
        Program::Ours(_) => None,
        Program::Peer(ready) => Some(ready.peer == Peer::Mpich),
    });
    eprintln!("{}", work.expectation(&spins.collect::<Vec<_>>()));
    let name = if args.quick { "quick" } else { "sitting" };
    let log = folder.join(format!("{name}.jsonl"));
    let head = Head { commit: commit(&sh)?, machine: machine(&sh, cpus), effort: work.effort.arguments() };
    let mut sitting = if args.resume { Sitting::resume(&log, &head)? } else { Sitting::begin(&log, head)? };
    sitting.rates(rates(&sh, &target, args.quick)?)?;
    let before = load::now();
    let whole = work.measure(&mut sitting, args.stop_after.map(Duration::from_secs))?;
    if let Some(part) = before.zip(load::now()).and_then(|(before, after)| load::others(before, after)) {
        sitting.others(part)?;
    }
    if whole {
        sitting.rates(rates(&sh, &target, args.quick)?)?;
    }
    let report = Report::new(&sitting, date(&sh)?);
    let json = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
    if args.json {
        println!("{json}");
    } else {
        print!("{}", report.text());
    }
    if whole {
        let out =
            args.out.clone().unwrap_or_else(|| if args.quick { folder } else { root.join("bench/results") });
        let (table, data) =
            if args.quick { ("quick.txt", "quick.json") } else { ("peers.txt", "peers.json") };
        for (name, text) in [(table, report.text()), (data, json + "\n")] {
            sh.write_file(out.join(name), text).map_err(|error| error.to_string())?;
        }
    } else {
        eprintln!("not all is measured, and nothing is kept in the results: --resume goes on");
    }
    Ok(report.right())
}

/// What is asked for; programs come later.
fn work(args: &Args, cpus: usize) -> Work {
    let or = |given: &[u32], usual: &[u32]| if given.is_empty() { usual.to_vec() } else { given.to_vec() };
    let only = if args.only.is_empty() { COLLECTIVES.map(String::from).to_vec() } else { args.only.clone() };
    let ranks = or(&args.ranks, if args.quick { &RANKS[..2] } else { &RANKS });
    let usual: &[u64] = if args.quick { &[8, 32 << 10, 2 << 20] } else { &BYTES };
    let bytes = if args.bytes.is_empty() { usual.to_vec() } else { args.bytes.clone() };
    let effort = match args.quick {
        true => Effort { batch: 0.005, batches: 3, most: 0.1 },
        false => Effort { batch: 0.02, batches: 7, most: 1.0 },
    };
    let rounds = args.rounds.unwrap_or(if args.quick { 1 } else { 5 });
    Work { cells: cell::product(&only, &ranks, &bytes), rounds, programs: Vec::new(), effort, cpus }
}

/// The peers that were asked for.
fn named(args: &Args) -> impl Iterator<Item = Peer> {
    args.peers.iter().filter_map(|name| Peer::named(name))
}

/// Gets and builds all programs; ours is in the midst of the others.
fn programs(args: &Args, sh: &Shell, target: &Path, folder: &Path) -> Result<Vec<Program>, String> {
    let mut programs = Vec::new();
    sh.create_dir(folder).map_err(|error| error.to_string())?;
    for peer in named(args) {
        match peer.set_up(sh, folder) {
            Ok(ready) => programs.push(Program::Peer(ready)),
            Err(why) => eprintln!("skipped: {}: {why}", peer.name()),
        }
    }
    cmd!(sh, "cargo build -q --release -p rcc-bench --bin collbench --bin machine")
        .quiet()
        .run()
        .map_err(|error| error.to_string())?;
    programs.insert(1.min(programs.len()), Program::Ours(target.join("release/collbench")));
    Ok(programs)
}

impl Work {
    /// How much there is to do, with rcc and peers that spin or not.
    fn expectation(&self, spins: &[bool]) -> String {
        let one = |cell: &Cell| {
            let peers = spins.iter().map(|&spins| self.effort.seconds(cell, 2, self.cpus, spins));
            peers.sum::<f64>() + self.effort.seconds(cell, 4, self.cpus, false)
        };
        let all = self.cells.iter().map(one).sum::<f64>() * f64::from(self.rounds);
        let (cells, programs) = (self.cells.len(), spins.len() + 1);
        format!("{cells} cells, {} rounds, {programs} programs: about {}", self.rounds, estimate::show(all))
    }

    /// Every run, in order. The programs take turns to be the first.
    fn runs(&self) -> impl Iterator<Item = (u32, &Program, &Cell)> {
        self.cells.iter().flat_map(move |cell| {
            (0..self.rounds).flat_map(move |round| {
                let programs = &self.programs;
                let turn = (0..programs.len()).map(move |i| &programs[(i + round as usize) % programs.len()]);
                turn.map(move |program| (round, program, cell))
            })
        })
    }

    /// Makes the runs that have not been made; whether all are.
    fn measure(&self, sitting: &mut Sitting, stop_after: Option<Duration>) -> Result<bool, String> {
        let began = Instant::now();
        let due = |sitting: &Sitting, run: &(u32, &Program, &Cell)| !sitting.done(run.1.name(), run.0, run.2);
        let runs: Vec<_> = self.runs().filter(|run| due(sitting, run)).collect();
        let expected = |run: &(u32, &Program, &Cell)| run.1.seconds(run.2, &self.effort, self.cpus);
        let mut left: f64 = runs.iter().map(expected).sum();
        let mut gone = 0.0;
        for (i, run) in runs.iter().enumerate() {
            let seconds = expected(run);
            let elapsed = began.elapsed();
            if stop_after.is_some_and(|most| elapsed + Duration::from_secs_f64(1.5 * seconds) > most) {
                return Ok(false);
            }
            let (round, program, cell) = *run;
            // It may have failed in this cell just now.
            if due(sitting, run) {
                let limit = LONGEST.max(Duration::from_secs_f64(10.0 * seconds));
                let printed = program::run(&program.start(cell, &self.effort, self.cpus), limit);
                let outcome = printed.and_then(|text| cell::parse(&text, cell));
                if let Err(why) = &outcome {
                    eprintln!("{} of {}: {why}", show_cell(cell), program.name());
                }
                sitting.run(Run {
                    program: program.name().to_string(),
                    round,
                    cell: cell.clone(),
                    outcome,
                })?;
            }
            left -= seconds;
            gone += seconds;
            if runs.get(i + 1).is_none_or(|next| next.2 != cell) {
                let slower = began.elapsed().as_secs_f64() / gone;
                eprintln!("{}; about {} left", progress(sitting, cell), estimate::show(left * slower));
            }
        }
        Ok(true)
    }
}

/// What a cell came to.
fn progress(sitting: &Sitting, cell: &Cell) -> String {
    let measured = sitting.measured();
    let of: Vec<_> = measured.into_iter().filter(|one| one.cell == cell).collect();
    let rows = table::rows(&of);
    let shown = rows.iter().filter(|row| row.inputs == Inputs::Reused).map(|row| {
        let memory = if row.memory == Memory::Plain { "plain" } else { "registered" };
        let us = row.us.get(OURS).copied().unwrap_or(f64::NAN);
        let best = row.best.map_or(String::new(), |best| format!(", {best:.2} of the best"));
        format!("{memory} {us:.2} us{best}")
    });
    format!("{}: {}", show_cell(cell), shown.collect::<Vec<_>>().join("; "))
}

/// What the machine does now.
fn rates(sh: &Shell, target: &Path, quick: bool) -> Result<Rates, String> {
    let tool = target.join("release/machine");
    let rounds = if quick { "1" } else { "3" };
    let text =
        cmd!(sh, "{tool} --rates --rounds {rounds}").quiet().read().map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| format!("what `machine` printed makes no sense: {error}"))
}

fn commit(sh: &Shell) -> Result<String, String> {
    cmd!(sh, "git describe --always --dirty --exclude *").quiet().read().map_err(|error| error.to_string())
}

fn date(sh: &Shell) -> Result<String, String> {
    cmd!(sh, "date -u +%Y-%m-%dT%H:%MZ").quiet().read().map_err(|error| error.to_string())
}

fn machine(sh: &Shell, cpus: usize) -> Machine {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let of = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_string())
    };
    let kib = of(&read("/proc/meminfo"), "MemTotal");
    let kib: Option<u64> = kib.and_then(|text| text.split(' ').next()?.parse().ok());
    Machine {
        model: of(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| "an unknown processor".to_string()),
        cpus,
        memory_gib: kib.map_or(0, |kib| (kib + (1 << 19)) >> 20),
        kernel: cmd!(sh, "uname -r").quiet().read().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_take_turns_to_be_first_and_each_runs_once_a_round() {
        let programs = ["a", "b", "c"].map(|path| Program::Ours(path.into()));
        let effort = Effort { batch: 0.1, batches: 1, most: 1.0 };
        let cells = cell::product(&["alltoall".to_string()], &[2], &[8, 16]);
        let work = Work { cells, rounds: 4, programs: programs.into(), effort, cpus: 2 };
        let path = |program: &Program| match program {
            Program::Ours(path) => path.display().to_string(),
            Program::Peer(_) => String::new(),
        };
        let order: Vec<String> = work.runs().map(|run| path(run.1)).collect();
        assert_eq!(order.concat(), "abcbcacababc".repeat(2));
        let rounds: Vec<u32> = work.runs().map(|run| run.0).collect();
        assert_eq!(rounds[..12], [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
        assert!(work.runs().take(12).all(|run| run.2.bytes == 8));
    }
}
