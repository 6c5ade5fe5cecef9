//! A small world in which the standing ranks do what they do in theirs, so that they can be scheduled as any program is.
//!
//! In: a quotient. Out: a trace of a few ranks, `copies × step` of them: every copy has the moves of all standing ranks, and what a
//! standing rank reads t turns away it reads in another copy, a different one for each t. So each rank has as many partners as
//! in the whole world, at distances in the same order, and each place is written and read as there; only who is who has been
//! forgotten. (Where everyone talks to everyone this is as large as the whole.)
//!
//! The one hard idea: the order of the moves. Moves that conflict in the whole world come in an order that does not hang
//! on a turn that goes round (`versions` has seen to it). So to compare keys by all but such turns is an order of orbits that
//! keeps every dependence; what it leaves open does not conflict. Nothing is trusted of this: the plan that comes out is judged
//! by `plan::verify_folded`, and held against the quotient by `validate`.

use std::cmp::Ordering;
use std::sync::Arc;

use plan::collective::{BlockRef, Clause, Promise};
use plan::ids::RankId;

use super::Quotient;
use crate::trace::{Buffer, BufferKind, Inplace, Move, Place, Trace};

/// The small world.
#[derive(Debug)]
pub(super) struct Cover {
    pub(super) trace: Trace,
    /// How many copies of the standing ranks.
    pub(super) copies: u32,
    /// By copy: how many turns away it stands for, seen from a writer in copy 0.
    pub(super) turns: Vec<u32>,
}

/// Where the cover has as many ranks as the whole, it is made only with fewer moves than this.
const NO_GAIN: u64 = 200_000;

/// Why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoCover {
    /// A run of cells is read that is no run at the rank it comes from.
    Runs,
    /// It is as large as the whole, or larger than may be looked at.
    Large,
}

/// Makes it. No more than `most` moves are made.
pub(super) fn cover(quotient: &Quotient, most: u64) -> Result<Cover, NoCover> {
    let Quotient { trace, action, .. } = quotient;
    // Which turns there are from writer to reader.
    let mut turns: Vec<u32> = vec![0];
    for source in &trace.sources {
        turns.push(action.back(action.home(source.rank).1));
        // Most come one after another.
        if turns.len() > 1024 && turns.len() > 2 * action.order as usize {
            turns.sort_unstable();
            turns.dedup();
        }
    }
    turns.sort_unstable();
    turns.dedup();
    let copies = turns.len() as u32;
    let moves = trace.moves.len() as u64 * u64::from(copies);
    if moves > most || (copies >= action.order && moves > NO_GAIN) {
        return Err(NoCover::Large);
    }
    // Every source, at the standing rank of its orbit, and from how many copies back it is read. Moves name theirs in any order.
    let mut sources: Vec<(Place, u32)> = trace.sources.iter().map(|&source| (source, 0)).collect();
    for mv in &trace.moves {
        let own = mv.first_source as usize..(mv.first_source + mv.source_count) as usize;
        for (known, &source) in sources[own].iter_mut().zip(trace.sources(mv)) {
            let (home, times) = action.home_of(source);
            let run = (1..mv.width).all(|i| action.home_of(source.plus(i)) == (home.plus(i), times));
            if !run {
                return Err(NoCover::Runs);
            }
            let copy = turns.binary_search(&action.back(times)).unwrap_or(0) as u32;
            *known = (home, copy);
        }
    }
    // Where positions go round, a piece lies elsewhere in the rank that it comes from: then every cell is a block of its own.
    let flat = action.position != 0;
    let parts = |buffer: &Buffer| match buffer.kind {
        BufferKind::Signal => buffer.blocks,
        _ if flat => buffer.blocks.saturating_mul(trace.cells),
        _ => buffer.blocks,
    };
    let at = |place: Place, copy: u32| Place { rank: RankId(copy * action.step + place.rank.0), ..place };
    let mut small = Trace {
        algorithm: trace.algorithm.clone(),
        collective: trace.collective.clone(),
        params: trace.params.clone(),
        shape: vec![copies * action.step],
        ranks: copies * action.step,
        cells: if flat { 1 } else { trace.cells },
        chunks: if flat { 1 } else { trace.chunks },
        buffers: trace
            .buffers
            .iter()
            .map(|buffer| Buffer { blocks: parts(buffer), ..buffer.clone() })
            .collect(),
        inplace: Vec::new(),
        moves: Vec::with_capacity(moves as usize),
        sources: Vec::with_capacity(sources.len() * copies as usize),
        origins: trace.origins.clone(),
        promise: Arc::new(promise(quotient, copies, flat)),
        clause_spans: Vec::new(),
        implements: trace.implements,
        name_span: trace.name_span,
    };
    for copy in 0..copies {
        let rank = |rank: RankId| RankId(copy * action.step + rank.0);
        small.inplace.extend(trace.inplace.iter().map(|form| Inplace { rank: rank(form.rank), ..*form }));
        for &span in &trace.clause_spans {
            let cells = if flat { trace.cells } else { 1 };
            small.clause_spans.extend(std::iter::repeat_n(span, cells as usize));
        }
    }
    let mut order: Vec<u32> = (0..trace.moves.len() as u32).collect();
    let before = |a: &u32, b: &u32| quotient.keys.compare_orbits(*a, *b).0;
    if !order.is_sorted_by(|a, b| before(a, b) != Ordering::Greater) {
        order.sort_by(before);
    }
    let mut step = 0;
    let mut last: Option<u32> = None;
    for &m in &order {
        let mv = &trace.moves[m as usize];
        if mv.step != 0 && !last.is_some_and(|last| quotient.keys.compare_orbits(last, m).1) {
            step += 1;
        }
        last = (mv.step != 0).then_some(m);
        for copy in 0..copies {
            let first_source = small.sources.len() as u32;
            let own = mv.first_source as usize..(mv.first_source + mv.source_count) as usize;
            let from = |back: u32| (copy + copies - back) % copies;
            small.sources.extend(sources[own].iter().map(|&(place, back)| at(place, from(back))));
            let step = if mv.step == 0 { 0 } else { step };
            small.moves.push(Move { to: at(mv.to, copy), first_source, step, ..*mv });
        }
    }
    Ok(Cover { trace: small, copies, turns })
}

