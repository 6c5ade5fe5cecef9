//! Which steps of a rank come before which, by program order and waits alone.
//!
//! In: a plan that V0 to V2 have passed, and an order of its steps. Out: [`Clocks::before`] in constant time. For a
//! step, its clock says of every block of the rank up to which step it has certainly finished. Clocks change only at
//! steps that wait, so a row is stored for each of those and shared by the steps that follow in the block: waits ×
//! blocks of the rank in all, and nothing for ranks of one block.
//!
//! Messages count for nothing here, not even those between blocks of one rank (plan.md §7). A wait for a step of an
//! earlier section means its last run: a section begins, in each block, when the one before has ended.

use super::deadlock::Order;
use super::links::Links;
use crate::ids::{BlockId, RankId, StepId};
use crate::plan::Plan;

/// The clocks of all steps.
#[derive(Debug)]
pub(super) struct Clocks<'a> {
    block_of: &'a [BlockId],
    rank_of: Vec<RankId>,
    position_of: Vec<u32>,
    /// Where the row of each step starts in `rows`. Empty if the plan has no waits.
    row_of: Vec<u32>,
    /// A row has, for each block of the rank, one past the last step that has finished.
    rows: Vec<u32>,
}

impl Clocks<'_> {
    pub(super) fn new<'a>(plan: &Plan, links: &'a Links, order: &Order) -> Clocks<'a> {
        let mut clocks = Clocks {
            block_of: &links.block_of,
            rank_of: plan.blocks.iter().map(|block| block.rank).collect(),
            position_of: plan.blocks.iter().map(|block| block.position).collect(),
            row_of: Vec::new(),
            rows: Vec::new(),
        };
        if plan.waits.is_empty() {
            return clocks;
        }
        clocks.row_of = vec![0; plan.steps.len()];
        let mut blocks_of = vec![0usize; plan.header.ranks as usize];
        for block in &plan.blocks {
            blocks_of[block.rank.index()] += 1;
        }
        // All blocks begin with a row of zeros: nothing has finished.
        clocks.rows = vec![0; blocks_of.iter().copied().max().unwrap_or(0)];
        let mut current = vec![0u32; plan.blocks.len()];
        for &id in &order.0 {
            let block = clocks.block_of[id.index()];
            let waits = plan.waits(&plan.steps[id.index()]);
            if !waits.is_empty() {
                let row = current[block.index()] as usize;
                let len = blocks_of[clocks.rank_of[block.index()].index()];
                let new = clocks.rows.len();
                clocks.rows.extend_from_within(row..row + len);
                for &target in waits {
                    let theirs = clocks.row_of[target.index()] as usize;
                    for i in 0..len {
                        clocks.rows[new + i] = clocks.rows[new + i].max(clocks.rows[theirs + i]);
                    }
                    let at = clocks.position_of[clocks.block_of[target.index()].index()] as usize;
                    clocks.rows[new + at] = clocks.rows[new + at].max(target.0 + 1);
                }
                current[block.index()] = new as u32;
            }
            clocks.row_of[id.index()] = current[block.index()];
        }
        clocks
    }

    /// The rank of a step.
    pub(super) fn rank(&self, step: StepId) -> RankId {
        self.rank_of[self.block_of[step.index()].index()]
    }

    /// The block of a step.
    pub(super) fn block(&self, step: StepId) -> BlockId {
        self.block_of[step.index()]
    }

    /// Whether `first` has finished before `second` starts, in every execution; both are steps of one rank.
    pub(super) fn before(&self, first: StepId, second: StepId) -> bool {
        let block = self.block(first);
        if block == self.block(second) {
            return first < second;
        }
        let Some(&row) = self.row_of.get(second.index()) else { return false };
        self.rows[row as usize + self.position_of[block.index()] as usize] > first.0
    }
}
