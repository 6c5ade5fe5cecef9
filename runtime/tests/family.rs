//! Communicators made of communicators, and calls that go on while their owner does something else: split, duplicate, shrink, groups,
//! calls that own their buffers, a thread that drives them. Every result is compared with the promise of its plan.

#![allow(clippy::disallowed_methods, reason = "ranks that come late, and a caller that computes meanwhile")]

extern crate plan as rcc_plan;

mod plans;
mod ranks;

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use plan::dtype::Op;
use plan::ids::{BufferId, RankId};
use plan::verify::VerifiedPlan;
use ranks::{LONG, SOON, checked, fill, next, options, shape, together, wrong};
use rcc_runtime::comm::{Communicator, Options, group};
use rcc_runtime::error::{Error, Kind};
use rcc_runtime::exec::Shape;
use rcc_runtime::exec::buffers::{Buffers, Memory};

fn ring(n: u32) -> Arc<VerifiedPlan> {
    Arc::new(plans::ring(n))
}

/// Memory filled for a call.
fn filled(comm: &mut Communicator, id: rcc_runtime::comm::PlanId, shape: Shape, seed: u64) -> Memory {
    let (plan, rank) = (Arc::clone(comm.plan(id)), comm.rank());
    let mut memory = comm.memory(id, shape).unwrap();
    fill(&plan, rank, shape, seed, &mut memory);
    memory
}

#[test]
fn members_of_a_colour_are_in_the_order_of_their_keys() {
    let places = together(6, &options(LONG), |mut comm| {
        let rank = comm.rank().0;
        // Colours 0: ranks 0, 2, 4, keys turned round; 1: ranks 1, 3 of equal keys; rank 5 has none.
        let color = (rank != 5).then_some(rank % 2);
        let key = if rank % 2 == 0 { -i64::from(rank) } else { 7 };
        let child = comm.split(color, key).unwrap();
        let mut child = child?;
        let plan = ring(child.world());
        let id = child.open(&plan).unwrap();
        for seed in 0..10 {
            checked(&mut child, id, shape(seed * 100), seed).unwrap();
        }
        child.barrier().unwrap();
        Some((child.rank().0, child.world()))
    });
    assert_eq!(places, [Some((2, 3)), Some((0, 2)), Some((1, 3)), Some((1, 2)), Some((0, 3)), None]);
}

/// Calls of parent and children in any order, also where each rank waits for another one first; and children outlive their parent.
#[test]
fn parents_and_children_side_by_side() {
    together(4, &options(LONG), |mut comm| {
        let rank = comm.rank();
        let whole = comm.open(&ring(4)).unwrap();
        let mut twin = comm.duplicate().unwrap();
        assert_eq!((twin.rank(), twin.world()), (rank, 4));
        let same = twin.open(&ring(4)).unwrap();
        let mut half = comm.split(Some(rank.0 / 2), 0).unwrap().unwrap();
        let pair = half.open(&ring(2)).unwrap();
        let mut grandchild = half.duplicate().unwrap();
        let deep = grandchild.open(&ring(2)).unwrap();
        for seed in 0..30 {
            let shape = shape(1 + seed * 37);
            let memories = [
                filled(&mut comm, whole, shape, seed),
                filled(&mut twin, same, shape, seed),
                filled(&mut half, pair, shape, seed),
                filled(&mut grandchild, deep, shape, seed),
            ];
            let [a, b, c, d] = memories;
            let mut handles = vec![
                (comm.start(whole, shape, a).unwrap(), 4, comm.rank()),
                (twin.start(same, shape, b).unwrap(), 4, twin.rank()),
                (half.start(pair, shape, c).unwrap(), 2, half.rank()),
                (grandchild.start(deep, shape, d).unwrap(), 2, grandchild.rank()),
            ];
            // Whoever waits for one of them lets the others go on, or this would wait for ever.
            handles.rotate_left((rank.0 as usize + seed as usize) % 4);
            for (handle, n, rank) in handles {
                let (how, memory) = handle.wait();
                how.unwrap();
                assert_eq!(wrong(&ring(n), rank, shape, seed, &memory), 0);
            }
        }
        drop(comm);
        drop(half);
        checked(&mut grandchild, deep, shape(99), 5).unwrap();
        checked(&mut twin, same, shape(99), 6).unwrap();
    });
}

