//! Folded plans against plans of all ranks: the same programs, made by the whole pipeline that follows every rank.

use plan::collective::BlockRef;
use plan::file::LoadLimits;
use plan::fold::Folded;
use plan::ids::{BlockId, RankId};
use plan::plan::{Operand, Plan, ProofStatus};
use plan::verify::Limits as PlanLimits;
use rcc_compiler::limits::Limits;
use rcc_compiler::options::{Direct, Options};
use rcc_compiler::pipeline::{self, Loaded, NotByOne};
use rcc_compiler::symmetry::Unfolded;
use rcc_compiler::trace::Params;

use crate::layouts;

pub(crate) fn loaded(text: &str) -> Loaded {
    let files: Vec<(String, Vec<u8>)> = match text {
        "" => Vec::new(),
        _ => vec![("test.coll".to_string(), text.as_bytes().to_vec())],
    };
    let loaded = pipeline::load(&files, &Limits::default());
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    loaded
}

/// What two plans must agree in, in an order that does not depend on who made them.
fn told(plan: &Plan) -> (Vec<(BlockRef, Vec<BlockRef>)>, Plan) {
    let mut plan = plan.clone();
    let mut clauses: Vec<_> = (plan.promise.clauses.iter())
        .map(|clause| {
            let mut list = plan.promise.lists[clause.list as usize].clone();
            list.sort_unstable();
            (clause.place, list)
        })
        .collect();
    clauses.sort_unstable();
    plan.promise.clauses.clear();
    plan.promise.lists.clear();
    plan.header.proof = ProofStatus::None;
    plan.overlaps.sort_by_key(|overlap| (overlap.rank, overlap.left, overlap.left_cell));
    (clauses, plan)
}

/// Compiles both ways; whether the folded plan is the very same.
fn compare(loaded: &Loaded, name: &str, shape: &[u32], options: &Options) -> Result<bool, Unfolded> {
    compare_if_alike(loaded, name, shape, options)
        .unwrap_or_else(|why| panic!("{name} at {shape:?} is not symmetric: {why}"))
}

/// The same; why not if ranks are not seen to be alike, or if the program is wrong, which both must say.
pub(crate) fn compare_if_alike(
    loaded: &Loaded,
    name: &str,
    shape: &[u32],
    options: &Options,
) -> Result<Result<bool, Unfolded>, String> {
    let algorithm = loaded.program.find(name).unwrap();
    let request =
        rcc_compiler::elaborate::Request { algorithm, shape: shape.to_vec(), params: Params::new() };
    let limits = Limits::default();
    let by_one = pipeline::compile_by_one(loaded, &request, options, &limits, &mut |_| {});
    let whole = pipeline::compile(loaded, &request, options, &limits, &mut |_| {});
    let (by_one, whole) = match (by_one, whole) {
        (Ok(by_one), Ok(whole)) => (by_one, whole),
        (Err(NotByOne::Unlike(why)), _) => return Err(why.title),
        (Err(NotByOne::Failed(_)), Err(_)) => return Err("it is wrong".to_string()),
        (Err(NotByOne::Failed(why)), Ok(_)) => panic!("{name} at {shape:?}, by one rank only: {why:?}"),
        (Ok(_), Err(why)) => panic!("{name} at {shape:?}, as a whole only: {why:?}"),
    };
    let folded = match by_one.plan {
        Ok(folded) => folded,
        Err(why) => return Ok(Err(why)),
    };
    assert_eq!(folded.folded().plan.header.proof, ProofStatus::BySymmetry);
    let unfolded =
        folded.unfold(&PlanLimits::default()).unwrap_or_else(|why| panic!("{name} at {shape:?}: {}", why[0]));
    let (of_fold, of_whole) = (told(unfolded.plan()), told(whole.plan.plan()));
    assert_eq!(of_fold.0, of_whole.0, "{name} at {shape:?}: the promise");
    let same = of_fold.1 == of_whole.1;
    // As a plan of all ranks it is judged by what follows every rank: V0 to V5 and V7 (`unfold`), and V6.
    let mut plan = unfolded.into_plan();
    plan.promise = whole.plan.plan().promise.clone();
    let plan = plan::verify::verify(plan, &PlanLimits::default()).unwrap();
    let (trace, graph) = pipeline::traced(loaded, &request, options.bytes, &limits).unwrap();
    rcc_compiler::validate::validate(&trace, &rcc_compiler::graph::Ends::new(&graph), &plan)
        .unwrap_or_else(|why| panic!("{name} at {shape:?}: {why:?}"));
    Ok(Ok(same))
}

