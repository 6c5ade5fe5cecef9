//! Memory, places, moves, `step` and `run`.

use std::collections::BTreeMap;

use grammar::ast::{self, Coord, Index, LetValue, MoveOp, Place, RankSet, Ranks, Region, Source, Stmt};

use super::expression::{each, list, number};
use super::{Library, PRIME, Scope, Stop, Value};

/// All memory of all ranks.
pub struct Machine<'a> {
    pub(super) library: &'a Library<'a>,
    /// Pieces per block of the outermost program.
    pub(super) cells: usize,
    pub(super) seed: u64,
    /// By memory and rank of the whole world: what each piece holds.
    pub(super) memory: BTreeMap<(usize, usize), Vec<Option<u64>>>,
    pub(super) memories: usize,
    /// What each rank knows of who has entered.
    pub(super) knows: Vec<Vec<bool>>,
}

/// What a name of a buffer means at one rank: a stretch of some memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    pub(super) memory: usize,
    pub(super) start: usize,
    pub(super) length: usize,
}

/// A buffer as an algorithm sees it.
#[derive(Debug, Clone)]
pub(super) struct Buffer {
    /// By rank of the algorithm's own world.
    pub(super) at: Vec<Option<Stretch>>,
    pub(super) blocks: usize,
    /// Declared with `[…]`: the first index is a block.
    pub(super) many: bool,
}

/// An algorithm at work on some ranks.
pub(super) struct Frame<'a> {
    pub(super) file: usize,
    pub(super) shape: Vec<usize>,
    /// Rank of the whole world, by rank of this one.
    pub(super) world: Vec<usize>,
    pub(super) buffers: BTreeMap<String, Buffer>,
    pub(super) chunks: usize,
    pub(super) algorithm: &'a ast::Algorithm,
}

/// Reads done, writes still to do.
struct Pending {
    memory: usize,
    rank: usize,
    start: usize,
    values: Vec<Option<u64>>,
    add: bool,
}

