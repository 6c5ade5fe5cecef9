//! The standard algorithms and the examples keep their promises when a second, independent implementation of the
//! language runs them on random numbers. The compiler's proof plays no part here.

use std::collections::BTreeMap;

use grammar::ast::{self, Item, ParamType};
use grammar::span::FileId;
use grammar::{ParseLimits, parse};
use rcc_tests::naive::{Library, Stop, keeps_its_promise};

/// The finest grain tried; every algorithm here gets by with less at up to 9 ranks.
const MOST_CELLS: usize = 72;

fn std_files() -> Vec<(Option<String>, ast::File)> {
    stdlib::FILES
        .iter()
        .enumerate()
        .map(|(index, (name, text))| {
            let parsed = parse(FileId(index as u32), text, &ParseLimits::default());
            assert!(parsed.errors.is_empty(), "{name}: {:?}", parsed.errors);
            let module = name.strip_prefix("std/").and_then(|n| n.split_once('/')).map(|(module, _)| module);
            (module.map(str::to_string), parsed.file)
        })
        .collect()
}

fn shapes(levels: usize) -> Vec<Vec<u32>> {
    match levels {
        1 => (1..=9).map(|n| vec![n]).collect(),
        2 => vec![vec![1, 1], vec![2, 3], vec![3, 2], vec![2, 2]],
        _ => vec![vec![1; levels], vec![2; levels]],
    }
}

/// Every choice of ranks for the rank parameters that have no default.
fn rank_params(algorithm: &ast::Algorithm, ranks: i64) -> Vec<BTreeMap<String, i64>> {
    let mut choices = vec![BTreeMap::new()];
    for param in algorithm.params.iter().filter(|p| p.ty == ParamType::Rank && p.default.is_none()) {
        choices = choices
            .into_iter()
            .flat_map(|choice| {
                (0..ranks).map(move |rank| {
                    let mut next = choice.clone();
                    next.insert(param.name.name.clone(), rank);
                    next
                })
            })
            .collect();
    }
    choices
}

fn check(library: &Library<'_>, name: &str, algorithm: &ast::Algorithm) {
    let mut checked = 0;
    for shape in shapes(algorithm.world.levels.len()) {
        let ranks = shape.iter().product::<u32>();
        for params in rank_params(algorithm, i64::from(ranks)) {
            for in_place in [false, true] {
                let grain = (1..=MOST_CELLS).map(|cells| {
                    keeps_its_promise(library, name, &shape, &params, cells, in_place, u64::from(ranks))
                });
                let mut outcomes = grain.skip_while(|outcome| {
                    matches!(outcome, Err(Stop::Meaningless(why)) if why == "a boundary falls inside a piece")
                });
                match outcomes.next() {
                    Some(Ok(true)) => checked += 1,
                    Some(Err(Stop::Excluded(_))) => {}
                    other => panic!("{name} at {shape:?} {params:?}, in place {in_place}: {other:?}"),
                }
            }
        }
    }
    assert!(checked > 0, "{name}: every shape is excluded");
}

#[test]
fn the_standard_algorithms_keep_their_promises() {
    let files = std_files();
    let borrowed: Vec<(Option<&str>, &ast::File)> = files.iter().map(|(m, f)| (m.as_deref(), f)).collect();
    let library = Library::new(&borrowed);
    for (module, file) in &files {
        for item in &file.items {
            if let (Item::Algorithm(algorithm), Some(module)) = (item, module) {
                check(&library, &format!("std::{module}::{}", algorithm.name.name), algorithm);
            }
        }
    }
}
