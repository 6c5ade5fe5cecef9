//! Right plans of every kind that the plan can express, small enough to explore.

use rcc_plan::builder::{PlanBuilder, get, local, peer, put};
use rcc_plan::ids::BufferId;
use rcc_plan::plan::{Forms, Plan, Role, Section};
use rcc_plan::pre::Pre;

/// All of them that have at most 4 ranks and 40 events, with names.
pub(crate) fn small() -> Vec<(&'static str, Plan)> {
    vec![
        ("ring allreduce, fused, 2 ranks", ring_allreduce(2)),
        ("ring allreduce, fused, 3 ranks", ring_allreduce(3)),
        ("ring allreduce, fused, 4 ranks", ring_allreduce(4)),
        ("ring allreduce, plain steps, 3 ranks", ring_plain(3)),
        ("exchange, two blocks and a wait", exchange(2)),
        ("exchange of two cells, width 2", exchange(1)),
        ("allgather by multicast", multicast_allgather(3)),
        ("broadcast along a chain, two blocks", two_block_chain()),
        ("put with tokens", peer_put()),
        ("get with tokens", peer_get()),
        ("reduce with many operands", many_operand_reduce(4)),
        ("reduce with rounding each", rounding_reduce()),
        ("alltoall, direct", alltoall(3)),
        ("barrier, dissemination", barrier(4)),
        ("reduce-scatter through scratch", scratch_reduce_scatter()),
        ("put, then notified through data", put_then_data()),
        ("ring allreduce, width 2", ring_wide(2)),
        ("scratch handed between blocks", handed_scratch()),
        ("one value, three blocks", diamond()),
        ("one cell written twice by a peer", peer_twice()),
        ("allgather by put", peer_allgather(3)),
    ]
}

/// An `inout` buffer of one block: its two sides, one memory in place, everywhere.
fn inout(p: &mut PlanBuilder, ranks: u32, cells: u32) -> (BufferId, BufferId) {
    p.header().cells = cells;
    let entry = p.buffer("data", Role::Send, 1);
    let exit = p.buffer("data", Role::Recv, 1);
    for rank in 0..ranks {
        p.overlap(rank, (entry, 0), (exit, 0), cells);
    }
    (entry, exit)
}

fn promise_allreduce(p: &mut PlanBuilder, ranks: u32, entry: BufferId, exit: BufferId) {
    let all: Vec<_> = (0..ranks).map(|rank| (entry, rank, 0)).collect();
    for rank in 0..ranks {
        p.promise((exit, rank, 0), &all);
    }
}

/// Receive, reduce and send in one step: needs two slots.
pub(crate) fn ring_allreduce(n: u32) -> Plan {
    let mut p = PlanBuilder::new("ring", "allreduce", &[n]);
    let (entry, exit) = inout(&mut p, n, n);
    p.header().k_min = 2;
    let blocks: Vec<_> = (0..n).map(|rank| p.block(rank)).collect();
    let channels: Vec<_> =
        (0..n).map(|r| p.channel(blocks[r as usize], &[blocks[((r + 1) % n) as usize]])).collect();
    for r in 0..n {
        let block = blocks[r as usize];
        let (to, from) = (channels[r as usize], channels[((r + n - 1) % n) as usize]);
        let chunk = |s: u32| (r + 2 * n - s) % n;
        p.step(block, &[local(entry, chunk(0))], &[put(to)]).line(3, "send");
        for s in 1..n - 1 {
            p.step(block, &[get(from), local(entry, chunk(s))], &[put(to)]).pre(in_ring(s)).line(4, "reduce");
        }
        let own = chunk(n - 1);
        p.step(block, &[get(from), local(entry, own)], &[local(exit, own), put(to)])
            .post()
            .pre(in_ring(n - 1))
            .line(5, "last");
        for s in n..2 * n - 2 {
            p.step(block, &[get(from)], &[local(exit, chunk(s)), put(to)]).line(7, "pass on");
        }
        p.step(block, &[get(from)], &[local(exit, chunk(2 * n - 2))]).line(8, "end");
    }
    promise_allreduce(&mut p, n, entry, exit);
    p.finish().unwrap().plan
}

/// What comes in step `s` of a ring is an entry value in the first only.
pub(crate) fn in_ring(s: u32) -> Pre {
    Pre(if s == 1 { 3 } else { 2 })
}

