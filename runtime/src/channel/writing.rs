//! How slots, and places in memory of peers, are written: through the writer's caches, or past them.
//!
//! In: what some messages took to write. Out: for each message which way, and whether to time it. The one hard idea: what a store to a
//! line costs that another core has just read depends on where the two cores lie, and on a virtual machine that changes while it runs:
//! from what a copy costs anyway (the cores share a cache) to ten times that (they do not; the store waits until the reader's copy is
//! gone, where a store past the caches does not). So the writer looks now and then: where writing through its caches has become slow it
//! tries the other way, and keeps to it while that is half as fast again, which leaves the reader, who then reads from memory, its part.
//! The bytes are the same; only what the writer feels decides, so no two ranks need agree.

use std::time::Duration;

/// Messages of fewer bytes are written through the caches and not timed: it would cost more than it tells.
pub const LEAST: u64 = 4 << 10;
/// One message of so many is timed.
const SELDOM: u32 = 8;
/// So many are written past the caches before it is asked again whether that pays.
const KEEP: u32 = 256;
/// So many are written through the caches after it did not.
const AFTER: u32 = 64;
/// Nanoseconds of a KiB from which on writing is slow: 12 GB/s.
const SLOW: f64 = 85.0;
/// Past the caches must be so many times as fast.
const GAIN: f64 = 1.5;
/// Samples of a kind that are taken together, of which the fastest counts: one may have been interrupted.
const SAMPLES: u32 = 3;

/// The habit of one writer: of a channel, or of a block that writes into memory of peers.
#[derive(Debug, Clone)]
pub struct Writing {
    stage: Stage,
    /// Messages until something is timed.
    wait: u32,
    /// Samples still to take in this stage.
    left: u32,
    /// The fastest of them so far, in ns of a KiB.
    fastest: f64,
    /// What the other way took, which this stage is compared with.
    other: f64,
}

/// What is being found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Through the caches, which is looked at now and then.
    Through,
    /// That is slow: past them, to compare.
    Try,
    /// Past the caches.
    Past,
    /// Through them again, to compare.
    Again,
}

/// How one message is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// By stores past the caches.
    pub past: bool,
    /// [`Writing::took`] is to be told how long it took.
    pub timed: bool,
}

impl Default for Writing {
    fn default() -> Writing {
        Writing { stage: Stage::Through, wait: SELDOM, left: SAMPLES, fastest: f64::INFINITY, other: 0.0 }
    }
}

impl Writing {
    /// Past the caches, whatever it takes.
    pub fn past() -> Writing {
        Writing { stage: Stage::Past, wait: u32::MAX, ..Writing::default() }
    }

    /// How the next message is written, of at least [`LEAST`] bytes.
    #[inline]
    pub fn way(&mut self) -> Way {
        self.wait = self.wait.saturating_sub(1);
        Way { past: matches!(self.stage, Stage::Try | Stage::Past), timed: self.wait == 0 }
    }

    /// A message that was to be timed has been written.
    pub fn took(&mut self, bytes: u64, time: Duration) {
        let one = time.as_nanos() as f64 * 1024.0 / bytes.max(1) as f64;
        self.fastest = self.fastest.min(one);
        self.left -= 1;
        // One fast sample says that all is well.
        if self.left > 0 && !(self.stage == Stage::Through && one < SLOW) {
            self.wait = 1;
            return;
        }
        let found = std::mem::replace(&mut self.fastest, f64::INFINITY);
        let (stage, wait) = match self.stage {
            Stage::Through if found < SLOW => (Stage::Through, SELDOM),
            Stage::Through => {
                self.other = found;
                (Stage::Try, 1)
            }
            Stage::Try if found * GAIN < self.other => (Stage::Past, KEEP),
            Stage::Try => (Stage::Through, AFTER),
            // What past the caches takes now is timed before the other way is tried.
            Stage::Past => {
                self.other = found;
                (Stage::Again, 1)
            }
            Stage::Again if self.other * GAIN < found => (Stage::Past, KEEP),
            Stage::Again => (Stage::Through, SELDOM),
        };
        (self.stage, self.wait, self.left) = (stage, wait, SAMPLES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nanoseconds of a KiB that a machine takes each way.
    #[derive(Clone, Copy)]
    struct Machine {
        through: u64,
        past: u64,
    }

    const APART: Machine = Machine { through: 500, past: 60 };
    const NEAR: Machine = Machine { through: 40, past: 90 };

    /// Writes messages, and says how many went past the caches, and how many were timed.
    fn write(writing: &mut Writing, machine: Machine, messages: u32) -> (u32, u32) {
        let (mut past, mut timed) = (0, 0);
        for _ in 0..messages {
            let way = writing.way();
            past += u32::from(way.past);
            if way.timed {
                timed += 1;
                let ns = if way.past { machine.past } else { machine.through };
                writing.took(16 << 10, Duration::from_nanos(ns * 16));
            }
        }
        (past, timed)
    }

    #[test]
    fn where_cores_share_a_cache_all_goes_through_it() {
        let mut writing = Writing::default();
        let (past, timed) = write(&mut writing, NEAR, 10_000);
        assert_eq!(past, 0);
        assert_eq!(timed, 10_000 / SELDOM);
    }

    #[test]
    fn where_they_share_none_all_but_a_few_go_past_it() {
        let mut writing = Writing::default();
        write(&mut writing, APART, SELDOM + 2 * SAMPLES);
        let (past, timed) = write(&mut writing, APART, 10_000);
        assert!((9_850..10_000).contains(&past), "{past}");
        assert!(timed < 400, "{timed}");
    }

    #[test]
    fn what_changes_is_noticed() {
        let mut writing = Writing::default();
        for _ in 0..3 {
            write(&mut writing, APART, 100);
            assert!(write(&mut writing, APART, 50).0 > 40);
            write(&mut writing, NEAR, KEEP + 2 * SAMPLES);
            assert_eq!(write(&mut writing, NEAR, 50).0, 0);
        }
    }

    #[test]
    fn where_both_ways_are_slow_it_is_tried_seldom() {
        let mut writing = Writing::default();
        let (past, _) = write(&mut writing, Machine { through: 500, past: 400 }, 10_000);
        assert!(past <= 10_000 / AFTER * SAMPLES, "{past}");
    }

    #[test]
    fn one_message_that_was_interrupted_changes_nothing() {
        let mut writing = Writing::default();
        for message in 0..10_000 {
            let way = writing.way();
            assert!(!way.past);
            if way.timed {
                let ns = if message % 5 == 0 { 4_000_000 } else { 40 * 16 };
                writing.took(16 << 10, Duration::from_nanos(ns));
            }
        }
    }
}
