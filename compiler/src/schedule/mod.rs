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

use std::sync::Arc;

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
    schedule_held(Held::Lent(trace, graph), options, sources, &mut || {})
}

/// The same of a program that is let go of when nothing more is asked of it: steps take as much memory as moves. `at_steps` is told
/// when all is decided and only the steps have to be written.
pub fn schedule_shared(
    program: Arc<(Trace, ChunkGraph)>,
    options: &Options,
    sources: &Sources,
    at_steps: &mut dyn FnMut(),
) -> Plan {
    schedule_held(Held::Shared(program), options, sources, at_steps)
}

/// A trace and its graph.
enum Held<'a> {
    Lent(&'a Trace, &'a ChunkGraph),
    Shared(Arc<(Trace, ChunkGraph)>),
}

impl Held<'_> {
    fn get(&self) -> (&Trace, &ChunkGraph) {
        match self {
            Held::Lent(trace, graph) => (trace, graph),
            Held::Shared(program) => (&program.0, &program.1),
        }
    }
}

fn schedule_held(
    program: Held<'_>,
    options: &Options,
    sources: &Sources,
    at_steps: &mut dyn FnMut(),
) -> Plan {
    let options = &options.countable();
    let (trace, graph) = program.get();
    let program = match passes::trees::run(trace, graph, options) {
        Some(trees) => Held::Shared(Arc::new(trees)),
        None => program,
    };
    let (trace, graph) = program.get();
    let head = trace.without_moves();
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
    let mut program = Some(program);
    let planned = ways.find_map(|(widest, several)| {
        // It is there as long as it may be asked for.
        let held = program.take()?;
        let (trace, graph) = held.get();
        let mut flow = flow::build(trace, graph, &places, &finished, &spans, options, widest);
        passes::run(trace, graph, options, &mut flow);
        // With messages of one reader that fit their channels the run always ends.
        debug_assert!(flow.nodes.iter().all(|node| node.width <= flow.widest), "no pass makes a node wider");
        let ends = !several && flow.widest <= options.slots.max(1);
        program = (!ends).then_some(held);
        let mut keys = Keys::new(&flow, head.ranks, in_parts);
        flow = keys.arrange(flow);
        let mut numbered = Numbered::new(&flow, &keys, several);
        let crowded = !several && numbered.is_crowded(few);
        let spread = crowded && spread::run(&mut flow, &keys, &numbered, &places);
        if spread {
            keys = Keys::new(&flow, head.ranks, in_parts);
            numbered = numbered.in_rounds_of(&flow, &keys);
        }
        flow.settle_guards(&keys.position);
        let mut transfers = numbered.decide(&flow, &keys, options, spread.then_some(few));
        let agenda = Agenda::new(&flow, &keys, &transfers, head.ranks);
        let mut blocks = blocks::assign(&flow, &transfers, &agenda, options);
        let run = simulate::simulate(&flow, &keys, &mut transfers, &agenda, &blocks, options)?;
        blocks.of_event = Vec::new();
        Some((flow, transfers, blocks, run))
    });
    drop(program);
    let (mut flow, transfers, blocks, run) = planned.expect("messages fit their channels");
    let operands = resolve::keep_what_is_read(&mut flow, &transfers, &run);

    let resolver = Resolver::new(&head, &flow, &transfers, &memory, &places, &run);
    let waits = waits::find(&resolver, &run, &blocks);
    at_steps();
    let program = program::write(&resolver, &run, &blocks, &waits, operands);
    let mut channels = Vec::with_capacity(transfers.links.len());
    for (link, &writer) in transfers.links.iter().zip(&run.writers) {
        let kind = if link.counter { ChannelKind::Counter } else { ChannelKind::Slots };
        channels.push(Channel { writer, readers: link.first_end..link.first_end + link.readers, kind });
    }
    let (scratch_cells, readers) = (resolver.scratch_cells, run.readers);
    let serves_pre = !flow.unmarked;
    // What the steps were made of is as large as they are.
    drop((flow, transfers, run.ranks, waits));
    let mut plan = Plan {
        header: Header {
            algorithm: head.algorithm,
            collective: head.collective,
            params: head.params,
            shape: head.shape,
            ranks: head.ranks,
            cells: head.cells,
            copies: 1,
            forms: memory.forms,
            serves_post: finished.serves_post,
            serves_pre,
            scratch_cells,
            k_min: run.slots,
            schedule: Schedule::default(),
            proof: ProofStatus::AllRanks,
        },
        buffers: memory.buffers,
        overlaps: memory.overlaps,
        promise: memory.promise,
        channels,
        readers,
        blocks: program.blocks,
        steps: program.steps,
        operands: program.operands,
        waits: program.waits,
        witnesses: Vec::new(),
        spans: spans.table,
    };
    joins::run(&mut plan, !head.inplace.is_empty());
    direct::run(plan, options.direct, options.reach)
}

/// Places as the form with the most overlaps lays them.
fn laid_on_each_other(trace: &Trace, graph: &ChunkGraph) -> PlaceTable {
    match trace.inplace.is_empty() {
        true => graph.places.clone(),
        // The same cells under another form: as many as could be numbered before.
        false => PlaceTable::new(trace, Form::Same).unwrap_or_else(|_| graph.places.clone()),
    }
}
