//! Watching over the processes of a run.
//!
//! In: processes that have been started. Out: their reports, or the error that ended the run; in both cases every one
//! of them is dead and reaped. A rank that dies is seen twice, by its pidfd and by its socket; whichever comes first
//! puts it on the abort board, which ends the waits of all others at once. Those get [`GRACE`] to say where they
//! stood, and are then killed. Ranks watch over each other too, and know more; but if all stand still, or the only one
//! that is left, nobody but the launcher is there to see it.

use std::os::fd::BorrowedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use plan::verify::VerifiedPlan;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::control::{self, Assignment, Frames, FromRank, ToRank};
use super::spawn::Started;
use crate::error::{Error, Kind, Position};
use crate::job::{Job, RankReport};
use crate::memory::segment::Segment;
use crate::watch;

/// How long ranks may at least take to start: a deadline for calls may be short, but a plan takes its time to verify.
const LEAST_START: Duration = Duration::from_secs(30);

/// How long ranks may take to end once the run has failed.
const GRACE: Duration = Duration::from_millis(1000);

/// How often the launcher looks whether anything moves, at most.
const LOOK: Duration = Duration::from_millis(100);

pub(super) struct Supervisor<'a> {
    plan: &'a VerifiedPlan,
    segment: &'a Segment,
    /// For how long nothing may be heard before all ranks are ready.
    start: Duration,
    /// For how long no rank may go on after that: longer than ranks wait for each other, since they know more.
    patience: Duration,
    motion: Motion,
    ranks: Vec<Watched>,
    /// What ended the run, and when.
    failure: Option<(Error, Instant)>,
    /// Where all ranks stood when it did.
    positions: Vec<Position>,
}

/// What was seen last of all ranks, and for how long that has not changed.
struct Motion {
    seen: u64,
    still: Duration,
    looked: Instant,
}

struct Watched {
    started: Started,
    frames: Frames,
    ready: bool,
    outcome: Option<Result<RankReport, Error>>,
    exited: Option<ExitStatus>,
}

