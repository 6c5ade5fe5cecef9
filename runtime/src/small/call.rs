//! A small call: what it is about, how many bytes it has, how it is told from others.
//!
//! In: a collective with its root, a count, a type, an operator. Out: lengths; the words that say all of it on the board; the tag
//! of a call with its number. The one hard idea: all of it but the factor of premulsum fits a word, so a rank writes down what
//! it calls in two stores, for each call anew, and reports show it without a record made before.

use plan::dtype::{Dtype, Factor, Op};
use plan::ids::RankId;

use super::protocol::Flow;
use crate::call::Record;

/// The most bytes that any buffer of a small call has.
pub const MOST: usize = 4096;

/// What a call does; the standard collectives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Collective {
    /// Every rank ends with the reduction of all ranks' data.
    Allreduce,
    /// Every rank ends with every rank's input, in rank order.
    Allgather,
    /// Rank r ends with the reduction of all ranks' block r.
    Reducescatter,
    /// Rank r ends with block r of every rank, in rank order.
    Alltoall,
    /// Every rank ends with the root's data.
    Broadcast {
        /// Whose.
        root: RankId,
    },
    /// The root ends with the reduction of all ranks' inputs.
    Reduce {
        /// Who.
        root: RankId,
    },
    /// The root ends with every rank's input, in rank order.
    Gather {
        /// Who.
        root: RankId,
    },
    /// Rank r ends with block r of the root.
    Scatter {
        /// Whose.
        root: RankId,
    },
    /// No rank leaves before all have entered.
    Barrier,
}

/// A small call, the same on all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// What it does.
    pub collective: Collective,
    /// Elements of a block, as for plans: a buffer has one block, or one for each rank.
    pub elements: u64,
    /// Their type.
    pub dtype: Dtype,
    /// The operator, where something is reduced.
    pub op: Op,
}

/// How many blocks a buffer has, at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocks {
    One,
    Each,
}

/// Marks a word as that of a small call: numbers of records are far below.
const MARK: u64 = 1 << 63;
const IN_PLACE: u64 = 1 << 56;
/// Of types, which have four bits.
const UNKNOWN: u64 = 15;
const KINDS: [&str; 9] = [
    "allreduce",
    "allgather",
    "reducescatter",
    "alltoall",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "barrier",
];

impl Call {
    /// A barrier.
    pub const BARRIER: Call =
        Call { collective: Collective::Barrier, elements: 0, dtype: Dtype::U8, op: Op::Sum };

    /// Whether no buffer of it is larger than [`MOST`] among so many ranks: then it is a small call.
    pub fn fits(&self, ranks: u32) -> bool {
        self.largest(ranks) <= MOST as u64
    }

    /// Bytes of the larger one of its two buffers.
    pub fn largest(&self, ranks: u32) -> u64 {
        let (input, output) = self.collective.blocks();
        let blocks = if input == Blocks::Each || output == Blocks::Each { ranks } else { 1 };
        self.elements.saturating_mul(self.dtype.size().into()).saturating_mul(blocks.into())
    }

    /// Bytes of input and output at a rank; 0 where it has none. Only of a call that fits.
    pub fn bytes(&self, rank: u32, ranks: u32) -> (usize, usize) {
        let (input, output) = due(self, rank, ranks);
        (input.unwrap_or(0), output.unwrap_or(0))
    }

    /// Bytes of a block. Only of one that fits.
    #[inline]
    pub(super) fn block(&self) -> usize {
        self.elements as usize * self.dtype.size() as usize
    }

    /// What goes into the tag: without the operator where nothing is reduced.
    fn normal(&self) -> Call {
        let op = if self.collective.reduces() { self.op } else { Op::Sum };
        if self.collective == Collective::Barrier { Call::BARRIER } else { Call { op, ..*self } }
    }

