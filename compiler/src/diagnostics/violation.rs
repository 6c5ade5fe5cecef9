//! Wording of what `plan::verify` finds in a plan that was just made.
//!
//! In: a violation, the sources. Out: a [`Diagnostic`] at the moves whose steps are at fault. A plan from a file tells of itself
//! (`Display` of a violation), since its sources may be anywhere; here they are at hand. And the advice is another one: of what is
//! wrong with fresh steps the user can mend nothing but how much is asked for. All else is a fault of rcc.

use plan::plan::Section;
use plan::verify::{Fault, IdFault, Site, SymbolicFault, Violation};

use super::labels::fit;
use super::{Diagnostic, Label};
use crate::schedule::spans;
use crate::source::Sources;

/// Steps that are told in full in a report.
const STEPS: usize = 6;

/// A violation in words.
pub fn violation(violation: &Violation, sources: &Sources) -> Diagnostic {
    let mut diagnostic = Diagnostic::error(violation.code(), violation.fault.to_string());
    let found =
        violation.sites.iter().filter_map(|site| Some((site, spans::find(site.line.as_ref()?, sources)?)));
    diagnostic.labels = found.map(|(site, span)| Label { span, text: told(site) }).collect();
    diagnostic.help(help(violation))
}

/// A step, in a label: its place, and what it has to do with it.
fn told(site: &Site) -> String {
    let Site { label, rank, block, index, .. } = site;
    let place = format!("rank {}, block {block}, step {index}", rank.0);
    match label.is_empty() {
        true => fit(&[place]),
        false => fit(&[format!("{place}: {label}"), format!("rank {}: {label}", rank.0)]),
    }
}

/// What to do.
fn help(violation: &Violation) -> String {
    match &violation.fault {
        &Fault::Ids(IdFault::Limit { what, found, .. }) => enough(what, found),
        // Where it was given up: twice as much.
        &Fault::Symbolic(SymbolicFault::Limit { what, limit }) => enough(what, limit.saturating_mul(2)),
        Fault::Target(_) | Fault::More { .. } => violation.help().to_string(),
        _ => {
            let steps = violation.sites.iter().take(STEPS).map(|site| format!("\n- {}", place(site)));
            let steps: String = steps.collect();
            format!("this is a fault of rcc: please report it with the program{steps}")
        }
    }
}

/// Which limit to raise, and how far, so that there may be so many of something: by [`crate::limits::Limits::of_plan`].
fn enough(what: &str, wanted: u64) -> String {
    let (name, each) = match what {
        "places" | "pairs of buffer and rank" | "overlaps" => ("places", 2),
        "clauses × cells of the promise" | "operands of the promise" => ("places", 2),
        "steps" | "blocks" | "channel readers" | "micro-steps" => ("moves", 10),
        "operands" | "accesses" => ("moves", 25),
        "visits of values" => ("moves", 10),
        "waits" | "waits × blocks of a rank" => {
            return "use fewer ranks, coarser chunks, or `--blocks 1`, where steps need not wait for other blocks"
                .to_string();
        }
        _ => return "use fewer ranks".to_string(),
    };
    // Most are counted in 32 bits, whatever the limit.
    if wanted >= u64::from(u32::MAX) - 2 && what != "visits of values" {
        return "use fewer ranks or coarser chunks".to_string();
    }
    format!("use fewer ranks or coarser chunks; `--limit {name}={}` raises the limit", wanted.div_ceil(each))
}

/// A step, for a report.
fn place(site: &Site) -> String {
    let Site { rank, block, index, does, .. } = site;
    let section = match site.section {
        Section::Prologue => "prologue step",
        Section::Body => "step",
        Section::Epilogue => "epilogue step",
    };
    format!("rank {}, block {block}, {section} {index}: {does}", rank.0)
}
