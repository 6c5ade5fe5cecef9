//! Calls that own their buffers.
//!
//! In: buffers, given away. Out: a [`Handle`]; whoever waits for it gets them back. The one hard idea: the buffers belong to the call until it
//! has ended, whatever becomes of the handle. It may be dropped, forgotten or moved to another thread: then the buffers are freed when
//! the call has ended, by whoever drove it there.

use std::cell::UnsafeCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use super::engine::Engine;
use super::flight::Ended;
use super::{Communicator, PlanId};
use crate::error::Error;
use crate::exec::Shape;
use crate::exec::buffers::{Buffers, Memory};

/// A call that is under way, or has ended.
///
/// It goes on while this rank waits for any call, or asks for one; with a thread for it ([`super::Options::progress`]) always. As a
/// [`Future`] it is asked again at once while the call is under way, unless there is that thread, which then wakes its task.
///
/// Whoever drives the call to its end, in whatever thread, calls the waker, and drops the buffers of a handle that is not there any more; it
/// is inside of no communicator then, so both may make calls. If one of them panics, that is caught and told to `tracing`: this call and
/// all others are as they were (a task whose waker panicked is not woken again).
#[derive(Debug)]
#[must_use = "the call's error is here"]
pub struct Handle<T: Send + 'static> {
    call: u64,
    kept: Arc<Kept<T>>,
    engine: Arc<Engine>,
}

/// A call that was not started: why, and its buffers.
pub struct Refused<T> {
    /// Why.
    pub error: Error,
    /// What was to be given away.
    pub owned: T,
}

impl<T> std::fmt::Debug for Refused<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Refused").field("error", &self.error).finish_non_exhaustive()
    }
}

impl<T> From<Refused<T>> for Error {
    fn from(refused: Refused<T>) -> Error {
        refused.error
    }
}

/// What a call has been given.
struct Kept<T> {
    /// The call's alone until it has ended, then its handle's.
    owned: UnsafeCell<Option<T>>,
    over: AtomicBool,
    end: Mutex<End>,
}

#[derive(Debug, Default)]
struct End {
    how: Option<Result<(), Error>>,
    waker: Option<Waker>,
}

// SAFETY: `owned` passes from the caller to the call and from there to the handle, one after the other.
unsafe impl<T: Send> Sync for Kept<T> {}

impl<T> std::fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").field("over", &self.over).finish_non_exhaustive()
    }
}

impl<T: Send> Ended for Kept<T> {
    fn end(&self, how: Result<(), Error>) -> Option<Waker> {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        end.how = Some(how);
        // What the call wrote is seen by who sees this.
        self.over.store(true, Ordering::Release);
        end.waker.take()
    }
}

impl Communicator {
    /// Starts a call that owns its buffers. Where as many calls of the plan are under way as may be, the one that was started first
    /// ends before.
    ///
    /// # Errors
    /// What is wrong with the arguments, or what ended the communicator; and the buffers.
    pub fn start(
        &mut self,
        plan: PlanId,
        shape: Shape,
        memory: Memory,
    ) -> Result<Handle<Memory>, Refused<Memory>> {
        self.start_with(plan, shape, memory, |memory| Ok(memory.buffers()))
    }

    /// The same with whatever `lend` makes buffers of: vectors, registered memory.
    ///
    /// # Errors
    /// As for [`Communicator::start`], or as `lend` says.
    pub fn start_with<T: Send + 'static>(
        &mut self,
        plan: PlanId,
        shape: Shape,
        owned: T,
        lend: impl for<'a> FnOnce(&'a mut T) -> Result<Buffers<'a>, Error>,
    ) -> Result<Handle<T>, Refused<T>> {
        let kept = Kept {
            owned: UnsafeCell::new(Some(owned)),
            over: AtomicBool::new(false),
            end: Mutex::new(End::default()),
        };
        let kept = Arc::new(kept);
        // SAFETY: nobody else knows of it yet.
        let owned = unsafe { &mut *kept.owned.get() };
        let lent = match owned.as_mut() {
            Some(owned) => lend(owned),
            None => Ok(Buffers::default()),
        };
        let whose: Arc<dyn Ended> = Arc::clone(&kept) as Arc<dyn Ended>;
        // SAFETY: what was lent is borrowed from memory that does not move (it lies in an `Arc`) and that nobody touches before the call has
        // ended; the call itself keeps it, so it is there until then.
        let issued = lent.and_then(|buffers| unsafe { self.issue(plan, shape, &buffers, Some(whose)) });
        match issued {
            Ok(call) => Ok(Handle { call, kept, engine: Arc::clone(self.seat.engine()) }),
            Err(error) => {
                // SAFETY: no call has been issued, and what was lent is not used any more.
                let owned = unsafe { &mut *kept.owned.get() }.take();
                owned.map_or_else(
                    || unreachable!("it was put there above"),
                    |owned| Err(Refused { error, owned }),
                )
            }
        }
    }
}

impl<T: Send + 'static> Handle<T> {
    /// The number of the call.
    pub fn number(&self) -> u64 {
        self.call
    }

    /// Whether the call has ended; only looks.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.kept.over.load(Ordering::Acquire)
    }

    /// Lets all calls go on as far as they can for now, unless someone else does; whether this one has ended.
    pub fn test(&self) -> bool {
        self.is_done() || {
            self.engine.visit_once();
            self.is_done()
        }
    }

    /// Waits until the call has ended; its buffers stay with the handle.
    pub fn settle(&self) {
        self.engine.visit_until(|| self.is_done());
    }

    /// Waits until the call has ended; how it did, and its buffers. If it failed, what lies in buffers that it was to write is undefined.
    ///
    /// # Panics
    /// If it has been polled to its end, as a future that is polled again.
    pub fn wait(self) -> (Result<(), Error>, T) {
        self.settle();
        self.take()
    }

    fn take(&self) -> (Result<(), Error>, T) {
        let how = self.kept.end.lock().unwrap_or_else(PoisonError::into_inner).how.take().unwrap_or(Ok(()));
        // SAFETY: the call has ended, which this thread has seen; there is one handle, and `owned` tells whether it was used.
        match unsafe { &mut *self.kept.owned.get() }.take() {
            Some(owned) => (how, owned),
            None => panic!("the handle has given its buffers back already"),
        }
    }
}

impl<T: Send + 'static> Future for Handle<T> {
    type Output = (Result<(), Error>, T);

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.test() {
            return Poll::Ready(self.take());
        }
        if !self.engine.family.progress.runs() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        // What a waker does when it is cloned or dropped is the user's: not while others need the lock.
        let mut waker = Some(context.waker().clone());
        let mut end = self.kept.end.lock().unwrap_or_else(PoisonError::into_inner);
        let over = end.how.is_some();
        if !over {
            std::mem::swap(&mut end.waker, &mut waker);
        }
        drop(end);
        drop(waker);
        if over { Poll::Ready(self.take()) } else { Poll::Pending }
    }
}
