//! Neighbours that do the same to neighbouring cells become one wide step.
//!
//! In: what each rank does, block by block. Out: of each event, whether the next one of its block continues it. Both ends of every
//! channel must agree, so what one end cannot join the other end does not either. The events stay the same, in the same order: nothing
//! that was found for them changes, and executors may send several small ones as one message (docs/plan.md §3).

use plan::plan::Operand;

use super::program::Order;
use super::resolve::{Resolver, Shape};
use super::simulate::Run;
use super::transfers::TransferId;
use super::waits::Waits;

/// By event: whether the next of its block is part of the same step.
pub(super) fn find(resolver: &Resolver<'_>, run: &Run, order: &Order, waits: &Waits) -> Vec<bool> {
    let mut joined = vec![false; run.events.len()];
    let mut wanted = false;
    let overlaid = !resolver.trace.inplace.is_empty();
    let (mut before, mut here): (Vec<Operand>, Vec<Operand>) = (Vec::new(), Vec::new());
    for block in order.blocks() {
        let mut last: Option<(u32, Shape)> = None;
        let mut width = 0;
        for &event in block {
            here.clear();
            let shape = resolver.operands(run.events[event as usize], &mut here);
            if let Some((earlier, of_earlier)) = last {
                // Where a form lays places on each other, neighbours of the plan may meet in memory.
                let local = |operand: &Operand| matches!(operand, Operand::Local { .. });
                let (sources, destinations) = here.split_at(shape.sources as usize);
                let meets = overlaid && sources.iter().any(local) && destinations.iter().any(local);
                let apart = meets || waits.is_awaited(earlier) || !waits.of(event).is_empty();
                let same = !apart && Shape { width: shape.width, ..of_earlier } == shape;
                joined[earlier as usize] =
                    same && continues(resolver, &of_earlier, (&before, &here), width + shape.width);
                width = if joined[earlier as usize] { width + shape.width } else { 0 };
                wanted |= joined[earlier as usize];
            }
            width = width.max(shape.width);
            last = Some((event, shape));
            std::mem::swap(&mut before, &mut here);
        }
    }
    if wanted {
        agree(resolver, run, order, &mut joined);
    }
    joined
}

/// Whether `here` does for the following cells what `before`, of the given shape, does for its own; `width` cells in all
/// would be one step.
fn continues(
    resolver: &Resolver<'_>,
    shape: &Shape,
    (before, here): (&[Operand], &[Operand]),
    width: u32,
) -> bool {
    let follows = |(a, b): (&Operand, &Operand)| match (*a, *b) {
        (Operand::Channel(a), Operand::Channel(b)) => a == b && !resolver.transfers.links[a.index()].counter,
        (Operand::Local { buffer: a, cell }, Operand::Local { buffer: b, cell: next }) => {
            a == b && next == cell + shape.width
        }
        _ => false,
    };
    // A step may not read a cell that another cell of the same step writes: executors may do several at once.
    let (sources, destinations) = here.split_at(shape.sources as usize);
    let meets = |a: &Operand, b: &Operand| match (*a, *b) {
        (Operand::Local { buffer: a, cell: x }, Operand::Local { buffer: b, cell: y }) => {
            a == b && x != y && x.abs_diff(y) < width
        }
        _ => false,
    };
    before.iter().zip(here).all(follows)
        && !sources.iter().any(|source| destinations.iter().any(|destination| meets(source, destination)))
}

/// Takes back what the other end of some channel does not join.
fn agree(resolver: &Resolver<'_>, run: &Run, order: &Order, joined: &mut [bool]) {
    let list = &resolver.transfers.list;
    let (mut sender, mut taker) = (vec![0u32; list.len()], vec![0u32; list.len()]);
    for (event, &what) in (0..).zip(&run.events) {
        resolver.sent(what).for_each(|id| sender[id.index()] = event);
        resolver.taken(what).for_each(|id| taker[id.index()] = event);
    }
    // The pairs at other ends that must be joined too, if `event` is joined to the next of its block.
    let mates = |event: u32, out: &mut Vec<(u32, u32)>| {
        out.clear();
        let what = run.events[event as usize];
        let transfers = resolver.transfers;
        let readers = |id: TransferId| transfers.links[list[id.index()].channel as usize].readers;
        let next = |id: TransferId| TransferId(id.0 + readers(id));
        let all = resolver.sent(what).flat_map(|id| transfers.message(id));
        out.extend(all.map(|id| (taker[id.index()], taker[next(id).index()])));
        let taken = resolver.taken(what).map(|id| transfers.sender(id));
        out.extend(taken.map(|id| (sender[id.index()], sender[next(id).index()])));
    };
    let mut unsure: Vec<u32> = (0..run.events.len() as u32).filter(|&e| joined[e as usize]).collect();
    let mut pairs = Vec::new();
    while let Some(event) = unsure.pop() {
        if !joined[event as usize] {
            continue;
        }
        mates(event, &mut pairs);
        let agreed = |&(a, b): &(u32, u32)| joined[a as usize] && order.next(a) == Some(b);
        if !pairs.iter().all(agreed) {
            joined[event as usize] = false;
            unsure.extend(pairs.iter().map(|&(a, _)| a).filter(|&a| joined[a as usize]));
        }
    }
}
