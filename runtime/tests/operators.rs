//! Operators of the user's own: results compared with a fold over all operands, whatever the plan's order; different operators, and operators that panic,
//! are told at all ranks.

extern crate plan as rcc_plan;

mod plans;
mod ranks;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plan::dtype::{Dtype, Op};
use plan::ids::{BufferId, RankId};
use plan::plan::Role;
use plan::reference::{self, Reference};
use plan::verify::VerifiedPlan;
use ranks::{LONG, checked, fill, options, shape, together};
use rcc_runtime::comm::Communicator;
use rcc_runtime::error::{Error, Kind};
use rcc_runtime::exec::Shape;
use rcc_runtime::exec::buffers::Memory;
use rcc_runtime::exec::operator::{Named, Operator};

/// The place of the largest: pairs of a 32-bit number and a 32-bit place, the lower place where numbers are equal.
fn largest() -> Arc<dyn Operator> {
    Arc::new(Named::new("largest and its place", |into: &mut [u8], other: &[u8]| {
        for (a, b) in into.chunks_exact_mut(8).zip(other.chunks_exact(8)) {
            let pair = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap());
            let key = |word: u64| (word >> 32, std::cmp::Reverse(word as u32));
            if key(pair(b)) > key(pair(a)) {
                a.copy_from_slice(b);
            }
        }
    }))
}

/// Exclusive or of all bytes, whatever the type.
fn xor() -> Arc<dyn Operator> {
    Arc::new(Named::new("xor", |into: &mut [u8], other: &[u8]| {
        into.iter_mut().zip(other).for_each(|(a, b)| *a ^= b);
    }))
}

/// How many bytes differ from what a fold of all operands gives.
fn wrong(
    plan: &VerifiedPlan,
    rank: RankId,
    shape: Shape,
    seed: u64,
    by: &dyn Operator,
    memory: &Memory,
) -> usize {
    let promise = Reference::new(&plan.promise);
    let bytes = shape.elements as usize * shape.dtype.size() as usize;
    let mut wrong = 0;
    for (b, buffer) in plan.buffers.iter().enumerate() {
        let b = BufferId::new(b);
        if buffer.role != Role::Recv || !buffer.at.holds(rank) {
            continue;
        }
        for (block, list) in promise.clauses(b, rank) {
            let operands = list.iter().map(|place| {
                let mut operand = vec![0; bytes];
                let first = u64::from(place.block) * shape.elements;
                reference::fill_from(
                    shape.dtype,
                    shape.op,
                    seed,
                    place.rank,
                    place.buffer,
                    first,
                    &mut operand,
                );
                operand
            });
            let expected = operands.reduce(|mut a, b| {
                by.combine(&mut a, &b);
                a
            });
            let got = &memory.bytes(b)[block as usize * bytes..][..bytes];
            wrong += expected.unwrap().iter().zip(got).filter(|(a, b)| a != b).count();
        }
    }
    wrong
}

#[test]
fn results_are_those_of_a_fold() {
    let mut all = vec![plans::ring(4), plans::fold_at_root(4, true), plans::fold_at_root(4, false)];
    all.extend(plans::all_direct(4).into_iter().filter(|plan| plan.promise.reduces()));
    all.extend(plans::all_blocks(4).into_iter().filter(|plan| plan.promise.reduces()));
    let all: Vec<Arc<VerifiedPlan>> = all.into_iter().map(Arc::new).collect();
    assert!(all.len() > 6);
    together(4, &options(LONG), |mut comm| {
        let rank = comm.rank();
        for plan in &all {
            let id = comm.open(plan).unwrap();
            for (operator, dtype) in [(largest(), Dtype::U64), (xor(), Dtype::F16), (xor(), Dtype::U8)] {
                let by = comm.reducing(id, Arc::clone(&operator)).unwrap();
                for (seed, elements) in [0, 1, 5, 300, 5000].into_iter().enumerate() {
                    for in_place in [false, true] {
                        let forms = plan.header.forms;
                        if !if in_place { forms.same } else { forms.disjoint } {
                            continue;
                        }
                        let (seed, shape) = (seed as u64, Shape { elements, dtype, op: Op::Sum, in_place });
                        let mut memory = comm.memory(by, shape).unwrap();
                        fill(plan, rank, shape, seed, &mut memory);
                        comm.call(by, shape, &mut memory.buffers()).unwrap();
                        let name = &plan.header.algorithm;
                        assert_eq!(
                            wrong(plan, rank, shape, seed, &*operator, &memory),
                            0,
                            "{name} {shape:?}"
                        );
                    }
                }
            }
            // The plan itself sums as before.
            checked(&mut comm, id, shape(300), 1).unwrap();
        }
    });
}

