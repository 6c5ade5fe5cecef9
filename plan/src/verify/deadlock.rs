//! V2: condition D (plan.md §4), and the least number of slots for which it holds.
//!
//! In: a plan that V0 and V1 have passed. Out: that with `header.k_min` slots per channel no execution can get
//! stuck, with one less some would; and the order in which one execution starts the steps, which V3, V4 and V5 follow.
//!
//! The graph of D has a micro-step for a node, and edges from program order, messages, credit and waits. It is a
//! marked graph: it has a cycle if and only if an execution that lets every block run as far as it can gets stuck,
//! whatever the order. So D is decided by running the plan with no data, k slots at a time, and nothing of the
//! graph is ever stored. All three sections run in one go: no edge leads to an earlier section, so a cycle lies
//! within one. Cost: every edge is looked at once; a blocked event remembers how far it got, and is looked
//! at again only when the one thing that it lacks has come.
//!
//! One run finds the least number of slots: it begins with one, and each time it is stuck it goes on with one more. Where it is
//! stuck with k slots it has come by k slots alone, so k are too few; and what k slots allow, k + 1 do.
//!
//! Another one, before it, has no bound on slots and finds the order: it lets each block run on for long, so that whoever
//! follows it finds in the cache what the block's last step has left there. Those who do so run beside the search for slots.

use std::ops::RangeInclusive;

use super::links::{EndId, Links, ends};
use super::violation::{Site, Violation};
use crate::display::plural;
use crate::ids::{BlockId, ChannelId, StepId};
use crate::plan::{ChannelKind, Operand, Plan};

/// What V2 finds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Stuck with any number of slots.
    #[error("{} in a circle, however many slots the channels have", wait(.circle.len()))]
    Deadlock {
        /// What each step of the circle waits for; the sites are the steps, in this order.
        circle: Vec<Lack>,
    },
    /// `header.k_min` is not the least number of slots.
    #[error("the header says that {stated} per channel is the least number of slots; it is {needed}")]
    SlotCount {
        /// What the header says.
        stated: u32,
        /// What is right.
        needed: u32,
        /// If `stated` is too low: the circle that it leads to; the sites are the steps, in this order.
        circle: Vec<Lack>,
    },
}

/// What a step that cannot start lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// A message on this channel.
    Message(ChannelId),
    /// A free slot of this channel.
    Slot(ChannelId),
    /// This step of another block to finish.
    Step(StepId),
}

impl Fault {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Fault::Deadlock { .. } => "plan::v2_deadlock",
            Fault::SlotCount { .. } => "plan::v2_slot_count",
        }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Fault::Deadlock { .. } => "let one step of the circle come earlier, e.g. send before you receive",
            Fault::SlotCount { .. } => "write the number that `least_slots` computes into the header",
        }
    }
}

/// The order in which an execution with as many slots as there are messages starts the steps: later rules may go through the
/// steps in this order, since every step comes after all that it depends on.
#[derive(Debug)]
pub(super) struct Order(pub(super) Vec<StepId>);

/// Is told the order while it grows, a stretch at a time. What it is told is the beginning of an order also if the plan turns
/// out to get stuck.
pub(super) type Tell<'a> = dyn FnMut(&[StepId]) + 'a;

/// Runs a plan with no bound on slots, and tells the order; or the plan is stuck with any number.
pub(super) fn order(plan: &Plan, links: &Links, tell: &mut Tell) -> Result<(), Vec<Violation>> {
    let mut record = Record { stretch: Vec::with_capacity(Record::STRETCH), tell };
    let ended = run(plan, links, UNBOUNDED..=UNBOUNDED, Some(&mut record));
    record.tell();
    ended.map_err(|stuck| deadlock(plan, &stuck)).map(|_| ())
}

/// V2: that `header.k_min` is right.
pub(super) fn check(plan: &Plan, links: &Links) -> Result<u32, Vec<Violation>> {
    let needed = least_slots(plan, links)?;
    if needed == plan.header.k_min { Ok(needed) } else { Err(not_least(plan, links, needed)) }
}

