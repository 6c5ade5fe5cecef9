//! Signals to the launcher, which are meant for the ranks.
//!
//! In: signals to this process. Out: the same, one by one, when it has time for them. A signal that this process was started to
//! ignore (by `nohup`) is ignored by the ranks too.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

/// What is passed on.
const SIGNALS: [(i32, Signal); 6] = [
    (SIGINT, Signal::INT),
    (SIGTERM, Signal::TERM),
    (SIGHUP, Signal::HUP),
    (SIGQUIT, Signal::QUIT),
    (SIGUSR1, Signal::USR1),
    (SIGUSR2, Signal::USR2),
];

/// Handlers, and what they have heard.
pub(super) struct Forwarded {
    heard: Vec<(Signal, UnixStream)>,
    handlers: Vec<SigId>,
}

impl Forwarded {
    pub(super) fn new() -> io::Result<Forwarded> {
        let mut forwarded = Forwarded { heard: Vec::new(), handlers: Vec::new() };
        for (number, signal) in SIGNALS.into_iter().filter(|(number, _)| !runtime::launch::ignored(*number)) {
            let (readable, writable) = UnixStream::pair()?;
            readable.set_nonblocking(true)?;
            forwarded.handlers.push(signal_hook::low_level::pipe::register(number, writable)?);
            forwarded.heard.push((signal, readable));
        }
        Ok(forwarded)
    }

    /// What to poll.
    pub(super) fn fds(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.heard.iter().map(|(_, readable)| PollFd::new(readable, PollFlags::IN))
    }

    /// What has come since the last time; a signal that came several times at once is one.
    pub(super) fn take(&self) -> Vec<Signal> {
        let came = |mut readable: &UnixStream| matches!(readable.read(&mut [0; 64]), Ok(n) if n > 0);
        self.heard.iter().filter(|(_, readable)| came(readable)).map(|(signal, _)| *signal).collect()
    }
}

impl Drop for Forwarded {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            signal_hook::low_level::unregister(handler);
        }
    }
}

/// The name of a signal.
pub(super) fn name(signal: i32) -> String {
    match signal_hook::low_level::signal_name(signal) {
        Some(name) => name.to_string(),
        None => format!("signal {signal}"),
    }
}
