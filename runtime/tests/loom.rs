//! The channel protocol under loom: every order of the steps of its two or three ends.
//!
//! In: `channel::protocol`, compiled with loom's atomics. Out: no order in which a slot is read before it is written,
//! written before it is read by all, or a signature is taken for that of another call. Loom tracks each slot as a
//! cell of its own and fails on any access that is not ordered after the last.

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
}

#[path = "../src/channel/protocol.rs"]
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

use protocol::{Head, Receiving, SIGNED, Sending, Tail};
use sync::AtomicU64;

struct Shared {
    head: Head,
    tails: Vec<Tail>,
    slots: Vec<UnsafeCell<u64>>,
}

// SAFETY: who may touch a slot when is what is tested.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

fn shared(readers: usize, slots: usize, start: u64) -> Arc<Shared> {
    Arc::new(Shared {
        head: Head {
            published: AtomicU64::new(start),
            signatures: std::array::from_fn(|_| AtomicU64::new(0)),
        },
        tails: (0..readers).map(|_| Tail { consumed: AtomicU64::new(start) }).collect(),
        slots: (0..slots).map(|_| UnsafeCell::new(0)).collect(),
    })
}

/// Sends `calls` calls of `each` messages to every reader; message m holds m, call e is signed 100 + e.
fn exchange(readers: usize, slots: usize, start: u64, calls: u64, each: u64) {
    let shared = shared(readers, slots, start);
    let threads: Vec<_> = (0..readers)
        .map(|reader| {
            let shared = shared.clone();
            thread::spawn(move || {
                let mut end = Receiving::new(&shared.head, &shared.tails[reader], slots as u64);
                for m in 0..calls * each {
                    while !end.ready() {
                        thread::yield_now();
                    }
                    if m % each == 0 {
                        assert_eq!(end.signature(m / each), 100 + m / each);
                    }
                    assert_eq!(end.slot(), (start + m) % slots as u64);
                    // SAFETY: the protocol says that it is this reader's to read.
                    shared.slots[end.slot() as usize].with(|slot| assert_eq!(unsafe { *slot }, m));
                    end.release();
                }
            })
        })
        .collect();
    let mut end = Sending::new(&shared.head, &shared.tails, slots as u64);
    for m in 0..calls * each {
        let first = (m % each == 0).then_some(m / each);
        while !end.free(first) {
            thread::yield_now();
        }
        // SAFETY: the protocol says that it is the writer's to write.
        shared.slots[end.slot() as usize].with_mut(|slot| unsafe { *slot = m });
        if let Some(call) = first {
            end.sign(call, 100 + call);
        }
        end.publish();
    }
    threads.into_iter().for_each(|t| t.join().unwrap());
}

/// The same with a writer and readers that look only so often and then leave: for several readers, two of which could
/// otherwise wait for ever while the third is never run.
fn look(readers: usize, slots: usize, looks: u64) {
    let shared = shared(readers, slots, 0);
    let threads: Vec<_> = (0..readers)
        .map(|reader| {
            let shared = shared.clone();
            thread::spawn(move || {
                let mut end = Receiving::new(&shared.head, &shared.tails[reader], slots as u64);
                let mut next = 0;
                for _ in 0..looks {
                    if end.ready() {
                        // SAFETY: the protocol says that it is this reader's to read.
                        shared.slots[end.slot() as usize].with(|slot| assert_eq!(unsafe { *slot }, next));
                        end.release();
                        next += 1;
                    }
                }
            })
        })
        .collect();
    let mut end = Sending::new(&shared.head, &shared.tails, slots as u64);
    let mut next = 0;
    for _ in 0..looks {
        if end.free(None) {
            // SAFETY: the protocol says that it is the writer's to write.
            shared.slots[end.slot() as usize].with_mut(|slot| unsafe { *slot = next });
            end.publish();
            next += 1;
        }
    }
    threads.into_iter().for_each(|t| t.join().unwrap());
}

/// Tokens: no slots, no credit, and yet no signature is overwritten before it was read.
fn tokens(start: u64, calls: u64) {
    let shared = shared(1, 0, start);
    let reader = {
        let shared = shared.clone();
        thread::spawn(move || {
            let mut end = Receiving::new(&shared.head, &shared.tails[0], u64::MAX);
            for call in 0..calls {
                while !end.ready() {
                    thread::yield_now();
                }
                assert_eq!(end.signature(call), 100 + call);
                end.release();
            }
        })
    };
    let mut end = Sending::new(&shared.head, &shared.tails, u64::MAX);
    for call in 0..calls {
        while !end.free(Some(call)) {
            thread::yield_now();
        }
        end.sign(call, 100 + call);
        end.publish();
    }
    reader.join().unwrap();
}

