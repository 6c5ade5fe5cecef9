//! The flow: who makes which value where, out of which. What the passes rewrite and the schedule lays out.
//!
//! In: a proved [`Trace`] and its [`ChunkGraph`]. Out: a [`Flow`] of nodes. A node folds its operands at one rank and
//! keeps the result at its homes; an operand lies at the node's own rank or comes from another one. The one hard idea:
//! a node is a run of cells, as wide as the move it comes from, cut only where its cells differ in kind (or, if asked for, where they go
//! different ways: `parts`). An operand
//! knows the one node that made exactly its cells, if there is one: only then can the two be fused.

mod arrange;
mod bits;
mod build;
mod check;
mod exits;
mod hazards;
mod live;
mod originals;
mod parts;
mod pieces;

use plan::ids::{BufferId, RankId, SpanId};
use plan::pre::Pre;
use rustc_hash::FxHashMap;

pub(crate) use self::build::build;
pub(crate) use self::check::check;
pub(crate) use self::exits::block_cells;
pub(crate) use self::live::Live;
use crate::trace::Place;

/// Index of a [`Node`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub(crate) u32);

impl NodeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// All nodes, each after those whose values it reads.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    pub(crate) nodes: Vec<Node>,
    /// Operands of all nodes.
    pub(crate) operands: Vec<Operand>,
    /// Further homes of nodes, sorted by node.
    pub(crate) extra: Vec<(NodeId, Home)>,
    /// By operand, one more than each of the two nodes of [`Special`], 0 for none; as long as needed. If a guard has others, it is
    /// [`SEVERAL`] and where in `other_guards` their chain begins.
    special: Vec<(u32, u32)>,
    /// Some node has operands of which it cannot be said which are entry values.
    pub(crate) unmarked: bool,
    /// The most cells of a node.
    pub(crate) widest: u32,
    /// Whether some node overwrites what another of its `step` reads.
    pub(crate) guarded: bool,
    /// Guards of operands that have several, in chains: the node, and one more than where the next is.
    other_guards: Vec<(NodeId, u32)>,
    /// By node, if some copy within their rank: one more than the last round in which its home was written or read before, 0 if
    /// never; that much earlier it may be written. [`NEVER`]: another move reads and writes together with its own.
    pub(crate) hazards: Vec<u32>,
    /// Of nodes that copy within their rank: a node that reads the very cells of their home, and the hazard but for that.
    pub(crate) hazard_but_for: FxHashMap<NodeId, (NodeId, u32)>,
}

/// A value in the making: one fold at one rank over a run of cells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    pub(crate) rank: RankId,
    pub(crate) width: u32,
    /// First operand.
    pub(crate) first: u32,
    pub(crate) count: u16,
    pub(crate) kind: Kind,
    /// Round after each operand, not once at the end.
    pub(crate) round_each: bool,
    /// Apply the operator's outer part.
    pub(crate) post: bool,
    /// Which operands are entry values, if it folds; nothing where [`Flow::unmarked`].
    pub(crate) pre: Pre,
    /// Its value was merged into another node: it does nothing.
    pub(crate) gone: bool,
    /// From labels: which of several channels its messages take.
    pub(crate) lane: u16,
    /// The place that the program writes.
    pub(crate) home: Home,
    /// Length of the longest chain of nodes that must come before.
    pub(crate) round: u32,
    pub(crate) span: SpanId,
}

/// What a node does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Hands on its one operand.
    Copy,
    /// The same, as one of the copies of a multicast.
    Multicast,
    /// Combines two or more operands from left to right.
    Fold,
    /// Knows of more arrivals: no data.
    Signal,
}

/// Where a node keeps its value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Home {
    pub(crate) buffer: BufferId,
    pub(crate) cell: u32,
    /// Whether it is kept at all: someone reads it there, or it is promised.
    pub(crate) stored: bool,
}

/// A value read. (There are millions: kept small.)
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operand {
    /// Where it lies.
    pub(crate) place: Place,
    /// The node that made it; above, what is true of it.
    maker: u32,
}

/// What is so of few operands.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Special {
    /// The node that reads it in the program, if passes have moved it to another one: when its place holds it for sure.
    pub(crate) by: Option<NodeId>,
    /// Of those of the same group that overwrite its place, the one that comes first: it must have been read before.
    pub(crate) guard: Option<NodeId>,
    /// Of those that do so too: one more than where the first is in `Flow::other_guards`, 0 if there are none.
    pub(crate) others: u32,
}

impl Special {
    /// Whether nothing is special.
    pub(crate) fn is_none(&self) -> bool {
        self.by.is_none() && self.guard.is_none()
    }
}

/// In `Flow::hazards`: no earlier than it is.
pub(crate) const NEVER: u32 = u32::MAX;
/// In `Operand::maker`: it is the entry value of the place, nothing ever overwrites it, `Flow::special` has something on it, nothing
/// has written the place before in any form.
const ENTRY: u32 = 1 << 31;
const STAYS: u32 = 1 << 30;
const SPECIAL: u32 = 1 << 29;
const FRESH: u32 = 1 << 28;
/// In `Flow::special`: of several guards.
const SEVERAL: u32 = 1 << 31;
/// Stands for no node. (A quarter of a billion nodes take more memory than anyone has.)
const NOBODY: u32 = FRESH - 1;

impl Operand {
    /// One that lies at a place.
    pub(crate) fn new(place: Place, entry: bool, maker: Option<NodeId>) -> Operand {
        let mut operand = Operand { place, maker: NOBODY };
        operand.set(ENTRY, entry);
        operand.set_maker(maker);
        operand
    }

