//! Every collective, typed, against its definition: all types, operators, forms and kinds of memory.

use plan::dtype::Op;
use plan::ids::{BufferId, RankId};
use plan::reference;
use rcc::{Communicator, Element, Error, F8E4m3, F8E5m2, Kind, Options, Registered, bf16, f16};

/// Runs ranks as threads.
fn ranks<T: Send>(world: u32, options: &Options, work: impl Fn(Communicator) -> T + Sync) -> Vec<T> {
    let all = Communicator::threads(world, options).unwrap();
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = all.into_iter().map(|one| scope.spawn(move || work(one))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn as_bytes<T: Element>(elements: &[T]) -> &[u8] {
    // SAFETY: elements have no padding.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}

/// The data of a rank: all other ranks can compute it.
fn data<T: Element>(of: u32, op: Op, count: usize) -> Vec<T> {
    let mut bytes = vec![0; count * size_of::<T>()];
    reference::fill(T::DTYPE, op, 17, RankId(of), BufferId(0), &mut bytes);
    let mut all: Vec<T> = Vec::with_capacity(count);
    // SAFETY: as many bytes as the vector has room for, and every pattern is a value.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), all.as_mut_ptr().cast(), bytes.len());
        all.set_len(count);
    }
    all
}

/// What all ranks gave must have come to this.
#[track_caller]
fn is<T: Element>(what: &str, op: Op, operands: &[&[T]], got: &[T]) {
    let operands: Vec<&[u8]> = operands.iter().map(|operand| as_bytes(operand)).collect();
    let wrong = reference::check(T::DTYPE, op, &operands, as_bytes(got));
    assert_eq!(wrong.count, 0, "{what} {} {op}: {:?}", T::DTYPE, wrong.first);
    assert!(operands.iter().all(|operand| operand.len() == size_of_val(got)));
}

fn empty<T: Element>(count: usize) -> Vec<T> {
    data(999, Op::Sum, count)
}

/// All collectives with blocks of `count` elements.
fn all_calls<T: Element>(comm: &mut Communicator, count: usize, op: Op) -> Result<(), Error> {
    let (n, me) = (comm.world(), comm.rank());
    let (all, own) = (count * n as usize, count * me as usize..count * (me + 1) as usize);
    let one: Vec<Vec<T>> = (0..n).map(|rank| data(rank, op, count)).collect();
    let many: Vec<Vec<T>> = (0..n).map(|rank| data(rank + 100, op, all)).collect();
    let mine = &one[me as usize];
    let sum: Vec<&[T]> = one.iter().map(Vec::as_slice).collect();
    let block = |of: &[Vec<T>], block: u32| -> Vec<Vec<T>> {
        let range = block as usize * count..(block as usize + 1) * count;
        of.iter().map(|data| data[range.clone()].to_vec()).collect()
    };
    let concat = |parts: &[Vec<T>]| parts.concat();

    let mut recv = empty(count);
    comm.all_reduce(mine, &mut recv, op)?;
    is("allreduce", op, &sum, &recv);
    let mut recv = mine.clone();
    comm.all_reduce_in_place(&mut recv, op)?;
    is("allreduce in place", op, &sum, &recv);

    let mut recv = empty(all);
    comm.all_gather(mine, &mut recv)?;
    is("allgather", op, &[&concat(&one)], &recv);
    let mut recv = empty(all);
    recv[own.clone()].copy_from_slice(mine);
    comm.all_gather_in_place(&mut recv)?;
    is("allgather in place", op, &[&concat(&one)], &recv);

    let scattered = block(&many, me);
    let operands: Vec<&[T]> = scattered.iter().map(Vec::as_slice).collect();
    let mut recv = empty(count);
    comm.reduce_scatter(&many[me as usize], &mut recv, op)?;
    is("reducescatter", op, &operands, &recv);
    let mut recv = many[me as usize].clone();
    comm.reduce_scatter_in_place(&mut recv, op)?;
    is("reducescatter in place", op, &operands, &recv[own.clone()]);

    let mut recv = empty(all);
    comm.all_to_all(&many[me as usize], &mut recv)?;
    is("alltoall", op, &[&concat(&scattered)], &recv);

    comm.barrier()?;
    for root in 0..n {
        let mut both = mine.clone();
        comm.broadcast(&mut both, root)?;
        is("broadcast", op, &[&one[root as usize]], &both);

        let at_root = me == root;
        let mut recv = empty(if at_root { count } else { 0 });
        comm.reduce(mine, &mut recv, op, root)?;
        let mut both = mine.clone();
        comm.reduce_in_place(&mut both, op, root)?;
        if at_root {
            is("reduce", op, &sum, &recv);
            is("reduce in place", op, &sum, &both);
        } else {
            is("reduce leaves the data of others", op, &[mine], &both);
        }

        let mut recv = empty(if at_root { all } else { 0 });
        comm.gather(mine, &mut recv, root)?;
        let mut both = if at_root { empty(all) } else { mine.clone() };
        if at_root {
            both[own.clone()].copy_from_slice(mine);
        }
        comm.gather_in_place(&mut both, root)?;
        if at_root {
            is("gather", op, &[&concat(&one)], &recv);
            is("gather in place", op, &[&concat(&one)], &both);
        }

        let send = if at_root { many[root as usize].clone() } else { Vec::new() };
        let mut recv = empty(count);
        comm.scatter(&send, &mut recv, root)?;
        let wanted = many[root as usize][own.clone()].to_vec();
        is("scatter", op, &[&wanted], &recv);
        let mut both = if at_root { send } else { empty(count) };
        comm.scatter_in_place(&mut both, root)?;
        is("scatter in place", op, &[&wanted], if at_root { &both[own.clone()] } else { &both });
    }
    Ok(())
}

#[test]
fn every_collective_in_every_type_and_size() {
    for world in 1..=5 {
        ranks(world, &Options::default(), |mut comm| {
            for count in [0, 1, 7, 1000] {
                all_calls::<f32>(&mut comm, count, Op::Sum).unwrap();
            }
            all_calls::<f64>(&mut comm, 300, Op::Prod).unwrap();
            all_calls::<f16>(&mut comm, 5000, Op::Max).unwrap();
            all_calls::<bf16>(&mut comm, 33, Op::Avg).unwrap();
            all_calls::<F8E4m3>(&mut comm, 9, Op::Min).unwrap();
            all_calls::<F8E5m2>(&mut comm, 70, Op::Sum).unwrap();
            all_calls::<i8>(&mut comm, 10_001, Op::Sum).unwrap();
            all_calls::<i32>(&mut comm, 12, Op::Avg).unwrap();
            all_calls::<i64>(&mut comm, 129, Op::Min).unwrap();
            all_calls::<u8>(&mut comm, 3, Op::Prod).unwrap();
            all_calls::<u32>(&mut comm, 40_000, Op::Sum).unwrap();
            all_calls::<u64>(&mut comm, 5, "premulsum:3".parse().unwrap()).unwrap();
        });
    }
}

#[test]
fn registered_memory_serves_as_any_other() {
    let options = Options::default().registered(64 << 20);
    ranks(3, &options, |mut comm| {
        for count in [3, 3000, 300_000] {
            let one: Vec<Vec<f32>> = (0..3).map(|rank| data(rank, Op::Sum, count)).collect();
            let operands: Vec<&[f32]> = one.iter().map(Vec::as_slice).collect();
            let mine = &one[comm.rank() as usize];
            let mut send: Registered<f32> = comm.alloc(count).unwrap();
            let mut recv: Registered<f32> = comm.alloc(count).unwrap();
            let mut all: Registered<f32> = comm.alloc(3 * count).unwrap();
            send.copy_from_slice(mine);
            comm.all_reduce(&send, &mut recv, Op::Sum).unwrap();
            is("registered allreduce", Op::Sum, &operands, &recv);
            comm.all_gather(&send, &mut all).unwrap();
            is("registered allgather", Op::Sum, &[&one.concat()], &all);
            comm.all_reduce_in_place(&mut send, Op::Avg).unwrap();
            is("registered allreduce in place", Op::Avg, &operands, &send);
            send.copy_from_slice(mine);
            for root in 0..3 {
                let at_root = comm.rank() == root;
                comm.gather(&send, &mut all, root).unwrap();
                if at_root {
                    is("registered gather", Op::Sum, &[&one.concat()], &all);
                }
                recv.copy_from_slice(mine);
                comm.broadcast(&mut recv, root).unwrap();
                is("registered broadcast", Op::Sum, &[&one[root as usize]], &recv);
            }
            // One side alone is as good as plain.
            let mut plain = vec![0.0; count];
            comm.all_reduce(&send, &mut plain, Op::Sum).unwrap();
            is("half registered", Op::Sum, &operands, &plain);
            drop((all, recv, send));
            comm.barrier().unwrap();
        }
        let error = comm.alloc::<f64>(1 << 40).unwrap_err();
        assert_eq!(error.kind, Kind::Resource);
    });
}

#[test]
fn what_makes_no_sense_is_refused_and_ends_nothing() {
    ranks(2, &Options::default(), |mut comm| {
        let (send, mut recv) = (vec![1.0f32; 10], vec![0.0f32; 9]);
        let invalid = |outcome: Result<(), Error>, says: &str| {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind, Kind::Invalid);
            assert!(error.message.contains(says), "{error}");
        };
        invalid(comm.all_reduce(&send, &mut recv, Op::Sum), "has 9 elements, and must have 10");
        invalid(comm.all_gather(&send, &mut recv), "must have 20");
        invalid(comm.all_gather_in_place(&mut recv), "no block for each of 2 ranks");
        invalid(comm.all_to_all(&[1.0f32; 3], &mut recv), "no block for each");
        invalid(comm.broadcast(&mut recv, 2), "root 2 is no rank");
        let mut recv = vec![0.0f32; 10];
        comm.all_reduce(&send, &mut recv, Op::Sum).unwrap();
        assert_eq!(recv, [2.0; 10]);
    });
}

#[test]
fn different_calls_end_at_all_ranks_and_are_shown() {
    type Call = fn(&mut Communicator) -> Result<(), Error>;
    let reduce: Call = |comm| comm.all_reduce_in_place(&mut [1.0f32; 3000], Op::Sum);
    let other: [(Call, &str); 6] = [
        (|comm| comm.all_reduce_in_place(&mut [1.0f32; 3001], Op::Sum), "count"),
        (|comm| comm.all_reduce_in_place(&mut [1.0f32; 90_000], Op::Sum), "count"),
        (|comm| comm.all_reduce_in_place(&mut [1.0f32; 30], Op::Sum), "count"),
        (|comm| comm.all_reduce_in_place(&mut [1i32; 3000], Op::Sum), "element type"),
        (|comm| comm.all_reduce_in_place(&mut [1.0f32; 3000], Op::Max), "operator"),
        (|comm| comm.broadcast(&mut [1.0f32; 3000], 0), "algorithm"),
    ];
    for (other, differs) in other {
        for warm in [false, true] {
            let errors = ranks(3, &Options::default(), |mut comm| {
                if warm {
                    reduce(&mut comm).unwrap();
                }
                let outcome = if comm.rank() == 1 { other(&mut comm) } else { reduce(&mut comm) };
                outcome.unwrap_err()
            });
            for error in errors {
                assert_eq!(error.kind, Kind::Mismatch, "{error}");
                assert!(error.message.contains(differs), "{differs}, {warm}: {error}");
            }
        }
    }
}

#[test]
fn parts_and_survivors_call_as_any_others() {
    ranks(5, &Options::default(), |mut comm| {
        let rank = comm.rank();
        let mut part = comm.split(Some(rank % 2), -i64::from(rank)).unwrap().unwrap();
        assert_eq!(
            (part.world(), part.rank()),
            if rank % 2 == 0 { (3, 2 - rank / 2) } else { (2, 1 - rank / 2) }
        );
        all_calls::<f32>(&mut part, 2000, Op::Sum).unwrap();
        assert!(comm.split(None, 0).unwrap().is_none());
        let mut other = comm.duplicate().unwrap();
        all_calls::<i32>(&mut other, 1500, Op::Max).unwrap();
        all_calls::<i32>(&mut comm, 1500, Op::Max).unwrap();
        if rank == 3 {
            return;
        }
        // One has left: what ends for the others goes on among them.
        drop((part, other));
        comm.all_reduce_in_place(&mut [0u8; 9000], Op::Sum).unwrap_err();
        let mut left = comm.shrink().unwrap();
        assert_eq!(left.world(), 4);
        all_calls::<f64>(&mut left, 700, Op::Min).unwrap();
    });
}
