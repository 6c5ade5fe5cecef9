//! One rank's part of a plan, resolved once so that no step searches anything.
//!
//! In: a verified plan (which knows the length class of every value) and a rank. Out: flat arrays of blocks, steps and
//! operands in which channels are numbers of this rank's own ends, places are (buffer, block, position), and places of
//! peers name one of this rank's few windows into others. Nothing here depends on counts or addresses, so one program
//! serves every call.

use std::ops::Range;

use plan::ids::{BlockId, BufferId, ChannelId, RankId, StepId};
use plan::plan::{ChannelKind, Operand, Plan, Role};
use plan::pre::Pre;
use plan::schedule::{Protocol, Transport};
use plan::verify::VerifiedPlan;
use rustc_hash::{FxHashMap, FxHashSet};

use super::kernels::Stream;
use crate::error::{Error, Kind};

/// One rank's part of a plan.
#[derive(Debug)]
pub struct Program {
    /// Its blocks, in the plan's order.
    pub blocks: Vec<BlockProgram>,
    /// Their steps, block by block, section by section.
    pub steps: Vec<StepProgram>,
    /// Sources, then destinations, of each step.
    pub args: Vec<Arg>,
    /// What steps wait for.
    pub waits: Vec<WaitOn>,
    /// The position within its block that the value of each micro-step came from: its length class.
    pub classes: Vec<u32>,
    /// The channels that this rank writes.
    pub outgoing: Vec<ChannelId>,
    /// The channels that this rank reads, each with the reader's number.
    pub incoming: Vec<(ChannelId, u32)>,
    /// The buffers of other ranks that this one reaches into.
    pub windows: Vec<(RankId, BufferId)>,
    /// Whether it reads any of them.
    pub reads_peers: bool,
}

/// A block.
#[derive(Debug)]
pub struct BlockProgram {
    /// Which.
    pub id: BlockId,
    /// Prologue, body, epilogue.
    pub sections: [Range<u32>; 3],
}

/// A step.
#[derive(Debug)]
pub struct StepProgram {
    /// Which.
    pub id: StepId,
    /// Its first operand in `Program::args`.
    pub args: u32,
    /// How many sources.
    pub sources: u16,
    /// How many destinations.
    pub destinations: u16,
    /// What it waits for: a range of `Program::waits`.
    pub waits: Range<u32>,
    /// How many cells.
    pub width: u32,
    /// The first of its classes in `Program::classes`; tokens have none.
    pub classes: u32,
    /// It carries no data.
    pub token: bool,
    /// It has places of peers.
    pub peers: bool,
    /// It writes to memory of peers.
    pub writes_peers: bool,
    /// Round after each operand.
    pub round_each: bool,
    /// Apply the operator's outer part.
    pub post: bool,
    /// The sources that its inner part acts on.
    pub pre: Pre,
    /// The destinations in buffers of callers that no step of any rank reads.
    pub stream: Stream,
}

/// A source or a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arg {
    /// This rank's end of a channel: an index into `Program::incoming` or `Program::outgoing`.
    Channel {
        /// Which end.
        end: u32,
        /// Whether it carries no data.
        token: bool,
    },
    /// A place in a buffer of the caller.
    User {
        /// The buffer.
        buffer: u32,
        /// The block.
        block: u32,
        /// The cell within the block.
        position: u32,
    },
    /// A cell of scratch.
    Scratch {
        /// Which.
        cell: u32,
    },
    /// A place in a buffer of another rank.
    Peer {
        /// Which buffer: an index into `Program::windows`.
        window: u32,
        /// The block.
        block: u32,
        /// The cell within the block.
        position: u32,
    },
}

/// A step of another block of this rank that must have finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitOn {
    /// The block: an index into `Program::blocks`.
    pub block: u32,
    /// Its section.
    pub section: u8,
    /// The step: an index into `Program::steps`.
    pub step: u32,
}

