//! The canonical layout of a program, for `rcc fmt`.
//!
//! In: an [`ast::File`]. Out: its text: one statement a line, four columns a level, at most 110 columns where lines can be
//! broken. Kept as written: comments, docs, parentheses, single blank lines, and blocks of one statement on one
//! line. The one hard idea: comments are no part of the tree, so each statement first lays claim to those inside it;
//! those between the elements of a list stay there, any other moves up before the statement.

mod comments;
mod doc;
mod expression;
mod schedule;
mod statement;

use crate::ast::{self, ClauseKind, Comment, Ensures, Stmt};
use crate::span::Span;
use comments::{Comments, text};
use doc::{Doc, INDENT, WIDTH};

/// The text of a file in its canonical layout.
pub fn print(file: &ast::File) -> String {
    let mut printer = Printer { out: String::new(), comments: Comments::new(file), last: None };
    let mut after = After::Nothing;
    for (index, item) in file.items.iter().enumerate() {
        let next = file.items.get(index + 1).map_or(u32::MAX, |next| next.span().start);
        printer.item(item, after, next);
        after = if matches!(item, ast::Item::Fn(_)) { After::Function } else { After::Block };
    }
    printer.own_lines(u32::MAX, 0, after);
    printer.out
}

/// What stands before an item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Nothing,
    Function,
    Block,
}

struct Printer<'a> {
    out: String,
    comments: Comments<'a>,
    /// The end of what was printed last in this block, to know whether a blank line followed.
    last: Option<u32>,
}

