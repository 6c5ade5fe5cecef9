//! Ports: what messages pass on their way, one after another.
//!
//! In: a topology, and messages in the order in which they set out. Out: when each has left its writer and when its last byte is
//! through. Every port is a queue that carries one message after another at its bandwidth, so two flows through one
//! port get half of it each, slice by slice. A message enters the next port with its first byte (cut-through), and
//! a port that is faster than the one before is busy for no longer than its own bandwidth asks for. Queues hold any amount:
//! what waits at a reader's port does not keep its writer's port from others.

use super::super::topology::Topology;
use super::super::work::{PerByte, Time, time};

/// The ports of a topology among the ranks of a plan.
#[derive(Debug)]
pub(super) struct Ports {
    levels: Vec<LevelPorts>,
    /// When each is free.
    pub(super) free: Vec<Time>,
    /// Who used it last: a record.
    user: Vec<u32>,
    /// Bytes carried.
    pub(super) carried: Vec<u64>,
    /// Of each rank: its memory's port.
    memory: Option<(usize, PerByte)>,
}

#[derive(Debug)]
struct LevelPorts {
    /// Ranks of a group of this level, and of the one below.
    group: u64,
    below: u64,
    /// The first of the ranks' ports (out at even places, in at odd ones), and of the shared ones of groups below.
    own: Option<(usize, PerByte)>,
    shared: Option<(usize, PerByte)>,
    /// From the end of a transfer until its reader can act.
    latency: Time,
    /// Until the writer knows of a freed slot.
    credit: Time,
    multicast: bool,
}

/// How a message went.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passage {
    /// Its first byte has left its writer's ports.
    first: Time,
    /// The writer is done with it.
    pub(super) sent: Time,
    /// Its last byte is through.
    pub(super) through: Time,
    /// The record of the message that it queued behind longest, if it had to queue.
    pub(super) behind: Option<u32>,
    /// Its level.
    pub(super) level: Option<usize>,
}

impl Ports {
    /// All free. `encoding`: which of the topology's. `memory`: what a rank's memory takes for a byte.
    pub(super) fn new(topology: &Topology, ranks: u32, encoding: usize, memory: PerByte) -> Ports {
        let encoding = &topology.encodings[encoding];
        let mut count = 0;
        let mut take = |number: u64| {
            count += 2 * number as usize;
            count - 2 * number as usize
        };
        let mut levels = Vec::new();
        let mut below = 1;
        for (l, level) in topology.levels.iter().enumerate() {
            let per = |rate: f64| PerByte::of_rate(Some(rate * encoding.bandwidth));
            levels.push(LevelPorts {
                group: topology.group(l),
                below,
                own: level.port.map(|rate| (take(ranks.into()), per(rate))),
                shared: level.uplink.map(|rate| (take(u64::from(ranks).div_ceil(below)), per(rate))),
                latency: time(level.latency + encoding.latency.get(l).copied().unwrap_or(0.0)),
                credit: time(level.latency),
                multicast: level.multicast,
            });
            below = topology.group(l);
        }
        let memory = (memory != PerByte::NOTHING).then(|| (take(ranks.into()), memory));
        Ports { levels, free: vec![0; count], user: vec![u32::MAX; count], carried: vec![0; count], memory }
    }

    /// The level that two ranks talk over; none if they are one.
    #[inline]
    pub(super) fn level(&self, a: u32, b: u32) -> Option<usize> {
        if a == b {
            return None;
        }
        let (a, b) = (u64::from(a), u64::from(b));
        Some(self.levels.iter().position(|l| a / l.group == b / l.group).unwrap_or(self.levels.len() - 1))
    }

    /// What a message still takes once its last byte is through.
    #[inline]
    pub(super) fn latency(&self, level: Option<usize>) -> Time {
        level.map_or(0, |level| self.levels[level].latency)
    }

    /// What the news of a freed slot takes.
    #[inline]
    pub(super) fn credit(&self, level: Option<usize>) -> Time {
        level.map_or(0, |level| self.levels[level].credit)
    }

    /// Whether a message to several ranks at this level is sent once.
    pub(super) fn multicast(&self, level: usize) -> bool {
        self.levels[level].multicast
    }

    /// Sends from rank to rank, for the record `by`. `sent`: by a multicast that has left its writer already.
    #[inline]
    pub(super) fn send(
        &mut self,
        from: u32,
        to: u32,
        bytes: u64,
        start: Time,
        by: u32,
        sent: Option<Passage>,
    ) -> Passage {
        let level = self.level(from, to);
        let mut way = Way { enter: start, leave: start, behind: None, waited: 0 };
        let Some(l) = level else {
            return Passage { first: start, sent: start, through: start, behind: None, level };
        };
        let LevelPorts { below, own, shared, .. } = self.levels[l];
        let mut left = None;
        match sent {
            Some(passage) => {
                (way.enter, way.leave) = (passage.first, passage.sent);
                left = Some(passage.sent);
            }
            None => {
                if let Some((base, per)) = own {
                    self.pass(base + 2 * from as usize, per, bytes, &mut way, by);
                    left = Some(way.leave);
                }
                if let Some((base, per)) = shared {
                    self.pass(base + 2 * (u64::from(from) / below) as usize, per, bytes, &mut way, by);
                    // Without a port of its own a rank writes straight into the shared one.
                    left = left.or(Some(way.leave));
                }
            }
        }
        let first = way.enter;
        if let Some((base, per)) = shared {
            self.pass(base + 2 * (u64::from(to) / below) as usize + 1, per, bytes, &mut way, by);
        }
        if let Some((base, per)) = own {
            self.pass(base + 2 * to as usize + 1, per, bytes, &mut way, by);
        }
        Passage { first, sent: left.unwrap_or(start), through: way.leave, behind: way.behind, level }
    }

    /// Passes bytes through a rank's memory; when they are through.
    #[inline]
    pub(super) fn memory(&mut self, rank: u32, bytes: u64, start: Time, by: u32) -> (Time, Option<u32>) {
        let Some((base, per)) = self.memory else { return (start, None) };
        let mut way = Way { enter: start, leave: start, behind: None, waited: 0 };
        self.pass(base + 2 * rank as usize, per, bytes, &mut way, by);
        (way.leave, way.behind)
    }

    #[inline]
    fn pass(&mut self, port: usize, per: PerByte, bytes: u64, way: &mut Way, by: u32) {
        let busy = per.of(bytes);
        let start = way.enter.max(self.free[port]);
        if start - way.enter > way.waited {
            (way.waited, way.behind) = (start - way.enter, Some(self.user[port]));
        }
        way.enter = start;
        let end = start.saturating_add(busy);
        way.leave = way.leave.max(end);
        self.free[port] = end;
        self.user[port] = by;
        self.carried[port] += bytes;
    }
}

/// A message on its way.
struct Way {
    /// Its first byte enters the next port.
    enter: Time,
    /// Its last byte has left the last one.
    leave: Time,
    behind: Option<u32>,
    waited: Time,
}
