//! The passes where one rank speaks for all: the same by one rank of each orbit (`symmetry`).
//!
//! In: a request of which all ranks do the same. Out: a proof, a folded plan, what was chosen for it; or why one rank does not speak
//! for all. The one hard idea is what the cost model sees: it follows all ranks, so each layout is made of the standing ranks and
//! spelled out for it, where they are few enough; the layouts are those that can be made so.

use plan::verify::VerifiedFolded;

use super::{
    Failure, Loaded, Stage, Task, choose, elaboration_failure, headed, limited, of_plan, usual, violations,
};
use crate::chooser::{self, Chosen, Fixed, Layout, Untried, Wanted};
use crate::cost::topology::Topology;
use crate::diagnostics::{self, Diagnostic};
use crate::elaborate::Request;
use crate::limits::Limits;
use crate::options::{Direct, Options};
use crate::resources;
use crate::symmetry::{self, Quotient, Unfolded};
use crate::trace::MoveId;

/// A proof that one rank speaks for all.
#[derive(Debug)]
pub struct ProvedByOne {
    /// One move of each orbit, and any rank's moves.
    pub quotient: Quotient,
    /// What was found out.
    pub proof: symmetry::Proof,
}

/// Why one rank does not speak for all.
#[derive(Debug)]
pub enum NotByOne {
    /// Not the same at all ranks, or not seen to be: to be followed as a whole. A warning that says why.
    Unlike(Box<Diagnostic>),
    /// The program is wrong or excluded, whichever way it is looked at.
    Failed(Failure),
}

/// Proves by symmetry: one rank is followed, which must be seen to do what all do. What it takes grows with what one rank
/// does; limits on moves and places are on those that are looked at.
pub fn prove_by_one(
    loaded: &Loaded,
    request: &Request,
    bytes: Option<u64>,
    limits: &Limits,
    at_stage: &mut dyn FnMut(Stage),
) -> Result<ProvedByOne, NotByOne> {
    let when = choose(loaded, request, bytes).when;
    at_stage(Stage::Elaborate);
    let quotient = symmetry::quotient_scheduled(&loaded.program, request, when, limits).map_err(
        |failure| match failure {
            symmetry::Failure::Refused(refusal) => {
                let name = &loaded.program.algorithm(request.algorithm).name;
                NotByOne::Unlike(Box::new(diagnostics::symmetry::refusal(&refusal, name)))
            }
            symmetry::Failure::Wrong(error) => NotByOne::Failed(elaboration_failure(&error, loaded)),
        },
    )?;
    at_stage(Stage::Prove);
    let proof = symmetry::prove(&quotient, limits).map_err(|faults| {
        let mut bindings = |mv: MoveId| quotient.bindings(mv);
        let told =
            faults.iter().map(|f| diagnostics::graph::fault(f, &quotient.trace, &mut bindings)).collect();
        NotByOne::Failed(Failure::Wrong(told))
    })?;
    Ok(ProvedByOne { quotient, proof })
}

/// A folded plan that has passed everything.
#[derive(Debug)]
pub struct CompiledByOne {
    /// Where it comes from.
    pub proved: ProvedByOne,
    /// The plan; or why the steps of one rank cannot be made alone, though its promise is proved.
    pub plan: Result<VerifiedFolded, Unfolded>,
}

/// The whole pipeline by symmetry: what the standing ranks do is proved, scheduled, verified and validated, for all ranks. Laid
/// out as `options` say, for ranks on CPUs: in layouts, too, that `compile_by_one_for` never takes.
pub fn compile_by_one(
    loaded: &Loaded,
    request: &Request,
    options: &Options,
    limits: &Limits,
    at_stage: &mut dyn FnMut(Stage),
) -> Result<CompiledByOne, NotByOne> {
    let choice = choose(loaded, request, options.bytes);
    let target = &limits.of_plan().target;
    let task = Task { loaded, request, choice: &choice, limits, target };
    let proved = prove_by_one(loaded, request, options.bytes, limits, at_stage)?;
    let plan = first_folded(&task, &proved.quotient, options, at_stage)?;
    validated_by_one(proved, plan, limits, at_stage)
}

/// The same for one machine, as `compile_for`: what nobody says is chosen by the cost model, which follows all ranks, so only where
/// their steps are few enough to be spelled out; and of the layouts that one rank has for all. Nothing is, where there are no steps.
pub fn compile_by_one_for(
    loaded: &Loaded,
    request: &Request,
    wanted: &Wanted,
    topology: &Topology,
    limits: &Limits,
    at_stage: &mut dyn FnMut(Stage),
) -> Result<(CompiledByOne, Option<Chosen>), NotByOne> {
    let choice = choose(loaded, request, wanted.bytes);
    let topology = &limited(topology, limits);
    let target = &topology.target();
    let task = Task { loaded, request, choice: &choice, limits, target };
    // Direct access is laid out for all ranks together: asked for, it is refused here; not asked for, it is none, which is not
    // the user's word.
    let said = wanted.fixed.direct.is_some() || wanted.fixed.unfused;
    let direct = wanted.fixed.direct.or(Some(Direct::Never));
    let wanted = &Wanted { fixed: Fixed { direct, ..wanted.fixed }, ..*wanted };
    let options = usual(wanted, &choice, target);
    let proved = prove_by_one(loaded, request, wanted.bytes, limits, at_stage)?;
    let plan = match first_folded(&task, &proved.quotient, &options, at_stage)? {
        Ok(plan) => plan,
        Err(why) => return Ok((CompiledByOne { proved, plan: Err(why) }, None)),
    };

    at_stage(Stage::Choose);
    let (plan, mut chosen) = choose_folded(plan, &task, &proved.quotient, &options, wanted, topology)?;
    chosen.given.retain(|&given| said || given != "direct");
    Ok((validated_by_one(proved, Ok(plan), limits, at_stage)?, Some(chosen)))
}

