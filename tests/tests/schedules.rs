//! Schedules at random, for the standard algorithms, programs with multicasts and all right golden files: they print as
//! they parse, and change no result.
//!
//! The reference is the program without a schedule: the same moves, the same bits, or the same fault; and the
//! definition of its collective. `RCC_TEST_SEED` repeats a run.
#![allow(clippy::disallowed_methods, reason = "golden files are read from the source tree")]

use std::fs;
use std::path::{Path, PathBuf};

use compiler::elaborate::{Request, elaborate_scheduled};
use compiler::limits::Limits;
use compiler::options::Options;
use compiler::pipeline::{Compiled, Failure, Loaded, choose, compile, load};
use compiler::trace::{Move, Trace};
use grammar::ast::{self, Item, Stmt};
use grammar::print::print;
use grammar::span::FileId;
use grammar::{ParseLimits, eq_modulo_spans, parse};
use plan::dtype::{Dtype, Op};
use plan::interpret::Call;
use plan::interpret::scheduler::{Random, RoundRobin};
use plan::plan::Plan;
use plan::verify::VerifiedPlan;
use rcc_tests::draw::{self, Draw};
use rcc_tests::mutate::Dice;
use rcc_tests::programs::MULTICASTS;
use rcc_tests::schedules::Asked;
use rcc_tests::{layouts, library, oracle};
use runtime::exec::Shape;
use runtime::job::threads::run_threads;
use runtime::job::{Inputs, Job};

fn read(text: &str) -> Option<ast::File> {
    let parsed = parse(FileId(0), text, &ParseLimits::default());
    parsed.errors.is_empty().then_some(parsed.file)
}

/// Every program that has no labels and no schedule yet.
fn programs() -> Vec<(String, ast::File)> {
    let mut all: Vec<(String, ast::File)> =
        library::trees().into_iter().map(|(name, file)| (name.to_string(), file)).collect();
    let standard = all.len();
    all.push(("multicasts".to_string(), read(MULTICASTS).expect("right")));
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/accept");
    let mut folders: Vec<PathBuf> = vec![golden];
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "coll")
                && let Some(file) = fs::read_to_string(&path).ok().and_then(|text| read(&text))
                && !has_schedule(&file)
            {
                all.push((path.display().to_string(), file));
            }
        }
    }
    assert!(standard > 20 && all.len() > standard + 40, "{} programs", all.len());
    all
}

fn has_schedule(file: &ast::File) -> bool {
    fn labelled(body: &[Stmt]) -> bool {
        body.iter().any(|stmt| match stmt {
            Stmt::Labelled(_) => true,
            Stmt::For(inside) => labelled(&inside.body),
            Stmt::Step(inside) => labelled(&inside.body),
            Stmt::If(inside) => labelled(&inside.then) || labelled(&inside.otherwise),
            _ => false,
        })
    }
    file.items.iter().any(|item| match item {
        Item::Schedule(_) => true,
        Item::Algorithm(algorithm) => labelled(&algorithm.body),
        _ => false,
    })
}

#[test]
fn random_schedules_print_as_they_parse() {
    let mut draw = Draw::new(draw::seed(), 1);
    let programs = programs();
    let mut clauses = 0;
    for _ in 0..if draw::full() { 20_000 } else { 1000 } {
        let (name, file) = draw.of(&programs);
        let text = rcc_tests::schedules::scheduled(file, Asked::Anything, &mut draw).text;
        let parsed = parse(FileId(0), &text, &ParseLimits::default());
        assert!(parsed.errors.is_empty(), "{name}: {:?}\n{text}", parsed.errors);
        let printed = print(&parsed.file);
        let again = parse(FileId(0), &printed, &ParseLimits::default());
        assert!(again.errors.is_empty(), "{name}: {:?}\n{printed}\nfrom\n{text}", again.errors);
        assert!(eq_modulo_spans(&parsed.file, &again.file), "{name}: {printed}\nfrom\n{text}");
        assert_eq!(print(&again.file), printed, "{name}: printed twice, from\n{text}");
        assert_eq!(parsed.file.comments.len(), again.file.comments.len(), "{name}: {printed}\nfrom\n{text}");
        let said = parsed.file.items.iter().map(|item| match item {
            Item::Schedule(schedule) => schedule.clauses.len(),
            _ => 0,
        });
        clauses += said.sum::<usize>();
    }
    println!("{clauses} clauses");
    assert!(clauses > 2000, "{clauses}");
}

