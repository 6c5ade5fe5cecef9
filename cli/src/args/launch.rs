//! The options of `rcc launch`.
//!
//! In: the arguments. Out: how many ranks of which program. The comments are the text of its `--help`.

use std::ffi::OsString;

use clap::Args;
use runtime::bootstrap::Settings;

/// `rcc launch`
#[derive(Debug, Args)]
pub(crate) struct Launch {
    /// How many ranks
    #[arg(short = 'n', value_name = "RANKS", value_parser = clap::value_parser!(u32).range(1..=i64::from(Settings::MOST_RANKS)))]
    pub(crate) ranks: u32,
    /// Keep each rank to its part of the CPUs (to one that it shares, where there are fewer CPUs than ranks)
    #[arg(long)]
    pub(crate) pin: bool,
    /// Begin each line of output with the rank that wrote it
    #[arg(long)]
    pub(crate) tag: bool,
    /// The program and its arguments; each rank finds in its environment who it is
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) program: Vec<OsString>,
}
