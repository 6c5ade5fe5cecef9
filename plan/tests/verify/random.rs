//! Random plans that pass V0 and V1, dead or alive.
//!
//! Out: ranks of one or two blocks; channels of one or several readers; messages of up to three cells, fused at
//! random into steps that receive and send; tokens in all sections; waits. Messages are added one after another, now
//! and then at a random place, so some plans can get stuck and some need several slots.

use proptest::prelude::Strategy;
use rcc_plan::builder::{BlockHandle, PlanBuilder, StepHandle, get, local, put};
use rcc_plan::ids::{BufferId, ChannelId};
use rcc_plan::plan::{Operand, Plan, Role, Section};

/// A source of choices that shrinks towards the first one.
pub(crate) struct Choices<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Choices<'_> {
    pub(crate) fn new(bytes: &[u8]) -> Choices<'_> {
        Choices { bytes, at: 0 }
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(byte) * n / 256
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        n > 0 && self.below(n) == n - 1
    }
}

/// Plans for rules V0 to V2.
pub(crate) fn plan() -> impl Strategy<Value = Plan> {
    proptest::collection::vec(0u8.., 0..160).prop_map(|bytes| from_choices(&mut Choices::new(&bytes), 3))
}

/// The same with wide steps, which blocks get through by turns, a few slots at a time.
pub(crate) fn wide_plan() -> impl Strategy<Value = Plan> {
    proptest::collection::vec(0u8.., 0..160).prop_map(|bytes| from_choices(&mut Choices::new(&bytes), 9))
}

/// Ranks that exchange messages of one cell, as many each way, in some order: sent ahead, answered, or both.
pub(crate) fn exchange() -> impl Strategy<Value = Plan> {
    proptest::collection::vec(0u8.., 0..80).prop_map(|bytes| exchange_of(&mut Choices::new(&bytes)))
}

fn exchange_of(choices: &mut Choices) -> Plan {
    let ranks = 2 + choices.below(2) as u32;
    let mut p = PlanBuilder::new("random", "custom", &[ranks]);
    let input = p.buffer("input", Role::Send, 1);
    let output = p.buffer("output", Role::Recv, 1);
    let blocks: Vec<Vec<BlockHandle>> =
        (0..ranks).map(|rank| (0..1 + choices.below(2)).map(|_| p.block(rank)).collect()).collect();
    // What each block is to do, in any order.
    let mut open: Vec<Vec<Vec<(bool, ChannelId)>>> =
        blocks.iter().map(|blocks| vec![Vec::new(); blocks.len()]).collect();
    for (a, b) in [(0, 1), (1, 2)].into_iter().take(ranks as usize - 1) {
        let messages = 1 + choices.below(4);
        for (from, to) in [(a, b), (b, a)] {
            let (writer, reader) = (choices.below(blocks[from].len()), choices.below(blocks[to].len()));
            let channel = p.channel(blocks[from][writer], &[blocks[to][reader]]);
            open[from][writer].extend([(true, channel)].repeat(messages));
            open[to][reader].extend([(false, channel)].repeat(messages));
        }
    }
    for (handles, open) in blocks.iter().zip(&mut open) {
        for (&block, open) in handles.iter().zip(open) {
            while !open.is_empty() {
                match open.remove(choices.below(open.len())) {
                    (true, channel) => p.step(block, &[local(input, 0)], &[put(channel)]),
                    (false, channel) => p.step(block, &[get(channel)], &[local(output, 0)]),
                };
            }
        }
    }
    p.finish().unwrap().plan
}

/// What one block does with one message: the width, the ends.
#[derive(Clone)]
struct Act {
    gets: Vec<ChannelId>,
    puts: Vec<ChannelId>,
    width: u32,
    token: bool,
}

