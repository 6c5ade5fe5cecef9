//! Where the ranks of a communicator meet before they share any memory, and whenever they are to share more.
//!
//! In: what each rank says. Out: what all said; and one piece of memory for all. What has been said by all is heard by all who ask, also if one
//! of them has left meanwhile; who gives up before that says so, and nobody who comes later is heard. [`Meeting`] is what a communicator needs of
//! whatever brought its ranks together: a [`Bootstrap`] does it for ranks that share no parent, a [`Room`] for threads of one process.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::bootstrap::Bootstrap;
use crate::error::{Error, Kind};

/// Brings ranks together; every rank makes the same calls in the same order.
pub trait Meeting: Send {
    /// Which rank this is.
    fn rank(&self) -> u32;
    /// How many there are.
    fn world(&self) -> u32;
    /// What each rank says about `what`, in their order.
    fn gather(&mut self, what: &str, own: &[u8]) -> Result<Vec<Vec<u8>>, Error>;
    /// A descriptor that rank 0 gives to all.
    fn hand_out(&mut self, given: Option<OwnedFd>) -> Result<OwnedFd, Error>;
}

impl Meeting for Bootstrap {
    fn rank(&self) -> u32 {
        Bootstrap::rank(self)
    }

    fn world(&self) -> u32 {
        Bootstrap::world(self)
    }

    fn gather(&mut self, what: &str, own: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        Bootstrap::gather(self, what, own)
    }

    fn hand_out(&mut self, given: Option<OwnedFd>) -> Result<OwnedFd, Error> {
        Bootstrap::hand_out(self, given)
    }
}

/// Where the threads of one process meet.
#[derive(Debug)]
pub struct Room {
    shared: Arc<Shared>,
    rank: u32,
    /// The number of the next exchange.
    next: u64,
    patience: Duration,
}

#[derive(Debug)]
struct Shared {
    world: u32,
    table: Mutex<Table>,
    changed: Condvar,
}

/// What lies on the table in one exchange. The next begins when all have taken what they came for.
#[derive(Debug, Default)]
struct Table {
    exchange: u64,
    what: String,
    said: Vec<Option<Vec<u8>>>,
    given: Option<OwnedFd>,
    taken: u32,
    /// Who came with something else, or left: nobody can go on.
    spoilt: Option<Error>,
}

impl Room {
    /// The places of `world` ranks, which wait for each other for so long.
    pub fn for_all(world: u32, patience: Duration) -> Vec<Room> {
        let table = Table { said: vec![None; world as usize], ..Table::default() };
        let shared = Arc::new(Shared { world, table: Mutex::new(table), changed: Condvar::new() });
        (0..world).map(|rank| Room { shared: Arc::clone(&shared), rank, next: 0, patience }).collect()
    }

    /// Says `own`, waits until all have said something, and takes a copy of the table with `take`.
    fn exchange<T>(
        &mut self,
        what: &str,
        own: (Vec<u8>, Option<OwnedFd>),
        take: impl FnOnce(&Table) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let began = Instant::now();
        let number = self.next;
        self.next += 1;
        // Who comes when somebody has left comes in vain; what has been said by all is heard by all.
        let come = |table: &Table| table.exchange == number && table.spoilt.is_none();
        let mut table = self.wait(began, what, come)?;
        if table.said.iter().all(Option::is_none) {
            table.what = what.to_string();
        } else if table.what != what {
            let message = format!("rank {} is at `{what}`, others are at `{}`", self.rank, table.what);
            let error = Error::new(Kind::Mismatch, message).culprit(self.rank);
            table.spoilt = Some(error.clone());
            self.shared.changed.notify_all();
            // It says nothing here: else, if it is the last, all would take what is none of theirs.
            return Err(error);
        }
        table.said[self.rank as usize] = Some(own.0);
        table.given = own.1.or(table.given.take());
        self.shared.changed.notify_all();
        drop(table);
        let mut table = self.wait(began, what, |table| table.said.iter().all(Option::is_some))?;
        let taken = take(&table);
        table.taken += 1;
        if table.taken == self.shared.world {
            let said = vec![None; self.shared.world as usize];
            // Who has left meanwhile, having taken what was there, does not come to the next one either.
            let spoilt = table.spoilt.take();
            *table = Table { exchange: number + 1, said, spoilt, ..Table::default() };
            self.shared.changed.notify_all();
        }
        taken
    }

    fn wait(
        &self,
        began: Instant,
        what: &str,
        ready: impl Fn(&Table) -> bool,
    ) -> Result<MutexGuard<'_, Table>, Error> {
        let mut table = self.shared.table.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if ready(&table) {
                return Ok(table);
            }
            if let Some(error) = &table.spoilt {
                return Err(error.clone());
            }
            let left = self.patience.saturating_sub(began.elapsed());
            if left.is_zero() {
                let absent: Vec<u32> = (0..)
                    .zip(&table.said)
                    .filter(|&(rank, said)| said.is_none() && rank != self.rank)
                    .map(|(rank, _)| rank)
                    .collect();
                let message = format!("waited {:.1?} at `{what}` for ranks {absent:?}", self.patience);
                let error = Error::new(Kind::Late, message).of(absent);
                table.spoilt = Some(error.clone());
                self.shared.changed.notify_all();
                return Err(error);
            }
            let (guard, _) =
                self.shared.changed.wait_timeout(table, left).unwrap_or_else(PoisonError::into_inner);
            table = guard;
        }
    }
}