/// What is laid out alike at all ranks is the very plan of all ranks; two slots leave rings room to do so.
#[test]
fn a_folded_plan_is_the_plan_of_all_ranks() {
    let loaded = loaded("");
    for name in [
        "std::allreduce::ring",
        "std::allgather::ring",
        "std::reducescatter::ring",
        "std::barrier::dissemination",
        "std::alltoall::direct",
    ] {
        for n in 2..=16 {
            assert_eq!(compare(&loaded, name, &[n], &Options::default()), Ok(true), "{name} at {n}");
        }
    }
    for shape in [[2, 2], [2, 3], [3, 2], [4, 4], [5, 3]] {
        let found = compare(&loaded, "std::alltoall::two_level", &shape, &Options::default());
        assert!(found.is_ok(), "{shape:?}: {found:?}");
    }
}

/// All to all at once, written so that moves come in other orders than those of the ranks that read.
const AT_ONCE: &str = "
algorithm together on ranks[n] implements allgather {
    step for r in 0..n { output[r] @ * = input @ r }
}
algorithm in_turn on ranks[n] implements allgather {
    for r in 0..n { output[r] @ * = input @ r }
}
algorithm one_by_one on ranks[n] implements allgather {
    for r in 0..n, q in 0..n { output[r] @ q = input @ r }
}
algorithm in_a_step on ranks[n] implements allgather {
    step for q in 0..n, r in 0..n rev { output[r] @ q = input @ r }
}
algorithm in_chunks on ranks[n] implements allgather {
    chunks 2
    for r in 0..n rev, c in 0..2 { output[r][c] @ * = input[c] @ r }
}
";

/// Where ranks give way to each other the two may differ, and there may be none; but what there is, is right. Each program
/// meets each layout of the list at some number of ranks.
#[test]
fn folded_plans_are_right_however_they_are_laid_out() {
    let loaded = loaded(AT_ONCE);
    let list: Vec<Options> =
        layouts::every_pair().into_iter().map(|o| Options { direct: Direct::Never, ..o }).collect();
    let (mut made, mut none) = (0, 0);
    for (turn, name) in [
        "std::allreduce::ring",
        "std::allgather::ring",
        "std::allgather::bruck",
        "std::reducescatter::ring",
        "std::alltoall::bruck",
        "std::alltoall::direct",
        "std::barrier::dissemination",
        "together",
        "in_turn",
        "one_by_one",
        "in_a_step",
        "in_chunks",
    ]
    .into_iter()
    .enumerate()
    {
        for (row, options) in list.iter().enumerate() {
            let n = 2 + (row + turn) as u32 % 9;
            match compare(&loaded, name, &[n], options) {
                Ok(_) => made += 1,
                Err(why) => {
                    assert!(
                        matches!(why, Unfolded::Unlike | Unfolded::Parts),
                        "{name} at {n}, {options:?}: {why:?}"
                    );
                    none += 1;
                }
            }
        }
    }
    println!("{made} folded plans, {none} times there is none");
    assert!(none * 3 < made, "{none} have none, {made} have one");
}

/// Of a step whose moves the walk meets in another order than they are written in, each keeps its own source.
#[test]
fn direct_exchanges_are_folded_as_they_are_written() {
    let loaded = loaded(AT_ONCE);
    for name in ["together", "in_turn", "one_by_one", "in_a_step", "in_chunks"] {
        for n in 2..=8 {
            let found = compare(&loaded, name, &[n], &Options::default());
            assert!(found.is_ok(), "{name} at {n}: {found:?}");
        }
    }
}

