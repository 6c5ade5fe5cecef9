//! `rcc check`: what is proved, what is skipped, what is wrong, and the same for programs.

#![allow(clippy::disallowed_methods, reason = "tests write files and time what they run")]

mod common;

use std::time::Duration;

use common::{RING, broken_ring, command, file, finish, folder, rcc, root};
use serde_json::Value;

#[test]
fn a_right_program() {
    let folder = folder();
    let ring = file(&folder, "ring.coll", RING);
    rcc(&["check", &ring])
        .ends(0)
        .shows("proved")
        .shows("allreduce")
        .shows("n = 2..16")
        .shows("same bits on all ranks");
    rcc(&["check", &ring, "--ranks", "2,4", "--ranks", "2x3"]).ends(0).shows("n = 2, 4, 6");
}

#[test]
fn a_wrong_program_is_drawn_once_and_named_with_its_line() {
    let folder = folder();
    let ring = file(&folder, "ring.coll", broken_ring());
    let ran = rcc(&["check", &ring])
        .ends(1)
        .shows("WRONG")
        .says("coll::promise")
        .says("ring.coll:4:9")
        .says("help:");
    assert_eq!(ran.err.matches("coll::promise").count(), 1, "{}", ran.err);
    assert!(ran.err.contains("it fails for 2, 4..16 too"), "{}", ran.err);
    assert!(!ran.out.contains("coll::promise") && !ran.err.contains('\x1b'));
}

#[test]
fn shapes_that_a_require_excludes_are_skipped_and_counted() {
    let name = "std::allgather::recursive_doubling";
    rcc(&["check", name])
        .ends(0)
        .shows("n = 2, 4, 8, 16")
        .shows("skipped 11")
        .shows("pairs ranks by one bit");
    rcc(&["check", name, "--ranks", "3,5"])
        .ends(1)
        .says("coll::excluded")
        .says("pairs ranks by one bit")
        .shows("NOTHING");
}

#[test]
fn levels() {
    let name = "std::allreduce::hierarchical";
    rcc(&["check", name]).ends(0).shows("1x1, 2x2, 2x3, 3x2, 4x4");
    rcc(&["check", name, "--ranks", "4,2x2"]).ends(0).shows("for 2x2").shows("runs on worlds of 2 levels");
    rcc(&["check", name, "--ranks", "4"]).ends(1).shows("runs on worlds of 2 levels");
    rcc(&["check", "std::allreduce::ring", "--ranks", "2x3"]).ends(0).shows("n = 6");
}

#[test]
fn roots() {
    let name = "std::broadcast::binomial";
    rcc(&["check", name, "--ranks", "2..5"]).ends(0).shows("every root");
    let one = rcc(&["check", name, "--ranks", "2..5", "--param", "root=3"])
        .ends(0)
        .shows("n = 4, 5")
        .shows("root = 3 is no rank");
    assert!(!one.out.contains("every root"));
    rcc(&["check", name, "--param", "root=first"]).ends(2).says("a rank");
}

/// Wrong for one root only: found because every root is tried.
#[test]
fn a_fault_at_one_root_is_found() {
    let folder = folder();
    let text = "algorithm star(root: rank) on ranks[n] implements broadcast(root) {
    for r in 0..n if r != root and not (root == 2 and r == 0) { data @ r = data @ root }
}
";
    let star = file(&folder, "star.coll", text);
    rcc(&["check", &star, "--ranks", "4"]).ends(1).says("coll::promise");
    rcc(&["check", &star, "--ranks", "4", "--param", "root=1"]).ends(0);
}

