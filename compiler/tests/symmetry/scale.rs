//! Worlds that cannot be followed as a whole: what is done grows with one rank's moves, not with all.

use plan::ids::RankId;
use rcc_compiler::graph::Form;
use rcc_compiler::limits::Limits;
use rcc_compiler::symmetry::{self, Quotient};

use crate::support::{program, request};

fn quotient(name: &str, shape: &[u32]) -> Quotient {
    let program = program("");
    match symmetry::quotient(&program, &request(&program, name, shape), &Limits::default()) {
        Ok(quotient) => quotient,
        Err(failure) => panic!("{name}: {failure:?}"),
    }
}

/// 537 million moves, within limits that allow 20 million.
#[test]
fn a_ring_of_16384_ranks() {
    let n = 16_384;
    let quotient = quotient("std::allreduce::ring", &[n]);
    assert_eq!(quotient.action.step, 1);
    assert_eq!(quotient.trace.moves.len() as u32, 2 * (n - 1));
    assert_eq!(quotient.moves, 2 * u64::from(n - 1) * u64::from(n));
    let proof = symmetry::prove(&quotient, &Limits::default()).expect("the ring is right");
    assert_eq!(proof.same_bits, Some(true));
    // By the definition of the ring: at hop h rank 7 takes chunk 7 - h - 1 from rank 6 and sends chunk 7 - h to rank 8.
    let moves = symmetry::of_rank(&quotient, RankId(7));
    assert_eq!(moves.len() as u32, 4 * (n - 1));
    for half in [0, 1] {
        for hop in 0..n - 1 {
            let at = (half * (n - 1) + hop) as usize * 2;
            let mut pair: Vec<_> =
                moves[at..at + 2].iter().map(|mv| (mv.sources[0].rank.0, mv.to.rank.0, mv.to.cell)).collect();
            pair.sort_unstable();
            let hop = hop + 1 - half;
            assert_eq!(pair, [(6, 7, (7 + n - hop - 1) % n), (7, 8, (7 + n - hop) % n)]);
        }
    }
}

#[test]
fn other_large_worlds() {
    for (name, shape, forms) in [
        ("std::allgather::ring", vec![4_096], 2),
        ("std::reducescatter::ring", vec![4_096], 2),
        ("std::allgather::bruck", vec![4_000], 2),
        ("std::alltoall::bruck", vec![1_000], 1),
        ("std::allreduce::two_shot", vec![4_096], 1),
        ("std::allreduce::one_shot", vec![16_384], 1),
        ("std::alltoall::direct", vec![10_000], 1),
        ("std::barrier::dissemination", vec![16_384], 1),
        ("std::alltoall::two_level", vec![128, 8], 1),
    ] {
        let quotient = quotient(name, &shape);
        let proof = match symmetry::prove(&quotient, &Limits::default()) {
            Ok(proof) => proof,
            Err(faults) => panic!("{name}: {faults:?}"),
        };
        assert_eq!(proof.forms.len(), forms, "{name}");
        assert_eq!(proof.forms[0], Form::Disjoint);
    }
}

/// A fault of a world that cannot be followed as a whole is found at the standing rank.
#[test]
fn a_wrong_ring_of_16384_ranks() {
    let program = program(
        "algorithm x on ranks[n] implements allreduce {
            chunks n
            for hop in 1..n, c in 0..n { data[c] @ (c + hop + 1) % n += data[c] @ (c + hop) % n }
            for hop in 0..n-2, c in 0..n { data[c] @ (c + hop + 1) % n = data[c] @ (c + hop) % n }
        }",
    );
    let request = request(&program, "x", &[16_384]);
    let quotient = symmetry::quotient(&program, &request, &Limits::default()).expect("symmetric");
    let faults = symmetry::prove(&quotient, &Limits::default()).expect_err("the last hop is missing");
    assert_eq!(faults[0].kind.code(), "coll::promise");
}

/// More moves of one rank than there may be are refused before any is made.
#[test]
fn too_many_moves_of_one_rank_take_no_memory() {
    let program = program(
        "algorithm x on ranks[n] implements allreduce {
            step for k in 0..1000, j in 0..100000, r in 0..n { data @ (r + 1) % n += data @ r }
        }",
    );
    let limits = Limits { turns: 1 << 40, ..Limits::default() };
    match symmetry::quotient(&program, &request(&program, "x", &[64]), &limits) {
        Err(symmetry::Failure::Wrong(error)) => {
            assert!(
                format!("{error:?}").contains("TooManyMoves { limit: 20000000, wanted: 100000000 }"),
                "{error:?}"
            );
        }
        other => panic!("{other:?}"),
    }
}
