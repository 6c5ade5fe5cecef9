//! Runs a proved plan: ranks as processes or threads of one machine, over shared memory.

#![allow(
    clippy::disallowed_methods,
    reason = "waits have deadlines, calls are timed, and /proc says what the machine is"
)]

pub mod bootstrap;
pub mod call;
pub mod channel;
pub mod comm;
pub mod cpus;
mod crowd;
pub mod error;
pub mod exec;
pub mod job;
pub mod launch;
pub mod memory;
mod payload;
pub mod small;
pub mod wait;
pub mod watch;
