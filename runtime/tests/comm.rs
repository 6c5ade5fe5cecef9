//! Communicators as a library uses them: many calls of many plans, several at once, and what is said when ranks disagree, stay away
//! or leave. Every result is compared with the promise of its plan.

#![allow(clippy::disallowed_methods, reason = "a rank that comes too late")]

extern crate plan as rcc_plan;

mod plans;
mod ranks;

use plan::dtype::{Dtype, Op};
use plan::ids::{BufferId, RankId};
use plan::verify::{Limits, VerifiedPlan, verify};
use ranks::{LONG, SOON, checked, fill, next, options, shape, together, wrong};
use rcc_runtime::bootstrap::reserve::Reserved;
use rcc_runtime::bootstrap::{Secret, Settings};
use rcc_runtime::comm::{Communicator, Options, PlanId};
use rcc_runtime::error::{Error, Kind};
use rcc_runtime::exec::Shape;
use rcc_runtime::exec::buffers::{Buffers, Memory};
use rcc_runtime::memory::hall::{self, Hall};
use rcc_runtime::watch;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[test]
fn many_calls_of_many_plans_and_shapes() {
    let all: Vec<Arc<VerifiedPlan>> =
        [plans::ring(4), plans::fold_at_root(4, true), plans::fold_at_root(4, false)].map(Arc::new).into();
    let made = together(4, &options(LONG), |mut comm| {
        let ids: Vec<PlanId> = all.iter().map(|plan| comm.open(plan).unwrap()).collect();
        let mut state = 7;
        for seed in 0..300 {
            let at = next(&mut state) as usize % ids.len();
            let dtype = [Dtype::F32, Dtype::F16, Dtype::I64][next(&mut state) as usize % 3];
            let op = [Op::Sum, Op::Max, Op::Avg][next(&mut state) as usize % 3];
            // More shapes than a rank remembers, of no and of several slices.
            let elements = [0, 1, 5, 64, 301, 5000, 40_000][next(&mut state) as usize % 7];
            let in_place = all[at].header.forms.same && next(&mut state) % 2 == 1;
            let op = if all[at].header.serves(op) { op } else { Op::Sum };
            checked(&mut comm, ids[at], Shape { elements, dtype, op, in_place }, seed).unwrap();
        }
        comm.barrier().unwrap();
        comm.rank().0
    });
    assert_eq!(made, [0, 1, 2, 3]);
}

/// More at once than a plan has lanes, of two plans, waited for in an order of their own.
#[test]
fn several_calls_at_once() {
    let (ring, fold) = (Arc::new(plans::ring(3)), Arc::new(plans::fold_at_root(3, true)));
    for in_flight in [1, 2, 3] {
        together(3, &Options { in_flight, ..options(LONG) }, |mut comm| {
            let ids = [comm.open(&ring).unwrap(), comm.open(&fold).unwrap()];
            let (rank, plans) = (comm.rank(), [&ring, &fold]);
            let shapes = [shape(7000), shape(3), shape(50_000), shape(0), shape(129)];
            let mut memories: Vec<Memory> = (0..10)
                .map(|i| {
                    let mut memory = comm.memory(ids[i % 2], shapes[i / 2]).unwrap();
                    fill(plans[i % 2], rank, shapes[i / 2], i as u64, &mut memory);
                    memory
                })
                .collect();
            comm.scope(|scope| {
                let mut pending = Vec::new();
                for (i, memory) in memories.iter_mut().enumerate() {
                    pending.push(scope.start(ids[i % 2], shapes[i / 2], memory.buffers())?);
                }
                // Each rank waits for them in another order, and for some not at all.
                let turn = rank.0 as usize;
                pending.rotate_left(turn * 3);
                while !scope.test(&pending[0]) {}
                for one in pending.into_iter().skip(turn) {
                    scope.wait(one)?;
                }
                Ok(())
            })
            .unwrap();
            for (i, memory) in memories.iter().enumerate() {
                assert_eq!(wrong(plans[i % 2], rank, shapes[i / 2], i as u64, memory), 0, "call {i}");
            }
        });
    }
}

