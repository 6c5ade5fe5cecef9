//! Schedules: what is chosen for a size, which channels moves take, and that nothing else depends on any of it.
//!
//! In: programs with schedules made at random, and some written by hand. The references are definitions: a `when` holds
//! if its comparison does and none before it did; a move's channel is what a formula of the test says.

use rcc_compiler as compiler;

use compiler::choice::{Choice, Verdict};
use compiler::elaborate::{Request, elaborate, elaborate_scheduled};
use compiler::limits::Limits;
use compiler::options::Options;
use compiler::pipeline::{self, Loaded, choose, load, load_scheduled};
use compiler::trace::{Params, Trace};
use plan::schedule::{Protocol, Schedule, Transport, Wire};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// An algorithm with labels of every kind; `SCHEDULE` stands behind it.
const LABELLED: &str = "
algorithm swap on ranks[n] implements exchange {
    for r in 0..n { output[0] @ r = input[0] @ r }
    'far: step for r in 0..n { output[1] @ r = input[1] @ (r + 1) % n }
}

algorithm whole(k: int = 2) on ranks[n] implements exchange {
    scratch tmp[2]
    chunks 2
    'first: for r in 0..n, c in 0..2 {
        'inner: tmp[0][c] @ r = input[0][c] @ r
        'pair: if c == 0 { tmp[1] @ r = input[1] @ (r + 1) % n }
    }
    'run: run swap on * with input = input, output = tmp
    for r in 0..n { 'last: output @ r = tmp @ r }
}

collective exchange on ranks[n] {
    in input[2]
    out output[2]
    ensures for r in 0..n: output[0] @ r == input[0] @ r
    ensures for r in 0..n: output[1] @ r == input[1] @ (r + 1) % n
}
";

/// The labels of `whole`, with variables that stand at each.
const LABELS: [(&str, &[&str]); 5] = [
    ("first", &["r", "c", "n", "k"]),
    ("inner", &["r", "c", "n", "k"]),
    ("pair", &["r", "c", "n", "k"]),
    ("run", &["n", "k"]),
    ("last", &["r", "n", "k"]),
];

fn loaded(text: &str) -> Loaded {
    let loaded = load(&[("whole.coll".to_owned(), text.as_bytes().to_vec())], &Limits::default());
    assert!(loaded.diagnostics.is_empty(), "{:#?}\n{text}", loaded.diagnostics);
    loaded
}

fn request(loaded: &Loaded, name: &str, ranks: u32) -> Request {
    let algorithm = loaded.program.find(name).expect("declared");
    Request { algorithm, shape: vec![ranks], params: Params::new() }
}

fn without_lanes(mut trace: Trace) -> Trace {
    trace.moves.iter_mut().for_each(|mv| mv.lane = 0);
    trace
}

