//! How long `verify` takes: `cargo run --release -p rcc-plan --example verify_time [ranks]`.
//!
//! In: a number of ranks. Out: seconds for a ring allreduce in place and out of place (ranks × 4 (ranks − 1) steps of
//! one cell), and for an exchange in steps as wide as the ring is long.

#![allow(clippy::disallowed_methods, reason = "measuring time is what this is for")]

use std::time::Instant;

use rcc_plan::builder::{PlanBuilder, get, local, put};
use rcc_plan::file::LoadLimits;
use rcc_plan::plan::{Plan, Role};
use rcc_plan::verify::{Limits, verify};

fn main() {
    let ranks: u32 = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(256);
    time("ring allreduce", &ring(ranks));
    time("wide exchange", &exchange(ranks * 64));
}

fn time(name: &str, plan: &Plan) {
    let (steps, ranks) = (plan.steps.len(), plan.header.ranks);
    let micro: u64 = plan.steps.iter().map(|step| u64::from(step.width)).sum();
    let start = Instant::now();
    let bytes = plan.to_bytes();
    let written = start.elapsed();
    let start = Instant::now();
    let loaded = Plan::from_bytes(&bytes, &LoadLimits::default()).expect("it was just written");
    let read = start.elapsed();
    let start = Instant::now();
    if let Err(violations) = verify(loaded, &Limits::default()) {
        println!("{}", violations[0]);
    }
    let verified = start.elapsed();
    println!("{name}, {ranks} ranks, {steps} steps, {micro} micro-steps, {} KiB:", bytes.len() >> 10);
    println!("  write {written:?}, read {read:?}, verify {verified:?}");
}

/// Reduce-scatter, then allgather: send, then receive; one slot is enough.
fn ring(n: u32) -> Plan {
    let mut p = PlanBuilder::new("ring", "allreduce", &[n]);
    p.header().cells = n;
    let (input, output) = (p.buffer("data", Role::Send, 1), p.buffer("data", Role::Recv, 1));
    let blocks: Vec<_> = (0..n).map(|rank| p.block(rank)).collect();
    let channels: Vec<_> =
        (0..n).map(|r| p.channel(blocks[r as usize], &[blocks[((r + 1) % n) as usize]])).collect();
    for r in 0..n {
        p.overlap(r, (input, 0), (output, 0), n);
        let block = blocks[r as usize];
        let (to, from) = (channels[r as usize], channels[((r + n - 1) % n) as usize]);
        let chunk = |s: u32| (r + 2 * n - s) % n;
        for s in 0..n - 1 {
            let source = if s == 0 { input } else { output };
            p.step(block, &[local(source, chunk(s))], &[put(to)]);
            let sum = [local(input, chunk(s + 1)), get(from)];
            let step = p.step(block, &sum, &[local(output, chunk(s + 1))]);
            if s == n - 2 {
                step.post();
            }
        }
        for s in n - 1..2 * n - 2 {
            p.step(block, &[local(output, chunk(s))], &[put(to)]);
            p.step(block, &[get(from)], &[local(output, chunk(s + 1))]);
        }
    }
    let all: Vec<_> = (0..n).map(|rank| (input, rank, 0)).collect();
    for r in 0..n {
        p.promise((output, r, 0), &all);
    }
    p.finish().expect("small enough").plan
}

/// Two ranks swap blocks of very many cells through one slot.
fn exchange(cells: u32) -> Plan {
    let mut p = PlanBuilder::new("exchange", "swap", &[2]);
    p.header().cells = cells;
    let (input, output) = (p.buffer("input", Role::Send, 1), p.buffer("output", Role::Recv, 1));
    let blocks: Vec<_> = (0..2).flat_map(|r| [p.block(r), p.block(r)]).collect();
    let channels = [0, 1].map(|r: usize| p.channel(blocks[2 * r], &[blocks[2 * (1 - r) + 1]]));
    for r in 0..2 {
        p.step(blocks[2 * r], &[local(input, 0)], &[put(channels[r])]).width(cells);
        p.step(blocks[2 * r + 1], &[get(channels[1 - r])], &[local(output, 0)]).width(cells);
        p.promise((output, r as u32, 0), &[(input, 1 - r as u32, 0)]);
    }
    p.finish().expect("small enough").plan
}
