//! Ranks as threads, and their results compared with the promise of the plan: for the tests of communicators.
//!
//! In: what each rank does. Out: what came of it. Entry values follow from a seed, so any rank can be judged alone.

#![allow(dead_code, reason = "each test file uses some of them")]

use std::sync::Arc;
use std::time::Duration;

use plan::dtype::{Dtype, Op};
use plan::ids::{BufferId, RankId};
use plan::plan::Role;
use plan::reference::{self, Reference};
use plan::verify::VerifiedPlan;
use rcc_runtime::comm::{Communicator, Options, PlanId};
use rcc_runtime::error::Error;
use rcc_runtime::exec::Shape;
use rcc_runtime::exec::buffers::Memory;

/// For how long a rank waits that will wait in vain; and one that will not, however busy the machine is.
pub(crate) const SOON: Duration = Duration::from_millis(400);
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) fn options(patience: Duration) -> Options {
    Options { late: patience, stalled: patience, registered: 1 << 20, ..Options::default() }
}

pub(crate) fn shape(elements: u64) -> Shape {
    Shape { elements, dtype: Dtype::F32, op: Op::Sum, in_place: false }
}

/// Each rank of a communicator of threads does `part`.
pub(crate) fn together<T: Send>(
    world: u32,
    options: &Options,
    part: impl Fn(Communicator) -> T + Sync,
) -> Vec<T> {
    let all = Communicator::threads(world, options).unwrap();
    std::thread::scope(|scope| {
        let part = &part;
        let threads: Vec<_> = all.into_iter().map(|one| scope.spawn(move || part(one))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

pub(crate) fn fill(plan: &VerifiedPlan, rank: RankId, shape: Shape, seed: u64, memory: &mut Memory) {
    for (b, buffer) in plan.buffers.iter().enumerate() {
        let b = BufferId::new(b);
        if buffer.role == Role::Recv && !shape.in_place {
            memory.bytes_mut(b).fill(0xa5);
        }
        if buffer.role == Role::Send && buffer.at.holds(rank) {
            reference::fill(shape.dtype, shape.op, seed, rank, b, memory.bytes_mut(b));
        }
    }
}

/// How many elements differ from what the plan promises this rank.
pub(crate) fn wrong(plan: &VerifiedPlan, rank: RankId, shape: Shape, seed: u64, memory: &Memory) -> u64 {
    let promise = Reference::new(&plan.promise);
    let size = u64::from(shape.dtype.size());
    let mut wrong = 0;
    for (b, buffer) in plan.buffers.iter().enumerate().filter(|(_, buffer)| buffer.role == Role::Recv) {
        let b = BufferId::new(b);
        if !buffer.at.holds(rank) {
            continue;
        }
        for (block, list) in promise.clauses(b, rank) {
            let operands: Vec<Vec<u8>> = list
                .iter()
                .map(|place| {
                    let mut operand = vec![0; (shape.elements * size) as usize];
                    let first = u64::from(place.block) * shape.elements;
                    let of = (place.rank, place.buffer);
                    reference::fill_from(shape.dtype, shape.op, seed, of.0, of.1, first, &mut operand);
                    operand
                })
                .collect();
            let operands: Vec<&[u8]> = operands.iter().map(Vec::as_slice).collect();
            let start = (u64::from(block) * shape.elements * size) as usize;
            let got = &memory.bytes(b)[start..][..(shape.elements * size) as usize];
            wrong += reference::check(shape.dtype, shape.op, &operands, got).count;
        }
    }
    wrong
}

/// One call, checked.
pub(crate) fn checked(comm: &mut Communicator, id: PlanId, shape: Shape, seed: u64) -> Result<(), Error> {
    let (plan, rank) = (Arc::clone(comm.plan(id)), comm.rank());
    let mut memory = comm.memory(id, shape)?;
    fill(&plan, rank, shape, seed, &mut memory);
    comm.call(id, shape, &mut memory.buffers())?;
    assert_eq!(wrong(&plan, rank, shape, seed, &memory), 0, "{} {shape:?}", plan.header.algorithm);
    Ok(())
}

/// Numbers that are the same at all ranks.
pub(crate) fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}
