//! What is wrong is said at all ranks, with both sides, and nothing is written for who has got an error.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plan::dtype::{Dtype, Factor, Op};
use plan::ids::RankId;
use rcc_runtime::comm::Communicator;
use rcc_runtime::error::{Error, Kind};
use rcc_runtime::exec::Shape;
use rcc_runtime::small::{Buffers, Call, Collective};

use crate::plans;
use crate::ranks::together;
use crate::shared::{LONG, Trial, call, collectives, next, options};

const SOON: Duration = Duration::from_millis(400);

fn small(comm: &mut Communicator, call: Call, seed: u64) -> Result<(), Error> {
    Trial::new(call, comm.rank().0, comm.world(), seed, false).make(comm)
}

/// The usual call, and what the last rank does otherwise; all hear of it, soon, and of both sides.
#[test]
fn ranks_that_make_different_calls_are_told() {
    let root = |root| Collective::Broadcast { root: RankId(root) };
    let of = |collective| call(collective, 8, Dtype::F32, Op::Sum);
    let usual = of(Collective::Allreduce);
    let premul = |factor| call(Collective::Allreduce, 8, Dtype::F32, Op::PremulSum(Factor::new(factor)));
    let all = [
        (usual, Call { elements: 9, ..usual }, "count"),
        (usual, Call { elements: 0, ..usual }, "count"),
        (usual, Call { dtype: Dtype::I32, ..usual }, "element type"),
        (usual, Call { op: Op::Max, ..usual }, "operator"),
        (premul(2.0), premul(3.0), "operator"),
        (usual, of(Collective::Alltoall), "algorithm"),
        (usual, of(root(1)), "algorithm"),
        (usual, of(root(3)), "algorithm"),
        (of(root(0)), of(root(1)), "algorithm"),
        (of(root(0)), of(root(3)), "algorithm"),
        (of(root(0)), Call { elements: 9, ..of(root(0)) }, "count"),
        (of(root(0)), of(Collective::Reduce { root: RankId(0) }), "algorithm"),
        (Call::BARRIER, usual, "algorithm"),
    ];
    for world in [2, 4] {
        for (usual, other, what) in all {
            let roots = [usual, other].map(|call| call.collective.root());
            if roots.into_iter().flatten().any(|root| root.0 >= world) {
                continue;
            }
            let began = Instant::now();
            let errors = together(world, &options(LONG), |mut comm| {
                let first = call(Collective::Allgather, 3, Dtype::U8, Op::Sum);
                small(&mut comm, first, 1).unwrap();
                comm.barrier().unwrap();
                let mine = if comm.rank().0 == world - 1 { other } else { usual };
                // Who only sends gets through, and is told in a later call, or at a barrier.
                let calls = small(&mut comm, mine, 2).and_then(|()| small(&mut comm, mine, 3));
                // Where each is a root of its own, nobody hears of the other before that.
                let calls = calls.and_then(|()| small(&mut comm, first, 4));
                calls.and_then(|()| comm.barrier()).unwrap_err()
            });
            let last = format!("rank {}: ", world - 1);
            for error in &errors {
                assert_eq!(error.kind, Kind::Mismatch, "{what}: {error}");
                assert!(error.message.contains(what) && error.message.contains(&last), "{what}: {error}");
            }
            assert!(began.elapsed() < LONG / 4, "{what}");
        }
    }
}

#[test]
fn calls_in_another_order_and_calls_of_plans_are_told() {
    let ring = Arc::new(plans::ring(3));
    let shape = Shape { elements: 8, dtype: Dtype::F32, op: Op::Sum, in_place: false };
    let usual = call(Collective::Allreduce, 8, Dtype::F32, Op::Sum);
    let other = call(Collective::Allgather, 8, Dtype::F32, Op::Sum);
    for of_plan in [false, true] {
        let errors = together(3, &options(LONG), |mut comm| {
            let id = comm.open(&ring).unwrap();
            small(&mut comm, usual, 1).unwrap();
            let turned = comm.rank().0 == 1;
            let mut one = |first: bool| match (first, of_plan) {
                (true, _) => small(&mut comm, usual, 2),
                (false, false) => small(&mut comm, other, 2),
                (false, true) => {
                    let mut memory = comm.memory(id, shape)?;
                    comm.call(id, shape, &mut memory.buffers())
                }
            };
            let calls = one(!turned).and_then(|()| one(turned));
            calls.and_then(|()| comm.barrier()).unwrap_err()
        });
        for error in errors {
            assert_eq!(error.kind, Kind::Mismatch, "{error}");
            assert!(error.message.contains("call 2: small allreduce,"), "{error}");
            assert!(
                error.message.contains(if of_plan { "(plan " } else { "call 2: small allgather," }),
                "{error}"
            );
        }
    }
}

#[test]
fn nobody_waits_for_a_rank_that_has_left() {
    let usual = call(Collective::Allreduce, 8, Dtype::F32, Op::Sum);
    let errors = together(3, &options(LONG), |mut comm| {
        small(&mut comm, usual, 1).unwrap();
        comm.barrier().unwrap();
        (comm.rank().0 != 1).then(|| small(&mut comm, usual, 2).unwrap_err())
    });
    for error in errors.into_iter().flatten() {
        assert_eq!((error.kind, &error.culprits[..]), (Kind::PeerDied, &[1][..]), "{error}");
    }
}

