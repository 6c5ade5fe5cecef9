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
use plan::ids::{ChannelId, RankId, StepId};
use plan::layout;
use plan::plan::{ChannelKind, Operand, Plan, Section};
use plan::verify::VerifiedPlan;

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
        self.bytes += bytes;
    }
}

/// Counts a plan for blocks of `count` elements.
pub fn count(plan: &VerifiedPlan, count: u64, dtype: Dtype) -> Counts {
    Walk::new(plan, count, dtype).run()
}

/// A step that has finished, or a message that has been sent.
#[derive(Debug, Clone, Copy, Default)]
struct At {
    chain: u64,
    round: u64,
}

struct Walk<'a> {
    plan: &'a VerifiedPlan,
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
    cost: Counts,
}

/// Who waits for whom.
struct Graph {
    rank: Vec<RankId>,
    /// The step after it in its block.
    next: Vec<Option<StepId>>,
    /// Steps that name it in a `wait`.
    waiters: BTreeMap<u32, Vec<StepId>>,
    /// Of each channel and step that sends on it: who receives.
    receivers: BTreeMap<(ChannelId, StepId), Vec<StepId>>,
}

impl Graph {
    fn new(plan: &Plan) -> Graph {
        let mut graph = Graph {
            rank: vec![RankId(0); plan.steps.len()],
            next: vec![None; plan.steps.len()],
            waiters: BTreeMap::new(),
            receivers: BTreeMap::new(),
        };
        // Of each channel: the steps that send, and per reader block those that receive, in program order.
        let mut sends: Vec<Vec<StepId>> = vec![Vec::new(); plan.channels.len()];
        let mut receives: BTreeMap<(ChannelId, usize), Vec<StepId>> = BTreeMap::new();
        for (b, block) in plan.blocks.iter().enumerate() {
            let mut before: Option<StepId> = None;
            let all = Section::ALL.into_iter().flat_map(|section| block.section(section));
            for (id, step) in all.map(|step| (StepId(step), &plan.steps[step as usize])) {
                graph.rank[id.index()] = block.rank;
                if let Some(before) = before.replace(id) {
                    graph.next[before.index()] = Some(id);
                }
                for &operand in plan.src(step) {
                    if let Operand::Channel(channel) = operand {
                        receives.entry((channel, b)).or_default().push(id);
                    }
                }
                for &operand in plan.dst(step) {
                    if let Operand::Channel(channel) = operand {
                        sends[channel.index()].push(id);
                    }
                }
                for wait in plan.waits(step) {
                    graph.waiters.entry(wait.0).or_default().push(id);
                }
            }
        }
        for ((channel, _), steps) in receives {
            for (&send, &receive) in sends[channel.index()].iter().zip(&steps) {
                graph.receivers.entry((channel, send)).or_default().push(receive);
            }
        }
        graph
    }
}

