//! The collectives, typed.
//!
//! In: buffers of elements. Out: what the collective promises in them. Lengths are checked here, before anything is entered: what is
//! wrong with them ends nothing. All calls go one way ([`Communicator::apart`], [`Communicator::together`]), by what is selected.

use std::ops::Range;

use plan::dtype::{Dtype, Op};
use runtime::comm::PlanId;
use runtime::error::{Error, Kind};
use runtime::exec::Shape;
use runtime::exec::buffers::Buffers;
use runtime::small;

use super::key::Call;
use super::{Communicator, no_rank};
use crate::collective::Collective;
use crate::element::{Element, Memory, MemoryMut, bytes, bytes_mut};

impl Communicator {
    /// Every rank ends with the reduction of all ranks' `send` in `recv`.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for lengths that do not fit each other; what ended the call at all ranks, as for every call.
    pub fn all_reduce<T: Element>(
        &mut self,
        send: &(impl Memory<T> + ?Sized),
        recv: &mut (impl MemoryMut<T> + ?Sized),
        op: Op,
    ) -> Result<(), Error> {
        let count = send.elements().len();
        fits("receive buffer", recv.elements().len(), count)?;
        self.apart(of::<T>(Collective::Allreduce, count, 1, op), Some(send), Some(recv))
    }

    /// The same where the data is replaced by the result.
    ///
    /// # Errors
    /// As for [`Communicator::all_reduce`].
    pub fn all_reduce_in_place<T: Element>(
        &mut self,
        data: &mut (impl MemoryMut<T> + ?Sized),
        op: Op,
    ) -> Result<(), Error> {
        let count = data.elements().len();
        let call = of::<T>(Collective::Allreduce, count, 1, op);
        self.together(call, data, Some(0..count), Some(0..count))
    }

    /// Every rank ends with all ranks' `send`, in their order, in `recv`.
    ///
    /// # Errors
    /// As for [`Communicator::all_reduce`].
    pub fn all_gather<T: Element>(
        &mut self,
        send: &(impl Memory<T> + ?Sized),
        recv: &mut (impl MemoryMut<T> + ?Sized),
    ) -> Result<(), Error> {
        let count = send.elements().len();
        fits("receive buffer", recv.elements().len(), self.blocks(count)?)?;
        self.apart(of::<T>(Collective::Allgather, count, self.world(), Op::Sum), Some(send), Some(recv))
    }

    /// The same where each rank's part lies where it belongs in the result.
    ///
    /// # Errors
    /// As for [`Communicator::all_reduce`].
    pub fn all_gather_in_place<T: Element>(
        &mut self,
        data: &mut (impl MemoryMut<T> + ?Sized),
    ) -> Result<(), Error> {
        let all = data.elements().len();
        let (count, own) = self.own_block(all)?;
        let call = of::<T>(Collective::Allgather, count, self.world(), Op::Sum);
        self.together(call, data, Some(own), Some(0..all))
    }

    /// Rank r ends with the reduction of all ranks' block r of `send` in `recv`.
    ///
    /// # Errors
    /// As for [`Communicator::all_reduce`].
    pub fn reduce_scatter<T: Element>(
        &mut self,
        send: &(impl Memory<T> + ?Sized),
        recv: &mut (impl MemoryMut<T> + ?Sized),
        op: Op,
    ) -> Result<(), Error> {
        let count = recv.elements().len();
        fits("send buffer", send.elements().len(), self.blocks(count)?)?;
        self.apart(of::<T>(Collective::Reducescatter, count, self.world(), op), Some(send), Some(recv))
    }

    /// The same where the result takes the place of the rank's own block; the others may hold anything afterwards.
    ///
    /// # Errors
    /// As for [`Communicator::all_reduce`].
    pub fn reduce_scatter_in_place<T: Element>(
        &mut self,
        data: &mut (impl MemoryMut<T> + ?Sized),
        op: Op,
    ) -> Result<(), Error> {
        let all = data.elements().len();
        let (count, own) = self.own_block(all)?;
        let call = of::<T>(Collective::Reducescatter, count, self.world(), op);
        self.together(call, data, Some(0..all), Some(own))
    }

