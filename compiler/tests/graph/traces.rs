//! Traces written by hand: a small builder, and the algorithms that the tests use as right programs.

use std::sync::Arc;

use grammar::span::{FileId, Span};
use plan::collective::{BlockRef, Clause};
use plan::ids::{BufferId, RankId};
use plan::plan::Presence;
use rcc_compiler::trace::{
    Buffer, BufferKind, Inplace, Move, MoveId, MoveKind, Origin, OriginId, Place, Trace,
};

/// Cell `cell` of buffer number `buffer` at a rank.
pub(crate) fn at(buffer: u32, rank: u32, cell: u32) -> Place {
    Place { buffer: BufferId(buffer), rank: RankId(rank), cell }
}

/// Block `block` of buffer number `buffer` at a rank.
pub(crate) fn block(buffer: u32, rank: u32, block: u32) -> BlockRef {
    BlockRef { buffer: BufferId(buffer), rank: RankId(rank), block }
}

/// A trace under construction.
pub(crate) struct Builder {
    pub(crate) trace: Trace,
    step: u32,
    steps: u32,
}

impl Builder {
    pub(crate) fn new(ranks: u32, cells: u32) -> Builder {
        let nowhere = span(0);
        let trace = Trace {
            algorithm: "hand".to_string(),
            collective: "promised".to_string(),
            params: Vec::new(),
            shape: vec![ranks],
            ranks,
            cells,
            chunks: cells,
            buffers: Vec::new(),
            inplace: Vec::new(),
            moves: Vec::new(),
            sources: Vec::new(),
            origins: Vec::new(),
            promise: Arc::default(),
            clause_spans: Vec::new(),
            implements: nowhere,
            name_span: nowhere,
        };
        Builder { trace, step: 0, steps: 0 }
    }

    pub(crate) fn buffer(mut self, name: &str, kind: BufferKind, blocks: u32) -> Builder {
        let (name, at, span) = (name.to_string(), Presence::All, span(0));
        self.trace.buffers.push(Buffer { name, kind, blocks, at, span });
        self
    }

    /// `left` at `rank` (whole) may lie on `right` from `right_cell` on.
    pub(crate) fn overlap(mut self, rank: u32, left: u32, right: u32, right_cell: u32) -> Builder {
        let cells = self.trace.buffers[left as usize].blocks * self.trace.cells;
        let (left, right) = (BufferId(left), BufferId(right));
        self.trace.inplace.push(Inplace { rank: RankId(rank), left, left_cell: 0, right, right_cell, cells });
        self
    }

    pub(crate) fn ensures(mut self, place: BlockRef, operands: Vec<BlockRef>) -> Builder {
        let list = self.trace.promise.lists.iter().position(|l| *l == operands).unwrap_or_else(|| {
            self.trace.promise_mut().lists.push(operands);
            self.trace.promise.lists.len() - 1
        });
        self.trace.promise_mut().clauses.push(Clause { place, list: list as u32 });
        self.trace.clause_spans.push(span(0));
        self
    }

    pub(crate) fn mv(&mut self, kind: MoveKind, to: Place, sources: &[Place], width: u32) -> MoveId {
        let origin = OriginId(self.trace.origins.len() as u32);
        self.trace.origins.push(Origin { span: span(origin.0), parent: None });
        let id = MoveId(self.trace.moves.len() as u32);
        self.trace.moves.push(Move {
            kind,
            to,
            first_source: self.trace.sources.len() as u32,
            source_count: sources.len() as u32,
            width,
            lane: 0,
            step: self.step,
            origin,
        });
        self.trace.sources.extend_from_slice(sources);
        id
    }

    pub(crate) fn copy(&mut self, to: Place, source: Place) -> MoveId {
        self.mv(MoveKind::Copy, to, &[source], 1)
    }

    pub(crate) fn add(&mut self, to: Place, source: Place) -> MoveId {
        self.mv(MoveKind::Combine, to, &[source], 1)
    }

    pub(crate) fn step(&mut self, moves: impl FnOnce(&mut Builder)) {
        self.steps += 1;
        self.step = self.steps;
        moves(self);
        self.step = 0;
    }
}

/// A place of its own in the (imaginary) source for each move.
fn span(n: u32) -> Span {
    Span::new(FileId(0), n as usize * 10, n as usize * 10 + 8)
}

