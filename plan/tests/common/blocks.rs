//! Right plans as an optimiser makes them: many blocks per rank with waits, channels of many readers, copies, wide steps,
//! several slots needed, tokens in every section, ranks without blocks.
//!
//! Shared with the tests of executors.

use rcc_plan::builder::{PlanBuilder, get, local, put};
use rcc_plan::ids::BufferId;
use rcc_plan::plan::{Plan, Role, Section};

/// All of them, of at least `n` (two or more) ranks, with names.
pub(crate) fn all(n: u32) -> Vec<(String, Plan)> {
    let plans = [
        ("tree, up and down", tree(n, 3, 1)),
        ("tree, up and down, 2 copies", tree(n, 2, 2)),
        ("multicast in two levels", two_level_multicast(2, n)),
        ("alltoall, two blocks for each pair", alltoall_blocks(n, 1)),
        ("alltoall, two blocks for each pair, 3 copies", alltoall_blocks(n, 3)),
        ("sent in one order, read in another", crossed(n, 1)),
        ("sent in one order, read in another, 2 copies", crossed(n, 2)),
        ("chain of wide steps, two blocks", wide_chain(n, 6)),
        ("a rank with nothing to do", idle_ranks(n)),
        ("tokens in every section, across blocks", sections(n)),
    ];
    plans.into_iter().map(|(name, plan)| (format!("{name}, {n}"), plan)).collect()
}

fn promise_allreduce(p: &mut PlanBuilder, n: u32, input: BufferId, output: BufferId) {
    let all: Vec<_> = (0..n).map(|rank| (input, rank, 0)).collect();
    for r in 0..n {
        p.promise((output, r, 0), &all);
    }
}

/// Allreduce on a binary tree; every rank has a block for the way up and one for the way down. In place too, where what
/// comes down overwrites what has gone up.
pub(crate) fn tree(n: u32, cells: u32, copies: u32) -> Plan {
    let mut p = PlanBuilder::new("tree", "allreduce", &[n]);
    p.header().cells = cells;
    p.header().copies = copies;
    let entry = p.buffer("data", Role::Send, 1);
    let exit = p.buffer("data", Role::Recv, 1);
    promise_allreduce(&mut p, n, entry, exit);
    let up: Vec<_> = (0..n).map(|r| p.block(r)).collect();
    let down: Vec<_> = (0..n).map(|r| p.block(r)).collect();
    let parent = |r: u32| (r - 1) / 2;
    let up_links: Vec<_> = (1..n).map(|r| p.channel(up[r as usize], &[up[parent(r) as usize]])).collect();
    let children = |r: u32| [2 * r + 1, 2 * r + 2].into_iter().filter(move |&c| c < n);
    // One channel to both children.
    let down_links: Vec<_> = (0..n)
        .map(|r| {
            let readers: Vec<_> = children(r).map(|c| down[c as usize]).collect();
            (!readers.is_empty()).then(|| p.channel(down[r as usize], &readers))
        })
        .collect();
    for r in 0..n {
        p.overlap(r, (entry, 0), (exit, 0), cells);
        for cell in 0..cells {
            let mut operands = vec![local(entry, cell)];
            operands.extend(children(r).map(|c| get(up_links[c as usize - 1])));
            let result = if r == 0 { local(exit, cell) } else { put(up_links[r as usize - 1]) };
            let step = p.step(up[r as usize], &operands, &[result]).line(3, "up");
            let step = if r == 0 { step.post() } else { step };
            let sent = step.handle();
            let mut destinations: Vec<_> = down_links[r as usize].map(put).into_iter().collect();
            if r == 0 {
                if !destinations.is_empty() {
                    p.step(down[0], &[local(exit, cell)], &destinations).wait(sent).line(4, "down");
                }
                continue;
            }
            destinations.push(local(exit, cell));
            let from = down_links[parent(r) as usize].unwrap();
            p.step(down[r as usize], &[get(from)], &destinations).wait(sent).line(4, "down");
        }
    }
    p.finish().unwrap().plan
}

