//! Direct access against slots: times of the same collectives by both, on this machine.
//!
//! ```text
//! cargo run --release -p rcc-runtime --example direct [RANKS [BYTES [BYTES …]]]
//! ```
//!
//! Ranks are processes; inputs are written anew before each call; plans take turns, for some rounds. Beside the median
//! stands the tenth part from below, which tells more where the machine has other things to do. BYTES is what a rank
//! holds in the end (allreduce: the vector; allgather, alltoall: all n blocks).

extern crate plan as rcc_plan;

#[path = "../../plan/tests/common/blocks.rs"]
#[allow(dead_code, reason = "some of its plans are for tests alone")]
mod blocks;
#[path = "../../plan/tests/common/direct.rs"]
#[allow(dead_code, reason = "some of its plans are for tests alone")]
mod direct;

use plan::builder::{PlanBuilder, get, local, put};
use plan::dtype::{Dtype, Op};
use plan::plan::{Plan, Role};
use plan::verify::{Limits, VerifiedPlan, least_slots, verify};
use rcc_runtime::exec::Shape;
use rcc_runtime::job::{Inputs, Job};
use rcc_runtime::launch::{self, Options};

const ROUNDS: usize = 5;

fn main() {
    if let Some(status) = launch::child_entry() {
        std::process::exit(status);
    }
    let numbers: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().expect("a number")).collect();
    let (ranks, sizes) = match numbers.split_first() {
        Some((&ranks, sizes)) => (vec![ranks as u32], sizes.to_vec()),
        None => (vec![2, 4], Vec::new()),
    };
    let sizes = if sizes.is_empty() { vec![64 << 10, 1 << 20, 16 << 20] } else { sizes };
    println!(
        "{:<28} {:>5} {:>10} {:>10} {:>10} {:>8}",
        "plan", "ranks", "bytes", "10 % µs", "median µs", "GB/s"
    );
    for n in ranks {
        for &bytes in &sizes {
            measure(n, bytes);
        }
    }
}

fn measure(n: u32, bytes: u64) {
    let part = bytes / u64::from(n) / 4;
    let plans = [
        ("allgather, slots", part, allgather_slots(n, false)),
        ("allgather, multicast slots", part, allgather_slots(n, true)),
        ("allgather, pull", part, direct::pull_allgather(n, false)),
        ("allgather, push", part, direct::push_allgather(n)),
        ("alltoall, slots", part, alltoall_slots(n)),
        ("alltoall, pull", part, direct::pull_alltoall(n)),
        ("alltoall, push", part, direct::push_alltoall(n)),
        ("one-shot allreduce, slots", bytes / 4, one_shot_slots(n)),
        ("one-shot allreduce, pull", bytes / 4, direct::one_shot(n, false)),
        ("allreduce, ring of slots", bytes / 4, ring_slots(n)),
        ("allreduce, ring of pulls", bytes / 4, direct::pull_ring(n)),
        ("allreduce, fold part for all", bytes / 4, direct::owner_folds(n)),
    ];
    let plans = plans.map(|(name, elements, plan)| (name, elements, proved(plan)));
    let mut times = vec![Vec::new(); plans.len()];
    for _ in 0..ROUNDS {
        for ((name, elements, plan), times) in plans.iter().zip(&mut times) {
            let shape = Shape { elements: *elements, dtype: Dtype::F32, op: Op::Sum, in_place: false };
            let iterations = (64 << 20 >> bytes.ilog2()).clamp(5, 300);
            let job = Job { warmup: 3, iterations, inputs: Inputs::Anew, ..Job::new(shape) };
            let report =
                launch::run(plan, &job, &Options::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(report.wrong, 0, "{name}");
            times.extend(report.times);
        }
    }
    for ((name, _, _), mut times) in plans.iter().zip(times) {
        times.sort_unstable();
        let [low, median] = [10, 2].map(|part| times[times.len() / part].as_secs_f64());
        let (low_us, median_us, rate) = (low * 1e6, median * 1e6, bytes as f64 / low / 1e9);
        println!("{name:<28} {n:>5} {bytes:>10} {low_us:>10.1} {median_us:>10.1} {rate:>8.2}");
    }
}

fn proved(mut plan: Plan) -> VerifiedPlan {
    plan.header.k_min = least_slots(&plan, &Limits::default()).expect("a plan");
    verify(plan, &Limits::default()).unwrap_or_else(|violations| panic!("{}", violations[0]))
}

/// Every rank sends its block to each other, by one channel to all or one to each, from a block for sending to one for
/// each that is received.
fn allgather_slots(n: u32, multicast: bool) -> Plan {
    let mut p = PlanBuilder::new("allgather_slots", "allgather", &[n]);
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, n);
    for r in 0..n {
        let sender = p.block(r);
        let receivers: Vec<_> = (0..n).filter(|&o| o != r).map(|o| (o, p.block(o))).collect();
        let readers: Vec<_> = receivers.iter().map(|&(_, b)| b).collect();
        let channels: Vec<_> = if multicast {
            vec![p.channel(sender, &readers); readers.len()]
        } else {
            readers.iter().map(|&b| p.channel(sender, &[b])).collect()
        };
        let mut destinations = vec![local(output, r)];
        destinations.extend(channels.iter().take(if multicast { 1 } else { usize::MAX }).map(|&ch| put(ch)));
        p.step(sender, &[local(input, 0)], &destinations);
        for (&(_, block), &channel) in receivers.iter().zip(&channels) {
            p.step(block, &[get(channel)], &[local(output, r)]);
        }
        (0..n).for_each(|from| p.promise((output, r, from), &[(input, from, 0)]));
    }
    p.finish().expect("a plan").plan
}

