//! How small plan files are and how long writing and reading takes: `cargo run --release -p rcc-plan --example roll_time
//! [ranks]`.
//!
//! In: a number of ranks. Out: bytes and times for a fused ring, a ring in plain steps, an all-to-all, and an exchange
//! of halves, each on so many ranks; and for steps in no order at all.

#![allow(clippy::disallowed_methods, reason = "measuring time is what this is for")]

use std::time::Instant;

use rcc_plan::builder::{PlanBuilder, get, local, put};
use rcc_plan::file::LoadLimits;
use rcc_plan::ids::BufferId;
use rcc_plan::plan::{Plan, Role};

fn main() {
    let ranks: u32 = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(256);
    time("ring, fused", &ring(ranks, true));
    time("ring, plain", &ring(ranks, false));
    time("all-to-all", &alltoall(ranks));
    time("halves", &halves(ranks.next_power_of_two()));
    time("no order", &shuffled(ring(ranks, false)));
}

fn time(name: &str, plan: &Plan) {
    let start = Instant::now();
    let bytes = plan.to_bytes();
    let written = start.elapsed();
    let start = Instant::now();
    let hash = plan.content_hash();
    let hashed = start.elapsed();
    let start = Instant::now();
    let loaded = Plan::from_bytes(&bytes, &LoadLimits::default()).expect("it was just written");
    let read = start.elapsed();
    assert!(loaded == *plan && loaded.content_hash() == hash);
    println!(
        "{name}: {} steps, {} bytes; write {written:.1?}, read {read:.1?}, hash {hashed:.1?}",
        plan.steps.len(),
        bytes.len()
    );
}

fn inout(p: &mut PlanBuilder, n: u32) -> (BufferId, BufferId) {
    p.header().cells = n;
    let entry = p.buffer("data", Role::Send, 1);
    let exit = p.buffer("data", Role::Recv, 1);
    for rank in 0..n {
        p.overlap(rank, (entry, 0), (exit, 0), n);
    }
    let all: Vec<_> = (0..n).map(|rank| (entry, rank, 0)).collect();
    for rank in 0..n {
        p.promise((exit, rank, 0), &all);
    }
    (entry, exit)
}

fn ring(n: u32, fused: bool) -> Plan {
    let mut p = PlanBuilder::new("ring", "allreduce", &[n]);
    let (entry, exit) = inout(&mut p, n);
    let blocks: Vec<_> = (0..n).map(|rank| p.block(rank)).collect();
    let channels: Vec<_> =
        (0..n).map(|r| p.channel(blocks[r as usize], &[blocks[((r + 1) % n) as usize]])).collect();
    for r in 0..n {
        let (to, from) = (channels[r as usize], channels[((r + n - 1) % n) as usize]);
        let block = blocks[r as usize];
        let cell = |s: u32| (r + 2 * n - s) % n;
        if fused {
            p.step(block, &[local(entry, cell(0))], &[put(to)]);
            for s in 1..n - 1 {
                p.step(block, &[get(from), local(entry, cell(s))], &[put(to)]);
            }
            p.step(block, &[get(from), local(entry, cell(n - 1))], &[local(exit, cell(n - 1)), put(to)])
                .post();
            for s in n..2 * n - 2 {
                p.step(block, &[get(from)], &[local(exit, cell(s)), put(to)]);
            }
            p.step(block, &[get(from)], &[local(exit, cell(2 * n - 2))]);
            continue;
        }
        for s in 0..n - 1 {
            let from_cell = if s == 0 { local(entry, cell(s)) } else { local(exit, cell(s)) };
            p.step(block, &[from_cell], &[put(to)]);
            p.step(block, &[get(from), local(entry, cell(s + 1))], &[local(exit, cell(s + 1))]);
        }
        for s in n - 1..2 * n - 2 {
            p.step(block, &[local(exit, cell(s))], &[put(to)]);
            p.step(block, &[get(from)], &[local(exit, cell(s + 1))]);
        }
    }
    p.finish().expect("within 32 bits").plan
}

fn alltoall(n: u32) -> Plan {
    let mut p = PlanBuilder::new("direct", "alltoall", &[n]);
    let input = p.buffer("input", Role::Send, n);
    let output = p.buffer("output", Role::Recv, n);
    let blocks: Vec<_> = (0..n).map(|rank| p.block(rank)).collect();
    let to = |r: u32, d: u32| (r + d) % n;
    let channels: Vec<Vec<_>> = (0..n)
        .map(|r| (1..n).map(|d| p.channel(blocks[r as usize], &[blocks[to(r, d) as usize]])).collect())
        .collect();
    for r in 0..n {
        let block = blocks[r as usize];
        p.step(block, &[local(input, r)], &[local(output, r)]);
        for d in 1..n {
            let from = to(r, n - d);
            p.step(block, &[local(input, to(r, d))], &[put(channels[r as usize][d as usize - 1])]);
            p.step(block, &[get(channels[from as usize][d as usize - 1])], &[local(output, from)]);
        }
        (0..n).for_each(|q| p.promise((output, r, q), &[(input, q, r)]));
    }
    p.finish().expect("within 32 bits").plan
}

/// Halves of halves of the data, each in steps of one cell.
fn halves(n: u32) -> Plan {
    let mut p = PlanBuilder::new("halves", "allreduce", &[n]);
    let (entry, exit) = inout(&mut p, n);
    let blocks: Vec<_> = (0..n).map(|rank| p.block(rank)).collect();
    let bits = n.trailing_zeros();
    let channels: Vec<Vec<_>> = (0..n)
        .map(|r| (0..bits).map(|b| p.channel(blocks[r as usize], &[blocks[(r ^ 1 << b) as usize]])).collect())
        .collect();
    for r in 0..n {
        let block = blocks[r as usize];
        for b in (0..bits).rev() {
            let partner = r ^ 1 << b;
            let (own, other) = (r >> b << b, partner >> b << b);
            let from = channels[partner as usize][b as usize];
            for i in 0..1 << b {
                p.step(block, &[local(entry, other + i)], &[put(channels[r as usize][b as usize])]);
                p.step(block, &[get(from), local(entry, own + i)], &[local(exit, own + i)]);
            }
        }
    }
    p.finish().expect("within 32 bits").plan
}

/// The steps' cells in no order.
fn shuffled(mut plan: Plan) -> Plan {
    let mut state = 1u64;
    for operand in &mut plan.operands {
        if let rcc_plan::plan::Operand::Local { cell, .. } = operand {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            *cell = (state >> 33) as u32 % plan.header.ranks;
        }
    }
    plan
}