#[test]
fn what_is_wrong_with_arguments_ends_nothing() {
    let (ring, other) = (Arc::new(plans::ring(3)), Arc::new(plans::ring(4)));
    together(3, &options(LONG), |mut comm| {
        let id = comm.open(&ring).unwrap();
        let error = comm.open(&other).unwrap_err();
        assert_eq!(error.kind, Kind::Invalid, "{error}");
        let (input, mut output) = (vec![0; 40], vec![0; 36]);
        let mut buffers = Buffers::new(&ring).send(BufferId(0), &input).recv(BufferId(1), &mut output);
        let error = comm.call(id, shape(10), &mut buffers).unwrap_err();
        assert_eq!(error.kind, Kind::Invalid, "{error}");
        checked(&mut comm, id, shape(10), 1).unwrap();
    });
}

#[test]
fn ranks_that_open_different_plans_are_told() {
    let (ring, fold) = (Arc::new(plans::ring(3)), Arc::new(plans::fold_at_root(3, true)));
    let errors = together(3, &options(LONG), |mut comm| {
        let plan = if comm.rank().0 == 2 { &fold } else { &ring };
        comm.open(plan).unwrap_err()
    });
    for error in errors {
        assert_eq!((error.kind, &error.culprits[..]), (Kind::Mismatch, &[0, 2][..]));
        assert!(error.message.contains("ring") && error.message.contains("fold"), "{error}");
    }
}

/// What the last rank does otherwise in its second call; all hear of it, soon, and of both sides.
#[test]
fn ranks_that_make_different_calls_are_told() {
    let (ring, fold) = (Arc::new(plans::ring(4)), Arc::new(plans::fold_at_root(4, true)));
    let usual = shape(1000);
    let others = [
        (0, Shape { elements: 1001, ..usual }, "count"),
        (0, Shape { dtype: Dtype::I32, ..usual }, "element type"),
        (0, Shape { op: Op::Max, ..usual }, "operator"),
        (1, usual, "algorithm"),
    ];
    for (which, other, what) in others {
        let errors = together(4, &options(LONG), |mut comm| {
            let ids = [comm.open(&ring).unwrap(), comm.open(&fold).unwrap()];
            checked(&mut comm, ids[0], usual, 1).unwrap();
            // What ends the communicator also ends a call that some rank has yet to leave.
            comm.barrier().unwrap();
            let (which, shape) = if comm.rank().0 == 3 { (which, other) } else { (0, usual) };
            let mut call = || {
                let mut memory = comm.memory(ids[which], shape)?;
                comm.call(ids[which], shape, &mut memory.buffers())
            };
            // Who only sends gets through, and is told in a later call, or at a barrier.
            let calls = call().and_then(|()| call());
            calls.and_then(|()| comm.barrier()).unwrap_err()
        });
        for error in &errors {
            assert_eq!(error.kind, Kind::Mismatch, "{what}: {error}");
            assert!(error.message.contains(what) && error.message.contains("rank 3: "), "{what}: {error}");
        }
    }
}

#[test]
fn calls_in_another_order_are_told() {
    let (ring, fold) = (Arc::new(plans::ring(3)), Arc::new(plans::fold_at_root(3, false)));
    let errors = together(3, &options(LONG), |mut comm| {
        let ids = [comm.open(&ring).unwrap(), comm.open(&fold).unwrap()];
        let turned = usize::from(comm.rank().0 == 1);
        let order = [ids[turned], ids[1 - turned]];
        let calls = order.into_iter().try_for_each(|id| checked(&mut comm, id, shape(100), 5));
        calls.and_then(|()| comm.barrier()).unwrap_err()
    });
    assert!(errors.iter().all(|error| error.kind == Kind::Mismatch), "{errors:?}");
}

#[test]
fn nobody_waits_for_a_rank_that_has_left() {
    let ring = Arc::new(plans::ring(3));
    let errors = together(3, &options(LONG), |mut comm| {
        let id = comm.open(&ring).unwrap();
        checked(&mut comm, id, shape(10), 1).unwrap();
        comm.barrier().unwrap();
        (comm.rank().0 != 1).then(|| checked(&mut comm, id, shape(10), 2).unwrap_err())
    });
    for error in errors.into_iter().flatten() {
        assert_eq!((error.kind, &error.culprits[..]), (Kind::PeerDied, &[1][..]), "{error}");
    }
    let errors =
        together(3, &options(LONG), |mut comm| (comm.rank().0 != 1).then(|| comm.barrier().unwrap_err()));
    for error in errors.into_iter().flatten() {
        assert_eq!((error.kind, &error.culprits[..]), (Kind::PeerDied, &[1][..]), "{error}");
    }
}

