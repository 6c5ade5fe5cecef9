//! The run that proves the order: all blocks of all ranks, with so many slots per channel.
//!
//! In: flow, keys, transfers, the agenda dealt out to blocks. Out: what each rank does, in an order in which it can be done; transfers
//! that could not go as planned are changed. Each block does its events in order; a rank begins a round when it has finished
//! the one before (so conflicts in memory, which are between rounds, are kept, whatever waits are made of them).
//!
//! The one hard idea: an event is done as a whole or not at all. A message of w cells needs w slots, or its reader must be
//! about to take it, with all else that this needs, and so on: a gang of events, each next in its block, that go through
//! their cells side by side. When nothing can be done, the event that comes first in T is let go: what is planned early and stands in its way is
//! put off until just before it is taken; what it cannot send along is kept and sent later. Were everything put off, the
//! order would be T itself, in which each message is sent right before it is taken, and nothing ever gets stuck if messages are
//! no wider than channels have slots. (Wider ones mostly go too, in gangs; if not, the caller cuts them.) So the run
//! ends, with any number of slots, and since it is an execution, the graph of D (docs/plan.md §4) is acyclic.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

use super::agenda::{Agenda, Event};
use super::blocks::Blocks;
use super::keys::Keys;
use super::transfers::{NONE, Sent, TransferId, Transfers};
use crate::flow::{Flow, NodeId};
use crate::options::Options;

/// What all ranks do: those of rank r are `events[starts[r]..starts[r + 1]]`.
pub(super) struct Run {
    pub(super) events: Vec<Event>,
    /// The block of each.
    pub(super) blocks: Vec<u32>,
    pub(super) starts: Vec<u32>,
}

