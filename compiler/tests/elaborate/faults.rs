//! Every kind of error of `check`, with the text that it points at.

use rcc_compiler::diagnostics;

use crate::support::{ANY, check, check_with, shown};

/// Code and text of all errors of `check`.
fn checked(text: &str) -> Vec<(String, String)> {
    let checked = check(text);
    for error in &checked.errors {
        let diagnostic = diagnostics::check::error(error);
        sound(&diagnostic);
    }
    shown(&checked)
}

/// What every diagnostic must be like.
pub(crate) fn sound(diagnostic: &diagnostics::Diagnostic) {
    let first = diagnostic.title.chars().next().expect("a title");
    assert!(!first.is_uppercase(), "{}", diagnostic.title);
    assert!(!diagnostic.title.ends_with('.'), "{}", diagnostic.title);
    assert!(!diagnostic.labels.is_empty());
    for label in &diagnostic.labels {
        assert!(label.text.chars().count() <= 50, "{}", label.text);
    }
    assert!(diagnostics::explain::explain(diagnostic.code).is_some(), "{} has no page", diagnostic.code);
}

fn expect(text: &str, errors: &[(&str, &str)]) {
    let found = checked(text);
    let found: Vec<(&str, &str)> = found.iter().map(|(code, text)| (code.as_str(), text.as_str())).collect();
    let errors: Vec<(String, &str)> =
        errors.iter().map(|(code, text)| (format!("coll::{code}"), *text)).collect();
    let errors: Vec<(&str, &str)> = errors.iter().map(|(code, text)| (code.as_str(), *text)).collect();
    assert_eq!(found, errors, "{text}");
}

/// Errors of an algorithm on one level with this body, for `any`.
fn body(body: &str, errors: &[(&str, &str)]) {
    expect(&format!("{ANY} algorithm x on ranks[n] implements any {{ {body} }}"), errors);
}

#[test]
fn names() {
    body("data @ m = data @ 0", &[("unknown_name", "m")]);
    body("dat @ 0 = data @ 0", &[("unknown_name", "dat")]);
    body("data @ foo(1) = data @ t[0]", &[("unknown_name", "foo"), ("unknown_name", "t")]);
    body("data @ n = n @ 0", &[("unknown_name", "n")]);
    body("run other on * with data = data", &[("unknown_name", "other")]);
    body("for r in 0..n { data @ r = data @ 0 } data @ r = data @ 0", &[("unknown_name", "r")]);
    body("tmp @ 0 = data @ 0 scratch tmp", &[("unknown_name", "tmp")]);
    expect(
        "algorithm x on ranks[n] implements allredcue { data @ 0 = data @ 1 }",
        &[("unknown_name", "allredcue")],
    );
    expect("algorithm x on ranks[n] implements reduce(rot = 0) { }", &[("unknown_name", "rot")]);
    body("let n = 3", &[("shadowed_name", "n")]);
    body("let a = 3 let a = 4", &[("shadowed_name", "a")]);
    body("for r in 0..n { for r in 0..n { data @ r = data @ 0 } }", &[("shadowed_name", "r")]);
    body("scratch data", &[("shadowed_name", "data")]);
    body("let data = 1", &[("shadowed_name", "data")]);
    body("for r in 0..sum(n in 0..3) n { }", &[("shadowed_name", "n")]);
    expect(
        &format!("{ANY} algorithm x(data: int) on ranks[n] implements any {{ }}"),
        &[("shadowed_name", "data")],
    );
    expect(&format!("{ANY} algorithm x on ranks[n, n] implements any {{ }}"), &[("shadowed_name", "n")]);
    expect("fn f(a, a) = a algorithm x on ranks[n] implements allreduce { }", &[("shadowed_name", "a")]);
    body("let signal = 3", &[("reserved_name", "signal")]);
    expect(
        &format!("{ANY} fn max(a, b) = a algorithm x on ranks[n] implements any {{ }}"),
        &[("reserved_name", "max")],
    );
    let twice = format!(
        "{ANY} algorithm x on ranks[n] implements any {{ }} algorithm x on ranks[n] implements any {{ }}"
    );
    expect(&twice, &[("duplicate_name", "x")]);
    expect(
        "fn f(a) = a fn f(a) = a algorithm x on ranks[n] implements allreduce { }",
        &[("duplicate_name", "f")],
    );
    // Names of sibling scopes, of other files and of the standard library do not clash.
    body(
        "for r in 0..n { let q = r data @ q = data @ n - 1 } for r in 0..n { let q = r data @ q = data @ 0 }",
        &[],
    );
    let both = check_with(&["algorithm ring on ranks[n] implements allreduce { }"; 2], stdlib::FILES);
    assert_eq!(shown(&both), []);
    expect(
        "collective allreduce on ranks[n] { in a ensures for r in 0..0: a @ 0 == a @ 0 }
        algorithm x on ranks[n] implements allreduce { a @ 0 = a @ 1 }",
        &[("ensures_side", "a"), ("in_written", "a")],
    );
}

