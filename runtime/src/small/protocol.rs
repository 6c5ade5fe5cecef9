//! Who may write and read which box when.
//!
//! In: the flow of each call (who writes to whom), in the order of calls, the same at all ranks. Out: a box to write, when it
//! may be written, the boxes to read. A box holds one part of one call, and then its [`Tag`], which is stored after the part (release)
//! and seen before it (acquire).
//!
//! The one hard idea is when a box may be written again: when all who read it have. Small calls end at each rank in
//! their order, so who has written its part of call e has ended all before e.
//!
//! - *All to all.* Who has ended call e has seen every rank's part of it, and so knows that all have ended the calls before. Two boxes
//!   in turn are enough: what was in the one that is next was read in the last call but one, or before.
//! - *Two ranks* write into what they have just read: the box that the other wrote last. Nobody else reads it, and the line is in this
//!   rank's cache already: it moves once in each call.
//! - *With a root* ranks write without hearing from those who read, so these say how far they are ([`Progress`]); the writer
//!   looks when it comes to a box again that it does not know to be read, after [`ROOTED`] such calls at the earliest.
//!
//! `tests/loom_small.rs` compiles this file with loom's atomics.

use super::sync::{self, AtomicU64};

/// Boxes of a rank for calls that go from all to all.
pub const EXCHANGE: usize = 2;
/// Boxes of a rank for calls with a root.
pub const ROOTED: usize = sync::ROOTED;
/// All boxes of a rank.
pub const BOXES: usize = EXCHANGE + ROOTED;

/// Says which call the part in a box belongs to. 0 at the start, which is no call's.
#[repr(transparent)]
#[derive(Debug)]
pub struct Tag(AtomicU64);

/// The last call with a root of which a rank has read all that it had to; written by that rank alone.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Progress(AtomicU64);

/// Who writes, and who reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Each rank writes, and reads what all others wrote.
    All,
    /// This one writes, all others read.
    From(u32),
    /// All others write, this one reads.
    To(u32),
}

/// A box: whose, and which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// In whose memory it lies.
    pub owner: u32,
    /// Which of its boxes.
    pub index: usize,
}

/// What one rank knows of the boxes.
#[derive(Debug)]
pub struct Ledger {
    rank: u32,
    ranks: u32,
    /// Calls of each kind that have begun.
    exchanges: u64,
    rooted: u64,
    /// All ranks are known to have ended all calls up to this one.
    passed: u64,
    /// Of each rank, the last call with a root that it is known to have ended.
    known: Box<[u64]>,
    /// What this rank's boxes for calls with a root were last written for.
    used: [Used; ROOTED],
    /// Of those who read the box at hand, all before this one are known to have read it.
    asked: u32,
    flow: Flow,
}

#[derive(Debug, Clone, Copy)]
struct Used {
    call: u64,
    flow: Flow,
}

impl Tag {
    /// No call's.
    pub fn new() -> Tag {
        Tag(AtomicU64::new(0))
    }

    /// Says that the part lies there.
    #[inline]
    pub fn put(&self, tag: u64) {
        self.0.store(tag, sync::put());
    }

    /// Whether the part of this call lies there.
    #[inline]
    pub fn is(&self, tag: u64) -> bool {
        self.0.load(sync::seen()) == tag
    }
}

impl Default for Tag {
    fn default() -> Tag {
        Tag::new()
    }
}

impl Progress {
    /// None.
    pub fn new() -> Progress {
        Progress(AtomicU64::new(0))
    }
}

impl Default for Progress {
    fn default() -> Progress {
        Progress::new()
    }
}

impl Flow {
    /// Whether a rank writes a part.
    #[inline]
    pub fn writes(self, rank: u32) -> bool {
        match self {
            Flow::All => true,
            Flow::From(root) => rank == root,
            Flow::To(root) => rank != root,
        }
    }

    /// Whether it reads the parts of others.
    #[inline]
    pub fn reads(self, rank: u32) -> bool {
        match self {
            Flow::All => true,
            Flow::From(root) => rank != root,
            Flow::To(root) => rank == root,
        }
    }
}

impl Ledger {
    /// No call has begun.
    pub fn new(rank: u32, ranks: u32) -> Ledger {
        let used = [Used { call: 0, flow: Flow::All }; ROOTED];
        let known = vec![0; ranks as usize].into();
        Ledger { rank, ranks, exchanges: 0, rooted: 0, passed: 0, known, used, asked: 0, flow: Flow::All }
    }

    /// Begins the next call; the last one has ended.
    #[inline]
    pub fn begin(&mut self, flow: Flow) {
        self.flow = flow;
        self.asked = 0;
        match flow {
            Flow::All => self.exchanges += 1,
            Flow::From(_) | Flow::To(_) => self.rooted += 1,
        }
    }

    /// Where a rank writes its part.
    #[inline]
    pub fn place(&self, rank: u32) -> Place {
        match self.flow {
            Flow::All if self.ranks == 2 => Place { owner: rank ^ (self.exchanges & 1) as u32, index: 0 },
            Flow::All => Place { owner: rank, index: (self.exchanges & 1) as usize },
            Flow::From(_) | Flow::To(_) => Place { owner: rank, index: EXCHANGE + self.turn() },
        }
    }

    /// Whether this rank may write its part.
    pub fn free<'a>(&mut self, progress: impl Fn(u32) -> &'a Progress) -> bool {
        if self.flow == Flow::All {
            return true;
        }
        let Used { call, flow } = self.used[self.turn()];
        if call <= self.passed {
            return true;
        }
        while self.asked < self.ranks {
            if self.asked != self.rank && flow.reads(self.asked) {
                let known = &mut self.known[self.asked as usize];
                if *known < call {
                    *known = progress(self.asked).0.load(sync::heard());
                }
                if *known < call {
                    return false;
                }
            }
            self.asked += 1;
        }
        true
    }

    /// Says that this rank has written its part of `call`.
    #[inline]
    pub fn written(&mut self, call: u64) {
        if self.flow != Flow::All {
            self.used[self.turn()] = Used { call, flow: self.flow };
        }
    }

    /// Ends `call`: this rank has read all that it had to. Whether others may wait to hear so.
    #[inline]
    pub fn end(&mut self, call: u64, own: &Progress) -> bool {
        let reads = self.flow.reads(self.rank);
        // Whose part of it this rank has seen has ended all before.
        match self.flow {
            _ if !reads => {}
            Flow::From(root) => {
                let known = &mut self.known[root as usize];
                *known = (*known).max(call - 1);
            }
            Flow::All | Flow::To(_) => self.passed = call - 1,
        }
        let told = reads && self.flow != Flow::All;
        if told {
            own.0.store(call, sync::told());
        }
        told
    }

    fn turn(&self) -> usize {
        (self.rooted % ROOTED as u64) as usize
    }
}
