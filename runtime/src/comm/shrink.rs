//! Going on without those that are lost.
//!
//! In: a communicator of which some rank has died or left. Out: a new one of all that are still there, in their old order. The one hard
//! idea: all survivors must agree on who survives, whoever dies meanwhile. One of them, the first to take the word, offers new memory
//! to all that have come; it counts when all of those have taken it. If the one who offers dies, another takes the word and
//! offers anew; if another dies, the offer is made anew without it. What has been agreed on is never taken back: who dies after that
//! is found dead in the new communicator.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use plan::ids::RankId;

use super::Communicator;
use super::abort::aborted;
use super::assembly::Ticket;
use super::split::{Entered, enter};
use crate::error::{Error, Kind};
use crate::memory::desk::Accord;
use crate::memory::hall::{self, Hall};
use crate::watch;

/// How often it is looked whether others have come, agreed or died.
const LOOK: Duration = Duration::from_micros(100);

/// An offer: which shrinking it is of, how many were made before, who makes it. Later ones are larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Offer(u64);

impl Offer {
    fn new(round: u64, turn: u64, rank: RankId) -> Offer {
        Offer(round << 40 | (turn & 0xff_ffff) << 16 | u64::from(rank.0))
    }

    fn round(self) -> u64 {
        self.0 >> 40
    }

    /// The next one of a round.
    fn after(self, round: u64, rank: RankId) -> Offer {
        let turn = if self.round() == round { (self.0 >> 16 & 0xff_ffff) + 1 } else { 0 };
        Offer::new(round, turn, rank)
    }

    fn rank(self) -> RankId {
        RankId((self.0 & 0xffff) as u32)
    }
}

/// What a rank has taken.
struct Taken {
    offer: Offer,
    entered: Entered,
}

impl Communicator {
    /// Makes a communicator of all ranks that are still there: those whose process has not ended and that have not left. All of them call
    /// it; they are numbered in their order here. It does not need this communicator to be well, and ends it if it is: whoever is
    /// still in a call comes out of it with an error, and is to call this too. Options are those of this communicator.
    ///
    /// # Errors
    /// [`Kind::Late`] if some rank that is there does not come; [`Kind::Resource`] if the machine does not give the memory.
    pub fn shrink(&mut self) -> Result<Communicator, Error> {
        self.hall.board().abort(&aborted(self.rank, "it goes on with those that are left"));
        let mut inside = self.seat.enter();
        inside.until(|flights| !flights.under_way());
        drop(inside);
        self.shrunk += 1;
        let round = self.shrunk;
        self.hall.desk(self.rank).shrinking.store(round, Ordering::Release);
        let Taken { entered, .. } = self.survive(round).inspect_err(|_| {
            // Who gives up is not waited for.
            self.hall.rank(self.rank).gone.store(1, Ordering::Release);
        })?;
        let family = Arc::clone(&self.seat.engine().family);
        entered.stay(self.options.clone(), &family, None)
    }

    fn survive(&self, round: u64) -> Result<Taken, Error> {
        let accord = self.hall.accord();
        let mut taken: Option<Taken> = None;
        let began = Instant::now();
        loop {
            let claimed = Offer(accord.claimed.load(Ordering::Acquire));
            if claimed.round() > round {
                // The others have agreed without this rank, and gone on.
                let message = format!("the others have gone on without rank {}", self.rank.0);
                return Err(Error::new(Kind::Late, message).culprit(self.rank.0));
            }
            let free = if claimed.round() < round {
                self.all_come(round)
            } else {
                // Looked at in this order: who has died agrees on nothing any more.
                let dead = watch::lost(&self.hall, claimed.rank());
                if accord.agreed.load(Ordering::Acquire) == claimed.0 {
                    let found = taken.filter(|taken| taken.offer == claimed);
                    let none = || Error::new(Kind::Internal, "survivors agreed without a rank that is there");
                    return found.ok_or_else(none);
                }
                if accord.offered.load(Ordering::Acquire) == claimed.0
                    && taken.as_ref().is_none_or(|taken| taken.offer != claimed)
                {
                    let this = self.take(claimed);
                    // Who offers may have died meanwhile, or may offer anew: then what was taken may be anything.
                    let stands = || accord.offered.load(Ordering::Acquire) == claimed.0;
                    if !watch::lost(&self.hall, claimed.rank()) && stands() {
                        taken = Some(this?);
                        self.hall.desk(self.rank).agreed.store(claimed.0, Ordering::Release);
                    }
                }
                dead
            };
            if free {
                let own = claimed.after(round, self.rank);
                let claim =
                    accord.claimed.compare_exchange(claimed.0, own.0, Ordering::AcqRel, Ordering::Relaxed);
                if claim.is_ok() {
                    return self.offer(own, began);
                }
            }
            self.patient(round, began)?;
            std::thread::sleep(LOOK);
        }
    }

