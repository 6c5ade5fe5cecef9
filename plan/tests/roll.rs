//! Plans as loops: what is packed is unpacked, what is regular is small, and loops are what they were made of.

mod common;

use common::{mutate, plans, random};
use proptest::prelude::*;
use rcc_plan::builder::{PlanBuilder, get, local, put};
use rcc_plan::display::show;
use rcc_plan::file::LoadLimits;
use rcc_plan::ids::{BlockId, BufferId, ChannelId, RankId, StepId};
use rcc_plan::plan::{Operand, Plan, Role, Section};
use rcc_plan::roll::{self, Item};

/// The plan, written and read; its size as a file.
#[track_caller]
fn again(plan: &Plan) -> usize {
    let bytes = plan.to_bytes();
    let read = Plan::from_bytes(&bytes, &LoadLimits::default());
    assert!(read.as_ref() == Ok(plan), "{}: {:?}", plan.header.algorithm, read.err());
    bytes.len()
}

/// Spells the loops of each block out, and compares with its steps. Says how many items there are.
#[track_caller]
fn spelled_out(plan: &Plan) -> usize {
    let mut items = 0;
    for (b, block) in plan.blocks.iter().enumerate() {
        let program = roll::program(plan, BlockId(b as u32));
        for section in Section::ALL {
            let list = &program.sections[section as usize];
            let mut next = block.section(section).start;
            spell(plan, list, &mut Vec::new(), &mut next);
            assert_eq!(next, block.section(section).end);
            items += count(list);
        }
    }
    items
}

fn count(items: &[Item]) -> usize {
    let one = |item: &Item| match item {
        Item::Step(_) => 1,
        Item::Loop { body, .. } => 1 + count(body),
    };
    items.iter().map(one).sum()
}

fn spell(plan: &Plan, items: &[Item], t: &mut Vec<u32>, next: &mut u32) {
    for item in items {
        match item {
            Item::Loop { count, body } => {
                assert!(*count >= 3 && !body.is_empty());
                for repeat in 0..*count {
                    t.push(repeat);
                    spell(plan, body, t, next);
                    t.pop();
                }
            }
            Item::Step(step) => {
                let (flat, first) = (&plan.steps[*next as usize], &plan.steps[step.first.index()]);
                let fixed = |s: &rcc_plan::plan::Step| (s.width, s.post, s.pre, s.round_each, s.span);
                assert_eq!(fixed(flat), fixed(first));
                let operand = |operand: &roll::Operand| match operand {
                    roll::Operand::Channel(id) => Operand::Channel(ChannelId(id.at(t) as u32)),
                    roll::Operand::Local { buffer, cell } => {
                        Operand::Local { buffer: *buffer, cell: cell.at(t) as u32 }
                    }
                    roll::Operand::Peer { rank, buffer, cell } => Operand::Peer {
                        rank: RankId(rank.at(t) as u32),
                        buffer: *buffer,
                        cell: cell.at(t) as u32,
                    },
                };
                let side = |side: &[roll::Operand]| side.iter().map(operand).collect::<Vec<_>>();
                assert_eq!(side(&step.sources), plan.src(flat));
                assert_eq!(side(&step.destinations), plan.dst(flat));
                let waits: Vec<_> = step.waits.iter().map(|wait| StepId(wait.at(t) as u32)).collect();
                assert_eq!(waits, plan.waits(flat));
                *next += 1;
            }
        }
    }
}

#[test]
fn what_is_written_is_read() {
    for (_, plan) in plans::small() {
        again(&plan);
        spelled_out(&plan);
        for (_, mutant) in mutate::mutants(&plan) {
            again(&mutant);
        }
    }
}

#[test]
fn rings_of_any_size_are_small() {
    for n in [2, 3, 4, 5, 6, 7, 8, 9, 16, 100, 257] {
        let (fused, plain) = (plans::ring_allreduce(n), plans::ring_plain(n));
        assert!(again(&fused) < 1500, "fused, {n} ranks");
        assert!(again(&plain) < 1500, "plain, {n} ranks");
        if n > 4 {
            // One send, the first sum, a loop, one step, a loop, one receive.
            let counts = (spelled_out(&fused), spelled_out(&plain));
            assert!(counts.0 <= 8 * n as usize && counts.1 <= 12 * n as usize, "{n} ranks: {counts:?}");
        }
    }
}

