//! Folded plans spelled out: for all ranks, or for one.
//!
//! In: a folded plan that `misfit` has passed. Out: plans. Channels are numbered anew, by writer, then by reader, as the compiler numbers
//! those of a plan of all ranks.

use rustc_hash::FxHashMap;

use super::Folded;
use crate::collective::{BlockRef, Clause, Promise};
use crate::ids::{BlockId, ChannelId, RankId, StepId};
use crate::plan::{Block, Channel, Header, Operand, Plan, Step};
use crate::verify::Limits;

/// Why a folded plan cannot be spelled out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotUnfolded {
    /// It does not fit together.
    #[error("{0}")]
    Misfit(String),
    /// It is more than may be.
    #[error("spelled out for all ranks the plan has {found} {what}, more than the limit of {limit}")]
    TooLarge {
        /// Of what.
        what: &'static str,
        /// How many.
        found: u64,
        /// The limit.
        limit: u64,
    },
}

impl Folded {
    /// How many steps all ranks have together.
    pub fn all_steps(&self) -> u64 {
        self.plan.steps.len() as u64 * u64::from(self.order())
    }

    /// The plan of all ranks; nothing of it is trusted.
    pub fn unfold(&self, limits: &Limits) -> Result<Plan, NotUnfolded> {
        match self.misfit() {
            Some(why) => return Err(NotUnfolded::Misfit(why)),
            None => self.fits(limits)?,
        }
        let plan = &self.plan;
        let order = self.order();
        let (blocks, steps) = (plan.blocks.len() as u32, plan.steps.len() as u32);
        let (channels, number) = self.channels(order);
        let scratch_cells = plan.header.scratch_cells.repeat(order as usize);
        let header = Header { scratch_cells, ..plan.header.clone() };
        let mut whole = Plan {
            promise: self.promise(order),
            ..Plan::empty(header, plan.buffers.clone(), plan.spans.clone())
        };
        for (times, c) in channels {
            let channel = &plan.channels[c as usize];
            let first = whole.readers.len() as u32;
            for (at, reader) in (channel.readers.start as usize..).zip(plan.readers(channel)) {
                let at = self.sum(times, self.times[at]);
                whole.readers.push(BlockId(at * blocks + reader.0));
            }
            let writer = BlockId(times * blocks + channel.writer.0);
            let readers = first..whole.readers.len() as u32;
            whole.channels.push(Channel { writer, readers, kind: channel.kind });
        }
        for times in 0..order {
            whole.overlaps.extend(plan.overlaps.iter().filter_map(|&overlap| self.overlap(overlap, times)));
            let shift = |range: &std::ops::Range<u32>| range.start + times * steps..range.end + times * steps;
            for (b, block) in plan.blocks.iter().enumerate() {
                whole.blocks.push(Block {
                    rank: self.rank(block.rank, times),
                    position: block.position,
                    prologue: shift(&block.prologue),
                    body: shift(&block.body),
                    epilogue: shift(&block.epilogue),
                });
                for step in &plan.steps[block.prologue.start as usize..block.epilogue.end as usize] {
                    let made = self.step(step, BlockId::new(b), times, &mut whole, &|from, c| {
                        ChannelId(number[(from * plan.channels.len() as u32 + c) as usize])
                    });
                    let first = whole.waits.len() as u32;
                    whole.waits.extend(plan.waits(step).iter().map(|wait| StepId(wait.0 + times * steps)));
                    whole.steps.push(Step { waits: first, ..made });
                }
            }
        }
        whole.overlaps.sort_by_key(|overlap| (overlap.left, overlap.rank, overlap.left_cell));
        Ok(whole)
    }