/// Runs all ranks; nothing if some message is wider than its channel has slots, and no gang could take it.
pub(super) fn simulate(
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
        if !simulation.gangs() {
            match simulation.unblock() {
                Next::More => {}
                Next::End => break,
                Next::TooWide => return None,
            }
        }
    }
    let mut run =
        Run { events: Vec::with_capacity(agenda.events.len()), blocks: Vec::new(), starts: vec![0] };
    for rank in simulation.ranks {
        for (event, block) in rank.done {
            run.events.push(event);
            run.blocks.push(block);
        }
        run.starts.push(run.events.len() as u32);
    }
    Some(run)
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
    /// The rounds still to come, next last, and where their planned events are.
    rounds: Vec<(u32, Range<u32>)>,
    /// What was put off to a later round.
    later: BinaryHeap<Reverse<(u32, TransferId)>>,
    done: Vec<(Event, u32)>,
}

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
    slots: u32,
    /// Events by block.
    planned: Vec<Event>,
    agenda: &'a Agenda,
    blocks: Vec<Block>,
    first_block: &'a [u32],
    block_of: Vec<u32>,
    writer_of: Vec<u32>,
    ranks: Vec<Rank>,
    /// By channel: messages sent, and cells that are in its slots.
    sent: Vec<u32>,
    held: Vec<u32>,
    ready: Vec<u32>,
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
        let mut planned = agenda.events.clone();
        let mut block_of = vec![NONE; flow.nodes.len()];
        let mut writer_of = vec![NONE; transfers.links.len()];
        for (&event, &block) in agenda.events.iter().zip(&blocks.of_event) {
            let slot = &mut next[block as usize];
            planned[*slot as usize] = event;
            *slot += 1;
            match event {
                Event::Make(node) => {
                    block_of[node.index()] = block;
                    for &id in transfers.fused(node) {
                        writer_of[transfers.list[id.index()].channel as usize] = block;
                    }
                }
                Event::Send(id) | Event::Aside(id) => {
                    writer_of[transfers.list[id.index()].channel as usize] = block;
                }
                Event::Save(..) => {}
            }
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
            slots: options.slots.max(1),
            planned,
            agenda,
            blocks: all,
            first_block: &blocks.starts,
            block_of,
            writer_of,
            ranks: Vec::new(),
            sent: vec![0; transfers.links.len()],
            held: vec![0; transfers.links.len()],
            ready: (0..count as u32).rev().collect(),
            gang: Vec::new(),
            transfers,
        };
        for (rank, pair) in agenda.starts.windows(2).enumerate() {
            let state = simulation.rank(pair[0]..pair[1]);
            simulation.ranks.push(state);
            simulation.next_round(rank);
        }
        simulation
    }

    /// A rank before its first round.
    fn rank(&self, events: Range<u32>) -> Rank {
        let mut rounds: Vec<(u32, Range<u32>)> = Vec::new();
        for at in events.clone() {
            let round = self.round(self.agenda.events[at as usize]);
            match rounds.last_mut().filter(|(last, _)| *last == round) {
                Some((_, range)) => range.end = at + 1,
                None => rounds.push((round, at..at + 1)),
            }
        }
        rounds.reverse();
        let done = Vec::with_capacity(events.len());
        Rank { round: 0, open: 0, guards: BTreeMap::new(), rounds, later: BinaryHeap::new(), done }
    }

    /// The round in which an event of the agenda is done.
    fn round(&self, event: Event) -> u32 {
        match event {
            Event::Make(node) => self.flow.node(node).round,
            Event::Send(id) | Event::Aside(id) => self.flow.node(self.due(id)).round,
            Event::Save(node, number) => {
                self.flow.node(self.keys.due(self.flow, self.saved(node, number), node)).round
            }
        }
    }

    /// When in T the place that it reads is overwritten by something of the same `step`.
    fn guard(&self, event: Event) -> Option<u32> {
        let operand = match event {
            Event::Make(id) => {
                let node = self.flow.node(id);
                // What is overwritten before the node acts was saved.
                let local = Flow::range(node).filter(|&at| self.flow.operands[at].place.rank == node.rank);
                let guards = local.filter_map(|at| self.flow.special(at).guard);
                let guards = guards.map(|guard| self.keys.at(guard));
                return guards.filter(|&guard| guard > self.keys.at(id)).min();
            }
            Event::Send(id) | Event::Aside(id) => self.transfers.list[id.index()].operand,
            Event::Save(node, number) => self.saved(node, number),
        };
        let aside = match event {
            Event::Send(id) => {
                matches!(self.transfers.list[id.index()].sent, Sent::Aside | Sent::Later { aside: true })
            }
            _ => false,
        };
        self.flow.special(operand as usize).guard.filter(|_| !aside).map(|guard| self.keys.at(guard))
    }

    fn saved(&self, node: NodeId, number: u16) -> u32 {
        self.flow.node(node).first + u32::from(number)
    }

    /// In whose round what is to be sent must be read.
    fn due(&self, id: TransferId) -> NodeId {
        let transfer = &self.transfers.list[id.index()];
        self.keys.due(self.flow, transfer.operand, transfer.reader)
    }

    fn width(&self, id: TransferId) -> u32 {
        self.flow.node(self.transfers.list[id.index()].reader).width
    }

    /// What a block does next, whether it was put off, and when it comes in T.
    fn head(&self, block: u32) -> Option<(Event, bool, u32)> {
        let state = &self.blocks[block as usize];
        let planned = (state.next < state.end).then(|| self.planned[state.next as usize]);
        let later = state.later.peek().map(|&Reverse((at, id))| (Event::Send(id), true, at));
        let Some(planned) = planned else { return later };
        let at = self.at(planned);
        // Copies need no one else: they are made as soon as their round has come.
        let copies = matches!(planned, Event::Aside(_) | Event::Save(..));
        let now = copies && self.round(planned) <= self.ranks[state.rank as usize].round;
        match later {
            Some(later) if later.2 < at && !now => Some(later),
            _ => Some((planned, false, at)),
        }
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
                && self.sent[self.transfers.list[id.index()].channel as usize] != self.number(id)
            {
                // One before it on the channel was put off, so it is, too.
                self.put_off(block, id);
                continue;
            }
            if let Some(lack) = self.lacks(block, event, later) {
                self.blocks[block as usize].lack = Some(lack);
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
            _ => self.round(event),
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
                        if self.sent[transfer.channel as usize] <= transfer.number {
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
                    if self.sent[transfer.channel as usize] != transfer.number {
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

    fn has_room(&self, id: TransferId) -> bool {
        let channel = self.transfers.list[id.index()].channel as usize;
        self.transfers.links[channel].counter || self.held[channel] + self.width(id) <= self.slots
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

    /// One event less is open in the round of a rank.
    fn close(&mut self, rank: usize, guard: Option<u32>) {
        let state = &mut self.ranks[rank];
        state.open -= 1;
        let mut free = false;
        if let Some(guard) = guard
            && let Some(count) = state.guards.get_mut(&guard)
        {
            *count -= 1;
            if *count == 0 {
                state.guards.remove(&guard);
                free = true;
            }
        }
        if state.open == 0 {
            self.next_round(rank);
        } else if free {
            self.wake_rank(rank);
        }
    }

    /// One event more.
    fn open(&mut self, rank: usize, event: Event) {
        let guard = self.guard(event);
        let state = &mut self.ranks[rank];
        state.open += 1;
        if let Some(guard) = guard {
            *state.guards.entry(guard).or_insert(0) += 1;
        }
    }

    fn next_round(&mut self, rank: usize) {
        let state = &mut self.ranks[rank];
        let planned = state.rounds.last().map(|&(round, _)| round);
        let later = state.later.peek().map(|&Reverse((round, _))| round);
        let Some(round) = planned.into_iter().chain(later).min() else { return };
        state.round = round;
        if planned == Some(round)
            && let Some((_, events)) = state.rounds.pop()
        {
            for at in events {
                self.open(rank, self.agenda.events[at as usize]);
            }
        }
        while let Some(&Reverse((later, id))) = self.ranks[rank].later.peek()
            && later == round
        {
            self.ranks[rank].later.pop();
            self.open(rank, Event::Send(id));
        }
        self.wake_rank(rank);
    }

    fn wake_rank(&mut self, rank: usize) {
        for block in self.first_block[rank]..self.first_block[rank + 1] {
            self.wake(block, Lack::Round);
        }
    }

    fn take(&mut self, id: TransferId) {
        let channel = self.transfers.list[id.index()].channel;
        self.held[channel as usize] -= self.width(id);
        self.wake(self.writer_of[channel as usize], Lack::Slot(channel));
    }

    fn put(&mut self, id: TransferId) {
        let transfer = self.transfers.list[id.index()];
        self.sent[transfer.channel as usize] += 1;
        self.held[transfer.channel as usize] += self.width(id);
        self.wake(self.block_of[transfer.reader.index()], Lack::Message(transfer.channel));
    }

    fn wake(&mut self, block: u32, lack: Lack) {
        let state = &mut self.blocks[block as usize];
        if state.lack == Some(lack) {
            state.lack = None;
            self.ready.push(block);
        }
    }

    /// Looks for gangs among all blocks; whether there was one.
    fn gangs(&mut self) -> bool {
        let mut any = false;
        for block in 0..self.blocks.len() as u32 {
            let short = matches!(self.blocks[block as usize].lack, Some(Lack::Slot(_)));
            any |= short && self.try_gang(block);
        }
        any
    }

    /// Does the next event of a block with all others that must go side by side with it; whether that can be.
    fn try_gang(&mut self, block: u32) -> bool {
        let mut gang = std::mem::take(&mut self.gang);
        gang.clear();
        gang.push(block);
        let mut next = 0;
        let mut good = true;
        while good && next < gang.len() {
            good = self.enlist(gang[next], &mut gang);
            next += 1;
        }
        if good {
            // Senders before readers, that is, in the order of T.
            let mut heads: Vec<(u32, u32)> =
                gang.iter().filter_map(|&block| self.head(block).map(|(_, _, at)| (at, block))).collect();
            heads.sort_unstable();
            for (_, block) in heads {
                if let Some((event, later, _)) = self.head(block) {
                    self.finish(block, event, later);
                }
            }
            self.ready.extend(&gang);
        }
        self.gang = gang;
        good
    }

    /// Adds the blocks whose next events must go with that of `block`; false if some are not ready to.
    fn enlist(&self, block: u32, gang: &mut Vec<u32>) -> bool {
        let Some((event, later, _)) = self.head(block) else { return false };
        if !self.is_due(block, event, later) {
            return false;
        }
        let mut add = |block: u32| {
            if !gang.contains(&block) {
                gang.push(block);
            }
        };
        let sends = |block: u32, id: TransferId| match self.head(block) {
            Some((Event::Send(other), ..)) => other == id,
            Some((Event::Make(node), ..)) => {
                self.transfers.fused(node).contains(&id)
                    && self.transfers.list[id.index()].sent == Sent::Fused
            }
            _ => false,
        };
        let reader = |id: TransferId| self.transfers.list[id.index()].reader;
        let mut room = |id: TransferId| {
            let transfer = &self.transfers.list[id.index()];
            if self.sent[transfer.channel as usize] != transfer.number {
                return false;
            }
            if self.has_room(id) {
                return true;
            }
            let theirs = self.block_of[reader(id).index()];
            let about = matches!(self.head(theirs), Some((Event::Make(node), ..)) if node == reader(id));
            if about {
                add(theirs);
            }
            about
        };
        match event {
            Event::Send(id) => return room(id),
            Event::Aside(_) | Event::Save(..) => return true,
            Event::Make(node) => {
                let along = self.transfers.fused(node).iter();
                let mut along = along.filter(|id| self.transfers.list[id.index()].sent == Sent::Fused);
                if !along.all(|&id| room(id)) {
                    return false;
                }
            }
        }
        let Event::Make(node) = event else { return true };
        for at in Flow::range(self.flow.node(node)) {
            let transfer = self.transfers.of_operand[at];
            if transfer == NONE {
                continue;
            }
            let (id, transfer) = (TransferId(transfer), &self.transfers.list[transfer as usize]);
            if self.sent[transfer.channel as usize] > transfer.number {
                continue;
            }
            let theirs = self.writer_of[transfer.channel as usize];
            if self.sent[transfer.channel as usize] != transfer.number || !sends(theirs, id) {
                return false;
            }
            add(theirs);
        }
        true
    }

    /// Lets the event that comes first in T go.
    fn unblock(&mut self) -> Next {
        let blocks = 0..self.blocks.len() as u32;
        let heads = blocks.filter_map(|block| Some((self.head(block)?.2, block)));
        let Some((_, block)) = heads.min() else { return Next::End };
        if !self.clear_the_way(block) {
            // What stands in the way is not plain to see: everything planned early is put off.
            let mut any = false;
            for block in 0..self.blocks.len() as u32 {
                any |= self.put_off_head(block);
            }
            if !any {
                // Messages that fit their channels always go in the end, see above.
                return Next::TooWide;
            }
        }
        self.ready.extend(0..self.blocks.len() as u32);
        Next::More
    }

    /// Puts off, or splits off, what keeps the next event of a block from being done; whether there is such a thing.
    fn clear_the_way(&mut self, block: u32) -> bool {
        let Some((event, later, _)) = self.head(block) else { return false };
        let mut changed = false;
        let rank = self.blocks[block as usize].rank as usize;
        if !self.is_due(block, event, later) {
            for block in self.first_block[rank]..self.first_block[rank + 1] {
                changed |= self.put_off_head(block);
            }
            return changed;
        }
        match event {
            Event::Send(id) => {
                let reader = self.transfers.list[id.index()].reader;
                let theirs = self.block_of[reader.index()];
                changed |= self.put_off_head(theirs);
                if !changed && matches!(self.head(theirs), Some((Event::Make(node), ..)) if node == reader) {
                    changed |= self.split_what_lacks_room(reader);
                }
            }
            Event::Make(node) => {
                for at in Flow::range(self.flow.node(node)) {
                    let transfer = self.transfers.of_operand[at];
                    if transfer != NONE {
                        let theirs = self.transfers.list[transfer as usize].channel;
                        let theirs = self.writer_of[theirs as usize];
                        let sends =
                            matches!(self.head(theirs), Some((Event::Send(id), ..)) if id.0 == transfer);
                        changed |= !sends && self.put_off_head(theirs);
                    }
                }
                changed = changed || self.split_what_lacks_room(node);
            }
            Event::Aside(_) | Event::Save(..) => {}
        }
        changed
    }

    /// Puts off the next event of a block's plan, if it is a send whose time has come; whether it was.
    fn put_off_head(&mut self, block: u32) -> bool {
        let state = &self.blocks[block as usize];
        let planned = (state.next < state.end).then(|| self.planned[state.next as usize]);
        let Some(event @ Event::Send(id)) = planned else { return false };
        let due = self.is_due(block, event, false);
        if due {
            self.put_off(block, id);
        }
        due
    }

    /// A planned send is done just before it is taken, from where it lies or from a copy made now.
    fn put_off(&mut self, block: u32, id: TransferId) {
        let reader = self.transfers.list[id.index()].reader;
        let moved = self.due(id) != reader;
        let state = &mut self.blocks[block as usize];
        if moved {
            let next = state.next as usize;
            self.planned[next] = Event::Aside(id);
            self.transfers.list[id.index()].sent = Sent::Aside;
            return;
        }
        state.next += 1;
        let rank = state.rank as usize;
        // It was counted in the round it was planned for, and is again.
        self.later(block, id);
        self.close(rank, self.guard(Event::Send(id)));
    }

    fn later(&mut self, block: u32, id: TransferId) {
        let reader = self.transfers.list[id.index()].reader;
        let (due, round) = (self.keys.before(reader), self.flow.node(reader).round);
        let state = &mut self.blocks[block as usize];
        state.later.push(Reverse((due, id)));
        let rank = state.rank as usize;
        match round <= self.ranks[rank].round {
            true => self.open(rank, Event::Send(id)),
            false => self.ranks[rank].later.push(Reverse((round, id))),
        }
    }

    fn split_what_lacks_room(&mut self, node: NodeId) -> bool {
        let mut changed = false;
        for at in 0..self.transfers.fused(node).len() {
            let id = self.transfers.fused(node)[at];
            if self.transfers.list[id.index()].sent == Sent::Fused && !self.has_room(id) {
                self.split(id);
                changed = true;
            }
        }
        changed
    }

    /// The maker keeps what it would have sent along; it goes just before it is taken.
    fn split(&mut self, id: TransferId) {
        let transfer = self.transfers.list[id.index()];
        let aside = self.due(id) != transfer.reader;
        self.transfers.list[id.index()].sent = Sent::Later { aside };
        self.later(self.writer_of[transfer.channel as usize], id);
    }
}
