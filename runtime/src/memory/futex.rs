//! Futexes in shared memory.
//!
//! In: a word that several processes map. Out: sleep while it holds a value, wake all who sleep on it.

use core::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::thread::futex::{Flags, Timespec, wait as futex_wait, wake as futex_wake};

/// Sleeps while `word` holds `value`, for `most` at most; may return early.
pub fn wait(word: &AtomicU32, value: u32, most: Duration) {
    let most = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: i64::from(most.subsec_nanos()) };
    // Every outcome (woken, value changed, interrupted, time over) means: look again.
    let _ = futex_wait(word, Flags::empty(), value, Some(&most));
}

/// Wakes all who sleep on `word`.
pub fn wake(word: &AtomicU32) {
    // An error could only mean that the word is not mapped, which the reference rules out.
    let _ = futex_wake(word, Flags::empty(), i32::MAX as u32);
}
