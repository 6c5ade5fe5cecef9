//! `rcc compile`, `show`, `explain`: plans made, written, read and counted.

#![allow(clippy::disallowed_methods, reason = "tests write files and time what they run")]

mod common;

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

use common::{RING, broken_ring, command, file, finish, folder, rcc};

#[test]
fn a_plan_is_written_shown_explained_and_run() {
    let folder = folder();
    let ring = file(&folder, "ring.coll", RING);
    let plan = folder.path().join("ring.plan");
    let plan = plan.to_str().unwrap();
    rcc(&["compile", &ring, "--ranks", "4", "-o", plan])
        .ends(0)
        .shows("ring implements allreduce on 4 ranks");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside the plan");
    rcc(&["show", plan]).ends(0).shows("ring").shows("data[c] @ (c + hop + 1) % n");
    rcc(&["show", plan, "--rank", "2"]).ends(0);
    rcc(&["show", plan, "--rank", "4"]).ends(2).says("no rank 4");
    rcc(&["explain", plan]).ends(0).shows("rounds").shows("at least");
    rcc(&["run", plan, "--bytes", "64K", "--iterations", "2"]).ends(0).shows("out of place");
    // The same source and shape give the same bytes.
    let again = folder.path().join("again.plan");
    rcc(&["compile", &ring, "--ranks", "4", "-o", again.to_str().unwrap()]).ends(0);
    assert_eq!(fs::read(plan).unwrap(), fs::read(again).unwrap());
}

#[test]
fn a_wrong_program_touches_no_file() {
    let folder = folder();
    let ring = file(&folder, "ring.coll", broken_ring());
    let plan = file(&folder, "old.plan", "what was there");
    rcc(&["compile", &ring, "--ranks", "4", "-o", &plan]).ends(1).says("coll::promise");
    assert_eq!(fs::read_to_string(&plan).unwrap(), "what was there");
    let good = file(&folder, "good.coll", RING);
    let nowhere = folder.path().join("no/where.plan");
    rcc(&["compile", &good, "--ranks", "4", "-o", nowhere.to_str().unwrap()]).ends(2).says("no/where.plan");
    rcc(&["compile", &good, "--ranks", "4", "-o", folder.path().to_str().unwrap()])
        .ends(2)
        .says("is a directory");
}

/// The system would end the process with a signal; it must be an error, and leave nothing behind.
#[test]
fn a_limit_for_files_is_an_error() {
    let folder = folder();
    let ring = file(&folder, "ring.coll", RING);
    let plan = folder.path().join("ring.plan");
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 0; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_rcc")]);
    limited.args(["compile", &ring, "-n", "2", "-o"]).arg(&plan);
    finish(limited).ends(3).says("file too large");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    // Writing to /dev/full fails as a full disk does; it is no plain file, so nothing is renamed over it.
    let folder = folder();
    let ring = file(&folder, "ring.coll", RING);
    rcc(&["compile", &ring, "--ranks", "4", "-o", "/dev/full"])
        .ends(3)
        .says("/dev/full")
        .says("no space left");
}

#[test]
fn stages_are_printed() {
    let folder = folder();
    let ring = file(&folder, "ring.coll", RING);
    let emit = |stage: &str| rcc(&["compile", &ring, "--ranks", "3", "--emit", stage]).ends(0);
    emit("ast").shows("Algorithm").shows("\"ring\"");
    let trace = emit("trace");
    // 3 chunks, 2 hops each way.
    assert_eq!(trace.out.lines().filter(|line| line.contains(" += ")).count(), 6, "{}", trace.out);
    assert_eq!(trace.out.lines().filter(|line| line.contains(" = data")).count(), 6, "{}", trace.out);
    let trace = trace.shows("data[0] @ 2 += data[0] @ 1");
    assert!(trace.out.contains("ring.coll:4"));
    emit("graph").shows("entry").shows("move 0");
    emit("plan").shows("ring");
    rcc(&["compile", &ring, "--ranks", "3", "--target", "dot"]).ends(0).shows("digraph").shows("0 -> 1");
    rcc(&["compile", &ring, "--ranks", "3", "--emit", "tree"]).ends(2);
}

#[test]
fn timings_and_json() {
    let folder = folder();
    let ring = file(&folder, "ring.coll", RING);
    rcc(&["compile", &ring, "--ranks", "8", "--timings"])
        .ends(0)
        .shows("elaborate")
        .shows("verify")
        .shows("peak (MiB)");
    let document = rcc(&["compile", &ring, "--ranks", "8", "--json"]).ends(0).json();
    let mut fields: Vec<&str> = document.as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        [
            "algorithm",
            "blocks",
            "chosen",
            "copies",
            "moves",
            "peak_rss_mb",
            "proof",
            "ranks",
            "schedule",
            "stages",
            "steps",
            "total_ms"
        ]
    );
    assert_eq!((document["moves"].as_u64(), document["ranks"].as_u64()), (Some(2 * 8 * 7), Some(8)));
    let stages = document["stages"].as_array().unwrap();
    let sum: f64 = stages.iter().map(|stage| stage["ms"].as_f64().unwrap()).sum();
    assert!((sum - document["total_ms"].as_f64().unwrap()).abs() < 1e-6);
    assert!(document["peak_rss_mb"].as_f64().unwrap() > 1.0);
}

