//! What a cell holds, exactly: a multiset of contributions with the order and rounding in which they were combined.
//!
//! In: leaves (entry values) and combinations of values. Out: equal ids exactly for equal expressions (up to the
//! order of the two operands of one addition: addition commutes, also in floating point), and the comparison of a
//! value with the multiset that was promised. The one hard idea: a hash-consed DAG. A sum of n contributions that n
//! ranks hold is stored once, and to walk each distinct value once, with a stamp per node, finds every fault: a
//! node reached twice is a double count, a leaf without the expected mark is foreign, too few leaves are a lack.

use rustc_hash::FxHashMap;

/// A value; equal ids mean equal expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub u32);

/// How a value came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Node {
    /// An entry value; the key is the caller's.
    Leaf(u32),
    /// Two values combined with the call's operator.
    Combined {
        /// The operand with the smaller id.
        left: ValueId,
        /// The other one.
        right: ValueId,
        /// Rounded to the buffer's type; if not, it lives only within one step.
        rounded: bool,
    },
    /// The operator's outer part (avg: the division) applied.
    Post(ValueId),
}

/// All values of one symbolic execution.
#[derive(Debug, Default)]
pub struct Values {
    nodes: Vec<Node>,
    class: Vec<u32>,
    rounded: FxHashMap<(u32, u32), ValueId>,
    unrounded: FxHashMap<(u32, u32), ValueId>,
    post: FxHashMap<u32, ValueId>,
}

/// How a value differs from the multiset promised. Each list holds at most [`Mismatch::SHOWN`] keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mismatch {
    /// Keys of promised leaves that it lacks.
    pub missing: Vec<u32>,
    /// How many it lacks in all.
    pub missing_count: usize,
    /// Keys of leaves that it has more than once.
    pub twice: Vec<u32>,
    /// Keys of leaves that were not promised.
    pub foreign: Vec<u32>,
    /// The outer part of the operator was applied to a part, or twice, or where none is due, or is missing.
    pub post: bool,
}

impl Mismatch {
    /// How many keys each list holds at most.
    pub const SHOWN: usize = 8;
    /// Of how many values that come twice a leaf is looked for.
    const NAMED: usize = 4 * Mismatch::SHOWN;
}

/// What `Values::compare` keeps between calls, so that a call costs only what it visits.
#[derive(Debug, Default)]
pub struct Walk {
    stamp: Vec<u32>,
    expected: Vec<u32>,
    round: u32,
    stack: Vec<ValueId>,
}

impl Values {
    /// A new entry value of length class `class`; each call makes a distinct one.
    pub fn leaf(&mut self, key: u32, class: u32) -> ValueId {
        self.push(Node::Leaf(key), class)
    }

    /// `left ∘ right`, rounded to the buffer's type or (within one step only) not.
    pub fn combine(&mut self, left: ValueId, right: ValueId, rounded: bool) -> ValueId {
        let key = (left.0.min(right.0), left.0.max(right.0));
        let map = if rounded { &mut self.rounded } else { &mut self.unrounded };
        if let Some(&known) = map.get(&key) {
            return known;
        }
        let id = ValueId(self.nodes.len() as u32);
        map.insert(key, id);
        let class = self.class(left);
        let node = Node::Combined { left: ValueId(key.0), right: ValueId(key.1), rounded };
        self.push(node, class)
    }

    /// `left ∘ right`, if it has been made before.
    pub fn find(&self, left: ValueId, right: ValueId, rounded: bool) -> Option<ValueId> {
        let key = (left.0.min(right.0), left.0.max(right.0));
        let map = if rounded { &self.rounded } else { &self.unrounded };
        map.get(&key).copied()
    }

    /// Operands folded from left to right: rounded once at the end, or after each operand.
    pub fn fold(&mut self, operands: &[ValueId], round_each: bool) -> Option<ValueId> {
        let (&first, rest) = operands.split_first()?;
        let last = rest.len().saturating_sub(1);
        Some(
            rest.iter()
                .enumerate()
                .fold(first, |sum, (i, &next)| self.combine(sum, next, round_each || i == last)),
        )
    }