/// The same in single steps through scratch, so that one slot is enough.
pub(crate) fn ring_plain(n: u32) -> Plan {
    let mut p = PlanBuilder::new("ring_plain", "allreduce", &[n]);
    let (entry, exit) = inout(&mut p, n, n);
    let scratch = p.scratch(n - 1);
    let blocks: Vec<_> = (0..n).map(|rank| p.block(rank)).collect();
    let channels: Vec<_> =
        (0..n).map(|r| p.channel(blocks[r as usize], &[blocks[((r + 1) % n) as usize]])).collect();
    for r in 0..n {
        let block = blocks[r as usize];
        let (to, from) = (channels[r as usize], channels[((r + n - 1) % n) as usize]);
        let chunk = |s: u32| (r + 2 * n - s) % n;
        p.step(block, &[local(entry, chunk(0))], &[put(to)]);
        for s in 1..n {
            let (last, cell) = (s == n - 1, chunk(s));
            let result = if last { local(exit, cell) } else { local(scratch, s - 1) };
            let step = p.step(block, &[get(from), local(entry, cell)], &[result]).pre(in_ring(s));
            if last {
                step.post();
            }
            p.step(block, &[result], &[put(to)]);
        }
        for s in n..2 * n - 1 {
            p.step(block, &[get(from)], &[local(exit, chunk(s))]);
            if s < 2 * n - 2 {
                p.step(block, &[local(exit, chunk(s))], &[put(to)]);
            }
        }
    }
    promise_allreduce(&mut p, n, entry, exit);
    p.finish().unwrap().plan
}

/// Two ranks swap and add. With two blocks per rank the one that adds must wait until the other has sent, since in
/// place it overwrites what is sent. With one block, two cells in steps of width 2.
pub(crate) fn exchange(blocks_per_rank: u32) -> Plan {
    let mut p = PlanBuilder::new("exchange", "allreduce", &[2]);
    let cells = if blocks_per_rank == 1 { 2 } else { 1 };
    let (entry, exit) = inout(&mut p, 2, cells);
    p.header().k_min = cells;
    let send: Vec<_> = (0..2).map(|rank| p.block(rank)).collect();
    let add = if blocks_per_rank == 1 { send.clone() } else { (0..2).map(|rank| p.block(rank)).collect() };
    let channels: Vec<_> = (0..2).map(|r| p.channel(send[r], &[add[1 - r]])).collect();
    for r in 0..2 {
        let sent = p.step(send[r], &[local(entry, 0)], &[put(channels[r])]).width(cells).handle();
        // Operands in rank order, so that both ranks get the same bits.
        let mut operands = [local(entry, 0), get(channels[1 - r])];
        operands.rotate_left(r);
        let step = p.step(add[r], &operands, &[local(exit, 0)]).width(cells).post().pre(Pre(3));
        if blocks_per_rank > 1 {
            step.wait(sent);
        }
    }
    promise_allreduce(&mut p, 2, entry, exit);
    p.finish().unwrap().plan
}

/// Every rank sends its block to all others through one channel.
pub(crate) fn multicast_allgather(n: u32) -> Plan {
    let mut p = PlanBuilder::new("multicast", "allgather", &[n]);
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, n);
    for rank in 0..n {
        p.overlap(rank, (input, 0), (output, rank), 1);
    }
    let blocks: Vec<_> = (0..n).map(|rank| p.block(rank)).collect();
    let channels: Vec<_> = (0..n)
        .map(|r| {
            let others: Vec<_> = (0..n).filter(|&o| o != r).map(|o| blocks[o as usize]).collect();
            p.channel(blocks[r as usize], &others)
        })
        .collect();
    for r in 0..n {
        let block = blocks[r as usize];
        p.step(block, &[local(input, 0)], &[local(output, r), put(channels[r as usize])]);
        for from in (0..n).filter(|&o| o != r) {
            p.step(block, &[get(channels[from as usize])], &[local(output, from)]);
        }
        for from in 0..n {
            p.promise((output, r, from), &[(input, from, 0)]);
        }
    }
    p.finish().unwrap().plan
}

