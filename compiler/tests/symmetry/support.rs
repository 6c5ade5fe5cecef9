//! The reference: a program elaborated whole, and whether a rotation maps its dependence graph onto itself, by brute force.

use std::collections::BTreeMap;

use grammar::ParseLimits;
use plan::collective::BlockRef;
use plan::ids::RankId;
use rcc_compiler::check::checked::Program;
use rcc_compiler::check::{self, Unit};
use rcc_compiler::elaborate::{self, Request};
use rcc_compiler::graph::{self, ChunkGraph, Form, VersionId, arity};
use rcc_compiler::limits::Limits;
use rcc_compiler::source::Sources;
use rcc_compiler::symmetry::{self, Action, Failure, Quotient, Refusal};
use rcc_compiler::trace::{Move, MoveId, MoveKind, Params, Trace};

/// The user's text beside the standard library.
pub(crate) fn program(text: &str) -> Program {
    let mut sources = Sources::default();
    let mut files = vec![(sources.add("test.coll", text), None, text)];
    for (name, text) in stdlib::FILES {
        files.push((sources.add(*name, *text), Some(stdlib::module(name).unwrap_or("")), text));
    }
    let trees: Vec<_> =
        files.iter().map(|(id, _, text)| grammar::parse(*id, text, &ParseLimits::default())).collect();
    for tree in &trees {
        assert!(tree.errors.is_empty(), "syntax errors in a test's text: {:?}\n{text}", tree.errors);
    }
    let units: Vec<Unit<'_>> = files
        .iter()
        .zip(&trees)
        .map(|(&(file, module, _), tree)| Unit { file, module, ast: &tree.file })
        .collect();
    let (program, errors) = check::check(&units);
    let errors: Vec<_> =
        errors.iter().filter(|e| !matches!(e.kind, check::ErrorKind::NothingToCheck { .. })).collect();
    assert!(errors.is_empty(), "{errors:?}\n{text}");
    program
}

/// A request for an algorithm by name.
pub(crate) fn request(program: &Program, name: &str, shape: &[u32]) -> Request {
    let algorithm = program.find(name).unwrap_or_else(|| panic!("there is no {name}"));
    Request { algorithm, shape: shape.to_vec(), params: Params::new() }
}

/// What both ways found of one program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// By symmetry, and as a whole: it is right (or wrong, both say).
    Symmetric {
        proved: bool,
    },
    Refused(Refusal),
    /// No trace, and why.
    NoTrace(String),
}

/// Looks for a symmetry, and if there is one compares everything with the whole.
pub(crate) fn compare(program: &Program, request: &Request) -> Outcome {
    let limits = Limits::default();
    let whole = elaborate::elaborate(program, request, &limits);
    let found = symmetry::quotient(program, request, &limits);
    let quotient = match found {
        Ok(quotient) => quotient,
        Err(Failure::Refused(refusal)) => return Outcome::Refused(refusal),
        Err(Failure::Wrong(error)) => {
            assert!(whole.is_err(), "the whole has a trace, but {error:?}");
            return Outcome::NoTrace(format!("{error:?}"));
        }
    };
    let whole = match whole {
        Ok(whole) => whole.trace,
        Err(error) => panic!("symmetric, but the whole has no trace: {error:?}"),
    };
    same_moves(&quotient, &whole);
    same_promise(&quotient, &whole);
    let built = graph::build(&whole, Form::Disjoint);
    let by_symmetry = symmetry::prove(&quotient, &limits);
    let graph = match built {
        Ok(graph) => graph,
        Err(faults) => {
            assert!(by_symmetry.is_err(), "proved by symmetry, but {faults:?}");
            return Outcome::Symmetric { proved: false };
        }
    };
    if let Err(why) = equivariant(&whole, &graph, &quotient.action) {
        panic!("declared symmetric, but {why}");
    }
    same_reads(&quotient, &whole, &graph);
    let proof = graph::promise(&whole, &graph);
    let mut forms = vec![Form::Disjoint];
    let mut right = proof.is_ok();
    if !whole.inplace.is_empty() {
        forms.push(Form::Same);
        match graph::build(&whole, Form::Same) {
            Ok(same) => {
                same_reads(&quotient, &whole, &same);
                if let Err(why) = equivariant(&whole, &same, &quotient.action) {
                    panic!("declared symmetric, but in place {why}");
                }
                right = right
                    && graph::promise(&whole, &same).is_ok()
                    && graph::forms_agree(&whole, &graph, &same).is_ok();
            }
            Err(_) => right = false,
        }
    }
    match by_symmetry {
        Ok(by_symmetry) => {
            assert!(right, "proved by symmetry, but wrong as a whole");
            assert_eq!(by_symmetry.forms, forms);
            let same_bits = proof.map(|proof| proof.same_bits).unwrap_or_default();
            assert_eq!(by_symmetry.same_bits, same_bits.filter(|_| !quotient.reorders()));
        }
        Err(faults) => assert!(!right, "right as a whole, but by symmetry {faults:?}"),
    }
    Outcome::Symmetric { proved: right }
}