/// V2 where `header.k_min` only says how many slots are enough: how many are needed.
pub(super) fn check_enough(plan: &Plan, links: &Links) -> Result<u32, Vec<Violation>> {
    let needed = least_slots(plan, links)?;
    if needed <= plan.header.k_min { Ok(needed) } else { Err(not_least(plan, links, needed)) }
}

/// The part of the order that has not been told yet.
struct Record<'a, 'b> {
    stretch: Vec<StepId>,
    tell: &'a mut Tell<'b>,
}

impl Record<'_, '_> {
    /// Steps told at once.
    const STRETCH: usize = 4096;

    #[inline]
    fn add(&mut self, step: StepId) {
        if self.stretch.len() == Record::STRETCH {
            self.tell();
        }
        self.stretch.push(step);
    }

    fn tell(&mut self) {
        (self.tell)(&self.stretch);
        self.stretch.clear();
    }
}

/// What is wrong with a `header.k_min` that is not what is needed.
fn not_least(plan: &Plan, links: &Links, needed: u32) -> Vec<Violation> {
    let stated = plan.header.k_min;
    // The circle that too few lead to.
    let stuck = run(plan, links, stated..=stated, None).err().unwrap_or_default();
    let circle = stuck.iter().map(|&(_, lack)| lack).collect();
    let fault = Fault::SlotCount { stated, needed, circle };
    vec![Violation { fault: super::Fault::Deadlock(fault), sites: sites(plan, &stuck) }]
}

/// What is wrong with a plan that is stuck with any number of slots.
fn deadlock(plan: &Plan, stuck: &Circle) -> Vec<Violation> {
    let fault = Fault::Deadlock { circle: stuck.iter().map(|&(_, lack)| lack).collect() };
    vec![Violation { fault: super::Fault::Deadlock(fault), sites: sites(plan, stuck) }]
}

/// The least number of slots per channel with which the plan cannot get stuck, if there is one.
pub(super) fn least_slots(plan: &Plan, links: &Links) -> Result<u32, Vec<Violation>> {
    run(plan, links, 1..=UNBOUNDED, None).map_err(|stuck| deadlock(plan, &stuck))
}

/// Steps that wait for each other in a circle: each for the next, the last for the first.
type Circle = Vec<(StepId, Lack)>;

const NOBODY: u32 = u32::MAX;
/// More slots than a channel has messages.
const UNBOUNDED: u32 = u32::MAX;

/// One execution without data.
struct Run<'a> {
    plan: &'a Plan,
    links: &'a Links,
    slots: u32,
    blocks: Vec<Progress>,
    /// Messages sent on each channel.
    sent: Vec<u32>,
    /// Messages received at each end.
    received: Vec<u32>,
    /// By step: the first block that is blocked until it finishes (others follow through `Progress::next`). Empty if
    /// the plan has no waits.
    waiting: Vec<u32>,
    ready: Vec<u32>,
    /// Blocks that have lacked a slot since there was one more; not all still do.
    short: Vec<u32>,
}

/// How far a block has come.
#[derive(Clone, Copy)]
struct Progress {
    step: u32,
    /// Micro-steps of it that have happened.
    micro: u32,
    /// Which needs of the next micro-step are known to be met.
    met: Met,
    lack: Option<Need>,
    /// The next block blocked on the same step.
    next: u32,
    /// Whether it is in `Run::short`.
    short: bool,
}

/// How many needs are met: waits and receives; channels sent on; ends of the next of those.
#[derive(Clone, Copy, Default)]
struct Met {
    first: u32,
    puts: u32,
    ends: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Message(EndId),
    Slot(EndId),
    Step(StepId),
}

