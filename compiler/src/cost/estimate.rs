//! From a plan and a size to a time; and what the compiler chooses where nothing is said.
//!
//! In: a [`Program`], a [`Topology`], a [`Question`]: element count and type, and what of the geometry is given. Out: an
//! [`Estimate`]. What is not given is chosen by trying a few in the model: copies, the size of a slice, slots, the protocol. The
//! fastest wins; of those within one in a hundred of it, the one with the fewest copies, then the least memory for slots.

use std::collections::BTreeMap;

use plan::display::plural;
use plan::dtype::Dtype;
use plan::plan::Operand;
use plan::schedule::Protocol;

use super::bound::{self, Least};
use super::path::{Path, path};
use super::program::Program;
use super::simulate::{self, Call, Want};
use super::topology::Topology;
use super::work::{Time, seconds};

/// What is to be estimated. What the plan's schedule says counts as given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// Elements of a block.
    pub count: u64,
    /// Their type.
    pub dtype: Dtype,
    /// Slots of a channel; none: chosen, around the topology's.
    pub slots: Option<u32>,
    /// Bytes of a slot; none: chosen.
    pub slice_bytes: Option<u32>,
    /// Copies of the program; none: chosen, unless the plan has several.
    pub copies: Option<u32>,
}

/// What a call is predicted to take.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Seconds from the start of all ranks to the end of the last.
    pub seconds: f64,
    /// The geometry.
    pub call: Call,
    /// How messages are encoded.
    pub protocol: Protocol,
    /// T.
    pub slices: u64,
    /// The least that the promise allows on this machine.
    pub least: Least,
    /// What the time is spent on.
    pub path: Path,
    /// Whether it is what following every event gives; if not, the mean of many iterations stands for the rest.
    pub exact: bool,
    /// Events that were followed for this result.
    pub events: u64,
    /// What was tried, and what it took; the chosen one among them.
    pub tried: Vec<(Call, f64)>,
}

/// Why there is no estimate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EstimateError {
    /// The machine is smaller than the plan.
    #[error("topology `{topology}` has {}, and the plan has {ranks}", plural(*has, "rank", "ranks"))]
    TooManyRanks {
        /// Its name.
        topology: String,
        /// Its ranks.
        has: u64,
        /// The plan's.
        ranks: u32,
    },
    /// The plan asks for a protocol that the machine does not have.
    #[error("the plan asks for protocol {protocol}, which topology `{topology}` does not have")]
    Protocol {
        /// The topology's name.
        topology: String,
        /// The protocol.
        protocol: &'static str,
    },
    /// The plan cannot be run with so few slots.
    #[error("the plan needs {}, and the channels have {given}", plural((*needs).into(), "slot per channel", "slots per channel"))]
    Slots {
        /// `k_min`.
        needs: u32,
        /// What was given.
        given: u32,
    },
    /// It takes longer than times are counted.
    #[error("a call of {bytes} bytes per block takes longer than the cost model counts (213 days)")]
    TooLong {
        /// Of a block.
        bytes: u64,
    },
    /// Blocks wait for each other: no verified plan does.
    #[error("{} for ever: the plan is not free of deadlock", plural(*blocks as u64, "block waits", "blocks wait"))]
    Stuck {
        /// How many.
        blocks: usize,
    },
}

/// So many iterations are followed of a call, mostly, before the state of some earlier one is back.
const FOLLOWED: u64 = 6;
/// Plans with more micro-steps are tried with the largest slices first: those make the fewest events.
const LARGE: u64 = 100_000;
/// A gain of less is not worth copies or memory.
const WORTH: f64 = 1.01;
/// Nor of less than this worth more slots.
const SLOTS_WORTH: f64 = 1.05;

/// What was tried, and what is best of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// The geometry to take.
    pub call: Call,
    /// What it takes, in seconds.
    pub seconds: f64,
    /// What was tried, and what it took; the chosen one among them.
    pub tried: Vec<(Call, f64)>,
    /// Events that were followed.
    pub events: u64,
}

/// Events that the search for one plan's geometry may follow.
pub const TRIES: u64 = 24_000_000;

/// Estimates a call: the best geometry, and what its time is spent on.
pub fn estimate(
    program: &Program<'_>,
    topology: &Topology,
    question: &Question,
) -> Result<Estimate, EstimateError> {
    let found = search(program, topology, question, TRIES)?;
    Ok(follow(program, topology, found))
}

