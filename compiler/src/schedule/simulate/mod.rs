//! The run that proves the order: all blocks of all ranks, with so many slots per channel.
//!
//! In: flow, keys, transfers, the agenda dealt out to blocks. Out: what each rank does, in an order in which it can be done; transfers
//! that could not go as planned are changed. Each block does its events in order; a rank begins a round when it has finished
//! the one before (so conflicts in memory, which are between rounds, are kept, whatever waits are made of them).
//!
//! The one hard idea: an event is done as a whole or not at all. A message of w cells needs w slots, or its reader must be
//! about to take it, with all else that this needs, and so on: a gang of events, each next in its block, that go through
//! their cells side by side. When nothing can be done in the order planned, blocks do what they can of the same round; when
//! that is nothing either, one more slot is counted on, as far as that is allowed; then the event that comes first in T is let go: what is planned early and stands in its way is
//! put off until just before it is taken; what it cannot send along is kept and sent later. Were everything put off, the
//! order would be T itself, in which each message is sent right before it is taken, and nothing ever gets stuck if messages are
//! no wider than channels have slots. (Wider ones mostly go too, in gangs; if not, the caller cuts them.) So the run
//! ends, with any number of slots, and since it is an execution, the graph of D (docs/plan.md §4) is acyclic.

mod gangs;
mod overtake;
mod rounds;
mod unblock;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

use plan::ids::BlockId;

use crate::flow::{Flow, NodeId};
use crate::options::Options;
use crate::schedule::agenda::{Agenda, Event};
use crate::schedule::blocks::Blocks;
use crate::schedule::keys::Keys;
use crate::schedule::transfers::{NONE, Sent, TransferId, Transfers};

/// What all ranks do.
pub(in crate::schedule) struct Run {
    /// How many slots per channel were enough.
    pub(in crate::schedule) slots: u32,
    /// By rank: what it does, in order, and the block of each.
    pub(in crate::schedule) ranks: Vec<Vec<(Event, u32)>>,
    /// By channel: the block that writes it.
    pub(in crate::schedule) writers: Vec<BlockId>,
    /// By reader's end of a channel: the block that reads it.
    pub(in crate::schedule) readers: Vec<BlockId>,
}

impl Run {
    /// All events, rank by rank.
    pub(in crate::schedule) fn events(&self) -> impl Iterator<Item = Event> {
        self.ranks.iter().flatten().map(|&(event, _)| event)
    }
}

/// Runs all ranks; nothing if some message is wider than its channel has slots, and no gang could take it.
pub(in crate::schedule) fn simulate(
    flow: &Flow,
    keys: &Keys,
    transfers: &mut Transfers,
    agenda: &Agenda,
    blocks: &Blocks,
    options: &Options,
) -> Option<Run> {
    let mut simulation = Simulation::new(flow, keys, transfers, agenda, blocks, options);
    loop {
        while let Some(block) = simulation.ready.pop() {
            simulation.advance(block);
        }
        if !simulation.gangs() && !simulation.overtake() && !simulation.more_slots() {
            match simulation.unblock() {
                Next::More => {}
                Next::End => break,
                Next::TooWide => return None,
            }
        }
    }
    Some(Run {
        slots: simulation.slots,
        ranks: simulation.ranks.into_iter().map(|rank| rank.done).collect(),
        writers: simulation.channels.into_iter().map(|channel| BlockId(channel.writer)).collect(),
        readers: simulation.reader_of.into_iter().map(BlockId).collect(),
    })
}

/// What comes when nothing can act.
enum Next {
    /// Something can now.
    More,
    /// All is done.
    End,
    /// Messages are wider than their channels.
    TooWide,
}

/// How far a block has come.
struct Block {
    rank: u32,
    next: u32,
    end: u32,
    /// What was put off, and when it is due.
    later: BinaryHeap<Reverse<(u32, TransferId)>>,
    lack: Option<Lack>,
}

/// How far a rank has come.
struct Rank {
    round: u32,
    /// Events of the round that are not done.
    open: u32,
    /// When in T those act that overwrite what events of the round have yet to read, and how many such reads there are.
    guards: BTreeMap<u32, u32>,
    /// The planned events of the rounds still to come.
    planned: Range<u32>,
    /// What was put off to a later round.
    later: BinaryHeap<Reverse<(u32, TransferId)>>,
    done: Vec<(Event, u32)>,
}

