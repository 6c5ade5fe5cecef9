//! One rank of a cell, able to call: all of the runtime that the measurement needs.
//!
//! In: a cell, its plans, what ranks share. Out: [`Caller`], which makes [`Calls`].
//!
//! A rooted collective has a plan for each root. They share one hall, so buffers serve all of them.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use plan::ids::{BufferId, RankId};
use plan::plan::{Plan, Role};
use runtime::cpus;
use runtime::error::Error;
use runtime::exec::buffers::Buffers;
use runtime::exec::{Patience, Rank, Shape};
use runtime::memory::hall::{self, Hall};
use runtime::memory::registered::{Registered, taken};
use runtime::memory::segment::Segment;
use runtime::wait::Policy;

use crate::cell::{Cell, Collective};
use crate::choice::{self, Planned};
use crate::measure::Calls;
use crate::space::{Plain, Space};

/// For how long nothing may move.
const DEADLINE: Duration = Duration::from_secs(30);

/// What the ranks share, made before they are started.
#[derive(Debug)]
pub(crate) struct Shared {
    hall: Arc<Hall>,
    /// For each root.
    segments: Vec<Segment>,
    registered: bool,
}

/// A rank.
#[derive(Debug)]
pub(crate) struct Caller<'a> {
    shape: Shape,
    /// For each root.
    turns: Vec<Turn<'a>>,
    /// None where input and output are one.
    input: Option<Space>,
    output: Space,
}

#[derive(Debug)]
struct Turn<'a> {
    plan: &'a Plan,
    rank: Rank<'a>,
    /// Which parts of the two buffers are which of the plan's.
    input: Vec<(BufferId, Range<usize>)>,
    output: Vec<(BufferId, Range<usize>)>,
}

impl Shared {
    /// For all ranks of a cell.
    pub(crate) fn new(cell: &Cell, plans: &[Planned], registered: bool) -> Result<Shared, String> {
        let plain = |error: Error| error.to_string();
        let separate = if cell.collective == Collective::Broadcast { 0 } else { cell.input };
        let bytes = if registered { taken(separate as u64 * 4) + taken(cell.output as u64 * 4) } else { 0 };
        let shape = hall::Shape::new(cell.ranks, |_| bytes).map_err(plain)?;
        let hall = Arc::new(Hall::create(shape).map_err(plain)?.0);
        let segment = |planned: &Planned| {
            let shape = planned.geometry.segment(&planned.plan).map_err(plain)?;
            Ok::<_, String>(Segment::create_in(Arc::clone(&hall), shape).map_err(plain)?.0)
        };
        let segments = plans.iter().map(segment).collect::<Result<_, _>>()?;
        Ok(Shared { hall, segments, registered })
    }

    /// Tells the other ranks why this one ends.
    pub(crate) fn abort(&self, error: &Error) {
        self.hall.board().abort(error);
    }

    fn space(&self, rank: u32, count: usize) -> Result<Space, Error> {
        if self.registered {
            return Ok(Space::Registered(Registered::new(&self.hall, RankId(rank), count as u64 * 4)?));
        }
        let plain = Plain::new(count);
        Ok(Space::Plain(plain.map_err(|why| Error::new(runtime::error::Kind::Resource, why))?))
    }
}

impl<'a> Caller<'a> {
    /// Connects a rank.
    pub(crate) fn new(
        cell: &Cell,
        plans: &'a [Planned],
        shared: &'a Shared,
        rank: u32,
    ) -> Result<Caller<'a>, Error> {
        let shape = choice::shape(cell);
        let input = if shape.in_place { None } else { Some(shared.space(rank, cell.input)?) };
        let output = shared.space(rank, cell.output)?;
        let policy = Policy::of(cell.ranks as usize, cpus::allowed());
        let patience = Patience { policy, stalled: DEADLINE, late: DEADLINE };
        let turns = plans.iter().zip(&shared.segments).map(|(planned, segment)| {
            let plan: &Plan = &planned.plan;
            let of = |role: Role, bytes: usize| {
                let all = plan.buffers.iter().enumerate();
                let found = all.filter(move |(_, b)| b.role == role && b.at.holds(RankId(rank)));
                found.map(|(b, _)| (BufferId::new(b), 0..bytes)).collect::<Vec<_>>()
            };
            let slot_bytes = planned.geometry.slot_bytes;
            let connected = Rank::connect(&planned.plan, segment, slot_bytes, RankId(rank), patience)?;
            let (mut input, mut output) = (of(Role::Send, cell.input * 4), of(Role::Recv, cell.output * 4));
            if shape.in_place {
                output.append(&mut input);
            }
            Ok(Turn { plan, rank: connected, input, output })
        });
        Ok(Caller { shape, turns: turns.collect::<Result<_, Error>>()?, input, output })
    }
}

impl Calls for Caller<'_> {
    fn call(&mut self, root: usize) -> Result<(), Error> {
        let Turn { plan, rank, input, output } = &mut self.turns[root];
        let mut buffers = lent(Buffers::new(plan), &mut self.output, output)?;
        if let Some(space) = &mut self.input {
            buffers = lent(buffers, space, input)?;
        }
        rank.call(self.shape, &mut buffers)
    }

    fn barrier(&mut self) -> Result<(), Error> {
        self.turns[0].rank.barrier()
    }

    fn input(&mut self) -> &mut [f32] {
        self.input.as_mut().unwrap_or(&mut self.output).floats()
    }

    fn output(&mut self) -> &mut [f32] {
        self.output.floats()
    }
}

/// With the parts of a buffer that are the plan's.
fn lent<'b>(
    buffers: Buffers<'b>,
    space: &'b mut Space,
    parts: &[(BufferId, Range<usize>)],
) -> Result<Buffers<'b>, Error> {
    match space {
        Space::Plain(plain) => buffers.same(plain.bytes(), parts),
        Space::Registered(piece) => buffers.registered(piece, parts),
    }
}
