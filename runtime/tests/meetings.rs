//! Communicators that are gone, and ranks that come as others give up: what is left of them.

#![allow(clippy::disallowed_methods, reason = "ranks that come late, and for how long that takes")]

extern crate plan as rcc_plan;

mod plans;
mod ranks;

use std::sync::Arc;
use std::time::{Duration, Instant};

use plan::verify::VerifiedPlan;
use ranks::{LONG, checked, options, shape, together};
use rcc_runtime::comm::{Communicator, Options};
use rcc_runtime::error::Kind;

fn ring(n: u32) -> Arc<VerifiedPlan> {
    Arc::new(plans::ring(n))
}

/// What a communicator has opened is none of another one's, also if that has come to lie where the first one was.
#[test]
fn plans_are_refused_by_every_other_communicator() {
    let one = || Communicator::threads(1, &options(LONG)).unwrap().remove(0);
    let mut stale = Vec::new();
    for seed in 0..20 {
        let mut comm = one();
        let id = comm.open(&ring(1)).unwrap();
        checked(&mut comm, id, shape(10), seed).unwrap();
        for &other in &stale {
            assert_eq!(comm.has_opened(other).unwrap_err().kind, Kind::Invalid);
            assert_eq!(comm.memory(other, shape(10)).unwrap_err().kind, Kind::Invalid);
        }
        stale.push(id);
    }
}

/// Rank 1 comes to a split just when rank 0 gives up. It may succeed once, since both had said what they came for: then what it has got is ended soon,
/// and so is the communicator; none is at a loss.
#[test]
fn who_comes_when_others_give_up() {
    let late = Duration::from_millis(30);
    let (mut both, mut none) = (0, 0);
    // When that is, is found by halves.
    let (mut after, mut step) = (late, late);
    for _ in 0..40 {
        let began = Instant::now();
        let outcomes = together(2, &Options { late, stalled: late, ..options(LONG) }, |mut comm| {
            if comm.rank().0 == 1 {
                std::thread::sleep(after);
            }
            let child = comm.split(Some(0), 0);
            let ended = comm.failure().is_some();
            match child {
                Ok(child) => {
                    let mut child = child.unwrap();
                    let id = child.open(&ring(2));
                    let call = id.and_then(|id| checked(&mut child, id, shape(100), 1).map(|_| ()));
                    // (Who has found that the other is not there stays until that is seen.)
                    (true, ended, call.err().map(|error| error.kind))
                }
                Err(error) => {
                    assert!(ended && matches!(error.kind, Kind::Late | Kind::PeerDied), "{error}");
                    (false, ended, Some(error.kind))
                }
            }
        });
        assert!(began.elapsed() < LONG / 4, "somebody was at a loss");
        match (outcomes[0].0, outcomes[1].0) {
            (true, true) => {
                both += 1;
                after += step;
                let late = |outcome: &(bool, bool, Option<Kind>)| {
                    outcome.2.is_none_or(|kind| kind != Kind::Internal)
                };
                assert!(outcomes.iter().all(late), "{outcomes:?}");
            }
            (false, false) => {
                none += 1;
                after = after.saturating_sub(step);
            }
            // Who succeeded alone has a child that ends, of a parent that has ended.
            _ => {
                let alone = outcomes.iter().find(|outcome| outcome.0).unwrap();
                assert!(matches!(alone.2, Some(Kind::PeerDied | Kind::Late)), "{outcomes:?}");
            }
        }
        step = (step * 4 / 5).max(Duration::from_micros(20));
    }
    assert!(both > 0 && none > 0, "{both} {none}");
}
