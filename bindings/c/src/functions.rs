//! The functions that make calls.
//!
//! In: parameters as C has them. Out: one structure of each (`calls`), made or started. They are written out, one by one, because
//! cbindgen reads this file.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use crate::algorithm::{rcc_algorithm_t, rcc_buffer_t};
use crate::calls::{launch, make, of, rcc_call_t, select, start, with};
use crate::comm::{enter, rcc_comm_t};
use crate::request::rcc_request_t;
use crate::status::{guard, rcc_status_t};
use crate::strings::{list, out, sized};
use crate::values::{RCC_SUM, rcc_collective_t, rcc_dtype_t, rcc_op_t};

/// Makes a call; returns when the result is there and nobody touches the buffers any more. As the function
/// of the collective, and rcc_run for algorithms.
///
/// # Safety
/// `call` is NULL, which is refused, or as rcc_call_t says; until it returns, what is sent may be read,
/// what is received may be written, and nobody else writes either or reads what is received.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_call(call: *const rcc_call_t) -> rcc_status_t {
    guard(|| {
        // SAFETY: the caller's promise.
        let call = unsafe { sized(call, "call") }?;
        // SAFETY: the caller's promise.
        unsafe { make(&call) }
    })
}

/// Starts a call, which goes on while this rank waits for any call, or asks for one; with options.progress
/// always. Its buffers belong to it until rcc_test or rcc_wait says that it has ended: nobody else writes
/// them, or reads what is received. Where as many calls of one plan are under way as may be
/// (options.in_flight), the first of these ends before. Whether a call is made at once, or started or
/// grouped, is part of it, and the same at all ranks: RCC_ERROR_MISMATCH, or RCC_ERROR_LATE, if not.
///
/// # Safety
/// As for rcc_call, until the call has ended; `request` may be written, or is NULL, which is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_start(
    call: *const rcc_call_t,
    request: *mut *mut rcc_request_t,
) -> rcc_status_t {
    guard(|| {
        // SAFETY: the caller's promise.
        let call = unsafe { sized(call, "call") }?;
        // SAFETY: the caller's promise.
        unsafe { start(&call, request) }
    })
}

/// Launches many calls as one: they start together, in this order, and have ended when it returns. If any
/// of them makes no sense, none is started. All ranks launch the same, and as a group (or each by rcc_start),
/// not by calls at once. They may be of several communicators
/// that this thread holds, if these were made of one by split, duplicate or shrink. Returns the error of
/// the first call that failed.
///
/// # Safety
/// There are `count` pointers to calls, each as for rcc_call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_group(calls: *const *const rcc_call_t, count: usize) -> rcc_status_t {
    guard(|| {
        // SAFETY: the caller's promise.
        let calls = unsafe { list(calls, count, "calls") }?;
        if calls.is_empty() {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { launch(calls) }
    })
}

/// The algorithm whose plan a call would run (a call of at most 4 KiB: if it did not go without one), opened. All
/// ranks call it. It can be called as any other, with the buffers of its collective by their names in
/// stdlib/collectives.coll; the name tells which it is.
///
/// # Safety
/// As for rcc_call; nothing is read from or written to buffers. `algorithm` may be written, or is NULL, which is
/// refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_select(
    call: *const rcc_call_t,
    algorithm: *mut rcc_algorithm_t,
) -> rcc_status_t {
    guard(|| {
        // SAFETY: the caller's promise.
        let algorithm = unsafe { out(algorithm, 0, "algorithm") }?;
        // SAFETY: the caller's promise.
        let call = unsafe { sized(call, "call") }?;
        // SAFETY: the caller's promise.
        *algorithm = unsafe { select(&call) }?;
        Ok(())
    })
}

/// Every rank ends with the reduction of all ranks' `send` in `recv`; both have `count` elements. In place:
/// recv == send.
///
/// # Safety
/// As for rcc_call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_all_reduce(
    comm: *mut rcc_comm_t,
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    dtype: MaybeUninit<rcc_dtype_t>,
    op: rcc_op_t,
) -> rcc_status_t {
    let call = of(rcc_collective_t::RCC_ALL_REDUCE, comm, send, recv, count, dtype, op, 0);
    // SAFETY: the caller's promise.
    guard(|| unsafe { make(&call) })
}

/// Every rank ends with all ranks' `send`, of `count` elements each, in the order of ranks in `recv`. In
/// place: send == recv + rank * count elements.
///
/// # Safety
/// As for rcc_call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_all_gather(
    comm: *mut rcc_comm_t,
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    dtype: MaybeUninit<rcc_dtype_t>,
) -> rcc_status_t {
    let call = of(rcc_collective_t::RCC_ALL_GATHER, comm, send, recv, count, dtype, RCC_SUM, 0);
    // SAFETY: the caller's promise.
    guard(|| unsafe { make(&call) })
}

