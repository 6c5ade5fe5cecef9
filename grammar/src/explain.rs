//! Why a token does not fit, and what would: wording by what surrounds it.
//!
//! In: the tokens of one item, the one that does not fit, and what the grammar could have taken there. Out: a
//! `SyntaxError` that shows one right example. The parser's own list of tokens is never shown; it only helps to choose.
//! Rules are tried from the special to the general; the last one fits everything.

mod declaration;
mod foreign;
mod operator;
mod schedule;
mod site;
mod statement;

use crate::error::{SyntaxError, code};
use crate::literal;
use crate::parse::Input;
use crate::token::Kind;
use site::{Head, Site};

/// The error at token `at` of an item; past the last token: the item ends too early.
pub(crate) fn unexpected(input: Input<'_>, at: usize, expected: &[String]) -> SyntaxError {
    let site = Site { input, at, expected };
    None.or_else(|| foreign::sign(&site))
        .or_else(|| schedule::schedule(&site))
        .or_else(|| foreign::later(&site))
        .or_else(|| operator::operator(&site))
        .or_else(|| foreign::reserved(&site))
        .or_else(|| match input.tokens[0].kind {
            Kind::Collective => declaration::collective(&site),
            Kind::Schedule => None,
            Kind::Algorithm => declaration::algorithm(&site).or_else(|| statement::statement(&site)),
            _ => declaration::function(&site),
        })
        .unwrap_or_else(|| general(&site))
}

/// The error for what stands between two declarations.
pub(crate) fn between(input: Input<'_>) -> SyntaxError {
    let site = Site { input, at: 0, expected: &[] };
    let token = input.tokens[0];
    match token.kind {
        Kind::Unknown => literal::unknown(input.file, token, site.word(0)),
        Kind::OpenText => literal::open_text(input.file, token),
        _ => declaration::outside(&site),
    }
}

/// What is said when nothing better is known: an operand that is missing, or an example of the statement at hand.
fn general(site: &Site<'_>) -> SyntaxError {
    let (head, _) = site.head();
    let operand = site.expects("INT");
    let Some(found) = site.found() else {
        let error = site.error(code::SYNTAX, "the declaration ends too early", "ends here");
        return error_with(error, example(head));
    };
    let shown = site.shown();
    if operand && site.before(1).is_some_and(Kind::is_operator) {
        let sign = site.word(site.at - 1);
        let title = format!("`{sign}` without its right operand");
        return error_with(site.error(code::SYNTAX, title, "not an operand"), example(head));
    }
    if operand && (found.closes() || !found.is_operator()) {
        let title = format!("an expression is missing before {shown}");
        return error_with(site.error(code::SYNTAX, title, "an expression must stand here"), example(head));
    }
    error_with(site.error(code::SYNTAX, format!("unexpected {shown}"), "does not fit here"), example(head))
}

fn error_with(error: SyntaxError, example: &str) -> SyntaxError {
    SyntaxError { help: Some(example.to_owned()), ..error }
}

/// One right example of each kind of statement.
fn example(head: Head) -> &'static str {
    match head {
        Head::Declaration => "for example `algorithm ring on ranks[n] implements allreduce { … }`",
        Head::Block => {
            "a statement is a move, `data @ q = data @ p`, or begins with a word, `for r in 0..n { … }`"
        }
        Head::Chunks => "for example `chunks n`",
        Head::Scratch => "for example `scratch tmp[n]`",
        Head::Let => "for example `let half = n / 2`, or a table: `let cable = [0, 3, 1, 2]`",
        Head::Require => "for example `require is_power_of_two(n), \"ranks are paired by one bit\"`",
        Head::Inplace => "for example `inplace input = output[self]`",
        Head::For => "for example `for r in 0..n, k in 1..n { … }`",
        Head::If => "for example `if r < half { … } else { … }`",
        Head::Step => "for example `step for r in 0..n { … }`",
        Head::Run => "for example `run ring on (i, *) with data = data[i]`",
        Head::Ensures => "for example `ensures for r in 0..n: data @ r == data @ root`",
        Head::Buffer => "for example `in input[n]`",
        Head::Label => "for example `'gather: for c in 0..n { … }`",
        Head::Schedule => {
            "for example `channels 4`, `pipeline 512 KiB` or `when size < 64 KiB { protocol ll }`"
        }
        Head::Move => "for example `data[c] @ (r + 1) % n = data[c] @ r`",
    }
}