/// Runs the plan with so many slots, or as few more as it takes: how many, or the circle in which it is stuck with the most.
fn run(
    plan: &Plan,
    links: &Links,
    slots: RangeInclusive<u32>,
    mut record: Option<&mut Record>,
) -> Result<u32, Circle> {
    let start = |block: &crate::plan::Block| Progress {
        step: block.prologue.start,
        micro: 0,
        met: Met::default(),
        lack: None,
        next: NOBODY,
        short: false,
    };
    let mut run = Run {
        plan,
        links,
        slots: *slots.start(),
        blocks: plan.blocks.iter().map(start).collect(),
        sent: vec![0; plan.channels.len()],
        received: vec![0; plan.readers.len()],
        waiting: if plan.waits.is_empty() { Vec::new() } else { vec![NOBODY; plan.steps.len()] },
        ready: (0..plan.blocks.len() as u32).rev().collect(),
        short: Vec::new(),
    };
    loop {
        while let Some(block) = run.ready.pop() {
            run.advance(BlockId(block), &mut record);
        }
        if run.slots >= *slots.end() || !run.one_slot_more() {
            break;
        }
    }
    match (0..plan.blocks.len()).find(|&b| run.blocks[b].lack.is_some()) {
        None => Ok(run.slots),
        Some(first) => Err(run.circle(BlockId::new(first))),
    }
}

