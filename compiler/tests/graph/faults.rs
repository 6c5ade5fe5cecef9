//! Every fault has a wrong trace, which names the move and the place, and a mended twin, which passes.

use plan::ids::RankId;
use rcc_compiler::graph::{
    Broken, Counted, Fault, FaultKind, Form, Holds, build, build_within, promise, promise_within,
};
use rcc_compiler::limits::Limits;
use rcc_compiler::trace::{BufferKind, MoveId, MoveKind, Trace};

use crate::traces::{
    Builder, allgather, allreduce, alltoall, at, barrier, block, direct_alltoall, dissemination, one_shot,
    recursive_doubling, ring, ring_allgather,
};

fn faults(trace: &Trace, form: Form) -> Vec<Fault> {
    match build(trace, form) {
        Ok(graph) => promise(trace, &graph).err().unwrap_or_default(),
        Err(faults) => faults,
    }
}

fn kinds(builder: &Builder) -> Vec<FaultKind> {
    faults(&builder.trace, Form::Disjoint).into_iter().map(|f| f.kind).collect()
}

fn broken(builder: &Builder) -> Broken {
    let mut kinds = kinds(builder);
    assert_eq!(kinds.len(), 1, "{kinds:?}");
    match kinds.remove(0) {
        FaultKind::Promise(broken) => *broken,
        other => panic!("{other:?}"),
    }
}

fn passes(builder: &Builder) {
    for form in [Form::Disjoint, Form::Same] {
        assert_eq!(faults(&builder.trace, form), vec![]);
    }
}

#[test]
fn right_algorithms_pass_without_a_warning() {
    let programs = [
        ring(1),
        ring(2),
        ring(5),
        recursive_doubling(0),
        recursive_doubling(3),
        one_shot(4),
        ring_allgather(1),
        ring_allgather(5),
        direct_alltoall(4),
        dissemination(1),
        dissemination(6),
    ];
    for builder in programs {
        passes(&builder);
        let graph = build(&builder.trace, Form::Disjoint).unwrap();
        assert_eq!(promise(&builder.trace, &graph).unwrap().warnings, vec![]);
    }
}

#[test]
fn a_read_of_nothing() {
    let program = |early: bool| {
        let mut b = allreduce(2, 1).buffer("tmp", BufferKind::Scratch, 1);
        if early {
            b.add(at(0, 0, 0), at(1, 0, 0));
        }
        b.copy(at(1, 0, 0), at(0, 1, 0));
        if !early {
            b.add(at(0, 0, 0), at(1, 0, 0));
        }
        b.copy(at(0, 1, 0), at(0, 0, 0));
        b
    };
    let expected = FaultKind::NothingWritten { mv: MoveId(0), place: at(1, 0, 0) };
    assert_eq!(kinds(&program(true)), vec![expected]);
    passes(&program(false));
}

#[test]
fn an_out_buffer_holds_nothing_at_entry() {
    let program = |first: u32| {
        let mut b = allgather(2, 1);
        let other = 1 - first;
        b.copy(at(1, other, first), at(1, first, first));
        b.copy(at(1, first, first), at(0, first, 0));
        b
    };
    let expected = FaultKind::NothingWritten { mv: MoveId(0), place: at(1, 0, 0) };
    assert_eq!(kinds(&program(0)), vec![expected]);
    // In place the entry value of `input` is there.
    assert!(build(&program(0).trace, Form::Same).is_ok());
    passes(&ring_allgather(2));
}

#[test]
fn inside_a_step_writes_are_not_seen() {
    let program = |step: bool| {
        let mut b = allreduce(2, 1).buffer("tmp", BufferKind::Scratch, 1);
        let moves = |b: &mut Builder| {
            b.copy(at(1, 0, 0), at(0, 1, 0));
            b.add(at(0, 0, 0), at(1, 0, 0));
        };
        if step {
            b.step(moves);
        } else {
            moves(&mut b);
        }
        b.copy(at(0, 1, 0), at(0, 0, 0));
        b
    };
    let expected = FaultKind::NothingWritten { mv: MoveId(1), place: at(1, 0, 0) };
    assert_eq!(kinds(&program(true)), vec![expected]);
    passes(&program(false));
}

