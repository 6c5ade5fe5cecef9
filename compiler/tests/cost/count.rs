//! Counts of plans small enough to count by hand, and bounds against the formulas of the literature.

use grammar::ast::ParamType;
use plan::builder::{PlanBuilder, get, local, put};
use plan::collective::{BlockRef, Clause, Promise};
use plan::dtype::Dtype;
use plan::ids::{BufferId, RankId};
use plan::plan::Role;
use plan::verify::{Limits as PlanLimits, VerifiedPlan, verify};
use rcc_compiler::cost::Program;
use rcc_compiler::cost::bound::{Bound, bound};
use rcc_compiler::cost::count::{Counts, RankCounts, Traffic, count};
use rcc_compiler::elaborate::Request;
use rcc_compiler::limits::Limits;
use rcc_compiler::options::Options;
use rcc_compiler::pipeline;
use rcc_compiler::trace::Params;

fn proved(builder: PlanBuilder) -> VerifiedPlan {
    verify(builder.finish().unwrap().plan, &PlanLimits::default()).unwrap()
}

/// Rank 0 sends to ranks 1, 2, 3 one after another.
fn fan_out() -> VerifiedPlan {
    let mut p = PlanBuilder::new("fan", "broadcast", &[4]);
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, 1);
    let blocks: Vec<_> = (0..4).map(|rank| p.block(rank)).collect();
    for to in 1..4 {
        let channel = p.channel(blocks[0], &[blocks[to]]);
        p.step(blocks[0], &[local(input, 0)], &[put(channel)]);
        p.step(blocks[to], &[get(channel)], &[local(output, 0)]);
    }
    proved(p)
}

#[test]
fn one_port_serialises_what_one_rank_sends() {
    let counted = count(&Program::new(&fan_out()), 100, Dtype::F32);
    let once = Traffic { messages: 1, bytes: 400 };
    let root =
        RankCounts { steps: 3, sent: Traffic { messages: 3, bytes: 1200 }, received: Traffic::default() };
    let leaf = RankCounts { steps: 1, sent: Traffic::default(), received: once };
    let links = [((0, 1), once), ((0, 2), once), ((0, 3), once)].into();
    assert_eq!(
        counted,
        Counts { ranks: vec![root, leaf, leaf, leaf], links, tokens: 0, chain: 4, rounds: 3 }
    );
}

#[test]
fn a_multicast_takes_one_round_and_a_relay_two() {
    let mut p = PlanBuilder::new("multi", "broadcast", &[3]);
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, 1);
    let blocks: Vec<_> = (0..3).map(|rank| p.block(rank)).collect();
    let channel = p.channel(blocks[0], &[blocks[1], blocks[2]]);
    p.step(blocks[0], &[local(input, 0)], &[put(channel)]);
    p.step(blocks[1], &[get(channel)], &[local(output, 0)]);
    p.step(blocks[2], &[get(channel)], &[local(output, 0)]);
    let counted = count(&Program::new(&proved(p)), 1, Dtype::F64);
    assert_eq!((counted.rounds, counted.chain), (1, 2));

    let mut p = PlanBuilder::new("relay", "broadcast", &[3]);
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, 1);
    let blocks: Vec<_> = (0..3).map(|rank| p.block(rank)).collect();
    let (first, second) = (p.channel(blocks[0], &[blocks[1]]), p.channel(blocks[1], &[blocks[2]]));
    p.step(blocks[0], &[local(input, 0)], &[put(first)]);
    p.step(blocks[1], &[get(first)], &[local(output, 0), put(second)]);
    p.step(blocks[2], &[get(second)], &[local(output, 0)]);
    let counted = count(&Program::new(&proved(p)), 1, Dtype::F64);
    assert_eq!((counted.rounds, counted.chain), (2, 3));
}

