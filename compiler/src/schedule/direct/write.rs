//! The plan anew, without the messages that go, and with the tokens that fence what stands in their place.
//!
//! In: a plan, and what becomes of its operands. Out: the new plan. Steps that are left with nothing to do go, blocks without
//! steps go, channels without messages go. A step that waited for one that goes waits for what came before that one.
//!
//! Of each rank whose memory others reach into, the first block is its host: it says READY in its prologue, on a channel
//! with one reader block on each accessing rank (a rank with several such blocks: on several channels), and takes one
//! DONE from each such block in its epilogue.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use plan::ids::{BlockId, ChannelId, RankId, SpanId, StepId};
use plan::plan::{Block, Channel, ChannelKind, Operand, Plan, Section, Step, Witness};
use plan::pre::Pre;

use super::find::{End, Found};

const NONE: u32 = u32::MAX;

/// Writes the plan anew; none if a block would handle more tokens at once than a step can count.
pub(super) fn write(old: &Plan, found: &Found) -> Option<Plan> {
    let mut plan = Plan {
        overlaps: old.overlaps.clone(),
        promise: old.promise.clone(),
        ..Plan::empty(old.header.clone(), old.buffers.clone(), old.spans.clone())
    };
    let tokens = Tokens::new(old, found);
    let block_of = number_blocks(old, found, &tokens);
    let channel_of = keep_channels(&mut plan, old, found, &block_of);
    let tokens = tokens.on_channels(&mut plan, &block_of);
    if tokens.most_at_once() > usize::from(u16::MAX) {
        return None;
    }

    let stays: Vec<bool> = old.steps.iter().map(|step| stays(old, found, step)).collect();
    let kept = Kept::new(old, stays);
    let mut step_of = vec![NONE; old.steps.len()];
    let mut fences = Vec::new();
    for (b, block) in old.blocks.iter().enumerate() {
        if block_of[b] == NONE {
            continue;
        }
        let mut starts = Vec::with_capacity(4);
        let mut fence = (StepId(NONE), StepId(NONE));
        for section in Section::ALL {
            starts.push(plan.steps.len() as u32);
            for (id, step) in old.steps(&block.section(section)).filter(|(id, _)| kept.is(*id)) {
                step_of[id.index()] = plan.steps.len() as u32;
                copy_step(&mut plan, old, found, &channel_of, step);
                // Resolved when all steps have their numbers.
                let waits = kept.waits(old, id, BlockId::new(b));
                if let Some(step) = plan.steps.last_mut() {
                    (step.waits, step.wait_count) = (plan.waits.len() as u32, waits.len() as u16);
                }
                plan.waits.extend(waits);
            }
            let span = first_span(old, block);
            match section {
                Section::Prologue => {
                    token(&mut plan, span, &[], tokens.ready_said(b));
                    fence.0 = token(&mut plan, span, tokens.ready_heard(b), &[]).unwrap_or(fence.0);
                }
                Section::Body => {}
                Section::Epilogue => {
                    fence.1 = token(&mut plan, span, &[], tokens.done_said(b)).unwrap_or(fence.1);
                    token(&mut plan, span, tokens.done_heard(b), &[]);
                }
            }
        }
        starts.push(plan.steps.len() as u32);
        let position = plan.blocks.iter().rev().take_while(|other| other.rank == block.rank).count() as u32;
        plan.blocks.push(Block {
            rank: block.rank,
            position,
            prologue: starts[0]..starts[1],
            body: starts[1]..starts[2],
            epilogue: starts[2]..starts[3],
        });
        fences.push(fence);
    }
    for wait in &mut plan.waits {
        *wait = StepId(step_of[wait.index()]);
    }
    witnesses(&mut plan, &fences);
    Some(plan)
}

/// Where the operands of a step stand.
fn operands(step: &Step) -> Range<usize> {
    let first = step.operands as usize;
    first..first + usize::from(step.sources) + usize::from(step.destinations)
}

fn first_span(plan: &Plan, block: &Block) -> SpanId {
    plan.steps.get(block.prologue.start as usize).map_or(SpanId(0), |step| step.span)
}

/// The operands of a step that are left: sources, destinations.
fn left(old: &Plan, found: &Found, step: &Step) -> [Vec<Operand>; 2] {
    let all = operands(step);
    let middle = all.start + usize::from(step.sources);
    [all.start..middle, middle..all.end].map(|range| {
        range
            .flat_map(|at| {
                let kept = (found.ends[at] == End::Stays).then_some(old.operands[at]);
                kept.into_iter().chain(found.memory(at).iter().copied())
            })
            .collect()
    })
}

/// Whether a step still has something to do. One that takes a message has, unless that is pushed.
fn stays(old: &Plan, found: &Found, step: &Step) -> bool {
    let touched = |at: usize| found.ends[at] != End::Stays;
    if !operands(step).any(touched) {
        return true;
    }
    let [sources, destinations] = left(old, found, step);
    !sources.is_empty() && !destinations.is_empty()
}