impl<'a> Walk<'a> {
    fn new(plan: &'a VerifiedPlan, count: u64, dtype: Dtype) -> Walk<'a> {
        let header = &plan.header;
        let cells = u64::from(header.cells);
        let align = layout::cut_align(count, dtype);
        let end = |class: u64| layout::cut(class, cells, count, align);
        let cell_bytes = (0..cells).map(|c| (end(c + 1) - end(c)) * u64::from(dtype.size())).collect();
        let ranks = header.ranks as usize;
        Walk {
            plan,
            cell_bytes,
            graph: Graph::new(plan),
            unmet: vec![0; plan.steps.len()],
            ready: vec![At::default(); plan.steps.len()],
            send_port: vec![0; ranks],
            receive_port: vec![0; ranks],
            heap: BinaryHeap::new(),
            cost: Counts { ranks: vec![RankCounts::default(); ranks], ..Counts::default() },
        }
    }

    fn run(mut self) -> Counts {
        for next in self.graph.next.iter().flatten() {
            self.unmet[next.index()] += 1;
        }
        for waiter in self.graph.waiters.values().flatten() {
            self.unmet[waiter.index()] += 1;
        }
        for receive in self.graph.receivers.values().flatten() {
            self.unmet[receive.index()] += 1;
        }
        let free = self.unmet.iter().enumerate().filter(|&(_, &unmet)| unmet == 0);
        self.heap = free.map(|(step, _)| Reverse((0, step as u32))).collect();
        // Round by round: a port goes to the message that could go first. A step whose ports are taken comes again later.
        while let Some(Reverse((round, step))) = self.heap.pop() {
            let free = self.free(StepId(step));
            if free > round {
                self.heap.push(Reverse((free, step)));
            } else {
                self.step(StepId(step));
            }
        }
        self.cost
    }

    /// The round before the first one in which the step's first message can go; for others: when they are ready.
    fn free(&self, id: StepId) -> u64 {
        let ready = self.ready[id.index()].round;
        let sends = self.plan.dst(&self.plan.steps[id.index()]).iter().find_map(|&operand| match operand {
            Operand::Channel(channel) => Some(channel),
            Operand::Local { .. } | Operand::Peer { .. } => None,
        });
        sends.map_or(ready, |channel| self.ports(channel, id).max(ready))
    }

    /// The last round in which an end of a message is busy.
    fn ports(&self, channel: ChannelId, id: StepId) -> u64 {
        let readers = self.graph.receivers.get(&(channel, id)).map_or(&[][..], Vec::as_slice);
        let busy = readers.iter().map(|reader| self.receive_port[self.graph.rank[reader.index()].index()]);
        busy.chain([self.send_port[self.graph.rank[id.index()].index()]]).max().unwrap_or(0)
    }

    /// Follows a step all of whose needs are met.
    fn step(&mut self, id: StepId) {
        let step = self.plan.steps[id.index()];
        let rank = self.graph.rank[id.index()];
        let At { chain, round } = self.ready[id.index()];
        let done = At { chain: chain + 1, round };
        self.cost.chain = self.cost.chain.max(done.chain);
        self.cost.rounds = self.cost.rounds.max(round);
        self.cost.ranks[rank.index()].steps += 1;

        let length =
            |micro| self.plan.symbolic().class(id, micro).map_or(0, |class| self.cell_bytes[class as usize]);
        let bytes: u64 = (0..step.width).map(length).sum();
        for &operand in self.plan.src(&step) {
            if let Operand::Peer { rank: from, .. } = operand {
                self.carry(from, rank, bytes);
            }
        }
        for &operand in self.plan.dst(&step) {
            match operand {
                Operand::Channel(channel) => self.send(channel, id, rank, bytes, done),
                Operand::Peer { rank: to, .. } => self.carry(rank, to, bytes),
                Operand::Local { .. } => {}
            }
        }
        if let Some(next) = self.graph.next[id.index()] {
            self.meet(next, done);
        }
        for waiter in self.graph.waiters.get(&id.0).cloned().unwrap_or_default() {
            self.meet(waiter, done);
        }
    }

    /// Sends to every reader, in the first round in which all ends are free.
    fn send(&mut self, channel: ChannelId, id: StepId, rank: RankId, bytes: u64, done: At) {
        let readers = self.graph.receivers.get(&(channel, id)).cloned().unwrap_or_default();
        let data = self.plan.channels[channel.index()].kind == ChannelKind::Slots;
        let round = 1 + self.ports(channel, id).max(done.round);
        self.send_port[rank.index()] = round;
        for reader in readers {
            let to = self.graph.rank[reader.index()];
            self.receive_port[to.index()] = round;
            if data {
                self.carry(rank, to, bytes);
            } else {
                self.cost.tokens += 1;
            }
            self.meet(reader, At { chain: done.chain, round });
        }
    }

    fn carry(&mut self, from: RankId, to: RankId, bytes: u64) {
        self.cost.ranks[from.index()].sent.add(bytes);
        self.cost.ranks[to.index()].received.add(bytes);
        self.cost.links.entry((from.0, to.0)).or_default().add(bytes);
    }

    fn meet(&mut self, step: StepId, at: At) {
        let ready = &mut self.ready[step.index()];
        ready.chain = ready.chain.max(at.chain);
        ready.round = ready.round.max(at.round);
        let round = ready.round;
        let unmet = &mut self.unmet[step.index()];
        *unmet -= 1;
        if *unmet == 0 {
            self.heap.push(Reverse((round, step.0)));
        }
    }
}
