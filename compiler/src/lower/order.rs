//! Events to programs: each rank's events by level, neighbours of one run joined, in the plan's flat arrays.
//!
//! In: all events. Out: a [`Program`]. The one hard idea: a run of w cells was cut into w events on each side of a
//! channel. Where they ended up as neighbours **on both sides**, they are one step of width w again (the same
//! events in the same order, so nothing proved of them changes), and executors may send small ones as one message.

use std::ops::Range;

use plan::ids::RankId;
use plan::plan::{Channel, ChannelKind, Operand, Step};

use super::emit::{Event, Events, Mate};

/// The programs of all ranks.
pub(super) struct Program {
    pub(super) steps: Vec<Step>,
    pub(super) operands: Vec<Operand>,
    pub(super) channels: Vec<Channel>,
    /// The reading rank of each channel.
    pub(super) readers: Vec<RankId>,
    /// Rank r's steps are `ranks[r]..ranks[r + 1]`.
    pub(super) ranks: Vec<u32>,
    pub(super) scratch_cells: Vec<u32>,
}

/// Orders events and joins neighbours.
pub(super) fn order(events: &Events, ranks: u32) -> Program {
    let sequence = by_rank_and_level(&events.events);
    let joins = joins(events, &sequence);

    let mut program = Program {
        steps: Vec::new(),
        operands: Vec::with_capacity(events.operands.len()),
        channels: Vec::new(),
        readers: Vec::new(),
        ranks: vec![0],
        scratch_cells: events.scratch_cells.clone(),
    };
    let mut next = 0;
    for rank in (0..ranks).map(RankId) {
        while let Some(&first) = sequence.get(next).filter(|&&e| events.events[e as usize].rank == rank) {
            let mut width = 1;
            while joins[sequence[next] as usize] {
                next += 1;
                width += 1;
            }
            next += 1;
            let event = &events.events[first as usize];
            let operands = program.operands.len() as u32;
            program.operands.extend_from_slice(&events.operands[range(event)]);
            program.steps.push(Step {
                operands,
                sources: event.sources,
                destinations: event.destinations,
                waits: 0,
                wait_count: 0,
                round_each: false,
                post: event.post,
                width,
                span: event.span,
            });
        }
        program.ranks.push(program.steps.len() as u32);
    }
    for (index, link) in (0..).zip(&events.links) {
        // One block per rank: the writer block has the rank's number.
        let writer = plan::ids::BlockId(link.from.0);
        program.channels.push(Channel { writer, readers: index..index + 1, kind: link.kind });
        program.readers.push(link.to);
    }
    program
}

/// Event numbers sorted by rank, then level, then the order of the walk: two stable counting passes.
fn by_rank_and_level(events: &[Event]) -> Vec<u32> {
    let by_level = counting_sort(0..events.len() as u32, |e| events[e as usize].level);
    counting_sort(by_level, |e| events[e as usize].rank.0)
}

/// Items sorted by a small key; items of one key keep their order.
pub(super) fn counting_sort(
    items: impl IntoIterator<Item = u32> + Clone,
    key: impl Fn(u32) -> u32,
) -> Vec<u32> {
    let mut starts: Vec<u32> = Vec::new();
    let mut count = 0;
    for item in items.clone() {
        let key = key(item) as usize + 1;
        if starts.len() <= key {
            starts.resize(key + 1, 0);
        }
        starts[key] += 1;
        count += 1;
    }
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    let mut sorted = vec![0; count];
    for item in items {
        let at = &mut starts[key(item) as usize];
        sorted[*at as usize] = item;
        *at += 1;
    }
    sorted
}

/// For each event, whether the one after it in its rank's order continues it.
fn joins(events: &Events, sequence: &[u32]) -> Vec<bool> {
    let mut wanted = vec![false; events.events.len()];
    let mut width = 1;
    for pair in sequence.windows(2) {
        let joined = continues(events, pair[0], pair[1], width);
        wanted[pair[0] as usize] = joined;
        width = if joined { width + 1 } else { 1 };
    }
    let agreed = |event: usize| {
        wanted[event]
            && match events.events[event].mate {
                Mate::None => true,
                Mate::One(mate) => wanted[mate as usize],
                Mate::Many => false,
            }
    };
    (0..events.events.len()).map(agreed).collect()
}

/// Whether `next` does for the following cell what `event`, the last of `width` cells, does for its own.
fn continues(events: &Events, event: u32, next: u32, width: u32) -> bool {
    let (a, b) = (&events.events[event as usize], &events.events[next as usize]);
    let same = a.rank == b.rank && a.span == b.span && a.sources == b.sources && a.post == b.post;
    if !same || a.destinations != b.destinations {
        return false;
    }
    let (xs, ys) = (&events.operands[range(a)], &events.operands[range(b)]);
    let mut neighbours = xs.iter().zip(ys).map(|(&x, &y)| match (x, y) {
        (Operand::Channel(x), Operand::Channel(y)) => {
            x == y && events.links[x.index()].kind == ChannelKind::Slots
        }
        (Operand::Local { buffer: x, cell }, Operand::Local { buffer: y, cell: after }) => {
            x == y && after == cell + 1
        }
        _ => false,
    });
    // A step may not read a cell that an earlier cell of the same step wrote: executors may do several at once.
    neighbours.all(|same| same) && !overlaps(&xs[..a.sources as usize], &xs[a.sources as usize..], width)
}

/// Whether, `width` cells back to the start and one more on, a source range and a different destination range meet.
fn overlaps(sources: &[Operand], destinations: &[Operand], width: u32) -> bool {
    sources.iter().any(|source| {
        destinations.iter().any(|destination| match (*source, *destination) {
            (Operand::Local { buffer: a, cell: x }, Operand::Local { buffer: b, cell: y }) => {
                a == b && x != y && x.abs_diff(y) <= width
            }
            _ => false,
        })
    })
}

fn range(event: &Event) -> Range<usize> {
    let start = event.operands as usize;
    start..start + event.sources as usize + event.destinations as usize
}
