//! The atomics that the gate is written with; the loom tests put others in their place.

pub(crate) use core::sync::atomic::{AtomicU32, Ordering};

/// Lets others run.
pub(crate) fn give_way() {
    std::thread::yield_now();
}
