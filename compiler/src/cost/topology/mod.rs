//! The machine that a plan is costed for: who is connected to whom, how fast, and what runs the steps.
//!
//! In: a built-in name ([`builtin`]) or a text in TOML ([`parse`]). Out: a [`Topology`], plain data that only
//! `simulate` and `bound` read. The one hard idea: ranks lie in groups within groups (GPUs of a node, nodes of a
//! cluster), and two ranks talk through the innermost group that holds both. That group's [`Level`] says what a
//! message costs: a latency, and time on each port on its way.

mod builtin;
mod file;
mod units;

pub use builtin::{BUILTIN, builtin, cores, smallest};
pub use file::{FileError, parse};

use plan::schedule::Protocol;
use plan::verify::Target;

/// A machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// Its name.
    pub name: String,
    /// What it is, in a few words.
    pub about: String,
    /// Ways between ranks, innermost first; at least one.
    pub levels: Vec<Level>,
    /// What runs the steps.
    pub engine: Engine,
    /// How a message can be encoded; at least one.
    pub encodings: Vec<Encoding>,
    /// Slots of a channel, unless a plan needs more.
    pub slots: u32,
    /// Sizes of a slot to choose from, in bytes, rising; at least one.
    pub slices: Vec<u32>,
    /// Into how many copies a plan may be multiplied, each with its own blocks and channels.
    pub copies: u32,
    /// What a rank has to run a plan with.
    pub resources: Resources,
}

/// What a rank has, all copies of a plan together; none: any number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resources {
    /// Blocks that run at once.
    pub blocks: Option<u32>,
    /// Ends of channels, written or read.
    pub channels: Option<u32>,
    /// Other ranks that it exchanges messages with, or reaches into the memory of.
    pub connections: Option<u32>,
}

/// A way between ranks: what messages cost between ranks that are in one group of this level and in different ones of
/// the level below.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// What it is called.
    pub name: String,
    /// How many groups of the level below (ranks, for the innermost) form one; none: all there are.
    pub size: Option<u32>,
    /// From the end of a message's transfer until its reader can act, in seconds; also what a freed slot takes to
    /// be known to the writer.
    pub latency: f64,
    /// What a rank's own port to this level carries in each direction, in bytes per second; none: any amount.
    pub port: Option<f64>,
    /// What the one port carries that all ranks of a group of the level below share; none: any amount.
    pub uplink: Option<f64>,
    /// Whether a message to several ranks passes its writer's ports once.
    pub multicast: bool,
}

/// What runs the steps of a rank.
#[derive(Debug, Clone, PartialEq)]
pub enum Engine {
    /// Every block has an engine of its own (a GPU's multiprocessor).
    Own {
        /// What one block can move, in bytes per second; none: any amount.
        rate: Option<f64>,
        /// What an event costs beside its bytes, in seconds.
        event: f64,
        /// What the memory of a rank carries, reads and writes together; none: any amount.
        memory: Option<f64>,
    },
    /// The ranks of an innermost group share cores, neighbours together; a rank's blocks take turns on one.
    Shared {
        /// How many.
        cores: u32,
        /// What an event costs beside its bytes, in seconds.
        event: f64,
        /// What it costs that a core goes from one rank to another, in seconds.
        switch: f64,
        /// What a core reads of what another has just written, in bytes per second.
        message: f64,
        /// What a core writes where another has just read, in bytes per second.
        send: f64,
        /// How fast a core reads and writes, by how much it works on; rising, at least one.
        memory: Vec<Reach>,
    },
}

/// How fast a core reads and writes when it works on so many bytes. In between the costs of a byte are interpolated
/// over the logarithm of the size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reach {
    /// Bytes that the core goes through again and again.
    pub bytes: f64,
    /// Bytes per second.
    pub read: f64,
    /// Bytes per second.
    pub write: f64,
}

/// How a message is encoded in its slot, and what that costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoding {
    /// Which.
    pub protocol: Protocol,
    /// The part of a port's bandwidth that is data.
    pub bandwidth: f64,
    /// What comes on top of the latency of each level, in seconds; as many as levels.
    pub latency: Vec<f64>,
}

impl Topology {
    /// How many ranks it has; none: any number.
    pub fn ranks(&self) -> Option<u64> {
        self.levels.iter().try_fold(1u64, |ranks, level| Some(ranks.saturating_mul(level.size?.into())))
    }

    /// How many ranks a group of level `level` has; `u64::MAX`: all.
    pub fn group(&self, level: usize) -> u64 {
        let sizes = self.levels[..=level].iter().map(|level| level.size.map_or(u64::MAX, u64::from));
        sizes.fold(1, u64::saturating_mul)
    }

    /// The level that two ranks talk over; none if they are one.
    pub fn between(&self, a: u32, b: u32) -> Option<usize> {
        if a == b {
            return None;
        }
        let together = |level: &usize| u64::from(a) / self.group(*level) == u64::from(b) / self.group(*level);
        Some((0..self.levels.len()).find(together).unwrap_or(self.levels.len() - 1))
    }
}

/// The name of a protocol.
pub fn protocol_name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Auto => "auto",
        Protocol::Simple => "simple",
        Protocol::Ll => "ll",
        Protocol::Ll128 => "ll128",
    }
}

impl Resources {
    /// With what `said` says in place of these.
    #[must_use]
    pub fn over(self, said: Resources) -> Resources {
        Resources {
            blocks: said.blocks.or(self.blocks),
            channels: said.channels.or(self.channels),
            connections: said.connections.or(self.connections),
        }
    }
}

impl Topology {
    /// What a plan for it is held to: its own resources; where it says nothing, what the executor on CPUs has.
    pub fn target(&self) -> Target {
        let usual = Target::cpu();
        let Resources { blocks, channels, connections } = self.resources;
        Target {
            name: self.name.clone(),
            blocks_per_rank: blocks.unwrap_or(usual.blocks_per_rank),
            channel_ends_per_rank: channels.unwrap_or(usual.channel_ends_per_rank),
            connections_per_rank: connections.unwrap_or(usual.connections_per_rank),
        }
    }
}
