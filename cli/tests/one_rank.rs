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
        .shows("rank 7: 65532 of 536838144 moves: 32766 in from 1 rank, 32766 out to 1 rank, 0 within");
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
    for whole in [&["--emit", "graph"][..], &["--target", "dot"]] {
        let args = [&["compile", "std::allreduce::ring", "--ranks", "4", "--rank", "1"], whole].concat();
        rcc(&args).ends(2).says("--rank 1");
    }
}

/// The program of one rank, written, shown, and run as what it is: the program of every rank.
#[test]
fn one_ranks_program_is_a_plan() {
    let folder = folder();
    let plan = folder.path().join("one.plan");
    let plan = plan.to_str().unwrap();
    rcc(&["compile", "std::allreduce::ring", "--ranks", "4", "--rank", "1", "-o", plan])
        .ends(0)
        .shows("proved (by symmetry)")
        .shows("its program: 7 steps in 1 block, as at each of 4 ranks, k_min = 2")
        .shows("chosen for 64 MiB (assumed: no size is given) on 2-cores: up to 8 blocks, no direct access, 1 copy")
        .shows("not free: protocol")
        .shows("one rank's program, which is every rank's, written to");
    rcc(&["show", plan])
        .ends(0)
        .shows("one rank of each symmetric set was followed")
        .shows("rank 0 stands for all 4")
        .shows("3 ranks are more, taken round");
    let whole = folder.path().join("whole.plan");
    let whole = whole.to_str().unwrap();
    rcc(&["compile", "std::allreduce::ring", "--ranks", "4", "-o", whole]).ends(0);
    // Rank 3's steps are told alike from both, but for the numbers of channels, which are those of the plan shown.
    let told = |shown: &str| -> Vec<String> {
        let lines = shown.lines().skip_while(|line| !line.starts_with("rank 3"));
        let bare = |word: &str| if word.starts_with("ch") { "ch".to_string() } else { word.to_string() };
        lines.map(|line| line.split_whitespace().map(bare).collect::<Vec<_>>().join(" ")).collect()
    };
    let steps = |file: &str| told(&rcc(&["show", file, "--rank", "3"]).ends(0).out);
    assert!(steps(plan).len() > 4);
    assert_eq!(steps(plan), steps(whole));
    let emitted = rcc(&["compile", "std::allreduce::ring", "--ranks", "4", "--rank", "3", "--emit", "plan"])
        .ends(0)
        .out;
    let emitted = told(&emitted);
    assert_eq!(emitted, steps(whole));
    rcc(&["run", plan, "--bytes", "4096", "--iterations", "2", "--warmup", "0"]).ends(0);
    rcc(&["run", plan, "-n", "3", "--bytes", "64"]).ends(2);
    rcc(&["explain", plan, "--bytes", "1MiB"]).ends(0).shows("ring");
    rcc(&["show", plan, "--rank", "4"]).ends(2).says("no rank 4");
    let bytes = std::fs::read(plan).unwrap();
    std::fs::write(plan, &bytes[..bytes.len() - 1]).unwrap();
    rcc(&["show", plan]).ends(1).says("cut short");
}

#[test]
fn the_program_of_one_of_16384_ranks_is_small() {
    let folder = folder();
    let plan = folder.path().join("one.plan");
    let plan = plan.to_str().unwrap();
    rcc(&["compile", "std::allreduce::ring", "--ranks", "16384", "--rank", "7", "-o", plan])
        .ends(0)
        .shows("its program: 32767 steps in 1 block, as at each of 16384 ranks, k_min = 2")
        .shows(
            "as usual (nothing is tried of 536854528 micro-steps, more than 4096, unless a machine is named",
        );
    assert!(std::fs::metadata(plan).unwrap().len() < 256 << 10);
    rcc(&["show", plan, "--rank", "7"]).ends(0).shows("rank 7").shows("for t in 0..");
    // Spelled out it is more than may be.
    rcc(&["run", plan, "--bytes", "64"]).ends(1).says("plan::v0_limit");
}

/// Where steps cannot be made for one rank, those of all ranks are, if they are asked for.
#[test]
fn what_cannot_be_folded_is_made_as_a_whole() {
    let folder = folder();
    let plan = folder.path().join("x.plan");
    let plan = plan.to_str().unwrap();
    rcc(&["compile", "std::allreduce::two_shot", "--ranks", "4", "--rank", "1"])
        .ends(0)
        .says("coll::not_folded")
        .says("combined in rank order")
        .says("take the steps of all ranks")
        .shows("proved (by symmetry)");
    rcc(&["compile", "std::allreduce::two_shot", "--ranks", "4", "--rank", "1", "-o", plan])
        .ends(0)
        .says("coll::not_folded")
        .says("combined in rank order")
        .says("take the steps of all ranks")
        .shows("proved (all ranks)");
    rcc(&["show", plan]).ends(0).shows("every rank was followed");
    rcc(&["compile", "std::allreduce::tree", "--ranks", "4", "--rank", "1", "-o", plan])
        .ends(0)
        .says("coll::not_symmetric")
        .shows("proved (all ranks)")
        .shows("of all ranks, k_min");
    rcc(&["compile", "std::allreduce::ring", "--ranks", "4", "--rank", "1", "--direct", "both"])
        .ends(0)
        .says("coll::not_folded")
        .says("laid out for all ranks together")
        .says("leave out --direct");
    rcc(&["explain", "not_folded"]).ends(0).shows("rank order");
}

