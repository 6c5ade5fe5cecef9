//! The protocol of small calls with threads of this process, for a race detector (`cargo xtask test race`): what loom shows for a few
//! calls, for many.
//!
//! In: `small::protocol` and its atomics. Out: every part read is the one that was written for that call. Parts are plain memory, so the
//! detector fails on any access that is not ordered after the last.

#[path = "../src/small/sync.rs"]
#[allow(dead_code, unreachable_pub, reason = "the file is a module of the crate; here it is a guest")]
mod sync;

#[path = "../src/small/protocol.rs"]
#[allow(dead_code, missing_docs, unreachable_pub, reason = "as above")]
mod protocol;

use std::cell::UnsafeCell;
use std::thread;

use protocol::{BOXES, Flow, Ledger, Place, Progress, Tag};

/// Words of a part.
const PART: usize = 24;

struct Shared {
    boxes: Vec<(Tag, UnsafeCell<[u64; PART]>)>,
    progress: Vec<Progress>,
}

// SAFETY: who may touch a box when is what is tested.
unsafe impl Sync for Shared {}

/// One rank makes all calls that `flow` says; the part of rank r in call e holds e times the number of ranks, and r.
fn rank(rank: u32, ranks: u32, shared: &Shared, calls: std::ops::Range<u64>, flow: impl Fn(u64) -> Flow) {
    let mut ledger = Ledger::new(rank, ranks);
    let at = |Place { owner, index }: Place| &shared.boxes[owner as usize * BOXES + index];
    let value = |call: u64, rank: u32| call * u64::from(ranks) + u64::from(rank);
    for call in calls {
        let flow = flow(call);
        ledger.begin(flow);
        if flow.writes(rank) {
            while !ledger.free(|peer| &shared.progress[peer as usize]) {
                thread::yield_now();
            }
            let (tag, part) = at(ledger.place(rank));
            // SAFETY: the protocol says that it is this rank's to write.
            unsafe { *part.get() = [value(call, rank); PART] };
            tag.put(call);
            ledger.written(call);
        }
        for peer in (0..ranks).filter(|&peer| peer != rank && flow.reads(rank) && flow.writes(peer)) {
            let (tag, part) = at(ledger.place(peer));
            while !tag.is(call) {
                thread::yield_now();
            }
            // SAFETY: the protocol says that it is this rank's to read.
            let found = unsafe { *part.get() };
            assert_eq!(found, [value(call, peer); PART], "rank {rank} of {ranks}, call {call}");
        }
        ledger.end(call, &shared.progress[rank as usize]);
    }
}

fn run(ranks: u32, calls: u64, flow: impl Fn(u64) -> Flow + Sync) {
    let boxes = ranks as usize * BOXES;
    let shared = Shared {
        boxes: (0..boxes).map(|_| (Tag::new(), UnsafeCell::new([0; PART]))).collect(),
        progress: (0..ranks).map(|_| Progress::new()).collect(),
    };
    // Numbers go past 2^32.
    let first = (1 << 32) - calls / 2;
    thread::scope(|scope| {
        let spawn = |one| {
            let (shared, flow) = (&shared, &flow);
            scope.spawn(move || rank(one, ranks, shared, first..first + calls, flow))
        };
        let all: Vec<_> = (0..ranks).map(spawn).collect();
        // The detector sees that a thread has ended only if it is joined.
        all.into_iter().for_each(|one| one.join().unwrap());
    });
}

/// A number that looks drawn, the same at all ranks.
fn drawn(call: u64) -> u64 {
    (call ^ call >> 7).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33
}

#[test]
fn all_to_all() {
    for ranks in 1..6 {
        run(ranks, 2000, |_| Flow::All);
    }
}

#[test]
fn from_one_root_and_to_one() {
    for ranks in 2..6 {
        run(ranks, 2000, |_| Flow::From(1));
        run(ranks, 2000, |_| Flow::To(1));
    }
}

#[test]
fn in_any_order() {
    for ranks in 1..6 {
        // Many of a kind in a row, now and then.
        run(ranks, 6000, |call| {
            let drawn = drawn(if drawn(call / 64).is_multiple_of(2) { call / 16 } else { call });
            let root = (drawn / 3) as u32 % ranks;
            [Flow::All, Flow::From(root), Flow::To(root)][drawn as usize % 3]
        });
    }
}
