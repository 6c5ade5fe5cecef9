//! Ranks as processes.
//!
//! In: how many, what each does. Out: whether all did it. They are forked, so that they find plans and shared memory where
//! this process put them, and they end with it. When one fails, the others are ended.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs every rank in a process of its own. To be called while this process has one thread.
pub(crate) fn run(ranks: u32, work: impl Fn(u32) -> Result<(), String>) -> Result<(), String> {
    let parent = std::process::id();
    let mut children: Vec<libc::pid_t> = Vec::new();
    let mut failed = None;
    for rank in 0..ranks {
        // SAFETY: this process has one thread, so that the child finds everything as it should be.
        match unsafe { libc::fork() } {
            -1 => {
                failed = Some(format!("cannot start rank {rank}: {}", std::io::Error::last_os_error()));
                break;
            }
            0 => child(parent, rank, &work),
            pid => children.push(pid),
        }
    }
    if failed.is_some() {
        end(&children);
    }
    while !children.is_empty() {
        let mut status = 0;
        // SAFETY: waits for a child; `status` is an int.
        let ended = unsafe { libc::waitpid(-1, &mut status, 0) };
        if ended < 0 {
            return Err(format!("cannot wait for ranks: {}", std::io::Error::last_os_error()));
        }
        children.retain(|&child| child != ended);
        if status != 0 && failed.is_none() {
            failed = Some(format!("a rank ended with wait status {status:#x}"));
            end(&children);
        }
    }
    failed.map_or(Ok(()), Err)
}

/// The life of a child.
fn child(parent: u32, rank: u32, work: &impl Fn(u32) -> Result<(), String>) -> ! {
    // SAFETY: plain system calls. If the parent has died before the first, the signal would never come.
    let orphan = unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::getppid() != parent as libc::pid_t
    };
    let outcome = if orphan { Err("nobody waits for it".to_string()) } else { Ok(()) }.and_then(|()| {
        catch_unwind(AssertUnwindSafe(|| work(rank))).unwrap_or_else(|_| Err("it panicked".into()))
    });
    let status = match outcome {
        Ok(()) => 0,
        Err(why) => {
            eprintln!("rank {rank}: {why}");
            3
        }
    };
    let _ = std::io::stdout().flush();
    // SAFETY: ends this process, without what the parent wants done at its own end.
    unsafe { libc::_exit(status) }
}

/// Ends children at once.
fn end(children: &[libc::pid_t]) {
    for &child in children {
        // SAFETY: a child that has not been waited for, so that its number is still its own.
        unsafe { libc::kill(child, libc::SIGKILL) };
    }
}
