//! The command line, as data.
//!
//! In: the arguments. Out: one of the commands with its options, every value already of its type. What each means is
//! said here once: the comments are the text of `rcc COMMAND --help`, and docs/cli.md tells the same at length.

mod explain;
mod launch;
pub(crate) mod tune;

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use compiler::chooser::Fixed;
use compiler::limits::Limits;
use compiler::options::{Cut, Direct, Multicast, Tree};
use grammar::ParseLimits;
use plan::dtype::{Dtype, Op};

pub(crate) use self::explain::Explain;
pub(crate) use self::launch::Launch;
pub(crate) use self::tune::{Cache, CacheAction, Tune};
use crate::failure::Failure;
use crate::shape::{self, Shape, Shapes};
use crate::size;

/// The collective schedule compiler: check, prove, compile and run collective algorithms.
#[derive(Debug, Parser)]
#[command(
    name = "rcc",
    version,
    arg_required_else_help = true,
    after_help = "Results go to standard output, everything else to standard error.\n\
        Exit status: 0 done; 1 the program is wrong or a run gave wrong results; 2 bad usage; 3 the machine could not do it."
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands. A number below 0 is a value, which is refused by what is wrong with it.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Prove every algorithm in the files
    #[command(allow_negative_numbers = true)]
    Check(Check),
    /// Compile one algorithm for one world shape
    #[command(allow_negative_numbers = true)]
    Compile(Compile),
    /// Print a plan, with the source lines beside the steps
    #[command(allow_negative_numbers = true)]
    Show(Show),
    /// Run an algorithm on this machine and compare its results with the truth
    #[command(allow_negative_numbers = true)]
    Run(Run),
    /// Measure an algorithm over a range of sizes
    #[command(allow_negative_numbers = true)]
    Bench(Bench),
    /// Explain an error code, or what a program's plan costs
    #[command(allow_negative_numbers = true)]
    Explain(Explain),
    /// Put files into the canonical layout
    Fmt(Fmt),
    /// Measure which algorithms are the fastest on this machine, for programs that select by it
    Tune(Tune),
    /// Show or clear the compiled plans that programs keep
    Cache(Cache),
    /// Start a program as several ranks on this machine
    Launch(Launch),
}

impl Command {
    /// Whether the answer is to be one JSON document.
    pub(crate) fn json(&self) -> bool {
        match self {
            Command::Check(args) => args.json,
            Command::Compile(args) => args.json,
            Command::Run(args) => args.call.json,
            Command::Bench(args) => args.call.json,
            Command::Explain(args) => args.json,
            Command::Cache(args) => args.json,
            Command::Show(_) | Command::Fmt(_) | Command::Tune(_) | Command::Launch(_) => false,
        }
    }
}

/// Which algorithm, with which parameters, within which limits.
#[derive(Debug, Args)]
pub(crate) struct Choice {
    /// The algorithm, where there are several
    #[arg(long, value_name = "NAME")]
    pub(crate) algorithm: Option<String>,
    /// A parameter of the algorithm; repeat for more
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = param, action = ArgAction::Append)]
    pub(crate) params: Vec<(String, String)>,
    /// A file of schedules; they replace those beside the algorithms
    #[arg(long, value_name = "FILE")]
    pub(crate) schedule: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) within: Within,
}

/// Within which limits.
#[derive(Debug, Args)]
pub(crate) struct Within {
    /// Raise (or lower) a limit: moves, turns, places, source-bytes, nesting; of a rank: blocks, channels, connections; repeat
    /// for more
    #[arg(long = "limit", value_name = "NAME=N", value_parser = limit, action = ArgAction::Append)]
    limits: Vec<(LimitName, u64)>,
}

