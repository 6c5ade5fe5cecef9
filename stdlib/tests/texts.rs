//! The texts keep their form: names, docs, and one row each in `docs/algorithms.md`. That they parse, and that every
//! promise is proved, is tested where the compiler is at hand.

use std::collections::{BTreeMap, BTreeSet};

use rcc_stdlib::{FILES, algorithm, module};

const TABLE: &str = include_str!("../../docs/algorithms.md");

/// The texts of algorithms as (collective, algorithm, text).
fn algorithms() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    FILES.iter().filter_map(|&(name, text)| Some((module(name)?, algorithm(name)?, text)))
}

fn collectives() -> &'static str {
    let (name, text) = FILES[0];
    assert_eq!(name, "std/collectives.coll", "it comes first");
    text
}

/// The names declared at the start of a line, with the line before each.
fn declared<'a>(text: &'a str, keyword: &str) -> Vec<(&'a str, &'a str)> {
    let mut before = "";
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix(keyword).and_then(|rest| rest.strip_prefix(' ')) {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            found.push((&rest[..end], before));
        }
        before = line;
    }
    found
}

#[test]
fn every_file_on_disk_is_embedded() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut on_disk = BTreeSet::from(["std/collectives.coll".to_owned()]);
    for folder in root.read_dir().unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        for file in folder.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
            if file.extension().is_some_and(|extension| extension == "coll") {
                let (folder, file) = (folder.file_name().unwrap(), file.file_name().unwrap());
                on_disk.insert(format!("std/{}/{}", folder.to_str().unwrap(), file.to_str().unwrap()));
            }
        }
    }
    let embedded: BTreeSet<String> = FILES.iter().map(|&(name, _)| name.to_owned()).collect();
    assert_eq!(embedded, on_disk);
    assert_eq!(FILES.len(), embedded.len(), "no name comes twice");
}

#[test]
fn main_algorithm_is_named_like_its_file_and_implements_its_folder() {
    for (module, name, text) in algorithms() {
        let names: Vec<&str> = declared(text, "algorithm").into_iter().map(|(name, _)| name).collect();
        assert!(names.contains(&name), "std/{module}/{name}.coll declares {names:?}");
        let header = text.lines().find(|line| line.starts_with(&format!("algorithm {name}"))).unwrap();
        let implements = header.split(" implements ").nth(1).unwrap();
        let collective = implements.split([' ', '(']).next().unwrap();
        assert_eq!(collective, module, "std/{module}/{name}.coll");
    }
}

#[test]
fn every_declaration_has_docs() {
    for &(file, text) in FILES {
        for keyword in ["collective", "algorithm", "fn"] {
            for (name, before) in declared(text, keyword) {
                assert!(before.starts_with("/// "), "{file}: no docs before {keyword} {name}");
            }
        }
    }
    for (module, name, text) in algorithms() {
        assert!(text.starts_with("/// "), "std/{module}/{name}.coll opens with what it does");
    }
    for block in collectives().split("\n\n").filter(|block| block.contains("\ncollective ")) {
        let counts = block.contains("/// `count`: ") || block.contains("moves no data");
        assert!(counts, "what does `count` count?\n{block}");
    }
}

/// The last paragraph is the source, the one before it says when to prefer the algorithm, and those before it say the cost.
#[test]
fn docs_of_algorithms_say_when_to_prefer_them_and_where_they_come_from() {
    for (module, name, text) in algorithms() {
        let docs: Vec<&str> =
            text.lines().map_while(|line| line.strip_prefix("///")).map(str::trim).collect();
        let docs = docs.join("\n");
        let paragraphs: Vec<&str> = docs.split("\n\n").collect();
        let [.., prefer, source] = paragraphs[..] else { panic!("std/{module}/{name}.coll says too little") };
        assert!(prefer.starts_with("Prefer it "), "std/{module}/{name}.coll: when?\n{prefer}");
        let year = |word: &str| {
            word.len() == 4 && ["19", "20"].contains(&&word[..2]) && word.bytes().all(|b| b.is_ascii_digit())
        };
        let dated = source.split(|c: char| !c.is_ascii_alphanumeric()).any(year);
        let defined = source.starts_with("The definition, written down");
        assert!(dated || defined, "std/{module}/{name}.coll: whose is it?\n{source}");
    }
}

#[test]
fn every_collective_has_algorithms_and_the_other_way_round() {
    let declared: BTreeSet<&str> =
        declared(collectives(), "collective").into_iter().map(|(name, _)| name).collect();
    let implemented: BTreeSet<&str> = algorithms().map(|(module, ..)| module).collect();
    assert_eq!(declared, implemented);
}

#[test]
fn layout_is_canonical_where_text_alone_can_tell() {
    for &(file, text) in FILES {
        assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{file} ends in one line end");
        for (line, number) in text.lines().zip(1..) {
            assert!(line.chars().count() <= 110, "{file}:{number} is too long");
            assert!(!line.contains('\t') && line.trim_end() == line, "{file}:{number} has stray blanks");
        }
    }
}

/// The table of what is claimed: one row for each algorithm, and what the row says is what the text says.
#[test]
fn table_of_claims_agrees_with_the_texts() {
    let mut rows = BTreeMap::new();
    for line in TABLE.lines().filter(|line| line.starts_with("| `std::")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let &[name, shapes, forms, ..] = &cells[..] else { panic!("too few columns: {line}") };
        assert!(rows.insert(name.trim_matches('`'), (shapes, forms)).is_none(), "two rows for {name}");
    }
    for (module, name, text) in algorithms() {
        let full = format!("std::{module}::{name}");
        let (shapes, forms) = rows.remove(&*full).unwrap_or_else(|| panic!("{full} has no row"));

        let levels = if text.contains(" on ranks[m, g] ") { "any m × g" } else { "any n" };
        let powers = text.lines().any(|line| line.contains("require is_power_of_two(n)"));
        assert_eq!(shapes, if powers { "powers of two" } else { levels }, "{full}");

        let named =
            |block: &&str| block.strip_prefix(module).is_some_and(|rest| rest.starts_with([' ', '(']));
        let promise = collectives().split("\ncollective ").find(named).unwrap();
        let promise = promise.split("\n}").next().unwrap();
        let both = promise.contains(" inplace ") || promise.contains(" inout ");
        let claimed = both && !text.contains("inplace none");
        let nothing = !promise.contains(" in ") && !promise.contains(" inout ");
        assert_eq!(
            forms,
            if nothing {
                "–"
            } else if claimed {
                "both"
            } else {
                "out of place"
            },
            "{full}"
        );
    }
    assert!(rows.is_empty(), "rows for algorithms that there are not: {:?}", rows.keys());
}
