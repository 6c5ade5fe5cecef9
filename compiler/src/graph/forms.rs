//! Does the program mean the same in place as out of place?
//!
//! In: the graphs of both forms, each of which keeps the promise. Out: nothing, or the first move that sees another
//! value in place. The one hard idea: each rank of a call chooses its form alone, so it is not enough that all
//! ranks in place are right and all ranks out of place are. If every value that crosses ranks, and every promised
//! value, is the same expression in both forms, then every mixture of them is right too, and with the same bits.

use plan::values::{Node, ValueId};

use super::fault::{Fault, FaultKind};
use super::promise::promised;
use super::{ChunkGraph, Form, VersionId, arity};
use crate::trace::{MoveId, Trace};

/// Compares the two forms of one trace.
pub fn forms_agree(trace: &Trace, disjoint: &ChunkGraph, same: &ChunkGraph) -> Result<(), Vec<Fault>> {
    let translation = translate(disjoint, same);
    // Moves write the same number of versions in both forms, after entries of their own number.
    let differ = |apart: VersionId, together: VersionId| {
        let value = disjoint.version(apart).value;
        translation[value.0 as usize] != Some(same.version(together).value)
    };
    let reads = |m: usize| {
        let (mv, id) = (&trace.moves[m], MoveId(m as u32));
        let arity = arity(trace, mv);
        (0..mv.width).flat_map(move |i| {
            disjoint.read(id, i, arity).iter().zip(same.read(id, i, arity)).map(|(&a, &b)| (a, b)).enumerate()
        })
    };
    let crosses = |m: usize, operand: usize| {
        let mv = &trace.moves[m];
        let sources = trace.sources(mv);
        let own = arity(trace, mv) as usize - sources.len();
        operand >= own && sources[operand - own].rank != mv.to.rank
    };
    let sent = (0..trace.moves.len()).any(|m| reads(m).any(|(k, (a, b))| crosses(m, k) && differ(a, b)));
    let held = || promised(trace, disjoint).zip(promised(trace, same)).any(|(a, b)| differ(a, b));
    if !sent && !held() {
        return Ok(());
    }
    // What differs has come from some read: the first one is told.
    let first = (0..trace.moves.len()).find_map(|m| {
        let (_, (_, seen)) = reads(m).find(|&(_, (a, b))| differ(a, b))?;
        let written = same.version(seen);
        Some((MoveId(m as u32), same.places.place(written.place), same.writer(seen)))
    });
    let Some((mv, place, overwritten)) = first else { return Ok(()) };
    let kind = FaultKind::FormsDiffer { mv, place, overwritten };
    Err(vec![Fault { form: Form::Same, kind, others: 0 }])
}

/// Whether two traces with one promise, the graph of each in the same form, hold the same expressions at the end.
pub(crate) fn ends_agree(trace: &Trace, one: &ChunkGraph, other: &ChunkGraph) -> bool {
    let translation = translate(one, other);
    let same = |(a, b): (VersionId, VersionId)| {
        translation[one.version(a).value.0 as usize] == Some(other.version(b).value)
    };
    promised(trace, one).zip(promised(trace, other)).all(same)
}

/// Of each value of one graph: the same expression in the other, if it is there.
fn translate(from: &ChunkGraph, to: &ChunkGraph) -> Vec<Option<ValueId>> {
    let mut same: Vec<Option<ValueId>> = vec![None; from.values.len()];
    for version in &from.versions[..from.entries as usize] {
        let entry = to.entry(to.places.index(from.places.place(version.place)));
        same[version.value.0 as usize] = entry.map(|v| to.version(v).value);
    }
    for v in 0..same.len() {
        same[v] = match from.values.node(ValueId(v as u32)) {
            Node::Leaf(_) => same[v],
            Node::Post(inner) => same[inner.0 as usize],
            Node::Combined { left, right, rounded } => same[left.0 as usize]
                .zip(same[right.0 as usize])
                .and_then(|(left, right)| to.values.find(left, right, rounded)),
        };
    }
    same
}
