//! The board of a job: the abort word, the barrier, and what each rank says about itself.
//!
//! In: stores by the ranks as they go. Out: what any rank (or the launcher) needs to end a failed run and to report
//! it. Everything is atomic words in shared memory; all zero at the start. The first error wins; a rank's own words
//! are written by that rank alone, except its doorbell.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

use crate::call::Record;
use crate::error::{Error, Kind};
use crate::memory::text::Text;
use crate::small;
use crate::wait::NAP;

/// How many records a rank keeps; one stands for all calls of one plan and shape.
pub const RECORDS: usize = 16;

/// Of how many calls a rank says which record is theirs.
pub const CALLS: usize = 64;

/// Room for an error in JSON.
const ERROR_WORDS: usize = 1000;

const CLEAR: u32 = 0;
const CLAIMED: u32 = 1;
const WRITTEN: u32 = 2;

/// What all ranks share.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Board {
    abort: AtomicU32,
    error: Text<ERROR_WORDS>,
    barrier: Arrivals,
}

/// On a line of its own: the abort word is read in every waiting loop.
#[repr(C, align(128))]
#[derive(Debug)]
struct Arrivals(AtomicU64);

/// What one rank says about itself.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct RankWords {
    /// The call it entered last.
    pub entered: AtomicU64,
    /// The last call that it and all before it have finished.
    pub left: AtomicU64,
    /// The barriers it has come to.
    pub barriers: AtomicU64,
    /// Grows while it works between calls: who waits for it then knows that it has not been lost.
    pub work: AtomicU64,
    /// Its process, or 0 where ranks are threads.
    pub pid: AtomicU32,
    /// One more than the CPU on which it was when it last had reason to say so; 0: it had none.
    pub cpu: AtomicU32,
    /// Not 0: it makes no call any more.
    pub gone: AtomicU32,
    /// Not 0: a call has failed, and some peer may still be writing to its registered memory.
    pub quarantined: AtomicU32,
    /// How many bytes of its registered memory are taken.
    pub allocated: AtomicU64,
    doorbell: Doorbell,
    /// Of call e at e mod [`CALLS`].
    calls: [CallWords; CALLS],
    /// Number n at n mod [`RECORDS`].
    records: [RecordWords; RECORDS],
    /// How many records have been written.
    written: AtomicU64,
}

/// Written by peers, on a line of its own.
#[repr(C, align(128))]
#[derive(Debug)]
struct Doorbell {
    sleeping: AtomicU32,
    rung: AtomicU32,
}

#[repr(C)]
#[derive(Debug)]
struct CallWords {
    call: AtomicU64,
    /// The number of its record; of a small call, what it is.
    record: AtomicU64,
    /// Of a small call, the rest of it.
    more: AtomicU64,
}

#[repr(C)]
#[derive(Debug)]
struct RecordWords {
    number: AtomicU64,
    record: Text<64>,
}

/// What one rank says about its calls of one plan.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct LaneWords {
    /// The call of this plan that it entered last.
    pub entered: AtomicU64,
    /// The last call of this plan in which it touches nobody's memory any more, however the call ended.
    pub quiet: AtomicU64,
}

/// Where one block of one rank stands; written by that rank alone.
#[repr(C)]
#[derive(Debug)]
pub struct BlockWords {
    at: AtomicU64,
    iteration: AtomicU64,
}

/// Where a buffer lies in its rank's registered memory; written by that rank at the entry of a call, before it tells
/// any peer that it is ready.
#[repr(C)]
#[derive(Debug)]
pub struct AreaWords {
    offset: AtomicU64,
    bytes: AtomicU64,
}

/// What a block says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum At {
    /// It has not begun.
    Nowhere,
    /// It is at this step.
    Step(u32),
    /// It has done its part of the call.
    Done,
}

impl Board {
    /// Whether some rank, or the launcher, has given up.
    #[inline]
    pub fn aborted(&self) -> bool {
        self.abort.load(Ordering::Relaxed) != CLEAR
    }

