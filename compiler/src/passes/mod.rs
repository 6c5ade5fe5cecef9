//! Fusion: what need not be a step of its own becomes part of another one.
//!
//! In: a flow as the program writes it. Out: one that computes the same values in fewer nodes. No pass changes the
//! order in which operands are combined, or where a partial result is rounded. After each, in debug builds and
//! tests, the flow is held against the program again. Before there is a flow, multicasts may become trees (`trees`).

mod copies;
mod entries;
mod folds;
mod relays;
mod shares;
pub(crate) mod trees;

use crate::flow::{self, Flow, NodeId};
use crate::graph::ChunkGraph;
use crate::options::Options;
use crate::trace::Trace;

/// Every pass by name, in order.
pub(crate) fn run(trace: &Trace, graph: &ChunkGraph, options: &Options, flow: &mut Flow) {
    checked(trace, graph, flow, "build");
    if !options.fuse {
        return;
    }
    entries::run(flow);
    checked(trace, graph, flow, "entries");
    relays::run(flow, options);
    checked(trace, graph, flow, "relays");
    folds::run(flow, options);
    checked(trace, graph, flow, "folds");
    copies::run(flow, options);
    checked(trace, graph, flow, "copies");
    shares::run(flow);
    checked(trace, graph, flow, "shares");
}

/// How many operands name each node as their maker.
fn uses(flow: &Flow) -> Vec<u32> {
    let mut uses = vec![0; flow.nodes.len()];
    for id in flow.alive() {
        for operand in flow.operands(flow.node(id)) {
            if let Some(NodeId(maker)) = operand.maker() {
                uses[maker as usize] += 1;
            }
        }
    }
    uses
}

fn checked(trace: &Trace, graph: &ChunkGraph, flow: &Flow, pass: &str) {
    if cfg!(debug_assertions)
        && flow.nodes.len() < 20_000
        && let Err(why) = flow::check(trace, graph, flow)
    {
        let nodes = flow.alive().take(40).map(|id| format!("\n{id:?} {:?}", flow.node(id)));
        panic!("after `{pass}` the flow of {} is wrong: {why}{}", trace.algorithm, nodes.collect::<String>());
    }
}
