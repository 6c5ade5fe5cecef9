//! The process of a rank.
//!
//! In: the arguments and descriptors that `spawn` gave. Out: an exit status: 0 done, 3 the run failed (the launcher
//! was told how), 2 this was started by someone else. A thread listens to the launcher for as long as the process
//! lives, and ends it when the launcher's end of the socket closes.

use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};

use plan::ids::RankId;
use rustix::fs::SealFlags;

use super::control::{self, Assignment, FromRank, ToRank};
use super::spawn::MARK;
use crate::error::{Error, Kind};
use crate::job::RankReport;
use crate::job::rank::run_rank;
use crate::job::threads::panic_message;
use crate::memory::memfd::{self, Mapping};
use crate::memory::segment::Segment;

const DONE: i32 = 0;
const NOT_A_RANK: i32 = 2;
const FAILED: i32 = 3;

/// Runs this process as a rank if it was started as one, and says with which status it is to end; none if this is an
/// ordinary process. To be called first thing in `main`, before threads are started.
pub fn child_entry() -> Option<i32> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != MARK {
        return None;
    }
    let spec = arguments.next().and_then(|spec| spec.into_string().ok());
    let Some(given) = spec.as_deref().and_then(parse) else { return Some(NOT_A_RANK) };
    let Some([socket, segment, plan]) = given
        .descriptors
        .map(adopt)
        .into_iter()
        .collect::<Option<Vec<_>>>()
        .and_then(|fds| <[OwnedFd; 3]>::try_from(fds).ok())
    else {
        return Some(NOT_A_RANK);
    };
    // SAFETY: plain system calls. The signal was asked for before exec as well; asking twice costs nothing.
    let orphan = unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::getppid() != given.parent
    };
    if orphan {
        return Some(FAILED);
    }
    Some(run(UnixStream::from(socket), &segment, &plan))
}

struct Given {
    descriptors: [RawFd; 3],
    parent: libc::pid_t,
}

fn parse(spec: &str) -> Option<Given> {
    let numbers: Option<Vec<i32>> = spec.split(',').map(|n| n.parse().ok().filter(|&n| n >= 0)).collect();
    let [a, b, c, parent] = numbers?.try_into().ok()?;
    (a != b && b != c && a != c && a.min(b).min(c) > 2).then_some(Given { descriptors: [a, b, c], parent })
}

/// Takes a descriptor that was left open for this process, if there is one of that number.
fn adopt(fd: RawFd) -> Option<OwnedFd> {
    // SAFETY: a system call on a number; if none is open under it, it fails.
    if unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } != 0 {
        return None;
    }
    // SAFETY: it is open, and nothing else in this process, which has only just begun, owns it.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn run(socket: UnixStream, segment: &OwnedFd, plan: &OwnedFd) -> i32 {
    let Ok(listener) = socket.try_clone() else { return FAILED };
    let mut socket = socket;
    let (sender, messages) = channel();
    let listening = std::thread::Builder::new().name("launcher".to_string()).spawn(move || {
        let mut listener = listener;
        while let Ok(Some(message)) = control::receive::<ToRank>(&mut listener) {
            if sender.send(message).is_err() {
                break;
            }
        }
        // The launcher is gone, or makes no sense any more. Nothing of this process is worth a longer farewell.
        // SAFETY: ends the process at once, whatever its other threads do.
        unsafe { libc::_exit(FAILED) }
    });
    if listening.is_err() {
        return FAILED;
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| work(&mut socket, &messages, segment, plan)))
        .unwrap_or_else(|panic| Err(Error::new(Kind::Internal, panic_message(&*panic))));
    let (message, status) = match outcome {
        Ok(report) => (FromRank::Done(report), DONE),
        Err(error) => (FromRank::Failed(error), FAILED),
    };
    match control::send(&mut socket, &message) {
        Ok(()) => status,
        Err(_) => FAILED,
    }
}

fn work(
    socket: &mut UnixStream,
    messages: &Receiver<ToRank>,
    segment: &OwnedFd,
    plan: &OwnedFd,
) -> Result<RankReport, Error> {
    let confused = || Error::new(Kind::Internal, "the launcher said something else than what was due");
    let Ok(ToRank::Assignment(assignment)) = messages.recv() else { return Err(confused()) };
    let Assignment { rank, geometry, job } = *assignment;
    let plan = {
        memfd::require(plan, SealFlags::SHRINK | SealFlags::WRITE)?;
        let mapping = Mapping::shared(plan.as_fd(), memfd::size(plan)?, false)?;
        // SAFETY: the memory is sealed: nobody can change or shrink it.
        control::load_plan(unsafe { std::slice::from_raw_parts(mapping.start(), mapping.bytes()) })?
    };
    let segment = Segment::open(segment.as_fd(), geometry.segment_for(&plan, &job)?)?;
    segment.rank(RankId(rank)).pid.store(std::process::id(), Ordering::Relaxed);
    control::send(socket, &FromRank::Ready)?;
    let Ok(ToRank::Go) = messages.recv() else { return Err(confused()) };
    run_rank(&plan, &job, geometry, &segment, RankId(rank))
}
