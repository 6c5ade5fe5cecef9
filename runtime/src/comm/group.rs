//! Many calls launched as one.
//!
//! In: calls, of one communicator or of several that one thread holds. Out: all of them started, those of a communicator in the order given, and
//! ended. The one hard idea: nothing begins before everything has been found right, so that a wrong argument does not leave half of the
//! calls made. More calls of a plan than may be under way at once wait for their turn, and hold up nobody else's: the ranks of one thread
//! would wait for each other in vain.

use super::{Communicator, PlanId};
use crate::error::{Error, Kind};
use crate::exec::Shape;
use crate::exec::buffers::Buffers;

/// Calls to be launched together.
#[derive(Debug)]
pub struct Group<'env> {
    calls: Vec<Queued<'env>>,
}

#[derive(Debug)]
struct Queued<'env> {
    communicator: usize,
    plan: PlanId,
    shape: Shape,
    buffers: Buffers<'env>,
}

impl<'env> Group<'env> {
    /// Adds a call of the only communicator, or of the first.
    pub fn call(&mut self, plan: PlanId, shape: Shape, buffers: Buffers<'env>) {
        self.call_of(0, plan, shape, buffers);
    }

    /// Adds a call of one of several communicators, by its place among them.
    pub fn call_of(&mut self, communicator: usize, plan: PlanId, shape: Shape, buffers: Buffers<'env>) {
        self.calls.push(Queued { communicator, plan, shape, buffers });
    }
}

impl Communicator {
    /// Many calls launched as one: those that `work` adds start together, in its order, and have ended when this returns. All ranks add the
    /// same calls in the same order.
    ///
    /// # Errors
    /// What `work` says, or what is wrong with the arguments of any call: then none was started. Else the error of the first call that failed.
    pub fn group<'env>(
        &mut self,
        work: impl FnOnce(&mut Group<'env>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        group(&mut [self], work)
    }
}

/// The same with calls of several communicators, each of which starts its own in the order given: for a thread that holds several ranks, or ranks of several communicators. They must drive
/// each other: made together by [`Communicator::one_thread`], or one from the other.
///
/// # Errors
/// As for [`Communicator::group`].
pub fn group<'env>(
    communicators: &mut [&mut Communicator],
    work: impl FnOnce(&mut Group<'env>) -> Result<(), Error>,
) -> Result<(), Error> {
    let strangers = |pair: &[&mut Communicator]| !pair[0].drives(pair[1]);
    if communicators.windows(2).any(strangers) {
        let message = "the communicators of a group must drive each other";
        let help = "make them by `Communicator::one_thread`, `split`, `duplicate` or `shrink`";
        return Err(Error::new(Kind::Invalid, message).help(help));
    }
    let mut group = Group { calls: Vec::new() };
    work(&mut group)?;
    let count = communicators.len();
    for Queued { communicator, plan, shape, buffers } in &group.calls {
        let none = || {
            let message = format!("a group of {count} communicators has none at place {communicator}");
            Error::new(Kind::Invalid, message)
        };
        communicators.get_mut(*communicator).ok_or_else(none)?.check(*plan, *shape, buffers)?;
    }
    let mut started = Started { communicators, calls: Vec::with_capacity(group.calls.len()), first: Ok(()) };
    // SAFETY: what is lent is borrowed until `group` is dropped, after `started` has waited for all calls, also when it unwinds.
    started.first = unsafe { started.start(&group.calls) };
    started.end();
    let first = std::mem::replace(&mut started.first, Ok(()));
    drop(started);
    first
}

/// Calls that have been started and not been waited for.
struct Started<'g, 'c> {
    communicators: &'g mut [&'c mut Communicator],
    calls: Vec<(usize, u64)>,
    /// The first error.
    first: Result<(), Error>,
}

impl Started<'_, '_> {
    /// Starts all, each as soon as it may be under way; the first error ends that.
    ///
    /// # Safety
    /// The calls' buffers are lent until [`Started::end`] has returned, also when it unwinds.
    unsafe fn start(&mut self, calls: &[Queued<'_>]) -> Result<(), Error> {
        let mut waiting: Vec<&Queued<'_>> = calls.iter().collect();
        // How many calls of each communicator wait; whether one waits for another call of its plan to end.
        let mut left = vec![0; self.communicators.len()];
        calls.iter().for_each(|call| left[call.communicator] += 1);
        let mut held = vec![None; self.communicators.len()];
        while !waiting.is_empty() {
            held.fill(None);
            let mut rest = Vec::new();
            for call in waiting {
                let Queued { communicator: at, plan, shape, buffers } = call;
                let communicator = &mut *self.communicators[*at];
                if held[*at].is_some() || !communicator.may_start(*plan, false)? {
                    held[*at].get_or_insert(*plan);
                    rest.push(call);
                    continue;
                }
                // SAFETY: the caller's promise.
                let issued = unsafe { communicator.issue(*plan, *shape, buffers, None) }?;
                self.calls.push((*at, issued));
                left[*at] -= 1;
            }
            waiting = rest;
            // The one that is behind: all other ranks of its world that this thread holds have started what it waits for.
            let behind = (0..left.len()).max_by_key(|&at| left[at]);
            if let Some((at, plan)) = behind.and_then(|at| Some((at, held[at]?))) {
                self.communicators[at].may_start(plan, true)?;
            }
        }
        Ok(())
    }

    fn end(&mut self) {
        for (communicator, call) in std::mem::take(&mut self.calls) {
            let ended = self.communicators[communicator].seat.enter().wait(call);
            if self.first.is_ok() {
                self.first = ended;
            }
        }
    }
}

impl Drop for Started<'_, '_> {
    fn drop(&mut self) {
        // Only where it unwinds there is something left to wait for.
        self.end();
    }
}
