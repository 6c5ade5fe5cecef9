//! Plans written by hand, for the tests of the executor.
//!
//! In: a number of ranks and what varies. Out: plans that keep their promises; each shows one thing that an executor
//! can get wrong.

#![allow(dead_code, reason = "each test file uses some of them")]

#[path = "../../../plan/tests/common/blocks.rs"]
pub(crate) mod blocks;
#[path = "../../../plan/tests/common/direct.rs"]
pub(crate) mod direct;

use plan::builder::{PlanBuilder, get, local, put};
use plan::plan::{Plan, Role, Section};
use plan::pre::Pre;
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
                .pre(Pre(if s == 1 { 3 } else { 2 }))
                .line(5, "output[c] @ r + 1 += input[c] @ r");
        }
        p.step(b, &[get(from), local(input, chunk(n - 1))], &[local(output, chunk(n - 1)), put(to)])
            .post()
            .pre(Pre(if n == 2 { 3 } else { 2 }))
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

/// Two ranks swap their inputs.
pub(crate) fn exchange() -> VerifiedPlan {
    let mut p = PlanBuilder::new("exchange", "sendrecv", &[2]);
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, 1);
    let blocks = [p.block(0), p.block(1)];
    let to = [p.channel(blocks[0], &[blocks[1]]), p.channel(blocks[1], &[blocks[0]])];
    for r in 0..2 {
        p.step(blocks[r], &[local(input, 0)], &[put(to[r])]);
        p.step(blocks[r], &[get(to[1 - r])], &[local(output, 0)]);
        p.promise((output, r as u32, 0), &[(input, 1 - r as u32, 0)]);
    }
    verified(p)
}

/// The same, with a block for sending and one for receiving.
pub(crate) fn exchange_in_blocks() -> VerifiedPlan {
    let mut p = PlanBuilder::new("exchange", "sendrecv", &[2]);
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, 1);
    let blocks = [[p.block(0), p.block(0)], [p.block(1), p.block(1)]];
    for r in 0..2 {
        let to = p.channel(blocks[r][0], &[blocks[1 - r][1]]);
        p.step(blocks[r][0], &[local(input, 0)], &[put(to)]);
        p.step(blocks[1 - r][1], &[get(to)], &[local(output, 0)]);
        p.promise((output, 1 - r as u32, 0), &[(input, r as u32, 0)]);
    }
    verified(p)
}

/// A plan whose blocks must take turns: at rank 0, block A cannot end before block B has begun, and B cannot end
/// before A has. Whoever runs a block to its end before the next one waits for ever.
pub(crate) fn interleaved() -> VerifiedPlan {
    let mut p = PlanBuilder::new("interleaved", "custom", &[2]);
    p.header().cells = 2;
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, 1);
    let (a, b, other) = (p.block(0), p.block(0), p.block(1));
    let a_out = p.channel(a, &[other]);
    let b_in = p.channel(other, &[b]);
    let b_out = p.channel(b, &[other]);
    let a_in = p.channel(other, &[a]);
    p.step(a, &[local(input, 0)], &[put(a_out)]);
    p.step(a, &[get(a_in)], &[local(output, 1)]);
    p.step(b, &[get(b_in)], &[local(output, 0)]);
    p.step(b, &[local(input, 1)], &[put(b_out)]);
    p.step(other, &[get(a_out)], &[local(output, 0)]);
    p.step(other, &[local(input, 0)], &[put(b_in)]);
    p.step(other, &[get(b_out)], &[local(output, 1)]);
    p.step(other, &[local(input, 1)], &[put(a_in)]);
    for r in 0..2 {
        p.promise((output, r, 0), &[(input, 1 - r, 0)]);
    }
    verified(p)
}

