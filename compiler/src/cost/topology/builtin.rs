//! The machines that rcc knows by name. Where each number comes from stands in docs/cost.md.

use plan::schedule::Protocol;

use super::{Encoding, Engine, Level, Reach, Resources, Topology};

/// All built-in names.
pub const BUILTIN: [&str; 5] = ["2-cores", "8xh100", "8xh100-ideal", "2x8xh100", "128x8xh100"];

const GB: f64 = 1e9;
const US: f64 = 1e-6;
const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * 1024.0;

/// Multiprocessors of an H100 SXM: blocks that run at once.
const SMS: u32 = 132;
/// The most cores of a machine that is built in.
const MOST_CORES: u32 = 1 << 16;

/// A built-in topology by name; beside those listed, `N-cores` for any number of cores.
pub fn builtin(name: &str) -> Option<Topology> {
    if let Some(number) = name.strip_suffix("-cores").and_then(|number| number.parse().ok()) {
        // Spelt as it is shown, and nothing else: not `02-cores`.
        return Some(cores(number)).filter(|machine| machine.name == name);
    }
    match name {
        "8xh100" => Some(h100(name, "8 H100 GPUs on NVSwitch", None)),
        "8xh100-ideal" => Some(ideal(name)),
        "2x8xh100" => Some(h100(name, "2 nodes of 8 H100 GPUs, a 400 Gbit/s NIC for each GPU", Some(2))),
        "128x8xh100" => {
            Some(h100(name, "128 nodes of 8 H100 GPUs, a 400 Gbit/s NIC for each GPU", Some(128)))
        }
        _ => None,
    }
}

/// The smallest built-in machine of GPUs that has so many ranks; none: not even the largest has.
pub fn smallest(ranks: u32) -> Option<Topology> {
    let machines = ["8xh100", "2x8xh100", "128x8xh100"].into_iter().filter_map(builtin);
    machines.into_iter().find(|machine| machine.ranks().is_some_and(|has| has >= ranks.into()))
}

/// So many cores over shared memory: as measured on two, with more of them.
pub fn cores(number: u32) -> Topology {
    let mut machine = two_cores();
    let number = number.clamp(1, MOST_CORES);
    machine.name = format!("{number}-cores");
    machine.about = match number {
        1 => "ranks as processes that share a core and its memory".to_string(),
        _ => format!("ranks as processes that share {number} cores and their memory"),
    };
    if let Engine::Shared { cores, .. } = &mut machine.engine {
        *cores = number;
    }
    machine
}

/// Two cores over shared memory, as the CPU runtime uses them.
fn two_cores() -> Topology {
    let reach = |bytes, read, write| Reach { bytes, read: read * GB, write: write * GB };
    Topology {
        name: "2-cores".to_string(),
        about: "ranks as processes that share 2 cores and their memory".to_string(),
        levels: vec![Level {
            name: "shared memory".to_string(),
            size: None,
            latency: 0.096 * US,
            port: None,
            uplink: None,
            multicast: true,
        }],
        engine: Engine::Shared {
            cores: 2,
            event: 0.024 * US,
            switch: 1.14 * US,
            message: 103.0 * GB,
            send: 142.0 * GB,
            memory: vec![
                reach(256.0 * KIB, 173.0, 202.0),
                reach(MIB, 131.0, 206.0),
                reach(4.0 * MIB, 86.0, 167.0),
                reach(8.0 * MIB, 119.0, 109.0),
                reach(16.0 * MIB, 52.0, 72.0),
                reach(256.0 * MIB, 22.0, 30.0),
            ],
        },
        encodings: vec![Encoding { protocol: Protocol::Simple, bandwidth: 1.0, latency: vec![0.0] }],
        slots: 4,
        slices: vec![4 << 10, 16 << 10, 64 << 10, 256 << 10],
        copies: 1,
        resources: Resources::default(),
    }
}

/// Eight ports of the same bandwidth in and out, a latency, and nothing else that costs.
fn ideal(name: &str) -> Topology {
    Topology {
        name: name.to_string(),
        about: "8 GPUs whose ports are all that costs: 450 GB/s in and out, 1 us from end to end".to_string(),
        levels: vec![Level {
            name: "NVSwitch".to_string(),
            size: Some(8),
            latency: 1.0 * US,
            port: Some(450.0 * GB),
            uplink: None,
            multicast: false,
        }],
        engine: Engine::Own { rate: None, event: 0.0, memory: None },
        encodings: vec![Encoding { protocol: Protocol::Simple, bandwidth: 1.0, latency: vec![0.0] }],
        slots: 8,
        slices: vec![64 << 10, 256 << 10, 512 << 10, 1 << 20, 4 << 20],
        copies: 32,
        resources: Resources::default(),
    }
}

/// GPUs of 8 per node; with `nodes`, a network between them.
fn h100(name: &str, about: &str, nodes: Option<u32>) -> Topology {
    let mut levels = vec![Level {
        name: "NVSwitch".to_string(),
        size: Some(8),
        latency: 0.6 * US,
        port: Some(18.0 * 20.6 * GB),
        uplink: None,
        multicast: false,
    }];
    // In the order of levels: what a protocol's latency has on top of LL's.
    let (mut ll128, mut simple) = (vec![1.3 * US], vec![2.8 * US]);
    if let Some(nodes) = nodes {
        levels.push(Level {
            name: "network".to_string(),
            size: Some(nodes),
            latency: 2.7 * US,
            port: Some(50.0 * GB),
            uplink: None,
            multicast: false,
        });
        ll128.push(1.3 * US);
        simple.push(11.3 * US);
    }
    let ll = vec![0.0; levels.len()];
    Topology {
        name: name.to_string(),
        about: about.to_string(),
        levels,
        engine: Engine::Own { rate: Some(20.6 * GB), event: 0.0, memory: Some(3350.0 * GB) },
        encodings: vec![
            Encoding { protocol: Protocol::Ll, bandwidth: 0.5, latency: ll },
            Encoding { protocol: Protocol::Ll128, bandwidth: 0.92, latency: ll128 },
            Encoding { protocol: Protocol::Simple, bandwidth: 1.0, latency: simple },
        ],
        slots: 8,
        slices: vec![64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20],
        copies: 32,
        resources: Resources { blocks: Some(SMS), channels: Some(4096), connections: Some(4096) },
    }
}
