//! Plans written by hand, for the tests of the executor.
//!
//! In: a number of ranks and what varies. Out: plans that keep their promises; each shows one thing that an executor
//! can get wrong.

#![allow(dead_code, reason = "each test file uses some of them")]

use plan::builder::{PlanBuilder, get, local, put};
use plan::plan::Role;
use plan::verify::{Limits, VerifiedPlan, least_slots, verify};

/// Allreduce on a ring: n chunks of the one block, reduced round the ring, then passed round it. In place and out of
/// place.
pub(crate) fn ring(n: u32) -> VerifiedPlan {
    let mut p = PlanBuilder::new("ring", "allreduce", &[n]);
    p.header().cells = n;
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, 1);
    let blocks: Vec<_> = (0..n).map(|r| p.block(r)).collect();
    for r in 0..n {
        p.overlap(r, (input, 0), (output, 0), n);
        p.promise((output, r, 0), &(0..n).map(|q| (input, q, 0)).collect::<Vec<_>>());
    }
    if n == 1 {
        p.step(blocks[0], &[local(input, 0)], &[local(output, 0)]);
        return verified(p);
    }
    let next: Vec<_> =
        (0..n).map(|r| p.channel(blocks[r as usize], &[blocks[((r + 1) % n) as usize]])).collect();
    for r in 0..n {
        let b = blocks[r as usize];
        let (to, from) = (next[r as usize], next[((r + n - 1) % n) as usize]);
        let chunk = |back: u32| (r + 2 * n - back) % n;
        p.step(b, &[local(input, chunk(0))], &[put(to)]).line(3, "output[c] @ r + 1 = input[c] @ r");
        for s in 1..n - 1 {
            p.step(b, &[get(from), local(input, chunk(s))], &[put(to)])
                .line(5, "output[c] @ r + 1 += input[c] @ r");
        }
        p.step(b, &[get(from), local(input, chunk(n - 1))], &[local(output, chunk(n - 1)), put(to)])
            .post()
            .line(6, "output[c] @ r + 1 += input[c] @ r");
        for s in n..2 * n - 2 {
            p.step(b, &[get(from)], &[local(output, chunk(s)), put(to)])
                .line(9, "output[c] @ r + 1 = output[c] @ r");
        }
        p.step(b, &[get(from)], &[local(output, chunk(2 * n - 2))])
            .line(9, "output[c] @ r + 1 = output[c] @ r");
    }
    verified(p)
}

/// The plan, with the k_min that it needs.
fn verified(builder: PlanBuilder) -> VerifiedPlan {
    let mut plan = builder.finish().unwrap().plan;
    plan.header.k_min = least_slots(&plan, &Limits::default()).unwrap();
    verify(plan, &Limits::default()).unwrap_or_else(|violations| panic!("{}", violations[0]))
}