/// Broadcast from rank 0 by one channel with n - 1 readers; `copies` of it side by side, blocks of three cells of
/// which two go together.
pub(crate) fn multicast(n: u32, copies: u32) -> VerifiedPlan {
    let mut p = PlanBuilder::new("multicast", "broadcast", &[n]);
    p.header().cells = 3;
    p.header().copies = copies;
    let input = p.buffer_at("input", Role::Send, 1, 0);
    let output = p.buffer("output", Role::Recv, 1);
    let blocks: Vec<_> = (0..n).map(|r| p.block(r)).collect();
    let ch = p.channel(blocks[0], &blocks[1..]);
    p.step(blocks[0], &[local(input, 0)], &[local(output, 0), put(ch)]).width(2);
    p.step(blocks[0], &[local(input, 2)], &[put(ch), local(output, 2)]);
    for &b in &blocks[1..] {
        p.step(b, &[get(ch)], &[local(output, 0)]).width(2);
        p.step(b, &[get(ch)], &[local(output, 2)]);
    }
    for r in 0..n {
        p.promise((output, r, 0), &[(input, 0, 0)]);
    }
    verified(p)
}

/// Alltoall with one wide step for each pair, blocks of five cells.
pub(crate) fn alltoall(n: u32) -> VerifiedPlan {
    let mut p = PlanBuilder::new("direct", "alltoall", &[n]);
    p.header().cells = 5;
    let input = p.buffer("input", Role::Send, n);
    let output = p.buffer("output", Role::Recv, n);
    let blocks: Vec<_> = (0..n).map(|r| p.block(r)).collect();
    let mut channels = Vec::new();
    for from in 0..n {
        for to in 0..n {
            let pair = [from, to].map(|r| blocks[r as usize]);
            channels.push((from != to).then(|| p.channel(pair[0], &pair[1..])));
        }
    }
    for r in 0..n {
        let b = blocks[r as usize];
        p.step(b, &[local(input, 5 * r)], &[local(output, 5 * r)]).width(5);
        for other in (0..n).filter(|&other| other != r) {
            let ch = channels[(r * n + other) as usize].unwrap();
            p.step(b, &[local(input, 5 * other)], &[put(ch)]).width(5);
        }
        for other in (0..n).filter(|&other| other != r) {
            let ch = channels[(other * n + r) as usize].unwrap();
            p.step(b, &[get(ch)], &[local(output, 5 * other)]).width(5);
            p.promise((output, r, other), &[(input, other, r)]);
        }
        p.promise((output, r, r), &[(input, r, r)]);
    }
    verified(p)
}

/// Reduce to rank 0, which folds all operands in one step, in rank order; `each`: it rounds after each.
pub(crate) fn fold_at_root(n: u32, each: bool) -> VerifiedPlan {
    let mut p = PlanBuilder::new("fold", "reduce", &[n]);
    p.header().cells = 2;
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer_at("output", Role::Recv, 1, 0);
    let blocks: Vec<_> = (0..n).map(|r| p.block(r)).collect();
    p.overlap(0, (input, 0), (output, 0), 2);
    let channels: Vec<_> = (1..n).map(|r| p.channel(blocks[r as usize], &blocks[..1])).collect();
    for (r, &ch) in (1..n).zip(&channels) {
        p.step(blocks[r as usize], &[local(input, 0)], &[put(ch)]).width(2);
    }
    let sources: Vec<_> =
        std::iter::once(local(input, 0)).chain(channels.iter().map(|&ch| get(ch))).collect();
    let step = p.step(blocks[0], &sources, &[local(output, 0)]).width(2).post().pre(Pre((1 << n) - 1));
    if each {
        step.round_each();
    }
    p.promise((output, 0, 0), &(0..n).map(|r| (input, r, 0)).collect::<Vec<_>>());
    verified(p)
}