fn copy_step(plan: &mut Plan, old: &Plan, found: &Found, channel_of: &[u32], step: &Step) {
    let renamed = |operand: Operand| match operand {
        Operand::Channel(channel) => Operand::Channel(ChannelId(channel_of[channel.index()])),
        other => other,
    };
    let operands = plan.operands.len() as u32;
    let [sources, destinations] = left(old, found, step);
    plan.steps.push(Step {
        operands,
        sources: sources.len() as u16,
        destinations: destinations.len() as u16,
        ..*step
    });
    plan.operands.extend(sources.into_iter().chain(destinations).map(renamed));
}

/// A step of tokens, if there are any.
fn token(plan: &mut Plan, span: SpanId, heard: &[ChannelId], said: &[ChannelId]) -> Option<StepId> {
    if heard.is_empty() && said.is_empty() {
        return None;
    }
    plan.steps.push(Step {
        operands: plan.operands.len() as u32,
        sources: heard.len() as u16,
        destinations: said.len() as u16,
        waits: plan.waits.len() as u32,
        wait_count: 0,
        round_each: false,
        post: false,
        pre: Pre::NONE,
        width: 1,
        span,
    });
    plan.operands.extend(heard.iter().chain(said).map(|&channel| Operand::Channel(channel)));
    Some(StepId::new(plan.steps.len() - 1))
}

/// The new number of each block that has steps left or tokens to handle.
fn number_blocks(old: &Plan, found: &Found, tokens: &Tokens) -> Vec<u32> {
    let mut next = 0;
    let number = |(b, block): (usize, &Block)| {
        let range = block.prologue.start as usize..block.epilogue.end as usize;
        let needed = tokens.uses(b) || old.steps[range].iter().any(|step| stays(old, found, step));
        next += u32::from(needed);
        if needed { next - 1 } else { NONE }
    };
    old.blocks.iter().enumerate().map(number).collect()
}

/// The channels on which messages are left, with their new numbers.
fn keep_channels(plan: &mut Plan, old: &Plan, found: &Found, block_of: &[u32]) -> Vec<u32> {
    let mut used = vec![false; old.channels.len()];
    for (operand, end) in old.operands.iter().zip(&found.ends) {
        if let (Operand::Channel(channel), End::Stays) = (operand, end) {
            used[channel.index()] = true;
        }
    }
    let mut channel_of = vec![NONE; old.channels.len()];
    for (c, channel) in old.channels.iter().enumerate().filter(|(c, _)| used[*c]) {
        channel_of[c] = plan.channels.len() as u32;
        let start = plan.readers.len() as u32;
        plan.readers.extend(old.readers(channel).iter().map(|b| BlockId(block_of[b.index()])));
        plan.channels.push(Channel {
            writer: BlockId(block_of[channel.writer.index()]),
            readers: start..plan.readers.len() as u32,
            kind: channel.kind,
        });
    }
    channel_of
}

/// Who reaches into whose memory, and the tokens that fence it; blocks are the old plan's.
#[derive(Default)]
struct Tokens {
    /// By accessing block, the owners.
    owners: BTreeMap<usize, BTreeSet<RankId>>,
    /// By owner: its host, and for each channel of READY the accessing blocks that read it.
    hosts: BTreeMap<RankId, (usize, Vec<Vec<usize>>)>,
    said: [BTreeMap<usize, Vec<ChannelId>>; 2],
    heard: [BTreeMap<usize, Vec<ChannelId>>; 2],
}

impl Tokens {
    fn new(old: &Plan, found: &Found) -> Tokens {
        let mut tokens = Tokens::default();
        for (b, block) in old.blocks.iter().enumerate() {
            for (_, step) in old.steps(&block.body) {
                for at in operands(step) {
                    for memory in found.memory(at) {
                        if let Operand::Peer { rank, .. } = *memory {
                            tokens.owners.entry(b).or_default().insert(rank);
                        }
                    }
                }
            }
        }
        for (&b, owners) in &tokens.owners {
            for &owner in owners {
                let first = || old.blocks.partition_point(|block| block.rank < owner);
                let (_, layers) = tokens.hosts.entry(owner).or_insert_with(|| (first(), Vec::new()));
                let rank = old.blocks[b].rank;
                let free =
                    |layer: &&mut Vec<usize>| layer.last().is_none_or(|&last| old.blocks[last].rank != rank);
                match layers.iter_mut().find(free) {
                    Some(layer) => layer.push(b),
                    None => layers.push(vec![b]),
                }
            }
        }
        tokens
    }

    /// Whether a block has tokens to handle.
    fn uses(&self, block: usize) -> bool {
        self.owners.contains_key(&block) || self.hosts.values().any(|&(host, _)| host == block)
    }

