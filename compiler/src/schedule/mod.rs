//! Scheduling: a trace becomes blocks of steps, on channels.
//!
//! In: a proved [`Trace`], its [`ChunkGraph`] (out of place), options. Out: a [`Plan`] that nothing is trusted of: `plan::verify`
//! and `validate` judge it by code that shares nothing with this.
//!
//! The one hard idea: an order T of all nodes that keeps every dependence (`keys`). Messages are sent by the step that makes their
//! value where T allows, else by a step of their own at the start of the round that takes them (`transfers`, `agenda`); rounds with
//! too many messages for that are spread (`spread`). What joins channels is one block; what is left apart is independent
//! (`blocks`). A run of all blocks with so many slots per channel shows that nothing gets stuck, and changes what would
//! (`simulate`). What blocks of a rank must wait for then follows from the memory they share (`waits`).

mod agenda;
mod blocks;
mod direct;
mod joins;
mod keys;
pub(crate) mod memory;
mod multicast;
mod program;
mod resolve;
mod simulate;
pub(crate) mod spans;
mod spread;
mod transfers;
mod waits;

use std::borrow::Cow;

use plan::plan::{Channel, ChannelKind, Header, Plan, ProofStatus};
use plan::schedule::Schedule;

use self::agenda::Agenda;
use self::keys::Keys;
use self::resolve::Resolver;
use self::transfers::Numbered;
use crate::graph::{ChunkGraph, Form, PlaceTable};
use crate::options::{Cut, Options};
use crate::source::Sources;
use crate::trace::Trace;
use crate::{flow, passes};

/// Schedules a proved trace. `graph` is that of the form [`Form::Disjoint`]. `header.k_min` is an upper bound: the slots with
/// which the run of all blocks came to its end.
pub fn schedule(trace: &Trace, graph: &ChunkGraph, options: &Options, sources: &Sources) -> Plan {
    let options = &options.countable();
    let trees = passes::trees::run(trace, graph, options);
    let (trace, graph) = trees.as_ref().map_or((trace, graph), |(trace, graph)| (trace, graph));
    let memory = memory::assign(trace);
    let spans = spans::intern(trace, sources);
    let finished = memory::finished_values(trace, graph);
    let places = laid_on_each_other(trace, graph);
    // What is cut in parts is so that nothing of it is stored: rather more slots. Without fusion all is stored.
    let in_parts = options.fuse && options.cut == Cut::Parts;
    let few = if in_parts { options.slots.max(1) } else { options.slots.clamp(1, simulate::FEW_SLOTS) };
    // Moves as wide as they are; cell by cell only if that gets stuck. Messages with several readers only if they do not.
    let widths = [u32::MAX, options.slots.max(1)].into_iter();
    let ways = widths.flat_map(|widest| [(widest, true), (widest, false)]);
    let mut ways = ways.filter(|&(_, several)| !several || options.multicast.shares());
    let planned = ways.find_map(|(widest, several)| {
        let mut flow = flow::build(trace, graph, &places, &finished, &spans, options, widest);
        passes::run(trace, graph, options, &mut flow);
        let mut keys = Keys::new(&flow, trace.ranks, in_parts);
        flow = keys.arrange(flow);
        let mut numbered = Numbered::new(&flow, &keys, several);
        let crowded = !several && numbered.is_crowded(few);
        let spread = crowded && spread::run(&mut flow, &keys, &numbered, &places);
        if spread {
            keys = Keys::new(&flow, trace.ranks, in_parts);
            numbered = numbered.in_rounds_of(&flow, &keys);
        }
        flow.settle_guards(&keys.position);
        let mut transfers = numbered.decide(&flow, &keys, options, spread.then_some(few));
        let agenda = Agenda::new(&flow, &keys, &transfers, trace.ranks);
        let mut blocks = blocks::assign(&flow, &transfers, &agenda, options);
        let run = simulate::simulate(&flow, &keys, &mut transfers, &agenda, &blocks, options)?;
        blocks.of_event = Vec::new();
        Some((flow, transfers, blocks, run))
    });
    // With messages of one reader that fit their channels the run always ends.
    let (mut flow, transfers, blocks, run) = planned.expect("messages fit their channels");
    resolve::keep_what_is_read(&mut flow, &transfers, &run);

    let resolver = Resolver::new(trace, &flow, &transfers, &memory, &places, &run);
    let waits = waits::find(&resolver, &run, &blocks);
    let program = program::write(&resolver, &run, &blocks, &waits);
    let mut channels = Vec::new();
    for (link, &writer) in transfers.links.iter().zip(&run.writers) {
        let kind = if link.counter { ChannelKind::Counter } else { ChannelKind::Slots };
        channels.push(Channel { writer, readers: link.first_end..link.first_end + link.readers, kind });
    }
    let (scratch_cells, readers) = (resolver.scratch_cells, run.readers);
    // What the steps were made of is as large as they are.
    drop((flow, transfers, run.ranks, waits));
    let mut plan = Plan {
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
            scratch_cells,
            k_min: run.slots,
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
    };
    joins::run(&mut plan, !trace.inplace.is_empty());
    direct::run(plan, options.direct, options.reach)
}

/// Places as the form with the most overlaps lays them.
fn laid_on_each_other<'a>(trace: &Trace, graph: &'a ChunkGraph) -> Cow<'a, PlaceTable> {
    match trace.inplace.is_empty() {
        true => Cow::Borrowed(&graph.places),
        // The same cells under another form: as many as could be numbered before.
        false => PlaceTable::new(trace, Form::Same).map_or(Cow::Borrowed(&graph.places), Cow::Owned),
    }
}