#[test]
fn a_rank_that_does_not_come_is_late_for_all_and_for_good() {
    let ring = Arc::new(plans::ring(3));
    let errors = together(3, &options(SOON), |mut comm| {
        let id = comm.open(&ring).unwrap();
        checked(&mut comm, id, shape(10), 1).unwrap();
        comm.barrier().unwrap();
        if comm.rank().0 == 2 {
            std::thread::sleep(SOON * 4);
        }
        let error = checked(&mut comm, id, shape(10), 2).unwrap_err();
        let again = checked(&mut comm, id, shape(10), 3).unwrap_err();
        assert_eq!(error.kind, again.kind);
        assert_eq!(comm.barrier().unwrap_err().kind, error.kind);
        error
    });
    for error in errors {
        assert_eq!((error.kind, &error.culprits[..]), (Kind::Late, &[2][..]), "{error}");
    }
}

/// Ranks that find each other by an address and a secret, as processes of any launcher do; what they share, they share by descriptors.
#[test]
fn ranks_that_meet_over_a_socket() {
    let ring = Arc::new(plans::ring(4));
    let place = Reserved::new().unwrap();
    let secret = Secret::random().unwrap();
    std::thread::scope(|scope| {
        for rank in 0..4 {
            let settings = Settings::new(rank, 4, place.address(), secret.clone()).unwrap();
            let ring = &ring;
            scope.spawn(move || {
                let mut comm = Communicator::connect(&settings, options(LONG)).unwrap();
                assert_eq!((comm.rank().0, comm.world()), (rank, 4));
                let id = comm.open(ring).unwrap();
                for seed in 0..20 {
                    checked(&mut comm, id, shape(seed * 97), seed).unwrap();
                }
                comm.barrier().unwrap();
            });
        }
    });
}

