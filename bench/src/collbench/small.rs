//! One rank of a cell of at most 4 KiB, which needs no plan.
//!
//! In: a cell, a place to meet. Out: [`Small`], which makes [`Calls`] through a communicator, as a program does; its barrier is a
//! small call too.

use plan::dtype::{Dtype, Op};
use plan::ids::RankId;
use runtime::bootstrap::Settings;
use runtime::comm::{Communicator, Options};
use runtime::error::{Error, Kind};
use runtime::memory::registered::taken;
use runtime::small::{Buffers, Call, Collective};

use crate::cell::{self, Cell};
use crate::measure::Calls;
use crate::space::{Plain, Space};

/// What is said instead of a plan.
pub(crate) const SAID: &str = "small calls";

/// A rank.
#[derive(Debug)]
pub(crate) struct Small {
    cell: Cell,
    comm: Communicator,
    /// None where input and output are one.
    input: Option<Space>,
    output: Space,
}

/// The call of a cell from a root; none if it is too large.
pub(crate) fn call(cell: &Cell, root: usize) -> Option<Call> {
    let collective = match cell.collective {
        cell::Collective::Allreduce => Collective::Allreduce,
        cell::Collective::Allgather => Collective::Allgather,
        cell::Collective::Reducescatter => Collective::Reducescatter,
        cell::Collective::Alltoall => Collective::Alltoall,
        cell::Collective::Broadcast => Collective::Broadcast { root: RankId::new(root) },
    };
    let call = Call { collective, elements: cell.block as u64, dtype: Dtype::F32, op: Op::Sum };
    call.fits(cell.ranks).then_some(call)
}

impl Small {
    /// Joins the other ranks.
    pub(crate) fn new(cell: &Cell, registered: bool, settings: &Settings) -> Result<Small, Error> {
        let together = cell.collective == cell::Collective::Broadcast;
        let bytes = taken(cell.input as u64 * 4) + taken(cell.output as u64 * 4);
        let options = Options { registered: if registered { bytes } else { 0 }, ..Options::default() };
        let comm = Communicator::connect(settings, options)?;
        let space = |count: usize| {
            if registered {
                return Ok(Space::Registered(comm.alloc(count as u64 * 4)?));
            }
            Plain::new(count).map(Space::Plain).map_err(|why| Error::new(Kind::Resource, why))
        };
        let input = if together { None } else { Some(space(cell.input)?) };
        let output = space(cell.output)?;
        Ok(Small { cell: *cell, comm, input, output })
    }
}

impl Calls for Small {
    fn call(&mut self, root: usize) -> Result<(), Error> {
        let none = || Error::new(Kind::Internal, "the cell is too large");
        let call = call(&self.cell, root).ok_or_else(none)?;
        let output = self.output.bytes();
        match &mut self.input {
            None => self.comm.small(&call, &mut Buffers::in_place(output)),
            Some(input) => self.comm.small(&call, &mut Buffers::apart(input.bytes(), output)),
        }
    }

    fn barrier(&mut self) -> Result<(), Error> {
        self.comm.small(&Call::BARRIER, &mut Buffers::none())
    }

    fn input(&mut self) -> &mut [f32] {
        self.input.as_mut().unwrap_or(&mut self.output).floats()
    }

    fn output(&mut self) -> &mut [f32] {
        self.output.floats()
    }
}
