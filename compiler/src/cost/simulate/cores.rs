//! Cores that ranks share.
//!
//! In: actors that can act. Out: which acts when. A rank is one thread and keeps to one core, as the CPU runtime has it: the
//! ranks of a node lie over its cores in their order, neighbours together. A core runs a rank as long as one of its
//! blocks can act, then goes to the one of its ranks that has waited longest. To go from one rank to another costs time;
//! to come back to the one that ran last costs nothing. Within a rank, blocks take turns as in the runtime:
//! a block acts while it can, but only so many times while others can too.

use std::cmp::Reverse;
use std::collections::VecDeque;

use super::super::program::NONE;
use super::super::topology::{Engine, Topology};
use super::super::work::{Time, time};
use super::{Phase, Simulation, Why};

/// After so many events a block lets the others of its rank have a turn: as the CPU runtime does.
const BURST: u32 = 16;

/// Who runs where.
#[derive(Debug)]
pub(super) struct Cores {
    cores: Vec<Core>,
    /// Of each core: the ranks that wait for it, in the order they came.
    waiting: Vec<VecDeque<u32>>,
    ranks: Vec<Thread>,
    switch: Time,
}

#[derive(Debug, Clone, Copy)]
struct Core {
    runs: Option<u32>,
    /// Whom it ran last.
    last: Option<u32>,
    /// The record of its last event.
    record: u32,
    /// When it has done what it does.
    until: Time,
}

#[derive(Debug, Clone, Default)]
struct Thread {
    /// Its actors that can act, sorted.
    enabled: Vec<u32>,
    /// Whether it has its core or waits for it.
    awake: bool,
    /// Its core.
    home: usize,
    /// The actor at work and how many events it has had in a row.
    at: u32,
    burst: u32,
}

impl Cores {
    /// The cores of a topology; none if every block has an engine of its own.
    pub(super) fn new(topology: &Topology, ranks: u32) -> Option<Cores> {
        let Engine::Shared { cores, switch, .. } = topology.engine else { return None };
        let per_node = topology.group(0);
        let nodes = u64::from(ranks).div_ceil(per_node) as usize;
        let home = |rank: u32| {
            let (node, place) = (u64::from(rank) / per_node, u64::from(rank) % per_node);
            let here = per_node.min(u64::from(ranks) - node * per_node);
            let core = if here > cores.into() { place * u64::from(cores) / here } else { place };
            (node * u64::from(cores) + core) as usize
        };
        let count = cores as usize * nodes;
        Some(Cores {
            cores: vec![Core { runs: None, last: None, record: NONE, until: 0 }; count],
            waiting: vec![VecDeque::new(); count],
            ranks: (0..ranks).map(|rank| Thread { home: home(rank), ..Thread::default() }).collect(),
            switch: time(switch),
        })
    }

    /// Whether two ranks share a core, and so its cache.
    pub(super) fn together(&self, a: u32, b: u32) -> bool {
        self.ranks[a as usize].home == self.ranks[b as usize].home
    }

    /// The state that decides the future, beside that of the actors.
    pub(super) fn state(&self, now: Time, see: &mut impl FnMut(u64)) {
        let option = |value: Option<u64>| value.map_or(u64::MAX, |value| value);
        for core in &self.cores {
            see(option(core.runs.map(u64::from)));
            see(option(core.last.map(u64::from)));
            see(core.until.saturating_sub(now));
        }
        for queue in &self.waiting {
            see(queue.len() as u64);
            queue.iter().for_each(|&rank| see(rank.into()));
        }
        for rank in &self.ranks {
            see(rank.enabled.len() as u64);
            rank.enabled.iter().for_each(|&actor| see(actor.into()));
            see(u64::from(rank.awake));
            see(rank.at.into());
            see(rank.burst.into());
        }
    }
}

impl Thread {
    /// Which of its actors is next: the one at work if it can and its turn lasts, else the next after it that can.
    fn next(&mut self) -> Option<u32> {
        let at = self.enabled.partition_point(|&actor| actor < self.at);
        let same = self.enabled.get(at) == Some(&self.at);
        let at = if same && self.burst >= BURST { at + 1 } else { at };
        let at = if at < self.enabled.len() { at } else { 0 };
        if self.enabled.is_empty() {
            return None;
        }
        let next = self.enabled.remove(at);
        self.burst = if next == self.at { self.burst + 1 } else { 1 };
        self.at = next;
        Some(next)
    }
}

impl Simulation<'_> {
    /// An actor can act from now on: its rank wants a core if it has none.
    pub(super) fn enable(&mut self, index: usize, now: Time) {
        let rank = self.program.plan().blocks[index % self.blocks].rank.0;
        self.actors[index].phase = Phase::Enabled;
        let Some(cores) = &mut self.cores else { return };
        let thread = &mut cores.ranks[rank as usize];
        let at = thread.enabled.partition_point(|&actor| actor < index as u32);
        thread.enabled.insert(at, index as u32);
        if std::mem::replace(&mut thread.awake, true) {
            return;
        }
        let home = thread.home;
        match cores.cores[home].runs {
            None => self.run_on(home, rank, now),
            Some(_) => cores.waiting[home].push_back(rank),
        }
    }

    /// A core has done an event (or come to a rank): what it does next.
    pub(super) fn core_turns(&mut self, core: usize, now: Time) {
        let actors = self.actors.len() as u32;
        let Some(cores) = &mut self.cores else { return };
        let Some(rank) = cores.cores[core].runs else { return };
        let thread = &mut cores.ranks[rank as usize];
        if let Some(next) = thread.next() {
            let before = cores.cores[core].record;
            let actor = &mut self.actors[next as usize];
            if now > actor.ready && before != NONE {
                (actor.why, actor.from) = (Why::Core, before);
            }
            let end = self.act(next as usize, now);
            if let Some(cores) = &mut self.cores {
                cores.cores[core].until = end;
                cores.cores[core].record = self.records.len().checked_sub(1).map_or(NONE, |at| at as u32);
            }
            self.heap.push(Reverse((end, actors + core as u32)));
            return;
        }
        thread.awake = false;
        cores.cores[core].runs = None;
        if let Some(next) = cores.waiting[core].pop_front() {
            self.run_on(core, next, now);
        }
    }

    fn run_on(&mut self, core: usize, rank: u32, now: Time) {
        let actors = self.actors.len() as u32;
        let Some(cores) = &mut self.cores else { return };
        let other = cores.cores[core].last.is_some_and(|last| last != rank);
        cores.cores[core].runs = Some(rank);
        cores.cores[core].last = Some(rank);
        let from = if other { now.saturating_add(cores.switch) } else { now };
        cores.cores[core].until = from;
        self.heap.push(Reverse((from, actors + core as u32)));
    }
}
