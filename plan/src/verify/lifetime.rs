//! V5: every access to a rank's user memory lies between the rank's ENTRY and its EXIT.
//!
//! In: a plan that V0 to V2 have passed, with clocks. Out: for each `Peer` access the two steps **of the owner** that
//! enclose it: the one that sends READY and the one that receives DONE ([`Fences`]). Both are steps of the owner's
//! blocks, so they lie between its ENTRY and its EXIT, and the access lies between them:
//!
//! owner's READY → `witness.ready` → (program order, waits) → the access → `witness.done` → owner's DONE
//!
//! A rank's own accesses are steps of its own blocks. Only tokens count, not data: a message of no bytes is elided
//! while the access beside it may still have some.

use rustc_hash::FxHashMap;

use super::clocks::Clocks;
use super::links::{Links, ends};
use super::violation::{Report, Site, Violation};
use crate::ids::{RankId, StepId};
use crate::plan::{ChannelKind, Operand, Plan, Witness};

/// What V5 finds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A `Peer` access that no witness fences.
    #[error("rank {} accesses memory of rank {} without a witness", accessor.0, owner.0)]
    NoWitness {
        /// The accessing rank.
        accessor: RankId,
        /// The rank accessed.
        owner: RankId,
    },
    /// The witness names steps that do not fence the access.
    #[error("the access of rank {} to memory of rank {} is not fenced: {why}", accessor.0, owner.0)]
    Unfenced {
        /// The accessing rank.
        accessor: RankId,
        /// The rank accessed.
        owner: RankId,
        /// How.
        why: &'static str,
    },
}

impl Fault {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Fault::NoWitness { .. } => "plan::v5_no_witness",
            Fault::Unfenced { .. } => "plan::v5_unfenced",
        }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Fault::NoWitness { .. } => {
                "name the token steps around the access in a witness, or use a channel"
            }
            Fault::Unfenced { .. } => {
                "receive a token from the owner before the access and send it one after it, in the same block or \
                 ordered by waits"
            }
        }
    }
}

/// The owner's end of the tokens around a `Peer` access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fence {
    /// The step of the owner that sends READY.
    pub(super) opens: StepId,
    /// The step of the owner that receives DONE.
    pub(super) closes: StepId,
}

/// The fences of all witnesses, in their order.
#[derive(Debug)]
pub(super) struct Fences(Vec<Fence>);

impl Fences {
    /// The fence of a `Peer` access.
    pub(super) fn of(&self, plan: &Plan, step: StepId, owner: RankId) -> Option<Fence> {
        witness(plan, step, owner).map(|at| self.0[at])
    }
}

/// V5.
pub(super) fn check(plan: &Plan, links: &Links, clocks: &Clocks) -> Result<Fences, Vec<Violation>> {
    let mut report = Report::default();
    let mut tokens = Tokens { plan, links, ready: FxHashMap::default(), done: FxHashMap::default() };
    let mut fences = Vec::with_capacity(plan.witnesses.len());
    for witness in &plan.witnesses {
        match fence(&mut tokens, clocks, witness) {
            Ok(fence) => fences.push(fence),
            Err(why) => report.add(|| {
                let accessor = clocks.rank(witness.step);
                let fault = Fault::Unfenced { accessor, owner: witness.owner, why };
                let steps = [(witness.step, "access"), (witness.ready, "READY"), (witness.done, "DONE")];
                let sites = steps.map(|(step, label)| Site::of(plan, step, label)).to_vec();
                (super::Fault::Lifetime(fault), sites)
            }),
        }
    }
    for (at, step) in plan.steps.iter().enumerate() {
        let id = StepId::new(at);
        for operand in plan.src(step).iter().chain(plan.dst(step)) {
            let Operand::Peer { rank: owner, .. } = *operand else { continue };
            if witness(plan, id, owner).is_none() {
                report.add(|| {
                    let fault = Fault::NoWitness { accessor: clocks.rank(id), owner };
                    (super::Fault::Lifetime(fault), vec![Site::of(plan, id, "")])
                });
            }
        }
    }
    report.verdict().map(|()| Fences(fences))
}

fn fence(tokens: &mut Tokens, clocks: &Clocks, witness: &Witness) -> Result<Fence, &'static str> {
    let Witness { step, owner, ready, done } = *witness;
    let rank = clocks.rank(step);
    if clocks.rank(ready) != rank || clocks.rank(done) != rank {
        return Err("its READY or DONE is a step of another rank");
    }
    let Some(opens) = tokens.ready(ready, owner) else {
        return Err("the step named as READY receives no token from the owner");
    };
    let Some(closes) = tokens.done(done, owner) else {
        return Err("the step named as DONE sends no token to the owner");
    };
    if !clocks.before(ready, step) {
        return Err("it may start before READY has come");
    }
    if !clocks.before(step, done) {
        return Err("DONE may be sent before it has finished");
    }
    Ok(Fence { opens, closes })
}

fn witness(plan: &Plan, step: StepId, owner: RankId) -> Option<usize> {
    plan.witnesses.binary_search_by_key(&(step, owner), |w| (w.step, w.owner)).ok()
}

/// The owner's end of tokens. A step may carry very many, and be named by very many witnesses: what it carries is
/// written down once.
struct Tokens<'a> {
    plan: &'a Plan,
    links: &'a Links,
    ready: FxHashMap<StepId, FxHashMap<RankId, StepId>>,
    done: FxHashMap<StepId, FxHashMap<RankId, StepId>>,
}

impl Tokens<'_> {
    /// The step of `owner` that sends a token which `receive` receives.
    fn ready(&mut self, receive: StepId, owner: RankId) -> Option<StepId> {
        let (plan, links) = (self.plan, self.links);
        let by_rank = self.ready.entry(receive).or_insert_with(|| {
            let mut by_rank = FxHashMap::default();
            for end in links.gets(plan, receive) {
                let channel = links.channel_of[end.index()];
                let ends = &plan.channels[channel.index()];
                if ends.kind == ChannelKind::Counter
                    && let Ok(number) = links.receivers(end).binary_search(&receive)
                {
                    let rank = plan.blocks[ends.writer.index()].rank;
                    by_rank.entry(rank).or_insert(links.senders(channel)[number]);
                }
            }
            by_rank
        });
        by_rank.get(&owner).copied()
    }

    /// The step of `owner` that receives a token which `send` sends.
    fn done(&mut self, send: StepId, owner: RankId) -> Option<StepId> {
        let (plan, links) = (self.plan, self.links);
        let by_rank = self.done.entry(send).or_insert_with(|| {
            let mut by_rank = FxHashMap::default();
            for channel in links.puts(plan, send) {
                if plan.channels[channel.index()].kind == ChannelKind::Slots {
                    continue;
                }
                let Ok(number) = links.senders(channel).binary_search(&send) else { continue };
                for end in ends(plan, channel) {
                    let rank = plan.blocks[plan.readers[end.index()].index()].rank;
                    by_rank.entry(rank).or_insert(links.receivers(end)[number]);
                }
            }
            by_rank
        });
        by_rank.get(&owner).copied()
    }
}
