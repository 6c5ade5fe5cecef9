//! Errors in schedules.
//!
//! In: a [`Site`]. Out: an error if it stands in a schedule and is a known mistake. The clause it belongs to is found
//! backwards: each begins with a word of its own.

use super::site::{Head, Site};
use super::statement::nearest;
use crate::error::{SyntaxError, code};
use crate::token::Kind;

const SCHEDULE: &str = "for example `schedule for ring { channels 4 }`";
const CLAUSES: &str =
    "for example `channels 4`, `pipeline 512 KiB`, `protocol ll` or `when size < 64 KiB { … }`";
const CHANNEL: &str = "for example `'gather { channel c % 2 }`";

/// The errors of this module.
pub(super) fn schedule(site: &Site<'_>) -> Option<SyntaxError> {
    if site.head().0 != Head::Schedule {
        return None;
    }
    let Some((clause, start)) = clause(site) else { return outside_clauses(site) };
    let say = |title: &str, label: &str, help: &str| Some(site.helped(code::SYNTAX, title, label, help));
    match clause {
        Kind::Channels | Kind::Threads | Kind::Pipeline => number(site, start),
        Kind::Protocol if site.at == start + 1 => say(
            "the protocol is missing",
            "a protocol must stand here",
            "one of `protocol simple`, `ll`, `ll128` and `auto`",
        ),
        Kind::Wire if site.at == start + 1 => {
            say("the type is missing", "a type must stand here", "one of `wire bf16`, `f16` and `fp8`")
        }
        Kind::Via => say(
            "`via` knows the switch only",
            "`switch` must stand here",
            "for example `via switch`: multicast and gather-reduce in the switch",
        ),
        Kind::Transport => transport(site, start),
        Kind::When => when(site, start),
        Kind::Label => say(
            "a label of a schedule without braces",
            if site.found() == Some(Kind::Colon) {
                "the algorithm puts labels on"
            } else {
                "`{` must stand here"
            },
            CHANNEL,
        )
        .filter(|_| site.at == start + 1),
        Kind::Channel if site.at == start + 1 => say(
            "the channel is missing",
            "an expression must stand here",
            "it may use the variables at the label: `'gather { channel c % 2 }`",
        ),
        _ => None,
    }
    .or_else(|| between(site))
}

/// The word or label that begins the clause at hand.
fn clause(site: &Site<'_>) -> Option<(Kind, usize)> {
    let mut index = site.at.min(site.input.tokens.len());
    while index > 0 {
        index -= 1;
        let kind = site.input.tokens[index].kind;
        match kind {
            Kind::OpenBrace | Kind::CloseBrace => return None,
            // `protocol wire` names a protocol, though an unknown one.
            kind if begins_clause(kind)
                && !matches!(site.kind(index.wrapping_sub(1)), Some(Kind::Protocol | Kind::Wire)) =>
            {
                return Some((kind, index));
            }
            _ => {}
        }
    }
    None
}

fn begins_clause(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Channels
            | Kind::Protocol
            | Kind::Pipeline
            | Kind::Threads
            | Kind::Transport
            | Kind::Via
            | Kind::Wire
            | Kind::When
            | Kind::Label
            | Kind::Channel
    )
}

/// In the line that begins a schedule, or where a clause must begin.
fn outside_clauses(site: &Site<'_>) -> Option<SyntaxError> {
    let say = |title: &str, label: &str| Some(site.helped(code::SYNTAX, title, label, SCHEDULE));
    if site.at == 1 {
        return say("the schedule does not say for which algorithm", "`for` and a name must stand here");
    }
    if site.before(1) == Some(Kind::For) {
        return say("the schedule does not say for which algorithm", "a name must stand here");
    }
    if !(0..site.at).any(|index| site.kind(index) == Some(Kind::OpenBrace)) {
        let label = if site.found() == Some(Kind::OpenParen) {
            "it holds for all parameters"
        } else {
            "`{` must stand here"
        };
        return site
            .expects("{")
            .then(|| site.helped(code::SYNTAX, "the clauses are missing", label, SCHEDULE));
    }
    between(site)
}

