//! Calls, one by one: bits as the oracle has them, what is refused, and what is said when ranks disagree or stay away.

extern crate plan as rcc_plan;

mod plans;

use std::sync::atomic::Ordering;
use std::time::Duration;

use plan::dtype::{Dtype, Op};
use plan::ids::{BufferId, ChannelId, RankId};
use plan::interpret::scheduler::RoundRobin;
use plan::interpret::{Call, interpret};
use plan::plan::Role;
use plan::reference;
use plan::schedule::{Protocol, Schedule, Transport, Wire};
use plan::verify::VerifiedPlan;
use rcc_runtime::error::{Error, Kind, State};
use rcc_runtime::exec::buffers::Buffers;
use rcc_runtime::exec::program::{Arg, Program, check_supported};
use rcc_runtime::exec::{Patience, Rank, Shape};
use rcc_runtime::job::{Geometry, Job};
use rcc_runtime::memory::segment::Segment;
use rcc_runtime::wait::Policy;

const SLOTS: Geometry = Geometry { slots: 2, slot_bytes: 256 };

/// For how long a rank waits that will wait in vain; and one that will not, however busy the machine is.
const SOON: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(20);

fn patience(deadline: Duration) -> Patience {
    Patience { policy: Policy::of(8, 2), stalled: deadline, late: deadline }
}

fn shape(elements: u64) -> Shape {
    Shape { elements, dtype: Dtype::F32, op: Op::Sum, in_place: false }
}

