//! The rotation itself: where it takes ranks and cells.
//!
//! In: found by `find`. Out: used by everything else here. The one hard idea: σ takes rank r to rank r + `step` (mod n)
//! and, in each buffer, block b to b + `blocks` and the cell at position p of a block to position p + `cells`, both
//! modulo their number. σ, applied `order` times, is the identity, and no rank comes back before: so ranks
//! 0..step are one of each orbit, and every place of the world is σˢ of exactly one place of theirs.

use plan::ids::RankId;

use crate::trace::Place;

/// A rotation of ranks, blocks and cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The number of ranks.
    pub ranks: u32,
    /// How far a rank moves; divides `ranks`. Ranks `0..step` stand for all.
    pub step: u32,
    /// How many times until all is where it was: `ranks / step`.
    pub order: u32,
    /// K, the cells of a block.
    pub cells: u32,
    /// What happens inside each buffer of the trace.
    pub buffers: Vec<Turn>,
    /// How far the positions of the caller's buffers move: what a piece of the data is called after the rotation.
    pub position: u32,
}

/// What happens inside a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// How many blocks it has.
    pub count: u32,
    /// How many cells each has.
    pub width: u32,
    /// How far a block moves, modulo `count`.
    pub blocks: u32,
    /// How far a cell moves within its block, modulo `width`.
    pub cells: u32,
}

/// Which cells a range of one move goes to: whether cell i of it becomes cell i, or it goes round within.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Within {
    /// Cell i stays cell i: the range moves as a whole.
    Nothing,
    /// Whole blocks: positions go round within each.
    Positions,
    /// A whole buffer: its blocks go round too.
    Blocks,
}

impl Action {
    /// Where σ, `times` times, takes a rank.
    pub fn rank(&self, rank: RankId, times: u32) -> RankId {
        let to = u64::from(rank.0) + u64::from(self.step) * u64::from(times % self.order);
        RankId((to % u64::from(self.ranks)) as u32)
    }

    /// The rank that stands for one, and how many times σ takes it there.
    pub fn home(&self, rank: RankId) -> (RankId, u32) {
        (RankId(rank.0 % self.step), rank.0 / self.step)
    }

    /// How many times to apply σ to undo it `times` times.
    pub fn back(&self, times: u32) -> u32 {
        (self.order - times % self.order) % self.order
    }

    /// Once `a` times, then `b` times.
    pub fn sum(&self, a: u32, b: u32) -> u32 {
        ((u64::from(a) + u64::from(b)) % u64::from(self.order)) as u32
    }

    /// Where σ, `times` times, takes a place.
    pub fn place(&self, place: Place, times: u32) -> Place {
        let rank = self.rank(place.rank, times);
        let turn = self.buffers[place.buffer.index()];
        Place { rank, cell: turn.cell(place.cell, times, Within::Nothing), ..place }
    }

    /// Where the first cell of a range goes.
    pub(crate) fn start(&self, place: Place, times: u32, within: Within) -> Place {
        let rank = self.rank(place.rank, times);
        let turn = self.buffers[place.buffer.index()];
        Place { rank, cell: turn.cell(place.cell, times, within), ..place }
    }

    /// The place of a standing rank that σ takes here, and how many times it does.
    pub fn home_of(&self, place: Place) -> (Place, u32) {
        let (_, times) = self.home(place.rank);
        (self.place(place, self.back(times)), times)
    }

    /// What a position in a block is called after σ, `times` times.
    pub(crate) fn position(&self, position: u32, times: u32) -> u32 {
        turned(position, self.position, times, self.cells)
    }
}

impl Turn {
    /// Where a cell goes.
    fn cell(self, cell: u32, times: u32, within: Within) -> u32 {
        if (self.blocks, self.cells) == (0, 0) || within == Within::Blocks {
            return cell;
        }
        let (block, position) = (cell / self.width, cell % self.width);
        let block = turned(block, self.blocks, times, self.count);
        let position = match within {
            Within::Positions => position,
            _ => turned(position, self.cells, times, self.width),
        };
        block * self.width + position
    }
}

/// `value`, moved `times` times by `by` in the circle of `size`.
#[inline]
pub(crate) fn turned(value: u32, by: u32, times: u32, size: u32) -> u32 {
    if by == 0 {
        return value;
    }
    ((u64::from(value) + u64::from(by) * u64::from(times)) % u64::from(size)) as u32
}
