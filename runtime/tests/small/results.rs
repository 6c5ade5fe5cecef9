//! Right results: every type, operator, form and number of ranks; in any order, mixed with calls of plans, several at once.

use std::sync::Arc;

use plan::arith::{self, Rounding};
use plan::dtype::{Dtype, Factor, Op};
use plan::ids::{BufferId, RankId};
use plan::plan::Role;
use plan::reference;
use rcc_runtime::comm::{Communicator, Options, PlanId};
use rcc_runtime::exec::Shape;
use rcc_runtime::small::{Buffers, Call, Collective, MOST};

use crate::plans;
use crate::ranks::together;
use crate::shared::{LONG, Trial, call, collectives, next, options};

/// The most elements of a block that fit, or fewer.
fn most(collective: Collective, dtype: Dtype, world: u32, elements: u64) -> u64 {
    let fits = |elements| call(collective, elements, dtype, Op::Sum).fits(world);
    if fits(elements) { elements } else { (0..elements).rev().find(|&fewer| fits(fewer)).unwrap_or(0) }
}

#[test]
fn all_types_operators_and_forms_on_one_to_nine_ranks() {
    for world in 1..=9 {
        together(world, &options(LONG), |mut comm| {
            let rank = comm.rank().0;
            let mut state = u64::from(world);
            for dtype in Dtype::ALL {
                for op in [&Op::ALL[..], &[Op::PremulSum(Factor::new(-3.0))][..]].concat() {
                    let unsigned = matches!(dtype, Dtype::U8 | Dtype::U32 | Dtype::U64);
                    if op.factor().is_some_and(|factor| factor.value() < 0.0) && unsigned {
                        continue;
                    }
                    let root = next(&mut state) as u32 % world;
                    for collective in collectives(root) {
                        let all = [0, 1, 2, 7, 14, 15, 33, 100, 1024, 4096];
                        let wanted = all[next(&mut state) as usize % all.len()];
                        let elements = most(collective, dtype, world, wanted);
                        let (seed, in_place) = (next(&mut state), next(&mut state).is_multiple_of(2));
                        let call = call(collective, elements, dtype, op);
                        Trial::new(call, rank, world, seed, in_place).make(&mut comm).unwrap();
                    }
                }
            }
        });
    }
}

#[test]
fn all_sizes_from_nothing_to_the_largest() {
    for world in [2, 3] {
        together(world, &options(LONG), |mut comm| {
            let rank = comm.rank().0;
            for bytes in (0..200).chain((200..=MOST as u64).step_by(41)).chain([MOST as u64]) {
                for collective in collectives(bytes as u32 % world) {
                    let elements = most(collective, Dtype::U8, world, bytes);
                    let call = call(collective, elements, Dtype::U8, Op::Max);
                    for in_place in [false, true] {
                        Trial::new(call, rank, world, bytes, in_place).make(&mut comm).unwrap();
                    }
                }
            }
        });
    }
}

/// Ranks may run ahead of each other only where that harms nobody: boxes are used again and again, by calls of all kinds in any order,
/// while some rank is always late. Numbers go past 2^32 meanwhile.
#[test]
fn any_order_of_calls_with_ranks_that_dawdle() {
    for (world, calls) in [(2, 4000), (3, 3000), (4, 2000), (7, 700)] {
        together(world, &options(LONG), |mut comm| {
            let rank = comm.rank().0;
            comm.number_from((1 << 32) - 50);
            let (mut state, mut own) = (u64::from(world), u64::from(rank) + 100);
            for seed in 0..calls {
                // Often many of a kind in a row.
                let root = (seed / (1 + next(&mut state) % 20)) as u32 % world;
                let kind = if next(&mut state).is_multiple_of(4) { 7 } else { 4 };
                let collective = collectives(root)[next(&mut state) as usize % (kind + 1)];
                let wanted = [1, 2, 16, 500][next(&mut state) as usize % 4];
                let elements = most(collective, Dtype::F32, world, wanted);
                let call = call(collective, elements, Dtype::F32, Op::Sum);
                let in_place = next(&mut own).is_multiple_of(2);
                Trial::new(call, rank, world, seed, in_place).make(&mut comm).unwrap();
                match next(&mut own) % 64 {
                    0 => std::thread::sleep(std::time::Duration::from_micros(200)),
                    1..8 => std::thread::yield_now(),
                    _ => {}
                }
            }
        });
    }
}

