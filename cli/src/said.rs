//! What is said to programs (diagnostics and failures as JSON), and of schedules to people.
//!
//! In: a diagnostic, or how a command failed; what a schedule came to. Out: plain data to serialise (docs/cli.md has the
//! fields); a line.

use compiler::choice::{Choice, Verdict};
use compiler::diagnostics::Diagnostic;
use compiler::source::Sources;
use plan::plan::ProofStatus;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::Output;

/// Which part of a schedule holds, and what that asks for: none without a schedule.
pub(crate) fn schedule(choice: &Choice) -> Option<String> {
    let said = choice.said()?;
    let asked = &choice.plan;
    let mut clauses = Vec::new();
    if let Some(copies) = choice.copies {
        clauses.push(format!("channels {copies}"));
    }
    if *asked != plan::schedule::Schedule::default() {
        clauses.push(asked.to_string());
    }
    if !choice.labels.is_empty() {
        let labels: Vec<String> = choice.labels.iter().map(|label| format!("'{label}")).collect();
        clauses.push(format!("channels chosen for {}", labels.join(", ")));
    }
    let clauses = if clauses.is_empty() { "nothing is asked for".to_string() } else { clauses.join("; ") };
    Some(format!("schedule: {said}: {clauses}"))
}

/// Notes that no `when` of a schedule holds, where that is for want of a size.
pub(crate) fn no_size(choice: &Choice, output: &mut Output) {
    if choice.tried.iter().any(|tried| tried.verdict == Verdict::NoSize) {
        output.note("note: no size is given, so that no `when` of the schedule holds; give one with --bytes");
    }
}

/// What was proved of an algorithm, and how: the beginning of every summary.
pub(crate) fn proved(
    algorithm: &str,
    collective: &str,
    shape: &[u32],
    params: &[(String, i64)],
    proof: ProofStatus,
) -> String {
    let params: String = params.iter().map(|(name, value)| format!(", {name} = {value}")).collect();
    format!(
        "{algorithm} implements {collective} on {}{params}: proved ({})",
        crate::shape::show_ranks(shape),
        status(proof),
    )
}

/// What has been followed to prove a program or a plan, in two words.
pub(crate) fn status(status: ProofStatus) -> &'static str {
    match status {
        ProofStatus::AllRanks => "all ranks",
        ProofStatus::BySymmetry => "by symmetry",
        ProofStatus::None => "none",
    }
}

/// A diagnostic.
#[derive(Debug, Serialize, PartialEq)]
pub(crate) struct Said {
    code: &'static str,
    message: String,
    file: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
    help: Option<String>,
}

/// The answer of a command that has no other.
#[derive(Debug, Serialize)]
pub(crate) struct Failed {
    /// What is also said on standard error.
    error: String,
    /// The exit status.
    status: u8,
    diagnostics: Vec<Said>,
}

impl Said {
    /// A diagnostic, at its first label.
    pub(crate) fn new(diagnostic: &Diagnostic, sources: &Sources) -> Said {
        let span = diagnostic.labels.first().map(|label| label.span);
        let position = span.map(|span| sources.line_column(span));
        Said {
            code: diagnostic.code,
            message: diagnostic.title.clone(),
            file: span.map(|span| sources.file(span.file).name.clone()),
            line: position.map(|(line, _)| line),
            column: position.map(|(_, column)| column),
            help: diagnostic.help.clone(),
        }
    }
}

impl Failed {
    /// How a command failed, and the diagnostics that told why.
    pub(crate) fn new(failure: &Failure, diagnostics: Vec<Said>) -> Failed {
        let message = failure.to_string();
        let error = match (message.strip_prefix("error: "), diagnostics.first()) {
            (Some(message), _) => message.to_string(),
            (None, Some(first)) => first.message.clone(),
            (None, None) => "the input is wrong; standard error says why".to_string(),
        };
        Failed { error, status: failure.status(), diagnostics }
    }
}
