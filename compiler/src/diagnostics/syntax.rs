//! Syntax errors as diagnostics. Their wording comes with them: the grammar alone knows what it expected.
//!
//! In: `grammar::error::SyntaxError`. Out: a [`Diagnostic`] with the same words.

use grammar::error::SyntaxError;

use super::Diagnostic;

/// The diagnostic of a syntax error.
pub fn syntax(error: &SyntaxError) -> Diagnostic {
    let mut diagnostic =
        Diagnostic::error(error.code, error.title.clone()).label(error.span, error.label.clone());
    if let Some((span, text)) = &error.related {
        diagnostic = diagnostic.label(*span, text.clone());
    }
    diagnostic.help.clone_from(&error.help);
    diagnostic
}
