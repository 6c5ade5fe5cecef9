//! V0, first part: the header, the buffers, the overlaps.
//!
//! In: a plan of which nothing is known. Out: totals that agree, sizes within limits, overlaps that are one to one.

use super::{Fault, Faults};
use crate::display::plural;
use crate::ids::{BufferId, RankId};
use crate::plan::{Overlap, Presence, Role};
use crate::verify::limits::Limits;
use crate::verify::places::Places;

pub(super) fn check(faults: &mut Faults, limits: &Limits) {
    let plan = faults.plan;
    let header = &plan.header;
    let ranks = u64::from(header.ranks);
    let mut wrong = |what: String| faults.add(|| Fault::Header { what });
    let product = header.shape.iter().try_fold(1u64, |n, &level| n.checked_mul(u64::from(level)));
    if product != Some(ranks) || header.shape.is_empty() {
        let shape: Vec<String> = header.shape.iter().take(8).map(u32::to_string).collect();
        wrong(format!(
            "a world of shape {} does not have {}",
            shape.join("x"),
            plural(ranks, "rank", "ranks")
        ));
    }
    for (what, number) in
        [("ranks", header.ranks), ("cells", header.cells), ("copies", header.copies), ("k_min", header.k_min)]
    {
        if number == 0 {
            wrong(format!("`{what}` is 0"));
        }
    }
    if !header.forms.disjoint && !header.forms.same {
        wrong("it serves neither alias form".to_string());
    }
    if !header.forms.same && !plan.overlaps.is_empty() {
        wrong("it does not serve the form `same` but lists overlaps".to_string());
    }
    if header.scratch_cells.len() as u64 != ranks {
        wrong(format!("`scratch_cells` has {} entries for {ranks} ranks", header.scratch_cells.len()));
    }
    faults.limit("ranks", ranks, limits.ranks);
    faults.limit("levels", header.shape.len() as u64, 64);
    faults.limit("steps", plan.steps.len() as u64, limits.steps.min(u64::from(u32::MAX) - 1));
    faults.limit("blocks", plan.blocks.len() as u64, limits.steps.min(u64::from(u32::MAX) - 1));
    faults.limit("channel readers", plan.readers.len() as u64, limits.steps.min(u64::from(u32::MAX) - 1));
    faults.limit("overlaps", plan.overlaps.len() as u64, limits.places);
    faults.limit(
        "pairs of buffer and rank",
        (plan.buffers.len() as u64).saturating_mul(ranks),
        limits.places,
    );
    if faults.report.is_empty() {
        buffers(faults, limits);
    }
    if faults.report.is_empty() {
        overlaps(faults);
    }
}

fn buffers(faults: &mut Faults, limits: &Limits) {
    let plan = faults.plan;
    let (ranks, cells) = (u64::from(plan.header.ranks), u64::from(plan.header.cells));
    let scratch: u64 = plan.header.scratch_cells.iter().map(|&cells| u64::from(cells)).sum();
    let mut scratch_buffers = 0;
    let mut places = scratch;
    for (id, buffer) in plan.buffers.iter().enumerate() {
        let mut wrong = |what: &str| {
            faults.add(|| Fault::Buffer { what: format!("buffer {id}: {what}") });
        };
        if buffer.role == Role::Scratch {
            scratch_buffers += 1;
            if buffer.blocks != 0 {
                wrong("scratch has no blocks of its own (see `scratch_cells`)");
            }
            if buffer.at != Presence::All {
                wrong("scratch exists at every rank (of 0 cells, if need be)");
            }
        }
        if u64::from(buffer.blocks) * cells > u64::from(u32::MAX) {
            wrong("its cells cannot be counted in 32 bits");
        }
        let holders = match buffer.at {
            Presence::All => ranks,
            Presence::One(rank) => {
                if u64::from(rank.0) >= ranks {
                    wrong("it lives at a rank that does not exist");
                }
                1
            }
        };
        places += (u64::from(buffer.blocks) * cells).saturating_mul(holders).min(u64::from(u32::MAX));
    }
    if scratch_buffers > 1 {
        faults.add(|| Fault::Buffer { what: format!("{scratch_buffers} scratch buffers: a plan has one") });
    }
    if scratch_buffers == 0 && scratch > 0 {
        faults.add(|| Fault::Buffer { what: format!("{scratch} scratch cells but no scratch buffer") });
    }
    faults.limit("places", places, limits.places.min(u64::from(u32::MAX) - 2));
}

fn overlaps(faults: &mut Faults) {
    let plan = faults.plan;
    if plan.overlaps.is_empty() {
        return;
    }
    let places = Places::new(plan);
    let mut taken = vec![false; places.total()];
    for (at, overlap) in plan.overlaps.iter().enumerate() {
        match overlap_fault(faults, &places, overlap, &mut taken) {
            None => {}
            Some(what) => faults.add(|| Fault::Buffer { what: format!("overlap {at}: {what}") }),
        }
    }
}

fn overlap_fault(
    faults: &Faults,
    places: &Places,
    overlap: &Overlap,
    taken: &mut [bool],
) -> Option<&'static str> {
    let plan = faults.plan;
    let Overlap { rank, left, left_cell, right, right_cell, cells } = *overlap;
    if rank.0 >= plan.header.ranks {
        return Some("its rank does not exist");
    }
    let role = |buffer: BufferId| plan.buffers.get(buffer.index()).map(|buffer| buffer.role);
    if role(left) != Some(Role::Send) || role(right) != Some(Role::Recv) {
        return Some("it must lay a `Send` buffer on a `Recv` buffer");
    }
    if left_cell % plan.header.cells != right_cell % plan.header.cells {
        return Some("its sides start at different positions of a block");
    }
    let side = |rank: RankId, buffer: BufferId, cell: u32| places.range(rank, buffer, cell, cells);
    let (Some(left), Some(right)) = (side(rank, left, left_cell), side(rank, right, right_cell)) else {
        return Some("it leaves a buffer");
    };
    for place in left.chain(right) {
        if std::mem::replace(&mut taken[place], true) {
            return Some("it shares a cell with another overlap");
        }
    }
    None
}
