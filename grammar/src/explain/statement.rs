//! Errors in the statements of an algorithm.
//!
//! In: a [`Site`]. Out: an error if it is a known mistake.

use super::site::{Head, Site};
use crate::error::{SyntaxError, code};
use crate::token::Kind;

/// The errors of this module.
pub(super) fn statement(site: &Site<'_>) -> Option<SyntaxError> {
    let (head, start) = site.head();
    if let Some(error) = label(site, head) {
        return Some(error);
    }
    if site.found() == Some(Kind::Else) {
        return Some(site.helped(
            code::SYNTAX,
            "an `else` without its `if`",
            "no `if` ends before this",
            super::example(Head::If),
        ));
    }
    match head {
        Head::Block => block(site),
        Head::Let => binding(site),
        Head::Require => requirement(site),
        Head::For => ranges(site).or_else(|| body(site, "for r in 0..n { … }")),
        Head::If => condition(site),
        Head::Step => body(site, "step for r in 0..n { … }"),
        Head::Run => run(site),
        Head::Inplace => Some(site.helped(
            code::SYNTAX,
            "overlaps are declared by the collective",
            "only `none` may stand here",
            "an algorithm may say `inplace none`; a collective says `inplace input = output[self]`",
        )),
        Head::Move => {
            misspelt(site, start).or_else(|| place(site)).or_else(|| ranges(site)).or_else(|| source(site))
        }
        _ => None,
    }
    .or_else(|| separator(site))
    .or_else(|| misplaced(site))
}

/// A label that is not put on right.
fn label(site: &Site<'_>, head: Head) -> Option<SyntaxError> {
    let say = |title: &str, label: &str| {
        Some(site.helped(code::SYNTAX, title, label, "for example `'gather: for c in 0..n { … }`"))
    };
    if head == Head::Label {
        return match site.found() {
            Some(Kind::Label) if site.before(1) == Some(Kind::Colon) => {
                say("a statement with two labels", "a second label")
            }
            _ if site.before(1) == Some(Kind::Label) => say("a label without its `:`", "`:` must stand here"),
            _ => say("a label stands before what moves data", "this takes no label"),
        };
    }
    (site.found() == Some(Kind::Label) && !site.expects("LABEL"))
        .then(|| say("a label stands before a statement", "not in the middle of one"))?
}

