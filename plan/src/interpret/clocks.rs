//! A run that speaks for all orders: vector clocks find races, accesses outside a call, and early leavers.
//!
//! In: a plan and whether send and receive memory overlap. Out: findings, none for a right plan. One iteration of one
//! copy is followed with room in every channel. What orders two events is program order, a message or token (its
//! sending before its receipt) and a wait. A free slot orders nothing: how many there are is not the plan's to say, so
//! what only credit keeps apart is a race. `verify` (V3, V5) asks for more (a named witness); this is written apart
//! from it, and what it finds in a plan that `verify` accepts is an error in one of the two.
//!
//! The one hard idea: each block counts its events, and a clock says how many events of every block came before. An
//! access (block, time) came before an event exactly if the event's clock for that block has reached that time.

use std::collections::VecDeque;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::ids::{BlockId, BufferId, RankId, StepId};
use crate::interpret::control::Event;
use crate::interpret::{Fault, order};
use crate::plan::{Operand, Overlap, Plan, Role};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// Two accesses to a cell, one of them a write, that nothing orders.
    Race {
        /// Whose memory.
        rank: RankId,
        /// Which buffer (in place: the `Recv` buffer).
        buffer: BufferId,
        /// Which cell.
        cell: u32,
        /// One step.
        first: StepId,
        /// The other.
        second: StepId,
    },
    /// A step reaches into the memory of a rank that may not have entered the call yet.
    BeforeEntry {
        /// The step.
        step: StepId,
        /// Whose memory.
        owner: RankId,
    },
    /// A step reaches into the memory of a rank that may have left the call.
    AfterExit {
        /// The step.
        step: StepId,
        /// Whose memory.
        owner: RankId,
    },
    /// Synchronisation is promised, but `rank` may leave before `late` has entered.
    LeavesEarly {
        /// Who may leave.
        rank: RankId,
        /// Who may not have entered.
        late: RankId,
    },
}

/// Follows one iteration of `plan` and reports what is wrong, at most one race per cell.
pub fn findings(plan: &Plan, in_place: bool) -> Result<Vec<Finding>, Fault> {
    super::bounds::check(plan)?;
    let mut run = Clocks::new(plan, in_place);
    order::walk(plan, &mut |event| {
        run.event(event);
        Ok(())
    })?;
    run.at_exit();
    Ok(run.found)
}

type Clock = Rc<[u32]>;

#[derive(Debug, Clone, Copy)]
struct Access {
    block: BlockId,
    time: u32,
    step: StepId,
}

#[derive(Debug, Clone, Default)]
struct Cell {
    written: Option<Access>,
    /// Since then, the last one of each block.
    read: Vec<Access>,
    reported: bool,
}

struct Clocks<'a> {
    plan: &'a Plan,
    overlaps: Vec<Overlap>,
    clocks: Vec<Clock>,
    /// Sending clocks of the messages in each channel, and the number of the first.
    queues: Vec<(u64, VecDeque<Clock>)>,
    /// The clock at the end of each step that some step waits for.
    ended: FxHashMap<StepId, Option<Clock>>,
    cells: FxHashMap<(RankId, BufferId, u32), Cell>,
    /// Accesses to memory of other ranks.
    peers: Vec<(Access, RankId)>,
    found: Vec<Finding>,
}

