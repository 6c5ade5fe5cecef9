//! Which events of a rank are one sequential block.
//!
//! In: what each rank does, in order. Out: the block of each event. A channel has one writer block and one reader
//! block, so events that share a channel's end are one block, and with a fused step all ends it joins. What is left apart
//! is independent but for memory (`waits`): the two directions of a tree, the sides of an exchange, the flows of an
//! all-to-all, none of which then waits for another. Where a rank has more such flows than it may have blocks, they are dealt out in turn.

use super::agenda::{Agenda, Event};
use super::transfers::{NONE, TransferId, Transfers};
use crate::flow::Flow;
use crate::options::Options;

/// The blocks.
pub(super) struct Blocks {
    /// By event.
    pub(super) of_event: Vec<u32>,
    /// By rank: its first block; one more entry at the end.
    pub(super) starts: Vec<u32>,
}

/// Gives each event its block.
pub(super) fn assign(flow: &Flow, transfers: &Transfers, run: &Agenda, options: &Options) -> Blocks {
    let ranks = run.starts.len() - 1;
    if options.blocks <= 1 {
        let of_rank = |rank: usize| vec![rank as u32; (run.starts[rank + 1] - run.starts[rank]) as usize];
        let of_event = (0..ranks).flat_map(of_rank).collect();
        return Blocks { of_event, starts: (0..=ranks as u32).collect() };
    }
    let links = transfers.links.len() as u32;
    let readers = transfers.ends;
    // Ends: writers of channels, readers, then one of each rank for signals, one for what is local alone.
    let mut sets = Sets::new(links + readers + 2 * ranks as u32);
    let mut end_of_node = vec![NONE; flow.nodes.len()];
    let mut ends = Vec::with_capacity(run.events.len());
    let channel = |id: TransferId| transfers.list[id.index()].channel;
    // Channels without data have one reader each, and stand before all that have several: their ends have their numbers.
    let counters = transfers.links.iter().any(|link| link.counter);
    let counter = |end: u32| {
        if !counters {
            return false;
        }
        let channel = if end < links { end } else { end - links };
        transfers.links.get(channel as usize).is_some_and(|link| link.counter)
    };
    for (rank, pair) in run.starts.windows(2).enumerate() {
        for &event in &run.events[pair[0] as usize..pair[1] as usize] {
            let mut end = NONE;
            let mut join = |other: u32, sets: &mut Sets| {
                end = if end == NONE { other } else { sets.join(end, other) };
                if counter(other) {
                    end = sets.join(end, links + readers + rank as u32);
                }
            };
            match event {
                Event::Make(node) => {
                    for &id in transfers.fused(node) {
                        join(channel(id), &mut sets);
                    }
                    for at in Flow::range(flow.node(node)) {
                        let transfer = transfers.of_operand[at];
                        if transfer != NONE {
                            join(links + transfers.end(TransferId(transfer)), &mut sets);
                        }
                    }
                }
                Event::Send(id) | Event::Aside(id) => join(channel(id), &mut sets),
                Event::Save(..) => {}
            }
            if end == NONE {
                let apart = links + readers + (ranks + rank) as u32;
                end = local_end(flow, event, &end_of_node).unwrap_or(apart);
            }
            if let Event::Make(node) = event {
                end_of_node[node.index()] = end;
            }
            ends.push(end);
        }
    }
    deal(&mut sets, ends, run, options.blocks)
}

/// Where the maker of something that it reads from memory acts.
fn local_end(flow: &Flow, event: Event, end_of_node: &[u32]) -> Option<u32> {
    let (Event::Make(id) | Event::Save(id, _)) = event else { return None };
    let node = flow.node(id);
    let local = flow.operands(node).iter().filter(|operand| operand.place.rank == node.rank);
    let makers = local.filter_map(|operand| operand.maker());
    makers.map(|maker| end_of_node[maker.index()]).find(|&end| end != NONE)
}

/// Numbers the sets of each rank in the order in which they first act. Where there are too many, those that only send are
/// dealt to blocks of their own: they would stand before what their block has to take.
fn deal(sets: &mut Sets, ends: Vec<u32>, run: &Agenda, most: u32) -> Blocks {
    let mut blocks = Blocks { of_event: ends, starts: vec![0] };
    let mut number = vec![NONE; sets.parent.len()];
    let mut flows: Vec<(u32, bool)> = Vec::new();
    let mut next = 0;
    for pair in run.starts.windows(2) {
        let events = pair[0] as usize..pair[1] as usize;
        flows.clear();
        for at in events.clone() {
            let set = sets.find(blocks.of_event[at]);
            blocks.of_event[at] = set;
            let sends = matches!(run.events[at], Event::Send(_) | Event::Aside(_));
            if number[set as usize] == NONE {
                number[set as usize] = flows.len() as u32;
                flows.push((set, true));
            }
            flows[number[set as usize] as usize].1 &= sends;
        }
        let count = flows.len() as u32;
        let senders = flows.iter().filter(|(_, sends)| *sends).count() as u32;
        let apart = count > most && most > 1 && senders > 0 && senders < count;
        let for_senders = if apart { (most * senders / count).clamp(1, most - 1) } else { 0 };
        let (mut sending, mut other) = (0, 0);
        for &(set, sends) in &flows {
            let at = if apart && sends { &mut sending } else { &mut other };
            let (first, room) = match (apart, sends) {
                (true, true) => (0, for_senders),
                (true, false) => (for_senders, most - for_senders),
                (false, _) => (0, most),
            };
            number[set as usize] = next + first + *at % room;
            *at += 1;
        }
        blocks.of_event[events].iter_mut().for_each(|set| *set = number[*set as usize]);
        next += count.clamp(1, most);
        blocks.starts.push(next);
    }
    blocks
}

/// Disjoint sets.
struct Sets {
    parent: Vec<u32>,
}

impl Sets {
    fn new(count: u32) -> Sets {
        Sets { parent: (0..count).collect() }
    }

    fn find(&mut self, mut item: u32) -> u32 {
        while self.parent[item as usize] != item {
            let up = self.parent[self.parent[item as usize] as usize];
            self.parent[item as usize] = up;
            item = up;
        }
        item
    }

    fn join(&mut self, a: u32, b: u32) -> u32 {
        let (a, b) = (self.find(a), self.find(b));
        let (least, other) = (a.min(b), a.max(b));
        self.parent[other as usize] = least;
        least
    }
}
