//! Expressions, ranges, places and lists as `Doc`s.
//!
//! In: nodes of the tree. Out: [`Doc`]s. Parentheses that were written are nodes; where a tree made by a program lacks
//! one that is needed, it is put in, so that what is printed always means the tree.

use super::comments::Comments;
use super::doc::Doc;
use crate::ast::{
    Arg, BinaryOp, Binder, Coord, Expr, ExprKind, Ident, Index, List, Path, Place, RankSet, Ranks, Region,
    Source, UnaryOp,
};

/// How tightly a place for an expression binds; an expression that is looser needs parentheses there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Anything.
    Any,
    Or,
    And,
    Not,
    Comparison,
    /// `|`: what may stand after `@` and in the bounds of a range.
    Arith,
    BitXor,
    BitAnd,
    Shift,
    Sum,
    /// A product whose last factor may be a `sum(…) e`.
    Product,
    Factors,
    Factor,
    Atom,
}

/// An expression where `level` is needed.
pub(super) fn expr(comments: &mut Comments<'_>, expr: &Expr, level: Level) -> Doc {
    let doc = match &expr.kind {
        ExprKind::Int(i64::MIN) => Doc::Text(format!("({} - 1)", i64::MIN + 1)),
        ExprKind::Int(value) => Doc::Text(value.to_string()),
        ExprKind::Bool(value) => Doc::Word(if *value { "true" } else { "false" }),
        ExprKind::Var(name) => Doc::Text(name.clone()),
        ExprKind::SelfRank => Doc::Word("self"),
        ExprKind::Unary(UnaryOp::Neg, operand) => {
            let level = if is_big(operand) { Level::Product } else { Level::Factor };
            Doc::Sequence(vec![Doc::Word("-"), self::expr(comments, operand, level)])
        }
        ExprKind::Unary(UnaryOp::Not, operand) => {
            Doc::Sequence(vec![Doc::Word("not "), self::expr(comments, operand, Level::Not)])
        }
        ExprKind::Binary(op, left, right) => binary(comments, *op, left, right),
        ExprKind::If(condition, then, otherwise) => Doc::group(vec![
            Doc::Word("if "),
            self::expr(comments, condition, Level::Any),
            Doc::nest(vec![Doc::Line, Doc::Word("then "), self::expr(comments, then, Level::Any)]),
            Doc::nest(vec![Doc::Line, Doc::Word("else "), self::expr(comments, otherwise, Level::Any)]),
        ]),
        ExprKind::Call(name, arguments) => {
            let end = Some(expr.span.end);
            let items = list(
                comments,
                arguments,
                name.span.end,
                end,
                |expr| (expr.span.start, expr.span.end),
                &mut any,
            );
            Doc::Sequence(vec![Doc::Text(name.name.clone()), bracketed("(", items, ")")])
        }
        ExprKind::Index(name, index) => Doc::Sequence(vec![
            Doc::Text(name.name.clone()),
            Doc::Word("["),
            self::expr(comments, index, Level::Any),
            Doc::Word("]"),
        ]),
        ExprKind::Sum { binders, filter, value } => Doc::Sequence(vec![
            Doc::Word("sum("),
            self::binders(comments, binders, filter.as_deref()),
            Doc::Word(") "),
            self::expr(comments, value, Level::Product),
        ]),
        ExprKind::Paren(inner) => {
            Doc::Sequence(vec![Doc::Word("("), self::expr(comments, inner, Level::Any), Doc::Word(")")])
        }
    };
    if level_of(expr) < level {
        return Doc::Sequence(vec![Doc::Word("("), doc, Doc::Word(")")]);
    }
    doc
}

fn any(comments: &mut Comments<'_>, expr: &Expr) -> Doc {
    self::expr(comments, expr, Level::Any)
}