impl Run<'_> {
    /// Counts on one slot more if some block lacks one. Each that does then acts: what it needs besides has come.
    fn one_slot_more(&mut self) -> bool {
        for block in std::mem::take(&mut self.short) {
            self.blocks[block as usize].short = false;
            if matches!(self.blocks[block as usize].lack, Some(Need::Slot(_))) {
                self.wake(BlockId(block));
            }
        }
        self.slots += u32::from(!self.ready.is_empty());
        !self.ready.is_empty()
    }

    /// Lets a block act until it lacks something or has ended.
    fn advance(&mut self, block: BlockId, record: &mut Option<&mut Record>) {
        let end = self.plan.blocks[block.index()].epilogue.end;
        let mut at = self.blocks[block.index()];
        at.lack = None;
        while at.step < end {
            let id = StepId(at.step);
            let width = self.plan.steps[id.index()].width;
            if let Some(need) = self.unmet(id, &mut at) {
                if let Some(done) = self.race_ahead(block, &at, need) {
                    at.micro += done;
                    at.met = Met::default();
                } else {
                    at.lack = Some(need);
                    match need {
                        Need::Step(target) => {
                            at.next = std::mem::replace(&mut self.waiting[target.index()], block.0);
                        }
                        Need::Slot(_) if !at.short => {
                            at.short = true;
                            self.short.push(block.0);
                        }
                        Need::Slot(_) | Need::Message(_) => {}
                    }
                    break;
                }
            } else {
                if at.micro == 0
                    && let Some(record) = record
                {
                    record.add(id);
                }
                let count = match width - at.micro {
                    1 => 1,
                    left => left.min(self.possible(id, None)),
                };
                self.exchange(id, count);
                at.met = Met::default();
                at.micro += count;
            }
            if at.micro == width {
                (at.step, at.micro) = (at.step + 1, 0);
                // Before the wake: a block that waits must find the step finished.
                self.blocks[block.index()] = at;
                self.wake_waiting(id);
            }
        }
        self.blocks[block.index()] = at;
    }

    /// The first need of the next micro-step that is not met. Needs met stay met, so `at.met` says where to go on.
    #[inline]
    fn unmet(&self, id: StepId, at: &mut Progress) -> Option<Need> {
        let step = &self.plan.steps[id.index()];
        let waits = if at.micro == 0 { self.plan.waits(step) } else { &[] };
        while let Some(&target) = waits.get(at.met.first as usize) {
            let owner = self.links.block_of[target.index()];
            if self.blocks[owner.index()].step <= target.0 {
                return Some(Need::Step(target));
            }
            at.met.first += 1;
        }
        let src = self.plan.src(step);
        while let Some(operand) = src.get(at.met.first as usize - waits.len()) {
            if let Operand::Channel(channel) = *operand
                && let Some(end) = self.links.end(self.plan, channel, id)
                && self.sent[channel.index()] == self.received[end.index()]
            {
                return Some(Need::Message(end));
            }
            at.met.first += 1;
        }
        let dst = self.plan.dst(step);
        while let Some(operand) = dst.get(at.met.puts as usize) {
            if let Operand::Channel(id) = *operand {
                let channel = &self.plan.channels[id.index()];
                while channel.kind == ChannelKind::Slots
                    && channel.readers.start + at.met.ends < channel.readers.end
                {
                    let end = EndId(channel.readers.start + at.met.ends);
                    if self.sent[id.index()] - self.received[end.index()] >= self.slots {
                        return Some(Need::Slot(end));
                    }
                    at.met.ends += 1;
                }
            }
            (at.met.puts, at.met.ends) = (at.met.puts + 1, 0);
        }
        None
    }

    /// How many micro-steps of a step messages and slots are there for, as things stand; `but` for that end.
    fn possible(&self, id: StepId, but: Option<EndId>) -> u32 {
        let in_flight =
            |channel: ChannelId, end: EndId| self.sent[channel.index()] - self.received[end.index()];
        let others = |end: &EndId| Some(*end) != but;
        let gets = self.links.gets(self.plan, id).filter(others);
        let messages = gets.map(|end| in_flight(self.links.channel_of[end.index()], end));
        let puts = self.links.puts(self.plan, id);
        let slots = puts
            .filter(|c| self.plan.channels[c.index()].kind == ChannelKind::Slots)
            .flat_map(|c| ends(self.plan, c).filter(others).map(move |end| self.slots - in_flight(c, end)));
        messages.chain(slots).min().unwrap_or(u32::MAX)
    }

    /// Two blocks amid wide steps, one of which sends what the other receives, would take turns, so many slots at a
    /// time: does all the turns that nothing else stands in the way of in one go. How many micro-steps `block` has
    /// done by that, if any.
    fn race_ahead(&mut self, block: BlockId, at: &Progress, need: Need) -> Option<u32> {
        let (Need::Message(end) | Need::Slot(end)) = need else { return None };
        let channel = self.links.channel_of[end.index()];
        let (writer, reader) = (self.plan.channels[channel.index()].writer, self.plan.readers[end.index()]);
        let partner = if writer == block { reader } else { writer };
        let other = self.blocks[partner.index()];
        // Waits are behind those who are amid a step.
        if at.micro == 0 || other.micro == 0 || partner == block {
            return None;
        }
        let (of_writer, of_reader) = if writer == block { (*at, other) } else { (other, *at) };
        let (sends, receives) = (StepId(of_writer.step), StepId(of_reader.step));
        let is_put = self.links.puts(self.plan, sends).any(|c| c == channel);
        let is_got = self.links.gets(self.plan, receives).any(|e| e == end);
        // The same pair of V1: then both began at the same message, and are of one width.
        let sent = self.sent[channel.index()].checked_sub(of_writer.micro);
        let received = self.received[end.index()].checked_sub(of_reader.micro);
        if !is_put || !is_got || sent != received {
            return None;
        }
        let width = self.plan.steps[sends.index()].width;
        let up_to =
            |step: StepId, micro: u32| width.min(micro.saturating_add(self.possible(step, Some(end))));
        let (most_sent, most_received) = (up_to(sends, of_writer.micro), up_to(receives, of_reader.micro));
        let sent = most_sent.min(most_received.saturating_add(self.slots));
        let received = most_received.min(sent);
        let (sent, received) = (sent - of_writer.micro, received - of_reader.micro);
        let (own, others) = if writer == block { (sent, received) } else { (received, sent) };
        if own == 0 || others == 0 {
            return None;
        }
        self.exchange(sends, sent);
        self.exchange(receives, received);
        let progress = &mut self.blocks[partner.index()];
        (progress.micro, progress.met) = (progress.micro + others, Met::default());
        if progress.micro == width {
            let finished = StepId(progress.step);
            (progress.step, progress.micro) = (progress.step + 1, 0);
            self.wake_waiting(finished);
        }
        if self.blocks[partner.index()].lack.is_some() {
            self.wake(partner);
        }
        Some(own)
    }

    /// The messages of so many micro-steps; wakes those who lacked them.
    #[inline]
    fn exchange(&mut self, id: StepId, count: u32) {
        let (plan, links) = (self.plan, self.links);
        for end in links.gets(plan, id) {
            self.received[end.index()] += count;
            let channel = links.channel_of[end.index()];
            let writer = plan.channels[channel.index()].writer;
            if self.blocks[writer.index()].lack == Some(Need::Slot(end)) {
                self.wake(writer);
            }
        }
        for channel in links.puts(plan, id) {
            self.sent[channel.index()] += count;
            for end in ends(plan, channel) {
                debug_assert!(
                    self.sent[channel.index()] >= self.received[end.index()],
                    "received before sent"
                );
                let reader = plan.readers[end.index()];
                if self.blocks[reader.index()].lack == Some(Need::Message(end)) {
                    self.wake(reader);
                }
            }
        }
    }

    fn wake_waiting(&mut self, finished: StepId) {
        let Some(first) = self.waiting.get_mut(finished.index()) else { return };
        let mut next = std::mem::replace(first, NOBODY);
        while next != NOBODY {
            let block = BlockId(next);
            next = std::mem::replace(&mut self.blocks[block.index()].next, NOBODY);
            self.wake(block);
        }
    }

    fn wake(&mut self, block: BlockId) {
        self.blocks[block.index()].lack = None;
        self.ready.push(block.0);
    }

    /// Follows "lacks something of" from a stuck block until a block comes again.
    fn circle(&self, first: BlockId) -> Circle {
        let mut seen = vec![NOBODY; self.blocks.len()];
        let mut path: Circle = Vec::new();
        let mut block = first;
        loop {
            let known = std::mem::replace(&mut seen[block.index()], path.len() as u32);
            if known != NOBODY {
                return path.split_off(known as usize);
            }
            let at = self.blocks[block.index()];
            // A block that another one lacks something of has steps left, since channels are balanced (V1) and waits
            // name steps that exist (V0); nothing can act, so it lacks something itself.
            let Some(need) = at.lack else { return path };
            let channel = |end: EndId| self.links.channel_of[end.index()];
            let (lack, next) = match need {
                Need::Message(end) => {
                    (Lack::Message(channel(end)), self.plan.channels[channel(end).index()].writer)
                }
                Need::Slot(end) => (Lack::Slot(channel(end)), self.plan.readers[end.index()]),
                Need::Step(step) => (Lack::Step(step), self.links.block_of[step.index()]),
            };
            path.push((StepId(at.step), lack));
            block = next;
        }
    }
}

/// The steps of a circle, or of its beginning.
fn sites(plan: &Plan, circle: &[(StepId, Lack)]) -> Vec<Site> {
    const SHOWN: usize = 12;
    let label = |at: usize, lack: Lack| {
        let lacks = match lack {
            Lack::Message(channel) => format!("waits for a message on channel {}", channel.0),
            Lack::Slot(channel) => format!("waits for a free slot of channel {}", channel.0),
            Lack::Step(step) => {
                let Site { block, index, .. } = Site::of(plan, step, "");
                format!("waits for block {block}, step {index}")
            }
        };
        let more = circle.len().saturating_sub(SHOWN);
        match more > 0 && at + 1 == SHOWN {
            true => format!("{lacks} ({} of the circle)", plural(more as u64, "more step", "more steps")),
            false => lacks,
        }
    };
    circle
        .iter()
        .take(SHOWN)
        .enumerate()
        .map(|(at, &(step, lack))| Site::of(plan, step, label(at, lack)))
        .collect()
}

fn wait(steps: usize) -> String {
    match steps {
        1 => "a step waits for its own block".to_string(),
        _ => format!("{steps} steps wait for each other"),
    }
}
