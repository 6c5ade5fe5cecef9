//! What launcher and rank say to each other.
//!
//! In: messages. Out: the same, on the other side of a socket pair: four bytes of length, then JSON. The launcher
//! never blocks on one rank: it collects what has come ([`Frames`]) and decodes what is whole.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use plan::file::LoadLimits;
use plan::plan::Plan;
use plan::verify::{Limits, Target, VerifiedPlan, verify};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind};
use crate::job::{Geometry, Job, RankReport};

/// From launcher to rank.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToRank {
    /// What to run.
    Assignment(Box<Assignment>),
    /// All ranks are ready: begin.
    Go,
}

/// What a rank is to run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Assignment {
    /// Which rank it is.
    pub rank: u32,
    /// The slots of the shared segment.
    pub geometry: Geometry,
    /// The job.
    pub job: Job,
}

/// From rank to launcher.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromRank {
    /// The plan is verified and memory is there.
    Ready,
    /// All calls are done.
    Done(RankReport),
    /// The run ended with an error.
    Failed(Error),
}

/// The longest message; a longer one is a fault.
const LONGEST: usize = 256 << 20;

/// Bytes that have come, and may not be a whole message yet.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    ended: bool,
}

/// Sends a message; blocks while the other side does not read.
pub fn send(socket: &mut UnixStream, message: &impl Serialize) -> Result<(), Error> {
    let body = serde_json::to_vec(message).map_err(|e| broken(&e))?;
    let length = u32::try_from(body.len()).ok().filter(|&n| n as usize <= LONGEST);
    let length = length.ok_or_else(|| broken(&"a message is too long"))?;
    let mut frame = length.to_le_bytes().to_vec();
    frame.extend(body);
    socket.write_all(&frame).map_err(|e| broken(&e))
}

/// Receives a message; none if the other side has closed.
pub fn receive<T: DeserializeOwned>(socket: &mut UnixStream) -> Result<Option<T>, Error> {
    let mut length = [0; 4];
    match socket.read_exact(&mut length) {
        Ok(()) => {}
        Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        Err(e) => return Err(broken(&e)),
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST {
        return Err(broken(&"a message is too long"));
    }
    let mut body = vec![0; length];
    socket.read_exact(&mut body).map_err(|e| broken(&e))?;
    serde_json::from_slice(&body).map(Some).map_err(|e| broken(&e))
}

impl Frames {
    /// Takes what has come, without waiting for more.
    pub fn fill(&mut self, socket: &mut UnixStream) {
        let mut chunk = [0; 64 << 10];
        while !self.ended {
            match socket.read(&mut chunk) {
                Ok(0) => self.ended = true,
                Ok(n) => self.bytes.extend_from_slice(&chunk[..n]),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                // A reset says the same as an end: the other side is gone.
                Err(_) => self.ended = true,
            }
        }
    }

    /// Whether nothing more will come.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// The next whole message.
    pub fn take<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Error> {
        let Some((length, rest)) = self.bytes.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > LONGEST {
            return Err(broken(&"a message is too long"));
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let message = serde_json::from_slice(body).map_err(|e| broken(&e))?;
        self.bytes.drain(..4 + length);
        Ok(Some(message))
    }
}

/// The plan that a launcher has published. It is verified anew, with no limits but those of the machine: a rank takes
/// from its launcher how much a plan may ask for, but not that it is right.
pub fn load_plan(bytes: &[u8]) -> Result<VerifiedPlan, Error> {
    let plan = Plan::from_bytes(bytes, &LoadLimits { bytes: u64::MAX, expanded: u64::MAX })
        .map_err(|e| Error::new(Kind::Internal, format!("the plan from the launcher cannot be read: {e}")))?;
    verify(plan, &unlimited()).map_err(|violations| {
        let first = violations.first().map(ToString::to_string).unwrap_or_default();
        Error::new(Kind::Invalid, format!("the plan from the launcher is wrong: {first}"))
    })
}

fn unlimited() -> Limits {
    Limits {
        ranks: u64::MAX,
        places: u64::MAX,
        steps: u64::MAX,
        micro_steps: u64::MAX,
        accesses: u64::MAX,
        waits: u64::MAX,
        clock_entries: u64::MAX,
        arrival_words: u64::MAX,
        promise_visits: u64::MAX,
        name_bytes: usize::MAX,
        excerpt_chars: usize::MAX,
        target: Target {
            blocks_per_rank: u32::MAX,
            channel_ends_per_rank: u32::MAX,
            connections_per_rank: u32::MAX,
            ..Target::cpu()
        },
    }
}

fn broken(why: &dyn std::fmt::Display) -> Error {
    Error::new(Kind::Transport, format!("launcher and rank cannot talk to each other: {why}"))
}
