//! Random trees of every kind of node: `parse(print(tree)) = tree`, and printing twice changes nothing.
//!
//! The generator puts parentheses where the table of `docs/language.md` asks for them, by numbers of its own, so that
//! it is a second opinion on precedence for both the grammar and the printer.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::strategy::Union;

use rcc_grammar::ast::{
    Algorithm, Arg, BinaryOp, Binder, Binding, BufferDecl, Chunks, ClauseKind, Collective, Coord, Ensures,
    EnsuresKind, Expr, ExprKind, File, Fn, For, Ident, If, Index, Inplace, Item, LabelBlock, Labelled, Let,
    LetValue, List, Mode, Move, MoveOp, Number, Param, ParamType, Path, Place, RankSet, Ranks, Region,
    Require, Run, Schedule, ScheduleClause, Scratch, Size, Source, Step, Stmt, UnaryOp, When, World,
};
use rcc_grammar::span::{FileId, Span};
use rcc_grammar::{ParseLimits, eq_modulo_spans, parse, print::print};

const SPAN: Span = Span { file: FileId(0), start: 0, end: 0 };

const OPS: [BinaryOp; 18] = [
    BinaryOp::Or,
    BinaryOp::And,
    BinaryOp::Eq,
    BinaryOp::Ne,
    BinaryOp::Lt,
    BinaryOp::Le,
    BinaryOp::Gt,
    BinaryOp::Ge,
    BinaryOp::BitOr,
    BinaryOp::BitXor,
    BinaryOp::BitAnd,
    BinaryOp::Shl,
    BinaryOp::Shr,
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::Div,
    BinaryOp::Rem,
];

/// The line of the table an operator stands on, loosest first.
fn line(op: BinaryOp) -> u32 {
    match op {
        BinaryOp::Or => 1,
        BinaryOp::And => 2,
        BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => 4,
        BinaryOp::BitOr => 5,
        BinaryOp::BitXor => 6,
        BinaryOp::BitAnd => 7,
        BinaryOp::Shl | BinaryOp::Shr => 8,
        BinaryOp::Add | BinaryOp::Sub => 9,
        BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem => 10,
    }
}

const ARITH: u32 = 5;

/// An expression in parentheses if it is looser than line `least`.
fn fit(expr: Expr, least: u32) -> Expr {
    let own = match &expr.kind {
        ExprKind::If(..) | ExprKind::Sum { .. } => 0,
        ExprKind::Unary(UnaryOp::Not, _) => 3,
        ExprKind::Unary(UnaryOp::Neg, _) => 11,
        ExprKind::Binary(op, ..) => line(*op),
        _ => 12,
    };
    if own < least { node(ExprKind::Paren(Box::new(expr))) } else { expr }
}

fn node(kind: ExprKind) -> Expr {
    Expr { kind, span: SPAN }
}

fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    let own = line(op);
    // All lean to the left, but comparisons do not chain.
    let left = fit(left, if own == 4 { 5 } else { own });
    node(ExprKind::Binary(op, Box::new(left), Box::new(fit(right, own + 1))))
}

fn ident() -> impl Strategy<Value = Ident> + Clone {
    const NAMES: [&str; 18] = [
        "x",
        "data",
        "r",
        "n",
        "rev",
        "none",
        "rank",
        "ranks",
        "int",
        "bool",
        "synchronised",
        "ragged",
        "size",
        "B_2",
        "when",
        "channel",
        "wire",
        "prefer",
    ];
    proptest::sample::select(&NAMES[..]).prop_map(|name| Ident { name: name.to_owned(), span: SPAN })
}

fn any_ident() -> impl Strategy<Value = Ident> {
    prop_oneof![9 => ident(), 1 => Just(Ident { name: "reduce".to_owned(), span: SPAN })]
}