/// What stands in braces.
enum Piece<'a> {
    Stmt(&'a Stmt),
    Buffer(&'a ast::BufferDecl),
    Inplace(&'a ast::Inplace),
    Ensures(&'a Ensures),
    Clause(&'a ast::ScheduleClause),
    /// `channel EXPR` of a label.
    Channel(&'a ast::Expr, Span),
}

impl Piece<'_> {
    fn span(&self) -> Span {
        match self {
            Piece::Stmt(stmt) => stmt.span(),
            Piece::Buffer(buffer) => buffer.span,
            Piece::Inplace(form) => form.span,
            Piece::Ensures(promise) => promise.span,
            Piece::Clause(clause) => clause.span,
            Piece::Channel(_, span) => *span,
        }
    }
}

impl<'a> Printer<'a> {
    fn item(&mut self, item: &'a ast::Item, after: After, next: u32) {
        let span = item.span();
        let printed = self.own_lines(span.start, 0, after);
        let docs = match item {
            ast::Item::Collective(collective) => &collective.docs,
            ast::Item::Algorithm(algorithm) => &algorithm.docs,
            ast::Item::Fn(function) => &function.docs,
            ast::Item::Schedule(schedule) => &schedule.docs,
        };
        let function = matches!(item, ast::Item::Fn(_));
        let force = !printed && (after == After::Block || (after == After::Function && !function));
        let (header, header_end) = self.header(item);
        self.lead(span.start, docs.len(), force);
        // Comments inside the header go before the docs, or those would be docs no more; nor may they become docs.
        for comment in self.comments.take(span.start, header_end) {
            self.out.push_str(&format!("//{}\n", comment.text.trim_start_matches('/')));
        }
        for line in docs {
            self.out.push_str(if line.is_empty() { "///" } else { "/// " });
            self.out.push_str(line);
            self.out.push('\n');
        }
        let pieces = pieces(item);
        let line = pieces.as_ref().and_then(|pieces| self.item_on_one_line(&header, pieces, span));
        match (line, pieces) {
            (Some(line), _) => self.out.push_str(&line),
            (None, Some(pieces)) => {
                header.lay_out(&mut self.out, 0, 0, 2);
                self.braces(&pieces, header_end, span.end, 0);
            }
            (None, None) => header.lay_out(&mut self.out, 0, 0, 0),
        }
        self.finish(span.end, next);
    }

    /// What stands before the braces of an item (all of a function), and where that ends.
    fn header(&mut self, item: &ast::Item) -> (Doc, u32) {
        let comments = &mut self.comments;
        match item {
            ast::Item::Collective(collective) => {
                let header = Doc::group(vec![
                    Doc::Text(format!("collective {}", collective.name.name)),
                    statement::params(comments, &collective.params),
                    Doc::Text(format!(" on {}", statement::world(&collective.world))),
                ]);
                (header, collective.world.span.end)
            }
            ast::Item::Algorithm(algorithm) => {
                let header = Doc::group(vec![
                    Doc::Text(format!("algorithm {}", algorithm.name.name)),
                    statement::params(comments, &algorithm.params),
                    Doc::Text(format!(" on {}", statement::world(&algorithm.world))),
                    Doc::nest(vec![
                        Doc::Line,
                        Doc::Word("implements "),
                        expression::path(&algorithm.implements),
                        expression::arguments(comments, &algorithm.args),
                    ]),
                ]);
                (header, algorithm.implements_span.end)
            }
            ast::Item::Fn(function) => {
                let params = expression::names(&function.params, ", ");
                let header = Doc::group(vec![
                    Doc::Text(format!("fn {}({params}) =", function.name.name)),
                    Doc::nest(vec![
                        Doc::Line,
                        expression::expr(comments, &function.body, expression::Level::Any),
                    ]),
                ]);
                (header, function.span.end)
            }
            ast::Item::Schedule(schedule) => {
                let header =
                    Doc::group(vec![Doc::Word("schedule for "), expression::path(&schedule.algorithm)]);
                (header, schedule.algorithm.span.end)
            }
        }
    }

    /// A collective or algorithm that holds one thing and was written on one line.
    fn item_on_one_line(&mut self, header: &Doc, pieces: &[Piece<'_>], span: Span) -> Option<String> {
        let [piece] = pieces else { return None };
        if !self.on_one_line(span) {
            return None;
        }
        let inner = self.piece_on_one_line(piece)?;
        let header = header.flat(WIDTH)?;
        let line = format!("{header} {{ {inner} }}");
        (line.chars().count() <= WIDTH).then_some(line)
    }

    fn piece_on_one_line(&mut self, piece: &Piece<'_>) -> Option<String> {
        match piece {
            Piece::Stmt(stmt) => self.stmt_on_one_line(stmt),
            Piece::Buffer(buffer) => statement::buffer(&mut self.comments, buffer).flat(WIDTH),
            Piece::Inplace(form) => statement::inplace(&mut self.comments, form).flat(WIDTH),
            Piece::Ensures(promise) => statement::ensures(&mut self.comments, promise).flat(WIDTH),
            Piece::Clause(clause) => self.clause_on_one_line(clause),
            Piece::Channel(value, _) => schedule::channel(&mut self.comments, value).flat(WIDTH),
        }
    }

    /// A clause of a schedule on one line, if it was written so; what stands in its braces too, however much it is.
    fn clause_on_one_line(&mut self, clause: &ast::ScheduleClause) -> Option<String> {
        let header = schedule::clause(&mut self.comments, clause).flat(WIDTH)?;
        let Some(inner) = clause_pieces(clause) else { return Some(header) };
        if !self.on_one_line(clause.span) {
            return None;
        }
        if inner.is_empty() {
            return Some(format!("{header} {{}}"));
        }
        let inner: Option<Vec<String>> = inner.iter().map(|piece| self.piece_on_one_line(piece)).collect();
        Some(format!("{header} {{ {} }}", inner?.join(" ")))
    }

    /// A statement on one line, if it was written so and holds no more than one statement per block.
    fn stmt_on_one_line(&mut self, stmt: &Stmt) -> Option<String> {
        if !self.on_one_line(stmt.span()) {
            return None;
        }
        match stmt {
            Stmt::For(each) => {
                let inner = self.block_on_one_line(&each.body)?;
                let header = statement::for_header(&mut self.comments, each).flat(WIDTH)?;
                Some(format!("{header} {inner}"))
            }
            Stmt::Step(step) => {
                let inner = match &step.body[..] {
                    [Stmt::For(_)] => self.stmt_on_one_line(&step.body[0])?,
                    body => self.block_on_one_line(body)?,
                };
                Some(format!("step {inner}"))
            }
            Stmt::If(choice) => {
                let then = self.block_on_one_line(&choice.then)?;
                let header = statement::if_header(&mut self.comments, choice).flat(WIDTH)?;
                let otherwise = match &choice.otherwise[..] {
                    [] => return Some(format!("{header} {then}")),
                    [Stmt::If(_)] => self.stmt_on_one_line(&choice.otherwise[0])?,
                    body => self.block_on_one_line(body)?,
                };
                Some(format!("{header} {then} else {otherwise}"))
            }
            Stmt::Labelled(labelled) => {
                let inner = self.stmt_on_one_line(&labelled.body)?;
                Some(format!("'{}: {inner}", labelled.label.name))
            }
            _ => statement::simple(&mut self.comments, stmt).flat(WIDTH),
        }
    }

    fn block_on_one_line(&mut self, body: &[Stmt]) -> Option<String> {
        match body {
            [] => Some("{}".to_owned()),
            [only] => Some(format!("{{ {} }}", self.stmt_on_one_line(only)?)),
            _ => None,
        }
    }

    /// Whether it was written on one line, without a comment.
    fn on_one_line(&self, span: Span) -> bool {
        self.comments.lines_between(span.start, span.end) == 0 && !self.comments.any(span.start, span.end)
    }

    /// What stands in braces, and the braces; the text ends with what stands before them.
    fn braces(&mut self, pieces: &[Piece<'_>], from: u32, to: u32, indent: usize) {
        if pieces.is_empty() && !self.comments.any(from, to) {
            self.out.push_str(" {}");
            return;
        }
        self.out.push_str(" {");
        let first = pieces.first().map_or(to, |piece| piece.span().start);
        if let Some(comment) = self.comments.take_trailing(from, first) {
            self.out.push(' ');
            self.out.push_str(&text(comment));
        }
        self.out.push('\n');
        let outer = self.last.take();
        for (index, piece) in pieces.iter().enumerate() {
            let next = pieces.get(index + 1).map_or(to, |next| next.span().start);
            self.own_lines(piece.span().start, indent + INDENT, After::Nothing);
            self.piece(piece, indent + INDENT);
            self.finish(piece.span().end, next);
        }
        self.own_lines(to, indent + INDENT, After::Nothing);
        self.last = outer;
        self.indent(indent);
        self.out.push('}');
    }

    fn piece(&mut self, piece: &Piece<'_>, indent: usize) {
        let span = piece.span();
        // Asked first: building a `Doc` takes the comments inside.
        if self.on_one_line(span)
            && let Some(line) = self.piece_on_one_line(piece)
            && indent + line.chars().count() <= WIDTH
        {
            self.lead(span.start, 0, false);
            self.indent(indent);
            self.out.push_str(&line);
            return;
        }
        match piece {
            Piece::Stmt(Stmt::Labelled(labelled)) => {
                let label = format!("'{}: ", labelled.label.name);
                self.stmt(&labelled.body, &label, span, indent);
            }
            Piece::Stmt(stmt) => self.stmt(stmt, "", span, indent),
            Piece::Buffer(buffer) => {
                let doc = statement::buffer(&mut self.comments, buffer);
                self.open(span.start, span.end, &doc, "", indent, 0);
            }
            Piece::Inplace(form) => {
                let doc = statement::inplace(&mut self.comments, form);
                self.open(span.start, span.end, &doc, "", indent, 0);
            }
            Piece::Ensures(promise) => {
                let doc = statement::ensures(&mut self.comments, promise);
                self.open(span.start, span.end, &doc, "", indent, 0);
            }
            Piece::Clause(clause) => {
                let doc = schedule::clause(&mut self.comments, clause);
                let end = schedule::header_end(clause);
                match clause_pieces(clause) {
                    Some(inner) => {
                        self.open(span.start, end, &doc, "", indent, 2);
                        self.braces(&inner, end, span.end, indent);
                    }
                    None => self.open(span.start, end, &doc, "", indent, 0),
                }
            }
            Piece::Channel(value, _) => {
                let doc = schedule::channel(&mut self.comments, value);
                self.open(span.start, span.end, &doc, "", indent, 0);
            }
        }
    }

    /// A statement over several lines, behind its label (if it has one: then `span` begins there).
    fn stmt(&mut self, stmt: &Stmt, label: &str, span: Span, indent: usize) {
        match stmt {
            Stmt::For(each) => {
                let header = statement::for_header(&mut self.comments, each);
                let end = statement::for_header_end(each);
                self.open(span.start, end, &header, label, indent, 2);
                self.braces(&stmts(&each.body), end, span.end, indent);
            }
            Stmt::If(choice) => {
                self.lead(span.start, 0, false);
                self.hoist(span.start, choice.span.start, indent);
                self.choice(choice, indent, Some(label));
            }
            Stmt::Step(step) => match &step.body[..] {
                [Stmt::For(each)]
                    if !self.comments.any(step.span.start, each.span.start)
                        && !self.comments.any(each.span.end, span.end) =>
                {
                    let header = statement::for_header(&mut self.comments, each);
                    let end = statement::for_header_end(each);
                    self.open(span.start, end, &header, &format!("{label}step "), indent, 2);
                    self.braces(&stmts(&each.body), end, each.span.end, indent);
                }
                body => {
                    self.open(span.start, step.span.start, &Doc::Word("step"), label, indent, 2);
                    self.braces(&stmts(body), step.span.start, span.end, indent);
                }
            },
            stmt => {
                let doc = statement::simple(&mut self.comments, stmt);
                self.open(span.start, span.end, &doc, label, indent, 0);
            }
        }
    }

    /// An `if` with all its `else`s; the first stands at the beginning of a line, behind its label.
    fn choice(&mut self, choice: &ast::If, indent: usize, first: Option<&str>) {
        let header = statement::if_header(&mut self.comments, choice);
        let header_end = choice.condition.span.end;
        if let Some(label) = first {
            self.hoist(choice.span.start, header_end, indent);
            self.indent(indent);
            self.out.push_str(label);
        }
        let column = self.column();
        header.lay_out(&mut self.out, indent, column, 2);
        let then_end = choice.else_span.map_or(choice.span.end, |span| span.start);
        self.braces(&stmts(&choice.then), header_end, then_end, indent);
        let Some(word) = choice.else_span.or((!choice.otherwise.is_empty()).then_some(choice.span)) else {
            return;
        };
        if choice.otherwise.is_empty() && !self.comments.any(word.end, choice.span.end) {
            return;
        }
        self.out.push_str(" else");
        match &choice.otherwise[..] {
            // `else if`, unless a comment stands where that has no place for it.
            [Stmt::If(next)]
                if !self.comments.any(word.start, next.condition.span.end.max(word.start))
                    && !self.comments.any(next.span.end, choice.span.end) =>
            {
                self.out.push(' ');
                self.choice(next, indent, None);
            }
            body => self.braces(&stmts(body), word.start, choice.span.end, indent),
        }
    }

    /// A statement, or what stands before its braces, at the beginning of a line.
    fn open(&mut self, from: u32, to: u32, doc: &Doc, before: &str, indent: usize, tail: usize) {
        self.lead(from, 0, false);
        self.hoist(from, to, indent);
        self.indent(indent);
        self.out.push_str(before);
        let column = self.column();
        doc.lay_out(&mut self.out, indent, column, tail);
    }

    /// A blank line before what stands at `start`, if there was one, `docs` lines above it.
    fn lead(&mut self, start: u32, docs: usize, force: bool) {
        let blank = self.last.is_some_and(|last| self.comments.lines_between(last, start) > 1 + docs);
        if blank || force {
            self.out.push('\n');
        }
    }

    /// Comments in `from..to` that found no place of their own.
    fn hoist(&mut self, from: u32, to: u32, indent: usize) {
        for comment in self.comments.take(from, to) {
            self.indent(indent);
            self.out.push_str(&text(comment));
            self.out.push('\n');
        }
    }

    /// The comments before `to`, each on a line; whether there were any.
    fn own_lines(&mut self, to: u32, indent: usize, after: After) -> bool {
        let mut first = true;
        for comment in self.comments.take(0, to) {
            self.lead(comment.span.start, 0, first && after == After::Block);
            self.comment(comment, indent);
            first = false;
        }
        !first
    }

    fn comment(&mut self, comment: &Comment, indent: usize) {
        self.indent(indent);
        self.out.push_str(&text(comment));
        self.out.push('\n');
        self.last = Some(comment.span.end);
    }

    /// Ends the line of what ends at `end`, with the comment behind it.
    fn finish(&mut self, end: u32, next: u32) {
        self.last = Some(end);
        if let Some(comment) = self.comments.take_trailing(end, next) {
            self.out.push(' ');
            self.out.push_str(&text(comment));
            self.last = Some(comment.span.end);
        }
        self.out.push('\n');
    }

    fn indent(&mut self, indent: usize) {
        self.out.extend(std::iter::repeat_n(' ', indent));
    }

    fn column(&self) -> usize {
        let line = self.out.rfind('\n').map_or(0, |at| at + 1);
        self.out[line..].chars().count()
    }
}

/// What stands in the braces of an item, in the order written.
fn pieces(item: &ast::Item) -> Option<Vec<Piece<'_>>> {
    match item {
        ast::Item::Collective(collective) => {
            let buffers = collective.buffers.iter().map(Piece::Buffer);
            let inplace = collective.inplace.iter().map(Piece::Inplace);
            let mut pieces: Vec<_> =
                buffers.chain(inplace).chain(collective.ensures.iter().map(Piece::Ensures)).collect();
            pieces.sort_by_key(|piece| piece.span().start);
            Some(pieces)
        }
        ast::Item::Algorithm(algorithm) => Some(stmts(&algorithm.body)),
        ast::Item::Fn(_) => None,
        ast::Item::Schedule(schedule) => Some(clauses(&schedule.clauses)),
    }
}

/// What stands in the braces of a clause, if it has some.
fn clause_pieces(clause: &ast::ScheduleClause) -> Option<Vec<Piece<'_>>> {
    match &clause.kind {
        ClauseKind::When(when) => Some(clauses(&when.clauses)),
        ClauseKind::Label(block) => {
            Some(block.channels.iter().map(|(value, span)| Piece::Channel(value, *span)).collect())
        }
        _ => None,
    }
}

fn clauses(list: &[ast::ScheduleClause]) -> Vec<Piece<'_>> {
    list.iter().map(Piece::Clause).collect()
}

fn stmts(body: &[Stmt]) -> Vec<Piece<'_>> {
    body.iter().map(Piece::Stmt).collect()
}