#[test]
fn suggestions() {
    let nearest = |text: &str| {
        let checked = check(text);
        let diagnostic = diagnostics::check::error(&checked.errors[0]);
        diagnostic.help.unwrap_or_default()
    };
    assert_eq!(nearest("algorithm x on ranks[n] implements allredcue { }"), "did you mean `allreduce`?");
    assert_eq!(
        nearest("algorithm x on ranks[n] implements allreduce { run ring on * with data = data }"),
        "did you mean `std::allreduce::ring`?"
    );
    assert_eq!(
        nearest("algorithm x on ranks[n] implements allreduce { dta @ 0 = data @ 1 }"),
        "did you mean `data`?"
    );
    assert_eq!(
        nearest("algorithm x on ranks[n] implements allreduce { let a = ceil_lg2(n) }"),
        "did you mean `ceil_log2`?"
    );
    assert_eq!(
        nearest("algorithm x on ranks[n] implements allreduce { let half = 1 let b = hlaf }"),
        "did you mean `half`?"
    );
    assert!(
        !nearest("algorithm x on ranks[n] implements allreduce { let b = zzz }").contains("did you mean")
    );
}

#[test]
fn types_and_arity() {
    body("chunks true", &[("wrong_type", "true")]);
    body("if n { }", &[("wrong_type", "n")]);
    body("require n, \"why\"", &[("wrong_type", "n")]);
    body("let a = 1 + true", &[("wrong_type", "true")]);
    body("let a = if n == 1 then 1 else false", &[("wrong_type", "false")]);
    body("let a = true == 1", &[("wrong_type", "1")]);
    body("let a = not 3", &[("wrong_type", "3")]);
    body("let a = data + 1", &[("wrong_type", "data")]);
    body("let a = signal == data", &[("wrong_type", "signal")]);
    body("let t = [1, 2] let a = t", &[("wrong_type", "t")]);
    body("let t = [1, true]", &[("wrong_type", "true")]);
    body("let t = [true] let a = t[0] + 1", &[("wrong_type", "t[0]")]);
    body("let a = n[0]", &[("not_a_table", "n")]);
    body("let a = min(1)", &[("argument_count", "min")]);
    body("let a = log2(1, 2)", &[("argument_count", "log2")]);
    let with = |fns: &str, errors: &[(&str, &str)]| {
        expect(
            &format!("{ANY} {fns} algorithm x on ranks[n] implements any {{ let a = f(1, true) }}"),
            errors,
        );
    };
    with("fn f(a, b) = if b then a else 0", &[]);
    with("fn f(a, b) = a", &[]);
    with("fn f(a, b) = if a == 1 then b else true", &[]);
    with("fn f(a) = a", &[("argument_count", "f")]);
    with("fn f(a, b) = a + b", &[("wrong_type", "true")]);
    with("fn g(b) = b + 1 fn f(a, b) = g(b)", &[("wrong_type", "true")]);
    with("fn f(a, b) = if a then b else b", &[("wrong_type", "1")]);
    with("fn f(a, b) = a + (if a then 1 else 2) + (if b then 1 else 2)", &[("wrong_type", "a")]);
    with("fn f(a, b) = n", &[("unknown_name", "n")]);
    // A function that no use decides serves both types.
    body("", &[]);
    expect(
        &format!(
            "{ANY} fn id(a) = a algorithm x on ranks[n] implements any {{ let a = id(1) + 1 let b = id(true) and true }}"
        ),
        &[],
    );
    expect(
        &format!("{ANY} algorithm x(k: int = true, b: bool = 3) on ranks[n] implements any {{ }}"),
        &[("wrong_type", "true"), ("wrong_type", "3")],
    );
    expect("algorithm x on ranks[n] implements reduce(n == 1) { }", &[("wrong_type", "n == 1")]);
}