fn expr() -> BoxedStrategy<Expr> {
    let leaf = prop_oneof![
        4 => prop_oneof![0i64..100, Just(i64::MAX)].prop_map(ExprKind::Int),
        1 => any::<bool>().prop_map(ExprKind::Bool),
        4 => ident().prop_map(|name| ExprKind::Var(name.name)),
        1 => Just(ExprKind::SelfRank),
    ];
    leaf.prop_map(node)
        .prop_recursive(4, 24, 3, |inner| {
            let pair = (proptest::sample::select(&OPS[..]), inner.clone(), inner.clone());
            let either = (inner.clone(), inner.clone(), inner.clone());
            let sum = (binders_of(inner.clone()), option::of(inner.clone()), inner.clone());
            prop_oneof![
                8 => pair.prop_map(|(op, left, right)| binary(op, left, right)),
                1 => inner.clone().prop_map(|e| node(ExprKind::Unary(UnaryOp::Neg, Box::new(fit(e, 11))))),
                1 => inner.clone().prop_map(|e| node(ExprKind::Unary(UnaryOp::Not, Box::new(fit(e, 3))))),
                1 => inner.clone().prop_map(|e| node(ExprKind::Paren(Box::new(e)))),
                1 => (ident(), vec(inner.clone(), 0..4)).prop_map(|(name, args)| node(ExprKind::Call(name, args))),
                1 => either.prop_map(|(a, b, c)| node(ExprKind::If(Box::new(a), Box::new(b), Box::new(c)))),
                1 => sum.prop_map(|(binders, filter, value)| node(ExprKind::Sum {
                    binders,
                    filter: filter.map(Box::new),
                    value: Box::new(fit(value, 10)),
                })),
                1 => (ident(), inner).prop_map(|(name, e)| node(ExprKind::Index(name, Box::new(e)))),
            ]
        })
        .boxed()
}

fn arith() -> BoxedStrategy<Expr> {
    expr().prop_map(|e| fit(e, ARITH)).boxed()
}

fn binders_of(bound: impl Strategy<Value = Expr> + Clone + 'static) -> BoxedStrategy<Vec<Binder>> {
    let bound = bound.prop_map(|e| fit(e, ARITH));
    let binder = (ident(), bound.clone(), bound.clone(), option::weighted(0.3, bound), any::<bool>());
    vec(binder.prop_map(|(name, from, to, step, rev)| Binder { name, from, to, step, rev, span: SPAN }), 1..3)
        .boxed()
}

fn binders() -> BoxedStrategy<Vec<Binder>> {
    binders_of(expr())
}

fn region() -> BoxedStrategy<Region> {
    let range = (arith(), arith()).prop_map(|(from, to)| Index::Range { from, to, span: SPAN });
    let index = prop_oneof![2 => expr().prop_map(Index::One), 1 => range];
    (ident(), vec(index, 0..3)).prop_map(|(buffer, indices)| Region { buffer, indices, span: SPAN }).boxed()
}

fn tuple() -> impl Strategy<Value = Ranks> {
    let coord = prop_oneof![expr().prop_map(Coord::At), Just(Coord::All(SPAN))];
    prop_oneof![Just(Ranks::All(SPAN)), vec(coord, 2..4).prop_map(|coords| Ranks::Tuple(coords, SPAN))]
}

fn place() -> BoxedStrategy<Place> {
    let rank = prop_oneof![2 => arith().prop_map(Ranks::One), 1 => tuple()];
    (region(), rank).prop_map(|(region, rank)| Place { region, rank, span: SPAN }).boxed()
}

fn source() -> BoxedStrategy<Source> {
    prop_oneof![
        3 => place().prop_map(Source::Place),
        1 => (binders(), option::of(expr()), place())
            .prop_map(|(binders, filter, place)| Source::Each { binders, filter, place, span: SPAN }),
        1 => vec(place(), 1..4).prop_map(|places| Source::List { places, span: SPAN }),
        1 => place().prop_map(|place| Source::Gather { place, span: SPAN }),
    ]
    .boxed()
}

fn list() -> BoxedStrategy<List> {
    prop_oneof![
        vec(expr(), 0..5).prop_map(|items| List::Items(items, SPAN)),
        vec((0i64..1000).prop_map(|value| node(ExprKind::Int(value))), 0..60)
            .prop_map(|items| List::Items(items, SPAN)),
        (expr(), binders(), option::of(expr())).prop_map(|(value, binders, filter)| List::Each {
            value: Box::new(value),
            binders,
            filter: filter.map(Box::new),
            span: SPAN
        }),
    ]
    .boxed()
}

fn args() -> BoxedStrategy<Vec<Arg>> {
    let arg = (option::of(ident()), expr()).prop_map(|(name, value)| Arg { name, value, span: SPAN });
    vec(arg, 0..3).boxed()
}