    /// The program of one rank, as it stands in the plan of all: the blocks at the other ends of its channels are there, empty.
    /// For showing.
    pub(crate) fn of_rank(&self, rank: RankId) -> Plan {
        let plan = &self.plan;
        let (home, times) = self.home(rank);
        // Blocks that are needed: (rank, position) of the whole, with the standing block that each is like.
        let mut known: Vec<(RankId, u32)> = Vec::new();
        let own = |block: &BlockId| plan.blocks[block.index()].rank == home;
        let name = |block: BlockId, times: u32| {
            let block = &plan.blocks[block.index()];
            (self.rank(block.rank, times), block.position)
        };
        // Channels at hand: how often the writer is taken round, and which one.
        let mut channels: Vec<(u32, u32)> = Vec::new();
        for (c, channel) in plan.channels.iter().enumerate() {
            if own(&channel.writer) {
                channels.push((times, c as u32));
            }
            for (at, reader) in (channel.readers.start as usize..).zip(plan.readers(channel)) {
                if own(reader) {
                    channels.push((self.sum(times, self.back(self.times[at])), c as u32));
                }
            }
        }
        channels.sort_unstable();
        channels.dedup();
        for &(from, c) in &channels {
            let channel = &plan.channels[c as usize];
            known.push(name(channel.writer, from));
            for (at, &reader) in (channel.readers.start as usize..).zip(plan.readers(channel)) {
                known.push(name(reader, self.sum(from, self.times[at])));
            }
        }
        known.extend(
            plan.blocks.iter().filter(|block| block.rank == home).map(|block| (rank, block.position)),
        );
        known.sort_unstable();
        known.dedup();
        let find = |wanted: (RankId, u32)| BlockId::new(known.binary_search(&wanted).unwrap_or(0));
        let mut one = Plan {
            overlaps: plan
                .overlaps
                .iter()
                .filter(|o| o.rank == home)
                .filter_map(|&o| self.overlap(o, times))
                .collect(),
            promise: Promise {
                clauses: (plan.promise.clauses.iter().filter(|clause| clause.place.rank == home))
                    .map(|clause| Clause { place: self.block(clause.place, times), ..*clause })
                    .collect(),
                lists: plan.promise.lists.iter().map(|list| self.list(list, times)).collect(),
                synchronised: plan.promise.synchronised,
            },
            ..Plan::empty(plan.header.clone(), plan.buffers.clone(), plan.spans.clone())
        };
        for &(from, c) in &channels {
            let channel = &plan.channels[c as usize];
            let first = one.readers.len() as u32;
            for (at, &reader) in (channel.readers.start as usize..).zip(plan.readers(channel)) {
                one.readers.push(find(name(reader, self.sum(from, self.times[at]))));
            }
            let readers = first..one.readers.len() as u32;
            one.channels.push(Channel {
                writer: find(name(channel.writer, from)),
                readers,
                kind: channel.kind,
            });
        }
        let number = |from: u32, c: u32| ChannelId::new(channels.binary_search(&(from, c)).unwrap_or(0));
        let first_own = plan.blocks.iter().position(|block| block.rank == home).unwrap_or(0);
        let base = plan.blocks.get(first_own).map_or(0, |block| block.prologue.start);
        for &(of, position) in &known {
            let start = one.steps.len() as u32;
            let like = (of == rank).then(|| first_own + position as usize);
            let Some((b, block)) = like.and_then(|b| Some((b, plan.blocks.get(b)?))) else {
                let none = start..start;
                let (prologue, body, epilogue) = (none.clone(), none.clone(), none);
                one.blocks.push(Block { rank: of, position, prologue, body, epilogue });
                continue;
            };
            let shift = |range: &std::ops::Range<u32>| {
                range.start - block.prologue.start + start..range.end - block.prologue.start + start
            };
            one.blocks.push(Block {
                rank: of,
                position,
                prologue: shift(&block.prologue),
                body: shift(&block.body),
                epilogue: shift(&block.epilogue),
            });
            for step in &plan.steps[block.prologue.start as usize..block.epilogue.end as usize] {
                let made = self.step(step, BlockId::new(b), times, &mut one, &number);
                let first = one.waits.len() as u32;
                one.waits.extend(plan.waits(step).iter().map(|wait| StepId(wait.0 - base)));
                one.steps.push(Step { waits: first, ..made });
            }
        }
        one
    }

