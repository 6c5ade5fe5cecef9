//! Neighbours that do the same to neighbouring cells become one wide step.
//!
//! In: a plan. Out: the same plan with such steps as one. Both ends of every channel must agree, so what one end cannot join the
//! other end does not either. The cells stay the same, in the same order: nothing that was found for the steps changes, and executors may
//! send several small ones as one message (docs/plan.md §3).

use std::ops::Range;

use plan::ids::{BlockId, StepId};
use plan::plan::{ChannelKind, Operand, Plan, Step};

/// Joins what can be; `overlaid` if some form lays other places on each other than entry and exit of one.
pub(super) fn run(plan: &mut Plan, overlaid: bool) {
    let mut joined = find(plan, overlaid);
    if joined.contains(&true) {
        agree(plan, &mut joined);
        merge(plan, &joined);
    }
}

/// By step: whether the next of its block continues it.
fn find(plan: &Plan, overlaid: bool) -> Vec<bool> {
    let mut joined = vec![false; plan.steps.len()];
    let mut awaited = Vec::new();
    if !plan.waits.is_empty() {
        awaited = vec![false; plan.steps.len()];
        plan.waits.iter().for_each(|step| awaited[step.index()] = true);
    }
    for block in &plan.blocks {
        let body = block.body.start as usize..block.body.end as usize;
        let mut width = plan.steps[body.clone()].first().map_or(0, |step| step.width);
        for (at, pair) in (body.start..).zip(plan.steps[body].windows(2)) {
            let [earlier, here] = pair else { continue };
            let total = width + here.width;
            let waits = here.wait_count > 0 || awaited.get(at).is_some_and(|&awaited| awaited);
            joined[at] = !waits && alike(earlier, here) && continues(plan, earlier, here, total, overlaid);
            width = if joined[at] { total } else { here.width };
        }
    }
    joined
}

fn alike(a: &Step, b: &Step) -> bool {
    let shape =
        |step: &Step| (step.sources, step.destinations, step.round_each, step.post, step.pre, step.span);
    shape(a) == shape(b)
}

/// Whether `here` does for the following cells what `before` does for its own; `width` cells in all would be one step.
fn continues(plan: &Plan, before: &Step, here: &Step, width: u32, overlaid: bool) -> bool {
    let follows = |(a, b): (&Operand, &Operand)| match (*a, *b) {
        (Operand::Channel(a), Operand::Channel(b)) => {
            a == b && plan.channels[a.index()].kind != ChannelKind::Counter
        }
        (Operand::Local { buffer: a, cell }, Operand::Local { buffer: b, cell: next }) => {
            a == b && next == cell + before.width
        }
        _ => false,
    };
    if !operands(plan, before).iter().zip(operands(plan, here)).all(follows) {
        return false;
    }
    // A step may not read a cell that another cell of the same step writes: executors may do several at once. And where a
    // form lays places on each other, neighbours of the plan may meet in memory.
    let meets = |a: &Operand, b: &Operand| match (*a, *b) {
        (Operand::Local { buffer: a, cell: x }, Operand::Local { buffer: b, cell: y }) => {
            overlaid || (a == b && x != y && x.abs_diff(y) < width)
        }
        _ => false,
    };
    let (sources, destinations) = operands(plan, here).split_at(here.sources as usize);
    !sources.iter().any(|source| destinations.iter().any(|destination| meets(source, destination)))
}

fn operands<'a>(plan: &'a Plan, step: &Step) -> &'a [Operand] {
    &plan.operands[range(step)]
}

fn range(step: &Step) -> Range<usize> {
    let first = step.operands as usize;
    first..first + step.sources as usize + step.destinations as usize
}

/// Who sends, and who takes, each message.
struct Messages {
    /// By operand: the number of the message on its channel.
    number: Vec<u32>,
    /// By channel, and by reader's end of one: where its messages start in the lists.
    first_sent: Vec<u32>,
    first_taken: Vec<u32>,
    /// Steps by message.
    senders: Vec<u32>,
    takers: Vec<u32>,
}