/// How the moves are laid out in steps. None of it changes a result.
#[derive(Debug, Args)]
#[command(next_help_heading = "Scheduling")]
pub(crate) struct Scheduling {
    /// The most blocks (threads of control) of a rank [default: chosen]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    blocks: Option<u32>,
    /// Fuse no steps: each transfer is a send and a receive through memory
    #[arg(long)]
    no_fuse: bool,
    /// Let ranks read and write each other's memory: where right in place and out of place (both), or for calls out of place
    /// alone [default: chosen]
    #[arg(long, value_name = "WHERE", value_enum)]
    direct: Option<DirectAccess>,
    /// How a value that one rank sends to several reaches them: in a message to each (flat), in one that all of them read (channel),
    /// by way of each other (binomial, chain, or tree:K, in which each gives it to K), or both: who passes it on to several does so
    /// in one message (tree:2+channel) [default: chosen]
    #[arg(long, value_name = "HOW", value_parser = multicast)]
    multicast: Option<Multicast>,
    /// How wide messages are: as wide as their moves (whole), or cut where what comes together goes on apart, or the other way
    /// round, so that nothing is stored that only passes through (parts) [default: chosen]
    #[arg(long, value_name = "HOW", value_enum, conflicts_with = "no_fuse")]
    cut: Option<CutAt>,
}

/// Where moves of several cells are cut into messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CutAt {
    /// Nowhere
    Whole,
    /// Where parts go different ways
    Parts,
}

/// Where ranks may reach into each other's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DirectAccess {
    /// Nowhere
    Never,
    /// Where it is right in place and out of place
    Both,
    /// Where it is right out of place; the plan may then not serve calls in place
    OutOfPlace,
}

impl Scheduling {
    /// What of a plan's layout is fixed.
    pub(crate) fn fixed(&self) -> Fixed {
        let direct = self.direct.map(|direct| match direct {
            DirectAccess::Never => Direct::Never,
            DirectAccess::Both => Direct::WhereBothFormsAllow,
            DirectAccess::OutOfPlace => Direct::OutOfPlace,
        });
        Fixed {
            blocks: self.blocks,
            direct,
            multicast: self.multicast,
            cut: self.cut.map(|cut| match cut {
                CutAt::Whole => Cut::Whole,
                CutAt::Parts => Cut::Parts,
            }),
            unfused: self.no_fuse,
            ..Fixed::default()
        }
    }

    /// The first of its options that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            (self.blocks.is_some(), "--blocks"),
            (self.no_fuse, "--no-fuse"),
            (self.direct.is_some(), "--direct"),
            (self.multicast.is_some(), "--multicast"),
            (self.cut.is_some(), "--cut"),
        ];
        given.into_iter().find_map(|(given, name)| given.then_some(name))
    }

    /// Refuses what has no meaning for a plan.
    pub(crate) fn refuse_for_plan(&self) -> Result<(), Failure> {
        let Some(option) = self.given() else { return Ok(()) };
        Err(Failure::usage_help(
            format!("{option} is for source files: the steps of a plan are what they are"),
            "compile it anew with other options",
        ))
    }
}

impl Choice {
    /// Refuses what has no meaning for a call of a collective: it is selected as programs select it.
    pub(crate) fn refuse_for_call(&self) -> Result<(), Failure> {
        let unknown = self.params.iter().find(|(name, _)| name != "root");
        let option = match (&self.algorithm, unknown, &self.schedule) {
            (Some(_), _, _) => "--algorithm".to_string(),
            (None, Some((name, _)), _) => format!("--param {name}"),
            (None, None, Some(_)) => "--schedule".to_string(),
            (None, None, None) => return Ok(()),
        };
        Err(Failure::usage_help(
            format!("{option} is for an algorithm, and a collective is named"),
            "name the algorithm in place of --collective: std::allreduce::ring",
        ))
    }

    /// Refuses what has no meaning for a plan: it is one algorithm, with its parameters.
    pub(crate) fn refuse_for_plan(&self) -> Result<(), Failure> {
        let option = match (&self.algorithm, &self.params[..], &self.schedule) {
            (Some(_), _, _) => "--algorithm",
            (None, [_, ..], _) => "--param",
            (None, [], Some(_)) => "--schedule",
            (None, [], None) => return Ok(()),
        };
        Err(Failure::usage_help(
            format!(
                "{option} is for source files: a plan is one algorithm, with its parameters and its schedule"
            ),
            "compile it anew with other ones",
        ))
    }
}

