//! What a simulation needs of a plan, worked out once for all calls.
//!
//! In: a verified plan. Out: [`Program`]: beside each operand which end of a channel it is, the length class of each
//! micro-step, which steps are waited for and by whom. [`Lengths`]: what that is in bytes for one call. Flat arrays, since
//! a simulation looks into them for every event.

use plan::dtype::Dtype;
use plan::ids::StepId;
use plan::layout::{self, MIN_SLOT_BYTES};
use plan::plan::{ChannelKind, Operand, Section};
use plan::verify::VerifiedPlan;
use rustc_hash::FxHashSet;

/// No class, no end, nobody.
pub(super) const NONE: u32 = u32::MAX;

/// A plan made ready for simulations.
#[derive(Debug)]
pub struct Program<'a> {
    pub(super) plan: &'a VerifiedPlan,
    /// Beside `plan.operands`.
    pub(super) operands: Vec<End>,
    /// Of each channel: whether its messages are tokens.
    pub(super) token: Vec<bool>,
    /// Of each reader (of `plan.readers`): its channel.
    pub(super) reader_channel: Vec<u32>,
    /// The first class of each step, in `classes`.
    pub(super) first: Vec<u32>,
    /// The length class of each micro-step.
    pub(super) classes: Vec<u32>,
    /// Of each step: whether it must happen cell by cell, since it carries tokens.
    pub(super) single: Vec<bool>,
    /// Of each step: its number among those that are waited for, or none.
    pub(super) waited: Vec<u32>,
    /// Those that wait, by number: a range of `waiters`.
    pub(super) waiters_of: Vec<u32>,
    /// Blocks that have a step that waits.
    pub(super) waiters: Vec<u32>,
    /// Of each step waited for: its section.
    pub(super) waited_section: Vec<Section>,
    /// The block of each step.
    pub(super) block: Vec<u32>,
    /// The most messages of one channel in an iteration.
    pub(super) messages: u64,
    /// Micro-steps of an iteration of all blocks, of one copy.
    pub(super) micro_steps: u64,
}

/// What an operand is to the block that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// A message taken: a reader of `plan.readers`.
    Take(u32),
    /// A message sent.
    Put(u32),
    /// A place of the rank.
    Place,
    /// A place of another rank.
    Peer(u32),
}

impl<'a> Program<'a> {
    /// Prepares a plan.
    pub fn new(plan: &'a VerifiedPlan) -> Program<'a> {
        let steps = plan.steps.len();
        let token: Vec<bool> = plan.channels.iter().map(|c| c.kind == ChannelKind::Counter).collect();
        let mut program = Program {
            plan,
            operands: vec![End::Place; plan.operands.len()],
            reader_channel: vec![NONE; plan.readers.len()],
            first: Vec::with_capacity(steps),
            classes: Vec::with_capacity(steps),
            single: vec![false; steps],
            waited: vec![NONE; steps],
            waiters_of: Vec::new(),
            waiters: Vec::new(),
            waited_section: Vec::new(),
            block: vec![0; steps],
            messages: 1,
            micro_steps: 0,
            token,
        };
        for (c, channel) in plan.channels.iter().enumerate() {
            program.reader_channel[channel.readers.start as usize..channel.readers.end as usize]
                .fill(c as u32);
        }
        for (s, step) in plan.steps.iter().enumerate() {
            program.first.push(program.classes.len() as u32);
            let class = |micro| plan.symbolic().class(StepId::new(s), micro).unwrap_or(NONE);
            program.classes.extend((0..step.width).map(class));
        }
        program.walk();
        program.find_waits();
        program
    }

    /// The plan.
    pub fn plan(&self) -> &'a VerifiedPlan {
        self.plan
    }

    /// Beside each operand: whether its place has been touched before in an iteration, so that a cache may hold it; and how
    /// many places there are.
    pub(super) fn touched(&self) -> (Vec<bool>, u64) {
        let plan = self.plan;
        let mut again = vec![false; plan.operands.len()];
        let mut known: FxHashSet<(u32, u32, u32)> = FxHashSet::default();
        for block in &plan.blocks {
            for (_, step) in plan.steps(&block.body) {
                let all = usize::from(step.sources) + usize::from(step.destinations);
                let own = step.operands as usize..step.operands as usize + all;
                for (&operand, again) in plan.operands[own.clone()].iter().zip(&mut again[own]) {
                    let (rank, buffer, cell) = match operand {
                        Operand::Channel(_) => continue,
                        Operand::Local { buffer, cell } => (block.rank, buffer, cell),
                        Operand::Peer { rank, buffer, cell } => (rank, buffer, cell),
                    };
                    let new = (cell..cell + step.width).filter(|&c| known.insert((rank.0, buffer.0, c)));
                    *again = new.count() == 0;
                }
            }
        }
        (again, known.len() as u64)
    }

