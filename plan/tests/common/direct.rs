//! Right plans in which ranks reach into each other's memory.
//!
//! Each shows one shape of READY, access and DONE: per call or per slice, one peer or many, read or written, in place
//! or not. Shared with the tests of executors.

use rcc_plan::builder::{BlockHandle, PlanBuilder, StepHandle, get, local, peer, put};
use rcc_plan::ids::{BufferId, ChannelId};
use rcc_plan::plan::{Operand, Plan, Role, Section};
use rcc_plan::pre::Pre;

/// All of them for `n` ranks, with names.
pub(crate) fn all(n: u32) -> Vec<(String, Plan)> {
    let plans = [
        ("broadcast, pulled", pull_broadcast(n)),
        ("broadcast along a chain, pulled slice by slice", pull_chain(n)),
        ("allgather, pushed", push_allgather(n)),
        ("allgather, pulled", pull_allgather(n, false)),
        ("allgather, pulled in place", pull_allgather(n, true)),
        ("alltoall, pushed", push_alltoall(n)),
        ("alltoall, pulled in a block for each peer", pull_alltoall(n)),
        ("gather, pushed to the root", push_gather(n)),
        ("allreduce, one shot", one_shot(n, false)),
        ("allreduce, one shot, rounding each", one_shot(n, true)),
        ("allreduce, one shot, in place", one_shot_in_place(n)),
        ("allreduce, each rank folds its part for all", owner_folds(n)),
        ("allreduce, ring, pulled", pull_ring(n)),
        ("reduce-scatter, pulled, wide", pull_reduce_scatter(n)),
    ];
    plans.into_iter().map(|(name, plan)| (format!("{name}, {n} ranks"), plan)).collect()
}

fn others(n: u32, r: u32) -> impl Iterator<Item = u32> {
    (0..n).filter(move |&o| o != r)
}

/// READY from every rank to all others, DONE likewise: one token each, in prologue and epilogue of one block per rank.
struct Fenced {
    p: PlanBuilder,
    n: u32,
    blocks: Vec<BlockHandle>,
    got_ready: Vec<StepHandle>,
    accesses: Vec<(u32, StepHandle, u32)>,
    done: Vec<ChannelId>,
}

impl Fenced {
    fn new(mut p: PlanBuilder, n: u32) -> Fenced {
        let blocks: Vec<_> = (0..n).map(|rank| p.block(rank)).collect();
        let mut all = |r: u32| {
            let readers: Vec<_> = others(n, r).map(|o| blocks[o as usize]).collect();
            p.counter(blocks[r as usize], &readers)
        };
        let ready: Vec<_> = (0..n).map(&mut all).collect();
        let done: Vec<_> = (0..n).map(&mut all).collect();
        let mut got_ready = Vec::new();
        for r in 0..n {
            let block = blocks[r as usize];
            p.step_in(Section::Prologue, block, &[], &[put(ready[r as usize])]).line(1, "READY");
            let tokens: Vec<_> = others(n, r).map(|o| get(ready[o as usize])).collect();
            got_ready.push(p.step_in(Section::Prologue, block, &tokens, &[]).line(1, "READY").handle());
        }
        Fenced { p, n, blocks, got_ready, accesses: Vec::new(), done }
    }

    /// A step of `r`; every peer that it names is noted.
    fn step(&mut self, r: u32, src: &[Operand], dst: &[Operand], width: u32) -> StepHandle {
        let step = self.p.step(self.blocks[r as usize], src, dst).width(width).line(2, "access").handle();
        let mut owners: Vec<u32> = src
            .iter()
            .chain(dst)
            .filter_map(|o| match o {
                Operand::Peer { rank, .. } => Some(rank.0),
                _ => None,
            })
            .collect();
        owners.sort_unstable();
        owners.dedup();
        self.accesses.extend(owners.into_iter().map(|owner| (r, step, owner)));
        step
    }

