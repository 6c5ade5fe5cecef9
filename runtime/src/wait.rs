//! Waiting: spin, then yield, then sleep.
//!
//! In: how many ranks share how many CPUs. Out: what to do in each round of a waiting loop, and how long the wait has
//! lasted. The one hard idea: with a CPU for each rank a yield costs more than the message takes, so a wait spins
//! first; with fewer CPUs every pause is time taken from the rank waited for, so a wait yields at once. Sleeping comes
//! last: waking costs 70 microseconds, but a rank that waits for long must not keep a CPU busy.

use std::time::{Duration, Instant};

/// For how long each way of waiting is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Rounds that spin.
    pub pauses: u32,
    /// Rounds after those that yield; later rounds sleep.
    pub yields: u32,
}

/// How long one sleep lasts at most. A wake-up may be missed (the waker looks without a fence whether anybody
/// sleeps), so this is also the most that a missed one can cost.
pub const NAP: Duration = Duration::from_millis(1);

/// The most that one round counts towards a deadline: time in which this process was stopped is not a peer's fault.
const ROUND: Duration = Duration::from_millis(200);

/// What a waiting loop is to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Look again at once.
    Again,
    /// Sleep for up to [`NAP`], then look again.
    Sleep,
}

/// One wait.
#[derive(Debug)]
pub struct Waiter {
    policy: Policy,
    rounds: u32,
    waited: Duration,
    last: Option<Instant>,
}

impl Policy {
    /// What suits `ranks` ranks on `cpus` CPUs.
    pub fn of(ranks: usize, cpus: usize) -> Policy {
        if ranks <= cpus { Policy { pauses: 2000, yields: 2000 } } else { Policy { pauses: 1, yields: 4000 } }
    }
}

impl Waiter {
    /// A wait that has not begun.
    pub fn new(policy: Policy) -> Waiter {
        Waiter { policy, rounds: 0, waited: Duration::ZERO, last: None }
    }

    /// There was progress: the next round is the first of a new wait.
    #[inline]
    pub fn reset(&mut self) {
        self.rounds = 0;
        if self.last.is_some() {
            self.waited = Duration::ZERO;
            self.last = None;
        }
    }

    /// One round without progress.
    #[inline]
    pub fn round(&mut self) -> Turn {
        self.rounds = self.rounds.saturating_add(1);
        if self.rounds <= self.policy.pauses {
            core::hint::spin_loop();
            return Turn::Again;
        }
        self.slow_round()
    }

    /// How long it has lasted, pauses not counted.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    #[cold]
    fn slow_round(&mut self) -> Turn {
        let now = Instant::now();
        if let Some(last) = self.last.replace(now) {
            self.waited += now.saturating_duration_since(last).min(ROUND);
        }
        if self.rounds <= self.policy.pauses.saturating_add(self.policy.yields) {
            std::thread::yield_now();
            return Turn::Again;
        }
        Turn::Sleep
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spins_then_yields_then_sleeps() {
        let mut waiter = Waiter::new(Policy { pauses: 3, yields: 2 });
        let turns: Vec<Turn> = (0..7).map(|_| waiter.round()).collect();
        assert_eq!(turns[..5], [Turn::Again; 5]);
        assert_eq!(turns[5..], [Turn::Sleep; 2]);
        waiter.reset();
        assert_eq!(waiter.waited(), Duration::ZERO);
        assert_eq!(waiter.round(), Turn::Again);
    }

    #[test]
    fn time_in_which_this_process_stood_still_counts_little() {
        let mut waiter = Waiter::new(Policy { pauses: 0, yields: 9 });
        waiter.round();
        std::thread::sleep(ROUND * 3);
        waiter.round();
        assert_eq!(waiter.waited(), ROUND);
    }

    #[test]
    fn more_ranks_than_cpus_spin_at_most_once() {
        assert_eq!(Policy::of(3, 2).pauses, 1);
        assert!((50..=2000).contains(&Policy::of(2, 2).pauses));
    }
}
