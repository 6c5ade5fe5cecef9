//! `verify_folded`: from a folded plan that anyone may have made to one that can be spelled out, rank by rank.
//!
//! In: any [`Folded`]. Out: a [`VerifiedFolded`], or every violation of the first rule that it breaks: of V0 to V5 and V7, as
//! `verify` would find them in the plan of all ranks, which is never made. What it takes grows with the ranks written down.
//!
//! | rule | how |
//! |---|---|
//! | V0 | `Folded::misfit`, then as ever on a cover; the promise here |
//! | V1, V2, V3, V5 | as ever, on a cover (`cover.rs`) |
//! | V7 | as ever on the cover, and connections here |
//! | V4 | `run.rs`, `promised.rs`, `arrivals.rs`: ranks of an orbit in lockstep |
//!
//! The one hard idea: the plan of all ranks is a cover of the folded one: each of its steps lies over a step of a standing
//! rank, each edge (program order, message, credit, wait) over an edge, and every step has over it exactly the edges it has.
//! V0, V1, V3 and V5 speak of one step, one channel or one rank, so they hold in a cover exactly if they hold below. And a cover
//! has a cycle exactly if what lies below has one: a cycle above lies over one, and one below, followed as often as there are
//! copies, comes back to where it began above. So all finite covers have the same `k_min`, and a small one, of two copies of the
//! standing ranks for most plans, speaks for that of n / step copies.

mod arrivals;
mod cover;
mod promised;
mod run;
mod values;

use std::collections::BTreeSet;

pub use self::values::{FoldedValues, Taken, TakenNode};
use super::deadlock::Order;
use super::limits::Limits;
use super::symbolic;
use super::violation::{Report, Site, Violation};
use super::{VerifiedPlan, deadlock, ids, of_accesses, sound, target, verify};
use crate::collective::BlockRef;
use crate::fold::{Folded, NotUnfolded};
use crate::ids::{BlockId, RankId, StepId};
use crate::plan::{Operand, Plan, ProofStatus, Role};
use crate::verify::links::Links;
use crate::verify::places::Places;

/// A folded plan that has passed V0 to V5 and V7, here, in this process.
#[derive(Debug)]
pub struct VerifiedFolded {
    folded: Folded,
    values: FoldedValues,
}

impl VerifiedFolded {
    /// The folded plan.
    pub fn folded(&self) -> &Folded {
        &self.folded
    }

    /// The plan alone, no longer known to be right.
    pub fn into_folded(self) -> Folded {
        self.folded
    }

    /// What its cells hold, as expressions in the entry values.
    pub fn values(&self) -> &FoldedValues {
        &self.values
    }

    /// The program of one rank as it stands in the plan of all ranks, for showing: blocks at the other ends of its channels
    /// are there, empty.
    pub fn rank(&self, rank: RankId) -> Plan {
        self.folded.of_rank(rank)
    }

    /// The plan of all ranks: spelled out, and verified once more, as a whole. Fails only on `limits`.
    pub fn unfold(&self, limits: &Limits) -> Result<VerifiedPlan, Vec<Violation>> {
        let plan = self.folded.unfold(limits).map_err(|why| match why {
            NotUnfolded::TooLarge { what, found, limit } => {
                violation(ids::Fault::Limit { what, found, limit })
            }
            NotUnfolded::Misfit(what) => violation(ids::Fault::Header { what }),
        })?;
        verify(plan, limits)
    }
}

/// Checks every rule. On success `header.proof` says `BySymmetry`, whatever it said before.
pub fn verify_folded(mut folded: Folded, limits: &Limits) -> Result<VerifiedFolded, Vec<Violation>> {
    match check(&mut folded, limits, false) {
        Ok(values) => Ok(VerifiedFolded { folded, values }),
        Err(found) => Err(spelled_out(&folded, limits, &found).unwrap_or(found)),
    }
}

