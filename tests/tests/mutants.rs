//! A thousand random single changes to the standard algorithms: the proof refuses a mutant **if and only if** the
//! independent executor, on random 61-bit numbers, ends with something other than was promised.
//!
//! Mutants that an earlier rule refuses (a rank that does not exist, a read of nothing) are counted apart, and so
//! are those that a `require` excludes. Whatever is refused is lowered all the same, in a few layouts, and the plan must
//! be refused too; whatever is accepted is compiled in another one, and what the plan leaves is compared with the definition.
//! `RCC_MUTANTS` sets how many are made, `RCC_TEST_SEED` which.

use std::collections::BTreeMap;

use compiler::elaborate::{self, Request};
use compiler::graph::{self, Form};
use compiler::limits::Limits;
use compiler::options::Options;
use compiler::pipeline::{Failure, Loaded, load, prove};
use compiler::schedule;
use grammar::ast::{self, Item, ParamType};
use grammar::span::FileId;
use grammar::{ParseLimits, parse};
use plan::dtype::{Dtype, Op};
use plan::interpret::Call;
use plan::interpret::scheduler::Random;
use rcc_tests::draw::{self, Draw};
use rcc_tests::mutate::{Dice, mutate};
use rcc_tests::naive::{Library, Stop, keeps_its_promise};
use rcc_tests::{layouts, library, oracle};

/// Codes of the promise itself; every other code is an earlier rule.
const PROMISE: [&str; 2] = ["coll::promise", "coll::not_synchronised"];

#[derive(Default)]
struct Tally {
    kept: usize,
    refused: usize,
    /// Of those, lowered and refused by the plan's own proof too.
    lowered: usize,
    earlier: BTreeMap<&'static str, usize>,
    excluded: usize,
    too_fine: usize,
}

fn parse_std(name: &str, text: &str, index: usize) -> (Option<String>, ast::File) {
    let parsed = parse(FileId(index as u32), text, &ParseLimits::default());
    assert!(parsed.errors.is_empty(), "{name}: {:?}", parsed.errors);
    let module =
        name.strip_prefix("std/").and_then(|n| n.split_once('/')).map(|(module, _)| module.to_string());
    (module, parsed.file)
}

#[test]
fn a_mutant_is_refused_exactly_if_it_computes_something_else() {
    let wanted = draw::mutants();
    let files: Vec<(Option<String>, ast::File)> =
        stdlib::FILES.iter().enumerate().map(|(i, (name, text))| parse_std(name, text, i)).collect();
    let originals: Vec<(usize, &ast::Algorithm)> = files
        .iter()
        .enumerate()
        .flat_map(|(i, (_, file))| {
            file.items.iter().filter_map(move |item| match item {
                Item::Algorithm(algorithm) => Some((i, algorithm)),
                _ => None,
            })
        })
        .collect();

    let mut dice = Draw::new(draw::seed(), 1);
    let mut tally = Tally::default();
    for _ in 0..wanted {
        let (file, original) = originals[dice.below(originals.len())];
        let mut mutant = original.clone();
        let told = mutate(&mut mutant, &mut dice).expect("every algorithm has something to change");
        judge(&files, file, &mutant, &told, &mut dice, &mut tally);
    }
    let earlier: usize = tally.earlier.values().sum();
    println!(
        "{wanted} mutants: {} still right and accepted, {} refused by the promise ({} of them lowered all the \
         same, and refused again), {earlier} by an earlier rule, {} excluded by `require`, {} cut too finely to follow",
        tally.kept, tally.refused, tally.lowered, tally.excluded, tally.too_fine
    );
    for (code, count) in &tally.earlier {
        println!("  {count:>5}  {code}");
    }
    assert!(tally.refused * 10 > wanted, "too few mutants reach the promise for the test to mean much");
    assert!(tally.lowered * 20 > wanted, "too few mutants are lowered for the test to mean much");
    assert!(tally.kept > 0, "no mutant is equivalent: unlikely");
}

