//! Which messages need not be sent.
//!
//! In: a plan of messages. Out: [`Found`]: for each operand of a step that is a message's end, what stands in its place.

use plan::ids::{BufferId, RankId, StepId};
use plan::plan::{Block, ChannelKind, Operand, Plan, Role, Step};

use crate::options::Reach;

/// The messages that go.
pub(super) struct Found {
    /// By operand of the plan.
    pub(super) ends: Vec<End>,
    /// Memory that stands for the sender's end of a message with several readers.
    spread: Vec<Operand>,
    any: bool,
}

/// What becomes of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It stays.
    Stays,
    /// It goes, and nothing stands in its place.
    Goes,
    /// Memory of another rank stands in its place.
    Becomes(Operand),
    /// Memory of several: so many of `spread`, from the first on.
    Spreads(u32, u32),
}

impl Found {
    pub(super) fn is_empty(&self) -> bool {
        !self.any
    }

    /// The memory that stands for an operand.
    pub(super) fn memory(&self, at: usize) -> &[Operand] {
        match &self.ends[at] {
            End::Stays | End::Goes => &[],
            End::Becomes(operand) => std::slice::from_ref(operand),
            &End::Spreads(first, count) => &self.spread[first as usize..(first + count) as usize],
        }
    }
}

/// Finds the messages that may go; `apart`: send and receive memory may be taken to be apart.
pub(super) fn find(plan: &Plan, apart: bool, reach: Reach) -> Found {
    let mut found = Found { ends: vec![End::Stays; plan.operands.len()], spread: Vec::new(), any: false };
    let places = Places::new(plan, apart);
    let touched = Touched::new(plan, &places);
    let [sent, taken] = ends(plan);
    // By step: how many destinations it has been given.
    let mut more = vec![0; plan.steps.len()];
    for (c, channel) in plan.channels.iter().enumerate() {
        if channel.kind == ChannelKind::Counter {
            continue;
        }
        let from = plan.blocks[channel.writer.index()].rank;
        let readers = plan.readers(channel);
        // Of each reader, who takes what, in order.
        let takes: Vec<&[(StepId, usize)]> =
            readers.iter().map(|reader| taken.within(c, &plan.blocks[reader.index()])).collect();
        for (number, &send) in sent.of(c).iter().enumerate() {
            let sender = &plan.steps[send.0.index()];
            let takes = || takes.iter().map(|of_reader| of_reader[number]);
            let lies = entry(plan, sender)
                .filter(|&(buffer, cell)| touched.never_written(&places, (from, buffer, cell), sender.width));
            // Pushed, if all its readers store it where that is right.
            if lies.is_none() || reach == Reach::Push {
                let first = found.spread.len();
                for (reader, take) in readers.iter().zip(takes()) {
                    let (rank, step) = (plan.blocks[reader.index()].rank, &plan.steps[take.0.index()]);
                    if let Some((buffer, cell)) = stored(plan, step)
                        && touched.once(&places, (rank, buffer, cell), step.width)
                    {
                        found.spread.push(Operand::Peer { rank, buffer, cell });
                    }
                }
                let grown = &mut more[send.0.index()];
                let wide = usize::from(sender.destinations) + *grown + readers.len() > usize::from(u16::MAX);
                if found.spread.len() - first == readers.len() && !wide {
                    *grown += readers.len();
                    found.ends[send.1] = End::Spreads(first as u32, readers.len() as u32);
                    takes().for_each(|take| found.ends[take.1] = End::Goes);
                    found.any = true;
                    continue;
                }
                found.spread.truncate(first);
            }
            if let Some((buffer, cell)) = lies {
                found.ends[send.1] = End::Goes;
                for take in takes() {
                    found.ends[take.1] = End::Becomes(Operand::Peer { rank: from, buffer, cell });
                }
                found.any = true;
            }
        }
    }
    found
}

/// Where a step that only hands on an entry value has it from.
fn entry(plan: &Plan, step: &Step) -> Option<(BufferId, u32)> {
    match *plan.src(step) {
        [Operand::Local { buffer, cell }]
            if plan.buffers[buffer.index()].role == Role::Send && !step.post =>
        {
            Some((buffer, cell))
        }
        _ => None,
    }
}

/// Where a step that only stores a message stores it.
fn stored(plan: &Plan, step: &Step) -> Option<(BufferId, u32)> {
    match (plan.src(step), plan.dst(step)) {
        (&[Operand::Channel(_)], &[Operand::Local { buffer, cell }])
            if plan.buffers[buffer.index()].role == Role::Recv && !step.post =>
        {
            Some((buffer, cell))
        }
        _ => None,
    }
}

