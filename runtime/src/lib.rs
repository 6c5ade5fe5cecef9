//! Runs a proved plan: ranks as processes or threads of one machine, over shared memory.

pub mod call;
pub mod channel;
pub mod cpus;
pub mod error;
pub mod exec;
pub mod job;
pub mod memory;
pub mod wait;
pub mod watch;
