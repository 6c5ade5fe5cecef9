//! Expressions: names to slots, types checked, nodes appended to the program's arena.
//!
//! In: `ast::Expr` and a scope. Out: an `ExprId` and a type. Every error is reported and answered with
//! `Type::Wrong`, which agrees with everything, so that one mistake is one error.

use grammar::ast::{self, BinaryOp, ExprKind, UnaryOp};
use grammar::span::Span;

use super::Checker;
use super::checked::{Binder, Builtin, Each, ExprId, List, Loops, Node, Slot};
use super::error::{ErrorKind, NameKind};
use super::scope::{Entity, Scope};
use super::types::Type;

/// How deep an expression may nest, also through functions: evaluation is recursive.
pub(crate) const EXPRESSION_DEPTH: u32 = 500;

impl Checker<'_> {
    /// An expression that must be an integer.
    pub(crate) fn int(&mut self, scope: &mut Scope, expr: &ast::Expr) -> ExprId {
        self.expect(scope, expr, Type::Int)
    }

    /// An expression that must be a truth value.
    pub(crate) fn condition(&mut self, scope: &mut Scope, expr: &ast::Expr) -> ExprId {
        self.expect(scope, expr, Type::Bool)
    }

    /// An expression that must be of a certain type.
    pub(crate) fn expect(&mut self, scope: &mut Scope, expr: &ast::Expr, expected: Type) -> ExprId {
        let (id, found) = self.expr(scope, expr);
        self.unify(scope, expr.span, expected, found);
        id
    }

    /// Any expression.
    pub(crate) fn expr(&mut self, scope: &mut Scope, expr: &ast::Expr) -> (ExprId, Type) {
        if scope.depth >= EXPRESSION_DEPTH {
            self.error(expr.span, ErrorKind::TooDeep { limit: EXPRESSION_DEPTH });
            return self.wrong(expr.span);
        }
        scope.depth += 1;
        let result = self.expr_within(scope, expr);
        scope.depth -= 1;
        result
    }

    fn expr_within(&mut self, scope: &mut Scope, expr: &ast::Expr) -> (ExprId, Type) {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Int(value) => (self.push(Node::Int(*value), span), Type::Int),
            ExprKind::Bool(value) => (self.push(Node::Int((*value).into()), span), Type::Bool),
            ExprKind::Var(name) => self.variable(scope, name, span),
            ExprKind::SelfRank => {
                if !scope.self_allowed {
                    self.error(span, ErrorKind::SelfOutside);
                    return self.wrong(span);
                }
                (self.push(Node::Slot(Slot(0)), span), Type::Int)
            }
            ExprKind::Paren(inner) => self.expr(scope, inner),
            ExprKind::Unary(UnaryOp::Neg, inner) => {
                let inner = self.int(scope, inner);
                (self.push(Node::Neg(inner), span), Type::Int)
            }
            ExprKind::Unary(UnaryOp::Not, inner) => {
                let inner = self.condition(scope, inner);
                (self.push(Node::Not(inner), span), Type::Bool)
            }
            ExprKind::Binary(op, left, right) => self.binary(scope, *op, left, right, span),
            ExprKind::If(condition, then, otherwise) => {
                let condition = self.condition(scope, condition);
                let (a, ty) = self.expr(scope, then);
                let (b, other) = self.expr(scope, otherwise);
                let ty = self.unify(scope, otherwise.span, ty, other);
                (self.push(Node::If(condition, a, b), span), ty)
            }
            ExprKind::Call(name, args) => self.call(scope, name, args, span),
            ExprKind::Index(name, index) => self.element(scope, name, index, span),
            ExprKind::Sum { binders, filter, value } => {
                let mark = scope.mark();
                let loops = self.loops(scope, binders, filter.as_deref());
                let value = self.int(scope, value);
                scope.leave(mark);
                self.program.exprs.sums.push(Each { loops, value });
                let sum = self.program.exprs.sums.len() as u32 - 1;
                (self.push(Node::Sum(sum), span), Type::Int)
            }
        }
    }

    fn variable(&mut self, scope: &mut Scope, name: &str, span: Span) -> (ExprId, Type) {
        match scope.get(name) {
            Some((Entity::Variable(slot, ty), _)) => (self.push(Node::Slot(slot), span), ty),
            Some((Entity::Table(..), _)) => (self.wrong(span).0, Type::Table),
            Some((Entity::Buffer(_), _)) => (self.wrong(span).0, Type::Buffer),
            None if name == "signal" => (self.wrong(span).0, Type::Buffer),
            None => {
                let is = self.function_of(scope.unit, name).map(|_| NameKind::Function);
                let known = scope.names().filter(|(_, e)| matches!(e, Entity::Variable(..)));
                let nearest = self.nearest(name, known.map(|(name, _)| name));
                let kind = NameKind::Variable;
                self.error(span, ErrorKind::UnknownName { kind, name: name.into(), nearest, is, of: None });
                self.wrong(span)
            }
        }
    }

    fn binary(
        &mut self,
        scope: &mut Scope,
        op: BinaryOp,
        left: &ast::Expr,
        right: &ast::Expr,
        span: Span,
    ) -> (ExprId, Type) {
        let (operands, result) = match op {
            BinaryOp::And | BinaryOp::Or => (Type::Bool, Type::Bool),
            BinaryOp::Eq | BinaryOp::Ne => {
                let (a, ty) = self.expr(scope, left);
                let (b, other) = self.expr(scope, right);
                let both = self.unify(scope, right.span, ty, other);
                if let Type::Table | Type::Buffer = both {
                    self.unify(scope, left.span, Type::Int, both);
                }
                return (self.push(Node::Binary(op, a, b), span), Type::Bool);
            }
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => (Type::Int, Type::Bool),
            _ => (Type::Int, Type::Int),
        };
        let a = self.expect(scope, left, operands);
        let b = self.expect(scope, right, operands);
        (self.push(Node::Binary(op, a, b), span), result)
    }

    fn call(
        &mut self,
        scope: &mut Scope,
        name: &ast::Ident,
        args: &[ast::Expr],
        span: Span,
    ) -> (ExprId, Type) {
        let builtin = Builtin::ALL.iter().find(|(known, _)| *known == name.name).map(|&(_, builtin)| builtin);
        if let Some(builtin) = builtin {
            let (count, at_least) = match builtin {
                Builtin::Min | Builtin::Max => (2, true),
                Builtin::Gcd => (2, false),
                _ => (1, false),
            };
            self.arity(name, args.len(), count, at_least);
            let ids: Vec<ExprId> = args.iter().map(|arg| self.int(scope, arg)).collect();
            let right = if at_least { ids.len() >= count } else { ids.len() == count };
            if !right {
                return self.wrong(span);
            }
            let ty = if builtin == Builtin::IsPowerOfTwo { Type::Bool } else { Type::Int };
            let (first, count) = self.args(&ids);
            return (self.push(Node::Builtin(builtin, first, count), span), ty);
        }
        let Some(function) = self.function_of(scope.unit, &name.name) else {
            for arg in args {
                self.expr(scope, arg);
            }
            let is = scope.get(&name.name).map(|(entity, _)| entity_kind(entity));
            let nearest = {
                let own = self.files[scope.unit].fn_names.iter().map(String::as_str);
                self.nearest(&name.name, own.chain(Builtin::ALL.iter().map(|(name, _)| *name)))
            };
            let name_kind = NameKind::Function;
            let kind =
                ErrorKind::UnknownName { kind: name_kind, name: name.name.clone(), nearest, is, of: None };
            self.error(name.span, kind);
            return self.wrong(span);
        };
        let mut ids = Vec::with_capacity(args.len());
        let signature = self.signatures[function.index()].clone();
        let signature = signature.map(|s| scope.types.instantiate(&s));
        for (i, arg) in args.iter().enumerate() {
            let (id, found) = self.expr(scope, arg);
            if let Some(&expected) = signature.as_ref().and_then(|s| s.params.get(i)) {
                self.unify(scope, arg.span, expected, found);
            } else if let Type::Table | Type::Buffer = found {
                self.unify(scope, arg.span, Type::Int, found);
            }
            ids.push(id);
        }
        // No signature: it is part of a circle, which is reported once for all its members.
        let Some(signature) = signature else { return self.wrong(span) };
        if !self.arity(name, ids.len(), signature.params.len(), false) {
            return self.wrong(span);
        }
        let (first, count) = self.args(&ids);
        (self.push(Node::Call(function, first, count), span), signature.result)
    }

    fn arity(&mut self, name: &ast::Ident, found: usize, expected: usize, at_least: bool) -> bool {
        let right = if at_least { found >= expected } else { found == expected };
        if !right {
            self.error(name.span, ErrorKind::Arity { name: name.name.clone(), expected, at_least, found });
        }
        right
    }

    fn element(
        &mut self,
        scope: &mut Scope,
        name: &ast::Ident,
        index: &ast::Expr,
        span: Span,
    ) -> (ExprId, Type) {
        let index = self.int(scope, index);
        match scope.get(&name.name) {
            Some((Entity::Table(table, ty), _)) => (self.push(Node::Element(table, index), span), ty),
            Some((_, declared)) => {
                self.error(name.span, ErrorKind::NotATable { name: name.name.clone(), declared });
                self.wrong(span)
            }
            None => {
                let known = scope.names().filter(|(_, e)| matches!(e, Entity::Table(..)));
                let nearest = self.nearest(&name.name, known.map(|(name, _)| name));
                let is = self.function_of(scope.unit, &name.name).map(|_| NameKind::Function);
                let kind = NameKind::Table;
                let kind = ErrorKind::UnknownName { kind, name: name.name.clone(), nearest, is, of: None };
                self.error(name.span, kind);
                self.wrong(span)
            }
        }
    }

    /// Binders and their filter; their variables stay in scope until the caller leaves it.
    pub(crate) fn loops(
        &mut self,
        scope: &mut Scope,
        binders: &[ast::Binder],
        filter: Option<&ast::Expr>,
    ) -> Loops {
        let mut checked: Vec<Binder> = Vec::with_capacity(binders.len());
        let mut independent = true;
        for binder in binders {
            let from = self.int(scope, &binder.from);
            let to = self.int(scope, &binder.to);
            let step = binder.step.as_ref().map(|step| self.int(scope, step));
            let first = checked.first().map_or(0, |b| b.slot.0);
            let exprs = &self.program.exprs;
            let earlier = |slot: Slot| (first..first + checked.len() as u32).contains(&slot.0);
            let bounds = [Some(from), Some(to), step];
            independent &= !bounds.into_iter().flatten().any(|bound| exprs.reads(bound, &earlier));
            let slot = scope.slot();
            self.declare(scope, &binder.name, Entity::Variable(slot, Type::Int));
            let (name, rev, span) = (binder.name.name.clone(), binder.rev, binder.span);
            let range = Span { start: binder.from.span.start, ..span };
            checked.push(Binder { slot, name, from, to, step, rev, span, range });
        }
        let filter = filter.map(|filter| self.condition(scope, filter));
        let levels = checked.iter().map(|binder| self.level_of(scope, binder)).collect();
        Loops { binders: checked, filter, independent, levels }
    }

    /// The level whose size the bounds of a binder read, if one.
    fn level_of(&self, scope: &Scope, binder: &Binder) -> Option<String> {
        let exprs = &self.program.exprs;
        let level =
            (1..=scope.levels as u32).find(|&level| exprs.reads(binder.to, &|slot| slot.0 == level))?;
        let mut names = scope.names();
        names
            .find(|(_, e)| matches!(e, Entity::Variable(slot, _) if slot.0 == level))
            .map(|(n, _)| n.to_owned())
    }

    /// `[a, b, c]` or `[e for x in a..b]`, and the type of its elements.
    pub(crate) fn list(&mut self, scope: &mut Scope, list: &ast::List) -> (List, Type) {
        match list {
            ast::List::Items(items, _) => {
                let mut ids = Vec::with_capacity(items.len());
                let mut ty = None;
                for item in items {
                    let (id, found) = self.expr(scope, item);
                    let found = self.value(scope, item.span, found);
                    ty = Some(ty.map_or(found, |ty| self.unify(scope, item.span, ty, found)));
                    ids.push(id);
                }
                (List::Items(ids), ty.unwrap_or(Type::Int))
            }
            ast::List::Each { value, binders, filter, .. } => {
                let mark = scope.mark();
                let loops = self.loops(scope, binders, filter.as_deref());
                let (id, ty) = self.expr(scope, value);
                let ty = self.value(scope, value.span, ty);
                scope.leave(mark);
                (List::Each(Box::new(Each { loops, value: id })), ty)
            }
        }
    }

    /// Refuses what is no value by itself: a table, a buffer.
    pub(crate) fn value(&mut self, scope: &mut Scope, span: Span, found: Type) -> Type {
        match found {
            Type::Table | Type::Buffer => self.unify(scope, span, Type::Int, found),
            other => other,
        }
    }

    /// Makes two types agree, or reports that they do not; gives what is known then.
    pub(crate) fn unify(&mut self, scope: &mut Scope, span: Span, expected: Type, found: Type) -> Type {
        if scope.types.unify(expected, found) {
            return scope.types.resolve(if expected == Type::Wrong { found } else { expected });
        }
        let (expected, found) = (scope.types.resolve(expected), scope.types.resolve(found));
        // A parameter that no use has decided yet is asked to be a value.
        let expected = if let Type::Unknown(_) = expected { Type::Int } else { expected };
        self.error(span, ErrorKind::Type { expected, found });
        Type::Wrong
    }

    /// A stand-in for an expression that was reported.
    pub(crate) fn wrong(&mut self, span: Span) -> (ExprId, Type) {
        (self.push(Node::Int(0), span), Type::Wrong)
    }

    fn args(&mut self, ids: &[ExprId]) -> (u32, u32) {
        let first = self.program.exprs.args.len() as u32;
        self.program.exprs.args.extend_from_slice(ids);
        (first, ids.len() as u32)
    }

    /// Appends a node with its cost and depth.
    fn push(&mut self, node: Node, span: Span) -> ExprId {
        let exprs = &self.program.exprs;
        let mut cost = 1u32;
        let mut depth = 0u32;
        let mut add = |id: ExprId| {
            cost = cost.saturating_add(exprs.cost[id.index()]);
            depth = depth.max(exprs.depth[id.index()]);
        };
        match node {
            Node::Int(_) | Node::Slot(_) => {}
            Node::Neg(a) | Node::Not(a) | Node::Element(_, a) => add(a),
            Node::Binary(_, a, b) => [a, b].into_iter().for_each(&mut add),
            Node::If(a, b, c) => [a, b, c].into_iter().for_each(&mut add),
            Node::Builtin(_, first, count) => {
                exprs.args[first as usize..][..count as usize].iter().copied().for_each(&mut add);
            }
            Node::Call(function, first, count) => {
                exprs.args[first as usize..][..count as usize].iter().copied().for_each(&mut add);
                // Its body is checked first (see `functions`), so it stands in the arena.
                let body = self.program.fns[function.index()].body;
                depth = depth.max(exprs.depth.get(body.index()).copied().unwrap_or(0));
            }
            Node::Sum(sum) => {
                let each = &exprs.sums[sum as usize];
                let bounds = each.loops.binders.iter().flat_map(|b| [Some(b.from), Some(b.to), b.step]);
                bounds.chain([each.loops.filter]).flatten().for_each(&mut add);
                depth = depth.max(exprs.depth[each.value.index()]);
            }
        }
        let depth = depth + 1;
        if depth == EXPRESSION_DEPTH + 1 {
            self.error(span, ErrorKind::TooDeep { limit: EXPRESSION_DEPTH });
        }
        let depth = if depth > EXPRESSION_DEPTH { 0 } else { depth };
        let exprs = &mut self.program.exprs;
        exprs.nodes.push(node);
        exprs.spans.push(span);
        exprs.cost.push(cost);
        exprs.depth.push(depth);
        ExprId(exprs.nodes.len() as u32 - 1)
    }
}

/// What kind of name an entity is.
pub(crate) fn entity_kind(entity: Entity) -> NameKind {
    match entity {
        Entity::Variable(..) => NameKind::Variable,
        Entity::Table(..) => NameKind::Table,
        Entity::Buffer(_) => NameKind::Buffer,
    }
}
