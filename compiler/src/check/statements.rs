//! The statements of a body: where each may stand, and what its parts mean.
//!
//! In: `ast::Stmt`s and a scope. Out: `checked::Stmt`s. `chunks`, `scratch`, `require` and `inplace none` speak of the
//! whole algorithm: they stand at its top level, `chunks` before the first move.

use grammar::ast::{self, LetValue, MoveOp};
use grammar::span::Span;

use super::Checker;
use super::algorithm::NESTING;
use super::checked::{
    AlgorithmId, Certain, Cut, ExprId, For, List, Loops, Move, Place, RankSet, Ranks, ScratchDecl, Slot,
    Source, Stmt, TableId,
};
use super::error::{ErrorKind, Placed, SignalMisuse, Where};
use super::labels::Labels;
use super::places::{SIGNAL, Use};
use super::scope::{BufferInfo, Entity, Scope};

/// What is known of a body so far.
#[derive(Debug, Default)]
pub(crate) struct Body {
    pub scratch: Vec<ScratchDecl>,
    pub runs: Vec<RunSite>,
    /// The texts of its moves and runs.
    pub sites: Vec<Span>,
    /// How deep its statements nest.
    pub deepest: u32,
    pub labels: Labels,
    chunks: Option<Span>,
    inplace_none: Option<Span>,
    /// The first move, run, loop, step or choice.
    acted: Option<Span>,
    /// The statements around the one at hand, innermost last.
    around: Vec<Span>,
    step: Option<Span>,
}

/// A `run` of a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunSite {
    pub callee: AlgorithmId,
    pub span: Span,
    /// How many statements stand around it.
    pub depth: u32,
}

impl Body {
    fn site(&mut self, span: Span) -> u32 {
        self.sites.push(span);
        self.sites.len() as u32 - 1
    }
}

