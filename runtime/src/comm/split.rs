//! Communicators made of a communicator.
//!
//! In: what each rank wishes: a colour and a key. Out: a communicator for each colour, whose ranks are in the order of their keys. The one
//! hard idea: a new communicator has a hall of its own, and meets there; so what ends the one does not end the other, and the parent
//! may be dropped first. All of them are of one family: a wait in one drives the calls of all.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use plan::ids::RankId;
use serde::{Deserialize, Serialize};

use super::assembly::Ticket;
use super::engine::Family;
use super::lane::all_well;
use super::meeting::Meeting;
use super::progress::Progress;
use super::{Communicator, Options};
use crate::error::{Error, Kind};
use crate::memory::hall::{self, Hall};

/// What a rank wishes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Wish {
    color: Option<u32>,
    key: i64,
    /// What the members must agree on.
    shared: String,
}

impl Communicator {
    /// Splits into communicators, one for each colour; all ranks call it. Members are numbered in the order of their keys, those of equal
    /// keys in the order of their ranks here. Without a colour a rank is in none of them. Options are those of this communicator, also
    /// how much registered memory there is.
    ///
    /// # Errors
    /// [`Kind::Resource`] if the machine does not give the memory; [`Kind::PeerDied`] or [`Kind::Late`] if some rank does not come; or what
    /// ended this communicator.
    pub fn split(&mut self, color: Option<u32>, key: i64) -> Result<Option<Communicator>, Error> {
        let options = self.options.clone();
        self.split_with(color, key, &options)
    }

    /// The same with other options, the same for all members of a colour.
    ///
    /// # Errors
    /// As for [`Communicator::split`], and [`Kind::Mismatch`] if members of a colour give different options.
    pub fn split_with(
        &mut self,
        color: Option<u32>,
        key: i64,
        options: &Options,
    ) -> Result<Option<Communicator>, Error> {
        let wish = Wish { color, key, shared: options.shared() };
        let wishes = self.wishes(&wish)?;
        let mut members: Vec<u32> = (0..)
            .zip(&wishes)
            .filter(|(_, w)| w.color.is_some() && w.color == color)
            .map(|(r, _)| r)
            .collect();
        members.sort_by_key(|&rank| (wishes[rank as usize].key, rank));
        let place = members.iter().position(|&rank| rank == self.rank.0);
        let shape = options.check().and_then(|()| options.hall(members.len().max(1) as u32));
        // The first member makes the memory, and keeps it open until all have mapped it.
        let made: Option<Result<OwnedFd, Error>> = (place == Some(0))
            .then(|| shape.clone().and_then(|shape| Hall::create(shape).map(|(_, descriptor)| descriptor)));
        let wrong = made.as_ref().and_then(|made| made.as_ref().err()).or(shape.as_ref().err());
        all_well(&mut self.meeting, "split: made", wrong.cloned())?;
        let ticket = made.as_ref().and_then(|made| made.as_ref().ok()).map(Ticket::of);
        let ticket = ticket.map_or(Vec::new(), |ticket| ticket.bytes().to_vec());
        let tickets = self.meeting.gather("split: memory", &ticket)?;
        let opened = place
            .map(|place| enter(Ticket::read(&tickets[members[0] as usize])?, shape?, RankId::new(place)));
        let wrong = opened.as_ref().and_then(|opened: &Result<_, Error>| opened.as_ref().err().cloned());
        all_well(&mut self.meeting, "split: opened", wrong)?;
        // All have it.
        drop(made);
        let Some(entered) = opened.transpose()? else { return Ok(None) };
        let family = Arc::clone(&self.seat.engine().family);
        entered.stay(options.clone(), &family, None).map(Some)
    }

    /// Another communicator of the same ranks. Calls of the two go side by side, and what ends one does not end the other.
    ///
    /// # Errors
    /// As for [`Communicator::split`].
    pub fn duplicate(&mut self) -> Result<Communicator, Error> {
        let none = || Error::new(Kind::Internal, "a rank is not among those of its own colour");
        self.split(Some(0), i64::from(self.rank.0))?.ok_or_else(none)
    }

    /// Whether waits in one of the two drive calls of the other.
    pub fn drives(&self, other: &Communicator) -> bool {
        Arc::ptr_eq(&self.seat.engine().family, &other.seat.engine().family)
    }

    /// What all ranks wish; that members of a colour agree.
    fn wishes(&mut self, own: &Wish) -> Result<Vec<Wish>, Error> {
        let said = serde_json::to_vec(own).unwrap_or_default();
        let said = self.meeting.gather("split", &said)?;
        let strange =
            |e: serde_json::Error| Error::new(Kind::Internal, format!("a rank's wish is no wish: {e}"));
        let wishes: Vec<Wish> = said
            .iter()
            .map(|said| serde_json::from_slice(said).map_err(strange))
            .collect::<Result<_, _>>()?;
        for (rank, wish) in (0..).zip(&wishes) {
            let same = |other: &Wish| other.color.is_some() && other.color == wish.color;
            let Some((first, other)) = (0u32..).zip(&wishes).find(|(_, other)| same(other)) else { continue };
            if other.shared != wish.shared {
                let message = format!(
                    "ranks {first} and {rank} differ in options\n  rank {first}: {}\n  rank {rank}: {}",
                    other.shared, wish.shared
                );
                return Err(Error::new(Kind::Mismatch, message).of(vec![first, rank]));
            }
        }
        Ok(wishes)
    }
}

/// Maps a new hall, and says there who this is.
pub(super) fn enter(ticket: Ticket, shape: hall::Shape, rank: RankId) -> Result<Entered, Error> {
    let hall = Hall::open(ticket.take()?.as_fd(), shape)?;
    Ok(Entered::new(Arc::new(hall), rank))
}

/// A rank that is in a hall, and may yet not stay: if it does not, the others are told that it has left.
pub(super) struct Entered {
    hall: Option<Arc<Hall>>,
    rank: RankId,
}

impl Entered {
    pub(super) fn new(hall: Arc<Hall>, rank: RankId) -> Entered {
        hall.rank(rank).pid.store(std::process::id(), Ordering::Relaxed);
        Entered { hall: Some(hall), rank }
    }

    /// It stays.
    pub(super) fn stay(
        mut self,
        options: Options,
        family: &Arc<Family>,
        origin: Option<Box<dyn Meeting>>,
    ) -> Result<Communicator, Error> {
        if options.progress {
            Progress::start(family)?;
        }
        let none = || Error::new(Kind::Internal, "a rank stays twice");
        let hall = self.hall.take().ok_or_else(none)?;
        Ok(Communicator::in_hall(hall, self.rank, options, family, origin))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(hall) = &self.hall {
            hall.rank(self.rank).gone.store(1, Ordering::Release);
            (0..hall.shape().ranks()).for_each(|rank| hall.rank(RankId(rank)).ring());
        }
    }
}
