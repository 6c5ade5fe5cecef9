//! What a plan costs, by counting: no topology, no times.
//!
//! In: a plan, the elements of a block and their type. Out: steps, messages and bytes, per rank and per link, and how many
//! rounds they take if in each round every rank sends at most one message and receives at most one (the
//! one-port model in which the algorithms of the literature are compared); and beside them the least that any algorithm
//! could do ([`super::bound`]). The one hard idea: steps are followed once, those first that could go first, and each message
//! takes the next round in which both its ends are free. Bytes are exact at any count, also where cells differ in length.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use plan::dtype::Dtype;
use plan::ids::RankId;
use plan::layout;
use plan::plan::{Block, Section};

use super::program::{End, NONE, Program};

/// The counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Per rank.
    pub ranks: Vec<RankCounts>,
    /// Per pair of ranks that a message goes between: messages and bytes.
    pub links: BTreeMap<(u32, u32), Traffic>,
    /// Messages without data: tokens.
    pub tokens: u64,
    /// The longest chain of steps of which each needs the one before.
    pub chain: u64,
    /// Rounds in the one-port model.
    pub rounds: u64,
}

/// What one rank does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RankCounts {
    /// Steps.
    pub steps: u64,
    /// Messages and bytes that leave it.
    pub sent: Traffic,
    /// Messages and bytes that reach it.
    pub received: Traffic,
}

/// Messages and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// How many; a step over several cells sends one.
    pub messages: u64,
    /// Of what size in all.
    pub bytes: u64,
}

impl Traffic {
    fn add(&mut self, bytes: u64) {
        self.messages += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// Counts a plan for blocks of `count` elements.
pub fn count(program: &Program<'_>, count: u64, dtype: Dtype) -> Counts {
    Walk::new(program, count, dtype).run()
}

/// A step that has finished, or a message that has been sent.
#[derive(Debug, Clone, Copy, Default)]
struct At {
    chain: u64,
    round: u64,
}

struct Walk<'a> {
    program: &'a Program<'a>,
    /// Bytes of a cell of each class.
    cell_bytes: Vec<u64>,
    graph: Graph,
    /// Of each step: what it still waits for.
    unmet: Vec<u32>,
    /// Of each step: when what it waits for was there.
    ready: Vec<At>,
    /// The last round in which a rank sends, and in which it receives.
    send_port: Vec<u64>,
    receive_port: Vec<u64>,
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    counts: Counts,
}

/// Who waits for whom.
struct Graph {
    rank: Vec<RankId>,
    /// The step after it in its block, or none.
    next: Vec<u32>,
    /// Pairs of a step and one that names it in a `wait`, sorted.
    waits: Vec<(u32, u32)>,
    /// Of each operand that sends: how many messages its channel had before.
    number: Vec<u32>,
    /// Of each reader, where its messages are in `receives`: the steps that take them, in order.
    first: Vec<u32>,
    receives: Vec<u32>,
}

impl Graph {
    fn new(program: &Program<'_>) -> Graph {
        let plan = program.plan();
        let mut graph = Graph {
            rank: vec![RankId(0); plan.steps.len()],
            next: vec![NONE; plan.steps.len()],
            waits: Vec::new(),
            number: vec![0; plan.operands.len()],
            first: Vec::with_capacity(plan.readers.len()),
            receives: Vec::new(),
        };
        // Messages of each channel, all its steps counted once whatever their width.
        let mut sent = vec![0u32; plan.channels.len()];
        for step in plan.blocks.iter().flat_map(steps) {
            let step = &plan.steps[step as usize];
            let first = step.operands as usize + usize::from(step.sources);
            for at in first..first + usize::from(step.destinations) {
                if let End::Put(channel) = program.operands[at] {
                    graph.number[at] = sent[channel as usize];
                    sent[channel as usize] += 1;
                }
            }
        }
        let mut total = 0;
        for &channel in &program.reader_channel {
            graph.first.push(total);
            total += sent.get(channel as usize).copied().unwrap_or(0);
        }
        graph.receives = vec![NONE; total as usize];
        let mut taken = vec![0u32; plan.readers.len()];
        for block in &plan.blocks {
            let mut before = NONE;
            for id in steps(block) {
                let step = &plan.steps[id as usize];
                graph.rank[id as usize] = block.rank;
                if before != NONE {
                    graph.next[before as usize] = id;
                }
                before = id;
                for end in &program.operands[step.operands as usize..][..usize::from(step.sources)] {
                    if let End::Take(reader) = *end {
                        let at = graph.first[reader as usize] + taken[reader as usize];
                        graph.receives[at as usize] = id;
                        taken[reader as usize] += 1;
                    }
                }
                graph.waits.extend(plan.waits(step).iter().map(|wait| (wait.0, id)));
            }
        }
        graph.waits.sort_unstable();
        graph
    }
}

/// The steps of a block, in order.
fn steps(block: &Block) -> impl Iterator<Item = u32> + use<> {
    let sections = Section::ALL.map(|section| block.section(section));
    sections.into_iter().flatten()
}

impl<'a> Walk<'a> {
    fn new(program: &'a Program<'a>, count: u64, dtype: Dtype) -> Walk<'a> {
        let plan = program.plan();
        let header = &plan.header;
        let cells = u64::from(header.cells);
        let align = layout::cut_align(count, dtype);
        let end = |class: u64| layout::cut(class, cells, count, align);
        let cell_bytes = (0..cells).map(|c| (end(c + 1) - end(c)) * u64::from(dtype.size())).collect();
        let ranks = header.ranks as usize;
        Walk {
            program,
            cell_bytes,
            graph: Graph::new(program),
            unmet: vec![0; plan.steps.len()],
            ready: vec![At::default(); plan.steps.len()],
            send_port: vec![0; ranks],
            receive_port: vec![0; ranks],
            heap: BinaryHeap::new(),
            counts: Counts { ranks: vec![RankCounts::default(); ranks], ..Counts::default() },
        }
    }