/// A move without what depends on how the trace was made.
type Bare = (String, (u32, u32, u32), Vec<(u32, u32, u32)>, u32, u32, u16);

fn bare(trace: &Trace, mv: &Move) -> Bare {
    let place = |p: rcc_compiler::trace::Place| (p.buffer.0, p.rank.0, p.cell);
    let sources = trace.sources(mv).iter().map(|&source| place(source)).collect();
    (format!("{:?}", mv.kind), place(mv.to), sources, mv.width, mv.origin.0, mv.lane)
}

/// The quotient's moves are the whole's into standing ranks, in order; and those of every rank are the whole's too.
fn same_moves(quotient: &Quotient, whole: &Trace) {
    let names = |trace: &Trace| -> Vec<_> {
        trace.buffers.iter().map(|b| (b.name.clone(), b.kind, b.blocks)).collect()
    };
    assert_eq!(names(&quotient.trace), names(whole));
    assert_eq!((quotient.trace.cells, quotient.trace.ranks), (whole.cells, whole.ranks));
    assert_eq!(quotient.moves, whole.moves.len() as u64);
    let ours: Vec<Bare> = quotient.trace.moves.iter().map(|mv| bare(&quotient.trace, mv)).collect();
    let into = |mv: &&Move| mv.to.rank.0 < quotient.action.step;
    let theirs: Vec<Bare> = whole.moves.iter().filter(into).map(|mv| bare(whole, mv)).collect();
    assert_eq!(ours, theirs, "moves into standing ranks");
    for rank in (0..whole.ranks).map(RankId) {
        let place = |p: rcc_compiler::trace::Place| (p.buffer.0, p.rank.0, p.cell);
        let ours: Vec<Bare> = symmetry::of_rank(quotient, rank)
            .iter()
            .map(|mv| {
                let sources = mv.sources.iter().map(|&source| place(source)).collect();
                let lane = quotient.trace.moves[mv.of.0 as usize].lane;
                (format!("{:?}", mv.kind), place(mv.to), sources, mv.width, mv.origin.0, lane)
            })
            .collect();
        let touches =
            |mv: &&Move| mv.to.rank == rank || whole.sources(mv).iter().any(|source| source.rank == rank);
        let theirs: Vec<Bare> = whole.moves.iter().filter(touches).map(|mv| bare(whole, mv)).collect();
        assert_eq!(ours, theirs, "moves of rank {}", rank.0);
    }
}

/// Every operand of the quotient sees what the whole's sees: the same place, made by the rotated move.
fn same_reads(quotient: &Quotient, whole: &Trace, graph: &ChunkGraph) {
    let action = &quotient.action;
    let into = |mv: &Move| mv.to.rank.0 < action.step;
    let standing: Vec<usize> = (0..whole.moves.len()).filter(|&m| into(&whole.moves[m])).collect();
    assert!(quotient.forms().any(|form| form == graph.form));
    for (m, &w) in standing.iter().enumerate() {
        let (mv, id) = (&whole.moves[w], MoveId(w as u32));
        let arity = arity(whole, mv);
        for cell in 0..mv.width {
            let ours: Vec<_> = quotient.reads(graph.form, MoveId(m as u32), cell).collect();
            let theirs = graph.read(id, cell, arity);
            assert_eq!(ours.len(), theirs.len());
            for (seen, &version) in ours.iter().zip(theirs) {
                let seen = seen.expect("the whole has no fault");
                let (writer, version) = (graph.writer(version), graph.version(version));
                // Overlapping cells have one number; where each lies is checked by that.
                assert_eq!(graph.places.index(action.place(seen.place, seen.times)), version.place);
                assert_eq!(seen.made.is_none(), writer.is_none());
                let Some((made, writer)) = seen.made.zip(writer) else { continue };
                let (like, writer) =
                    (&quotient.trace.moves[made.0.0 as usize], &whole.moves[writer.0 as usize]);
                assert_eq!((like.origin, like.kind), (writer.origin, writer.kind));
                assert_eq!(action.rank(like.to.rank, seen.times), writer.to.rank);
                let ranks = |trace: &Trace, mv: &Move, times: u32| -> Vec<RankId> {
                    let sources = trace.sources(mv).iter();
                    let mut ranks: Vec<RankId> =
                        sources.map(|source| action.rank(source.rank, times)).collect();
                    if mv.kind == MoveKind::GatherReduce {
                        ranks.sort_unstable();
                    }
                    ranks
                };
                assert_eq!(ranks(&quotient.trace, like, seen.times), ranks(whole, writer, 0));
            }
        }
    }
}

