//! Ranks that agree on something before they go on: which call comes next, or what each has to say.
//!
//! In: a record of what this rank is about to do, or bytes. Out: once all ranks have said the same, or what all have said. The one
//! hard idea: to open a plan takes a meeting, in which a rank cannot see what others do; so before it, [`Communicator::agree`] takes
//! the number of a call, like a call without channels, and a rank that makes another call under that number finds out as in any
//! other call: both sides are shown at all ranks, and none waits for a meeting that others never come to.

use std::sync::atomic::Ordering;

use super::Communicator;
use super::drive::SUSPECT;
use super::engine::Inside;
use super::meeting::Meeting;
use crate::call::Record;
use crate::error::Error;
use crate::exec::drive::{Stop, pause};
use crate::wait::Waiter;
use crate::watch;

impl Communicator {
    /// Waits until all ranks have come with this record; calls that are under way go on. It counts as a call (the record's number is
    /// given here).
    ///
    /// # Errors
    /// [`Kind::Mismatch`](crate::error::Kind), at all ranks, if another rank comes with another record or makes another call; [`Kind::Late`](crate::error::Kind) if one does not
    /// come; and what ended the communicator.
    pub fn agree(&mut self, record: &Record) -> Result<(), Error> {
        self.seat.enter().agree(record)
    }

    /// What each rank says about `what`, in their order. Calls that are under way go on.
    ///
    /// # Errors
    /// [`Kind::Mismatch`](crate::error::Kind) if another rank is at something else; [`Kind::Late`](crate::error::Kind) if one does not
    /// come; and what ended the communicator.
    pub fn gather(&mut self, what: &str, own: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        self.meeting.gather(what, own)
    }
}

impl Inside<'_> {
    /// As [`Communicator::agree`].
    fn agree(&mut self, record: &Record) -> Result<(), Error> {
        let engine = self.engine();
        let (hall, rank) = (&*engine.hall, engine.rank);
        if let Some(cause) = hall.board().cause() {
            return Err(cause);
        }
        let call = self.flights.next_call();
        let (policy, late) = (engine.patience.policy, engine.patience.late);
        let own = hall.rank(rank);
        let number = own.record(record);
        own.calls(call, number);
        own.entered.store(call, Ordering::Release);
        (0..hall.shape().ranks()).for_each(|peer| hall.rank(plan::ids::RankId(peer)).ring());
        let all = || watch::absent(hall, call).is_empty();
        let mut waiter = Waiter::new(policy);
        let mut suspect = SUSPECT;
        while !all() {
            self.tell();
            if self.turn() {
                waiter.reset();
                continue;
            }
            let elsewhere = self.others();
            match pause(&mut waiter, hall, rank, late, || elsewhere || all()) {
                None => {}
                Some(Stop::Deadline { waited }) => {
                    hall.board().abort(&watch::not_entered(hall, call, waited));
                }
                // What ended it stands on the board.
                Some(_) => {}
            }
            if let Some(cause) = hall.board().cause() {
                self.stop(Stop::Aborted);
                return Err(cause);
            }
            if waiter.waited() > suspect {
                suspect *= 2;
                if let Some((from, call)) = watch::otherwise(hall, rank, call) {
                    hall.board().abort(&watch::mismatch(hall, rank, from, call));
                } else if let Some(from) = watch::gone(hall, rank, call).filter(|_| !all()) {
                    hall.board().abort(&watch::has_gone(hall, from, &format!("others are in call {call}")));
                } else if let Some(error) = watch::elsewhere(hall, rank) {
                    hall.board().abort(&error);
                }
            }
        }
        if let Some((from, call)) = watch::otherwise(hall, rank, call) {
            let error = watch::mismatch(hall, rank, from, call);
            hall.board().abort(&error);
            self.stop(Stop::Aborted);
            return Err(hall.board().cause().unwrap_or(error));
        }
        self.flights.passed(hall, call);
        Ok(())
    }
}

/// The record of a rank that is about to choose a plan.
pub fn choosing(what: &str, elements: u64, (dtype, op): (plan::dtype::Dtype, plan::dtype::Op)) -> Record {
    let algorithm: String = what.chars().take(80).collect();
    Record { call: 0, algorithm, plan: String::new(), elements, dtype, op, operator: None, in_place: false }
}

#[cfg(test)]
mod tests {
    use plan::dtype::{Dtype, Op};

    use super::choosing;
    use crate::comm::{Communicator, Options};
    use crate::error::{Error, Kind};

    fn ranks<T: Send>(world: u32, work: impl Fn(Communicator) -> T + Sync) -> Vec<T> {
        let options = Options { late: std::time::Duration::from_secs(20), ..Options::default() };
        let all = Communicator::threads(world, &options).unwrap();
        std::thread::scope(|scope| {
            let work = &work;
            let threads: Vec<_> = all.into_iter().map(|one| scope.spawn(move || work(one))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn all_agree_any_number_of_times() {
        let done = ranks(4, |mut comm| -> Result<(), Error> {
            (0..200).try_for_each(|i| comm.agree(&choosing("allreduce", i, (Dtype::F32, Op::Sum))))
        });
        assert!(done.iter().all(Result::is_ok), "{done:?}");
    }

    #[test]
    fn who_comes_with_something_else_is_shown_at_all_ranks() {
        let ended = ranks(3, |mut comm| {
            let elements = if comm.rank().0 == 1 { 9 } else { 8 };
            comm.agree(&choosing("allreduce", elements, (Dtype::F32, Op::Sum))).unwrap_err()
        });
        for error in ended {
            assert_eq!(error.kind, Kind::Mismatch);
            assert!(
                error.message.contains("differ in count") && error.message.contains("9 x f32"),
                "{error}"
            );
        }
    }

    #[test]
    fn who_leaves_is_not_waited_for() {
        let ended = ranks(3, |mut comm| {
            (comm.rank().0 != 2)
                .then(|| comm.agree(&choosing("barrier", 0, (Dtype::F32, Op::Sum))).unwrap_err())
        });
        for error in ended.into_iter().flatten() {
            assert_eq!((error.kind, &error.culprits[..]), (Kind::PeerDied, &[2][..]));
        }
    }
}
