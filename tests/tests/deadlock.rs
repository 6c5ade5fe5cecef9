//! No standard algorithm ever gets stuck: at any number of ranks, whatever layout a compilation is told to make, with
//! labels and schedules too, with exactly the slots that the plan says it needs, at sizes from one element to a
//! thousand slices, in the worst orders of events.
//!
//! Every algorithm meets every layout of the list of all pairs, and others at random; by default at one shape each, with
//! `RCC_TEST_FULL=1` at all. Wherever a plan says that it needs more than one slot, one slot fewer must stop it: so
//! the executor here can tell a plan that hangs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use compiler::elaborate::{self, Request};
use compiler::limits::Limits;
use compiler::options::Options;
use compiler::pipeline::{Loaded, load};
use plan::dtype::{Dtype, Op};
use plan::ids::RankId;
use plan::interpret::Call;
use plan::interpret::classes::{Classes, classes};
use plan::interpret::scheduler::{Random, RoundRobin, Scheduler, Starve, Stubborn};
use plan::plan::Plan;
use rcc_tests::draw::{self, Draw};
use rcc_tests::mutate::Dice;
use rcc_tests::naive::number;
use rcc_tests::pace::{Load, Policy, run};
use rcc_tests::schedules::Asked;
use rcc_tests::{layouts, library, oracle};

/// One compilation.
struct Row<'a> {
    loaded: &'a Loaded,
    request: Request,
    options: Options,
    /// Of its own, for every choice that is made at random.
    seed: u64,
    /// A thousand slices, whatever that takes (in full runs).
    long: bool,
}

/// The standard library as it is; and each file of it with labels and schedules, with the sizes that these tell apart.
struct Programs {
    plain: Loaded,
    scheduled: Vec<(Loaded, Vec<u64>)>,
}

fn programs(seed: u64) -> Programs {
    let mut draw = Draw::new(seed, 1);
    let scheduled = library::trees().into_iter().map(|(_, file)| {
        let (loaded, made) = library::scheduled(&file, Asked::Anything, &mut draw);
        (loaded, made.sizes)
    });
    let scheduled = scheduled.collect();
    Programs { plain: load(&[], &Limits::default()), scheduled }
}

/// Every algorithm at every shape of 2 to 16 ranks; every layout of the list at one of them (at all, in full runs), and each
/// time one at random of the same program with a schedule.
fn rows(programs: &Programs, seed: u64) -> Vec<Row<'_>> {
    let list = layouts::every_pair();
    let mut draw = Draw::new(seed, 2);
    let mut rows = Vec::new();
    let plain = &programs.plain;
    let limits = Limits::default();
    for algorithm in library::algorithms(plain) {
        let requests = allowed(plain, algorithm, &limits);
        let turn = draw.below(requests.len());
        for (r, request) in requests.iter().enumerate() {
            for (i, &options) in list.iter().enumerate() {
                if draw::full() || (i + turn) % requests.len() == r {
                    // Rows of the list follow each other by slots: of each number some are long.
                    let (request, seed, long) = (request.clone(), draw.number(), (i + r) % 4 == 0);
                    rows.push(Row { loaded: plain, request, options, seed, long });
                }
            }
        }
    }
    for (loaded, sizes) in &programs.scheduled {
        for algorithm in library::own(loaded) {
            for request in allowed(loaded, algorithm, &limits) {
                for _ in 0..if draw::full() { 8 } else { 1 } {
                    let bytes = (!sizes.is_empty() && draw.chance(70)).then(|| *draw.of(sizes));
                    let options = Options { bytes, ..layouts::any(&mut |bound| draw.below(bound)) };
                    let (request, seed, long) = (request.clone(), draw.number(), draw.chance(25));
                    rows.push(Row { loaded, request, options, seed, long });
                }
            }
        }
    }
    rows
}

/// The shapes that no `require` excludes.
fn allowed(
    loaded: &Loaded,
    algorithm: compiler::check::checked::AlgorithmId,
    limits: &Limits,
) -> Vec<Request> {
    let all = (2..=16).flat_map(|ranks| library::requests(loaded, algorithm, ranks));
    let excluded = |request: &Request| {
        matches!(
            elaborate::elaborate(&loaded.program, request, limits),
            Err(elaborate::Error::Excluded { .. })
        )
    };
    all.filter(|request| !excluded(request)).collect()
}

/// Does `check` for every row on two threads; panics with the shortest of what is wrong.
fn all(rows: &[Row<'_>], check: &(dyn Fn(&Row<'_>) -> Result<(), String> + Sync)) -> usize {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let wrong: Mutex<Vec<(usize, String)>> = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // A panic is told with its row, too.
                    let checked = catch_unwind(AssertUnwindSafe(|| check(row)));
                    match checked.unwrap_or_else(|_| Err("a panic".to_string())) {
                        Ok(()) => {
                            done.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(what) => {
                            let ranks: u32 = row.request.shape.iter().product();
                            let named = library::named(row.loaded, &row.request);
                            let what = format!("{named}, {:?}: {what}", row.options);
                            wrong.lock().unwrap().push((ranks as usize, what));
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

/// All sizes with `k_min` slots; events are many, so the long runs are left to some rows by default, and those of large plans
/// to full runs.
fn never_stuck(plan: &Plan, classes: &Classes, seed: u64, long: bool) -> Result<(), String> {
    let events: u64 = plan.steps.iter().map(|step| u64::from(step.width)).sum();
    let most = match (draw::full(), long) {
        (true, true) => u64::MAX,
        (true, false) => 200_000,
        (false, true) => 1_000_000,
        (false, false) => 50_000,
    };
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
            if slices > 7 && !(elide && group) && !(long && draw::full()) {
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
    let seed = draw::seed();
    let programs = programs(seed);
    let rows = rows(&programs, seed);
    let needs_more = AtomicUsize::new(0);
    let ran = all(&rows, &|row| {
        let compiled = library::compiled(row.loaded, &row.request, &row.options, &limits)?;
        let compiled = compiled.ok_or("a shape that is allowed is excluded")?;
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
        never_stuck(plan, &classes, row.seed, row.long)?;
        Ok(())
    });
    println!("{ran} plans, {} of them need more than one slot", needs_more.into_inner());
    assert!(ran > 3000, "{ran}");
}

/// With data, under the oracle, with exactly `k_min` slots.
#[test]
fn the_tightest_runs_leave_what_is_promised() {
    let limits = Limits::default();
    let seed = draw::seed();
    let programs = programs(seed);
    let rows = rows(&programs, seed);
    let ran = all(&rows, &|row| {
        let compiled = library::compiled(row.loaded, &row.request, &row.options, &limits)?;
        let compiled = compiled.ok_or("a shape that is allowed is excluded")?;
        let plan = compiled.plan.plan();
        for (turn, in_place) in oracle::forms(plan).enumerate() {
            let turn = row.seed as usize + turn;
            let op = Op::ALL[turn % Op::ALL.len()];
            let op = if plan.header.serves(op) { op } else { Op::Sum };
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
        Ok(())
    });
    println!("{ran} plans");
    assert!(ran > 3000, "{ran}");
}
