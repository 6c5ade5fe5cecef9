//! Expressions, by walking the tree.

use std::collections::BTreeMap;

use grammar::ast::{BinaryOp, Binder, Expr, ExprKind, Fn, List, UnaryOp};

use super::{Scope, Stop, Value};

type Functions<'a> = BTreeMap<String, &'a Fn>;

/// The value of an expression.
pub(super) fn number(expr: &Expr, scope: &Scope, functions: &Functions<'_>) -> Result<i64, Stop> {
    let sub = |e: &Expr| number(e, scope, functions);
    match &expr.kind {
        ExprKind::Int(value) => Ok(*value),
        ExprKind::Bool(value) => Ok(i64::from(*value)),
        ExprKind::Var(name) => match scope.get(name) {
            Some(Value::Number(value)) => Ok(*value),
            _ => Err(stop(format!("no number {name}"))),
        },
        ExprKind::SelfRank => match scope.get("self") {
            Some(Value::Number(value)) => Ok(*value),
            _ => Err(stop("no self".to_string())),
        },
        ExprKind::Paren(inner) => sub(inner),
        ExprKind::Unary(UnaryOp::Neg, e) => sub(e)?.checked_neg().ok_or_else(overflow),
        ExprKind::Unary(UnaryOp::Not, e) => Ok(i64::from(sub(e)? == 0)),
        ExprKind::Binary(BinaryOp::And, a, b) => Ok(if sub(a)? == 0 { 0 } else { sub(b)? }),
        ExprKind::Binary(BinaryOp::Or, a, b) => Ok(if sub(a)? != 0 { 1 } else { sub(b)? }),
        ExprKind::Binary(op, a, b) => binary(*op, sub(a)?, sub(b)?),
        ExprKind::If(c, t, e) => {
            if sub(c)? != 0 {
                sub(t)
            } else {
                sub(e)
            }
        }
        ExprKind::Index(name, at) => match scope.get(&name.name) {
            Some(Value::Table(table)) => {
                let at = sub(at)?;
                usize::try_from(at)
                    .ok()
                    .and_then(|i| table.get(i))
                    .copied()
                    .ok_or_else(|| stop(format!("[{at}]")))
            }
            _ => Err(stop(format!("no table {}", name.name))),
        },
        ExprKind::Sum { binders, filter, value } => {
            let mut total = 0i64;
            each(binders, filter.as_deref(), scope, functions, &mut |inner| {
                total = total.checked_add(number(value, inner, functions)?).ok_or_else(overflow)?;
                Ok(())
            })?;
            Ok(total)
        }
        ExprKind::Call(name, args) => {
            let args: Vec<i64> = args.iter().map(sub).collect::<Result<_, _>>()?;
            call(&name.name, &args, functions)
        }
    }
}

/// Runs `body` for every value of the binders that the filter keeps.
pub(super) fn each(
    binders: &[Binder],
    filter: Option<&Expr>,
    scope: &Scope,
    functions: &Functions<'_>,
    body: &mut dyn FnMut(&Scope) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let Some((binder, rest)) = binders.split_first() else {
        let kept = filter.map_or(Ok(1), |f| number(f, scope, functions))?;
        return if kept != 0 { body(scope) } else { Ok(()) };
    };
    let from = number(&binder.from, scope, functions)?;
    let to = number(&binder.to, scope, functions)?;
    let step = binder.step.as_ref().map_or(Ok(1), |s| number(s, scope, functions))?;
    if step <= 0 {
        return Err(stop(format!("step {step}")));
    }
    let mut values: Vec<i64> = (from..to).step_by(step as usize).collect();
    if binder.rev {
        values.reverse();
    }
    for value in values {
        let mut inner = scope.clone();
        inner.insert(binder.name.name.clone(), Value::Number(value));
        each(rest, filter, &inner, functions, body)?;
    }
    Ok(())
}

/// The elements of a list.
pub(super) fn list(list: &List, scope: &Scope, functions: &Functions<'_>) -> Result<Vec<i64>, Stop> {
    match list {
        List::Items(items, _) => items.iter().map(|e| number(e, scope, functions)).collect(),
        List::Each { value, binders, filter, .. } => {
            let mut out = Vec::new();
            each(binders, filter.as_deref(), scope, functions, &mut |inner| {
                out.push(number(value, inner, functions)?);
                Ok(())
            })?;
            Ok(out)
        }
    }
}

fn binary(op: BinaryOp, a: i64, b: i64) -> Result<i64, Stop> {
    let shift =
        |b: i64| u32::try_from(b).ok().filter(|&b| b < 64).ok_or_else(|| stop(format!("shift by {b}")));
    Ok(match op {
        BinaryOp::Mul => a.checked_mul(b).ok_or_else(overflow)?,
        BinaryOp::Add => a.checked_add(b).ok_or_else(overflow)?,
        BinaryOp::Sub => a.checked_sub(b).ok_or_else(overflow)?,
        BinaryOp::Div => a.checked_div_euclid(b).ok_or_else(|| stop("division".to_string()))?,
        BinaryOp::Rem => a.checked_rem_euclid(b).ok_or_else(|| stop("division".to_string()))?,
        BinaryOp::Shl => {
            let wide = i128::from(a) << shift(b)?;
            i64::try_from(wide).map_err(|_| overflow())?
        }
        BinaryOp::Shr => a >> shift(b)?,
        BinaryOp::BitAnd => a & b,
        BinaryOp::BitXor => a ^ b,
        BinaryOp::BitOr => a | b,
        BinaryOp::Eq => i64::from(a == b),
        BinaryOp::Ne => i64::from(a != b),
        BinaryOp::Lt => i64::from(a < b),
        BinaryOp::Le => i64::from(a <= b),
        BinaryOp::Gt => i64::from(a > b),
        BinaryOp::Ge => i64::from(a >= b),
        BinaryOp::And | BinaryOp::Or => unreachable!("decided lazily above"),
    })
}

fn call(name: &str, args: &[i64], functions: &Functions<'_>) -> Result<i64, Stop> {
    if let Some(function) = functions.get(name) {
        let names = function.params.iter().map(|p| p.name.clone());
        let scope: Scope = names.zip(args.iter().map(|&a| Value::Number(a))).collect();
        return number(&function.body, &scope, functions);
    }
    let positive = |x: i64| if x > 0 { Ok(x) } else { Err(stop(format!("logarithm of {x}"))) };
    Ok(match (name, args) {
        ("min", [first, rest @ ..]) => rest.iter().fold(*first, |a, &b| a.min(b)),
        ("max", [first, rest @ ..]) => rest.iter().fold(*first, |a, &b| a.max(b)),
        ("abs", &[x]) => x.checked_abs().ok_or_else(overflow)?,
        ("log2", &[x]) => i64::from(positive(x)?.ilog2()),
        ("ceil_log2", &[x]) => {
            (0..63).find(|&k| (1i128 << k) >= i128::from(x)).filter(|_| x > 0).unwrap_or(63)
        }
        ("is_power_of_two", &[x]) => i64::from(x > 0 && x & (x - 1) == 0),
        ("gcd", &[a, b]) => {
            let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
            while b != 0 {
                (a, b) = (b, a % b);
            }
            i64::try_from(a).map_err(|_| overflow())?
        }
        ("popcount", &[x]) => i64::from(x.count_ones()),
        ("lowbit", &[x]) => x & x.wrapping_neg(),
        _ => return Err(stop(format!("no function {name} of {} arguments", args.len()))),
    })
}

fn stop(why: String) -> Stop {
    Stop::Meaningless(why)
}

fn overflow() -> Stop {
    stop("overflow".to_string())
}
