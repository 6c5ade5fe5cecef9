//! One declaration: tokens to tree, or its first error.
//!
//! In: the tokens of one item as `items` cut them. Out: an `ast::Item`, or the first thing wrong in it. Glue between
//! the lexer's flat tokens and LALRPOP's table-driven parser; `items` has made sure that the tree cannot get deep.

use lalrpop_util::{ParseError, lalrpop_mod};

use crate::ast;
use crate::error::SyntaxError;
use crate::explain;
use crate::literal;
use crate::span::FileId;
use crate::token::{Kind, Token};

lalrpop_mod!(
    #[allow(
        clippy::all,
        clippy::pedantic,
        clippy::nursery,
        clippy::allow_attributes_without_reason,
        missing_docs,
        unreachable_pub,
        unused_imports,
        unused_qualifications,
        reason = "generated"
    )]
    coll
);

/// A token as the grammar sees it.
#[derive(Debug, Clone)]
pub(crate) enum Tok<'text> {
    /// A word or a sign.
    Word(Kind),
    /// A name.
    Name(&'text str),
    /// A label, its quote included.
    Label(&'text str),
    /// A number that fits.
    Int(i64),
    /// A string, without its quotes and escapes.
    Text(String),
}

/// A clause of a collective, before the three kinds are sorted apart.
#[derive(Debug)]
pub(crate) enum Clause {
    /// `in input[n]`
    Buffer(ast::BufferDecl),
    /// `inplace input = output`
    Inplace(ast::Inplace),
    /// `ensures …`
    Ensures(Box<ast::Ensures>),
}

/// The tokens of one item, and the text they stand in.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    pub(crate) file: FileId,
    pub(crate) text: &'a str,
    /// At least one.
    pub(crate) tokens: &'a [Token],
}

/// Parses one item, or says at which token that ended and why.
pub(crate) fn item(input: Input<'_>) -> Result<ast::Item, (usize, Box<SyntaxError>)> {
    let Input { file, text, tokens } = input;
    let stream = tokens.iter().map(|&token| tok(file, text, token));
    let (at, expected) = match coll::ItemParser::new().parse(file, stream) {
        Ok(item) => return Ok(item),
        Err(ParseError::User { error }) => {
            let at = tokens.partition_point(|token| token.end <= error.span.start);
            return Err((at, error));
        }
        Err(ParseError::UnrecognizedToken { token: (start, _, _), expected }) => (start, expected),
        Err(ParseError::UnrecognizedEof { expected, .. }) => (u32::MAX, expected),
        Err(ParseError::ExtraToken { token: (start, _, _) }) => (start, Vec::new()),
        Err(ParseError::InvalidToken { location }) => (location, Vec::new()),
    };
    let at = tokens.partition_point(|token| token.start < at);
    Err((at, Box::new(explain::unexpected(input, at, &expected))))
}

fn tok(file: FileId, text: &str, token: Token) -> Result<(u32, Tok<'_>, u32), Box<SyntaxError>> {
    let slice = &text[token.start as usize..token.end as usize];
    let tok = match token.kind {
        Kind::Name => Tok::Name(slice),
        Kind::Label => Tok::Label(slice),
        Kind::Number => Tok::Int(literal::integer(file, token, slice)?),
        Kind::Text => Tok::Text(literal::text(file, token, slice)?),
        Kind::Unknown => return Err(Box::new(literal::unknown(file, token, slice))),
        Kind::OpenText => return Err(Box::new(literal::open_text(file, token))),
        kind => Tok::Word(kind),
    };
    Ok((token.start, tok, token.end))
}
