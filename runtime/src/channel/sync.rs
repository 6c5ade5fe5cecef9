//! The atomics that the channel protocol is written with; the loom tests put others in their place.

pub(crate) use core::sync::atomic::{AtomicU64, Ordering};
