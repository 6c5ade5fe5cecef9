//! Random traces: the graph and its proof say what the independent executor finds.

use std::collections::BTreeMap;
use std::fmt;

use grammar::span::Span;
use plan::collective::{BlockRef, Clause};
use proptest::prelude::{ProptestConfig, Strategy, any, proptest};
use rcc_compiler::graph::{ChunkGraph, Form, WarningKind, build, promise};
use rcc_compiler::trace::{BufferKind, Move, MoveId, MoveKind, Origin, OriginId, Place, Trace};

use crate::executor::{self, Outcome, Perturb, mix, sum, tree_hash};
use crate::traces::{
    Builder, allgather, allreduce, at, block, direct_alltoall, dissemination, one_shot, recursive_doubling,
    ring, ring_allgather,
};

/// Numbers drawn from a seed.
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 = mix(self.0);
        (self.0 >> 11) as usize % n.max(1)
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// A trace that is shown one move a line.
pub(crate) struct Case(pub(crate) Trace);

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trace = &self.0;
        let place = |p: &Place| format!("{}[{}]@{}", trace.buffer(*p).name, p.cell, p.rank.0);
        writeln!(f, "{} ranks, {} cells", trace.ranks, trace.cells)?;
        for (m, mv) in trace.moves.iter().enumerate() {
            let sources: Vec<_> = trace.sources(mv).iter().map(place).collect();
            writeln!(f, "{m}: step {} {:?} {} {sources:?} x{}", mv.step, mv.kind, place(&mv.to), mv.width)?;
        }
        Ok(())
    }
}

/// A right algorithm with a few random changes.
pub(crate) fn mutated() -> impl Strategy<Value = Case> {
    (0..8u8, 1..5u32, 0..4usize, any::<u64>()).prop_map(|(which, n, changes, seed)| {
        let mut trace = match which {
            0 | 1 => ring(n),
            2 => recursive_doubling(n % 3),
            3 => one_shot(n),
            4 | 5 => ring_allgather(n),
            6 => direct_alltoall(n),
            _ => dissemination(n),
        }
        .trace;
        let mut draw = Draw(seed);
        for _ in 0..changes {
            mutate(&mut trace, &mut draw);
        }
        Case(trace)
    })
}

pub(crate) fn mutate(trace: &mut Trace, draw: &mut Draw) {
    let count = trace.moves.len();
    if count == 0 {
        return;
    }
    let m = draw.below(count);
    match draw.below(8) {
        0 => {
            trace.moves.remove(m);
        }
        1 if m + 1 < count => {
            let (a, b) = (trace.moves[m].step, trace.moves[m + 1].step);
            trace.moves.swap(m, m + 1);
            (trace.moves[m].step, trace.moves[m + 1].step) = (a, b);
        }
        2 => {
            let origin = OriginId(trace.origins.len() as u32);
            let start = origin.0 * 10;
            let span = Span { start, end: start + 8, ..trace.name_span };
            trace.origins.push(Origin { span, parent: None });
            trace.moves.insert(m, Move { origin, ..trace.moves[m] });
        }
        3 => {
            let s = trace.moves[m].first_source as usize;
            trace.sources[s] = another(trace, trace.sources[s], trace.moves[m].width, draw);
        }
        4 => trace.moves[m].to = another(trace, trace.moves[m].to, trace.moves[m].width, draw),
        5 if trace.moves[m].source_count == 1
            && trace.buffer(trace.moves[m].to).kind != BufferKind::Signal =>
        {
            let kind = &mut trace.moves[m].kind;
            *kind = if *kind == MoveKind::Combine { MoveKind::Copy } else { MoveKind::Combine };
        }
        6 => {
            let step = trace.moves[m].step;
            trace.moves.iter_mut().filter(|mv| mv.step == step).for_each(|mv| mv.step = 0);
        }
        7 if trace.moves[m].step == 0 => {
            let free = trace.moves[m..].iter().take_while(|mv| mv.step == 0).count();
            let size = 1 + draw.below(free.min(4));
            let number = 1000 + draw.below(1_000_000) as u32;
            trace.moves[m..m + size].iter_mut().for_each(|mv| mv.step = number);
        }
        _ => {}
    }
}

/// The place with its rank, cell or buffer changed (never into or out of the signal).
fn another(trace: &Trace, place: Place, width: u32, draw: &mut Draw) -> Place {
    let rank = draw.below(trace.ranks as usize) as u32;
    let kind = trace.buffer(place).kind;
    let buffer = match draw.below(3) {
        0 if kind != BufferKind::Signal => draw.below(trace.buffers.len()) as u32,
        _ => place.buffer.0,
    };
    let cells =
        if kind == BufferKind::Signal { 1 } else { trace.buffers[buffer as usize].blocks * trace.cells };
    let cell = draw.below((cells - width.min(cells) + 1) as usize) as u32;
    match draw.below(3) {
        0 => at(buffer, rank, cell),
        1 => at(buffer, place.rank.0, cell),
        _ => at(place.buffer.0, rank, place.cell),
    }
}

