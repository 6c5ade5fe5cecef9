//! Which of a rank's channels trade slots, and with which.
//!
//! In: a plan, the slots of its channels, a rank's part. Out: for each channel that it has an end of, the other one. All ranks
//! find the same: it follows from the plan and the slots alone.

use plan::ids::ChannelId;
use plan::verify::{VerifiedPlan, trades};
use rustc_hash::FxHashMap;

use super::program::Program;

/// The channels of one rank that trade slots.
pub(super) struct Trades {
    /// For each the other, and this rank's number of its end, among those it reads or among those it writes.
    others: FxHashMap<ChannelId, (ChannelId, u32)>,
}

impl Trades {
    /// Of a rank's part of a plan.
    pub(super) fn of(plan: &VerifiedPlan, slots: u32, program: &Program) -> Trades {
        let read = program.incoming.iter().map(|&(channel, _)| channel);
        let ends = (0..).zip(read).chain((0..).zip(program.outgoing.iter().copied()));
        let number: FxHashMap<ChannelId, u32> = ends.map(|(number, channel)| (channel, number)).collect();
        let both = trades(plan, slots).into_iter().flat_map(|[a, b]| [(a, b), (b, a)]);
        let others = both.filter_map(|(one, other)| Some((one, (other, *number.get(&other)?)))).collect();
        Trades { others }
    }

    /// The channel that this one trades slots with, and the number of this rank's end of that.
    pub(super) fn other(&self, channel: ChannelId) -> Option<(ChannelId, u32)> {
        self.others.get(&channel).copied()
    }
}
