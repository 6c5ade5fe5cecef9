//! Programs that are symmetric but for one thing: never declared so. And relatives that are.

use rcc_compiler::symmetry::Why;

use crate::support::{Outcome, compare, program, request};

/// An allreduce of the given body.
fn allreduce(body: &str) -> String {
    format!("algorithm x on ranks[n] implements allreduce {{\n{body}\n}}\n")
}

/// What is found of a body at n ranks, compared with the whole by brute force.
fn found(body: &str, n: u32) -> Outcome {
    let program = program(&allreduce(body));
    compare(&program, &request(&program, "x", &[n]))
}

fn refused(body: &str) -> Why {
    let mut whys: Vec<Why> = (4..=7)
        .map(|n| match found(body, n) {
            Outcome::Refused(refusal) => refusal.why,
            other => panic!("at {n} ranks {other:?}: {body}"),
        })
        .collect();
    whys.pop().expect("several worlds")
}

const RING: &str = "chunks n
    for hop in 1..n, c in 0..n { data[c] @ (c + hop + 1) % n += data[c] @ (c + hop) % n }
    for hop in 0..n-1, c in 0..n { data[c] @ (c + hop + 1) % n = data[c] @ (c + hop) % n }";

#[test]
fn the_ring_itself_and_its_mirror_are_symmetric() {
    let mirror = "chunks n
        for hop in 1..n, c in 0..n { data[c] @ (c - hop - 1) % n += data[c] @ (c - hop) % n }
        for hop in 0..n-1, c in 0..n { data[c] @ (c - hop - 1) % n = data[c] @ (c - hop) % n }";
    let backwards = "chunks n
        for hop in 1..n, c in 0..n { data[n - 1 - c] @ (c + hop + 1) % n += data[n - 1 - c] @ (c + hop) % n }
        for hop in 0..n-1, c in 0..n { data[n - 1 - c] @ (c + hop + 1) % n = data[n - 1 - c] @ (c + hop) % n }";
    let halves = "chunks 2 * n
        for hop in 1..n, c in 0..2 * n { data[c] @ (c / 2 + hop + 1) % n += data[c] @ (c / 2 + hop) % n }
        for hop in 0..n-1, c in 0..2 * n { data[c] @ (c / 2 + hop + 1) % n = data[c] @ (c / 2 + hop) % n }";
    let runs = "chunks 2 * n
        for hop in 1..n, c in 0..n { data[2*c..2*c+2] @ (c + hop + 1) % n += data[2*c..2*c+2] @ (c + hop) % n }
        for hop in 0..n-1, c in 0..n { data[2*c..2*c+2] @ (c + hop + 1) % n = data[2*c..2*c+2] @ (c + hop) % n }";
    for body in [RING, mirror, backwards, halves, runs] {
        for n in 2..=9 {
            assert_eq!(found(body, n), Outcome::Symmetric { proved: true }, "{n} ranks: {body}");
        }
    }
}

#[test]
fn chunks_outermost_is_the_same_ring() {
    // The first variable in which two moves that touch one place differ is `hop`: c is not it.
    let body = "chunks n
        for c in 0..n, hop in 1..n { data[c] @ (c + hop + 1) % n += data[c] @ (c + hop) % n }
        for c in 0..n rev, hop in 0..n-1 { data[c] @ (c + hop + 1) % n = data[c] @ (c + hop) % n }";
    for n in 2..=9 {
        assert_eq!(found(body, n), Outcome::Symmetric { proved: true }, "{n}");
    }
}

#[test]
fn one_rank_that_does_otherwise() {
    let skips = RING.replace("c in 0..n {", "c in 0..n if (c + hop) % n != 2 {");
    assert_eq!(refused(&skips), Why::Filter);
    let chooses = "chunks n
        for hop in 1..n, c in 0..n {
            if c == 1 { data[c] @ (c + hop + 1) % n += data[c] @ (c + hop) % n }
            else { data[c] @ (c + hop + 1) % n += data[c] @ (c + hop) % n }
        }
        for hop in 0..n-1, c in 0..n { data[c] @ (c + hop + 1) % n = data[c] @ (c + hop) % n }";
    // The moves are the same, but that is more than is looked for.
    assert_eq!(refused(chooses), Why::Condition);
}