/// Labels may leave fewer ranks alike: every second or third, say.
#[test]
fn channels_of_labels_are_folded_where_they_are_the_same() {
    let (mut alike, mut same) = (0, 0);
    for channel in ["1", "hop", "hop % 2", "c % 2", "(c + hop) % 2", "c % 3", "c / 2"] {
        let text = format!(
            "algorithm ring on ranks[n] implements allreduce {{
                chunks n
                'up: for hop in 0..n-1, c in 0..n {{ data[c] @ (c + hop + 1) % n += data[c] @ (c + hop) % n }}
                for hop in n-1..2*n-2, c in 0..n {{ data[c] @ (c + hop + 1) % n = data[c] @ (c + hop) % n }}
            }}
            schedule for ring {{ 'up {{ channel {channel} }} }}"
        );
        let loaded = loaded(&text);
        for n in 2..=9 {
            let algorithm = loaded.program.find("ring").unwrap();
            let request =
                rcc_compiler::elaborate::Request { algorithm, shape: vec![n], params: Params::new() };
            match pipeline::prove_by_one(&loaded, &request, None, &Limits::default(), &mut |_| {}) {
                Ok(_) => alike += 1,
                Err(NotByOne::Unlike(_)) => continue,
                Err(NotByOne::Failed(why)) => panic!("channel {channel} at {n}: {why:?}"),
            }
            for slots in [2, 8] {
                match compare(&loaded, "ring", &[n], &Options { slots, ..Options::default() }) {
                    Ok(equal) => same += u32::from(equal),
                    Err(why) => assert_eq!(why, Unfolded::Unlike, "channel {channel} at {n}"),
                }
            }
        }
    }
    assert!(alike > 28 && same > 28, "{alike} {same}");
}

/// Combined in rank order, which is another order at each rank: no rank speaks for another's bits.
#[test]
fn what_is_combined_in_rank_order_is_not_folded() {
    let loaded = loaded("");
    for name in ["std::allreduce::one_shot", "std::allreduce::two_shot"] {
        assert_eq!(compare(&loaded, name, &[6], &Options::default()), Err(Unfolded::Order), "{name}");
    }
}

#[test]
fn files_are_read_as_they_were_written() {
    let loaded = loaded("");
    for (name, n) in
        [("std::allreduce::ring", 1000), ("std::alltoall::bruck", 12), ("std::barrier::dissemination", 9)]
    {
        let folded = folded(&loaded, name, n);
        let bytes = folded.to_bytes();
        assert!(bytes.len() < 4096, "{name}: {} bytes", bytes.len());
        assert!(Folded::begins(&bytes) && Plan::from_bytes(&bytes, &LoadLimits::default()).is_err());
        assert_eq!(Folded::from_bytes(&bytes, &LoadLimits::default()), Ok(folded));
        for at in (0..bytes.len()).step_by(7) {
            let mut spoilt = bytes.clone();
            spoilt[at] ^= 0x10;
            assert!(Folded::from_bytes(&spoilt, &LoadLimits::default()).is_err());
            assert!(Folded::from_bytes(&bytes[..at], &LoadLimits::default()).is_err());
        }
    }
}

fn folded(loaded: &Loaded, name: &str, n: u32) -> Folded {
    let algorithm = loaded.program.find(name).unwrap();
    let request = rcc_compiler::elaborate::Request { algorithm, shape: vec![n], params: Params::new() };
    let by_one =
        pipeline::compile_by_one(loaded, &request, &Options::default(), &Limits::default(), &mut |_| {});
    let Ok(by_one) = by_one else { panic!("{name} at {n}") };
    by_one.plan.unwrap_or_else(|why| panic!("{name} at {n}: {why:?}")).folded().clone()
}

