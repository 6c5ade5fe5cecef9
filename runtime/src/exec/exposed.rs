//! Which buffers peers reach into.
//!
//! In: a plan. Out: for every rank and buffer whether some other rank reads or writes it directly, and who reaches into
//! a rank at all. Such a buffer must lie in registered memory; a plan of messages alone has none.

use plan::ids::{BufferId, RankId};
use plan::plan::{Operand, Plan};

/// For every rank and buffer, whether peers reach into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exposed {
    buffers: usize,
    exposed: Vec<bool>,
    any: bool,
}

impl Exposed {
    /// Of a plan.
    pub fn of(plan: &Plan) -> Exposed {
        let buffers = plan.buffers.len();
        let mut exposed = vec![false; buffers * plan.header.ranks as usize];
        let mut any = false;
        for operand in &plan.operands {
            if let Operand::Peer { rank, buffer, .. } = *operand
                && let Some(exposed) = exposed.get_mut(rank.index() * buffers + buffer.index())
            {
                *exposed = true;
                any = true;
            }
        }
        Exposed { buffers, exposed, any }
    }

    /// Whether peers reach into a buffer of a rank.
    pub fn is(&self, rank: RankId, buffer: BufferId) -> bool {
        self.exposed[rank.index() * self.buffers + buffer.index()]
    }

    /// Whether there is any such buffer.
    pub fn any(&self) -> bool {
        self.any
    }
}

/// The ranks that reach into memory of `owner`, in their order.
pub fn accessors(plan: &Plan, owner: RankId) -> Vec<RankId> {
    let reaches = |operand: &Operand| matches!(*operand, Operand::Peer { rank, .. } if rank == owner);
    let mut found = Vec::new();
    for block in &plan.blocks {
        if found.last() != Some(&block.rank)
            && plan
                .steps(&block.body)
                .any(|(_, step)| plan.src(step).iter().chain(plan.dst(step)).any(reaches))
        {
            found.push(block.rank);
        }
    }
    found
}