/// What ends a child does not end its parent, nor the other way round.
#[test]
fn an_error_ends_only_its_own() {
    let kinds = together(3, &options(LONG), |mut comm| {
        let id = comm.open(&ring(3)).unwrap();
        let mut child = comm.duplicate().unwrap();
        let same = child.open(&ring(3)).unwrap();
        let op = if child.rank().0 == 1 { Op::Max } else { Op::Sum };
        let odd = Shape { op, ..shape(100) };
        // Who comes later may find it ended already.
        let mut call = || {
            let mut memory = child.memory(same, odd)?;
            child.call(same, odd, &mut memory.buffers())?;
            child.barrier()
        };
        let error = call().unwrap_err();
        assert!(child.failure().is_some() && comm.failure().is_none());
        checked(&mut comm, id, shape(100), 1).unwrap();
        comm.barrier().unwrap();
        comm.aborter().abort("for a test");
        assert_eq!(checked(&mut comm, id, shape(1), 1).unwrap_err().kind, Kind::Aborted);
        error.kind
    });
    assert_eq!(kinds, [Kind::Mismatch; 3]);
}

#[test]
fn members_with_other_options_are_told() {
    let errors = together(4, &options(LONG), |mut comm| {
        let registered = if comm.rank().0 == 3 { 4096 } else { 0 };
        let options = Options { registered, ..options(LONG) };
        let error = comm.split_with(Some(comm.rank().0 % 2), 0, &options).unwrap_err();
        // Nothing has ended.
        comm.barrier().unwrap();
        error
    });
    for error in errors {
        assert_eq!((error.kind, &error.culprits[..]), (Kind::Mismatch, &[1, 3][..]), "{error}");
    }
}

/// Ranks leave, also while others are in a call, and while they shrink; those that are left go on, again and again.
#[test]
fn survivors_go_on() {
    for gone in [&[2][..], &[0], &[0, 4], &[1, 2, 3]] {
        let worlds = together(5, &options(LONG), |mut comm| {
            let id = comm.open(&ring(5)).unwrap();
            checked(&mut comm, id, shape(50), 1).unwrap();
            comm.barrier().unwrap();
            if gone.contains(&comm.rank().0) {
                return None;
            }
            let error = checked(&mut comm, id, shape(50), 2).unwrap_err();
            assert_eq!(error.kind, Kind::PeerDied, "{error}");
            assert!(gone.contains(&error.culprits[0]));
            let mut left = comm.shrink().unwrap();
            let n = left.world();
            let plan = ring(n);
            let id = left.open(&plan).unwrap();
            checked(&mut left, id, shape(77), 3).unwrap();
            left.barrier().unwrap();
            // The last of them leaves as well.
            let (rank, last) = (left.rank().0, n - 1);
            if rank == last {
                return Some((rank, n, 0));
            }
            assert_eq!(left.barrier().unwrap_err().kind, Kind::PeerDied);
            let mut fewer = left.shrink().unwrap();
            let id = fewer.open(&ring(fewer.world())).unwrap();
            checked(&mut fewer, id, shape(20), 4).unwrap();
            fewer.barrier().unwrap();
            // Once more from the same one.
            let again = left.shrink().unwrap();
            assert_eq!((again.rank(), again.world()), (fewer.rank(), fewer.world()));
            Some((rank, n, fewer.world()))
        });
        let n = 5 - gone.len() as u32;
        let expected: Vec<_> = (0..n).map(|r| (r, n, if r == n - 1 { 0 } else { n - 1 })).collect();
        assert_eq!(worlds.into_iter().flatten().collect::<Vec<_>>(), expected);
    }
}

/// A rank that is there but does not come is named; it is not in the new communicator of the others.
#[test]
fn who_does_not_come_to_shrink_is_late() {
    let outcomes = together(3, &options(SOON), |mut comm| {
        comm.barrier().unwrap();
        if comm.rank().0 == 1 {
            std::thread::sleep(SOON * 3);
            return None;
        }
        let error = comm.shrink().err();
        Some(error.map(|error| (error.kind, error.culprits.clone())))
    });
    for outcome in outcomes.into_iter().flatten() {
        assert_eq!(outcome, Some((Kind::Late, vec![1])));
    }
}

