//! Calls of at most 4 KiB, written by hand beside plans.
//!
//! In: a [`Call`] and this rank's [`Buffers`], both small; boxes in the communicator's hall. Out: what the collective promises
//! (`stdlib/collectives.coll`), with the numbers of one fold over all ranks in their order (docs/plan.md §8). Every rank has
//! boxes, writes its part into one of them and then a *tag* beside it; whoever needs the part waits for the tag, and combines
//! all parts at once. So a call costs one message each way, whatever the number of ranks, and one cache line if it has at most 56 bytes.
//!
//! The one hard idea: the tag is the call's signature (collective, count, type, operator, root, the call's number, and the
//! small calls before it) in 64 bits. A part of any other call has another tag: it is not there, as far as this call is concerned. So it is never used, and nothing
//! has to be compared; that ranks wait for what never comes is found out as for plans, from what each wrote down (`watch`).
//!
//! | file | what |
//! |---|---|
//! | [`call`] | calls, their tags, what they have of bytes |
//! | [`buffers`] | the caller's memory, checked |
//! | [`boxes`] | where boxes lie |
//! | [`protocol`] | who may write and read which box when |
//! | `parts` | what is written into boxes, and what is made of it |
//! | `pending` | calls under way |
//!
//! There is no allocation, no lock and no system call in a call, unless it waits, or a peer sleeps.

pub mod boxes;
pub mod buffers;
pub mod call;
mod parts;
mod pending;
pub mod protocol;
mod sync;

pub use self::buffers::Buffers;
pub use self::call::{Call, Collective, MOST};
pub(crate) use self::pending::Small;
