//! How calls end: a number, and the whole story of the thread's last error.
//!
//! In: what a call does. Out: its status; no panic gets past here.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rcc::{Error, Kind};

use crate::values::number;

/// How a call ended. RCC_SUCCESS is 0; numbers never change their meaning, and later versions may add some.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum rcc_status_t {
    /// It did what it was to do.
    RCC_SUCCESS = 0,
    /// The caller asked for something that makes no sense: a null or freed handle, a length that does not
    /// fit, a wrong program.
    RCC_ERROR_INVALID = 1,
    /// It makes sense, but this machine or this version cannot do it.
    RCC_ERROR_UNSUPPORTED = 2,
    /// Two ranks make different calls, or gave different options. The message shows both sides.
    RCC_ERROR_MISMATCH = 3,
    /// A rank's process ended.
    RCC_ERROR_PEER_DIED = 4,
    /// A rank never entered the call.
    RCC_ERROR_LATE = 5,
    /// All entered, and nothing moves.
    RCC_ERROR_STALLED = 6,
    /// A connection broke.
    RCC_ERROR_TRANSPORT = 7,
    /// Not enough memory, descriptors or processes.
    RCC_ERROR_RESOURCE = 8,
    /// A rank has ended the communicator.
    RCC_ERROR_ABORTED = 9,
    /// A fault of rcc itself. Please report it, with the message.
    RCC_ERROR_INTERNAL = 10,
}

use rcc_status_t::{
    RCC_ERROR_ABORTED, RCC_ERROR_INTERNAL, RCC_ERROR_INVALID, RCC_ERROR_LATE, RCC_ERROR_MISMATCH,
    RCC_ERROR_PEER_DIED, RCC_ERROR_RESOURCE, RCC_ERROR_STALLED, RCC_ERROR_TRANSPORT, RCC_ERROR_UNSUPPORTED,
    RCC_SUCCESS,
};

/// A thread's last error.
#[derive(Default)]
struct Last {
    message: CString,
    culprits: Vec<u32>,
}

thread_local! {
    static LAST: RefCell<Last> = RefCell::default();
}

/// Runs a call, and keeps its error for this thread. The one place where panics end.
#[inline]
pub(crate) fn guard(work: impl FnOnce() -> Result<(), Error>) -> rcc_status_t {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => RCC_SUCCESS,
        Ok(Err(error)) => keep(&error),
        Err(panic) => keep(&panicked(panic)),
    }
}

/// An error of the caller's.
pub(crate) fn invalid(message: impl Into<String>) -> Error {
    Error::new(Kind::Invalid, message)
}

#[cold]
fn keep(error: &Error) -> rcc_status_t {
    let message = text(error.to_string());
    let last = Last { message, culprits: error.culprits.clone() };
    // A thread that is at its end has nobody to read it.
    let _ = LAST.try_with(|slot| slot.replace(last));
    of(error.kind)
}

#[cold]
fn panicked(panic: Box<dyn Any + Send>) -> Error {
    let said = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(said), _) => (*said).to_string(),
        (_, Some(said)) => said.clone(),
        _ => "it did not say why".to_string(),
    };
    // What it panicked with may panic again when it is dropped.
    std::mem::forget(panic);
    Error::new(Kind::Internal, format!("rcc panicked: {said}"))
}

fn of(kind: Kind) -> rcc_status_t {
    match kind {
        Kind::Invalid => RCC_ERROR_INVALID,
        Kind::Unsupported => RCC_ERROR_UNSUPPORTED,
        Kind::Mismatch => RCC_ERROR_MISMATCH,
        Kind::PeerDied => RCC_ERROR_PEER_DIED,
        Kind::Late => RCC_ERROR_LATE,
        Kind::Stalled => RCC_ERROR_STALLED,
        Kind::Transport => RCC_ERROR_TRANSPORT,
        Kind::Resource => RCC_ERROR_RESOURCE,
        Kind::Aborted => RCC_ERROR_ABORTED,
        Kind::Internal => RCC_ERROR_INTERNAL,
    }
}

/// Text for C: a NUL within is shown as such.
pub(crate) fn text(text: String) -> CString {
    CString::new(text).unwrap_or_else(|error| {
        let text = String::from_utf8_lossy(&error.into_vec()).replace('\0', "\\0");
        CString::new(text).unwrap_or_default()
    })
}

