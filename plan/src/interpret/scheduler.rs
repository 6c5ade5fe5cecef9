//! Who acts next: the interpreter's only freedom, so that tests can try every kind of order.
//!
//! In: the actors (a block of one copy) that can act. Out: one of them. Whatever is chosen, a right plan ends with
//! the same bytes.

/// A block of one copy: `copy * blocks + block`.
pub type Actor = u32;

/// Chooses who acts next.
pub trait Scheduler {
    /// An index into `ready`, which is not empty and in no particular (but a reproducible) order. What is too large
    /// wraps around.
    fn choose(&mut self, ready: &[Actor]) -> usize;
}

/// Each in turn.
#[derive(Debug, Clone, Copy, Default)]
pub struct RoundRobin {
    next: Actor,
}

/// Any, by a seeded generator.
#[derive(Debug, Clone, Copy)]
pub struct Random {
    state: u64,
}

/// The same one as long as it can act; then the one with the highest number (or the lowest).
#[derive(Debug, Clone, Copy, Default)]
pub struct Stubborn {
    /// Prefers low numbers.
    pub low_first: bool,
    current: Option<Actor>,
}

/// One is chosen only when no other can act.
#[derive(Debug, Clone, Copy)]
pub struct Starve {
    /// The one.
    pub victim: Actor,
}

impl Random {
    /// Equal seeds, equal choices.
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }
}

impl Stubborn {
    /// Prefers low numbers, or high ones.
    pub fn new(low_first: bool) -> Stubborn {
        Stubborn { low_first, current: None }
    }
}

impl Scheduler for RoundRobin {
    fn choose(&mut self, ready: &[Actor]) -> usize {
        let next = self.next;
        // Those from `next` on come before those below it.
        let best = (0..ready.len()).min_by_key(|&i| (ready[i] < next, ready[i])).unwrap_or(0);
        self.next = ready[best].wrapping_add(1);
        best
    }
}

impl Scheduler for Random {
    fn choose(&mut self, ready: &[Actor]) -> usize {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(z ^ (z >> 31)) * ready.len() as u128) >> 64) as usize
    }
}

impl Scheduler for Stubborn {
    fn choose(&mut self, ready: &[Actor]) -> usize {
        let again = ready.iter().position(|&a| Some(a) == self.current);
        let chosen = again.unwrap_or_else(|| {
            let key = |&i: &usize| if self.low_first { ready[i] } else { u32::MAX - ready[i] };
            (0..ready.len()).min_by_key(key).unwrap_or(0)
        });
        self.current = Some(ready[chosen]);
        chosen
    }
}

impl Scheduler for Starve {
    fn choose(&mut self, ready: &[Actor]) -> usize {
        ready.iter().position(|&a| a != self.victim).unwrap_or(0)
    }
}
