//! What nobody says is chosen: alike by every command, for the size and the machine, and said.

#![allow(clippy::disallowed_methods, reason = "tests write files")]

mod common;

use std::collections::BTreeSet;

use common::{RING, file, folder, rcc};
use serde_json::Value;

const QUICK: [&str; 4] = ["--iterations", "1", "--warmup", "0"];

fn json(arguments: &[&str]) -> Value {
    rcc(&[arguments, &["--json"]].concat()).ends(0).json()
}

#[test]
fn every_command_chooses_alike() {
    let fields = [
        "blocks",
        "counted_slots",
        "direct",
        "multicast",
        "cut",
        "copies",
        "slots",
        "slice_bytes",
        "protocol",
        "given",
    ];
    for (name, bytes) in [
        ("std::alltoall::direct", "1M"),
        ("std::allreduce::ring", "16K"),
        ("std::broadcast::chain", "64M"),
        ("std::allgather::ring", "4K"),
    ] {
        let on = ["-n", "4", "-b", bytes, "--topology", "2-cores"];
        let with = |command: &str, more: &[&str]| json(&[&[command, name], &on[..], more].concat());
        let explained = with("explain", &[])[0]["chosen"].clone();
        let compiled = with("compile", &[])["chosen"].clone();
        let ran = with("run", &QUICK);
        let benched = with("bench", &[&["-e", bytes], &QUICK[..]].concat());
        for (what, chosen) in
            [("compile", &compiled), ("run", &ran[0]["chosen"]), ("bench", &benched[0]["chosen"])]
        {
            for field in fields {
                assert_eq!(chosen[field], explained[field], "{field} of {what} {name} {bytes}");
            }
            assert_eq!(chosen["topology"], "2-cores");
        }
        assert_eq!(ran[0]["wrong"], 0);
        assert_eq!(compiled["tried"], explained["tried"]);
        assert!(compiled["tried"].as_array().unwrap().len() > 3, "{compiled}");
        let time =
            explained["tried"].as_array().unwrap().iter().map(|tried| tried["time_us"].as_f64().unwrap());
        assert!(compiled["predicted_us"].as_f64().unwrap() <= time.fold(f64::INFINITY, f64::min) * 1.12);
    }
}

#[test]
fn a_collective_without_an_algorithm() {
    for bytes in ["4K", "4M"] {
        let on = ["-n", "4", "-b", bytes, "--topology", "2-cores"];
        let best = json(&[&["explain", "std::allreduce"], &on[..]].concat())[0]["algorithm"].clone();
        for command in [vec!["run", "std::allreduce"], vec!["run", "--collective", "allreduce"]] {
            let rows = json(&[&command, &on[..], &QUICK].concat());
            assert_eq!(rows[0]["algorithm"], best, "{bytes}");
            assert_eq!(rows[0]["wrong"], 0);
            let candidates = rows[0]["chosen"]["algorithms"].as_array().unwrap();
            assert!(candidates.len() > 4 && candidates[0]["algorithm"] == best);
        }
        let compiled = json(&[&["compile", "std::allreduce"], &on[..]].concat());
        assert_eq!(compiled["algorithm"], best);
    }
    rcc(&["compile", "std::allreduce", "-n", "4"]).ends(0).shows("std::allreduce::").shows("of ");
    // Too many ranks to compile them all: the table.
    let large = json(&["compile", "std::allreduce", "-n", "17", "-b", "64M"]);
    assert_eq!(large["algorithm"], "std::allreduce::ring");
    rcc(&["compile", "std::allreduce", "-n", "4", "--rank", "1"]).ends(2).says("name it");
    // Each of the two-level ones needs levels; with one named, it is that one.
    rcc(&["run", "std::allreduce", "-n", "4", "-b", "4K", "--algorithm", "ring"])
        .ends(0)
        .shows("std::allreduce::ring");
}

