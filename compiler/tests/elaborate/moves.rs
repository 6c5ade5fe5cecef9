//! The moves of small programs, construct by construct; what is expected was worked out by hand.

use rcc_compiler::elaborate::Error;
use rcc_compiler::limits::Limits;
use rcc_compiler::trace::BufferKind;

use crate::support::{ANY, check, elaborate, elaborate_checked, moves};

/// The moves of an algorithm `x` with this body, on `shape`.
fn of(body: &str, shape: &[u32]) -> Vec<String> {
    let levels = ["n", "m, n", "l, m, n"][shape.len() - 1];
    let text = format!("{ANY} algorithm x on ranks[{levels}] implements any {{ {body} }}");
    moves(&elaborate(&text, shape, &[]).unwrap_or_else(|error| panic!("{body}: {error:?}")).trace)
}

#[test]
fn ring() {
    let text = "algorithm ring on ranks[n] implements allreduce {
        chunks n
        for c in 0..n, hop in 1..n { data[c] @ (c + hop + 1) % n += data[c] @ (c + hop) % n }
        for c in 0..n, hop in 0..n-1 { data[c] @ (c + hop + 1) % n = data[c] @ (c + hop) % n }
    }";
    let done = elaborate(text, &[2], &[]).expect("it is right");
    assert_eq!(done.trace.cells, 2);
    assert_eq!(
        moves(&done.trace),
        [
            "data[0] @ 0 += data[0] @ 1",
            "data[1] @ 1 += data[1] @ 0",
            "data[0] @ 1 = data[0] @ 0",
            "data[1] @ 0 = data[1] @ 1",
        ]
    );
    assert!(done.callees.is_empty());
    assert_eq!(done.trace.promise.clauses.len(), 2);
    assert_eq!(done.trace.promise.lists.len(), 1);
}

#[test]
fn expressions() {
    let cases = [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 3 - 2", 5),
        ("-7 / 2", -4),
        ("-7 % 2", 1),
        ("7 / -2", -3),
        ("7 % -2", 1),
        ("-7 / -2", 4),
        ("-7 % -2", 1),
        ("(-9223372036854775807 - 1) % -1", 0),
        ("1 << 3 + 1", 16),
        ("-1 >> 1", -1),
        ("6 & 3 | 8", 10),
        ("6 ^ 3", 5),
        ("1 | 2 ^ 3 & 6", 1),
        ("if 5 >> 1 & 1 == 0 then 1 else 2", 1),
        ("if not 1 == 2 and 3 < 4 or false then 1 else 2", 1),
        ("if false and 1 / 0 == 1 then 1 else 2", 2),
        ("if true or 1 / 0 == 1 then 1 else 2", 1),
        ("if true then 1 else 1 / 0", 1),
        ("-2 * -3", 6),
        ("min(3, 1, 2)", 1),
        ("max(3, 1, 4, 2)", 4),
        ("abs(-4)", 4),
        ("log2(1)", 0),
        ("log2(7)", 2),
        ("log2(8)", 3),
        ("ceil_log2(1)", 0),
        ("ceil_log2(7)", 3),
        ("ceil_log2(8)", 3),
        ("ceil_log2(9)", 4),
        ("gcd(12, 18)", 6),
        ("gcd(0, -5)", 5),
        ("gcd(0, 0)", 0),
        ("popcount(7)", 3),
        ("popcount(-1)", 64),
        ("lowbit(12)", 4),
        ("lowbit(0)", 0),
        ("if is_power_of_two(8) then 1 else 0", 1),
        ("if is_power_of_two(6) or is_power_of_two(0) or is_power_of_two(-8) then 1 else 0", 0),
        ("sum(i in 0..5) i * i", 30),
        ("sum(i in 0..5 if i % 2 == 1) i", 4),
        ("sum(i in 0..3, j in i..3) (10 * i + j)", 48),
        ("sum(i in 3..1) i", 0),
        ("sum(i in 0..10 step 4) i", 12),
        ("twice(add(1, 2)) + add(twice(1), n)", 11),
        ("if both(true, 1 < 2) then 1 else 0", 1),
        ("pick(true, 3, 4) + (if pick(false, true, false) then 10 else 20)", 23),
        ("t[2] + t[n - 3]", 27),
        ("squares[3]", 9),
        ("odd[1]", 3),
        ("if flags[1] then 1 else 0", 0),
    ];
    let prelude = "fn add(a, b) = a + b
        fn twice(a) = add(a, a)
        fn both(a, b) = a and b
        fn pick(c, a, b) = if c then a else b";
    for (expression, value) in cases {
        let text = format!(
            "{ANY} {prelude} algorithm x on ranks[n] implements any {{
                let t = [7, 8, 20, 1]
                let squares = [i * i for i in 0..n]
                let odd = [i for i in 0..9 if i % 2 == 1]
                let flags = [true, false]
                require ({expression}) == {value}, \"{expression}\"
            }}"
        );
        match elaborate(&text, &[3 + u32::from(expression.contains("squares"))], &[]) {
            Ok(done) => assert!(done.trace.moves.is_empty()),
            Err(Error::Excluded { why, .. }) => panic!("{why} is not {value}"),
            Err(Error::Fault(fault)) => panic!("{expression}: {fault:?}"),
        }
    }
}

