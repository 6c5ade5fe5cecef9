//! How fast a core reads and writes, by how much it goes through again and again.
//!
//! In: CPUs, bytes. Out: two rates, where all CPUs work at once. The runtime's kernels copy, and combine four operands, a slice at
//! a time; what three more operands cost is reading them, and what is left of copying is writing.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use plan::dtype::{Dtype, Op};
use plan::pre::Pre;
use runtime::exec::kernels::{Fold, Stream, fold};

use crate::place;

/// Bytes that a core works on.
pub(crate) const SIZES: [usize; 6] = [256 << 10, 1 << 20, 4 << 20, 8 << 20, 16 << 20, 256 << 20];
/// Bytes of a slice.
const SLICE: usize = 64 << 10;
/// At least so long is gone through it.
const LONG: Duration = Duration::from_millis(20);
/// The operands of a combine.
const OPERANDS: usize = 4;

/// Rates in bytes per second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    /// What the core works on.
    pub(crate) bytes: usize,
    /// Reading.
    pub(crate) read: f64,
    /// Writing.
    pub(crate) write: f64,
}

/// Seconds for each byte of the result: of copying, and of combining.
pub(crate) fn took(cpus: &[usize], bytes: usize) -> [f64; 2] {
    [1, OPERANDS].map(|operands| at_once(cpus, bytes, operands))
}

/// Seconds for each byte, of copying alone.
pub(crate) fn copies(cpus: &[usize], bytes: usize) -> f64 {
    at_once(cpus, bytes, 1)
}

/// The rates that follow.
pub(crate) fn reach(bytes: usize, [copy, combine]: [f64; 2]) -> Reach {
    // Within the first cache combining may cost next to nothing more; both are a part of copying at least.
    let read = ((combine - copy) / (OPERANDS - 1) as f64).clamp(copy / 8.0, copy * 7.0 / 8.0);
    Reach { bytes, read: 1.0 / read, write: 1.0 / (copy - read) }
}

/// Seconds for each byte of the result, on all CPUs at once; the slowest CPU's.
fn at_once(cpus: &[usize], bytes: usize, operands: usize) -> f64 {
    let start = Barrier::new(cpus.len());
    std::thread::scope(|scope| {
        let start = &start;
        let threads: Vec<_> = cpus
            .iter()
            .map(|&cpu| {
                scope.spawn(move || {
                    place::keep_to(cpu);
                    one(bytes, operands, start)
                })
            })
            .collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).fold(0.0, f64::max)
    })
}

fn one(bytes: usize, operands: usize, start: &Barrier) -> f64 {
    // All buffers together are what the core works on.
    let length = (bytes / (operands + 1)).next_multiple_of(64);
    // Written, since pages that nobody has written are all one page.
    let sources: Vec<Vec<u8>> = vec![vec![1; length]; operands];
    let mut result = vec![1u8; length];
    let pass = |result: &mut [u8]| {
        for from in (0..length).step_by(SLICE) {
            let count = SLICE.min(length - from) / 4;
            let slices: Vec<*const u8> = sources.iter().map(|source| source[from..].as_ptr()).collect();
            copy(&slices, result[from..].as_mut_ptr(), count);
        }
        std::hint::black_box(result);
    };
    pass(&mut result);
    start.wait();
    let began = Instant::now();
    let mut passes = 0;
    while began.elapsed() < LONG {
        pass(&mut result);
        passes += 1;
    }
    began.elapsed().as_secs_f64() / (f64::from(passes) * length as f64)
}

/// Combines `count` floats of each source, or copies the only one.
pub(crate) fn copy(sources: &[*const u8], result: *mut u8, count: usize) {
    let destinations = [result];
    let all = Fold {
        sources,
        destinations: &destinations,
        count,
        round_each: false,
        divisor: None,
        pre: Pre::NONE,
        stream: Stream::NONE,
    };
    // SAFETY: the callers pass memory of `count` floats at least, apart from each other, of which nobody else writes any
    // while this runs.
    unsafe { fold(Dtype::F32, Op::Sum, &all) };
}

#[cfg(test)]
mod tests {
    use super::reach;

    #[test]
    fn rates_give_back_what_the_kernels_took() {
        // 3 s a byte to read, 2 to write: copying takes 5, combining four operands 14.
        let found = reach(1, [5.0, 14.0]);
        assert!((found.read - 1.0 / 3.0).abs() < 1e-12 && (found.write - 0.5).abs() < 1e-12);
        // Neither costs nothing, whatever was measured.
        for combine in [0.0, 5.0, 1e9] {
            let found = reach(1, [5.0, combine]);
            assert!((1.0 / found.read + 1.0 / found.write - 5.0).abs() < 1e-9);
            assert!(found.read <= 8.0 / 5.0 && found.write <= 8.0 / 5.0 && found.read > 0.0);
        }
    }
}
