//! A block as a resumable state machine.
//!
//! In: a program, a call's setting, the ends of channels, and where the block stands. Out: [`Machine::advance`] goes on until
//! the block can do nothing more for now, and says whether it did anything. The one hard idea: an event (a
//! micro-step, or several whose bytes fit one slot and travel as one message) happens whole or not at all. First all
//! that it needs is looked at; only if everything is there are sources read, destinations written, messages
//! published and slots given back. So a block that cannot act holds nothing, and keeps no other block from acting.

use super::kernels::{self, Fold};
use super::places::{Area, Setting};
use super::program::{Arg, Program, StepProgram, WaitOn};
use crate::channel::{Incoming, Outgoing};
use crate::memory::board::{At, BlockWords};

/// Where a block of a copy stands.
#[derive(Debug, Clone, Copy)]
pub struct BlockState {
    /// Which block: an index into `Program::blocks`.
    pub block: u32,
    /// Which copy.
    pub copy: u32,
    /// Prologue, body, epilogue; 3 when it has done its part.
    pub section: u8,
    /// The iteration of the body.
    pub iteration: u64,
    /// The step: an index into `Program::steps`.
    pub step: u32,
    /// The micro-step.
    pub micro: u32,
}

/// What a rank acts upon.
#[derive(Debug)]
pub struct Machine<'s> {
    /// What its blocks do.
    pub program: Program,
    /// Where they stand.
    pub states: Vec<BlockState>,
    /// Where they say so.
    pub words: Vec<&'s BlockWords>,
    /// The channels it writes, each for all copies.
    pub outgoing: Vec<Outgoing<'s>>,
    /// The channels it reads, each for all copies.
    pub incoming: Vec<Incoming<'s>>,
    /// How many copies there are.
    pub copies: u32,
    /// S.
    pub slot_bytes: u64,
    sources: Vec<*const u8>,
    destinations: Vec<*mut u8>,
}

/// What all steps of one call have in common.
#[derive(Debug)]
pub struct Act<'a> {
    /// Counts, type, operator.
    pub setting: &'a Setting,
    /// The caller's buffers.
    pub areas: &'a [Area],
    /// The first byte of scratch.
    pub scratch: *mut u8,
    /// The number of the call.
    pub call: u64,
    /// Its signature.
    pub signature: u64,
}

/// How far a block came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advance {
    /// It acted, and may act again.
    Moved,
    /// It could not act.
    Blocked,
    /// It has done its part.
    Finished,
    /// The message at this end was sent by a rank that makes a different call.
    Mismatch {
        /// An index into `Machine::incoming`.
        end: usize,
    },
}

/// After so many events a block lets the others of its rank have a turn.
const BURST: u32 = 16;

