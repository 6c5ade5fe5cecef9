//! Where the ranks of a communicator meet once they share a hall.
//!
//! In: what each rank says. Out: what all said, and descriptors of memory that all map. It needs nothing but the hall, so ranks that were
//! brought together by a launcher, by a split or by surviving meet in the same way. The one hard idea: nobody waits here for who
//! will not come. (Who comes just when others give up may yet succeed once: all had said what they came for. The communicator has ended then,
//! and what was agreed on is not lost: who gave up while one was made has left it, and is found to have.) All count the calls and the meetings; so who waits sees of each that is missing whether it has died, has left,
//! or makes a call that this rank has not made yet, and ends the communicator for all.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plan::ids::RankId;

use super::engine::Family;
use super::meeting::Meeting;
use crate::error::{Error, Kind};
use crate::exec::Patience;
use crate::memory::desk::{DESK_BYTES, Desk};
use crate::memory::hall::Hall;
use crate::wait::{Turn, Waiter};
use crate::watch;

/// From when on, and then after twice as long each time, it is looked whether those that are missing will ever come.
const SUSPECT: Duration = Duration::from_millis(20);

/// One rank's place.
#[derive(Debug)]
pub(super) struct Assembly {
    hall: Arc<Hall>,
    rank: RankId,
    family: Arc<Family>,
    patience: Patience,
    warn: Duration,
    /// The number of the last exchange.
    number: u64,
}

impl Assembly {
    pub(super) fn new(
        hall: Arc<Hall>,
        rank: RankId,
        family: Arc<Family>,
        patience: Patience,
        warn: Duration,
    ) -> Assembly {
        Assembly { hall, rank, family, patience, warn, number: 0 }
    }

    /// What all said, for messages of any length: as many exchanges as the longest takes.
    fn exchange(&mut self, what: &str, own: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        const PART: usize = DESK_BYTES - 8;
        let mut all = vec![Vec::new(); self.world() as usize];
        let (mut at, mut rest) = (0, 1);
        while rest > 0 {
            let part = &own[at.min(own.len())..own.len().min(at + PART)];
            let left = (own.len() - own.len().min(at + PART)) as u64;
            let mut message = left.to_le_bytes().to_vec();
            message.extend_from_slice(part);
            at += PART;
            rest = 0;
            for (whole, said) in all.iter_mut().zip(self.once(what, &message)?) {
                let Some((left, part)) = said.split_first_chunk() else { continue };
                rest = rest.max(u64::from_le_bytes(*left));
                whole.extend_from_slice(part);
            }
        }
        Ok(all)
    }

    /// One exchange.
    fn once(&mut self, what: &str, message: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        let number = self.number + 1;
        let Assembly { hall, rank, .. } = &*self;
        // Where it has ended nothing more is said: others may still read what was.
        if let Some(cause) = hall.board().cause() {
            return Err(cause);
        }
        // What was said last has been taken by all: the desk may be written anew.
        self.wait(what, |desk| desk.taken.load(Ordering::Acquire) + 1 >= number)?;
        hall.desk(*rank).say(number, message);
        self.ring();
        self.wait(what, |desk| desk.said.load(Ordering::Acquire) >= number)?;
        let said = self.ranks().map(|rank| hall.desk(rank).read()).collect();
        hall.desk(*rank).taken.store(number, Ordering::Release);
        self.ring();
        self.number = number;
        Ok(said)
    }

    /// Waits until `there` of all desks, and lets calls under way go on meanwhile.
    fn wait(&self, what: &str, there: impl Fn(&Desk) -> bool) -> Result<(), Error> {
        let Assembly { hall, rank, family, patience, .. } = self;
        let mut waiter = Waiter::new(patience.policy);
        let (mut suspect, mut warned) = (SUSPECT, false);
        let missing = || self.ranks().find(|&rank| !there(hall.desk(rank)));
        while missing().is_some() {
            if let Some(cause) = hall.board().cause() {
                return Err(cause);
            }
            let moved = family.others(None);
            if waiter.round() == Turn::Sleep && !moved {
                hall.rank(*rank).sleep(|| missing().is_none());
            }
            let waited = waiter.waited();
            if waited > suspect {
                suspect *= 2;
                self.suspect(what, &there);
            }
            if waited > self.warn && !warned {
                warned = true;
                let missing: Vec<u32> = self.absent(&there).map(|rank| rank.0).collect();
                tracing::warn!(rank = rank.0, what, ?missing, "has waited for {waited:.0?}");
            }
            if waited > patience.late {
                let absent: Vec<u32> = self.absent(&there).map(|rank| rank.0).collect();
                if !absent.is_empty() {
                    let message = format!("waited {waited:.1?} at `{what}` for ranks {absent:?}");
                    hall.board().abort(&Error::new(Kind::Late, message).of(absent));
                }
            }
        }
        Ok(())
    }

