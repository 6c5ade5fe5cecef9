//! Algorithms: heads first (a `run` may name a later one), then bodies, then who runs whom.
//!
//! In: `ast::Algorithm`. Out: `checked::Algorithm`.

use grammar::ast::{self, Item};
use grammar::span::Span;

use super::Checker;
use super::checked::{Algorithm, AlgorithmId, Collective, CollectiveId};
use super::cycles;
use super::error::ErrorKind;
use super::head::Called;
use super::names::full_name;
use super::scope::{BufferInfo, Entity, Scope};
use super::statements::Body;

/// How deep statements, runs and the expressions below them may nest: elaboration is recursive.
pub(crate) const NESTING: u32 = 400;
/// What a run adds to that.
const RUN_NESTING: u32 = 10;

/// An algorithm whose body is not checked yet.
pub(crate) struct Head<'a> {
    item: &'a ast::Algorithm,
    scope: Scope,
    /// Its collective is known.
    known: bool,
}

impl<'a> Checker<'a> {
    /// Checks what stands before each body.
    pub(crate) fn heads(&mut self) -> Vec<Head<'a>> {
        let units = self.units;
        let mut heads = Vec::new();
        for (unit, u) in units.iter().enumerate() {
            for item in &u.ast.items {
                if let Item::Algorithm(item) = item {
                    heads.push(self.algorithm_head(unit, item));
                }
            }
        }
        heads
    }

    fn algorithm_head(&mut self, unit: usize, item: &'a ast::Algorithm) -> Head<'a> {
        let (mut scope, params) = self.head(unit, &item.world, &item.params);
        let found = self.collective_of(unit, &item.implements);
        // Without arguments, the clause ends with the name.
        let end = if item.args.is_empty() { item.implements.span.end } else { item.implements_span.end };
        let implements = Span { end, ..item.implements_span };
        let collective = found.unwrap_or_else(|| self.no_collective(item));
        let mut args = Vec::new();
        if let Some(id) = found {
            let known = self.program.collective(id);
            let (name, params, declared) = (known.name.clone(), known.params.clone(), known.name_span);
            let (levels, buffers) = (known.levels, known.buffers.clone());
            scope.collective.clone_from(&name);
            let called = Called { name: &name, params: &params, span: implements };
            args = self.bind(&mut scope, &called, &item.args);
            if levels != 1 && levels != scope.levels {
                let (expected, found) = (levels, scope.levels);
                let kind = ErrorKind::Levels { name, expected, found, declared, run: false };
                self.error(item.world.span, kind);
            }
            for (i, buffer) in buffers.iter().enumerate() {
                // The algorithm's own names are the ones to change, so they are to blame.
                if let Some((_, taken)) = scope.get(&buffer.name) {
                    let kind = ErrorKind::Shadowed { name: buffer.name.clone(), outer: buffer.span };
                    self.error(taken, kind);
                } else {
                    let _ = scope.declare(&buffer.name, buffer.span, Entity::Buffer(i as u32));
                }
                scope.buffers.push(BufferInfo {
                    name: buffer.name.clone(),
                    span: buffer.span,
                    mode: Some(buffer.mode),
                    blocks: buffer.blocks.is_some(),
                });
            }
        } else {
            for arg in &item.args {
                self.expr(&mut scope, &arg.value);
            }
        }
        let name = &item.name.name;
        let name = self.units[unit].module.map_or_else(|| name.clone(), |module| full_name(module, name));
        self.program.algorithms.push(Algorithm {
            name,
            name_span: item.name.span,
            file: self.units[unit].file,
            docs: item.docs.clone(),
            levels: item.world.levels.len(),
            level_names: item.world.levels.iter().map(|level| level.name.clone()).collect(),
            params,
            collective,
            implements,
            schedule: None,
            args,
            scratch: Vec::new(),
            sites: Vec::new(),
            body: Vec::new(),
            frame: 0,
            depth: 0,
        });
        Head { item, scope, known: found.is_some() }
    }

    /// Checks all bodies; `heads` are in the order of the algorithms.
    pub(crate) fn bodies(&mut self, heads: Vec<Head<'a>>) {
        for (i, mut head) in heads.into_iter().enumerate() {
            if !head.known {
                continue;
            }
            let mut body = Body::default();
            body.labels.algorithm = Some(AlgorithmId(i as u32));
            let statements = self.statements(&mut head.scope, &mut body, &head.item.body);
            self.unknown_labels(&body.labels);
            let algorithm = &mut self.program.algorithms[i];
            algorithm.body = statements;
            algorithm.scratch = body.scratch;
            algorithm.sites = body.sites;
            algorithm.frame = head.scope.frame();
            algorithm.depth = body.deepest;
            self.runs.push(body.runs);
        }
    }

    /// Reports algorithms that run one another in a circle, and runs that nest too deeply.
    pub(crate) fn run_circles(&mut self) {
        if self.runs.len() != self.program.algorithms.len() {
            // Some body was not checked, so the circles are not known; that is reported already.
            return;
        }
        let runs = std::mem::take(&mut self.runs);
        let edges: Vec<Vec<(u32, Span)>> =
            runs.iter().map(|runs| runs.iter().map(|run| (run.callee.0, run.span)).collect()).collect();
        let order = cycles::order(&edges);
        for cycle in order.circles {
            let name = |a: u32| self.program.algorithm(AlgorithmId(a)).name.clone();
            let cycle: Vec<_> = cycle.into_iter().map(|(a, run)| (name(a), run)).collect();
            self.error(cycle[0].1, ErrorKind::Recursion { functions: false, cycle });
        }
        for a in order.sorted {
            for run in &runs[a as usize] {
                let below = self.program.algorithm(run.callee).depth;
                let depth = run.depth + RUN_NESTING + below;
                if depth > NESTING && below <= NESTING {
                    self.error(run.span, ErrorKind::TooDeep { limit: NESTING });
                }
                let own = &mut self.program.algorithms[a as usize].depth;
                *own = depth.max(*own);
            }
        }
    }

    /// A collective without any content, for an algorithm whose collective is not known.
    fn no_collective(&mut self, item: &ast::Algorithm) -> CollectiveId {
        self.program.collectives.push(Collective {
            name: item.implements.segments.last().map(|last| last.name.clone()).unwrap_or_default(),
            name_span: item.implements.span,
            file: item.span.file,
            docs: Vec::new(),
            levels: 1,
            standard: false,
            level_names: Vec::new(),
            params: Vec::new(),
            buffers: Vec::new(),
            inplace: Vec::new(),
            ensures: Vec::new(),
            frame: 1,
        });
        CollectiveId(self.program.collectives.len() as u32 - 1)
    }
}
