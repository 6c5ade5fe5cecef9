//! Small calls that are under way.
//!
//! In: calls in the order in which they are issued. Out: their results, in that order: a rank's small calls begin and end one after the
//! other, which the protocol relies on. A turn never waits.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use plan::ids::RankId;

use super::buffers::{Areas, Buffers};
use super::call::{self, Call, MOST};
use super::parts::Kit;
use super::protocol::{Flow, Ledger};
use crate::crowd::Crowd;
use crate::error::{Error, Kind};
use crate::exec::drive::{Progress, Stop};
use crate::memory::hall::Hall;
use crate::wait::Policy;
use crate::watch;

/// One rank's small calls.
#[derive(Debug)]
pub(crate) struct Small {
    rank: u32,
    ranks: u32,
    ledger: Ledger,
    queue: VecDeque<Pending>,
    /// Of the last call, and so most likely of the next.
    kit: Kit,
    words: (u64, u64),
    seed: u64,
    /// The tag of the last call: what comes before a call is in its tag.
    last: u64,
    sources: Sources,
    policy: Policy,
    /// How often a wait looks again before it yields; adapts as `wait` says.
    pauses: u32,
    crowd: Crowd,
}

/// How often a wait among more ranks than CPUs looks for what others write who run beside it, before it yields: for about as long as it takes to
/// go to another rank and back.
const LOOKS: u32 = 64;
/// How often a short wait yields.
const YIELDS: u32 = 256;

/// Room for as many addresses as there are ranks, for what is combined.
#[derive(Debug)]
struct Sources(Box<[*const u8]>);

// SAFETY: written and used within one turn.
unsafe impl Send for Sources {}

/// A call that has not ended.
#[derive(Debug)]
struct Pending {
    number: u64,
    tag: u64,
    kit: Kit,
    areas: Areas,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Issued,
    /// It may wait for its box.
    Begun,
    /// This rank's part is written, and those of the ranks before this one are there.
    Reading(u32),
}

impl Small {
    pub(crate) fn new(rank: RankId, ranks: u32, policy: Policy) -> Small {
        let (rank, words) = (rank.0, Call::BARRIER.words());
        Small {
            rank,
            ranks,
            ledger: Ledger::new(rank, ranks),
            queue: VecDeque::with_capacity(4),
            kit: Kit::new(Call::BARRIER, rank, ranks),
            words,
            seed: call::seed(words),
            last: 0,
            sources: Sources(vec![std::ptr::null(); ranks as usize].into()),
            policy,
            pauses: policy.pauses,
            crowd: Crowd::new(),
        }
    }

    /// Whether a call and its buffers are as they must be. It is the next call that is issued.
    #[inline]
    pub(crate) fn check(&mut self, call: &Call, buffers: &Buffers<'_>) -> Result<Areas, Error> {
        if self.kit.call != *call {
            self.turn_to(call)?;
        }
        buffers.check(call, self.rank, self.ranks)
    }

    /// Issues the call that has just been checked, with its number.
    ///
    /// # Safety
    /// Until it has ended or was taken back, the memory found is there, and this call's alone (the input: nobody writes it).
    #[inline]
    pub(crate) unsafe fn issue(&mut self, hall: &Hall, number: u64, areas: Areas) {
        let own = hall.rank(RankId(self.rank));
        own.calls_small(number, call::with_form(self.words, areas.in_place));
        own.entered.store(number, Ordering::Release);
        let tag = call::tag(self.seed, number, self.last);
        self.last = tag;
        self.queue.push_back(Pending { number, tag, kit: self.kit, areas, stage: Stage::Issued });
    }

