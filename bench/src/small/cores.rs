//! How long a line takes from one core to another.
//!
//! In: the CPUs of this process. Out: nanoseconds from a store on the first until the second sees it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

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
