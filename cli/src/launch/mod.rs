//! `rcc launch`: a program, started as several ranks on this machine.
//!
//! In: the program, how many. Out: its exit status: 0 if all ranks ended with 0, else that of the first that did not, after
//! the others were ended. The one hard idea: nothing is left behind. Each rank leads a process group, which is signalled
//! as a whole; a rank that has ended stays unreaped until all have, so that its number cannot become another process's;
//! and the kernel kills the ranks if this process is killed.

mod lines;
mod rank;
mod signals;

use std::sync::Arc;
use std::time::{Duration, Instant};

use runtime::bootstrap::Secret;
use runtime::bootstrap::reserve::Reserved;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use self::lines::Stream;
use self::rank::{End, Rank, World};
use self::signals::Forwarded;
use crate::args;
use crate::failure::Failure;
use crate::output::Output;

/// How long ranks may take to end when they are asked to.
const GRACE: Duration = Duration::from_secs(5);

/// Starts the ranks and waits for their end.
pub(crate) fn run(args: &args::Launch, output: &mut Output) -> Result<(), Failure> {
    let machine = |error: runtime::error::Error| Failure::Machine(error.to_string());
    // Who started this may have had its children's ends ignored, and then nobody learns how a rank ended.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGCHLD, Arc::default());
    // Before anything is started that would outlive this process.
    let signals = Forwarded::new().map_err(|e| Failure::Machine(format!("cannot handle signals: {e}")))?;
    let reserved = Reserved::new().map_err(machine)?;
    let world = World {
        ranks: args.ranks,
        address: reserved.address(),
        secret: Secret::random().map_err(machine)?,
        pin: args.pin,
        tag: args.tag,
    };
    let mut launch = Launch { ranks: Vec::new(), stage: Stage::Running };
    for rank in 0..args.ranks {
        launch.ranks.push(Rank::start(rank, &world, &args.program)?);
    }
    launch.watch(&signals, output);
    launch.end(output)
}

struct Launch {
    ranks: Vec<Rank>,
    stage: Stage,
}

/// How far it has come.
enum Stage {
    Running,
    /// Asked to end by a signal, which was passed on.
    Asked,
    /// A rank has failed, and the others were asked to end.
    Ending {
        failed: usize,
        since: Instant,
    },
    /// All were killed; the ranks that had to be.
    Killed {
        failed: Option<usize>,
        stubborn: Vec<u32>,
    },
}

impl Launch {
    /// Waits until all ranks have ended, and passes on what comes.
    fn watch(&mut self, signals: &Forwarded, output: &mut Output) {
        while self.ranks.iter().any(|rank| rank.end.is_none()) {
            self.wait(signals);
            for signal in signals.take() {
                self.pass_on(signal);
            }
            for stream in self.ranks.iter_mut().flat_map(|rank| &mut rank.streams) {
                stream.pump(output);
            }
            self.look();
            match self.stage {
                Stage::Ending { failed, since } if since.elapsed() > GRACE => self.kill(Some(failed)),
                _ => {}
            }
        }
        for stream in self.ranks.iter_mut().flat_map(|rank| &mut rank.streams) {
            stream.pump(output);
            stream.finish(output);
        }
    }

    fn wait(&self, signals: &Forwarded) {
        let mut fds: Vec<PollFd<'_>> = signals.fds().collect();
        for rank in &self.ranks {
            if rank.end.is_none() {
                fds.push(PollFd::new(&rank.pidfd, PollFlags::IN));
            }
            fds.extend(
                rank.streams
                    .iter()
                    .filter_map(Stream::fd)
                    .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)),
            );
        }
        let most = match self.stage {
            Stage::Ending { .. } => Timespec { tv_sec: 0, tv_nsec: 50_000_000 },
            _ => Timespec { tv_sec: 60, tv_nsec: 0 },
        };
        // An interrupted wait is one that was shorter.
        let _ = poll(&mut fds, Some(&most));
    }

    /// A signal to this process is one to every rank. The second that asks for the end does not ask any more.
    fn pass_on(&mut self, signal: Signal) {
        let asks = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT].contains(&signal);
        match self.stage {
            Stage::Running if asks => self.stage = Stage::Asked,
            Stage::Asked if asks => return self.kill(None),
            Stage::Ending { failed, .. } if asks => return self.kill(Some(failed)),
            _ => {}
        }
        self.ranks.iter().for_each(|rank| rank.signal(signal));
    }

    /// Notices who has ended; if one has failed, the others are asked to end.
    fn look(&mut self) {
        let mut bad = Vec::new();
        for (place, rank) in self.ranks.iter_mut().enumerate().filter(|(_, rank)| rank.end.is_none()) {
            rank.look();
            if let Some(end) = rank.end.filter(|end| !end.is_good()) {
                bad.push((place, end));
            }
        }
        // Of those that ended together, one that was killed is the likelier cause: the others may have missed it.
        let killed = bad.iter().find(|(_, end)| matches!(end, End::Killed(_)));
        let (Some(&(failed, _)), Stage::Running | Stage::Asked) = (killed.or(bad.first()), &self.stage)
        else {
            return;
        };
        self.stage = Stage::Ending { failed, since: Instant::now() };
        self.ranks.iter().filter(|rank| rank.end.is_none()).for_each(|rank| rank.signal(Signal::TERM));
    }

    fn kill(&mut self, failed: Option<usize>) {
        let alive = || self.ranks.iter().filter(|rank| rank.end.is_none());
        alive().for_each(|rank| rank.signal(Signal::KILL));
        let stubborn = alive().map(|rank| rank.number).collect();
        self.stage = Stage::Killed { failed, stubborn };
    }

    /// Says how it ended. What a failed rank has left of its group is ended too.
    fn end(mut self, output: &mut Output) -> Result<(), Failure> {
        let (failed, stubborn) = match std::mem::replace(&mut self.stage, Stage::Running) {
            Stage::Running | Stage::Asked => return Ok(()),
            Stage::Ending { failed, .. } => (Some(failed), Vec::new()),
            Stage::Killed { failed, stubborn } => (failed, stubborn),
        };
        let first_bad = || self.ranks.iter().position(|rank| rank.end.is_some_and(|end| !end.is_good()));
        let Some(rank) = failed.or_else(first_bad).and_then(|place| self.ranks.get(place)) else {
            return Ok(());
        };
        let Some(end) = rank.end else { return Ok(()) };
        let mut message =
            format!("error: rank {} (process {}) {end}", rank.number, rank.pid.as_raw_nonzero());
        if self.ranks.len() > 1 {
            message += "; the other ranks were ended";
        }
        if !stubborn.is_empty() {
            let names: Vec<String> = stubborn.iter().map(u32::to_string).collect();
            message += &format!("; killed, as they did not end when asked: {}", names.join(", "));
        }
        output.note(&message);
        self.ranks.iter().for_each(|rank| rank.signal(Signal::KILL));
        Err(Failure::Told(end.status()))
    }
}
