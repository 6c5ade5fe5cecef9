//! A rank that never waits, but looks from time to time whether its call has ended, is told like any other why it never will.

#![allow(clippy::disallowed_methods, reason = "a deadline of the test's own")]

extern crate plan as rcc_plan;

mod plans;
mod ranks;

use std::pin::pin;
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use plan::verify::VerifiedPlan;
use ranks::{LONG, SOON, fill, options, shape, together, wrong};
use rcc_runtime::comm::{Communicator, Handle, Options, PlanId};
use rcc_runtime::error::Kind;
use rcc_runtime::exec::buffers::Memory;

/// How a rank looks.
#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    /// `Handle::test`, again and again.
    Tests,
    /// As a future that is polled again and again.
    Polls,
    /// `Handle::is_done`, while the thread that there is for it drives the call.
    Watches,
    /// Looks at another communicator's call, which is still under way; that drives this one too.
    Elsewhere,
}

const ALL: [How; 4] = [How::Tests, How::Polls, How::Watches, How::Elsewhere];

fn ring(n: u32) -> Arc<VerifiedPlan> {
    Arc::new(plans::ring(n))
}

fn with(how: How, patience: Duration) -> Options {
    Options { progress: how == How::Watches, ..options(patience) }
}

fn started(comm: &mut Communicator, id: PlanId) -> Handle<Memory> {
    let (plan, rank) = (Arc::clone(comm.plan(id)), comm.rank());
    let mut memory = comm.memory(id, shape(3000)).unwrap();
    fill(&plan, rank, shape(3000), 7, &mut memory);
    comm.start(id, shape(3000), memory).unwrap()
}

/// Looks until the call has ended; how it did.
fn looked(how: How, handle: Handle<Memory>, other: Option<&Handle<Memory>>) -> Kind {
    let start = Instant::now();
    let mut handle = pin!(handle);
    let ended = loop {
        assert!(start.elapsed() < LONG, "{how:?}: nothing is told");
        match how {
            How::Tests if handle.test() => break None,
            How::Watches if handle.is_done() => break None,
            How::Polls => {
                if let Poll::Ready(ended) = handle.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                    break Some(ended);
                }
            }
            How::Elsewhere if handle.is_done() => break None,
            How::Elsewhere => drop(other.map(Handle::test)),
            How::Tests | How::Watches => {}
        }
        std::thread::sleep(Duration::from_micros(50));
    };
    let (how_it_ended, _) = match ended {
        Some(ended) => ended,
        None => match handle.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(ended) => ended,
            Poll::Pending => panic!("it has ended"),
        },
    };
    how_it_ended.expect_err("one rank has never come").kind
}

/// Rank 0 starts a call and looks; what the other rank does instead.
fn alone(how: How, patience: Duration, other: impl Fn(Communicator, &Barrier) + Sync) -> Kind {
    let met = Barrier::new(2);
    let kinds = together(2, &with(how, patience), |mut comm| {
        let mut second = comm.duplicate().unwrap();
        let (id, of_second) = (comm.open(&ring(2)).unwrap(), second.open(&ring(2)).unwrap());
        if comm.rank().0 == 1 {
            // The second one stays, so that it is the first in which something is missing.
            other(comm, &met);
            return None;
        }
        let elsewhere = (how == How::Elsewhere).then(|| started(&mut second, of_second));
        let handle = started(&mut comm, id);
        met.wait();
        let kind = looked(how, handle, elsewhere.as_ref());
        drop(elsewhere);
        met.wait();
        Some(kind)
    });
    kinds[0].expect("rank 0 looks")
}

#[test]
fn a_rank_that_never_comes_is_late_for_who_only_looks() {
    // (Elsewhere it would be late at the same time.)
    for how in [How::Tests, How::Polls, How::Watches] {
        let kind = alone(how, SOON, |comm, met| {
            met.wait();
            met.wait();
            drop(comm);
        });
        assert_eq!(kind, Kind::Late, "{how:?}");
    }
}

#[test]
fn an_abort_is_seen_by_who_only_looks() {
    for how in ALL {
        let kind = alone(how, LONG * 10, |comm, met| {
            met.wait();
            comm.aborter().abort("enough");
            met.wait();
        });
        assert_eq!(kind, Kind::Aborted, "{how:?}");
    }
}

#[test]
fn a_rank_that_has_left_is_missed_by_who_only_looks() {
    for how in ALL {
        let kind = alone(how, LONG * 10, |comm, met| {
            met.wait();
            drop(comm);
            met.wait();
        });
        assert_ne!(kind, Kind::Late, "{how:?}");
    }
}

/// A call in a scope that is only asked whether it has ended.
#[test]
fn a_scope_is_told_as_well() {
    let kinds = together(2, &options(SOON), |mut comm| {
        let id = comm.open(&ring(2)).unwrap();
        let mut memory = comm.memory(id, shape(3000)).unwrap();
        if comm.rank().0 == 1 {
            // Until it has ended.
            while comm.failure().is_none() {
                std::thread::sleep(Duration::from_millis(1));
            }
            return None;
        }
        let ended = comm.scope(|scope| {
            let pending = scope.start(id, shape(3000), memory.buffers())?;
            let start = Instant::now();
            while !scope.test(&pending) {
                assert!(start.elapsed() < LONG, "nothing is told");
                std::thread::sleep(Duration::from_micros(50));
            }
            scope.wait(pending)
        });
        Some(ended.unwrap_err().kind)
    });
    assert_eq!(kinds[0], Some(Kind::Late));
}

/// What was waited for in vain before does not count against a call that begins later.
#[test]
fn looks_at_one_call_do_not_count_for_the_next() {
    together(2, &options(SOON), |mut comm| {
        let id = comm.open(&ring(2)).unwrap();
        for round in 0..4 {
            if comm.rank().0 == 1 {
                // Longer than half of what rank 0 has patience for.
                std::thread::sleep(SOON.mul_f64(0.6));
            }
            let handle = started(&mut comm, id);
            let start = Instant::now();
            while !handle.test() {
                assert!(start.elapsed() < LONG, "round {round}");
                std::thread::sleep(Duration::from_micros(50));
            }
            let (how, memory) = handle.wait();
            how.unwrap();
            assert_eq!(wrong(comm.plan(id), comm.rank(), shape(3000), 7, &memory), 0);
        }
    });
}
