//! Signs and words that are not the language's, not yet its, or not free.
//!
//! In: a [`Site`]. Out: an error if what was found there is one of them.

use super::site::{Head, Site};
use crate::error::{SyntaxError, code};
use crate::token::Kind;

/// Signs of other languages.
pub(super) fn sign(site: &Site<'_>) -> Option<SyntaxError> {
    let (title, label, help) = match site.found()? {
        Kind::Semicolon if site.bracket().is_some() => {
            ("`;` in a list", "lists are separated by `,`", "for example `ranks[m, g]`")
        }
        Kind::Semicolon => (
            "`;` after a statement",
            "nothing separates statements",
            "take it out: `chunks n` ends by itself",
        ),
        Kind::AndAnd => {
            ("`&&` is not an operator", "written `and`", "for example `if r > 0 and r < n { … }`")
        }
        Kind::OrOr => {
            ("`||` is not an operator", "written `or`", "for example `if r == 0 or r == root { … }`")
        }
        Kind::Bang => {
            ("`!` is not an operator", "written `not`", "for example `if not is_power_of_two(n) { … }`")
        }
        Kind::DotDotEquals => {
            ("`..=` is not a range", "ranges leave out their end", "to include the end, add one: `0..n+1`")
        }
        Kind::Arrow => (
            "arrows are not part of the language",
            "moves are written with `=`",
            "the destination stands first: `data @ q = data @ p`",
        ),
        Kind::OtherAssign => (
            "this is not a move",
            "moves are `=` and `+=`",
            "`data @ q += data @ p` combines with the operator of the call, whichever it is",
        ),
        Kind::ColonEquals => ("`:=` is not a move", "written `=`", "for example `data @ q = data @ p`"),
        Kind::StarStar => {
            ("there is no power operator", "not an operator", "powers of two are shifts: `1 << k`")
        }
        Kind::Decimal => {
            ("numbers are whole", "has a fraction", "divide with `/`, which rounds down: `n / 2`")
        }
        Kind::Dot => (
            "`.` is not part of the language",
            "means nothing here",
            "a range is written `0..n`, a name in the library `std::allreduce::ring`",
        ),
        Kind::BlockComment => (
            "comments have no end mark",
            "comments begin with `//`",
            "for example `// up to the end of the line`",
        ),
        _ => return None,
    };
    Some(site.helped(code::SYNTAX, title, label, help))
}

/// What the language will have, and has not yet.
pub(super) fn later(site: &Site<'_>) -> Option<SyntaxError> {
    match site.found()? {
        Kind::Ragged if site.head().0 == Head::Buffer => Some(site.helped(
            code::RAGGED_UNSUPPORTED,
            "ragged buffers are not supported yet",
            "blocks of a buffer are of equal size",
            "take `ragged` out: `in input[n]`",
        )),
        _ => None,
    }
}

/// A structure word where a name must stand.
pub(super) fn reserved(site: &Site<'_>) -> Option<SyntaxError> {
    let found = site.found()?;
    if !found.is_reserved() {
        return None;
    }
    let after_definer = match site.before(1)? {
        Kind::Let | Kind::Scratch | Kind::Collective | Kind::Algorithm | Kind::Fn => true,
        Kind::In | Kind::Out | Kind::Inout => site.head().0 == Head::Buffer,
        Kind::For => site.behind(1) == Some(Kind::In),
        Kind::Comma | Kind::OpenParen | Kind::OpenBracket => {
            site.expects("NAME")
                && matches!(
                    site.behind(1),
                    Some(Kind::Colon | Kind::In | Kind::Comma | Kind::CloseBracket | Kind::CloseParen)
                )
        }
        _ => false,
    };
    // `out[c] @ r = …`, `… = in[c] @ r`
    let place = matches!(site.behind(1), Some(Kind::At | Kind::OpenBracket)) && site.expects("NAME");
    // `1 + step`
    let value = site.expects("INT")
        && site.before(1).is_some_and(Kind::is_operator)
        && site.behind(1).is_some_and(|kind| kind.is_operator() || kind.closes());
    if !(after_definer || place || value) {
        return None;
    }
    let word = site.word(site.at);
    let other = match found {
        Kind::In => "input",
        Kind::Out => "output",
        Kind::Inout => "data",
        _ => "",
    };
    let other = if other.is_empty() { format!("{word}_") } else { other.to_owned() };
    Some(site.helped(
        code::RESERVED_WORD,
        format!("`{word}` is a word of the language, not a name"),
        "a name must stand here",
        format!("choose another name: `{other}`"),
    ))
}
