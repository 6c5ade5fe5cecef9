//! The moves of one rank, in the order of the program, out of one of each orbit.
//!
//! In: a [`Quotient`] and a rank. Out: every move that writes at the rank or reads from it. Each orbit has exactly one move
//! into each rank of the orbit of its destination; and for each operand one that reads from the rank.

use plan::ids::RankId;

use super::keys::Moment;
use super::{Quotient, in_rank_order};
use crate::trace::{MoveId, MoveKind, OriginId, Place};

/// A move that concerns a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankMove {
    /// The move of the quotient that it is a rotation of.
    pub of: MoveId,
    /// How many times that one is taken round.
    pub times: u32,
    /// What it does.
    pub kind: MoveKind,
    /// Its destination.
    pub to: Place,
    /// Its operands, in the order folded.
    pub sources: Vec<Place>,
    /// How many cells.
    pub width: u32,
    /// Where it comes from.
    pub origin: OriginId,
}

/// How many moves concern a rank, and how many other ranks they are with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RankCounts {
    /// All of them.
    pub moves: u64,
    /// Those that bring something from other ranks.
    pub into: u64,
    /// From how many.
    pub from_ranks: u64,
    /// Those into other ranks that read here.
    pub out: u64,
    /// To how many.
    pub to_ranks: u64,
    /// Those that stay within the rank.
    pub within: u64,
}

/// Counts the moves of [`of_rank`], and the operands that they have in all.
pub fn count_of_rank(quotient: &Quotient, rank: RankId) -> (RankCounts, u64) {
    let Quotient { trace, action, .. } = quotient;
    let (mut from, mut to) = (Vec::new(), Vec::new());
    let mut counts = RankCounts::default();
    let mut operands = 0;
    for (m, times) in touching(quotient, rank) {
        let mv = &trace.moves[m as usize];
        counts.moves += 1;
        operands += u64::from(mv.source_count);
        let into = action.rank(mv.to.rank, times);
        if into != rank {
            counts.out += 1;
            to.push(into);
            continue;
        }
        let before = from.len();
        let sources = trace.sources(mv).iter().map(|source| action.rank(source.rank, times));
        from.extend(sources.filter(|source| *source != rank));
        if from.len() == before { counts.within += 1 } else { counts.into += 1 }
    }
    let distinct = |mut list: Vec<RankId>| {
        list.sort_unstable();
        list.dedup();
        list.len() as u64
    };
    (counts.from_ranks, counts.to_ranks) = (distinct(from), distinct(to));
    (counts, operands)
}

/// The moves into a rank and out of it, each once.
pub fn of_rank(quotient: &Quotient, rank: RankId) -> Vec<RankMove> {
    let Quotient { trace, action, keys, within, .. } = quotient;
    let mut moments = touching(quotient, rank);
    moments.sort_by(|&(a, x), &(b, y)| {
        let moment = |mv, times| Moment { mv, times, writes: true };
        keys.compare(moment(a, x), moment(b, y)).0
    });
    let made = |(m, times): (u32, u32)| {
        let mv = &trace.moves[m as usize];
        let within = within[mv.origin.0 as usize];
        let mut sources: Vec<Place> =
            trace.sources(mv).iter().map(|&source| action.start(source, times, within)).collect();
        in_rank_order(mv.kind, &mut sources);
        RankMove {
            of: MoveId(m),
            times,
            kind: mv.kind,
            to: action.start(mv.to, times, within),
            sources,
            width: mv.width,
            origin: mv.origin,
        }
    };
    moments.into_iter().map(made).collect()
}

/// The moves that touch a rank: each as one of the quotient, and how many times that is taken round.
fn touching(quotient: &Quotient, rank: RankId) -> Vec<(u32, u32)> {
    let Quotient { trace, action, .. } = quotient;
    let mut moments: Vec<(u32, u32)> = Vec::with_capacity(2 * trace.moves.len());
    let mut turns: Vec<u32> = Vec::new();
    for (m, mv) in trace.moves.iter().enumerate() {
        // The rotations of this move that touch the rank: by destination and by each operand.
        turns.clear();
        for place in std::iter::once(&mv.to).chain(trace.sources(mv)) {
            let (home, times) = action.home(place.rank);
            let (wanted, target) = action.home(rank);
            if home == wanted {
                let times = action.sum(target, action.back(times));
                turns.push(times);
            }
        }
        turns.sort_unstable();
        turns.dedup();
        moments.extend(turns.iter().map(|&times| (m as u32, times)));
    }
    moments
}