    fn finish(mut self) -> Plan {
        let mut sent = Vec::new();
        for r in 0..self.n {
            let block = self.blocks[r as usize];
            let done = &self.done;
            sent.push(
                self.p
                    .step_in(Section::Epilogue, block, &[], &[put(done[r as usize])])
                    .line(3, "DONE")
                    .handle(),
            );
            let tokens: Vec<_> = others(self.n, r).map(|o| get(done[o as usize])).collect();
            self.p.step_in(Section::Epilogue, block, &tokens, &[]).line(3, "DONE");
        }
        for (r, step, owner) in self.accesses {
            self.p.witness(step, owner, self.got_ready[r as usize], sent[r as usize]);
        }
        self.p.finish().unwrap().plan
    }
}

fn here_or_there(r: u32, owner: u32, buffer: BufferId, cell: u32) -> Operand {
    if r == owner { local(buffer, cell) } else { peer(owner, buffer, cell) }
}

/// The root says READY to all at once; each reads the root's input and tells when it has.
pub(crate) fn pull_broadcast(n: u32) -> Plan {
    let mut p = PlanBuilder::new("pull_broadcast", "broadcast", &[n]);
    p.header().cells = 3;
    let input = p.buffer_at("input", Role::Send, 1, 0);
    let output = p.buffer("output", Role::Recv, 1);
    let blocks: Vec<_> = (0..n).map(|rank| p.block(rank)).collect();
    let ready = p.counter(blocks[0], &blocks[1..]);
    p.step_in(Section::Prologue, blocks[0], &[], &[put(ready)]);
    p.step(blocks[0], &[local(input, 0)], &[local(output, 0)]).width(3);
    let mut tokens = Vec::new();
    for r in 1..n {
        let block = blocks[r as usize];
        let done = p.counter(block, &blocks[..1]);
        let got = p.step_in(Section::Prologue, block, &[get(ready)], &[]).handle();
        let read = p.step(block, &[peer(0, input, 0)], &[local(output, 0)]).width(3).handle();
        let sent = p.step_in(Section::Epilogue, block, &[], &[put(done)]).handle();
        p.witness(read, 0, got, sent);
        tokens.push(get(done));
    }
    p.step_in(Section::Epilogue, blocks[0], &tokens, &[]);
    for r in 0..n {
        p.promise((output, r, 0), &[(input, 0, 0)]);
    }
    p.finish().unwrap().plan
}

/// Each rank reads from the one before it, slice by slice, as soon as a token says that the slice is there; DONE comes
/// once, at the end.
pub(crate) fn pull_chain(n: u32) -> Plan {
    let mut p = PlanBuilder::new("pull_chain", "broadcast", &[n]);
    let input = p.buffer_at("input", Role::Send, 1, 0);
    let output = p.buffer("output", Role::Recv, 1);
    p.overlap(0, (input, 0), (output, 0), 1);
    let blocks: Vec<_> = (0..n).map(|rank| p.block(rank)).collect();
    let links: Vec<_> = (1..n as usize)
        .map(|r| (p.counter(blocks[r - 1], &[blocks[r]]), p.counter(blocks[r], &[blocks[r - 1]])))
        .collect();
    for r in 0..n as usize {
        let mut fence = None;
        if r == 0 {
            p.step(blocks[0], &[local(input, 0)], &[local(output, 0)]);
        } else {
            let got = p.step(blocks[r], &[get(links[r - 1].0)], &[]).handle();
            let read = p.step(blocks[r], &[peer(r as u32 - 1, output, 0)], &[local(output, 0)]).handle();
            fence = Some((got, read));
        }
        if let Some((ready, _)) = links.get(r) {
            p.step(blocks[r], &[], &[put(*ready)]);
        }
        if let Some((got, read)) = fence {
            let sent = p.step_in(Section::Epilogue, blocks[r], &[], &[put(links[r - 1].1)]).handle();
            p.witness(read, r as u32 - 1, got, sent);
        }
        if let Some((_, done)) = links.get(r) {
            p.step_in(Section::Epilogue, blocks[r], &[get(*done)], &[]);
        }
        p.promise((output, r as u32, 0), &[(input, 0, 0)]);
    }
    p.finish().unwrap().plan
}

fn promise_allgather(p: &mut PlanBuilder, n: u32, input: BufferId, output: BufferId) {
    for r in 0..n {
        for from in 0..n {
            p.promise((output, r, from), &[(input, from, 0)]);
        }
    }
}

