//! Scheduling: a trace becomes blocks of steps, on channels.
//!
//! In: a proved [`Trace`], its [`ChunkGraph`] (out of place), options. Out: a [`Plan`] that nothing is trusted of: `plan::verify`
//! and `validate` judge it by code that shares nothing with this.
//!
//! The one hard idea: an order T of all nodes that keeps every dependence (`keys`). Every rank does what it does in that order;
//! messages are sent by the step that makes their value where T allows (`transfers`); a run of all ranks with so many slots per channel
//! shows that nothing gets stuck, and splits what would (`simulate`). Only then is a rank's work dealt out to
//! blocks (`blocks`), which keeps what the run has shown, since blocks and their waits ask for less than that order does.

mod blocks;
mod joins;
mod keys;
pub(crate) mod memory;
mod program;
mod resolve;
mod simulate;
pub(crate) mod spans;
mod transfers;
mod waits;

use std::borrow::Cow;

use plan::ids::BlockId;
use plan::plan::{Channel, ChannelKind, Header, Plan, ProofStatus};
use plan::schedule::Schedule;

use self::keys::Keys;
use self::program::Order;
use self::resolve::Resolver;
use self::transfers::Transfers;
use crate::graph::{ChunkGraph, Form, PlaceTable};
use crate::options::Options;
use crate::source::Sources;
use crate::trace::Trace;
use crate::{flow, passes};

/// Schedules a proved trace. `graph` is that of the form [`Form::Disjoint`]. `header.k_min` is an upper bound: the slots that were
/// counted on.
pub fn schedule(trace: &Trace, graph: &ChunkGraph, options: &Options, sources: &Sources) -> Plan {
    let memory = memory::assign(trace);
    let spans = spans::intern(trace, sources);
    let finished = memory::finished_values(trace, graph);
    let places = laid_on_each_other(trace, graph);
    let mut flow = flow::build(trace, graph, &places, &finished, &spans);
    passes::run(trace, graph, options, &mut flow);

    let keys = Keys::new(&flow, trace.ranks);
    let mut transfers = Transfers::new(&flow, &keys, options);
    let run = simulate::simulate(&flow, &keys, &mut transfers, options, trace.ranks);
    resolve::keep_what_is_read(&mut flow, &transfers, &run);

    let resolver = Resolver::new(trace, &flow, &transfers, &memory, &places, &run);
    let blocks = blocks::assign(&resolver, &run, options);
    let waits = waits::find(&resolver, &run, &blocks);
    let order = Order::new(&blocks);
    let joined = joins::find(&resolver, &run, &order, &waits);
    let program = program::write(&resolver, &run, &blocks, &order, &waits, &joined);

    let mut readers = Vec::new();
    let mut channels = Vec::new();
    for (link, (writer, reader)) in transfers.links.iter().zip(program::ends(&resolver, &run, &blocks)) {
        let kind = if link.counter { ChannelKind::Counter } else { ChannelKind::Slots };
        let at = readers.len() as u32;
        readers.push(reader);
        channels.push(Channel { writer, readers: at..at + 1, kind });
    }
    let _: &Vec<BlockId> = &readers;
    Plan {
        header: Header {
            algorithm: trace.algorithm.clone(),
            collective: trace.collective.clone(),
            params: trace.params.clone(),
            shape: trace.shape.clone(),
            ranks: trace.ranks,
            cells: trace.cells,
            copies: 1,
            forms: memory.forms,
            serves_post: finished.serves_post,
            scratch_cells: resolver.scratch_cells.clone(),
            k_min: options.slots.max(1),
            schedule: Schedule::default(),
            proof: ProofStatus::AllRanks,
        },
        buffers: memory.buffers.clone(),
        overlaps: memory.overlaps.clone(),
        promise: memory.promise.clone(),
        channels,
        readers,
        blocks: program.blocks,
        steps: program.steps,
        operands: program.operands,
        waits: program.waits,
        witnesses: Vec::new(),
        spans: spans.table,
    }
}

/// Places as the form with the most overlaps lays them.
fn laid_on_each_other<'a>(trace: &Trace, graph: &'a ChunkGraph) -> Cow<'a, PlaceTable> {
    match trace.inplace.is_empty() {
        true => Cow::Borrowed(&graph.places),
        // The same cells under another form: as many as could be numbered before.
        false => PlaceTable::new(trace, Form::Same).map_or(Cow::Borrowed(&graph.places), Cow::Owned),
    }
}
