//! The `.coll` language: text to syntax tree, and back.
//!
//! In: bytes. Out: an [`ast::File`] **and** every syntax error found (never one or the other), or the text in its
//! canonical layout. Knows nothing of ranks, CUDA or IO. The one hard idea: recovery is at item level. A file is
//! cut into items before it is parsed, so an error in one never hides another item or cascades into it.

pub mod ast;
pub mod error;
pub mod print;
pub mod span;
pub mod token;

mod explain;
mod items;
mod literal;
mod nesting;
mod parse;
mod refuse;
mod remark;
mod same;

use error::SyntaxError;
use items::Cut;
use parse::Input;
use span::FileId;
use token::Token;

pub use same::eq_modulo_spans;

/// How much a text may ask for; each is checked before memory or stack is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseLimits {
    /// Levels of brackets, blocks and operators within each other; see [`ParseLimits::MOST_NESTING`].
    pub nesting: u32,
    /// Bytes of the text.
    pub bytes: u64,
    /// Errors reported; one more says that there are others.
    pub errors: u32,
}

impl ParseLimits {
    /// The nesting that may be asked for: the tree is walked by recursion, on stacks of 2 MiB.
    pub const MOST_NESTING: u32 = 500;
}

impl Default for ParseLimits {
    fn default() -> ParseLimits {
        ParseLimits { nesting: 200, bytes: 4 << 20, errors: 100 }
    }
}

/// What a text holds: the declarations that are right, and an error for each that is not.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The tree.
    pub file: ast::File,
    /// The first error of each item, in order of position.
    pub errors: Vec<SyntaxError>,
}

/// Parses a text.
pub fn parse(file: FileId, text: &str, limits: &ParseLimits) -> Parsed {
    // A span counts bytes in 32 bits.
    let most = limits.bytes.min(u64::from(u32::MAX));
    if text.len() as u64 > most {
        return refused(refuse::too_large(file, text.len(), most));
    }
    let lexed = token::lex(text);
    let mut items = Vec::new();
    let mut errors = Vec::new();
    let mut comments = Vec::new();
    // Remarks before this one have found their place.
    let mut placed = 0;
    for cut in items::cut(text, &lexed) {
        if errors.len() as u64 >= u64::from(limits.errors) {
            errors.push(refuse::too_many(lexed.tokens[cut.tokens.start].span(file), limits.errors));
            break;
        }
        let mut item = match declaration(file, text, &lexed.tokens[cut.tokens.clone()], &cut, limits) {
            Ok(item) => item,
            Err(error) => {
                errors.push(*error);
                continue;
            }
        };
        let docs = remark::docs_before(&lexed.remarks, placed, cut.tokens.start);
        comments.extend(lexed.remarks[placed..docs.start].iter().map(|one| remark::comment(file, text, one)));
        placed = docs.end;
        *remark::docs_of(&mut item) = lexed.remarks[docs].iter().map(|one| remark::doc(text, one)).collect();
        items.push(item);
    }
    comments.extend(lexed.remarks[placed..].iter().map(|one| remark::comment(file, text, one)));
    Parsed { file: ast::File { items, comments, lines: lexed.lines }, errors }
}

/// Parses a text that may not be UTF-8.
pub fn parse_bytes(file: FileId, bytes: &[u8], limits: &ParseLimits) -> Parsed {
    match std::str::from_utf8(bytes) {
        Ok(text) => parse(file, text, limits),
        Err(error) => refused(refuse::not_utf8(file, bytes, error)),
    }
}

fn refused(error: SyntaxError) -> Parsed {
    let file = ast::File { items: Vec::new(), comments: Vec::new(), lines: Vec::new() };
    Parsed { file, errors: vec![error] }
}

/// One declaration, or the first thing wrong in it.
fn declaration(
    file: FileId,
    text: &str,
    tokens: &[Token],
    cut: &Cut,
    limits: &ParseLimits,
) -> Result<ast::Item, Box<SyntaxError>> {
    let input = Input { file, text, tokens };
    if !cut.declares {
        return Err(Box::new(explain::between(input)));
    }
    let nesting = limits.nesting.min(ParseLimits::MOST_NESTING);
    if let Some(at) = nesting::too_deep(tokens, nesting) {
        return Err(Box::new(refuse::too_deep(tokens[at].span(file), nesting)));
    }
    match (parse::item(input), cut.fault) {
        (Ok(item), None) => Ok(item),
        // What stands behind a bracket without its partner cannot be judged.
        (Err((at, error)), fault) if fault.is_none_or(|fault| at < fault.token()) => Err(error),
        (_, Some(fault)) => Err(Box::new(refuse::bracket(input, fault))),
        (Err((_, error)), None) => Err(error),
    }
}
