//! All wording: stage errors (plain data) to diagnostics, and diagnostics to text.
//!
//! In: the error data of `grammar`, `check`, `elaborate`, `graph`, `lower`. Out: [`Diagnostic`]s; `render` draws them.
//! House style: the title is a lower-case fragment that stands alone; the primary label says what is wrong here;
//! secondary labels name the cause elsewhere; values are shown (`r = 7`, `n = 8`); one help, an action.

pub mod check;
pub mod elaborate;
pub mod explain;
pub mod graph;
pub mod history;
mod labels;
mod places;
mod promise;
pub mod render;
pub(crate) mod resources;
mod schedule;
mod short;
pub mod symmetry;
pub mod syntax;
pub mod validate;
pub mod violation;

use grammar::span::Span;

/// What the user is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable code, `coll::snake_case`; `rcc explain CODE` tells more.
    pub code: &'static str,
    /// Error or warning.
    pub severity: Severity,
    /// A lower-case fragment that stands alone.
    pub title: String,
    /// The primary label first.
    pub labels: Vec<Label>,
    /// What to do.
    pub help: Option<String>,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Nothing is produced.
    Error,
    /// Something is produced; it may not be what was meant.
    Warning,
}

/// Text under a piece of source; under 50 columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// What is underlined.
    pub span: Span,
    /// What is said; may be empty.
    pub text: String,
}

impl Diagnostic {
    /// An error without labels yet.
    pub fn error(code: &'static str, title: impl Into<String>) -> Diagnostic {
        Diagnostic { code, severity: Severity::Error, title: title.into(), labels: Vec::new(), help: None }
    }

    /// A warning without labels yet.
    pub fn warning(code: &'static str, title: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, title) }
    }

    /// With one more label; the first is the primary one.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// With what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }
}
