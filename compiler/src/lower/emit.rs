//! Events and their levels: the state of the walk.
//!
//! In: cells that are read and written, in an order that is a valid execution with one slot per channel. Out:
//! [`Event`]s with levels, channels, scratch cells. Levels follow from four kinds of edge (see the room's doc); each
//! place remembers the level of its last write and of the latest read since, each channel that of its last receive.

use plan::ids::{BufferId, ChannelId, RankId, SpanId};
use plan::plan::{ChannelKind, Operand};
use rustc_hash::FxHashMap;

/// What one rank does at one level, for one cell.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    pub(super) rank: RankId,
    pub(super) level: u32,
    /// Sources, then destinations, in [`Events::operands`].
    pub(super) operands: u32,
    pub(super) sources: u16,
    pub(super) destinations: u16,
    pub(super) post: bool,
    pub(super) span: SpanId,
    /// The event at the other end of its only channel.
    pub(super) mate: Mate,
}

/// The other end of an event's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mate {
    /// It has none: a local event.
    None,
    /// One message, whose other end is this event.
    One(u32),
    /// Several messages.
    Many,
}

/// A channel between two ranks (their only blocks).
pub(super) struct Link {
    pub(super) from: RankId,
    pub(super) to: RankId,
    pub(super) kind: ChannelKind,
    /// Level of its last receive.
    received: u32,
}

/// Levels of one place.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    written: u32,
    read: u32,
}

/// A cell that an event reads or writes: the place whose order matters, and how the plan names it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    pub(super) place: u32,
    pub(super) rank: RankId,
    pub(super) operand: Operand,
}

/// All events, and what they use.
pub(super) struct Events {
    pub(super) events: Vec<Event>,
    pub(super) operands: Vec<Operand>,
    pub(super) links: Vec<Link>,
    pub(super) scratch_cells: Vec<u32>,
    link_of: FxHashMap<(RankId, RankId, u32, bool), ChannelId>,
    cells: Vec<Cell>,
    scratch: BufferId,
    scratch_of: Vec<u32>,
    /// Temporaries free for use, by rank.
    free: FxHashMap<RankId, Vec<Access>>,
}

const UNUSED: u32 = u32::MAX;

impl Events {
    pub(super) fn new(ranks: u32, places: usize, scratch: BufferId) -> Events {
        Events {
            events: Vec::new(),
            operands: Vec::new(),
            links: Vec::new(),
            scratch_cells: vec![0; ranks as usize],
            link_of: FxHashMap::default(),
            cells: vec![Cell::default(); places],
            scratch,
            scratch_of: vec![UNUSED; places],
            free: FxHashMap::default(),
        }
    }

    /// The scratch cell that stands for a place; places never touched get none.
    pub(super) fn scratch(&mut self, place: u32, rank: RankId) -> Operand {
        let known = self.scratch_of[place as usize];
        let cell = if known == UNUSED { self.new_scratch_cell(rank) } else { known };
        self.scratch_of[place as usize] = cell;
        Operand::Local { buffer: self.scratch, cell }
    }

    /// A scratch cell for a value that lives only within a `step`; give it back with `release`.
    pub(super) fn temporary(&mut self, rank: RankId) -> Access {
        if let Some(free) = self.free.get_mut(&rank).and_then(Vec::pop) {
            return free;
        }
        let place = self.cells.len() as u32;
        self.cells.push(Cell::default());
        let cell = self.new_scratch_cell(rank);
        self.scratch_of.push(cell);
        Access { place, rank, operand: Operand::Local { buffer: self.scratch, cell } }
    }

    /// Ends the life of a temporary.
    pub(super) fn release(&mut self, temporary: Access) {
        self.free.entry(temporary.rank).or_default().push(temporary);
    }

    /// The channel from one rank to another; `lane` tells apart several messages of one event.
    pub(super) fn link(&mut self, from: RankId, to: RankId, lane: u32, kind: ChannelKind) -> ChannelId {
        let key = (from, to, lane, kind == ChannelKind::Counter);
        *self.link_of.entry(key).or_insert_with(|| {
            self.links.push(Link { from, to, kind, received: 0 });
            ChannelId::new(self.links.len() - 1)
        })
    }