/// `rcc check`
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Source files, or the standard library by name: std, std::allreduce, std::allreduce::ring
    #[arg(required = true, value_name = "FILE")]
    pub(crate) targets: Vec<PathBuf>,
    /// World shapes: 8, 2..64 (both ends included), 4x8; several by comma or repetition [default: 2..16; for two
    /// levels 1x1,2x2,2x3,3x2,4x4]
    #[arg(long, short = 'n', value_name = "SHAPE", value_parser = shape::parse, action = ArgAction::Append)]
    pub(crate) ranks: Vec<Shapes>,
    #[command(flatten)]
    pub(crate) choice: Choice,
    /// Tell the history of one value, such as `data[3] @ 1` (one algorithm, one world shape)
    #[arg(long, value_name = "PLACE")]
    pub(crate) trace: Option<String>,
    /// Print one JSON document
    #[arg(long, conflicts_with = "trace")]
    pub(crate) json: bool,
}

/// `rcc compile`
#[derive(Debug, Args)]
pub(crate) struct Compile {
    /// A source file, or a standard algorithm such as std::allreduce::ring
    #[arg(value_name = "FILE")]
    pub(crate) target: PathBuf,
    /// The world shape: 8, 4x8
    #[arg(long, short = 'n', value_name = "SHAPE", value_parser = shape::parse_one)]
    pub(crate) ranks: Shape,
    #[command(flatten)]
    pub(crate) choice: Choice,
    #[command(flatten)]
    pub(crate) scheduling: Scheduling,
    /// Slots per channel that the plan may count on; it needs no more [default: chosen]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) slots: Option<u32>,
    /// The size of the calls it is for: bytes of the larger of send and receive buffer, by which its schedule chooses
    #[arg(long, short = 'b', value_name = "SIZE", value_parser = size::parse)]
    pub(crate) bytes: Option<u64>,
    /// The element type of those calls
    #[arg(long, short = 'd', value_name = "TYPE", default_value = "f32")]
    pub(crate) dtype: Dtype,
    /// The machine that it is for: 2-cores, 8xh100, 2x8xh100, 128x8xh100, or a file in TOML [default: 2-cores]
    #[arg(long, value_name = "NAME|FILE.toml")]
    pub(crate) topology: Option<PathBuf>,
    /// It is for calls with send and receive memory apart: direct access may give up others
    #[arg(long)]
    pub(crate) out_of_place: bool,
    /// Look at one rank only: where all ranks do the same, the others are neither made nor followed
    #[arg(long, value_name = "RANK")]
    pub(crate) rank: Option<u32>,
    /// Write the result to a file, whole or not at all
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// What to produce
    #[arg(long = "target", id = "format", value_name = "TARGET", default_value = "plan")]
    pub(crate) format: String,
    /// Print a stage of the compilation
    #[arg(long, value_name = "STAGE", conflicts_with = "json")]
    pub(crate) emit: Option<Stage>,
    /// Print time and memory of every stage
    #[arg(long)]
    pub(crate) timings: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

impl Compile {
    /// What of the plan's layout is fixed.
    pub(crate) fn fixed(&self) -> Fixed {
        Fixed { counted_slots: self.slots, ..self.scheduling.fixed() }
    }
}

/// A stage that `--emit` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stage {
    /// The syntax tree, in its canonical layout
    Ast,
    /// The concrete moves
    Trace,
    /// The versions of every chunk
    Graph,
    /// The plan as text
    Plan,
}

/// `rcc show`
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// A plan, written by `rcc compile -o`
    #[arg(value_name = "FILE.plan")]
    pub(crate) plan: PathBuf,
    /// Only this rank; repeat for more
    #[arg(long = "rank", value_name = "RANK", action = ArgAction::Append)]
    pub(crate) only: Vec<u32>,
    #[command(flatten)]
    pub(crate) within: Within,
}

