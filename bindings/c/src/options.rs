//! What a communicator may be told.
//!
//! In: a structure of C, in which 0 means the default. Out: the crate's options.

use std::ffi::c_char;
use std::path::Path;
use std::time::Duration;

use rcc::settings::read_tuning;
use rcc::{Error, Options};

use crate::strings::{Sized, maybe_words, sized};

/// What a communicator may be told. Begin with RCC_OPTIONS_INIT; a field that is 0 (or NULL) means the
/// default. What is marked (=) must be the same at all ranks.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct rcc_options_t {
    /// sizeof(rcc_options_t): later versions may add fields at the end.
    pub size: usize,
    /// (=) Bytes of memory for rcc_alloc at each rank. Default: none.
    pub registered: u64,
    /// (=) How many calls that run one plan may be under way at once. Default: 1. A further one waits until the
    /// first of them has ended.
    pub in_flight: u32,
    /// Not 0: a thread drives calls that are under way while nobody waits for them.
    pub progress: u32,
    /// For how many milliseconds others wait for a rank that has not entered a call: then RCC_ERROR_LATE.
    /// Default: 600,000.
    pub late_ms: u64,
    /// For how many milliseconds nothing may move in a call that all have entered: then RCC_ERROR_STALLED.
    /// Default: 60,000.
    pub stalled_ms: u64,
    /// After how many milliseconds a wait is told to the log, with the ranks that are missing. Default: 30,000.
    pub warn_ms: u64,
    /// The folder of compiled plans. Default: as the environment says (RCC_CACHE_DIR, else ~/.cache/rcc). "":
    /// none.
    pub cache: *const c_char,
    /// (=) What was measured, by `rcc tune`. Default: as the environment says (RCC_TUNING, else
    /// ~/.config/rcc/tuning.toml). "": none.
    pub tuning: *const c_char,
}

// SAFETY: numbers and pointers, with the size first; all zero is a value.
unsafe impl Sized for rcc_options_t {
    const LEAST: usize = 64;
}

/// The options of a structure; of the environment alone where it is NULL.
///
/// # Safety
/// It is NULL, or has as many bytes as its first field says, with pointers that are NULL or text that ends
/// with a NUL.
pub(crate) unsafe fn options(given: *const rcc_options_t) -> Result<Options, Error> {
    if given.is_null() {
        return Options::from_env();
    }
    // SAFETY: the caller's promise.
    let given = unsafe { sized(given, "options") }?;
    // SAFETY: the caller's promise.
    let cache = unsafe { maybe_words(given.cache, "options.cache") }?;
    // SAFETY: the caller's promise.
    let tuning = unsafe { maybe_words(given.tuning, "options.tuning") }?;
    let mut options = match tuning {
        None => Options::from_env()?,
        Some(path) => {
            let tuning = if path.is_empty() { None } else { Some(read_tuning(Path::new(path))?) };
            Options { cache: rcc::settings::cache_place(), tuning, ..Options::default() }
        }
    };
    if let Some(folder) = cache {
        options.cache = (!folder.is_empty()).then(|| folder.into());
    }
    let ranks = &mut options.ranks;
    ranks.registered = given.registered;
    if given.in_flight > 0 {
        ranks.in_flight = given.in_flight;
    }
    ranks.progress = given.progress != 0;
    let times = [
        (given.late_ms, &mut ranks.late),
        (given.stalled_ms, &mut ranks.stalled),
        (given.warn_ms, &mut ranks.warn),
    ];
    for (given, time) in times {
        if given > 0 {
            *time = Duration::from_millis(given);
        }
    }
    Ok(options)
}
