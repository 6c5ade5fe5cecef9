//! What ranks of a hall say to each other before they share more than the hall: a desk for each.
//!
//! In: short messages, one for each exchange, by the rank whose desk it is. Out: the same, read by all. The one hard idea: exchanges are
//! numbered, and a desk is written anew only when all have taken what lay there, so no message is overwritten before it is read;
//! [`crate::comm`] waits for that, and for the words by which survivors agree on a new hall. Zeroed memory is a desk at which
//! nothing has been said.

use core::sync::atomic::{AtomicU64, Ordering};

/// Room for one message; longer ones take several exchanges.
pub const DESK_BYTES: usize = 8 * WORDS;

const WORDS: usize = 256;

/// One rank's desk.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Desk {
    /// The exchange that it said something in last.
    pub said: AtomicU64,
    /// The last exchange of which it has taken what all said.
    pub taken: AtomicU64,
    /// The shrinking it has come to last.
    pub shrinking: AtomicU64,
    /// The last offer of a new hall that it has taken.
    pub agreed: AtomicU64,
    /// The last offer that it is a member of; written by who makes the offer.
    pub member: AtomicU64,
    len: AtomicU64,
    words: [AtomicU64; WORDS],
}

/// How the survivors of a hall agree on a new one. An offer is a number that says who makes it; later offers are larger.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Accord {
    /// The offer that is being made.
    pub claimed: AtomicU64,
    /// The last one that can be taken.
    pub offered: AtomicU64,
    /// The last one that all members have taken.
    pub agreed: AtomicU64,
    /// Where the memory offered is: the process, and its descriptor there.
    pub process: AtomicU64,
    /// See there.
    pub descriptor: AtomicU64,
}

impl Desk {
    /// Lays a message there, for exchange `number`: at most [`DESK_BYTES`] (more is cut off).
    pub fn say(&self, number: u64, message: &[u8]) {
        let message = &message[..message.len().min(DESK_BYTES)];
        for (word, chunk) in self.words.iter().zip(message.chunks(8)) {
            let mut padded = [0; 8];
            padded[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_le_bytes(padded), Ordering::Relaxed);
        }
        self.len.store(message.len() as u64, Ordering::Relaxed);
        self.said.store(number, Ordering::Release);
    }

    /// What lies there; whole if `said` was seen to have the number of an exchange that is not over.
    pub fn read(&self) -> Vec<u8> {
        let len = (self.len.load(Ordering::Relaxed) as usize).min(DESK_BYTES);
        let words = self.words[..len.div_ceil(8)].iter();
        let mut bytes: Vec<u8> = words.flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        bytes.truncate(len);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read() {
        // SAFETY: made of atomics alone, for which zeros are valid.
        let desk: Desk = unsafe { std::mem::zeroed() };
        assert!(desk.read().is_empty());
        for (number, message) in
            [(1, vec![7; 13]), (2, vec![]), (3, (0..DESK_BYTES).map(|i| i as u8).collect())]
        {
            desk.say(number, &message);
            assert_eq!((desk.said.load(Ordering::Acquire), desk.read()), (number, message));
        }
        desk.say(4, &[1; DESK_BYTES + 1]);
        assert_eq!(desk.read(), [1; DESK_BYTES]);
    }
}
