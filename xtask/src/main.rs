//! `cargo xtask`: builds, tests and checks rcc.
//!
//! In: a subcommand. Out: suites run one after the other, each with its time; the first failure does not stop the
//! others, and the exit status is 0 only if all passed. Needs cargo and a C compiler; what else a suite needs it
//! gets by itself, or it says by name why it cannot run here. `bench peers` is a comparison (`peers`).

#![allow(clippy::disallowed_methods, reason = "a tool that runs commands and times them")]

mod library;
mod peers;
mod suites;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Builds, tests and checks rcc")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Every suite that CI runs.
    Test {
        /// Full matrices and long random runs instead of a covering choice.
        #[arg(long)]
        full: bool,
        /// Only the suites whose name contains this.
        #[arg(long)]
        only: Option<String>,
        /// What random choices begin with; by default another number each time, which is printed.
        #[arg(long)]
        seed: Option<u64>,
    },
    /// `test`, then licences, sources and bans of all dependencies (builds cargo-deny if it is not there).
    Ci,
    /// Only licences, sources and bans.
    Deny,
    /// Names of the suites.
    List,
    /// Writes the header of the C interface anew, of its source.
    Header,
    /// Installs the C library below a folder, for programs to be built and linked with.
    Library(library::Args),
    /// Comparisons with what others have.
    Bench {
        #[command(subcommand)]
        with: With,
    },
}

#[derive(Subcommand)]
enum With {
    /// rcc against MPI libraries over shared memory, which are fetched and built where they are not there.
    Peers(peers::Args),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Test { full, only, seed } => suites::run(&suites::tests(full), only.as_deref(), seed),
        Command::Ci => {
            let mut all = suites::tests(false);
            all.push(suites::deny());
            suites::run(&all, None, None)
        }
        Command::Deny => suites::run(&[suites::deny()], None, None),
        Command::List => {
            for suite in suites::tests(false) {
                println!("{:<14} {}", suite.name, suite.about);
            }
            ExitCode::SUCCESS
        }
        Command::Header => suites::header(),
        Command::Library(args) => library::run(&args),
        Command::Bench { with: With::Peers(args) } => peers::run(&args),
    }
}