impl Program {
    /// The part of `rank`.
    ///
    /// # Errors
    /// [`Kind::Unsupported`] for a plan that [`check_supported`] refuses.
    pub fn new(plan: &VerifiedPlan, rank: RankId) -> Result<Program, Error> {
        let mut program = Program {
            blocks: Vec::new(),
            steps: Vec::new(),
            args: Vec::new(),
            waits: Vec::new(),
            classes: Vec::new(),
            outgoing: Vec::new(),
            incoming: Vec::new(),
            windows: Vec::new(),
            reads_peers: false,
        };
        check_supported(plan)?;
        let mut ends = Ends {
            outgoing: vec![u32::MAX; plan.channels.len()],
            incoming: vec![u32::MAX; plan.channels.len()],
            windows: FxHashMap::default(),
        };
        for (i, channel) in plan.channels.iter().enumerate() {
            if plan.blocks[channel.writer.index()].rank == rank {
                ends.outgoing[i] = program.outgoing.len() as u32;
                program.outgoing.push(ChannelId::new(i));
            }
            for (reader, block) in plan.readers(channel).iter().enumerate() {
                if plan.blocks[block.index()].rank == rank {
                    ends.incoming[i] = program.incoming.len() as u32;
                    program.incoming.push((ChannelId::new(i), reader as u32));
                }
            }
        }
        let first = plan.blocks.partition_point(|b| b.rank < rank);
        for (i, block) in plan.blocks_of(rank).iter().enumerate() {
            let mut sections = [0..0, 0..0, 0..0];
            for (own, section) in sections.iter_mut().zip([&block.prologue, &block.body, &block.epilogue]) {
                let start = program.steps.len() as u32;
                for step in section.clone() {
                    program.add(plan, StepId(step), &mut ends)?;
                }
                *own = start..program.steps.len() as u32;
            }
            program.blocks.push(BlockProgram { id: BlockId::new(first + i), sections });
        }
        program.resolve_waits(plan)?;
        program.find_results(plan, rank);
        Ok(program)
    }

    /// Finds what is stored for callers alone, here and at peers.
    fn find_results(&mut self, plan: &Plan, rank: RankId) {
        let cells = plan.header.cells;
        let mut read: FxHashSet<(RankId, u32, u32)> = FxHashSet::default();
        for block in &plan.blocks {
            for (_, step) in plan.steps(&(block.prologue.start..block.epilogue.end)) {
                for operand in plan.src(step) {
                    let (at, buffer, cell) = match *operand {
                        Operand::Local { buffer, cell } => (block.rank, buffer, cell),
                        Operand::Peer { rank, buffer, cell } => (rank, buffer, cell),
                        Operand::Channel(_) => continue,
                    };
                    if at == rank || self.windows.contains(&(at, buffer)) {
                        read.extend((cell..cell + step.width).map(|cell| (at, buffer.0, cell)));
                    }
                }
            }
        }
        for step in &mut self.steps {
            let args = step.args as usize + step.sources as usize;
            let destinations = &self.args[args..][..step.destinations as usize];
            step.stream = Stream::of(destinations.iter().map(|arg| {
                let (at, buffer, first) = match *arg {
                    Arg::User { buffer, block, position } => (rank, buffer, block * cells + position),
                    Arg::Peer { window, block, position } => {
                        let (rank, buffer) = self.windows[window as usize];
                        (rank, buffer.0, block * cells + position)
                    }
                    Arg::Channel { .. } | Arg::Scratch { .. } => return false,
                };
                (first..first + step.width).all(|cell| !read.contains(&(at, buffer, cell)))
            }));
        }
    }

    /// The sources of a step.
    #[inline]
    pub fn sources(&self, step: &StepProgram) -> &[Arg] {
        &self.args[step.args as usize..][..step.sources as usize]
    }

    /// The destinations of a step.
    #[inline]
    pub fn destinations(&self, step: &StepProgram) -> &[Arg] {
        &self.args[step.args as usize + step.sources as usize..][..step.destinations as usize]
    }

    fn add(&mut self, plan: &VerifiedPlan, id: StepId, ends: &mut Ends) -> Result<(), Error> {
        let step = &plan.steps[id.index()];
        let args = self.args.len() as u32;
        for (operands, incoming) in [(plan.src(step), true), (plan.dst(step), false)] {
            for &operand in operands {
                let arg = self.arg(plan, operand, incoming, ends)?;
                self.args.push(arg);
            }
        }
        let [reads_peers, writes_peers] = [plan.src(step), plan.dst(step)]
            .map(|operands| operands.iter().any(|o| matches!(o, Operand::Peer { .. })));
        self.reads_peers |= reads_peers;
        let token = self.args[args as usize..].iter().all(|a| matches!(a, Arg::Channel { token: true, .. }));
        let first = self.classes.len() as u32;
        if !token {
            for micro in 0..step.width {
                let class = plan.symbolic().class(id, micro).ok_or_else(|| {
                    Error::new(Kind::Internal, format!("the values of step {} have no length", id.0))
                })?;
                self.classes.push(class);
            }
        }
        let waits = self.waits.len() as u32;
        // Blocks and places within them are filled in when all steps are known.
        self.waits.extend(plan.waits(step).iter().map(|w| WaitOn { block: 0, section: 0, step: w.0 }));
        self.steps.push(StepProgram {
            id,
            args,
            sources: step.sources,
            destinations: step.destinations,
            waits: waits..self.waits.len() as u32,
            width: step.width,
            classes: first,
            token,
            peers: reads_peers || writes_peers,
            writes_peers,
            round_each: step.round_each,
            post: step.post,
            pre: step.pre,
            stream: Stream::NONE,
        });
        Ok(())
    }

