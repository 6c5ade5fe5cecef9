//! What a cell holds, exactly: a multiset of contributions with the order and rounding in which they were combined.
//!
//! In: leaves (entry values) and combinations of values. Out: equal ids exactly for equal expressions (up to the
//! order of the two operands of one addition: addition commutes, also in floating point), and the comparison of a
//! value with the multiset that was promised. The one hard idea: a hash-consed DAG. A sum of n contributions that n
//! ranks hold is stored once, and to walk each distinct value once, with a stamp per node, finds every fault: a
//! node reached twice is a double count, a leaf without the expected mark is foreign, too few leaves are a lack.

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
    nodes: Vec<Packed>,
    class: Vec<u32>,
    made: Made,
}

/// A node in eight bytes: there are millions of them, and memory is the time here.
///
/// | | `left` | `right` |
/// |---|---|---|
/// | leaf | key | [`LEAF`] |
/// | outer part | operand | [`POST`] |
/// | combined, rounded | smaller operand | greater or same operand |
/// | combined, not rounded | greater operand | smaller operand |
/// | combined with itself, not rounded | operand | [`TWINS`] |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Packed {
    left: u32,
    right: u32,
}

const LEAF: u32 = u32::MAX;
const POST: u32 = u32::MAX - 1;
const TWINS: u32 = u32::MAX - 2;

/// Finds nodes that are no leaves: a hash table of ids with open addressing, never more than half full.
///
/// The first place to look at is the greater operand itself, further ones are scattered. Sums grow by what was made last,
/// and neighbouring cells have neighbouring operands: so millions of look-ups walk through memory in order instead of
/// missing the cache each time. An operand that is the greater one of many sums costs each of them one look more.
#[derive(Debug, Default)]
struct Made {
    slots: Vec<u32>,
    count: usize,
}

const EMPTY: u32 = u32::MAX;

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
    /// By value, in this round: `round` if it is expected, `round + 1` if it has been seen.
    mark: Vec<u32>,
    round: u32,
    stack: Vec<ValueId>,
}

impl Values {
    /// A new entry value of length class `class`; each call makes a distinct one.
    pub fn leaf(&mut self, key: u32, class: u32) -> ValueId {
        self.push(Packed { left: key, right: LEAF }, class)
    }

    /// `left ∘ right`, rounded to the buffer's type or (within one step only) not.
    #[inline]
    pub fn combine(&mut self, left: ValueId, right: ValueId, rounded: bool) -> ValueId {
        self.make(Packed::combined(left, right, rounded), left)
    }

    /// `left ∘ right`, if it has been made before.
    #[inline]
    pub fn find(&self, left: ValueId, right: ValueId, rounded: bool) -> Option<ValueId> {
        let node = Packed::combined(left, right, rounded);
        self.made.find(&self.nodes, node).ok().map(ValueId)
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
        self.make(Packed { left: value.0, right: POST }, value)
    }

    /// How a value came to be.
    #[inline]
    pub fn node(&self, value: ValueId) -> Node {
        self.nodes[value.0 as usize].node()
    }

    /// Whether it is an entry value.
    #[inline]
    pub fn is_leaf(&self, value: ValueId) -> bool {
        self.nodes[value.0 as usize].right == LEAF
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
        // Nearly always: right.
        if self.agrees(value, promised, post, walk) {
            return Ok(());
        }
        let fault = self.walk(value, promised, post, walk);
        if fault == Mismatch::default() { Ok(()) } else { Err(fault) }
    }

    /// Whether [`Values::compare`] finds nothing wrong. Ends at the first thing that is: looks at no more than twice as
    /// many values as are promised, however many the value at hand is made of.
    ///
    /// A right value is a tree: each of its leaves is reached once. So only leaves are marked, and whoever looks at more
    /// values than a tree of so many leaves has is no tree.
    pub fn agrees(&self, value: ValueId, promised: &[ValueId], post: bool, walk: &mut Walk) -> bool {
        let top = match (self.node(value), post) {
            (Node::Post(inner), true) => inner,
            (_, true) => return false,
            _ => value,
        };
        let expected = walk.start(self.nodes.len());
        for leaf in promised {
            walk.mark[leaf.0 as usize] = expected;
        }
        // A tree of n leaves has n - 1 sums.
        let mut sums = promised.len().saturating_sub(1);
        let mut found = 0;
        let mut next = Some(top);
        while let Some(mut value) = next {
            while let Node::Combined { left, right, .. } = self.node(value) {
                if sums == 0 {
                    return false;
                }
                sums -= 1;
                walk.stack.push(right);
                value = left;
            }
            let mark = &mut walk.mark[value.0 as usize];
            if *mark != expected {
                // Foreign, or here for the second time; or the outer part within a sum.
                return false;
            }
            *mark = expected + 1;
            found += 1;
            next = walk.stack.pop();
        }
        found == promised.len()
    }