/// Rooted calls alone: nobody hears from the others but by way of credit.
#[test]
fn a_root_that_runs_ahead_waits_for_who_reads() {
    for world in [2, 5] {
        for at in 4..8 {
            together(world, &options(LONG), |mut comm| {
                let rank = comm.rank().0;
                for seed in 0..300 {
                    let root = (seed / 100) as u32 % world;
                    let call = call(collectives(root)[at], 3, Dtype::I64, Op::Sum);
                    Trial::new(call, rank, world, seed, seed % 2 == 0).make(&mut comm).unwrap();
                    if rank != root && seed % 50 == 0 {
                        std::thread::sleep(std::time::Duration::from_millis(3));
                    }
                }
            });
        }
    }
}

#[test]
fn nobody_leaves_a_barrier_before_all_have_come() {
    use std::sync::atomic::{AtomicU32, Ordering};
    for world in [1, 2, 3, 6] {
        let come = AtomicU32::new(0);
        together(world, &options(LONG), |mut comm| {
            for turn in 1..200 {
                come.fetch_add(1, Ordering::Relaxed);
                comm.small(&Call::BARRIER, &mut Buffers::none()).unwrap();
                assert!(come.load(Ordering::Relaxed) >= turn * world);
            }
        });
    }
}

/// One call of a plan, checked.
fn planned(comm: &mut Communicator, id: PlanId, elements: u64, seed: u64) {
    let shape = Shape { elements, dtype: Dtype::F32, op: Op::Sum, in_place: false };
    let (plan, rank) = (Arc::clone(comm.plan(id)), comm.rank());
    let mut memory = comm.memory(id, shape).unwrap();
    for (b, buffer) in plan.buffers.iter().enumerate() {
        if buffer.role == Role::Send {
            let b = BufferId::new(b);
            reference::fill(shape.dtype, shape.op, seed, rank, b, memory.bytes_mut(b));
        }
    }
    comm.call(id, shape, &mut memory.buffers()).unwrap();
    check(&plan, rank, shape, seed, &memory);
}

fn check(
    plan: &plan::verify::VerifiedPlan,
    rank: RankId,
    shape: Shape,
    seed: u64,
    memory: &rcc_runtime::exec::buffers::Memory,
) {
    let promise = reference::Reference::new(&plan.promise);
    let recv = plan.buffers.iter().position(|buffer| buffer.role == Role::Recv).map(BufferId::new).unwrap();
    let mut entry = |place: plan::collective::BlockRef| {
        let mut block = vec![0; shape.elements as usize * 4];
        let first = u64::from(place.block) * shape.elements;
        let (dtype, op) = (shape.dtype, shape.op);
        reference::fill_from(dtype, op, seed, place.rank, place.buffer, first, &mut block);
        block.into()
    };
    let got = memory.bytes(recv);
    let of = (shape.dtype, shape.op);
    assert_eq!(promise.check((recv, rank), shape.elements, of, &mut entry, got).count, 0);
}

#[test]
fn calls_of_plans_in_between() {
    let ring = Arc::new(plans::ring(4));
    together(4, &options(LONG), |mut comm| {
        let id = comm.open(&ring).unwrap();
        let (rank, mut state) = (comm.rank().0, 3);
        for seed in 0..500 {
            let collective = collectives(next(&mut state) as u32 % 4)[next(&mut state) as usize % 8];
            let elements = most(collective, Dtype::F16, 4, next(&mut state) % 700);
            let call = call(collective, elements, Dtype::F16, Op::Avg);
            Trial::new(call, rank, 4, seed, seed % 3 == 0).make(&mut comm).unwrap();
            if next(&mut state).is_multiple_of(3) {
                planned(&mut comm, id, next(&mut state) % 3000, seed);
            }
        }
    });
}

