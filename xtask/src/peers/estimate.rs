//! How long a comparison takes.
//!
//! In: a cell, a program's number of measurements, how long each is to be. Out: seconds, by a rough model; the command
//! corrects it by what the runs before took.

use std::time::Duration;

use super::cell::Cell;

/// Seconds to start ranks and end them.
const START: f64 = 0.5;
/// Bytes of all ranks' buffers that go through a call in a second.
const RATE: f64 = 5e9;
/// Calls at least: to warm up, to find how many make a batch, in three batches.
const CALLS: f64 = 8.0;
/// What a call of a peer takes at least that spins where ranks are more than CPUs: several turns of the scheduler's.
const SPINS: f64 = 0.02;

/// How long each measurement is to be.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Effort {
    /// Seconds of a batch.
    pub(crate) batch: f64,
    pub(crate) batches: u32,
    /// Seconds after which there is no further batch.
    pub(crate) most: f64,
}

impl Effort {
    /// As programs are told.
    pub(crate) fn arguments(&self) -> [String; 3] {
        [self.batch.to_string(), self.batches.to_string(), self.most.to_string()]
    }

    /// Seconds of one run that measures a cell in so many ways.
    pub(crate) fn seconds(&self, cell: &Cell, ways: u32, cpus: usize, spins: bool) -> f64 {
        let ranks = f64::from(cell.ranks);
        let crowded = cell.ranks as usize > cpus;
        let least = if spins && crowded { SPINS * ranks / 2.0 } else { 0.0 };
        let call = (cell.bytes as f64 * ranks / RATE).max(least);
        let all = (f64::from(self.batches) + 2.0) * self.batch;
        let one = all.max(CALLS * call).min(self.most.max(CALLS * call));
        // Every element is compared, of sums with all that was summed; by all ranks on the CPUs there are.
        let compared = cell.bytes as f64 / 4.0 * ranks * ranks * 1e-9 / cpus.max(1) as f64;
        START + f64::from(ways) * (one + compared)
    }
}

/// Hours, minutes, seconds, whichever fits.
pub(crate) fn show(seconds: f64) -> String {
    match Duration::from_secs_f64(seconds.max(0.0)).as_secs() {
        s if s < 120 => format!("{s} s"),
        s if s < 7200 => format!("{} min", s / 60),
        s => format!("{:.1} h", s as f64 / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_cells_and_spinning_peers_take_longer() {
        let effort = Effort { batch: 0.02, batches: 7, most: 1.0 };
        let cell = |ranks, bytes| Cell { collective: "allreduce".into(), ranks, bytes };
        let of = |ranks, bytes, spins| effort.seconds(&cell(ranks, bytes), 2, 2, spins);
        assert!(of(2, 64 << 20, false) > of(2, 8, false));
        assert!(of(8, 64 << 20, false) > 2.0 * of(2, 64 << 20, false));
        assert!(of(4, 8, true) > of(4, 8, false));
        assert_eq!(of(2, 8, true), of(2, 8, false));
        assert!(effort.seconds(&cell(2, 8), 4, 2, false) > of(2, 8, false));
        assert_eq!([show(59.9), show(600.0), show(10_000.0)], ["59 s", "10 min", "2.8 h"]);
    }
}