#[test]
fn one_chunk_that_goes_elsewhere() {
    let body = "chunks n
        for hop in 1..n, c in 0..n { data[c] @ (c + hop + 1) % n += data[c] @ (c + hop) % n }
        for hop in 0..n-1, c in 0..n { data[c ^ 1] @ (c + hop + 1) % n = data[c ^ 1] @ (c + hop) % n }";
    let why = |n: u32| match found(body, n) {
        Outcome::Refused(refusal) => refusal.why,
        other => panic!("{other:?}"),
    };
    assert_eq!(why(4), Why::Value);
    assert_eq!(why(6), Why::Value);
}

#[test]
fn a_rank_out_of_the_circle() {
    // Fails at the last rank only: the whole says so.
    let body = "for r in 0..n { data @ r + 1 += data @ r }";
    assert_eq!(refused(body), Why::Rank);
}

/// One after the other round a ring: rank 0's neighbour reads what rank 0 has not yet written; rank 1's does.
#[test]
fn an_order_that_begins_at_rank_0() {
    let body = "for r in 0..n { data @ (r + 1) % n += data @ r }";
    assert!(matches!(refused(body), Why::Order { .. }));
    let alike = "step for r in 0..n { data @ (r + 1) % n += data @ r }";
    for n in 2..=7 {
        assert!(matches!(found(alike, n), Outcome::Symmetric { .. }), "{n}");
    }
}

#[test]
fn additions_into_one_place_in_the_order_of_ranks() {
    let body = "scratch part
        for r in 0..n { part @ r = data @ r }
        for s in 1..n, r in 0..n { part @ r += data @ (r + s) % n }
        for r in 0..n { data @ r = part @ r }";
    for n in 2..=6 {
        assert_eq!(found(body, n), Outcome::Symmetric { proved: true }, "{n}");
    }
    // The same with the ranks themselves as the order: every rank adds up from rank 0 on.
    let by_rank = "scratch part
        for r in 0..n { part @ r = data @ r }
        for r in 0..n, s in 0..n if s != r { part @ r += data @ s }
        for r in 0..n { data @ r = part @ r }";
    for n in 3..=6 {
        assert!(matches!(found(by_rank, n), Outcome::Refused(_)), "{n}");
    }
    // In one step too, the order of several additions counts.
    let step = "scratch part
        for r in 0..n { part @ r = data @ r }
        step for r in 0..n, s in 0..n if s != r { part @ r += data @ s }
        for r in 0..n { data @ r = part @ r }";
    for n in 3..=6 {
        assert!(matches!(found(step, n), Outcome::Refused(_)), "{n}");
    }
}

#[test]
fn only_every_other_rank_is_alike() {
    // Pairs: rank r with r ^ 1 is no rotation by one, but one by two.
    let body = "require n % 2 == 0, \"pairs\"
        step for p in 0..n / 2, side in 0..2 { data @ 2 * p + (1 - side) += data @ 2 * p + side }";
    for n in [4, 6, 8] {
        assert_eq!(found(body, n), Outcome::Symmetric { proved: false }, "{n}");
    }
    let two = found(body, 2);
    assert!(matches!(two, Outcome::Refused(_) | Outcome::Symmetric { .. }), "{two:?}");
}

#[test]
fn wrong_programs_are_wrong_by_symmetry_too() {
    let short = RING.replace("hop in 0..n-1", "hop in 0..n-2");
    let twice = RING.replace("% n = data", "% n += data");
    let nothing = "scratch t\n for r in 0..n { data @ r = t @ (r + 1) % n }";
    let moved = "chunks n\n for c in 0..n, r in 0..n { data[c] @ r = data[(c + 1) % n] @ (r + 1) % n }";
    let clash = "step for r in 0..n, k in 1..3 { data @ (r + k) % n = data @ r }";
    for body in [&short, &twice, nothing, moved, clash] {
        for n in 4..=7 {
            match found(body, n) {
                Outcome::Symmetric { proved } => assert!(!proved, "{n}: {body}"),
                Outcome::Refused(_) => {}
                Outcome::NoTrace(why) => panic!("{n}: {why} {body}"),
            }
        }
    }
    assert_eq!(found(&short, 6), Outcome::Symmetric { proved: false });
    assert_eq!(found(&twice, 6), Outcome::Symmetric { proved: false });
}

#[test]
fn runs_are_followed_as_a_whole() {
    let body = "run std::allreduce::ring on * with data = data";
    assert_eq!(refused(body), Why::Run);
}

/// Numbers so large that one rank overflows and another does not.
#[test]
fn overflow_at_one_rank_only() {
    let body = "for r in 0..n { data @ (r + 9223372036854775804) % n += data @ r }";
    for n in 3..=6 {
        assert!(matches!(found(body, n), Outcome::Refused(_) | Outcome::NoTrace(_)), "{n}");
    }
}