impl Meeting for Room {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn world(&self) -> u32 {
        self.shared.world
    }

    fn gather(&mut self, what: &str, own: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        let all = |table: &Table| Ok(table.said.iter().flatten().cloned().collect());
        self.exchange(what, (own.to_vec(), None), all)
    }

    fn hand_out(&mut self, given: Option<OwnedFd>) -> Result<OwnedFd, Error> {
        let none = || Error::new(Kind::Internal, "rank 0 had nothing to hand out");
        self.exchange("memory", (Vec::new(), given), |table| {
            let given = table.given.as_ref().ok_or_else(none)?;
            given
                .try_clone()
                .map_err(|e| Error::new(Kind::Resource, format!("cannot share memory between threads: {e}")))
        })
    }
}

impl Drop for Room {
    /// Who leaves cannot come to the next exchange: nobody shall wait for it.
    fn drop(&mut self) {
        let mut table = self.shared.table.lock().unwrap_or_else(PoisonError::into_inner);
        if table.spoilt.is_none() {
            let message = format!("rank {} has left", self.rank);
            table.spoilt = Some(Error::new(Kind::PeerDied, message).culprit(self.rank));
        }
        self.shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn together<T: Send>(world: u32, work: impl Fn(Room) -> T + Sync) -> Vec<T> {
        let rooms = Room::for_all(world, Duration::from_secs(20));
        std::thread::scope(|scope| {
            let work = &work;
            let threads: Vec<_> = rooms.into_iter().map(|room| scope.spawn(move || work(room))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn all_hear_what_all_said_in_their_order() {
        let heard = together(5, |mut room| {
            (0..50u8).map(|i| room.gather("numbers", &[room.rank() as u8, i]).unwrap()).collect::<Vec<_>>()
        });
        for all in heard {
            for (i, said) in (0..).zip(all) {
                assert_eq!(said, (0..5).map(|rank| vec![rank, i]).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn who_comes_for_something_else_is_told_and_so_are_all() {
        let kinds = together(3, |mut room| {
            let what = if room.rank() == 1 { "tea" } else { "coffee" };
            room.gather(what, &[]).unwrap_err().kind
        });
        assert!(kinds.iter().all(|&kind| kind == Kind::Mismatch), "{kinds:?}");
    }

    #[test]
    fn nobody_waits_for_who_has_left_or_never_comes() {
        let errors = together(3, |mut room| (room.rank() != 2).then(|| room.gather("all", &[]).unwrap_err()));
        for error in errors.into_iter().flatten() {
            assert_eq!((error.kind, &error.culprits[..]), (Kind::PeerDied, &[2][..]));
        }
        let mut rooms = Room::for_all(2, Duration::from_millis(50));
        let error = rooms[0].gather("all", &[]).unwrap_err();
        assert_eq!((error.kind, &error.culprits[..]), (Kind::Late, &[1][..]));
    }

    /// The odd one comes last: all others have said what they came for, and yet nobody takes it for an answer.
    #[test]
    fn who_comes_last_for_something_else_is_no_answer_to_the_others() {
        let kinds = together(3, |mut room| {
            if room.rank() == 1 {
                let said = |room: &Room| room.shared.table.lock().unwrap().said.iter().flatten().count();
                while said(&room) < 2 {
                    std::thread::yield_now();
                }
            }
            let what = if room.rank() == 1 { "tea" } else { "coffee" };
            room.gather(what, &[]).unwrap_err().kind
        });
        assert!(kinds.iter().all(|&kind| kind == Kind::Mismatch), "{kinds:?}");
    }

    /// Who leaves when it has what it came for, before the others have taken theirs: they get it, and do not wait for it next time.
    #[test]
    fn who_leaves_early_is_not_waited_for_next_time() {
        let mut rooms = Room::for_all(3, Duration::from_secs(20));
        let first = rooms.remove(0);
        std::thread::scope(|scope| {
            let part = |mut room: Room| {
                move || {
                    let heard = room.gather("all", &[room.rank() as u8]).unwrap();
                    assert_eq!(heard, [vec![0], vec![1], vec![2]]);
                    let error = room.gather("more", &[]).unwrap_err();
                    assert_eq!((error.kind, &error.culprits[..]), (Kind::PeerDied, &[0][..]));
                }
            };
            let shared = Arc::clone(&first.shared);
            let others: Vec<_> = rooms.into_iter().map(|room| scope.spawn(part(room))).collect();
            while shared.table.lock().unwrap().said.iter().flatten().count() < 2 {
                std::thread::yield_now();
            }
            // As `exchange` and `drop` do, but with nobody between them.
            let mut table = shared.table.lock().unwrap();
            table.said[0] = Some(vec![0]);
            table.taken += 1;
            let message = "rank 0 has left";
            table.spoilt = Some(Error::new(Kind::PeerDied, message).culprit(0));
            shared.changed.notify_all();
            drop(table);
            others.into_iter().for_each(|other| other.join().unwrap());
        });
    }
}
