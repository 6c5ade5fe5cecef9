//! The ends of a channel whose slots lie in the job's shared segment.
//!
//! In: a [`Segment`] and a channel of its plan. Out: addresses of slots, when they may be touched, and the doorbells
//! of the ranks at the other end, rung when they sleep. The protocol itself is `protocol`.

use plan::ids::RankId;

use super::Transport;
use super::protocol::{Receiving, Sending};
use super::writing::Writing;
use crate::memory::board::RankWords;
use crate::memory::segment::Segment;

/// Slots in shared memory: serves ranks that share a machine, which all ranks of a job do.
#[derive(Debug)]
pub struct Shared;

impl Transport for Shared {
    fn name(&self) -> &'static str {
        "shared memory"
    }

    fn serves(&self, _writer: RankId, _readers: &mut dyn Iterator<Item = RankId>) -> bool {
        true
    }
}

/// The writer's end.
#[derive(Debug)]
pub struct Outgoing<'a> {
    sending: Sending<'a>,
    slots: *mut u8,
    /// Where slots are traded: those of the other channel, and this rank's end of it, an index into what it reads.
    traded: Option<(*mut u8, usize)>,
    stride: usize,
    readers: Vec<&'a RankWords>,
    /// How its slots are written.
    pub writing: Writing,
    /// Whether this call's first message, which carries the signature, is still to come.
    pub first: bool,
}

/// A reader's end.
#[derive(Debug)]
pub struct Incoming<'a> {
    receiving: Receiving<'a>,
    slots: *const u8,
    /// Where slots are traded: those of the other channel.
    traded: Option<*const u8>,
    stride: usize,
    writer: &'a RankWords,
    /// The rank at the other end.
    pub from: RankId,
    /// Whether this call's first message, which carries the signature, is still to come.
    pub first: bool,
}

// SAFETY: the pointers are into the shared segment, which `'a` keeps mapped; the protocol says who may use a slot.
unsafe impl Send for Outgoing<'_> {}
// SAFETY: as above.
unsafe impl Send for Incoming<'_> {}

impl<'a> Outgoing<'a> {
    /// The writer's end of channel instance `instance` of `segment`, read by `readers`.
    pub fn new(segment: &'a Segment, instance: usize, readers: impl Iterator<Item = RankId>) -> Outgoing<'a> {
        let channel = segment.channel(instance);
        Outgoing {
            sending: Sending::new(channel.head, channel.tails, channel.credit),
            slots: channel.slots,
            traded: None,
            stride: channel.stride,
            readers: readers.map(|rank| segment.rank(rank)).collect(),
            writing: Writing::default(),
            first: true,
        }
    }

    /// The same end where the channel trades slots with channel instance `other`, which this rank reads at end number `end`.
    #[must_use]
    pub fn trading(self, segment: &'a Segment, other: usize, end: usize) -> Outgoing<'a> {
        Outgoing { traded: Some((segment.channel(other).slots, end)), ..self }
    }

    /// Whether the next message may be written (and signed, if it is the first of `call`).
    #[inline]
    pub fn free(&mut self, call: u64, incoming: &[Incoming<'_>]) -> bool {
        let call = self.first.then_some(call);
        match self.traded {
            None => self.sending.free(call),
            Some((_, end)) => self.sending.free_by(incoming[end].receiving.received(), call),
        }
    }

    /// Whether it trades slots with another channel.
    #[inline]
    pub fn trades(&self) -> bool {
        self.traded.is_some()
    }

    /// Whether the next message is sent also if it carries no data: the first of a call is, and where slots are traded all are.
    #[inline]
    pub fn always(&self) -> bool {
        self.first || self.traded.is_some()
    }

    /// Where the next message goes; to be written only after `free` said yes, and before `publish`.
    #[inline]
    pub fn slot(&self) -> *mut u8 {
        // In bounds: the slot is below k. Tokens have no slots and nobody asks for their address.
        let slots = self.traded.filter(|_| self.sending.odd()).map_or(self.slots, |(slots, _)| slots);
        slots.wrapping_add(self.sending.slot() as usize * self.stride)
    }

    /// Makes the message visible, signed if it is the first of `call`, and wakes readers that sleep.
    #[inline]
    pub fn publish(&mut self, call: u64, signature: u64) {
        if self.first {
            self.sending.sign(call, signature);
            self.first = false;
        }
        self.sending.publish();
        for reader in &self.readers {
            reader.ring();
        }
    }
}

impl<'a> Incoming<'a> {
    /// The end of reader number `reader` of channel instance `instance` of `segment`, written by `from`.
    pub fn new(segment: &'a Segment, instance: usize, reader: usize, from: RankId) -> Incoming<'a> {
        let channel = segment.channel(instance);
        Incoming {
            receiving: Receiving::new(channel.head, &channel.tails[reader], channel.credit),
            slots: channel.slots,
            traded: None,
            stride: channel.stride,
            writer: segment.rank(from),
            from,
            first: true,
        }
    }

    /// The same end where the channel trades slots with channel instance `other`.
    #[must_use]
    pub fn trading(self, segment: &'a Segment, other: usize) -> Incoming<'a> {
        Incoming { traded: Some(segment.channel(other).slots), ..self }
    }

    /// Whether the next message is sent also if it carries no data: the first of a call is, and where slots are traded all are.
    #[inline]
    pub fn always(&self) -> bool {
        self.first || self.traded.is_some()
    }

    /// Whether there is a message.
    #[inline]
    pub fn ready(&mut self) -> bool {
        self.receiving.ready()
    }

    /// Whether the message at hand belongs to the call at hand: compared once, on the first of each call.
    #[inline]
    pub fn agrees(&self, call: u64, signature: u64) -> bool {
        !self.first || self.receiving.signature(call) == signature
    }

    /// Where the message lies; to be read only after `ready` said yes, and before `release`.
    #[inline]
    pub fn slot(&self) -> *const u8 {
        let slots = self.traded.filter(|_| self.receiving.odd()).unwrap_or(self.slots);
        slots.wrapping_add(self.receiving.slot() as usize * self.stride)
    }

    /// Gives the slot back, and wakes the writer if it sleeps.
    #[inline]
    pub fn release(&mut self) {
        self.first = false;
        self.receiving.release();
        self.writer.ring();
    }
}
