//! Slots and memory of a job.
//!
//! In: a plan, and what the job asks for. Out: how many slots of how many bytes each channel gets, how much registered
//! memory each rank gets, and how much memory the job needs, refused before anything is started if the machine does not
//! have it.
//!
//! Memory: `board + channels × (lines + k × S)`, the callers' buffers of all ranks (those that peers reach into lie in
//! the shared segment), scratch of all ranks.

use plan::ids::{BufferId, RankId};
use plan::layout::Layout;
use plan::plan::{ChannelKind, Operand, Plan};
use plan::verify::{VerifiedPlan, trades};
use serde::{Deserialize, Serialize};

use super::Job;
use crate::error::{Error, Kind};
use crate::exec::buffers::registered_bytes;
use crate::exec::exposed::Exposed;
use crate::exec::program::check_supported;
use crate::memory::budget::{self, Needs};
use crate::memory::segment;

/// The slots that a channel gets, unless the plan needs more: enough that a writer seldom waits for its reader.
const SLOTS: u32 = 4;
/// The most bytes a slot gets: it should still be in the writer's cache when it is read.
const SLOT_BYTES: u32 = 64 << 10;
/// What the slots of a core that runs one rank take together, where there is no need to be sparing: twice what an own cache of the cores holds that this was
/// measured on. A slot that
/// is written anew has then left the cache of its last reader for one that the cores share, if they share one, and costs a quarter of what it does
/// while it lies there (measured on two cores of a Zen 5 with 1 MiB each: 8.5 GB/s with 256 KiB, 17 to 20 with 1 MiB, 30 to 36 with 2 MiB; where
/// they share none it costs nothing more).
const RING: u64 = 2 << 20;
/// The same where ranks share a core: some of what they send stays within its cache, and is best if it can.
const CROWDED_RING: u64 = 1 << 20;
/// The most slots of a channel for that reason.
const RING_SLOTS: u32 = 512;
/// Where channels could trade slots only if they had more than so many, they do not.
const TRADED_SLOTS: u32 = 64;
/// The least bytes a slot gets: a cache line.
const LEAST_SLOT_BYTES: u32 = 64;

/// Slots of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Geometry {
    /// k.
    pub slots: u32,
    /// S.
    pub slot_bytes: u32,
}

impl Geometry {
    /// What suits a job: what it asks for, else what the plan's schedule asks for at most, else 64 KiB at most; less if
    /// no message is as long.
    pub fn of(plan: &Plan, job: &Job) -> Result<Geometry, Error> {
        check_supported(plan)?;
        let least = plan.header.k_min.max(1);
        let slots = job.slots.unwrap_or(SLOTS.max(least));
        let slot_bytes = match job.slot_bytes {
            Some(bytes) => bytes,
            None => {
                let most = plan.header.schedule.slice_bytes.unwrap_or(SLOT_BYTES).max(LEAST_SLOT_BYTES);
                let layout = layout(plan, job, most)?;
                let cell = layout.largest_cell().saturating_mul(u64::from(job.shape.dtype.size()));
                let longest = cell.saturating_mul(u64::from(widest(plan)));
                longest.next_multiple_of(u64::from(LEAST_SLOT_BYTES)).clamp(64, u64::from(most)) as u32
            }
        };
        Ok(Geometry { slots, slot_bytes })
    }

    /// What suits calls of any size: what the plan's schedule asks for, else 64 KiB.
    pub fn of_any_call(plan: &Plan) -> Result<Geometry, Error> {
        check_supported(plan)?;
        let slot_bytes = plan.header.schedule.slice_bytes.unwrap_or(SLOT_BYTES).max(LEAST_SLOT_BYTES);
        Ok(Geometry { slots: SLOTS.max(plan.header.k_min), slot_bytes })
    }

    /// With as many slots as messages are fastest with where ranks share so many cores, and no fewer than before. Where channels can trade
    /// slots, with no more than lets them: those are at hand anyway.
    #[must_use]
    pub fn roomy(self, plan: &VerifiedPlan, cores: u32) -> Geometry {
        // More slots never keep a plan from trading, so the fewest that let it are found by halves.
        let lets = |slots: u32| !trades(plan, slots).is_empty();
        let bound = TRADED_SLOTS.max(self.slots);
        if lets(bound) {
            let (mut low, mut high) = (self.slots, bound);
            while low < high {
                let middle = low + (high - low) / 2;
                if lets(middle) { high = middle } else { low = middle + 1 }
            }
            return Geometry { slots: low, ..self };
        }
        // With more they would trade after all.
        let most_slots = if lets(u32::MAX) { TRADED_SLOTS } else { RING_SLOTS };
        let mut out = vec![0u64; plan.header.ranks as usize];
        for channel in plan.channels.iter().filter(|channel| channel.kind == ChannelKind::Slots) {
            out[plan.blocks[channel.writer.index()].rank.index()] += u64::from(plan.header.copies);
        }
        let most = out.into_iter().max().unwrap_or(0).max(1);
        let ranks = u64::from(plan.header.ranks.div_ceil(cores.max(1)));
        let ring = if ranks > 1 { CROWDED_RING } else { RING };
        let slots = ring / most.saturating_mul(ranks).saturating_mul(self.slot_bytes.max(1).into());
        Geometry { slots: self.slots.max(slots.min(most_slots.into()) as u32), ..self }
    }

    /// The shape of a shared segment without registered memory.
    pub fn segment(&self, plan: &Plan) -> Result<segment::Shape, Error> {
        segment::Shape::new(plan, self.slots, self.slot_bytes)
    }

    /// The shape of the shared segment of a job, with the registered memory that its calls need.
    pub fn segment_for(&self, plan: &Plan, job: &Job) -> Result<segment::Shape, Error> {
        let shape = self.segment(plan)?;
        let exposed = Exposed::of(plan);
        if !exposed.any() {
            return Ok(shape);
        }
        let layout = layout(plan, job, self.slot_bytes)?;
        shape.with_registered(|rank| registered_bytes(plan, &layout, &exposed, rank, job.shape.in_place))
    }
}

/// The memory that a job needs, all ranks together; an error if the machine does not have it.
pub fn needs(plan: &Plan, job: &Job, geometry: Geometry) -> Result<Needs, Error> {
    let layout = layout(plan, job, geometry.slot_bytes)?;
    let ranks = || (0..plan.header.ranks).map(RankId);
    let buffers = ranks()
        .flat_map(|rank| plan.buffers.iter().enumerate().filter(move |(_, buffer)| buffer.at.holds(rank)))
        .map(|(b, _)| layout.buffer_bytes(BufferId::new(b)))
        .fold(0, u64::saturating_add);
    let scratch = ranks().map(|rank| layout.scratch_bytes(rank)).fold(0, u64::saturating_add);
    let needs = Needs { shared: geometry.segment(plan)?.bytes(), buffers, scratch };
    needs.check(budget::available())?;
    Ok(needs)
}

fn layout(plan: &Plan, job: &Job, slot_bytes: u32) -> Result<Layout, Error> {
    Layout::new(plan, job.shape.elements, job.shape.dtype, slot_bytes)
        .map_err(|e| Error::new(Kind::Invalid, e.to_string()))
}

/// The most cells that one step sends.
fn widest(plan: &Plan) -> u32 {
    let sends = |step: &&plan::plan::Step| plan.dst(step).iter().any(|o| matches!(o, Operand::Channel(_)));
    plan.steps.iter().filter(sends).map(|step| step.width).max().unwrap_or(1)
}
