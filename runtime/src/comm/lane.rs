//! A plan that a communicator can call: its channels, and this rank's part of it.
//!
//! In: a hall, a plan, a meeting. Out: a [`Lane`], once all ranks have said that they have the same plan and got the memory for
//! it. A plan has several lanes where several of its calls are to be under way at once: they share no channel.

use std::sync::Arc;

use plan::verify::VerifiedPlan;
use self_cell::self_cell;

use super::meeting::Meeting;
use crate::error::{Error, Kind};
use crate::exec::{Patience, Rank};
use crate::job::Geometry;
use crate::memory::hall::Hall;
use crate::memory::segment::Segment;

/// What a lane's rank refers to.
#[derive(Debug)]
pub(super) struct Ground {
    plan: Arc<VerifiedPlan>,
    segment: Segment,
}

self_cell! {
    /// This rank's part of a plan, with what it refers to.
    pub(super) struct Lane {
        owner: Ground,
        #[covariant]
        dependent: Rank,
    }

    impl {Debug}
}

impl Lane {
    /// Opens one with all other ranks.
    pub(super) fn open(
        meeting: &mut dyn Meeting,
        hall: &Arc<Hall>,
        plan: &Arc<VerifiedPlan>,
        geometry: Geometry,
        patience: Patience,
    ) -> Result<Lane, Error> {
        let rank = plan::ids::RankId(meeting.rank());
        // What one rank lacks all must hear of, so that none waits for memory that never comes.
        let given = if rank.0 == 0 { Some(make(hall, plan, geometry)) } else { None };
        let made = given.as_ref().and_then(|given| given.as_ref().err().cloned());
        all_well(meeting, "channels made", made)?;
        let fd = meeting.hand_out(given.transpose().ok().flatten())?;
        let opened = geometry.segment(plan).and_then(|shape| {
            let segment = Segment::open_in(Arc::clone(hall), std::os::fd::AsFd::as_fd(&fd), shape)?;
            let ground = Ground { plan: Arc::clone(plan), segment };
            Lane::try_new(ground, |Ground { plan, segment }| {
                Rank::connect(plan, segment, geometry.slot_bytes, rank, patience)
            })
        });
        match opened {
            Ok(lane) => all_well(meeting, "channels opened", None).map(|()| lane),
            Err(error) => match all_well(meeting, "channels opened", Some(error.clone())) {
                Err(first) => Err(first),
                Ok(()) => Err(error),
            },
        }
    }
}

fn make(hall: &Arc<Hall>, plan: &VerifiedPlan, geometry: Geometry) -> Result<std::os::fd::OwnedFd, Error> {
    let (segment, fd) = Segment::create_in(Arc::clone(hall), geometry.segment(plan)?)?;
    drop(segment);
    Ok(fd)
}

/// Says whether something went wrong here, and hears whether anything did anywhere: the error of the first rank that has one.
pub(super) fn all_well(meeting: &mut dyn Meeting, what: &str, wrong: Option<Error>) -> Result<(), Error> {
    let own = wrong.map_or(Vec::new(), |error| serde_json::to_vec(&error).unwrap_or_else(|_| b"?".to_vec()));
    let all = meeting.gather(what, &own)?;
    match (0..).zip(&all).find(|(_, said)| !said.is_empty()) {
        None => Ok(()),
        Some((rank, said)) => {
            let unknown = |_| Error::new(Kind::Aborted, "a rank could not say what was wrong").culprit(rank);
            Err(serde_json::from_slice(said).unwrap_or_else(unknown))
        }
    }
}
