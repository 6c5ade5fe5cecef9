//! Programs with multicasts, labels and schedules, with something changed: nothing panics, whatever the layout; what is
//! refused has a diagnostic with a code; and what is accepted computes what its collective promises.
//!
//! Two kinds of change: one to the syntax tree (another operator, a statement less), which mostly leaves a program that
//! parses; and some to the text, piece by piece, which mostly does not. `RCC_TEST_SEED` repeats a run.

use std::panic::{AssertUnwindSafe, catch_unwind};

use compiler::chooser::{Effort, Fixed, Wanted};
use compiler::cost::topology::builtin;
use compiler::limits::Limits;
use compiler::options::Options;
use compiler::pipeline::{self, Failure, Loaded, NotByOne, compile, compile_for, load};
use grammar::ast::{self, Item};
use grammar::span::FileId;
use grammar::{ParseLimits, parse};
use plan::dtype::{Dtype, Op};
use plan::interpret::Call;
use plan::interpret::scheduler::Random;
use plan::plan::{Forms, Plan};
use rcc_tests::draw::{self, Draw};
use rcc_tests::mutate::{Dice, mutate};
use rcc_tests::programs::MULTICASTS;
use rcc_tests::schedules::{Asked, scheduled};
use rcc_tests::{layouts, library, oracle};

/// Small: a changed bound may ask for billions of turns.
fn limits() -> Limits {
    Limits { moves: 5_000, turns: 100_000, places: 20_000, ..Limits::default() }
}

#[derive(Debug, Default)]
struct Tally {
    not_loaded: usize,
    excluded: usize,
    refused: usize,
    right: usize,
    by_one: usize,
    /// With steps of one rank, chosen for a machine.
    chosen_by_one: usize,
}

#[test]
fn nothing_panics_and_what_is_accepted_is_right() {
    let seed = draw::seed();
    let mut programs: Vec<ast::File> = library::trees().into_iter().map(|(_, file)| file).collect();
    let multicasts = parse(FileId(0), MULTICASTS, &ParseLimits::default()).file;
    // As often as the standard algorithms together.
    programs.extend(vec![multicasts; programs.len()]);
    let mut tally = Tally::default();
    for case in 0..if draw::full() { 40_000 } else { 1500 } {
        let mut draw = Draw::new(seed, case);
        let text = changed(draw.of(&programs), &mut draw);
        let told = format!("RCC_TEST_SEED={seed}, case {case}:\n{text}");
        let judged = catch_unwind(AssertUnwindSafe(|| judge(&text, &mut draw, &mut tally)));
        judged.unwrap_or_else(|_| panic!("a panic: {told}")).unwrap_or_else(|what| panic!("{what}: {told}"));
    }
    println!("{tally:?}");
    let Tally { not_loaded, refused, right, by_one, .. } = tally;
    assert!([not_loaded, refused, right, by_one].iter().all(|&count| count > 50), "{tally:?}");
    assert!(tally.chosen_by_one > 0, "{tally:?}");
}

/// A program with labels and schedules, and something wrong with it, mostly.
fn changed(file: &ast::File, draw: &mut Draw) -> String {
    let mut file = file.clone();
    let in_the_tree = draw.chance(70);
    if in_the_tree {
        let mut algorithms: Vec<&mut ast::Algorithm> = Vec::new();
        for item in &mut file.items {
            if let Item::Algorithm(algorithm) = item {
                algorithms.push(algorithm);
            }
        }
        let at = draw.below(algorithms.len());
        mutate(algorithms[at], draw);
    }
    let text = scheduled(&file, Asked::Anything, draw).text;
    if in_the_tree {
        return text;
    }
    let mut pieces = pieces(&text);
    for _ in 0..1 + draw.below(3) {
        let (at, other) = (draw.below(pieces.len()), draw.below(pieces.len()));
        match draw.below(5) {
            0 => drop(pieces.remove(at)),
            1 => pieces.insert(at, pieces[other]),
            2 => pieces[at] = pieces[other],
            3 => pieces.swap(at, other),
            // Any number that is written here, in the place of another one.
            _ => {
                let digits: Vec<usize> = (0..pieces.len())
                    .filter(|&i| pieces[i].bytes().all(|byte| byte.is_ascii_digit()))
                    .collect();
                if !digits.is_empty() {
                    pieces[*draw.of(&digits)] =
                        ["0", "1", "2", "64", "1024", "9223372036854775807"][draw.below(6)];
                }
            }
        }
    }
    pieces.concat()
}

/// Words, and each other sign by itself.
fn pieces(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match is_word(first) {
            true => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        pieces.push(&rest[..end]);
        rest = &rest[end..];
    }
    pieces
}