    /// How a value differs from what is promised.
    fn walk(&self, value: ValueId, promised: &[ValueId], post: bool, walk: &mut Walk) -> Mismatch {
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
        let (expected, seen) = (round, round + 1);
        for leaf in promised {
            walk.mark[leaf.0 as usize] = expected;
        }
        let mut found = 0;
        let mut named = 0;
        walk.stack.push(top);
        while let Some(value) = walk.stack.pop() {
            let before = std::mem::replace(&mut walk.mark[value.0 as usize], seen);
            if before == seen {
                // To name a leaf of it may cost a walk down all of it: done for some.
                if named < Mismatch::NAMED {
                    named += 1;
                    note(&mut fault.twice, self.any_leaf(value));
                }
                continue;
            }
            match self.node(value) {
                Node::Leaf(key) if before != expected => note(&mut fault.foreign, key),
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
            let missing = promised.iter().filter(|leaf| walk.mark[leaf.0 as usize] != seen);
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

    /// The value of a node that is no leaf, of the class of its operand.
    #[inline]
    fn make(&mut self, node: Packed, operand: ValueId) -> ValueId {
        if 2 * (self.made.count + 1) > self.made.slots.len() {
            self.made.grow(&self.nodes);
        }
        match self.made.find(&self.nodes, node) {
            Ok(known) => ValueId(known),
            Err(slot) => {
                self.made.slots[slot] = self.nodes.len() as u32;
                self.made.count += 1;
                let class = self.class(operand);
                self.push(node, class)
            }
        }
    }

    fn push(&mut self, node: Packed, class: u32) -> ValueId {
        let id = ValueId(self.nodes.len() as u32);
        self.nodes.push(node);
        self.class.push(class);
        id
    }
}

impl Packed {
    #[inline]
    fn combined(left: ValueId, right: ValueId, rounded: bool) -> Packed {
        let (least, most) = (left.0.min(right.0), left.0.max(right.0));
        match rounded {
            true => Packed { left: least, right: most },
            false if least == most => Packed { left: least, right: TWINS },
            false => Packed { left: most, right: least },
        }
    }

    #[inline]
    fn node(self) -> Node {
        let Packed { left, right } = self;
        match right {
            LEAF => Node::Leaf(left),
            POST => Node::Post(ValueId(left)),
            TWINS => Node::Combined { left: ValueId(left), right: ValueId(left), rounded: false },
            _ if left <= right => {
                Node::Combined { left: ValueId(left), right: ValueId(right), rounded: true }
            }
            _ => Node::Combined { left: ValueId(right), right: ValueId(left), rounded: false },
        }
    }
}

impl Made {
    /// The id of a node, or the empty slot where it belongs. There must be an empty slot.
    #[inline]
    fn find(&self, nodes: &[Packed], node: Packed) -> Result<u32, usize> {
        let Some(mask) = self.slots.len().checked_sub(1) else { return Err(0) };
        let Packed { left, right } = node;
        let mut slot = if right >= TWINS { left } else { left.max(right) } as usize;
        // Odd: it comes by every slot.
        let step = mix(right.wrapping_sub(left)) as usize | 1;
        loop {
            let id = self.slots[slot & mask];
            if id == EMPTY {
                return Err(slot & mask);
            }
            if nodes[id as usize] == node {
                return Ok(id);
            }
            slot = slot.wrapping_add(step);
        }
    }

    #[cold]
    fn grow(&mut self, nodes: &[Packed]) {
        let len = (2 * self.slots.len()).max(64);
        // The old table goes before the new one comes: all that it says stands in the nodes.
        self.slots = Vec::new();
        self.slots = vec![EMPTY; len];
        for (id, &node) in nodes.iter().enumerate().filter(|(_, node)| node.right != LEAF) {
            if let Err(slot) = self.find(nodes, node) {
                self.slots[slot] = id as u32;
            }
        }
    }
}

/// Scatters numbers that lie close together or in a grid.
#[inline]
fn mix(number: u32) -> u64 {
    let mixed = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 16
}

impl Walk {
    fn start(&mut self, nodes: usize) -> u32 {
        if self.round >= u32::MAX - 3 {
            *self = Walk::default();
        }
        self.round += 2;
        self.mark.resize(nodes.max(self.mark.len()), 0);
        self.stack.clear();
        self.round
    }
}

fn note(list: &mut Vec<u32>, key: u32) {
    if list.len() < Mismatch::SHOWN && !list.contains(&key) {
        list.push(key);
    }
}
