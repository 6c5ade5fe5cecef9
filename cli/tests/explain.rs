//! `rcc explain FILE…`: plans side by side on machines, as text and as JSON.

#![allow(clippy::disallowed_methods, reason = "tests write files")]

mod common;

use common::{RING, file, folder, rcc};
use serde_json::Value;

fn json(arguments: &[&str]) -> Vec<Value> {
    let mut all = vec!["explain"];
    all.extend(arguments);
    all.push("--json");
    let text = rcc(&all).ends(0).out;
    serde_json::from_str::<Value>(&text).expect("one document").as_array().expect("an array").clone()
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} in {value}"))
}

#[test]
fn algorithms_stand_side_by_side_fastest_first() {
    let names = ["std::allreduce::ring", "std::allreduce::tree", "std::allreduce::one_shot"];
    let mut arguments = names.to_vec();
    arguments.extend(["--topology", "8xh100-ideal", "--bytes", "8,64MiB"]);
    let told = json(&arguments);
    assert_eq!(told.len(), 6);
    for (at, bytes) in [(0, 8.0), (3, 64.0 * 1024.0 * 1024.0)] {
        let size = &told[at..at + 3];
        assert!(size.iter().all(|one| number(one, "/bytes") == bytes));
        assert!(size.windows(2).all(|pair| number(&pair[0], "/time_us") <= number(&pair[1], "/time_us")));
    }
    assert_eq!(told[0]["algorithm"], "std::allreduce::one_shot");
    assert_eq!(told[3]["algorithm"], "std::allreduce::ring");
    // One hop of 1 us, and the ports' part of it.
    assert!((number(&told[0], "/time_us") - 1.0).abs() < 0.01);
    for one in &told {
        let time = number(one, "/time_us");
        let path = |part: &str| number(one, &format!("/path/{part}_us"));
        let parts = path("moving") + path("latency") + path("queueing") + path("cores");
        assert!((parts - time).abs() <= time * 1e-6, "{one}");
        let lines: f64 = one["path"]["lines"].as_array().unwrap().iter().map(|leg| number(leg, "/us")).sum();
        assert!((lines - time).abs() <= time * 1e-6, "{one}");
        let size = number(one, "/bytes");
        assert!((number(one, "/algbw_gbps") - size / time / 1e3).abs() <= 1e-9 * size);
        assert!(
            (number(one, "/bandwidth_ratio") - time / number(one, "/bandwidth_bound_us")).abs() < 1e-6 * time
        );
        assert_eq!(one["plan"]["proof"], "all ranks");
    }
    // 2 * 7/8 of 64 MiB through 450 GB/s.
    assert!((number(&told[3], "/bandwidth_bound_us") - 1.75 * 67_108_864.0 / 450e3).abs() < 1e-6);
    assert!((number(&told[3], "/latency_bound_us") - 3.0).abs() < 1e-9);

    let mut text = vec!["explain"];
    text.extend(&arguments);
    rcc(&text)
        .ends(0)
        .shows("allreduce of 64 MiB on 8 ranks of 8xh100-ideal")
        .shows("critical path")
        .shows("allreduce/ring.coll:")
        .shows("best of")
        .shows("proved");
}

#[test]
fn machines_are_named_or_described() {
    let folder = folder();
    let ring = file(&folder, "ring.coll", RING);
    let text = "name = \"mine\"\n[[level]]\nname = \"wire\"\nlatency = \"5us\"\nport = \"1GB/s\"\n";
    let mine = file(&folder, "mine.toml", text);
    let told = json(&[&ring, "-n", "4", "--bytes", "4000", "--topology", &mine]);
    assert_eq!(told[0]["topology"], "mine");
    // Six hops at least.
    assert!(number(&told[0], "/time_us") >= 6.0 * 6.0, "{}", told[0]);
    assert_eq!(json(&[&ring, "-n", "9", "--bytes", "4000"])[0]["topology"], "2x8xh100");

    let bad = file(&folder, "bad.toml", text.replace("5us", "-5us"));
    rcc(&["explain", &ring, "--topology", &bad]).ends(2).says("line 4").says("negative");
    rcc(&["explain", &ring, "--topology", "8xh10"]).ends(2).says("did you mean `8xh100`?");
    rcc(&["explain", &ring, "--topology", "nowhere.toml"]).ends(2).says("nowhere.toml");
    rcc(&["explain", &ring, "-n", "9", "--topology", "8xh100"]).ends(2).says("has 8 ranks");
    rcc(&["explain", &ring, "-n", "1025", "--bytes", "4K"]).ends(2).says("no built-in topology");
    rcc(&["explain", &ring, "--measure"]).ends(2).says("--topology 2-cores");
    rcc(&["explain", &ring, "--slot-bytes", "4G"]).ends(2).says("--slot-bytes");
}

