//! Channels: FIFOs from one block to a block on each of one or more ranks.
//!
//! In: a plan's channel and the ranks at its ends. Out: an [`Outgoing`] or [`Incoming`] end of the first transport of
//! [`TRANSPORTS`] that serves them. The protocol is in [`protocol`]; what slots hold is the executor's business.
//! There is one transport so far: slots in the job's shared segment ([`shared`]).

pub mod protocol;
pub mod shared;
mod sync;
pub mod writing;

use plan::ids::RankId;

pub use shared::{Incoming, Outgoing};

/// A way to carry messages.
pub trait Transport: Sync {
    /// Its name, for reports.
    fn name(&self) -> &'static str;
    /// Whether it can carry messages from `writer` to all of `readers`.
    fn serves(&self, writer: RankId, readers: &mut dyn Iterator<Item = RankId>) -> bool;
}

/// All transports, best first; the first that serves a channel carries it.
pub static TRANSPORTS: [&dyn Transport; 1] = [&shared::Shared];
