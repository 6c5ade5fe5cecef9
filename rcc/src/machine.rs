//! The machine that plans are chosen for.
//!
//! In: how many CPUs there are. Out: what stands for this machine in the cost model.

use compiler::cost::topology::{self, Topology};

/// This machine, as far as this process may use it: the model of two cores, with as many as there are.
pub fn here() -> Topology {
    cores(runtime::cpus::allowed())
}

/// The model of so many cores.
pub fn cores(count: usize) -> Topology {
    topology::cores(u32::try_from(count).unwrap_or(u32::MAX))
}