impl<'a> Supervisor<'a> {
    pub(super) fn new(plan: &'a VerifiedPlan, segment: &'a Segment, job: &Job) -> Supervisor<'a> {
        Supervisor {
            plan,
            segment,
            start: job.deadline.max(LEAST_START),
            patience: job.deadline.max(job.late.unwrap_or_default()) + GRACE,
            motion: Motion { seen: 0, still: Duration::ZERO, looked: Instant::now() },
            ranks: Vec::new(),
            failure: None,
            positions: Vec::new(),
        }
    }

    /// Watches over one more process, and tells it what to do.
    pub(super) fn add(&mut self, started: Started, assignment: &Assignment) {
        let watched =
            Watched { started, frames: Frames::default(), ready: false, outcome: None, exited: None };
        self.ranks.push(watched);
        self.tell(self.ranks.len() - 1, &ToRank::Assignment(Box::new(assignment.clone())));
    }

    pub(super) fn pids(&self) -> Vec<u32> {
        self.ranks.iter().map(|rank| rank.started.child.id()).collect()
    }

    /// Watches until all have ended.
    pub(super) fn run(mut self, stop: Option<BorrowedFd<'_>>) -> Result<Vec<RankReport>, Error> {
        let mut going = false;
        let mut last_news = Instant::now();
        while self.ranks.iter().any(|rank| rank.exited.is_none()) {
            let (news, stopped) = self.wait(stop);
            if news {
                last_news = Instant::now();
            }
            if stopped {
                let error = Error::new(Kind::Aborted, "the run was stopped by a signal");
                self.fail(error);
                // Whoever asked for this wants it now.
                break;
            }
            if !going && self.failure.is_none() && self.ranks.iter().all(|rank| rank.ready) {
                going = true;
                for rank in 0..self.ranks.len() {
                    self.tell(rank, &ToRank::Go);
                }
            }
            if !going && self.failure.is_none() && last_news.elapsed() > self.start {
                self.fail(self.late());
            }
            if going && self.failure.is_none() {
                let still = self.motion.look(self.segment, news);
                if still > self.patience {
                    let running = |rank: u32| self.ranks[rank as usize].exited.is_none();
                    self.fail(watch::all_stand_still(self.plan, self.segment, running, still));
                }
            }
            match &self.failure {
                Some((_, since)) if since.elapsed() > GRACE => break,
                _ => {}
            }
        }
        self.end()
    }

    /// Waits for news, and takes them; whether there were any, and whether the run is to stop.
    fn wait(&mut self, stop: Option<BorrowedFd<'_>>) -> (bool, bool) {
        let mut fds = Vec::with_capacity(2 * self.ranks.len() + 1);
        let mut whose = Vec::with_capacity(fds.capacity());
        for (r, rank) in self.ranks.iter().enumerate().filter(|(_, rank)| rank.exited.is_none()) {
            fds.push(PollFd::new(&rank.started.pidfd, PollFlags::IN));
            whose.push(r);
            if !rank.frames.ended() {
                fds.push(PollFd::new(&rank.started.socket, PollFlags::IN));
                whose.push(r);
            }
        }
        if let Some(stop) = &stop {
            fds.push(PollFd::new(stop, PollFlags::IN));
        }
        // Short enough for deadlines and the grace period; everything else wakes the poll.
        let most = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        if poll(&mut fds, Some(&most)).is_err() {
            // Interrupted by a signal, whose handler has made `stop` readable.
            return (false, false);
        }
        let stopped = stop.is_some() && fds.last().is_some_and(|fd| !fd.revents().is_empty());
        let ready = whose.iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
        let ready: Vec<usize> = ready.map(|(&r, _)| r).collect();
        for &rank in &ready {
            self.look(rank);
        }
        (!ready.is_empty(), stopped)
    }

    /// Takes what a rank says, and notices whether it has ended.
    fn look(&mut self, r: usize) {
        let rank = &mut self.ranks[r];
        let mut exited = rank.started.child.try_wait().ok().flatten();
        // After the look at the process: what a process said before it ended is then complete.
        rank.frames.fill(&mut rank.started.socket);
        if exited.is_none() && rank.frames.ended() {
            // A dying process closes its socket a moment before it can be reaped, and how it died is worth that moment.
            let soon = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
            let _ = poll(&mut [PollFd::new(&rank.started.pidfd, PollFlags::IN)], Some(&soon));
            exited = rank.started.child.try_wait().ok().flatten();
        }
        let failed = loop {
            match rank.frames.take::<FromRank>() {
                Ok(Some(FromRank::Ready)) => rank.ready = true,
                Ok(Some(FromRank::Done(report))) => rank.outcome = Some(Ok(report)),
                Ok(Some(FromRank::Failed(error))) => {
                    rank.outcome = Some(Err(error.clone()));
                    break Some(error);
                }
                Ok(None) => break None,
                Err(error) => break Some(error.culprit(r as u32)),
            }
        };
        rank.exited = rank.exited.or(exited);
        let silent = rank.outcome.is_none();
        let gone = match rank.exited {
            Some(status) => Some(manner(status)),
            None if rank.frames.ended() && silent => {
                Some("it closed its connection to the launcher".to_string())
            }
            None => None,
        };
        if let Some(error) = failed {
            self.fail(error);
        } else if let (Some(how), true) = (gone, silent) {
            let error = Error::new(Kind::PeerDied, format!("rank {r} died: {how}")).culprit(r as u32);
            self.fail(error);
        }
    }

    /// Puts an error on the board, for all to see; the first one counts.
    fn fail(&mut self, error: Error) {
        if self.failure.is_none() {
            self.positions = watch::positions(self.plan, self.segment);
            self.segment.board().abort(&error);
            // A rank that dies while it writes its error leaves one that says nothing; this one does.
            let cause =
                self.segment.board().cause().filter(|cause| cause.kind != Kind::Aborted).unwrap_or(error);
            self.failure = Some((cause, Instant::now()));
        }
    }

    fn late(&self) -> Error {
        let absent = self.ranks.iter().enumerate().filter(|(_, rank)| !rank.ready).map(|(r, _)| r as u32);
        let absent: Vec<u32> = absent.collect();
        let names: Vec<String> = absent.iter().map(u32::to_string).collect();
        let message = format!("not ready after {:?}: rank {}", self.start, names.join(", "));
        Error::new(Kind::Late, message).of(absent)
    }

    /// Tells a rank something. If it cannot be told, it has ended, and the next look at it says how.
    fn tell(&mut self, rank: usize, message: &ToRank) {
        let socket = &mut self.ranks[rank].started.socket;
        // A few hundred bytes always fit the empty buffer of a new socket.
        let _ = control::send(socket, message);
    }

    /// Ends all that still run, and says what came of it.
    fn end(mut self) -> Result<Vec<RankReport>, Error> {
        self.kill();
        let Some((mut error, _)) = self.failure.take() else {
            let reports =
                self.ranks.iter_mut().enumerate().map(|(r, rank)| match rank.outcome.take() {
                    Some(outcome) => outcome,
                    None => Err(Error::new(Kind::PeerDied, format!("rank {r} ended without a result"))
                        .culprit(r as u32)),
                });
            return reports.collect();
        };
        // A rank that could say where it stood knows best; of the others the board tells.
        let mut positions = std::mem::take(&mut self.positions);
        for (position, rank) in positions.iter_mut().zip(&self.ranks) {
            if let Some(Err(own)) = &rank.outcome
                && let Some(seen) = &own.seen
            {
                *position = seen.clone();
            }
        }
        error.seen = error
            .seen
            .take()
            .map(|seen| positions.iter().find(|p| p.rank == seen.rank).cloned().unwrap_or(seen));
        let shown = error.seen.as_ref().map(|seen| seen.rank);
        error.others = positions.into_iter().filter(|p| Some(p.rank) != shown).collect();
        Err(error)
    }

    fn kill(&mut self) {
        for rank in self.ranks.iter_mut().filter(|rank| rank.exited.is_none()) {
            // The process is not reaped yet, so its number is still its own.
            let _ = rank.started.child.kill();
        }
        for rank in self.ranks.iter_mut().filter(|rank| rank.exited.is_none()) {
            rank.exited = rank.started.child.wait().ok();
        }
    }
}

impl Motion {
    /// Looks, if it is time to; for how long nothing has moved. Time in which this process itself was stopped does not
    /// count: whoever stopped it will have stopped the ranks too.
    fn look(&mut self, segment: &Segment, news: bool) -> Duration {
        let since = self.looked.elapsed();
        if since < LOOK && !news {
            return self.still;
        }
        self.looked = Instant::now();
        let now = watch::motion(segment);
        let moved = std::mem::replace(&mut self.seen, now) != now || news;
        self.still = if moved { Duration::ZERO } else { self.still + since.min(2 * LOOK) };
        self.still
    }
}

impl Drop for Supervisor<'_> {
    fn drop(&mut self) {
        self.kill();
    }
}

/// How a process ended.
fn manner(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => match signal_hook::low_level::signal_name(signal) {
            Some(name) => format!("killed by {name}"),
            None => format!("killed by signal {signal}"),
        },
        (_, Some(code)) => format!("it ended with status {code}"),
        _ => "it ended".to_string(),
    }
}