    /// Rank r ends with block r of every rank's `send`, in their order, in `recv`.
    ///
    /// # Errors
    /// As for [`Communicator::all_reduce`].
    pub fn all_to_all<T: Element>(
        &mut self,
        send: &(impl Memory<T> + ?Sized),
        recv: &mut (impl MemoryMut<T> + ?Sized),
    ) -> Result<(), Error> {
        let all = send.elements().len();
        let (count, _) = self.own_block(all)?;
        fits("receive buffer", recv.elements().len(), all)?;
        self.apart(of::<T>(Collective::Alltoall, count, self.world(), Op::Sum), Some(send), Some(recv))
    }

    /// Every rank ends with the root's `data`.
    ///
    /// # Errors
    /// As for [`Communicator::all_reduce`].
    pub fn broadcast<T: Element>(
        &mut self,
        data: &mut (impl MemoryMut<T> + ?Sized),
        root: u32,
    ) -> Result<(), Error> {
        let count = data.elements().len();
        let call = self.rooted(of::<T>(Collective::Broadcast, count, 1, Op::Sum), root)?;
        self.together(call, data, Some(0..count), Some(0..count))
    }

    /// The root ends with the reduction of all ranks' `send` in `recv`, which is not touched elsewhere, and may be empty there.
    ///
    /// # Errors
    /// As for [`Communicator::all_reduce`].
    pub fn reduce<T: Element>(
        &mut self,
        send: &(impl Memory<T> + ?Sized),
        recv: &mut (impl MemoryMut<T> + ?Sized),
        op: Op,
        root: u32,
    ) -> Result<(), Error> {
        let count = send.elements().len();
        let call = self.rooted(of::<T>(Collective::Reduce, count, 1, op), root)?;
        if self.rank() != root {
            return self.apart(call, Some(send), None::<&mut [T]>);
        }
        fits("receive buffer", recv.elements().len(), count)?;
        self.apart(call, Some(send), Some(recv))
    }

    /// The same where at the root the data is replaced by the result; all ranks call it this way.
    ///
    /// # Errors
    /// As for [`Communicator::all_reduce`].
    pub fn reduce_in_place<T: Element>(
        &mut self,
        data: &mut (impl MemoryMut<T> + ?Sized),
        op: Op,
        root: u32,
    ) -> Result<(), Error> {
        let count = data.elements().len();
        let call = self.rooted(of::<T>(Collective::Reduce, count, 1, op), root)?;
        let recv = (self.rank() == root).then_some(0..count);
        self.together(call, data, Some(0..count), recv)
    }

    /// The root ends with all ranks' `send`, in their order, in `recv`, which is not touched elsewhere, and may be empty there.
    ///
    /// # Errors
    /// As for [`Communicator::all_reduce`].
    pub fn gather<T: Element>(
        &mut self,
        send: &(impl Memory<T> + ?Sized),
        recv: &mut (impl MemoryMut<T> + ?Sized),
        root: u32,
    ) -> Result<(), Error> {
        let count = send.elements().len();
        let call = self.rooted(of::<T>(Collective::Gather, count, self.world(), Op::Sum), root)?;
        if self.rank() != root {
            return self.apart(call, Some(send), None::<&mut [T]>);
        }
        fits("receive buffer", recv.elements().len(), self.blocks(count)?)?;
        self.apart(call, Some(send), Some(recv))
    }

    /// The same where at the root its own part lies where it belongs in the result; elsewhere `data` is the rank's part. All ranks
    /// call it this way.
    ///
    /// # Errors
    /// As for [`Communicator::all_reduce`].
    pub fn gather_in_place<T: Element>(
        &mut self,
        data: &mut (impl MemoryMut<T> + ?Sized),
        root: u32,
    ) -> Result<(), Error> {
        let all = data.elements().len();
        let (count, send, recv) = if self.rank() == root {
            let (count, own) = self.own_block(all)?;
            (count, own, Some(0..all))
        } else {
            (all, 0..all, None)
        };
        let call = self.rooted(of::<T>(Collective::Gather, count, self.world(), Op::Sum), root)?;
        self.together(call, data, Some(send), recv)
    }