/// A chain of operators of one level is one group: it breaks before every operator or before none.
fn binary(comments: &mut Comments<'_>, op: BinaryOp, left: &Expr, right: &Expr) -> Doc {
    let (own, operand) = levels(op);
    let mut links = vec![(op, right)];
    let mut first = left;
    while let ExprKind::Binary(inner, left, right) = &first.kind {
        if levels(*inner).0 != own || level_of(first) < own || own == Level::Comparison {
            break;
        }
        links.push((*inner, right));
        first = left;
    }
    let left_level = if own == Level::Comparison { operand } else { own };
    let head = expr(comments, first, left_level);
    let mut rest = Vec::with_capacity(links.len() * 3);
    for (op, right) in links.into_iter().rev() {
        let level = if own == Level::Factors && is_big(right) { Level::Product } else { operand };
        rest.extend([Doc::Line, Doc::Word(sign(op)), expr(comments, right, level)]);
    }
    Doc::group(vec![head, Doc::nest(rest)])
}

/// The level of a tree, and so where it needs parentheses.
fn level_of(expr: &Expr) -> Level {
    match &expr.kind {
        ExprKind::If(..) => Level::Any,
        ExprKind::Unary(UnaryOp::Not, _) => Level::Not,
        ExprKind::Unary(UnaryOp::Neg, _) | ExprKind::Sum { .. } if is_big(expr) => Level::Product,
        ExprKind::Unary(UnaryOp::Neg, _) => Level::Factor,
        ExprKind::Int(value) if *value < 0 && *value != i64::MIN => Level::Factor,
        ExprKind::Binary(op, _, right) => match levels(*op).0 {
            Level::Factors if is_big(right) => Level::Product,
            level => level,
        },
        _ => Level::Atom,
    }
}

/// `sum(…) e` and its negation: they take what follows with them, so they stand only last in a product.
fn is_big(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Sum { .. } => true,
        ExprKind::Unary(UnaryOp::Neg, operand) => is_big(operand),
        _ => false,
    }
}

/// The level of an operator, and the one that its right operand needs.
fn levels(op: BinaryOp) -> (Level, Level) {
    match op {
        BinaryOp::Or => (Level::Or, Level::And),
        BinaryOp::And => (Level::And, Level::Not),
        BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
            (Level::Comparison, Level::Arith)
        }
        BinaryOp::BitOr => (Level::Arith, Level::BitXor),
        BinaryOp::BitXor => (Level::BitXor, Level::BitAnd),
        BinaryOp::BitAnd => (Level::BitAnd, Level::Shift),
        BinaryOp::Shl | BinaryOp::Shr => (Level::Shift, Level::Sum),
        BinaryOp::Add | BinaryOp::Sub => (Level::Sum, Level::Product),
        BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem => (Level::Factors, Level::Factor),
    }
}

/// An operator and a blank.
pub(super) fn sign(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Mul => "* ",
        BinaryOp::Div => "/ ",
        BinaryOp::Rem => "% ",
        BinaryOp::Add => "+ ",
        BinaryOp::Sub => "- ",
        BinaryOp::Shl => "<< ",
        BinaryOp::Shr => ">> ",
        BinaryOp::BitAnd => "& ",
        BinaryOp::BitXor => "^ ",
        BinaryOp::BitOr => "| ",
        BinaryOp::Eq => "== ",
        BinaryOp::Ne => "!= ",
        BinaryOp::Lt => "< ",
        BinaryOp::Le => "<= ",
        BinaryOp::Gt => "> ",
        BinaryOp::Ge => ">= ",
        BinaryOp::And => "and ",
        BinaryOp::Or => "or ",
    }
}

/// `x in a..b step k rev, y in c..d if e`
pub(super) fn binders(comments: &mut Comments<'_>, binders: &[Binder], filter: Option<&Expr>) -> Doc {
    let from = binders.first().map_or(0, |binder| binder.span.start);
    let span = |binder: &Binder| (binder.span.start, binder.span.end);
    let mut parts = list(comments, binders, from, None, span, &mut binder);
    if let Some(filter) = filter {
        parts.extend([Doc::Line, Doc::Word("if "), any(comments, filter)]);
    }
    Doc::Group(Box::new(Doc::nest(parts)))
}

