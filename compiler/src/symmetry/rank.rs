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

/// The moves into a rank and out of it, each once.
pub fn of_rank(quotient: &Quotient, rank: RankId) -> Vec<RankMove> {
    let Quotient { trace, action, keys, within, .. } = quotient;
    let mut moments: Vec<(u32, u32)> = Vec::with_capacity(2 * trace.moves.len());
    let mut touching: Vec<u32> = Vec::new();
    for (m, mv) in trace.moves.iter().enumerate() {
        // The rotations of this move that touch the rank: by destination and by each operand.
        touching.clear();
        for place in std::iter::once(&mv.to).chain(trace.sources(mv)) {
            let (home, times) = action.home(place.rank);
            let (wanted, target) = action.home(rank);
            if home == wanted {
                let times = action.sum(target, action.back(times));
                touching.push(times);
            }
        }
        touching.sort_unstable();
        touching.dedup();
        moments.extend(touching.iter().map(|&times| (m as u32, times)));
    }
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