    /// All that it is, in two words; only of one that fits.
    pub(crate) fn words(&self) -> (u64, u64) {
        let Call { collective, elements, dtype, op } = self.normal();
        let dtype = Dtype::ALL.iter().position(|&one| one == dtype).map_or(UNKNOWN, |at| at as u64);
        let operator = match op {
            Op::Sum => 0,
            Op::Prod => 1,
            Op::Min => 2,
            Op::Max => 3,
            Op::Avg => 4,
            Op::PremulSum(_) => 5,
        };
        let root = collective.root().map_or(0, |root| u64::from(root.0));
        let word = root | elements << 32 | dtype << 45 | collective.kind() << 49 | operator << 53 | MARK;
        (word, op.factor().map_or(0, |factor| factor.value().to_bits()))
    }

    /// What two words say; nothing if no small call wrote them.
    fn of_words((word, factor): (u64, u64)) -> Option<Call> {
        let bits = |from: u32, count: u32| word >> from & ((1 << count) - 1);
        if !is_small(word) {
            return None;
        }
        let root = RankId(word as u32);
        let op = match bits(53, 3) {
            0 => Op::Sum,
            1 => Op::Prod,
            2 => Op::Min,
            3 => Op::Max,
            4 => Op::Avg,
            5 => Op::PremulSum(Factor::new(f64::from_bits(factor))),
            _ => return None,
        };
        Some(Call {
            collective: Collective::of_kind(bits(49, 4), root)?,
            elements: bits(32, 13),
            dtype: *Dtype::ALL.get(bits(45, 4) as usize)?,
            op,
        })
    }
}

impl Collective {
    /// The rank that has another part than all others.
    pub fn root(self) -> Option<RankId> {
        match self {
            Collective::Broadcast { root }
            | Collective::Reduce { root }
            | Collective::Gather { root }
            | Collective::Scatter { root } => Some(root),
            _ => None,
        }
    }

    /// Its name, as in the standard library.
    pub fn name(self) -> &'static str {
        KINDS[self.kind() as usize]
    }

    /// Whether it combines what ranks give.
    pub fn reduces(self) -> bool {
        matches!(self, Collective::Allreduce | Collective::Reducescatter | Collective::Reduce { .. })
    }

    /// Input and output; without a look at who has them.
    pub(super) fn blocks(self) -> (Blocks, Blocks) {
        match self {
            Collective::Allreduce | Collective::Broadcast { .. } | Collective::Reduce { .. } => {
                (Blocks::One, Blocks::One)
            }
            Collective::Allgather | Collective::Gather { .. } => (Blocks::One, Blocks::Each),
            Collective::Reducescatter | Collective::Scatter { .. } => (Blocks::Each, Blocks::One),
            Collective::Alltoall => (Blocks::Each, Blocks::Each),
            Collective::Barrier => (Blocks::One, Blocks::One),
        }
    }

    /// Who writes to whom.
    pub(super) fn flow(self) -> Flow {
        match self {
            Collective::Broadcast { root } | Collective::Scatter { root } => Flow::From(root.0),
            Collective::Reduce { root } | Collective::Gather { root } => Flow::To(root.0),
            _ => Flow::All,
        }
    }

    fn kind(self) -> u64 {
        match self {
            Collective::Allreduce => 0,
            Collective::Allgather => 1,
            Collective::Reducescatter => 2,
            Collective::Alltoall => 3,
            Collective::Broadcast { .. } => 4,
            Collective::Reduce { .. } => 5,
            Collective::Gather { .. } => 6,
            Collective::Scatter { .. } => 7,
            Collective::Barrier => 8,
        }
    }

    fn of_kind(kind: u64, root: RankId) -> Option<Collective> {
        Some(match kind {
            0 => Collective::Allreduce,
            1 => Collective::Allgather,
            2 => Collective::Reducescatter,
            3 => Collective::Alltoall,
            4 => Collective::Broadcast { root },
            5 => Collective::Reduce { root },
            6 => Collective::Gather { root },
            7 => Collective::Scatter { root },
            8 => Collective::Barrier,
            _ => return None,
        })
    }
}

