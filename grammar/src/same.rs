//! Equality of trees that ignores where things stand.
//!
//! In: two files. Out: whether they are the same program: all but spans, comments and line ends. So that
//! `parse(print(tree)) = tree` can be said, and `rcc fmt` can make sure that it changed nothing.

use crate::ast::{
    Algorithm, Arg, BinaryOp, Binder, Binding, BufferDecl, Chunks, ClauseKind, Collective, Coord, Ensures,
    EnsuresKind, Expr, ExprKind, File, Fn, For, Ident, If, Index, Inplace, Item, LabelBlock, Labelled, Let,
    LetValue, List, Mode, Move, MoveOp, Number, Param, ParamType, Path, Place, RankSet, Ranks, Region,
    Require, Run, Schedule, ScheduleClause, Scratch, Size, Source, Step, Stmt, UnaryOp, When, World,
};
use crate::span::Span;

/// Whether two files hold the same program: their declarations and docs, but for spans.
pub fn eq_modulo_spans(left: &File, right: &File) -> bool {
    left.items.same(&right.items)
}

trait Same {
    fn same(&self, other: &Self) -> bool;
}

impl Same for Span {
    fn same(&self, _: &Span) -> bool {
        true
    }
}

impl<T: Same> Same for &T {
    fn same(&self, other: &Self) -> bool {
        (**self).same(*other)
    }
}

impl<T: Same> Same for Box<T> {
    fn same(&self, other: &Self) -> bool {
        (**self).same(&**other)
    }
}

impl<T: Same> Same for Option<T> {
    fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Some(left), Some(right)) => left.same(right),
            (None, None) => true,
            _ => false,
        }
    }
}

impl<T: Same> Same for Vec<T> {
    fn same(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().zip(other).all(|(left, right)| left.same(right))
    }
}

macro_rules! plain {
    ($($type:ty),*) => {
        $(impl Same for $type {
            fn same(&self, other: &Self) -> bool {
                self == other
            }
        })*
    };
}

plain!(String, bool, i64, ParamType, Mode, MoveOp, UnaryOp, BinaryOp);

macro_rules! tuples {
    ($(($($name:ident),*))*) => {
        $(impl<$($name: Same),*> Same for ($($name,)*) {
            #[allow(non_snake_case, unused_variables, reason = "one variable per type")]
            fn same(&self, other: &Self) -> bool {
                let ($($name,)*) = self;
                let mine = ($($name,)*);
                let ($($name,)*) = other;
                both!(mine, ($($name),*))
            }
        })*
    };
}

macro_rules! both {
    ($mine:ident, ()) => {
        true
    };
    ($mine:ident, ($a:ident)) => {
        $mine.0.same($a)
    };
    ($mine:ident, ($a:ident, $b:ident)) => {
        $mine.0.same($a) && $mine.1.same($b)
    };
    ($mine:ident, ($a:ident, $b:ident, $c:ident)) => {
        $mine.0.same($a) && $mine.1.same($b) && $mine.2.same($c)
    };
    ($mine:ident, ($a:ident, $b:ident, $c:ident, $d:ident)) => {
        $mine.0.same($a) && $mine.1.same($b) && $mine.2.same($c) && $mine.3.same($d)
    };
}

tuples! { () (A) (A, B) (A, B, C) (A, B, C, D) }

// The patterns name every field, so that a new one cannot be forgotten here.
macro_rules! structs {
    ($($type:ident { $($field:ident),* })*) => {
        $(impl Same for $type {
            fn same(&self, other: &Self) -> bool {
                let $type { $($field),* } = self;
                true $(&& $field.same(&other.$field))*
            }
        })*
    };
}

macro_rules! enums {
    ($($type:ident { $($variant:ident $(($($place:ident),*))? $({$($field:ident),*})?,)* })*) => {
        $(impl Same for $type {
            fn same(&self, other: &Self) -> bool {
                match self {
                    $($type::$variant $(($($place),*))? $({$($field),*})? => {
                        let mine = ($($($place,)*)? $($($field,)*)?);
                        let $type::$variant $(($($place),*))? $({$($field),*})? = other else { return false };
                        mine.same(&($($($place,)*)? $($($field,)*)?))
                    })*
                }
            }
        })*
    };
}

structs! {
    Ident { name, span }
    Path { segments, span }
    Collective { docs, name, params, world, buffers, inplace, ensures, span }
    Param { name, ty, default, span }
    World { levels, span }
    BufferDecl { mode, name, blocks, at, span }
    Inplace { left, right, span }
    Ensures { binders, filter, kind, span }
    Algorithm { docs, name, params, world, implements, args, implements_span, body, span }
    Fn { docs, name, params, body, span }
    Arg { name, value, span }
    Chunks { count, span }
    Scratch { name, blocks, span }
    Let { name, value, span }
    Require { condition, why, span }
    For { binders, filter, body, span }
    Binder { name, from, to, step, rev, span }
    Step { body, span }
    Move { to, op, from, span }
    Place { region, rank, span }
    Region { buffer, indices, span }
    Run { callee, args, on, bindings, span }
    Binding { buffer, region, span }
    Expr { kind, span }
    Labelled { label, body, span }
    Schedule { docs, algorithm, clauses, span }
    ScheduleClause { kind, span }
    When { op, size, clauses }
    LabelBlock { label, channels }
    Number { value, span }
    Size { number, unit, span }
}

enums! {
    Item { Collective(a), Algorithm(a), Fn(a), Schedule(a), }
    ClauseKind {
        Channels(a), Protocol(a), Pipeline(a), Threads(a), Prefer(a), Avoid(a), ViaSwitch, Wire(a), When(a), Label(a),
    }
    EnsuresKind { Equals { place, value }, Synchronised, }
    Stmt {
        Chunks(a), Scratch(a), Let(a), Require(a), OutOfPlaceOnly(a), For(a), If(a), Step(a), Move(a), Run(a),
        Labelled(a),
    }
    LetValue { Expr(a), Table(a), }
    List { Items(a, b), Each { value, binders, filter, span }, }
    Source { Place(a), Each { binders, filter, place, span }, List { places, span }, Gather { place, span }, }
    Index { One(a), Range { from, to, span }, }
    Ranks { One(a), All(a), Tuple(a, b), }
    Coord { At(a), All(a), }
    RankSet { Ranks(a), Range { from, to, span }, List(a), }
    ExprKind {
        Int(a), Bool(a), Var(a), SelfRank, Unary(a, b), Binary(a, b, c), If(a, b, c), Call(a, b), Index(a, b),
        Sum { binders, filter, value }, Paren(a),
    }
}

impl Same for If {
    fn same(&self, other: &Self) -> bool {
        // `else {}` says nothing.
        let If { condition, then, else_span: _, otherwise, span: _ } = self;
        condition.same(&other.condition) && then.same(&other.then) && otherwise.same(&other.otherwise)
    }
}
