//! A compiled program, run: by the oracle and by threads over shared memory.
//!
//! In: a verified plan. Out: what is wrong with the bytes it leaves, judged by `plan::reference`, which knows the promise
//! and nothing of the plan. Element types, operators, slots, schedulers take turns, so that over the shapes of one file
//! all of them come by.

use compiler::pipeline::Compiled;
use plan::collective::BlockRef;
use plan::dtype::{Dtype, Op};
use plan::ids::RankId;
use plan::interpret::scheduler::{Random, RoundRobin, Scheduler, Starve, Stubborn};
use plan::interpret::{Call, Outcome, clocks, interpret};
use plan::plan::Plan;
use plan::schedule::Schedule;
use plan::verify::{Limits, VerifiedPlan, verify};
use runtime::error::Kind;
use runtime::exec::Shape;
use runtime::job::Job;
use runtime::job::threads::run_threads;

use crate::oracle::{forms, input, keeps_promise, received};

/// Counts that cut badly: none, fewer than cells, one off the number of ranks and of cells, a prime.
fn counts(plan: &Plan) -> Vec<u64> {
    let (ranks, cells) = (u64::from(plan.header.ranks), u64::from(plan.header.cells));
    let mut counts = vec![0, 1, ranks - 1, cells + 1, 1009];
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// The element type and operator of a turn, among those that the plan serves.
fn types(plan: &Plan, turn: usize) -> (Dtype, Op) {
    let op = Op::ALL[turn % Op::ALL.len()];
    let op = if plan.header.serves(op) { op } else { Op::Sum };
    (Dtype::ALL[turn % Dtype::ALL.len()], op)
}

/// Every count and form under the oracle, in three orders of events, which must leave the same bytes.
pub(super) fn oracle(compiled: &Compiled, first_turn: usize) -> Result<(), String> {
    let plan = compiled.plan.plan();
    let mut turn = first_turn;
    for in_place in forms(plan) {
        let findings = clocks::findings(plan, in_place).map_err(|e| e.to_string())?;
        if !findings.is_empty() {
            return Err(format!("in place {in_place}, the clocks find {findings:?}"));
        }
        for elements in counts(plan) {
            turn += 1;
            let (dtype, op) = types(plan, turn);
            let k_min = plan.header.k_min.max(1);
            let call = Call {
                in_place,
                slots: k_min + [0, 1, 6][turn % 3],
                slot_bytes: [16, 104, 64 << 10][turn / 3 % 3],
                elide: turn.is_multiple_of(2),
                group: turn % 4 < 2,
                ..Call::new(elements, dtype, op)
            };
            let at = |what: String| format!("{what}\nunder the oracle, {call:?}");
            let victim = (turn % plan.blocks.len().max(1)) as u32;
            let schedulers: [&mut dyn Scheduler; 3] = [
                &mut RoundRobin::default(),
                &mut Random::new(turn as u64),
                if turn.is_multiple_of(2) {
                    &mut Stubborn::new(turn.is_multiple_of(4))
                } else {
                    &mut Starve { victim }
                },
            ];
            let mut before: Option<Outcome> = None;
            for scheduler in schedulers {
                let outcome =
                    interpret(plan, &call, &mut |buffer, rank| input(plan, &call, buffer, rank), scheduler)
                        .map_err(|e| at(e.to_string()))?;
                match &before {
                    None => {
                        keeps_promise(plan, &call, &outcome).map_err(at)?;
                        agrees_on_bits(compiled, &call, &outcome).map_err(at)?;
                    }
                    Some(before) => same_bytes(plan, before, &outcome).map_err(at)?,
                }
                before.get_or_insert(outcome);
            }
        }
    }
    Ok(())
}

/// A call in each form with each rank a thread, once with as few and as small slots as there may be.
pub(super) fn threads(compiled: &Compiled, turn: usize) -> Result<(), String> {
    let plain = without_schedule(&compiled.plan)?;
    let verified = plain.as_ref().unwrap_or(&compiled.plan);
    let plan = verified.plan();
    for (i, in_place) in forms(plan).enumerate() {
        for (elements, tight) in [(1009, true), (u64::from(plan.header.ranks) - 1, false)] {
            let (dtype, op) = types(plan, turn + i);
            let job = Job {
                slots: tight.then_some(plan.header.k_min.max(1)),
                slot_bytes: tight.then_some(64),
                ..Job::new(Shape { elements, dtype, op, in_place })
            };
            let at = |what: String| format!("{what}\nwith ranks as threads, {job:?}");
            let report = run_threads(verified, &job).map_err(|e| at(e.to_string()))?;
            if report.wrong > 0 {
                return Err(at(format!("{} elements are wrong: {:?}", report.wrong, report.first_wrong)));
            }
            let promised = plan.promise.clauses.len() as u64 * elements;
            if report.checked != promised {
                return Err(at(format!("{} of {promised} elements were compared", report.checked)));
            }
        }
    }
    Ok(())
}

/// Where a plan's schedule asks for what ranks on CPUs do not have, and they refuse it as they must: the same plan
/// without its schedule, which changes no result.
fn without_schedule(plan: &VerifiedPlan) -> Result<Option<VerifiedPlan>, String> {
    if plan.plan().header.schedule == Schedule::default() {
        return Ok(None);
    }
    let in_place = !plan.plan().header.forms.disjoint;
    let job = Job::new(Shape { elements: 1, dtype: Dtype::F32, op: Op::Sum, in_place });
    match run_threads(plan, &job) {
        Err(error) if error.kind == Kind::Unsupported => {
            let mut plain = plan.plan().clone();
            plain.header.schedule = Schedule::default();
            verify(plain, &Limits::default()).map(Some).map_err(|violations| format!("{violations:?}"))
        }
        _ => Ok(None),
    }
}

/// Where the proof says that all ranks end with the same bits, places promised the same have the same bytes.
fn agrees_on_bits(compiled: &Compiled, call: &Call, outcome: &Outcome) -> Result<(), String> {
    if compiled.proved.proof.same_bits != Some(true) {
        return Ok(());
    }
    let promise = &compiled.plan.plan().promise;
    let bytes = (call.elements * u64::from(call.dtype.size())) as usize;
    let held =
        |place: BlockRef| &outcome.buffer(place.buffer, place.rank)[place.block as usize * bytes..][..bytes];
    for clause in &promise.clauses {
        let alike = promise.clauses.iter().find(|other| other.list == clause.list).unwrap_or(clause);
        if held(alike.place) != held(clause.place) {
            return Err(format!("{:?} and {:?} differ in their bits", alike.place, clause.place));
        }
    }
    Ok(())
}

fn same_bytes(plan: &Plan, before: &Outcome, after: &Outcome) -> Result<(), String> {
    for rank in (0..plan.header.ranks).map(RankId) {
        for buffer in received(plan) {
            if before.buffer(buffer, rank) != after.buffer(buffer, rank) {
                let name = &plan.buffers[buffer.index()].name;
                return Err(format!("{name} @ {}: another order of events leaves other bytes", rank.0));
            }
        }
    }
    Ok(())
}

/// What the layout says of a buffer is what `input` gives.
#[cfg(test)]
mod tests {
    use plan::ids::BufferId;
    use plan::layout::Layout;

    use super::*;

    #[test]
    fn inputs_are_as_long_as_the_layout_says() {
        let loaded = compiler::pipeline::load(&[], &compiler::limits::Limits::default());
        let algorithm = loaded.program.find("std::alltoall::direct").expect("a standard algorithm");
        let request = compiler::elaborate::Request { algorithm, shape: vec![3], params: Default::default() };
        let limits = compiler::limits::Limits::default();
        let compiled = compiler::pipeline::compile(
            &loaded,
            &request,
            &compiler::options::Options::default(),
            &limits,
            &mut |_| {},
        )
        .expect("right");
        let plan = compiled.plan.plan();
        let call = Call::new(7, Dtype::F16, Op::Sum);
        let layout = Layout::new(plan, 7, Dtype::F16, 64).expect("small");
        let bytes = input(plan, &call, BufferId(0), RankId(1)).len() as u64;
        assert_eq!(bytes, layout.buffer_bytes(BufferId(0)));
    }
}
