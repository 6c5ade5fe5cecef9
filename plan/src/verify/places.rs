//! One number for every cell of every rank.
//!
//! In: a plan whose sizes V0 has checked. Out: `base(rank, buffer) + cell`, dense from 0; the owner of a number for
//! messages; under the form `same` the number of the memory that a cell lies on.

use std::ops::Range;

use crate::ids::{BufferId, RankId};
use crate::plan::{Plan, Role};

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

    /// For each place the one that stands for its memory under `same`: a `Send` cell that overlaps gives way to the
    /// `Recv` cell it lies on.
    pub(super) fn same(&self, plan: &Plan) -> Vec<u32> {
        let mut memory: Vec<u32> = (0..self.total() as u32).collect();
        for overlap in &plan.overlaps {
            let left = self.of(overlap.rank, overlap.left, overlap.left_cell);
            let right = self.of(overlap.rank, overlap.right, overlap.right_cell);
            for i in 0..overlap.cells as usize {
                memory[left + i] = (right + i) as u32;
            }
        }
        memory
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
