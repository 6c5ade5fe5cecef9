//! A block as a resumable state machine.
//!
//! In: a program, a call's setting, the ends of channels, and where the block stands. Out: [`Machine::advance`] goes on until
//! the block can do nothing more for now, and says whether it did anything. The one hard idea: an event (a
//! micro-step, or several whose bytes fit one slot and travel as one message) happens whole or not at all. First all
//! that it needs is looked at; only if everything is there are sources read, destinations written, messages
//! published and slots given back. So a block that cannot act holds nothing, and keeps no other block from acting.

use std::time::Instant;

use super::kernels::{Fold, Stream};
use super::places::{Area, Setting};
use super::program::{Arg, Program, StepProgram, WaitOn};
use super::windows::Window;
use crate::channel::writing::{self, Writing};
use crate::channel::{Incoming, Outgoing};
use crate::memory::board::{At, BlockWords, Board};

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
    /// Those that have not done their part yet: indices of `states`.
    pub live: Vec<u32>,
    /// Where they say so.
    pub words: Vec<&'s BlockWords>,
    /// The channels it writes, each for all copies.
    pub outgoing: Vec<Outgoing<'s>>,
    /// The channels it reads, each for all copies.
    pub incoming: Vec<Incoming<'s>>,
    /// The buffers of peers that it reaches into.
    pub windows: Vec<Window<'s>>,
    /// How many copies there are.
    pub copies: u32,
    /// S.
    pub slot_bytes: u64,
    /// How each writes places of peers.
    pub reaching: Vec<Writing>,
    operands: Operands,
}

/// Addresses of the event at hand; between events they mean nothing.
#[derive(Debug, Default)]
struct Operands {
    sources: Vec<*const u8>,
    destinations: Vec<*mut u8>,
}

// SAFETY: addresses alone, which nobody follows but the event that put them there.
unsafe impl Send for Operands {}

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
    /// Where it says that the run has ended.
    pub board: &'a Board,
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
    /// The run has ended, and it may write to no peer any more.
    Aborted,
    /// The user's operator panicked.
    Panicked,
    /// A peer said that its buffer lies where it cannot.
    Astray {
        /// An index into `Machine::windows`.
        window: usize,
    },
}

/// `BlockState::section` of a block that has done its part.
const DONE: u8 = 3;

/// After so many events a block lets the others of its rank have a turn.
const BURST: u32 = 16;