/// What is taken is called the best only where nothing that was tried is faster.
#[test]
fn the_best_is_what_nothing_is_faster_than() {
    let mut seen = BTreeSet::new();
    for algorithm in ["allreduce::ring", "allreduce::one_shot", "alltoall::direct", "broadcast::binomial"] {
        for bytes in ["4K", "1M", "64M"] {
            let args = ["compile", &format!("std::{algorithm}"), "-n", "4", "-b", bytes];
            let chosen = &json(&args)["chosen"];
            let tried = chosen["tried"].as_array().unwrap();
            let least = tried.iter().map(|one| one["time_us"].as_f64().unwrap()).fold(f64::MAX, f64::min);
            let taken = chosen["predicted_us"].as_f64().unwrap();
            let said = if taken <= least { "predicted, best of" } else { "too little to tell" };
            rcc(&args).ends(0).shows(said);
            assert!(taken < 1.06 * least, "{algorithm}, {bytes}: {taken} us, {least} would do");
            seen.insert(said);
        }
    }
    assert_eq!(seen.len(), 2, "both are seen");
}

#[test]
fn reports_say_what_was_chosen() {
    rcc(&["compile", "std::alltoall::direct", "-n", "4"])
        .ends(0)
        .shows("chosen for 64 MiB (assumed: no size is given) on 2-cores");
    rcc(&["compile", "std::allreduce::ring", "-n", "64"]).ends(0).shows("as usual").shows("more than 4096");
    rcc(&["compile", "std::allreduce::ring", "-n", "64", "-b", "1M", "--topology", "64-cores"])
        .ends(0)
        .shows("on 64-cores")
        .shows("predicted");
    let run = rcc(&[&["run", "std::alltoall::direct", "-n", "2", "-b", "64K"], &QUICK[..]].concat());
    run.ends(0).shows("chosen for 64 KiB on ").shows("-cores");
    let bench = ["bench", "std::alltoall::direct", "-n", "2", "-b", "1K", "-e", "1M", "-f", "1024"];
    rcc(&[&bench, &QUICK[..]].concat()).ends(0).shows("#   chosen on ");
    // A plan from a file keeps its steps; the rest is chosen.
    let folder = folder();
    let plan = file(&folder, "ring.plan", "");
    let ring = file(&folder, "ring.coll", RING);
    rcc(&["compile", &ring, "-n", "4", "-o", &plan]).ends(0);
    let rows = json(&[&["run", &plan, "-b", "1M"], &QUICK[..]].concat());
    assert!(rows[0]["chosen"]["untried"].as_str().unwrap().contains("are what they are"));
    assert!(rows[0]["chosen"]["slots"].as_u64().unwrap() >= 2);
    for (arguments, says) in [
        (["--topology", "nowhere"], "there is no topology"),
        (["--topology", "0-cores"], "there is no topology"),
        (["--topology", "02-cores"], "there is no topology"),
    ] {
        rcc(&[&["compile", &ring, "-n", "4"], &arguments[..]].concat()).ends(2).says(says);
        rcc(&[&["run", &ring, "-n", "4"], &arguments[..]].concat()).ends(2).says(says);
    }
    rcc(&["compile", &ring, "-n", "9", "--topology", "8xh100"]).ends(2).says("has 8 ranks");
}

#[test]
fn a_rank_has_only_so_much() {
    let direct = ["std::alltoall::direct", "-n", "6"];
    let compile = |more: &[&str]| rcc(&[&["compile"], &direct[..], more].concat());
    compile(&["--limit", "connections=4"])
        .ends(1)
        .says("coll::target_limit")
        .says("needs 5 connections: on `2-cores` it has 4")
        .says("direct.coll");
    compile(&["--limit", "connections=5"]).ends(0);
    // Blocks there are only few of: those that are tried, too.
    let few = compile(&["--limit", "blocks=2", "--json"]).ends(0).json();
    assert!(few["blocks"].as_u64().unwrap() <= 12);
    compile(&["--limit", "blocks=2", "--blocks", "3"]).ends(1).says("--blocks 2");

    let folder = folder();
    let text = "name = \"mine\"\n[[level]]\nname = \"wire\"\nlatency = \"5us\"\nport = \"1GB/s\"\n[resources]\nchannels = 9\n";
    let mine = file(&folder, "mine.toml", text);
    compile(&["--topology", &mine]).ends(1).says("10 channel ends: on `mine` it has 9");
    let bad = file(&folder, "bad.toml", text.replace("channels = 9", "channels = 0"));
    compile(&["--topology", &bad]).ends(2).says("resources");
}