/// A quarter of a million clauses are affine in two variables.
#[test]
fn an_alltoall_is_small_in_spite_of_its_promise() {
    let mut p = PlanBuilder::new("direct", "alltoall", &[512]);
    let input = p.buffer("input", Role::Send, 512);
    let output = p.buffer("output", Role::Recv, 512);
    for r in 0..512 {
        (0..512).for_each(|q| p.promise((output, r, q), &[(input, q, r)]));
    }
    assert!(again(&p.finish().unwrap().plan) < 400);
}

/// One rank whose steps are all copies from a cell of `input` to one of `output`.
fn copies(cells: u32, moves: &[(u32, u32)]) -> Plan {
    let mut p = PlanBuilder::new("copies", "custom", &[1]);
    p.header().cells = cells;
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, 1);
    let block = p.block(0);
    for &(from, to) in moves {
        p.step(block, &[local(input, from)], &[local(output, to)]);
    }
    p.finish().unwrap().plan
}

#[test]
fn loops_of_every_form_are_found() {
    let rows = |rows: &[Vec<(u32, u32)>]| copies(1000, &rows.concat());
    for (name, plan, items) in [
        ("one step", rows(&[(0..20).map(|t| (3 + 2 * t, 7)).collect()]), 2),
        ("down and round", rows(&[(0..20).map(|t| ((5 + 3 * (8 - t % 8)) % 8, t)).collect()]), 2),
        ("a window elsewhere", rows(&[(0..20).map(|t| (16 + (5 + t) % 8, 900 - t)).collect()]), 2),
        ("nothing moves", rows(&[vec![(4, 4); 20]]), 2),
        ("two steps", rows(&[(0..20).flat_map(|t| [(t, 500 - t), (500 + 2 * t, t)]).collect()]), 3),
        ("nested", rows(&[(0..9).flat_map(|t| (0..7).map(move |u| (50 * t + u, 600 - u))).collect()]), 3),
        (
            "nested, with windows within windows",
            rows(&[(0..9)
                .flat_map(|t| (0..8).map(move |u| (8 * ((12 - t) % 10) + (3 + u) % 8, 8 * t + u)))
                .collect()]),
            3,
        ),
        (
            "a step and a loop, repeated",
            rows(&[(0..9)
                .flat_map(|t| [(999 - t, 5)].into_iter().chain((0..20).map(move |u| (50 * t + u, 600))))
                .collect()]),
            4,
        ),
        ("three of five", rows(&[vec![(1, 2), (5, 6), (7, 7), (9, 8), (700, 3)]]), 4),
        ("no window from one jump at the end", rows(&[vec![(4, 0), (5, 1), (6, 2), (7, 3), (2, 4)]]), 3),
        ("no rule", rows(&[vec![(4, 0), (50, 1), (6, 20), (77, 30), (2, 4)]]), 5),
    ] {
        again(&plan);
        assert_eq!(spelled_out(&plan), items, "{name}");
    }
}

/// A rank changed in one number is no longer said to do as another.
#[test]
fn ranks_that_differ_are_written_out() {
    let plan = plans::ring_allreduce(8);
    let right = show(&plan).to_string();
    assert!(right.contains("ranks 1..8, each r: as rank 0 "));
    assert_eq!(right.matches("\nrank ").count(), 1);
    let steps = plan.blocks[5].body.clone();
    let first = plan.steps[steps.start as usize].operands as usize;
    let last = plan.steps[steps.end as usize - 1].operands as usize + 1;
    for at in first..=last {
        let mut other = plan.clone();
        match &mut other.operands[at] {
            Operand::Channel(channel) => channel.0 = (channel.0 + 1) % 8,
            Operand::Local { cell, .. } | Operand::Peer { cell, .. } => *cell = (*cell + 1) % 8,
        }
        let text = show(&other).to_string();
        assert!(text.contains("\nrank 5 block 0"), "{text}");
        assert!(text.contains("ranks 1, 2, 3, 4, 6, 7, each r: as rank 0 "), "{text}");
    }
    let asked = show(&plan).only(&[RankId(5), RankId(2)]).to_string();
    assert!(asked.contains("rank 5 block 0") && asked.contains("rank 2 block 0"));
    assert!(!asked.contains("rank 0 block 0") && !asked.contains("each r"));
}