impl Messages {
    fn new(plan: &Plan) -> Messages {
        let (mut sent, mut taken) = (vec![0; plan.channels.len() + 1], vec![0; plan.readers.len() + 1]);
        let mut number = vec![0; plan.operands.len()];
        each(plan, |_, at, end| {
            let count = match end {
                End::Writes(channel) => &mut sent[channel + 1],
                End::Reads(end) => &mut taken[end + 1],
            };
            number[at] = *count;
            *count += 1;
        });
        for starts in [&mut sent, &mut taken] {
            for i in 1..starts.len() {
                starts[i] += starts[i - 1];
            }
        }
        let total = |starts: &[u32]| vec![0; starts.last().map_or(0, |&count| count as usize)];
        let (mut senders, mut takers) = (total(&sent), total(&taken));
        each(plan, |step, at, end| match end {
            End::Writes(channel) => senders[(sent[channel] + number[at]) as usize] = step,
            End::Reads(end) => takers[(taken[end] + number[at]) as usize] = step,
        });
        Messages { number, first_sent: sent, first_taken: taken, senders, takers }
    }

    /// The pairs at other ends that must be joined too, if a step is joined to the next.
    fn mates(&self, plan: &Plan, step: u32, out: &mut Vec<(u32, u32)>) {
        out.clear();
        let (step, pair) =
            (&plan.steps[step as usize], |list: &[u32], at: u32| (list[at as usize], list[at as usize + 1]));
        for at in range(step) {
            let Operand::Channel(channel) = plan.operands[at] else { continue };
            let number = self.number[at];
            if at - (step.operands as usize) < step.sources as usize {
                out.push(pair(&self.senders, self.first_sent[channel.index()] + number));
            } else {
                let readers = plan.channels[channel.index()].readers.clone();
                out.extend(readers.map(|end| pair(&self.takers, self.first_taken[end as usize] + number)));
            }
        }
    }
}

/// Which end of a channel a step uses.
enum End {
    Writes(usize),
    /// The reader's end.
    Reads(usize),
}

/// Visits every use of a channel, with its step and its operand.
fn each(plan: &Plan, mut visit: impl FnMut(u32, usize, End)) {
    for (block, steps) in (0..).map(BlockId).zip(&plan.blocks) {
        for at in steps.body.clone() {
            let step = &plan.steps[at as usize];
            for (i, operand) in range(step).enumerate() {
                let Operand::Channel(channel) = plan.operands[operand] else { continue };
                let end = if i < step.sources as usize {
                    let mut readers = plan.channels[channel.index()].readers.clone();
                    let mine = readers.find(|&end| plan.readers[end as usize] == block);
                    let Some(end) = mine else { continue };
                    End::Reads(end as usize)
                } else {
                    End::Writes(channel.index())
                };
                visit(at, operand, end);
            }
        }
    }
}

/// Takes back what the other end of some channel does not join.
fn agree(plan: &Plan, joined: &mut [bool]) {
    let messages = Messages::new(plan);
    let mut unsure: Vec<u32> = (0..joined.len() as u32).filter(|&step| joined[step as usize]).collect();
    let mut pairs = Vec::new();
    while let Some(step) = unsure.pop() {
        if !joined[step as usize] {
            continue;
        }
        messages.mates(plan, step, &mut pairs);
        let agreed = |&(a, b): &(u32, u32)| joined[a as usize] && b == a + 1;
        if !pairs.iter().all(agreed) {
            joined[step as usize] = false;
            unsure.extend(pairs.iter().map(|&(a, _)| a).filter(|&a| joined[a as usize]));
        }
    }
}

/// Makes one step of those that are joined.
fn merge(plan: &mut Plan, joined: &[bool]) {
    // By old step, and one past the last: what it is now, or is part of.
    let mut name = Vec::with_capacity(plan.steps.len() + 1);
    let (mut count, mut operands) = (0, 0);
    let mut continued = false;
    for (at, &goes_on) in joined.iter().enumerate() {
        let step = plan.steps[at];
        if continued {
            plan.steps[count - 1].width += step.width;
        } else {
            plan.operands.copy_within(range(&step), operands);
            plan.steps[count] = Step { operands: operands as u32, ..step };
            operands += range(&step).len();
            count += 1;
        }
        name.push(count as u32 - 1);
        continued = goes_on;
    }
    name.push(count as u32);
    plan.steps.truncate(count);
    plan.operands.truncate(operands);
    for block in &mut plan.blocks {
        // A block's first step, and the first after it, continue none.
        for steps in [&mut block.prologue, &mut block.body, &mut block.epilogue] {
            *steps = name[steps.start as usize]..name[steps.end as usize];
        }
    }
    plan.waits.iter_mut().for_each(|step| *step = StepId(name[step.index()]));
}
