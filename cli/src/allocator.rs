//! The allocator of the command and of the benchmark that measures it.
//!
//! The one hard idea: pages are taken from the system once. Large programs are compiled in stages of hundreds of MiB each, and a page
//! touched for the first time costs more than what is written to it: where one stage gave its memory back for the next to ask
//! for it again, that was a fifth of all time. So what is freed is kept for the next stage; but before and after the largest tables of all
//! are made, for which there is no such piece, the system gets it back.

use compiler::pipeline::Stage;

/// Takes memory from the system in large pages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of `mimalloc.h`: after how many milliseconds free pages are given back by themselves.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// A day. (What is never to be given back would not be by `give_back` either.)
const DAY: std::ffi::c_long = 86_400_000;

/// Where a process never had so many bytes there is nothing to give back that anyone would miss.
const MUCH: usize = 128 << 20;

/// Keeps freed memory for the next stage. To be called at the beginning.
pub(crate) fn keep_pages() {
    // SAFETY: the option exists, and takes any number; one thread runs.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, DAY) };
}

/// Gives back what is free before steps are written, and when what they were made of has gone: to be told each stage of a compilation.
pub(crate) fn at(stage: Stage) {
    if matches!(stage, Stage::Steps | Stage::Verify) {
        give_back();
    }
}

/// Gives back what is free. To be called before steps are written (`Stage::Steps`), and when all that they were made of has gone
/// (`Stage::Verify`).
fn give_back() {
    let (mut peak, none) = (0, std::ptr::null_mut);
    // SAFETY: what is not asked for may be null.
    unsafe {
        libmimalloc_sys::mi_process_info(none(), none(), none(), none(), &mut peak, none(), none(), none());
    }
    if peak > MUCH {
        // SAFETY: mimalloc collects at any time, on any thread.
        unsafe { libmimalloc_sys::mi_collect(true) };
    }
}