#[test]
fn ranks_with_other_options_are_told() {
    let place = Reserved::new().unwrap();
    let secret = Secret::random().unwrap();
    let errors: Vec<Error> = std::thread::scope(|scope| {
        let one = |rank: u32| {
            let settings = Settings::new(rank, 2, place.address(), secret.clone()).unwrap();
            let registered = u64::from(rank) * 4096;
            scope.spawn(move || {
                Communicator::connect(&settings, Options { registered, ..options(LONG) }).unwrap_err()
            })
        };
        let threads = [0, 1].map(one);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for error in errors {
        assert_eq!((error.kind, &error.culprits[..]), (Kind::Mismatch, &[0, 1][..]), "{error}");
    }
}

/// Whose process ended when it had done its part is not missed, whoever still waits for others; one that died before is.
#[test]
fn a_process_that_ended_after_its_part_is_not_missed() {
    let (hall, _fd) = Hall::create(hall::Shape::new(3, |_| 0).unwrap()).unwrap();
    let mut child = std::process::Command::new("/bin/true").spawn().unwrap();
    child.wait().unwrap();
    let words = hall.rank(RankId(1));
    words.pid.store(child.id(), Ordering::Relaxed);
    words.entered.store(5, Ordering::Relaxed);
    words.left.store(4, Ordering::Relaxed);
    assert_eq!(watch::gone(&hall, RankId(0), 5), Some(RankId(1)));
    words.left.store(5, Ordering::Relaxed);
    assert_eq!(watch::gone(&hall, RankId(0), 5), None);
    assert_eq!(watch::gone(&hall, RankId(0), 6), Some(RankId(1)));
    assert_eq!(watch::gone(&hall, RankId(1), 6), None);
}

#[test]
fn a_plan_of_another_communicator_is_refused() {
    let ring = Arc::new(plans::ring(1));
    let mut all = Communicator::threads(1, &options(LONG)).unwrap();
    let id = all[0].open(&ring).unwrap();
    let mut other = Communicator::threads(1, &options(LONG)).unwrap();
    assert_eq!(other[0].memory(id, shape(3)).unwrap_err().kind, Kind::Invalid);
    assert_eq!(other[0].call(id, shape(3), &mut Buffers::new(&ring)).unwrap_err().kind, Kind::Invalid);
    checked(&mut all[0], id, shape(3), 1).unwrap();
    assert!(Communicator::threads(0, &options(LONG)).unwrap().is_empty());
}

/// A failed call of a scope ends the others, and the scope says so.
#[test]
fn a_scope_tells_of_what_was_not_waited_for() {
    let ring = Arc::new(plans::ring(2));
    let errors = together(2, &options(LONG), |mut comm| {
        let id = comm.open(&ring).unwrap();
        let mut memories = [10, 20].map(|elements| comm.memory(id, shape(elements)).unwrap());
        let turned = comm.rank().0 == 1;
        comm.scope(|scope| {
            for (memory, elements) in memories.iter_mut().zip([10, 20]) {
                let op = if turned && elements == 20 { Op::Max } else { Op::Sum };
                let _ = scope.start(id, Shape { op, ..shape(elements) }, memory.buffers())?;
            }
            Ok(())
        })
        .unwrap_err()
    });
    assert!(errors.iter().all(|error| error.kind == Kind::Mismatch), "{errors:?}");
}

/// Ranks that reach into each other's registered memory, several calls at once.
#[test]
fn registered_memory() {
    let pull = plans::direct::pull_allgather(3, false);
    let pull = Arc::new(verify(pull, &Limits::default()).unwrap_or_else(|e| panic!("{e:?}")));
    together(3, &Options { in_flight: 2, ..options(LONG) }, |mut comm| {
        let id = comm.open(&pull).unwrap();
        let rank = comm.rank();
        for seed in 0..20 {
            let shapes = [shape(300), shape(4000)];
            let mut memories = shapes.map(|shape| comm.memory(id, shape).unwrap());
            for (memory, shape) in memories.iter_mut().zip(shapes) {
                fill(&pull, rank, shape, seed, memory);
            }
            comm.scope(|scope| {
                for (memory, shape) in memories.iter_mut().zip(shapes) {
                    let _ = scope.start(id, shape, memory.buffers())?;
                }
                Ok(())
            })
            .unwrap();
            for (memory, shape) in memories.iter().zip(shapes) {
                assert_eq!(wrong(&pull, rank, shape, seed, memory), 0, "{seed}");
            }
            // Registered memory is a stack.
            let [first, second] = memories;
            drop(second);
            drop(first);
        }
    });
}

/// All have entered, and one does not go on: that is another error than one that never came, and has a deadline of its own.
#[test]
fn a_rank_that_stands_still_within_a_call_is_told_from_one_that_is_late() {
    let ring = Arc::new(plans::ring(3));
    let still = Options { stalled: SOON, late: LONG, ..options(LONG) };
    let late = Options { stalled: LONG, late: SOON, ..options(LONG) };
    for (options, enters) in [(still, true), (late, false)] {
        let errors = together(3, &options, |mut comm| {
            let id = comm.open(&ring).unwrap();
            comm.barrier().unwrap();
            let mut memory = comm.memory(id, shape(1000)).unwrap();
            let odd = comm.rank().0 == 2;
            let rest = || std::thread::sleep(if odd { SOON * 4 } else { Duration::ZERO });
            comm.scope(|scope| {
                if !enters {
                    rest();
                }
                let pending = scope.start(id, shape(1000), memory.buffers())?;
                rest();
                scope.wait(pending)
            })
            .unwrap_err()
        });
        let kind = if enters { Kind::Stalled } else { Kind::Late };
        for error in errors {
            assert_eq!((error.kind, &error.culprits[..]), (kind, &[2][..]), "{error}");
        }
    }
}

/// One rank does something that is no call where the others call, or the other way round.
#[test]
fn ranks_that_do_other_things_than_calls_are_told() {
    let ring = Arc::new(plans::ring(3));
    type Deed = fn(&mut Communicator, &Arc<VerifiedPlan>, PlanId) -> Result<(), Error>;
    let call: Deed = |comm, _, id| checked(comm, id, shape(10), 3);
    let barrier: Deed = |comm, _, _| comm.barrier();
    let open: Deed = |comm, plan, _| comm.open(plan).map(|_| ());
    let split: Deed = |comm, _, _| comm.split(Some(0), 0).map(|_| ());
    let gather: Deed = |comm, _, _| comm.gather("numbers", &[1]).map(|_| ());
    let deeds = [call, barrier, open, split, gather];
    for odd in 0..deeds.len() {
        for usual in (0..deeds.len()).filter(|&usual| usual != odd) {
            let errors = together(3, &options(LONG), |mut comm| {
                let id = comm.open(&ring).unwrap();
                comm.barrier().unwrap();
                let deed = deeds[if comm.rank().0 == 1 { odd } else { usual }];
                // Calls of three ranks need all of them; so does the rest.
                deed(&mut comm, &ring, id).and_then(|()| comm.barrier()).unwrap_err()
            });
            for error in errors {
                assert_eq!(error.kind, Kind::Mismatch, "{odd} among {usual}: {error}");
            }
        }
    }
}