/// Runs `part` for each of `ranks`, as threads on one segment.
fn together<T: Send>(
    plan: &VerifiedPlan,
    ranks: &[u32],
    part: impl Fn(Rank<'_>, RankId) -> T + Sync,
) -> Vec<T> {
    together_for(LONG, plan, ranks, part)
}

/// The same, with this deadline.
fn together_for<T: Send>(
    deadline: Duration,
    plan: &VerifiedPlan,
    ranks: &[u32],
    part: impl Fn(Rank<'_>, RankId) -> T + Sync,
) -> Vec<T> {
    together_in(SLOTS, deadline, plan, ranks, part)
}

/// The same, with such slots.
fn together_in<T: Send>(
    slots: Geometry,
    deadline: Duration,
    plan: &VerifiedPlan,
    ranks: &[u32],
    part: impl Fn(Rank<'_>, RankId) -> T + Sync,
) -> Vec<T> {
    let (segment, _fd) = Segment::create(slots.segment(plan).unwrap()).unwrap();
    let (segment, part) = (&segment, &part);
    std::thread::scope(|scope| {
        let threads: Vec<_> = ranks
            .iter()
            .map(|&rank| {
                scope.spawn(move || {
                    let rank = RankId(rank);
                    let patience = patience(deadline);
                    part(Rank::connect(plan, segment, slots.slot_bytes, rank, patience).unwrap(), rank)
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

/// One call with memory of its own; what is in each buffer afterwards.
fn call(rank: &mut Rank<'_>, plan: &VerifiedPlan, id: RankId, shape: Shape) -> Result<Vec<Vec<u8>>, Error> {
    let mut memory = rank.memory(shape)?;
    for (b, buffer) in plan.buffers.iter().enumerate().filter(|(_, buffer)| buffer.role == Role::Send) {
        if buffer.at.holds(id) {
            let b = BufferId::new(b);
            reference::fill(shape.dtype, shape.op, 3, id, b, memory.bytes_mut(b));
        }
    }
    rank.call(shape, &mut memory.buffers())?;
    Ok((0..plan.buffers.len()).map(|b| memory.bytes(BufferId::new(b)).to_vec()).collect())
}

/// Not only right within bounds: the very bits that the plan means.
#[test]
fn bits_are_those_of_the_oracle() {
    let plans = [
        plans::ring(3),
        plans::fold_at_root(5, true),
        plans::fold_at_root(5, false),
        plans::scratch_and_waits(),
    ];
    for plan in &plans {
        for dtype in Dtype::ALL {
            for op in Op::ALL {
                for in_place in [false, true] {
                    if in_place && !plan.header.forms.same {
                        continue;
                    }
                    let shape = Shape { elements: 301, dtype, op, in_place };
                    let oracle = Call { slot_bytes: SLOTS.slot_bytes, in_place, ..Call::new(301, dtype, op) };
                    let bytes = 301 * dtype.size() as usize;
                    let mut input = |b: BufferId, rank: RankId| {
                        let mut entry = vec![0; bytes * plan.buffers[b.index()].blocks as usize];
                        reference::fill(dtype, op, 3, rank, b, &mut entry);
                        entry
                    };
                    let expected = interpret(plan, &oracle, &mut input, &mut RoundRobin::default()).unwrap();
                    let all: Vec<u32> = (0..plan.header.ranks).collect();
                    // By way of the caches, and past them.
                    let results = [1 << 40, 1].map(|cache| {
                        together(plan, &all, |rank, id| {
                            call(&mut rank.with_cache(cache), plan, id, shape).unwrap()
                        })
                    });
                    assert!(results[0] == results[1], "{dtype} {op}");
                    let [results, _] = results;
                    for (b, buffer) in plan.buffers.iter().enumerate().filter(|(_, b)| b.role == Role::Recv) {
                        for (rank, memory) in results.iter().enumerate() {
                            let (b, rank) = (BufferId::new(b), RankId::new(rank));
                            if buffer.at.holds(rank) {
                                assert!(
                                    memory[b.index()] == expected.buffer(b, rank),
                                    "{dtype} {op} at {rank:?}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Slots that are written past the caches hold the same, whatever else a step stores.
#[test]
fn slots_written_past_the_caches_hold_the_same() {
    let plans = [
        plans::ring(2),
        plans::ring(3),
        plans::multicast(3, 2),
        plans::fold_at_root(5, true),
        plans::scratch_and_waits(),
    ];
    for plan in &plans {
        for dtype in [Dtype::F32, Dtype::U8, Dtype::F64] {
            let shape = Shape { elements: 30_011, dtype, op: Op::Max, in_place: !plan.header.forms.disjoint };
            let all: Vec<u32> = (0..plan.header.ranks).collect();
            let roomy = Geometry { slots: 2, slot_bytes: 16 << 10 };
            let part = |rank: Rank<'_>, id, past| {
                let mut rank = if past { rank.with_stores_past_caches() } else { rank };
                (0..3).map(|_| call(&mut rank, plan, id, shape).unwrap()).collect::<Vec<_>>()
            };
            let [through, past] = [false, true]
                .map(|past| together_in(roomy, LONG, plan, &all, |rank, id| part(rank, id, past)));
            assert!(through == past, "{dtype} {}", plan.header.algorithm);
        }
    }
}

/// Each final value of a ring goes past the caches once; nothing does that some step reads.
#[test]
fn what_is_read_again_is_not_stored_past_the_caches() {
    let plans = [plans::ring(3), plans::fold_at_root(5, true), plans::scratch_and_waits()];
    let mut results = 0;
    for plan in &plans {
        for rank in (0..plan.header.ranks).map(RankId) {
            let program = Program::new(plan, rank).unwrap();
            let read: Vec<Arg> = program.steps.iter().flat_map(|s| program.sources(s).to_vec()).collect();
            for step in &program.steps {
                for (k, arg) in program.destinations(step).iter().enumerate() {
                    // In these plans blocks are one cell, and steps one cell wide.
                    let kept = matches!(arg, Arg::User { .. }) && !read.contains(arg);
                    assert_eq!(step.stream.has(k), kept, "{arg:?} of {} at {rank:?}", plan.header.algorithm);
                    results += usize::from(kept);
                }
            }
        }
    }
    assert!(results >= 9, "{results}");
}

/// `Send` buffers are unchanged, and a second call of another shape works on the same channels.
#[test]
fn calls_of_several_shapes_in_turn() {
    let plan = plans::ring(2);
    together(&plan, &[0, 1], |mut rank, id| {
        for elements in [5, 0, 1000, 5, 3] {
            let memory = call(&mut rank, &plan, id, shape(elements)).unwrap();
            let mut entry = vec![0; 4 * elements as usize];
            reference::fill(Dtype::F32, Op::Sum, 3, id, BufferId(0), &mut entry);
            assert_eq!(memory[0], entry);
        }
        assert_eq!(rank.calls(), 5);
    });
}

#[test]
fn memory_of_the_caller() {
    let plan = plans::exchange();
    let results = together(&plan, &[0, 1], |mut rank, id| {
        let mine = [id.0 as u8; 5];
        let mut got = [9; 5];
        let bytes = Shape { dtype: Dtype::U8, ..shape(5) };
        let mut buffers = Buffers::new(&plan).send(BufferId(0), &mine).recv(BufferId(1), &mut got);
        rank.call(bytes, &mut buffers).unwrap();
        got
    });
    assert_eq!(results, [[1; 5], [0; 5]]);
}

#[test]
fn the_records_of_a_mismatch_are_those_of_the_calls_made() {
    let plan = plans::ring(2);
    let errors = together(&plan, &[0, 1], |mut rank, id| {
        for elements in [1, 2, 3, 4] {
            rank.prepare(shape(elements)).unwrap();
        }
        call(&mut rank, &plan, id, shape(100 + u64::from(id.0))).unwrap_err()
    });
    let text = errors[0].to_string();
    assert!(text.contains("100 x f32") && text.contains("101 x f32"), "{text}");
}

#[test]
fn a_different_count_is_a_mismatch() {
    let plan = plans::ring(2);
    let errors = together(&plan, &[0, 1], |mut rank, id| {
        call(&mut rank, &plan, id, shape(100)).unwrap();
        call(&mut rank, &plan, id, shape(100 + u64::from(id.0))).unwrap_err()
    });
    for error in errors {
        assert_eq!(error.kind, Kind::Mismatch, "{error}");
        let text = error.to_string();
        assert!(text.contains("differ in count"), "{text}");
        assert!(
            text.contains("call 2: ring") && text.contains("100 x f32") && text.contains("101 x f32"),
            "{text}"
        );
    }
}

#[test]
fn every_difference_is_a_mismatch() {
    let plan = plans::barrier(2);
    for other in [
        Shape { dtype: Dtype::I32, ..shape(8) },
        Shape { op: Op::Max, ..shape(8) },
        shape(0),
        Shape { elements: 16, dtype: Dtype::F16, ..shape(8) },
    ] {
        // Tokens carry signatures as messages do.
        let errors = together(&plan, &[0, 1], |mut rank, id| {
            let shape = if id.0 == 0 { shape(8) } else { other };
            call(&mut rank, &plan, id, shape).map(|_| ())
        });
        let found = errors.into_iter().filter_map(Result::err);
        assert!(found.clone().count() > 0);
        found.for_each(|error| assert_eq!(error.kind, Kind::Mismatch, "{error}"));
    }
}

/// Where ranks only exchange messages, each may be in place or not.
#[test]
fn each_rank_may_have_its_own_form() {
    let plan = plans::ring(3);
    let results = together(&plan, &[0, 1, 2], |mut rank, id| {
        call(&mut rank, &plan, id, Shape { in_place: id.0 == 1, ..shape(30) }).unwrap()
    });
    assert_eq!(results[0][1], results[1][1]);
}

#[test]
fn a_rank_that_never_enters_is_late() {
    let plan = plans::ring(3);
    let errors =
        together_for(SOON, &plan, &[0, 2], |mut rank, id| call(&mut rank, &plan, id, shape(9)).unwrap_err());
    for error in errors {
        assert_eq!((error.kind, &error.culprits[..]), (Kind::Late, &[1][..]), "{error}");
        let text = error.to_string();
        assert!(text.contains("rank 1 has not entered call 1"), "{text}");
        assert!(text.contains("rank 1 has made no call"), "{text}");
        // Rank 2 has nothing from rank 1, and says at which line that is.
        let two = error.others.iter().chain(&error.seen).find(|p| p.rank == 2).unwrap();
        let State::At(places) = &two.state else { panic!("{text}") };
        assert_eq!(places[0].line, "ring.coll:5");
        assert_eq!(places[0].waits, "for a message from rank 1");
    }
}

#[test]
fn a_rank_that_makes_no_further_call_is_late() {
    let plan = plans::ring(2);
    let errors = together_for(SOON, &plan, &[0, 1], |mut rank, id| {
        if id.0 == 1 {
            return call(&mut rank, &plan, id, shape(4)).err();
        }
        call(&mut rank, &plan, id, shape(4)).unwrap();
        call(&mut rank, &plan, id, shape(4)).err()
    });
    let error = errors[0].as_ref().unwrap();
    assert_eq!((error.kind, &error.culprits[..]), (Kind::Late, &[1][..]), "{error}");
    assert!(error.to_string().contains("its last was call 1"), "{error}");
}

#[test]
fn a_rank_that_enters_and_stands_still_stalls_the_call() {
    let plan = plans::ring(3);
    let (segment, _fd) = Segment::create(SLOTS.segment(&plan).unwrap()).unwrap();
    // Rank 1 says that it has entered, and that is all it ever does.
    segment.rank(RankId(1)).entered.store(1, Ordering::Relaxed);
    let (plan, segment) = (&plan, &segment);
    let errors: Vec<Error> = std::thread::scope(|scope| {
        let run = |id| {
            let mut rank = Rank::connect(plan, segment, SLOTS.slot_bytes, id, patience(SOON)).unwrap();
            call(&mut rank, plan, id, shape(9)).unwrap_err()
        };
        let threads = [0, 2].map(|id| scope.spawn(move || run(RankId(id))));
        threads.map(|t| t.join().unwrap()).into()
    });
    for error in errors {
        assert_eq!((error.kind, &error.culprits[..]), (Kind::Stalled, &[1][..]), "{error}");
        assert!(error.to_string().contains("rank 1 has all it needs and does not go on"), "{error}");
    }
}

/// Where slots are traded, whoever has none waits for what it has yet to receive, not for what it has sent to be read.
#[test]
fn who_waits_for_a_traded_slot_says_so() {
    let plan = plans::exchange_in_blocks();
    let (segment, _fd) = Segment::create(SLOTS.segment(&plan).unwrap()).unwrap();
    let other = segment.rank(RankId(1));
    other.entered.store(1, Ordering::Relaxed);
    let from_0 = plan.channels.iter().position(|c| plan.blocks[c.writer.index()].rank == RankId(0)).unwrap();
    let sent = segment.channel(segment.shape().instance(ChannelId::new(from_0), 0));
    let error = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let id = RankId(0);
            let mut rank = Rank::connect(&plan, &segment, SLOTS.slot_bytes, id, patience(SOON)).unwrap();
            call(&mut rank, &plan, id, shape(1000)).unwrap_err()
        });
        // Rank 1 reads all that is sent, and sends nothing.
        while sent.head.published.load(Ordering::Acquire) < 2 && !thread.is_finished() {
            std::thread::yield_now();
        }
        sent.tails[0].consumed.store(2, Ordering::Relaxed);
        thread.join().unwrap()
    });
    assert_eq!((error.kind, &error.culprits[..]), (Kind::Stalled, &[1][..]), "{error}");
    let Some(State::At(places)) = error.seen.as_ref().map(|seen| &seen.state) else { panic!("{error}") };
    let waits: Vec<&str> = places.iter().map(|place| place.waits.as_str()).collect();
    assert_eq!(waits, ["for a message from rank 1, in whose slot it writes", "for a message from rank 1"]);
}

#[test]
fn buffers_of_the_wrong_size_or_place_are_refused() {
    let plan = plans::ring(1);
    let refused = |buffers: &mut dyn FnMut(&mut Rank<'_>) -> Result<(), Error>| {
        let (segment, _fd) = Segment::create(SLOTS.segment(&plan).unwrap()).unwrap();
        let mut rank = Rank::connect(&plan, &segment, SLOTS.slot_bytes, RankId(0), patience(SOON)).unwrap();
        let error = buffers(&mut rank).unwrap_err();
        assert_eq!(error.kind, Kind::Invalid, "{error}");
        error.to_string()
    };
    let input = [1u8; 16];
    let short = refused(&mut |rank| {
        let mut output = [0; 15];
        rank.call(shape(4), &mut Buffers::new(&plan).send(BufferId(0), &input).recv(BufferId(1), &mut output))
    });
    assert!(short.contains("`output` must have 16 bytes, and has 15"), "{short}");
    let in_place = Shape { in_place: true, ..shape(4) };
    let apart = refused(&mut |rank| {
        let mut output = [0; 16];
        rank.call(in_place, &mut Buffers::new(&plan).send(BufferId(0), &input).recv(BufferId(1), &mut output))
    });
    assert!(apart.contains("do not lie to each other"), "{apart}");
    for (shape, shift) in [(shape(4), 0), (shape(4), 4), (in_place, 4)] {
        refused(&mut |rank| {
            let mut memory = [0; 20];
            let parts = [(BufferId(0), 0..16), (BufferId(1), shift..shift + 16)];
            rank.call(shape, &mut Buffers::new(&plan).same(&mut memory, &parts).unwrap())
        });
    }
    let mut memory = [1u8; 16];
    assert!(Buffers::new(&plan).same(&mut memory, &[(BufferId(0), 8..17)]).is_err());
    let (segment, _fd) = Segment::create(SLOTS.segment(&plan).unwrap()).unwrap();
    let mut rank = Rank::connect(&plan, &segment, SLOTS.slot_bytes, RankId(0), patience(SOON)).unwrap();
    let parts = [(BufferId(0), 0..16), (BufferId(1), 0..16)];
    rank.call(in_place, &mut Buffers::new(&plan).same(&mut memory, &parts).unwrap()).unwrap();
}

#[test]
fn what_a_plan_does_not_serve_is_refused() {
    let plan = plans::exchange();
    let (segment, _fd) = Segment::create(SLOTS.segment(&plan).unwrap()).unwrap();
    let mut rank = Rank::connect(&plan, &segment, SLOTS.slot_bytes, RankId(0), patience(SOON)).unwrap();
    let error = rank.prepare(Shape { in_place: true, ..shape(4) }).unwrap_err();
    assert_eq!(error.kind, Kind::Unsupported, "{error}");

    let refused = |why: &str, schedule: Schedule| {
        let mut plan = plans::ring(2).plan().clone();
        plan.header.schedule = schedule;
        let error = check_supported(&plan).unwrap_err();
        assert_eq!(error.kind, Kind::Unsupported, "{error}");
        assert!(error.message.contains(why), "{error}");
    };
    let usual = Schedule::default;
    refused("protocol ll,", Schedule { protocol: Protocol::Ll, ..usual() });
    refused("protocol ll128,", Schedule { protocol: Protocol::Ll128, ..usual() });
    refused("threads", Schedule { threads: Some(2), ..usual() });
    refused("prefers", Schedule { prefer: vec![Transport::Rdma], ..usual() });
    refused("shared memory", Schedule { avoid: vec![Transport::Shared], ..usual() });
    refused("switch", Schedule { via_switch: true, ..usual() });
    refused("wire", Schedule { wire: Some(Wire::Bf16), ..usual() });
    let served = Schedule {
        protocol: Protocol::Simple,
        slice_bytes: Some(4096),
        threads: Some(1),
        prefer: vec![Transport::Nvlink, Transport::Shared],
        avoid: vec![Transport::Tcp],
        ..usual()
    };
    let mut plan = plans::ring(2).plan().clone();
    plan.header.schedule = served;
    check_supported(&plan).unwrap();
    // What the schedule asks for is the most that a slot gets; the job's word comes first.
    let job = Job::new(shape(1 << 20));
    assert_eq!(Geometry::of(&plan, &job).unwrap().slot_bytes, 4096);
    assert_eq!(Geometry::of(&plan, &Job { slot_bytes: Some(512), ..job }).unwrap().slot_bytes, 512);
    assert_eq!(Geometry::of(&plan, &Job::new(shape(8))).unwrap().slot_bytes, 64);

    let ring = plans::ring(4);
    let few = Job { slots: Some(0), ..Job::new(shape(4)) };
    let geometry = Geometry::of(&ring, &few).unwrap();
    assert_eq!(geometry.segment(&ring).unwrap_err().kind, Kind::Invalid);
}
