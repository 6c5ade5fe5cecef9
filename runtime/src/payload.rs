//! What a panic of the user's code carries.
//!
//! In: the payload of a panic that was caught. Out: nothing. The one hard idea: it is the user's as well, and may panic in turn when it is
//! dropped; only what that panic carries is given up.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Drops it, and lets no panic out.
pub(crate) fn discard(payload: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(again);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::panic_any;

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("once more");
        }
    }

    #[test]
    fn a_payload_that_panics_goes_no_further() {
        let caught = std::panic::catch_unwind(|| panic_any(Bomb));
        super::discard(caught.expect_err("it panics"));
    }
}
