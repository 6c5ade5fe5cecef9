//! What the ranks of one plan share: its channels, where its blocks stand, where its buffers lie; and the hall of the job.
//!
//! In: a plan, a geometry (k slots of S bytes), and how much registered memory each rank gets; or a hall that is there already.
//! Out: references into mappings, the same in every process that computes the same [`Shape`]. The one hard idea: all offsets
//! follow from plan and geometry alone, so nothing but descriptors and those two has to travel. Writers and readers of a
//! word lie on lines of their own (128 bytes: two lines are fetched together).
//!
//! A job has one descriptor for both: the hall, then the rest. Where a hall serves many plans, each plan has its own.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use plan::display::plural;
use plan::ids::{BlockId, BufferId, ChannelId, RankId};
use plan::plan::{ChannelKind, Plan};
use plan::verify::trades;
use rustix::fs::SealFlags;

use crate::channel::protocol::{Head, Tail};
use crate::error::{Error, Kind};
use crate::memory::board::{AreaWords, BlockWords, Board, LaneWords, RankWords};
use crate::memory::hall::{self, Hall};
use crate::memory::memfd::{self, Mapping};

const LINE: u128 = 128;
const PAGE: u128 = 4096;

/// Where everything lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    hall: hall::Shape,
    copies: u32,
    slots: u32,
    stride: usize,
    ranks: Vec<RankShape>,
    /// For each rank, the place of its first block among all blocks of the plan.
    first_block: Vec<u32>,
    channels: Vec<ChannelShape>,
    /// For each channel of the plan the one that it trades slots with.
    traded: Vec<Option<ChannelId>>,
    buffers: usize,
    /// Beside the hall: whole pages.
    bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RankShape {
    lane: usize,
    /// Of every buffer of the plan.
    areas: usize,
    blocks: usize,
    block_count: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ChannelShape {
    start: usize,
    readers: usize,
    kind: ChannelKind,
}

/// The segment, mapped.
#[derive(Debug)]
pub struct Segment {
    hall: Arc<Hall>,
    map: Mapping,
    shape: Shape,
}

/// The memory of one channel of one copy.
#[derive(Debug, Clone, Copy)]
pub struct ChannelMemory<'a> {
    /// The writer's line.
    pub head: &'a Head,
    /// The readers' lines.
    pub tails: &'a [Tail],
    /// k; `u64::MAX` for tokens.
    pub credit: u64,
    /// The first slot.
    pub slots: *mut u8,
    /// From one slot to the next.
    pub stride: usize,
}

impl Shape {
    /// The shape of the segment for `plan` with `slots` slots of `slot_bytes` per channel.
    pub fn new(plan: &Plan, slots: u32, slot_bytes: u32) -> Result<Shape, Error> {
        if slots == 0 || slots < plan.header.k_min {
            let slots = plural(slots.into(), "slot per channel is", "slots per channel are");
            let message = format!("{slots} too few: the plan needs {}", plan.header.k_min.max(1));
            return Err(Error::new(Kind::Invalid, message).help("allow more slots"));
        }
        let copies = plan.header.copies;
        let stride = u128::from(slot_bytes).next_multiple_of(64);
        // At most 2^32 things of at most 2^70 bytes each: 128 bits do not overflow.
        let mut end = 0u128;
        let mut take = |bytes: u128, align: u128| {
            let start = end.next_multiple_of(align);
            end = start + bytes;
            start as usize
        };
        let mut ranks = Vec::with_capacity(plan.header.ranks as usize);
        let mut first_block = Vec::with_capacity(plan.header.ranks as usize);
        for rank in 0..plan.header.ranks {
            let block_count = plan.blocks_of(RankId(rank)).len() * copies as usize;
            first_block.push(plan.blocks.partition_point(|b| b.rank < RankId(rank)) as u32);
            let lane = take(size_of::<LaneWords>() as u128, LINE);
            let areas = take(size_of::<AreaWords>() as u128 * plan.buffers.len() as u128, LINE);
            let blocks = take(size_of::<BlockWords>() as u128 * block_count as u128, LINE);
            ranks.push(RankShape { lane, areas, blocks, block_count });
        }
        let mut channels = Vec::with_capacity(plan.channels.len() * copies as usize);
        for channel in &plan.channels {
            let readers = plan.readers(channel).len();
            let payload = match channel.kind {
                ChannelKind::Slots => u128::from(slots) * stride,
                ChannelKind::Counter => 0,
            };
            let bytes = size_of::<Head>() as u128 + readers as u128 * size_of::<Tail>() as u128 + payload;
            for _ in 0..copies {
                channels.push(ChannelShape { start: take(bytes, LINE), readers, kind: channel.kind });
            }
        }
        let mut traded = vec![None; plan.channels.len()];
        for [a, b] in trades(plan, slots) {
            (traded[a.index()], traded[b.index()]) = (Some(b), Some(a));
        }
        let total = end.next_multiple_of(PAGE);
        if total > i64::MAX as u128 {
            let message = format!("the channels of this run would need {total} bytes");
            return Err(Error::new(Kind::Resource, message).help("use fewer or smaller slots"));
        }
        Ok(Shape {
            hall: hall::Shape::new(plan.header.ranks, |_| 0)?,
            copies,
            slots,
            stride: stride as usize,
            ranks,
            first_block,
            channels,
            traded,
            buffers: plan.buffers.len(),
            bytes: total as u64,
        })
    }