fn path() -> BoxedStrategy<Path> {
    vec(any_ident(), 1..4).prop_map(|segments| Path { segments, span: SPAN }).boxed()
}

fn rank_set() -> BoxedStrategy<RankSet> {
    prop_oneof![
        tuple().prop_map(RankSet::Ranks),
        (arith(), arith()).prop_map(|(from, to)| RankSet::Range { from, to, span: SPAN }),
        list().prop_map(RankSet::List),
    ]
    .boxed()
}

fn simple() -> BoxedStrategy<Stmt> {
    let binding = (ident(), region()).prop_map(|(buffer, region)| Binding { buffer, region, span: SPAN });
    let value = prop_oneof![expr().prop_map(LetValue::Expr), list().prop_map(LetValue::Table)];
    prop_oneof![
        1 => expr().prop_map(|count| Stmt::Chunks(Chunks { count, span: SPAN })),
        1 => (ident(), option::of(expr())).prop_map(|(name, blocks)| Stmt::Scratch(Scratch { name, blocks, span: SPAN })),
        1 => (ident(), value).prop_map(|(name, value)| Stmt::Let(Let { name, value, span: SPAN })),
        1 => (expr(), any::<String>())
            .prop_map(|(condition, why)| Stmt::Require(Require { condition, why, span: SPAN })),
        1 => Just(Stmt::OutOfPlaceOnly(SPAN)),
        4 => (place(), any::<bool>(), source()).prop_map(|(to, combine, from)| {
            let op = if combine { MoveOp::Combine } else { MoveOp::Copy };
            Stmt::Move(Move { to, op, from, span: SPAN })
        }),
        2 => (path(), args(), rank_set(), vec(binding, 0..4))
            .prop_map(|(callee, args, on, bindings)| Stmt::Run(Run { callee, args, on, bindings, span: SPAN })),
    ]
    .boxed()
}

fn body() -> BoxedStrategy<Vec<Stmt>> {
    let stmt = simple().prop_recursive(3, 12, 3, |inner| {
        let body = vec(inner, 0..3);
        Union::new([
            (binders(), option::of(expr()), body.clone())
                .prop_map(|(binders, filter, body)| Stmt::For(For { binders, filter, body, span: SPAN }))
                .boxed(),
            (expr(), body.clone(), body.clone())
                .prop_map(|(condition, then, otherwise)| {
                    Stmt::If(If { condition, then, else_span: None, otherwise, span: SPAN })
                })
                .boxed(),
            body.prop_map(|body| Stmt::Step(Step { body, span: SPAN })).boxed(),
        ])
        .boxed()
    });
    vec((stmt, option::weighted(0.2, ident())).prop_map(labelled), 0..4).boxed()
}

/// With a label, where it takes one.
fn labelled((stmt, label): (Stmt, Option<Ident>)) -> Stmt {
    let takes = matches!(stmt, Stmt::For(_) | Stmt::If(_) | Stmt::Step(_) | Stmt::Move(_) | Stmt::Run(_));
    match label.filter(|_| takes) {
        Some(label) => Stmt::Labelled(Labelled { label, body: Box::new(stmt), span: SPAN }),
        None => stmt,
    }
}

fn number() -> impl Strategy<Value = Number> + Clone {
    prop_oneof![0i64..5000, Just(-3), Just(i64::MAX)].prop_map(|value| Number { value, span: SPAN })
}

fn size() -> impl Strategy<Value = Size> + Clone {
    let unit = proptest::sample::select(&["KiB", "MiB", "B", "apples"][..]);
    let unit = option::of(unit.prop_map(|unit| Ident { name: unit.to_owned(), span: SPAN }));
    (number(), unit).prop_map(|(number, unit)| Size { number, unit, span: SPAN })
}