/// What the last call of this thread that failed has to say: what happened, which rank saw it, where each
/// rank stood, and what to do, in several lines. "" if none has. It stays as it is until another call of
/// this thread fails; it need not be freed.
#[unsafe(no_mangle)]
pub extern "C" fn rcc_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().message.as_ptr()).unwrap_or(c"".as_ptr())
}

/// The ranks at fault in that error, as far as known: at most `capacity` of them go to `ranks`. Returns how
/// many there are.
///
/// # Safety
/// `ranks` has room for `capacity` numbers, or is NULL: then none are written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcc_last_error_ranks(ranks: *mut u32, capacity: usize) -> usize {
    let copied = LAST.try_with(|last| {
        let culprits = &last.borrow().culprits;
        if !ranks.is_null() {
            let count = culprits.len().min(capacity);
            // SAFETY: the caller's promise.
            unsafe { std::ptr::copy_nonoverlapping(culprits.as_ptr(), ranks, count) };
        }
        culprits.len()
    });
    copied.unwrap_or(0)
}

/// The name of a status, such as "RCC_ERROR_LATE". It need not be freed.
#[unsafe(no_mangle)]
pub extern "C" fn rcc_status_name(status: MaybeUninit<rcc_status_t>) -> *const c_char {
    let name = match number(status) {
        0 => c"RCC_SUCCESS",
        1 => c"RCC_ERROR_INVALID",
        2 => c"RCC_ERROR_UNSUPPORTED",
        3 => c"RCC_ERROR_MISMATCH",
        4 => c"RCC_ERROR_PEER_DIED",
        5 => c"RCC_ERROR_LATE",
        6 => c"RCC_ERROR_STALLED",
        7 => c"RCC_ERROR_TRANSPORT",
        8 => c"RCC_ERROR_RESOURCE",
        9 => c"RCC_ERROR_ABORTED",
        10 => c"RCC_ERROR_INTERNAL",
        _ => c"no status of rcc",
    };
    name.as_ptr()
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn said() -> String {
        // SAFETY: text of this library's, until the next call fails.
        unsafe { CStr::from_ptr(rcc_last_error()) }.to_str().unwrap().to_string()
    }

    #[test]
    fn a_panic_becomes_an_internal_error_with_its_text() {
        assert_eq!(said(), "");
        assert_eq!(guard(|| panic!("for {} reason", "no")), RCC_ERROR_INTERNAL);
        assert!(said().starts_with("rcc panicked: for no reason\n  help: "), "{}", said());
        struct Worse;
        impl Drop for Worse {
            fn drop(&mut self) {
                panic!("again");
            }
        }
        assert_eq!(guard(|| std::panic::panic_any(Worse)), RCC_ERROR_INTERNAL);
        assert!(said().contains("it did not say why"));
    }

    #[test]
    fn errors_are_each_threads_own_and_stay_until_the_next() {
        let error = invalid("a\0b").of(vec![3, 1]);
        assert_eq!(guard(|| Err(error)), RCC_ERROR_INVALID);
        assert_eq!(guard(|| Ok(())), RCC_SUCCESS);
        assert!(said().starts_with("a\\0b\n"), "{}", said());
        let mut ranks = [9; 3];
        // SAFETY: there is room.
        let count = unsafe { rcc_last_error_ranks(ranks.as_mut_ptr(), 1) };
        assert_eq!((count, ranks), (2, [3, 9, 9]));
        // SAFETY: none is written.
        assert_eq!(unsafe { rcc_last_error_ranks(std::ptr::null_mut(), 7) }, 2);
        std::thread::spawn(|| assert_eq!(said(), "")).join().unwrap();
    }

    #[test]
    fn every_kind_has_its_number_and_name() {
        let kinds = [
            Kind::Invalid,
            Kind::Unsupported,
            Kind::Mismatch,
            Kind::PeerDied,
            Kind::Late,
            Kind::Stalled,
            Kind::Transport,
            Kind::Resource,
            Kind::Aborted,
            Kind::Internal,
        ];
        for (number, kind) in (1..).zip(kinds) {
            assert_eq!(of(kind) as i32, number);
            // SAFETY: text of this library's.
            let name =
                unsafe { CStr::from_ptr(rcc_status_name(MaybeUninit::new(of(kind)))) }.to_str().unwrap();
            assert_eq!(name, format!("{:?}", of(kind)));
        }
    }
}
