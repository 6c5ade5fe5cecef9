//! The caller's buffers: what a rank calls with, and memory to call with.
//!
//! In: slices and registered memory, or a plan and its layout. Out: [`Buffers`], borrowed for the time of a call and
//! checked against what the plan asks for; [`Memory`], which owns a rank's buffers, laid over each other as the plan
//! says if the calls are in place, and registered where peers reach into them. The one hard idea: two buffers may share
//! memory only as the plan's overlaps say, cell by cell; any other overlap is an error, because steps would then
//! overwrite what others have yet to read.

use std::marker::PhantomData;
use std::ops::Range;

use plan::ids::{BufferId, RankId};
use plan::layout::Layout;
use plan::plan::{Overlap, Plan, Role};
use smallvec::SmallVec;

use super::exposed::Exposed;
use super::places::Area;
use crate::error::{Error, Kind};
use crate::memory::memfd::Mapping;
use crate::memory::registered::{self, Registered};
use crate::memory::segment::Segment;

/// A rank's buffers, borrowed for a call.
#[derive(Debug, Default)]
pub struct Buffers<'a> {
    /// Calls of the usual few buffers allocate nothing.
    areas: SmallVec<[Area; 4]>,
    memory: PhantomData<&'a mut [u8]>,
}

/// A rank's buffers, owned.
#[derive(Debug)]
pub struct Memory {
    areas: Vec<Area>,
    /// The piece that each buffer lies in.
    piece_of: Vec<usize>,
    pieces: Vec<Piece>,
}

#[derive(Debug)]
enum Piece {
    /// Held, and reached through the areas.
    Private(#[expect(dead_code, reason = "it keeps the memory mapped")] Mapping),
    Registered(Registered),
}

/// Buffers of a rank that lie on each other, or one that lies alone.
struct Group {
    /// Each with its offset.
    members: Vec<(usize, u64)>,
    bytes: u64,
    exposed: bool,
}

impl<'a> Buffers<'a> {
    /// No buffers yet.
    pub fn new(plan: &Plan) -> Buffers<'a> {
        Buffers { areas: SmallVec::from_elem(Area::NONE, plan.buffers.len()), memory: PhantomData }
    }

    /// The memory of a `Send` buffer.
    #[must_use]
    pub fn send(mut self, buffer: BufferId, memory: &'a [u8]) -> Buffers<'a> {
        // Never written: only destinations of steps are, and no step of a verified plan has a `Send` buffer there.
        self.areas[buffer.index()] =
            Area { start: memory.as_ptr().cast_mut(), bytes: memory.len() as u64, registered: false };
        self
    }

    /// The registered memory of a `Send` buffer.
    #[must_use]
    pub fn send_registered(mut self, buffer: BufferId, memory: &'a Registered) -> Buffers<'a> {
        // Never written, as above; peers read it, which its owner has lent to them.
        self.areas[buffer.index()] =
            Area { start: memory.start(), bytes: memory.bytes().len() as u64, registered: true };
        self
    }

    /// The memory of a `Recv` buffer.
    #[must_use]
    pub fn recv(mut self, buffer: BufferId, memory: &'a mut [u8]) -> Buffers<'a> {
        self.areas[buffer.index()] =
            Area { start: memory.as_mut_ptr(), bytes: memory.len() as u64, registered: false };
        self
    }

    /// The memory of several buffers that overlap: each is a part of `memory`. Parts beyond its end are refused.
    pub fn same(
        mut self,
        memory: &'a mut [u8],
        parts: &[(BufferId, Range<usize>)],
    ) -> Result<Buffers<'a>, Error> {
        self.parts(memory.as_mut_ptr(), memory.len(), parts, false)?;
        Ok(self)
    }

    /// The registered memory of one or several buffers: each is a part of `memory`. Parts beyond its end are refused.
    pub fn registered(
        mut self,
        memory: &'a mut Registered,
        parts: &[(BufferId, Range<usize>)],
    ) -> Result<Buffers<'a>, Error> {
        self.parts(memory.start(), memory.len(), parts, true)?;
        Ok(self)
    }

    /// The memory of a buffer by its address, as other languages have it. Buffers may lie to each other as a call in place asks for.
    ///
    /// # Safety
    /// For `'a` the memory of a `Send` buffer may be read, that of a `Recv` buffer written, and nobody else writes either, or reads what is written.
    /// If it is `registered` it lies in a [`Registered`] that lives as long, of which no slice is used meanwhile.
    #[must_use]
    pub unsafe fn at(
        mut self,
        buffer: BufferId,
        (start, bytes): (*mut u8, u64),
        registered: bool,
    ) -> Buffers<'a> {
        self.areas[buffer.index()] = Area { start, bytes, registered };
        self
    }

    fn parts(
        &mut self,
        start: *mut u8,
        len: usize,
        parts: &[(BufferId, Range<usize>)],
        registered: bool,
    ) -> Result<(), Error> {
        for (buffer, part) in parts {
            if part.start > part.end || part.end > len {
                let message = format!("bytes {}..{} are not within the {len} given", part.start, part.end);
                return Err(Error::new(Kind::Invalid, message));
            }
            self.areas[buffer.index()] = Area {
                start: start.wrapping_add(part.start),
                bytes: (part.end - part.start) as u64,
                registered,
            };
        }
        Ok(())
    }

