//! Wording of what `resources` finds: a rank that needs more than the target has.
//!
//! In: the fault, the trace, a way to find the loop variables of a move. Out: a [`Diagnostic`] at the move that needs one too
//! many.

use super::Diagnostic;
use super::labels::{Ask, at_move};
use crate::resources::{Fault, Resource};
use crate::trace::Trace;

/// A fault in words.
pub(crate) fn fault(fault: &Fault, trace: &Trace, bindings: &mut Ask<'_>) -> Diagnostic {
    let Fault { rank, what, needs, has, copies, ref target, mv, peer, .. } = *fault;
    let (one, many, limit) = match what {
        Resource::Blocks => ("block", "blocks", "blocks"),
        Resource::ChannelEnds => ("channel end", "channel ends", "channels"),
        Resource::Connections => ("connection", "connections", "connections"),
    };
    let noun = |count: u32| if count == 1 { one } else { many };
    let title = format!("rank {} needs {needs} {}: on `{target}` it has {has}", rank.0, noun(needs));
    let mut diagnostic = Diagnostic::error("coll::target_limit", title);
    let each = has / copies + 1;
    let text = match peer {
        Some(peer) => format!("{one} {each} of rank {}, to rank {}", rank.0, peer.0),
        None => format!("{one} {each} of rank {}", rank.0),
    };
    diagnostic.labels = match mv {
        Some(mv) => at_move(trace, mv, &text, bindings),
        None => vec![super::Label { span: trace.name_span, text: format!("rank {} needs too many", rank.0) }],
    };
    let help = match (copies > 1, what) {
        (true, _) => format!("`channels {copies}` makes {copies} copies, each with its own: take fewer"),
        (false, Resource::Blocks) if has > 0 => {
            format!("`--blocks {has}` gives each rank that many; each then does more")
        }
        (false, Resource::Blocks) => {
            format!("a rank does nothing without a block; `--limit {limit}={needs}` raises the limit")
        }
        (false, _) => format!(
            "use an algorithm with fewer partners for each rank, or another target; `--limit {limit}={needs}` raises the limit"
        ),
    };
    diagnostic.help(help)
}