#[test]
fn a_combine_into_nothing() {
    let program = |kind| {
        let mut b = allreduce(2, 1).buffer("tmp", BufferKind::Scratch, 1);
        b.mv(kind, at(1, 0, 0), &[at(0, 1, 0)], 1);
        b.add(at(0, 0, 0), at(1, 0, 0));
        b.copy(at(0, 1, 0), at(0, 0, 0));
        b
    };
    let expected = FaultKind::CombineIntoNothing { mv: MoveId(0), place: at(1, 0, 0) };
    assert_eq!(kinds(&program(MoveKind::Combine)), vec![expected]);
    passes(&program(MoveKind::Copy));
}

#[test]
fn writes_that_conflict_in_a_step() {
    let program = |first, second, step: bool| {
        let mut b = allreduce(3, 1);
        let moves = |b: &mut Builder| {
            b.mv(first, at(0, 0, 0), &[at(0, 1, 0)], 1);
            b.mv(second, at(0, 0, 0), &[at(0, 2, 0)], 1);
        };
        if step {
            b.step(moves);
        } else {
            moves(&mut b);
        }
        b.copy(at(0, 1, 0), at(0, 0, 0));
        b.copy(at(0, 2, 0), at(0, 0, 0));
        b
    };
    let (copy, add) = (MoveKind::Copy, MoveKind::Combine);
    let expected = FaultKind::ConflictingWrites { first: MoveId(0), second: MoveId(1), place: at(0, 0, 0) };
    for (first, second) in [(copy, copy), (copy, add), (add, copy)] {
        assert_eq!(kinds(&program(first, second, true)), vec![expected.clone()]);
        assert!(build(&program(first, second, false).trace, Form::Disjoint).is_ok());
    }
    passes(&program(add, add, true));
}

#[test]
fn a_written_in_buffer() {
    let program = |through: u32| {
        let mut b = allgather(2, 1);
        for r in 0..2 {
            b.copy(at(1, r, r), at(0, r, 0));
            b.copy(at(1, r, 1 - r), at(0, 1 - r, 0));
        }
        let place = if through == 0 { at(0, 1, 0) } else { at(1, 1, 1) };
        b.copy(place, at(1, 0, 1));
        b
    };
    let expected = FaultKind::InWritten { mv: MoveId(4), place: at(0, 1, 0) };
    assert_eq!(kinds(&program(0)), vec![expected]);
    // Through the out name the overlapped part may be written, also in place.
    passes(&program(1));
}

#[test]
fn a_piece_at_a_position_not_its_own() {
    let program = |cell| {
        let mut b = allreduce(2, 2);
        b.add(at(0, 0, 1), at(0, 1, cell));
        b
    };
    let wrong = FaultKind::UnequalPieces {
        mv: MoveId(0),
        left: at(0, 0, 1),
        left_position: 1,
        right: at(0, 1, 0),
        right_position: 0,
    };
    assert_eq!(kinds(&program(0)), vec![wrong]);
    assert!(build(&program(1).trace, Form::Disjoint).is_ok());

    let program = |detour: u32| {
        let mut b = alltoall(2, 2).buffer("tmp", BufferKind::Scratch, 1);
        for r in 0..2 {
            for c in 0..4 {
                // By way of scratch, at any position there.
                b.copy(at(2, c / 2, 1 - c % 2), at(0, r, c));
                b.copy(at(1, c / 2, 2 * r + (c + detour) % 2), at(2, c / 2, 1 - c % 2));
            }
        }
        b
    };
    let wrong = |mv, from, to, position| FaultKind::WrongPosition {
        mv: MoveId(mv),
        place: at(1, 0, to),
        source: at(2, 0, from),
        position,
    };
    let found = kinds(&program(1));
    assert_eq!(found[..2], [wrong(1, 1, 1, 0), wrong(3, 0, 0, 1)]);
    assert_eq!(found.len(), 8);
    passes(&program(0));
}