/// Handles dropped, forgotten, waited for by other threads and in any order: buffers live until calls have ended, and are freed then.
#[test]
fn calls_that_own_their_buffers() {
    struct Mine {
        memory: Memory,
        freed: Arc<AtomicU32>,
    }
    impl Drop for Mine {
        fn drop(&mut self) {
            self.freed.fetch_add(1, Ordering::Relaxed);
        }
    }
    together(3, &Options { in_flight: 3, ..options(LONG) }, |mut comm| {
        let plan = ring(3);
        let id = comm.open(&plan).unwrap();
        let rank = comm.rank();
        let freed = Arc::new(AtomicU32::new(0));
        let mut kept = Vec::new();
        for seed in 0..60u64 {
            let shape = shape(1 + (seed * 971) % 5000);
            let mine = Mine { memory: filled(&mut comm, id, shape, seed), freed: Arc::clone(&freed) };
            let handle = comm.start_with(id, shape, mine, |mine| Ok(mine.memory.buffers())).unwrap();
            match (seed + u64::from(rank.0)) % 4 {
                0 => drop(handle),
                1 => std::mem::forget(handle),
                2 => {
                    let plan = &plan;
                    std::thread::scope(|scope| {
                        let waits = move || {
                            let (how, mine) = handle.wait();
                            how.unwrap();
                            assert_eq!(wrong(plan, rank, shape, seed, &mine.memory), 0);
                        };
                        scope.spawn(waits);
                    });
                }
                _ => kept.push((handle, shape, seed)),
            }
        }
        comm.barrier().unwrap();
        for (handle, shape, seed) in kept.into_iter().rev() {
            while !handle.test() {}
            assert!(handle.is_done());
            let (how, mine) = handle.wait();
            how.unwrap();
            assert_eq!(wrong(&plan, rank, shape, seed, &mine.memory), 0);
        }
        drop(comm);
        // All, but those forgotten: their handles keep them for ever.
        assert_eq!(freed.load(Ordering::Relaxed), 45);
    });
}

/// Who is dropped with calls under way waits for them; their handles tell later.
#[test]
fn a_communicator_is_dropped_with_calls_under_way() {
    together(3, &options(LONG), |mut comm| {
        let plan = ring(3);
        let (id, rank) = (comm.open(&plan).unwrap(), comm.rank());
        let memory = filled(&mut comm, id, shape(9000), 1);
        let handle = comm.start(id, shape(9000), memory).unwrap();
        drop(comm);
        let (how, memory) = handle.wait();
        how.unwrap();
        assert_eq!(wrong(&plan, rank, shape(9000), 1, &memory), 0);
    });
}

#[test]
fn what_is_refused_is_given_back() {
    let mut comm = Communicator::threads(1, &options(LONG)).unwrap().remove(0);
    let id = comm.open(&ring(1)).unwrap();
    let memory = comm.memory(id, shape(10)).unwrap();
    let refused = comm.start(id, shape(11), memory).unwrap_err();
    assert_eq!(refused.error.kind, Kind::Invalid);
    assert_eq!(refused.owned.bytes(BufferId(0)).len(), 40);
    let error = Error::new(Kind::Invalid, "lent nothing");
    let refused = comm.start_with(id, shape(1), 5, |_| Err(error)).unwrap_err();
    assert_eq!((refused.owned, &*refused.error.message), (5, "lent nothing"));
    checked(&mut comm, id, shape(10), 1).unwrap();
}

/// A call waited for by one thread while the owner makes others.
#[test]
fn another_thread_waits_while_the_owner_calls() {
    together(2, &Options { in_flight: 2, ..options(LONG) }, |mut comm| {
        let plan = ring(2);
        let (id, rank) = (comm.open(&plan).unwrap(), comm.rank());
        for seed in 0..50 {
            let memory = filled(&mut comm, id, shape(3000), seed);
            let handle = comm.start(id, shape(3000), memory).unwrap();
            std::thread::scope(|scope| {
                let waits = scope.spawn(|| handle.wait());
                for more in 0..10 {
                    checked(&mut comm, id, shape(200), more).unwrap();
                }
                let (how, memory) = waits.join().unwrap();
                how.unwrap();
                assert_eq!(wrong(&plan, rank, shape(3000), seed, &memory), 0);
            });
        }
    });
}

/// With a thread for it, calls end though nobody waits.
#[test]
fn calls_go_on_without_their_owner() {
    let ended = Mutex::new(Vec::new());
    together(3, &Options { progress: true, ..options(LONG) }, |mut comm| {
        let plan = ring(3);
        let (id, rank) = (comm.open(&plan).unwrap(), comm.rank());
        let mut child = comm.duplicate().unwrap();
        let same = child.open(&plan).unwrap();
        for seed in 0..20 {
            let memory = filled(&mut comm, id, shape(5000), seed);
            let other = filled(&mut child, same, shape(500), seed);
            let handles =
                [comm.start(id, shape(5000), memory).unwrap(), child.start(same, shape(500), other).unwrap()];
            let began = Instant::now();
            // Only looks.
            while !handles.iter().all(|handle| handle.is_done()) {
                assert!(began.elapsed() < LONG, "nobody drives them");
                std::thread::sleep(Duration::from_micros(50));
            }
            for (handle, elements) in handles.into_iter().zip([5000, 500]) {
                let (how, memory) = handle.wait();
                how.unwrap();
                assert_eq!(wrong(&plan, rank, shape(elements), seed, &memory), 0);
            }
        }
        ended.lock().unwrap().push(rank);
    });
    assert_eq!(ended.lock().unwrap().len(), 3);
    // It ends with the last communicator.
    assert!(!threads().iter().any(|name| name == "rcc-progress"), "{:?}", threads());
}