    /// Who made exactly these cells.
    pub(crate) fn maker(&self) -> Option<NodeId> {
        let maker = self.maker & NOBODY;
        (maker != NOBODY).then_some(NodeId(maker))
    }

    /// Whether it is the entry value of the place.
    pub(crate) fn entry(&self) -> bool {
        self.maker & ENTRY != 0
    }

    /// Whether it is an entry value that nothing ever overwrites.
    pub(crate) fn stays(&self) -> bool {
        self.maker & STAYS != 0
    }

    pub(crate) fn set_stays(&mut self, stays: bool) {
        self.set(STAYS, stays);
    }

    /// Whether it may be read at any time before it is: an entry value, in whatever form.
    pub(crate) fn may_be_sooner(&self) -> bool {
        self.entry() && self.maker & (STAYS | FRESH) != 0
    }

    /// It lies at another place instead: an entry value that stays there.
    pub(crate) fn move_to_entry(&mut self, place: Place) {
        self.place = place;
        self.set(ENTRY | STAYS, true);
    }

    fn set_maker(&mut self, maker: Option<NodeId>) {
        self.maker = self.maker & !NOBODY | maker.map_or(NOBODY, |NodeId(maker)| maker.min(NOBODY));
    }

    fn set(&mut self, what: u32, so: bool) {
        self.maker = if so { self.maker | what } else { self.maker & !what };
    }
}

impl Flow {
    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    pub(crate) fn operands(&self, node: &Node) -> &[Operand] {
        &self.operands[node.first as usize..][..node.count as usize]
    }

    /// What is special about an operand.
    pub(crate) fn special(&self, at: usize) -> Special {
        match self.operands[at].maker & SPECIAL != 0 {
            true => {
                let (by, guard) = self.special.get(at).copied().unwrap_or_default();
                let (guard, others) = match guard & SEVERAL {
                    0 => (guard.checked_sub(1).map(NodeId), 0),
                    _ => {
                        let (guard, others) = self.other_guards[(guard & !SEVERAL) as usize];
                        (Some(guard), others)
                    }
                };
                Special { by: by.checked_sub(1).map(NodeId), guard, others }
            }
            false => Special::default(),
        }
    }

    pub(crate) fn set_special(&mut self, at: usize, special: Special) {
        self.operands[at].set(SPECIAL, true);
        if self.special.len() <= at {
            self.special.resize(self.operands.len(), (0, 0));
        }
        let number = |node: Option<NodeId>| node.map_or(0, |NodeId(id)| id + 1);
        let guard = match special.guard {
            Some(guard) if special.others != 0 => {
                self.other_guards.push((guard, special.others));
                SEVERAL | (self.other_guards.len() as u32 - 1)
            }
            guard => number(guard),
        };
        self.special[at] = (number(special.by), guard);
        self.guarded |= special.guard.is_some();
    }

    /// The further homes of a node.
    pub(crate) fn extra_of(&self, id: NodeId) -> impl Iterator<Item = Home> + use<'_> {
        let start = self.extra.partition_point(|&(node, _)| node < id);
        self.extra[start..].iter().take_while(move |(node, _)| *node == id).map(|&(_, home)| home)
    }

    /// All nodes of the same group that overwrite the place of an operand.
    fn guards(&self, special: Special) -> impl Iterator<Item = NodeId> + '_ {
        let other = |at: u32| at.checked_sub(1).map(|at| self.other_guards[at as usize]);
        let others = std::iter::successors(other(special.others), move |&(_, next)| other(next));
        special.guard.into_iter().chain(others.map(|(node, _)| node))
    }

    /// Of nodes that overwrite what is read in the same group, the one that comes first is what counts from now on.
    pub(crate) fn settle_guards(&mut self, position: &[u32]) {
        if self.other_guards.is_empty() {
            return;
        }
        for at in 0..self.operands.len() {
            let special = self.special(at);
            if special.guard.is_some() {
                let first = self.guards(special).min_by_key(|guard| position[guard.index()]);
                self.set_special(at, Special { guard: first, ..special });
            }
        }
    }

    pub(crate) fn set_maker(&mut self, at: usize, maker: Option<NodeId>) {
        self.operands[at].set_maker(maker);
    }

    pub(crate) fn range(node: &Node) -> std::ops::Range<usize> {
        node.first as usize..node.first as usize + node.count as usize
    }

    /// Nodes that have not been merged into others, in order.
    pub(crate) fn alive(&self) -> impl DoubleEndedIterator<Item = NodeId> + '_ {
        (0..self.nodes.len() as u32).map(NodeId).filter(|id| !self.node(*id).gone)
    }

    /// Marks the home of `maker` at a place as kept; whether it was not yet.
    pub(crate) fn keep(&mut self, maker: NodeId, place: Place) -> bool {
        let same = |home: &&mut Home| home.buffer == place.buffer && home.cell == place.cell;
        let start = self.extra.partition_point(|&(node, _)| node < maker);
        let further = self.extra[start..].iter_mut().take_while(|(node, _)| *node == maker);
        let mut homes =
            [&mut self.nodes[maker.index()].home].into_iter().chain(further.map(|(_, home)| home));
        homes.find(same).is_some_and(|home| !std::mem::replace(&mut home.stored, true))
    }
}

impl Node {
    /// Whether it carries no data.
    pub(crate) fn is_signal(&self) -> bool {
        self.kind == Kind::Signal
    }

    /// Whether it hands on a value as it is.
    pub(crate) fn copies(&self) -> bool {
        matches!(self.kind, Kind::Copy | Kind::Multicast)
    }
}