#[test]
fn a_ports_round_goes_to_whoever_can_use_it_first() {
    // Everyone sends to the next rank, then to the one after: two rounds, although rank 0 could take ports of both first.
    let mut p = PlanBuilder::new("shift", "alltoall", &[3]);
    let input = p.buffer("input", Role::Send, 3);
    let output = p.buffer("output", Role::Recv, 3);
    let blocks: Vec<_> = (0..3).map(|rank| p.block(rank)).collect();
    let mut channels = Vec::new();
    for from in 0..3 {
        for shift in 1..3 {
            let to = (from + shift) % 3;
            let channel = p.channel(blocks[from], &[blocks[to]]);
            p.step(blocks[from], &[local(input, to as u32)], &[put(channel)]);
            channels.push((from, to, channel));
        }
    }
    for (from, to, channel) in channels {
        p.step(blocks[to], &[get(channel)], &[local(output, from as u32)]);
    }
    assert_eq!(count(&Program::new(&proved(p)), 8, Dtype::F32).rounds, 2);
}

#[test]
fn bytes_follow_the_piece_through_scratch_and_messages() {
    // Three cells of a block of 10: 3, 3 and 4 elements. Cell 2 is kept in scratch cell 0 and sent from there.
    let mut p = PlanBuilder::new("pieces", "custom", &[2]);
    p.header().cells = 3;
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, 1);
    let scratch = p.scratch(1);
    let blocks: Vec<_> = (0..2).map(|rank| p.block(rank)).collect();
    let channel = p.channel(blocks[0], &[blocks[1]]);
    p.step(blocks[0], &[local(input, 2)], &[local(scratch, 0)]);
    p.step(blocks[0], &[local(scratch, 0)], &[put(channel)]);
    p.step(blocks[1], &[get(channel)], &[local(output, 2)]);
    p.step(blocks[0], &[local(input, 0)], &[put(channel)]).width(2);
    p.step(blocks[1], &[get(channel)], &[local(output, 0)]).width(2);
    let counted = count(&Program::new(&proved(p)), 10, Dtype::U8);
    assert_eq!(counted.links[&(0, 1)], Traffic { messages: 2, bytes: 4 + 3 + 3 });
}

/// (rank, block) of a place, and of each operand that it must hold.
type Promised = ((u32, u32), Vec<(u32, u32)>);

/// A promise of receive buffers over send buffers.
fn promise(clauses: &[Promised]) -> Promise {
    let block = |buffer, (rank, block)| BlockRef { buffer: BufferId(buffer), rank: RankId(rank), block };
    let mut promise = Promise::default();
    for (place, operands) in clauses {
        let list: Vec<BlockRef> = operands.iter().map(|&operand| block(0, operand)).collect();
        let known = promise.lists.iter().position(|known| *known == list);
        let list = known.unwrap_or_else(|| {
            promise.lists.push(list);
            promise.lists.len() - 1
        });
        promise.clauses.push(Clause { place: block(1, *place), list: list as u32 });
    }
    promise
}

#[test]
fn the_least_is_what_the_literature_says() {
    for n in 1..=9u32 {
        let f = f64::from(n);
        let all = || (0..n).map(|s| (s, 0)).collect::<Vec<_>>();
        let log = if n == 1 { 0 } else { (n - 1).ilog2() + 1 };
        let some = if n > 1 { 1.0 } else { 0.0 };
        let pairs = || (0..n).flat_map(|r| (0..n).map(move |s| (r, s)));

        let allreduce = bound(&promise(&(0..n).map(|r| ((r, 0), all())).collect::<Vec<_>>()), n);
        let each = 2.0 * (f - 1.0) / f;
        assert!((allreduce.sent - each.max(some)).abs() < 1e-9, "{n}: {allreduce:?}");
        assert!((allreduce.total - 2.0 * (f - 1.0)).abs() < 1e-9 && allreduce.rounds == log);

        let allgather: Vec<_> = pairs().map(|(r, s)| ((r, s), vec![(s, 0)])).collect();
        let wanted =
            Bound { sent: some, multicast: some, received: f - 1.0, total: f * (f - 1.0), rounds: log };
        assert_eq!(bound(&promise(&allgather), n), wanted);

        let reducescatter: Vec<_> = (0..n).map(|r| ((r, 0), (0..n).map(|s| (s, r)).collect())).collect();
        let wanted =
            Bound { sent: f - 1.0, multicast: f - 1.0, received: some, total: f * (f - 1.0), rounds: log };
        assert_eq!(bound(&promise(&reducescatter), n), wanted);

        let alltoall: Vec<_> = pairs().map(|(r, s)| ((r, s), vec![(s, r)])).collect();
        let wanted =
            Bound { sent: f - 1.0, multicast: f - 1.0, received: f - 1.0, total: f * (f - 1.0), rounds: log };
        assert_eq!(bound(&promise(&alltoall), n), wanted);

        let broadcast: Vec<_> = (0..n).map(|r| ((r, 0), vec![(0, 0)])).collect();
        let wanted = Bound { sent: some, multicast: some, received: some, total: f - 1.0, rounds: log };
        assert_eq!(bound(&promise(&broadcast), n), wanted);

        let reduce = [((0, 0), all())];
        let wanted = Bound { sent: some, multicast: some, received: some, total: f - 1.0, rounds: log };
        assert_eq!(bound(&promise(&reduce), n), wanted);
    }
    let barrier = Promise { synchronised: true, ..Promise::default() };
    assert_eq!(bound(&barrier, 9), Bound { rounds: 4, ..Bound::default() });
}

