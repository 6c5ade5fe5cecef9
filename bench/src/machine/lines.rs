//! What one core notices of another.
//!
//! In: two CPUs. Out: how long a line takes from one to the other, and what slots cost that are written on one and read on
//! the other, in turns, as channels are.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::{median, memory, place};

/// Turns of a measurement.
const TURNS: u64 = 20_000;
/// How often slots are filled and emptied.
const FILLED: u64 = 200;
/// Slots of a channel, and their bytes.
const SLOTS: usize = 4;
const SLOT: usize = 64 << 10;

/// A word on lines of its own.
#[repr(align(128))]
struct Word(AtomicU64);

/// Seconds from a store on one CPU until the other sees it.
pub(crate) fn latency(cpus: [usize; 2]) -> f64 {
    let word = Word(AtomicU64::new(0));
    let [took, _] = both(cpus, |side| {
        let began = Instant::now();
        for turn in 0..TURNS {
            let mine = 2 * turn + side;
            while word.0.load(Ordering::Acquire) != mine {
                std::hint::spin_loop();
            }
            word.0.store(mine + 1, Ordering::Release);
        }
        began.elapsed().as_secs_f64()
    });
    took / (2 * TURNS) as f64
}

/// Seconds for each byte of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PerByte {
    /// Copying it out of a slot that the writer has just written.
    pub(crate) read: f64,
    /// Copying it into a slot that the reader has just read.
    pub(crate) write: f64,
}

/// Slots that one CPU fills and the other empties, in turn; with one CPU given twice, it does both. The median
/// of all turns.
pub(crate) fn messages(cpus: [usize; 2]) -> PerByte {
    let slots = vec![0u8; SLOTS * SLOT];
    let base = slots.as_ptr() as usize;
    let word = Word(AtomicU64::new(0));
    let step = |side: u64, own: &mut [u8]| {
        let began = Instant::now();
        for slot in 0..SLOTS {
            let at = (base + slot * SLOT) as *mut u8;
            match side {
                0 => memory::copy(&[own.as_ptr()], at, SLOT / 4),
                _ => memory::copy(&[at.cast_const()], own.as_mut_ptr(), SLOT / 4),
            }
        }
        began.elapsed().as_secs_f64() / (SLOTS * SLOT) as f64
    };
    if cpus[0] == cpus[1] {
        return std::thread::scope(|scope| {
            let alone = scope.spawn(|| {
                place::keep_to(cpus[0]);
                let (mut from, mut to) = (vec![1u8; SLOT], vec![2u8; SLOT]);
                let all = (0..FILLED).map(|_| (step(0, &mut from), step(1, &mut to)));
                let (write, read): (Vec<f64>, Vec<f64>) = all.unzip();
                [median(&write), median(&read)]
            });
            let [write, read] = alone.join().unwrap_or([f64::INFINITY; 2]);
            PerByte { read, write }
        });
    }
    let [write, read] = both(cpus, |side| {
        let mut own = vec![1u8; SLOT];
        let mut times = Vec::new();
        for turn in 0..FILLED {
            let mine = 2 * turn + side;
            while word.0.load(Ordering::Acquire) != mine {
                std::hint::spin_loop();
            }
            times.push(step(side, &mut own));
            word.0.store(mine + 1, Ordering::Release);
        }
        median(&times)
    });
    drop(slots);
    PerByte { read, write }
}

/// Runs both sides, each on its CPU.
fn both(cpus: [usize; 2], side: impl Fn(u64) -> f64 + Sync) -> [f64; 2] {
    std::thread::scope(|scope| {
        let side = &side;
        let threads = [0, 1].map(|which| {
            scope.spawn(move || {
                place::keep_to(cpus[which]);
                side(which as u64)
            })
        });
        threads.map(|thread| thread.join().unwrap_or(f64::INFINITY))
    })
}