fn from_choices(choices: &mut Choices, most_wide: usize) -> Plan {
    let ranks = 2 + choices.below(3) as u32;
    let mut p = PlanBuilder::new("random", "custom", &[ranks]);
    p.header().cells = most_wide as u32;
    let input = p.buffer("input", Role::Send, 1);
    let scratch = p.scratch(most_wide as u32);
    let mut blocks = Vec::new();
    for rank in 0..ranks {
        for _ in 0..1 + choices.below(2) {
            blocks.push((rank, p.block(rank)));
        }
    }
    let mut acts: Vec<[Vec<Act>; 3]> = vec![Default::default(); blocks.len()];
    let mut channels = Vec::new();
    for _ in 0..1 + choices.below(5) {
        let writer = choices.below(blocks.len());
        let mut readers = vec![choices.below(blocks.len())];
        if choices.one_in(3) {
            let other = choices.below(blocks.len());
            if blocks[other].0 != blocks[readers[0]].0 {
                readers.push(other);
            }
        }
        let handles: Vec<BlockHandle> = readers.iter().map(|&r| blocks[r].1).collect();
        let token = choices.one_in(4);
        let channel = match token {
            true => p.counter(blocks[writer].1, &handles),
            false => p.channel(blocks[writer].1, &handles),
        };
        channels.push((channel, token, writer, readers));
    }
    for _ in 0..choices.below(14) {
        let (channel, token, writer, readers) = &channels[choices.below(channels.len())];
        let width = if *token { 1 } else { 1 + choices.below(most_wide) as u32 };
        let section = if *token { choices.below(3) } else { 1 };
        let act = |gets, puts| Act { gets, puts, width, token: *token };
        insert(&mut acts[*writer][section], act(vec![], vec![*channel]), choices);
        for &reader in readers {
            insert(&mut acts[reader][section], act(vec![*channel], vec![]), choices);
        }
    }
    let mut done: Vec<(u32, usize, Section, StepHandle)> = Vec::new();
    for (b, &(rank, block)) in blocks.iter().enumerate() {
        for (section, acts) in Section::ALL.into_iter().zip(&acts[b]) {
            for act in fused(acts, choices) {
                let step = emit(&mut p, section, block, &act, (input, scratch));
                // Waits: some step of another block of the rank, in this section or an earlier one. The other block
                // may be a later one, whose steps are not there yet: then it is that one that waits.
                let others: Vec<StepHandle> = done
                    .iter()
                    .filter(|&&(r, other, s, _)| r == rank && other != b && s <= section)
                    .map(|&(.., handle)| handle)
                    .collect();
                if !others.is_empty() && choices.one_in(2) {
                    let target = others[choices.below(others.len())];
                    p.wait(step, target);
                    // And sometimes back, which may or may not close a circle.
                    let back = done.iter().find(|&&(.., handle)| handle == target).map(|&(_, _, s, _)| s);
                    if back == Some(section) && choices.one_in(6) {
                        let last = others[others.len() - 1];
                        if done.iter().any(|&(_, _, s, handle)| handle == last && s == section) {
                            p.wait(last, step);
                        }
                    }
                }
                done.push((rank, b, section, step));
            }
        }
    }
    p.finish().unwrap().plan
}

/// Puts an act at the end, as in a program that works, or at a random place. The order of each channel is kept: its
/// messages differ in width and must meet in the order made.
fn insert(acts: &mut Vec<Act>, act: Act, choices: &mut Choices) {
    let same = |other: &Act| other.gets == act.gets && other.puts == act.puts;
    let first = acts.iter().rposition(same).map_or(0, |at| at + 1);
    let at = if choices.one_in(4) { first + choices.below(acts.len() - first + 1) } else { acts.len() };
    acts.insert(at, act);
}

/// Joins some neighbours into one step.
fn fused(acts: &[Act], choices: &mut Choices) -> Vec<Act> {
    let mut joined: Vec<Act> = Vec::new();
    for act in acts {
        if let Some(last) = joined.last_mut()
            && last.width == act.width
            && last.token == act.token
            && !act.gets.iter().any(|channel| last.gets.contains(channel))
            && !act.puts.iter().any(|channel| last.puts.contains(channel))
            && choices.one_in(2)
        {
            last.gets.extend(&act.gets);
            last.puts.extend(&act.puts);
            continue;
        }
        joined.push(act.clone());
    }
    joined
}

fn emit(
    p: &mut PlanBuilder,
    section: Section,
    block: BlockHandle,
    act: &Act,
    (input, scratch): (BufferId, BufferId),
) -> StepHandle {
    let mut src: Vec<Operand> = act.gets.iter().map(|&channel| get(channel)).collect();
    let mut dst: Vec<Operand> = act.puts.iter().map(|&channel| put(channel)).collect();
    if !act.token {
        if src.is_empty() {
            src.push(local(input, 0));
        }
        if dst.is_empty() {
            dst.push(local(scratch, 0));
        }
    }
    p.step_in(section, block, &src, &dst).width(act.width).handle()
}