/// The program of one rank, as it is shown, is its part of the plan of all.
#[test]
fn one_rank_is_shown_as_it_stands_in_the_whole() {
    let loaded = loaded("");
    for (name, n) in
        [("std::allreduce::ring", 5), ("std::alltoall::bruck", 6), ("std::barrier::dissemination", 9)]
    {
        let verified = plan::verify::verify_folded(folded(&loaded, name, n), &PlanLimits::default()).unwrap();
        let whole = verified.unfold(&PlanLimits::default()).unwrap();
        for rank in (0..n).map(RankId) {
            let one = verified.rank(rank);
            let named = |plan: &Plan, operand: &Operand| match *operand {
                Operand::Channel(c) => {
                    let channel = &plan.channels[c.index()];
                    let end = |b: BlockId| (plan.blocks[b.index()].rank, plan.blocks[b.index()].position);
                    let readers: Vec<_> = plan.readers(channel).iter().map(|&b| end(b)).collect();
                    format!("{:?} {:?} {readers:?}", channel.kind, end(channel.writer))
                }
                other => format!("{other:?}"),
            };
            let steps = |plan: &Plan| -> Vec<_> {
                let blocks = plan.blocks_of(rank);
                let first = blocks[0].prologue.start;
                let ids = blocks.iter().flat_map(|b| b.prologue.start..b.epilogue.end);
                ids.map(|id| {
                    let step = &plan.steps[id as usize];
                    let told =
                        |operands: &[Operand]| operands.iter().map(|o| named(plan, o)).collect::<Vec<_>>();
                    let waits: Vec<u32> = plan.waits(step).iter().map(|wait| wait.0 - first).collect();
                    (told(plan.src(step)), told(plan.dst(step)), waits, step.width, step.span)
                })
                .collect()
            };
            assert_eq!(steps(&one), steps(whole.plan()), "{name} at {n}, rank {rank:?}");
        }
    }
}

/// Random changes of folded plans: refused exactly if the plan of all ranks is, by the rules that follow every rank.
#[test]
fn mutants_are_refused_exactly_if_the_whole_is() {
    let loaded = loaded("");
    let limits = PlanLimits::default();
    let (mut accepted, mut refused) = (0, 0);
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below.max(1) as u64) as usize
    };
    for (name, n) in [
        ("std::allreduce::ring", 4),
        ("std::allgather::ring", 5),
        ("std::allgather::bruck", 6),
        ("std::alltoall::bruck", 4),
        ("std::alltoall::direct", 4),
        ("std::barrier::dissemination", 6),
    ] {
        let original = folded(&loaded, name, n);
        for _ in 0..250 {
            let mut mutant = original.clone();
            for _ in 0..=random(2) {
                mutate(&mut mutant, &mut random);
            }
            let by_one = plan::verify::verify_folded(mutant.clone(), &limits);
            match mutant.unfold(&limits) {
                Err(_) => assert!(by_one.is_err(), "{name}: {:?}", mutant.misfit()),
                Ok(whole) => {
                    let whole = plan::verify::verify(whole, &limits);
                    let told = |verdict: Result<(), Vec<plan::verify::Violation>>| {
                        verdict.map_err(|all| all[0].to_string())
                    };
                    let (a, b) = (told(by_one.map(|_| ())), told(whole.map(|_| ())));
                    assert_eq!(a.is_ok(), b.is_ok(), "{name}: folded {a:?}, whole {b:?}");
                    if a.is_ok() { accepted += 1 } else { refused += 1 }
                }
            }
        }
    }
    assert!(accepted > 20 && refused > 200, "{accepted} {refused}");
}

