//! Lists the pages of `src/diagnostics/explain/`, so that to write a page is to register it.

#![allow(clippy::disallowed_methods, reason = "a build script reads the source folder and writes for cargo")]

use std::{env, fs, path::Path};

fn main() {
    let folder =
        Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("src/diagnostics/explain");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut pages: Vec<_> = fs::read_dir(&folder)
        .expect("the pages are part of the source")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .collect();
    pages.sort();
    let mut table = String::from("[\n");
    for page in pages {
        let stem = page.file_stem().and_then(|stem| stem.to_str()).expect("a page is named after its code");
        // `plan-v2_deadlock.md` explains `plan::v2_deadlock`; all others are `coll::`.
        let code = stem.strip_prefix("plan-").map_or(format!("coll::{stem}"), |rest| format!("plan::{rest}"));
        table += &format!("    ({code:?}, include_str!({:?})),\n", page.display().to_string());
    }
    table += "]\n";
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("explain.rs");
    fs::write(out, table).expect("cargo's output folder is writable");
}
