//! Two ranks on one CPU while another is idle.
//!
//! In: a rank whose waits end only after it has yielded, and the one that it waits for. Out: perhaps it is on another CPU. Ranks that wait
//! look busy to the system, which may leave two of them on one CPU for tens of milliseconds; each call then takes two switches between
//! them (2.7 us where this was measured) instead of a message (0.1). The one hard idea: a rank that yields in one wait after the other
//! says where it is; if who it waits for has said the same, it goes somewhere else, and is not kept there.

use std::sync::atomic::Ordering;

use plan::ids::RankId;

use crate::cpus;
use crate::memory::hall::Hall;

/// What a rank knows of the company that it has on its CPU.
#[derive(Debug)]
pub(crate) struct Crowd {
    /// There is a CPU for each rank.
    roomy: bool,
    /// Waits in a row that have yielded.
    waits: u32,
    /// How many there must be before it looks again: who moves in vain tries less and less.
    look: u32,
    /// Waits without a yield since it last looked.
    calm: u32,
}

/// Waits in a row that yield, after which a rank says where it is.
const SAY: u32 = 8;

/// The same for its first look, and the most for a later one.
const LOOK: u32 = 2 * SAY;
const MOST: u32 = 1 << 20;

/// After so many waits without a yield the last move was not in vain.
const CALM: u32 = 1000;

impl Crowd {
    pub(crate) fn new(ranks: u32) -> Crowd {
        Crowd { roomy: ranks as usize <= cpus::allowed(), waits: 0, look: LOOK, calm: 0 }
    }

    /// A wait has ended without a yield.
    #[inline]
    pub(crate) fn spun(&mut self) {
        self.waits = 0;
        self.calm = self.calm.saturating_add(1);
    }

    /// A wait for `peer` has yielded.
    pub(crate) fn yielded(&mut self, hall: &Hall, rank: RankId, peer: RankId) {
        self.waits = self.waits.saturating_add(1);
        let word = |rank: RankId| &hall.rank(rank).cpu;
        let say = || word(rank).store(cpus::current() as u32 + 1, Ordering::Relaxed);
        if !self.roomy || self.waits < SAY {
            return;
        }
        if self.waits == SAY {
            say();
        }
        if self.waits < self.look {
            return;
        }
        self.waits = 0;
        if word(peer).load(Ordering::Relaxed) != cpus::current() as u32 + 1 {
            return;
        }
        let in_vain = std::mem::take(&mut self.calm) < CALM;
        self.look = if in_vain { (2 * self.look).min(MOST) } else { LOOK };
        let others = || (0..hall.shape().ranks()).map(RankId).filter(|&other| other != rank);
        let taken = |cpu: usize| others().any(|other| word(other).load(Ordering::Relaxed) == cpu as u32 + 1);
        if cpus::leave_for_another(taken) {
            say();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::hall::Shape;

    const ONE: RankId = RankId(0);
    const OTHER: RankId = RankId(1);

    fn looked(other: impl Fn(usize) -> u32 + Sync, waits: u32) -> (u32, Crowd) {
        let (hall, _fd) = Hall::create(Shape::new(2, |_| 0).unwrap()).unwrap();
        let mut crowd = Crowd { roomy: true, waits: 0, look: LOOK, calm: 0 };
        std::thread::scope(|scope| {
            // It may be moved.
            let waiting = scope.spawn(|| {
                for _ in 0..waits {
                    hall.rank(OTHER).cpu.store(other(cpus::current()), Ordering::Relaxed);
                    crowd.yielded(&hall, ONE, OTHER);
                }
            });
            waiting.join().unwrap();
        });
        (hall.rank(ONE).cpu.load(Ordering::Relaxed), crowd)
    }

    #[test]
    fn who_is_alone_stays_and_says_where_it_is() {
        assert_eq!(looked(|_| 0, SAY - 1).0, 0);
        for other in [|_| 0, |here| here as u32 + 2] {
            let (said, crowd) = looked(other, 10 * LOOK);
            assert!(said > 0 && crowd.look == LOOK, "{crowd:?}");
        }
    }

    #[test]
    fn who_is_not_alone_leaves_and_does_so_less_often_if_that_does_not_help() {
        let together = |here| here as u32 + 1;
        assert_eq!(looked(together, LOOK).1.look, 2 * LOOK);
        assert_eq!(looked(together, 3 * LOOK).1.look, 4 * LOOK);
        let (_, mut crowd) = looked(together, 3 * LOOK);
        (0..CALM).for_each(|_| crowd.spun());
        let (hall, _fd) = Hall::create(Shape::new(2, |_| 0).unwrap()).unwrap();
        for _ in 0..4 * LOOK {
            hall.rank(OTHER).cpu.store(together(cpus::current()), Ordering::Relaxed);
            crowd.yielded(&hall, ONE, OTHER);
        }
        assert_eq!(crowd.look, LOOK);
    }
}