#[test]
fn roots_and_levels() {
    rcc(&["compile", "std::broadcast::binomial", "--ranks", "4"]).ends(0).shows("root = 0");
    rcc(&["compile", "std::broadcast::binomial", "--ranks", "4", "--param", "root=2"])
        .ends(0)
        .shows("root = 2");
    rcc(&["compile", "std::broadcast::binomial", "--ranks", "4", "--param", "root=4"])
        .ends(2)
        .says("root = 4 is no rank");
    rcc(&["compile", "std::sendrecv::direct", "--ranks", "4"]).ends(0).shows("from = 0").shows("to = 1");
    rcc(&["compile", "std::allreduce::hierarchical", "--ranks", "2x3"]).ends(0).shows("on 2x3 ranks");
    rcc(&["compile", "std::allreduce::hierarchical", "--ranks", "6"]).ends(2).says("--ranks 2x2");
    rcc(&["compile", "std::allgather::recursive_doubling", "--ranks", "3"]).ends(1).says("coll::excluded");
}

/// Bytes and rounds of textbook algorithms, against the formulas of the textbooks.
#[test]
fn explained_costs_are_those_of_the_literature() {
    let cost = |name: &str, n: u64| {
        let plain = ["--direct", "never", "--multicast", "flat"];
        let asked = ["explain", name, "--ranks", &n.to_string(), "--bytes", "1680K"];
        let text = rcc(&[&asked, &plain[..]].concat()).ends(0).out;
        let row = |what: &str| -> Vec<String> {
            let line =
                text.lines().find(|line| line.trim_start().starts_with(what)).expect("the row is there");
            line.trim_start()[what.len()..].split_whitespace().map(str::to_string).collect()
        };
        let rounds = row("rounds");
        let sent = row("bytes sent, busiest rank").join(" ");
        (rounds[0].parse::<u64>().unwrap(), rounds[1].parse::<u64>().unwrap(), sent)
    };
    for n in [2u64, 3, 4, 7, 8] {
        let log = u64::from(n.next_power_of_two().ilog2());
        let (rounds, least, _) = cost("std::allreduce::ring", n);
        assert_eq!((rounds, least), (2 * (n - 1), log), "ring at {n}");
        assert_eq!(cost("std::broadcast::binomial", n).0, log, "binomial at {n}");
        assert_eq!(cost("std::broadcast::chain", n).1, log, "chain at {n}");
        assert_eq!(cost("std::alltoall::direct", n).0, n - 1, "direct at {n}");
        let gathered = cost("std::allgather::ring", n);
        assert_eq!((gathered.0, gathered.1), (n - 1, log), "allgather at {n}");
    }
    // 2(n-1)/n of 1680 KiB at 8 ranks is 2940 KiB.
    assert!(
        cost("std::allreduce::ring", 8).2.starts_with("2940 KiB 2940 KiB 1.00x"),
        "{:?}",
        cost("std::allreduce::ring", 8)
    );
    assert!(cost("std::alltoall::direct", 8).2.starts_with("1470 KiB 1470 KiB 1.00x"));
}

#[test]
fn codes_are_explained() {
    rcc(&["explain", "coll::promise"]).ends(0).shows("promises").shows("algorithm ring");
    rcc(&["explain", "promise"]).ends(0).shows("promises");
    rcc(&["explain", "plan::v2_deadlock"]).ends(0).shows("circle");
    let listed = rcc(&["explain", "--list"]).ends(0);
    assert!(listed.out.lines().count() > 60);
}

