//! Walks a body: statements, one after another, to moves in the algorithm's own chunks and to runs.
//!
//! In: a checked body, a frame with level sizes and parameters. Out: [`Walked`]. Moves are stored as `trace::Move`
//! at once, counted in the algorithm's own chunks; `flatten` scales them in place when the granularity is known.

use grammar::span::Span;
use plan::ids::{BufferId, RankId};
use plan::plan::Presence;

use super::columns::{self, Task};
use super::engine::{Engine, Watch, excluded, extents};
use super::error::{Cut, FaultKind, Var, VarKind};
use super::halt::{End, Halt, Res};
use super::loops::{self, Host};
use super::machine::Machine;
use crate::check::checked::{Algorithm, Certain, For, Lane, List, Slot, Stmt, TableId};
use crate::trace::{Buffer, BufferKind, Move, Place};

/// The greatest channel that a label may give.
pub(crate) const MOST_LANE: u16 = 1023;
/// What a move without a label has until the end of elaboration, if any move has one: a `run` around it may give it one.
pub(crate) const NO_LANE: u16 = u16::MAX;

/// How large a buffer is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub blocks: u32,
    /// Own chunks, over all blocks.
    pub cells: u32,
    pub at: Presence,
}

/// One `run` as it was met.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunRecord {
    /// How many own moves stand before it.
    pub at: u32,
    pub callee: u32,
    pub site: u32,
    /// The channel around it.
    pub lane: u16,
    /// In [`Walked::ranks`].
    pub first_rank: u32,
    pub ranks: u32,
    /// In [`Walked::binds`]; one per buffer of the callee's collective.
    pub first_bind: u32,
    /// Own chunks that are bound to `blocks` blocks of the callee: the same for all its buffers.
    pub chunks: u32,
    pub blocks: u32,
    /// Some `in` buffer of the callee overlaps another one.
    pub alias: bool,
}

/// What a buffer of a callee is here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bind {
    pub buffer: u32,
    pub starts: Starts,
    /// Own chunks.
    pub len: u32,
}

/// Where a bound region starts, in own chunks.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Starts {
    Same(u32),
    /// For each rank of the callee: first index in [`Walked::starts`].
    Each(u32),
}

/// What a body came to.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    pub chunks: u32,
    /// The `chunks` statement.
    pub chunks_span: Option<Span>,
    /// Scratch buffers, those that were declared by statements that ran.
    pub scratch: Vec<Buffer>,
    /// Buffer ids: the collective's, scratch, then one for `signal`.
    pub signal: u32,
    pub moves: Vec<Move>,
    pub sources: Vec<Place>,
    pub runs: Vec<RunRecord>,
    pub binds: Vec<Bind>,
    pub starts: Vec<u32>,
    pub ranks: Vec<u32>,
    pub steps: u32,
    /// The forms that the collective's `inplace` declares are claimed.
    pub in_place: bool,
}

/// The walk.
pub(crate) struct Walker<'e, 'p> {
    pub engine: &'e mut Engine<'p>,
    pub algorithm: &'p Algorithm,
    pub shape: &'e [u32],
    pub ranks: u32,
    /// The ranks whose places count towards the limit: all, unless only some are looked at.
    pub held: u32,
    /// By buffer; the last is `signal`.
    pub extents: Vec<Extent>,
    pub out: Walked,
    /// The number of the `step` around the statement at hand.
    pub step: u32,
    /// The channel that the innermost label around it gives.
    pub lane: u16,
    /// Of the channels of a label, those that hold.
    choice: usize,
    /// Operands that the runs so far will bring.
    pub inlined: u64,
    pub watch: Watch,
    /// Ranks of the place at hand.
    pub rank_list: Vec<u32>,
    collective_buffers: usize,
    /// The loop at hand, if no other is in it and it has not been looked at.
    innermost: Option<&'p For>,
    /// What its turns evaluate.
    tasks: Vec<Task>,
}

