//! What cells hold in a folded plan: every value is some stored one, taken round a number of times.
//!
//! In: entry values of standing ranks, combinations. Out: equal [`Taken`]s exactly for equal expressions, operands in the order in
//! which they were combined. The one hard idea: σ takes no entry value to itself (no rank is its own image before all have
//! come back), so no expression is its own image either, and one of each orbit can be chosen: the one whose leftmost entry
//! value is at a standing rank. Every expression is exactly one of those, taken round exactly one number of times.

use rustc_hash::FxHashMap;

use super::super::places::Places;
use crate::fold::turned;
use crate::ids::{BufferId, RankId};
use crate::plan::Form;

/// A stored value, taken round `times` times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taken {
    /// Which one.
    pub node: u32,
    /// How many times.
    pub times: u32,
}

/// How a stored value came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TakenNode {
    /// The entry value of a place of a standing rank (a number of [`FoldedValues::leaf`]).
    Leaf(u32),
    /// Two values combined with the call's operator.
    Combined {
        /// The left one; it is not taken round.
        left: u32,
        /// The right one.
        right: Taken,
        /// Rounded to the buffer's type; if not, it lives only within one step.
        rounded: bool,
    },
    /// The operator's outer part applied.
    Post(u32),
}

/// All values of a folded plan, and what its cells hold at the end.
#[derive(Debug)]
pub struct FoldedValues {
    order: u32,
    /// K, and how far a position moves.
    cells: u32,
    by: u32,
    nodes: Vec<TakenNode>,
    /// By node: its length class, and how many entry values it is made of (no more are counted than fit).
    class: Vec<u32>,
    size: Vec<u32>,
    known: FxHashMap<TakenNode, u32>,
    pub(super) places: Places,
    /// By form, by place of a standing rank: what it holds at the end.
    pub(super) exit: [Option<Vec<Option<Taken>>>; 2],
}

impl FoldedValues {
    pub(super) fn new(order: u32, cells: u32, by: u32, places: Places) -> FoldedValues {
        FoldedValues {
            order,
            cells,
            by,
            nodes: Vec::new(),
            class: Vec::new(),
            size: Vec::new(),
            known: FxHashMap::default(),
            places,
            exit: [None, None],
        }
    }

    /// How many values are stored; each after those that it is made of.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How a stored value came to be.
    pub fn node(&self, node: u32) -> TakenNode {
        self.nodes[node as usize]
    }

    /// Whether it is an entry value, of whichever rank.
    pub(super) fn is_leaf(&self, value: Taken) -> bool {
        matches!(self.node(value.node), TakenNode::Leaf(_))
    }

    /// What a cell of a `Recv` buffer at a standing rank holds at the end; none if nothing writes it, or there is none.
    pub fn exit(&self, form: Form, buffer: BufferId, rank: RankId, cell: u32) -> Option<Taken> {
        let place = self.places.find(rank, buffer, cell)?;
        self.exit[form as usize].as_ref()?[place]
    }

    /// The number by which [`TakenNode::Leaf`] names a cell of a standing rank.
    pub fn leaf(&self, buffer: BufferId, rank: RankId, cell: u32) -> Option<u32> {
        self.places.find(rank, buffer, cell).map(|place| place as u32)
    }

    /// The entry value of a place of a standing rank.
    pub(super) fn entry(&mut self, place: u32, class: u32) -> Taken {
        let node = self.make(TakenNode::Leaf(place), class, 1);
        Taken { node, times: 0 }
    }

    /// `left ∘ right`, which are of one class.
    pub(super) fn combine(&mut self, left: Taken, right: Taken, rounded: bool) -> Taken {
        let apart =
            (u64::from(right.times) + u64::from(self.order) - u64::from(left.times)) % u64::from(self.order);
        let right = Taken { times: apart as u32, ..right };
        let size = self.size[left.node as usize].saturating_add(self.size[right.node as usize]);
        let made = TakenNode::Combined { left: left.node, right, rounded };
        let node = self.make(made, self.class[left.node as usize], size);
        Taken { node, ..left }
    }

    pub(super) fn post(&mut self, value: Taken) -> Taken {
        let of = value.node as usize;
        let node = self.make(TakenNode::Post(value.node), self.class[of], self.size[of]);
        Taken { node, ..value }
    }

    /// A value taken round.
    pub fn taken(&self, value: Taken, times: u32) -> Taken {
        let sum = (u64::from(value.times) + u64::from(times)) % u64::from(self.order);
        Taken { times: sum as u32, ..value }
    }

    /// The position in its block of the cells that a value came from.
    pub(super) fn class(&self, value: Taken) -> u32 {
        turned(self.class[value.node as usize], self.by, value.times, self.cells)
    }

    /// How many entry values it is made of, each as often as it comes.
    pub(super) fn size(&self, value: Taken) -> u32 {
        self.size[value.node as usize]
    }

    fn make(&mut self, node: TakenNode, class: u32, size: u32) -> u32 {
        let next = self.nodes.len() as u32;
        let id = *self.known.entry(node).or_insert(next);
        if id == next {
            self.nodes.push(node);
            self.class.push(class);
            self.size.push(size);
        }
        id
    }
}