#[test]
fn binders() {
    let hops = |body: &str| of(&format!("chunks 100 {body}"), &[1]);
    let copied = |numbers: &[u32]| -> Vec<String> {
        numbers.iter().map(|i| format!("data[{i}] @ 0 = data[99] @ 0")).collect()
    };
    let copy = "{ data[x] @ 0 = data[99] @ 0 }";
    assert_eq!(hops(&format!("for x in 2..5 {copy}")), copied(&[2, 3, 4]));
    assert_eq!(hops(&format!("for x in 5..2 {copy}")), copied(&[]));
    assert_eq!(hops(&format!("for x in 0..10 step 4 {copy}")), copied(&[0, 4, 8]));
    assert_eq!(hops(&format!("for x in 0..8 step 4 {copy}")), copied(&[0, 4]));
    assert_eq!(hops(&format!("for x in 0..10 step 4 rev {copy}")), copied(&[8, 4, 0]));
    assert_eq!(hops(&format!("for x in 0..4 rev if x != 2 {copy}")), copied(&[3, 1, 0]));
    let copy = "{ data[10 * y + x] @ 0 = data[99] @ 0 }";
    assert_eq!(hops(&format!("for y in 0..2, x in 0..2 {copy}")), copied(&[0, 1, 10, 11]));
    assert_eq!(hops(&format!("for y in 0..3, x in y..3 {copy}")), copied(&[0, 1, 2, 11, 12, 22]));
    assert_eq!(hops(&format!("for y in 0..3, x in 0..y rev if x + y != 2 {copy}")), copied(&[10, 21]));
    // More binders than are kept, and bounds that fail only if an outer range is not empty.
    let many = "for a in 0..1, b in 0..1, c in 0..1, d in 0..1, y in 0..2, x in 0..2 rev";
    assert_eq!(hops(&format!("{many} {copy}")), copied(&[1, 0, 11, 10]));
    assert_eq!(hops(&format!("for y in 0..0, x in 0..1/0 {copy}")), copied(&[]));
}

#[test]
fn statements() {
    assert_eq!(
        of(
            "if n == 2 { data @ 0 = data @ 1 } else if n == 3 { data @ 2 = data @ 1 } else { data @ 1 = data @ 0 }",
            &[3]
        ),
        ["data[0] @ 2 = data[0] @ 1"]
    );
    assert_eq!(
        of("for r in 1..n { let left = r - 1 let t = [left] data @ r += data @ t[0] }", &[3]),
        ["data[0] @ 1 += data[0] @ 0", "data[0] @ 2 += data[0] @ 1"]
    );
}

