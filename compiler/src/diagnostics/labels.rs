//! Labels at moves: where they stand, the loop variables as they stood, the `run`s that led there.
//!
//! In: a move, a text. Out: labels no wider than [`LABEL`] columns; what does not fit is left out from the outermost
//! loop inwards.

use super::{Diagnostic, Label};
use crate::trace::{Bindings, MoveId, Trace};

/// How the loop variables of a move are found.
pub type Ask<'a> = dyn FnMut(MoveId) -> Bindings + 'a;

/// Columns that a label may take.
const LABEL: usize = 50;

/// The move as the primary label, with its loop variables. Within a `run` the outermost `run` is the primary one: a callee
/// is proved by itself before, so it is its use that is at fault.
pub(crate) fn at_move(trace: &Trace, mv: MoveId, text: &str, bindings: &mut Ask<'_>) -> Vec<Label> {
    let mut diagnostic = Diagnostic::error("", "");
    runs(&mut diagnostic, trace, mv);
    diagnostic.labels.reverse();
    let here = match diagnostic.labels.first_mut() {
        None => text,
        Some(run) => {
            run.text = fit(&[format!("{text}, in this run"), "in this run".to_string()]);
            "here"
        }
    };
    let text = with(here, &bindings(mv));
    diagnostic.labels.push(Label { span: trace.origin(mv).span, text });
    diagnostic.labels
}

/// A further label at a move, unless it is the same text as the primary one.
pub(crate) fn also(diagnostic: &mut Diagnostic, trace: &Trace, mv: MoveId, text: &str) {
    let span = trace.origin(mv).span;
    if diagnostic.labels.iter().all(|label| label.span != span) {
        diagnostic.labels.push(Label { span, text: text.to_string() });
    }
}

/// Labels at the `run`s that led to a move, innermost first.
pub(crate) fn runs(diagnostic: &mut Diagnostic, trace: &Trace, mv: MoveId) {
    let mut parent = trace.origin(mv).parent;
    while let Some(origin) = parent.map(|id| &trace.origins[id.0 as usize]) {
        diagnostic.labels.push(Label { span: origin.span, text: "in this run".to_string() });
        parent = origin.parent;
    }
}

/// `text, with c = 3, hop = 5`: as many of the innermost variables as fit.
pub(crate) fn with(text: &str, bindings: &Bindings) -> String {
    let all: Vec<String> = bindings.0.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let mut texts: Vec<String> =
        (0..all.len()).map(|skip| format!("{text}, with {}", all[skip..].join(", "))).collect();
    texts.push(text.to_string());
    fit(&texts)
}

/// The first text that fits a label; else the last, cut.
pub(crate) fn fit(texts: &[String]) -> String {
    let fits = texts.iter().find(|text| text.chars().count() <= LABEL);
    match (fits, texts.last()) {
        (Some(text), _) => text.clone(),
        (None, Some(text)) => text.chars().take(LABEL - 1).chain(['…']).collect(),
        (None, None) => String::new(),
    }
}
