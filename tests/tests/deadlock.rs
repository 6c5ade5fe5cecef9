//! No standard algorithm ever gets stuck: at any number of ranks, slots and blocks that a compilation is told to count
//! on, with exactly the slots that the plan says it needs, at sizes from one element to a thousand slices, in the worst
//! orders of events.
//!
//! By default a choice of all combinations; with `RCC_TEST_FULL=1` all of them. Wherever a plan says that it needs
//! more than one slot, one slot fewer must stop it: so the executor here can tell a plan that hangs.
#![allow(clippy::disallowed_methods, reason = "how many are tried comes from the environment")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use compiler::elaborate::Request;
use compiler::limits::Limits;
use compiler::options::{Cut, Multicast, Options, Tree};
use compiler::pipeline::{Loaded, load};
use plan::dtype::{Dtype, Op};
use plan::ids::RankId;
use plan::interpret::Call;
use plan::interpret::classes::{Classes, classes};
use plan::interpret::scheduler::{Random, RoundRobin, Scheduler, Starve, Stubborn};
use plan::plan::Plan;
use rcc_tests::naive::number;
use rcc_tests::pace::{Load, Policy, run};
use rcc_tests::{library, oracle};

const SLOTS: [u32; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
const BLOCKS: [u32; 3] = [1, 2, 8];
const MULTICASTS: [Multicast; 4] =
    [Multicast::Flat, Multicast::Channel, Multicast::Tree(Tree::Binomial), Multicast::Tree(Tree::Wide(2))];

/// One compilation.
#[derive(Clone)]
struct Row {
    request: Request,
    options: Options,
    /// Of its own, for every choice that is made at random.
    seed: u64,
}

fn full() -> bool {
    std::env::var("RCC_TEST_FULL").is_ok_and(|value| value == "1")
}

/// Every algorithm at every shape of 2 to 16 ranks; of the options all combinations, or by default all at two and three
/// ranks and otherwise one each, such that each of them comes by at every algorithm.
fn rows(loaded: &Loaded) -> Vec<Row> {
    let mut rows = Vec::new();
    for (a, algorithm) in library::algorithms(loaded).into_iter().enumerate() {
        for ranks in 2..=16 {
            for request in library::requests(loaded, algorithm, ranks) {
                let turn = a as u64 + u64::from(ranks) * 5 + u64::from(request.shape[0]) * 11;
                for (i, (slots, blocks)) in
                    SLOTS.iter().flat_map(|&slots| BLOCKS.map(|blocks| (slots, blocks))).enumerate()
                {
                    if !full() && ranks > 3 && turn % 24 != i as u64 {
                        continue;
                    }
                    let seed = number(turn, i as u64);
                    // Now and then narrow steps, or none that are fused.
                    let operands = [64, 64, 2, 3][seed as usize % 4];
                    let fuse = !(seed / 4).is_multiple_of(5);
                    let multicast = MULTICASTS[seed as usize / 20 % 4];
                    let cut = [Cut::Whole, Cut::Parts][seed as usize / 80 % 2];
                    let options =
                        Options { slots, blocks, operands, fuse, multicast, cut, ..Options::default() };
                    rows.push(Row { request: request.clone(), options, seed });
                }
            }
        }
    }
    rows
}

/// Does `check` for every row on two threads; panics with the shortest of what is wrong.
fn all(loaded: &Loaded, rows: &[Row], check: &(dyn Fn(&Row) -> Result<bool, String> + Sync)) -> usize {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let wrong: Mutex<Vec<(usize, String)>> = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // A panic is told with its row, too.
                    let checked = catch_unwind(AssertUnwindSafe(|| check(row)));
                    match checked.unwrap_or_else(|_| Err("a panic".to_string())) {
                        Ok(ran) => {
                            done.fetch_add(usize::from(ran), Ordering::Relaxed);
                        }
                        Err(what) => {
                            let ranks: u32 = row.request.shape.iter().product();
                            let Options { slots, blocks, operands, fuse, multicast, cut, .. } = row.options;
                            let named = library::named(loaded, &row.request);
                            let options =
                                format!("slots {slots} blocks {blocks} operands {operands} fuse {fuse} multicast {multicast:?} cut {cut:?}");
                            wrong
                                .lock()
                                .unwrap()
                                .push((ranks as usize, format!("{named}, {options}: {what}")));
                        }
                    }
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().unwrap();
    wrong.sort();
    let told: Vec<&str> = wrong.iter().take(20).map(|(_, what)| what.as_str()).collect();
    assert!(wrong.is_empty(), "{} of {} rows are wrong:\n{}", wrong.len(), rows.len(), told.join("\n"));
    done.into_inner()
}

/// Elements so that the largest cell has about so many slices of `per_slice` elements, and cells differ in length.
fn elements(plan: &Plan, slices: u64, per_slice: u64) -> u64 {
    let cells = u64::from(plan.header.cells) * u64::from(plan.header.copies);
    (cells * slices * per_slice).saturating_sub(cells / 2).max(1)
}

fn policies(plan: &Plan, seed: u64) -> [Policy; 5] {
    let victim = RankId(number(seed, 1) as u32 % plan.header.ranks);
    [Policy::Lockstep, Policy::LastMoved, Policy::Downstream, Policy::Starve(victim), Policy::Random(seed)]
}

/// All sizes with `k_min` slots; events are many, so the long runs of large plans are left to some rows by default.
fn never_stuck(plan: &Plan, classes: &Classes, seed: u64) -> Result<(), String> {
    let events: u64 = plan.steps.iter().map(|step| u64::from(step.width)).sum();
    let most = if full() { u64::MAX } else { 1_000_000 };
    let policies = policies(plan, seed);
    let mut turn = seed as usize;
    for slices in [0, 1, 2, 3, 7, 1000] {
        // 16 bytes, of 4 elements, or 64, which take several short cells at once.
        let slot_bytes = [16, 64][turn / 5 % 2];
        let elements = match slices {
            0 => 1,
            _ if events * slices > most && slices > 3 => elements(plan, (most / events).clamp(2, slices), 4),
            _ => elements(plan, slices, u64::from(slot_bytes) / 4),
        };
        for (elide, group) in [(true, true), (false, false), (true, false)] {
            if slices > 7 && !(elide && group) && !full() {
                continue;
            }
            let load =
                Load { elements, dtype: Dtype::I32, slot_bytes, slots: plan.header.k_min, elide, group };
            let policy = policies[turn % policies.len()];
            turn += 1;
            run(plan, classes, &load, policy).map_err(|e| format!("{load:?}, {policy:?}: {e}"))?;
        }
    }
    Ok(())
}

/// With fewer slots than stated some size hangs: one where every message is sent on its own.
fn stuck_below(plan: &Plan, classes: &Classes) -> Result<(), String> {
    let fewer = plan.header.k_min - 1;
    if fewer == 0 {
        return Ok(());
    }
    let elements = elements(plan, 1, 4);
    let load = Load { elements, dtype: Dtype::I32, slot_bytes: 16, slots: fewer, elide: false, group: false };
    match run(plan, classes, &load, Policy::Lockstep) {
        Ok(_) => Err(format!("it states k_min = {}, but {fewer} do", plan.header.k_min)),
        Err(_) => Ok(()),
    }
}

#[test]
fn no_algorithm_gets_stuck_at_any_size() {
    let limits = Limits::default();
    let loaded = load(&[], &limits);
    let rows = rows(&loaded);
    let needs_more = AtomicUsize::new(0);
    let ran = all(&loaded, &rows, &|row| {
        let Some(compiled) = library::compiled(&loaded, &row.request, &row.options, &limits)? else {
            return Ok(false);
        };
        let plan = compiled.plan.plan();
        if plan.header.k_min > row.options.slots {
            return Err(format!("k_min is {}", plan.header.k_min));
        }
        let ranks = (0..plan.header.ranks).map(RankId);
        let blocks = ranks.map(|rank| plan.blocks_of(rank).len()).max().unwrap_or(0);
        if blocks > row.options.blocks as usize {
            return Err(format!("a rank has {blocks} blocks"));
        }
        let classes = classes(plan).map_err(|e| e.to_string())?;
        needs_more.fetch_add(usize::from(plan.header.k_min > 1), Ordering::Relaxed);
        stuck_below(plan, &classes)?;
        never_stuck(plan, &classes, row.seed)?;
        Ok(true)
    });
    println!("{ran} plans, {} of them need more than one slot", needs_more.into_inner());
    assert!(ran > 1000, "{ran}");
}

/// With data, under the oracle, with exactly `k_min` slots.
#[test]
fn the_tightest_runs_leave_what_is_promised() {
    let limits = Limits::default();
    let loaded = load(&[], &limits);
    let rows = rows(&loaded);
    let ran = all(&loaded, &rows, &|row| {
        let Some(compiled) = library::compiled(&loaded, &row.request, &row.options, &limits)? else {
            return Ok(false);
        };
        let plan = compiled.plan.plan();
        for (turn, in_place) in oracle::forms(plan).enumerate() {
            let turn = row.seed as usize + turn;
            let op = Op::ALL[turn % Op::ALL.len()];
            let op = if op.has_post() && !plan.header.serves_post { Op::Sum } else { op };
            let elements = [1, 3, 13, 40][turn / 2 % 4] + elements(plan, turn as u64 / 8 % 3, 4);
            let call = Call {
                in_place,
                slots: plan.header.k_min,
                slot_bytes: [16, 40, 4096][turn / 3 % 3],
                elide: turn.is_multiple_of(2),
                group: turn % 4 < 2,
                ..Call::new(elements, Dtype::ALL[turn % Dtype::ALL.len()], op)
            };
            let victim = turn as u32 % plan.blocks.len().max(1) as u32;
            let scheduler: &mut dyn Scheduler = match turn / 5 % 5 {
                0 => &mut RoundRobin::default(),
                1 => &mut Stubborn::new(true),
                2 => &mut Stubborn::new(false),
                3 => &mut Starve { victim },
                _ => &mut Random::new(row.seed),
            };
            oracle::run(plan, &call, scheduler).map_err(|e| format!("{call:?}: {e}"))?;
        }
        Ok(true)
    });
    println!("{ran} plans");
    assert!(ran > 1000, "{ran}");
}