impl<'s> Machine<'s> {
    /// A rank's machine, with all blocks at their ends.
    pub fn new(
        program: Program,
        words: Vec<&'s BlockWords>,
        (outgoing, incoming): (Vec<Outgoing<'s>>, Vec<Incoming<'s>>),
        windows: Vec<Window<'s>>,
        copies: u32,
        slot_bytes: u64,
    ) -> Machine<'s> {
        let blocks = 0..program.blocks.len() as u32;
        let states = blocks.flat_map(|block| {
            (0..copies).map(move |copy| BlockState {
                block,
                copy,
                section: DONE,
                iteration: 0,
                step: 0,
                micro: 0,
            })
        });
        let states: Vec<BlockState> = states.collect();
        Machine {
            reaching: vec![Writing::default(); states.len()],
            states,
            live: Vec::new(),
            program,
            words,
            outgoing,
            incoming,
            windows,
            copies,
            slot_bytes,
            operands: Operands::default(),
        }
    }

    /// Puts every block at its beginning.
    pub fn begin(&mut self, slices: u64) {
        self.live.clear();
        for index in 0..self.states.len() {
            let state = &mut self.states[index];
            let first = self.program.blocks[state.block as usize].sections[0].start;
            *state = BlockState { section: 0, iteration: 0, step: first, micro: 0, ..*state };
            self.settle(index, slices);
            self.live.push(index as u32);
        }
        self.outgoing.iter_mut().for_each(|end| end.first = true);
        self.incoming.iter_mut().for_each(|end| end.first = true);
    }

    /// Lets block `index` act while it can, for a while.
    ///
    /// # Safety
    /// `act.areas` and `act.scratch` are as large as the setting's layout says, for this thread's use alone; an area
    /// of a `Send` buffer need only be readable. They overlap only as the plan's overlaps say, and only if the call
    /// is in place. Windows were prepared for that layout, and every rank of the job keeps to the plan: peers touch
    /// registered memory only as it says.
    pub unsafe fn advance(&mut self, index: usize, act: &Act<'_>) -> Advance {
        let mut moved = Advance::Blocked;
        for _ in 0..BURST {
            if self.finished(index) {
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

    /// Whether a block has done its part.
    #[inline]
    pub fn finished(&self, index: usize) -> bool {
        self.states[index].section == DONE
    }

    /// Goes to the next section or iteration where the last one has ended, and says where the block stands now.
    #[inline]
    fn settle(&mut self, index: usize, slices: u64) {
        let state = &mut self.states[index];
        let sections = &self.program.blocks[state.block as usize].sections;
        while let Some(section) = sections.get(state.section as usize) {
            if state.step < section.end {
                let id = self.program.steps[state.step as usize].id;
                self.words[index].publish(At::Step(id.0), state.iteration);
                return;
            }
            if state.section == 1 && state.iteration + 1 < slices && !section.is_empty() {
                state.iteration += 1;
                state.step = section.start;
                continue;
            }
            if state.section == 1 {
                // Whoever is in the epilogue is past all iterations, also with an empty body.
                state.iteration = slices - 1;
            }
            state.section += 1;
            if let Some(next) = sections.get(state.section as usize) {
                state.step = next.start;
            }
        }
        self.words[index].publish(At::Done, state.iteration);
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
        // What carries no data is skipped at both ends, but for tokens, the first message of a call, and where slots are traded.
        let elided = |token: bool, always: bool| bytes == 0 && !token && !always;
        let at = |end: u32| (end * self.copies + state.copy) as usize;

        for arg in sources {
            let Arg::Channel { end, token } = *arg else { continue };
            let incoming = &mut self.incoming[at(end)];
            if !elided(token, incoming.always()) {
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
            if !elided(token, outgoing.always()) && !outgoing.free(act.call, &self.incoming) {
                return Advance::Blocked;
            }
        }

        if step.peers && bytes > 0 {
            // Nobody writes to a peer after having seen that the run has ended.
            if step.writes_peers && act.board.aborted() {
                return Advance::Aborted;
            }
            for arg in sources.iter().chain(destinations) {
                let Arg::Peer { window, .. } = *arg else { continue };
                if !self.windows[window as usize].open(act.call) {
                    return Advance::Astray { window: window as usize };
                }
            }
        }
        if bytes > 0 {
            let mut stream = if act.setting.stream { step.stream } else { Stream::NONE };
            let mut timed = None;
            let traded = |end: u32| self.outgoing[at(end)].trades();
            let contended = contended(destinations, bytes / u64::from(end - state.micro));
            if let Some((k, whose)) =
                contended.filter(|(_, whose)| !matches!(whose, Contended::Slot(end) if traded(*end)))
            {
                let writing = match whose {
                    Contended::Slot(end) => &mut self.outgoing[at(end)].writing,
                    Contended::Place => &mut self.reaching[index],
                };
                let way = writing.way();
                if way.past {
                    stream = stream.and(k);
                }
                timed = way.timed.then(|| (whose, Instant::now()));
            }
            let mut offset = 0;
            for micro in state.micro..end {
                let class = self.program.classes[(step.classes + micro) as usize];
                let count = act.setting.cells.length(state.copy, class, state.iteration);
                if count == 0 {
                    continue;
                }
                self.operands.sources.clear();
                self.operands.destinations.clear();
                for arg in sources {
                    match *arg {
                        Arg::Channel { token: true, .. } => {}
                        Arg::Channel { end, token: false } => {
                            self.operands.sources.push(self.incoming[at(end)].slot().wrapping_add(offset));
                        }
                        place => {
                            let at = address(place, micro, &state, act, &self.windows);
                            self.operands.sources.push(at);
                        }
                    }
                }
                for arg in destinations {
                    match *arg {
                        Arg::Channel { token: true, .. } => {}
                        Arg::Channel { end, token: false } => {
                            self.operands
                                .destinations
                                .push(self.outgoing[at(end)].slot().wrapping_add(offset));
                        }
                        place => {
                            let at = address(place, micro, &state, act, &self.windows);
                            self.operands.destinations.push(at);
                        }
                    }
                }
                let fold = Fold {
                    sources: &self.operands.sources,
                    destinations: &self.operands.destinations,
                    count: count as usize,
                    round_each: step.round_each,
                    divisor: act.setting.divisor.filter(|_| step.post),
                    pre: step.pre,
                    stream,
                };
                // SAFETY: slots are this block's until they are published or given back; places are as the caller
                // promises. The plan was verified: cells are within their buffers, and two places of one step are
                // one cell or apart.
                let whole = unsafe { act.setting.run(&fold) };
                if !whole {
                    return Advance::Panicked;
                }
                offset += count as usize * act.setting.dtype.size() as usize;
            }
            if let Some((whose, since)) = timed {
                let writing = match whose {
                    Contended::Slot(end) => &mut self.outgoing[at(end)].writing,
                    Contended::Place => &mut self.reaching[index],
                };
                writing.took(bytes, since.elapsed());
            }
        }

        for arg in sources {
            let Arg::Channel { end, token } = *arg else { continue };
            let incoming = &mut self.incoming[at(end)];
            if !elided(token, incoming.always()) {
                incoming.release();
            }
        }
        for arg in destinations {
            let Arg::Channel { end, token } = *arg else { continue };
            let outgoing = &mut self.outgoing[at(end)];
            if !elided(token, outgoing.always()) {
                outgoing.publish(act.call, act.signature);
            }
        }
        let ended = end == step.width;
        let next = &mut self.states[index];
        if ended {
            next.step += 1;
            next.micro = 0;
            self.settle(index, act.setting.slices);
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

/// A destination whose lines another core's cache may hold, since its rank has read what was there before, or has written it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contended {
    /// A slot of this outgoing channel (unless it is traded: then it has just been read here).
    Slot(u32),
    /// A place of a peer.
    Place,
}

/// The contended destination of a step that writes so many bytes a cell, with its number. Where there are several, or none, or little is
/// written, none: what each took could not be told. (No step mixes tokens and data, so destinations are numbered as in the fold.)
#[inline]
fn contended(destinations: &[Arg], bytes: u64) -> Option<(usize, Contended)> {
    if bytes < writing::LEAST {
        return None;
    }
    let one = |(k, arg): (usize, &Arg)| match *arg {
        Arg::Channel { end, token: false } => Some((k, Contended::Slot(end))),
        Arg::Peer { .. } => Some((k, Contended::Place)),
        Arg::Channel { token: true, .. } | Arg::Scratch { .. } | Arg::User { .. } => None,
    };
    let mut all = destinations.iter().enumerate().filter_map(one);
    all.next().filter(|_| all.next().is_none())
}

/// Where the micro-step finds a place.
#[inline]
fn address(place: Arg, micro: u32, state: &BlockState, act: &Act<'_>, windows: &[Window<'_>]) -> *mut u8 {
    let cells = &act.setting.cells;
    let user = |start: *mut u8, mut block: u32, position: u32| {
        let mut position = position + micro;
        if position >= cells.per_block() {
            block += position / cells.per_block();
            position %= cells.per_block();
        }
        start.wrapping_add(cells.user(state.copy, block, position, state.iteration) as usize)
    };
    match place {
        Arg::User { buffer, block, position } => user(act.areas[buffer as usize].start, block, position),
        Arg::Peer { window, block, position } => user(windows[window as usize].start(), block, position),
        Arg::Scratch { cell } => {
            act.scratch.wrapping_add(cells.scratch(state.copy, cell + micro, state.iteration) as usize)
        }
        Arg::Channel { .. } => std::ptr::null_mut(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slot_or_one_place_of_a_peer_is_contended() {
        let slot = |end| Arg::Channel { end, token: false };
        let user = Arg::User { buffer: 0, block: 0, position: 0 };
        let peer = Arg::Peer { window: 0, block: 0, position: 0 };
        let (scratch, much) = (Arg::Scratch { cell: 0 }, writing::LEAST);
        assert_eq!(contended(&[slot(7)], much), Some((0, Contended::Slot(7))));
        assert_eq!(contended(&[user, scratch, slot(7)], much), Some((2, Contended::Slot(7))));
        assert_eq!(contended(&[user, peer], much), Some((1, Contended::Place)));
        for none in [&[slot(7), slot(8)][..], &[slot(7), peer], &[user], &[user, scratch], &[]] {
            assert_eq!(contended(none, much), None, "{none:?}");
        }
        assert_eq!(contended(&[slot(7)], much - 1), None);
        assert_eq!(contended(&[Arg::Channel { end: 7, token: true }], much), None);
    }
}
