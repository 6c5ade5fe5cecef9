//! A file cut into its declarations, before any of them is parsed.
//!
//! In: the tokens of a file. Out: [`Cut`]s, in order, which between them hold every token, and for each the bracket at
//! fault if they do not match. The one hard idea: an item ends at its closing brace, but a word that begins an item at
//! the very start of a line begins one even inside braces. So an unclosed brace costs one item, not the rest of the file.

use std::ops::Range;

use crate::token::{Kind, Lexed, Token};

/// A piece of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Its tokens.
    pub(crate) tokens: Range<usize>,
    /// Whether it begins with the word of a declaration; else it is whatever stood between two.
    pub(crate) declares: bool,
    /// The first bracket at fault.
    pub(crate) fault: Option<Fault>,
}

/// A bracket without its partner, by tokens of its piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Opened at the first token; instead of its partner there was the second one (if not the end of the item).
    Unclosed(usize, Option<usize>),
    /// Closes nothing.
    Unopened(usize),
}

impl Fault {
    /// The token at fault.
    pub(crate) fn token(self) -> usize {
        match self {
            Fault::Unclosed(at, _) | Fault::Unopened(at) => at,
        }
    }
}

/// Cuts a file into declarations and what stands between them.
pub(crate) fn cut(text: &str, lexed: &Lexed) -> Vec<Cut> {
    let tokens = &lexed.tokens;
    let mut cuts = Vec::new();
    let mut from = 0;
    while from < tokens.len() {
        let declares = tokens[from].kind.begins_item();
        let mut brackets = Brackets { text, lexed, open: Vec::new(), suspect: None, fault: None };
        let mut to = from + usize::from(declares);
        while to < tokens.len() {
            let token = tokens[to];
            if token.kind.begins_item() && (brackets.open.is_empty() || starts_line(text, token)) {
                break;
            }
            to += 1;
            if brackets.see(to - 1) && declares {
                break;
            }
        }
        let fault = brackets.finish(from);
        cuts.push(Cut { tokens: from..to, declares, fault: fault.filter(|_| declares) });
        from = to;
    }
    cuts
}

/// Whether nothing at all stands before it on its line.
fn starts_line(text: &str, token: Token) -> bool {
    token.start == 0 || text.as_bytes()[token.start as usize - 1] == b'\n'
}

struct Brackets<'a> {
    text: &'a str,
    lexed: &'a Lexed,
    /// Open brackets, as token indices.
    open: Vec<u32>,
    /// The first brace that was closed by one standing further left than its line: likely the one left open.
    suspect: Option<usize>,
    fault: Option<Fault>,
}

impl Brackets<'_> {
    /// Takes token `at` into account; true if it closed the last open brace.
    fn see(&mut self, at: usize) -> bool {
        let kind = self.lexed.tokens[at].kind;
        if kind.opens() {
            self.open.push(at as u32);
            return false;
        }
        let opener = match kind {
            Kind::CloseParen => Kind::OpenParen,
            Kind::CloseBracket => Kind::OpenBracket,
            Kind::CloseBrace => Kind::OpenBrace,
            _ => return false,
        };
        // What closes it: the innermost of its kind, for `)` and `]` not beyond a brace.
        let partner = self.open.iter().rposition(|&open| {
            let open = self.lexed.tokens[open as usize].kind;
            open == opener || open == Kind::OpenBrace
        });
        let partner = partner.filter(|&index| self.lexed.tokens[self.open[index] as usize].kind == opener);
        let Some(partner) = partner else {
            self.blame(Fault::Unopened(at));
            return kind == Kind::CloseBrace && self.open.is_empty();
        };
        if partner + 1 < self.open.len() {
            self.blame(Fault::Unclosed(self.open[partner + 1] as usize, Some(at)));
        }
        let opened = self.open[partner] as usize;
        self.open.truncate(partner);
        if kind == Kind::CloseBrace {
            if self.suspect.is_none() && self.stands_left_of(at, opened) {
                self.suspect = Some(opened);
            }
            return self.open.is_empty();
        }
        false
    }

    /// The first bracket at fault, now that the piece that begins at token `from` is over.
    fn finish(mut self, from: usize) -> Option<Fault> {
        if let Some(&open) = self.open.first() {
            let brace = self.lexed.tokens[open as usize].kind == Kind::OpenBrace;
            let at = self.suspect.filter(|_| brace).unwrap_or(open as usize);
            self.blame(Fault::Unclosed(at, None));
        }
        self.fault.map(|fault| match fault {
            Fault::Unclosed(at, instead) => Fault::Unclosed(at - from, instead.map(|instead| instead - from)),
            Fault::Unopened(at) => Fault::Unopened(at - from),
        })
    }

    fn blame(&mut self, fault: Fault) {
        if self.fault.is_none_or(|first| fault.token() < first.token()) {
            self.fault = Some(fault);
        }
    }

    /// Whether closing brace `close` begins its line, further left than the line of `open` begins.
    fn stands_left_of(&self, close: usize, open: usize) -> bool {
        let (close, open) = (self.lexed.tokens[close].start, self.lexed.tokens[open].start);
        let indent = |line: u32| {
            self.text[line as usize..].bytes().take_while(|&byte| byte == b' ' || byte == b'\t').count()
                as u32
        };
        let (close_line, open_line) = (self.line(close), self.line(open));
        close_line != open_line
            && close == close_line + indent(close_line)
            && indent(close_line) < indent(open_line)
    }

    /// The first byte of the line of `offset`.
    fn line(&self, offset: u32) -> u32 {
        match self.lexed.lines.partition_point(|&line| line <= offset) {
            0 => 0,
            after => self.lexed.lines[after - 1],
        }
    }
}
