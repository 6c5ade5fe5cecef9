//! Topologies from anywhere: text that is no topology, and one whose numbers are as odd as it may have them.

use plan::dtype::Dtype;
use proptest::prelude::*;
use rcc_compiler::cost::Program;
use rcc_compiler::cost::estimate::{Question, estimate};
use rcc_compiler::cost::topology::{Topology, parse};

use crate::machines::{loaded, plan};
use crate::topologies::{CLUSTER, CORES};

/// What may stand for a value.
const ODD: [&str; 24] = [
    "0",
    "1",
    "-1",
    "3",
    "1000000",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "0.5",
    "1e-300",
    "1e300",
    "1e999",
    "nan",
    "inf",
    "-inf",
    "true",
    "[]",
    "{}",
    "\"\"",
    "\"1e-12us\"",
    "\"1000s\"",
    "\"1B/s\"",
    "\"1e18B/s\"",
    "\"\u{202e}\"",
];

/// One of the two good texts, with some values replaced, lines taken out or told twice, bytes changed.
fn text() -> impl Strategy<Value = String> {
    let change = (0..4u8, any::<prop::sample::Index>(), prop::sample::select(&ODD[..]), any::<char>());
    (any::<bool>(), prop::collection::vec(change, 1..4)).prop_map(|(cluster, changes)| {
        let mut lines: Vec<String> =
            if cluster { CLUSTER } else { CORES }.lines().map(str::to_string).collect();
        for (how, at, odd, other) in changes {
            let at = at.index(lines.len().max(1));
            let Some(line) = lines.get(at).cloned() else { continue };
            match how {
                0 | 1 => {
                    if let Some((key, _)) = line.split_once('=') {
                        lines[at] = format!("{key}= {odd}");
                    }
                }
                2 => {
                    lines.remove(at);
                }
                _ => lines.insert(at, line.chars().rev().chain([other]).rev().collect()),
            }
        }
        lines.join("\n")
    })
}

/// A machine that was read predicts a time that is one.
fn predicts(machine: &Topology) -> Result<(), TestCaseError> {
    let loaded = loaded();
    for (name, ranks) in
        [("std::allreduce::ring", 3), ("std::broadcast::chain", 2), ("std::allreduce::one_shot", 1)]
    {
        let plan = plan(&loaded, name, &[ranks]).expect("it compiles");
        for count in [0, 1000] {
            let question =
                Question { count, dtype: Dtype::F32, slots: None, slice_bytes: None, copies: None };
            if let Ok(found) = estimate(&Program::new(&plan), machine, &question) {
                prop_assert!(
                    found.seconds.is_finite() && found.seconds >= 0.0,
                    "{name}: {found:?} on {machine:?}"
                );
                prop_assert!(found.least.bandwidth.is_finite() && found.least.latency.is_finite());
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn odd_topologies_are_refused_or_right(text in text()) {
        match parse(&text) {
            Ok(machine) => {
                for (a, b) in [(0, 0), (0, 1), (7, 8), (u32::MAX, 0)] {
                    let _ = machine.between(a, b);
                }
                predicts(&machine)?;
            }
            Err(error) => {
                prop_assert!(!error.message.is_empty());
                prop_assert!(error.line >= 1 && error.line as usize <= text.lines().count() + 1, "{error}");
                prop_assert!(error.to_string().len() < 1000, "{error}");
            }
        }
    }
}

/// The extremes that each value may have, all at once.
#[test]
fn extremes_are_finite() {
    let level = |size: &str| {
        format!("[[level]]\nname = \"l\"\n{size}latency = \"1000s\"\nport = \"1B/s\"\nuplink = \"1B/s\"\n")
    };
    let levels = level("size = 4294967295\n").repeat(4) + &level("");
    let protocol =
        "[[protocol]]\nname = \"ll\"\nbandwidth = 0.001\nlatency = [1000, 1000, 1000, 1000, 1000]\n";
    let head = "name = \"slow\"\nslots = 65536\nslices = [16]\ncopies = 1024\n";
    let machine = parse(&format!("{head}{levels}{protocol}[engine]\nevent = 1000\nrate = 1\n"));
    let machine = machine.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(machine.ranks(), None);
    predicts(&machine).unwrap();
    let none = "name = \"n\"\n[[level]]\nname = \"l\"\nlatency = 0\n[[protocol]]\nname = \"ll\"\nbandwidth = 1e-300\nlatency = [0]\n";
    assert!(parse(none).is_err(), "times would not be finite");
}