fn binder(comments: &mut Comments<'_>, binder: &Binder) -> Doc {
    let mut parts = vec![Doc::Text(format!("{} in ", binder.name.name))];
    parts.extend(range(comments, &binder.from, &binder.to));
    if let Some(step) = &binder.step {
        parts.extend([Doc::Word(" step "), expr(comments, step, Level::Arith)]);
    }
    if binder.rev {
        parts.push(Doc::Word(" rev"));
    }
    Doc::Sequence(parts)
}

/// `place`, `reduce(…) place`, `reduce(a, b)`, `reduce place`
pub(super) fn source(comments: &mut Comments<'_>, source: &Source) -> Doc {
    match source {
        Source::Place(one) => place(comments, one),
        Source::Each { binders, filter, place: one, .. } => Doc::Sequence(vec![
            Doc::Word("reduce("),
            self::binders(comments, binders, filter.as_ref()),
            Doc::Word(") "),
            place(comments, one),
        ]),
        Source::List { places, span } => {
            let items = list(
                comments,
                places,
                span.start,
                Some(span.end),
                |one| (one.span.start, one.span.end),
                &mut place,
            );
            Doc::Sequence(vec![Doc::Word("reduce"), bracketed("(", items, ")")])
        }
        Source::Gather { place: one, .. } => Doc::Sequence(vec![Doc::Word("reduce "), place(comments, one)]),
    }
}

/// `data[c] @ r`
pub(super) fn place(comments: &mut Comments<'_>, place: &Place) -> Doc {
    Doc::Sequence(vec![region(comments, &place.region), Doc::Word(" @ "), ranks(comments, &place.rank)])
}

/// `data[b][c]`
pub(super) fn region(comments: &mut Comments<'_>, region: &Region) -> Doc {
    let mut parts = vec![Doc::Text(region.buffer.name.clone())];
    for index in &region.indices {
        parts.push(Doc::Word("["));
        match index {
            Index::One(one) => parts.push(any(comments, one)),
            Index::Range { from, to, .. } => parts.extend(range(comments, from, to)),
        }
        parts.push(Doc::Word("]"));
    }
    Doc::Sequence(parts)
}

fn range(comments: &mut Comments<'_>, from: &Expr, to: &Expr) -> [Doc; 3] {
    [bound(comments, from), Doc::Word(".."), bound(comments, to)]
}

/// A bound of a range: one operator between two words stands close, since `..` does: `0..n-1`.
fn bound(comments: &mut Comments<'_>, bound: &Expr) -> Doc {
    let word = |expr: &Expr| matches!(expr.kind, ExprKind::Int(0..) | ExprKind::Var(_) | ExprKind::SelfRank);
    match &bound.kind {
        ExprKind::Binary(op, left, right) if word(left) && word(right) && levels(*op).0 >= Level::Arith => {
            Doc::Sequence(vec![
                expr(comments, left, Level::Atom),
                Doc::Word(sign(*op).trim_end()),
                expr(comments, right, Level::Atom),
            ])
        }
        _ => expr(comments, bound, Level::Arith),
    }
}

/// `r`, `*`, `(i, *)`
fn ranks(comments: &mut Comments<'_>, ranks: &Ranks) -> Doc {
    match ranks {
        Ranks::One(rank) => expr(comments, rank, Level::Arith),
        Ranks::All(_) => Doc::Word("*"),
        Ranks::Tuple(coordinates, _) => {
            let mut parts = vec![Doc::Word("(")];
            for (index, coordinate) in coordinates.iter().enumerate() {
                if index > 0 {
                    parts.push(Doc::Word(", "));
                }
                parts.push(match coordinate {
                    Coord::At(one) => any(comments, one),
                    Coord::All(_) => Doc::Word("*"),
                });
            }
            parts.push(Doc::Word(")"));
            Doc::Sequence(parts)
        }
    }
}

/// What stands after `on`.
pub(super) fn rank_set(comments: &mut Comments<'_>, set: &RankSet) -> Doc {
    match set {
        RankSet::Ranks(one) => ranks(comments, one),
        RankSet::Range { from, to, .. } => Doc::Sequence(range(comments, from, to).into()),
        RankSet::List(list) => table(comments, list),
    }
}

