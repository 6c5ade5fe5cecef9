//! Ranks as threads of this process.
//!
//! In: a plan and a job. Out: its report. Everything but the processes is as in `launch`: the same segment, the same
//! code for a rank. One address space, so that a race detector can watch:
//!
//! ```text
//! cargo xtask test --only race
//! ```
//!
//! (`std` is not instrumented, hence the suppressions; the protocol uses the
//! atomics of `core`, which are.)

use std::panic::{AssertUnwindSafe, catch_unwind};

use plan::ids::RankId;
use plan::verify::VerifiedPlan;

use super::geometry::{self, Geometry};
use super::rank::run_rank;
use super::{Job, RankReport, Report};
use crate::error::{Error, Kind};
use crate::memory::segment::Segment;

/// Runs a job with one thread per rank.
pub fn run_threads(plan: &VerifiedPlan, job: &Job) -> Result<Report, Error> {
    run_threads_from(plan, job, 0)
}

/// The same, as if each channel had carried `number` messages before: message numbers have 64 bits and must not
/// care.
pub fn run_threads_from(plan: &VerifiedPlan, job: &Job, number: u64) -> Result<Report, Error> {
    let geometry = Geometry::of(plan, job)?;
    let needs = geometry::needs(plan, job, geometry)?;
    let (segment, _fd) = Segment::create(geometry.segment_for(plan, job)?)?;
    segment.number_from(number);
    let mut outcomes: Vec<Result<RankReport, Error>> = Vec::new();
    std::thread::scope(|scope| {
        let segment = &segment;
        let one = move |rank| {
            let run = AssertUnwindSafe(|| run_rank(plan, job, geometry, segment, RankId(rank)));
            catch_unwind(run).unwrap_or_else(|panic| {
                let error = Error::new(Kind::Internal, panic_message(&*panic)).culprit(rank);
                segment.board().abort(&error);
                Err(error)
            })
        };
        let threads: Vec<_> = (0..plan.header.ranks)
            .map(|rank| {
                std::thread::Builder::new()
                    .name(format!("rank {rank}"))
                    .spawn_scoped(scope, move || one(rank))
            })
            .collect();
        for (rank, thread) in threads.into_iter().enumerate() {
            outcomes.push(match thread {
                Ok(thread) => thread.join().unwrap_or_else(|panic| {
                    Err(Error::new(Kind::Internal, panic_message(&*panic)).culprit(rank as u32))
                }),
                Err(e) => {
                    let error =
                        Error::new(Kind::Resource, format!("cannot start a thread for rank {rank}: {e}"));
                    segment.board().abort(&error);
                    Err(error)
                }
            });
        }
    });
    // The error that ended the run stands on the board; a rank that reports it says best where all stood.
    let cause = segment.board().cause();
    let reports: Result<Vec<RankReport>, Error> = outcomes.into_iter().collect();
    reports.map(|ranks| Report::of(geometry, needs, ranks)).map_err(|first| match cause {
        Some(cause) if cause.kind != first.kind => cause,
        _ => first,
    })
}

pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a rank panicked: {}", text.unwrap_or("(no message)"))
}