    /// Gives all tokens their channels.
    fn on_channels(mut self, plan: &mut Plan, block_of: &[u32]) -> Tokens {
        let mut add = |writer: usize, readers: &[usize]| {
            let start = plan.readers.len() as u32;
            plan.readers.extend(readers.iter().map(|&b| BlockId(block_of[b])));
            let readers = start..plan.readers.len() as u32;
            plan.channels.push(Channel {
                writer: BlockId(block_of[writer]),
                readers,
                kind: ChannelKind::Counter,
            });
            ChannelId::new(plan.channels.len() - 1)
        };
        for &(host, ref layers) in self.hosts.values() {
            for readers in layers {
                let ready = add(host, readers);
                self.said[0].entry(host).or_default().push(ready);
                for &b in readers {
                    self.heard[0].entry(b).or_default().push(ready);
                }
            }
        }
        for (&b, owners) in &self.owners {
            let hosts: Vec<usize> = owners.iter().map(|owner| self.hosts[owner].0).collect();
            let done = add(b, &hosts);
            self.said[1].entry(b).or_default().push(done);
            for host in hosts {
                self.heard[1].entry(host).or_default().push(done);
            }
        }
        self
    }

    /// The most tokens that one step says or hears.
    fn most_at_once(&self) -> usize {
        let lists = self.said.iter().chain(&self.heard).flat_map(BTreeMap::values);
        lists.map(Vec::len).max().unwrap_or(0)
    }

    fn ready_said(&self, block: usize) -> &[ChannelId] {
        self.said[0].get(&block).map_or(&[], Vec::as_slice)
    }

    fn ready_heard(&self, block: usize) -> &[ChannelId] {
        self.heard[0].get(&block).map_or(&[], Vec::as_slice)
    }

    fn done_said(&self, block: usize) -> &[ChannelId] {
        self.said[1].get(&block).map_or(&[], Vec::as_slice)
    }

    fn done_heard(&self, block: usize) -> &[ChannelId] {
        self.heard[1].get(&block).map_or(&[], Vec::as_slice)
    }
}

/// Which steps are kept, and what stands for those that are not.
struct Kept {
    stays: Vec<bool>,
    /// By step: its block, and the first step of its section.
    home: Vec<(BlockId, u32)>,
}

impl Kept {
    fn new(old: &Plan, stays: Vec<bool>) -> Kept {
        let mut home = vec![(BlockId(NONE), 0); old.steps.len()];
        for (b, block) in old.blocks.iter().enumerate() {
            for section in Section::ALL {
                let range = block.section(section);
                for step in range.clone() {
                    home[step as usize] = (BlockId::new(b), range.start);
                }
            }
        }
        Kept { stays, home }
    }

    fn is(&self, step: StepId) -> bool {
        self.stays[step.index()]
    }

    /// What a step of `block` waits for: what it waited for, or what that waited for and came after.
    fn waits(&self, old: &Plan, step: StepId, block: BlockId) -> Vec<StepId> {
        let mut waits = Vec::new();
        let mut open: Vec<StepId> = old.waits(&old.steps[step.index()]).to_vec();
        let mut seen = BTreeSet::new();
        // Steps of its own block that went may have waited for it.
        let start = self.home[step.index()].1;
        open.extend(
            (start..step.0)
                .rev()
                .map(StepId)
                .take_while(|&before| !self.is(before))
                .flat_map(|before| old.waits(&old.steps[before.index()]).iter().copied()),
        );
        while let Some(target) = open.pop() {
            let (home, start) = self.home[target.index()];
            if home == block || !seen.insert(target) {
                continue;
            }
            if self.is(target) {
                waits.push(target);
                continue;
            }
            open.extend(old.waits(&old.steps[target.index()]));
            open.extend((start < target.0).then(|| StepId(target.0 - 1)));
        }
        waits.sort_unstable();
        // Of one block the last one is enough.
        waits.dedup_by(|later, kept| {
            let same = self.home[later.index()].0 == self.home[kept.index()].0;
            if same {
                *kept = *later;
            }
            same
        });
        waits
    }
}

/// Names the tokens of each access; `fences`: of each block, where it hears READY and says DONE.
fn witnesses(plan: &mut Plan, fences: &[(StepId, StepId)]) {
    let mut witnesses = Vec::new();
    for (block, &(ready, done)) in plan.blocks.iter().zip(fences) {
        for (id, step) in plan.steps(&block.body) {
            let owners: BTreeSet<RankId> = plan
                .src(step)
                .iter()
                .chain(plan.dst(step))
                .filter_map(|operand| match *operand {
                    Operand::Peer { rank, .. } => Some(rank),
                    _ => None,
                })
                .collect();
            witnesses.extend(owners.into_iter().map(|owner| Witness { step: id, owner, ready, done }));
        }
    }
    plan.witnesses = witnesses;
}
