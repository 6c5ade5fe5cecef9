//! `rcc run` is right for every standard algorithm, at odd numbers of ranks and counts, for all types and operators, in
//! every form that the algorithm claims: real processes, every element compared with the collective's definition.
//!
//! A choice in which all values of any two of these meet; with `RCC_TEST_FULL=1` (`cargo xtask test --full`), of any three. (All
//! combinations are tens of thousands of runs: hours, of which the last ones show nothing new.)

#![allow(clippy::disallowed_methods, reason = "tests read the environment and run commands")]

mod common;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use common::command;
use plan::dtype::{Dtype, Op};
use serde_json::Value;

/// Ranks: of a one-level world, and of a two-level one of as many.
const WORLDS: [(u32, &str); 6] = [(1, "1x1"), (2, "1x2"), (3, "3x1"), (4, "2x2"), (7, "7x1"), (8, "2x4")];

/// Elements of one block.
fn count(choice: usize, ranks: u32) -> u64 {
    [0, 1, u64::from(ranks) - 1, 1009, 1 << 20][choice]
}
const COUNTS: usize = 5;

/// Collectives that combine nothing: the operator plays no part.
const COPY_ONLY: [&str; 8] =
    ["allgather", "broadcast", "alltoall", "gather", "scatter", "sendrecv", "alltonext", "barrier"];

type Row = [usize; 5];

#[test]
fn every_standard_algorithm_is_right() {
    let algorithms = algorithms();
    assert!(algorithms.len() >= 25, "the standard library shrank: {algorithms:?}");
    let sizes = [algorithms.len(), WORLDS.len(), COUNTS, Dtype::ALL.len(), Op::ALL.len()];
    let full = std::env::var("RCC_TEST_FULL").is_ok_and(|value| value == "1");
    let mut rows = covering(sizes, if full { 3 } else { 2 });
    for row in &mut rows {
        if COPY_ONLY.contains(&collective(&algorithms[row[0]])) {
            row[4] = 0;
        }
    }
    rows.sort_unstable();
    rows.dedup();

    let next = AtomicUsize::new(0);
    let (ran, skipped) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let counter = if check(&algorithms[row[0]], row) { &ran } else { &skipped };
                    counter.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let (ran, skipped) = (ran.into_inner(), skipped.into_inner());
    println!("{ran} runs right, {skipped} combinations that a `require` excludes");
    assert!(ran > skipped * 10, "{ran} runs, {skipped} excluded");
}

/// One run in both forms; false if the algorithm excludes the shape.
fn check(algorithm: &str, row: &Row) -> bool {
    let (ranks, levels) = WORLDS[row[1]];
    let two_level = ["hierarchical", "two_level"].iter().any(|name| algorithm.ends_with(name));
    let ranks_text = if two_level { levels.to_string() } else { ranks.to_string() };
    let (dtype, op) = (Dtype::ALL[row[3]], Op::ALL[row[4]]);
    let (count, op) = (count(row[2], ranks).to_string(), op.to_string());
    let mut args = vec!["run", algorithm, "--ranks", &ranks_text, "--count", &count, "--json"];
    args.extend(["--dtype", dtype.name(), "--op", &op, "--iterations", "1", "--warmup", "1"]);
    args.extend(["--timeout", "120"]);
    // The last rank as the root, where there is one.
    let last = |name: &str| format!("{name}={}", ranks - 1);
    let params: Vec<String> = match collective(algorithm) {
        "broadcast" | "reduce" | "gather" | "scatter" => vec![last("root")],
        "sendrecv" => vec!["from=0".to_string(), last("to")],
        _ => Vec::new(),
    };
    for param in &params {
        args.extend(["--param", param]);
    }
    let output = command(&args).output().expect("rcc starts");
    let text = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(1) && text.contains("coll::excluded") {
        return false;
    }
    assert!(output.status.success(), "{args:?}: {} {text}", output.status);
    let results: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let results = results.as_array().expect("an array");
    assert!(!results.is_empty(), "{args:?}: nothing ran");
    for result in results {
        assert_eq!(result["wrong"], 0, "{args:?}: {result}");
        assert_eq!(result["count"].to_string(), count, "{args:?}: {result}");
    }
    true
}

fn algorithms() -> Vec<String> {
    let algorithm = |(name, _): &(&str, &str)| {
        let (collective, file) = name.strip_prefix("std/")?.split_once('/')?;
        Some(format!("std::{collective}::{}", file.strip_suffix(".coll")?))
    };
    stdlib::FILES.iter().filter_map(algorithm).collect()
}

fn collective(algorithm: &str) -> &str {
    algorithm.split("::").nth(1).unwrap_or("")
}

/// A row of which only some columns are given; the others are [`ANY`].
type Part = Row;
const ANY: usize = usize::MAX;

/// The parts of a row that give `many` columns.
fn parts(row: Row, many: u32) -> impl Iterator<Item = Part> {
    let chosen = (0u32..1 << row.len()).filter(move |columns| columns.count_ones() == many);
    chosen.map(move |columns| std::array::from_fn(|c| if columns >> c & 1 == 1 { row[c] } else { ANY }))
}

/// Rows such that all values of any `many` columns stand together in one of them: greedily, of a few candidates the one with
/// the most that no row has yet.
fn covering(sizes: [usize; 5], many: u32) -> Vec<Row> {
    let mut missing: BTreeSet<Part> = BTreeSet::new();
    for columns in parts([0; 5], many) {
        let mut found = vec![[ANY; 5]];
        for c in (0..5).filter(|&c| columns[c] == 0) {
            let with = |part: Part, value| {
                let mut part = part;
                part[c] = value;
                part
            };
            found = found
                .into_iter()
                .flat_map(|part| (0..sizes[c]).map(move |value| with(part, value)))
                .collect();
        }
        missing.extend(found);
    }
    let mut state = 1u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let mut rows = Vec::new();
    while let Some(&part) = missing.first() {
        let candidates = (0..40).map(|_| {
            let random = sizes.map(&mut below);
            std::array::from_fn(|c| if part[c] == ANY { random[c] } else { part[c] })
        });
        let gain = |row: &Row| parts(*row, many).filter(|part| missing.contains(part)).count();
        let Some(best) = candidates.max_by_key(gain) else { return rows };
        for part in parts(best, many) {
            missing.remove(&part);
        }
        rows.push(best);
    }
    rows
}

#[test]
fn a_covering_choice_covers() {
    let sizes = [28, 6, 5, 7, 5];
    for (many, most) in [(2, 400), (3, 2000)] {
        let rows = covering(sizes, many);
        for columns in parts([0; 5], many) {
            let given: Vec<usize> = (0..5).filter(|&c| columns[c] == 0).collect();
            let seen: BTreeSet<Vec<usize>> =
                rows.iter().map(|row| given.iter().map(|&c| row[c]).collect()).collect();
            assert_eq!(seen.len(), given.iter().map(|&c| sizes[c]).product::<usize>());
        }
        assert!(rows.len() < most, "{} rows: hardly a choice", rows.len());
    }
}