/// A large call of a plan and small ones under way together; each rank waits for them in another order, so that who waits in one must
/// drive the others.
#[test]
fn several_at_once() {
    let ring = Arc::new(plans::ring(3));
    for in_flight in [1, 2] {
        together(3, &Options { in_flight, ..options(LONG) }, |mut comm| {
            let id = comm.open(&ring).unwrap();
            let rank = comm.rank();
            for turn in 0..30 {
                let shape = Shape { elements: 20_000, dtype: Dtype::F32, op: Op::Sum, in_place: false };
                let mut large: Vec<_> = (0..2).map(|_| comm.memory(id, shape).unwrap()).collect();
                for memory in &mut large {
                    for (b, buffer) in ring.buffers.iter().enumerate().filter(|(_, b)| b.role == Role::Send) {
                        let _ = buffer;
                        let b = BufferId::new(b);
                        reference::fill(shape.dtype, shape.op, turn, rank, b, memory.bytes_mut(b));
                    }
                }
                let mut trials: Vec<Trial> = (0..20)
                    .map(|i| {
                        let collective = collectives(i % 3)[(i as usize * 5 + turn as usize) % 8];
                        let call = call(collective, 2 + u64::from(i), Dtype::F64, Op::Sum);
                        Trial::new(call, rank.0, 3, u64::from(i), i % 2 == 0)
                    })
                    .collect();
                comm.scope(|scope| {
                    let mut pending = Vec::new();
                    let mut large = large.iter_mut();
                    for (i, trial) in trials.iter_mut().enumerate() {
                        if i % 10 == 3 {
                            let memory = large.next().unwrap();
                            pending.push(scope.start(id, shape, memory.buffers())?);
                        }
                        let call = trial.call;
                        pending.push(scope.start_small(&call, trial.buffers())?);
                    }
                    pending.rotate_left(rank.index() * 7);
                    while !scope.test(&pending[0]) {}
                    for one in pending.into_iter().skip(rank.index()) {
                        scope.wait(one)?;
                    }
                    Ok(())
                })
                .unwrap();
                trials.iter().for_each(Trial::check);
                large.iter().for_each(|memory| check(&ring, rank, shape, turn, memory));
                // And a blocking one right after.
                let call = call(Collective::Allreduce, 2, Dtype::F32, Op::Sum);
                Trial::new(call, rank.0, 3, turn, false).make(&mut comm).unwrap();
            }
        });
    }
}

/// All ranks get the same bits, and they are those of one fold in rank order.
#[test]
fn bits_are_those_of_one_step() {
    for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::F8E4m3, Dtype::F8E5m2] {
        let of = |rank: u32| {
            let mut data = vec![0; 24 * dtype.size() as usize];
            reference::fill(dtype, Op::Sum, 9, RankId(rank), BufferId(0), &mut data);
            data
        };
        let all: Vec<Vec<u8>> = (0..5).map(of).collect();
        let results = together(5, &options(LONG), |mut comm| {
            let mut memory = all[comm.rank().index()].clone();
            let call = call(Collective::Allreduce, 24, dtype, Op::Avg);
            comm.small(&call, &mut Buffers::in_place(&mut memory)).unwrap();
            memory
        });
        let operands: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
        let mut expected = vec![0; operands[0].len()];
        let rounding = Rounding { post: Some(5), ..Rounding::default() };
        arith::fold(dtype, Op::Avg, &operands, rounding, &mut expected);
        assert!(results.iter().all(|result| *result == expected), "{dtype}");
    }
}