/// Every rank writes its block into all others in one step of many destinations. In place too.
pub(crate) fn push_allgather(n: u32) -> Plan {
    let mut p = PlanBuilder::new("push_allgather", "allgather", &[n]);
    p.header().cells = 2;
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, n);
    for r in 0..n {
        p.overlap(r, (input, 0), (output, 2 * r), 2);
    }
    promise_allgather(&mut p, n, input, output);
    let mut f = Fenced::new(p, n);
    for r in 0..n {
        let everywhere: Vec<_> = (0..n).map(|o| here_or_there(r, o, output, 2 * r)).collect();
        f.step(r, &[local(input, 0)], &everywhere, 2);
    }
    f.finish()
}

/// Every rank reads all others' blocks. In place its own is there already, and must not be written while others read it;
/// so each form has its plan.
pub(crate) fn pull_allgather(n: u32, in_place: bool) -> Plan {
    let mut p = PlanBuilder::new("pull_allgather", "allgather", &[n]);
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, n);
    if in_place {
        (0..n).for_each(|r| p.overlap(r, (input, 0), (output, r), 1));
        p.header().forms.disjoint = false;
    }
    promise_allgather(&mut p, n, input, output);
    let mut f = Fenced::new(p, n);
    for r in 0..n {
        for i in u32::from(in_place)..n {
            let from = (r + i) % n;
            f.step(r, &[here_or_there(r, from, input, 0)], &[local(output, from)], 1);
        }
    }
    f.finish()
}

fn promise_alltoall(p: &mut PlanBuilder, n: u32, input: BufferId, output: BufferId) {
    for r in 0..n {
        for from in 0..n {
            p.promise((output, r, from), &[(input, from, r)]);
        }
    }
}

/// Every rank writes to each other what is for it, five cells at a time.
pub(crate) fn push_alltoall(n: u32) -> Plan {
    let mut p = PlanBuilder::new("push_alltoall", "alltoall", &[n]);
    p.header().cells = 5;
    let input = p.buffer("input", Role::Send, n);
    let output = p.buffer("output", Role::Recv, n);
    promise_alltoall(&mut p, n, input, output);
    let mut f = Fenced::new(p, n);
    for r in 0..n {
        for i in 0..n {
            let to = (r + i) % n;
            f.step(r, &[local(input, 5 * to)], &[here_or_there(r, to, output, 5 * r)], 5);
        }
    }
    f.finish()
}

/// Every rank reads from each other what is for it, in a block of its own for each.
pub(crate) fn pull_alltoall(n: u32) -> Plan {
    let mut p = PlanBuilder::new("pull_alltoall", "alltoall", &[n]);
    let input = p.buffer("input", Role::Send, n);
    let output = p.buffer("output", Role::Recv, n);
    promise_alltoall(&mut p, n, input, output);
    for r in 0..n {
        let own = p.block(r);
        p.step(own, &[local(input, r)], &[local(output, r)]);
    }
    for r in 0..n {
        for from in others(n, r) {
            let (reader, owner) = (p.block(r), p.block(from));
            let (ready, done) = (p.counter(owner, &[reader]), p.counter(reader, &[owner]));
            p.step_in(Section::Prologue, owner, &[], &[put(ready)]);
            p.step_in(Section::Epilogue, owner, &[get(done)], &[]);
            let got = p.step_in(Section::Prologue, reader, &[get(ready)], &[]).handle();
            let read = p.step(reader, &[peer(from, input, r)], &[local(output, from)]).handle();
            let sent = p.step_in(Section::Epilogue, reader, &[], &[put(done)]).handle();
            p.witness(read, from, got, sent);
        }
    }
    p.finish().unwrap().plan
}