fn clause() -> BoxedStrategy<ScheduleClause> {
    let op = proptest::sample::select(&OPS[2..8]);
    let plain = prop_oneof![
        number().prop_map(ClauseKind::Channels),
        ident().prop_map(ClauseKind::Protocol),
        size().prop_map(ClauseKind::Pipeline),
        number().prop_map(ClauseKind::Threads),
        vec(ident(), 1..30).prop_map(ClauseKind::Prefer),
        vec(ident(), 1..3).prop_map(ClauseKind::Avoid),
        Just(ClauseKind::ViaSwitch),
        ident().prop_map(ClauseKind::Wire),
        (ident(), vec(expr(), 0..3)).prop_map(|(label, channels)| {
            let channels = channels.into_iter().map(|value| (value, SPAN)).collect();
            ClauseKind::Label(LabelBlock { label, channels })
        }),
    ];
    plain
        .prop_map(|kind| ScheduleClause { kind, span: SPAN })
        .prop_recursive(2, 8, 3, move |inner| {
            (op.clone(), size(), vec(inner, 0..4))
                .prop_map(|(op, size, clauses)| ClauseKind::When(When { op, size, clauses }))
                .prop_map(|kind| ScheduleClause { kind, span: SPAN })
        })
        .boxed()
}

fn schedule() -> BoxedStrategy<Item> {
    (docs(), path(), vec(clause(), 0..5))
        .prop_map(|(docs, algorithm, clauses)| {
            Item::Schedule(Schedule { docs, algorithm, clauses, span: SPAN })
        })
        .boxed()
}

fn docs() -> BoxedStrategy<Vec<String>> {
    vec("( ?[a-zé]{1,9}){0,3}", 0..3)
        .prop_map(|lines| lines.into_iter().map(|line| line.trim_end().to_owned()).collect())
        .boxed()
}

fn params() -> BoxedStrategy<Vec<Param>> {
    let ty = prop_oneof![Just(ParamType::Int), Just(ParamType::Rank), Just(ParamType::Bool)];
    let param = (ident(), ty, option::of(expr()));
    vec(param.prop_map(|(name, ty, default)| Param { name, ty, default, span: SPAN }), 0..3).boxed()
}

fn world() -> BoxedStrategy<World> {
    vec(ident(), 1..3).prop_map(|levels| World { levels, span: SPAN }).boxed()
}

fn collective() -> BoxedStrategy<Item> {
    let mode = prop_oneof![Just(Mode::In), Just(Mode::Out), Just(Mode::Inout)];
    let buffer = (mode, ident(), option::of(expr()), option::of(arith()))
        .prop_map(|(mode, name, blocks, at)| BufferDecl { mode, name, blocks, at, span: SPAN });
    let inplace = (region(), region()).prop_map(|(left, right)| Inplace { left, right, span: SPAN });
    let equal = (option::of((binders(), option::of(expr()))), place(), source()).prop_map(
        |(ranges, place, value)| {
            let (binders, filter) = ranges.unwrap_or_default();
            Ensures { binders, filter, kind: EnsuresKind::Equals { place, value }, span: SPAN }
        },
    );
    let synchronised =
        Ensures { binders: Vec::new(), filter: None, kind: EnsuresKind::Synchronised, span: SPAN };
    let ensures = prop_oneof![4 => equal, 1 => Just(synchronised)];
    (docs(), any_ident(), params(), world(), vec(buffer, 0..3), vec(inplace, 0..2), vec(ensures, 0..3))
        .prop_map(|(docs, name, params, world, buffers, inplace, ensures)| {
            Item::Collective(Collective { docs, name, params, world, buffers, inplace, ensures, span: SPAN })
        })
        .boxed()
}

fn algorithm() -> BoxedStrategy<Item> {
    (docs(), any_ident(), params(), world(), path(), args(), body())
        .prop_map(|(docs, name, params, world, implements, args, body)| {
            let span = SPAN;
            Item::Algorithm(Algorithm {
                docs,
                name,
                params,
                world,
                implements,
                args,
                implements_span: span,
                body,
                span,
            })
        })
        .boxed()
}

fn function() -> BoxedStrategy<Item> {
    (docs(), ident(), vec(ident(), 0..3), expr())
        .prop_map(|(docs, name, params, body)| Item::Fn(Fn { docs, name, params, body, span: SPAN }))
        .boxed()
}