/// What is run, and how: shared by `run` and `bench`.
#[derive(Debug, Args)]
pub(crate) struct Call {
    /// How many ranks, as processes of this machine
    #[arg(short = 'n', value_name = "RANKS", conflicts_with = "ranks")]
    pub(crate) number: Option<u32>,
    /// The world shape, where it has levels: 2x4 [default: 4]
    #[arg(long, value_name = "SHAPE", value_parser = shape::parse_one)]
    pub(crate) ranks: Option<Shape>,
    #[command(flatten)]
    pub(crate) choice: Choice,
    #[command(flatten)]
    pub(crate) scheduling: Scheduling,
    /// Instead of a file: what rcc itself selects for a collective at each size
    #[arg(long, value_name = "COLLECTIVE", conflicts_with = "algorithm")]
    pub(crate) collective: Option<String>,
    /// What was measured, by which rcc selects [default: RCC_TUNING, else where `rcc tune` writes]
    #[arg(long, value_name = "FILE")]
    pub(crate) tuning: Option<PathBuf>,
    /// The element type: f32, f64, f16, bf16, i32, i64, u8
    #[arg(long, short = 'd', value_name = "TYPE", default_value = "f32")]
    pub(crate) dtype: Dtype,
    /// The operator of reductions: sum, prod, min, max, avg
    #[arg(long, short = 'o', value_name = "OP", default_value = "sum")]
    pub(crate) op: Op,
    /// Where: cpu, or cuda:0
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    pub(crate) device: String,
    /// Measured calls per result
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) iterations: u32,
    /// Calls before the measured ones
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    pub(crate) warmup: u32,
    /// Give up on a call after this many seconds
    #[arg(long, visible_alias = "deadline", value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub(crate) timeout: Duration,
    /// The machine that is chosen for, where nothing is said: N-cores, or a file in TOML [default: this machine's cores]
    #[arg(long, value_name = "NAME|FILE.toml")]
    pub(crate) topology: Option<PathBuf>,
    /// Slots per channel [default: chosen]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) slots: Option<u32>,
    /// Bytes per slot [default: what the schedule says, else chosen]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub(crate) slot_bytes: Option<u64>,
    /// Only with send and receive memory apart
    #[arg(long, conflicts_with = "in_place")]
    pub(crate) out_of_place: bool,
    /// Only with send and receive memory shared, as the collective allows
    #[arg(long)]
    pub(crate) in_place: bool,
    /// Let a schedule narrow elements in transit (`wire`): results are no longer those of the type
    #[arg(long)]
    pub(crate) allow_wire: bool,
    /// Write the inputs anew before each measured call (outside of the time): data as fresh as an application's
    #[arg(long)]
    pub(crate) refill: bool,
    /// Let the system place the ranks; else, where there are more of them than CPUs, each keeps to one
    #[arg(long)]
    pub(crate) no_pin: bool,
    /// Seed of the random data
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// `rcc run`
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// A source file, a plan, or a standard algorithm such as std::allreduce::ring
    #[arg(value_name = "FILE", required_unless_present = "collective", conflicts_with = "collective")]
    pub(crate) target: Option<PathBuf>,
    /// Bytes of the larger of send and receive buffer, as nccl-tests count them
    #[arg(long, short = 'b', value_name = "SIZE", default_value = "64MiB", value_parser = size::parse)]
    pub(crate) bytes: u64,
    /// Elements of one block, instead of --bytes
    #[arg(long, value_name = "N", conflicts_with = "bytes")]
    pub(crate) count: Option<u64>,
    #[command(flatten)]
    pub(crate) call: Call,
}

/// `rcc bench`
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Source files, plans, or standard algorithms such as std::allreduce (all of them)
    #[arg(value_name = "FILE", required_unless_present = "collective", conflicts_with = "collective")]
    pub(crate) targets: Vec<PathBuf>,
    /// The first size
    #[arg(long, short = 'b', value_name = "SIZE", default_value = "8", value_parser = size::parse)]
    pub(crate) begin: u64,
    /// The last size
    #[arg(long, short = 'e', value_name = "SIZE", default_value = "64MiB", value_parser = size::parse)]
    pub(crate) end: u64,
    /// The factor from one size to the next
    #[arg(long, short = 'f', value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) factor: u32,
    #[command(flatten)]
    pub(crate) call: Call,
}

/// `rcc fmt`
#[derive(Debug, Args)]
pub(crate) struct Fmt {
    /// Source files; `-` reads standard input and writes standard output
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Change nothing; list the files that are not in the canonical layout, and exit with 1 if there are any
    #[arg(long)]
    pub(crate) check: bool,
}

