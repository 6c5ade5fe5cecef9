//! Ending a communicator from outside of it.
//!
//! In: any thread of a rank. Out: an error of kind `Aborted` at all ranks: every call under way ends, and no later one begins.

use std::sync::Arc;

use plan::ids::RankId;

use crate::error::{Error, Kind};
use crate::memory::hall::Hall;

/// Ends a communicator at all ranks.
#[derive(Debug, Clone)]
pub struct Aborter {
    hall: Arc<Hall>,
    rank: RankId,
}

impl Aborter {
    pub(super) fn new(hall: Arc<Hall>, rank: RankId) -> Aborter {
        Aborter { hall, rank }
    }

    /// Ends it, and says why. Calls return soon; buffers are the caller's again only when they have. False if something else has
    /// ended it before.
    pub fn abort(&self, why: &str) -> bool {
        let first = self.hall.board().abort(&aborted(self.rank, why));
        (0..self.hall.shape().ranks()).for_each(|rank| self.hall.rank(RankId(rank)).ring());
        first
    }

    /// What ended it, if something has ([`super::Communicator::failure`]).
    pub fn failure(&self) -> Option<Error> {
        self.hall.board().cause()
    }
}

/// The error of a rank that ends it.
pub(super) fn aborted(rank: RankId, why: &str) -> Error {
    Error::new(Kind::Aborted, format!("rank {} has ended the communicator: {why}", rank.0)).culprit(rank.0)
}
