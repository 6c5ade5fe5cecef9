//! Every kind of error of `elaborate`, with the text that it points at and the variables as they stood.

use rcc_compiler::diagnostics;
use rcc_compiler::limits::Limits;

use crate::faults::sound;
use crate::support::{ANY, check, elaborate, elaborate_checked, shown};

/// The error of elaborating `x`: its code, the text at fault, the variables.
fn fault(text: &str, shape: &[u32], params: &[(&str, i64)]) -> (String, String, String) {
    let checked = check(text);
    assert_eq!(shown(&checked), [], "{text}");
    let Err(error) = elaborate_checked(&checked, shape, params, &Limits::default()) else {
        panic!("nothing is wrong with {text}")
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
    // What no memory can be: the later declaration is at fault.
    let clash = |inplace: &str, at: &str| {
        let body = format!("in a[2] in c[2] out b[2] out d[2] {inplace} ensures b[0] @ 0 == a[0] @ 0");
        expect(&body, "inplace_clash", at, "");
    };
    clash("inplace a = b inplace c[0] = d[0] inplace a = d", "inplace a = d");
    clash("inplace a = b inplace c[0] = b[1]", "inplace c[0] = b[1]");
    clash("inplace a = b inplace a[1] = b[1]", "inplace a[1] = b[1]");
    clash("inplace a[0] = b[1] inplace a[1] = b[0]", "inplace a[1] = b[0]");
    clash("inplace a[self] = b[self] inplace a[0] = d[1]", "inplace a[0] = d[1]");
    // Side by side they may lie.
    let apart = "inplace a[0] = b[1] inplace b[0] = c[0] inplace a[1] = d[0]";
    let body = format!("in a[2] in c[2] out b[2] out d[2] {apart} ensures b[0] @ 0 == a[0] @ 0");
    let text = format!("collective c on ranks[n] {{ {body} }} algorithm x on ranks[n] implements c {{ }}");
    assert_eq!(elaborate(&text, &[2], &[]).expect("it is right").trace.inplace.len(), 6);
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
