//! What a call costs beside its data: the façade against the runtime below it, on one rank alone and on two.
//!
//! cargo run --release -p rcc --example dispatch
//!
//! Rounds of both are interleaved; the figure is the median of the rounds, in nanoseconds of a call.

#![allow(clippy::disallowed_methods, reason = "measures")]

use std::time::Instant;

use plan::dtype::Dtype;
use rcc::{Communicator, Op, Options};
use runtime::small::{Buffers, Call, Collective};

const ROUNDS: usize = 41;

fn main() {
    println!("{:<34}{:>8}{:>10}{:>10}", "allreduce, f32, out of place", "ranks", "runtime", "facade");
    for ranks in [1, 2] {
        let options = Options::default();
        let all = Communicator::threads(ranks, &options).expect("ranks");
        let times: Vec<[f64; 3]> = std::thread::scope(|scope| {
            let threads: Vec<_> = all.into_iter().map(|comm| scope.spawn(move || measure(comm))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        let [runtime, facade, plan] = times[0];
        println!("{:<34}{ranks:>8}{runtime:>10.1}{facade:>10.1}", "8 B, without a plan");
        println!("{:<34}{ranks:>8}{:>10}{plan:>10.1}", "8 KiB, with one", "");
    }
}

/// Of the runtime's small call, the façade's, and the façade's with a plan.
fn measure(mut comm: Communicator) -> [f64; 3] {
    let (send, mut recv) = (vec![1.0f32; 2048], vec![0.0f32; 2048]);
    let (bytes, mut into) = ([0u8; 8], [0u8; 8]);
    let small = Call { collective: Collective::Allreduce, elements: 2, dtype: Dtype::F32, op: Op::Sum };
    let mut rounds: [Vec<f64>; 3] = Default::default();
    for _ in 0..ROUNDS {
        rounds[0].push(per_call(10_000, || {
            comm.runtime().small(&small, &mut Buffers::apart(&bytes, &mut into)).expect("a call");
        }));
        rounds[1]
            .push(per_call(10_000, || comm.all_reduce(&send[..2], &mut recv[..2], Op::Sum).expect("a call")));
        rounds[2].push(per_call(1000, || comm.all_reduce(&send, &mut recv, Op::Sum).expect("a call")));
    }
    rounds.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[ROUNDS / 2]
    })
}

fn per_call(calls: u32, mut call: impl FnMut()) -> f64 {
    let began = Instant::now();
    (0..calls).for_each(|_| call());
    began.elapsed().as_secs_f64() * 1e9 / f64::from(calls)
}
