//! `rcc compile --rank`, and `rcc check` of worlds too large to be followed as a whole.

#![allow(clippy::disallowed_methods, reason = "tests write files and time what they run")]

mod common;

use std::time::Duration;

use common::{RING, broken_ring, file, folder, rcc};

/// 537 million moves in all. The acceptance is a second, on a quiet machine and optimised.
#[test]
fn one_rank_of_a_ring_of_16384_is_proved_by_symmetry() {
    let ran = rcc(&["compile", "std::allreduce::ring", "--ranks", "16384", "--rank", "7"])
        .ends(0)
        .shows("proved (by symmetry)")
        .shows("rank 7: 65532 of 536838144 moves: 32766 in from 1 ranks, 32766 out to 1 ranks, 0 within");
    let most = if cfg!(debug_assertions) { 60 } else { 5 };
    assert!(ran.took < Duration::from_secs(most), "{:?}", ran.took);
}

#[test]
fn one_rank_is_told_as_it_stands_in_the_whole() {
    let folder = folder();
    let ring = file(&folder, "ring.coll", RING);
    let whole = rcc(&["compile", &ring, "--ranks", "5", "--emit", "trace"]).ends(0).out;
    let one = rcc(&["compile", &ring, "--ranks", "5", "--rank", "3", "--emit", "trace"]).ends(0).out;
    let moves = |text: &str| -> Vec<String> {
        let numbered = text.lines().filter(|line| line.contains("@"));
        let bare = |line: &str| line.trim_start().split_once("  ").map(|(_, rest)| rest.to_string());
        numbered.filter(|line| line.contains("ring.coll:")).filter_map(bare).collect()
    };
    let touching: Vec<String> =
        moves(&whole).into_iter().filter(|line| line.contains("@ 3 ") || line.contains("@ 3\n")).collect();
    assert!(touching.len() > 8, "{whole}");
    assert_eq!(moves(&one), touching);
}

#[test]
fn what_is_not_the_same_at_all_ranks_is_followed_as_a_whole() {
    rcc(&["compile", "std::allreduce::tree", "--ranks", "8", "--rank", "3"])
        .ends(0)
        .says("coll::not_symmetric")
        .shows("proved (all ranks)")
        .shows("rank 3: 4 of 14 moves: 2 in from 2 ranks, 2 out to 2 ranks");
    // Too large for that: both reasons are told.
    rcc(&["compile", "std::allgather::recursive_doubling", "--ranks", "16384", "--rank", "3"])
        .ends(1)
        .says("coll::not_symmetric")
        .says("coll::too_many_");
}

#[test]
fn a_wrong_program_is_wrong_at_one_rank() {
    let folder = folder();
    let ring = file(&folder, "ring.coll", broken_ring());
    rcc(&["compile", &ring, "--ranks", "16384", "--rank", "3"]).ends(1).says("coll::promise");
    rcc(&["compile", "std::allreduce::ring", "--ranks", "4", "--rank", "4"]).ends(2).says("no rank 4");
    let plan = folder.path().join("x.plan");
    let plan = plan.to_str().unwrap();
    rcc(&["compile", "std::allreduce::ring", "--ranks", "4", "--rank", "1", "-o", plan])
        .ends(2)
        .says("--rank 1");
    rcc(&["compile", "std::allreduce::ring", "--ranks", "4", "--rank", "1", "--emit", "plan"])
        .ends(2)
        .says("--rank 1");
}

#[test]
fn large_worlds_are_checked_by_symmetry() {
    rcc(&["check", "std::allreduce::ring", "--ranks", "8,16384"])
        .ends(0)
        .shows("proved")
        .shows("n = 8, 16384 (n = 16384 by symmetry); same bits on all ranks");
    let json = rcc(&["check", "std::allreduce::ring", "--ranks", "8,16384", "--json"]).ends(0).json();
    assert_eq!(
        (&json[0]["proof"], &json[1]["proof"]),
        (&"all ranks".into(), &"by symmetry".into()),
        "{json}"
    );
    let folder = folder();
    let ring = file(&folder, "ring.coll", broken_ring());
    rcc(&["check", &ring, "--ranks", "16384"]).ends(1).says("coll::promise");
    rcc(&["check", "std::allgather::recursive_doubling", "--ranks", "16384"]).ends(1).says("coll::too_many_");
    rcc(&["check", "std::allreduce::two_shot", "--ranks", "16384"]).ends(0).shows("by symmetry");
}

#[test]
fn the_summary_says_what_was_followed() {
    rcc(&["compile", "std::allreduce::ring", "--ranks", "4"]).ends(0).shows("proved (all ranks)");
    let json =
        rcc(&["compile", "std::allreduce::ring", "--ranks", "4", "--rank", "2", "--json"]).ends(0).json();
    let numbers =
        ["moves", "all_moves", "into", "out", "within", "from_ranks"].map(|field| json[field].as_u64());
    assert_eq!(numbers, [12, 24, 6, 6, 0, 1].map(Some), "{json}");
    assert_eq!(json["proof"], "by symmetry");
}

#[test]
fn what_lays_out_steps_is_refused() {
    let direct = ["--direct", "both"];
    let multicast = ["--multicast", "flat"];
    for option in [&["--blocks", "2"][..], &["--no-fuse"], &direct, &multicast, &["--slots", "3"]] {
        let args = [&["compile", "std::allreduce::ring", "--ranks", "4", "--rank", "1"], option].concat();
        rcc(&args).ends(2).says(option[0]).says("before there are steps");
    }
}
