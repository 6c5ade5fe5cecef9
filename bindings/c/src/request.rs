//! Calls under way.
//!
//! In: a call that was started. Out: its end, once.

use std::ffi::c_int;
use std::sync::Arc;

use rcc::Error;
use runtime::comm::Handle;

use crate::handle::{Reserved, Table};
use crate::memory::Piece;
use crate::status::{guard, rcc_status_t};
use crate::strings::{given_mut, list_given, out};

/// A call that was started. Only pointers to it are used.
pub struct rcc_request_t {
    _private: (),
}

/// What a call under way keeps: the registered memory that it has.
pub(crate) type Kept = Vec<Arc<Piece>>;

static REQUESTS: Table<Handle<Kept>, ()> = Table::new("request", 2);

/// A place for a call that is to be started: once it is, its handle must not be lost.
pub(crate) fn reserve() -> Result<Reserved<Handle<Kept>, ()>, Error> {
    REQUESTS.reserve()
}

/// Makes a handle of a call.
pub(crate) fn fill(place: Reserved<Handle<Kept>, ()>, call: Handle<Kept>) -> *mut rcc_request_t {
    // Never followed.
    std::ptr::without_provenance_mut(place.fill(call, ()) as usize)
}

/// Waits for a call, whose handle is none any more then.
fn wait(request: &mut *mut rcc_request_t) -> Result<(), Error> {
    if request.is_null() {
        return Ok(());
    }
    let call = REQUESTS.enter(request.addr() as u64)?;
    *request = std::ptr::null_mut();
    call.remove(|call| call.wait().0)
}

/// Lets calls go on as far as they can for now. If this one has ended, `*done` is 1, `*request` is freed
/// and NULL, the buffers are the caller's again, and what is returned is how it ended; else `*done` is 0
/// and RCC_SUCCESS is returned. A request that is NULL has ended well.
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
        call.remove(|call| call.wait().0)
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