    fn walk(&mut self) {
        let plan = self.plan;
        let mut sent = vec![0u64; plan.channels.len()];
        for (b, block) in plan.blocks.iter().enumerate() {
            for section in Section::ALL {
                for (id, step) in plan.steps(&block.section(section)) {
                    self.block[id.index()] = b as u32;
                    if section == Section::Body {
                        self.micro_steps += u64::from(step.width);
                    }
                    let first = step.operands as usize;
                    for (i, &operand) in plan.src(step).iter().enumerate() {
                        self.operands[first + i] = match operand {
                            Operand::Channel(channel) => {
                                self.single[id.index()] |= self.token[channel.index()];
                                let channel = &plan.channels[channel.index()];
                                let mut readers = channel.readers.clone();
                                let own = readers.find(|&r| plan.readers[r as usize].index() == b);
                                End::Take(own.unwrap_or(channel.readers.start))
                            }
                            Operand::Local { .. } => End::Place,
                            Operand::Peer { rank, .. } => End::Peer(rank.0),
                        };
                    }
                    for (i, &operand) in plan.dst(step).iter().enumerate() {
                        self.operands[first + usize::from(step.sources) + i] = match operand {
                            Operand::Channel(channel) => {
                                self.single[id.index()] |= self.token[channel.index()];
                                sent[channel.index()] += u64::from(step.width);
                                End::Put(channel.0)
                            }
                            Operand::Local { .. } => End::Place,
                            Operand::Peer { rank, .. } => End::Peer(rank.0),
                        };
                    }
                }
            }
        }
        self.messages = sent.into_iter().max().unwrap_or(0).max(1);
    }

    fn find_waits(&mut self) {
        let plan = self.plan;
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for (s, step) in plan.steps.iter().enumerate() {
            pairs.extend(plan.waits(step).iter().map(|wait| (wait.0, self.block[s])));
        }
        pairs.sort_unstable();
        pairs.dedup();
        for &(step, block) in &pairs {
            if self.waited[step as usize] == NONE {
                self.waited[step as usize] = self.waiters_of.len() as u32;
                self.waiters_of.push(self.waiters.len() as u32);
                let of = &plan.blocks[self.block[step as usize] as usize];
                let section = Section::ALL.into_iter().find(|&section| of.section(section).contains(&step));
                self.waited_section.push(section.unwrap_or(Section::Body));
            }
            self.waiters.push(block);
        }
        self.waiters_of.push(self.waiters.len() as u32);
    }
}

/// How long cells are in one call.
#[derive(Debug)]
pub(super) struct Lengths {
    /// Elements of each cell of each copy, by copy and class.
    cells: Vec<u64>,
    classes: usize,
    /// Elements of a slice, and of a slot.
    slice: u64,
    slot: u64,
    /// Bytes of an element.
    size: u64,
    /// T.
    pub(super) slices: u64,
    /// So many iterations find every cell's slice full.
    pub(super) full: u64,
}

impl Lengths {
    /// For blocks of `count` elements, cut for `copies` copies, and slots of `slot_bytes`.
    pub(super) fn new(cells: u32, copies: u32, count: u64, dtype: Dtype, slot_bytes: u32) -> Lengths {
        let size = u64::from(dtype.size());
        let align = layout::cut_align(count, dtype);
        let slot = u64::from(slot_bytes.max(MIN_SLOT_BYTES)) / size;
        let slice = slot - slot % u64::from(align);
        let parts = u64::from(cells) * u64::from(copies);
        let mut lengths = vec![0; parts as usize];
        let mut start = 0;
        for part in 0..parts {
            let end = layout::cut(part + 1, parts, count, align);
            let (class, copy) = (part / u64::from(copies), part % u64::from(copies));
            lengths[(copy * u64::from(cells) + class) as usize] = end - start;
            start = end;
        }
        let most = lengths.iter().copied().max().unwrap_or(0);
        let full = lengths.iter().map(|length| length / slice).min().unwrap_or(0);
        let slices = most.div_ceil(slice).max(1);
        Lengths { cells: lengths, classes: cells as usize, slice, slot, size, slices, full }
    }

    /// Elements that iteration `t` handles of a cell; 0 for what has no class.
    #[inline]
    fn elements(&self, copy: usize, class: u32, t: u64) -> u64 {
        if class == NONE {
            return 0;
        }
        let cell = self.cells[copy * self.classes + class as usize];
        cell.saturating_sub(t.saturating_mul(self.slice)).min(self.slice)
    }

    /// The micro-steps that travel together from `micro` on, as many as fit a slot, and their bytes.
    #[inline]
    pub(super) fn group(&self, copy: usize, classes: &[u32], micro: u32, single: bool, t: u64) -> (u32, u64) {
        let mut end = micro as usize;
        let mut total = 0;
        while let Some(&class) = classes.get(end) {
            let length = self.elements(copy, class, t);
            if end > micro as usize && (single || total + length > self.slot) {
                break;
            }
            total += length;
            end += 1;
        }
        (end as u32, total * self.size)
    }
}