/// Broadcast: rank 0 to the leaders of all groups by one channel, each leader to its group by another, in a block of
/// its own that waits for the first.
pub(crate) fn two_level_multicast(groups: u32, size: u32) -> Plan {
    let n = groups * size;
    let mut p = PlanBuilder::new("two_level", "broadcast", &[groups, size]);
    p.header().cells = 2;
    let input = p.buffer_at("input", Role::Send, 1, 0);
    let output = p.buffer("output", Role::Recv, 1);
    let top: Vec<_> = (0..groups).map(|g| p.block(g * size)).collect();
    let below: Vec<_> = (0..n).map(|r| p.block(r)).collect();
    let first = (groups > 1).then(|| p.channel(top[0], &top[1..]));
    for g in 0..groups {
        let members: Vec<_> = (1..size).map(|i| below[(g * size + i) as usize]).collect();
        let second = (!members.is_empty()).then(|| p.channel(below[(g * size) as usize], &members));
        for cell in 0..2 {
            let here = [local(output, cell)];
            let arrived = match (g, first) {
                (0, Some(first)) => p.step(top[0], &[local(input, cell)], &[here[0], put(first)]),
                (0, None) => p.step(top[0], &[local(input, cell)], &here),
                (_, Some(first)) => p.step(top[g as usize], &[get(first)], &here),
                (_, None) => continue,
            };
            let arrived = arrived.handle();
            if let Some(second) = second {
                p.step(below[(g * size) as usize], &here, &[put(second)]).wait(arrived);
                for &member in &members {
                    p.step(member, &[get(second)], &here);
                }
            }
        }
    }
    for r in 0..n {
        p.promise((output, r, 0), &[(input, 0, 0)]);
    }
    p.finish().unwrap().plan
}

/// Alltoall in which every rank has a sending and a receiving block for each other rank, and one for its own part.
pub(crate) fn alltoall_blocks(n: u32, copies: u32) -> Plan {
    let mut p = PlanBuilder::new("alltoall_blocks", "alltoall", &[n]);
    p.header().cells = 3;
    p.header().copies = copies;
    let input = p.buffer("input", Role::Send, n);
    let output = p.buffer("output", Role::Recv, n);
    for r in 0..n {
        for i in 0..n {
            let to = (r + i) % n;
            let sender = p.block(r);
            if to == r {
                p.step(sender, &[local(input, 3 * r)], &[local(output, 3 * r)]).width(3);
            } else {
                let receiver = p.block(to);
                let channel = p.channel(sender, &[receiver]);
                p.step(sender, &[local(input, 3 * to)], &[put(channel)]).width(2);
                p.step(sender, &[local(input, 3 * to + 2)], &[put(channel)]);
                p.step(receiver, &[get(channel)], &[local(output, 3 * r)]).width(2);
                p.step(receiver, &[get(channel)], &[local(output, 3 * r + 2)]);
            }
            p.promise((output, to, r), &[(input, r, to)]);
        }
    }
    p.finish().unwrap().plan
}

/// Rank 0 sends `n` cells to one channel, then `n` to another, which rank 1 reads the other way round: all of the first
/// must fit its slots.
pub(crate) fn crossed(n: u32, copies: u32) -> Plan {
    let mut p = PlanBuilder::new("crossed", "custom", &[2]);
    p.header().cells = n;
    p.header().copies = copies;
    let input = p.buffer("input", Role::Send, 2);
    let output = p.buffer("output", Role::Recv, 2);
    let blocks = [0, 1].map(|r| p.block(r));
    let channels = [0, 1].map(|_| p.channel(blocks[0], &blocks[1..]));
    for (c, channel) in (0..).zip(channels) {
        for cell in 0..n {
            p.step(blocks[0], &[local(input, c * n + cell)], &[put(channel)]);
        }
    }
    for (c, channel) in [(1, channels[1]), (0, channels[0])] {
        for cell in 0..n {
            p.step(blocks[1], &[get(channel)], &[local(output, c * n + cell)]);
        }
        p.promise((output, 1, c), &[(input, 0, c)]);
    }
    p.finish().unwrap().plan
}

