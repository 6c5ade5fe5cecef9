//! Calls under way.
//!
//! In: a call that was started. Out: its end, once. The one hard idea: its buffers are the caller's, who has them back when a wait
//! returns, also one that panicked (which is a fault of rcc); so that returns only if the call has ended, or not at all.

use std::ffi::c_int;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rcc::Error;
use runtime::comm::{Aborter, Handle};

use crate::handle::{Reserved, Table};
use crate::memory::Piece;
use crate::status::{guard, rcc_status_t};
use crate::strings::{given_mut, list_given, out};

/// A call that was started. Only pointers to it are used.
pub struct rcc_request_t {
    _private: (),
}

/// What a call under way keeps.
pub(crate) struct Kept {
    /// The registered memory that it has.
    _pieces: Vec<Arc<Piece>>,
}

/// A call under way.
pub(crate) struct Underway {
    call: Handle<Kept>,
    /// Of its communicator.
    aborter: Aborter,
}

static REQUESTS: Table<Underway, ()> = Table::new("request", 2);

/// How long a call may take to its end whose wait has panicked.
const PATIENCE: Duration = Duration::from_secs(5);

/// A place for a call that is to be started: once it is, its handle must not be lost.
pub(crate) fn reserve() -> Result<Reserved<Underway, ()>, Error> {
    REQUESTS.reserve()
}

/// Makes a handle of a call.
pub(crate) fn fill(place: Reserved<Underway, ()>, call: Underway) -> *mut rcc_request_t {
    // Never followed.
    std::ptr::without_provenance_mut(place.fill(call, ()) as usize)
}

impl Underway {
    /// Starts it.
    pub(crate) fn start(
        aborter: Aborter,
        pieces: Vec<Arc<Piece>>,
        start: impl FnOnce(Kept) -> Result<Handle<Kept>, Error>,
    ) -> Result<Underway, Error> {
        Ok(Underway { call: start(Kept { _pieces: pieces })?, aborter })
    }

    /// Whether it has ended. If that panics, it is still under way.
    fn test(&self) -> bool {
        told(&self.aborter, || self.call.test())
    }

    fn wait(self) -> Result<(), Error> {
        let Underway { call, aborter } = self;
        ends(&aborter, PATIENCE, &|| call.test(), || call.settle());
        call.wait().0
    }
}

/// Does what ends the communicator if it panics: this rank may have made half of what the others have.
pub(crate) fn told<R>(aborter: &Aborter, work: impl FnOnce() -> R) -> R {
    struct Unwinds<'a>(&'a Aborter);
    impl Drop for Unwinds<'_> {
        fn drop(&mut self) {
            self.0.abort("rcc panicked");
        }
    }
    let unwinds = Unwinds(aborter);
    let done = work();
    std::mem::forget(unwinds);
    done
}

/// The same with what ends a call. If it panics, the call may still be under way, with buffers that the caller believes to have back: it is
/// driven to its end, which it soon comes to, since the communicator has ended. If it does not, the process is at its end. `test` lets the call
/// go on, and says whether it has ended.
pub(crate) fn ends(aborter: &Aborter, patience: Duration, test: &dyn Fn() -> bool, work: impl FnOnce()) {
    struct Unwinds<'a>(Duration, &'a dyn Fn() -> bool);
    impl Drop for Unwinds<'_> {
        fn drop(&mut self) {
            let until = Instant::now() + self.0;
            // What has panicked may do so again.
            while !catch_unwind(AssertUnwindSafe(self.1)).unwrap_or(false) {
                if Instant::now() >= until {
                    let why =
                        "rcc panicked, and a call that was waited for is under way with its buffers still";
                    let _ = writeln!(std::io::stderr(), "{why}: the process is ended");
                    std::process::abort();
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
    // In this order: what ends the communicator comes first.
    let unwinds = Unwinds(patience, test);
    told(aborter, work);
    std::mem::forget(unwinds);
}

/// Waits for a call, whose handle is none any more then.
fn wait(request: &mut *mut rcc_request_t) -> Result<(), Error> {
    if request.is_null() {
        return Ok(());
    }
    let call = REQUESTS.enter(request.addr() as u64)?;
    *request = std::ptr::null_mut();
    call.remove(Underway::wait)
}

/// Lets calls go on as far as they can for now. If this one has ended, `*done` is 1, `*request` is freed
/// and NULL, the buffers are the caller's again, and what is returned is how it ended; else `*done` is 0
/// and RCC_SUCCESS is returned, or an error of this function alone: the call is still under way as long as
/// `*request` is not NULL. A request that is NULL has ended well.
///
/// # Safety
/// `request` and `done` may be read and written, or are NULL, which is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_test(request: *mut *mut rcc_request_t, done: *mut c_int) -> rcc_status_t {
    guard(|| {
        // SAFETY: the caller's promise.
        let done = unsafe { out(done, 0, "done") }?;
        // SAFETY: the caller's promise.
        let request = unsafe { given_mut(request, "request") }?;
        if request.is_null() {
            *done = 1;
            return Ok(());
        }
        let call = REQUESTS.enter(request.addr() as u64)?;
        if !call.test() {
            return Ok(());
        }
        *done = 1;
        *request = std::ptr::null_mut();
        call.remove(Underway::wait)
    })
}

/// Waits until the call has ended; `*request` is freed and NULL then, and the buffers are the caller's
/// again, also if it failed: then what lies in those that it was to write is undefined. A request that is
/// NULL has ended well.
///
/// # Safety
/// `request` may be read and written, or is NULL, which is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_wait(request: *mut *mut rcc_request_t) -> rcc_status_t {
    guard(|| {
        // SAFETY: the caller's promise.
        let request = unsafe { given_mut(request, "request") }?;
        wait(request)
    })
}

/// Waits for several calls, whichever of them fails; returns the first error in their order. Each is freed
/// and NULL then; but one that is refused (RCC_ERROR_INVALID: another thread is using it, or it was freed,
/// or stands in the list before) stays as it is, and its call may still be under way: the buffers of a
/// request that is not NULL are not the caller's yet.
///
/// # Safety
/// There are `count` requests, which may be read and written; NULL only if there are none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_wait_all(requests: *mut *mut rcc_request_t, count: usize) -> rcc_status_t {
    guard(|| {
        // SAFETY: the caller's promise.
        let requests = unsafe { list_given(requests, count, "requests") }?;
        requests.iter_mut().map(wait).fold(Ok(()), Result::and)
    })
}
