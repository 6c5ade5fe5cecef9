//! The model against closed forms, against itself without leaving anything out, and against counts.

use plan::builder::{BlockHandle, PlanBuilder, get, local, put};
use plan::dtype::Dtype;
use plan::ids::BufferId;
use plan::plan::Role;
use plan::schedule::Protocol;
use plan::verify::{Limits, VerifiedPlan, verify};

use super::super::program::Program;
use super::super::topology::{Encoding, Engine, Level, Resources, Topology, builtin};
use super::super::work::{Time, time};
use super::{Call, Run, Want, simulate};

const US: f64 = 1e-6;
const GB: f64 = 1e9;

/// One level, ports of 100 GB/s, 2 us.
fn machine() -> Topology {
    Topology {
        name: "test".to_string(),
        about: String::new(),
        levels: vec![Level {
            name: "link".to_string(),
            size: None,
            latency: 2.0 * US,
            port: Some(100.0 * GB),
            uplink: None,
            multicast: false,
        }],
        engine: Engine::Own { rate: None, event: 0.0, memory: None },
        encodings: vec![Encoding { protocol: Protocol::Simple, bandwidth: 1.0, latency: vec![0.0] }],
        slots: 8,
        slices: vec![1 << 20],
        copies: 8,
        resources: Resources::default(),
    }
}

fn call(bytes: u64, slice_bytes: u32) -> Call {
    Call { count: bytes, dtype: Dtype::U8, slice_bytes, slots: 8, copies: 1, encoding: 0 }
}

fn built(builder: PlanBuilder) -> VerifiedPlan {
    let mut plan = builder.finish().unwrap().plan;
    plan.header.k_min = plan::verify::least_slots(&plan, &Limits::default()).unwrap();
    verify(plan, &Limits::default()).unwrap()
}

fn run(plan: &VerifiedPlan, topology: &Topology, call: &Call) -> Run {
    let program = Program::new(plan);
    let run = simulate(&program, topology, call, Want { records: true, skip: true });
    assert_eq!(run.stuck, 0);
    run
}

/// A send buffer and a receive buffer of one block, and a block at each rank.
fn ranks(name: &str, n: u32) -> (PlanBuilder, BufferId, BufferId, Vec<BlockHandle>) {
    let mut p = PlanBuilder::new(name, "custom", &[n]);
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, 1);
    let blocks = (0..n).map(|rank| p.block(rank)).collect();
    (p, input, output, blocks)
}

/// Rank 0's data goes from rank to rank, each passing on what it gets in the same step.
fn chain(n: u32) -> VerifiedPlan {
    let (mut p, input, output, blocks) = ranks("chain", n);
    let channels: Vec<_> = blocks.windows(2).map(|pair| p.channel(pair[0], &[pair[1]])).collect();
    p.step(blocks[0], &[local(input, 0)], &[local(output, 0), put(channels[0])]);
    for r in 1..n as usize {
        let mut to = vec![local(output, 0)];
        to.extend(channels.get(r).map(|&channel| put(channel)));
        p.step(blocks[r], &[get(channels[r - 1])], &to);
    }
    built(p)
}

/// The ring allreduce of n ranks as one block per rank: 2n - 1 steps.
fn ring(n: u32) -> VerifiedPlan {
    let (mut p, input, output, blocks) = ranks("ring", n);
    p.header().cells = n;
    let channels: Vec<_> =
        (0..n as usize).map(|r| p.channel(blocks[r], &[blocks[(r + 1) % n as usize]])).collect();
    for r in 0..n {
        let (from, to) = (channels[((r + n - 1) % n) as usize], channels[r as usize]);
        let block = blocks[r as usize];
        let cell = |back: u32| (r + 2 * n - back) % n;
        p.step(block, &[local(input, cell(1))], &[put(to)]);
        for hop in 2..n {
            p.step(block, &[get(from), local(input, cell(hop))], &[put(to)]);
        }
        p.step(block, &[get(from), local(input, cell(n))], &[local(output, cell(n)), put(to)]);
        for hop in 1..n - 1 {
            p.step(block, &[get(from)], &[local(output, cell(hop)), put(to)]);
        }
        p.step(block, &[get(from)], &[local(output, cell(n - 1))]);
    }
    built(p)
}

fn microseconds(time: Time) -> f64 {
    time as f64 / 1e6
}

