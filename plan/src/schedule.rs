//! How a plan asks to be run: what a schedule says beside the order of steps.
//!
//! In: the clauses of a `schedule for …`, or what the compiler chose. Out: read by executors. Nothing here changes a
//! result but `wire`, which a call must allow. What an executor cannot do it refuses by name; it never ignores it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a plan asks of its executor. The default asks for nothing: the executor chooses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// How a message is encoded in its slot.
    pub protocol: Protocol,
    /// Bytes of a slice (of a slot).
    pub slice_bytes: Option<u32>,
    /// Threads of each block.
    pub threads: Option<u32>,
    /// Transports in the order wanted; empty: any.
    pub prefer: Vec<Transport>,
    /// Transports not to be used.
    pub avoid: Vec<Transport>,
    /// Multicast and gather-reduce in the switch.
    pub via_switch: bool,
    /// Elements are narrowed to this type in transit.
    pub wire: Option<Wire>,
}

/// How a message is encoded in its slot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Protocol {
    /// The executor's choice.
    #[default]
    Auto,
    /// Bulk data, then a counter.
    Simple,
    /// Eight bytes of data and flag at a time.
    Ll,
    /// 128 bytes at a time, of which 8 are the flag.
    Ll128,
}

/// What messages go over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Transport {
    /// NVLink.
    Nvlink,
    /// Memory that both ranks map.
    Shared,
    /// RDMA.
    Rdma,
    /// TCP.
    Tcp,
}

/// A type that elements are narrowed to in transit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Wire {
    /// bfloat16.
    Bf16,
    /// IEEE half.
    F16,
    /// 8 bits, e4m3.
    Fp8,
}

impl fmt::Display for Schedule {
    /// As its clauses are written, `; ` between them; nothing for the default.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |names: &[Transport]| {
            names.iter().map(|transport| transport.name()).collect::<Vec<_>>().join(", ")
        };
        let clauses = [
            (self.protocol != Protocol::Auto).then(|| format!("protocol {}", self.protocol.name())),
            self.slice_bytes.map(|bytes| format!("pipeline {}", size(bytes))),
            self.threads.map(|threads| format!("threads {threads}")),
            (!self.prefer.is_empty()).then(|| format!("transport prefer {}", list(&self.prefer))),
            (!self.avoid.is_empty()).then(|| format!("transport avoid {}", list(&self.avoid))),
            self.via_switch.then(|| "via switch".to_owned()),
            self.wire.map(|wire| format!("wire {}", wire.name())),
        ];
        f.write_str(&clauses.into_iter().flatten().collect::<Vec<_>>().join("; "))
    }
}

impl Protocol {
    /// As it is written in a schedule.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Auto => "auto",
            Protocol::Simple => "simple",
            Protocol::Ll => "ll",
            Protocol::Ll128 => "ll128",
        }
    }
}

impl Transport {
    /// As it is written in a schedule.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Nvlink => "nvlink",
            Transport::Shared => "shared",
            Transport::Rdma => "rdma",
            Transport::Tcp => "tcp",
        }
    }
}

impl Wire {
    /// As it is written in a schedule.
    pub fn name(self) -> &'static str {
        match self {
            Wire::Bf16 => "bf16",
            Wire::F16 => "f16",
            Wire::Fp8 => "fp8",
        }
    }
}

/// A size in the largest unit that divides it.
fn size(bytes: u32) -> String {
    match bytes {
        0 => "0 B".to_owned(),
        _ if bytes.is_multiple_of(1 << 30) => format!("{} GiB", bytes >> 30),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Protocol, Schedule, Transport, Wire};

    #[test]
    fn a_schedule_is_shown_as_it_is_written() {
        assert_eq!(Schedule::default().to_string(), "");
        let schedule = Schedule {
            protocol: Protocol::Ll128,
            slice_bytes: Some(512 << 10),
            threads: Some(64),
            prefer: vec![Transport::Nvlink, Transport::Shared],
            avoid: vec![Transport::Tcp],
            via_switch: true,
            wire: Some(Wire::Bf16),
        };
        assert_eq!(
            schedule.to_string(),
            "protocol ll128; pipeline 512 KiB; threads 64; transport prefer nvlink, shared; transport avoid tcp; \
             via switch; wire bf16"
        );
        let odd = Schedule { slice_bytes: Some(1000), ..Schedule::default() };
        assert_eq!(odd.to_string(), "pipeline 1000 B");
    }
}
