//! What a compilation may be told: how the same moves are laid out in steps, blocks and channels.
//!
//! In: nothing, or random numbers. Out: [`Options`]: a list in which every two values that can stand together do, and
//! any at all. All tests that take plans of the compiler take them from here, so that a new option is tried by all of
//! them: it is one more column. The one hard idea: a layout is a row of numbers, one for each column; what is without
//! effect (where to cut without fusion, who reaches where nobody does) has no row of its own.

use compiler::options::{Cut, Direct, Multicast, Options, Reach, Tree};
use proptest::prelude::{Just, Strategy, prop_oneof};

use crate::pairs::{self, Pair};

const SLOTS: [u32; 8] = [8, 1, 2, 3, 4, 5, 6, 7];
const BLOCKS: [u32; 4] = [8, 1, 2, 3];
const OPERANDS: [u32; 4] = [64, 1, 2, 3];

/// Whether steps are fused, and where messages are cut.
const FUSION: [(bool, Cut); 3] = [(true, Cut::Whole), (true, Cut::Parts), (false, Cut::Whole)];
const UNFUSED: usize = 2;

const ACCESS: [(Direct, Reach); 5] = [
    (Direct::Never, Reach::Pull),
    (Direct::WhereBothFormsAllow, Reach::Pull),
    (Direct::WhereBothFormsAllow, Reach::Push),
    (Direct::OutOfPlace, Reach::Pull),
    (Direct::OutOfPlace, Reach::Push),
];

/// Who takes a multicast from whom.
pub const TREES: [Tree; 5] = [Tree::Binomial, Tree::Chain, Tree::Wide(1), Tree::Wide(2), Tree::Wide(3)];
const MULTICASTS: usize = 2 + 2 * TREES.len();

/// How many values each column has.
const SIZES: [usize; 6] = [SLOTS.len(), BLOCKS.len(), OPERANDS.len(), FUSION.len(), ACCESS.len(), MULTICASTS];
const OPERAND_COLUMN: usize = 2;
const FUSION_COLUMN: usize = 3;

/// How many rows [`every_pair`] has at most: as many as slots and multicasts make, and a tenth more.
pub const MOST_ROWS: usize = SLOTS.len() * MULTICASTS * 11 / 10;

/// A list in which every two values that can stand together do: always the same.
pub fn every_pair() -> Vec<Options> {
    pairs::covering(&SIZES, &without_effect).iter().map(|row| of_row(row)).collect()
}

/// Any, from numbers below a bound. Rows without effect are as likely as others, and stand for the same without.
pub fn any(below: &mut dyn FnMut(usize) -> usize) -> Options {
    of_row(&SIZES.map(below))
}

/// Any, as a strategy: the rarer values of what makes plans small and slow are rarer here, and it shrinks to the defaults.
pub fn strategy() -> impl Strategy<Value = Options> {
    let slots = prop_oneof![1 => Just(0usize), 3 => 1..5usize, 1 => 5..SLOTS.len()];
    let blocks = prop_oneof![2 => Just(0usize), 3 => 1..BLOCKS.len()];
    let operands = prop_oneof![3 => Just(0usize), 2 => 1..OPERANDS.len()];
    let fusion = prop_oneof![3 => Just(0usize), 3 => Just(1usize), 1 => Just(UNFUSED)];
    let access = prop_oneof![2 => Just(0usize), 3 => 1..ACCESS.len()];
    let row = (slots, blocks, operands, fusion, access, 0..MULTICASTS);
    row.prop_map(|(slots, blocks, operands, fusion, access, multicast)| {
        of_row(&[slots, blocks, operands, fusion, access, multicast])
    })
}

/// What a row stands for.
fn of_row(row: &[usize]) -> Options {
    let (fuse, cut) = FUSION[row[FUSION_COLUMN]];
    let (direct, reach) = ACCESS[row[4]];
    Options {
        slots: SLOTS[row[0]],
        blocks: BLOCKS[row[1]],
        operands: if fuse { OPERANDS[row[OPERAND_COLUMN]] } else { OPERANDS[0] },
        fuse,
        bytes: None,
        direct,
        reach,
        multicast: multicast(row[5]),
        cut,
    }
}

