//! Every code has a page, every page has programs, and the programs do what the page says.
//!
//! In: the pages of `rcc explain`, the sources of the crates that have codes. Out: fences `coll,fail` are refused with the page's
//! code and no other; `coll,warn` are proved and warned of with that code and no other; `coll,pass` are proved without
//! an error or a warning. A program is tried at small worlds of as many levels as it has.

#![allow(clippy::disallowed_methods, reason = "reads the source tree")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rcc_compiler as compiler;

use compiler::diagnostics::explain::{codes, explain, nearest};
use compiler::elaborate::Request;
use compiler::limits::Limits;
use compiler::pipeline::{Failure, load, prove};
use compiler::trace::Params;
use grammar::ast::ParamType;

/// Codes that no program of a few lines shows; other tests do.
const WITHOUT_PROGRAM: [&str; 11] = [
    "coll::bad_parameter",
    "coll::bad_shape",
    "coll::nesting_too_deep",
    "coll::not_folded",
    "coll::not_symmetric",
    "coll::not_utf8",
    "coll::source_too_large",
    "coll::target_limit",
    "coll::too_deep",
    "coll::too_large",
    "coll::too_many_errors",
];

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut used = BTreeSet::new();
    for folder in ["grammar/src", "plan/src", "compiler/src"] {
        codes_in(&root.join(folder), &mut used);
    }
    let pages: BTreeSet<String> = codes().map(str::to_string).collect();
    assert!(used.len() > 60, "the search for codes no longer finds them: {used:?}");
    let missing: Vec<_> = used.difference(&pages).collect();
    let stale: Vec<_> = pages.difference(&used).collect();
    assert!(missing.is_empty(), "codes without a page: {missing:?}");
    assert!(stale.is_empty(), "pages without a code: {stale:?}");
}

#[test]
fn the_programs_of_the_pages_do_what_the_pages_say() {
    let mut faults = String::new();
    for code in codes().filter(|code| code.starts_with("coll::")) {
        let page = explain(code).expect("listed");
        assert!(page.starts_with("# "), "{code}: a page begins with its title");
        let programs = programs(page);
        if programs.iter().all(|(kind, _)| *kind == "coll,pass") && !WITHOUT_PROGRAM.contains(&code) {
            faults += &format!("{code}: no program shows it\n");
        }
        for (kind, text) in programs {
            let found = try_it(text);
            let wanted = match kind {
                "coll,fail" => Found { errors: [code.to_string()].into(), ..Found::default() },
                "coll,warn" => {
                    Found { proved: true, warnings: [code.to_string()].into(), ..Found::default() }
                }
                "coll,pass" => Found { proved: true, ..Found::default() },
                other => panic!("{code}: unknown fence `{other}`"),
            };
            let right = found.errors == wanted.errors
                && (found.warnings == wanted.warnings || kind == "coll,fail")
                && (found.proved || !wanted.proved);
            if !right {
                faults += &format!("{code}, {kind}: {found:?}\n{text}\n");
            }
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

#[test]
fn the_nearest_code_is_found() {
    assert_eq!(nearest("coll::promis"), Some("coll::promise"));
    assert_eq!(nearest("rank_out_of_rang"), Some("coll::rank_out_of_range"));
    assert_eq!(nearest("coll::zzzzzzzzzzzz"), None);
    assert_eq!(explain("coll::zzz"), None);
}

/// What became of a program over all its worlds.
#[derive(Debug, Default, PartialEq)]
struct Found {
    proved: bool,
    errors: BTreeSet<String>,
    warnings: BTreeSet<String>,
}

fn try_it(text: &str) -> Found {
    let limits = Limits::default();
    let loaded = load(&[("page.coll".to_string(), text.as_bytes().to_vec())], &limits);
    let mut found = Found::default();
    found.errors.extend(loaded.diagnostics.iter().map(|d| d.code.to_string()));
    if !found.errors.is_empty() {
        return found;
    }
    let program = &loaded.program;
    let here: Vec<_> =
        program.algorithms().filter(|&id| loaded.files.contains(&program.algorithm(id).file)).collect();
    // A file that only declares collectives is checked as such.
    found.proved = here.is_empty();
    for id in here {
        let algorithm = program.algorithm(id);
        let shapes: &[&[u32]] = match algorithm.levels {
            1 => &[&[2], &[3], &[4], &[8]],
            _ => &[&[2, 2], &[2, 3], &[3, 2]],
        };
        // Each rank parameter is once 0 and once 1.
        for (shape, root) in shapes.iter().flat_map(|&shape| [(shape, 0), (shape, 1)]) {
            let ranks = algorithm.params.iter().filter(|param| param.ty == ParamType::Rank);
            let params: Params =
                ranks.enumerate().map(|(k, param)| (param.name.clone(), (k as i64 + root) % 2)).collect();
            let request = Request { algorithm: id, shape: shape.to_vec(), params };
            // What runs into a limit takes as long at every shape.
            if found.errors.iter().any(|code| code.starts_with("coll::too_many")) {
                break;
            }
            match prove(&loaded, &request, &limits, &mut |_| {}) {
                Ok(proved) => {
                    found.proved = true;
                    found.warnings.extend(proved.warnings.iter().map(|w| w.code.to_string()));
                }
                Err(Failure::Excluded { diagnostic, .. }) => {
                    found.errors.insert(diagnostic.code.to_string());
                }
                Err(Failure::Wrong(all)) => found.errors.extend(all.iter().map(|d| d.code.to_string())),
            }
        }
    }
    found
}

/// The fenced programs of a page.
fn programs(page: &'static str) -> Vec<(&'static str, &'static str)> {
    let mut programs = Vec::new();
    let mut rest = page;
    while let Some((_, after)) = rest.split_once("```coll") {
        let (kind, after) = after.split_once('\n').expect("a fence ends its line");
        let (text, after) = after.split_once("\n```").expect("a fence is closed");
        programs.push((
            ["coll,fail", "coll,warn", "coll,pass"].into_iter().find(|k| k[4..] == *kind).unwrap_or(kind),
            text,
        ));
        rest = after;
    }
    programs
}

/// All `"coll::…"` and `"plan::…"` in the sources of a folder, tests apart.
fn codes_in(folder: &Path, found: &mut BTreeSet<String>) {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("a source folder")
        .map(|entry| entry.expect("readable").path())
        .collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            codes_in(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs")
            && path.file_stem().is_some_and(|s| s != "tests")
        {
            let text = std::fs::read_to_string(&path).expect("a source file");
            // Unit tests at the end of a file may use codes of their own.
            let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(&text);
            for part in text.split('"') {
                let name = part.strip_prefix("coll::").or_else(|| part.strip_prefix("plan::"));
                if name.is_some_and(|n| {
                    !n.is_empty()
                        && n.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
                }) {
                    found.insert(part.to_string());
                }
            }
        }
    }
}