/// How far a channel has come. (What is asked for of a channel at once lies side by side: there may be millions.)
#[derive(Clone, Copy)]
struct Channel {
    /// The block that writes it.
    writer: u32,
    /// Messages sent.
    sent: u32,
    /// Cells that are in its slots.
    held: u32,
}

/// Slots with which the run begins: what lets a rank take one message while the one before goes on.
pub(in crate::schedule) const FEW_SLOTS: u32 = 2;

/// What a block waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lack {
    Message(u32),
    Slot(u32),
    Round,
}

struct Simulation<'a> {
    flow: &'a Flow,
    keys: &'a Keys,
    transfers: &'a mut Transfers,
    /// Slots counted on so far, and the most that may be.
    slots: u32,
    most_slots: u32,
    /// Events by block, and the round of each.
    planned: Vec<Event>,
    planned_rounds: Vec<u32>,
    agenda: &'a Agenda,
    blocks: Vec<Block>,
    first_block: &'a [u32],
    channels: Vec<Channel>,
    /// By reader's end of a channel: the block that reads it.
    reader_of: Vec<u32>,
    ranks: Vec<Rank>,
    /// By transfer that stands for a message with several readers: how many of them have taken it.
    taken: Vec<u32>,
    ready: Vec<u32>,
    /// Blocks that have come to lack slots, some of which may no longer; each once, once `gangs` has looked.
    short: Vec<u32>,
    gang: Vec<u32>,
}

impl<'a> Simulation<'a> {
    fn new(
        flow: &'a Flow,
        keys: &'a Keys,
        transfers: &'a mut Transfers,
        agenda: &'a Agenda,
        blocks: &'a Blocks,
        options: &Options,
    ) -> Simulation<'a> {
        let count = blocks.starts.last().map_or(0, |&count| count as usize);
        let mut starts = vec![0u32; count + 1];
        for &block in &blocks.of_event {
            starts[block as usize + 1] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        let (mut planned, mut planned_rounds) = (agenda.events.clone(), agenda.rounds.clone());
        let mut block_of = vec![NONE; flow.nodes.len()];
        let mut channels = vec![Channel { writer: NONE, sent: 0, held: 0 }; transfers.links.len()];
        let mut writes = |id: TransferId, block: u32| {
            channels[transfers.list[id.index()].channel as usize].writer = block;
        };
        for ((&event, &round), &block) in agenda.events.iter().zip(&agenda.rounds).zip(&blocks.of_event) {
            let slot = &mut next[block as usize];
            (planned[*slot as usize], planned_rounds[*slot as usize]) = (event, round);
            *slot += 1;
            match event {
                Event::Make(node) => {
                    block_of[node.index()] = block;
                    transfers.fused(node).iter().for_each(|&id| writes(id, block));
                }
                Event::Send(id) | Event::Aside(id) => writes(id, block),
                Event::Save(..) => {}
            }
        }
        let mut reader_of = vec![0; transfers.ends as usize];
        for (id, first) in (0..).zip(&transfers.list).filter(|(_, transfer)| transfer.number == 0) {
            reader_of[transfers.end(TransferId(id)) as usize] = block_of[first.reader.index()];
        }
        let mut all = Vec::with_capacity(count);
        for (rank, pair) in blocks.starts.windows(2).enumerate() {
            for block in pair[0]..pair[1] {
                all.push(Block {
                    rank: rank as u32,
                    next: starts[block as usize],
                    end: starts[block as usize + 1],
                    later: BinaryHeap::new(),
                    lack: None,
                });
            }
        }
        let mut simulation = Simulation {
            flow,
            keys,
            slots: options.slots.clamp(1, FEW_SLOTS),
            most_slots: options.slots.max(1),
            planned,
            planned_rounds,
            agenda,
            blocks: all,
            first_block: &blocks.starts,
            channels,
            reader_of,
            ranks: Vec::new(),
            taken: match transfers.plain() {
                true => Vec::new(),
                false => vec![0; transfers.list.len()],
            },
            ready: (0..count as u32).rev().collect(),
            short: Vec::new(),
            gang: Vec::new(),
            transfers,
        };
        for (rank, pair) in agenda.starts.windows(2).enumerate() {
            simulation.ranks.push(Rank::new(pair[0]..pair[1]));
            simulation.next_round(rank);
        }
        simulation
    }