    /// Sends a cell (of a signal: nothing). Gives the event; its receive must follow before the next send on `link`.
    pub(super) fn send(&mut self, from: Access, link: ChannelId, span: SpanId) -> u32 {
        let level = self.after_write(from.place).max(self.links[link.index()].received + 1);
        self.note_read(from.place, level);
        let payload = self.links[link.index()].kind == ChannelKind::Slots;
        let source = payload.then_some(from.operand);
        self.push(from.rank, level, source, [Operand::Channel(link)], false, span)
    }

    /// Folds local cells and received messages in the order given into a cell (of a signal: nothing).
    pub(super) fn fold(&mut self, sources: &[Source], to: Access, post: bool, span: SpanId) -> u32 {
        let here = self.cells[to.place as usize];
        let mut level = here.written.max(here.read) + 1;
        for source in sources {
            level = level.max(match *source {
                Source::Local(access) => self.after_write(access.place),
                Source::Message { send, .. } => self.events[send as usize].level + 1,
            });
        }
        self.cells[to.place as usize].written = level;
        for source in sources {
            match *source {
                Source::Local(access) => self.note_read(access.place, level),
                Source::Message { link, .. } => self.links[link.index()].received = level,
            }
        }
        let signal = matches!(sources, [Source::Message { link, .. }]
            if self.links[link.index()].kind == ChannelKind::Counter);
        let operands = sources.iter().map(|source| match *source {
            Source::Local(access) => access.operand,
            Source::Message { link, .. } => Operand::Channel(link),
        });
        let event = self.push(to.rank, level, operands, (!signal).then_some(to.operand), post, span);
        self.pair(event, sources);
        event
    }

    /// Whether an event has written this place already.
    pub(super) fn is_written(&self, place: u32) -> bool {
        self.cells[place as usize].written > 0
    }

    /// Lets an event and the sends that feed it know each other.
    fn pair(&mut self, event: u32, sources: &[Source]) {
        let mut sends = sources.iter().filter_map(|source| match *source {
            Source::Message { send, .. } => Some(send),
            Source::Local(_) => None,
        });
        let Some(first) = sends.next() else { return };
        let rest: Vec<u32> = sends.collect();
        if rest.is_empty() {
            self.events[event as usize].mate = Mate::One(first);
            self.events[first as usize].mate = Mate::One(event);
        } else {
            for end in rest.into_iter().chain([first, event]) {
                self.events[end as usize].mate = Mate::Many;
            }
        }
    }

    fn after_write(&self, place: u32) -> u32 {
        self.cells[place as usize].written + 1
    }

    fn note_read(&mut self, place: u32, level: u32) {
        let cell = &mut self.cells[place as usize];
        cell.read = cell.read.max(level);
    }

    fn new_scratch_cell(&mut self, rank: RankId) -> u32 {
        let count = &mut self.scratch_cells[rank.index()];
        *count += 1;
        *count - 1
    }

    fn push(
        &mut self,
        rank: RankId,
        level: u32,
        sources: impl IntoIterator<Item = Operand>,
        destinations: impl IntoIterator<Item = Operand>,
        post: bool,
        span: SpanId,
    ) -> u32 {
        let start = self.operands.len();
        self.operands.extend(sources);
        let middle = self.operands.len();
        self.operands.extend(destinations);
        let (sources, destinations) = ((middle - start) as u16, (self.operands.len() - middle) as u16);
        let operands = start as u32;
        self.events.push(Event {
            rank,
            level,
            operands,
            sources,
            destinations,
            post,
            span,
            mate: Mate::None,
        });
        (self.events.len() - 1) as u32
    }
}

/// A source of a fold.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    /// A cell of the same rank.
    Local(Access),
    /// A message, and the event that sends it.
    Message { link: ChannelId, send: u32 },
}
