//! Calls that are ended at random points, after which their callers scribble over their buffers, and free them: no rank reports success with
//! wrong data, and no scribble shows up anywhere, by messages, by messages to many, and by direct access.
//!
//! `RCC_ABORTS` sets how many runs of each plan there are, `RCC_TEST_SEED` which. Also to be run under a race detector.

#![allow(clippy::disallowed_methods, reason = "how often and with which seed is said by the environment")]

extern crate plan as rcc_plan;

mod plans;
mod ranks;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use plan::ids::{BufferId, RankId};
use plan::verify::VerifiedPlan;
use ranks::{fill, next, shape, wrong};
use rcc_runtime::comm::{Communicator, Options};
use rcc_runtime::error::Kind;
use rcc_runtime::exec::Shape;
use rcc_runtime::exec::buffers::Memory;

const SCRIBBLE: u8 = 0xEE;
const CALLS: u64 = 12;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// What a run does at random.
#[derive(Debug, Clone, Copy)]
struct Choices {
    seed: u64,
    /// Who ends it: a rank between calls, or someone beside.
    who: Option<u32>,
    /// After how many turns of a loop, or calls.
    after: u64,
    elements: u64,
    in_flight: u32,
    /// Memory is freed while peers may still be in the call.
    frees: bool,
}

/// What came of the calls of a rank.
struct Kept {
    good: Vec<(u64, Memory)>,
    scribbled: Vec<Memory>,
}

fn scribble(plan: &VerifiedPlan, memory: &mut Memory) {
    (0..plan.buffers.len()).for_each(|b| memory.bytes_mut(BufferId::new(b)).fill(SCRIBBLE));
}

fn run(plan: &Arc<VerifiedPlan>, choices: Choices, ended: &[AtomicU32; 2]) {
    let n = plan.header.ranks;
    let Choices { seed, who, after, elements, in_flight, frees } = choices;
    let patience = Duration::from_secs(60);
    let options =
        Options { late: patience, stalled: patience, registered: 4 << 20, in_flight, ..Options::default() };
    let all = Communicator::threads(n, &options).unwrap();
    let (began, done) = (Barrier::new(n as usize + 1), Barrier::new(n as usize));
    let shape = shape(elements);
    let aborter = all[0].aborter();
    std::thread::scope(|scope| {
        for mut comm in all {
            let (began, done) = (&began, &done);
            scope.spawn(move || {
                let rank = comm.rank();
                let opened = comm.open(plan);
                began.wait();
                let mut kept = Kept { good: Vec::new(), scribbled: Vec::new() };
                if let Ok(id) = opened {
                    for call in 0..CALLS {
                        if who == Some(rank.0) && call == after % CALLS {
                            comm.aborter().abort("for a test");
                        }
                        let seed = seed + call;
                        let Ok(mut memory) = comm.memory(id, shape) else { break };
                        fill(plan, rank, shape, seed, &mut memory);
                        let result = comm.call(id, shape, &mut memory.buffers());
                        match result {
                            Ok(()) => {
                                assert_eq!(wrong(plan, rank, shape, seed, &memory), 0, "{choices:?}");
                                kept.good.push((seed, memory));
                            }
                            Err(error) => {
                                assert_eq!(error.kind, Kind::Aborted, "{choices:?}: {error}");
                                scribble(plan, &mut memory);
                                if !frees {
                                    kept.scribbled.push(memory);
                                }
                                ended[0].fetch_add(1, Ordering::Relaxed);
                                break;
                            }
                        }
                    }
                }
                if frees && !kept.good.is_empty() {
                    // Whoever succeeded may do what it likes, too.
                    kept.good.truncate(1);
                }
                done.wait();
                check(plan, rank, shape, &kept, choices);
                ended[1].fetch_add(kept.good.len() as u32, Ordering::Relaxed);
                // Registered memory is a stack.
                while kept.good.pop().is_some() {}
            });
        }
        began.wait();
        if who.is_none() {
            (0..after).for_each(|_| std::hint::spin_loop());
            aborter.abort("for a test");
        }
    });
}

/// After all ranks have come out of their calls: what was right is still right, what was scribbled over is as it was left.
fn check(plan: &VerifiedPlan, rank: RankId, shape: Shape, kept: &Kept, choices: Choices) {
    for (seed, memory) in &kept.good {
        assert_eq!(wrong(plan, rank, shape, *seed, memory), 0, "later: {choices:?}");
    }
    for memory in &kept.scribbled {
        for b in 0..plan.buffers.len() {
            let bytes = memory.bytes(BufferId::new(b));
            assert!(bytes.iter().all(|&byte| byte == SCRIBBLE), "{choices:?}: buffer {b} was written to");
        }
    }
}

fn runs(name: &str, plan: VerifiedPlan) {
    let plan = Arc::new(plan);
    let ended = [AtomicU32::new(0), AtomicU32::new(0)];
    let count = number("RCC_ABORTS", 60);
    let mut state = number("RCC_TEST_SEED", 1) ^ name.len() as u64;
    for seed in 0..count {
        let mut below = |most: u64| next(&mut state) % most;
        let choices = Choices {
            seed: seed * CALLS,
            who: (below(3) == 0).then_some(below(plan.header.ranks.into()) as u32),
            // Up to some hundred microseconds.
            after: {
                let most = 6 + below(11);
                below(1 << most)
            },
            elements: [1, 7, 300, 3000, 20_000][below(5) as usize],
            in_flight: 1 + below(2) as u32,
            frees: below(2) == 0,
        };
        run(&plan, choices, &ended);
    }
    let [failed, good] = ended.map(AtomicU32::into_inner);
    println!("{name}: {count} runs, {failed} calls ended by an abort, {good} results that stood");
    assert!(failed as u64 > count / 4 && good > 0, "the points are not where calls are: {failed}, {good}");
}

#[test]
fn by_messages() {
    runs("ring", plans::ring(3));
}

#[test]
fn by_messages_to_many() {
    runs("multicast", plans::multicast(3, 2));
}

#[test]
fn by_messages_through_scratch_and_waits() {
    runs("fold", plans::fold_at_root(3, true));
}

#[test]
fn by_reading_peers() {
    runs("pull", plans::proved(plans::direct::pull_ring(3)));
}

#[test]
fn by_writing_to_peers() {
    runs("push", plans::proved(plans::direct::push_allgather(3)));
}

#[test]
fn by_reading_and_writing() {
    runs("owner folds", plans::proved(plans::direct::owner_folds(3)));
}
