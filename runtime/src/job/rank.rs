//! What one rank of a job does, be it a thread or a process.
//!
//! In: plan, job, segment, rank. Out: its report. Before a checked call the outputs are filled with a pattern that no
//! result has, so that a call that writes nothing is not taken for one that is right.

use plan::ids::{BufferId, RankId};
use plan::plan::Role;
use plan::reference::{self, Reference};
use plan::verify::VerifiedPlan;
use rustix::time::{ClockId, clock_gettime};

use super::{Geometry, Inputs, Job, RankReport, Wrong};
use crate::cpus;
use crate::error::Error;
use crate::exec::buffers::Memory;
use crate::exec::{Patience, Rank, Shape};
use crate::memory::board::RankWords;
use crate::memory::segment::Segment;
use crate::wait::Policy;

/// Elements that are filled or compared at a time.
const TILE: u64 = 8 << 10;
/// Bytes that are filled with a pattern at a time.
const UNTOUCHED: usize = 1 << 20;

/// Runs the part of `rank`.
pub fn run_rank(
    plan: &VerifiedPlan,
    job: &Job,
    geometry: Geometry,
    segment: &Segment,
    rank: RankId,
) -> Result<RankReport, Error> {
    if job.pin {
        cpus::pin(rank.0, plan.header.ranks);
    }
    let outcome = Run::new(plan, job, geometry, segment, rank).and_then(|mut run| run.all());
    // An error before the first call is nobody's to find but this rank's: the others must hear of it.
    outcome.inspect_err(|error| {
        segment.board().abort(error);
    })
}

/// Nanoseconds of the clock that all processes of the machine share.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Both count from when the machine started, and are not negative.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Stores what is there, so that no other core's cache holds it any more: sixteen bytes by an instruction where there is one.
pub fn rewrite(bytes: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    type Word = std::arch::x86_64::__m128i;
    #[cfg(not(target_arch = "x86_64"))]
    type Word = u64;
    // SAFETY: a word is any bits, and so is a byte.
    let (head, words, tail) = unsafe { bytes.align_to_mut::<Word>() };
    for word in words {
        let word: *mut Word = word;
        // SAFETY: aligned, and borrowed alone. Volatile, so that it is done.
        unsafe { word.write_volatile(word.read_volatile()) };
    }
    for byte in head.iter_mut().chain(tail) {
        let byte: *mut u8 = byte;
        // SAFETY: borrowed alone.
        unsafe { byte.write_volatile(byte.read_volatile()) };
    }
}

struct Run<'a> {
    plan: &'a VerifiedPlan,
    job: &'a Job,
    rank: RankId,
    caller: Rank<'a>,
    /// Where this rank says that it is at work between calls.
    words: &'a RankWords,
    memory: Memory,
    report: RankReport,
}

