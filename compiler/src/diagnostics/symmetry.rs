//! Words for why a program was not proved by symmetry.
//!
//! In: a [`Refusal`]. Out: a warning: nothing is wrong with the program, but it has to be followed at every rank.

use super::Diagnostic;
use crate::symmetry::{Refusal, Unfolded, Unlike, Why};
use crate::trace::Trace;

/// Why not.
pub fn refusal(refusal: &Refusal, algorithm: &str) -> Diagnostic {
    let title = format!("{algorithm} is not seen to do the same at all ranks");
    let found = Diagnostic::warning("coll::not_symmetric", title).label(refusal.span, what(&refusal.why));
    let found = match &refusal.why {
        Why::Order { other } if *other != refusal.span => found.label(*other, "this is the other move"),
        _ => found,
    };
    match help(&refusal.why) {
        Some(help) => found.help(help),
        None => found,
    }
}

/// Why the steps of one rank cannot be made without those of the others; its promise is proved by symmetry all the same.
pub fn unfolded(why: &Unfolded, trace: &Trace) -> Diagnostic {
    let title =
        format!("the steps of one rank of {} are not made without those of the others", trace.algorithm);
    let told = match why {
        Unfolded::Everyone => "every rank has so many partners that their programs come to the whole",
        Unfolded::Parts => {
            "runs of cells, or readers of one message, are not the same at each rank, taken round"
        }
        Unfolded::Order => "operands are combined in rank order, which is another one at each rank",
        Unfolded::Direct => "access to other ranks' memory is laid out for all ranks together",
        Unfolded::Unlike => "ranks that do the same were laid out in different ways",
    };
    let help = match why {
        Unfolded::Direct => "leave out --direct",
        Unfolded::Unlike => "try other numbers with --slots or --blocks, or --multicast flat",
        Unfolded::Everyone | Unfolded::Parts | Unfolded::Order => {
            "`-o FILE` and `--emit plan` take the steps of all ranks"
        }
    };
    Diagnostic::warning("coll::not_folded", title).label(trace.implements, told).help(help)
}

/// A folded plan that is not its program: the compiler's own mistake, caught before it could run.
pub fn unlike(unlike: &Unlike, trace: &Trace) -> Diagnostic {
    let title = match unlike {
        Unlike::Shape => "the plan is for another world or other buffers than the program".to_string(),
        Unlike::Promise => "the plan promises something else than the program".to_string(),
        Unlike::Value { place, buffer, form } => format!(
            "the plan combines cell {} of `{buffer}` at rank {} in another order than the program ({})",
            place.cell,
            place.rank.0,
            form.name(),
        ),
    };
    Diagnostic::error("plan::v6_expression", title)
        .label(trace.implements, "")
        .help("this is a fault of rcc: please report it with the program")
}

fn what(why: &Why) -> String {
    let text = match why {
        Why::OneRank => "there is one rank only",
        Why::Absent { buffer } => {
            return format!("`{buffer}` exists at one rank only, which is unlike the others");
        }
        Why::Value => "this is not seen to go round with the ranks, nor to be the same at all of them",
        Why::Rank => "this does not name the next rank when all ranks move on by one",
        Why::Index => "this does not move on as the other indices of this buffer do",
        Why::Sides => "this does not move on as the other side does",
        Why::Bounds => "this range is not the same at all ranks",
        Why::Filter => "this holds at some ranks and not at others",
        Why::Condition => "this is true at some ranks and not at others",
        Why::Run => "only an algorithm's own moves are looked at, not those of what it runs",
        Why::Order { .. } => {
            "this and another move of one place come in an order that is another one elsewhere"
        }
        Why::Promise => "what is promised is not the same for all ranks",
        Why::Inplace => "these overlaps are not the same at all ranks",
        Why::TooMuch => "looking for it was given up: there is too much to try",
    };
    text.to_string()
}

fn help(why: &Why) -> Option<&'static str> {
    match why {
        Why::Order { .. } => {
            Some("where all ranks act at once, say so with `step`; else put the loop over ranks inside")
        }
        Why::Rank | Why::Index => {
            Some("indices that go round are taken modulo the number there are, as in (r + 1) % n")
        }
        _ => None,
    }
}
