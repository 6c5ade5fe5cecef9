//! What an event reads and writes, in the plan's terms.
//!
//! In: flow, transfers as the simulation left them, memory. Out: [`Resolver`], which names the operands of any event. Scratch
//! is numbered by use: a place that no event stores to takes no memory, and a run of cells stays a run.

use plan::ids::{BufferId, ChannelId, RankId, SpanId};
use plan::plan::Operand;
use plan::pre::Pre;
use rustc_hash::FxHashMap;

use super::agenda::Event;
use super::memory::Memory;
use super::simulate::Run;
use super::transfers::{NONE, Sent, TransferId, Transfers};
use crate::flow::{self, Flow, Home, Kind, NodeId};
use crate::graph::PlaceTable;
use crate::trace::{BufferKind, Place, Trace};

/// Names operands.
pub(super) struct Resolver<'a> {
    pub(super) trace: &'a Trace,
    pub(super) flow: &'a Flow,
    pub(super) transfers: &'a Transfers,
    pub(super) memory: &'a Memory,
    pub(super) places: &'a PlaceTable,
    /// By place, of scratch that is used: its cell in the plan.
    scratch: Vec<u32>,
    pub(super) scratch_cells: Vec<u32>,
    /// By transfer or operand: where it is kept aside.
    aside: FxHashMap<Kept, u32>,
    /// Further homes by node.
    extra: FxHashMap<NodeId, Vec<Home>>,
}

/// What is kept aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kept {
    Message(TransferId),
    Operand(u32),
}

/// An event in the plan's terms; the operands lie in a buffer of the caller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) sources: u16,
    pub(super) destinations: u16,
    pub(super) width: u32,
    pub(super) round_each: bool,
    pub(super) post: bool,
    pub(super) pre: Pre,
    pub(super) span: SpanId,
}

