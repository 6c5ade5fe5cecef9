//! What both ends of a message must agree on, in 64 bits.
//!
//! In: everything that a call is determined by. Out: a number that rides on the first message of every channel and
//! is compared before the payload behind it is used (plan.md §6.4): ranks that disagree on the plan, the counts, the
//! type, the operator, the alias form, or on which call this is, find out before they mix up each other's data.
//!
//! A [`Signature`] is computed once for calls that differ only in their number; the number is mixed in by a
//! bijection, so that two calls of one communicator never have equal signatures unless they differ in the rest (and
//! then with a chance of 2^-64).

use sha2::{Digest, Sha256};

use crate::dtype::{Dtype, Op};
use crate::file::ContentHash;
use crate::plan::Form;

/// What determines a call, but for its number.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The plan.
    pub plan: ContentHash,
    /// The collective's name.
    pub collective: &'a str,
    /// Parameters and their values.
    pub params: &'a [(String, i64)],
    /// Elements of a block (of each kind of block, where they differ).
    pub counts: &'a [u64],
    /// The element type.
    pub dtype: Dtype,
    /// The operator.
    pub op: Op,
    /// The name of a user's operator, which takes the place of `op`.
    pub operator: Option<&'a str>,
    /// The alias form, for plans with `Peer` access (what a peer may do depends on it). None for others: there each
    /// rank may have its own form, since `verify` has found all messages to be the same under both.
    pub form: Option<Form>,
}

/// A call's signature, but for its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signature(u64);

impl Signature {
    /// The signature of calls like this one.
    pub fn new(call: &Call) -> Signature {
        let mut hasher = Sha256::new();
        let text = |hasher: &mut Sha256, text: &str| {
            // Lengths first: no two different calls feed the same bytes.
            hasher.update((text.len() as u64).to_le_bytes());
            hasher.update(text);
        };
        hasher.update(call.plan.0);
        text(&mut hasher, call.collective);
        hasher.update((call.params.len() as u64).to_le_bytes());
        for (name, value) in call.params {
            text(&mut hasher, name);
            hasher.update(value.to_le_bytes());
        }
        hasher.update((call.counts.len() as u64).to_le_bytes());
        for count in call.counts {
            hasher.update(count.to_le_bytes());
        }
        text(&mut hasher, call.dtype.name());
        text(&mut hasher, &call.op.to_string());
        hasher.update([call.form.map_or(0, |form| 1 + form as u8)]);
        if let Some(name) = call.operator {
            text(&mut hasher, name);
        }
        let digest: [u8; 32] = hasher.finalize().into();
        let mut first = [0; 8];
        first.copy_from_slice(&digest[..8]);
        Signature(u64::from_le_bytes(first))
    }

    /// The signature of the call with this number (from 1).
    pub fn of_call(self, number: u64) -> u64 {
        // Each line is a bijection of 64 bits (splitmix64), so different numbers stay different.
        let mut bits = self.0 ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}