/// Rank r ends with the reduction of all ranks' block r of `send` in `recv`; a block has `count` elements.
/// In place: recv == send + rank * count elements; the other blocks may hold anything afterwards.
///
/// # Safety
/// As for rcc_call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_reduce_scatter(
    comm: *mut rcc_comm_t,
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    dtype: MaybeUninit<rcc_dtype_t>,
    op: rcc_op_t,
) -> rcc_status_t {
    let call = of(rcc_collective_t::RCC_REDUCE_SCATTER, comm, send, recv, count, dtype, op, 0);
    // SAFETY: the caller's promise.
    guard(|| unsafe { make(&call) })
}

/// Rank r ends with block r of every rank's `send`, in the order of ranks in `recv`; a block has `count`
/// elements. Not in place.
///
/// # Safety
/// As for rcc_call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_all_to_all(
    comm: *mut rcc_comm_t,
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    dtype: MaybeUninit<rcc_dtype_t>,
) -> rcc_status_t {
    let call = of(rcc_collective_t::RCC_ALL_TO_ALL, comm, send, recv, count, dtype, RCC_SUM, 0);
    // SAFETY: the caller's promise.
    guard(|| unsafe { make(&call) })
}

/// Every rank ends with the root's `count` elements of `data`.
///
/// # Safety
/// As for rcc_call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_broadcast(
    comm: *mut rcc_comm_t,
    data: *mut c_void,
    count: usize,
    dtype: MaybeUninit<rcc_dtype_t>,
    root: u32,
) -> rcc_status_t {
    let call = of(rcc_collective_t::RCC_BROADCAST, comm, std::ptr::null(), data, count, dtype, RCC_SUM, root);
    // SAFETY: the caller's promise.
    guard(|| unsafe { make(&call) })
}

/// The root ends with the reduction of all ranks' `send`, of `count` elements, in its `recv`, which is not
/// touched elsewhere. In place: recv == send; with memory of rcc_alloc all ranks say so or none.
///
/// # Safety
/// As for rcc_call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_reduce(
    comm: *mut rcc_comm_t,
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    dtype: MaybeUninit<rcc_dtype_t>,
    op: rcc_op_t,
    root: u32,
) -> rcc_status_t {
    let call = of(rcc_collective_t::RCC_REDUCE, comm, send, recv, count, dtype, op, root);
    // SAFETY: the caller's promise.
    guard(|| unsafe { make(&call) })
}

/// The root ends with all ranks' `send`, of `count` elements each, in the order of ranks in its `recv`,
/// which is not touched elsewhere. In place: at the root send == recv + root * count elements; with memory
/// of rcc_alloc all ranks say so (elsewhere recv == send) or none.
///
/// # Safety
/// As for rcc_call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_gather(
    comm: *mut rcc_comm_t,
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    dtype: MaybeUninit<rcc_dtype_t>,
    root: u32,
) -> rcc_status_t {
    let call = of(rcc_collective_t::RCC_GATHER, comm, send, recv, count, dtype, RCC_SUM, root);
    // SAFETY: the caller's promise.
    guard(|| unsafe { make(&call) })
}

/// Rank r ends with block r of the root's `send`, which is not looked at elsewhere, in `recv`; a block has
/// `count` elements. In place: at the root recv == send + root * count elements; with memory of rcc_alloc
/// all ranks say so (elsewhere send == recv) or none.
///
/// # Safety
/// As for rcc_call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_scatter(
    comm: *mut rcc_comm_t,
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    dtype: MaybeUninit<rcc_dtype_t>,
    root: u32,
) -> rcc_status_t {
    let call = of(rcc_collective_t::RCC_SCATTER, comm, send, recv, count, dtype, RCC_SUM, root);
    // SAFETY: the caller's promise.
    guard(|| unsafe { make(&call) })
}

/// No rank leaves before all have entered.
#[unsafe(no_mangle)]
pub extern "C" fn rcc_barrier(comm: *mut rcc_comm_t) -> rcc_status_t {
    guard(|| enter(comm)?.inner.barrier())
}

/// rcc_all_reduce, started as by rcc_start.
///
/// # Safety
/// As for rcc_start.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_all_reduce_start(
    comm: *mut rcc_comm_t,
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    dtype: MaybeUninit<rcc_dtype_t>,
    op: rcc_op_t,
    request: *mut *mut rcc_request_t,
) -> rcc_status_t {
    let call = of(rcc_collective_t::RCC_ALL_REDUCE, comm, send, recv, count, dtype, op, 0);
    // SAFETY: the caller's promise.
    guard(|| unsafe { start(&call, request) })
}

