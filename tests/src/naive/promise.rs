//! What a collective asks for, by evaluating its `ensures` on the numbers at entry.

use std::collections::BTreeMap;

use grammar::ast::{self, EnsuresKind, Mode, Source};

use super::expression::{each, number};
use super::machine::{Buffer, Frame, Machine, Stretch};
use super::{Library, PRIME, Scope, Stop, Value};

/// A buffer as the collective declares it for one world.
pub(super) struct Declared {
    pub(super) mode: Mode,
    pub(super) blocks: usize,
    pub(super) many: bool,
    at: Option<usize>,
}

impl Declared {
    pub(super) fn exists(&self, rank: usize) -> bool {
        self.at.is_none_or(|at| at == rank)
    }
}

/// Variables an algorithm starts with: its level sizes and parameters.
pub(super) fn scope_of(
    algorithm: &ast::Algorithm,
    shape: &[usize],
    params: &BTreeMap<String, i64>,
    functions: &BTreeMap<String, &ast::Fn>,
) -> Result<Scope, Stop> {
    if shape.len() != algorithm.world.levels.len() {
        return Err(stop("levels"));
    }
    let levels = algorithm.world.levels.iter().zip(shape);
    let mut scope: Scope =
        levels.map(|(name, &size)| (name.name.clone(), Value::Number(size as i64))).collect();
    for param in &algorithm.params {
        let value = match (params.get(&param.name.name), &param.default) {
            (Some(&given), _) => given,
            (None, Some(default)) => number(default, &scope, functions)?,
            (None, None) => return Err(stop("a parameter without a value")),
        };
        scope.insert(param.name.name.clone(), Value::Number(value));
    }
    Ok(scope)
}

/// The buffers of an algorithm's collective.
pub(super) fn buffers_of(
    library: &Library<'_>,
    algorithm: &ast::Algorithm,
    scope: &Scope,
    file: usize,
    shape: &[usize],
) -> Result<Vec<(String, Declared)>, Stop> {
    let (collective, own) = collective_of(library, algorithm, scope, file, shape)?;
    let functions = BTreeMap::new();
    let mut out = Vec::new();
    for buffer in &collective.buffers {
        let blocks = buffer.blocks.as_ref().map_or(Ok(1), |b| number(b, &own, &functions))?;
        let at = buffer.at.as_ref().map(|a| number(a, &own, &functions)).transpose()?;
        let declared = Declared {
            mode: buffer.mode,
            blocks: usize::try_from(blocks).map_err(|_| stop("blocks"))?,
            many: buffer.blocks.is_some(),
            at: at.map(|a| a as usize),
        };
        out.push((buffer.name.name.clone(), declared));
    }
    Ok(out)
}

fn collective_of<'a>(
    library: &Library<'a>,
    algorithm: &ast::Algorithm,
    scope: &Scope,
    file: usize,
    shape: &[usize],
) -> Result<(&'a ast::Collective, Scope), Stop> {
    let name = &algorithm.implements.segments.last().ok_or_else(|| stop("no collective"))?.name;
    let collective = library.collectives.get(name).ok_or_else(|| stop("no such collective"))?;
    let mut own = Scope::new();
    let levels = &collective.world.levels;
    let sizes = own_shape(collective, shape);
    if levels.len() != sizes.len() {
        return Err(stop("levels"));
    }
    own.extend(levels.iter().zip(sizes).map(|(name, size)| (name.name.clone(), Value::Number(size as i64))));
    for (i, arg) in algorithm.args.iter().enumerate() {
        let name =
            arg.name.as_ref().map_or_else(|| collective.params[i].name.name.clone(), |n| n.name.clone());
        own.insert(name, Value::Number(number(&arg.value, scope, &library.functions[file])?));
    }
    for param in &collective.params {
        if let (None, Some(default)) = (own.get(&param.name.name), &param.default) {
            let value = number(default, &own, &BTreeMap::new())?;
            own.insert(param.name.name.clone(), Value::Number(value));
        }
    }
    Ok((collective, own))
}

/// The world as a collective sees it: flat if it has one level.
fn own_shape(collective: &ast::Collective, shape: &[usize]) -> Vec<usize> {
    if collective.world.levels.len() == 1 { vec![shape.iter().product()] } else { shape.to_vec() }
}

