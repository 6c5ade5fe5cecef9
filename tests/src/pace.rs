//! Runs a plan without data: who can act, in the worst orders, for any number of slices. Fast enough for thousands.
//!
//! In: a plan, the sizes of a call, the slots of a channel, a policy. Out: how many events and messages there were, or
//! where each block stands that can never go on. Written from the words of `docs/plan.md` §3 and §4 alone: it shares no
//! code with the proof of freedom from deadlock, nor with the oracle (but for lengths of cells, which `layout` knows).
//!
//! The one hard idea: an agenda of blocks that may be able to act. A block that is tried and cannot act leaves it; an
//! event puts back those it may have helped: who writes to a channel that was read, who reads from one that was
//! written, who waits for a step that ended. When the agenda is empty, all have ended or none ever will.

use std::collections::VecDeque;

use plan::dtype::Dtype;
use plan::ids::{ChannelId, RankId, StepId};
use plan::interpret::classes::Classes;
use plan::layout::Layout;
use plan::plan::{ChannelKind, Operand, Plan, Section, Step};

/// What a call gives.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Elements of a block.
    pub elements: u64,
    /// Their type.
    pub dtype: Dtype,
    /// Bytes of a slot.
    pub slot_bytes: u32,
    /// Slots of a channel.
    pub slots: u32,
    /// Empty messages are skipped, except the first of a channel.
    pub elide: bool,
    /// Neighbouring micro-steps that fit one slot travel as one message.
    pub group: bool,
}

/// Who is tried next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Every block makes at most one event before any makes the next.
    Lockstep,
    /// The block that moved last, as long as it can; then the one it helped last.
    LastMoved,
    /// Whoever a message has just been sent to; its sender is tried again last.
    Downstream,
    /// A rank is tried only when no other can act.
    Starve(RankId),
    /// Any.
    Random(u64),
}

/// A run that came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ran {
    /// Slices: how often each body ran.
    pub slices: u64,
    /// Events.
    pub events: u64,
    /// Messages and tokens sent.
    pub messages: u64,
    /// The most messages that were in one channel at once.
    pub fullest: u64,
}

/// Runs to the end; otherwise says who stands where.
pub fn run(plan: &Plan, classes: &Classes, load: &Load, policy: Policy) -> Result<Ran, String> {
    let layout = Layout::new(plan, load.elements, load.dtype, load.slot_bytes).map_err(|e| e.to_string())?;
    let mut run = Run::new(plan, classes, load, &layout);
    let mut agenda = Agenda::new(policy, run.actors.len(), plan);
    for actor in 0..run.actors.len() {
        agenda.add(actor);
    }
    let mut woken = Vec::new();
    while let Some(actor) = agenda.next() {
        woken.clear();
        if run.act(actor, &mut woken) {
            agenda.acted(actor, &woken);
        }
    }
    run.verdict()
}

/// A block of one copy. Where it stands orders like time: (section, iteration, step).
#[derive(Debug, Clone, Copy)]
struct Actor {
    copy: u32,
    block: u32,
    at: (usize, u64, u32),
    micro: u32,
}

/// The section number of a block that has ended.
const ENDED: usize = 3;
const NONE: u32 = u32::MAX;

struct Run<'a> {
    plan: &'a Plan,
    classes: &'a Classes,
    load: &'a Load,
    slices: u64,
    slice_elements: u64,
    slot_elements: u64,
    /// Elements of each cell of each copy.
    lengths: Vec<u64>,
    actors: Vec<Actor>,
    /// For each source that is a channel: which of `Plan::readers` it is.
    reader: Vec<u32>,
    /// For each step its block, for those that are waited for who waits.
    block_of: Vec<u32>,
    waiters: Vec<Vec<u32>>,
    sent: Vec<u64>,
    taken: Vec<u64>,
    ran: Ran,
}