/// Where a clause must begin.
fn between(site: &Site<'_>) -> Option<SyntaxError> {
    const WORDS: [&str; 8] =
        ["channels", "protocol", "pipeline", "threads", "transport", "via", "wire", "when"];
    let found = site.found()?;
    let in_label = site.expects("channel");
    if !in_label && !site.expects("channels") {
        return None;
    }
    let word = site.word(site.at);
    let help = if in_label { CHANNEL } else { CLAUSES };
    if found == Kind::Comma {
        return Some(site.helped(code::SYNTAX, "`,` after a clause", "nothing separates clauses", help));
    }
    if !(found.is_reserved() || found.is_name()) {
        return Some(site.helped(code::SYNTAX, format!("unexpected {}", site.shown()), "not a clause", help));
    }
    let title = format!("`{word}` does not begin a clause{}", if in_label { " of a label" } else { "" });
    let braces = found.is_name() && !in_label && site.behind(1) == Some(Kind::OpenBrace);
    let unquoted = || {
        let help = format!("for example `'{word} {{ channel c % 2 }}`");
        Some(site.helped(code::SYNTAX, "a label without its quote", "`'` must stand before it", help))
    };
    // What only a label has within its braces.
    if braces && site.behind(2) == Some(Kind::Channel) {
        return unquoted();
    }
    let meant = match word {
        _ if in_label => Some("channel").filter(|_| word == "channels" || word == "lane"),
        "channel" => {
            let help =
                "`channels 4` is the number of channels; `'gather { channel c % 2 }` gives a move its own";
            return Some(site.helped(code::SYNTAX, title, "did you mean `channels`?", help));
        }
        "if" => Some("when"),
        "slice" | "slices" | "chunk" | "chunks" => Some("pipeline"),
        "proto" => Some("protocol"),
        _ => nearest(word, &WORDS),
    };
    let label = match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None if braces => return unquoted(),
        None if matches!(site.behind(1), Some(Kind::At | Kind::OpenBracket)) => {
            "moves stand in algorithms".to_owned()
        }
        None => "not a clause".to_owned(),
    };
    Some(site.helped(code::SYNTAX, title, label, help))
}

/// `channels 4`, `pipeline 512 KiB`
fn number(site: &Site<'_>, start: usize) -> Option<SyntaxError> {
    let word = site.word(start);
    let help = match site.kind(start) {
        Some(Kind::Pipeline) => "for example `pipeline 512 KiB`",
        Some(Kind::Threads) => "for example `threads 512`",
        _ => "for example `channels 4`",
    };
    if site.expects("INT") {
        let title = format!("`{word}` without its number");
        return Some(site.helped(code::SYNTAX, title, "a plain number must stand here", help));
    }
    site.found().filter(|found| found.is_operator()).map(|_| {
        let title = format!("`{word}` takes a plain number");
        site.helped(code::SYNTAX, title, "nothing is computed here", help)
    })
}

/// `transport prefer A, B`
fn transport(site: &Site<'_>, start: usize) -> Option<SyntaxError> {
    const HELP: &str = "for example `transport prefer nvlink, shared` or `transport avoid tcp`";
    if site.at == start + 1 {
        let title = "`transport` says what is preferred or avoided";
        return Some(site.helped(code::SYNTAX, title, "`prefer` or `avoid` must stand here", HELP));
    }
    let named = site.before(1) == Some(Kind::Comma) || site.at == start + 2;
    named.then(|| site.helped(code::SYNTAX, "a transport is missing", "a transport must stand here", HELP))
}

/// `when size < 64 KiB { … }`
fn when(site: &Site<'_>, start: usize) -> Option<SyntaxError> {
    const HELP: &str = "for example `when size < 64 KiB { protocol ll }`";
    let say = |title: &str, label: &str| Some(site.helped(code::SYNTAX, title, label, HELP));
    if site.at == start + 1 {
        return say("`when` speaks of the size of a call", "`size` must stand here");
    }
    if site.at == start + 2 {
        return say("`when` compares the size of a call", "a comparison must stand here");
    }
    if site.expects("INT") {
        return say("the size to compare with is missing", "a size must stand here");
    }
    if matches!(site.found(), Some(Kind::And | Kind::Or)) {
        return say("a `when` has one comparison", "a second one; the first `when` that matches wins");
    }
    if site.found().is_some_and(|found| found.is_operator()) {
        return say("a `when` has one comparison", "nothing is computed here");
    }
    site.expects("{")
        .then(|| site.helped(code::SYNTAX, "a `when` without braces", "`{` must stand here", HELP))
}
