//! What a declaration says before its body: levels, parameters, arguments.
//!
//! In: `ast::World`, `ast::Param`s and `ast::Arg`s. Out: a scope that holds them, checked parameters, and one
//! expression (or none: the default) per parameter.

use grammar::ast::{self, ParamType};
use grammar::span::Span;

use super::Checker;
use super::checked::{ExprId, Param};
use super::error::{ErrorKind, NameKind};
use super::scope::{Entity, Scope};
use super::types::Type;

/// Whose arguments are bound.
pub(crate) struct Called<'p> {
    pub name: &'p str,
    pub params: &'p [Param],
    /// Where a missing argument is reported.
    pub span: Span,
}

impl Checker<'_> {
    /// A scope with `self`, the level sizes and the parameters, and the parameters themselves.
    pub(crate) fn head(
        &mut self,
        unit: usize,
        world: &ast::World,
        params: &[ast::Param],
    ) -> (Scope, Vec<Param>) {
        let mut scope = Scope::new(unit, world.span, world.levels.len(), 1);
        for level in &world.levels {
            let slot = scope.slot();
            self.declare(&mut scope, level, Entity::Variable(slot, Type::Int));
        }
        let mut checked = Vec::with_capacity(params.len());
        for param in params {
            let ty = param_type(param.ty);
            let default = param.default.as_ref().map(|default| self.expect(&mut scope, default, ty));
            let slot = scope.slot();
            self.declare(&mut scope, &param.name, Entity::Variable(slot, ty));
            checked.push(Param { name: param.name.name.clone(), span: param.span, ty: param.ty, default });
        }
        (scope, checked)
    }

    /// Binds arguments, positional or named, to parameters.
    pub(crate) fn bind(
        &mut self,
        scope: &mut Scope,
        called: &Called<'_>,
        args: &[ast::Arg],
    ) -> Vec<Option<ExprId>> {
        let mut bound: Vec<Option<(ExprId, Span)>> = vec![None; called.params.len()];
        let mut named = false;
        let mut wrong = false;
        for (i, arg) in args.iter().enumerate() {
            let index = match &arg.name {
                None if named => {
                    self.error(arg.span, ErrorKind::PositionalAfterNamed);
                    None
                }
                None if i >= called.params.len() => {
                    let (name, expected) = (called.name.to_owned(), called.params.len());
                    let kind = ErrorKind::Arity { name, expected, at_least: false, found: args.len() };
                    self.error(arg.span, kind);
                    self.expr(scope, &arg.value);
                    return bound.into_iter().map(|b| b.map(|(id, _)| id)).collect();
                }
                None => Some(i),
                Some(name) => {
                    named = true;
                    let index = called.params.iter().position(|param| param.name == name.name);
                    if index.is_none() {
                        let known = called.params.iter().map(|param| param.name.as_str());
                        let nearest = self.nearest(&name.name, known);
                        let (kind, of) = (NameKind::Parameter, Some(called.name.to_owned()));
                        let name_text = name.name.clone();
                        let kind = ErrorKind::UnknownName { kind, name: name_text, nearest, is: None, of };
                        self.error(name.span, kind);
                    }
                    index
                }
            };
            let Some(index) = index else {
                wrong = true;
                self.expr(scope, &arg.value);
                continue;
            };
            let value = self.expect(scope, &arg.value, param_type(called.params[index].ty));
            if let Some((_, first)) = bound[index] {
                let param = called.params[index].name.clone();
                self.error(arg.span, ErrorKind::ArgumentTwice { param, first });
                wrong = true;
            } else {
                bound[index] = Some((value, arg.span));
            }
        }
        let missing =
            called.params.iter().zip(&bound).find(|(p, bound)| bound.is_none() && p.default.is_none());
        // An argument under a wrong name is most likely the one that is missing.
        if let (Some((param, _)), false) = (missing, wrong) {
            let (of, declared) = (called.name.to_owned(), param.span);
            let kind = ErrorKind::MissingArgument { of, param: param.name.clone(), declared };
            self.error(called.span, kind);
        }
        bound.into_iter().map(|b| b.map(|(id, _)| id)).collect()
    }
}

/// The type of values of a parameter.
fn param_type(ty: ParamType) -> Type {
    match ty {
        ParamType::Int | ParamType::Rank => Type::Int,
        ParamType::Bool => Type::Bool,
    }
}