/// Rank 1 receives in one block and passes on in another.
pub(crate) fn two_block_chain() -> Plan {
    let mut p = PlanBuilder::new("chain", "broadcast", &[3]);
    p.header().cells = 2;
    let input = p.buffer_at("input", Role::Send, 1, 0);
    let output = p.buffer("output", Role::Recv, 1);
    let [b0, b1, pass, b2] = [0, 1, 1, 2].map(|rank| p.block(rank));
    let (first, second) = (p.channel(b0, &[b1]), p.channel(pass, &[b2]));
    for cell in 0..2 {
        p.step(b0, &[local(input, cell)], &[local(output, cell), put(first)]);
        let got = p.step(b1, &[get(first)], &[local(output, cell)]).handle();
        p.step(pass, &[local(output, cell)], &[put(second)]).wait(got);
        p.step(b2, &[get(second)], &[local(output, cell)]);
    }
    for rank in 0..3 {
        p.promise((output, rank, 0), &[(input, 0, 0)]);
    }
    p.finish().unwrap().plan
}

/// Rank 1 writes into rank 0, between READY and DONE; rank 0 then passes it on within itself.
pub(crate) fn peer_put() -> Plan {
    let mut p = PlanBuilder::new("put", "custom", &[2]);
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, 1);
    let (b0, b1) = (p.block(0), p.block(1));
    let (ready, done) = (p.counter(b0, &[b1]), p.counter(b1, &[b0]));
    p.step_in(Section::Prologue, b0, &[], &[put(ready)]);
    let got_ready = p.step_in(Section::Prologue, b1, &[get(ready)], &[]).handle();
    let write = p.step(b1, &[local(input, 0)], &[peer(0, output, 0)]).handle();
    p.step(b1, &[local(input, 0)], &[local(output, 0)]);
    let sent_done = p.step_in(Section::Epilogue, b1, &[], &[put(done)]).handle();
    p.step_in(Section::Epilogue, b0, &[get(done)], &[]);
    p.witness(write, 0, got_ready, sent_done);
    p.promise((output, 0, 0), &[(input, 1, 0)]);
    p.promise((output, 1, 0), &[(input, 1, 0)]);
    p.finish().unwrap().plan
}

/// Rank 1 reads from rank 0, which adds up only when it is told that the reading is done.
pub(crate) fn peer_get() -> Plan {
    let mut p = PlanBuilder::new("get", "custom", &[2]);
    let (entry, exit) = inout(&mut p, 2, 1);
    let (b0, b1) = (p.block(0), p.block(1));
    let (ready, done) = (p.counter(b0, &[b1]), p.counter(b1, &[b0]));
    let data = p.channel(b1, &[b0]);
    p.step(b0, &[], &[put(ready)]);
    p.step(b1, &[local(entry, 0)], &[put(data)]);
    let got_ready = p.step(b1, &[get(ready)], &[]).handle();
    let read = p.step(b1, &[peer(0, entry, 0), local(entry, 0)], &[local(exit, 0)]).post().handle();
    let sent_done = p.step(b1, &[], &[put(done)]).handle();
    p.step(b0, &[get(done)], &[]);
    p.step(b0, &[local(entry, 0), get(data)], &[local(exit, 0)]).post();
    p.witness(read, 0, got_ready, sent_done);
    promise_allreduce(&mut p, 2, entry, exit);
    p.finish().unwrap().plan
}

/// Rank 0 folds everyone's block in one step.
pub(crate) fn many_operand_reduce(n: u32) -> Plan {
    let mut p = PlanBuilder::new("fold", "reduce", &[n]);
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer_at("output", Role::Recv, 1, 0);
    let blocks: Vec<_> = (0..n).map(|rank| p.block(rank)).collect();
    let mut operands = vec![local(input, 0)];
    for &block in &blocks[1..] {
        let channel = p.channel(block, &[blocks[0]]);
        p.step(block, &[local(input, 0)], &[put(channel)]);
        operands.push(get(channel));
    }
    let all = if n > 1 { Pre::of(operands.iter().map(|_| true)).unwrap() } else { Pre::NONE };
    p.step(blocks[0], &operands, &[local(output, 0)]).post().pre(all);
    let all: Vec<_> = (0..n).map(|rank| (input, rank, 0)).collect();
    p.promise((output, 0, 0), &all);
    p.finish().unwrap().plan
}

