//! How long a line takes from one core to another, and a turn of another process on the same.
//!
//! In: the CPUs of this process. Out: nanoseconds from a store on the first until the second sees it; microseconds from one process to
//! another. No call of two ranks that run, and of more that must take turns, can be much faster than these.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::processes;

/// Turns of a measurement, and how many there are: the fastest counts, since whatever else runs only adds.
const TURNS: u64 = 20_000;
const TRIES: usize = 7;

/// A word on lines of its own.
#[repr(align(128))]
struct Word(AtomicU64);

/// Between the first two CPUs; nothing where there is one.
pub(crate) fn one_way() -> Option<f64> {
    let mask = sched_getaffinity(None).ok()?;
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| mask.is_set(cpu));
    let cpus = [cpus.next()?, cpus.next()?];
    let all = (0..TRIES).map(|_| turns(cpus));
    Some(all.fold(f64::INFINITY, f64::min) / (2 * TURNS) as f64 * 1e9)
}

/// Turns that processes take on one CPU, by yielding: microseconds until the next one runs. To be called while this process has one thread.
pub(crate) fn print_switch() -> Result<(), String> {
    const SWITCHES: u32 = 50_000;
    processes::run(2, |rank| {
        let pinned = sched_getaffinity(None).ok().and_then(|mask| {
            let mut one = CpuSet::new();
            one.set((0..CpuSet::MAX_CPU).find(|&cpu| mask.is_set(cpu))?);
            sched_setaffinity(None, &one).ok()
        });
        (0..1000).for_each(|_| std::thread::yield_now());
        let began = Instant::now();
        (0..SWITCHES).for_each(|_| std::thread::yield_now());
        let each = began.elapsed().as_secs_f64() / f64::from(SWITCHES) / 2.0 * 1e6;
        if rank == 0 && pinned.is_some() {
            println!("from one process to another on one CPU: {each:.2} us");
        }
        Ok(())
    })
}

/// Puts the calling thread on the first CPU that it may use, without keeping it there.
pub(crate) fn gather() {
    let Ok(mask) = sched_getaffinity(None) else { return };
    let Some(cpu) = (0..CpuSet::MAX_CPU).find(|&cpu| mask.is_set(cpu)) else { return };
    let mut one = CpuSet::new();
    one.set(cpu);
    if sched_setaffinity(None, &one).is_ok() {
        let _ = sched_setaffinity(None, &mask);
    }
}

fn turns(cpus: [usize; 2]) -> f64 {
    let word = Word(AtomicU64::new(0));
    let side = |side: u64| {
        let mut one = CpuSet::new();
        one.set(cpus[side as usize]);
        // What is measured on a system that refuses is what that system does.
        let _ = sched_setaffinity(None, &one);
        let began = Instant::now();
        for turn in 0..TURNS {
            let mine = 2 * turn + side;
            while word.0.load(Ordering::Acquire) != mine {
                std::hint::spin_loop();
            }
            word.0.store(mine + 1, Ordering::Release);
        }
        began.elapsed().as_secs_f64()
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| side(1));
        let this = scope.spawn(|| side(0));
        let _ = other.join();
        this.join().unwrap_or(f64::INFINITY)
    })
}
