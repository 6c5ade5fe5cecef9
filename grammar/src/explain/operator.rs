//! Operators that do not fit: chained comparisons and ranges, `=` for `==` and the other way round.
//!
//! In: a [`Site`]. Out: an error if what was found there is an operator of a known mistake.

use super::site::{Head, Site};
use crate::error::{SyntaxError, code};
use crate::token::Kind;

/// The errors of this module.
pub(super) fn operator(site: &Site<'_>) -> Option<SyntaxError> {
    match site.found()? {
        Kind::DotDotDot => Some(site.helped(
            code::CHAINED_RANGE,
            "`...` is not a range",
            "two dots, and the end is left out",
            "for example `0..n`",
        )),
        Kind::DotDot => range(site),
        Kind::Equals => equals(site),
        Kind::EqualsEquals if site.expects("=") && site.expects("+=") => Some(site.helped(
            code::SYNTAX,
            "`==` compares; a move is written `=`",
            "not a move",
            "for example `data @ q = data @ p`",
        )),
        Kind::EqualsEquals if site.expects("=") => {
            let (head, _) = site.head();
            Some(site.helped(
                code::SYNTAX,
                "`==` compares; a definition is written `=`",
                "not a definition",
                super::example(head),
            ))
        }
        found if found.is_comparison() => chained(site),
        Kind::At => at(site),
        _ => None,
    }
}

/// `a < b < c`
fn chained(site: &Site<'_>) -> Option<SyntaxError> {
    let stop = |kind: Kind| {
        matches!(
            kind,
            Kind::And
                | Kind::Or
                | Kind::Not
                | Kind::If
                | Kind::Then
                | Kind::Else
                | Kind::Equals
                | Kind::Comma
                | Kind::Colon
                | Kind::At
        )
    };
    let first = site.back(Kind::is_comparison, stop)?;
    let (left, right) = (site.word(first), site.word(site.at));
    let mut error = site.helped(
        code::CHAINED_COMPARISON,
        "comparisons do not chain",
        "a second comparison",
        format!("join two comparisons: `a {left} b and b {right} c`"),
    );
    error.related = Some((site.span(first), "the first one".to_owned()));
    Some(error)
}

/// `1..2..3`, and `..` where no range may stand.
fn range(site: &Site<'_>) -> Option<SyntaxError> {
    let stop = |kind: Kind| matches!(kind, Kind::Comma | Kind::In | Kind::Step | Kind::On | Kind::Equals);
    if let Some(first) = site.back(|kind| kind == Kind::DotDot, stop) {
        let mut error = site.helped(
            code::CHAINED_RANGE,
            "ranges do not chain",
            "a second `..`",
            "a range has two ends, and may have a step: `0..n step 2`",
        );
        error.related = Some((site.span(first), "the first one".to_owned()));
        return Some(error);
    }
    let stop = |kind: Kind| matches!(kind, Kind::Equals | Kind::PlusEquals);
    if site.back(|kind| kind == Kind::At, stop).is_some() {
        return Some(site.helped(
            code::SYNTAX,
            "a range of ranks in a place",
            "one rank, `*` or a row stands after `@`",
            "loop over the ranks, `for r in 0..k { data @ r = … }`, or name all of them, `data @ *`",
        ));
    }
    if site.back(Kind::is_comparison, |kind| kind == Kind::Equals).is_some() {
        return Some(site.helped(
            code::SYNTAX,
            "a comparison in the bound of a range",
            "the bound ends before this",
            "put looser operators in parentheses: `0..(if r < n then r else n)`",
        ));
    }
    Some(site.helped(
        code::SYNTAX,
        "a range where a value must stand",
        "not a value",
        "ranges stand in loops, `for r in 0..n { … }`, and in places, `data[0..k] @ r`",
    ))
}

/// `=` where `==` or `+=` must stand.
fn equals(site: &Site<'_>) -> Option<SyntaxError> {
    if site.before(1) == Some(Kind::Plus) && site.head().0 == Head::Move {
        return Some(site.helped(
            code::SYNTAX,
            "`+` and `=` apart",
            "`+=` is one sign",
            "for example `data @ q += data @ p`",
        ));
    }
    let (head, _) = site.head();
    if site.expects("==") && matches!(head, Head::If | Head::Require | Head::For | Head::Ensures) {
        let (title, help) = match head {
            Head::Ensures => {
                ("a promise is written with `==`", "for example `ensures data @ r == data @ root`")
            }
            _ => ("`=` does not compare", "for example `if r == root { … }`"),
        };
        return Some(site.helped(code::SYNTAX, title, "written `==`", help));
    }
    None
}

/// `@` where a place cannot stand.
fn at(site: &Site<'_>) -> Option<SyntaxError> {
    let (head, _) = site.head();
    match head {
        Head::Run => Some(site.helped(
            code::SYNTAX,
            "a binding names a buffer, without a rank",
            "takes no rank",
            "for example `run ring on (i, *) with data = data[self]`",
        )),
        Head::Inplace => Some(site.helped(
            code::SYNTAX,
            "`inplace` speaks of every rank",
            "takes no rank",
            "for example `inplace input = output[self]`",
        )),
        Head::Move => {
            let stop = |_| false;
            let source = site.back(|kind| matches!(kind, Kind::Equals | Kind::PlusEquals), stop)?;
            let other = site.back(|kind| kind == Kind::At, |kind| kind == Kind::Equals)?;
            (other > source).then(|| {
                let mut error = site.helped(
                    code::SYNTAX,
                    "a move with two sources",
                    "a second place",
                    "list them, `data @ q = reduce(data @ q, tmp @ q)`, or combine with `+=`",
                );
                error.related = Some((site.span(other), "the first one".to_owned()));
                error
            })
        }
        _ => None,
    }
}
