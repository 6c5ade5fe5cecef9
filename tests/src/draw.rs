//! How much is tried, and from which random numbers: what `cargo xtask test` sets.
//!
//! In: the environment (`RCC_TEST_FULL`, `RCC_TEST_SEED`, `RCC_MUTANTS`). Out: whether whole matrices are run, a seed, a
//! source of numbers. Each test prints the seed that it used; the same seed is the same test.
#![allow(clippy::disallowed_methods, reason = "how much is tried comes from the environment")]

use crate::mutate::Dice;
use crate::naive::number;

/// Whether all of a matrix is run: `RCC_TEST_FULL=1`, by `cargo xtask test --full`.
pub fn full() -> bool {
    std::env::var("RCC_TEST_FULL").is_ok_and(|value| value == "1")
}

/// What every random choice begins with: `RCC_TEST_SEED`, by default 0. Printed, so that a failure can be repeated.
pub fn seed() -> u64 {
    let seed = std::env::var("RCC_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    println!("RCC_TEST_SEED={seed}");
    seed
}

/// How many mutants are made: `RCC_MUTANTS`, by default a thousand.
pub fn mutants() -> usize {
    std::env::var("RCC_MUTANTS").ok().and_then(|n| n.parse().ok()).unwrap_or(1000)
}

/// Random numbers, one after the other.
#[derive(Debug, Clone)]
pub struct Draw {
    seed: u64,
    taken: u64,
}

impl Draw {
    /// From a seed, for one purpose: streams of other purposes are independent.
    pub fn new(seed: u64, purpose: u64) -> Draw {
        Draw { seed: number(seed, purpose), taken: 0 }
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.taken += 1;
        number(self.seed, self.taken)
    }

    /// One of them; there must be one.
    pub fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// True so many times of a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

impl Dice for Draw {
    fn below(&mut self, bound: usize) -> usize {
        (self.number() % bound as u64) as usize
    }
}
