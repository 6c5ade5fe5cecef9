//! What the pages say is so: programs in them are proved, and links lead somewhere.
#![allow(clippy::disallowed_methods, reason = "reads the pages")]

use std::fs;
use std::path::{Path, PathBuf};

use compiler::diagnostics::render::{Style, render};
use compiler::elaborate::Request;
use compiler::limits::Limits;
use compiler::pipeline::{Failure, load, prove};
use compiler::trace::Params;
use grammar::ast::ParamType;

const SHAPES: [&[u32]; 5] = [&[2], &[3], &[8], &[2, 2], &[3, 2]];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests' folder has a parent").to_path_buf()
}

fn pages() -> Vec<PathBuf> {
    let root = root();
    let mut pages = Vec::new();
    for folder in [root.clone(), root.join("docs"), root.join("docs/decisions")] {
        for entry in fs::read_dir(folder).expect("a folder of pages") {
            let path = entry.expect("readable").path();
            if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// The blocks fenced as ```` ```coll ```` that hold declarations; others show single moves.
fn programs(page: &str) -> Vec<&str> {
    let declares =
        |text: &&str| ["///", "algorithm ", "collective ", "fn "].iter().any(|start| text.starts_with(start));
    page.split("```coll\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap_or(rest))
        .filter(declares)
        .collect()
}

/// Proves every algorithm of a program for some shapes; how many proofs there were.
fn prove_all(name: &str, text: &str) -> usize {
    let limits = Limits::default();
    let loaded = load(&[(name.to_string(), text.as_bytes().to_vec())], &limits);
    assert!(loaded.diagnostics.is_empty(), "{name}: {:?}\n{text}", loaded.diagnostics);
    let mut proofs = 0;
    for id in
        loaded.program.algorithms().filter(|&id| loaded.files.contains(&loaded.program.algorithm(id).file))
    {
        let algorithm = loaded.program.algorithm(id);
        let before = proofs;
        for shape in SHAPES.iter().filter(|shape| shape.len() == algorithm.levels) {
            let ranks = algorithm.params.iter().filter(|param| param.ty == ParamType::Rank);
            let params: Params = ranks.map(|param| (param.name.clone(), 1)).collect();
            match prove(
                &loaded,
                &Request { algorithm: id, shape: shape.to_vec(), params },
                &limits,
                &mut |_| {},
            ) {
                Ok(proved) => {
                    assert!(proved.warnings.is_empty(), "{name}: {:?}\n{text}", proved.warnings);
                    proofs += 1;
                }
                Err(Failure::Excluded { .. }) => {}
                Err(Failure::Wrong(all)) => panic!("{name}, shape {shape:?}: {all:?}\n{text}"),
            }
        }
        assert!(proofs > before, "{name}: {} was not proved for any shape", algorithm.name);
    }
    proofs
}

#[test]
fn programs_in_the_pages_are_proved() {
    let mut proofs = 0;
    for path in pages() {
        let page = fs::read_to_string(&path).expect("a page");
        for program in programs(&page) {
            proofs += prove_all(&path.display().to_string(), program);
        }
    }
    assert!(proofs >= 10, "only {proofs} proofs: are the programs still found?");
}

/// The README shows the second example, and the language page the promise of allreduce, as they are.
#[test]
fn readme_shows_the_second_example() {
    let readme = fs::read_to_string(root().join("README.md")).expect("the README");
    let example = fs::read_to_string(root().join("examples/02_ring.coll")).expect("the second example");
    let body = &example[example.find("algorithm ring").expect("its algorithm")..];
    assert!(programs(&readme).contains(&body), "README.md no longer shows examples/02_ring.coll as it is");
    assert!(readme.contains("run examples/02_ring.coll -n 4"), "the README's first command");
}

/// The README's wrong program gets the diagnostic that the README shows.
#[test]
fn readme_shows_a_real_diagnostic() {
    let readme = fs::read_to_string(root().join("README.md")).expect("the README");
    let example = fs::read_to_string(root().join("examples/02_ring.coll")).expect("the second example");
    let wrong = example.replace("hop in 0..n-1", "hop in 0..n-2");
    assert_ne!(wrong, example, "the loop that is to stop too early");

    let limits = Limits::default();
    let loaded = load(&[("ring.coll".to_string(), wrong.into_bytes())], &limits);
    let ring = loaded.program.find("ring").expect("it declares a ring");
    let request = Request { algorithm: ring, shape: vec![8], params: Params::new() };
    let Err(Failure::Wrong(faults)) = prove(&loaded, &request, &limits, &mut |_| {}) else {
        panic!("the program is wrong, and must be refused");
    };
    let [fault] = &faults[..] else { panic!("one fault, not {faults:?}") };
    for line in render(fault, &loaded.sources, Style::default()).lines().map(str::trim_end) {
        assert!(readme.contains(line), "README.md lacks this line of the diagnostic:\n{line}");
    }
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut followed = 0;
    for path in pages() {
        let page = fs::read_to_string(&path).expect("a page");
        for link in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") || link.starts_with('#') {
                continue;
            }
            let target = path.parent().expect("a folder").join(link.split('#').next().unwrap_or(link));
            assert!(target.exists(), "{}: `{link}` leads nowhere", path.display());
            followed += 1;
        }
    }
    assert!(followed >= 10, "only {followed} links: are they still found?");
}