/// The names of this process's threads.
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .map(|name| name.trim().to_string())
        .collect()
}

/// Wakes a thread that runs a future.
struct Parked(std::thread::Thread, AtomicBool);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.1.store(true, Ordering::Release);
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let parked = Arc::new(Parked(std::thread::current(), AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&parked));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        while !parked.1.swap(false, Ordering::Acquire) {
            std::thread::park_timeout(LONG);
        }
    }
}

#[test]
fn handles_are_futures() {
    for progress in [false, true] {
        together(2, &Options { progress, ..options(LONG) }, |mut comm| {
            let plan = ring(2);
            let (id, rank) = (comm.open(&plan).unwrap(), comm.rank());
            for seed in 0..20 {
                let memory = filled(&mut comm, id, shape(4000), seed);
                let (how, memory) = block_on(comm.start(id, shape(4000), memory).unwrap());
                how.unwrap();
                assert_eq!(wrong(&plan, rank, shape(4000), seed, &memory), 0);
            }
        });
    }
}

/// More calls than lanes, of several plans, in one group.
#[test]
fn many_calls_launched_as_one() {
    together(3, &options(LONG), |mut comm| {
        let all = [ring(3), Arc::new(plans::fold_at_root(3, true))];
        let ids = [comm.open(&all[0]).unwrap(), comm.open(&all[1]).unwrap()];
        let rank = comm.rank();
        let mut state = 5;
        for round in 0..20 {
            let count = next(&mut state) % 9;
            let shapes: Vec<Shape> = (0..count).map(|_| shape(next(&mut state) % 3000)).collect();
            let mut memories: Vec<Memory> = (0..)
                .zip(&shapes)
                .map(|(i, &shape)| filled(&mut comm, ids[i as usize % 2], shape, round + i))
                .collect();
            comm.group(|group| {
                for (i, (memory, &shape)) in memories.iter_mut().zip(&shapes).enumerate() {
                    group.call(ids[i % 2], shape, memory.buffers());
                }
                Ok(())
            })
            .unwrap();
            for ((i, memory), &shape) in (0..).zip(&memories).zip(&shapes) {
                assert_eq!(wrong(&all[i as usize % 2], rank, shape, round + i, memory), 0);
            }
        }
        // One that is wrong: none is made.
        let mut right = filled(&mut comm, ids[0], shape(10), 1);
        let error = comm.group(|group| {
            group.call(ids[0], shape(10), right.buffers());
            group.call(ids[0], shape(10), Buffers::new(&all[0]));
            Ok(())
        });
        assert_eq!(error.unwrap_err().kind, Kind::Invalid);
        let error = comm.group(|group| {
            group.call_of(1, ids[0], shape(10), Buffers::new(&all[0]));
            Ok(())
        });
        assert_eq!(error.unwrap_err().kind, Kind::Invalid);
        checked(&mut comm, ids[0], shape(10), 1).unwrap();
    });
}

