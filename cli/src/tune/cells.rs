//! Which calls are measured.
//!
//! In: the options of `rcc tune`. Out: cells, each a call as selection is asked for it.

use plan::dtype::Op;
use plan::plan::Forms;
use rcc::collective::Collective;
use rcc::select::Ask;

use crate::args;
use crate::args::tune::Kinds;
use crate::failure::Failure;

/// What is measured where nothing is said.
const RANKS: [&[u32]; 2] = [&[2, 4, 8], &[2, 4]];
const SIZES: [&[u64]; 2] =
    [&[8 << 10, 32 << 10, 256 << 10, 2 << 20, 16 << 20, 64 << 20], &[32 << 10, 2 << 20]];

/// A call.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    pub(super) ask: Ask,
    /// Elements of a block.
    pub(super) elements: u64,
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
    if sizes.contains(&0) {
        return Err(Failure::usage("a call of 0 bytes has nothing to measure".to_string()));
    }
    let memory = match args.memory {
        Kinds::Plain => &[false][..],
        Kinds::Registered => &[true],
        Kinds::Both => &[false, true],
    };
    let mut cells = Vec::new();
    for &collective in &collectives {
        for &ranks in &ranks {
            for &bytes in &sizes {
                cells.extend(
                    memory.iter().map(|&registered| cell(collective, (ranks, bytes), args, registered)),
                );
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
    let elements = collective.elements(ranks, bytes, args.dtype);
    // A broadcast is called in place; and what exchanges messages serves both.
    let in_place = collective == Collective::Broadcast;
    let forms = match (registered, collective) {
        (_, Collective::Alltoall) => Forms { disjoint: true, same: false },
        (true, _) => Forms { disjoint: !in_place, same: in_place },
        (false, _) => Forms { disjoint: true, same: true },
    };
    let ask = Ask {
        collective,
        ranks,
        root: collective.is_rooted().then_some(0),
        bytes,
        elements,
        dtype: args.dtype,
        op: Op::Sum,
        forms,
        registered,
    };
    Cell { ask, elements }
}
