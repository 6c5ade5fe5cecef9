//! Entering and leaving a call in which ranks reach into each other's memory.
//!
//! In: the shared segment, a call. Out: the promise that nobody touches a rank's registered memory once the rank has its
//! result or its error. When all goes well the plan itself keeps it (every access ends before a DONE that the owner
//! receives). When a call fails the plan is left where it was, and another way is needed: every rank says when it will
//! touch no memory of others any more (`LaneWords::quiet`), and who fails waits for those that may reach into its
//! memory to say so, or to be dead. If one does neither for too long (its process is stopped), the memory is in
//! quarantine: it is not given out again.
//!
//! The one hard idea is who has entered. A rank says so and then looks at the abort word; one that fails sets the
//! abort word and then looks who has entered; full fences lie between. So either the one sees the other's call ended,
//! or the other knows whom it has to wait for.

use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

use plan::ids::RankId;

use crate::memory::segment::Segment;
use crate::watch;

/// For how long a failed call waits for peers that may still reach into its memory.
const QUIET: Duration = Duration::from_millis(500);
/// How often it looks.
const LOOK: Duration = Duration::from_micros(50);

/// Says, when dropped, that this rank touches nobody's memory in this call any more; also if it panics.
#[derive(Debug)]
pub(super) struct Access<'s> {
    quiet: &'s AtomicU64,
    call: u64,
}

impl<'s> Access<'s> {
    /// Enters `call`; whether the run has ended already. From here on peers may rely on this rank, and it may, if the
    /// call is `direct` and as the plan says, reach into their memory.
    pub(super) fn enter(segment: &'s Segment, rank: RankId, call: u64, direct: bool) -> (Access<'s>, bool) {
        let lane = segment.lane(rank);
        lane.entered.store(call, Ordering::Relaxed);
        // Whoever sees it sees what this rank wrote down about the call.
        segment.rank(rank).entered.store(call, Ordering::Release);
        let access = Access { quiet: &lane.quiet, call };
        if !direct {
            return (access, false);
        }
        fence(Ordering::SeqCst);
        (access, segment.board().aborted())
    }
}

impl Drop for Access<'_> {
    fn drop(&mut self) {
        self.quiet.store(self.call, Ordering::Release);
    }
}

/// Whether all that was read from peers is good: nobody had given up when the last of it had been read.
pub(super) fn good(segment: &Segment) -> bool {
    fence(Ordering::Acquire);
    !segment.board().aborted()
}

/// Waits, after `call` has failed at `rank` and stands on the board as failed, until none of `accessors` can touch
/// memory of this rank; or puts its registered memory in quarantine.
pub(super) fn settle(segment: &Segment, rank: RankId, accessors: &[RankId], call: u64) {
    fence(Ordering::SeqCst);
    let began = Instant::now();
    let silent = |peer: &RankId| {
        let lane = segment.lane(*peer);
        lane.quiet.load(Ordering::Acquire) >= call
            || lane.entered.load(Ordering::Relaxed) < call
            || watch::ended(segment.rank(*peer).pid.load(Ordering::Relaxed))
    };
    while !accessors.iter().all(silent) {
        if began.elapsed() > QUIET {
            segment.rank(rank).quarantined.store(1, Ordering::Relaxed);
            return;
        }
        std::thread::sleep(LOOK);
    }
}
