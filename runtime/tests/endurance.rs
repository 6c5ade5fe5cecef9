//! Calls in a row without end: memory stays what it was, and so does the time that one takes.
//!
//! `cargo test --release -p rcc-runtime --test endurance -- --ignored --nocapture` makes 10^7 of each kind on two ranks (`RCC_CALLS`), on an otherwise idle machine,
//! and prints the time of each tenth and what is resident. The usual suite makes fewer, and looks at memory alone.

#![allow(clippy::disallowed_methods, reason = "times calls, and asks the system for what is resident")]

extern crate plan as rcc_plan;

mod plans;
mod ranks;

use std::sync::Arc;
use std::time::{Duration, Instant};

use plan::dtype::{Dtype, Op};
use plan::ids::BufferId;
use ranks::{LONG, options, shape, together};
use rcc_runtime::comm::{Communicator, Options, PlanId};
use rcc_runtime::exec::buffers::Buffers;
use rcc_runtime::small::{self, Call, Collective};

const TENTHS: usize = 10;

/// Bytes of this process that are in memory.
fn resident() -> i64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().nth(1).unwrap().parse::<i64>().unwrap() * 4096
}

/// Makes so many calls at each of two ranks; the time of each tenth at rank 0, and by how much more was resident at the end than after the first.
fn run<T: Copy>(
    name: &str,
    calls: usize,
    open: impl Fn(&mut Communicator) -> T + Sync,
    one: impl Fn(&mut Communicator, T, u64) + Sync,
) -> Vec<Duration> {
    let options = Options { registered: 0, ..options(LONG) };
    let times = together(2, &options, |mut comm| {
        let opened = open(&mut comm);
        let mut times = Vec::new();
        let mut first = 0;
        for tenth in 0..TENTHS {
            comm.barrier().unwrap();
            let began = Instant::now();
            for i in 0..calls / TENTHS {
                one(&mut comm, opened, (tenth * calls + i) as u64);
            }
            times.push(began.elapsed());
            let now = resident();
            if tenth == 0 {
                first = now;
            }
            if comm.rank().0 == 0 {
                let each = began.elapsed() / (calls / TENTHS) as u32;
                println!("{name}, tenth {tenth}: {each:?} a call, {} KiB resident", now / 1024);
            }
            // Threads of this process start and end meanwhile; what a call leaves behind would be far more.
            assert!(now - first < 2 << 20, "{name}: {} bytes more are resident", now - first);
        }
        times
    });
    times.into_iter().next().unwrap()
}

fn number(default: usize) -> usize {
    std::env::var("RCC_CALLS").ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Small calls, calls of a plan, calls with handles.
fn kinds(calls: usize) -> [(&'static str, Vec<Duration>); 3] {
    let small = |comm: &mut Communicator, (): (), i: u64| {
        let call = Call { collective: Collective::Allreduce, elements: 1, dtype: Dtype::U64, op: Op::Sum };
        let (input, mut output) = (i.to_ne_bytes(), [0; 8]);
        comm.small(&call, &mut small::Buffers::apart(&input, &mut output)).unwrap();
        assert_eq!(u64::from_ne_bytes(output), 2 * i);
    };
    let ring = Arc::new(plans::ring(2));
    let open = |comm: &mut Communicator| comm.open(&ring).unwrap();
    let planned = |comm: &mut Communicator, id: PlanId, i: u64| {
        let (input, mut output) = ((i as f32).to_ne_bytes(), [0; 4]);
        let mut buffers = Buffers::new(&ring).send(BufferId(0), &input).recv(BufferId(1), &mut output);
        comm.call(id, shape(1), &mut buffers).unwrap();
        assert_eq!(f32::from_ne_bytes(output), 2.0 * i as f32);
    };
    let handled = |comm: &mut Communicator, id: PlanId, i: u64| {
        let owned = ((i as f32).to_ne_bytes(), [0; 4]);
        let started = comm.start_with(id, shape(1), owned, |(input, output)| {
            Ok(Buffers::new(&ring).send(BufferId(0), &*input).recv(BufferId(1), output))
        });
        let (how, (_, output)) = started.unwrap().wait();
        how.unwrap();
        assert_eq!(f32::from_ne_bytes(output), 2.0 * i as f32);
    };
    [
        ("small", run("small", calls, |_| (), small)),
        ("plan", run("plan", calls / 4, open, planned)),
        ("handle", run("handle", calls / 10, open, handled)),
    ]
}

#[test]
fn memory_is_flat() {
    kinds(20_000);
}

#[test]
#[ignore = "it takes minutes of an idle machine"]
fn ten_million_calls() {
    for (name, times) in kinds(number(10_000_000)) {
        let mut early = times[1..TENTHS / 2].to_vec();
        let mut late = times[TENTHS / 2..].to_vec();
        early.sort_unstable();
        late.sort_unstable();
        let [early, late] = [early[early.len() / 2], late[late.len() / 2]];
        println!("{name}: {early:?} a tenth in the first half, {late:?} in the second");
        assert!(late < early * 3 / 2, "{name}: calls become slower: {times:?}");
    }
}