/// α + M/β.
#[test]
fn one_hop() {
    let plan = chain(2);
    for bytes in [16u64, 4096, 1 << 20] {
        let took = run(&plan, &machine(), &call(bytes, 1 << 30)).end;
        assert_eq!(took, time(2.0 * US + bytes as f64 / (100.0 * GB)), "{bytes}");
    }
    // A latency of the encoding is on top, and its bandwidth is a part.
    let mut slow = machine();
    slow.encodings[0].bandwidth = 0.5;
    slow.encodings[0].latency = vec![3.0 * US];
    assert_eq!(run(&plan, &slow, &call(1_000_000, 1 << 30)).end, time((2.0 + 3.0 + 20.0) * US));
}

/// 2(n-1)(α + M/(nβ)) with one slice.
#[test]
fn a_ring_with_one_slice() {
    for n in [2u32, 3, 5, 8] {
        let cell = 1_000_000u64;
        let took = run(&ring(n), &machine(), &call(cell * u64::from(n), 1 << 30)).end;
        assert_eq!(took, time(f64::from(2 * (n - 1)) * (2.0 + 10.0) * US), "{n}");
    }
}

/// (n - 2 + T) slices and n - 1 latencies, where slots never run out.
#[test]
fn a_chain_overlaps_its_hops() {
    for n in [2u32, 3, 8] {
        for slices in [1u64, 2, 10, 1000] {
            let slice = 1_000_000u64;
            let took = run(&chain(n), &machine(), &call(slice * slices, slice as u32)).end;
            let steps = f64::from(n - 2) + slices as f64;
            assert_eq!(
                took,
                time((steps * 10.0 + f64::from(n - 1) * 2.0) * US),
                "{n} ranks, {slices} slices"
            );
        }
    }
}

/// With one slot a slice waits for the news of the one before: slice, latency, then the news back.
#[test]
fn credit_limits_a_stream() {
    let slots = |slots: u32| {
        let call = Call { slots, ..call(100 * 1_000_000, 1_000_000) };
        microseconds(run(&chain(2), &machine(), &call).end)
    };
    // The reader takes no time of its own here.
    assert!((slots(1) - (100.0 * 10.0 + 99.0 * 4.0 + 2.0)).abs() < 1e-6, "{}", slots(1));
    assert!((slots(2) - (1000.0 + 2.0)).abs() < 1e-6, "{}", slots(2));
}

/// Two flows through one port get half each: out of one rank, and into one.
#[test]
fn flows_share_a_port() {
    for into in [false, true] {
        let mut p = PlanBuilder::new("flows", "custom", &[3]);
        let input = p.buffer("input", Role::Send, 1);
        let output = p.buffer("output", Role::Recv, 2);
        let blocks: Vec<_> = (0..4u32)
            .map(|b| p.block(if into { [0, 1, 2, 2][b as usize] } else { [0, 0, 1, 2][b as usize] }))
            .collect();
        for flow in 0..2usize {
            let channel = p.channel(blocks[flow], &[blocks[2 + flow]]);
            p.step(blocks[flow], &[local(input, 0)], &[put(channel)]);
            p.step(blocks[2 + flow], &[get(channel)], &[local(output, flow as u32)]);
        }
        let plan = built(p);
        let call = call(100_000_000, 1_000_000);
        let program = Program::new(&plan);
        let run = simulate(&program, &machine(), &call, Want { records: true, skip: false });
        assert_eq!(run.end, time(2002.0 * US), "into: {into}");
        // Both end together: neither was served first as a whole.
        let last: Vec<_> = (0..plan.steps.len() as u32)
            .filter_map(|step| run.records.iter().rev().find(|record| record.step == step))
            .map(|record| microseconds(record.end))
            .filter(|&end| end > 1900.0)
            .collect();
        assert!(last.len() >= 2, "{last:?}");
    }
}

/// Shared uplinks: two ranks of a node to two of another through one port.
#[test]
fn flows_share_an_uplink() {
    let mut topology = machine();
    topology.levels[0].size = Some(2);
    topology.levels.push(Level {
        name: "net".to_string(),
        uplink: Some(50.0 * GB),
        ..topology.levels[0].clone()
    });
    topology.encodings[0].latency.push(0.0);
    let mut p = PlanBuilder::new("uplink", "custom", &[2, 2]);
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, 1);
    let blocks: Vec<_> = (0..4).map(|rank| p.block(rank)).collect();
    for from in 0..2 {
        let channel = p.channel(blocks[from], &[blocks[from + 2]]);
        p.step(blocks[from], &[local(input, 0)], &[put(channel)]);
        p.step(blocks[from + 2], &[get(channel)], &[local(output, 0)]);
    }
    let plan = built(p);
    let took = microseconds(run(&plan, &topology, &call(100_000_000, 1_000_000)).end);
    assert!((took - 4000.0).abs() < 30.0, "{took}");
    topology.levels[1].uplink = Some(200.0 * GB);
    let took = microseconds(run(&plan, &topology, &call(100_000_000, 1_000_000)).end);
    assert!((took - 1000.0).abs() < 30.0, "{took}");
}

