//! What this machine copies, and how far apart its cores are: what a comparison prints beside its figures.
//!
//! In: rounds. Out: medians, for people of a program: one line of JSON.

use serde::Serialize;

use crate::{lines, median, memory, place};

/// Rates of this machine.
#[derive(Debug, Serialize)]
pub(crate) struct Rates {
    cores: usize,
    /// From a store on one core until another sees it.
    one_way_ns: f64,
    copy: Vec<Copy>,
}

/// Copying with all cores at once, each from a buffer of its own to another.
#[derive(Debug, Serialize)]
struct Copy {
    /// What a core works on: both buffers together.
    bytes: usize,
    /// Gigabytes per second that all cores copy together.
    gbps: f64,
}

/// Measures them.
pub(crate) fn measure(rounds: u32) -> Result<Rates, String> {
    let cpus = place::cpus()?;
    let mut far = Vec::new();
    let mut took = vec![Vec::new(); memory::SIZES.len()];
    for _ in 0..rounds {
        if let Some(pair) = cpus.get(..2) {
            far.push(lines::latency([pair[0], pair[1]]));
        }
        for (took, &bytes) in took.iter_mut().zip(&memory::SIZES) {
            took.push(memory::copies(&cpus, bytes));
        }
    }
    let copy = memory::SIZES.iter().zip(&took).map(|(&bytes, took)| {
        // The slowest core's, for each byte that it copies.
        Copy { bytes, gbps: cpus.len() as f64 / median(took) / 1e9 }
    });
    // A machine of one core has no way between two.
    let one_way_ns = if far.is_empty() { 0.0 } else { median(&far) * 1e9 };
    Ok(Rates { cores: cpus.len(), one_way_ns, copy: copy.collect() })
}