    fn saved(&self, node: NodeId, number: u16) -> u32 {
        self.flow.node(node).first + u32::from(number)
    }

    /// In whose round what is to be sent must be read.
    fn due(&self, id: TransferId) -> NodeId {
        let transfer = &self.transfers.list[id.index()];
        self.keys.due(self.flow, transfer.operand, transfer.reader)
    }

    /// The slots that it takes; none, if it carries no data.
    fn width(&self, id: TransferId) -> u32 {
        let reader = self.flow.node(self.transfers.list[id.index()].reader);
        if reader.is_signal() { 0 } else { reader.width }
    }

    /// What a block does next, whether it was put off, and when it comes in T (0 if nothing was put off: see `at`).
    #[inline]
    fn head(&self, block: u32) -> Option<(Event, bool, u32)> {
        let state = &self.blocks[block as usize];
        let planned = (state.next < state.end).then(|| self.planned[state.next as usize]);
        match state.later.peek() {
            None => planned.map(|planned| (planned, false, 0)),
            Some(&Reverse((due, id))) => Some(match planned {
                None => (Event::Send(id), true, due),
                Some(planned) => self.sooner(state, planned, due, id),
            }),
        }
    }

    /// Which comes first: what is planned, or what was put off. (Apart from `head`, so that this stays small where nothing is.)
    #[inline(never)]
    fn sooner(&self, state: &Block, planned: Event, due: u32, id: TransferId) -> (Event, bool, u32) {
        let at = self.at(planned);
        // Copies need no one else: they are made as soon as the round has come that they are planned for.
        let copies = matches!(planned, Event::Aside(_) | Event::Save(..));
        let round = || self.planned_rounds[state.next as usize];
        if due >= at || (copies && round() <= self.ranks[state.rank as usize].round) {
            return (planned, false, at);
        }
        if self.transfers.hands_on {
            // A node that hands on an entry value may be planned to send what goes before on the same channel.
            let transfer = &self.transfers.list[id.index()];
            if self.channels[transfer.channel as usize].sent != transfer.number {
                return (planned, false, at);
            }
        }
        (Event::Send(id), true, due)
    }

    /// When a planned event comes in T: a send, just before it is taken; but other reads stay where they are planned.
    fn at(&self, event: Event) -> u32 {
        match event {
            Event::Make(node) => self.keys.at(node),
            Event::Send(id) => self.keys.before(self.transfers.list[id.index()].reader),
            Event::Aside(id) => self.keys.before(self.due(id)),
            Event::Save(node, number) => {
                self.keys.before(self.keys.due(self.flow, self.saved(node, number), node))
            }
        }
    }

    /// Does what a block can do alone.
    fn advance(&mut self, block: u32) {
        self.blocks[block as usize].lack = None;
        while let Some((event, later, _)) = self.head(block) {
            if let Event::Send(id) = event
                && !later
                && self.is_due(block, event, later)
                && self.channels[self.transfers.list[id.index()].channel as usize].sent != self.number(id)
            {
                // One before it on the channel was put off, so it is, too.
                self.put_off(block, id);
                continue;
            }
            if let Some(lack) = self.lacks(block, event, later) {
                self.blocks[block as usize].lack = Some(lack);
                if matches!(lack, Lack::Slot(_)) {
                    self.short.push(block);
                }
                return;
            }
            self.finish(block, event, later);
        }
    }

    fn number(&self, id: TransferId) -> u32 {
        self.transfers.list[id.index()].number
    }

    /// Whether a rank is in the round of an event, and nothing that must be read first is open.
    fn is_due(&self, block: u32, event: Event, later: bool) -> bool {
        let rank = &self.ranks[self.blocks[block as usize].rank as usize];
        let round = match event {
            Event::Send(id) if later => self.flow.node(self.transfers.list[id.index()].reader).round,
            _ => {
                let next = self.blocks[block as usize].next as usize;
                match self.planned.get(next) == Some(&event) {
                    true => self.planned_rounds[next],
                    false => self.round(event),
                }
            }
        };
        let free = |node| rank.guards.first_key_value().is_none_or(|(&guard, _)| self.keys.at(node) < guard);
        round <= rank.round && !matches!(event, Event::Make(node) if !free(node))
    }

