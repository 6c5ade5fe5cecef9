//! Multicasts become trees: a reader of what many read takes it from another reader.
//!
//! In: a proved trace. Out: one in which the copies of a multicast (`x @ * = x @ p`, or copies written one by one) are
//! put in the order of a tree and, but for the first, read where their parent in it has stored the value. The one hard idea: this is done to
//! the program, before there is a flow, so that all which follows (rounds, hazards, places overwritten later, both
//! forms of a call) is worked out for it as for any program; and like any program it is proved, by the proof
//! that judges users' programs. Where the proof finds that some place would not hold the value, fewer copies are moved. `validate` compares the
//! plan with the program as it was written.
//!
//! On a world of several levels the tree is one of trees: among one reader of each part of a level, then within the parts.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::Live;
use crate::graph::{self, ChunkGraph, Form, PlaceTable, VersionId, adds};
use crate::limits::Limits;
use crate::options::{Options, Tree};
use crate::trace::{MoveId, MoveKind, Place, Trace};

/// The trace with its multicasts as trees, and its graph (out of place); none if there is nothing to do.
pub(crate) fn run(trace: &Trace, graph: &ChunkGraph, options: &Options) -> Option<(Trace, ChunkGraph)> {
    let tree = options.multicast.tree()?;
    let groups = find(trace, graph);
    // Copies that stand apart may have moves between them that overwrite what is read.
    let all = groups.iter().collect::<Vec<_>>();
    let neighbours = groups.iter().filter(|group| group.is_one_run()).collect::<Vec<_>>();
    let tries = [Some(&all), (neighbours.len() < all.len()).then_some(&neighbours)];
    let mut tries = tries.into_iter().flatten().filter(|groups| !groups.is_empty());
    tries.find_map(|groups| proved(graph, reparented(trace, groups, tree)))
}

/// Copies of one value from one place to several ranks.
struct Group {
    from: Place,
    /// The moves, in order; no two to one rank.
    moves: Vec<u32>,
}

impl Group {
    /// Whether no other move stands between them.
    fn is_one_run(&self) -> bool {
        let (first, last) = (self.moves.first(), self.moves.last());
        first.zip(last).is_some_and(|(first, last)| (last - first) as usize + 1 == self.moves.len())
    }
}

/// Groups of two or more.
fn find(trace: &Trace, graph: &ChunkGraph) -> Vec<Group> {
    let same = match trace.inplace.is_empty() {
        true => None,
        false => PlaceTable::new(trace, Form::Same).ok(),
    };
    let tables: Vec<&PlaceTable> = [&graph.places].into_iter().chain(&same).collect();
    let live = Live::new(trace, graph);
    let mut groups: Vec<Group> = Vec::new();
    let mut numbers: FxHashMap<(Place, u32, VersionId), usize> = FxHashMap::default();
    let mut reached = FxHashSet::default();
    let mut start = 0;
    while let Some(first) = trace.moves.get(start) {
        let end = match first.step {
            0 => start + 1,
            step => start + trace.moves[start..].iter().take_while(|mv| mv.step == step).count(),
        };
        if !could_be_in_turn(trace, start..end, &tables) {
            // What is copied before and after other moves does not go at one time.
            numbers.clear();
        } else {
            for (id, mv) in (start as u32..).zip(&trace.moves[start..end]) {
                let from = trace.sources(mv)[0];
                let read = |i: u32| graph.read(MoveId(id), i, 1)[0];
                let needed = (0..mv.width).all(|i| live.has(graph.written(MoveId(id), i)));
                if from.rank == mv.to.rank || !needed {
                    continue;
                }
                let group = *numbers.entry((from, mv.width, read(0))).or_insert(groups.len());
                if group == groups.len() {
                    groups.push(Group { from, moves: Vec::new() });
                }
                let known = groups[group].moves.first().map(|&first| MoveId(first));
                let alike =
                    known.is_none_or(|first| (0..mv.width).all(|i| graph.read(first, i, 1)[0] == read(i)));
                if alike && reached.insert((group, mv.to.rank)) {
                    groups[group].moves.push(id);
                }
            }
        }
        start = end;
    }
    groups.retain(|group| group.moves.len() > 1);
    groups
}

/// Whether moves that read and write together are copies that might as well be done one after the other.
fn could_be_in_turn(trace: &Trace, moves: std::ops::Range<usize>, tables: &[&PlaceTable]) -> bool {
    let copies =
        |mv: &crate::trace::Move| matches!(mv.kind, MoveKind::Copy | MoveKind::Multicast) && !adds(trace, mv);
    let moves = &trace.moves[moves];
    if !moves.iter().all(copies) {
        return false;
    }
    moves.len() == 1
        || tables.iter().all(|places| {
            let cells = |place: Place, width: u32| (0..width).map(move |i| places.index(place.plus(i)));
            // A copy of a place onto itself does nothing.
            let idle = |mv: &&crate::trace::Move| places.index(trace.sources(mv)[0]) == places.index(mv.to);
            let written: FxHashSet<u32> =
                moves.iter().filter(|mv| !idle(mv)).flat_map(|mv| cells(mv.to, mv.width)).collect();
            let mut read = moves.iter().flat_map(|mv| cells(trace.sources(mv)[0], mv.width));
            !read.any(|cell| written.contains(&cell))
        })
}

