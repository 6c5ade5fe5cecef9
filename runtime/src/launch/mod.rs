//! Ranks as processes of this machine.
//!
//! In: a verified plan, a [`Job`], [`Options`]. Out: its report, or the error that ended it. [`run`] makes the shared
//! segment, starts a process per rank from this very executable (`spawn`), talks to each over a socket pair
//! ([`control`]) and watches over them (`supervise`); [`child_entry`] is the other side, to be called first thing
//! in `main`:
//!
//! ```no_run
//! if let Some(status) = rcc_runtime::launch::child_entry() {
//!     std::process::exit(status);
//! }
//! ```
//!
//! The one hard idea: nothing may be left behind, however it ends. A rank dies with its launcher (the kernel's
//! parent-death signal, and the end of the socket, each alone enough), the launcher kills and reaps what it started
//! before it returns, and memory has no name, so that it goes with the last process.

mod child;
pub mod control;
mod signals;
mod spawn;
mod supervise;

use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use plan::verify::VerifiedPlan;

pub use self::child::child_entry;
pub use self::signals::{StopSignals, ignored};
use self::supervise::Supervisor;
use crate::error::Error;
use crate::job::geometry::{self, Geometry};
use crate::job::{Job, Report};
use crate::memory::memfd;
use crate::memory::segment::Segment;

/// How to start and stop.
#[derive(Debug, Default)]
pub struct Options<'a> {
    /// The run is stopped when this becomes readable ([`StopSignals`] makes one of SIGINT and SIGTERM).
    pub stop: Option<BorrowedFd<'a>>,
    /// The executable whose `main` begins with [`child_entry`]; this one if not given.
    pub program: Option<PathBuf>,
    /// Is told the process of each rank, once all have been started.
    pub started: Option<fn(&[u32])>,
}

/// Runs a job with one process per rank. To be called from a thread that lives until it returns.
pub fn run(plan: &VerifiedPlan, job: &Job, options: &Options<'_>) -> Result<Report, Error> {
    let geometry = Geometry::of(plan, job)?;
    let needs = geometry::needs(plan, job, geometry)?;
    let (segment, segment_fd) = Segment::create(geometry.segment_for(plan, job)?)?;
    let plan_fd = memfd::publish(c"rcc-plan", &plan.to_bytes())?;
    let program = options.program.clone().unwrap_or_else(|| PathBuf::from("/proc/self/exe"));

    let mut supervisor = Supervisor::new(plan, &segment, job);
    for rank in 0..plan.header.ranks {
        let child = spawn::spawn(&program, rank, segment_fd.as_fd(), plan_fd.as_fd())?;
        supervisor.add(child, &control::Assignment { rank, geometry, job: job.clone() });
    }
    drop((segment_fd, plan_fd));
    if let Some(started) = options.started {
        started(&supervisor.pids());
    }
    let ranks = supervisor.run(options.stop)?;
    Ok(Report::of(geometry, needs, ranks))
}