/// The word most like one that is none of them, if it is close.
pub(super) fn nearest(word: &str, words: &[&'static str]) -> Option<&'static str> {
    let lower = word.to_ascii_lowercase();
    let distance = |known: &&'static str| strsim::osa_distance(known, &lower);
    let best = words.iter().copied().min_by_key(distance)?;
    let far = distance(&best);
    (far > 0 && far * 3 <= best.len().max(3) && word.len() > 1).then_some(best).or_else(|| {
        // `algorithms`, `Chunks`
        words.iter().copied().find(|known| lower == *known || (known.len() > 3 && lower.starts_with(known)))
    })
}

/// A place without its rank, and indices that are no indices.
pub(super) fn place(site: &Site<'_>) -> Option<SyntaxError> {
    let found = site.found();
    if let Some(open) = site.bracket() {
        let indexes = site.kind(open) == Some(Kind::OpenBracket);
        let (title, label, help) = match found {
            Some(Kind::Colon) if indexes => {
                ("a run is written with `..`", "written `..`", "for example `data[0..k] @ r`")
            }
            Some(Kind::Comma) if indexes => (
                "two indices in one bracket",
                "a second index",
                "each has its own brackets: `input[b][c] @ r`",
            ),
            Some(Kind::CloseBracket) if indexes && site.before(1) == Some(Kind::OpenBracket) => (
                "an index is missing",
                "an index must stand before this",
                "name a chunk, `data[c] @ r`, or leave out the brackets: `data @ r`",
            ),
            _ => return missing_rank(site),
        };
        return Some(site.helped(code::SYNTAX, title, label, help));
    }
    if site.before(1) == Some(Kind::At) && site.expects("INT") {
        let title = "the rank of a place is missing";
        let help = "for example `data @ (r + 1) % n`, or all ranks: `data @ *`";
        return Some(site.helped(code::SYNTAX, title, "a rank must stand here", help));
    }
    missing_rank(site)
}

/// `data[c] = …`
fn missing_rank(site: &Site<'_>) -> Option<SyntaxError> {
    if !site.expects("@") || site.expects("INT") || site.expects("ensures") {
        return None;
    }
    // Back over `name[…][…]`.
    let mut first = site.at.checked_sub(1)?;
    while site.kind(first) == Some(Kind::CloseBracket) {
        first = Site { input: site.input, at: first, expected: &[] }.bracket()?.checked_sub(1)?;
    }
    if !site.kind(first).is_some_and(Kind::is_name) {
        return None;
    }
    let span = site.span(first).to(site.span(site.at - 1));
    if site.found() == Some(Kind::Colon) && first + 1 == site.at {
        let name = site.word(first);
        return Some(SyntaxError {
            code: code::SYNTAX,
            title: "a label without its quote".to_owned(),
            span,
            label: "`'` must stand before it".to_owned(),
            help: Some(format!("for example `'{name}: for c in 0..n {{ … }}`")),
            related: None,
        });
    }
    let text = &site.input.text[span.range()];
    let text = if text.len() > 40 || text.contains('\n') { site.word(first) } else { text };
    Some(SyntaxError {
        code: code::MISSING_RANK,
        title: "a place without its rank".to_owned(),
        span,
        label: "on which rank?".to_owned(),
        help: Some(format!("say where it is: `{text} @ r`, or `{text} @ *` on all ranks")),
        related: None,
    })
}

/// `x in a..b`
pub(super) fn ranges(site: &Site<'_>) -> Option<SyntaxError> {
    let example = "for example `for r in 0..n { … }`";
    let say = |title: &str, label: &str, help: &str| Some(site.helped(code::SYNTAX, title, label, help));
    if site.expects("in") && !site.expects("out") {
        return say("a range without `in`", "`in` must stand here", example);
    }
    if site.before(1) == Some(Kind::For) {
        let title = if site.found() == Some(Kind::OpenParen) {
            "the variables of a loop stand without parentheses"
        } else {
            "the variable of a loop is missing"
        };
        return say(title, "a name must stand here", "for example `for c in 0..n, hop in 1..n { … }`");
    }
    if site.before(1) == Some(Kind::In) && site.found() == Some(Kind::OpenBracket) {
        return say(
            "loops run over ranges",
            "not a range",
            "to run over a table, index it: `for k in 0..4 { … cable[k] … }`",
        );
    }
    if site.expects("..") {
        return say("the range has no end", "`..` and the end must stand here", example);
    }
    if site.before(1) == Some(Kind::DotDot) && site.expects("INT") {
        return say("the range has no end", "the end must stand here", example);
    }
    if site.expects("step")
        && site.expects("rev")
        && site.found().is_some_and(Kind::is_name)
        && site.bracket().is_none()
    {
        let word = site.word(site.at);
        if ["by", "stride", "every", "downto", "reversed", "reverse", "where", "when"].contains(&word) {
            let label = match word {
                "where" | "when" => "did you mean `if`?",
                "by" | "stride" | "every" => "did you mean `step`?",
                _ => "did you mean `rev`?",
            };
            let help = "a range may have a step, an order and a filter: `for r in 0..n step 2 rev if r != root { … }`";
            return say("not a word of a range", label, help);
        }
    }
    None
}

/// Where a block must begin.
fn body(site: &Site<'_>, example: &str) -> Option<SyntaxError> {
    if !site.expects("{") {
        return None;
    }
    let comma = site.found() == Some(Kind::Comma);
    let label = if comma { "ends before this" } else { "`{` must stand here" };
    Some(site.helped(code::SYNTAX, "the body has no braces", label, format!("for example `{example}`")))
}

fn binding(site: &Site<'_>) -> Option<SyntaxError> {
    let example = "for example `let half = n / 2`";
    if site.expects("=") && !site.expects("INT") && site.before(2) == Some(Kind::Let) {
        let (title, label) = match site.found() {
            Some(Kind::Colon) => ("a `let` has no type", "takes no type"),
            _ => ("a `let` without a value", "`=` must stand here"),
        };
        return Some(site.helped(code::SYNTAX, title, label, example));
    }
    if ["mut", "const", "var"].contains(&site.word(site.at.saturating_sub(1)))
        && site.before(2) == Some(Kind::Let)
    {
        return Some(site.helped(code::SYNTAX, "what `let` names never changes", "not a `let`", example));
    }
    if site.found() == Some(Kind::At) || (site.found() == Some(Kind::Reduce) && site.expects("INT")) {
        let title = "a `let` names a number, no data";
        let help = "data is kept in scratch: `scratch tmp`, then `tmp @ r = data @ r`";
        return Some(site.helped(code::SYNTAX, title, "not a number", help));
    }
    if site.found() == Some(Kind::OpenBrace) && site.expects("then") {
        return Some(site.helped(
            code::SYNTAX,
            "an `if` with braces where a value must stand",
            "`then` must stand here",
            "for example `let k = if n > 8 then 2 else 1`",
        ));
    }
    None
}

fn requirement(site: &Site<'_>) -> Option<SyntaxError> {
    let after_comma = site.before(1) == Some(Kind::Comma) && site.bracket().is_none();
    let before_comma = site.expects(",") && site.bracket().is_none();
    if !(after_comma || before_comma) {
        return None;
    }
    let label = if after_comma { "a string must stand here" } else { "`,` and a string must stand here" };
    Some(site.helped(
        code::SYNTAX,
        "a `require` that does not say why",
        label,
        "for example `require is_power_of_two(n), \"ranks are paired by one bit\"`",
    ))
}

fn condition(site: &Site<'_>) -> Option<SyntaxError> {
    let found = site.found();
    if found == Some(Kind::Then) && site.expects("{") {
        return Some(site.helped(
            code::SYNTAX,
            "`then` belongs to an `if` that is a value",
            "`{` must stand here",
            "statements stand in braces: `if r < half { … } else { … }`",
        ));
    }
    if site.expects("then") && !site.expects("{") {
        return Some(site.helped(
            code::SYNTAX,
            "an `if` that is a value has no `then`",
            "`then` must stand here",
            "for example `let k = if n > 8 then 2 else 1`",
        ));
    }
    if site.expects("else") && !site.expects("{") && !site.expects("for") {
        return Some(site.helped(
            code::SYNTAX,
            "an `if` that is a value has no `else`",
            "`else` must stand here",
            "for example `let k = if n > 8 then 2 else 1`",
        ));
    }
    body(site, "if r < half { … }")
}

fn run(site: &Site<'_>) -> Option<SyntaxError> {
    let say = |title: &str, label: &str, help: &str| Some(site.helped(code::SYNTAX, title, label, help));
    if site.before(1) == Some(Kind::Run) {
        return say("the algorithm to run is missing", "a name must stand here", super::example(Head::Run));
    }
    if site.bracket().is_none() && site.expects("on") {
        return say(
            "a `run` does not say on which ranks",
            "`on` must stand here",
            "for example `run ring on * with data = data`",
        );
    }
    if site.before(1) == Some(Kind::On) || (site.expects("..") && site.bracket().is_none()) {
        let help = "for example `on *`, `on (i, *)`, `on 0..k` or `on [order[x] for x in 0..k]`";
        return say("a `run` needs a set of ranks", "a set of ranks must stand here", help);
    }
    if site.expects("=") && site.back(|kind| kind == Kind::With, |_| false).is_some() {
        return say(
            "a buffer is not bound",
            "`=` must stand here",
            "for example `with input = data, output = data[self]`",
        );
    }
    None
}

/// What stands after `=` or `+=`.
fn source(site: &Site<'_>) -> Option<SyntaxError> {
    let say = |title: &str, label: &str, help: &str| Some(site.helped(code::SYNTAX, title, label, help));
    let found = site.found();
    if matches!(site.before(1), Some(Kind::Equals | Kind::PlusEquals)) && site.expects("reduce") {
        return match found {
            Some(Kind::Sum) => say(
                "data is combined by `reduce`",
                "did you mean `reduce`?",
                "for example `data @ r = reduce(s in 0..n) tmp[s] @ r`",
            ),
            Some(Kind::Number | Kind::Minus | Kind::OpenParen | Kind::True | Kind::False) => {
                say("a move copies places, not numbers", "not a place", "to name a number, write `let k = 4`")
            }
            _ => say("a move without its source", "a place must stand here", super::example(Head::Move)),
        };
    }
    if site.expects("+=") {
        if found.is_some_and(Kind::is_operator) {
            let help = "name the rank by its coordinates, `@ (i, (j + 1) % g)`, or by its number";
            return say("`*` and `(i, j)` take no operators", "cannot follow these ranks", help);
        }
        let help = super::example(Head::Move);
        return say("a place by itself does nothing", "`=` or `+=` must stand here", help);
    }
    None
}

/// Where a statement must begin.
fn block(site: &Site<'_>) -> Option<SyntaxError> {
    let say = |title: &str, label: &str, help: &str| Some(site.helped(code::SYNTAX, title, label, help));
    match site.found()? {
        Kind::OpenBrace => say("a block by itself", "what is it for?", super::example(Head::Step)),
        _ => None,
    }
}

/// A name that begins a statement although no move does: a misspelt word, or one of another language.
fn misspelt(site: &Site<'_>, start: usize) -> Option<SyntaxError> {
    const WORDS: [&str; 8] = ["chunks", "scratch", "let", "require", "inplace", "for", "step", "run"];
    if site.at != start + 1 || !site.expects("@") {
        return None;
    }
    let word = site.word(start);
    let found = site.found();
    let of_move = matches!(found, Some(Kind::Equals | Kind::PlusEquals));
    let say = |title: String, label: String, help: &str| {
        let mut error = site.helped(code::SYNTAX, title, label, help);
        error.span = site.span(start);
        Some(error)
    };
    let title = format!("`{word}` does not begin a statement");
    if of_move {
        // After `run … with a = b`, a name and `=` is more likely the next binding.
        let previous = Site { input: site.input, at: start, expected: &[] };
        if previous.head().0 == Head::Run && previous.back(|kind| kind == Kind::With, |_| false).is_some() {
            let help = "for example `with input = data, output = data[self]`";
            return say(
                "a binding without its comma".to_owned(),
                "`,` must stand before this".to_owned(),
                help,
            );
        }
        if matches!(
            site.behind(1),
            Some(Kind::Number | Kind::Minus | Kind::OpenParen | Kind::True | Kind::False)
        ) {
            let help = format!("to name a number, write `let {word} = {}`", site.word(site.at + 1));
            return say(title, "did you mean `let`?".to_owned(), &help);
        }
        return None;
    }
    let known = match word {
        "while" | "loop" | "foreach" | "repeat" => Some("for"),
        "var" | "const" | "int" => Some("let"),
        "call" => Some("run"),
        "assert" | "ensure" | "requires" => Some("require"),
        "elif" | "elsif" | "elseif" => Some("else if"),
        "buffer" | "temp" | "tmp" | "alloc" => Some("scratch").filter(|_| found.is_some_and(Kind::is_name)),
        "send" | "recv" | "copy" | "put" | "get" | "move" => {
            let help = "the destination stands first: `data[c] @ q = data[c] @ p`";
            return say("data moves by `=` and `+=`".to_owned(), "not a statement".to_owned(), help);
        }
        "channels" | "protocol" | "pipeline" | "threads" | "transport" | "via" | "wire" | "when" => {
            let help = "for example `schedule for ring { channels 4 }`, before or after the algorithm";
            return say(title, "belongs to a schedule".to_owned(), help);
        }
        "return" | "break" | "continue" => {
            let help = "leave out turns of a loop with a filter: `for r in 0..n if r != root { … }`";
            return say(title, "an algorithm runs to its end".to_owned(), help);
        }
        _ => None,
    };
    if let Some(meant) = known.or_else(|| nearest(word, &WORDS)) {
        let help = match meant {
            "chunks" => super::example(Head::Chunks),
            "scratch" => super::example(Head::Scratch),
            "let" => super::example(Head::Let),
            "require" => super::example(Head::Require),
            "inplace" => "for example `inplace none`",
            "for" => super::example(Head::For),
            "step" => super::example(Head::Step),
            "run" => super::example(Head::Run),
            _ => super::example(Head::If),
        };
        return say(title, format!("did you mean `{meant}`?"), help);
    }
    if found == Some(Kind::OpenParen) {
        return say(
            title,
            "functions are not called by themselves".to_owned(),
            "to run an algorithm, write `run ring on * with data = data`",
        );
    }
    None
}

/// A comma between statements.
fn separator(site: &Site<'_>) -> Option<SyntaxError> {
    (site.found() == Some(Kind::Comma) && site.bracket().is_none()).then(|| {
        site.helped(
            code::SYNTAX,
            "`,` after a statement",
            "nothing separates statements",
            "take it out: `chunks n` ends by itself",
        )
    })
}

/// What stands elsewhere: clauses of a collective, declarations.
fn misplaced(site: &Site<'_>) -> Option<SyntaxError> {
    let say = |title: &str, label: &str, help: &str| Some(site.helped(code::SYNTAX, title, label, help));
    let statement = site.expects("run") || site.expects("}");
    match site.found()? {
        Kind::In | Kind::Out | Kind::Inout | Kind::Ensures if statement => {
            let help = "move it to the collective; an algorithm's own memory is `scratch tmp[n]`";
            say("buffers and promises stand in the collective", "not a statement of an algorithm", help)
        }
        Kind::Fn | Kind::Algorithm | Kind::Collective | Kind::Schedule => {
            let help = "move it out, before or after the algorithm: `fn half(n) = n / 2`";
            say("a declaration inside a declaration", "stands at the level of the file", help)
        }
        _ => None,
    }
}
