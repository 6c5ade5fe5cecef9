//! How a plan asks to be run: what a schedule says beside the order of steps.
//!
//! In: the clauses of a `schedule for …`, or what the compiler chose. Out: read by executors. Nothing here changes a
//! result but `wire`, which a call must allow. What an executor cannot do it refuses by name; it never ignores it.

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
