//! Ranks that crowd on one CPU while there is more room on another.
//!
//! In: a rank whose waits end only after it has yielded. Out: perhaps it is on another CPU. Ranks that wait look busy to the system, which
//! may leave two of them on one CPU for tens of milliseconds while another is idle, or five on one and three on the other; each call then
//! takes a turn of every rank on the fuller one. The one hard idea: a rank that yields in one wait after the other says where it is;
//! the last one of those on a CPU that has two more than another goes there, and is not kept there.
//!
//! Whom a rank shares its CPU with also tells how to wait: for one of those only a yield helps; for others, who may be running now, a few
//! looks more cost less than the way there and back.
//!
//! Where this was measured, two ranks on one CPU took 2.7 us for a call that takes 0.1 on two.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use plan::ids::RankId;
use rustix::thread::CpuSet;

use crate::cpus;
use crate::memory::hall::Hall;

/// What a rank knows of the company that it has on its CPU.
#[derive(Debug)]
pub(crate) struct Crowd {
    /// Where it may go; none where that is not ours to say.
    usable: Option<CpuSet>,
    /// Waits in a row that have yielded, and how many there must be before it looks whether it should go: less and less often.
    waits: u32,
    look: u32,
    /// As when it last looked; none before all had said where they are.
    company: Option<Company>,
}

/// Who is where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Company {
    /// The other ranks on this one's CPU.
    pub(crate) near: Vec<u32>,
    /// How many other CPUs have ranks: so many of those may run now.
    pub(crate) elsewhere: usize,
}

/// Waits in a row that yield before a rank first looks; half as many, and it says where it is.
const LOOK: u32 = 16;
const MOST: u32 = 1 << 12;

impl Crowd {
    pub(crate) fn new() -> Crowd {
        Crowd { usable: cpus::usable(), waits: 0, look: LOOK, company: None }
    }

    /// A wait has ended without a yield.
    #[inline]
    pub(crate) fn spun(&mut self) {
        (self.waits, self.look) = (0, LOOK);
    }

    /// A wait has yielded.
    #[inline]
    pub(crate) fn yielded(&mut self, hall: &Hall, rank: RankId) {
        self.waits += 1;
        if self.waits == self.look / 2 {
            say(hall, rank, Some(cpus::current()));
        } else if self.waits >= self.look {
            self.waits = 0;
            self.look = (2 * self.look).min(MOST);
            self.part(hall, rank);
            self.meet(hall, rank);
        }
    }

    /// Who is where, as far as is known.
    #[inline]
    pub(crate) fn company(&self) -> Option<&Company> {
        self.company.as_ref()
    }

    /// Looks who is where.
    #[cold]
    fn meet(&mut self, hall: &Hall, rank: RankId) {
        let all: Option<Vec<usize>> =
            (0..hall.shape().ranks()).map(|rank| said(hall, RankId(rank))).collect();
        self.company = all.map(|all| {
            let here = all[rank.index()];
            let near = (0..).zip(&all).filter(|&(other, &cpu)| other != rank.0 && cpu == here);
            let elsewhere: BTreeSet<usize> = all.iter().copied().filter(|&cpu| cpu != here).collect();
            Company { near: near.map(|(other, _)| other).collect(), elsewhere: elsewhere.len() }
        });
    }

    /// Goes to another CPU, if it is this rank that should.
    #[cold]
    fn part(&self, hall: &Hall, rank: RankId) {
        let here = cpus::current();
        say(hall, rank, Some(here));
        let Some(usable) = &self.usable else { return };
        let all = || (0..hall.shape().ranks()).map(RankId);
        let on = |cpu: usize| all().filter(move |&rank| said(hall, rank) == Some(cpu));
        let cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| usable.is_set(cpu));
        let Some((least, cpu)) = cpus.map(|cpu| (on(cpu).count(), cpu)).min() else { return };
        if on(here).count() >= least + 2 && on(here).max() == Some(rank) && cpus::go_to(cpu) {
            say(hall, rank, Some(cpu));
        }
    }
}

