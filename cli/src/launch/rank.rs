//! One rank of a launch: a process that leads a group of its own.
//!
//! In: the program, and who it is to be. Out: how it ended. It stays unreaped as long as this value lives, so that its number
//! names this group and no other.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, ErrorKind, IsTerminal};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use runtime::bootstrap::Secret;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, getppid, kill_process_group, pidfd_open,
    set_parent_process_death_signal, waitid,
};
use rustix::thread::sched_setaffinity;

use super::lines::Stream;
use super::signals::name;
use crate::failure::{Failure, plain};

/// What all ranks are told.
pub(super) struct World {
    pub(super) ranks: u32,
    pub(super) address: String,
    pub(super) secret: Secret,
    pub(super) pin: bool,
    pub(super) tag: bool,
}

/// A rank that was started.
pub(super) struct Rank {
    pub(super) number: u32,
    pub(super) pid: Pid,
    /// Readable when it has ended.
    pub(super) pidfd: OwnedFd,
    /// What it writes, if that is to be tagged.
    pub(super) streams: Vec<Stream>,
    pub(super) end: Option<End>,
    child: Child,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Status(i32),
    Killed(i32),
}

impl Rank {
    /// Starts the program as a rank.
    pub(super) fn start(number: u32, world: &World, program: &[OsString]) -> Result<Rank, Failure> {
        let [program, arguments @ ..] = program else { return Err(Failure::usage("no program is given")) };
        let failed = |error: &io::Error| {
            let message = format!("cannot start {} as rank {number}: {}", program.display(), plain(error));
            let ours = [ErrorKind::NotFound, ErrorKind::PermissionDenied, ErrorKind::ArgumentListTooLong];
            // An executable of another form (ENOEXEC) has no kind of its own.
            if ours.contains(&error.kind()) || error.raw_os_error() == Some(8) {
                Failure::usage(message)
            } else {
                Failure::Machine(message)
            }
        };
        let mut command = Command::new(program);
        command.args(arguments);
        command.env("RCC_RANK", number.to_string()).env("RCC_LOCAL_RANK", number.to_string());
        command.env("RCC_WORLD", world.ranks.to_string()).env("RCC_RENDEZVOUS", &world.address);
        command.env("RCC_SECRET", String::from_utf8_lossy(world.secret.expose()).as_ref());
        // A group that is not the terminal's may not read from it.
        if number > 0 || io::stdin().is_terminal() {
            command.stdin(Stdio::null());
        }
        if world.tag {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        let cpus = world.pin.then(|| runtime::cpus::part(number, world.ranks)).flatten();
        if world.pin && cpus.is_none() {
            return Err(Failure::Machine("the system does not say which CPUs there are".to_string()));
        }
        command.process_group(0);
        let parent = getpid();
        let before_exec = move || {
            // Dies with the thread that forked it. If that is dead already, the signal would never come.
            set_parent_process_death_signal(Some(Signal::KILL))?;
            if getppid() != Some(parent) {
                return Err(rustix::io::Errno::SRCH.into());
            }
            cpus.as_ref().map_or(Ok(()), |cpus| sched_setaffinity(None, cpus)).map_err(io::Error::from)
        };
        // SAFETY: the closure makes system calls only, on plain data.
        unsafe { command.pre_exec(before_exec) };
        let mut child = command.spawn().map_err(|e| failed(&e))?;
        let watched = Pid::from_raw(child.id() as i32)
            .ok_or(rustix::io::Errno::SRCH)
            .and_then(|pid| Ok((pid, pidfd_open(pid, PidfdFlags::empty())?)));
        let (pid, pidfd) = match watched {
            Ok(watched) => watched,
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed(&error.into()));
            }
        };
        let mut rank = Rank { number, pid, pidfd, streams: Vec::new(), end: None, child };
        if let (Some(out), Some(err)) = (rank.child.stdout.take(), rank.child.stderr.take()) {
            let tag = tag(number, world.ranks);
            rank.streams.push(Stream::output(OwnedFd::from(out), &tag).map_err(|e| failed(&e))?);
            rank.streams.push(Stream::errors(OwnedFd::from(err), &tag).map_err(|e| failed(&e))?);
        }
        Ok(rank)
    }

    /// Notices if it has ended.
    pub(super) fn look(&mut self) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if let Ok(Some(status)) = waitid(WaitId::Pid(self.pid), options) {
            self.end = match (status.exit_status(), status.terminating_signal()) {
                (Some(status), _) => Some(End::Status(status)),
                (None, Some(signal)) => Some(End::Killed(signal)),
                (None, None) => None,
            };
        }
    }

    /// Sends a signal to all of its group. There may be nobody left.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.pid, signal);
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        if self.end.is_none() {
            self.signal(Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

impl End {
    pub(super) fn is_good(self) -> bool {
        self == End::Status(0)
    }

    /// The exit status that tells it, as shells have it.
    pub(super) fn status(self) -> u8 {
        match self {
            End::Status(status) => status as u8,
            End::Killed(signal) => 128u8.wrapping_add(signal as u8),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Status(status) => write!(f, "ended with status {status}"),
            End::Killed(signal) => write!(f, "was killed by {}", name(*signal)),
        }
    }
}

/// What begins the lines of a rank: its number, as wide as the widest.
fn tag(number: u32, ranks: u32) -> String {
    let width = (ranks - 1).to_string().len();
    format!("[{number:width$}] ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_of_one_width_and_statuses_as_in_shells() {
        assert_eq!((tag(3, 10), tag(3, 11), tag(0, 1)), ("[3] ".into(), "[ 3] ".into(), "[0] ".into()));
        assert_eq!((End::Status(7).status(), End::Killed(9).status()), (7, 137));
        assert_eq!(End::Killed(11).to_string(), "was killed by SIGSEGV");
    }
}