/// Random moves over one buffer of each kind, most of them legal when they are drawn.
pub(crate) fn wild() -> impl Strategy<Value = Case> {
    (1..4u32, 1..4u32, 0..16usize, any::<u64>()).prop_map(|(ranks, cells, moves, seed)| {
        let mut draw = Draw(seed);
        let mut b = match draw.below(2) {
            0 => allreduce(ranks, cells),
            _ => allgather(ranks, cells),
        };
        let in_buffer = b.trace.buffers.len() as u32;
        b = b
            .buffer("x", BufferKind::In, 2)
            .buffer("y", BufferKind::Out, 2)
            .buffer("tmp", BufferKind::Scratch, 2)
            .ensures(
                block(in_buffer + 1, 0, 0),
                vec![block(in_buffer, 0, 1), block(in_buffer, ranks - 1, 0)],
            );
        b = b.overlap(0, in_buffer, in_buffer + 1, 0);
        for _ in 0..moves {
            random_move(&mut b, &mut draw);
        }
        if draw.chance(70) {
            promise_what_it_does(&mut b.trace);
        }
        Case(b.trace)
    })
}

/// Replaces the clauses by all that hold: for each block that may be promised, tries every set of entry blocks.
fn promise_what_it_does(trace: &mut Trace) {
    let blocks = |kinds: &[BufferKind]| -> Vec<BlockRef> {
        let buffers =
            (0..trace.buffers.len() as u32).filter(|&b| kinds.contains(&trace.buffers[b as usize].kind));
        let ranked = buffers.flat_map(|b| (0..trace.ranks).map(move |r| (b, r)));
        ranked.flat_map(|(b, r)| (0..trace.buffers[b as usize].blocks).map(move |i| block(b, r, i))).collect()
    };
    let operands = blocks(&[BufferKind::In, BufferKind::Inout]);
    let places = blocks(&[BufferKind::Out, BufferKind::Inout]);
    let mut kept = Vec::new();
    for set in 1u32..1 << operands.len().min(9) {
        let chosen: Vec<_> = (0..operands.len()).filter(|i| set >> i & 1 == 1).map(|i| operands[i]).collect();
        trace.promise_mut().lists.push(chosen.clone());
        let list = trace.promise.lists.len() as u32 - 1;
        trace.promise_mut().clauses = places.iter().map(|&place| Clause { place, list }).collect();
        let outcome = executor::run(trace, Form::Disjoint, sum, None);
        trace.promise_mut().lists.pop();
        let Ok(outcome) = outcome else { continue };
        let holds = |k: &usize| outcome.held[*k].iter().zip(&outcome.due[*k]).all(|(h, d)| *h == Some(*d));
        for k in (0..places.len()).filter(holds) {
            kept.push((places[k], chosen.clone()));
        }
    }
    trace.promise_mut().clauses.clear();
    for (place, list) in kept {
        let list = trace.promise.lists.iter().position(|l| *l == list).unwrap_or_else(|| {
            trace.promise_mut().lists.push(list);
            trace.promise.lists.len() - 1
        });
        trace.promise_mut().clauses.push(Clause { place, list: list as u32 });
    }
}

fn random_move(b: &mut Builder, draw: &mut Draw) {
    let before = b.trace.clone();
    for attempt in 0..20 {
        let width = if draw.chance(70) { 1 } else { b.trace.cells };
        let place = |draw: &mut Draw, trace: &Trace| {
            let buffer = draw.below(trace.buffers.len());
            let cells = trace.buffers[buffer].blocks * trace.cells;
            let cell = draw.below((cells - width + 1) as usize);
            at(buffer as u32, draw.below(trace.ranks as usize) as u32, cell as u32)
        };
        let to = place(draw, &b.trace);
        let count = if draw.chance(70) { 1 } else { 2 };
        let sources: Vec<Place> = (0..count).map(|_| place(draw, &b.trace)).collect();
        let kind = match (count, draw.below(2)) {
            (1, 0) => MoveKind::Copy,
            (1, _) => MoveKind::Combine,
            _ => MoveKind::Reduce,
        };
        b.mv(kind, to, &sources, width);
        let last = b.trace.moves.len() - 1;
        if draw.chance(40) && last > 0 {
            let step = b.trace.moves[last - 1].step.max(last as u32);
            b.trace.moves[last - 1].step = step;
            b.trace.moves[last].step = step;
        }
        if executor::run(&b.trace, Form::Disjoint, sum, None).is_ok() || attempt == 19 && draw.chance(10) {
            return;
        }
        b.trace = before.clone();
    }
}

