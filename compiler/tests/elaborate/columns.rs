//! Turns of a loop that are evaluated together against the same turns one by one.
//!
//! A loop with a filter is always evaluated turn by turn; without the filter (the text as long as with it, so that all spans
//! are the same) the trace, or the error with its values, must be the same.

use rcc_compiler::elaborate::Error;
use rcc_compiler::limits::Limits;

use crate::support::{ANY, check, elaborate_checked, shown};

const FILTER: &str = " if 0 == 0";

/// What the body comes to, with `#` as a filter that lets all pass or as blanks.
fn come_to(body: &str, filter: &str, limits: &Limits) -> Result<String, Error> {
    let body = body.replace('#', filter);
    let text = format!(
        "fn mirror(a, b) = b - 1 - a fn twice(a) = mirror(a, 2 * a + 1) + 0 * (a % 5)
        {ANY} algorithm x on ranks[n] implements any {{ let k = 3 chunks 640 {body} }}"
    );
    let checked = check(&text);
    assert!(checked.errors.is_empty(), "{:?}", shown(&checked));
    elaborate_checked(&checked, &[640], &[], limits).map(|done| format!("{:?}", done.trace))
}

#[test]
fn turns_together_are_turns_one_by_one() {
    let bodies = [
        "for c in 0..n# { data[c] @ (c + k) % n += data[c] @ (c * 7 + k * 2) % n }",
        "for c in 0..n rev# { data[mirror(c, n)] @ twice(c) % n = data[mirror(c, n)] @ (twice(c) + 1) % n }",
        "for c in 5..n step 3# { data[c - 5..c] @ c = data[c - 5..c] @ c - 1 }",
        "for s in 0..5, c in s * 100..s * 100 + 30# { let d = c + s let e = d % 7 data[d] @ e = data[d] @ e + 1 }",
        // Loops too short, or with a rest too short, between others.
        "for s in 0..20, c in s..520# { data[c] @ (c + s) % n = data[c] @ (c + s + 1) % n }",
        "for s in 0..30, c in 0..30 - s# { data[c + s] @ c * s = data[c + s] @ c * s + 1 }",
        // Choices, in which a value may be one that has none elsewhere.
        "for c in 0..n# { if c % 3 == 1 { let d = c / 2 data[d] @ d = data[d] @ c } else { data[c] @ 0 += data[c] @ 1 } }",
        "for c in 0..n# { if c > 4 { data[100 / (c - 4)] @ 0 = data[100 / (c - 4)] @ 1 } }",
        "for c in 0..n# { if c > 4 and 100 / (c - 4) > 3 { data[c] @ 0 = data[c] @ 1 } }",
        // A name that means something else after a choice.
        "for c in 0..n# { if c % 2 == 0 { let d = c data[d] @ 0 = data[d] @ 1 } let e = c + 1 data[c] @ e % n = data[c] @ (e + 1) % n }",
        "let t = [i * i for i in 0..640] for c in 0..n# { data[t[c] % n] @ t[c] % n = data[t[c] % n] @ (t[c] + 1) % n }",
        // What is not the same for all, in operators not met above.
        "for c in 0..n# { data[c ^ 1] @ c & 63 = data[c ^ 1] @ (c | 64) }",
        "for c in 0..n# { data[c >> 1] @ -(-c) = data[c >> 1] @ (1 << c % 9) + 100 }",
        "for c in 0..n# { data[min(c, 9)] @ 0 = data[min(c, 9)] @ max(c, 1) }",
        "for c in 0..n# { let y = sum(i in 0..c % 4) i data[c] @ y = data[c] @ y + 1 }",
        // Sums, whose own turns are others: before what has a column, after it, longer than the loop, in a function.
        "for c in 0..n# { data[c + (sum(i in 0..3) 0)] @ 0 = data[c * 1] @ c % 5 + 1 }",
        "for c in 0..n# { if (sum(i in 0..c % 5) i) > 2 { data[c + 0] @ (c + 1) % n = data[c + 0] @ c % n } }",
        "for c in 0..n# { data[c + (sum(i in 0..700) 0)] @ (c + 1) % n = data[c * 1] @ c % n }",
        "for c in 0..n# { data[c + 0] @ mirror(c, n) + (sum(i in 0..2) 0) = data[c + 0] @ (mirror(c, n) + 1) % n }",
    ];
    for body in bodies {
        let limits = Limits::default();
        let [one, all] = [FILTER, "          "].map(|filter| come_to(body, filter, &limits));
        let one = one.unwrap_or_else(|error| panic!("{body}: {error:?}"));
        assert_eq!(all.expect(body), one, "{body}");
    }
}