    fn lacks(&mut self, block: u32, event: Event, later: bool) -> Option<Lack> {
        if !self.is_due(block, event, later) {
            return Some(Lack::Round);
        }
        match event {
            Event::Make(node) => {
                for at in Flow::range(self.flow.node(node)) {
                    let transfer = self.transfers.of_operand[at];
                    if transfer != NONE {
                        let transfer = &self.transfers.list[transfer as usize];
                        if self.channels[transfer.channel as usize].sent <= transfer.number {
                            return Some(Lack::Message(transfer.channel));
                        }
                    }
                }
                for at in 0..self.transfers.fused(node).len() {
                    let id = self.transfers.fused(node)[at];
                    let transfer = self.transfers.list[id.index()];
                    if transfer.sent != Sent::Fused {
                        continue;
                    }
                    if self.channels[transfer.channel as usize].sent != transfer.number {
                        self.split(id);
                    } else if !self.has_room(id) {
                        return Some(Lack::Slot(transfer.channel));
                    }
                }
                None
            }
            Event::Send(id) => {
                (!self.has_room(id)).then(|| Lack::Slot(self.transfers.list[id.index()].channel))
            }
            Event::Aside(_) | Event::Save(..) => None,
        }
    }

    /// Counts on one more slot; whether that is allowed, and some block lacks one.
    fn more_slots(&mut self) -> bool {
        let lacks = |block: &Block| matches!(block.lack, Some(Lack::Slot(_)));
        if self.slots >= self.most_slots || !self.blocks.iter().any(lacks) {
            return false;
        }
        self.slots += 1;
        for block in 0..self.blocks.len() as u32 {
            if lacks(&self.blocks[block as usize]) {
                self.ready.push(block);
            }
        }
        true
    }

    fn has_room(&self, id: TransferId) -> bool {
        let channel = self.transfers.list[id.index()].channel as usize;
        self.channels[channel].held + self.width(id) <= self.slots
    }

    /// Notes that an event is done.
    fn finish(&mut self, block: u32, event: Event, later: bool) {
        match event {
            Event::Make(node) => {
                for at in Flow::range(self.flow.node(node)) {
                    let transfer = self.transfers.of_operand[at];
                    if transfer != NONE {
                        self.take(TransferId(transfer));
                    }
                }
                for at in 0..self.transfers.fused(node).len() {
                    let id = self.transfers.fused(node)[at];
                    if self.transfers.list[id.index()].sent == Sent::Fused {
                        self.put(id);
                    }
                }
            }
            Event::Send(id) => self.put(id),
            Event::Aside(id) => self.later(block, id),
            Event::Save(..) => {}
        }
        let state = &mut self.blocks[block as usize];
        match later {
            true => drop(state.later.pop()),
            false => state.next += 1,
        }
        let rank = state.rank as usize;
        let guard = self.guard(event);
        self.ranks[rank].done.push((event, block));
        self.close(rank, guard);
    }

    fn take(&mut self, id: TransferId) {
        let channel = self.transfers.list[id.index()].channel;
        let readers = self.transfers.readers(id);
        if readers > 1 {
            // Its slots are free when all have taken it.
            let taken = &mut self.taken[self.transfers.sender(id).index()];
            *taken += 1;
            if *taken < readers {
                return;
            }
        }
        let width = self.width(id);
        let state = &mut self.channels[channel as usize];
        state.held -= width;
        let writer = state.writer;
        self.wake(writer, Lack::Slot(channel));
    }

    fn put(&mut self, id: TransferId) {
        let channel = self.transfers.list[id.index()].channel;
        let width = self.width(id);
        let state = &mut self.channels[channel as usize];
        state.sent += 1;
        state.held += width;
        let first = self.transfers.end(self.transfers.sender(id));
        for end in first..first + self.transfers.readers(id) {
            self.wake(self.reader_of[end as usize], Lack::Message(channel));
        }
    }

    fn wake(&mut self, block: u32, lack: Lack) {
        let state = &mut self.blocks[block as usize];
        if state.lack == Some(lack) {
            state.lack = None;
            self.ready.push(block);
        }
    }
}
