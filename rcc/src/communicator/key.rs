//! What plans are looked up by.
//!
//! In: a call, as all ranks make it. Out: a number: equal for calls that one plan serves. Sizes fall into classes, eight times as large from
//! one to the next; each is served by the plan that is selected for the size in its middle.

use plan::dtype::{Dtype, Factor, Op};
use plan::ids::RankId;
use plan::plan::Forms;
use runtime::small;

use super::open::of_size;
use crate::collective::Collective;
use crate::select::Ask;

/// What all ranks say alike of a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Call {
    pub(super) collective: Collective,
    /// Elements of a block.
    pub(super) elements: u64,
    /// Blocks of the larger side, as `convention` counts.
    pub(super) blocks: u32,
    pub(super) dtype: Dtype,
    pub(super) op: Op,
    /// The root, where there is one.
    pub(super) root: Option<u32>,
    /// Send and receive memory are one, as the collective allows.
    pub(super) in_place: bool,
    /// Peers may reach into all of it.
    pub(super) registered: bool,
}

/// The number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key(u64);

/// Classes of sizes. The last has all that is larger.
const CLASSES: u32 = 9;

/// The size that the plan of the last class is selected for.
const LARGEST: u64 = 64 << 20;

impl Call {
    /// Its size.
    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.elements.saturating_mul(u64::from(self.blocks)).saturating_mul(u64::from(self.dtype.size()))
    }

    /// The same for the path beside plans, if it is small enough for that: no buffer is larger than the larger side.
    #[inline]
    pub(super) fn small(&self) -> Option<small::Call> {
        if self.bytes() > small::MOST as u64 {
            return None;
        }
        let root = RankId(self.root.unwrap_or(0));
        let collective = match self.collective {
            Collective::Allgather => small::Collective::Allgather,
            Collective::Allreduce => small::Collective::Allreduce,
            Collective::Alltoall => small::Collective::Alltoall,
            Collective::Broadcast => small::Collective::Broadcast { root },
            Collective::Gather => small::Collective::Gather { root },
            Collective::Reduce => small::Collective::Reduce { root },
            Collective::Reducescatter => small::Collective::Reducescatter,
            Collective::Scatter => small::Collective::Scatter { root },
            // A barrier has no size, and goes there by itself.
            Collective::Alltonext | Collective::Sendrecv | Collective::Barrier => return None,
        };
        Some(small::Call { collective, elements: self.elements, dtype: self.dtype, op: self.op })
    }

    /// What its plan is looked up by.
    #[inline]
    pub(super) fn key(&self) -> Key {
        let parts = [
            (self.root.map_or(0, |root| u64::from(root) + 1), 33),
            (self.collective as u64, 4),
            (u64::from(class(self.bytes())), 4),
            (u64::from(self.dtype.size().trailing_zeros()), 2),
            (if self.collective.reduces() { kind(self.op) } else { 0 }, 2),
            (u64::from(self.in_place && self.registered), 1),
            (u64::from(self.registered), 1),
        ];
        Key(parts.into_iter().fold(0, |key, (part, bits)| key << bits | part))
    }

    /// The size that its plan is selected for.
    pub(super) fn selected_for(&self) -> u64 {
        middle(class(self.bytes()))
    }

    /// The elements of a block at that size; at least one.
    fn elements_selected_for(&self) -> u64 {
        let element = u64::from(self.blocks.max(1)) * u64::from(self.dtype.size());
        (self.selected_for() / element).max(1)
    }

    /// What is asked of selection: the same for all calls of one key.
    pub(super) fn ask(&self, ranks: u32) -> Ask {
        let both = |in_place: bool| Forms { disjoint: !in_place, same: in_place };
        let forms = match (self.collective, self.registered) {
            (
                Collective::Alltoall | Collective::Alltonext | Collective::Sendrecv | Collective::Barrier,
                _,
            ) => both(false),
            // Where ranks only exchange messages, one plan serves both.
            (_, false) => Forms { disjoint: true, same: true },
            (_, true) => both(self.in_place),
        };
        let op = match self.op {
            _ if !self.collective.reduces() => Op::Sum,
            Op::PremulSum(_) => Op::PremulSum(Factor::new(2.0)),
            Op::Avg => Op::Avg,
            Op::Sum | Op::Prod | Op::Min | Op::Max => Op::Sum,
        };
        Ask {
            collective: self.collective,
            ranks,
            root: self.root,
            bytes: self.selected_for(),
            elements: self.elements_selected_for(),
            dtype: of_size(self.dtype),
            op,
            forms,
            registered: self.registered,
        }
    }
}