#[test]
fn json() {
    let folder = folder();
    let ring = file(&folder, "ring.coll", broken_ring());
    let ran =
        rcc(&["check", &ring, "std::allgather::recursive_doubling", "--ranks", "3,4", "--json"]).ends(1);
    let document = ran.json();
    let entries = document.as_array().expect("an array");
    assert_eq!(entries.len(), 4);
    for entry in entries {
        let mut fields: Vec<&str> = entry.as_object().unwrap().keys().map(String::as_str).collect();
        fields.sort_unstable();
        assert_eq!(fields, ["algorithm", "collective", "diagnostics", "ms", "proof", "proved", "shape"]);
        for diagnostic in entry["diagnostics"].as_array().unwrap() {
            let mut fields: Vec<&str> = diagnostic.as_object().unwrap().keys().map(String::as_str).collect();
            fields.sort_unstable();
            assert_eq!(fields, ["code", "column", "file", "help", "line", "message"]);
        }
    }
    let wrong = &entries[0];
    assert_eq!((&wrong["algorithm"], &wrong["proved"]), (&Value::from("ring"), &Value::from(false)));
    assert_eq!(wrong["shape"], serde_json::json!([3]));
    assert_eq!(wrong["diagnostics"][0]["code"], "coll::promise");
    assert_eq!(wrong["diagnostics"][0]["file"], ring.as_str());
    assert_eq!(wrong["diagnostics"][0]["line"], 4);
    assert_eq!(entries[2]["proved"], Value::Null);
    assert_eq!(entries[3]["proved"], true);
    assert_eq!((&wrong["proof"], &entries[3]["proof"]), (&Value::Null, &Value::from("all ranks")));

    let broken = file(&folder, "broken.coll", "algorithm");
    let document = rcc(&["check", &broken, "--json"]).ends(1).json();
    assert_eq!(document[0]["algorithm"], Value::Null);
    assert_eq!(document[0]["diagnostics"][0]["line"], 1);
}

#[test]
fn the_history_of_a_value() {
    let folder = folder();
    let ring = file(&folder, "ring.coll", RING);
    let told = rcc(&["check", &ring, "--ranks", "4", "--trace", "data[3] @ 1"]).ends(0).shows("ring.coll:");
    assert!(told.out.lines().count() >= 3, "{}", told.out);
    rcc(&["check", &ring, "--trace", "data[3] @ 1"]).ends(2).says("--ranks");
    rcc(&["check", &ring, "--ranks", "4", "--trace", "data[9] @ 1"]).ends(2).says("--trace");
    rcc(&["check", &ring, "--ranks", "4", "--trace", "nonsense"]).ends(2).says("data[3] @ 1");
    let broken = file(&folder, "broken.coll", broken_ring());
    rcc(&["check", &broken, "--ranks", "4", "--trace", "data[3] @ 1"]).ends(1);
}

/// The whole library, at every shape that it is to be proved for.
#[test]
fn the_standard_library_is_proved() {
    let shapes = "1..17,1x1,2x3,3x2,4x4";
    let ran = rcc(&["check", "std", "--ranks", shapes]).ends(0);
    assert!(!ran.out.contains("WRONG") && !ran.out.contains("NOTHING"), "{}", ran.out);
    assert!(ran.out.matches("proved").count() >= 25, "{}", ran.out);
    assert!(ran.err.is_empty(), "warnings in the library:\n{}", ran.err);
    if !cfg!(debug_assertions) {
        assert!(ran.took < Duration::from_secs(10), "took {:?}", ran.took);
    }
    // Threads do not show.
    let again = rcc(&["check", "std::allreduce", "--ranks", shapes]).ends(0);
    let once_more = rcc(&["check", "std::allreduce", "--ranks", shapes]).ends(0);
    let without_times = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.rsplit_once("  (").map_or(line, |(line, _)| line).to_string()).collect()
    };
    assert_eq!(without_times(&again.out), without_times(&once_more.out));
}

#[test]
fn the_examples_are_proved() {
    let mut count = 0;
    for entry in std::fs::read_dir(root().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "coll") {
            rcc(&["check", path.to_str().unwrap()]).ends(0);
            count += 1;
        }
    }
    assert!(count >= 5);
}

#[test]
fn colour_is_for_terminals() {
    let folder = folder();
    let ring = file(&folder, "ring.coll", broken_ring());
    for set in [false, true] {
        let mut check = command(&["check", &ring]);
        if set {
            check.env("NO_COLOR", "1");
        }
        let ran = finish(check).ends(1);
        assert!(!ran.out.contains('\x1b') && !ran.err.contains('\x1b'));
    }
}
