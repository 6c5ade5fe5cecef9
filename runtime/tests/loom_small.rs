//! The protocol of small calls under loom: every order of the steps of two or three ranks.
//!
//! In: `small::protocol`, compiled with loom's atomics. Out: no order in which a box is read before it is written, or written before
//! all have read it. Loom tracks each box as a cell of its own and fails on any access that is not ordered after the last. The same file
//! compiled with orderings that are too weak must fail.

mod sync {
    use std::cell::Cell;

    use loom::sync::atomic::Ordering;

    pub(crate) use loom::sync::atomic::AtomicU64;

    /// So few that tests come to one again soon.
    pub(crate) const ROOTED: usize = 2;

    /// What is not ordered.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Weak {
        Nothing,
        Put,
        Seen,
        Told,
        Heard,
    }

    // Loom runs all threads of a model on the one that asked for it.
    thread_local! {
        pub(crate) static WEAK: Cell<Weak> = const { Cell::new(Weak::Nothing) };
    }

    fn unless(weak: Weak, ordering: Ordering) -> Ordering {
        if WEAK.get() == weak { Ordering::Relaxed } else { ordering }
    }

    pub(crate) fn put() -> Ordering {
        unless(Weak::Put, Ordering::Release)
    }

    pub(crate) fn seen() -> Ordering {
        unless(Weak::Seen, Ordering::Acquire)
    }

    pub(crate) fn told() -> Ordering {
        unless(Weak::Told, Ordering::Release)
    }

    pub(crate) fn heard() -> Ordering {
        unless(Weak::Heard, Ordering::Acquire)
    }
}

#[path = "../src/small/protocol.rs"]
#[allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "the file is a module of the crate; here it is a guest"
)]
mod protocol;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use Flow::{All, From, To};
use protocol::{BOXES, Flow, Ledger, Place, Progress, Tag};
use sync::{WEAK, Weak};

struct Shared {
    boxes: Vec<(Tag, UnsafeCell<u64>)>,
    progress: Vec<Progress>,
}

// SAFETY: who may touch a box when is what is tested.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

/// One rank makes all calls, whose numbers begin after `start`; the part of rank r in call e holds 100 e + r.
///
/// Loom lets a rank that waits wait again before a third one has run, for ever: more than two look at most so often, and then leave.
fn rank(rank: u32, ranks: u32, shared: &Shared, start: u64, calls: &[Flow]) {
    let mut looks = if ranks > 2 { 2 } else { u32::MAX };
    let mut give_up = || {
        looks -= 1;
        thread::yield_now();
        looks == 0
    };
    let mut ledger = Ledger::new(rank, ranks);
    let at = |Place { owner, index }: Place| &shared.boxes[owner as usize * BOXES + index];
    for (call, &flow) in (start + 1..).zip(calls) {
        ledger.begin(flow);
        if flow.writes(rank) {
            while !ledger.free(|peer| &shared.progress[peer as usize]) {
                if give_up() {
                    return;
                }
            }
            let (tag, part) = at(ledger.place(rank));
            // SAFETY: the protocol says that it is this rank's to write.
            part.with_mut(|part| unsafe { *part = 100 * call + u64::from(rank) });
            tag.put(call);
            ledger.written(call);
        }
        for peer in (0..ranks).filter(|&peer| peer != rank && flow.reads(rank) && flow.writes(peer)) {
            let (tag, part) = at(ledger.place(peer));
            while !tag.is(call) {
                if give_up() {
                    return;
                }
            }
            // SAFETY: the protocol says that it is this rank's to read.
            let found = part.with(|part| unsafe { *part });
            assert_eq!(found, 100 * call + u64::from(peer));
        }
        ledger.end(call, &shared.progress[rank as usize]);
    }
}

/// Runs every order of `ranks` ranks, in which a rank is interrupted at most so often.
fn model(weak: Weak, bound: usize, (ranks, start): (u32, u64), calls: &'static [Flow]) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(bound);
    WEAK.set(weak);
    builder.check(move || {
        let boxes = ranks as usize * BOXES;
        let shared = Arc::new(Shared {
            boxes: (0..boxes).map(|_| (Tag::new(), UnsafeCell::new(0))).collect(),
            progress: (0..ranks).map(|_| Progress::new()).collect(),
        });
        let others: Vec<_> = (1..ranks)
            .map(|other| {
                let shared = shared.clone();
                thread::spawn(move || rank(other, ranks, &shared, start, calls))
            })
            .collect();
        rank(0, ranks, &shared, start, calls);
        others.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn two_ranks_write_into_what_they_have_read() {
    model(Weak::Nothing, 3, (2, 0), &[All; 4]);
}

#[test]
fn three_ranks_have_two_boxes_in_turn() {
    model(Weak::Nothing, 1, (3, 0), &[All; 3]);
}

/// More calls than boxes: the root comes to a box again that it does not know to be read.
#[test]
fn a_root_runs_ahead_as_far_as_it_may() {
    model(Weak::Nothing, 3, (2, (1 << 32) - 3), &[From(0); 4]);
    model(Weak::Nothing, 1, (3, 0), &[From(0); 3]);
}

#[test]
fn the_others_run_ahead_of_a_root() {
    model(Weak::Nothing, 3, (2, 0), &[To(0); 4]);
    model(Weak::Nothing, 1, (3, 0), &[To(0); 3]);
}

#[test]
fn roots_and_kinds_change() {
    model(Weak::Nothing, 2, (2, 0), &[From(0), All, To(0), From(1), From(1), From(1), All, To(1), From(0)]);
}

#[test]
#[should_panic = "Causality violation"]
fn a_tag_that_is_not_after_its_part_is_found() {
    model(Weak::Put, 3, (2, 0), &[All]);
}

#[test]
#[should_panic = "Causality violation"]
fn a_part_that_is_read_before_its_tag_is_found() {
    model(Weak::Seen, 3, (2, 0), &[All]);
}

#[test]
#[should_panic = "Causality violation"]
fn progress_that_is_not_after_reading_is_found() {
    model(Weak::Told, 3, (2, 0), &[From(0); 3]);
}

#[test]
#[should_panic = "Causality violation"]
fn a_box_that_is_written_before_progress_is_found() {
    model(Weak::Heard, 3, (2, 0), &[From(0); 3]);
}