fn alltoall_slots(n: u32) -> Plan {
    let mut p = PlanBuilder::new("alltoall_slots", "alltoall", &[n]);
    let input = p.buffer("input", Role::Send, n);
    let output = p.buffer("output", Role::Recv, n);
    for r in 0..n {
        let own = p.block(r);
        p.step(own, &[local(input, r)], &[local(output, r)]);
        p.promise((output, r, r), &[(input, r, r)]);
        for to in (0..n).filter(|&o| o != r) {
            let (sender, receiver) = (p.block(r), p.block(to));
            let channel = p.channel(sender, &[receiver]);
            p.step(sender, &[local(input, to)], &[put(channel)]);
            p.step(receiver, &[get(channel)], &[local(output, r)]);
            p.promise((output, to, r), &[(input, r, to)]);
        }
    }
    p.finish().expect("a plan").plan
}

/// Every rank sends its input to all by one channel, and folds what comes in rank order.
fn one_shot_slots(n: u32) -> Plan {
    let mut p = PlanBuilder::new("one_shot_slots", "allreduce", &[n]);
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, 1);
    let senders: Vec<_> = (0..n).map(|r| p.block(r)).collect();
    let folders: Vec<_> = (0..n).map(|r| p.block(r)).collect();
    let channels: Vec<_> = (0..n)
        .map(|r| {
            let readers: Vec<_> = (0..n).filter(|&o| o != r).map(|o| folders[o as usize]).collect();
            p.channel(senders[r as usize], &readers)
        })
        .collect();
    let all: Vec<_> = (0..n).map(|r| (input, r, 0)).collect();
    for r in 0..n {
        p.step(senders[r as usize], &[local(input, 0)], &[put(channels[r as usize])]);
        let operands: Vec<_> =
            (0..n).map(|o| if o == r { local(input, 0) } else { get(channels[o as usize]) }).collect();
        p.step(folders[r as usize], &operands, &[local(output, 0)]).post();
        p.promise((output, r, 0), &all);
    }
    p.finish().expect("a plan").plan
}

/// The fused ring: receive, add, send on.
fn ring_slots(n: u32) -> Plan {
    let mut p = PlanBuilder::new("ring_slots", "allreduce", &[n]);
    p.header().cells = n;
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, 1);
    let blocks: Vec<_> = (0..n).map(|r| p.block(r)).collect();
    let next: Vec<_> =
        (0..n).map(|r| p.channel(blocks[r as usize], &[blocks[((r + 1) % n) as usize]])).collect();
    let all: Vec<_> = (0..n).map(|r| (input, r, 0)).collect();
    for r in 0..n {
        let b = blocks[r as usize];
        let (to, from) = (next[r as usize], next[((r + n - 1) % n) as usize]);
        let chunk = |back: u32| (r + 2 * n - back) % n;
        p.step(b, &[local(input, chunk(0))], &[put(to)]);
        for s in 1..n {
            let mut results = vec![put(to)];
            if s == n - 1 {
                results.push(local(output, chunk(s)));
            }
            let step = p.step(b, &[get(from), local(input, chunk(s))], &results);
            if s == n - 1 {
                step.post();
            }
        }
        for s in n..2 * n - 1 {
            let both = [local(output, chunk(s)), put(to)];
            p.step(b, &[get(from)], if s < 2 * n - 2 { &both } else { &both[..1] });
        }
        p.promise((output, r, 0), &all);
    }
    p.finish().expect("a plan").plan
}
