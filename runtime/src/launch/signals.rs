//! Signals that stop a run.
//!
//! In: SIGINT, SIGTERM or SIGHUP to this process. Out: a descriptor that becomes readable. Handlers belong to the
//! whole process, so only a program's edge may ask for them; they go away with the value.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Becomes readable when the process is asked to end.
#[derive(Debug)]
pub struct StopSignals {
    readable: UnixStream,
    handlers: Vec<SigId>,
}

impl StopSignals {
    /// From now on these signals no longer end the process. A signal that it was started to ignore (by `nohup`, or by a
    /// shell in the background) is still ignored.
    pub fn new() -> io::Result<StopSignals> {
        let (readable, writable) = UnixStream::pair()?;
        let mut stop = StopSignals { readable, handlers: Vec::new() };
        for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !ignored(signal)) {
            let writable = writable.try_clone()?;
            stop.handlers.push(signal_hook::low_level::pipe::register(signal, writable)?);
        }
        Ok(stop)
    }
}

/// Whether this process ignores a signal, as it may have been started to.
pub fn ignored(signal: i32) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: changes nothing, and writes what is in force to memory of the right type, which zeros are valid for.
    let action = unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
        action.assume_init()
    };
    action.sa_sigaction == libc::SIG_IGN
}

impl AsFd for StopSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }
}

impl Drop for StopSignals {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            signal_hook::low_level::unregister(handler);
        }
    }
}
