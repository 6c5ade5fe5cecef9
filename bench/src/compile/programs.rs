//! What is compiled, what it may take, and what MSCCLang takes for the like.
//!
//! In: nothing. Out: the rows of the table, the families by which growth is measured.

/// A program of the table.
#[derive(Debug)]
pub(crate) struct Program {
    /// The algorithm.
    pub(crate) algorithm: &'static str,
    /// The world, as `128x8`.
    pub(crate) shape: &'static str,
    /// What we allow it, in milliseconds.
    pub(crate) target_ms: Option<f64>,
    /// What we allow it, in MiB.
    pub(crate) target_mib: Option<f64>,
    /// What MSCCLang (microsoft/msccl-tools 030a750) takes for the same algorithm at the greatest world it was measured
    /// with, on a machine of this kind.
    pub(crate) msccl: &'static str,
}

/// One algorithm at growing worlds.
#[derive(Debug)]
pub(crate) struct Family {
    /// The algorithm.
    pub(crate) algorithm: &'static str,
    /// From about 10^5 to 2·10^6 moves.
    pub(crate) ranks: &'static [u32],
}

const fn row(
    algorithm: &'static str,
    shape: &'static str,
    target_ms: f64,
    target_mib: Option<f64>,
    msccl: &'static str,
) -> Program {
    Program { algorithm, shape, target_ms: Some(target_ms), target_mib, msccl }
}

/// The table.
pub(crate) const PROGRAMS: &[Program] = &[
    row("std::allreduce::ring", "256", 150.0, None, "> 120 s at 256"),
    row("std::allreduce::ring", "1024", 1500.0, Some(500.0), "> 120 s at 256"),
    row("std::allreduce::halving_doubling", "1024", 300.0, None, "> 120 s at 64"),
    row("std::allreduce::hierarchical", "128x8", 500.0, None, "1.5 s at 8x8"),
    row("std::allreduce::swing", "1024", 2000.0, None, "–"),
    row("std::allreduce::one_shot", "64", 100.0, None, "7.9 s at 16"),
    row("std::alltoall::direct", "256", 100.0, None, "74 s at 256"),
    row("std::alltoall::direct", "1024", 1200.0, None, "74 s at 256"),
    row("std::alltoall::two_level", "128x8", 1500.0, None, "2.7 s at 16x8"),
];

/// Time over moves must be a line.
pub(crate) const FAMILIES: &[Family] = &[
    Family { algorithm: "std::allreduce::ring", ranks: &[225, 320, 450, 640, 900, 1000] },
    Family { algorithm: "std::alltoall::direct", ranks: &[320, 450, 640, 900, 1200, 1414] },
];

impl Program {
    /// Its name in the table.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.algorithm.trim_start_matches("std::"), self.shape)
    }
}

/// Level sizes from `128x8`.
pub(crate) fn shape(text: &str) -> Result<Vec<u32>, String> {
    let level = |size: &str| size.parse().map_err(|_| format!("`{text}` is no shape of a world"));
    text.split('x').map(level).collect()
}
