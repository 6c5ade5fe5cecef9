//! Errors in the lines that begin declarations, in collectives, in functions, and between declarations.
//!
//! In: a [`Site`]. Out: an error if it is a known mistake.

use super::site::{Head, Site};
use super::statement::nearest;
use crate::error::{SyntaxError, code};
use crate::token::Kind;

const COLLECTIVE: &str = "for example `collective exchange on ranks[n] { … }`";
const ALGORITHM: &str = "for example `algorithm ring on ranks[n] implements allreduce { … }`";

/// In a collective.
pub(super) fn collective(site: &Site<'_>) -> Option<SyntaxError> {
    let (head, _) = site.head();
    if head == Head::Declaration {
        if site.found() == Some(Kind::Implements) && site.expects("{") {
            return Some(site.helped(
                code::SYNTAX,
                "a collective implements nothing",
                "algorithms implement collectives",
                ALGORITHM,
            ));
        }
        return header(site, COLLECTIVE);
    }
    promise(site, head).or_else(|| clause(site))
}

/// In the line that begins an algorithm.
pub(super) fn algorithm(site: &Site<'_>) -> Option<SyntaxError> {
    let (head, _) = site.head();
    if head != Head::Declaration {
        return None;
    }
    if site.expects("implements") {
        return Some(site.helped(
            code::SYNTAX,
            "the algorithm does not say what it implements",
            "`implements` must stand here",
            ALGORITHM,
        ));
    }
    header(site, ALGORITHM)
}

/// In a function.
pub(super) fn function(site: &Site<'_>) -> Option<SyntaxError> {
    const FUNCTION: &str = "for example `fn partner(r, bit) = r ^ (1 << bit)`";
    let found = site.found();
    if site.at == 1 {
        return Some(site.helped(
            code::SYNTAX,
            "the function has no name",
            "a name must stand here",
            FUNCTION,
        ));
    }
    if site.at == 2 {
        return Some(site.helped(
            code::SYNTAX,
            "the function has no parameters",
            "`(` must stand here",
            FUNCTION,
        ));
    }
    if site.expects("=") {
        let label =
            if found == Some(Kind::OpenBrace) { "a function has no body" } else { "`=` must stand here" };
        return Some(site.helped(code::SYNTAX, "a function is defined with `=`", label, FUNCTION));
    }
    if found == Some(Kind::Colon) && site.bracket() == Some(2) {
        return Some(site.helped(
            code::SYNTAX,
            "a function's parameters have no types",
            "takes no type",
            FUNCTION,
        ));
    }
    if found == Some(Kind::At) {
        return Some(site.helped(
            code::SYNTAX,
            "a function knows numbers, no places",
            "not a number",
            FUNCTION,
        ));
    }
    (!site.expects("INT")).then(|| {
        site.helped(
            code::SYNTAX,
            format!("unexpected {} after a function", site.shown()),
            "the function's value ends before this",
            FUNCTION,
        )
    })
}

/// Between declarations.
pub(super) fn outside(site: &Site<'_>) -> SyntaxError {
    const WORDS: [(&str, &str); 10] = [
        ("def", "fn"),
        ("func", "fn"),
        ("function", "fn"),
        ("fun", "fn"),
        ("const", "fn"),
        ("let", "fn"),
        ("algo", "algorithm"),
        ("program", "algorithm"),
        ("interface", "collective"),
        ("struct", "collective"),
    ];
    let kind = site.input.tokens[0].kind;
    let word = site.word(0);
    let shown = site.shown();
    if kind.closes() {
        return site.helped(
            code::UNOPENED_DELIMITER,
            format!("{shown} closes nothing"),
            "no declaration is open here",
            format!("take out this {shown}; the declaration before it has ended"),
        );
    }
    if kind == Kind::Label {
        return site.helped(
            code::SYNTAX,
            "a label outside a declaration",
            "belongs inside an algorithm or a schedule",
            "an algorithm puts it on, `'gather: for c in 0..n { … }`; a schedule speaks of it, `'gather { channel c % 2 }`",
        );
    }
    if ["import", "use", "include", "using", "from"].contains(&word) {
        return site.helped(
            code::SYNTAX,
            "nothing is imported",
            "not a declaration",
            "the library is always there: `run std::allreduce::ring on * with data = data`",
        );
    }
    let known = WORDS.iter().find(|(one, _)| *one == word).map(|&(_, meant)| meant);
    if let Some(meant) = known.or_else(|| nearest(word, &["algorithm", "collective", "schedule", "fn"])) {
        let help = match meant {
            "fn" => "for example `fn half(n) = n / 2`",
            "collective" => COLLECTIVE,
            "schedule" => "for example `schedule for ring { channels 4 }`",
            _ => ALGORITHM,
        };
        let label = format!("did you mean `{meant}`?");
        return site.helped(code::SYNTAX, format!("{shown} does not begin a declaration"), label, help);
    }
    if kind.is_reserved() || kind.is_name() {
        return site.helped(
            code::SYNTAX,
            "a statement outside an algorithm",
            "belongs inside an algorithm",
            "is there one `}` too many above? Statements stand in the braces of `algorithm … { … }`",
        );
    }
    site.helped(code::SYNTAX, format!("unexpected {shown}"), "a declaration must stand here", ALGORITHM)
}

