//! `rcc fmt`: the layout is a fixed point, keeps the program, and files are replaced whole.

#![allow(clippy::disallowed_methods, reason = "tests write files and time what they run")]

mod common;

use std::fs;
use std::io::Write;
use std::process::Stdio;

use common::{RING, command, file, folder, rcc, sources};
use grammar::ParseLimits;
use grammar::span::FileId;

#[test]
fn the_library_and_the_examples_keep_their_meaning() {
    let folder = folder();
    for source in sources() {
        let text = fs::read_to_string(&source).unwrap();
        let path = file(&folder, "a.coll", &text);
        rcc(&["fmt", &path]).ends(0);
        let once = fs::read_to_string(&path).unwrap();
        let parse = |text: &str| grammar::parse(FileId(0), text, &ParseLimits::default());
        let (before, after) = (parse(&text), parse(&once));
        assert!(before.errors.is_empty() && after.errors.is_empty(), "{}", source.display());
        assert!(grammar::eq_modulo_spans(&before.file, &after.file), "{}", source.display());
        let words = |text: &str| text.split_whitespace().filter(|word| word.len() > 3).count();
        let comments = |text: &str| {
            text.lines().filter_map(|line| line.split_once("//")).map(|(_, c)| words(c)).sum::<usize>()
        };
        assert_eq!(comments(&text), comments(&once), "{}", source.display());
        rcc(&["fmt", "--check", &path]).ends(0);
        rcc(&["fmt", &path]).ends(0);
        assert_eq!(fs::read_to_string(&path).unwrap(), once, "{}", source.display());
    }
}

#[test]
fn check_lists_and_changes_nothing() {
    let folder = folder();
    let untidy = RING.replace("    ", "  ");
    let (good, bad) = (file(&folder, "good.coll", RING), file(&folder, "bad.coll", &untidy));
    let ran = rcc(&["fmt", "--check", &good, &bad]).ends(1);
    assert_eq!(ran.out, format!("{bad}\n"));
    assert_eq!(fs::read_to_string(&bad).unwrap(), untidy);
    rcc(&["fmt", &good, &bad]).ends(0);
    assert_eq!(fs::read_to_string(&bad).unwrap(), RING);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_file_with_errors_is_left_alone_and_the_others_are_done() {
    let folder = folder();
    let untidy = RING.replace("    ", "  ");
    let (bad, good) = (file(&folder, "bad.coll", "algorithm {"), file(&folder, "good.coll", untidy));
    rcc(&["fmt", &bad, &good]).ends(1).says("bad.coll");
    assert_eq!(fs::read_to_string(&bad).unwrap(), "algorithm {");
    assert_eq!(fs::read_to_string(&good).unwrap(), RING);
    let missing = folder.path().join("missing.coll");
    rcc(&["fmt", missing.to_str().unwrap(), &good]).ends(2).says("missing.coll");
}

#[test]
fn standard_input_goes_to_standard_output() {
    let mut fmt = command(&["fmt", "-"]);
    fmt.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = fmt.spawn().unwrap();
    child.stdin.take().unwrap().write_all(RING.replace("    ", "\t").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), RING);
}
