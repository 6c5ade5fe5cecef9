//! Random programs made of valid pieces: never a panic, and a trace that is given is well formed.

use proptest::prelude::*;
use rcc_compiler::diagnostics;
use rcc_compiler::elaborate;
use rcc_compiler::limits::Limits;
use rcc_compiler::trace::{BufferKind, MoveId, MoveKind, Trace};

use crate::support::{check_with, elaborate_checked, request};

/// An integer expression over what is in scope everywhere.
fn int() -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        (0..4i64).prop_map(|i| i.to_string()),
        Just("n".to_owned()),
        Just("i".to_owned()),
        Just("j".to_owned()),
        Just("k".to_owned()),
        Just("9223372036854775807".to_owned()),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let op = prop::sample::select(vec!["+", "-", "*", "/", "%", "^", "&", "|", "<<", ">>"]);
        prop_oneof![
            4 => (inner.clone(), op, inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            3 => (inner.clone()).prop_map(|a| format!("({a} % n)")),
            1 => inner.clone().prop_map(|a| format!("(-{a})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("f({a}, {b})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(sum(z in 0..{a}) ({b} + z))")),
            1 => inner.clone().prop_map(|a| format!("t[{a}]")),
            1 => (inner.clone(), inner.clone(), inner)
                .prop_map(|(a, b, c)| format!("(if {a} < {b} then {c} else log2({a}))")),
        ]
    })
    .boxed()
}

/// A rank, an index or a bound that is most often in range; `@@` stands for a loop variable around it.
fn index() -> BoxedStrategy<String> {
    let tame =
        vec!["i % n", "j", "0", "@@ % n", "(@@ + 1) % n", "(@@ + i) % n", "n - 1", "(1 << @@ % 8) % n"];
    prop_oneof![
        30 => prop::sample::select(tame).prop_map(str::to_owned),
        2 => int().prop_map(|e| format!("{e} % n")),
        1 => int(),
    ]
    .boxed()
}

/// A place that may be written.
fn written() -> BoxedStrategy<String> {
    prop_oneof![
        8 => index().prop_map(|i| format!("data[{i}]")),
        6 => (index(), index()).prop_map(|(i, c)| format!("tmp[{i}][{c}]")),
        1 => Just("data".to_owned()),
        1 => (index(), 0..3u8).prop_map(|(i, w)| format!("data[{i}..({i}) + {w}]")),
        1 => index().prop_map(|i| format!("tmp[{i}]")),
    ]
    .boxed()
}

fn region() -> BoxedStrategy<String> {
    prop_oneof![8 => written(), 1 => Just("input".to_owned()), 1 => index().prop_map(|i| format!("input[{i}]"))]
        .boxed()
}

fn place() -> BoxedStrategy<String> {
    (region(), index()).prop_map(|(region, rank)| format!("{region} @ {rank}")).boxed()
}

fn target() -> BoxedStrategy<String> {
    (written(), index()).prop_map(|(region, rank)| format!("{region} @ {rank}")).boxed()
}

/// One chunk of something, without a rank.
fn unit() -> BoxedStrategy<String> {
    prop_oneof![
        index().prop_map(|i| format!("data[{i}]")),
        (index(), index()).prop_map(|(i, c)| format!("tmp[{i}][{c}]")),
    ]
    .boxed()
}

