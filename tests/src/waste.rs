//! What is in a plan that need not be: values stored only to be passed on, copies, sends, steps, counted over the plan
//! alone.
//!
//! In: a plan. Out: counts, and where each wasted value was stored and read. Nothing here knows how the plan was made.
//!
//! The one hard idea: one iteration is followed step by step, each step when what it takes has been sent and what it
//! waits for is over. Between two writes a cell holds one value; who stored it, who read it, and whether it is there in
//! the end where something is promised, say whether it had to be stored at all.

use std::collections::BTreeMap;
use std::fmt;

use plan::ids::{BlockId, BufferId, RankId, StepId};
use plan::plan::{ChannelKind, Operand, Plan, Role, Step};

/// How a value that need not have been stored was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// Never read.
    Unread,
    /// Read only by steps that do nothing but send it on.
    SentOn,
    /// Read only by steps that do nothing but send it on or store it elsewhere.
    CopiedOn,
    /// A message stored as it came, read by one step that combines it with other values.
    FoldedOnce,
}

/// A cell of a value that need not have been stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// Where.
    pub rank: RankId,
    /// In which buffer.
    pub buffer: BufferId,
    /// In which cell.
    pub cell: u32,
    /// Who stored it.
    pub by: StepId,
    /// Who read it.
    pub read_by: Option<StepId>,
    /// What became of it.
    pub used: Use,
}

/// Counts of one plan.
#[derive(Debug, Clone, Default)]
pub struct Count {
    /// The most steps of a rank.
    pub steps: usize,
    /// Cells copied from memory to memory and nowhere else.
    pub copies: u64,
    /// Cells sent to other ranks.
    pub sends: u64,
    /// Cells sent by steps that do nothing but send what this rank has made or received before.
    pub sends_apart: u64,
    /// Cells that were stored in vain.
    pub stored: Vec<Stored>,
    /// The most blocks of a rank.
    pub blocks: usize,
    /// Waits.
    pub waits: usize,
}

impl Count {
    /// How many cells were stored and used like this.
    pub fn of(&self, used: Use) -> usize {
        self.stored.iter().filter(|stored| stored.used == used).count()
    }
}

impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stored { rank, buffer, cell, by, read_by, used } = *self;
        write!(f, "rank {}: step {} stores cell {cell} of buffer {}, {used:?}", rank.0, by.0, buffer.0)?;
        read_by.map_or(Ok(()), |step| write!(f, " by step {}", step.0))
    }
}

/// Whether a step only sends one value from memory.
pub fn only_sends(plan: &Plan, step: &Step) -> bool {
    let channel = |o: &Operand| matches!(o, Operand::Channel(_));
    matches!(plan.src(step), [Operand::Local { .. }])
        && !plan.dst(step).is_empty()
        && plan.dst(step).iter().all(channel)
}

/// Whether a step only copies one value within the rank.
pub fn only_copies(plan: &Plan, step: &Step) -> bool {
    let local = |o: &Operand| matches!(o, Operand::Local { .. });
    matches!(plan.src(step), [Operand::Local { .. }])
        && !plan.dst(step).is_empty()
        && plan.dst(step).iter().all(local)
}

fn only_receives(plan: &Plan, step: &Step) -> bool {
    let local = |o: &Operand| matches!(o, Operand::Local { .. });
    matches!(plan.src(step), [Operand::Channel(_)]) && plan.dst(step).iter().all(local)
}

