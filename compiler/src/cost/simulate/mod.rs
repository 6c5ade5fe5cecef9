//! A plan run against a clock: every micro-step is an event, every port and core a queue.
//!
//! In: a [`Program`], a [`Topology`], a [`Call`]. Out: a [`Run`]: when the last event ends, and (if asked for) what each
//! event had waited for last. Events happen in the order of their times; an event begins as soon as the step before it in
//! its block has ended, its messages are there, slots are free and waits are met, just as the interpreter says, and
//! where ranks share cores, when one of them is free.
//!
//! What an event costs: its engine's work for the bytes read and written; its block is busy until that is done and until
//! what it sends has left its port. A message can be taken when it is through all ports and the latency has passed; a
//! slot can be used again when its reader is done and the news has come back.
//!
//! The one hard idea is in `period`: times are whole picoseconds and nothing depends on when "now" is, so
//! once the state of everything, relative to now, is what it was some iterations before, the future repeats too, and whole
//! periods are left out. That is no approximation.

mod cores;
mod needs;
mod period;
mod ports;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use plan::dtype::Dtype;
use plan::plan::Section;

use self::cores::Cores;
use self::period::Periods;
use self::ports::{Passage, Ports};
use super::program::{End, Lengths, NONE, Program};
use super::topology::{Engine, Topology};
use super::work::{Footprint, Time, Work};

/// What is called, and in which geometry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Elements of a block.
    pub count: u64,
    /// Their type.
    pub dtype: Dtype,
    /// S.
    pub slice_bytes: u32,
    /// k; the plan's `k_min` at least.
    pub slots: u32,
    /// C: copies of the program side by side.
    pub copies: u32,
    /// Which of the topology's encodings.
    pub encoding: usize,
}

/// How much is to be found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Want {
    /// Keep a record of each event.
    pub(super) records: bool,
    /// Leave out what repeats.
    pub(super) skip: bool,
}

/// What a simulation found.
#[derive(Debug)]
pub(super) struct Run {
    /// When the last event ended.
    pub(super) end: Time,
    /// Events that were followed.
    pub(super) events: u64,
    /// What was left out.
    pub(super) skipped: Option<Skipped>,
    /// What happened, in order; the record of the event that ended last.
    pub(super) records: Vec<Record>,
    pub(super) last: u32,
    /// Blocks that never ended (a deadlock; a verified plan with enough slots has none).
    pub(super) stuck: usize,
    /// T.
    pub(super) slices: u64,
    /// Bytes that each port carried, where nothing was left out.
    #[cfg_attr(not(test), allow(dead_code, reason = "held against the counted bytes in tests"))]
    pub(super) carried: Vec<u64>,
}

/// Iterations that were left out: so many times what happened from one time to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Skipped {
    pub(super) from: Time,
    pub(super) to: Time,
    pub(super) times: u64,
    /// Whether the state was the same at both ends.
    pub(super) exact: bool,
}

/// An event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record {
    pub(super) step: u32,
    /// The record of what it waited for last, or none.
    pub(super) from: u32,
    pub(super) why: Why,
    pub(super) bytes: u32,
    pub(super) start: Time,
    pub(super) end: Time,
}

/// What an event waited for last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// Nothing, or the step before it in its block.
    Order,
    /// A message.
    Message,
    /// A free slot.
    Slot,
    /// A step of another block.
    Wait,
    /// A core.
    Core,
    /// Its message queued at a port.
    Port,
}

/// A block of a copy.
#[derive(Debug, Clone, Copy)]
struct Actor {
    section: Section,
    step: u32,
    micro: u32,
    iteration: u64,
    /// The end of its last event.
    free: Time,
    phase: Phase,
    /// When it can act, if it is known.
    ready: Time,
    why: Why,
    /// The record of its last event, and of what it waits for last.
    last: u32,
    from: u32,
}

/// Where an actor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It lacks something of which it is not known when it comes.
    Blocked,
    /// It is known when it can act.
    Queued,
    /// It can act, and waits for a core.
    Enabled,
    Ended,
}

