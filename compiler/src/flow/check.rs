//! Whether a flow still means what the program means: checked after each pass, in debug builds and tests.
//!
//! In: trace, graph, a flow. Out: nothing, or what differs, as text (a fault of the compiler, not of the user). Every node is
//! followed cell by cell with the expressions of the graph: what it makes of its operands must be the expression
//! that the program has for each of its homes at that point, and every promised place must be kept by someone.

use plan::values::ValueId;
use rustc_hash::FxHashMap;

use super::{Flow, Home, NodeId};
use crate::graph::ChunkGraph;
use crate::trace::{Place, Trace};

/// Compares a flow with the graph it came from.
pub(crate) fn check(trace: &Trace, graph: &ChunkGraph, flow: &Flow) -> Result<(), String> {
    let mut made: FxHashMap<(NodeId, u32), ValueId> = FxHashMap::default();
    // Entry values that some node is said to hand on.
    let mut handed_on: Vec<(NodeId, u32, ValueId)> = Vec::new();
    // What memory holds, in the order of rounds: of each place, all that was ever put there, with its round.
    let mut held: FxHashMap<u32, Vec<(u32, ValueId)>> = FxHashMap::default();
    let mut extra: FxHashMap<NodeId, Vec<Home>> = FxHashMap::default();
    for &(node, home) in &flow.extra {
        extra.entry(node).or_default().push(home);
    }
    let mut order: Vec<NodeId> = flow.alive().filter(|&id| !flow.node(id).is_signal()).collect();
    order.sort_by_key(|&id| flow.node(id).round);
    for id in order {
        let node = flow.node(id);
        for i in 0..node.width {
            let mut operands = Vec::new();
            for at in Flow::range(node) {
                let (operand, special) = (&flow.operands[at], flow.special(at));
                let place = graph.places.index(operand.place.plus(i));
                let value = match operand.maker() {
                    maker if operand.entry() => {
                        let value = graph.entry(place).map(|v| graph.version(v).value);
                        handed_on.extend(maker.zip(value).map(|(maker, value)| (maker, i, value)));
                        value
                    }
                    Some(maker) => made.get(&(maker, i)).copied(),
                    None => held.get(&place).and_then(|all| {
                        let overwritten = special.guard.map_or(u32::MAX, |guard| flow.node(guard).round);
                        let until = flow.node(special.by.unwrap_or(id)).round.min(overwritten);
                        let mut before = all.iter().filter(|&&(round, _)| round < until);
                        before.next_back().map(|&(_, value)| value)
                    }),
                };
                let nothing = || format!("node {} reads what no one has made: {:?}", id.0, operand);
                operands.push(value.ok_or_else(nothing)?);
            }
            let value = fold(graph, &operands, node.round_each);
            let value = value.ok_or_else(|| format!("node {} makes what the program never makes", id.0))?;
            made.insert((id, i), value);
            let further = extra.get(&id).map_or(&[][..], Vec::as_slice);
            for home in [&node.home].into_iter().chain(further).filter(|home| home.stored) {
                let place = place(node.rank, home, i);
                held.entry(graph.places.index(place)).or_default().push((node.round, value));
            }
        }
    }
    for (maker, i, value) in handed_on {
        let made = made.get(&(maker, i));
        if made != Some(&value) {
            return Err(format!("node {} hands on {made:?}, not the entry value {value:?}", maker.0));
        }
    }
    for clause in &trace.promise.clauses {
        for place in super::block_cells(clause.place, trace) {
            let index = graph.places.index(place);
            let due = graph.last(index).map(|last| graph.version(last).value);
            let found = held.get(&index).and_then(|all| all.last()).map(|&(_, value)| value);
            if due != found {
                return Err(format!("{place:?} holds {found:?} at the end, not {due:?}"));
            }
        }
    }
    Ok(())
}

fn place(rank: plan::ids::RankId, home: &Home, i: u32) -> Place {
    Place { buffer: home.buffer, rank, cell: home.cell + i }
}

fn fold(graph: &ChunkGraph, operands: &[ValueId], round_each: bool) -> Option<ValueId> {
    let (&first, rest) = operands.split_first()?;
    let last = rest.len().saturating_sub(1);
    rest.iter()
        .enumerate()
        .try_fold(first, |sum, (i, &next)| graph.values.find(sum, next, round_each || i == last))
}
