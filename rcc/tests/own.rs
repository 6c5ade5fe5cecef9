//! A user's own algorithms, plans and operators; and the plans of standard calls, several at once.

#![allow(clippy::disallowed_methods, reason = "writes plan files")]

use std::sync::Arc;

use plan::dtype::Dtype;
use rcc::collective::Collective;
use rcc::{Arguments, Communicator, Error, Kind, Named, Op, Options, Source, StandardCall};
use runtime::exec::Shape;
use runtime::exec::buffers::Buffers;

fn ranks<T: Send>(world: u32, work: impl Fn(Communicator) -> T + Sync) -> Vec<T> {
    let all = Communicator::threads(world, &Options::default().registered(1 << 20)).unwrap();
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = all.into_iter().map(|one| scope.spawn(move || work(one))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

const RING: &str = include_str!("../../examples/02_ring.coll");

#[test]
fn a_program_is_compiled_and_called_by_the_names_of_its_buffers() {
    ranks(3, |mut comm| {
        let rank = comm.rank();
        let ring = comm.compile(&Source::new("02_ring.coll", RING)).unwrap();
        assert_eq!(comm.plan(ring).header.algorithm, "ring");
        for count in [0, 1, 1000, 100_000] {
            let data = vec![f64::from(rank + 1); count];
            let mut sum = vec![0.0; count];
            let arguments = Arguments::new().send("data", &data).recv("data", &mut sum);
            comm.call(ring, Op::Sum, arguments).unwrap();
            assert!(sum.iter().all(|&got| got == 6.0));
            let mut both = data;
            comm.call(ring, Op::Prod, Arguments::new().both("data", &mut both)).unwrap();
            assert!(both.iter().all(|&got| got == 6.0));
        }
        // In place as the collective declares it, and with a parameter.
        let gather =
            Source { algorithm: Some("binomial".to_string()), ..Source::standard("std::gather::binomial") };
        assert!(comm.compile(&gather).is_err(), "standard algorithms have full names");
        let gather = comm.compile(&Source::standard("std::gather::binomial").param("root", "1")).unwrap();
        if rank == 1 {
            let mut all = vec![9u32; 12];
            all[4..8].fill(rank);
            let parts = [("input", 4..8), ("output", 0..12)];
            comm.call(gather, Op::Sum, Arguments::new().overlapping(&mut all, &parts)).unwrap();
            assert_eq!(all, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
        } else {
            let mut own = vec![rank; 4];
            let parts = [("input", 0..4)];
            comm.call(gather, Op::Sum, Arguments::new().overlapping(&mut own, &parts)).unwrap();
        }
    });
}

#[test]
fn what_is_of_another_communicator_or_another_world_is_refused() {
    ranks(2, |mut comm| {
        let ring = comm.compile(&Source::new("02_ring.coll", RING)).unwrap();
        let mut other = comm.duplicate().unwrap();
        let mut data = [1.0f32; 4];
        let refused = other.call(ring, Op::Sum, Arguments::new().both("data", &mut data)).unwrap_err();
        assert_eq!(refused.kind, Kind::Invalid, "{refused}");
        comm.call(ring, Op::Sum, Arguments::new().both("data", &mut data)).unwrap();
        assert_eq!(data, [2.0; 4]);
    });
    // 2^31 + 1 times two is two, where numbers wrap.
    for shape in [vec![65_536, 65_536], vec![(1 << 31) + 1, 2]] {
        let errors = ranks(2, |mut comm| {
            comm.compile(&Source { shape: shape.clone(), ..Source::new("02_ring.coll", RING) }).unwrap_err()
        });
        assert!(errors.iter().all(|error| error.message.contains("has not 2 ranks")), "{errors:?}");
    }
}

#[test]
fn registered_buffers_are_reached_into() {
    ranks(2, |mut comm| {
        let source = Source { registered: true, bytes: Some(1 << 20), ..Source::new("02_ring.coll", RING) };
        let ring = comm.compile(&source).unwrap();
        let mut data = comm.alloc::<u64>(10_000).unwrap();
        data.fill(u64::from(comm.rank()) + 5);
        comm.call(ring, Op::Max, Arguments::new().both("data", &mut data)).unwrap();
        assert!(data.iter().all(|&got| got == 6));
    });
}

#[test]
fn a_wrong_program_is_refused_at_all_ranks_with_what_the_compiler_says() {
    let wrong = RING.replace("hop in 0..n-1", "hop in 0..n-2");
    let messages = ranks(4, |mut comm| {
        let error = comm.compile(&Source::new("wrong.coll", wrong.as_str())).unwrap_err();
        // It ends nothing.
        comm.barrier().unwrap();
        comm.compile(&Source::new("02_ring.coll", RING)).unwrap();
        (error.kind, error.message.clone())
    });
    for (kind, message) in messages {
        assert_eq!(kind, Kind::Invalid);
        assert!(message.contains("coll::promise") && message.contains("wrong.coll:"), "{message}");
    }
}

#[test]
fn different_programs_are_a_mismatch() {
    let errors = ranks(2, |mut comm| {
        let text = RING.replace("ring", if comm.rank() == 0 { "ring" } else { "gnir" });
        comm.compile(&Source::new("ring.coll", text)).unwrap_err()
    });
    assert!(errors.iter().all(|error| error.kind == Kind::Mismatch), "{errors:?}");
}

#[test]
fn plan_files_are_loaded_and_what_is_none_is_refused_at_all_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ring.plan");
    let [plan, damaged] = ["ring.plan", "damaged.plan"].map(|name| folder.path().join(name));
    let bytes = ranks(3, |mut comm| {
        let ring = comm.compile(&Source::new("02_ring.coll", RING)).unwrap();
        comm.plan(ring).plan().to_bytes()
    });
    std::fs::write(&path, &bytes[0]).unwrap();
    let mut spoilt = bytes[0].clone();
    let last = spoilt.len() - 1;
    spoilt[last] ^= 1;
    std::fs::write(&damaged, spoilt).unwrap();
    ranks(3, |mut comm| {
        let ring = comm.load(&plan).unwrap();
        let mut data = vec![comm.rank() as u8; 5000];
        comm.call(ring, Op::Sum, Arguments::new().both("data", &mut data)).unwrap();
        assert_eq!(data, [3; 5000]);
        // One rank's file alone is damaged, or not there: all hear of it.
        let mine = if comm.rank() == 2 { &damaged } else { &plan };
        let error = comm.load(mine).unwrap_err();
        assert!(error.kind == Kind::Invalid && error.message.contains("damaged.plan"), "{error}");
        let error = comm.load(folder.path().join("gone.plan")).unwrap_err();
        assert!(error.message.contains("gone.plan"), "{error}");
        comm.barrier().unwrap();
    });
    // Of another world.
    let errors = ranks(2, |mut comm| comm.load(&plan).unwrap_err());
    assert!(errors.iter().all(|error| error.kind == Kind::Invalid && error.message.contains("3 ranks")));
}

#[test]
fn arguments_that_do_not_fit_are_refused_and_end_nothing() {
    ranks(2, |mut comm| {
        let ring = comm.compile(&Source::new("02_ring.coll", RING)).unwrap();
        let (a, mut b, mut c) = (vec![1.0f32; 10], vec![0.0f32; 9], vec![0u8; 40]);
        let invalid = |outcome: Result<(), Error>, says: &str| {
            let error = outcome.unwrap_err();
            assert!(error.kind == Kind::Invalid && error.to_string().contains(says), "{says}: {error}");
        };
        invalid(comm.call(ring, Op::Sum, Arguments::new()), "at least one buffer");
        invalid(comm.call(ring, Op::Sum, Arguments::new().send("dat", &a)), "there are data");
        invalid(
            comm.call(ring, Op::Sum, Arguments::new().send("data", &a).recv("data", &mut b)),
            "must have",
        );
        invalid(
            comm.call(ring, Op::Sum, Arguments::new().send("data", &a).recv("data", &mut c)),
            "of one type",
        );
        invalid(comm.call(ring, Op::Sum, Arguments::new().send("data", &a)), "must have");
        let parts = [("data", 5..20)];
        invalid(comm.call(ring, Op::Sum, Arguments::new().overlapping(&mut b, &parts)), "not within");
        comm.call(ring, Op::Sum, Arguments::new().both("data", &mut b)).unwrap();
    });
}

#[test]
fn plans_of_standard_calls_combine_by_an_operator_of_ones_own_and_run_at_once() {
    ranks(3, |mut comm| {
        let rank = u64::from(comm.rank());
        let call = StandardCall::new(Collective::Allreduce, 5000, Dtype::U64);
        let reduce = comm.select(&call).unwrap();
        let xor = Named::new("xor", |into: &mut [u8], other: &[u8]| {
            into.iter_mut().zip(other).for_each(|(into, other)| *into ^= other);
        });
        let xor = comm.reducing(reduce, Arc::new(xor)).unwrap();
        let (send, mut recv) = (vec![1u64 << rank; 5000], vec![0u64; 5000]);
        comm.call(xor, Op::Sum, Arguments::new().send("data", &send).recv("data", &mut recv)).unwrap();
        assert_eq!(recv, [7; 5000]);

        let gather = comm.select(&StandardCall::new(Collective::Allgather, 3000, Dtype::U8)).unwrap();
        let (bytes, mut all) = (vec![rank as u8; 3000], vec![9u8; 9000]);
        let mut sums = vec![1u8; 5000];
        let shape = |elements| Shape { elements, dtype: Dtype::U8, op: Op::Sum, in_place: false };
        let plans = [gather, reduce].map(|one| Arc::clone(comm.plan(one)));
        let at = |plan: usize, name: &str, wanted| {
            let found = plans[plan].buffers.iter().position(|b| b.name == name && b.role == wanted);
            plan::ids::BufferId::new(found.unwrap())
        };
        use plan::plan::Role::{Recv, Send};
        let ones = vec![1u8; 5000];
        comm.runtime()
            .scope(|scope| {
                let buffers = Buffers::new(&plans[0]).send(at(0, "input", Send), &bytes);
                let first = scope.start(
                    gather.plan_id(),
                    shape(3000),
                    buffers.recv(at(0, "output", Recv), &mut all),
                )?;
                let buffers = Buffers::new(&plans[1]).send(at(1, "data", Send), &ones);
                let second = scope.start(
                    reduce.plan_id(),
                    shape(5000),
                    buffers.recv(at(1, "data", Recv), &mut sums),
                )?;
                scope.wait(second)?;
                scope.wait(first)
            })
            .unwrap();
        assert_eq!(sums, [3; 5000]);
        assert!(all.chunks(3000).zip(0..).all(|(part, of)| part.iter().all(|&got| got == of)));

        for (call, says) in [
            (StandardCall::new(Collective::Sendrecv, 1, Dtype::U8), "no call of sendrecv"),
            (
                StandardCall { root: None, ..StandardCall::new(Collective::Gather, 1, Dtype::U8) },
                "needs a root",
            ),
            (StandardCall { root: Some(3), ..StandardCall::new(Collective::Gather, 1, Dtype::U8) }, "root 3"),
            (
                StandardCall { in_place: true, ..StandardCall::new(Collective::Alltoall, 1, Dtype::U8) },
                "in place",
            ),
        ] {
            assert!(comm.select(&call).unwrap_err().message.contains(says), "{says}");
        }
    });
}
