//! Random programs out of pieces that often are symmetric: whatever is said of one, the whole agrees.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::sync::atomic::{AtomicU32, Ordering};

use rcc_compiler::limits::Limits;

use crate::support::{Outcome, compare, program, request};

/// A loop header; the variables are x and y, and mostly y goes over all ranks.
fn loops() -> impl Strategy<Value = String> {
    let x = prop_oneof![
        6 => prop::sample::select(vec!["1..n", "0..2", "0..n-1", "1..n rev"]),
        1 => prop::sample::select(vec!["0..n", "0..2 * n", "0..n step 2"]),
    ];
    let y = prop_oneof![
        8 => prop::sample::select(vec!["0..n", "0..n rev"]),
        1 => prop::sample::select(vec!["1..n", "0..x + 1", "1..n+1", "0..2 * n"]),
    ];
    let filter = prop_oneof![
        10 => Just(""),
        1 => prop::sample::select(vec![" if x % 2 == 0", " if x != 1"]),
        1 => prop::sample::select(vec![" if x != y", " if y != 0", " if (x + y) % n != 0"]),
    ];
    (x, y, any::<bool>(), filter).prop_map(|(x, y, first, filter)| {
        if first && !y.contains('x') {
            format!("for y in {y}, x in {x}{filter}")
        } else {
            format!("for x in {x}, y in {y}{filter}")
        }
    })
}

/// An index that goes round with y.
const TURNING: [&str; 9] = [
    "y % n",
    "y % n",
    "(x + y) % n",
    "(x + y + 1) % n",
    "(y + 1) % n",
    "next(y + x, n)",
    "(y - x) % n",
    "(y + min(x, 3)) % n",
    "(y + sum(z in 0..2) z) % n",
];

/// An index that stands still.
const STANDING: [&str; 6] = ["0", "x % n", "1 % n", "(x + 1) % n", "t[x % 2]", "(x * x) % n"];

/// Anything.
const ANY: [&str; 9] = [
    "(2 * y) % n",
    "y / 2 % n",
    "(n - 1 - y % n)",
    "(y ^ 1) % n",
    "(x * y) % n",
    "(if x % 2 == 0 then y % n else (y + 1) % n)",
    "(if y % 2 == 0 then x % n else 0)",
    "(x + 2 * y) % n",
    "(y + y) / 2 % n",
];

fn turning() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        40 => prop::sample::select(TURNING.to_vec()),
        1 => prop::sample::select(STANDING.to_vec()),
        1 => prop::sample::select(ANY.to_vec()),
    ]
}

fn standing() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        40 => prop::sample::select(STANDING.to_vec()),
        1 => prop::sample::select(TURNING.to_vec()),
        1 => prop::sample::select(ANY.to_vec()),
    ]
}

/// How the program means its buffers to go round: chunks of `data`, blocks of `tmp`.
type Style = (bool, bool);

fn index(turns: bool) -> BoxedStrategy<&'static str> {
    if turns { turning().boxed() } else { standing().boxed() }
}