#[test]
fn arguments() {
    let x = |implements: &str, errors: &[(&str, &str)]| {
        expect(&format!("algorithm x on ranks[n] implements {implements} {{ }}"), errors);
    };
    x("sendrecv(0, 1)", &[]);
    x("sendrecv(to = 0, from = 1)", &[]);
    x("sendrecv(0)", &[("missing_argument", "implements sendrecv(0)")]);
    x("reduce", &[("missing_argument", "implements reduce")]);
    x("allreduce(0)", &[("argument_count", "0")]);
    x("sendrecv(from = 0, 1)", &[("positional_after_named", "1")]);
    x("sendrecv(0, from = 1)", &[("argument_twice", "from = 1")]);
    x("sendrecv(0, tp = 1)", &[("unknown_name", "tp")]);
    let run = |args: &str, errors: &[(&str, &str)]| {
        expect(
            &format!(
                "{ANY} algorithm y(k: int, b: bool = true) on ranks[n] implements any {{ }}
                algorithm x on ranks[n] implements any {{ run y{args} on * with data = data }}"
            ),
            errors,
        );
    };
    run("(3)", &[]);
    run("(b = false, k = 3)", &[]);
    run("", &[("missing_argument", "y")]);
    run("(true)", &[("wrong_type", "true")]);
    run("(1, true, 3)", &[("argument_count", "3")]);
    run("(k = 1, k = 2)", &[("argument_twice", "k = 2")]);
}

#[test]
fn circles() {
    let f = |fns: &str, errors: &[(&str, &str)]| {
        expect(&format!("{ANY} {fns} algorithm x on ranks[n] implements any {{ }}"), errors);
    };
    f("fn f(a) = f(a)", &[("recursion", "f")]);
    f("fn f(a) = g(a) fn g(a) = if a == 0 then 0 else f(a - 1)", &[("recursion", "g")]);
    f("fn f(a) = g(a) fn g(a) = h(a) fn h(a) = a", &[]);
    let r = |text: &str, errors: &[(&str, &str)]| expect(&format!("{ANY} {text}"), errors);
    r(
        "algorithm x on ranks[n] implements any { run x on * with data = data }",
        &[("recursion", "run x on * with data = data")],
    );
    r(
        "algorithm x on ranks[n] implements any { run y on * with data = data }
         algorithm y on ranks[n] implements any { for i in 0..1 { run x on * with data = data } }",
        &[("recursion", "run y on * with data = data")],
    );
    let checked =
        check(&format!("{ANY} fn f(a) = g(a) fn g(a) = f(a) algorithm x on ranks[n] implements any {{ }}"));
    let diagnostic = diagnostics::check::error(&checked.errors[0]);
    let labels: Vec<&str> = diagnostic.labels.iter().map(|label| label.text.as_str()).collect();
    assert_eq!(labels, ["`f` calls `g` here", "`g` calls `f` here"]);
}

#[test]
fn statements() {
    body(
        "step { run x on * with data = data }",
        &[
            ("misplaced_statement", "run x on * with data = data"),
            ("recursion", "run x on * with data = data"),
        ],
    );
    body("step { step { data @ 0 = data @ 1 } }", &[("misplaced_statement", "step { data @ 0 = data @ 1 }")]);
    body("chunks 2 chunks 3", &[("misplaced_statement", "chunks 3")]);
    body("for i in 0..1 { chunks 2 }", &[("misplaced_statement", "chunks 2")]);
    body("if n == 1 { scratch s }", &[("misplaced_statement", "scratch s")]);
    body("for i in 0..1 { require n > 1, \"why\" }", &[("misplaced_statement", "require n > 1, \"why\"")]);
    body("step { inplace none }", &[("misplaced_statement", "inplace none")]);
    body("inplace none inplace none", &[("misplaced_statement", "inplace none")]);
    body("data @ 0 = data @ 1 chunks 2", &[("misplaced_statement", "chunks 2")]);
    body(
        "let k = 2 require n > 1, \"why\" scratch s[k] chunks k inplace none data[1] @ 0 = data[0] @ 0 scratch t",
        &[],
    );
    expect("", &[("nothing_to_check", "")]);
    expect("fn f(a) = a", &[("nothing_to_check", "")]);
}