/// `NAME(params) on ranks[n]`
fn header(site: &Site<'_>, example: &str) -> Option<SyntaxError> {
    let say = |title: &str, label: &str| Some(site.helped(code::SYNTAX, title, label, example));
    if site.at == 1 {
        return say("the declaration has no name", "a name must stand here");
    }
    if site.before(1) == Some(Kind::Colon) && site.expects("int") {
        return Some(site.helped(
            code::SYNTAX,
            format!("{} is not a type", site.shown()),
            "not a type",
            "types are `int`, `rank` and `bool`: `k: int = 4`",
        ));
    }
    if site.expects(":") {
        return Some(site.helped(
            code::SYNTAX,
            format!("the parameter `{}` has no type", site.word(site.at.saturating_sub(1))),
            "`:` and a type must stand here",
            "for example `k: int = 4` or `root: rank`",
        ));
    }
    if site.before(1) == Some(Kind::On) {
        return say("the world is missing", "`ranks[…]` must stand here");
    }
    if site.before(1) == Some(Kind::Ranks) {
        return say("the sizes of the world are missing", "`[` must stand here");
    }
    let in_world = site.bracket().is_some_and(|at| at > 0 && site.kind(at - 1) == Some(Kind::Ranks));
    if in_world && site.found() == Some(Kind::Number) {
        return Some(site.helped(
            code::SYNTAX,
            "the size of the world is a name",
            "the size is chosen when it is compiled",
            "name it, `on ranks[n]`; an algorithm may add `require n == 8, \"why\"`",
        ));
    }
    if site.expects("on") {
        return say("the world is missing", "`on ranks[…]` must stand here");
    }
    if site.expects("{") {
        return say("the body is missing", "`{` must stand here");
    }
    None
}

/// In an `ensures`.
fn promise(site: &Site<'_>, head: Head) -> Option<SyntaxError> {
    if head != Head::Ensures {
        return None;
    }
    if site.expects(":") && site.expects("if") {
        return Some(site.helped(
            code::SYNTAX,
            "the promise is not set apart from its ranges",
            "`:` must stand here",
            "for example `ensures for r in 0..n: data @ r == data @ root`",
        ));
    }
    if let Some(error) = super::statement::place(site).or_else(|| super::statement::ranges(site)) {
        return Some(error);
    }
    site.expects("==").then(|| {
        site.helped(
            code::SYNTAX,
            "the promise has no value",
            "`==` must stand here",
            "for example `ensures data @ r == data @ root`",
        )
    })
}

/// Between the clauses of a collective.
fn clause(site: &Site<'_>) -> Option<SyntaxError> {
    const CLAUSES: &str =
        "a collective holds `in input[n]`, `out output`, `inout data`, `inplace …` and `ensures …`";
    let found = site.found()?;
    if !site.expects("ensures") {
        return None;
    }
    let word = site.word(site.at);
    if let Some(meant) = nearest(word, &["in", "out", "inout", "inplace", "ensures"]) {
        let label = format!("did you mean `{meant}`?");
        return Some(site.helped(code::SYNTAX, format!("`{word}` does not begin a clause"), label, CLAUSES));
    }
    let statement = found.is_reserved() || found.is_name();
    let title = if statement {
        "a collective holds no statements".to_owned()
    } else {
        format!("unexpected {}", site.shown())
    };
    Some(site.helped(code::SYNTAX, title, "not a clause of a collective", CLAUSES))
}