fn judge(text: &str, draw: &mut Draw, tally: &mut Tally) -> Result<(), String> {
    let limits = limits();
    let loaded = load(&[("changed.coll".to_string(), text.as_bytes().to_vec())], &limits);
    if !loaded.diagnostics.is_empty() {
        tally.not_loaded += 1;
        return coded(loaded.diagnostics.iter().map(|d| d.code));
    }
    for algorithm in library::own(&loaded) {
        if !draw.chance(50) {
            continue;
        }
        let requests = library::requests(&loaded, algorithm, 1 + draw.below(5) as u32);
        let request = draw.of(&requests);
        let bytes = draw.chance(70).then(|| [0, 1, 64, 5000, 1 << 20][draw.below(5)]);
        let options = Options { bytes, ..layouts::any(&mut |bound| draw.below(bound)) };
        let at = |what: String| format!("{}, {options:?}: {what}", library::named(&loaded, request));
        let compiled = compile(&loaded, request, &options, &limits, &mut |_| {});
        let is_right = match compiled {
            Ok(compiled) => {
                keeps_its_promise(compiled.plan.plan(), draw).map_err(at)?;
                tally.right += 1;
                true
            }
            Err(Failure::Excluded { .. }) => {
                tally.excluded += 1;
                continue;
            }
            Err(Failure::Wrong(all)) => {
                coded(all.iter().map(|d| d.code)).map_err(at)?;
                tally.refused += 1;
                false
            }
        };
        // The model takes a hundred times as long as all the rest.
        match draw.below(30) {
            0..8 => by_one(&loaded, request, &options, is_right, tally).map_err(at)?,
            8 => chosen(&loaded, request, bytes, is_right, draw, tally).map_err(at)?,
            _ => {}
        }
    }
    Ok(())
}

/// A refusal of a program is in the language's own words, never in those of plans.
fn coded<'a>(codes: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let codes: Vec<&str> = codes.collect();
    match !codes.is_empty() && codes.iter().all(|code| code.starts_with("coll::")) {
        true => Ok(()),
        false => Err(format!("refused with {codes:?}")),
    }
}

fn keeps_its_promise(plan: &Plan, draw: &mut Draw) -> Result<(), String> {
    for in_place in oracle::forms(plan) {
        let call = Call {
            in_place,
            slots: plan.header.k_min,
            slot_bytes: 16 + draw.below(64) as u32,
            elide: draw.chance(50),
            group: draw.chance(50),
            ..Call::new(draw.below(40) as u64, *draw.of(&Dtype::ALL), Op::Max)
        };
        oracle::run(plan, &call, &mut Random::new(draw.number()))
            .map_err(|what| format!("{call:?}: {what}"))?;
    }
    Ok(())
}

/// Where one rank speaks for all, the verdict is that of the whole.
fn by_one(
    loaded: &Loaded,
    request: &compiler::elaborate::Request,
    options: &Options,
    is_right: bool,
    tally: &mut Tally,
) -> Result<(), String> {
    match pipeline::compile_by_one(loaded, request, options, &limits(), &mut |_| {}) {
        Ok(_) if !is_right => Err("by one rank it is right".to_string()),
        Ok(_) => {
            tally.by_one += 1;
            Ok(())
        }
        Err(NotByOne::Unlike(_)) => Ok(()),
        Err(NotByOne::Failed(Failure::Excluded { .. })) => Err("by one rank it is excluded".to_string()),
        Err(NotByOne::Failed(Failure::Wrong(all))) if is_right => {
            Err(format!("by one rank it is wrong: {:?}", all.iter().map(|d| &d.title).collect::<Vec<_>>()))
        }
        Err(NotByOne::Failed(Failure::Wrong(all))) => coded(all.iter().map(|d| d.code)),
    }
}

/// What the cost model chooses is right, too; it may be refused for what the machine has not.
fn chosen(
    loaded: &Loaded,
    request: &compiler::elaborate::Request,
    bytes: Option<u64>,
    is_right: bool,
    draw: &mut Draw,
    tally: &mut Tally,
) -> Result<(), String> {
    let machine = builtin("2-cores").ok_or("no such machine")?;
    let wanted = Wanted {
        bytes,
        dtype: Dtype::F32,
        fixed: Fixed::default(),
        forms: Forms { disjoint: true, same: draw.chance(50) },
        effort: Effort::Quick,
    };
    match compile_for(loaded, request, &wanted, &machine, &limits(), &mut |_| {}) {
        Ok(_) if !is_right => return Err("chosen for a machine it is right".to_string()),
        Ok((compiled, _)) => keeps_its_promise(compiled.plan.plan(), draw)?,
        Err(Failure::Excluded { .. }) => return Err("for a machine it is excluded".to_string()),
        Err(Failure::Wrong(all)) => coded(all.iter().map(|d| d.code))?,
    }
    // So are the steps of one rank, spelled out.
    match pipeline::compile_by_one_for(loaded, request, &wanted, &machine, &limits(), &mut |_| {}) {
        Ok(_) if !is_right => Err("by one rank, for a machine, it is right".to_string()),
        Ok((made, _)) => {
            let whole = made.plan.ok().and_then(|plan| plan.unfold(&plan::verify::Limits::default()).ok());
            tally.chosen_by_one += usize::from(whole.is_some());
            whole.map_or(Ok(()), |plan| keeps_its_promise(plan.plan(), draw))
        }
        Err(NotByOne::Unlike(_)) => Ok(()),
        Err(NotByOne::Failed(Failure::Excluded { .. })) => {
            Err("by one rank, for a machine, it is excluded".to_string())
        }
        Err(NotByOne::Failed(Failure::Wrong(all))) => coded(all.iter().map(|d| d.code)),
    }
}
