//! The look that the design gives, and inputs meant to break it.

use grammar::span::{FileId, Span};
use proptest::prelude::{any, prop, prop_assert, proptest};

use super::{Style, render};
use crate::diagnostics::Diagnostic;
use crate::source::Sources;

fn source(name: &str, text: &str) -> Sources {
    let mut sources = Sources::default();
    sources.add(name, text);
    sources
}

/// The span of the `nth` occurrence of `part` in the first file.
fn at(sources: &Sources, file: u32, part: &str) -> Span {
    let start = sources.file(FileId(file)).text.find(part).expect("the test's text has it");
    Span::new(FileId(file), start, start + part.len())
}

#[test]
fn labels_on_neighbouring_lines_share_a_snippet() {
    let sources = source(
        "ring.coll",
        "algorithm ring on ranks[n] implements allgather {\n    for r in 0..n {\n        output[r] @ r + 1 = input @ r\n    }\n}\n",
    );
    let diagnostic = Diagnostic::error(
        "coll::rank_out_of_range",
        "rank 8 does not exist: this algorithm runs on ranks 0 to 7",
    )
    .label(at(&sources, 0, "r + 1"), "`r + 1` is 8 when r = 7")
    .label(at(&sources, 0, "0..n"), "r takes the values 0 to 7, from `--ranks 8`")
    .help("wrap around the ring with `(r + 1) % n`");
    let wanted = "\
coll::rank_out_of_range

  × rank 8 does not exist: this algorithm runs on ranks 0 to 7
   ╭─[ring.coll:3:21]
 2 │     for r in 0..n {
   ·              ──┬─
   ·                ╰── r takes the values 0 to 7, from `--ranks 8`
 3 │         output[r] @ r + 1 = input @ r
   ·                     ──┬──
   ·                       ╰── `r + 1` is 8 when r = 7
   ╰────
  help: wrap around the ring with `(r + 1) % n`
";
    assert_eq!(render(&diagnostic, &sources, Style::default()), wanted);
}

#[test]
fn files_are_shown_one_under_the_other_and_the_primary_one_first() {
    let mut sources = source("user.coll", "one\nrun ring on *\n");
    sources.add("std/allreduce/ring.coll", "a\nb\n    data @ r = data @ r\n");
    let diagnostic = Diagnostic::error("coll::x", "this fails")
        .label(at(&sources, 1, "data @ r = data @ r"), "here")
        .label(at(&sources, 0, "run ring on *"), "run from here");
    let wanted = "\
coll::x

  × this fails
   ╭─[std/allreduce/ring.coll:3:5]
 3 │     data @ r = data @ r
   ·     ─────────┬─────────
   ·              ╰── here
   ╰────
   ╭─[user.coll:2:1]
 2 │ run ring on *
   · ──────┬──────
   ·       ╰── run from here
   ╰────
";
    assert_eq!(render(&diagnostic, &sources, Style::default()), wanted);
}

#[test]
fn an_empty_label_at_the_start_of_another_file_is_shown() {
    let mut sources = source("a.coll", "");
    sources.add("b.coll", "");
    let diagnostic = Diagnostic::error("coll::x", "two empty files")
        .label(Span::new(FileId(0), 0, 0), "one")
        .label(Span::new(FileId(1), 0, 0), "two");
    let drawn = render(&diagnostic, &sources, Style::default());
    assert!(
        drawn.contains("╰── one") && drawn.contains("╰── two") && drawn.contains("[b.coll:1:1]"),
        "{drawn}"
    );
}

#[test]
fn far_lines_get_snippets_of_their_own() {
    let text: String = (1..=30).map(|line| format!("line {line}\n")).collect();
    let sources = source("a.coll", &text);
    let diagnostic = Diagnostic::warning("coll::x", "these two")
        .label(at(&sources, 0, "line 20"), "second")
        .label(at(&sources, 0, "line 5"), "first");
    let drawn = render(&diagnostic, &sources, Style::default());
    assert!(drawn.contains("⚠ these two"), "{drawn}");
    assert!(drawn.contains("[a.coll:5:1]") && drawn.contains("[a.coll:20:1]"), "{drawn}");
    assert!(!drawn.contains("line 12"), "{drawn}");
}

#[test]
fn the_end_of_a_file_is_the_end_of_its_last_line() {
    for text in ["algorithm", "algorithm\n", "algorithm\n\n  \n", "algorithm\r\n"] {
        let sources = source("a.coll", text);
        let diagnostic = Diagnostic::error("coll::syntax", "the file ends too early")
            .label(Span::new(FileId(0), text.len(), text.len()), "a name is missing here");
        let drawn = render(&diagnostic, &sources, Style::default());
        assert!(drawn.contains("[a.coll:1:10]"), "{drawn}");
        assert!(drawn.contains("1 │ algorithm\n"), "{drawn}");
        assert!(drawn.contains("╰── a name is missing here"), "{drawn}");
    }
}

#[test]
fn an_empty_file_still_gets_its_title_and_help() {
    let sources = source("a.coll", "");
    let diagnostic = Diagnostic::error("coll::nothing_to_check", "nothing to check")
        .label(Span::new(FileId(0), 0, 0), "here")
        .help("write an algorithm");
    let drawn = render(&diagnostic, &sources, Style::default());
    assert!(drawn.contains("× nothing to check") && drawn.contains("help: write an algorithm"), "{drawn}");
    assert!(drawn.contains("╰── here"), "{drawn}");
}

#[test]
fn a_line_of_a_megabyte_is_cut_around_its_label() {
    let text = format!("{}NEEDLE{}\n", "x ".repeat(300_000), " y".repeat(300_000));
    let sources = source("a.coll", &text);
    let needle = at(&sources, 0, "NEEDLE");
    let diagnostic = Diagnostic::error("coll::x", "found")
        .label(needle, "here")
        .label(Span::new(FileId(0), text.len() - 3, text.len() - 1), "and far away, on the same line");
    let drawn = render(&diagnostic, &sources, Style::default());
    assert!(drawn.len() < 2000, "{} bytes", drawn.len());
    assert!(
        drawn.contains("NEEDLE") && drawn.contains("…x x") && drawn.contains("[a.coll:1:600001]"),
        "{drawn}"
    );
    assert!(drawn.contains("and far away"), "{drawn}");
    let underline = drawn.lines().find(|line| line.contains('┬')).expect("an underline");
    let shown = drawn.lines().find(|line| line.contains("NEEDLE")).expect("the line");
    let column = |line: &str, of: char| line.chars().position(|c| c == of);
    assert_eq!(column(underline, '─'), column(shown, 'N'), "{drawn}");
}

#[test]
fn names_and_titles_of_any_length_stay_short() {
    let sources = source("a.coll", "x\n");
    let long = "y".repeat(1 << 20);
    let diagnostic =
        Diagnostic::error("coll::x", long.as_str()).label(at(&sources, 0, "x"), long.as_str()).help(long);
    assert!(render(&diagnostic, &sources, Style::default()).len() < 4000);
}

#[test]
fn nothing_in_a_source_reaches_the_terminal_as_a_command() {
    let sources = source("a\x1b[2J.coll", "a \x1b[31m b \u{202e} c \u{7} d\n");
    let diagnostic = Diagnostic::error("coll::x", "\x1b[2Jtitle")
        .label(at(&sources, 0, "d"), "\x1b]0;label")
        .help("\x1b[0m");
    let drawn = render(&diagnostic, &sources, Style::default());
    assert!(drawn.chars().all(|c| c == '\n' || !c.is_control()), "{drawn:?}");
    assert!(!drawn.contains('\u{202e}'));
    let underline = drawn.lines().find(|line| line.contains('┬')).expect("an underline");
    let shown = drawn.lines().find(|line| line.starts_with(" 1")).expect("the line");
    assert_eq!(underline.find('┬').map(|at| underline[..at].chars().count()), {
        shown.find('d').map(|at| shown[..at].chars().count())
    });
}

#[test]
fn a_long_label_is_shown_by_its_first_line() {
    let text = format!("for x in 0..n {{\n{}}}\n", "    data @ 0 = data @ x\n".repeat(500));
    let sources = source("a.coll", &text);
    let diagnostic =
        Diagnostic::error("coll::x", "this loop").label(Span::new(FileId(0), 0, text.len()), "all of it");
    let drawn = render(&diagnostic, &sources, Style::default());
    assert!(drawn.lines().count() < 12 && drawn.contains("╰── all of it"), "{drawn}");
}

#[test]
fn ascii_is_ascii_and_colour_is_asked_for() {
    let sources = source("a.coll", "data @ r\n");
    let diagnostic =
        Diagnostic::error("coll::x", "title").label(at(&sources, 0, "data"), "here").help("help");
    let ascii = render(&diagnostic, &sources, Style { unicode: false, ..Style::default() });
    assert!(ascii.is_ascii() && !ascii.contains('\x1b'), "{ascii}");
    let colour = render(&diagnostic, &sources, Style { color: true, ..Style::default() });
    assert!(colour.contains("\x1b["), "{colour:?}");
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(2000))]

    /// Any spans, in range or not, of any text: no panic, bounded output, and the title is there.
    #[test]
    fn any_spans_of_any_text(
        text in prop::collection::vec(prop::sample::select(vec![
            "a", "\n", "\r\n", "\r", "\t", "é", "漢", "🦀", "\u{301}", " ", "data @ r", "\x1b[0m", "\u{feff}",
        ]), 0..60),
        spans in prop::collection::vec((any::<prop::sample::Index>(), 0usize..40, 0u32..3), 0..5),
        width in 0usize..200,
        unicode in any::<bool>(),
    ) {
        let text = text.concat();
        let mut sources = source("a.coll", &text);
        sources.add("b.coll", text.as_str());
        let mut diagnostic = Diagnostic::error("coll::x", "TITLE");
        for (start, length, file) in spans {
            let start = start.index(text.len() + 10);
            diagnostic = diagnostic.label(Span::new(FileId(file), start, start + length), "label");
        }
        let drawn = render(&diagnostic, &sources, Style { color: false, width, unicode });
        prop_assert!(drawn.contains("TITLE"));
        prop_assert!(drawn.len() < 20_000);
        let labels = diagnostic.labels.iter().filter(|label| label.span.file.0 < 2).count();
        prop_assert!(drawn.matches("label").count() == labels, "{}", drawn);
    }
}