/// Steps that use an end of a channel, in order, each with its operand.
struct Ends {
    starts: Vec<usize>,
    steps: Vec<(StepId, usize)>,
}

impl Ends {
    fn of(&self, channel: usize) -> &[(StepId, usize)] {
        &self.steps[self.starts[channel]..self.starts[channel + 1]]
    }

    /// Those in one block.
    fn within(&self, channel: usize, block: &Block) -> &[(StepId, usize)] {
        let all = self.of(channel);
        let before = |end: u32| all.partition_point(|&(step, _)| step.0 < end);
        &all[before(block.prologue.start)..before(block.epilogue.end)]
    }
}

/// Who sends on each channel, and who takes from it.
fn ends(plan: &Plan) -> [Ends; 2] {
    [false, true].map(|taking| {
        let mut uses: Vec<(u32, StepId, usize)> = Vec::new();
        for (s, step) in plan.steps.iter().enumerate() {
            let first = step.operands as usize;
            let middle = first + step.sources as usize;
            let range = if taking { first..middle } else { middle..middle + step.destinations as usize };
            for at in range {
                if let Operand::Channel(channel) = plan.operands[at] {
                    uses.push((channel.0, StepId::new(s), at));
                }
            }
        }
        uses.sort_by_key(|&(channel, ..)| channel);
        let starts = (0..=plan.channels.len() as u32).map(|c| uses.partition_point(|&(ch, ..)| ch < c));
        Ends { starts: starts.collect(), steps: uses.into_iter().map(|(_, step, at)| (step, at)).collect() }
    })
}

/// Numbers for all places of the caller's memory; places that may be one have one number.
struct Places {
    /// By rank and buffer: the number of its first cell.
    first: Vec<usize>,
    buffers: usize,
    memory: Vec<u32>,
}

impl Places {
    fn new(plan: &Plan, apart: bool) -> Places {
        let (mut first, mut total) = (Vec::new(), 0);
        for rank in (0..plan.header.ranks).map(RankId) {
            for buffer in &plan.buffers {
                first.push(total);
                if buffer.at.holds(rank) {
                    total += buffer.blocks as usize * plan.header.cells as usize;
                }
            }
        }
        let mut places = Places { first, buffers: plan.buffers.len(), memory: (0..total as u32).collect() };
        if !apart {
            for o in &plan.overlaps {
                for i in 0..o.cells {
                    let left = places.of((o.rank, o.left, o.left_cell)) + i as usize;
                    let right = places.of((o.rank, o.right, o.right_cell)) + i as usize;
                    places.memory[left] = places.memory[right];
                }
            }
        }
        places
    }

    fn of(&self, (rank, buffer, cell): (RankId, BufferId, u32)) -> usize {
        self.first[rank.index() * self.buffers + buffer.index()] + cell as usize
    }

    fn memory(&self, place: (RankId, BufferId, u32), width: u32) -> impl Iterator<Item = usize> {
        let first = self.of(place);
        self.memory[first..first + width as usize].iter().map(|&memory| memory as usize)
    }
}

/// How often each place is touched, two standing for more.
struct Touched {
    reads: Vec<u8>,
    writes: Vec<u8>,
}

impl Touched {
    fn new(plan: &Plan, places: &Places) -> Touched {
        let none = || vec![0u8; places.memory.len()];
        let mut touched = Touched { reads: none(), writes: none() };
        for block in &plan.blocks {
            for (_, step) in plan.steps(&(block.prologue.start..block.epilogue.end)) {
                for (operands, write) in [(plan.src(step), false), (plan.dst(step), true)] {
                    for operand in operands {
                        let place = match *operand {
                            Operand::Channel(_) => continue,
                            Operand::Local { buffer, cell } => (block.rank, buffer, cell),
                            Operand::Peer { rank, buffer, cell } => (rank, buffer, cell),
                        };
                        if plan.buffers[place.1.index()].role == Role::Scratch {
                            continue;
                        }
                        for memory in places.memory(place, step.width) {
                            let count =
                                if write { &mut touched.writes[memory] } else { &mut touched.reads[memory] };
                            *count = count.saturating_add(1).min(2);
                        }
                    }
                }
            }
        }
        touched
    }

    /// Whether nothing ever writes there.
    fn never_written(&self, places: &Places, place: (RankId, BufferId, u32), width: u32) -> bool {
        places.memory(place, width).all(|memory| self.writes[memory] == 0)
    }

    /// Whether one write is all that ever happens there.
    fn once(&self, places: &Places, place: (RankId, BufferId, u32), width: u32) -> bool {
        places.memory(place, width).all(|memory| (self.reads[memory], self.writes[memory]) == (0, 1))
    }
}
