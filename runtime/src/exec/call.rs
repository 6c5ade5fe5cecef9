//! One call, in parts: enter, turn by turn, leave.
//!
//! In: a rank, and buffers that have been found to be as the plan asks. Out: the result in them, or an error. What is between
//! [`Rank::enter`] and [`Rank::leave`] may be shared with other calls: a turn never waits.

use plan::ids::{BufferId, RankId};

use super::block::Act;
use super::buffers::Buffers;
use super::drive::{Progress, Stop, sweep};
use super::exposed::Exposed;
use super::leave::{self, Access};
use super::operator::User;
use super::places::Area;
use super::{Rank, Shape};
use crate::error::{Error, Kind};
use crate::memory::segment::Segment;

/// A call that is under way.
#[derive(Debug)]
pub(super) struct Current<'s> {
    call: u64,
    signature: u64,
    access: Access<'s>,
    /// The run had ended before it began.
    late: bool,
}

impl Rank<'_> {
    /// Whether buffers are what a call of this shape must have. They are those of the next call that is entered.
    pub(crate) fn check(
        &mut self,
        shape: Shape,
        user: Option<&User>,
        buffers: &Buffers<'_>,
    ) -> Result<(), Error> {
        self.idle()?;
        self.prepare_by(shape, user)?;
        let prepared = &mut self.prepared[self.at];
        if prepared.checked != buffers.areas() {
            buffers.check(self.plan, &prepared.layout, self.rank, shape.in_place)?;
            buffers.check_registered(self.plan, &self.exposed, self.segment, self.rank)?;
            prepared.checked.clear();
            prepared.checked.extend_from_slice(buffers.areas());
        }
        Ok(())
    }

    /// Refuses what would change a call that is under way.
    pub(super) fn idle(&self) -> Result<(), Error> {
        match self.current {
            None => Ok(()),
            Some(_) => Err(Error::new(Kind::Internal, "a call of this plan is under way")),
        }
    }

    /// ENTRY: from here on peers may rely on this rank. No other call of this plan is under way.
    ///
    /// # Errors
    /// What ended the run, if it has ended.
    ///
    /// # Safety
    /// [`Rank::check`] has just found buffers right; until [`Rank::leave`] their memory is there, and this call's alone (of `Send`
    /// buffers: nobody writes it).
    pub(crate) unsafe fn enter(&mut self, call: u64) -> Result<(), Error> {
        if let Some(cause) = self.segment.board().cause() {
            return Err(self.seen(cause));
        }
        self.call = call;
        let words = self.segment.rank(self.rank);
        let prepared = &mut self.prepared[self.at];
        if !words.keeps(prepared.recorded) {
            prepared.recorded = words.record(&prepared.record);
        }
        words.calls(call, prepared.recorded);
        let signature = prepared.signature.of_call(call);
        // Where its buffers lie is written down before any READY.
        let (access, late) = Access::enter(self.segment, self.rank, call, self.exposed.any());
        if !late {
            publish(self.segment, self.rank, &self.exposed, &prepared.checked);
            self.machine.begin(prepared.setting.slices);
        }
        self.current = Some(Current { call, signature, access, late });
        Ok(())
    }

    /// Lets every block act as far as it can for now.
    pub(crate) fn turn(&mut self) -> Result<Progress, Stop> {
        let Some(current) = &self.current else { return Ok(Progress { moved: false, finished: true }) };
        if current.late {
            return Err(Stop::Aborted);
        }
        let prepared = &self.prepared[self.at];
        let act = Act {
            setting: &prepared.setting,
            areas: &prepared.checked,
            scratch: self.scratch.start(),
            call: current.call,
            signature: current.signature,
            board: self.segment.board(),
        };
        // SAFETY: who entered promised that the buffers are there and this call's alone; sizes, overlaps and registration
        // were compared with what layout and plan ask for; scratch was sized and windows were prepared with the shape, which no
        // one changes while a call is under way. Peers run the same verified plan.
        unsafe { sweep(&mut self.machine, &act) }
    }

    /// EXIT: nobody touches the buffers any more, unless it failed and peers reach into them ([`Rank::settle`]).
    ///
    /// # Errors
    /// Whatever ended the call also stands on the board and ends it for all ranks.
    pub(crate) fn leave(&mut self, ended: Result<(), Stop>) -> Result<(), Error> {
        // What was read from peers is good if nobody had given up when the last of it had been read.
        let aborted = ended.is_ok() && self.machine.program.reads_peers && !leave::good(self.segment);
        if let Some(Current { access, .. }) = self.current.take() {
            drop(access);
        }
        match ended {
            Err(stop) => Err(self.fail(stop)),
            Ok(()) if aborted => Err(self.fail(Stop::Aborted)),
            // Every access of a peer has ended before a DONE that this rank has received (V5).
            Ok(()) => Ok(()),
        }
    }

    /// Waits, after a call has failed, until no peer can touch this rank's memory, or puts it in quarantine.
    pub(crate) fn settle(&self, call: u64) {
        leave::settle(self.segment, self.rank, &self.accessors, call);
    }
}

/// Writes down where the buffers lie that peers reach into.
fn publish(segment: &Segment, rank: RankId, exposed: &Exposed, areas: &[Area]) {
    if !exposed.any() {
        return;
    }
    let (region, _) = segment.region(rank);
    for (b, area) in areas.iter().enumerate() {
        let buffer = BufferId::new(b);
        if exposed.is(rank, buffer) {
            // An empty buffer may lie anywhere; nobody asks.
            let offset = if area.bytes > 0 { (area.start as u64).wrapping_sub(region as u64) } else { 0 };
            segment.area(rank, buffer).publish(offset, area.bytes);
        }
    }
}
