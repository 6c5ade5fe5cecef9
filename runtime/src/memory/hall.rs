//! What ranks share whatever they call: the board, each rank's words and desk, each rank's registered memory, boxes for
//! small calls.
//!
//! In: how many ranks, and how much registered memory each gets. Out: references into one mapping, the same in every
//! process that computes the same [`Shape`]. What a plan needs beside (its channels, where its blocks stand) is a
//! [`Segment`](super::segment::Segment), of which a hall may have many. All offsets follow from the shape alone.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use plan::ids::RankId;
use rustix::fs::SealFlags;

use crate::error::{Error, Kind};
use crate::memory::board::{Board, RankWords};
use crate::memory::desk::{Accord, Desk};
use crate::memory::memfd::{self, Mapping};
use crate::small::boxes::{self, Mailbox};
use crate::small::protocol::{Place, Progress};

const PAGE: u128 = 4096;

/// Where everything lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    ranks: Vec<RankShape>,
    accord: usize,
    /// Where the boxes for small calls begin, if there are any.
    boxes: Option<usize>,
    bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RankShape {
    words: usize,
    desk: usize,
    /// Registered memory.
    region: usize,
    region_bytes: usize,
}

/// The hall, mapped.
#[derive(Debug)]
pub struct Hall {
    map: Mapping,
    shape: Shape,
}

impl Shape {
    /// For so many ranks, with `registered` bytes for each, rounded up to pages.
    pub fn new(ranks: u32, registered: impl Fn(RankId) -> u64) -> Result<Shape, Error> {
        // At most 2^32 ranks of at most 2^65 bytes each: 128 bits do not overflow.
        let mut end = (size_of::<Board>() as u128).next_multiple_of(PAGE);
        let mut take = |bytes: u128| {
            let start = end;
            end += bytes;
            start as usize
        };
        let accord = take(size_of::<Accord>() as u128);
        let mut all: Vec<RankShape> = (0..ranks)
            .map(|_| {
                let words = take(size_of::<RankWords>() as u128);
                let desk = take(size_of::<Desk>() as u128);
                RankShape { words, desk, region: 0, region_bytes: 0 }
            })
            .collect();
        end = end.next_multiple_of(PAGE);
        for (r, rank) in all.iter_mut().enumerate() {
            let bytes = u128::from(registered(RankId::new(r))).next_multiple_of(PAGE);
            (rank.region, rank.region_bytes) = (end as usize, bytes as usize);
            end += bytes;
        }
        // 2^32 times as many bytes as boxes have are less than 2^60: with them there is no overflow either.
        if end > i64::MAX as u128 / 2 {
            let message = format!("the registered memory of {ranks} ranks would need {end} bytes");
            return Err(Error::new(Kind::Resource, message).help("use fewer bytes or fewer ranks"));
        }
        Ok(Shape { ranks: all, accord, boxes: None, bytes: end as u64 })
    }

    /// With boxes for small calls.
    #[must_use]
    pub fn with_boxes(mut self) -> Shape {
        let bytes = self.ranks.len() as u64 * boxes::BYTES as u64;
        self.boxes = Some(self.bytes as usize);
        self.bytes += bytes.next_multiple_of(PAGE as u64);
        self
    }

    /// Its size: whole pages.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> u32 {
        self.ranks.len() as u32
    }
}

impl Hall {
    /// A new hall, and the descriptor to hand to other processes.
    pub fn create(shape: Shape) -> Result<(Hall, OwnedFd), Error> {
        let fd = memfd::reserve(c"rcc-hall", shape.bytes)?;
        Ok((Hall::open(fd.as_fd(), shape)?, fd))
    }

    /// The hall at the beginning of the memory behind a descriptor.
    pub fn open(fd: BorrowedFd<'_>, shape: Shape) -> Result<Hall, Error> {
        memfd::require(&fd, SealFlags::SHRINK)?;
        let size = memfd::size(&fd)?;
        if size < shape.bytes {
            let message = format!("shared memory has {size} bytes, not {}", shape.bytes);
            return Err(Error::new(Kind::Internal, message));
        }
        Ok(Hall { map: Mapping::part(fd, 0..shape.bytes)?, shape })
    }

    /// Where everything lies.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// What all ranks share.
    pub fn board(&self) -> &Board {
        // SAFETY: at the beginning of the mapping, which is a page's; made of atomics.
        unsafe { self.at(0) }
    }

    /// What a rank says about itself.
    pub fn rank(&self, rank: RankId) -> &RankWords {
        // SAFETY: `Shape::new` laid it there, on lines of its own; made of atomics.
        unsafe { self.at(self.shape.ranks[rank.index()].words) }
    }

    /// Where a rank lays what it has to say to all.
    pub fn desk(&self, rank: RankId) -> &Desk {
        // SAFETY: as for `rank`.
        unsafe { self.at(self.shape.ranks[rank.index()].desk) }
    }

    /// Where survivors agree.
    pub fn accord(&self) -> &Accord {
        // SAFETY: as for `rank`.
        unsafe { self.at(self.shape.accord) }
    }

    /// The registered memory of a rank: its first byte in this mapping, and how many there are.
    pub fn region(&self, rank: RankId) -> (*mut u8, u64) {
        let RankShape { region, region_bytes, .. } = self.shape.ranks[rank.index()];
        (self.map.start().wrapping_add(region), region_bytes as u64)
    }

    /// A box for small calls. Only in a hall that has some.
    #[inline]
    pub(crate) fn mailbox(&self, place: Place) -> Mailbox<'_> {
        let Place { owner, index } = place;
        // SAFETY: `Shape::with_boxes` laid it there; nothing else does.
        unsafe { Mailbox::of(self.boxes(owner), index) }
    }

    /// How far a rank is with small calls that have a root. Only in a hall with boxes.
    #[inline]
    pub(crate) fn progress(&self, rank: RankId) -> &Progress {
        // SAFETY: `Shape::with_boxes` laid it there; made of atomics.
        unsafe { &*self.boxes(rank.0).cast::<Progress>() }
    }

    /// The first byte of a rank's boxes.
    #[inline]
    fn boxes(&self, rank: u32) -> *mut u8 {
        let Some(boxes) = self.shape.boxes.filter(|_| rank < self.shape.ranks()) else { no_boxes() };
        self.map.start().wrapping_add(boxes + rank as usize * boxes::BYTES)
    }

    /// # Safety
    /// A `T` made of atomics alone lies at `offset`, aligned, within the mapping, and nothing else does.
    unsafe fn at<T>(&self, offset: usize) -> &T {
        debug_assert!(offset + size_of::<T>() <= self.map.bytes() && offset.is_multiple_of(align_of::<T>()));
        // SAFETY: the caller's promise; every bit pattern is a valid `T`, which may be shared and change at any time.
        unsafe { &*self.map.start().add(offset).cast::<T>() }
    }
}

#[cold]
fn no_boxes() -> ! {
    unreachable!("a small call without boxes")
}
