//! The lexer: text to tokens.
//!
//! In: a text. Out: flat [`Token`]s (a kind and a byte range, 12 bytes each) without comments, and the comments
//! beside them. The one hard idea: nothing is an error here. Text that belongs to no token, numbers that do not fit,
//! and the operators of other languages (`&&`, `;`, `..=`) are tokens like any other, so that an item's *first*
//! error is whatever stands first in it, and its message can look at what surrounds it.

use logos::Logos;

use crate::span::{FileId, Span};

/// A token: 12 bytes, so that ten million of them stay cheap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// A `//` comment or a `///` line, as found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Remark {
    /// First slash.
    pub(crate) start: u32,
    /// End of the text, blanks at the end of the line left out.
    pub(crate) end: u32,
    /// Nothing but blanks stands before it on its line.
    pub(crate) own_line: bool,
    /// Three slashes, not four, on its own line.
    pub(crate) doc: bool,
    /// How many tokens stand before it.
    pub(crate) before: u32,
}

/// What a text consists of.
#[derive(Debug, Default)]
pub(crate) struct Lexed {
    pub(crate) tokens: Vec<Token>,
    pub(crate) remarks: Vec<Remark>,
    /// The byte offset of the first byte of each line but the first.
    pub(crate) lines: Vec<u32>,
}

/// The kinds of token. Structure words are reserved; the words from `Ranks` to `Size` are names elsewhere.
#[derive(Logos, Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[logos(skip r"[ \t\r\n\x0C]+")]
#[allow(missing_docs, reason = "each kind is named after the text beside it")]
pub enum Kind {
    #[token("collective")]
    Collective,
    #[token("algorithm")]
    Algorithm,
    #[token("fn")]
    Fn,
    #[token("schedule")]
    Schedule,
    #[token("on")]
    On,
    #[token("implements")]
    Implements,
    #[token("chunks")]
    Chunks,
    #[token("scratch")]
    Scratch,
    #[token("let")]
    Let,
    #[token("require")]
    Require,
    #[token("inplace")]
    Inplace,
    #[token("for")]
    For,
    #[token("in")]
    In,
    #[token("out")]
    Out,
    #[token("inout")]
    Inout,
    #[token("ensures")]
    Ensures,
    #[token("if")]
    If,
    #[token("then")]
    Then,
    #[token("else")]
    Else,
    #[token("step")]
    Step,
    #[token("run")]
    Run,
    #[token("with")]
    With,
    #[token("reduce")]
    Reduce,
    #[token("sum")]
    Sum,
    #[token("and")]
    And,
    #[token("or")]
    Or,
    #[token("not")]
    Not,
    #[token("true")]
    True,
    #[token("false")]
    False,
    #[token("self")]
    SelfRank,

    #[token("ranks")]
    Ranks,
    #[token("rev")]
    Rev,
    #[token("none")]
    None,
    #[token("synchronised")]
    Synchronised,
    #[token("ragged")]
    Ragged,
    #[token("int")]
    Int,
    #[token("rank")]
    Rank,
    #[token("bool")]
    Bool,
    // Of schedules.
    #[token("channels")]
    Channels,
    #[token("channel")]
    Channel,
    #[token("protocol")]
    Protocol,
    #[token("pipeline")]
    Pipeline,
    #[token("threads")]
    Threads,
    #[token("transport")]
    Transport,
    #[token("prefer")]
    Prefer,
    #[token("avoid")]
    Avoid,
    #[token("via")]
    Via,
    #[token("switch")]
    Switch,
    #[token("wire")]
    Wire,
    #[token("when")]
    When,
    #[token("size")]
    Size,

    /// A name.
    #[regex("[A-Za-z_][A-Za-z0-9_]*", priority = 1)]
    Name,
    /// Digits, and letters stuck to them.
    #[regex("[0-9][0-9A-Za-z_]*")]
    Number,
    /// `"…"` closed on its line.
    #[regex(r#""([^"\\\r\n]|\\[^\r\n])*""#)]
    Text,

    /// `'name`: a label that a schedule addresses.
    #[regex("'[A-Za-z_][A-Za-z0-9_]*")]
    Label,

