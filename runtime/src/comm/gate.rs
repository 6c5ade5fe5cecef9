//! Who drives a communicator's calls: its owner, or, while it is away, anyone who waits.
//!
//! In: the owner, who comes and goes; visitors, who only try. Out: at most one of them is inside. The one hard idea: where nothing is
//! under way the gate is *private*, and stays so until the owner opens it: then the owner goes in and out without a single
//! atomic read-modify-write, and visitors keep out. Only calls that the owner leaves under way make it *open*; whoever goes in then
//! *holds* it, and who leaves with the last call done makes it private again.

use super::sync::{AtomicU32, Ordering, give_way};

const PRIVATE: u32 = 0;
const OPEN: u32 = 1;
const HELD: u32 = 2;

/// The gate.
#[derive(Debug)]
pub(crate) struct Gate {
    state: AtomicU32,
    /// The owner waits for a visitor to leave.
    wanted: AtomicU32,
}

/// How someone is inside, to be given back to [`Gate::leave`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The owner alone knows.
    Private,
    /// The gate is held.
    Held,
}

/// What a gate became when someone left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// As it was.
    None,
    /// Visitors may enter from now on.
    Opened,
    /// They may not any more.
    Closed,
}

impl Gate {
    /// Private.
    pub(crate) fn new() -> Gate {
        Gate { state: AtomicU32::new(PRIVATE), wanted: AtomicU32::new(0) }
    }

    /// The owner goes in; waits for a visitor to leave.
    #[inline]
    pub(crate) fn enter(&self) -> Way {
        if self.state.load(Ordering::Acquire) == PRIVATE { Way::Private } else { self.enter_open() }
    }

    #[cold]
    fn enter_open(&self) -> Way {
        self.wanted.store(1, Ordering::Relaxed);
        let way = loop {
            match self.state.compare_exchange(OPEN, HELD, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => break Way::Held,
                // The visitor has seen the last call end.
                Err(PRIVATE) => break Way::Private,
                Err(_) => give_way(),
            }
        };
        self.wanted.store(0, Ordering::Relaxed);
        way
    }

    /// A visitor goes in, if the gate is open and the owner does not wait.
    #[inline]
    pub(crate) fn visit(&self) -> bool {
        self.state.load(Ordering::Relaxed) == OPEN
            && !self.wanted()
            && self.state.compare_exchange(OPEN, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Whether the owner waits for a visitor to leave.
    #[inline]
    pub(crate) fn wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) != 0
    }

    /// Who is inside leaves; `under_way`: some calls have not ended.
    #[inline]
    pub(crate) fn leave(&self, way: Way, under_way: bool) -> Change {
        if way == Way::Private && !under_way {
            return Change::None;
        }
        self.state.store(if under_way { OPEN } else { PRIVATE }, Ordering::Release);
        match (way, under_way) {
            (Way::Private, _) => Change::Opened,
            (Way::Held, true) => Change::None,
            (Way::Held, false) => Change::Closed,
        }
    }
}