/// Rank 0 receives into scratch in one block, and adds from there in another, which waits for it; rank 1 relays what it
/// gets from rank 2 through scratch, so that only the value itself says how long it is. Four ranks: 3 sends to 2.
pub(crate) fn scratch_and_waits() -> VerifiedPlan {
    let mut p = PlanBuilder::new("relay", "reduce", &[4]);
    p.header().cells = 3;
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer_at("output", Role::Recv, 1, 0);
    let scratch = p.scratch(3);
    let (receiver, adder) = (p.block(0), p.block(0));
    let blocks: Vec<_> = (1..4).map(|r| p.block(r)).collect();
    let chain = [
        p.channel(blocks[0], &[receiver]),
        p.channel(blocks[1], &blocks[..1]),
        p.channel(blocks[2], &blocks[1..2]),
    ];
    // Cells go in an order of their own, into other scratch cells.
    for (i, cell) in [2, 0, 1].into_iter().enumerate() {
        let i = i as u32;
        p.step(blocks[2], &[local(input, cell)], &[put(chain[2])]);
        p.step(blocks[1], &[local(input, cell), get(chain[2])], &[local(scratch, i)]).pre(Pre(3));
        p.step(blocks[1], &[local(scratch, i)], &[put(chain[1])]);
        p.step(blocks[0], &[get(chain[1])], &[local(scratch, 2 - i)]);
        p.step(blocks[0], &[local(input, cell), local(scratch, 2 - i)], &[put(chain[0])]).pre(Pre(1));
        let ready = p.step(receiver, &[get(chain[0])], &[local(scratch, i)]).handle();
        p.step(adder, &[local(scratch, i), local(input, cell)], &[local(output, cell)])
            .wait(ready)
            .post()
            .pre(Pre(2));
    }
    p.promise((output, 0, 0), &(0..4).map(|r| (input, r, 0)).collect::<Vec<_>>());
    verified(p)
}

/// A barrier of tokens alone: in round i every rank tells the one 2^i further on. Some of it in each section.
pub(crate) fn barrier(n: u32) -> VerifiedPlan {
    let mut p = PlanBuilder::new("dissemination", "barrier", &[n]);
    let blocks: Vec<_> = (0..n).map(|r| p.block(r)).collect();
    let mut distance = 1;
    let mut sections = [Section::Prologue, Section::Body, Section::Epilogue].into_iter().cycle();
    // Rounds are independent of where they stand, as long as sections come in their order.
    let mut rounds: Vec<(Section, u32)> = Vec::new();
    while distance < n {
        rounds.push((sections.next().unwrap(), distance));
        distance *= 2;
    }
    for (section, distance) in rounds {
        let to: Vec<_> =
            (0..n).map(|r| p.counter(blocks[r as usize], &[blocks[((r + distance) % n) as usize]])).collect();
        for r in 0..n {
            let from = to[((r + n - distance) % n) as usize];
            p.step_in(section, blocks[r as usize], &[], &[put(to[r as usize])])
                .line(4, "signal @ r + d = signal @ r");
            p.step_in(section, blocks[r as usize], &[get(from)], &[]).line(4, "signal @ r + d = signal @ r");
        }
    }
    p.promise_synchronised();
    verified(p)
}

/// All that reach into peers' memory, of `n` ranks.
pub(crate) fn all_direct(n: u32) -> Vec<VerifiedPlan> {
    direct::all(n).into_iter().map(|(_, plan)| proved(plan)).collect()
}

/// All of many blocks, of about `n` ranks.
pub(crate) fn all_blocks(n: u32) -> Vec<VerifiedPlan> {
    blocks::all(n).into_iter().map(|(_, plan)| proved(plan)).collect()
}

fn verified(builder: PlanBuilder) -> VerifiedPlan {
    proved(builder.finish().unwrap().plan)
}

/// The plan, with the k_min that it needs.
pub(crate) fn proved(mut plan: Plan) -> VerifiedPlan {
    plan.header.k_min = least_slots(&plan, &Limits::default()).unwrap();
    verify(plan, &Limits::default()).unwrap_or_else(|violations| panic!("{}", violations[0]))
}
