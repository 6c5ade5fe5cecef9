//! The order of the house, checked: which crate may use which, how a file begins, how long it may be, and that no
//! snapshot outlives its test.
#![allow(clippy::disallowed_methods, reason = "reads the source tree")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Which of our crates each of them may depend on (outside of tests). `ARCHITECTURE.md` draws the same arrows.
const ARROWS: &[(&str, &[&str])] = &[
    ("rcc-grammar", &[]),
    ("rcc-plan", &[]),
    ("rcc-stdlib", &[]),
    ("rcc-compiler", &["rcc-grammar", "rcc-plan", "rcc-stdlib"]),
    ("rcc-runtime", &["rcc-plan"]),
    ("rcc", &["rcc-compiler", "rcc-grammar", "rcc-plan", "rcc-runtime", "rcc-stdlib"]),
    ("rcc-cli", &["rcc", "rcc-compiler", "rcc-grammar", "rcc-plan", "rcc-runtime", "rcc-stdlib"]),
    ("rcc-c", &["rcc", "rcc-plan", "rcc-runtime"]),
    ("rcc-tests", &["rcc", "rcc-compiler", "rcc-grammar", "rcc-plan", "rcc-runtime", "rcc-stdlib"]),
    ("rcc-bench", &["rcc", "rcc-compiler", "rcc-plan", "rcc-runtime"]),
    ("xtask", &[]),
];

const MOST_LINES: usize = 600;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests' folder has a parent").to_path_buf()
}

/// All files that git tracks or would track, so that build output and caches are left out.
fn files(extension: &str) -> Vec<PathBuf> {
    let listing = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git lists the files of the tree");
    assert!(listing.status.success(), "git ls-files failed");
    let text = String::from_utf8(listing.stdout).expect("file names are UTF-8");
    let paths = text.lines().map(|line| root().join(line));
    paths.filter(|p| p.extension().is_some_and(|e| e == extension) && p.exists()).collect()
}

#[test]
fn crates_use_only_what_the_architecture_allows() {
    let metadata = MetadataCommand::new().current_dir(root()).no_deps().exec().expect("cargo metadata");
    let ours: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    for package in &metadata.packages {
        let name = package.name.as_str();
        let (_, allowed) = ARROWS.iter().find(|(known, _)| *known == name).unwrap_or_else(|| {
            panic!("the crate {name} is not in ARROWS: add it there and to ARCHITECTURE.md")
        });
        for dependency in &package.dependencies {
            let used = dependency.name.as_str();
            if ours.contains(used) && dependency.kind != DependencyKind::Development {
                assert!(allowed.contains(&used), "{name} must not depend on {used}");
            }
        }
    }
}

#[test]
fn every_rust_file_opens_with_its_purpose() {
    let bare: Vec<PathBuf> = files("rs")
        .into_iter()
        .filter(|path| !fs::read_to_string(path).is_ok_and(|text| text.starts_with("//!")))
        .collect();
    assert!(bare.is_empty(), "these files do not begin with `//!`: {bare:#?}");
}

#[test]
fn no_rust_file_is_long() {
    let long: Vec<String> = files("rs")
        .into_iter()
        .filter_map(|path| {
            let lines = fs::read_to_string(&path).ok()?.lines().count();
            (lines > MOST_LINES).then(|| format!("{} ({lines})", path.display()))
        })
        .collect();
    assert!(long.is_empty(), "over {MOST_LINES} lines, split by stage or construct: {long:#?}");
}

#[test]
fn no_module_is_called_utils() {
    let vague: Vec<PathBuf> = files("rs")
        .into_iter()
        .filter(|p| {
            p.file_stem().is_some_and(|s| {
                ["utils", "util", "helpers", "common", "misc"].contains(&&*s.to_string_lossy())
            })
        })
        .collect();
    assert!(vague.is_empty(), "say what these hold: {vague:#?}");
}

#[test]
fn every_golden_snapshot_has_its_program() {
    for snapshot in files("snap") {
        if !snapshot.components().any(|part| part.as_os_str() == "golden") {
            continue;
        }
        let stem = snapshot.file_name().expect("a file").to_string_lossy();
        let program = stem.split('.').next().expect("a stem").to_string();
        let source = snapshot.with_file_name(format!("{program}.coll"));
        assert!(source.exists(), "{} has no {}", snapshot.display(), source.display());
    }
}

#[test]
fn nothing_is_left_unfinished() {
    // Spelt apart, so that this file does not find itself.
    let marks = [concat!("to", "do!("), concat!("FIX", "ME"), concat!("XX", "X")];
    for path in files("rs").into_iter().chain(files("coll")) {
        let bytes = fs::read(&path).expect("a readable source file");
        let text = String::from_utf8_lossy(&bytes);
        for mark in marks {
            assert!(!text.contains(mark), "{} contains {mark}", path.display());
        }
    }
}