fn movement() -> BoxedStrategy<String> {
    let ranks = || (index(), index());
    let apart = |p: &str, q: &str, body: String| format!("if ({p}) % n != ({q}) % n {{ {body} }}");
    prop_oneof![
        6 => (unit(), ranks()).prop_map(move |(c, (p, q))| {
            apart(&p, &q, format!("{c} @ {p} += {c} @ {q}"))
        }),
        4 => (unit(), unit(), ranks()).prop_map(move |(a, b, (p, q))| {
            apart(&p, &q, format!("{a} @ {p} = {b} @ {q}"))
        }),
        2 => (written(), ranks()).prop_map(move |(a, (p, q))| apart(&p, &q, format!("{a} @ {p} = {a} @ {q}"))),
        1 => (target(), place()).prop_map(|(a, b)| format!("{a} = {b}")),
        2 => (unit(), index()).prop_map(|(a, p)| format!("{a} @ * = {a} @ {p}")),
        1 => (written(), place()).prop_map(|(a, b)| format!("{a} @ * = {b}")),
        2 => (unit(), unit(), ranks())
            .prop_map(|(a, b, (p, q))| format!("{a} @ {p} = reduce({b} @ {p}, {a} @ {q}, {a} @ {p})")),
        2 => (unit(), index()).prop_map(|(a, p)| format!("{a} @ {p} = reduce {a} @ *")),
        2 => (unit(), index(), index(), index())
            .prop_map(|(a, p, q, e)| format!("{a} @ {p} = reduce(z in 0..({e}) + 2) {a} @ (z + {q}) % n")),
        1 => ranks().prop_map(move |(p, q)| apart(&p, &q, format!("signal @ {p} = signal @ {q}"))),
        1 => index().prop_map(|p| format!("signal @ * = signal @ {p}")),
    ]
    .boxed()
}

fn run() -> BoxedStrategy<String> {
    let set = prop_oneof![
        Just("*".to_owned()),
        (0..2u8, 1..4u8).prop_map(|(a, b)| format!("{a}..{b}")),
        Just("[n - 1 - z for z in 0..n]".to_owned()),
        Just("[(z * 2 + i) % n for z in 0..n if z % 2 == 0]".to_owned()),
    ];
    let one = prop_oneof![4 => written(), 1 => Just("data[self]".to_owned())];
    let callee = prop::sample::select(vec!["inner", "spread"]);
    let pair = prop_oneof![
        1 => (one.clone(), one),
        4 => (index(), index()).prop_map(|(a, b)| (format!("data[{a}]"), format!("tmp[{b}][0..2]"))),
        1 => Just(("data[self]".to_owned(), "data[0..2]".to_owned())),
    ];
    (callee, set, pair)
        .prop_map(|(callee, set, (a, b))| match callee {
            "inner" => format!("run inner on {set} with data = {a}"),
            _ => format!("run spread(k = 2) on {set} with a = {a}, b = {b}"),
        })
        .boxed()
}

fn statement() -> BoxedStrategy<String> {
    let leaf = prop_oneof![4 => movement(), 1 => run()];
    leaf.prop_recursive(3, 10, 3, |inner| {
        let list = prop::collection::vec(inner, 1..3).prop_map(|list| list.join("\n"));
        let moves = prop::collection::vec(movement(), 1..4).prop_map(|list| list.join("\n"));
        let name = any::<u16>().prop_map(|id| format!("x{id}"));
        prop_oneof![
            (name.clone(), index(), list.clone())
                .prop_map(|(x, a, body)| format!("for {x} in {a}..n {{ {} }}", body.replace("@@", &x))),
            (name.clone(), int(), list.clone()).prop_map(|(x, b, body)| format!(
                "for {x} in 0..min(4, {b}) {{ {} }}",
                body.replace("@@", &x)
            )),
            (name.clone(), name, index(), list.clone()).prop_map(|(x, y, a, body)| {
                let body = body.replace("@@", &y);
                format!("for {x} in 0..n, {y} in {x}..{a} + 3 step 2 rev if {x} != {y} {{ {body} }}")
            }),
            (int(), list.clone(), list)
                .prop_map(|(a, then, other)| format!("if {a} > 1 {{ {then} }} else {{ {other} }}")),
            moves.prop_map(|body| format!("step {{ {body} }}")),
        ]
    })
    .boxed()
}