#[test]
fn a_promise_that_lacks_one() {
    let program = |hops: u32| {
        let mut b = ring(4);
        let gather = 12;
        b.trace.moves.remove(gather + hops as usize);
        b
    };
    // Chunk 0 is complete at rank 0 and goes 0 → 1 → 2 → 3; its last copy is gone, so rank 3 holds its own part of
    // the reduction, last written in the first half.
    let broken = broken(&program(2));
    assert_eq!((broken.place, broken.clause), (at(0, 3, 0), 3));
    assert_eq!(broken.last, Some(MoveId(1)));
    assert_eq!(broken.missing, vec![block(0, 0, 0)]);
    assert_eq!((broken.missing_count, broken.twice.len(), broken.foreign.len()), (1, 0, 0));
    passes(&ring(4));
}

#[test]
fn a_promise_that_has_one_twice() {
    let mut b = recursive_doubling(2);
    b.add(at(0, 2, 0), at(0, 1, 0));
    let broken = broken(&b);
    assert_eq!(broken.place, at(0, 2, 0));
    assert_eq!(broken.last, Some(MoveId(8)));
    // Rank 1's value is complete, and so is rank 2's.
    assert_eq!(broken.twice, (0..4).map(|r| block(0, r, 0)).collect::<Vec<_>>());
    assert_eq!((broken.twice_count, broken.missing_count), (4, 0));
    passes(&recursive_doubling(2));
}

#[test]
fn a_promise_with_what_was_not_promised() {
    let program = |source: u32| {
        let mut b = alltoall(2, 1);
        for r in 0..2 {
            b.copy(at(1, r, r), at(0, r, r));
        }
        b.copy(at(1, 0, 1), at(0, 1, source));
        b.copy(at(1, 1, 0), at(0, 0, 1));
        b
    };
    let broken = broken(&program(1));
    assert_eq!(broken.place, at(1, 0, 1));
    assert_eq!(broken.holds, Holds::One(at(0, 1, 1)));
    assert_eq!((broken.missing, broken.foreign), (vec![block(0, 1, 0)], vec![at(0, 1, 1)]));
    passes(&program(0));
}

#[test]
fn a_promised_place_that_nothing_wrote() {
    let mut b = direct_alltoall(3);
    b.trace.moves.retain(|mv| mv.to.rank != RankId(1));
    let found = faults(&b.trace, Form::Disjoint);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].others, 5);
    let FaultKind::Promise(broken) = &found[0].kind else { panic!("{found:?}") };
    assert_eq!((broken.place, broken.last, &broken.holds), (at(1, 1, 0), None, &Holds::Nothing));
    assert_eq!(broken.missing, vec![block(0, 0, 1)]);
}

#[test]
fn two_clauses_for_one_place_must_both_hold() {
    let mut b = allreduce(2, 1).ensures(block(0, 0, 0), vec![block(0, 1, 0)]);
    b.step(|b| {
        b.add(at(0, 0, 0), at(0, 1, 0));
        b.add(at(0, 1, 0), at(0, 0, 0));
    });
    let broken = broken(&b);
    assert_eq!((broken.clause, broken.foreign), (2, vec![at(0, 0, 0)]));
    b.trace.promise_mut().clauses.pop();
    passes(&b);
}

#[test]
fn a_promise_that_only_overlap_breaks() {
    // Rank 0's own block is overwritten in `output` before `input` is read through its own name.
    let program = |late: bool| {
        let mut b = allgather(2, 1).buffer("tmp", BufferKind::Scratch, 1);
        b.copy(at(1, 1, 1), at(0, 1, 0));
        b.copy(at(1, 0, 1), at(0, 1, 0));
        if !late {
            b.copy(at(1, 1, 0), at(0, 0, 0));
        }
        b.copy(at(1, 0, 0), at(0, 1, 0));
        if late {
            b.copy(at(1, 1, 0), at(0, 0, 0));
        }
        b.copy(at(1, 0, 0), at(0, 0, 0));
        b
    };
    assert_eq!(faults(&program(true).trace, Form::Disjoint), vec![]);
    let found = faults(&program(true).trace, Form::Same);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].form, found[0].others), (Form::Same, 1));
    let FaultKind::Promise(broken) = &found[0].kind else { panic!("{found:?}") };
    assert_eq!((broken.place, &broken.holds), (at(1, 0, 0), &Holds::One(at(0, 1, 0))));
    passes(&ring_allgather(2));
}