    /// The areas.
    pub(crate) fn areas(&self) -> &[Area] {
        &self.areas
    }

    /// Whether these are what `rank` must call with.
    pub(crate) fn check(
        &self,
        plan: &Plan,
        layout: &Layout,
        rank: RankId,
        in_place: bool,
    ) -> Result<(), Error> {
        for (i, buffer) in plan.buffers.iter().enumerate() {
            let due = if buffer.at.holds(rank) { layout.buffer_bytes(BufferId::new(i)) } else { 0 };
            let given = self.areas.get(i).map_or(0, |area| area.bytes);
            if buffer.role != Role::Scratch && given != due {
                let name = &buffer.name;
                let message =
                    format!("rank {}: buffer `{name}` must have {due} bytes, and has {given}", rank.0);
                return Err(Error::new(Kind::Invalid, message));
            }
        }
        for right in recv_buffers(plan) {
            for left in 0..plan.buffers.len() {
                let declared: u64 = if in_place {
                    overlaps(plan, rank, left, right)
                        .map(|o| self.declared(layout, plan, o))
                        .sum::<Option<u64>>()
                } else {
                    Some(0)
                }
                .unwrap_or(u64::MAX);
                if left != right && shared(&self.areas[left], &self.areas[right]) != declared {
                    let [left, right] = [left, right].map(|b| &plan.buffers[b].name);
                    let message = format!(
                        "rank {}: buffers `{left}` and `{right}` do not lie to each other as a call {} asks for",
                        rank.0,
                        if in_place { "in place" } else { "out of place" },
                    );
                    return Err(Error::new(Kind::Invalid, message));
                }
            }
        }
        Ok(())
    }

    /// Whether all that peers reach into lies in the registered memory of `rank`.
    pub(crate) fn check_registered(
        &self,
        plan: &Plan,
        exposed: &Exposed,
        segment: &Segment,
        rank: RankId,
    ) -> Result<(), Error> {
        let (region, bytes) = segment.region(rank);
        for (b, area) in self.areas.iter().enumerate() {
            let within = area.registered && {
                let offset = (area.start as u64).wrapping_sub(region as u64);
                offset <= bytes && area.bytes <= bytes - offset
            };
            if exposed.is(rank, BufferId::new(b)) && area.bytes > 0 && !within {
                let name = &plan.buffers[b].name;
                let message = format!(
                    "rank {}: other ranks reach into buffer `{name}`, which must lie in this rank's registered memory",
                    rank.0
                );
                return Err(Error::new(Kind::Invalid, message)
                    .culprit(rank.0)
                    .help("take its memory from `Rank::alloc`, or use a plan of messages alone"));
            }
        }
        Ok(())
    }

    /// The bytes that a declared overlap has in common, if both sides of it are one memory.
    fn declared(&self, layout: &Layout, plan: &Plan, overlap: &Overlap) -> Option<u64> {
        let bytes = |first| cell_bytes(layout, plan, first, overlap.cells);
        let (left, right) = (bytes(overlap.left_cell), bytes(overlap.right_cell));
        let address = |buffer: BufferId, at: u64| (self.areas[buffer.index()].start as u64).wrapping_add(at);
        let length = left.end - left.start;
        let same = address(overlap.left, left.start) == address(overlap.right, right.start);
        (same || length == 0).then_some(length)
    }
}

impl Memory {
    /// Zeroed memory for all buffers of `rank`; what peers reach into is registered.
    pub(super) fn new(
        plan: &Plan,
        layout: &Layout,
        exposed: &Exposed,
        segment: &Segment,
        rank: RankId,
        in_place: bool,
    ) -> Result<Memory, Error> {
        let mut areas = vec![Area::NONE; plan.buffers.len()];
        let mut piece_of = vec![0; plan.buffers.len()];
        let mut pieces = Vec::new();
        for group in groups(plan, layout, exposed, rank, in_place) {
            let (piece, first) = if group.exposed {
                let piece = Registered::new(segment.hall(), rank, group.bytes)?;
                let first = piece.start();
                (Piece::Registered(piece), first)
            } else {
                let mapping = Mapping::private(group.bytes)?;
                let first = mapping.start();
                (Piece::Private(mapping), first)
            };
            for (b, offset) in group.members {
                areas[b] = Area {
                    start: first.wrapping_add(offset as usize),
                    bytes: buffer_bytes(plan, layout, rank, b),
                    registered: group.exposed,
                };
                piece_of[b] = pieces.len();
            }
            pieces.push(piece);
        }
        Ok(Memory { areas, piece_of, pieces })
    }

