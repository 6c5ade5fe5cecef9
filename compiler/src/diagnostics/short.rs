//! Loops that stop one turn too early: the likeliest reason why a place is never written.
//!
//! In: a place that no move writes. Out: the loop that, had it made one more turn, would have written it; silence if
//! there is none. The one hard idea: go on as before. Two moves of one line, one turn of one loop apart, say how
//! ranks and cells change from turn to turn; if the same change once more leads to the place, and that loop is at
//! its end, it is shown.

use plan::ids::RankId;

use super::Label;
use super::labels::{Ask, fit};
use super::places::{rank, world};
use crate::trace::{Bindings, BufferKind, Looped, Move, MoveId, MoveKind, Place, Trace};

/// What to show.
pub(crate) struct Short {
    /// The move, and the loop.
    pub(crate) labels: [Label; 2],
    /// What one more turn would do.
    pub(crate) help: String,
}

/// Looks for the loop; with `adds` only around a `+=`.
pub(crate) fn one_turn_short(trace: &Trace, to: Place, adds: bool, bindings: &mut Ask<'_>) -> Option<Short> {
    let turn = next_writes(trace, to, adds)?;
    let (values, before) = (bindings(turn.last), bindings(turn.before));
    let looped = turned_last(&values, &before)?;
    let (variable, end) = (&looped.variable, looped.last);
    let what = match (trace.buffer(to).kind, trace.moves[turn.last.0 as usize].kind) {
        (BufferKind::Signal, _) => "signal",
        (_, MoveKind::Combine) => "`+=`",
        (_, MoveKind::Reduce | MoveKind::GatherReduce) => "reduction",
        _ => "copy",
    };
    let reached = rank(trace, trace.moves[turn.last.0 as usize].to.rank);
    let at_move = fit(&[
        format!("the last {what}, at {variable} = {end}, reaches rank {reached}"),
        format!("the last {what} reaches rank {reached}"),
    ]);
    let at_loop = fit(&[
        format!("{variable} stops at {end} with {}", world(trace)),
        format!("{variable} stops at {end}"),
    ]);
    Some(Short {
        labels: [
            Label { span: trace.origin(turn.last).span, text: at_move },
            Label { span: looped.range, text: at_loop },
        ],
        help: format!(
            "`..` leaves out its end: one more turn of {variable} brings it from rank {} to rank {}",
            rank(trace, turn.source),
            rank(trace, to.rank)
        ),
    })
}

/// Two moves, and where the next one would read.
struct Turn {
    before: MoveId,
    last: MoveId,
    source: RankId,
}

/// Moves of one line whose next one would write `to`: the last two, or those of the last two rounds of a loop over
/// all ranks.
fn next_writes(trace: &Trace, to: Place, adds: bool) -> Option<Turn> {
    let ranks = trace.ranks as usize;
    let mut lines: Vec<Vec<u32>> = vec![Vec::new(); trace.origins.len()];
    let counts = |mv: &Move| mv.to.buffer == to.buffer && (!adds || mv.kind == MoveKind::Combine);
    for (m, mv) in trace.moves.iter().enumerate().filter(|(_, mv)| counts(mv)) {
        lines[mv.origin.0 as usize].push(m as u32);
    }
    lines.iter().find_map(|line| {
        let round = goes_round(trace, line);
        let pairs = |apart: usize, count: usize| {
            let end = line.len();
            let first = end.saturating_sub(count).max(apart.min(end));
            (first..end).map(move |i| (line[i - apart], line[i]))
        };
        // A loop over all ranks makes as many turns, or (for all but a root) one less.
        let rounds = [ranks, ranks.saturating_sub(1).max(1)];
        let rounds = rounds.into_iter().flat_map(|apart| pairs(apart, apart));
        pairs(1, 1).chain(rounds).find_map(|(before, last)| {
            let (a, b) = (&trace.moves[before as usize], &trace.moves[last as usize]);
            let (from, source) = (trace.sources(a).first()?, trace.sources(b).first()?);
            let rank = |a: RankId, b: RankId| next_rank(a, b, trace.ranks, round);
            let cell = u32::try_from(2 * i64::from(b.to.cell) - i64::from(a.to.cell)).ok()?;
            let ahead = to.cell.checked_sub(cell).is_some_and(|i| i < b.width);
            let writes = ahead && a.to != b.to && rank(a.to.rank, b.to.rank) == Some(to.rank);
            let source = rank(from.rank, source.rank).filter(|_| writes)?;
            Some(Turn { before: MoveId(before), last: MoveId(last), source })
        })
    })
}

/// The rank that is as far from `b` as that is from `a`; ranks wrap around only if the line shows that they do.
fn next_rank(a: RankId, b: RankId, ranks: u32, round: bool) -> Option<RankId> {
    let next = 2 * i64::from(b.0) - i64::from(a.0);
    let inside = (0..i64::from(ranks)).contains(&next);
    (inside || round).then(|| RankId(next.rem_euclid(i64::from(ranks)) as u32))
}

/// Whether moves of a line go both up and down the ranks, as those of a ring do.
fn goes_round(trace: &Trace, line: &[u32]) -> bool {
    let goes = |up: bool| {
        let step = |&m: &u32| {
            let mv = &trace.moves[m as usize];
            let from = trace.sources(mv).first().map_or(mv.to.rank, |place| place.rank);
            from != mv.to.rank && (mv.to.rank > from) == up
        };
        line.iter().any(step)
    };
    goes(true) && goes(false)
}

/// The innermost loop in which two moves differ, if the later one is of its last turn.
fn turned_last<'a>(values: &'a Bindings, before: &Bindings) -> Option<&'a Looped> {
    let value = |of: &Bindings, name: &str| of.0.iter().rev().find(|(n, _)| n == name).map(|&(_, v)| v);
    let turned = |l: &&Looped| value(values, &l.variable) != value(before, &l.variable);
    let looped = values.1.iter().rev().find(turned)?;
    (value(values, &looped.variable) == Some(looped.last)).then_some(looped)
}
