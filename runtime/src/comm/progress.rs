//! A thread that drives calls while nobody else does.
//!
//! In: a family of communicators. Out: calls that were left under way go on though their owner computes. The one hard idea: it must cost
//! nothing where it is not needed, so it sleeps without a timeout unless calls are under way and nobody is inside; whoever leaves
//! calls under way wakes it, and a wake-up that comes too early is kept (`Thread::unpark`).

use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;

use super::engine::{Family, Visit};
use crate::error::{Error, Kind};
use crate::wait::{Policy, Turn, Waiter};

/// A family's thread, if it has one.
#[derive(Debug, Default)]
pub(super) struct Progress {
    thread: OnceLock<Result<JoinHandle<()>, String>>,
}

/// It shares the CPUs with those who compute: it soon sleeps, and is woken by messages.
const POLICY: Policy = Policy { pauses: 1, least_pauses: 1, yields: 100 };

impl Progress {
    /// Starts the thread of a family that has none.
    pub(super) fn start(family: &Arc<Family>) -> Result<(), Error> {
        let spawn = || {
            let family = Arc::downgrade(family);
            let builder = std::thread::Builder::new().name("rcc-progress".to_string());
            builder.spawn(move || run(&family)).map_err(|e| e.to_string())
        };
        match family.progress.thread.get_or_init(spawn) {
            Ok(_) => Ok(()),
            Err(why) => Err(Error::new(Kind::Resource, format!("cannot start a thread: {why}"))),
        }
    }

    /// Whether there is a thread.
    pub(super) fn runs(&self) -> bool {
        self.thread.get().is_some_and(Result::is_ok)
    }

    /// Some call was left under way.
    #[inline]
    pub(super) fn wake(&self) {
        if let Some(Ok(thread)) = self.thread.get() {
            thread.thread().unpark();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let Some(Ok(thread)) = self.thread.take() else { return };
        thread.thread().unpark();
        // It may be that very thread that has dropped the family.
        if thread.thread().id() != std::thread::current().id() {
            // It has nothing to tell: what it found stands in the calls.
            let _ = thread.join();
        }
    }
}

fn run(family: &Weak<Family>) {
    let mut waiter = Waiter::new(POLICY);
    while let Some(present) = family.upgrade() {
        let Visit { moved, left, news } = present.visit(None);
        drop(news);
        match left {
            _ if moved => waiter.reset(),
            Some(engine) => {
                if waiter.round() == Turn::Sleep {
                    engine.hall.rank(engine.rank).sleep(|| present.others(None));
                }
            }
            None => {
                waiter.reset();
                drop(present);
                std::thread::park();
            }
        }
    }
}