impl<'a> Clocks<'a> {
    fn new(plan: &'a Plan, in_place: bool) -> Clocks<'a> {
        let zero: Clock = vec![0; plan.blocks.len()].into();
        Clocks {
            plan,
            overlaps: if in_place { plan.overlaps.clone() } else { Vec::new() },
            clocks: vec![zero; plan.blocks.len()],
            queues: vec![(0, VecDeque::new()); plan.channels.len()],
            ended: plan.waits.iter().map(|&step| (step, None)).collect(),
            cells: FxHashMap::default(),
            peers: Vec::new(),
            found: Vec::new(),
        }
    }

    fn event(&mut self, event: &Event) {
        let plan = self.plan;
        let step = &plan.steps[event.step.index()];
        let mut clock = self.clocks[event.block.index()].to_vec();
        clock[event.block.index()] += 1;
        if event.micros.start == 0 {
            for wait in plan.waits(step) {
                if let Some(Some(ended)) = self.ended.get(wait) {
                    join(&mut clock, ended);
                }
            }
        }
        for (&operand, received) in plan.src(step).iter().zip(&event.received) {
            if let (Operand::Channel(channel), &Some((number, retired))) = (operand, received) {
                let (first, queue) = &mut self.queues[channel.index()];
                join(&mut clock, &queue[(number - *first) as usize]);
                queue.drain(..(retired - *first) as usize);
                *first = retired;
            }
        }
        let access = Access { block: event.block, time: clock[event.block.index()], step: event.step };
        for &operand in plan.src(step) {
            self.touch(event, operand, access, &clock, false);
        }
        for &operand in plan.dst(step) {
            self.touch(event, operand, access, &clock, true);
        }
        let clock: Clock = clock.into();
        for &operand in plan.dst(step) {
            if let Operand::Channel(channel) = operand {
                self.queues[channel.index()].1.push_back(clock.clone());
            }
        }
        if event.micros.end == step.width {
            self.ended.entry(event.step).and_modify(|ended| *ended = Some(clock.clone()));
        }
        self.clocks[event.block.index()] = clock;
    }

    fn touch(&mut self, event: &Event, operand: Operand, access: Access, clock: &[u32], write: bool) {
        let own = self.plan.blocks[event.block.index()].rank;
        let (rank, buffer, cell) = match operand {
            Operand::Channel(_) => return,
            Operand::Local { buffer, cell } => (own, buffer, cell + event.micros.start),
            Operand::Peer { rank, buffer, cell } => (rank, buffer, cell + event.micros.start),
        };
        if rank != own {
            self.reach(access, rank, clock);
        }
        let (buffer, index) = self.resolve(rank, buffer, cell);
        let cell = self.cells.entry((rank, buffer, index)).or_default();
        let before = |other: &Access| clock[other.block.index()] >= other.time;
        let mut other = cell.written.filter(|w| !before(w));
        if write {
            other = other.or_else(|| cell.read.iter().copied().find(|r| !before(r)));
        }
        if let Some(other) = other.filter(|_| !cell.reported) {
            cell.reported = true;
            let (first, second) = (other.step, access.step);
            self.found.push(Finding::Race { rank, buffer, cell: index, first, second });
        }
        if write {
            cell.written = Some(access);
            cell.read.clear();
        } else {
            match cell.read.iter_mut().find(|r| r.block == access.block) {
                Some(last) => *last = access,
                None => cell.read.push(access),
            }
        }
    }

    /// An access to memory of another rank: has it entered?
    fn reach(&mut self, access: Access, owner: RankId, clock: &[u32]) {
        let entered = self.blocks_of(owner).any(|block| clock[block] > 0);
        if !entered {
            self.note(Finding::BeforeEntry { step: access.step, owner });
        }
        self.peers.push((access, owner));
    }

    fn at_exit(&mut self) {
        let ranks = self.plan.header.ranks;
        let exits: Vec<Vec<u32>> = (0..ranks)
            .map(|rank| {
                let mut exit = vec![0; self.clocks.len()];
                for block in self.blocks_of(RankId(rank)) {
                    join(&mut exit, &self.clocks[block]);
                }
                exit
            })
            .collect();
        for (access, owner) in std::mem::take(&mut self.peers) {
            if exits[owner.index()][access.block.index()] < access.time {
                self.note(Finding::AfterExit { step: access.step, owner });
            }
        }
        if !self.plan.promise.synchronised {
            return;
        }
        for (rank, exit) in exits.iter().enumerate() {
            for late in (0..ranks).map(RankId).filter(|late| late.index() != rank) {
                if !self.blocks_of(late).any(|block| exit[block] > 0) {
                    self.found.push(Finding::LeavesEarly { rank: RankId::new(rank), late });
                }
            }
        }
    }

    fn note(&mut self, finding: Finding) {
        if self.found.last() != Some(&finding) {
            self.found.push(finding);
        }
    }

    fn blocks_of(&self, rank: RankId) -> std::ops::Range<usize> {
        let start = self.plan.blocks.partition_point(|b| b.rank < rank);
        start..self.plan.blocks.partition_point(|b| b.rank <= rank)
    }

    fn resolve(&self, rank: RankId, buffer: BufferId, cell: u32) -> (BufferId, u32) {
        if self.plan.buffers[buffer.index()].role != Role::Send {
            return (buffer, cell);
        }
        let covers = |o: &&Overlap| {
            (o.rank, o.left) == (rank, buffer) && cell >= o.left_cell && cell - o.left_cell < o.cells
        };
        match self.overlaps.iter().find(covers) {
            Some(o) => (o.right, o.right_cell + (cell - o.left_cell)),
            None => (buffer, cell),
        }
    }
}

fn join(clock: &mut [u32], other: &[u32]) {
    for (mine, theirs) in clock.iter_mut().zip(other) {
        *mine = (*mine).max(*theirs);
    }
}
