//! What is asked of selection for a call.
//!
//! In: a call of a standard collective, as all ranks make it. Out: an [`Ask`]. Programs, `rcc explain` and `rcc tune` make it here, so that
//! one says what the other gets. The one hard idea: sizes fall into classes, eight times as large from one to the next, and all calls of a class
//! ask for the size in its middle; so a class has one plan, and one row of a tuning file.

use std::ops::RangeInclusive;

use plan::dtype::{Dtype, Factor, Op};
use plan::plan::Forms;
use runtime::small;

use crate::collective::Collective;

/// A call of a standard collective: the same at all ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StandardCall {
    /// Of what.
    pub collective: Collective,
    /// Elements of a block: of the smaller of send and receive buffer.
    pub elements: u64,
    /// Their type.
    pub dtype: Dtype,
    /// What combines, where anything does.
    pub op: Op,
    /// The root, where the collective has one.
    pub root: Option<u32>,
    /// Send and receive memory overlap, as the collective allows.
    pub in_place: bool,
    /// All buffers are from [`crate::Communicator::alloc`].
    pub registered: bool,
}

/// A call for which a plan is wanted, as selection is asked for it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Ask {
    /// Of what.
    pub collective: Collective,
    /// Among how many ranks.
    pub ranks: u32,
    /// Its root, where it has one.
    pub root: Option<u32>,
    /// Its size, as `convention` counts.
    pub bytes: u64,
    /// Elements of a block.
    pub elements: u64,
    /// Their type, or one of the same size.
    pub dtype: Dtype,
    /// The operator, or one of the same kind.
    pub op: Op,
    /// The forms that it must serve.
    pub forms: Forms,
    /// Peers may reach into its buffers.
    pub registered: bool,
}

/// Classes of sizes. The last has all that is larger.
pub(crate) const CLASSES: u32 = 9;

/// The class whose lower part goes without a plan.
const LEAST_PLANNED: u32 = 3;

/// The size that the last class is asked for.
const LARGEST: u64 = 64 << 20;

impl StandardCall {
    /// Out of place, of plain memory, a sum, from or to rank 0.
    pub fn new(collective: Collective, elements: u64, dtype: Dtype) -> StandardCall {
        let root = collective.is_rooted().then_some(0);
        StandardCall { collective, elements, dtype, op: Op::Sum, root, in_place: false, registered: false }
    }

    /// The same, of so many bytes among so many ranks: whole elements of every block, and at least one.
    pub fn of_bytes(collective: Collective, ranks: u32, bytes: u64, dtype: Dtype) -> StandardCall {
        StandardCall::new(collective, collective.elements(ranks, bytes, dtype), dtype)
    }

    /// Its size.
    pub fn bytes(&self, ranks: u32) -> u64 {
        size(self.elements, self.collective.blocks(ranks), self.dtype)
    }

    /// Whether a program's call goes without a plan (`runtime::small`); a barrier always does.
    pub fn is_small(&self, ranks: u32) -> bool {
        (self.collective.has_call() && self.bytes(ranks) <= small::MOST as u64)
            || self.collective == Collective::Barrier
    }
}

impl Ask {
    /// What a program's call asks for: the size in the middle of its class, and of types and operators the one that stands for its kind. Calls
    /// that one plan serves ask for the same.
    pub fn of(call: &StandardCall, ranks: u32) -> Ask {
        let StandardCall { collective, dtype, op, root, in_place, registered, .. } = *call;
        let one = |in_place: bool| Forms { disjoint: !in_place, same: in_place };
        let forms = match (collective.runs_in_place(), registered) {
            (false, _) => one(false),
            // Where ranks only exchange messages, one plan serves both.
            (true, false) => Forms { disjoint: true, same: true },
            (true, true) => one(in_place),
        };
        let op = match op {
            _ if !collective.reduces() => Op::Sum,
            Op::PremulSum(_) => Op::PremulSum(Factor::new(2.0)),
            Op::Avg => Op::Avg,
            Op::Sum | Op::Prod | Op::Min | Op::Max => Op::Sum,
        };
        let bytes = middle(class(call.bytes(ranks)));
        let elements = collective.elements(ranks, bytes, dtype);
        let dtype = of_size(dtype);
        Ask { collective, ranks, root, bytes, elements, dtype, op, forms, registered }
    }

    /// For a call of exactly so many bytes, in all of these forms: what measures single calls (`rcc run`, `rcc bench`) asks for.
    pub fn exactly(call: &StandardCall, ranks: u32, bytes: u64, forms: Forms) -> Ask {
        let StandardCall { collective, elements, dtype, op, root, registered, .. } = *call;
        Ask { collective, ranks, root, bytes, elements, dtype, op, forms, registered }
    }