fn multicast(number: usize) -> Multicast {
    match number.checked_sub(2) {
        None if number == 0 => Multicast::Flat,
        None => Multicast::Channel,
        Some(tree) if tree < TREES.len() => Multicast::Tree(TREES[tree]),
        Some(tree) => Multicast::ChannelTree(TREES[tree - TREES.len()]),
    }
}

/// Operands are counted only where steps are fused.
fn without_effect((a, x, b, y): Pair) -> bool {
    (a, b) == (OPERAND_COLUMN, FUSION_COLUMN) && x != 0 && y == UNFUSED
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Cut, Direct, MOST_ROWS, Multicast, Options, Reach, SIZES, any, every_pair, multicast};

    /// What two tests of options may look at, spelled apart from the columns.
    type Look = (&'static str, fn(&Options) -> String);
    const LOOKS: [Look; 7] = [
        ("slots", |o| o.slots.to_string()),
        ("blocks", |o| o.blocks.to_string()),
        ("operands", |o| o.operands.to_string()),
        ("fuse", |o| o.fuse.to_string()),
        ("cut", |o| format!("{:?}", o.cut)),
        ("direct", |o| format!("{:?} {:?}", o.direct, o.reach)),
        ("multicast", |o| format!("{:?}", o.multicast)),
    ];

    fn seen(all: &[Options]) -> BTreeSet<(usize, String, usize, String)> {
        let pairs = (0..LOOKS.len()).flat_map(|a| (a + 1..LOOKS.len()).map(move |b| (a, b)));
        pairs.flat_map(|(a, b)| all.iter().map(move |o| (a, LOOKS[a].1(o), b, LOOKS[b].1(o)))).collect()
    }

    /// All combinations that have an effect, straight from the words of `Options`.
    fn everything() -> Vec<Options> {
        let mut all = Vec::new();
        let flat = Options::default();
        for slots in 1..=8 {
            for blocks in [1, 2, 3, 8] {
                for (fuse, cut, operands) in
                    [(false, Cut::Whole, vec![64]), (true, Cut::Whole, vec![1, 2, 3, 64])]
                        .into_iter()
                        .chain([(true, Cut::Parts, vec![1, 2, 3, 64])])
                {
                    for operands in operands {
                        for direct in [Direct::Never, Direct::WhereBothFormsAllow, Direct::OutOfPlace] {
                            for reach in [Reach::Pull, Reach::Push] {
                                if direct == Direct::Never && reach == Reach::Push {
                                    continue;
                                }
                                for number in 0..SIZES[5] {
                                    let multicast = multicast(number);
                                    all.push(Options {
                                        slots,
                                        blocks,
                                        operands,
                                        fuse,
                                        direct,
                                        reach,
                                        multicast,
                                        cut,
                                        ..flat
                                    });
                                }
                            }
                        }
                    }
                }
            }
        }
        all
    }

    #[test]
    fn every_pair_that_any_layout_has_is_in_the_list() {
        let list = every_pair();
        let (wanted, found) = (seen(&everything()), seen(&list));
        let missing: Vec<_> = wanted.difference(&found).collect();
        assert!(
            missing.is_empty(),
            "{} pairs are missing: {:?}",
            missing.len(),
            &missing[..missing.len().min(5)]
        );
        assert_eq!(wanted.len(), found.len(), "the list has pairs that no layout should have");
        assert!(list.len() <= MOST_ROWS, "{} rows", list.len());
        assert_eq!(list, every_pair());
        assert!(list.iter().all(|o| o.fuse || o.cut == Cut::Whole), "a cut without fusion is refused");
    }

    #[test]
    fn multicasts_are_all_that_there_are() {
        let all: BTreeSet<String> = (0..SIZES[5]).map(|number| format!("{:?}", multicast(number))).collect();
        assert_eq!(all.len(), SIZES[5]);
        let trees = |of: fn(&Multicast) -> bool| (0..SIZES[5]).map(multicast).filter(of).count();
        assert_eq!(trees(|m| matches!(m, Multicast::Tree(_))), super::TREES.len());
        assert_eq!(trees(|m| matches!(m, Multicast::ChannelTree(_))), super::TREES.len());
    }

    #[test]
    fn any_layout_comes_by() {
        let mut state = 0u64;
        let mut below = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % bound
        };
        let drawn: Vec<Options> = (0..4000).map(|_| any(&mut below)).collect();
        assert_eq!(seen(&drawn), seen(&everything()));
    }
}