/// What the runs below came to: if one of these were rare, they would say little.
#[derive(Debug, Default)]
struct Tally {
    plans: usize,
    with_channels: usize,
    with_copies: usize,
    of_a_when: usize,
    shared: usize,
    excluded: usize,
    refused: usize,
}

#[test]
fn a_random_schedule_changes_no_result() {
    let seed = draw::seed();
    let programs = programs();
    let mut tally = Tally::default();
    for case in 0..if draw::full() { 20_000 } else { 1500 } {
        let mut draw = Draw::new(seed, 1000 + case);
        let (name, file) = draw.of(&programs);
        let (scheduled, made) = library::scheduled(file, Asked::Anything, &mut draw);
        let plain = load(&[("plain.coll".to_string(), print(file).into_bytes())], &Limits::default());
        let told = format!("RCC_TEST_SEED={seed}, case {case}, {name}");
        let codes = |loaded: &Loaded| loaded.diagnostics.iter().map(|d| d.code).collect::<Vec<_>>();
        assert_eq!(codes(&scheduled), codes(&plain), "{told}: {:?}\n{}", scheduled.diagnostics, made.text);
        if !plain.diagnostics.is_empty() {
            continue;
        }
        let algorithms = library::own(&plain);
        assert_eq!(algorithms, library::own(&scheduled), "{told}");
        let Some(&algorithm) = algorithms.get(draw.below(algorithms.len().max(1))) else { continue };
        let ranks = 1 + draw.below(6) as u32;
        let requests = library::requests(&plain, algorithm, ranks);
        let request = draw.of(&requests).clone();
        let bytes = (draw.chance(80) && !made.sizes.is_empty()).then(|| *draw.of(&made.sizes));
        let options = Options { bytes, ..layouts::any(&mut |bound| draw.below(bound)) };
        let told = || format!("{told}, {}, {options:?}\n{}", library::named(&plain, &request), made.text);
        let compiled = |loaded: &Loaded, options: &Options| match compile(
            loaded,
            &request,
            options,
            &Limits::default(),
            &mut |_| {},
        ) {
            Ok(compiled) => Ok(compiled),
            Err(Failure::Excluded { why, .. }) => Err(vec![why]),
            Err(Failure::Wrong(all)) => Err(all.iter().map(|d| d.code.to_string()).collect()),
        };
        let (without, with) = (compiled(&plain, &Options::default()), compiled(&scheduled, &options));
        match (without, with) {
            (Ok(without), Ok(with)) => {
                let when = choose(&scheduled, &request, bytes).when;
                tally.of_a_when += usize::from(when.is_some());
                same_moves(
                    &followed(&plain, &request, None),
                    &followed(&scheduled, &request, when),
                    &mut tally,
                )
                .and_then(|()| same_bits(without.plan.plan(), with.plan.plan(), &mut draw, &mut tally))
                .unwrap_or_else(|what| panic!("{what}: {}", told()));
            }
            (Err(without), Err(with)) => {
                assert_eq!(without, with, "{}", told());
                *if without[0].starts_with("coll::") { &mut tally.refused } else { &mut tally.excluded } += 1;
            }
            (without, with) => panic!("without {:?}, with {:?}: {}", without.err(), with.err(), told()),
        }
    }
    println!("{tally:?}");
    let Tally { plans, with_channels, with_copies, of_a_when, shared, .. } = tally;
    let counts = [plans / 10, with_channels, with_copies, of_a_when, shared];
    assert!(counts.iter().all(|&count| count > 50), "{counts:?}");
}

fn followed(loaded: &Loaded, request: &Request, when: Option<usize>) -> Trace {
    let elaborated = elaborate_scheduled(&loaded.program, request, when, &Limits::default());
    Trace::clone(&elaborated.expect("it was compiled").trace)
}

/// But for the channels they take.
fn same_moves(without: &Trace, with: &Trace, tally: &mut Tally) -> Result<(), String> {
    let moves = |trace: &Trace| -> Vec<String> {
        trace.moves.iter().map(|mv| format!("{:?}", Move { lane: 0, ..*mv })).collect()
    };
    tally.with_channels += usize::from(with.moves.iter().any(|mv| mv.lane > 0));
    let same = moves(without) == moves(with) && without.sources == with.sources;
    if same { Ok(()) } else { Err("other moves".to_string()) }
}

