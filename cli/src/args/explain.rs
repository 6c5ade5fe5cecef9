//! The options of `rcc explain`.
//!
//! In: the arguments. Out: what is explained, on which machine. The comments are the text of its `--help`.

use std::path::PathBuf;

use clap::Args;
use plan::dtype::{Dtype, Op};

use super::{Choice, Scheduling};
use crate::shape::{self, Shape};
use crate::size;

/// `rcc explain`
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// An error code such as coll::promise; or source files, plans and standard algorithms (std::allreduce: all of them),
    /// whose costs are explained side by side
    #[arg(value_name = "CODE|FILE", required_unless_present_any = ["list", "collective"])]
    pub(crate) subjects: Vec<PathBuf>,
    /// List all error codes
    #[arg(long, conflicts_with = "subjects")]
    pub(crate) list: bool,
    /// Instead of a file: which plan a call of a collective would run, and why the others do not
    #[arg(long, value_name = "COLLECTIVE", conflicts_with_all = ["subjects", "list", "measure"])]
    pub(crate) collective: Option<String>,
    /// The operator of that call
    #[arg(long, short = 'o', value_name = "OP", default_value = "sum", requires = "collective")]
    pub(crate) op: Op,
    /// The call's buffers are registered: ranks may reach into them
    #[arg(long, requires = "collective")]
    pub(crate) registered: bool,
    /// The call's result takes the place of what is sent (of registered memory that is another plan)
    #[arg(long, requires = "collective", conflicts_with = "out_of_place")]
    pub(crate) in_place: bool,
    /// What was measured, to select that call's plan by [default: RCC_TUNING, else where `rcc tune` writes]
    #[arg(long, value_name = "FILE", requires = "collective")]
    pub(crate) tuning: Option<PathBuf>,
    /// The world shape [default: 8; for two levels 2x4]
    #[arg(long, short = 'n', value_name = "SHAPE", value_parser = shape::parse_one)]
    pub(crate) ranks: Option<Shape>,
    #[command(flatten)]
    pub(crate) choice: Choice,
    #[command(flatten)]
    pub(crate) scheduling: Scheduling,
    /// Bytes of the larger of send and receive buffer; several by comma or repetition
    #[arg(long, short = 'b', value_name = "SIZE", default_value = "64MiB", value_parser = size::parse, value_delimiter = ',')]
    pub(crate) bytes: Vec<u64>,
    /// The element type
    #[arg(long, short = 'd', value_name = "TYPE", default_value = "f32")]
    pub(crate) dtype: Dtype,
    /// The machine: 2-cores, 8xh100, 8xh100-ideal, 2x8xh100, 128x8xh100, or a file in TOML [default: the smallest of GPUs
    /// that has so many ranks]
    #[arg(long, value_name = "NAME|FILE.toml")]
    pub(crate) topology: Option<PathBuf>,
    /// For calls with send and receive memory apart: direct access may give up others
    #[arg(long)]
    pub(crate) out_of_place: bool,
    /// Slots per channel [default: chosen]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) slots: Option<u32>,
    /// Bytes per slot [default: chosen]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub(crate) slot_bytes: Option<u64>,
    /// Also run every call on this machine, and compare
    #[arg(long)]
    pub(crate) measure: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}