#[test]
fn a_barrier_that_one_rank_may_leave_too_early() {
    let mut b = dissemination(4);
    b.trace.moves.pop();
    // The move gone was the second round's 3 → 1.
    let found = faults(&b.trace, Form::Disjoint);
    let expected = FaultKind::Unsynchronised {
        rank: RankId(1),
        missing: RankId(2),
        missing_count: 2,
        last: Some(MoveId(0)),
    };
    assert_eq!(found, vec![Fault { form: Form::Disjoint, kind: expected, others: 0 }]);
    passes(&dissemination(4));

    let found = faults(&barrier(3).trace, Form::Disjoint);
    let expected =
        FaultKind::Unsynchronised { rank: RankId(0), missing: RankId(1), missing_count: 2, last: None };
    assert_eq!(found, vec![Fault { form: Form::Disjoint, kind: expected, others: 2 }]);
}

#[test]
fn a_signal_tells_all_arrivals_known_so_far() {
    let program = |order: [u32; 2]| {
        let mut b = barrier(3);
        for r in order {
            b.copy(at(0, (r + 1) % 3, 0), at(0, r, 0));
        }
        b.copy(at(0, 0, 0), at(0, 2, 0));
        b.copy(at(0, 1, 0), at(0, 0, 0));
        b.copy(at(0, 2, 0), at(0, 1, 0));
        b
    };
    passes(&program([0, 1]));
    // In the other order rank 2 hears of 1, but not of 0, and so does rank 0: all that is left is 0 itself.
    let mut late = program([1, 0]);
    passes(&late);
    late.trace.moves.truncate(3);
    assert!(matches!(
        kinds(&late)[..],
        [FaultKind::Unsynchronised { rank: RankId(1), missing: RankId(2), .. }]
    ));
}

#[test]
fn faults_of_one_line_are_one_with_a_count() {
    let mut b = Builder::new(4, 1).buffer("data", BufferKind::Scratch, 1);
    for r in 0..3 {
        b.copy(at(0, r, 0), at(0, r + 1, 0));
    }
    assert_eq!(kinds(&b).len(), 3);
    for mv in &mut b.trace.moves {
        mv.origin.0 = 0;
    }
    let found = faults(&b.trace, Form::Disjoint);
    assert_eq!((found.len(), found[0].others), (1, 2));
}

#[test]
fn a_fault_does_not_cascade_and_reports_are_bounded() {
    let mut b = Builder::new(64, 1).buffer("tmp", BufferKind::Scratch, 2);
    b.copy(at(0, 0, 0), at(0, 0, 1));
    for r in 1..64 {
        b.copy(at(0, r, 0), at(0, r - 1, 0));
        b.add(at(0, r, 0), at(0, r - 1, 0));
    }
    assert_eq!(kinds(&b).len(), 1);
    for r in 0..64 {
        b.copy(at(0, r, 0), at(0, r, 1));
    }
    assert_eq!(kinds(&b).len(), 20);
}

/// Few moves of many cells are refused before memory is taken; the limit on moves raises this one.
#[test]
fn too_many_cells() {
    let program = |cells| {
        let mut b = allreduce(2, cells);
        for _ in 0..1000 {
            b.mv(MoveKind::Combine, at(0, 1, 0), &[at(0, 0, 0)], cells);
        }
        b.trace
    };
    let found = faults(&program(1_000_000), Form::Disjoint);
    let expected = FaultKind::TooLarge { count: 3_000_000_000, limit: 100_000_000, what: Counted::CellMoves };
    assert_eq!(found, vec![Fault { form: Form::Disjoint, kind: expected, others: 0 }]);
    let limits = |moves| Limits { moves, ..Limits::default() };
    assert!(build_within(&program(10), Form::Disjoint, &limits(6000)).is_ok());
    assert!(build_within(&program(10), Form::Disjoint, &limits(5999)).is_err());
}

