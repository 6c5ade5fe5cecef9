//! Which transfers are one message with several readers.
//!
//! In: all transfers, in the order of their readers. Out: [`Groups`]: values that one rank sends to several others in one
//! round, sorted into channels. A channel with several readers has one order for all of them, so all its messages go to the same
//! ranks, which take them in that order; what does not fit is left apart. The one hard idea: two operands are the same value if they
//! name the same cells at the same time, and they do so if they must be read in the same round, before the same
//! node overwrites them.

use plan::ids::RankId;
use rustc_hash::FxHashMap;

use super::keys::Keys;
use super::transfers::{NONE, Wanted};
use crate::counting::counting_sort;
use crate::flow::{Flow, NodeId};
use crate::trace::Place;

/// Messages with several readers.
#[derive(Default)]
pub(super) struct Groups {
    channels: Vec<Channel>,
    /// By transfer; empty if there are none.
    grouped: Vec<bool>,
}

/// Messages that the same ranks take in the same order.
struct Channel {
    readers: usize,
    /// Message by message, the transfers of each in the order of their readers in T.
    transfers: Vec<u32>,
}

impl Groups {
    /// Whether a transfer is of one of them.
    pub(super) fn has(&self, transfer: u32) -> bool {
        self.grouped.get(transfer as usize).is_some_and(|&grouped| grouped)
    }

    /// Of each channel how many read it, and the transfers of its messages, as many for each.
    pub(super) fn channels(&self) -> impl Iterator<Item = (usize, &[u32])> {
        self.channels.iter().map(|channel| (channel.readers, &channel.transfers[..]))
    }
}

/// What transfers of one message have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Value {
    place: Place,
    /// Another value than what is written there (out of place).
    entry: bool,
    maker: u32,
    width: u32,
    lane: u32,
    /// When it is taken, when it must be read, and before whom.
    round: u32,
    due: u32,
    guard: Option<NodeId>,
}

/// Finds them.
pub(super) fn find(flow: &Flow, keys: &Keys, list: &[Wanted]) -> Groups {
    let value_of = values(flow, keys, list);
    let valued = (0..list.len() as u32).filter(|&id| value_of[id as usize] != NONE);
    let sorted = counting_sort(valued, |id| value_of[id as usize]);
    let mut groups = Groups { channels: Vec::new(), grouped: vec![false; list.len()] };
    let mut numbers: FxHashMap<(u32, u32, Vec<u32>), usize> = FxHashMap::default();
    for members in sorted.chunk_by(|&a, &b| value_of[a as usize] == value_of[b as usize]) {
        let [first, _, ..] = members[..] else { continue };
        let readers = members.iter().map(|&id| list[id as usize].to.0).collect();
        let key = (list[first as usize].from.0, list[first as usize].lane, readers);
        let number = *numbers.entry(key).or_insert(groups.channels.len());
        if number == groups.channels.len() {
            groups.channels.push(Channel { readers: members.len(), transfers: Vec::new() });
        }
        let Channel { readers, transfers } = &mut groups.channels[number];
        // Every reader takes it after the one before: transfers are numbered in the order of T.
        let before = &transfers[transfers.len().saturating_sub(*readers)..];
        if before.iter().zip(members).all(|(before, here)| before < here) {
            members.iter().for_each(|&id| groups.grouped[id as usize] = true);
            transfers.extend_from_slice(members);
        }
    }
    groups
}

/// A number for the value of each transfer, in the order in which they are first taken; [`NONE`] for what carries no data. No rank
/// takes a value twice: the second time it has another number.
fn values(flow: &Flow, keys: &Keys, list: &[Wanted]) -> Vec<u32> {
    let mut numbers: FxHashMap<(Value, u32), u32> = FxHashMap::default();
    // How often a rank takes the same value.
    let mut taken: FxHashMap<(Value, RankId), u32> = FxHashMap::default();
    let number = |wanted: &Wanted| {
        if wanted.lane & 1 == 1 {
            return NONE;
        }
        let operand = &flow.operands[wanted.operand as usize];
        let reader = flow.node(wanted.reader);
        let value = Value {
            place: operand.place,
            entry: operand.entry(),
            maker: wanted.wish.maker,
            width: reader.width,
            lane: wanted.lane,
            round: reader.round,
            due: flow.node(keys.due(flow, wanted.operand, wanted.reader)).round,
            guard: flow.special(wanted.operand as usize).guard,
        };
        let times = taken.entry((value, wanted.to)).or_insert(0);
        let next = numbers.len() as u32;
        let number = *numbers.entry((value, *times)).or_insert(next);
        *times += 1;
        number
    };
    list.iter().map(number).collect()
}