impl<'s> Machine<'s> {
    /// A rank's machine, with all blocks at their ends.
    pub fn new(
        program: Program,
        words: Vec<&'s BlockWords>,
        outgoing: Vec<Outgoing<'s>>,
        incoming: Vec<Incoming<'s>>,
        copies: u32,
        slot_bytes: u64,
    ) -> Machine<'s> {
        let blocks = 0..program.blocks.len() as u32;
        let states = blocks.flat_map(|block| {
            (0..copies).map(move |copy| BlockState {
                block,
                copy,
                section: 3,
                iteration: 0,
                step: 0,
                micro: 0,
            })
        });
        let states = states.collect();
        let (sources, destinations) = (Vec::new(), Vec::new());
        Machine { program, states, words, outgoing, incoming, copies, slot_bytes, sources, destinations }
    }

    /// Puts every block at its beginning.
    pub fn begin(&mut self) {
        for (state, words) in self.states.iter_mut().zip(&self.words) {
            let first = self.program.blocks[state.block as usize].sections[0].start;
            *state = BlockState { section: 0, iteration: 0, step: first, micro: 0, ..*state };
            words.publish(At::Nowhere, 0);
        }
        self.outgoing.iter_mut().for_each(|end| end.first = true);
        self.incoming.iter_mut().for_each(|end| end.first = true);
    }

    /// Lets block `index` act while it can, for a while.
    ///
    /// # Safety
    /// `act.areas` and `act.scratch` are as large as the setting's layout says, for this thread's use alone; an area
    /// of a `Send` buffer need only be readable. They overlap only as the plan's overlaps say, and only if the call
    /// is in place.
    pub unsafe fn advance(&mut self, index: usize, act: &Act<'_>) -> Advance {
        let mut moved = Advance::Blocked;
        for _ in 0..BURST {
            if !self.at_step(index, act.setting.slices) {
                return Advance::Finished;
            }
            // SAFETY: the caller's promise.
            match unsafe { self.event(index, act) } {
                Advance::Moved => moved = Advance::Moved,
                Advance::Blocked => return moved,
                other => return other,
            }
        }
        moved
    }

    /// Goes to the next section or iteration where the last one has ended; whether there is a step to do.
    #[inline]
    fn at_step(&mut self, index: usize, slices: u64) -> bool {
        let state = &mut self.states[index];
        let sections = &self.program.blocks[state.block as usize].sections;
        while state.section < 3 {
            let section = &sections[state.section as usize];
            if state.step < section.end {
                if state.micro == 0 {
                    let id = self.program.steps[state.step as usize].id;
                    self.words[index].publish(At::Step(id.0), state.iteration);
                }
                return true;
            }
            if state.section == 1 && state.iteration + 1 < slices && !section.is_empty() {
                state.iteration += 1;
                state.step = section.start;
                continue;
            }
            state.section += 1;
            if let Some(next) = sections.get(state.section as usize) {
                state.step = next.start;
            } else {
                self.words[index].publish(At::Done, state.iteration);
            }
        }
        false
    }

    /// One event, if everything it needs is there.
    ///
    /// # Safety
    /// As for `advance`.
    unsafe fn event(&mut self, index: usize, act: &Act<'_>) -> Advance {
        let state = self.states[index];
        let step = &self.program.steps[state.step as usize];
        if state.micro == 0 && !self.waits_met(&state, step, act.setting.slices) {
            return Advance::Blocked;
        }
        let sources = self.program.sources(step);
        let destinations = self.program.destinations(step);
        let (end, bytes) = self.group(&state, step, act.setting);
        // What carries no data is skipped at both ends, but for tokens and the first message of a call.
        let elided = |token: bool, first: bool| bytes == 0 && !token && !first;
        let at = |end: u32| (end * self.copies + state.copy) as usize;

        for arg in sources {
            let Arg::Channel { end, token } = *arg else { continue };
            let incoming = &mut self.incoming[at(end)];
            if !elided(token, incoming.first) {
                if !incoming.ready() {
                    return Advance::Blocked;
                }
                if !incoming.agrees(act.call, act.signature) {
                    return Advance::Mismatch { end: at(end) };
                }
            }
        }
        for arg in destinations {
            let Arg::Channel { end, token } = *arg else { continue };
            let outgoing = &mut self.outgoing[at(end)];
            if !elided(token, outgoing.first) && !outgoing.free(act.call) {
                return Advance::Blocked;
            }
        }

        if bytes > 0 {
            let mut offset = 0;
            for micro in state.micro..end {
                let class = self.program.classes[(step.classes + micro) as usize];
                let count = act.setting.cells.length(state.copy, class, state.iteration);
                if count == 0 {
                    continue;
                }
                self.sources.clear();
                self.destinations.clear();
                for arg in sources {
                    match *arg {
                        Arg::Channel { token: true, .. } => {}
                        Arg::Channel { end, token: false } => {
                            self.sources.push(self.incoming[at(end)].slot().wrapping_add(offset));
                        }
                        place => self.sources.push(address(place, micro, &state, act)),
                    }
                }
                for arg in destinations {
                    match *arg {
                        Arg::Channel { token: true, .. } => {}
                        Arg::Channel { end, token: false } => {
                            self.destinations.push(self.outgoing[at(end)].slot().wrapping_add(offset));
                        }
                        place => self.destinations.push(address(place, micro, &state, act)),
                    }
                }
                let fold = Fold {
                    sources: &self.sources,
                    destinations: &self.destinations,
                    count: count as usize,
                    round_each: step.round_each,
                    divisor: act.setting.divisor.filter(|_| step.post),
                };
                // SAFETY: slots are this block's until they are published or given back; places are as the caller
                // promises. The plan was verified: cells are within their buffers, and two places of one step are
                // one cell or apart.
                unsafe { kernels::fold(act.setting.dtype, act.setting.op, &fold) };
                offset += count as usize * act.setting.dtype.size() as usize;
            }
        }

        for arg in sources {
            let Arg::Channel { end, token } = *arg else { continue };
            let incoming = &mut self.incoming[at(end)];
            if !elided(token, incoming.first) {
                incoming.release();
            }
        }
        for arg in destinations {
            let Arg::Channel { end, token } = *arg else { continue };
            let outgoing = &mut self.outgoing[at(end)];
            if !elided(token, outgoing.first) {
                outgoing.publish(act.call, act.signature);
            }
        }
        let next = &mut self.states[index];
        if end == step.width {
            next.step += 1;
            next.micro = 0;
        } else {
            next.micro = end;
        }
        Advance::Moved
    }

    /// The micro-steps that go together, from the one at hand on, and their bytes: as many as one slot holds. Both
    /// ends of a channel find the same, since it follows from lengths alone.
    #[inline]
    fn group(&self, state: &BlockState, step: &StepProgram, setting: &Setting) -> (u32, u64) {
        if step.token {
            return (step.width, 0);
        }
        let size = u64::from(setting.dtype.size());
        let mut total = 0;
        for micro in state.micro..step.width {
            let class = self.program.classes[(step.classes + micro) as usize];
            let bytes = setting.cells.length(state.copy, class, state.iteration) * size;
            if total + bytes > self.slot_bytes {
                return (micro, total);
            }
            total += bytes;
        }
        (step.width, total)
    }

    #[inline]
    fn waits_met(&self, state: &BlockState, step: &StepProgram, slices: u64) -> bool {
        let waits = &self.program.waits[step.waits.start as usize..step.waits.end as usize];
        waits.iter().all(|wait| {
            let other = &self.states[(wait.block * self.copies + state.copy) as usize];
            finished(other, wait, state, slices)
        })
    }
}

