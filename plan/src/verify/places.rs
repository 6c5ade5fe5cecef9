//! One number for every cell of every rank.
//!
//! In: a plan whose sizes V0 has checked. Out: `base(rank, buffer) + cell`, dense from 0; the owner of a number for
//! messages; under the form `same` the memory that cells lie in ([`Memory`]).

use std::ops::Range;

use crate::ids::{BufferId, RankId};
use crate::plan::{Form, Overlap, Plan, Role};

/// Dense numbers of cells.
#[derive(Debug)]
pub(super) struct Places {
    /// First number of (rank, buffer), rank by rank; one more at the end.
    base: Vec<u32>,
    buffers: usize,
}

/// A cell, as people find it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// Whose.
    pub rank: RankId,
    /// The buffer's name.
    pub buffer: String,
    /// The block; none for scratch.
    pub block: Option<u32>,
    /// The cell within the block (scratch: within all of it).
    pub cell: u32,
}

impl Places {
    /// Costs ranks × buffers entries.
    pub(super) fn new(plan: &Plan) -> Places {
        let mut base = Vec::with_capacity(plan.buffers.len() * plan.header.ranks as usize + 1);
        let mut next = 0;
        for rank in (0..plan.header.ranks).map(RankId) {
            for buffer in &plan.buffers {
                base.push(next);
                next += match buffer.role {
                    Role::Scratch => plan.header.scratch_cells[rank.index()],
                    _ if buffer.at.holds(rank) => buffer.blocks * plan.header.cells,
                    _ => 0,
                };
            }
        }
        base.push(next);
        Places { base, buffers: plan.buffers.len() }
    }

    /// How many there are.
    pub(super) fn total(&self) -> usize {
        self.base.last().map_or(0, |&last| last as usize)
    }

    /// The number of a cell that is known to exist.
    #[inline]
    pub(super) fn of(&self, rank: RankId, buffer: BufferId, cell: u32) -> usize {
        (self.base[rank.index() * self.buffers + buffer.index()] + cell) as usize
    }

    /// The number of a cell, if there is one.
    pub(super) fn find(&self, rank: RankId, buffer: BufferId, cell: u32) -> Option<usize> {
        let ranks = (self.base.len() - 1).checked_div(self.buffers)?;
        let exists = rank.index() < ranks && buffer.index() < self.buffers && cell < self.cells(rank, buffer);
        exists.then(|| self.of(rank, buffer, cell))
    }

    /// How many cells a buffer that exists in the plan has at a rank that exists.
    pub(super) fn cells(&self, rank: RankId, buffer: BufferId) -> u32 {
        let at = rank.index() * self.buffers + buffer.index();
        self.base[at + 1] - self.base[at]
    }

    /// The numbers of `cells` cells from `cell` on, if the buffer has them all at that rank.
    pub(super) fn range(
        &self,
        rank: RankId,
        buffer: BufferId,
        cell: u32,
        cells: u32,
    ) -> Option<Range<usize>> {
        let end = u64::from(cell) + u64::from(cells);
        (end <= u64::from(self.cells(rank, buffer))).then(|| {
            let first = self.of(rank, buffer, cell);
            first..first + cells as usize
        })
    }

    /// The places of both sides of an overlap.
    pub(super) fn sides(&self, overlap: &Overlap) -> (Range<usize>, Range<usize>) {
        let Overlap { rank, left, left_cell, right, right_cell, cells } = *overlap;
        let side = |buffer, cell| self.of(rank, buffer, cell)..self.of(rank, buffer, cell) + cells as usize;
        (side(left, left_cell), side(right, right_cell))
    }

    /// The cell behind a number.
    pub(super) fn cell(&self, plan: &Plan, place: usize) -> Cell {
        let at = self.base.partition_point(|&base| base as usize <= place) - 1;
        let (rank, buffer) = (at / self.buffers, at % self.buffers);
        let cell = place as u32 - self.base[at];
        let k = plan.header.cells;
        let (block, cell) = match plan.buffers[buffer].role {
            Role::Scratch => (None, cell),
            _ => (Some(cell / k), cell % k),
        };
        Cell { rank: RankId::new(rank), buffer: plan.buffers[buffer].name.clone(), block, cell }
    }
}

