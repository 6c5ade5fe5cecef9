//! Wording of V6: the compiler's own mistakes, caught before they could run.
//!
//! In: how a plan differs from its trace, and where the program writes what differs. Out: diagnostics that say so, with the expressions side by side.

use grammar::span::Span;

use super::Diagnostic;
use crate::validate::{Fault, FaultKind};

/// A difference in words.
pub fn differs(fault: &Fault, span: Span) -> Diagnostic {
    let title = match &fault.kind {
        FaultKind::Shape => "the plan is for another number of ranks or cells than the program".to_string(),
        FaultKind::Buffer { name } => format!("the plan has no such buffer as the program's `{name}`"),
        FaultKind::Promise => "the plan promises something else than the program".to_string(),
        FaultKind::Value { place, buffer, form, found: None, others, .. } => format!(
            "the plan never writes cell {} of `{buffer}` at rank {} ({}){}",
            place.cell,
            place.rank.0,
            form.name(),
            more(*others)
        ),
        FaultKind::Value { place, buffer, form, others, .. } => format!(
            "the plan combines cell {} of `{buffer}` at rank {} in another order than the program ({}){}",
            place.cell,
            place.rank.0,
            form.name(),
            more(*others)
        ),
    };
    let mut diagnostic = Diagnostic::error("plan::v6_expression", title).label(span, "");
    if let FaultKind::Value { wanted, found: Some(found), .. } = &fault.kind {
        diagnostic =
            diagnostic.help(format!("the program says {wanted}, the plan {found}; this is a fault of rcc"));
    } else {
        diagnostic = diagnostic.help("this is a fault of rcc: please report it with the program");
    }
    diagnostic
}

fn more(others: u32) -> String {
    if others == 0 { String::new() } else { format!(", and {others} more") }
}