fn file() -> impl Strategy<Value = File> {
    vec(prop_oneof![1 => collective(), 2 => algorithm(), 1 => function(), 1 => schedule()], 1..4)
        .prop_map(|items| File { items, comments: Vec::new(), lines: Vec::new() })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn printing_and_parsing_gives_the_tree_back(file in file()) {
        let text = print(&file);
        let parsed = parse(FileId(0), &text, &ParseLimits::default());
        prop_assert!(parsed.errors.is_empty(), "{:#?}\n{text}", parsed.errors);
        prop_assert!(eq_modulo_spans(&file, &parsed.file), "another tree:\n{text}");
        prop_assert_eq!(print(&parsed.file), text);
    }

    /// Trees that a program made, without parentheses: the printer puts in what is needed.
    #[test]
    fn missing_parentheses_are_put_in(left in bare()) {
        let body = Item::Fn(Fn { docs: Vec::new(), name: name("f"), params: Vec::new(), body: left.clone(), span: SPAN });
        let text = print(&File { items: vec![body], comments: Vec::new(), lines: Vec::new() });
        let parsed = parse(FileId(0), &text, &ParseLimits::default());
        prop_assert!(parsed.errors.is_empty(), "{:#?}\n{text}", parsed.errors);
        let Item::Fn(function) = &parsed.file.items[0] else { panic!("{text}") };
        prop_assert_eq!(shape(&function.body), shape(&left), "{}", text);
    }

    /// The span of each expression cuts out a text that is that expression.
    #[test]
    fn spans_cut_out_expressions(whole in expr()) {
        let body = Item::Fn(Fn { docs: Vec::new(), name: name("f"), params: Vec::new(), body: whole, span: SPAN });
        let text = print(&File { items: vec![body], comments: Vec::new(), lines: Vec::new() });
        let parsed = parse(FileId(0), &text, &ParseLimits::default());
        let Item::Fn(function) = &parsed.file.items[0] else { panic!("{text}") };
        let mut todo = vec![&function.body];
        while let Some(part) = todo.pop() {
            let slice = &text[part.span.range()];
            prop_assert_eq!(slice.trim(), slice);
            let alone = parse(FileId(0), &format!("fn f() = {slice}"), &ParseLimits::default());
            let Some(Item::Fn(again)) = alone.file.items.first() else { panic!("{slice} of {text}") };
            prop_assert_eq!(shape(&again.body), shape(part), "{} of {}", slice, text);
            children(part, &mut todo);
        }
    }
}

fn name(name: &str) -> Ident {
    Ident { name: name.to_owned(), span: SPAN }
}

fn children<'a>(expr: &'a Expr, into: &mut Vec<&'a Expr>) {
    match &expr.kind {
        ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Var(_) | ExprKind::SelfRank => {}
        ExprKind::Unary(_, one) | ExprKind::Index(_, one) | ExprKind::Paren(one) => into.push(one),
        ExprKind::Binary(_, left, right) => into.extend([&**left, &**right]),
        ExprKind::If(a, b, c) => into.extend([&**a, &**b, &**c]),
        ExprKind::Call(_, arguments) => into.extend(arguments),
        ExprKind::Sum { binders, filter, value } => {
            into.push(value);
            into.extend(filter.as_deref());
            for binder in binders {
                into.extend([&binder.from, &binder.to]);
                into.extend(&binder.step);
            }
        }
    }
}

/// What an expression means, as text that needs no precedence.
fn shape(expr: &Expr) -> String {
    if let ExprKind::Paren(inner) = &expr.kind {
        return shape(inner);
    }
    let mut parts = Vec::new();
    children(expr, &mut parts);
    let head = match &expr.kind {
        ExprKind::Int(value) => value.to_string(),
        ExprKind::Bool(value) => value.to_string(),
        ExprKind::Var(name) => name.clone(),
        ExprKind::SelfRank => "self".to_owned(),
        ExprKind::Unary(op, _) => format!("{op:?}"),
        ExprKind::Binary(op, ..) => format!("{op:?}"),
        ExprKind::If(..) => "if".to_owned(),
        ExprKind::Call(name, _) | ExprKind::Index(name, _) => name.name.clone(),
        ExprKind::Sum { .. } => "sum".to_owned(),
        ExprKind::Paren(_) => String::new(),
    };
    format!("({head} {})", parts.into_iter().map(shape).collect::<Vec<_>>().join(" "))
}

