//! Memory that the machine has at hand.
//!
//! In: nothing. Out: how fast pages are touched for the first time, in GB/s. The one hard idea: a virtual machine hands pages that are
//! free for some seconds back to its host, and takes them again at a fortieth of the speed of its own memory. That is no cost of
//! a compiler, and it comes and goes; so a process that does nothing else touches as much as the largest program takes, and
//! leaves it free for the one that is measured.

use std::process::Command;
use std::time::Instant;

/// What the largest of the programs touches, and some more.
const BYTES: usize = 1 << 30;

/// Touches so much memory in this process; GB/s.
pub(crate) fn touch() -> f64 {
    let start = Instant::now();
    let memory = std::hint::black_box(vec![1u8; BYTES]);
    memory.len() as f64 / start.elapsed().as_secs_f64() / 1e9
}

/// The same in a process of its own, which then ends.
pub(crate) fn fetch() -> Result<f64, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(&program)
        .arg("--touch")
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    said.trim().parse().map_err(|_| format!("touching {} MiB: {}", BYTES >> 20, output.status))
}