    /// The operator's outer part applied to a value.
    pub fn post(&mut self, value: ValueId) -> ValueId {
        if let Some(&known) = self.post.get(&value.0) {
            return known;
        }
        let class = self.class(value);
        let id = self.push(Node::Post(value), class);
        self.post.insert(value.0, id);
        id
    }

    /// How a value came to be.
    pub fn node(&self, value: ValueId) -> Node {
        self.nodes[value.0 as usize]
    }

    /// Its length class: that of any of its leaves (they agree, or the combination was refused).
    pub fn class(&self, value: ValueId) -> u32 {
        self.class[value.0 as usize]
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Compares a value with the leaves promised (distinct, not empty), each to be there exactly once. `post` says
    /// whether the outer part of the operator must have been applied (once, outermost).
    pub fn compare(
        &self,
        value: ValueId,
        promised: &[ValueId],
        post: bool,
        walk: &mut Walk,
    ) -> Result<(), Mismatch> {
        let fault = self.walk(value, promised, post, walk, false);
        if fault == Mismatch::default() { Ok(()) } else { Err(fault) }
    }

    /// Whether [`Values::compare`] finds nothing wrong. Ends at the first thing that is: looks at no more than twice as
    /// many values as are promised, however many the value at hand is made of.
    pub fn agrees(&self, value: ValueId, promised: &[ValueId], post: bool, walk: &mut Walk) -> bool {
        self.walk(value, promised, post, walk, true) == Mismatch::default()
    }

    /// How a value differs from what is promised; if `brief`, one thing of it.
    fn walk(
        &self,
        value: ValueId,
        promised: &[ValueId],
        post: bool,
        walk: &mut Walk,
        brief: bool,
    ) -> Mismatch {
        let mut fault = Mismatch::default();
        let top = match (self.node(value), post) {
            (Node::Post(inner), true) => inner,
            (_, true) => {
                fault.post = true;
                value
            }
            _ => value,
        };
        let round = walk.start(self.nodes.len());
        for leaf in promised {
            walk.expected[leaf.0 as usize] = round;
        }
        let mut found = 0;
        let mut named = 0;
        walk.stack.push(top);
        while let Some(value) = walk.stack.pop() {
            if brief && fault != Mismatch::default() {
                return fault;
            }
            let seen = std::mem::replace(&mut walk.stamp[value.0 as usize], round) == round;
            if seen {
                // To name a leaf of it may cost a walk down all of it: done for some, and for none if `brief`.
                if named < Mismatch::NAMED {
                    named += 1;
                    note(&mut fault.twice, if brief { u32::MAX } else { self.any_leaf(value) });
                }
                continue;
            }
            match self.node(value) {
                Node::Leaf(key) if walk.expected[value.0 as usize] != round => note(&mut fault.foreign, key),
                Node::Leaf(_) => found += 1,
                Node::Combined { left, right, .. } => walk.stack.extend([left, right]),
                Node::Post(inner) => {
                    fault.post = true;
                    walk.stack.push(inner);
                }
            }
        }
        fault.missing_count = promised.len() - found;
        if fault.missing_count > 0 {
            let missing = promised.iter().filter(|leaf| walk.stamp[leaf.0 as usize] != round);
            fault.missing = missing.take(Mismatch::SHOWN).map(|&leaf| self.any_leaf(leaf)).collect();
        }
        fault
    }

    /// The key of some leaf of a value.
    pub fn any_leaf(&self, mut value: ValueId) -> u32 {
        loop {
            value = match self.node(value) {
                Node::Leaf(key) => return key,
                Node::Combined { left, .. } => left,
                Node::Post(inner) => inner,
            };
        }
    }

    fn push(&mut self, node: Node, class: u32) -> ValueId {
        let id = ValueId(self.nodes.len() as u32);
        self.nodes.push(node);
        self.class.push(class);
        id
    }
}

impl Walk {
    fn start(&mut self, nodes: usize) -> u32 {
        if self.round == u32::MAX {
            *self = Walk::default();
        }
        self.round += 1;
        self.stamp.resize(nodes.max(self.stamp.len()), 0);
        self.expected.resize(nodes.max(self.expected.len()), 0);
        self.stack.clear();
        self.round
    }
}

fn note(list: &mut Vec<u32>, key: u32) {
    if list.len() < Mismatch::SHOWN && !list.contains(&key) {
        list.push(key);
    }
}
