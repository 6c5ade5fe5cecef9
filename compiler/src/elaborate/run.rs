//! One `run`: its ranks, its callee's arguments, its bindings.
//!
//! In: `checked::Run`. Out: a [`RunRecord`]; `flatten` writes the callee's moves out in its place. What can be told
//! from the bindings alone is refused here, with the loop variables at hand; what needs the callee's moves, there.

use grammar::span::Span;
use plan::ids::RankId;
use plan::plan::Presence;

use super::body::{Bind, RunRecord, Starts, Walker};
use super::engine::{Key, Watch};
use super::error::FaultKind;
use super::halt::{End, Halt, Res};
use super::loops::Host;
use crate::check::checked::{self, RankSet, Ranks, Slot};
use crate::trace::BufferKind;

/// A buffer of the callee as far as bindings are concerned.
#[derive(Debug, Clone, Copy)]
struct Formal {
    kind: BufferKind,
    blocks: u32,
    at: Presence,
}

impl<'p> Walker<'_, 'p> {
    /// A `run`.
    pub(crate) fn run(&mut self, run: &'p checked::Run) -> Res<()> {
        self.run_within(run).map_err(|halt| halt.within(run.span))
    }

    fn run_within(&mut self, run: &'p checked::Run) -> Res<()> {
        let first_rank = self.out.ranks.len();
        let shape = self.rank_set(run)?;
        let ranks = (self.out.ranks.len() - first_rank) as u32;
        if ranks == 0 {
            return Ok(());
        }
        let buffers = run.bindings.len() as u64;
        self.machine().charge(u64::from(ranks).saturating_mul(1 + buffers), 8, run.on_span)?;
        let params = self.arguments(run, &shape, ranks)?;
        let callee = self.engine.callee(Key { algorithm: run.callee, shape, params }, run.span)?;
        if self.watch == Watch::Run(self.out.runs.len() as u32) {
            return Err(Halt::new(End::Watched, run.span));
        }
        let trace = self.engine.callees[callee as usize].trace.clone();
        let formals: Vec<Formal> = trace.buffers[..run.bindings.len()]
            .iter()
            .map(|b| Formal { kind: b.kind, blocks: b.blocks, at: b.at })
            .collect();
        let first_bind = self.out.binds.len();
        for (formal, binding) in formals.iter().zip(&run.bindings) {
            let bind = self.binding(binding, *formal, first_rank)?;
            self.out.binds.push(bind);
        }
        let (chunks, blocks) = self.equal_bindings(run, &formals, first_bind)?;
        let alias = self.overlaps(run, &formals, first_rank, first_bind)?;
        self.inlined += trace.sources.len() as u64;
        self.room(0, run.span)?;
        // Regions of no chunks: an empty run moves nothing, and neither does a callee without moves.
        if chunks == 0 || trace.moves.is_empty() {
            self.out.ranks.truncate(first_rank);
            self.out.binds.truncate(first_bind);
            self.inlined -= trace.sources.len() as u64;
            return Ok(());
        }
        let elements = (self.out.ranks.len() + self.out.starts.len()) as u64;
        if elements > self.engine.limits.moves {
            let kind = FaultKind::TooManyElements { limit: self.engine.limits.moves };
            return Err(Halt::fault(kind, run.span));
        }
        self.out.runs.push(RunRecord {
            at: self.out.moves.len() as u32,
            callee,
            site: run.site,
            lane: self.lane,
            first_rank: first_rank as u32,
            ranks,
            first_bind: first_bind as u32,
            chunks,
            blocks,
            alias,
        });
        Ok(())
    }

    /// Appends the ranks in order, and gives the callee's shape.
    fn rank_set(&mut self, run: &'p checked::Run) -> Res<Vec<u32>> {
        let levels = self.engine.program.algorithm(run.callee).levels;
        let first = self.out.ranks.len();
        match &run.on {
            RankSet::Ranks(ranks) => {
                self.list_ranks(ranks)?;
                self.out.ranks.extend_from_slice(&self.rank_list);
                if levels != 1 {
                    return Ok(match ranks {
                        Ranks::Tuple(coords, _) => {
                            let free = self.shape.iter().zip(coords).filter(|(_, coord)| coord.is_none());
                            free.map(|(&size, _)| size).collect()
                        }
                        _ => self.shape.to_vec(),
                    });
                }
            }
            RankSet::Range(from, to) => {
                let (start, end) = (self.machine().eval(*from)?, self.machine().eval(*to)?);
                if end < start {
                    return Err(Halt::fault(FaultKind::BackwardRange { from: start, to: end }, run.on_span));
                }
                if start < end {
                    let first = self.rank_of(start, *from)?;
                    if end > i64::from(self.ranks) {
                        let kind = FaultKind::RankOutOfRange { value: end, ranks: self.ranks, end: true };
                        return Err(Halt::fault(kind, self.machine().span(*to)));
                    }
                    let last = (end - 1) as u32;
                    self.machine().charge(u64::from(last - first) / 8, 0, run.on_span)?;
                    self.out.ranks.extend(first..=last);
                }
            }
            RankSet::List(list) => {
                self.list(list, &mut |walker: &mut Self, value, span| walker.listed(value, span))?;
            }
        }
        self.distinct(first, run.on_span)?;
        Ok(vec![(self.out.ranks.len() - first) as u32])
    }

    fn listed(&mut self, value: i64, span: Span) -> Res<()> {
        if !(0..i64::from(self.ranks)).contains(&value) {
            return Err(Halt::fault(
                FaultKind::RankOutOfRange { value, ranks: self.ranks, end: false },
                span,
            ));
        }
        if self.out.ranks.len() as u64 >= self.engine.limits.moves {
            let kind = FaultKind::TooManyElements { limit: self.engine.limits.moves };
            return Err(Halt::fault(kind, span));
        }
        self.out.ranks.push(value as u32);
        Ok(())
    }

    /// Refuses a rank set that names a rank twice.
    fn distinct(&mut self, first: usize, span: Span) -> Res<()> {
        if self.out.ranks[first..].is_sorted_by(|a, b| a < b) {
            return Ok(());
        }
        let mut sorted = self.out.ranks[first..].to_vec();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Halt::fault(FaultKind::RepeatedRank { rank: pair[0] }, span)),
            None => Ok(()),
        }
    }

    fn arguments(&mut self, run: &'p checked::Run, shape: &[u32], ranks: u32) -> Res<Vec<i64>> {
        let mut given = Vec::with_capacity(run.args.len());
        for &arg in &run.args {
            given.push(match arg {
                Some(arg) => Some((self.machine().eval(arg)?, self.machine().span(arg))),
                None => None,
            });
        }
        let program = self.engine.program;
        let callee = program.algorithm(run.callee);
        // Defaults speak of the callee's own sizes.
        let outer = self.machine().enter(callee.frame.max(1));
        for (i, &size) in shape.iter().enumerate() {
            self.machine().set(Slot(1 + i as u32), size.into());
        }
        let values = self.engine.params(&callee.params, |i| given[i], callee.levels, ranks, &callee.name);
        self.machine().leave(outer);
        values
    }

    fn binding(&mut self, binding: &'p checked::Binding, formal: Formal, first_rank: usize) -> Res<Bind> {
        let buffer = if binding.region.buffer == crate::check::SIGNAL {
            self.out.signal
        } else {
            binding.region.buffer
        };
        let ranks = self.out.ranks.len() - first_rank;
        let mut len = None;
        let mut starts = Starts::Each(self.out.starts.len() as u32);
        for q in 0..ranks {
            if !formal.at.holds(RankId(q as u32)) {
                if binding.by_rank {
                    self.out.starts.push(0);
                }
                continue;
            }
            let rank = self.out.ranks[first_rank + q];
            self.present(buffer, rank, &binding.region)?;
            if len.is_some() && !binding.by_rank {
                continue;
            }
            self.machine().set(Slot(0), q as i64);
            let region = self.region(&binding.region)?;
            if let Some(first) = len.filter(|&first| first != region.len) {
                let (to, from) = (u64::from(first), u64::from(region.len));
                let kind = FaultKind::UnequalRuns { to, from, source: binding.region.span, blocks: false };
                return Err(Halt::fault(kind, binding.region.span));
            }
            len = Some(region.len);
            if binding.by_rank {
                self.out.starts.push(region.cell);
            } else {
                starts = Starts::Same(region.cell);
            }
        }
        Ok(Bind { buffer, starts, len: len.unwrap_or(0) })
    }

    /// Own chunks and blocks of the callee that they are, alike for all bindings.
    fn equal_bindings(
        &mut self,
        run: &'p checked::Run,
        formals: &[Formal],
        first_bind: usize,
    ) -> Res<(u32, u32)> {
        let mut reference: Option<usize> = None;
        for (i, formal) in formals.iter().enumerate() {
            let len = self.out.binds[first_bind + i].len;
            if formal.blocks == 0 && len == 0 {
                continue;
            }
            let Some(first) = reference else {
                if formal.blocks > 0 {
                    reference = Some(i);
                    continue;
                }
                return Err(self.unequal(run, formals, first_bind, i, i));
            };
            let (own, other) = (self.out.binds[first_bind + first].len, formals[first].blocks);
            if u64::from(len) * u64::from(other) != u64::from(own) * u64::from(formal.blocks) {
                return Err(self.unequal(run, formals, first_bind, i, first));
            }
        }
        Ok(match reference {
            Some(i) => (self.out.binds[first_bind + i].len, formals[i].blocks),
            // Without buffers (a barrier), a block of the callee is a block of ours.
            None => (self.out.chunks, 1),
        })
    }

    #[cold]
    fn unequal(
        &self,
        run: &checked::Run,
        formals: &[Formal],
        first_bind: usize,
        i: usize,
        first: usize,
    ) -> Box<Halt> {
        let callee = self.engine.program.algorithm(run.callee);
        let declared = &self.engine.program.collective(callee.collective).buffers;
        let bind = |i: usize| u64::from(self.out.binds[first_bind + i].len);
        let kind = FaultKind::UnequalBindings {
            buffers: [declared[i].name.clone(), declared[first].name.clone()],
            chunks: [bind(i), bind(first)],
            blocks: [formals[i].blocks, formals[first].blocks],
            other: run.bindings[first].span,
        };
        Halt::fault(kind, run.bindings[i].span)
    }

    /// Refuses bindings that overlap where both may be written; tells whether any overlap at all.
    fn overlaps(
        &mut self,
        run: &'p checked::Run,
        formals: &[Formal],
        first_rank: usize,
        first_bind: usize,
    ) -> Res<bool> {
        let ranks = self.out.ranks.len() - first_rank;
        let mut alias = false;
        for i in 1..formals.len() {
            for j in 0..i {
                let both_in = formals[i].kind == BufferKind::In && formals[j].kind == BufferKind::In;
                let (a, b) = (self.out.binds[first_bind + i], self.out.binds[first_bind + j]);
                if a.buffer != b.buffer || both_in {
                    continue;
                }
                self.machine().charge(ranks as u64 / 8, 0, run.span)?;
                let overlap = (0..ranks).find(|&q| {
                    let rank = RankId(q as u32);
                    let (x, y) = (start(&self.out.starts, a, q), start(&self.out.starts, b, q));
                    let both = formals[i].at.holds(rank) && formals[j].at.holds(rank);
                    both && x < y + b.len && y < x + a.len
                });
                let Some(q) = overlap else { continue };
                alias = true;
                if formals[i].kind != BufferKind::In && formals[j].kind != BufferKind::In {
                    let callee = self.engine.program.algorithm(run.callee);
                    let declared = &self.engine.program.collective(callee.collective).buffers;
                    let buffers = [declared[i].name.clone(), declared[j].name.clone()];
                    let rank = self.out.ranks[first_rank + q];
                    let other = run.bindings[j].span;
                    let kind = FaultKind::BindingsOverlap { buffers, other, rank };
                    return Err(Halt::fault(kind, run.bindings[i].span));
                }
            }
        }
        Ok(alias)
    }
}

/// Where a bound region starts for rank `q` of the callee, in own chunks.
#[inline]
pub(crate) fn start(starts: &[u32], bind: Bind, q: usize) -> u32 {
    match bind.starts {
        Starts::Same(start) => start,
        Starts::Each(first) => starts[first as usize + q],
    }
}