/// Two ranks that exchange `count` messages, each of which waits to be as much ahead as it may, and trade slots; `credit` is what they believe
/// in where there are `slots`.
fn trade(slots: u64, credit: u64, start: u64, count: u64) {
    let ways = [shared(1, slots as usize, start), shared(1, slots as usize, start)];
    let rank = |own: Arc<Shared>, other: Arc<Shared>| {
        move || {
            let mut sending = Sending::new(&own.head, &own.tails, credit);
            let mut receiving = Receiving::new(&other.head, &other.tails[0], credit);
            let at = |odd: bool, slot: u64, one: &Arc<Shared>, two: &Arc<Shared>| {
                (if odd { two.clone() } else { one.clone() }, (slot % slots) as usize)
            };
            let (mut sent, mut received) = (0, 0);
            while received < count {
                let call = (sent < SIGNED as u64 + 1).then_some(sent);
                if sent < count && sending.free_by(receiving.received(), call) {
                    let (memory, slot) = at(sending.odd(), sending.slot(), &own, &other);
                    // SAFETY: the protocol says that it is this rank's to write.
                    memory.slots[slot].with_mut(|slot| unsafe { *slot = sent });
                    if let Some(call) = call {
                        sending.sign(call, 100 + call);
                    }
                    sending.publish();
                    sent += 1;
                    continue;
                }
                while !receiving.ready() {
                    thread::yield_now();
                }
                assert_eq!(receiving.signature(received), 100 + received);
                let (memory, slot) = at(receiving.odd(), receiving.slot(), &other, &own);
                // SAFETY: the protocol says that it is this rank's to read.
                memory.slots[slot].with(|slot| assert_eq!(unsafe { *slot }, received));
                receiving.release();
                received += 1;
            }
        }
    };
    let [one, two] = ways;
    let other = thread::spawn(rank(two.clone(), one.clone()));
    rank(one, two)();
    other.join().unwrap();
}

fn model(test: impl Fn() + Sync + Send + 'static) {
    // More than three preemptions have never been needed to show a fault of such a protocol, and take hours.
    model_of(3, test);
}

fn model_of(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(test);
}

#[test]
fn one_slot() {
    model(|| exchange(1, 1, 0, 1, 3));
}

#[test]
fn two_slots_and_numbers_near_32_bits() {
    model(|| exchange(1, 2, (1 << 32) - 2, 1, 4));
}

#[test]
fn two_readers() {
    model(|| look(2, 1, 3));
}

#[test]
fn signatures_of_more_calls_than_there_are_words() {
    model(|| exchange(1, 2, 0, SIGNED as u64 + 1, 1));
}

#[test]
fn tokens_of_more_calls_than_there_are_words() {
    model(|| tokens((1 << 32) - 1, SIGNED as u64 + 1));
}

#[test]
fn one_traded_slot() {
    model(|| trade(1, 1, 0, 3));
}

#[test]
fn two_traded_slots_and_numbers_near_32_bits() {
    model_of(2, || trade(2, 2, (1 << 32) - 1, 4));
}

#[test]
fn traded_slots_and_signatures_of_more_calls_than_there_are_words() {
    model_of(2, || trade(1, 1, 0, SIGNED as u64 + 1));
}

#[test]
#[should_panic = "Causality violation"]
fn a_missing_credit_of_traded_slots_is_found() {
    model(|| trade(1, 2, 0, 3));
}

#[test]
#[should_panic = "Causality violation"]
fn a_missing_credit_is_found() {
    // The writer believes in one slot more than there is: the test must be able to fail.
    model(|| {
        let shared = shared(1, 1, 0);
        let reader = {
            let shared = shared.clone();
            thread::spawn(move || {
                let mut end = Receiving::new(&shared.head, &shared.tails[0], 1);
                while !end.ready() {
                    thread::yield_now();
                }
                // SAFETY: loom is to find out that it is not.
                shared.slots[0].with(|slot| unsafe { *slot });
                end.release();
            })
        };
        let mut end = Sending::new(&shared.head, &shared.tails, 2);
        for m in 0..2 {
            while !end.free(None) {
                thread::yield_now();
            }
            // SAFETY: loom is to find out that it is not.
            shared.slots[0].with_mut(|slot| unsafe { *slot = m });
            end.publish();
        }
        reader.join().unwrap();
    });
}