fn ended_by(operator: impl Fn(u32) -> Option<Arc<dyn Operator>> + Sync) -> Vec<Error> {
    let ring = Arc::new(plans::ring(3));
    together(3, &options(LONG), |mut comm| {
        let id = comm.open(&ring).unwrap();
        let by = operator(comm.rank().0).map_or(id, |operator| comm.reducing(id, operator).unwrap());
        let mut call = || {
            let mut memory = comm.memory(by, shape(100))?;
            comm.call(by, shape(100), &mut memory.buffers())
        };
        let calls = call().and_then(|()| call());
        calls.and_then(|()| comm.barrier()).unwrap_err()
    })
}

/// An operator's name is asked once: what it says later does not make it another one, nor cost anything.
#[test]
fn a_name_is_asked_once() {
    struct Fickle(AtomicUsize);
    impl Operator for Fickle {
        fn name(&self) -> &str {
            ["first", "second", "third"][self.0.fetch_add(1, Ordering::Relaxed).min(2)]
        }
        fn combine(&self, into: &mut [u8], other: &[u8]) {
            xor().combine(into, other);
        }
    }
    together(2, &options(LONG), |mut comm| {
        let plan = Arc::new(plans::ring(2));
        let opened = comm.open(&plan).unwrap();
        let fickle = Arc::new(Fickle(AtomicUsize::new(0)));
        let by = comm.reducing(opened, Arc::clone(&fickle) as Arc<dyn Operator>).unwrap();
        // Rank 1 meets its shapes again, which it had forgotten, and both are of one mind.
        for elements in (0..12).chain(0..12) {
            let shape = shape(elements);
            let mut memory = comm.memory(opened, shape).unwrap();
            fill(&plan, comm.rank(), shape, 3, &mut memory);
            comm.call(by, shape, &mut memory.buffers()).unwrap();
            assert_eq!(wrong(&plan, comm.rank(), shape, 3, &*xor(), &memory), 0);
        }
        assert_eq!(fickle.0.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn ranks_that_combine_otherwise_are_told() {
    for other in [Some(largest()), None] {
        for error in ended_by(|rank| if rank == 1 { other.clone() } else { Some(xor()) }) {
            assert_eq!(error.kind, Kind::Mismatch, "{error}");
            assert!(
                error.message.contains("differ in operator") && error.message.contains("\"xor\""),
                "{error}"
            );
        }
    }
}

#[test]
fn an_operator_that_panics_ends_the_call_for_all() {
    let ends = |rank| -> Option<Arc<dyn Operator>> {
        Some(Arc::new(Named::new("ends", move |_: &mut [u8], _: &[u8]| assert_ne!(rank, 2, "for a test"))))
    };
    for error in ended_by(ends) {
        assert_eq!((error.kind, &error.culprits[..]), (Kind::Aborted, &[2][..]), "{error}");
        assert!(error.message.contains("`ends` panicked at rank 2"), "{error}");
    }
}

#[test]
fn what_is_no_operator_is_refused() {
    let ring = Arc::new(plans::ring(1));
    let mut comm = Communicator::threads(1, &options(LONG)).unwrap().remove(0);
    let id = comm.open(&ring).unwrap();
    for name in ["", "two\nlines", &"long".repeat(17)] {
        let operator = Arc::new(Named::new(name, |_: &mut [u8], _: &[u8]| {}));
        assert_eq!(comm.reducing(id, operator).unwrap_err().kind, Kind::Invalid);
    }
    let by = comm.reducing(id, xor()).unwrap();
    let mut memory = comm.memory(by, shape(5)).unwrap();
    let maximum = Shape { op: Op::Max, ..shape(5) };
    assert_eq!(comm.call(by, maximum, &mut memory.buffers()).unwrap_err().kind, Kind::Invalid);
    let handle = comm.start(by, shape(5), memory).unwrap();
    handle.wait().0.unwrap();
    let mut other = Communicator::threads(1, &options(LONG)).unwrap().remove(0);
    assert_eq!(other.reducing(id, xor()).unwrap_err().kind, Kind::Invalid);
}