/// Steps of one iteration in an order in which they can run, with their blocks.
pub fn in_order(plan: &Plan) -> Vec<(BlockId, StepId)> {
    let mut next: Vec<u32> = plan.blocks.iter().map(|block| block.body.start).collect();
    let mut over = vec![false; plan.steps.len()];
    let mut sent = vec![0u64; plan.channels.len()];
    let mut taken: BTreeMap<(u32, usize), u64> = BTreeMap::new();
    let mut order = Vec::new();
    loop {
        let before = order.len();
        for (b, block) in plan.blocks.iter().enumerate() {
            while next[b] < block.body.end {
                let id = StepId(next[b]);
                let step = &plan.steps[id.index()];
                let width = u64::from(step.width);
                let channels = |operands: &[Operand]| -> Vec<u32> {
                    let channel = |o: &Operand| if let Operand::Channel(c) = o { Some(c.0) } else { None };
                    operands.iter().filter_map(channel).collect()
                };
                let gets = channels(plan.src(step));
                let came = |c: &u32| sent[*c as usize] >= taken.get(&(*c, b)).copied().unwrap_or(0) + width;
                let waited = |wait: &StepId| {
                    over[wait.index()] || !plan.blocks.iter().any(|k| k.body.contains(&wait.0))
                };
                if !gets.iter().all(came) || !plan.waits(step).iter().all(waited) {
                    break;
                }
                for c in gets {
                    *taken.entry((c, b)).or_default() += width;
                }
                for c in channels(plan.dst(step)) {
                    sent[c as usize] += width;
                }
                over[id.index()] = true;
                order.push((BlockId::new(b), id));
                next[b] += 1;
            }
        }
        if order.len() == before {
            return order;
        }
    }
}

struct Value {
    by: StepId,
    readers: Vec<StepId>,
}

/// Counts.
pub fn count(plan: &Plan) -> Count {
    let mut count = Count { waits: plan.waits.len(), ..Count::default() };
    let mut held: BTreeMap<(RankId, BufferId, u32), Value> = BTreeMap::new();
    let order = in_order(plan);
    let bodies: usize = plan.blocks.iter().map(|block| block.body.len()).sum();
    assert_eq!(order.len(), bodies, "the plan hangs");
    for &(block, id) in &order {
        let rank = plan.blocks[block.index()].rank;
        let step = &plan.steps[id.index()];
        let width = u64::from(step.width);
        let data = |o: &&Operand| matches!(o, Operand::Channel(c) if plan.channels[c.index()].kind == ChannelKind::Slots);
        count.sends += plan.dst(step).iter().filter(data).count() as u64 * width;
        count.copies += if only_copies(plan, step) { width } else { 0 };
        for operand in plan.src(step) {
            let Operand::Local { buffer, cell } = *operand else { continue };
            for i in 0..step.width {
                if let Some(value) = held.get_mut(&(rank, buffer, cell + i)) {
                    value.readers.push(id);
                    count.sends_apart += u64::from(only_sends(plan, step));
                }
            }
        }
        for operand in plan.dst(step) {
            let Operand::Local { buffer, cell } = *operand else { continue };
            for i in 0..step.width {
                let place = (rank, buffer, cell + i);
                if let Some(old) = held.insert(place, Value { by: id, readers: Vec::new() }) {
                    judge(plan, place, &old, &mut count);
                }
            }
        }
    }
    for (place, value) in &held {
        let promised = plan.promise.clauses.iter().any(|clause| {
            let there = (clause.place.rank, clause.place.buffer) == (place.0, place.1);
            there && clause.place.block == place.2 / plan.header.cells
        });
        debug_assert!(!promised || plan.buffers[place.1.index()].role == Role::Recv);
        if !promised {
            judge(plan, *place, value, &mut count);
        }
    }
    for rank in (0..plan.header.ranks).map(RankId) {
        let blocks = plan.blocks_of(rank);
        count.steps = count.steps.max(blocks.iter().map(|block| block.body.len()).sum());
        count.blocks = count.blocks.max(blocks.len());
    }
    count
}

fn judge(plan: &Plan, (rank, buffer, cell): (RankId, BufferId, u32), value: &Value, count: &mut Count) {
    let mut readers = value.readers.iter().map(|reader| &plan.steps[reader.index()]);
    let used = match value.readers[..] {
        [] => Use::Unread,
        _ if readers.clone().all(|step| only_sends(plan, step)) => Use::SentOn,
        _ if readers.all(|step| only_sends(plan, step) || only_copies(plan, step)) => Use::CopiedOn,
        [_] if only_receives(plan, &plan.steps[value.by.index()]) => Use::FoldedOnce,
        _ => return,
    };
    let read_by = value.readers.first().copied();
    count.stored.push(Stored { rank, buffer, cell, by: value.by, read_by, used });
}
