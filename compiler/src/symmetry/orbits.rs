//! Walks a body once for each orbit of moves instead of once for each move.
//!
//! In: a body, and what its variables do. Out: one move of each orbit, with its key. The one hard idea: the first
//! variable that goes round on the way to a move (the pivot) takes only its first `count / order` values. Of every
//! orbit exactly one move has such a value, since σ moves the pivot by that much and comes back after `order` times. All
//! checks of elaboration are made on that one; the others are in range where it is (see `find`).

use grammar::span::Span;

use super::action::Within;
use super::find::Node;
use super::keys::{Keys, Part, Variable};
use crate::check::checked::{self, Binder, Certain, For, Stmt};
use crate::elaborate::body::Walker;
use crate::elaborate::halt::{Halt, Res};
use crate::elaborate::loops::{self, Host};
use crate::elaborate::{FaultKind, Var, VarKind};
use crate::trace::MoveKind;

/// The walk.
pub(super) struct Orbits<'w, 'e, 'p> {
    walker: &'w mut Walker<'e, 'p>,
    step: u32,
    order: u32,
    /// A variable further out goes round already.
    pivoted: bool,
    key: Vec<u32>,
    parts: Vec<Part>,
    /// The loops around.
    around: Vec<(&'p Binder, usize, Turns)>,
    pub(super) keys: Keys,
    /// By site: what happens within the ranges of its moves.
    pub(super) within: Vec<Within>,
    /// A move that nothing takes round, or that cannot be numbered; `find` should have refused it.
    pub(super) lost: Option<Span>,
}

/// The turns of one binder.
#[derive(Debug, Clone, Copy)]
struct Turns {
    first: i64,
    step: i64,
    count: u64,
}