impl<'a> Run<'a> {
    fn new(
        plan: &'a VerifiedPlan,
        job: &'a Job,
        geometry: Geometry,
        segment: &'a Segment,
        rank: RankId,
    ) -> Result<Run<'a>, Error> {
        let policy = Policy::of(plan.header.ranks as usize, cpus::allowed());
        let patience = Patience { policy, stalled: job.deadline, late: job.late.unwrap_or(job.deadline) };
        let mut caller = Rank::connect(plan, segment, geometry.slot_bytes, rank, patience)?;
        let memory = caller.memory(job.shape)?;
        let words = segment.rank(rank);
        Ok(Run { plan, job, rank, caller, words, memory, report: RankReport::default() })
    }

    fn all(&mut self) -> Result<RankReport, Error> {
        let Job { warmup, iterations, inputs, check, seed, .. } = *self.job;
        if check {
            self.checked_call(seed)?;
        } else {
            self.fill(seed);
        }
        match inputs {
            Inputs::Kept | Inputs::Anew => self.each_call(seed)?,
            Inputs::InARow { rewritten } => self.calls_in_a_row(rewritten)?,
        }
        if check && warmup + iterations > 0 {
            self.checked_call(seed.wrapping_add(1 << 32))?;
        }
        Ok(std::mem::take(&mut self.report))
    }

    /// Calls after a barrier each, timed one by one.
    fn each_call(&mut self, seed: u64) -> Result<(), Error> {
        let Job { warmup, iterations, inputs, .. } = *self.job;
        for call in 0..u64::from(warmup) + u64::from(iterations) {
            if inputs == Inputs::Anew {
                // Whoever shares a CPU with this rank may need it to end its part of the call before.
                self.caller.barrier()?;
                self.fill(seed.wrapping_add(call + 1));
            }
            self.caller.barrier()?;
            let mut buffers = self.memory.buffers();
            let began = now();
            self.caller.call(self.job.shape, &mut buffers)?;
            let took = now().saturating_sub(began);
            if call >= u64::from(warmup) {
                self.report.began.push(began);
                self.report.times.push(took);
            }
        }
        Ok(())
    }

    /// Calls one after the other, timed together; before each the inputs are stored again, or not.
    fn calls_in_a_row(&mut self, rewritten: bool) -> Result<(), Error> {
        let Job { shape, warmup, iterations, .. } = *self.job;
        let mut began = 0;
        for call in 0..u64::from(warmup) + u64::from(iterations) {
            if call == u64::from(warmup) {
                self.caller.barrier()?;
                began = now();
            }
            if rewritten {
                self.rewrite();
            }
            self.caller.call(shape, &mut self.memory.buffers())?;
        }
        if iterations == 0 {
            return Ok(());
        }
        let mut took = now().saturating_sub(began);
        if rewritten {
            self.caller.barrier()?;
            let alone = now();
            (0..iterations).for_each(|_| self.rewrite());
            let alone = now().saturating_sub(alone);
            // What was disturbed while it was alone is not taken off: nothing is to look faster than it is.
            took = took.checked_sub(alone).filter(|&took| took > 0).unwrap_or(took);
        }
        self.report.times.push(took / u64::from(iterations));
        Ok(())
    }

    /// Stores in the inputs what they hold, so that no other core's cache holds their lines.
    fn rewrite(&mut self) {
        for (b, _) in self.buffers(Role::Send) {
            for tile in self.memory.bytes_mut(b).chunks_mut(UNTOUCHED) {
                rewrite(tile);
                self.words.at_work();
            }
        }
    }

    fn checked_call(&mut self, seed: u64) -> Result<(), Error> {
        for (b, _) in self.buffers(Role::Recv) {
            for tile in self.memory.bytes_mut(b).chunks_mut(UNTOUCHED) {
                tile.fill(0xa5);
                self.words.at_work();
            }
        }
        self.fill(seed);
        self.caller.barrier()?;
        self.caller.call(self.job.shape, &mut self.memory.buffers())?;
        self.check(seed);
        Ok(())
    }

    /// Fills the inputs; any rank can make those of any other.
    fn fill(&mut self, seed: u64) {
        let Shape { dtype, op, .. } = self.job.shape;
        for (b, _) in self.buffers(Role::Send) {
            let tiles = self.memory.bytes_mut(b).chunks_mut((TILE * u64::from(dtype.size())) as usize);
            for (tile, bytes) in tiles.enumerate() {
                reference::fill_from(dtype, op, seed, self.rank, b, tile as u64 * TILE, bytes);
                self.words.at_work();
            }
        }
    }

    /// Compares every element promised to this rank with the definition, a tile at a time so that the inputs of all
    /// ranks need no memory.
    fn check(&mut self, seed: u64) {
        let Shape { dtype, op, elements, .. } = self.job.shape;
        let size = u64::from(dtype.size());
        let promise = Reference::new(&self.plan.promise);
        let mut operands: Vec<Vec<u8>> = Vec::new();
        for (b, name) in self.buffers(Role::Recv) {
            for (block, list) in promise.clauses(b, self.rank) {
                operands.resize(list.len().max(operands.len()), Vec::new());
                for from in (0..elements).step_by(TILE as usize) {
                    let count = TILE.min(elements - from);
                    for (operand, place) in operands.iter_mut().zip(list) {
                        operand.resize((count * size) as usize, 0);
                        let first = u64::from(place.block) * elements + from;
                        reference::fill_from(dtype, op, seed, place.rank, place.buffer, first, operand);
                    }
                    let operands: Vec<&[u8]> = operands[..list.len()].iter().map(Vec::as_slice).collect();
                    let start = (u64::from(block) * elements + from) * size;
                    let got = &self.memory.bytes(b)[start as usize..][..(count * size) as usize];
                    self.words.at_work();
                    let wrong = reference::check(dtype, op, &operands, got);
                    self.report.checked += count;
                    self.report.wrong += wrong.count;
                    if let (Some(first), None) = (wrong.first, &self.report.first_wrong) {
                        self.report.first_wrong = Some(Wrong {
                            rank: self.rank.0,
                            buffer: name.clone(),
                            block,
                            index: from + first.index,
                            got: first.got.to_string(),
                            expected: first.expected.to_string(),
                        });
                    }
                }
            }
        }
    }

    /// This rank's buffers of a role, with their names.
    fn buffers(&self, role: Role) -> Vec<(BufferId, String)> {
        let here =
            self.plan.buffers.iter().enumerate().filter(|(_, b)| b.role == role && b.at.holds(self.rank));
        here.map(|(b, buffer)| (BufferId::new(b), buffer.name.clone())).collect()
    }
}
