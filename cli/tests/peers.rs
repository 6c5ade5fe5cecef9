//! Programs that other compilers take, or answer with a traceback of their own: `rcc` ends with status 1, names the
//! line, and leaves no plan.

#![allow(clippy::disallowed_methods, reason = "tests read and write files")]

mod common;

use std::fs;

use common::{folder, rcc, root};

/// A header of the file: `//@ name = value`.
fn header<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let headers = text.lines().filter_map(|line| line.strip_prefix("//@ ")?.split_once(" = "));
    headers.filter(|(known, _)| *known == name).map(|(_, value)| value).next()
}

#[test]
fn every_wrong_program_is_refused_with_its_line_and_leaves_no_plan() {
    let programs = root().join("tests/golden/reject/peers");
    let folder = folder();
    let plan = folder.path().join("wrong.plan");
    let mut tried = 0;
    for entry in fs::read_dir(&programs).expect("the folder of golden programs") {
        let path = entry.expect("readable").path();
        if path.extension().is_none_or(|ending| ending != "coll") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("readable");
        let code = header(&text, "code").expect("a code");
        let ranks = header(&text, "ranks").map_or("4", |all| all.split(',').next().unwrap_or("4"));
        let name = path.file_name().and_then(|name| name.to_str()).expect("a plain name");
        // Where the fault lies in the whole, the file says no line; there must be one all the same.
        let place = format!("{name}:{}", header(&text, "line").unwrap_or(""));
        let file = path.to_str().expect("a plain path");
        let plan = plan.to_str().expect("a plain path");
        rcc(&["check", file, "--ranks", ranks]).ends(1).says(code).says(&place);
        rcc(&["compile", file, "--ranks", ranks, "-o", plan]).ends(1).says(code).says(&place);
        rcc(&["run", file, "--ranks", ranks, "--count", "8"]).ends(1).says(code).says(&place);
        assert!(fs::read_dir(folder.path()).expect("readable").next().is_none(), "{name} left something");
        tried += 1;
    }
    assert!(tried >= 10, "{tried} programs");
}