impl<'w, 'e, 'p> Orbits<'w, 'e, 'p> {
    pub(super) fn new(walker: &'w mut Walker<'e, 'p>, step: u32, order: u32) -> Orbits<'w, 'e, 'p> {
        let sites = walker.algorithm.sites.len();
        let keys =
            Keys { parts: vec![Vec::new(); sites], variables: vec![Vec::new(); sites], ..Keys::default() };
        Orbits {
            walker,
            step,
            order,
            pivoted: false,
            key: Vec::new(),
            parts: Vec::new(),
            around: Vec::new(),
            keys,
            within: vec![Within::Nothing; sites],
            lost: None,
        }
    }

    /// All statements of a list.
    pub(super) fn statements(&mut self, list: &'p [Stmt], nodes: &[Node]) -> Res<()> {
        for (i, (statement, node)) in list.iter().zip(nodes).enumerate() {
            self.push(i as u32, Part::Still);
            self.statement(statement, node)?;
            self.pop();
        }
        Ok(())
    }

    fn push(&mut self, number: u32, part: Part) {
        self.key.push(number);
        self.parts.push(part);
    }

    fn pop(&mut self) {
        self.key.pop();
        self.parts.pop();
    }

    fn statement(&mut self, statement: &'p Stmt, node: &Node) -> Res<()> {
        match (statement, node) {
            (Stmt::For(item), Node::For(turns, body)) => {
                if item.nested || item.certain != Certain::default() {
                    // As in elaboration: refused before memory is taken. Every move is one of `order`.
                    let (_, moves) = self.walker.certain(item, loops::first_slot(&item.loops));
                    let share = if self.pivoted { 1 } else { u64::from(self.order) };
                    let span = self.walker.loops_span(item);
                    self.walker.room(moves / share, span)?;
                }
                self.binders(item, turns, body, 0)
            }
            // Its bounds are looked at as ever.
            (Stmt::For(item), _) => loops::run(self.walker, &item.loops, item.cost, &mut |_| Ok(())),
            (Stmt::If { condition, then, otherwise }, Node::If(nodes, other_nodes)) => {
                if self.walker.machine().test(*condition)? {
                    self.statements(then, nodes)
                } else {
                    self.statements(otherwise, other_nodes)
                }
            }
            (Stmt::Step(body), Node::Step(nodes)) => {
                self.walker.out.steps += 1;
                self.walker.step = self.walker.out.steps;
                self.push(0, Part::Phase);
                self.statements(body, nodes)?;
                self.pop();
                self.walker.step = 0;
                Ok(())
            }
            (Stmt::Lane(lane), Node::Lane(nodes)) => {
                let channel = self.walker.channel(lane)?;
                let outer = std::mem::replace(&mut self.walker.lane, channel);
                self.push(0, Part::Still);
                self.statements(&lane.body, nodes)?;
                self.pop();
                self.walker.lane = outer;
                Ok(())
            }
            (Stmt::Move(mv), &Node::Move(within)) => self.move_(mv, within),
            _ => self.walker.statement(statement),
        }
    }

    fn binders(&mut self, item: &'p For, turns: &[i64], body: &[Node], index: usize) -> Res<()> {
        let Some(binder) = item.loops.binders.get(index) else {
            let wanted = match item.loops.filter {
                Some(filter) => self.walker.machine().test(filter)?,
                None => true,
            };
            return if wanted { self.statements(&item.body, body) } else { Ok(()) };
        };
        let range = self.turns(binder)?;
        let by = turns[index];
        let pivot = by != 0 && !self.pivoted;
        let taken = if pivot { range.count / u64::from(self.order) } else { range.count };
        self.walker.machine().charge(taken, item.cost, binder.span)?;
        let Ok(count) = u32::try_from(range.count) else {
            self.lost.get_or_insert(binder.span);
            return Ok(());
        };
        let part = match u32::try_from(if binder.rev { i64::from(count) - by } else { by }) {
            _ if by == 0 => Part::Still,
            Ok(by) => Part::Turn { by, count },
            Err(_) => {
                self.lost.get_or_insert(binder.span);
                return Ok(());
            }
        };
        self.pivoted |= pivot;
        self.around.push((binder, self.key.len(), range));
        for turn in 0..taken as u32 {
            let value = if binder.rev { taken as u32 - 1 - turn } else { turn };
            let at = range.first.wrapping_add(range.step.wrapping_mul(value.into()));
            self.walker.machine().set(binder.slot, at);
            self.push(if binder.rev { count - 1 - value } else { value }, part);
            self.binders(item, turns, body, index + 1)
                .map_err(|halt| halt.var(|| var(binder, &range, at, item.loops.levels[index].clone())))?;
            self.pop();
        }
        self.around.pop();
        if pivot {
            self.pivoted = false;
        }
        Ok(())
    }

    fn turns(&mut self, binder: &'p Binder) -> Res<Turns> {
        let machine = self.walker.machine();
        let (first, to) = (machine.eval(binder.from)?, machine.eval(binder.to)?);
        let step = match binder.step {
            Some(step) => machine.eval(step)?,
            None => 1,
        };
        if step < 1 {
            let span = binder.step.map_or(binder.span, |step| machine.span(step));
            return Err(Halt::fault(FaultKind::LoopStep { value: step }, span));
        }
        let length = if to > first { to.wrapping_sub(first) as u64 } else { 0 };
        Ok(Turns { first, step, count: length.div_ceil(step as u64) })
    }

    fn move_(&mut self, mv: &'p checked::Move, within: Within) -> Res<()> {
        let before = self.walker.out.moves.len();
        self.walker.move_(mv)?;
        let site = mv.site as usize;
        self.within[site] = within;
        if !self.pivoted {
            self.lost.get_or_insert(mv.span);
        }
        let alone = self.walker.step == 0;
        let many = mv.to.ranks.many();
        if self.keys.parts[site].is_empty() {
            let mut parts = self.parts.clone();
            parts.extend(alone.then_some(Part::Phase));
            parts.extend(many.then_some(Part::Turn { by: self.step, count: self.walker.ranks }));
            self.keys.parts[site] = parts;
            self.keys.variables[site] = self.around.iter().map(variable).collect();
        }
        for (known, (_, _, here)) in self.keys.variables[site].iter_mut().zip(&self.around) {
            known.range = known.range.filter(|&range| range == (here.first, here.step, here.count));
        }
        for made in &self.walker.out.moves[before..] {
            debug_assert_eq!(made.kind == MoveKind::Multicast, many);
            let start = self.keys.flat.len() as u32;
            self.keys.moves.push((mv.site, start));
            self.keys.flat.extend_from_slice(&self.key);
            self.keys.flat.extend(alone.then_some(0));
            self.keys.flat.extend(many.then_some(made.to.rank.0));
        }
        Ok(())
    }
}

fn variable(&(binder, part, range): &(&Binder, usize, Turns)) -> Variable {
    Variable {
        name: binder.name.clone(),
        text: binder.range,
        part,
        range: Some((range.first, range.step, range.count)),
        rev: binder.rev,
    }
}

#[cold]
fn var(binder: &Binder, range: &Turns, value: i64, level: Option<String>) -> Var {
    let greatest = range.first.wrapping_add(range.step.wrapping_mul(range.count.saturating_sub(1) as i64));
    let last = if binder.rev { range.first } else { greatest };
    let kind = VarKind::Loop { least: range.first, greatest, last, range: binder.range, level };
    Var { name: binder.name.clone(), value, span: binder.span, kind }
}
