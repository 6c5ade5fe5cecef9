//! What blocks of one rank wait for.
//!
//! In: what each rank does, in order, and the blocks. Out: of each event, the events of other blocks of its rank that must have finished.
//! Two events conflict if they touch one place and one of them writes it; the later one waits for the earlier one, unless
//! that follows already from program order and other waits (a clock per block says up to which event of each
//! other block everything is known to have finished: transitive reduction).

use std::ops::Range;

use plan::join::join;

use super::blocks::Blocks;
use super::resolve::{Access, Resolver};
use super::simulate::Run;

/// The waits of all events.
pub(super) struct Waits {
    /// Where those of an event start in `targets`; one more entry at the end. Empty if no rank has two blocks.
    starts: Vec<u32>,
    targets: Vec<u32>,
}

impl Waits {
    /// The events that an event waits for.
    pub(super) fn of(&self, event: u32) -> &[u32] {
        match self.starts.is_empty() {
            true => &[],
            false => {
                let (start, end) = (self.starts[event as usize], self.starts[event as usize + 1]);
                &self.targets[start as usize..end as usize]
            }
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }
}

/// Finds the waits; those of one half of the ranks beside those of the other.
pub(super) fn find(resolver: &Resolver<'_>, run: &Run, blocks: &Blocks) -> Waits {
    if blocks.starts.windows(2).all(|pair| pair[1] - pair[0] <= 1) {
        return Waits { starts: Vec::new(), targets: Vec::new() };
    }
    let ranks = run.ranks.len();
    let is_large = run.ranks.iter().map(Vec::len).sum::<usize>() > 1 << 14;
    let of = |ranks: Range<usize>| of_ranks(resolver, run, blocks, ranks);
    let (mut waits, rest) = join(is_large, || of(0..ranks / 2), || of(ranks / 2..ranks));
    let before = waits.targets.len() as u32;
    waits.starts.extend(rest.starts.iter().map(|start| start + before));
    waits.targets.extend(rest.targets);
    waits.starts.push(waits.targets.len() as u32);
    waits
}

/// The waits of some ranks, without the last entry of `starts`.
fn of_ranks(resolver: &Resolver<'_>, run: &Run, blocks: &Blocks, ranks: Range<usize>) -> Waits {
    let events = run.ranks[ranks.clone()].iter().map(Vec::len).sum();
    let mut waits = Waits { starts: Vec::with_capacity(events), targets: Vec::new() };
    let mut places = Places::new(resolver.numbers());
    let (mut accesses, mut found) = (Vec::new(), Vec::new());
    let mut first = run.ranks[..ranks.start].iter().map(Vec::len).sum::<usize>() as u32;
    for rank in ranks {
        let events = &run.ranks[rank];
        let first_block = blocks.starts[rank];
        let count = (blocks.starts[rank + 1] - first_block) as usize;
        let mut clocks = Clocks::new(count);
        for (at, &(event, block)) in (first..).zip(events) {
            waits.starts.push(waits.targets.len() as u32);
            if count <= 1 {
                continue;
            }
            accesses.clear();
            resolver.accesses(event, &mut accesses);
            places.conflicts(at, first, resolver.width(event), &accesses, &mut found);
            let block = (block - first_block) as usize;
            // The latest first: it may imply the others.
            found.sort_unstable_by(|a, b| b.cmp(a));
            found.dedup();
            for &earlier in &found {
                let theirs = (events[(earlier - first) as usize].1 - first_block) as usize;
                if theirs != block && clocks.wait(block, theirs, earlier, first) {
                    waits.targets.push(earlier);
                }
            }
            clocks.note(block);
        }
        first += events.len() as u32;
    }
    waits
}

/// Who touched each place last.
struct Places {
    written: Vec<u32>,
    /// The first of the reads since, in `reads`.
    read: Vec<u32>,
    /// Reads: the event, and the next one.
    reads: Vec<(u32, u32)>,
}

const NOBODY: u32 = u32::MAX;

impl Places {
    fn new(count: usize) -> Places {
        Places { written: vec![NOBODY; count], read: vec![NOBODY; count], reads: Vec::new() }
    }

    /// Events from `since` on that `event` must follow; notes what it does itself.
    fn conflicts(&mut self, event: u32, since: u32, width: u32, accesses: &[Access], found: &mut Vec<u32>) {
        found.clear();
        let mut add = |earlier: u32| {
            if earlier != NOBODY && earlier >= since && earlier != event && found.last() != Some(&earlier) {
                found.push(earlier);
            }
        };
        for access in accesses {
            for place in access.first as usize..(access.first + width) as usize {
                add(self.written[place]);
                let mut next = if access.write { self.read[place] } else { NOBODY };
                while next != NOBODY {
                    let (reader, rest) = self.reads[next as usize];
                    add(reader);
                    next = rest;
                }
            }
        }
        for access in accesses {
            for place in access.first as usize..(access.first + width) as usize {
                if access.write {
                    (self.written[place], self.read[place]) = (event, NOBODY);
                } else if self.written[place] != event {
                    self.reads.push((event, self.read[place]));
                    self.read[place] = self.reads.len() as u32 - 1;
                }
            }
        }
    }
}

/// What each block of a rank knows to have finished.
struct Clocks {
    count: usize,
    /// By block: one past the last event of each block known to have finished.
    now: Vec<u32>,
    /// By event of the rank: its row in `rows`, once it is done.
    row_of: Vec<u32>,
    rows: Vec<u32>,
    /// By block: its latest row.
    current: Vec<u32>,
}

impl Clocks {
    fn new(count: usize) -> Clocks {
        Clocks {
            count,
            now: vec![0; count * count],
            row_of: Vec::new(),
            rows: vec![0; count],
            current: vec![0; count],
        }
    }

    /// Lets `block` wait for an event of another one; whether it was not known already.
    fn wait(&mut self, block: usize, theirs: usize, event: u32, first: u32) -> bool {
        let count = self.count;
        if self.now[block * count + theirs] > event {
            return false;
        }
        let row = self.row_of[(event - first) as usize] as usize * count;
        for other in 0..count {
            let known = &mut self.now[block * count + other];
            *known = (*known).max(self.rows[row + other]);
        }
        self.now[block * count + theirs] = event + 1;
        true
    }

    /// An event of a block has been given its waits.
    fn note(&mut self, block: usize) {
        let (count, current) = (self.count, self.current[block] as usize);
        let now = &self.now[block * count..][..count];
        if self.rows[current * count..][..count] != *now {
            self.rows.extend_from_slice(now);
            self.current[block] = (self.rows.len() / count) as u32 - 1;
        }
        self.row_of.push(self.current[block]);
    }
}