impl<'p> Host<'p> for Walker<'_, 'p> {
    #[inline]
    fn machine(&mut self) -> &mut Machine<'p> {
        &mut self.engine.machine
    }

    #[inline]
    fn turns(&mut self, slot: Slot, first: i64, step: i64, count: u64) {
        self.engine.machine.columns.clear();
        if count < columns::LEAST {
            return;
        }
        if let Some(item) = self.innermost.take() {
            columns::tasks(item, &mut self.tasks);
        }
        if !self.tasks.is_empty() {
            columns::fill(&mut self.engine.machine, &mut self.tasks, slot, first, step, count);
        }
    }

    #[inline]
    fn lane(&mut self, lane: usize) {
        self.engine.machine.columns.lane = lane;
    }
}

impl<'e, 'p> Walker<'e, 'p> {
    pub(crate) fn new(
        engine: &'e mut Engine<'p>,
        algorithm: &'p Algorithm,
        shape: &'e [u32],
        ranks: u32,
        buffers: &[Buffer],
        watch: Watch,
    ) -> Walker<'e, 'p> {
        let mut extents = extents(buffers, 1);
        let none = Extent { blocks: 0, cells: 0, at: Presence::All };
        extents.resize(buffers.len() + algorithm.scratch.len(), none);
        extents.push(Extent { blocks: 1, cells: 1, at: Presence::All });
        let signal = extents.len() as u32 - 1;
        let (lane, choice) = (engine.no_lane(), engine.choice_here());
        Walker {
            engine,
            algorithm,
            shape,
            ranks,
            held: ranks,
            extents,
            out: Walked { chunks: 1, signal, in_place: true, ..Walked::default() },
            step: 0,
            lane,
            choice,
            inlined: 0,
            watch,
            rank_list: Vec::new(),
            collective_buffers: buffers.len(),
            innermost: None,
            tasks: Vec::new(),
        }
    }

    /// Walks the whole body.
    pub(crate) fn body(&mut self) -> Res<()> {
        self.size(self.algorithm.name_span)?;
        self.statements(&self.algorithm.body)
    }

    pub(crate) fn finish(mut self) -> Walked {
        let count = self.algorithm.scratch.len();
        self.out.scratch =
            (self.algorithm.scratch.iter().zip(&self.extents[self.collective_buffers..][..count]))
                .map(|(declared, extent)| Buffer {
                    name: declared.name.clone(),
                    kind: BufferKind::Scratch,
                    blocks: extent.blocks,
                    at: Presence::All,
                    span: declared.span,
                })
                .collect();
        self.out
    }

    fn statements(&mut self, list: &'p [Stmt]) -> Res<()> {
        for (i, statement) in list.iter().enumerate() {
            if let Err(halt) = self.statement(statement) {
                return Err(self.with_lets(halt, &list[..i]));
            }
        }
        Ok(())
    }

    pub(crate) fn statement(&mut self, statement: &'p Stmt) -> Res<()> {
        match statement {
            Stmt::Move(mv) => self.move_(mv),
            Stmt::For(item) => self.for_(item),
            Stmt::If { condition, then, otherwise } => {
                let branch = if self.machine().value(*condition)? != 0 { then } else { otherwise };
                self.statements(branch)
            }
            Stmt::Step(body) => {
                self.out.steps += 1;
                self.step = self.out.steps;
                self.statements(body)?;
                self.step = 0;
                Ok(())
            }
            Stmt::Let { slot, value, .. } => {
                let value = self.machine().value(*value)?;
                self.machine().set(*slot, value);
                Ok(())
            }
            Stmt::Table { table, list } => self.table(*table, list),
            Stmt::Run(run) => self.run(run),
            Stmt::Lane(lane) => self.lane(lane),
            Stmt::Chunks(count) => {
                self.out.chunks = self.engine.count(*count, 1, false)?;
                self.out.chunks_span = Some(self.machine().span(*count));
                let chunks = self.out.chunks;
                let signal = self.extents.len() - 1;
                for extent in &mut self.extents[..signal] {
                    extent.cells = extent.blocks.saturating_mul(chunks);
                }
                let span = self.machine().span(*count);
                self.size(span)
            }
            Stmt::Scratch(index) => {
                let scratch = &self.algorithm.scratch[*index as usize];
                let blocks = match scratch.blocks {
                    Some(blocks) => self.engine.count(blocks, 0, true)?,
                    None => 1,
                };
                let cells = blocks.saturating_mul(self.out.chunks);
                let extent = Extent { blocks, cells, at: Presence::All };
                self.extents[self.collective_buffers + *index as usize] = extent;
                self.size(scratch.blocks.map_or(scratch.span, |id| self.engine.machine.span(id)))
            }
            Stmt::Require { condition, why, span } => {
                if self.machine().test(*condition)? {
                    return Ok(());
                }
                Err(excluded(why, *span))
            }
            Stmt::OutOfPlaceOnly => {
                self.out.in_place = false;
                Ok(())
            }
        }
    }