impl Checker<'_> {
    /// A list of statements with a scope of its own.
    pub(crate) fn statements(&mut self, scope: &mut Scope, body: &mut Body, list: &[ast::Stmt]) -> Vec<Stmt> {
        let mark = scope.mark();
        let checked = list.iter().filter_map(|statement| self.statement(scope, body, statement)).collect();
        scope.leave(mark);
        checked
    }

    fn statement(&mut self, scope: &mut Scope, body: &mut Body, statement: &ast::Stmt) -> Option<Stmt> {
        match statement {
            ast::Stmt::Chunks(item) => {
                let twice = body.chunks.replace(item.span);
                self.placed(body, item.span, Placed::Chunks, twice, body.acted);
                Some(Stmt::Chunks(self.int(scope, &item.count)))
            }
            ast::Stmt::Scratch(item) => {
                self.placed(body, item.span, Placed::Scratch, None, None);
                Some(self.scratch(scope, body, item))
            }
            ast::Stmt::Require(item) => {
                self.placed(body, item.span, Placed::Require, None, None);
                let condition = self.condition(scope, &item.condition);
                Some(Stmt::Require { condition, why: item.why.clone(), span: item.span })
            }
            ast::Stmt::OutOfPlaceOnly(span) => {
                let twice = body.inplace_none.replace(*span);
                self.placed(body, *span, Placed::InplaceNone, twice, None);
                Some(Stmt::OutOfPlaceOnly)
            }
            ast::Stmt::Let(item) => Some(self.let_(scope, item)),
            ast::Stmt::For(item) => self.for_(scope, body, item, None),
            ast::Stmt::If(item) => {
                let condition = self.condition(scope, &item.condition);
                self.within(scope, body, item.span, |this, scope, body| {
                    let then = this.statements(scope, body, &item.then);
                    let otherwise = this.statements(scope, body, &item.otherwise);
                    Stmt::If { condition, then, otherwise }
                })
            }
            ast::Stmt::Step(item) => self.step(scope, body, item, None),
            ast::Stmt::Move(item) => {
                body.acted.get_or_insert(item.span);
                let site = body.site(item.span);
                self.move_(scope, item, site).map(|mv| Stmt::Move(Box::new(mv)))
            }
            ast::Stmt::Labelled(item) => self.labelled(scope, body, item),
            ast::Stmt::Run(item) => {
                body.acted.get_or_insert(item.span);
                if let Some(step) = body.step {
                    let why = Where::Inside(step);
                    self.error(item.span, ErrorKind::Misplaced { what: Placed::Run, why });
                }
                let site = body.site(item.span);
                let run = self.run(scope, item, site)?;
                let depth = body.around.len() as u32;
                body.runs.push(RunSite { callee: run.callee, span: item.span, depth });
                Some(Stmt::Run(Box::new(run)))
            }
        }
    }

    /// A statement with its label. A label of a loop (also of `step for`) sees the loop's variables.
    fn labelled(&mut self, scope: &mut Scope, body: &mut Body, item: &ast::Labelled) -> Option<Stmt> {
        match &*item.body {
            ast::Stmt::For(each) => self.for_(scope, body, each, Some(&item.label)),
            ast::Stmt::Step(step) if matches!(step.body[..], [ast::Stmt::For(_)]) => {
                self.step(scope, body, step, Some(&item.label))
            }
            other => {
                let addressed = self.label(scope, &mut body.labels, &item.label, item.span);
                let checked = self.statement(scope, body, other)?;
                Some(match addressed {
                    Some(addressed) => addressed.around(vec![checked]),
                    None => checked,
                })
            }
        }
    }

    /// A `step`; a label is that of the one loop that it is.
    fn step(
        &mut self,
        scope: &mut Scope,
        body: &mut Body,
        item: &ast::Step,
        label: Option<&ast::Ident>,
    ) -> Option<Stmt> {
        if let Some(outer) = body.step {
            let why = Where::Inside(outer);
            self.error(item.span, ErrorKind::Misplaced { what: Placed::Step, why });
        }
        let outer = body.step.replace(item.span);
        let checked =
            self.within(scope, body, item.span, |this, scope, body| match (&item.body[..], label) {
                ([ast::Stmt::For(each)], Some(_)) => {
                    Stmt::Step(this.for_(scope, body, each, label).into_iter().collect())
                }
                (list, _) => Stmt::Step(this.statements(scope, body, list)),
            });
        body.step = outer;
        checked
    }

    /// Checks the inside of a statement, if it does not nest too deeply.
    fn within(
        &mut self,
        scope: &mut Scope,
        body: &mut Body,
        span: Span,
        inside: impl FnOnce(&mut Self, &mut Scope, &mut Body) -> Stmt,
    ) -> Option<Stmt> {
        body.acted.get_or_insert(span);
        if body.around.len() as u32 >= NESTING / 2 {
            self.error(span, ErrorKind::TooDeep { limit: NESTING / 2 });
            return None;
        }
        body.around.push(span);
        body.deepest = body.deepest.max(body.around.len() as u32);
        let checked = inside(self, scope, body);
        body.around.pop();
        Some(checked)
    }

    /// Reports a statement that stands where it may not.
    fn placed(&mut self, body: &Body, span: Span, what: Placed, twice: Option<Span>, after: Option<Span>) {
        let why = if let Some(&around) = body.around.last() {
            Where::Inside(around)
        } else if let Some(first) = twice {
            Where::Twice(first)
        } else if let Some(after) = after {
            Where::After(after)
        } else {
            return;
        };
        self.error(span, ErrorKind::Misplaced { what, why });
    }

    fn scratch(&mut self, scope: &mut Scope, body: &mut Body, item: &ast::Scratch) -> Stmt {
        let blocks = item.blocks.as_ref().map(|blocks| self.int(scope, blocks));
        let (name, span) = (item.name.name.clone(), item.name.span);
        let index = scope.buffers.len() as u32;
        self.declare(scope, &item.name, Entity::Buffer(index));
        scope.buffers.push(BufferInfo { name: name.clone(), span, mode: None, blocks: blocks.is_some() });
        body.scratch.push(ScratchDecl { name, span, blocks });
        Stmt::Scratch(body.scratch.len() as u32 - 1)
    }

    fn let_(&mut self, scope: &mut Scope, item: &ast::Let) -> Stmt {
        match &item.value {
            LetValue::Expr(expr) => {
                let (value, ty) = self.expr(scope, expr);
                let ty = self.value(scope, expr.span, ty);
                let slot = scope.slot();
                self.declare(scope, &item.name, Entity::Variable(slot, ty));
                Stmt::Let { slot, value, name: item.name.name.clone(), span: item.span }
            }
            LetValue::Table(list) => {
                let (list, ty) = self.list(scope, list);
                let table = TableId(self.program.tables);
                self.program.tables += 1;
                self.declare(scope, &item.name, Entity::Table(table, ty));
                Stmt::Table { table, list }
            }
        }
    }

    fn for_(
        &mut self,
        scope: &mut Scope,
        body: &mut Body,
        item: &ast::For,
        label: Option<&ast::Ident>,
    ) -> Option<Stmt> {
        let mark = scope.mark();
        let loops = self.loops(scope, &item.binders, item.filter.as_ref());
        let addressed = label.and_then(|label| self.label(scope, &mut body.labels, label, item.span));
        let checked = self.within(scope, body, item.span, |this, scope, body| {
            let statements = this.statements(scope, body, &item.body);
            let statements = match addressed {
                Some(addressed) => vec![addressed.around(statements)],
                None => statements,
            };
            let filter = loops.filter.map_or(0, |filter| this.cost(filter));
            let cost = filter + this.block_cost(&statements);
            let certain =
                if loops.filter.is_none() { certain(scope, &statements) } else { Certain::default() };
            let nested = has_loops(&statements);
            Stmt::For(Box::new(For { loops, body: statements, cost, certain, nested }))
        });
        scope.leave(mark);
        checked
    }

    fn move_(&mut self, scope: &mut Scope, item: &ast::Move, site: u32) -> Option<Move> {
        let plain = matches!(item.from, ast::Source::Place(_));
        if item.op == MoveOp::Combine && !plain {
            self.error(item.span, ErrorKind::CombineReduce);
        }
        let purpose = if item.op == MoveOp::Copy && plain { Use::Copied } else { Use::Combined };
        let to = self.place(scope, &item.to, purpose);
        let from = self.source(scope, &item.from, Use::Read);
        let (to, from) = (to?, from?);
        let reads_signal = matches!(&from, Source::Place(place) if place.region.buffer == SIGNAL);
        if reads_signal != (to.region.buffer == SIGNAL) {
            let data = if reads_signal { to.region.span } else { source_span(&item.from) };
            self.error(data, ErrorKind::Signal(SignalMisuse::Mixed));
            return None;
        }
        Some(Move { to, op: item.op, from, span: item.span, site })
    }

    fn cost(&self, id: ExprId) -> u64 {
        self.program.exprs.cost[id.index()].into()
    }

    fn loops_cost(&self, loops: &Loops) -> u64 {
        let bounds = loops.binders.iter().flat_map(|b| [Some(b.from), Some(b.to), b.step]);
        bounds.flatten().map(|id| self.cost(id)).sum()
    }

    fn place_cost(&self, place: &Place) -> u64 {
        place.region.exprs().chain(place.ranks.exprs()).map(|id| self.cost(id)).sum()
    }

    fn list_cost(&self, list: &List) -> u64 {
        match list {
            List::Items(items) => items.iter().map(|&id| self.cost(id)).sum(),
            List::Each(each) => self.loops_cost(&each.loops),
        }
    }

    /// Expression nodes that statements evaluate at most, inner loops apart (those account for themselves).
    fn block_cost(&self, statements: &[Stmt]) -> u64 {
        statements.iter().map(|statement| 1 + self.statement_cost(statement)).sum()
    }

    fn statement_cost(&self, statement: &Stmt) -> u64 {
        match statement {
            Stmt::Chunks(value) | Stmt::Let { value, .. } => self.cost(*value),
            Stmt::Scratch(_) | Stmt::OutOfPlaceOnly => 0,
            Stmt::Table { list, .. } => self.list_cost(list),
            Stmt::Require { condition, .. } => self.cost(*condition),
            Stmt::For(item) => self.loops_cost(&item.loops),
            Stmt::If { condition, then, otherwise } => {
                self.cost(*condition) + self.block_cost(then).max(self.block_cost(otherwise))
            }
            Stmt::Step(body) => self.block_cost(body),
            Stmt::Lane(lane) => {
                lane.channels.iter().map(|&(_, id)| self.cost(id)).sum::<u64>() + self.block_cost(&lane.body)
            }
            Stmt::Move(mv) => {
                let from = match &mv.from {
                    Source::Place(place) | Source::Gather { place, .. } => self.place_cost(place),
                    Source::Each { loops, .. } => self.loops_cost(loops),
                    Source::List { places, .. } => places.iter().map(|place| self.place_cost(place)).sum(),
                };
                self.place_cost(&mv.to) + from
            }
            Stmt::Run(run) => {
                let args: u64 = run.args.iter().flatten().map(|&id| self.cost(id)).sum();
                let on = match &run.on {
                    RankSet::Ranks(ranks) => ranks.exprs().iter().map(|&id| self.cost(id)).sum(),
                    RankSet::Range(a, b) => self.cost(*a) + self.cost(*b),
                    RankSet::List(list) => self.list_cost(list),
                };
                args + on
            }
        }
    }
}

