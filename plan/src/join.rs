//! Two computations at once.
//!
//! In: two closures that share only what neither of them changes, and whether the work is worth a thread. Out: what both give,
//! the same as if one had run after the other. The one hard idea: a thread is a favour of the system. Where there is none to
//! be had, the second closure runs here after the first, so `here` must never wait for `beside`; `beside` may wait for `here`.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Runs `here`, and `beside` on a thread of its own if that is worth it; else one after the other, `here` first.
pub fn join<A, B: Send>(
    worth_it: bool,
    here: impl FnOnce() -> A,
    beside: impl FnOnce() -> B + Send,
) -> (A, B) {
    if !worth_it {
        let first = here();
        return (first, beside());
    }
    // A thread that cannot be had leaves its work behind.
    let work = Mutex::new(Some(beside));
    let run = || work.lock().unwrap_or_else(PoisonError::into_inner).take().map(|beside| beside());
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, run);
        let first = here();
        let second = match thread.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(second)) => second,
            Ok(Err(panic)) => resume_unwind(panic),
            Err(_) => run(),
        };
        match second {
            Some(second) => (first, second),
            None => unreachable!("the work is taken once, by the thread or here"),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::join;

    #[test]
    fn both_results_come_back_in_their_places() {
        for worth_it in [false, true] {
            let text = String::from("shared");
            let (length, shout) = join(worth_it, || text.len(), || text.to_uppercase());
            assert_eq!((length, shout.as_str()), (6, "SHARED"));
        }
    }

    #[test]
    fn what_runs_beside_may_wait_for_what_runs_here() {
        for worth_it in [false, true] {
            let (send, receive) = channel();
            let here = move || (0..1000).for_each(|number| send.send(number).expect("someone listens"));
            let ((), sum) = join(worth_it, here, move || receive.iter().sum::<u32>());
            assert_eq!(sum, 499_500);
        }
    }

    #[test]
    fn a_panic_beside_is_a_panic_here() {
        for worth_it in [false, true] {
            let caught = std::panic::catch_unwind(|| join(worth_it, || 1, || -> u32 { panic!("spoilt") }));
            assert_eq!(caught.expect_err("it panics").downcast_ref(), Some(&"spoilt"));
        }
    }
}