/// Every rank writes its block into the last one, whose buffer no other rank has.
pub(crate) fn push_gather(n: u32) -> Plan {
    let mut p = PlanBuilder::new("push_gather", "gather", &[n]);
    let root = n - 1;
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer_at("output", Role::Recv, n, root);
    p.overlap(root, (input, 0), (output, root), 1);
    let blocks: Vec<_> = (0..n).map(|rank| p.block(rank)).collect();
    let at_root = blocks[root as usize];
    let ready = (n > 1).then(|| p.counter(at_root, &blocks[..root as usize]));
    let mut tokens = Vec::new();
    if let Some(ready) = ready {
        p.step_in(Section::Prologue, at_root, &[], &[put(ready)]);
        for r in 0..root {
            let block = blocks[r as usize];
            let done = p.counter(block, &[at_root]);
            let got = p.step_in(Section::Prologue, block, &[get(ready)], &[]).handle();
            let write = p.step(block, &[local(input, 0)], &[peer(root, output, r)]).handle();
            let sent = p.step_in(Section::Epilogue, block, &[], &[put(done)]).handle();
            p.witness(write, root, got, sent);
            tokens.push(get(done));
        }
    }
    p.step(at_root, &[local(input, 0)], &[local(output, root)]);
    p.step_in(Section::Epilogue, at_root, &tokens, &[]);
    for r in 0..n {
        p.promise((output, root, r), &[(input, r, 0)]);
    }
    p.finish().unwrap().plan
}

fn promise_allreduce(p: &mut PlanBuilder, n: u32, input: BufferId, output: BufferId) {
    let all: Vec<_> = (0..n).map(|rank| (input, rank, 0)).collect();
    for r in 0..n {
        p.promise((output, r, 0), &all);
    }
}

/// Every rank folds all inputs, in rank order, in one step.
pub(crate) fn one_shot(n: u32, each: bool) -> Plan {
    let mut p = PlanBuilder::new("one_shot", "allreduce", &[n]);
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, 1);
    promise_allreduce(&mut p, n, input, output);
    let mut f = Fenced::new(p, n);
    for r in 0..n {
        let all: Vec<_> = (0..n).map(|o| here_or_there(r, o, input, 0)).collect();
        // Written out: it says more about the step than `Fenced::step` does.
        let step = f.p.step(f.blocks[r as usize], &all, &[local(output, 0)]).post();
        let step = if each { step.round_each() } else { step };
        let step = step.pre(if n > 1 { Pre::of(all.iter().map(|_| true)).unwrap() } else { Pre::NONE });
        let step = step.line(2, "access").handle();
        f.accesses.extend(others(n, r).map(|o| (r, step, o)));
    }
    f.finish()
}

/// Every rank folds one cell of all inputs and writes it to all outputs, in one step.
pub(crate) fn owner_folds(n: u32) -> Plan {
    let mut p = PlanBuilder::new("owner_folds", "allreduce", &[n]);
    p.header().cells = n;
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, 1);
    (0..n).for_each(|r| p.overlap(r, (input, 0), (output, 0), n));
    promise_allreduce(&mut p, n, input, output);
    let mut f = Fenced::new(p, n);
    for r in 0..n {
        let all = |buffer| (0..n).map(|o| here_or_there(r, o, buffer, r)).collect::<Vec<_>>();
        let step = f.p.step(f.blocks[r as usize], &all(input), &all(output)).post().handle();
        f.accesses.extend(others(n, r).map(|o| (r, step, o)));
    }
    f.finish()
}

/// One shot in place: what was folded waits in scratch until all have told that they have read this slice.
pub(crate) fn one_shot_in_place(n: u32) -> Plan {
    let mut p = PlanBuilder::new("one_shot_in_place", "allreduce", &[n]);
    let entry = p.buffer("data", Role::Send, 1);
    let exit = p.buffer("data", Role::Recv, 1);
    let scratch = p.scratch(1);
    promise_allreduce(&mut p, n, entry, exit);
    let blocks: Vec<_> = (0..n).map(|rank| p.block(rank)).collect();
    let mut all = |r: u32| {
        let readers: Vec<_> = others(n, r).map(|o| blocks[o as usize]).collect();
        p.counter(blocks[r as usize], &readers)
    };
    let ready: Vec<_> = (0..n).map(&mut all).collect();
    let done: Vec<_> = (0..n).map(&mut all).collect();
    for r in 0..n {
        p.overlap(r, (entry, 0), (exit, 0), 1);
        let block = blocks[r as usize];
        p.step_in(Section::Prologue, block, &[], &[put(ready[r as usize])]);
        let tokens: Vec<_> = others(n, r).map(|o| get(ready[o as usize])).collect();
        let got = p.step_in(Section::Prologue, block, &tokens, &[]).handle();
        let all: Vec<_> = (0..n).map(|o| here_or_there(r, o, entry, 0)).collect();
        let fold = p.step(block, &all, &[local(scratch, 0)]).post().handle();
        let sent = p.step(block, &[], &[put(done[r as usize])]).handle();
        let tokens: Vec<_> = others(n, r).map(|o| get(done[o as usize])).collect();
        p.step(block, &tokens, &[]);
        p.step(block, &[local(scratch, 0)], &[local(exit, 0)]);
        for o in others(n, r) {
            p.witness(fold, o, got, sent);
        }
    }
    p.finish().unwrap().plan
}