fn judge(trace: &Trace, form: Form) {
    let truth = executor::run(trace, form, sum, None);
    let graph = match (build(trace, form), &truth) {
        (Ok(graph), Ok(_)) => graph,
        (Err(faults), Err((code, mv))) => {
            let found = faults.iter().any(|f| f.kind.code() == *code && f.kind.blamed() == Some(MoveId(*mv)));
            return assert!(found || faults.len() == 20, "{code} at move {mv}, but {faults:?}");
        }
        (graph, truth) => panic!("{form:?}: build says {:?}, the executor {truth:?}", graph.err()),
    };
    let truth = truth.expect("both are right");
    let bits = executor::run(trace, form, tree_hash, None).expect("right with any algebra");
    values_agree(trace, &graph, &bits);
    match promise(trace, &graph) {
        Ok(proof) => {
            assert!(truth.keeps(trace), "accepted, but it is broken");
            if let Some(same) = proof.same_bits {
                assert_eq!(same, bits.same(trace));
            }
            // One rank alone transfers nothing.
            let told = form == Form::Disjoint && trace.ranks > 1;
            let expected = if told { useless(trace, &bits) } else { vec![] };
            let found: Vec<_> = proof.warnings.iter().map(|w| (w.example, kind_name(w.kind))).collect();
            assert_eq!(found, expected);
        }
        Err(faults) => assert!(!truth.keeps(trace), "refused, but it is kept: {faults:?}"),
    }
}

/// Two versions have one value if and only if the executor's hashes of them are equal.
fn values_agree(trace: &Trace, graph: &ChunkGraph, bits: &Outcome) {
    let (mut of_value, mut of_bits) = (BTreeMap::new(), BTreeMap::new());
    for (m, written) in bits.written.iter().enumerate() {
        for (i, &number) in written.iter().enumerate() {
            let value = graph.version(graph.written(MoveId(m as u32), i as u32)).value;
            assert_eq!(*of_value.entry(value).or_insert(number), number, "move {m} of {}", trace.moves.len());
            assert_eq!(*of_bits.entry(number).or_insert(value), value, "move {m} of {}", trace.moves.len());
        }
    }
}

fn kind_name(kind: WarningKind) -> &'static str {
    match kind {
        WarningKind::NeverRead { .. } => "never read",
        WarningKind::WastedTransfer { .. } => "wasted",
    }
}

/// The definition, by brute force: change what one cell of one move writes, and see whether any other write or any
/// promised place changes. (Each move here has an origin of its own.)
fn useless(trace: &Trace, bits: &Outcome) -> Vec<(MoveId, &'static str)> {
    let repeated = |m: usize, i: usize| bits.before[m][i] == Some(bits.written[m][i]);
    let idle = |m: usize, i: usize| bits.slots[m][i] == usize::MAX;
    let matters = |m: usize, i: usize| {
        let other =
            executor::run(trace, Form::Disjoint, tree_hash, Some(Perturb { mv: m, cell: i })).unwrap();
        let others_differ = (0..trace.moves.len()).any(|k| {
            (0..bits.written[k].len())
                .any(|j| (k, j) != (m, i) && !idle(k, j) && bits.written[k][j] != other.written[k][j])
        });
        others_differ || other.held != bits.held
    };
    // What overwrites cell i of move m.
    let next = |m: usize, i: usize| {
        let later = (m + 1..trace.moves.len()).flat_map(|k| (0..bits.slots[k].len()).map(move |j| (k, j)));
        later.into_iter().find(|&(k, j)| bits.slots[k][j] == bits.slots[m][i])
    };
    let used = |m: usize, i: usize| {
        let (mut m, mut i) = (m, i);
        loop {
            if matters(m, i) {
                return true;
            }
            match next(m, i) {
                Some((k, j)) if repeated(k, j) => (m, i) = (k, j),
                _ => return false,
            }
        }
    };
    let verdict = |m: usize| {
        let cells = 0..bits.written[m].len();
        if cells.is_empty() || cells.clone().any(|i| idle(m, i) || !repeated(m, i) && used(m, i)) {
            None
        } else {
            Some(if { cells }.all(|i| repeated(m, i)) { "wasted" } else { "never read" })
        }
    };
    let mut told = Vec::new();
    let mut start = 0;
    while start < trace.moves.len() {
        if let Some(kind) = verdict(start) {
            told.push((MoveId(start as u32), kind));
        }
        start += 1;
    }
    told.sort_by_key(|&(mv, _)| (trace.origin(mv).span, mv));
    told
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn mutated_algorithms(trace in mutated()) {
        judge(&trace.0, Form::Disjoint);
        judge(&trace.0, Form::Same);
    }

    #[test]
    fn wild_traces(trace in wild()) {
        judge(&trace.0, Form::Disjoint);
        judge(&trace.0, Form::Same);
    }
}
