//! An independent meaning of plans: what a verified plan leaves, as hashes that tell orders and roundings apart.
//!
//! In: a plan that passes `verify`, and the trace that it is to be compared with, for the numbers of its entry cells. Out:
//! what each promised cell holds at the end, to be held against `executor::run` of the trace. It shares nothing with
//! `verify` or `validate`. As no order of a verified plan matters, each block goes on as long as it can; channels are
//! as long as they must be.

use std::collections::BTreeMap;

use plan::ids::{BufferId, RankId, StepId};
use plan::plan::{ChannelKind, Operand, Plan, Role, Section, Step};
use rcc_compiler::trace::Trace;

use crate::executor::{leaves, tree_hash};

/// Buffer, rank, cell.
type Cell = (BufferId, RankId, u32);

/// What the cells of each clause of the plan's promise hold at the end.
pub(crate) fn held(plan: &Plan, trace: &Trace, in_place: bool) -> Vec<Vec<Option<u64>>> {
    let mut run =
        Run { plan, in_place, memory: entry(plan, trace, in_place), sent: Vec::new(), taken: Vec::new() };
    run.sent = vec![Vec::new(); plan.channels.len()];
    run.taken = vec![0; plan.readers.len()];
    run.go();
    let cells = plan.header.cells;
    let clauses = plan.promise.clauses.iter();
    let held = clauses.map(|clause| {
        let place = clause.place;
        let of = |i| run.memory.get(&run.place((place.buffer, place.rank, place.block * cells + i))).copied();
        (0..cells).map(of).collect()
    });
    held.collect()
}

/// What lies in the send buffers: the numbers of the trace's cells of the same name.
fn entry(plan: &Plan, trace: &Trace, in_place: bool) -> BTreeMap<Cell, u64> {
    let mut memory = BTreeMap::new();
    for ((buffer, rank, cell), number) in leaves(trace) {
        let name = &trace.buffers[buffer as usize].name;
        let same =
            |b: &plan::plan::Buffer| b.role == Role::Send && b.name == *name && b.at.holds(RankId(rank));
        if let Some(b) = plan.buffers.iter().position(same) {
            memory.insert(lies(plan, in_place, (BufferId(b as u32), RankId(rank), cell)), number);
        }
    }
    memory
}

/// Where a cell lies: in place, the left side of an overlap on the right one.
fn lies(plan: &Plan, in_place: bool, (buffer, rank, cell): Cell) -> Cell {
    let over = plan.overlaps.iter().find(|o| {
        in_place && o.rank == rank && o.left == buffer && (o.left_cell..o.left_cell + o.cells).contains(&cell)
    });
    over.map_or((buffer, rank, cell), |o| (o.right, rank, o.right_cell + cell - o.left_cell))
}

struct Run<'a> {
    plan: &'a Plan,
    in_place: bool,
    memory: BTreeMap<Cell, u64>,
    /// All messages of each channel; tokens are zeros.
    sent: Vec<Vec<u64>>,
    /// How many each of `Plan::readers` has taken.
    taken: Vec<usize>,
}

impl Run<'_> {
    fn go(&mut self) {
        let plan = self.plan;
        // Of each block, its micro-steps in order.
        let micros = |b: usize| {
            let steps = Section::ALL.into_iter().flat_map(move |section| plan.blocks[b].section(section));
            steps
                .flat_map(|step| (0..plan.steps[step as usize].width).map(move |micro| (StepId(step), micro)))
        };
        let mut left: Vec<_> = (0..plan.blocks.len()).map(|b| micros(b).peekable()).collect();
        let mut ended = vec![false; plan.steps.len()];
        loop {
            let mut moved = false;
            for (b, left) in left.iter_mut().enumerate() {
                while let Some(&(id, micro)) = left.peek() {
                    let step = plan.steps[id.index()];
                    if plan.waits(&step).iter().any(|wait| !ended[wait.index()])
                        || !self.does(b, &step, micro)
                    {
                        break;
                    }
                    ended[id.index()] = micro + 1 == step.width;
                    left.next();
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        assert!(left.iter_mut().all(|left| left.peek().is_none()), "a verified plan gets stuck");
    }

    /// One micro-step, if all its messages are there.
    fn does(&mut self, block: usize, step: &Step, micro: u32) -> bool {
        let plan = self.plan;
        let rank = plan.blocks[block].rank;
        let reader = |channel: usize| {
            let mut readers = plan.channels[channel].readers.clone();
            readers.find(|&r| plan.readers[r as usize].index() == block).expect("a reader") as usize
        };
        let mut operands = Vec::new();
        for operand in plan.src(step) {
            match *operand {
                Operand::Channel(channel) => {
                    let Some(&message) = self.sent[channel.index()].get(self.taken[reader(channel.index())])
                    else {
                        return false;
                    };
                    if plan.channels[channel.index()].kind == ChannelKind::Slots {
                        operands.push(message);
                    }
                }
                Operand::Local { buffer, cell } => {
                    operands.push(self.read((buffer, rank, cell + micro)));
                }
                Operand::Peer { rank, buffer, cell } => {
                    operands.push(self.read((buffer, rank, cell + micro)));
                }
            }
        }
        for operand in plan.src(step) {
            if let Operand::Channel(channel) = operand {
                self.taken[reader(channel.index())] += 1;
            }
        }
        let last = operands.len().saturating_sub(1);
        let folded = operands.into_iter().enumerate();
        let folded = folded.reduce(|(_, a), (i, b)| (i, tree_hash(a, b, step.round_each || i == last)));
        let number = folded.map(|(_, number)| number);
        for operand in plan.dst(step) {
            let number = || number.expect("a value");
            match *operand {
                Operand::Channel(channel) => {
                    let token = plan.channels[channel.index()].kind == ChannelKind::Counter;
                    self.sent[channel.index()].push(if token { 0 } else { number() });
                }
                Operand::Local { buffer, cell } => self.write((buffer, rank, cell + micro), number()),
                Operand::Peer { rank, buffer, cell } => self.write((buffer, rank, cell + micro), number()),
            }
        }
        true
    }

    fn place(&self, cell: Cell) -> Cell {
        lies(self.plan, self.in_place, cell)
    }

    fn read(&self, cell: Cell) -> u64 {
        *self.memory.get(&self.place(cell)).expect("verified: what is read is defined")
    }

    fn write(&mut self, cell: Cell, number: u64) {
        let place = self.place(cell);
        self.memory.insert(place, number);
    }
}