/// As [`verify_folded`], for a plan just made, whose `header.k_min` only says that so many slots are enough: it is set to how
/// many are needed.
pub fn verify_fresh_folded(mut folded: Folded, limits: &Limits) -> Result<VerifiedFolded, Vec<Violation>> {
    let values = check(&mut folded, limits, true)?;
    Ok(VerifiedFolded { folded, values })
}

fn check(folded: &mut Folded, limits: &Limits, fresh: bool) -> Result<FoldedValues, Vec<Violation>> {
    header(folded, limits)?;
    if let Some(what) = folded.misfit() {
        return Err(violation(ids::Fault::Header { what }));
    }
    promise(folded, limits)?;
    let cover = cover::cover(folded, limits)?;
    let step = folded.rotation.step;
    let at_home = |mut violations: Vec<Violation>| {
        for site in violations.iter_mut().flat_map(|violation| &mut violation.sites) {
            site.rank.0 %= step;
        }
        violations
    };
    let links = sound(&cover, limits).map_err(at_home)?;
    connections(folded, limits)?;
    let mut steps = Vec::with_capacity(cover.steps.len());
    deadlock::order(&cover, &links, &mut |stretch| steps.extend_from_slice(stretch)).map_err(at_home)?;
    let order = Order(steps);
    let slots = if fresh { deadlock::check_enough } else { deadlock::check };
    folded.plan.header.k_min = slots(&cover, &links).map_err(at_home)?;
    of_accesses(&cover, &links, &order).map_err(at_home)?;
    drop((cover, links, order));
    let values = run::check(folded, limits)?;
    folded.plan.header.proof = ProofStatus::BySymmetry;
    Ok(values)
}

/// Steps of all ranks up to which a plan that is refused is spelled out, to tell why.
const TOLD_BY_ALL: u64 = 1 << 20;

/// The same told of the plan of all ranks, if that is small: the ranks and channels of a cover are nobody's. (V0 speaks of tables,
/// which are those of the folded plan.)
fn spelled_out(folded: &Folded, limits: &Limits, found: &[Violation]) -> Option<Vec<Violation>> {
    let of_tables = found.iter().any(|violation| matches!(violation.fault, super::Fault::Ids(_)));
    if of_tables || folded.all_steps() > TOLD_BY_ALL {
        return None;
    }
    // All ranks together may be too many for a limit that one of them is far from: that is not what is wrong.
    let of_limits = |told: &Vec<Violation>| told.iter().any(|violation| violation.code() == "plan::v0_limit");
    verify(folded.unfold(limits).ok()?, limits).err().filter(|told| !of_limits(told))
}

fn violation(fault: ids::Fault) -> Vec<Violation> {
    vec![Violation { fault: super::Fault::Ids(fault), sites: Vec::new() }]
}

/// V0 of what the cover's header does not say: the world.
fn header(folded: &Folded, limits: &Limits) -> Result<(), Vec<Violation>> {
    let header = &folded.plan.header;
    let product = header.shape.iter().try_fold(1u64, |n, &level| n.checked_mul(u64::from(level)));
    let wrong = |what: String| Err(violation(ids::Fault::Header { what }));
    if header.shape.is_empty() || header.shape.len() > 64 || product != Some(header.ranks.into()) {
        return wrong(format!("its levels do not make {} ranks", header.ranks));
    }
    let (found, limit) = (u64::from(header.ranks), limits.ranks);
    if found > limit {
        return Err(violation(ids::Fault::Limit { what: "ranks", found, limit }));
    }
    Ok(())
}