#[test]
fn parts_that_share_a_block_are_not_counted_apart() {
    // Rank 1 is promised a + c and b + c; rank 0 can send just the two sums.
    let clauses = [((1, 0), vec![(0, 0), (0, 2)]), ((1, 1), vec![(0, 1), (0, 2)])];
    let found = bound(&promise(&clauses), 2);
    assert!(found.sent <= 2.0 && found.sent >= 1.0, "{found:?}");
}

/// A bound that some right plan undercuts is no bound: every standard algorithm is held against it.
#[test]
fn no_standard_algorithm_does_with_less_than_the_least() {
    let limits = Limits::default();
    let loaded = pipeline::load(&[], &limits);
    // Divisible by all numbers of chunks here, so that no cell is rounded.
    let elements = 5040 * 16;
    let block = f64::from(elements as u32) * 4.0;
    let mut counted = 0;
    for id in loaded.program.algorithms() {
        let algorithm = loaded.program.algorithm(id);
        let shapes: Vec<Vec<u32>> = match algorithm.levels {
            1 => (1..=10).map(|n| vec![n]).collect(),
            _ => vec![vec![1, 1], vec![2, 2], vec![2, 3], vec![3, 2]],
        };
        for shape in shapes {
            let ranks: u32 = shape.iter().product();
            let open = algorithm.params.iter().filter(|p| p.ty == ParamType::Rank && p.default.is_none());
            let params: Params =
                open.enumerate().map(|(k, p)| (p.name.clone(), i64::from(k as u32 % ranks))).collect();
            let request = Request { algorithm: id, shape: shape.clone(), params };
            let Ok(compiled) =
                pipeline::compile(&loaded, &request, &Options::default(), &limits, &mut |_| {})
            else {
                continue;
            };
            let plan = &compiled.plan;
            let cost = count(&Program::new(plan), elements, Dtype::F32);
            let bound = bound(&plan.promise, plan.header.ranks);
            let most = |of: fn(&RankCounts) -> u64| cost.ranks.iter().map(of).max().unwrap_or(0) as f64;
            let total: u64 = cost.ranks.iter().map(|rank| rank.sent.bytes).sum();
            let name = format!("{} on {shape:?}: {bound:?}", algorithm.name);
            // Rounding of 16-byte boundaries apart.
            let slack = 1.0 - 1e-3;
            assert!(most(|rank| rank.sent.bytes) >= bound.sent * block * slack, "{name}");
            assert!(most(|rank| rank.received.bytes) >= bound.received * block * slack, "{name}");
            assert!(total as f64 >= bound.total * block * slack, "{name}");
            assert!(cost.rounds >= u64::from(bound.rounds), "{name}");
            counted += 1;
        }
    }
    assert!(counted > 200, "{counted}");
}
