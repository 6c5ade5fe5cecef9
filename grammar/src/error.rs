//! Syntax errors as plain data: what is wrong, where, what would be right. Wording lives here because the
//! grammar alone knows what it expected; rendering is the compiler's `diagnostics`.

use crate::span::Span;

/// A syntax error: the first of its item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The stable code, `coll::…`.
    pub code: &'static str,
    /// A lower-case fragment that stands alone.
    pub title: String,
    /// The text at fault.
    pub span: Span,
    /// What is wrong there, in under 50 columns.
    pub label: String,
    /// What to do, with one right example.
    pub help: Option<String>,
    /// A second place that belongs to it (an opening bracket, say).
    pub related: Option<(Span, String)>,
}

/// The stable codes of syntax errors.
pub mod code {
    /// Anything that does not fit and is none of the others.
    pub const SYNTAX: &str = "coll::syntax";
    /// A character that belongs to no token.
    pub const UNEXPECTED_CHARACTER: &str = "coll::unexpected_character";
    /// An integer beyond 64 bits.
    pub const INTEGER_TOO_LARGE: &str = "coll::integer_too_large";
    /// A string that does not end on its line.
    pub const UNTERMINATED_STRING: &str = "coll::unterminated_string";
    /// A bracket that is never closed, or closed by another kind.
    pub const UNCLOSED_DELIMITER: &str = "coll::unclosed_delimiter";
    /// A closing bracket that closes nothing.
    pub const UNOPENED_DELIMITER: &str = "coll::unopened_delimiter";
    /// `a < b < c`.
    pub const CHAINED_COMPARISON: &str = "coll::chained_comparison";
    /// `1..2..3`, `0...n`.
    pub const CHAINED_RANGE: &str = "coll::chained_range";
    /// A structure word where a name must stand.
    pub const RESERVED_WORD: &str = "coll::reserved_word";
    /// A place without `@ rank`.
    pub const MISSING_RANK: &str = "coll::missing_rank";
    /// Brackets, blocks or operators nested beyond the limit.
    pub const NESTING_TOO_DEEP: &str = "coll::nesting_too_deep";
    /// `in input[n] ragged`.
    pub const RAGGED_UNSUPPORTED: &str = "coll::ragged_unsupported";
    /// Bytes that are not UTF-8.
    pub const NOT_UTF8: &str = "coll::not_utf8";
    /// A text longer than the limit.
    pub const SOURCE_TOO_LARGE: &str = "coll::source_too_large";
    /// More errors than are worth showing.
    pub const TOO_MANY_ERRORS: &str = "coll::too_many_errors";

    /// All of them.
    pub const ALL: [&str; 15] = [
        SYNTAX,
        UNEXPECTED_CHARACTER,
        INTEGER_TOO_LARGE,
        UNTERMINATED_STRING,
        UNCLOSED_DELIMITER,
        UNOPENED_DELIMITER,
        CHAINED_COMPARISON,
        CHAINED_RANGE,
        RESERVED_WORD,
        MISSING_RANK,
        NESTING_TOO_DEEP,
        RAGGED_UNSUPPORTED,
        NOT_UTF8,
        SOURCE_TOO_LARGE,
        TOO_MANY_ERRORS,
    ];
}