fn say(hall: &Hall, rank: RankId, cpu: Option<usize>) {
    hall.rank(rank).cpu.store(cpu.map_or(0, |cpu| cpu as u32 + 1), Ordering::Relaxed);
}

fn said(hall: &Hall, rank: RankId) -> Option<usize> {
    (hall.rank(rank).cpu.load(Ordering::Relaxed) as usize).checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::hall::Shape;

    /// How many of the ranks, which all say that they are where this thread is, leave; each in turn looks once.
    fn leave(ranks: u32, elsewhere: u32) -> Vec<RankId> {
        let (hall, _fd) = Hall::create(Shape::new(ranks + elsewhere, |_| 0).unwrap()).unwrap();
        // It may be moved.
        let looks = || {
            let here = cpus::current();
            let usable = cpus::usable().unwrap();
            let other = (0..CpuSet::MAX_CPU).find(|&cpu| cpu != here && usable.is_set(cpu)).unwrap();
            (0..ranks).for_each(|rank| say(&hall, RankId(rank), Some(here)));
            (ranks..ranks + elsewhere).for_each(|rank| say(&hall, RankId(rank), Some(other)));
            let (crowd, mut left) = (Crowd::new(), Vec::new());
            for rank in (0..ranks).map(RankId) {
                cpus::go_to(here);
                crowd.part(&hall, rank);
                if said(&hall, rank) != Some(here) {
                    left.push(rank);
                }
            }
            left
        };
        std::thread::scope(|scope| scope.spawn(looks).join().unwrap())
    }

    #[test]
    fn the_last_one_leaves_a_cpu_that_has_two_more() {
        if cpus::usable().is_none_or(|usable| usable.count() != 2) {
            return;
        }
        assert_eq!(leave(1, 0), []);
        assert_eq!(leave(2, 0), [RankId(1)]);
        assert_eq!(leave(2, 1), []);
        assert_eq!(leave(5, 3), [RankId(4)]);
        assert_eq!(leave(4, 4), []);
    }

    #[test]
    fn who_waits_for_long_says_where_it_is() {
        let (hall, _fd) = Hall::create(Shape::new(2, |_| 0).unwrap()).unwrap();
        let mut crowd = Crowd::new();
        (1..LOOK / 2).for_each(|_| crowd.yielded(&hall, RankId(0)));
        assert_eq!(said(&hall, RankId(0)), None);
        crowd.yielded(&hall, RankId(0));
        assert!(said(&hall, RankId(0)).is_some());
        (0..LOOK).for_each(|_| crowd.yielded(&hall, RankId(0)));
        assert!(crowd.look > LOOK);
        crowd.spun();
        assert_eq!(crowd.look, LOOK);
    }

    #[test]
    fn who_shares_a_cpu_is_known_once_all_have_said_where_they_are() {
        let (hall, _fd) = Hall::create(Shape::new(4, |_| 0).unwrap()).unwrap();
        let look = |crowd: &mut Crowd| (0..crowd.look).for_each(|_| crowd.yielded(&hall, RankId(1)));
        // Not to be moved by itself.
        let mut crowd = Crowd { usable: None, ..Crowd::new() };
        look(&mut crowd);
        assert_eq!(crowd.company(), None);
        for (rank, further) in [(0, 1), (2, 2), (3, 1)] {
            say(&hall, RankId(rank), Some(CpuSet::MAX_CPU + further));
        }
        look(&mut crowd);
        assert_eq!(crowd.company(), Some(&Company { near: vec![], elsewhere: 2 }));
        say(&hall, RankId(3), said(&hall, RankId(1)));
        say(&hall, RankId(2), said(&hall, RankId(0)));
        crowd.meet(&hall, RankId(1));
        assert_eq!(crowd.company(), Some(&Company { near: vec![3], elsewhere: 1 }));
    }
}
