//! Statements without braces, clauses, and what stands before braces, as `Doc`s.
//!
//! In: nodes of the tree. Out: [`Doc`]s.

use super::comments::Comments;
use super::doc::Doc;
use super::expression::{
    Level, arguments, binders, bracketed, expr, list, names, path, place, rank_set, region, source, table,
};
use crate::ast::{
    Binding, BufferDecl, Ensures, EnsuresKind, Expr, For, If, Inplace, Let, LetValue, Mode, Move, MoveOp,
    Param, ParamType, Run, Stmt, World,
};
use crate::literal;

/// `(k: int = 4, root: rank)`, or nothing.
pub(super) fn params(comments: &mut Comments<'_>, params: &[Param]) -> Doc {
    let (Some(first), Some(last)) = (params.first(), params.last()) else { return Doc::Sequence(Vec::new()) };
    let of = |param: &Param| (param.span.start, param.span.end);
    let items = list(comments, params, first.span.start, Some(last.span.end), of, &mut param);
    bracketed("(", items, ")")
}

fn param(comments: &mut Comments<'_>, param: &Param) -> Doc {
    let ty = match param.ty {
        ParamType::Int => "int",
        ParamType::Rank => "rank",
        ParamType::Bool => "bool",
    };
    let mut parts = vec![Doc::Text(format!("{}: {ty}", param.name.name))];
    if let Some(default) = &param.default {
        parts.extend([Doc::Word(" = "), expr(comments, default, Level::Any)]);
    }
    Doc::Sequence(parts)
}

/// `ranks[m, g]`
pub(super) fn world(world: &World) -> String {
    format!("ranks[{}]", names(&world.levels, ", "))
}

/// `in input[n] @ root`
pub(super) fn buffer(comments: &mut Comments<'_>, buffer: &BufferDecl) -> Doc {
    let mode = match buffer.mode {
        Mode::In => "in",
        Mode::Out => "out",
        Mode::Inout => "inout",
    };
    let mut parts = vec![Doc::Text(format!("{mode} {}", buffer.name.name))];
    parts.push(blocks(comments, buffer.blocks.as_ref()));
    if let Some(at) = &buffer.at {
        parts.extend([Doc::Word(" @ "), expr(comments, at, Level::Arith)]);
    }
    Doc::group(parts)
}

fn blocks(comments: &mut Comments<'_>, blocks: Option<&Expr>) -> Doc {
    match blocks {
        Some(count) => Doc::Sequence(vec![Doc::Word("["), expr(comments, count, Level::Any), Doc::Word("]")]),
        None => Doc::Sequence(Vec::new()),
    }
}

/// `inplace input = output[self]`
pub(super) fn inplace(comments: &mut Comments<'_>, form: &Inplace) -> Doc {
    Doc::group(vec![
        Doc::Word("inplace "),
        region(comments, &form.left),
        Doc::Word(" = "),
        region(comments, &form.right),
    ])
}

/// `ensures for r in 0..n: data @ r == data @ root`
pub(super) fn ensures(comments: &mut Comments<'_>, promise: &Ensures) -> Doc {
    let mut parts = vec![Doc::Word("ensures ")];
    if !promise.binders.is_empty() {
        let ranges = binders(comments, &promise.binders, promise.filter.as_ref());
        parts.extend([Doc::Word("for "), ranges, Doc::Word(":")]);
    }
    match &promise.kind {
        EnsuresKind::Synchronised => parts.push(Doc::Word("synchronised")),
        EnsuresKind::Equals { place: left, value } => {
            let mut equality = Vec::new();
            if !promise.binders.is_empty() {
                equality.push(Doc::Line);
            }
            equality.push(Doc::group(vec![
                place(comments, left),
                Doc::nest(vec![Doc::Line, Doc::Word("== "), source(comments, value)]),
            ]));
            parts.push(Doc::nest(equality));
        }
    }
    Doc::group(parts)
}

/// `for x in a..b if c`
pub(super) fn for_header(comments: &mut Comments<'_>, each: &For) -> Doc {
    Doc::Sequence(vec![Doc::Word("for "), binders(comments, &each.binders, each.filter.as_ref())])
}

/// Where that ends.
pub(super) fn for_header_end(each: &For) -> u32 {
    let binders = each.binders.last().map_or(each.span.start, |binder| binder.span.end);
    each.filter.as_ref().map_or(binders, |filter| filter.span.end)
}

/// `if c`
pub(super) fn if_header(comments: &mut Comments<'_>, choice: &If) -> Doc {
    Doc::Sequence(vec![Doc::Word("if "), Doc::nest(vec![expr(comments, &choice.condition, Level::Any)])])
}

/// A statement without braces; nothing for one with them.
pub(super) fn simple(comments: &mut Comments<'_>, stmt: &Stmt) -> Doc {
    match stmt {
        Stmt::Chunks(chunks) => {
            Doc::Sequence(vec![Doc::Word("chunks "), expr(comments, &chunks.count, Level::Any)])
        }
        Stmt::Scratch(scratch) => Doc::Sequence(vec![
            Doc::Text(format!("scratch {}", scratch.name.name)),
            blocks(comments, scratch.blocks.as_ref()),
        ]),
        Stmt::Let(binding) => let_(comments, binding),
        Stmt::Require(require) => Doc::group(vec![
            Doc::Word("require "),
            expr(comments, &require.condition, Level::Any),
            Doc::Word(","),
            Doc::nest(vec![Doc::Line, Doc::Text(literal::quote(&require.why))]),
        ]),
        Stmt::OutOfPlaceOnly(_) => Doc::Word("inplace none"),
        Stmt::Move(movement) => move_(comments, movement),
        Stmt::Run(run) => run_(comments, run),
        Stmt::For(_) | Stmt::If(_) | Stmt::Step(_) | Stmt::Labelled(_) => Doc::Sequence(Vec::new()),
    }
}

fn let_(comments: &mut Comments<'_>, binding: &Let) -> Doc {
    let name = format!("let {} =", binding.name.name);
    match &binding.value {
        LetValue::Expr(value) => {
            Doc::group(vec![Doc::Text(name), Doc::nest(vec![Doc::Line, expr(comments, value, Level::Any)])])
        }
        LetValue::Table(list) => Doc::Sequence(vec![Doc::Text(name), Doc::Word(" "), table(comments, list)]),
    }
}

fn move_(comments: &mut Comments<'_>, movement: &Move) -> Doc {
    let sign = match movement.op {
        MoveOp::Copy => " =",
        MoveOp::Combine => " +=",
    };
    Doc::group(vec![
        place(comments, &movement.to),
        Doc::Word(sign),
        Doc::nest(vec![Doc::Line, source(comments, &movement.from)]),
    ])
}

fn run_(comments: &mut Comments<'_>, run: &Run) -> Doc {
    let mut parts = vec![
        Doc::Word("run "),
        path(&run.callee),
        arguments(comments, &run.args),
        Doc::Word(" on "),
        rank_set(comments, &run.on),
    ];
    if let Some(first) = run.bindings.first() {
        let of = |binding: &Binding| (binding.span.start, binding.span.end);
        let bindings =
            list(comments, &run.bindings, first.span.start, None, of, &mut |comments, binding: &Binding| {
                let name = Doc::Text(format!("{} = ", binding.buffer.name));
                Doc::Sequence(vec![name, region(comments, &binding.region)])
            });
        let bindings = Doc::Group(Box::new(Doc::nest(bindings)));
        parts.push(Doc::nest(vec![Doc::Line, Doc::Word("with "), bindings]));
    }
    Doc::group(parts)
}
