//! Calls in which ranks reach into each other's memory: bits as the oracle has them, memory that must be registered, and
//! what is left when a call fails.
//!
//! Also to be run under a race detector: who writes to its memory after a failed call would race with a peer that
//! still reaches into it.

#![allow(clippy::disallowed_methods, reason = "ends runs after some time, and looks again a little later")]

extern crate plan as rcc_plan;

mod plans;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use plan::dtype::{Dtype, Op};
use plan::ids::{BufferId, RankId};
use plan::interpret::scheduler::Random;
use plan::interpret::{Call, interpret};
use plan::plan::Role;
use plan::reference;
use plan::verify::VerifiedPlan;
use rcc_runtime::error::{Error, Kind};
use rcc_runtime::exec::buffers::{Buffers, Memory};
use rcc_runtime::exec::{Patience, Rank, Shape};
use rcc_runtime::memory::segment::{self, Segment};
use rcc_runtime::wait::Policy;

const SLOT_BYTES: u32 = 256;
const REGION: u64 = 1 << 20;

fn shape(elements: u64) -> Shape {
    Shape { elements, dtype: Dtype::F32, op: Op::Sum, in_place: false }
}

fn segment_for(plan: &VerifiedPlan) -> Segment {
    let shape = segment::Shape::new(plan, plan.header.k_min.max(2), SLOT_BYTES).unwrap();
    Segment::create(shape.with_registered(|_| REGION).unwrap()).unwrap().0
}

/// For how long a rank waits that will wait in vain; and one that will not, however busy the machine is.
const SOON: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(20);

fn connect<'s>(plan: &'s VerifiedPlan, segment: &'s Segment, rank: u32, deadline: Duration) -> Rank<'s> {
    let patience = Patience { policy: Policy::of(8, 2), stalled: deadline, late: deadline };
    Rank::connect(plan, segment, SLOT_BYTES, RankId(rank), patience).unwrap()
}