/// `[a, b, c]`, `[e for x in a..b]`
pub(super) fn table(comments: &mut Comments<'_>, table: &List) -> Doc {
    match table {
        List::Items(items, span) if items.iter().all(is_short) && !comments.any(span.start, span.end) => {
            // Numbers fill their lines. Each blank is a group of its own, so it breaks only if what follows does not fit.
            let mut parts = vec![Doc::Soft];
            for (index, item) in items.iter().enumerate() {
                let item = any(comments, item);
                if index == 0 {
                    parts.push(item);
                } else {
                    parts.extend([Doc::Word(","), Doc::group(vec![Doc::Line, item])]);
                }
            }
            if !items.is_empty() {
                parts.push(Doc::Broken(","));
            }
            bracketed("[", parts, "]")
        }
        List::Items(items, span) => {
            let of = |item: &Expr| (item.span.start, item.span.end);
            let items = list(comments, items, span.start, Some(span.end), of, &mut any);
            bracketed("[", items, "]")
        }
        List::Each { value, binders, filter, .. } => Doc::group(vec![
            Doc::Word("["),
            Doc::nest(vec![
                Doc::Soft,
                any(comments, value),
                Doc::Line,
                Doc::Word("for "),
                self::binders(comments, binders, filter.as_deref()),
            ]),
            Doc::Soft,
            Doc::Word("]"),
        ]),
    }
}

/// A number or a short name.
fn is_short(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::SelfRank => true,
        ExprKind::Var(name) => name.len() <= 12,
        ExprKind::Unary(_, operand) => matches!(operand.kind, ExprKind::Int(_)),
        _ => false,
    }
}

/// `(a, k = b)`, or nothing.
pub(super) fn arguments(comments: &mut Comments<'_>, arguments: &[Arg]) -> Doc {
    let Some(first) = arguments.first() else { return Doc::Sequence(Vec::new()) };
    let from = first.span.start;
    let of = |argument: &Arg| (argument.span.start, argument.span.end);
    let to = arguments.last().map(|last| last.span.end);
    let items = list(comments, arguments, from, to, of, &mut |comments, argument: &Arg| {
        let name = argument.name.as_ref().map_or(String::new(), |name| format!("{} = ", name.name));
        Doc::Sequence(vec![Doc::Text(name), any(comments, &argument.value)])
    });
    bracketed("(", items, ")")
}

/// `std::allreduce::ring`
pub(super) fn path(path: &Path) -> Doc {
    Doc::Text(names(&path.segments, "::"))
}

/// Names with something between them.
pub(super) fn names(names: &[Ident], between: &str) -> String {
    names.iter().map(|name| name.name.as_str()).collect::<Vec<_>>().join(between)
}

/// Elements with commas and the comments between them. The list begins behind `from`; comments behind the last
/// element belong to it if it is known to end at `to`.
pub(super) fn list<T>(
    comments: &mut Comments<'_>,
    elements: &[T],
    from: u32,
    to: Option<u32>,
    span: impl Fn(&T) -> (u32, u32),
    print: &mut dyn FnMut(&mut Comments<'_>, &T) -> Doc,
) -> Vec<Doc> {
    let mut parts = Vec::with_capacity(elements.len() * 3);
    let mut last = from;
    for (index, element) in elements.iter().enumerate() {
        let (start, end) = span(element);
        if index > 0 {
            parts.push(Doc::Word(","));
        }
        parts.extend(comments.gap(last, start));
        if index > 0 {
            parts.push(Doc::Line);
        } else if to.is_some() {
            parts.push(Doc::Soft);
        }
        parts.push(print(comments, element));
        last = end;
    }
    if let Some(to) = to {
        if elements.is_empty() {
            parts.extend(comments.gap(last, to));
        } else {
            parts.push(Doc::Broken(","));
            parts.extend(comments.gap(last, to));
        }
    }
    parts
}

/// A list in its brackets, one element a line if it does not fit.
pub(super) fn bracketed(open: &'static str, items: Vec<Doc>, close: &'static str) -> Doc {
    Doc::group(vec![Doc::Word(open), Doc::nest(items), Doc::Soft, Doc::Word(close)])
}