    /// To call with.
    pub fn buffers(&mut self) -> Buffers<'_> {
        Buffers { areas: SmallVec::from_slice(&self.areas), memory: PhantomData }
    }

    /// The bytes of one buffer; none in quarantine (see [`Registered::quarantined`]).
    pub fn bytes(&self, buffer: BufferId) -> &[u8] {
        let Area { start, bytes, .. } = self.given(buffer);
        if bytes == 0 {
            return &[];
        }
        // SAFETY: the area lies within a piece of this value, and is borrowed as this value is.
        unsafe { std::slice::from_raw_parts(start, bytes as usize) }
    }

    /// The bytes of one buffer, to be written; none in quarantine.
    pub fn bytes_mut(&mut self, buffer: BufferId) -> &mut [u8] {
        let Area { start, bytes, .. } = self.given(buffer);
        if bytes == 0 {
            return &mut [];
        }
        // SAFETY: the area lies within a piece of this value, and is borrowed as this value is.
        unsafe { std::slice::from_raw_parts_mut(start, bytes as usize) }
    }

    fn given(&self, buffer: BufferId) -> Area {
        match self.pieces.get(self.piece_of[buffer.index()]) {
            Some(Piece::Registered(piece)) if piece.quarantined() => Area::NONE,
            _ => self.areas[buffer.index()],
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // Registered memory is a stack.
        while self.pieces.pop().is_some() {}
    }
}

/// The registered memory that [`Memory`] takes for calls of this layout at `rank`.
pub(crate) fn registered_bytes(
    plan: &Plan,
    layout: &Layout,
    exposed: &Exposed,
    rank: RankId,
    in_place: bool,
) -> u64 {
    let groups = groups(plan, layout, exposed, rank, in_place).into_iter();
    groups.filter(|g| g.exposed).map(|g| registered::taken(g.bytes)).fold(0, u64::saturating_add)
}

/// The buffers of a rank, those together that lie on each other.
fn groups(plan: &Plan, layout: &Layout, exposed: &Exposed, rank: RankId, in_place: bool) -> Vec<Group> {
    let count = plan.buffers.len();
    // Each has an offset from its group's first buffer.
    let mut group: Vec<usize> = (0..count).collect();
    let mut offset = vec![0i128; count];
    if in_place {
        for overlap in plan.overlaps.iter().filter(|o| o.rank == rank) {
            let (left, right) = (overlap.left.index(), overlap.right.index());
            let start = |first| i128::from(cell_bytes(layout, plan, first, overlap.cells).start);
            let shift = offset[right] + start(overlap.right_cell) - start(overlap.left_cell) - offset[left];
            let (from, to) = (group[left], group[right]);
            if from != to {
                for b in (0..count).filter(|&b| group[b] == from) {
                    offset[b] += shift;
                }
                group.iter_mut().filter(|g| **g == from).for_each(|g| *g = to);
            }
        }
    }
    let of = |leader: usize| {
        let members = || (0..count).filter(|&b| group[b] == leader);
        let bytes = |b: usize| i128::from(buffer_bytes(plan, layout, rank, b));
        let low = members().map(|b| offset[b]).min().unwrap_or(0);
        let high = members().map(|b| offset[b] + bytes(b)).max().unwrap_or(0);
        let callers = members().filter(|&b| plan.buffers[b].role != Role::Scratch);
        Group {
            members: callers.map(|b| (b, (offset[b] - low) as u64)).collect(),
            bytes: u64::try_from(high - low).unwrap_or(u64::MAX),
            exposed: members().any(|b| exposed.is(rank, BufferId::new(b))),
        }
    };
    (0..count).map(of).filter(|group| !group.members.is_empty()).collect()
}

fn buffer_bytes(plan: &Plan, layout: &Layout, rank: RankId, b: usize) -> u64 {
    if plan.buffers[b].at.holds(rank) { layout.buffer_bytes(BufferId::new(b)) } else { 0 }
}

fn recv_buffers(plan: &Plan) -> impl Iterator<Item = usize> {
    (0..plan.buffers.len()).filter(|&b| plan.buffers[b].role == Role::Recv)
}

/// The overlaps of two buffers at a rank, whichever of them is called left.
fn overlaps(plan: &Plan, rank: RankId, a: usize, b: usize) -> impl Iterator<Item = &Overlap> {
    let pair = move |o: &Overlap| {
        let (left, right) = (o.left.index(), o.right.index());
        (left, right) == (a, b) || (left, right) == (b, a)
    };
    plan.overlaps.iter().filter(move |o| o.rank == rank && pair(o))
}

/// The bytes of some cells, within their buffer.
fn cell_bytes(layout: &Layout, plan: &Plan, first: u32, count: u32) -> Range<u64> {
    let size = u64::from(layout.dtype().size());
    let start = layout.place(0, first).start * size;
    let end = match count.checked_sub(1) {
        Some(more) => layout.place(plan.header.copies - 1, first + more).end * size,
        None => start,
    };
    start..end
}

/// How many bytes two areas have in common.
fn shared(a: &Area, b: &Area) -> u64 {
    let end = |area: &Area| (area.start as u64).saturating_add(area.bytes);
    if a.bytes == 0 || b.bytes == 0 {
        return 0;
    }
    end(a).min(end(b)).saturating_sub((a.start as u64).max(b.start as u64))
}