/// Looks for the best geometry of a call. The first one is always tried; further ones as long as no more than `events` are
/// followed in all.
pub fn search(
    program: &Program<'_>,
    topology: &Topology,
    question: &Question,
    events: u64,
) -> Result<Search, EstimateError> {
    let header = &program.plan().header;
    if let Some(has) = topology.ranks().filter(|&has| has < header.ranks.into()) {
        let topology = topology.name.clone();
        return Err(EstimateError::TooManyRanks { topology, has, ranks: header.ranks });
    }
    if let Some(given) = question.slots.filter(|&given| given < header.k_min) {
        return Err(EstimateError::Slots { needs: header.k_min, given });
    }
    let wanted = header.schedule.protocol;
    let fits = |e: &usize| wanted == Protocol::Auto || topology.encodings[*e].protocol == wanted;
    let encodings: Vec<usize> = (0..topology.encodings.len()).filter(fits).collect();
    if encodings.is_empty() {
        let protocol = super::topology::protocol_name(wanted);
        return Err(EstimateError::Protocol { topology: topology.name.clone(), protocol });
    }
    let mut trials = Trials {
        program,
        topology,
        question,
        seen: BTreeMap::new(),
        tried: Vec::new(),
        spent: 0,
        events,
        followed: 0,
    };
    trials.search(&encodings)?;
    let (call, seconds) = trials.best();
    Ok(Search { call, seconds, tried: trials.tried, events: trials.spent })
}

/// Follows the call that a search has found, and says what its time is spent on.
pub fn follow(program: &Program<'_>, topology: &Topology, found: Search) -> Estimate {
    let call = found.call;
    let run = simulate::simulate(program, topology, &call, Want { records: true, skip: true });
    let core = simulate::work(program, topology, &call).least();
    let block = call.count.saturating_mul(call.dtype.size().into());
    let plan = program.plan();
    Estimate {
        seconds: seconds(run.end),
        call,
        protocol: topology.encodings[call.encoding].protocol,
        slices: run.slices,
        least: bound::least(&plan.promise, plan.header.ranks, topology, block, core),
        path: path(plan, &run),
        exact: run.skipped.is_none_or(|skipped| skipped.exact),
        events: run.events,
        tried: found.tried,
    }
}

/// What was tried so far.
struct Trials<'a> {
    program: &'a Program<'a>,
    topology: &'a Topology,
    question: &'a Question,
    seen: BTreeMap<Geometry, f64>,
    tried: Vec<(Call, f64)>,
    spent: u64,
    events: u64,
    /// The most iterations that were followed of a call, until something came back.
    followed: u64,
}

/// What is chosen of a call: encoding, copies, bytes of a slot, slots.
type Geometry = (usize, u32, u32, u32);

