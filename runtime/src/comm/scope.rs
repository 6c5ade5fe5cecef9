//! Several calls under way at once.
//!
//! In: buffers that outlive the scope. Out: calls that have ended when the scope has. The one hard idea: a call that is under way
//! writes to memory that its caller has lent, and a handle to it can be forgotten; so it is not the handle that keeps the loan but the
//! scope, whose end always comes (as for `std::thread::scope`).

use std::marker::PhantomData;

use smallvec::SmallVec;

use super::{Communicator, PlanId};
use crate::error::Error;
use crate::exec::Shape;
use crate::exec::buffers::Buffers;
use crate::small;

/// Where calls are started.
#[derive(Debug)]
pub struct Scope<'c, 'env> {
    communicator: &'c mut Communicator,
    /// Those started here that have not been waited for.
    started: SmallVec<[u64; 4]>,
    /// Invariant: what is lent lives for all of `'env`.
    lent: PhantomData<&'env mut &'env ()>,
}

/// A call that was started in a scope.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the call's error is here"]
pub struct Pending(u64);

impl<'c, 'env> Scope<'c, 'env> {
    pub(super) fn new(communicator: &'c mut Communicator) -> Scope<'c, 'env> {
        Scope { communicator, started: SmallVec::new(), lent: PhantomData }
    }

    /// Starts a call. It goes on while this rank waits for any call, or asks for one. Where as many calls of the plan are under way
    /// as may be, the one that was started first ends before.
    ///
    /// # Errors
    /// What is wrong with the arguments, or what ended the communicator.
    #[expect(clippy::needless_pass_by_value, reason = "what is lent is given away until the scope ends")]
    pub fn start(&mut self, plan: PlanId, shape: Shape, buffers: Buffers<'env>) -> Result<Pending, Error> {
        // SAFETY: what is lent is borrowed for all of `'env`, which ends after the scope does.
        unsafe { self.start_lent(plan, shape, &buffers) }
    }

    /// Starts a small call ([`Communicator::small`]).
    ///
    /// # Errors
    /// What is wrong with the arguments, or what ended the communicator.
    #[expect(clippy::needless_pass_by_value, reason = "what is lent is given away until the scope ends")]
    pub fn start_small(
        &mut self,
        call: &small::Call,
        buffers: small::Buffers<'env>,
    ) -> Result<Pending, Error> {
        let mut inside = self.communicator.seat.enter();
        // SAFETY: what is lent is borrowed for all of `'env`, which ends after the scope does.
        let call = unsafe { inside.issue_small(call, &buffers) }?;
        // Before anything that might unwind.
        self.started.push(call);
        // Others may wait for this rank's part alone.
        inside.turn();
        Ok(Pending(call))
    }

    /// The same with memory of which the caller knows that it is lent for as long as the scope is there.
    ///
    /// # Safety
    /// It is, and nobody else touches it (`Send` buffers: nobody writes it). The scope waits for all calls before it ends, also
    /// when it unwinds.
    pub(super) unsafe fn start_lent(
        &mut self,
        plan: PlanId,
        shape: Shape,
        buffers: &Buffers<'_>,
    ) -> Result<Pending, Error> {
        // SAFETY: the caller's promise.
        let call = unsafe { self.communicator.issue(plan, shape, buffers, None) }?;
        self.started.push(call);
        Ok(Pending(call))
    }

    /// Waits until a call has ended.
    ///
    /// # Errors
    /// What ended it.
    #[expect(clippy::needless_pass_by_value, reason = "a call is waited for once")]
    pub fn wait(&mut self, pending: Pending) -> Result<(), Error> {
        let ended = self.communicator.seat.enter().wait(pending.0);
        // Not before: if that unwinds, the scope still waits.
        self.started.retain(|call| *call != pending.0);
        ended
    }

    /// Lets all calls go on as far as they can for now; whether this one has ended.
    pub fn test(&mut self, pending: &Pending) -> bool {
        let mut inside = self.communicator.seat.enter();
        let _ = inside.look() || inside.others();
        inside.flights.is_over(pending.0)
    }

    /// Waits for all that have been started.
    pub(super) fn end(&mut self) -> Result<(), Error> {
        let mut first = Ok(());
        for call in std::mem::take(&mut self.started) {
            let ended = self.communicator.seat.enter().wait(call);
            first = first.and(ended);
        }
        first
    }
}

impl Drop for Scope<'_, '_> {
    fn drop(&mut self) {
        // Only where it unwinds there is something left to wait for.
        let _ = self.end();
    }
}
