//! What calls of a cell take, on one rank.
//!
//! In: something that makes [`Calls`], how long to measure. Out: seconds of a call, wrong elements. The same rules as in
//! `bench/peers/collbench.c`, statement by statement; docs/benchmarks.md says them. Times are of all ranks: each returns the same.

use runtime::error::Error;
use rustix::time::{ClockId, clock_gettime};

use crate::cell::{Cell, Collective, value};
use crate::ledger::{Ledger, MOST_CALLS};

/// Calls before any that count.
const WARMUP: usize = 3;

/// How long to measure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Seconds of a batch.
    pub(crate) batch: f64,
    pub(crate) batches: usize,
    /// After so many seconds and three batches there are no more.
    pub(crate) most: f64,
}

/// What came of it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Found {
    /// Of a batch.
    pub(crate) calls: usize,
    /// Seconds of a call.
    pub(crate) median: f64,
    pub(crate) least: f64,
}

/// A rank as the measurement sees it.
pub(crate) trait Calls {
    /// One call, from a root where there are several.
    fn call(&mut self, root: usize) -> Result<(), Error>;
    /// Waits for all ranks.
    fn barrier(&mut self) -> Result<(), Error>;
    /// What this rank gives.
    fn input(&mut self) -> &mut [f32];
    /// What it gets; the same memory for a broadcast.
    fn output(&mut self) -> &mut [f32];
}

/// One rank that measures.
pub(crate) struct Meter<'a, C> {
    cell: &'a Cell,
    rank: u32,
    caller: &'a mut C,
    ledger: &'a Ledger,
    root: usize,
}

fn now() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

impl<'a, C: Calls> Meter<'a, C> {
    /// For one rank.
    pub(crate) fn new(cell: &'a Cell, rank: u32, caller: &'a mut C, ledger: &'a Ledger) -> Self {
        Meter { cell, rank, caller, ledger, root: 0 }
    }

    /// One call from fresh buffers, for broadcast one from every root; how many elements are wrong on all ranks.
    pub(crate) fn wrong(&mut self) -> Result<u64, Error> {
        let mut mine = 0;
        for root in 0..self.roots() {
            self.caller.output().fill(-1.0);
            if self.cell.collective != Collective::Broadcast || self.rank as usize == root {
                let rank = self.rank;
                self.caller.input().iter_mut().enumerate().for_each(|(i, x)| *x = value(rank, i));
            }
            self.caller.barrier()?;
            self.caller.call(root)?;
            let (cell, rank) = (self.cell, self.rank);
            let output = self.caller.output();
            let differs = |(i, &x): (usize, &f32)| x != cell.expected(rank, root as u32, i);
            mine += output.iter().enumerate().filter(|&element| differs(element)).count() as u64;
            mine += (cell.output - output.len()) as u64;
        }
        self.ledger.write(self.rank, 0, [mine as f64]);
        self.caller.barrier()?;
        let all: f64 = self.ledger.column(0).sum();
        self.caller.barrier()?;
        Ok(all as u64)
    }

    /// Calls of a batch, median and least seconds of a call over all batches.
    pub(crate) fn measure(&mut self, rewritten: bool, effort: Effort) -> Result<Found, Error> {
        self.root = 0;
        self.batch(WARMUP, rewritten)?;
        let (mut calls, mut spent) = (1, 0.0);
        loop {
            let began = now();
            self.batch(calls, rewritten)?;
            let all = self.slowest(now() - began)?;
            spent += all;
            if all >= effort.batch / 2.0 || calls * 4 > MOST_CALLS || spent > effort.most / 2.0 {
                break;
            }
            calls *= if all * 4.0 < effort.batch { 4 } else { 2 };
        }
        let mut times: Vec<f64> = Vec::new();
        while times.len() < effort.batches {
            let began = now();
            times.push(self.batch(calls, rewritten)? / calls as f64);
            spent += self.slowest(now() - began)?;
            if spent > effort.most && times.len() >= 3 {
                break;
            }
        }
        times.sort_by(f64::total_cmp);
        let middle = times.len() / 2;
        let median =
            if times.len() % 2 == 1 { times[middle] } else { (times[middle - 1] + times[middle]) / 2.0 };
        Ok(Found { calls, median, least: times[0] })
    }

    /// Seconds of `calls` calls one after the other; the slowest rank's.
    fn batch(&mut self, calls: usize, rewritten: bool) -> Result<f64, Error> {
        self.caller.barrier()?;
        if self.cell.collective == Collective::Broadcast {
            return self.broadcasts(calls, rewritten);
        }
        let began = now();
        for _ in 0..calls {
            if rewritten {
                rewrite(self.caller.input());
            }
            self.caller.call(0)?;
        }
        let mut took = now() - began;
        if rewritten {
            // What rewriting alone takes is taken off.
            self.caller.barrier()?;
            let began = now();
            for _ in 0..calls {
                rewrite(self.caller.input());
            }
            took -= now() - began;
        }
        self.slowest(took)
    }

