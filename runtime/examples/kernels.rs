//! How fast the kernels are: two operands to one result, all in the first two levels of cache.
//!
//! In: nothing, or the number of bytes of an operand. Out: a table, GB/s of operands and result together (three times
//! the bytes of one) for each type and operator, by the best vector set of the machine; then the time of a call of one
//! element, and stores past the caches beside others.
#![allow(clippy::disallowed_methods, reason = "it measures")]

use std::time::Instant;

use plan::dtype::{Dtype, Op};
use plan::pre::Pre;
use rcc_runtime::exec::kernels::{Fold, Kernel, Set, Stream};

fn main() {
    let bytes = std::env::args().nth(1).and_then(|given| given.parse().ok()).unwrap_or(16 << 10);
    for set in Set::available() {
        println!("{set:?}: {bytes} bytes per operand, GB/s");
        println!("{:8}{}", "", Op::ALL.map(|op| format!("{:>12}", op.name())).concat());
        for dtype in Dtype::ALL {
            let count = bytes / dtype.size() as usize;
            let rates = Op::ALL.map(|op| {
                let seconds = time(Kernel::of_set(dtype, op, set), count, dtype, false);
                format!("{:12.1}", 3.0 * bytes as f64 / seconds / 1e9)
            });
            println!("{:8}{}", dtype.name(), rates.concat());
        }
    }
    let one = Kernel::new(Dtype::F32, Op::Sum);
    println!("one f32: {:.1} ns", time(one, 1, Dtype::F32, false) * 1e9);
    for size in [1 << 20, 4 << 20, 64 << 20] {
        let rates = [false, true].map(|stream| {
            let seconds = time(one, size / 4, Dtype::F32, stream);
            format!("{:.1}", 3.0 * size as f64 / seconds / 1e9)
        });
        println!("f32 sum of 2 x {} MiB: {} GB/s, past the caches {}", size >> 20, rates[0], rates[1]);
    }
}

/// Seconds of a call: the median of several rounds, each of some milliseconds.
fn time(kernel: Kernel, count: usize, dtype: Dtype, stream: bool) -> f64 {
    let bytes = count * dtype.size() as usize;
    let mut memory: [Vec<u64>; 3] = std::array::from_fn(|i| vec![0x3c3c_3c3c_3c3c_3c3c >> i; bytes / 8 + 8]);
    let [a, b, to] = memory.each_mut().map(|area| area.as_mut_ptr().cast::<u8>());
    let sources = [a.cast_const(), b.cast_const()];
    let destinations = [to];
    let fold = Fold {
        sources: &sources,
        destinations: &destinations,
        count,
        round_each: false,
        divisor: None,
        pre: Pre(0b11),
        stream: Stream::of([stream]),
    };
    let fold = std::hint::black_box(fold);
    let turns = (8_000_000 / (bytes + 1000)).max(1);
    let mut rounds: Vec<f64> = (0..7)
        .map(|_| {
            let began = Instant::now();
            for _ in 0..turns {
                // SAFETY: all three areas hold `count` elements and are apart.
                unsafe { kernel.run(&fold) };
            }
            began.elapsed().as_secs_f64() / turns as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[3]
}