/// What each promised place holds in the end, in any order of events; by definition, and as without a schedule.
fn same_bits(plain: &Plan, plan: &Plan, draw: &mut Draw, tally: &mut Tally) -> Result<(), String> {
    tally.plans += 1;
    tally.with_copies += usize::from(plan.header.copies > 1);
    tally.shared += usize::from(plan.channels.iter().any(|channel| channel.readers.len() > 1));
    let seed = draw.number();
    for in_place in oracle::forms(plan) {
        let op = *draw.of(&Op::ALL);
        let op = if plan.header.serves(op) { op } else { Op::Sum };
        let call = Call {
            slots: plan.header.k_min,
            slot_bytes: 16 + draw.below(64) as u32,
            in_place,
            elide: draw.chance(50),
            group: draw.chance(50),
            ..Call::new(draw.below(50) as u64, *draw.of(&Dtype::ALL), op)
        };
        let wrong = |what: String| format!("{call:?}: {what}");
        let outcome = oracle::run(plan, &call, &mut Random::new(seed)).map_err(wrong)?;
        let call = Call { slots: plain.header.k_min, ..call };
        let expected = oracle::run(plain, &call, &mut RoundRobin::default()).map_err(wrong)?;
        promised_bits(plan, &call, &outcome, &expected)?;
    }
    Ok(())
}

/// Every promised block is the same in both.
fn promised_bits(
    plan: &Plan,
    call: &Call,
    outcome: &plan::interpret::Outcome,
    expected: &plan::interpret::Outcome,
) -> Result<(), String> {
    let bytes = (call.elements * u64::from(call.dtype.size())) as usize;
    for clause in &plan.promise.clauses {
        let place = clause.place;
        let block = |outcome: &plan::interpret::Outcome| {
            outcome.buffer(place.buffer, place.rank)[place.block as usize * bytes..][..bytes].to_vec()
        };
        if block(outcome) != block(expected) {
            return Err(format!("{call:?}: other bits at {place:?}"));
        }
    }
    Ok(())
}

/// What ranks on CPUs have, on such ranks.
#[test]
fn ranks_execute_scheduled_programs() {
    let seed = draw::seed();
    let programs = programs();
    let mut executed = 0;
    for case in 0..if draw::full() { 400 } else { 40 } {
        let mut draw = Draw::new(seed, 5_000_000 + case);
        let (name, file) = draw.of(&programs);
        let (loaded, made) = library::scheduled(file, Asked::WhatCpusHave, &mut draw);
        let algorithms = library::own(&loaded);
        let Some(&algorithm) = algorithms.get(draw.below(algorithms.len().max(1))) else { continue };
        let ranks = 2 + draw.below(3) as u32;
        let requests = library::requests(&loaded, algorithm, ranks);
        let request = draw.of(&requests);
        let bytes = (!made.sizes.is_empty()).then(|| *draw.of(&made.sizes));
        let options = Options { bytes, ..layouts::any(&mut |bound| draw.below(bound)) };
        let options = Options { blocks: options.blocks.min(2), ..options };
        let compiled = compile(&loaded, request, &options, &Limits::default(), &mut |_| {});
        let Ok(Compiled { plan, .. }) = compiled else { continue };
        let told = format!("RCC_TEST_SEED={seed}, case {case}, {name}, {options:?}\n{}", made.text);
        executed += 1;
        execute(&told, &plan, draw.below(3000) as u64);
    }
    println!("{executed} programs");
    assert!(executed > 15, "{executed}");
}

fn execute(told: &str, plan: &VerifiedPlan, elements: u64) {
    for in_place in oracle::forms(plan) {
        let shape = Shape { elements, dtype: Dtype::F32, op: Op::Sum, in_place };
        let job = Job { slot_bytes: Some(1024), iterations: 2, inputs: Inputs::Anew, ..Job::new(shape) };
        let report = run_threads(plan, &job).unwrap_or_else(|error| panic!("{error}: {told}"));
        assert_eq!(report.wrong, 0, "{:?}: {told}", report.first_wrong);
    }
}