    /// Lets the first call that has not ended act as far as it can for now. When it has finished it is there no more.
    #[inline]
    pub(crate) fn turn(&mut self, hall: &Hall) -> Progress {
        let Some(pending) = self.queue.front_mut() else { return Progress { moved: false, finished: true } };
        let mut moved = false;
        let mut next = match pending.stage {
            Stage::Reading(next) => next,
            Stage::Issued | Stage::Begun => {
                if pending.stage == Stage::Issued {
                    self.ledger.begin(pending.kit.call.collective.flow());
                    pending.stage = Stage::Begun;
                }
                // SAFETY: who issued the call lent its memory.
                if !unsafe { write(pending, &mut self.ledger, hall, (self.rank, self.ranks)) } {
                    return Progress { moved, finished: false };
                }
                moved = true;
                0
            }
        };
        let flow = pending.kit.call.collective.flow();
        let from = |peer| hall.mailbox(self.ledger.place(peer));
        let swapped = flow == Flow::All && self.ranks == 2;
        if flow.reads(self.rank) {
            if swapped && moved {
                from(1 - self.rank).will_be_read(pending.kit.part);
            }
            while next < self.ranks {
                if next != self.rank && flow.writes(next) && !from(next).tag.is(pending.tag) {
                    pending.stage = Stage::Reading(next);
                    return Progress { moved, finished: false };
                }
                (next, moved) = (next + 1, true);
            }
            if swapped {
                // This rank writes there next.
                from(1 - self.rank).will_be_written(pending.kit.part);
            }
        }
        // SAFETY: who issued the call lent its memory; the parts of all ranks that this one reads are there, and nobody writes to
        // those boxes before this rank has ended the call.
        unsafe { pending.kit.finish(pending.areas, &mut self.sources.0, from) };
        let number = pending.number;
        if self.ledger.end(number, hall.progress(RankId(self.rank))) {
            // Those who write may wait for that.
            for peer in (0..self.ranks).filter(|&peer| peer != self.rank && flow.writes(peer)) {
                hall.rank(RankId(peer)).ring();
            }
        }
        self.queue.pop_front();
        Progress { moved: true, finished: true }
    }

    /// Waits for the only call, without a look at the clock: looks again some times, then yields some times. Whether it has ended.
    #[inline]
    pub(crate) fn wait(&mut self, hall: &Hall) -> bool {
        let mut rounds = 0;
        while !self.turn(hall).finished {
            rounds += 1;
            if rounds > self.pauses {
                return self.wait_yielding(hall);
            }
            std::hint::spin_loop();
        }
        if rounds > 0 {
            self.pauses = (self.pauses * 2).min(self.policy.pauses);
            if !self.crowded() {
                self.crowd.spun();
            }
        }
        true
    }

    fn wait_yielding(&mut self, hall: &Hall) -> bool {
        self.pauses = (self.pauses / 2).max(self.policy.least_pauses);
        for _ in 0..YIELDS {
            if hall.board().aborted() {
                return false;
            }
            if self.look(hall) {
                return true;
            }
            std::thread::yield_now();
            if self.turn(hall).finished {
                self.crowd.yielded(hall, RankId(self.rank));
                return true;
            }
        }
        false
    }

    /// Looks again some times as long as what is missing may come at once, from ranks that run now on other CPUs: to yield to one that shares this
    /// rank's would be for nothing, and back here all would be later by a turn. Whether the call has ended.
    fn look(&mut self, hall: &Hall) -> bool {
        for _ in 0..if self.crowded() { LOOKS } else { 0 } {
            if !self.may_come(hall) {
                return false;
            }
            std::hint::spin_loop();
            if self.turn(hall).finished {
                return true;
            }
        }
        false
    }

    /// Whether there are more ranks than CPUs.
    fn crowded(&self) -> bool {
        self.policy.pauses < LOOKS
    }

    /// Whether all that the first call lacks may be written now: by ranks on other CPUs, one on each.
    fn may_come(&self, hall: &Hall) -> bool {
        let (Some(company), Some(pending)) = (self.crowd.company(), self.queue.front()) else { return false };
        let Stage::Reading(next) = pending.stage else { return false };
        let flow = pending.kit.call.collective.flow();
        let lacks = |&peer: &u32| {
            peer != self.rank
                && flow.writes(peer)
                && !hall.mailbox(self.ledger.place(peer)).tag.is(pending.tag)
        };
        !company.near.iter().filter(|&&peer| peer >= next).any(lacks)
            && (next..self.ranks).filter(lacks).take(company.elsewhere + 1).count() <= company.elsewhere
    }

    /// Whether this call is the first that has not ended.
    pub(crate) fn is_next(&self, number: u64) -> bool {
        self.queue.front().is_some_and(|pending| pending.number == number)
    }

