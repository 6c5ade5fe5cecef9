//! The machine that plans are chosen for.
//!
//! In: what this process may use of it, or what several may. Out: how many cores they have together, and what stands for that in the cost
//! model. The one hard idea: ranks that keep to a CPU each have several between them, so it is the union that counts, and a quota,
//! which all share, that bounds it.

use compiler::cost::topology::{self, Topology};
use rustix::thread::{CpuSet, sched_getaffinity};
use serde::{Deserialize, Serialize};

/// What one process may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Which CPUs.
    pub cpus: Vec<u32>,
    /// How much time in all, if less than these CPUs give.
    pub quota: Option<u32>,
}

impl Share {
    /// Of this process.
    pub fn own() -> Share {
        let mask = sched_getaffinity(None);
        let of =
            |mask: CpuSet| (0..CpuSet::MAX_CPU as u32).filter(|&cpu| mask.is_set(cpu as usize)).collect();
        let cpus: Vec<u32> = mask.map_or_else(|_| vec![0], of);
        let allowed = runtime::cpus::allowed();
        let quota = (allowed < cpus.len()).then(|| u32::try_from(allowed).unwrap_or(u32::MAX));
        Share { cpus, quota }
    }
}

/// How many cores processes have together.
pub fn together(shares: &[Share]) -> usize {
    let mut cpus: Vec<u32> = shares.iter().flat_map(|share| share.cpus.iter().copied()).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let quota =
        shares.iter().filter_map(|share| share.quota).min().map_or(usize::MAX, |quota| quota as usize);
    cpus.len().min(quota).max(1)
}

/// This machine, as far as this process may use it: the model of two cores, with as many as there are.
pub fn here() -> Topology {
    cores(runtime::cpus::allowed())
}

/// The model of so many cores.
pub fn cores(count: usize) -> Topology {
    topology::cores(u32::try_from(count).unwrap_or(u32::MAX))
}

/// What the machine calls itself.
pub fn name() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    named.map_or_else(|| std::env::consts::ARCH.to_string(), |(_, name)| name.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_keep_to_a_cpu_have_all_of_them_together() {
        let share = |cpus: &[u32], quota| Share { cpus: cpus.to_vec(), quota };
        assert_eq!(together(&[share(&[0], None), share(&[1], None), share(&[0], None)]), 2);
        assert_eq!(together(&[share(&[0, 1, 2, 3], Some(2)), share(&[0, 1, 2, 3], Some(2))]), 2);
        assert_eq!(together(&[share(&[], None)]), 1);
        let own = Share::own();
        assert_eq!(together(&[own]), runtime::cpus::allowed());
    }
}
