//! What a step costs the engine that does it, beside what its messages cost on their ways.
//!
//! In: a topology's [`Engine`], and how much a call touches. Out: time for the bytes of an event. A core's speed depends
//! on how much it works on: buffers that fit its cache are read many times as fast as others ([`Reach`]).

use super::topology::{Engine, Reach};

/// Picoseconds: times are whole numbers, so that what repeats does so exactly. Sums saturate: `Time::MAX` is longer than is counted.
pub(super) type Time = u64;

/// Picoseconds of a second.
const PS: f64 = 1e12;

/// Seconds as picoseconds, rounded.
pub(super) fn time(seconds: f64) -> Time {
    // A cast of what is too large or no number saturates.
    (seconds * PS).round() as Time
}

/// Picoseconds as seconds.
pub(super) fn seconds(time: Time) -> f64 {
    time as f64 / PS
}

/// Picoseconds that bytes take at a rate; none: no time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PerByte(f64);

impl PerByte {
    pub(super) const NOTHING: PerByte = PerByte(0.0);

    /// What a byte takes at so many bytes per second.
    pub(super) fn of_rate(rate: Option<f64>) -> PerByte {
        PerByte(rate.map_or(0.0, |rate| PS / rate))
    }

    /// The time of so many bytes.
    #[inline]
    pub(super) fn of(self, bytes: u64) -> Time {
        (bytes as f64 * self.0).round() as Time
    }

    /// Seconds of a byte.
    pub(super) fn seconds(self) -> f64 {
        self.0 / PS
    }
}

/// What moving a byte costs an engine, by where it comes from and goes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Work {
    /// An event, whatever it moves.
    pub(super) event: Time,
    /// Reading a place of the rank.
    pub(super) read: PerByte,
    /// Writing one.
    pub(super) write: PerByte,
    /// The same for a place that was touched before in the iteration.
    pub(super) read_again: PerByte,
    pub(super) write_again: PerByte,
    /// Reading a message.
    pub(super) take: PerByte,
    /// Writing a message.
    pub(super) put: PerByte,
    /// The same between ranks that share a core.
    pub(super) take_near: PerByte,
    pub(super) put_near: PerByte,
    /// Reading a place of a rank on another core.
    pub(super) pull: PerByte,
    /// Engines that stream: the larger number of sources or destinations counts, at this rate.
    pub(super) stream: PerByte,
    /// What the memory of a rank takes for a byte read or written.
    pub(super) memory: PerByte,
}

/// What the cores of a node go through again and again in a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Footprint {
    /// Bytes of buffers and scratch, of each core's share of the ranks.
    pub(super) places: f64,
    /// Bytes of an iteration's slices of them.
    pub(super) slices: f64,
    /// Bytes of slots, likewise.
    pub(super) slots: f64,
}

impl Work {
    /// On an engine.
    pub(super) fn new(engine: &Engine, footprint: Footprint) -> Work {
        match engine {
            Engine::Own { rate, event, memory } => Work {
                event: time(*event),
                read: PerByte::NOTHING,
                write: PerByte::NOTHING,
                read_again: PerByte::NOTHING,
                write_again: PerByte::NOTHING,
                take: PerByte::NOTHING,
                put: PerByte::NOTHING,
                take_near: PerByte::NOTHING,
                put_near: PerByte::NOTHING,
                pull: PerByte::NOTHING,
                stream: PerByte::of_rate(*rate),
                memory: PerByte::of_rate(*memory),
            },
            Engine::Shared { event, message, send, memory, .. } => {
                let (read, write) = at(memory, footprint.places + footprint.slots);
                let (read_again, write_again) = at(memory, footprint.slices + footprint.slots);
                let (take, put) = at(memory, footprint.slots);
                Work {
                    event: time(*event),
                    read: PerByte(read * PS),
                    write: PerByte(write * PS),
                    read_again: PerByte(read_again * PS),
                    write_again: PerByte(write_again * PS),
                    take: PerByte(take.max(1.0 / message) * PS),
                    put: PerByte(put.max(1.0 / send) * PS),
                    take_near: PerByte(take * PS),
                    put_near: PerByte(put * PS),
                    pull: PerByte(read.max(1.0 / message) * PS),
                    stream: PerByte::NOTHING,
                    memory: PerByte::NOTHING,
                }
            }
        }
    }

    /// The least that cores take.
    pub(super) fn least(&self) -> PerCore {
        let fastest = |all: [PerByte; 4]| all.map(PerByte::seconds).into_iter().fold(f64::INFINITY, f64::min);
        PerCore {
            read: self.read.seconds(),
            write: self.write.seconds(),
            pass: fastest([self.take, self.take_near, self.read, self.read_again])
                + fastest([self.put, self.put_near, self.write, self.write_again]),
        }
    }
}

/// The seconds of a core that a byte takes at least, whatever the algorithm.
#[derive(Debug, Clone, Copy)]
pub(super) struct PerCore {
    /// What is read of an input, for the first time.
    pub(super) read: f64,
    /// What is written of a result, for the first time.
    pub(super) write: f64,
    /// What is read of one rank and written for another, in a message or without.
    pub(super) pass: f64,
}

/// Seconds to read and to write a byte when working on so many.
fn at(memory: &[Reach], bytes: f64) -> (f64, f64) {
    let cost = |reach: &Reach| (1.0 / reach.read, 1.0 / reach.write);
    let after = memory.partition_point(|reach| reach.bytes <= bytes);
    match (after.checked_sub(1).map(|before| &memory[before]), memory.get(after)) {
        (Some(low), Some(high)) => {
            let part = (bytes / low.bytes).ln() / (high.bytes / low.bytes).ln();
            let between = |a: f64, b: f64| a + (b - a) * part;
            (between(cost(low).0, cost(high).0), between(cost(low).1, cost(high).1))
        }
        (Some(edge), None) | (None, Some(edge)) => cost(edge),
        (None, None) => (0.0, 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::{Reach, at};

    #[test]
    fn costs_lie_between_those_of_the_sizes_around() {
        let memory =
            [Reach { bytes: 1e3, read: 4.0, write: 2.0 }, Reach { bytes: 1e5, read: 1.0, write: 1.0 }];
        assert_eq!(at(&memory, 1.0), (0.25, 0.5));
        assert_eq!(at(&memory, 1e6), (1.0, 1.0));
        let (read, write) = at(&memory, 1e4);
        assert!((read - 0.625).abs() < 1e-9 && (write - 0.75).abs() < 1e-9);
    }
}