/// Several `+=` as one step.
pub(crate) fn rounding_reduce() -> Plan {
    let mut p = PlanBuilder::new("rounding", "reduce", &[3]);
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer_at("output", Role::Recv, 1, 2);
    let blocks = [0, 1, 2].map(|rank| p.block(rank));
    let channels = [0, 1].map(|r| p.channel(blocks[r], &[blocks[2]]));
    for r in 0..2 {
        p.step(blocks[r], &[local(input, 0)], &[put(channels[r])]);
    }
    p.step(blocks[2], &[local(input, 0), get(channels[0]), get(channels[1])], &[local(output, 0)])
        .round_each()
        .post()
        .pre(Pre(7));
    p.promise((output, 2, 0), &[(input, 0, 0), (input, 1, 0), (input, 2, 0)]);
    p.finish().unwrap().plan
}

/// Each pair of ranks has a channel each way.
pub(crate) fn alltoall(n: u32) -> Plan {
    let mut p = PlanBuilder::new("direct", "alltoall", &[n]);
    let input = p.buffer("input", Role::Send, n);
    let output = p.buffer("output", Role::Recv, n);
    let blocks: Vec<_> = (0..n).map(|rank| p.block(rank)).collect();
    let mut channels = Vec::new();
    for from in 0..n {
        p.step(blocks[from as usize], &[local(input, from)], &[local(output, from)]);
        for to in (0..n).filter(|&to| to != from) {
            let channel = p.channel(blocks[from as usize], &[blocks[to as usize]]);
            p.step(blocks[from as usize], &[local(input, to)], &[put(channel)]);
            channels.push((from, to, channel));
        }
    }
    for (from, to, channel) in channels {
        p.step(blocks[to as usize], &[get(channel)], &[local(output, from)]);
    }
    for rank in 0..n {
        for block in 0..n {
            p.promise((output, rank, block), &[(input, block, rank)]);
        }
    }
    p.finish().unwrap().plan
}

/// Tokens to the ranks 1, 2, 4 … further on.
pub(crate) fn barrier(n: u32) -> Plan {
    let mut p = PlanBuilder::new("dissemination", "barrier", &[n]);
    let blocks: Vec<_> = (0..n).map(|rank| p.block(rank)).collect();
    let mut distance = 1;
    while distance < n {
        let channels: Vec<_> =
            (0..n).map(|r| p.counter(blocks[r as usize], &[blocks[((r + distance) % n) as usize]])).collect();
        for r in 0..n {
            p.step(blocks[r as usize], &[], &[put(channels[r as usize])]);
            p.step(blocks[r as usize], &[get(channels[((r + n - distance) % n) as usize])], &[]);
        }
        distance *= 2;
    }
    p.promise_synchronised();
    p.header().forms = Forms { disjoint: true, same: false };
    p.finish().unwrap().plan
}

/// Three ranks; each block is summed at its owner by way of scratch, where values of both positions share cells.
pub(crate) fn scratch_reduce_scatter() -> Plan {
    let mut p = PlanBuilder::new("scratch", "reducescatter", &[3]);
    p.header().cells = 2;
    let input = p.buffer("input", Role::Send, 3);
    let output = p.buffer("output", Role::Recv, 1);
    let scratch = p.scratch(1);
    let blocks = [0, 1, 2].map(|rank| p.block(rank));
    let channels = [0, 1, 2].map(|r: usize| p.channel(blocks[r], &[blocks[(r + 1) % 3]]));
    for cell in 0..2 {
        for r in 0..3u32 {
            let (block, to, from) =
                (blocks[r as usize], channels[r as usize], channels[((r + 2) % 3) as usize]);
            let of = |owner: u32| local(input, owner % 3 * 2 + cell);
            p.step(block, &[of(r + 2)], &[put(to)]);
            p.step(block, &[get(from), of(r + 1)], &[local(scratch, 0)]);
            p.step(block, &[local(scratch, 0)], &[put(to)]);
            p.step(block, &[get(from)], &[local(scratch, 0)]);
            p.step(block, &[local(scratch, 0), of(r)], &[local(output, cell)]).post();
        }
    }
    for rank in 0..3 {
        let all = [0, 1, 2].map(|r| (input, r, rank));
        p.promise((output, rank, 0), &all);
    }
    p.finish().unwrap().plan
}