/// Runs `part` for each of `ranks`, as threads on one segment.
fn together<T: Send>(
    plan: &VerifiedPlan,
    segment: &Segment,
    ranks: &[u32],
    part: impl Fn(Rank<'_>, RankId) -> T + Sync,
) -> Vec<T> {
    together_for(LONG, plan, segment, ranks, part)
}

/// The same, with this deadline.
fn together_for<T: Send>(
    deadline: Duration,
    plan: &VerifiedPlan,
    segment: &Segment,
    ranks: &[u32],
    part: impl Fn(Rank<'_>, RankId) -> T + Sync,
) -> Vec<T> {
    let part = &part;
    std::thread::scope(|scope| {
        let threads: Vec<_> = ranks
            .iter()
            .map(|&rank| scope.spawn(move || part(connect(plan, segment, rank, deadline), RankId(rank))))
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

fn all(plan: &VerifiedPlan) -> Vec<u32> {
    (0..plan.header.ranks).collect()
}

fn here(plan: &VerifiedPlan, id: RankId, role: Role) -> Vec<BufferId> {
    let buffers = plan.buffers.iter().enumerate();
    buffers.filter(|(_, b)| b.role == role && b.at.holds(id)).map(|(b, _)| BufferId::new(b)).collect()
}

/// The buffers of which something is promised to a rank.
fn promised(plan: &VerifiedPlan, id: RankId) -> Vec<BufferId> {
    let mut buffers = here(plan, id, Role::Recv);
    buffers.retain(|&b| plan.promise.clauses.iter().any(|c| (c.place.buffer, c.place.rank) == (b, id)));
    buffers
}

fn fill(plan: &VerifiedPlan, id: RankId, shape: Shape, seed: u64, memory: &mut Memory) {
    for b in here(plan, id, Role::Send) {
        reference::fill(shape.dtype, shape.op, seed, id, b, memory.bytes_mut(b));
    }
}

/// What the oracle says that buffer `b` of `rank` holds in the end.
fn oracle(plan: &VerifiedPlan, shape: Shape, seed: u64) -> plan::interpret::Outcome {
    let Shape { elements, dtype, op, in_place } = shape;
    let slots = plan.header.k_min.max(1);
    let call = Call { slot_bytes: SLOT_BYTES, slots, in_place, ..Call::new(elements, dtype, op) };
    let mut input = |b: BufferId, rank: RankId| {
        let bytes = elements as usize * dtype.size() as usize * plan.buffers[b.index()].blocks as usize;
        let mut entry = vec![0; bytes];
        reference::fill(dtype, op, seed, rank, b, &mut entry);
        entry
    };
    interpret(plan, &call, &mut input, &mut Random::new(seed)).unwrap()
}

#[test]
fn bits_are_those_of_the_oracle() {
    for n in [2, 4] {
        for plan in plans::all_direct(n).into_iter().chain(plans::all_blocks(n)) {
            for (turn, elements) in [0, 1, 3, 101, 1009].into_iter().enumerate() {
                let dtype = [Dtype::F32, Dtype::Bf16, Dtype::I64, Dtype::F16, Dtype::U8][turn];
                let op = if plan.header.serves_post && turn % 2 == 0 { Op::Avg } else { Op::Sum };
                for in_place in [false, true] {
                    let forms = plan.header.forms;
                    if !if in_place { forms.same } else { forms.disjoint } {
                        continue;
                    }
                    let shape = Shape { elements, dtype, op, in_place };
                    let expected = oracle(&plan, shape, 3);
                    let segment = segment_for(&plan);
                    together(&plan, &segment, &all(&plan), |mut rank, id| {
                        let mut memory = rank.memory(shape).unwrap();
                        fill(&plan, id, shape, 3, &mut memory);
                        rank.call(shape, &mut memory.buffers()).unwrap();
                        for b in promised(&plan, id) {
                            let name = &plan.header.algorithm;
                            assert!(memory.bytes(b) == expected.buffer(b, id), "{name}: {shape:?} at {id:?}");
                        }
                    });
                }
            }
        }
    }
}

/// What is stored past the caches where peers reach is the same, and is there when they are told so.
#[test]
fn stores_past_the_caches_hold_the_same() {
    const WIDE: u32 = 16 << 10;
    for n in [2, 3] {
        for plan in plans::all_direct(n).into_iter().chain(plans::all_blocks(n)) {
            let in_place = !plan.header.forms.disjoint;
            let shape = Shape { in_place, ..shape(9_001) };
            let words = segment::Shape::new(&plan, plan.header.k_min.max(2), WIDE).unwrap();
            let (segment, _fd) = Segment::create(words.with_registered(|_| REGION).unwrap()).unwrap();
            let expected: Vec<_> = (0..4).map(|seed| oracle(&plan, shape, seed)).collect();
            let part = |id: RankId| {
                let patience = Patience { policy: Policy::of(8, 2), stalled: LONG, late: LONG };
                let rank = Rank::connect(&plan, &segment, WIDE, id, patience).unwrap();
                let mut rank = rank.with_stores_past_caches();
                let mut memory = rank.memory(shape).unwrap();
                for (seed, expected) in (0..).zip(&expected) {
                    fill(&plan, id, shape, seed, &mut memory);
                    rank.call(shape, &mut memory.buffers()).unwrap();
                    for b in promised(&plan, id) {
                        let right = memory.bytes(b) == expected.buffer(b, id);
                        assert!(right, "{}: call {seed} at {id:?}", plan.header.algorithm);
                    }
                    rank.barrier().unwrap();
                }
            };
            std::thread::scope(|scope| {
                let part = &part;
                let ranks = all(&plan).into_iter().map(RankId);
                let threads: Vec<_> = ranks.map(|id| scope.spawn(move || part(id))).collect();
                threads.into_iter().for_each(|thread| thread.join().unwrap());
            });
        }
    }
}

/// Calls follow each other at once, of several shapes, each with the memory of the one before last: where a peer's
/// buffer lies changes from call to call.
#[test]
fn calls_in_turn_with_changing_memory() {
    for plan in plans::all_direct(3) {
        let in_place = !plan.header.forms.disjoint;
        let shapes: Vec<_> =
            [7, 1000, 1000, 0, 1, 500, 7, 1000].map(|n| Shape { in_place, ..shape(n) }).into();
        let expected: Vec<_> = (0..).zip(&shapes).map(|(seed, &shape)| oracle(&plan, shape, seed)).collect();
        let segment = segment_for(&plan);
        let lies = together(&plan, &segment, &all(&plan), |mut rank, id| {
            let mut kept = Vec::new();
            let mut lies = Vec::new();
            for (seed, &shape) in (0..).zip(&shapes) {
                let mut memory = rank.memory(shape).unwrap();
                fill(&plan, id, shape, seed, &mut memory);
                rank.call(shape, &mut memory.buffers()).unwrap();
                for b in promised(&plan, id) {
                    let right = memory.bytes(b) == expected[seed as usize].buffer(b, id);
                    assert!(right, "{}: call {seed}, {shape:?}, at {id:?}", plan.header.algorithm);
                    lies.push(memory.bytes(b).as_ptr() as usize);
                }
                // Last in, first out: with every third the arena shrinks, and the next lies elsewhere.
                kept.push(memory);
                if seed % 3 == 2 {
                    kept.pop();
                }
            }
            while kept.pop().is_some() {}
            assert_eq!(rank.calls(), shapes.len() as u64);
            lies.sort_unstable();
            lies.dedup();
            lies.len()
        });
        assert!(lies.into_iter().max() >= Some(3), "{}", plan.header.algorithm);
    }
}

#[test]
fn memory_of_the_caller() {
    let plan = plans::proved(plans::direct::push_allgather(2));
    let segment = segment_for(&plan);
    let bytes = Shape { dtype: Dtype::U8, ..shape(5) };
    // Out of place: what is only read here may lie anywhere.
    let results = together(&plan, &segment, &all(&plan), |mut rank, id| {
        let mine = [id.0 as u8 + 1; 5];
        let mut output = rank.alloc(10).unwrap();
        let buffers = Buffers::new(&plan).send(BufferId(0), &mine);
        let mut buffers = buffers.registered(&mut output, &[(BufferId(1), 0..10)]).unwrap();
        rank.call(bytes, &mut buffers).unwrap();
        output.bytes().to_vec()
    });
    assert_eq!(results, vec![[1, 1, 1, 1, 1, 2, 2, 2, 2, 2]; 2]);
    // In place: a part of the other.
    let segment = segment_for(&plan);
    let results = together(&plan, &segment, &all(&plan), |mut rank, id| {
        let mut memory = rank.alloc(14).unwrap();
        memory.bytes_mut().fill(id.0 as u8 + 1);
        let own = 2 + 5 * id.index();
        let parts = [(BufferId(0), own..own + 5), (BufferId(1), 2..12)];
        let mut buffers = Buffers::new(&plan).registered(&mut memory, &parts).unwrap();
        rank.call(Shape { in_place: true, ..bytes }, &mut buffers).unwrap();
        memory.bytes().to_vec()
    });
    assert_eq!(results[0], [1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 1, 1]);
    assert_eq!(results[1], [2, 2, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2]);
}

#[test]
fn what_is_not_registered_is_refused_by_name() {
    let plan = plans::proved(plans::direct::push_allgather(2));
    let segment = segment_for(&plan);
    let (mut rank, other) = (connect(&plan, &segment, 1, LONG), connect(&plan, &segment, 0, LONG));
    let input = [0; 8];
    let refused = |error: Error| {
        let text = error.to_string();
        assert_eq!((error.kind, &error.culprits[..]), (Kind::Invalid, &[1][..]), "{text}");
        assert!(text.contains("rank 1: other ranks reach into buffer `output`"), "{text}");
        assert!(text.contains("Rank::alloc"), "{text}");
    };
    let mut plain = [0; 16];
    let mut buffers = Buffers::new(&plan).send(BufferId(0), &input).recv(BufferId(1), &mut plain);
    refused(rank.call(shape(2), &mut buffers).unwrap_err());
    // Nor does the memory of another rank do, nor a slice, which the caller could go on using.
    let mut theirs = other.alloc(16).unwrap();
    let buffers = Buffers::new(&plan).send(BufferId(0), &input);
    let mut buffers = buffers.registered(&mut theirs, &[(BufferId(1), 0..16)]).unwrap();
    refused(rank.call(shape(2), &mut buffers).unwrap_err());
    let mut own = rank.alloc(16).unwrap();
    let mut buffers = Buffers::new(&plan).send(BufferId(0), &input).recv(BufferId(1), own.bytes_mut());
    refused(rank.call(shape(2), &mut buffers).unwrap_err());
    assert!(Buffers::new(&plan).registered(&mut own, &[(BufferId(1), 1..17)]).is_err());
    // It has made no call, and nobody was told of one.
    assert_eq!((rank.calls(), segment.board().cause()), (0, None));

    // Without elements there is nothing to reach into.
    together(&plan, &segment_for(&plan), &all(&plan), |mut rank, _| {
        rank.call(shape(0), &mut Buffers::new(&plan)).unwrap();
    });
    // A segment without registered memory has none to give.
    let none = Segment::create(segment::Shape::new(&plan, 2, SLOT_BYTES).unwrap()).unwrap().0;
    let error = connect(&plan, &none, 0, LONG).memory(shape(2)).unwrap_err();
    assert_eq!(error.kind, Kind::Resource, "{error}");
}

/// Pairs that exchange nothing but tokens compare their calls too; here also the form, since a peer must know how
/// buffers lie.
#[test]
fn every_difference_is_a_mismatch() {
    let plan = plans::proved(plans::direct::push_allgather(2));
    for (what, other) in [
        ("count", shape(9)),
        ("count", shape(0)),
        ("element type", Shape { dtype: Dtype::I32, ..shape(8) }),
        ("operator", Shape { op: Op::Max, ..shape(8) }),
        ("form", Shape { in_place: true, ..shape(8) }),
    ] {
        let segment = segment_for(&plan);
        let errors = together(&plan, &segment, &all(&plan), |mut rank, id| {
            let shape = if id.0 == 0 { shape(8) } else { other };
            let mut memory = rank.memory(shape).unwrap();
            fill(&plan, id, shape, 1, &mut memory);
            rank.call(shape, &mut memory.buffers()).unwrap_err()
        });
        for error in errors {
            assert_eq!(error.kind, Kind::Mismatch, "{error}");
            assert!(error.message.contains(&format!("differ in {what}\n")), "{error}");
        }
    }
}

#[test]
fn a_rank_that_never_enters_is_late() {
    for plan in plans::all_direct(3) {
        let in_place = !plan.header.forms.disjoint;
        let segment = segment_for(&plan);
        // Whom it leaves waiting depends on the plan; all who wait name it, and get their memory back.
        let outcomes = together_for(SOON, &plan, &segment, &[0, 2], |mut rank, id| {
            let shape = Shape { in_place, ..shape(50) };
            let mut memory = rank.memory(shape).unwrap();
            fill(&plan, id, shape, 1, &mut memory);
            let outcome = rank.call(shape, &mut memory.buffers());
            for b in here(&plan, id, Role::Send) {
                let given = memory.bytes(b);
                assert!(!given.is_empty(), "not in quarantine");
                let mut entry = vec![0; given.len()];
                reference::fill(shape.dtype, shape.op, 1, id, b, &mut entry);
                assert!(in_place || given == entry, "`in` buffers are unchanged");
            }
            outcome
        });
        let errors: Vec<Error> = outcomes.into_iter().filter_map(Result::err).collect();
        assert!(!errors.is_empty(), "{}", plan.header.algorithm);
        for error in errors {
            assert_eq!((error.kind, &error.culprits[..]), (Kind::Late, &[1][..]), "{error}");
        }
    }
}

/// A run is ended at any moment: whoever fails may use its memory at once, and nobody writes there any more.
#[test]
fn memory_is_the_callers_again_after_a_failed_call() {
    let mut tried = 0;
    for round in 0..40u64 {
        let all_plans = plans::all_direct(3);
        let plan = &all_plans[round as usize % all_plans.len()];
        let shape = Shape { in_place: !plan.header.forms.disjoint, ..shape(20_000) };
        let segment = segment_for(plan);
        std::thread::scope(|scope| {
            let ending = scope.spawn(|| {
                let began = Instant::now();
                while began.elapsed() < Duration::from_micros(100 * (round % 17)) {
                    std::thread::yield_now();
                }
                segment.board().abort(&Error::new(Kind::Aborted, "the test has had enough"));
            });
            let usable = together(plan, &segment, &all(plan), |mut rank, id| {
                let mut memory = rank.memory(shape).unwrap();
                loop {
                    fill(plan, id, shape, round, &mut memory);
                    let Err(error) = rank.call(shape, &mut memory.buffers()) else { continue };
                    assert_eq!(error.kind, Kind::Aborted, "{error}");
                    for role in [Role::Send, Role::Recv] {
                        for b in here(plan, id, role) {
                            memory.bytes_mut(b).fill(0x5a);
                        }
                    }
                    std::thread::sleep(Duration::from_micros(300));
                    for role in [Role::Send, Role::Recv] {
                        for b in here(plan, id, role) {
                            assert!(memory.bytes(b).iter().all(|&byte| byte == 0x5a), "a late write");
                        }
                    }
                    assert!(rank.call(shape, &mut memory.buffers()).is_err(), "no further call is possible");
                    // On a machine that stands still for long, a rank may give up waiting for another.
                    let mut all = here(plan, id, Role::Send);
                    all.extend(here(plan, id, Role::Recv));
                    return all.into_iter().all(|b| !memory.bytes(b).is_empty());
                }
            });
            tried += usable.iter().filter(|&&usable| usable).count();
            ending.join().unwrap();
        });
    }
    assert!(tried > 60, "of 120 pieces of memory only {tried} came back");
}

/// A rank that has entered, and of which nothing is heard again, may still write: the memory it may reach into is not
/// given out any more.
#[test]
fn memory_that_a_lost_rank_may_write_to_is_in_quarantine() {
    let plan = plans::proved(plans::direct::push_allgather(3));
    let segment = segment_for(&plan);
    segment.rank(RankId(1)).entered.store(1, Ordering::Relaxed);
    segment.lane(RankId(1)).entered.store(1, Ordering::Relaxed);
    together_for(SOON, &plan, &segment, &[0, 2], |mut rank, _| {
        let mut memory = rank.memory(shape(50)).unwrap();
        let mut piece = rank.alloc(8).unwrap();
        let error = rank.call(shape(50), &mut memory.buffers()).unwrap_err();
        assert_eq!((error.kind, &error.culprits[..]), (Kind::Stalled, &[1][..]), "{error}");
        assert!(memory.bytes(BufferId(1)).is_empty() && memory.bytes_mut(BufferId(1)).is_empty());
        // What no peer reaches into is not affected.
        assert_eq!(memory.bytes(BufferId(0)).len(), 200);
        assert!(piece.quarantined() && piece.bytes_mut().is_empty());
    });
}

/// A rank that nobody reaches into waits for nobody; one whose peer's process has died does not wait for it.
#[test]
fn the_dead_are_not_waited_for() {
    let plan = plans::proved(plans::direct::push_gather(3));
    let segment = segment_for(&plan);
    let mut child = std::process::Command::new("/bin/true").spawn().unwrap();
    child.wait().unwrap();
    for rank in [0, 1] {
        segment.rank(RankId(rank)).entered.store(1, Ordering::Relaxed);
        segment.lane(RankId(rank)).entered.store(1, Ordering::Relaxed);
        segment.rank(RankId(rank)).pid.store(child.id(), Ordering::Relaxed);
    }
    together_for(SOON, &plan, &segment, &[2], |mut rank, _| {
        let mut memory = rank.memory(shape(50)).unwrap();
        let error = rank.call(shape(50), &mut memory.buffers()).unwrap_err();
        assert_eq!(error.kind, Kind::Stalled, "{error}");
        assert_eq!(memory.bytes(BufferId(1)).len(), 600);
    });
}
