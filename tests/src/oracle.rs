//! Entry values for a call of a plan, and the verdict on what the call left.
//!
//! In: a plan, a call, an outcome of the interpreter. Out: what is wrong with it, judged by `plan::reference`, which
//! knows the promise and nothing of the plan.

use std::borrow::Cow;

use plan::collective::BlockRef;
use plan::dtype::{Dtype, Op};
use plan::ids::{BufferId, RankId};
use plan::interpret::scheduler::Scheduler;
use plan::interpret::{Call, Outcome, interpret};
use plan::plan::{Plan, Role};
use plan::reference::{Reference, fill};
use plan::verify::VerifiedPlan;
use runtime::exec::Shape;
use runtime::job::threads::run_threads;
use runtime::job::{Inputs, Job};

/// The forms that a plan serves; true: in place.
pub fn forms(plan: &Plan) -> impl Iterator<Item = bool> {
    let forms = plan.header.forms;
    [(false, forms.disjoint), (true, forms.same)].into_iter().filter(|(_, served)| *served).map(|(f, _)| f)
}

/// The entry bytes of a buffer.
pub fn input(plan: &Plan, call: &Call, buffer: BufferId, rank: RankId) -> Vec<u8> {
    let blocks = u64::from(plan.buffers[buffer.index()].blocks);
    let mut bytes = vec![0; (blocks * call.elements * u64::from(call.dtype.size())) as usize];
    fill(call.dtype, call.op, 1, rank, buffer, &mut bytes);
    bytes
}

/// The buffers that are judged.
pub fn received(plan: &Plan) -> impl Iterator<Item = BufferId> {
    let buffers = plan.buffers.iter().enumerate().filter(|(_, b)| b.role == Role::Recv);
    buffers.map(|(i, _)| BufferId(i as u32))
}

/// Runs a call and judges it.
pub fn run(plan: &Plan, call: &Call, scheduler: &mut dyn Scheduler) -> Result<Outcome, String> {
    let outcome = interpret(plan, call, &mut |buffer, rank| input(plan, call, buffer, rank), scheduler)
        .map_err(|fault| fault.to_string())?;
    keeps_promise(plan, call, &outcome)?;
    Ok(outcome)
}

/// Compares every element that is promised with the definition.
pub fn keeps_promise(plan: &Plan, call: &Call, outcome: &Outcome) -> Result<(), String> {
    let reference = Reference::new(&plan.promise);
    let bytes = (call.elements * u64::from(call.dtype.size())) as usize;
    let mut entry = |place: BlockRef| {
        let all = input(plan, call, place.buffer, place.rank);
        Cow::Owned(all[place.block as usize * bytes..][..bytes].to_vec())
    };
    for rank in (0..plan.header.ranks).map(RankId) {
        for buffer in received(plan) {
            let got = outcome.buffer(buffer, rank);
            let types = (call.dtype, call.op);
            let wrong = reference.check((buffer, rank), call.elements, types, &mut entry, got);
            if wrong.count > 0 {
                let name = &plan.buffers[buffer.index()].name;
                return Err(format!(
                    "{name} @ {}: {} elements are wrong: {:?}",
                    rank.0, wrong.count, wrong.first
                ));
            }
        }
    }
    Ok(())
}

/// Runs it by threads over shared memory, in each form it serves, as one slice and as several, twice each.
pub fn ranks_execute(plan: &VerifiedPlan) -> Result<(), String> {
    for in_place in forms(plan) {
        for elements in [1, 3001] {
            let shape = Shape { elements, dtype: Dtype::F32, op: Op::Sum, in_place };
            let job = Job { slot_bytes: Some(1024), iterations: 2, inputs: Inputs::Anew, ..Job::new(shape) };
            let report = run_threads(plan, &job).map_err(|error| error.to_string())?;
            if report.wrong != 0 {
                return Err(format!("{} elements are wrong: {:?}", report.wrong, report.first_wrong));
            }
        }
    }
    Ok(())
}
