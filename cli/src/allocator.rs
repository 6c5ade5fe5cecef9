//! The allocator of the command and of the benchmark that measures it.
//!
//! The one hard idea: pages are taken from the system once. Large programs are compiled in stages of hundreds of MiB each, and a page
//! touched for the first time costs more than what is written to it: where one stage gave its memory back for the next to ask
//! for it again, that was a fifth of all time. So what is freed is kept for the next stage, until the process ends.

/// Takes memory from the system in large pages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of `mimalloc.h`: after how many milliseconds free pages are given back; −1: never.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Keeps freed memory for the next stage. To be called at the beginning.
pub(crate) fn keep_pages() {
    // SAFETY: the option exists, and takes any number; one thread runs.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, -1) };
}
