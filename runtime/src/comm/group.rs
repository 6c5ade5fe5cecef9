//! Many calls launched as one.
//!
//! In: calls, of one communicator or of several that one thread holds. Out: all of them started in the order given, and ended. The one hard
//! idea: nothing begins before everything has been found right, so that a wrong argument does not leave half of the calls made.

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

/// The same with calls of several communicators: for a thread that holds several ranks, or ranks of several communicators. They must drive
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
    for Queued { communicator, plan, shape, buffers } in &group.calls {
        // SAFETY: what is lent is borrowed until `group` is dropped, after `started` has waited for all calls, also when it unwinds.
        let issued = unsafe { started.communicators[*communicator].issue(*plan, *shape, buffers, None) };
        match issued {
            Ok(call) => started.calls.push((*communicator, call)),
            Err(error) => {
                started.first = Err(error);
                break;
            }
        }
    }
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
