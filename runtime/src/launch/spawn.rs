//! Starting a rank's process.
//!
//! In: the executable, the descriptors a rank gets. Out: a running process that has these descriptors and no others
//! beside its standard streams, and that dies when this thread does. The one hard idea: between fork and exec only
//! system calls are allowed, and the descriptors keep their numbers, because moving them could hit one that the
//! standard library uses to report a failed exec.

use std::fmt::Write;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::error::{Error, Kind};

/// The hidden first argument that makes an executable a rank.
pub(super) const MARK: &str = "__rank";

/// A rank's process.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) pidfd: OwnedFd,
    pub(super) socket: UnixStream,
}

/// Starts the process of `rank`.
pub(super) fn spawn(
    program: &Path,
    rank: u32,
    segment: BorrowedFd<'_>,
    plan: BorrowedFd<'_>,
) -> Result<Started, Error> {
    let failed = |what: &str, why: std::io::Error| {
        let error = Error::new(Kind::Resource, format!("cannot {what} for rank {rank}: {why}"));
        match why.raw_os_error() {
            Some(libc::EMFILE) => {
                error.help("raise `ulimit -n` (a rank takes a few open files here), or run fewer ranks")
            }
            _ => error,
        }
    };
    let (socket, other) = UnixStream::pair().map_err(|e| failed("make a socket", e))?;
    let passed = [other.as_raw_fd(), segment.as_raw_fd(), plan.as_raw_fd()];
    let parent = std::process::id();
    let mut spec = String::new();
    for number in passed {
        let _ = write!(spec, "{number},");
    }
    let _ = write!(spec, "{parent}");

    let mut command = Command::new(program);
    command.arg(MARK).arg(spec).stdin(Stdio::null()).stdout(Stdio::null());
    let before_exec = move || {
        // SAFETY: system calls on plain numbers; none of them allocates or locks.
        unsafe {
            // Dies with the thread that forked it. If that is dead already, the signal would never come.
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            if libc::getppid() != parent as libc::pid_t {
                return Err(std::io::Error::from_raw_os_error(libc::ESRCH));
            }
            // What the terminal sends goes to the whole group; the launcher alone decides what it means.
            libc::signal(libc::SIGINT, libc::SIG_IGN);
            libc::signal(libc::SIGHUP, libc::SIG_IGN);
            // Everything closes at exec, also what others opened without saying so ... (kernels before 5.11 cannot,
            // and then only what this process itself opened is closed) ...
            libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
            // ... except these three.
            for fd in passed {
                if libc::fcntl(fd, libc::F_SETFD, 0) != 0 {
                    return Err(std::io::Error::last_os_error());
                }
            }
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls only.
    unsafe { command.pre_exec(before_exec) };
    let mut child = command.spawn().map_err(|e| failed("start a process", e))?;
    let opened = Pid::from_raw(child.id() as i32)
        .ok_or(rustix::io::Errno::SRCH)
        .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()))
        .map_err(|e| failed("watch the process", e.into()))
        .and_then(|pidfd| {
            socket.set_nonblocking(true).map_err(|e| failed("set up the socket", e))?;
            Ok(pidfd)
        });
    match opened {
        Ok(pidfd) => Ok(Started { child, pidfd, socket }),
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(error)
        }
    }
}
