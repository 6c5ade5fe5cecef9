//! What plans are looked up by.
//!
//! In: a call, as all ranks make it. Out: a number: equal for calls that ask for the same ([`Ask::of`]), and so have one plan.

use plan::dtype::{Dtype, Op};
use plan::ids::RankId;
use runtime::small;

use crate::collective::Collective;
use crate::select::{Ask, StandardCall, class, size};

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

impl Call {
    /// Its size.
    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        size(self.elements, self.blocks, self.dtype)
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

    /// What is asked of selection: the same for all calls of one key.
    pub(super) fn ask(&self, ranks: u32) -> Ask {
        let Call { collective, elements, dtype, op, root, in_place, registered, .. } = *self;
        Ask::of(&StandardCall { collective, elements, dtype, op, root, in_place, registered }, ranks)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample;

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

    /// Any call, among so many ranks.
    fn any_call(ranks: u32) -> impl Strategy<Value = Call> {
        let collective =
            sample::select(Collective::ALL.to_vec()).prop_filter("it has calls", |c| c.has_call());
        let op = sample::select(["sum", "max", "avg", "premulsum:3", "premulsum:0.5"].to_vec());
        let exponent = (0u32..40, 0u64..1 << 10).prop_map(|(shift, low)| (1u64 << shift) + low);
        (collective, exponent, sample::select(Dtype::ALL.to_vec()), op, 0..ranks, any::<(bool, bool)>())
            .prop_map(move |(collective, elements, dtype, op, root, (in_place, registered))| Call {
                collective,
                elements,
                blocks: collective.blocks(ranks),
                dtype,
                op: op.parse().unwrap(),
                root: collective.is_rooted().then_some(root),
                in_place: in_place && collective.runs_in_place(),
                registered,
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

        #[test]
        fn calls_have_one_key_exactly_if_they_ask_for_the_same(
            (ranks, one, other) in (1u32..65).prop_flat_map(|ranks| (Just(ranks), any_call(ranks), any_call(ranks))),
            alike in any::<bool>(),
        ) {
            // Two at random have hardly ever anything in common.
            let other = if alike { Call { collective: one.collective, blocks: one.blocks, root: one.root, ..other } } else { other };
            let other = if one.collective.runs_in_place() { other } else { Call { in_place: false, ..other } };
            let (asks, keys) = ((one.ask(ranks), other.ask(ranks)), (one.key(), other.key()));
            prop_assert_eq!(asks.0 == asks.1, keys.0 == keys.1, "{:?} {:?}", one, other);
            prop_assert!(asks.0.asked_by().contains(&one.bytes()));
        }
    }
}