/// Rank 1 writes to rank 0, which passes the value on to rank 2 as soon as a token says that it is there.
pub(crate) fn put_then_data() -> Plan {
    let mut p = PlanBuilder::new("relay", "custom", &[3]);
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, 1);
    let blocks = [0, 1, 2].map(|rank| p.block(rank));
    let (ready, done) = (p.counter(blocks[0], &[blocks[1]]), p.counter(blocks[1], &[blocks[0]]));
    let data = p.channel(blocks[0], &[blocks[2]]);
    p.step_in(Section::Prologue, blocks[0], &[], &[put(ready)]);
    let got_ready = p.step_in(Section::Prologue, blocks[1], &[get(ready)], &[]).handle();
    let write = p.step(blocks[1], &[local(input, 0)], &[peer(0, output, 0)]).handle();
    let sent_done = p.step(blocks[1], &[], &[put(done)]).handle();
    p.step(blocks[0], &[get(done)], &[]);
    p.step(blocks[0], &[local(output, 0), local(input, 0)], &[put(data)]).post();
    p.step(blocks[2], &[get(data)], &[local(output, 0)]);
    p.witness(write, 0, got_ready, sent_done);
    p.promise((output, 0, 0), &[(input, 1, 0)]);
    p.promise((output, 2, 0), &[(input, 0, 0), (input, 1, 0)]);
    p.finish().unwrap().plan
}

/// Reduce-scatter, then allgather, in runs of two cells.
pub(crate) fn ring_wide(n: u32) -> Plan {
    let mut p = PlanBuilder::new("ring_wide", "allreduce", &[n]);
    let (entry, exit) = inout(&mut p, n, 2 * n);
    p.header().k_min = 2;
    let blocks: Vec<_> = (0..n).map(|rank| p.block(rank)).collect();
    let channels: Vec<_> =
        (0..n).map(|r| p.channel(blocks[r as usize], &[blocks[((r + 1) % n) as usize]])).collect();
    for r in 0..n {
        let block = blocks[r as usize];
        let (to, from) = (channels[r as usize], channels[((r + n - 1) % n) as usize]);
        let chunk = |s: u32| (r + 2 * n - s) % n * 2;
        p.step(block, &[local(entry, chunk(0))], &[put(to)]).width(2);
        for s in 1..n {
            let result = if s == n - 1 { local(exit, chunk(s)) } else { put(to) };
            let step = p.step(block, &[get(from), local(entry, chunk(s))], &[result]).width(2);
            if s == n - 1 {
                step.post();
            }
        }
        p.step(block, &[local(exit, chunk(n - 1))], &[put(to)]).width(2);
        for s in n..2 * n - 1 {
            let (to, cell) = (put(to), local(exit, chunk(s)));
            let both = [cell, to];
            p.step(block, &[get(from)], if s == 2 * n - 2 { &both[..1] } else { &both }).width(2);
        }
    }
    promise_allreduce(&mut p, n, entry, exit);
    p.finish().unwrap().plan
}

/// Rank 1 receives two values into one scratch cell in one block, and adds them up in another: each waits for the other.
pub(crate) fn handed_scratch() -> Plan {
    let mut p = PlanBuilder::new("handed", "custom", &[2]);
    let input = p.buffer("input", Role::Send, 2);
    let output = p.buffer("output", Role::Recv, 2);
    let scratch = p.scratch(1);
    let [send, receive, add] = [0, 1, 1].map(|rank| p.block(rank));
    let channel = p.channel(send, &[receive]);
    p.step(send, &[local(input, 0)], &[put(channel)]);
    p.step(send, &[local(input, 1)], &[put(channel)]);
    let mut last = None;
    for block in 0..2 {
        let mut step = p.step(receive, &[get(channel)], &[local(scratch, 0)]);
        if let Some(last) = last {
            step = step.wait(last);
        }
        let received = step.handle();
        let sum = p.step(add, &[local(scratch, 0), local(input, block)], &[local(output, block)]);
        last = Some(sum.wait(received).post().handle());
        p.promise((output, 1, block), &[(input, 0, block), (input, 1, block)]);
    }
    p.finish().unwrap().plan
}

