//! What ranks tell each other of their measurements.
//!
//! In: ranks. Out: a row of numbers for each, which all can read. Whoever writes and reads has a barrier in between.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use runtime::memory::memfd::{self, Mapping};

/// The most calls of a batch.
pub(crate) const MOST_CALLS: usize = 65_536;
/// When each began, and when it ended.
const ROW: usize = 2 * MOST_CALLS;

/// A row for each rank.
#[derive(Debug)]
pub(crate) struct Ledger {
    map: Mapping,
    ranks: usize,
}

impl Ledger {
    /// To be made before ranks are started.
    pub(crate) fn new(ranks: u32) -> Result<Ledger, String> {
        let bytes = u64::from(ranks) * ROW as u64 * 8;
        let fd = memfd::reserve(c"rcc-ledger", bytes).map_err(|error| error.to_string())?;
        let map = Mapping::shared(fd.as_fd(), bytes, true).map_err(|error| error.to_string())?;
        Ok(Ledger { map, ranks: ranks as usize })
    }

    /// Writes into a rank's row.
    pub(crate) fn write(&self, rank: u32, from: usize, numbers: impl IntoIterator<Item = f64>) {
        let row = &self.words()[rank as usize * ROW..][..ROW];
        for (word, number) in row[from..].iter().zip(numbers) {
            word.store(number.to_bits(), Ordering::Relaxed);
        }
    }

    /// What all ranks have written at a place.
    pub(crate) fn column(&self, at: usize) -> impl Iterator<Item = f64> {
        let rows = self.words().chunks_exact(ROW);
        rows.map(move |row| f64::from_bits(row[at].load(Ordering::Relaxed)))
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: zeroed, aligned to a page, so many words long, mapped as long as this value lives; atomics may be
        // shared with other processes.
        unsafe { std::slice::from_raw_parts(self.map.start().cast(), self.ranks * ROW) }
    }
}