    /// Ends the run for all; returns whether this error was the first and stands on the board.
    pub fn abort(&self, error: &Error) -> bool {
        if self.abort.compare_exchange(CLEAR, CLAIMED, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return false;
        }
        // Each rank reports its own position; the board has no room for those of all.
        let mut brief = error.clone();
        brief.others.clear();
        let mut text = serde_json::to_string(&brief).unwrap_or_default();
        if text.len() > 8 * ERROR_WORDS {
            let message: String = brief.message.chars().take(1000).collect();
            let culprits = brief.culprits.iter().copied().take(16).collect();
            text = serde_json::to_string(&Error::new(brief.kind, message).of(culprits)).unwrap_or_default();
        }
        self.error.store(&text);
        self.abort.store(WRITTEN, Ordering::Release);
        true
    }

    /// The same, and all that whoever gave up did before is seen after this.
    #[inline]
    pub fn aborted_before(&self) -> bool {
        self.abort.load(Ordering::Acquire) != CLEAR
    }

    /// The error that ended the run, if one did.
    #[inline]
    pub fn cause(&self) -> Option<Error> {
        // In every call: what it costs otherwise is a look at the clock.
        if self.abort.load(Ordering::Acquire) == CLEAR { None } else { self.written() }
    }

    #[cold]
    fn written(&self) -> Option<Error> {
        let began = Instant::now();
        loop {
            match self.abort.load(Ordering::Acquire) {
                CLEAR => return None,
                WRITTEN => break,
                // Whoever claimed the board is writing, or died while it was.
                _ if began.elapsed() > Duration::from_millis(200) => break,
                _ => std::thread::yield_now(),
            }
        }
        let unknown = || Error::new(Kind::Aborted, "a rank gave up, and could not say why");
        Some(serde_json::from_str(&self.error.load()).unwrap_or_else(|_| unknown()))
    }

    /// Comes to a barrier; returns how many arrivals complete it, for [`Board::complete`].
    pub fn arrive(&self, own: &RankWords, ranks: u64) -> u64 {
        let number = own.barriers.load(Ordering::Relaxed) + 1;
        // After the calls before it, for who counts both.
        own.barriers.store(number, Ordering::Release);
        self.barrier.0.fetch_add(1, Ordering::AcqRel);
        number * ranks
    }

    /// Whether so many arrivals have happened.
    #[inline]
    pub fn complete(&self, arrivals: u64) -> bool {
        self.barrier.0.load(Ordering::Acquire) >= arrivals
    }
}

