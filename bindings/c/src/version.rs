//! Which rcc this is.
//!
//! Out: the version of the library, and of its binary interface; the log, for programs that ask for it.

use std::ffi::c_char;

use crate::status::{guard, rcc_status_t};

/// The version of the binary interface that this header describes. It grows when something that was there
/// has changed; programs built for another number must be built anew.
pub const RCC_ABI_VERSION: u32 = 1;

/// The version of the binary interface that the library has: a program that was built with this header
/// needs RCC_ABI_VERSION.
#[unsafe(no_mangle)]
pub extern "C" fn rcc_abi_version() -> u32 {
    RCC_ABI_VERSION
}

/// The version of the library, such as "0.1.0". It need not be freed.
#[unsafe(no_mangle)]
pub extern "C" fn rcc_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Writes to standard error what the variable RCC_LOG asks for, such as RCC_LOG=rcc::call=debug,warn. The
/// library writes nothing unless a program calls this; once is enough for a process.
#[unsafe(no_mangle)]
pub extern "C" fn rcc_log_to_stderr() -> rcc_status_t {
    guard(|| rcc::log::to_stderr().map(|_| ()))
}