    /// A label to which a schedule gives a channel. Those for other sizes are evaluated too: what is wrong with one is
    /// told whatever the size.
    fn lane(&mut self, lane: &'p Lane) -> Res<()> {
        let outer = self.lane;
        self.lane = self.channel(lane)?;
        let done = self.statements(&lane.body);
        self.lane = outer;
        done
    }

    /// The channel inside a label.
    pub(crate) fn channel(&mut self, lane: &'p Lane) -> Res<u16> {
        let mut held = self.lane;
        for &(choice, channel) in &lane.channels {
            let value = self.machine().eval(channel).map_err(|halt| halt.within(lane.span))?;
            let known = u16::try_from(value).ok().filter(|&channel| channel <= MOST_LANE);
            let Some(known) = known else {
                let kind = FaultKind::Channel { value, label: lane.label.clone(), most: MOST_LANE };
                return Err(Halt::fault(kind, self.machine().span(channel)).within(lane.span));
            };
            // Those outside every `when` come first.
            if choice == 0 || choice == self.choice {
                held = known;
            }
        }
        Ok(held)
    }

    fn for_(&mut self, item: &'p For) -> Res<()> {
        if item.nested || item.certain != Certain::default() {
            // Refused before they are made, so that no memory is taken for moves that cannot all be.
            let (turns, moves) = self.certain(item, loops::first_slot(&item.loops));
            let span = self.loops_span(item);
            self.room(moves, span)?;
            self.engine.machine.afford(turns, span)?;
            // So many sources are sure to come, most of them of moves of their own: tables that grow are copied, and leave holes
            // behind. Where there is no such room it may still turn out that none is needed.
            let _ = self.out.moves.try_reserve(moves as usize);
            let _ = self.out.sources.try_reserve(moves as usize);
        }
        self.innermost = (!item.nested).then_some(item);
        let done = loops::run(self, &item.loops, item.cost, &mut |walker: &mut Walker<'e, 'p>| {
            walker.statements(&item.body)
        });
        self.innermost = None;
        self.tasks.clear();
        self.machine().columns.clear();
        done
    }

    /// Turns and moves of a loop that are certain, without running it: its bounds and those of loops in it are looked
    /// at as far as they read only slots below `known`.
    pub(crate) fn certain(&mut self, item: &'p For, known: u32) -> (u64, u64) {
        let turns = loops::certain_turns(self.machine(), &item.loops, known);
        if turns == 0 || item.loops.filter.is_some() {
            return (turns, 0);
        }
        let all = u64::from(self.ranks).saturating_sub(1);
        let own = item.certain.single.saturating_add(item.certain.all.saturating_mul(all));
        let (inner, moves) = if item.nested { self.certain_of(&item.body, known) } else { (0, 0) };
        (turns.saturating_mul(1u64.saturating_add(inner)), turns.saturating_mul(own.saturating_add(moves)))
    }

    fn certain_of(&mut self, body: &'p [Stmt], known: u32) -> (u64, u64) {
        let (mut turns, mut moves) = (0u64, 0u64);
        for statement in body {
            let (t, m) = match statement {
                Stmt::For(inner) => self.certain(inner, known),
                Stmt::Step(inner) => self.certain_of(inner, known),
                Stmt::Lane(lane) => self.certain_of(&lane.body, known),
                _ => continue,
            };
            turns = turns.saturating_add(t);
            moves = moves.saturating_add(m);
        }
        (turns, moves)
    }

