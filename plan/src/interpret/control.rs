//! Who can act, and what acting does to channels and waits. No data.
//!
//! In: a plan, the number of copies, iterations and slots. Out: the actors that can act; for each that acts, the
//! [`Event`]. The one hard idea: everything is a count. A channel is how many messages were sent and how many each
//! reader took; a block's progress is how many steps it finished, iterations included, so that every wait is one
//! comparison. Which actors can act is kept up to date by looking again at those that an event touched.

use std::ops::Range;

use crate::ids::{BlockId, ChannelId, StepId};
use crate::interpret::bounds::positions;
use crate::interpret::classes::Classes;
use crate::interpret::scheduler::Actor;
use crate::interpret::{Need, Waiting};
use crate::layout::Layout;
use crate::plan::{ChannelKind, Operand, Plan, Section};

/// How the counts shape the messages; without it every micro-step is one message of its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wire<'a> {
    pub layout: &'a Layout,
    pub classes: &'a Classes,
    pub elide: bool,
    pub group: bool,
}

/// Something that happened at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub copy: u32,
    pub block: BlockId,
    pub step: StepId,
    pub iteration: u64,
    /// The micro-steps that it consists of.
    pub micros: Range<u32>,
    /// For each source that is a channel and not elided: the number of the message taken, from 0, and how many
    /// messages of the channel all its readers have now taken.
    pub received: Vec<Option<(u64, u64)>>,
    /// For each destination: whether a message was sent.
    pub sent: Vec<bool>,
}

/// Where a block stands.
#[derive(Debug, Clone, Copy)]
struct Progress {
    section: Section,
    iteration: u64,
    /// Steps of this section finished in this iteration.
    index: u32,
    /// Micro-steps of the current step finished.
    micro: u32,
    /// Steps finished in all.
    finished: u64,
}

pub(super) struct Control<'a> {
    plan: &'a Plan,
    iterations: u64,
    slots: u64,
    wire: Option<Wire<'a>>,
    positions: Vec<Option<(BlockId, Section, u32)>>,
    /// For each step: the blocks that have a step waiting for it.
    waiters: Vec<(StepId, BlockId)>,
    progress: Vec<Option<Progress>>,
    sent: Vec<u64>,
    taken: Vec<u64>,
    ready: Vec<Actor>,
    ready_at: Vec<u32>,
}

const NOT_READY: u32 = u32::MAX;