struct Simulation<'a> {
    program: &'a Program<'a>,
    lengths: Lengths,
    work: Work,
    /// Beside the operands: whether the place was touched before in the iteration. Empty where that costs the same.
    again: Vec<bool>,
    ports: Ports,
    cores: Option<Cores>,
    /// k, or fewer if no channel has as many messages.
    credit: u64,
    actors: Vec<Actor>,
    blocks: usize,
    readers: usize,
    channels: usize,
    sent: Vec<u64>,
    taken: Vec<u64>,
    /// Of each reader and slot: when the message can be taken, when the slot can be written again; and by whose records.
    arrival: Vec<Time>,
    freed: Vec<Time>,
    arrival_by: Vec<u32>,
    freed_by: Vec<u32>,
    tokens: Vec<VecDeque<(Time, u32)>>,
    /// Of each step waited for: how often it is done, when last, by which record.
    done: Vec<u64>,
    done_at: Vec<Time>,
    done_by: Vec<u32>,
    heap: BinaryHeap<Reverse<(Time, u32)>>,
    /// The messages of the event at hand: kept so that it needs no memory of its own.
    passages: Vec<(u32, Passage)>,
    /// Iterations left out.
    skip: u64,
    periods: Option<Periods>,
    records: Vec<Record>,
    keep: bool,
    events: u64,
    end: Time,
    last: u32,
}

/// Follows a plan through a call.
pub(super) fn simulate(program: &Program<'_>, topology: &Topology, call: &Call, want: Want) -> Run {
    let mut simulation = Simulation::new(program, topology, call, want);
    simulation.run();
    let skipped = simulation.periods.as_ref().and_then(Periods::skipped);
    let left_out = skipped.map_or(0, |skipped| (skipped.to - skipped.from).saturating_mul(skipped.times));
    Run {
        end: simulation.end.saturating_add(left_out),
        events: simulation.events,
        skipped,
        last: simulation.last,
        stuck: simulation.actors.iter().filter(|actor| actor.phase != Phase::Ended).count(),
        slices: simulation.lengths.slices,
        records: simulation.records,
        carried: simulation.ports.carried,
    }
}

/// The work of events in a call.
pub(super) fn work(program: &Program<'_>, topology: &Topology, call: &Call) -> Work {
    let places = if shared(topology) { program.touched().1 } else { 0 };
    Work::new(&topology.engine, footprint(program, topology, call, places))
}

fn shared(topology: &Topology) -> bool {
    matches!(topology.engine, Engine::Shared { .. })
}

/// What each core goes through: the buffers and scratch of its share of the ranks, and the slots.
fn footprint(program: &Program<'_>, topology: &Topology, call: &Call, touched: u64) -> Footprint {
    let Engine::Shared { cores, .. } = topology.engine else {
        return Footprint { places: 0.0, slices: 0.0, slots: 0.0 };
    };
    let header = &program.plan().header;
    let block = call.count as f64 * f64::from(call.dtype.size());
    let ranks = f64::from(header.ranks);
    let blocks: f64 = program.plan().buffers.iter().map(|buffer| f64::from(buffer.blocks)).sum();
    let scratch: f64 = header.scratch_cells.iter().map(|&cells| f64::from(cells)).sum();
    let places = ranks * blocks * block + scratch * block / f64::from(header.cells);
    let channel = (f64::from(call.slots) * f64::from(call.slice_bytes)).min(block);
    let slots = program.plan().channels.len() as f64 * f64::from(call.copies) * channel;
    let nodes = u64::from(header.ranks).div_ceil(topology.group(0)) as f64;
    // Cores without a rank work on nothing.
    let busy = f64::from(cores).min(ranks) * nodes;
    let slice = f64::from(call.slice_bytes).min(block / f64::from(header.cells) / f64::from(call.copies));
    let slices = touched as f64 * slice * f64::from(call.copies);
    Footprint { places: places / busy, slices: slices / busy, slots: slots / busy }
}