    /// Ends the communicator if one of those that are missing will not come.
    fn suspect(&self, what: &str, there: &impl Fn(&Desk) -> bool) {
        let Assembly { hall, rank, .. } = self;
        if let Some(error) = watch::elsewhere(hall, *rank) {
            hall.board().abort(&error);
            return;
        }
        // Looked at in this order: who has gone does nothing any more.
        let dead = self.absent(there).find(|&rank| watch::lost(hall, rank) && !there(hall.desk(rank)));
        if let Some(dead) = dead {
            let error = watch::has_gone(hall, dead, &format!("others are at `{what}`"));
            hall.board().abort(&error);
        }
    }

    fn absent(&self, there: &impl Fn(&Desk) -> bool) -> impl Iterator<Item = RankId> {
        self.ranks().filter(|&rank| !there(self.hall.desk(rank)))
    }

    fn ranks(&self) -> impl Iterator<Item = RankId> + use<> {
        (0..self.hall.shape().ranks()).map(RankId)
    }

    fn ring(&self) {
        self.ranks().for_each(|rank| self.hall.rank(rank).ring());
    }
}

impl Meeting for Assembly {
    fn rank(&self) -> u32 {
        self.rank.0
    }

    fn world(&self) -> u32 {
        self.hall.shape().ranks()
    }

    fn gather(&mut self, what: &str, own: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        let mut message = (what.len() as u64).to_le_bytes().to_vec();
        message.extend_from_slice(what.as_bytes());
        message.extend_from_slice(own);
        let mut all = self.exchange(what, &message)?;
        let mut purposes = Vec::with_capacity(all.len());
        for said in &mut all {
            let purpose = said.split_first_chunk().and_then(|(length, rest)| {
                let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
                (length <= rest.len()).then(|| (rest[..length].to_vec(), rest[length..].to_vec()))
            });
            let (purpose, own) = purpose.unwrap_or_default();
            purposes.push(purpose);
            *said = own;
        }
        // All see the same, and from here on they would be out of step.
        if let Some(other) = purposes.iter().position(|purpose| *purpose != purposes[0]) {
            let text = |rank: usize| String::from_utf8_lossy(&purposes[rank]).into_owned();
            let message = format!(
                "ranks 0 and {other} do not do the same\n  rank 0 is at: {}\n  rank {other} is at: {}",
                text(0),
                text(other)
            );
            let error = Error::new(Kind::Mismatch, message).of(vec![0, other as u32]);
            self.hall.board().abort(&error);
            return Err(error);
        }
        Ok(all)
    }

    fn hand_out(&mut self, given: Option<OwnedFd>) -> Result<OwnedFd, Error> {
        let own = given.as_ref().map_or(Vec::new(), |given| Ticket::of(given).bytes().to_vec());
        let all = self.gather("memory", &own)?;
        let taken = match given {
            Some(given) => Ok(given),
            None => Ticket::read(&all[0]).and_then(Ticket::take),
        };
        super::lane::all_well(self, "memory taken", taken.as_ref().err().cloned())?;
        taken
    }
}

/// Where a descriptor can be had by other processes of the user.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticket {
    pub(super) process: u32,
    pub(super) descriptor: u32,
}

impl Ticket {
    /// Of a descriptor that this process keeps until all have taken it.
    pub(super) fn of(given: &OwnedFd) -> Ticket {
        Ticket { process: std::process::id(), descriptor: given.as_raw_fd().unsigned_abs() }
    }

    pub(super) fn bytes(self) -> [u8; 8] {
        (u64::from(self.process) << 32 | u64::from(self.descriptor)).to_le_bytes()
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Ticket, Error> {
        let none = |_| Error::new(Kind::Internal, "a rank had no memory to share");
        let word = u64::from_le_bytes(bytes.try_into().map_err(none)?);
        Ok(Ticket { process: (word >> 32) as u32, descriptor: word as u32 })
    }

    /// A descriptor of the same memory. The system lets processes of the same user have it.
    pub(super) fn take(self) -> Result<OwnedFd, Error> {
        let Ticket { process, descriptor } = self;
        let path = format!("/proc/{process}/fd/{descriptor}");
        let opened = std::fs::OpenOptions::new().read(true).write(true).open(&path);
        opened.map(OwnedFd::from).map_err(|e| {
            Error::new(Kind::Resource, format!("cannot map the memory of another rank ({path}): {e}"))
                .help("ranks must be processes of one user that see each other under /proc")
        })
    }
}
