//! Waiting: spin, then yield, then sleep.
//!
//! In: how many ranks share how many CPUs. Out: what to do in each round of a waiting loop, and how long the wait has
//! lasted. The one hard idea: with a CPU for each rank a yield costs more than the message takes, so a wait spins
//! first; with fewer CPUs every pause is time taken from the rank waited for, so a wait yields at once. Sleeping comes
//! last: waking costs 70 microseconds, but a rank that waits for long must not keep a CPU busy.
//!
//! How many CPUs there are does not tell how many are idle. So the number of pauses adapts: a wait that ended only after
//! it had yielded halves it, one that ended while it spun doubles it, within the policy's bounds.

use std::time::{Duration, Instant};

/// For how long each way of waiting is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Rounds that spin, at most.
    pub pauses: u32,
    /// Rounds that spin, at least.
    pub least_pauses: u32,
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

/// The waits of one rank, one after the other.
#[derive(Debug)]
pub struct Waiter {
    policy: Policy,
    pauses: u32,
    rounds: u32,
    waited: Duration,
    last: Option<Instant>,
}

impl Policy {
    /// What suits `ranks` ranks on `cpus` CPUs.
    pub fn of(ranks: usize, cpus: usize) -> Policy {
        if ranks <= cpus {
            Policy { pauses: 2000, least_pauses: 50, yields: 2000 }
        } else {
            Policy { pauses: 1, least_pauses: 1, yields: 4000 }
        }
    }
}

impl Waiter {
    /// No wait has begun.
    pub fn new(policy: Policy) -> Waiter {
        Waiter { policy, pauses: policy.pauses, rounds: 0, waited: Duration::ZERO, last: None }
    }

    /// There was progress: the next round is the first of a new wait.
    #[inline]
    pub fn reset(&mut self) {
        if self.rounds > self.pauses {
            self.pauses = (self.pauses / 2).max(self.policy.least_pauses);
        } else if self.rounds > 0 {
            self.pauses = (self.pauses * 2).min(self.policy.pauses);
        }
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
        if self.rounds <= self.pauses {
            core::hint::spin_loop();
            return Turn::Again;
        }
        self.slow_round()
    }

    /// A look without progress of who does something else in between: the time since the last one counts, as far as a round's may.
    pub fn look(&mut self) {
        let now = Instant::now();
        if let Some(last) = self.last.replace(now) {
            self.waited += now.saturating_duration_since(last).min(ROUND);
        }
    }

    /// How long it has lasted, pauses not counted.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    #[cold]
    fn slow_round(&mut self) -> Turn {
        self.look();
        if self.rounds <= self.pauses.saturating_add(self.policy.yields) {
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
        let mut waiter = Waiter::new(Policy { pauses: 3, least_pauses: 3, yields: 2 });
        let turns: Vec<Turn> = (0..7).map(|_| waiter.round()).collect();
        assert_eq!(turns[..5], [Turn::Again; 5]);
        assert_eq!(turns[5..], [Turn::Sleep; 2]);
        waiter.reset();
        assert_eq!(waiter.waited(), Duration::ZERO);
        assert_eq!(waiter.round(), Turn::Again);
    }

    #[test]
    fn spins_less_where_spinning_does_not_help() {
        let mut waiter = Waiter::new(Policy { pauses: 64, least_pauses: 4, yields: 1000 });
        let mut wait = |rounds| {
            for _ in 0..rounds {
                waiter.round();
            }
            waiter.reset();
            waiter.pauses
        };
        assert_eq!([wait(65), wait(100), wait(100), wait(100), wait(100)], [32, 16, 8, 4, 4]);
        assert_eq!([wait(0), wait(4), wait(5), wait(9), wait(40), wait(1)], [4, 8, 16, 32, 16, 32]);
    }

    #[test]
    fn time_in_which_this_process_stood_still_counts_little() {
        let mut waiter = Waiter::new(Policy { pauses: 0, least_pauses: 0, yields: 9 });
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
