//! Memory that peers may reach into.
//!
//! In: a communicator, a size. Out: addresses within what the options gave each rank. The one hard idea: that a buffer is registered
//! is seen by its address, so calls take any pointer; and a piece that is freed while a call is under way with it is kept until that
//! has ended. What lies below has it from a stack, so a piece is given back when it is the last one there: it is kept until then.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rcc::{At, Error};
use runtime::memory::registered::Registered;

use crate::comm::{Comm, enter, rcc_comm_t};
use crate::status::{guard, invalid, rcc_status_t};
use crate::strings::out;

/// A piece of it.
#[derive(Debug)]
pub(crate) struct Piece {
    start: usize,
    bytes: usize,
    /// The caller has freed it.
    freed: AtomicBool,
    _memory: Registered,
}

impl Comm {
    /// Whether there is any.
    #[inline]
    pub(crate) fn has_pieces(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// The piece that some memory lies in.
    #[inline]
    pub(crate) fn piece(&self, at: At) -> Option<&Arc<Piece>> {
        let within = |piece: &&Arc<Piece>| {
            let offset = at.start.addr().wrapping_sub(piece.start);
            offset <= piece.bytes && at.bytes <= piece.bytes - offset
        };
        self.pieces.iter().find(|piece| within(piece) && !piece.is_freed())
    }

    /// Gives back what was freed, as far as no call has it and nothing lies after it.
    fn give_back(&mut self) {
        // Nobody else can come to have a piece that only this list has.
        while self.pieces.pop_if(|last| last.is_freed() && Arc::strong_count(last) == 1).is_some() {}
    }

    fn alloc(&mut self, bytes: usize) -> Result<*mut c_void, Error> {
        self.give_back();
        // One byte more would be another's: an empty piece would have the address of the next.
        let mut memory = self.inner.runtime().alloc(bytes.max(1) as u64)?;
        let slice = memory.bytes_mut();
        if slice.is_empty() {
            let message = "a call has failed, and peers may still write to registered memory";
            return Err(Error::new(rcc::Kind::Resource, message).help("make another communicator"));
        }
        let start = slice.as_mut_ptr();
        self.pieces.push(Arc::new(Piece {
            start: start.addr(),
            bytes,
            freed: AtomicBool::new(false),
            _memory: memory,
        }));
        Ok(start.cast())
    }

    fn free(&mut self, memory: *mut c_void) -> Result<(), Error> {
        let is = |piece: &&Arc<Piece>| piece.start == memory.addr() && !piece.is_freed();
        let piece = self.pieces.iter().find(is).ok_or_else(|| {
            let message = format!("{memory:p} is no memory that rcc_alloc gave for this communicator");
            invalid(message).help("free what rcc_alloc gave, once, with its communicator")
        })?;
        piece.freed.store(true, Ordering::Relaxed);
        self.give_back();
        Ok(())
    }
}

impl Piece {
    fn is_freed(&self) -> bool {
        self.freed.load(Ordering::Relaxed)
    }
}

/// Zeroed memory for `bytes` bytes that peers may reach into, at a multiple of 4096, out of what
/// options.registered gives each rank. It is used as any other memory; calls whose buffers all lie in such
/// memory, at all ranks, copy less. It is the caller's until rcc_free or rcc_comm_destroy. After a call has
/// failed, peers may still write to it.
///
/// It is handed out as from a stack: what is freed is there again once everything that was allocated after
/// it is freed, too, and no call is under way with any of it.
///
/// # Safety
/// `memory` may be written, or is NULL, which is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_alloc(
    comm: *mut rcc_comm_t,
    bytes: usize,
    memory: *mut *mut c_void,
) -> rcc_status_t {
    guard(|| {
        // SAFETY: the caller's promise.
        let memory = unsafe { out(memory, std::ptr::null_mut(), "memory") }?;
        *memory = enter(comm)?.alloc(bytes)?;
        Ok(())
    })
}

/// Gives memory of rcc_alloc back. NULL is nothing. Calls that are under way with it go on with it.
///
/// # Safety
/// Nobody uses the memory any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_free(comm: *mut rcc_comm_t, memory: *mut c_void) -> rcc_status_t {
    guard(|| {
        let mut comm = enter(comm)?;
        if memory.is_null() { Ok(()) } else { comm.free(memory) }
    })
}
