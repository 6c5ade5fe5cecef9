//! The atomics that the protocol of small calls is written with; the loom tests put others in their place.

pub(crate) use core::sync::atomic::{AtomicU64, Ordering};