/// The kind of an operator: what it asks of a plan.
fn kind(op: Op) -> u64 {
    match op {
        Op::Sum | Op::Prod | Op::Min | Op::Max => 0,
        Op::Avg => 1,
        Op::PremulSum(_) => 2,
    }
}

/// The class of a size: class k is `2^(3k+2)..2^(3k+5)`, the first and the last also what lies beyond.
#[inline]
fn class(bytes: u64) -> u32 {
    let log = (bytes | 4).ilog2();
    ((log + 1) / 3 - 1).min(CLASSES - 1)
}

/// What stands for a class: 8, 64, 512, 4 Ki, …, 16 Mi, 64 Mi.
fn middle(class: u32) -> u64 {
    (1 << (3 * class + 3)).min(LARGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(elements: u64) -> Call {
        Call {
            collective: Collective::Allreduce,
            elements,
            blocks: 1,
            dtype: Dtype::U8,
            op: Op::Sum,
            root: None,
            in_place: false,
            registered: false,
        }
    }

    #[test]
    fn classes_grow_with_sizes_and_hold_their_middle() {
        let mut last = 0;
        for bytes in (0..1 << 12).chain((12..64).flat_map(|e| [(1 << e) - 1, 1 << e, (1u64 << e) + 1])) {
            let class = class(bytes);
            assert!(class >= last && class < CLASSES, "{bytes}");
            last = class;
        }
        for k in 0..CLASSES {
            assert_eq!(class(middle(k)), k);
        }
        let sizes = [8, 512, 4 << 10, 32 << 10, 256 << 10, 2 << 20, 16 << 20, 64 << 20];
        assert!(sizes.iter().all(|&size| call(size).selected_for() == size));
        assert_eq!(call(u64::MAX).selected_for(), LARGEST);
        assert_eq!(call(0).elements_selected_for(), 8);
    }

    #[test]
    fn what_goes_without_a_plan_fits_the_path_beside_them() {
        for collective in Collective::ALL {
            for ranks in [1, 2, 7, 64] {
                for elements in (0..200).chain([511, 512, 513, 4095, 4096, 4097, 1 << 40, u64::MAX]) {
                    let blocks = collective.blocks(ranks);
                    let call = Call { collective, elements, blocks, dtype: Dtype::F64, ..call(0) };
                    let beside = small::Call {
                        collective: small::Collective::Allreduce,
                        elements: elements.saturating_mul(blocks.into()),
                        dtype: Dtype::F64,
                        op: Op::Sum,
                    };
                    let fits = call.small().map(|small| small.fits(ranks));
                    assert!(fits != Some(false), "{collective} {ranks} {elements}");
                    let none = !collective.has_call();
                    assert_eq!(
                        fits.is_some(),
                        !none && beside.fits(ranks),
                        "{collective} {ranks} {elements}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_differs_has_another_key() {
        let one = call(1000);
        let others = [
            Call { collective: Collective::Reduce, ..one },
            Call { elements: 100_000, ..one },
            Call { blocks: 4000, ..one },
            Call { dtype: Dtype::F64, ..one },
            Call { op: Op::Avg, ..one },
            Call { root: Some(0), ..one },
            Call { root: Some(1), ..one },
            Call { root: Some(u32::MAX), ..one },
            Call { registered: true, ..one },
            Call { registered: true, in_place: true, ..one },
        ];
        let mut keys: Vec<u64> = others.iter().chain([&one]).map(|call| call.key().0).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), others.len() + 1);
        // What one plan serves.
        assert_eq!(
            one.key(),
            Call { op: Op::Max, dtype: Dtype::I8, elements: 513, in_place: true, ..one }.key()
        );
        let gather = Call { collective: Collective::Allgather, ..one };
        assert_eq!(gather.key(), Call { op: Op::Avg, ..gather }.key());
    }
}