/// A run of cells read or written; `first` counts places, then cells kept aside.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    pub(super) first: u32,
    pub(super) write: bool,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(
        trace: &'a Trace,
        flow: &'a Flow,
        transfers: &'a Transfers,
        memory: &'a Memory,
        places: &'a PlaceTable,
        run: &Run,
    ) -> Resolver<'a> {
        let mut extra: FxHashMap<NodeId, Vec<Home>> = FxHashMap::default();
        for &(node, home) in &flow.extra {
            extra.entry(node).or_default().push(home);
        }
        let mut resolver = Resolver {
            trace,
            flow,
            transfers,
            memory,
            places,
            scratch: Vec::new(),
            scratch_cells: vec![0; trace.ranks as usize],
            aside: FxHashMap::default(),
            extra,
        };
        resolver.number_scratch(run);
        resolver
    }

    /// The rank that does it.
    pub(super) fn rank(&self, event: Event) -> RankId {
        match event {
            Event::Make(node) => self.flow.node(node).rank,
            Event::Send(id) | Event::Aside(id) => self.transfers.from(id),
            Event::Save(reader, _) => self.flow.node(reader).rank,
        }
    }

    /// Appends its operands to `out`, sources first.
    pub(super) fn operands(&self, event: Event, out: &mut Vec<Operand>) -> Shape {
        let start = out.len();
        let middle;
        let (node, round_each, post, pre) = match event {
            Event::Make(id) => {
                let node = self.flow.node(id);
                for at in Flow::range(node) {
                    let operand = &self.flow.operands[at];
                    let transfer = self.transfers.of_operand[at];
                    if transfer != NONE {
                        out.push(self.channel(TransferId(transfer)));
                    } else if let Some(&cell) = self.aside.get(&Kept::Operand(at as u32)) {
                        out.push(self.scratch_operand(cell));
                    } else if !node.is_signal() {
                        out.push(self.read(operand));
                    }
                }
                middle = out.len();
                for home in self.homes(id).filter(|home| home.stored && !node.is_signal()) {
                    out.push(self.home(node.rank, home));
                }
                for &fused in self.transfers.fused(id) {
                    match self.transfers.list[fused.index()].sent {
                        Sent::Fused => out.push(self.channel(fused)),
                        Sent::Later { aside: true } => out.push(self.scratch_operand(self.kept(fused))),
                        _ => {}
                    }
                }
                let pre = if self.flow.unmarked { Pre::NONE } else { node.pre };
                (node, node.round_each, node.post, pre)
            }
            Event::Send(id) => {
                let transfer = &self.transfers.list[id.index()];
                let node = self.flow.node(transfer.reader);
                if !node.is_signal() {
                    out.push(self.message(id));
                }
                middle = out.len();
                out.push(self.channel(id));
                (node, false, false, Pre::NONE)
            }
            Event::Aside(id) => {
                let transfer = &self.transfers.list[id.index()];
                out.push(self.read(&self.flow.operands[transfer.operand as usize]));
                middle = out.len();
                out.push(self.scratch_operand(self.kept(id)));
                (self.flow.node(transfer.reader), false, false, Pre::NONE)
            }
            Event::Save(reader, number) => {
                let at = self.saved(reader, number);
                out.push(self.read(&self.flow.operands[at as usize]));
                middle = out.len();
                let cell = self.aside.get(&Kept::Operand(at)).copied().unwrap_or(0);
                out.push(self.scratch_operand(cell));
                (self.flow.node(reader), false, false, Pre::NONE)
            }
        };
        Shape {
            sources: (middle - start) as u16,
            destinations: (out.len() - middle) as u16,
            width: node.width,
            round_each,
            post,
            pre,
            span: node.span,
        }
    }

    /// The memory that it touches.
    pub(super) fn accesses(&self, event: Event, out: &mut Vec<Access>) {
        let place = |rank: RankId, home: &Home| {
            self.places.index(Place { buffer: home.buffer, rank, cell: home.cell })
        };
        let read = |operand: &flow::Operand| Access { first: self.places.index(operand.place), write: false };
        let kept = |kept: Kept, write: bool| {
            let cell = self.aside.get(&kept).copied().unwrap_or(0);
            Access { first: self.places.len() as u32 + cell, write }
        };
        match event {
            Event::Make(id) => {
                let node = self.flow.node(id);
                if node.is_signal() {
                    // Who tells what it knows does so after all that it was told before.
                    out.extend(Flow::range(node).take(1).map(|at| read(&self.flow.operands[at])));
                    out.push(Access { first: place(node.rank, &node.home), write: true });
                    return;
                }
                for at in Flow::range(node).filter(|&at| self.transfers.of_operand[at] == NONE) {
                    let aside = Kept::Operand(at as u32);
                    out.push(match self.aside.contains_key(&aside) {
                        true => kept(aside, false),
                        false => read(&self.flow.operands[at]),
                    });
                }
                let stored = self.homes(id).filter(|home| home.stored);
                out.extend(stored.map(|home| Access { first: place(node.rank, home), write: true }));
                for &fused in self.transfers.fused(id) {
                    if self.transfers.list[fused.index()].sent == (Sent::Later { aside: true }) {
                        out.push(kept(Kept::Message(fused), true));
                    }
                }
            }
            Event::Send(id) => {
                let transfer = &self.transfers.list[id.index()];
                out.push(match self.aside.contains_key(&Kept::Message(id)) {
                    true => kept(Kept::Message(id), false),
                    false => read(&self.flow.operands[transfer.operand as usize]),
                });
            }
            Event::Aside(id) => {
                let transfer = &self.transfers.list[id.index()];
                out.push(read(&self.flow.operands[transfer.operand as usize]));
                out.push(kept(Kept::Message(id), true));
            }
            Event::Save(reader, number) => {
                let at = self.saved(reader, number);
                out.push(read(&self.flow.operands[at as usize]));
                out.push(kept(Kept::Operand(at), true));
            }
        }
    }

    /// How many numbers accesses have: places, then cells kept aside.
    pub(super) fn numbers(&self) -> usize {
        self.places.len() + self.scratch_cells.iter().max().map_or(0, |&cells| cells as usize)
    }

    /// The width of what it moves.
    pub(super) fn width(&self, event: Event) -> u32 {
        match event {
            Event::Make(id) => self.flow.node(id).width,
            Event::Send(id) | Event::Aside(id) => {
                self.flow.node(self.transfers.list[id.index()].reader).width
            }
            Event::Save(reader, _) => self.flow.node(reader).width,
        }
    }

    fn homes(&self, id: NodeId) -> impl Iterator<Item = &Home> {
        let extra = self.extra.get(&id).map_or(&[][..], Vec::as_slice);
        [&self.flow.node(id).home].into_iter().chain(extra)
    }

    fn channel(&self, id: TransferId) -> Operand {
        Operand::Channel(ChannelId(self.transfers.list[id.index()].channel))
    }

    /// Where a message lies that is sent from memory.
    fn message(&self, id: TransferId) -> Operand {
        let transfer = &self.transfers.list[id.index()];
        match self.aside.get(&Kept::Message(id)) {
            Some(&cell) => self.scratch_operand(cell),
            None => self.read(&self.flow.operands[transfer.operand as usize]),
        }
    }

    fn kept(&self, id: TransferId) -> u32 {
        self.aside.get(&Kept::Message(id)).copied().unwrap_or(0)
    }

    fn scratch_operand(&self, cell: u32) -> Operand {
        Operand::Local { buffer: self.memory.scratch, cell }
    }

    fn read(&self, operand: &flow::Operand) -> Operand {
        let Place { buffer, cell, .. } = operand.place;
        match self.memory.entry[buffer.index()] {
            Some(entry) if operand.entry() => Operand::Local { buffer: entry, cell },
            _ => self.written(operand.place),
        }
    }

    fn home(&self, rank: RankId, home: &Home) -> Operand {
        self.written(Place { buffer: home.buffer, rank, cell: home.cell })
    }

    fn written(&self, place: Place) -> Operand {
        match self.memory.exit[place.buffer.index()] {
            Some(buffer) => Operand::Local { buffer, cell: place.cell },
            None => self.scratch_operand(self.scratch[self.places.index(place) as usize]),
        }
    }

    /// The index of an operand that is saved.
    fn saved(&self, reader: NodeId, number: u16) -> u32 {
        self.flow.node(reader).first + u32::from(number)
    }

    fn number_scratch(&mut self, run: &Run) {
        let is_scratch = |buffer: BufferId| self.trace.buffers[buffer.index()].kind == BufferKind::Scratch;
        if self.trace.buffers.iter().any(|buffer| buffer.kind == BufferKind::Scratch) {
            let mut used = vec![false; self.places.len()];
            for event in run.events() {
                let Event::Make(id) = event else { continue };
                let node = self.flow.node(id);
                for home in self.homes(id).filter(|home| home.stored && is_scratch(home.buffer)) {
                    let place = Place { buffer: home.buffer, rank: node.rank, cell: home.cell };
                    let first = self.places.index(place) as usize;
                    used[first..first + node.width as usize].fill(true);
                }
            }
            self.scratch = vec![0; self.places.len()];
            for index in (0..self.places.len()).filter(|&index| used[index]) {
                let rank = self.places.place(index as u32).rank;
                self.scratch[index] = self.scratch_cells[rank.index()];
                self.scratch_cells[rank.index()] += 1;
            }
        }
        let aside = |sent: &Sent| matches!(sent, Sent::Aside | Sent::Later { aside: true });
        if !self.flow.guarded && !self.transfers.list.iter().any(|transfer| aside(&transfer.sent)) {
            return;
        }
        for event in run.events() {
            match event {
                Event::Make(id) => {
                    for &fused in self.transfers.fused(id) {
                        if self.transfers.list[fused.index()].sent == (Sent::Later { aside: true }) {
                            self.put_aside(Kept::Message(fused), event);
                        }
                    }
                }
                Event::Aside(id) => self.put_aside(Kept::Message(id), event),
                Event::Save(reader, number) => {
                    self.put_aside(Kept::Operand(self.saved(reader, number)), event);
                }
                Event::Send(_) => {}
            }
        }
    }

    fn put_aside(&mut self, kept: Kept, event: Event) {
        let width = self.width(event);
        let rank = self.rank(event).index();
        let cells = &mut self.scratch_cells[rank];
        self.aside.insert(kept, *cells);
        *cells += width;
    }
}