/// The trace with the copies of each group in the order of its tree.
fn reparented(trace: &Trace, groups: &[&Group], tree: Tree) -> Trace {
    let mut new = trace.clone();
    let whole = [trace.ranks];
    let sizes = if trace.shape.iter().product::<u32>() == trace.ranks { &trace.shape[..] } else { &whole };
    let mut in_turn = FxHashSet::default();
    for group in groups {
        let to = |at: usize| trace.moves[group.moves[at] as usize].to;
        let ranks: Vec<u32> = (0..group.moves.len()).map(|at| to(at).rank.0).collect();
        let mut edges = Vec::with_capacity(ranks.len());
        let mut order = Spread { ranks: &ranks, tree, edges: &mut edges };
        order.over((group.from.rank.0, None), (0..ranks.len()).collect(), sizes, trace.ranks);
        for (&slot, &(parent, reader)) in group.moves.iter().zip(&edges) {
            let mv = trace.moves[group.moves[reader] as usize];
            let first_source = new.sources.len() as u32;
            new.sources.push(parent.map_or(group.from, to));
            new.moves[slot as usize] = crate::trace::Move { kind: MoveKind::Copy, first_source, ..mv };
            in_turn.insert(trace.moves[slot as usize].step);
        }
    }
    for (mv, old) in new.moves.iter_mut().zip(&trace.moves) {
        // A move may have come from another step: that of the place where it now stands counts.
        mv.step = if in_turn.contains(&old.step) { 0 } else { old.step };
    }
    new
}

/// Makes a tree, edge by edge, parents first.
struct Spread<'a> {
    /// Of each reader.
    ranks: &'a [u32],
    tree: Tree,
    /// Who takes it from whom (none: from the root).
    edges: &'a mut Vec<(Option<usize>, usize)>,
}

impl Spread<'_> {
    /// From a rank, which is a reader or the root, to some readers; `sizes` are those of the levels that they are in one part
    /// of, and such a part has `ranks`.
    fn over(&mut self, root: (u32, Option<usize>), mut to: Vec<usize>, sizes: &[u32], ranks: u32) {
        let Some((&size, sizes)) = sizes.split_first() else {
            return self.edges.extend(to.into_iter().map(|reader| (root.1, reader)));
        };
        if to.is_empty() {
            return;
        }
        let part = ranks / size;
        // By part, counted from the root's; within a part, its like first.
        let apart = |a: u32, b: u32, n: u32| (a % n + n - b % n) % n;
        let turned = |reader: &usize| {
            let rank = self.ranks[*reader];
            (apart(rank / part, root.0 / part, size), apart(rank, root.0, part))
        };
        to.sort_unstable_by_key(turned);
        let of_part = |reader: &usize| turned(reader).0;
        let own = to.partition_point(|reader| of_part(reader) == 0);
        let others: Vec<Vec<usize>> =
            to[own..].chunk_by(|a, b| of_part(a) == of_part(b)).map(<[usize]>::to_vec).collect();
        to.truncate(own);
        for (parent, child) in self.tree.edges(others.len()) {
            let parent = if parent == 0 { root.1 } else { Some(others[parent - 1][0]) };
            self.edges.push((parent, others[child - 1][0]));
        }
        self.over(root, to, sizes, part);
        for mut readers in others {
            let first = readers.remove(0);
            self.over((self.ranks[first], Some(first)), readers, sizes, part);
        }
    }
}

impl Tree {
    /// (parent, child) of a tree of so many readers, numbered from 1; 0 is the root; parents first, in the order in which
    /// they send.
    fn edges(self, readers: usize) -> Vec<(usize, usize)> {
        let mut children: Vec<usize> = (1..=readers).collect();
        match self {
            Tree::Binomial => {
                // The largest subtrees first: they have the longest way to go.
                children.sort_by_key(|child| std::cmp::Reverse(child.trailing_zeros()));
                children.into_iter().map(|child| (child & (child - 1), child)).collect()
            }
            Tree::Chain => children.into_iter().map(|child| (child - 1, child)).collect(),
            Tree::Wide(width) => {
                let width = usize::from(width.max(1));
                children.into_iter().map(|child| ((child - 1) / width, child)).collect()
            }
        }
    }
}

/// A trace that keeps its promise in all forms, with the expressions of `before`; and its graph.
fn proved(before: &ChunkGraph, trace: Trace) -> Option<(Trace, ChunkGraph)> {
    // As many moves as there were.
    let limits = Limits { moves: u64::MAX, places: u64::MAX, ..Limits::default() };
    let form = |form: Form| {
        let graph = graph::build_within(&trace, form, &limits).ok()?;
        graph::promise_within(&trace, &graph, &limits).ok()?;
        Some(graph)
    };
    let disjoint = form(Form::Disjoint)?;
    // A sum of the same operands in another order keeps the promise, but is another program.
    if !graph::ends_agree(&trace, before, &disjoint) {
        return None;
    }
    if !trace.inplace.is_empty() {
        let same = form(Form::Same)?;
        graph::forms_agree(&trace, &disjoint, &same).ok()?;
    }
    Some((trace, disjoint))
}