    /// Appends the operands of a step of a standing block, taken round; the step, but for its waits.
    fn step(
        &self,
        step: &Step,
        block: BlockId,
        times: u32,
        out: &mut Plan,
        number: &impl Fn(u32, u32) -> ChannelId,
    ) -> Step {
        let operands = out.operands.len() as u32;
        for (received, operand) in (self.plan.src(step).iter().map(|o| (true, o)))
            .chain(self.plan.dst(step).iter().map(|o| (false, o)))
        {
            out.operands.push(match *operand {
                Operand::Channel(channel) => {
                    let end = self.end(channel, block).filter(|_| received);
                    let from = end.map_or(times, |at| self.sum(times, self.back(self.times[at])));
                    Operand::Channel(number(from, channel.0))
                }
                Operand::Local { buffer, cell } => {
                    Operand::Local { buffer, cell: self.cell(buffer, cell, times) }
                }
                peer @ Operand::Peer { .. } => peer,
            });
        }
        Step { operands, ..*step }
    }

    /// All channels, (times, number), sorted by writer, those of one by reader, round from the writer; and where each is, by times and number.
    fn channels(&self, order: u32) -> (Vec<(u32, u32)>, Vec<u32>) {
        let plan = &self.plan;
        let rank = |block: BlockId, times: u32| self.rank(plan.blocks[block.index()].rank, times);
        let ranks = plan.header.ranks;
        let mut channels: Vec<(u32, u32)> =
            (0..order).flat_map(|times| (0..plan.channels.len() as u32).map(move |c| (times, c))).collect();
        channels.sort_by_key(|&(times, c)| {
            let channel = &plan.channels[c as usize];
            let first = channel.readers.start as usize;
            let reader = rank(plan.readers[first], self.sum(times, self.times[first]));
            let writer = rank(channel.writer, times);
            (writer, if reader < writer { reader.0 + ranks } else { reader.0 })
        });
        let mut number = vec![0; channels.len()];
        for (at, &(times, c)) in (0..).zip(&channels) {
            number[(times * plan.channels.len() as u32 + c) as usize] = at;
        }
        (channels, number)
    }

    /// The promise to all ranks; lists that are the same are one.
    fn promise(&self, order: u32) -> Promise {
        let given = &self.plan.promise;
        let mut promise = Promise { synchronised: given.synchronised, ..Promise::default() };
        let mut known: FxHashMap<Vec<BlockRef>, u32> = FxHashMap::default();
        for times in 0..order {
            for clause in &given.clauses {
                let Some(list) = given.lists.get(clause.list as usize) else { continue };
                let list = self.list(list, times);
                let list = *known.entry(list).or_insert_with_key(|list| {
                    promise.lists.push(list.clone());
                    promise.lists.len() as u32 - 1
                });
                promise.clauses.push(Clause { place: self.block(clause.place, times), list });
            }
        }
        promise
    }

    /// An operand list, taken round, in order.
    pub(crate) fn list(&self, list: &[BlockRef], times: u32) -> Vec<BlockRef> {
        let mut list: Vec<BlockRef> = list.iter().map(|&operand| self.block(operand, times)).collect();
        list.sort_unstable();
        list
    }

    fn sum(&self, a: u32, b: u32) -> u32 {
        ((u64::from(a) + u64::from(b)) % u64::from(self.order())) as u32
    }

    fn fits(&self, limits: &Limits) -> Result<(), NotUnfolded> {
        let plan = &self.plan;
        let order = u64::from(self.order());
        let listed =
            |clause: &Clause| plan.promise.lists.get(clause.list as usize).map_or(0, Vec::len) as u64;
        let promised: u64 = plan.promise.clauses.iter().map(listed).sum();
        for (what, each, limit) in [
            ("steps", plan.steps.len(), limits.steps),
            ("operands", plan.operands.len(), limits.accesses),
            ("waits", plan.waits.len(), limits.waits),
            ("channel readers", plan.readers.len(), limits.steps),
            ("blocks", plan.blocks.len(), limits.steps),
            ("overlaps", plan.overlaps.len(), limits.places),
            ("operands of the promise", promised as usize, limits.places),
        ] {
            let found = (each as u64).saturating_mul(order);
            let limit = limit.min(u64::from(u32::MAX) - 1);
            if found > limit {
                return Err(NotUnfolded::TooLarge { what, found, limit });
            }
        }
        Ok(())
    }
}