#[test]
fn a_rank_that_does_not_come_is_late_for_all_and_for_good() {
    let usual = call(Collective::Allreduce, 8, Dtype::F32, Op::Sum);
    let errors = together(3, &options(SOON), |mut comm| {
        small(&mut comm, usual, 1).unwrap();
        comm.barrier().unwrap();
        if comm.rank().0 == 2 {
            std::thread::sleep(SOON * 4);
        }
        let error = small(&mut comm, usual, 2).unwrap_err();
        let again = small(&mut comm, usual, 3).unwrap_err();
        assert_eq!(error.kind, again.kind);
        assert_eq!(comm.barrier().unwrap_err().kind, error.kind);
        error
    });
    for error in errors {
        assert_eq!((error.kind, &error.culprits[..]), (Kind::Late, &[2][..]), "{error}");
        assert!(error.seen.is_some() && error.others.len() == 2, "{error}");
    }
}

/// A rank that has started several calls and does not go on: it never writes its part of the second.
#[test]
fn a_rank_that_has_entered_and_stands_still_is_named() {
    let usual = call(Collective::Allreduce, 8, Dtype::F32, Op::Sum);
    let errors = together(2, &options(SOON), |mut comm| {
        let rank = comm.rank().0;
        let mut memory = [[1; 32]; 2];
        let [first, second] = &mut memory;
        let ended = comm.scope(|scope| {
            // The first call of the one ends when it next looks for it, and the second one begins only then.
            std::thread::sleep(if rank == 0 { SOON / 2 } else { Duration::ZERO });
            let first = scope.start_small(&usual, Buffers::in_place(first))?;
            let second = scope.start_small(&usual, Buffers::in_place(second))?;
            std::thread::sleep(if rank == 0 { Duration::ZERO } else { SOON * 4 });
            scope.wait(first)?;
            scope.wait(second)
        });
        // What the one had written before it gave up was complete: the other may find its result.
        ended.and_then(|()| small(&mut comm, usual, 1)).unwrap_err()
    });
    for error in errors {
        assert_eq!((error.kind, &error.culprits[..]), (Kind::Stalled, &[1][..]), "{error}");
    }
}

/// After an error the memory of the call is the caller's again: peers that come later change nothing there.
#[test]
fn nothing_is_written_after_an_error() {
    let usual = call(Collective::Allgather, 8, Dtype::F32, Op::Sum);
    together(3, &options(SOON), |mut comm| {
        let late = comm.rank().0 == 2;
        if late {
            std::thread::sleep(SOON * 4);
        }
        let mut memory = vec![7; 96];
        let error = comm.small(&usual, &mut Buffers::in_place(&mut memory)).unwrap_err();
        assert_eq!(error.kind, Kind::Late);
        let before = memory.clone();
        std::thread::sleep(if late { Duration::ZERO } else { SOON * 6 });
        assert_eq!(memory, before);
    });
}

/// Ended at any time, from outside: each call gives the right result (which `Trial` checks) or an error, and what its caller does with the
/// memory of a failed call is seen nowhere.
#[test]
fn who_is_stopped_at_any_time_has_the_right_result_or_an_error() {
    for turn in 0..300 {
        let world = 2 + turn % 3;
        let ended = together(world, &options(LONG), |mut comm| {
            let (rank, aborter) = (comm.rank().0, comm.aborter());
            std::thread::scope(|scope| {
                if rank == turn % world {
                    scope.spawn(move || {
                        std::thread::sleep(Duration::from_micros(u64::from(turn) * 13));
                        aborter.abort("enough")
                    });
                }
                let mut state = u64::from(turn);
                let end = (0..).find_map(|seed| {
                    let collective = collectives(seed as u32 % world)[next(&mut state) as usize % 8];
                    let call = call(collective, 1 + next(&mut state) % 90, Dtype::I32, Op::Sum);
                    let mut trial = Trial::new(call, rank, world, seed, seed % 2 == 0);
                    let failed = trial.make(&mut comm).err();
                    if failed.is_some() {
                        trial.scribble();
                    }
                    failed
                });
                end.expect("it is stopped")
            })
        });
        assert!(ended.iter().all(|error| error.kind == Kind::Aborted), "{ended:?}");
    }
}

#[test]
fn what_is_wrong_with_arguments_ends_nothing() {
    together(2, &options(LONG), |mut comm| {
        let of = |collective, elements| call(collective, elements, Dtype::I32, Op::Sum);
        let usual = of(Collective::Allreduce, 2);
        let mut memory = vec![0; 8192];
        let mut kind = |call: Call, bytes: usize| {
            comm.small(&call, &mut Buffers::in_place(&mut memory[..bytes])).unwrap_err().kind
        };
        assert_eq!(kind(of(Collective::Allreduce, 1025), 4100), Kind::Unsupported);
        assert_eq!(kind(of(Collective::Allreduce, u64::MAX), 4100), Kind::Unsupported);
        assert_eq!(kind(of(Collective::Allgather, 513), 4104), Kind::Unsupported);
        assert_eq!(kind(of(Collective::Alltoall, 2), 16), Kind::Unsupported);
        assert_eq!(kind(of(Collective::Broadcast { root: RankId(2) }, 2), 8), Kind::Invalid);
        assert_eq!(kind(usual, 9), Kind::Invalid);
        assert_eq!(kind(Call { op: Op::PremulSum(Factor::new(0.5)), ..usual }, 8), Kind::Invalid);
        let (input, mut output) = ([0; 8], [0; 7]);
        let error = comm.small(&usual, &mut Buffers::apart(&input, &mut output)).unwrap_err();
        assert_eq!(error.kind, Kind::Invalid, "{error}");
        small(&mut comm, usual, 1).unwrap();
    });
}