/// `inout data`, every rank ends with the reduction of all ranks' data.
pub(crate) fn allreduce(ranks: u32, cells: u32) -> Builder {
    let all: Vec<_> = (0..ranks).map(|r| block(0, r, 0)).collect();
    let builder = Builder::new(ranks, cells).buffer("data", BufferKind::Inout, 1);
    (0..ranks).fold(builder, |b, r| b.ensures(block(0, r, 0), all.clone()))
}

/// `in input`, `out output[n]`, `inplace input = output[self]`.
pub(crate) fn allgather(ranks: u32, cells: u32) -> Builder {
    let mut builder = Builder::new(ranks, cells).buffer("input", BufferKind::In, 1).buffer(
        "output",
        BufferKind::Out,
        ranks,
    );
    for r in 0..ranks {
        builder = builder.overlap(r, 0, 1, r * cells);
        builder = (0..ranks).fold(builder, |b, s| b.ensures(block(1, r, s), vec![block(0, s, 0)]));
    }
    builder
}

/// `in input[n]`, `out output[n]`.
pub(crate) fn alltoall(ranks: u32, cells: u32) -> Builder {
    let mut builder = Builder::new(ranks, cells).buffer("input", BufferKind::In, ranks).buffer(
        "output",
        BufferKind::Out,
        ranks,
    );
    for r in 0..ranks {
        builder = (0..ranks).fold(builder, |b, s| b.ensures(block(1, r, s), vec![block(0, s, r)]));
    }
    builder
}

/// `ensures synchronised`, with the signal buffer.
pub(crate) fn barrier(ranks: u32) -> Builder {
    let mut builder = Builder::new(ranks, 1).buffer("signal", BufferKind::Signal, 1);
    builder.trace.promise_mut().synchronised = true;
    builder
}

/// The ring of `docs/language.md`.
pub(crate) fn ring(n: u32) -> Builder {
    let mut b = allreduce(n, n);
    for c in 0..n {
        for hop in 1..n {
            b.add(at(0, (c + hop + 1) % n, c), at(0, (c + hop) % n, c));
        }
    }
    for c in 0..n {
        for hop in 0..n - 1 {
            b.copy(at(0, (c + hop + 1) % n, c), at(0, (c + hop) % n, c));
        }
    }
    b
}

/// Recursive doubling over `2^bits` ranks: in each step all pairs swap everything.
pub(crate) fn recursive_doubling(bits: u32) -> Builder {
    let n = 1 << bits;
    let mut b = allreduce(n, 1);
    for bit in 0..bits {
        b.step(|b| {
            for r in 0..n {
                b.add(at(0, r ^ (1 << bit), 0), at(0, r, 0));
            }
        });
    }
    b
}

/// Everyone sends everything to everyone, then all reduce in rank order.
pub(crate) fn one_shot(n: u32) -> Builder {
    let mut b = allreduce(n, 2).buffer("tmp", BufferKind::Scratch, n);
    for r in 0..n {
        for s in 0..n {
            b.mv(MoveKind::Multicast, at(1, s, 2 * r), &[at(0, r, 0)], 2);
        }
    }
    for r in 0..n {
        let sources: Vec<_> = (0..n).map(|s| at(1, r, 2 * s)).collect();
        b.mv(MoveKind::Reduce, at(0, r, 0), &sources, 2);
    }
    b
}

/// Ring all-gather; in place its first copy does nothing.
pub(crate) fn ring_allgather(n: u32) -> Builder {
    let mut b = allgather(n, 1);
    for r in 0..n {
        b.copy(at(1, r, r), at(0, r, 0));
    }
    for hop in 0..n - 1 {
        b.step(|b| {
            for r in 0..n {
                let c = (r + n - hop) % n;
                b.copy(at(1, (r + 1) % n, c), at(1, r, c));
            }
        });
    }
    b
}

/// All-to-all: own block locally, the others directly.
pub(crate) fn direct_alltoall(n: u32) -> Builder {
    let mut b = alltoall(n, 2);
    for r in 0..n {
        for s in 0..n {
            b.mv(MoveKind::Copy, at(1, s, 2 * r), &[at(0, r, 2 * s)], 2);
        }
    }
    b
}

/// Dissemination barrier.
pub(crate) fn dissemination(n: u32) -> Builder {
    let mut b = barrier(n);
    let mut distance = 1;
    while distance < n {
        b.step(|b| {
            for r in 0..n {
                b.copy(at(0, (r + distance) % n, 0), at(0, r, 0));
            }
        });
        distance *= 2;
    }
    b
}