/// A limit that `--limit` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LimitName {
    Moves,
    Turns,
    Places,
    SourceBytes,
    Nesting,
    Blocks,
    Channels,
    Connections,
}

impl Within {
    /// The limits of this compilation.
    pub(crate) fn limits(&self) -> Result<Limits, Failure> {
        let number = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let mut limits = Limits::default();
        for &(name, value) in &self.limits {
            match name {
                LimitName::Moves => limits.moves = value,
                LimitName::Turns => limits.turns = value,
                LimitName::Places => limits.places = value,
                LimitName::SourceBytes => limits.source_bytes = value,
                LimitName::Nesting if value > u64::from(ParseLimits::MOST_NESTING) => {
                    let most = ParseLimits::MOST_NESTING;
                    return Err(Failure::usage(format!("--limit nesting={value}: at most {most}")));
                }
                LimitName::Nesting => limits.nesting = value as u32,
                LimitName::Blocks => limits.resources.blocks = Some(number(value)),
                LimitName::Channels => limits.resources.channels = Some(number(value)),
                LimitName::Connections => limits.resources.connections = Some(number(value)),
            }
        }
        Ok(limits)
    }
}

fn param(given: &str) -> Result<(String, String), String> {
    match given.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
            Ok((name.trim().to_string(), value.trim().to_string()))
        }
        _ => Err(format!("`{given}` is not NAME=VALUE, as in root=3")),
    }
}

fn multicast(given: &str) -> Result<Multicast, String> {
    match given {
        "flat" => return Ok(Multicast::Flat),
        "channel" => return Ok(Multicast::Channel),
        _ => {}
    }
    let (tree, how): (_, fn(Tree) -> Multicast) = match given.strip_suffix("+channel") {
        Some(tree) => (tree, Multicast::ChannelTree),
        None => (given, Multicast::Tree),
    };
    let tree = match tree {
        "binomial" => Some(Tree::Binomial),
        "chain" => Some(Tree::Chain),
        _ => {
            let width = tree.strip_prefix("tree:").and_then(|width| width.parse().ok());
            width.filter(|&width| width > 0).map(Tree::Wide)
        }
    };
    tree.map(how).ok_or_else(|| {
        format!(
            "`{given}` is none of flat, channel, binomial, chain, tree:K with K from 1 to 65535, or one of \
             the last three and channel (tree:2+channel)"
        )
    })
}

fn limit(given: &str) -> Result<(LimitName, u64), String> {
    let known = "moves, turns, places, source-bytes, nesting, blocks, channels, connections";
    let (name, value) =
        given.split_once('=').ok_or_else(|| format!("`{given}` is not NAME=N; NAME is one of {known}"))?;
    let name = match name.trim().replace('_', "-").as_str() {
        "moves" => LimitName::Moves,
        "turns" => LimitName::Turns,
        "places" => LimitName::Places,
        "source-bytes" => LimitName::SourceBytes,
        "nesting" => LimitName::Nesting,
        "blocks" => LimitName::Blocks,
        "channels" => LimitName::Channels,
        "connections" => LimitName::Connections,
        other => return Err(format!("there is no limit `{other}`; there are {known}")),
    };
    Ok((name, size::parse(value)?))
}

fn seconds(given: &str) -> Result<Duration, String> {
    let text = given.strip_suffix('s').unwrap_or(given);
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 1e6 => Ok(Duration::from_secs_f64(value)),
        _ => Err(format!("`{given}` is not a time in seconds above 0, such as 30 or 0.5")),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::{Cli, limit, param, seconds};

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn values_are_read_or_refused() {
        assert_eq!(param("root=3"), Ok(("root".into(), "3".into())));
        assert!(param("root").is_err() && param("root=").is_err() && param("=3").is_err());
        assert!(limit("moves=5M").is_ok() && limit("source_bytes=64K").is_ok());
        assert!(limit("moves").is_err() && limit("speed=1").is_err() && limit("moves=x").is_err());
        assert_eq!(seconds("0.5").map(|d| d.as_millis()), Ok(500));
        assert!(
            seconds("0").is_err()
                && seconds("-1").is_err()
                && seconds("nan").is_err()
                && seconds("inf").is_err()
        );
    }
}
