//! Wrong inputs: the code, the text at fault, and a help that shows an example.

use rcc_grammar::error::{SyntaxError, code};
use rcc_grammar::span::FileId;
use rcc_grammar::{ParseLimits, Parsed, parse, parse_bytes};

fn read(text: &str) -> Parsed {
    parse(FileId(0), text, &ParseLimits::default())
}

/// What is said of a program with one thing wrong.
fn only_error(text: &str) -> SyntaxError {
    let mut errors = read(text).errors;
    assert_eq!(errors.len(), 1, "{errors:#?}\n{text}");
    errors.remove(0)
}

/// Wrong text, code, text at fault, part of the title or label, part of the help.
type Case = (&'static str, &'static str, &'static str, &'static str, &'static str);

fn check(cases: &[Case], wrap: impl Fn(&str) -> String) {
    let mut faults = Vec::new();
    for &(wrong, code, at, said, help) in cases {
        let text = wrap(wrong);
        let errors = read(&text).errors;
        let [error] = &errors[..] else {
            faults.push(format!("{wrong}\n   {} errors: {errors:#?}", errors.len()));
            continue;
        };
        let found = &text[error.span.range()];
        let shown = error.help.clone().unwrap_or_default();
        let words = format!("{} / {}", error.title, error.label);
        let problem = if error.code != code {
            "code"
        } else if found != at {
            "span"
        } else if !words.contains(said) {
            "words"
        } else if !shown.contains(help) || !shown.contains('`') {
            "help"
        } else if error.label.chars().count() >= 50 || error.title.starts_with(char::is_uppercase) {
            "style"
        } else {
            continue;
        };
        faults.push(format!("{wrong}\n   {problem}: {} at {found:?}: {words}\n   help: {shown}", error.code));
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

const STATEMENTS: &[Case] = &[
    // Places and moves.
    ("data[c] = data[c] @ p", code::MISSING_RANK, "data[c]", "rank", "data[c] @ r"),
    (
        "data[c] @ q = data[f(c, 1)][2]",
        code::MISSING_RANK,
        "data[f(c, 1)][2]",
        "rank",
        "data[f(c, 1)][2] @ r",
    ),
    ("data @ q = data\n chunks 3", code::MISSING_RANK, "data", "rank", "data @ r"),
    ("data @ q = reduce(data @ q, tmp)", code::MISSING_RANK, "tmp", "rank", "tmp @ r"),
    ("data @ q == data @ p", code::SYNTAX, "==", "compares", "data @ q = data @ p"),
    ("data @ q + = data @ p", code::SYNTAX, "=", "apart", "+="),
    ("data @ q -= data @ p", code::SYNTAX, "-=", "not a move", "+="),
    ("data @ q := data @ p", code::SYNTAX, ":=", "`=`", "data @ q = data @ p"),
    ("data @ q -> data @ p", code::SYNTAX, "->", "arrows", "data @ q = data @ p"),
    ("data @ q = data @ p + tmp @ q", code::SYNTAX, "@", "two sources", "reduce("),
    ("data @ q = 0", code::SYNTAX, "0", "not numbers", "let"),
    ("data @ q = sum(s in 0..n) data @ s", code::SYNTAX, "sum", "reduce", "reduce(s in 0..n)"),
    ("data @ q = ", code::SYNTAX, "}", "source", "data[c] @ r"),
    ("data @ q", code::SYNTAX, "}", "`=` or `+=`", "data[c] @"),
    ("data @ = data @ p", code::SYNTAX, "=", "rank", "@ *"),
    ("data @ 0..n = data @ p", code::SYNTAX, "..", "range", "for r in 0..k"),
    ("data @ (i, j) + 1 = data @ p", code::SYNTAX, "+", "operators", "(i, (j + 1) % g)"),
    ("data[i, j] @ q = data @ p", code::SYNTAX, ",", "two indices", "[b][c]"),
    ("data[0:2] @ q = data @ p", code::SYNTAX, ":", "..", "data[0..k]"),
    ("data[] @ q = data @ p", code::SYNTAX, "]", "index", "data[c] @ r"),
    ("data @ q = data @ p;", code::SYNTAX, ";", "separates", "chunks n"),
    ("data @ q = data @ p, data @ r = data @ p", code::SYNTAX, ",", "separates", "`"),
    ("out[c] @ r = in[c] @ r", code::RESERVED_WORD, "out", "not a name", "`output`"),
    ("data @ r = in[c] @ r", code::RESERVED_WORD, "in", "not a name", "`input`"),
    // Loops.
    ("for r 0..n { }", code::SYNTAX, "0", "`in`", "for r in 0..n"),
    ("for in 0..n { }", code::SYNTAX, "in", "variable", "for c in 0..n"),
    ("for (c, h) in 0..n { }", code::SYNTAX, "(", "parentheses", "for c in 0..n, hop in 1..n"),
    ("for step in 0..n { }", code::RESERVED_WORD, "step", "not a name", "step_"),
    ("for r in n { }", code::SYNTAX, "{", "no end", "for r in 0..n"),
    ("for r in range(0, n) { }", code::SYNTAX, "{", "no end", "for r in 0..n"),
    ("for r in 0.. { }", code::SYNTAX, "{", "no end", "for r in 0..n"),
    ("for r in [1, 2] { }", code::SYNTAX, "[", "range", "cable[k]"),
    ("for r in 0..=n { }", code::SYNTAX, "..=", "end", "0..n+1"),
    ("for r in 0...n { }", code::CHAINED_RANGE, "...", "two dots", "0..n"),
    ("for r in 1..2..3 { }", code::CHAINED_RANGE, "..", "second", "step 2"),
    ("for r in 0..n by 2 { }", code::SYNTAX, "by", "step", "step 2"),
    ("for r in 0..n data @ r = data @ 0", code::SYNTAX, "data", "braces", "for r in 0..n {"),
    ("for r in 0..n, { }", code::SYNTAX, "{", "", "for r in 0..n"),
    ("while r < n { }", code::SYNTAX, "while", "for", "for r in 0..n"),
    // Conditions.
    ("if a < b < c { }", code::CHAINED_COMPARISON, "<", "second", "a < b and b < c"),
    ("let x = 0 <= r == true", code::CHAINED_COMPARISON, "==", "second", "and"),
    ("if a = b { }", code::SYNTAX, "=", "==", "if r == root"),
    ("if a && b { }", code::SYNTAX, "&&", "and", "and"),
    ("if a || b { }", code::SYNTAX, "||", "or", "or"),
    ("if !a { }", code::SYNTAX, "!", "not", "if not"),
    ("if a then chunks 2", code::SYNTAX, "then", "value", "{ … } else"),
    ("if a chunks 2", code::SYNTAX, "chunks", "braces", "if r < half {"),
    ("else { }", code::SYNTAX, "else", "without its `if`", "if r < half"),
    ("elif a { }", code::SYNTAX, "elif", "else if", "else"),
    // Definitions.
    ("let x 3", code::SYNTAX, "3", "`=`", "let half = n / 2"),
    ("let x: int = 3", code::SYNTAX, ":", "type", "let half"),
    ("let x == 3", code::SYNTAX, "==", "compares", "let half = "),
    ("let in = 3", code::RESERVED_WORD, "in", "not a name", "input"),
    ("let x = if a { 1 } else { 2 }", code::SYNTAX, "{", "then", "then 2 else 1"),
    ("let x = if a then 1\nchunks 2", code::SYNTAX, "chunks", "else", "then 2 else 1"),
    ("let x = data @ r", code::SYNTAX, "@", "number", "scratch tmp"),
    ("let x = 1 +\nchunks 2", code::SYNTAX, "chunks", "operand", "let half"),
    ("let x = 1.5", code::SYNTAX, "1.5", "whole", "n / 2"),
    ("let x = 4n", code::SYNTAX, "4n", "malformed", "4 * n"),
    ("let x = 0x10", code::SYNTAX, "0x10", "decimal", "1 << 4"),
    (
        "let x = 9223372036854775808",
        code::INTEGER_TOO_LARGE,
        "9223372036854775808",
        "64 bits",
        "9223372036854775807",
    ),
    ("let x = 2 ** k", code::SYNTAX, "**", "power", "1 << k"),
    ("x = 3", code::SYNTAX, "x", "let", "let x = 3"),
    ("chunk n", code::SYNTAX, "chunk", "`chunks`", "chunks n"),
    ("chunks", code::SYNTAX, "}", "expression", "chunks n"),
    ("scratch tmp[", code::UNCLOSED_DELIMITER, "[", "]", "data[c]"),
    ("scratch in", code::RESERVED_WORD, "in", "not a name", "input"),
    ("require n > 2", code::SYNTAX, "}", "why", "\"ranks"),
    ("require n > 2, why", code::SYNTAX, "why", "string", "\"ranks"),
    ("require n > 2, \"why", code::UNTERMINATED_STRING, "\"why", "line", "\"ranks"),
    ("require n > 2, \"a\\q\"", code::SYNTAX, "\\q", "escape", "\\n"),
    ("inplace data = data", code::SYNTAX, "data", "none", "inplace none"),
    // Steps and runs.
    ("step data @ 0 = data @ 1", code::SYNTAX, "data", "braces", "step for"),
    ("run ring with data = data", code::SYNTAX, "with", "which ranks", "on *"),
    ("run ring on i with data = data", code::SYNTAX, "with", "set of ranks", "on (i, *)"),
    ("run ring on with data = data", code::SYNTAX, "with", "set of ranks", "on *"),
    ("run ring on * with data", code::SYNTAX, "}", "bound", "with input = data"),
    ("run ring on * with data = data @ r", code::SYNTAX, "@", "rank", "data[self]"),
    ("run ring on * with a = b c = d", code::SYNTAX, "c", "comma", "input = data, output"),
    ("ring(data)", code::SYNTAX, "ring", "", "run ring on *"),
    ("send(data, 3)", code::SYNTAX, "send", "`=`", "data[c] @ q = data[c] @ p"),
    ("ensures data @ r == data @ s", code::SYNTAX, "ensures", "collective", "scratch"),
    ("in input[n]", code::SYNTAX, "in", "collective", "scratch tmp[n]"),
    // Labels.
    ("'gather for r in 0..n { }", code::SYNTAX, "for", "`:`", "'gather: for"),
    ("'a: 'b: for r in 0..n { }", code::SYNTAX, "'b", "two labels", "'gather: for"),
    ("'a: let x = 3", code::SYNTAX, "let", "no label", "'gather: for"),
    ("for r in 0..n 'a { }", code::SYNTAX, "'a", "middle", "'gather: for"),
    ("'a: data = data @ p", code::MISSING_RANK, "data", "rank", "data @ r"),
    ("channels 4", code::SYNTAX, "channels", "schedule", "schedule for ring"),
    // Characters.
    ("data @ q = data @ p # copy", code::UNEXPECTED_CHARACTER, "#", "unexpected", "//"),
    ("data @ q = data @ p − 1", code::UNEXPECTED_CHARACTER, "−", "unexpected", "0..n-1"),
    ("data @ δ = data @ p", code::UNEXPECTED_CHARACTER, "δ", "unexpected", "a to z"),
    ("data @ q = data @ p /* c */", code::SYNTAX, "/*", "comments", "//"),
    ("§§§ data @ q = $$", code::UNEXPECTED_CHARACTER, "§§§", "unexpected", ""),
    // Brackets.
    ("data[c @ q = data[c] @ p", code::UNCLOSED_DELIMITER, "[", "`]`", "data[c] @ r"),
    ("data[(c + 1] @ q = data[c] @ p", code::UNCLOSED_DELIMITER, "(", "`)`", "(r + 1)"),
    ("data[c]] @ q = data[c] @ p", code::UNOPENED_DELIMITER, "]", "closes nothing", "data[c]"),
    ("data @ q = data @ p)", code::UNOPENED_DELIMITER, ")", "closes nothing", "(r + 1)"),
    ("fn half(x) = x / 2", code::SYNTAX, "fn", "inside", "fn half"),
];

#[test]
fn statements() {
    check(STATEMENTS, |wrong| {
        format!("algorithm x on ranks[n] implements y {{\n    chunks n\n    {wrong}\n}}\n")
    });
}

#[test]
fn statements_at_the_beginning_of_a_body() {
    check(STATEMENTS, |wrong| format!("algorithm x on ranks[n] implements y {{ {wrong}\n}}"));
}

#[test]
fn statements_before_others() {
    // Where the end of the body is what is found, there is something else now.
    let cases: Vec<Case> = STATEMENTS.iter().copied().filter(|case| case.2 != "}" && case.2 != "[").collect();
    check(&cases, |wrong| {
        format!(
            "algorithm x on ranks[n] implements y {{\n    a @ 0 = b @ *\n    {wrong}\n    for r in 0..n {{ }}\n}}\nfn a() = 1"
        )
    });
}

#[test]
fn clauses_of_collectives() {
    const CASES: &[Case] = &[
        ("ensures data @ r = data @ s", code::SYNTAX, "=", "`==`", "=="),
        ("ensures for r in 0..n data @ r == data @ s", code::SYNTAX, "data", "`:`", "0..n:"),
        ("ensures data == data @ s", code::MISSING_RANK, "data", "rank", "data @ r"),
        ("ensures data @ r", code::SYNTAX, "}", "`==`", "=="),
        ("ensures for r in n: data @ r == data @ s", code::SYNTAX, ":", "no end", "0..n"),
        ("ensure data @ r == data @ s", code::SYNTAX, "ensure", "ensures", "`ensures"),
        ("inplace input @ r = output", code::SYNTAX, "@", "rank", "output[self]"),
        ("in input[n] ragged", code::RAGGED_UNSUPPORTED, "ragged", "not supported", "in input[n]"),
        ("in for[n]", code::RESERVED_WORD, "for", "not a name", "for_"),
        ("chunks n", code::SYNTAX, "chunks", "no statements", "ensures"),
        ("data @ r = data @ s", code::SYNTAX, "data", "no statements", "ensures"),
        ("inout data;", code::SYNTAX, ";", "separates", "`"),
        ("inout data, in x", code::SYNTAX, ",", "", "in input"),
    ];
    check(CASES, |wrong| format!("collective y on ranks[n] {{\n    inout data\n    {wrong}\n}}\nfn a() = 1"));
}

#[test]
fn clauses_of_schedules() {
    const CASES: &[Case] = &[
        ("channels", code::SYNTAX, "}", "number", "channels 4"),
        ("channels n", code::SYNTAX, "n", "number", "channels 4"),
        ("channels 2 * 2", code::SYNTAX, "*", "computed", "channels 4"),
        ("channels = 4", code::SYNTAX, "=", "number", "channels 4"),
        ("channel 4", code::SYNTAX, "channel", "channels", "channels 4"),
        ("chanels 4", code::SYNTAX, "chanels", "channels", "channels 4"),
        ("channels 4, threads 3", code::SYNTAX, ",", "separates", "channels 4"),
        ("threads 1.5", code::SYNTAX, "1.5", "whole", "`"),
        ("pipeline KiB", code::SYNTAX, "KiB", "number", "pipeline 512 KiB"),
        ("pipeline 512KiB", code::SYNTAX, "512KiB", "malformed", "512 KiB"),
        ("protocol", code::SYNTAX, "}", "missing", "ll128"),
        ("protocol 3", code::SYNTAX, "3", "missing", "ll128"),
        ("transport nvlink", code::SYNTAX, "nvlink", "`prefer`", "transport avoid"),
        ("transport prefer", code::SYNTAX, "}", "missing", "nvlink, shared"),
        ("transport prefer nvlink,", code::SYNTAX, "}", "missing", "nvlink, shared"),
        ("via nvlink", code::SYNTAX, "nvlink", "`switch`", "via switch"),
        ("wire", code::SYNTAX, "}", "missing", "bf16"),
        ("when < 4 { }", code::SYNTAX, "<", "`size`", "when size"),
        ("when size 4 { }", code::SYNTAX, "4", "comparison", "when size"),
        ("when size = 4 { }", code::SYNTAX, "=", "comparison", "when size"),
        ("when size < { }", code::SYNTAX, "{", "missing", "when size"),
        ("when size < 4 KiB protocol ll", code::SYNTAX, "protocol", "braces", "when size"),
        ("when 4 < size { }", code::SYNTAX, "4", "`size`", "when size"),
        ("when size < 4 and size > 2 { }", code::SYNTAX, "and", "one comparison", "when size"),
        ("when size < 4 < 5 { }", code::SYNTAX, "<", "one comparison", "when size"),
        ("if size < 4 { }", code::SYNTAX, "if", "`when`", "when size"),
        ("'gather: for r in 0..n { }", code::SYNTAX, ":", "puts labels on", "'gather {"),
        ("'gather channel 3", code::SYNTAX, "channel", "braces", "'gather {"),
        ("'gather { channel }", code::SYNTAX, "}", "missing", "'gather {"),
        ("'gather { channels 3 }", code::SYNTAX, "channels", "`channel`", "'gather {"),
        ("'gather { protocol ll }", code::SYNTAX, "protocol", "a label", "'gather {"),
        ("channel { 4 }", code::SYNTAX, "channel", "mean `channels`", "channels 4"),
        ("chanels { 4 }", code::SYNTAX, "chanels", "mean `channels`", "channels 4"),
        ("slices { 4 }", code::SYNTAX, "slices", "mean `pipeline`", "channels 4"),
        ("wires { channel 4 }", code::SYNTAX, "wires", "must stand before it", "`'wires {"),
        ("chanels { channel 4 }", code::SYNTAX, "chanels", "must stand before it", "`'chanels {"),
        ("gather { 4 }", code::SYNTAX, "gather", "must stand before it", "`'gather {"),
        ("'gather { channel 3 +", code::UNCLOSED_DELIMITER, "{", "never closed", "`"),
        ("data @ 0 = data @ 1", code::SYNTAX, "data", "algorithms", "channels 4"),
        ("run ring on *", code::SYNTAX, "run", "not a clause", "channels 4"),
        ("17", code::SYNTAX, "17", "unexpected", "channels 4"),
    ];
    let cases: Vec<Case> =
        CASES.iter().copied().filter(|case| case.2 != "{" || case.1 == code::SYNTAX).collect();
    check(&cases, |wrong| format!("schedule for x {{\n    threads 3\n    {wrong}\n}}\nfn a() = 1"));
    check(CASES, |wrong| format!("fn a() = 1\nschedule for std::allreduce::x {{ {wrong} }}"));
}

#[test]
fn declarations() {
    const CASES: &[Case] = &[
        ("algorithm on ranks[n] implements y { }", code::RESERVED_WORD, "on", "not a name", "on_"),
        ("algorithm 3 on ranks[n] implements y { }", code::SYNTAX, "3", "no name", "algorithm ring"),
        ("algorithm x ranks[n] implements y { }", code::SYNTAX, "ranks", "world", "on ranks[n]"),
        ("algorithm x implements y { }", code::SYNTAX, "implements", "world", "on ranks[n]"),
        ("algorithm x on n implements y { }", code::SYNTAX, "n", "world", "on ranks[n]"),
        ("algorithm x on ranks(n) implements y { }", code::SYNTAX, "(", "sizes", "ranks[n]"),
        ("algorithm x on ranks[8] implements y { }", code::SYNTAX, "8", "name", "require n == 8"),
        ("algorithm x on ranks[m; g] implements y { }", code::SYNTAX, ";", "`,`", "ranks[m, g]"),
        ("algorithm x on ranks[n] { }", code::SYNTAX, "{", "implements", "implements allreduce"),
        ("algorithm x(k) on ranks[n] implements y { }", code::SYNTAX, ")", "no type", "k: int"),
        ("algorithm x(k: i32) on ranks[n] implements y { }", code::SYNTAX, "i32", "not a type", "`rank`"),
        (
            "algorithm x(for: int) on ranks[n] implements y { }",
            code::RESERVED_WORD,
            "for",
            "not a name",
            "for_",
        ),
        ("algorithm x on ranks[n] implements y", code::SYNTAX, "y", "body", "algorithm ring"),
        ("algorithm x on ranks[n] implements y chunks n", code::SYNTAX, "chunks", "body", "{"),
        (
            "collective y on ranks[n] implements x { }",
            code::SYNTAX,
            "implements",
            "nothing",
            "algorithm ring",
        ),
        ("collective y { }", code::SYNTAX, "{", "world", "on ranks[n]"),
        ("fn f(x) { x }", code::SYNTAX, "{", "`=`", "fn partner"),
        ("fn f(x: int) = x", code::SYNTAX, ":", "types", "fn partner"),
        ("fn f = 3", code::SYNTAX, "=", "parameters", "fn partner(r, bit)"),
        ("fn (x) = 3", code::SYNTAX, "(", "no name", "fn partner"),
        ("fn f(x) = ", code::SYNTAX, "=", "too early", "`"),
        ("fn f(x) = x x", code::SYNTAX, "x", "after a function", "fn partner"),
        ("fn f(x) = data @ x", code::SYNTAX, "@", "places", "fn partner"),
        (
            "algoritm x on ranks[n] implements y { }",
            code::SYNTAX,
            "algoritm",
            "`algorithm`",
            "algorithm ring",
        ),
        ("def f(x) = x", code::SYNTAX, "def", "`fn`", "fn half"),
        ("import std", code::SYNTAX, "import", "imported", "std::allreduce::ring"),
        ("for r in 0..n { data @ r = data @ 0 }", code::SYNTAX, "for", "outside", "algorithm"),
        ("schedule x { channels 4 }", code::SYNTAX, "x", "which algorithm", "schedule for ring"),
        ("schedule for { channels 4 }", code::SYNTAX, "{", "which algorithm", "schedule for ring"),
        ("schedule for x(4) { channels 4 }", code::SYNTAX, "(", "parameters", "schedule for ring"),
        ("schedule for x channels 4", code::SYNTAX, "channels", "clauses are missing", "schedule for ring"),
        ("shedule for x { channels 4 }", code::SYNTAX, "shedule", "`schedule`", "schedule for ring"),
        ("'gather { channel 3 }", code::SYNTAX, "'gather", "outside", "'gather:"),
        ("}", code::UNOPENED_DELIMITER, "}", "closes nothing", "`}`"),
        ("\u{0}\u{0}", code::UNEXPECTED_CHARACTER, "\u{0}\u{0}", "U+0000", ""),
        ("// comment\n@@ 3", code::SYNTAX, "@", "unexpected", "algorithm ring"),
    ];
    // Help for characters need not show code.
    check(&CASES[..CASES.len() - 2], str::to_owned);
    check(&CASES[..CASES.len() - 2], |wrong| format!("{wrong}\nalgorithm z on ranks[n] implements y {{ }}"));
    check(&CASES[..CASES.len() - 2], |wrong| format!("algorithm z on ranks[n] implements y {{ }}\n{wrong}"));
    for &(wrong, code, at, said, _) in &CASES[CASES.len() - 2..] {
        let error = only_error(wrong);
        assert_eq!((error.code, &wrong[error.span.range()]), (code, at));
        assert!(error.title.contains(said), "{error:?}");
    }
}

#[test]
fn each_item_has_its_own_error_and_hides_no_other() {
    let text = "algorithm a on ranks[n] implements y { chunk n  data = 3 }
fn f(x) = x
collective b on ranks[n] { inout }
fn g(x) = x +
algorithm c on ranks[n] implements y {
    for r in 0..n {
        data @ r = data @ 0
}
fn h(x) = x
schedule for c { channels }
algorithm d on ranks[n] implements y { data @ 0 = data @ 1 } }
stray words
fn i(x) = x";
    let parsed = read(text);
    let at: Vec<_> = parsed.errors.iter().map(|error| (error.code, &text[error.span.range()])).collect();
    assert_eq!(
        at,
        [
            (code::SYNTAX, "chunk"),
            (code::SYNTAX, "}"),
            (code::SYNTAX, "+"),
            (code::UNCLOSED_DELIMITER, "{"),
            (code::SYNTAX, "}"),
            (code::UNOPENED_DELIMITER, "}"),
        ]
    );
    // The brace of the loop, not of the algorithm.
    let brace = parsed.errors[3].span.start as usize;
    assert!(text[..brace].ends_with("for r in 0..n "));
    let names: Vec<_> = parsed
        .file
        .items
        .iter()
        .map(|item| text[item.span().range()].split(['(', ' ']).nth(1).unwrap())
        .collect();
    assert_eq!(names, ["f", "h", "d", "i"]);
}

#[test]
fn bytes_that_are_not_utf8() {
    let parsed = parse_bytes(FileId(3), b"fn f(x) = x // \xff\xfe", &ParseLimits::default());
    let [error] = &parsed.errors[..] else { panic!("{parsed:?}") };
    assert_eq!((error.code, error.span.start, error.span.file), (code::NOT_UTF8, 15, FileId(3)));
    assert!(error.title.contains("0xff") && error.title.contains("15"), "{}", error.title);
    // The end of the text in the middle of a character.
    let cut =
        parse_bytes(FileId(0), "fn f(x) = é".as_bytes().split_last().unwrap().1, &ParseLimits::default());
    assert_eq!(cut.errors[0].code, code::NOT_UTF8);
    let whole = parse_bytes(FileId(0), "\u{feff}fn f(x) = x // é".as_bytes(), &ParseLimits::default());
    assert!(whole.errors.is_empty() && whole.file.items.len() == 1);
}

#[test]
fn an_empty_file_has_no_items_and_no_errors() {
    for text in ["", "\n\n", "// only a comment", "/// doc of nothing", "\u{feff}"] {
        let parsed = read(text);
        assert!(parsed.file.items.is_empty() && parsed.errors.is_empty(), "{text:?}: {parsed:?}");
    }
}

#[test]
fn docs_belong_to_the_item_behind_them() {
    let parsed = read(
        "/// lost\n// comment\n/// one\n///  two\nfn f(x) = x /// behind\n/// inside? no\n//// ruler\nfn g(x) = x",
    );
    let docs: Vec<_> = parsed
        .file
        .items
        .iter()
        .map(|item| match item {
            rcc_grammar::ast::Item::Fn(function) => function.docs.clone(),
            _ => Vec::new(),
        })
        .collect();
    assert_eq!(docs, [vec!["one".to_owned(), " two".to_owned()], Vec::new()]);
    let comments: Vec<_> = parsed.file.comments.iter().map(|comment| comment.text.as_str()).collect();
    assert_eq!(comments, ["/ lost", " comment", "/ behind", "/ inside? no", "// ruler"]);
}

#[test]
fn errors_are_counted() {
    let text = "fn f(\n".repeat(1000);
    let parsed = parse(FileId(0), &text, &ParseLimits { errors: 10, ..ParseLimits::default() });
    assert_eq!(parsed.errors.len(), 11);
    assert_eq!(parsed.errors[10].code, code::TOO_MANY_ERRORS);
    assert!(parsed.errors[10].title.contains("10"));
}
