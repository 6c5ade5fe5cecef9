//! Which transfers are one message with several readers.
//!
//! In: all transfers, in the order of their readers. Out: [`Groups`]: values that one rank sends to several others in one
//! round, sorted into channels. A channel with several readers has one order for all of them, so all its messages go to the same
//! ranks, which take them in that order; what does not fit is left apart. The one hard idea: two operands are the same value if they
//! name the same cells at the same time, and they do so if they must be read in the same round, before the same
//! node overwrites them.

use rustc_hash::FxHashMap;

use super::keys::Keys;
use super::transfers::{Transfer, Wish};
use crate::flow::{Flow, NodeId};
use crate::trace::Place;

/// Messages with several readers.
#[derive(Default)]
pub(super) struct Groups {
    /// By channel, its messages in order; by message, its transfers in the order of their readers in T.
    channels: Vec<Vec<Vec<u32>>>,
    /// By transfer; empty if there are none.
    grouped: Vec<bool>,
}

impl Groups {
    /// Whether a transfer is of one of them.
    pub(super) fn has(&self, transfer: u32) -> bool {
        self.grouped.get(transfer as usize).is_some_and(|&grouped| grouped)
    }

    /// The messages of each channel.
    pub(super) fn channels(&self) -> impl Iterator<Item = &[Vec<u32>]> {
        self.channels.iter().map(Vec::as_slice)
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
pub(super) fn find(flow: &Flow, keys: &Keys, list: &[Transfer], wishes: &[Wish]) -> Groups {
    let messages = messages(flow, keys, list, wishes);
    let mut groups = Groups { channels: Vec::new(), grouped: vec![false; list.len()] };
    let mut numbers: FxHashMap<(u32, u32, Vec<u32>), usize> = FxHashMap::default();
    for members in messages {
        let [first, _, ..] = members[..] else { continue };
        let readers = members.iter().map(|&id| wishes[id as usize].to).collect();
        let key = (list[first as usize].from.0, wishes[first as usize].lane, readers);
        let number = *numbers.entry(key).or_insert(groups.channels.len());
        if number == groups.channels.len() {
            groups.channels.push(Vec::new());
        }
        let channel = &mut groups.channels[number];
        // Every reader takes it after the one before: transfers are numbered in the order of T.
        let follows = |before: &Vec<u32>| before.iter().zip(&members).all(|(before, here)| before < here);
        if channel.last().is_none_or(follows) {
            members.iter().for_each(|&id| groups.grouped[id as usize] = true);
            channel.push(members);
        }
    }
    groups
}

/// The transfers of each value, sorted by the first; of each rank no more than one.
fn messages(flow: &Flow, keys: &Keys, list: &[Transfer], wishes: &[Wish]) -> Vec<Vec<u32>> {
    let mut messages: Vec<Vec<u32>> = Vec::new();
    let mut numbers: FxHashMap<(Value, u32), usize> = FxHashMap::default();
    // How often a rank takes the same value.
    let mut taken: FxHashMap<(Value, u32), u32> = FxHashMap::default();
    for (id, (transfer, wish)) in (0..).zip(list.iter().zip(wishes)) {
        if wish.lane & 1 == 1 {
            // Without data nothing is saved.
            continue;
        }
        let operand = &flow.operands[transfer.operand as usize];
        let reader = flow.node(transfer.reader);
        let value = Value {
            place: operand.place,
            entry: operand.entry,
            maker: wish.maker,
            width: reader.width,
            lane: wish.lane,
            round: reader.round,
            due: flow.node(keys.due(flow, transfer.operand, transfer.reader)).round,
            guard: flow.special(transfer.operand as usize).guard,
        };
        let times = taken.entry((value, wish.to)).or_insert(0);
        let number = *numbers.entry((value, *times)).or_insert(messages.len());
        *times += 1;
        if number == messages.len() {
            messages.push(Vec::new());
        }
        messages[number].push(id);
    }
    messages
}