    /// Rank r ends with block r of the root's `send`, which is not looked at elsewhere, and may be empty there.
    ///
    /// # Errors
    /// As for [`Communicator::all_reduce`].
    pub fn scatter<T: Element>(
        &mut self,
        send: &(impl Memory<T> + ?Sized),
        recv: &mut (impl MemoryMut<T> + ?Sized),
        root: u32,
    ) -> Result<(), Error> {
        let count = recv.elements().len();
        let call = self.rooted(of::<T>(Collective::Scatter, count, self.world(), Op::Sum), root)?;
        if self.rank() != root {
            return self.apart(call, None::<&[T]>, Some(recv));
        }
        fits("send buffer", send.elements().len(), self.blocks(count)?)?;
        self.apart(call, Some(send), Some(recv))
    }

    /// The same where the root keeps its own block where it is; elsewhere `data` is what the rank gets. All ranks call it this way.
    ///
    /// # Errors
    /// As for [`Communicator::all_reduce`].
    pub fn scatter_in_place<T: Element>(
        &mut self,
        data: &mut (impl MemoryMut<T> + ?Sized),
        root: u32,
    ) -> Result<(), Error> {
        let all = data.elements().len();
        let (count, send, recv) = if self.rank() == root {
            let (count, own) = self.own_block(all)?;
            (count, Some(0..all), own)
        } else {
            (all, None, 0..all)
        };
        let call = self.rooted(of::<T>(Collective::Scatter, count, self.world(), Op::Sum), root)?;
        self.together(call, data, send, Some(recv))
    }

    /// No rank leaves before all have entered.
    ///
    /// # Errors
    /// [`Kind::Late`] if some rank does not come, or what ended the communicator.
    pub fn barrier(&mut self) -> Result<(), Error> {
        self.inner.small(&small::Call::BARRIER, &mut small::Buffers::none())
    }

    /// A call with send and receive memory apart; a rank may lack one of them.
    fn apart<T: Element>(
        &mut self,
        call: Call,
        send: Option<&(impl Memory<T> + ?Sized)>,
        recv: Option<&mut (impl MemoryMut<T> + ?Sized)>,
    ) -> Result<(), Error> {
        let all_of = |is: Option<bool>| is.unwrap_or(true);
        let registered = all_of(send.map(|send| send.registered().is_some()))
            && all_of(recv.as_ref().map(|recv| recv.registered().is_some()));
        let call = Call { registered, ..call };
        if let Some(small) = call.small() {
            self.told(&call, None);
            let input = send.map_or(&[][..], |send| bytes(send.elements()));
            let output = recv.map_or(&mut [][..], |recv| bytes_mut(recv.elements_mut()));
            return self.inner.small(&small, &mut small::Buffers::apart(input, output));
        }
        let ready = self.ready(&call)?;
        let mut buffers = Buffers::new(self.inner.plan(ready.plan));
        if let (Some(send), Some(buffer)) = (send, ready.send) {
            buffers = match send.registered().filter(|_| registered) {
                Some(piece) => buffers.send_registered(buffer, piece.memory()),
                None => buffers.send(buffer, bytes(send.elements())),
            };
        }
        if let (Some(recv), Some(buffer)) = (recv, ready.recv) {
            let bytes = size_of_val(recv.elements());
            buffers = match registered {
                true => match recv.registered_mut() {
                    Some(piece) => buffers.registered(piece.memory_mut(), &[(buffer, 0..bytes)])?,
                    None => buffers,
                },
                false => buffers.recv(buffer, bytes_mut(recv.elements_mut())),
            };
        }
        self.told(&call, Some(ready.plan));
        self.inner.call(ready.plan, shape(&call), &mut buffers)
    }