/// Small ones in the words of all ranks; of others at least what the step at fault does is told of the rank as it is.
#[test]
fn what_is_refused_is_told_of_the_ranks_as_they_are() {
    let loaded = loaded("");
    let mut limits = PlanLimits::default();
    limits.target.connections_per_rank = 1;
    let told = |n: u32| {
        let all =
            plan::verify::verify_folded(folded(&loaded, "std::allreduce::ring", n), &limits).unwrap_err();
        assert!(all.iter().all(|one| one.code() == "plan::v7_target_limit"), "{all:?}");
        all
    };
    let small = told(5);
    assert_eq!(small.len(), 5);
    // Of 2,046 × 1,024 steps only those of one rank are looked at.
    let large = told(1024);
    assert_eq!(large.len(), 1);
    let ring = stdlib::FILES.iter().find(|file| file.0 == "std/allreduce/ring.coll").unwrap().1;
    let combine = 1 + ring.lines().position(|line| line.contains(" += ")).unwrap() as u32;
    for (n, violation) in [(5, &small[0]), (1024, &large[0])] {
        let [site] = &violation.sites[..] else { panic!("{violation}") };
        assert_eq!(
            (site.rank, site.index, site.line.as_ref().unwrap().line),
            (RankId(0), 1, combine),
            "{violation}"
        );
        let (last, next) = (format!("← rank {}", n - 1), "→ rank 1");
        assert!(site.does.contains(&last) && site.does.contains(next), "{violation}");
    }
    // A receive that nobody sends for, and a circle.
    let mut limits = PlanLimits::default();
    limits.target.connections_per_rank = 9;
    let mut wrong = folded(&loaded, "std::allreduce::ring", 6);
    wrong.plan.header.k_min = 1;
    // All ranks have 66 steps: too many for this limit, which is not what is wrong.
    let few = PlanLimits { micro_steps: 40, ..limits.clone() };
    assert_eq!(
        plan::verify::verify_folded(wrong.clone(), &few).unwrap_err()[0].code(),
        "plan::v2_slot_count"
    );
    let all = plan::verify::verify_folded(wrong, &limits).unwrap_err();
    assert_eq!(all[0].code(), "plan::v2_slot_count");
    let ranks: std::collections::BTreeSet<u32> = all[0].sites.iter().map(|site| site.rank.0).collect();
    assert_eq!(ranks, (0..6).collect(), "{}", all[0]);
}

fn mutate(folded: &mut Folded, random: &mut impl FnMut(usize) -> usize) {
    let plan = &mut folded.plan;
    let order = plan.header.ranks / folded.rotation.step;
    match random(9) {
        0 => {
            let at = random(plan.operands.len());
            if let Some(Operand::Local { cell, .. }) = plan.operands.get_mut(at) {
                *cell = random(*cell as usize + 3) as u32;
            }
        }
        1 => {
            let (a, b) = (random(plan.operands.len()), random(plan.operands.len()));
            plan.operands.swap(a, b);
        }
        2 => {
            let (a, b) = (random(plan.steps.len()), random(plan.steps.len()));
            if plan.steps[a].sources == plan.steps[b].sources
                && plan.steps[a].destinations == plan.steps[b].destinations
            {
                let count = usize::from(plan.steps[a].sources + plan.steps[a].destinations);
                for i in 0..count {
                    plan.operands
                        .swap(plan.steps[a].operands as usize + i, plan.steps[b].operands as usize + i);
                }
            }
        }
        3 => {
            let at = random(folded.times.len());
            if let Some(times) = folded.times.get_mut(at) {
                *times = random(order as usize) as u32;
            }
        }
        4 => {
            let at = random(folded.rotation.buffers.len());
            let turn = &mut folded.rotation.buffers[at];
            let blocks = plan.buffers[at].blocks;
            match random(2) {
                0 => turn.blocks = random(blocks as usize) as u32,
                _ => turn.cells = random(plan.header.cells as usize) as u32,
            }
        }
        5 => plan.header.k_min = 1 + random(3) as u32,
        6 => {
            let at = random(plan.promise.lists.len());
            if let Some(list) = plan.promise.lists.get_mut(at) {
                let operand = random(list.len());
                list[operand].rank = RankId(random(plan.header.ranks as usize) as u32);
                list[operand].block = random(2) as u32;
            }
        }
        7 => {
            let at = random(plan.steps.len());
            let step = &mut plan.steps[at];
            match random(4) {
                0 => step.post ^= true,
                3 => step.pre.0 ^= 1 << random(2),
                1 => step.round_each ^= true,
                _ => step.width = 1 + random(2) as u32,
            }
        }
        _ => {
            let (a, b) = (random(folded.times.len()), random(folded.times.len()));
            if !folded.times.is_empty() {
                folded.times.swap(a, b);
            }
        }
    }
}
