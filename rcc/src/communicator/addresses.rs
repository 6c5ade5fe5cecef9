//! Calls with buffers by their addresses, and types known at run time: what bindings for other languages stand on.
//!
//! In: a call in data, addresses. Out: the call made, or prepared: a plan, a shape, buffers, for whatever the runtime's communicator does with them
//! (start, group, combine by a user's operator). The one hard idea: no slice is made of an address, since buffers in place overlap, and
//! what is lent to a call under way has no lifetime that Rust knows of; so these are `unsafe`, and all else about them is checked.

use plan::dtype::{Dtype, Op};
use plan::ids::BufferId;
use plan::plan::{Plan, Role};
use runtime::comm::PlanId;
use runtime::error::{Error, Kind};
use runtime::exec::Shape;
use runtime::exec::buffers::Buffers;
use runtime::small;

use super::calls::shape;
use super::{Algorithm, Communicator};
use crate::select::StandardCall;

/// Memory by its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// Its first byte; whatever it is where there are none.
    pub start: *mut u8,
    /// How many bytes it has.
    pub bytes: usize,
}

/// The memory of a buffer of a user's own algorithm.
#[derive(Debug, Clone, Copy)]
pub struct NamedAt<'a> {
    /// What the program calls it.
    pub name: &'a str,
    /// What is read, where the rank reads it.
    pub send: Option<At>,
    /// What is written, where the rank writes it.
    pub recv: Option<At>,
    /// All of it is from [`Communicator::alloc`], or the runtime's.
    pub registered: bool,
}

/// A call that only has to be made.
#[derive(Debug)]
pub struct Prepared<'a> {
    /// The plan it runs.
    pub plan: PlanId,
    /// Of this shape.
    pub shape: Shape,
    /// With these buffers.
    pub buffers: Buffers<'a>,
}

impl At {
    /// No memory.
    pub const NONE: At = At { start: std::ptr::null_mut(), bytes: 0 };

    /// Whether the two share a byte.
    pub fn overlaps(self, other: At) -> bool {
        let (a, b) = (self.start.addr(), other.start.addr());
        self.bytes > 0
            && other.bytes > 0
            && a < b.saturating_add(other.bytes)
            && b < a.saturating_add(self.bytes)
    }
}

impl Communicator {
    /// A call of a standard collective; returns when the result is there and nobody touches the buffers any more. What a rank does not send or receive is not looked at.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for a call that there is not, for lengths that do not fit it, and for buffers that overlap otherwise than its form has it; what ended the call at
    /// all ranks.
    ///
    /// # Safety
    /// Until it returns, `send` may be read, `recv` written, and nobody else writes either, or reads `recv`. If the call is `registered`, both lie in memory of
    /// [`Communicator::alloc`].
    #[inline]
    pub unsafe fn call_at(&mut self, call: &StandardCall, send: At, recv: At) -> Result<(), Error> {
        let standard = self.standard(call)?;
        if let Some(small) = standard.small() {
            self.told(&standard, None);
            let (input, output) = ((send.start.cast_const(), send.bytes), (recv.start, recv.bytes));
            // SAFETY: the caller's promise.
            let mut buffers = unsafe { small::Buffers::at(input, output) };
            return self.inner.small(&small, &mut buffers);
        }
        // SAFETY: the caller's promise.
        let Prepared { plan, shape, mut buffers } = unsafe { self.prepare_at(call, send, recv) }?;
        self.told(&standard, Some(plan));
        self.inner.call(plan, shape, &mut buffers)
    }