/// Moves that statements make for certain, inner loops apart.
fn certain(scope: &Scope, statements: &[Stmt]) -> Certain {
    let whole = |place: &Place| match place.region.cut {
        Cut::Chunk(_) | Cut::Block(_) | Cut::BlockChunk(..) => true,
        Cut::All => scope.buffers.get(place.region.buffer as usize).is_none_or(|buffer| !buffer.blocks),
        _ => false,
    };
    let mut sum = Certain::default();
    for statement in statements {
        match statement {
            Stmt::Move(mv) if whole(&mv.to) => {
                let from_all =
                    matches!(&mv.from, Source::Gather { place, .. } if matches!(place.ranks, Ranks::All));
                match mv.to.ranks {
                    Ranks::All => sum.all += 1,
                    _ if from_all => sum.all += 1,
                    _ if !mv.to.ranks.many() => sum.single += 1,
                    _ => {}
                }
            }
            Stmt::Step(body) => sum = sum.plus(certain(scope, body)),
            Stmt::Lane(lane) => sum = sum.plus(certain(scope, &lane.body)),
            _ => {}
        }
    }
    sum
}

fn has_loops(statements: &[Stmt]) -> bool {
    statements.iter().any(|statement| match statement {
        Stmt::For(_) => true,
        Stmt::Step(body) => has_loops(body),
        Stmt::Lane(lane) => has_loops(&lane.body),
        _ => false,
    })
}

/// The slot of `self`.
pub(crate) const SELF: Slot = Slot(0);

/// The text of a move's right side.
fn source_span(source: &ast::Source) -> Span {
    match source {
        ast::Source::Place(place) => place.span,
        ast::Source::Each { span, .. }
        | ast::Source::List { span, .. }
        | ast::Source::Gather { span, .. } => *span,
    }
}
