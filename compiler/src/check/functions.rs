//! Functions: callee first, so that every call finds the type of what it calls; circles reported.
//!
//! In: the `fn` items of all units. Out: their bodies in the arena and their signatures. Neither the order nor the
//! walk over a body recurses: a file may chain a hundred thousand functions.

use grammar::ast::{Expr, ExprKind, Fn, Item};
use grammar::span::Span;

use super::Checker;
use super::checked::{ExprId, FnId, Function};
use super::cycles;
use super::error::ErrorKind;
use super::scope::{Entity, Scope};

impl<'a> Checker<'a> {
    /// Checks all functions.
    pub(crate) fn functions(&mut self) {
        let units = self.units;
        let items = units.iter().enumerate().flat_map(|(unit, u)| u.ast.items.iter().map(move |i| (unit, i)));
        let fns: Vec<(usize, &'a Fn)> = items
            .filter_map(|(unit, item)| if let Item::Fn(f) = item { Some((unit, f)) } else { None })
            .collect();
        self.program.fns = vec![Function { body: ExprId(0), frame: 0 }; fns.len()];
        self.signatures = vec![None; fns.len()];
        let calls: Vec<Vec<(u32, Span)>> = fns.iter().map(|(unit, f)| self.calls(*unit, &f.body)).collect();
        let order = cycles::order(&calls);
        for cycle in order.circles {
            let cycle: Vec<_> =
                cycle.into_iter().map(|(f, call)| (fns[f as usize].1.name.name.clone(), call)).collect();
            self.error(cycle[0].1, ErrorKind::Recursion { functions: true, cycle });
        }
        for f in order.sorted {
            let (unit, item) = fns[f as usize];
            self.function(unit, FnId(f), item);
        }
    }

    fn function(&mut self, unit: usize, id: FnId, item: &Fn) {
        let mut scope = Scope::new(unit, item.span, 0, 0);
        let mut params = Vec::with_capacity(item.params.len());
        for param in &item.params {
            let ty = scope.types.fresh();
            let slot = scope.slot();
            self.declare(&mut scope, param, Entity::Variable(slot, ty));
            params.push(ty);
        }
        let (body, result) = self.expr(&mut scope, &item.body);
        let result = self.value(&mut scope, item.body.span, result);
        self.signatures[id.index()] = Some(scope.types.generalise(&params, result));
        self.program.fns[id.index()] = Function { body, frame: scope.frame() };
    }

    /// The functions that an expression calls, and where.
    fn calls(&self, unit: usize, body: &Expr) -> Vec<(u32, Span)> {
        let mut found = Vec::new();
        let mut todo = vec![body];
        while let Some(expr) = todo.pop() {
            match &expr.kind {
                ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Var(_) | ExprKind::SelfRank => {}
                ExprKind::Unary(_, a) | ExprKind::Paren(a) | ExprKind::Index(_, a) => todo.push(a),
                ExprKind::Binary(_, a, b) => todo.extend([&**b, a]),
                ExprKind::If(a, b, c) => todo.extend([&**c, b, a]),
                ExprKind::Call(name, args) => {
                    found.extend(self.function_of(unit, &name.name).map(|id| (id.0, name.span)));
                    todo.extend(args.iter().rev());
                }
                ExprKind::Sum { binders, filter, value } => {
                    todo.push(value);
                    todo.extend(filter.as_deref());
                    for binder in binders {
                        todo.extend(binder.step.as_ref());
                        todo.extend([&binder.to, &binder.from]);
                    }
                }
            }
        }
        found
    }
}