/// A multicast passes its writer's port once where the level can, and once for each reader where not.
#[test]
fn multicast_costs_what_the_level_says() {
    let (mut p, input, output, blocks) = ranks("cast", 4);
    let channel = p.channel(blocks[0], &blocks[1..]);
    p.step(blocks[0], &[local(input, 0)], &[put(channel)]);
    for &block in &blocks[1..] {
        p.step(block, &[get(channel)], &[local(output, 0)]);
    }
    let plan = built(p);
    let mut topology = machine();
    let took = |topology: &Topology| microseconds(run(&plan, topology, &call(1_000_000, 1 << 30)).end);
    assert_eq!(took(&topology), 32.0);
    topology.levels[0].multicast = true;
    assert_eq!(took(&topology), 12.0);
}

/// Cores: work of ranks that share one adds up, and going from one to the other costs.
#[test]
fn ranks_share_cores() {
    let mut topology = builtin("2-cores").unwrap();
    let Engine::Shared { cores, event, switch, message, send, memory } = &mut topology.engine else {
        panic!()
    };
    (*cores, *event, *switch, *message, *send) = (2, 1.0 * US, 5.0 * US, 1.0 * GB, 1.0 * GB);
    memory.iter_mut().for_each(|reach| (reach.read, reach.write) = (1.0 * GB, 1.0 * GB));
    topology.levels[0].latency = 0.0;
    // Every rank copies its own megabyte: 1000 us to read and as long to write.
    let copies = |n: u32| {
        let (mut p, input, output, blocks) = ranks("copies", n);
        for &block in &blocks {
            p.step(block, &[local(input, 0)], &[local(output, 0)]);
        }
        microseconds(run(&built(p), &topology, &call(1_000_000, 1 << 30)).end)
    };
    assert_eq!(copies(1), 2001.0);
    assert_eq!(copies(2), 2001.0);
    assert_eq!(copies(4), 2001.0 * 2.0 + 5.0);
}

/// Ranks keep to cores, neighbours together; messages between cores cost what the machine says, within one what its
/// cache does.
#[test]
fn messages_cost_more_between_cores_than_within_one() {
    let mut topology = builtin("2-cores").unwrap();
    let Engine::Shared { cores, event, switch, message, send, memory } = &mut topology.engine else {
        panic!()
    };
    (*cores, *event, *switch, *message, *send) = (2, 0.0, 0.0, 0.25 * GB, 0.5 * GB);
    memory.iter_mut().for_each(|reach| (reach.read, reach.write) = (1.0 * GB, 1.0 * GB));
    topology.levels[0].latency = 0.0;
    // Of four ranks one sends a megabyte to another: it is read, written, read and written.
    let sent = |from: usize, to: usize| {
        let (mut p, input, output, blocks) = ranks("sent", 4);
        let channel = p.channel(blocks[from], &[blocks[to]]);
        p.step(blocks[from], &[local(input, 0)], &[put(channel)]);
        p.step(blocks[to], &[get(channel)], &[local(output, 0)]);
        microseconds(run(&built(p), &topology, &call(1_000_000, 1 << 30)).end)
    };
    for (from, to) in [(0, 1), (1, 0), (2, 3)] {
        assert_eq!(sent(from, to), 4000.0, "{from} to {to}");
    }
    for (from, to) in [(0, 2), (1, 2), (3, 0)] {
        assert_eq!(sent(from, to), 1000.0 + 2000.0 + 4000.0 + 1000.0, "{from} to {to}");
    }
}

/// What is left out is left out exactly: the whole call followed gives the same picosecond.
#[test]
fn leaving_out_periods_changes_nothing() {
    let plans = [ring(2), ring(5), ring(8), chain(2), chain(8)];
    for topology in ["8xh100", "8xh100-ideal", "2-cores"].map(|name| builtin(name).unwrap()) {
        for (p, plan) in plans.iter().enumerate() {
            for (slots, copies, slice) in [(2, 1, 4096), (4, 2, 1024), (8, 3, 640)] {
                for bytes in [100_000u64, 1_234_567, 4_000_001] {
                    let call = Call { slots, copies, ..call(bytes, slice) };
                    let program = Program::new(plan);
                    let find = |skip| simulate(&program, &topology, &call, Want { records: false, skip });
                    let (quick, whole) = (find(true), find(false));
                    let exact = quick.skipped.is_none_or(|skipped| skipped.exact);
                    assert!(exact && quick.end == whole.end, "{} plan {p} {call:?}", topology.name);
                    assert!(whole.skipped.is_none() && quick.events <= whole.events);
                }
            }
        }
    }
    // And much is: of ten thousand slices a few dozen.
    let program = Program::new(&plans[2]);
    let found = simulate(&program, &machine(), &call(1 << 30, 16 << 10), Want { records: false, skip: true });
    assert!(found.skipped.is_some_and(|skipped| skipped.exact), "{found:?}");
    assert!(found.events < 10_000, "{}", found.events);
}