/// V0 of the promise: every place exists, on its side; no list is empty, or names an operand twice.
fn promise(folded: &Folded, limits: &Limits) -> Result<(), Vec<Violation>> {
    let plan = &folded.plan;
    let promise = &plan.promise;
    let operands: u64 = promise.lists.iter().map(|list| list.len() as u64).sum();
    let cells = promise.clauses.len() as u64 * u64::from(plan.header.cells);
    for (what, found) in [("clauses × cells of the promise", cells), ("operands of the promise", operands)] {
        if found > limits.places {
            return Err(violation(ids::Fault::Limit { what, found, limit: limits.places }));
        }
    }
    let exists = |at: &BlockRef, role: Role| {
        let buffer = plan.buffers.get(at.buffer.index());
        at.rank.0 < plan.header.ranks && buffer.is_some_and(|b| b.role == role && at.block < b.blocks)
    };
    let wrong = |what: String| Err(violation(ids::Fault::Promise { what }));
    for (at, clause) in promise.clauses.iter().enumerate() {
        if !exists(&clause.place, Role::Recv) || clause.list as usize >= promise.lists.len() {
            return wrong(format!("clause {at} names a block or a list that is not there"));
        }
    }
    for (at, list) in promise.lists.iter().enumerate() {
        let mut sorted = list.clone();
        sorted.sort_unstable();
        if list.is_empty() || sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return wrong(format!("list {at} is empty, or names a block twice"));
        }
        if !list.iter().all(|operand| exists(operand, Role::Send)) {
            return wrong(format!("list {at} names a block that is no `Send` block"));
        }
    }
    Ok(())
}

/// V7 of connections, which the cover lays on each other.
fn connections(folded: &Folded, limits: &Limits) -> Result<(), Vec<Violation>> {
    let plan = &folded.plan;
    let mut others: Vec<BTreeSet<RankId>> = vec![BTreeSet::new(); folded.rotation.step as usize];
    for channel in &plan.channels {
        let writer = plan.blocks[channel.writer.index()].rank;
        for (at, reader) in (channel.readers.start as usize..).zip(plan.readers(channel)) {
            let (reader, times) = (plan.blocks[reader.index()].rank, folded.times[at]);
            let (to, from) = (folded.rank(reader, times), folded.rank(writer, folded.back(times)));
            if to != writer {
                others[writer.index()].insert(to);
                others[reader.index()].insert(from);
            }
        }
    }
    let mut report = Report::default();
    let (what, has) = (target::Resource::Connections, limits.target.connections_per_rank);
    for (rank, others) in others.iter().enumerate().filter(|(_, others)| others.len() as u64 > u64::from(has))
    {
        let (rank, needs) = (RankId::new(rank), others.len() as u32);
        report.add(|| {
            let fault = target::Fault { rank, what, needs, has, target: limits.target.name.clone() };
            (super::Fault::Target(fault), first_beyond(folded, rank, has))
        });
    }
    report.verdict()
}

/// The first step of a rank that meets one more other rank than it may.
fn first_beyond(folded: &Folded, rank: RankId, has: u32) -> Vec<Site> {
    let plan = &folded.plan;
    let mut met: BTreeSet<RankId> = BTreeSet::new();
    for (b, block) in plan.blocks.iter().enumerate().filter(|(_, block)| block.rank == rank) {
        for (id, step) in plan.steps(&(block.prologue.start..block.epilogue.end)) {
            for (at, operand) in plan.src(step).iter().chain(plan.dst(step)).enumerate() {
                let Operand::Channel(id) = *operand else { continue };
                let channel = &plan.channels[id.index()];
                let rank_of = |block: BlockId| plan.blocks[block.index()].rank;
                if at < usize::from(step.sources) {
                    let end = folded.end(id, BlockId::new(b));
                    met.extend(
                        end.map(|end| folded.rank(rank_of(channel.writer), folded.back(folded.times[end]))),
                    );
                } else {
                    let times = channel.readers.clone().map(|end| folded.times[end as usize]);
                    let readers = plan.readers(channel).iter().zip(times);
                    met.extend(readers.map(|(&reader, times)| folded.rank(rank_of(reader), times)));
                }
            }
            met.remove(&rank);
            if met.len() as u64 > u64::from(has) {
                let label = format!("the first {} too many", target::Resource::Connections);
                let first = plan.blocks_of(rank)[0].prologue.start;
                return vec![Site {
                    step: id,
                    ..Site::of(&folded.of_rank(rank), StepId(id.0 - first), label)
                }];
            }
        }
    }
    Vec::new()
}