/// Allreduce on a ring without messages: each rank reads from its left neighbour, with READY and DONE for each chunk
/// of each slice. In place too.
pub(crate) fn pull_ring(n: u32) -> Plan {
    let mut p = PlanBuilder::new("pull_ring", "allreduce", &[n]);
    p.header().cells = n;
    let entry = p.buffer("data", Role::Send, 1);
    let exit = p.buffer("data", Role::Recv, 1);
    promise_allreduce(&mut p, n, entry, exit);
    let blocks: Vec<_> = (0..n).map(|rank| p.block(rank)).collect();
    let next = |r: u32| blocks[((r + 1) % n) as usize];
    let ready: Vec<_> = (0..n).map(|r| p.counter(blocks[r as usize], &[next(r)])).collect();
    let done: Vec<_> = (0..n).map(|r| p.counter(next(r), &[blocks[r as usize]])).collect();
    for r in 0..n {
        p.overlap(r, (entry, 0), (exit, 0), n);
        let left = (r + n - 1) % n;
        let block = blocks[r as usize];
        let chunk = |back: u32| (r + 2 * n - back) % n;
        p.step(block, &[], &[put(ready[r as usize])]).line(3, "READY");
        for s in 1..2 * n - 1 {
            let cell = chunk(s);
            let theirs = peer(left, if s == 1 { entry } else { exit }, cell);
            let got = p.step(block, &[get(ready[left as usize])], &[]).line(4, "READY").handle();
            let (both, one) = ([theirs, local(entry, cell)], [theirs]);
            let sources: &[Operand] = if s < n { &both } else { &one };
            let step = p.step(block, sources, &[local(exit, cell)]).line(5, "pull");
            let step = if s == n - 1 { step.post() } else { step };
            let step = if s < n { step.pre(Pre(if s == 1 { 3 } else { 2 })) } else { step };
            let read = step.handle();
            let sent = p.step(block, &[], &[put(done[left as usize])]).line(6, "DONE").handle();
            if s < 2 * n - 2 {
                p.step(block, &[], &[put(ready[r as usize])]).line(7, "READY");
            }
            p.step(block, &[get(done[r as usize])], &[]).line(8, "DONE");
            p.witness(read, left, got, sent);
        }
    }
    p.finish().unwrap().plan
}

/// Every rank folds its block of all inputs, three cells at a time; its first two ranks in one step, then the rest.
pub(crate) fn pull_reduce_scatter(n: u32) -> Plan {
    let mut p = PlanBuilder::new("pull_reduce_scatter", "reducescatter", &[n]);
    p.header().cells = 3;
    let input = p.buffer("input", Role::Send, n);
    let output = p.buffer("output", Role::Recv, 1);
    let scratch = p.scratch(3);
    for r in 0..n {
        let all: Vec<_> = (0..n).map(|o| (input, o, r)).collect();
        p.promise((output, r, 0), &all);
    }
    let mut f = Fenced::new(p, n);
    for r in 0..n {
        let of = |o: u32| here_or_there(r, o, input, 3 * r);
        f.step(r, &[of(0), of(1)], &[local(scratch, 0)], 3);
        let rest: Vec<_> = std::iter::once(local(scratch, 0)).chain((2..n).map(of)).collect();
        let step = f.p.step(f.blocks[r as usize], &rest, &[local(output, 0)]).width(3);
        let step = if n > 1 { step.post() } else { step }.handle();
        f.accesses.extend((2..n).filter(|&o| o != r).map(|o| (r, step, o)));
    }
    f.finish()
}
