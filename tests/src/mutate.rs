//! Single random changes to the text of an algorithm.
//!
//! In: a syntax tree and a random number. Out: the tree with one change, and what was changed in words. The one hard
//! idea: a site is found by counting. One walk counts all places where something can be changed, a second one
//! stops at the chosen one; both are the same walk, so every site is as likely as any other.

use grammar::ast::{
    Algorithm, BinaryOp, Binder, Coord, Expr, ExprKind, Index, LetValue, List, Move, MoveOp, Place, RankSet,
    Ranks, Region, Source, Stmt,
};

/// A source of random numbers.
pub trait Dice {
    /// A number below `bound`, which is at least 1.
    fn below(&mut self, bound: usize) -> usize;
}

enum Site<'a> {
    Expr(&'a mut Expr),
    Binder(&'a mut Binder),
    Move(&'a mut Move),
    Body(&'a mut Vec<Stmt>, usize),
}

/// Changes one thing; none if the algorithm has nothing to change.
pub fn mutate(algorithm: &mut Algorithm, dice: &mut dyn Dice) -> Option<String> {
    let names: Vec<String> = names(algorithm);
    let mut count = 0;
    body(&mut algorithm.body, &mut |_| {
        count += 1;
        None
    });
    if count == 0 {
        return None;
    }
    let chosen = dice.below(count);
    let mut seen = 0;
    body(&mut algorithm.body, &mut |site| {
        seen += 1;
        (seen == chosen + 1).then(|| change(site, &names, dice))
    })
}

type Visit<'v> = dyn FnMut(Site<'_>) -> Option<String> + 'v;

fn change(site: Site<'_>, names: &[String], dice: &mut dyn Dice) -> String {
    match site {
        Site::Expr(expr) => change_expr(expr, names, dice),
        Site::Binder(binder) => {
            binder.rev = !binder.rev;
            "turned a loop round".to_string()
        }
        Site::Move(mv) => match dice.below(3) {
            0 => {
                mv.op = if mv.op == MoveOp::Copy { MoveOp::Combine } else { MoveOp::Copy };
                "exchanged = and +=".to_string()
            }
            1 => match &mut mv.from {
                Source::Place(from) => {
                    std::mem::swap(&mut mv.to.rank, &mut from.rank);
                    "swapped the ranks of a move".to_string()
                }
                _ => "nothing".to_string(),
            },
            _ => match &mut mv.from {
                Source::Place(from) => {
                    std::mem::swap(&mut mv.to, from);
                    "turned a move round".to_string()
                }
                Source::List { places, .. } => {
                    places.pop();
                    "dropped an operand".to_string()
                }
                _ => "nothing".to_string(),
            },
        },
        Site::Body(stmts, index) => {
            if dice.below(2) == 0 || index + 1 >= stmts.len() {
                stmts.remove(index);
                "dropped a statement".to_string()
            } else {
                stmts.swap(index, index + 1);
                "swapped two statements".to_string()
            }
        }
    }
}

fn change_expr(expr: &mut Expr, names: &[String], dice: &mut dyn Dice) -> String {
    let span = expr.span;
    let with = |kind| Expr { kind, span };
    match dice.below(3) {
        0 if !names.is_empty() => {
            let name = names[dice.below(names.len())].clone();
            let told = format!("put {name} for an operand");
            expr.kind = ExprKind::Var(name);
            told
        }
        1 => {
            if let ExprKind::Binary(op, ..) = &mut expr.kind {
                const OPS: [BinaryOp; 8] = [
                    BinaryOp::Add,
                    BinaryOp::Sub,
                    BinaryOp::Mul,
                    BinaryOp::Rem,
                    BinaryOp::BitXor,
                    BinaryOp::Lt,
                    BinaryOp::Le,
                    BinaryOp::Eq,
                ];
                *op = OPS[dice.below(OPS.len())];
                return "put another operator".to_string();
            }
            expr.kind = ExprKind::Int(dice.below(4) as i64);
            "put a constant".to_string()
        }
        _ => {
            let op = if dice.below(2) == 0 { BinaryOp::Add } else { BinaryOp::Sub };
            let inner = std::mem::replace(&mut expr.kind, ExprKind::Int(0));
            let inner = with(ExprKind::Paren(Box::new(with(inner))));
            let sum = with(ExprKind::Binary(op, Box::new(inner), Box::new(with(ExprKind::Int(1)))));
            expr.kind = ExprKind::Paren(Box::new(sum));
            "moved an operand or a bound by one".to_string()
        }
    }
}

fn names(algorithm: &Algorithm) -> Vec<String> {
    let mut names: Vec<String> = algorithm.world.levels.iter().map(|l| l.name.clone()).collect();
    names.extend(algorithm.params.iter().map(|p| p.name.name.clone()));
    fn of(stmts: &[Stmt], names: &mut Vec<String>) {
        for stmt in stmts {
            match stmt {
                Stmt::Let(l) if matches!(l.value, LetValue::Expr(_)) => names.push(l.name.name.clone()),
                Stmt::For(f) => {
                    names.extend(f.binders.iter().map(|b| b.name.name.clone()));
                    of(&f.body, names);
                }
                Stmt::Step(s) => of(&s.body, names),
                Stmt::Labelled(l) => of(std::slice::from_ref(&*l.body), names),
                Stmt::If(i) => {
                    of(&i.then, names);
                    of(&i.otherwise, names);
                }
                _ => {}
            }
        }
    }
    of(&algorithm.body, &mut names);
    names.sort();
    names.dedup();
    names
}

/// Visits all sites below; stops at the first visit that returns something.
fn body(stmts: &mut Vec<Stmt>, visit: &mut Visit<'_>) -> Option<String> {
    for index in 0..stmts.len() {
        if matches!(
            stmts[index],
            Stmt::Move(_) | Stmt::For(_) | Stmt::Step(_) | Stmt::Run(_) | Stmt::If(_) | Stmt::Labelled(_)
        ) && let Some(told) = visit(Site::Body(stmts, index))
        {
            return Some(told);
        }
        let told = inside(&mut stmts[index], visit);
        if told.is_some() {
            return told;
        }
    }
    None
}

/// The sites in one statement.
fn inside(stmt: &mut Stmt, visit: &mut Visit<'_>) -> Option<String> {
    match stmt {
        Stmt::Chunks(c) => expr(&mut c.count, visit),
        Stmt::Scratch(s) => s.blocks.as_mut().and_then(|b| expr(b, visit)),
        Stmt::Let(l) => match &mut l.value {
            LetValue::Expr(e) => expr(e, visit),
            LetValue::Table(t) => list(t, visit),
        },
        Stmt::Require(_) | Stmt::OutOfPlaceOnly(_) => None,
        Stmt::For(f) => binders(&mut f.binders, visit)
            .or_else(|| f.filter.as_mut().and_then(|e| expr(e, visit)))
            .or_else(|| body(&mut f.body, visit)),
        Stmt::If(i) => expr(&mut i.condition, visit)
            .or_else(|| body(&mut i.then, visit))
            .or_else(|| body(&mut i.otherwise, visit)),
        Stmt::Step(s) => body(&mut s.body, visit),
        Stmt::Move(m) => {
            visit(Site::Move(m)).or_else(|| place(&mut m.to, visit)).or_else(|| source(&mut m.from, visit))
        }
        Stmt::Run(r) => {
            let args = r.args.iter_mut().find_map(|a| expr(&mut a.value, visit));
            args.or_else(|| rank_set(&mut r.on, visit))
                .or_else(|| r.bindings.iter_mut().find_map(|b| region(&mut b.region, visit)))
        }
        Stmt::Labelled(l) => inside(&mut l.body, visit),
    }
}

fn binders(binders: &mut [Binder], visit: &mut Visit<'_>) -> Option<String> {
    binders.iter_mut().find_map(|b| {
        visit(Site::Binder(b)).or_else(|| expr(&mut b.from, visit)).or_else(|| expr(&mut b.to, visit))
    })
}

fn source(from: &mut Source, visit: &mut Visit<'_>) -> Option<String> {
    match from {
        Source::Place(p) | Source::Gather { place: p, .. } => place(p, visit),
        Source::List { places, .. } => places.iter_mut().find_map(|p| place(p, visit)),
        Source::Each { binders: b, filter, place: p, .. } => binders(b, visit)
            .or_else(|| filter.as_mut().and_then(|e| expr(e, visit)))
            .or_else(|| place(p, visit)),
    }
}

fn place(place: &mut Place, visit: &mut Visit<'_>) -> Option<String> {
    region(&mut place.region, visit).or_else(|| ranks(&mut place.rank, visit))
}

fn region(region: &mut Region, visit: &mut Visit<'_>) -> Option<String> {
    region.indices.iter_mut().find_map(|index| match index {
        Index::One(e) => expr(e, visit),
        Index::Range { from, to, .. } => expr(from, visit).or_else(|| expr(to, visit)),
    })
}

fn ranks(ranks: &mut Ranks, visit: &mut Visit<'_>) -> Option<String> {
    match ranks {
        Ranks::One(e) => expr(e, visit),
        Ranks::All(_) => None,
        Ranks::Tuple(coords, _) => coords.iter_mut().find_map(|c| match c {
            Coord::At(e) => expr(e, visit),
            Coord::All(_) => None,
        }),
    }
}

fn rank_set(set: &mut RankSet, visit: &mut Visit<'_>) -> Option<String> {
    match set {
        RankSet::Ranks(r) => ranks(r, visit),
        RankSet::Range { from, to, .. } => expr(from, visit).or_else(|| expr(to, visit)),
        RankSet::List(l) => list(l, visit),
    }
}

fn list(list: &mut List, visit: &mut Visit<'_>) -> Option<String> {
    match list {
        List::Items(items, _) => items.iter_mut().find_map(|e| expr(e, visit)),
        List::Each { value, binders: b, .. } => binders(b, visit).or_else(|| expr(value, visit)),
    }
}

fn expr(e: &mut Expr, visit: &mut Visit<'_>) -> Option<String> {
    if let Some(told) = visit(Site::Expr(e)) {
        return Some(told);
    }
    match &mut e.kind {
        ExprKind::Unary(_, a) | ExprKind::Paren(a) | ExprKind::Index(_, a) => expr(a, visit),
        ExprKind::Binary(_, a, b) => expr(a, visit).or_else(|| expr(b, visit)),
        ExprKind::If(c, t, o) => expr(c, visit).or_else(|| expr(t, visit)).or_else(|| expr(o, visit)),
        ExprKind::Call(_, args) => args.iter_mut().find_map(|a| expr(a, visit)),
        ExprKind::Sum { value, .. } => expr(value, visit),
        ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Var(_) | ExprKind::SelfRank => None,
    }
}
