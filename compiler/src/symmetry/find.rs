//! Is a program the same from every rank's point of view? Decided on its text, for one shape, without running it.
//!
//! In: a checked body or promise, and a rotation to try. Out: which loop variables go round with it, or what stands in
//! the way. The one hard idea: σ acts on a turn of the loops by moving some of their variables (each over a range whose
//! length the order of σ divides) and leaving the others alone. If then every rank moves by the step, every index as its
//! buffer turns, and every filter and bound stays, σ maps the moves onto themselves. Which variables move is tried,
//! loop by loop, and no assignment is taken that is not checked to the last index.

use grammar::ast::MoveOp;
use grammar::span::Span;

use super::action::{Turn, Within};
use super::env::{Answer, Env, Range, instead};
use super::refusal::{Refusal, Why};
use super::shift::Shift;
use crate::check::SIGNAL;
use crate::check::checked::{
    Cut, Ensures, EnsuresKind, ExprId, For, Loops, Move, Place, Ranks, Region, Slot, Source, Stmt,
};

/// A body as the rotation sees it: the same tree as its statements.
#[derive(Debug, Clone)]
pub(super) enum Node {
    /// A loop: how far each variable goes round, in turns (0: it stands still), and its body.
    For(Vec<i64>, Vec<Node>),
    /// Never entered.
    Never,
    /// A choice.
    If(Vec<Node>, Vec<Node>),
    /// A step.
    Step(Vec<Node>),
    /// Statements with a channel of their own.
    Lane(Vec<Node>),
    /// A move, and what happens within its ranges.
    Move(Within),
    /// Anything else.
    Plain,
}

/// How far an attempt came: places that turn, then variables that do.
pub(super) type Score = (u32, u32);

/// Tries one rotation.
pub(super) struct Finder<'e, 'p> {
    pub(super) env: &'e mut Env<'p>,
    /// Level sizes.
    pub(super) shape: &'e [u32],
    pub(super) ranks: u32,
    pub(super) step: u32,
    pub(super) order: u32,
    /// By buffer, `signal` apart.
    pub(super) buffers: &'e [Turn],
    /// Variables of the body itself, which the machine knows.
    pub(super) known: &'e dyn Fn(Slot) -> i64,
    /// Places that were found to turn.
    pub(super) accepted: u32,
    /// How many of the loop variables around go round.
    pub(super) turning: u32,
    /// What stood in the way of the attempt that came furthest.
    pub(super) furthest: Option<(Score, Refusal)>,
}

/// How the cells of a range move, in numbers: comparable between the sides of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Motion {
    within: Within,
    blocks: u32,
    cells: u32,
}

impl Motion {
    const NONE: Motion = Motion { within: Within::Nothing, blocks: 0, cells: 0 };

    fn whole_blocks(turn: Turn) -> Motion {
        if turn.cells == 0 {
            return Motion::NONE;
        }
        Motion { within: Within::Positions, blocks: 0, cells: turn.cells }
    }
}