/// Whether the block at `other` has finished the step waited for, of the same iteration (or, from a later section, of
/// the last).
fn finished(other: &BlockState, wait: &WaitOn, waiter: &BlockState, slices: u64) -> bool {
    if other.section != wait.section {
        return other.section > wait.section;
    }
    if wait.section != 1 {
        return other.step > wait.step;
    }
    let iteration = if waiter.section == 1 { waiter.iteration } else { slices - 1 };
    other.iteration > iteration || (other.iteration == iteration && other.step > wait.step)
}

/// Where the micro-step finds a place.
#[inline]
fn address(place: Arg, micro: u32, state: &BlockState, act: &Act<'_>) -> *mut u8 {
    let cells = &act.setting.cells;
    match place {
        Arg::User { buffer, block, position } => {
            let mut block = block;
            let mut position = position + micro;
            if position >= cells.per_block() {
                block += position / cells.per_block();
                position %= cells.per_block();
            }
            let start = act.areas[buffer as usize].start;
            start.wrapping_add(cells.user(state.copy, block, position, state.iteration) as usize)
        }
        Arg::Scratch { cell } => {
            act.scratch.wrapping_add(cells.scratch(state.copy, cell + micro, state.iteration) as usize)
        }
        Arg::Channel { .. } => std::ptr::null_mut(),
    }
}
