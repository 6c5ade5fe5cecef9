//! Plans as loops: how steps are stored, printed and emitted where they differ by an affine rule.
//!
//! In: a plan, whose steps are spelled out. Out: its tables as bytes in which steps are loops and ranks that do alike are
//! told once (`pack`), and back (`unpack`). The meaning of loops is their expansion: nothing but storing, printing
//! and emitting knows of them, and `unpack(pack(plan))` is the plan, step by step.
//!
//! | file | what |
//! |---|---|
//! | `fit.rs` | whether numbers follow an affine rule, modulo a constant |
//! | `loops.rs` | where a list repeats itself |
//! | `block.rs` | a block's steps as loops |
//! | `items.rs` | the same as trees, for one block |
//! | `form.rs`, `programs.rs` | all blocks: forms, and columns of their numbers |
//! | `series.rs` | columns of numbers, whatever their rules |
//! | `tables.rs` | channels, promise and the other tables |
//! | `wire.rs` | numbers as bytes |

mod block;
mod fit;
mod form;
mod items;
mod loops;
mod programs;
mod series;
mod tables;
pub(crate) mod wire;

pub(crate) use self::items::rule;
pub use self::items::{Affine, Item, Operand, Program, Step, Term, program};
use self::wire::{Fault, Read, Reader, Writer};
use crate::plan::{Plan, Section};

/// Appends the tables of a plan (but for its strings, buffers and source positions), or says that they are not in
/// the order that `unpack` gives them.
pub(crate) fn pack(out: &mut Writer, plan: &Plan) -> bool {
    if !in_order(plan) {
        return false;
    }
    let mut periods = Vec::new();
    let mut period = 1usize;
    for &level in plan.header.shape.iter().rev() {
        period = period.saturating_mul(level as usize);
        periods.push(period);
    }
    tables::write(out, plan, &periods);
    programs::write(out, plan, &periods);
    true
}

/// Reads the tables into a plan that has none. Takes at most `most` bytes for them, and twice as many on the way.
pub(crate) fn unpack(bytes: &[u8], plan: &mut Plan, most: u64) -> Read<()> {
    let mut input = Reader::new(bytes);
    let mut budget = tables::Budget::new(most);
    tables::read(&mut input, plan, &mut budget)?;
    programs::read(&mut input, plan, &mut budget)?;
    if input.left() > 0 { Err(Fault::Malformed("something follows the last table")) } else { Ok(()) }
}

/// Whether ranges follow each other without gaps, through all of each table.
pub(crate) fn in_order(plan: &Plan) -> bool {
    let mut next = 0;
    let mut follows = |start: u32, end: u32| {
        let right = start == next && start <= end;
        next = end;
        right
    };
    let blocks = plan.blocks.iter().all(|block| {
        Section::ALL.into_iter().map(|s| block.section(s)).all(|section| follows(section.start, section.end))
    });
    let steps = next as usize == plan.steps.len();
    let mut next = 0;
    let channels = plan.channels.iter().all(|channel| {
        let right = channel.readers.start == next && next <= channel.readers.end;
        next = channel.readers.end;
        right
    });
    let readers = next as usize == plan.readers.len();
    let (mut operands, mut waits) = (0u64, 0u64);
    let ranges = plan.steps.iter().all(|step| {
        let right = u64::from(step.operands) == operands && u64::from(step.waits) == waits;
        operands += u64::from(step.sources) + u64::from(step.destinations);
        waits += u64::from(step.wait_count);
        right
    });
    let all = operands == plan.operands.len() as u64 && waits == plan.waits.len() as u64;
    blocks && steps && channels && readers && ranges && all
}