    fn run(mut self) -> Counts {
        let graph = &self.graph;
        for &step in graph.next.iter().chain(&graph.receives).filter(|&&step| step != NONE) {
            self.unmet[step as usize] += 1;
        }
        for &(_, waiter) in &graph.waits {
            self.unmet[waiter as usize] += 1;
        }
        let free = self.unmet.iter().enumerate().filter(|&(_, &unmet)| unmet == 0);
        self.heap = free.map(|(step, _)| Reverse((0, step as u32))).collect();
        // Round by round: a port goes to the message that could go first. A step whose ports are taken comes again later.
        while let Some(Reverse((round, step))) = self.heap.pop() {
            let free = self.free(step);
            if free > round {
                self.heap.push(Reverse((free, step)));
            } else {
                self.step(step);
            }
        }
        self.counts
    }

    /// The round before the first one in which the step's first message can go; for others: when they are ready.
    fn free(&self, id: u32) -> u64 {
        let ready = self.ready[id as usize].round;
        let send = self.destinations(id).find(|&at| matches!(self.program.operands[at], End::Put(_)));
        send.map_or(ready, |at| self.ports(at, id).max(ready))
    }

    /// The places of a step's destinations among all operands.
    fn destinations(&self, id: u32) -> std::ops::Range<usize> {
        let step = &self.program.plan().steps[id as usize];
        let first = step.operands as usize + usize::from(step.sources);
        first..first + usize::from(step.destinations)
    }

    /// The last round in which an end of a message is busy.
    fn ports(&self, operand: usize, id: u32) -> u64 {
        let sender = self.send_port[self.graph.rank[id as usize].index()];
        self.receivers(operand).fold(sender, |busy, receive| {
            busy.max(self.receive_port[self.graph.rank[receive as usize].index()])
        })
    }

    /// The steps that take what an operand sends.
    fn receivers(&self, operand: usize) -> impl Iterator<Item = u32> {
        let readers = match self.program.operands[operand] {
            End::Put(channel) => self.program.plan().channels[channel as usize].readers.clone(),
            End::Take(_) | End::Place | End::Peer(_) => 0..0,
        };
        let (graph, number) = (&self.graph, self.graph.number[operand]);
        readers.map(move |reader| graph.receives[(graph.first[reader as usize] + number) as usize])
    }

    /// Follows a step all of whose needs are met.
    fn step(&mut self, id: u32) {
        let plan = self.program.plan();
        let step = plan.steps[id as usize];
        let rank = self.graph.rank[id as usize];
        let At { chain, round } = self.ready[id as usize];
        let done = At { chain: chain + 1, round };
        self.counts.chain = self.counts.chain.max(done.chain);
        self.counts.rounds = self.counts.rounds.max(round);
        self.counts.ranks[rank.index()].steps += 1;

        let first = self.program.first[id as usize] as usize;
        let classes = &self.program.classes[first..first + step.width as usize];
        let length = |&class: &u32| self.cell_bytes.get(class as usize).copied().unwrap_or(0);
        let bytes = classes.iter().map(length).fold(0, u64::saturating_add);
        for at in step.operands as usize..step.operands as usize + usize::from(step.sources) {
            if let End::Peer(from) = self.program.operands[at] {
                self.carry(RankId(from), rank, bytes);
            }
        }
        for at in self.destinations(id) {
            match self.program.operands[at] {
                End::Put(channel) => self.send(at, channel, id, bytes, done),
                End::Peer(to) => self.carry(rank, RankId(to), bytes),
                End::Place | End::Take(_) => {}
            }
        }
        if self.graph.next[id as usize] != NONE {
            self.meet(self.graph.next[id as usize], done);
        }
        let first = self.graph.waits.partition_point(|&(step, _)| step < id);
        for i in first..self.graph.waits.len() {
            let (step, waiter) = self.graph.waits[i];
            if step != id {
                break;
            }
            self.meet(waiter, done);
        }
    }

    /// Sends to every reader, in the first round in which all ends are free.
    fn send(&mut self, operand: usize, channel: u32, id: u32, bytes: u64, done: At) {
        let rank = self.graph.rank[id as usize];
        let readers = self.program.plan().channels[channel as usize].readers.clone();
        let round = 1 + self.ports(operand, id).max(done.round);
        self.send_port[rank.index()] = round;
        for reader in readers {
            let at = self.graph.first[reader as usize] + self.graph.number[operand];
            let receive = self.graph.receives[at as usize];
            let to = self.graph.rank[receive as usize];
            self.receive_port[to.index()] = round;
            if self.program.token[channel as usize] {
                self.counts.tokens += 1;
            } else {
                self.carry(rank, to, bytes);
            }
            self.meet(receive, At { chain: done.chain, round });
        }
    }

    fn carry(&mut self, from: RankId, to: RankId, bytes: u64) {
        self.counts.ranks[from.index()].sent.add(bytes);
        self.counts.ranks[to.index()].received.add(bytes);
        self.counts.links.entry((from.0, to.0)).or_default().add(bytes);
    }

    fn meet(&mut self, step: u32, at: At) {
        let ready = &mut self.ready[step as usize];
        ready.chain = ready.chain.max(at.chain);
        ready.round = ready.round.max(at.round);
        let round = ready.round;
        let unmet = &mut self.unmet[step as usize];
        *unmet -= 1;
        if *unmet == 0 {
            self.heap.push(Reverse((round, step)));
        }
    }
}
