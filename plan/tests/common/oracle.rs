//! Runs of the oracle on random entry values, compared with the promise.

use std::borrow::Cow;

use rcc_plan::ids::{BufferId, RankId};
use rcc_plan::interpret::scheduler::{Random, RoundRobin, Scheduler, Starve, Stubborn};
use rcc_plan::interpret::{Call, Fault, Outcome, interpret};
use rcc_plan::plan::{Plan, Role};
use rcc_plan::reference::{Reference, Wrong, fill};

const SEED: u64 = 7;

/// The entry values of a buffer.
pub(crate) fn entry(plan: &Plan, call: &Call, buffer: BufferId, rank: RankId) -> Vec<u8> {
    let blocks = u64::from(plan.buffers[buffer.index()].blocks);
    let mut bytes = vec![0; (blocks * call.elements) as usize * call.dtype.size() as usize];
    fill(call.dtype, call.op, SEED, rank, buffer, &mut bytes);
    bytes
}

/// Runs a plan on them.
pub(crate) fn run(plan: &Plan, call: &Call, scheduler: &mut dyn Scheduler) -> Result<Outcome, Fault> {
    interpret(plan, call, &mut |buffer, rank| entry(plan, call, buffer, rank), scheduler)
}

/// What is not as promised.
fn wrong(plan: &Plan, call: &Call, outcome: &Outcome) -> Wrong {
    let reference = Reference::new(&plan.promise);
    let mut wrong = Wrong::default();
    for (i, buffer) in plan.buffers.iter().enumerate().filter(|(_, b)| b.role == Role::Recv) {
        for rank in (0..plan.header.ranks).map(RankId).filter(|&rank| buffer.at.holds(rank)) {
            let id = BufferId::new(i);
            let size = call.elements as usize * call.dtype.size() as usize;
            let mut of = |place: rcc_plan::collective::BlockRef| {
                let whole = entry(plan, call, place.buffer, place.rank);
                Cow::Owned(whole[place.block as usize * size..][..size].to_vec())
            };
            let got = outcome.buffer(id, rank);
            wrong.add(reference.check((id, rank), call.elements, (call.dtype, call.op), &mut of, got), 0);
        }
    }
    wrong
}

/// Everything promised is there.
pub(crate) fn right(plan: &Plan, call: &Call, outcome: &Outcome) {
    let wrong = wrong(plan, call, outcome);
    assert_eq!(wrong.count, 0, "{} {call:?}: {:?}", plan.header.algorithm, wrong.first);
}

/// Of five kinds.
pub(crate) fn scheduler(kind: u32, seed: u64) -> Box<dyn Scheduler> {
    match kind % 5 {
        0 => Box::new(RoundRobin::default()),
        1 => Box::new(Random::new(seed)),
        2 => Box::new(Stubborn::new(true)),
        3 => Box::new(Stubborn::new(false)),
        _ => Box::new(Starve { victim: (seed % 4) as u32 }),
    }
}