#[test]
fn nobody_reads_the_output() {
    let folder = folder();
    let ring = file(&folder, "ring.coll", RING);
    let mut emit = command(&["compile", &ring, "--ranks", "64", "--emit", "trace"]);
    emit.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = emit.spawn().unwrap();
    drop(child.stdout.take());
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    let status = child.wait().unwrap();
    assert_eq!((status.code(), told.as_str()), (Some(0), ""));
    let mut full = command(&["explain", "coll::promise"]);
    full.stdout(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    let ran = finish_to(full);
    assert_eq!(ran.0, Some(3), "{}", ran.1);
    let _ = finish(command(&["--version"]));
}

/// Runs a command whose standard output is already somewhere.
fn finish_to(mut command: Command) -> (Option<i32>, String) {
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn what_lays_out_steps_changes_steps() {
    let json = |options: &[&str]| {
        let plain = ["compile", "std::allreduce::ring", "--ranks", "4", "--json", "--direct", "never"];
        rcc(&[&plain, options].concat()).ends(0).json()
    };
    let steps = |options: &[&str]| json(options)["steps"].as_u64().unwrap();
    assert_eq!(steps(&["--slots", "2"]), 4 * 7, "2n - 1 for each rank");
    // One slot: some of what is sent along is kept and sent later. Unfused: each of 6 messages of a rank is sent and taken.
    assert!(steps(&["--slots", "1"]) > 28);
    assert!(steps(&["--no-fuse"]) >= 4 * 12);
    let compiled = |options: &[&str]| {
        rcc(&[&["compile", "std::allreduce::ring", "--ranks", "4"], options].concat()).ends(0)
    };
    compiled(&["--slots", "2"]).shows("k_min = 2");
    compiled(&["--slots", "1"]).shows("k_min = 1");
    let blocks = |options: &[&str]| {
        let args = [&["compile", "std::alltoall::direct", "--ranks", "4", "--json"], options].concat();
        rcc(&args).ends(0).json()["blocks"].as_u64().unwrap()
    };
    assert_eq!(blocks(&["--blocks", "1"]), 4);
    assert!(blocks(&["--blocks", "8"]) > 4);
}

/// What comes together and goes on apart is stored in between, or comes in messages of its own.
#[test]
fn messages_are_cut_as_it_is_told() {
    let folder = folder();
    let gather = ["compile", "std::gather::binomial", "-n", "8", "--param", "root=0"];
    let of = |more: &[&str]| rcc(&[&gather, more].concat());
    let plan_of = |how: &str| of(&["--emit", "plan", "--direct", "never", "--cut", how]).ends(0);
    plan_of("whole").shows("recv ch2 ← rank 3 → scratch 1");
    plan_of("parts").shows("working space, 0 cells per rank").shows("recv ch2 ← rank 3 → send ch1 → rank 0");
    of(&["--cut", "cells"]).ends(2).says("whole, parts");
    // Where nothing is fused, everything is stored: no report says otherwise.
    of(&["--cut", "parts", "--no-fuse"]).ends(2).says("cannot be used with '--no-fuse'");
    let plan = folder.path().join("gather.plan");
    let plan = plan.to_str().unwrap();
    of(&["--cut", "parts", "-o", plan]).ends(0);
    rcc(&["run", plan, "--bytes", "64K", "--iterations", "2"]).ends(0);
    rcc(&["run", plan, "--cut", "parts"]).ends(2).says("--cut is for source files");
}

/// One message that all read, or copies by way of each other; and only what there is.
#[test]
fn multicast_goes_as_it_is_told() {
    let folder = folder();
    let text = "algorithm flat(root: rank) on ranks[n] implements broadcast(root) {\n    data @ * = data @ root\n}\n";
    let flat = file(&folder, "flat.coll", text);
    let of = |how: &str| {
        rcc(&[
            "compile",
            &flat,
            "--ranks",
            "5",
            "--param",
            "root=0",
            "--emit",
            "plan",
            "--direct",
            "never",
            "--multicast",
            how,
        ])
        .ends(0)
    };
    of("flat").shows("4 of slots").shows("send ch3 → rank 4");
    of("channel").shows("1 of slots; 1 with several readers").shows("→ ranks 1..5");
    // Each takes it from the one before.
    of("chain")
        .shows("4 of slots")
        .shows("recv ch0 ← rank 0 → data, send ch1 → rank 2")
        .shows("recv ch3 ← rank 3 → data");
    // 3 is 1 + 2: from 2.
    of("binomial").shows("recv ch1 ← rank 0 → data, send ch3 → rank 3");
    of("tree:2").shows("← rank 1 → data");
    // From 0 to 1 and 2, from 1 to 3 and 4.
    of("tree:2+channel")
        .shows("2 of slots; 2 with several readers")
        .shows("→ ranks 1..3")
        .shows("→ ranks 3..5");
    of("binomial+channel")
        .shows("1 with several readers")
        .shows("→ ranks 1, 2, 4")
        .shows("send ch0 → rank 3");
    for how in
        ["tree:0", "tree:65536", "tree", "ring", "flat+channel", "channel+channel", "+channel", "tree:2+"]
    {
        rcc(&["compile", &flat, "--ranks", "5", "--multicast", how]).ends(2).says("none of flat, channel");
    }
    let plan = folder.path().join("flat.plan");
    let plan = plan.to_str().unwrap();
    rcc(&["compile", &flat, "--ranks", "5", "--param", "root=0", "--multicast", "channel", "-o", plan])
        .ends(0);
    rcc(&["run", plan, "--bytes", "64K", "--iterations", "2"]).ends(0);
    rcc(&["run", plan, "--multicast", "channel"]).ends(2).says("--multicast is for source files");
}