    /// Takes a call back that will not end well: nothing of it is written from here on. The error that its caller gets.
    pub(crate) fn fail(&mut self, hall: &Hall, number: u64, stop: Stop) -> Error {
        let at = self.queue.iter().position(|pending| pending.number == number);
        let pending = at.and_then(|at| self.queue.remove(at));
        let rank = RankId(self.rank);
        let missing = pending.map_or(Vec::new(), |pending| self.missing(hall, &pending));
        let error = match stop {
            Stop::Differs { from, call } => watch::mismatch(hall, rank, from, call),
            Stop::Gone { from } => watch::has_gone(hall, from, &format!("others are in call {number}")),
            Stop::Elsewhere => {
                let unknown = || Error::new(Kind::Mismatch, "ranks do different things");
                watch::elsewhere(hall, rank).unwrap_or_else(unknown)
            }
            Stop::Deadline { waited } if watch::absent(hall, number).is_empty() => {
                watch::stalled(number, waited, missing)
            }
            Stop::Deadline { waited } => watch::not_entered(hall, number, waited),
            // Only calls of plans find the others.
            Stop::Aborted | Stop::Mismatch { .. } | Stop::Astray { .. } | Stop::Panicked => {
                let unknown = || Error::new(Kind::Aborted, "the run was stopped");
                return watch::seen(hall, rank, hall.board().cause().unwrap_or_else(unknown));
            }
        };
        let error = watch::seen(hall, rank, error);
        if hall.board().abort(&error) {
            return error;
        }
        watch::seen(hall, rank, hall.board().cause().unwrap_or(error))
    }

    /// The ranks whose parts are not there.
    fn missing(&self, hall: &Hall, pending: &Pending) -> Vec<u32> {
        let Stage::Reading(next) = pending.stage else { return Vec::new() };
        let flow = pending.kit.call.collective.flow();
        let there = |&peer: &u32| hall.mailbox(self.ledger.place(peer)).tag.is(pending.tag);
        (next..self.ranks)
            .filter(|&peer| peer != self.rank && flow.writes(peer))
            .filter(|p| !there(p))
            .collect()
    }

    #[cold]
    fn turn_to(&mut self, call: &Call) -> Result<(), Error> {
        let (name, ranks) = (call.collective.name(), self.ranks);
        if !call.fits(ranks) {
            let (elements, dtype) = (call.elements, call.dtype);
            let message =
                format!("{name} of {elements} x {dtype} per block on {ranks} ranks is no small call");
            let help = format!("use a plan where a buffer has more than {MOST} bytes");
            return Err(Error::new(Kind::Unsupported, message).help(help));
        }
        if let Some(root) = call.collective.root().filter(|root| root.0 >= ranks) {
            return Err(Error::new(
                Kind::Invalid,
                format!("{name}: there is no rank {} among {ranks}", root.0),
            ));
        }
        if call.collective.reduces() && call.op.factor().is_some_and(|factor| !factor.fits(call.dtype)) {
            let message = format!("{} cannot be multiplied by the factor of {}", call.dtype, call.op);
            return Err(Error::new(Kind::Invalid, message).help("use a whole number that the type holds"));
        }
        self.kit = Kit::new(*call, self.rank, ranks);
        self.words = call.words();
        self.seed = call::seed(self.words);
        Ok(())
    }
}

/// Writes this rank's part, if it has one to write and its box is free; false if it is not.
///
/// # Safety
/// The memory of the call is there.
#[inline]
unsafe fn write(pending: &Pending, ledger: &mut Ledger, hall: &Hall, (rank, ranks): (u32, u32)) -> bool {
    let flow = pending.kit.call.collective.flow();
    if ranks == 1 || !flow.writes(rank) {
        return true;
    }
    if !ledger.free(|peer| hall.progress(RankId(peer))) {
        return false;
    }
    let to = hall.mailbox(ledger.place(rank));
    // SAFETY: the caller's promise; the ledger says that the box is this rank's to write.
    unsafe { pending.kit.write(pending.areas, to) };
    to.tag.put(pending.tag);
    ledger.written(pending.number);
    for peer in (0..ranks).filter(|&peer| peer != rank && flow.reads(peer)) {
        hall.rank(RankId(peer)).ring();
    }
    true
}
