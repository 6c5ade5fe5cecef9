//! What the user is told of calls that have ended, after the gate was left.
//!
//! In: of each call that somebody had given its buffers to, who is to be woken, and what it kept. Out: wakers are called, and buffers that
//! nobody asks for any more are dropped. The one hard idea: both run code of the user's, which may panic, or make calls, split, wait for
//! another handle: so whoever drove the calls collects them behind the gate, and does this where it is inside of none.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;

use super::flight::Ended;
use crate::payload;

/// Told when it is dropped.
#[derive(Debug, Default)]
#[must_use = "dropped where nobody is behind a gate"]
pub(super) struct News(Vec<(Option<Waker>, Arc<dyn Ended>)>);

impl News {
    /// A call has ended.
    pub(super) fn add(&mut self, waker: Option<Waker>, call: Arc<dyn Ended>) {
        self.0.push((waker, call));
    }

    /// Takes over what another has to tell.
    pub(super) fn take_over(&mut self, mut other: News) {
        self.0.append(&mut other.0);
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Drop for News {
    #[inline]
    fn drop(&mut self) {
        for (waker, call) in self.0.drain(..) {
            if let Some(waker) = waker {
                guarded("a waker", || waker.wake());
            }
            guarded("the drop of a call's buffers", || drop(call));
        }
    }
}

/// Whoever drives calls is not to blame for what the user's code does: a panic goes no further.
fn guarded(what: &str, work: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(work)) {
        tracing::error!("{what} panicked; it was caught, and calls go on");
        payload::discard(payload);
    }
}