    /// A call in place: the send and the receive buffer are parts of one memory, in elements.
    fn together<T: Element>(
        &mut self,
        call: Call,
        data: &mut (impl MemoryMut<T> + ?Sized),
        send: Option<Range<usize>>,
        recv: Option<Range<usize>>,
    ) -> Result<(), Error> {
        let call = Call { registered: data.registered().is_some(), in_place: true, ..call };
        if let Some(small) = call.small() {
            self.told(&call, None);
            let both = bytes_mut(data.elements_mut());
            return self.inner.small(&small, &mut small::Buffers::in_place(both));
        }
        let ready = self.ready(&call)?;
        let size = size_of::<T>();
        let part = |range: Range<usize>| range.start * size..range.end * size;
        let (send, recv) = (ready.send.zip(send.map(part)), ready.recv.zip(recv.map(part)));
        let buffers = Buffers::new(self.inner.plan(ready.plan));
        // A rank may lack one of them.
        let (both, one);
        let parts: &[_] = match (send, recv) {
            (Some(send), Some(recv)) => {
                both = [send, recv];
                &both
            }
            (Some(part), None) | (None, Some(part)) => {
                one = [part];
                &one
            }
            (None, None) => &[],
        };
        let mut buffers = match data.registered_mut() {
            Some(piece) => buffers.registered(piece.memory_mut(), parts)?,
            None => buffers.same(bytes_mut(data.elements_mut()), parts)?,
        };
        self.told(&call, Some(ready.plan));
        self.inner.call(ready.plan, shape(&call), &mut buffers)
    }

    /// Says which plan a call runs (none: it is small, and goes without) to whoever listens to `rcc::call`.
    #[inline]
    pub(super) fn told(&self, call: &Call, plan: Option<PlanId>) {
        tracing::debug!(
            target: "rcc::call",
            collective = call.collective.name(),
            bytes = call.bytes(),
            dtype = call.dtype.name(),
            op = %call.op,
            in_place = call.in_place,
            registered = call.registered,
            root = call.root,
            rank = self.rank(),
            plan = plan.map_or("none", |plan| &self.inner.plan(plan).header.algorithm),
        );
    }

    /// A rooted call.
    fn rooted(&self, call: Call, root: u32) -> Result<Call, Error> {
        if root >= self.world() {
            return Err(no_rank(root, self.world()));
        }
        Ok(Call { root: Some(root), ..call })
    }

    /// Elements of a block for each rank.
    fn blocks(&self, count: usize) -> Result<usize, Error> {
        let most = || Error::new(Kind::Invalid, format!("{count} elements for each rank are too many"));
        count.checked_mul(self.world() as usize).ok_or_else(most)
    }

    /// Elements of a block in a buffer that has one for each rank, and where this rank's is.
    fn own_block(&self, all: usize) -> Result<(usize, Range<usize>), Error> {
        let (rank, world) = (self.rank() as usize, self.world() as usize);
        if !all.is_multiple_of(world) {
            let message = format!("a buffer of {all} elements has no block for each of {world} ranks");
            return Err(Error::new(Kind::Invalid, message).help("give a multiple of the number of ranks"));
        }
        let count = all / world;
        Ok((count, rank * count..(rank + 1) * count))
    }
}

fn of<T: Element>(collective: Collective, elements: usize, blocks: u32, op: Op) -> Call {
    let dtype: Dtype = T::DTYPE;
    let elements = elements as u64;
    Call { collective, elements, blocks, dtype, op, root: None, in_place: false, registered: false }
}

pub(super) fn shape(call: &Call) -> Shape {
    let &Call { elements, dtype, op, in_place, .. } = call;
    Shape { elements, dtype, op, in_place }
}

fn fits(what: &str, has: usize, due: usize) -> Result<(), Error> {
    if has == due {
        return Ok(());
    }
    Err(Error::new(Kind::Invalid, format!("the {what} has {has} elements, and must have {due}")))
}