impl RankWords {
    /// Says that this rank is at work between calls.
    #[inline]
    pub fn at_work(&self) {
        self.work.store(self.work.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Wakes the rank if it sleeps. The look at `sleeping` is not ordered after what the caller has just published:
    /// a wake-up may be missed, and then costs one [`NAP`] at most; a fence here would cost every message.
    #[inline]
    pub fn ring(&self) {
        if self.doorbell.sleeping.load(Ordering::Relaxed) != 0 {
            self.wake();
        }
    }

    /// Sleeps until rung or for a [`NAP`], unless `ready` says that there is something to do.
    pub fn sleep(&self, ready: impl FnOnce() -> bool) {
        let rung = self.doorbell.rung.load(Ordering::Relaxed);
        self.doorbell.sleeping.store(1, Ordering::SeqCst);
        if !ready() {
            crate::memory::futex::wait(&self.doorbell.rung, rung, NAP);
        }
        self.doorbell.sleeping.store(0, Ordering::Relaxed);
    }

    /// Writes down what calls of one plan and shape are, and says under which number (from 1).
    pub fn record(&self, record: &Record) -> u64 {
        let number = self.written.load(Ordering::Relaxed) + 1;
        self.written.store(number, Ordering::Relaxed);
        let words = &self.records[(number % RECORDS as u64) as usize];
        // Whoever reads meanwhile finds no number, or not the one that it found before.
        words.number.store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        words.record.store(&serde_json::to_string(record).unwrap_or_default());
        words.number.store(number, Ordering::Release);
        number
    }

    /// Whether a record still stands: the latest take the place of the oldest.
    #[inline]
    pub fn keeps(&self, number: u64) -> bool {
        number > 0 && number + RECORDS as u64 > self.written.load(Ordering::Relaxed)
    }

    /// Says that `call` is what record `number` says; visible to whoever reads a message of that call.
    #[inline]
    pub fn calls(&self, call: u64, number: u64) {
        let words = &self.calls[(call % CALLS as u64) as usize];
        words.call.store(call, Ordering::Relaxed);
        words.record.store(number, Ordering::Release);
    }

    /// Says that `call` is a small one, and all about it.
    #[inline]
    pub(crate) fn calls_small(&self, call: u64, (word, more): (u64, u64)) {
        let words = &self.calls[(call % CALLS as u64) as usize];
        words.call.store(call, Ordering::Relaxed);
        // Who reads what follows sees that it is of another call.
        fence(Ordering::Release);
        words.more.store(more, Ordering::Relaxed);
        words.record.store(word, Ordering::Release);
    }

    /// Whether this rank has said that `call` is a small one; only for its own ears.
    pub(crate) fn was_small(&self, call: u64) -> bool {
        let words = &self.calls[(call % CALLS as u64) as usize];
        words.call.load(Ordering::Relaxed) == call
            && small::call::is_small(words.record.load(Ordering::Relaxed))
    }

    /// What this rank wrote down about call `call`, if it is still there.
    pub fn recorded(&self, call: u64) -> Option<Record> {
        let words = &self.calls[(call % CALLS as u64) as usize];
        // The number first: if it is that of a later call, so is what is read next.
        let number = words.record.load(Ordering::Acquire);
        let more = words.more.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        if let Some(record) = small::call::record((number, more), call) {
            return (words.call.load(Ordering::Relaxed) == call).then_some(record);
        }
        let record = &self.records[(number % RECORDS as u64) as usize];
        if words.call.load(Ordering::Relaxed) != call || record.number.load(Ordering::Acquire) != number {
            return None;
        }
        let text = record.record.load();
        fence(Ordering::Acquire);
        if record.number.load(Ordering::Relaxed) != number {
            return None;
        }
        let record: Record = serde_json::from_str(&text).ok()?;
        Some(Record { call, ..record })
    }

    #[cold]
    fn wake(&self) {
        self.doorbell.rung.fetch_add(1, Ordering::Relaxed);
        crate::memory::futex::wake(&self.doorbell.rung);
    }
}

impl AreaWords {
    /// Says where the buffer lies. Peers that have a token of this rank's from after this see it; the token orders it.
    #[inline]
    pub fn publish(&self, offset: u64, bytes: u64) {
        self.offset.store(offset, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Where it lies: offset and bytes.
    #[inline]
    pub fn read(&self) -> (u64, u64) {
        (self.offset.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

impl BlockWords {
    /// Says where the block stands.
    #[inline]
    pub fn publish(&self, at: At, iteration: u64) {
        let word = match at {
            At::Nowhere => 0,
            At::Step(step) => 1 << 32 | u64::from(step),
            At::Done => 2 << 32,
        };
        self.at.store(word, Ordering::Relaxed);
        self.iteration.store(iteration, Ordering::Relaxed);
    }

    /// Where the block stands, and in which iteration.
    pub fn read(&self) -> (At, u64) {
        let word = self.at.load(Ordering::Relaxed);
        let at = match word >> 32 {
            0 => At::Nowhere,
            1 => At::Step(word as u32),
            _ => At::Done,
        };
        (at, self.iteration.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board() -> Board {
        // SAFETY: made of atomics alone, for which zeros are valid.
        unsafe { std::mem::zeroed() }
    }

    #[test]
    fn the_first_error_stands() {
        let board = board();
        assert_eq!((board.aborted(), board.cause()), (false, None));
        let first = Error::new(Kind::Late, "first").culprit(3);
        assert!(board.abort(&first));
        assert!(!board.abort(&Error::new(Kind::Stalled, "second")));
        assert_eq!((board.aborted(), board.cause()), (true, Some(first)));
    }

    #[test]
    fn an_error_that_was_never_written_whole_is_not_waited_for() {
        let board = board();
        board.abort.store(CLAIMED, Ordering::Relaxed);
        assert_eq!(board.cause().map(|cause| cause.kind), Some(Kind::Aborted));
    }

    #[test]
    fn an_error_longer_than_the_board_is_cut() {
        let board = board();
        let long = Error::new(Kind::Mismatch, "ä".repeat(5000)).of((0..5000).collect());
        assert!(board.abort(&long));
        let cause = board.cause().unwrap();
        assert_eq!((cause.kind, cause.culprits.len()), (Kind::Mismatch, 16));
        assert!(cause.message.starts_with("ää"));
    }
}
