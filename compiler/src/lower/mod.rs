//! Plain lowering: a trace becomes one sequential block of steps per rank.
//!
//! In: a proved [`Trace`], its [`ChunkGraph`], the sources. Out: a [`Plan`] that nothing is trusted of: `plan::verify`
//! and `validate` judge it by code that shares nothing with this.
//!
//! The one hard idea: levels. Every move is cut into cells, every cell move into events (a send where its source
//! lies, a receive where its destination lies, or one local event). Each event gets the least level that is above
//! those of all events it must follow: the write it reads, the writes and reads it overwrites, its message, and the
//! receive of the message before it on its channel. A rank does its events in order of level. Each edge but program
//! order climbs strictly, and program order never descends, so no cycle can exist even with one slot per channel:
//! condition D holds with `k_min = 1`. Moves are met round by round of data flow, so independent flows keep abreast.

mod buffers;
mod emit;
mod events;
mod order;
mod rounds;
mod spans;
mod step_block;

use plan::ids::{BlockId, RankId};
use plan::plan::{Block, Header, Plan, ProofStatus};
use plan::schedule::Schedule;

use crate::graph::ChunkGraph;
use crate::options::Options;
use crate::source::Sources;
use crate::trace::Trace;

/// Lowers a proved trace. `graph` must be that of the form with the most overlaps that the algorithm claims.
pub fn lower(trace: &Trace, graph: &ChunkGraph, _options: &Options, sources: &Sources) -> Plan {
    let memory = buffers::assign(trace);
    let spans = spans::intern(trace, sources);
    let finished = buffers::finished_values(trace, graph);
    let events = events::collect(trace, graph, &memory, &finished, &spans);
    let program = order::order(&events, trace.ranks);

    let blocks = (0..trace.ranks).map(|rank| {
        let body = program.ranks[rank as usize]..program.ranks[rank as usize + 1];
        Block {
            rank: RankId(rank),
            position: 0,
            prologue: body.start..body.start,
            epilogue: body.end..body.end,
            body,
        }
    });
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
            scratch_cells: program.scratch_cells,
            k_min: 1,
            schedule: Schedule::default(),
            proof: ProofStatus::AllRanks,
        },
        promise: memory.promise,
        buffers: memory.buffers,
        overlaps: memory.overlaps,
        // One block per rank, so the block of a rank has its number.
        channels: program.channels,
        readers: program.readers.into_iter().map(|rank| BlockId(rank.0)).collect(),
        blocks: blocks.collect(),
        steps: program.steps,
        operands: program.operands,
        waits: Vec::new(),
        witnesses: Vec::new(),
        spans: spans.table,
    }
}
