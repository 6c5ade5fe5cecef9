//! Scratch of runs: fresh for each, in as few buffers as that allows.
//!
//! In: the runs of a body. Out: for each run, the first of its scratch buffers, which are added to the trace. The one
//! hard idea: layers. At no rank do two runs share scratch, but runs of one callee on different ranks may: a run per node
//! costs one buffer, not one per node. Each run takes the first layer that none of its ranks has used.

use plan::plan::Presence;
use rustc_hash::{FxHashMap, FxHashSet};

use super::body::{Walked, check_places};
use super::engine::Engine;
use super::error::Cut;
use super::flatten::{Factor, factor};
use super::halt::Res;
use crate::check::checked::Algorithm;
use crate::trace::{Buffer, BufferKind, Trace};

/// How many layers a run looks at before it takes a new one.
const LOOKED_AT: u32 = 64;

/// The layers of the runs of one callee with one factor.
#[derive(Debug, Default)]
struct Layers {
    /// The first buffer of each layer.
    buffers: Vec<u32>,
    used: FxHashSet<(u32, u32)>,
    /// By rank: it has used all layers below.
    full: FxHashMap<u32, u32>,
}

impl Layers {
    /// The first layer (of those looked at) that is free at all `ranks`; it is theirs from now on.
    fn take(&mut self, ranks: &[u32]) -> u32 {
        let start = ranks.iter().filter_map(|rank| self.full.get(rank)).copied().max().unwrap_or(0);
        let free = |layer: u32| !ranks.iter().any(|&rank| self.used.contains(&(rank, layer)));
        let count = self.buffers.len() as u32;
        let layer = (start..count.min(start + LOOKED_AT)).find(|&layer| free(layer)).unwrap_or(count);
        for &rank in ranks {
            self.used.insert((rank, layer));
            let full = self.full.entry(rank).or_default();
            while self.used.contains(&(rank, *full)) {
                *full += 1;
            }
        }
        layer
    }
}

/// For each run, the first of its scratch buffers in the trace.
pub(super) fn scratch_layers(
    engine: &Engine<'_>,
    algorithm: &Algorithm,
    walked: &Walked,
    trace: &mut Trace,
) -> Res<Vec<u32>> {
    let mut first = vec![0; walked.runs.len()];
    let mut groups: FxHashMap<(u32, Factor), Layers> = FxHashMap::default();
    let mut blocks: u64 = trace.buffers.iter().map(|b| u64::from(b.blocks)).sum();
    for (i, run) in walked.runs.iter().enumerate() {
        let callee = &engine.callees[run.callee as usize].trace;
        let scratch = || callee.buffers.iter().filter(|b| b.kind == BufferKind::Scratch);
        if scratch().next().is_none() {
            continue;
        }
        let factor = factor(engine, walked, run, trace.cells);
        let ranks = &walked.ranks[run.first_rank as usize..][..run.ranks as usize];
        let layers = groups.entry((run.callee, factor)).or_default();
        let layer = layers.take(ranks);
        if let Some(&buffer) = layers.buffers.get(layer as usize) {
            first[i] = buffer;
            continue;
        }
        first[i] = trace.buffers.len() as u32;
        layers.buffers.push(first[i]);
        let name = callee.algorithm.rsplit("::").next().unwrap_or(&callee.algorithm);
        for buffer in scratch() {
            let own = u64::from(buffer.blocks) * u64::from(callee.cells) * u64::from(factor);
            let own_blocks = own.div_ceil(trace.cells.into());
            blocks += own_blocks;
            let span = algorithm.sites[run.site as usize];
            let cuts = vec![Cut { span, cells: trace.cells.into() }];
            check_places(engine.limits.places, trace.ranks, blocks, trace.cells.into(), cuts, span)?;
            let suffix = if layer == 0 { String::new() } else { format!(".{}", layer + 1) };
            trace.buffers.push(Buffer {
                name: format!("{name}.{}{suffix}", buffer.name),
                kind: BufferKind::Scratch,
                blocks: own_blocks as u32,
                at: Presence::All,
                span: buffer.span,
            });
        }
    }
    Ok(first)
}