    pub(crate) fn loops_span(&self, item: &For) -> Span {
        let binders = &item.loops.binders;
        let ends = binders.first().zip(binders.last());
        ends.map_or(self.algorithm.name_span, |(first, last)| first.span.to(last.span))
    }

    fn table(&mut self, table: TableId, list: &'p List) -> Res<()> {
        self.machine().clear_table(table);
        self.list(list, &mut |walker: &mut Self, value, span| {
            walker.machine().push_element(table, value, span)
        })
    }

    /// Gives each element of a list to `take`.
    pub(crate) fn list(
        &mut self,
        list: &'p List,
        take: &mut impl FnMut(&mut Self, i64, Span) -> Res<()>,
    ) -> Res<()> {
        match list {
            List::Items(items) => {
                for &item in items {
                    let value = self.machine().eval(item)?;
                    let span = self.machine().span(item);
                    take(self, value, span)?;
                }
                Ok(())
            }
            List::Each(each) => {
                let cost = self.machine().cost(each.value);
                loops::run(self, &each.loops, cost, &mut |walker: &mut Self| {
                    let value = walker.machine().eval(each.value)?;
                    let span = walker.machine().span(each.value);
                    take(walker, value, span)
                })
            }
        }
    }

    /// Refuses what would be more than the limit on moves; every operand of a reduction counts as one.
    #[inline]
    pub(crate) fn room(&mut self, more: u64, span: Span) -> Res<()> {
        let limit = self.engine.limits.moves.min(u32::MAX.into());
        let stored = self.out.sources.len() as u64 + self.inlined + self.engine.stored;
        let wanted = stored.saturating_add(more);
        if wanted <= limit {
            Ok(())
        } else {
            Err(Halt::fault(FaultKind::TooManyMoves { limit, wanted }, span))
        }
    }

    /// Refuses more places than the limit, as far as they are known by now.
    fn size(&mut self, span: Span) -> Res<()> {
        let signal = self.extents.len() - 1;
        let blocks: u64 = self.extents[..signal].iter().map(|extent| u64::from(extent.blocks)).sum();
        let cells = u64::from(self.out.chunks);
        let cuts = self.out.chunks_span.map(|span| Cut { span, cells }).into_iter().collect();
        check_places(self.engine.limits.places, self.held, blocks, cells, cuts, span)
    }

    /// Adds the `let`s of statements that ran to what is known of a halt.
    #[cold]
    fn with_lets(&mut self, mut halt: Box<Halt>, ran: &'p [Stmt]) -> Box<Halt> {
        for statement in ran.iter().rev() {
            if let Stmt::Let { slot, name, span, .. } = statement {
                let value = self.machine().get(*slot);
                halt = halt.var(|| Var { name: name.clone(), value, span: *span, kind: VarKind::Let });
            }
        }
        halt
    }

    /// Appends a move whose sources were appended from `first_source` on.
    #[inline]
    pub(crate) fn push(&mut self, mut mv: Move, span: Span) -> Res<()> {
        if self.watch == Watch::Move(self.out.moves.len() as u32) {
            return Err(Halt::new(End::Watched, span));
        }
        mv.step = if mv.step == 0 { self.step } else { mv.step };
        mv.source_count = self.out.sources.len() as u32 - mv.first_source;
        self.out.moves.push(mv);
        Ok(())
    }
}

/// Refuses more places than `limit`: ranks × blocks × cells.
pub(crate) fn check_places(
    limit: u64,
    ranks: u32,
    blocks: u64,
    cells: u64,
    cuts: Vec<Cut>,
    span: Span,
) -> Res<()> {
    let of_rank = u128::from(blocks) * u128::from(cells);
    let wanted = of_rank * u128::from(ranks);
    // Cells of a buffer are numbered in 32 bits, whatever the limit.
    if wanted <= u128::from(limit) && of_rank <= u128::from(u32::MAX) {
        return Ok(());
    }
    Err(Halt::fault(FaultKind::TooManyPlaces { limit, wanted, ranks, blocks, cells, cuts }, span))
}

/// A place of the trace.
#[inline]
pub(crate) fn place(buffer: u32, rank: u32, cell: u32) -> Place {
    Place { buffer: BufferId(buffer), rank: RankId(rank), cell }
}