/// Why there are no steps of the standing ranks.
enum NoSteps {
    /// They cannot be made alone.
    Unfolded(Unfolded),
    /// The machine has no room for them.
    NoRoom(Diagnostic),
    /// They are wrong.
    Wrong(Failure),
}

/// The steps of the standing ranks, verified.
fn folded(
    task: &Task<'_>,
    quotient: &Quotient,
    options: &Options,
    at_stage: &mut dyn FnMut(Stage),
) -> Result<VerifiedFolded, NoSteps> {
    let Task { loaded, choice, limits, target, .. } = *task;
    at_stage(Stage::Lower);
    let lowered = symmetry::lower(quotient, options, &loaded.sources, limits).map_err(NoSteps::Unfolded)?;
    at_stage(Stage::Verify);
    let mut why = Unfolded::Unlike;
    for mut folded in lowered.candidates() {
        folded.plan = headed(folded.plan, choice);
        if folded.misfit().is_some() {
            why = Unfolded::Parts;
            continue;
        }
        if let Some(fault) = resources::over_folded(&folded, quotient, &loaded.sources, target) {
            let mut bindings = |mv: MoveId| quotient.bindings_turned(mv, fault.times);
            return Err(NoSteps::NoRoom(diagnostics::resources::fault(
                &fault,
                &quotient.trace,
                &mut bindings,
            )));
        }
        match plan::verify::verify_fresh_folded(folded, &of_plan(task)) {
            Ok(plan) => return Ok(plan),
            // Of ranks that were scheduled unlike, what one does need not do for all.
            Err(_) if !lowered.is_alike() => {}
            Err(all) => return Err(NoSteps::Wrong(violations(&all, loaded))),
        }
    }
    Err(NoSteps::Unfolded(why))
}

/// The same where there must be room.
fn first_folded(
    task: &Task<'_>,
    quotient: &Quotient,
    options: &Options,
    at_stage: &mut dyn FnMut(Stage),
) -> Result<Result<VerifiedFolded, Unfolded>, NotByOne> {
    match folded(task, quotient, options, at_stage) {
        Ok(plan) => Ok(Ok(plan)),
        Err(NoSteps::Unfolded(why)) => Ok(Err(why)),
        Err(NoSteps::NoRoom(told)) => Err(NotByOne::Failed(Failure::Wrong(vec![told]))),
        Err(NoSteps::Wrong(failure)) => Err(NotByOne::Failed(failure)),
    }
}

/// What nobody says, chosen: each layout is made of the standing ranks, and spelled out for the model.
fn choose_folded(
    plan: VerifiedFolded,
    task: &Task<'_>,
    quotient: &Quotient,
    options: &Options,
    wanted: &Wanted,
    topology: &Topology,
) -> Result<(VerifiedFolded, Chosen), NotByOne> {
    let of_plan = of_plan(task);
    let untried =
        |why| chooser::untried(&plan.folded().plan, options, wanted, task.choice.copies, topology, why);
    let micro_steps = chooser::micro_steps_folded(plan.folded());
    if wanted.effort.refuses(micro_steps) {
        let chosen = untried(Untried::All { micro_steps });
        return Ok((plan, chosen));
    }
    // As many as the chooser lays out in several ways where no rank speaks for others: each layout is spelled out.
    let few = micro_steps <= chooser::LAYOUTS;
    let Some(whole) = few.then(|| plan.unfold(&of_plan).ok()).flatten() else {
        let chosen = untried(Untried::TooLarge { micro_steps });
        return Ok((plan, chosen));
    };
    let mut made: Vec<(Layout, VerifiedFolded)> = Vec::new();
    let mut otherwise = |options: &Options| match folded(task, quotient, options, &mut |_| {}) {
        Ok(plan) => {
            let whole = plan.unfold(&of_plan).ok();
            made.push((Layout::of(options), plan));
            Ok(whole)
        }
        Err(NoSteps::Unfolded(_) | NoSteps::NoRoom(_)) => Ok(None),
        Err(NoSteps::Wrong(failure)) => Err(NotByOne::Failed(failure)),
    };
    let (whole, chosen) = chooser::choose(whole, options, wanted, task.choice, topology, &mut otherwise)?;
    let (copies, schedule) = chooser::asking(&whole, &chosen, topology, &wanted.fixed);
    let other = made.into_iter().find(|(layout, _)| *layout == chosen.layout);
    let plan = other.map_or(plan, |(_, plan)| plan);
    let mut folded = plan.into_folded();
    folded.plan.header.copies = copies;
    folded.plan.header.schedule = schedule;
    let plan = plan::verify::verify_folded(folded, &of_plan)
        .map_err(|all| NotByOne::Failed(violations(&all, task.loaded)))?;
    Ok((plan, chosen))
}

/// V6, of the steps of the standing ranks.
fn validated_by_one(
    proved: ProvedByOne,
    plan: Result<VerifiedFolded, Unfolded>,
    limits: &Limits,
    at_stage: &mut dyn FnMut(Stage),
) -> Result<CompiledByOne, NotByOne> {
    if let Ok(plan) = &plan {
        at_stage(Stage::Validate);
        symmetry::validate(&proved.quotient, plan, limits).map_err(|unlike| {
            let told = diagnostics::symmetry::unlike(&unlike, &proved.quotient.trace);
            NotByOne::Failed(Failure::Wrong(vec![told]))
        })?;
    }
    Ok(CompiledByOne { proved, plan })
}