/// Marks the homes that are read from memory as kept; done once transfers are settled. How many operands all steps have, at most.
pub(super) fn keep_what_is_read(flow: &mut Flow, transfers: &Transfers, run: &Run) -> usize {
    let mut operands = flow.extra.len();
    let keep = |flow: &mut Flow, at: usize| {
        let operand = flow.operands[at];
        match operand.maker().filter(|_| !operand.entry()) {
            Some(maker) => usize::from(flow.keep(maker, operand.place)),
            None => 0,
        }
    };
    for event in run.events() {
        match event {
            Event::Make(id) => {
                let node = *flow.node(id);
                operands +=
                    usize::from(node.count) + usize::from(node.home.stored) + transfers.fused(id).len();
                if node.kind != Kind::Signal {
                    let local = Flow::range(&node).filter(|&at| transfers.of_operand[at] == NONE);
                    local.for_each(|at| operands += keep(flow, at));
                }
            }
            Event::Send(id) | Event::Aside(id) => {
                operands += 2;
                let transfer = &transfers.list[id.index()];
                let from_memory = !matches!(transfer.sent, Sent::Later { aside: true } | Sent::Fused);
                let sent_from_aside = matches!((event, transfer.sent), (Event::Send(_), Sent::Aside));
                if from_memory && !sent_from_aside {
                    operands += keep(flow, transfer.operand as usize);
                }
            }
            Event::Save(reader, number) => {
                let at = flow.node(reader).first as usize + number as usize;
                operands += 2 + keep(flow, at);
            }
        }
    }
    operands
}
