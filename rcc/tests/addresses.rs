//! Calls with buffers by their addresses do what typed ones do, and say what is wrong with them.

use rcc::collective::Collective;
use rcc::select::StandardCall;
use rcc::{At, Communicator, Dtype, Error, Kind, NamedAt, Op, Options, Prepared, Source};

fn at(memory: &mut [u32]) -> At {
    At { start: memory.as_mut_ptr().cast(), bytes: size_of_val(memory) }
}

/// Runs `work` at two ranks.
fn pair(work: impl Fn(&mut Communicator) + Sync) {
    let ranks = Communicator::threads(2, &Options::default()).unwrap();
    std::thread::scope(|scope| {
        for mut comm in ranks {
            let work = &work;
            scope.spawn(move || work(&mut comm));
        }
    });
}

fn made(comm: &mut Communicator, prepared: Result<Prepared<'_>, Error>) {
    let Prepared { plan, shape, mut buffers } = prepared.unwrap();
    comm.runtime().call(plan, shape, &mut buffers).unwrap();
}

#[test]
fn standard_calls_of_any_size_in_both_forms() {
    pair(|comm| {
        for count in [1, 1000, 50_000] {
            let mut mine: Vec<u32> = (0..count).map(|i| i * (comm.rank() + 1)).collect();
            let mut sum = vec![0; count as usize];
            let mut call = StandardCall::new(Collective::Allreduce, count.into(), Dtype::U32);
            let right = |sum: &[u32]| (0..count).zip(sum).all(|(i, &got)| got == 3 * i);
            let (from, to) = (at(&mut mine), at(&mut sum));
            // SAFETY: the memory is there, and nobody else uses it.
            unsafe { comm.call_at(&call, from, to) }.unwrap();
            assert!(right(&sum));
            sum.fill(0);
            // SAFETY: as above.
            let prepared = unsafe { comm.prepare_at(&call, from, at(&mut sum)) };
            made(comm, prepared);
            assert!(right(&sum));
            call.in_place = true;
            // SAFETY: as above.
            unsafe { comm.call_at(&call, from, from) }.unwrap();
            assert!(right(&mine));
        }
    });
}

#[test]
fn what_is_wrong_with_them_ends_nothing() {
    pair(|comm| {
        let mut memory = vec![1; 4001];
        let (low, high) = (at(&mut memory[..4000]), at(&mut memory[1..]));
        let call = StandardCall::new(Collective::Allreduce, 4000, Dtype::U32);
        let rooted = StandardCall { root: Some(2), ..StandardCall::new(Collective::Broadcast, 1, Dtype::U8) };
        let no_root = StandardCall { root: None, ..rooted };
        let short = At { bytes: 8, ..low };
        for (call, from, to) in [
            (call, low, high),
            (call, low, short),
            (call, low, At::NONE),
            (rooted, low, low),
            (no_root, low, low),
        ] {
            // SAFETY: the memory is there, and nobody else uses it.
            let refused = unsafe { comm.call_at(&call, from, to) }.unwrap_err();
            assert_eq!(refused.kind, Kind::Invalid, "{refused}");
        }
        comm.barrier().unwrap();
    });
}

#[test]
fn buffers_of_an_algorithm_by_their_names() {
    pair(|comm| {
        let ring = comm.compile(&Source::standard("std::allreduce::ring")).unwrap();
        let (mut mine, mut sum) = (vec![comm.rank() + 1; 5000], vec![0; 5000]);
        let (send, recv) = (Some(at(&mut mine)), Some(at(&mut sum)));
        let data = NamedAt { name: "data", send, recv, registered: false };
        let of = (Dtype::U32, Op::Sum);
        // SAFETY: the memory is there, and nobody else uses it.
        let prepared = unsafe { comm.prepare_named(ring, of, &[data]) };
        assert!(prepared.as_ref().is_ok_and(|prepared| !prepared.shape.in_place));
        made(comm, prepared);
        assert_eq!((mine[7], &sum[..]), (comm.rank() + 1, &[3; 5000][..]));
        let both = NamedAt { recv: send, ..data };
        // SAFETY: as above.
        let prepared = unsafe { comm.prepare_named(ring, of, &[both]) };
        assert!(prepared.as_ref().is_ok_and(|prepared| prepared.shape.in_place));
        made(comm, prepared);
        assert_eq!(mine, [3; 5000]);
        // SAFETY: as above.
        let refused = unsafe { comm.prepare_named(ring, of, &[NamedAt { name: "other", ..both }]) };
        let refused = refused.unwrap_err();
        assert!(refused.kind == Kind::Invalid && refused.to_string().contains("it reads data"), "{refused}");
    });
}
