//! Every code that the compiler can refuse or warn with is shown by a golden file, and every kind of fault by at least
//! three.
#![allow(clippy::disallowed_methods, reason = "reads the golden files")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use compiler::diagnostics::explain::codes;
use rcc_tests::golden::{Header, repaired};

/// Codes that no golden file shows, and why.
const WITHOUT_FILE: &[(&str, &str)] = &[
    (
        "coll::too_deep",
        "takes runs or functions nested some hundred deep; compiler/tests/elaborate/hostile.rs generates them",
    ),
    (
        "coll::not_folded",
        "no fault of a program: a note of `compile --rank`; cli/tests/one_rank.rs asks for it",
    ),
    (
        "coll::not_symmetric",
        "no fault of a program: a note of `compile --rank`; cli/tests/one_rank.rs asks for it",
    ),
];

/// The kinds of fault that a proof finds. Each has at least [`OF_EACH`] files that show one of its codes; a folder in
/// place of codes counts the files in it.
const KINDS: &[(&str, &[&str])] = &[
    ("reading what nothing wrote", &["coll::nothing_written"]),
    ("+= into nothing", &["coll::combine_into_nothing"]),
    ("a rank out of range", &["coll::rank_out_of_range"]),
    ("a chunk out of range", &["coll::chunk_out_of_range"]),
    ("a block out of range", &["coll::block_out_of_range"]),
    ("conflicting writes in a step", &["coll::conflicting_writes"]),
    ("moves of unequal length", &["coll::unequal_runs"]),
    ("values of another position", &["coll::wrong_position"]),
    ("unequal pieces combined", &["coll::unequal_pieces"]),
    ("a written `in` buffer", &["coll::in_written"]),
    ("a run whose bindings alias", &["coll::alias"]),
    ("a callee that is wrong alone", &["reject/callee/"]),
    ("a promise that is broken", &["coll::promise"]),
    ("a promise that is broken in place only", &["reject/in_place/"]),
    ("ranks that are not synchronised", &["coll::not_synchronised"]),
    ("a schedule that is wrong", &["reject/schedules/"]),
    ("a channel that there cannot be", &["coll::bad_channel"]),
    ("what a peer takes for right", &["reject/peers/"]),
    ("more than a rank of the target has", &["coll::target_limit"]),
];

const OF_EACH: usize = 3;

#[test]
fn every_code_is_shown() {
    let files = files();
    let shown = |code: &str| files.iter().any(|(_, header)| has(header, code));
    let missing: Vec<&str> = codes()
        .filter(|code| code.starts_with("coll::") && !shown(code))
        .filter(|code| WITHOUT_FILE.iter().all(|(known, _)| known != code))
        .collect();
    assert!(missing.is_empty(), "no golden file shows {missing:#?}");
    let stale: Vec<&str> = WITHOUT_FILE.iter().map(|(code, _)| *code).filter(|code| shown(code)).collect();
    assert!(stale.is_empty(), "these are shown after all: {stale:?}");
}

#[test]
fn every_code_shown_exists() {
    for (path, header) in files() {
        for code in header.codes.iter().chain(&header.warn) {
            assert!(codes().any(|known| known == code), "{}: no code {code}", path.display());
        }
    }
}

#[test]
fn every_kind_of_fault_has_several_files() {
    let files = files();
    let mut counts = BTreeMap::new();
    for (kind, marks) in KINDS {
        let shows = |path: &Path, header: &Header| {
            marks.iter().any(|mark| match mark.strip_prefix("coll::") {
                Some(_) => header.codes.iter().any(|code| code == mark),
                None => path.to_string_lossy().contains(mark),
            })
        };
        counts.insert(kind, files.iter().filter(|(path, header)| shows(path, header)).count());
    }
    let few: Vec<_> = counts.iter().filter(|&(_, &count)| count < OF_EACH).collect();
    assert!(few.is_empty(), "fewer than {OF_EACH} files for {few:?}");
}

#[test]
fn every_rejected_file_says_how_it_is_repaired() {
    for (path, _) in files().into_iter().filter(|(path, _)| path.to_string_lossy().contains("/reject/")) {
        let bytes = std::fs::read(&path).expect("a readable file");
        assert!(repaired(&bytes).is_some_and(|fixed| fixed != bytes), "{}", path.display());
    }
}

fn has(header: &Header, code: &str) -> bool {
    header.codes.iter().chain(&header.warn).any(|shown| shown == code)
}

/// All golden files with their headers.
fn files() -> Vec<(PathBuf, Header)> {
    let mut found = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("golden"), &mut found);
    assert!(found.len() > 100, "the golden files are no longer found");
    found
}

fn collect(folder: &Path, found: &mut Vec<(PathBuf, Header)>) {
    let entries = std::fs::read_dir(folder).expect("a folder of golden files");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "coll") {
            let text = String::from_utf8_lossy(&std::fs::read(&path).expect("a readable file")).into_owned();
            let header = Header::parse(&text).unwrap_or_else(|e| panic!("{}: {}", path.display(), e.0));
            found.push((path, header));
        }
    }
}