/// The bytes of input and output of a rank; nothing where they are ignored.
#[inline]
pub(super) fn due(call: &Call, rank: u32, ranks: u32) -> (Option<usize>, Option<usize>) {
    let block = call.block();
    let bytes = |blocks| if blocks == Blocks::One { block } else { block * ranks as usize };
    let (input, output) = call.collective.blocks();
    let (input, output) = (Some(bytes(input)), Some(bytes(output)));
    match call.collective {
        Collective::Broadcast { root } | Collective::Scatter { root } if root.0 != rank => (None, output),
        Collective::Reduce { root } | Collective::Gather { root } if root.0 != rank => (input, None),
        _ => (input, output),
    }
}

/// The words as they stand on the board: with the form, which each rank may choose for itself.
pub(crate) fn with_form((word, factor): (u64, u64), in_place: bool) -> (u64, u64) {
    (if in_place { word | IN_PLACE } else { word }, factor)
}

/// What the words on the board say of a call with this number.
pub(crate) fn record(words: (u64, u64), number: u64) -> Option<Record> {
    let Call { collective, elements, dtype, op } = Call::of_words(words)?;
    let from = collective.root().map_or(String::new(), |root| format!(" with root {}", root.0));
    let algorithm = format!("small {}{from}", collective.name());
    let in_place = words.0 & IN_PLACE != 0;
    Some(Record {
        call: number,
        algorithm,
        plan: String::new(),
        elements,
        dtype,
        op,
        operator: None,
        in_place,
    })
}

/// Whether a word on the board is that of a small call.
pub(crate) fn is_small(word: u64) -> bool {
    word & MARK != 0
}

/// What all tags of calls like this one begin with.
pub(super) fn seed((word, factor): (u64, u64)) -> u64 {
    mix(word ^ mix(factor))
}

/// The tag of a call that comes after one with the tag `last`: never 0, which is what boxes hold at the start. What comes before is in
/// it, so ranks that once differed without noticing (each was the root of its own call) find out when they next exchange something.
#[inline]
pub(super) fn tag(seed: u64, number: u64, last: u64) -> u64 {
    mix(seed ^ last ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).max(1)
}

/// A bijection of 64 bits (splitmix64), after which every bit depends on every bit: two calls have one tag with a chance of 2^-64 (as
/// `plan::signature`).
#[inline]
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn all() -> impl Iterator<Item = Call> {
        let root = RankId(u32::MAX);
        let of_kind = move |kind| Collective::of_kind(kind, root).unwrap();
        (0..9).map(of_kind).flat_map(|collective| {
            Dtype::ALL.into_iter().flat_map(move |dtype| {
                Op::ALL.into_iter().flat_map(move |op| {
                    [0, 1, 4095, 4096].map(|elements| Call { collective, elements, dtype, op })
                })
            })
        })
    }

    #[test]
    fn words_say_what_a_call_is_and_tags_tell_calls_apart() {
        let mut tags = BTreeSet::new();
        let mut different = BTreeSet::new();
        for call in all() {
            let words = call.words();
            assert_eq!(Call::of_words(words), Some(call.normal()));
            for form in [false, true] {
                let record = record(with_form(words, form), 7).unwrap();
                assert_eq!(
                    (record.call, record.elements, record.in_place),
                    (7, call.normal().elements, form)
                );
            }
            if different.insert(words) {
                for number in [1, 2, u64::from(u32::MAX), 1 << 32] {
                    for last in [0, 1] {
                        assert!(tags.insert(tag(seed(words), number, last)), "{call:?}");
                    }
                }
            }
        }
        let other = Call { op: Op::PremulSum(Factor::new(3.0)), ..all().next().unwrap() };
        assert!(tags.insert(tag(seed(other.words()), 1, 0)));
        assert_eq!((Call::of_words((12, 0)), Call::of_words((u64::MAX, 0))), (None, None));
    }

    #[test]
    fn what_fits_has_no_larger_buffer() {
        let call = |collective, elements| Call { collective, elements, dtype: Dtype::F32, op: Op::Sum };
        assert!(call(Collective::Allreduce, 1024).fits(64) && !call(Collective::Allreduce, 1025).fits(1));
        assert!(call(Collective::Allgather, 16).fits(64) && !call(Collective::Allgather, 17).fits(64));
        assert!(!call(Collective::Alltoall, u64::MAX).fits(2) && Call::BARRIER.fits(u32::MAX));
    }
}
