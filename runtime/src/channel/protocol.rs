//! The protocol of a channel in shared memory: who may touch which slot when.
//!
//! In: one [`Head`] (the writer's line) and one [`Tail`] per reader (each reader's line). Out: [`Sending`], the
//! writer's end, and [`Receiving`], a reader's. Messages are numbered from 1 in 64 bits and never again from the
//! start; message m lies in slot (m - 1) mod k. The one hard idea: the writer may write slot of message m once every
//! reader has consumed message m - k (acquire of its tail), a reader may read it once m is published (acquire of the
//! head). Each end remembers what it last saw of the other, so that a line moves between CPUs only when needed.
//!
//! The first message of a call carries the call's signature, in one of [`SIGNED`] words beside the number published:
//! so it arrives with the line that says that there is a message. Its word is written anew only when every reader
//! has consumed the message that it came with. Tokens have no slots and no credit but for this one.
//!
//! Two channels, one each way between two ranks, may trade slots (plan.md §6.5): whoever has read a message writes its own next one where
//! that lay. Message m then lies, in every other turn around the slots, in the other channel's slot of that number, and its
//! writer waits for what it has itself received of the other channel ([`Sending::free_by`]), which no line has to move for.
//!
//! `tests/loom.rs` compiles this file with loom's atomics and runs every order of its steps.

use super::sync::{AtomicU64, Ordering};

/// How many calls' signatures a channel holds at once.
pub const SIGNED: usize = 4;

/// Written by the writer alone. All words are 0 at the start, or `published` is where every tail's `consumed` is.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Head {
    /// The number of the last message published.
    pub published: AtomicU64,
    /// The signature of call e in word e mod `SIGNED`.
    pub signatures: [AtomicU64; SIGNED],
}

/// Written by one reader alone.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Tail {
    /// The number of the last message that this reader no longer needs.
    pub consumed: AtomicU64,
}

/// The writer's end.
#[derive(Debug)]
pub struct Sending<'a> {
    head: &'a Head,
    tails: &'a [Tail],
    /// k, or `u64::MAX` for tokens.
    credit: u64,
    sent: u64,
    /// Every reader had consumed this much when last looked at.
    freed: u64,
    slot: u64,
    /// Whether the turn around the slots is one of those in which traded ones are the other channel's: every other one.
    odd: bool,
    /// For each signature word, the message that it came with.
    signed: [u64; SIGNED],
}

/// A reader's end.
#[derive(Debug)]
pub struct Receiving<'a> {
    head: &'a Head,
    tail: &'a Tail,
    credit: u64,
    received: u64,
    /// This much was published when last looked at.
    seen: u64,
    slot: u64,
    /// Whether the turn around the slots is one of those in which traded ones are the other channel's: every other one.
    odd: bool,
}

impl<'a> Sending<'a> {
    /// The writer's end of a channel of `credit` slots (`u64::MAX`: tokens), going on where the head stands.
    pub fn new(head: &'a Head, tails: &'a [Tail], credit: u64) -> Sending<'a> {
        let sent = head.published.load(Ordering::Relaxed);
        let (slot, odd) = (sent % credit, sent / credit % 2 == 1);
        Sending { head, tails, credit, sent, freed: sent, slot, odd, signed: [0; SIGNED] }
    }

    /// Whether the next message may be written; with `call`, whether it may also carry that call's signature.
    #[inline]
    pub fn free(&mut self, call: Option<u64>) -> bool {
        let least = self.unsigned(call);
        if self.sent - self.freed < self.credit && least <= self.freed {
            return true;
        }
        self.look();
        self.sent - self.freed < self.credit && least <= self.freed
    }

    /// The same where slots are traded, and so many messages of the other channel have been received here: the reader, which has written the last
    /// of those, had consumed all of this channel but the k before it.
    #[inline]
    pub fn free_by(&mut self, received: u64, call: Option<u64>) -> bool {
        if self.sent.saturating_sub(received) >= self.credit {
            return false;
        }
        let least = self.unsigned(call);
        self.freed = self.freed.max(received.saturating_sub(self.credit).min(self.sent));
        if least > self.freed {
            self.look();
        }
        least <= self.freed
    }

    /// What must have been consumed before the signature of `call` may be written: what came with the last one in its word.
    #[inline]
    fn unsigned(&self, call: Option<u64>) -> u64 {
        call.map_or(0, |call| self.signed[word(call)])
    }

    /// Looks how much every reader has consumed.
    #[inline]
    fn look(&mut self) {
        let consumed = self.tails.iter().map(|tail| tail.consumed.load(Ordering::Acquire));
        self.freed = consumed.fold(self.sent, u64::min);
    }

    /// The slot of the next message. Only after [`Sending::free`] said yes may it be written.
    #[inline]
    pub fn slot(&self) -> u64 {
        self.slot
    }

    /// Whether, where slots are traded, the message lies in the slot of the other channel.
    #[inline]
    pub fn odd(&self) -> bool {
        self.odd
    }

    /// Signs the next message; only after [`Sending::free`] said yes for this call.
    #[inline]
    pub fn sign(&mut self, call: u64, signature: u64) {
        self.head.signatures[word(call)].store(signature, Ordering::Relaxed);
        self.signed[word(call)] = self.sent + 1;
    }

    /// Makes the next message visible; everything written to its slot comes before.
    #[inline]
    pub fn publish(&mut self) {
        self.sent += 1;
        self.slot += 1;
        if self.slot == self.credit {
            (self.slot, self.odd) = (0, !self.odd);
        }
        self.head.published.store(self.sent, Ordering::Release);
    }
}

impl<'a> Receiving<'a> {
    /// A reader's end of a channel of `credit` slots (`u64::MAX`: tokens), going on where its tail stands.
    pub fn new(head: &'a Head, tail: &'a Tail, credit: u64) -> Receiving<'a> {
        let received = tail.consumed.load(Ordering::Relaxed);
        let (slot, odd) = (received % credit, received / credit % 2 == 1);
        Receiving { head, tail, credit, received, seen: received, slot, odd }
    }

    /// Whether there is a message.
    #[inline]
    pub fn ready(&mut self) -> bool {
        if self.received < self.seen {
            return true;
        }
        self.seen = self.head.published.load(Ordering::Acquire);
        self.received < self.seen
    }

    /// The slot of the next message. Only after [`Receiving::ready`] said yes may it be read.
    #[inline]
    pub fn slot(&self) -> u64 {
        self.slot
    }

    /// Whether, where slots are traded, the message lies in the slot of the other channel.
    #[inline]
    pub fn odd(&self) -> bool {
        self.odd
    }

    /// How many have been received.
    #[inline]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The signature that the first message of call `call` carries; only while that message is the next one.
    #[inline]
    pub fn signature(&self, call: u64) -> u64 {
        self.head.signatures[word(call)].load(Ordering::Relaxed)
    }

    /// Gives the slot of the message back to the writer; everything read from it comes before.
    #[inline]
    pub fn release(&mut self) {
        self.received += 1;
        self.slot += 1;
        if self.slot == self.credit {
            (self.slot, self.odd) = (0, !self.odd);
        }
        self.tail.consumed.store(self.received, Ordering::Release);
    }
}

fn word(call: u64) -> usize {
    (call % SIGNED as u64) as usize
}