/// Runs an algorithm on random numbers and evaluates the promise.
pub(super) fn run_and_compare<'a>(
    machine: &mut Machine<'a>,
    algorithm: &'a ast::Algorithm,
    file: usize,
    shape: &[u32],
    params: &BTreeMap<String, i64>,
    in_place: bool,
) -> Result<bool, Stop> {
    let library = machine.library;
    let shape: Vec<usize> = shape.iter().map(|&s| s as usize).collect();
    let ranks: usize = shape.iter().product();
    let scope = scope_of(algorithm, &shape, params, &library.functions[file])?;
    let declared = buffers_of(library, algorithm, &scope, file, &shape)?;
    machine.knows = (0..ranks).map(|r| (0..ranks).map(|s| s == r).collect()).collect();
    let mut buffers = BTreeMap::new();
    let mut counter = 0;
    for (name, declared) in &declared {
        let here: Vec<usize> = (0..ranks).filter(|&r| declared.exists(r)).collect();
        let length = declared.blocks * machine.cells;
        let memory = machine.allocate(here.clone(), length);
        for &rank in &here {
            if declared.mode == Mode::Out {
                continue;
            }
            for piece in 0..length {
                counter += 1;
                let value = super::number(machine.seed, counter);
                machine.memory.get_mut(&(memory, rank)).ok_or_else(|| stop("memory"))?[piece] = Some(value);
            }
        }
        let at =
            (0..ranks).map(|r| declared.exists(r).then_some(Stretch { memory, start: 0, length })).collect();
        buffers.insert(name.clone(), Buffer { at, blocks: declared.blocks, many: declared.many });
    }
    let (collective, own) = collective_of(library, algorithm, &scope, file, &shape)?;
    let view = |buffers: &BTreeMap<String, Buffer>| Frame {
        file,
        shape: own_shape(collective, &shape),
        world: (0..ranks).collect(),
        buffers: buffers.clone(),
        chunks: 1,
        algorithm,
    };
    if in_place {
        for form in &collective.inplace {
            overlap(machine, form, &view(&buffers), &own, &mut buffers)?;
        }
    }
    let entry = machine.memory.clone();
    let view = view(&buffers);
    machine.run(Frame { shape, buffers, world: (0..ranks).collect(), ..view }, &scope)?;
    let functions = BTreeMap::new();
    let mut kept = true;
    for ensures in &collective.ensures {
        let mut scopes = Vec::new();
        each(&ensures.binders, ensures.filter.as_ref(), &own, &functions, &mut |inner| {
            scopes.push(inner.clone());
            Ok(())
        })?;
        let EnsuresKind::Equals { place, value } = &ensures.kind else {
            kept &= machine.knows.iter().flatten().all(|&known| known);
            continue;
        };
        for scope in scopes {
            let want = wanted(machine, value, &view, &scope, &entry)?;
            for rank in machine.ranks(&place.rank, &view, &scope)? {
                let s = machine.stretch(&place.region, rank, &view, &scope)?;
                let have = &machine.memory[&(s.memory, rank)][s.start..s.start + s.length];
                kept &= have == want.as_slice();
            }
        }
    }
    Ok(kept)
}

/// Lets the smaller of two regions lie in the memory of the larger, at every rank that has both.
fn overlap(
    machine: &mut Machine<'_>,
    form: &ast::Inplace,
    view: &Frame<'_>,
    own: &Scope,
    buffers: &mut BTreeMap<String, Buffer>,
) -> Result<(), Stop> {
    for rank in 0..view.world.len() {
        let mut scope = own.clone();
        scope.insert("self".to_string(), Value::Number(rank as i64));
        let both = [&form.left, &form.right].iter().all(|r| view.buffers[&r.buffer.name].at[rank].is_some());
        if !both {
            continue;
        }
        let left = machine.stretch(&form.left, rank, view, &scope)?;
        let right = machine.stretch(&form.right, rank, view, &scope)?;
        let (name, inner, outer) = if form.left.indices.is_empty() {
            (&form.left.buffer.name, left, right)
        } else {
            (&form.right.buffer.name, right, left)
        };
        let moved = machine.memory[&(inner.memory, rank)].clone();
        let home = machine.memory.get_mut(&(outer.memory, rank)).ok_or_else(|| stop("memory"))?;
        for (cell, value) in home[outer.start..][..outer.length].iter_mut().zip(moved) {
            // An `out` holds nothing of its own that could replace what is there.
            *cell = value.or(*cell);
        }
        buffers.get_mut(name).ok_or_else(|| stop("a buffer"))?.at[rank] = Some(outer);
    }
    Ok(())
}

fn wanted(
    machine: &Machine<'_>,
    source: &Source,
    frame: &Frame<'_>,
    scope: &Scope,
    entry: &BTreeMap<(usize, usize), Vec<Option<u64>>>,
) -> Result<Vec<Option<u64>>, Stop> {
    let mut scopes = vec![scope.clone()];
    let places: Vec<&ast::Place> = match source {
        Source::Place(place) | Source::Gather { place, .. } => vec![place],
        Source::List { places, .. } => places.iter().collect(),
        Source::Each { binders, filter, place, .. } => {
            scopes.clear();
            each(binders, filter.as_ref(), scope, &BTreeMap::new(), &mut |inner| {
                scopes.push(inner.clone());
                Ok(())
            })?;
            vec![place]
        }
    };
    let mut sum: Option<Vec<Option<u64>>> = None;
    for scope in &scopes {
        for place in &places {
            for rank in machine.ranks(&place.rank, frame, scope)? {
                let s = machine.stretch(&place.region, rank, frame, scope)?;
                let values = &entry[&(s.memory, rank)][s.start..s.start + s.length];
                sum = Some(match sum {
                    None => values.to_vec(),
                    Some(sum) => {
                        let pairs = sum.iter().zip(values);
                        pairs.map(|(a, b)| Some((a.as_ref()? + b.as_ref()?) % PRIME)).collect()
                    }
                });
            }
        }
    }
    sum.ok_or_else(|| stop("a promise of nothing"))
}

fn stop(why: &str) -> Stop {
    Stop::Meaningless(why.to_string())
}