#[test]
fn moves_of_one_rank_are_counted_without_being_made() {
    let ran = rcc(&["compile", "std::allreduce::two_shot", "--ranks", "16384", "--rank", "7"])
        .ends(0)
        .shows("proved (by symmetry)");
    let most = if cfg!(debug_assertions) { 60 } else { 5 };
    assert!(ran.took < Duration::from_secs(most), "{:?}", ran.took);
    rcc(&["compile", "std::allreduce::two_shot", "--ranks", "16384", "--rank", "7", "--emit", "trace"])
        .ends(2)
        .says("operands");
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
    assert_eq!((&json["steps"], &json["k_min"]), (&7.into(), &2.into()), "{json}");
}

#[test]
fn what_lays_out_steps_holds_for_one_rank() {
    for (option, said) in [
        (&["--blocks", "2"][..], "its program: 7 steps"),
        (&["--no-fuse"], "its program: "),
        (&["--slots", "3"], "its program: 7 steps"),
    ] {
        let args = [&["compile", "std::allreduce::ring", "--ranks", "4", "--rank", "1"], option].concat();
        rcc(&args).ends(0).shows(said);
    }
}

/// What is chosen for one rank is what is chosen for all that cannot reach into each other's memory, and what a machine's ranks
/// have is what one rank has.
#[test]
fn one_rank_is_made_for_a_machine() {
    let folder = folder();
    let text = "name = \"mine\"\n[[level]]\nname = \"wire\"\nlatency = \"5us\"\nport = \"1GB/s\"\n[resources]\nconnections = 4\n";
    let mine = file(&folder, "mine.toml", text);
    for (name, n, rank) in [("std::alltoall::direct", "6", "2"), ("std::allgather::bruck", "5", "0")] {
        for topology in ["2-cores", &mine] {
            let all = ["compile", name, "-n", n, "--topology", topology, "-b", "1M", "--json"];
            let all = rcc(&[&all[..], &["--direct", "never"]].concat());
            let one = rcc(&[
                "compile",
                name,
                "-n",
                n,
                "--rank",
                rank,
                "--topology",
                topology,
                "-b",
                "1M",
                "--json",
            ]);
            if name == "std::alltoall::direct" && topology == mine {
                let refused = "rank 0 needs 5 connections: on `mine` it has 4";
                all.ends(1).says("coll::target_limit").says(refused);
                one.ends(1).says("coll::target_limit").says(refused).says("direct.coll:11:9");
                continue;
            }
            let (all, one) = (all.ends(0).json(), one.ends(0).json());
            for field in ["topology", "bytes", "blocks", "copies", "slots", "slice_bytes", "predicted_us"] {
                assert_eq!(one["chosen"][field], all["chosen"][field], "{name} on {topology}: {field}");
            }
            assert!(one["chosen"]["predicted_us"].is_number());
        }
    }
    // Where all ranks are followed it is the plan of all ranks, direct access and all; without steps nothing is chosen.
    let plan = folder.path().join("x.plan");
    let plan = plan.to_str().unwrap();
    let tree = ["compile", "std::broadcast::chain", "-n", "4", "-b", "4M", "--json", "-o", plan];
    let (all, one) = (rcc(&tree).ends(0).json(), rcc(&[&tree[..], &["--rank", "1"]].concat()).ends(0).json());
    assert_eq!(one["chosen"], all["chosen"]);
    let one = rcc(&["compile", "std::broadcast::chain", "-n", "4", "--rank", "1", "--json"]).ends(0).json();
    assert!(one["chosen"].is_null() && one["steps"].is_null());
    // What nobody said is not told as given.
    let ring = ["compile", "std::allreduce::ring", "-n", "8", "--rank", "0", "--json"];
    let given =
        |more: &[&str]| rcc(&[&ring[..], more].concat()).ends(0).json()["chosen"]["given"].to_string();
    assert_eq!(given(&[]), "[\"protocol\"]");
    assert_eq!(given(&["--direct", "never"]), "[\"direct\",\"protocol\"]");
}

/// Steps are neither made nor chosen where only moves are printed.
#[test]
fn moves_alone_are_proved_alone() {
    let ring = ["compile", "std::allreduce::ring", "-n", "8", "--rank", "0", "--topology", "2-cores"];
    let stages = |more: &[&str]| rcc(&[&ring[..], &["--timings"], more].concat()).ends(0).out;
    let (moves, steps) = (stages(&["--emit", "trace"]), stages(&["--emit", "plan"]));
    let has = |text: &str, stage: &str| text.lines().any(|line| line.trim_start().starts_with(stage));
    assert!(has(&moves, "prove") && !has(&moves, "lower") && !has(&moves, "choose"), "{moves}");
    assert!(has(&steps, "prove") && has(&steps, "lower") && has(&steps, "choose"), "{steps}");
}
