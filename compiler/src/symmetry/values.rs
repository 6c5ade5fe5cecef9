//! What cells hold, up to the rotation: every value is some stored one, taken round a number of times.
//!
//! In: entry values and combinations. Out: equal [`Value`]s exactly for equal expressions (up to the order of the two
//! operands of one addition, as in `plan::values`). The one hard idea: a node stands for all its rotations, and a value
//! is a node and a number of times, modulo the node's period (a value may be its own rotation: x₀ + x₁ of two
//! ranks). A pair of operands is stored in the position that makes its first operand's part 0 where that is possible.

use rustc_hash::FxHashMap;

use crate::elaborate::machine::gcd;

/// A node, taken round `times` times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Value {
    pub(super) node: u32,
    pub(super) times: u32,
}

/// How a node came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    /// The entry value of a place of a rank that stands for others.
    Leaf(u32),
    /// Two values combined.
    Combined(Value, Value),
}

/// All nodes.
#[derive(Debug)]
pub(super) struct Values {
    order: u32,
    nodes: Vec<Node>,
    /// The position in a block that each came from.
    class: Vec<u32>,
    /// After how many times it is itself again; divides `order`.
    period: Vec<u32>,
    leaves: FxHashMap<u32, u32>,
    pairs: FxHashMap<(u32, u32, u32, bool), u32>,
}

impl Values {
    pub(super) fn new(order: u32) -> Values {
        Values {
            order,
            nodes: Vec::new(),
            class: Vec::new(),
            period: Vec::new(),
            leaves: FxHashMap::default(),
            pairs: FxHashMap::default(),
        }
    }

    /// The entry value of a place.
    pub(super) fn leaf(&mut self, place: u32, class: u32) -> Value {
        let next = self.nodes.len() as u32;
        let node = *self.leaves.entry(place).or_insert(next);
        if node == next {
            self.push(Node::Leaf(place), class, self.order);
        }
        Value { node, times: 0 }
    }

    /// `a ∘ b`.
    pub(super) fn combine(&mut self, a: Value, b: Value, rounded: bool) -> Value {
        let (a, b) = if a.node <= b.node { (a, b) } else { (b, a) };
        let (p, q) = (self.period[a.node as usize], self.period[b.node as usize]);
        let common = gcd(p.into(), q.into()) as u32;
        let apart = |from: u32, to: u32| (to + self.order - from) % common;
        let (mut first, mut second, mut distance) = (a, b, apart(a.times, b.times));
        let mut period = (u64::from(p) / u64::from(common) * u64::from(q)) as u32;
        if a.node == b.node {
            let back = apart(b.times, a.times);
            if back < distance {
                (first, second, distance) = (b, a, back);
            } else if distance != 0 && back == distance {
                // Half a turn exchanges the two.
                period /= 2;
            }
        }
        // The pair is (0, distance) taken round this many times.
        let mut times = first.times % p;
        while (times + distance) % q != second.times % q {
            times += p;
        }
        let times = times % period;
        let next = self.nodes.len() as u32;
        let node = *self.pairs.entry((first.node, second.node, distance, rounded)).or_insert(next);
        if node == next {
            let pair = (Value { times: 0, ..first }, Value { times: distance, ..second });
            self.push(Node::Combined(pair.0, pair.1), self.class[first.node as usize], period);
        }
        Value { node, times }
    }

    /// A value taken round.
    pub(super) fn taken(&self, value: Value, times: u32) -> Value {
        let period = u64::from(self.period[value.node as usize]);
        Value { times: ((u64::from(value.times) + u64::from(times)) % period) as u32, ..value }
    }

    pub(super) fn node(&self, value: Value) -> Node {
        self.nodes[value.node as usize]
    }

    /// The position of the node itself, not yet taken round.
    pub(super) fn class(&self, value: Value) -> u32 {
        self.class[value.node as usize]
    }

    fn push(&mut self, node: Node, class: u32, period: u32) {
        self.nodes.push(node);
        self.class.push(class);
        self.period.push(period);
    }
}

#[cfg(test)]
mod tests {
    use super::{Node, Value, Values};

    #[test]
    fn a_sum_of_all_is_its_own_rotation_when_it_commutes() {
        let mut values = Values::new(2);
        let x = values.leaf(0, 0);
        let y = values.taken(x, 1);
        let sum = values.combine(x, y, true);
        assert_eq!(values.combine(y, x, true), sum);
        assert_eq!(values.taken(sum, 1), sum);
    }

    #[test]
    fn a_chain_of_three_is_not() {
        let mut values = Values::new(3);
        let x = values.leaf(0, 0);
        let (y, z) = (values.taken(x, 1), values.taken(x, 2));
        let sum = values.combine(x, y, true);
        let sum = values.combine(sum, z, true);
        let turned = values.combine(y, z, true);
        let turned = values.combine(turned, x, true);
        assert_eq!(values.taken(sum, 1), turned);
        assert_ne!(sum, turned);
    }

    /// All expressions over 4 leaves up to three operations, against their definition as trees.
    #[test]
    fn equal_exactly_for_equal_expressions() {
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
        enum Tree {
            Leaf(u32),
            Pair(Box<[Tree; 2]>),
        }
        fn pair(a: &Tree, b: &Tree) -> Tree {
            let mut both = [a.clone(), b.clone()];
            both.sort();
            Tree::Pair(Box::new(both))
        }
        fn turned(tree: &Tree) -> Tree {
            match tree {
                Tree::Leaf(i) => Tree::Leaf((i + 1) % 4),
                Tree::Pair(both) => pair(&turned(&both[0]), &turned(&both[1])),
            }
        }
        let mut values = Values::new(4);
        let leaf = values.leaf(7, 0);
        let mut known: Vec<(Tree, Value)> = (0..4).map(|i| (Tree::Leaf(i), values.taken(leaf, i))).collect();
        for _ in 0..2 {
            let before: Vec<_> = known.iter().take(60).cloned().collect();
            for (a, x) in &before {
                for (b, y) in &before {
                    known.push((pair(a, b), values.combine(*x, *y, true)));
                }
            }
            known.sort_by(|a, b| a.0.cmp(&b.0));
            known.dedup();
        }
        for pair in known.windows(2) {
            assert_ne!(pair[0].0, pair[1].0, "one expression, two values: {:?}", pair);
        }
        let mut ids: Vec<Value> = known.iter().map(|(_, value)| *value).collect();
        ids.sort();
        let all = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), all, "two expressions, one value");
        let find = |tree: &Tree| known.iter().find(|(known, _)| known == tree).map(|(_, value)| *value);
        let mut found = 0;
        for (tree, value) in &known {
            if let Some(other) = find(&turned(tree)) {
                assert_eq!(values.taken(*value, 1), other, "{tree:?}");
                found += 1;
            }
        }
        assert!(found > 100 && matches!(values.node(leaf), Node::Leaf(7)));
    }
}