fn one_move((chunks, blocks): Style) -> impl Strategy<Value = String> {
    // Both sides have one length: of a chunk, or of a block.
    let chunk = move || {
        prop_oneof![
            4 => (index(chunks), turning()).prop_map(|(c, r)| format!("data[{c}] @ {r}")),
            2 => (index(blocks), index(chunks), turning()).prop_map(|(b, c, r)| format!("tmp[{b}][{c}] @ {r}")),
            1 => (standing(), turning()).prop_map(|(c, r)| format!("one[{c}] @ {r}")),
        ]
    };
    let block = move || {
        prop_oneof![
            1 => turning().prop_map(|r| format!("data @ {r}")),
            1 => (index(blocks), turning()).prop_map(|(b, r)| format!("tmp[{b}] @ {r}")),
            1 => turning().prop_map(|r| format!("one @ {r}")),
        ]
    };
    let op = || prop::sample::select(vec!["=", "+=", "="]);
    prop_oneof![
        6 => (chunk(), op(), chunk()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        3 => (block(), op(), block()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        1 => (chunk(), index(chunks), turning()).prop_map(|(a, c, r)| {
            format!("{a} = reduce(k in 0..n) data[{c}] @ ({r} + k) % n")
        }),
        1 => (index(chunks), index(chunks), turning()).prop_map(|(a, b, r)| format!("data[{a}] @ * = data[{b}] @ {r}")),
        1 => (chunk(), index(chunks)).prop_map(|(a, c)| format!("{a} = reduce data[{c}] @ *")),
        1 => (block(), block(), block()).prop_map(|(a, b, c)| format!("{a} = reduce({b}, {c})")),
    ]
}

fn nest(style: Style) -> impl Strategy<Value = String> {
    let list = prop::collection::vec(one_move(style), 1..3).prop_map(|moves| moves.join("\n        "));
    (loops(), list, 0..4u8).prop_map(|(loops, moves, step)| match step {
        0 => format!("    step {loops} {{\n        {moves}\n    }}"),
        1 => format!("    {loops} {{\n        step {{ {moves} }}\n    }}"),
        _ => format!("    {loops} {{\n        {moves}\n    }}"),
    })
}

fn body() -> impl Strategy<Value = String> {
    let style = (any::<bool>(), any::<bool>());
    let nests = style.prop_flat_map(|style| prop::collection::vec(nest(style), 1..4));
    nests.prop_map(|nests| nests.join("\n")).prop_map(|nests| {
        format!(
            "fn next(a, m) = (a + 1) % m
algorithm x on ranks[n] implements allreduce {{
    chunks n
    scratch tmp[n]
    scratch one
    let t = [1 % n, 2 % n]
    for x in 0..n, y in 0..n {{ tmp[x] @ y = data @ y }}
    for x in 0..n {{ one @ x = data @ x }}
{nests}
}}
"
        )
    })
}

#[test]
fn whatever_is_said_of_a_random_program_is_so() {
    let mut runner = TestRunner::new(ProptestConfig { cases: 500, ..ProptestConfig::default() });
    let symmetric = AtomicU32::new(0);
    let result = runner.run(&(body(), 2..7u32), |(text, n)| {
        let program = program(&text);
        if let Outcome::Symmetric { .. } = compare(&program, &request(&program, "x", &[n])) {
            symmetric.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    // A test of nothing but refusals would prove nothing.
    let symmetric = symmetric.into_inner();
    assert!(symmetric >= 20, "only {symmetric} of 500 programs were symmetric");
}

/// Random moves of two levels, on all of a row or a column too.
fn two_level_move() -> impl Strategy<Value = String> {
    let node = || prop::sample::select(vec!["i", "(i + 1) % m", "(i + j) % m", "(m - 1 - i)", "0"]);
    let lane = || prop::sample::select(vec!["j", "(j + 1) % g", "0", "(i + j) % g", "g - 1 - j"]);
    let chunk = || {
        prop::sample::select(vec![
            "i * g + j",
            "0",
            "(i * g + j + g) % (m * g)",
            "j",
            "(i * g + j + 1) % (m * g)",
        ])
    };
    let op = prop::sample::select(vec!["=", "+="]);
    prop_oneof![
        4 => (chunk(), node(), lane(), op, chunk(), node(), lane()).prop_map(|(c, a, b, op, d, e, f)| {
            format!("data[{c}] @ ({a}, {b}) {op} data[{d}] @ ({e}, {f})")
        }),
        1 => (chunk(), node(), node(), lane()).prop_map(|(c, a, e, f)| {
            format!("data[{c}] @ ({a}, *) = data[{c}] @ ({e}, {f})")
        }),
        1 => (chunk(), lane(), node(), lane()).prop_map(|(c, b, e, f)| {
            format!("data[{c}] @ (*, {b}) = data[{c}] @ ({e}, {f})")
        }),
        1 => (chunk(), node(), lane(), node()).prop_map(|(c, a, b, e)| {
            format!("data[{c}] @ ({a}, {b}) = reduce data[{c}] @ ({e}, *)")
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_said_of_two_levels_is_so(
        moves in prop::collection::vec((two_level_move(), any::<bool>(), any::<bool>()), 1..4),
        m in 1..5u32,
        g in 1..4u32,
    ) {
        let nest = |(mv, order, step): &(String, bool, bool)| {
            let loops = if *order { "for i in 0..m, j in 0..g" } else { "for j in 0..g, i in 0..m" };
            let step = if *step { "step " } else { "" };
            format!("{step}{loops} {{ {mv} }}")
        };
        let body: Vec<String> = moves.iter().map(nest).collect();
        let text = format!(
            "algorithm x on ranks[m, g] implements allreduce {{\n chunks m * g\n{}\n}}\n",
            body.join("\n")
        );
        let program = program(&text);
        compare(&program, &request(&program, "x", &[m, g]));
    }
}

/// An expression of anything; most have no value that goes round, and many have none at all.
fn wild() -> BoxedStrategy<String> {
    let leaf =
        prop::sample::select(vec!["0", "1", "2", "n", "x", "y", "9223372036854775807", "t[x % 2]", "t[y]"]);
    leaf.prop_map(str::to_owned)
        .prop_recursive(3, 10, 3, |inner| {
            let op = prop::sample::select(vec!["+", "-", "*", "/", "%", "^", "&", "|", "<<", ">>"]);
            prop_oneof![
                4 => (inner.clone(), op, inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
                3 => inner.clone().prop_map(|a| format!("({a} % n)")),
                1 => inner.clone().prop_map(|a| format!("(-{a})")),
                1 => inner.clone().prop_map(|a| format!("succ({a}, n)")),
                1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| {
                    // No sum within a sum: their variables have one name.
                    if a.contains("sum") || b.contains("sum") {
                        format!("({a} - {b})")
                    } else {
                        format!("(sum(z in 0..{a} % 9) ({b} + z))")
                    }
                }),
                1 => (inner.clone(), inner.clone(), inner)
                    .prop_map(|(a, b, c)| format!("(if {a} < {b} then {c} else log2({a}))")),
            ]
        })
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// No panic, and what has a trace is compared with it.
    #[test]
    fn wild_programs_do_no_harm(
        range in (wild(), wild(), 1..4i64),
        filter in prop::option::of(wild()),
        places in (wild(), wild(), wild(), wild()),
        wild_loop in 0..4u8,
        n in 1..6u32,
    ) {
        let (from, to, by) = range;
        let (from, to) = (from.replace('x', "y"), to.replace('x', "y"));
        let x = if wild_loop == 0 { format!("({from})..({to}) step {by}") } else { "0..2 * n".to_owned() };
        let filter = filter.filter(|_| wild_loop == 1).map_or(String::new(), |f| format!(" if ({f}) > 0"));
        let (a, b, c, d) = places;
        let text = format!(
            "fn succ(a, m) = (a + 1) % m
algorithm x on ranks[n] implements allreduce {{
    chunks n
    let t = [1 % n, 2 % n]
    for y in 0..n, x in {x}{filter} {{ data[({a}) % n] @ ({b}) = data[({c}) % n] @ (({d}) % n) }}
}}
"
        );
        let program = program(&text);
        let request = request(&program, "x", &[n]);
        let limits = Limits { moves: 10_000, turns: 100_000, ..Limits::default() };
        if rcc_compiler::elaborate::elaborate(&program, &request, &limits).is_ok() {
            compare(&program, &request);
        } else if let Ok(quotient) = rcc_compiler::symmetry::quotient(&program, &request, &limits) {
            // The whole was too much.
            let _ = rcc_compiler::symmetry::prove(&quotient, &limits);
        }
    }
}