#[test]
fn a_turn_that_fails_is_the_one_that_fails_alone() {
    let bodies = [
        "for c in 0..n# { data[c] @ 600 / (c - 517) = data[c] @ 1 }",
        "for c in 0..n# { data[c] @ c % (515 - c) = data[c] @ 1 }",
        "for c in 0..n# { data[c] @ c + 30 = data[c] @ c }",
        "for c in 0..n# { data[c * 2] @ 0 = data[c * 2] @ 1 }",
        "for c in 0..n rev# { data[c] @ 1 << 600 - c = data[c] @ 0 }",
        "for c in 0..n# { let d = 9223372036854775800 + c data[c] @ 0 = data[c] @ 1 }",
        "for c in 0..n# { let d = -(c - 9223372036854775807 - 20) data[c] @ 0 = data[c] @ 1 }",
        "for c in 0..n# { data[c] @ c = data[c] @ 300 }",
        "let t = [i for i in 0..40] for c in 0..n# { data[c] @ t[c] = data[c] @ t[c] + 1 }",
        "for c in 0..n# { data[c] @ mirror(c, 600) = data[c] @ 0 }",
    ];
    for body in bodies {
        let limits = Limits::default();
        let [one, all] = [FILTER, "          "].map(|filter| come_to(body, filter, &limits));
        let (one, all) = (one.expect_err(body), all.expect_err(body));
        assert_eq!(format!("{all:?}"), format!("{one:?}"), "{body}");
    }
}

/// Calls are paid for when their value is read, whether or not it was known before.
#[test]
fn calls_cost_the_same() {
    // Only where the choice says so; or (of the same length) by a `sum`, which makes all of it turn by turn.
    let body =
        |value: &str| format!("for c in 0..n {{ if c % 4 == 0 {{ data[c] @ {value} = data[c] @ 1 }} }}");
    let least = |body: &str| {
        let enough = |turns: u64| come_to(body, "", &Limits { turns, ..Limits::default() }).is_ok();
        let (mut few, mut many) = (0u64, 1 << 20);
        while many - few > 1 {
            let half = few.midpoint(many);
            if enough(half) { many = half } else { few = half }
        }
        many
    };
    let [called, plain] = ["2 + 0 * twice(c)", "2 + 0 * (c + 1) "].map(|value| least(&body(value)));
    // A call of `twice` is one of `mirror` too; at least 12 nodes each, of which 4 are a turn, in every fourth of 640 turns.
    let calls = (called - plain) / 160;
    assert!((6..20).contains(&calls), "{called} {plain}");
}

#[test]
fn calls_that_no_one_can_pay_for_are_not_made() {
    let doubled = (1..60).map(|i| format!("fn f{i}(a) = f{}(a) + f{}(a) ", i - 1, i - 1)).collect::<String>();
    let text = format!(
        "fn f0(a) = a {doubled}
        {ANY} algorithm x on ranks[n] implements any {{ chunks n for c in 0..n {{ data[c] @ f59(c) = data[c] @ 1 }} }}"
    );
    let checked = check(&text);
    assert!(checked.errors.is_empty(), "{:?}", shown(&checked));
    let limits = Limits { turns: 1 << 20, ..Limits::default() };
    let error = elaborate_checked(&checked, &[64], &[], &limits).expect_err("2^59 calls");
    assert!(format!("{error:?}").contains("TooManyTurns"), "{error:?}");
}