impl<'a> Run<'a> {
    fn new(plan: &'a Plan, classes: &'a Classes, load: &'a Load, layout: &Layout) -> Run<'a> {
        let (copies, cells) = (plan.header.copies, plan.header.cells);
        let mut block_of = vec![NONE; plan.steps.len()];
        let mut reader = vec![NONE; plan.operands.len()];
        let mut waiters = vec![Vec::new(); plan.steps.len()];
        for (b, block) in plan.blocks.iter().enumerate() {
            for id in Section::ALL.into_iter().flat_map(|section| block.section(section)) {
                let step = &plan.steps[id as usize];
                block_of[id as usize] = b as u32;
                for (i, operand) in plan.src(step).iter().enumerate() {
                    let Operand::Channel(channel) = operand else { continue };
                    let readers = &plan.channels[channel.index()].readers;
                    let mine = readers.clone().find(|&r| plan.readers[r as usize].index() == b);
                    reader[step.operands as usize + i] = mine.unwrap_or(NONE);
                }
                for wait in plan.waits(step) {
                    waiters[wait.index()].push(b as u32);
                }
            }
        }
        let length = |copy, cell| {
            let cell = layout.cell(copy, cell);
            cell.end - cell.start
        };
        let mut run = Run {
            plan,
            classes,
            load,
            slices: layout.slices(),
            slice_elements: layout.slice_elements(),
            slot_elements: u64::from(load.slot_bytes / load.dtype.size()),
            lengths: (0..copies).flat_map(|copy| (0..cells).map(move |cell| length(copy, cell))).collect(),
            actors: Vec::new(),
            reader,
            block_of,
            waiters,
            sent: vec![0; plan.channels.len() * copies as usize],
            taken: vec![0; plan.readers.len() * copies as usize],
            ran: Ran { slices: layout.slices(), events: 0, messages: 0, fullest: 0 },
        };
        for copy in 0..copies {
            for block in 0..plan.blocks.len() as u32 {
                let start = plan.blocks[block as usize].prologue.start;
                let mut actor = Actor { copy, block, at: (0, 0, start), micro: 0 };
                run.settle(&mut actor);
                run.actors.push(actor);
            }
        }
        run
    }

    /// Past the ends of sections and iterations.
    fn settle(&self, actor: &mut Actor) {
        let block = &self.plan.blocks[actor.block as usize];
        while actor.at.0 < ENDED {
            let range = block.section(Section::ALL[actor.at.0]);
            if actor.at.2 < range.end {
                return;
            }
            let again = actor.at.0 == 1 && !range.is_empty() && actor.at.1 + 1 < self.slices;
            actor.at = match again {
                true => (1, actor.at.1 + 1, range.start),
                false if actor.at.0 + 1 < ENDED => {
                    (actor.at.0 + 1, 0, block.section(Section::ALL[actor.at.0 + 1]).start)
                }
                false => (ENDED, 0, 0),
            };
        }
    }

    fn length(&self, actor: &Actor, position: u32) -> u64 {
        let cell = self.lengths[(actor.copy * self.plan.header.cells + position) as usize];
        cell.saturating_sub(actor.at.1 * self.slice_elements).min(self.slice_elements)
    }

    fn is_counter(&self, operand: Operand) -> bool {
        matches!(operand, Operand::Channel(c) if self.plan.channels[c.index()].kind == ChannelKind::Counter)
    }

    /// How many micro-steps the next event takes, and whether its messages are empty.
    fn extent(&self, actor: &Actor, step: &Step) -> (u32, bool) {
        let id = StepId(actor.at.2);
        let mut operands = self.plan.src(step).iter().chain(self.plan.dst(step));
        let alone = !self.load.group || operands.any(|&operand| self.is_counter(operand));
        let mut room = self.slot_elements;
        let mut end = actor.micro;
        let mut empty = true;
        while end < step.width {
            let Some(position) = self.classes.of(id, end) else {
                // No data: a token.
                return ((end - actor.micro).max(1), empty && end > actor.micro);
            };
            let length = self.length(actor, position);
            if end > actor.micro && (alone || length > room) {
                break;
            }
            room = room.saturating_sub(length);
            empty &= length == 0;
            end += 1;
        }
        (end - actor.micro, empty)
    }

    /// Lets an actor make one event, if it can; tells whom that may help.
    fn act(&mut self, actor: usize, woken: &mut Vec<usize>) -> bool {
        let mut me = self.actors[actor];
        if me.at.0 == ENDED {
            return false;
        }
        let plan = self.plan;
        let step = plan.steps[me.at.2 as usize];
        let (channels, readers, blocks) = (plan.channels.len(), plan.readers.len(), plan.blocks.len());
        if me.micro == 0 && plan.waits(&step).iter().any(|&wait| !self.over(&me, wait)) {
            return false;
        }
        let (micros, empty) = self.extent(&me, &step);
        let skips = |run: &Run, channel: ChannelId, number: u64| {
            let slots = run.plan.channels[channel.index()].kind == ChannelKind::Slots;
            run.load.elide && empty && number > 0 && slots
        };
        let (mut gets, mut puts) = (Vec::new(), Vec::new());
        for (i, operand) in plan.src(&step).iter().enumerate() {
            let Operand::Channel(channel) = *operand else { continue };
            let reader = me.copy as usize * readers + self.reader[step.operands as usize + i] as usize;
            if skips(self, channel, self.taken[reader]) {
                continue;
            }
            if self.sent[me.copy as usize * channels + channel.index()] <= self.taken[reader] {
                return false;
            }
            gets.push((reader, channel));
        }
        for operand in plan.dst(&step) {
            let Operand::Channel(channel) = *operand else { continue };
            let through = me.copy as usize * channels + channel.index();
            let found = &plan.channels[channel.index()];
            let number = self.sent[through];
            if skips(self, channel, number) {
                continue;
            }
            let base = me.copy as usize * readers;
            let held =
                found.readers.clone().map(|r| number - self.taken[base + r as usize]).max().unwrap_or(0);
            if found.kind == ChannelKind::Slots {
                if held >= u64::from(self.load.slots) {
                    return false;
                }
                self.ran.fullest = self.ran.fullest.max(held + 1);
            }
            puts.push((through, channel));
        }
        let mate = |block: u32| me.copy as usize * blocks + block as usize;
        for (reader, channel) in gets {
            self.taken[reader] += 1;
            woken.push(mate(plan.channels[channel.index()].writer.0));
        }
        for (through, channel) in puts {
            self.sent[through] += 1;
            self.ran.messages += 1;
            woken.extend(plan.readers(&plan.channels[channel.index()]).iter().map(|b| mate(b.0)));
        }
        self.ran.events += 1;
        me.micro += micros;
        if me.micro >= step.width {
            woken.extend(self.waiters[me.at.2 as usize].iter().map(|&b| mate(b)));
            me.micro = 0;
            me.at.2 += 1;
            self.settle(&mut me);
        }
        self.actors[actor] = me;
        true
    }

    /// Whether the step that one waits for has finished: in the same iteration if both are of a body.
    fn over(&self, waiting: &Actor, target: StepId) -> bool {
        let block = self.block_of[target.index()];
        if block == NONE {
            return true;
        }
        let found = &self.plan.blocks[block as usize];
        let section = Section::ALL.iter().position(|&s| found.section(s).contains(&target.0)).unwrap_or(0);
        let iteration = match (section, waiting.at.0) {
            (1, 1) => waiting.at.1,
            (1, _) => self.slices - 1,
            _ => 0,
        };
        let mate = &self.actors[waiting.copy as usize * self.plan.blocks.len() + block as usize];
        mate.at > (section, iteration, target.0)
    }

    fn verdict(&self) -> Result<Ran, String> {
        let stands = |actor: &Actor| {
            let block = &self.plan.blocks[actor.block as usize];
            format!(
                "rank {} block {} stands at step {} of iteration {} of {}",
                block.rank.0, block.position, actor.at.2, actor.at.1, self.slices
            )
        };
        let stuck: Vec<String> = self.actors.iter().filter(|a| a.at.0 != ENDED).map(stands).collect();
        if !stuck.is_empty() {
            return Err(format!(
                "{} blocks are stuck: {}",
                stuck.len(),
                stuck[..stuck.len().min(4)].join("; ")
            ));
        }
        let (channels, readers) = (self.plan.channels.len(), self.plan.readers.len());
        for (i, &sent) in self.sent.iter().enumerate() {
            let base = i / channels * readers;
            for reader in self.plan.channels[i % channels].readers.clone() {
                if self.taken[base + reader as usize] != sent {
                    return Err(format!("channel {} holds messages in the end", i % channels));
                }
            }
        }
        Ok(self.ran)
    }
}

/// Who may be able to act.
struct Agenda {
    policy: Policy,
    open: VecDeque<usize>,
    starved: VecDeque<usize>,
    on: Vec<bool>,
    /// Of each actor: whether its rank is the starved one.
    victim: Vec<bool>,
    state: u64,
}

impl Agenda {
    fn new(policy: Policy, actors: usize, plan: &Plan) -> Agenda {
        let rank = |actor: usize| plan.blocks[actor % plan.blocks.len()].rank;
        let victim = (0..actors).map(|a| policy == Policy::Starve(rank(a))).collect();
        let state = if let Policy::Random(seed) = policy { seed } else { 0 };
        let (open, starved) = (VecDeque::new(), VecDeque::new());
        Agenda { policy, open, starved, on: vec![false; actors], victim, state }
    }

    fn add(&mut self, actor: usize) {
        if std::mem::replace(&mut self.on[actor], true) {
            return;
        }
        if self.victim[actor] { &mut self.starved } else { &mut self.open }.push_back(actor);
    }

    fn next(&mut self) -> Option<usize> {
        let actor = match self.policy {
            Policy::Lockstep => self.open.pop_front(),
            Policy::LastMoved | Policy::Downstream => self.open.pop_back(),
            Policy::Starve(_) => self.open.pop_front().or_else(|| self.starved.pop_front()),
            Policy::Random(_) => {
                let at = crate::naive::number(self.state, self.open.len() as u64) as usize
                    % self.open.len().max(1);
                self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                self.open.swap_remove_back(at)
            }
        }?;
        self.on[actor] = false;
        Some(actor)
    }

    fn acted(&mut self, actor: usize, woken: &[usize]) {
        if self.policy == Policy::Downstream {
            self.add(actor);
        }
        for &other in woken {
            self.add(other);
        }
        self.add(actor);
    }
}