fn judge(
    files: &[(Option<String>, ast::File)],
    file: usize,
    mutant: &ast::Algorithm,
    told: &str,
    dice: &mut Draw,
    tally: &mut Tally,
) {
    let levels = mutant.world.levels.len();
    let shape: Vec<u32> = if levels == 1 {
        vec![2 + dice.below(8) as u32]
    } else {
        (0..levels).map(|_| 1 + dice.below(3) as u32).collect()
    };
    let ranks = shape.iter().product::<u32>() as usize;
    let mut params: BTreeMap<String, i64> = BTreeMap::new();
    for param in &mutant.params {
        if param.ty == ParamType::Rank {
            params.insert(param.name.name.clone(), dice.below(ranks) as i64);
        } else if param.name.name == "pieces" {
            params.insert(param.name.name.clone(), 3);
        }
    }
    // The mutant is compiled from text, in a file of its own beside the other items of its file.
    let mut tree = files[file].1.clone();
    let name = mutant.name.name.clone();
    for item in &mut tree.items {
        if matches!(item, Item::Algorithm(a) if a.name.name == name) {
            *item = Item::Algorithm(mutant.clone());
        }
    }
    let text = grammar::print::print(&tree);
    let context = || format!("{told}, at {shape:?} {params:?}:\n{text}");

    let limits = Limits::default();
    let loaded = load(&[("mutant.coll".to_string(), text.clone().into_bytes())], &limits);
    if let Some(first) = loaded.diagnostics.first() {
        *tally.earlier.entry(first.code).or_default() += 1;
        return;
    }
    let algorithm = loaded.program.find(&name).unwrap_or_else(|| panic!("{name} is declared\n{}", context()));
    let request = Request { algorithm, shape: shape.clone(), params: params.clone() };
    let verdict = prove(&loaded, &request, &limits, &mut |_| {});

    let mut library_files: Vec<(Option<&str>, &ast::File)> =
        files.iter().map(|(m, f)| (m.as_deref(), f)).collect();
    library_files.push((None, &tree));
    let library = Library::new(&library_files);
    let run = |in_place: bool| {
        let grain = (1..=96).map(|k| keeps_its_promise(&library, &name, &shape, &params, k, in_place, 7));
        let cut = |o: &Result<bool, Stop>| matches!(o, Err(Stop::Meaningless(w)) if w == "a boundary falls inside a piece");
        grain.into_iter().find(|outcome| !cut(outcome))
    };
    let is_right = || -> Option<Result<bool, Stop>> {
        Some(match run(false)? {
            Ok(true) => run(true)?,
            other => other,
        })
    };
    match verdict {
        Ok(_) => match is_right() {
            None => tally.too_fine += 1,
            Some(Ok(true)) => {
                tally.kept += 1;
                keeps_it_when_lowered(&loaded, &request, dice)
                    .unwrap_or_else(|what| panic!("accepted, but its plan: {what}: {}", context()));
            }
            Some(other) => panic!("accepted, but the executor says {other:?}: {}", context()),
        },
        Err(Failure::Excluded { .. }) => tally.excluded += 1,
        Err(Failure::Wrong(diagnostics)) => match diagnostics.iter().find(|d| !PROMISE.contains(&d.code)) {
            Some(first) => *tally.earlier.entry(first.code).or_default() += 1,
            None => match is_right() {
                None => tally.too_fine += 1,
                Some(Ok(false)) => {
                    tally.refused += 1;
                    tally.lowered +=
                        usize::from(is_refused_when_lowered(&loaded, &request, &limits, dice, &context));
                }
                Some(other) => panic!(
                    "refused ({}), but the executor says {other:?}: {}",
                    diagnostics[0].title,
                    context()
                ),
            },
        },
    }
}

/// Whether the mutant breaks its promise out of place by itself (and not a callee, or only in place). Such a trace is
/// lowered while it is being proved: lowering must get through it, and the plan must be refused as well.
fn is_refused_when_lowered(
    loaded: &Loaded,
    request: &Request,
    limits: &Limits,
    dice: &mut Draw,
    context: &dyn Fn() -> String,
) -> bool {
    let Ok(elaborated) = elaborate::elaborate(&loaded.program, request, limits) else { return false };
    let trace = &elaborated.trace;
    let Ok(graph) = graph::build(trace, Form::Disjoint) else { return false };
    if graph::promise(trace, &graph).is_ok() {
        return false;
    }
    let plainly = Options { fuse: false, slots: 2, ..Options::default() };
    let mut any = || layouts::any(&mut |bound| dice.below(bound));
    for options in [Options::default(), plainly, any(), any(), any()] {
        let plan = schedule::schedule(trace, &graph, &options, &loaded.sources);
        let verdict = plan::verify::verify_fresh(plan, &limits.of_plan());
        assert!(verdict.is_err(), "the program is refused, its plan is not, {options:?}: {}", context());
    }
    true
}

/// What a right mutant leaves in some layout, against the definition, in every form that its plan serves.
fn keeps_it_when_lowered(loaded: &Loaded, request: &Request, dice: &mut Draw) -> Result<(), String> {
    let options = layouts::any(&mut |bound| dice.below(bound));
    let told = |what: String| format!("{options:?}: {what}");
    let compiled = library::compiled(loaded, request, &options, &Limits::default()).map_err(told)?;
    let plan = compiled.ok_or("excluded, but it was proved")?.plan.into_plan();
    for in_place in oracle::forms(&plan) {
        let call = Call {
            in_place,
            slots: plan.header.k_min,
            slot_bytes: 16 + dice.below(64) as u32,
            elide: dice.chance(50),
            group: dice.chance(50),
            ..Call::new(dice.below(40) as u64, *dice.of(&Dtype::ALL), Op::Sum)
        };
        oracle::run(&plan, &call, &mut Random::new(dice.number()))
            .map_err(|what| told(format!("{call:?}: {what}")))?;
    }
    Ok(())
}