    /// Whether all that are there have come to a shrinking.
    fn all_come(&self, round: u64) -> bool {
        self.everyone().all(|rank| self.has_come(rank, round) || watch::lost(&self.hall, rank))
    }

    fn has_come(&self, rank: RankId, round: u64) -> bool {
        self.hall.desk(rank).shrinking.load(Ordering::Acquire) >= round
    }

    fn everyone(&self) -> impl Iterator<Item = RankId> + use<> {
        (0..self.hall.shape().ranks()).map(RankId)
    }

    /// Takes what is offered.
    fn take(&self, offer: Offer) -> Result<Taken, Error> {
        let Accord { process, descriptor, .. } = self.hall.accord();
        let ticket = Ticket {
            process: process.load(Ordering::Relaxed) as u32,
            descriptor: descriptor.load(Ordering::Relaxed) as u32,
        };
        let (shape, rank) = self.among(offer)?;
        Ok(Taken { offer, entered: enter(ticket, shape, rank)? })
    }

    /// The new hall's shape, and which rank this is there.
    fn among(&self, offer: Offer) -> Result<(hall::Shape, RankId), Error> {
        let member = |rank: &RankId| self.hall.desk(*rank).member.load(Ordering::Relaxed) == offer.0;
        let members: Vec<RankId> = self.everyone().filter(member).collect();
        let none = || Error::new(Kind::Internal, "a rank that is there was taken for lost");
        let rank = members.iter().position(|&rank| rank == self.rank).ok_or_else(none)?;
        Ok((self.options.hall(members.len() as u32)?, RankId::new(rank)))
    }

    /// Makes offers until one has been taken by all its members.
    fn offer(&self, mut offer: Offer, began: Instant) -> Result<Taken, Error> {
        let accord = self.hall.accord();
        loop {
            let there = |&rank: &RankId| !watch::lost(&self.hall, rank) && self.has_come(rank, offer.round());
            let members: Vec<RankId> = self.everyone().filter(there).collect();
            for rank in self.everyone() {
                let member = if members.contains(&rank) { offer.0 } else { 0 };
                self.hall.desk(rank).member.store(member, Ordering::Relaxed);
            }
            let (shape, rank) = self.among(offer)?;
            let (made, kept): (Hall, OwnedFd) = Hall::create(shape.clone())?;
            drop(made);
            let ticket = Ticket::of(&kept);
            accord.process.store(ticket.process.into(), Ordering::Relaxed);
            accord.descriptor.store(ticket.descriptor.into(), Ordering::Relaxed);
            accord.offered.store(offer.0, Ordering::Release);
            let entered = enter(ticket, shape, rank)?;
            self.hall.desk(self.rank).agreed.store(offer.0, Ordering::Release);
            let agreed = |rank: &RankId| self.hall.desk(*rank).agreed.load(Ordering::Acquire) == offer.0;
            loop {
                if members.iter().all(agreed) {
                    accord.agreed.store(offer.0, Ordering::Release);
                    return Ok(Taken { offer, entered });
                }
                if members.iter().any(|rank| watch::lost(&self.hall, *rank) && !agreed(rank)) {
                    break;
                }
                self.patient(offer.round(), began)?;
                std::thread::sleep(LOOK);
            }
            // What is offered no more is not taken: said before its memory goes.
            accord.offered.store(0, Ordering::SeqCst);
            offer = offer.after(offer.round(), self.rank);
            accord.claimed.store(offer.0, Ordering::Release);
        }
    }

    /// Whether there is still time.
    fn patient(&self, round: u64, began: Instant) -> Result<(), Error> {
        let waited = began.elapsed();
        if waited <= self.options.late {
            return Ok(());
        }
        let missing = |rank: &RankId| !self.has_come(*rank, round) && !watch::lost(&self.hall, *rank);
        let absent: Vec<u32> = self.everyone().filter(missing).map(|rank| rank.0).collect();
        let message = format!("waited {waited:.1?} for ranks {absent:?} to shrink the communicator");
        Err(Error::new(Kind::Late, message).of(absent))
    }
}