/// Partners by bits of the rank: no turn takes one rank to the other, but a mirror does.
#[test]
fn mirrored_ranks_are_told_once() {
    let mut p = PlanBuilder::new("halves", "custom", &[8]);
    p.header().cells = 8;
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, 1);
    let blocks: Vec<_> = (0..8).map(|rank| p.block(rank)).collect();
    let mut channels = Vec::new();
    for r in 0..8usize {
        channels.push([1, 2, 4].map(|bit| p.channel(blocks[r], &[blocks[r ^ bit]])));
    }
    for r in 0..8usize {
        for (b, bit) in [1, 2, 4].into_iter().enumerate() {
            p.step(blocks[r], &[local(input, (r ^ bit) as u32)], &[put(channels[r][b])]);
            p.step(blocks[r], &[get(channels[r ^ bit][b])], &[local(output, r as u32)]);
        }
    }
    let text = show(&p.finish().unwrap().plan).to_string();
    let line = "ranks 1..8, each r: as rank 0 with rank p xor r for rank p, \
                and likewise for the 8 parts of input and output";
    assert!(text.ends_with(&format!("\n{line}\n")), "{text}");
}

/// A few loops and single steps, of random rules.
fn moves() -> impl Strategy<Value = Vec<(u32, u32)>> {
    let rule = || (0u32..40, 0u32..9, 1u32..12, 0u32..60);
    let at = |(start, stride, modulus, low): (u32, u32, u32, u32), t| low + (start + stride * t) % modulus;
    let part = (rule(), rule(), rule(), 1u32..5, 1u32..7).prop_map(move |(a, b, c, outer, inner)| {
        let row = |t: u32| (0..inner).map(move |u| (at(a, t) + at(b, u), at(c, t + u)));
        (0..outer).flat_map(row).collect::<Vec<_>>()
    });
    proptest::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
}

/// How many cases a property is tried on: `usual`, and more or fewer as `PROPTEST_CASES` is more or fewer than 256.
fn cases(usual: u32) -> u32 {
    let given = ProptestConfig::default().cases;
    (u64::from(usual) * u64::from(given) / 256).clamp(1, u64::from(u32::MAX)) as u32
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(400), ..ProptestConfig::default() })]

    #[test]
    fn loops_are_what_they_were_made_of(moves in moves()) {
        let plan = copies(1000, &moves);
        again(&plan);
        spelled_out(&plan);
    }

    #[test]
    fn random_plans_are_written_and_read(seed in any::<u64>()) {
        let plan = random::plan(seed);
        again(&plan);
        spelled_out(&plan);
    }

    /// Ranks of one form, with numbers of no rule.
    #[test]
    fn any_numbers_are_written_and_read(
        numbers in proptest::collection::vec(prop_oneof![0u32..9, any::<u32>()], 60),
        wait in any::<u32>(),
    ) {
        let mut plan = plans::ring_plain(4);
        plan.waits = vec![StepId(wait); 2];
        plan.steps[3].wait_count = 2;
        plan.steps.iter_mut().skip(4).for_each(|step| step.waits = 2);
        for (operand, &number) in plan.operands.iter_mut().zip(&numbers) {
            match operand {
                Operand::Channel(channel) => channel.0 = number,
                Operand::Local { cell, .. } => *cell = number,
                Operand::Peer { .. } => {}
            }
        }
        plan.operands[7] = Operand::Peer { rank: RankId(numbers[0]), buffer: BufferId(1), cell: numbers[1] };
        again(&plan);
        spelled_out(&plan);
    }
}