    /// The same, not yet made, by a plan also where it is small.
    ///
    /// # Errors
    /// As for [`Communicator::call_at`].
    ///
    /// # Safety
    /// As for [`Communicator::call_at`], until the call has ended.
    pub unsafe fn prepare_at<'a>(
        &mut self,
        call: &StandardCall,
        send: At,
        recv: At,
    ) -> Result<Prepared<'a>, Error> {
        let call = self.standard(call)?;
        let ready = self.ready(&call)?;
        let mut buffers = Buffers::new(self.inner.plan(ready.plan));
        for (buffer, at) in [(ready.send, send), (ready.recv, recv)] {
            if let Some(buffer) = buffer {
                // SAFETY: the caller's promise.
                buffers = unsafe { buffers.at(buffer, (at.start, at.bytes as u64), call.registered) };
            }
        }
        Ok(Prepared { plan: ready.plan, shape: shape(&call), buffers })
    }

    /// A call of an algorithm, not yet made, with buffers by their names in the program.
    ///
    /// It is in place if any that is read overlaps one that is written. Where this rank has not both (as all but the root in a gather), that is as the plan is, if it
    /// serves one form only; else the call is in place if the buffer that only others have is named as well, at the address of one that this rank has. Its memory is not
    /// looked at.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for an algorithm of another communicator, and for buffers that it does not have.
    ///
    /// # Safety
    /// As for [`Communicator::prepare_at`].
    pub unsafe fn prepare_named<'a>(
        &mut self,
        algorithm: Algorithm,
        (dtype, op): (Dtype, Op),
        named: &[NamedAt<'_>],
    ) -> Result<Prepared<'a>, Error> {
        self.inner.has_opened(algorithm.0)?;
        let rank = self.inner.rank();
        let plan: &Plan = self.inner.plan(algorithm.0);
        let mut buffers = Buffers::new(plan);
        let mut elements = None;
        // What this rank reads, and what it writes; what others do, of which only the addresses mean anything.
        let (mut own, mut others) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        for &NamedAt { name, send, recv, registered } in named {
            for (side, (role, at)) in [(Role::Send, send), (Role::Recv, recv)].into_iter().enumerate() {
                let Some(at) = at else { continue };
                let is = |b: &plan::plan::Buffer| b.name == name && b.role == role;
                let Some(place) = plan.buffers.iter().position(|b| is(b) && b.at.holds(rank)) else {
                    if !plan.buffers.iter().any(is) {
                        return Err(no_buffer(plan, rank, name, role));
                    }
                    others[side].push(at);
                    continue;
                };
                own[side].push(at);
                let block = u64::from(plan.buffers[place].blocks) * u64::from(dtype.size());
                elements = elements.or((at.bytes as u64).checked_div(block));
                // SAFETY: the caller's promise.
                buffers =
                    unsafe { buffers.at(BufferId::new(place), (at.start, at.bytes as u64), registered) };
            }
        }
        let elements = elements.unwrap_or(0);
        let [reads, writes] = &own;
        let overlap = reads.iter().any(|send| writes.iter().any(|recv| send.overlaps(*recv)));
        let same =
            |these: &[At], those: &[At]| these.iter().any(|a| those.iter().any(|b| a.start == b.start));
        let named_same = elements > 0 && (same(reads, &others[1]) || same(&others[0], writes));
        let in_place = overlap || named_same || (!plan.header.forms.disjoint && !tells(plan, rank, elements));
        let shape = Shape { elements, dtype, op, in_place };
        Ok(Prepared { plan: algorithm.0, shape, buffers })
    }
}

/// Whether a rank's buffers lie otherwise in place than out of place.
fn tells(plan: &Plan, rank: plan::ids::RankId, elements: u64) -> bool {
    let has = |buffer: BufferId| plan.buffers[buffer.index()].at.holds(rank);
    elements > 0 && plan.overlaps.iter().any(|o| o.rank == rank && has(o.left) && has(o.right))
}

fn no_buffer(plan: &Plan, rank: plan::ids::RankId, name: &str, role: Role) -> Error {
    let does = if role == Role::Send { "reads" } else { "writes" };
    let message = format!("rank {} {does} no buffer `{name}` in `{}`", rank.0, plan.header.algorithm);
    let known = plan.buffers.iter().filter(|b| b.role == role && b.at.holds(rank));
    let known: Vec<&str> = known.map(|b| b.name.as_str()).collect();
    Error::new(Kind::Invalid, message).help(match known.is_empty() {
        true => format!("it {does} none"),
        false => format!("it {does} {}", known.join(", ")),
    })
}
