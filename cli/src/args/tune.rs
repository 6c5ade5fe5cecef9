//! The options of `rcc tune` and `rcc cache`.
//!
//! In: the arguments. Out: what is measured, for how long, and where it is written. The comments are the text of its `--help`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};
use plan::dtype::Dtype;

use super::seconds;
use crate::size;

/// `rcc tune`
#[derive(Debug, Args)]
pub(crate) struct Tune {
    /// Only these collectives; repeat for more [default: all with typed calls but barrier]
    #[arg(long = "collective", value_name = "COLLECTIVE", action = ArgAction::Append)]
    pub(crate) collectives: Vec<String>,
    /// Numbers of ranks, by comma [default: 2,4,8; with --quick 2,4]
    #[arg(short = 'n', value_name = "RANKS", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) ranks: Vec<u32>,
    /// Sizes of calls, by comma [default: 8K,32K,256K,2M,16M,64M; with --quick 32K,2M]
    #[arg(long, short = 'b', value_name = "SIZE", value_parser = size::parse, value_delimiter = ',')]
    pub(crate) bytes: Vec<u64>,
    /// The element type
    #[arg(long, short = 'd', value_name = "TYPE", default_value = "f32")]
    pub(crate) dtype: Dtype,
    /// Memory of the buffers: plain, or registered, which ranks may reach into
    #[arg(long, value_name = "KIND", value_enum, default_value = "both")]
    pub(crate) memory: Kinds,
    /// Fewer cells, candidates and rounds: a first look
    #[arg(long)]
    pub(crate) quick: bool,
    /// Rounds: in each, every candidate is measured once [default: 5; with --quick 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,
    /// Begin no further cell after this many seconds [default: 1800; with --quick 120]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) within: Option<Duration>,
    /// Where to write [default: where programs look, rcc/tuning.toml below XDG_CONFIG_HOME or ~/.config]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Kinds of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kinds {
    /// Plain alone
    Plain,
    /// Registered alone
    Registered,
    /// One after the other
    Both,
}

/// `rcc cache`
#[derive(Debug, Args)]
pub(crate) struct Cache {
    /// What to do [default: say where they lie, and how much there is]
    #[arg(value_name = "ACTION", value_enum)]
    pub(crate) action: Option<CacheAction>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `rcc cache` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CacheAction {
    /// Remove all plans
    Clear,
}