#[test]
fn places() {
    body("data[0][1] @ 0 = data @ 0", &[("index_count", "data[0][1]")]);
    body("scratch s[3] s[0][1][2] @ 0 = s[0] @ 1", &[("index_count", "s[0][1][2]")]);
    body("scratch s[3] s[0..1][1] @ 0 = s[0] @ 1", &[("index_after_range", "s[0..1][1]")]);
    body("data @ (0, 1) = data @ 0", &[("coordinate_count", "(0, 1)")]);
    expect(
        &format!("{ANY} algorithm x on ranks[a, b, c] implements any {{ data @ (0, *) = data @ (1, 2, 0) }}"),
        &[("coordinate_count", "(0, *)")],
    );
    body("data @ 0 = data @ *", &[("many_ranks", "*")]);
    body("data @ * += data @ 0", &[("many_ranks", "*")]);
    body("data @ * = reduce data @ *", &[("many_ranks", "*")]);
    body("data @ 0 = reduce(data @ *, data @ 0)", &[("many_ranks", "*")]);
    body("data @ 0 = reduce data @ 1", &[("one_rank", "reduce data @ 1")]);
    body("data @ 0 += reduce data @ *", &[("combine_reduce", "data @ 0 += reduce data @ *")]);
    body("data @ 0 = data @ self", &[("self_outside", "self")]);
    body("signal @ 0 += signal @ 1", &[("signal_use", "signal")]);
    body("signal @ 0 = reduce signal @ *", &[("signal_use", "signal"), ("signal_use", "signal")]);
    body("signal[0] @ 0 = signal @ 1", &[("signal_use", "signal[0]")]);
    body("signal @ 0 = data @ 1", &[("signal_use", "data @ 1")]);
    body("data @ 0 = signal @ 1", &[("signal_use", "data")]);
    let io = |moves: &str, errors: &[(&str, &str)]| {
        expect(&format!("algorithm x on ranks[n] implements alltoall {{ {moves} }}"), errors);
    };
    io("input[0] @ 0 = output[0] @ 1", &[("in_written", "input[0]")]);
    io("input[0] @ 0 += output[0] @ 1", &[("in_written", "input[0]")]);
    io("input[0] @ 0 = reduce output[0] @ *", &[("in_written", "input[0]")]);
}

#[test]
fn runs() {
    let run = |run: &str, errors: &[(&str, &str)]| {
        expect(&format!("algorithm x on ranks[n] implements alltoall {{ {run} }}"), errors);
    };
    run("run std::alltoall::direct on * with input = input, output = output", &[]);
    run("run std::alltoall::direct on * with input = input", &[("unbound_buffer", "std::alltoall::direct")]);
    run(
        "run std::alltoall::direct on * with input = input, output = output, output = output",
        &[("bound_twice", "output = output")],
    );
    run("run std::alltoall::direct on * with input = input, outptu = output", &[("unknown_name", "outptu")]);
    run(
        "run std::alltoall::direct on * with input = output, output = input",
        &[("in_written", "output = input")],
    );
    run("run std::alltoall::direct on * with input = signal, output = output", &[("signal_use", "signal")]);
    run(
        "run std::alltoall::direct on * with input = input, output = output[0][0..1][0]",
        &[("index_count", "output[0][0..1][0]")],
    );
    run("run std::alltoall::two_level on * with input = input, output = output", &[("level_count", "*")]);
    run(
        "run std::alltoall::direct on [true] with input = input, output = output",
        &[("wrong_type", "[true]")],
    );
    expect(
        "collective c on ranks[a, b] { inout d ensures for r in 0..a: d @ (r, 0) == d @ (r, 0) }
        algorithm x on ranks[n] implements c { }",
        &[("level_count", "ranks[n]")],
    );
}

#[test]
fn collectives() {
    let c = |body: &str, errors: &[(&str, &str)]| {
        expect(&format!("collective c(root: rank) on ranks[n] {{ {body} }}"), errors);
    };
    c("in a out b[n] @ root inplace a = b[self] ensures for r in 0..n: b[r] @ root == a @ r", &[]);
    c("inout a", &[("promises_nothing", "c")]);
    c("in a out b ensures a @ 0 == a @ 1", &[("ensures_side", "a")]);
    c("in a out b ensures b @ 0 == b @ 1", &[("ensures_side", "b")]);
    c("in a out b ensures b @ 0 == reduce(b @ 1, a @ 1)", &[("ensures_side", "b")]);
    c("in a inout b inplace a = b ensures b @ 0 == a @ 1", &[("inplace_modes", "inplace a = b")]);
    c("in a out b inplace b = a ensures b @ 0 == a @ 1", &[]);
    c("in a out b ensures b[0] @ 0 == a @ 1", &[("index_count", "b[0]")]);
    c("in a out b ensures b @ 0 == signal @ 1", &[("signal_use", "signal")]);
    c("in a out b ensures b @ self == a @ 1", &[("self_outside", "self")]);
    c("in a out b ensures b @ * == reduce a @ *", &[]);
    c("in a in a out b ensures b @ 0 == a @ 0", &[("shadowed_name", "a")]);
    c("in root ensures synchronised", &[("shadowed_name", "root")]);
}

#[test]
fn all_errors_are_reported() {
    body(
        "chunks true let a = m let b = m + k data @ q = dta @ 0 run nowhere on * with x = data",
        &[
            ("wrong_type", "true"),
            ("unknown_name", "m"),
            ("unknown_name", "m"),
            ("unknown_name", "k"),
            ("unknown_name", "q"),
            ("unknown_name", "dta"),
            ("unknown_name", "nowhere"),
        ],
    );
}
