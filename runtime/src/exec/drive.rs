//! Drives all blocks of a rank to their ends.
//!
//! In: a machine at the beginning of a call. Out: all blocks done, or why the rank stops. Every block in turn acts while it
//! can; when none can, the rank waits ([`crate::wait`]) and looks at the abort word and the deadline. A block that has
//! done its part is not looked at again.

use std::time::Duration;

use plan::ids::RankId;

use super::Patience;
use super::block::{Act, Advance, Machine};
use crate::memory::hall::Hall;
use crate::memory::segment::Segment;
use crate::wait::{Turn, Waiter};
use crate::watch;

/// Why a rank stops waiting.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stop {
    /// The board says so.
    Aborted,
    /// Nothing has moved for too long.
    Deadline {
        /// For how long.
        waited: Duration,
    },
    /// A message of a different call.
    Mismatch {
        /// An index into `Machine::incoming`.
        end: usize,
    },
    /// A peer has entered this call, or one before, with something else.
    Differs {
        /// Which.
        from: RankId,
        /// Which call.
        call: u64,
    },
    /// A peer has come to something that this rank has not come to, and not to this call.
    Elsewhere,
    /// The user's operator panicked.
    Panicked,
    /// A peer has left.
    Gone {
        /// Which.
        from: RankId,
    },
    /// A peer's buffer lies where it cannot.
    Astray {
        /// An index into `Machine::windows`.
        window: usize,
    },
}

/// What came of a look at all blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Some block acted.
    pub(crate) moved: bool,
    /// All have done their part.
    pub(crate) finished: bool,
}

/// One look at every block that has not finished.
///
/// # Safety
/// As for `Machine::advance`.
pub(super) unsafe fn sweep(machine: &mut Machine<'_>, act: &Act<'_>) -> Result<Progress, Stop> {
    let (mut moved, mut stop) = (false, None);
    let mut live = std::mem::take(&mut machine.live);
    live.retain(|&index| {
        if stop.is_some() {
            return true;
        }
        // SAFETY: the caller's promise.
        match unsafe { machine.advance(index as usize, act) } {
            Advance::Moved => moved = true,
            Advance::Finished | Advance::Blocked => {}
            Advance::Mismatch { end } => stop = Some(Stop::Mismatch { end }),
            Advance::Aborted => stop = Some(Stop::Aborted),
            Advance::Panicked => stop = Some(Stop::Panicked),
            Advance::Astray { window } => stop = Some(Stop::Astray { window }),
        }
        !machine.finished(index as usize)
    });
    machine.live = live;
    stop.map_or(Ok(Progress { moved, finished: machine.live.is_empty() }), Err)
}

/// Drives what `turn` looks at to its end.
pub(super) fn drive(
    mut turn: impl FnMut() -> Result<Progress, Stop>,
    waiter: &mut Waiter,
    segment: &Segment,
    rank: RankId,
    call: u64,
    patience: Patience,
) -> Result<(), Stop> {
    waiter.reset();
    let deadline = patience.stalled.min(patience.late);
    loop {
        let mut now = turn()?;
        if !now.moved && !now.finished {
            let mut woken = Ok(now);
            let stop = pause(waiter, segment.hall(), rank, deadline, || {
                woken = turn();
                !matches!(woken, Ok(Progress { moved: false, finished: false }))
            });
            now = woken?;
            match stop {
                Some(Stop::Deadline { waited }) if !now.moved && !now.finished => {
                    // Which deadline counts depends on whether somebody is missing.
                    let missing = !watch::absent(segment.hall(), call).is_empty();
                    if waited > if missing { patience.late } else { patience.stalled } {
                        return Err(Stop::Deadline { waited });
                    }
                }
                None | Some(Stop::Deadline { .. }) => {}
                Some(stop) => return Err(stop),
            }
        }
        if now.finished {
            return Ok(());
        }
        if now.moved {
            // A rank that always can act must still see that the run has ended.
            if segment.board().aborted() {
                return Err(Stop::Aborted);
            }
            waiter.reset();
        }
    }
}

/// One round of a wait; `ready` is a last look before sleeping.
#[inline]
pub(crate) fn pause(
    waiter: &mut Waiter,
    hall: &Hall,
    rank: RankId,
    deadline: Duration,
    ready: impl FnOnce() -> bool,
) -> Option<Stop> {
    if hall.board().aborted() {
        return Some(Stop::Aborted);
    }
    if waiter.round() == Turn::Sleep {
        hall.rank(rank).sleep(ready);
    }
    let waited = waiter.waited();
    (waited > deadline).then_some(Stop::Deadline { waited })
}