impl<'p> Finder<'_, 'p> {
    /// A whole body.
    pub(super) fn body(&mut self, list: &'p [Stmt]) -> Answer<Vec<Node>> {
        self.statements(list, true)
    }

    fn statements(&mut self, list: &'p [Stmt], top: bool) -> Answer<Vec<Node>> {
        list.iter().map(|statement| self.statement(statement, top)).collect()
    }

    fn statement(&mut self, statement: &'p Stmt, top: bool) -> Answer<Node> {
        Ok(match statement {
            Stmt::Move(mv) => {
                let found = self.move_(mv);
                Node::Move(self.noted(found)?.within)
            }
            Stmt::For(item) => self.for_(item)?,
            Stmt::If { condition, then, otherwise } => match self.env.test(*condition, &Why::Condition) {
                Ok(Some(0)) => Node::If(Vec::new(), self.statements(otherwise, false)?),
                Ok(Some(_)) => Node::If(self.statements(then, false)?, Vec::new()),
                Ok(None) => Node::If(self.statements(then, false)?, self.statements(otherwise, false)?),
                Err(refusal) => return self.noted(Err(refusal)),
            },
            Stmt::Step(body) => Node::Step(self.statements(body, false)?),
            Stmt::Let { slot, value, .. } => {
                let value =
                    if top { Shift::constant((self.known)(*slot)) } else { self.env.value(*value)? };
                self.env.set(*slot, value);
                Node::Plain
            }
            Stmt::Table { table, list } => {
                self.env.table(*table, list)?;
                Node::Plain
            }
            Stmt::Run(run) => {
                return self.noted(Err(Refusal { span: run.span, why: Why::Run }));
            }
            Stmt::Lane(lane) => {
                for &(_, channel) in &lane.channels {
                    self.env.test(channel, &Why::Value)?;
                }
                Node::Lane(self.statements(&lane.body, false)?)
            }
            // They speak of the whole algorithm, and have been evaluated.
            Stmt::Chunks(_) | Stmt::Scratch(_) | Stmt::Require { .. } | Stmt::OutOfPlaceOnly => Node::Plain,
        })
    }

    /// Remembers what stood in the way of the attempt that came furthest; of those that came equally far, of the one in
    /// which most goes round.
    fn noted<T>(&mut self, found: Answer<T>) -> Answer<T> {
        if let Err(refusal) = &found {
            let score = (self.accepted, self.turning);
            if self.furthest.as_ref().is_none_or(|(known, _)| *known < score) {
                self.furthest = Some((score, refusal.clone()));
            }
        }
        found
    }

    fn for_(&mut self, item: &'p For) -> Answer<Node> {
        let mut turns = Vec::new();
        let body = self.loops(&item.loops, &mut turns, &mut |finder| finder.statements(&item.body, false))?;
        Ok(body.map_or(Node::Never, |body| Node::For(turns, body)))
    }

    /// The promise; for each `ensures` (that speaks of values) how far each variable goes round.
    pub(super) fn promise(&mut self, list: &'p [Ensures]) -> Answer<Vec<Vec<i64>>> {
        let mut all = Vec::new();
        for ensures in list {
            let mut turns = Vec::new();
            if let EnsuresKind::Equals(equals) = &ensures.kind {
                let refusal = |refusal| instead(refusal, ensures.span, Why::Promise);
                let entered = self.loops(&equals.loops, &mut turns, &mut |finder| {
                    let place = finder.place(&equals.place)?;
                    finder.promised(&equals.value, place)
                });
                if entered.map_err(refusal)?.is_none() {
                    turns.clear();
                }
            }
            all.push(turns);
        }
        Ok(all)
    }

    /// The operands of a promised value, in whatever order.
    fn promised(&mut self, value: &'p Source, place: Motion) -> Answer<()> {
        match value {
            Source::Place(from) | Source::Gather { place: from, .. } => self.same(from, place),
            Source::List { places, .. } => places.iter().try_for_each(|from| self.same(from, place)),
            Source::Each { loops, place: from, .. } => {
                self.loops(loops, &mut Vec::new(), &mut |finder| finder.same(from, place)).map(|_| ())
            }
        }
    }

    fn same(&mut self, from: &'p Place, motion: Motion) -> Answer<()> {
        let found = self.place(from)?;
        if found == motion { Ok(()) } else { Err(Refusal { span: from.span, why: Why::Sides }) }
    }

    /// Tries all ways in which the variables of a loop may go round, until `inside` accepts one. None: there is no turn.
    fn loops<T>(
        &mut self,
        loops: &'p Loops,
        turns: &mut Vec<i64>,
        inside: &mut dyn FnMut(&mut Self) -> Answer<T>,
    ) -> Answer<Option<T>> {
        let Some(binder) = loops.binders.get(turns.len()) else {
            let found = self.env.filter(loops);
            self.noted(found)?;
            return inside(self).map(Some);
        };
        let range = self.env.range(binder);
        let range = self.noted(range)?;
        if range.is_empty() {
            return Ok(None);
        }
        let accepted = self.accepted;
        let mut refusal = None;
        for by in self.ways(range) {
            self.accepted = accepted;
            let Some(value) = variable(range, by) else { continue };
            self.env.set(binder.slot, value);
            turns.push(by);
            self.turning += u32::from(by != 0);
            let found = self.loops(loops, turns, inside);
            self.turning -= u32::from(by != 0);
            match found {
                Ok(found) => return Ok(found),
                Err(found @ Refusal { why: Why::TooMuch, .. }) => return Err(found),
                Err(found) => refusal = refusal.or(Some(found)),
            }
            turns.truncate(turns.len() - 1);
        }
        Err(refusal.unwrap_or(Refusal { span: binder.span, why: Why::Value }))
    }

    /// How far a variable may go round, in turns: not at all, forwards, backwards.
    fn ways(&self, range: Range) -> Vec<i64> {
        let order = i64::from(self.order);
        match range.known {
            Some((_, _, count)) if count % order == 0 => {
                let by = count / order;
                if order == 2 { vec![0, by] } else { vec![0, by, count - by] }
            }
            _ => vec![0],
        }
    }

    fn move_(&mut self, mv: &'p Move) -> Answer<Motion> {
        let to = self.place(&mv.to)?;
        match &mv.from {
            Source::Place(from) => self.same(from, to)?,
            Source::List { places, .. } => places.iter().try_for_each(|from| self.same(from, to))?,
            Source::Each { loops, place, .. } => {
                // The order of the operands is part of what is computed: their variables stand still.
                self.env.standing(loops).map_err(|refusal| instead(refusal, mv.span, Why::Value))?;
                self.same(place, to)?;
            }
            // Its operands come in rank order, which is another order elsewhere, but of the same operands: `take_home` and
            // `of_rank` put them right.
            Source::Gather { place, .. } => self.same(place, to)?,
        }
        debug_assert!(mv.op == MoveOp::Copy || mv.op == MoveOp::Combine);
        Ok(to)
    }

    fn place(&mut self, place: &'p Place) -> Answer<Motion> {
        let motion = self.region(&place.region)?;
        let refused = |span: Span| Refusal { span, why: Why::Rank };
        let (step, ranks) = (i64::from(self.step), i64::from(self.ranks));
        match &place.ranks {
            Ranks::All => {}
            Ranks::One(id) => {
                if !self.env.value(*id)?.turns(step, ranks) {
                    return Err(refused(self.env.program.exprs.span(*id)));
                }
            }
            Ranks::Tuple(coordinates, span) => {
                let rank = self.coordinates(coordinates)?;
                if !rank.is_some_and(|rank| rank.turns(step, ranks)) {
                    return Err(refused(*span));
                }
            }
        }
        self.accepted += 1;
        Ok(motion)
    }

    /// The rank that coordinates name.
    fn coordinates(&mut self, coordinates: &[Option<ExprId>]) -> Answer<Option<Shift>> {
        let mut rank = Some(Shift::constant(0));
        for (level, coordinate) in coordinates.iter().enumerate() {
            let size = i64::from(self.shape[level]);
            let order = i64::from(self.order);
            let value = match coordinate {
                Some(id) => {
                    let value = self.env.value(*id)?;
                    let (least, most) = value.bounds();
                    // One that stands still is checked where the moves are made.
                    if value.is_fixed() {
                        Some(Shift::between(least.clamp(0, size - 1), most.clamp(0, size - 1)))
                    } else {
                        (0 <= least && most < size).then_some(value)
                    }
                }
                // All of the outermost level go round among themselves.
                None if level == 0 && size % order == 0 => Shift::turning(size / order, size, 0, size - 1),
                None => Some(Shift::between(0, size - 1)),
            };
            let size = Shift::constant(size);
            let outer = rank.and_then(|rank| rank.times(size));
            rank = outer.zip(value).and_then(|(outer, value)| outer.plus(value));
        }
        Ok(rank)
    }

    fn region(&mut self, region: &'p Region) -> Answer<Motion> {
        if region.buffer == SIGNAL {
            return Ok(Motion::NONE);
        }
        let turn = self.buffers[region.buffer as usize];
        match region.cut {
            Cut::All if turn.blocks != 0 => {
                return Ok(Motion { within: Within::Blocks, blocks: turn.blocks, cells: turn.cells });
            }
            Cut::All => return Ok(Motion::whole_blocks(turn)),
            Cut::Chunk(chunk) => self.index(chunk, turn.cells, turn.width)?,
            Cut::Chunks(from, to) => self.run(from, to, turn.cells, turn.width)?,
            Cut::Block(block) => {
                self.index(block, turn.blocks, turn.count)?;
                return Ok(Motion::whole_blocks(turn));
            }
            Cut::Blocks(from, to) => {
                self.run(from, to, turn.blocks, turn.count)?;
                return Ok(Motion::whole_blocks(turn));
            }
            Cut::BlockChunk(block, chunk) => {
                self.index(block, turn.blocks, turn.count)?;
                self.index(chunk, turn.cells, turn.width)?;
            }
            Cut::BlockChunks(block, from, to) => {
                self.index(block, turn.blocks, turn.count)?;
                self.run(from, to, turn.cells, turn.width)?;
            }
        }
        Ok(Motion::NONE)
    }

    fn index(&mut self, id: ExprId, by: u32, size: u32) -> Answer<()> {
        let value = self.env.value(id)?;
        self.turns(value, id, by, size)
    }

    fn turns(&self, value: Shift, id: ExprId, by: u32, size: u32) -> Answer<()> {
        if value.turns(by.into(), size.into()) {
            return Ok(());
        }
        Err(Refusal { span: self.env.program.exprs.span(id), why: Why::Index })
    }

    /// A run `from..to`: its first and its last both turn, which keeps it whole if it lies within one part of those that
    /// go round (`orbits` checks that, where the numbers are known).
    fn run(&mut self, from: ExprId, to: ExprId, by: u32, size: u32) -> Answer<()> {
        let (first, end) = (self.env.value(from)?, self.env.value(to)?);
        self.turns(first, from, by, size)?;
        if end.is_fixed() {
            return self.turns(end, to, by, size);
        }
        let span = self.env.program.exprs.span(to);
        let last = end.minus(Shift::constant(1)).ok_or(Refusal { span, why: Why::Value })?;
        self.turns(last, to, by, size)
    }
}

/// A variable that goes round by so many turns of its range.
fn variable(range: Range, by: i64) -> Option<Shift> {
    if by == 0 {
        return Some(range.values);
    }
    let (first, step, count) = range.known?;
    let last = first.checked_add(step.checked_mul(count - 1)?)?;
    Shift::turning(step.checked_mul(by)?, step.checked_mul(count)?, first, last)
}
