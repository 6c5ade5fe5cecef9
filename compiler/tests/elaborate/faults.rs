//! Every kind of error, with the text that it points at.

use rcc_compiler::diagnostics;
use rcc_compiler::limits::Limits;

use crate::support::{ANY, check, check_with, elaborate_checked, shown};

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
fn sound(diagnostic: &diagnostics::Diagnostic) {
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

/// The error of elaborating `x`: its code, the text at fault, the variables.
fn fault(text: &str, shape: &[u32], params: &[(&str, i64)]) -> (String, String, String) {
    let checked = check(text);
    assert_eq!(shown(&checked), [], "{text}");
    let error = match elaborate_checked(&checked, shape, params, &Limits::default()) {
        Ok(_) => panic!("nothing is wrong with {text}"),
        Err(error) => error,
    };
    let diagnostic = diagnostics::elaborate::error(&error, &checked.sources);
    assert_eq!(diagnostic.code, error.code());
    sound(&diagnostic);
    let vars = match &error {
        rcc_compiler::elaborate::Error::Fault(fault) => {
            fault.vars.iter().map(|var| format!("{}={}", var.name, var.value)).collect::<Vec<_>>().join(" ")
        }
        rcc_compiler::elaborate::Error::Excluded { why, .. } => why.clone(),
    };
    let code = error.code().trim_start_matches("coll::").to_owned();
    (code, checked.sources.snippet(error.span()).to_owned(), vars)
}

fn wrong(body: &str, shape: &[u32], code: &str, text: &str, vars: &str) {
    let levels = ["n", "m, g", "l, m, g"][shape.len() - 1];
    let found =
        fault(&format!("{ANY} algorithm x on ranks[{levels}] implements any {{ {body} }}"), shape, &[]);
    assert_eq!(found, (code.to_owned(), text.to_owned(), vars.to_owned()), "{body}");
}

#[test]
fn out_of_range() {
    wrong("for r in 0..n { data @ r + 1 = data @ r }", &[3], "rank_out_of_range", "r + 1", "r=2");
    wrong("for r in 0..n { let q = r - 1 data @ r = data @ q }", &[3], "rank_out_of_range", "q", "r=0 q=-1");
    wrong(
        "for i in 0..m, j in 0..g { data @ (i, j + 1) = data @ (i, j) }",
        &[2, 3],
        "rank_out_of_range",
        "j + 1",
        "i=0 j=2",
    );
    wrong(
        "chunks n for a in 0..2 { for c in n..0 rev { } for c in 0..n { data[c + a] @ 0 = data[c] @ 1 } }",
        &[3],
        "chunk_out_of_range",
        "c + a",
        "a=1 c=2",
    );
    wrong("data[-1] @ 0 = data[0] @ 0", &[1], "chunk_out_of_range", "-1", "");
    wrong("chunks 3 data[1..4] @ 0 = data[0..3] @ 0", &[1], "chunk_out_of_range", "4", "");
    wrong("scratch s[2] s[2] @ 0 = data @ 0", &[1], "block_out_of_range", "2", "");
    wrong("scratch s[2] s[1..3] @ 0 = s[0..2] @ 0", &[1], "block_out_of_range", "3", "");
    wrong("scratch s[2] s[0][1] @ 0 = data @ 0", &[1], "chunk_out_of_range", "1", "");
    wrong("let t = [1, 2] for i in 0..3 { let a = t[i] }", &[1], "index_out_of_range", "i", "i=2");
    wrong(
        "chunks 3 for i in 0..3 { data[2..i] @ 0 = data[2..i] @ 1 }",
        &[2],
        "backward_range",
        "2..i",
        "i=0",
    );
    wrong(
        "run x2 on 1..0 with data = data } algorithm x2 on ranks[n] implements any {",
        &[2],
        "backward_range",
        "1..0",
        "",
    );
    wrong(
        "run x2 on 0..3 with data = data } algorithm x2 on ranks[n] implements any {",
        &[2],
        "rank_out_of_range",
        "3",
        "",
    );
    wrong(
        "run x2 on [i + 1 for i in 0..n] with data = data } algorithm x2 on ranks[n] implements any {",
        &[2],
        "rank_out_of_range",
        "i + 1",
        "i=1",
    );
    wrong(
        "run x2(7) on * with data = data } algorithm x2(k: rank) on ranks[n] implements any {",
        &[2],
        "rank_out_of_range",
        "7",
        "",
    );
    wrong(
        "run x2 on * with data = data } algorithm x2(k: rank = 5) on ranks[n] implements any {",
        &[2],
        "rank_out_of_range",
        "5",
        "",
    );
}

#[test]
fn moves() {
    wrong("chunks 3 data[0..2] @ 0 = data @ 1", &[2], "unequal_runs", "data[0..2] @ 0", "");
    wrong("chunks 3 data[0..2] @ 0 = data[0..0] @ 1", &[2], "unequal_runs", "data[0..2] @ 0", "");
    wrong("chunks 3 data[0] @ 0 = reduce(data[1] @ 0, data @ 1)", &[2], "unequal_runs", "data[0] @ 0", "");
    wrong("for r in 0..n { data @ 1 = data @ r }", &[2], "self_move", "data @ 1 = data @ r", "r=1");
    wrong("data @ 0 += data @ 0", &[1], "self_move", "data @ 0 += data @ 0", "");
    wrong("signal @ 0 = signal @ 0", &[1], "self_move", "signal @ 0 = signal @ 0", "");
    wrong("chunks 3 data[0..2] @ 0 = data[1..3] @ 0", &[1], "overlap", "data[0..2] @ 0 = data[1..3] @ 0", "");
    wrong("chunks 3 data[0..2] @ * = data[1..3] @ 0", &[1], "overlap", "data[0..2] @ * = data[1..3] @ 0", "");
    wrong(
        "chunks 3 data[0..2] @ 0 = reduce(data[1..3] @ 0, data[0..2] @ 0)",
        &[1],
        "overlap",
        "data[0..2] @ 0 = reduce(data[1..3] @ 0, data[0..2] @ 0)",
        "",
    );
    wrong(
        "for r in 0..n { data @ 0 = reduce(s in 0..r) data @ s }",
        &[2],
        "empty_reduce",
        "data @ 0 = reduce(s in 0..r) data @ s",
        "r=0",
    );
    let at_root = "algorithm x on ranks[n] implements reduce(1) { for r in 0..n { output @ r = input @ r } }";
    assert_eq!(fault(at_root, &[2], &[]), ("absent_buffer".into(), "output".into(), "r=0".into()));
}

#[test]
fn arithmetic() {
    wrong("let a = 9223372036854775807 + n", &[1], "overflow", "9223372036854775807 + n", "");
    wrong("for i in 61..70 { let a = 1 << i }", &[1], "overflow", "1 << i", "i=63");
    wrong("let a = -(-9223372036854775807 - n)", &[1], "overflow", "-(-9223372036854775807 - n)", "");
    wrong("let a = abs(-9223372036854775807 - n)", &[1], "overflow", "abs(-9223372036854775807 - n)", "");
    wrong("let a = (-9223372036854775807 - n) / -1", &[1], "overflow", "(-9223372036854775807 - n) / -1", "");
    wrong("let a = sum(i in 0..3) (1 << 62)", &[1], "overflow", "sum(i in 0..3) (1 << 62)", "i=1");
    wrong("let a = 3 / (n - 1)", &[1], "division_by_zero", "3 / (n - 1)", "");
    wrong("let a = 3 % (n - 1)", &[1], "division_by_zero", "3 % (n - 1)", "");
    wrong("let a = 1 << 64", &[1], "shift_out_of_range", "64", "");
    wrong("let a = 1 >> -n", &[1], "shift_out_of_range", "-n", "");
    wrong("let a = log2(n - 1)", &[1], "no_logarithm", "n - 1", "");
    wrong("for i in 0..3 step n - 1 { }", &[1], "loop_step", "n - 1", "");
    wrong("chunks n - 1", &[1], "bad_count", "n - 1", "");
    wrong("scratch s[n - 2]", &[1], "bad_count", "n - 2", "");
}

#[test]
fn runs_for_a_shape() {
    let callee = "collective two on ranks[n] { in a out b[2] ensures for r in 0..0: b[0] @ r == a @ r }
         algorithm inner on ranks[n] implements two { for i in 0..2 { for r in 0..n { b[i] @ r = a @ (r + i + 1) % n } } }
         collective three on ranks[n] { inout a inout b ensures for r in 0..0: b @ r == a @ r }
         algorithm both on ranks[n] implements three { b @ 1 = a @ 0 }
         collective sums on ranks[n] { in a inout b ensures for r in 0..0: b @ r == a @ r }
         algorithm add on ranks[n] implements sums { chunks 2 for k in 0..2 { b[k] @ 0 += a[k] @ 0 } }
         algorithm shift on ranks[n] implements sums { b @ 0 = a @ 0 }";
    let of = |body: &str, shape: &[u32]| {
        fault(
            &format!(
                "{ANY} {callee} algorithm x on ranks[n] implements any {{ chunks 6 scratch s[2] {body} }}"
            ),
            shape,
            &[],
        )
    };
    let expect = |body: &str, code: &str, text: &str, vars: &str| {
        assert_eq!(of(body, &[2]), (code.into(), text.into(), vars.into()), "{body}");
    };
    expect(
        "for i in 0..1 { run inner on [1, 0, 1] with a = data, b = s }",
        "repeated_rank",
        "[1, 0, 1]",
        "i=0",
    );
    expect("run inner on * with a = data[0], b = data[1..6]", "unequal_bindings", "b = data[1..6]", "");
    expect("run both on * with a = data, b = data", "alias", "b = data", "");
    expect("run both on * with a = data[0..2], b = data[1..3]", "alias", "b = data[1..3]", "");
    expect(
        "run both on * with a = data[0..2], b = data[3 * self..2 + 3 * self]",
        "alias",
        "b = data[3 * self..2 + 3 * self]",
        "",
    );
    expect(
        "run both on * with a = data[0..2 + self], b = data[2..4]",
        "unequal_runs",
        "data[0..2 + self]",
        "",
    );
    // Rank 1 reads rank 0's a after b[0] of rank 0, which is the same chunk, was written.
    expect(
        "for j in 0..1 { run inner on * with a = data[0], b = data[0..2] }",
        "alias",
        "b[i] @ r = a @ (r + i + 1) % n",
        "i=0 r=1",
    );
    expect("run add on * with a = data[0..2], b = data[0..2]", "self_move", "b[k] @ 0 += a[k] @ 0", "k=0");
    expect("run shift on * with a = data[0..2], b = data[1..3]", "overlap", "b @ 0 = a @ 0", "");
    expect("run both on * with a = data[self * 6], b = s[0][0]", "chunk_out_of_range", "self * 6", "");
    let text = format!(
        "{ANY} algorithm y on ranks[n] implements any {{ require n == 3, \"three only\" }}
        algorithm x on ranks[n] implements any {{ run y on * with data = data }}"
    );
    assert_eq!(
        fault(&text, &[2], &[]),
        ("excluded".into(), "require n == 3, \"three only\"".into(), "three only".into())
    );
    let text = format!(
        "{ANY} algorithm y on ranks[n] implements any {{ for r in 0..n {{ data @ r + 1 = data @ r }} }}
        algorithm x on ranks[n] implements any {{ for j in 0..1 {{ run y on * with data = data }} }}"
    );
    assert_eq!(fault(&text, &[2], &[]), ("rank_out_of_range".into(), "r + 1".into(), "r=1".into()));
}

#[test]
fn promises() {
    let promise = |body: &str, shape: u32| {
        fault(
            &format!(
                "collective c(k: int = 1) on ranks[n] {{ {body} }} algorithm x on ranks[n] implements c {{ }}"
            ),
            &[shape],
            &[],
        )
    };
    let expect = |body: &str, code: &str, text: &str, vars: &str| {
        assert_eq!(promise(body, 2), (code.into(), text.into(), vars.into()), "{body}");
    };
    expect("in a out b ensures for r in 0..n: b @ r + 1 == a @ r", "rank_out_of_range", "r + 1", "r=1");
    expect(
        "in a[n] out b ensures for r in 0..n: b @ r == a[r + k] @ r",
        "block_out_of_range",
        "r + k",
        "r=1",
    );
    expect(
        "in a out b ensures for r in 0..n: b @ r == reduce(s in 0..n) a @ s / 2",
        "repeated_operand",
        "a @ s / 2",
        "r=0",
    );
    expect(
        "in a out b ensures for r in 0..n: b @ r == reduce(s in 0..r) a @ s",
        "empty_reduce",
        "reduce(s in 0..r) a @ s",
        "r=0",
    );
    expect("in a[3] out b[n] ensures b @ 0 == a @ 0", "unequal_runs", "b @ 0", "");
    expect("in a out b @ 1 ensures for r in 0..n: b @ r == a @ r", "absent_buffer", "b @ r", "r=0");
    expect("in a out b @ 2 ensures b @ 0 == a @ 0", "rank_out_of_range", "2", "");
    expect("in a[-k] out b ensures b @ 0 == a @ 0", "bad_count", "-k", "");
    expect(
        "in a out b[n] inplace a = b[self + 1] ensures b[0] @ 0 == a @ 0",
        "block_out_of_range",
        "self + 1",
        "",
    );
    expect("in a out b[n] inplace a = b ensures b[0] @ 0 == a @ 0", "unequal_runs", "b", "");
}

#[test]
fn requests() {
    let x =
        format!("{ANY} algorithm x(k: int, b: bool = true, root: rank = 0) on ranks[n] implements any {{ }}");
    let of = |shape: &[u32], params: &[(&str, i64)]| fault(&x, shape, params);
    assert_eq!(of(&[2, 2], &[("k", 1)]).0, "bad_shape");
    assert_eq!(of(&[0], &[("k", 1)]).0, "bad_shape");
    assert_eq!(of(&[], &[("k", 1)]).0, "bad_shape");
    assert_eq!(of(&[2], &[]), ("bad_parameter".into(), "k: int".into(), String::new()));
    assert_eq!(of(&[2], &[("kk", 1)]).0, "bad_parameter");
    assert_eq!(of(&[2], &[("k", 1), ("b", 2)]).0, "bad_parameter");
    assert_eq!(of(&[2], &[("k", 1), ("root", 2)]).0, "rank_out_of_range");
    assert_eq!(of(&[u32::MAX], &[("k", 1)]).0, "too_many_places");
}