/// Expressions without a single parenthesis.
fn bare() -> BoxedStrategy<Expr> {
    let leaf = prop_oneof![
        (0i64..100).prop_map(|value| node(ExprKind::Int(value))),
        ident().prop_map(|name| node(ExprKind::Var(name.name))),
    ];
    leaf.prop_recursive(5, 24, 3, |inner| {
        let pair = (proptest::sample::select(&OPS[..]), inner.clone(), inner.clone());
        let bounds = (ident(), inner.clone(), inner.clone())
            .prop_map(|(name, from, to)| Binder { name, from, to, step: None, rev: false, span: SPAN });
        prop_oneof![
            6 => pair.prop_map(|(op, left, right)| node(ExprKind::Binary(op, Box::new(left), Box::new(right)))),
            2 => (any::<bool>(), inner.clone()).prop_map(|(neg, one)| {
                node(ExprKind::Unary(if neg { UnaryOp::Neg } else { UnaryOp::Not }, Box::new(one)))
            }),
            1 => (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| node(ExprKind::If(Box::new(a), Box::new(b), Box::new(c)))),
            3 => (bounds, inner).prop_map(|(binder, value)| node(ExprKind::Sum {
                binders: vec![binder],
                filter: None,
                value: Box::new(value)
            })),
        ]
    })
    .boxed()
}

/// Every pair of operators, against the table: `a x b y c` groups to the left unless `y` binds tighter.
#[test]
fn every_pair_of_operators_groups_by_the_table() {
    let signs =
        ["or", "and", "==", "!=", "<", "<=", ">", ">=", "|", "^", "&", "<<", ">>", "+", "-", "*", "/", "%"];
    let read = |text: &str| {
        let parsed = parse(FileId(0), &format!("fn f(a, b, c) = {text}"), &ParseLimits::default());
        match parsed.file.items.first() {
            Some(Item::Fn(function)) => Ok(shape(&function.body)),
            _ => Err(parsed.errors[0].code),
        }
    };
    for (left, first) in OPS.iter().zip(signs) {
        for (right, second) in OPS.iter().zip(signs) {
            let found = read(&format!("a {first} b {second} c"));
            if line(*left) == 4 && line(*right) == 4 {
                assert_eq!(found, Err("coll::chained_comparison"), "{first} {second}");
            } else if line(*right) > line(*left) {
                assert_eq!(found, read(&format!("a {first} (b {second} c)")), "{first} {second}");
            } else {
                assert_eq!(found, read(&format!("(a {first} b) {second} c")), "{first} {second}");
            }
        }
        assert_eq!(read(&format!("-a {first} -b")), read(&format!("(-a) {first} (-b)")), "{first}");
        let not = if line(*left) > 3 { format!("not (a {first} b)") } else { format!("(not a) {first} b") };
        assert_eq!(read(&format!("not a {first} b")), read(&not), "{first}");
        assert_eq!(
            read(&format!("if a then b else b {first} c")),
            read(&format!("if a then b else (b {first} c)"))
        );
        // `sum` takes a product with it.
        let sum = format!("sum(x in a..b) a {first} c");
        let grouped = if line(*left) == 10 {
            format!("sum(x in a..b) (a {first} c)")
        } else {
            format!("(sum(x in a..b) a) {first} c")
        };
        assert_eq!(read(&sum), read(&grouped), "{first}");
        let right = read(&format!("c {first} sum(x in a..b) a"));
        assert_eq!(right, read(&format!("c {first} (sum(x in a..b) a)")), "{first}");
    }
    // `b >> bit & 1 == 1` tests a bit.
    assert_eq!(read("b >> a & 1 == 1"), read("((b >> a) & 1) == 1"));
}

/// What stands after `@` and in bounds ends before a comparison.
#[test]
fn arithmetic_places_take_up_to_bars() {
    for op in ["|", "^", "&", "<<", ">>", "+", "-", "*", "/", "%"] {
        let text = format!(
            "algorithm x on ranks[n] implements y {{ for r in a {op} b..c {op} d step a {op} b {{ t @ a {op} b = t @ c {op} d }} }}"
        );
        assert!(parse(FileId(0), &text, &ParseLimits::default()).errors.is_empty(), "{text}");
    }
    for op in ["==", "<", "and", "or"] {
        let text = format!("algorithm x on ranks[n] implements y {{ t @ a {op} b = t @ c }}");
        assert_eq!(parse(FileId(0), &text, &ParseLimits::default()).errors.len(), 1, "{text}");
    }
}