    #[token("(")]
    OpenParen,
    #[token(")")]
    CloseParen,
    #[token("[")]
    OpenBracket,
    #[token("]")]
    CloseBracket,
    #[token("{")]
    OpenBrace,
    #[token("}")]
    CloseBrace,
    #[token("@")]
    At,
    #[token("=")]
    Equals,
    #[token("+=")]
    PlusEquals,
    #[token(",")]
    Comma,
    #[token(":")]
    Colon,
    #[token("::")]
    PathSeparator,
    #[token("..")]
    DotDot,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("%")]
    Percent,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("<<")]
    ShiftLeft,
    #[token(">>")]
    ShiftRight,
    #[token("&")]
    Ampersand,
    #[token("^")]
    Caret,
    #[token("|")]
    Bar,
    #[token("==")]
    EqualsEquals,
    #[token("!=")]
    NotEquals,
    #[token("<")]
    Less,
    #[token("<=")]
    LessEquals,
    #[token(">")]
    Greater,
    #[token(">=")]
    GreaterEquals,

    // Not in the language: each has a message that names what is.
    /// `"…` up to the end of the line.
    #[regex(r#""([^"\\\r\n]|\\[^\r\n])*\\?"#)]
    OpenText,
    #[regex(r"[0-9]+\.[0-9]+")]
    Decimal,
    #[token(";")]
    Semicolon,
    #[token("&&")]
    AndAnd,
    #[token("||")]
    OrOr,
    #[token("!")]
    Bang,
    #[token("...")]
    DotDotDot,
    #[token("..=")]
    DotDotEquals,
    #[token(".")]
    Dot,
    #[token("->")]
    #[token("=>")]
    Arrow,
    #[token("-=")]
    #[token("/=")]
    #[token("%=")]
    #[token("&=")]
    #[token("|=")]
    #[token("^=")]
    #[token("<<=")]
    #[token(">>=")]
    OtherAssign,
    #[token(":=")]
    ColonEquals,
    #[token("**")]
    StarStar,
    #[token("/*")]
    BlockComment,
    /// A run of anything else.
    Unknown,

    #[regex(r"//[^\n]*", allow_greedy = true)]
    Comment,
}

/// The tokens, comments and lines of a text of less than 4 GiB.
pub(crate) fn lex(text: &str) -> Lexed {
    let mut lexed = Lexed {
        lines: text
            .bytes()
            .enumerate()
            .filter(|&(_, byte)| byte == b'\n')
            .map(|(at, _)| at as u32 + 1)
            .collect(),
        ..Lexed::default()
    };
    // A byte order mark is no part of the program.
    let skipped = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut lexer = Kind::lexer(&text[skipped..]);
    while let Some(kind) = lexer.next() {
        let range = lexer.span();
        let (start, end) = ((range.start + skipped) as u32, (range.end + skipped) as u32);
        match kind {
            Ok(Kind::Comment) => lexed.remarks.push(remark(text, start, end, lexed.tokens.len() as u32)),
            Ok(kind) => lexed.tokens.push(Token { kind, start, end }),
            Err(()) => match lexed.tokens.last_mut() {
                Some(last) if last.kind == Kind::Unknown && last.end == start => last.end = end,
                _ => lexed.tokens.push(Token { kind: Kind::Unknown, start, end }),
            },
        }
    }
    lexed
}

fn remark(text: &str, start: u32, end: u32, before: u32) -> Remark {
    let body = text[start as usize..end as usize].trim_end();
    let line = text[..start as usize].rfind('\n').map_or(0, |at| at + 1);
    let own_line = text[line..start as usize].chars().all(|c| c.is_whitespace() || c == '\u{feff}');
    let doc = own_line && body.starts_with("///") && !body.starts_with("////");
    Remark { start, end: start + body.len() as u32, own_line, doc, before }
}

impl Kind {
    /// Whether it begins a declaration.
    pub(crate) fn begins_item(self) -> bool {
        matches!(self, Kind::Collective | Kind::Algorithm | Kind::Fn | Kind::Schedule)
    }

    /// Whether it is one of the words that may not be used as a name.
    pub(crate) fn is_reserved(self) -> bool {
        (self as u8) < Kind::Ranks as u8
    }

    /// Whether it can be a name: the words from `ranks` to `size` are names wherever they mean nothing else.
    pub(crate) fn is_name(self) -> bool {
        (Kind::Ranks as u8..=Kind::Name as u8).contains(&(self as u8))
    }

    /// `<`, `==` and so on.
    pub(crate) fn is_comparison(self) -> bool {
        (Kind::EqualsEquals as u8..=Kind::GreaterEquals as u8).contains(&(self as u8))
    }

    /// The operators between (or before) operands, `and`, `or` and `not` among them.
    pub(crate) fn is_operator(self) -> bool {
        (Kind::Star as u8..=Kind::GreaterEquals as u8).contains(&(self as u8))
            || matches!(self, Kind::And | Kind::Or | Kind::Not)
    }

    /// `(`, `[` or `{`.
    pub(crate) fn opens(self) -> bool {
        matches!(self, Kind::OpenParen | Kind::OpenBracket | Kind::OpenBrace)
    }

    /// `)`, `]` or `}`.
    pub(crate) fn closes(self) -> bool {
        matches!(self, Kind::CloseParen | Kind::CloseBracket | Kind::CloseBrace)
    }
}

impl Token {
    /// Where it stands in `file`.
    pub(crate) fn span(self, file: FileId) -> Span {
        Span { file, start: self.start, end: self.end }
    }
}