/// More bandwidth, less latency, more slots: never slower.
#[test]
fn laws() {
    for plan in [ring(5), ring(8), chain(6)] {
        for slice in [1000, 64_000, 1_000_000] {
            let of = |topology: &Topology, slots: u32| {
                run(&plan, topology, &Call { slots, ..call(3_000_000, slice) }).end
            };
            let base = machine();
            let mut wide = machine();
            let mut near = machine();
            let mut before = Time::MAX;
            for slots in plan.header.k_min..10 {
                let took = of(&base, slots);
                assert!(took <= before, "{slots} slots");
                before = took;
                wide.levels[0].port = Some(150.0 * GB);
                near.levels[0].latency = 1.0 * US;
                assert!(of(&wide, slots) <= took && of(&near, slots) <= took);
            }
        }
    }
}

/// The interpreter's rules: no event before those it needs; the steps of a block one after another.
#[test]
fn the_order_is_the_interpreters() {
    let plan = ring(4);
    let call = Call { slots: 2, ..call(40_000, 1000) };
    let program = Program::new(&plan);
    for topology in ["8xh100", "2-cores"].map(|name| builtin(name).unwrap()) {
        let run = simulate(&program, &topology, &call, Want { records: true, skip: false });
        let mut begun = vec![0u64; plan.steps.len()];
        let mut ended: Vec<Vec<Time>> = vec![Vec::new(); plan.steps.len()];
        for record in &run.records {
            let step = record.step as usize;
            let t = begun[step] as usize;
            begun[step] += 1;
            let block = plan.blocks.iter().find(|block| block.body.contains(&record.step)).unwrap();
            // The step before in the block, or the last of the iteration before.
            if record.step > block.body.start {
                assert!(record.start >= ended[step - 1][t]);
            } else if t > 0 {
                assert!(record.start >= ended[block.body.end as usize - 1][t - 1]);
            }
            // The j-th step of a rank receives what the (j-1)-th of its left neighbour sent.
            let (rank, at) = (block.rank.0, record.step - block.body.start);
            if at > 0 {
                let left = &plan.blocks[((rank + 3) % 4) as usize];
                assert!(record.start >= ended[(left.body.start + at - 1) as usize][t]);
            }
            ended[step].push(record.end);
        }
        assert!(begun.iter().all(|&times| times == 10), "{begun:?}");
    }
}

/// What ports carry is what steps send.
#[test]
fn bytes_are_exact() {
    for (n, bytes, copies) in [(3u32, 1_000_003u64, 1), (5, 77_777, 3), (8, 64, 1), (8, 3, 2)] {
        let plan = ring(n);
        let program = Program::new(&plan);
        let call = Call { copies, ..call(bytes, 4096) };
        let run = simulate(&program, &machine(), &call, Want { records: false, skip: false });
        let counted = super::super::count::count(&program, bytes, Dtype::U8);
        for rank in 0..n as usize {
            assert_eq!(run.carried[2 * rank], counted.ranks[rank].sent.bytes, "{n} {bytes}");
            assert_eq!(run.carried[2 * rank + 1], counted.ranks[rank].received.bytes, "{n} {bytes}");
        }
    }
}

/// The parts of the critical path add up to the time, whatever was left out.
#[test]
fn the_path_adds_up() {
    for topology in ["8xh100", "8xh100-ideal", "2-cores"].map(|name| builtin(name).unwrap()) {
        for plan in [ring(8), chain(5)] {
            for bytes in [8u64, 100_000, 50_000_000] {
                let run = run(&plan, &topology, &call(bytes, 16 << 10));
                let path = super::super::path::path(&plan, &run);
                let legs: f64 = path.legs.iter().map(|leg| leg.seconds).sum();
                let parts = path.moving + path.latency + path.queueing + path.cores;
                let whole = run.end as f64 / 1e12;
                assert!((legs - whole).abs() < whole * 1e-6, "{} {legs} {whole}", topology.name);
                assert!((parts - whole).abs() < whole * 1e-6, "{} {parts} {whole}", topology.name);
            }
        }
    }
}
