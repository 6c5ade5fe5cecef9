//! Random token soup, and right programs with something changed: never a panic, always a tree or an error that is well
//! formed, and what is a tree is printed stably.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use rcc_grammar::error::code;
use rcc_grammar::span::FileId;
use rcc_grammar::{ParseLimits, eq_modulo_spans, parse, parse_bytes, print::print};

const PROGRAMS: &[&str] = &[
    include_str!("../../stdlib/collectives.coll"),
    "/// Ring.
algorithm ring(k: int = 4, root: rank) on ranks[m, g] implements std::allreduce::x(root = root, 3) {
    chunks n
    scratch tmp[k] // comment
    let cable = [0, 3, 1, 2]
    let half = if n > 2 and not deep then n / 2 else sum(x in 0..n if x < 3) cable[x] * 2
    require is_power_of_two(n), \"why \\\"not\\\"\"
    inplace none

    for c in 0..n, hop in 1..n-1 step 2 rev if c != hop {
        data[c] @ (c + hop + 1) % n += data[c] @ (c + hop) % n
        data[0..k][1] @ (i, *) = reduce(s in 0..n) tmp[s] @ r // trailing
    }
    step for r in 0..n { data @ r ^ (1 << bit) += reduce data @ * }
    if a == b { step { x @ 0 = reduce(x @ 1, y @ 2) } } else if c { } else { }
    run ring(1, k = 2) on [order(x) for x in 0..k] with data = data[self], x = y
}
fn f(a, b) = a >> b & 1 == 1
// end
",
    "algorithm ring on ranks[n] implements y {
    'up: step for r in 0..n { 'one: data @ r = data @ 0 } // up
    'down: if n > 2 { x @ 0 = x @ 1 } else { run a on * }
}
/// How fast.
schedule for std::allreduce::ring {
    channels 4 pipeline 512 KiB // slices
    threads 512
    transport prefer nvlink, shared
    transport avoid tcp
    via switch wire bf16
    'up { channel r % 2 }
    when size < 64 KiB { protocol ll channels 1 'up { channel 0 } }
    // else
    when size >= 2097152 { protocol ll128 }
}
",
];

const WORDS: &[&str] = &[
    "collective",
    "algorithm",
    "fn",
    "schedule",
    "on",
    "implements",
    "chunks",
    "scratch",
    "let",
    "require",
    "inplace",
    "for",
    "in",
    "out",
    "inout",
    "ensures",
    "if",
    "then",
    "else",
    "step",
    "run",
    "with",
    "reduce",
    "sum",
    "and",
    "or",
    "not",
    "true",
    "false",
    "self",
    "ranks",
    "rev",
    "none",
    "synchronised",
    "ragged",
    "int",
    "rank",
    "bool",
    "channels",
    "channel",
    "protocol",
    "pipeline",
    "threads",
    "transport",
    "prefer",
    "avoid",
    "via",
    "switch",
    "wire",
    "when",
    "size",
    "KiB",
    "4K",
    "x",
    "data",
    "0",
    "17",
    "99999999999999999999",
    "4x",
    "\"s\"",
    "\"s",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "@",
    "=",
    "+=",
    ",",
    ":",
    "::",
    "..",
    "*",
    "/",
    "%",
    "+",
    "-",
    "<<",
    ">>",
    "&",
    "^",
    "|",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "'label",
    "1.5",
    ";",
    "&&",
    "||",
    "!",
    "...",
    "..=",
    ".",
    "->",
    "-=",
    ":=",
    "**",
    "/*",
    "$",
    "é",
    "\u{0}",
    "// c\n",
    "/// d\n",
    "\n",
    "\nfn",
    "\nschedule for y {",
    "\nalgorithm x on ranks[n] implements y {",
    "\ncollective y on ranks[n] {",
];

fn check(text: &str) {
    let parsed = parse(FileId(0), text, &ParseLimits::default());
    let mut last = 0;
    for error in &parsed.errors {
        let slice = text.get(error.span.range());
        assert!(slice.is_some(), "a span that cuts a character: {error:?}\n{text}");
        assert!(code::ALL.contains(&error.code), "{}", error.code);
        assert!(error.label.chars().count() < 50, "{}", error.label);
        assert!(error.help.as_ref().is_some_and(|help| help.contains('`')), "{error:?}\n{text}");
        assert!(!error.title.contains('\n') && !error.title.contains('\u{0}'), "{error:?}");
        assert!(!error.title.starts_with(char::is_uppercase) && !error.title.ends_with('.'), "{error:?}");
        if let Some((span, label)) = &error.related {
            assert!(text.get(span.range()).is_some() && label.chars().count() < 50, "{error:?}");
        }
        // One error an item, in the order of the items.
        assert!(error.span.end as usize >= last, "{:?}\n{text}", parsed.errors);
        last = error.span.start as usize;
    }
    let printed = print(&parsed.file);
    if !parsed.errors.is_empty() {
        // What is left of such a file is not for `rcc fmt`.
        return;
    }
    let again = parse(FileId(0), &printed, &ParseLimits::default());
    assert!(again.errors.is_empty(), "{:?}\n{printed}\nfrom\n{text}", again.errors);
    assert!(eq_modulo_spans(&parsed.file, &again.file), "{printed}\nfrom\n{text}");
    assert_eq!(print(&again.file), printed, "printed twice; from\n{text}");
    assert_eq!(parsed.file.comments.len(), again.file.comments.len(), "{printed}\nfrom\n{text}");
}

