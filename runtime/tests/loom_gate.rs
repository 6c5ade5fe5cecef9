//! The gate of a communicator under loom: every order in which its owner and visitors come and go.
//!
//! In: `comm::gate`, compiled with loom's atomics. Out: never two inside at once, and who is inside sees all that was done before. With any one
//! order of memory weakened there is an order of steps in which that is not so, and it is found.

use std::cell::Cell;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

mod sync {
    pub(crate) use loom::sync::atomic::Ordering;

    use crate::{WEAK, Weak};

    /// What the gate is made of, with the orders of memory that it asks for, or weaker ones.
    #[derive(Debug)]
    pub(crate) struct AtomicU32(loom::sync::atomic::AtomicU32);

    fn order(of: Weak, asked: Ordering) -> Ordering {
        if WEAK.get() == Some(of) { Ordering::Relaxed } else { asked }
    }

    impl AtomicU32 {
        pub(crate) fn new(value: u32) -> AtomicU32 {
            AtomicU32(loom::sync::atomic::AtomicU32::new(value))
        }

        pub(crate) fn load(&self, asked: Ordering) -> u32 {
            self.0.load(order(Weak::Load, asked))
        }

        pub(crate) fn store(&self, value: u32, asked: Ordering) {
            self.0.store(value, order(Weak::Store, asked));
        }

        pub(crate) fn compare_exchange(
            &self,
            old: u32,
            new: u32,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u32, u32> {
            let (success, failure) = (order(Weak::Exchange, success), order(Weak::Exchange, failure));
            self.0.compare_exchange(old, new, success, failure)
        }
    }

    pub(crate) fn give_way() {
        loom::thread::yield_now();
    }
}

#[path = "../src/comm/gate.rs"]
#[allow(dead_code, reason = "the file is a module of the crate; here it is a guest")]
mod gate;

use gate::{Gate, Way};

/// Which order of memory is weakened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weak {
    Load,
    Store,
    Exchange,
}

thread_local! {
    /// Loom's threads are all of this one.
    static WEAK: Cell<Option<Weak>> = const { Cell::new(None) };
}

/// What is behind a gate: calls under way, calls done.
struct Shared {
    gate: Gate,
    state: UnsafeCell<(u32, u32)>,
}

// SAFETY: who may touch the state when is what is tested.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

impl Shared {
    /// What someone does who is inside; then it leaves.
    fn inside(&self, way: Way, act: impl FnOnce(&mut (u32, u32))) {
        // SAFETY: the gate says that it is this thread's.
        let under_way = self.state.with_mut(|state| unsafe {
            act(&mut *state);
            (*state).0 > 0
        });
        self.gate.leave(way, under_way);
    }
}

/// One of the calls under way ends.
fn turn(state: &mut (u32, u32)) {
    if state.0 > 0 {
        *state = (state.0 - 1, state.1 + 1);
    }
}

/// An owner that starts calls, one after the other, and waits for them; visitors that look so often.
fn comes_and_goes(calls: u32, visitors: u32, looks: u32) {
    let shared = Arc::new(Shared { gate: Gate::new(), state: UnsafeCell::new((0, 0)) });
    let threads: Vec<_> = (0..visitors)
        .map(|_| {
            let shared = shared.clone();
            thread::spawn(move || {
                for _ in 0..looks {
                    if shared.gate.visit() {
                        shared.inside(Way::Held, turn);
                    }
                }
            })
        })
        .collect();
    for _ in 0..calls {
        let way = shared.gate.enter();
        shared.inside(way, |state| state.0 += 1);
    }
    let way = shared.gate.enter();
    shared.inside(way, |state| (0..calls).for_each(|_| turn(state)));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let way = shared.gate.enter();
    assert_eq!(way, Way::Private);
    shared.inside(way, |state| assert_eq!(*state, (0, calls)));
}

fn model(weak: Option<Weak>, test: impl Fn() + Sync + Send + 'static) {
    WEAK.set(weak);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(test);
}

#[test]
fn one_visitor() {
    model(None, || comes_and_goes(2, 1, 3));
}

#[test]
fn two_visitors() {
    model(None, || comes_and_goes(2, 2, 1));
}

#[test]
#[should_panic = "Causality violation"]
fn who_leaves_must_release() {
    model(Some(Weak::Store), || comes_and_goes(2, 1, 3));
}

#[test]
#[should_panic = "Causality violation"]
fn the_owner_must_acquire() {
    model(Some(Weak::Load), || comes_and_goes(2, 1, 3));
}

#[test]
#[should_panic = "Causality violation"]
fn who_takes_the_gate_must_acquire() {
    model(Some(Weak::Exchange), || comes_and_goes(2, 1, 3));
}
