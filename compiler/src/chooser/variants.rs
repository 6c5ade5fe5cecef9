//! Other layouts of the same moves, one kind after another.
//!
//! In: the best plan so far and its options. Out: options to try next, none of them what the user fixed otherwise. A kind is a
//! function; what else a lowering can be asked for is one more in [`KINDS`].

use plan::plan::Plan;

use super::Wanted;
use crate::cost::topology::Topology;
use crate::options::{Cut, Direct, Multicast, Options, Reach, Tree};

/// A kind of change.
type Kind = fn(&Plan, &Options, &Wanted, &Topology) -> Vec<Options>;

/// All kinds, those that change most first.
pub(super) const KINDS: [Kind; 6] =
    [multicasts, channels_of_trees, cuts, direct_access, blocks, counted_slots];

/// The most blocks of a rank that are tried.
const MOST_BLOCKS: u32 = 32;

/// A value that one rank sends to several: a message to each, one that all of them read, or by way of each other.
fn multicasts(plan: &Plan, best: &Options, wanted: &Wanted, _: &Topology) -> Vec<Options> {
    if wanted.fixed.multicast.is_some() || wanted.fixed.unfused {
        return Vec::new();
    }
    let trees = [Tree::Binomial, Tree::Chain, Tree::Wide(2)];
    let levels = level_by_level(plan).filter(|tree| !trees.contains(tree));
    let trees = trees.into_iter().chain(levels);
    let all = [Multicast::Flat, Multicast::Channel].into_iter().chain(trees.map(Multicast::Tree));
    all.filter(|&multicast| multicast != best.multicast)
        .map(|multicast| Options { multicast, ..*best })
        .collect()
}

/// Who passes it on to several does so in one message. Tried with the best tree alone: what a tree gains hardly depends on it. Without
/// a tree but level by level there is another message for each part.
fn channels_of_trees(plan: &Plan, best: &Options, wanted: &Wanted, _: &Topology) -> Vec<Options> {
    if wanted.fixed.multicast.is_some() || wanted.fixed.unfused {
        return Vec::new();
    }
    let tree = match best.multicast {
        Multicast::Tree(tree) => Some(tree),
        Multicast::Flat | Multicast::Channel => level_by_level(plan),
        Multicast::ChannelTree(_) => None,
    };
    tree.map(|tree| Options { multicast: Multicast::ChannelTree(tree), ..*best }).into_iter().collect()
}

/// On a world of several levels: to one rank of each part at once, and from each of these to all of its part.
fn level_by_level(plan: &Plan) -> Option<Tree> {
    let sizes = &plan.header.shape;
    let widest = sizes.iter().copied().max().unwrap_or(0).saturating_sub(1);
    (sizes.iter().filter(|&&size| size > 1).count() > 1)
        .then(|| Tree::Wide(widest.clamp(1, u16::MAX.into()) as u16))
}

/// What comes together and goes on apart, or the other way round, stored in between, or in messages of its own.
fn cuts(_: &Plan, best: &Options, wanted: &Wanted, _: &Topology) -> Vec<Options> {
    if wanted.fixed.cut.is_some() || wanted.fixed.unfused {
        return Vec::new();
    }
    let all = [Cut::Whole, Cut::Parts].into_iter();
    all.filter(|&cut| cut != best.cut).map(|cut| Options { cut, ..*best }).collect()
}

/// Ranks read each other's memory, or write it: where both forms stay right, or out of place alone if calls are.
fn direct_access(plan: &Plan, best: &Options, wanted: &Wanted, _: &Topology) -> Vec<Options> {
    let ways = match wanted.fixed.direct {
        Some(Direct::Never) => return Vec::new(),
        Some(fixed) => vec![fixed],
        // Unfused is to be as plain as can be.
        None if wanted.fixed.unfused => return Vec::new(),
        None if !wanted.forms.same && plan.header.forms.same => {
            vec![Direct::WhereBothFormsAllow, Direct::OutOfPlace]
        }
        None => vec![Direct::WhereBothFormsAllow],
    };
    let both = ways.into_iter().flat_map(|direct| [(direct, Reach::Pull), (direct, Reach::Push)]);
    let known = (best.direct, best.reach);
    both.filter(|&way| way != known).map(|(direct, reach)| Options { direct, reach, ..*best }).collect()
}

/// Fewer blocks, each doing more one after another; more, if there was need of more.
fn blocks(plan: &Plan, best: &Options, wanted: &Wanted, topology: &Topology) -> Vec<Options> {
    if wanted.fixed.blocks.is_some() {
        return Vec::new();
    }
    let mut used = vec![0u32; plan.header.ranks as usize];
    plan.blocks.iter().for_each(|block| used[block.rank.index()] += 1);
    let used = used.into_iter().max().unwrap_or(0);
    let most = MOST_BLOCKS.min(topology.target().blocks_per_rank);
    let powers = (0..=MOST_BLOCKS.ilog2()).map(|bits| 1 << bits);
    powers
        .filter(
            |&blocks| {
                if blocks < best.blocks { blocks < used } else { used == best.blocks && blocks <= most }
            },
        )
        .filter(|&blocks| blocks != best.blocks)
        .map(|blocks| Options { blocks, ..*best })
        .collect()
}

/// Steps that count on fewer slots: what goes far ahead of its reader has to be kept then.
fn counted_slots(_: &Plan, best: &Options, wanted: &Wanted, topology: &Topology) -> Vec<Options> {
    if wanted.fixed.counted_slots.is_some() {
        return Vec::new();
    }
    // No more than there will be.
    let most = wanted.fixed.slots.unwrap_or(topology.slots);
    [1, 2]
        .into_iter()
        .filter(|&slots| slots <= most && slots != best.slots)
        .map(|slots| Options { slots, ..*best })
        .collect()
}
