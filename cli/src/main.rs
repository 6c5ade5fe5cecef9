//! The `rcc` command.
//!
//! In: arguments. Out: results on standard output, everything else on standard error, and an exit status (docs/cli.md).
//! Here is only which command runs; each has a module of its own.

#![allow(clippy::disallowed_methods, reason = "the edge: arguments, environment, files, clock")]

mod allocator;
mod args;
mod atomic;
mod bench;
mod cache;
mod call;
mod check;
mod chosen;
mod compile;
mod emit;
mod explain;
mod failure;
mod fmt;
mod history;
mod job_env;
mod launch;
mod machine;
mod one_rank;
mod output;
mod run;
mod said;
mod shape;
mod show;
mod size;
mod stages;
mod target;
mod tune;
mod worlds;

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::args::{Cli, Command};
use crate::failure::Failure;
use crate::output::Output;

fn main() -> ExitCode {
    let logs = rcc::log::to_stderr();
    // A rank of a run is this program once more.
    if let Some(status) = runtime::launch::child_entry() {
        return ExitCode::from(u8::try_from(status).unwrap_or(3));
    }
    allocator::keep_pages();
    let cli = Cli::parse();
    // To write beyond the limit for files is an error like a full disk; without a handler the signal ends the process
    // and leaves half a file behind. If there can be none, that is as it was.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    // A program that is launched finds the limits of whoever launches it.
    if !matches!(cli.command, Command::Launch(_)) {
        raise_open_files();
    }
    let mut output = Output::new();
    let logs = logs.map_err(|error| Failure::Usage(error.message.clone(), error.help.clone()));
    let done = logs.and_then(|_| dispatch(&cli.command, &mut output)).and_then(|()| output.flush());
    let Err(failure) = done else { return ExitCode::SUCCESS };
    if cli.command.json() {
        output.json_failure(&failure);
    }
    // What was found before it failed is still a result.
    let _ = output.flush();
    let message = failure.to_string();
    if !message.is_empty() {
        output.note(&message);
    }
    ExitCode::from(failure.status())
}

/// Every rank of a run takes a few open files of the launcher; the usual soft limit, 1,024, is reached at some 340
/// ranks, while the hard one is far away. If it cannot be raised, it stays, and a run that needs more says so.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn dispatch(command: &Command, output: &mut Output) -> Result<(), Failure> {
    match command {
        Command::Check(args) => check::run(args, output),
        Command::Compile(args) => compile::run(args, output),
        Command::Show(args) => show::run(args, output),
        Command::Run(args) => run::run(args, output),
        Command::Bench(args) => bench::run(args, output),
        Command::Explain(args) => explain::run(args, output),
        Command::Fmt(args) => fmt::run(args, output),
        Command::Cache(args) => cache::run(args, output),
        Command::Tune(args) => tune::run(args, output),
        Command::Launch(args) => launch::run(args, output),
    }
}