    /// With so much registered memory for each rank, rounded up to pages.
    pub fn with_registered(mut self, bytes: impl Fn(RankId) -> u64) -> Result<Shape, Error> {
        self.hall = hall::Shape::new(self.ranks(), bytes)?;
        if self.hall.bytes().checked_add(self.bytes).is_none_or(|all| all > i64::MAX as u64) {
            let (hall, channels) = (self.hall.bytes(), self.bytes);
            let message =
                format!("this run would need {channels} bytes for channels, and {hall} that are registered");
            return Err(Error::new(Kind::Resource, message).help("use fewer bytes or fewer ranks"));
        }
        Ok(self)
    }

    /// The size of the segment, with its hall.
    pub fn bytes(&self) -> u64 {
        self.hall.bytes() + self.bytes
    }

    /// What it takes in a hall that is there already.
    pub fn bytes_beside(&self) -> u64 {
        self.bytes
    }

    /// The channel that this one trades slots with.
    pub fn traded(&self, channel: ChannelId) -> Option<ChannelId> {
        self.traded[channel.index()]
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// The instance of a channel in a copy: its index among all.
    pub fn instance(&self, channel: ChannelId, copy: u32) -> usize {
        channel.index() * self.copies as usize + copy as usize
    }
}

impl Segment {
    /// A new segment with a hall of its own, and the descriptor to hand to other processes.
    pub fn create(shape: Shape) -> Result<(Segment, OwnedFd), Error> {
        let fd = memfd::reserve(c"rcc-segment", shape.bytes())?;
        let segment = Segment::open(fd.as_fd(), shape)?;
        Ok((segment, fd))
    }

    /// The segment and its hall behind a descriptor.
    pub fn open(fd: BorrowedFd<'_>, shape: Shape) -> Result<Segment, Error> {
        let hall = Arc::new(Hall::open(fd, shape.hall.clone())?);
        let part = shape.hall.bytes()..shape.bytes();
        Segment::map(hall, fd, part, shape)
    }

    /// A new segment in a hall, and the descriptor to hand to other processes of the hall.
    pub fn create_in(hall: Arc<Hall>, shape: Shape) -> Result<(Segment, OwnedFd), Error> {
        let fd = memfd::reserve(c"rcc-channels", shape.bytes)?;
        let segment = Segment::open_in(hall, fd.as_fd(), shape)?;
        Ok((segment, fd))
    }

    /// The segment behind a descriptor, in a hall.
    pub fn open_in(hall: Arc<Hall>, fd: BorrowedFd<'_>, shape: Shape) -> Result<Segment, Error> {
        if hall.shape().ranks() != shape.ranks() {
            let (has, wants) = (hall.shape().ranks(), shape.ranks());
            return Err(Error::new(Kind::Invalid, format!("a plan for {wants} ranks among {has}")));
        }
        let part = 0..shape.bytes;
        Segment::map(hall, fd, part, shape)
    }