    fn resolve_waits(&mut self, plan: &Plan) -> Result<(), Error> {
        for wait in &mut self.waits {
            let wanted = StepId(wait.step);
            let found = self.blocks.iter().enumerate().find_map(|(b, program)| {
                let block = &plan.blocks[program.id.index()];
                let sections = [&block.prologue, &block.body, &block.epilogue];
                let at = sections.iter().position(|section| section.contains(&wanted.0))?;
                let step = program.sections[at].start + (wanted.0 - sections[at].start);
                Some(WaitOn { block: b as u32, section: at as u8, step })
            });
            *wait = found.ok_or_else(|| {
                Error::new(
                    Kind::Internal,
                    format!("a step waits for step {}, which is of another rank", wanted.0),
                )
            })?;
        }
        Ok(())
    }
}

/// Whether ranks can execute a plan as it asks to be; told before any of them is started.
///
/// # Errors
/// [`Kind::Unsupported`], with what is not there.
pub fn check_supported(plan: &Plan) -> Result<(), Error> {
    let schedule = &plan.header.schedule;
    let missing = match schedule.protocol {
        Protocol::Auto | Protocol::Simple => None,
        Protocol::Ll => Some("protocol ll"),
        Protocol::Ll128 => Some("protocol ll128"),
    };
    let missing = missing
        .or(schedule.via_switch.then_some("reduction or multicast in a switch"))
        .or(schedule.wire.is_some().then_some("a narrower type in transit (`wire`)"))
        .or(schedule.threads.is_some_and(|threads| threads != 1).then_some("several threads for a block"))
        .or((!schedule.prefer.is_empty() && !schedule.prefer.contains(&Transport::Shared))
            .then_some("any of the transports that it prefers"))
        .or(schedule.avoid.contains(&Transport::Shared).then_some("a transport other than shared memory"));
    match missing {
        None => Ok(()),
        Some(what) => {
            let message =
                format!("`{}` asks for {what}, which ranks on CPUs do not have", plan.header.algorithm);
            Err(Error::new(Kind::Unsupported, message)
                .help("run it with a schedule that does not ask for this"))
        }
    }
}

/// For each channel of the plan, this rank's end of it; for each buffer of a peer, its window.
struct Ends {
    outgoing: Vec<u32>,
    incoming: Vec<u32>,
    windows: FxHashMap<(RankId, BufferId), u32>,
}

impl Program {
    fn arg(&mut self, plan: &Plan, operand: Operand, incoming: bool, ends: &mut Ends) -> Result<Arg, Error> {
        let cells = plan.header.cells;
        match operand {
            Operand::Channel(channel) => {
                let end = if incoming { &ends.incoming } else { &ends.outgoing }[channel.index()];
                if end == u32::MAX {
                    let message = format!("a step uses channel {}, which its rank has no end of", channel.0);
                    return Err(Error::new(Kind::Internal, message));
                }
                Ok(Arg::Channel { end, token: plan.channels[channel.index()].kind == ChannelKind::Counter })
            }
            Operand::Local { buffer, cell } => Ok(match plan.buffers[buffer.index()].role {
                Role::Scratch => Arg::Scratch { cell },
                Role::Send | Role::Recv => {
                    Arg::User { buffer: buffer.0, block: cell / cells, position: cell % cells }
                }
            }),
            Operand::Peer { rank, buffer, cell } => {
                let windows = &mut self.windows;
                let window = *ends.windows.entry((rank, buffer)).or_insert_with(|| {
                    windows.push((rank, buffer));
                    windows.len() as u32 - 1
                });
                Ok(Arg::Peer { window, block: cell / cells, position: cell % cells })
            }
        }
    }
}