    /// The sizes of all calls that ask for this one's size.
    pub fn asked_by(&self) -> RangeInclusive<u64> {
        let class = class(self.bytes);
        let most = if class + 1 == CLASSES { u64::MAX } else { (1 << (3 * class + 5)) - 1 };
        let least = if class == 0 { 0 } else { 1 << (3 * class + 2) };
        least..=most
    }

    /// Those of them that have a plan: of collectives with typed calls all that are larger than [`small::MOST`].
    pub fn planned_for(&self) -> RangeInclusive<u64> {
        let sizes = self.asked_by();
        let least = if self.collective.has_call() { small::MOST as u64 + 1 } else { 0 };
        *sizes.start().max(&least)..=*sizes.end()
    }
}

/// The bytes of a call with so many blocks; as many as there can be, where they are no number.
#[inline]
pub(crate) fn size(elements: u64, blocks: u32, dtype: Dtype) -> u64 {
    elements.saturating_mul(u64::from(blocks)).saturating_mul(u64::from(dtype.size()))
}

/// The class of a size: class k is `2^(3k+2)..2^(3k+5)`, the first and the last also what lies beyond.
#[inline]
pub(crate) fn class(bytes: u64) -> u32 {
    let log = (bytes | 4).ilog2();
    ((log + 1) / 3 - 1).min(CLASSES - 1)
}

/// What stands for a class: 8, 64, 512, 8 Ki, 32 Ki, …, 16 Mi, 64 Mi. Of the fourth only what is larger than 4 KiB has a plan: so it is the
/// middle of that.
fn middle(class: u32) -> u64 {
    let whole = 1 << (3 * class + 3);
    if class == LEAST_PLANNED { 2 * whole } else { whole.min(LARGEST) }
}

/// What stands for all types of a size.
fn of_size(dtype: Dtype) -> Dtype {
    match dtype.size() {
        1 => Dtype::U8,
        2 => Dtype::Bf16,
        4 => Dtype::F32,
        _ => Dtype::F64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_grow_with_sizes_and_hold_their_middle() {
        let mut last = 0;
        for bytes in (0..1 << 12).chain((12..64).flat_map(|e| [(1 << e) - 1, 1 << e, (1u64 << e) + 1])) {
            let class = class(bytes);
            assert!(class >= last && class < CLASSES, "{bytes}");
            last = class;
            let call = StandardCall::new(Collective::Allreduce, bytes, Dtype::U8);
            assert!(Ask::of(&call, 2).asked_by().contains(&bytes), "{bytes}");
        }
        for k in 0..CLASSES {
            assert_eq!(class(middle(k)), k);
        }
        let asked = |elements| Ask::of(&StandardCall::new(Collective::Allreduce, elements, Dtype::U8), 2);
        let sizes = [8, 512, 8 << 10, 32 << 10, 256 << 10, 2 << 20, 16 << 20, 64 << 20];
        assert!(sizes.iter().all(|&size| asked(size).bytes == size));
        assert_eq!(asked(u64::MAX).bytes, LARGEST);
        assert_eq!(asked(0).elements, 8);
        assert_eq!(asked(0).asked_by(), 0..=31);
        assert_eq!(asked(1 << 30).asked_by(), 1 << 26..=u64::MAX);
        assert_eq!(asked(32 << 10).asked_by(), 16 << 10..=(128 << 10) - 1);
    }

    #[test]
    fn sizes_that_have_a_plan_are_told() {
        let of =
            |collective, bytes| Ask::of(&StandardCall::new(collective, bytes, Dtype::U8), 2).planned_for();
        assert_eq!(of(Collective::Allreduce, 5000), 4097..=(16 << 10) - 1);
        assert_eq!(of(Collective::Allreduce, 20_000), 16 << 10..=(128 << 10) - 1);
        assert_eq!(of(Collective::Sendrecv, 5000), 2048..=(16 << 10) - 1);
    }

    #[test]
    fn what_goes_without_a_plan_is_told() {
        let is = |collective, bytes| StandardCall::of_bytes(collective, 4, bytes, Dtype::F32).is_small(4);
        for (bytes, small) in [(0, true), (4096, true), (4099, true), (4100, false)] {
            assert_eq!(is(Collective::Allreduce, bytes), small, "{bytes}");
        }
        // Four blocks: whole elements of each.
        assert!(is(Collective::Alltoall, 4111) && !is(Collective::Alltoall, 4112));
        assert!(is(Collective::Barrier, 1 << 20) && !is(Collective::Sendrecv, 8));
    }
}
