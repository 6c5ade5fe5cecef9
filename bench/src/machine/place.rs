//! CPUs, and threads that keep to one.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs that this process may use.
pub(crate) fn cpus() -> Result<Vec<usize>, String> {
    let mask = sched_getaffinity(None).map_err(|why| format!("cannot ask for CPUs: {why}"))?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| mask.is_set(cpu)).collect())
}

/// Keeps the calling thread on one. What is measured on a system that refuses is what that system does.
pub(crate) fn keep_to(cpu: usize) {
    let mut one = CpuSet::new();
    one.set(cpu);
    let _ = sched_setaffinity(None, &one);
}