fn program() -> BoxedStrategy<String> {
    (1..3u8, prop::collection::vec(statement(), 1..5))
        .prop_map(|(chunks, body)| {
            format!(
                "fn f(a, b) = if a > b then a - b else b % 3
                 collective c on ranks[n] {{
                    in input inout data
                    ensures for r in 0..n: data @ r == reduce(s in 0..n) input @ s
                 }}
                 collective d on ranks[n] {{ in a out b[2] inplace a = b[0] ensures for r in 0..n: b[1] @ r == a @ r }}
                 collective any on ranks[n] {{ inout data ensures for r in 0..0: data @ r == data @ r }}
                 algorithm inner on ranks[n] implements any {{
                    chunks 3
                    scratch own[2]
                    for r in 1..n {{ own[1][r % 3] @ r = data[r % 3] @ r - 1 data[0] @ r += data[0] @ 0 }}
                    step {{ data[1..3] @ 0 = data[1..3] @ n - 1 % n }}
                 }}
                 algorithm spread(k: int) on ranks[n] implements d {{
                    for r in 0..n, h in 0..k {{ b[h] @ r = a @ (r + h) % n }}
                    if n > 1 {{ run inner on 0..2 with data = b }}
                    signal @ * = signal @ 0
                 }}
                 algorithm x(i: int = 1, j: rank = 0, k: int = 2) on ranks[n] implements c {{
                    chunks {chunks} * n
                    scratch tmp[n]
                    let t = [n, 0, i]
                    {}
                 }}",
                body.join("\n").replace("@@", "j")
            )
        })
        .boxed()
}

/// What every trace is.
fn well_formed(trace: &Trace) {
    assert_eq!(trace.cells % trace.chunks, 0);
    assert_eq!(trace.clause_spans.len(), trace.promise.clauses.len());
    let mut steps_seen = std::collections::BTreeSet::new();
    let mut last_step = 0;
    let mut next_source = 0;
    for mv in &trace.moves {
        assert!(mv.width > 0 && mv.source_count > 0);
        assert_eq!(mv.first_source, next_source, "sources stand in the order of their moves");
        next_source += mv.source_count;
        assert!((mv.origin.0 as usize) < trace.origins.len());
        let single = matches!(mv.kind, MoveKind::Copy | MoveKind::Combine | MoveKind::Multicast);
        assert!(!single || mv.source_count == 1);
        if mv.step != last_step && mv.step != 0 {
            assert!(steps_seen.insert(mv.step), "moves of one step are neighbours");
        }
        last_step = mv.step;
        assert_ne!(trace.buffer(mv.to).kind, BufferKind::In);
        for place in trace.sources(mv).iter().copied().chain([mv.to]) {
            let buffer = trace.buffer(place);
            assert!(place.rank.0 < trace.ranks && buffer.at.holds(place.rank));
            let size = if buffer.kind == BufferKind::Signal { 1 } else { buffer.blocks * trace.cells };
            assert!(place.cell + mv.width <= size, "{place:?} of {buffer:?}");
        }
        for &source in trace.sources(mv) {
            if source.buffer == mv.to.buffer && source.rank == mv.to.rank {
                let apart = source.cell + mv.width <= mv.to.cell || mv.to.cell + mv.width <= source.cell;
                assert!(apart || (source == mv.to && mv.source_count > 1), "{mv:?}");
            }
        }
    }
    assert_eq!(next_source as usize, trace.sources.len());
    for (i, origin) in trace.origins.iter().enumerate() {
        assert!(origin.parent.is_none_or(|parent| parent.0 as usize != i));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn never_a_panic(text in program(), n in 2..6u32) {
        let checked = check_with(&[&text], &[]);
        for error in &checked.errors {
            let _ = diagnostics::check::error(error);
        }
        prop_assume!(checked.errors.is_empty());
        let limits = Limits { moves: 20_000, turns: 200_000, places: 100_000, ..Limits::default() };
        match elaborate_checked(&checked, &[n], &[], &limits) {
            Ok(done) => {
                well_formed(&done.trace);
                for callee in &done.callees {
                    well_formed(&callee.trace);
                }
                if let Some(last) = done.trace.moves.len().checked_sub(1) {
                    for mv in [0, last / 2, last] {
                        let request = request(&checked, &[n], &[]);
                        let _ = elaborate::bindings(&checked.program, &request, &limits, MoveId(mv as u32));
                    }
                }
            }
            Err(error) => {
                let diagnostic = diagnostics::elaborate::error(&error, &checked.sources);
                prop_assert!(!diagnostic.title.is_empty() && !diagnostic.labels.is_empty());
                prop_assert!(diagnostic.labels.iter().all(|label| label.text.chars().count() <= 50));
            }
        }
    }
}
