//! Every `.coll` file of the standard library and the examples parses, and its canonical layout is the same program.

#![allow(clippy::disallowed_methods, reason = "a test reads the files it is about")]

use std::path::{Path, PathBuf};

use rcc_grammar::span::FileId;
use rcc_grammar::{ParseLimits, eq_modulo_spans, parse, print::print};

fn programs() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders = vec![root.join("stdlib"), root.join("examples")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "coll") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

#[test]
fn the_standard_library_and_the_examples_parse() {
    let mut faults = Vec::new();
    let files = programs();
    assert!(files.len() > 10, "the programs have moved");
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let parsed = parse(FileId(0), &text, &ParseLimits::default());
        for error in &parsed.errors {
            faults.push(format!("{}: {} at `{}`", path.display(), error.title, &text[error.span.range()]));
        }
        let printed = print(&parsed.file);
        let again = parse(FileId(0), &printed, &ParseLimits::default());
        if !eq_modulo_spans(&parsed.file, &again.file)
            || parsed.file.comments.len() != again.file.comments.len()
            || print(&again.file) != printed
        {
            faults.push(format!("{}: another program when printed\n{printed}", path.display()));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