    fn map(hall: Arc<Hall>, fd: BorrowedFd<'_>, part: Range<u64>, shape: Shape) -> Result<Segment, Error> {
        memfd::require(&fd, SealFlags::SHRINK)?;
        let size = memfd::size(&fd)?;
        if size != part.end {
            let message = format!("the shared segment has {size} bytes, not {}", part.end);
            return Err(Error::new(Kind::Internal, message));
        }
        Ok(Segment { hall, map: Mapping::part(fd, part)?, shape })
    }

    /// What the ranks share whatever they call.
    pub fn hall(&self) -> &Arc<Hall> {
        &self.hall
    }

    /// Where everything lies.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// What all ranks share.
    pub fn board(&self) -> &Board {
        self.hall.board()
    }

    /// What a rank says about itself.
    pub fn rank(&self, rank: RankId) -> &RankWords {
        self.hall.rank(rank)
    }

    /// What a rank says about its calls of this plan.
    pub fn lane(&self, rank: RankId) -> &LaneWords {
        self.at(self.shape.ranks[rank.index()].lane)
    }

    /// Where the blocks of a rank stand, block by block, for each its copies.
    pub fn blocks(&self, rank: RankId) -> &[BlockWords] {
        let RankShape { blocks, block_count, .. } = self.shape.ranks[rank.index()];
        self.slice(blocks, block_count)
    }

    /// Where a block of a copy stands.
    pub fn block(&self, rank: RankId, block: BlockId, copy: u32) -> &BlockWords {
        let within = block.0 - self.shape.first_block[rank.index()];
        &self.blocks(rank)[within as usize * self.shape.copies as usize + copy as usize]
    }

    /// Where a rank's buffer lies in its registered memory, if its call says so.
    pub fn area(&self, rank: RankId, buffer: BufferId) -> &AreaWords {
        &self.areas(rank)[buffer.index()]
    }

    /// The registered memory of a rank: its first byte in this mapping, and how many there are.
    pub fn region(&self, rank: RankId) -> (*mut u8, u64) {
        self.hall.region(rank)
    }

    /// The memory of a channel instance.
    pub fn channel(&self, instance: usize) -> ChannelMemory<'_> {
        let ChannelShape { start, readers, kind } = self.shape.channels[instance];
        let tails = start + size_of::<Head>();
        let slots = tails + readers * size_of::<Tail>();
        ChannelMemory {
            head: self.at(start),
            tails: self.slice(tails, readers),
            credit: match kind {
                ChannelKind::Slots => u64::from(self.shape.slots),
                ChannelKind::Counter => u64::MAX,
            },
            slots: self.map.start().wrapping_add(slots),
            stride: self.shape.stride,
        }
    }

    /// Lets the message numbers of all channels begin after `number`, as if so many had been sent before. Only before
    /// any rank has connected.
    pub fn number_from(&self, number: u64) {
        for instance in 0..self.shape.channels.len() {
            let channel = self.channel(instance);
            channel.head.published.store(number, Ordering::Relaxed);
            for tail in channel.tails {
                tail.consumed.store(number, Ordering::Relaxed);
            }
        }
    }

    fn areas(&self, rank: RankId) -> &[AreaWords] {
        self.slice(self.shape.ranks[rank.index()].areas, self.shape.buffers)
    }

    fn at<T>(&self, offset: usize) -> &T {
        &self.slice(offset, 1)[0]
    }

    /// `T` is made of atomics alone (`LaneWords`, `AreaWords`, `BlockWords`, `Head`, `Tail`).
    fn slice<T>(&self, offset: usize, count: usize) -> &[T] {
        debug_assert!(
            offset + count * size_of::<T>() <= self.map.bytes() && offset.is_multiple_of(align_of::<T>())
        );
        // SAFETY: `Shape::new` laid these out within the segment, aligned and apart from all else; every bit pattern
        // is a valid `T` because it is made of atomics, which may be shared and change at any time.
        unsafe { std::slice::from_raw_parts(self.map.start().add(offset).cast::<T>(), count) }
    }
}
