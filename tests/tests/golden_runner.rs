//! The runner of golden files fails where it must: each file here is wrong in one way.
#![allow(clippy::disallowed_methods, reason = "writes the files to try")]

use std::fs;

use rcc_tests::golden::{accept, reject};

const RIGHT: &str = "algorithm next on ranks[n] implements alltonext {
    for r in 0..n-1 { output @ r + 1 = input @ r }
}
";

const WRONG: &str = "algorithm next on ranks[n] implements alltonext {
    //~ fix: for r in 0..n-1 { output @ r + 1 = input @ r }
    for r in 0..n { output @ r + 1 = input @ r }
}
";

/// What the runner says of a file.
fn told(text: &str, under_reject: bool) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tried.coll");
    fs::write(&path, text).expect("a written file");
    let outcome = if under_reject { reject(&path) } else { accept(&path) };
    outcome.err().map_or(String::new(), |failure| failure.0)
}

#[test]
fn a_right_file_passes() {
    assert_eq!(told(RIGHT, false), "");
    assert_eq!(told(&format!("//@ ranks = 3\n//@ params = \n{RIGHT}"), false), "");
}

#[test]
fn a_wrong_program_is_not_accepted() {
    assert!(told(WRONG, false).contains("coll::rank_out_of_range"));
    let broken = RIGHT.replace("n-1", "n-2");
    assert!(told(&broken, false).contains("coll::promise"));
    let syntax = RIGHT.replace('=', "");
    assert!(told(&syntax, false).contains("coll::syntax"));
}

#[test]
fn what_the_header_of_a_right_file_says_must_hold() {
    let with = |line: &str| told(&format!("{line}\n{RIGHT}"), false);
    assert!(with("//@ warn = coll::never_read").contains("warnings {}"));
    assert!(with("//@ same_bits = true").contains("same bits"));
    assert!(with("//@ algorithm = ring").contains("only 0 are here"));
    assert!(with("//@ params = k = 3").contains("coll::bad_parameter"));
    assert!(with("//@ code = coll::promise").contains("reject"));
    assert!(with("//@ colour = red").contains("no header is called colour"));
    let excluded = RIGHT.replace("    for", "    require n > 2, \"three\"\n    for");
    assert_eq!(told(&excluded, false), "");
    assert!(told(&format!("//@ ranks = 2\n{excluded}"), false).contains("is excluded"));
    let never = excluded.replace("> 2", "> 99");
    assert!(told(&never, false).contains("no shape is left"));
}

#[test]
fn a_warning_must_be_named() {
    let wasted = RIGHT.replace("\n}\n", "\n    for r in 0..n-1 { output @ r + 1 = input @ r }\n}\n");
    assert!(told(&wasted, false).contains("coll::wasted_transfer"));
}

#[test]
fn a_stage_that_is_shown_has_a_snapshot() {
    // With INSTA_UPDATE=always or =force there is one after the first run.
    if std::env::var("INSTA_UPDATE").is_ok_and(|how| how != "no" && how != "auto") {
        return;
    }
    assert!(told(&format!("//@ show = plan\n{RIGHT}"), false).contains("plan differs"));
}

#[test]
fn a_refused_file_must_be_refused_as_it_says() {
    let tried = |header: &str| told(&format!("{header}\n{WRONG}"), true);
    assert!(
        tried("//@ code = coll::promise\n//@ line = 5")
            .contains("refused with [\"coll::rank_out_of_range\"]")
    );
    assert!(tried("//@ code = coll::rank_out_of_range\n//@ line = 4").contains("on lines [5]"));
    assert!(tried("//@ code = coll::rank_out_of_range").contains("a code and a line for each"));
    let right = format!("//@ code = coll::promise\n//@ line = 2\n{RIGHT}");
    assert!(told(&right, true).contains("it is accepted"));
}

#[test]
fn a_refused_file_must_be_right_once_its_fault_is_taken_out() {
    let header = "//@ code = coll::rank_out_of_range\n//@ line = 5\n";
    let without = format!("{header}{}", WRONG.replace("//~ fix:", "// fix:"));
    assert!(told(&without, true).contains("there is no `//~ fix:` line"));
    let not_mended = format!("{header}{}", WRONG.replace("0..n-1", "0..n"));
    assert!(told(&not_mended, true).contains("without its fault it is not right"));
}
