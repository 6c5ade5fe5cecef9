//! The graph of condition D, spelled out: every micro-step a node, every edge of plan.md §4 an edge.
//!
//! In: a plan that passes V0 and V1. Out: whether the graph has a cycle: for k slots, for any number of iterations,
//! with some messages elided, with micro-steps grouped. Written for comparison, slowly and by the book: it shares
//! nothing with `verify`.

use std::collections::BTreeMap;

use rcc_plan::ids::{ChannelId, StepId};
use rcc_plan::plan::{ChannelKind, Operand, Plan, Section};

/// Slots without limit.
pub(crate) const ENDLESS: usize = usize::MAX / 2;

/// How the graph is to be made.
pub(crate) struct Shape<'a> {
    pub(crate) slots: usize,
    /// Calls, one after the other over the same channels.
    pub(crate) calls: usize,
    /// A rank begins a call only when all its blocks have ended the one before.
    pub(crate) blocking: bool,
    /// Iterations of the body.
    pub(crate) iterations: usize,
    /// Whether the message of (channel, n-th of all its messages in one iteration) is elided.
    pub(crate) elided: &'a dyn Fn(ChannelId, usize) -> bool,
    /// Channels that trade slots: each of a pair gets its credit from what its writer receives of the other.
    pub(crate) pairs: &'a [[ChannelId; 2]],
    /// The group of a micro-step of a step: neighbours of equal group are one event. Must not decrease.
    pub(crate) group: &'a dyn Fn(StepId, u32) -> u32,
}

impl Default for Shape<'_> {
    fn default() -> Self {
        Shape {
            slots: 1,
            calls: 1,
            blocking: false,
            iterations: 1,
            elided: &|_, _| false,
            pairs: &[],
            group: &|_, micro| micro,
        }
    }
}

/// One event: an iteration of a step, a group of micro-steps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Event {
    call: usize,
    block: usize,
    section: Section,
    iteration: usize,
    step: u32,
    group: u32,
}

/// Whether the graph has no cycle.
pub(crate) fn is_acyclic(plan: &Plan, shape: &Shape) -> bool {
    let mut events: Vec<Event> = Vec::new();
    let mut edges: Vec<(Event, Event)> = Vec::new();
    // Messages by channel and sender or reader block: the events, in order.
    let mut sends: BTreeMap<u32, Vec<Event>> = BTreeMap::new();
    let mut receives: BTreeMap<(u32, u32), Vec<Event>> = BTreeMap::new();
    for (b, block) in plan.blocks.iter().enumerate() {
        let mut previous: Option<Event> = None;
        let mut message_numbers: BTreeMap<(bool, u32, usize), usize> = BTreeMap::new();
        let sections = (0..shape.calls).flat_map(|call| Section::ALL.map(|section| (call, section)));
        for (call, section) in sections {
            let iterations = if section == Section::Body { shape.iterations } else { 1 };
            for iteration in 0..iterations {
                for (id, step) in plan.steps(&block.section(section)) {
                    let mut grouped: Vec<u32> = (0..step.width).map(|m| (shape.group)(id, m)).collect();
                    let each = grouped.clone();
                    grouped.dedup();
                    for &group in &grouped {
                        let event = Event { call, block: b, section, iteration, step: id.0, group };
                        events.push(event);
                        edges.extend(previous.map(|previous| (previous, event)));
                        previous = Some(event);
                        // A message of a group is there if any of its micro-steps' is.
                        let micros = each.iter().filter(|&&g| g == group).count();
                        for (is_send, operands) in [(false, plan.src(step)), (true, plan.dst(step))] {
                            for operand in operands {
                                let Operand::Channel(channel) = *operand else { continue };
                                let number =
                                    message_numbers.entry((is_send, channel.0, iteration)).or_default();
                                let there = (*number..*number + micros).any(|n| !(shape.elided)(channel, n));
                                *number += micros;
                                if !there {
                                    continue;
                                }
                                match is_send {
                                    true => sends.entry(channel.0).or_default().push(event),
                                    false => receives.entry((channel.0, b as u32)).or_default().push(event),
                                }
                            }
                        }
                    }
                    // Waits: the last event of the target, in the same iteration or at the end of an earlier section.
                    let first = Event { call, block: b, section, iteration, step: id.0, group: grouped[0] };
                    for &target in plan.waits(step) {
                        edges.push((
                            Event { call, ..last_of(plan, shape, target, section, iteration) },
                            first,
                        ));
                    }
                }
            }
        }
    }
    for (c, channel) in plan.channels.iter().enumerate() {
        let sent = sends.get(&(c as u32)).map_or(&[][..], Vec::as_slice);
        for reader in plan.readers(channel) {
            let received = receives.get(&(c as u32, reader.0)).map_or(&[][..], Vec::as_slice);
            assert_eq!(sent.len(), received.len());
            edges.extend(sent.iter().copied().zip(received.iter().copied()));
            let id = ChannelId(c as u32);
            let other = shape.pairs.iter().find_map(|&[a, b]| match () {
                () if a == id => Some(b),
                () if b == id => Some(a),
                () => None,
            });
            if let Some(other) = other {
                let [reader] = plan.readers(&plan.channels[other.index()]) else { panic!("one reader") };
                let received = receives.get(&(other.0, reader.0)).map_or(&[][..], Vec::as_slice);
                edges.extend(received.iter().copied().zip(sent.iter().copied().skip(shape.slots)));
            } else if channel.kind == ChannelKind::Slots {
                edges.extend(received.iter().copied().zip(sent.iter().copied().skip(shape.slots)));
            }
        }
    }
    if shape.blocking {
        for &one in &events {
            let rank = plan.blocks[one.block].rank;
            let later = |next: &&Event| next.call == one.call + 1 && plan.blocks[next.block].rank == rank;
            edges.extend(events.iter().filter(later).map(|&next| (one, next)));
        }
    }
    acyclic(&events, &edges)
}

fn last_of(plan: &Plan, shape: &Shape, target: StepId, section: Section, iteration: usize) -> Event {
    let holds = |(_, block): &(usize, &rcc_plan::plan::Block)| {
        Section::ALL.iter().any(|&s| block.section(s).contains(&target.0))
    };
    let (block, in_block) = plan.blocks.iter().enumerate().find(holds).unwrap();
    let of = Section::ALL.into_iter().find(|&s| in_block.section(s).contains(&target.0)).unwrap();
    let iteration = match of {
        Section::Body if of == section => iteration,
        Section::Body => shape.iterations - 1,
        _ => 0,
    };
    let group = (shape.group)(target, plan.steps[target.index()].width - 1);
    Event { call: 0, block, section: of, iteration, step: target.0, group }
}

/// Kahn's algorithm.
fn acyclic(events: &[Event], edges: &[(Event, Event)]) -> bool {
    let number: BTreeMap<Event, usize> = events.iter().enumerate().map(|(i, &event)| (event, i)).collect();
    let mut after = vec![Vec::new(); events.len()];
    let mut before = vec![0; events.len()];
    for (from, to) in edges {
        after[number[from]].push(number[to]);
        before[number[to]] += 1;
    }
    let mut free: Vec<usize> = (0..events.len()).filter(|&event| before[event] == 0).collect();
    let mut done = 0;
    while let Some(event) = free.pop() {
        done += 1;
        for &next in &after[event] {
            before[next] -= 1;
            if before[next] == 0 {
                free.push(next);
            }
        }
    }
    done == events.len()
}