/// The proof of a program with this limit on moves.
fn proved_within(builder: &Builder, moves: u64) -> Result<(), Vec<Fault>> {
    let graph = build(&builder.trace, Form::Disjoint).unwrap();
    promise_within(&builder.trace, &graph, &Limits { moves, ..Limits::default() }).map(|_| ())
}

fn too_many_visits(count: u64, limit: u64) -> Vec<Fault> {
    let kind = FaultKind::TooLarge { count, limit, what: Counted::Visits };
    vec![Fault { form: Form::Disjoint, kind, others: 0 }]
}

/// Ten ranks that each add ten operands in an order of their own make ten sums of nineteen values each.
#[test]
fn too_many_different_sums() {
    let mut b = allreduce(10, 1).buffer("sum", BufferKind::Scratch, 1);
    for r in 0..10 {
        let sources: Vec<_> = (0..10).map(|s| at(0, (r + s) % 10, 0)).collect();
        b.mv(MoveKind::Reduce, at(1, r, 0), &sources, 1);
    }
    for r in 0..10 {
        b.copy(at(0, r, 0), at(1, r, 0));
    }
    assert_eq!(proved_within(&b, 20), Ok(()));
    assert_eq!(proved_within(&b, 19), Err(too_many_visits(200, 190)));
    // A place found wrong by then is told all the same.
    b.copy(at(0, 3, 0), at(0, 1, 0));
    b.add(at(0, 3, 0), at(0, 1, 0));
    let found = proved_within(&b, 19).unwrap_err();
    assert!(matches!(&found[0].kind, FaultKind::Promise(broken) if broken.place == at(0, 3, 0)), "{found:?}");
    // A sum that all have is compared once.
    let mut star = allreduce(10, 1);
    for r in 1..10 {
        star.add(at(0, 0, 0), at(0, r, 0));
    }
    for r in 1..10 {
        star.copy(at(0, r, 0), at(0, 0, 0));
    }
    assert_eq!(proved_within(&star, 2), Ok(()));
}

/// What hears a rank that has heard of all is looked at no further: a star costs three values for each rank.
#[test]
fn signals_are_followed_once() {
    let star = |n| {
        let mut b = barrier(n);
        for r in 1..n {
            b.copy(at(0, 0, 0), at(0, r, 0));
        }
        for r in 1..n {
            b.copy(at(0, r, 0), at(0, 0, 0));
        }
        b
    };
    assert_eq!(proved_within(&star(100_000), 30_000), Ok(()));
    // Down a chain only the last rank hears of all: every rank's signal is followed anew.
    let n = 1000;
    let mut chains = barrier(n);
    for r in 1..n {
        chains.copy(at(0, r, 0), at(0, r - 1, 0));
    }
    let found = proved_within(&chains, 1000).unwrap_err();
    assert_eq!(found, too_many_visits(10_001, 10_000));
    let found = proved_within(&chains, 1_000_000).unwrap_err();
    let FaultKind::Unsynchronised { rank, missing, missing_count, .. } = found[0].kind else {
        panic!("{found:?}")
    };
    assert_eq!((rank, missing, missing_count, found[0].others), (RankId(0), RankId(1), n - 1, n - 2));
}

/// A sum that doubles a hundred thousand times is found wrong in time linear in the moves.
#[test]
fn deep_doubling() {
    let mut b = allreduce(2, 1);
    for _ in 0..200_000 {
        b.add(at(0, 0, 0), at(0, 1, 0));
        b.add(at(0, 1, 0), at(0, 0, 0));
    }
    let broken = broken(&b);
    assert_eq!((broken.place, broken.missing_count, broken.twice_count), (at(0, 0, 0), 0, 2));
}
