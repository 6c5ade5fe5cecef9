//! What a collective promises, for one world shape: plain data that travels inside the plan.
//!
//! In: the compiler evaluates a collective's `ensures` once per shape. Out: read by `verify` (V4), by the reference
//! that checks real results, and by the compiler's own proof. Operand lists are interned: an allreduce over n ranks
//! is n clauses that share one list.

use serde::{Deserialize, Serialize};

use crate::ids::{BufferId, RankId};

/// What every rank must hold at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promise {
    /// Places and what they must hold; two clauses for one place must both hold.
    pub clauses: Vec<Clause>,
    /// The operand lists that clauses name.
    pub lists: Vec<Vec<BlockRef>>,
    /// No rank leaves before all have entered.
    pub synchronised: bool,
}

/// `buffer[block] @ rank` must hold what `list` says: at exit, each cell of the block equals the reduction over the
/// same cell of every operand **at entry** (one operand: its value).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clause {
    /// A `Recv` buffer, as the caller sees it at exit.
    pub place: BlockRef,
    /// Index into `Promise::lists`.
    pub list: u32,
}

/// One block of a buffer at a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlockRef {
    /// The buffer: `Send` in a list, `Recv` in a clause.
    pub buffer: BufferId,
    /// The rank.
    pub rank: RankId,
    /// The block.
    pub block: u32,
}

impl Promise {
    /// Whether a reduction of two or more operands is promised anywhere (a list that no clause names is not).
    pub fn reduces(&self) -> bool {
        self.clauses.iter().any(|c| self.lists[c.list as usize].len() > 1)
    }

    /// How many operands each promised reduction of two or more has, if that is one number: what avg divides by.
    pub fn reduced_operands(&self) -> Option<u32> {
        let mut sizes = self.clauses.iter().map(|c| self.lists[c.list as usize].len()).filter(|&len| len > 1);
        let first = sizes.next()?;
        sizes.all(|size| size == first).then_some(first as u32)
    }
}
