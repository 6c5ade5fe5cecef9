//! Calls of one kind, timed.
//!
//! In: a communicator, a call. Out: seconds of a call, of the slowest rank; the same at all ranks. Inputs stay as they are, except
//! that ranks write one element anew before each call; a root goes round.

use std::time::{Duration, Instant};

use plan::dtype::{Dtype, Op};
use plan::ids::RankId;
use runtime::comm::Communicator;
use runtime::error::Error;
use runtime::small::{Buffers, Call, Collective, MOST};

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell {
    pub(crate) call: Call,
    /// Of the larger buffer, as asked for.
    pub(crate) bytes: u64,
}

/// A rank's buffers.
#[derive(Debug)]
struct Memory {
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Cell {
    pub(crate) fn new(call: Call, bytes: u64) -> Cell {
        Cell { call, bytes }
    }

    /// The call whose root is this one, if there is a root.
    fn from(&self, root: u32) -> Call {
        let root = RankId(root);
        let collective = match self.call.collective {
            Collective::Broadcast { .. } => Collective::Broadcast { root },
            Collective::Reduce { .. } => Collective::Reduce { root },
            Collective::Gather { .. } => Collective::Gather { root },
            Collective::Scatter { .. } => Collective::Scatter { root },
            whole => whole,
        };
        Call { collective, ..self.call }
    }
}

/// How many calls take so long.
pub(crate) fn calls(comm: &mut Communicator, cell: &Cell, time: Duration) -> Result<u64, Error> {
    let mut calls = 16;
    loop {
        let took = batch(comm, cell, calls)? * calls as f64;
        if took > time.as_secs_f64() / 4.0 {
            return Ok(((calls as f64 * time.as_secs_f64() / took) as u64).max(1));
        }
        calls *= 2;
    }
}

/// Seconds of a call, of so many.
pub(crate) fn batch(comm: &mut Communicator, cell: &Cell, calls: u64) -> Result<f64, Error> {
    let mut memory = Memory { input: vec![1; MOST], output: vec![0; MOST] };
    let (world, rank) = (comm.world(), comm.rank().0);
    comm.small(&Call::BARRIER, &mut Buffers::none())?;
    let began = Instant::now();
    let mut root = 0;
    for turn in 0..calls {
        let call = cell.from(root);
        root = if root + 1 == world { 0 } else { root + 1 };
        memory.input[0] = turn as u8;
        one(comm, &call, rank, &mut memory)?;
    }
    slowest(comm, began.elapsed().as_secs_f64() / calls as f64)
}

#[inline]
fn one(comm: &mut Communicator, call: &Call, rank: u32, memory: &mut Memory) -> Result<(), Error> {
    let (input, output) = call.bytes(rank, comm.world());
    if matches!(call.collective, Collective::Broadcast { .. }) {
        // MPI broadcasts in one buffer.
        return comm.small(call, &mut Buffers::in_place(&mut memory.input[..output]));
    }
    comm.small(call, &mut Buffers::apart(&memory.input[..input], &mut memory.output[..output]))
}

/// So many calls in a row: time in ten parts, memory at the end of the first and of the last.
pub(crate) fn soak(comm: &mut Communicator, cell: &Cell, calls: u64) -> Result<(), Error> {
    let (mut times, mut memory) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        times.push(batch(comm, cell, calls / 10)? * 1e6);
        memory.push(resident());
    }
    if comm.rank().0 == 0 {
        let (name, ranks, bytes) = (cell.call.collective.name(), comm.world(), cell.bytes);
        let list = times.iter().map(|time| format!("{time:.3}")).collect::<Vec<_>>().join(" ");
        println!("{name:>13} {ranks:>3} ranks {bytes:>5} B, {calls} calls, us in tenths: {list}");
        println!("{:>13} resident KiB: {} to {}", "", memory[0], memory[9]);
    }
    Ok(())
}

/// The most of what all ranks say.
fn slowest(comm: &mut Communicator, mine: f64) -> Result<f64, Error> {
    let mut most = mine.to_le_bytes();
    let call = Call { collective: Collective::Allreduce, elements: 1, dtype: Dtype::F64, op: Op::Max };
    comm.small(&call, &mut Buffers::in_place(&mut most))?;
    Ok(f64::from_le_bytes(most))
}

/// KiB of this process that are in memory.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