/// A chain whose ranks receive in one block and pass on in another, `width` cells in one step of each; the passing
/// block waits for the whole of it.
pub(crate) fn wide_chain(n: u32, width: u32) -> Plan {
    let mut p = PlanBuilder::new("wide_chain", "broadcast", &[n]);
    p.header().cells = width;
    let input = p.buffer_at("input", Role::Send, 1, 0);
    let output = p.buffer("output", Role::Recv, 1);
    let scratch = p.scratch(width);
    let receive: Vec<_> = (0..n).map(|r| p.block(r)).collect();
    let pass: Vec<_> = (0..n).map(|r| p.block(r)).collect();
    let links: Vec<_> = (1..n as usize).map(|r| p.channel(pass[r - 1], &[receive[r]])).collect();
    for r in 0..n as usize {
        // Through scratch: nothing but the value says how long each cell is.
        let from = if r == 0 { local(input, 0) } else { get(links[r - 1]) };
        let got = p.step(receive[r], &[from], &[local(scratch, 0)]).width(width).handle();
        let mut to = vec![local(output, 0)];
        to.extend(links.get(r).map(|&link| put(link)));
        p.step(pass[r], &[local(scratch, 0)], &to).width(width).wait(got);
        p.promise((output, r as u32, 0), &[(input, 0, 0)]);
    }
    p.finish().unwrap().plan
}

/// Ranks 0 and `n` swap; those between have no block at all.
pub(crate) fn idle_ranks(n: u32) -> Plan {
    let mut p = PlanBuilder::new("idle", "custom", &[n + 1]);
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, 1);
    let ends = [0, n];
    let blocks = ends.map(|r| p.block(r));
    // One that exists and does nothing.
    p.block(1);
    let to = [p.channel(blocks[0], &[blocks[1]]), p.channel(blocks[1], &[blocks[0]])];
    for i in 0..2 {
        p.step(blocks[i], &[local(input, 0)], &[put(to[i])]);
        p.step(blocks[i], &[get(to[1 - i])], &[local(output, 0)]);
        p.promise((output, ends[i], 0), &[(input, ends[1 - i], 0)]);
    }
    p.finish().unwrap().plan
}

/// Every rank has three blocks, each with tokens round the ring in prologue, body and epilogue; bodies wait for
/// prologues of their neighbours, and epilogues for bodies.
pub(crate) fn sections(n: u32) -> Plan {
    let mut p = PlanBuilder::new("sections", "allgather_pair", &[n]);
    p.header().cells = 2;
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, 1);
    let scratch = p.scratch(2);
    let blocks: Vec<Vec<_>> = (0..3).map(|_| (0..n).map(|r| p.block(r)).collect()).collect();
    let ring = |p: &mut PlanBuilder, lane: usize| -> Vec<_> {
        let lane: &Vec<_> = &blocks[lane];
        (0..n as usize).map(|r| p.counter(lane[r], &[lane[(r + 1) % n as usize]])).collect()
    };
    let tokens: Vec<_> = (0..3).map(|lane| ring(&mut p, lane)).collect();
    let data: Vec<_> =
        (0..n as usize).map(|r| p.channel(blocks[0][r], &[blocks[1][(r + 1) % n as usize]])).collect();
    for r in 0..n as usize {
        let left = (r + n as usize - 1) % n as usize;
        let mut began = Vec::new();
        for lane in 0..3 {
            let block = blocks[lane][r];
            p.step_in(Section::Prologue, block, &[], &[put(tokens[lane][r])]);
            began.push(p.step_in(Section::Prologue, block, &[get(tokens[lane][left])], &[]).handle());
        }
        for cell in 0..2 {
            p.step(blocks[0][r], &[local(input, cell)], &[put(data[r])]).wait(began[1]).wait(began[2]);
        }
        // A token in the body, from a rank that has begun this slice.
        p.step(blocks[0][r], &[], &[put(tokens[0][r])]);
        p.step(blocks[0][r], &[get(tokens[0][left])], &[]);
        let mut sums = Vec::new();
        for cell in 0..2 {
            let got =
                p.step(blocks[1][r], &[get(data[left])], &[local(scratch, cell)]).wait(began[0]).handle();
            let both = [local(scratch, cell), local(input, cell)];
            sums.push(p.step(blocks[2][r], &both, &[local(output, cell)]).wait(got).post().handle());
        }
        p.step_in(Section::Epilogue, blocks[0][r], &[], &[put(tokens[0][r])]).wait(sums[1]);
        p.step_in(Section::Epilogue, blocks[0][r], &[get(tokens[0][left])], &[]);
        p.promise((output, r as u32, 0), &[(input, r as u32, 0), (input, left as u32, 0)]);
    }
    p.finish().unwrap().plan
}