impl<'a> Machine<'a> {
    pub(super) fn new(library: &'a Library<'a>, cells: usize, seed: u64) -> Machine<'a> {
        Machine { library, cells, seed, memory: BTreeMap::new(), memories: 0, knows: Vec::new() }
    }

    /// New memory, `pieces` at each of the given ranks, holding nothing.
    pub(super) fn allocate(&mut self, ranks: impl IntoIterator<Item = usize>, pieces: usize) -> usize {
        self.memories += 1;
        for rank in ranks {
            self.memory.insert((self.memories, rank), vec![None; pieces]);
        }
        self.memories
    }

    pub(super) fn run(&mut self, mut frame: Frame<'a>, scope: &Scope) -> Result<(), Stop> {
        let mut scope = scope.clone();
        let body = &frame.algorithm.body;
        self.block(body, &mut frame, &mut scope, None)
    }

    fn block(
        &mut self,
        body: &'a [Stmt],
        frame: &mut Frame<'a>,
        scope: &mut Scope,
        mut step: Option<&mut Vec<Pending>>,
    ) -> Result<(), Stop> {
        let functions = &self.library.functions[frame.file];
        for stmt in body {
            match stmt {
                Stmt::Chunks(c) => frame.chunks = count(number(&c.count, scope, functions)?)?,
                Stmt::Scratch(s) => {
                    let blocks = s.blocks.as_ref().map_or(Ok(1), |b| number(b, scope, functions))?;
                    let blocks = usize::try_from(blocks).map_err(|_| stop("blocks"))?;
                    let length = blocks * self.block_length(frame);
                    let memory = self.allocate(frame.world.clone(), length);
                    let at = vec![Some(Stretch { memory, start: 0, length }); frame.world.len()];
                    frame
                        .buffers
                        .insert(s.name.name.clone(), Buffer { at, blocks, many: s.blocks.is_some() });
                }
                Stmt::Let(l) => {
                    let value = match &l.value {
                        LetValue::Expr(e) => Value::Number(number(e, scope, functions)?),
                        LetValue::Table(t) => Value::Table(list(t, scope, functions)?),
                    };
                    scope.insert(l.name.name.clone(), value);
                }
                Stmt::Require(r) => {
                    if number(&r.condition, scope, functions)? == 0 {
                        return Err(Stop::Excluded(r.why.clone()));
                    }
                }
                Stmt::OutOfPlaceOnly(_) => {}
                Stmt::For(f) => {
                    let mut turns = Vec::new();
                    each(&f.binders, f.filter.as_ref(), scope, functions, &mut |inner| {
                        turns.push(inner.clone());
                        Ok(())
                    })?;
                    for mut turn in turns {
                        self.block(&f.body, frame, &mut turn, step.as_deref_mut())?;
                    }
                }
                Stmt::If(i) => {
                    let chosen =
                        if number(&i.condition, scope, functions)? != 0 { &i.then } else { &i.otherwise };
                    self.block(chosen, frame, &mut scope.clone(), step.as_deref_mut())?;
                }
                Stmt::Step(s) => {
                    let mut pending = Vec::new();
                    self.block(&s.body, frame, &mut scope.clone(), Some(&mut pending))?;
                    self.commit(pending)?;
                }
                Stmt::Move(m) => {
                    let mut pending = Vec::new();
                    self.begin(m, frame, scope, &mut pending)?;
                    match step.as_deref_mut() {
                        Some(all) => all.extend(pending),
                        None => self.commit(pending)?,
                    }
                }
                Stmt::Run(r) => self.call(r, frame, scope)?,
                // Labels say nothing about what is done.
                Stmt::Labelled(l) => {
                    let body = std::slice::from_ref(&*l.body);
                    self.block(body, frame, &mut scope.clone(), step.as_deref_mut())?;
                }
            }
        }
        Ok(())
    }

    /// Reads all that a move reads.
    fn begin(
        &mut self,
        mv: &ast::Move,
        frame: &Frame<'a>,
        scope: &Scope,
        pending: &mut Vec<Pending>,
    ) -> Result<(), Stop> {
        let functions = &self.library.functions[frame.file];
        let targets = self.ranks(&mv.to.rank, frame, scope)?;
        if mv.to.region.buffer.name == "signal" {
            let Source::Place(from) = &mv.from else { return Err(stop("a signal is copied")) };
            for from in self.ranks(&from.rank, frame, scope)? {
                for &to in &targets {
                    // Within a step, signals sent are those known before it: memory 0 holds them.
                    let known = self.knows[frame.world[from]].iter().map(|&k| Some(u64::from(k))).collect();
                    pending.push(Pending {
                        memory: 0,
                        rank: frame.world[to],
                        start: 0,
                        values: known,
                        add: false,
                    });
                }
            }
            return Ok(());
        }
        let mut operands: Vec<Vec<Vec<Option<u64>>>> = Vec::new(); // operand, then value pieces (one source rank)
        let mut only = None;
        match &mv.from {
            Source::Place(place) => {
                let ranks = self.ranks(&place.rank, frame, scope)?;
                let &[rank] = ranks.as_slice() else { return Err(stop("one source rank")) };
                only = Some((self.stretch(&place.region, rank, frame, scope)?, frame.world[rank]));
                operands.push(vec![self.read(place, rank, frame, scope)?]);
            }
            Source::Each { binders, filter, place, .. } => {
                let mut scopes = Vec::new();
                each(binders, filter.as_ref(), scope, functions, &mut |inner| {
                    scopes.push(inner.clone());
                    Ok(())
                })?;
                for inner in scopes {
                    for rank in self.ranks(&place.rank, frame, &inner)? {
                        operands.push(vec![self.read(place, rank, frame, &inner)?]);
                    }
                }
            }
            Source::List { places, .. } => {
                for place in places {
                    for rank in self.ranks(&place.rank, frame, scope)? {
                        operands.push(vec![self.read(place, rank, frame, scope)?]);
                    }
                }
            }
            Source::Gather { place, .. } => {
                for rank in self.ranks(&place.rank, frame, scope)? {
                    operands.push(vec![self.read(place, rank, frame, scope)?]);
                }
            }
        }
        let pieces: Vec<Vec<Option<u64>>> = operands.into_iter().flatten().collect();
        let Some(first) = pieces.first() else { return Err(stop("a reduction of nothing")) };
        let mut values = first.clone();
        for other in &pieces[1..] {
            if other.len() != values.len() {
                return Err(stop("operands of unequal length"));
            }
            for (sum, &next) in values.iter_mut().zip(other) {
                *sum = add(*sum, next)?;
            }
        }
        if values.iter().any(Option::is_none) {
            return Err(stop("reads what nothing wrote"));
        }
        for to in targets {
            let stretch = self.stretch(&mv.to.region, to, frame, scope)?;
            let rank = frame.world[to];
            let itself = only.is_some_and(|(from, at)| {
                at == rank && from.memory == stretch.memory && from.start == stretch.start
            });
            if stretch.length != values.len() {
                return Err(stop("unequal length"));
            }
            // A multicast passes over its source; a binding may make any copy a copy to itself.
            if !(itself && mv.op == MoveOp::Copy) {
                let add = mv.op == MoveOp::Combine;
                let Stretch { memory, start, .. } = stretch;
                pending.push(Pending { memory, rank, start, values: values.clone(), add });
            }
        }
        Ok(())
    }

    fn commit(&mut self, pending: Vec<Pending>) -> Result<(), Stop> {
        for write in pending {
            if write.memory == 0 {
                for (known, told) in self.knows[write.rank].iter_mut().zip(&write.values) {
                    *known |= *told == Some(1);
                }
                continue;
            }
            let memory = self.memory.get_mut(&(write.memory, write.rank)).ok_or_else(|| stop("no memory"))?;
            for (i, value) in write.values.into_iter().enumerate() {
                let cell = &mut memory[write.start + i];
                *cell = if write.add { add(*cell, value)? } else { value };
            }
        }
        Ok(())
    }

    fn read(
        &self,
        place: &Place,
        rank: usize,
        frame: &Frame<'a>,
        scope: &Scope,
    ) -> Result<Vec<Option<u64>>, Stop> {
        let s = self.stretch(&place.region, rank, frame, scope)?;
        let memory = self.memory.get(&(s.memory, frame.world[rank])).ok_or_else(|| stop("no memory"))?;
        Ok(memory[s.start..s.start + s.length].to_vec())
    }

    /// Pieces of a block as this algorithm sees blocks.
    fn block_length(&self, frame: &Frame<'a>) -> usize {
        let mut lengths = frame
            .buffers
            .values()
            .filter(|b| b.blocks > 0)
            .flat_map(|b| b.at.iter().flatten().map(move |s| s.length / b.blocks));
        lengths.next().unwrap_or(self.cells)
    }

    pub(super) fn stretch(
        &self,
        region: &Region,
        rank: usize,
        frame: &Frame<'a>,
        scope: &Scope,
    ) -> Result<Stretch, Stop> {
        let functions = &self.library.functions[frame.file];
        let name = &region.buffer.name;
        let buffer = frame.buffers.get(name).ok_or_else(|| stop(&format!("no buffer {name}")))?;
        let whole = buffer.at[rank].ok_or_else(|| stop(&format!("{name} is not at {rank}")))?;
        let block = divide(whole.length, buffer.blocks.max(1))?;
        let chunk = divide(block, frame.chunks);
        let mut units = if buffer.many { vec![(buffer.blocks, Ok(block))] } else { Vec::new() };
        units.push((frame.chunks, chunk));
        let mut found = whole;
        if region.indices.len() > units.len() {
            return Err(stop("too many indices"));
        }
        for (index, (limit, unit)) in region.indices.iter().zip(units) {
            let unit = unit?;
            let (from, to) = match index {
                Index::One(e) => {
                    let at = number(e, scope, functions)?;
                    (at, at.checked_add(1).ok_or_else(|| stop("overflow"))?)
                }
                Index::Range { from, to, .. } => {
                    (number(from, scope, functions)?, number(to, scope, functions)?)
                }
            };
            if from >= to {
                return Ok(Stretch { length: 0, ..found });
            }
            if from < 0 || to > limit as i64 {
                return Err(stop("index out of range"));
            }
            found = Stretch {
                start: found.start + from as usize * unit,
                length: (to - from) as usize * unit,
                ..found
            };
        }
        Ok(found)
    }

    /// Ranks of the algorithm's own world, in order.
    pub(super) fn ranks(&self, ranks: &Ranks, frame: &Frame<'a>, scope: &Scope) -> Result<Vec<usize>, Stop> {
        let functions = &self.library.functions[frame.file];
        match ranks {
            Ranks::One(e) => {
                let rank = number(e, scope, functions)?;
                let inside = usize::try_from(rank).ok().filter(|&r| r < frame.world.len());
                Ok(vec![inside.ok_or_else(|| stop(&format!("rank {rank}")))?])
            }
            Ranks::All(_) => Ok((0..frame.world.len()).collect()),
            Ranks::Tuple(coords, _) => {
                if coords.len() != frame.shape.len() {
                    return Err(stop("coordinates"));
                }
                let mut found = vec![0usize];
                for (coord, &size) in coords.iter().zip(&frame.shape) {
                    let choices: Vec<usize> = match coord {
                        Coord::All(_) => (0..size).collect(),
                        Coord::At(e) => {
                            let at = number(e, scope, functions)?;
                            let inside = usize::try_from(at).ok().filter(|&c| c < size);
                            vec![inside.ok_or_else(|| stop(&format!("coordinate {at}")))?]
                        }
                    };
                    found = found.iter().flat_map(|&r| choices.iter().map(move |&c| r * size + c)).collect();
                }
                Ok(found)
            }
        }
    }

    fn call(&mut self, run: &'a ast::Run, frame: &Frame<'a>, scope: &Scope) -> Result<(), Stop> {
        let functions = &self.library.functions[frame.file];
        let (callee, file) = self.library.algorithm(&run.callee, frame.file)?;
        let on: Vec<usize> = match &run.on {
            RankSet::Ranks(ranks) => self.ranks(ranks, frame, scope)?,
            RankSet::Range { from, to, .. } => {
                let (from, to) = (number(from, scope, functions)?, number(to, scope, functions)?);
                (from..to).map(|r| usize::try_from(r).map_err(|_| stop("rank"))).collect::<Result<_, _>>()?
            }
            RankSet::List(l) => {
                let ranks = list(l, scope, functions)?;
                ranks
                    .into_iter()
                    .map(|r| usize::try_from(r).map_err(|_| stop("rank")))
                    .collect::<Result<_, _>>()?
            }
        };
        if on.is_empty() {
            return Ok(());
        }
        if on.iter().any(|&r| r >= frame.world.len()) {
            return Err(stop("ranks of a run"));
        }
        let mut params = BTreeMap::new();
        for (i, arg) in run.args.iter().enumerate() {
            let name =
                arg.name.as_ref().map_or_else(|| callee.params[i].name.name.clone(), |n| n.name.clone());
            params.insert(name, number(&arg.value, scope, functions)?);
        }
        // A callee of several levels gets those that are free.
        let shape = match &run.on {
            RankSet::Ranks(Ranks::All(_)) if callee.world.levels.len() > 1 => frame.shape.clone(),
            RankSet::Ranks(Ranks::Tuple(coords, _)) if callee.world.levels.len() > 1 => {
                let free = coords.iter().zip(&frame.shape).filter(|(c, _)| matches!(c, Coord::All(_)));
                free.map(|(_, &size)| size).collect()
            }
            _ => vec![on.len()],
        };
        let inner = super::promise::scope_of(callee, &shape, &params, &self.library.functions[file])?;
        let declared = super::promise::buffers_of(self.library, callee, &inner, file, &shape)?;
        let mut buffers = BTreeMap::new();
        for (name, declared) in declared {
            let binding =
                run.bindings.iter().find(|b| b.buffer.name == name).ok_or_else(|| stop("unbound"))?;
            let mut at = Vec::new();
            for (index, &rank) in on.iter().enumerate() {
                let mut own = scope.clone();
                own.insert("self".to_string(), Value::Number(index as i64));
                let here = declared.exists(index);
                at.push(if here { Some(self.stretch(&binding.region, rank, frame, &own)?) } else { None });
            }
            buffers.insert(name, Buffer { at, blocks: declared.blocks, many: declared.many });
        }
        let world = on.iter().map(|&r| frame.world[r]).collect();
        let inner_frame = Frame { file, shape, world, buffers, chunks: 1, algorithm: callee };
        self.run(inner_frame, &inner)
    }
}

fn add(a: Option<u64>, b: Option<u64>) -> Result<Option<u64>, Stop> {
    match (a, b) {
        (Some(a), Some(b)) => Ok(Some((a + b) % PRIME)),
        _ => Err(stop("combines with nothing")),
    }
}

fn divide(length: usize, parts: usize) -> Result<usize, Stop> {
    if parts == 0 || !length.is_multiple_of(parts) {
        return Err(stop("a boundary falls inside a piece"));
    }
    Ok(length / parts)
}

fn count(value: i64) -> Result<usize, Stop> {
    usize::try_from(value).ok().filter(|&v| v > 0 && v < 1 << 20).ok_or_else(|| stop("a count"))
}

fn stop(why: &str) -> Stop {
    Stop::Meaningless(why.to_string())
}