#[test]
fn what_is_given_is_not_chosen() {
    let told = json(&["std::allreduce::ring", "--bytes", "1M", "--slots", "5", "--slot-bytes", "4K"]);
    assert_eq!(number(&told[0], "/chosen/slots"), 5.0);
    assert_eq!(number(&told[0], "/chosen/slice_bytes"), 4096.0);
    let given = told[0]["chosen"]["given"].as_array().unwrap();
    assert!(given.contains(&"slots".into()) && given.contains(&"slice_bytes".into()));
    assert!(told[0]["chosen"]["tried"].as_array().unwrap().len() > 1, "protocols and copies were tried");
}

#[test]
fn what_a_schedule_says_holds() {
    let folder = folder();
    let text = format!(
        "{RING}\nschedule for ring {{\n    pipeline 32 KiB\n    when size < 64 KiB {{\n        channels 2\n    }}\n}}\n"
    );
    let ring = file(&folder, "ring.coll", &text);
    let told = json(&[&ring, "-n", "4", "--bytes", "4K,1M", "--topology", "8xh100"]);
    assert_eq!(number(&told[0], "/chosen/copies"), 2.0);
    assert_eq!(number(&told[1], "/chosen/slice_bytes"), 32768.0);
    assert_eq!(told[0]["plan"]["whens"][0]["verdict"], "holds");
    assert_eq!(told[1]["plan"]["whens"][0]["verdict"], "is for other sizes");
    assert!(told[0]["plan"]["schedule"].as_str().unwrap().contains("size < 64 KiB"));
}

#[test]
fn codes_and_costs_do_not_mix() {
    rcc(&["explain", "coll::promise", "--json"]).ends(2).says("text");
    rcc(&["explain", "coll::promise", "coll::race"]).ends(2).says("one code at a time");
    rcc(&["explain"]).ends(2);
}

#[test]
fn shapes_that_are_excluded_are_left_out() {
    let told = rcc(&["explain", "std::allgather", "-n", "6", "--bytes", "6K"]);
    told.ends(0).says("skipped: std::allgather::recursive_doubling").shows("std::allgather::ring");
    rcc(&["explain", "std::allgather::recursive_doubling", "-n", "6"]).ends(1).says("coll::excluded");
}

/// Times are side by side where they are of the same thing.
#[test]
fn each_collective_has_a_table() {
    let told = rcc(&[
        "explain",
        "std::alltoall::direct",
        "std::allreduce::ring",
        "std::allreduce::tree",
        "-n",
        "4",
        "-b",
        "1K",
    ])
    .ends(0)
    .out;
    let heads: Vec<&str> = told.lines().filter(|line| line.contains(" of 1 KiB on 4 ranks of ")).collect();
    let of = |name: &str| heads.iter().filter(|head| head.starts_with(name)).count();
    assert_eq!((heads.len(), of("alltoall"), of("allreduce")), (2, 1, 1), "{told}");
    let from = |head: &str| told.split(head).nth(1).unwrap_or_default().to_string();
    let table = from("allreduce of 1 KiB").split("\n\n").nth(1).unwrap_or_default().to_string();
    assert!(table.contains("std::allreduce::ring") && table.contains("std::allreduce::tree"), "{told}");
    assert!(!table.contains("alltoall"), "{told}");
    let codes = rcc(&["explain", "--list", "--json"]).ends(0).json();
    let lines = rcc(&["explain", "--list"]).ends(0).out;
    let listed: Vec<&str> = codes.as_array().unwrap().iter().map(|code| code.as_str().unwrap()).collect();
    assert_eq!(listed, lines.lines().collect::<Vec<_>>());
}
