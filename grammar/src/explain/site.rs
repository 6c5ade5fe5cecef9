//! Where a syntax error stands: the token, its neighbours, and the statement it belongs to.
//!
//! In: tokens and an index. Out: answers to "what is this part of?". The one hard idea: there are no separators and no
//! tree, so the statement is found backwards: it begins at the nearest word that begins one, or at a name that
//! follows a finished operand, since nothing else can.

use crate::error::SyntaxError;
use crate::parse::Input;
use crate::span::Span;
use crate::token::Kind;

/// The place of an error.
pub(super) struct Site<'a> {
    pub(super) input: Input<'a>,
    /// The token at fault; the number of tokens where the item ends too early.
    pub(super) at: usize,
    /// What the grammar could have taken, as LALRPOP spells it.
    pub(super) expected: &'a [String],
}

/// What a token is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    /// The line that begins a declaration.
    Declaration,
    /// Nothing yet: a statement begins here.
    Block,
    Chunks,
    Scratch,
    Let,
    Require,
    Inplace,
    For,
    If,
    Step,
    Run,
    Ensures,
    /// `in`, `out` or `inout` of a collective.
    Buffer,
    Move,
    /// Right behind a label.
    Label,
    /// Anywhere in a schedule.
    Schedule,
}

impl Site<'_> {
    /// The token at fault.
    pub(super) fn found(&self) -> Option<Kind> {
        self.kind(self.at)
    }

    /// The `back`th token before it.
    pub(super) fn before(&self, back: usize) -> Option<Kind> {
        self.at.checked_sub(back).and_then(|index| self.kind(index))
    }

    /// The `on`th token behind it.
    pub(super) fn behind(&self, on: usize) -> Option<Kind> {
        self.kind(self.at + on)
    }

    pub(super) fn kind(&self, index: usize) -> Option<Kind> {
        self.input.tokens.get(index).map(|token| token.kind)
    }

    /// Whether the grammar could have taken this terminal.
    pub(super) fn expects(&self, terminal: &str) -> bool {
        self.expected.iter().any(|one| one.trim_matches('"') == terminal)
    }

    /// The text of a token, or nothing past the end.
    pub(super) fn word(&self, index: usize) -> &str {
        self.input
            .tokens
            .get(index)
            .map_or("", |token| &self.input.text[token.start as usize..token.end as usize])
    }

    /// The text at fault for a title, cut if it is long.
    pub(super) fn shown(&self) -> String {
        if self.at >= self.input.tokens.len() {
            return "the end of the declaration".to_owned();
        }
        let word = self.word(self.at);
        let cut = word.char_indices().nth(30).map(|(cut, _)| cut);
        let more = if cut.is_some() { "…" } else { "" };
        // A string may hold anything.
        let mut shown = String::new();
        for c in word[..cut.unwrap_or(word.len())].chars() {
            if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
        }
        format!("`{shown}{more}`")
    }

    /// Where a token stands; past the end: the last token.
    pub(super) fn span(&self, index: usize) -> Span {
        let last = self.input.tokens.len() - 1;
        self.input.tokens[index.min(last)].span(self.input.file)
    }

    /// An error at this place, without help.
    pub(super) fn error(
        &self,
        code: &'static str,
        title: impl Into<String>,
        label: impl Into<String>,
    ) -> SyntaxError {
        let span = self.span(self.at);
        SyntaxError { code, title: title.into(), span, label: label.into(), help: None, related: None }
    }

    /// An error at this place with what to do.
    pub(super) fn helped(
        &self,
        code: &'static str,
        title: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<String>,
    ) -> SyntaxError {
        SyntaxError { help: Some(help.into()), ..self.error(code, title, label) }
    }

    /// What the token at fault is part of, and where that begins.
    pub(super) fn head(&self) -> (Head, usize) {
        if self.input.tokens[0].kind == Kind::Schedule {
            return (Head::Schedule, 0);
        }
        let mut index = self.at.min(self.input.tokens.len());
        while index > 0 {
            index -= 1;
            let kind = self.input.tokens[index].kind;
            let head = match kind {
                Kind::OpenBrace | Kind::CloseBrace => return (Head::Block, index + 1),
                Kind::CloseParen | Kind::CloseBracket => {
                    index = self.partner(index);
                    continue;
                }
                Kind::Chunks => Head::Chunks,
                Kind::Scratch => Head::Scratch,
                Kind::Let => Head::Let,
                Kind::Require => Head::Require,
                Kind::Inplace => Head::Inplace,
                Kind::For => Head::For,
                Kind::If => Head::If,
                Kind::Step if !self.steps_a_range(index) => Head::Step,
                Kind::Run => Head::Run,
                Kind::Ensures => Head::Ensures,
                Kind::Out | Kind::Inout => Head::Buffer,
                Kind::In if !self.binds(index) => Head::Buffer,
                Kind::Label => Head::Label,
                Kind::Collective | Kind::Algorithm | Kind::Fn => Head::Declaration,
                kind if kind.is_name() && self.begins_move(index) => Head::Move,
                _ => continue,
            };
            // `if` may only be the filter of a `for`, and `for` only what a promise runs over.
            if head == Head::For && index > 0 && self.kind(index - 1) == Some(Kind::Ensures) {
                return (Head::Ensures, index - 1);
            }
            return (head, index);
        }
        (Head::Declaration, 0)
    }

    /// The innermost bracket open at the place, not beyond a brace.
    pub(super) fn bracket(&self) -> Option<usize> {
        let mut index = self.at.min(self.input.tokens.len());
        while index > 0 {
            index -= 1;
            match self.input.tokens[index].kind {
                Kind::OpenBrace | Kind::CloseBrace => return None,
                Kind::CloseParen | Kind::CloseBracket => index = self.partner(index),
                Kind::OpenParen | Kind::OpenBracket => return Some(index),
                _ => {}
            }
        }
        None
    }

    /// The nearest token before the place, in the same bracket, for which `wanted` holds, if none for which `stop`
    /// holds is nearer.
    pub(super) fn back(&self, wanted: impl Fn(Kind) -> bool, stop: impl Fn(Kind) -> bool) -> Option<usize> {
        let mut index = self.at.min(self.input.tokens.len());
        while index > 0 {
            index -= 1;
            let kind = self.input.tokens[index].kind;
            if wanted(kind) {
                return Some(index);
            }
            if kind.opens() || kind == Kind::CloseBrace || stop(kind) {
                return None;
            }
            if kind.closes() {
                index = self.partner(index);
            } else if kind.is_name() && self.begins_move(index) {
                return None;
            }
        }
        None
    }

    /// The bracket that the one at `close` closes.
    fn partner(&self, close: usize) -> usize {
        let mut depth = 0usize;
        for index in (0..=close).rev() {
            let kind = self.input.tokens[index].kind;
            if kind.closes() {
                depth += 1;
            } else if kind.opens() {
                depth -= 1;
                if depth == 0 {
                    return index;
                }
            }
        }
        0
    }

    /// Whether the name at `index` begins a statement: it follows a brace or a finished operand.
    fn begins_move(&self, index: usize) -> bool {
        let Some(last) = index.checked_sub(1) else { return false };
        if self.input.tokens[index].kind == Kind::Rev && self.steps_a_range(index) {
            return false;
        }
        match self.input.tokens[last].kind {
            Kind::OpenBrace | Kind::CloseBrace => true,
            // `'gather: data @ …`
            Kind::Colon => last.checked_sub(1).is_some_and(|at| self.kind(at) == Some(Kind::Label)),
            // Behind `reduce(…)` and `sum(…)` stands what they run over.
            Kind::CloseParen => {
                let open = self.partner(last);
                !open
                    .checked_sub(1)
                    .is_some_and(|word| matches!(self.kind(word), Some(Kind::Reduce | Kind::Sum)))
            }
            // `@ *`, `on *`
            Kind::Star => {
                last.checked_sub(1).is_some_and(|at| matches!(self.kind(at), Some(Kind::At | Kind::On)))
            }
            Kind::CloseBracket | Kind::Number | Kind::Text | Kind::True | Kind::False | Kind::SelfRank => {
                true
            }
            kind => kind.is_name(),
        }
    }

    /// Whether the `in` at `index` belongs to `for x in`.
    fn binds(&self, index: usize) -> bool {
        index >= 2
            && self.input.tokens[index - 1].kind.is_name()
            && matches!(self.input.tokens[index - 2].kind, Kind::For | Kind::Comma | Kind::OpenParen)
    }

    /// Whether a range stands before `index`: `0..n step`.
    fn steps_a_range(&self, index: usize) -> bool {
        let mut index = index;
        while index > 0 {
            index -= 1;
            match self.input.tokens[index].kind {
                Kind::DotDot => return true,
                Kind::CloseParen | Kind::CloseBracket => index = self.partner(index),
                Kind::Number | Kind::SelfRank | Kind::Step => {}
                kind if kind.is_name() || kind.is_operator() => {}
                _ => return false,
            }
        }
        false
    }
}