/// One thread that holds all ranks.
#[test]
fn a_thread_that_holds_several_ranks() {
    let plan = ring(4);
    let mut all = Communicator::one_thread(4, &options(LONG)).unwrap();
    let ids: Vec<_> = std::thread::scope(|scope| {
        let open = |comm| scope.spawn(|| Communicator::open(comm, &plan).unwrap());
        let threads: Vec<_> = all.iter_mut().map(open).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for seed in 0..20 {
        let mut memories: Vec<Memory> =
            all.iter_mut().zip(&ids).map(|(comm, &id)| filled(comm, id, shape(2000), seed)).collect();
        let mut each: Vec<&mut Communicator> = all.iter_mut().collect();
        group(&mut each, |group| {
            for (r, memory) in memories.iter_mut().enumerate() {
                group.call_of(r, ids[r], shape(2000), memory.buffers());
            }
            Ok(())
        })
        .unwrap();
        for (r, memory) in (0..).zip(&memories) {
            assert_eq!(wrong(&plan, RankId(r), shape(2000), seed, memory), 0);
        }
    }
    let mut strangers = Communicator::threads(1, &options(LONG)).unwrap();
    let error = group(&mut [&mut all[0], &mut strangers[0]], |_| Ok(())).unwrap_err();
    assert_eq!(error.kind, Kind::Invalid);
}

/// Many more calls than may be under way at once, by a thread that holds all ranks, of plans in any order: each waits for its turn, and none for a rank
/// that has not begun.
#[test]
fn a_thread_that_holds_several_ranks_queues_calls() {
    for in_flight in [1, 2] {
        let plans = [ring(3), Arc::new(plans::fold_at_root(3, true))];
        let soon = Options { late: SOON * 10, in_flight, ..options(LONG) };
        let mut all = Communicator::one_thread(3, &soon).unwrap();
        let mut twins: Vec<Communicator> = std::thread::scope(|scope| {
            let twin = |comm: &'_ mut Communicator| comm.duplicate().unwrap();
            let threads: Vec<_> = all.iter_mut().map(|comm| scope.spawn(move || twin(comm))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let opens = |all: &mut [Communicator]| -> Vec<[rcc_runtime::comm::PlanId; 2]> {
            let plans = &plans;
            std::thread::scope(|scope| {
                let open = |comm: &'_ mut Communicator| [0, 1].map(|at| comm.open(&plans[at]).unwrap());
                let threads: Vec<_> = all.iter_mut().map(|comm| scope.spawn(move || open(comm))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            })
        };
        let ids = [opens(&mut all), opens(&mut twins)];
        let mut state = 77 + u64::from(in_flight);
        for round in 0..6 {
            // (of the second communicator, plan, elements) of each call.
            let calls: Vec<(usize, usize, u64)> = (0..3 + next(&mut state) % 12)
                .map(|_| {
                    (next(&mut state) as usize % 2, next(&mut state) as usize % 2, next(&mut state) % 9000)
                })
                .collect();
            let mut memories = Vec::new();
            for rank in 0..3 {
                for (&(twin, plan, elements), seed) in calls.iter().zip(round..) {
                    let comm = if twin == 1 { &mut twins[rank] } else { &mut all[rank] };
                    memories.push((rank, filled(comm, ids[twin][rank][plan], shape(elements), seed)));
                }
            }
            let mut each: Vec<&mut Communicator> = all.iter_mut().chain(&mut twins).collect();
            group(&mut each, |group| {
                for (at, (rank, memory)) in memories.iter_mut().enumerate() {
                    let (twin, plan, elements) = calls[at % calls.len()];
                    group.call_of(
                        twin * 3 + *rank,
                        ids[twin][*rank][plan],
                        shape(elements),
                        memory.buffers(),
                    );
                }
                Ok(())
            })
            .unwrap();
            for (at, (rank, memory)) in memories.iter().enumerate() {
                let (at, rank) = (at % calls.len(), RankId(*rank as u32));
                let (_, plan, elements) = calls[at];
                assert_eq!(wrong(&plans[plan], rank, shape(elements), round + at as u64, memory), 0);
            }
        }
    }
}

/// Something is opened while calls are under way that a peer waits for first.
#[test]
fn calls_go_on_while_plans_are_opened() {
    together(2, &options(LONG), |mut comm| {
        let plan = ring(2);
        let (id, rank) = (comm.open(&plan).unwrap(), comm.rank());
        for seed in 0..10 {
            let memory = filled(&mut comm, id, shape(20_000), seed);
            let handle = comm.start(id, shape(20_000), memory).unwrap();
            let (how, memory) = if rank.0 == 0 {
                let ended = handle.wait();
                comm.open(&plan).unwrap();
                ended
            } else {
                comm.open(&plan).unwrap();
                handle.wait()
            };
            how.unwrap();
            assert_eq!(wrong(&plan, rank, shape(20_000), seed, &memory), 0);
        }
    });
}

/// Also where nobody is missing.
#[test]
fn who_has_ended_meets_nobody() {
    let mut alone = Communicator::threads(1, &options(LONG)).unwrap().remove(0);
    assert!(alone.aborter().abort("enough"));
    let split = alone.split(Some(0), 0).map(|_| ()).unwrap_err();
    let gathered = alone.gather("words", b"x").map(|_| ()).unwrap_err();
    assert_eq!([split.kind, gathered.kind], [Kind::Aborted; 2], "{split}, {gathered}");
}
