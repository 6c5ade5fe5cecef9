//! How fast this machine copies.
//!
//! In: cores, the bytes of a buffer, those of a slice. Out: bytes per second that all cores copy together, each from a
//! buffer of its own to another, much larger than the caches. Two ways, since a library copies long pieces otherwise than
//! short ones (past the caches): slice by slice, as a pipelined call must, and whole buffers. The faster one is the limit.

use std::sync::Barrier;
use std::time::Instant;

/// Rates measured so far, in bytes per second.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    /// Slice by slice.
    pub(crate) sliced: Vec<f64>,
    /// In one piece.
    pub(crate) whole: Vec<f64>,
    /// In one piece, on one core alone.
    pub(crate) alone: Vec<f64>,
}

/// How often a buffer is copied in one measurement.
const TURNS: u32 = 4;

impl Rates {
    /// Measures once.
    pub(crate) fn measure(&mut self, cores: usize, bytes: usize, slice: usize) {
        self.sliced.push(together(cores, bytes, slice));
        self.whole.push(together(cores, bytes, bytes));
        self.alone.push(together(1, bytes, bytes));
    }
}

fn together(cores: usize, bytes: usize, piece: usize) -> f64 {
    let barrier = Barrier::new(cores);
    let seconds = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(|| copy(&barrier, bytes, piece))).collect();
        // The slowest: only then is all copied.
        threads.into_iter().filter_map(|thread| thread.join().ok()).fold(0.0, f64::max)
    });
    (cores * bytes) as f64 * f64::from(TURNS) / seconds
}

fn copy(barrier: &Barrier, bytes: usize, piece: usize) -> f64 {
    // Filled, so that every page is there.
    let (from, mut to) = (vec![1u8; bytes], vec![2u8; bytes]);
    barrier.wait();
    let began = Instant::now();
    for _ in 0..TURNS {
        for (from, to) in from.chunks(piece).zip(to.chunks_mut(piece)) {
            to.copy_from_slice(std::hint::black_box(from));
        }
        std::hint::black_box(&mut to);
    }
    began.elapsed().as_secs_f64()
}