/// rcc_all_gather, started as by rcc_start.
///
/// # Safety
/// As for rcc_start.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_all_gather_start(
    comm: *mut rcc_comm_t,
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    dtype: MaybeUninit<rcc_dtype_t>,
    request: *mut *mut rcc_request_t,
) -> rcc_status_t {
    let call = of(rcc_collective_t::RCC_ALL_GATHER, comm, send, recv, count, dtype, RCC_SUM, 0);
    // SAFETY: the caller's promise.
    guard(|| unsafe { start(&call, request) })
}

/// rcc_reduce_scatter, started as by rcc_start.
///
/// # Safety
/// As for rcc_start.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_reduce_scatter_start(
    comm: *mut rcc_comm_t,
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    dtype: MaybeUninit<rcc_dtype_t>,
    op: rcc_op_t,
    request: *mut *mut rcc_request_t,
) -> rcc_status_t {
    let call = of(rcc_collective_t::RCC_REDUCE_SCATTER, comm, send, recv, count, dtype, op, 0);
    // SAFETY: the caller's promise.
    guard(|| unsafe { start(&call, request) })
}

/// rcc_all_to_all, started as by rcc_start.
///
/// # Safety
/// As for rcc_start.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_all_to_all_start(
    comm: *mut rcc_comm_t,
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    dtype: MaybeUninit<rcc_dtype_t>,
    request: *mut *mut rcc_request_t,
) -> rcc_status_t {
    let call = of(rcc_collective_t::RCC_ALL_TO_ALL, comm, send, recv, count, dtype, RCC_SUM, 0);
    // SAFETY: the caller's promise.
    guard(|| unsafe { start(&call, request) })
}

/// rcc_broadcast, started as by rcc_start.
///
/// # Safety
/// As for rcc_start.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_broadcast_start(
    comm: *mut rcc_comm_t,
    data: *mut c_void,
    count: usize,
    dtype: MaybeUninit<rcc_dtype_t>,
    root: u32,
    request: *mut *mut rcc_request_t,
) -> rcc_status_t {
    let call = of(rcc_collective_t::RCC_BROADCAST, comm, std::ptr::null(), data, count, dtype, RCC_SUM, root);
    // SAFETY: the caller's promise.
    guard(|| unsafe { start(&call, request) })
}

/// rcc_reduce, started as by rcc_start.
///
/// # Safety
/// As for rcc_start.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_reduce_start(
    comm: *mut rcc_comm_t,
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    dtype: MaybeUninit<rcc_dtype_t>,
    op: rcc_op_t,
    root: u32,
    request: *mut *mut rcc_request_t,
) -> rcc_status_t {
    let call = of(rcc_collective_t::RCC_REDUCE, comm, send, recv, count, dtype, op, root);
    // SAFETY: the caller's promise.
    guard(|| unsafe { start(&call, request) })
}

/// rcc_gather, started as by rcc_start.
///
/// # Safety
/// As for rcc_start.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_gather_start(
    comm: *mut rcc_comm_t,
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    dtype: MaybeUninit<rcc_dtype_t>,
    root: u32,
    request: *mut *mut rcc_request_t,
) -> rcc_status_t {
    let call = of(rcc_collective_t::RCC_GATHER, comm, send, recv, count, dtype, RCC_SUM, root);
    // SAFETY: the caller's promise.
    guard(|| unsafe { start(&call, request) })
}

/// rcc_scatter, started as by rcc_start.
///
/// # Safety
/// As for rcc_start.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_scatter_start(
    comm: *mut rcc_comm_t,
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    dtype: MaybeUninit<rcc_dtype_t>,
    root: u32,
    request: *mut *mut rcc_request_t,
) -> rcc_status_t {
    let call = of(rcc_collective_t::RCC_SCATTER, comm, send, recv, count, dtype, RCC_SUM, root);
    // SAFETY: the caller's promise.
    guard(|| unsafe { start(&call, request) })
}

/// Calls an algorithm with its buffers, as the collective that it implements promises.
///
/// # Safety
/// As for rcc_call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_run(
    comm: *mut rcc_comm_t,
    algorithm: rcc_algorithm_t,
    dtype: MaybeUninit<rcc_dtype_t>,
    op: rcc_op_t,
    buffers: *const rcc_buffer_t,
    buffer_count: usize,
) -> rcc_status_t {
    let call = with(comm, algorithm, dtype, op, (buffers, buffer_count));
    // SAFETY: the caller's promise.
    guard(|| unsafe { make(&call?) })
}

/// rcc_run, started as by rcc_start.
///
/// # Safety
/// As for rcc_start.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_run_start(
    comm: *mut rcc_comm_t,
    algorithm: rcc_algorithm_t,
    dtype: MaybeUninit<rcc_dtype_t>,
    op: rcc_op_t,
    buffers: *const rcc_buffer_t,
    buffer_count: usize,
    request: *mut *mut rcc_request_t,
) -> rcc_status_t {
    let call = with(comm, algorithm, dtype, op, (buffers, buffer_count));
    // SAFETY: the caller's promise.
    guard(|| unsafe { start(&call?, request) })
}