#[test]
fn regions() {
    let text = |body: &str| {
        format!(
            "collective c on ranks[n] {{ in a[3] out b[2 * n] inout d ensures for r in 0..0: b[0] @ r == a[0] @ r }}
             algorithm x on ranks[n] implements c {{ chunks 4 scratch s scratch t[2] {body} }}"
        )
    };
    let of = |body: &str| moves(&elaborate(&text(body), &[2], &[]).expect(body).trace);
    assert_eq!(of("s @ 1 = d @ 0"), ["s[0..4] @ 1 = d[0..4] @ 0"]);
    assert_eq!(of("s[1] @ 1 = d[2] @ 0"), ["s[1] @ 1 = d[2] @ 0"]);
    assert_eq!(of("s[1..3] @ 1 = d[2..4] @ 0"), ["s[1..3] @ 1 = d[2..4] @ 0"]);
    assert_eq!(of("s @ 1 = a[1] @ 0"), ["s[0..4] @ 1 = a[4..8] @ 0"]);
    assert_eq!(of("t @ 1 = a[1..3] @ 0"), ["t[0..8] @ 1 = a[4..12] @ 0"]);
    assert_eq!(of("t[1][3] @ 1 = a[2][0] @ 0"), ["t[7] @ 1 = a[8] @ 0"]);
    assert_eq!(of("b[3][1..4] @ 1 = a[2][0..3] @ 0"), ["b[13..16] @ 1 = a[8..11] @ 0"]);
    assert_eq!(of("b @ 1 = b @ 0"), ["b[0..16] @ 1 = b[0..16] @ 0"]);
    assert_eq!(of("s[2..2] @ 1 = d[4..4] @ 0"), [""; 0]);
}

#[test]
fn scratch_that_nothing_touches_is_left_out() {
    let text = format!(
        "{ANY} algorithm x on ranks[n] implements any {{ scratch a scratch b[n - 1] scratch c[2] c[1] @ 0 = data @ 0 }}"
    );
    let done = elaborate(&text, &[1], &[]).expect("it is right");
    let names: Vec<&str> = done.trace.buffers.iter().map(|b| b.name.as_str()).collect();
    assert_eq!(names, ["data", "c"]);
    assert_eq!(moves(&done.trace), ["c[1] @ 0 = data[0] @ 0"]);
}

#[test]
fn ranks_of_several_levels() {
    // Rank (i, j, k) of 2 x 3 x 4 is (i * 3 + j) * 4 + k.
    assert_eq!(of("data @ (1, 2, 3) = data @ (0, 1, 2)", &[2, 3, 4]), ["data[0] @ 23 = data[0] @ 6"]);
    assert_eq!(of("data @ 5 = data @ l * m", &[2, 3, 4]), ["data[0] @ 5 = data[0] @ 6"]);
    assert_eq!(
        of("data @ (1, *) = data @ (1, 1)", &[2, 3]),
        ["data[0] @ 3 *= data[0] @ 4 '1", "data[0] @ 5 *= data[0] @ 4 '1"]
    );
    assert_eq!(
        of("data @ (*, 1) = data @ (0, 0)", &[2, 3]),
        ["data[0] @ 1 *= data[0] @ 0 '1", "data[0] @ 4 *= data[0] @ 0 '1"]
    );
    assert_eq!(
        of("data @ (*, 1, *) = data @ 0", &[2, 2, 2]),
        [2, 3, 6, 7].map(|r| format!("data[0] @ {r} *= data[0] @ 0 '1"))
    );
}

#[test]
fn multicast_passes_over_its_source_only() {
    assert_eq!(of("data @ * = data @ 1", &[3]), [0, 2].map(|r| format!("data[0] @ {r} *= data[0] @ 1 '1")));
    assert_eq!(
        of("chunks 2 data[0] @ * = data[1] @ 1", &[2]),
        [0, 1].map(|r| format!("data[0] @ {r} *= data[1] @ 1 '1"))
    );
    assert_eq!(of("data @ * = data @ 0", &[1]), [""; 0]);
    // Two multicasts are two steps; within a `step`, they are of that step.
    assert_eq!(
        of("data @ * = data @ 0 data @ * = data @ 1", &[2]),
        ["data[0] @ 1 *= data[0] @ 0 '1", "data[0] @ 0 *= data[0] @ 1 '2"]
    );
    assert_eq!(
        of("step { data @ * = data @ 0 data @ * = data @ 1 } data @ 0 = data @ 1", &[2]),
        ["data[0] @ 1 *= data[0] @ 0 '1", "data[0] @ 0 *= data[0] @ 1 '1", "data[0] @ 0 = data[0] @ 1"]
    );
}

