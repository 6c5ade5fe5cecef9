//! From moves to nodes.
//!
//! In: trace, graph (out of place), the places under the form with the most overlaps, options, the most cells of a node. Out: the flow as the program
//! writes it, with rounds; nothing is fused yet. Cost: linear in the cells that moves read and write.

use plan::pre::Pre;
use rustc_hash::FxHashMap;

use super::exits::exits;
use super::hazards::Hazards;
use super::live::Live;
use super::originals::Originals;
use super::parts::Parts;
use super::pieces::{Cutter, ENTRY};
use super::{Flow, Home, Kind, Node, NodeId, Operand};
use crate::graph::{ChunkGraph, PlaceTable, adds};
use crate::options::{Cut, Options};
use crate::schedule::memory::Finished;
use crate::schedule::spans::Spans;
use crate::trace::{Move, MoveId, Trace};

/// The flow of a trace.
pub(crate) fn build(
    trace: &Trace,
    graph: &ChunkGraph,
    places: &PlaceTable,
    finished: &Finished,
    spans: &Spans,
    options: &Options,
    widest: u32,
) -> Flow {
    let live = Live::new(trace, graph);
    let mut flow = Flow::default();
    flow.nodes.reserve(trace.moves.len());
    // All that moves read; few programs have passes append more.
    let operands = trace.sources.len() + trace.moves.iter().filter(|mv| adds(trace, mv)).count();
    flow.operands.reserve(operands);
    let within = |mv: &Move| trace.sources(mv).iter().all(|source| source.rank == mv.to.rank);
    let copies = trace.moves.iter().any(within);
    let mut hazards = Hazards::new(places, copies);
    let originals = Originals::new(trace, graph, places, options.fuse && copies);
    let parts = match options.cut {
        Cut::Parts if options.fuse => Parts::new(trace, graph, finished, &live, &originals, places),
        _ => Parts::default(),
    };
    let mut cutter = Cutter {
        trace,
        graph,
        places,
        live: &live,
        finished,
        originals: &originals,
        parts: &parts,
        maker: vec![ENTRY; graph.versions.len()],
        exits: FxHashMap::default(),
        widest: widest.max(1),
        overlaid: !trace.inplace.is_empty(),
    };
    for exit in exits(trace, graph, cutter.widest) {
        let id = NodeId(flow.nodes.len() as u32);
        let first = flow.operands.len() as u32;
        flow.widest = flow.widest.max(exit.width);
        flow.operands.push(Operand::new(exit.place, true, None));
        flow.nodes.push(Node {
            rank: exit.place.rank,
            width: exit.width,
            first,
            count: 1,
            kind: Kind::Copy,
            round_each: false,
            post: false,
            pre: Pre::NONE,
            gone: false,
            lane: 0,
            home: Home { buffer: exit.place.buffer, cell: exit.place.cell, stored: true },
            round: 0,
            span: spans.implements,
        });
        hazards.group(&mut flow, id.index(), false);
        cutter.exits.insert(exit.place, (id, exit.width));
    }
    let moves = &trace.moves;
    let mut start = 0;
    while let Some(first) = moves.get(start) {
        let end = match first.step {
            0 => start + 1,
            step => start + moves[start..].iter().take_while(|mv| mv.step == step).count(),
        };
        let nodes = flow.nodes.len();
        let mut alone = end - start == 1;
        for (index, mv) in (start as u32..).zip(&moves[start..end]) {
            let span = spans.of_origin[mv.origin.0 as usize];
            alone &= cutter.cut(MoveId(index), span, &mut flow);
        }
        hazards.group(&mut flow, nodes, alone);
        start = end;
    }
    // Entry values that stay where they are.
    for node in &flow.nodes {
        for operand in flow.operands[Flow::range(node)].iter_mut().filter(|operand| operand.entry()) {
            let changed = |i: u32| hazards.is_changed(places.index(operand.place.plus(i)));
            operand.set_stays(!(0..node.width).any(changed));
        }
    }
    flow
}