/// Where places lie in memory, under an alias form: a place stands for itself but where a `Send` cell overlaps a `Recv`
/// cell: then the `Recv` cell stands for both. So what is written always stands for itself.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// By (rank, buffer): the first of its stretches. Empty: every place stands for itself.
    first: Vec<u32>,
    buffers: usize,
    /// Of each buffer that overlaps, in order: what covers it.
    stretches: Vec<Stretch>,
}

/// Places from the end of the stretch before to `end`: each stands for the one `shift` further on (modulo 2^32).
#[derive(Debug, Clone, Copy)]
struct Stretch {
    end: u32,
    shift: u32,
}

impl Memory {
    pub(super) fn new(plan: &Plan, places: &Places, form: Form) -> Memory {
        if form == Form::Disjoint || plan.overlaps.is_empty() {
            return Memory::default();
        }
        let slots = places.base.len() - 1;
        let slot = |overlap: &Overlap| overlap.rank.index() * places.buffers + overlap.left.index();
        let mut overlaps: Vec<&Overlap> = plan.overlaps.iter().filter(|overlap| overlap.cells > 0).collect();
        overlaps.sort_unstable_by_key(|overlap| (slot(overlap), overlap.left_cell));
        let mut memory = Memory {
            first: Vec::with_capacity(slots + 1),
            buffers: places.buffers,
            stretches: Vec::with_capacity(2 * overlaps.len()),
        };
        let mut overlaps = overlaps.into_iter().peekable();
        for at in 0..slots {
            memory.first.push(memory.stretches.len() as u32);
            let mut next = places.base[at];
            while let Some(overlap) = overlaps.next_if(|overlap| slot(overlap) == at) {
                let left = places.base[at] + overlap.left_cell;
                let right = places.of(overlap.rank, overlap.right, overlap.right_cell) as u32;
                if next < left {
                    memory.stretches.push(Stretch { end: left, shift: 0 });
                }
                next = left + overlap.cells;
                memory.stretches.push(Stretch { end: next, shift: right.wrapping_sub(left) });
            }
            let end = places.base[at + 1];
            if next < end && memory.stretches.len() > memory.first[at] as usize {
                memory.stretches.push(Stretch { end, shift: 0 });
            }
        }
        memory.first.push(memory.stretches.len() as u32);
        memory
    }

    /// The memory of a place of a buffer, and how many places from there on lie in memory one after another.
    #[inline]
    pub(super) fn of(&self, rank: RankId, buffer: BufferId, place: usize) -> (usize, usize) {
        if self.first.is_empty() {
            return (place, usize::MAX);
        }
        let slot = rank.index() * self.buffers + buffer.index();
        let stretches = &self.stretches[self.first[slot] as usize..self.first[slot + 1] as usize];
        let at = match stretches.len() {
            0 => return (place, usize::MAX),
            1 => 0,
            _ => stretches.partition_point(|stretch| stretch.end as usize <= place),
        };
        let Stretch { end, shift } = stretches[at];
        ((place as u32).wrapping_add(shift) as usize, end as usize - place)
    }

    /// The memory of `width` places: ranges of places, in order.
    #[inline]
    pub(super) fn ranges(
        &self,
        rank: RankId,
        buffer: BufferId,
        place: usize,
        width: usize,
    ) -> impl Iterator<Item = Range<usize>> {
        let (mut place, mut left) = (place, width);
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let (start, len) = self.of(rank, buffer, place);
            let len = len.min(left);
            (place, left) = (place + len, left - len);
            Some(start..start + len)
        })
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.block {
            Some(block) => write!(f, "{}[{block}] cell {}", self.buffer, self.cell)?,
            None => write!(f, "{} cell {}", self.buffer, self.cell)?,
        }
        write!(f, " @ {}", self.rank.0)
    }
}