/// A schedule at random, as text and as what it says.
#[derive(Debug, Clone)]
struct Said {
    outside: Clauses,
    whens: Vec<(&'static str, u64, Clauses)>,
}

#[derive(Debug, Clone, Default)]
struct Clauses {
    channels: Option<u32>,
    protocol: Option<(&'static str, Protocol)>,
    pipeline: Option<u32>,
    threads: Option<u32>,
    prefer: Option<Vec<(&'static str, Transport)>>,
    avoid: Option<Vec<(&'static str, Transport)>>,
    via: bool,
    wire: Option<(&'static str, Wire)>,
    labels: Vec<(usize, String)>,
}

fn clauses() -> impl Strategy<Value = Clauses> {
    let protocols = [
        ("simple", Protocol::Simple),
        ("ll", Protocol::Ll),
        ("ll128", Protocol::Ll128),
        ("auto", Protocol::Auto),
    ];
    // What is preferred here is never avoided, so that no two clash.
    let prefer = proptest::sample::subsequence(
        vec![("nvlink", Transport::Nvlink), ("shared", Transport::Shared)],
        1..=2,
    );
    let avoid =
        proptest::sample::subsequence(vec![("rdma", Transport::Rdma), ("tcp", Transport::Tcp)], 1..=2);
    let wires = [("bf16", Wire::Bf16), ("f16", Wire::F16), ("fp8", Wire::Fp8)];
    let label = (0..LABELS.len(), any::<prop::sample::Index>(), 1..5i64, 0..9i64).prop_map(
        |(label, variable, factor, add)| {
            let variables = LABELS[label].1;
            (label, format!("{} * {factor} + {add}", variables[variable.index(variables.len())]))
        },
    );
    (
        option::of(1..=256u32),
        option::of(select(protocols.to_vec())),
        option::of(prop_oneof![64..5000u32, Just(512 << 10), Just(1 << 30)]),
        option::of(1..=1024u32),
        option::of(prefer),
        option::of(avoid),
        any::<bool>(),
        option::of(select(wires.to_vec())),
        vec(label, 0..4),
    )
        .prop_map(|(channels, protocol, pipeline, threads, prefer, avoid, via, wire, mut labels)| {
            labels.sort();
            labels.dedup_by_key(|label| label.0);
            Clauses { channels, protocol, pipeline, threads, prefer, avoid, via, wire, labels }
        })
}

const OPS: [&str; 6] = ["<", "<=", ">", ">=", "==", "!="];
const SIZES: [u64; 7] = [1, 2, 1024, 4096, 4097, 1 << 20, 1 << 40];

fn holds(op: &str, size: u64, bytes: u64) -> bool {
    match op {
        "<" => size < bytes,
        "<=" => size <= bytes,
        ">" => size > bytes,
        ">=" => size >= bytes,
        "==" => size == bytes,
        _ => size != bytes,
    }
}

fn said() -> impl Strategy<Value = Said> {
    (clauses(), vec((select(&OPS[..]), select(&SIZES[..]), clauses()), 0..4)).prop_map(
        |(outside, mut whens)| {
            // Only those that some size can reach: sizes around every edge are enough to tell.
            let edges: Vec<u64> = SIZES.iter().flat_map(|&size| [size - 1, size, size + 1]).collect();
            let mut kept: Vec<(&str, u64, Clauses)> = Vec::new();
            for (op, bytes, clauses) in whens.drain(..) {
                let free = |&size: &u64| {
                    holds(op, size, bytes) && !kept.iter().any(|(op, bytes, _)| holds(op, size, *bytes))
                };
                if edges.iter().any(free) {
                    kept.push((op, bytes, clauses));
                }
            }
            Said { outside, whens: kept }
        },
    )
}

impl Clauses {
    fn text(&self) -> String {
        let names = |list: &[(&'static str, Transport)]| {
            list.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
        };
        let mut text: Vec<String> = Vec::new();
        text.extend(self.labels.iter().map(|(label, e)| format!("'{} {{ channel {e} }}", LABELS[*label].0)));
        text.extend(self.channels.map(|k| format!("channels {k}")));
        text.extend(self.protocol.map(|(name, _)| format!("protocol {name}")));
        text.extend(self.pipeline.map(|bytes| format!("pipeline {bytes}")));
        text.extend(self.threads.map(|k| format!("threads {k}")));
        text.extend(self.prefer.as_deref().map(|list| format!("transport prefer {}", names(list))));
        text.extend(self.avoid.as_deref().map(|list| format!("transport avoid {}", names(list))));
        text.extend(self.via.then(|| "via switch".to_owned()));
        text.extend(self.wire.map(|(name, _)| format!("wire {name}")));
        text.join(" ")
    }
}

impl Said {
    fn text(&self) -> String {
        let whens =
            self.whens.iter().map(|(op, bytes, c)| format!("when size {op} {bytes} {{ {} }}", c.text()));
        format!("schedule for whole {{ {} {} }}", self.outside.text(), whens.collect::<Vec<_>>().join(" "))
    }

    fn when(&self, bytes: Option<u64>) -> Option<usize> {
        let bytes = bytes?;
        self.whens.iter().position(|(op, size, _)| holds(op, bytes, *size))
    }

    /// What holds, clause by clause.
    fn plan(&self, bytes: Option<u64>) -> (Option<u32>, Schedule) {
        let none = Clauses::default();
        let inner = self.when(bytes).map_or(&none, |when| &self.whens[when].2);
        let outer = &self.outside;
        let of = |list: &Option<Vec<(&'static str, Transport)>>| {
            list.clone().map(|list| list.into_iter().map(|(_, one)| one).collect::<Vec<_>>())
        };
        let schedule = Schedule {
            protocol: inner.protocol.or(outer.protocol).map_or(Protocol::Auto, |(_, one)| one),
            slice_bytes: inner.pipeline.or(outer.pipeline),
            threads: inner.threads.or(outer.threads),
            prefer: of(&inner.prefer).or(of(&outer.prefer)).unwrap_or_default(),
            avoid: of(&inner.avoid).or(of(&outer.avoid)).unwrap_or_default(),
            via_switch: inner.via || outer.via,
            wire: inner.wire.or(outer.wire).map(|(_, one)| one),
        };
        (inner.channels.or(outer.channels), schedule)
    }

    /// The expression that holds for a label.
    fn channel(&self, bytes: Option<u64>, label: &str) -> Option<&str> {
        let of = |clauses: &'_ Clauses| -> Option<usize> {
            clauses.labels.iter().position(|(known, _)| LABELS[*known].0 == label)
        };
        let inner = self.when(bytes).map(|when| &self.whens[when].2);
        inner
            .and_then(|inner| Some(&inner.labels[of(inner)?]))
            .or_else(|| Some(&self.outside.labels[of(&self.outside)?]))
            .map(|(_, e)| e.as_str())
    }

    /// Its value: `VARIABLE * FACTOR + ADD`.
    fn lane(&self, bytes: Option<u64>, label: &str, variables: &[(&str, i64)]) -> Option<u16> {
        let words: Vec<&str> = self.channel(bytes, label)?.split(' ').collect();
        let value = variables.iter().find(|(name, _)| *name == words[0]).expect("in scope").1;
        let (factor, add): (i64, i64) = (words[2].parse().ok()?, words[4].parse().ok()?);
        u16::try_from(value * factor + add).ok()
    }
}

fn sizes() -> impl Strategy<Value = Option<u64>> {
    let near = (select(&SIZES[..]), -1..=1i64).prop_map(|(size, by)| size.wrapping_add_signed(by));
    option::of(prop_oneof![near, any::<u64>()])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_holds_is_what_the_first_match_says_over_what_stands_outside(said in said(), bytes in sizes()) {
        let loaded = loaded(&format!("{LABELLED}{}", said.text()));
        let found = choose(&loaded, &request(&loaded, "whole", 3), bytes);
        prop_assert_eq!((found.copies, found.plan.clone()), said.plan(bytes), "{}", said.text());
        prop_assert_eq!(found.when, said.when(bytes));
        prop_assert_eq!(found.tried.len(), said.whens.len());
        for (i, (tried, (op, size, _))) in found.tried.iter().zip(&said.whens).enumerate() {
            prop_assert_eq!(&tried.text, &format!("when size {op} {size}"));
            let wanted = match bytes {
                None => Verdict::NoSize,
                Some(_) if said.when(bytes) == Some(i) => Verdict::Holds,
                Some(bytes) if holds(op, bytes, *size) => Verdict::Later,
                Some(_) => Verdict::OtherSize,
            };
            prop_assert_eq!(tried.verdict, wanted);
        }
    }

    /// The law: the trace with a schedule is the trace without, but for the channels.
    #[test]
    fn a_schedule_changes_nothing_but_channels(said in said(), bytes in sizes(), ranks in 1u32..5) {
        let plain = loaded(LABELLED);
        let scheduled = loaded(&format!("{LABELLED}{}", said.text()));
        let limits = Limits::default();
        let wanted = elaborate(&plain.program, &request(&plain, "whole", ranks), &limits).expect("right");
        let asked = request(&scheduled, "whole", ranks);
        let when = choose(&scheduled, &asked, bytes).when;
        let found = elaborate_scheduled(&scheduled.program, &asked, when, &limits).expect("right");
        prop_assert!(wanted.trace.moves.iter().all(|mv| mv.lane == 0));
        prop_assert_eq!(
            format!("{:?}", without_lanes(found.trace)),
            format!("{:?}", wanted.trace),
            "{}", said.text()
        );
        for (found, wanted) in found.callees.iter().zip(&wanted.callees) {
            let found = without_lanes(found.trace.as_ref().clone());
            prop_assert_eq!(format!("{found:?}"), format!("{:?}", wanted.trace));
        }
    }

    /// Channels, move by move, against the formula: the innermost label that is addressed counts.
    #[test]
    fn channels_are_those_of_the_innermost_label(said in said(), bytes in sizes(), ranks in 1u32..5) {
        let loaded = loaded(&format!("{LABELLED}{}", said.text()));
        let asked = request(&loaded, "whole", ranks);
        let when = choose(&loaded, &asked, bytes).when;
        let found = elaborate_scheduled(&loaded.program, &asked, when, &Limits::default()).expect("right");
        let (n, k) = (i64::from(ranks), 2);
        let mut wanted: Vec<u16> = Vec::new();
        for r in 0..n {
            for c in 0..2 {
                let variables = [("r", r), ("c", c), ("n", n), ("k", k)];
                let outer = said.lane(bytes, "first", &variables).unwrap_or(0);
                wanted.push(said.lane(bytes, "inner", &variables).unwrap_or(outer));
                if c == 0 {
                    wanted.push(said.lane(bytes, "pair", &variables).unwrap_or(outer));
                }
            }
        }
        // The callee's own label is not addressed: all its moves take what its `run` takes.
        let run = said.lane(bytes, "run", &[("n", n), ("k", k)]).unwrap_or(0);
        wanted.extend((0..2 * n).map(|_| run));
        for r in 0..n {
            wanted.push(said.lane(bytes, "last", &[("r", r), ("n", n), ("k", k)]).unwrap_or(0));
        }
        let found: Vec<u16> = found.trace.moves.iter().map(|mv| mv.lane).collect();
        prop_assert_eq!(found, wanted, "{}", said.text());
    }
}

#[test]
fn a_callees_schedule_gives_channels_to_its_own_moves_whatever_the_size() {
    let text = format!(
        "{LABELLED}
schedule for whole {{ 'run {{ channel 7 }} }}
schedule for swap {{
    channels 3
    'far {{ channel 0 }}
    when size > 4 {{ 'far {{ channel r + 1 }} }}
}}"
    );
    let loaded = loaded(&text);
    let lanes = |name: &str, bytes| {
        let asked = request(&loaded, name, 3);
        let when = choose(&loaded, &asked, bytes).when;
        let found = elaborate_scheduled(&loaded.program, &asked, when, &Limits::default()).expect("right");
        found.trace.moves.iter().map(|mv| mv.lane).collect::<Vec<_>>()
    };
    assert_eq!(lanes("swap", None), [0, 0, 0, 0, 0, 0]);
    assert_eq!(lanes("swap", Some(5)), [0, 0, 0, 1, 2, 3]);
    // Channel 0 of the callee's label is said, so it goes before the 7 of the run around it.
    for bytes in [None, Some(5)] {
        assert_eq!(lanes("whole", bytes)[9..15], [7, 7, 7, 0, 0, 0]);
    }
    // Copies are of a whole plan: the callee's do not count.
    let compiled = compiled(&loaded, "whole", Some(5));
    assert_eq!(compiled.0, 1);
}

/// Copies and schedule of the plan's header.
fn compiled(loaded: &Loaded, name: &str, bytes: Option<u64>) -> (u32, Schedule) {
    let options = Options { bytes, ..Options::default() };
    let asked = request(loaded, name, 3);
    let made = pipeline::compile(loaded, &asked, &options, &Limits::default(), &mut |_| {}).expect("right");
    let header = &made.plan.plan().header;
    (header.copies, header.schedule.clone())
}

#[test]
fn plans_carry_what_holds_for_their_size() {
    let loaded = loaded(
        "schedule for std::allreduce::ring {
            channels 4 pipeline 512 KiB
            when size < 64 KiB { protocol ll channels 1 }
            when size < 2 MiB { protocol ll128 }
        }",
    );
    let slices = Schedule { slice_bytes: Some(512 << 10), ..Schedule::default() };
    let ring = "std::allreduce::ring";
    let of = |protocol| Schedule { protocol, ..slices.clone() };
    assert_eq!(compiled(&loaded, ring, None), (4, slices.clone()));
    assert_eq!(compiled(&loaded, ring, Some(0)), (1, of(Protocol::Ll)));
    assert_eq!(compiled(&loaded, ring, Some((64 << 10) - 1)), (1, of(Protocol::Ll)));
    assert_eq!(compiled(&loaded, ring, Some(64 << 10)), (4, of(Protocol::Ll128)));
    assert_eq!(compiled(&loaded, ring, Some(2 << 20)), (4, slices));
    // Others have none.
    assert_eq!(compiled(&loaded, "std::allreduce::one_shot", Some(0)), (1, Schedule::default()));
    assert_eq!(choose(&loaded, &request(&loaded, "std::allreduce::one_shot", 3), Some(0)), Choice::default());
}

#[test]
fn a_text_of_schedules_replaces_those_beside_the_algorithms() {
    let limits = Limits::default();
    let program = (
        "own.coll".to_owned(),
        b"algorithm next on ranks[n] implements alltonext {
            'all: for r in 0..n-1 { output @ r + 1 = input @ r }
        }
        schedule for next { channels 2 }
        schedule for std::allreduce::ring { channels 3 }"
            .to_vec(),
    );
    let copies = |loaded: &Loaded, name: &str| choose(loaded, &request(loaded, name, 3), None).copies;
    let with = |text: &str| {
        let text = ("other.coll".to_owned(), text.as_bytes().to_vec());
        load_scheduled(std::slice::from_ref(&program), Some(&text), &limits)
    };
    let plain = load(std::slice::from_ref(&program), &limits);
    assert_eq!(copies(&plain, "next"), Some(2));
    assert_eq!(copies(&plain, "std::allreduce::ring"), Some(3));

    // Plain names are those of the program, not of the text itself.
    let replaced = with("schedule for next { channels 5 'all { channel r } }");
    assert!(replaced.diagnostics.is_empty(), "{:?}", replaced.diagnostics);
    assert_eq!(copies(&replaced, "next"), Some(5));
    assert_eq!(copies(&replaced, "std::allreduce::ring"), Some(3));
    assert_eq!(replaced.files.len(), 1);
    assert_eq!(replaced.trees.len(), 1);
    let schedule = replaced.program.algorithm(request(&replaced, "next", 3).algorithm).schedule.as_ref();
    assert_eq!(schedule.map(|schedule| schedule.file), replaced.schedules);

    // What it does not speak of stays; what is wrong in it is told.
    let replaced = with("schedule for std::allreduce::ring { channels 6 }");
    assert_eq!((copies(&replaced, "next"), copies(&replaced, "std::allreduce::ring")), (Some(2), Some(6)));
    let codes = |loaded: &Loaded| loaded.diagnostics.iter().map(|d| d.code).collect::<Vec<_>>();
    assert_eq!(codes(&with("schedule for next { channels 0 }")), ["coll::schedule_number"]);
    assert_eq!(codes(&with("schedule for nxt { }")), ["coll::unknown_name"]);
    assert_eq!(codes(&with("schedule for next { } schedule for next { }")), ["coll::schedule_twice"]);
    assert_eq!(codes(&with("schedule for next { 'none { channel 0 } }")), ["coll::unknown_label"]);
    assert_eq!(codes(&with("schedule next")), ["coll::syntax"]);
    assert!(codes(&with("// nothing")).is_empty());
    // A function of the text may be called in it.
    let called = with("fn odd(x) = x % 2 schedule for next { 'all { channel odd(r) } }");
    assert!(called.diagnostics.is_empty(), "{:?}", called.diagnostics);
}