impl<'a> Simulation<'a> {
    fn new(program: &'a Program<'a>, topology: &Topology, call: &Call, want: Want) -> Simulation<'a> {
        let plan = program.plan();
        let header = &plan.header;
        let copies = call.copies.max(1);
        let lengths = Lengths::new(header.cells, copies, call.count, call.dtype, call.slice_bytes);
        let credit = u64::from(call.slots.max(header.k_min).max(1));
        let credit = credit.min(program.messages.saturating_mul(lengths.slices));
        let (again, places) = if shared(topology) { program.touched() } else { (Vec::new(), 0) };
        let work = Work::new(&topology.engine, footprint(program, topology, call, places));
        let (blocks, readers, channels) = (plan.blocks.len(), plan.readers.len(), plan.channels.len());
        let copies = copies as usize;
        let slots = copies * readers * credit as usize;
        let record = |len: usize| if want.records { vec![NONE; len] } else { Vec::new() };
        let tokens = if program.token.contains(&true) { copies * readers } else { 0 };
        let waited = copies * (program.waiters_of.len() - 1);
        let actor = Actor {
            section: Section::Prologue,
            step: 0,
            micro: 0,
            iteration: 0,
            free: 0,
            phase: Phase::Blocked,
            ready: 0,
            why: Why::Order,
            last: NONE,
            from: NONE,
        };
        let mut simulation = Simulation {
            ports: Ports::new(topology, header.ranks, call.encoding, work.memory),
            cores: Cores::new(topology, header.ranks),
            periods: want.skip.then(|| Periods::new(program.micro_steps * copies as u64)),
            program,
            lengths,
            work,
            again,
            credit,
            actors: vec![actor; copies * blocks],
            blocks,
            readers,
            channels,
            sent: vec![0; copies * channels],
            taken: vec![0; copies * readers],
            arrival: vec![0; slots],
            freed: vec![0; slots],
            arrival_by: record(slots),
            freed_by: record(slots),
            tokens: vec![VecDeque::new(); tokens],
            done: vec![0; waited],
            done_at: vec![0; waited],
            done_by: record(waited),
            heap: BinaryHeap::with_capacity(copies * blocks),
            passages: Vec::new(),
            skip: 0,
            records: Vec::new(),
            keep: want.records,
            events: 0,
            end: 0,
            last: NONE,
        };
        for actor in 0..simulation.actors.len() {
            let block = &plan.blocks[actor % blocks];
            simulation.actors[actor].step = block.prologue.start;
            simulation.settle(actor);
        }
        simulation
    }

    fn run(&mut self) {
        for actor in 0..self.actors.len() {
            self.consider(actor);
        }
        let actors = self.actors.len() as u32;
        while let Some(Reverse((now, key))) = self.heap.pop() {
            if key >= actors {
                self.core_turns((key - actors) as usize, now);
            } else if self.cores.is_some() {
                self.enable(key as usize, now);
            } else {
                self.act(key as usize, now);
            }
        }
    }

    /// One event, at its time.
    fn act(&mut self, index: usize, now: Time) -> Time {
        self.look_for_period(index, now);
        let Actor { step: id, micro, section, iteration, why, from, .. } = self.actors[index];
        let program = self.program;
        let plan = program.plan();
        let (copy, block) = (index / self.blocks, index % self.blocks);
        let rank = plan.blocks[block].rank.0;
        let step = &plan.steps[id as usize];
        let (micros, bytes) = self.group(copy, id, micro, iteration);
        let record = self.records.len() as u32;

        // What the engine does.
        let (first, middle) = (step.operands as usize, step.operands as usize + usize::from(step.sources));
        let last = middle + usize::from(step.destinations);
        let mut work: Time = 0;
        let (mut local, mut moved) = (0, 0);
        let again = |at: usize| self.again.get(at).copied().unwrap_or(false);
        for (at, end) in program.operands[first..middle].iter().enumerate() {
            let (cost, here) = match *end {
                End::Take(reader) => {
                    let channel = program.reader_channel[reader as usize] as usize;
                    if program.token[channel] {
                        continue;
                    }
                    let writer = plan.blocks[plan.channels[channel].writer.index()].rank.0;
                    (if self.together(rank, writer) { self.work.take_near } else { self.work.take }, 1)
                }
                End::Place if again(first + at) => (self.work.read_again, 1),
                End::Place => (self.work.read, 1),
                End::Peer(owner) if self.together(rank, owner) => (self.work.read, 0),
                End::Peer(_) => (self.work.pull, 0),
                End::Put(_) => continue,
            };
            work = work.saturating_add(cost.of(bytes));
            local += here;
            moved += 1;
        }
        let mut stored = 0;
        for (at, end) in program.operands[middle..last].iter().enumerate() {
            let (cost, here) = match *end {
                End::Put(channel) if program.token[channel as usize] => continue,
                End::Put(channel) => {
                    let readers = plan.readers(&plan.channels[channel as usize]);
                    let mut readers = readers.iter().map(|block| plan.blocks[block.index()].rank.0);
                    let near = readers.all(|reader| self.together(rank, reader));
                    (if near { self.work.put_near } else { self.work.put }, 0)
                }
                End::Place if again(middle + at) => (self.work.write_again, 1),
                End::Place => (self.work.write, 1),
                End::Peer(_) => (self.work.write, 0),
                End::Take(_) => continue,
            };
            work = work.saturating_add(cost.of(bytes));
            local += here;
            stored += 1;
        }
        work = work.saturating_add(self.work.stream.of(bytes * moved.max(stored)));
        let begin = now.saturating_add(self.work.event);
        let mut ends = begin.saturating_add(work);
        let mut cause = (why, from);
        let mut later = |at: Time, behind: Option<u32>| {
            if at > ends {
                ends = at;
                // Behind what it sends itself it only moves data.
                if let Some(behind) = behind.filter(|&behind| behind != record) {
                    cause = (Why::Port, behind);
                }
            }
        };
        let (through, behind) = self.ports.memory(rank, bytes * local, begin, record);
        later(through, behind);

        // What goes over ports.
        let mut passages = std::mem::take(&mut self.passages);
        passages.clear();
        for end in &program.operands[first..middle] {
            if let End::Peer(owner) = *end {
                let passage = self.ports.send(owner, rank, bytes, begin, record, None);
                // A read goes there and comes back.
                later(passage.through.saturating_add(2 * self.ports.latency(passage.level)), passage.behind);
            }
        }
        for end in &program.operands[middle..last] {
            match *end {
                End::Peer(owner) => {
                    let passage = self.ports.send(rank, owner, bytes, begin, record, None);
                    later(passage.sent, passage.behind);
                }
                End::Put(channel) if !self.elided(copy, channel, bytes) => {
                    let mut cast: Option<Passage> = None;
                    for reader in plan.channels[channel as usize].readers.clone() {
                        let to = plan.blocks[plan.readers[reader as usize].index()].rank.0;
                        let level = self.ports.level(rank, to);
                        let sent = cast.filter(|cast| {
                            cast.level == level && level.is_some_and(|level| self.ports.multicast(level))
                        });
                        let size = if program.token[channel as usize] { 0 } else { bytes };
                        let passage = self.ports.send(rank, to, size, begin, record, sent);
                        later(passage.sent, passage.behind);
                        cast = cast.or(Some(passage));
                        passages.push((reader, passage));
                    }
                }
                End::Put(_) | End::Place | End::Take(_) => {}
            }
        }

        // It has happened: slots are freed, messages are on their way.
        for end in &program.operands[first..middle] {
            let End::Take(reader) = *end else { continue };
            let channel = program.reader_channel[reader as usize];
            let own = copy * self.readers + reader as usize;
            if bytes == 0 && !program.token[channel as usize] && self.taken[own] > 0 {
                continue;
            }
            if program.token[channel as usize] {
                self.tokens[own].pop_front();
            } else {
                let writer = plan.channels[channel as usize].writer.index();
                let back = self.ports.credit(self.ports.level(rank, plan.blocks[writer].rank.0));
                let slot = self.slot(own, self.taken[own]);
                self.freed[slot] = ends.saturating_add(back);
                if self.keep {
                    self.freed_by[slot] = record;
                }
            }
            self.taken[own] += 1;
        }
        for &(reader, passage) in &passages {
            let own = copy * self.readers + reader as usize;
            let channel = program.reader_channel[reader as usize] as usize;
            let arrival = ends.max(passage.through).saturating_add(self.ports.latency(passage.level));
            if program.token[channel] {
                self.tokens[own].push_back((arrival, record));
            } else {
                let slot = self.slot(own, self.sent[copy * self.channels + channel]);
                self.arrival[slot] = arrival;
                if self.keep {
                    self.arrival_by[slot] = record;
                }
            }
        }
        for end in &program.operands[middle..last] {
            if let End::Put(channel) = *end
                && !self.elided(copy, channel, bytes)
            {
                self.sent[copy * self.channels + channel as usize] += 1;
            }
        }

        if self.keep {
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            self.records.push(Record { step: id, from: cause.1, why: cause.0, bytes, start: now, end: ends });
        }
        self.events += 1;
        if ends >= self.end {
            (self.end, self.last) = (ends, record);
        }
        let finished = micros >= step.width;
        let actor = &mut self.actors[index];
        actor.free = ends;
        actor.last = record;
        actor.phase = Phase::Blocked;
        if finished {
            actor.step += 1;
            actor.micro = 0;
            self.settle(index);
        } else {
            actor.micro = micros;
        }
        let waited = if finished { program.waited[id as usize] } else { NONE };
        if waited != NONE {
            let at = copy * (program.waiters_of.len() - 1) + waited as usize;
            self.done[at] = if section == Section::Body { iteration + 1 } else { 1 };
            self.done_at[at] = ends;
            if self.keep {
                self.done_by[at] = record;
            }
        }
        self.wake(index, copy, id, &passages, waited);
        self.passages = passages;
        ends
    }

    /// Looks again at those whom an event may have given what they lacked.
    fn wake(&mut self, index: usize, copy: usize, id: u32, passages: &[(u32, Passage)], waited: u32) {
        let program = self.program;
        let plan = program.plan();
        let base = copy * self.blocks;
        self.consider(index);
        let step = &plan.steps[id as usize];
        for end in &program.operands[step.operands as usize..][..usize::from(step.sources)] {
            if let End::Take(reader) = *end {
                let channel = program.reader_channel[reader as usize] as usize;
                self.consider(base + plan.channels[channel].writer.index());
            }
        }
        for &(reader, _) in passages {
            self.consider(base + plan.readers[reader as usize].index());
        }
        if waited != NONE {
            let range = program.waiters_of[waited as usize]..program.waiters_of[waited as usize + 1];
            for waiter in range {
                self.consider(base + program.waiters[waiter as usize] as usize);
            }
        }
    }

    /// Goes on to the next section or iteration as long as there is nothing left to do in this one.
    fn settle(&mut self, index: usize) {
        let block = &self.program.plan().blocks[index % self.blocks];
        let last = self.lengths.slices - self.skip;
        let actor = &mut self.actors[index];
        while actor.step >= block.section(actor.section).end {
            match actor.section {
                Section::Body if !block.body.is_empty() && actor.iteration + 1 < last => {
                    actor.iteration += 1;
                    actor.step = block.body.start;
                }
                Section::Prologue => {
                    actor.section = Section::Body;
                    actor.step = block.body.start;
                }
                Section::Body => {
                    actor.section = Section::Epilogue;
                    actor.step = block.epilogue.start;
                }
                Section::Epilogue => {
                    actor.phase = Phase::Ended;
                    return;
                }
            }
        }
    }

    /// The micro-steps that go together from `micro` on, and their bytes.
    #[inline]
    fn group(&self, copy: usize, step: u32, micro: u32, iteration: u64) -> (u32, u64) {
        let first = self.program.first[step as usize] as usize;
        let width = self.program.plan().steps[step as usize].width as usize;
        let classes = &self.program.classes[first..first + width];
        self.lengths.group(copy, classes, micro, self.program.single[step as usize], iteration + self.skip)
    }

    /// Whether both ends skip the next message of a channel: it is empty, no token, and not the first.
    #[inline]
    fn elided(&self, copy: usize, channel: u32, bytes: u64) -> bool {
        let sent = self.sent[copy * self.channels + channel as usize];
        bytes == 0 && sent > 0 && !self.program.token[channel as usize]
    }

    /// Whether two ranks share a core; as good as not where every block has an engine of its own.
    #[inline]
    fn together(&self, a: u32, b: u32) -> bool {
        self.cores.as_ref().is_some_and(|cores| cores.together(a, b))
    }

    #[inline]
    fn slot(&self, reader: usize, message: u64) -> usize {
        reader * self.credit as usize + (message % self.credit) as usize
    }
}