fn same_promise(quotient: &Quotient, whole: &Trace) {
    let clauses = |trace: &Trace| -> Vec<(BlockRef, Vec<BlockRef>)> {
        let standing = trace.promise.clauses.iter().filter(|c| c.place.rank.0 < quotient.action.step);
        let list = |list: u32| {
            let mut list = trace.promise.lists[list as usize].clone();
            list.sort_unstable();
            list
        };
        let mut all: Vec<_> = standing.map(|c| (c.place, list(c.list))).collect();
        all.sort();
        all
    };
    assert_eq!(clauses(&quotient.trace), clauses(whole));
    assert_eq!(quotient.trace.promise.synchronised, whole.promise.synchronised);
    let overlaps: Vec<_> =
        whole.inplace.iter().filter(|overlap| overlap.rank.0 < quotient.action.step).copied().collect();
    let mut ours = quotient.trace.inplace.clone();
    ours.sort_by_key(|overlap| (overlap.left, overlap.right, overlap.rank));
    let mut theirs = overlaps;
    theirs.sort_by_key(|overlap| (overlap.left, overlap.right, overlap.rank));
    assert_eq!(ours, theirs);
}

/// Whether a rotation maps the dependence graph of a whole trace onto itself: each version of each place to the version
/// of the rotated place with the same number, made the same way of the rotated operands.
pub(crate) fn equivariant(trace: &Trace, graph: &ChunkGraph, action: &Action) -> Result<(), String> {
    let idle = |v: VersionId| {
        graph.writer(v).is_some_and(|mv| {
            let cell = v.0 - graph.written(mv, 0).0;
            graph.idle(trace, mv, cell)
        })
    };
    // The versions of each place, in order.
    let mut of_place: BTreeMap<u32, Vec<VersionId>> = BTreeMap::new();
    let mut number = vec![0usize; graph.versions.len()];
    for (v, version) in graph.versions.iter().enumerate() {
        let id = VersionId(v as u32);
        if idle(id) {
            continue;
        }
        let all = of_place.entry(version.place).or_default();
        number[v] = all.len();
        all.push(id);
    }
    let turned = |place: u32| graph.places.index(action.place(graph.places.place(place), 1));
    let target = |v: VersionId| -> Option<VersionId> {
        let version = graph.version(v);
        of_place.get(&turned(version.place))?.get(number[v.0 as usize]).copied()
    };
    let reads = |v: VersionId| -> Option<(String, Vec<VersionId>)> {
        let mv: MoveId = graph.writer(v)?;
        let m = &trace.moves[mv.0 as usize];
        let cell = v.0 - graph.written(mv, 0).0;
        Some((format!("{:?}", m.kind), graph.read(mv, cell, arity(trace, m)).to_vec()))
    };
    for (place, versions) in &of_place {
        let there = of_place.get(&turned(*place)).map_or(0, Vec::len);
        if versions.len() != there {
            let place = graph.places.place(*place);
            return Err(format!("{place:?} has {} versions, its image {there}", versions.len()));
        }
        for &v in versions {
            let Some(image) = target(v) else { return Err(format!("version {v:?} has no image")) };
            match (reads(v), reads(image)) {
                (None, None) => {}
                (Some((kind, here)), Some((other, there))) => {
                    let mut expected: Vec<Option<VersionId>> = here.iter().map(|&r| target(r)).collect();
                    let mut found: Vec<Option<VersionId>> = there.iter().map(|&r| Some(r)).collect();
                    if kind == "GatherReduce" {
                        // In rank order everywhere: the same operands, not the same order.
                        expected.sort();
                        found.sort();
                    }
                    if kind != other || expected != found {
                        return Err(format!(
                            "{v:?} is {kind} of {here:?}, its image is {other} of {there:?}"
                        ));
                    }
                }
                _ => return Err(format!("only one of {v:?} and its image is an entry value")),
            }
        }
    }
    Ok(())
}
