//! A plan's other tables as columns, and what a plan that is read may take.
//!
//! In: a plan whose tables are in order, or bytes. Out: bytes, or a plan without steps. Strings, buffers and source
//! positions are few and not the business of this module.

use super::series;
use super::wire::{Fault, Read, Reader, Writer};
use crate::collective::{BlockRef, Clause};
use crate::ids::{BlockId, BufferId, RankId, StepId};
use crate::plan::{Channel, ChannelKind, Overlap, Plan, Witness};

/// How many bytes a plan may still take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    taken: u64,
    most: u64,
}

impl Budget {
    pub(super) fn new(most: u64) -> Budget {
        Budget { taken: 0, most }
    }

    /// Takes the memory of `rows` of `size` bytes.
    pub(super) fn charge(&mut self, rows: u64, size: usize) -> Read<()> {
        let taken = u128::from(self.taken) + u128::from(rows) * size as u128;
        self.taken = u64::try_from(taken).unwrap_or(u64::MAX);
        if self.taken > self.most { Err(Fault::TooLarge { bytes: self.taken }) } else { Ok(()) }
    }

    /// Reads how many rows a table has, and takes their memory.
    pub(super) fn table(&mut self, input: &mut Reader<'_>, size: usize) -> Read<usize> {
        let rows = input.unsigned()?;
        self.charge(rows, size)?;
        usize::try_from(rows).map_err(|_| Fault::Malformed("a table has too many rows"))
    }
}

/// Appends the tables.
pub(super) fn write(out: &mut Writer, plan: &Plan, periods: &[usize]) {
    let mut numbers = Vec::new();
    let mut column = |out: &mut Writer, values: &mut dyn Iterator<Item = u32>| {
        numbers.clear();
        numbers.extend(values.map(i64::from));
        series::write(out, &numbers, periods);
    };
    out.len(plan.header.scratch_cells.len());
    column(out, &mut plan.header.scratch_cells.iter().copied());

    let overlaps = || plan.overlaps.iter();
    out.len(plan.overlaps.len());
    column(out, &mut overlaps().map(|o| o.rank.0));
    column(out, &mut overlaps().map(|o| o.left.0));
    column(out, &mut overlaps().map(|o| o.left_cell));
    column(out, &mut overlaps().map(|o| o.right.0));
    column(out, &mut overlaps().map(|o| o.right_cell));
    column(out, &mut overlaps().map(|o| o.cells));

    let channels = || plan.channels.iter();
    out.len(plan.channels.len());
    column(out, &mut channels().map(|c| c.writer.0));
    column(out, &mut channels().map(|c| c.readers.len() as u32));
    column(out, &mut channels().map(|c| u32::from(c.kind == ChannelKind::Counter)));
    out.len(plan.readers.len());
    column(out, &mut plan.readers.iter().map(|reader| reader.0));

    let promise = &plan.promise;
    let operands = || promise.lists.iter().flatten();
    out.len(promise.lists.len());
    column(out, &mut promise.lists.iter().map(|list| list.len() as u32));
    out.len(operands().count());
    column(out, &mut operands().map(|operand| operand.buffer.0));
    column(out, &mut operands().map(|operand| operand.rank.0));
    column(out, &mut operands().map(|operand| operand.block));

    let clauses = || promise.clauses.iter();
    out.len(promise.clauses.len());
    column(out, &mut clauses().map(|clause| clause.place.buffer.0));
    column(out, &mut clauses().map(|clause| clause.place.rank.0));
    column(out, &mut clauses().map(|clause| clause.place.block));
    column(out, &mut clauses().map(|clause| clause.list));

    let witnesses = || plan.witnesses.iter();
    out.len(plan.witnesses.len());
    column(out, &mut witnesses().map(|witness| witness.step.0));
    column(out, &mut witnesses().map(|witness| witness.owner.0));
    column(out, &mut witnesses().map(|witness| witness.ready.0));
    column(out, &mut witnesses().map(|witness| witness.done.0));
}

/// Reads the tables into a plan that has none.
pub(super) fn read(input: &mut Reader<'_>, plan: &mut Plan, budget: &mut Budget) -> Read<()> {
    let rows = budget.table(input, size_of::<u32>())?;
    plan.header.scratch_cells = series::read_small(input, rows)?;

    let rows = budget.table(input, size_of::<Overlap>() + 6 * size_of::<u32>())?;
    let [rank, left, left_cell, right, right_cell, cells] = columns(input, rows)?;
    plan.overlaps.extend((0..rows).map(|i| Overlap {
        rank: RankId(rank[i]),
        left: BufferId(left[i]),
        left_cell: left_cell[i],
        right: BufferId(right[i]),
        right_cell: right_cell[i],
        cells: cells[i],
    }));

    let rows = budget.table(input, size_of::<Channel>() + 3 * size_of::<u32>())?;
    let [writer, readers, kind] = columns(input, rows)?;
    let total = budget.table(input, size_of::<BlockId>())?;
    let mut next = 0u32;
    plan.channels.reserve_exact(rows);
    for i in 0..rows {
        let end = next.checked_add(readers[i]).filter(|&end| end as usize <= total);
        let end = end.ok_or(Fault::Malformed("channels have more readers than there are"))?;
        let kind = match kind[i] {
            0 => ChannelKind::Slots,
            1 => ChannelKind::Counter,
            _ => return Err(Fault::Malformed("a channel is of no known kind")),
        };
        plan.channels.push(Channel { writer: BlockId(writer[i]), readers: next..end, kind });
        next = end;
    }
    if next as usize != total {
        return Err(Fault::Malformed("channels have fewer readers than there are"));
    }
    plan.readers = series::read_small(input, total)?.into_iter().map(BlockId).collect();

    let rows = budget.table(input, size_of::<Vec<BlockRef>>() + size_of::<u32>())?;
    let [lengths] = columns(input, rows)?;
    // Each list is an allocation of its own, which is not for nothing.
    let total = budget.table(input, size_of::<BlockRef>() + 3 * size_of::<u32>())?;
    let [buffer, rank, block] = columns(input, total)?;
    if lengths.iter().map(|&length| u64::from(length)).sum::<u64>() != total as u64 {
        return Err(Fault::Malformed("operand lists are not as long as they say"));
    }
    let mut next = 0;
    plan.promise.lists.extend(lengths.into_iter().map(|length| {
        let range = next..next + length as usize;
        next = range.end;
        range
            .map(|i| BlockRef { buffer: BufferId(buffer[i]), rank: RankId(rank[i]), block: block[i] })
            .collect()
    }));

    let rows = budget.table(input, size_of::<Clause>() + 4 * size_of::<u32>())?;
    let [buffer, rank, block, list] = columns(input, rows)?;
    plan.promise.clauses.extend((0..rows).map(|i| {
        let place = BlockRef { buffer: BufferId(buffer[i]), rank: RankId(rank[i]), block: block[i] };
        Clause { place, list: list[i] }
    }));

    let rows = budget.table(input, size_of::<Witness>() + 4 * size_of::<u32>())?;
    let [step, owner, ready, done] = columns(input, rows)?;
    plan.witnesses.extend((0..rows).map(|i| Witness {
        step: StepId(step[i]),
        owner: RankId(owner[i]),
        ready: StepId(ready[i]),
        done: StepId(done[i]),
    }));
    Ok(())
}

fn columns<const N: usize>(input: &mut Reader<'_>, rows: usize) -> Read<[Vec<u32>; N]> {
    let mut columns = [const { Vec::new() }; N];
    for column in &mut columns {
        *column = series::read_small(input, rows)?;
    }
    Ok(columns)
}