#[test]
fn reductions() {
    assert_eq!(
        of("data @ 0 = reduce(data @ 1, data @ 0)", &[2]),
        ["data[0] @ 0 = reduce(data[0] @ 1, data[0] @ 0)"]
    );
    assert_eq!(
        of("data @ 0 = reduce(r in 0..n rev if r != 1) data @ r", &[3]),
        ["data[0] @ 0 = reduce(data[0] @ 2, data[0] @ 0)"]
    );
    assert_eq!(
        of("chunks 2 data[0..2] @ 1 = reduce data @ *", &[3]),
        ["data[0..2] @ 1 = gather(data[0..2] @ 0, data[0..2] @ 1, data[0..2] @ 2)"]
    );
    assert_eq!(
        of("data @ 0 = reduce data @ (*, 1)", &[2, 2]),
        ["data[0] @ 0 = gather(data[0] @ 1, data[0] @ 3)"]
    );
    assert_eq!(of("chunks 2 data[1..1] @ 0 = reduce data[1..1] @ *", &[2]), [""; 0]);
    // In a world of one rank a reduction over all ranks of a place itself is no move.
    assert_eq!(of("data @ 0 = reduce(s in 0..n) data @ s data @ 0 = reduce data @ *", &[1]), [""; 0]);
}

#[test]
fn steps_are_numbered() {
    assert_eq!(
        of("for t in 0..2 { step for r in 0..n { data @ (r + 1) % n += data @ r } }", &[2]),
        [
            "data[0] @ 1 += data[0] @ 0 '1",
            "data[0] @ 0 += data[0] @ 1 '1",
            "data[0] @ 1 += data[0] @ 0 '2",
            "data[0] @ 0 += data[0] @ 1 '2",
        ]
    );
}

#[test]
fn signals() {
    let text = format!(
        "{ANY} algorithm x on ranks[n] implements any {{ chunks 4 scratch t signal @ 1 = signal @ 0 signal @ * = signal @ 1 t @ 0 = data @ 0 }}"
    );
    let done = elaborate(&text, &[2], &[]).expect("it is right");
    assert_eq!(
        moves(&done.trace),
        [
            "signal[0] @ 1 = signal[0] @ 0",
            "signal[0] @ 0 *= signal[0] @ 1 '1",
            "t[0..4] @ 0 = data[0..4] @ 0"
        ]
    );
    let kinds: Vec<BufferKind> = done.trace.buffers.iter().map(|b| b.kind).collect();
    assert_eq!(kinds, [BufferKind::Inout, BufferKind::Scratch, BufferKind::Signal]);
    // Without a signal there is no such buffer, and unused scratch does not take its place.
    let text = format!("{ANY} algorithm x on ranks[n] implements any {{ scratch t data @ 1 = data @ 0 }}");
    assert_eq!(elaborate(&text, &[2], &[]).expect("it is right").trace.buffers.len(), 1);
}

#[test]
fn parameters() {
    let text = format!(
        "{ANY} algorithm x(k: int = n + 1, up: bool = true, root: rank) on ranks[n] implements any {{
            chunks k
            if up {{ data[k - 1] @ root = data[0] @ root }} else {{ data[0] @ root = data[k - 1] @ root }}
        }}"
    );
    let done = elaborate(&text, &[2], &[("root", 1)]).expect("it is right");
    assert_eq!(moves(&done.trace), ["data[2] @ 1 = data[0] @ 1"]);
    assert_eq!(done.trace.params, [("k".to_owned(), 3), ("up".to_owned(), 1), ("root".to_owned(), 1)]);
    let done = elaborate(&text, &[2], &[("root", 0), ("k", 2), ("up", 0)]).expect("it is right");
    assert_eq!(moves(&done.trace), ["data[0] @ 0 = data[1] @ 0"]);
}

#[test]
fn limits_are_those_that_are_given() {
    let text = format!(
        "{ANY} algorithm x on ranks[n] implements any {{ chunks n for c in 1..n {{ data[c] @ 0 = data[0] @ 0 }} }}"
    );
    let checked = check(&text);
    let tight = Limits { moves: 7, turns: 40, places: 64, ..Limits::default() };
    assert!(elaborate_checked(&checked, &[8], &[], &tight).is_ok());
    let code = |limits: Limits| elaborate_checked(&checked, &[8], &[], &limits).expect_err("too much").code();
    assert_eq!(code(Limits { moves: 6, ..tight }), "coll::too_many_moves");
    assert_eq!(code(Limits { turns: 6, ..tight }), "coll::too_many_turns");
    assert_eq!(code(Limits { places: 63, ..tight }), "coll::too_many_places");
}