/// Rank 1 receives a value that two further blocks read, one to keep and one to pass on; only then comes the next.
pub(crate) fn diamond() -> Plan {
    let mut p = PlanBuilder::new("diamond", "broadcast", &[3]);
    p.header().cells = 2;
    let input = p.buffer_at("input", Role::Send, 1, 0);
    let output = p.buffer("output", Role::Recv, 1);
    let scratch = p.scratch(1);
    let [root, receive, keep, pass, leaf] = [0, 1, 1, 1, 2].map(|rank| p.block(rank));
    let (first, second) = (p.channel(root, &[receive]), p.channel(pass, &[leaf]));
    let mut readers = Vec::new();
    for cell in 0..2 {
        p.step(root, &[local(input, cell)], &[local(output, cell), put(first)]);
        let mut step = p.step(receive, &[get(first)], &[local(scratch, 0)]);
        for reader in readers.drain(..) {
            step = step.wait(reader);
        }
        let received = step.handle();
        readers.push(p.step(keep, &[local(scratch, 0)], &[local(output, cell)]).wait(received).handle());
        readers.push(p.step(pass, &[local(scratch, 0)], &[put(second)]).wait(received).handle());
        p.step(leaf, &[get(second)], &[local(output, cell)]);
    }
    for rank in 0..3 {
        p.promise((output, rank, 0), &[(input, 0, 0)]);
    }
    p.finish().unwrap().plan
}

/// Rank 1 writes twice into the same cell of rank 0, each time between READY and DONE; rank 0 saves the first value.
pub(crate) fn peer_twice() -> Plan {
    let mut p = PlanBuilder::new("mailbox", "custom", &[2]);
    let input = p.buffer("input", Role::Send, 2);
    let output = p.buffer("output", Role::Recv, 2);
    let (b0, b1) = (p.block(0), p.block(1));
    let (ready, done) = (p.counter(b0, &[b1]), p.counter(b1, &[b0]));
    for block in 0..2 {
        p.step(b0, &[], &[put(ready)]);
        let got_ready = p.step(b1, &[get(ready)], &[]).handle();
        let write = p.step(b1, &[local(input, block)], &[peer(0, output, 0)]).handle();
        let sent_done = p.step(b1, &[], &[put(done)]).handle();
        p.step(b0, &[get(done)], &[]);
        if block == 0 {
            p.step(b0, &[local(output, 0)], &[local(output, 1)]);
        }
        p.witness(write, 0, got_ready, sent_done);
        p.promise((output, 0, 1 - block), &[(input, 1, block)]);
    }
    p.finish().unwrap().plan
}

/// Every rank writes its block into all others; one token channel tells all that a rank is ready.
pub(crate) fn peer_allgather(n: u32) -> Plan {
    let mut p = PlanBuilder::new("all_put", "allgather", &[n]);
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, n);
    let blocks: Vec<_> = (0..n).map(|rank| p.block(rank)).collect();
    let others = |r: u32| (0..n).filter(move |&o| o != r);
    let all = |r: u32| others(r).map(|o| blocks[o as usize]).collect::<Vec<_>>();
    let ready: Vec<_> = (0..n).map(|r| p.counter(blocks[r as usize], &all(r))).collect();
    let done: Vec<_> = (0..n).map(|r| p.counter(blocks[r as usize], &all(r))).collect();
    let mut fences = Vec::new();
    for r in 0..n {
        let block = blocks[r as usize];
        p.step_in(Section::Prologue, block, &[], &[put(ready[r as usize])]);
        let got: Vec<_> = others(r).map(|o| get(ready[o as usize])).collect();
        let got_ready = p.step_in(Section::Prologue, block, &got, &[]).handle();
        let everywhere: Vec<_> =
            (0..n).map(|o| if o == r { local(output, r) } else { peer(o, output, r) }).collect();
        let write = p.step(block, &[local(input, 0)], &everywhere).handle();
        let sent_done = p.step_in(Section::Epilogue, block, &[], &[put(done[r as usize])]).handle();
        let got: Vec<_> = others(r).map(|o| get(done[o as usize])).collect();
        p.step_in(Section::Epilogue, block, &got, &[]);
        fences.extend(others(r).map(|o| (write, o, got_ready, sent_done)));
        for from in 0..n {
            p.promise((output, r, from), &[(input, from, 0)]);
        }
    }
    for (write, owner, ready, done) in fences {
        p.witness(write, owner, ready, done);
    }
    p.finish().unwrap().plan
}