/// A promise to all copies. Of its operands only whether there are several, of how many numbers, and which places they are at
/// the standing ranks, are the whole's: scheduling asks what is promised, what has an entry value, and where a sum is complete.
fn promise(quotient: &Quotient, copies: u32, flat: bool) -> Promise {
    let Quotient { trace, action, .. } = quotient;
    let given = &trace.promise;
    // By list: the distinct blocks at standing ranks, made up to 1, 2 or 3 operands: one size of reductions stays one size.
    let size = given.reduced_operands();
    let mut named: Vec<Vec<BlockRef>> = Vec::with_capacity(given.lists.len());
    for list in &given.lists {
        let mut homes: Vec<BlockRef> = Vec::new();
        for block in list {
            let home = super::promise::taken(action, *block, action.back(action.home(block.rank).1));
            // Most lists name few; all the same where they name many.
            if homes.last() != Some(&home) && (homes.len() > 64 || !homes.contains(&home)) {
                homes.push(home);
            }
        }
        homes.sort_unstable();
        homes.dedup();
        named.push(homes);
    }
    let most = named.iter().map(Vec::len).max().unwrap_or(0).max(2);
    for (homes, list) in named.iter_mut().zip(&given.lists) {
        let len = match list.len() {
            1 => 1,
            _ if size.is_some() => most,
            // Of several sizes there stay at least two.
            len => most + usize::from(Some(len) == given.lists.iter().map(Vec::len).max()),
        };
        let first = homes[0];
        homes.resize(len, first);
    }
    let cells = if flat { trace.cells } else { 1 };
    let mut promise = Promise { synchronised: given.synchronised, ..Promise::default() };
    for copy in 0..copies {
        let at = |block: BlockRef, cell: u32| BlockRef {
            rank: RankId(copy * action.step + block.rank.0),
            block: block.block * cells + cell,
            ..block
        };
        let first = promise.lists.len() as u32;
        for cell in 0..cells {
            promise.lists.extend(
                named.iter().map(|list| list.iter().map(|&block| at(block, cell)).collect::<Vec<_>>()),
            );
        }
        let lists = given.lists.len() as u32;
        for clause in &given.clauses {
            let of =
                |cell| Clause { place: at(clause.place, cell), list: first + cell * lists + clause.list };
            promise.clauses.extend((0..cells).map(of));
        }
    }
    promise
}
