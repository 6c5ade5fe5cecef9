//! What "size", "count" and "bandwidth" mean in reports: the meanings of nccl-tests.
//!
//! In: a plan's buffers and its collective. Out: the element count of a call from a number of bytes, and back, and bandwidths
//! from a time. The size of a call is the larger of what a rank sends and receives in all (at the rank where that
//! is most: a gather's root); its count is the elements of one block. Bus bandwidth is what each link carries: algorithm
//! bandwidth times the share of the size that must pass each rank's link. docs/cli.md has the table.

use plan::dtype::Dtype;
use plan::plan::Plan;

/// The meaning of sizes for one plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Convention {
    /// Blocks of the larger side, at the rank where it is largest.
    blocks: u64,
    /// Bus bandwidth over algorithm bandwidth.
    factor: f64,
}

impl Convention {
    /// For a plan.
    pub fn of(plan: &Plan) -> Convention {
        Convention { blocks: plan.call_blocks(), factor: factor(&plan.header.collective, plan.header.ranks) }
    }

    /// The elements of one block in a call of at most `bytes`; whole elements, so that less may be moved.
    pub fn count(self, bytes: u64, dtype: Dtype) -> u64 {
        bytes.checked_div(self.blocks.saturating_mul(dtype.size().into())).unwrap_or(0)
    }

    /// The size of a call; none if it is no number of bytes.
    pub fn bytes(self, count: u64, dtype: Dtype) -> Option<u64> {
        count.checked_mul(self.blocks)?.checked_mul(dtype.size().into())
    }

    /// How many elements one step in size is.
    pub fn grain(self, dtype: Dtype) -> u64 {
        self.blocks * u64::from(dtype.size())
    }

    /// GB/s (10⁹ bytes) as the caller sees it, and as each rank's link does.
    pub fn bandwidths(self, bytes: u64, seconds: f64) -> (f64, f64) {
        let algorithm = if seconds > 0.0 { bytes as f64 / seconds / 1e9 } else { 0.0 };
        (algorithm, algorithm * self.factor)
    }
}

/// What each rank's link must carry over the size of the call. A collective of the user's own: 1.
pub fn factor(collective: &str, ranks: u32) -> f64 {
    let n = f64::from(ranks.max(1));
    match collective {
        "allreduce" => 2.0 * (n - 1.0) / n,
        "allgather" | "reducescatter" | "alltoall" | "gather" | "scatter" => (n - 1.0) / n,
        _ => 1.0,
    }
}

/// A size in the largest unit that divides it: `64 MiB`, `1000 B`.
pub fn show(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1024 && value.is_multiple_of(1024) && unit + 1 < units.len() {
        value /= 1024;
        unit += 1;
    }
    format!("{value} {}", units[unit])
}