impl Trials<'_> {
    /// Each encoding with one copy; then, the best of them first: copies with slices of a middle size, other slices,
    /// copies again around the best; last, for the best of all, twice the slots.
    fn search(&mut self, encodings: &[usize]) -> Result<(), EstimateError> {
        let slices = self.slices();
        let copies = self.copies();
        let slots = self.slots();
        let first = if self.program.micro_steps > LARGE { slices.len() - 1 } else { slices.len() / 2 };
        let mut order = Vec::with_capacity(encodings.len());
        for &encoding in encodings {
            order.push((self.one((encoding, copies[0], slices[first], slots[0]))?, encoding));
        }
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (_, encoding) in order {
            let mut best = (f64::INFINITY, 0, first);
            for (c, &copies) in copies.iter().enumerate() {
                let took = self.one((encoding, copies, slices[first], slots[0]))?;
                if took * WORTH < best.0 {
                    best = (took, c, first);
                }
            }
            for (s, &slice) in slices.iter().enumerate() {
                let took = self.one((encoding, copies[best.1], slice, slots[0]))?;
                if took * WORTH < best.0 {
                    best = (took, best.1, s);
                }
            }
            let around = best.1.saturating_sub(1)..(best.1 + 2).min(copies.len());
            for &copies in &copies[around] {
                self.one((encoding, copies, slices[best.2], slots[0]))?;
            }
        }
        let best = self.best().0;
        for &slots in &slots[1..] {
            self.one((best.encoding, best.copies, best.slice_bytes, slots))?;
        }
        Ok(())
    }

    /// The one to take, and its seconds.
    fn best(&self) -> (Call, f64) {
        let fewest = self.tried.iter().map(|tried| tried.0.slots).min().unwrap_or(0);
        // More slots than usual must gain more: they are memory that all calls take.
        let after =
            |tried: &(Call, f64)| if tried.0.slots > fewest { tried.1 * SLOTS_WORTH } else { tried.1 };
        let least = self.tried.iter().map(after).fold(f64::INFINITY, f64::min);
        let good = self.tried.iter().filter(|tried| after(tried) <= least * WORTH);
        let key =
            |call: &Call| (call.copies, u64::from(call.slots) * u64::from(call.slice_bytes), call.encoding);
        // At least the fastest itself is there.
        good.copied().min_by_key(|tried| key(&tried.0)).unwrap_or_else(|| (self.call((0, 1, 64, 1)), 0.0))
    }

    fn one(&mut self, geometry: Geometry) -> Result<f64, EstimateError> {
        if let Some(&known) = self.seen.get(&geometry) {
            return Ok(known);
        }
        let (_, copies, slice_bytes, _) = geometry;
        // The first is always tried; what would take too long is not, and what was found so far must do.
        let cell = self.block().div_ceil(self.program.plan().header.cells.into());
        let slices = cell.div_ceil(u64::from(copies)).div_ceil(slice_bytes.into()).max(1);
        let iteration = self.program.micro_steps.saturating_mul(copies.into()).max(1);
        // What did not repeat before is not expected to now.
        let events = iteration.saturating_mul(slices.min(self.followed.max(FOLLOWED)));
        if self.spent.saturating_add(events) > self.events && !self.tried.is_empty() {
            return Ok(f64::INFINITY);
        }
        let call = self.call(geometry);
        let run = simulate::simulate(self.program, self.topology, &call, Want { records: false, skip: true });
        if run.stuck > 0 {
            return Err(EstimateError::Stuck { blocks: run.stuck });
        }
        if run.end == Time::MAX {
            return Err(EstimateError::TooLong { bytes: self.block() });
        }
        self.spent += run.events;
        self.followed = self.followed.max(run.events / iteration);
        let took = seconds(run.end);
        self.seen.insert(geometry, took);
        self.tried.push((call, took));
        Ok(took)
    }

    fn call(&self, (encoding, copies, slice_bytes, slots): Geometry) -> Call {
        let Question { count, dtype, .. } = *self.question;
        Call { count, dtype, slice_bytes, slots, copies, encoding }
    }

    /// Numbers of slots: what is given, else the topology's and twice that; none less than the plan needs.
    fn slots(&self) -> Vec<u32> {
        let least = self.program.plan().header.k_min.max(1);
        if let Some(given) = self.question.slots {
            return vec![given.max(least)];
        }
        let usual = self.topology.slots.max(least);
        vec![usual, usual.saturating_mul(2)]
    }

    /// Bytes of a block.
    fn block(&self) -> u64 {
        self.question.count.saturating_mul(self.question.dtype.size().into())
    }

    /// Sizes of a slot: what is given, else the topology's, none larger than the longest message.
    fn slices(&self) -> Vec<u32> {
        let plan = self.program.plan();
        if let Some(given) = self.question.slice_bytes.or(plan.header.schedule.slice_bytes) {
            return vec![given.max(plan::layout::MIN_SLOT_BYTES)];
        }
        let sends =
            |step: &&plan::plan::Step| plan.dst(step).iter().any(|o| matches!(o, Operand::Channel(_)));
        let widest = plan.steps.iter().filter(sends).map(|step| step.width).max().unwrap_or(1);
        let block = self.block();
        // Cells differ by a few elements: a line more holds the longest.
        let cell = block.div_ceil(plan.header.cells.into()).saturating_add(64);
        let longest = cell.saturating_mul(widest.into()).checked_next_multiple_of(64).unwrap_or(u64::MAX);
        let mut sizes: Vec<u32> =
            self.topology.slices.iter().map(|&size| u64::from(size).min(longest) as u32).collect();
        sizes.dedup();
        sizes
    }

    /// Numbers of copies: what is given, else powers of two up to what the topology and the cells allow.
    fn copies(&self) -> Vec<u32> {
        let plan = self.program.plan();
        let fixed = (plan.header.copies > 1).then_some(plan.header.copies);
        if let Some(given) = self.question.copies.or(fixed) {
            return vec![given.max(1)];
        }
        let cell = self.block() / u64::from(plan.header.cells);
        // A copy of less than a few hundred bytes is all overhead; and each takes blocks and channels of its own.
        let most = u64::from(self.topology.copies).min(cell / 512).min(self.fitting()).max(1);
        let powers = std::iter::successors(Some(1u32), |c| c.checked_mul(2));
        powers.take_while(|&c| u64::from(c) <= most).collect()
    }

    /// Copies that a rank has blocks and channels for.
    fn fitting(&self) -> u64 {
        let plan = self.program.plan();
        let target = self.topology.target();
        let mut blocks = vec![0u64; plan.header.ranks as usize];
        let mut ends = blocks.clone();
        plan.blocks.iter().for_each(|block| blocks[block.rank.index()] += 1);
        for channel in &plan.channels {
            ends[plan.blocks[channel.writer.index()].rank.index()] += 1;
            for reader in plan.readers(channel) {
                ends[plan.blocks[reader.index()].rank.index()] += 1;
            }
        }
        let most = |needs: &[u64], has: u32| {
            let needs = needs.iter().copied().max().unwrap_or(0);
            u64::from(has) / needs.max(1)
        };
        most(&blocks, target.blocks_per_rank).min(most(&ends, target.channel_ends_per_rank))
    }
}
