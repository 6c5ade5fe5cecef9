//! From a call to a plan that is the same at all ranks.
//!
//! In: what all ranks say of a call. Out: a plan that this rank has verified, and its channels' geometry. Rank 0 selects and makes it (or
//! finds it in the cache); the others get it as a file and verify it as they would any. Before they meet, ranks agree that they are
//! about to do the same (`runtime::comm::Communicator::agree`), so that one that makes another call is told, and none waits in vain.

use std::sync::Arc;

use plan::file::LoadLimits;
use plan::ids::{BufferId, RankId};
use plan::plan::{Plan, Role};
use plan::verify::VerifiedPlan;
use runtime::comm::{Communicator, choosing};
use runtime::error::{Error, Kind};
use runtime::job::Geometry;
use serde::{Deserialize, Serialize};

use super::key::Call;
use crate::library::Library;

/// What is kept for everything else that rank 0 says in one gathering.
const MOST_PLAN: usize = (1 << 20) - 64;

/// A plan, and how its channels are laid out.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    pub(crate) plan: Arc<VerifiedPlan>,
    pub(crate) geometry: Geometry,
}

/// What rank 0 says.
#[derive(Serialize, Deserialize)]
enum Given {
    Plan {
        slots: u32,
        slot_bytes: u32,
        plan: Vec<u8>,
    },
    /// Too large to be handed out: every rank makes it.
    TooLarge,
    Failed(Error),
}

impl Made {
    /// Whether one that is open will do for the other.
    pub(super) fn same(&self, other: &Made) -> bool {
        self.geometry == other.geometry && self.plan.content_hash() == other.plan.content_hash()
    }
}

/// The plan for a call of a standard collective.
pub(super) fn made(inner: &mut Communicator, library: &mut Library, call: &Call) -> Result<Made, Error> {
    let root = call.root.map(|root| format!(" from or to rank {root}")).unwrap_or_default();
    let memory = if call.registered { ", registered" } else { "" };
    let form = if call.registered && call.in_place { " in place" } else { "" };
    let what = format!("a plan for {}{root}{memory}{form}", call.collective);
    inner.agree(&choosing(&what, call.elements, (call.dtype, call.op)))?;
    let ask = call.ask(inner.world());
    handed_out(inner, &|plan| ask.is_promised_by(plan), &mut || library.standard(&ask))
}

/// What rank 0 makes, at all ranks, if it is what is wanted.
pub(super) fn handed_out(
    inner: &mut Communicator,
    wanted: &dyn Fn(&Plan) -> bool,
    make: &mut dyn FnMut() -> Result<Made, Error>,
) -> Result<Made, Error> {
    let own = if inner.rank().0 == 0 { Some(make()) } else { None };
    let given = match &own {
        None => Vec::new(),
        Some(own) => encode(own),
    };
    let all = inner.gather("plan", &given)?;
    let taken = match own {
        Some(own) => own,
        None => match postcard::from_bytes(&all[0]) {
            Ok(Given::Plan { slots, slot_bytes, plan }) => read(&plan)
                .map(|plan| Made { plan: Arc::new(plan), geometry: Geometry { slots, slot_bytes } }),
            Ok(Given::TooLarge) => make(),
            Ok(Given::Failed(error)) => Err(error),
            Err(error) => {
                Err(Error::new(Kind::Internal, format!("rank 0 gave what is no plan: {error}")).culprit(0))
            }
        },
    };
    let other = |made: &Made| {
        let message = format!("rank 0 gave a plan of another call: `{}`", made.plan.header.algorithm);
        Error::new(Kind::Internal, message).culprit(0)
    };
    let taken = taken.and_then(|made| if wanted(&made.plan) { Ok(made) } else { Err(other(&made)) });
    well(inner, taken)
}

/// What this rank has, if all ranks have theirs; else the error of the first that has not.
pub(super) fn well<T>(inner: &mut Communicator, own: Result<T, Error>) -> Result<T, Error> {
    let said = match &own {
        Ok(_) => Vec::new(),
        Err(error) => postcard::to_stdvec(error).unwrap_or_else(|_| vec![0]),
    };
    let all = inner.gather("plan taken", &said)?;
    match (0..).zip(&all).find(|(_, said)| !said.is_empty()) {
        None => own,
        Some((rank, said)) => {
            let unknown = |_| Error::new(Kind::Aborted, "a rank could not say what was wrong").culprit(rank);
            Err(postcard::from_bytes(said).unwrap_or_else(unknown))
        }
    }
}

fn encode(own: &Result<Made, Error>) -> Vec<u8> {
    let given = match own {
        Ok(Made { plan, geometry: Geometry { slots, slot_bytes } }) => {
            let plan = plan.plan().to_bytes();
            match plan.len() > MOST_PLAN {
                true => Given::TooLarge,
                false => Given::Plan { slots: *slots, slot_bytes: *slot_bytes, plan },
            }
        }
        Err(error) => Given::Failed(error.clone()),
    };
    postcard::to_stdvec(&given).unwrap_or_default()
}

/// A plan from a file's bytes, verified.
pub(crate) fn read(bytes: &[u8]) -> Result<VerifiedPlan, Error> {
    let limits = compiler::limits::Limits::default().of_plan();
    let refused = |why: String| Error::new(Kind::Invalid, why);
    let plan =
        Plan::from_bytes(bytes, &LoadLimits::of(&limits)).map_err(|error| refused(error.to_string()))?;
    plan::verify::verify(plan, &limits).map_err(|violations| {
        let all: Vec<String> = violations.iter().map(ToString::to_string).collect();
        refused(format!("the plan is refused: {}", all.join("; ")))
    })
}

/// The buffer of a role that a rank has; standard collectives have at most one.
pub(super) fn buffer(plan: &Plan, role: Role, rank: RankId) -> Option<BufferId> {
    let is = |buffer: &plan::plan::Buffer| buffer.role == role && buffer.at.holds(rank);
    plan.buffers.iter().position(is).map(BufferId::new)
}