/// One change to a text cut into pieces.
fn change<'a>(pieces: &mut Vec<&'a str>, kind: u8, at: &Index, other: &Index, word: &'a str) {
    if pieces.is_empty() {
        return;
    }
    let (at, other) = (at.index(pieces.len()), other.index(pieces.len()));
    match kind {
        0 => drop(pieces.remove(at)),
        1 => pieces.insert(at, word),
        2 => pieces[at] = word,
        3 => pieces.insert(at, pieces[other]),
        4 => pieces.swap(at, other),
        _ => pieces.truncate(at),
    }
}

/// Words, blanks and signs.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let class = |c: char| {
        if c.is_alphanumeric() || c == '_' {
            1
        } else if c == ' ' {
            2
        } else {
            0
        }
    };
    let mut last = 0;
    for (at, c) in text.char_indices() {
        if at > 0 && (class(c) != last || class(c) == 0) {
            pieces.push(&text[start..at]);
            start = at;
        }
        last = class(c);
    }
    pieces.push(&text[start..]);
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn soup(words in vec((select(WORDS), select(&["", " ", "\n"][..])), 0..60)) {
        check(&words.iter().flat_map(|(word, blank)| [*word, *blank]).collect::<String>());
    }

    #[test]
    fn soup_in_a_body(words in vec(select(WORDS), 0..12), cut in any::<bool>()) {
        let words = words.join(" ");
        check(&format!("algorithm x on ranks[n] implements y {{ chunks n {words}{}", if cut { "" } else { " }" }));
        check(&format!("collective x on ranks[n] {{ inout data {words}{}", if cut { "" } else { " }" }));
        check(&format!("fn f() = {words}"));
    }

    #[test]
    fn changed_words(
        program in select(PROGRAMS),
        changes in vec((0u8..6, any::<Index>(), any::<Index>(), select(WORDS)), 1..4),
    ) {
        let mut pieces = pieces(program);
        for (kind, at, other, word) in &changes {
            change(&mut pieces, *kind, at, other, word);
        }
        check(&pieces.concat());
    }

    #[test]
    fn changed_bytes(program in select(PROGRAMS), changes in vec((0u8..3, any::<Index>(), any::<u8>()), 1..4)) {
        let mut bytes = program.as_bytes().to_vec();
        for (kind, at, byte) in &changes {
            let at = at.index(bytes.len());
            match kind {
                0 => drop(bytes.remove(at)),
                1 => bytes.insert(at, *byte),
                _ => bytes[at] = *byte,
            }
        }
        match std::str::from_utf8(&bytes) {
            Ok(text) => check(text),
            Err(_) => {
                let parsed = parse_bytes(FileId(0), &bytes, &ParseLimits::default());
                prop_assert_eq!(parsed.errors[0].code, code::NOT_UTF8);
            }
        }
    }

    #[test]
    fn any_text(text in any::<String>()) {
        check(&text);
    }

    /// Comments put anywhere are neither lost nor doubled (one that begins `///` may lose slashes to be no doc).
    #[test]
    fn comments_anywhere(program in select(PROGRAMS), places in vec(any::<Index>(), 1..6)) {
        let mut pieces = pieces(program);
        for (number, at) in places.iter().enumerate() {
            let comment = ["// c0\n", "// c1\n", "\n// c2\n", "\n\n// c3\n\n", "// c4\n", "// c5\n"][number];
            pieces.insert(at.index(pieces.len()), comment);
        }
        let text = pieces.concat();
        check(&text);
        let parsed = parse(FileId(0), &text, &ParseLimits::default());
        if parsed.errors.is_empty() {
            let again = parse(FileId(0), &print(&parsed.file), &ParseLimits::default());
            let texts = |file: &rcc_grammar::ast::File| {
                let mut texts: Vec<_> = file.comments.iter().map(|comment| comment.text.trim_start_matches('/').to_owned()).collect();
                texts.sort();
                texts
            };
            prop_assert_eq!(texts(&parsed.file), texts(&again.file));
        }
    }
}
