//! `run`: which algorithm, on which ranks, with which parts of the data.
//!
//! In: `ast::Run`. Out: `checked::Run`: one argument per parameter, one binding per buffer of the callee.

use grammar::ast::{self, Mode};

use super::Checker;
use super::checked::{AlgorithmId, Binding, RankSet, Ranks, Run};
use super::error::{ErrorKind, NameKind};
use super::head::Called;
use super::places::Use;
use super::scope::Scope;
use super::statements::SELF;

impl Checker<'_> {
    /// A `run`.
    pub(crate) fn run(&mut self, scope: &mut Scope, item: &ast::Run, site: u32) -> Option<Run> {
        let callee = self.algorithm_of(scope.unit, &scope.collective, &item.callee);
        let (on, stars) = self.rank_set(scope, &item.on);
        let Some(callee) = callee else {
            for arg in &item.args {
                self.expr(scope, &arg.value);
            }
            for binding in &item.bindings {
                scope.self_allowed = true;
                self.region(scope, &binding.region, Use::Bound);
                scope.self_allowed = false;
            }
            return None;
        };
        let args = self.run_args(scope, callee, item);
        self.run_levels(callee, item, stars);
        let bindings = self.bindings(scope, callee, item);
        let on_span = on_span(&item.on);
        Some(Run { callee, args, on: on?, on_span, bindings: bindings?, span: item.span, site })
    }

    fn run_args(
        &mut self,
        scope: &mut Scope,
        callee: AlgorithmId,
        item: &ast::Run,
    ) -> Vec<Option<super::checked::ExprId>> {
        let algorithm = self.program.algorithm(callee);
        let (name, params) = (algorithm.name.clone(), algorithm.params.clone());
        self.bind(scope, &Called { name: &name, params: &params, span: item.callee.span }, &item.args)
    }

    /// A callee of one level runs on any ranks; one of more levels on as many `*`.
    fn run_levels(&mut self, callee: AlgorithmId, item: &ast::Run, stars: usize) {
        let algorithm = self.program.algorithm(callee);
        if algorithm.levels != 1 && algorithm.levels != stars {
            let (name, expected, declared) = (algorithm.name.clone(), algorithm.levels, algorithm.name_span);
            let kind = ErrorKind::Levels { name, expected, found: stars, declared, run: true };
            self.error(on_span(&item.on), kind);
        }
    }

    /// The ranks, and over how many levels they run freely.
    fn rank_set(&mut self, scope: &mut Scope, on: &ast::RankSet) -> (Option<RankSet>, usize) {
        match on {
            ast::RankSet::Ranks(ranks) => {
                let ranks = self.ranks(scope, ranks);
                let stars = match &ranks {
                    Some(Ranks::All) => scope.levels,
                    Some(Ranks::Tuple(coords, _)) => coords.iter().filter(|coord| coord.is_none()).count(),
                    _ => 1,
                };
                (ranks.map(RankSet::Ranks), stars)
            }
            ast::RankSet::Range { from, to, .. } => {
                (Some(RankSet::Range(self.int(scope, from), self.int(scope, to))), 1)
            }
            ast::RankSet::List(list) => {
                let span = match list {
                    ast::List::Items(_, span) | ast::List::Each { span, .. } => *span,
                };
                let (list, ty) = self.list(scope, list);
                self.unify(scope, span, super::types::Type::Int, ty);
                (Some(RankSet::List(list)), 1)
            }
        }
    }

    fn bindings(&mut self, scope: &mut Scope, callee: AlgorithmId, item: &ast::Run) -> Option<Vec<Binding>> {
        let algorithm = self.program.algorithm(callee);
        let buffers = self.program.collective(algorithm.collective).buffers.clone();
        let callee_name = algorithm.name.clone();
        let mut bound: Vec<Option<Binding>> = vec![None; buffers.len()];
        let mut seen: Vec<Option<grammar::span::Span>> = vec![None; buffers.len()];
        let mut wrong = false;
        for binding in &item.bindings {
            let name = &binding.buffer;
            let index = buffers.iter().position(|buffer| buffer.name == name.name);
            scope.self_allowed = true;
            let region = self.region(scope, &binding.region, Use::Bound);
            scope.self_allowed = false;
            let Some(index) = index else {
                let nearest = self.nearest(&name.name, buffers.iter().map(|b| b.name.as_str()));
                let (kind, text) = (NameKind::Buffer, name.name.clone());
                let of = Some(callee_name.clone());
                let kind = ErrorKind::UnknownName { kind, name: text, nearest, is: None, of };
                self.error(name.span, kind);
                wrong = true;
                continue;
            };
            if let Some(first) = seen[index] {
                self.error(binding.span, ErrorKind::BoundTwice { buffer: name.name.clone(), first });
                continue;
            }
            seen[index] = Some(binding.span);
            let Some(region) = region else {
                wrong = true;
                continue;
            };
            let here = &scope.buffers[region.buffer as usize];
            if here.mode == Some(Mode::In) && buffers[index].mode != Mode::In {
                let (buffer, declared) = (here.name.clone(), here.span);
                let bound_to = Some(name.name.clone());
                self.error(binding.span, ErrorKind::InWritten { buffer, declared, bound_to });
            }
            let exprs = &self.program.exprs;
            let by_rank = region.exprs().any(|id| exprs.reads(id, &|slot| slot == SELF));
            bound[index] = Some(Binding { region, by_rank, span: binding.span });
        }
        let missing: Vec<usize> = (0..buffers.len()).filter(|&i| seen[i].is_none()).collect();
        if let (Some(&first), false) = (missing.first(), wrong) {
            let names = missing.iter().map(|&i| buffers[i].name.clone()).collect();
            let declared = buffers[first].span;
            let kind = ErrorKind::Unbound { callee: callee_name, buffers: names, declared };
            self.error(item.callee.span, kind);
        }
        bound.into_iter().collect()
    }
}

/// The text of a rank set.
fn on_span(on: &ast::RankSet) -> grammar::span::Span {
    match on {
        ast::RankSet::Ranks(ast::Ranks::One(e)) => e.span,
        ast::RankSet::Ranks(ast::Ranks::All(span) | ast::Ranks::Tuple(_, span)) => *span,
        ast::RankSet::Range { span, .. } => *span,
        ast::RankSet::List(ast::List::Items(_, span) | ast::List::Each { span, .. }) => *span,
    }
}