impl<'a> Control<'a> {
    /// The plan must have passed `bounds::check`.
    pub(super) fn new(
        plan: &'a Plan,
        copies: u32,
        iterations: u64,
        slots: u64,
        wire: Option<Wire<'a>>,
    ) -> Control<'a> {
        let positions = positions(plan);
        let mut waiters = Vec::new();
        for (step, position) in plan.steps.iter().zip(&positions) {
            let Some((block, ..)) = position else { continue };
            waiters.extend(plan.waits(step).iter().map(|&wait| (wait, *block)));
        }
        waiters.sort_unstable();
        waiters.dedup();
        let copies = copies as usize;
        let actors = copies * plan.blocks.len();
        let mut control = Control {
            plan,
            iterations,
            slots,
            wire,
            positions,
            waiters,
            progress: Vec::new(),
            sent: vec![0; copies * plan.channels.len()],
            taken: vec![0; copies * plan.readers.len()],
            ready: Vec::new(),
            ready_at: vec![NOT_READY; actors],
        };
        let start = Progress { section: Section::Prologue, iteration: 0, index: 0, micro: 0, finished: 0 };
        for actor in 0..actors {
            let progress = control.settle(BlockId::new(actor % plan.blocks.len()), start);
            control.progress.push(progress);
        }
        for actor in 0..actors {
            control.refresh(actor as Actor);
        }
        control
    }

    /// The actors that can act.
    pub(super) fn ready(&self) -> &[Actor] {
        &self.ready
    }

    /// Lets one of them act.
    pub(super) fn advance(&mut self, actor: Actor) -> Event {
        let event = self.event(actor);
        let plan = self.plan;
        let step = &plan.steps[event.step.index()];
        let (copy, block) = self.split(actor);
        let Some(progress) = &mut self.progress[actor as usize] else { return event };
        progress.micro = event.micros.end;
        let ended = progress.micro >= step.width;
        if ended {
            let next = Progress {
                index: progress.index + 1,
                micro: 0,
                finished: progress.finished + 1,
                ..*progress
            };
            self.progress[actor as usize] = self.settle(block, next);
        }
        for (&operand, received) in plan.src(step).iter().zip(&event.received) {
            if let (Operand::Channel(channel), Some(_)) = (operand, received) {
                let reader = self.reader(copy, channel, block);
                self.taken[reader] += 1;
            }
        }
        for (&operand, &sent) in plan.dst(step).iter().zip(&event.sent) {
            if let (Operand::Channel(channel), true) = (operand, sent) {
                self.sent[copy as usize * plan.channels.len() + channel.index()] += 1;
            }
        }
        self.refresh_touched(actor, &event, ended);
        event
    }

    /// What every block that has not ended waits for; none if all have ended.
    pub(super) fn waiting(&self) -> Option<Vec<Waiting>> {
        let stuck = (0..self.progress.len() as Actor).filter_map(|actor| {
            let progress = self.progress[actor as usize]?;
            let (copy, block) = self.split(actor);
            let step = self.step(block, &progress);
            let span = self.plan.spans.spans.get(self.plan.steps[step.index()].span.index());
            let line = span.and_then(|s| Some((self.plan.spans.files.get(s.file as usize)?.clone(), s.line)));
            let of = &self.plan.blocks[block.index()];
            Some(Waiting {
                copy,
                block,
                rank: of.rank,
                position: of.position,
                step,
                iteration: progress.iteration,
                line,
                needs: self.needs(actor, true),
            })
        });
        let stuck: Vec<_> = stuck.collect();
        (!stuck.is_empty()).then_some(stuck)
    }

    /// A channel that holds messages which some reader has not taken.
    pub(super) fn unread(&self) -> Option<ChannelId> {
        let channels = self.plan.channels.len();
        let unread =
            |i: &usize| self.oldest((i / channels) as u32, ChannelId::new(i % channels)) < self.sent[*i];
        (0..self.sent.len()).find(unread).map(|i| ChannelId::new(i % channels))
    }

    fn split(&self, actor: Actor) -> (u32, BlockId) {
        let blocks = self.plan.blocks.len();
        ((actor as usize / blocks) as u32, BlockId::new(actor as usize % blocks))
    }

    fn join(&self, copy: u32, block: BlockId) -> Actor {
        copy * self.plan.blocks.len() as u32 + block.0
    }

    fn step(&self, block: BlockId, progress: &Progress) -> StepId {
        StepId(self.plan.blocks[block.index()].section(progress.section).start + progress.index)
    }

    /// Goes on to the next section or iteration as long as there is nothing left to do in this one.
    fn settle(&self, block: BlockId, mut at: Progress) -> Option<Progress> {
        let block = &self.plan.blocks[block.index()];
        while at.index as usize >= block.section(at.section).len() {
            at.index = 0;
            let turns =
                at.section == Section::Body && !block.body.is_empty() && at.iteration + 1 < self.iterations;
            match at.section {
                _ if turns => at.iteration += 1,
                Section::Prologue => at.section = Section::Body,
                Section::Body => at.section = Section::Epilogue,
                Section::Epilogue => return None,
            }
        }
        Some(at)
    }

    /// The index of a reader's count of messages taken.
    fn reader(&self, copy: u32, channel: ChannelId, block: BlockId) -> usize {
        let found = &self.plan.channels[channel.index()];
        let among = self.plan.readers(found).iter().position(|&reader| reader == block).unwrap_or(0);
        copy as usize * self.plan.readers.len() + found.readers.start as usize + among
    }

    /// How many messages of a channel all readers have taken.
    fn oldest(&self, copy: u32, channel: ChannelId) -> u64 {
        let readers = &self.plan.channels[channel.index()].readers;
        let base = copy as usize * self.plan.readers.len();
        let taken = &self.taken[base + readers.start as usize..base + readers.end as usize];
        taken.iter().copied().min().unwrap_or(0)
    }

    fn event(&self, actor: Actor) -> Event {
        let (copy, block) = self.split(actor);
        // Only actors that can act, and so have not ended, are asked for.
        let start = Progress { section: Section::Epilogue, iteration: 0, index: 0, micro: 0, finished: 0 };
        let progress = self.progress[actor as usize].unwrap_or(start);
        let id = self.step(block, &progress);
        let step = &self.plan.steps[id.index()];
        let micros = self.micros(copy, id, &progress);
        let empty = self.empty(copy, id, &progress, &micros);
        let received = |&operand: &Operand| {
            let Operand::Channel(channel) = operand else { return None };
            let mine = self.reader(copy, channel, block);
            let number = self.taken[mine];
            if self.elided(channel, empty, number) {
                return None;
            }
            let readers = &self.plan.channels[channel.index()].readers;
            let base = copy as usize * self.plan.readers.len();
            let all = base + readers.start as usize..base + readers.end as usize;
            let retired = all.map(|reader| self.taken[reader] + u64::from(reader == mine)).min();
            Some((number, retired.unwrap_or(0)))
        };
        let sent = |&operand: &Operand| match operand {
            Operand::Channel(channel) => !self.elided(channel, empty, self.sent_through(copy, channel)),
            _ => false,
        };
        Event {
            copy,
            block,
            step: id,
            iteration: progress.iteration,
            received: self.plan.src(step).iter().map(received).collect(),
            sent: self.plan.dst(step).iter().map(sent).collect(),
            micros,
        }
    }

    /// The micro-steps that happen together.
    fn micros(&self, copy: u32, id: StepId, progress: &Progress) -> Range<u32> {
        let step = &self.plan.steps[id.index()];
        let one = progress.micro..progress.micro + 1;
        let Some(wire) = self.wire.filter(|wire| wire.group) else { return one };
        let counter = |&operand: &Operand| match operand {
            Operand::Channel(channel) => self.plan.channels[channel.index()].kind == ChannelKind::Counter,
            _ => false,
        };
        if self.plan.src(step).iter().chain(self.plan.dst(step)).any(counter) {
            return one;
        }
        let positions = (progress.micro..step.width).map_while(|micro| wire.classes.of(id, micro));
        progress.micro..progress.micro + wire.layout.group(copy, progress.iteration, positions)
    }

    fn empty(&self, copy: u32, id: StepId, progress: &Progress, micros: &Range<u32>) -> bool {
        let Some(wire) = self.wire.filter(|wire| wire.elide) else { return false };
        let length =
            |micro| wire.classes.of(id, micro).map(|p| wire.layout.length(copy, p, progress.iteration));
        micros.clone().all(|micro| length(micro) == Some(0))
    }

    /// Whether a message is skipped: it is empty, not a token, and not the channel's first.
    fn elided(&self, channel: ChannelId, empty: bool, number: u64) -> bool {
        empty && number > 0 && self.plan.channels[channel.index()].kind == ChannelKind::Slots
    }

    fn sent_through(&self, copy: u32, channel: ChannelId) -> u64 {
        self.sent[copy as usize * self.plan.channels.len() + channel.index()]
    }

    fn needs(&self, actor: Actor, all: bool) -> Vec<Need> {
        let mut needs = Vec::new();
        let Some(progress) = self.progress[actor as usize] else { return needs };
        let (copy, block) = self.split(actor);
        let id = self.step(block, &progress);
        let step = &self.plan.steps[id.index()];
        let micros = self.micros(copy, id, &progress);
        let empty = self.empty(copy, id, &progress, &micros);
        let rank_of = |block: BlockId| self.plan.blocks[block.index()].rank;
        for &operand in self.plan.src(step) {
            let Operand::Channel(channel) = operand else { continue };
            let taken = self.taken[self.reader(copy, channel, block)];
            if !self.elided(channel, empty, taken) && self.sent_through(copy, channel) <= taken {
                needs.push(Need::Message {
                    channel,
                    from: rank_of(self.plan.channels[channel.index()].writer),
                });
            }
        }
        for &operand in self.plan.dst(step) {
            let Operand::Channel(channel) = operand else { continue };
            let found = &self.plan.channels[channel.index()];
            let sent = self.sent_through(copy, channel);
            if found.kind == ChannelKind::Counter || self.elided(channel, empty, sent) {
                continue;
            }
            let base = copy as usize * self.plan.readers.len();
            let slow = found.readers.clone().find(|&r| sent - self.taken[base + r as usize] >= self.slots);
            if let Some(slow) = slow {
                needs.push(Need::Slot { channel, reader: rank_of(self.plan.readers[slow as usize]) });
            }
        }
        if progress.micro == 0 && (all || needs.is_empty()) {
            let waits = self.plan.waits(step).iter().copied();
            needs.extend(waits.filter(|&wait| !self.finished(copy, wait, &progress)).map(Need::Step));
        }
        needs
    }

    /// Whether a step of this rank is finished, in the iteration of the one that waits.
    fn finished(&self, copy: u32, step: StepId, waiting: &Progress) -> bool {
        let Some((block, section, index)) = self.positions[step.index()] else { return true };
        let Some(progress) = self.progress[self.join(copy, block) as usize] else { return true };
        let found = &self.plan.blocks[block.index()];
        let (prologue, body) = (found.prologue.len() as u64, found.body.len() as u64);
        // From the epilogue one waits for the last iteration of a body.
        let all = waiting.section == Section::Epilogue;
        let iteration = if all { self.iterations - 1 } else { waiting.iteration };
        let before = match section {
            Section::Prologue => 0,
            Section::Body => prologue + iteration * body,
            Section::Epilogue => prologue + self.iterations * body,
        };
        progress.finished > before + u64::from(index)
    }

    fn refresh_touched(&mut self, actor: Actor, event: &Event, ended: bool) {
        let plan = self.plan;
        let step = &plan.steps[event.step.index()];
        self.refresh(actor);
        for &operand in plan.src(step) {
            if let Operand::Channel(channel) = operand {
                self.refresh(self.join(event.copy, plan.channels[channel.index()].writer));
            }
        }
        for &operand in plan.dst(step) {
            if let Operand::Channel(channel) = operand {
                for &reader in plan.readers(&plan.channels[channel.index()]) {
                    self.refresh(self.join(event.copy, reader));
                }
            }
        }
        if ended {
            let first = self.waiters.partition_point(|&(step, _)| step < event.step);
            for i in first..self.waiters.len() {
                let (step, block) = self.waiters[i];
                if step != event.step {
                    break;
                }
                self.refresh(self.join(event.copy, block));
            }
        }
    }

    /// Puts an actor on the list of those that can act, or takes it off.
    fn refresh(&mut self, actor: Actor) {
        let can = self.progress[actor as usize].is_some() && self.needs(actor, false).is_empty();
        let at = self.ready_at[actor as usize];
        if can && at == NOT_READY {
            self.ready_at[actor as usize] = self.ready.len() as u32;
            self.ready.push(actor);
        } else if !can && at != NOT_READY {
            self.ready.swap_remove(at as usize);
            self.ready_at[actor as usize] = NOT_READY;
            if let Some(&moved) = self.ready.get(at as usize) {
                self.ready_at[moved as usize] = at;
            }
        }
    }
}