    /// Seconds of `calls` broadcasts, each from another root and after a barrier, which is not timed: from when the root
    /// begins until the last rank has ended.
    fn broadcasts(&mut self, calls: usize, rewritten: bool) -> Result<f64, Error> {
        let mut times = Vec::with_capacity(calls);
        for _ in 0..calls {
            let roots = self.rank as usize == self.root;
            if rewritten && roots {
                rewrite(self.caller.input());
            }
            self.caller.barrier()?;
            let began = now();
            self.caller.call(self.root)?;
            let ended = now();
            times.push((if roots { began } else { 0.0 }, ended));
            self.root = (self.root + 1) % self.roots();
        }
        self.ledger.write(self.rank, 0, times.iter().map(|time| time.0));
        self.ledger.write(self.rank, MOST_CALLS, times.iter().map(|time| time.1));
        self.caller.barrier()?;
        let last = |at| self.ledger.column(at).fold(0.0, f64::max);
        let took = (0..calls).map(|call| last(MOST_CALLS + call) - last(call)).sum();
        self.caller.barrier()?;
        Ok(took)
    }

    fn slowest(&mut self, mine: f64) -> Result<f64, Error> {
        self.ledger.write(self.rank, 0, [mine]);
        self.caller.barrier()?;
        let most = self.ledger.column(0).fold(f64::NEG_INFINITY, f64::max);
        self.caller.barrier()?;
        Ok(most)
    }

    fn roots(&self) -> usize {
        self.cell.collective.roots(self.cell.ranks) as usize
    }
}

/// Stores what is there already, sixteen bytes at a time, as `bench/peers/collbench.c` does.
fn rewrite(input: &mut [f32]) {
    // SAFETY: a float is bytes, and any bytes are a float.
    let (_, bytes, _) = unsafe { input.align_to_mut::<u8>() };
    runtime::job::rank::rewrite(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rank that is alone, and whose calls copy what they are told to.
    struct Alone {
        input: Vec<f32>,
        output: Vec<f32>,
        copied: usize,
        calls: usize,
    }

    impl Calls for Alone {
        fn call(&mut self, _: usize) -> Result<(), Error> {
            self.calls += 1;
            self.output[..self.copied].copy_from_slice(&self.input[..self.copied]);
            Ok(())
        }

        fn barrier(&mut self) -> Result<(), Error> {
            Ok(())
        }

        fn input(&mut self) -> &mut [f32] {
            &mut self.input
        }

        fn output(&mut self) -> &mut [f32] {
            &mut self.output
        }
    }

    fn alone(copied: usize) -> Alone {
        Alone { input: vec![0.0; 100], output: vec![0.0; 100], copied, calls: 0 }
    }

    #[test]
    fn what_a_call_leaves_out_is_found() {
        let ledger = Ledger::new(1).unwrap();
        let cell = Cell::new(Collective::Alltoall, 1, 400);
        for missing in [0, 1, 100] {
            let mut rank = alone(100 - missing);
            let wrong = Meter::new(&cell, 0, &mut rank, &ledger).wrong().unwrap();
            assert_eq!(wrong, missing as u64);
        }
        // What was right before is not taken for what the call wrote.
        let mut rank = alone(100);
        assert_eq!(Meter::new(&cell, 0, &mut rank, &ledger).wrong().unwrap(), 0);
        rank.copied = 99;
        assert_eq!(Meter::new(&cell, 0, &mut rank, &ledger).wrong().unwrap(), 1);
    }

    #[test]
    fn as_many_batches_as_asked_for_of_calls_that_fill_them() {
        let ledger = Ledger::new(1).unwrap();
        for collective in [Collective::Alltoall, Collective::Broadcast] {
            let cell = Cell::new(collective, 1, 400);
            let mut rank = alone(100);
            let effort = Effort { batch: 1e-3, batches: 5, most: 10.0 };
            let found = Meter::new(&cell, 0, &mut rank, &ledger).measure(false, effort).unwrap();
            assert!(found.calls > 1 && rank.calls >= 5 * found.calls + WARMUP, "{found:?}");
            assert!(0.0 < found.least && found.least <= found.median, "{found:?}");
        }
    }

    #[test]
    fn rewriting_changes_nothing() {
        let mut data: Vec<f32> = (0..11).map(|i| i as f32).collect();
        let before = data.clone();
        rewrite(&mut data);
        assert_eq!(data, before);
    }
}
