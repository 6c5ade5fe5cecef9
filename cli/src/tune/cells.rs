//! Which calls are measured.
//!
//! In: the options of `rcc tune`. Out: cells, each a call as selection is asked for it by programs: of the size that all calls of its size's
//! class ask for.

use plan::dtype::Dtype;
use rcc::collective::Collective;
use rcc::select::{Ask, StandardCall};
use runtime::small::MOST;

use crate::args;
use crate::args::tune::Kinds;
use crate::failure::Failure;
use crate::size;

/// What is measured where nothing is said.
const RANKS: [&[u32]; 2] = [&[2, 4, 8], &[2, 4]];
const SIZES: [&[u64]; 2] =
    [&[8 << 10, 32 << 10, 256 << 10, 2 << 20, 16 << 20, 64 << 20], &[32 << 10, 2 << 20]];

/// A call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cell {
    pub(super) ask: Ask,
    /// What it is measured with.
    pub(super) dtype: Dtype,
}

/// All that are asked for.
pub(super) fn cells(args: &args::Tune) -> Result<Vec<Cell>, Failure> {
    let mut collectives: Vec<Collective> =
        args.collectives.iter().map(|name| Collective::named(name)).collect::<Result<_, _>>()?;
    if let Some(none) = collectives.iter().find(|collective| !collective.has_call()) {
        return Err(Failure::usage(format!(
            "nothing is selected for {none}: it has no typed call of a size"
        )));
    }
    if collectives.is_empty() {
        collectives = Collective::ALL.into_iter().filter(|collective| collective.has_call()).collect();
    }
    let quick = usize::from(args.quick);
    let collectives = once(&collectives);
    let ranks = once(if args.ranks.is_empty() { RANKS[quick] } else { &args.ranks });
    let sizes = once(if args.bytes.is_empty() { SIZES[quick] } else { &args.bytes });
    if let Some(&small) = sizes.iter().find(|&&bytes| bytes <= MOST as u64) {
        let most = size::show(MOST as u64);
        let message = format!(
            "nothing is selected for {}: calls of at most {most} go without a plan",
            size::show(small)
        );
        return Err(Failure::usage(message));
    }
    let memory = match args.memory {
        Kinds::Plain => &[false][..],
        Kinds::Registered => &[true],
        Kinds::Both => &[false, true],
    };
    let mut cells: Vec<Cell> = Vec::new();
    for &collective in &collectives {
        for &ranks in &ranks {
            for &bytes in &sizes {
                for &registered in memory {
                    let cell = cell(collective, (ranks, bytes), args, registered);
                    // Two sizes may be of one class.
                    if !cells.contains(&cell) {
                        cells.push(cell);
                    }
                }
            }
        }
    }
    Ok(cells)
}

/// Each once, however often it is named.
fn once<T: Copy + PartialEq>(all: &[T]) -> Vec<T> {
    let mut kept = Vec::new();
    for &one in all {
        if !kept.contains(&one) {
            kept.push(one);
        }
    }
    kept
}

fn cell(collective: Collective, (ranks, bytes): (u32, u64), args: &args::Tune, registered: bool) -> Cell {
    // A broadcast is called in place.
    let in_place = collective == Collective::Broadcast;
    let call = StandardCall::of_bytes(collective, ranks, bytes, args.dtype);
    let ask = Ask::of(&StandardCall { in_place, registered, ..call }, ranks);
    Cell { ask, dtype: args.dtype }
}
